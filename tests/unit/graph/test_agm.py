"""AGM: sensitivities over all graphs of five nodes, all that a fit hears, and attributes as they come in and go out."""

import copy
import itertools

import numpy as np
import pandas as pd
import pytest

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.graph import AGMGenerator
from dpestim.graph.generators import agm
from dpestim.graph.generators.attributes import edge_kinds, kept_edges
from dpestim.graph.generators.blocks import Blocks
from dpestim.graph.generators.closing import closed, graph_of
from dpestim.graph.patterns import Triangles
from dpestim.privacy.exact import canonical_epsilon
from dpestim.testing.generators import PAIRS, matrix_of
from dpestim.testing.reported import hear
from dpestim.testing.tools import same_state

NODES = 5
CELLS = [(i, j) for j in range(NODES) for i in range(j)]
KINDS = [["a", "b"], [0, 1, 2]]


def kept(code, most, order):
    graph = graph_of(np.flatnonzero(code >> np.arange(len(CELLS)) & 1), NODES)
    return {tuple(sorted(pair)) for pair in zip(*(nodes.tolist() for nodes in kept_edges(graph, order, most)))}


@pytest.mark.parametrize("most", [2, 3])
def test_one_edge_changes_three_kept_edges_at_most_over_all_graphs_of_five_nodes(most):
    """And no node keeps more than `most`, and a graph without larger degrees is kept whole."""
    graphs = [kept(code, most, np.array([3, 0, 4, 1, 2])) for code in range(1 << len(CELLS))]
    worst = max(len(graphs[code] ^ graphs[code ^ 1 << cell]) for code in range(1 << len(CELLS))
                for cell in range(len(CELLS)) if not code >> cell & 1)
    assert worst == agm._EDGE
    for code, found in enumerate(graphs):
        whole = [pair for cell, pair in enumerate(CELLS) if code >> cell & 1]
        degrees = np.bincount(np.array(whole, int).ravel(), minlength=NODES)
        assert np.bincount(np.array(list(found), int).ravel(), minlength=NODES).max() <= most
        assert degrees.max() > most or found == set(whole)


def test_attributes_of_a_node_change_twice_its_kept_edges_at_most():
    star = np.array([0, 0, 0]), np.array([1, 2, 3])
    for codes in itertools.product(range(3), repeat=4):
        for kind in range(3):
            other = (kind, *codes[1:])
            change = np.abs(edge_kinds(*star, np.array(codes), 3) - edge_kinds(*star, np.array(other), 3)).sum()
            assert change <= 2 * 3
    assert edge_kinds(*star, np.array([0, 0, 1, 2]), 3).tolist() == [1, 1, 0, 1, 0, 0]  # 00, 10, 11, 20, 21, 22


class Heard:
    """What stands for the ladder, whose law is that of `SubgraphCount`: it remembers what it was asked for."""

    asked = None

    def __init__(self, seen, mechanism):
        Heard.asked = seen.value, float(canonical_epsilon(mechanism.epsilon))

    def draw(self, source):
        return {"value_": 1.0}


def losses(est, monkeypatch, bases=(0, 63, 11)):
    """Return the largest losses of all that a fit hears, around graphs of four nodes: (of an edge, of attributes)."""
    told, heard, first = [], {}, np.array([["a", 0], ["b", 1], ["b", 0], ["a", 0]], dtype=object)
    changed = [first] + [np.concatenate([first[:i], np.array([[a, b]], object), first[i + 1:]]) for i in range(4)
                         for a, b in (("b", 1), ("a", 1))]
    monkeypatch.setattr(agm, "Ladder", Heard)
    monkeypatch.setattr(agm, "likely_degrees", lambda noisy, rate, most: noisy)  # (slow, and sees no graph)
    few = [*bases, *(code ^ 1 << edge for code in bases for edge in range(len(PAIRS)))]
    for code, at in itertools.product(dict.fromkeys(few), range(len(changed))):
        if at and code not in bases[-2:]:
            continue
        asked, learned = hear(copy.copy(est), matrix_of(code), changed[at], told)
        heard[code, at] = asked, learned, Heard.asked

    def lost(one, two):
        assert same_state(heard[one][1], heard[two][1])
        (own, _, (count, epsilon)), (other, _, (another, _)) = heard[one], heard[two]
        assert one[0] != two[0] or count == another
        noise = sum(float(law.rate_of_decay) * np.abs(a - b).sum() for (law, a), (_, b) in zip(own, other))
        return noise + epsilon * (one[0] != two[0])  # (what the ladder may lose for an edge)

    edge = max(lost((code, 0), (code ^ 1 << edge, 0)) for code in bases for edge in range(len(PAIRS)))
    return edge, max(lost((code, 0), (code, at)) for code in bases[-2:] for at in range(1, len(changed)))


def test_edges_and_attributes_each_keep_epsilon(monkeypatch):
    est = AGMGenerator(2.0, categories=KINDS, max_degree=2, link_fraction=0.6, random_state=0)
    edge, attributes = losses(est, monkeypatch)
    assert 1.5 < edge <= 2 * (1 + 1e-9)
    assert 1.99 < attributes <= 2 * (1 + 1e-9)


