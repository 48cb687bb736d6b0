"""Containers: what X may be, its shape, its columns.

Everything is looked at here before NumPy or scikit-learn sees it, because their messages show the data; and what they
raise nevertheless is restated outside of the handler, so that no chain of exceptions carries a value either.
"""

import numpy as np

from dpestim.inputs.safe_errors import attempt


def category_rows(X, *, strict):
    """Return X as what `columns_of` takes: a frame as it is, anything else as a two-dimensional array.

    Strict mode takes nothing whose dtype would depend on a value, such as a list.
    """
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "iubfUO" and X.size:
        return X  # on a client all else would take most of the time
    refuse_containers(X, "X")
    if is_frame(X):
        refuse_empty(X.shape)
        return X
    if strict and not hasattr(X, "dtype"):
        raise ValueError("strict mode: X must be an array or a data frame, whose dtype does not depend on a value")
    return as_array(X)


def as_array(X):
    """Return X as a two-dimensional array whose values are what the caller wrote (no numbers turned into strings)."""
    refuse_containers(X, "X")
    X = to_array(X)
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead. Reshape your data: one row a user, also for "
                         "a single column or a single user")
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must hold categories")
    refuse_empty(X.shape)
    return X


def to_array(data, name="X"):
    """Return any container as a plain array; numbers beside strings in a list stay numbers."""
    known = isinstance(data, np.ndarray) or hasattr(data, "dtype") or hasattr(data, "__array__")
    array, error = attempt(np.asarray if known else _from_lists, data)
    if error:
        raise ValueError(f"{name} must be an array, a data frame or a list of rows of equal length")
    return array


def _from_lists(data):
    as_is = np.asarray(data, dtype=object)
    plain = np.asarray(data) if as_is.ndim and as_is.size else as_is
    if plain.dtype.kind in "USO":
        return as_is
    if plain.dtype.kind not in "iuf":
        return plain
    # an int beside a float, or too large for its neighbours, would become a float: what a row is must not depend on
    # another one, so where types differ each value stays as it is
    kinds = {type(value.item() if isinstance(value, np.generic) else value) for value in as_is.ravel()}
    return as_is if len(kinds) > 1 or (kinds == {int} and plain.dtype.kind == "f") else plain


def columns_of(X):
    """Return the columns of a checked X: arrays of an ndarray, series of a pandas or polars frame."""
    if hasattr(X, "iloc"):
        return [X.iloc[:, j] for j in range(X.shape[1])]
    if hasattr(X, "get_column"):
        return X.get_columns()
    return [X[:, j] for j in range(X.shape[1])]


def take(data, at):
    """Return the rows at some positions, in the container that they came in; None stays None."""
    if data is None:
        return None
    if hasattr(data, "iloc"):
        return data.iloc[at]
    return data[at] if hasattr(data, "shape") else [data[i] for i in at.tolist()]


def is_frame(data):
    """Tell whether this is a pandas or polars frame."""
    return _n_axes(data) == 2 and (hasattr(data, "iloc") or hasattr(data, "get_column"))


def is_series(data):
    """Tell whether this is a pandas or polars series."""
    return _n_axes(data) == 1 and (hasattr(data, "iloc") or hasattr(data, "null_count"))


def _n_axes(data):
    shape = getattr(data, "shape", ())
    return len(shape) if isinstance(shape, tuple) else 0  # (a frame of Spark Connect has an attribute of any name)


def refuse_parts(data, name):
    """Raise ValueError for data that an engine holds in parts."""
    if type(data).__module__.partition(".")[0] in ("dask", "dask_expr", "pyspark"):
        raise ValueError(f"{name} is in parts, which Dask or Spark holds: call dpestim.distributed.fit(estimator, "
                         f"{name}), or privatize of the same module")


def refuse_masked(data, name):
    """Raise ValueError for a masked array, whose mask would be lost."""
    if isinstance(data, np.ma.MaskedArray):
        raise ValueError(f"{name} must not be a masked array: remove or fill what is masked")


def refuse_containers(data, name):
    """Raise ValueError for what has no rows that can be read one by one."""
    refuse_parts(data, name)
    if hasattr(data, "collect") and hasattr(data, "lazy"):
        raise ValueError(f"{name} must not be a lazy frame: collect() it first")
    refuse_masked(data, name)
    if hasattr(data, "toarray") and hasattr(data, "nnz"):
        raise ValueError(f"Sparse data was passed for {name}, but dense data is required: use {name}.toarray()")
    if name == "X" and is_series(data):
        raise ValueError("Expected 2D array, got 1D array instead. Reshape your data: take a frame of one column, "
                         "X[['name']], instead of a series, and a frame of one row")


def refuse_empty(shape, fewest=1):
    """Raise ValueError for a table without rows or columns (in the words that scikit-learn's checks look for)."""
    for n, what, least in ((shape[0], "sample(s)", fewest), (shape[1], "feature(s)", 1)):
        if n < least:
            raise ValueError(f"Found array with {n} {what} (shape={tuple(shape)}) while a minimum of {least} is "
                             "required.")


def names_of_features(estimator, input_features):
    """Return the names of the columns that a fitted estimator saw, as scikit-learn's `get_feature_names_out` asks."""
    names, n = getattr(estimator, "feature_names_in_", None), estimator.n_features_in_
    if input_features is None:
        return names if names is not None else [f"x{j}" for j in range(n)]
    if len(input_features) != n:
        raise ValueError("input_features should have length equal to number of features "
                         f"({n}), got {len(input_features)}")
    if names is not None and list(input_features) != list(names):
        raise ValueError("input_features is not equal to feature_names_in_")
    return input_features
