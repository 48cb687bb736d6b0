"""PrivGraph: all answers and choices over all graphs of four nodes and their neighbours, and the law of the choices."""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse, stats

from dpestim.graph import PrivGraphGenerator
from dpestim.graph.generators import communities, privgraph
from dpestim.graph.generators.blocks import Blocks, whole_numbers
from dpestim.graph.generators.communities import chosen, merged, scores_of, weights_of
from dpestim.graph.reading import read_graph
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import WordSource
from dpestim.testing.generators import PAIRS, matrix_of
from dpestim.testing.reported import hear
from dpestim.testing.tools import same_state

ALPHA = 1e-6


def exact_chances(scores, n_nodes, n, table):
    """Return the logarithms of the probabilities of every community for every node."""
    weights = np.full((n_nodes, n), float(table[0]))
    nodes, own, times = scores
    weights[nodes, own] = table[np.minimum(times, len(table) - 1)].astype(float)
    return np.log(weights / weights.sum(1, keepdims=True))


def losses(est, monkeypatch, labels=(0, 1, 1, 0), codes=range(64)):
    """Return the largest loss of all that a fit hears, over graphs of four nodes, told the same answers."""
    asked, told, heard = [], [], {}

    def choose(scores, n_nodes, n, table, source):
        asked.append(exact_chances(scores, n_nodes, n, table))
        return np.array(labels)

    monkeypatch.setattr(privgraph, "chosen", choose)
    monkeypatch.setattr(privgraph, "merged", lambda counts: np.array([0, 1]))
    monkeypatch.setattr(privgraph, "likely_degrees", lambda noisy, rate, most: noisy)  # (slow, and sees no graph)
    for code in codes:
        asked.clear()
        answers, learned = hear(type(est)(**est.get_params()), matrix_of(code), None, told)
        heard[code] = answers, list(asked), learned
    worst = 0.0
    for code, edge in itertools.product(heard, range(len(PAIRS))):
        if code ^ 1 << edge not in heard:
            continue
        one, two = heard[code], heard[code ^ 1 << edge]
        assert same_state(one[2], two[2])  # told the same, they learn the same
        lost = sum(float(law.rate_of_decay) * np.abs(a - b).sum() for (law, a), (_, b) in zip(one[0], two[0]))
        # nodes choose independently: the worst choice of each
        lost += sum(float(np.abs(a - b).max(1).sum()) for a, b in zip(one[1], two[1]))
        worst = max(worst, lost)
    return worst


@pytest.mark.parametrize(("rounds", "labels"), [(0, (0, 1, 1, 0)), (2, (0, 1, 1, 0)), (1, (0, 0, 0, 1))])
def test_all_graphs_of_four_nodes_keep_epsilon(rounds, labels, monkeypatch):
    est = PrivGraphGenerator(2.0, groups=2, rounds=rounds, community_fraction=0.4, random_state=0)
    worst = losses(est, monkeypatch, labels)
    assert worst <= 2 * (1 + 1e-9)
    assert worst > (1.99 if not rounds else 1.7)  # (a choice loses r less the growth of its sum)


def test_a_generator_that_spends_too_much_is_seen(monkeypatch):
    class Twice(PrivGraphGenerator):
        def _rates(self):
            between, choice, counted = super()._rates()
            return between, 2 * choice, counted

    class NoHalf(PrivGraphGenerator):
        def _rates(self):
            between, choice, counted = super()._rates()
            return between, choice, 2 * counted

    for cls in (Twice, NoHalf):
        assert losses(cls(2.0, groups=2, rounds=2, community_fraction=0.6, random_state=0), monkeypatch,
                      codes=[0, *(1 << edge for edge in range(len(PAIRS)))]) > 2.01


