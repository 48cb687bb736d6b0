"""Baskets as sets of numbers of items: lists, dense tables of 0 and 1, sparse tables."""

import numpy as np

from dpestim.inputs import is_sparse, number_rows, sparse_rows
from dpestim.inputs.frames import is_frame, is_series


class Baskets:
    """Sets of items: those of user i are ``index[start[i] : start[i + 1]]``, ascending, each once.

    Parameters
    ----------
    start : ndarray of int64
    index : ndarray of int32
    """

    def __init__(self, start, index):
        self.start, self.index = start, index

    def __len__(self):
        return len(self.start) - 1

    def __getitem__(self, rows):
        """Return a range of the users."""
        first, last, _ = rows.indices(len(self))
        start = self.start[first : last + 1]
        return Baskets(start - start[0], self.index[start[0] : start[-1]])

    @classmethod
    def of_pairs(cls, rows, items, n):
        """Return the baskets of n users from pairs in any order."""
        pairs = rows.astype(np.int64) << 32 | items
        if (pairs[1:] <= pairs[:-1]).any():
            pairs = np.unique(pairs)
        start = np.append(0, np.cumsum(np.bincount(pairs >> 32, minlength=n)))
        return cls(start.astype(np.int64), (pairs & ((1 << 32) - 1)).astype(np.int32))

    @classmethod
    def of_table(cls, held):
        """Return the baskets of a table of bools."""
        return cls.of_pairs(*np.nonzero(held), len(held))

    def rows(self):
        """Return the user of each pair."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def of(self, users):
        """Return the baskets of some users, ascending."""
        sizes = np.diff(self.start)[users]
        start = np.append(0, np.cumsum(sizes))
        at = np.repeat(self.start[users] - start[:-1], sizes) + np.arange(start[-1])
        return Baskets(start, self.index[at])

    def of_candidates(self, candidates, n_rows):
        """Return which candidates, tuples of items, each user has all items of; so many users are looked at at once."""
        items = np.unique(np.concatenate([np.array(own, np.int64) for own in candidates]))
        column = np.full(int(max(self.index.max(initial=0), items[-1])) + 1, -1)
        column[items] = np.arange(len(items))
        places, parts = [column[list(own)] for own in candidates], []
        for at in range(0, len(self), n_rows):
            few = self[at : at + n_rows]
            item = column[few.index]
            table = np.zeros((len(few), len(items)), bool)
            table[few.rows()[item >= 0], item[item >= 0]] = True
            parts.append(self.of_table(np.stack([table[:, own].all(axis=1) for own in places], axis=1)))
        return self.joined(parts)

    @classmethod
    def joined(cls, parts):
        """Return the baskets of all users of several parts."""
        sizes = np.concatenate([np.zeros(0, np.int64), *(np.diff(part.start) for part in parts)])
        return cls(np.append(0, np.cumsum(sizes)), np.concatenate([np.zeros(0, np.int32), *(p.index for p in parts)]))


def width_of(X):
    """Return how many columns a table of baskets has; of lists of baskets None."""
    shape = getattr(X, "shape", None)
    return int(shape[1]) if not isinstance(X, list | tuple) and isinstance(shape, tuple) and len(shape) == 2 else None


def read_baskets(X, items, n_items, *, strict):
    """Return the `Baskets` of lists, or of a table with a column for each item.

    `items` is the list of all items, or None: they are the columns of the table. Columns that have names of items are
    found by these. Strict mode raises nothing for a value: what is no item is left out, what is neither 0 nor 1 counts
    as 1.
    """
    if is_series(X) or (isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind == "O"):
        X = X.to_list() if hasattr(X, "to_list") else X.tolist()
    if isinstance(X, list | tuple):
        if items is None:
            raise ValueError("items must be declared where baskets are lists, because the items that occur are private")
        return _of_lists(X, items, strict)
    order = _order_of(X, items)
    if is_sparse(X) and not is_frame(X):
        found = sparse_rows(X, lambda j: f"column {j}", strict=strict)
        n, d = X.shape
        values, rows, columns = found.values, np.repeat(np.arange(n), np.diff(found.start)), found.index
    else:
        table = number_rows(X, strict=strict)
        (n, d), (rows, columns) = table.shape, np.nonzero(table)
        values = table[rows, columns]
    if d != n_items:
        raise ValueError(f"X must have a column for each of the {n_items} items, got {d} columns")
    if not strict and not ((values == 0) | (values == 1)).all():
        bad = columns[(values != 0) & (values != 1)][0]
        raise ValueError(f"column {bad} of X must hold 0 and 1 only, and no NaN: 1 where the user has the item")
    own = values != 0
    columns = columns[own] if order is None else order[columns[own]]
    return Baskets.of_pairs(rows[own], columns, n)


def _order_of(X, items):
    """Return the number of the item of each column of a frame whose columns have names of items; else None."""
    names = list(getattr(X, "columns", ()))
    if items is None or not any(isinstance(name, str) for name in names) or not any(
            isinstance(item, str) for item in items):
        return None
    places = {item: place for place, item in enumerate(items)}
    if len(names) != len(items) or set(names) != set(items):
        raise ValueError("X must have a column for each item, with its name: rename the columns, or declare items as "
                         "they are called")
    return np.array([places[name] for name in names])


def _of_lists(X, items, strict):
    """Return the baskets of lists of items."""
    if not len(X):
        raise ValueError("X must have at least one basket")
    known = {item: j for j, item in enumerate(items)}
    flags = all(isinstance(item, bool | np.bool_) for item in items)
    rows, found = [], []
    for number, basket in enumerate(X):
        if not isinstance(basket, list | tuple | set | frozenset | np.ndarray):
            if not strict:
                raise ValueError("X must be a list of baskets, and each basket a list of items")
            basket = ()
        for item in basket.tolist() if isinstance(basket, np.ndarray) else basket:
            plain = isinstance(item, str | int | float | bytes | np.generic)
            own = plain and isinstance(item, bool | np.bool_) == flags  # (True is no 1 here)
            place = known.get(item) if own else None
            if place is None:
                if not strict:
                    raise ValueError("X has a basket with a value that is not in items: declare all items, or remove "
                                     "other values from the baskets")
                continue
            rows.append(number)
            found.append(place)
    return Baskets.of_pairs(np.array(rows, np.int64), np.array(found, np.int64), len(X))
