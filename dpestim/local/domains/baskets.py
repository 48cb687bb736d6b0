"""Baskets as sets of numbers of items: lists, dense tables of 0 and 1, sparse tables."""

import numpy as np

from dpestim.inputs import is_sparse, number_rows, sparse_rows
from dpestim.inputs.frames import is_frame


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

    @classmethod
    def of_pairs(cls, rows, items, n):
        """Return the baskets of n users from pairs in any order."""
        order = np.lexsort((items, rows))
        rows, items = rows[order], items[order]
        new = np.ones(len(rows), bool)
        new[1:] = (rows[1:] != rows[:-1]) | (items[1:] != items[:-1])
        start = np.append(0, np.cumsum(np.bincount(rows[new], minlength=n)))
        return cls(start.astype(np.int64), items[new].astype(np.int32))

    @classmethod
    def of_table(cls, held):
        """Return the baskets of a table of bools."""
        return cls.of_pairs(*np.nonzero(held), len(held))

    def rows(self):
        """Return the user of each pair."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def table(self, users, items):
        """Return a table of bools: which of some items each of some users holds."""
        column = np.full(int(max(self.index.max(initial=0), max(items))) + 1, -1)
        column[items] = np.arange(len(items))
        place = np.full(len(self), -1)
        place[users] = np.arange(len(users))
        row, item = place[self.rows()], column[self.index]
        own = (row >= 0) & (item >= 0)
        out = np.zeros((len(users), len(items)), bool)
        out[row[own], item[own]] = True
        return out

    def of(self, users):
        """Return the baskets of some users."""
        place = np.full(len(self), -1)
        place[users] = np.arange(len(users))
        row = place[self.rows()]
        return Baskets.of_pairs(row[row >= 0], self.index[row >= 0], len(users))


def read_baskets(X, items, *, strict):
    """Return (`Baskets`, number of items); `items` is the list of all items, or None: the columns of a table.

    Strict mode raises nothing for a value: what is no item is left out, what is neither 0 nor 1 counts as 1.
    """
    if isinstance(X, list | tuple):
        if items is None:
            raise ValueError("items must be declared where baskets are lists, because the items that occur are private")
        return _of_lists(X, items, strict), len(items)
    if is_sparse(X) and not is_frame(X):
        found = sparse_rows(X, lambda j: f"column {j}", strict=strict)
        n, d = X.shape
        values, rows, columns = found.values, np.repeat(np.arange(n), np.diff(found.start)), found.index
    else:
        table = number_rows(X, strict=strict)
        (n, d), (rows, columns) = table.shape, np.nonzero(table)
        values = table[rows, columns]
    if items is not None and d != len(items):
        raise ValueError(f"X must have a column for each of the {len(items)} items, got {d} columns")
    if not strict and not ((values == 0) | (values == 1)).all():
        bad = columns[(values != 0) & (values != 1)][0]
        raise ValueError(f"column {bad} of X must hold 0 and 1 only, and no NaN: 1 where the user has the item")
    own = values != 0
    return Baskets.of_pairs(rows[own], columns[own], n), d


def _of_lists(X, items, strict):
    """Return the baskets of lists of items."""
    if not len(X):
        raise ValueError("X must have at least one basket")
    known = {item: j for j, item in enumerate(items)}
    rows, found = [], []
    for number, basket in enumerate(X):
        if not isinstance(basket, list | tuple | set | frozenset | np.ndarray):
            if not strict:
                raise ValueError("X must be a list of baskets, and each basket a list of items")
            basket = ()
        for item in basket.tolist() if isinstance(basket, np.ndarray) else basket:
            place = known.get(item) if isinstance(item, str | int | float | bytes | np.generic) else None
            if place is None:
                if not strict:
                    raise ValueError("X has a basket with a value that is not in items: declare all items, or remove "
                                     "other values from the baskets")
                continue
            rows.append(number)
            found.append(place)
    return Baskets.of_pairs(np.array(rows, np.int64), np.array(found, np.int64), len(X))
