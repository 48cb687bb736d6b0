"""Linear inversion of the sensitivity-aware piecewise law: a number for each code, whose mean is the input's position.

The mean number of a window must change by the same amount from one high grid point g to the next, so the numbers of the
codes g and g + W differ by a constant: such codes are *linked*. A cell is one number; so wherever a chain of links
leads from a cell, numbers are constant on the cell's images, and elsewhere they rise as PM's do. Blocks of codes whose
edges are closed under the shift by W therefore hold an exact solution, where there is one. See `mean.md`.
"""

import numpy as np

from dpestim.local.channel import CUT_OFF, output_edges
from dpestim.privacy.exact import WORD

#: Blocks of outputs, and rows of each kind, that there are at least; and blocks at which refining stops.
RESOLUTION, MOST_BLOCKS = 128, 500


def numbers_of_least_variance(r):
    """Return the numbers of all codes of an `SDPM` randomizer.

    Unknown are the mean number of each block of outputs, and a line for the levels, whose rows allow nothing else.
    Solved by least squares for rows all over the range, with the least variance for values spread evenly.
    """
    w, points = r.weights, r.high_points
    step = float(r.step)
    base, gain, own = w.outside / WORD, (w.inside - w.outside) / WORD, r.own / WORD
    stretches = _stretches(points)
    cuts = _cuts(r, stretches)
    starts, stops = cuts[:-1], cuts[1:]
    in_zone = (starts >= r.zone) & (starts < r.zone_stop)
    if r.merged:  # the zone's outputs are the levels'
        starts, stops, in_zone = starts[~in_zone], stops[~in_zone], in_zone[~in_zone]
    rises = ~_tied_to_cells(r, stretches)[starts]
    near = np.concatenate([cuts, cuts - w.window, np.linspace(points[0], points[-1], 2 * RESOLUTION).astype(int)])
    rows = np.intersect1d(near, points)
    levels = np.array([float(p) for p in r.level_positions()]) - 0.5
    some = np.unique(np.linspace(0, r.n_levels - 1, RESOLUTION).astype(int))
    line = np.stack([np.ones_like(levels), levels], axis=1)[:, : 1 if r.n_levels == 1 else 2]

    n_inside, sums = _covered(rows, w.window, starts, stops)
    centre = (starts + stops - 1) / 2
    blocks = base * (stops - starts) + gain * n_inside
    within = gain * step * ((sums - n_inside * centre) * rises).sum(axis=1)  # what rising inside blocks adds
    low_of_high, cell_weight = np.zeros((len(rows), line.shape[1])), np.zeros(r.n_levels)
    if r.merged:
        edges = np.array(r.cell_edges)
        cells = base * np.diff(edges) + gain * _covered(rows, w.window, edges[:-1], edges[1:])[0]
        low_of_high, cell_weight = cells @ line, cells.mean(axis=0)
    constant = np.where(in_zone, 0.0, base * (stops - starts))  # low values send no output of the zone
    matrix = np.vstack([
        np.hstack([blocks, low_of_high]),
        np.hstack([np.broadcast_to(constant, (len(some), len(constant))), own * line[some]]),
    ])
    target = np.concatenate([rows / r.grid - 0.5 - within, levels[some]])

    # unknowns are scaled by how often their codes are sent, so that the smallest solution has the least variance
    low_share = float(r.low_to - r.low_from)
    likely = (1 - low_share) * blocks.mean(axis=0) + low_share * constant
    weight = (1 - low_share) * cell_weight + low_share * own / r.n_levels
    scale = np.zeros((matrix.shape[1],) * 2)
    scale[: len(likely), : len(likely)] = np.diag(1 / np.sqrt(likely))
    scale[len(likely) :, len(likely) :] = np.linalg.inv(np.linalg.cholesky(line.T @ (line * weight[:, None]))).T
    solution = scale @ (np.linalg.pinv(matrix @ scale, rcond=CUT_OFF) @ target)

    of_output = np.zeros(r.n_pm)
    for start, stop, number, slope in zip(starts, stops, solution, rises * step):
        of_output[start:stop] = number + slope * (np.arange(start, stop) - (start + stop - 1) / 2)
    values = np.empty(r.n_counts)
    values[r.code_of_output] = of_output
    values[r.levels] = line @ solution[len(likely) :]
    return values + 0.5


def _stretches(points):
    """Return the runs (first, last) of neighbouring high grid points."""
    breaks = np.flatnonzero(np.diff(points) > 1)
    firsts, lasts = points[np.append(0, breaks + 1)], points[np.append(breaks, len(points) - 1)]
    return list(zip(firsts.tolist(), lasts.tolist()))


def _cuts(r, stretches):
    """Return the edges of the blocks: closed under shifts by a window, as far as `MOST_BLOCKS` goes."""
    n, window = r.n_pm, r.weights.window
    if n <= RESOLUTION * window:
        parts = max(1, RESOLUTION * window // n)
        lattice = np.rint(np.arange(parts) * window / parts).astype(np.int64)
        cuts = (np.arange(n // window + 1)[:, None] * window + lattice).ravel()
    else:
        cuts = output_edges(0, n, n / RESOLUTION)
    more = [0, n, r.zone, r.zone_stop, *(r.cell_edges if r.merged else ())]
    more += [edge + shift for stretch in stretches for edge in stretch for shift in (0, window)]
    cuts = np.union1d(cuts, more)
    while True:
        images = [cuts]
        for first, last in stretches:
            images.append(cuts[(cuts >= first) & (cuts <= last)] + window)
            images.append(cuts[(cuts - window >= first) & (cuts - window <= last)] - window)
        wider = np.unique(np.concatenate(images))
        if len(wider) == len(cuts) or len(wider) > MOST_BLOCKS:
            return cuts[(cuts >= 0) & (cuts <= n)].astype(np.int64)
        cuts = wider


def _tied_to_cells(r, stretches):
    """Return, for each of PM's outputs, whether a chain of links leads to a cell."""
    tied = np.zeros(r.n_pm, bool)
    tied[r.zone : r.zone_stop] = r.merged
    window = r.weights.window
    for _ in range(64):
        before = int(tied.sum())
        for first, last in stretches:
            lower, upper = tied[first:last], tied[first + window : last + window]
            lower |= upper
            upper |= lower
        if int(tied.sum()) == before:
            break
    return tied


def _covered(rows, window, starts, stops):
    """Return how many codes of each block lie in the window of each row, and the sum of these codes."""
    first = np.maximum(starts, rows[:, None])
    last = np.maximum(np.minimum(stops, rows[:, None] + window), first)
    return last - first, (last - first) * ((first + last - 1) / 2)
