"""The negative half: every deliberately broken mechanism is rejected, by the check that is there for it."""

import pytest
from broken import BROKEN, BROKEN_COLLECTORS, BROKEN_NUMBERS

from dpestim.local import GRRFrequencyEstimator, MeanEstimator, PMTransformer, SDPMTransformer
from dpestim.testing import MechanismError, check_mechanism, mechanism_checks

CATEGORIES = [["a", "b", "c", "d"]]
BOUNDS = {"bounds": (0.0, 10.0), "grid": 16}
LOW = {"low_sensitivity": (2.0, 7.0), "n_cells": 2}


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


@pytest.mark.parametrize(("cls", "check"), BROKEN_NUMBERS, ids=lambda v: v if isinstance(v, str) else v.__name__)
def test_a_broken_transformer_is_rejected(cls, check):
    more = LOW if issubclass(cls, SDPMTransformer) else {}
    with pytest.raises(MechanismError):
        dict(mechanism_checks(cls(1.0, **BOUNDS, **more)))[check]()


@pytest.mark.parametrize(("cls", "check"), BROKEN_COLLECTORS, ids=lambda v: v if isinstance(v, str) else v.__name__)
def test_a_broken_collector_is_rejected(cls, check):
    with pytest.raises(MechanismError):
        dict(mechanism_checks(cls(SDPMTransformer(2.0, **BOUNDS, **LOW))))[check]()


def test_every_check_of_numbers_has_rejected_something_or_is_known_not_to():
    """The exempt ones (state, containers, formats, bad input) are siblings of those shown to fail elsewhere here."""
    names = {name for name, _ in mechanism_checks(PMTransformer(1.0, **BOUNDS))}
    tried = {check for _, check in BROKEN_NUMBERS}
    assert tried <= names
    assert names - tried == {"check_rows_sum_to_one", "check_reports_and_decoding", "check_clone_and_pickle",
                             "check_containers", "check_bad_input"}
    names = {name for name, _ in mechanism_checks(MeanEstimator(PMTransformer(1.0, **BOUNDS)))}
    assert names == {check for _, check in BROKEN_COLLECTORS}


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
