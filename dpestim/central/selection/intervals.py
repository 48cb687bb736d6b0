"""The points of a public grid, cut into intervals by edges that may be secret."""

import numpy as np

from dpestim.central.additive.answers import read_answers

#: The grid has at least so many binary digits of the width of the range, where floats have as many.
_DIGITS = 40


def grid_of(bounds):
    """Return (first, last, exponent) of the grid of a range: its points are the integers between, times 2^exponent.

    Every point is a float, and the larger end of the range (by its absolute value) is always one.
    """
    low, high = bounds
    _, width = np.frexp(high - low)
    _, size = np.frexp(max(abs(low), abs(high)))
    exponent = int(max(width - _DIGITS, size - 53))
    return int(np.ceil(np.ldexp(low, -exponent))), int(np.floor(np.ldexp(high, -exponent))), exponent


def read_starts(edges, n, grid, *, strict):
    """Return the first grid point of each of n intervals, and one beyond the last, as integers.

    Interval 0 ends below the first edge, interval i starts at edge i. Edges that are not sorted, or not finite, are a
    ValueError. In strict mode edges are sorted here, with NaN as the lowest: a record that becomes NaN moves one edge.
    """
    edges = read_answers(edges, integers=False, strict=strict, bounds=None, missing=-np.inf, name="edges")
    if edges.ndim != 1 or edges.size != n - 1:
        raise ValueError("edges must be one-dimensional, one number between every two scores")
    if strict:
        edges = np.sort(edges)
    elif (edges[1:] < edges[:-1]).any():
        raise ValueError("edges must be sorted")
    first, last, exponent = grid
    with np.errstate(all="ignore"):
        codes = np.ceil(np.ldexp(edges, -exponent))
    return np.r_[first, np.clip(codes, first, last + 1).astype(np.int64), last + 1]
