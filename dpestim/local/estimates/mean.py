"""Means of numbers from the reports of a transformer, without bias where its law allows that."""

import warnings
from numbers import Real

import numpy as np
from scipy.special import ndtri, stdtrit

from dpestim.local.estimates.transformer_server import TransformerServer
from dpestim.local.interval_ends import ends
from dpestim.local.numbers.pm import PMTransformer
from dpestim.local.origin import FAR, FEWEST, OTHERS


class MeanEstimator(TransformerServer):
    """Estimate means of numbers by the reports of a client under local differential privacy.

    Every code is given a number whose expectation, for any input, is that input; the mean of these numbers estimates
    the mean. For `PMTransformer` the number is what the report stands for. For `SDPMTransformer` the plain mean of
    reports is biased, and numbers are found by linear inversion of the law, as they are for a frequency estimator that
    sends a code, such as `GRRFrequencyEstimator`, whose categories are numbers. For more than the mean take
    `DistributionEstimator`.

    **Privacy.** That of the transformer; processing reports costs no further privacy (proof in ``mean.md``).

    **Utility.** Unbiased but for `bias_`, which is computed for the law: 0 for `PMTransformer`. For `SDPMTransformer`
    with ``n_cells=1`` no number tells low values apart, and `bias_` is at least half the width of the low interval.

    **Complexity.** O(n c) time for n reports of c columns, once; O(c) memory: each column has a table of its law.
    The law's inversion takes up to seconds a column (SDPM; PM needs none).

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
        Estimated means, in the units of X, of the values as clipped to the bounds. NaN for a column of which there is
        no report: with ``strategy="sample"``, where no user drew it.
    standard_error_ : ndarray of shape (n_features,)
        Standard errors, from the spread of the reports, or from what the law adds at least where they show less. They
        cover the noise and the drawing of the users from a population; given the users they are too large, the more so
        the larger epsilon is. NaN for less than two reports.
    bias_ : ndarray of shape (n_features,)
        The largest bias that any distribution of (clipped) values can cause.
    {missing}
    """

    def __init__(self, transformer=None):
        self.transformer = transformer

    def release(self):
        """Return `mean_`."""
        return self.mean_

    @property
    def mean_(self):
        """Estimated means."""
        return self._means()[0]

    @property
    def standard_error_(self):
        """Standard errors of the means."""
        return self._means()[1]

    @property
    def bias_(self):
        """The largest bias left."""
        return self._means()[2]

    def confidence_interval(self, level=0.95, *, of="means"):
        """Return an (n_features, 2) array: intervals for the means, wider by `bias_` on both sides; or of `missing_`.

        Student's, but where a report is one of two numbers (`DuchiTransformer`, `HMTransformer` where it sends signs,
        randomised response with two categories): there score intervals, as the spread of the reports follows from
        their mean and is estimated badly where one number is rare. Like `standard_error_` they cover the drawing of the
        users. Not clipped to the bounds, but where values may be missing: there they are Fieller's, all of the bounds
        where perhaps nobody has a value.

        Parameters
        ----------
        level : float, default=0.95
        of : {"means", "missing"}, default="means"
            "missing": intervals for the shares of missing values.
        """
        if not isinstance(level, Real) or not 0 < level < 1:
            raise ValueError("level must be a number strictly between 0 and 1")
        if of not in ("means", "missing"):
            raise ValueError('of must be "means" or "missing"')
        if of == "missing":
            self._check_fitted()
            z = ndtri(0.5 + level / 2)
            return np.array([column.missing_interval(counts, z) if column.may_be_missing else (0.0, 0.0)
                             for column, counts in zip(self._columns, self._counts)
                             for _ in range(column.n_features)])
        told = np.stack(self._means())
        parts = np.split(told, np.cumsum([column.n_features for column in self._columns])[:-1], axis=1)
        return np.concatenate([_interval(*each, level) for each in zip(self._columns, self._counts, parts)])

    def score(self, X, y=None):
        """Return minus the squared error against the plain means of X, averaged over the columns.

        A column of which there is no report counts as if the middle of its bounds had been estimated.

        The score compares with raw data. It is **not private**: an exact, unmetered release of X, which a ledger
        records as an entry of epsilon 0 and strict mode refuses.
        """
        data = self._raw(X)
        truth = np.concatenate([
            column.average(rows) for column, rows in zip(self._columns, data)
        ])
        means = self.mean_
        if np.isnan(means).any():  # (categories have no middle, and are never without a report)
            middles = np.concatenate([column.middles for column in self._columns])
            means = np.where(np.isnan(means), middles, means)
        return -float(np.square(truth - means).mean())

    def _check_columns(self, columns):
        for column in columns:
            column.check_mean()  # refuses laws, and categories, that have no mean

    def _warn_if_impossible(self, columns, counts, n):
        for column, own in zip(columns, counts):
            if n < FEWEST or columns.n_sampled or not hasattr(column, "lows"):
                continue
            means, errors, biases = column.means(own)
            far = FAR * errors + biases
            with np.errstate(invalid="ignore"):  # (of few reports errors are not known)
                wrong = (means + far < column.lows) | (means - far > column.highs)
            if wrong.any():
                warnings.warn(OTHERS.format(column.name), stacklevel=4)

    def _means(self):
        """Return (means, standard errors, biases) of all features."""
        self._check_fitted()
        means = [column.means(counts) for column, counts in zip(self._columns, self._counts)]
        return [np.concatenate(each) for each in zip(*means)]

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        from dpestim.local import (  # (who estimates from one transformer does not load the others)
            DuchiTransformer,
            GRRFrequencyEstimator,
            PrivUnitTransformer,
            SDPMTransformer,
        )

        return [
            {"transformer": PMTransformer(1.0, bounds=(-1.0, 3.0), grid=16)},
            {"transformer": PMTransformer(2.0, bounds=([0.0, -5.0], [1.0, 5.0]), grid=256)},
            {"transformer": SDPMTransformer(2.0, bounds=(0.0, 10.0), low_sensitivity=(2.0, 7.0), n_cells=4,
                                            grid=256)},
            {"transformer": PMTransformer(3.0, bounds=([0.0, -5.0], [1.0, 5.0]), grid=256, strategy="sample")},
            {"transformer": DuchiTransformer(2.0, bounds=([0.0, -5.0], [1.0, 5.0]), strategy="joint")},
            {"transformer": GRRFrequencyEstimator(1.0, categories=[[1, 2, 3, 4, 5]])},
            {"transformer": PrivUnitTransformer(2.0, center=[0.5, -0.5], candidates=8)},
        ]


def _interval(column, counts, told, level):
    """Return an (n_features, 2) array: intervals for what the counts of a column told, (means, errors, biases)."""
    means, errors, biases = told
    two, n = column.two_numbers(counts), column.n_reports(counts)
    if column.may_be_missing:
        return np.array([column.mean_interval(counts, stdtrit(max(1, n - 1), 0.5 + level / 2))])
    if two is None:
        reach = stdtrit(max(1, n - 1), 0.5 + level / 2) * errors
        return np.stack([means - reach - biases, means + reach + biases], axis=1)
    (share, apart, unit), z = two, ndtri(0.5 + level / 2)
    low, high = ends(share, z, lambda p: np.sqrt(p * (1 - p) / n)) - share
    # (in the user's units the two numbers, or their distance, may be no floats where the bounds are the widest)
    return np.stack([means + unit * (apart * low) - biases, means + unit * (apart * high) + biases], axis=1)
