"""Confidence intervals for numbers of neighbours from numbers of reported bits."""

import numpy as np
from scipy.stats import binom, norm

#: Variances of numbers of reported bits up to which their law is computed, and not taken for a normal one.
_EXACT = 400


def checked_level(level):
    """Return a level in (0, 1)."""
    if isinstance(level, bool) or not isinstance(level, float | int | np.floating) or not 0 < level < 1:
        raise ValueError("level must be a number between 0 and 1")
    return float(level)


class Ones:
    """The number of reported ones among so many slots, t of which have a neighbour: Bin(t, p) + Bin(slots - t, q)."""

    def __init__(self, law, slots):
        self.q, self.p, self.slots = float(law.q), float(law.p), int(slots)
        self.variance = self.slots * self.p * self.q
        self.is_exact = self.variance <= _EXACT
        self._law = law

    def cdf(self, values, t):
        """Return the probabilities of at most these numbers of ones."""
        values = np.asarray(values)
        if not self.is_exact:
            mean = self.slots * self.q + t * (self.p - self.q)
            return norm.cdf((values + 0.5 - mean) / np.sqrt(self.variance))
        # t - (flips among the t) + (flips among the others); more flips have no probability to speak of
        lost = np.arange(int(binom.isf(1e-16, t, self.q)) + 1)
        return binom.cdf(values[..., None] - t + lost, self.slots - t, self.q) @ binom.pmf(lost, t, self.q)

    def interval(self, ones, level):
        """Return (low, high), arrays of integers: t is between them with at least this probability.

        Exact tests are inverted; with a variance above 400 the law is taken for a normal one, with a correction for
        integers.
        """
        ones = np.asarray(ones, np.int64)
        if not self.is_exact:
            half = (norm.isf((1 - level) / 2) * np.sqrt(self.variance) + 0.5) / (self.p - self.q)
            center = self._law.debiased(ones, self.slots)
            low, high = np.ceil(center - half), np.floor(center + half)
            return np.clip(low, 0, self.slots), np.clip(high, 0, self.slots)
        seen, places = np.unique(ones, return_inverse=True)
        ends = np.array([self._ends(int(s), (1 - level) / 2) for s in seen], float)
        return ends[places, 0].reshape(ones.shape), ends[places, 1].reshape(ones.shape)

    def _ends(self, ones, alpha):
        """Return the least and the largest t that neither tail speaks against: both tails are monotone in t."""
        center = self._law.debiased(ones, self.slots)
        reach = (10 * np.sqrt(self.variance) + 50) / (self.p - self.q)  # (further away tails are no number)

        def first(holds):
            low, high = max(0, int(center - reach)), min(self.slots + 1, int(center + reach) + 1)
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if holds(middle) else (middle + 1, high)
            return low

        low = first(lambda t: 1 - self.cdf(ones - 1, t) > alpha)
        high = first(lambda t: self.cdf(ones, t) <= alpha) - 1
        return min(low, self.slots), max(high, 0)
