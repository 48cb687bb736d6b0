"""Covariance matrices under central differential privacy (`covariance.md`)."""

from dataclasses import replace

import numpy as np
from scipy.special import ndtri
from sklearn.covariance import empirical_covariance, log_likelihood
from sklearn.utils.validation import check_is_fitted

from dpestim.covariance.base import ScatterModel, units_of
from dpestim.models import checked_number


class DPCovariance(ScatterModel):
    """Estimate a mean and a covariance matrix by noisy sums of products, and precision and distances from them.

    `dpestim.statistics.Covariance` has unbiased entries with intervals. `DPCovariance` has a smaller error of the whole
    matrix, and always a valid covariance matrix.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for the declared `neighbours`, data sets of
    equal size that differ in one row, or of which one has one more row: sums of products and sums of rows, clipped and
    rounded to integers, and the number of rows where it is private, get noise of one law for all of them together. All
    fitted attributes may be published. The caller of `fit` holds the rows and must be trusted. `mahalanobis` and
    `score` of private rows are functions of them, and **not private**.

    **Utility.** Let r be the longest row: sqrt(n_features) half widths of the bounds, or `data_norm`. Entries have
    noise of a standard deviation of about 1.25 r^2 s / n with a delta, and variances sqrt(2) times that, where s is
    what Gaussian noise needs for a sensitivity of 1; and without a delta of about 1.5 (d + 1) r^2 / (n epsilon) for d
    columns: many columns need a delta. The mean adds to it; `standard_errors_` has it in figures. The expected
    contribution of the noise is then subtracted (``shrinkage="auto"``), which helps most where most directions have
    similar variances. This reduces the error of the whole matrix and biases single entries. Where the noise dominates,
    above all without a delta, the result has equal variances and no correlation. It is about as near as the better of
    that and the noisy matrix, or nearer, but for signals that hardly stand out, where it was up to 1.9 times as far
    off.

    With ``neighbours="add_remove"`` and a delta, noise is 1 / sqrt(2) of that; without a delta, of 5 columns with their
    mean .83 of it. The noise of the number of rows adds to it: `standard_errors_` know.

    **Complexity.** O(n d^2) time in one pass, O(d^2) memory; O(d^3) for the release.

    {parameters}
    References
    ----------
    Dwork, Talwar, Thakurta, Zhang (2014), "Analyze Gauss: optimal bounds for privacy-preserving principal component
    analysis", STOC, algorithm 1, here with weights, an exact Gaussian law and the mean. Stein (1981), "Estimation of
    the mean of a multivariate normal distribution", Annals of Statistics, theorem 1. The proof: ``covariance.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.covariance import DPCovariance
    >>> X = np.random.default_rng(0).multivariate_normal([0, 1], [[1, 0.6], [0.6, 1]], 100_000)
    >>> model = DPCovariance(1.0, bounds=(-5, 5), random_state=0).fit(X)
    >>> model.covariance_.round(1)
    array([[1. , 0.6],
           [0.6, 1. ]])
    """

    _more_parameters = "    {parameters of a matrix}"
    _more_attributes = """
    covariance_ : ndarray of shape (n_features, n_features)
        Divided by n; symmetric, without negative eigenvalues.
    location_ : ndarray of shape (n_features,)
        Noisy mean; 0 where it was assumed.
    precision_ : ndarray of shape (n_features, n_features)
        The inverse of `covariance_`, whose variances in any direction count as at least the noise of one.
    standard_errors_ : ndarray of shape (n_features, n_features)
        Of the noise of each entry of the matrix that is not shrunken, which `confidence_interval` is centred at.
        Entries of `covariance_` are nearer to the truth as a whole, and may each be further from it than this.
    {columns seen}
    """
    _learned = ("covariance_", "location_")

    def confidence_interval(self, level=0.95):
        """Return intervals of the entries of the covariance of the clipped rows: a function of what is published.

        The noisy entry, before the matrix is shrunken, plus and minus a normal quantile times its standard error. An
        interval need not hold the entry of `covariance_`, which is shrunken. It is about the rows at hand, not about
        what they are a sample of, and each holds with about its level, not all of them at once.

        Parameters
        ----------
        level : float, default=0.95
            Above 0 and below 1.

        Returns
        -------
        ndarray of shape (n_features, n_features, 2)
        """
        check_is_fitted(self)
        checked_number("level", level, "above 0 and below 1", lambda v: 0 < v < 1)
        width = float(ndtri((1 + float(level)) / 2)) * self.standard_errors_
        return np.stack([self._unshrunken - width, self._unshrunken + width], axis=-1)

    def get_precision(self):
        """Return `precision_`."""
        check_is_fitted(self)
        return self.precision_

    def mahalanobis(self, X):
        """Return squared Mahalanobis distances of rows to `location_`: of private rows **not private**.

        Rows are clipped as in `fit`.

        Parameters
        ----------
        X : dense array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self)
        X = self._checked_X(X, reset=False, total=self._is_strict())
        if self._is_strict():
            self._note_predictions(len(X))
        with np.errstate(all="ignore"):
            apart = self._rows.clipped(X) - self.location_
            return np.einsum("ij,jk,ik->i", apart, self.precision_, apart)

    def error_norm(self, comp_cov, norm="frobenius", scaling=True, squared=True):
        """Return how far `covariance_` is from another matrix, as in `sklearn.covariance.EmpiricalCovariance`.

        Parameters
        ----------
        comp_cov : array-like of shape (n_features, n_features)
            Of private rows, what is returned is **not private**.
        norm : {"frobenius", "spectral"}, default="frobenius"
        scaling : bool, default=True
            Whether the squared error is divided by n_features.
        squared : bool, default=True

        Returns
        -------
        float
        """
        check_is_fitted(self)
        other = np.asarray(comp_cov, dtype=float)
        if other.shape != self.covariance_.shape:
            raise ValueError(f"comp_cov must have the shape {self.covariance_.shape}")
        if norm not in ("frobenius", "spectral"):
            raise ValueError('norm must be "frobenius" or "spectral"')
        error = np.linalg.norm(other - self.covariance_, "fro" if norm == "frobenius" else 2) ** 2
        error = error / len(other) if scaling else error
        return float(error if squared else np.sqrt(error))

    def score(self, X_test, y=None):
        """Return the mean log-likelihood of rows, which is **not private**: an exact release of these rows.

        Parameters
        ----------
        X_test : dense array-like or data frame of shape (n_rows, n_features)
        y : ignored

        Returns
        -------
        float
        """
        self._refuse_in_strict("score is refused, because it compares with raw data: call it outside of strict mode")
        check_is_fitted(self)
        X = self._checked_X(X_test, reset=False, total=False)
        self._note_score(len(X))
        # (columns that were declared constant have no density)
        free = np.diag(self.precision_) > 0
        apart = empirical_covariance((X - self.location_)[:, free], assume_centered=True)
        return float(log_likelihood(apart, self.precision_[np.ix_(free, free)])) if free.any() else 0.0

    # ---------------------------------------------------------------- inside

    def _learn(self, scatter, rows, n_rows):
        scale, center = units_of(rows)
        units = np.outer(scale, scale)
        covariance = scatter.repaired(self.shrinkage) * units
        location = center + scale * scatter.mean if rows.fit_intercept else np.zeros(len(scale))
        if rows.low:
            location = np.clip(location, rows.low, rows.high)
        # (a variance that noise hides is not divided by: else rows would be far from others, or not at all, by noise)
        values, vectors = np.linalg.eigh(scatter.repaired(self.shrinkage))
        values = np.maximum(values, np.sqrt(scatter.square))
        back = np.divide(1.0, scale, out=np.zeros(len(scale)), where=scale > 0)
        precision = (vectors / values) @ vectors.T * np.outer(back, back)
        return {"covariance_": covariance, "location_": location, "precision_": (precision + precision.T) / 2,
                "standard_errors_": scatter.standard_errors() * units, "_unshrunken": scatter.matrix * units,
                "_rows": replace(rows)}

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 20.0, "bounds": (-1.0, 1.0)},
                {"epsilon": 20.0, "delta": 1e-3, "data_norm": 1.5, "assume_centered": True, "shrinkage": 0.2},
                {"epsilon": 1.0, "delta": 0.1, "bounds": (-1.0, 1.0), "neighbours": "add_remove"}]
