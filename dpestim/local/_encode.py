"""From columns to codes: what a category is, which values are missing, and errors that never show a value."""

import datetime
import math
import warnings

import numpy as np
from sklearn.utils.validation import check_array

from dpestim import parallel
from dpestim._core import encode
from dpestim.local._randomizer import smallest_dtype

#: What a strange object may do when it is compared or hashed.
_WHATEVER = (Exception, SystemExit)
#: A look-up table replaces a binary search for integers that span at most this much.
_LARGEST_TABLE = 1 << 22
#: Threads share a column in multiples of so many rows; fewer are encoded before another thread has woken up.
_TASK_ROWS = 1 << 18


def as_array(X):
    """Return X as a two-dimensional array whose values are what the caller wrote (no numbers turned into strings)."""
    if hasattr(X, "collect") and hasattr(X, "lazy"):
        raise ValueError("X must not be a lazy frame: collect() it first")
    if isinstance(X, np.ma.MaskedArray):
        raise ValueError("X must not be a masked array: remove the masked rows, or list a missing value in categories")
    if not hasattr(X, "dtype") and not hasattr(X, "__array__") and not hasattr(X, "toarray"):
        try:
            as_is = np.asarray(X, dtype=object)
        except ValueError:
            as_is = np.empty(0, object)
        plain = np.asarray(X) if as_is.ndim == 2 else as_is
        X = as_is if plain.dtype.kind in "USO" else plain
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "iubfU" and X.size:
        return X  # nothing is left for scikit-learn to check, and on a client it would take most of the time
    if not hasattr(X, "toarray"):  # before scikit-learn's own checks, whose messages print the data
        X = X if hasattr(X, "dtype") and hasattr(X, "ndim") else np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead. Reshape your data: one row a user, also "
                             "for a single column or a single user")
        if X.dtype.kind == "c":
            raise ValueError("Complex data not supported")
    return check_array(X, dtype=None, ensure_all_finite=False)


def columns_of(X):
    """Return the columns of a checked X: arrays of an ndarray, series of a pandas or polars frame."""
    if hasattr(X, "iloc"):
        return [X.iloc[:, j] for j in range(X.shape[1])]
    if hasattr(X, "get_column"):
        return X.get_columns()
    return [X[:, j] for j in range(X.shape[1])]


