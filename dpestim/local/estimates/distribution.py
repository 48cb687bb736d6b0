"""Distributions from the reports of a transformer, by expectation maximisation (EM), smoothed or not."""

import math
import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dpestim.local.categories.grr import GRRFrequencyEstimator
from dpestim.local.estimates.collector import Collector
from dpestim.local.estimates.em import maximise
from dpestim.local.numbers.pm import PMTransformer
from dpestim.local.numbers.sdpm import SDPMTransformer
from dpestim.rng import check_random_state

#: Bins are for people to look at, and sums over them should stay in a cache.
MOST_BINS = 1 << 15


class DistributionEstimator(Collector):
    """Distributions of numbers under local differential privacy, by expectation maximisation (EM).

    The distribution over bins under which the counted reports are likeliest; with smoothing (EMS) a short average over
    neighbouring bins after each iteration keeps it from following the noise. Choose it for shape, quantiles or
    variance; `MeanEstimator` for a mean with an honest interval.

    **Privacy.** That of the transformer; what happens to reports costs nothing more (proof in ``distribution.md``).
    `n_iter_` and `log_likelihood_` are functions of reports, too.

    **Utility.** Near a maximum of the likelihood where ``smoothing=False`` (as near as `tol` says). Biased, with a
    smaller error than unbiased estimates of so many numbers; non-negative, sums to one. Smoothing reaches over
    neighbouring bins: with a small epsilon take more bins (256, say), not fewer.

    **Complexity.** O(n) for n reports, once; O(n_bins) an iteration for `PMTransformer` and `SDPMTransformer`, else
    O(inputs x outputs).

    {parameters}
    References
    ----------
    A. P. Dempster, N. M. Laird, D. B. Rubin, "Maximum likelihood from incomplete data via the EM algorithm", JRSS B
    39, 1977; Z. Li et al., "Estimating numerical distributions under local differential privacy", SIGMOD 2020,
    algorithm 1 (smoothing).

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import DistributionEstimator, PMTransformer
    >>> heights = np.random.default_rng(0).normal(1.7, 0.1, (50_000, 1))
    >>> est = DistributionEstimator(PMTransformer(2.0, bounds=(1.2, 2.2), random_state=0), n_bins=32).fit(heights)
    >>> bool(abs(est.quantile(0.5)[0] - np.median(heights)) < 0.05)
    True
    """

    _more_parameters = """
    n_bins : int, default=64
        Bins between the bounds, at most 32768; they are aligned with the low interval of an `SDPMTransformer`.
    smoothing : bool, default=True
        Whether to average over neighbouring bins, with weights 1/4, 1/2 and 1/4, after each iteration.
    max_iter : int, default=10000
        Most iterations; not converging within them is a ConvergenceWarning.
    tol : float, default=1e-3
        Stop where an iteration changes the log-likelihood of the reports by less, on the average of ten.
    random_state : None, int, numpy.random.Generator or RandomState, default=None
        For the bootstrap of `confidence_interval` alone.
    """
    _more_attributes = """
    distribution_ : list of ndarray of shape (n_bins,)
        Estimated shares of the bins, one array for each column.
    bin_edges_ : list of ndarray of shape (n_bins + 1,)
        In the units of X. Categories lie in the middle of bins: those that are evenly spaced numbers in ascending order
        as they are, others as 0, 1, ...
    mean_, variance_ : ndarray of shape (n_features,)
        Of the estimated distributions, values spread evenly within a bin (categories are values).
    n_iter_ : list of int
        Iterations, for each column.
    log_likelihood_ : ndarray of shape (n_features,)
        Of the reports under the estimate.
    """

    def __init__(self, transformer=None, *, n_bins=64, smoothing=True, max_iter=10_000, tol=1e-3, random_state=None):
        self.transformer = transformer
        self.n_bins = n_bins
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

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
        return [column.to_units(edges) for column, (edges, _, _) in zip(self._columns, self._channels())]

    @property
    def mean_(self):
        """Means of the estimated distributions."""
        return np.array([
            column.to_units(0.5 + f @ _middles(e)) for column, f, e in self._with_positions()
        ])

    @property
    def variance_(self):
        """Variances of the estimated distributions."""
        out = []
        for column, f, edges in self._with_positions():
            middle, unit = _middles(edges), column.width
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
        q = np.asarray(q, np.float64)
        if q.ndim > 1 or not ((q >= 0) & (q <= 1)).all():
            raise ValueError("q must be a number or a list of numbers in [0, 1]")
        quantile_of = [_category_at if column.is_discrete else _quantile for column in self._columns]
        return np.stack([of(f, e, q) for of, f, e in zip(quantile_of, self.distribution_, self.bin_edges_)], axis=-1)

    def confidence_interval(self, level=0.95, *, n_bootstrap=100):
        """Return one (n_bins, 2) array for each column: percentiles of the estimates from resampled reports.

        They cover the noise and the drawing of the users, not the bias of the estimate (smoothing, bins at the border
        of zero).
        """
        if not 0 < level < 1:
            raise ValueError("level must lie strictly between 0 and 1")
        tails = [(1 - level) / 2, (1 + level) / 2]
        return [np.quantile(f, tails, axis=0).T for f in self.bootstrap(n_bootstrap)]

    def bootstrap(self, n_bootstrap=100):
        """Return one (n_bootstrap, n_bins) array for each column: estimates from resampled counts of reports."""
        if isinstance(n_bootstrap, bool) or not isinstance(n_bootstrap, Integral) or n_bootstrap < 2:
            raise ValueError("n_bootstrap must be an integer of at least 2")
        self._check_fitted()
        self._check_own_parameters()
        rng, out = _generator(self.random_state), []
        for (edges, output, channel), counts in zip(self._channels(), self._counts):
            shares = _grouped(counts, output, channel.n_outputs) / self._n_users
            # from the same start: what stops before a maximum is reached stops there for the estimate, too
            out.append(np.stack([
                self._maximise(channel, rng.multinomial(self._n_users, shares), _evenly(edges))[0]
                for _ in range(n_bootstrap)
            ]))
        return out

    def score(self, X, y=None):
        """Return minus the Wasserstein distance to the plain distribution of X, averaged over the columns.

        In the units of X. The score compares with raw data. It is **not private**: an exact, unmetered release of X,
        which a ledger records as an entry of epsilon 0 and strict mode refuses.
        """
        data = [np.sort(column.binned(rows)) for column, rows in zip(self._columns, self._raw(X))]
        return -float(np.mean([_wasserstein(*each) for each in zip(data, self.distribution_, self.bin_edges_)]))

    # ---------------------------------------------------------------- inside

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_known", None)
        return state

    def _check_columns(self, columns):
        self._check_own_parameters()
        for law in columns.laws:
            law.channel(int(self.n_bins))  # refuses laws without one matrix, and bins that do not suit the law

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
        check_random_state(self.random_state)
        if not isinstance(self.smoothing, bool | np.bool_):
            raise ValueError("smoothing must be True or False")
        if isinstance(self.tol, bool) or not isinstance(self.tol, Real) or not self.tol >= 0:
            raise ValueError("tol must be a number of at least 0")

    def _channels(self):
        return [law.channel(int(self.n_bins)) for law in self._columns.laws]

    def _with_positions(self):
        """Return (column, distribution, bin edges as positions) of each column."""
        return list(zip(self._columns, self.distribution_, (edges for edges, _, _ in self._channels())))

    def _maximise(self, channel, counts, start):
        return maximise(channel, counts, start, smooth=bool(self.smoothing), max_iter=int(self.max_iter), tol=self.tol)

    def _estimates(self):
        """Return (distribution, log-likelihood, iterations) of each column, computed when first asked for."""
        self._check_fitted()
        key = (self._n_users, self.n_bins, self.smoothing, self.max_iter, self.tol)
        known = vars(self).get("_known")
        if known is None or known[0] != key:
            self._check_own_parameters()
            out = []
            for (edges, output, channel), counts in zip(self._channels(), self._counts):
                seen = _grouped(counts, output, channel.n_outputs)
                f, value, n_iter, converged = self._maximise(channel, seen, _evenly(edges))
                if not converged:
                    warnings.warn("expectation maximisation did not converge: raise max_iter or tol",
                                  ConvergenceWarning, stacklevel=4)
                out.append((f, value, n_iter))
            known = self._known = (key, out)
        return known[1]

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"transformer": PMTransformer(2.0, bounds=(-1.0, 3.0), grid=64), "n_bins": 8},
            {"transformer": PMTransformer(3.0, bounds=([0.0, -5.0], [1.0, 5.0])), "n_bins": 12, "smoothing": False},
            {"transformer": SDPMTransformer(2.0, bounds=(0.0, 10.0), low_sensitivity=(2.0, 7.0)), "n_bins": 10},
            {"transformer": GRRFrequencyEstimator(1.0, categories=[[1, 2, 3, 4, 5]])},
        ]


