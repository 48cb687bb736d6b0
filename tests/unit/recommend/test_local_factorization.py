"""Factors of items in rounds: who learns what, few users, frames, ledgers, strict mode, and rounds of their own."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.recommend import FactorRound, LDPMatrixFactorization, own_factors, rating_matrix
from dpestim.recommend.ratings import read_ratings


def tastes(n_users, n_items, seed=0):
    """Return ratings of users of two tastes, each of a half of the items, of which later ones are better."""
    rng = np.random.default_rng(seed)
    rated = rng.random((n_users, n_items)) < 0.5
    likes = (np.arange(n_users)[:, None] + np.arange(n_items)) % 2
    good = np.linspace(0, 1, n_items)
    return sparse.csr_array(np.where(rated, 1.5 + 2 * likes + good + 0.5 * rng.random(rated.shape), 0))


@pytest.mark.ci
def test_factors_predict_better_than_means_of_items_and_means_better_than_none():
    X, new = tastes(20_000, 10), tastes(500, 10, seed=1)
    model = LDPMatrixFactorization(3.0, bounds=(1, 5), n_items=10, n_components=2, random_state=0).fit(X)
    rows, items = new.nonzero()
    hidden = np.arange(len(rows)) % 4 == 0
    known = sparse.csr_array((new.data[~hidden], (rows[~hidden], items[~hidden])), shape=new.shape)
    truth = new.data[hidden]

    def off(guess):
        return np.sqrt(np.mean((guess - truth) ** 2))

    means = np.asarray(X.sum(axis=0)) / np.bincount(X.nonzero()[1])
    assert off(model.predict(known, (rows[hidden], items[hidden]))) < 0.7 * off(means[items[hidden]])
    assert np.corrcoef(model.item_means_, means)[0, 1] > 0.85
    alone = sparse.csr_array((1, 10))
    assert np.allclose(model.predict(alone), np.clip(model.item_means_, 1, 5))  # (nothing is known of such a user)


def test_least_squares_of_a_user_and_blocks(monkeypatch):
    """Against NumPy's own solver, with damping as rows of its own; blocks of users change nothing."""
    X = tastes(40, 6)
    ratings = read_ratings(X)
    rng = np.random.default_rng(0)
    means, factors = rng.normal(size=6), rng.normal(size=(6, 2))
    whole, _ = own_factors.own_factors(ratings, X.data, slice(0, 40), means, factors)
    for u in (0, 7, 39):
        items = X[[u]].nonzero()[1]
        known = np.vstack([np.column_stack([np.ones(len(items)), factors[items]]), np.diag(np.sqrt([2.0, 1.0, 1.0]))])
        left = np.concatenate([X[[u]].data - means[items], np.zeros(3)])
        assert np.allclose(np.linalg.lstsq(known, left, rcond=None)[0], whole[u])
    monkeypatch.setattr(own_factors, "_CELLS", 100)
    blocks = own_factors.blocks_of(ratings, 2)
    assert len(blocks) > 3
    parts = [own_factors.own_factors(ratings, X.data, users, means, factors)[0] for users in blocks]
    assert np.allclose(np.concatenate(parts), whole)


@pytest.mark.parametrize("n_components", [0, 2])
def test_directions_are_the_gradient_of_the_length_of_what_is_left(n_components):
    """By differences: the damped problem of the user is solved anew at each (its numbers are at a minimum)."""
    X = tastes(1, 5)
    ratings, rng = read_ratings(X), np.random.default_rng(1)
    means, factors = rng.normal(size=5), rng.normal(size=(5, n_components))

    def loss(means, factors):
        own, left = own_factors.own_factors(ratings, X.data, slice(0, 1), means, factors)
        return left @ left + own[0] ** 2 @ np.array([2.0, *[1.0] * n_components])

    def loss_of(numbers):
        return loss(means, numbers.reshape(factors.shape)) if n_components else loss(numbers, factors)

    at = factors.ravel() if n_components else means
    slopes = np.array([(loss_of(at + h) - loss_of(at - h)) / 2e-6 for h in np.eye(len(at)) * 1e-6])
    found = own_factors.directions(ratings, X.data, slice(0, 1), means, factors)[0]
    assert np.allclose(found, -slopes / np.linalg.norm(slopes), atol=1e-5)


