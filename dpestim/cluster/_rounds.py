"""Rounds of noisy sums over clusters: what each costs, and what it says (`_kmeans.md`)."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpestim._core import kmeans
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.additive.gaussian import RoundedGaussianLaw
from dpestim.parallel import run

#: Steps that a row counts at most: of half a range in the first round, of the widest limit in later ones.
COARSE, FINE = 1 << 10, 1 << 12
#: Weights of sums beside squares, by whether noise is normal: the least for which squares cost nothing more.
_SUMS = {False: 2 * COARSE, True: math.isqrt(COARSE**2 // 2) + 1}
#: What the first round gets at least and at most, what of the rest goes to cells, and the error of means in half ranges
#: that is enough: half as much was no better.
_LEAST, _MOST, _CELLS, _ENOUGH = Fraction(1, 10), Fraction(3, 4), Fraction(1, 6), 0.08


def root_above(square):
    """Return a Fraction of at least the square root of a Fraction."""
    return Fraction(math.isqrt(math.ceil(square * (1 << 80))) + 1, 1 << 40)


@dataclass(frozen=True)
class Budget:
    """A budget and the kind of noise that it buys; a share of it is what one round may spend."""

    epsilon: Fraction
    delta: Fraction
    normal: bool

    def law(self, share, l1, l2_squared):
        """Return the noise of a round with this share for sums that move by (l1, sqrt(l2_squared)) at most."""
        if self.normal:
            return RoundedGaussianLaw(self.epsilon, self.delta, root_above(Fraction(l2_squared) / share), 0)
        return DiscreteLaplaceLaw(self.epsilon * share, Fraction(0), Fraction(l1), 0)


def moment_change(d, weight, replaces=True):
    """Return (l1, l2_squared) of weighted sums, and of squares, of d columns: `_kmeans.md`, round 1."""
    if not replaces:  # (and of the number of rows, which weighs as much as the sum of a column)
        return d * (weight + COARSE) * COARSE + weight * COARSE, ((d + 1) * weight**2 + d * COARSE**2) * COARSE**2
    both = 2 * weight * COARSE if weight >= 2 * COARSE else (weight + 2 * COARSE) ** 2 // 4
    return d * both, d * 4 * weight**2 * COARSE**2


def step_change(limits, weight, replaces=True):
    """Return (l1, l2_squared) of weighted counts, and of sums within limits, of clusters: `_kmeans.md`, round 3."""
    squares = sum(q * q for q in limits)
    if not replaces:
        return weight + sum(limits), weight * weight + squares
    return 2 * (weight + sum(limits)), max(2 * (weight * weight + squares), 4 * squares)


def count_weight(limits, normal):
    """Return the weight of counts beside sums within limits: set by hand, less than that of all sums together."""
    weight = math.sqrt(sum(q * q for q in limits)) / 2 if normal else sum(limits) / (1.5 * math.sqrt(len(limits)))
    return max(1, round(weight))


@dataclass(frozen=True)
class Plan:
    """All that is decided before anything is charged, from public numbers; ValueError where noise fits no integers."""

    budget: Budget
    n_rows: int | None  # (None: rows come and go, and nobody may know)
    d: int
    n_steps: int
    moments: object  # (the law of the first round)
    cells: object
    step_share: Fraction
    weight: int  # of sums in the first round

    @classmethod
    def of(cls, epsilon, delta, n_rows, d, n_steps):
        """Return the plan for (epsilon, delta)."""
        plans = []
        for normal in (False, True) if delta else (False,):
            try:
                plans.append(cls._of(Budget(epsilon, delta, normal), n_rows, d, n_steps))
            except ValueError:
                if not delta:
                    raise
        if not plans:
            raise ValueError("epsilon and delta are too small: the noise would exceed what integers hold")
        return min(plans, key=lambda plan: plan.widest.variance_steps)

    @classmethod
    def _of(cls, budget, n_rows, d, n_steps):
        weight = _SUMS[budget.normal]
        replaces, first = n_rows is not None, _LEAST
        change, of_cell = moment_change(d, weight, replaces), 1 + replaces
        if replaces:  # (else nobody may know how many rows there are; twice the least was no better)
            whole = math.sqrt(budget.law(Fraction(1), *change).variance_steps) / (weight * COARSE * max(1, n_rows))
            first = min(max(Fraction(min(whole / _ENOUGH, 1.0) ** (2 if budget.normal else 1)), _LEAST), _MOST)
        cells = (1 - first) * _CELLS
        step = (1 - first - cells) / n_steps
        plan = cls(budget, n_rows, d, n_steps, budget.law(first, *change), budget.law(cells, of_cell, of_cell), step,
                   weight)
        _ = plan.widest  # (may fail; others have less noise)
        return plan

    @property
    def widest(self):
        """The noise of a round of steps with the widest limits."""
        return self.of_steps([FINE] * self.d)[0]

    def of_steps(self, limits):
        """Return (the noise of a round of steps within these limits, the weight of counts)."""
        weight = count_weight(limits, self.budget.normal)
        change = step_change(limits, weight, self.n_rows is not None)
        return self.budget.law(self.step_share, *change), weight


class Rows:
    """Packed rows, which are secret, that answer with noisy sums; columns are in parts of the widest half range.

    ``known`` is how many there are: a public number, or a noisy one after the first round, and None before.
    """

    def __init__(self, rows, low, high, answers, n_jobs, replaces=True):
        half = (high - low) / 2
        self.unit, self.middle = half.max(), low + half
        self.half = np.maximum(half / self.unit, 2.0**-20)
        self._n, self._answers, self._n_jobs, self._replaces = len(rows), answers, n_jobs, replaces
        self.known = self._n if replaces else None
        self._blocks = np.empty((-(-self._n // kmeans.LANES), len(low), kmeans.LANES), np.float32)

        def pack(first, last):
            kmeans.pack(rows, low, high, self.middle, 1 / self.unit, first, last, self._blocks)

        run(pack, len(self._blocks), n_jobs, pieces=4)

    def _sums(self, blocks, n, centers, scales, limits):
        """Return exact (sums, squares) of n rows; integers, so that nothing depends on the number of threads."""
        centers = np.ascontiguousarray(centers, np.float32)
        scales, limits = np.asarray(scales, np.float32), np.asarray(limits, np.int32)

        def work(first, last):
            sums = np.zeros((len(centers), 1 + len(scales)), np.int64)
            squares = np.zeros(len(scales), np.int64)
            m = min(n, last * kmeans.LANES) - first * kmeans.LANES
            kmeans.tally(blocks[first:last], m, centers, scales, limits, sums, squares)
            return sums, squares

        if not n:
            return work(0, 0)
        return tuple(sum(parts) for parts in zip(*run(work, len(blocks), self._n_jobs, pieces=4)))

    def _noisy(self, law, codes):
        """Return integers with the noise of the next round, in one row."""
        return self._answers.add(law, np.ravel(codes)).astype(float)

    def moments(self, plan):
        """Return noisy (means, variances of columns in half ranges, variances of the noise of both)."""
        d, row = plan.d, plan.weight * COARSE
        sums, squares = self._sums(self._blocks, self._n, np.zeros((1, d)), COARSE / self.half, [COARSE] * d)
        asked = [sums[0, 1:] * plan.weight, squares, *([] if self._replaces else [sums[:, 0] * row])]
        noisy = self._noisy(plan.moments, np.concatenate(asked))
        if not self._replaces:
            self.known = max(1.0, noisy[-1] / row, math.sqrt(plan.moments.variance_steps) / row)
        unit = max(1, self.known) * np.repeat([float(row), COARSE**2], d)
        noisy, variance = noisy[: 2 * d] / unit, plan.moments.variance_steps / unit[[0, d]] ** 2
        return noisy[:d], noisy[d:], *variance

    def sample(self):
        """Return (blocks, how many rows they have as far as is known) for cells: all rows, or some 131,072.

        These are at equal distances, which follow from the number of rows: so it must be public.
        """
        every = len(self._blocks) >> 10
        if every < 2 or not self._replaces:
            return self._blocks, self.known
        some = np.ascontiguousarray(self._blocks[: self._n // kmeans.LANES : every])
        return some, len(some) * kmeans.LANES

    def cells(self, plan, points):
        """Return noisy counts of the sample in the cells of public points."""
        blocks, known = self.sample()
        d, n = plan.d, known if self._replaces else self._n
        sums, _ = self._sums(blocks, n, points, np.ones(d), np.zeros(d))
        return self._noisy(plan.cells, sums[:, 0])

    def steps(self, plan, centers, reach):
        """Return noisy (counts, sums of steps from centers, deviation of the noise in each), steps within reach.

        Each column has a scale of its own, so that noise is in proportion to its reach: with one for all, of columns
        that are narrow beside others nothing would be left.
        """
        scale, limits = FINE / np.maximum(reach, 1e-12), [FINE] * plan.d
        law, weight = plan.of_steps(limits)
        sums, _ = self._sums(self._blocks, self._n, centers, scale, limits)
        sums[:, 0] *= weight
        noisy = self._noisy(law, sums).reshape(sums.shape)
        deviation = math.sqrt(law.variance_steps)
        return noisy[:, 0] / weight, noisy[:, 1:] / scale, deviation / weight, deviation / scale
