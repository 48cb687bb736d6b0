"""Categories that nobody declared: a key that follows from one row alone, so that what is published shows no row's way.

Values that are equal may look different (0.0 and -0.0, 1 and True, one moment in two time zones), and a table of counts
keeps that of the row which came first. So each becomes (name of its type, value in one form), by itself.
"""

import datetime
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np

from dpestim.inputs.columns import other_names
from dpestim.inputs.safe_errors import attempt

_AS_IT_IS = (str, bytes, bool, int, Fraction, datetime.date, datetime.timedelta, type(None))
#: From here on whole numbers have no key that is published.
_LARGEST = 1 << 53
_NUMBERS = ("bool", "float", "int")


def key_of(value):
    """Return the key of a value, or None where there is no form that all equal ones share."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return _ticks(value)
    if isinstance(value, np.generic):
        value = value.item()
    kind = type(value)
    if kind in _AS_IT_IS:
        return kind.__name__, value
    if kind is float:
        return ("float", value + 0.0) if value == value else key_of(None)
    if kind is tuple:
        keys = tuple(map(key_of, value))
        return None if None in keys else ("tuple", keys)
    # (pandas need not be there: its types are known by their names)
    of_pandas = kind.__module__.split(".")[0] == "pandas" and _PANDAS.get(kind.__name__)
    form, error = attempt(_FORMS.get(kind) or of_pandas or _no_form, value)
    return None if error or form is None else (kind.__name__, form)


def published_key(value):
    """Return the key under which a value is published: a whole number is an int, whatever the dtype of its column.

    A missing value in another row makes floats of a column of integers, in pandas: 1 and 1.0 are one key. Beyond 2^53
    floats know no more which integer they were: such numbers have no key.
    """
    key = key_of(value)
    if key is None or key[0] not in ("int", "float"):
        return key
    number = key[1]
    if isinstance(number, float) and not number.is_integer():
        return key
    return ("int", int(number)) if abs(number) < _LARGEST else None


def shown_as(key):
    """Return the value of a key."""
    name, value = key
    return tuple(map(shown_as, value)) if name == "tuple" else value


def order_of(key):
    """Return what keys are sorted by, whatever they are: their order is no news."""
    name, value = key
    number = name in _NUMBERS
    return "" if number else name, value if number else 0, name, str(value)


def _ticks(value):
    """Return the key of a date or a duration of NumPy; what Python has none for (nanoseconds) stays what it is."""
    if np.isnat(value):
        return key_of(None)
    item = value.item()
    if isinstance(item, int):  # (the count of ticks, which says nothing of its unit)
        item = next((name for name in other_names(value) if isinstance(name, datetime.date | datetime.timedelta)), None)
    return (value.dtype.str, value) if item is None else key_of(item)


def _decimal(value):
    if not value.is_finite():
        return None
    sign, digits, exponent = value.as_tuple()
    while len(digits) > 1 and digits[-1] == 0:
        digits, exponent = digits[:-1], exponent + 1
    return Decimal((sign, digits, exponent)) if value else Decimal(0)


def _moment(value):
    value = value.replace(fold=0) if value.tzinfo is None else value.astimezone(datetime.UTC)
    return value.as_unit("ns") if hasattr(value, "as_unit") else value


def _time(value):
    return value.replace(fold=0) if value.tzinfo is None else None


def _span(value):
    return value.as_unit("ns")


def _uuid(value):
    return uuid.UUID(int=value.int)  # (whether it was made safely is no part of it)


def _no_form(value):
    return None


_FORMS = {Decimal: _decimal, datetime.datetime: _moment, datetime.time: _time, uuid.UUID: _uuid}
_PANDAS = {"Timestamp": _moment, "Timedelta": _span}
