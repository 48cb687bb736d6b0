"""What a distribution over bins says: middles, quantiles, and how far it is from numbers."""


import numpy as np


def middles(edges):
    """Return the middles of bins less 1/2, so that sums lose no digits."""
    return (edges[1:] + edges[:-1] - 1) / 2


def category_at(f, edges, q):
    """Return the smallest category, the middle of its bin, up to which there is at least a share of q."""
    reached = np.cumsum(f) / np.sum(f)
    at = np.minimum(np.searchsorted(reached, q - 1e-12, side="left"), len(f) - 1)
    return (edges[:-1] + edges[1:])[at] / 2


def quantile(f, edges, q):
    """Return where the distribution function, a line within each bin, reaches q; NaN where nothing is known."""
    if np.isnan(f).any():
        return np.full(q.shape, np.nan)
    reached = np.concatenate([[0.0], np.cumsum(f)])
    reached /= reached[-1]
    at = np.clip(np.searchsorted(reached, q, side="left") - 1, 0, len(f) - 1)
    # (an empty bin has no inside: its left edge)
    share = np.divide(q - reached[at], reached[at + 1] - reached[at], out=np.zeros_like(reached[at]),
                      where=reached[at + 1] > reached[at])
    return edges[at] + np.clip(share, 0, 1) * (edges[at + 1] - edges[at])


def wasserstein(x, f, edges):
    """Return the integral of |quantile of the sorted x - quantile of f|, exactly: between its knots it is a line."""
    reached = np.concatenate([[0.0], np.cumsum(f)])
    reached /= reached[-1]
    # (a stable sort merges what is sorted already; a knot that is there twice has nothing between)
    knots = np.sort(np.concatenate([reached, np.arange(len(x) + 1) / len(x)]), kind="stable")
    a, b = knots[:-1], knots[1:]
    middle = (a + b) / 2
    own = x[np.minimum((middle * len(x)).astype(np.int64), len(x) - 1)]
    at = np.clip(np.searchsorted(reached, middle, side="right") - 1, 0, len(f) - 1)
    slope = np.divide(np.diff(edges)[at], f[at], out=np.zeros(len(at)), where=f[at] > 0)
    left, right = (edges[at] + slope * (v - reached[at]) - own for v in (a, b))
    # the integral of |line| from left to right over a unit
    crossing = left * right < 0
    both = np.abs(left) + np.abs(right)
    area = np.where(crossing, (left**2 + right**2) / np.where(crossing, 2 * both, 1.0), both / 2)
    return float(area @ (b - a))
