"""Quantiles, and through them the smallest and largest values: choices among the points of a grid (`quantiles.md`)."""

import math
from fractions import Fraction
from functools import partial
from numbers import Real

import numpy as np

from dpestim.central.selection.exponential import ExponentialLaw
from dpestim.central.selection.weights import far_gap
from dpestim.statistics.base import SHARE, USERS, DPStatistic
from dpestim.statistics.choice import RANK, Choice
from dpestim.statistics.plan import Plan
from dpestim.statistics.ranks import coarse, fine, ranked
from dpestim.statistics.result import shaped

#: The chance that the rank of a value is off by more than rank=None allows for.
_OFF = 0.05


class Quantile(DPStatistic):
    """Release quantiles of each column by the exponential mechanism on a grid.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours: each quantile of each column is one
    choice among the points of a public grid, with its share of epsilon. A record moves the rank of a point by 1 at most
    (by max(q, 1 - q), for one more or less). The curator, who holds the data, must be trusted.

    **Utility.** With k choices in all, the rank of the value is, with probability 1 - b, within 2 k (ln(w / b) + 2.8) /
    epsilon of q n, where w is the width of the bounds over that of the place where the score is best (as far for
    replaced records as for one more or less with q = 0 or 1). So bounds a thousand times too wide cost 14 k / epsilon
    ranks and nothing else: a value is a point of a grid of 2^39 to 2^40 steps (fewer where the bounds are far from 0).
    The error bound holds for point masses, gaps and few rows, too. Whole numbers, halves and quarters that many rows
    share are found from a few rows on, multiples of 0.1 from more. Several quantiles of a column are in order. The ends
    of intervals, and values with ``rank=None``, are points of a grid of 2^15 to 2^16 steps, as their guarantee pays for
    the number of points: with bounds of (0, 1e6) these are 16 apart.

    **Complexity.** O(d n log n) time for d columns, then O(n) a quantile; O(n d) memory: 24 bytes a row while a column
    is sorted, and 16 bytes for each distinct value of a column.

    {parameters}
    References
    ----------
    Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates", STOC, algorithm 2.
    McSherry, Talwar (2007), "Mechanism design via differential privacy", FOCS, theorem 6. The proof: ``quantiles.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.statistics import Quantile
    >>> x = np.random.default_rng(0).normal(1, 1, 10_000)
    >>> result = Quantile(1.0, q=[0.25, 0.5, 0.75], bounds=(-5, 5), level=0.95, random_state=0).fit(x).result_
    >>> result.value.round(1)
    array([0.3, 1. , 1.7])
    >>> low, high = result.interval(0.95)
    >>> bool(np.all((low <= np.quantile(x, [0.25, 0.5, 0.75])) & (np.quantile(x, [0.25, 0.5, 0.75]) <= high)))
    True
    """

    @property
    def _about(self):
        aim = "" if self.rank == 0 else " and a rank inwards by the reach of the noise" if self.rank is None else (
            f" and the rank {self.rank:g} more")
        return (f"the quantile of the rows, clipped to the bounds: the smallest value that a share q={self.q} of them"
                f"{aim} does not exceed")

    _more_parameters = """
    q : float or sequence of float, default=0.5
        Between 0 and 1, rounded to multiples of 2^-30.
    bounds : (low, high), dict, Domain or "private", default=None
        Public range of the values, numbers or one for each column; they must be declared. Values outside are clipped,
        and count as the nearest of the points of a public grid. "private" finds powers of two around
        most of the rows, with `bounds_fraction` of epsilon; then `fit` is the verb.
    level : float, default=None
        If it is declared, half of epsilon is spent on two further quantiles for each quantile, which enclose the
        quantile with at least this probability: the result has intervals up to this level. None: no interval, and the
        whole epsilon for the value.
    rank : float, default=0
        Added to the target rank q n: with q=0 and rank=20 the 20th smallest value. None: what the rank of the value is
        off by with probability 0.05 at most, added for q up to 1/2 and else subtracted; it is public.
""" + USERS + SHARE + "    "

    def __init__(self, epsilon=1.0, *, q=0.5, bounds=None, level=None, rank=0, neighbours=None,
                 max_rows_per_user=None, row_choice="first", bounds_fraction=0.1, ledger=None, random_state=None):
        super().__init__(epsilon, bounds=bounds, neighbours=neighbours, max_rows_per_user=max_rows_per_user,
                         row_choice=row_choice, bounds_fraction=bounds_fraction, ledger=ledger,
                         random_state=random_state)
        del self.delta
        self.q = q
        self.level = level
        self.rank = rank

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0, "q": [0.25, 0.5], "bounds": (-3.0, 5.0), "level": 0.9},
                {"epsilon": 1.0, "q": 0, "rank": 3, "bounds": (-3.0, 5.0), "neighbours": "add_remove"}]

    def _check(self):
        super()._check()
        self._targets()
        level = self.level
        if level is not None and (isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1):
            raise ValueError("level must be None or a number between 0 and 1")

    def _targets(self):
        """Return q and the rank in units of 2^-30, exactly."""
        if isinstance(self.q, str | bytes) or np.ndim(self.q) > 1:
            raise ValueError("q must be a number between 0 and 1, or a sequence of them")
        listed = np.atleast_1d(np.asarray(self.q, object)).tolist()
        if not listed or any(isinstance(q, bool) or not isinstance(q, Real) or not 0 <= q <= 1 for q in listed):
            raise ValueError("q must be a number between 0 and 1, or a sequence of them")
        rank = 0 if self.rank is None else self.rank
        if isinstance(rank, bool) or not isinstance(rank, Real) or not abs(rank) <= 1 << 30:
            raise ValueError("rank must be None or a number from -2^30 to 2^30")
        return [round(Fraction(q) * (1 << RANK)) for q in listed], round(Fraction(rank) * (1 << RANK))

    def _axes(self, shape, keys, names):
        asked = [("q", [float(q) for q in self.q])] if np.ndim(self.q) else []
        return (*asked, *super()._axes(shape[len(asked):], keys, names))

    def _sums(self, rows, grids):
        return ranked(rows, grids)

    def _laws(self, q, epsilon):
        """Return the laws of the value and of its ends, of a choice that has this much of epsilon."""
        unit = 1 << RANK
        moved = unit if self._replaces else max(q, unit - q)
        parts = (epsilon,) if self.level is None else (epsilon / 2, epsilon / 4)
        return [ExponentialLaw(part, moved * self._rows(), -RANK, False) for part in parts]

    def near_ranks(self, n_rows, n_columns):
        """Return a pair of ranks for each q: draws of a value look at the rows between them, and hardly at others."""
        targets, rank = self._targets()
        epsilon = self._shares()[1] / (len(targets) * n_columns)
        gaps = [far_gap(self._laws(q, epsilon)[0].rate) for q in targets]
        aims = [q * n_rows + rank for q in targets]
        return [(aim - gap >> RANK, -(-aim - gap >> RANK)) for aim, gap in zip(aims, gaps)]

    def _plan(self, summary, epsilon):
        targets, rank = self._targets()
        one, grids, n = summary.one, summary.domain, summary.n_rows
        epsilon = epsilon / (len(targets) * len(grids))
        parts, find = [], fine if self.rank is not None else coarse
        laws = [(q, self._laws(q, epsilon)) for q in targets]
        for grid, own in zip(grids, summary.totals):
            few = own.coarse_cells(grid) if self.rank is None or self.level is not None else None
            cells = few if self.rank is None else own.fine_cells(grid)
            for q, (law, *ends) in laws:
                inwards = 0 if self.rank is not None else math.ceil(law.gap(few.total, _OFF)) * (
                    1 if 2 * q <= 1 << RANK else -1)
                aims = [(law, cells, 0)]
                if ends:
                    lost = (1 - float(self.level)) / 2
                    gap = math.ceil(ends[0].gap(few.total, lost) * (1 + 1e-9)) + 1
                    aims += [(ends[0], few, -gap), (ends[0], few, gap)]
                parts += [Choice(*aim, q * n + rank + inwards + shift) for *aim, shift in aims]

        def finish(outcomes):
            points = np.array(outcomes).reshape(len(grids), len(targets), -1)
            drawn = np.zeros((3, len(targets), len(grids)))
            for j, grid in enumerate(grids):
                places, own = points[j].T, find(grid)
                drawn[0, :, j] = (own.first + places[0]) * own.step
                if len(places) > 1:
                    off = (coarse(grid).step + fine(grid).step) / 2
                    drawn[1:, :, j] = (coarse(grid).first + places[1:]) * coarse(grid).step + [[-off], [off]]
                drawn[:, :, j] = np.clip(drawn[:, :, j], grid.low, grid.high)
            order = np.argsort(targets, kind="stable")
            drawn[0, order] = np.sort(drawn[0], axis=0)
            shape = (np.shape(self.q) if one else (*np.shape(self.q), len(grids)))
            value, low, high = (shaped(part.reshape(shape), not shape) for part in drawn)
            if self.level is None:
                return value, None, None
            # (ends in the wrong order have missed in any case; an interval that is wider holds what it held)
            return value, None, partial(_known, self.level, np.minimum(low, high), np.maximum(low, high))

        return Plan(tuple(parts), finish)


def _known(declared, low, high, level):
    if level > declared:
        raise ValueError("level must be at most that with which the quantile was released")
    return low, high
