"""Numbers: a table of real numbers, read by the dtypes of its columns; dates and durations are none.

A duration in NumPy is a count of ticks whose unit the dtype hides: 3 s as milliseconds would be 3000. Whoever means
seconds writes ``X / np.timedelta64(1, "s")``.
"""

from numbers import Real

import numpy as np

from dpestim._core import scaled
from dpestim.inputs.frames import columns_of, is_frame, refuse_containers, refuse_empty, to_array
from dpestim.inputs.safe_errors import attempt

#: Names of columns that a message shows, at most.
_SHOWN = 8
#: What a model says where it cannot take missing values.
IMPUTE = (". Where values are missing, put dpestim.preprocessing.DPSimpleImputer before it, in fit and in predict; or "
          "a DomainEncoder with Numbers(low, high, missing=True), which costs nothing")
#: What it says where nothing else is said.
FILL = ". Fill missing values with a public number within the bounds first, or leave these rows out"
#: What it says where the domain could have said that values may be missing.
DECLARE = (". Where values are missing, declare Numbers(low, high, missing=True) for the column, in a dpestim.Domain "
           "as bounds")
OR_IMPUTE = ", and fit again; or put dpestim.preprocessing.DPSimpleImputer before the model, in fit and in predict"
OR_FILL = "; or fill missing values with a public number within the bounds first, or leave these rows out"
#: Rows that are looked at at a time.
_ROWS = 1 << 16
#: Numbers that are few.
_FEW = 16
#: Types in cells of objects that pandas calls missing, by name, as pandas need not be there.
_GONE = ("NAType", "NaTType")
#: Types in cells of objects that `float` would take, but that are no real numbers.
_NO_NUMBERS = (np.datetime64, np.timedelta64, complex, np.complexfloating, bytes, np.ndarray)


class NoNumberError(TypeError, ValueError):
    """A cell is no number: a ValueError, as all bad input is, and the TypeError that scikit-learn's checks want."""


def number_rows(X, *, strict, fewest=1):
    """Return X as a two-dimensional array of integers or floats; nulls become NaN, which is not refused here.

    Strict mode looks at nothing but dtypes and the shape.
    """
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "biuf":
        rows = X
    else:
        refuse_containers(X, "X")
        rows = _from_frame(X, strict) if is_frame(X) else _from_array(X, strict)
    refuse_empty(rows.shape, fewest)
    return rows


def all_finite(rows):
    """Tell whether all of few numbers are known to be finite; of many `refuse_infinite` finds it out."""
    return rows.size <= _FEW and bool(np.isfinite(rows).all())


