"""Factors of items: what a user may add, how well they predict, and that blocks and huge numbers change nothing."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from dpestim.accounting import Ledger
from dpestim.central.additive.discrete_gaussian import DiscreteGaussianLaw
from dpestim.central.additive.law import COLUMNS
from dpestim.recommend import DPMatrixFactorization, base, factorization
from dpestim.recommend.ratings import read_ratings


def tastes(n_users, n_items, seed=0):
    """Return ratings of users of two tastes, each of a third of the items."""
    rng = np.random.default_rng(seed)
    likes = (np.arange(n_users)[:, None] + np.arange(n_items)) % 2
    rated = rng.random((n_users, n_items)) < 1 / 3
    return sparse.csr_array(np.where(rated, 2.0 + 2 * likes + rng.integers(0, 2, rated.shape), 0))


def model(epsilon=1.0, **params):
    return DPMatrixFactorization(epsilon, delta=1e-6, bounds=(1, 5), neighbours="add_remove", random_state=0, **params)


def test_factors_predict_better_than_means():
    X, new = tastes(6_000, 12), tastes(200, 12, seed=1)
    fitted = model(n_components=1).fit(X)
    rows, items = new.nonzero()
    hidden = np.arange(len(rows)) % 5 == 0
    known = sparse.csr_array((new.data[~hidden], (rows[~hidden], items[~hidden])), shape=new.shape)
    truth = new.data[hidden]
    error = fitted.predict(known, (rows[hidden], items[hidden])) - truth
    assert np.sqrt(np.mean(error**2)) < 0.75 * np.sqrt(np.mean((fitted.item_means_[items[hidden]] - truth) ** 2))
    factors = fitted.user_factors(known)
    assert factors.shape == (200, 1)
    assert np.abs(np.corrcoef(factors[:, 0], np.arange(200) % 2)[0, 1]) > 0.8


@pytest.mark.parametrize("k", [1, 3, 32])
@pytest.mark.parametrize("start", [True, False])
def test_no_floats_let_a_user_leave_the_norm_that_the_noise_is_for(k, start):
    rng = np.random.default_rng(0)
    found = np.concatenate([rng.normal(0, scale, (200, k)) for scale in (0, 1e-300, 0.1, 1, 1e3, 1e160, 1e300)]
                           + [np.full((1, k), value) for value in (np.nan, np.inf, -np.inf, 1.7e308)])
    integers = factorization.grid(found, start)
    assert integers.dtype == np.int64
    assert ((integers**2).sum(axis=1) <= factorization.NORM_OF_USER**2).all()
    assert (integers**2).sum(axis=1).max() > 0.3 * factorization.NORM_OF_USER**2


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_one_user_moves_all_that_is_asked_by_the_declared_norm_at_most_and_nearly_that_much(n, rounds, monkeypatch):
    """Of a user whose factors and ratings are as long as may be, by the answers of a whole fit without noise."""
    asked = []

    def add(law, exact, source, column=0):
        asked.append((column, exact))
        return exact

    def longest(starts, items, r, factors):
        found = np.zeros((len(items), factors.shape[1]))
        found[:, 0] = 1e9
        return np.full(len(items), -1e9), found

    monkeypatch.setattr(DiscreteGaussianLaw, "add", add)
    monkeypatch.setattr(factorization, "without_itself", longest)
    user = sparse.csr_array((np.full(n, 5.0), (np.zeros(n, int), np.arange(n))), shape=(1, 300))
    model(n_iter=rounds).fit(user)
    assert len(asked) == 2 + 2 * rounds
    # (a block of noise has so many columns: none is drawn twice)
    assert sorted(column // COLUMNS for column, _ in asked) == list(range(len(asked)))
    moved = sum(int(v) ** 2 for _, exact in asked for v in exact.flat)
    assert 0.97 * base.NORM**2 < moved <= base.NORM**2


def test_factors_of_a_rating_are_those_of_the_other_ratings_of_its_user():
    X = tastes(30, 12)
    ratings, factors = read_ratings(X), np.random.default_rng(0).normal(0, 10, (12, 2))
    r = ratings.values - 3
    own, found = factorization.without_itself(ratings.starts, ratings.items, r, factors)
    for place in (0, 5, len(r) - 1):
        user = int(np.searchsorted(ratings.starts, place, side="right")) - 1
        others = np.array([j for j in range(*ratings.starts[user:user + 2]) if j != place])
        alone = factorization.of_users(np.array([0, len(others)]), ratings.items[others], r[others], factors)
        assert np.allclose(own[place], alone[0])
        assert np.allclose(found[place], alone[1])


def test_blocks_change_nothing(monkeypatch):
    X = tastes(700, 6)
    whole = model(n_components=2).fit(X)
    monkeypatch.setattr(factorization, "_BLOCK", 64)
    blocks = model(n_components=2).fit(X)
    assert np.allclose(whole.item_factors_, blocks.item_factors_)


def test_empty_rows_copies_and_seeds():
    nothing = sparse.csr_array((3, 4))
    fitted = model().fit(nothing)
    assert fitted.recommend(nothing, 4).shape == (3, 4)
    assert fitted.predict(nothing[:0]).shape == (0, 4)
    X = tastes(300, 4)
    fitted = model().fit(X)
    for twin in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), clone(fitted).fit(X)):
        assert np.array_equal(twin.predict(X), fitted.predict(X))


def test_one_rating_is_refused_before_the_charge():
    ledger = Ledger(5.0, delta=1e-3, neighbours="add_remove")
    for params, match in (({"neighbours": "rating"}, "neighbours must be"), ({"n_iter": 51}, "n_iter must be"),
                          ({"n_components": 0}, "n_components must be")):
        est = model().set_params(ledger=ledger, **params)
        with pytest.raises(ValueError, match=match):
            est.fit(tastes(20, 4))
    assert float(ledger.spent().epsilon) == 0
    assert model(ledger=ledger).fit(tastes(20, 4)).privacy_.epsilon == ledger.spent().epsilon
