"""Rows become integers: a public grid, and the rows that a user may keep."""

import math
from functools import cached_property, lru_cache

import numpy as np

from dpestim._core import scaled
from dpestim.inputs import columns_of, is_missing, number_rows, pair_of, refuse_infinite
from dpestim.inputs.frames import refuse_parts
from dpestim.inputs.safe_errors import attempt
from dpestim.records import record
from dpestim.rng import Stage, WordSource

#: Rows that are looked at at a time: squares of the points of the finest grid then add up below 2^57.
BLOCK = 1 << 14
_FINEST = 20
#: The part of a random source that chooses rows of users; parts below are for noise.
_USERS = 1 << 40
#: Parts from here on are for groups.
GROUPS = 1 << 42


@record
class Grid:
    """The multiples of a power of two between two public bounds: at most 2^bits steps, so small integers stay exact.

    Numbers are clipped to the bounds, and count as the nearest point.
    """

    low: float
    high: float
    bits: int = _FINEST

    def __post_init__(self):
        # |point| < 2^50: the halves between are floats, so that a number is rounded as it is, and not twice
        if self.first == self.last or max(abs(self.first), abs(self.last)) >= 1 << 50:
            raise ValueError("bounds must be a pair (low, high) with low below high, further apart than 2^-28 of their "
                             "size")

    @cached_property
    def exponent(self):
        """The step is 2^exponent."""
        mantissa, exponent = math.frexp(self.high - self.low)
        return exponent - self.bits - (mantissa == 0.5)

    @property
    def step(self):
        """The step between points."""
        return math.ldexp(1.0, self.exponent)

    @property
    def scale(self):
        """Points a unit."""
        return math.ldexp(1.0, -self.exponent)

    @cached_property
    def first(self):
        """The first point, in steps."""
        return math.floor(self.low * self.scale)

    @cached_property
    def last(self):
        """The last point, in steps."""
        return math.ceil(self.high * self.scale)

    @property
    def span(self):
        """Steps from the first point to the last."""
        return self.last - self.first

    @property
    def center(self):
        """The point that integers are counted from, in steps."""
        return self.first + self.span // 2

    @property
    def reach(self):
        """The largest absolute value of an integer counted from the center."""
        return self.span - self.span // 2

    def points(self, column):
        """Return the points of a block of a column, counted from the center."""
        from dpestim._core import cells  # (a library, which sums need not)

        out = np.empty(len(column), np.int64)
        column = np.ascontiguousarray(column, np.float64)
        cells.points(column, self.scale, float(self.first), self.span, self.low, self.high, self.span // 2, out)
        return out

    def sums(self, column, squares=False, finite=False):
        """Return the sums of `points` of a column and of their squares (or 0), as ints.

        With `finite` return None where a value is not finite.
        """
        column = np.ascontiguousarray(column, np.float64)
        return scaled.sum_points(column, self.scale, float(self.first), self.span, self.low, self.high, self.span // 2,
                                 squares, finite)

    def count(self, column, counts):
        """Add to `counts`, one entry a point, the rows of a column."""
        from dpestim._core import cells  # (as for points)

        for at in range(0, len(column), BLOCK):
            block = np.ascontiguousarray(column[at : at + BLOCK], np.float64)
            cells.count_points(block, self.scale, float(self.first), self.span, self.low, self.high, counts)


def grids_of(bounds, n_columns=None, bits=_FINEST):
    """Return a grid for each column from bounds as they are declared, or raise ValueError."""
    if type(bounds) is tuple and len(bounds) == 2 and all(type(end) in (int, float) for end in bounds):
        return list(_grids_of(bounds, n_columns, bits))
    low, high = (ends.tolist() for ends in pair_of(bounds, n_columns))
    return [Grid(a, b, bits) for a, b in zip(low, high)]


@lru_cache(maxsize=128, typed=True)
def _grids_of(bounds, n_columns, bits):
    """Return those of two numbers, which most bounds are, worked out once."""
    low, high = (ends.tolist() for ends in pair_of(bounds, n_columns))
    return [Grid(a, b, bits) for a, b in zip(low, high)]


def blocks(rows):
    """Yield a table in blocks of rows, each turned over: a contiguous array of floats for each column, to be read only.

    Reading one column of many after another from memory would take longer than all that is done with it.
    """
    for at in range(0, len(rows), BLOCK):
        with np.errstate(over="ignore"):  # a wider float than this becomes an infinite one, and is clipped
            block = np.ascontiguousarray(rows[at : at + BLOCK].T, np.float64)
        yield block


def point_counts(rows, grids):
    """Return how many rows are nearest to each point, an array for each column."""
    small = np.int32 if len(rows) < 1 << 31 else np.int64  # (tables of these stay in the cache)
    out = [np.zeros(grid.span + 1, small) for grid in grids]
    for block in blocks(rows):
        for grid, column, counts in zip(grids, block, out):
            grid.count(column, counts)
    return [counts.astype(np.int64) for counts in out]


def read_rows(x, strict, unread=False):
    """Return x as a table, and whether it was one column without a second axis.

    `unread`: who sums the rows then sees which values are not finite, and calls `refuse_missing`.
    """
    refuse_parts(x, "X")
    one = len(getattr(x, "shape", ())) == 1 or (isinstance(x, list | tuple) and not any(
        hasattr(row, "__len__") and not isinstance(row, str | bytes) for row in x))
    if one and hasattr(x, "to_frame"):
        rows = number_rows(x.to_frame(), strict=strict, fewest=0)
    elif one:
        column = x if isinstance(x, np.ndarray) else np.asarray(x, dtype=None if hasattr(x, "dtype") else object)
        if strict and not hasattr(x, "dtype"):
            raise ValueError("strict mode: X must have a numeric dtype in every column: pass an array or a frame of "
                             "numbers, not a list or objects")
        if column.dtype == object and not len(column):
            column = column.astype(np.float64)
        rows = number_rows(column.reshape(-1, 1), strict=strict, fewest=0)
    else:
        rows = number_rows(x, strict=strict, fewest=0)
    if not strict and not unread:
        refuse_missing(rows, x, one)
    return rows, one


def refuse_missing(rows, x, one):
    """Raise ValueError where a value of the table that was read from x is not finite."""
    names = list(x.columns) if hasattr(x, "columns") else range(rows.shape[1])
    refuse_infinite(rows, ["X" if one else f"column {name!r}" for name in names],
                    ". Leave out rows with missing values first, such as by x[np.isfinite(x)], x.dropna() or, in "
                    "polars, x.drop_nulls()")


def kept_rows(users, n_rows, most, choice, random_state):
    """Return the places of the rows that count: at most so many of each user, the first ones or a random sample.

    Rows of None are nobody's: two people without an id would be one user, of whom nobody knew how many rows count.
    """
    known = {}
    codes = np.fromiter((-1 if user is None else known.setdefault(user, len(known)) for user in users), np.int64,
                        n_rows)
    tie = np.arange(n_rows)
    if choice == "sample":
        tie = WordSource(random_state).part(_USERS).reader().dense(Stage.SUBSET, 0, 0, 0, n_rows).copy()
    order = np.lexsort((tie, codes))
    ordered = codes[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if n_rows else np.empty(0, np.int64)
    rank = np.arange(n_rows) - np.repeat(starts, np.diff(np.r_[starts, n_rows]))
    return np.sort(order[(rank < most) & (ordered >= 0)])


def users_of(users, n_rows, strict):
    """Return a key for each row, which follows from the row alone: whose it is; None where that is not said (strict).

    Ids of different types are those of different users: 1 is not True.
    """
    from dpestim.statistics.keys import key_of  # (few rows have users)

    out = [None if user is None else key_of(user) for user in named(users, n_rows, "users", strict)]
    if not strict and None in out:
        raise ValueError("users must name the user of each row, without missing values: by strings, numbers, dates or "
                         "tuples of them")
    return out


def named(column, n_rows, name, strict):
    """Return users or categories as hashable Python values, one for each row; all that are missing are None."""
    column = columns_of(column)[0] if len(getattr(column, "shape", ())) == 2 else column
    listed = next((name for name in ("tolist", "to_list") if hasattr(column, name)), None)
    values = column if listed is None else getattr(column, listed)()
    if isinstance(column, np.ndarray) and column.dtype.kind in "mM":
        values = list(column)  # (a list of its own would hold integers where the unit is fine)
    if not isinstance(values, list | tuple) or len(values) != n_rows:
        raise ValueError(f"{name} must have one entry for each of the {n_rows} rows")
    out = [None if not _is_hashable(value) or is_missing(value) else value for value in values]
    if not strict and not all(map(_is_hashable, values)):
        raise ValueError(f"{name} must be hashable, such as numbers or strings")
    return out


def _is_hashable(value):
    return not attempt(hash, value)[1]
