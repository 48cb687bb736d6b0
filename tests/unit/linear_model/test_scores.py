"""Predictions of linear models do not depend on how rows lie in memory, and refuse what is not finite by its column."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from dpestim import config_context
from dpestim.linear_model import DPLogisticRegression

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5000, 20)).astype(np.float32).astype(np.float64)
Y = np.where(X[:, 0] > 0, "yes", "no")


def fitted(n_classes=2, **declared):
    names = ["no", "yes", "never"][:n_classes]
    return DPLogisticRegression(8.0, classes=names, random_state=0, **declared).fit(X, Y)


@pytest.mark.parametrize("declared", [{"data_norm": 4.0}, {"bounds": (-3.0, 3.0)}, {"data_norm": 9.0, "n_classes": 3}])
def test_order_and_type_of_rows_change_no_bit(declared):
    model = fitted(**declared)
    apart = np.zeros((len(X), 41))
    apart[:, ::2][:, :20] = X
    for call in (model.decision_function, model.predict, model.predict_proba):
        expected = call(X)
        for rows in (np.asfortranarray(X), X.astype(np.float32), X.astype(">f8"), apart[:, ::2][:, :20],
                     pd.DataFrame(X), np.asfortranarray(X.astype(np.float32))):
            np.testing.assert_array_equal(call(rows), expected)
        np.testing.assert_array_equal(call(X[7:8]), expected[7:8])  # (a row has the same scores in any company)


def test_predictions_are_of_the_signs_of_scores():
    model = fitted(data_norm=4.0)
    scores, chances = model.decision_function(X), model.predict_proba(X)
    assert (model.predict(X) == np.where(scores > 0, "yes", "no")).all()
    assert model.predict(X).dtype == model.classes_.dtype
    np.testing.assert_allclose(chances, np.stack([1 / (1 + np.exp(scores)), 1 / (1 + np.exp(-scores))], axis=1), 1e-13)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("declared", [{"data_norm": 4.0}, {"bounds": (-3.0, 3.0)}])
def test_values_that_are_not_finite_are_refused_but_in_strict_mode(wrong, declared):
    model, rows = fitted(**declared), X.copy()
    rows[4321, 3] = wrong
    for table in (rows, np.asfortranarray(rows), rows.astype(np.float32)):
        with pytest.raises(ValueError, match="column 3 of X contains NaN or infinity"):
            model.predict_proba(table)
    with config_context(strict=True):
        assert np.isfinite(model.decision_function(rows)).all()


def test_sparse_rows_have_the_scores_of_dense_ones():
    model, rows = fitted(data_norm=4.0), X * (RNG.random(X.shape) < 0.2)
    rows[:3] *= np.array([[1e300], [1e200], [1e-200]])
    dense, sparse = model.decision_function(rows), model.decision_function(csr_array(rows))
    np.testing.assert_allclose(sparse, dense, rtol=0, atol=1e-13)
