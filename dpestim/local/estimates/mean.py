"""Means of numbers from the reports of a transformer, without bias where its law allows that."""

import numpy as np
from scipy.special import stdtrit

from dpestim.local.categories.grr import GRRFrequencyEstimator
from dpestim.local.estimates.collector import Collector
from dpestim.local.numbers.pm import PMTransformer
from dpestim.local.numbers.sdpm import SDPMTransformer


class MeanEstimator(Collector):
    """Means of numbers under local differential privacy, from the reports of any client that sends codes.

    Every code is given a number whose expectation, for any input, is that input; the mean of these numbers estimates
    the mean. For `PMTransformer` the number is what the report stands for. For `SDPMTransformer` the plain mean of
    reports is biased, and numbers are found by linear inversion of the law, as they are for a frequency estimator that
    sends a code, such as `GRRFrequencyEstimator`, whose categories are numbers. For more than the mean take
    `DistributionEstimator`.

    **Privacy.** That of the transformer; what happens to reports costs nothing more (proof in ``mean.md``).

    **Utility.** Unbiased but for `bias_`, which is computed for the law: 0 for `PMTransformer`. For `SDPMTransformer`
    with ``n_cells=1`` no number tells low values apart, and `bias_` is at least half the width of the low interval.

    **Complexity.** O(n) for n reports, once; the law's inversion up to seconds a column (SDPM; PM needs none).

    {parameters}
    References
    ----------
    N. Wang et al., "Collecting and analyzing multidimensional data with local differential privacy", ICDE 2019,
    section III; the inversion of other laws is derived in ``mean.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import MeanEstimator, PMTransformer
    >>> heights = np.random.default_rng(0).normal(1.7, 0.1, (50_000, 1))
    >>> est = MeanEstimator(PMTransformer(2.0, bounds=(1.2, 2.2), random_state=0)).fit(heights)
    >>> bool(abs(est.mean_[0] - heights.mean()) < 0.01)
    True
    """

    _more_attributes = """
    mean_ : ndarray of shape (n_features,)
        Estimated means, in the units of X, of the values as clipped to the bounds.
    standard_error_ : ndarray of shape (n_features,)
        Standard errors, from the spread of the reports, or from what the law adds at least where they show less. They
        cover the noise and the drawing of the users from a population; given the users they are too large, the more so
        the larger epsilon is. NaN for a single report.
    bias_ : ndarray of shape (n_features,)
        The largest bias that any distribution of (clipped) values can cause.
    """

    def __init__(self, transformer=None):
        self.transformer = transformer

    def release(self):
        """Return `mean_`."""
        return self.mean_

    @property
    def mean_(self):
        """Estimated means."""
        return np.array([zero + unit * mean for (zero, unit), mean in zip(self._scales(), self._positions())])

    @property
    def standard_error_(self):
        """Standard errors of the means."""
        n, out = self.n_users_, []
        if n == 1:
            return np.full(len(self._counts), np.nan)
        for column, (v, _, _), c, mean, counts in zip(
            self._columns, self._numbers(), self._shares(), self._positions(), self._counts
        ):
            seen = np.square(v - v @ c / n) @ c / (n - 1)
            # far outliers are rare where epsilon is large, and may be missing among few reports: the law knows of them
            out.append(max(seen, column.least_noise(v, mean, counts, n)))
        return np.sqrt(np.array(out) / n) * self._widths()

    @property
    def bias_(self):
        """The largest bias left."""
        return np.array([bias for _, _, bias in self._numbers()]) * self._widths()

    def confidence_interval(self, level=0.95):
        """Return an (n_features, 2) array: Student's intervals for the means, wider by `bias_` on both sides."""
        if not 0 < level < 1:
            raise ValueError("level must lie strictly between 0 and 1")
        reach = stdtrit(max(1, self.n_users_ - 1), 0.5 + level / 2) * self.standard_error_ + self.bias_
        return np.stack([self.mean_ - reach, self.mean_ + reach], axis=1)

    def score(self, X, y=None):
        """Return minus the squared error against the plain means of X, averaged over the columns.

        The score compares with raw data. It is **not private**: an exact, unmetered release of X, which a ledger
        records as an entry of epsilon 0 and strict mode refuses.
        """
        data = self._raw(X)
        truth = [column.numbers(rows).mean() for column, rows in zip(self._columns, data)]
        return -float(np.square(truth - self.mean_).mean())

    def _check_columns(self, columns):
        for column in columns:
            column.mean_values()  # refuses laws, and categories, that have no mean

    def _columns_seen(self):
        self._check_fitted()
        return self._columns

    def _numbers(self):
        """Return, for each column, (the number that stands for each count less their middle, the middle, the bias)."""
        out = []
        for column in self._columns_seen():
            numbers, bias = column.mean_values()
            middle = (numbers.max() + numbers.min()) / 2  # so that sums lose no digits
            out.append((numbers - middle, middle, bias))
        return out

    def _shares(self):
        """Return the counts as floats, which are exact below 2**53 and have faster products than integers."""
        return [c.astype(np.float64) for c in self._counts]

    def _positions(self):
        """Return the mean of each column on the scale of its numbers."""
        return [middle + v @ c / self._n_users for (v, middle, _), c in zip(self._numbers(), self._shares())]

    def _scales(self):
        return [column.mean_scale for column in self._columns_seen()]

    def _widths(self):
        return np.array([unit for _, unit in self._scales()])

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"transformer": PMTransformer(1.0, bounds=(-1.0, 3.0), grid=16)},
            {"transformer": PMTransformer(2.0, bounds=([0.0, -5.0], [1.0, 5.0]), grid=256)},
            {"transformer": SDPMTransformer(2.0, bounds=(0.0, 10.0), low_sensitivity=(2.0, 7.0), n_cells=4)},
            {"transformer": GRRFrequencyEstimator(1.0, categories=[[1, 2, 3, 4, 5]])},
        ]
