"""Itemsets of baskets: the laws of padded sets, groups, candidates, and what is estimated of long baskets."""

from copy import deepcopy
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array

from dpestim import distributed
from dpestim.collection import Survey
from dpestim.local import ItemsetEstimator, PrivKVMEstimator
from dpestim.local.domains.asking import SHARES, Shares
from dpestim.local.domains.padding import PaddedCodes, PaddedSlots, padded_law
from dpestim.local.domains.questions import (
    BasketColumn,
    BasketColumns,
    Heard,
    Question,
    largest_biases,
    lengths,
    products,
)
from dpestim.privacy.exact import uses_enough, within
from dpestim.rng import WordSource


def sets_of(n):
    return [own for size in range(n + 1) for own in combinations(range(n), size)]


@pytest.mark.parametrize("law", [PaddedCodes(1.0, 4, 1), PaddedCodes(0.5, 4, 3), PaddedCodes(2.0, 3, 7),
                                 PaddedCodes(6.0, 2, 2), PaddedSlots(1.0, 4, 2), PaddedSlots(3.0, 3, 5)], ids=str)
def test_no_report_tells_any_two_baskets_apart_by_more_than_epsilon(law):
    """All baskets of few items, exactly; and expected estimates are the shares of who draws an item."""
    rows = [law.outcome_law(own) for own in sets_of(law.n_values)]
    assert sorted(rows) == sorted(law.transition_matrix())
    assert all(sum(row) == 1 for row in rows)
    worst = max(max(column) / min(column) for column in zip(*rows))
    assert worst <= law.worst_ratio()
    assert within(worst, 1, law.epsilon)
    assert uses_enough(law.worst_ratio(), 1, law.epsilon)
    if isinstance(law, PaddedCodes):
        assert worst == law.worst_ratio()
        for own, row in zip(sets_of(law.n_values), rows):
            told = law.estimate(np.array([float(p) for p in row]), 1)
            chance = 1 / max(law.length, len(own))
            assert np.allclose(told, [chance * (k in own) for k in range(law.n_values)], atol=1e-9)


@pytest.mark.parametrize("kind", [PaddedCodes, PaddedSlots])
def test_reports_have_the_law(kind):
    """Reports of sets of 0, 2 and 4 of four values, with three slots: n = 60,000 each, within 5 standard deviations."""
    n, law = 60_000, kind.make(1.0, 4, 3)
    question = Question(2, tuple((k,) for k in range(4)), 3)
    columns = BasketColumns([BasketColumn(law, None, 4, question)])
    for own in ([], [1, 3], [0, 1, 2, 3]):
        held = np.zeros((n, 4))
        held[:, own] = 1
        data = columns.read([held], 1, False)
        got = columns.randomize_and_count(data, WordSource(len(own)), 0, 1)[0] / n
        want = np.array([float(p) for p in law.outcome_law(own)])
        assert np.abs((got - want) / np.sqrt(want * (1 - want) / n)).max() < 5
        few = columns.randomize([data[0][10:20]], WordSource(len(own)), 10, 1)
        assert np.array_equal(few, columns.randomize([data[0][:20]], WordSource(len(own)), 0, 1)[10:])


def test_the_law_of_the_least_variance_is_taken():
    assert isinstance(padded_law(Fraction(4), 40, 5), PaddedCodes)
    assert isinstance(padded_law(Fraction(1), 1000, 1), PaddedSlots)
    for epsilon, size, length in ((4, 40, 5), (1, 1000, 1), (2, 40, 1), (1, 40, 20)):
        laws = [kind.make(Fraction(epsilon), size, length) for kind in (PaddedCodes, PaddedSlots)]
        assert padded_law(Fraction(epsilon), size, length).spread == min(law.spread for law in laws)


def test_groups_do_not_depend_on_baskets():
    """Whose report comes when would tell something, otherwise."""
    counted = []
    for X in (np.zeros((90, 4)), np.ones((90, 4)), np.eye(90, 4)):
        est = ItemsetEstimator(random_state=3, n_top=2).fit(X)
        counted.append([n for _, _, n in est._rounds])
    assert counted[0] == counted[1] == counted[2]
    n = 10_000
    groups = Shares(SHARES["svsm"]).of_rows(WordSource(0), n)
    assert sorted(np.concatenate(groups).tolist()) == list(range(n))
    for group, share in zip(groups, SHARES["svsm"]):
        assert abs(len(group) - n * share / 100) < 5 * np.sqrt(n / 4)


