"""Integers that users report: noise whose law differs between users, noisy bounds of degrees, and reports as they come in.

Proof: ``numbers.md``.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.additive.law import LARGEST
from dpestim.exact_reals import BitStream
from dpestim.graph.lists.reading import checked_users
from dpestim.rng import Stage

#: Columns of stage NOISE, for each purpose of a user's words; the number of the user is the block.
BOUND, COUNT, ROUNDING = 16, 17, 18
#: A user's noisy bound is below the user's degree with at most this probability.
CLIPPED = Fraction(1, 1000)
#: Attempts whose words are drawn at first.
_ATTEMPTS = 3


def laplace(epsilon, sensitivity=1):
    """Return the law of discrete Laplace noise; its sensitivity is an integer."""
    return DiscreteLaplaceLaw(epsilon, Fraction(0), Fraction(sensitivity), 0)


def noise_of(law, reader, column, user):
    """Return an integer of a law by the words of a user: ``law.one(BitStream(reader, column, user))``."""
    out = np.empty(1, np.int64)
    words = reader.dense(Stage.NOISE, column, user, 0, _ATTEMPTS * law.per)
    if law._attempts(words, out)[1]:  # (the first attempt that is accepted, if no earlier one ties)
        return int(out[0])
    return law.one(BitStream(reader, column, user))


def cut(number):
    """Return an integer that fits into 64 bits."""
    return min(max(number, -LARGEST), LARGEST)


class NoisyBounds:
    """Bounds of degrees that users publish: the degree, discrete Laplace noise for a change of 1, and a margin.

    The margin is the least for which a bound is below the degree with probability `CLIPPED` at most.
    """

    def __init__(self, epsilon):
        self.law = laplace(epsilon)
        low, self.margin = 0, 1
        while not self._is_enough(self.margin):
            low, self.margin = self.margin, 2 * self.margin
        while low < self.margin:
            middle = (low + self.margin) // 2
            low, self.margin = (low, middle) if self._is_enough(middle) else (middle + 1, self.margin)

    def _is_enough(self, margin):
        return self.law.beyond(margin + 1) / 2 <= CLIPPED

    def draw(self, degree, least, most, reader, user):
        """Return a bound from `least` to `most`, both public, of a user's degree."""
        return min(max(degree + noise_of(self.law, reader, BOUND, user) + self.margin, least), most)


@dataclass(frozen=True, eq=False)
class Numbers:
    """What users reported: row r of `values` (int64) is that of ``users[r]``."""

    users: np.ndarray
    values: np.ndarray
    n_nodes: int


def read_numbers(reports, users, n_nodes, width):
    """Return the `Numbers` of reports of so many columns, or raise ValueError for what no client sends."""
    if not isinstance(reports, np.ndarray) or reports.ndim != 2 or reports.dtype != np.int64 or np.ma.isMA(reports):
        raise ValueError("reports must be an array of int64 of two dimensions, as privatize returns it")
    if n_nodes is None:
        if users is not None:
            raise ValueError("n_nodes must be given for reports of some users: the public number of nodes")
        n_nodes = len(reports)
    if n_nodes < 2 or reports.shape[1] != width:
        raise ValueError(f"reports must have {width} columns, and there must be at least 2 nodes")
    users = checked_users(users, n_nodes, len(reports))
    if (np.abs(reports) > LARGEST).any():
        raise ValueError("reports must hold no larger numbers than privatize returns")
    return Numbers(users, reports.copy(), n_nodes)


def joined_numbers(mine, theirs):
    """Return the numbers of the users of both."""
    users = np.concatenate([mine.users, theirs.users])
    order = np.argsort(users, kind="stable")
    return Numbers(users[order], np.concatenate([mine.values, theirs.values])[order], mine.n_nodes)
