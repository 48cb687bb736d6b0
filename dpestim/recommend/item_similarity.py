"""Similar items by noisy products of ratings (`item_similarity.md`)."""

import math
from numbers import Integral

import numpy as np

from dpestim.central.additive.law import COLUMNS
from dpestim.progress import Progress
from dpestim.recommend.base import CUT, RatingMechanism, in_units, norms, own_means, steps_of, summed
from dpestim.recommend.ratings import read_ratings
from dpestim.recommend.similar import Best, FromSimilarItems

#: Items of a block.
_BLOCK = 1_000
#: Products within so many standard deviations of the noise are noise; and similarities are added to that much.
_HIDDEN, _DAMPED = 2.5, 0.1

class DPItemSimilarity(FromSimilarItems, RatingMechanism):
    """Learn which items are rated alike, and recommend from it, with noise for all ratings of a user.

    Products of ratings of each pair of items are summed over users, and get noise. Items are similar whose sum stands
    out. A recommendation is made of that and of the ratings of the user who asks, on the user's device or for the user.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for *all ratings of a user*: for tables of
    ratings of which one has one user more, or of equal size that differ in all ratings of a user. With
    ``neighbours="rating"`` it is for *one rating* of a user, which exists or not, and k ratings of a user are protected
    by k epsilon. What is fitted may be
    published: means of items, and similar items. Items and their number are public. `predict` and `recommend` are
    functions of what is published and of the rows they are given: what they return for a user is for that user.

    **Utility.** A user of n ratings adds weights of about sqrt(2) / n, so that the noise of a similarity does not grow
    with n: many users of a few dozen ratings help most. Simulated ratings of 20,000 users, 500 items and 36 ratings a
    user, "add_remove" and a delta of 1e-6: root mean squared error .88 at epsilon .5, .82 at 1, .76 at 3, where means
    of items and users without noise have .87, and those of items .93. With 5,000 users, 100 items and 14 ratings: .91,
    .85, .80; without noise .86 and .91. For one rating: .78, .75, .72, and .84, .81, .76.

    **Complexity.** O(sum of squared numbers of ratings of users) time, O(ratings + items * n_neighbors) memory; noise
    for each pair of items.

    {parameters}
    References
    ----------
    McSherry, Mironov (2009), "Differentially private recommender systems: building privacy into the Netflix Prize
    contenders", KDD, here with weights for whole users, sensitivities that are proven, and integer noise. The proof:
    ``item_similarity.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.recommend import DPItemSimilarity, rating_matrix
    >>> rng = np.random.default_rng(0)
    >>> table = [(u, item, 5 if (u + item) % 2 else 2) for u in range(4000) for item in rng.permutation(20)[:8]]
    >>> model = DPItemSimilarity(1.0, delta=1e-6, bounds=(1, 5), neighbours="add_remove", random_state=0)
    >>> model = model.fit(rating_matrix(table, 20))
    >>> mine = rating_matrix([("me", 0, 5), ("me", 1, 1)], 20)
    >>> (model.recommend(mine, 4) % 2).tolist()
    [[0, 0, 0, 0]]
    """

    _for_one_rating = True
    _texts = {"neighbours": """\
        neighbours : {"substitution", "add_remove", "rating"}, default=None
            The neighbouring relation: all ratings of one user are replaced, or one user is added or removed with all
            ratings, or one rating is added or removed. None: the relation of the block (`dpestim.config_context`), else
            of the ledger, else "substitution".
        """}
    _not_in_parts = ("needs the ratings of a user at once, and means of all items before products: fit it to the whole "
                     "table on one machine")
    _more_parameters = """
    {parameters of ratings}
    n_neighbors : int, default=20
        Similar items that are kept of each item.
    {parameters of means}
    """
    _more_attributes = """
    item_means_ : ndarray of shape (n_items,)
        Means of items, damped, in units of ratings.
    neighbors_ : ndarray of shape (n_items, n_neighbors)
        Items whose ratings differ from the means together with those of an item, the most similar first.
    similarities_ : ndarray of shape (n_items, n_neighbors)
        Their similarities, from -1 to 1; 0 where noise hides them.
    """

    def __init__(self, epsilon=1.0, *, delta=None, bounds=None, n_neighbors=20, means_fraction=0.2, damping=5.0,
                 neighbours=None, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.n_neighbors = n_neighbors
        self.means_fraction = means_fraction
        self.damping = damping
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state

    # ---------------------------------------------------------------- inside

    def _checked(self):
        if isinstance(self.n_neighbors, bool) or not isinstance(self.n_neighbors, Integral) or self.n_neighbors < 1:
            raise ValueError("n_neighbors must be an int of at least 1")
        return super()._checked()

    def _check_items(self, n_items):
        if self._of_ratings():
            self._weights(n_items)

    def _weights(self, n_items):
        return falling_weights(norms(float(self.means_fraction))[1] // CUT**2, n_items)

    def _learn(self, ratings, law, bounds, source):
        x = steps_of(ratings.values, bounds)
        means = self._item_means(ratings, x, law, source)
        if self._of_ratings():
            # a residual is of one rating alone; weights fall with the number of ratings, but slowly
            weight = np.array(self._weights(ratings.n_items))[ratings.per_user]
            r = np.clip(x - means[ratings.items], -CUT, CUT)
        else:
            # weights sqrt(2 / (n (n + 1))): the norm of all products r_i r_j, i <= j, is that of one rating
            most = norms(float(self.means_fraction))[1] // CUT**2
            n = [1, *range(1, int(ratings.per_user.max(initial=1)) + 1)]
            weight = np.array([math.isqrt(2 * most * most // (k * (k + 1))) for k in n])[ratings.per_user]
            r = x - means[ratings.items]
            own = np.rint(own_means(ratings, r)).astype(np.int64)
            r = np.clip(r - np.repeat(own, ratings.per_user), -CUT, CUT)
        each = np.repeat(weight, ratings.per_user)
        squares = law.add(summed(ratings, each * r * r), source, 2 * COLUMNS)
        spread = np.sqrt(np.maximum(squares, 0) + 4 * law.sigma)
        left, right = ratings.matrix(each * r).T.tocsr(), ratings.matrix(r).tocsc()
        best, column = Best(ratings.n_items, self.n_neighbors), 3 * COLUMNS
        blocks = [slice(a, min(a + _BLOCK, ratings.n_items)) for a in range(0, ratings.n_items, _BLOCK)]
        progress = Progress(self, len(blocks) * (len(blocks) + 1) // 2, "block of items")
        for k, rows in enumerate(blocks):
            for columns in blocks[k:]:
                block = (left[rows] @ right[:, columns]).toarray()
                if rows == columns:  # (above the diagonal: each pair has one noise)
                    above = np.triu_indices(len(block), 1)
                    noisy = law.add(block[above], source, column)
                    block[:] = 0
                    block[above] = noisy
                    block += block.T
                else:
                    block = law.add(block, source, column)
                column += COLUMNS
                shown = np.sign(block) * np.maximum(np.abs(block) - _HIDDEN * law.sigma, 0)
                shown = np.clip(shown / np.outer(spread[rows], spread[columns]), -1, 1)
                best.see(rows, columns, shown)
                if rows != columns:
                    best.see(columns, rows, shown.T)
                progress.done(column // COLUMNS - 3)
        items, similarities = best.sorted()
        return {"item_means_": in_units(means, bounds), "neighbors_": items, "similarities_": similarities,
                "_means": means}

    def _seen(self, X):
        """Return (ratings, own means, residuals, what is rated) of users who are to be told something."""
        ratings = read_ratings(X, n_items=len(self._means), strict=self._is_strict())
        r = steps_of(ratings.values, self._bounds) - self._means[ratings.items]
        own = own_means(ratings, r)
        r = r - np.repeat(own, ratings.per_user)
        return ratings, own, ratings.matrix(r), ratings.matrix(np.ones(len(r)))

    def _all_of(self, users, own, apart, held):
        alike = self._alike.T
        above, below = (apart[users] @ alike).toarray(), (held[users] @ abs(alike)).toarray()
        return self._in_units(self._means + own[users, None] + above / (below + _DAMPED))

    def _some_of(self, users, items, own, apart, held):
        alike = self._alike[items]
        above = np.asarray(apart[users].multiply(alike).sum(axis=1)).ravel()
        below = np.asarray(held[users].multiply(abs(alike)).sum(axis=1)).ravel()
        return self._in_units(self._means[items] + own[users] + above / (below + _DAMPED))

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0, "delta": 1e-3, "bounds": (1.0, 5.0), "n_neighbors": 2,
                 "neighbours": "add_remove"},
                # (where a few users show what is similar)
                {"epsilon": 70.0, "delta": 0.5, "bounds": (1.0, 5.0), "neighbours": "rating"},
                {"epsilon": 70.0, "delta": 0.5, "bounds": (1.0, 5.0), "neighbours": "add_remove"},
                {"epsilon": 4.0, "delta": 1e-6, "bounds": (0.0, 10.0), "damping": 0.0,
                 "means_fraction": 0.5}]


def falling_weights(most, n_items):
    """Return integer weights of users with 0, 1, ... n_items ratings: one rating moves products by `most` C^2 in norm.

    The largest w that a user of k + 1 ratings can have after v of one with k is a root of
    (v - w)^2 k (k + 1) / 2 + w^2 (k + 1) = most^2.
    """
    weights = [most, most]
    for k in range(1, n_items):
        v, pairs = weights[-1], k * (k + 1) // 2
        a, b, c = pairs + k + 1, pairs * v, pairs * v * v - most * most
        w = (b + math.isqrt(max(0, b * b - a * c))) // a
        if (v - w) ** 2 * pairs + w * w * (k + 1) > most * most:  # (no integer is close enough to the root)
            raise ValueError('ratings have too many columns for neighbours="rating": lower means_fraction, or '
                             "leave rare items out by a public list")
        weights.append(w)
    return weights
