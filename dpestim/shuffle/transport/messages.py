"""What messages are, what a shuffler is, and the words that a shuffle draws."""

from numbers import Integral
from typing import Protocol, runtime_checkable

import numpy as np

from dpestim.rng import Stage

#: Words for those that must be rejected. More than 64 are needed with probability below 2^-190 (proof: uniform.md).
N_SPARE = 64
#: Messages of one shuffle, at most; the proofs use it.
MOST_MESSAGES = 1 << 31


@runtime_checkable
class Shuffler(Protocol):
    """What has ``shuffle(messages)`` and ``distance(n)``: the same messages, in an order that hides who sent which.

    **Privacy.** The view of the analyser is the multiset of messages, so that a guarantee for that view (neighbours
    differ in one user's value, the number n of messages is public) holds for the shuffled messages. The shuffler is
    trusted.

    **Utility.** Nothing is lost, added or changed.

    **Complexity.** That of the class at hand.

    Examples
    --------
    >>> from dpestim.shuffle.transport import Shuffler, UniformShuffler
    >>> isinstance(UniformShuffler(), Shuffler)
    True
    """

    def shuffle(self, messages):
        """Return the messages in another order; the argument is not changed."""
        ...

    def distance(self, n):
        """Return a proven bound on how far the order of n messages is from uniform, in total variation."""
        ...


def rows_of_bytes(messages):
    """Return a contiguous copy of the messages, and the same memory as rows of bytes, or raise ValueError."""
    messages = np.asarray(messages)
    if messages.dtype.kind != "u" or messages.ndim not in (1, 2):
        raise ValueError("messages must be an array of an unsigned integer type, one row or one number a message")
    if messages.ndim == 2 and not messages.shape[1]:
        raise ValueError("messages must be at least one number wide")
    if len(messages) >= MOST_MESSAGES:
        raise ValueError("messages must be fewer than 2**31")
    copy = np.array(messages, order="C")
    n = len(copy)
    return copy, copy.reshape(n, -1).view(np.uint8) if n else np.empty((0, 1), np.uint8)


def check_integer(name, value, low, high):
    """Raise ValueError unless a parameter is an integer from low to high."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= value <= high:
        raise ValueError(f"{name} must be an integer from {low} to {high}")


class ShuffleWords:
    """The words of one shuffle: a stream for swaps, one for keys, one for what is spare."""

    def __init__(self, source):
        self._reader = source.part(1).reader()  # (a protocol may have drawn its noise from the same seed)
        self.spare = self._reader.dense(Stage.RARE, 0, 0, 0, N_SPARE).copy()

    def swaps(self, start, size):
        """Return words start .. start + size, one for each swap; valid until the next call."""
        return self._reader.dense(Stage.RESPONSE, 0, 0, start, size)

    def keys(self, size):
        """Return uniform numbers of 32 bits; valid until the next call."""
        return self._reader.dense(Stage.SEED, 0, 0, 0, (size + 1) // 2).view(np.uint32)[:size]

    def check(self, used):
        """Raise where more words were rejected than are spare; used again, the draw is as good as a first one."""
        if used > N_SPARE:
            raise RuntimeError("more random words were rejected than were reserved: shuffle again")
        return used
