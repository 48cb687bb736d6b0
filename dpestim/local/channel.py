"""Channels: how likely each output is for inputs of each bin, and the iterations of expectation maximisation on them.

Three channels with the same methods: `Piecewise` (a window over a constant, O(bins + outputs) an iteration), `Dense`
(any matrix), and `Beside` (the outputs of several, one after the other). Pure functions of counts, so all of it is
post-processing and costs no privacy.
"""

import itertools

import numpy as np

from dpestim.postprocessing.em import Matrix, average_neighbours

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
    band_at : ndarray of shape (number of low bins + 1, n_outputs), optional
        The same for values at the edges of the low bins.
    """

    def __init__(self, edges, cuts, window, gain, base, low=(0, 0), base_low=None, band=None, band_at=None):
        unit = (edges[-1] - edges[0]) / (len(edges) - 1)  # in units of a bin sums lose the fewest digits
        self.n_bins, self.n_outputs = len(edges) - 1, len(base)
        self.edges, self.cuts, self.window, self.gain = edges, cuts, window, gain
        self.base, self.low, self.base_low, self.band = np.ascontiguousarray(base, np.float64), low, base_low, band
        self.band_at = band_at
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
        from dpestim._core import em  # (a library that only estimates of distributions need)

        p = np.empty(self.n_outputs)
        if self._shifts is not None:
            places = 4 * (self.n_outputs + 2 * self._shifts[0] + 8)
            em.shifts(n_steps, smooth, counts, f, p, *self._shifts, np.empty(places))
            return p
        em.steps(n_steps, smooth, counts, f, p, *self._arguments, np.empty(6 * (self.n_outputs + self.n_bins) + 16))
        return p

    @property
    def is_low(self):
        """Whether each bin is one of the low ones."""
        bins = np.arange(self.n_bins)
        return (bins >= self.low[0]) & (bins < self.low[1])

    def rows(self):
        """Return the channel as a dense matrix of shape (n_bins, n_outputs)."""
        return np.stack([self.expected(row) for row in np.eye(self.n_bins)])

    def ends(self):
        """Return two such matrices, for values at the left and at the right end of each bin."""
        below = np.floor(self.edges)
        share, near = (self.edges - below)[:, None], []
        for g in (below, below + 1):
            inside = np.minimum(self.cuts[1:], g[:, None] + self.window) - np.maximum(self.cuts[:-1], g[:, None])
            near.append(self.gain * np.maximum(inside, 0))
        rows = np.tile(self.base, (len(self.edges), 1))
        rows[:, : len(self.cuts) - 1] += (1 - share) * near[0] + share * near[1]
        left, right = rows[:-1].copy(), rows[1:]
        start, stop = self.low
        if stop > start:
            left[start:stop] = self.base_low + self.band_at[:-1]
            right[start:stop] = self.base_low + self.band_at[1:]
        return left, right

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


class Dense(Matrix):
    """A matrix (or some columns of it, beside others) for inputs that are not all alike to a server of numbers.

    `at` has the rows of values at the edges of bins.
    """

    def __init__(self, rows, at=None):
        super().__init__(rows)
        self._at = at
        self.n_bins, self.n_outputs = self._rows.shape
        self.is_low = np.zeros(self.n_bins, bool)

    def rows(self):
        """Return the matrix."""
        return self._rows

    def ends(self):
        """Return two such matrices, for values at the left and at the right end of each bin."""
        return self._at[:-1], self._at[1:]

    matrix = rows


class Beside:
    """The outputs of several channels of the same evenly spaced bins, one after the other: each answers for a share."""

    def __init__(self, *parts):
        self.parts = parts
        self.n_bins, self.n_outputs = parts[0].n_bins, sum(part.n_outputs for part in parts)
        self._places = np.cumsum([part.n_outputs for part in parts])[:-1]

    def steps(self, f, counts, n_steps, smooth):
        """Do iterations on f in place: a step of a part is f times its share of the factor, over its own reports."""
        shares = [(part, c, c.sum() / counts.sum()) for part, c in zip(self.parts, np.split(counts, self._places))]
        for _ in range(n_steps):
            after = np.zeros(len(f))
            for part, c, share in shares:
                if share:
                    own = f.copy()
                    part.steps(own, c, 1, False)
                    after += share * own
            f[:] = after
            if smooth:
                average_neighbours(f)
            f /= f.sum()

    def expected(self, f):
        """Return the probability of each output under f."""
        return np.concatenate([part.expected(f) for part in self.parts])

    @property
    def is_low(self):
        """Whether each bin is one of the low ones, which no part here has."""
        return np.zeros(self.n_bins, bool)

    def rows(self):
        """Return the channel as a dense matrix of shape (n_bins, n_outputs)."""
        return np.hstack([part.rows() for part in self.parts])

    def ends(self):
        """Return two such matrices, for values at the left and at the right end of each bin."""
        return tuple(np.hstack(sides) for sides in zip(*(part.ends() for part in self.parts)))

    def matrix(self):
        """Return the same channel as a dense matrix of shape (n_bins, n_outputs), made from its definition."""
        return np.hstack([part.matrix() for part in self.parts])


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


def hat_values(places, n_levels):
    """Return, for places in units of levels, the probability with which rounding sends them to each level."""
    if n_levels == 1:
        return np.ones((len(places), 1))
    return np.maximum(1 - np.abs(places[:, None] - np.arange(n_levels)), 0)


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
