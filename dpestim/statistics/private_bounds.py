"""Bounds that are found privately: powers of two around where rows are, by noisy counts (`private_bounds.md`)."""

from functools import partial

import numpy as np

from dpestim._core import cells
from dpestim.statistics.calibrated_noise import noise_for
from dpestim.statistics.plan import Noisy, Plan
from dpestim.statistics.summary import blocks

#: The bounds are 0 or +-2^k, k in this range; numbers nearer to 0 count as 0, others as the largest.
_LEAST, _MOST = -32, 64
#: The chance that an empty cell widens the bounds, over all columns.
_FALSE = 0.01


def find_bounds(rows, epsilon, substitution, most):
    """Return a `Plan` of a release of (low, high), arrays with one number for each column.

    NaN where no noisy count tells of any rows.
    """
    powers = 2.0 ** np.arange(_LEAST, _MOST + 1)
    edges = np.r_[-np.inf, -powers[::-1], powers, np.inf]  # the cell in the middle holds 0
    # (what is outside goes to the outermost cells)
    inner, n_columns = edges.copy(), rows.shape[1]
    inner[[0, -1]] = -powers[-1] * 2, powers[-1] * 2
    counts = np.zeros((n_columns, len(edges) - 1), np.int64)
    for block in blocks(rows):
        for column, own in zip(block, counts):
            places = np.zeros(len(column), np.int64)
            cells.add_cells(column, inner, 0.0, 1, places)
            cells.tally(places, own)
    moved = n_columns * most * (2 if substitution else 1)
    noise = noise_for(epsilon, 0, moved, moved * moved, counts.size)
    least = noise.half_width(1 - _FALSE / counts.size)
    middle = len(powers)

    def find(outcomes):
        present = outcomes[0] > least
        low, high = np.zeros(n_columns), np.zeros(n_columns)
        for j in range(n_columns):
            places = np.flatnonzero(present[j]) - middle
            if not len(places):  # nothing is known, and no bounds stand for that
                low[j] = high[j] = np.nan
                continue
            # cell k > 0 holds [2^(LEAST + k - 1), 2^(LEAST + k)), and -k its mirror image
            low[j], high[j] = (-_edge(-places.min()) if places.min() < 0 else 0.0,
                               _edge(places.max()) if places.max() > 0 else 0.0)
            if places.min() == 0 and places.max() == 0:
                low[j], high[j] = -powers[0], powers[0]
        return low, high

    return Plan((Noisy(noise, counts),), find)


def _edge(cell):
    return 2.0 ** min(_LEAST + int(cell), _MOST)


def without(drawn, unknown):
    """Return what was drawn, where `unknown` marks numbers whose bounds were not found: NaN, from -inf to inf."""
    value, error, ends, *keys = drawn
    value = _filled(value, unknown, np.nan)
    error = None if error is None else _filled(error, unknown, np.nan)
    return value, error, ends and partial(_wide, ends, unknown), *keys


def _wide(ends, unknown, level):
    return tuple(_filled(end, unknown, side) for end, side in zip(ends(level), (-np.inf, np.inf)))


def _filled(values, unknown, fill):
    out = np.where(unknown, fill, values)
    return out if out.ndim else out.item()
