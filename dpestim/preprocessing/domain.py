"""Rows of a declared table as numbers: bounds to -1 and 1, categories to 0 and 1; nothing is learned."""

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpestim.central.model import CentralModel
from dpestim.inputs import (
    Categories,
    CategoryEncoder,
    Domain,
    Numbers,
    category_rows,
    columns_of,
    names_of_columns,
    number_rows,
    refuse_infinite,
)
from dpestim.inputs.encoded import block_of, encodable, norm_of, width_of_block
from dpestim.inputs.frames import refuse_parts
from dpestim.preprocessing.names import feature_names
from dpestim.privacy import Neighbours, PrivacyGuarantee

#: Wider rows are sparse by default, where at most one value in so many is not 0.
_WIDE, _PART = 64, 8


class DomainEncoder(TransformerMixin, CentralModel):
    """Encode the columns of a declared table as numbers: for linear models, without any cost.

    A number goes from -1 at its lower bound to 1 at its upper one, and is clipped. A category becomes one column of
    zeros and ones for each declared value. Missing values have a separate column where the domain says
    ``missing=True``, and are a ValueError elsewhere.

    **Privacy.** Nothing is learned from values: `fit` reads the names of the columns, `transform` maps each row by
    itself, and neither costs anything. What `transform` returns is made of raw rows and stays **private data**.

    **Utility.** Exact. The largest norm of a row is public: `norm_bound`, the square root of the number of columns of
    X. A linear model with the same domain (``DPLogisticRegression(domain=domain)``) knows it.

    **Complexity.** O(n d) time; memory of the result, which is sparse where it is wide.

    Parameters
    ----------
    domain : dpestim.Domain or dict
        Its columns by name; those that X does not have are ignored. All columns of X must be numbers or categories
        of it.
    sparse_output : bool or "auto", default="auto"
        Whether `transform` returns a SciPy CSR array. "auto": where it has more than 64 columns, of which at most one
        in eight is not 0. Models that take no sparse rows need False.

    Attributes
    ----------
    privacy_ : PrivacyGuarantee
        Of epsilon 0.
    norm_bound : float
        The largest Euclidean norm of a transformed row.
    {columns seen}

    Raises
    ------
    ValueError
        For a column that the domain does not have, or of another kind; a value that is not declared, or missing, of
        which the message names the column; in strict mode such a value is 0 in all columns instead.

    References
    ----------
    None: it is a map of single rows. Why it costs nothing, and why its norm is a bound: ``domain.md``.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from dpestim import Categories, Domain
    >>> from dpestim.datasets import load_yrbss
    >>> from dpestim.linear_model import DPLogisticRegression
    >>> from dpestim.preprocessing import DomainEncoder
    >>> data = load_yrbss(as_frame=True)
    >>> frame, y = data.frame.drop(columns="gender"), data.frame["gender"]
    >>> model = make_pipeline(DomainEncoder(data.domain),
    ...                       DPLogisticRegression(1.0, delta=1e-5, domain=data.domain, random_state=0))
    >>> bool(model.fit(frame, y).score(frame, y) > 0.75)
    True
    """

    _learned, _checked_as = ("_names",), "encoder"
    _not_in_parts = "learns nothing of values: fit it to one part, and transform each of them"

    def __init__(self, domain=None, *, sparse_output="auto"):
        self.domain = domain
        self.sparse_output = sparse_output

    def fit(self, X, y=None):
        """Read the names of the columns; no value is looked at.

        Parameters
        ----------
        X : data frame, or array-like of shape (n_rows, n_features)
        y : ignored

        Returns
        -------
        self
        """
        self._check()
        refuse_parts(X, "X")
        table = self._table(X)
        given = names_of_columns(X)
        own = encodable(self._domain(), given, table.shape[1])
        for name in ("feature_names_in_", "n_features_in_"):
            vars(self).pop(name, None)
        validate_data(self, X if hasattr(X, "columns") else table, reset=True, skip_check_array=True)
        self._names, self._has_names = own, given is not None
        return self

    def transform(self, X):
        """Return rows as numbers: of private rows **not private**.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray or CSR array of shape (n_rows, n_features_out)
        """
        check_is_fitted(self)
        table, strict, domain = self._table(X), self._is_strict(), self._domain()
        validate_data(self, X if hasattr(X, "columns") else table, reset=False, skip_check_array=True)
        if strict:
            self._note_predictions(len(table))
        n, starts = len(table), np.cumsum([0, *(width_of_block(domain[name]) for name in self._names)])
        index, values = np.empty((n, len(self._names)), np.int64), np.ones((n, len(self._names)))
        for j, (name, column) in enumerate(zip(self._names, columns_of(table))):
            codes = _numbers if isinstance(domain[name], Numbers) else _categories
            places, values[:, j] = codes(domain[name], column, f"column {name!r}", strict)
            index[:, j] = starts[j] + places
        width = int(starts[-1])
        if self._is_sparse(width):
            start = np.arange(0, index.size + 1, index.shape[1])
            return csr_array((values.ravel(), index.ravel(), start), shape=(n, width))
        out = np.zeros((n, width))
        out[np.arange(n)[:, None], index] = values
        return out

    @property
    def norm_bound(self):
        """The largest Euclidean norm of a transformed row: known after `fit`."""
        check_is_fitted(self)
        return norm_of(len(self._names))

    @property
    def privacy_(self):
        """What a fit promises: nothing is learned from values."""
        return PrivacyGuarantee(0, 0, "central", Neighbours.SUBSTITUTION)

    def get_feature_names_out(self, input_features=None):
        """Return feature_scaled for each number, feature_category for each category, and feature_missing."""
        check_is_fitted(self)
        names, domain = feature_names(self, input_features), self._domain()
        if input_features is None and self._has_names:  # (scikit-learn 1.6 sees no names in frames of new polars)
            names = list(map(str, self._names))
        return np.array([label for name, own in zip(names, self._names) for label in block_of(domain[own], name)],
                        object)

    # ---------------------------------------------------------------- inside

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        tags.requires_fit = True
        return tags

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"domain": Domain({"a": Numbers(-1, 1, missing=True), "b": Categories([0, 1, 2], missing=True)})},
                {"domain": {"a": (-1.0, 1.0), "b": Categories([0, 1], other=2), "c": (0, 4)}, "sparse_output": True}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of the columns of the domain, all of them numbers, and categories that are numbers."""
        rng, columns = np.random.default_rng(seed), self._domain().items()
        return np.stack([rng.uniform(own.low, own.high, n_rows) if isinstance(own, Numbers) else
                         rng.choice(np.array(own.values, float), n_rows) for _, own in columns], axis=1), None

    def _domain(self):
        return self.domain if isinstance(self.domain, Domain) else Domain(self.domain)

    def _check(self):
        if not isinstance(self.domain, Domain | dict) or not len(self.domain):
            raise ValueError("domain must be a dpestim.Domain, or a dict of its columns, such as "
                             '{"age": (17, 90), "sex": ["F", "M"]}')
        self._domain()
        if not (isinstance(self.sparse_output, bool | np.bool_) or (
                isinstance(self.sparse_output, str) and self.sparse_output == "auto")):
            raise ValueError('sparse_output must be True, False or "auto"')

    def _guarantee(self, epsilon, delta):
        return self.privacy_

    def _inferred(self):
        return []

    def _is_sparse(self, width):
        if isinstance(self.sparse_output, str):
            return width > _WIDE and len(self._names) * _PART <= width
        return bool(self.sparse_output)

    def _table(self, X):
        refuse_parts(X, "X")
        strict = self._is_strict()
        none = len(getattr(X, "shape", ())) == 2 and not X.shape[0]
        return X if strict and none else category_rows(X, strict=strict)


def _numbers(column, values, name, strict):
    """Return (0, or 1 for a missing value; numbers from -1 to 1, 1 for a missing value)."""
    table = values.to_frame() if hasattr(values, "to_frame") else np.asarray(values).reshape(-1, 1)
    numbers = np.array(number_rows(table, strict=strict, fewest=0)[:, 0], np.float64)
    if not strict:
        advice = "" if column.missing else (". Where values may be missing, declare Numbers(..., missing=True), or put "
                                            "DPSimpleImputer before")
        refuse_infinite(numbers.reshape(-1, 1), [name], advice, missing=column.missing)
    gone, half = np.isnan(numbers), (column.high - column.low) / 2
    scaled = np.clip((np.clip(numbers, column.low, column.high) - column.low) / half - 1.0, -1.0, 1.0) if half else (
        np.zeros(len(numbers)))  # (a constant)
    if column.missing:
        return gone.astype(np.int64), np.where(gone, 1.0, scaled)
    return 0, np.where(gone, 0.0, scaled)


def _categories(column, values, name, strict):
    """Return (codes, 1; or 0 where a value is not declared: in strict mode)."""
    encoder, other = CategoryEncoder(column.all_values, name, fewest=1), len(column.values)
    none = encoder.n_categories if column.other is None else other
    codes, why = encoder.read(values, np.dtype(np.uint32), none)
    codes = codes.astype(np.int64)
    if why and column.other is None and not strict:
        raise ValueError(f'{name} {why}. Declare all values, or Categories(..., other="other")')
    known = codes < encoder.n_categories
    return np.where(known, codes, 0), known.astype(np.float64)
