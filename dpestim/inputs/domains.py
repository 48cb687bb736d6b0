"""Domains: lists of categories as they are declared, and what can be learned from a column (which leaks)."""

import numpy as np

from dpestim.inputs.columns import is_missing, object_array, parts
from dpestim.inputs.safe_errors import attempt

#: Why a missing value is no category.
MISSING = ("has a missing value (None, NaN or NA): declare it, such as by Categories(values, missing=True) or a "
           "list with None, or remove the row")

#: Types of which a list of one kind becomes an array of numbers.
_NUMBERS = (bool, int, float, np.number, np.bool_)


def category_array(categories, name, what="categories of {}"):
    """Return a one-dimensional array of the categories without changing what they are."""
    what = what.format(name)
    if isinstance(categories, np.ma.MaskedArray) or hasattr(categories, "toarray"):
        raise ValueError(f"{what} must not be a masked or a sparse array: list its values")
    if isinstance(categories, str | bytes | set | frozenset | dict) or not hasattr(categories, "__len__"):
        raise ValueError(f"{what} must be a list or an array of values, which has an order")
    if len(getattr(categories, "shape", (0,))) != 1:
        raise ValueError(f"{what} must be one-dimensional")
    if isinstance(categories, np.ndarray) and categories.dtype.kind in "biufcmMO":
        array = np.array(categories, order="C")  # a copy: what is frozen must not change with the caller's array
    else:
        array = object_array(categories.tolist() if isinstance(categories, np.ndarray) else list(categories))
        kinds = {type(value) for value in array}
        # NumPy would turn [1, "a"] into strings and [True, 2] into integers; only plain numbers of one kind become such
        if len(kinds) == 1 and issubclass(kind := kinds.pop(), _NUMBERS) and not issubclass(kind, np.timedelta64):
            numbers = np.array(array.tolist())
            exact = numbers.dtype.kind in ("f" if issubclass(kind, float | np.floating) else "biu")
            array = numbers if exact else array  # -1 beside 2**63 would become a float
    array.setflags(write=False)
    return array


def learn_categories(column, name, allow_missing=False):
    """Return the distinct values of a column, sorted; a missing value is an error, or one value None at the end."""
    values, index, null = parts(column, name)
    missing = null is not None
    if index is not None:
        used = np.unique(index)
        missing, values = bool(used.size and used[0] < 0), values[used[used >= 0]]
    elif missing and len(values) == len(null):
        values = values[~null]
    if values.dtype.kind in "fcmM":
        gone = values != values
        missing, values = missing or bool(gone.any()), values[~gone]
    if values.dtype.kind in "biufcmMUS":
        found = np.unique(values)
        infinite = values.dtype.kind in "fc" and bool(np.isinf(found).any())
    else:
        items = values.tolist()
        present = [value for value in items if not is_missing(value)]
        missing = missing or len(present) < len(items)
        infinite = any(isinstance(v, float | np.floating) and np.isinf(v) for v in present)
        found, _ = attempt(lambda: sorted(set(present)))
    if missing and not allow_missing:
        raise ValueError(f"{name} {MISSING}")
    if infinite:
        raise ValueError(f"{name} has an infinite value (inf): replace the value or remove the row")
    if found is None:
        raise ValueError(f"{name} holds values that cannot be sorted or hashed together: declare its categories")
    if missing:
        return category_array(object_array([*found, None]), name)
    return found if isinstance(found, np.ndarray) else category_array(found, name)


def at_least_two(values):
    """Let a constant column of test data be compared: it gets a second, impossible value."""
    return values if len(values) > 1 else object_array([values.tolist()[0], object()])