@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.7, 3.0, 40.0])
def test_weights_rise_by_no_more_than_the_rate(rate):
    exact = canonical_epsilon(rate)
    table = [int(w) for w in weights_of(exact, 100)]
    shrink = communities.exp_bounds(exact, 60)[0]
    assert all(a <= b and b * shrink <= a for a, b in itertools.pairwise(table))
    assert table[-1] * 100 < 1 << 62
    assert table[0] == 1 << 20


def test_choices_follow_the_weights():
    """Four nodes, five communities: frequencies of all choices; the same test rejects another rate."""
    graph, labels, n = read_graph(np.ones((4, 4)) - np.eye(4)), np.array([1, 1, 3, 4]), 5
    scores, table = scores_of(graph, labels, n), weights_of(canonical_epsilon(0.8), n)
    assert scores[2].tolist() == [1, 1, 1, 1, 1, 1, 2, 1, 2, 1]
    many = 4_000
    repeated = tuple(np.concatenate([own + (4 * k if place == 0 else 0) for k in range(many)])
                     for place, own in enumerate(scores))
    drawn = chosen(repeated, 4 * many, n, table, WordSource(0)).reshape(many, 4)

    def p_value(table):
        chances = np.exp(exact_chances(scores, 4, n, table))
        seen = np.array([np.bincount(drawn[:, i], minlength=n) for i in range(4)])
        return stats.chi2.sf(((seen - many * chances) ** 2 / (many * chances)).sum(), 4 * (n - 1))

    assert p_value(table) > ALPHA
    assert p_value(weights_of(canonical_epsilon(0.6), n)) < ALPHA


def test_communities_of_public_groups_are_kept():
    rng, teams = np.random.default_rng(0), np.arange(300) % 10
    upper = np.triu(rng.random((300, 300)) < np.where(teams[:, None] == teams, 0.4, 0.02), 1)
    graph = sparse.csr_array((upper | upper.T).astype(np.uint8))
    est = PrivGraphGenerator(2.0, groups=teams, random_state=0).fit(graph)
    made = est.sample(0).tocoo()
    assert est.n_communities_ == 10
    inside = lambda g: (teams[g.row] == teams[g.col]).mean()  # noqa: E731
    assert abs(inside(made) - inside(graph.tocoo())) < 0.1
    assert abs(made.nnz / graph.nnz - 1) < 0.1


def test_blocks_have_the_edges_that_were_asked_for():
    rng, labels = np.random.default_rng(0), np.array([0] * 5 + [1] * 40 + [2])
    blocks = Blocks(labels, np.arange(1.0, 47.0), 3)
    one, two = np.array([0, 0, 1, 2, 0]), np.array([0, 1, 1, 2, 2])
    cells, places = blocks.cells(one, two, np.array([7, 30, 100, 4, 3]), rng)
    assert len(np.unique(cells)) == len(cells)
    assert np.bincount(places, minlength=5).tolist() == [7, 30, 100, 0, 3]
    assert whole_numbers(np.array([0.5, 0.25, 0.25]), 8, rng).tolist() == [4, 2, 2]
    assert merged(np.array([[9.0, 8, 0, 1], [8, 9, 0, 0], [0, 0, 9, 7], [1, 0, 7, 9]])).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("wrong", [{"groups": 0}, {"groups": 2000}, {"groups": [0, 1]}, {"groups": "a"},
                                   {"groups": [[0], [1, 2]]}, {"rounds": -1}, {"rounds": True}, {"epsilon": 1e-30},
                                   {"community_fraction": 1}])
def test_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        PrivGraphGenerator(**{"epsilon": 1.0, **wrong}).fit(np.zeros((5, 5)))


@pytest.mark.parametrize("matrix", [np.zeros((9, 9)), 1 - np.eye(9), np.zeros((2, 2))])
def test_empty_and_complete_graphs(matrix):
    for groups in (None, 1, np.arange(len(matrix)).astype(str)):
        made = PrivGraphGenerator(3.0, groups=groups, random_state=0).fit(matrix).sample(0)
        assert made.shape == matrix.shape
        assert made.nnz <= 2 * math.comb(len(matrix), 2)
