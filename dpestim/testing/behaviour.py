"""Behaviour that all kinds of estimators have, written once: what is refused, what stays, what strict mode hides.

A kind brings a sub-class of `Subject`, a small adapter which says how an estimator of it is used.
"""

import math
import pickle

from sklearn.base import clone

from dpestim.testing.tools import Book, fresh, refuses, require, same_state, snapshot

#: Values of parameters that must be refused, by the name that the error must have; a kind may say otherwise (`wrong`).
REFUSED = {
    "epsilon": (0, -1.0, math.nan, math.inf, "1", True, None),
    "delta": (None, 0, 1, 1.5, -1e-9, math.nan, "0", True),
    "sensitivity": (None, 0, -1.0, math.nan, math.inf, "1", True),
    "neighbours": ("local", "any", "ledger", 1),
    "n_users": (0, -1, 1.5, "2", True),
    "colluding": (-1, 1.5, "2", None, True, 10**9),
    "random_state": (-1, "seed", 1.5),
    "n_jobs": (0, 1.5, True, "two"),
}


class Subject:
    """An estimator to check, and how its kind is used; a kind overrides what differs."""

    #: parameters besides those of `REFUSED`, or in their place, whose values must be refused
    wrong = {}

    def __init__(self, estimator):
        self.estimator = estimator

    def checks(self):
        """Return the checks of this kind for this estimator."""
        raise TypeError(f"{type(self).__name__} does not say which checks it takes")

    def fresh(self, **params):
        """Return an unused clone with other parameters of what randomises, seeded unless it is said otherwise."""
        return fresh(self.estimator, **params)

    def rows(self, n=None, seed=0):
        """Return valid rows, as many as must take part unless it is said otherwise."""
        return self.estimator._test_data(n or self.estimator.n_users, seed)[0]

    def use(self, est):
        """Do what is charged, with valid data."""
        est.fit(self.rows())

    def takes(self, name):
        """Tell whether a value of a parameter can be wrong: it is one, and this setting makes something of it."""
        return name in self.estimator.get_params()

    def names(self, name, message):
        """Tell whether the error about a wrong parameter names it."""
        return name in message

    def part(self, seed):
        """Return an aggregate that can be merged, of the users of a seed."""
        return self.fresh(random_state=seed).fit(self.rows(seed=seed))


def check_parameters_are_refused(subject):
    """Bad parameters are errors that name them, before anything is charged, and leave nothing behind."""
    for name, values in {**REFUSED, **subject.wrong}.items():
        for value in values if subject.takes(name) else ():
            est, book = subject.fresh(), Book()
            _pay_by(est, book)
            est.set_params(**{name: value})
            message = refuses(lambda est=est: subject.use(est), f"{name}={value!r}", est)
            require(subject.names(name, message), f"the error about {name} must name it")
            require(not book.paid, f"a bad {name} must be refused before anything is charged")


def check_state_stays(subject):
    """Pickles and clones stay what they were; the first data freezes the law; merging is of the same law, new users."""
    X = subject.rows()
    one = subject.fresh().fit(X)
    copied = pickle.loads(pickle.dumps(one))
    require(same_state(copied.release(), one.release()) and copied.privacy_ == one.privacy_, "a pickle is not the same")
    require(same_state(clone(one).fit(X).release(), one.release()), "a clone must do the same")
    once = one.privacy_
    one.set_params(epsilon=float(one.epsilon) * 1.5)
    require(one.privacy_ == once, "a later epsilon changed the promise")
    single, other = subject.part(0), subject.part(1)
    cost, users = single.privacy_, single.n_users_ + other.n_users_
    merged = pickle.loads(pickle.dumps(single)).merge(other)
    require(merged.n_users_ == users, "merge must add users")
    require(merged.privacy_.epsilon == cost.epsilon, "other users must not pay for these")
    twice = pickle.loads(pickle.dumps(single)).merge(other, users="same").privacy_
    require((twice.epsilon, twice.delta) == (2 * cost.epsilon, 2 * cost.delta), "the same users must pay twice")
    refuses(lambda: single.merge(single), "merging with itself", single)
    refuses(lambda: single.merge(subject.part(0)), "merging the same seeded noise", single)


def check_given(sample, name):
    """Require that an estimator that is given as a parameter is never touched, and that what is none is refused."""
    X = sample.rows(20)
    est = sample.fresh()
    before = snapshot(getattr(est, name))
    est.fit(X).partial_fit(X).privatize(X)
    require(same_state(before, snapshot(getattr(est, name))), f"the {name} that was given must not change")
    trial = clone(sample.estimator).set_params(**{name: object()})
    require(name in refuses(lambda: trial.fit(X), f"a {name} that is none"), "the error does not name the parameter")


def in_strict_mode(call):
    """Return what a call in strict mode gives, which must give something whatever the values are."""
    try:
        return call()
    except Exception as error:
        require(False, f"strict mode must release whatever the values are, and raised {type(error).__name__}")


def _pay_by(estimator, book):
    """Let a ledger pay for an estimator: its own parameter of that name, or that of what it wraps."""
    names = [name for name in estimator.get_params() if name.endswith("ledger")]
    estimator.set_params(**{min(names, key=len): book})
