"""Naive Bayes and the choice of columns: sensitivities on neighbours, agreement with scikit-learn's namesakes."""

import math

import numpy as np
import pytest
from _neighbours import check_sensitivity
from sklearn import naive_bayes as plain
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.preprocessing import OrdinalEncoder

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.feature_selection import DPSelectKBest
from dpestim.naive_bayes import DPCategoricalNB, DPGaussianNB, categorical, gaussian
from dpestim.postprocessing.shrinkage import kept_of, noise_apart

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 10_000)
X = RNG.normal(Y[:, None] * [1.0, 0.5, 0.0], [1.0, 0.5, 1.0])
CELLS = RNG.integers(0, 4, size=(10_000, 3)) // (1 + (Y[:, None] == [0, 1, 5]))
CORNERS = [(-4.0, 0.0), (4.0, 8.0), (0.0, 4.0), (1.0, 8.0)]
GAUSSIAN = {"bounds": ([-4, 0], [4, 8]), "classes": [0, 1]}
CATEGORICAL = {"categories": [[0, 1, 2], [0, 1]], "classes": [0, 1]}


def neighbours(make, corners, replace):
    """Yield pairs of fits on rows of which one differs, or is missing."""
    rest, known = np.tile([corners[0]], (5, 1)), [0, 1, 0, 1, 0]
    for a in corners:
        for b in corners if replace else [None]:
            for c in (0, 1):
                for e in (0, 1) if replace else [None]:
                    last = (rest, known) if b is None else (np.vstack([rest, b]), [*known, e])
                    yield (lambda a=a, c=c: make().fit(np.vstack([rest, a]), [*known, c]),
                           lambda last=last: make().fit(*last))


@pytest.mark.parametrize("relation", ["substitution", "add_remove"])
@pytest.mark.parametrize(("module", "cls", "params", "corners"), [
    (gaussian, DPGaussianNB, GAUSSIAN, CORNERS),
    (categorical, DPCategoricalNB, CATEGORICAL, [(0, 0), (1, 1), (7, 1)]),
])
def test_one_record_moves_the_integers_by_what_is_claimed(monkeypatch, relation, module, cls, params, corners):
    check_sensitivity(monkeypatch, module, neighbours(
        lambda: cls(**params, neighbours=relation), corners, relation == "substitution"), reached=0.7)


def scores_of(select, rows, y):
    data, n, d = select._read(rows, y, True)
    return select._scores(n, select._sums(data, select._domain(d)), select._domain(d))


@pytest.mark.law
@pytest.mark.parametrize("choice", [
    {"classes": [0, 1, 2]}, {"score_func": "covariance", "target_bounds": (0, 2)},
])
def test_one_row_moves_scores_by_what_is_claimed(choice):
    """2^20 steps, on rows at the corners, where most of that is reached: half of it would be too little."""
    rng, most = np.random.default_rng(1), 0
    select = DPSelectKBest(1, bounds=([-4, 0], [4, 8]), **choice)
    for _ in range(400):
        n = int(rng.integers(2, 7))
        rows, y = np.array(CORNERS)[rng.integers(0, 4, n)], rng.integers(0, 3, n)
        other, z = rows.copy(), y.copy()
        other[0], z[0] = CORNERS[rng.integers(4)], rng.integers(0, 3)
        most = max(most, np.abs(scores_of(select, rows, y) - scores_of(select, other, z)).max())
    assert (1 << 20) * 0.6 < most <= 1 << 20


def test_gaussian_as_the_namesake_does():
    ours, theirs = DPGaussianNB(80.0, bounds=(-6, 9), classes=[0, 1, 2], random_state=0).fit(X, Y), plain.GaussianNB()
    theirs.fit(X, Y)
    assert np.allclose(ours.theta_, theirs.theta_, atol=0.01)
    assert np.allclose(ours.var_, theirs.var_, atol=0.05)
    assert np.allclose(ours.class_prior_, theirs.class_prior_, atol=0.01)
    assert abs(ours.score(X, Y) - theirs.score(X, Y)) < 0.005
    given = DPGaussianNB(80.0, bounds=(-6, 9), classes=[0, 1, 2], priors=[0.2, 0.3, 0.5]).fit(X, Y)
    assert given.class_prior_.tolist() == [0.2, 0.3, 0.5]


