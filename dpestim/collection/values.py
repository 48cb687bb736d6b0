"""Parameters of a client as plain values of JSON, and back: nothing is lost, and nothing in them can run code.

A string, a small integer, True, False and None stand for themselves, a list for a list. Everything else is an object
with one key that says what it is::

    {"number": "0.5"}            a float: the shortest decimal that reads back as the same double
    {"fraction": "1/3"}          an exact fraction            {"integer": "9007199254740993"}   2^53 and larger
    {"decimal": "0.10"}          a decimal                    {"bytes": "AAH/"}                 base64
    {"date": "2026-11-26"}       a date                       {"datetime": "2026-11-26T10:00:00"}
    {"time": "10:00:00"}         a time of day                {"duration": "90000000"}          microseconds
    {"tuple": [...]}             a tuple                      {"dict": [[key, value], ...]}     a dict, in its order
    {"numbers": {...}}, {"categories": {...}}, {"text": {...}}, {"keys": {...}}                 a column of a Domain
    {"domain": [[name, column], ...]}                                                           a Domain

and a client is {"class": name, "parameters": {...}} (`dpestim.collection.description`).
"""

import base64
import datetime
import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np

from dpestim.collection.canonical import LARGEST
from dpestim.inputs import Categories, Domain, Keys, Numbers, Text
from dpestim.inputs.columns import other_names

_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e-?[0-9]+)?")
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
#: The parts of columns of a `Domain`, by kind.
_KINDS = {"numbers": (Numbers, ("low", "high", "unit", "missing")),
          "categories": (Categories, ("values", "missing", "other")), "text": (Text, ("max_length", "missing")),
          "keys": (Keys, ("keys", "low", "high"))}


def shortest(number):
    """Return the shortest decimal that reads back as the same double: "17", "0.1", "1e-7"."""
    if not math.isfinite(number):
        raise ValueError("a number must be finite")
    text = repr(float(number)).replace("e+", "e").replace("e-0", "e-")
    return text.removesuffix(".0") if "e" not in text else text


def read_number(text):
    """Return the double that a decimal names, or raise ValueError where it is not its shortest one."""
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text) or shortest(float(text)) != text:
        raise ValueError("must be a decimal, the shortest that reads back as the same double")
    return float(text)


def fraction_text(value):
    """Return an exact fraction as text: "1/2", "3"."""
    return str(Fraction(value))


def read_fraction(text):
    """Return the fraction of a text, or raise ValueError where it is not in lowest terms."""
    try:
        value = Fraction(text) if isinstance(text, str) and len(text) < 4096 else None
    except (ValueError, ZeroDivisionError):
        value = None
    if value is None or str(value) != text:
        raise ValueError("must be a fraction in lowest terms, such as \"1/2\"")
    return value


def to_plain(value, client_of=None):
    """Return a parameter as a plain value, or raise ValueError for what has none; `client_of` describes clients."""
    value = _own(value)
    if value is None or isinstance(value, bool) or type(value) is str:
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < LARGEST else {"integer": str(int(value))}
    if isinstance(value, float):
        return {"number": shortest(value)}
    for kind, name, write in _SIMPLE:
        if isinstance(value, kind):
            return {name: write(value)}
    if isinstance(value, list):
        return [to_plain(None if _is_missing(part) else part, client_of) for part in value]
    if isinstance(value, tuple):
        return {"tuple": [to_plain(None if _is_missing(part) else part, client_of) for part in value]}
    if isinstance(value, dict):
        return {"dict": [[to_plain(key), to_plain(part, client_of)] for key, part in value.items()]}
    if isinstance(value, Domain):
        return {"domain": [[to_plain(name), to_plain(column)] for name, column in value.items()]}
    for name, (kind, parts) in _KINDS.items():
        if isinstance(value, kind):
            return {name: {part: to_plain(_listed(getattr(value, part))) for part in parts}}
    if client_of is not None and hasattr(value, "get_params"):
        return client_of(value)
    raise ValueError(f"has a {type(value).__name__}, which a survey cannot write down: take strings, numbers, "
                     "booleans, dates, or lists of these")


