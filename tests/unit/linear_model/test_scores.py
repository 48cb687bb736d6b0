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
    for classes in ([False, True], [True, False], [3, 7], [-1.5, 2.0], np.array([3, 7], np.uint8)):
        of = DPLogisticRegression(8.0, data_norm=4.0, classes=classes, random_state=0)
        of.fit(X, np.asarray(classes)[(Y == "yes").astype(int)])
        np.testing.assert_array_equal(of.predict(X), of.classes_.take((of.decision_function(X) > 0).astype(int)),
                                      strict=True)
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


def sparse_table(dtype, scale=1.0):
    """Return rows of few entries, some of them longer than their norm may be, with one of no entries."""
    rows = np.random.default_rng(3).normal(size=(400, 20)) * scale
    rows[np.random.default_rng(4).random(rows.shape) < 0.6] = 0.0
    rows[7] = 0.0
    table = csr_array(rows)
    table.indices, table.indptr = table.indices.astype(dtype), table.indptr.astype(dtype)
    return table, rows


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sparse_rows_have_the_scores_of_dense_ones_in_one_pass_and_by_the_other_way(dtype, n_classes, monkeypatch):
    model = fitted(n_classes, data_norm=2.0)
    table, rows = sparse_table(dtype)
    for array in (table.data, table.indices, table.indptr):
        array.setflags(write=False)
    expected = model.decision_function(rows)
    assert model._plain_sparse_scores(table) is not None
    np.testing.assert_allclose(model.decision_function(table), expected, rtol=1e-12, atol=1e-13)
    assert (model.predict(table) == model.predict(rows)).all()
    for other in (table.astype(np.float32), table.tocsc(), table.tocoo()):
        assert model._plain_sparse_scores(other) is None
        np.testing.assert_allclose(model.decision_function(other), expected, rtol=1e-5, atol=1e-6)
    monkeypatch.setattr(model, "_plain_sparse_scores", lambda _: None)
    np.testing.assert_allclose(model.decision_function(table), expected, rtol=1e-12, atol=1e-13)
    with config_context(strict=True):
        np.testing.assert_allclose(model.decision_function(table), expected, rtol=1e-12, atol=1e-13)


def test_what_one_pass_over_sparse_rows_cannot_read_is_read_as_before():
    model = fitted(data_norm=2.0)
    twice = csr_array((np.array([3.0, -2.0, 1.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), (2, 20))
    np.testing.assert_allclose(model.decision_function(twice), model.decision_function(twice.toarray()), rtol=1e-12)
    table, rows = sparse_table(np.int32, 1e200)  # squares overflow
    np.testing.assert_allclose(model.decision_function(table), model.decision_function(rows), rtol=1e-9)
    table, _ = sparse_table(np.int32)
    table.data[5] = np.nan
    with pytest.raises(ValueError, match="column"):
        model.decision_function(table)
    for index, start in (([0, 20], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 3, 2]), ([0, 1], [0, 1, 9])):
        broken = csr_array((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), (2, 20))
        broken.indices, broken.indptr = np.array(index), np.array(start)
        with pytest.raises(ValueError, match="valid sparse matrix"):
            model.decision_function(broken)
    with pytest.raises(ValueError, match="features"):
        model.decision_function(csr_array(np.eye(3)))
    empty = csr_array((3, 20))
    np.testing.assert_array_equal(model.decision_function(empty), np.full(3, model.intercept_[0]))


def test_sparse_rows_whose_arrays_lie_apart_are_read():
    model = fitted(data_norm=2.0)
    table, _ = sparse_table(np.int32)
    expected = model.decision_function(table)
    for name in ("indices", "indptr", "data"):
        apart = np.repeat(getattr(table, name), 2)[::2]
        setattr(table, name, apart)
        np.testing.assert_array_equal(model.decision_function(table), expected)
