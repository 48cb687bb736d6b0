"""Channels: how likely each output is for inputs of each bin, and the iterations of expectation maximisation on them.

Two channels with one face: `Piecewise` (a window over a constant, O(bins + outputs) an iteration) and `Dense` (any
matrix). Pure functions of counts, so all of it is post-processing and costs no privacy.
"""

import itertools

import numpy as np

from dpestim._core import em

#: Singular values below this share of the largest are noise: inverting them would cost more than the bias they leave.
CUT_OFF = 1e-4

class Piecewise:
    """Inputs spread evenly within bins, answered with a window of `window` codes over a constant.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Bin edges in grid steps; input g has the window g, ..., g + window - 1, and what lies between two grid points
        is rounded to one of them without bias.
    cuts : ndarray of int, shape (n_axis + 1,)
        Output k is the codes cuts[k], ..., cuts[k + 1] - 1.
    window, gain : int and float
        A code inside the window is likelier by `gain`.
    base : ndarray of shape (n_outputs,)
        The constant part of the law of each output; those beyond n_axis belong to the low bins alone.
    low : (int, int), default=(0, 0)
        Bins whose law has no window but is ``base_low`` and `band`.
    base_low : ndarray of shape (n_outputs,), optional
    band : scipy.sparse.csr_array of shape (number of low bins, n_outputs), optional
    """

    def __init__(self, edges, cuts, window, gain, base, low=(0, 0), base_low=None, band=None):
        unit = (edges[-1] - edges[0]) / (len(edges) - 1)  # in units of a bin sums lose the fewest digits
        self.n_bins, self.n_outputs = len(edges) - 1, len(base)
        self.edges, self.cuts, self.window, self.gain = edges, cuts, window, gain
        self.base, self.low, self.base_low, self.band = np.ascontiguousarray(base, np.float64), low, base_low, band
        self._shifts = None if band is not None else _shifts(edges, cuts, window, gain, self.base)
        knots, past = zip(*(_locate(edges, cuts - shift, edges[0]) for shift in (0, window)))
        output_knots, output_past = zip(*(_locate(cuts, edges + shift, cuts[0]) for shift in (window, 0)))
        self._arguments = (
            *low,
            gain * unit,
            np.diff(edges) / unit,
            np.diff(cuts) / unit,
            self.base,
            np.zeros(len(base)) if base_low is None else np.ascontiguousarray(base_low, np.float64),
            np.ascontiguousarray(np.stack(knots, axis=1), np.int32),
            np.ascontiguousarray(np.stack(past, axis=1) / unit),
            np.ascontiguousarray(np.stack(output_knots, axis=1), np.int32),
            np.ascontiguousarray(np.stack(output_past, axis=1) / unit),
            np.zeros(1, np.int32) if band is None else band.indptr.astype(np.int32),
            np.zeros(0, np.int32) if band is None else band.indices.astype(np.int32),
            np.zeros(0) if band is None else band.data.astype(np.float64),
        )

    def steps(self, f, counts, n_steps, smooth):
        """Do iterations on f in place; for a large epsilon rounding moves its sum from 1, which `maximise` mends."""
        self._run(f, counts, n_steps, smooth)

    def expected(self, f):
        """Return the probability of each output under f."""
        return self._run(f, np.ones(self.n_outputs), 0, False)

    def _run(self, f, counts, n_steps, smooth):
        p = np.empty(self.n_outputs)
        if self._shifts is not None:
            places = 4 * (self.n_outputs + 2 * self._shifts[0] + 8)
            em.shifts(n_steps, smooth, counts, f, p, *self._shifts, np.empty(places))
            return p
        em.steps(n_steps, smooth, counts, f, p, *self._arguments, np.empty(6 * (self.n_outputs + self.n_bins) + 16))
        return p

    def matrix(self):
        """Return the same channel as a dense matrix of shape (n_bins, n_outputs), made from its definition."""
        first, last = int(np.floor(self.edges[0])), int(np.ceil(self.edges[-1]))
        grid = np.arange(first, last + 1)
        # the share of each bin that is rounded to each grid point: integrals of the hat function around it
        share = np.diff(_hat_integral(self.edges[:, None] - grid), axis=0) / np.diff(self.edges)[:, None]
        rows = np.zeros((len(grid), self.n_outputs))
        for k, g in enumerate(grid):
            inside = np.minimum(self.cuts[1:], g + self.window) - np.maximum(self.cuts[:-1], g)
            rows[k, : len(self.cuts) - 1] = self.gain * np.maximum(inside, 0)
        out = share @ rows + self.base
        start, stop = self.low
        if stop > start:
            out[start:stop] = self.base_low + self.band.toarray()
        return out


