"""Rows near to some ranks, found without a sort of all: what a choice by rank looks at (`quantiles.md`)."""

import math
from functools import partial
from itertools import pairwise

import numpy as np

from dpestim._core import scaled
from dpestim.records import record
from dpestim.statistics.ranks import Cells, coarse, distinct, fine, ranked

#: Fewer rows are sorted at once.
_FEWEST = 1 << 15
#: Every so many rows one is looked at first, but no more than this, to guess where ranks are.
_EVERY, _MOST = 1 << 5, 1 << 14
#: Standard deviations by which a guess may be off; where it is off by more a column is sorted after all.
_SIGMAS = 4
#: Numbers of columns that stand side by side for the kernel.
_LINE = 320


def ranked_near(rows, grids, aims):
    """Return what stands for the `Ranked` rows of each column in choices between these pairs of ranks.

    Rows are contiguous finite floats. The choices are those of all rows, whatever is guessed here: cells know for which
    points they have all rows, and sort the column where they are asked for others.
    """
    n, d = rows.shape
    if n < _FEWEST:
        return ranked(rows, grids)
    sample = np.sort(rows[:: max(_EVERY, -(-n // _MOST))].T, axis=1)
    ends, share = _guessed(sample, n, aims, np.array([fine(grid).step for grid in grids]))
    if share > 1 / 5:
        return ranked(rows, grids)
    low, high = np.moveaxis(ends, -1, 0)
    times = max(1, _LINE // d)
    below = np.zeros((len(aims), times * d), np.int64)
    count, kept = np.zeros(d, np.int64), np.empty((d, max(1, 3 * n // 8)))
    scaled.gather(rows.reshape(-1), np.tile(low, times), np.tile(high, times), below,
                  np.empty(times * d, np.int64), count, kept)
    below = below.reshape(len(aims), times, d).sum(axis=1)
    out = []
    for j, grid in enumerate(grids):
        whole = partial(_whole, rows, j, grid)
        if count[j] >= kept.shape[1]:
            out.append(whole())
        else:
            out.append(NearRanked(n, kept[j, : count[j]], ends[:, j].tolist(), below[:, j].tolist(), whole))
    return out


def _whole(rows, j, grid):
    return ranked(rows[:, j : j + 1], [grid])[0]


def _guessed(sample, n, aims, steps):
    """Return (the ends of windows around ranks, (windows, columns, 2); which part of the rows they should hold).

    They are a step of the grid wider than what was found: it may be a value of many rows.
    """
    d, size = sample.shape
    ends, share = np.empty((len(aims), d, 2)), 0.0
    for own, aim in zip(ends, sorted(aims)):
        places = [min(max(rank / n, 0.0), 1.0) * size for rank in aim]
        off = [_SIGMAS * math.sqrt(place * (1 - place / size)) + 3 for place in places]
        first, last = math.floor(places[0] - off[0]), math.ceil(places[1] + off[1])
        own[:, 0] = sample[:, first] - steps if first >= 0 else -np.inf
        own[:, 1] = sample[:, last] + steps if last < size else np.inf
        share += (min(last, size) - max(first, 0)) / size
    for before, own in pairwise(ends):  # windows that meet are one, and what is left of the other holds nothing
        meet = own[:, 0] <= before[:, 1]
        own[meet, 0] = before[meet, 0]
        own[meet, 1] = np.maximum(own[meet, 1], before[meet, 1])
        before[meet] = -np.inf, -np.inf
    return ends, share


class NearRanked:
    """Rows of a column as `Ranked` has them, but for what nobody asks for: that is found where somebody does.

    Parameters
    ----------
    total : int
        How many rows there are.
    values : ndarray of float64
        Those that lie in windows.
    windows : list of (low, high)
        Ascending, and apart.
    below : list of int
        How many rows are below each window.
    whole : callable
        Returns the `Ranked` rows.
    """

    def __init__(self, total, values, windows, below, whole):
        self.total, self._values, self._windows, self._below, self._whole = total, values, windows, below, whole

    def coarse_cells(self, grid):
        """Return the cells of the coarse grid of a column."""
        return self._whole().coarse_cells(grid)

    def fine_cells(self, grid):
        """Return the cells of the fine grid of a column."""
        own = fine(grid)
        places = own.points(self._values)
        places += own.span // 2
        places, upto = distinct(places)
        ends = own.points(np.array(self._windows).reshape(-1)) + own.span // 2
        points, ranks, inside = [], [], []
        for (low, _), least, most, under in zip(self._windows, ends[::2].tolist(), ends[1::2].tolist(), self._below):
            # all rows at the points between those of its ends are known, and how many are up to that of the lower end;
            # so they are at the first and the last point, where rows are that are farther out, too
            if least == most:  # (nothing is between, as where a window was joined to the next one)
                continue
            least, most = -1 if low == -np.inf else least, most + (most == own.span)
            first, last = np.searchsorted(places, [least + 1, most])
            besides = under - int((self._values < low).sum())  # rows below that are no values
            if low > -np.inf:
                points.append([least])
                ranks.append([(int(upto[first - 1]) if first else 0) + besides])
            points.append(places[first:last])
            ranks.append(upto[first:last] + besides)
            inside.append((least or -1, most))
        if not points or not len(points[-1]) or points[-1][-1] < own.span:
            points.append([own.span])
            ranks.append([self.total])
        points, ranks = (np.concatenate(parts, dtype=np.int64) for parts in (points, ranks))
        ranks[-1] = self.total
        return NearCells(_Upto(points, ranks), grid, inside, self._whole)


@record(eq=False)
class _Upto:
    """Points, ascending, and how many rows there are up to each of them."""

    points: np.ndarray
    upto: np.ndarray


class NearCells(Cells):
    """Cells of the fine grid of which some are known: those of all rows where others are asked for."""

    def __init__(self, near, grid, inside, whole):
        own = fine(grid)
        super().__init__(near, own.first, own.last, coarse(grid).exponent - own.exponent)
        self._grid, self._inside, self._whole = grid, inside, whole

    def near(self, target, shift, gap):
        """Return those of all rows, counted as these cells are."""
        begin, end = super().near(target, shift, gap)
        if self._knows(self.points[begin], self.points[end]):
            return begin, end
        self._find_all()
        return super().near(target, shift, gap)

    def starts(self, begin=0, end=None):
        """Return the first point of each cell."""
        if end is None:
            self._find_all()
        return super().starts(begin, end)

    def scores(self, target, shift, begin=0, end=None):
        """Return the scores of cells."""
        if end is None:
            self._find_all()
        return super().scores(target, shift, begin, end)

    def score(self, point, target, shift):
        """Return that of one point."""
        if not self._knows(point, point):
            self._find_all()
        return super().score(point, target, shift)

    def _knows(self, first, last):
        return any(least < first and last < most for least, most in self._inside)

    def _find_all(self):
        if len(self._inside) != 1 or self._inside[0] != (-1, self.last - self.first + 1):
            every = self._whole().fine_cells(self._grid)
            self.points, self.upto, self._spans = every.points, every.upto, None
            self._inside = [(-1, self.last - self.first + 1)]
