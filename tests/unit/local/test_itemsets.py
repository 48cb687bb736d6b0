"""Itemsets of baskets: groups, sampled slots, candidates, and what is estimated of long baskets."""

from itertools import combinations

import numpy as np
import pytest

from dpestim.local import ItemsetEstimator
from dpestim.local.domains.baskets import Baskets
from dpestim.local.domains.itemsets import SHARES
from dpestim.local.domains.padding import groups_of, products, sampled
from dpestim.rng import WordSource


@pytest.mark.parametrize("n", [5, 6, 8, 61, 10_000])
def test_each_user_is_in_exactly_one_group(n):
    groups = groups_of(n, SHARES["svsm"], WordSource(0))
    assert sorted(np.concatenate(groups).tolist()) == list(range(n))
    assert min(map(len, groups)) >= 1
    if n == 10_000:
        assert [len(group) for group in groups] == [100 * share for share in SHARES["svsm"]]
        assert all(abs(group.mean() - n / 2) < 6 * n / np.sqrt(12 * len(group)) for group in groups)


def test_groups_do_not_depend_on_baskets(monkeypatch):
    """Whose report comes when would tell something, otherwise."""
    from dpestim.local.domains import itemsets

    seen = []
    plain = itemsets.groups_of
    monkeypatch.setattr(itemsets, "groups_of", lambda *args: seen.append(plain(*args)) or seen[-1])
    for X in (np.zeros((90, 4)), np.ones((90, 4)), np.eye(90, 4)):
        ItemsetEstimator(random_state=3, n_top=2).fit(X)
    assert all(np.array_equal(a, b) for other in seen[1:] for a, b in zip(seen[0], other))


def test_slots_are_drawn_equally_often():
    """Of sets of 0, 2 and 5 values with three slots: shares of all values and of the empty slots, n = 60,000 each."""
    n, sets = 60_000, ([], [1, 4], [0, 1, 2, 3, 4])
    for own in sets:
        held = np.zeros((n, 5), bool)
        held[:, own] = True
        got = np.bincount(sampled(Baskets.of_table(held), 5, 3, WordSource(len(own))), minlength=6) / n
        m = max(3, len(own))
        want = np.append(held[0] / m, 1 - len(own) / m)
        assert np.abs(got - want).max() < 5 * np.sqrt(0.25 / n)
        assert (got[want == 0] == 0).all()


def test_candidates_are_the_largest_products():
    f = np.array([0.8, 0.5, 0.5, 0.3, 0.01, -0.1])
    sets = [own for size in (2, 3) for own in combinations(range(5), size)]
    w = 0.9 * f / f.max()
    want = sorted((float(np.prod(w[list(own)])) for own in sets), reverse=True)
    found = products(f, 9, 3)
    assert len(set(found)) == 9
    assert np.allclose([np.prod(w[list(own)]) for own in found], want[:9])
    assert len(products(f, 100, 3)) == len(sets)
    assert products(np.array([-1.0, -2.0]), 4, 3) == []


def test_long_baskets_count_less():
    """One basket in twenty has all ten items, each other basket has the first: the bias is that of the proof."""
    n = 40_000
    X = np.zeros((n, 10))
    X[:, 0] = 1
    X[::20] = 1
    est = ItemsetEstimator(6.0, n_top=5, random_state=0).fit(X)
    assert est.padding_lengths_ == (1,)
    told = est.candidates_
    of = dict(zip(told.values, zip(told.frequencies, told.standard_errors)))
    for item in range(10):
        truth, bias = (1.0, 0.05 * 0.9) if item == 0 else (0.05, 0.05 * 0.9)
        assert abs(of[(item,)][0] - (truth - bias)) < 5 * of[(item,)][1]


def test_intervals_of_candidates_cover():
    """60 tables of 4,000 baskets of pairs of four items with rising shares, at level 0.9; n = 60 * 10 at most."""
    rng, inside = np.random.default_rng(0), []
    pairs = np.array(list(combinations(range(4), 2)))
    shares = np.arange(1, 7) / 21
    truth = {(j,): shares[(pairs == j).any(axis=1)].sum() for j in range(4)}
    truth |= {tuple(pair): share for pair, share in zip(pairs.tolist(), shares)}
    for seed in range(60):
        X = np.zeros((4000, 4))
        own = pairs[rng.choice(6, 4000, p=shares)]
        X[np.arange(4000)[:, None], own] = 1
        est = ItemsetEstimator(3.0, method="svsm", n_top=40, random_state=seed).fit(X)
        if est.padding_lengths_[0] >= 2:
            inside += [low <= truth.get(tuple(sorted(found)), 0.0) <= high
                       for found, (low, high) in zip(est.itemsets_.values, est.confidence_interval(0.9))]
    assert len(inside) > 400
    assert 0.86 < np.mean(inside) < 0.94


def test_lists_need_items_and_tables_their_columns():
    with pytest.raises(ValueError, match="items must be declared"):
        ItemsetEstimator().fit([["a"]] * 9)
    with pytest.raises(ValueError, match="column for each of the 3 items"):
        ItemsetEstimator(items=3).fit(np.ones((9, 4)))
    est = ItemsetEstimator(8.0, items=["x", "y"], n_top=1, random_state=0).fit([["y", "y"]] * 500)
    assert est.itemsets_.values == [("y",)]
    assert est.to_frame()["itemset"].tolist() == [("y",)]
    for verb in ("partial_fit", "merge", "fit_parts"):
        assert not hasattr(est, verb)
