"""Clipped counts: users publish noisy bounds of their degrees, and counts of at most so many neighbours with noise.

Proof: ``clipped.md``.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.additive.law import LARGEST
from dpestim.central.stability.rows import checked_share
from dpestim.exact_reals import BitStream
from dpestim.graph.lists.reading import Lists, checked_nodes, checked_users
from dpestim.privacy.exact import canonical_epsilon
from dpestim.records import record
from dpestim.rng import Stage

#: Columns of stage NOISE, for each purpose of a user's words; the number of the user is the block.
BOUND, COUNT, ROUNDING = 16, 17, 18
#: A user's noisy bound is below the user's degree with at most this probability.
CLIPPED = Fraction(1, 100)
#: Sensitivities up to so many times epsilon have noise of 64-bit integers.
_WIDEST = 1 << 55
#: Attempts whose words are drawn at first.
_ATTEMPTS = 3


def laplace(epsilon, sensitivity=1):
    """Return the law of discrete Laplace noise; its sensitivity is an integer."""
    return DiscreteLaplaceLaw(epsilon, Fraction(0), Fraction(sensitivity), 0)


def noise_of(law, reader, column, user, size=1):
    """Return integers of a law by a user's words, those that ``law.one(BitStream(reader, column, user))`` gives."""
    out = np.empty(size, np.int64)
    words = reader.dense(Stage.NOISE, column, user, 0, (math.ceil(1.2 * size / law.rate) + _ATTEMPTS) * law.per)
    if law._attempts(words, out)[1] < size:  # (an attempt that ties needs further words, which come in between)
        stream = BitStream(reader, column, user)
        return [law.one(stream) for _ in range(size)]
    return out.tolist()


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
        return min(max(degree + noise_of(self.law, reader, BOUND, user)[0] + self.margin, least), most)


@lru_cache(maxsize=64)
def noisy_bounds(epsilon):
    """Return `NoisyBounds`, kept: they are public."""
    return NoisyBounds(epsilon)


@record(eq=False)
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
    n_nodes = checked_nodes(n_nodes)
    if reports.shape[1] != width:
        raise ValueError(f"reports must have {width} columns, as privatize returns them")
    users = checked_users(users, n_nodes, len(reports))
    if ((reports > LARGEST) | (reports < -LARGEST)).any():  # (the least integer has no absolute value)
        raise ValueError("reports must hold no larger numbers than privatize returns")
    return Numbers(users, reports.copy(), n_nodes)


def joined_numbers(mine, theirs):
    """Return the numbers of the users of both."""
    users = np.concatenate([mine.users, theirs.users])
    order = np.argsort(users, kind="stable")
    return Numbers(users[order], np.concatenate([mine.values, theirs.values])[order], mine.n_nodes)


class ClippedCounts:
    """Mixin, which stands left of `ListEstimator`: a user reports a bound of the user's degree, and a count with noise.

    It wants a parameter `bound_fraction`. A sub-class has `_usable(users, n)`, the largest degree that each user can
    have; `_least`, below which a bound makes no sense; `_steps(found, bounds)`, which returns ([count of each user],
    divisor), integers whose quotients are counts in steps; `_moves(bound)`, the largest change of a count in steps
    that one entry makes, an integer; and `_largest(bound)`, the largest count in steps.
    """

    @property
    def _bounds(self):
        return noisy_bounds(checked_share(self.bound_fraction, "bound_fraction") * canonical_epsilon(self.epsilon))

    def _count_epsilon(self):
        """Return the part of epsilon that is left for the count."""
        return (1 - checked_share(self.bound_fraction, "bound_fraction")) * canonical_epsilon(self.epsilon)

    def _law(self, bound):
        """Return the law of the noise of a count with a bound."""
        return laplace(self._count_epsilon(), max(self._moves(bound), 1))

    @property
    def _top(self):
        """The largest bound for which noise and counts are integers of 64 bits; ValueError if no bound is."""
        most = self._count_epsilon() * _WIDEST

        def fits(bound):
            return self._largest(bound) <= LARGEST // 2 and self._moves(bound) <= most

        low, high = self._least, 1 << 31
        if not fits(low):
            raise ValueError("epsilon is too small, because noise would exceed 64-bit integers: take a larger epsilon")
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(middle) else (low, middle - 1)
        return low

    def _most(self, users, n):
        return np.minimum(self._usable(users, n), self._top)

    def _clipped(self, found, source):
        """Return what users of `Lists` report: a bound and a noisy count in steps; zeros where there is no choice."""
        reader, noise = source.reader(), self._bounds
        most = self._most(found.users, found.n_nodes).tolist()
        users, degrees = found.users.tolist(), found.lengths.tolist()
        able = [top >= self._least for top in most]
        bounds = [noise.draw(degree, self._least, top, reader, user) if can else 0
                  for user, degree, top, can in zip(users, degrees, most, able)]
        counts, divisor = self._steps(found, np.array(bounds, np.int64))
        laws, out = {bound: self._law(bound) for bound in set(bounds) - {0}}, np.zeros((len(users), 2), np.int64)
        for row, (user, bound, count) in enumerate(zip(users, bounds, counts)):
            if bound:
                if divisor > 1:  # (rounded at random, without bias)
                    count = (count + BitStream(reader, ROUNDING, user).below(divisor)) // divisor
                out[row] = bound, cut(cut(count) + noise_of(laws[bound], reader, COUNT, user)[0])
        return out

    def _read_clipped(self, reports, users, n_nodes):
        read = read_numbers(reports, users, n_nodes, 2)
        most, bounds = self._most(read.users, read.n_nodes), read.values[:, 0]
        none = most < self._least
        if read.values[none].any() or (~none & ((bounds < self._least) | (bounds > most))).any():
            raise ValueError("reports must hold bounds that a user can have: were they made with the same parameters?")
        return read

    def _variance_of_noise(self, read):
        """Return the variance of the sum of noisy counts, in squared steps; that of rounding is bounded."""
        bounds, times = np.unique(read.values[:, 0], return_counts=True)
        return sum(count * (self._law(bound).variance_steps + self._rounding)
                   for bound, count in zip(bounds.tolist(), times.tolist()) if bound)

    def _count_of(self, nodes, n, bound):
        """Return what the user of node 0 counts, exactly, as a Fraction in steps; the checks ask."""
        found = Lists(np.array([0]), np.array([0, len(nodes)]), np.array(nodes, np.int32), n)
        (count,), divisor = self._steps(found, np.array([bound]))
        return Fraction(count, divisor)

    #: The largest variance of the rounding of a count, in squared steps.
    _rounding = 0.0
