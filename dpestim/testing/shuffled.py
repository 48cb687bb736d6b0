"""What puts a local estimator behind a shuffler: what all messages tell, what is charged, verbs, refusals, merging.

For estimators whose parameter `estimator` randomises, with settings of few users (`n_users`), so that the law of all
their messages can be enumerated.
"""

import math
import pickle

import numpy as np
from sklearn.base import clone

from dpestim.privacy import Neighbours
from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_amount, canonical_epsilon
from dpestim.testing.shuffle import Uneven, worst_delta
from dpestim.testing.tools import Book, fresh, refuses, require, same_state

WRONG = {
    "epsilon": (0, -1.0, math.nan, math.inf, "1", True, None),
    "delta": (None, 0, 1, 1.5, -1e-9, math.nan, "0", True),
    "n_users": (0, -1, 1.5, "2", True, 10**6),
    "colluding": (-1, 1.5, "2", None, True, 10**9),
    "estimator": (object(), "text"),
}


class Shuffled:
    """An estimator behind a shuffler to check, and what its checks share."""

    def __init__(self, estimator):
        self.estimator = estimator

    def checks(self):
        """Return the checks."""
        return CHECKS

    def fresh(self, **params):
        """Return an unused clone, seeded unless it is said otherwise; parameters are those of what randomises."""
        return fresh(self.estimator, **params)

    def rows(self, seed=0):
        """Return valid rows, as many as must take part."""
        return self.estimator._test_data(self.estimator.n_users, seed)[0]


def check_shuffled_law(shuffled):
    """The law that users draw from keeps the promise among so few users, by enumeration of all their messages."""
    est = shuffled.fresh().fit(shuffled.rows())
    law, promise = est.estimator_.randomizer(), est.privacy_
    laws = [{(y,): p for y, p in enumerate(row)} for row in law.transition_matrix()]
    truth = worst_delta(laws, est.n_users - est.colluding, float(promise.epsilon))
    require(truth <= float(promise.delta) * (1 + 1e-9), "all messages together tell more than is promised")
    require(law.plain_epsilon == est.local_epsilon_, "local_epsilon_ must be that of the law")


def check_shuffled_promise(shuffled):
    """`privacy_` is charged, once: the declared budget of the shuffle; the local guarantee stays, and is stated."""
    est, X = shuffled.fresh(ledger=Book()), shuffled.rows()
    book, stated = est.ledger, est.privacy_
    est.fit(X)
    est.encode(X)
    require([paid[0] for paid in book.paid] == [stated, stated], "fit and encode must charge privacy_, once each")
    require(stated == est.privacy_, "privacy_ must not depend on data")
    budget = stated.epsilon, stated.delta
    require(budget == (canonical_epsilon(est.epsilon), canonical_amount(est.delta, "delta")),
            "privacy_ must be the declared budget")
    require(stated.model == "shuffle" and stated.neighbours is Neighbours.SUBSTITUTION and stated.seeded,
            "privacy_ must be of the shuffle model, for data sets of equal size, and say that there was a seed")
    local = est.local_privacy_
    require(local.model == "local" and local.epsilon == est.local_epsilon_, "the local guarantee must be stated")
    left = [est.privacy_against(k).epsilon for k in (est.colluding, est.n_users - 1)]
    require(left[0] == stated.epsilon <= left[1] <= local.epsilon, "more colluding users must leave less")
    est.score(X)
    require(len(book.paid) == 2 and len(book.scores) == 1, "a score must be recorded")


def check_shuffled_verbs(shuffled):
    """Users, shuffler and analyser apart come to what `fit` does, in any order of whole messages."""
    X = shuffled.rows()
    est, whole = shuffled.fresh(), shuffled.fresh().fit(X)
    messages = est.encode(X)
    mixed = est.shuffle(messages)
    require(sorted(map(tuple, mixed.tolist())) == sorted(map(tuple, messages.tolist())), "messages must stay whole")
    for sent in (messages, mixed, messages[::-1].copy()):
        require(same_state(shuffled.fresh().analyse(sent).release(), whole.release()),
                "the analyser must count all messages, in any order")
    require(whole.n_users_ == len(X), "all users must be counted")


