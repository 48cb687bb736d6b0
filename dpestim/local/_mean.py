"""Means of numbers from the reports of a transformer, without bias where its law allows that."""

import numpy as np
from scipy.special import stdtrit

from dpestim._docs import document_collector
from dpestim.local._collect import Collector
from dpestim.local._pm import PMTransformer
from dpestim.local._sdpm import SDPMTransformer


@document_collector
class MeanEstimator(Collector):
    """Means of numbers under local differential privacy, from the reports of any transformer of numbers.

    Every code is given a number whose expectation, for any input, is that input; the mean of these numbers estimates
    the mean. For `PMTransformer` the number is what the report stands for. For `SDPMTransformer` the plain mean of
    reports is biased, and numbers are found by linear inversion of the law. For more than the mean take
    `DistributionEstimator`.

    **Privacy.** That of the transformer; what happens to reports costs nothing more (proof in ``_mean.md``).

    **Utility.** Unbiased but for `bias_`, which is computed for the law: 0 for `PMTransformer`. For `SDPMTransformer`
    with ``n_cells=1`` no number tells low values apart, and `bias_` is at least half the width of the low interval.

    **Complexity.** O(n) for n reports, once; the law's inversion up to seconds a column (SDPM; PM needs none).

    {parameters}
    References
    ----------
    N. Wang et al., "Collecting and analyzing multidimensional data with local differential privacy", ICDE 2019,
    section III; the inversion of other laws is derived in ``_mean.md``.

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
        Standard errors, estimated from the spread of the reports. They cover the noise and the drawing of the users
        from a population; given the users they are somewhat too large. NaN for a single report.
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
        return np.array([
            self._columns.to_units(0.5 + v @ c / self._n_users, j)
            for j, (v, c) in enumerate(zip(self._numbers(), self._counts))
        ])

    @property
    def standard_error_(self):
        """Standard errors of the means."""
        n = self.n_users_
        if n == 1:
            return np.full(len(self._counts), np.nan)
        spread = [np.square(v - v @ c / n) @ c / (n - 1) for v, c in zip(self._numbers(), self._counts)]
        return np.sqrt(np.array(spread) / n) * self._widths()

    @property
    def bias_(self):
        """The largest bias left."""
        self._check_fitted()
        return np.array([r.mean_values()[1] for r in self._columns.randomizers]) * self._widths()

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
        return -float(np.square(self._raw(X).mean(axis=0) - self.mean_).mean())

    def _numbers(self):
        """Return, for each column, the position that stands for each code, less 1/2 (to lose no digits in sums)."""
        self._check_fitted()
        return [r.mean_values()[0] - 0.5 for r in self._columns.randomizers]

    def _widths(self):
        return np.array([self._columns.width(j) for j in range(len(self._columns))])

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"transformer": PMTransformer(1.0, bounds=(-1.0, 3.0), grid=16)},
            {"transformer": PMTransformer(2.0, bounds=([0.0, -5.0], [1.0, 5.0]), grid=256)},
            {"transformer": SDPMTransformer(2.0, bounds=(0.0, 10.0), low_sensitivity=(2.0, 7.0), n_cells=4)},
        ]
