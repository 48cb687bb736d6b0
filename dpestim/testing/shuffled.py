"""What puts a local estimator behind a shuffler: what all messages tell, what is charged, verbs, refusals, merging.

For estimators whose parameter `estimator` randomises, with settings of few users (`n_users`), so that the law of all
their messages can be enumerated.
"""

import math
from functools import partial

from dpestim.privacy.config import config_context
from dpestim.testing.behaviour import Subject, check_parameters_are_refused, check_state_stays, in_strict_mode
from dpestim.testing.shuffle import check_budget, check_messages_are_looked_at, worst_delta
from dpestim.testing.tools import Book, refuses, require, same_state


class Shuffled(Subject):
    """An estimator behind a shuffler to check, and what its checks share."""

    wrong = {"n_users": (0, -1, 1.5, "2", True, 10**6), "estimator": (object(), "text"), "random_state": ()}

    def checks(self):
        """Return the checks."""
        return CHECKS

    def names(self, name, message):
        """Tell whether an error names a parameter; that of a number of users may say that they are too few."""
        return name in message or "users" in message


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
    check_budget(est, stated)
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
    check_parameters_are_refused(shuffled)
    est = shuffled.fresh(ledger=Book())
    for bad in (X[:0], X[:-1], X[:, 0], None):
        refuses(lambda bad=bad: est.fit(bad), "bad data", est)
    require(not est.ledger.paid, "bad data must be refused before anything is charged")
    check_messages_are_looked_at(est, shuffled.fresh().encode(X))
    refuses(lambda: shuffled.fresh(ledger=Book(refuse=True)).fit(X), "an overdraft")
    refuses(lambda: shuffled.fresh().set_params(n_users=None).encode(X), "encode without n_users")


def check_shuffled_in_strict_mode(shuffled):
    """In strict mode scores are refused, and no error depends on a value."""
    X = shuffled.rows()
    X[0, 0] = None if X.dtype == object else math.nan
    with config_context(strict=True):
        est = shuffled.fresh()
        in_strict_mode(partial(est.fit, X))
    refuses(lambda: est.score(shuffled.rows()), "a score in strict mode")


CHECKS = (
    check_shuffled_law,
    check_shuffled_promise,
    check_shuffled_verbs,
    check_shuffled_refuses,
    check_state_stays,
    check_shuffled_in_strict_mode,
)
