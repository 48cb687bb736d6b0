"""The negative half: every deliberately broken mechanism is rejected, by the check that is there for it."""

import pytest
from broken import BROKEN

from dpestim.local import GRRFrequencyEstimator
from dpestim.testing import MechanismError, check_mechanism, mechanism_checks

CATEGORIES = [["a", "b", "c", "d"]]


@pytest.mark.parametrize(("cls", "check"), BROKEN, ids=lambda v: v if isinstance(v, str) else f"{v.__name__}")
def test_a_broken_mechanism_is_rejected(cls, check):
    checks = dict(mechanism_checks(cls(1.0, categories=CATEGORIES)))
    with pytest.raises(MechanismError):
        checks[check]()


@pytest.mark.parametrize("cls", sorted({cls for cls, _ in BROKEN}, key=lambda cls: str(cls._randomizer)))
def test_check_mechanism_rejects_it_as_a_whole(cls):
    with pytest.raises(MechanismError):
        check_mechanism(cls(1.0, categories=CATEGORIES))


def test_every_check_has_rejected_something_or_is_known_not_to():
    """A check that cannot fail is no check; the exempt ones are shown to fail in their own tests."""
    tried = {check for _, check in BROKEN}
    names = {name for name, _ in mechanism_checks(GRRFrequencyEstimator(1.0, categories=CATEGORIES))}
    assert tried <= names
    assert names - tried == {"check_reports_format", "check_merge", "check_clone_and_pickle", "check_containers",
                             "check_freeze"}


def break_and_run(check, **methods):
    cls = type("Broken", (GRRFrequencyEstimator,), methods)
    globals()["Broken"] = cls  # so that it can be pickled
    cls.__module__, cls.__qualname__ = __name__, "Broken"
    with pytest.raises(MechanismError):
        dict(mechanism_checks(cls(1.0, categories=CATEGORIES)))[check]()


def test_reports_of_another_format_are_rejected():
    privatize = GRRFrequencyEstimator.privatize
    break_and_run("check_reports_format", privatize=lambda self, X: privatize(self, X).astype("i8"))


def test_a_merge_that_loses_counts_is_rejected():
    break_and_run("check_merge", merge=lambda self, other: self)


def test_a_clone_that_shares_state_is_rejected():
    def shared(self):
        return self

    break_and_run("check_clone_and_pickle", __sklearn_clone__=shared)


def test_a_pickle_that_takes_any_format_is_rejected():
    break_and_run("check_clone_and_pickle", __setstate__=lambda self, state: vars(self).update(state))


def test_containers_that_change_the_report_are_rejected():
    privatize = GRRFrequencyEstimator.privatize
    break_and_run(
        "check_containers", privatize=lambda self, X: privatize(self, X[::-1] if isinstance(X, list) else X)
    )


def test_a_law_that_is_not_frozen_is_rejected():
    fit = GRRFrequencyEstimator.fit
    break_and_run("check_freeze", partial_fit=lambda self, X, y=None: fit(self, X))
