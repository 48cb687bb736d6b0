"""Losses of a series of releases, added up: the arithmetic behind `PrivacyLossDistribution`, proven in ``loss.md``."""

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim.accounting import convolution
from dpestim.accounting.grid import SHORT, margin
from dpestim.accounting.loss_pairs import Gaussian, Sampled
from dpestim.privacy.rounding import OUTWARD, TINY, crossing, float_up, log_constant

#: Floats that the losses of a composition take on the grid, the most for many releases; and what making them may cost.
_FLOATS, _MOST_FLOATS, _WORK = 1 << 17, 1 << 20, 1_500_000
#: Places of the grid between the ends of a row, and of all rows, the most: it is their memory.
_ROW, _ROWS = 1 << 20, 1 << 23
#: Pairs that are put on a grid at a time.
_BATCH = 1024
#: Sums that are kept for the next question.
_KEPT = 6
#: At most so many different pairs decide where the tilt is put (any tilt is valid).
_SCOUTS = 64
_TILTS = np.geomspace(1e-3, 1e4, 57)
#: Of several tilts one is good enough where errors are this part of delta.
_PART = 1e-3
_MORE = 2.0**-38


class Composition:
    """The sum of the losses of pairs, each so often; `directions` are those that differ (adding a record: True)."""

    def __init__(self, pieces):
        self._pieces = pieces
        self._step, self._thin, self._rare, self._cache, self._measures = None, False, False, {}, {}

    @property
    def directions(self):
        """The directions that differ: removing a record, and adding one."""
        return (False,) if all(pair.symmetric for pair in self._pieces) else (False, True)

    @cached_property
    def _parts(self):
        """The pairs to be added up, and how often each: Gaussians are one, or as few as can be."""
        parts = dict(self._pieces)
        gaussians = [pair for pair in parts if isinstance(pair, Sampled) and pair.base == Gaussian(pair.base.shift)
                     and pair.rate == 1]
        if gaussians:
            square = sum(parts.pop(pair) * Fraction(pair.base.shift) ** 2 for pair in gaussians)
            n = math.ceil(square / 400)
            parts[Sampled(Gaussian(math.sqrt(float_up(square / n)) * (1 + 2.0**-51)))] = n
        return parts

    @property
    def step(self):
        """The step of the grid of losses, a power of two."""
        if self._step is None:
            spread = math.sqrt(sum(n * pair.variance for pair, n in self._parts.items()))
            width = min(40 * spread, sum(2 * n * pair.reach for pair, n in self._parts.items()))
            work = np.zeros(2) + sum(pair.work for pair in self._parts)
            # a few losses may be far larger than the spread (of small samples of the records): rows reach that far
            reaches = [pair.reach for pair in self._parts]
            held = max(2 * max(reaches) / _ROW, 2 * sum(reaches) / _ROWS)
            self._rare = max(reaches) > 32 * spread
            # of one release, about: errors are of second order in the step, as a part of it
            fine = spread / math.sqrt(sum(self._parts.values())) / 256
            wanted = max(min(width / _FLOATS, fine), width / _MOST_FLOATS, held, 1e-12)
            self._thin = work[0] / _WORK > wanted and work[1] < work[0] / 4
            self._step = 2.0 ** math.ceil(math.log2(max(wanted, work[int(self._thin)] / _WORK)))
        return self._step

    def _losses(self, reverse):
        """Return batches of (losses, how often each row counts)."""
        key = ("losses", reverse)
        if key not in self._cache:
            kinds = {}
            for pair in self._parts:
                kinds.setdefault(pair.kind, []).append(pair)
            step = self.step
            self._cache[key] = [
                (pairs[0].losses(pairs, step, reverse, self._thin), np.array([self._parts[pair] for pair in pairs]))
                for kind in kinds.values() for pairs in _alike(kind)
            ]
        return self._cache[key]

    def _sum(self, values, reverse):
        """Return the sum of values(losses), one a row, over all releases."""
        return math.fsum(np.sum(counts * values(loss)) for loss, counts in self._losses(reverse))

    def _infinity(self, reverse):
        """Return the probability of an infinite loss, rounded up."""
        key = ("infinity", reverse)
        if key not in self._cache:
            with np.errstate(divide="ignore"):
                gone = self._sum(lambda loss: np.log1p(-np.asarray(loss.infinity)), reverse)
            self._cache[key] = min(1.0, 0.0 - math.expm1(gone) * (1 + _MORE))
        return self._cache[key]

    def _top(self, reverse):
        """Return the largest finite loss on the grid."""
        return self.step * self._sum(lambda loss: loss.last, reverse)

    def _tilt(self, objective, reverse):
        """Return the tilt t at which objective(ln of Renyi's bound of order 1 + t at epsilon 0, t) is least."""
        if self._infinity(reverse) >= 1:
            return 0.0
        rows = [(loss, row, n) for loss, counts in self._losses(reverse) for row, n in enumerate(counts.tolist())]
        scouts, scale = [], len(rows) / len(rows[:: -(-len(rows) // _SCOUTS)])
        for loss, row, n in rows[:: -(-len(rows) // _SCOUTS)]:
            there = np.flatnonzero(loss.mass[row])
            scouts.append(((there - there[-1]) * self.step, loss.mass[row, there],
                           (loss.first + int(there[-1])) * self.step, n * scale))

        def value(t):
            log = log_constant(t)
            for below, mass, last, n in scouts:
                log += n * (math.log(mass @ np.exp(t * below)) + t * last)
            return objective(log, t)

        low, high = 0, _TILTS.size - 1
        while low < high:  # the value falls, then rises
            middle = (low + high) // 2
            low, high = (middle + 1, high) if value(_TILTS[middle + 1]) < value(_TILTS[middle]) else (low, middle)
        return 0.0 if low == 0 and value(_TILTS[0]) >= 0 else float(_TILTS[low])

    def _measure(self, theta, reverse):
        """Return (tilted losses of the sum, a single row; ln C; the sum of absolute values in ln C)."""
        key = (theta, reverse)
        if key not in self._measures:
            tilted, logs = [], []
            for loss, counts in self._losses(reverse):
                part, log = convolution.tilt(loss, self.step, theta)
                tilted.append((part, counts))
                logs += (counts * log).tolist()
            while len(self._measures) >= _KEPT:
                self._measures.pop(next(iter(self._measures)))
            self._measures[key] = convolution.total(tilted), math.fsum(logs), math.fsum(map(abs, logs))
        return self._measures[key]

    def _at(self, epsilon, theta, reverse):
        """Return (low, high) around the delta of the losses on the grid."""
        infinity = self._infinity(reverse)
        if infinity >= 1:
            return 1.0, 1.0
        if epsilon >= self._top(reverse):
            return infinity * (1 - 2 * _MORE), infinity  # no finite loss is larger
        total, log_c, size = self._measure(theta, reverse)
        first = max(0, math.floor(epsilon / self.step) + 1 - total.first)
        above = (total.first + np.arange(first, total.mass.shape[1])) * self.step - epsilon
        value = float(np.sum(total.mass[0, first:] * np.exp(-theta * above) * -np.expm1(-above)))
        factor = math.exp(min(log_c - theta * epsilon, 700.0))
        loose = _MORE + 2.0**-50 * (size + theta * epsilon)
        error = factor * float(total.error[0]) * math.exp(log_constant(theta)) * (1 + loose) + TINY
        low = infinity * (1 - 2 * _MORE) + factor * value * (1 - loose) - error
        return max(0.0, low), min(1.0, infinity + factor * value * (1 + loose) + error)

    def _ladder(self, theta):
        """Return tilts to try, up to one: where large losses are rare, smaller ones leave much shorter arrays."""
        return sorted({min(theta, 1.0), min(theta, math.sqrt(theta)), theta}) if self._rare else [theta]

    def _tried(self, epsilon, reverse):
        """Return (the delta of the losses on the grid at most, the tilt that says so)."""
        tried = []
        for theta in self._ladder(self._tilt(lambda logs, t: logs - t * epsilon, reverse)):
            low, high = self._at(epsilon, theta, reverse)
            tried.append((high, theta))
            if high - low <= _PART * high:
                break
        return min(tried)

    def delta(self, epsilon, reverse):
        """Return an upper bound of the delta of the pairs in one direction."""
        return self._tried(epsilon, reverse)[0]

    def bounds(self, epsilon, reverse):
        """Return (low, high) around the delta of the pairs: the low one is that of losses on the grid, further up."""
        high, theta = self._tried(epsilon, reverse)
        n = sum(self._parts.values())
        eta = SHORT + 4 * margin(max(pair.reach for pair in self._parts))
        grown = self._sum(lambda loss: math.log1p(loss.excess), reverse)
        moved = self._sum(lambda loss: loss.moved, reverse)
        width = self.step * max(loss.widest for loss, _ in self._losses(reverse))
        low = self._at(epsilon + n * (width + 2 * eta), theta, reverse)[0] * math.exp(-grown) - moved
        for part in (1e-1, 1e-2, 1e-3, 1e-4):
            beta = high * part
            if beta > 0:
                shift = n * (width**2 / 8 + 4 * eta) + width * math.sqrt(n * math.log(1 / beta) / 2)
                low = max(low, self._at(epsilon + shift, theta, reverse)[0] * math.exp(-grown) - moved - beta)
        return max(0.0, low * (1 - _MORE)), high

    def solve(self, delta, reverse):
        """Return the epsilon of a delta in one direction."""
        top = self._top(reverse)
        infinity = self._infinity(reverse)
        if infinity >= 1 or infinity > delta:
            return 0.0 if delta >= 1 else math.inf
        if infinity == delta:
            return max(top, 0.0)
        wanted = math.log(delta - infinity)
        least = math.inf
        for theta in self._ladder(self._tilt(lambda logs, t: (logs - wanted) / t, reverse)):

            def over(epsilon, theta=theta):
                high = self._at(epsilon, theta, reverse)[1]
                return (math.log(high) if high else -1e4) - math.log(delta) + OUTWARD

            least = min(least, crossing(over, 0.0, max(top, 0.0), 1e-10))
            low, high = self._at(least, theta, reverse)
            if high - low <= _PART * high:
                break
        return least


def _alike(pairs):
    """Return lists of pairs of about equal reach, which share an array."""
    pairs = sorted(pairs, key=lambda pair: pair.reach)
    while pairs:
        n = sum(pair.reach <= 1.25 * pairs[0].reach for pair in pairs[:_BATCH])
        yield pairs[:n]
        pairs = pairs[n:]
