"""Kinds of columns, as a `Domain` declares them: numbers, categories, text, and sets of (key, value) pairs."""

import datetime
import math
from dataclasses import field
from numbers import Real

import numpy as np

from dpestim.inputs.columns import is_missing
from dpestim.inputs.public import PublicColumn
from dpestim.records import record

#: Types of categories that a file can hold.
_VALUES = (str, bool, int, float, datetime.date)


@record
class Numbers(PublicColumn):
    """A column of numbers within public bounds.

    Parameters
    ----------
    low, high : float
        Public bounds, low at most high. Values outside are clipped by the estimators that read them.
    unit : str, default=None
        For readers, such as "years".
    missing : bool, default=False
        Whether a value may be missing. Trees, forests, boosting, naive Bayes, synthetic data, `DomainEncoder` and
        clients of `dpestim.local` take it as a value of its own; other estimators refuse missing values all the same,
        and say which step helps.

    Examples
    --------
    >>> from dpestim import Numbers
    >>> Numbers(17, 90, unit="years")
    Numbers(17, 90, unit='years')
    """

    low: float
    high: float
    unit: str | None = None
    missing: bool = False
    kind = "numbers"

    def __post_init__(self):
        ends = [_plain(end) for end in (self.low, self.high)]
        if not all(is_number(end) and math.isfinite(end) for end in ends) or not ends[0] <= ends[1]:
            raise ValueError("Numbers must have finite bounds: Numbers(low, high), low at most high")
        if self.unit is not None and not isinstance(self.unit, str):
            raise ValueError("unit must be None or a string")
        for name, end in zip(("low", "high"), ends):
            object.__setattr__(self, name, end)
        _set_flag(self)

    def __repr__(self):
        unit = "" if self.unit is None else f", unit={self.unit!r}"
        return f"Numbers({self.low!r}, {self.high!r}{unit}{', missing=True' if self.missing else ''})"

    def described(self):
        """Return in words what values are possible."""
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.low:g} to {self.high:g}{unit}" if all(map(_is_short, (self.low, self.high))) else (
            f"{self.low!r} to {self.high!r}{unit}")


@record(eq=False)
class Categories(PublicColumn):
    """A column of public categories.

    Parameters
    ----------
    values : sequence of str, bool, int, float or date
        The public categories, in order. A missing value among them (None, NaN) is the same as ``missing=True``.
    missing : bool, default=False
        Whether a value may be missing. A missing value is the last category then.
    other : str, default=None
        The name of the category of all values that are not listed; of missing ones, too, unless ``missing=True``.
        `DomainEncoder` counts such values in it; other estimators treat it as one more category, so replace such values
        by the name first.

    Examples
    --------
    >>> from dpestim import Categories
    >>> Categories(["F", "M"], missing=True)
    Categories(['F', 'M'], missing=True)
    """

    values: tuple
    missing: bool = False
    other: object = None
    _key: tuple = field(init=False, repr=False)
    kind = "categories"

    def __post_init__(self):
        values = self.values
        if isinstance(values, str | bytes | dict | set | frozenset) or not hasattr(values, "__len__") or (
                len(getattr(values, "shape", (0,))) != 1):
            raise ValueError("Categories must have a list of values: Categories(['a', 'b'])")
        values = values.tolist() if hasattr(values, "tolist") else list(values)
        there = [value.item() if isinstance(value, np.generic) else value for value in values if not is_missing(value)]
        _set_flag(self)
        if len(there) < len(values):
            object.__setattr__(self, "missing", True)
        named = there if self.other is None else [*there, self.other]
        if not all(isinstance(value, _VALUES) for value in named) or any(
                isinstance(value, float) and not math.isfinite(value) for value in named):
            raise ValueError("Categories must be strings, booleans, finite numbers or dates")
        if not named or len(set(named)) < len(named):
            raise ValueError("Categories must be distinct, at least one")
        object.__setattr__(self, "values", tuple(there))
        object.__setattr__(self, "_key", (tuple((type(v).__name__, v) for v in (*there, self.other)), self.missing))

    @property
    def all_values(self):
        """The values, the name of all others, and None for a missing value, where there are such: a list."""
        return [*self.values, *(() if self.other is None else (self.other,)), *((None,) if self.missing else ())]

    def __eq__(self, other):
        return self._key == other._key if isinstance(other, Categories) else NotImplemented

    def __hash__(self):
        return hash(self._key)

    def __repr__(self):
        other = "" if self.other is None else f", other={self.other!r}"
        return f"Categories({list(self.values)!r}{', missing=True' if self.missing else ''}{other})"

    def described(self):
        """Return in words what values are possible."""
        shown = [str(value) for value in self.values[:8]]
        more = len(self.values) - len(shown)
        return ", ".join([*shown, *([f"and {more} more"] if more else [])]) + (
            f"; all others: {self.other}" if self.other is not None else "")


