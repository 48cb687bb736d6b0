"""What learns from ratings of users: all that a fit hears, with and without a user of every kind."""

import copy
import math

import numpy as np
from scipy import sparse

from dpestim.privacy import Neighbours
from dpestim.testing.releases import RELEASE_CHECKS, Releases
from dpestim.testing.reported import hear, layout, require_kept
from dpestim.testing.tools import require, same_state

#: Users that neighbours share.
SHARED = (0, 1, 7)


class Rated(Releases):
    """An estimator of ratings, and how it is used."""

    def __init__(self, estimator):
        super().__init__(estimator)
        self.relation = estimator._relation().value
        counts = (0, 1.5, True, "2", None)
        self.wrong = {"bounds": (None, 5, (5, 1), ("a", "b"), (0, math.inf)), "n_neighbors": counts,
                      "n_components": (*counts, 33), "n_iter": (*counts, 51), "damping": (-1, math.nan, "1", None),
                      "means_fraction": (0, 1, "a", None), "delta": (None, 0, 1, -1e-9, math.nan, "0"),
                      "neighbours": ("edge", 1)}
        self.wrong = {name: values for name, values in self.wrong.items() if name in estimator.get_params()}

    def checks(self):
        """Return the checks of what takes ratings."""
        return *CHECKS, *RELEASE_CHECKS

    @property
    def data(self):
        """Ratings."""
        return self.estimator._test_data(30)[0]

    def release(self, est, data):
        """Return what a copy of it learns."""
        twin = copy.copy(est).fit(data)
        return {name: value for name, value in vars(twin).items() if name.endswith("_") and not name.startswith("_")}

    def use(self, est):
        """Learn once."""
        est.fit(self.data)

    def charged(self):
        """Return the ways to release: to fit."""
        return (lambda est: est.fit(self.data),)

    def free(self, est):
        """Recommend."""
        est.recommend(self.data, 2)
        est.predict(self.data)

    def bad(self):
        """Return what are no ratings."""
        ratings = self.data
        yield ratings.toarray()
        yield ratings[:, :1]
        missing = ratings.copy()
        missing.data[0] = np.nan
        yield missing
        yield sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(3, 4))

    def odd(self):
        """Return ratings that differ in those of a user."""
        yield self.data
        for value in (np.nan, -np.inf, 1e308, 0.0):
            ratings = self.data.copy()
            ratings.data[:2] = value
            yield ratings

    def shown(self, released):
        """Return names, types and shapes of what is learned."""
        return {name: (value.dtype, value.shape) for name, value in released.items()}


def check_ratings_keep_epsilon(rated):
    """Whatever a user rates, or one rating is: a fit's answers keep epsilon and delta, what is learned is of these."""
    est = rated.estimator
    relation = est._relation()
    for n in SHARED:
        shared = est._test_data(max(n, 1))[0][:n].tocsr()
        users = _users(est)
        told = []
        heard = [hear(rated.fresh(), sparse.vstack([shared, _user(user)], format="csr"), None, told) for user in users]
        if relation is Neighbours.RATING:
            pairs = [(k, users.index(other)) for k, user in enumerate(users) for other in _with_one_less(user)
                     if other in users]
        elif relation is Neighbours.SUBSTITUTION:
            pairs = [(k, other) for k in range(len(users)) for other in (0, len(users) - 1, 5)]
        else:
            heard.append(hear(rated.fresh(), shared, None, told))
            pairs = [(k, len(users)) for k in range(len(heard))]
        for _, learned in heard:
            require(same_state(learned, heard[0][1]), "what is learned must be a function of what was drawn")
            require(layout(learned) == layout(heard[0][1]), "what a fit leaves behind must be laid out alike")
        for k, other in pairs:
            asked, before = heard[k][0], heard[other][0]
            require_kept(est, asked, before)
            moved = sum(int(a - b) ** 2 for (_, one), (_, two) in zip(asked, before)
                        for a, b in zip(one.flat, two.flat))
            require(moved <= asked[0][0].sensitivity**2, "neighbours must not move the sums further than declared")


def _users(est):
    """Return rows of ratings (None is not rated): all lengths from both ends, at the bounds, in the middle, beyond."""
    d, (low, high) = est._test_data(1)[0].shape[1], est.bounds
    users = [(None,) * d]
    for k in range(1, d + 1):
        users += [(value,) * k + (None,) * (d - k) for value in (low, high, (low + high) / 2, 1e300)]
        users += [(None,) * (d - k) + tuple((low, high)[i % 2] for i in range(k))]
    if est._relation() is Neighbours.RATING:
        users += [other for user in (users[-1], users[-4]) for other in _with_one_less(user)]
    return list(dict.fromkeys(users))


def _with_one_less(user):
    return [(*user[:j], None, *user[j + 1:]) for j, value in enumerate(user) if value is not None]


def _user(user):
    items = [item for item, value in enumerate(user) if value is not None]
    values = np.array([user[item] for item in items], float)
    return sparse.csr_array((values, items, [0, len(items)]), shape=(1, len(user)))


def check_rows_are_the_users_own(rated):
    """What a user is told depends on the user's own row and on what is published."""
    est = rated.fresh().fit(rated.data)
    before = copy.deepcopy({name: value for name, value in vars(est).items() if name.endswith("_")})
    everybody, alone = rated.data, rated.data[:1]
    d = everybody.shape[1]
    require(np.allclose(est.predict(everybody)[:1], est.predict(alone)), "a prediction must be of one row")
    require(np.array_equal(est.recommend(everybody, d)[:1], est.recommend(alone, d)), "... and a recommendation")
    pairs = np.repeat(0, d), np.arange(d)
    require(np.allclose(est.predict(alone, pairs), est.predict(alone)[0]), "pairs must be those of the whole table")
    rated_items = set(alone.nonzero()[1].tolist())
    shown = est.recommend(alone, d)[0]
    require(set(shown[shown >= 0].tolist()) == set(range(d)) - rated_items, "what was rated must not be recommended")
    require(same_state({name: getattr(est, name) for name in before}, before), "what was learned must not change")


CHECKS = (check_ratings_keep_epsilon, check_rows_are_the_users_own)
