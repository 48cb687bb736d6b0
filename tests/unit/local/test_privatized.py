"""Privatised columns before plain models: pipelines and searches, corrections, laws of all shapes, refusals."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from dpestim import config_context, local
from dpestim.accounting import BudgetExceededError, Ledger
from dpestim.local import GRRFrequencyEstimator, PMTransformer, PrivatizedColumns

RNG = np.random.default_rng(0)
N = 20_000
CODES, NUMBERS = RNG.integers(0, 3, N), RNG.beta(2, 4, N)
X = np.column_stack([CODES, NUMBERS, RNG.normal(size=N)])
TARGET = 2.0 * (CODES == 1) - 1.0 * (CODES == 2) + 3.0 * NUMBERS
PAIR = [("codes", GRRFrequencyEstimator(categories=[[0, 1, 2]]), [0]), ("numbers", PMTransformer(bounds=(0, 1)), 1)]


def test_a_posterior_makes_a_plain_model_that_of_true_values_and_noise_without_bias_does_not():
    """Slopes of least squares; the standard errors of the slopes are below 0.05 (seeded)."""
    slopes = {}
    for correction in ("posterior", "unbiased"):
        step = PrivatizedColumns(PAIR, epsilon=4.0, correction=correction, random_state=0)
        model = make_pipeline(step, LinearRegression()).fit(X, TARGET)
        a, b, c, slope = model[-1].coef_
        slopes[correction] = np.array([b - a, c - a, slope])
    assert np.abs(slopes["posterior"] - [2.0, -1.0, 3.0]).max() < 0.3
    assert (np.abs(slopes["unbiased"]) < 0.8 * np.array([2.0, 1.0, 3.0])).all()


@pytest.mark.parametrize("name", ["GRR", "OUE", "OLH", "SS", "HR", "THE", "SDGRR", "Adaptive"])
def test_laws_of_all_shapes_have_features_without_bias(name):
    """20,000 equal rows: the mean of each feature is within 5 standard errors of 0 or 1 (alpha = 2e-6 for all)."""
    given = getattr(local, f"{name}FrequencyEstimator")(categories=[["a", "b", "c"]])
    rows = np.full((N, 1), "b", dtype=object)
    step = PrivatizedColumns([("c", given, 0)], epsilon=2.0, correction="unbiased", random_state=0)
    out = step.fit_transform(rows)
    error = out.std(axis=0) / np.sqrt(N)
    assert (np.abs(out.mean(axis=0) - [0, 1, 0]) <= 5 * error + 1e-12).all()


def test_a_client_that_is_taken_out_pays_as_the_whole_did():
    ledger = Ledger(3.0)
    step = PrivatizedColumns(PAIR, epsilon=2.0, ledger=ledger, random_state=0).fit(X)
    step.transformers_[0][1].privatize(X[:, [0]])
    assert [float(entry["epsilon"]) for entry in ledger.entries()] == [2.0, 1.0]
    with pytest.raises(BudgetExceededError):
        step.transformers_[1][1].privatize(X[:, [1]])


def test_in_a_search_and_with_a_ledger():
    ledger = Ledger(100.0)
    step = PrivatizedColumns(PAIR, ledger=ledger, random_state=0)
    search = GridSearchCV(make_pipeline(step, LogisticRegression()), {"privatizedcolumns__epsilon": [1.0, 2.0]}, cv=2)
    search.fit(X[:2000], TARGET[:2000] > 1)
    assert [float(entry["epsilon"]) for entry in ledger.entries()][:4] == [1.0, 1.0, 2.0, 2.0]
    assert len(ledger) == 5  # (and the refit; predictions of true values cost nothing)
    assert search.best_estimator_.predict(X[:5]).shape == (5,)


def test_names_and_frames():
    frame = pd.DataFrame({"kind": np.array(["x", "y"])[CODES % 2], "age": NUMBERS, "size": X[:, 2]})
    given = [("k", GRRFrequencyEstimator(categories={"kind": ["x", "y"]}), ["kind"]),
             ("n", PMTransformer(bounds=(0.0, 1.0)), ["age"])]
    step = PrivatizedColumns(given, epsilon=2.0, remainder="passthrough", random_state=0).set_output(transform="pandas")
    out = step.fit_transform(frame)
    assert list(out.columns) == ["kind_x", "kind_y", "age", "size"]
    np.testing.assert_array_equal(out["size"], frame["size"])
    np.testing.assert_allclose(out[["kind_x", "kind_y"]].sum(axis=1), 1.0)
    raw = step.transform(frame)
    np.testing.assert_array_equal(raw["kind_x"], frame["kind"] == "x")
    np.testing.assert_array_equal(raw["age"], frame["age"])
    assert "raw and not protected" in str(step.privacy_)
    assert "labels" in str(step.privacy_)
    assert step.privacy_.epsilon == 2
    again = PrivatizedColumns(given, epsilon=2.0, remainder="passthrough", random_state=0)
    np.testing.assert_array_equal(again.fit_transform(pl.DataFrame(frame.to_dict("list"))), out.to_numpy())


def test_columns_do_not_share_noise():
    given = [("one", PMTransformer(bounds=(-1, 1)), [0]), ("two", PMTransformer(bounds=(-1, 1)), [1, 2])]
    reports = PrivatizedColumns(given, random_state=0).privatize(np.zeros((N, 3)))
    correlation = np.corrcoef(reports.T.astype(float)) - np.eye(3)
    assert np.abs(correlation).max() < 5 / np.sqrt(N)  # (alpha = 2e-6)


def test_what_is_no_category_has_no_feature():
    step = PrivatizedColumns(PAIR, random_state=0).fit(X)
    np.testing.assert_array_equal(step.transform([[7, 2.0, 0.0]]), [[0, 0, 0, 1.0]])


@pytest.mark.parametrize(("change", "message"), [
    ({"transformers": [("a", PMTransformer(bounds=(0, 1), strategy="sample"), [0, 1])]}, "split"),
    ({"transformers": [("a", PMTransformer(bounds=(0, 1)), [0, 0])]}, "once"),
    ({"transformers": [("a", PMTransformer(bounds=(0, 1)), [3])]}, "position below 3"),
    ({"transformers": [("a", PMTransformer(bounds=(0, 1)), "age")]}, "by name"),
    ({"transformers": [("a", local.LGRRFrequencyEstimator(categories=[[0, 1]]), 0)]}, "without permanent answers"),
    ({"transformers": [("a", local.MeanEstimator(), 0)]}, "transformers"),
    ({"epsilon": 0.0}, "epsilon"), ({"correction": "both"}, "correction"),
])
def test_refusals_before_anything_is_charged(change, message):
    ledger = Ledger(10.0)
    step = PrivatizedColumns(**{"transformers": PAIR, "ledger": ledger, **change})
    with pytest.raises(ValueError, match=message):
        step.fit_transform(X)
    assert not len(ledger)


def test_analysts_see_no_true_value():
    with config_context(strict=True):
        for change in ({"remainder": "passthrough"}, {}):
            step = PrivatizedColumns(PAIR, **change)
            with pytest.raises(ValueError, match="strict mode"):
                step.fit(X).transform(X)


def test_a_correction_that_was_not_learned():
    step = PrivatizedColumns(PAIR, correction=None, predict_on="privatized", random_state=0).fit(X)
    with pytest.raises(ValueError, match="correction"):
        step.set_params(correction="posterior").transform(X)


def test_what_passes_through_is_what_was_said():
    """`privacy_` is of the fit: a remainder that is changed later changes nothing before the next one."""
    X = np.column_stack([np.random.default_rng(0).uniform(size=50), np.arange(50.0)])
    step = PrivatizedColumns([("number", PMTransformer(bounds=(0, 1)), [0])], epsilon=1.0, random_state=0).fit(X)
    step.set_params(remainder="passthrough")
    assert step.transform(X).shape == (50, 1)
    assert len(step.get_feature_names_out()) == 1
    assert step.fit(X).transform(X).shape == (50, 2)
    assert any("pass through are raw" in note for note in step.privacy_.notes)


def test_shifted_intercepts_are_all_that_is_changed():
    """Three columns that say the same, and a rare class: the shares of true rows come nearer; ranks stay."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 4, 12_000)
    rows, y = np.column_stack([code] * 3), rng.random(12_000) < np.array([0.01, 0.05, 0.3, 0.45])[code]
    grr = GRRFrequencyEstimator(categories=[range(4)] * 3)
    step = PrivatizedColumns([("codes", grr, [0, 1, 2])], epsilon=6.0, random_state=0)
    plain = LogisticRegression().fit(step.fit_transform(rows), y)
    before, shifted, true = plain.intercept_.copy(), step.shift_intercept(plain, y), step.transform(rows)
    assert np.array_equal(shifted.coef_, plain.coef_)
    assert np.array_equal(plain.intercept_, before)
    off, left = (abs(m.predict_proba(true)[:, 1].mean() - y.mean()) for m in (plain, shifted))
    assert left < off
    assert shifted.score(true, y) >= plain.score(true, y)
    with pytest.raises(ValueError, match="model must be a logistic regression"):
        step.shift_intercept(plain, y + 1)
    with pytest.raises(ValueError, match="model must be a logistic regression"):
        step.shift_intercept(grr, y)
    ledger = Ledger(9, durability="fast")
    step.set_params(ledger=ledger).shift_intercept(plain, y)  # (shares of labels are exact, as a score is)
    assert [(entry["kind"], entry["charged_epsilon"]) for entry in ledger.entries()] == [("non-private score", 0)]
    with config_context(strict=True), pytest.raises(ValueError, match="strict mode: shift_intercept"):
        step.shift_intercept(plain, y)
    with pytest.raises(ValueError, match="correction must be 'posterior'"):
        step.set_params(correction="unbiased").shift_intercept(plain, y)


def test_shifted_intercepts_of_independent_columns_are_exact():
    """Of a number and a code, with three classes and with two: mean probabilities of true rows are shares of labels."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 3, 12_000), rng.beta(2, 4, 12_000)])
    for edges in ([0.3, 1.0], [0.75]):
        y = np.digitize(rows[:, 1] + rows[:, 0] / 4, edges)
        step = PrivatizedColumns(PAIR, epsilon=3.0, random_state=0)
        plain = LogisticRegression(C=100).fit(step.fit_transform(rows), y)
        off, left = (np.abs(m.predict_proba(step.transform(rows)).mean(axis=0) - np.bincount(y) / len(y)).max()
                     for m in (plain, step.shift_intercept(plain, y)))
        assert left < 0.01 < 0.03 < off
