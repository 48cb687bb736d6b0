"""Recommendations from flipped lists: the four cells of the paper, blocks, ledgers, frames, and what is recommended."""

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.recommend import DPLCFRecommender, lcf, pairs, rating_matrix


def lists_of(n_users, n_items, seed=0):
    """Return lists of users of two tastes, each of half of the items of the taste."""
    rng = np.random.default_rng(seed)
    likes = (np.arange(n_users)[:, None] + np.arange(n_items)) % 2 == 1
    return sparse.csr_array((likes & (rng.random(likes.shape) < 0.5)).astype(float))


def test_estimates_are_those_of_the_inverse_of_the_law_and_its_variance():
    """(P x P)^-1 times the four counts of patterns, and the sum over cells of FORMULAS 12, as fractions."""
    model = DPLCFRecommender(1.5, n_items=2, random_state=0)
    bits = np.array([[0, 0]] * 5 + [[0, 1]] * 3 + [[1, 0]] * 2 + [[1, 1]] * 7, np.uint8)
    model.aggregate(sparse.csr_array(bits))
    p, q = model.bit_law_.p, model.bit_law_.q
    assert p + q == 1
    row = [Fraction(p, p - q), Fraction(-q, p - q)]  # (the first row of P^-1, by whether a bit is 1 or 0)
    g = {(a, b): row[1 - a] * row[1 - b] for a in (0, 1) for b in (0, 1)}
    wanted = 5 * g[0, 0] + 3 * g[0, 1] + 2 * g[1, 0] + 7 * g[1, 1]
    assert model.co_occurrences()[0, 1] == pytest.approx(float(wanted))
    v = model.bit_law_.variance
    for a, b in g:
        chances = {(c, d): (p if a == c else q) * (p if b == d else q) for c, d in g}
        mean = sum(chances[y] * g[y] for y in g)
        assert mean == a * b
        assert float(sum(chances[y] * g[y] ** 2 for y in g) - mean**2) == pytest.approx(v * (a + b) + v * v)


def test_estimates_are_near_the_truth_and_blocks_change_nothing(monkeypatch):
    X = lists_of(9_000, 13)
    model = DPLCFRecommender(1.0, n_items=13, random_state=0).fit(X)
    truth = (X.T @ X).toarray()
    off = (model.co_occurrences() - truth) / model.standard_errors()
    assert np.abs(off).max() < 4.5
    assert 0.7 < np.sqrt(np.mean(off[np.triu_indices(13)] ** 2)) < 1.3
    monkeypatch.setattr(lcf, "_BLOCK", 1_000)
    monkeypatch.setattr(pairs, "_BLOCK", 5)
    again = DPLCFRecommender(1.0, n_items=13, random_state=0).fit(X)
    assert np.array_equal(again.co_occurrences(), model.co_occurrences())
    assert np.array_equal(again.similarities_, model.similarities_)
    assert np.allclose(again._alike.toarray(), model._alike.toarray())


@pytest.mark.parametrize("similarity", ["cosine", "jaccard"])
def test_similarities_are_those_of_the_lists_where_noise_is_little(similarity):
    X = lists_of(4_000, 6)
    model = DPLCFRecommender(20.0, n_items=6, similarity=similarity, n_neighbors=5, random_state=0).fit(X)
    both = (X.T @ X).toarray()
    one = np.diag(both)
    below = np.sqrt(np.outer(one, one)) if similarity == "cosine" else one[:, None] + one - both
    np.fill_diagonal(both, 0)
    assert np.abs(model._alike.toarray() - both / below).max() < 0.01


def test_items_of_a_taste_are_recommended_and_noise_alone_is_not_similar():
    X = lists_of(8_000, 12)
    model = DPLCFRecommender(1.0, n_items=12, random_state=0).fit(X)
    mine = sparse.csr_array(([1.0, 1.0], ([0, 0], [2, 6])), shape=(1, 12))
    assert set((model.recommend(mine, 4)[0] % 2).tolist()) == {0}
    assert (model.similarities_ >= 0).all()
    nothing = DPLCFRecommender(1.0, n_items=40, random_state=0).fit(sparse.csr_array((3_000, 40)))
    assert (nothing.similarities_ > 0).mean() < 0.03
    assert model.recommend(sparse.csr_array((1, 12)), 12).shape == (1, 12)


def test_a_ledger_pays_for_the_whole_list_or_by_item_where_it_is_opened_for_that():
    X = lists_of(50, 12)
    by_item, by_list = DPLCFRecommender(0.5, n_items=12), DPLCFRecommender(0.5, n_items=12, protects="list")
    assert (by_item.privacy_.epsilon, by_list.privacy_.epsilon) == (6, Fraction(1, 2))
    assert by_list.privacy_.relaxed_epsilon == Fraction(1, 24)
    with Ledger(6.5) as ledger:
        clone(by_item).fit(X)
        clone(by_list).fit(X)
    assert ledger.spent().epsilon == Fraction(13, 2)
    with pytest.raises(ValueError, match="is left"), Ledger(5.5):
        clone(by_item).fit(X)
    with Ledger(1, relaxation=by_item.privacy_.relaxation) as ledger:
        clone(by_item).fit(X)
        clone(by_item).fit(X)
    assert ledger.spent().epsilon == 1


def test_frames_pickles_and_strict_mode():
    table = pd.DataFrame({"user": ["ann", "bob", "bob"], "item": ["tea", "tea", "milk"], "rating": [5, 0, 4]})
    X = rating_matrix(table, ["milk", "tea", "beer"])
    model = DPLCFRecommender(60.0, n_items=3, reports="sparse", random_state=0)
    assert model.privatize(X).toarray().tolist() == [[0, 1, 0], [1, 1, 0]]  # (a rating of 0 is one)
    fitted = pickle.loads(pickle.dumps(model.fit(X)))
    assert fitted.n_users_ == 2
    assert fitted.aggregate(model.privatize(X)).n_users_ == 4
    with config_context(strict=True):
        strict = clone(model)
    X.data[0] = np.nan
    assert strict.fit(X).n_users_ == 2
    with pytest.raises(ValueError, match="missing"):
        model.fit(X)


def test_one_user_and_more_neighbors_than_items():
    model = DPLCFRecommender(1.0, n_items=2, n_neighbors=20, random_state=0).fit(sparse.csr_array(np.eye(1, 2)))
    assert model.neighbors_.shape == (2, 1)
    assert np.isfinite(model.standard_errors()).all()