def from_plain(value, client_of=None):
    """Return the parameter that a plain value stands for, or raise ValueError."""
    if isinstance(value, list):
        return [from_plain(part, client_of) for part in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"class", "parameters"} and client_of is not None:
        return client_of(value)
    if len(value) != 1:
        raise ValueError("must have one key that says what it is")
    (name, said), = value.items()
    read = _READERS.get(name)
    if read is not None:
        return read(said)
    if name == "tuple" and isinstance(said, list):
        return tuple(from_plain(part, client_of) for part in said)
    if name in ("dict", "domain") and isinstance(said, list):
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in said):
            raise ValueError(f"{name} must be a list of pairs")
        pairs = [(from_plain(key), from_plain(part, client_of)) for key, part in said]
        if not all(isinstance(key, str | int | float | tuple | datetime.date) for key, _ in pairs):
            raise ValueError(f"{name} must have strings, numbers or dates as keys")
        made = dict(pairs)
        if len(made) < len(pairs):
            raise ValueError(f"{name} must have no key twice")
        return made if name == "dict" else Domain(made)
    if name in _KINDS and isinstance(said, dict):
        kind, parts = _KINDS[name]
        if set(said) != set(parts):
            raise ValueError(f"{name} must have {', '.join(parts)}")
        return kind(**{part: from_plain(said[part]) for part in parts})
    raise ValueError("must be one of the kinds that a survey knows")


def _own(value):
    """Return NumPy's scalars, arrays and what else lists values as Python's own."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        names = [own for own in other_names(value) if isinstance(own, datetime.date | datetime.timedelta)]
        return names[-1] if names else value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return [_own(part) for part in (value if value.dtype.kind in "mM" else value.tolist())]
    if isinstance(value, range):
        return list(value)
    if hasattr(value, "tolist") and hasattr(value, "__len__"):  # (an index, or a series)
        return value.tolist()
    categories = getattr(value, "categories", None)
    if categories is not None and hasattr(categories, "tolist") and not hasattr(value, "get_params"):
        return categories.tolist()  # (a categorical dtype)
    return value


def _is_missing(value):
    """Tell whether an item of a list is missing, such as a category NaN: only there is None the same."""
    return (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")


def _listed(value):
    return list(value) if isinstance(value, tuple) else value


def _exact(kind, text):
    """Return a date, or a time, whose ISO form this is."""
    try:
        found = kind.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        found = None
    if found is None or found.isoformat() != text:
        raise ValueError("must be a date or a time as ISO 8601 has it")
    return found


def _moment(value):
    if getattr(value, "nanosecond", 0):
        raise ValueError("has a time with nanoseconds, which a survey cannot write down: round it to microseconds")
    return datetime.datetime.isoformat(value)


def _read_integer(text):
    if not isinstance(text, str) or not _INTEGER.fullmatch(text) or len(text) > 4096 or abs(int(text)) < LARGEST:
        raise ValueError("must be an integer of at least 2^53 in size: smaller ones stand for themselves")
    return int(text)


def _read_duration(text):
    if not isinstance(text, str) or not _INTEGER.fullmatch(text) or len(text) > 20:
        raise ValueError("must be an integer, of microseconds")
    try:
        return datetime.timedelta(microseconds=int(text))
    except OverflowError:
        raise ValueError("must be at most a billion days") from None


def _read_decimal(text):
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text.lower().replace("e+", "e")) or len(text) > 4096 or (
            str(Decimal(text)) != text):
        raise ValueError("must be a decimal")
    return Decimal(text)


def _read_bytes(text):
    try:
        found = base64.b64decode(text, validate=True) if isinstance(text, str) else None
    except ValueError:
        found = None
    if found is None or base64.b64encode(found).decode() != text:
        raise ValueError("must be bytes in base64")
    return found


#: (type, its name, how it is written); a datetime is a date, too, and comes first.
_SIMPLE = (
    (Fraction, "fraction", fraction_text), (Decimal, "decimal", str),
    (bytes, "bytes", lambda value: base64.b64encode(value).decode()), (datetime.datetime, "datetime", _moment),
    (datetime.date, "date", datetime.date.isoformat), (datetime.time, "time", datetime.time.isoformat),
    (datetime.timedelta, "duration", lambda value: str(value // datetime.timedelta(microseconds=1))),
)
_READERS = {
    "number": read_number, "fraction": read_fraction, "decimal": _read_decimal, "integer": _read_integer,
    "bytes": _read_bytes, "datetime": lambda text: _exact(datetime.datetime, text),
    "date": lambda text: _exact(datetime.date, text), "time": lambda text: _exact(datetime.time, text),
    "duration": _read_duration,
}
