"""Canaries of a table: rows that a model remembers well, and their twins; whether one is there is a coin's decision.

A canary is unusual in one column, a number at an end of its bounds or a rare category, so that canaries of different
columns do not hide each other. Labels are drawn; a twin is the opposite of its canary. No two canaries are equal.
"""

import numpy as np

from dpestim.inputs.declared import is_by_column, lists_of, pair_of, pairs_of
from dpestim.inputs.domain import Domain
from dpestim.inputs.frames import columns_of, is_frame, to_array
from dpestim.inputs.kinds import Categories, Numbers
from dpestim.privacy.config import get_config

#: Attempts for each canary; and how many values a column gives alone, before others are unusual, too.
_ROUNDS, _ALONE = 60, 8


def declared_columns(estimator, X, domain=None):
    """Return a list of `Numbers` and `Categories`, one for each column of X.

    From `domain`, or what the estimator declares; and else from the rows, which strict mode refuses.
    """
    names, n = (list(X.columns) if is_frame(X) else None), np.shape(X)[1]
    for declared in (domain, *(getattr(estimator, name, None) for name in ("domain", "bounds", "categories"))):
        if declared is domain and domain is not None:
            declared = Domain(domain)
        if isinstance(declared, Domain) and len(declared) >= n:
            return [declared[name] for name in names] if names and set(names) <= set(declared) else (
                [column for _, column in declared.items()][:n])
    found = [None] * n
    lists = getattr(estimator, "categories", None)
    if isinstance(lists, list | tuple) and len(lists) == n:
        found = [Categories(list(values)) for values in lists_of(lists, n, names)]
    elif isinstance(lists, dict):
        found = [None if values is None else Categories(list(values))
                 for values in lists_of(lists, n, names, some=True)]
    bounds = getattr(estimator, "bounds", None)
    if bounds is not None and is_by_column(bounds):
        pairs = pairs_of(bounds, n, names, some=True)
        found = [own or (pair and Numbers(*pair)) for own, pair in zip(found, pairs)]
    elif bounds is not None and all(column is None for column in found):
        lows, highs = pair_of(bounds, None, names)
        lows, highs = (np.broadcast_to(ends, n).tolist() for ends in (lows, highs))
        found = [Numbers(low, high) for low, high in zip(lows, highs)]
    if all(column is not None for column in found):
        return found
    if get_config()["strict"]:
        raise ValueError("strict mode: pass domain=, the bounds or the categories of all columns, because they would "
                         "be read from the rows")
    sketch = [column for _, column in Domain.sketch(X).items()]
    return [own or read for own, read in zip(found, sketch)]


def draw(columns, X, n, rng):
    """Return (canaries, twins): two lists of n tuples, or raise ValueError where there are not so many."""
    seen = [to_array(column, "a column") for column in columns_of(X)]
    kinds = [(_Number if isinstance(column, Numbers) else _Value)(column, own) for column, own in zip(columns, seen)]
    usual = [kind.usual for kind in kinds]
    there, rows = {tuple(usual)}, []
    for k in range(_ROUNDS * n):
        if len(rows) == n:
            break
        at, turn = k % len(kinds), k // len(kinds)
        row = list(usual)
        row[at] = kinds[at].unusual(turn, rng)
        if turn >= _ALONE:  # values of one column alone are used up, or nearly
            for other in rng.integers(len(kinds), size=int(rng.integers(1, len(kinds) + 1))).tolist():
                row[other] = kinds[other].unusual(int(rng.integers(turn)), rng)
        row = tuple(row)
        if row not in there:
            there.add(row)
            rows.append(row)
    if len(rows) < n:
        raise ValueError(f"n_canaries must be at most about {len(rows)}: the columns allow few rows that differ")
    return rows, [tuple(kind.opposite(value) for kind, value in zip(kinds, row)) for row in rows]


