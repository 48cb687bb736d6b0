"""Rows of a column as sorted points of a fine grid, which merge exactly, and as cells of points of one rank."""

from functools import lru_cache

import numpy as np

from dpestim._core import cells
from dpestim.records import record
from dpestim.statistics.summary import Grid, blocks

#: Steps of the coarse and of the fine grid, as powers of two.
COARSE, FINE = 16, 40
#: Bits of a table's index.
_HALF = 12
#: Points are below 2^50 in absolute value (`Grid`).
_LARGEST = 50
#: No rank, in the units that targets have, is as high as that.
_FAR = 1 << 61
_ZERO = np.zeros(1, np.int64)


@lru_cache(maxsize=256)
def coarse(grid):
    """Return the coarse grid of a column."""
    return Grid(grid.low, grid.high, COARSE)


@lru_cache(maxsize=256)
def fine(grid):
    """Return the fine grid of a column: coarser where the bounds are far from 0."""
    own = coarse(grid)
    reach = max(abs(own.first), abs(own.last)).bit_length() - COARSE
    return Grid(grid.low, grid.high, min(FINE, _LARGEST - reach))


@record(eq=False)
class Ranked:
    """How many rows are at each point of a fine grid: exact, secret, and added up in any order.

    Parameters
    ----------
    points : ndarray of int64
        The points that have rows, sorted, counted from the first one of the grid.
    counts : ndarray of int64
    """

    points: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, points, counts):
        """Return the counts of points that may repeat."""
        order = np.argsort(points, kind="stable")
        points, counts = points[order], counts[order]
        starts = np.flatnonzero(np.r_[True, points[1:] != points[:-1]])[: len(points)]
        return cls(points[starts], np.add.reduceat(counts, starts) if len(starts) else counts)

    def __add__(self, other):
        return self.of(np.r_[self.points, other.points], np.r_[self.counts, other.counts])

    @property
    def total(self):
        """How many rows there are."""
        return int(self.counts.sum())

    @property
    def upto(self):
        """How many rows there are up to each point."""
        return np.cumsum(self.counts)

    def fine_cells(self, grid):
        """Return the cells of the fine grid of a column, whose round points are heavier."""
        own = fine(grid)
        return Cells(self, own.first, own.last, coarse(grid).exponent - own.exponent)

    def coarse_cells(self, grid):
        """Return the cells of the coarse grid of a column, whose points are alike."""
        own, to = fine(grid), coarse(grid)
        shift = to.exponent - own.exponent
        points = (self.points + own.first + (1 << shift >> 1)) >> shift
        rounded = np.clip(points, to.first, to.last) - to.first
        return Cells(self.of(rounded, self.counts), to.first, to.last, 0)


