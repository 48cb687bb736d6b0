"""Central models: dropped rows, centres of the data, sums that nobody clips, exact counts and classes."""

import numpy as np

from dpestim.covariance import DPCovariance
from dpestim.linear_model import DPLinearRegression
from dpestim.naive_bayes import DPCategoricalNB, DPGaussianNB
from dpestim.preprocessing import DPStandardScaler
from dpestim.statistics.calibrated_noise import Noise

LINE = {"epsilon": 1.0, "bounds": (-1.0, 1.0), "target_bounds": (-2.0, 2.0)}
MORE = {**LINE, "neighbours": "add_remove"}
BAYES = {"epsilon": 1.0, "bounds": (-2.0, 2.0), "classes": [0, 1]}
ADDED = {**BAYES, "neighbours": "add_remove"}
SCALER = {"epsilon": 1.0, "bounds": (-2.0, 2.0)}
BALL = {"epsilon": 20.0, "bounds": (-1.0, 1.0)}


class DropsRowsOutsideTheBounds(DPStandardScaler):
    """Rows outside the bounds are dropped, and the mean is that of the others."""

    def _checked_X(self, X, *, reset, total):
        rows = super()._checked_X(X, reset=reset, total=total)
        if not reset or self.bounds is None or isinstance(self.bounds, str):
            return rows
        keep = ((rows >= self.bounds[0]) & (rows <= self.bounds[1])).all(axis=1)
        return rows[keep] if keep.any() else rows


class CentredByTheData(DPLinearRegression):
    """Rows are centred by their exact mean, which the intercept then takes back."""

    def _sums(self, data, domain):
        X, y = data
        return super()._sums((X - np.nan_to_num(X).sum(axis=0) / max(1, len(X)), y), domain)


class TargetsCentredByTheData(DPLinearRegression):
    """The exact mean of the targets is added to the intercept."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self.intercept_ += float(np.mean(np.nan_to_num(y))) / 100 if len(y) else 0.0
        return self


class NeverClipped(DPStandardScaler):
    """Sums are those of rows as they are; the noisy mean is clipped."""

    def _sums(self, data, domain):
        rows, d = np.nan_to_num(np.asarray(data, float)), len(domain)
        sums = [round(float(rows[:, j].sum() / grid.step)) for j, grid in enumerate(domain)]
        found = super()._sums(data, domain)
        return [*sums, *found[d:]]


class ChainRuleForgotten(DPGaussianNB):
    """Counts, sums and squares spend all of epsilon each."""

    def _released(self, n_rows, totals, domain, epsilon, delta):
        return super()._released(n_rows, totals, domain, 3 * epsilon, delta)


class HalfTheNoise(DPStandardScaler):
    """The sensitivity of one record more or less, where one is replaced."""

    def _learn(self, n_rows, totals, grids, epsilon, delta):
        return super()._learn(n_rows, totals, grids, 2 * epsilon, delta)


class ExactPrior(DPGaussianNB):
    """Priors are the exact shares of the classes."""

    def fit(self, X, y):
        super().fit(X, y)
        counts = np.array([np.sum(np.asarray(y, object) == c) for c in self.classes_], float) + 1
        self.class_prior_ = counts / counts.sum()
        self.class_log_prior_ = np.log(self.class_prior_)
        return self


class ClassesThatAreThere(DPCategoricalNB):
    """A class that nobody has gets no weight, exactly."""

    def fit(self, X, y):
        super().fit(X, y)
        seen = np.array([np.any(np.asarray(y, object) == c) for c in self.classes_])
        self.class_log_prior_ = np.where(seen, self.class_log_prior_, -50.0)
        return self


class ExactRows(DPLinearRegression):
    """The number of rows is exact where it is private."""

    def _released(self, n_rows, totals, domain, epsilon, delta):
        draw = super()._released(n_rows, totals, domain, epsilon, delta)

        def told(source):
            return {**draw(source), "n_rows_": n_rows}

        told.law = draw.law
        return told


class ChargesExactRows(DPGaussianNB):
    """The ledger is told the number of rows where it is private."""

    def _charge(self, guarantee, n_rows, columns=()):
        super()._charge(guarantee, 60, columns)


class NothingOfEqualRows(DPCovariance):
    """Where all rows are alike nothing is released but zeros."""

    def fit(self, X, y=None):
        super().fit(X)
        if len(X) and (np.asarray(X) == np.asarray(X)[0]).all():
            self.covariance_ = 0 * self.covariance_
        return self


class ClippedAfterAdding(DPGaussianNB):
    """Rows far away are cut to ten times the bounds, and sums of squares to the bounds."""

    def _sums(self, data, domain):
        rows, codes, *_ = data
        count, sums, squares = super()._sums(data, domain)
        for c in range(len(count)):
            own = np.nan_to_num(rows[codes == c])
            for j, grid in enumerate(domain[1]):
                total = float(np.clip(own[:, j], 10 * grid.low, 10 * grid.high).sum()) / grid.step
                sums[c][j] = round(total)
        return [count, sums, squares]


class RoundsTheNoisyValue(DPStandardScaler):
    """Takes the exact mean where it is close to the noisy one."""

    def _learn(self, n_rows, totals, grids, epsilon, delta):
        draw = super()._learn(n_rows, totals, grids, epsilon, delta)
        exact = [totals[j] / max(1, n_rows) * grid.step + grid.center * grid.step for j, grid in enumerate(grids)]

        def rounded(source):
            found = draw(source)
            near = np.abs(found["mean_"] - exact) < 100
            return {**found, "mean_": np.where(near, exact, found["mean_"])}

        return rounded


class OwnRandomness(DPStandardScaler):
    """Adds noise of NumPy's, of the right size, where the house has laws."""

    def _learn(self, n_rows, totals, grids, epsilon, delta):
        draw = super()._learn(n_rows, totals, grids, epsilon, delta)

        def other(source):
            add = Noise.add
            Noise.add = lambda noise, numbers, words: np.array(numbers, float) + np.random.default_rng(0).laplace(
                0, float(noise.unit), len(numbers))
            try:
                return draw(source)
            finally:
                Noise.add = add

        return other


class StopsWhenGood(DPLinearRegression):
    """The intercept is 0 where targets add up to little."""

    def _released(self, n_rows, totals, domain, epsilon, delta):
        draw = super()._released(n_rows, totals, domain, epsilon, delta)

        def good(source):
            found = draw(source)
            return {**found, "intercept_": 0.0} if totals[-2] > 0 else found

        good.law = draw.law
        return good


class ScaledByTheBatch(DPStandardScaler):
    """What comes out is centred by the rows that are transformed together."""

    def transform(self, X):
        found = super().transform(X)
        return found - found.mean(axis=0)


SLIPS = [
    (DropsRowsOutsideTheBounds, SCALER), (CentredByTheData, LINE), (TargetsCentredByTheData, LINE),
    (NeverClipped, SCALER), (ChainRuleForgotten, BAYES), (HalfTheNoise, SCALER), (ExactPrior, BAYES),
    (ClassesThatAreThere, {"epsilon": 1.0, "categories": [[0, 1, 2]] * 3, "classes": [0, 1]}), (ExactRows, MORE),
    (ChargesExactRows, ADDED), (NothingOfEqualRows, BALL), (ClippedAfterAdding, BAYES), (RoundsTheNoisyValue, SCALER),
    (OwnRandomness, SCALER), (StopsWhenGood, LINE),
    (ScaledByTheBatch, SCALER),
]