def labels(estimator, y, n, rng):
    """Return (labels, labels of twins), arrays: other classes, or the other end of the bounds of the target."""
    y = np.asarray(y)
    ends = getattr(estimator, "target_bounds", None)
    most = getattr(estimator, "max_target", None)
    if ends is None and most is not None:
        ends = 0, most
    if isinstance(ends, Numbers):
        ends = ends.low, ends.high
    classes = getattr(estimator, "classes", None)
    if ends is None and (classes is not None or not hasattr(estimator, "predict") or _classifies(estimator, y)):
        values = np.unique(y) if classes is None else np.asarray(getattr(classes, "values", classes))
        if len(values) < 2:
            raise ValueError("y must have at least two classes, because canaries have one class and twins another one")
        at = rng.integers(len(values), size=n)
        other = (at + rng.integers(1, len(values), size=n)) % len(values)
        return values[at], values[other]
    low, high = ends if isinstance(ends, tuple | list) and len(ends) == 2 else (y.min(), y.max())
    at = rng.integers(2, size=n)
    return np.where(at, high, low), np.where(at, low, high)


def _classifies(estimator, y):
    kind = getattr(estimator, "_estimator_type", None)
    return kind == "classifier" or hasattr(estimator, "predict_proba") or (kind is None and y.dtype.kind not in "f")


def table_of(X):
    """Return X as a frame or an array in which a longer string finds room."""
    if is_frame(X):
        return X
    X = to_array(X)
    return X.astype(object) if X.dtype.kind in "US" else X


def join(X, rows):
    """Return the rows of X, and more rows (tuples) below, in the container that X came in."""
    if hasattr(X, "iloc"):
        from pandas import concat

        # (categories of a categorical column may be fewer than those that were declared: such a column becomes values)
        kinds = {name: kind for name, kind in X.dtypes.items() if not hasattr(kind, "categories")}
        more = type(X)(dict(zip(X.columns, map(list, zip(*rows))))).astype(kinds)
        return concat([X, more], ignore_index=True)
    if is_frame(X):
        return X.vstack(type(X)(rows, schema=X.schema, orient="row"))
    return np.concatenate([X, as_rows(X, rows)])


def as_rows(X, rows):
    """Return rows (tuples) alone, in the container and with the dtypes of X."""
    if is_frame(X):
        n = len(rows)
        whole = join(X, rows)
        return whole.iloc[-n:] if hasattr(X, "iloc") else whole[-n:]
    out = np.empty((len(rows), X.shape[1]), X.dtype)
    for at, row in enumerate(rows):
        out[at] = row
    return out


# ---------------------------------------------------------------- one column


class _Number:
    """A column of numbers: the middle is usual; the ends of the bounds are not, and then any number between."""

    def __init__(self, column, own):
        self.low, self.high = column.low, column.high
        self.whole = own.dtype.kind in "iu" or (
            own.dtype.kind == "O" and all(isinstance(value, int) for value in own[:100].tolist()))
        self.usual = self._typed((self.low + self.high) / 2)

    def _typed(self, value):
        return int(min(max(round(value), np.ceil(self.low)), np.floor(self.high))) if self.whole else float(value)

    def unusual(self, turn, rng):
        ends = (self.high, self.low)
        return self._typed(ends[turn] if turn < len(ends) else rng.uniform(self.low, self.high))

    def opposite(self, value):
        return self._typed(self.low + self.high - value)


class _Value:
    """A column of categories: the one that most rows have is usual; all others are not, the rarest one first."""

    def __init__(self, column, own):
        values = list(getattr(column, "values", ()))
        if not values:
            raise ValueError("X must have columns of numbers or of categories: pass canaries= for other kinds")
        counts = np.array([np.count_nonzero(own == value) for value in values])
        order = [values[k] for k in np.argsort(counts, kind="stable")]
        self.rare, self.usual = order[:-1] or order, order[-1]

    def unusual(self, turn, rng):
        return self.rare[turn % len(self.rare)]

    def opposite(self, value):
        return self.rare[0] if value == self.usual else self.usual
