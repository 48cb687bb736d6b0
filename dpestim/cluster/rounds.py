"""Rounds of noisy sums over clusters: what each costs, and what it says (`kmeans.md`)."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpestim._core import kmeans
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.parallel import run
from dpestim.records import record

#: Steps that a row counts at most: of half a range in the first round, of the widest limit in later ones.
COARSE, FINE = 1 << 10, 1 << 12
#: What is divided among columns evenly; the rest so that noise is least where columns differ in width.
_EVEN = 0.5
#: The weight of the widest column in the first round, and the least limit in later ones.
_WIDEST, _NARROWEST = 64, 64
#: Weights of sums beside squares, by whether noise is normal: the least for which squares cost nothing more.
_SUMS = {False: 2 * COARSE, True: math.isqrt(COARSE**2 // 2) + 1}
#: What the first round gets at least and at most, and what of the rest goes to cells.
_LEAST, _MOST, _CELLS = Fraction(1, 10), Fraction(3, 4), Fraction(1, 6)
#: By whether noise is normal: (a, b) where the first round gets (error / a)^b, for the error in half ranges that means
#: would have if it got all. In between as much as makes that error small, and the same part whatever it is: in data of
#: few rows the former left nothing for steps, and the latter too little for means of many columns.
_FIRST = {False: (0.3, 0.5), True: (0.2, 1.0)}
#: Noise of a step beside its reach from which on fewer steps, with less noise each, were better.
_BLURRED = 0.3


def root_above(square):
    """Return a Fraction of at least the square root of a Fraction."""
    return Fraction(math.isqrt(math.ceil(square * (1 << 80))) + 1, 1 << 40)


@record
class Budget:
    """A budget and the kind of noise that it buys; a share of it is what one round may spend."""

    epsilon: Fraction
    delta: Fraction
    normal: bool

    def law(self, share, l1, l2_squared):
        """Return the noise of a round with this share for sums that move by (l1, sqrt(l2_squared)) at most."""
        if self.normal:
            from dpestim.central.additive.gaussian import RoundedGaussianLaw  # (pure fits need it not)

            return RoundedGaussianLaw(self.epsilon, self.delta, root_above(Fraction(l2_squared) / share), 0)
        return DiscreteLaplaceLaw(self.epsilon * share, Fraction(0), Fraction(l1), 0)


def column_weights(widths, normal):
    """Return a weight from 0 to 1 for each column, the largest 1, with which noise is small beside all widths together.

    Sums of column j get noise in proportion to width_j / weight_j. Weights w cost sum w (or sum w^2, where noise is
    normal), and the squares of noise add up to least for width^(2/3) (or width^(1/2)). Half of what they cost is the
    same for all, so that no column has more than twice the variance of normal noise (4 times of the other) that it
    would have had.
    """
    widths, power = np.asarray(widths, float), 0.5 if normal else 1.0
    best = widths ** (1.0 if normal else 2 / 3)
    weights = (_EVEN / len(best) + (1 - _EVEN) * best / best.sum()) ** power
    return weights / weights.max()


def moment_change(columns, weight, replaces=True):
    """Return (l1, l2_squared) of weighted sums, and of squares, times the weights of columns: `kmeans.md`, round 1."""
    if not replaces:  # (and of the number of rows, which weighs as much as the sum of the widest column)
        l2_squared = sum(v * v for v in columns) * (weight**2 + COARSE**2) + (_WIDEST * weight) ** 2
        return (sum(columns) * (weight + COARSE) + _WIDEST * weight) * COARSE, l2_squared * COARSE**2
    both = 2 * weight * COARSE if weight >= 2 * COARSE else (weight + 2 * COARSE) ** 2 // 4
    return sum(columns) * both, sum(v * v for v in columns) * 4 * weight**2 * COARSE**2


def step_change(limits, weight, replaces=True):
    """Return (l1, l2_squared) of weighted counts, and of sums within limits, of clusters: `kmeans.md`, round 3."""
    squares = sum(q * q for q in limits)
    if not replaces:
        return weight + sum(limits), weight * weight + squares
    return 2 * (weight + sum(limits)), max(2 * (weight * weight + squares), 4 * squares)


def count_weight(limits, normal):
    """Return the weight of counts beside sums within limits: set by hand, less than that of all sums together."""
    weight = math.sqrt(sum(q * q for q in limits)) / 2 if normal else sum(limits) / (1.5 * math.sqrt(len(limits)))
    return max(1, round(weight))


@record
class Plan:
    """All that is decided before anything is charged, from public numbers; ValueError where noise fits no integers."""

    budget: Budget
    n_rows: int | None  # (None: rows come and go, and nobody may know)
    columns: tuple  # (weights in the first round, integers)
    n_steps: int
    moments: object  # (the law of the first round)
    cells: object
    step_share: Fraction
    weight: int  # of sums in the first round

    @classmethod
    def of(cls, epsilon, delta, n_rows, widths, n_steps, k):
        """Return the plan for (epsilon, delta), at most n_steps, k centers, and columns of these widths in any unit."""
        plans, widths = [], np.asarray(widths, float) / max(widths)
        for normal in (False, True) if delta else (False,):
            try:
                plans.append(cls._of(Budget(epsilon, delta, normal), n_rows, widths, n_steps))
            except ValueError:
                if not delta:
                    raise
        if not plans:
            raise ValueError("epsilon and delta are too small, because the noise would exceed 64-bit integers: take a "
                             "larger epsilon or delta")
        plan = min(plans, key=lambda plan: plan.blur(widths, k))
        if n_rows is None:
            return plan
        worth = n_steps * (_BLURRED / plan.blur(widths, k)) ** (2 if plan.budget.normal else 1)
        left = max(1, int(min(worth, n_steps)))
        return replace(plan, n_steps=left, step_share=plan.step_share * n_steps / left)

    @classmethod
    def _of(cls, budget, n_rows, widths, n_steps):
        weight = _SUMS[budget.normal]
        replaces, first = n_rows is not None, _LEAST
        columns = tuple(max(1, round(v)) for v in (_WIDEST * column_weights(widths, budget.normal)).tolist())
        change, of_cell = moment_change(columns, weight, replaces), 1 + replaces
        if replaces:  # (else nobody may know how many rows there are; twice the least was no better)
            apart = math.sqrt(np.square(widths / columns).sum() / np.square(widths).sum())
            noise = math.sqrt(budget.law(Fraction(1), *change).variance_steps)
            whole = apart * noise / (weight * COARSE * max(1, n_rows))
            scale, power = _FIRST[budget.normal]
            first = min(max(Fraction(min((whole / scale) ** power, 1.0)), _LEAST), _MOST)
        cells = (1 - first) * _CELLS
        step = (1 - first - cells) / n_steps
        plan = cls(budget, n_rows, columns, n_steps, budget.law(first, *change), budget.law(cells, of_cell, of_cell),
                   step, weight)
        plan.of_steps([FINE] * plan.d)  # (may fail; others have less noise)
        return plan

    @property
    def d(self):
        """The number of columns."""
        return len(self.columns)

    def blur(self, widths, k):
        """Return the noise of a step, in parts of how far it reaches, of one of k centers with the same rows each."""
        limits = self.limits(widths)
        law, _ = self.of_steps(limits)
        off = np.square(widths / limits).sum() / np.square(widths).sum()
        return math.sqrt(law.variance_steps * off) * k / max(1, self.n_rows or 1)

    def limits(self, reach):
        """Return the steps that a row counts at most in each column, where steps are within reach."""
        limits = FINE * column_weights(reach, self.budget.normal)
        return np.maximum(np.rint(limits), _NARROWEST).astype(int).tolist()

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
        """Return noisy (means, squares of columns in half ranges, variances of the noise of both)."""
        d, row, columns = plan.d, plan.weight * COARSE, np.array(plan.columns)
        sums, squares = self._sums(self._blocks, self._n, np.zeros((1, d)), COARSE / self.half, [COARSE] * d)
        asked = [sums[0, 1:] * plan.weight * columns, squares * columns]
        noisy = self._noisy(plan.moments, np.concatenate(
            [*asked, *([] if self._replaces else [sums[:, 0] * (_WIDEST * row)])]))
        if not self._replaces:
            self.known = max(1.0, noisy[-1] / (_WIDEST * row), math.sqrt(plan.moments.variance_steps) / (_WIDEST * row))
        unit = max(1, self.known) * np.concatenate([float(row) * columns, float(COARSE**2) * columns])
        noisy, variance = noisy[: 2 * d] / unit, plan.moments.variance_steps / unit**2
        return noisy[:d], noisy[d:], variance[:d], variance[d:]

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

        Each column has a scale of its own, so that noise grows with its reach: with one for all, of columns that are
        narrow beside others nothing would be left.
        """
        limits = plan.limits(reach)
        scale = limits / np.maximum(reach, 1e-12)
        law, weight = plan.of_steps(limits)
        sums, _ = self._sums(self._blocks, self._n, centers, scale, limits)
        sums[:, 0] *= weight
        noisy = self._noisy(law, sums).reshape(sums.shape)
        deviation = math.sqrt(law.variance_steps)
        return noisy[:, 0] / weight, noisy[:, 1:] / scale, deviation / weight, deviation / scale
