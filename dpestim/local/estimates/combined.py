"""One estimate from those of several groups of users: weights, unions of domains, bins, intervals, scores."""

import math
from functools import wraps

import numpy as np
from scipy.special import ndtri
from sklearn.utils.metaestimators import available_if

from dpestim.local.categories.estimates import postprocessed
from dpestim.local.estimates.mean import MeanEstimator
from dpestim.local.estimates.mixtures import (
    LEAST_VARIANCE,
    around,
    bins_of,
    distance,
    inverse_variances,
    on_common_bins,
    quantile_of,
    reached,
    scored,
    squared_reaches,
    times,
    union_of,
    weighted,
)

#: What `release` returns: the first of these that the wrapped estimator has.
_RELEASED = ("frequencies_", "distribution_", "mean_")


def _estimate(function):
    """Return a property that exists where the wrapped estimator has one of this name, once there are reports."""
    # (categories are no property of the class there, and come with frequencies)
    name = "frequencies_" if function.__name__ == "categories_" else function.__name__

    @wraps(function)
    def get(self):
        if not self._has(name):
            raise AttributeError(f"the wrapped estimator has no {function.__name__}: wrap an estimator that has one")
        self._check_fitted()
        return function(self)

    return property(get, doc=function.__doc__)


def _where_wrapped(name):
    return available_if(lambda self: self._has(name))


