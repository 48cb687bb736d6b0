"""Columns that models of one pass see: a summary has its own, and what is refused changes nothing that was learned."""

import warnings

import numpy as np
import pandas as pd
import pytest

from dpestim.exceptions import PrivacyLeakWarning
from dpestim.feature_selection import DPSelectKBest
from dpestim.linear_model import DPLinearRegression, DPLinearSVC, DPPoissonRegressor, DPRidge, DPTukeyRegression
from dpestim.naive_bayes import DPGaussianNB
from dpestim.preprocessing import DPMinMaxScaler, DPStandardScaler

X = pd.DataFrame(np.random.default_rng(0).uniform(size=(300, 3)), columns=["a", "b", "c"])
CLASSES = (X["a"] > 0.5).to_numpy()
MAKERS = [
    lambda: DPLinearRegression(1.0, bounds=(0, 1), target_bounds=(0, 1), random_state=0),
    lambda: DPStandardScaler(1.0, bounds=(0, 1), random_state=0),
    lambda: DPMinMaxScaler(1.0, bounds=(0, 1), random_state=0),
    lambda: DPGaussianNB(1.0, bounds=(0, 1), classes=[False, True], random_state=0),
    lambda: DPSelectKBest(score_func="covariance", k=1, epsilon=1.0, bounds=(0, 1), target_bounds=(0, 1),
                          random_state=0),
]


def said(model):
    return model.transform(X) if hasattr(model, "transform") else model.predict(X)


@pytest.mark.parametrize("make", MAKERS)
def test_a_summary_changes_nothing_before_it_is_released(make):
    model = make().fit(X, CLASSES)
    before = said(model)
    turned = X[["c", "b", "a"]]
    model.summarize(turned, CLASSES)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.array_equal(said(model), before)
    model.release()
    assert model.feature_names_in_.tolist() == ["c", "b", "a"]
    with pytest.raises(ValueError, match="same order"):
        said(model)
    model.fit(X.to_numpy(), CLASSES)
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_refused_changes_nothing(make):
    model = make().fit(X, CLASSES)
    before = said(model)
    with pytest.raises(ValueError, match="0 sample"):
        model.summarize(X.iloc[:, :2].iloc[:0], CLASSES[:0])
    model.summarize(X, CLASSES)
    summary = model.summary_
    with pytest.raises(ValueError, match="features"):
        model.summarize(X.iloc[:, :2], CLASSES)
    with pytest.raises(ValueError, match="same order"):
        model.summarize(X[["c", "b", "a"]], CLASSES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="data frames with names"):
            model.summarize(X.to_numpy(), CLASSES)
        with pytest.raises(ValueError, match="data frames with names"):
            model.merge(make().summarize(X.to_numpy(), CLASSES))
    assert model.summary_ is summary
    assert model.n_features_in_ == 3
    assert np.array_equal(said(model), before)


def test_a_merged_model_has_the_columns_of_what_it_merged():
    for make in MAKERS[:2]:
        model = make().merge(make().summarize(X, CLASSES)).release()
        assert (model.n_features_in_, model.feature_names_in_.tolist()) == (3, ["a", "b", "c"])


@pytest.mark.parametrize("cls", [DPLinearRegression, DPRidge, DPTukeyRegression, DPLinearSVC, DPPoissonRegressor])
def test_a_fit_without_targets_says_so(cls):
    with pytest.raises(ValueError, match="fit requires y to be passed"):
        cls(delta=1e-6).fit(X)


def test_numbers_too_far_for_a_fit_are_named():
    rows, target = X.to_numpy(), X["a"].to_numpy()
    for far, name in (((rows * 1e300, target), "X"), ((rows, target * 1e300), "y")):
        with pytest.raises(ValueError, match=f"^{name} holds numbers beyond"):
            DPLinearRegression(1.0).fit(*far)
    with pytest.warns(PrivacyLeakWarning, match="^bounds and target_bounds were learned"):
        assert (DPLinearRegression(1.0, random_state=0).fit(rows * 1e-300, target).coef_ == 0).all()
    with pytest.warns(PrivacyLeakWarning, match="^bounds were learned"):
        scaler = DPStandardScaler(1.0, random_state=0).fit(rows)
    assert "Declare them." in scaler.privacy_.notes[0]
