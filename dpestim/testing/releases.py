"""Whatever releases, once or many times: what is charged and refused, what seeds do, and strict mode.

A family of mechanisms brings a sub-class of `Releases`, which says how one of them is used: with which data, good, bad
and odd. `_central` (noise), `_choices` (choosing) and others are such families.
"""

import pickle
import warnings

from sklearn.base import clone

from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_amount, canonical_epsilon
from dpestim.testing.behaviour import Subject, check_parameters_are_refused, in_strict_mode
from dpestim.testing.tools import Book, differs_each_time, refuses, require, same_state


class Releases(Subject):
    """An estimator to check, and how it is used; a family overrides what differs."""

    def checks(self):
        """Return the checks of this family for this estimator."""
        return RELEASE_CHECKS

    #: the model of a release, and the name of its relation, where no parameter says one
    model, relation = "central", "substitution"

    # ---------------------------------------------------------------- how it is used

    @property
    def data(self):
        """Valid data, as `release` takes them."""
        return self.estimator._test_data(6)[0]

    def release(self, est, data):
        """Use it once: one charge. What comes out is compared by `same_state`."""
        return est.release(data)

    def use(self, est):
        """Release once."""
        self.release(est, self.data)

    def charged(self):
        """Return functions of an estimator, each of which is one release."""
        return (lambda est: self.release(est, self.data),)

    def free(self, est):
        """Ask for every fact that costs nothing."""

    def entropy(self, est):
        """Return what two calls without a seed hardly ever share."""
        return self.release(est, self.data)

    def ways(self):
        """Return functions of an estimator like `entropy`, one for each way to release."""
        return (self.entropy,)

    def bad(self):
        """Return data that must be refused, other than those of every family; "secret" in them must not be shown."""
        return ()

    def odd(self):
        """Return data that are valid in strict mode, and differ in values alone; the first ones are ordinary."""
        return (self.data,)

    def shown(self, released):
        """Return what strict mode must not let depend on a value: shapes and types of a release."""
        return type(released)

    def apart(self, released, data):
        """Require in strict mode that one odd value changes nothing of the release that is not its own."""


def check_release_charges(releases):
    """A release charges its guarantee, once, before anything is drawn; what is refused charges nothing."""
    for use in releases.charged():
        est = releases.fresh(ledger=Book())
        use(est)
        require(len(est.ledger.paid) == 1, "every release must charge once, and nothing besides")
        guarantee = est.ledger.paid[0][0]
        require(guarantee == est.privacy_, "privacy_ must be what is charged")
        require(guarantee.epsilon == canonical_epsilon(est.epsilon), "the charge must be the canonical epsilon")
        delta = canonical_amount(getattr(est, "delta", None) or 0, "delta")
        require(guarantee.delta == delta, "the charge must be the declared delta")
        relation = getattr(est, "neighbours", None) or releases.relation
        require(guarantee.model == releases.model and guarantee.neighbours.value == relation,
                "the charge must be for the model of the mechanism and the declared neighbours")
        releases.free(est)
        require(len(est.ledger.paid) == 1, "facts about the mechanism are free")
        refuses(lambda use=use: use(releases.fresh(ledger=Book(refuse=True))), "an overdraft")


def check_release_refuses(releases):
    """Bad data and parameters are errors that name what is wrong, show no value and spend nothing."""
    check_parameters_are_refused(releases)
    for bad in ("text", [["a secret"], []], None, *releases.bad()):
        est = releases.fresh(ledger=Book())
        message = refuses(lambda est=est, bad=bad: releases.release(est, bad), "bad data", est)
        require("secret" not in message, "an error must not show a value")
        require(not est.ledger.paid, "bad data must be refused before anything is charged")


def check_release_seeds(releases):
    """A seed reproduces a release, its absence never does; clones and pickles release the same, and seeds say so."""
    for draw in releases.ways():
        one = draw(releases.fresh())
        require(same_state(one, draw(releases.fresh())), "an int random_state must reproduce the release")
        require(not same_state(one, draw(releases.fresh(random_state=1))), "another seed, other randomness")
        secure = releases.fresh(random_state=None)
        require(differs_each_time(lambda draw=draw, secure=secure: draw(secure)), "secure releases must differ")
    require(releases.fresh().privacy_.seeded and not secure.privacy_.seeded, "privacy_ must say if there was a seed")
    est = releases.fresh()
    before = est.__getstate__()
    one = releases.release(est, releases.data)
    after = est.__getstate__()
    before.pop("_last_relation", None)
    relation = after.pop("_last_relation", None)  # (whom it protected: public, and what was charged says it)
    require(relation in (None, [est.privacy_.neighbours.value]) and same_state(before, after),
            "a release must leave nothing behind: no answer, and no noise")
    for twin in (clone(est), pickle.loads(pickle.dumps(est))):
        require(same_state(releases.release(twin, releases.data), one), "clones and pickles must release the same")


def check_release_is_total_in_strict_mode(releases):
    """In strict mode neighbouring data look the same: no error, warning or charge depends on a value."""
    with config_context(strict=True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wanted = None
        for data in releases.odd():
            est = releases.fresh(ledger=Book())
            released = in_strict_mode(lambda est=est, data=data: releases.release(est, data))
            seen = releases.shown(released), len(est.ledger.paid)
            wanted = wanted or seen
            require(seen == wanted and seen[1] == 1, "strict mode must release whatever the values are")
            releases.apart(released, data)
            require(not caught, "strict mode must not warn of a value")
        refuses(lambda: releases.release(releases.fresh(), [1.0, "a"]), "a list in strict mode")


RELEASE_CHECKS = (
    check_release_charges,
    check_release_refuses,
    check_release_seeds,
    check_release_is_total_in_strict_mode,
)