class Combined:
    """The estimates of a server that has one server for each of several groups (`_servers`); a mixin.

    They have the names that the wrapped estimator gives them, are made of the public estimates of the groups, and exist
    where it has them.
    """

    def release(self):
        """Return `frequencies_`, `distribution_` or `mean_`, the first that the wrapped estimator has."""
        return getattr(self, next(name for name in _RELEASED if self._has(name)))

    @_estimate
    def categories_(self):
        """All categories of all groups, one array for each column."""
        return [union_of(columns)[0] for columns in self._by_column()]

    @_estimate
    def frequencies_(self):
        """Estimated frequencies, one array for each column."""
        name = getattr(self.estimator, "postprocess", None)
        return [postprocessed(name, f, se) for f, se in zip(self._unbiased(), self.standard_errors_)]

    @_estimate
    def standard_errors_(self):
        """Standard errors of the unbiased frequencies, one array for each column."""
        variances = self._over_unions(lambda server: [np.square(se) for se in server.standard_errors_], 2)
        return [np.sqrt(v + more) for v, more in zip(variances, self._of_sampling())]

    @_estimate
    def mean_(self):
        """Estimated means."""
        return self._summed(lambda server: server.mean_)

    @_estimate
    def standard_error_(self):
        """Standard errors of the means."""
        return np.sqrt(self._summed(lambda server: np.square(server.standard_error_), 2))

    @_estimate
    def bias_(self):
        """The largest bias of the groups, as far as it may remain in the means, and that of absent groups."""
        return self._summed(lambda server: server.bias_) + self._of_absence()

    @_estimate
    def distribution_(self):
        """Shares of the bins."""
        return [f for f, _ in self._distributions()]

    @_estimate
    def bin_edges_(self):
        """Edges of the bins."""
        return [edges for _, edges in self._distributions()]

    @_estimate
    def variance_(self):
        """Variances of the combined distributions: within groups, and between them."""
        mean = self.mean_
        return self._summed(lambda server: server.variance_ + np.square(server.mean_ - mean))

    @_where_wrapped("quantile")
    def quantile(self, q):
        """Return quantiles of the combined distributions.

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
        self._check_fitted()
        discrete = [columns[0].is_discrete for columns in self._by_column()]
        return np.stack([quantile_of(f, e, q, d) for (f, e), d in zip(self._distributions(), discrete)], axis=-1)

    @_where_wrapped("confidence_interval")
    def confidence_interval(self, level=0.95, **options):
        """Return intervals like those of the wrapped estimator, from those of the groups (MOVER).

        They rest on what the groups' intervals rest on, and are about the users who took part. Those for shares of bins
        need groups with the same bounds; else ValueError.

        Parameters
        ----------
        level : float, default=0.95
        **options
            For the `confidence_interval` of the wrapped estimator. `n_bins` of a distribution is by default the least
            that a group or column would have by itself.
        """
        self._check_fitted()
        counted = self._counted()
        weights = None if self._has("frequencies_") else self._weights()
        if self._has("distribution_") and options.get("n_bins") is None:  # (the same for all: what the least can bear)
            options = {**options, "n_bins": min(server._fewest_bearable(level) for server in counted)}
        intervals = [server.confidence_interval(level, **options) for server in counted]
        if self._has("frequencies_"):
            centres = [server.frequencies_ for server in counted]
            reaches = {id(s): squared_reaches(*each) for s, *each in zip(counted, intervals, centres)}
            squares, z = self._over_unions(lambda server: reaches[id(server)], 2), ndtri(0.5 + level / 2)
            return [scored(f, s, z * z * c) for f, s, c in zip(self._unbiased(), squares, self._unevenness())]
        if self._has("standard_error_"):
            biases = [server.bias_[:, None] for server in counted]
            parts = [np.square(np.abs(ci - server.mean_[:, None]) - bias)
                     for ci, server, bias in zip(intervals, counted, biases)]
            squares = sum(times(np.square(w)[:, None], part) for w, part in zip(weights, parts))
            return around(self.mean_, np.sqrt(squares) + self.bias_[:, None])
        edges = [[bins_of(e, len(ci)) for e, ci in zip(s.bin_edges_, own)] for s, own in zip(counted, intervals)]
        if any(not np.array_equal(a, b) for own in edges for a, b in zip(own, edges[0])):
            raise ValueError("confidence_interval needs the same bins in all groups: settings must give all groups the "
                             "same bounds")
        out = []
        for j, parts in enumerate(zip(*intervals)):
            shares = [np.diff(np.interp(own[j], s.bin_edges_[j], reached(s.distribution_[j])))
                      for own, s in zip(edges, counted)]
            # intervals are not made of these estimates, and MOVER is about those within them
            within = [np.clip(f, *ci.T) for f, ci in zip(shares, parts)]
            squares = sum(w[j] ** 2 * square for w, square in zip(weights, squared_reaches(parts, within)))
            out.append(around(sum(w[j] * f for w, f in zip(weights, within)), np.sqrt(squares)))
        return out

    def score(self, X, y=None):
        """Return minus the error against the rows of X, averaged over the columns: higher is better.

        The mean squared error of frequencies or means, the Wasserstein distance of distributions. The score compares
        with raw data. It is **not private**: an exact, unmetered release of X, which a ledger records as an entry of
        epsilon 0 and strict mode refuses.
        """
        self._check_fitted()
        self._refuse_in_strict("score is refused, because it compares with raw data: call it outside of strict mode")
        estimates = self.release()  # (what cannot be combined is refused before a ledger is told)
        present, rows = self._raw(X)
        self._note_score(sum(len(data[0]) for data in rows))
        errors, features = [], self._counted()[0]._columns.features
        for j, columns in enumerate(self._by_column()):
            parts = [(columns[k], k, data[j]) for k, data in zip(present, rows)]
            if self._has("frequencies_"):
                union, places = union_of(columns)
                counts = [np.bincount(part, minlength=len(column.categories)) for column, _, part in parts]
                total = weighted(counts, np.ones(len(parts)), [places[k] for _, k, _ in parts], len(union))
                errors.append(np.square(total / total.sum() - estimates[j]).mean())
            elif self._has("standard_error_"):
                values = np.concatenate([column.numbers(part) for column, _, part in parts])
                errors.extend(np.atleast_1d(np.square(values.mean(axis=0) - estimates[features[j]])))
            else:
                values = np.concatenate([column.binned(part) for column, _, part in parts])
                errors.append(distance(values, estimates[j], self.bin_edges_[j]))
        return -float(np.mean(errors))

    # ---------------------------------------------------------------- inside

    def _has(self, name, server=None):
        """Tell whether the wrapped estimator, that of a server or else that in use, has something of this name."""
        server = self._servers[0] if server is None and self._n_users else server
        wrapped = self.estimator if server is None else server  # (a parameter may change, and what was counted not)
        return hasattr(MeanEstimator if wrapped is None else type(wrapped), name)

    def _check_together(self, columns, server):
        """Raise ValueError for groups, `Columns` for each, whose estimates by such a server cannot be combined."""
        inverse = self.weights == "inverse_variance"
        if inverse and not (self._has("frequencies_", server) or self._has("standard_error_", server)):
            raise ValueError("weights='inverse_variance' needs frequencies or means, because the law does not "
                             "determine the variance of an estimated distribution: take weights='stratified'")
        for own in zip(*columns):
            same = not any(column.is_discrete for column in own) or (
                all(column.is_discrete for column in own)
                and {len(column.categories) for column in own} == {len(union_of(own)[0])}
            )
            if inverse and not same:
                raise ValueError("weights='inverse_variance' needs the same categories in all groups: change settings, "
                                 "or take weights='stratified'")
            if self._has("distribution_", server) and not same:
                raise ValueError("settings must give all groups the same categories in each column, because "
                                 "distributions need common bins")

    def _counted(self):
        """Return the servers that have counted reports."""
        return [server for server in self._servers if server._n_users]

    def _by_column(self):
        """Return, for each column of a row, those of all groups, whether these have reports or not."""
        self._check_fitted()
        return list(zip(*self._columns_of(self._servers)))

    def _sizes(self):
        return np.array([server._n_users for server in self._counted()], np.float64)

    def _weights(self):
        """Return an array: of each group that has reports, its weight in every feature, 0 where it has none of that.

        Where columns are drawn, a group may have reports, and none of some column. NaN where nobody has any.
        """
        n = self._reports()
        if not self._has("standard_error_") and not n.all():
            k, j = np.argwhere(n == 0)[0]
            group, name = list(self.estimators_)[k], self._counted()[0]._columns.names[j]
            raise ValueError(f"{name} must have reports of every group, and no user of group {group!r} drew it: take "
                             "MeanEstimator, whose bias_ accounts for the missing group, or read each of estimators_")
        if self.weights == "stratified":
            weights = np.where(n > 0, self._sizes()[:, None], 0.0)
        else:
            weights = n / np.maximum([server._columns.even_variances() for server in self._counted()], LEAST_VARIANCE)
        total = weights.sum(axis=0)
        return np.divide(weights, total, out=np.full(n.shape, math.nan), where=total > 0)

    def _reports(self):
        """Return an array: of each group that has reports, how many it has of every feature."""
        return np.array([server._columns.n_reports(server._counts) for server in self._counted()])

    def _of_absence(self):
        """Return what bias groups may cause that have no report of a feature: claim 6 of ``personalized.md``."""
        absent = self._reports() == 0
        if self.weights != "stratified" or not absent.any():
            return 0.0
        lows = np.array([[low for column in server._columns for low in column.lows] for server in self._counted()])
        highs = np.array([[high for column in server._columns for high in column.highs] for server in self._counted()])
        return self._sizes() @ absent / self._n_users * (highs.max(axis=0) - lows.min(axis=0))

    def _category_weights(self, columns, places, size):
        """Return, for each group that has reports, its weight for all categories of a column."""
        if self.weights == "stratified":
            return [np.full(size, n / self._n_users) for n in self._sizes()]
        variances = []
        for column, server, place in zip(columns, self._servers, places):
            if server._n_users:
                d, own = len(column.categories), np.empty(size)
                own[place] = column.law.variance(server._n_users, np.full(d, 1 / d))
                variances.append(own)
        return list(inverse_variances(np.array(variances)))

    def _summed(self, of, power=1):
        """Return the weighted sum of what groups have, one number for each column; `power` of the weights."""
        return sum(times(w**power, of(server)) for w, server in zip(self._weights(), self._counted()))

    def _over_unions(self, of, power=1):
        """Return the same of what groups have for each category, for each column over all categories of all groups."""
        values, out = [of(server) for server in self._counted()], []
        for j, columns in enumerate(self._by_column()):
            union, places = union_of(columns)
            weights = [w**power for w in self._category_weights(columns, places, len(union))]
            mine = [place for place, server in zip(places, self._servers) if server._n_users]
            out.append(weighted([value[j] for value in values], weights, mine, len(union)))
        return out

    def _unbiased(self):
        return self._over_unions(lambda server: server.frequencies_)

    def _of_sampling(self):
        """Return what adds to the variances because weights are not shares: claim 5 of ``personalized.md``."""
        shares = [np.clip(f, 0.0, 1.0) for f in self._unbiased()]
        return [f * (1 - f) * uneven for f, uneven in zip(shares, self._unevenness())]

    def _unevenness(self):
        """Return what share (1 - share) is multiplied by there, for each category of each column."""
        out, n = [], self._n_users
        for columns in self._by_column():
            union, places = union_of(columns)
            if self.weights == "stratified" or n < 2:
                out.append(np.zeros(len(union)))
                continue
            weights = np.array(self._category_weights(columns, places, len(union)))
            uneven = (np.square(weights) / self._sizes()[:, None]).sum(axis=0) - 1 / n
            out.append(np.maximum(uneven, 0.0) * n / (n - 1))
        return out

    def _distributions(self):
        """Return (shares, edges of the bins) of each column."""
        counted, weights, out = self._counted(), self._weights(), []
        shares, edges = ([getattr(s, name) for s in counted] for name in ("distribution_", "bin_edges_"))
        for j in range(len(shares[0])):
            same, common = on_common_bins([f[j] for f in shares], [e[j] for e in edges])
            out.append((sum(w[j] * f for w, f in zip(weights, same)), common))
        return out