def test_few_users_leave_rounds_empty_and_odd_ratings_stay_finite():
    model = LDPMatrixFactorization(1.0, bounds=(1, 5), n_items=3, n_components=1, random_state=0).fit(tastes(2, 3))
    assert model.n_rounds_ <= 2
    assert np.isfinite(model.predict(tastes(2, 3))).all()
    with config_context(strict=True):
        X = tastes(50, 3)
        X.data[:3] = np.inf, np.nan, 1e308
        fitted = clone(model).fit(X)
    assert np.isfinite(fitted.item_factors_).all()


def test_all_rounds_of_a_fit_are_paid_once_and_answers_by_round():
    X = tastes(60, 4)
    model = LDPMatrixFactorization(0.5, bounds=(1, 5), n_items=4, n_components=1)
    with Ledger(1.5) as ledger:
        clone(model).fit(X)
        clone(model).privatize(X)
        clone(model).privatize(X)
    assert ledger.spent().epsilon == 1.5
    with pytest.raises(ValueError, match="is left"), Ledger(0.4):
        clone(model).fit(X)


def test_frames_pickles_and_a_round_that_is_sent():
    table = pd.DataFrame({"user": ["ann", "bob", "bob"], "item": ["tea", "tea", "milk"], "rating": [5, 1, 4]})
    X = rating_matrix(table, ["milk", "tea", "beer"])
    device = LDPMatrixFactorization(2.0, bounds=(1, 5), n_items=3, n_components=1, random_state=0)
    server = clone(device)
    told = pickle.loads(pickle.dumps(server.next_round()))
    reports = device.privatize(X, FactorRound(told.number, told.item_means.tolist(), told.item_factors.tolist() and
                                              told.item_factors))
    server.aggregate(reports).next_round()
    assert server.n_rounds_ == 1
    assert server.recommend(X, 3)[1].tolist() == [2, -1, -1]
    with pytest.raises(ValueError, match="one for each item"):
        device.privatize(X[:, :2])
    with pytest.raises(ValueError, match="take fewer factors"):
        LDPMatrixFactorization(bounds=(1, 5), n_items=2_000, n_components=40).next_round()
    with pytest.raises(ValueError, match="pairs must be"):
        server.predict(X, ([0], [3]))


def test_one_drawn_entry_is_what_a_report_says():
    """Reports of "duchi" name an entry, of unrated items as often, and a bit."""
    X = sparse.csr_array(([5.0] * 6_000, ([*range(6_000)], [0] * 6_000)), shape=(6_000, 4))
    model = LDPMatrixFactorization(1.0, bounds=(1, 5), n_items=4, mechanism="duchi", random_state=0)
    entries = np.bincount(model.privatize(X)[:, 0], minlength=4)
    assert entries.shape == (4,)
    assert np.abs(entries - 1_500).max() < 5 * np.sqrt(6_000 * 3 / 16)


@pytest.mark.parametrize("mechanism", ["privunit", "duchi"])
@pytest.mark.parametrize("size", [1e9, 1e160])
@pytest.mark.filterwarnings("error")
def test_no_round_makes_a_device_refuse_or_warn_by_what_its_user_rated(size, mechanism):
    """Factors that leave equations without a solution in floats: whether a report comes must not tell of ratings."""
    model = LDPMatrixFactorization(1.0, bounds=(1, 5), n_items=3, n_components=2, mechanism=mechanism, random_state=0)
    odd = FactorRound(5, np.zeros(3), np.array([[size, 0.0], [size, size], [0.5, 0.0]]))
    both = sparse.csr_array(np.array([[5.0, 0, 0], [0, 5.0, 0], [5.0, 5.0, 5.0], [0, 0, 4.0]]))
    together = own_factors.directions(read_ratings(both), np.ones(6), slice(0, 4), odd.item_means, odd.item_factors)
    for u in range(4):  # (nobody's direction depends on whose equations have none)
        alone = read_ratings(both[[u]])
        one = own_factors.directions(alone, np.ones(len(alone.items)), slice(0, 1), odd.item_means, odd.item_factors)
        assert np.array_equal(one[0], together[u])
    assert together[3].any()
    assert len(model.privatize(both, odd)) == 4
