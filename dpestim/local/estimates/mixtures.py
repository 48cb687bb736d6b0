"""What combined estimates are computed with: weights, unions of domains, common bins, ends of intervals."""

import math

import numpy as np

#: Variances below this are as good as none: their inverses would not be finite.
LEAST_VARIANCE = 1e-200


def squared_reaches(intervals, centres):
    """Return the squared distances of the ends of intervals, for each column."""
    return [np.square(ci - f[:, None]) for ci, f in zip(intervals, centres)]


def times(weight, value):
    """Return the product; what has no weight counts as 0, though it be NaN."""
    return weight * np.where(weight == 0, 0.0, value)


def around(centre, reach):
    """Return intervals that reach so far to either side of a centre."""
    return np.stack([centre - reach[:, 0], centre + reach[:, 1]], axis=1)


def scored(centre, squares, factor):
    """Return the least and the largest p that lie no further from the centre than sqrt(square + factor p (1 - p)).

    `squares` has one column for either direction; below 0 and above 1 the product counts as 0.
    """
    half = (2 * centre + factor) / (2 * (1 + factor))
    out = []
    for sign, square in zip((-1, 1), squares.T):
        plain = centre + sign * np.sqrt(square)
        inside = np.square(half) - (np.square(centre) - square) / (1 + factor)
        root = half + sign * np.sqrt(np.maximum(inside, 0.0))
        there = (inside >= 0) & (root >= 0) & (root <= 1)
        out.append(np.where(there, sign * np.maximum(sign * plain, sign * root), plain))
    return np.stack(out, axis=1)


def bins_of(edges, n):
    """Return the edges of n bins: these, or as many of equal width between the same bounds."""
    return edges if len(edges) == n + 1 else np.linspace(edges[0], edges[-1], n + 1)


def inverse_variances(variances):
    """Return weights over the first axis that sum to one, inversely to variances."""
    weights = 1.0 / np.maximum(variances, LEAST_VARIANCE)
    return weights / weights.sum(axis=0)


def union_of(columns):
    """Return (all categories that columns have, in the order in which they name them, the place of each's own ones).

    Columns of the same categories get a slice for a place.
    """
    plain = [column.encoder.plain_categories() for column in columns]
    if all(values == plain[0] for values in plain):
        return columns[0].categories, [slice(None)] * len(columns)
    places, found = {}, []
    for values, column in zip(plain, columns):
        for value, category in zip(values, column.categories):
            if value not in places:
                places[value] = len(found)
                found.append(category)
    dtypes = {column.categories.dtype for column in columns}
    union = np.empty(len(found), dtypes.pop() if len(dtypes) == 1 else object)
    union[:] = found
    return union, [np.array([places[value] for value in values]) for values in plain]


def weighted(parts, weights, places, size):
    """Return the weighted sum of arrays whose entries have these places among `size`; elsewhere they are 0."""
    out = np.zeros((size, *parts[0].shape[1:]))
    for part, weight, place in zip(parts, weights, places):
        own = np.broadcast_to(weight, size)[place]
        out[place] += own.reshape(-1, *[1] * (part.ndim - 1)) * part
    return out


def on_common_bins(shares, edges):
    """Return (shares of the same bins, these bins' edges): a common refinement, with bins spread evenly over its own.

    Distribution functions do not change but by rounding; edges that differ by rounding alone are one.
    """
    if all(np.array_equal(e, edges[0]) for e in edges):
        return list(shares), edges[0]
    all_edges = np.unique(np.concatenate(edges))
    apart = np.diff(all_edges, prepend=-math.inf) > 1e-9 * (all_edges[-1] - all_edges[0])
    common = all_edges[apart]
    return [np.diff(np.interp(common, e, reached(f))) for f, e in zip(shares, edges)], common


def quantile_of(f, edges, q, is_discrete):
    """Return where the distribution function reaches q: a line within a bin, or a category in the middle of one."""
    below = reached(f) / np.sum(f)
    slack = 1e-12 if is_discrete else 0.0
    at = np.clip(np.searchsorted(below, q - slack, side="left") - 1, 0, len(f) - 1)
    left, right = edges[at], edges[at + 1]
    if is_discrete:
        return (left + right) / 2
    rise = below[at + 1] - below[at]
    share = np.divide(q - below[at], rise, out=np.zeros_like(rise), where=rise > 0)
    return left + np.clip(share, 0, 1) * (right - left)


def distance(x, f, edges):
    """Return the Wasserstein distance between values and a distribution over bins: the area between the functions."""
    knots = np.union1d(x, edges)
    own = np.searchsorted(np.sort(x), knots[:-1], side="right") / len(x)
    cdf = np.interp(knots, edges, reached(f) / np.sum(f))
    a, b = cdf[:-1] - own, cdf[1:] - own
    both = np.abs(a) + np.abs(b)
    crossing = a * b < 0
    return float(np.where(crossing, (a * a + b * b) / np.where(crossing, 2 * both, 1.0), both / 2) @ np.diff(knots))


def reached(f):
    """Return the distribution function at the edges of bins with these shares."""
    return np.concatenate([[0.0], np.cumsum(f)])
