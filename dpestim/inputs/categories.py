"""From a column to codes: one reading for both modes, and errors that never show a value."""

import datetime
import math
import warnings

import numpy as np

from dpestim import parallel
from dpestim._core import encode
from dpestim.inputs.columns import is_missing, other_names, parts, plain_values
from dpestim.inputs.domains import MISSING, category_array
from dpestim.inputs.integer_ranges import UNSIGNED, as_unsigned, integer_range, length_of

#: A look-up table replaces a bisection for integers that span at most this much.
_LARGEST_TABLE = 1 << 22
#: Threads share a column in multiples of so many rows; fewer are encoded before another thread has woken up.
_TASK_ROWS = 1 << 18
#: Categories whose list of Python values is kept.
_KEPT = 1 << 16
#: Types of categories of which the kernels know what equals a number (a Decimal or a Fraction may, too).
_SIMPLE = (int, float, np.integer, np.floating, np.bool_, np.datetime64, str, bytes, tuple, datetime.date,
           datetime.time, datetime.timedelta)
#: Types whose values are neither missing nor known by another name.
_PLAIN = (str, int, bytes, bool)
#: The dtype as which the kernel reads a column of numbers, by kind and number of bytes.
_NUMBERS = {
    **dict.fromkeys(("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4"), np.dtype(np.int64)), "u8": np.dtype(np.uint64),
    "f2": np.dtype(np.float32), "f4": np.dtype(np.float32), "f8": np.dtype(np.float64),
}

#: Why a value is no category (`MISSING` is another reason).
INFINITE = "has an infinite value (inf): replace the value or remove the row"
UNKNOWN = ("has a value that is not among its declared categories: declare this value, replace it with a declared one, "
           "or drop the row")


