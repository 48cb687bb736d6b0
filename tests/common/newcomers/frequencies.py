"""Frequencies from reports: budgets that are spent twice, dropped values, wrong estimates and errors."""

import numpy as np
from scipy.special import ndtri

from dpestim.local import GRRFrequencyEstimator, OLHFrequencyEstimator, OUEFrequencyEstimator
from dpestim.local.categories.grr import GRR
from dpestim.local.categories.unary import OUE
from dpestim.privacy.exact import canonical_epsilon

ONE = {"epsilon": 1.0, "categories": [["a", "b", "c", "d"]]}
TWO = {"epsilon": 1.0, "categories": [["a", "b", "c"], ["x", "y"]]}


def face(base, law):
    """Return an estimator that has this law."""
    cls = type(law.__name__ + "Face", (base,), {"_randomizer": law, "__module__": __name__, "__doc__": law.__doc__})
    return globals().setdefault(cls.__name__, cls)


class ChainRuleForgotten(GRRFrequencyEstimator):
    """Every column spends all of epsilon."""

    def _share(self, n_columns):
        return canonical_epsilon(self.epsilon)


class DropsUnknownRows(GRRFrequencyEstimator):
    """In strict mode rows with a category that was not declared are dropped."""

    def _container(self, X, strict):
        X = super()._container(X, strict)
        if not strict:
            return X
        known = [set(own) for own in self.categories]
        keep = [all(value in own for value, own in zip(row, known)) for row in np.asarray(X, object)]
        return X[np.array(keep, bool)] if any(keep) else X


class DropsMissingRows(OUEFrequencyEstimator):
    """In strict mode rows with None are dropped."""

    def _container(self, X, strict):
        X = super()._container(X, strict)
        keep = np.array([None not in list(row) for row in np.asarray(X, object)], bool)
        return X[keep] if strict else X


class AddsUpToOne(OUEFrequencyEstimator):
    """Divides by the sum, so that frequencies add up to 1, and states errors as before."""

    def _unbiased(self):
        return [f / f.sum() for f in super()._unbiased()]


class ClippedAtZero(OLHFrequencyEstimator):
    """Negative estimates become 0, and the result is called unbiased."""

    def _unbiased(self):
        return [np.maximum(f, 0.0) for f in super()._unbiased()]


class OneSidedQuantile(OUEFrequencyEstimator):
    """Intervals by the quantile of `level` for one side."""

    def confidence_interval(self, level=0.95):
        return super().confidence_interval(2 * level - 1)


class HalfTheWidth(GRRFrequencyEstimator):
    """Intervals of half the width."""

    def confidence_interval(self, level=0.95):
        return [(ci + ci.mean(axis=1, keepdims=True)) / 2 for ci in super().confidence_interval(level)]


class OneErrorForAll(GRRFrequencyEstimator):
    """The standard error of the first column is that of all."""

    @property
    def standard_errors_(self):
        first = super().standard_errors_[0][0]
        return [np.full(len(f), first) for f in self._unbiased()]

    def confidence_interval(self, level=0.95):
        z = ndtri(0.5 + level / 2)
        return [np.stack([f - z * s, f + z * s], axis=1) for f, s in zip(self._unbiased(), self.standard_errors_)]


class ErrorsOfOneColumn(GRRFrequencyEstimator):
    """Columns after the first have its standard errors."""

    @property
    def standard_errors_(self):
        first = super().standard_errors_[0]
        return [np.resize(first, len(f)) for f in self._unbiased()]


class VarianceOfRareValues(GRRFrequencyEstimator):
    """The variance of a frequency of 0 stands for all, as in the approximation of papers, in standard errors."""

    @property
    def standard_errors_(self):
        return [error(np.zeros(len(f))) for f, error in zip(self._unbiased(), self._error_functions())]


class WrongDenominator(GRR):
    """Takes it that d others share what is left, where there are d - 1."""

    def __init__(self, epsilon, n_categories):
        super().__init__(epsilon, n_categories)
        self.q_star = (1 - self.p_star) / n_categories


class SqrtOnBothBits(OUE):
    """Bits that are true keep epsilon, and so do bits that are false: two bits of a user differ."""

    def __init__(self, epsilon, n_categories):
        super().__init__(2 * canonical_epsilon(epsilon), n_categories)


class TrueValueTwice(GRR):
    """Draws the reported value among all, and the true one once more: less noise than is promised."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        out[::7, 0] = codes[::7]


class NoiseOfTheValue(GRR):
    """Words are those of the value, so that equal values get equal noise (memoised, but for all users alike)."""

    def privatize(self, codes, words, out):
        fresh = np.empty_like(out)
        super().privatize(codes, words, fresh)
        first = {code: k for k, code in reversed(list(enumerate(codes.tolist())))}
        out[:, 0] = fresh[[first[code] for code in codes.tolist()], 0]


class RareValuesFirst(GRRFrequencyEstimator):
    """Categories are put in the order of how often they were seen."""

    def fit(self, X, y=None):
        super().fit(X)
        order = np.argsort([-np.sum(np.asarray(X, object)[:, 0] == c) for c in self.categories[0]], kind="stable")
        self._counts[0] = self._counts[0][order]
        return self


class PaysForDistinctRows(GRRFrequencyEstimator):
    """Charges for as many rows as differ."""

    def _pay(self, columns, n_rows):
        return super()._pay(columns, min(n_rows, 3))


class ChargesAtTheEnd(GRRFrequencyEstimator):
    """The charge comes when the reports are made: an overdraft has been drawn, and fit keeps it."""

    def fit(self, X, y=None):
        ledger, self.ledger = self.ledger, None
        super().fit(X)
        self.ledger = ledger
        self._pay(self._columns, len(X))
        return self


class SmoothsTheCounts(OLHFrequencyEstimator):
    """Adds one to every count."""

    def _unbiased(self):
        n = self._n_users
        return [(f * n + 1) / (n + len(f)) for f in super()._unbiased()]


SLIPS = [
    (ChainRuleForgotten, TWO), (DropsUnknownRows, ONE), (DropsMissingRows, ONE), (AddsUpToOne, ONE),
    (ClippedAtZero, ONE), (OneSidedQuantile, ONE), (HalfTheWidth, ONE), (OneErrorForAll, TWO),
    (ErrorsOfOneColumn, TWO), (VarianceOfRareValues, {**ONE, "epsilon": 4.0}),
    (face(GRRFrequencyEstimator, WrongDenominator), ONE), (face(OUEFrequencyEstimator, SqrtOnBothBits), ONE),
    (face(GRRFrequencyEstimator, TrueValueTwice), ONE), (face(GRRFrequencyEstimator, NoiseOfTheValue), ONE),
    (RareValuesFirst, ONE), (PaysForDistinctRows, ONE), (ChargesAtTheEnd, ONE), (SmoothsTheCounts, ONE),
]