def check_shuffled_refuses(shuffled):
    """Bad data and parameters, and too few users, are errors that change nothing and spend nothing."""
    X = shuffled.rows()
    for name, values in WRONG.items():
        for value in values:
            est, book = shuffled.fresh(), Book()
            est.estimator.set_params(**{next(p for p in est.estimator.get_params() if p.endswith("ledger")): book})
            est.set_params(**{name: value})
            message = refuses(lambda est=est: est.fit(X), f"{name}={value!r}", est)
            require(name in message or "users" in message, f"the error about {name} must name it")
            require(not book.paid, f"a bad {name} must be refused before anything is charged")
    est = shuffled.fresh(ledger=Book())
    for bad in (X[:0], X[:-1], X[:, 0], None):
        refuses(lambda bad=bad: est.fit(bad), "bad data", est)
    require(not est.ledger.paid, "bad data must be refused before anything is charged")
    messages = shuffled.fresh().encode(X)
    for bad in (messages[:-1], messages[:, :0], messages.astype(np.float64), messages.tolist(), None):
        refuses(lambda bad=bad: est.shuffle(bad), "bad messages in shuffle, which is trusted to look", est)
    for far in (None, 2.0**-40, math.nan):
        shuffler = Uneven(far)
        refuses(lambda shuffler=shuffler: est.shuffle(messages, shuffler), "a shuffler that may be far from uniform")
        require(not shuffler.seen, "a shuffler must be refused before it sees messages")
    refuses(lambda: shuffled.fresh(ledger=Book(refuse=True)).fit(X), "an overdraft")
    refuses(lambda: shuffled.fresh().set_params(n_users=None).encode(X), "encode without n_users")


def check_shuffled_state(shuffled):
    """Merging is of shuffles of other users; clones and pickles stay what they were; the first data freezes the law."""
    one, two = shuffled.fresh().fit(shuffled.rows()), shuffled.fresh(random_state=1).fit(shuffled.rows(1))
    copied = pickle.loads(pickle.dumps(one))
    require(same_state(copied.release(), one.release()) and copied.privacy_ == one.privacy_, "a pickle is not the same")
    require(same_state(clone(one).fit(shuffled.rows()).release(), one.release()), "a clone must do the same")
    once = one.privacy_
    one.set_params(epsilon=float(one.epsilon) * 1.5)
    require(one.privacy_ == once, "a later epsilon changed the promise")
    merged = pickle.loads(pickle.dumps(copied)).merge(two)
    require(merged.n_users_ == copied.n_users_ + two.n_users_, "merge must add users")
    require(merged.privacy_.epsilon == once.epsilon, "other users must not pay for these")
    twice = pickle.loads(pickle.dumps(copied)).merge(two, users="same").privacy_
    require((twice.epsilon, twice.delta) == (2 * once.epsilon, 2 * once.delta), "the same users must pay twice")
    refuses(lambda: copied.merge(copied), "merging with itself", copied)
    refuses(lambda: copied.merge(clone(copied).fit(shuffled.rows())), "merging the same seeded noise", copied)


def check_shuffled_in_strict_mode(shuffled):
    """In strict mode scores are refused, and no error depends on a value."""
    X = shuffled.rows()
    X[0, 0] = None if X.dtype == object else math.nan
    with config_context(strict=True):
        est = shuffled.fresh()
        try:
            est.fit(X)
        except Exception as error:
            require(False, f"strict mode must release whatever the values are, and raised {type(error).__name__}")
    refuses(lambda: est.score(shuffled.rows()), "a score in strict mode")


CHECKS = (
    check_shuffled_law,
    check_shuffled_promise,
    check_shuffled_verbs,
    check_shuffled_refuses,
    check_shuffled_state,
    check_shuffled_in_strict_mode,
)