def refuse_infinite(rows, names, advice=FILL, *, missing=False, n_jobs=None):
    """Raise ValueError that names the column where a value is not finite, and ends with advice.

    With `missing`, a value may be NaN: in all columns, or where an array of one entry for each column says so. Which
    column is named does not depend on how many threads look.
    """
    if rows.dtype.kind in "biu":
        return

    def first_bad(first, last):
        for at in range(first * _ROWS, min(last * _ROWS, len(rows)), _ROWS):
            block = rows[at : at + _ROWS]
            if block.dtype == np.float64 and block.flags.c_contiguous:
                finite = scaled.all_finite(block.reshape(-1))
            else:
                with np.errstate(all="ignore"):
                    finite = np.isfinite(block.sum(dtype=np.float64))  # a finite sum saves the temporary array
            if finite:
                continue
            known = np.isfinite(block) | (np.isnan(block) & np.asarray(missing))
            if not known.all():
                return int(np.argmin(known.all(axis=0)))
        return None

    n_blocks = -(-len(rows) // _ROWS)
    if n_jobs is None or n_blocks < 2:
        found = [first_bad(0, n_blocks)]
    else:
        from dpestim import parallel  # (a library that few rows do without)

        found = parallel.run(first_bad, n_blocks, n_jobs)
    found = [j for j in found if j is not None]
    if found:
        bad, gone = names[found[0]], bool(np.broadcast_to(missing, rows.shape[1])[found[0]])
        where, may = bad if bad == "X" else f"{bad} of X", " or NaN" if gone else ""
        raise ValueError(f"{where} contains {'' if gone else 'NaN or '}infinity: every value must be "
                         f"finite{may}{advice}")


def number_column(values, n_rows, name):
    """Return finite floats, one for each row, of a parameter such as sample_weight."""
    refuse_containers(values, name)
    array = to_array(values, name)
    if array.shape != (n_rows,):
        raise ValueError(f"{name} must have one number for each of the {n_rows} rows")
    refuse_kind(array.dtype, name)
    out = floats_of(array, name) if array.dtype.kind == "O" else array.astype(np.float64)
    if not np.isfinite(out).all():
        raise ValueError(f"{name} must be finite")
    return out


def bound_array(end, name):
    """Return one end of a pair of bounds as floats: a scalar, or one number for each column."""
    wrong = f"{name} must be a pair (low, high) of numbers or of arrays with one number for each column"
    kind = getattr(getattr(end, "dtype", None), "kind", "O")
    if isinstance(end, np.ma.MaskedArray) or kind not in "iufO":
        raise ValueError(wrong)
    values, error = attempt(np.asarray, end, dtype=object)
    if error or values.ndim > 1 or not values.size:
        raise ValueError(wrong)
    floats, error = attempt(lambda: np.array([_float(value) for value in values.reshape(-1).tolist()]))
    if error:
        raise ValueError(wrong)
    return floats.reshape(values.shape)


def _float(value):
    """Return a real number as a float; one beyond all floats is infinite."""
    if isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(value, Real):
        raise TypeError
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _from_array(X, strict):
    if strict and getattr(getattr(X, "dtype", None), "kind", "O") not in tuple("biuf"):
        raise ValueError("strict mode: X must have a numeric dtype in every column: pass an array or a frame of "
                         "numbers, not a list or objects")
    rows = to_array(X)
    refuse_flat(rows)
    if rows.dtype.kind == "O" and rows.size:
        return np.stack([floats_of(rows[:, j], f"column {j} of X") for j in range(rows.shape[1])], axis=1)
    refuse_kind(rows.dtype, "X")
    return rows


def refuse_flat(rows):
    """Raise ValueError unless an array is a table."""
    if rows.ndim != 2:
        raise ValueError(f"Expected 2D array, got {rows.ndim}D array instead. Reshape your data: X.reshape(-1, 1) for "
                         "one column, X.reshape(1, -1) for one row")


def _from_frame(X, strict):
    columns, names = columns_of(X), list(X.columns)
    kinds = [kind_of(column.dtype) for column in columns]
    for name, kind in zip(names, kinds):
        if strict and kind not in tuple("biuf"):
            raise ValueError(f"strict mode: column {name!r} of X must have a numeric dtype, which depends on no value"
                             f"{_way_out(names, kinds)}")
    dtypes = {column.dtype if isinstance(column.dtype, np.dtype) else None for column in columns}
    if len(dtypes) == 1 and kinds[0] in "biuf" and None not in dtypes:
        return X.to_numpy()
    rows, failed = np.empty(X.shape[::-1]).T, None
    for j, column in enumerate(columns):
        try:
            rows[:, j], nulls = series_numbers(column, f"column {names[j]!r} of X", strict=strict)
        except ValueError as error:  # (its text is ours, and shows no value)
            failed = failed or error
            kinds[j] = "U" if kinds[j] == "O" else kinds[j]
            continue
        if nulls is not None:
            rows[nulls, j] = np.nan
    if failed is not None:
        raise type(failed)(f"{failed}{_way_out(names, kinds)}")
    return rows


def _way_out(names, kinds):
    """Return how to go on with columns that cannot be read as numbers, in words: two lines of code."""
    others = [name for name, kind in zip(names, kinds) if kind not in tuple("biufmM")]
    if not others:
        return ""
    parts = [f"{name!r}: {'(low, high)' if kind in tuple('biuf') else '[values]'}" for name, kind in
             zip(names[:_SHOWN], kinds)] + ["..."] * (len(names) > _SHOWN)
    listed = ", ".join(map(repr, others[:_SHOWN])) + f" and {len(others) - _SHOWN} more" * (len(others) > _SHOWN)
    return (f". Columns without numbers here: {listed}. Leave them out of X, or declare and encode all columns:\n"
            f"    domain = dpestim.Domain({{{', '.join(parts)}}})\n"
            "    X = dpestim.preprocessing.DomainEncoder(domain).fit_transform(X)")


def kind_of(dtype):
    """Return the kind of a column of a frame, as NumPy abbreviates it."""
    if not hasattr(dtype, "is_numeric"):
        return dtype.kind
    name = type(dtype).__name__ if not isinstance(dtype, type) else dtype.__name__
    if dtype.is_integer() and not name.endswith("128"):  # (which NumPy has not)
        return "u" if name.startswith("U") else "i"
    return "f" if dtype.is_numeric() else {"Boolean": "b", "Object": "O"}.get(name, "V")


def series_numbers(series, name, *, strict):
    """Return (the numbers of a series, where they are null or None), by its dtype: nulls make no floats of integers.

    Numbers that are null are 0 or NaN. Strict mode takes no objects, whose type would depend on a value.
    """
    kind = kind_of(series.dtype)
    if kind == "O":
        if strict:
            raise ValueError(f"strict mode: {name} must have a numeric dtype, which depends on no value")
        return floats_of(to_array(series, name), name), None
    refuse_kind(series.dtype, name, kind)
    read, error = attempt(_by_dtype, series, kind)
    if error:
        raise ValueError(f"{name} must hold numbers")
    return read


def _by_dtype(series, kind):
    if isinstance(series.dtype, np.dtype):
        return series.to_numpy(), None
    if hasattr(series, "null_count"):
        if kind == "f":
            from polars import Float64  # (it is there where its series are; decimals are numbers too)

            return series.cast(Float64).to_numpy(), None
        return series.fill_null(False if kind == "b" else 0).to_numpy(), series.is_null().to_numpy()
    if kind == "f":
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan)), None
    dtype = getattr(series.dtype, "numpy_dtype", bool if kind == "b" else kind + "8")
    return np.asarray(series.to_numpy(dtype=dtype, na_value=False if kind == "b" else 0)), series.isna().to_numpy()


