"""Ratings as they come in: who rated what, and how well; one representation for all estimators."""

from functools import cached_property

import numpy as np
from scipy import sparse

from dpestim.inputs.frames import refuse_parts
from dpestim.inputs.matrices import entries_of
from dpestim.inputs.safe_errors import attempt
from dpestim.records import record


@record(eq=False)
class Ratings:
    """Ratings of users: those of user u are ``values[starts[u]:starts[u + 1]]``, of ``items``, ascending."""

    starts: np.ndarray
    items: np.ndarray
    values: np.ndarray
    n_items: int

    @property
    def n_users(self):
        """The number of users."""
        return len(self.starts) - 1

    @cached_property
    def per_user(self):
        """The number of ratings of each user."""
        return np.diff(self.starts)

    def matrix(self, values):
        """Return the csr_array of users and items with other values of the same ratings."""
        return sparse.csr_array((values, self.items, self.starts), shape=(self.n_users, self.n_items))


def read_ratings(X, *, n_items=None, strict=False):
    """Return `Ratings` of a sparse matrix of users and items, in which what is stored is rated, or raise ValueError.

    Strict mode takes any numbers: those that are missing (NaN) are no ratings, and of several of one user and item the
    last one is taken.
    """
    refuse_parts(X, "X")
    if not sparse.issparse(X) or X.ndim != 2:
        raise ValueError("ratings must be a SciPy sparse matrix or array of users and items, in which what is stored "
                         "is rated; make one of a table of ratings by dpestim.recommend.rating_matrix")
    if X.dtype.kind not in "biuf":
        raise ValueError("ratings must be numbers")
    if n_items is not None and X.shape[1] != n_items:
        raise ValueError(f"ratings must have {n_items} columns, one for each item of the fit")
    entries = entries_of(X)
    rows, columns, values = entries.row, entries.col, entries.data.astype(np.float64)
    known = ~np.isnan(values)
    if not strict and not known.all():
        raise ValueError("ratings must have no missing values (NaN): store what is rated only")
    rows, columns, values = rows[known], columns[known], values[known]
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    last = np.ones(len(rows), bool)
    last[:-1] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    if not strict and not last.all():
        raise ValueError("a user must rate an item once at most: keep one rating of each, for instance the last")
    rows, columns, values = rows[last], columns[last], values[last]
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=X.shape[0]))])
    return Ratings(starts.astype(np.int64), columns.astype(np.int32), values, X.shape[1])


def rating_matrix(table, items, *, users=None):
    """Return the sparse matrix of a table of ratings.

    Parameters
    ----------
    table : data frame or array-like of shape (n_ratings, 3)
        User, item and rating; each pair of user and item once.
    items : int or sequence
        All items: their public number, if they are numbered from 0 on, or their public names. They must not be learned
        from the ratings, which are private.
    users : sequence, default=None
        The users, one row each; None takes those of the table, in order of their names.

    Returns
    -------
    csr_array of shape (n_users, n_items)
        What is stored is rated, a rating of 0, too.

    Raises
    ------
    ValueError
        For a user or an item that is not listed, and a pair of both twice; it names none.

    Examples
    --------
    >>> from dpestim.recommend import rating_matrix
    >>> rating_matrix([("ann", "tea", 5), ("bob", "tea", 2), ("bob", "milk", 4)], ["milk", "tea"]).toarray()
    array([[0., 5.],
           [4., 2.]])
    """
    columns = np.asarray(table, dtype=object) if not hasattr(table, "to_numpy") else table.to_numpy()
    if columns.size == 0:
        columns = columns.reshape(0, 3)
    if columns.ndim != 2 or columns.shape[1] != 3:
        raise ValueError("table must have three columns: user, item, rating")
    numbered = isinstance(items, int | np.integer) and not isinstance(items, bool)
    names = list(range(int(items))) if numbered else list(items)
    if users is None:
        users, error = attempt(lambda: sorted(set(columns[:, 0].tolist())))
        if error:
            raise ValueError("users must have names of one kind, which can be ordered; or list them in users=")
    places = _places(list(users), columns[:, 0], "users"), _places(names, columns[:, 1], "items")
    values, error = attempt(lambda: columns[:, 2].astype(np.float64))
    if error or not np.isfinite(values).all():
        raise ValueError("ratings must be finite numbers")
    matrix = sparse.coo_array((values, places), shape=(len(list(users)), len(names)))
    if len(np.unique(places[0].astype(np.int64) * max(1, len(names)) + places[1])) != len(values):
        raise ValueError("a user must rate an item once at most: keep one rating of each, for instance the last")
    order = np.lexsort(places[::-1])
    starts = np.concatenate([[0], np.cumsum(np.bincount(places[0], minlength=matrix.shape[0]))])
    return sparse.csr_array((values[order], places[1][order], starts), shape=matrix.shape)


def _places(names, found, what):
    table, error = attempt(lambda: {name: place for place, name in enumerate(names)})
    if error or len(table) != len(names):
        raise ValueError(f"{what} must be names that differ")
    places, error = attempt(lambda: [table[name] for name in found.tolist()])
    if error:
        raise ValueError(f"{what} of the table must be listed in {what}=: add those that are missing, or leave their "
                         "ratings out")
    return np.array(places, np.int32)