def test_categorical_as_the_namesake_does():
    known = [[0, 1, 2, 3]] * 3
    ours, theirs = DPCategoricalNB(80.0, categories=known, classes=[0, 1, 2], random_state=0), plain.CategoricalNB()
    coded = OrdinalEncoder(categories=known).fit_transform(CELLS)
    ours.fit(CELLS, Y)
    theirs.fit(coded.astype(int), Y)
    for a, b in zip(ours.feature_log_prob_, theirs.feature_log_prob_):
        assert np.allclose(np.exp(a), np.exp(b), atol=0.01)
    assert np.allclose(ours.class_count_, theirs.class_count_, atol=10)
    assert np.mean(ours.predict(CELLS) == theirs.predict(coded.astype(int))) > 0.98
    words = ours.predict_proba(np.array([[9, 9, 9]]))
    assert np.allclose(words, ours.class_prior_)  # what is no category says nothing
    none = DPCategoricalNB(1e-3, categories=known, classes=[0, 1, 2]).fit(CELLS[:5], Y[:5])
    assert all((count >= 0).all() for count in none.category_count_)


@pytest.mark.ci
@pytest.mark.law
@pytest.mark.parametrize(("n", "d", "epsilon"), [(1000, 50, 1.0), (1000, 50, 4.0), (5000, 20, 1.0)])
def test_where_noise_drowns_what_columns_say_only_the_prior_is_left(n, d, epsilon):
    """Columns that say nothing, and 3,000 new rows: log-loss within .03 of the prior's, for the median of 7 seeds.

    A single fit may be .2 worse: what it takes to keep what many columns say together, each of which noise may explain
    (the next test but one), is to keep some of what noise says.
    """
    rng = np.random.default_rng(d)
    y, numbers = (rng.random(n + 3000) < 0.3).astype(int), rng.standard_normal((n + 3000, d))
    cells = rng.integers(0, 5, numbers.shape)
    prior = log_loss(y[n:], np.full(3000, 0.3))
    for model, rows in ((DPGaussianNB(epsilon, bounds=(-4, 4), classes=[0, 1]), numbers),
                        (DPCategoricalNB(epsilon, categories=[range(5)] * d, classes=[0, 1]), cells)):
        fits = [clone(model).set_params(random_state=seed).fit(rows[:n], y[:n]) for seed in range(7)]
        losses = [log_loss(y[n:], fit.predict_proba(rows[n:])) for fit in fits]
        assert np.median(losses) < prior + 0.03
        assert max(losses) < prior + 0.25


def test_differences_are_kept_as_far_as_they_are_more_than_noise():
    rng = np.random.default_rng(0)
    noise, sizes = np.repeat([[0.5], [1.0]], 400, axis=1), np.array([[400.0], [100.0]])
    true = rng.standard_normal((2, 400))
    assert kept_of(true + np.sqrt(noise) * rng.standard_normal((2, 400)), noise)[:, 0] == pytest.approx(
        [1 / 1.5, 1 / 2], abs=0.1)  # t / (t + v) of differences of variance t = 1
    assert kept_of(np.sqrt(noise) * rng.standard_normal((2, 400)), noise).max() < 0.05
    assert kept_of(true, noise * 1e-9).min() > 0.999
    sums = rng.standard_normal((2, 100_000)) * 3  # of each class, and what is left of them beside all rows
    apart = sums / sizes - sums.sum(axis=0) / sizes.sum()
    assert noise_apart(sizes, 9.0)[:, 0] == pytest.approx(apart.var(axis=1), rel=0.03)


def test_rare_classes_are_not_taken_for_impossible():
    """1 % of 5,000 rows, d = 20, epsilon 1: the count of the class keeps more than one share of 41."""
    rng = np.random.default_rng(0)
    y, numbers = (np.arange(5000) % 100 == 0).astype(int), rng.standard_normal((5000, 20))
    for seed in range(5):
        model = DPGaussianNB(1.0, bounds=(-4, 4), classes=[0, 1], random_state=seed).fit(numbers, y)
        assert abs(model.class_count_[1] - 50) < 200
        assert log_loss(y, model.predict_proba(numbers)) < 0.09


