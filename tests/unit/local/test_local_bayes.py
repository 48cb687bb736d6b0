"""Naive Bayes from reports: agreement with the plain one, the law of a report, domains, refusals, strict mode."""

import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.naive_bayes import CategoricalNB

from dpestim import config_context
from dpestim.exceptions import PrivacyLeakWarning
from dpestim.local import LDPNaiveBayes

RNG = np.random.default_rng(0)
N = 20_000
Y = RNG.choice([0, 1, 2], N, p=[0.6, 0.35, 0.05])
CODES = np.minimum(RNG.integers(0, 3, (N, 3)) + (Y[:, None] == [1, 2, 5]), 2)
CATEGORIES = [[0, 1, 2]] * 3
MIXED = pd.DataFrame({"town": np.array(["a", "b", "c"])[CODES[:, 0]], "age": 20.0 + 30 * CODES[:, 1]})
FRAME = {"classes": [0, 1, 2], "categories": {"town": ["a", "b", "c"], "age": None}, "bounds": {"age": (0, 100)}}


def test_almost_without_noise_it_is_the_plain_one():
    model = LDPNaiveBayes(80.0, classes=[0, 1, 2], categories=CATEGORIES, n_sampled=3, random_state=0).fit(CODES, Y)
    plain = CategoricalNB().fit(CODES, Y)
    np.testing.assert_allclose(model.class_prior_, np.exp(plain.class_log_prior_), atol=1e-3)
    for ours, theirs in zip(model.feature_log_prob_, plain.feature_log_prob_):
        np.testing.assert_allclose(np.exp(ours), np.exp(theirs), atol=0.02)
    assert (model.predict(CODES) == plain.predict(CODES)).mean() > 0.99
    assert model.score(CODES, Y) == (model.predict(CODES) == Y).mean()


def test_the_law_of_a_whole_report_by_enumeration():
    """What 2 features by 2 classes report together keeps epsilon for any two rows, and uses 0.98 of it."""
    model = LDPNaiveBayes(1.0, classes=[0, 1], categories=[[0, 1], [0, 1, 2]], n_sampled=2)
    laws = [model.randomizer(0), model.randomizer(1)]
    assert [law.epsilon for law in laws] == [Fraction(1, 2)] * 2
    matrices = [[[float(p) for p in row] for row in law.transition_matrix()] for law in laws]
    rows = {(c, u, v): np.outer(matrices[0][2 * c + u], matrices[1][3 * c + v])
            for c, u, v in product(range(2), range(2), range(3))}
    worst = max(float((a / b).max()) for a in rows.values() for b in rows.values())
    assert np.exp(0.98) < worst <= np.exp(1.0) * (1 + 1e-12)


def test_draws_are_even_and_the_number_of_reports_is_counted():
    model = LDPNaiveBayes(1.0, classes=[0, 1, 2], categories=CATEGORIES, random_state=0).fit(CODES, Y)
    told = [m for _, _, m in model._columns.shares(model._counts)]
    assert model.n_sampled_ == 1
    assert sum(told) == N
    assert max(abs(m - N / 3) for m in told) < 5 * np.sqrt(N * 2 / 9)  # (alpha = 2e-6)
    assert "1 of 3 columns" in str(model.privacy_)
    assert LDPNaiveBayes(12.0, classes=[0, 1], categories=CATEGORIES).fit(CODES[:9], Y[:9] > 0).n_sampled_ > 1


def test_frames_of_both_kinds_and_names():
    one = LDPNaiveBayes(2.0, **FRAME, random_state=0).fit(MIXED, Y)
    two = LDPNaiveBayes(2.0, **FRAME, random_state=0).fit(pl.DataFrame(MIXED.to_dict("list")), Y)
    three = LDPNaiveBayes(2.0, classes=[0, 1, 2], categories=[["a", "b", "c"], None], bounds=(0, 100), random_state=0)
    three.fit(MIXED.to_numpy(), Y)
    for other in (two, three):
        for a, b in zip(one.feature_log_prob_, other.feature_log_prob_):
            np.testing.assert_array_equal(a, b)
    assert list(one.feature_names_in_) == ["town", "age"]
    assert [logs.shape for logs in one.feature_log_prob_] == [(3, 3), (3, 8)]
    with pytest.raises(ValueError, match="feature names"):
        one.predict(MIXED[["age", "town"]])
    with config_context(strict=True):
        LDPNaiveBayes(2.0, **FRAME).fit(MIXED, Y).predict(MIXED)
    pd.testing.assert_frame_equal(pd.DataFrame(one.predict_proba(MIXED)),
                                  pd.DataFrame(pickle.loads(pickle.dumps(one)).predict_proba(MIXED)))