@record
class Text(PublicColumn):
    """A column of strings of any content.

    Parameters
    ----------
    max_length : int
        The public largest number of characters.
    missing : bool, default=False
        Whether a value may be missing.

    Examples
    --------
    >>> from dpestim import Text
    >>> Text(140)
    Text(140)
    """

    max_length: int
    missing: bool = False
    kind = "text"

    def __post_init__(self):
        if isinstance(self.max_length, bool) or not isinstance(self.max_length, int | np.integer) or (
                self.max_length < 1):
            raise ValueError("max_length must be an int of at least 1")
        object.__setattr__(self, "max_length", int(self.max_length))
        _set_flag(self)

    def __repr__(self):
        return f"Text({self.max_length}{', missing=True' if self.missing else ''})"

    def described(self):
        """Return in words what values are possible."""
        return f"at most {self.max_length} characters"


@record(eq=False)
class Keys(PublicColumn):
    """A column whose cells are sets of (key, value) pairs, such as ratings of films.

    Parameters
    ----------
    keys : sequence of str, int or date
        The public keys.
    low, high : float, default=0, 1
        Public bounds of the values.

    Examples
    --------
    >>> from dpestim import Keys
    >>> Keys(["tea", "coffee"], 1, 5)
    Keys(['tea', 'coffee'], 1, 5)
    """

    keys: tuple
    low: float = 0
    high: float = 1
    kind, missing = "keys", False

    def __post_init__(self):
        known, ends = Categories(self.keys), Numbers(self.low, self.high)
        if known.missing:
            raise ValueError("Keys must not be missing")
        for name, value in (("keys", known.values), ("low", ends.low), ("high", ends.high)):
            object.__setattr__(self, name, value)

    def __eq__(self, other):
        return self._parts() == other._parts() if isinstance(other, Keys) else NotImplemented

    def __hash__(self):
        return hash(self._parts())

    def _parts(self):
        return Categories(self.keys), self.low, self.high

    def __repr__(self):
        return f"Keys({list(self.keys)!r}, {self.low!r}, {self.high!r})"

    def described(self):
        """Return in words what values are possible."""
        return f"{Categories(self.keys).described()}: {Numbers(self.low, self.high).described()}"


def column_of(declared):
    """Return a column from its short form: (low, high) is `Numbers`, a list or an array of values `Categories`."""
    if isinstance(declared, PublicColumn):
        return declared
    if isinstance(declared, tuple) and len(declared) == 2 and all(map(is_number, declared)):
        return Numbers(*declared)
    categories = getattr(declared, "categories", None)
    if hasattr(categories, "__len__"):  # a categorical dtype
        return Categories(categories)
    if isinstance(declared, list | np.ndarray | range):
        return Categories(declared)
    raise ValueError("a column must be Numbers, Categories, Text or Keys, or in short a pair (low, high), or a list of "
                     "categories")


def is_number(value):
    """Tell whether this is a real number, and no truth value or duration."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_ | np.timedelta64)


def _plain(value):
    """Return a number as an int or a float: infinity where no float is as large."""
    value = value.item() if isinstance(value, np.generic) else value
    if not is_number(value):
        return value
    try:
        return value if float(value) == value and isinstance(value, int) else float(value)
    except OverflowError:
        return math.inf


def _set_flag(column):
    if not isinstance(column.missing, bool | np.bool_):
        raise ValueError("missing must be True or False")
    object.__setattr__(column, "missing", bool(column.missing))


def _is_short(value):
    return float(f"{value:g}") == value
