"""Rows become integers of public grids, and moments of them: exact sums of products, which merge.

The proof: `linear_model/linear.md`.
"""

import math
from functools import cached_property

import numpy as np

from dpestim._core import moments
from dpestim.inputs import pair_of, target_pair
from dpestim.parallel import one_thread
from dpestim.records import record
from dpestim.summaries import Summary

#: Rows have integer norms up to this, and targets are integers up to it: products of 2^14 rows add up below 2^53.
REACH = 1 << 19
#: Rows that are multiplied at a time: few enough for the cache, and for exact sums in floats.
_MOST_ROWS, _FEWEST_ROWS, _CELLS = 1 << 14, 1 << 12, 1 << 17
#: Columns whose products a kernel adds faster than BLAS.
_FEW = 64
#: Rows whose sums 64 bits hold.
_CHUNK = 1 << 24


@record
class RowMap:
    """How rows become integers: each column centred and scaled by public numbers, the row cut to a norm; and back.

    ``low`` is empty where columns have no bounds. A column of width 0 is constant: its integers are 0.
    """

    low: tuple
    high: tuple
    norm: float | None
    target: tuple
    fit_intercept: bool
    n_columns: int

    @cached_property
    def centers(self):
        """What is subtracted from each column."""
        if not self.low or not self.fit_intercept:
            return np.zeros(self.n_columns)
        low, high = np.array(self.low), np.array(self.high)
        # (of a constant: so that 0 times it is 0)
        return np.where((high > low) & ~self._indicators, low / 2 + high / 2, 0.0)

    @cached_property
    def _indicators(self):
        """Which columns stay as they are: those of bounds 0 and 1 where a norm is declared.

        Mapped to -1 and 1 a row of one-hot columns would be as long as any row can be, and the norm cut all of them.
        """
        return (np.array(self.low) == 0) & (np.array(self.high) == 1) & (self.norm is not None)

    @cached_property
    def scales(self):
        """What each column is divided by, so that it lies in [-1, 1]; 0 where it is constant."""
        if not self.low:
            return np.ones(self.n_columns)
        low, high = np.array(self.low), np.array(self.high)
        wide = np.maximum(np.abs(low), np.abs(high))
        if self.fit_intercept:
            wide = np.where(self._indicators, 1.0, high / 2 - low / 2)
        return np.where(high > low, wide, 0.0) if self.fit_intercept else wide

    @cached_property
    def ends(self):
        """The declared bounds of columns, an array (2, n_columns)."""
        return np.array([self.low, self.high])

    @cached_property
    def target_center(self):
        """What is subtracted from the target."""
        return self.target_middle if self.fit_intercept else 0.0

    @cached_property
    def middle(self):
        """What stands for a missing row, within the bounds."""
        return np.array(self.low) / 2 + np.array(self.high) / 2 if self.low else np.zeros(self.n_columns)

    @property
    def target_middle(self):
        """What stands for a missing target."""
        return self.target[0] / 2 + self.target[1] / 2

    @cached_property
    def target_scale(self):
        """What the target is divided by, so that it lies in [-1, 1]."""
        return self.target[1] / 2 - self.target[0] / 2 if self.fit_intercept else max(map(abs, self.target))

    @property
    def cuts(self):
        """Whether rows are cut to a norm: bounds alone give them one of sqrt(n_columns)."""
        return not self.low or (self.norm is not None and self.norm < math.sqrt(self.n_columns))

    @cached_property
    def most(self):
        """The largest integer of a column, without a norm: so many squares of it add up to at most REACH^2."""
        return math.isqrt(REACH * REACH // self.n_columns)

    @cached_property
    def unit(self):
        """Integers a unit of a scaled column."""
        # (rounding moves a row by at most sqrt(n_columns) / 2, so that its integer norm is at most REACH)
        return (REACH - math.isqrt(self.n_columns) - 2) / self.norm if self.cuts else float(self.most)

    def factors(self):
        """Return integers a unit of each column of X; 0 where it is constant."""
        return np.divide(self.unit, self.scales, out=np.zeros(self.n_columns), where=self.scales > 0)

    def write(self, X, y, out):
        """Write rows (x, 1, y), finite numbers, as integers to a block of floats; y of None is 0."""
        rows, n = out[:, : self.n_columns], self.n_columns
        with np.errstate(all="ignore"):
            if self.cuts:
                np.multiply(self.cut(X), self.unit, out=rows)
                np.rint(rows, out=rows)
                rows[~(np.square(rows).sum(axis=1) <= REACH * REACH)] = 0.0  # exact; no row is as long, and NaN
            else:  # (the kernel clips to as far from the center as the farther bound is: the other may be nearer)
                even = self.fit_intercept or np.array_equal(self.high, np.negative(self.low))
                X = X if even else np.clip(X, self.low, self.high)
                moments.round_rows(X, self.centers, self.factors(), self.most, out)
            out[:, n] = 1.0
            target = out[:, n + 1]
            if y is None:
                target[:] = 0.0
                return
            y = y if self.fit_intercept else np.clip(y, *self.target)
            np.multiply(y - self.target_center, REACH / self.target_scale, out=target)
            np.rint(target, out=target)
            np.clip(target, -REACH, REACH, out=target)

    def cut(self, X):
        """Return scaled rows, cut to the norm."""
        scaled = X
        if self.low:
            scaled = np.clip(X, self.low, self.high) - self.centers
            scaled *= np.divide(1.0, self.scales, out=np.zeros(self.n_columns), where=self.scales > 0)
        length = np.sqrt(np.square(scaled).sum(axis=1))  # (each row by itself, whatever the others are)
        far = length == np.inf  # its square is no float
        if far.any():
            scaled = np.array(scaled)
            scaled[far] /= np.abs(scaled[far]).max(axis=1, keepdims=True)
            scaled[far] *= 2 * self.norm
            length[far] = np.sqrt(np.square(scaled[far]).sum(axis=1))
        over = length > self.norm
        return scaled * np.where(over, self.norm / np.where(over, length, 1.0), 1.0)[:, None]

    def clipped(self, X):
        """Return rows in units of X as `fit` sees them, but for the grid; NaN is the middle."""
        with np.errstate(all="ignore"):
            good = np.isfinite(X)
            X = X if good.all() else np.where(good.all(axis=1, keepdims=True), X, self.middle)
            if self.cuts:
                middles = np.where(self.scales > 0, self.centers, self.low) if self.low else self.centers
                return self.cut(X) * np.where(self.scales > 0, self.scales, 1.0) + middles
            return np.clip(X, self.low, self.high)


def row_map(bounds, data_norm, target_bounds, fit_intercept, n_columns):
    """Return the map of declared parameters, or raise ValueError."""
    low = high = ()
    if bounds is not None:
        low, high = (tuple(np.broadcast_to(end, n_columns).tolist()) for end in checked_box(bounds, n_columns))
    target = tuple(float(end) for end in checked_target(target_bounds))
    return RowMap(low, high, None if data_norm is None else float(data_norm), target, bool(fit_intercept), n_columns)


def checked_box(bounds, n_columns=None):
    """Return bounds of columns as arrays; a column may be constant."""
    return pair_of(bounds, n_columns, same=True)


def checked_target(target_bounds):
    """Return the bounds of the target as two floats."""
    return target_pair(target_bounds)


def summary_of(rows, X, y, identity):
    """Return the exact, secret moments of rows: sums of products of every two of (x, 1, y), the upper triangle.

    Without targets (None) those with y are 0.
    """
    size = rows.n_columns + 2
    step = min(_MOST_ROWS, max(_FEWEST_ROWS, _CELLS // size))
    few = size <= _FEW
    width = -(-size // 8) * 8 if few else size
    out, sums = np.zeros((min(step, len(X)), width)), np.zeros((width, width))
    upper = np.triu_indices(size)
    totals = [0] * len(upper[0])
    for start in range(0, len(X), _CHUNK):
        chunk = np.zeros((size, size), np.int64)
        with one_thread(size):  # (products of few rows: several threads would only wait for each other)
            for at in range(start, min(start + _CHUNK, len(X)), step):
                stop = min(at + step, len(X), start + _CHUNK)
                block = out[: stop - at]
                rows.write(X[at:stop], None if y is None else y[at:stop], block)
                # exact: integers that add up below 2^53
                if few:
                    sums[:] = 0.0
                    moments.add_products(block, sums)
                    chunk += sums[:size, :size].astype(np.int64)
                else:
                    chunk += (block.T @ block).astype(np.int64)
        totals = [a + b for a, b in zip(totals, chunk[upper].tolist())]
    return Summary(identity, len(X), totals)