def refuse_kind(dtype, name, kind=None):
    """Raise ValueError for an array or a column that does not hold numbers by its dtype."""
    kind = kind or dtype.kind
    if kind == "c":
        raise ValueError(f"Complex data not supported: {name} must hold real numbers")
    if kind in "mM":
        raise ValueError(f"{name} must hold numbers, and has dates or durations: subtract a date, divide by a unit "
                         "such as numpy.timedelta64(1, 's')")
    if kind not in "biufO":
        raise ValueError(f"{name} must hold numbers, and has another type: convert strings explicitly")


def floats_of(objects, name):
    """Return Python objects as floats; None is NaN, as pandas.NA and pandas.NaT are, and a string may name a number."""
    if objects.dtype.kind != "O":  # a categorical of numbers, for instance
        refuse_kind(objects.dtype, name)
        return objects.astype(np.float64)
    error = TypeError
    kinds = set(map(type, objects.tolist()))
    if any(kind.__name__ in _GONE for kind in kinds):
        objects = np.array([None if type(value).__name__ in _GONE else value for value in objects.tolist()], object)
    if not any(issubclass(kind, _NO_NUMBERS) for kind in kinds):
        floats, error = attempt(objects.astype, np.float64)
        if not error:
            return floats
    if issubclass(error, OverflowError):
        raise ValueError(f"{name} must hold numbers that a float can hold")
    if issubclass(error, TypeError):
        raise NoNumberError(f"{name} must hold numbers: argument must be a string or a real number in every row")
    raise ValueError(f"{name} must hold numbers: a value cannot be read as a float")