def _grouped(counts, output, n_outputs):
    """Return the counts of the outputs of a channel from those of codes."""
    return np.bincount(output, weights=counts, minlength=n_outputs)


def _middles(edges):
    """Return the middles of bins less 1/2, so that sums lose no digits."""
    return (edges[1:] + edges[:-1] - 1) / 2


def _evenly(edges):
    """Return the shares of bins over which values are spread evenly."""
    return np.diff(edges) / (edges[-1] - edges[0])


def _category_at(f, edges, q):
    """Return the smallest category, the middle of its bin, up to which there is at least a share of q."""
    reached = np.cumsum(f) / np.sum(f)
    at = np.minimum(np.searchsorted(reached, q - 1e-12, side="left"), len(f) - 1)
    return (edges[:-1] + edges[1:])[at] / 2


def _quantile(f, edges, q):
    """Return where the distribution function, a line within each bin, reaches q."""
    reached = np.concatenate([[0.0], np.cumsum(f)])
    reached /= reached[-1]
    at = np.clip(np.searchsorted(reached, q, side="left") - 1, 0, len(f) - 1)
    # (an empty bin has no inside: its left edge)
    share = np.divide(q - reached[at], reached[at + 1] - reached[at], out=np.zeros_like(reached[at]),
                      where=reached[at + 1] > reached[at])
    return edges[at] + np.clip(share, 0, 1) * (edges[at + 1] - edges[at])


def _wasserstein(x, f, edges):
    """Return the integral of |quantile of the sorted x - quantile of f|, exactly: between its knots it is a line."""
    reached = np.concatenate([[0.0], np.cumsum(f)])
    reached /= reached[-1]
    knots = np.union1d(reached, np.arange(len(x) + 1) / len(x))
    a, b = knots[:-1], knots[1:]
    middle = (a + b) / 2
    own = x[np.minimum((middle * len(x)).astype(np.int64), len(x) - 1)]
    at = np.clip(np.searchsorted(reached, middle, side="right") - 1, 0, len(f) - 1)
    slope = np.divide(np.diff(edges)[at], f[at], out=np.zeros(len(at)), where=f[at] > 0)
    left, right = (edges[at] + slope * (v - reached[at]) - own for v in (a, b))
    # the integral of |line| from left to right over a unit
    crossing = left * right < 0
    both = np.abs(left) + np.abs(right)
    area = np.where(crossing, (left**2 + right**2) / np.where(crossing, 2 * both, 1.0), both / 2)
    return float(area @ (b - a))


def _generator(random_state):
    """Return NumPy's generator for the bootstrap: no private value depends on it."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(1 << 31))
    return np.random.default_rng(random_state)
