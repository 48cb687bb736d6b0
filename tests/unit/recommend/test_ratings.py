"""Ratings: how tables become matrices, how well similar items predict, and sums of blocks."""

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from dpestim import config_context, get_config, set_config
from dpestim.accounting import Ledger
from dpestim.inspection import privacy_card
from dpestim.privacy import Neighbours
from dpestim.recommend import DPItemSimilarity, base, item_similarity, rating_matrix
from dpestim.testing import ratings as family

TABLE = [("ann", "tea", 5), ("bob", "tea", 0), ("bob", "milk", 4)]


def tastes(n_users, n_items, seed=0):
    """Return ratings of users of two tastes, each of a third of the items."""
    rng = np.random.default_rng(seed)
    rated = rng.random((n_users, n_items)) < 1 / 3
    likes = (np.arange(n_users)[:, None] + np.arange(n_items)) % 2
    return sparse.csr_array(np.where(rated, 2.0 + 2 * likes + rng.integers(0, 2, rated.shape), 0))


@pytest.mark.parametrize("frame", [list, pd.DataFrame, lambda rows: pl.DataFrame(rows, orient="row", strict=False)])
def test_tables_become_matrices_and_what_is_wrong_is_named(frame):
    matrix = rating_matrix(frame(TABLE), ["milk", "tea", "beer"])
    assert matrix.shape == (2, 3)
    assert matrix.nnz == 3  # (a rating of 0 is one)
    assert matrix.toarray().tolist() == [[0, 5, 0], [4, 0, 0]]
    assert rating_matrix(frame(TABLE), ["milk", "tea"], users=["cleo", "bob", "ann"]).toarray().tolist() == [
        [0, 0], [4, 0], [0, 5]]
    for items, more, match in ((["tea"], [], "items of the table must be listed"), (["tea", "tea"], [], "that differ"),
                               (["milk", "tea"], [("bob", "tea", 1)], "once at most"),
                               (["milk", "tea"], [("cleo", "tea", np.nan)], "finite"),
                               (["milk", "tea"], [("cleo", "tea", "secret")], "finite")):
        with pytest.raises(ValueError, match=match) as caught:
            rating_matrix(frame(TABLE) if not more else [*TABLE, *more], items)
        assert "secret" not in str(caught.value)
    with pytest.raises(ValueError, match="listed in users="):
        rating_matrix(TABLE, ["milk", "tea"], users=["ann"])


def test_an_empty_table_and_users_without_ratings_are_learned_from():
    nothing = rating_matrix([], 4, users=["ann"])
    model = DPItemSimilarity(1.0, delta=1e-6, bounds=(1, 5), random_state=0).fit(nothing)
    assert model.recommend(nothing, 4).shape == (1, 4)
    assert model.recommend(nothing[:0], 2).shape == (0, 2)
    assert model.predict(nothing[:0]).shape == (0, 4)


def test_similar_items_are_found_and_predict_better_than_means():
    X, new = tastes(6_000, 12), tastes(200, 12, seed=1)
    model = DPItemSimilarity(1.0, delta=1e-6, bounds=(1, 5), n_neighbors=5, random_state=0).fit(X)
    same = (model.neighbors_ % 2 == np.arange(12)[:, None] % 2) == (model.similarities_ > 0)
    assert same[model.similarities_ != 0].all()
    assert (model.similarities_ != 0).mean() > 0.8
    rows, items = new.nonzero()
    hidden = np.arange(len(rows)) % 5 == 0
    known = sparse.csr_array((new.data[~hidden], (rows[~hidden], items[~hidden])), shape=new.shape)
    truth = new.data[hidden]
    error = model.predict(known, (rows[hidden], items[hidden])) - truth
    assert np.sqrt(np.mean(error**2)) < 0.85 * np.sqrt(np.mean((model.item_means_[items[hidden]] - truth) ** 2))


def test_blocks_change_nothing_but_noise(monkeypatch):
    """With hardly any noise, items by blocks of any size are those of all at once."""
    X = tastes(3_000, 11)
    models = []
    for block in (1_000, 4, 3):
        monkeypatch.setattr(item_similarity, "_BLOCK", block)
        models.append(DPItemSimilarity(80.0, delta=0.5, bounds=(1, 5), n_neighbors=10, random_state=0).fit(X))
    for model in models[1:]:
        one, two = (m._alike.toarray() for m in (models[0], model))
        assert np.abs(one - two).max() < 0.01
        assert np.abs(one).max() > 0.1
    assert all(np.allclose(m._alike.toarray(), m._alike.toarray().T) for m in models)


def test_each_block_gets_noise(monkeypatch):
    monkeypatch.setattr(item_similarity, "_BLOCK", 2)
    family.check_ratings_keep_epsilon(family.Rated(DPItemSimilarity(**DPItemSimilarity._test_params()[2])))


def test_what_is_asked_wrongly_is_refused():
    X = tastes(50, 4)
    model = DPItemSimilarity(1.0, delta=1e-6, bounds=(1, 5), random_state=0).fit(X)
    for n in (0, 5, True, 1.5):
        with pytest.raises(ValueError, match="from 1 to"):
            model.recommend(X, n)
    for pairs in (([0], [0, 1]), ([0.5], [1]), ([50], [0]), ([0], [-1]), ([[0]], [[1]])):
        with pytest.raises(ValueError, match="pairs must be"):
            model.predict(X, pairs)
    with pytest.raises(ValueError, match="one for each item"):
        model.predict(tastes(5, 3))


