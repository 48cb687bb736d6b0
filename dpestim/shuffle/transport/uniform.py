"""`UniformShuffler`: every order equally likely, by the shuffle of Fisher and Yates."""

import math
from fractions import Fraction
from numbers import Real

import numpy as np

from dpestim._core import shuffle as kernel
from dpestim.rng import WordSource, check_random_state
from dpestim.shuffle.transport.messages import ShuffleWords, rows_of_bytes

#: Words at a time: 1 MB of them.
_STEPS = 1 << 17
#: Of a protocol's delta, 2 to the power of minus this is kept for what its shuffler is away from uniform.
_SHARE_BITS = 40
#: The rest, which is for the law of messages (``uniform.md``, claim 4).
FOR_MESSAGES = 1 - Fraction(1, 1 << _SHARE_BITS)


class UniformShuffler:
    """Shuffle so that every order is equally likely.

    The fastest one. Which places of memory it touches tells the order, so that an observer of the machine's memory
    accesses learns who sent what; `BucketShuffler` hides its accesses.

    **Privacy.** The analyser sees the multiset of messages and nothing of their senders: each of the n! orders has
    probability 1/n!, exactly, given uniform words. What a protocol proves of the multiset (neighbours differ in one
    user's value; n is public) holds for the output. The shuffler is trusted; it sees all messages in their order.

    **Utility.** The multiset is unchanged.

    **Complexity.** O(n) time and words, a copy of the messages; n < 2**31.

    Parameters
    ----------
    random_state : None, int or NumPy generator, default=None
        None draws secure words at each call; an int repeats the same order and must not be used for a release.

    Raises
    ------
    ValueError
        For messages that are not an array of an unsigned type with one or two axes; or a bad random_state.

    References
    ----------
    R. A. Fisher, F. Yates, Statistical Tables, 1938. D. Lemire, Fast Random Integer Generation in an Interval, ACM
    Transactions on Modeling and Computer Simulation 29(1), 2019, algorithm 5 (places without bias).

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.shuffle.transport import UniformShuffler
    >>> sorted(UniformShuffler().shuffle(np.array([3, 1, 1, 2], np.uint8)).tolist())
    [1, 1, 2, 3]
    """

    def __init__(self, random_state=None):
        check_random_state(random_state)
        self.random_state = random_state

    def distance(self, n):
        """Return 0: every order of n messages is equally likely, exactly (``uniform.md``, claim 1)."""
        return 0.0

    def shuffle(self, messages):
        """Return the messages, an array (n,) or (n, width) of an unsigned type, in a uniformly random order."""
        out, rows = rows_of_bytes(messages)
        return permuted(out, rows, WordSource(self.random_state))


def permuted(out, rows, source):
    """Put an array, whose memory is also seen as rows of bytes, in a uniformly random order; return it."""
    words = ShuffleWords(source)
    n, used = len(out), 0
    for done in range(0, n, _STEPS):
        last = n - done
        first = max(0, last - _STEPS)
        drawn = words.swaps(done, last - first)
        used = words.check(kernel.swaps(rows, first, last, drawn, words.spare, used))
    return out


def farthest_bits(epsilon, delta, n_shuffles=1):
    """Return b: each of so many shuffles may be 2^-b away from uniform, as (1 + e^epsilon) 2^-b is kept of delta."""
    parts = math.ceil(n_shuffles / delta)  # (1 + e^epsilon is at most 2 e^epsilon; 1.4427 is above log2 e)
    return _SHARE_BITS + 1 + math.ceil(1.4427 * float(epsilon)) + parts.bit_length()


def shuffled(messages, shuffler, source, bits):
    """Return messages as a shuffler orders them, or, where it is None, uniformly by the words of a source.

    Raises ValueError where it returns others, and before it sees any where its orders may be further from uniform than
    2^-bits.
    """
    if shuffler is None:
        return permuted(*rows_of_bytes(messages), source)
    _check_distance(shuffler, len(messages), bits)
    mixed = np.asarray(shuffler.shuffle(messages))
    if mixed.shape != messages.shape or mixed.dtype != messages.dtype or not _same_messages(mixed, messages):
        raise ValueError("shuffler must return the same messages, in another order")
    return mixed


def _check_distance(shuffler, n, bits):
    """Raise ValueError unless a shuffler states that its orders of n messages are uniform, but for 2^-bits."""
    if not callable(getattr(shuffler, "distance", None)):
        raise ValueError("shuffler must have a method distance(n): how far its order of n messages is from uniform in "
                         "total variation, at most (0.0 where every order is equally likely)")
    far = shuffler.distance(n)
    if not isinstance(far, Real) or not 0 <= far <= math.ldexp(1.0, -bits):  # (NaN is refused, too)
        raise ValueError(f"shuffler must be closer to uniform, because its distance for {n} messages exceeds "
                         f"2^-{bits}, the share of delta for the shuffler: take larger buckets "
                         "(BucketShuffler(bucket_size=...)) or a UniformShuffler")


def _same_messages(mixed, messages):
    """Tell whether two arrays have the same messages: each column and its square have the same sum, modulo 2^64."""
    one, two = (part.astype(np.uint64) for part in (mixed, messages))
    return all(np.array_equal(a.sum(axis=0), b.sum(axis=0)) for a, b in ((one, two), (one * one, two * two)))
