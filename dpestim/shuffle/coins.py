"""What noise bits hide: a proven bound on delta for protocols whose messages are bits. The proof: ``coins.md``."""

import math
from itertools import pairwise

import numpy as np
from scipy.special import betaincc, gammaln, xlog1py, xlogy

#: Sums of floats are moved outward by this part of what they are sums of.
_ROUNDING = 1e-11
#: Where logarithms of factorials are part of it.
_OF_PMF = 1e-9
#: Numbers of coins that are looked at one by one, or in so many steps; in fewer where a user has several bits.
_STEPS, _FEW_STEPS = 2048, 64
#: Standard deviations around the usual number of noise bits that are looked at.
_REACH = 16


def delta_of_bits(epsilon, flip, n_others, n_bits=1):
    """Return an upper bound of delta for one user's bits among those of others, each flipped with probability `flip`.

    Parameters
    ----------
    epsilon : float
    flip : float
        From 0 to 1/2.
    n_others : int
        Users besides this one who follow the protocol.
    n_bits : int, default=1
        Bits a user, all of which may differ.

    Returns
    -------
    float
        It falls in the first three.
    """
    return delta_among(epsilon, flip, n_others * n_bits, 2 * flip, n_bits)


def delta_among(epsilon, flip, n, p, n_bits=1):
    """Return the same where fair coins hide the bits: n of them are tossed, or not, each with probability p."""
    middle, reach = n * p, _REACH * math.sqrt(n * p) + 2 * _REACH
    low, high = max(0, math.floor(middle - reach)), min(n, math.ceil(middle + reach))
    numbers = high - low + 1
    step = -(-numbers // (_STEPS if n_bits == 1 or numbers <= 4 * _FEW_STEPS else _FEW_STEPS))
    at = np.unique(np.concatenate([[0], np.arange(low, high + 1, step)]))
    # each number of fair coins stands for all up to the next one: fewer hide less
    upto = np.append(_cdf(at[1:] - 1, n, p), 1.0)
    shares = np.diff(upto, prepend=0.0) + _ROUNDING * upto
    if n_bits == 1:
        return min(1.0, float(shares @ _one_among(epsilon, flip, at)))
    own = _pmf(np.arange(n_bits + 1), n_bits, flip)
    matter = shares > 1e-30  # (of the others delta is at most 1)
    total = sum(share * _many_among(epsilon, own, coins) for share, coins in zip(shares[matter], at[matter]))
    return min(1.0, float(total + shares[~matter].sum()))


def _one_among(epsilon, flip, n_coins):
    """Return an upper bound of delta for one bit among so many fair coins (an array), all of which are added up."""
    e = math.exp(epsilon)
    more, less = (1 - flip) - e * flip + 2.0**-51 * (1 + e), e * (1 - flip) - flip  # (not below the truth)
    if more <= 0:  # the bit keeps epsilon by itself
        return np.zeros(len(n_coins))
    at = np.ceil(more / (more + less) * (n_coins + 1)) - 1  # the largest sum that is likelier by e^epsilon
    best = np.zeros(len(n_coins))
    sums = [_cdf(at + k, n_coins, 0.5) for k in (-2, -1, 0, 1)]
    for before, now in pairwise(sums):  # (rounding may be off by one)
        upto, below = more * now, less * before
        best = np.maximum(best, upto - below + _ROUNDING * (upto + below))
    return best


def _many_among(epsilon, own, n_coins):
    """Return the same for several bits of a user, of which so many (probabilities) are ones if all were zeros."""
    e, r = math.exp(epsilon), len(own) - 1

    low, high = -1, n_coins + r  # the gap rises up to its maximum and falls from there
    while high - low > 2:
        middle = (low + high) // 2
        first, last = max(0, middle - n_coins), min(r, middle)  # bits of the user's own that leave a sum of the coins
        i = np.arange(first, last)
        logs = np.append(0.0, np.cumsum(np.log((middle - i) / (n_coins - middle + i + 1))))
        coins = np.exp(logs - logs.max())  # of the coins' probabilities, as ratios: far out they would all be 0
        mine, other = own[first : last + 1] @ coins, own[::-1][first : last + 1] @ coins
        low, high = (middle, high) if mine > e * other else (low, middle)
    # how much likelier a sum of at most t is, beyond e^epsilon, rounded up, for each t around the maximum
    tried = high - low + 3
    upto = _cdf(high + 1 - np.arange(r + tried), n_coins, 0.5)  # (they share nearly all sums of the coins)
    upto = np.lib.stride_tricks.sliding_window_view(upto, r + 1)
    more, less = upto @ own, e * (upto @ own[::-1])
    return max(0.0, float((more - less + _OF_PMF * (more + less)).max()))


def _pmf(k, n, p):
    """Return the probability of each of k successes (integers from 0 to n) of n trials, to a relative 1e-9."""
    return np.exp(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + xlog1py(n - k, -p))


def _cdf(k, n, p):
    """Return the probability of at most k successes of n trials (arrays), each with probability p."""
    k, n = np.broadcast_arrays(np.asarray(k, np.float64), np.asarray(n, np.float64))
    inside = (k >= 0) & (k < n)
    out = np.where(k < 0, 0.0, 1.0)
    out[inside] = betaincc(k[inside] + 1, n[inside] - k[inside], p)
    return out
