"""Statistics that are functions of sums: count, sum, mean (`sums.md`)."""

import math
from functools import lru_cache, partial

import numpy as np

from dpestim.statistics.base import DELTA, USERS, DPStatistic
from dpestim.statistics.calibrated_noise import equal_shares
from dpestim.statistics.plan import Noisy, Plan
from dpestim.statistics.result import joint_nodes, nodes, ratio_range, shaped, spread
from dpestim.statistics.summary import BLOCK, blocks, read_rows, refuse_missing
from dpestim.summaries import Summary

#: Floats in results are off by less than this part of the largest number that they are made from.
FLOAT_SLACK = 1e-13
_CONDITION = "To count rows write a condition, such as x > 0 or x == 'yes'; n_rows counts all rows."


class SumStatistic(DPStatistic):
    """A vector of integers with noise, of which value and intervals are functions."""

    _adds_up = True

    def _plan(self, summary, epsilon):
        numbers, changes = self._numbers(summary)
        weights, l1, l2_squared = equal_shares(changes)
        most = self._rows()
        noise = self._noise_for(epsilon, self._budget()[1], l1 * most, l2_squared * most * most, len(numbers),
                                self._parts)
        weighted = [weight * number for weight, number in zip(weights, numbers)]
        scale = np.array(weights, float)
        one, grids = summary.one, summary.domain
        public = summary.n_rows if self._replaces else None

        def finish(outcomes):
            noisy = outcomes[0] / scale
            value, error = self._finish(noisy, math.sqrt(noise.variance) / scale, grids, public)
            ends = partial(_ends, type(self), noise, tuple(weights), noisy, grids, public, one)
            return shaped(value, one), None if error is None else shaped(error, one), ends

        return Plan((Noisy(noise, weighted),), finish)

    def _summarized(self, X, users):
        own = type(self)._sums is not SumStatistic._sums or type(self)._read is not DPStatistic._read
        if own or users is not None or self.max_rows_per_user is not None or not self._bounded:
            return super()._summarized(X, users)  # (a subclass that reads or sums in its own way is asked for both)
        # one pass: what is summed says whether rows are finite
        strict = self._is_strict()
        rows, one = read_rows(X, strict, unread=True)
        identity = self._identity(rows.shape[1], one)
        sums = column_sums(rows, identity[-1], self._pairs(rows.shape[1]), finite=not strict)
        if sums is None:
            refuse_missing(rows, X, one)
            # (what no float64 holds, as long doubles may be, is finite all the same, and is clipped)
            sums = column_sums(rows, identity[-1], self._pairs(rows.shape[1]))
        return Summary(identity, len(rows), [*sums[0], *sums[1]])

    @staticmethod
    def _pairs(d):
        """Return the pairs of d columns whose products are summed, too."""
        return []

    def _sums(self, rows, grids):
        sums, products = column_sums(rows, grids, self._pairs(len(grids)))
        return [*sums, *products]

    def _numbers(self, summary):
        """Return exact integers, and by how much a record can change each (all of them at once)."""
        raise TypeError(f"{type(self).__name__} does not say what it adds noise to: implement `_numbers`")

    @staticmethod
    def _finish(noisy, errors, grids, n):
        """Return value and standard error; n is the public number of rows, or None."""
        raise TypeError("a statistic must say what its value is")

    #: How many of the noisy numbers an interval depends on at most, by whether n is public.
    _involved = {True: 1, False: 1}

    @staticmethod
    def _range(noisy, widths, grids, n):
        """Return (low, high) where no noisy number is further than its width from the exact one."""
        raise TypeError("a statistic must say what its intervals are")


def _ends(kind, noise, weights, noisy, grids, n, one, level):
    involved = kind._involved[n is not None]
    width = noise.half_width(1 - (1 - level) / involved)
    low, high = kind._range(noisy, width / np.array(weights, float), grids, n)
    return shaped(low, one), shaped(high, one)


def column_sums(rows, grids, squares=(), finite=False):
    """Return sums of integers and of the products of pairs of columns, as ints of any size.

    With `finite` return None where a value is not finite.
    """
    sums, products = [0] * len(grids), [0] * len(squares)
    alone = all(i == j for i, j in squares)
    whole = rows.dtype == np.float64 and rows.T.flags.c_contiguous
    for block in [rows.T] if whole and alone else blocks(rows):
        found = [grid.sums(column, alone and len(squares) > 0, finite) for grid, column in zip(grids, block)]
        if None in found:
            return None
        sums = [total + own for total, (own, _) in zip(sums, found)]
        if alone:
            products = [total + found[j][1] for total, (j, _) in zip(products, squares)]
            continue
        points = [grid.points(column) for grid, column in zip(grids, block)]
        for k, (i, j) in enumerate(squares):
            products[k] += int(points[i] @ points[j])
    return sums, products


