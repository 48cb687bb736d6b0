"""One column, read by its dtype alone: its values, its nulls, and what compares with what.

How a row is decoded must not depend on another row. A null never turns integers into floats here, and nulls are taken
out before anything is sorted: an inverse index with nulls in it may give their rows the code of another value.
"""

import datetime

import numpy as np

from dpestim.inputs.safe_errors import attempt

#: Attoseconds in a unit of NumPy's dates and durations.
_ATTOSECONDS = {"W": 604800 * 10**18, "D": 86400 * 10**18, "h": 3600 * 10**18, "m": 60 * 10**18, "s": 10**18,
                "ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1}
#: polars types whose `to_numpy` gives one value a row, in one dtype, where there are no nulls.
_POLARS_ARRAYS = frozenset((
    "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64", "Boolean", "String",
    "Categorical", "Enum", "Binary", "Date", "Datetime", "Duration",
))


def parts(column, name):
    """Return (values, index, null) of an array or series.

    Row i is ``values[index[i]]``, or null where ``index[i]`` is -1. Where `index` is None, `values` are the rows, in
    order: all of them (and what stands at one that `null` marks means nothing), or those that `null` does not mark.
    Arrays may still hold NaN, NaT and None.
    """
    if isinstance(column, np.ndarray):
        return column, None, None
    found, error = attempt(_polars_parts if hasattr(column, "null_count") else _pandas_parts, column)
    if error:
        raise ValueError(f"{name} has the type {type(getattr(column, 'dtype', column)).__name__}, which dpestim cannot "
                         "read: convert the column to strings, numbers, booleans or dates")
    return found


def _polars_parts(series):
    null = series.is_null().to_numpy() if series.null_count() else None
    present = series
    if null is not None:  # (to fill them is the quicker way to keep the type)
        present = series.fill_null(0) if series.dtype.is_numeric() else series.drop_nulls()
    zoned = getattr(series.dtype, "time_zone", None) is not None  # NumPy knows no zones: it would drop them
    if not zoned and (type(series.dtype).__name__ in _POLARS_ARRAYS or str(series.dtype) in _POLARS_ARRAYS):
        return present.to_numpy(), None, null
    return object_array(present.to_list()), None, null  # 128-bit integers, decimals, times, lists ...


def _pandas_parts(series):
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return series.to_numpy(), None, None
    if hasattr(series, "cat"):
        return series.cat.categories.to_numpy(), np.asarray(series.cat.codes), None
    null = series.isna().to_numpy()
    null = null if null.any() else None
    plain = getattr(dtype, "numpy_dtype", None)
    if plain is not None and plain.kind in "biuf":  # Int64, boolean, int64[pyarrow] ...
        return series.to_numpy(dtype=plain, **({} if null is None else {"na_value": plain.type(0)})), None, null
    factors, error = attempt(series.factorize)  # by hash, with the nulls as -1
    if error:  # cells without a hash, such as lists
        return object_array((series if null is None else series[~null]).tolist()), None, null
    index, uniques = factors
    return uniques.to_numpy(dtype=object), np.asarray(index) if null is None else np.where(null, -1, index), None


#: Types that NumPy does not look into.
_SCALARS = frozenset((str, bytes, int, float, bool, type(None)))


def object_array(values):
    """Return a one-dimensional array of objects, whatever they are (NumPy would unpack lists)."""
    out = np.empty(len(values), object)
    if all(kind in _SCALARS for kind in set(map(type, values))):
        out[:] = values
        return out
    for i, value in enumerate(values):
        out[i] = value
    return out


def is_missing(value):
    """Tell whether a scalar is None, NaN, NaT or pandas.NA (which is not equal to itself either)."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return type(value).__name__ == "NAType"
    except KeyboardInterrupt:
        raise
    except BaseException:  # an array inside an object column, a signalling NaN, whatever compares in its own way
        return False


def plain_values(array):
    """Return Python values that compare whatever the unit: a date is ("M", attoseconds), a duration ("m", attoseconds).

    Python's integers do not overflow; NumPy wraps far-away dates around in silence, also where it compares them.
    """
    kind = array.dtype.kind
    if kind not in "mM":
        return array.tolist()
    missing = np.isnat(array).tolist()
    unit, step = np.datetime_data(array.dtype)
    ticks = np.where(missing, 0, array.astype(np.int64))
    if unit in "YM" and kind == "M" and (np.abs(ticks // (1 if unit == "Y" else 12) * step) < 1 << 53).all():
        ticks, unit, step = array.astype("M8[D]").astype(np.int64), "D", 1
    scale = _ATTOSECONDS.get(unit)
    if scale is None:  # years of no fixed length, or too far away to count their days
        kind, scale = f"{kind}8[{unit}]", 1
    return [None if gone else (kind, t * step * scale) for gone, t in zip(missing, ticks.tolist())]


def other_names(value):
    """Return the other keys of a date or a duration: a Python object for an array's, and the reverse."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        keys = plain_values(np.array([value], value.dtype))
        item, _ = attempt(value.astype(f"{value.dtype.kind}8[us]").item)
        back, error = attempt(np.array, [item], f"{value.dtype.kind}8[us]")
        if error or plain_values(back) != keys or not isinstance(item, datetime.date | datetime.timedelta):
            return keys
        midnight = isinstance(item, datetime.datetime) and item.time() == datetime.time()
        return [*keys, item, item.date()] if midnight else [*keys, item]
    if isinstance(value, datetime.timedelta | datetime.date) and getattr(value, "tzinfo", None) is None:
        unit = "m8[us]" if isinstance(value, datetime.timedelta) else "M8[us]"
        exact = getattr(value, "asm8", None)  # those of pandas know nanoseconds
        return plain_values(np.array([value], unit) if exact is None else np.array([exact]))
    return []