def test_what_is_no_category_says_nothing():
    model = LDPNaiveBayes(4.0, classes=[0, 1, 2], categories=CATEGORIES, random_state=0).fit(CODES, Y)
    np.testing.assert_allclose(model.predict_proba(np.full((1, 3), 99))[0], model.class_prior_)


@pytest.mark.parametrize("X", [CODES[:1], np.zeros((50, 3), int)])
def test_one_row_one_class_constant_columns(X):
    model = LDPNaiveBayes(1.0, classes=[0, 1, 2], categories=CATEGORIES, random_state=0)
    proba = model.fit(X, np.zeros(len(X), int)).predict_proba(CODES[:20])
    assert np.isfinite(proba).all()
    assert (proba > 0).all()


def test_what_is_not_declared_is_learned_and_leaks():
    with pytest.warns(PrivacyLeakWarning, match="classes and categories and bounds"):
        model = LDPNaiveBayes(1.0, random_state=0).fit(MIXED, Y)
    assert not model.privacy_.is_finite
    assert [logs.shape[1] for logs in model.feature_log_prob_] == [3, 8]
    for frame in (pl.DataFrame(MIXED.to_dict("list")), MIXED.convert_dtypes()):
        with pytest.warns(PrivacyLeakWarning):
            again = LDPNaiveBayes(1.0, random_state=0).fit(frame, Y)
        np.testing.assert_array_equal(again.class_prior_, model.class_prior_)
    with pytest.warns(PrivacyLeakWarning, match="bounds were"):
        LDPNaiveBayes(1.0, classes=[0, 1, 2], categories=[["a", "b", "c"], None]).fit(MIXED.to_numpy(), Y)
    with config_context(strict=True), pytest.raises(ValueError, match="strict mode"):
        LDPNaiveBayes(1.0, classes=[0, 1, 2]).fit(CODES, Y)


@pytest.mark.parametrize(("change", "message"), [
    ({"bounds": {"height": (0, 1)}}, "bounds must have a pair"),
    ({"categories": ["a", "b"]}, "categories must have one list"),
    ({"categories": [["a", "b", "c"], [20, 50, 80]], "bounds": (0, 1)}, "bounds must be None"),
    ({"bounds": ([0, 0], [1, 1])}, "bounds"),
    ({"categories": [["a"], None, None], "bounds": (0, 1)}, "2 columns"),
])
def test_domains_that_do_not_fit(change, message):
    with pytest.raises(ValueError, match=message):
        LDPNaiveBayes(1.0, **{**FRAME, **change}).fit(MIXED, Y)


def test_a_pair_of_bounds_for_any_number_of_columns():
    make = {"classes": [0, 1, 2], "bounds": (0.0, 2.0)}
    client = LDPNaiveBayes(1.0, **make, random_state=0)
    assert client.privacy_.epsilon == 1
    reports = client.privatize(CODES, Y)
    with pytest.raises(ValueError, match="the number of columns"):
        LDPNaiveBayes(1.0, **make).aggregate(reports)
    server = LDPNaiveBayes(1.0, **{**make, "bounds": ([0.0] * 3, [2.0] * 3)}).aggregate(reports)
    assert LDPNaiveBayes(1.0, **make).merge(server).n_users_ == N


def test_servers_of_other_domains_do_not_merge():
    make = {"classes": [0, 1, 2], "bounds": ([0.0] * 3, [2.0] * 3)}
    model = LDPNaiveBayes(1.0, **make, random_state=0).fit(CODES, Y)
    for change in ({"n_bins": 4}, {"bounds": ([0.0] * 3, [2.0, 2.0, 3.0])}, {"classes": ["0", "1", "2"]},
                   {"n_sampled": 2}):
        other = LDPNaiveBayes(1.0, **{**make, **change}, random_state=1)
        other.fit(CODES, Y if "classes" not in change else Y.astype(str))
        with pytest.raises(ValueError, match="the same"):
            model.merge(other)
    with pytest.raises(ValueError, match="NaN"):
        model.predict([[np.nan, 0, 0]])


def test_accuracy_is_that_of_the_plain_one_less_a_little():
    """Seeded, epsilon = 2, 20,000 users: within 0.05 of the plain model, and above the likeliest class."""
    X = RNG.normal(Y[:, None] > 0, 1.0, (N, 3))
    model = LDPNaiveBayes(2.0, classes=[0, 1], bounds=([-3.0] * 3, [4.0] * 3), random_state=0).fit(X, (Y > 0) * 1)
    right = (X.sum(axis=1) > 1.5 + np.log(0.6 / 0.4)) == (Y > 0)
    assert right.mean() - 0.05 < model.score(X, (Y > 0) * 1) > 0.7
