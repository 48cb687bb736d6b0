"""What all that learns from ratings with noise shares: whom it protects, the law, integers of ratings, and means."""

import math
from fractions import Fraction

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from dpestim.central.additive.discrete_gaussian import DiscreteGaussianLaw
from dpestim.central.additive.law import COLUMNS
from dpestim.central.base import CentralMechanism, checked_bounds
from dpestim.central.stability.rows import checked_share
from dpestim.privacy import Neighbours
from dpestim.privacy.config import relation_of_block, relation_of_process
from dpestim.recommend.ratings import read_ratings
from dpestim.rng import WordSource, check_random_state

#: Ratings are integers from -STEPS to STEPS; residuals are cut at a quarter of that.
STEPS, CUT = 64, 16
#: The L2 norm by which one user, or one rating, moves all integers together, at most.
NORM = 1 << 32
#: A user's own mean counts so many ratings of 0 more.
_OWN = 2.0


class RatingMechanism(CentralMechanism):
    """Base of what learns from ratings by one release; a sub-class has `_learn`, `_seen`, `_all_of` and `_some_of`."""

    _checked_as, _template = "ratings", "neighbours"
    #: Whether `neighbours="rating"` is offered.
    _for_one_rating = False
    _texts = {
        "parameters of ratings": """\
            delta : float
                The delta of (epsilon, delta)-differential privacy, above 0 and below 1; it must be declared.
            bounds : (low, high)
                Public range of ratings; others are clipped.
            """,
        "parameters of means": """\
            means_fraction : float, default=0.2
                The part of the concentrated budget, above 0 and below 1, that means of items take; the rest of the fit
                takes what is left.
            damping : float, default=5.0
                Means of items count ratings of this weight more, of the mean of all; 0 or more. Noise is counted
                besides.
            """,
    }

    def fit(self, X, y=None):
        """Learn from ratings: one release, which is charged before noise is drawn; no rating is kept.

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
        self._check_items(ratings.n_items)
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
        ratings, *seen = self._seen(X)
        if pairs is None:
            blocks = [self._all_of(slice(a, a + 1_000), *seen) for a in range(0, ratings.n_users, 1_000)]
            return np.concatenate([np.empty((0, ratings.n_items)), *blocks])
        users, items = (np.asarray(places) for places in pairs)
        whole = users.dtype.kind in "iu" and items.dtype.kind in "iu"
        if users.ndim != 1 or users.shape != items.shape or not whole:
            raise ValueError("pairs must be two arrays of integers of one length: users and items")
        for places, n in ((users, ratings.n_users), (items, ratings.n_items)):
            if len(places) and not 0 <= places.min() <= places.max() < n:
                raise ValueError("pairs must be rows and columns of X: count them from 0 on")
        return self._some_of(users, items, *seen)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # (columns are items of one kind, rated or not: no table)
        tags.input_tags.sparse = True
        return tags

    # ---------------------------------------------------------------- inside

    def _relation(self):
        """Return whom a release protects: one rating, if `neighbours` says so, or the ledger where no block does."""
        name = self.neighbours if self._for_one_rating else "another"
        if name is None and (relation_of_block() or self._bound_relation or relation_of_process()) == "ledger":
            name = getattr(self._find_ledger(), "neighbours", None)
        if isinstance(name, str) and name == Neighbours.RATING.value:
            return Neighbours.RATING
        return super()._relation()

    def _of_ratings(self):
        return self._relation() is Neighbours.RATING

    def _law(self):
        epsilon, delta, _ = self._budget()
        twice = 2 if self._relation() is Neighbours.SUBSTITUTION else 1
        return DiscreteGaussianLaw(epsilon, delta, Fraction(twice * NORM), 0, 2)

    def _curve(self):
        return self._law().curve

    def _notes(self):
        if self._of_ratings():
            return ("What is protected is one rating of a user, and that it exists. A rating that changes costs twice, "
                    "and k ratings of a user cost k times as much.",)
        return ("What is protected are all ratings of a user.",)

    def _checked(self):
        """Return (law, bounds), or raise ValueError for a parameter that is wrong."""
        bounds = checked_bounds(self.bounds)
        if bounds is None:
            raise ValueError("bounds must be declared: the public range of ratings, for instance (1, 5)")
        if isinstance(self.damping, bool) or not isinstance(self.damping, int | float) or not 0 <= self.damping < 1e9:
            raise ValueError("damping must be a number of at least 0 and below 1e9")
        checked_share(self.means_fraction, "means_fraction")
        check_random_state(self.random_state)
        return self._law(), bounds

    def _check_items(self, n_items):
        """Raise ValueError for a number of items, which is public, that is too large."""

    def _item_means(self, ratings, x, law, source):
        """Return the damped noisy means of items, in steps."""
        return self._means_and_weights(ratings, x, law, source)[0]

    def _means_and_weights(self, ratings, x, law, source):
        """Return (means of items, the noisy sum of weights of ratings of each, that of a user with one being 1)."""
        first = norms(float(self.means_fraction))[0]
        # counts (times STEPS) and sums of a user of n ratings, each of weight 1 / sqrt(n): of norm sqrt(2) together;
        # where one rating differs, each has the weight of a user with one
        unit = first // (2 * STEPS)
        n = [1, *range(1, int(ratings.per_user.max(initial=1)) + 1)]
        below = [1] * len(n) if self._of_ratings() else n
        weight = np.array([math.isqrt(2 * unit * unit // k) for k in below])[ratings.per_user]
        each, unit = np.repeat(weight, ratings.per_user), math.sqrt(2) * unit
        held = law.add(summed(ratings, each * STEPS), source) / (STEPS * unit)
        total = law.add(summed(ratings, each * x), source, COLUMNS) / unit
        off = law.sigma / (STEPS * unit)
        level = total.sum() / max(held.sum(), off * math.sqrt(len(held)))
        damping = self.damping + off + 2 * off * off / max(float(held.mean()), 1.0)
        means = (total + damping * level) / np.maximum(held + damping, max(damping, 1e-9))
        return np.clip(np.rint(means), -STEPS, STEPS).astype(np.int64), held

    def _in_units(self, steps):
        return np.clip(in_units(steps, self._bounds), *self._bounds)

    def _test_data(self, n_rows, seed=0):
        """Return ratings of five items by so many users."""
        rng = np.random.default_rng(seed)
        rated = np.where(rng.random((n_rows, 5)) < 0.5, rng.integers(1, 6, (n_rows, 5)), 0)
        return sparse.csr_array(rated.astype(float)), None


def norms(share):
    """Return the norms of what a user adds to means and to the rest: integers, whose squares have at most NORM^2."""
    first = math.isqrt(int(Fraction(share) * NORM**2))
    return first, math.isqrt(NORM**2 - first**2)


def steps_of(values, bounds):
    """Return ratings as integers from -STEPS to STEPS."""
    low, high = bounds
    with np.errstate(all="ignore"):
        steps = np.rint((np.clip(values, low, high) - (low + high) / 2) / ((high - low) / 2) * STEPS)
    # (where bounds are next to each other the middle is rounded, and 0 / 0 is possible: the range is that of the proof)
    return np.fmin(np.fmax(steps, -STEPS), STEPS).astype(np.int64)


def in_units(steps, bounds):
    """Return steps in units of ratings."""
    low, high = bounds
    return (low + high) / 2 + np.asarray(steps, float) / STEPS * (high - low) / 2


def own_means(ratings, r):
    """Return damped means of users of integers r of their ratings."""
    sums = np.concatenate([[0], np.cumsum(r)])
    return np.diff(sums[ratings.starts]) / (ratings.per_user + _OWN)


def summed(ratings, values):
    """Return the sums of integers of each item, exactly."""
    sums = np.zeros(ratings.n_items, np.int64)
    np.add.at(sums, ratings.items, values)
    return sums
