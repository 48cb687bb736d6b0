"""Statistics: dropped rows, centres and ranges of the data, forgotten factors, short intervals."""

import numpy as np

from dpestim.privacy.exact import canonical_epsilon
from dpestim.statistics import ContingencyTable, Count, Histogram, Mean, Quantile, StandardDeviation, Sum, Variance
from dpestim.statistics.plan import Plan

ONE = {"epsilon": 1.0, "bounds": (-3.0, 5.0)}
MORE = {**ONE, "neighbours": "add_remove"}
TWO = {"epsilon": 1.0, "bounds": ([0.0, -50.0], [1.0, 50.0])}


class DropsRowsOutsideTheBounds(Mean):
    """Rows outside the bounds are dropped, so that the public number of rows is that of the others."""

    def _read(self, X, users):
        rows, one = super()._read(X, users)
        if isinstance(self.bounds, str):
            return rows, one
        low, high = (np.broadcast_to(end, rows.shape[1:]) for end in self.bounds)
        return rows[((rows >= low) & (rows <= high)).all(axis=1)], one


class DropsMissingRows(Mean):
    """In strict mode rows with NaN are dropped."""

    def _kept(self, rows, users, n_rows):
        return super()._kept(rows[np.isfinite(rows).all(axis=1)], users, n_rows)

    def _read(self, X, users):
        if not self._is_strict():
            return super()._read(X, users)
        X = np.asarray(X, float)
        return super()._read(X[np.isfinite(X.reshape(len(X), -1)).all(axis=1)], users)


class ZeroIsMissing(Mean):
    """Rows of 0 are taken for missing, and dropped."""

    def _read(self, X, users):
        rows, one = super()._read(X, users)
        return rows[(rows != 0).all(axis=1)], one


class CentredByTheData(Variance):
    """Rows are centred by their exact mean before they are clipped."""

    def _read(self, X, users):
        rows, one = super()._read(X, users)
        return rows - rows.mean(axis=0) if len(rows) else rows, one


class WinsorisedByTheData(Sum):
    """Rows beyond twice the median's distance are pulled in: one row moves what others count."""

    def _read(self, X, users):
        rows, one = super()._read(X, users)
        if len(rows):
            far = 2 * np.median(np.abs(rows), axis=0)
            rows = np.clip(rows, -far, far)
        return rows, one


class ChainRuleForgotten(Mean):
    """Every column spends all of epsilon."""

    def _plan(self, summary, epsilon):
        return super()._plan(summary, epsilon * len(summary.identity[-1]))


class QuantilesAtFullEpsilon(Quantile):
    """Every quantile spends all of epsilon."""

    def _shares(self):
        share, rest = super()._shares()
        return share, rest * np.size(self.q)


class NeverClipped(Sum):
    """Rows are added as they are, and the noisy sum is clipped."""

    def _sums(self, rows, grids):
        return [round(float(rows[:, j].sum()) * grid.scale) for j, grid in enumerate(grids)]


class OneSidedQuantile(Mean):
    """Intervals by the quantile of `level` for one side, where two are left out."""

    @staticmethod
    def _range(noisy, widths, grids, n):
        return Mean._range(noisy, 0.55 * widths, grids, n)


class HalfTheWidth(Sum):
    """Intervals of half the width."""

    @staticmethod
    def _range(noisy, widths, grids, n):
        return Sum._range(noisy, widths / 2, grids, n)


class HalfTheWidthOfARoot(StandardDeviation):
    """Intervals of half the width."""

    @classmethod
    def _range(cls, noisy, widths, grids, n):
        return StandardDeviation._range(noisy, widths / 2, grids, n)


class OneErrorForAll(Sum):
    """The standard error of the first column stands for all columns."""

    def _plan(self, summary, epsilon):
        plan = super()._plan(summary, epsilon)

        def finish(outcomes):
            value, error, *rest = plan.finish(outcomes)
            return value, np.full(np.shape(error), np.ravel(error)[0]), *rest

        return Plan(plan.parts, finish)


class IntervalOfTheFirst(Sum):
    """The half width of the first column is added to all columns."""

    @staticmethod
    def _range(noisy, widths, grids, n):
        low, high = Sum._range(noisy, widths, grids, n)
        half = (high[0] - low[0]) / 2
        middle = (np.asarray(high) + np.asarray(low)) / 2
        return middle - half, middle + half


