"""Boosting that is broken: too little noise for what a row moves, or none."""

from dataclasses import replace

import numpy as np

from dpestim.ensemble import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from dpestim.ensemble.cost import Cost
from dpestim.ensemble.rounds import Histograms


class ForgetsTheSecondResidual(DPGradientBoostingClassifier):
    """Noise for a row that is added, where one is replaced."""

    def _cost(self, kind):
        return replace(super()._cost(kind), replaces=False)


class OneRound(Cost):
    """What one of several rounds costs."""

    @property
    def sensitivity(self):
        return Cost(self.n_terms, 1, self.n_outputs, self.replaces, self.pure).sensitivity


class OneRoundIsPaid(DPGradientBoostingRegressor):
    """Noise for one round, where there are several."""

    def _cost(self, kind):
        return OneRound(**vars(super()._cost(kind)))


class ExactCounts(Histograms):
    """Counts as they are."""

    def counts(self, term):
        super().counts(term)
        return np.bincount(self._codes[term], minlength=self._sizes[term]).astype(float)


class PublishesCounts(DPGradientBoostingClassifier):
    """Noise for sums of residuals only."""

    _histograms = ExactCounts


class UnevenResiduals(Histograms):
    """Residuals that are not cut to the largest one that is paid for."""

    def _pass(self, term):
        return 3 * super()._pass(term)


class LargeResiduals(DPGradientBoostingRegressor):
    """Residuals three times as large as was paid for."""

    _histograms = UnevenResiduals


class SquaresAreFree(Cost):
    """A precise sum of squares, and what all answers but that cost."""

    @property
    def square(self):
        return 50 * Cost(**vars(self)).square

    @property
    def sensitivity(self):
        return replace(Cost(**vars(self)), squares=False).sensitivity


class SquaresForFree(DPGradientBoostingRegressor):
    """Noise for histograms, and squares beside them."""

    def _cost(self, kind):
        return SquaresAreFree(**vars(super()._cost(kind)))


class LeadIsFree(Cost):
    """What sums of all rows would cost that are multiplied by nothing."""

    @property
    def sensitivity(self):
        return replace(Cost(**vars(self)), lead=1).sensitivity


class LeadForFree(DPGradientBoostingRegressor):
    """Sums of all rows are more precise than was paid for."""

    def _cost(self, kind):
        return LeadIsFree(**vars(super()._cost(kind)))


class EdgesForFree(DPGradientBoostingClassifier):
    """Edges are found, and histograms have all of epsilon."""

    def _edges_to_find(self, numbers, n_rows, n_columns, epsilon):
        return super()._edges_to_find(numbers, n_rows, n_columns, epsilon)[0], epsilon


CLASSES, NUMBERS = DPGradientBoostingClassifier._test_params(), DPGradientBoostingRegressor._test_params()
BROKEN = [
    (ForgetsTheSecondResidual, CLASSES[0], "check_boosting_law"),
    (ForgetsTheSecondResidual, CLASSES[2], "check_boosting_law"),
    (OneRoundIsPaid, NUMBERS[0], "check_boosting_law"),
    (OneRoundIsPaid, NUMBERS[1], "check_boosting_law"),
    (PublishesCounts, CLASSES[0], "check_boosting_law"),
    (LargeResiduals, NUMBERS[0], "check_boosting_law"),
    (SquaresForFree, NUMBERS[0], "check_boosting_law"),
    (LeadForFree, NUMBERS[0], "check_boosting_law"),
    (EdgesForFree, {**CLASSES[0], "edges_fraction": 0.5}, "check_boosting_law"),
]