class CategoryEncoder:
    """The codes of one column's categories.

    A row's code follows from its own value and from the dtype of the column, never from another row. What is no
    category gets a fallback code, in kernels at the cost of any other row; only then does `encode` raise, and
    `encode_total` not. How long either takes still depends on the values, most of all where a column of objects holds
    many that nobody declared: constant time is not promised.

    Parameters
    ----------
    categories : array-like or range of at least two distinct values
        None, NaN and pandas.NA are one category, "missing"; values of any other kind must be hashable.
    name : str
        The column in error messages, such as "column 0" or "column 'rank'".
    fewest : int, default=2
        The least number of categories: public ones, such as groups of users, may be one.
    """

    def __init__(self, categories, name, fewest=2):
        self.name = name
        if type(categories) is range and length_of(categories) > 1 << 32:  # (codes are of 32 bits)
            raise ValueError(f"categories of {name} must be at most 2**32: for more of them take a sketch of an open "
                             "column, HCMSFrequencyEstimator(categories=None)")
        self.range, self._listed = integer_range(categories), None
        if self.range is None:
            self._listed = category_array(categories, name)
            self.range = integer_range(self._listed)
        self.n_categories = len(self._listed) if self.range is None else self.range[2]
        self.dtype = smallest_dtype(max(2, self.n_categories))
        self._missing = None
        self._slots = {}  # tables made when they are needed; they tell how X looked, and so never leave this process
        self._low, self._codes = None, {}
        if self.range is not None:
            self._low = self.range[1]
            return
        values = plain_values(self.categories)
        # nothing missing, infinite or unhashable, and no other name for a value: no need to look at each
        plain = self.categories.dtype.kind in "iub" or {str, int, bytes, bool}.issuperset(map(type, values))
        self._codes = dict(zip(values, range(len(values)))) if plain else {}
        if plain and len(self._codes) < len(values):
            raise ValueError(f"categories of {name} must be distinct")
        for code, value in enumerate(() if plain else values):
            self._add(code, value)
        if self.n_categories < fewest:
            raise ValueError(
                f"categories of {name} must be at least two distinct values, and one sample shows one: declare all "
                "values that are possible, or leave out a constant column"
            )

    def _add(self, code, value):
        """Take a category into the table."""
        if is_missing(value):
            if self._missing is not None:
                raise ValueError(f"categories of {self.name} must list the missing value at most once")
            self._missing = self._codes[None] = code
            return
        if _is_infinite(value):
            raise ValueError(f"categories of {self.name} must be finite")
        known = None
        try:
            known = self._codes.setdefault(value, code) != code
            for alias in other_names(self.categories[code]):
                known |= self._codes.setdefault(alias, code) != code
        except Exception:
            known = None
        if known is None:
            raise ValueError(f"categories of {self.name} must be hashable scalars")
        if known:
            raise ValueError(f"categories of {self.name} must be distinct")

    @property
    def categories(self):
        """The domain, in the order of the codes; of a range it is made when it is needed, which may be never."""
        if self._listed is not None:
            return self._listed
        if "categories" not in self._slots:
            kind, low, n = self.range
            dtype = np.dtype(kind)
            values = np.arange(n).astype(UNSIGNED[dtype.itemsize])
            values += values.dtype.type(low % (1 << 8 * dtype.itemsize))
            values = values.view(dtype)
            values.setflags(write=False)
            self._slots["categories"] = values
        return self._slots["categories"]

    @property
    def _table(self):
        """Category -> code; of a range it is made when it is needed."""
        if self._low is None:
            return self._codes
        if "codes" not in self._slots:
            self._slots["codes"] = {value: code for code, value in enumerate(plain_values(self.categories))}
        return self._slots["codes"]

    def __getstate__(self):
        return {**vars(self), "_slots": {}}

    def plain_categories(self):
        """Return the categories as Python values that compare, whatever a date is made of; None for the missing one.

        A list that nobody changes: it is made once, unless it is long, as servers compare it for every batch.
        """
        plain = self._slots.get("plain")
        if plain is None:
            plain = [None if is_missing(value) else next(iter(other_names(value)), value)
                     for value in plain_values(self.categories)]
            if len(plain) <= _KEPT:
                self._slots["plain"] = plain
        return plain

    @property
    def domain(self):
        """The categories as a survey says them."""
        values = [None if is_missing(value) else value for value in self.categories.tolist()] if (
            self.categories.dtype.kind not in "mM") else list(self.categories)
        return {"kind": "categories", "values": values, "missing": self._missing is not None}

    def encode(self, column, n_jobs=None):
        """Return the codes of a column (array or series), or raise ValueError that names the column only."""
        out, why = self.read(column, self.dtype, 0, n_jobs)
        if why:
            raise ValueError(f"{self.name} {why}")
        return out

    def encode_total(self, column, n_jobs=None):
        """Return the codes of a column whatever it holds; a value that is not a category counts as the first one.

        For strict mode, where neither an error nor a warning may tell about a value.
        """
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return self.read(column, self.dtype, 0, n_jobs, explain=False)[0]

    def coder_of_one(self, dtype, place):
        """Return a function from an array of one row to the code of its value at a place, an array of one.

        It returns None for a value that `encode` would refuse. None in its place: no kernel reads this dtype.
        """
        low, n, fill, own = self._low, self.n_categories, self.fill_for(dtype), self.dtype
        if fill is None:
            return None

        def code_read(X):
            out = np.empty(1, own)
            return None if fill(X[:, place], out, 0) else out

        def code_counted(X):
            code = X.item(place) - low
            return np.array((code,), own) if 0 <= code < n else None

        return code_read if low is None or dtype.kind not in "iu" else code_counted

    def read(self, column, dtype, fallback, n_jobs=None, explain=True):
        """Return (codes, None, or why a value has the fallback code: it is no category).

        Where not `explain`, nobody asks for the reason, and what is returned for it is of no use.
        """
        index = null = None
        if type(column) is not np.ndarray:
            column, index, null = parts(column, self.name)
        if index is not None:
            return self._from_factors(index, column, dtype, fallback, explain)
        if null is not None:
            return self._around_nulls(column, null, dtype, fallback, n_jobs, explain)
        fill = self.fill_for(column.dtype)
        out = np.empty(len(column), dtype)
        if fill is None:
            why = self._from_objects(column, out, fallback)
        elif len(column) <= _TASK_ROWS:
            why = fill(column, out, fallback)
        else:

            def task(first, last):
                rows = slice(first * _TASK_ROWS, last * _TASK_ROWS)
                return fill(column[rows], out[rows], fallback)

            reasons = parallel.run(task, -(-len(column) // _TASK_ROWS), n_jobs, pieces=8)
            why = next((reason for reason in reasons if reason), None)
        return out, why

    def _around_nulls(self, values, null, dtype, fallback, n_jobs, explain):
        """Return (codes, why not) of rows of which `null` marks the missing ones."""
        missing = fallback if self._missing is None else self._missing
        if len(values) == len(null):
            out, why = self.read(values, dtype, fallback, n_jobs)
            out[null] = missing
            if why and explain:  # perhaps it was what stands at the nulls
                why = self.read(values[~null], dtype, fallback, n_jobs)[1]
        else:
            out = np.full(len(null), missing, dtype)
            out[~null], why = self.read(values, dtype, fallback, n_jobs)
        return out, why or (MISSING if self._missing is None else None)

    def fill_for(self, dtype):
        """Return what encodes rows of this dtype by a kernel, else None."""
        kind = dtype.kind
        if kind in "iub":
            return self._from_range if self._low is not None else (
                self._from_table if self._span() else self._from_numbers if self._is_simple() else None
            )
        if kind == "f":
            return self._from_numbers if dtype.itemsize <= 8 and self._is_simple() else None
        return self._from_strings if kind == "U" else None

    def range_in(self, dtype):
        """Return (lowest, highest - lowest, code of the lowest) of the categories that a dtype of integers holds.

        The lowest is modulo 2 to the width. None where the categories are no range, or none of them is of this dtype.
        """
        if self._low is None:
            return None
        place = "range", dtype
        if place not in self._slots:
            self._slots[place] = _range_in(dtype, self._low, self._low + self.n_categories - 1)
        return self._slots[place]

    # each of the following writes the codes of rows and returns why one has the fallback, or None

    def _from_range(self, column, out, fallback):
        found = self.range_in(column.dtype)
        if found is None:
            out[:] = fallback
            return UNKNOWN if len(out) else None
        values, (low, span, start) = as_unsigned(column), found
        return UNKNOWN if encode.integers(values, low, span, start, fallback, out) else None

    def _from_table(self, column, out, fallback):
        low, table = self._span()
        found = _range_in(column.dtype, low, low + len(table) - 1)
        if found is None:
            out[:] = fallback
            return UNKNOWN if len(out) else None
        values, (low, span, start) = as_unsigned(column), found
        return UNKNOWN if encode.table(values, low, span, table[start : start + span + 1], fallback, out) else None

    def _from_numbers(self, column, out, fallback):
        dtype = _NUMBERS[column.dtype.kind + str(column.dtype.itemsize)]
        values = np.ascontiguousarray(column, dtype)
        missing = fallback if self._missing is None else self._missing
        bad, nan = encode.numbers(values, *self._sorted(dtype), missing, fallback, out)
        if (bad or nan) and dtype.kind == "f" and np.isinf(values).any():
            return INFINITE
        return MISSING if nan and self._missing is None else UNKNOWN if bad else None

    def _from_strings(self, column, out, fallback):
        width = max(1, column.dtype.itemsize // 4)
        if width not in self._slots:
            items = [(v, c) for v, c in self._table.items() if isinstance(v, str) and len(v) <= width and "\0" not in v]
            known = np.array([v for v, _ in items], dtype=f"=U{width}").view(np.uint32).reshape(len(items), width)
            slots = np.empty(1 << (2 * len(items) + 1).bit_length(), np.int64)
            encode.build_slots(known, slots)
            self._slots[width] = (known, slots, np.array([c for _, c in items], np.uint32))
        values = np.ascontiguousarray(column, f"=U{width}").view(np.uint32).reshape(len(column), width)
        return UNKNOWN if encode.strings(values, *self._slots[width], fallback, out) else None

    def _from_objects(self, column, out, fallback):
        if column.dtype.kind not in "SMmiubf":
            values = column.tolist()
            return self._look_again(values, encode.objects(values, self._table, fallback, out), out)[1]
        null = column != column
        nulls = null.any()
        present = column[~null] if nulls else column  # (an inverse index with nulls in it may be wrong)
        ticks = present.view("i8") if present.dtype.kind in "mM" and present.dtype.isnative else present
        uniques, index = np.unique(ticks, return_inverse=True)
        if nulls:
            inverse, index = index, np.full(len(column), -1, np.int64)
            index[~null] = inverse
        out[:], why = self._from_factors(index, uniques.view(present.dtype), out.dtype, fallback)
        return why

    def _from_factors(self, index, uniques, dtype, fallback, explain=True):
        """Return (codes, why not) of rows that are `uniques[index]`; index -1 is a missing value."""
        values = plain_values(uniques)
        known = np.full(len(values) + 1, fallback, dtype)
        bad, why = self._look_again(values, encode.objects(values, self._table, fallback, known[:-1]), known)
        if bad and explain:  # (a pandas Categorical may list what no row has)
            strange = np.zeros(len(known), bool)
            strange[bad] = True
            rows = strange[index]
            why = self._code(values[index[rows.argmax()]])[1] if rows.any() else None
        if self._missing is not None:
            known[-1] = self._missing
        elif index.size and index.min() < 0:
            why = why or MISSING
        return known[index], why

    def _look_again(self, values, rows, out):
        """Write the codes of rows that the table knows by another name; return the other rows, and why."""
        left, why = [], None
        for i in rows:
            value = values[i]
            code, reason = (None, UNKNOWN) if type(value) in _PLAIN else self._code(value)
            if reason:
                left.append(i)
                why = why or reason
            else:
                out[i] = code
        return left, why

    def _code(self, value):
        """Return (code, None) or (None, why) of a value that is not in the table as it stands."""
        try:
            if is_missing(value):
                return self._missing, MISSING if self._missing is None else None
            for name in other_names(value):
                if name in self._table:
                    return self._table[name], None
            return None, INFINITE if _is_infinite(value) else UNKNOWN
        except KeyboardInterrupt:
            raise
        except BaseException:  # whatever a strange object does
            return None, UNKNOWN

    # tables, made once

    def _is_simple(self):
        """Tell whether only plain integers and floats among the categories can equal a number."""
        if "simple" not in self._slots:
            self._slots["simple"] = all(v is None or isinstance(v, _SIMPLE) for v in self._table)
        return self._slots["simple"]

    def _sorted(self, dtype):
        """Return (categories that this dtype holds exactly, ascending; their codes)."""
        if dtype not in self._slots:
            array = self.categories
            if np.can_cast(array.dtype, dtype) and (array.dtype.kind == "f") == (dtype.kind == "f"):
                pairs = [(v, c) for c, v in enumerate(array.astype(dtype).tolist()) if c != self._missing]
            else:
                pairs = [(dtype.type(v), c) for v, c in self._table.items() if _holds(dtype, v)]
            pairs.sort()
            values, codes = zip(*pairs) if pairs else ((), ())
            self._slots[dtype] = np.array(values, dtype), np.array(codes, np.uint32)
        return self._slots[dtype]

    def _span(self):
        """Return (lowest, table) of integer categories that lie close together, else None."""
        if self.categories.dtype.kind not in "iub":
            return None
        if "table" not in self._slots:
            low, high = int(self.categories.min()), int(self.categories.max())
            table = None
            if high - low < _LARGEST_TABLE:
                table = np.full(high - low + 1, -1, np.int64)
                for value, code in self._table.items():
                    table[value - low] = code
            self._slots["table"] = None if table is None else (low, table)
        return self._slots["table"]


def _range_in(dtype, low, high):
    """Return (low modulo 2^width, high - low, how far low was raised) within a dtype of integers, or None."""
    size = dtype.itemsize
    if dtype.kind == "b":
        least, most = 0, 1
    else:
        most = (1 << (8 * size - (dtype.kind == "i"))) - 1
        least = -most - 1 if dtype.kind == "i" else 0
    start, stop = max(low, least), min(high, most)
    return None if start > stop else (start % (1 << (8 * size)), stop - start, start - low)


def _holds(dtype, value):
    """Tell whether a number is exactly one of this dtype (2**53 + 1 is no float, 0.5 no integer)."""
    if isinstance(value, np.timedelta64) or not isinstance(value, int | float | np.integer | np.floating | np.bool_):
        return False
    value = value.item() if isinstance(value, np.generic) else value
    try:
        with np.errstate(all="ignore"):
            return bool(dtype.type(value).item() == value)
    except (OverflowError, ValueError):
        return False


def first_equals(values):
    """Return, for each value, the place of the first that `CategoryEncoder` takes for the same category; -1: for none.

    1, 1.0 and True are one category, and so are a date, its midnight and what NumPy and pandas make of it.
    """
    places, out = {}, []
    for i, value in enumerate(values):
        keys = [None] if is_missing(value) else [value, *other_names(value)]
        at = -1 if _is_infinite(value) else next((places[key] for key in keys if key in places), i)
        if at == i:
            places.update(dict.fromkeys(keys, i))
        out.append(at)
    return out


def _is_infinite(value):
    return isinstance(value, float | np.floating) and math.isinf(value)


def smallest_dtype(n):
    """Return the smallest unsigned dtype that holds 0 .. n - 1 (64 bits are for hashes of codes only)."""
    for size in (1, 2, 4):
        if n <= 1 << 8 * size:
            return UNSIGNED[size]
    return UNSIGNED[8]
