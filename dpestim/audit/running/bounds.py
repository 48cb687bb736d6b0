"""How large epsilon must be, from how often an event was seen with the data and with a neighbour: exact bounds."""

import math

import numpy as np
from scipy.special import bdtr, betainc, betaincinv

#: The part of the error that is spent on where the smaller probability may be.
_ASIDE = 0.01
#: Cells of that probability, at first and at most (a power of 2 times as many), and runs of counts.
_CELLS, _SMALLEST, _RUNS = 8, 128, 160
#: What every p-value is raised by: relative errors of incomplete beta functions are below it.
_SLACK = 1e-9
#: What sums of differences of probabilities are raised by.
_ROUNDING = 1e-13
#: How far below its test's epsilon a bound may be, relatively.
_CLOSE = 1e-4


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
        self.n, self.n_other, self.delta, self.error, self.aside = n, n_other, delta, error, error * _ASIDE
        self.low = float(probability_at_least(other, n_other, self.aside / 2))
        self.high = float(probability_at_most(other, n_other, self.aside / 2))
        self._known = {}
        least = float(probability_at_least(k, n, error / 2)) - delta
        self.says_nothing = least <= 0
        if self.says_nothing:
            return
        # runs of counts of the neighbour; outside them there is nearly nothing
        first = max(0, int(other - 10 * math.sqrt(n_other * max(self.low, 1 / n_other)) - 40))
        last = min(n_other, int(other + 10 * math.sqrt(n_other * self.high) + 40))
        starts = np.unique(np.linspace(first, last, min(_RUNS, last - first + 1)).astype(np.int64))
        # as much evidence: the same ratio of the ends of both intervals, or more
        ratio = least / float(probability_at_most(other, n_other, error / 2))
        needed = delta + ratio * probability_at_most(starts, n_other, error / 2)
        self.wanted = _fewest(needed * (1 - _SLACK), n, error / 2)
        self.wanted[starts <= other] = np.minimum(self.wanted[starts <= other], k)
        self.ends = np.append(starts[1:] - 1, n_other)
        self.first = first

    def rejects(self, epsilon):
        """Return whether p <= e^epsilon q + delta is rejected: whether its p-value is surely at most the error.

        It never turns from False to True as epsilon grows.
        """
        if self.says_nothing:
            return False
        # the p-value is a supremum over q: cells of q that may be too large are halved until they are not, or are small
        size, places = _CELLS, list(range(_CELLS))
        while places:
            values = self._values(epsilon, size, places)
            if size >= _SMALLEST:
                return not (values > self.error).any()
            large = [place for place, value in zip(places, values) if value > self.error]
            if len(large) > 2:  # (is the largest one too large, however small the cells are?)
                worst, fine = places[int(np.argmax(values))], size
                while fine < _SMALLEST:
                    fine, halves = 2 * fine, [2 * worst, 2 * worst + 1]
                    values = self._values(epsilon, fine, halves)
                    worst = halves[int(np.argmax(values))]
                if values.max() > self.error:
                    return False
            size, places = 2 * size, [half for place in large for half in (2 * place, 2 * place + 1)]
        return True

    def _values(self, epsilon, size, places):
        """Return upper bounds of the p-value in some of so many cells of the interval of q."""
        for place in places:
            if (size, place) not in self._known:
                self._known[size, place] = self._cell(size, place)
        ends, chances, before = map(np.array, zip(*(self._known[size, place] for place in places)))
        most = np.minimum(1.0, math.exp(min(epsilon, 700.0)) * ends + self.delta)
        tails = _at_least(self.wanted, self.n, most[:, None])
        return self.aside + ((tails * chances).sum(axis=1) + before) * (1 + _SLACK) + _SLACK * self.error + _ROUNDING

    def _cell(self, size, place):
        """Return (upper end of a cell of q, chances of the runs at its lower end, chance of what is below them)."""
        width = (self.high - self.low) / size
        q = self.low + place * width
        below = bdtr(self.ends, self.n_other, q)
        below[-1] = 1.0
        before = float(bdtr(self.first - 1, self.n_other, q)) if self.first else 0.0
        return q + width * (1 + _SLACK), np.maximum(np.diff(below, prepend=before), 0.0), before


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


def largest_bound(n, delta, error):
    """Return the largest bound that n outputs of each of the data can show."""
    return exact_bound(n, n, 0, n, delta, error)


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
    if not found.rejects(0.0):
        return 0.0
    low, high = 0.0, max(0.0, float(log_ratio(k / n, max(other, 0.5) / n_other, delta))) + 0.01
    while found.rejects(high):
        low, high = high, 2 * high
    start = min(high, float(clopper_pearson(k, n, other, n_other, delta, error)))
    if low < start and found.rejects(start):  # (nearly always: it saves halvings)
        low = start
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if found.rejects(middle) else (low, middle)
    return low
