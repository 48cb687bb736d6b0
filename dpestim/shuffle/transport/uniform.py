"""`UniformShuffler`: every order equally likely, by the shuffle of Fisher and Yates."""

from numbers import Real

import numpy as np

from dpestim._core import shuffle as kernel
from dpestim.rng import WordSource, check_random_state
from dpestim.shuffle.transport.messages import ShuffleWords, rows_of_bytes

#: Words at a time: 1 MB of them.
_STEPS = 1 << 17
#: How far from uniform the orders of a shuffler may be that a protocol takes (``uniform.md``, claim 4).
FARTHEST = 2.0**-60


class UniformShuffler:
    """Shuffle so that every order is equally likely.

    The fastest one. Which places of memory it touches tells the order, so whoever watches the memory of the machine
    learns who sent what; `BucketShuffler` is for that.

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


def shuffled(messages, shuffler, source):
    """Return messages as a shuffler orders them, or, where it is None, uniformly by the words of a source.

    Raises ValueError where it returns others, and before it sees any where its orders may be further from uniform than
    `FARTHEST`.
    """
    if shuffler is None:
        return permuted(*rows_of_bytes(messages), source)
    _check_distance(shuffler, len(messages))
    mixed = np.asarray(shuffler.shuffle(messages))
    if mixed.shape != messages.shape or mixed.dtype != messages.dtype or not _same_messages(mixed, messages):
        raise ValueError("shuffler must return the same messages, in another order")
    return mixed


def _check_distance(shuffler, n):
    """Raise ValueError unless a shuffler states that its orders of n messages are uniform, but for `FARTHEST`."""
    if not callable(getattr(shuffler, "distance", None)):
        raise ValueError("shuffler must have a method distance(n): how far its order of n messages is from uniform in "
                         "total variation, at most (0.0 where every order is equally likely)")
    far = shuffler.distance(n)
    if not isinstance(far, Real) or not 0 <= far <= FARTHEST:  # (NaN is refused, too)
        raise ValueError(f"shuffler must be closer to uniform: its distance for {n} messages may exceed 2^-60, which "
                         "no protocol's delta covers; take larger buckets (BucketShuffler(bucket_size=...)) or a "
                         "UniformShuffler")


def _same_messages(mixed, messages):
    """Tell whether two arrays have the same messages: each column and its square have the same sum, modulo 2^64."""
    one, two = (part.astype(np.uint64) for part in (mixed, messages))
    return all(np.array_equal(a.sum(axis=0), b.sum(axis=0)) for a, b in ((one, two), (one * one, two * two)))
