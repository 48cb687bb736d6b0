"""Numbers from reports: dropped or centred values, budgets spent twice, wrong means and errors."""

import numpy as np

from dpestim.local import DuchiTransformer, LaplaceTransformer, MeanEstimator, PMTransformer
from dpestim.local.numbers.pm import PM
from dpestim.privacy.exact import canonical_epsilon

ONE = {"epsilon": 1.0, "bounds": (0.0, 10.0), "grid": 16}
TWO = {"epsilon": 2.0, "bounds": ([0.0, -50.0], [10.0, 50.0]), "grid": 16}
MEAN = {"transformer": PMTransformer(**ONE)}
MEANS = {"transformer": PMTransformer(**TWO)}


def face(base, law):
    """Return a transformer that has this law."""
    cls = type(law.__name__ + "Face", (base,), {"_randomizer": law, "__module__": __name__, "__doc__": law.__doc__})
    return globals().setdefault(cls.__name__, cls)


def _ends(bounds):
    """Return the lower and the upper bounds, in whatever form they are declared."""
    return map(np.asarray, zip(*bounds.values()) if isinstance(bounds, dict) else bounds)


class ChainRuleForgotten(PMTransformer):
    """Every column spends all of epsilon."""

    def _share(self, n_columns):
        return canonical_epsilon(self.epsilon)


class DropsRowsOutsideTheBounds(PMTransformer):
    """Rows outside the bounds are not sent."""

    def _container(self, X, strict):
        X = super()._container(X, strict)
        if self.bounds is None:
            return X
        low, high = _ends(self.bounds)
        keep = ((low <= X) & (high >= X)).all(axis=1) | ~np.isfinite(X).all(axis=1)
        return X[keep] if keep.any() else X


class DropsMissingRows(DuchiTransformer):
    """In strict mode rows without a value are not sent."""

    def _container(self, X, strict):
        X = super()._container(X, strict)
        keep = np.isfinite(X).all(axis=1)
        return X[keep] if strict and keep.any() else X


class MissingIsTheMean(PMTransformer):
    """In strict mode the mean of the others stands for a missing value."""

    def _container(self, X, strict):
        X = super()._container(X, strict)
        return np.where(np.isfinite(X), X, np.nanmean(np.where(np.isfinite(X), X, np.nan), axis=0)) if strict else X


class CentredByTheData(PMTransformer):
    """Values are sent as their distance from the mean of all."""

    def _container(self, X, strict):
        X = super()._container(X, strict)
        if strict or not len(X) or not np.isfinite(X).all() or self.bounds is None:
            return X
        return X - X.mean(axis=0) + np.add(*_ends(self.bounds)) / 2


class ScaledByTheData(LaplaceTransformer):
    """Bounds that are declared are made narrower where the data are."""

    def _container(self, X, strict):
        X = super()._container(X, strict)
        if strict or not len(X) or not np.isfinite(X).all() or self.bounds is None:
            return X
        low, high = _ends(self.bounds)
        far = max(float(np.abs(X - (low + high) / 2).max() / ((high - low) / 2).max()), 1e-9)
        return (low + high) / 2 + (X - (low + high) / 2) / far


class ClippedToTheBounds(PMTransformer):
    """What is decoded is cut to the bounds: biased towards the middle."""

    def decode(self, codes):
        return np.clip(super().decode(codes), *self.bounds)


class WholeEpsilonInTheWindow(PM):
    """e^epsilon where the mechanism has e^(epsilon / 2)."""

    def __init__(self, epsilon, grid):
        super().__init__(2 * canonical_epsilon(epsilon), grid)
        self.epsilon = self.epsilon / 2

    def check(self):
        """Let it pass."""


class RoundsToTheNearest(PM):
    """Values are rounded to the nearest point of the grid."""

    def privatize(self, codes, words, out):
        nearest = (np.abs(np.where(codes < 0, ~codes, codes)) + (1 << 31)) >> 32 << 32
        super().privatize(np.where(codes < 0, ~nearest, nearest), words, out)


class OneSidedQuantile(MeanEstimator):
    """Intervals by the quantile of `level` for one side."""

    def confidence_interval(self, level=0.95):
        return super().confidence_interval(2 * level - 1)


class HalfTheWidth(MeanEstimator):
    """Intervals of half the width."""

    def confidence_interval(self, level=0.95):
        both = super().confidence_interval(level)
        return (both + both.mean(axis=1, keepdims=True)) / 2


class OneErrorForAll(MeanEstimator):
    """The standard error, and the interval, of the first column are those of all."""

    def _means(self):
        means, errors, biases = super()._means()
        return [means, np.full(len(errors), errors[0]), biases]


class IntervalOfTheFirst(MeanEstimator):
    """All intervals are as wide as the first one."""

    def confidence_interval(self, level=0.95):
        both = super().confidence_interval(level)
        half = (both[0, 1] - both[0, 0]) / 2
        return np.stack([self.mean_ - half, self.mean_ + half], axis=1)


class ErrorWithoutTheRoot(MeanEstimator):
    """The spread of a report, and not of the mean of all, for all columns but the first."""

    def _means(self):
        means, errors, biases = super()._means()
        errors = errors.copy()
        errors[1:] *= np.sqrt(self._n_users)
        return [means, errors, biases]


class ClippedMean(MeanEstimator):
    """Means are cut to the bounds and called unbiased; a little room is lost on both sides."""

    def _means(self):
        means, errors, biases = super()._means()
        low, high = self.transformer.bounds
        room = (np.asarray(high) - np.asarray(low)) * 0.45
        return [np.clip(means, np.asarray(low) + room, np.asarray(high) - room), errors, biases]


SLIPS = [
    (ChainRuleForgotten, TWO), (DropsRowsOutsideTheBounds, ONE),
    (DropsMissingRows, {"epsilon": 1.0, "bounds": (0.0, 10.0)}),
    (MissingIsTheMean, ONE), (CentredByTheData, ONE), (ScaledByTheData, {**ONE, "epsilon": 1.0}),
    (ClippedToTheBounds, ONE), (face(PMTransformer, WholeEpsilonInTheWindow), ONE),
    (face(PMTransformer, RoundsToTheNearest), ONE), (OneSidedQuantile, MEAN), (HalfTheWidth, MEAN),
    (OneErrorForAll, MEANS), (IntervalOfTheFirst, MEANS), (ErrorWithoutTheRoot, MEANS), (ClippedMean, MEAN),
]
