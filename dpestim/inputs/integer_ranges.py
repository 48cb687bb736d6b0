"""Integers that go up in steps of 1, in an array or a Python range: they are known by their ends."""

from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from dpestim._core import encode

#: Unsigned integers by their number of bytes.
UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}

#: The dtype that NumPy gives to Python's integers.
_INT64 = np.dtype(np.int64).str


def as_unsigned(column):
    """Return a column of integers viewed as unsigned, without gaps."""
    if not (column.dtype.isnative and column.flags.c_contiguous):
        column = np.ascontiguousarray(column, column.dtype.newbyteorder("="))
    return column.view(UNSIGNED[column.dtype.itemsize])


#: (array, its range) of arrays that were looked at in one reading of parameters, or None where none is under way.
_ranges_read = ContextVar("_ranges_read", default=None)


@contextmanager
def ranges_read_once():
    """Look at each array once in a block, in which nobody changes it: a long list of values takes as long as a kernel.

    Arrays are kept until the end, so that no other one is at the place of one of them.
    """
    token = _ranges_read.set([])
    try:
        yield
    finally:
        _ranges_read.reset(token)


def integer_range(categories):
    """Return (dtype, as text, first, how many) of integers that go up in steps of 1, else None.

    They are in an array, or a `range` of what int64 holds, of which nothing is read.
    """
    if type(categories) is range:
        return _range_of(categories)
    known = _ranges_read.get()
    if known is None:
        return _integer_range(categories)
    for array, found in known:
        if array is categories:
            return found
    found = _integer_range(categories)
    if found is not None:
        known.append((categories, found))
    return found


def length_of(values):
    """Return how many values a `range` has, of any size (`len` knows no more than 63 bits)."""
    return max(0, -((values.start - values.stop) // values.step))


def _range_of(values):
    low, n = values.start, values.stop - values.start
    if values.step != 1 or n < 2 or low < -(1 << 63) or values.stop > 1 << 63:
        return None
    return _INT64, low, n


def _integer_range(categories):
    if type(categories) is not np.ndarray or categories.ndim != 1:
        return None
    dtype, n = categories.dtype, len(categories)
    if dtype.kind not in "iub" or n < 2 or not dtype.isnative:
        return None
    numbers = categories.view(np.uint8) if dtype.kind == "b" else categories
    low = numbers.item(0)
    if numbers.item(-1) - low != n - 1:
        return None
    # (steps of 1 modulo 2^width: the last is in its place, so that none runs over)
    return (dtype.str, low, n) if encode.steps(as_unsigned(numbers)) else None
