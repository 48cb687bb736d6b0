"""What is kept of similarities of items: the most similar ones of each, and recommendations from these."""

from numbers import Integral

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

#: Users of a block.
_BLOCK = 1_000


class FromSimilarItems:
    """Mixin, which stands left of an estimator with `neighbors_` and `similarities_`: `recommend`.

    A sub-class has `_seen(X)`, which returns (ratings, ..., what is rated), and `_all_of(users, ...)`, which returns
    scores of all items for some of these users.
    """

    def recommend(self, X, n=10):
        """Return the items that suit users best, of those that are not in their rows.

        Parameters
        ----------
        X : sparse matrix of shape (n_users, n_items)
            What the users have rated, or have.
        n : int, default=10
            How many items.

        Returns
        -------
        ndarray of shape (n_users, n)
            Items, the best first; -1 where a user's row has all others.
        """
        check_is_fitted(self)
        ratings, *seen = self._seen(X)
        if isinstance(n, bool) or not isinstance(n, Integral) or not 1 <= n <= ratings.n_items:
            raise ValueError("n must be an int from 1 to the number of items")
        found = [np.empty((0, n), np.int64)]
        for a in range(0, ratings.n_users, _BLOCK):
            users = slice(a, a + _BLOCK)
            scores = self._all_of(users, *seen)
            scores[seen[-1][users].nonzero()] = -np.inf
            best = np.argsort(-scores, axis=1, kind="stable")[:, :n]
            found.append(np.where(np.isinf(np.take_along_axis(scores, best, axis=1)), -1, best))
        return np.concatenate(found)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "neighbors_")

    @property
    def _alike(self):
        """Similarities of items (rows) to those that are kept, a sparse matrix."""
        items = self.neighbors_
        n = len(items)
        # (a copy: SciPy sorts the places of a row where they are)
        return sparse.csr_array((self.similarities_.ravel(), items.ravel(), np.arange(n + 1) * items.shape[1]),
                                shape=(n, n), copy=True)


class Best:
    """The items that are most similar to each, as blocks of similarities come."""

    def __init__(self, n_items, k):
        k = min(k, n_items - 1)
        self.items, self.values = np.zeros((n_items, k), np.int32), np.zeros((n_items, k))

    def see(self, rows, columns, block):
        """Take the similarities of some items to others."""
        numbers = np.arange(columns.start, columns.stop, dtype=np.int32)
        values = np.concatenate([self.values[rows], block], axis=1)
        items = np.concatenate([self.items[rows], np.broadcast_to(numbers, block.shape)], axis=1)
        k = self.items.shape[1]
        best = np.argpartition(-np.abs(values), k - 1, axis=1)[:, :k]
        self.items[rows], self.values[rows] = (np.take_along_axis(a, best, axis=1) for a in (items, values))

    def sorted(self):
        """Return (items, similarities), the most similar first."""
        order = np.argsort(-self.values, axis=1, kind="stable")
        return np.take_along_axis(self.items, order, axis=1), np.take_along_axis(self.values, order, axis=1)
