"""Who is a neighbour of whom in a secure sum, and of how many of them the shares recover a seed (`secure_sum.md`)."""

from functools import lru_cache

import numpy as np


def around_ring(lots, k):
    """Return the k neighbours (n, k) of each of n users: those beside them on a ring in the order of words (n, 2)."""
    n = len(lots)
    ring = np.lexsort(lots.T)
    steps = np.delete(np.arange(-(k // 2), k - k // 2 + 1), k // 2)
    neighbours = np.empty((n, k), np.int64)
    neighbours[ring] = ring[(np.arange(n)[:, np.newaxis] + steps) % n]
    return neighbours


@lru_cache(maxsize=64)
def graph_of(n, dropped, corrupt):
    """Return the fewest neighbours and the threshold that fail with probability at most 2^-40 (secure_sum.md)."""
    from scipy.stats import hypergeom

    def best(k):
        thresholds = np.arange(1, k + 1)
        unsafe = hypergeom.sf(thresholds - 1, n - 1, corrupt, k)  # as many corrupt neighbours
        lost = hypergeom.cdf(thresholds - 1, n - 1, n - 1 - min(dropped, n - 1), k)  # fewer survivors
        parted = (min(n, dropped + corrupt) / n) ** (k // 2)
        failure = n * (unsafe + lost + parted)
        at = int(np.argmin(failure))
        return failure[at] <= 2.0**-40, int(thresholds[at])

    low, high = 1, 2  # halves of k; those of low are too few
    while 2 * high < n - 1 and not best(2 * high)[0]:
        low, high = high, 2 * high
    if 2 * high >= n - 1 and (n < 4 or not best(2 * ((n - 2) // 2))[0]):
        # all are neighbours: nothing is left to chance
        return n - 1, max(1, min(n - 1, corrupt + 1))
    high = min(high, (n - 2) // 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if best(2 * middle)[0] else (middle, high)
    return 2 * high, best(2 * high)[1]