def is_missing(value):
    """Tell whether a scalar is None, NaN, NaT or pandas.NA (which is not equal to itself either)."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:  # an array inside an object column
        return False


def _fail(name, *, missing=False, infinite=False):
    """Raise the ValueError of a column; it says what was expected and never what was found."""
    if missing:
        raise ValueError(f"{name} has a missing value (None, NaN or NA): list it in categories or remove the row")
    if infinite:
        raise ValueError(f"{name} has an infinite value (inf): categories are finite")
    raise ValueError(f"{name} has a value that is not among its declared categories")


def _is_infinite(value):
    return isinstance(value, float) and math.isinf(value)


class CategoryEncoder:
    """The codes of one column's categories.

    Parameters
    ----------
    categories : array-like of at least two distinct values
        None, NaN and pandas.NA are one category, "missing"; values of any other kind must be hashable.
    name : str
        The column in error messages, such as "column 0" or "column 'rank'".
    """

    def __init__(self, categories, name):
        self.name = name
        self.categories = _category_array(categories, name)
        self.dtype = smallest_dtype(max(2, len(self.categories)))
        self._missing = None
        self._slots = {}  # tables made when they are needed; they tell how X looked, and so never leave this process
        self._low = _start_of_range(self.categories)
        values = () if self._low is not None else _plain_values(self.categories)
        plain = self.categories.dtype.kind in "iub"  # nothing missing, infinite or unhashable: no need to look at each
        self._codes = dict(zip(values, range(len(values)))) if plain else {}
        if plain and len(self._codes) < len(values):
            raise ValueError(f"categories of {name} must be distinct")
        for code, value in enumerate(() if plain else values):
            if is_missing(value):
                if self._missing is not None:
                    raise ValueError(f"categories of {name} must list the missing value at most once")
                self._missing = code
                continue
            if _is_infinite(value):
                raise ValueError(f"categories of {name} must be finite")
            try:
                known = value in self._codes
            except TypeError:
                raise ValueError(f"categories of {name} must be hashable scalars") from None
            if known:
                raise ValueError(f"categories of {name} must be distinct")
            self._codes[value] = code
            for alias in _time_aliases(self.categories[code]):
                if self._codes.setdefault(alias, code) != code:
                    raise ValueError(f"categories of {name} must be distinct")
        if len(self.categories) < 2:
            raise ValueError(
                f"categories of {name} must be at least two distinct values; a domain of one value (as one sample, or "
                "a constant column, gives it) has nothing to hide and nothing to estimate"
            )

    @property
    def _table(self):
        """Category -> code; of a range it is made when it is needed."""
        if self._low is None:
            return self._codes
        if "codes" not in self._slots:
            self._slots["codes"] = {value: code for code, value in enumerate(_plain_values(self.categories))}
        return self._slots["codes"]

    def __getstate__(self):
        return {**vars(self), "_slots": {}}

    def plain_categories(self):
        """Return the categories as Python values that compare, with None for the missing one."""
        return [None if is_missing(value) else value for value in _plain_values(self.categories)]

    def encode(self, column, n_jobs=None):
        """Return the codes of a column (array or series), or raise ValueError that names the column only."""
        if not isinstance(column, np.ndarray):
            if hasattr(column, "null_count"):
                return self._around_nulls(column, lambda values: self.encode(values, n_jobs), self._missing)
            factors = _factors(column)
            if factors is not None:
                return self._from_factors(*factors)
            column = column.to_numpy()
        kind = column.dtype.kind
        if kind == "b":
            column, kind = column.view(np.uint8), "u"
        out = np.empty(len(column), self.dtype)
        fill = None
        if kind in "iu" and column.dtype.isnative:
            fill = self._from_range if self._low is not None else self._from_table if self._integer_span() else None
        elif kind == "U" and column.dtype.isnative and column.dtype.itemsize:
            fill = self._from_strings
        if fill is not None:

            def task(first, last):
                rows = slice(first * _TASK_ROWS, last * _TASK_ROWS)
                fill(column[rows], out[rows])

            parallel.run(task, -(-len(column) // _TASK_ROWS), n_jobs)
            return out
        if kind == "O":
            values = column.tolist()
            bad = encode.objects(values, self._table, out)
            if bad >= 0:
                self._from_objects(values, out)
            return out
        if kind == "f":  # before unknown values, which sort below inf and NaN
            if np.isinf(column).any():
                _fail(self.name, infinite=True)
            if self._missing is None and np.isnan(column).any():
                _fail(self.name, missing=True)
        uniques, codes = np.unique(column, return_inverse=True)
        return self._from_factors(codes.reshape(-1), uniques)

    def encode_total(self, column, n_jobs=None):
        """Return the codes of a column whatever it holds; a value that is not a category counts as the first one.

        For strict mode, where neither an error nor a warning may tell about a value.
        """
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            # A row's code must follow from its own value. How a column is read therefore depends on its dtype alone:
            # one null must not send everybody else through another representation.
            if hasattr(column, "null_count"):
                return self._around_nulls(column, lambda values: self._total(values, n_jobs), self._missing or 0)
            factors = None if isinstance(column, np.ndarray) else _factors(column)
            if factors is not None:
                return self._from_factors(*factors, total=True)
            return self._total(column if isinstance(column, np.ndarray) else column.to_numpy(), n_jobs)

    def _total(self, column, n_jobs):
        try:
            return self.encode(column, n_jobs)
        except _WHATEVER:
            return self._one_by_one(column)

    def _one_by_one(self, column):
        out = np.zeros(len(column), self.dtype)
        for i, value in enumerate(_plain_values(column)):
            try:
                out[i] = self._code(value)
            except _WHATEVER:
                continue
        return out

    def _around_nulls(self, series, codes_of, missing):
        """Return the codes of a polars series: those of its values, read without the nulls, and the nulls' code."""
        present = ~series.is_null().to_numpy()
        if missing is None and not present.all():
            _fail(self.name, missing=True)
        out = np.full(len(series), missing or 0, self.dtype)
        out[present] = codes_of(series.drop_nulls().to_numpy())
        return out

    def _code(self, value):
        """Return the code of one value; the slow and friendly path."""
        if is_missing(value):
            if self._missing is None:
                _fail(self.name, missing=True)
            return self._missing
        try:
            code = self._table.get(value)
        except TypeError:
            code = None
        if code is None:
            _fail(self.name, infinite=_is_infinite(value))
        return code

    def _from_objects(self, values, out):
        for i, value in enumerate(values):
            out[i] = self._code(value)

    def _from_factors(self, codes, uniques, total=False):
        """Encode through the few distinct values; code -1 is a missing value (pandas' convention)."""
        known, unknown = np.zeros(len(uniques), self.dtype), []
        values = _plain_values(np.asarray(uniques))
        for k, value in enumerate(values):
            try:
                known[k] = self._code(value)
            except ValueError:  # a pandas Categorical may list what no row has
                unknown.append(k)
            except _WHATEVER:
                if not total:
                    raise
        if unknown and not total:
            used = np.flatnonzero(np.isin(unknown, codes))
            if used.size:
                self._code(values[unknown[used[0]]])
        if codes.size and codes.min() < 0:
            if self._missing is None and not total:
                _fail(self.name, missing=True)
            known = np.append(known, np.array([self._missing or 0], self.dtype))  # index -1
        return known[codes]

    def _from_range(self, column, out):
        info = np.iinfo(column.dtype)
        low, high = max(self._low, info.min), min(self._low + len(self.categories) - 1, info.max)
        values = np.ascontiguousarray(column).view(f"u{column.dtype.itemsize}")
        modulus = 1 << (8 * column.dtype.itemsize)
        if low > high or encode.integers(values, low % modulus, high - low, low - self._low, out):
            _fail(self.name)

    def _integer_span(self):
        """Return (lowest, table) of integer categories that lie close together."""
        if self.categories.dtype.kind not in "iu":
            return None
        low, high = int(self.categories.min()), int(self.categories.max())
        if high - low >= _LARGEST_TABLE:
            return None
        if "table" not in self._slots:
            table = np.full(high - low + 1, -1, np.int64)
            for value, code in self._table.items():
                table[value - low] = code
            self._slots["table"] = table
        return low, self._slots["table"]

    def _from_table(self, column, out):
        low, table = self._integer_span()
        if column.size and (int(column.min()) < low or int(column.max()) >= low + table.size):
            _fail(self.name)
        # within the table's range the difference is exact modulo 2^64 whatever the types
        codes = table[column.astype(np.int64) - low if low <= np.iinfo(np.int64).max else column - np.uint64(low)]
        if column.size and codes.min() < 0:
            _fail(self.name)
        out[:] = codes

    def _from_strings(self, column, out):
        width = column.dtype.itemsize // 4
        if width not in self._slots:
            items = [(v, c) for v, c in self._table.items() if isinstance(v, str) and len(v) <= width and "\0" not in v]
            known = np.array([v for v, _ in items], dtype=f"<U{width}").view(np.uint32).reshape(len(items), width)
            slots = np.empty(1 << (2 * len(items) + 1).bit_length(), np.int64)
            encode.build_slots(known, slots)
            self._slots[width] = (known, slots, np.array([c for _, c in items], np.uint32))
        values = np.ascontiguousarray(column).view(np.uint32).reshape(len(column), width)
        if encode.strings(values, *self._slots[width], out) >= 0:
            _fail(self.name)


