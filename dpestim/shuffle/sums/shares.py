"""How many shares hide what each user added to a sum: a proven bound on what split-and-mix tells beyond it.

The proof: ``ikos.md``, part 1.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

#: Users from which on a bound for all more is looked for, and up to which the recursion is carried on: for shares of 64
#: bits, 7 a user, it is found at 3,384, and at 162 for 10.
_LEAST, _FEW = 64, 4096
#: Logarithms are moved outward by this: more than what `gammaln` and sums of so many terms are off.
_OUTWARD = 1e-8
#: More shares than any number of users needs.
_MOST_SHARES = 512


def shares_distance(n, m, modulus):
    """Return an upper bound of the distance of all shares, in no order, from uniform ones of the same sum.

    Parameters
    ----------
    n : int
        Users whose shares are mixed.
    m : int
        Shares a user, at least 2.
    modulus : int
        What shares are added up by.

    Returns
    -------
    float
        A total variation distance, whatever the users add. One user alone has nobody to mix with: 1.

    Examples
    --------
    >>> import math
    >>> from dpestim.shuffle.sums.shares import least_shares, shares_distance
    >>> round(math.log2(shares_distance(10_000, 10, 1 << 32)), 1), least_shares(2.0**-40, 10_000, 1 << 32)
    (-43.9, 10)
    """
    return min(1.0, math.exp(min(1.0, log_spread(n, m, modulus) / 2)) / 2)


def least_shares(distance, n, modulus):
    """Return the least m whose `shares_distance` is at most this one; ``ValueError`` where none is."""
    wanted = 2 * math.log(2 * distance)
    for m in range(2, _MOST_SHARES):
        # (the first term of the bound is no less than half of it: far too few shares are seen at once)
        if _log_first(n, m, modulus) - 1 <= wanted and log_spread(n, m, modulus) <= wanted:
            return m
    raise ValueError("delta is too small for this number of honest users, because no number of shares suffices: take a "
                     "larger delta, or more users")


@lru_cache(maxsize=256)
def log_spread(n, m, modulus):
    """Return a bound of the logarithm of chi^2, whose root is twice the distance; infinite where none is known."""
    if n < 2:
        return math.inf  # nobody to mix with
    factorials = gammaln(np.arange(m * min(n, _FEW) + 1) + 1.0)
    log_h, known, look = math.log(modulus), np.zeros(min(n, _FEW)), _LEAST  # the logarithms of W_1, W_2, ...
    for j in range(2, len(known) + 1):
        if j == look and m >= 4:
            if _log_rest(j, m, log_h, known[: j - 1]) <= 0:  # chi^2 is at most 1 for j users and for all more
                return min(0.0, _log_rest(n, m, log_h, known[: j - 1]))
            look += look // 8  # (each look costs as much as several steps)
        spread = _log_next(j, m, log_h, known[: j - 1], factorials)
        known[j - 1] = np.logaddexp(0.0, spread)
    return spread if len(known) == n else math.inf


def _log_next(n, m, log_h, known, factorials):
    """Return the logarithm of W_n - 1 = h sum_{j < n} (1 - j / n) g_n(j) W_j, rounded up."""
    j = np.arange(1, n)
    ways = factorials[n] - factorials[1:n] - factorials[n - 1 : 0 : -1]
    places = factorials[m * n] - factorials[m : m * n : m] - factorials[m * n - m : 0 : -m]
    return _log_sum(np.log1p(-j / n) + 2 * ways - places + known) + log_h


def _log_rest(n, m, log_h, known):
    """Return the logarithm of the bound of chi^2 for n users, where W_j is known below J and at most 2 from there."""
    j = np.arange(1, len(known) + 1)
    exact = _log_parts(n, j, m) + known
    ends = [math.log(2 / n) + exact[0], math.log(4 / n) + exact[1] - known[1],
            math.log(2 * n) - (m - 2) * math.log(n * (n - 1) * (n - 2) / 6)]
    return _log_sum(np.concatenate([exact, ends])) + log_h


def _log_sum(terms):
    top = terms.max()
    return top + math.log(np.exp(terms - top).sum()) + _OUTWARD


def _log_parts(n, j, m):
    """Return the logarithms of g_n(j) = C(n, j)^2 / C(m n, m j) for j = 1, 2, ... and any n.

    They are sums of small logarithms: nothing large cancels.
    """
    last = int(j[-1])
    a, b = np.arange(min(last, n)), np.arange(min(m * last, m * n))
    ways = np.cumsum(np.log((n - a) / (a + 1)))
    places = np.cumsum(np.log((m * n - b) / (b + 1)))
    return 2 * ways[j - 1] - places[m * j - 1]


def _log_first(n, m, modulus):
    """Return the logarithm of h n^2 / C(m n, m): one user whose shares meet nobody else's."""
    return math.log(modulus) + 2 * math.log(n) - sum(math.log((m * n - i) / (i + 1)) for i in range(m))
