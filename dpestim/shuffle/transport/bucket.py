"""`BucketShuffler`: a shuffle whose accesses to memory, bucket by bucket, say nothing."""

from math import exp, log

import numpy as np

from dpestim._core import shuffle as kernel
from dpestim.rng import WordSource, check_random_state
from dpestim.shuffle.transport.messages import ShuffleWords, check_integer, rows_of_bytes

#: Bits of a key that one pass looks at: 16 buckets are in private memory at a time.
_BITS = 4


class BucketShuffler:
    """Shuffle obliviously: whole buckets, touched in an order that depends on the number of messages alone.

    Every message draws a random bucket and travels there through a network. Each step reads up to 16 buckets whole into
    private memory and writes them whole, so that an observer of the accesses to buckets learns n and nothing else. What
    happens inside private memory is assumed to be unseen; this is a simulation in one process.

    **Privacy.** As `UniformShuffler` towards the analyser, up to `failure_probability(n)` in total variation; protocols
    refuse buckets so small that their delta does not cover it. Besides,
    the trace of buckets is the same for all inputs and orders, so it may be seen by anyone. At the end the loads
    of the buckets are seen, which do not depend on messages. The shuffler's private memory is trusted.

    **Utility.** The multiset is unchanged: where a bucket overflows, all is drawn again, and nothing is dropped.

    **Complexity.** O(n log n / 4) moves; between 2 and 4 slots (message and key of 4 bytes) for each
    message, where these fill a bucket; n < 2**31.

    Parameters
    ----------
    bucket_size : int, default=512
        Slots of a bucket, even, from 2 to 2**20. At most half of them are filled at the start.
    attempts : int, default=3
        How often to draw at most, from 1 to 1,000.
    record_trace : bool, default=False
        Whether to keep the trace of buckets, for tests.
    random_state : None, int or NumPy generator, default=None
        None draws secure words at each call; an int repeats the same order and must not be used for a release.

    Attributes
    ----------
    trace_ : ndarray of int64
        Buckets in the order of the passes in which they were read and written, if ``record_trace``.

    Raises
    ------
    ValueError
        For messages that are not an array of an unsigned type with one or two axes; or a parameter out of range.
    RuntimeError
        Where a bucket overflowed in each attempt. Nothing is returned then.

    References
    ----------
    G. Asharov et al., Bucket Oblivious Sort: An Extremely Simple Oblivious Sort, SOSA 2020 (oblivious
    random bin assignment, random permutation); groups of 16 and the bound are ours, in ``bucket.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.shuffle.transport import BucketShuffler
    >>> shuffler = BucketShuffler()
    >>> sorted(shuffler.shuffle(np.array([3, 1, 1, 2], np.uint8)).tolist())
    [1, 1, 2, 3]
    >>> shuffler.failure_probability(10**7) < 2.0**-40
    True
    """

    def __init__(self, bucket_size=512, *, attempts=3, record_trace=False, random_state=None):
        check_integer("bucket_size", bucket_size, 2, 1 << 20)
        if bucket_size % 2:
            raise ValueError("bucket_size must be even")
        check_integer("attempts", attempts, 1, 1000)
        check_random_state(random_state)
        self.bucket_size, self.attempts = bucket_size, attempts
        self.record_trace, self.random_state = record_trace, random_state

    def _shape(self, n):
        """Return the number of bits of a key and the messages of a bucket at the start."""
        bits = max(0, -(-2 * n // self.bucket_size) - 1).bit_length()
        return bits, -(-n // (1 << bits))

    def failure_probability(self, n):
        """Return a bound on the probability that an attempt at n messages overflows; bucket.md proves it."""
        bits, mean = self._shape(n)
        size, passes = self.bucket_size, -(-bits // _BITS)
        if not passes or not mean:
            return 0.0
        # Chernoff: Pr[load > Z] <= e^-m (e m / Z)^Z, for each bucket after each pass
        log_bound = bits * log(2) + log(passes) - mean + size * (1 + log(mean / size))
        rounding = 2.0**-48 * (bits + passes + mean + size * (1 + log(size)))  # (more than floats lose)
        return min(1.0, exp(log_bound + rounding + 2.0**-48))

    def distance(self, n):
        """Return a bound on how far the order of n messages is from uniform: `failure_probability` (claim 3)."""
        return self.failure_probability(n)

    def shuffle(self, messages):
        """Return the messages, an array (n,) or (n, width) of an unsigned type, in a random order."""
        out, rows = rows_of_bytes(messages)
        source = WordSource(self.random_state)
        for attempt in range(self.attempts):
            if self._attempt(rows, ShuffleWords(source.part(attempt))):
                return out
        raise RuntimeError("a bucket overflowed in each attempt, and no message was returned: take a larger "
                           "bucket_size")

    def _attempt(self, rows, words):
        """Write the shuffled rows over the rows, or leave them and return False."""
        n, width = rows.shape
        size = self.bucket_size
        bits, mean = self._shape(n)
        n_buckets = 1 << bits
        slots, keys = np.zeros((n_buckets * size, width), np.uint8), np.zeros(n_buckets * size, np.uint32)
        loads = np.clip(n - mean * np.arange(n_buckets), 0, mean).astype(np.uint32)
        drawn = words.keys(n)
        whole = n // mean if mean else 0  # buckets with their full share; then one with what is left
        for array, values in ((slots, rows), (keys, drawn & np.uint32(n_buckets - 1))):
            shape = (n_buckets, size, *array.shape[1:])
            array.reshape(shape)[:whole, :mean] = values[: whole * mean].reshape(whole, mean, *array.shape[1:])
            array.reshape(shape)[whole : whole + 1, : n - whole * mean] = values[whole * mean :]
        work = np.empty((32 * size, width), np.uint8), np.empty(32 * size, np.uint32)
        traces = []
        fits = True
        for shift in range(0, bits, _BITS):
            trace = np.empty(2 * n_buckets if self.record_trace else 0, np.int64)
            # after an overflow the rest is done all the same: when it happened is not seen
            fits &= kernel.route(slots, keys, loads, size, shift, min(_BITS, bits - shift), *work, trace)
            traces.append(trace)
        if self.record_trace:
            self.trace_ = np.concatenate([*traces, np.arange(n_buckets)])
        if not fits:
            return False
        words.check(kernel.gather(slots, loads, size, words.swaps(0, n), words.spare, rows))
        return True
