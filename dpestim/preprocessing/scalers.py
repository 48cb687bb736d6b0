"""Scaling: by a noisy mean and spread, or from noisy quantiles to a range (`scalers.md`)."""

import math
from numbers import Real

import numpy as np
from sklearn.base import OneToOneFeatureMixin

from dpestim._core import scaled
from dpestim.models import checked_number
from dpestim.preprocessing.base import BoundedTransformer, scaled_norm
from dpestim.statistics.calibrated_noise import equal_shares, noise_for

#: Rows that are mapped at a time, which stay in the cache.
_BLOCK = 1 << 11
#: Numbers of columns that stand side by side for a kernel.
_LINE = 320


class DPStandardScaler(OneToOneFeatureMixin, BoundedTransformer):
    """Standardise columns by a noisy mean and a noisy standard deviation.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for data sets of equal size that differ in
    one row: sums of rows, clipped and rounded to integers, and n times their sums of squares minus the squares of their
    sums get noise, equal shares of epsilon each. What is kept (`mean_`, `var_`, `scale_`) may be published. The caller
    of `fit` holds the rows and must be trusted. What `transform` returns is made of raw rows and stays **private
    data**: only a private step may follow.

    **Utility.** With d columns and pure epsilon the mean has noise of a standard deviation of about
    2 sqrt(2) d (high - low) / (n epsilon), and the variance that times (high - low). A column is never divided by less
    than what its variance has of noise. Rows are clipped to the bounds, and then to `clip` standard deviations.

    **Complexity.** O(n d) time, O(d) memory for `fit`.

    {parameters}
    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data analysis", TCC,
    proposition 1. The proof: ``scalers.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.preprocessing import DPStandardScaler
    >>> X = np.random.default_rng(0).normal([170, 70], [10, 15], size=(20_000, 2))
    >>> scaler = DPStandardScaler(1.0, bounds=([120, 20], [220, 160]), clip=3, random_state=0).fit(X)
    >>> scaler.mean_.round(), scaler.scale_.round(), round(scaler.norm_bound, 2)
    (array([170.,  70.]), array([10., 15.]), 4.24)
    """

    _more_parameters = """\
    {delta of noise}
    {bounds}
    with_mean : bool, default=True
        Whether columns are centred.
    with_std : bool, default=True
        Whether they are scaled.
    clip : float, default=5.0
        Largest absolute value of a scaled value, above 0: it makes `norm_bound` public. None clips to bounds only.
    """
    _more_attributes = """
    mean_ : ndarray of shape (n_features,) or None
        Noisy means.
    var_ : ndarray of shape (n_features,) or None
        Noisy variances, at least 0.
    scale_ : ndarray of shape (n_features,) or None
        What columns are divided by.
    {bounds found}
    {norm_bound}
    {columns seen}
    """
    _learned = ("mean_", "scale_")

    def __init__(self, epsilon=1.0, *, delta=None, bounds=None, bounds_fraction=0.1, with_mean=True, with_std=True,
                 clip=5.0, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.bounds_fraction = bounds_fraction
        self.with_mean = with_mean
        self.with_std = with_std
        self.clip = clip
        self.ledger = ledger
        self.random_state = random_state

    @property
    def norm_bound(self):
        """The largest Euclidean norm of a transformed row, for the `data_norm` of the model that follows."""
        return math.inf if self.clip is None else scaled_norm(self, float(self.clip))

    def inverse_transform(self, X):
        """Return rows in their old units (what was clipped stays so)."""
        X = self._transformed(X)
        X = X if self.scale_ is None else X * self.scale_
        return X if self.mean_ is None else X + self.mean_

    # ---------------------------------------------------------------- inside

    def __sklearn_is_fitted__(self):
        return hasattr(self, "bounds_")

    def _check_own(self):
        for name in ("with_mean", "with_std"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False")
        if self.clip is not None:
            checked_number("clip", self.clip, "in [1e-6, 1e6], or None", lambda v: 1e-6 <= v <= 1e6)

    def _learns_more(self):
        return bool(self.with_mean or self.with_std)

    @property
    def _adds_up(self):
        return not self.with_std  # (a variance has products of sums)

    def _settings(self):
        return bool(self.with_mean), bool(self.with_std)

    def _sums(self, data, domain):
        from dpestim.statistics.sums import column_sums

        sums, squares = column_sums(data, domain, [(j, j) for j in range(len(domain))] if self.with_std else ())
        return [*sums, *squares]

    def _learn(self, n_rows, totals, grids, epsilon, delta):
        n, d, asked = n_rows, len(grids), self._settings()
        if not any(asked):
            return lambda source: {"mean_": None, "var_": None, "scale_": None}
        sums, squares = totals[:d], totals[d:]
        spans = [grid.span for grid in grids]
        numbers = [*(sums if asked[0] else ()), *(n * q - s * s for q, s in zip(squares, sums))]
        changes = [*(spans if asked[0] else ()),
                   *((max(1, n - 1) * span * span for span in spans) if asked[1] else ())]
        weights, l1, l2_squared = equal_shares(changes)
        noise = noise_for(epsilon, delta, l1, l2_squared, len(numbers))
        weighted = [weight * number for weight, number in zip(weights, numbers)]

        def draw(source):
            noisy = noise.add(weighted, source) / np.array(weights, float)
            step = np.array([grid.step for grid in grids])
            mean = var = scale = None
            if asked[0]:
                low, high = (np.array([getattr(grid, end) for grid in grids]) for end in ("low", "high"))
                center = np.array([grid.center for grid in grids], float)
                mean = np.clip((center + noisy[:d] / max(1, n)) * step, low, high)
            if asked[1]:
                unit = step**2 / max(1, n) ** 2
                most = np.square([span / 2 for span in spans]) * step**2
                var = np.clip(noisy[-d:] * unit, 0.0, most)
                error = math.sqrt(noise.variance) / np.array(weights[-d:], float) * unit
                scale = np.sqrt(np.clip(var, np.minimum(error, most), None))
            return {"mean_": mean, "var_": var, "scale_": scale}

        return draw

    def _map(self, rows):
        out = np.empty(rows.shape)
        for at in range(0, len(rows), _BLOCK):
            block = self._clipped(rows[at : at + _BLOCK])
            if self.mean_ is not None:
                block -= self.mean_
            if self.scale_ is not None:
                block /= self.scale_
            out[at : at + _BLOCK] = block if self.clip is None else np.clip(block, -self.clip, self.clip, out=block)
        return out

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "bounds": (-2.0, 2.0)},
                {"epsilon": 1.0, "bounds": ([-1, -2, -3], [1, 2, 3]), "delta": 0.1, "clip": 2.0},
                {"epsilon": 2.0, "bounds": "private"}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns."""
        return np.random.default_rng(seed).uniform(-1, 1, size=(n_rows, 3)), None


class DPMinMaxScaler(OneToOneFeatureMixin, BoundedTransformer):
    """Scale columns to a range by two noisy quantiles, or by declared bounds at no cost.

    The smallest and the largest value reveal most about the persons who have them. The ends are therefore inner
    quantiles, and values outside are clipped. With ``quantiles=None`` the declared bounds are the ends: nothing is
    learned or charged.

    **Privacy.** Pure epsilon in the central model for data sets of equal size that differ in one row: two choices a
    column among the points of a public grid, equal shares of epsilon each. All fitted attributes may be published. The
    caller of `fit` holds the rows and must be trusted. What `transform` returns is made of raw rows and stays **private
    data**: only a private step may follow.

    **Utility.** With d columns the rank of an end is, with probability 1 - b, within 4 d (ln(w / b) + 2.8) / epsilon
    of the quantile's (w: `dpestim.statistics.Quantile`).

    **Complexity.** O(n log n) time a column for `fit`.

    {parameters}
    References
    ----------
    Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates", STOC, algorithm 2.
    The proof: ``scalers.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.preprocessing import DPMinMaxScaler
    >>> X = np.random.default_rng(0).normal(170, 10, size=(20_000, 1))
    >>> scaler = DPMinMaxScaler(1.0, bounds=(0, 300), feature_range=(-1, 1), random_state=0).fit(X)
    >>> scaler.data_min_.round(-1), scaler.data_max_.round(-1), round(scaler.norm_bound, 2)
    (array([150.]), array([190.]), 1.0)
    >>> DPMinMaxScaler(bounds=(0, 300), quantiles=None).fit(X).privacy_.epsilon
    Fraction(0, 1)
    """

    _more_parameters = """\
    {bounds}
    feature_range : (float, float), default=(0, 1)
        What columns are mapped to, and clipped to.
    quantiles : (float, float) or None, default=(0.01, 0.99)
        Which parts of the rows lie below the ends, from 0 to 1, ascending. None: the bounds are the ends.
    """
    _more_attributes = """
    data_min_, data_max_, data_range_ : ndarray of shape (n_features,)
        Noisy ends of each column, or the bounds, and how far they are apart.
    min_, scale_ : ndarray of shape (n_features,)
        A value x becomes ``x scale_ + min_``.
    {bounds found}
    {norm_bound}
    {columns seen}
    """
    _learned = ("data_min_", "data_max_")

    _adds_up = False  # (it makes a private choice)

    def __init__(self, epsilon=1.0, *, bounds=None, bounds_fraction=0.1, feature_range=(0, 1), quantiles=(0.01, 0.99),
                 ledger=None, random_state=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.bounds_fraction = bounds_fraction
        self.feature_range = feature_range
        self.quantiles = quantiles
        self.ledger = ledger
        self.random_state = random_state

    @property
    def norm_bound(self):
        """The largest Euclidean norm of a transformed row, for the `data_norm` of the model that follows."""
        return scaled_norm(self, max(map(abs, _pair("feature_range", self.feature_range))))

    def inverse_transform(self, X):
        """Return rows in their old units (what was clipped stays so)."""
        return (self._transformed(X) - self.min_) / self.scale_

    # ---------------------------------------------------------------- inside

    def _check_own(self):
        _pair("feature_range", self.feature_range)
        if self.quantiles is not None:
            low, high = _pair("quantiles", self.quantiles)
            if not 0 <= low < high <= 1:
                raise ValueError("quantiles must be None or a pair of ascending numbers from 0 to 1")

    def _learns_more(self):
        return self.quantiles is not None

    def _settings(self):
        return (self._learns_more(),)

    def _sums(self, data, domain):
        if not self._learns_more():
            return []
        from dpestim.statistics.ranks import ranked

        return ranked(data, domain)

    def _sums_to_learn(self, data, grids, epsilon):
        if not self._learns_more() or self._is_strict():  # (values may be missing there)
            return self._sums(data, grids)
        from dpestim.statistics.near_ranks import ranked_near

        return ranked_near(data, grids, self._inner(grids, epsilon).near_ranks(len(data), len(grids)))

    def _inner(self, grids, epsilon):
        """Return what chooses both ends of all columns."""
        from dpestim.statistics.quantiles import Quantile

        ends = tuple(np.array([getattr(grid, end) for grid in grids]) for end in ("low", "high"))
        return Quantile(epsilon, q=list(self.quantiles), bounds=ends, neighbours="substitution")

    def _learn(self, n_rows, totals, grids, epsilon, delta):
        low, high = (np.array([getattr(grid, end) for grid in grids]) for end in ("low", "high"))
        start, stop = _pair("feature_range", self.feature_range)
        ends = None
        if self.quantiles is not None:
            ends = self._inner(grids, epsilon)._prepared(n_rows, totals, len(grids))

        def draw(source):
            least, most = (low, high) if ends is None else ends(source)
            width = np.maximum(most - least, (high - low) * 2.0**-16)
            scale = (stop - start) / width
            return {"data_min_": least, "data_max_": least + width, "data_range_": width, "scale_": scale,
                    "min_": start - least * scale}

        return draw

    def _map(self, rows):
        (n, d), out = rows.shape, np.empty(rows.shape)
        low, high = self.bounds_
        # (the lines of several rows side by side, so that vectors are whole ones)
        lines = np.tile([low, high, (low + high) / 2, self.scale_, self.min_], max(1, _LINE // d))
        step = n if rows.dtype == np.float64 and rows.flags.c_contiguous else _BLOCK
        for at in range(0, n, max(1, step)):
            with np.errstate(over="ignore"):  # (a wider float than this becomes an infinite one)
                block = np.ascontiguousarray(rows[at : at + step], np.float64)
            known = scaled.map_lines(block.reshape(-1), lines, *_pair("feature_range", self.feature_range),
                                     out[at : at + step].reshape(-1))
            if not (known or self._is_strict()):
                self._refuse_unless_finite(block, False)
        return out

    def _rows_to_map(self, X):
        rows = self._unread(X, reset=False, total=self._is_strict())  # (the kernel sees what is not finite)
        return rows, len(rows)

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "bounds": (-2.0, 2.0)},
                {"epsilon": 2.0, "bounds": "private", "feature_range": (-1, 1), "quantiles": (0, 1)}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns."""
        return np.random.default_rng(seed).uniform(-1, 1, size=(n_rows, 3)), None


def _pair(name, ends):
    good = isinstance(ends, tuple | list) and len(ends) == 2
    if not good or any(isinstance(end, bool) or not isinstance(end, Real) or not abs(end) <= 1e6 for end in ends) or (
            not ends[0] < ends[1]):
        raise ValueError(f"{name} must be a pair of ascending numbers from -1e6 to 1e6")
    return float(ends[0]), float(ends[1])
