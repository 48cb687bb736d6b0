"""One relation per question: a block or a ledger sets the default of all in it; what was released keeps its own."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

import dpestim
from dpestim.accounting import Ledger
from dpestim.base import all_estimators
from dpestim.central import LaplaceMechanism
from dpestim.linear_model import DPLinearRegression
from dpestim.privacy import Neighbours
from dpestim.statistics import ContingencyTable, Count, Mean, contingency_table, group_by, n_rows

ASKED = [pytest.param(cls, id=name) for name, cls in all_estimators() if "neighbours" in cls._get_param_names()
         and cls._checked_as != "attributes"]  # (whose users are neighbours by rows, or by one column)
OTHERS = [pytest.param(cls, params, id=f"{name}-{k}") for name, cls in all_estimators(("preprocessing",))
          if "neighbours" not in cls._get_param_names() and "ledger" in cls._get_param_names()
          for k, params in enumerate(cls._test_params())]
X, Y = np.random.default_rng(0).uniform(-1, 1, size=(60, 2)), np.linspace(-1, 1, 60)


def add_remove_ledger(epsilon=10.0):
    return Ledger(epsilon, delta=0.1, neighbours="add_remove", durability="fast")


def plain(cls):
    """Return an estimator that does not say which relation, in the first setting that suits both."""
    for params in cls._test_params():
        params = {name: value for name, value in params.items() if name not in ("neighbours", "ledger")}
        try:
            for name in ("substitution", "add_remove"):
                cls(**params, neighbours=name)._refuse_ahead(cls(**params)._test_data(40)[1], 40)
        except (ValueError, TypeError):
            continue
        return cls(**params)
    return cls(**params)


@pytest.mark.parametrize("cls", ASKED)
def test_the_default_is_that_of_the_block_or_of_the_ledger(cls):
    est = plain(cls)
    assert est.get_params(deep=False)["neighbours"] is None
    assert est._relation() is Neighbours.SUBSTITUTION
    assert clone(est).set_params(ledger=add_remove_ledger())._relation() is Neighbours.ADD_REMOVE
    with add_remove_ledger():
        assert est._relation() is Neighbours.ADD_REMOVE
        assert clone(est).set_params(neighbours="substitution")._relation() is Neighbours.SUBSTITUTION
        with dpestim.config_context(neighbours="substitution"):
            assert clone(est)._relation() is Neighbours.SUBSTITUTION
        made = clone(est)
    with dpestim.config_context(neighbours="add_remove"):
        kept = pickle.loads(pickle.dumps(est))
        with ThreadPoolExecutor(1) as pool:  # (a thread does not see the block: what was made in it brings it along)
            assert pool.submit(lambda own: clone(own)._relation(), clone(est)).result() is Neighbours.ADD_REMOVE
    assert made._relation() is kept._relation() is clone(kept)._relation() is Neighbours.ADD_REMOVE
    assert est._relation() is Neighbours.SUBSTITUTION
    assert all(own.get_params(deep=False)["neighbours"] is None for own in (made, kept))


def test_everything_is_paid_in_a_ledger_of_rows_that_come_and_go():
    by = np.repeat(["a", "b"], 30)
    with add_remove_ledger() as ledger:
        table = contingency_table(by, epsilon=1.0, categories=[["a", "b"]])
        groups = group_by(Mean(1.0, bounds=(-1, 1)), Y, by, ["a", "b"])
        model = DPLinearRegression(1.0, bounds=(-1, 1), target_bounds=(-1, 1)).fit(X, Y)
        LaplaceMechanism(1.0, sensitivity=1).release(3.0)
        results = [table.privacy, *(own.privacy for own in groups.values()), model.privacy_,
                   n_rows(Y, epsilon=1.0).privacy]
    assert {own.neighbours for own in results} == {Neighbours.ADD_REMOVE}
    assert ledger.spent().epsilon == 5  # (nothing is converted, so that nothing counts twice)
    with add_remove_ledger(), pytest.raises(ValueError, match='set neighbours="add_remove"'):
        ContingencyTable(1.0, categories=[["a", "b"]], neighbours="substitution").fit(by)
    with pytest.raises(ValueError, match=r"config_context\(neighbours="):
        group_by(Mean(1.0, bounds=(-1, 1)), Y, by, ["a", "b"])


def test_what_was_released_keeps_its_relation():
    model, statistic = DPLinearRegression(1.0, bounds=(-1, 1), target_bounds=(-1, 1)), Count(1.0)
    mechanism, whole = LaplaceMechanism(1.0, sensitivity=1), Count(1.0).summarize([True] * 9)
    with dpestim.config_context(neighbours="add_remove"):
        model.fit(X, Y)
        result = statistic.fit([True, False]).result_
        mechanism.release(3.0)
        with pytest.raises(ValueError, match="parameters"):  # (it was summarised under another relation)
            whole.release()
    promised = [model.privacy_, statistic.privacy_, result.privacy, mechanism.privacy_]
    with dpestim.config_context(neighbours="substitution"):
        promised += [model.privacy_, statistic.privacy_, result.privacy]
    assert {own.neighbours for own in promised} == {Neighbours.ADD_REMOVE}
    assert whole.release().privacy.neighbours is Neighbours.SUBSTITUTION


RELEASING = [pytest.param(cls, id=name) for name, cls in all_estimators(("central",))
             if {"neighbours", "sensitivity"} <= set(cls._get_param_names()) and hasattr(cls, "transform")]


@pytest.mark.parametrize("first", ["substitution", "add_remove"])
@pytest.mark.parametrize("cls", RELEASING)
def test_a_release_keeps_its_relation_in_other_blocks(cls, first):
    other = {"substitution": "add_remove", "add_remove": "substitution"}[first]
    mechanism, table = plain(cls).fit(np.zeros((2, 2))), np.zeros((2, 2))
    with dpestim.config_context(neighbours=other):
        assert mechanism.privacy_.neighbours.value == other  # (nothing is released yet)
    with dpestim.config_context(neighbours=first):
        before = vars(mechanism).copy()
        mechanism.transform(table)
        assert vars(mechanism) == before  # (as scikit-learn asks)
    with dpestim.config_context(neighbours=other):
        for one in (mechanism, pickle.loads(pickle.dumps(mechanism))):
            assert one.privacy_.neighbours.value == first
        copied = copy.copy(mechanism)
        copied.transform(table)
        assert copied.privacy_.neighbours.value == other
    assert mechanism.privacy_.neighbours.value == first


def test_the_relation_of_the_process():
    dpestim.set_config(neighbours="add_remove")
    try:
        assert dpestim.get_config() == {"strict": False, "neighbours": "add_remove"}
        assert Count(1.0).privacy_.neighbours is Neighbours.ADD_REMOVE
        with dpestim.config_context(strict=True, neighbours="substitution"):
            assert Count(1.0).privacy_.neighbours is Neighbours.SUBSTITUTION
            assert dpestim.get_config()["strict"]
    finally:
        dpestim.set_config(neighbours="ledger")
    assert Count(1.0).privacy_.neighbours is Neighbours.SUBSTITUTION
    for bad in ("local", "none", 1):
        with pytest.raises(ValueError, match="neighbours"), dpestim.config_context(neighbours=bad):
            pass
    with pytest.raises(ValueError, match="neighbours"):
        Count(1.0, neighbours="ledger").fit([True])


@pytest.mark.parametrize(("cls", "params"), OTHERS)
def test_what_protects_replaced_rows_alone_is_not_moved_by_the_block(cls, params):
    """Statistics within a transformer are of the transformer's relation, whatever block it is fitted in."""
    def fitted():
        est = cls(**params, **({"random_state": 0} if "random_state" in cls._get_param_names() else {}))
        return est.fit(*(part for part in est._test_data(60) if part is not None))

    outside = fitted()
    with dpestim.config_context(neighbours="add_remove"):
        inside = fitted()
    for name in cls._learned:
        assert str(getattr(outside, name)) == str(getattr(inside, name))
    if inside.privacy_.is_nothing:
        return
    assert inside.privacy_.neighbours is Neighbours.SUBSTITUTION
    with add_remove_ledger(1000.0), pytest.raises(ValueError, match='ledger with neighbours="substitution"'):
        fitted()