class ExactRows(Mean):
    """The exact number of rows divides, where it is private."""

    def _finish_with(self, plan, n):
        def finish(outcomes):
            noisy = np.array(outcomes[0])
            noisy[0] = n
            return plan.finish([noisy])

        return finish

    def _plan(self, summary, epsilon):
        plan = super()._plan(summary, epsilon)
        return Plan(plan.parts, self._finish_with(plan, plan.parts[0].exact()[0]))


class ReplacedAsAdded(Histogram):
    """Noise for one record more or less, where one is replaced: half of what is needed."""

    def _plan(self, summary, epsilon):
        return super()._plan(summary, 2 * epsilon)


class EmptyCellsDropped(ContingencyTable):
    """Cells in which nobody is are left out."""

    def _plan(self, summary, epsilon):
        plan = super()._plan(summary, epsilon)
        (part,) = plan.parts
        seen = np.ravel(part.exact()) > 0

        def finish(outcomes):
            return plan.finish([np.where(seen, np.ravel(outcomes[0]), 0).reshape(np.shape(outcomes[0]))])

        return Plan(plan.parts, finish)


class FewRowsRaise(Count):
    """Few rows are an error, in strict mode too."""

    def _summary_of(self, rows, one, grids=None):
        if np.sum(rows) == 0:
            raise ValueError("X must hold something")
        return super()._summary_of(rows, one, grids)


class DeduplicatedRows(Count):
    """Equal rows count once."""

    def _read(self, X, users):
        rows, one = super()._read(X, users)
        return np.unique(rows, axis=0), one


class FloatEpsilon(Sum):
    """The budget of a float that was rounded up."""

    def _shares(self):
        share, rest = super()._shares()
        return share, canonical_epsilon(float(rest) * 1.01)


class SquaresIn64Bits(Sum):
    """Sum of squares: in bounds that are far from 0 the squares of points exceed 64 bits, without an error."""

    def _sums(self, rows, grids):
        return [int(np.square(grid.points(column) + grid.center).sum()) for grid, column in zip(grids, rows.T)]

    def _numbers(self, summary):
        ends = [sorted((grid.first**2, grid.last**2)) for grid in summary.domain]
        least = [0 if grid.first <= 0 <= grid.last else end[0] for grid, end in zip(summary.domain, ends)]
        return summary.totals, [end[1] - own * self._replaces for own, end in zip(least, ends)]

    @staticmethod
    def _finish(noisy, errors, grids, n):
        unit = np.square([grid.step for grid in grids])
        return noisy * unit, errors * unit

    @staticmethod
    def _range(noisy, widths, grids, n):
        unit = np.square([grid.step for grid in grids])
        widths = widths + (0 if n is None else n / 2) * np.array([2 * grid.last + 1.0 for grid in grids])
        return (noisy - widths) * unit, (noisy + widths) * unit


SLIPS = [
    (DropsRowsOutsideTheBounds, ONE), (DropsMissingRows, ONE), (ZeroIsMissing, ONE),
    (CentredByTheData, ONE), (WinsorisedByTheData, ONE), (ChainRuleForgotten, TWO),
    (QuantilesAtFullEpsilon, {**ONE, "q": [0.25, 0.5]}), (NeverClipped, ONE), (OneSidedQuantile, ONE),
    (HalfTheWidth, ONE), (HalfTheWidth, TWO), (HalfTheWidthOfARoot, ONE), (OneErrorForAll, TWO),
    (IntervalOfTheFirst, TWO), (ExactRows, MORE),
    (ReplacedAsAdded, {"epsilon": 1.0, "bins": 4, "bounds": (-3.0, 3.0)}),
    (EmptyCellsDropped, {"epsilon": 1.0, "categories": [["a", "b"]]}), (FewRowsRaise, {"epsilon": 1.0}),
    (DeduplicatedRows, {"epsilon": 1.0}), (FloatEpsilon, ONE),
    (SquaresIn64Bits, {"epsilon": 8.0, "bounds": (0.0, 5.0)}),
]
