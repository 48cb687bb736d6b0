"""Factors of items from directions that users randomise, in rounds (`local_factorization.md`)."""

from copy import copy
from dataclasses import replace
from numbers import Integral

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError

from dpestim import parallel
from dpestim.base import PrivateEstimator
from dpestim.central.base import checked_bounds
from dpestim.inputs.safe_errors import attempt
from dpestim.local.estimates.mean import MeanEstimator
from dpestim.local.learning.groups import Groups
from dpestim.local.numbers.duchi import DuchiTransformer
from dpestim.local.numbers.privunit import PrivUnitTransformer
from dpestim.privacy import PrivacyGuarantee
from dpestim.privacy.exact import canonical_epsilon
from dpestim.progress import Progress
from dpestim.recommend.own_factors import FactorRound, blocks_of, directions, of_users, own_factors
from dpestim.recommend.ratings import read_ratings
from dpestim.recommend.similar import FromSimilarItems
from dpestim.results import Part
from dpestim.rng import WordSource, check_random_state

_MECHANISMS = ("privunit", "duchi")
#: Entries of a direction at most, and the most rounds and factors.
_MOST, _ROUNDS, _FACTORS = 1 << 16, 1 << 16, 64
#: How far noise moves each number, the longest step, and the exponent of averages (`local_factorization.md`).
_STRAY, _LONGEST, _TAIL = 0.1, 4.0, 8
#: The length of the first factors, which are drawn from a public seed.
_BEGIN, _SEED = 0.1, 20181
#: Numbers of directions that are held at a time.
_CELLS = 1 << 22
#: Parameters that may change between rounds.
_FREE = ("ledger", "random_state", "n_jobs")