def class_sums(rows, codes, n_classes, grids, squares=False):
    """Return (rows, sums, sums of squares) of each class: exact, arrays of ints of any size; a code below 0 is none."""
    d = len(grids)
    out = [np.zeros((n_classes, size), object) for size in (1, d, d)]
    places = np.arange(n_classes)[:, None]
    for k, block in enumerate(blocks(rows)):
        points = np.array([grid.points(column) for column, grid in zip(block, grids)], np.float64)
        member = (codes[k * BLOCK : (k + 1) * BLOCK] == places).astype(np.float64)
        # (floats of integers that add up below 2^53, whatever the order: squares of 2^14 points of the finest grid do)
        parts = [member.sum(axis=1, keepdims=True), member @ points.T]
        parts += [member @ np.square(points).T] if squares else []
        for total, part in zip(out, parts):
            total += part.astype(np.int64).astype(object)
    return out[0][:, 0], out[1], out[2]


class Count(SumStatistic):
    """Release the noisy number of rows that are true.

    Rows are booleans, or 0 and 1; `n_rows` counts all rows.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours; (epsilon, delta) with a delta. A record
    changes each column's count by 1 at most. The curator, who holds the data, must be trusted.

    **Utility.** Unbiased; the noise has variance below 2 (d / epsilon)^2 for d columns.

    **Complexity.** O(n) time, O(d) memory.

    {parameters}
    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data analysis", TCC,
    proposition 1. The proof: ``sums.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.statistics import Count
    >>> Count(1.0, random_state=1).fit(np.arange(1000) < 300).value_
    300
    """

    _bounded = False
    _more_parameters = "\n" + DELTA + USERS + "    "
    _about = "the number of rows that are true"

    def __init__(self, epsilon=1.0, *, delta=None, neighbours=None, max_rows_per_user=None,
                 row_choice="first", ledger=None, random_state=None):
        super().__init__(epsilon, delta=delta, neighbours=neighbours, max_rows_per_user=max_rows_per_user,
                         row_choice=row_choice, ledger=ledger, random_state=random_state)
        del self.bounds, self.bounds_fraction

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 0.1, "neighbours": "add_remove"}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of which some are true."""
        return (super()._test_data(n_rows, seed)[0] > 0).astype(float), None

    def _read(self, X, users):
        strict = self._is_strict()
        try:
            rows, one = read_rows(X, strict)
        except ValueError as error:  # (its text is ours, and shows no value)
            raise ValueError(f"{error}\n{_CONDITION}") from None
        if not strict and not ((rows == 0) | (rows == 1)).all():
            raise ValueError("X must hold booleans, or 0 and 1. " + _CONDITION)
        return self._kept(rows, users, len(rows)), one

    def _sums(self, rows, grids):
        with np.errstate(all="ignore"):
            return [int(np.count_nonzero((rows[:, j] != 0) & (rows[:, j] == rows[:, j]))) for j in range(rows.shape[1])]

    def _numbers(self, summary):
        return summary.totals, [1] * len(summary.totals)

    @staticmethod
    def _finish(noisy, errors, grids, n):
        return np.rint(noisy).astype(np.int64), errors

    @staticmethod
    def _range(noisy, widths, grids, n):
        return np.ceil(noisy - widths - FLOAT_SLACK), np.floor(noisy + widths + FLOAT_SLACK)


class Sum(SumStatistic):
    """Release the noisy sum of each column, clipped to bounds.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours; (epsilon, delta) with a delta. Rows are
    clipped, rounded to a public grid and added as integers, so that the sensitivity is exact: high - low for a record
    replaced, max(abs(low), abs(high)) for one more or less. The curator, who holds the data, must be trusted.

    **Utility.** Unbiased for the sum of the clipped rows. For d columns the noise of each has variance of about
    2 (d sensitivity / epsilon)^2; d is the price of sharing epsilon (its root, with a delta).

    **Complexity.** O(n d) time, O(d) memory.

    {parameters}
    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data analysis", TCC,
    proposition 1. Casacuberta, Shoemate, Vadhan, Wagaman (2022), "Widespread underestimation of sensitivity in
    differentially private libraries and how to fix it", CCS, for why integers. The proof: ``sums.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.statistics import Sum
    >>> result = Sum(1.0, bounds=(0, 100), random_state=0).fit(np.arange(1000) % 101).result_
    >>> low, high = result.interval(0.999)
    >>> bool(low < (np.arange(1000) % 101).sum() < high)
    True
    """

    _about = ("the sum of the rows, clipped to the bounds (for one record more or less: and rounded to the grid, a "
              "2^19th of the bounds, or finer)")

    def _numbers(self, summary):
        grids = summary.domain
        if self._replaces:
            return summary.totals, [grid.span for grid in grids]
        return ([total + summary.n_rows * grid.center for total, grid in zip(summary.totals, grids)],
                [max(abs(grid.first), abs(grid.last)) for grid in grids])

    @staticmethod
    def _finish(noisy, errors, grids, n):
        step = _facts_of(tuple(grids))[0]
        known = 0 if n is None else np.array([n * grid.center * grid.step for grid in grids])
        return noisy * step + known, errors * step

    @staticmethod
    def _range(noisy, widths, grids, n):
        value, width = Sum._finish(noisy, widths, grids, n)
        # (each row is up to half a step from its point; how many there are is known if records are replaced)
        rounded = FLOAT_SLACK + (0 if n is None else n / 2)
        width = width + FLOAT_SLACK * np.abs(value) + rounded * np.array([grid.step for grid in grids])
        return value - width, value + width


class Mean(SumStatistic):
    """Release the noisy mean of each column, clipped to bounds.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours; (epsilon, delta) with a delta. For a
    record replaced the number of rows is public, and the sum changes by high - low at most. For one more or less it is
    secret: the centred sums and the number of rows get noise, equal shares of epsilon each. The curator, who holds the
    data, must be trusted.

    **Utility.** For replaced records unbiased for the mean of the clipped rows, with noise of variance of about
    2 (d (high - low) / (n epsilon))^2 for d columns. Else it is a ratio, biased by less than a standard error where n
    epsilon is large. The value is clipped to the bounds; of no rows it is their middle.

    **Complexity.** O(n d) time, O(d) memory.

    {parameters}
    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data analysis", TCC,
    proposition 1. The proof: ``sums.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.statistics import Mean
    >>> heights = np.random.default_rng(0).normal(1.7, 0.1, 10_000)
    >>> mean = Mean(1.0, bounds=(1.2, 2.2), random_state=1).fit(heights)
    >>> print(f"{mean.value_:.2f} {mean.result_.standard_error:.5f}")
    1.70 0.00014
    """

    _about = "the mean of the rows, clipped to the bounds"
    _involved = {True: 1, False: 2}

    @classmethod
    def _test_params(cls):
        # (so many columns that the noise is normal)
        return [*super()._test_params(), {"epsilon": 1.0, "bounds": ([-3.0] * 4, [5.0] * 4), "delta": 0.1}]

    def _numbers(self, summary):
        grids = summary.domain
        if self._replaces:
            return summary.totals, [grid.span for grid in grids]
        return [summary.n_rows, *summary.totals], [1, *(grid.reach for grid in grids)]

    @staticmethod
    def _finish(noisy, errors, grids, n):
        step, center, *limits, least, most = _facts_of(tuple(grids))
        if n is None:
            count = max(1.0, noisy[0])
            joint = joint_nodes()
            ratio, again = noisy[1:] / count, np.maximum(1.0, count + errors[0] * joint[0])
            reach = count * np.array([grid.reach for grid in grids], float)  # (what so many rows can add up to)
            samples = (np.clip(noisy[1:], -reach, reach)[:, None] + errors[1:, None] * joint[1]) / again
        else:
            ratio = noisy / max(1, n)
            samples = _within(ratio, least, most)[:, None] + errors[:, None] / max(1, n) * nodes()
        return _within((center + ratio) * step, *limits), spread((center[:, None] + samples) * step[:, None], limits)

    @staticmethod
    def _range(noisy, widths, grids, n):
        low, high = [], []
        for j, grid in enumerate(grids):
            at = j if n is not None else j + 1
            ends = noisy[at] - widths[at], noisy[at] + widths[at]
            count = (n, n) if n is not None else (noisy[0] - widths[0], noisy[0] + widths[0])
            least, most = ratio_range(ends, count)
            if count[0] < 1:  # perhaps there are no rows, whose mean is the middle
                least, most = min(least, 0.0), max(most, 0.0)
            # (a row is up to half a step from its point)
            slack = 0.5 + FLOAT_SLACK * (abs(grid.first) + abs(grid.last))
            low.append((grid.center + least - slack) * grid.step)
            high.append((grid.center + most + slack) * grid.step)
        return _clipped(low, grids), _clipped(high, grids)


def _clipped(values, grids):
    """Return numbers clipped to the bounds."""
    return _within(values, *_facts_of(tuple(grids))[2:4])


def _within(values, low, high):
    """Return what `np.clip` does, which takes several times as long for few numbers."""
    return np.minimum(np.maximum(values, low), high)


@lru_cache(maxsize=128)
def _facts_of(grids):
    """Return (steps, centers, lows, highs, and these in steps from the centers) of grids, a tuple.

    These are arrays that nobody may change.
    """
    names = "step", "center", "low", "high"
    step, center, *limits = (np.array([getattr(grid, name) for grid in grids], float) for name in names)
    found = step, center, *limits, *(end / step - center for end in limits)
    for array in found:
        array.flags.writeable = False
    return found
