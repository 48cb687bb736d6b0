"""Two-sided geometric noise for a number of each user, with words of the user; proof: ``two_sided.md``."""

import math
from fractions import Fraction
from functools import cached_property
from itertools import chain

import numpy as np

from dpestim.graph.lists.flips import gap_table, pieces_of, words_of
from dpestim.privacy.exact import WORD, exp_lower, within
from dpestim.records import record
from dpestim.rng import Stage

#: Users of a run.
_RUN = 1 << 16
#: Below, a user would need thousands of words.
_LEAST_EPSILON = Fraction(1, 10**6)
#: The largest standard deviation of a sum whose law is computed integer by integer.
_FINE = 1 << 15


@record
class TwoSidedLaw:
    """P[Z = z] = (1 - r) / (1 + r) r^abs(z), with a rational number r of at least e^-epsilon, and hardly more."""

    epsilon: Fraction

    def __post_init__(self):
        if self.epsilon < _LEAST_EPSILON:
            raise ValueError("epsilon is too small for noise of single users: it must be at least 1e-6")

    @cached_property
    def ratio(self):
        """What one step further costs, a Fraction."""
        ratio = Fraction(math.ceil(WORD / exp_lower(self.epsilon)), WORD)
        if not (ratio < 1 and within(ratio.denominator, ratio.numerator, self.epsilon)):
            raise ValueError("epsilon is too small for noise of single users: take a larger epsilon")
        return ratio

    @property
    def variance(self):
        """The variance, 2 r / (1 - r)^2."""
        return float(2 * self.ratio / (1 - self.ratio) ** 2)

    def chances(self, values):
        """Return the probabilities of integers."""
        r = float(self.ratio)
        return float((1 - self.ratio) / (1 + self.ratio)) * r ** np.abs(values)

    def cdf(self, values):
        """Return the probabilities of at most these integers."""
        r, size = float(self.ratio), np.abs(np.asarray(values, float))
        return np.where(np.asarray(values) >= 0, 1 - r ** (size + 1) / (1 + r), r**size / (1 + r))

    def draw(self, source, users):
        """Return an integer for each of ascending users."""
        reader = source.reader()
        drawn = [self._draw(reader, users[a:b]) for a, b in pieces_of(users, _RUN)]
        return np.concatenate(drawn) if drawn else np.empty(0, np.int64)

    def _draw(self, reader, users):
        """Return the difference of two geometric numbers, of which each takes one word, or more where that says so."""
        run, first = divmod(int(users[0]), _RUN)
        gaps = gap_table(1 - self.ratio)
        words = reader.dense(Stage.RESPONSE, 0, run, 2 * first, 2 * len(users)).reshape(-1, 2)
        found = np.searchsorted(gaps.thresholds, words, side="right") - 1
        more = (found == gaps.longest) | ((found > 0) & (gaps.thresholds[found] == words))
        numbers = found[:, 0] - found[:, 1]
        for k in np.flatnonzero(more.any(axis=1)).tolist():
            stream = chain(words[k].tolist(), words_of(reader, run, first + k))
            numbers[k] = gaps.geometric(stream) - gaps.geometric(stream)
        return numbers.astype(np.int64)

    def half_width(self, n, level):
        """Return the least integer that the size of a sum of n exceeds with a probability of 1 - level at most."""
        rate, unit = -math.log(float(self.ratio)), 1
        deviation = math.sqrt(n * self.variance)
        while deviation > _FINE:  # (on a grid of `unit` integers, which is much finer than the deviation)
            rate, unit, deviation = 2 * rate, 2 * unit, deviation / 2
        size = 1 << math.ceil(math.log2(96 * deviation + 256))
        r = math.exp(-rate)
        # the characteristic function of one number, to the n-th power, at the frequencies of a grid of `size` integers
        one = (1 - r) ** 2 / (1 - 2 * r * np.cos(2 * np.pi * np.arange(size // 2 + 1) / size) + r * r)
        law = np.maximum(np.fft.irfft(one**n, size), 0)
        inside = law[0] + 2 * np.cumsum(np.concatenate([[0], law[1 : size // 2]]))
        at = int(np.searchsorted(inside, level * (1 - 1e-12)))
        return at if unit == 1 else (at + 1) * unit