def _start_of_range(categories):
    """Return the first of integer categories that go up in steps of 1, else None."""
    if categories.dtype.kind not in "iub" or len(categories) < 2:
        return None
    numbers = categories.view(np.uint8) if categories.dtype.kind == "b" else categories
    low, high = int(numbers[0]), int(numbers[-1])
    # steps of 1 modulo 2^width, which do not run over the end of the type
    return low if high - low == len(numbers) - 1 and (numbers[1:] - numbers[:-1] == 1).all() else None


def learn_categories(column, name, allow_missing=False):
    """Return the distinct values of a column, sorted; a missing value is an error, or one value None at the end."""
    if allow_missing:
        values = np.asarray(_series_values(column) if hasattr(column, "to_numpy") else column)
        values = np.array([*_plain_values(values), None], dtype=object)[:-1]
        missing = np.array([is_missing(value) for value in values.tolist()], bool)
        if missing.any():
            present = [*learn_categories(values[~missing], name)] if not missing.all() else []
            return _category_array([*present, None], name)
    if not isinstance(column, np.ndarray):
        factors = _factors(column)
        if factors is not None and factors[0].size and factors[0].min() < 0:
            _fail(name, missing=True)
        column = _series_values(column) if factors is None else np.asarray(factors[1])[np.unique(factors[0])]
    if column.dtype.kind != "O":
        values = np.unique(column)
        if values.dtype.kind in "fcmM" and (values != values).any():
            _fail(name, missing=True)
        if values.dtype.kind == "f" and np.isinf(values).any():
            _fail(name, infinite=True)
        return values
    values = column.tolist()
    if any(is_missing(v) for v in values):
        _fail(name, missing=True)
    if any(_is_infinite(v) for v in values):
        _fail(name, infinite=True)
    try:
        return _category_array(sorted(set(values)), name)
    except TypeError:
        raise ValueError(
            f"{name} holds values that cannot be sorted or hashed together: declare its categories"
        ) from None