def test_how_many_rows_there_are_is_secret_where_records_come_and_go():
    for relation, known in (("substitution", 100), ("add_remove", None)):
        with Ledger(1, neighbours=relation, durability="fast") as ledger:
            DPGaussianNB(1.0, bounds=(-6, 9), classes=[0, 1, 2], neighbours=relation).fit(X[:100], Y[:100])
        assert ledger.entries()[0]["n_rows"] == known


def test_the_best_columns_are_chosen_and_named():
    select = DPSelectKBest(2, epsilon=5.0, bounds=(-6, 9), classes=[0, 1, 2], random_state=0).fit(X, Y)
    assert select.get_support(indices=True).tolist() == [0, 1]
    assert select.ranking_.tolist() == [0, 1]
    assert (select.transform(X) == X[:, :2]).all()
    assert list(select.get_feature_names_out()) == ["x0", "x1"]
    assert DPSelectKBest(10, bounds=(-6, 9), classes=[0, 1, 2]).fit(X, Y).support_.all()
    wide = {"bounds": (-6, 9), "target_bounds": (-6, 9)}
    other = DPSelectKBest(1, epsilon=5.0, score_func="covariance", random_state=0, **wide)
    assert other.fit(X, -X[:, 2]).ranking_.tolist() == [2]
    with config_context(strict=True):
        assert other.fit(X[:0], X[:0, 2]).support_.sum() == 1


@pytest.mark.parametrize(("model", "match"), [
    (DPGaussianNB(bounds=(-6, 9), classes=[0, 1, 2], priors=[0.5, 0.5]), "priors"),
    (DPGaussianNB(bounds=(-6, 9), classes=[0, 1, 2], var_smoothing=-1), "var_smoothing"),
    (DPGaussianNB(bounds=(-6, 9), classes=[0, 1, 2], neighbours="friends"), "neighbours"),
    (DPCategoricalNB(categories=[[0, 1]], classes=[0, 1, 2]), "3 columns"),
    (DPCategoricalNB(categories=[[0, 1]] * 3, classes=[0, 1, 2], alpha=0), "alpha"),
    (DPCategoricalNB(categories=[[0, 1]] * 3, classes=[0, 1, 2], class_prior="even"), "class_prior"),
    (DPSelectKBest(0, bounds=(-6, 9), classes=[0, 1, 2]), "k must"),
    (DPSelectKBest(1, bounds=(-6, 9), score_func="f_classif"), "score_func"),
    (DPSelectKBest(1, bounds=(-6, 9), score_func="covariance"), "target_bounds"),
    (DPSelectKBest(1, bounds=(-6, 9), classes=[0, 1]), "classes"),
])
def test_parameters_that_do_not_fit_are_named(model, match):
    with pytest.raises(ValueError, match=match):
        model.fit(X, Y)


def test_many_columns_that_noise_drowns_one_by_one_still_tell_classes_apart():
    """Differences shrink by their evidence, and not all to 0 at once: the majority was .63 right, and so were fits."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    bounds = X.min(axis=0), X.max(axis=0)
    scores = [DPGaussianNB(1.0, delta=1e-5, bounds=bounds, classes=[0, 1], random_state=seed).fit(X, y).score(X, y)
              for seed in range(5)]
    assert np.median(scores) > 0.8


def test_what_is_kept_has_no_cliff():
    """A little less evidence keeps a little less: the part that is kept moves by no jumps, and never is 0."""
    variances = np.full((2, 30), 1.0)
    sizes = np.linspace(0.5, 2.0, 400)
    kept = np.array([kept_of(np.full((2, 30), size), variances)[0, 0] for size in sizes])
    assert (kept > 0).all()
    assert (np.diff(kept) >= 0).all()
    assert np.diff(kept).max() < 0.01
    assert kept[0] < 0.05 < 0.6 < kept[-1]


def test_classes_that_noise_hides_are_taken_as_equal():
    X, y = np.zeros((60, 1)), np.arange(60) % 3
    priors = [DPGaussianNB(0.05, bounds=(-1, 1), classes=[0, 1, 2], random_state=seed).fit(X, y).class_prior_
              for seed in range(60)]
    excess = [math.log(3) + np.log(prior).mean() for prior in priors]  # (of the log-loss, over that of equal ones)
    assert np.median(excess) > -0.02
    assert np.mean(excess) > -0.12
