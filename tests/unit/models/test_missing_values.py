"""Numbers that may be missing, in trees, forests and naive Bayes: codes, splits, sensitivities, and refusals."""

import pickle
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import parallel_backend
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from dpestim import Categories, Domain, Numbers, config_context
from dpestim.accounting import Ledger
from dpestim.ensemble import DPRandomForestClassifier, DPRandomForestRegressor
from dpestim.ensemble.splits import random_splits
from dpestim.linear_model import DPLinearSVC, DPLogisticRegression, DPPoissonRegressor
from dpestim.naive_bayes import DPCategoricalNB, DPGaussianNB, gaussian
from dpestim.privacy.exact import exp_upper
from dpestim.statistics.calibrated_noise import noise_for
from dpestim.testing.trees import losses, parts_of
from dpestim.tree import DPDecisionTreeClassifier, DPDecisionTreeRegressor
from dpestim.tree.binning import CategoryBins, NumberBins, codes_of
from dpestim.tree.tree import candidates

BINS = NumberBins((1.0, 2.0, 4.0), missing=True)
DOMAIN = Domain({"age": Numbers(0, 8, missing=True), "height": (-3, 3), "sex": Categories(["F", "M"], missing=True)})
N = 4000


def rows(n=N, seed=0):
    """Return a frame of which one column tells the class by what is missing, and the classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    age = rng.uniform(0, 8, n)
    age[rng.random(n) < 0.1 + 0.8 * y] = np.nan
    return pd.DataFrame({"age": age, "height": rng.normal(0, 1, n), "sex": rng.choice(["F", "M", None], n)}), y


def fitted(cls, X, y, domain=DOMAIN, epsilon=4.0, **more):
    if "Regressor" in cls.__name__:
        return cls(epsilon, bounds=domain, target_bounds=(0, 1), random_state=0, **more).fit(X, np.asarray(y, float))
    return cls(epsilon, bounds=domain, classes=[0, 1], random_state=0, **more).fit(X, y)


TREES = [DPDecisionTreeClassifier, DPDecisionTreeRegressor, DPRandomForestClassifier, DPRandomForestRegressor]


def test_missing_numbers_have_a_code_and_any_side():
    values = np.array([[np.nan, -9.0, 0.5, 1.0, 3.0, 4.0, 9.0]]).T
    codes = codes_of([BINS], values, {}, {})[0]
    assert codes.tolist() == [0, 1, 1, 2, 3, 4, 4]
    sides = [frozenset(np.flatnonzero((codes - np.uint8(shift)) <= t).tolist()) for shift, t in BINS.splits()]
    cuts = [{1, 2}, {1, 2, 3}, {1, 2, 3, 4}]
    assert sides == [{0}, *({0} | cut for cut in cuts), *cuts]
    # (no two splits part all rows alike, and each has rows on both sides)
    assert len({frozenset((side, frozenset(range(7)) - side)) for side in sides}) == len(sides)
    assert [BINS.side(*split) for split in BINS.splits()] == [
        "is missing", "< 1 or is missing", "< 2 or is missing", "< 4 or is missing", "< 1", "< 2", "< 4"]
    most = NumberBins.even(0.0, 255.0, 255)
    most = NumberBins(most.edges, most.low, most.per, missing=True)
    codes = codes_of([most], np.array([[np.nan], [0.0], [300.0]]), {}, {})[0]
    assert codes.tolist() == [0, 1, 255]
    assert ((codes - np.uint8(1)) <= 253).tolist() == [False, True, False]


@pytest.mark.parametrize("bins", [BINS, NumberBins((1.0, 2.0, 4.0)), CategoryBins((("str", "a"), ("str", "b")))])
def test_sums_of_left_sides_are_those_of_their_rows(bins):
    table = np.random.default_rng(0).integers(0, 99, (5, bins.size, 3))
    codes = np.arange(bins.size, dtype=np.uint8)
    for at, (shift, t) in enumerate(bins.splits()):
        inside = (codes - np.uint8(shift)) <= t
        assert np.array_equal(bins.left(table)[:, at], table[:, inside].sum(axis=1))
    assert bins.left(table).shape[1] == len(bins.splits()) == len(candidates([bins])[0])


def test_splits_of_forests_have_rows_on_both_sides_and_are_what_they_were_without_missing_values():
    kinds = [BINS, NumberBins.even(0.0, 1.0, 6), CategoryBins((("str", "a"),))]
    features, shifts, thresholds = random_splits(kinds, 60, 5, 0)
    everything = np.array(list(product(*(range(own.size) for own in kinds))), np.uint8)
    alone = right = 0
    for tree in range(60):
        inside = {0: everything}
        for node, (j, shift, t) in enumerate(zip(features[tree], shifts[tree], thresholds[tree])):
            here = inside.pop(node)
            goes = (here[:, j] - np.uint8(shift)) > t
            inside[2 * node + 1], inside[2 * node + 2] = here[~goes], here[goes]
            if t < 255 and kinds[j].ordered and len(here):
                assert 0 < goes.sum() < len(here)
                alone, right = alone + (j == 0 and shift == 0 and t == 0), right + (j == 0 and shift == 1)
    assert alone > 10
    assert right > 50
    plain = [NumberBins(BINS.edges), *kinds[1:]]
    assert not random_splits(plain, 60, 5, 0)[1][random_splits(plain, 60, 5, 0)[0] < 2].any()


@pytest.mark.parametrize("more", [{}, {"delta": 1e-5}, {"neighbours": "add_remove", "max_depth": 3}])
@pytest.mark.parametrize("cls", [*TREES, DPGaussianNB])
def test_what_is_missing_is_learned(cls, more):
    X, y = rows()
    if cls is DPGaussianNB or "Tree" in cls.__name__:
        more = {key: value for key, value in more.items() if (key != "delta" or cls is DPGaussianNB) and (
            key != "max_depth" or cls is not DPGaussianNB)}
    elif "neighbours" in more:
        more = {**more, "n_estimators": 10}
    numbers = DOMAIN[["age", "height"]] if cls is DPGaussianNB else DOMAIN
    X = X[numbers.names]
    model = fitted(cls, X, y, numbers, **more)
    found = model.predict(X) > 0.5
    assert (found == y).mean() > 0.88  # (.9 is what it tells)
    if cls is DPGaussianNB:
        assert np.allclose(np.exp(model.missing_log_prob_[:, 0]), [0.1, 0.9], atol=0.03)
        assert np.isneginf(model.missing_log_prob_[:, 1]).all()
        assert np.allclose(model.theta_[:, 0], 4, atol=0.5)
        assert np.allclose(model.var_[:, 0], 64 / 12, rtol=0.4)
    elif cls is DPDecisionTreeClassifier:
        assert "age is missing:" in model.export_text()


def test_a_tree_of_chosen_splits_reads_an_edge_beside_missing_values():
    X, _ = rows()
    y = ((X["age"] < 3) | X["age"].isna()).to_numpy()
    model = fitted(DPDecisionTreeClassifier, X, y, epsilon=8.0, max_depth=1)
    assert "age < 3 or is missing:" in model.export_text()
    assert model.score(X, y.astype(int)) > 0.98


@pytest.mark.parametrize("cls", [*TREES, DPGaussianNB])
def test_frames_clones_pickles_summaries_and_ledgers(cls):
    X, y = rows(400)
    names = ["age", "height"] if cls is DPGaussianNB else X.columns.tolist()
    X, domain = X[names], DOMAIN[names]
    model = fitted(cls, X, y, domain)
    want = model.predict(X)
    for table in (pl.from_pandas(X), X.convert_dtypes()):
        assert np.array_equal(fitted(cls, table, y, domain).predict(table), want)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), want)
    assert np.array_equal(clone(model).fit(X, y.astype(float)).predict(X), want)
    with parallel_backend("threading"):
        assert np.isfinite(cross_val_score(clone(model), X, y, n_jobs=2, cv=2)).all()
    with config_context(strict=True):
        assert np.array_equal(fitted(cls, X.assign(age=X["age"].astype(float)), y, domain).predict(X), want)
    if "Forest" in cls.__name__ or cls is DPGaussianNB:
        more = {} if cls is DPGaussianNB else {"n_estimators": 3, "max_depth": 2}
        whole = fitted(cls, X, y, domain, **more).summarize(X, y)
        parts = clone(whole).summarize(X[:150], y[:150]).merge(clone(whole).summarize(X[150:], y[150:]))
        assert all(map(np.array_equal, parts.summary_.totals, whole.summary_.totals))
        assert np.isfinite(parts.release().predict(X)).all()
        with pytest.raises(ValueError, match="the same parameters"):
            clone(whole).summarize(X, y).merge(clone(whole).set_params(bounds=domain | {"age": (0, 8)}).summarize(
                X.fillna({"age": 1.0}), y))
    ledger = Ledger(5.0)
    fitted(cls, X, y, domain, ledger=ledger)
    assert ledger.spent().epsilon == 4


@pytest.mark.parametrize("relation", ["substitution", "add_remove"])
@pytest.mark.parametrize("params", [{"criterion": "gini"}, {"criterion": "entropy"}, {"target_bounds": (-1, 1)}, {
    "n_estimators": 2}])
def test_no_tree_is_too_likely_for_a_neighbour_whose_value_is_missing(params, relation):
    cls = DPDecisionTreeClassifier if "criterion" in params else (
        DPDecisionTreeRegressor if "target_bounds" in params else DPRandomForestClassifier)
    params = params if "target_bounds" in params else {**params, "classes": [-1, 1]}
    est = cls(2.0, bounds=Numbers(-2, 2, missing=True), n_bins=2, max_depth=2, neighbours=relation, **params)
    side = np.arange(16) % 2
    rows, y, worst = np.where(side, 1.0, np.nan)[:, None], 2.0 * side - 1, 0
    for value, target in product((np.nan, -1.0, 1.0), (-1.0, 1.0)):
        X, other = rows.copy(), y.copy()
        X[-1], other[-1] = value, target
        pair = ((X, other), (X[:-1], other[:-1])) if relation == "add_remove" else ((rows, y), (X, other))
        one, two = (parts_of(est, *each) for each in pair)
        for path in product(range(3), repeat=3 if one[0] is not None else 0):
            worst = max(worst, losses(one, two, path)[0])
    assert Fraction(3, 2) < worst <= exp_upper(Fraction(2))


def test_edges_that_are_found_have_a_code_for_missing_values():
    X, y = rows()
    model = fitted(DPDecisionTreeClassifier, X, y, edges_fraction=0.2)
    assert [own.ordered and own.missing for own in model.bins_] == [True, False, False]
    assert model.score(X, y) > 0.88


@pytest.mark.parametrize("relation", ["substitution", "add_remove"])
def test_the_noise_of_naive_bayes_is_for_the_farthest_neighbours(monkeypatch, relation):
    seen = {}

    class Spy:
        def __init__(self, noise):
            self.noise, self.variance, self.law = noise, noise.variance, noise.law

        def add(self, numbers, source):
            seen["numbers"] = np.array(numbers, float)
            return self.noise.add(numbers, source)

    def spy(epsilon, delta, l1, l2_squared, size):
        seen.update(l1=l1, l2_squared=l2_squared)
        return Spy(noise_for(epsilon, delta, l1, l2_squared, size))

    monkeypatch.setattr(gaussian, "noise_for", spy)
    est = DPGaussianNB(1.0, bounds={0: Numbers(-1, 3, missing=True), 1: Numbers(-1, 3, missing=True), 2: (0, 1)},
                       classes=[0, 1], neighbours=relation, random_state=0)

    def numbers(*kinds):
        est.fit(np.array([(0.0, 0.0, 0.5), *(x for x, _ in kinds)]), [0, *(c for _, c in kinds)])
        return seen["numbers"]

    some = [-1.0, 0.9, 3.0, np.nan]
    sums = [numbers(((a, b, end), c)) for a in some for b in some for end in (0.0, 1.0) for c in (0, 1)]
    none = numbers()
    moved = np.array([a - b for a, b in combinations(sums, 2)] if relation == "substitution" else
                     [own - none for own in sums])
    l1, l2 = np.abs(moved).sum(axis=1), np.square(moved).sum(axis=1)
    # (never less than the farthest neighbours move, and hardly more)
    assert 0.999 * seen["l1"] <= l1.max() <= seen["l1"]
    assert 0.999 * seen["l2_squared"] <= l2.max() <= seen["l2_squared"]


def test_strict_mode_and_undeclared_columns():
    X, y = rows(300)
    broken = X.assign(height=np.where(np.arange(300) % 5 == 0, np.nan, X["height"]))
    for cls in (*TREES, DPGaussianNB):
        names = ["age", "height"] if cls is DPGaussianNB else X.columns.tolist()
        model = fitted(cls, X[names], y, DOMAIN[names])
        with pytest.raises(ValueError, match=r"column 'height' of X .*missing=True.*DPSimpleImputer"):
            fitted(cls, broken[names], y, DOMAIN[names])
        with pytest.raises(ValueError, match=r"column 'height' of X .*missing=True.*DPSimpleImputer"):
            model.predict(broken[names])
        with config_context(strict=True):
            assert len(fitted(cls, broken[names], y, DOMAIN[names]).predict(broken[names])) == 300


def test_models_that_cannot_take_missing_values_say_what_helps():
    X, y = rows(300)
    X, domain = X[["age", "height"]], DOMAIN[["age", "height"]]
    for est in (DPLogisticRegression(1.0, bounds=domain, classes=[0, 1]),
                DPLinearSVC(1.0, bounds=domain, classes=[0, 1]), DPPoissonRegressor(1.0, bounds=domain)):
        with pytest.raises(ValueError, match=r"column 'age' of X .*DPSimpleImputer"):
            est.fit(X, y)
        est.fit(X.fillna(1.0), y)
        with pytest.raises(ValueError, match=r"column 'age' of X .*DPSimpleImputer"):
            est.predict(X)


def test_categories_that_may_be_missing_are_a_value_of_naive_bayes():
    X, y = rows()
    X = pd.DataFrame({"age": np.where(X["age"].isna(), None, "known")})
    model = DPCategoricalNB(2.0, categories=Domain({"age": Categories(["known"], missing=True)}), classes=[0, 1],
                            random_state=0).fit(X, y)
    assert model.score(X, y) > 0.88
    plain = LogisticRegression().fit(X["age"].isna().to_numpy()[:, None], y)
    assert plain.coef_[0, 0] > 3
