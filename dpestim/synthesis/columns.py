"""Columns as codes and back: categories, and numbers in bins, all declared."""

import importlib
import math
from numbers import Integral, Number, Real

import numpy as np

from dpestim.inputs import (
    CategoryEncoder,
    Domain,
    lists_of,
    number_rows,
    pair_of,
    pairs_of,
    refuse_infinite,
)
from dpestim.inputs.columns import is_missing
from dpestim.inputs.declared import missing_of

#: The most bins of a column.
_MOST_BINS = 1 << 16
_MISSING = (". Where values are missing, declare bounds=Domain({...}) with Numbers(low, high, missing=True), or leave "
            "these rows out")


class Categories:
    """A column of public categories."""

    def __init__(self, values, name):
        self.name, self.encoder = name, CategoryEncoder(values, name, fewest=1)
        self.size = len(self.encoder.categories)

    def codes(self, column, strict):
        """Return codes; what is no category is a ValueError, in strict mode the first one."""
        if strict:
            return self.encoder.encode_total(column).astype(np.int64)
        return self.encoder.encode(column).astype(np.int64)

    def values(self, codes, whole, rng):
        """Return categories."""
        return self.encoder.categories[codes]


class Numbers:
    """A column of numbers, of which the bin is kept; missing numbers have the last one where they are declared."""

    def __init__(self, edges, name, missing=False):
        self.name, self.edges, self.missing, self.n_bins = name, edges, missing, len(edges) - 1
        self.size = self.n_bins + missing

    def codes(self, column, strict):
        """Return the bins of numbers, clipped to the edges; in strict mode what is no number is in the middle."""
        table = column.to_frame() if hasattr(column, "to_frame") else np.asarray(column).reshape(-1, 1)
        numbers = np.asarray(number_rows(table, strict=strict, fewest=0)[:, 0], np.float64)
        if not strict:
            refuse_infinite(numbers.reshape(-1, 1), [self.name], "" if self.missing else _MISSING, missing=self.missing)
        known = np.where(np.isnan(numbers), self.edges[self.n_bins // 2], numbers)
        codes = np.clip(np.searchsorted(self.edges, known, side="right") - 1, 0, self.n_bins - 1)
        return np.where(np.isnan(numbers), self.n_bins, codes) if self.missing else codes

    def values(self, codes, whole, rng):
        """Return numbers, uniform within their bins; `whole`: integers, where a bin has any; NaN where missing."""
        if self.missing:
            gone = codes == self.n_bins
            return np.where(gone, np.nan, Numbers(self.edges, self.name).values(np.where(gone, 0, codes), whole, rng))
        low, high = self.edges[codes], self.edges[codes + 1]
        if not whole:
            return low + (high - low) * rng.random(len(codes))
        first = np.ceil(low)
        # (an edge belongs to the bin above; the last edge to the last bin)
        last = np.where(codes == self.size - 1, np.floor(high), np.ceil(high) - 1)
        some = np.floor(first + np.maximum(last - first + 1, 1) * rng.random(len(codes)))
        return np.where(last < first, np.rint((low + high) / 2), np.minimum(some, np.maximum(first, last)))


class Schema:
    """What rows looked like, apart from their values: a frame or an array, its names and dtypes."""

    def __init__(self, X, names):
        self.names = names
        self.kind = "pandas" if hasattr(X, "iloc") else "polars" if hasattr(X, "get_column") else None
        self.labels = list(X.columns) if self.kind else None
        if self.kind:
            self.dtypes = [X[label].dtype for label in self.labels] if len(set(self.labels)) == len(self.labels) else (
                list(X.dtypes))
        else:
            self.dtypes = [getattr(X, "dtype", None)] * np.shape(X)[1]

    def settle(self, columns):
        """Keep of dtypes what says nothing of values, and holds all that may be drawn."""
        self.dtypes = [public_dtype(dtype, column) for dtype, column in zip(self.dtypes, columns)]
        if self.kind is None and len(set(self.dtypes)) > 1:
            plain = all(getattr(dtype, "kind", "O") in "biuf" for dtype in self.dtypes)
            self.dtypes = [np.dtype(np.float64 if plain else object)] * len(columns)

    def within(self, j, values):
        """Return numbers, those that an integer dtype cannot hold cut to what it can."""
        try:
            limits = np.iinfo(str(self.dtypes[j]).lower())
        except (TypeError, ValueError):
            return values
        return np.clip(values, limits.min, np.nextafter(limits.max + 1.0, 0.0))

    def is_whole(self, j):
        """Tell whether the dtype of a column says that it holds integers."""
        dtype = self.dtypes[j]
        return dtype.is_integer() if hasattr(dtype, "is_integer") else getattr(dtype, "kind", "O") in "iu"

    def table(self, columns):
        """Return columns of values as what rows came in."""
        if self.kind is None:
            dtype = self.dtypes[0]
            plain = getattr(dtype, "kind", "O") in "biuf" or (
                dtype is None and all(column.dtype.kind in "biuf" for column in columns))
            out = np.empty((len(columns[0]), len(columns)), object)
            for j, column in enumerate(columns):
                out[:, j] = column.tolist()
            return out.astype(dtype if dtype is not None else np.float64) if plain else (
                out.astype(str) if getattr(dtype, "kind", "O") == "U" else out)
        library = importlib.import_module(self.kind)
        if self.kind == "polars":
            # (NaN is a number to polars: its means and counts would take it for one)
            there = [[None if is_missing(value) else value for value in column.tolist()] for column in columns]
            return library.DataFrame([library.Series(label, values, dtype=dtype, strict=False)
                                      for label, values, dtype in zip(self.labels, there, self.dtypes)])
        frame = library.concat([library.Series(column.tolist(), dtype=object).astype(dtype)
                                for column, dtype in zip(columns, self.dtypes)], axis=1)
        frame.columns = self.labels
        return frame


def public_dtype(dtype, column):
    """Return a dtype without what it may have learned of rows: which categories occur, how long strings are.

    It holds all declared categories: whether a column of integers is one of floats, for the sake of missing values,
    follows from what is declared.
    """
    declared, missing = [], False
    if isinstance(column, Categories):
        declared = [value for value in column.encoder.categories.tolist() if value is not None and value == value]
        missing = len(declared) < column.size
    kind = dtype.kind if isinstance(dtype, np.dtype) else "O"
    if kind in "biu" and getattr(column, "missing", False):
        return np.dtype(np.float64)  # (an integer of NumPy is never missing)
    if kind in "US":
        return np.dtype(object) if missing else np.dtype(kind)
    if kind in "biu" and isinstance(column, Categories):
        wrong = missing or any(value != dtype.type(value) for value in declared if isinstance(value, Number))
        return np.dtype(object if kind == "b" else np.float64) if wrong else dtype
    found = getattr(dtype, "categories", None)
    if not hasattr(found, "__len__"):
        return dtype
    if not isinstance(column, Categories):
        return found.dtype
    if hasattr(dtype, "ordered"):
        return type(dtype)(declared, ordered=dtype.ordered)
    return type(dtype)(declared) if all(isinstance(value, str) for value in declared) else None


def checked_bins(bins):
    """Return an entry of `bins`: an int, or sorted edges; raise ValueError for anything else."""
    if isinstance(bins, Integral) and not isinstance(bins, bool) and 1 <= bins <= _MOST_BINS:
        return int(bins)
    try:
        edges = np.asarray(bins, float)
    except (TypeError, ValueError):
        edges = np.empty(0)
    if edges.ndim != 1 or not 2 <= edges.size <= _MOST_BINS + 1 or not np.isfinite(edges).all() or not (
            np.diff(edges) > 0).all():
        raise ValueError(f"bins must be an int from 1 to {_MOST_BINS}, or at least two increasing edges, "
                         "or a list or dict of these")
    return edges


def entries(given, name, n_columns, labels):
    """Return what was declared for each column, None where nothing was: of a list, or of a dict by name or place."""
    if isinstance(given, dict):
        places = {label: j for j, label in enumerate(labels)} if labels is not None else {}
        out = [None] * n_columns
        for key, value in given.items():
            place = places.get(key, key if labels is None else None)
            if not isinstance(place, Integral) or isinstance(place, bool) or not 0 <= place < n_columns:
                raise ValueError(f"{name} must name columns of X, each by its name (without names: by its place)")
            out[place] = value
        return out
    if len(given) != n_columns:
        raise ValueError(f"{name} must have an entry for each of the {n_columns} columns, None where it has none")
    return list(given)


def declared_columns(categories, bounds, bins, n_columns, labels):
    """Return a `Categories` or `Numbers` for each column, or raise ValueError for one that nobody declared."""
    if isinstance(bounds, Domain) and categories is None:
        categories = bounds
    elif isinstance(categories, Domain) and bounds is None:
        bounds = categories
    lists = [None] * n_columns if categories is None else lists_of(categories, n_columns, labels, some=True)
    pairs, numbers = [None] * n_columns, [j for j, own in enumerate(lists) if own is None]
    if isinstance(bounds, Domain | dict):
        pairs = pairs_of(bounds, n_columns, labels, some=True)
        if isinstance(bounds, Domain):  # (what is a number there may have categories of its own here)
            pairs = [pair if j in numbers else None for j, pair in enumerate(pairs)]
    elif bounds is not None and numbers:
        # (arrays have a number for each column of numbers, or for each column at all)
        wide = max(map(np.size, bounds)) == n_columns if isinstance(bounds, tuple | list | np.ndarray) else False
        for at, pair in enumerate(zip(*pair_of(bounds, n_columns if wide else len(numbers)))):
            pairs[at if wide else numbers[at]] = pair if not wide or at in numbers else None
    gone = missing_of(bounds, n_columns, labels)
    steps = entries(bins, "bins", n_columns, labels) if is_per_column(bins) else [bins] * n_columns
    out = []
    for j, (own, pair, step) in enumerate(zip(lists, pairs, steps)):
        name = f"column {j if labels is None else repr(labels[j])}"
        step = checked_bins(16 if step is None else step)
        edges = isinstance(step, np.ndarray)
        missing = j in gone
        if own is not None and (pair is not None or (edges and is_per_column(bins))):
            raise ValueError(f"{name} must have either categories, or bounds and bins")
        if own is not None:
            out.append(Categories(own, name))
        elif edges:
            out.append(Numbers(step, name, missing))
        elif pair is None:
            raise ValueError(f"{name} must be declared: by categories or by bounds")
        else:
            low, high = (float(end) for end in pair)
            if not math.isfinite(high - low):
                raise ValueError(f"bounds of {name} must be closer together, so that a float can hold their distance")
            edges = np.linspace(low, high, step + 1)
            if not (np.diff(edges) > 0).all():
                raise ValueError(f"bounds of {name} must be far enough apart for its bins")
            out.append(Numbers(edges, name, missing))
    return out


def is_per_column(bins):
    """Tell whether bins are given column by column: a dict, or a list that has anything but numbers, or integers."""
    return isinstance(bins, dict) or (isinstance(bins, list) and (
        any(not isinstance(entry, Real) for entry in bins) or all(isinstance(entry, Integral) for entry in bins)))
