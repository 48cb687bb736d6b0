"""All that a model keeps follows from what was released: with the same answers, rows of others leave the same model.

What mechanisms return is recorded, and given again to a fit of neighbouring (or quite other) rows. What they were asked
then differs by no more than they hide, and every attribute has the same bytes: nothing read a row, or a secret number
of rows, beside them.
"""

import math
import pickle

import numpy as np
import pytest

from dpestim import Numbers, config_context
from dpestim.ensemble import (
    DPGradientBoostingClassifier,
    DPGradientBoostingRegressor,
    DPRandomForestClassifier,
    DPRandomForestRegressor,
    base,
)
from dpestim.linear_model import DPLinearRegression, DPLogisticRegression, DPRidge, logistic
from dpestim.statistics.calibrated_noise import Answers, Noise
from dpestim.tree import DPDecisionTreeClassifier, DPDecisionTreeRegressor
from dpestim.tree.columns import BinnedColumns
from dpestim.tree.tree import Tree


def kept(model):
    """Return what a fitted model holds, in the order in which it does, as bytes."""
    return [(name, pickle.dumps(value)) for name, value in vars(model).items() if name not in ("_bound", "privacy_")]


class Replayed(Answers):
    """Answers that are recorded; with answers of before, these."""

    asked, before = None, None

    def add(self, law, integers):
        return self._told(law, integers, super().add)

    def choose(self, law, scores):
        return self._told(law, scores, super().choose)

    def _told(self, law, integers, answer):
        at = len(self.asked)
        found = answer(law, integers) if self.before is None else self.before[at][2]
        self.asked.append((law, np.array(integers, np.int64), found))
        return found


BOOSTERS = [
    (DPGradientBoostingRegressor, {"target_bounds": (-4, 4)}, [9.0, math.nan]),
    (DPGradientBoostingClassifier, {"classes": [0, 1]}, [1, 7]),
    (DPGradientBoostingClassifier, {"classes": [0, 1, 2], "delta": 1e-5, "edges_fraction": 0.2}, [2, 7]),
    (DPGradientBoostingRegressor, {"target_bounds": (-4, 4), "delta": 1e-5, "max_iter": 3}, [-9.0, math.nan]),
]


@pytest.mark.parametrize("relation", ["substitution", "add_remove"])
@pytest.mark.parametrize(("cls", "params", "targets"), BOOSTERS)
def test_boosting_keeps_what_histograms_and_choices_tell(monkeypatch, cls, params, targets, relation):
    """In strict mode, with missing and infinite numbers, what is no category or class, and pairs that are chosen."""
    monkeypatch.setattr(base, "Answers", Replayed)
    rng = np.random.default_rng(0)
    X = np.where(rng.random((30, 3)) < 0.2, math.nan, rng.normal(0, 3, (30, 3)))
    X[:, 2] = rng.integers(0, 4, 30)
    y = rng.integers(0, 2, 30).astype(type(targets[0]))
    for target, row in zip(targets, ([math.nan, math.inf, 9], [-math.inf, 1e300, math.nan])):
        place = int(rng.integers(30))
        others, answers = (np.insert(a, place, b, axis=0) for a, b in ((X, row), (y.astype(float), target)))
        if relation == "substitution":
            others, answers = (np.delete(a, place + 1, axis=0) for a in (others, answers))
        found, asked, edges = [], [], {}
        monkeypatch.setattr(cls, "_edges_to_find", _first_edges(edges, BinnedColumns._edges_to_find))
        with config_context(strict=True):
            for rows, own in ((X, y.astype(float)), (others, answers)):
                Replayed.before, Replayed.asked = asked[0] if asked else None, []
                model = cls(2.0, bounds=(-2, 2), categories={2: [0, 1, 2]}, interactions=1, n_bins=8, random_state=0,
                            neighbours=relation, **params)
                found.append(kept(model.fit(rows, own)))
                asked.append(Replayed.asked)
        moved = [(law, one - two) for (law, one, _), (_, two, _) in zip(*asked, strict=True)]
        noise, power = moved[0][0], 2 if "delta" in params else 1
        assert [np.abs(change).max() <= law.sensitivity for law, change in moved if law is not noise] == [True]
        total = sum(int((np.abs(change).astype(object) ** power).sum()) for law, change in moved if law is noise)
        assert 0 < total <= noise.sensitivity**power
        assert found[0] == found[1]


def _first_edges(known, find_edges):
    """Return `find_edges` with edges that are found once: they are another mechanism's, with a budget of its own."""

    def edges_to_find(self, *args):
        find, rest = find_edges(self, *args)
        return find and (lambda source: known.setdefault("bins", find(source))), rest

    return edges_to_find


