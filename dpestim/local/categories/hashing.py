"""Guessing from a bucket and a public hash: how often the likeliest value is right, over all hash functions.

h(v) = a v + b, with a and b uniform over all words, is a place on a circle, alpha v + beta, and a bucket is an arc of
length 1 / g. As a bucket is as good as any other, and beta is uniform, what matters is an arc that slides over the
points alpha v: it is followed exactly, from one point that enters or leaves to the next. Between two multipliers at
which two points (or a point and the end of an arc that begins at another) change places, everything is linear in alpha,
so the middle stands for the stretch: exact up to the width of a word.
"""

import numpy as np

from dpestim.local.guessing import BestGuess, Runs, levels_of

#: Points of all circles that are followed: where exactness would take more, multipliers are sampled.
MOST_POINTS = 1 << 19
#: Values, or buckets, up to which empty buckets of many values are counted exactly.
_MOST_STEPS = 1 << 13
#: Points that are followed at a time, and circles that there are at least.
_AT_A_TIME, _LEAST = 1 << 16, 64


def success_of_hashes(prior, n_buckets, own, other):
    """Return the probability of a right guess for each value; of many values under a uniform prior the mean of all.

    Parameters
    ----------
    prior : ndarray of shape (d,)
    n_buckets : int
    own, other : float
        The probabilities that the own bucket is reported, and a certain other one.
    """
    d = len(prior)
    if 3 * d**3 // 8 <= MOST_POINTS:
        return _over_circles(prior, *_stretches(d, n_buckets), n_buckets, own, other)
    n = max(_LEAST, MOST_POINTS // d)
    # one at random in each of n equal parts: values that are a multiple of n apart would meet at even steps too often
    some = (np.arange(n) + np.random.default_rng(0).random(n)) / (2 * n), np.full(n, 1 / n)
    if min(d, n_buckets) > _MOST_STEPS:
        return _over_circles(prior, *some, n_buckets, own, other)
    empty = empty_buckets(d, n_buckets)
    mean = (own * (n_buckets - empty) + other * empty) / d
    if len(levels_of(prior)[1]) == 1:
        return np.full(d, mean)
    # what these multipliers are off by for a uniform prior, they are off by for others, too, for the most part
    off = _over_circles(np.full(d, 1 / d), *some, n_buckets, own, other).mean()
    return np.minimum(_over_circles(prior, *some, n_buckets, own, other) * (mean / off), 1.0)


def empty_buckets(d, g):
    """Return how many of g buckets hold none of d values, on average over all hashes: exact, O(min(d, g)^2).

    Between neighbouring fractions of denominators q, r < d the d points of a circle are at three distances (q alpha and
    r alpha from the nearest integer, and their sum), d - q, d - r and q + r - d times. An arc of length 1 / g is empty
    for as much of the circle as a distance exceeds it. Each coprime q, r < d <= q + r are neighbours once in [0, 1].
    """
    width, total = 1 / g, 0.0
    for q in range(1, min(d, g)):  # the smaller one; distances are at most 1 / q
        r = np.arange(max(q, d - q), d)
        r = r[np.gcd(r, q) == 1]
        near, far = _excess(-width, 1 / r - width), _excess(1 / q - width, -width)
        both = _excess(1 / q - width, 1 / r - width)
        parts = ((d - q) * near + (d - r) * far + (q + r - d) * both) / (q * r)
        total += float(parts @ np.where(r == q, 1.0, 2.0))
    return g * total


def _excess(start, stop):
    """Return the mean of the positive part of a line from start to stop."""
    low, high = np.minimum(start, stop), np.maximum(start, stop)
    part = np.square(high) / (2 * np.where(high > low, high - low, 1.0))
    return np.where(low >= 0, (low + high) / 2, np.where(high > 0, part, 0.0))


def _over_circles(prior, multipliers, weights, n_buckets, own, other):
    """Return the mean success over circles of these multipliers."""
    d = len(prior)
    total = np.zeros(d)
    step = max(1, _AT_A_TIME // d)
    for at in range(0, len(multipliers), step):
        part = slice(at, at + step)
        total += _on_circles(prior, multipliers[part], weights[part], n_buckets, own, other)
    return total


def _stretches(d, g):
    """Return the middles of the stretches of [0, 1/2] on which all is linear, and twice their lengths (a mirror)."""
    cuts = [np.array([0.0, 0.5])]
    for apart in range(1, d):  # the points v and v + apart meet, or an arc that begins at one ends at the other
        turns = np.arange(apart + 1)
        cuts += [(turns + shift) / apart for shift in (0.0, 1 / g, -1 / g)]
    cuts = np.unique(np.concatenate(cuts))
    cuts = cuts[(cuts >= 0) & (cuts <= 0.5)]
    return (cuts[1:] + cuts[:-1]) / 2, 2 * np.diff(cuts)


def _on_circles(prior, multipliers, weights, g, own, other):
    """Return the part of the success that these multipliers contribute."""
    m, d = len(multipliers), len(prior)
    places = np.mod(multipliers[:, None] * np.arange(d), 1.0)
    order = np.argsort(places, axis=1)
    places = np.take_along_axis(places, order, axis=1)
    # the arc that begins at t holds what lies in [t, t + 1 / g): it changes where t passes a point, or an end does
    cuts = np.sort(np.concatenate([places, np.mod(places - 1 / g, 1.0), np.zeros((m, 1))], axis=1), axis=1)
    length = np.diff(cuts, axis=1, append=1.0)
    middle = cuts + length / 2
    shift = np.arange(m)[:, None]
    flat = (places + 2 * shift).ravel()
    first = np.searchsorted(flat, middle + 2 * shift)
    last = np.searchsorted(flat, np.mod(middle + 1 / g, 1.0) + 2 * shift)
    wraps = middle + 1 / g >= 1
    low, high = np.minimum(first, last), np.maximum(first, last)
    share = g * length * weights[:, None]
    inside, outside = share * np.where(wraps, other, own), share * np.where(wraps, own, other)
    columns = np.arange(low.size).reshape(low.shape)
    starts, ends = np.broadcast_to(d * shift, low.shape), np.broadcast_to(d * (shift + 1), low.shape)
    runs = Runs(m * d, low.size, np.stack([starts, low, high]), np.stack([low, high, ends]),
                np.stack([outside, inside, outside]), columns)
    success = BestGuess(runs, np.take(prior, order).ravel()).weight_won.reshape(m, d)
    return np.bincount(order.ravel(), success.ravel(), d)