class Dense:
    """Any channel: row i is the law of the outputs for input i."""

    def __init__(self, rows):
        self.rows = np.ascontiguousarray(rows, np.float64)
        self.n_bins, self.n_outputs = self.rows.shape

    def steps(self, f, counts, n_steps, smooth):
        """Do iterations on f in place."""
        n = counts.sum()
        for _ in range(n_steps):
            f *= self.rows @ (counts / np.maximum(self.expected(f), 1e-300)) / n
            if smooth and len(f) > 1:
                f[:] = np.concatenate([
                    [(2 * f[0] + f[1]) / 3], f[:-2] / 4 + f[1:-1] / 2 + f[2:] / 4, [(f[-2] + 2 * f[-1]) / 3]
                ])
            f /= f.sum()

    def expected(self, f):
        """Return the probability of each output under f."""
        return f @ self.rows

    def matrix(self):
        """Return the matrix."""
        return self.rows


def _shifts(edges, cuts, window, gain, base):
    """Return the arguments of the faster kernel where bins and outputs are equally many codes wide, else None."""
    size = int(edges[1] - edges[0])
    lattice = np.minimum(np.arange(len(cuts)) * size, cuts[-1])
    if not np.array_equal(edges, np.arange(len(edges)) * size) or not np.array_equal(cuts, lattice):
        return None
    whole, rest = divmod(window, size)
    # an output adds the share of the (bin's value, code) pairs that are window: half at first; `rest` codes more than
    # whole outputs leave the ramp of the end in two outputs
    less = gain * (size - rest) ** 2 / (2 * size)
    last = gain * (size**2 - (size - rest) ** 2) / (2 * size) + gain * (size - rest)
    return whole, gain * size, gain * size / 2, less, last, base


def output_edges(start, stop, size):
    """Return integer edges from start to stop, about `size` apart and at least 1."""
    n = max(1, int(np.ceil((stop - start) / max(size, 1.0) - 1e-9)))
    edges = start + np.minimum(np.rint(np.arange(n + 1) * max(size, 1.0)), stop - start)
    edges[-1] = stop
    return np.unique(edges).astype(np.int64)


def hat_shares(edges, n_levels):
    """Return, for bins in units of levels, the share of each that rounding sends to each level, as a CSR array."""
    from scipy.sparse import csr_array

    if n_levels == 1:
        return csr_array(np.ones((len(edges) - 1, 1)))
    data, columns, starts = [], [], [0]
    for left, right in itertools.pairwise(edges):
        near = np.arange(max(0, int(np.floor(left))), min(n_levels - 1, int(np.ceil(right))) + 1)
        share = (_hat_integral(right - near) - _hat_integral(left - near)) / (right - left)
        near, share = near[share > 0], share[share > 0]
        data.append(share)
        columns.append(near)
        starts.append(starts[-1] + len(near))
    return csr_array((np.concatenate(data), np.concatenate(columns), starts), shape=(len(edges) - 1, n_levels))


def _hat_integral(u):
    """Return the integral up to u of the hat function max(0, 1 - |u|)."""
    u = np.clip(u, -1.0, 1.0)
    return np.where(u < 0, np.square(1 + u) / 2, 0.5 + u - np.square(u) / 2)


def _locate(knots, places, lowest):
    """Return (last knot at or before each place, distance behind it); below the first knot counts as it."""
    places = np.maximum(np.asarray(places, np.float64), lowest)
    index = np.clip(np.searchsorted(knots, places, side="right") - 1, 0, len(knots) - 1)
    return index, places - np.asarray(knots, np.float64)[index]


def least_variance(matrix, targets):
    """Return (numbers z with matrix @ z = targets as nearly as can be, largest deviation); rows are laws.

    Of all such numbers those whose variance is least for inputs that are equally likely.
    """
    weight = np.sqrt(np.maximum(matrix.mean(axis=0), 1e-300))
    z = np.linalg.pinv(matrix / weight, rcond=CUT_OFF) @ targets / weight
    return z, float(np.abs(matrix @ z - targets).max())
