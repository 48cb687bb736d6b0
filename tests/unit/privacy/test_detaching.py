"""What a ledger pays for, and how it stops: parameters, what is bound, and what the repr says of it."""

import copy
import os
import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import dpestim
from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.base import all_estimators
from dpestim.central import LaplaceMechanism
from dpestim.model_selection import PrivateSearchCV
from dpestim.naive_bayes import DPGaussianNB
from dpestim.pipeline import PrivatePipeline
from dpestim.preprocessing import DPStandardScaler
from dpestim.privacy import Neighbours

X = np.random.default_rng(0).uniform(size=(40, 2))
Y = (X[:, 0] > 0.5).astype(int)
PAID = [pytest.param(cls, id=name) for name, cls in all_estimators() if "ledger" in cls._get_param_names()]


def book():
    return Ledger(100.0, durability="fast")


def pipeline(**params):
    return make_pipeline(DPStandardScaler(bounds=(0, 1)), DPGaussianNB(bounds=(0, 1), classes=[0, 1], **params))


@pytest.mark.parametrize("cls", PAID)
def test_no_estimator_is_paid_for_after_it_was_detached(cls):
    first, second = book(), book()
    with first:
        bound = cls(**cls._test_params()[0])
    assert bound._find_ledger() == first
    assert f"bound to {first!r}" in repr(bound)
    assert first.detach(second.detach(bound)) is bound  # (another ledger has nothing to do with it)
    for est in (bound, clone(bound), pickle.loads(pickle.dumps(bound)), copy.deepcopy(bound)):
        assert est._find_ledger() is None
        assert repr(est) == repr(cls(**cls._test_params()[0]))
    with first:
        other = cls(**cls._test_params()[0])
    assert other.set_params(ledger=second)._find_ledger() == second
    assert second.detach(other)._find_ledger() is None  # (nor does what it was bound to)
    assert other.get_params(deep=False)["ledger"] is None
    with second:
        assert other._find_ledger() == second


@pytest.mark.parametrize("cls", PAID)
def test_parameters_that_are_copied_end_no_ledger(cls):
    ledger = book()
    with ledger:
        bound = cls(**cls._test_params()[0])
    assert bound.set_params(**bound.get_params())._find_ledger() == ledger
    assert make_pipeline(bound).set_params(**make_pipeline(bound).get_params())[0]._find_ledger() == ledger
    assert bound.set_params(ledger=None)._find_ledger() is None


@pytest.mark.parametrize("cls", PAID)
def test_what_a_block_sends_to_another_process_stays_bound(cls, monkeypatch):
    with book().for_users("a wave") as pays:
        here = cls(**cls._test_params()[0])
        sent = pickle.dumps(here)
    process = os.getpid()
    monkeypatch.setattr("dpestim.base.os.getpid", lambda: process + 1)
    there = pickle.loads(sent)  # (where no block is seen: a grid of {"ledger": [None]} would be free)
    for est in (there, clone(there), pickle.loads(pickle.dumps(there)), copy.deepcopy(there)):
        assert est.set_params(ledger=None)._find_ledger() == pays
    assert pays.detach(there)._find_ledger() is None
    assert pickle.loads(pickle.dumps(here)).set_params(ledger=None)._find_ledger() is None  # (no block was open)


def test_all_that_is_in_a_pipeline_or_a_search_is_detached():
    ledger = book()
    with ledger:
        whole = pipeline().fit(X, Y)
        search = GridSearchCV(pipeline(ledger=ledger), {"dpgaussiannb__epsilon": [1.0]}, cv=2).fit(X, Y)
    spent = ledger.spent()
    for est in (whole, search):
        assert ledger.detach(est) is est
    whole.fit(X, Y)
    search.fit(X, Y)
    search.best_estimator_.fit(X, Y)
    assert ledger.spent() == spent
    assert ledger.detach(BaseEstimator()).get_params() == {}


def test_what_was_released_keeps_its_promise():
    ledger = Ledger(100.0, neighbours="add_remove", durability="fast")
    with ledger:
        mechanism = LaplaceMechanism(1.0, sensitivity=1)
        mechanism.release(3.0)
        model = DPGaussianNB(bounds=(0, 1), classes=[0, 1]).fit(X, Y)
    for est in (mechanism, model):
        assert ledger.detach(est).privacy_.neighbours is Neighbours.ADD_REMOVE
    assert "bound" not in repr(mechanism)
    mechanism.release(3.0)  # (another release, in no ledger)
    assert mechanism.privacy_.neighbours is Neighbours.SUBSTITUTION
    assert len(ledger) == 2


def test_the_repr_says_what_is_bound():
    with dpestim.config_context(strict=True, neighbours="add_remove"):
        est = DPGaussianNB(2.0)
    assert repr(est) == 'DPGaussianNB(epsilon=2.0), strict mode, neighbours="add_remove" by its block'
    assert repr(DPGaussianNB(2.0)) == str(DPGaussianNB(2.0)) == "DPGaussianNB(epsilon=2.0)"
    assert "strict mode" in repr(make_pipeline(est)[0])  # (scikit-learn prints a pipeline from parameters alone)
    long = DPGaussianNB(2.0, bounds=(0, 1), classes=["a" * 30, "b" * 30], priors=[0.5, 0.5], var_smoothing=0.5)
    assert max(map(len, repr(long).splitlines())) < 80  # (scikit-learn breaks lines by the repr of the class)


def test_what_parts_are_bound_to_is_shown_where_they_are():
    """A search and a private pipeline show what their own steps would charge, though both were made outside."""
    book_ = book()
    with book_, config_context(neighbours="add_remove"):
        step = DPGaussianNB(bounds=(0, 1), classes=[0, 1])
    search = PrivateSearchCV(step, {"bounds": [(0, 1)]})
    for whole, name in ((search, "estimator"), (PrivatePipeline([("nb", step)]), "nb"),
                        (PrivateSearchCV(make_pipeline(step), {}), "estimator__dpgaussiannb")):
        assert f', {name}: bound to {book_!r}, {name}: neighbours="add_remove" by its block' in repr(whole)
        assert str(whole) == repr(whole)
    with book_:
        both = PrivateSearchCV(step, {})
    assert repr(both).count(repr(book_)) == 1  # (said once of both)
    assert repr(book_) not in repr(book_.detach(search))
    with config_context(strict=True):
        assert repr(DPGaussianNB()).endswith(", strict mode")
