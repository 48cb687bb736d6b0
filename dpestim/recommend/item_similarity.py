"""Similar items by noisy products of ratings (`item_similarity.md`)."""

import math
from fractions import Fraction
from numbers import Integral

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from dpestim.central.additive.discrete_gaussian import DiscreteGaussianLaw
from dpestim.central.additive.law import COLUMNS
from dpestim.central.base import CentralMechanism, checked_bounds
from dpestim.central.stability.rows import checked_share
from dpestim.privacy import Neighbours
from dpestim.recommend.ratings import read_ratings
from dpestim.recommend.similar import Best, FromSimilarItems
from dpestim.rng import WordSource, check_random_state

#: Ratings are integers from -STEPS to STEPS; residuals are cut at a quarter of that.
STEPS, CUT = 64, 16
#: The L2 norm by which one user moves all integers together, at most.
NORM = 1 << 32
#: Items, or users, of a block.
_BLOCK = 1_000
#: Products within so many standard deviations of the noise are noise; and similarities are added to that much.
_HIDDEN, _DAMPED = 2.5, 0.1
#: A user's own mean counts so many ratings of 0 more.
_OWN = 2.0


class DPItemSimilarity(FromSimilarItems, CentralMechanism):
    """Learn which items are rated alike, and recommend from it, with noise for all ratings of a user.

    Products of ratings of each pair of items are summed over users, and get noise. Items are similar whose sum stands
    out. A recommendation is made of that and of the ratings of the user who asks, on the user's device or for the user.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for *all ratings of a user*: for tables of
    ratings of which one has one user more, or of equal size that differ in all ratings of a user. What is fitted may be
    published: means of items, and similar items. Items and their number are public. `predict` and `recommend` are
    functions of what is published and of the rows they are given: what they return for a user is for that user.

    **Utility.** A user of n ratings adds weights of about sqrt(2) / n, so that the noise of a similarity does not grow
    with n: many users of a few dozen ratings help most. Simulated ratings of 20,000 users, 500 items and 36 ratings a
    user, "add_remove" and a delta of 1e-6: root mean squared error .88 at epsilon .5, .82 at 1, .76 at 3, where means
    of items and users without noise have .87, and those of items .93. With 5,000 users, 100 items and 14 ratings: .91,
    .85, .80; without noise .86 and .91.

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

    _checked_as, _template = "ratings", "neighbours"
    _not_in_parts = ("needs the ratings of a user at once, and means of all items before products: fit it to the whole "
                     "table on one machine")
    _more_parameters = """
    delta : float
        The delta of (epsilon, delta)-differential privacy, above 0 and below 1; it must be declared.
    bounds : (low, high)
        Public range of ratings; others are clipped.
    n_neighbors : int, default=20
        Similar items that are kept of each item.
    means_fraction : float, default=0.2
        The part of the concentrated budget, above 0 and below 1, that means of items take; products take the rest.
    damping : float, default=5.0
        Means of items count ratings of this weight more, of the mean of all; 0 or more. Noise is counted besides.
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

    def fit(self, X, y=None):
        """Learn similar items: one release, which is charged before noise is drawn; no rating is kept.

        Parameters
        ----------
        X : sparse matrix of shape (n_users, n_items)
            What is stored is rated, a rating of 0, too. `rating_matrix` makes one of a table of ratings.
        y : ignored

        Returns
        -------
        self
        """
        self._bind_here()
        law, bounds = self._checked()
        ratings = read_ratings(X, strict=self._is_strict())
        if ratings.n_items < 2:
            raise ValueError("ratings must have at least 2 columns, one for each item")
        promised, source = self._guarantee(), WordSource(self.random_state)
        self._pay()
        return self._become({**self._learn(ratings, law, bounds, source), "_bounds": bounds, "_kept_promise": promised})

    def predict(self, X, pairs=None):
        """Return what users would rate: for each user a function of what is published and of the user's own row.

        Parameters
        ----------
        X : sparse matrix of shape (n_users, n_items)
            What the users have rated.
        pairs : (users, items), default=None
            Two integer arrays of one length, rows and columns of X; None: all items of all users.

        Returns
        -------
        ndarray of shape (n_pairs,), or of shape (n_users, n_items) without `pairs`
            In units of ratings, within the bounds.
        """
        check_is_fitted(self)
        ratings, own, apart, held = self._seen(X)
        if pairs is None:
            blocks = [self._all_of(slice(a, a + _BLOCK), own, apart, held) for a in range(0, ratings.n_users, _BLOCK)]
            return np.concatenate([np.empty((0, ratings.n_items)), *blocks])
        users, items = (np.asarray(places) for places in pairs)
        whole = users.dtype.kind in "iu" and items.dtype.kind in "iu"
        if users.ndim != 1 or users.shape != items.shape or not whole:
            raise ValueError("pairs must be two arrays of integers of one length: users and items")
        for places, n in ((users, ratings.n_users), (items, ratings.n_items)):
            if len(places) and not 0 <= places.min() <= places.max() < n:
                raise ValueError("pairs must be rows and columns of X: count them from 0 on")
        alike = self._alike[items]
        above = np.asarray(apart[users].multiply(alike).sum(axis=1)).ravel()
        below = np.asarray(held[users].multiply(abs(alike)).sum(axis=1)).ravel()
        return self._in_units(self._means[items] + own[users] + above / (below + _DAMPED))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # (columns are items of one kind, rated or not: no table)
        tags.input_tags.sparse = True
        return tags

    # ---------------------------------------------------------------- inside

    def _law(self):
        epsilon, delta, _ = self._budget()
        twice = 2 if self._relation() is Neighbours.SUBSTITUTION else 1
        return DiscreteGaussianLaw(epsilon, delta, Fraction(twice * NORM), 0, 2)

    def _curve(self):
        return self._law().curve

    def _notes(self):
        return ("What is protected are all ratings of a user.",)

    def _checked(self):
        """Return (law, bounds), or raise ValueError for a parameter that is wrong."""
        bounds = checked_bounds(self.bounds)
        if bounds is None:
            raise ValueError("bounds must be declared: the public range of ratings, for instance (1, 5)")
        if isinstance(self.n_neighbors, bool) or not isinstance(self.n_neighbors, Integral) or self.n_neighbors < 1:
            raise ValueError("n_neighbors must be an int of at least 1")
        if isinstance(self.damping, bool) or not isinstance(self.damping, int | float) or not 0 <= self.damping < 1e9:
            raise ValueError("damping must be a number of at least 0 and below 1e9")
        checked_share(self.means_fraction, "means_fraction")
        check_random_state(self.random_state)
        return self._law(), bounds

    def _learn(self, ratings, law, bounds, source):
        x = _steps(ratings.values, bounds)
        means = self._item_means(ratings, x, law, source)
        # weights sqrt(2 / (n (n + 1))): the norm of all products r_i r_j, i <= j, is that of one rating
        n = [1, *range(1, int(ratings.per_user.max(initial=1)) + 1)]
        most = _norms(float(self.means_fraction))[1] // CUT**2
        weight = np.array([math.isqrt(2 * most * most // (k * (k + 1))) for k in n])[ratings.per_user]
        each = np.repeat(weight, ratings.per_user)
        r, _ = _residuals(ratings, x, means)
        squares = law.add(_summed(ratings, each * r * r), source, 2 * COLUMNS)
        spread = np.sqrt(np.maximum(squares, 0) + 4 * law.sigma)
        left, right = ratings.matrix(each * r).T.tocsr(), ratings.matrix(r).tocsc()
        best, column = Best(ratings.n_items, self.n_neighbors), 3 * COLUMNS
        blocks = [slice(a, min(a + _BLOCK, ratings.n_items)) for a in range(0, ratings.n_items, _BLOCK)]
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
        items, similarities = best.sorted()
        return {"item_means_": self._of(means, bounds), "neighbors_": items, "similarities_": similarities,
                "_means": means}

    def _item_means(self, ratings, x, law, source):
        """Return the damped noisy means of items, in steps."""
        first = _norms(float(self.means_fraction))[0]
        # counts (times STEPS) and sums of a user of n ratings, each of weight 1 / sqrt(n): of norm sqrt(2) together
        unit = first // (2 * STEPS)
        n = [1, *range(1, int(ratings.per_user.max(initial=1)) + 1)]
        weight = np.array([math.isqrt(2 * unit * unit // k) for k in n])[ratings.per_user]
        each, unit = np.repeat(weight, ratings.per_user), math.sqrt(2) * unit
        held = law.add(_summed(ratings, each * STEPS), source) / (STEPS * unit)
        total = law.add(_summed(ratings, each * x), source, COLUMNS) / unit
        off = law.sigma / (STEPS * unit)
        level = total.sum() / max(held.sum(), off * math.sqrt(len(held)))
        damping = self.damping + off + 2 * off * off / max(float(held.mean()), 1.0)
        means = (total + damping * level) / np.maximum(held + damping, max(damping, 1e-9))
        return np.clip(np.rint(means), -STEPS, STEPS).astype(np.int64)

    def _seen(self, X):
        """Return (ratings, own means, residuals, what is rated) of users who are to be told something."""
        ratings = read_ratings(X, n_items=len(self._means), strict=self._is_strict())
        r, own = _residuals(ratings, _steps(ratings.values, self._bounds), self._means, exact=True)
        return ratings, own, ratings.matrix(r), ratings.matrix(np.ones(len(r)))

    def _all_of(self, users, own, apart, held):
        alike = self._alike.T
        above, below = (apart[users] @ alike).toarray(), (held[users] @ abs(alike)).toarray()
        return self._in_units(self._means + own[users, None] + above / (below + _DAMPED))

    def _in_units(self, steps):
        return np.clip(self._of(steps, self._bounds), *self._bounds)

    @staticmethod
    def _of(steps, bounds):
        low, high = bounds
        return (low + high) / 2 + np.asarray(steps, float) / STEPS * (high - low) / 2

    def _test_data(self, n_rows, seed=0):
        """Return ratings of five items by so many users."""
        rng = np.random.default_rng(seed)
        rated = np.where(rng.random((n_rows, 5)) < 0.5, rng.integers(1, 6, (n_rows, 5)), 0)
        return sparse.csr_array(rated.astype(float)), None

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0, "delta": 1e-3, "bounds": (1.0, 5.0), "n_neighbors": 2,
                 "neighbours": "add_remove"},
                # (where a few users show what is similar)
                {"epsilon": 70.0, "delta": 0.5, "bounds": (1.0, 5.0), "neighbours": "add_remove"},
                {"epsilon": 4.0, "delta": 1e-6, "bounds": (0.0, 10.0), "damping": 0.0,
                 "means_fraction": 0.5}]


def _norms(share):
    """Return the norms of what a user adds to means and to products: integers, whose squares have at most NORM^2."""
    first = math.isqrt(int(Fraction(share) * NORM**2))
    return first, math.isqrt(NORM**2 - first**2)


def _steps(values, bounds):
    """Return ratings as integers from -STEPS to STEPS."""
    low, high = bounds
    with np.errstate(all="ignore"):
        steps = np.rint((np.clip(values, low, high) - (low + high) / 2) / ((high - low) / 2) * STEPS)
    # (where bounds are next to each other the middle is rounded, and 0 / 0 is possible: the range is that of the proof)
    return np.fmin(np.fmax(steps, -STEPS), STEPS).astype(np.int64)


def _residuals(ratings, x, means, exact=False):
    """Return (what is left of ratings without means of items and of the user, the latter); integers up to CUT."""
    r = x - means[ratings.items]
    sums = np.concatenate([[0], np.cumsum(r)])
    own = np.diff(sums[ratings.starts]) / (ratings.per_user + _OWN)
    if exact:
        return r - np.repeat(own, ratings.per_user), own
    return np.clip(r - np.repeat(np.rint(own).astype(np.int64), ratings.per_user), -CUT, CUT), own


def _summed(ratings, values):
    """Return the sums of integers of each item, exactly."""
    sums = np.zeros(ratings.n_items, np.int64)
    np.add.at(sums, ratings.items, values)
    return sums
