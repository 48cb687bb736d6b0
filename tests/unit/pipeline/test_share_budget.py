"""One budget for a whole pipeline: shares are exact, names are those of the walk, what does not fit is named."""

import importlib
from fractions import Fraction

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from dpestim.accounting import Ledger
from dpestim.linear_model import DPLogisticRegression
from dpestim.naive_bayes import DPGaussianNB
from dpestim.pipeline import PrivatePipeline, check_pipeline, share_budget
from dpestim.pipeline.step_rules import INSTEAD
from dpestim.preprocessing import DPMinMaxScaler, DPOneHotEncoder, DPSimpleImputer

NUMBERS = make_pipeline(DPSimpleImputer(bounds=(0, 9)), DPMinMaxScaler(bounds=(0, 9)))
MODEL = DPLogisticRegression(data_norm=2.0, classes=[0, 1])


def whole(encoder, model=MODEL):
    return make_pipeline(ColumnTransformer([("numbers", NUMBERS, [0]), ("words", encoder, [1])]), model)


def test_equal_shares_and_none_for_what_is_declared():
    given = whole(DPOneHotEncoder(categories=[[0, 1]]))
    shared = share_budget(given, 0.7)
    report = check_pipeline(shared)
    assert report.privacy_.epsilon == Fraction(7, 10)
    assert [step.verdict for step in report.steps] == ["private", "private", "data-independent", "private"]
    assert shared[-1].epsilon == Fraction(7, 30)
    assert given[-1].epsilon == MODEL.epsilon == 1.0


def test_weights_delta_and_what_is_charged():
    words = DPOneHotEncoder(categories="private")
    name = "columntransformer__words"
    shared = share_budget(whole(words), 2, delta=1e-5, shares={name: 3, "dplogisticregression": 0.5})
    parts = {step.name: step.privacy for step in check_pipeline(shared).steps}
    weights = Fraction(3) + Fraction(1, 2) + 2
    assert parts[name].epsilon == 2 * 3 / weights
    assert parts["dplogisticregression"].epsilon == 2 / (2 * weights)
    rng = np.random.default_rng(0)
    X, y = np.column_stack([rng.uniform(0, 9, 400), rng.integers(0, 2, 400)]), rng.integers(0, 2, 400)
    ledger = Ledger(2, delta=1e-5, durability="fast")
    with ledger:
        shared.fit(X, y)
    assert ledger.spent().epsilon == 2
    assert ledger.spent().delta <= Fraction(1, 10**5)


def test_a_delta_goes_to_those_that_make_something_of_it():
    middle = DPSimpleImputer(bounds=(0, 9), strategy="median")
    steps = make_pipeline(middle, DPGaussianNB(bounds=(0, 9), classes=[0, 1]))
    shared = share_budget(steps, 1, delta=1e-6)
    assert [step.delta for _, step in shared.steps] == [0, Fraction(1, 10**6)]
    pure = share_budget(shared, 1)
    assert [step.delta for _, step in pure.steps] == [0, 0]
    alone = share_budget(steps[-1], 3)
    assert alone.epsilon == 3


@pytest.mark.parametrize(("make", "match"), [
    (lambda: share_budget(whole(DPOneHotEncoder(categories=[[0, 1]])), 0), "epsilon"),
    (lambda: share_budget(whole(DPOneHotEncoder(categories=[[0, 1]])), 1, delta=1), "delta"),
    (lambda: share_budget(whole(DPOneHotEncoder(categories="private")), 1), "columntransformer__words.* pass delta="),
    (lambda: share_budget(whole(DPOneHotEncoder(categories=[[0, 1]])), 1, shares={"words": 1}), "'words'"),
    (lambda: share_budget(DPMinMaxScaler(), 1), r"data: bounds\. Declare them\.$"),
    (lambda: share_budget(MODEL, 1, shares={"DPLogisticRegression": 0}), "share of DPLogisticRegression"),
    (lambda: share_budget(MODEL, 1, shares=[1]), "shares must be"),
    (lambda: share_budget(make_pipeline(StandardScaler(), MODEL), 1), "standardscaler.*DPStandardScaler"),
    (lambda: share_budget(make_pipeline(FunctionTransformer()), 1), "at least one private step"),
    (lambda: share_budget(make_pipeline(DPMinMaxScaler(bounds=(0, 1))), 1, delta=0.1), "no step has a delta"),
    (lambda: share_budget(make_pipeline(
        DPMinMaxScaler(bounds=(0, 1)), DPGaussianNB(bounds=(0, 1), classes=[0, 1], neighbours="add_remove")), 1),
     "steps must have the same neighbours"),
])
def test_what_does_not_fit_is_named(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_own_functions_are_trusted_by_name():
    steps = make_pipeline(FunctionTransformer(lambda X: X), MODEL)
    with pytest.raises(ValueError, match="functiontransformer"):
        share_budget(steps, 1)
    assert share_budget(steps, 1, trusted=["functiontransformer"])[-1].epsilon == 1
    inside = PrivatePipeline(steps.steps, trusted=["functiontransformer"])
    assert share_budget(inside, 1).privacy_.epsilon == 1


def test_what_the_report_names_instead_is_there():
    """Every private namesake that a hint names can be imported."""
    named = {word.strip(",.") for hint in INSTEAD.values() for word in hint.split() if word.startswith("dpestim.")}
    assert len(named) > 10
    for name in named:
        module, _, estimator = name.rpartition(".")
        assert hasattr(importlib.import_module(module), estimator), name
