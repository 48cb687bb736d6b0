"""How a region is cut by noisy counts: even grids, adaptive grids, quadtrees. Integers get the noise."""

import math
from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.privacy.exact import exp_lower, exp_upper

#: Places of a side of the region in units of which all cells are made.
SIDE = 1 << 16
#: Cells a side of an even grid, or of one cell of an adaptive one; depth of a quadtree, and its least depth bound.
MOST_CELLS, MOST_PARTS, MOST_DEPTH = 512, 64, 12
#: The share of epsilon of the first grid of an adaptive one, and of the splits of a quadtree.
FIRST = Fraction(1, 2)
#: Rows in a cell of an even grid, and in a part, are epsilon / so much: constants of the paper.
_EVEN, _PARTS = 10, 5


def units_of(rows, lows, highs):
    """Return an (n, 2) array: places of rows in units of the region, from 0 to SIDE - 1; NaN counts as 0."""
    with np.errstate(all="ignore"):
        share = (np.asarray(rows, np.float64) - lows) * (SIDE / (np.array(highs) - lows))
        return np.fmin(np.fmax(share, 0.0), SIDE - 1).astype(np.int64)


def noise_of(epsilon, moved):
    """Return the discrete Laplace noise of disjoint counts, of which neighbours change so many by 1."""
    return DiscreteLaplaceLaw(epsilon, Fraction(0), Fraction(moved), 0)


class EvenGrid:
    """Equal cells: a grid whose side follows from public numbers.

    Parameters
    ----------
    epsilon : Fraction
    moved : int
        In how many cells neighbours differ by one row.
    n_rows : int
        How many rows are expected, a public number.
    cells : int or None
        Cells a side; None: by the rule of the paper.
    """

    def __init__(self, epsilon, moved, n_rows, cells=None):
        self.noise = noise_of(epsilon, moved)
        self.side = cells or int(min(max(math.sqrt(n_rows * float(epsilon) / moved / _EVEN), 1), MOST_CELLS))

    def draw(self, units, source):
        """Return (boxes, counts, groups of cells with common noise) with noise for all cells."""
        cut = edges(0, SIDE, self.side)
        exact = _table(units, cut, cut)
        return boxes(cut, cut), self.noise.add(exact.ravel().copy(), source).astype(float), None


