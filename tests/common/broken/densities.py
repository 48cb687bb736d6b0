"""Broken counts of places in the central model."""

from fractions import Fraction

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.geo import SpatialDensity


class SplitsForFree(SpatialDensity):
    """Splits have the noise of one decision, and not of a path."""

    def _partition(self, n_rows):
        made = super()._partition(n_rows)
        made.decision = DiscreteLaplaceLaw(made.rate * 7 / 3, Fraction(0), Fraction(1), 0)
        return made


class ForgetsTheBias(SpatialDensity):
    """Counts fall by less from level to level than the noise of splits is made for."""

    def _partition(self, n_rows):
        made = super()._partition(n_rows)
        made.bias = max(1, made.bias // 3)
        return made


class StatesHalf(SpatialDensity):
    """States half of the variance."""

    def _variance(self, weights):
        variance, fourth = super()._variance(weights)
        return variance / 2, fourth


class LosesRows(SpatialDensity):
    """Ranges leave out what lies in the last cell."""

    def range(self, low, high):
        found, error = super().range(low, high)
        return found - self.counts_[-1], error


_TREE = SpatialDensity._test_params()[0]
BROKEN = [
    (SplitsForFree, _TREE, "check_density_splits_keep_epsilon"),
    (ForgetsTheBias, _TREE, "check_density_splits_keep_epsilon"),
    (StatesHalf, _TREE, "check_density_counts_have_the_stated_error"),
    (LosesRows, _TREE, "check_density_answers_agree"),
]