class LDPMatrixFactorization(FromSimilarItems, PrivateEstimator):
    """Learn means and factors of items in rounds, from directions that each user's device randomises.

    The server broadcasts means and factors of items. A device works out the mean and factors of its user from the
    user's own ratings, and how items' numbers would fit these better. It reports that direction with noise. Factors
    of users never leave devices.

    **Privacy.** epsilon-local differential privacy for *all ratings of a user*: which items, how many, and how well;
    no other party must be trusted. A user answers in one round. Items and their number are public. `predict` and
    `recommend` are functions of what is published and of the rows they are given, and run on devices.

    **Utility.** It takes many users. Simulated ratings, 100 items and 11 ratings of a user: root mean squared error .96
    at epsilon 1, .92 at 3 with 200,000 users, where means of items without noise have .95, and those of items and users
    .92. With 500,000 users .88 and .87; without noise .94 and .89. With 20,000 users .97 and .91; without noise .92 and
    .88. On 3,000 users and 1,100 items it is worse than means of items at any epsilon up to 10.

    **Complexity.** O(ratings * n_components^2 + n_users * n_items * n_components) time; a report is two numbers.

    {parameters}
    References
    ----------
    Shin, Kim, Shin, Xiao (2018), "Privacy enhanced matrix factorization for recommendation with local differential
    privacy", TKDE 30, whose reports are those of mechanism="duchi". Here each user answers once with all of epsilon,
    and directions have length 1. The proof: ``local_factorization.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from dpestim.recommend import LDPMatrixFactorization
    >>> rng = np.random.default_rng(0)
    >>> likes = (np.arange(20_000)[:, None] + np.arange(12)) % 2  # half of the users like items of odd numbers
    >>> ratings = csr_array((1 + 4 * likes) * (rng.random(likes.shape) < 0.5))
    >>> model = LDPMatrixFactorization(3.0, bounds=(1, 5), n_items=12, n_components=1, random_state=0).fit(ratings)
    >>> mine = csr_array(([5.0, 5.0, 1.0], ([0, 0, 0], [1, 3, 4])), shape=(1, 12))
    >>> sorted(model.recommend(mine, 4)[0].tolist())
    [5, 7, 9, 11]
    """

    _checked_as, _template, _protects = "rated rounds", "rows", "all ratings of a user"
    _not_in_parts = ("answers in rounds, each with other users: call next_round, privatize where the ratings are, and "
                     "aggregate the reports")
    _more_parameters = """
    bounds : (low, high)
        Public range of ratings; others are clipped.
    n_items : int
        The public number of items; it must be declared. n_items * n_components is at most 65,536.
    n_components : int, default=4
        Factors of an item, from 1 to 64.
    n_rounds : int, default=12
        Rounds of a `fit`, from 2 to 65,536. The first third learns means of items, and the others learn factors.
    mechanism : {"privunit", "duchi"}, default="privunit"
        Which law randomises: `PrivUnitTransformer` the whole direction, which has by far the least noise; or
        `DuchiTransformer` one entry of it (a few, from an epsilon of 4 on), which is drawn: a number and a bit.
    n_jobs : int, default=None
        Threads that randomise; None is one. Reports do not depend on it.
    """
    _more_attributes = """
    item_means_ : ndarray of shape (n_items,)
        Means of items, in units of ratings.
    item_factors_ : ndarray of shape (n_items, n_components)
        Factors of items, for ratings that are scaled to [-1, 1]; 0 before the rounds of factors.
    n_rounds_ : int
        Rounds that were closed by a step.
    """

    #: The round that is open, the `MeanEstimator` of its reports, averages, the promise, and the parameters of round 0.
    _round = _group = _averages = _made = _frozen = None

    def __init__(self, epsilon=1.0, *, bounds=None, n_items=None, n_components=4, n_rounds=12, mechanism="privunit",
                 ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.n_items = n_items
        self.n_components = n_components
        self.n_rounds = n_rounds
        self.mechanism = mechanism
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- the verbs of both sides

    def next_round(self):
        """Close the open round, if there is one with reports, by a step; open the next, and return what to broadcast.

        Returns
        -------
        FactorRound
            For the next group of users. A round that nobody answered is returned again.
        """
        trial = self._resumed()
        if trial._round is None:
            trial._open()
        elif trial._group is not None:
            trial._step()
        self._adopt(trial)
        return self._round

    def privatize(self, X, round_=None):
        """Answer on the users' side: randomise the direction of each user's ratings at a round; one release.

        Parameters
        ----------
        X : sparse matrix of shape (n_users, n_items)
            What is stored is rated, a rating of 0, too. `rating_matrix` makes one of a table of ratings.
        round_ : FactorRound, default=None
            What the server broadcast. None: the round that is open here; where none is, the first.

        Returns
        -------
        ndarray of shape (n_users, width)
            Reports for `aggregate`. A user answers in one round.
        """
        self._bind_here()
        trial = self._resumed()
        ratings, values = trial._read(X)
        if trial._round is None:
            trial._open()
        round_ = trial._checked_round(trial._round if round_ is None else round_)
        source = WordSource(self.random_state)
        self._charge(trial._promised(), ratings.n_users)
        return trial._answers(ratings, values, np.arange(ratings.n_users), round_, source)

    def aggregate(self, reports):
        """Add reports of users, as `privatize` returns them, to the round that is open; returns self.

        Parameters
        ----------
        reports : ndarray of shape (n_users, width)
            That they answer the open round is for the caller to know.

        Returns
        -------
        self
        """
        if self._round is None:
            raise ValueError("no round is open: call next_round first")
        trial = self._resumed()
        group = MeanEstimator(trial._client(trial._round)) if trial._group is None else trial._group
        self._group = group.aggregate(reports)
        self._bind_here()
        self._made = trial._promised(elsewhere=True)
        return self

    def fit(self, X, y=None):
        """Learn from ratings in all rounds: one release of epsilon of each user. Earlier rounds are forgotten.

        Groups of users are drawn independently of ratings; each goes through `next_round`, `privatize` and `aggregate`.

        Parameters
        ----------
        X : sparse matrix of shape (n_users, n_items)
            As for `privatize`.
        y : ignored

        Returns
        -------
        self
        """
        self._bind_here()
        trial = copy(self)
        for name in _STATE:
            vars(trial).pop(name, None)
        ratings, values = trial._read(X)
        trial._open()
        source, trial._made = WordSource(self.random_state), trial._promised()
        self._charge(trial._made, ratings.n_users)
        rounds = Groups(0, int(self.n_rounds), False).of_rows(source, ratings.n_users)
        for members in Progress(self, int(self.n_rounds)).of(rounds):
            if len(members):
                reports = trial._answers(ratings, values, members, trial._round, source)
                trial._group = MeanEstimator(trial._client(trial._round)).aggregate(reports)
                trial._step()
            else:  # (few users: the round is as if all reports were 0)
                trial._round = replace(trial._round, number=trial._round.number + 1)
                trial._turn()
        return self._adopt(trial)

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
        ratings, own, _ = self._seen(X)
        if pairs is None:
            return self._all_of(slice(0, ratings.n_users), own, None)
        users, items = (np.asarray(places) for places in pairs)
        if users.ndim != 1 or users.shape != items.shape or {users.dtype.kind, items.dtype.kind} - {"i", "u"}:
            raise ValueError("pairs must be two arrays of integers of one length: users and items")
        for places, n in ((users, ratings.n_users), (items, ratings.n_items)):
            if len(places) and not 0 <= places.min() <= places.max() < n:
                raise ValueError("pairs must be rows and columns of X: count them from 0 on")
        means, factors = self._averages
        return self._in_units(means[items] + own[users, 0] + np.einsum("ij,ij->i", own[users, 1:], factors[items]))

    @property
    def privacy_(self):
        """What the report of a user promises; known before any data."""
        return self._promised() if self._made is None else self._made

    def __sklearn_is_fitted__(self):
        return hasattr(self, "item_factors_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # (columns are items of one kind, rated or not: no table)
        tags.input_tags.sparse = True
        return tags

    # ---------------------------------------------------------------- inside: devices

    def _check(self):
        """Return the bounds, or raise ValueError for parameters that are wrong."""
        canonical_epsilon(self.epsilon)
        bounds = checked_bounds(self.bounds)
        if bounds is None:
            raise ValueError("bounds must be declared: the public range of ratings, for instance (1, 5)")
        for name, least, most in (("n_components", 1, _FACTORS), ("n_items", 2, _MOST), ("n_rounds", 2, _ROUNDS)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or not least <= value <= most:
                raise ValueError(f"{name} must be an int from {least} to {most}")
        if self.n_items * self.n_components > _MOST:
            raise ValueError(f"n_items * n_components must be at most {_MOST}: take fewer factors")
        if not isinstance(self.mechanism, str) or self.mechanism not in _MECHANISMS:
            raise ValueError('mechanism must be "privunit" or "duchi"')
        check_random_state(self.random_state)
        parallel.check_n_jobs(self.n_jobs)
        return bounds

    def _read(self, X):
        """Return (ratings, their values scaled to [-1, 1]), or raise ValueError."""
        bounds = self._check()
        ratings = read_ratings(X, n_items=int(self.n_items), strict=self._is_strict())
        if not ratings.n_users:
            raise ValueError("X must have at least one row, which are the ratings of a user")
        return ratings, _scaled(ratings.values, bounds)

    def _checked_round(self, round_):
        """Return a round that a device can answer, or raise ValueError."""
        if not isinstance(round_, FactorRound):
            raise ValueError("round_ must be None or a FactorRound, as next_round returns it")
        number, m = round_.number, int(self.n_items)
        if isinstance(number, bool) or not isinstance(number, Integral) or not 0 <= number < Groups.most_rounds:
            raise ValueError("round_.number must be an int of at least 0")
        arrays, error = attempt(lambda: [np.asarray(a, np.float64) for a in (round_.item_means, round_.item_factors)])
        if error or arrays[0].shape != (m,) or arrays[1].shape not in ((m, 0), (m, int(self.n_components))):
            raise ValueError(f"round_ must have means and factors of {m} items, all of them numbers")
        if not all(np.isfinite(a).all() for a in arrays):
            raise ValueError("round_ must have finite numbers: take what next_round returns")
        return FactorRound(int(number), *arrays)

    def _client(self, round_):
        """Return the client whose law randomises directions of a round; `fit` and `privatize` have paid for it."""
        size = int(self.n_items) * max(1, round_.item_factors.shape[1])
        if self.mechanism == "privunit":
            return PrivUnitTransformer(self.epsilon, radius=1.0, center=np.zeros(size))
        return DuchiTransformer(self.epsilon, bounds=(-np.ones(size), np.ones(size)), strategy="sample")

    def _answers(self, ratings, values, users, round_, source):
        """Return the reports of some users in a round."""
        columns, source = self._client(round_)._columns_now(), source.part(round_.number)
        size = int(self.n_items) * max(1, round_.item_factors.shape[1])
        many, parts = max(1, _CELLS // size), []
        few, values = of_users(ratings, values, users)
        for at in range(0, few.n_users, many):
            block = slice(at, min(at + many, few.n_users))
            rows = directions(few, values, block, round_.item_means, round_.item_factors)
            read = columns.read(columns.parts(rows), self.n_jobs, True)
            parts.append(columns.randomize(read, source, at, self.n_jobs))
        return np.concatenate(parts)

    def _seen(self, X):
        """Return (ratings, own means and factors, what is rated) of users who are to be told something."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call fit, or close a round")
        means, factors = self._averages
        ratings = read_ratings(X, n_items=len(means), strict=self._is_strict())
        values = _scaled(ratings.values, self._bounds)
        own = [own_factors(ratings, values, users, means, factors)[0] for users in blocks_of(ratings, factors.shape[1])]
        return (ratings, np.concatenate([np.empty((0, 1 + factors.shape[1])), *own]),
                ratings.matrix(np.ones(len(ratings.items))))

    def _all_of(self, users, own, held):
        means, factors = self._averages
        return self._in_units(means + own[users, :1] + own[users, 1:] @ factors.T)

    def _in_units(self, x):
        low, high = self._bounds
        return np.clip((low + high) / 2 + x * ((high - low) / 2), low, high)

    # ---------------------------------------------------------------- inside: the server

    @property
    def _bounds(self):
        return checked_bounds((self._frozen or {}).get("bounds", self.bounds))

    def _open(self):
        """Open the first round; from now on parameters of the model are as they are now."""
        self._check()
        m, d = int(self.n_items), int(self.n_components)
        self._frozen = {k: v for k, v in self.get_params(deep=False).items() if k not in _FREE}
        self._round = FactorRound(0, np.zeros(m), np.zeros((m, 0)))
        self._averages = np.zeros(m), np.zeros((m, d))
        self.n_rounds_ = 0
        for factors in (self._round.item_factors, np.zeros((m, d))):  # (what words cannot express is refused here)
            self._client(replace(self._round, item_factors=factors))._columns_now()

    def _step(self):
        """Close the round: a step along the mean direction, as long as its noise, which is known, allows."""
        round_, group = self._round, self._group
        on_components = round_.item_factors.shape[1] > 0
        begun = self._n_means() if on_components else 0
        k = round_.number - begun + 1
        columns = self._client(round_)._columns_now()
        noise = (4.0 * columns.laws[0].sampled_variance(len(columns), columns.n_sampled) if columns.n_sampled
                 else float(columns.even_variances().mean()))
        length = min(_LONGEST, _STRAY * np.sqrt(group.n_users_ / (k * noise)))
        step, share = length * np.nan_to_num(group.mean_), (1 + _TAIL) / (k + _TAIL)
        means, factors = self._averages
        if on_components:
            now = round_.item_factors + step.reshape(factors.shape)
            factors = (1 - share) * factors + share * now
            self._round = replace(round_, number=round_.number + 1, item_factors=now)
        else:
            now = round_.item_means + step
            means = (1 - share) * means + share * now
            self._round = replace(round_, number=round_.number + 1, item_means=now)
        self._averages, self._group = (means, factors), None
        self.n_rounds_ += 1
        self._turn()

    def _turn(self):
        """Go over to rounds of factors, where it is their turn, and publish."""
        means, factors = self._averages
        if self._round.number >= self._n_means() and not self._round.item_factors.shape[1]:
            begin = np.random.default_rng(_SEED).normal(size=factors.shape) * (_BEGIN / np.sqrt(factors.shape[1]))
            self._round = FactorRound(self._round.number, means, begin)
        low, high = self._bounds
        self.item_means_, self.item_factors_ = (low + high) / 2 + means * ((high - low) / 2), factors

    def _n_means(self):
        """Return how many rounds learn means."""
        return max(1, int(self.n_rounds) // 3)

    def _promised(self, elsewhere=False):
        """Return what one user's report promises; `elsewhere`: whether it was seeded is not known here."""
        self._check()
        known = {self.random_state is not None, False if self._made is None else self._made.seeded,
                 None if elsewhere and self.random_state is None else False}
        seeded = True if True in known else None if None in known else False
        return PrivacyGuarantee(canonical_epsilon(self.epsilon), seeded=seeded,
                                notes=("The guarantee is for all ratings of a user, and holds if no user answers "
                                       "twice.",))

    def _resumed(self):
        """Return a copy with the same state and the parameters of the first round."""
        trial = copy(self)
        trial._group = None if self._group is None else copy(self._group)
        vars(trial).update(self._frozen or {})
        return trial

    def _adopt(self, trial):
        """Take the state of a copy."""
        return self._become({name: getattr(trial, name) for name in _STATE if hasattr(trial, name)})

    def _result_parts(self, level):
        return [Part("mean rating of the item", (("item", list(range(len(self.item_means_)))),), self.item_means_)]

    def _test_data(self, n_rows, seed=0):
        """Return ratings of so many users, of two tastes."""
        rng = np.random.default_rng(seed)
        m = int(self.n_items)
        likes = (np.arange(n_rows)[:, None] + np.arange(m)) % 2
        rated = rng.random((n_rows, m)) < 0.6
        rated[:, 0] = True  # (some entry is sure to be stored: checks write bad values over it)
        return sparse.csr_array(np.where(rated, 1.5 + 3 * likes, 0.0)), None

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0, "bounds": (1, 5), "n_items": 4, "n_components": 1, "n_rounds": 3},
                {"epsilon": 1.5, "bounds": (0, 4), "n_items": 3, "n_components": 2, "n_rounds": 2,
                 "mechanism": "duchi"}]


_STATE = ("_round", "_group", "_averages", "_made", "_frozen", "item_means_", "item_factors_", "n_rounds_")


def _scaled(values, bounds):
    """Return ratings scaled to [-1, 1]; others are clipped."""
    low, high = bounds
    with np.errstate(all="ignore"):
        x = (np.clip(values, low, high) - (low + high) / 2) / ((high - low) / 2)
    return np.fmin(np.fmax(x, -1.0), 1.0)
