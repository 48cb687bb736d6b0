"""Synthesizers: budgets that are spent twice, exact tables and counts, values of real rows."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpestim.central.selection.exponential import ExponentialLaw
from dpestim.synthesis import MarginalSynthesizer, MultiplicativeWeights, scores
from dpestim.synthesis.marginals import AdaptivePlan
from dpestim.synthesis.multiplicative_weights import FixedPlan

BINS = {"epsilon": 1.0, "delta": 1e-5, "bounds": (-2.0, 2.0), "bins": 4}
LARGE = {**BINS, "epsilon": 50.0}
MORE = {**BINS, "neighbours": "add_remove"}
PURE = {"epsilon": 1.0, "bounds": (-2.0, 2.0), "bins": 4}
PURE_MORE = {**PURE, "neighbours": "add_remove"}


class ChainRuleForgotten(MultiplicativeWeights):
    """Every round spends all of epsilon."""

    def _plan(self, sizes, degree):
        plan = super()._plan(sizes, degree)
        plan._share = plan._share * plan.most_rounds
        return plan


class SinglesAreFree(MultiplicativeWeights):
    """Tables of single columns are measured with all of epsilon, and so are rounds."""

    def _plan(self, sizes, degree):
        plan = super()._plan(sizes, degree)
        plan._singles = 2 * plan._singles
        return plan


class EachColumnByItself(MultiplicativeWeights):
    """A row is in a table of each column: the noise is that for one of them."""

    def _plan(self, sizes, degree):
        plan = super()._plan(sizes, degree)
        plan._n_columns = 1
        return plan


class ReplacedAsAdded(MultiplicativeWeights):
    """A row that is replaced leaves a cell and enters another: counted as one."""

    def _moved(self):
        return 1


class RoundsUnderOneBudgetEach(MarginalSynthesizer):
    """What a round spends is not taken from what is left."""

    def _plan(self, sizes, degree):
        plan = super()._plan(sizes, degree)
        plan.left = 3 * plan.left
        return plan


class ReplacedAsAddedByAim(MarginalSynthesizer):
    """A row that is replaced leaves a cell and enters another: counted as one."""

    def _moved(self):
        return 1


class ExactRows(MarginalSynthesizer):
    """As many rows as there were, where that is private."""

    def fit(self, X, y=None):
        super().fit(X)
        self.n_rows_ = float(len(X))
        return self


class PureExactRows(MultiplicativeWeights):
    """As many rows as there were, where that is private."""

    def fit(self, X, y=None):
        super().fit(X)
        self.n_rows_ = float(len(X))
        return self


class EmptyCellsStayEmpty(MarginalSynthesizer):
    """Cells of single columns without rows are 0, as synthetic rows should look real."""

    def _released(self, count, sizes, n_rows, plan, wanted, source):
        model = super()._released(count, sizes, n_rows, plan, wanted, source)
        for own, (table, precision) in list(model.known.items()):
            if len(own) == 1:
                [exact] = count([own])
                model.known[own] = table * (exact > 0), precision
        return model


class LargestExactly(MultiplicativeWeights):
    """The table that is furthest off is chosen, without noise."""

    def _released(self, codes, sizes, n_rows, plan, wanted, source):
        draw = ExponentialLaw.draw
        ExponentialLaw.draw = lambda law, found, words: int(np.argmax(found))
        try:
            return super()._released(codes, sizes, n_rows, plan, wanted, source)
        finally:
            ExponentialLaw.draw = draw


class SensitivityOfOneTable(MultiplicativeWeights):
    """Scores of tables of several columns move by as many cells, and the law knows of one."""

    def _released(self, codes, sizes, n_rows, plan, wanted, source):
        moved = scores.SCALE
        draw = ExponentialLaw.draw

        def louder(law, found, words):
            return draw(replace(law, sensitivity=max(1, law.sensitivity // moved // 8)), found, words)

        ExponentialLaw.draw = louder
        try:
            return super()._released(codes, sizes, n_rows, plan, wanted, source)
        finally:
            ExponentialLaw.draw = draw


class RangeOfTheRows(MarginalSynthesizer):
    """Numbers are drawn within the range that rows had."""

    def fit(self, X, y=None):
        super().fit(X)
        rows = np.nan_to_num(np.asarray(X, float), posinf=0, neginf=0)
        self.range_ = (rows.min(), rows.max()) if rows.size else (-2.0, 2.0)
        return self

    def sample(self, n_rows=None, random_state=None):
        return np.clip(super().sample(n_rows, random_state), *self.range_)


class KeepsARow(MarginalSynthesizer):
    """The first synthetic row is a real one, as an example."""

    def fit(self, X, y=None):
        super().fit(X)
        self.example_ = np.array(X)[-1:] if len(X) else None
        return self


class StopsWhenClose(MultiplicativeWeights):
    """Keeps in mind how far the model is from the rows, to stop early."""

    def fit(self, X, y=None):
        super().fit(X)
        if not self._is_strict():
            self.error_ = round(self.workload_error(X), 6)
        return self


class DropsMissingRows(MarginalSynthesizer):
    """In strict mode rows without a value are dropped."""

    def fit(self, X, y=None):
        X = np.asarray(X)
        keep = np.isfinite(X.astype(float)).all(axis=1)
        return super().fit(X[keep] if self._is_strict() else X)


class WiderThanItSays(AdaptivePlan):
    """Spends a share twice: for choosing, and again for measuring."""

    def next(self):
        share = super().next()
        return replace(share, epsilon=4 * share.epsilon)


class ChoosesAtFourTimes(MarginalSynthesizer):
    """Choosing spends four times what it is charged."""

    def _plan(self, sizes, degree):
        return WiderThanItSays(self._rho(), self._moved(), sizes, degree)


class NoNoiseForSingles(FixedPlan):
    """Tables of single columns get next to no noise."""

    def first(self):
        noise, precision = super().first()
        return replace(noise, epsilon=Fraction(100)), precision


class SinglesAreExact(MultiplicativeWeights):
    """Tables of single columns are taken for public."""

    def _plan(self, sizes, degree):
        plan = super()._plan(sizes, degree)
        plan.__class__ = NoNoiseForSingles
        return plan


SLIPS = [
    (ChainRuleForgotten, PURE), (SinglesAreFree, PURE), (EachColumnByItself, PURE), (ReplacedAsAdded, PURE),
    (RoundsUnderOneBudgetEach, LARGE), (ReplacedAsAddedByAim, BINS), (ExactRows, MORE), (PureExactRows, PURE_MORE),
    (EmptyCellsStayEmpty, BINS), (LargestExactly, PURE), (SensitivityOfOneTable, PURE), (RangeOfTheRows, BINS),
    (KeepsARow, BINS), (StopsWhenClose, PURE), (DropsMissingRows, BINS), (ChoosesAtFourTimes, LARGE),
    (SinglesAreExact, PURE),
]