class AdaptiveGrid:
    """A coarse grid, whose cells are cut into as many parts as their noisy counts call for; estimates that agree."""

    def __init__(self, epsilon, moved, n_rows, cells=None):
        self.first, self.second = (noise_of(share * epsilon, moved) for share in (FIRST, 1 - FIRST))
        self._per_part = float((1 - FIRST) * epsilon) / moved / _PARTS
        self.side = cells or int(min(max(10, math.sqrt(n_rows * float(epsilon) / moved / _EVEN) / 4), MOST_CELLS // 8))

    def draw(self, units, source):
        """Return (boxes, counts, (starts, weights)): the parts of a cell of the first grid are a group.

        A weight is that of the first count of the group in the mean of both.
        """
        cut = edges(0, SIDE, self.side)
        coarse = self.first.add(_table(units, cut, cut).ravel().copy(), source.part(0)).astype(float)
        parts = [int(min(max(math.ceil(math.sqrt(max(count, 0) * self._per_part)), 1), MOST_PARTS))
                 for count in coarse.tolist()]
        where = np.searchsorted(cut, units, side="right") - 1
        cell = where[:, 0] * self.side + where[:, 1]
        starts = np.append(0, np.cumsum(np.square(parts)))
        cuts = [[edges(a, b, k) for a, b in (cut[i : i + 2], cut[j : j + 2])] for (i, j), k in zip(
            np.ndindex(self.side, self.side), parts)]
        exact = np.zeros(starts[-1], np.int64)
        order = np.argsort(cell, kind="stable")
        ends = np.searchsorted(cell[order], np.arange(self.side**2 + 1))
        for k, pair in enumerate(cuts):
            inside = units[order[ends[k] : ends[k + 1]]]
            if len(inside):
                exact[starts[k] : starts[k + 1]] = _table(inside, *pair).ravel()
        fine = self.second.add(exact.copy(), source.part(1)).astype(float)
        sums, sizes = np.add.reduceat(fine, starts[:-1]), np.diff(starts)
        one, two = self.first.variance_steps, self.second.variance_steps * sizes
        weight = two / (one + two)  # of the first count, in the best mean of both
        fine += np.repeat(weight * (coarse - sums) / sizes, sizes)
        return np.concatenate([boxes(*pair) for pair in cuts]), fine, (starts, weight)


class PrivTree:
    """A quadtree that splits a cell while its noisy biased count is above 0, at a cost that no depth raises.

    Attributes
    ----------
    rate : Fraction
        The noise of a decision is discrete Laplace noise that falls by e^-rate.
    bias : int
        What is subtracted from a count for each level of depth.
    """

    def __init__(self, epsilon, moved, n_rows=None, cells=None):
        self.rate, self.bias = _rate(FIRST * epsilon / moved)
        self.noise = noise_of((1 - FIRST) * epsilon, moved)
        self.decision = DiscreteLaplaceLaw(self.rate, Fraction(0), Fraction(1), 0)
        self.depth = MOST_DEPTH if cells is None else max(1, (int(cells) - 1).bit_length())

    def biased(self, counts, depth):
        """Return counts as decisions see them, integers."""
        return np.maximum(counts - depth * self.bias, -self.bias)

    def draw(self, units, source):
        """Return (boxes, counts, None) of the leaves."""
        codes, leaves = np.sort(interleaved(*units.T)), []
        level = np.zeros(1, np.int64)
        for depth in range(self.depth + 1):
            counts = np.diff(np.searchsorted(codes, np.stack([level, level + 1]) << 2 * (16 - depth)), axis=0)[0]
            split = np.zeros(len(level), bool)
            if depth < self.depth and len(level):
                split = self.decision.add(self.biased(counts, depth), source.part(depth)) > 0
            leaves += [(depth, node, count) for node, count in zip(level[~split].tolist(), counts[~split].tolist())]
            level = (level[split][:, None] * 4 + np.arange(4)).ravel()
        exact = np.array([count for _, _, count in leaves], np.int64)
        found = np.array([box_of(depth, node) for depth, node, _ in leaves], np.int64)
        return found, self.noise.add(exact, source.part(self.depth)).astype(float), None


def _rate(epsilon):
    """Return (rate, bias) of the noise of decisions, of which all along a path cost epsilon at most (`density.md`)."""
    rate = epsilon / 2
    while True:
        bias = max(1, math.ceil(math.log(4) / float(rate)))
        if path_cost(rate, bias) <= epsilon:
            return rate, bias
        rate *= Fraction(99, 100)


def path_cost(rate, bias):
    """Return a Fraction at least what the decisions along a path tell of one row more: 2 rate and a geometric sum."""
    least, step = 1 / exp_upper(rate), 1 / exp_lower(rate * bias)  # at most e^-rate, and at least e^(-rate bias)
    return 2 * rate + (1 - least) / (1 + least - step) * step / (1 - step)


def edges(low, high, parts):
    """Return the ends of so many nearly equal parts, integers."""
    return low + (high - low) * np.arange(parts + 1) // parts


def boxes(first, second):
    """Return an (n, 4) array of the cells between edges: low and high in the first coordinate, and in the second."""
    i, j = np.meshgrid(np.arange(len(first) - 1), np.arange(len(second) - 1), indexing="ij")
    i, j = i.ravel(), j.ravel()
    return np.stack([first[i], first[i + 1], second[j], second[j + 1]], axis=1)


def _table(units, first, second):
    """Return how many rows lie in each cell between edges."""
    i, j = (np.searchsorted(cut, part, side="right") - 1 for cut, part in zip((first, second), units.T))
    shape = len(first) - 1, len(second) - 1
    return np.bincount(i * shape[1] + j, minlength=shape[0] * shape[1]).reshape(shape)


def interleaved(first, second):
    """Return the bits of two arrays of numbers below 2^16, alternating: cells of a quadtree are ranges of these."""
    out = []
    for part in (first, second):
        for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
            part = (part | part << shift) & mask
        out.append(part)
    return out[0] << 1 | out[1]


def box_of(depth, node):
    """Return the ends of a cell of a quadtree."""
    i = sum((node >> 2 * bit + 1 & 1) << bit for bit in range(depth))
    j = sum((node >> 2 * bit & 1) << bit for bit in range(depth))
    size = SIDE >> depth
    return i * size, (i + 1) * size, j * size, (j + 1) * size


METHODS = {"ug": EvenGrid, "ag": AdaptiveGrid, "privtree": PrivTree}
