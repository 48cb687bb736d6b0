"""Shuffle protocols: budgets spent twice, noise for another n, messages in order, wrong errors."""

from fractions import Fraction

import numpy as np
from scipy.special import ndtri

from dpestim.privacy.exact import canonical_epsilon
from dpestim.shuffle import BooleanSum, RealSum, ShuffledHistogram
from dpestim.shuffle.base import ShuffledColumns
from dpestim.shuffle.histograms.fakes import Fakes
from dpestim.shuffle.sums.boolean import NoisyBit

BITS = {"epsilon": 1.0, "delta": 0.01, "n_users": 40}
REAL = {"epsilon": 2.0, "delta": 0.01, "bounds": (0.0, 10.0), "n_users": 30}
REALS = {**REAL, "bounds": ([0.0, -50.0], [10.0, 50.0])}
DRINKS = {"epsilon": 3.0, "delta": 0.01, "n_users": 4, "categories": [["a", "b", "c"]]}
TWO = {"epsilon": 4.0, "delta": 0.01, "n_users": 12, "categories": [["a", "b", "c"], ["x", "y"]]}


def face(base, law):
    """Return a protocol that has this law."""
    cls = type(law.__name__ + "Face", (base,), {"_randomizer": law, "__module__": __name__, "__doc__": law.__doc__})
    return globals().setdefault(cls.__name__, cls)


class ChainRuleForgotten(RealSum):
    """Every column spends all of epsilon."""

    def _made(self, lows, highs, names, **more):
        law, epsilon = self._law_class(), canonical_epsilon(self.epsilon)
        columns = [self._column(names[j], law.make(epsilon, **self._law_arguments(j, len(lows), ends)), *ends)
                   for j, ends in enumerate(zip(lows, highs))]
        return ShuffledColumns(columns, **more)


class DeltaNotShared(ShuffledHistogram):
    """Every column spends all of delta."""

    def _law_arguments(self, column, n_columns, domain):
        known = super()._law_arguments(column, n_columns, domain)
        return {**known, "delta": known["delta"] * n_columns}


class ColludingForgotten(NoisyBit):
    """Those who help the analyser are counted among those who hide."""

    @property
    def n_honest(self):
        return self.n_users


class HalfTheFlips(NoisyBit):
    """A bit becomes a coin with the probability of a flip: it is flipped half as often, and the bound is as before."""

    def privatize(self, codes, words, out):
        fewer = object.__new__(NoisyBit)
        vars(fewer).update({**vars(self), "flip": self.flip // 2})
        fewer.privatize(codes, words, out)


class FakesOfOtherCategoriesOnly(Fakes):
    """Fakes are never the own category."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        fakes = out[:, 1:]
        fakes[fakes == codes[:, None]] = self.n_categories


class FakesNotSubtracted(Fakes):
    """The fakes that are to be expected are left in the estimate."""

    def estimate(self, counts, n):
        return counts[:-1] / n


class OrderIsKept(BooleanSum):
    """The shuffler hands messages over as they came."""

    def shuffle(self, messages, shuffler=None):
        return messages.copy()


class SortsByUser(ShuffledHistogram):
    """Messages of a user stay together, and users are shuffled."""

    def shuffle(self, messages, shuffler=None):
        return messages[np.random.default_rng(0).permutation(len(messages))]


class OneSidedQuantile(BooleanSum):
    """Intervals by the quantile of `level` for one side."""

    def confidence_interval(self, level=0.95):
        return super().confidence_interval(2 * level - 1)


class HalfTheWidth(ShuffledHistogram):
    """Intervals of half the width."""

    def confidence_interval(self, level=0.95):
        return [(ci + ci.mean(axis=1, keepdims=True)) / 2 for ci in super().confidence_interval(level)]


class OneErrorForAll(RealSum):
    """The standard error of the first column is that of all."""

    @property
    def standard_error_(self):
        return np.full(len(self._columns), super().standard_error_[0])


class ErrorOfTheMean(RealSum):
    """The interval of a sum is as wide as that of a mean."""

    def confidence_interval(self, level=0.95):
        reach = ndtri(0.5 + level / 2) * self.standard_error_ / self._n_users
        return np.stack([self.sum_ - reach, self.sum_ + reach], axis=1)


class ClippedToTheRange(BooleanSum):
    """Sums are cut to what they can be, and called unbiased."""

    @property
    def mean_(self):
        return np.clip(super().mean_, 0.0, 1.0)


class DropsMissingRows(RealSum):
    """In strict mode users without a value send nothing."""

    def _container(self, X, strict):
        X = super()._container(X, strict)
        keep = np.isfinite(X).all(axis=1)
        return X[keep] if strict and keep.any() else X


class MissingIsTheMean(RealSum):
    """In strict mode the mean of the others stands for a missing value."""

    def _container(self, X, strict):
        X = super()._container(X, strict)
        if not strict:
            return X
        known = np.isfinite(X)
        return np.where(known, X, X[known].mean() if known.any() else 0.0)


class ScaledByTheData(RealSum):
    """Values are scaled by the largest one that is there."""

    def _container(self, X, strict):
        X = super()._container(X, strict)
        if strict or not len(X) or not np.isfinite(X).all() or not np.any(X):
            return X
        return X * (float(np.max(self.bounds[1])) / np.abs(X).max())


class LocalNoiseStated(NoisyBit):
    """What a bit keeps without a shuffler is said to be epsilon."""

    @property
    def local_ratio(self):
        return Fraction(271, 100)


class ChargesLess(BooleanSum):
    """A ledger is charged what a column costs on average."""

    def _charge(self, guarantee, n_rows, columns=()):
        super()._charge(type(guarantee)(guarantee.epsilon / 2, guarantee.delta, guarantee.model, guarantee.neighbours,
                                        guarantee.seeded), n_rows, columns)


SLIPS = [
    (ChainRuleForgotten, REALS), (DeltaNotShared, TWO),
    (face(BooleanSum, ColludingForgotten), {**BITS, "colluding": 20}),
    (face(BooleanSum, HalfTheFlips), BITS), (face(ShuffledHistogram, FakesOfOtherCategoriesOnly), DRINKS),
    (face(ShuffledHistogram, FakesNotSubtracted), DRINKS), (OrderIsKept, BITS), (SortsByUser, DRINKS),
    (OneSidedQuantile, BITS), (HalfTheWidth, DRINKS), (OneErrorForAll, REALS), (ErrorOfTheMean, REAL),
    (ClippedToTheRange, BITS), (DropsMissingRows, REAL), (MissingIsTheMean, REAL), (ScaledByTheData, REAL),
    (face(BooleanSum, LocalNoiseStated), BITS), (ChargesLess, BITS),
]