class Cells:
    """The points of a grid in cells of one score: those that have rows, the ends, and what is between two of these.

    Cell 2 i is the point i of `points`, and cell 2 i + 1 what is between it and the next one, which may be nothing.

    Parameters
    ----------
    known : Ranked
    first, last : int
        Those of the grid, in its steps.
    levels : int
        A multiple of 2^j steps weighs 2^j below this j, and four times as much from this j on; 0: all points are alike.
    """

    def __init__(self, known, first, last, levels):
        self.first, self.last, self.levels, self._spans = first, last, levels, None
        #: what a multiple of 2^j weighs besides what it weighs as one of 2^(j - 1)
        self.more = [1, *(1 << j - 1 for j in range(1, levels + 1))]
        self.more[-1] += 3 << levels if levels else 0
        points, upto, beyond = known.points, known.upto, last - first
        if not len(points) or points[0] > 0:
            points, upto = np.append(_ZERO, points), np.append(_ZERO, upto)
        if points[-1] < beyond:
            points, upto = np.append(points, beyond), np.append(upto, upto[-1])
        self.points = points
        #: how many rows there are up to each point
        self.upto = upto

    @property
    def total(self):
        """What all points weigh together."""
        return int(np.diff(self.weight_before(np.array([0, self.last - self.first + 1])))[0])

    def starts(self, begin=0, end=None):
        """Return the first point of each cell from 2 begin to 2 end (by default all), and one beyond the last."""
        points = self.points[begin : None if end is None else end + 1]
        out = np.empty(2 * len(points), np.int64)
        out[::2] = points
        np.add(points, 1, out=out[1::2])
        return out

    def spans(self, begin, end):
        """Return (starts, weights) of all before cell 2 begin, of each cell up to 2 end, and of all behind it."""
        known = self._spans  # (looked up once: another thread may ask for other cells meanwhile)
        if known is None or known[0] != (begin, end):  # (targets of few rows look at the same cells)
            size = 2 * (end - begin + 1)
            starts, times = np.empty(size + 2, np.int64), np.empty(size + 1, np.int64)
            low, high = _tables(self.levels)
            cells.span_weights(self.points[begin : end + 1], self.first, self.last - self.first + 1, self.levels, low,
                               high, _HALF, starts, times)
            known = self._spans = (begin, end), starts, times
        return known[1:]

    def scores(self, target, shift, begin=0, end=None):
        """Return the scores of these cells: how far a target, in units of 2^-shift, is from their ranks, negated.

        No rank is too low for the first point, or too high for the last.
        """
        most = len(self.points) - 1
        end = most if end is None else end
        under = min((int(self.upto[begin - 1]) << shift) - target, _FAR) if begin else 0
        out = np.empty(2 * (end - begin) + 1, np.int64)
        cells.rank_scores(self.upto[begin : end + 1], max(under, -_FAR), target, shift, end == most, _FAR, out)
        return out

    def score(self, point, target, shift):
        """Return that of one point."""
        i = int(np.searchsorted(self.points, point, side="right")) - 1
        return int(self.scores(target, shift, i, i if self.points[i] == point else i + 1)[int(self.points[i] < point)])

    def near(self, target, shift, gap):
        """Return (begin, end): all cells before 2 begin, and after 2 end, are at least `gap` from the target."""
        begin = np.searchsorted(self.upto, -(gap - target >> shift), side="left")
        end = np.searchsorted(self.upto, target + gap >> shift, side="right")
        most = len(self.points) - 1
        return min(int(begin), most), min(int(end), most)

    def point(self, start, stop, stream):
        """Return a point from `start` on and below `stop`, drawn in proportion to its weight."""
        start, stop = int(start) + self.first, int(stop) + self.first
        least = [-(-start >> j) for j in range(self.levels + 1)]
        parts = [(-(-stop >> j) - low) * more for j, (low, more) in enumerate(zip(least, self.more))]
        rest, j = stream.below(sum(parts)), 0
        while rest >= parts[j]:
            rest, j = rest - parts[j], j + 1
        return (least[j] + rest // self.more[j] << j) - self.first

    def weight_before(self, points):
        """Return what points below these weigh, counted from the number 0 (below 0: negated).

        That is a + 2^0 ceil(a / 2) + 2^1 ceil(a / 4) + ..., and 2^j ceil(a / 2^j) is a + (-a mod 2^j).
        """
        at = points + self.first
        if not self.levels:
            return at
        low, high = _tables(self.levels)
        rest = -at
        out = low.take(rest & (1 << _HALF) - 1)
        rest >>= _HALF
        rest &= len(high) - 1
        out += high.take(rest)
        at *= self.levels + 8
        out += at
        out >>= 1
        return out


@lru_cache(maxsize=32)
def _tables(levels):
    """Return twice what the lower and the upper half of the bits of -a add in `weight_before` to a's own share.

    A bit below 2^levels is part of each remainder from its own level on, and six times more of the last one.
    """
    low = high = np.zeros(1, np.int64)
    for k in range(_HALF):
        low = np.concatenate([low, low + (6 + levels - k << k if k < levels else 0)])
    for k in range(_HALF, levels):
        high = np.concatenate([high, high + (6 + levels - k << k)])
    return low, high


def ranked(rows, grids):
    """Return the `Ranked` rows of each column of a table."""
    own = [fine(grid) for grid in grids]
    parts = [[] for _ in own]
    for block in blocks(rows):
        for grid, column, listed in zip(own, block, parts):
            listed.append(grid.points(column) + grid.span // 2)
    return [counted(np.concatenate(listed) if listed else np.empty(0, np.int64)) for listed in parts]


def counted(points):
    """Return the `Ranked` of points that may repeat; they are overwritten."""
    found, upto = distinct(points)
    return Ranked(found if len(found) == len(points) else found.copy(), np.diff(upto, prepend=0))


def distinct(points):
    """Return (each of points that may repeat once, sorted; how many there are up to each); they are overwritten."""
    upto = np.empty_like(points)
    cells.sort_points(points, upto)
    size = cells.distinct(points, upto)
    return points[:size], upto[:size]
