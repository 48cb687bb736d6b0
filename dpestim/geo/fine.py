"""Where places lie within cells: each cell is cut into as many parts as its noisy visits call for (trajectories.md)."""

import numpy as np

#: Fine cells a side of a cell; a part is made of some of these.
FINE = 8
#: Places in a part are at least about so many times the scale of its noise: the constant of adaptive grids.
_PARTS = 5


def fine_table(rows, lows, highs, cells, most):
    """Return how many of the first places of rows lie in each fine cell, of shape (cells, cells, FINE, FINE)."""
    places = np.asarray(rows, np.float64).reshape(len(rows), -1, 2)[:, :most]
    there = ~np.maximum.accumulate(np.isnan(places).any(axis=2), axis=1)
    side = cells * FINE
    with np.errstate(all="ignore"):
        share = (places[there] - lows) * (side / (highs - lows))
        at = np.fmin(np.fmax(share, 0.0), side - 1).astype(np.int64)
    counts = np.bincount(at[:, 0] * side + at[:, 1], minlength=side * side)
    return np.ascontiguousarray(counts.reshape(cells, FINE, cells, FINE).swapaxes(1, 2))


def parts_of(steps, noise):
    """Return the parts a side of each cell, 1, 2, 4 or 8, by noisy steps from it and the noise of the parts."""
    visits = np.maximum(steps.sum(axis=2), 0)
    wanted = np.sqrt(visits * float(noise.rate_of_decay) / _PARTS)
    return 2 ** np.searchsorted([2, 4, 8], wanted, side="right")


def summed(table, parts):
    """Return the sums of a fine table over parts, one after another: first of cells with one part, then with 4, ..."""
    out = []
    for k in (1, 2, 4, 8):
        own = table[parts == k]
        out.append(own.reshape(len(own), k, FINE // k, k, FINE // k).sum(axis=(2, 4)).ravel())
    return np.concatenate(out)


def spread(sums, parts):
    """Return a fine table in which each part has its sum, evenly."""
    out, used = np.zeros((*parts.shape, FINE, FINE)), 0
    for k in (1, 2, 4, 8):
        here, each = parts == k, FINE // k
        size = int(here.sum()) * k * k
        own = sums[used : used + size].reshape(-1, k, k) / each**2
        out[here] = own.repeat(each, axis=1).repeat(each, axis=2)
        used += size
    return out
