"""The sensitivity-aware piecewise mechanism over bins, for expectation maximisation: a `Piecewise` channel."""

import numpy as np

from dpestim.local.channel import Piecewise, hat_shares, hat_values, output_edges
from dpestim.privacy.exact import WORD


def channel_of(law, n_bins):
    """Return (bin edges as positions, output of each code, `Piecewise`); bins are aligned with the low interval."""
    w, m = law.weights, law.grid
    left, low, right = _bins_each(law, n_bins)
    ends = (0.0, float(law.low_from), float(law.low_to), 1.0)
    parts = [np.linspace(a, b, n + 1)[: n + 1] for a, b, n in zip(ends, ends[1:], (left, low, right)) if n]
    edges = np.concatenate([parts[0], *(part[1:] for part in parts[1:])])
    size = m / n_bins
    zone = law.cell_edges if law.merged else output_edges(law.zone, law.zone_stop, size)
    before, after = output_edges(0, law.zone, size), output_edges(law.zone_stop, law.n_pm, size)
    cuts = np.unique(np.concatenate([before, zone, after]))
    in_zone = (cuts[:-1] >= law.zone) & (cuts[:-1] < law.zone_stop)
    extra = 0 if law.merged else law.n_levels
    base = np.concatenate([w.outside / WORD * np.diff(cuts), np.zeros(extra)])
    base_low = np.where(np.concatenate([in_zone, np.zeros(extra, bool)]), 0.0, base)
    # the levels are outputs side by side: the cells of the zone, or those behind the axis
    first = int(np.flatnonzero(in_zone)[0]) if law.merged else len(cuts) - 1
    band = hat_shares(np.linspace(0, law.n_levels - 1, low + 1), law.n_levels) * (law.own / WORD)
    band = type(band)((band.data, band.indices + first, band.indptr), shape=(low, len(base)))
    band_at = np.zeros((low + 1, len(base)))
    at = hat_values(np.linspace(0, law.n_levels - 1, low + 1), law.n_levels)
    band_at[:, first : first + law.n_levels] = at * (law.own / WORD)
    gain = (w.inside - w.outside) / WORD
    channel = Piecewise(edges * m, cuts, w.window, gain, base, (left, left + low), base_low, band, band_at)
    output = np.empty(law.n_counts, np.int64)
    output[law.code_of_output] = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    output[law.levels] = first + np.arange(law.n_levels)
    return edges, output, channel


def _bins_each(law, n_bins):
    """Return the number of bins below, in and above the low interval; at least one where there is room."""
    low = min(max(1, round(n_bins * float(law.low_to - law.low_from))), law.n_levels)
    left, right = law.low_from, 1 - law.low_to
    sides = (left > 0) + (right > 0)
    low = max(1, min(low, n_bins - sides))
    if n_bins < low + sides:
        raise ValueError("n_bins must leave a bin for each side of low_sensitivity and one for itself")
    first = round((n_bins - low) * float(left / (left + right)))
    if sides == 2:
        first = min(max(first, 1), n_bins - low - 1)
    return first, low, n_bins - low - first
