"""Principal components under central differential privacy (`pca.md`, `power.md`)."""

import math
from dataclasses import replace
from numbers import Integral, Real

import numpy as np
from scipy.optimize import isotonic_regression
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpestim._core import scaled
from dpestim.covariance.base import ScatterModel, units_of
from dpestim.inputs import number_rows
from dpestim.summaries import read_schema

#: Rows that are transformed at a time, which stay in the cache.
_BLOCK = 1 << 11


class DPPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ScatterModel):
    """Find principal components by one noisy covariance matrix, or by noisy power iteration.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for the declared `neighbours`, data sets of
    equal size that differ in one row, or of which one has one more row: that of `DPCovariance`, from whose noisy sums
    all that is kept is made, or of all rounds of ``method="power"`` together. Fitted attributes may be published. The
    caller of `fit` holds the rows and must be trusted. What `transform` returns is made of raw rows and stays **private
    data**: only a private step may follow, whose `data_norm` is `norm_bound`.

    **Utility.** A direction is found where its variance stands out of the noise, whose largest eigenvalue is about
    sqrt(2 d) times the standard error of a variance: r^2 sqrt(d) / (n epsilon) up to a constant, r the longest row.
    With epsilon alone (delta 0) it is about d^(3/2) r^2 / (n epsilon). Declare a delta, and bounds or a norm that
    are not far wider than the rows.

    ``method="power"`` has as much noise in each of its rounds as fits the budget, so that its directions are worse
    however many columns there are (`benchmarks/components.py`): it is for more columns than a matrix has room for.

    **Complexity.** O(n d^2) time in one pass, O(d^2) memory; O(d^3) for the release. With ``method="power"``
    O(n d k) time for each of its passes and O(d k) memory, for k components.

    {parameters}
    References
    ----------
    Dwork, Talwar, Thakurta, Zhang (2014), "Analyze Gauss: optimal bounds for privacy-preserving principal component
    analysis", STOC, algorithm 1, here with weights, an exact Gaussian law and the mean. Hardt, Price (2014), "The noisy
    power method: a meta algorithm with applications", NIPS. The proofs: ``pca.md``, ``power.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.decomposition import DPPCA
    >>> X = np.random.default_rng(0).normal(size=(50_000, 4)) * [3, 1, 0.3, 0.3]
    >>> pca = DPPCA(1.0, delta=1e-6, n_components=2, data_norm=8, random_state=0).fit(X)
    >>> np.abs(pca.components_).round(1)
    array([[1., 0., 0., 0.],
           [0., 1., 0., 0.]])
    >>> pca.norm_bound, pca.transform(X).shape
    (8.000008, (50000, 2))
    """

    _more_parameters = """\
    n_components : int, float or None, default=None
        How many components are kept: None is all; a number above 0 and below 1 takes as many as have that share of the
        noisy variance.
    method : {"covariance", "power"}, default="covariance"
        One noisy matrix of all products of columns; or rounds of noisy products with a basis, for thousands of columns
        and few components, whose number must be an integer then, with a delta above 0. Rounds need the rows again, so
        that nothing can be summarised, and are for neighbours of equal size alone.
    iterated_power : int, default=3
        Rounds of ``method="power"``, from 1 to 100; each has its part of the budget.
    whiten : bool, default=False
        Whether transformed columns are divided by the roots of their noisy variances.
    {parameters of a matrix}
    """
    _more_attributes = """
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal rows, the largest noisy variance first; the entry of largest absolute value is positive.
    explained_variance_ : ndarray of shape (n_components,)
        Variances of the repaired matrix along `components_`, divided by n - 1, in squared units of X. With
        ``method="power"`` those of the round before the last one's directions, which hold more: much more where
        `iterated_power` is small.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Shares of the noisy total.
    singular_values_ : ndarray of shape (n_components,)
        Roots of n - 1 times `explained_variance_`.
    mean_ : ndarray of shape (n_features,)
        Noisy mean, 0 where it was assumed.
    noise_variance_ : float
        Mean of the noisy variances of what was left out.
    n_components_ : int
    n_samples_ : int
        The number of rows where it is public, else a noisy one.
    norm_bound : float
        The largest Euclidean norm of a transformed row: from parameters alone, but for `whiten`.
    {columns seen}
    """
    _learned = ("components_", "explained_variance_", "mean_")

    def __init__(self, epsilon=1.0, *, n_components=None, method="covariance", iterated_power=3, whiten=False,
                 delta=None, bounds=None, data_norm=None, assume_centered=False, shrinkage="auto",
                 neighbours=None, ledger=None, random_state=None):
        super().__init__(epsilon, delta=delta, bounds=bounds, data_norm=data_norm, assume_centered=assume_centered,
                         shrinkage=shrinkage, neighbours=neighbours, ledger=ledger, random_state=random_state)
        self.n_components = n_components
        self.method = method
        self.iterated_power = iterated_power
        self.whiten = whiten

    @property
    def norm_bound(self):
        """The largest Euclidean norm of a transformed row, for the `data_norm` of the model that follows."""
        if hasattr(self, "_rows"):
            reach = reach_of(self._rows)
        elif self.bounds is None and self.data_norm is not None and not self.whiten:
            reach = float(self.data_norm)
        else:
            raise AttributeError("norm_bound is available after fit, or before if data_norm is declared, without "
                                 "bounds and without whiten")
        reach *= 1 + 1e-6  # (sums are rounded)
        return reach / float(self._divisors.min()) if self.whiten else reach

    def transform(self, X):
        """Return rows, clipped as in `fit`, in terms of components: of private rows **not private**.

        Parameters
        ----------
        X : dense array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        check_is_fitted(self)
        strict = self._is_strict()
        X = self._unread(X, reset=False, total=strict)
        if strict:
            self._note_predictions(len(X))
        rows, offset = self._rows, self.components_ @ self.mean_
        out = np.empty((len(X), self.n_components_))
        turn = np.ascontiguousarray(self.components_, np.float64)
        own = turn, -offset, reach_of(rows), self._divisors if self.whiten else np.empty(0)
        open_ends = np.full((2, self.n_features_in_), [[-np.inf], [np.inf]])
        for at in range(0, len(X), _BLOCK):
            block = out[at : at + _BLOCK]
            with np.errstate(over="ignore"):  # (a wider float than this becomes an infinite one)
                raw = np.ascontiguousarray(X[at : at + _BLOCK], np.float64)
            # (private steps may follow: by a kernel that takes each row by itself, as a product of matrices of other
            # sizes rounds a row otherwise)
            if rows.cuts or not scaled.project(raw, rows.ends, *own, block):
                if not (strict or scaled.all_finite(raw.reshape(-1))):
                    with np.errstate(over="ignore"):
                        every = np.ascontiguousarray(X, np.float64)
                    self._refuse_unless_finite(every, False)
                scaled.project(np.ascontiguousarray(rows.clipped(raw), np.float64), open_ends, *own, block)
        return out

    def inverse_transform(self, X):
        """Return rows in their old units (what was clipped or left out stays so).

        Parameters
        ----------
        X : dense array-like of shape (n_rows, n_components)

        Returns
        -------
        ndarray of shape (n_rows, n_features)
        """
        check_is_fitted(self)
        X = number_rows(X, strict=self._is_strict(), fewest=0).astype(np.float64)
        if X.shape[1] != self.n_components_:
            raise ValueError(f"X must have the {self.n_components_} columns that transform returns, not {X.shape[1]}")
        X = X * self._divisors if self.whiten else X
        return X @ self.components_ + self.mean_

    def get_covariance(self):
        """Return the covariance of the model, an ndarray of shape (n_features, n_features).

        Components with their variances, and `noise_variance_` in all other directions.
        """
        check_is_fitted(self)
        more = self.explained_variance_ - self.noise_variance_
        return (self.components_.T * more) @ self.components_ + self.noise_variance_ * np.eye(self.n_features_in_)

    # ---------------------------------------------------------------- inside

    @property
    def _n_features_out(self):
        return self.n_components_

    def _check_own(self):
        n = self.n_components
        whole = isinstance(n, Integral) and not isinstance(n, bool) and n >= 1
        part = isinstance(n, Real) and not isinstance(n, Integral | bool) and 0 < n < 1
        if not (n is None or whole or part):
            raise ValueError("n_components must be None, an integer of at least 1, or a number above 0 and below 1")
        if not isinstance(self.whiten, bool | np.bool_):
            raise ValueError("whiten must be True or False")
        if not isinstance(self.method, str) or self.method not in ("covariance", "power"):
            raise ValueError('method must be "covariance" or "power"')
        rounds = self.iterated_power
        if isinstance(rounds, bool) or not isinstance(rounds, Integral) or not 1 <= rounds <= 100:
            raise ValueError("iterated_power must be an int from 1 to 100")
        if self.method == "power" and not (whole and self.delta and self.shrinkage == "auto"):
            raise ValueError('method="power" needs an integer for n_components, a delta above 0, and no shrinkage')
        if self.method == "power" and not self._replaces:
            raise ValueError('method="power" needs neighbours="substitution", because it uses the number of rows as '
                             "public")

    def _domain(self, n_columns, data=None):
        if isinstance(self.n_components, Integral) and self.n_components > n_columns:
            raise ValueError(f"n_components must be at most the number of columns of X, which is {n_columns}")
        return super()._domain(n_columns, data)

    def _learn(self, scatter, rows, n_rows):
        scale, center = units_of(rows)
        units = np.outer(scale, scale)
        # (directions of the noisy matrix itself: where little stands out the repair turns them to the axes)
        vectors = np.linalg.eigh(scatter.matrix * units)[1][:, ::-1].T
        covariance = scatter.repaired(self.shrinkage) * units * (n_rows / max(1, n_rows - 1))
        values = np.maximum(np.einsum("ij,jk,ik->i", vectors, covariance, vectors), 0.0)
        # (in their order, which is that of the noisy matrix: the nearest variances that fall)
        values = isotonic_regression(values, increasing=False).x
        shares = values / values.sum() if values.sum() > 0 else np.zeros(len(values))
        k = len(values) if self.n_components is None else self.n_components
        if not isinstance(k, Integral):
            k = min(len(values), int(np.searchsorted(np.cumsum(shares), k)) + 1)
        mean = np.zeros(len(scale))
        if rows.fit_intercept:
            mean = center + scale * scatter.mean
        # (a variance below what noise has of one is not divided by)
        floor = math.sqrt(scatter.square) * float(np.square(scale).max())
        return self._kept(vectors[:k], values[:k], float(values.sum()), mean, floor, rows, n_rows)

    def _planned(self, data, n_rows, n_columns, epsilon, delta):
        if self.method == "covariance":
            return super()._planned(data, n_rows, n_columns, epsilon, delta)
        domain = self._domain(n_columns, data)
        finite = self._finite(data, domain)
        return self._drawn(lambda law, answers: self._asked(finite, domain, law, answers), n_rows, domain, epsilon,
                           delta)

    @staticmethod
    def _asked(*given):
        """Return what answers the rounds of ``method="power"``."""
        from dpestim.decomposition.power import Rows  # (as all that one noisy matrix does not need)

        return Rows(*given)

    def fit_parts(self, ask, example):
        """Fit to rows in parts (`dpestim.passes`), asked in several rounds where the method is "power".

        {fit of parts}
        """
        epsilon, delta = self._check()
        if self.method == "covariance":
            super().fit_parts(ask, example)
            return
        super()._check_mergeable()
        from dpestim.decomposition.power import PartRows, PartSums
        from dpestim.passes import Blueprint, CountRows

        trial = self._trial(example[0])
        _, _, n_columns = trial._read(example[0], None, True)
        domain, blueprint = trial._domain(n_columns), replace(Blueprint.of(self), state=read_schema(trial))
        n_rows, request = ask(CountRows(blueprint, (domain,))), PartSums(blueprint, domain)
        draw = trial._drawn(lambda law, answers: PartRows(ask, request, law, answers), n_rows, domain, epsilon, delta)
        self._keep(self._promised(draw, epsilon, delta), n_rows, read_schema(trial), draw)

    def _read_part(self, rows, domain):
        """Return the rows of a part as `fit` reads them: with the columns of the others."""
        return self._finite(self._read(rows[0], None, False)[0], domain)

    def _drawn(self, make, n_rows, domain, epsilon, delta):
        """Return what draws all rounds; `make` returns what answers of rows (the law, what adds noise)."""
        from dpestim.decomposition.power import MOST_ROWS, components_of, power_law
        from dpestim.progress import Progress

        k, rounds = int(self.n_components), int(self.iterated_power)
        if n_rows >= MOST_ROWS:
            raise ValueError(f"X must have fewer than {MOST_ROWS} rows for method='power'")
        law = power_law(epsilon, delta, rounds, k, domain.fit_intercept)

        def draw(source):
            with np.errstate(all="ignore"):
                vectors, values, mean, total, deviation = components_of(
                    make(law, self._answers(source)), domain, n_rows, k, rounds, Progress(self, rounds))
                again = n_rows / max(1, n_rows - 1)
                return self._kept(vectors, values * again, total * again, mean, deviation, domain, n_rows)

        draw.law = law
        return draw

    def _check_mergeable(self):
        if self.method == "power":
            raise ValueError("method must be 'covariance' to summarise rows, because each round of 'power' needs the "
                             "rows again: use fit")
        super()._check_mergeable()

    def _kept(self, vectors, values, total, mean, floor, rows, n_rows):
        """Return what is kept of directions with variances, out of a total, by name."""
        k, d = vectors.shape
        signs = np.sign(vectors[np.arange(k), np.abs(vectors).argmax(axis=1)])
        order = np.argsort(-values, kind="stable")
        vectors, values = (vectors * np.where(signs == 0, 1.0, signs)[:, None])[order], values[order]
        return {
            "components_": vectors, "explained_variance_": values,
            "explained_variance_ratio_": values / total if total > 0 else np.zeros(k),
            "singular_values_": np.sqrt(values * max(1, n_rows - 1)),
            "mean_": np.clip(mean, rows.low, rows.high) if rows.low and rows.fit_intercept else mean,
            "noise_variance_": max(total - float(values.sum()), 0.0) / (d - k) if d > k else 0.0,
            "n_components_": int(k), "n_samples_": round(n_rows), "_rows": replace(rows),
            "_divisors": np.sqrt(np.maximum(values, max(floor, 1e-300))),
        }

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 20.0, "bounds": (-1.0, 1.0), "n_components": 2},
                {"epsilon": 2.0, "delta": 0.1, "data_norm": 1.5, "assume_centered": True, "whiten": True,
                 "shrinkage": 0.2},
                {"epsilon": 20.0, "delta": 1e-3, "bounds": (-1.0, 1.0), "n_components": 2, "method": "power"},
                {"epsilon": 20.0, "data_norm": 1.5, "assume_centered": True, "neighbours": "add_remove"}]


def reach_of(rows):
    """Return how far a clipped row is from the public center at most, in units of X."""
    corner = float(np.sqrt(np.square(rows.scales).sum())) if rows.low else math.inf
    if not rows.cuts:
        return corner
    return min(corner, rows.norm * float(rows.scales.max()))
