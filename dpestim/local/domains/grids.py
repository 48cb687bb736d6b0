"""Grids over two ordered columns: the cells that users report, and how fine they are, from public numbers."""

import math
from functools import lru_cache
from numbers import Integral
from typing import NamedTuple

import numpy as np

from dpestim.local.domains.levels import short_law, sibling_variance
from dpestim.local.views import Quotient, View, ViewColumns
from dpestim.rng import Stage

METHODS = ("hdg", "uniform", "adaptive")
#: The most cells of a grid that is reported, and the most values of a column.
MOST_CELLS, MOST_VALUES = 1 << 16, 1 << 16
#: What values that are not even within a cell are assumed to cost, as a share of users for a grid of one cell a side:
#: of an end of a range in one column, and of a rectangle's dependence within cells.
ROUGH, DEPENDENT = 0.2, 0.15
#: Of "adaptive" the share of users (in percent) that reports the first grid, the most cells that this grid has in each
#: column, and the most parts of a side of one.
FIRST, MOST_FIRST, MOST_SPLITS = 40, 12, 16


class Grid(NamedTuple):
    """How two columns are cut: values each column has, values in a side of a cell, and in a range of one column.

    Where no ranges of one column are reported, `fine` is None.
    """

    sizes: tuple
    widths: tuple
    fine: tuple | None = None

    @property
    def shape(self):
        """How many cells there are in each column."""
        return tuple(-(-size // width) for size, width in zip(self.sizes, self.widths))

    @property
    def n_cells(self):
        """How many cells there are."""
        return math.prod(self.shape)

    def edges(self, axis, fine=False):
        """Return the places between cells, or ranges, of a column."""
        size, width = self.sizes[axis], (self.fine if fine else self.widths)[axis]
        return np.minimum(np.arange(-(-size // width) + 1) * width, size)

    def groups(self, axis):
        """Return the cell that each range of a column lies in."""
        return np.arange(len(self.edges(axis, True)) - 1) // (self.widths[axis] // self.fine[axis])


class Refinement(NamedTuple):
    """What the first users of "adaptive" have told, all of it public: how cells are cut for those who report next.

    Parameters
    ----------
    splits : tuple of int
        How many parts each side of a cell is cut into, cell by cell.
    counts : tuple of int
        Of the reports of the first users.
    n_users : int
        How many they were.
    """

    splits: tuple
    counts: tuple
    n_users: int

    def suits(self, epsilon, grid):
        """Tell whether it can be of this grid."""
        law = short_law(epsilon, grid.n_cells)
        whole = all(isinstance(value, Integral) and not isinstance(value, bool)
                    for value in (*self.splits, *self.counts, self.n_users))
        return whole and len(self.splits) == grid.n_cells and len(self.counts) == law.n_counts and (
            self.n_users == sum(self.counts)) and min(self.counts) >= 0 and min(self.splits) >= 1 and max(
            self.splits) <= min(MOST_SPLITS, *grid.widths)


class Cells(View):
    """The cell of a grid in which the codes of two features lie; cells may be cut further, each into its own parts.

    Parameters
    ----------
    name, law : as `View`
    grid : Grid
    refinement : Refinement, default=None
    """

    def __init__(self, name, law, grid, refinement=None):
        super().__init__(name, law, (0, 1))
        self.grid, self.refinement = Grid(grid.sizes, grid.widths), refinement
        if refinement is not None:
            self._sides = np.array(refinement.splits, np.int64)
            self._starts = np.append(0, np.cumsum(self._sides**2))

    @property
    def function(self):
        """The grid, and the parts of its cells."""
        return self.grid, self.refinement

    def of(self, codes):
        """Return the number of the cell of each row."""
        (wide, high), shape = self.grid.widths, self.grid.shape
        x, y = (own.astype(np.int64) for own in codes)
        cell = x // wide * shape[1] + y // high
        if self.refinement is not None:
            side = self._sides[cell]
            cell = self._starts[cell] + x % wide * side // wide * side + y % high * side // high
        return cell.astype(self.law.code_dtype)


class GridColumns(ViewColumns):
    """The grids over two features, of which a user reports one."""

    @classmethod
    def of(cls, features, grid, epsilon, refinement=None, **more):
        """Return the columns of these grids."""
        n_cells = grid.n_cells if refinement is None else sum(side * side for side in refinement.splits)
        views = [Cells("grid", short_law(epsilon, n_cells), grid, refinement)]
        if grid.fine is not None:
            views += [Quotient(f"ranges of {feature.name}", short_law(epsilon, len(grid.edges(axis, True)) - 1), axis,
                               grid.fine[axis]) for axis, feature in enumerate(features)]
        return cls(views, n_sampled=1, features=features, **more)

    @property
    def fine(self):
        """How many values the reported ranges of each column have, or None."""
        return tuple(view.width_of_node for view in self.columns[1:]) or None


def grid_of(sizes, n_cells, n_ranges=None):
    """Return the grid of about so many cells a side, and so many ranges of each column."""
    if n_ranges is None:
        return Grid(sizes, tuple(-(-size // min(n_cells, size)) for size in sizes))
    found = [_nested(-(-size // min(n_cells, size)), -(-size // min(n_ranges, size))) for size in sizes]
    return Grid(sizes, tuple(width for width, _ in found), tuple(fine for _, fine in found))


def _nested(width, fine):
    """Return (width of a cell, width of a range) near to these, of which the first is a multiple of the second."""
    part = max(own for own in range(1, min(fine, width) + 1) if width % own == 0)
    return (width, part) if 2 * part >= min(fine, width) else (-(-width // fine) * fine, fine)


@lru_cache(maxsize=256)
def best_grid(epsilon, sizes, method, n_users):
    """Return the grid of the least `expected_error`; clients and servers must find the same: nine digits decide."""
    found = []
    for n_cells in (side for side in _SIDES if side <= MOST_FIRST or method != "adaptive"):
        if n_cells > max(2, *sizes) * 2 or n_cells**2 > MOST_CELLS:
            break
        for n_ranges in [k * n_cells for k in (1, 2, 4, 8, 16, 32)] if method == "hdg" else [None]:
            if n_ranges is None or n_ranges <= 2 * max(sizes):
                grid = grid_of(sizes, n_cells, n_ranges)
                found.append((float(f"{expected_error(epsilon, grid, n_users):.9g}"), grid))
    return min(found)[1]


#: Rows whose words are drawn at a time.
_ROWS = 1 << 16
_SIDES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)


def expected_error(epsilon, grid, n_users):
    """Return the expected squared error of a rectangle: its variance, and what is assumed of values within cells.

    The variance is that over all rectangles whose edges are those of cells, evenly spread users, on average. What lies
    within cells is not known before there are reports: see `ROUGH` and `DEPENDENT`.
    """
    shape = grid.shape
    cells = sibling_variance(short_law(epsilon, math.prod(shape))) * (1 if grid.fine is None else 3)
    (one, x), (two, y) = map(_moments, shape)
    # (weights of a grid count without their mean: all cells together are known to be 1)
    total, unknown = cells * (one * two - x * y / math.prod(shape)), 0.0
    # (the share R of all users has no variance, of which the grids count R (1 - R))
    total -= one * two / math.prod(shape) - x * y / math.prod(shape) ** 2
    for axis, (size, n) in enumerate(zip(grid.sizes, shape)):
        other = shape[1 - axis]
        across = _moments(other)[1] / other**2  # (the mean square of the share of the other column)
        if grid.fine is None:
            unknown += _rough(size, n) * across
            continue
        fine = len(grid.edges(axis, True)) - 1
        ranges = 3 * sibling_variance(short_law(epsilon, fine))
        # (an end lies in a cell at any of its ranges: t of them are counted with 1 - t / k, the others with t / k)
        total += 2 * ranges * across * (fine / n) / 6
        unknown += _rough(size, fine) * across + 2 * (DEPENDENT / n) ** 2 * (n < size) * across
    return total / n_users + unknown


def _rough(size, n):
    """Return the squared error of the two ends of a range that lie within cells."""
    return 2 * (ROUGH / n) ** 2 * (n < size)


def _moments(n):
    """Return the means, over all ranges of n cells, of how many cells there are, and of the square of that."""
    lengths = np.arange(1, n + 1)
    often = (n + 1 - lengths) / (n * (n + 1) / 2)
    return float(often @ lengths), float(often @ np.square(lengths))


def first_of(n, source):
    """Return the rows of the first users of n, and those of all others, by a random order of all."""
    reader, words = source.reader(), np.empty(n, np.uint64)
    for block, start in enumerate(range(0, n, _ROWS)):
        part = words[start : start + _ROWS]
        part[:] = reader.words(0, block, 0, len(part)).dense(Stage.SUBSET, 1)
    order, many = np.argsort(words, kind="stable"), min(max(n * FIRST // 100, 1), n - 1)
    return np.sort(order[:many]), np.sort(order[many:])


def splits_of(shares, epsilon, grid, n_users):
    """Return how many parts each side of a cell is cut into, for estimated shares of cells and users to come.

    A cell of share f in k^2 parts costs a rectangle that cuts it about k^2 v / 4 of variance, v that of a part, and an
    unknown of (f ROUGH / k)^2: k is the whole number that makes the sum least.
    """
    variance = 4 * math.exp(-float(epsilon)) / (1 - math.exp(-float(epsilon))) ** 2 / n_users
    most = min(MOST_SPLITS, min(grid.widths))
    sides = np.arange(1, most + 1)
    cost = sides**2 * variance / 4 + np.square(np.maximum(shares, 0.0)[:, None] * ROUGH / sides)
    return tuple(int(k) for k in sides[np.argmin(cost, axis=1)])
