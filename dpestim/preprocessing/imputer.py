"""What stands in for missing values: a noisy mean or median, or the commonest category (`imputer.md`)."""

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import validate_data

from dpestim.central.selection.permute_and_flip import PermuteAndFlipLaw
from dpestim.inputs import CategoryEncoder, lists_of, number_rows
from dpestim.preprocessing.base import BoundedTransformer
from dpestim.statistics.calibrated_noise import equal_shares, noise_for
from dpestim.statistics.quantiles import Quantile
from dpestim.statistics.ranks import ranked
from dpestim.statistics.sums import column_sums

_STRATEGIES = ("mean", "median", "most_frequent")
#: The least number of values that a mean is divided by, in deviations of its noise.
_FEWEST = 4


class DPSimpleImputer(OneToOneFeatureMixin, BoundedTransformer):
    """Replace missing values by the noisy mean or median of the column, or its most common category.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for data sets of equal size that differ in
    one row, and which values it lacks is as private as the values. "mean": sums and the numbers of values that are
    there get noise together. "median": one choice a column among the points of a public grid. "most_frequent": one
    choice a column among its declared categories. What is kept (`statistics_`) may be published. The caller of `fit`
    holds the rows and must be trusted. What `transform` returns is made of raw rows and stays **private data**.

    **Utility.** With d columns, m values that are there and pure epsilon, the mean has noise of a standard deviation of
    about 2 d (high - low) / (m epsilon). The rank of the median is, with probability 1 - b, within 2 d (ln(w / b) +
    2.8) / epsilon of m / 2 (w: see `dpestim.statistics.Quantile`). The category has, with probability 1 - b, at most 2
    d ln(k / b) / epsilon rows less than the commonest of k. A mean is never divided by less than four deviations of the
    noise of m, which draws it to the middle of the bounds where few values are there. For a column without any value
    the mean is near the midpoint of the bounds, with a standard deviation of an eighth of their width; the median is an
    arbitrary point between the bounds, and the category an arbitrary one.

    **Complexity.** O(n d) time for `fit`.

    {parameters}
    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data analysis", TCC,
    proposition 1. McKenna, Sheldon (2020), "Permute-and-flip: a new mechanism for differentially private selection",
    NeurIPS, algorithm 1. The proof: ``imputer.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.preprocessing import DPSimpleImputer
    >>> X = np.random.default_rng(0).normal(40, 10, size=(20_000, 1))
    >>> X[::3] = np.nan
    >>> imputer = DPSimpleImputer(1.0, bounds=(0, 100), random_state=0).fit(X)
    >>> imputer.statistics_.round(), imputer.transform(X[:2]).round()
    (array([40.]), array([[40.],
           [39.]]))
    >>> drinks = [["tea"], [None], ["tea"], ["milk"]] * 100
    >>> common = DPSimpleImputer(1.0, strategy="most_frequent", categories=[["milk", "tea"]], random_state=0)
    >>> common.fit(drinks).transform([[None]])
    array([['tea']], dtype=object)
    """

    _more_parameters = """\
    strategy : {"mean", "median", "most_frequent"}, default="mean"
        "most_frequent" is for categories, and takes no `bounds`.
    {delta of noise}
    {bounds}
    categories : list of array-like, dict or Domain, default=None
        For "most_frequent": the public categories of each column, none of which is a missing value. Others count as
        none of them, and stay. They must be declared.
    """
    _more_attributes = """
    statistics_ : ndarray of shape (n_features,)
        What stands in, one for each column.
    bounds_ : (ndarray, ndarray) of shape (n_features,)
        Of numbers: the bounds that were declared, or found.
    {columns seen}
    """
    _learned = ("statistics_",)

    def __init__(self, epsilon=1.0, *, strategy="mean", delta=None, bounds=None, bounds_fraction=0.1, categories=None,
                 ledger=None, random_state=None):
        self.epsilon = epsilon
        self.strategy = strategy
        self.delta = delta
        self.bounds = bounds
        self.bounds_fraction = bounds_fraction
        self.categories = categories
        self.ledger = ledger
        self.random_state = random_state

    # ---------------------------------------------------------------- inside

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = tags.input_tags.string = self._counts()
        return tags

    def _check(self):
        epsilon, delta = super()._check()
        return epsilon, delta if self.strategy == "mean" else 0  # (choices are pure)

    def _counts(self):
        return isinstance(self.strategy, str) and self.strategy == "most_frequent"

    def _inferred(self):
        return [] if self._counts() else super()._inferred()

    def _check_own(self):
        if not isinstance(self.strategy, str) or self.strategy not in _STRATEGIES:
            raise ValueError(f"strategy must be one of {list(_STRATEGIES)}")
        if self._counts():
            if self.bounds is not None:
                raise ValueError('bounds must be None for strategy="most_frequent": declare categories instead')
            if self.categories is None:
                raise ValueError('categories must be declared for strategy="most_frequent"')
            self._encoders()

    def _encoders(self):
        """Return encoders whose last category is the missing value."""
        n_columns, names = getattr(self, "n_features_in_", None), list(getattr(self, "feature_names_in_", ())) or None
        lists = [[value for value in own if value is not None] if isinstance(own, list) else own
                 for own in lists_of(self.categories, n_columns, names)]
        return [CategoryEncoder([*own, None], f"column {j}") for j, own in enumerate(lists)]

    def _rows(self, X, reset):
        if not self._counts():
            rows = number_rows(X, strict=self._is_strict(), fewest=0 if self._is_strict() else 1)
            validate_data(self, X if hasattr(X, "columns") else rows, reset=reset, skip_check_array=True)
            with np.errstate(over="ignore"):
                rows = np.ascontiguousarray(rows, np.float64)
            if not self._is_strict() and np.isinf(rows).any():
                names = getattr(self, "feature_names_in_", None)
                bad = int(np.isinf(rows).any(axis=0).argmax())
                raise ValueError(f"column {bad if names is None else repr(names[bad])} of X contains infinity: values "
                                 "must be finite, or missing (NaN)")
            return rows, len(rows)
        columns, n_rows = self._checked_columns(X, reset=reset)
        lists_of(self.categories, len(columns), list(getattr(self, "feature_names_in_", ())) or None)
        return columns, n_rows

    def _settings(self):
        return (self.strategy,)

    def _domain(self, n_columns, data=None):
        if not self._counts():
            return super()._domain(n_columns, data)
        return tuple(tuple((type(v).__name__, v) for v in encoder.plain_categories()) for encoder in self._encoders())

    def _sums(self, data, domain):
        if self.strategy == "mean":  # (what is missing counts as the middle, from which integers are counted)
            return [*column_sums(data, domain)[0], *(len(data) - np.isnan(data).sum(axis=0)).tolist()]
        if self.strategy == "median":
            return [ranked(data[:, [j]][~np.isnan(data[:, j])], [grid])[0]
                    for j, grid in enumerate(domain)]
        counts = []
        for encoder, column in zip(self._encoders(), data):
            size = len(encoder.categories) - 1
            codes = encoder.read(column, np.dtype(np.uint32), size)[0]
            counts.append(np.bincount(codes, minlength=size + 1)[:size])
        return counts

    def _released(self, n_rows, totals, domain, epsilon, delta):
        if not self._counts():
            return super()._released(n_rows, totals, domain, epsilon, delta)
        law = PermuteAndFlipLaw(epsilon / len(totals), 1, 0, False)

        def draw(source):
            known = [encoder.categories[law.draw(own, source.part(j))]
                     for j, (encoder, own) in enumerate(zip(self._encoders(), totals))]
            return {"statistics_": _as_array(known)}

        return draw

    def _learn(self, n_rows, totals, grids, epsilon, delta):
        if self.strategy == "median":
            share = epsilon / len(grids)
            draws = [Quantile(share, bounds=(grid.low, grid.high), neighbours="substitution")._prepared(
                counts.total, [counts], 1)
                     for grid, counts in zip(grids, totals)]
            return lambda source: {"statistics_": np.concatenate(
                [draw(source.part(j)) for j, draw in enumerate(draws)])}
        sums, there = totals[: len(grids)], totals[len(grids) :]
        weights, l1, l2_squared = equal_shares([grid.span for grid in grids])
        ones = [grid.span // 2 for grid in grids]  # what a row that has a value adds besides
        numbers = [weight * s for weight, s in zip(weights, sums)]
        numbers += [weight * one * int(n) for weight, one, n in zip(weights, ones, there)]
        noise = noise_for(epsilon, delta, l1, l2_squared, len(numbers))

        def draw(source):
            noisy = np.asarray(noise.add(numbers, source), float)
            heavy = np.array(weights, float)
            unit = heavy * ones
            count = np.maximum(noisy[len(grids):], _FEWEST * np.sqrt(noise.variance)) / unit
            low, high, center, step = (np.array([getattr(grid, what) for grid in grids], float)
                                       for what in ("low", "high", "center", "step"))
            return {"statistics_": np.clip((center + noisy[: len(grids)] / heavy / count) * step, low, high)}

        return draw

    def _map(self, rows):
        if not self._counts():
            return np.where(np.isnan(rows), self.statistics_, rows) if not self._is_strict() else np.where(
                np.isfinite(rows), rows, self.statistics_)
        out = np.empty((len(rows[0]), len(rows)), object)
        for j, (encoder, column) in enumerate(zip(self._encoders(), rows)):
            values = column.tolist() if hasattr(column, "tolist") else column.to_list()
            size = len(encoder.categories) - 1
            codes = encoder.read(column, np.dtype(np.uint32), size + 1)[0]
            for i, value in enumerate(values):
                out[i, j] = value
            out[codes == size, j] = self.statistics_[j]
        return out.astype(self._dtype_of(rows))

    def _dtype_of(self, columns):
        """Return the dtype of a table of these columns and what stands in, in which no whole number changes."""
        dtypes = [np.dtype(getattr(column.dtype, "numpy_dtype", object)) if not isinstance(column.dtype, np.dtype)
                  else column.dtype for column in columns]
        if not all(dtype.kind in "fiu" for dtype in [*dtypes, self.statistics_.dtype]):
            return np.dtype(object)
        if any(dtype.kind == "f" for dtype in dtypes):
            return np.dtype(np.float64)
        common = np.result_type(*dtypes)  # (no integer holds what a signed and an unsigned one do: a float then)
        with np.errstate(all="ignore"):
            fits = common.kind != "f" and (self.statistics_.astype(common) == self.statistics_).all()
        return common if fits else np.dtype(object)

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "bounds": (-2.0, 2.0)},
                {"epsilon": 2.0, "bounds": "private", "strategy": "median"},
                {"epsilon": 0.1, "categories": [list(range(20))] * 3, "strategy": "most_frequent"}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns."""
        rng = np.random.default_rng(seed)
        if self._counts():
            return rng.integers(0, 20, size=(n_rows, 3)).astype(float), None
        return rng.uniform(-1, 1, size=(n_rows, 3)), None


def _as_array(values):
    """Return numbers as such, and anything else as objects."""
    if all(isinstance(value, float | int | np.number) and not isinstance(value, np.timedelta64) for value in values):
        return np.array(values)
    out = np.empty(len(values), object)
    out[:] = values
    return out
