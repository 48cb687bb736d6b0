"""How large epsilon must be, from how often an event was seen with the data and with a neighbour: exact bounds."""

import math

import numpy as np
from scipy.special import bdtr, betainc, betaincinv

#: The part of the error that is spent on where the smaller probability may be.
_ASIDE = 0.01
#: Cells of that probability, runs of counts, and how many standard deviations of these are looked at.
_CELLS, _RUNS = 100, 200
#: What every p-value is raised by: relative errors of incomplete beta functions are below it.
_SLACK = 1e-9
#: How far below its test's epsilon a bound may be, relatively.
_CLOSE = 1e-5


def probability_at_least(k, n, error):
    """Return the lower end of the one-sided Clopper-Pearson interval of a probability, of arrays."""
    k, n = np.asarray(k, float), np.asarray(n, float)
    return np.where(k <= 0, 0.0, betaincinv(np.maximum(k, 1), n - k + 1, error))


def probability_at_most(k, n, error):
    """Return the upper end of the one-sided Clopper-Pearson interval of a probability, of arrays."""
    k, n = np.asarray(k, float), np.asarray(n, float)
    return np.where(k >= n, 1.0, betaincinv(k + 1, np.maximum(n - k, 1), 1 - error))


def log_ratio(p, q, delta):
    """Return ln((p - delta) / q), of arrays; minus infinity where p is at most delta."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > delta, np.log((p - delta) / q), -np.inf)


def clopper_pearson(k, n, other, n_other, delta, error):
    """Return the lower bound on epsilon from two Clopper-Pearson intervals, half of the error each; of arrays.

    What is negative stands for 0, and says how far from a bound the counts are.
    """
    return log_ratio(probability_at_least(k, n, error / 2), probability_at_most(other, n_other, error / 2), delta)


class Evidence:
    """Counts of an event, and which counts would have been at least as much evidence; `audit.md` has the proof.

    Parameters
    ----------
    k, n : int
        How often the event was seen with the data, of how many outputs.
    other, n_other : int
        The same with the neighbour.
    delta : float
    error : float
        How often a bound may exceed the truth.
    """

    def __init__(self, k, n, other, n_other, delta, error):
        self.n, self.delta, self.error, self.aside = n, delta, error, error * _ASIDE
        low = float(probability_at_least(other, n_other, self.aside / 2))
        high = float(probability_at_most(other, n_other, self.aside / 2))
        self.cells = np.linspace(low, high, _CELLS + 1)
        least = float(probability_at_least(k, n, error / 2)) - delta
        self.says_nothing = least <= 0
        if self.says_nothing:
            return
        # runs of counts of the neighbour; outside them there is nearly nothing
        first = max(0, int(other - 10 * math.sqrt(n_other * max(low, 1 / n_other)) - 40))
        last = min(n_other, int(other + 10 * math.sqrt(n_other * high) + 40))
        starts = np.unique(np.linspace(first, last, min(_RUNS, last - first + 1)).astype(np.int64))
        # as much evidence: the same ratio of the ends of both intervals, or more
        ratio = least / float(probability_at_most(other, n_other, error / 2))
        needed = delta + ratio * probability_at_most(starts, n_other, error / 2)
        self.wanted = _fewest(needed * (1 - _SLACK), n, error / 2)
        self.wanted[starts <= other] = np.minimum(self.wanted[starts <= other], k)
        below = bdtr(np.append(starts[1:] - 1, n_other), n_other, self.cells[:-1, None])
        below[:, -1] = 1.0
        before = bdtr(first - 1, n_other, self.cells[:-1, None]) if first else np.zeros((_CELLS, 1))
        self.chances = np.diff(np.hstack([before, below]), axis=1)
        self.before = before[:, 0]

    def value(self, epsilon):
        """Return an upper bound of the p-value of p <= e^epsilon q + delta; it never falls in epsilon."""
        if self.says_nothing:
            return 1.0
        most = np.minimum(1.0, math.exp(min(epsilon, 700.0)) * self.cells[1:] + self.delta)
        tails = _at_least(self.wanted, self.n, most[:, None])
        reached = (tails * np.maximum(self.chances, 0.0)).sum(axis=1) + self.before
        return self.aside + float(reached.max()) * (1 + _SLACK) + _SLACK * self.error


def _fewest(needed, n, error):
    """Return the least counts of n whose lower end is at least what is needed, at most n + 1, of an array."""
    low, high = np.zeros(len(needed), np.int64), np.full(len(needed), n + 1, np.int64)  # (none; enough)
    while (high - low > 1).any():
        middle = (low + high) // 2
        enough = _at_least(middle, n, np.minimum(needed, 1.0)) <= error
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def _at_least(k, n, p):
    """Return P[Bin(n, p) >= k], of arrays of whole numbers."""
    inside = np.clip(k, 1, n)
    return np.where(k <= 0, 1.0, np.where(k > n, 0.0, betainc(inside, n - inside + 1, p)))


def exact_bound(k, n, other, n_other, delta, error):
    """Return the largest epsilon, but for rounding down, at which the exact test rejects p <= e^epsilon q + delta.

    Parameters
    ----------
    k, n, other, n_other, delta, error
        As in `Evidence`.

    Returns
    -------
    float
        0 where the test rejects at no epsilon.
    """
    if k * n_other <= other * n:
        return 0.0
    found = Evidence(k, n, other, n_other, delta, error)
    if found.value(0.0) > error:
        return 0.0
    low, high = 0.0, max(0.0, float(log_ratio(k / n, max(other, 0.5) / n_other, delta))) + 0.01
    while found.value(high) <= error:
        low, high = high, 2 * high
    start = min(high, float(clopper_pearson(k, n, other, n_other, delta, error)))
    if low < start and found.value(start) <= error:  # (nearly always: it saves halvings)
        low = start
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if found.value(middle) <= error else (low, middle)
    return low
