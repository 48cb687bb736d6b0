"""Relaxed laws of categories that protect other values than they were told to, or promise too much."""

from fractions import Fraction

import numpy as np

from broken._make import face_of
from dpestim.local import (
    MetricFrequencyEstimator,
    SDGRRFrequencyEstimator,
    URAPFrequencyEstimator,
    URRFrequencyEstimator,
)
from dpestim.local.categories.column import CategoryColumn
from dpestim.local.categories.metric import Metric
from dpestim.local.categories.sdgrr import SDGRR
from dpestim.local.categories.urap import URAP
from dpestim.local.categories.urr import URR
from dpestim.local.law import ALL, Promise
from dpestim.privacy.exact import WORD, log_upper

LOW = {"epsilon": 1.0, "categories": [["a", "b", "c", "d"]], "low_sensitivity": [["b", "c"]]}
OPEN = {"epsilon": 1.0, "categories": [["a", "b", "c", "d"]], "non_sensitive": [["b", "c"]]}
FAR = {"epsilon": 1.0, "categories": [["a", "b", "c"]], "distance": [[[0, 1, 2], [1, 0, 1], [2, 1, 0]]]}
LONE = {"epsilon": 1.0, "categories": [["a", "b", "c"]], "non_sensitive": [["b", "c"]]}


class OthersLow(SDGRR):
    """Protects b, which was named, in place of d, which was not: its own words are honest about it."""

    def __init__(self, epsilon, n_categories, low_sensitivity):
        super().__init__(epsilon, n_categories, tuple(c + 1 for c in low_sensitivity))


class OthersOpen(URR):
    """The same, of what may be revealed."""

    def __init__(self, epsilon, n_categories, non_sensitive):
        super().__init__(epsilon, n_categories, tuple(c + 1 for c in non_sensitive))


class OneMoreOpen(URAP):
    """Reveals a besides."""

    def __init__(self, epsilon, n_categories, non_sensitive):
        super().__init__(epsilon, n_categories, (0, *non_sensitive))


class FalseColumn(CategoryColumn):
    """Leaves out that in strict mode whatever is not declared counts as the first category."""

    def relaxed_inputs(self):
        return super().relaxed_inputs().split(", and any value not in ")[0] + "]"


class NamesAnotherSet(SDGRRFrequencyEstimator):
    """The promise about these people bears the name of one about fewer."""

    def _with_laws(self, encoders):
        return [FalseColumn(column.encoder, column.law) for column in super()._with_laws(encoders)]


class OthersLowUnsaid(SDGRR):
    """Treats others as low than its guarantee says."""

    def transition_matrix(self):
        order = np.roll(np.arange(self.n_categories), 1)
        rows = super().transition_matrix()
        return [[rows[x][y] for y in order] for x in order]


class LowFromLow(SDGRR):
    """Says that low categories are protected from each other as from high ones."""

    @property
    def promises(self):
        low_high = log_upper(self.low_star / self.q_star)
        return tuple(p._replace(epsilon=low_high) if p[:2] == ("low", "low") else p for p in super().promises)


class TooPlain(URR):
    """A relaxation that pretends to be none."""

    @property
    def promises(self):
        return (*super().promises[:-1], Promise(ALL, ALL, ALL, self.epsilon))


class HighFromLow(SDGRR):
    """Says nothing of who is told apart from whom but that it may be anybody, though high ones are protected."""

    relaxation = "another model"

    @property
    def promises(self):
        return super().promises[1:]


class RevealsMore(URAP):
    """Non-sensitive bits are 1 as often as the own bit of a sensitive one, and the law says so."""

    def __init__(self, epsilon, n_categories, non_sensitive):
        super().__init__(epsilon, n_categories, non_sensitive)
        self.reveal_threshold = self.true_threshold
        self.reveal_star = Fraction(self.reveal_threshold, WORD)


class OwnBitByItself(URAP):
    """Non-sensitive bits of others are left as they were drawn."""

    def privatize(self, codes, words, out):
        plain = object.__new__(URAP)
        vars(plain).update(vars(self), n_relaxed=0)
        plain.privatize(codes, words, out)


class NeverHides(URR):
    """Everybody says what they hold, so that who holds the only sensitive category stands alone."""

    def privatize(self, codes, words, out):
        out[:, 0] = codes


class AllKnown(SDGRR):
    """The variance as if the share of high categories were known."""

    def _low_variances(self):
        own, high = self.low_star, self.q_star
        return own * (1 - own) / own**2, Fraction(0), high * (1 - high) / own**2


class Certain(URR):
    """Says that it knows how many hold a non-sensitive category, some of whom hide."""

    def variance_line(self, counts, n):
        at_zero, slope = super().variance_line(counts, n)
        return at_zero, np.where(self.is_relaxed, 0.0, slope)


class NotUndone(SDGRR):
    """The estimator forgets that high categories add to the counts of low ones."""

    def estimate(self, counts, n):
        f = super().estimate(counts, n)
        f[self.is_relaxed] = counts[self.is_relaxed] / n / float(self.low_star)
        return f


class Nearer(Metric):
    """Calls values half as far apart as its law takes them to be."""

    def relaxed_between(self, x, other):
        return super().relaxed_between(x, other) / 2


#: (class, its parameters, the check that must fail)
BROKEN = [
    (face_of(SDGRRFrequencyEstimator, OthersLow), LOW, "check_declared_inputs"),
    (face_of(URRFrequencyEstimator, OthersOpen), OPEN, "check_declared_inputs"),
    (face_of(URAPFrequencyEstimator, OneMoreOpen), OPEN, "check_declared_inputs"),
    (NamesAnotherSet, {**LOW, "low_sensitivity": [["b", "a"]]}, "check_declared_inputs"),
    (face_of(SDGRRFrequencyEstimator, OthersLowUnsaid), LOW, "check_promises"),
    (face_of(SDGRRFrequencyEstimator, LowFromLow), LOW, "check_promises"),
    (face_of(SDGRRFrequencyEstimator, HighFromLow), LOW, "check_promises"),
    (face_of(MetricFrequencyEstimator, Nearer), FAR, "check_promises"),
    (face_of(URRFrequencyEstimator, TooPlain), OPEN, "check_promises"),
    (face_of(URAPFrequencyEstimator, RevealsMore), OPEN, "check_promises"),
    (face_of(URAPFrequencyEstimator, OwnBitByItself), OPEN, "check_kernel_follows_law"),
    (face_of(URRFrequencyEstimator, NeverHides), LONE, "check_no_byte_betrays"),
    (face_of(SDGRRFrequencyEstimator, AllKnown), LOW, "check_variance"),
    (face_of(URRFrequencyEstimator, Certain), OPEN, "check_variance"),
    (face_of(URRFrequencyEstimator, Certain), OPEN, "check_intervals_cover"),
    (face_of(SDGRRFrequencyEstimator, NotUndone), LOW, "check_estimates_are_unbiased"),
]
