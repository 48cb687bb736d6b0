"""`UniformShuffler`: every order equally likely, by the shuffle of Fisher and Yates."""

from dpestim._core import shuffle as kernel
from dpestim.rng import WordSource, check_random_state
from dpestim.shuffle.transport.messages import ShuffleWords, rows_of_bytes

#: Words at a time: 1 MB of them.
_STEPS = 1 << 17


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