def at_least_two(values):
    """Let a constant column of test data be compared: it gets a second, impossible value."""
    if len(values) > 1:
        return values
    out = np.empty(2, object)
    out[0], out[1] = values.tolist()[0], object()
    return out


def _category_array(categories, name):
    """Return a one-dimensional array of the categories without changing what they are."""
    if isinstance(categories, str | bytes | set | frozenset | dict) or not hasattr(categories, "__len__"):
        raise ValueError(f"categories of {name} must be a list or an array of values, which has an order")
    if isinstance(categories, np.ndarray) and categories.dtype.kind not in "US":
        array = categories
    else:
        array = np.empty(len(categories), dtype=object)
        array[:] = categories.tolist() if isinstance(categories, np.ndarray) else list(categories)
        kinds = {type(value) for value in array}
        # NumPy would turn [1, "a"] into strings and [True, 2] into integers; only plain numbers of one kind become such
        if len(kinds) == 1 and issubclass(next(iter(kinds)), bool | int | float | np.number | np.bool_):
            numbers = np.array(array.tolist())
            exact = numbers.dtype.kind in ("f" if issubclass(next(iter(kinds)), float | np.floating) else "biu")
            array = numbers if exact else array  # -1 beside 2**63 would become a float
    if array.ndim != 1:
        raise ValueError(f"categories of {name} must be one-dimensional")
    if array is categories:
        array = array.copy()  # what is frozen must not change with the caller's array
    array.setflags(write=False)
    return array


def _series_values(series):
    """Return the values of a series as an array; a polars series with nulls keeps its type (not floats)."""
    if hasattr(series, "null_count") and series.null_count():
        out = np.empty(len(series), dtype=object)
        out[:] = series.to_list()
        return out
    return series.to_numpy()


def _plain_values(array):
    """Return Python values that compare whatever the unit: a date or a duration is ("M" or "m", nanoseconds)."""
    kind = array.dtype.kind
    if kind not in "mM":
        return array.tolist()
    fine = np.datetime_data(array.dtype)[0] == "ns"
    ticks = array if fine else array.astype(f"{kind}8[us]")
    scale = 1 if fine else 1000  # Python integers do not overflow where 64 bits of nanoseconds would
    missing = np.isnat(array).tolist()
    return [None if gone else (kind, t * scale) for gone, t in zip(missing, ticks.astype(np.int64).tolist())]


def _time_aliases(category):
    """Return the other values that name the same date or duration: a Python object for an array's, and the reverse."""
    if isinstance(category, np.datetime64 | np.timedelta64):
        value = category.astype(f"{category.dtype.kind}8[us]").item()
        whole = isinstance(value, datetime.date | datetime.timedelta) and category == np.array(value, category.dtype)
        return [value] if whole else []
    if isinstance(category, datetime.timedelta):
        return _plain_values(np.array([category], "m8[us]"))
    if isinstance(category, datetime.date) and getattr(category, "tzinfo", None) is None:
        return _plain_values(np.array([category], "M8[us]"))
    return []


def _factors(series):
    """Return (codes, distinct values) where the library of the series knows them cheaply, else None."""
    if hasattr(series, "cat") and hasattr(series.cat, "codes"):  # pandas Categorical
        return np.asarray(series.cat.codes), series.cat.categories.to_numpy()
    if hasattr(series, "factorize") and not isinstance(series.dtype, np.dtype):  # pandas strings, nullable types
        codes, uniques = series.factorize()
        return np.asarray(codes), uniques.to_numpy(dtype=object)
    return None
