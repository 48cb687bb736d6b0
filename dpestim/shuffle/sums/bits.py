"""What noise bits hide: a proven bound on delta for protocols whose messages are bits. The proof: ``bits.md``."""

import math

import numpy as np
from scipy.special import betainc

#: Sums of floats are moved outward by this part of what they are sums of.
_ROUNDING = 1e-11
#: Numbers of noise bits that are looked at one by one; more are looked at in so many steps.
_STEPS = 2048
#: Standard deviations around the usual number of noise bits that are looked at.
_REACH = 16


def delta_of_bits(epsilon, flip, n_others):
    """Return an upper bound of delta for one user's bit among the bits of others, each flipped with probability `flip`.

    Parameters
    ----------
    epsilon : float
    flip : float
        From 0 to 1/2.
    n_others : int
        Users besides this one who follow the protocol.

    Returns
    -------
    float
        It falls in all three.
    """
    p = 2 * flip  # with this probability a bit is a fair coin
    middle, reach = n_others * p, _REACH * math.sqrt(n_others * p) + 2 * _REACH
    low, high = max(0, math.floor(middle - reach)), min(n_others, math.ceil(middle + reach))
    step = -(-(high - low + 1) // _STEPS)
    at = np.unique(np.concatenate([[0], np.arange(low, high + 1, step)]))
    # each number of fair coins stands for all up to the next one: fewer hide less
    upto = np.append(_cdf(at[1:] - 1, n_others, 1 - p), 1.0)
    shares = np.diff(upto, prepend=0.0) + _ROUNDING * upto
    return min(1.0, float(shares @ _delta_among(epsilon, flip, at)))


def _delta_among(epsilon, flip, n_coins):
    """Return an upper bound of delta for one bit among so many fair coins (an array), all of which are added up."""
    e = math.exp(epsilon)
    more, less = (1 - flip) - e * flip, e * (1 - flip) - flip
    if more <= 0:  # the bit keeps epsilon by itself
        return np.zeros(len(n_coins))
    at = np.ceil(more / (more + less) * (n_coins + 1)) - 1  # the largest sum that is likelier by e^epsilon
    best = np.zeros(len(n_coins))
    for t in (at - 1, at, at + 1):  # (rounding may be off by one)
        upto, below = more * _cdf(t, n_coins, 0.5), less * _cdf(t - 1, n_coins, 0.5)
        best = np.maximum(best, upto - below + _ROUNDING * (upto + below))
    return best


def _cdf(k, n, q):
    """Return the probability of at most k successes of n trials (arrays) that fail with probability q."""
    k, n = np.broadcast_arrays(np.asarray(k, np.float64), np.asarray(n, np.float64))
    inside = (k >= 0) & (k < n)
    out = np.where(k < 0, 0.0, 1.0)
    out[inside] = betainc(n[inside] - k[inside], k[inside] + 1, q)
    return out
