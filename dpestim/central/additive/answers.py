"""Answers of queries, in any shape and container: read by their dtypes without showing a value, and put back."""

import numpy as np

from dpestim.inputs.frames import columns_of, is_frame, is_series, refuse_containers, refuse_empty, to_array
from dpestim.inputs.numbers import floats_of, refuse_flat, refuse_kind, series_numbers

#: Floats tell integers apart up to here: beyond, those of neighbours could be further apart as floats than they are.
EXACT = 1 << 53
_LIBRARIES = ("pandas", "polars")
_STRICT = "strict mode: {} must have {} dtype, which depends on no answer"


def read_answers(values, *, integers, strict, bounds, table=False, missing=None, name="values"):
    """Return answers as an array of int64 (`integers`) or float64, clipped to the bounds.

    What is not finite is a ValueError, and so is, without bounds, an integer beyond 2^53 that is a float here or was
    one, and so may be another than what was meant; errors call the answers by `name`. In strict mode no value is looked
    at: NaN and null count as `missing` (None: the middle of the bounds, as 0 without), infinity as the nearest number,
    and integers are cut; then only dtypes matter.

    A `table`, X of `transform`, has two dimensions, and a row and a column at least.
    """
    how = {"integers": integers, "strict": strict, "bounds": bounds, "default": missing}
    name = "X" if table else name
    if isinstance(values, int | float) and not (table or isinstance(values, np.generic)):
        if not integers and -EXACT <= values <= EXACT:
            values = float(values)
        elif isinstance(values, int) and not isinstance(values, bool):
            values = max(-(1 << 63), min(values, (1 << 63) - 1))  # (all of which are beyond what can be released)
        return _numbers(np.array(values), None, name, **how)
    refuse_containers(values, name)
    if is_frame(values):
        if table:
            refuse_empty(values.shape)
        out = np.empty(values.shape, np.int64 if integers else np.float64)
        for j, (label, column) in enumerate(zip(values.columns, columns_of(values))):
            out[:, j] = _column(column, f"column {label!r} of {name}", **how)
        return out
    if is_series(values):
        return _column(values, name, **how)
    if strict and getattr(getattr(values, "dtype", None), "kind", "O") == "O":
        raise ValueError(_STRICT.format(name, "a numeric") + " (a list and objects have none)")
    array, given = to_array(values, name), values
    if table:
        refuse_flat(array)
        refuse_empty(array.shape)
    if array.dtype.kind == "O":
        array = floats_of(array.reshape(-1), name).reshape(array.shape)
    elif hasattr(values, "dtype"):
        given = None
    return _numbers(array, None, name, given=given, **how)


def _column(series, name, *, strict, **how):
    """Return the answers of a series."""
    array, nulls = series_numbers(series, name, strict=strict)
    is_float = series.dtype.is_float() if hasattr(series.dtype, "is_float") else series.dtype.kind == "f"
    return _numbers(array, nulls, name, given=None if is_float else series, strict=strict, **how)


def _numbers(array, nulls, name, *, integers, strict, bounds, default, given=None):
    """Return numbers of one dtype as answers, which may be the very same array.

    `nulls` says where there are none, if any, `given` in what they may have been integers before they became floats.
    """
    refuse_kind(array.dtype, name)
    kind, missing = array.dtype.kind.replace("b", "i"), nulls is not None and nulls.any()
    if array.dtype.itemsize > 8:
        raise ValueError(f"{name} must hold numbers of at most 64 bits each")
    if array.dtype.itemsize < 8 or not array.dtype.isnative:
        with np.errstate(all="ignore"):  # (of a signalling NaN)
            array = array.astype(f"{kind}8")
    if kind == "f":
        if integers and strict:
            raise ValueError(_STRICT.format(name, "an integer"))
        missing = missing or not (strict or np.isfinite(array).all())
    if missing and not strict:
        raise ValueError(f"{_where(array, nulls, name)} must be finite, and an answer is NaN or infinite: replace or "
                         "leave out such answers")
    if kind == "f" and integers and (np.rint(array) != array).any():
        raise ValueError(f"{name} must be integers: round the answers first, and declare the sensitivity of the "
                         "rounded answers")
    if default is None:
        default = 0 if bounds is None else (bounds[0] + bounds[1]) // 2 if integers else bounds[0] / 2 + bounds[1] / 2
    if kind == "f" and strict:
        array = np.nan_to_num(array, nan=default)
    if bounds is not None:
        # up to the bounds all integers are floats, and rounding keeps the order: to round first is the same
        array = np.minimum(np.maximum(array if kind == "i" else array.astype(np.float64), bounds[0]), bounds[1])
    elif integers == (kind == "f"):
        if not strict and ((array > EXACT).any() or (array < -EXACT).any()):
            raise ValueError(_too_large(name))
        array = np.clip(array, 0 if kind == "u" else -EXACT, EXACT)
    elif kind == "u":
        array = np.clip(array, 0, (1 << 63) - 1)
    if bounds is None and kind == "f" and given is not None and not strict and _has_large_integer(given, array):
        raise ValueError(_too_large(name))
    answers = array.astype(np.int64 if integers else np.float64, copy=False)
    return np.where(nulls, default, answers) if missing else answers


def _where(array, nulls, name):
    """Return what is not finite: the name, of a column in a table that is no frame."""
    if array.ndim != 2:
        return name
    bad = ~np.isfinite(array).all(axis=0)
    return f"column {int(np.argmax(bad))} of {name}"


def _too_large(name):
    return (f"{name} must hold integers up to 2^53 in absolute value, where a float tells them apart: scale them, or, "
            "for noise on answers, declare bounds or take a mechanism for integers and an array of an integer dtype")


def _has_large_integer(given, array):
    """Tell whether what became a float was an integer, or anything else, that is too large for one."""
    large = np.abs(array.reshape(-1)) >= EXACT
    if not large.any():
        return False
    before = np.asarray(given, dtype=object).reshape(-1)[large].tolist()
    return any(not isinstance(value, float | np.floating) and abs(value) != EXACT for value in before)


def rewrap(values, noisy):
    """Return noisy answers in the container of the exact ones (of a sub-class: in what its library made it from)."""
    if hasattr(values, "iloc"):
        if values.ndim == 1:
            return _maker(values)(noisy, index=values.index, name=values.name)
        return _maker(values)(noisy, index=values.index, columns=values.columns)
    if is_series(values):
        return _maker(values)(values.name, noisy)
    if is_frame(values):
        return _maker(values)({name: noisy[:, j] for j, name in enumerate(values.columns)})
    if noisy.ndim:
        return noisy
    return noisy.item()


def _maker(values):
    """Return the class of a series or frame, or of what it was derived from: a sub-class may take other arguments."""
    return next((cls for cls in type(values).__mro__ if cls.__module__.partition(".")[0] in _LIBRARIES), type(values))
