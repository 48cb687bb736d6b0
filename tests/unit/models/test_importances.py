"""Importances of columns: what splits and scores that were released tell, at no cost."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.base import all_estimators
from dpestim.ensemble import DPGradientBoostingClassifier, DPRandomForestClassifier
from dpestim.tree.importances import shares, split_importances

#: All models with importances, in all settings of the registry.
MODELS = [pytest.param(cls, params, id=f"{name}-{k}") for name, cls in all_estimators(("tree", "ensemble"))
          for k, params in enumerate(cls._test_params())]
rng = np.random.default_rng(0)


def test_all_models_of_trees_and_curves_have_importances():
    for name, cls in all_estimators(("tree", "ensemble")):
        assert hasattr(cls, "feature_importances_"), name


@pytest.mark.parametrize(("cls", "params"), MODELS)
def test_importances_add_up_to_one_name_the_column_that_tells_and_cost_nothing(cls, params):
    # (a generous epsilon, as of much noise all columns tell something; in two random trees no split may be of use)
    trees = {"n_estimators": 30, "max_depth": 4} if "n_estimators" in params else {}
    model = cls(**{**params, **trees, "epsilon": 40.0, "random_state": 0})
    with pytest.raises(NotFittedError):
        _ = model.feature_importances_
    X, y = model._test_data(600)
    names = [f"c{j}" for j in range(X.shape[1])]
    model.fit(pd.DataFrame(X, columns=names), y)
    with Ledger(1.0, durability="fast") as book, config_context(strict=True):
        found = model.feature_importances_
    assert len(book) == 0
    assert found.shape == (X.shape[1],)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    assert model.feature_names_in_[found.argmax()] == "c0"  # (targets follow from it)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).feature_importances_, found)
    with pytest.raises(NotFittedError):
        _ = clone(model).feature_importances_


def by_hand(features, thresholds, values, rows, n_features):
    """Return importances of one tree by the definition: impurities of a node less those of its children, by rows."""
    total, inner = np.zeros(n_features), len(features)

    def told(node):
        """Return (rows, sums of values, sums of squared distances from the mean) of what is below a node."""
        if node >= inner:
            n, value = rows[node - inner], np.atleast_1d(values[node - inner])
            return n, n * value, n * np.square(value).sum()
        parts = [told(2 * node + k) for k in (1, 2)]
        n, sums, squares = (a + b for a, b in zip(*parts))
        if thresholds[node] != 255:
            spread = [squares_ - np.square(sums_).sum() / n_ if n_ else 0.0
                      for n_, sums_, squares_ in ((n, sums, squares), *parts)]
            total[features[node]] += spread[0] - spread[1] - spread[2]
        return n, sums, squares

    told(0)
    return total


@pytest.mark.parametrize("shape", [(8,), (8, 3)])
def test_importances_are_what_splits_take_of_the_impurity(shape):
    features = rng.integers(0, 4, (5, 7))
    thresholds = np.where(rng.random((5, 7)) < 0.2, 255, 3)
    values, rows = rng.normal(size=(5, *shape)), np.maximum(rng.normal(5, 5, size=(5, 8)), 0)
    expected = sum(by_hand(*tree, 4) for tree in zip(features, thresholds, values, rows))
    np.testing.assert_allclose(split_importances(features, thresholds, values, rows, 4), expected / expected.sum())


def test_without_a_split_or_a_row_importances_are_zero():
    none = np.zeros((1, 3)), np.full((1, 3), 255), np.ones((1, 4)), np.ones((1, 4))
    assert split_importances(none[0].astype(int), *none[1:], 2).tolist() == [0, 0]
    assert split_importances(np.zeros((1, 3), int), np.zeros((1, 3)), np.ones((1, 4)), np.zeros((1, 4)), 2).sum() == 0
    assert shares(np.zeros(3)).tolist() == [0, 0, 0]
    assert shares(np.array([1e308, 1e308])).tolist() == [0.5, 0.5]


def test_a_pair_counts_half_for_each_of_its_columns():
    X = rng.uniform(-1, 1, (4000, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)  # (single columns tell nothing)
    model = DPGradientBoostingClassifier(20.0, delta=1e-5, bounds=(-1, 1), classes=[0, 1], interactions=[(0, 1)],
                                         random_state=0).fit(X, y)
    found = model.feature_importances_
    assert found[2] < 0.1
    assert found[0] == pytest.approx(found[1], abs=0.1)


def test_noise_gives_columns_that_tell_nothing_some_importance():
    X = rng.uniform(-1, 1, (2000, 4))
    y = (X[:, 0] > 0).astype(int)
    kind = {"bounds": (-1, 1), "classes": [0, 1], "n_estimators": 10, "max_depth": 4, "random_state": 0}
    little, much = (DPRandomForestClassifier(epsilon, **kind).fit(X, y).feature_importances_ for epsilon in (50, 0.05))
    assert little[0] > 0.8
    assert much[0] < little[0]