@pytest.mark.parametrize("n", [5, 6, 8])
def test_rounds_may_have_no_users(n):
    for seed in range(6):
        est = ItemsetEstimator(method="svsm", n_top=2, random_state=seed).fit(np.ones((n, 4)))
        assert est.n_users_ == n
        assert len(est.itemsets_.values) == len(est.confidence_interval()) == 2


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
    est = ItemsetEstimator(6.0, items=10, n_top=5, random_state=0)
    est.resume_at({"number": 2, "candidates": [[k] for k in range(10)], "length": 1}).partial_fit(X)
    told = Heard(est._columns.columns[0], est._counts, n)
    truth, bias = np.where(np.arange(10) == 0, 1.0, 0.05), 0.05 * 0.9
    assert (np.abs(told.frequencies - (truth - bias)) < 5 * told.errors).all()
    sizes = [0.95, *np.zeros(len(lengths(10)) - 2), 0.05]
    assert np.allclose(largest_biases(sizes, 10), [0.05 * (1 - length / 10) for length in lengths(10)])
    assert ItemsetEstimator(6.0, n_top=5, random_state=0).fit(X).padding_lengths_ == (10,)  # (of so many users)


@pytest.mark.ci
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
        inside += [low <= truth.get(tuple(sorted(found)), 0.0) <= high
                   for found, (low, high) in zip(est.itemsets_.values, est.confidence_interval(0.9))]
    assert len(inside) > 400
    assert 0.86 < np.mean(inside) < 0.94


def test_lists_need_items_and_tables_their_columns():
    with pytest.raises(ValueError, match="items must be declared"):
        ItemsetEstimator().fit([["a"]] * 9)
    with pytest.raises(ValueError, match="column for each of the 3 items"):
        ItemsetEstimator(items=3).fit(np.ones((9, 4)))
    with pytest.raises(ValueError, match="not in items"):
        ItemsetEstimator(items=3).fit([[True]] * 9)  # (which is no 1)
    with pytest.raises(ValueError, match="at least two"):
        ItemsetEstimator(items=1, method="svsm").fit([[0]] * 9)
    est = ItemsetEstimator(8.0, items=["x", "y"], n_top=1, random_state=0).fit([["y", "y"]] * 500)
    assert est.itemsets_.values == [("y",)]
    assert est.to_frame()["itemset"].tolist() == [("y",)]


@pytest.mark.parametrize("server", [pytest.param(ItemsetEstimator(2.0, items=4, n_top=2, random_state=0), id="sets"),
                                    pytest.param(PrivKVMEstimator(2.0, keys=4, random_state=0), id="pairs")])
def test_parts_answer_the_round_that_is_open(server):
    X = csr_array(np.eye(300, 4))
    est = deepcopy(server).partial_fit(X).next_round()
    parts = [X[:100], X[100:]]
    reports = np.concatenate(list(distributed.privatize(est, parts)))
    assert np.array_equal(reports, est.client().privatize(X))
    one, other = est.client().aggregate(reports), distributed.aggregate(est, [reports[:9], reports[9:]])
    assert np.array_equal(one._counts[0], other._counts[0])


def test_each_round_is_a_survey():
    """A device and a second server that know the file only, in all five rounds."""
    X = np.random.default_rng(0).random((3000, 5)) < [0.7, 0.5, 0.3, 0.1, 0.1]
    server = ItemsetEstimator(4.0, items=list("abcde"), method="svsm", n_top=3, random_state=0)
    for k, part in enumerate(np.split(X, 5)):
        if k:
            server.next_round()
        survey = Survey.from_json(Survey(server, name="shop").to_json())
        messages = survey.encode(survey.client(random_state=4).privatize(part))
        server.merge(survey.server().aggregate(survey.decode(messages)))
    assert server.itemsets_.values == [("a",), ("b",), ("a", "b")]
    assert server.n_users_ == 3000


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_frames_are_found_by_their_names(library):
    frames = pytest.importorskip(library)
    held = frames.DataFrame({"z": [1] * 500, "y": [0] * 500, "x": [0] * 500})
    for items in (["x", "y", "z"], None):
        est = ItemsetEstimator(8.0, items=items, n_top=1, random_state=0).fit(held)
        assert est.itemsets_.values == [("z",)]
    lists = [["x"], ["x", "y"], []] * 200
    one, other = (ItemsetEstimator(8.0, items=["x", "y"], n_top=2, random_state=0).fit(X).itemsets_ for X in (
        lists, frames.Series(lists)))
    assert np.array_equal(one.frequencies, other.frequencies)
    with pytest.raises(ValueError, match="with its name"):
        ItemsetEstimator(items=["x", "y", "secret"]).fit(held)
