"""Distributions from the reports of a transformer: chosen by the reports, or by expectation maximisation (EM)."""

import math
import warnings
from numbers import Integral, Real

import numpy as np
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning

from dpestim.exceptions import NoIntervalError
from dpestim.local.categories.grr import GRRFrequencyEstimator
from dpestim.local.estimates.binned import category_at, middles, quantile, wasserstein
from dpestim.local.estimates.intervals import bearable, quantile_intervals, share_intervals
from dpestim.local.estimates.model import BINS, Fit, chosen, likelihood_of, model_of, rebinned
from dpestim.local.estimates.transformer_server import TransformerServer
from dpestim.local.numbers.pm import PMTransformer
from dpestim.local.numbers.sdpm import SDPMTransformer
from dpestim.parallel import one_thread
from dpestim.postprocessing.em import maximise

#: Bins are for people to look at, and sums over them should stay in a cache.
MOST_BINS = 1 << 15
#: Intervals are solved for together, which takes the cube of their number.
MOST_INTERVALS = 256
#: A mean that is so many standard errors from the unbiased one is worth a warning.
FAR = 5.0


class DistributionEstimator(TransformerServer):
    """Estimate distributions of numbers by expectation maximisation (EM) under local differential privacy.

    By default the reports determine the smoothness. The estimate is a mixture of the maximum likelihood distribution by
    EM, which finds spikes and overfits noise, and a smooth distribution of penalised likelihood. The log-odds of the
    two are the difference of their cross-validated log-likelihoods: each is fitted to one half of the reports and
    evaluated on the other half. Choose this estimator for shape, quantiles or variance, and `MeanEstimator` for a mean
    alone.

    **Privacy.** That of the transformer; processing reports costs no further privacy (proof in ``distribution.md``).
    `n_iter_` and `log_likelihood_` are functions of reports, too.

    **Utility.** Biased, with a smaller error than unbiased estimates of the shares of all bins; non-negative, sums to
    one. The default is mostly within a tenth of the Wasserstein error of the best of EM, smoothed or not, on 64 or 256
    bins, and often below it; not on values at regular steps, such as whole percents (``distribution.md`` has a table).
    `quantile_interval`, and `confidence_interval` of up to 8 bins, hold for any distribution; more bins need one that
    is smooth apart from spikes. They are as wide as reports are noisy, so bins are few by default; edges should lie
    halfway between values that are rounded. A mean more than 5 standard errors from the unbiased one is a UserWarning.

    **Complexity.** O(c (n + b)) time for n reports of c columns in b bins, once; then a fixed time for a law and any n.
    O(c b) memory.

    {parameters}
    References
    ----------
    A. P. Dempster, N. M. Laird, D. B. Rubin, "Maximum likelihood from incomplete data via the EM algorithm", JRSS B
    39, 1977; Z. Li et al., "Estimating numerical distributions under local differential privacy", SIGMOD 2020,
    algorithm 1 (EM with smoothing); S. N. Wood, M. Fasiolo, "A generalized Fellner-Schall method for smoothing
    parameter optimization", Biometrics 73, 2017, equation 6 (the weight of roughness); R. Varadhan, C. Roland, "Simple
    and globally convergent methods for accelerating the convergence of any EM algorithm", Scandinavian Journal of
    Statistics 35, 2008, scheme S3 (EM's leaps); G. J. Feldman, R. D. Cousins, "Unified approach to the classical
    statistical analysis of small signals", Phys. Rev. D 57, 1998 (intervals at zero). The mixture and the intervals are
    derived in ``distribution.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import DistributionEstimator, PMTransformer
    >>> heights = np.random.default_rng(0).normal(1.7, 0.1, (50_000, 1))
    >>> est = DistributionEstimator(PMTransformer(2.0, bounds=(1.2, 2.2), random_state=0)).fit(heights)
    >>> bool(abs(est.quantile(0.5)[0] - np.median(heights)) < 0.02)
    True
    >>> low, high = est.quantile_interval(0.5)[0]
    >>> bool(low <= np.median(heights) <= high)
    True
    """

    _more_parameters = """
    n_bins : int, default=256
        Bins of equal width between the bounds, at most 32768, for any grid of the law. For categories it is ignored:
        each is a bin.
    smoothing : "auto" or bool, default="auto"
        "auto" lets the reports choose. True averages over neighbouring bins, with weights 1/4, 1/2 and 1/4, after each
        EM iteration, which reaches far where epsilon is small. False does not smooth at all. Categories are never
        smoothed by "auto", and True is refused for those that are not evenly spaced numbers.
    max_iter : int, default=10000
        Most EM iterations; not converging within them is a ConvergenceWarning.
    tol : float, default=1e-3
        EM stops where an iteration changes the log-likelihood of the reports by less, on the average of ten, or, under
        "auto", of fifteen and a leap.
    """
    _more_attributes = """
    distribution_ : list of ndarray of shape (n_bins,)
        Estimated shares of the bins, one array for each column; NaN for one that nobody reported (by
        ``strategy="sample"``), as are its mean, variance and quantiles.
    bin_edges_ : list of ndarray of shape (n_bins + 1,)
        In the units of X. Categories lie in the middle of bins: those that are evenly spaced numbers in ascending order
        as they are, others as 0, 1, ...
    mean_, variance_ : ndarray of shape (n_features,)
        Of the estimated distributions, values spread evenly within a bin (categories are values).
    n_iter_ : list of int
        EM iterations, for each column.
    log_likelihood_ : ndarray of shape (n_features,)
        Of the reports under the estimate.
    {missing}
    """

    def __init__(self, transformer=None, *, n_bins=BINS, smoothing="auto", max_iter=10_000, tol=1e-3):
        self.transformer = transformer
        self.n_bins = n_bins
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol

    def release(self):
        """Return `distribution_`."""
        return self.distribution_

    @property
    def distribution_(self):
        """Estimated shares of the bins."""
        return [f.copy() for f, _, _ in self._estimates()]

    @property
    def log_likelihood_(self):
        """Log-likelihood of the reports under the estimates."""
        return np.array([value for _, value, _ in self._estimates()])

    @property
    def n_iter_(self):
        """Iterations done."""
        return [n for _, _, n in self._estimates()]

    @property
    def bin_edges_(self):
        """Edges of the bins."""
        self._check_fitted()
        return [column.to_units(self._edges(column)) for column in self._columns]

    @property
    def mean_(self):
        """Means of the estimated distributions."""
        return np.array([
            column.to_units(0.5 + f @ middles(e)) for column, f, e in self._with_positions()
        ])

    @property
    def variance_(self):
        """Variances of the estimated distributions."""
        out = []
        for column, f, edges in self._with_positions():
            middle, unit = middles(edges), column.width
            inside = 0.0 if column.is_discrete else np.square(np.diff(edges)) / 12
            out.append(f @ (np.square(middle - f @ middle) + inside) * unit * unit)
        return np.array(out)

    def quantile(self, q):
        """Return quantiles of the estimated distributions.

        Parameters
        ----------
        q : float or array-like of shape (n_q,)
            In [0, 1].

        Returns
        -------
        ndarray of shape (n_features,) or (n_q, n_features)
        """
        q = _checked(q)
        quantile_of = [category_at if column.is_discrete else quantile for column in self._columns]
        return np.stack([of(f, e, q) for of, f, e in zip(quantile_of, self.distribution_, self.bin_edges_)], axis=-1)

    def confidence_interval(self, level=0.95, *, n_bins=None):
        """Return one (n_bins, 2) array for each column: intervals for the shares of bins.

        They are about the users who reported, and do not depend on `smoothing`. Up to 8 bins they hold for any
        distribution: an end is the last share that a likelihood-ratio test does not reject, and values on an edge may
        be counted on either side. More bins need one that is smooth apart from some spikes: intervals are then a
        least-squares inversion of the law, with an allowance for how values lie within bins, and unified (Feldman and
        Cousins 1998), which have their level next to 0, too. About `level` of the bins are covered, on average over
        bins and reports (``distribution.md`` and ``docs/coverage.md`` have what was measured).

        Reports do not tell on which side of an edge the values are that lie on it. **Values are assumed to be rounded
        to 1, 2 or 5 times a power of ten, if at all.** Edges on such numbers have wider intervals, or are refused where
        much lies on them; rounding to other steps, such as 1/16, is not allowed for. Choose edges halfway between
        values: of heights in whole centimetres (PM and SW, epsilon 3, 50,000 users) 96 to 100 % of 10 to 50 bins are
        covered with the bounds (120, 220) and with (119.5, 219.5), whose intervals are half as wide.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).
        n_bins : int, default=None
            Bins of equal width, at most 256. None: for each column as many as its reports have intervals for, 2 to
            256, told by the number of reports and the law alone, and no more than `distribution_` has; the length of
            an array says how many. Categories have their own.

        Returns
        -------
        list of ndarray of shape (n_bins, 2)

        Raises
        ------
        ValueError
            For more than 256 bins; a NoIntervalError where half of the intervals of a column would be wider than 0.5,
            or, of more than 8 bins, more than 15 %, and 5 % of the values, may be on the wrong side of an edge.
        """
        z = _z(level)
        if n_bins is not None and (
            isinstance(n_bins, bool) or not isinstance(n_bins, Integral) or not 1 <= n_bins <= MOST_INTERVALS
        ):
            raise ValueError(f"n_bins must be an integer from 1 to {MOST_INTERVALS}, for intervals")
        self._check_fitted()
        out = []
        for column, all_counts in zip(self._columns, self._counts):
            counts, own_z = column.shape_counts(all_counts), z
            if column.may_be_missing:  # (half of the error is for how many values are missing)
                own_z = _z(1 - (1 - level) / 2)
            edges = self._edges(column, self._bearable(column, counts, own_z) if n_bins is None else n_bins)
            if counts.any():
                with one_thread():
                    shares = self._fit_of(column, counts, "auto").shares
                    try:
                        found = share_intervals(column.shape_law, counts, shares, edges, own_z, column.to_units(edges))
                    except NoIntervalError as error:
                        raise NoIntervalError(f"{error} ({column.name})") from None
                out.append(column.unmixed_intervals(all_counts, found, own_z) if column.may_be_missing else found)
            else:
                out.append(np.tile([0.0, 1.0], (len(edges) - 1, 1)))
        return out

    def quantile_interval(self, q, level=0.95):
        """Return intervals for quantiles, of any distribution.

        They have about their level or more: an end is the last position of 257 between the bounds that a
        likelihood-ratio test does not reject. At epsilon 1 and 50,000 users (PM, a bell) those of 95 % are 0.05 of the
        range wide for the median and 0.12 for the quantiles of 5 and 95 %; at epsilon 3 they are 0.03 and 0.04 wide.

        Parameters
        ----------
        q : float or array-like of shape (n_q,)
            In [0, 1].
        level : float, default=0.95
            In (0, 1): what each of them covers, about, or more.

        Returns
        -------
        ndarray of shape (n_features, 2) or (n_q, n_features, 2)
        """
        z, q = _z(level), _checked(q)
        self._check_fitted()
        out = []
        for column, counts in zip(self._columns, self._counts):
            if column.may_be_missing:
                raise NoIntervalError(f"quantile_interval has no interval for {column.name}, whose values may be "
                                      "missing: take quantile without an interval, or confidence_interval of bins")
            if column.is_discrete:
                raise ValueError("quantile_interval needs numbers between bounds: for categories call "
                                 "confidence_interval")
            ends = np.tile([0.0, 1.0], (q.size, 1))
            if counts.any():
                with one_thread():
                    shares = self._fit_of(column, counts, "auto").shares
                    ends = quantile_intervals(column.law, counts, shares, np.atleast_1d(q), z)
            out.append(column.to_units(ends))
        stacked = np.stack(out, axis=1)
        return stacked if q.ndim else stacked[0]

    def score(self, X, y=None):
        """Return minus the Wasserstein distance to the plain distribution of X, averaged over the columns.

        In the units of X. The score compares with raw data. It is **not private**: an exact, unmetered release of X,
        which a ledger records as an entry of epsilon 0 and strict mode refuses.
        """
        data = [np.sort(column.binned(rows)) for column, rows in zip(self._columns, self._raw(X))]
        return -float(np.mean([wasserstein(*each) for each in zip(data, self.distribution_, self.bin_edges_)]))

    # ---------------------------------------------------------------- inside

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_known", None)
        return state

    def _check_columns(self, columns):
        self._check_own_parameters()
        for column in columns:
            model = model_of(column.shape_law, BINS)  # refuses laws without one matrix
            if model.channel.n_outputs <= 2 and not column.is_discrete:
                raise ValueError(f"transformer must send more than two different answers for {column.name}, because "
                                 "two answers determine the mean only: take SWTransformer or PMTransformer, or "
                                 "MeanEstimator for the mean")
            if self.smoothing is not False and self.smoothing != "auto" and not column.is_even:
                raise ValueError(f"smoothing must not be True for {column.name}, whose categories are not evenly "
                                 "spaced numbers: take 'auto' or False")

    def _add(self, client, columns, names, counts, n):
        super()._add(client, columns, names, counts, n)
        vars(self).pop("_known", None)

    def _forget(self):
        super()._forget()
        vars(self).pop("_known", None)

    def _check_own_parameters(self):
        for name, most in (("n_bins", MOST_BINS), ("max_iter", math.inf)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= value <= most:
                limit = f" and at most {most}" if most < math.inf else ""
                raise ValueError(f"{name} must be an integer of at least 1{limit}")
        if not isinstance(self.smoothing, bool | np.bool_ | str) or self.smoothing not in ("auto", True, False):
            raise ValueError("smoothing must be 'auto', True or False")
        if isinstance(self.tol, bool) or not isinstance(self.tol, Real) or not self.tol >= 0:
            raise ValueError("tol must be a number of at least 0")

    def _edges(self, column, n_bins=None):
        """Return the edges of the bins as positions: those between the bounds, or around categories."""
        if column.is_discrete:
            return model_of(column.law, BINS).edges
        return np.linspace(0.0, 1.0, int(self.n_bins if n_bins is None else n_bins) + 1)

    def _bearable(self, column, counts, z):
        """Return how many bins a column has intervals for by default; of what is chosen by numbers that are public."""
        if column.is_discrete or not counts.any():
            return min(int(self.n_bins), MOST_INTERVALS)
        with one_thread():
            return min(int(self.n_bins), bearable(column.shape_law, int(counts.sum()), z))

    def _fewest_bearable(self, level):
        """Return the least number of bins that a column has intervals for by default."""
        z = _z(level)
        return min(self._bearable(column, column.shape_counts(counts), z)
                   for column, counts in zip(self._columns, self._counts))

    def _with_positions(self):
        """Return (column, distribution, bin edges as positions) of each column."""
        return [(column, f, self._edges(column)) for column, f in zip(self._columns, self.distribution_)]

    def _fit_of(self, column, counts, smoothing):
        """Return the fit of a column, on the bins of `_model`."""
        limits = {"max_iter": int(self.max_iter), "tol": self.tol}
        if smoothing == "auto" and not column.is_discrete:
            return chosen(column.shape_law, counts, **limits)
        model = self._model(column, smoothing)
        f, _, n_iter, converged = maximise(
            model.channel, model.seen(counts), model.even, smooth=smoothing is True, **limits)
        return Fit(f, n_iter, converged)

    def _model(self, column, smoothing):
        # an SDPM needs a bin on each side of its low interval; the bins that are released need not be those of the fit
        return model_of(column.shape_law, BINS if smoothing == "auto" else max(int(self.n_bins), 3))

    def _estimates(self):
        """Return (distribution, log-likelihood, iterations) of each column, computed when first asked for."""
        self._check_fitted()
        key = (self._n_users, self.n_bins, self.smoothing, self.max_iter, self.tol)
        known = vars(self).get("_known")
        if known is None or known[0] != key:
            self._check_own_parameters()
            smoothing = self.smoothing if isinstance(self.smoothing, str) else bool(self.smoothing)
            out = []
            for column, counts in zip(self._columns, self._counts):
                if column.shape_counts(counts).any():
                    with one_thread():
                        out.append(self._estimate(column, counts, smoothing))
                else:  # columns may be drawn, and this one by nobody
                    out.append((np.full(len(self._edges(column)) - 1, np.nan), 0.0, 0))
            known = self._known = (key, out)
        return known[1]

    def _estimate(self, column, all_counts, smoothing):
        counts = column.shape_counts(all_counts)
        fit, model = self._fit_of(column, counts, smoothing), self._model(column, smoothing)
        if not fit.converged:
            warnings.warn("expectation maximisation did not converge: raise max_iter or tol", ConvergenceWarning,
                          stacklevel=5)
        _warn_if_far(column, model_of(column.shape_law, BINS), counts, fit.shares @ model.middles)
        value, f = likelihood_of(model, fit.shares, counts), fit.shares
        if not column.is_discrete:
            f = column.unmixed(all_counts, rebinned(f, model.edges, self._edges(column)))
        return f, value, fit.n_iter

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"transformer": PMTransformer(2.0, bounds=(-1.0, 3.0), grid=64), "n_bins": 8},
            {"transformer": PMTransformer(3.0, bounds=([0.0, -5.0], [1.0, 5.0]), grid=256), "n_bins": 12,
             "smoothing": False},
            {"transformer": SDPMTransformer(2.0, bounds=(0.0, 10.0), low_sensitivity=(2.0, 7.0)), "n_bins": 10},
            {"transformer": GRRFrequencyEstimator(1.0, categories=[[1, 2, 3, 4, 5]])},
            {"transformer": PMTransformer(3.0, bounds=([0.0] * 3, [1.0] * 3), grid=64, strategy="sample"),
             "n_bins": 8},
        ]


def _warn_if_far(column, model, counts, mean):
    """Warn where a mean is further from the unbiased one than chance explains."""
    (numbers, bias), seen = model.mean_numbers, model.seen(counts)
    n = seen.sum()
    if n < 2:
        return
    plain = numbers @ seen / n
    spread = np.square(numbers - plain) @ seen / (n - 1)
    error = np.sqrt(max(spread, column.least_noise(numbers[model.output], plain, counts, n)) / n)
    far = abs(mean - plain) - bias - model.widths.max() / 2
    if far > FAR * error:
        warnings.warn(f"the distribution of {column.name} has a mean more than {FAR:g} standard errors from the "
                      "unbiased mean: set smoothing='auto', or take the mean of MeanEstimator", stacklevel=6)


def _z(level):
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError("level must be a number strictly between 0 and 1")
    return float(ndtri(0.5 + level / 2))


def _checked(q):
    try:
        found = np.asarray(q, np.float64)
    except (TypeError, ValueError):
        found = np.array(np.nan)
    if found.ndim > 1 or not ((found >= 0) & (found <= 1)).all():
        raise ValueError("q must be a number or a list of numbers in [0, 1]")
    return found
