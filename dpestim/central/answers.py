"""Answers of queries, in any shape and container: read without showing a value, and put back into the container."""

import numpy as np

from dpestim.inputs import number_rows
from dpestim.inputs.frames import columns_of, is_frame, is_series, refuse_containers, to_array

#: Integers beyond are cut: as floats their neighbours could be further apart than they are. Not cut are only those that
#: mechanisms for integers find in an array of an integer dtype, or as one number; whether those in a list or a frame
#: went through floats may depend on its other answers.
_EXACT = 1 << 53
_NO_NUMBERS = "values must be numbers: a number, an array of them, a series or a data frame"


def read_answers(values, *, integers, strict, bounds):
    """Return answers as an array of int64 (`integers`) or float64, clipped to the bounds.

    What is not finite is a ValueError. In strict mode it is not looked for: NaN counts as the middle of the bounds (as
    0 without), and infinity as the nearest number; then only dtypes matter.
    """
    array = cut_integers(_to_array(values, strict), values, integers=integers)
    kind = array.dtype.kind
    if kind not in "biuf" or array.dtype.itemsize > 8:
        raise ValueError(_NO_NUMBERS + ", of at most 64 bits each")
    if integers:
        answers = _integers(array, strict)
    elif kind in "iu":
        answers = np.clip(array, -_EXACT if kind == "i" else 0, _EXACT).astype(np.float64)
    else:
        with np.errstate(all="ignore"):  # (of a signalling NaN)
            answers = array.astype(np.float64)
    if kind == "f" and not integers:
        if strict:
            middle = 0.0 if bounds is None else bounds[0] / 2 + bounds[1] / 2
            answers = np.nan_to_num(answers, nan=middle)
        elif not np.isfinite(answers).all():
            raise ValueError("values must be finite: an answer is NaN or infinite")
    return answers if bounds is None else np.clip(answers, *bounds)


def cut_integers(array, values, *, integers):
    """Return an array that was read from a container, where integers that may have become floats are cut at 2^53.

    To cut what was rounded is to round nothing: 2^53 and all below are floats, and rounding does not change the order.
    """
    if array.dtype.kind not in "iuf" or isinstance(values, np.ndarray | np.generic | bool | int | float):
        return array
    if array.dtype.kind != "f":
        return np.clip(array.astype(np.float64), -_EXACT, _EXACT).astype(array.dtype)
    if integers:
        return array  # `_integers` cuts all floats
    if is_frame(values) or is_series(values):
        columns = columns_of(values) if is_frame(values) else [values]
        cut = [j for j, column in enumerate(columns) if not _is_float(column.dtype)]
        if cut:
            table = array.reshape(len(array), len(columns))  # (a copy: floats were made of something else)
            table[:, cut] = np.clip(table[:, cut], -_EXACT, _EXACT)
        return array
    given = np.asarray(values, dtype=object).reshape(-1).tolist()
    whole = np.array([isinstance(value, int | np.integer) for value in given], bool).reshape(array.shape)
    return np.where(whole, np.clip(array, -_EXACT, _EXACT), array) if whole.any() else array


def _is_float(dtype):
    return dtype.is_float() if hasattr(dtype, "is_float") else dtype.kind == "f"


def _to_array(values, strict):
    if isinstance(values, bool | int | float) and not isinstance(values, np.generic):
        if isinstance(values, int):
            values = max(-_EXACT * 512, min(values, _EXACT * 512))  # beyond 2^62 nothing is told apart
        return np.array(values)
    if isinstance(values, np.ndarray | np.generic) and not isinstance(values, np.ma.MaskedArray):
        array = np.asarray(values)
        if array.dtype.kind in "biuf":
            return array
        if strict:
            raise ValueError("strict mode: values must have a numeric dtype, which depends on no answer")
    elif strict and not (is_frame(values) or is_series(values)):
        raise ValueError("strict mode: values must be a number, an array, a series or a data frame: the dtype of "
                         "anything else would depend on an answer")
    if is_series(values):
        return number_rows(values.to_frame(), strict=strict, fewest=0)[:, 0]
    if is_frame(values):
        return number_rows(values, strict=strict, fewest=0)
    refuse_containers(values, "values")
    array = to_array(values, "values")
    if array.dtype.kind == "O":  # an empty list has no dtype either
        array = number_rows(array.reshape(-1, 1), strict=False, fewest=0).reshape(array.shape).astype(np.float64)
    return array


def _integers(array, strict):
    """Return an array of int64; floats only where all are integers, and never in strict mode."""
    if array.dtype.kind == "f":
        if strict:
            raise ValueError("strict mode: values must have an integer dtype")
        if not np.isfinite(array).all():
            raise ValueError("values must be finite: an answer is NaN or infinite")
        if (np.rint(array) != array).any():
            raise ValueError("values must be integers: round the answers first, and declare the sensitivity that they "
                             "have then")
        return np.clip(array.astype(np.float64), -_EXACT, _EXACT).astype(np.int64)
    return np.clip(array, None, np.uint64(1 << 62)).astype(np.int64) if array.dtype.kind == "u" else (
        array.astype(np.int64))


def rewrap(values, noisy):
    """Return noisy answers in the container of the exact ones."""
    if hasattr(values, "iloc"):
        if values.ndim == 1:
            return type(values)(noisy, index=values.index, name=values.name)
        return type(values)(noisy, index=values.index, columns=values.columns)
    if is_series(values):
        return type(values)(values.name, noisy)
    if is_frame(values):
        return type(values)({name: noisy[:, j] for j, name in enumerate(values.columns)})
    if noisy.ndim:
        return noisy
    return noisy.item()


