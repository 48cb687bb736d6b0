"""Poisson numbers, exactly: by words, and by further digits of a uniform real where a word ties (`owners.md`)."""

import math
from bisect import bisect_left
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim.central.exact_bernoulli import exp_bounds, threshold
from dpestim.exact_reals import Real
from dpestim.records import record

#: Bits of the fixed-point terms besides those that e^-mean takes: thresholds of 64 bits are hardly ever in doubt.
_MORE_BITS = 160
_WORD = (1 << 64) - 1


class PoissonCounts:
    """What draws Poisson numbers of a mean, a Fraction, which a sub-class has as `mean`."""

    @cached_property
    def thresholds(self):
        """The first 64 digits of the probabilities of at most 0, 1, 2, ..., up to where they are all ones."""
        bits = _MORE_BITS + math.ceil(1.5 * self.mean)
        ends = exp_bounds(self.mean, 40 + math.ceil(self.mean / 2))
        terms = [math.floor(ends[0] * (1 << bits)), math.ceil(ends[1] * (1 << bits))]
        low, high = terms
        top, bottom = self.mean.numerator, self.mean.denominator
        found = []
        while True:
            k, first = len(found), low >> bits - 64
            found.append(min(first, _WORD) if first == high >> bits - 64 else threshold(self.at_most(k), 64))
            if found[-1] == _WORD:
                return np.array(found, np.uint64)
            terms = [terms[0] * top // (bottom * (k + 1)), -(-terms[1] * top // (bottom * (k + 1)))]
            low, high = low + terms[0], high + terms[1]

    def at_most(self, k):
        """Return the probability of at most k, for comparisons."""
        term = total = Fraction(1)
        for i in range(1, k + 1):
            term *= self.mean / i
            total += term
        return lambda n_digits: tuple(end * total for end in exp_bounds(self.mean, n_digits))

    def counts(self, words, ties):
        """Return Poisson numbers, by words and, where these tie with a threshold, by a stream."""
        counts = np.searchsorted(self.thresholds, words, side="left")  # (how many thresholds a word is above)
        for at in np.flatnonzero(self.thresholds[counts] == words).tolist():
            counts[at] = self._settle(int(words[at]), ties)
        return counts

    def _settle(self, word, stream):
        """Return the number, where the first 64 digits of a real do not say which."""
        real, k = Real(stream, word, 64), bisect_left(self.thresholds.tolist(), word)
        while not real.is_below(self.at_most(k)):
            k += 1
        return k


@record
class ExactPoisson(PoissonCounts):
    """The Poisson law of a mean."""

    mean: Fraction
