"""Deliberately broken mechanisms, one fault each: what `dpestim.testing` must reject."""

import threading

import numpy as np

from dpestim._core import grr, olh
from dpestim.local import (
    GRRFrequencyEstimator,
    MeanEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    PMTransformer,
    SDPMTransformer,
)
from dpestim.local._grr import GRR
from dpestim.local._olh import OLH
from dpestim.local._pm import PM
from dpestim.local._sdpm import SDPM
from dpestim.local._unary import OUE
from dpestim.privacy import exact
from dpestim.privacy.config import get_config
from dpestim.rng import Stage, Words


class WrongThreshold(GRR):
    """The kernel keeps the true value 5 % more often than the stated law says."""

    def privatize(self, codes, words, out):
        keep = min(self.weights.keep + self.weights.keep // 20, self.weights.total - self.n_categories)
        other = (self.weights.total - keep) // (self.n_categories - 1)
        keep = self.weights.total - (self.n_categories - 1) * other
        grr.privatize(codes, words.dense(Stage.RESPONSE, self.n_words), keep, other, out.reshape(-1))


class WrongTieBreak(OUE):
    """Ties of the first byte are never settled: Pr[1] of a false bit is rounded down to a multiple of 1/256."""

    def privatize(self, codes, words, out):
        coarse = object.__new__(OUE)
        vars(coarse).update(vars(self))
        vars(coarse)["false_threshold"] = (self.false_threshold >> 56) << 56
        coarse.privatize(codes, words, out)


class Biased(GRR):
    """The estimator forgets that other users' reports support a value too."""

    def estimate(self, counts, n):
        return counts / n / float(self.p_star)


class WrongVariance(OUE):
    """The variance without the 1 / (p* - q*)^2 of the inversion."""

    def variance(self, n, f):
        return super().variance(n, f) * self._gap**2


class WrongLine(OUE):
    """Standard errors without the 1 / (p* - q*)^2 of the inversion."""

    def variance_line(self, counts, n):
        at_zero, slope = super().variance_line(counts, n)
        return at_zero * self._gap**2, slope


class ThreadNoise(OLH):
    """Noise belongs to the thread that happens to run the block."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        out[:, 2] = (out[:, 2] + len(threading.current_thread().name)) % self.n_buckets


class BlockOrder(GRR):
    """State is carried from block to block."""

    calls = 0

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        type(self).calls += 1
        out[:, 0] = (out[:, 0] + type(self).calls) % self.n_categories


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
        self.weights = exact.GRRWeights(self.n_words, total - (n_categories - 1) * other, other)
        self.p_star, self.q_star = (type(self.p_star)(w, total) for w in (self.weights.keep, other))


class BudgetWasted(GRR):
    """A law of half the epsilon."""

    def __init__(self, epsilon, n_categories):
        super().__init__(exact.canonical_epsilon(epsilon) / 2, n_categories)


class NoDistribution(GRR):
    """The weights of a row do not sum to one."""

    def transition_matrix(self):
        return [[p * 2 for p in row] for row in super().transition_matrix()]


class FirstWord:
    """Words of which every row gets those of the first one."""

    def __init__(self, words):
        self._words = words

    def dense(self, stage, per_row):
        drawn = self._words.dense(stage, per_row).reshape(-1, per_row)
        return np.repeat(drawn[:1], len(drawn), axis=0).reshape(-1)

    def __getattr__(self, name):
        return getattr(self._words, name)


class RepeatedRows(GRR):
    """Every row of a block uses the words of its first row."""

    def privatize(self, codes, words, out):
        super().privatize(codes, FirstWord(words), out)


class RepeatedBlocks(OUE):
    """Every block uses the words of block 0."""

    def privatize(self, codes, words, out):
        column, _ = words._at
        super().privatize(codes, Words(words._reader, column, 0, words._first, words._n_rows), out)


class RepeatedColumns(OLH):
    """Every column uses the words of column 0."""

    def privatize(self, codes, words, out):
        _, block = words._at
        super().privatize(codes, Words(words._reader, 0, block, words._first, words._n_rows), out)


class RepeatedCalls(GRR):
    """The noise is a function of the row alone: every call repeats it."""

    def privatize(self, codes, words, out):
        fixed = np.random.default_rng(words._first).integers(0, 1 << 64, len(codes), dtype=np.uint64)
        grr.privatize(codes, fixed, self.weights.keep, self.weights.other, out.reshape(-1))


class CountsTwice(OUE):
    """`count` and `support` disagree."""

    def count(self, reports, counts):
        super().count(reports, counts)
        super().count(reports[:1], counts)


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


class AnythingGoes(OLH):
    """No report is refused."""

    def check_reports(self, reports):
        pass


def broken(face, randomizer):
    """Return the face with the broken randomizer in place of its own."""
    cls = type(randomizer.__name__ + "Face", (face,), {"_randomizer": randomizer, "__module__": __name__})
    return globals().setdefault(cls.__name__, cls)  # so that it can be pickled, and is made once


class ShowsTheValue(GRRFrequencyEstimator):
    """An error message that shows the private value."""

    def _checked_X(self, X, plan=None):
        X = super()._checked_X(X, plan)
        for row in np.asarray(X, dtype=object)[:, -1:]:
            if isinstance(row[0], str) and row[0].startswith("value-that"):
                raise ValueError(f"column {X.shape[1] - 1}: unknown category {row[0]}")
        return X


class ChangesBeforeFailing(GRRFrequencyEstimator):
    """State is touched before the input has been checked."""

    def fit(self, X, y=None):
        self._forget()
        return super().fit(X, y)


class RandomisesTwice(OUEFrequencyEstimator):
    """fit_transform as scikit-learn's mixin has it: one randomisation for the fit, another for the result."""

    def fit_transform(self, X, y=None, **fit_params):
        self.fit(X)
        self.random_state, kept = (self.random_state or 0) + 1, self.random_state
        try:
            return self.transform(X)
        finally:
            self.random_state = kept


class FloatEpsilon(OLHFrequencyEstimator):
    """Charges the float's own binary value instead of the canonical epsilon."""

    @property
    def privacy_(self):
        return type(super().privacy_)(float(self.epsilon) * (1 - 1e-12), seeded=super().privacy_.seeded)


#: (estimator class, the checks of which at least one must fail)
BROKEN = [
    (broken(GRRFrequencyEstimator, WrongThreshold), "check_kernel_follows_law"),
    (broken(OUEFrequencyEstimator, WrongTieBreak), "check_support_probabilities"),
    (broken(GRRFrequencyEstimator, Biased), "check_estimates_are_unbiased"),
    (broken(OUEFrequencyEstimator, WrongVariance), "check_variance"),
    (broken(OUEFrequencyEstimator, WrongLine), "check_intervals_cover"),
    (broken(OLHFrequencyEstimator, ThreadNoise), "check_threads_and_blocks"),
    (broken(GRRFrequencyEstimator, BlockOrder), "check_threads_and_blocks"),
    (broken(GRRFrequencyEstimator, RatioViolated), "check_worst_ratio"),
    (broken(GRRFrequencyEstimator, RatioViolatedDownwards), "check_worst_ratio"),
    (broken(GRRFrequencyEstimator, BudgetWasted), "check_budget_is_used"),
    (broken(GRRFrequencyEstimator, NoDistribution), "check_rows_sum_to_one"),
    (broken(GRRFrequencyEstimator, RepeatedRows), "check_words_are_never_repeated"),
    (broken(OUEFrequencyEstimator, RepeatedBlocks), "check_words_are_never_repeated"),
    (broken(OLHFrequencyEstimator, RepeatedColumns), "check_words_are_never_repeated"),
    (broken(GRRFrequencyEstimator, RepeatedCalls), "check_words_are_never_repeated"),
    (broken(OUEFrequencyEstimator, CountsTwice), "check_support_probabilities"),
    (broken(OLHFrequencyEstimator, LeaksBesides), "check_no_byte_betrays"),
    (broken(OLHFrequencyEstimator, LeaksALittleBesides), "check_no_byte_betrays"),
    (broken(OLHFrequencyEstimator, AnythingGoes), "check_bad_input"),
    (ShowsTheValue, "check_bad_input"),
    (ChangesBeforeFailing, "check_bad_input"),
    (RandomisesTwice, "check_transform"),
    (FloatEpsilon, "check_privacy_statement"),
]


# -------------------------------------------------------------------------------------------------------- numbers


class WindowShifted(PM):
    """The window stands one code too high."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        out[:, 0] = np.minimum(out[:, 0] + (out[:, 0] > 2), self.n_counts - 1)


class NeverRounds(PM):
    """Values between two grid points always go to the lower one."""

    def privatize(self, codes, words, out):
        super().privatize(codes >> 32 << 32, words, out)


class TwiceTheEpsilon(PM):
    """A law of twice the epsilon, honestly stated in the matrix."""

    def __init__(self, epsilon, grid):
        super().__init__(2 * exact.canonical_epsilon(epsilon), grid)
        self.epsilon = self.epsilon / 2


class HalfTheEpsilon(PM):
    """A law of half the epsilon."""

    def __init__(self, epsilon, grid):
        super().__init__(exact.canonical_epsilon(epsilon) / 2, grid)
        self.epsilon = 2 * self.epsilon


class ShrunkPositions(PM):
    """Positions a thousandth too close to the middle: unbiased no more."""

    def __init__(self, epsilon, grid):
        super().__init__(epsilon, grid)
        self.step = self.step * 999 / 1000


class WrongSpread(PM):
    """The variance without what the input's position adds."""

    def variance(self):
        return np.full(self.n_inputs, super().variance().min())


class ClipsBadly(PM):
    """Values beyond the upper bound wrap around."""

    def encode(self, x, low, high, out):
        super().encode(np.where(x > high, low, x), low, high, out)


class OneWord(PM):
    """All rows of a block use the words of its first row."""

    def privatize(self, codes, words, out):
        super().privatize(codes, FirstWordOfNumbers(words), out)


class FirstWordOfNumbers(FirstWord):
    """The same, for the words of the rounding too."""

    def halves(self, stage):
        drawn = self._words.halves(stage)
        return np.repeat(drawn[:1], len(drawn))


class ThreadNumbers(PM):
    """Noise belongs to the thread that happens to run the block."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        out[:, 0] = (out[:, 0] + len(threading.current_thread().name)) % self.n_counts


class LowLeaks(SDPM):
    """The largest input, a high one, is answered as if it were low: the stated matrix says so."""

    def transition_matrix(self):
        rows = super().transition_matrix()
        rows[len(self.high_points) - 1] = rows[-1]
        return rows


class Unsaid(SDPM):
    """Two cells, and an epsilon that pretends to be plain."""

    @property
    def plain_epsilon(self):
        return self.epsilon


class OnlyTheMiddle(SDPM):
    """One level, whose bias is looked up at the middle that it stands for and not at the ends."""

    def __init__(self, epsilon, grid, low_from, low_to, n_levels, merged):
        super().__init__(epsilon, grid, low_from, low_to, 1, merged)

    def mean_values(self):
        values, _ = super().mean_values()
        return values, float(np.abs(self.expect(values) - [float(x) for x in self.inputs()]).max())


def broken_numbers(face, randomizer):
    """Return a transformer with the broken randomizer in place of its own."""
    own = face._make_randomizer

    def make(self, share, column, low, high, n_columns):
        good = own(self, share, column, low, high, n_columns)
        return randomizer.make(share, *good.__reduce__()[1][1:])

    cls = type(randomizer.__name__ + "Face", (face,), {"_make_randomizer": make, "__module__": __name__})
    return globals().setdefault(cls.__name__, cls)


class ForgetsItWasStrict(PMTransformer):
    """Is as strict as the place where it is called."""

    def _is_strict(self):
        return get_config()["strict"]


class FitCharges(PMTransformer):
    """Fit spends although it releases nothing."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self._charge(self.privacy_, len(X))
        return self


class ForgetsItsBounds(PMTransformer):
    """Bounds learned from the data, and a guarantee that does not say so."""

    def _infer(self, X):
        columns = super()._infer(X)
        columns.inferred = False
        return columns


#: (transformer class, the check that must fail)
BROKEN_NUMBERS = [
    (broken_numbers(PMTransformer, WindowShifted), "check_kernel_follows_law"),
    (broken_numbers(PMTransformer, NeverRounds), "check_rounding"),
    (broken_numbers(PMTransformer, TwiceTheEpsilon), "check_ratios_by_input"),
    (broken_numbers(PMTransformer, HalfTheEpsilon), "check_ratios_by_input"),
    (broken_numbers(PMTransformer, ShrunkPositions), "check_mean_is_exact"),
    (broken_numbers(SDPMTransformer, OnlyTheMiddle), "check_mean_is_exact"),
    (broken_numbers(PMTransformer, WrongSpread), "check_variance"),
    (broken_numbers(PMTransformer, ClipsBadly), "check_encoding"),
    (broken_numbers(PMTransformer, OneWord), "check_words_are_never_repeated"),
    (broken_numbers(PMTransformer, ThreadNumbers), "check_threads_and_blocks"),
    (broken_numbers(SDPMTransformer, LowLeaks), "check_ratios_by_input"),
    (broken_numbers(SDPMTransformer, Unsaid), "check_ratios_by_input"),
    (ForgetsItWasStrict, "check_strict_mode_stays"),
    (FitCharges, "check_freeze_and_charge"),
    (ForgetsItsBounds, "check_privacy_statement"),
]


class ForgetsTheOthers(MeanEstimator):
    """The mean of SDPM's reports as they are: biased towards the middle."""

    def _numbers(self):
        columns = self._columns
        return [columns.to_units(r.positions, j) for j, r in enumerate(columns.randomizers)]


class CountsNothing(MeanEstimator):
    """A merge that loses the other's counts."""

    def merge(self, other, *, users="disjoint"):
        return self if self._n_users else super().merge(other, users=users)


class PaysTwice(MeanEstimator):
    """The estimator charges what its transformer has already charged."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self.transformer_.privatize(X)
        return self


class TouchesWhatItWasGiven(MeanEstimator):
    """Works on the transformer itself instead of a clone."""

    @staticmethod
    def _clone(transformer):
        return transformer


class NeverTellsOfScores(MeanEstimator):
    def _note_score(self, n_rows):
        """Tell no ledger."""


class ForgetsTheBlock(MeanEstimator):
    def _to_bind(self):
        """Be strict, and bound to a ledger, only where the transformer is."""
        return None, False


class TakesAnything(MeanEstimator):
    """Changes before it looks."""

    def fit(self, X, y=None):
        self._forget()
        return super().fit(X, y)


#: (collector class, the check that must fail)
BROKEN_COLLECTORS = [
    (ForgetsTheOthers, "check_means_cover"),
    (CountsNothing, "check_verbs"),
    (PaysTwice, "check_budget"),
    (NeverTellsOfScores, "check_budget"),
    (ForgetsTheBlock, "check_budget"),
    (TouchesWhatItWasGiven, "check_state"),
    (TakesAnything, "check_collector_bad_input"),
]