def test_ratings_outside_the_bounds_count_as_the_nearest():
    X = tastes(500, 5)
    far = X.copy()
    far.data = np.where(far.data == far.data.max(), 1e12, far.data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, two = (DPItemSimilarity(1.0, delta=1e-6, bounds=(1, X.data.max()), random_state=0).fit(table)
                    for table in (X, far))
    assert np.array_equal(one.item_means_, two.item_means_)
    assert np.array_equal(one.similarities_, two.similarities_)


@pytest.mark.parametrize("bounds", [(0.0, 5e-324), (1.0, math.nextafter(1, 2)), (3.0, math.nextafter(3, 4)), (1, 5)])
def test_no_bounds_let_a_rating_leave_the_range_that_the_noise_is_for(bounds):
    values = np.array([-np.inf, -1.0, *bounds, sum(bounds) / 2, 1e300, np.inf])
    steps = base.steps_of(values, bounds).tolist()
    assert -base.STEPS <= min(steps) <= max(steps) <= base.STEPS


@pytest.mark.parametrize("most", [1_677_721, 15_005_998])
def test_weights_for_one_rating_keep_the_norm_that_the_noise_is_for(most):
    """The squared move of products by one rating, at its largest."""
    weights = item_similarity.falling_weights(most, 3_000)
    assert weights[:2] == [most, most]
    for k in range(1, 3_000):
        v, w = weights[k:k + 2]
        assert (v - w) ** 2 * k * (k + 1) // 2 + w * w * (k + 1) <= most**2
        assert w * w * (k + 1) > 0.8 * most**2


def test_a_rating_moves_products_by_the_norm_at_most_and_nearly_that_much():
    """By brute force over all signs of residuals of all users of up to five ratings, in units of the largest one."""
    most = 15_005_998
    weights = item_similarity.falling_weights(most, 5)
    largest = []
    for n in range(5):
        for signs in itertools.product((-1, 0, 1), repeat=n):
            before, after = (weights[len(r)] * np.outer(r, r).astype(object) for r in (signs, (*signs, 1)))
            after[:n, :n] -= before
            largest.append(int((after[np.triu_indices(n + 1)] ** 2).sum()))
    assert 0.999 * most**2 < max(largest) <= most**2


def test_one_rating_protected_predicts_better_and_says_so():
    X = tastes(1_500, 12)
    rows, items = X.nonzero()
    errors = []
    for neighbours in ("add_remove", "rating"):
        model = DPItemSimilarity(0.5, delta=1e-6, bounds=(1, 5), neighbours=neighbours, random_state=0).fit(X)
        errors.append(np.mean((model.predict(X, (rows, items)) - X.data) ** 2))
    assert errors[1] < 0.8 * errors[0]
    assert model.privacy_.neighbours is Neighbours.RATING
    assert "k ratings of a user" in model.privacy_.notes[0]
    assert "one rating of one user" in str(privacy_card(model))
    with pytest.raises(ValueError, match="no bound for substitution"):
        model.privacy_.to("substitution")


def test_a_ledger_of_ratings_makes_one_rating_what_is_protected():
    ledger = Ledger(1.0, delta=1e-5, neighbours="rating")
    model = DPItemSimilarity(0.5, delta=1e-6, bounds=(1, 5), ledger=ledger, random_state=0).fit(tastes(50, 4))
    assert model.privacy_.neighbours is Neighbours.RATING
    assert float(ledger.spent().epsilon) == 0.5
    with pytest.raises(ValueError, match="rating neighbours"):
        DPItemSimilarity(0.1, delta=1e-6, bounds=(1, 5), neighbours="add_remove", ledger=ledger).fit(tastes(50, 4))
    assert float(ledger.spent().epsilon) == 0.5
    few = Ledger(1.0, delta=1e-5)
    with pytest.raises(ValueError, match="rating neighbours"):
        DPItemSimilarity(0.1, delta=1e-6, bounds=(1, 5), neighbours="rating", ledger=few).fit(tastes(50, 4))


@pytest.mark.parametrize("declared", ["add_remove", "substitution"])
def test_a_ledger_of_ratings_does_not_weaken_what_a_block_or_the_process_declares(declared):
    """Whole users were declared: one rating must not be protected instead, and the ledger refuses."""
    ledger = Ledger(1.0, delta=1e-5, neighbours="rating")
    model, other = (DPItemSimilarity(0.5, delta=1e-6, bounds=(1, 5), ledger=ledger, random_state=0) for _ in range(2))
    with config_context(neighbours=declared), pytest.raises(ValueError, match="rating neighbours"):
        other.fit(tastes(50, 4))
    with pytest.raises(ValueError, match="rating neighbours"):
        other.fit(tastes(50, 4))  # (the block has been kept)
    before = get_config()["neighbours"]
    set_config(neighbours=declared)
    try:
        with pytest.raises(ValueError, match="rating neighbours"):
            model.fit(tastes(50, 4))
    finally:
        set_config(neighbours=before)
    assert float(ledger.spent().epsilon) == 0
    assert model.fit(tastes(50, 4)).privacy_.neighbours is Neighbours.RATING


def test_too_many_items_for_weights_of_one_rating_are_refused_before_the_charge():
    ledger = Ledger(1.0, delta=1e-5, neighbours="rating")
    model = DPItemSimilarity(0.5, delta=1e-6, bounds=(1, 5), means_fraction=0.999999, ledger=ledger)
    with pytest.raises(ValueError, match="lower means_fraction"):
        model.fit(sparse.csr_array((3, 2_000)))
    assert float(ledger.spent().epsilon) == 0