@pytest.mark.parametrize("unit", ["nodes", "edges", "degrees", "triangles"])
def test_a_generator_that_spends_too_much_is_seen(unit, monkeypatch):
    class More(AGMGenerator):
        def _rates(self, n_nodes, n_kinds):
            rates = super()._rates(n_nodes, n_kinds)
            setattr(rates, unit, 2 * getattr(rates, unit))
            return rates

    assert max(losses(More(2.0, categories=KINDS, max_degree=2, random_state=0), monkeypatch, [63])) > 2.1


def drawn(n=200, seed=0):
    rng = np.random.default_rng(seed)
    teams = rng.choice(["a", "b"], n)
    upper = np.triu(rng.random((n, n)) < np.where(teams[:, None] == teams, 0.12, 0.03), 1)
    return (upper | upper.T).astype(np.uint8), np.array(list(zip(teams, rng.integers(0, 3, n).tolist())), object)


def test_a_sample_has_attributes_edges_and_shares_of_what_was_learned():
    graph, own = drawn()
    est = AGMGenerator(20.0, categories=KINDS, random_state=0).fit(graph, own)
    made, attributes = est.sample_with_attributes(1)
    assert (est.sample(1) != made).nnz == 0
    assert attributes.shape == (200, 2)
    assert abs((attributes[:, 0] == "a").mean() - (own[:, 0] == "a").mean()) < 0.03
    i, j = np.nonzero(graph)
    rows, columns = made.nonzero()
    assert abs((attributes[rows, 0] == attributes[columns, 0]).mean() - (own[i, 0] == own[j, 0]).mean()) < 0.08
    assert abs(made.nnz / graph.sum() - 1) < 0.05
    flat = AGMGenerator(20.0, categories=KINDS[:1], random_state=0).fit(graph, own[:, 0].astype(str))
    assert flat.sample_with_attributes(1)[1].shape == (200,)
    with pytest.raises(ValueError, match="no attributes"):
        AGMGenerator(random_state=0).fit(graph).sample_with_attributes()


def test_containers_of_attributes_teach_the_same():
    graph, own = drawn()
    est = AGMGenerator(1.0, categories=KINDS, random_state=0)
    wanted = est.fit(graph, own).sample_with_attributes(0)
    frame = pd.DataFrame({"team": own[:, 0], "level": own[:, 1].astype(int)})
    for y in (frame, own.tolist()):
        graph_made, attributes = est.fit(graph, y).sample_with_attributes(0)
        assert (graph_made != wanted[0]).nnz == 0
        assert (attributes == wanted[1]).all()
    one = AGMGenerator(1.0, categories=KINDS[:1], random_state=0)
    assert same_state(one.fit(graph, frame["team"]).link_counts_, one.fit(graph, own[:, 0]).link_counts_)


def test_triangles_are_closed_without_a_change_of_edges_between_kinds():
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 2
    one, two = np.array([0, 1, 1]), np.array([0, 0, 1])
    cells, kinds = Blocks(labels, np.ones(300), 2).cells(one, two, np.array([500, 200, 500]), rng)

    def kind_of(i, j):
        return labels[i] + labels[j]

    made = closed(cells, kinds, 300, 600, kind_of, rng)
    assert len(np.unique(made)) == len(cells)
    assert Triangles(graph_of(cells, 300), 2).value < 200
    assert abs(Triangles(graph_of(made, 300), 2).value - 600) < 120
    ends = agm.ends_of(made)
    assert np.bincount(kind_of(*ends)).tolist() == [500, 200, 500]


@pytest.mark.parametrize(("wrong", "words"), [
    ({"max_degree": 1}, "max_degree"), ({"max_degree": True}, "max_degree"), ({"link_fraction": 0}, "link_fraction"),
    ({"triangle_fraction": 1.0}, "triangle_fraction"), ({"categories": None}, "categories"),
    ({"categories": KINDS[:1]}, "categories"), ({"categories": [range(20), range(20)]}, "256|categor"),
    ({"epsilon": 1e-30}, "epsilon"),
])
def test_what_is_wrong_is_refused_before_the_charge(wrong, words):
    (graph, own), ledger = drawn(20), Ledger(5, neighbours="edge")
    with pytest.raises(ValueError, match=words):
        AGMGenerator(**{"epsilon": 1.0, "categories": KINDS, **wrong}, ledger=ledger).fit(graph, own)
    for y in (None, own[:-1], np.where(own == "a", "secret", own)):
        with pytest.raises(ValueError, match=r"categories|attributes|declared") as error:
            AGMGenerator(1.0, categories=KINDS, ledger=ledger).fit(graph, y)
        assert "secret" not in str(error.value)
    assert ledger.spent().is_nothing


def test_strict_mode_takes_any_value_of_an_attribute():
    graph, own = drawn(20)
    with config_context(strict=True):
        est = AGMGenerator(1.0, categories=KINDS, random_state=0).fit(graph, np.where(own == "a", None, own))
        assert est.attribute_counts_.shape == (6,)


@pytest.mark.parametrize("matrix", [np.zeros((9, 9)), 1 - np.eye(9), np.zeros((3, 3))])
def test_empty_and_complete_graphs(matrix):
    own = np.arange(len(matrix)) % 2
    made, attributes = AGMGenerator(3.0, categories=[[0, 1, 2]], random_state=0).fit(
        matrix, own).sample_with_attributes(0)
    assert made.shape == matrix.shape
    assert set(attributes.tolist()) <= {0, 1, 2}
