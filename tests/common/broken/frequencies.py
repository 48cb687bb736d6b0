"""Laws of categories that promise too much, leak besides, or are inverted wrongly."""

from fractions import Fraction

import numpy as np

from broken._make import PLAIN, face_of
from dpestim._core import olh
from dpestim.local import (
    GRRFrequencyEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    PGRFrequencyEstimator,
)
from dpestim.local.categories.grr import GRR
from dpestim.local.categories.olh import OLH
from dpestim.local.categories.pgr import PGR
from dpestim.local.categories.unary import OUE
from dpestim.privacy import category_weights, exact


class CoarseThreshold(OUE):
    """Pr[1] of a false bit is rounded down to a multiple of 1/256 (open ties: test_patterns.py)."""

    def privatize(self, codes, words, out):
        coarse = object.__new__(OUE)
        vars(coarse).update(vars(self))
        vars(coarse)["false_threshold"] = (self.false_threshold >> 56) << 56
        coarse.privatize(codes, words, out)


class Biased(GRR):
    """The estimator forgets that other users' reports support a value too."""

    def estimate(self, counts, n):
        return counts / n / float(self.p_star)


class OtherPlane(PGR):
    """Supporters are read off for the neighbouring value."""

    def supporters(self, counts):
        return np.roll(super().supporters(counts), 1)


class Understated(GRR):
    """What an audit of a large domain is told is the square root of the worst ratio."""

    def worst_ratio(self):
        return Fraction(float(super().worst_ratio()) ** 0.5)


class WrongVariance(OUE):
    """The variance without the 1 / (p* - q*)^2 of the inversion."""

    def variance(self, n, f):
        return super().variance(n, f) * self._gap**2


class WrongLine(OUE):
    """Standard errors without the 1 / (p* - q*)^2 of the inversion."""

    def variance_line(self, counts, n):
        at_zero, slope = super().variance_line(counts, n)
        return at_zero * self._gap**2, slope


class WideLine(OUE):
    """Standard errors of 1.3 times the true ones: intervals that cover too often."""

    def variance_line(self, counts, n):
        at_zero, slope = super().variance_line(counts, n)
        return at_zero * 1.69, slope * 1.69


class RatioViolated(GRR):
    """A law of twice the epsilon, honestly stated in the matrix."""

    def __init__(self, epsilon, n_categories):
        super().__init__(2 * exact.canonical_epsilon(epsilon), n_categories)


class RatioViolatedDownwards(GRR):
    """The true value is the least likely one by far: only the inverse ratio is above e^epsilon."""

    def __init__(self, epsilon, n_categories):
        super().__init__(epsilon, n_categories)
        total = self.weights.total
        keep = total // (20 * n_categories)
        other = (total - keep) // (n_categories - 1)
        self.weights = category_weights.GRRWeights(self.n_words, total - (n_categories - 1) * other, other)
        self.p_star, self.q_star = (type(self.p_star)(w, total) for w in (self.weights.keep, other))


class BudgetWasted(GRR):
    """A law of half the epsilon."""

    def __init__(self, epsilon, n_categories):
        super().__init__(exact.canonical_epsilon(epsilon) / 2, n_categories)


class CountsTwice(OUE):
    """`count` and `support` disagree."""

    def count(self, reports, counts):
        super().count(reports, counts)
        super().count(reports[:9], counts)


class LeaksBesides(OLH):
    """The response is perfect, and the seed of the public hash carries the value."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        hashed = np.empty(len(codes), out.dtype)
        olh.bucket(codes, out, self.n_buckets, hashed)
        before = (out[:, 2] - hashed) % self.n_buckets
        out[:, 0] = (out[:, 0] >> 8 << 8) | codes
        olh.bucket(codes, out, self.n_buckets, hashed)
        out[:, 2] = (hashed + before) % self.n_buckets


class LeaksALittleBesides(OLH):
    """As above, in one bit and with a chance of one in twenty: only the independence of what is public is broken."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        some = out[:, 1] % 20 == 0
        out[some, 0] = (out[some, 0] >> 1 << 1) | (codes[some] & 1)


class OwnIntervals(OUEFrequencyEstimator):
    """Intervals by the standard error at the estimate instead of the one at the end."""

    def confidence_interval(self, level=0.95):
        both = zip(self.frequencies_, self.standard_errors_)
        return [np.stack([f - 1.96 * s, f + 1.96 * s], axis=1) for f, s in both]


class RandomisesTwice(OUEFrequencyEstimator):
    """fit_transform as scikit-learn's mixin has it: one randomisation for the fit, another for the result."""

    def fit_transform(self, X, y=None, **fit_params):
        self.fit(X)
        self.random_state, kept = (self.random_state or 0) + 1, self.random_state
        try:
            return self.transform(X)
        finally:
            self.random_state = kept


#: (class, its parameters, the check that must fail)
BROKEN = [
    (face_of(GRRFrequencyEstimator, RatioViolated), PLAIN, "check_promises"),
    (face_of(GRRFrequencyEstimator, RatioViolatedDownwards), PLAIN, "check_promises"),
    (face_of(GRRFrequencyEstimator, BudgetWasted), PLAIN, "check_promises"),
    (face_of(GRRFrequencyEstimator, Understated), PLAIN, "check_worst_ratio"),
    (face_of(OLHFrequencyEstimator, LeaksBesides), PLAIN, "check_no_byte_betrays"),
    (face_of(OLHFrequencyEstimator, LeaksALittleBesides), PLAIN, "check_no_byte_betrays"),
    (face_of(OUEFrequencyEstimator, CoarseThreshold), PLAIN, "check_support_probabilities"),
    (face_of(OUEFrequencyEstimator, CountsTwice), PLAIN, "check_support_probabilities"),
    (face_of(PGRFrequencyEstimator, OtherPlane), PLAIN, "check_support_probabilities"),
    (face_of(GRRFrequencyEstimator, Biased), PLAIN, "check_estimates_are_unbiased"),
    (face_of(OUEFrequencyEstimator, WrongVariance), PLAIN, "check_variance"),
    (face_of(OUEFrequencyEstimator, WrongLine), PLAIN, "check_intervals_cover"),
    (face_of(OUEFrequencyEstimator, WideLine), PLAIN, "check_intervals_cover"),
    (OwnIntervals, PLAIN, "check_intervals_cover"),
    (RandomisesTwice, PLAIN, "check_transform"),
]