@pytest.mark.parametrize("cls", [DPLinearRegression, DPRidge])
@pytest.mark.parametrize("params", [{}, {"delta": 1e-6}, {"delta": 1e-6, "method": "adassp"}])
@pytest.mark.parametrize("n_others", [30, 7])
def test_linear_models_keep_what_moments_tell(monkeypatch, cls, params, n_others):
    """Estimates without shrinkage and their errors, too: how many rows there are is secret for one more or less."""
    released = {}

    class Plan:
        def __init__(self, plan):
            self._plan = plan

        def __getattr__(self, name):
            return getattr(self._plan, name)

        def draw(self, *args):
            return pickle.loads(released.setdefault("moments", pickle.dumps(self._plan.draw(*args))))

    plan = cls._plan
    monkeypatch.setattr(cls, "_plan", lambda *args: Plan(plan(*args)))
    found, rng = [], np.random.default_rng(0)
    for n in (30, n_others):
        X = rng.uniform(-1, 1, (n, 3))
        neighbours = "substitution" if n_others == 30 else "add_remove"
        model = cls(5.0, bounds=(-1, 1), target_bounds=(-1, 1), neighbours=neighbours, **params)
        found.append(kept(model.fit(X, X[:, 0] if n == 30 else -X[:, 1])))
    assert found[0] == found[1]


@pytest.mark.parametrize("params", [{}, {"multi_class": "ovr"}, {"delta": 1e-6}, {"perturbation": "gradient"}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_models_keep_what_perturbed_minima_and_counts_tell(monkeypatch, params, n_classes):
    """How coefficients are stretched follows from them, from noisy counts of classes, and from public numbers."""
    released, fitted, shares, found = {}, DPLogisticRegression._fitted, logistic.class_shares, []
    monkeypatch.setattr(DPLogisticRegression, "_fitted",
                        lambda *args: released.setdefault("w", fitted(*args)).copy())
    monkeypatch.setattr(logistic, "class_shares", lambda *args: released.setdefault("n", shares(*args)).copy())
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(40, 2)), rng.integers(0, n_classes, 40)
        X[seed, 0], y[seed + 2] = (math.nan, math.inf)[seed], 9 * seed
        with config_context(strict=True):
            model = DPLogisticRegression(4.0, data_norm=1.0, classes=list(range(n_classes)), random_state=0, **params)
            found.append(kept(model.fit(X, y)))
    assert found[0] == found[1]


@pytest.mark.parametrize("cls", [DPDecisionTreeClassifier, DPDecisionTreeRegressor, DPRandomForestClassifier,
                                 DPRandomForestRegressor])
@pytest.mark.parametrize(("bounds", "n_others"), [((-2, 2), 30), ((-2, 2), 7), (Numbers(-2, 2, missing=True), 30), (
    Numbers(-2, 2, missing=True), 0)])
def test_trees_keep_what_choices_and_leaves_tell(monkeypatch, cls, bounds, n_others):
    released, add, grown, found = {}, Noise.add, Tree._grown, []
    monkeypatch.setattr(Noise, "add", lambda *args: released.setdefault("leaves", add(*args)).copy())
    monkeypatch.setattr(Tree, "_grown", lambda *args: [a.copy() for a in released.setdefault("splits", grown(*args))])
    params = {"target_bounds": (-1, 1)} if "Regressor" in cls.__name__ else {"classes": [0, 1]}
    if "Forest" in cls.__name__:
        params |= {"n_estimators": 3, "delta": 1e-5}
    rng = np.random.default_rng(0)
    for n in (30, n_others):
        X, y = rng.normal(0, 3, (n, 2)), rng.integers(0, 2, n).astype(float)
        X[:1], y[1:2] = (math.nan, math.inf), 9
        neighbours = "substitution" if n_others == 30 else "add_remove"
        with config_context(strict=True):
            found.append(kept(cls(2.0, bounds=bounds, max_depth=3, neighbours=neighbours, **params).fit(X, y)))
    assert found[0] == found[1]


def test_what_reads_rows_beside_is_seen(monkeypatch):
    stretched = logistic.stretched
    fitted, released, found = DPLogisticRegression._fitted, {}, []

    def leaks(w, law, n_rows):
        return stretched(w, law, n_rows) * (1 + 1e-15 * len(found))

    monkeypatch.setattr(logistic, "stretched", leaks)
    monkeypatch.setattr(DPLogisticRegression, "_fitted", lambda *args: released.setdefault("w", fitted(*args)).copy())
    for _ in range(2):
        X = np.eye(2)[[0, 1] * 20]
        model = DPLogisticRegression(4.0, data_norm=1.0, classes=[0, 1], fit_intercept=False, random_state=0)
        found.append(kept(model.fit(X, np.arange(40) % 2)))
    assert found[0] != found[1]
