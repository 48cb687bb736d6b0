"""What protects whole nodes, against brute force over all graphs of at most five nodes and all of their nodes."""

import importlib.util
import math
from fractions import Fraction
from functools import cache
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.graph import NodeDegreeDistribution, NodeSubgraphCount
from dpestim.graph.nodes import base, packing
from dpestim.graph.nodes.copies import COPIES
from dpestim.graph.nodes.truncation import Flows, Projection, random_order
from dpestim.graph.reading import read_graph
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.rng import WordSource
from dpestim.testing.nodes import Nodes, graphs_and_nodes, less

BOUNDS = (1, 2, 3)


def drawn(n, share, seed=0, heavy=False):
    rng = np.random.default_rng(seed)
    weight = (1 + np.arange(n)) ** -0.6 if heavy else np.ones(n)
    upper = np.triu(rng.random((n, n)) < np.minimum(share * np.outer(weight, weight) * n / weight.sum(), 1), 1)
    return (upper | upper.T).astype(np.uint8)


@cache
def read(entries, n):
    return read_graph(np.frombuffer(entries, np.uint8).reshape(n, n))


@pytest.fixture
def each_graph_is_read_once(monkeypatch):
    """All small graphs are the same in all tests: reading them takes longer than what is tested."""
    monkeypatch.setattr(base, "read_graph", lambda matrix, strict: read(matrix.tobytes(), len(matrix)))


def moves(est):
    """Yield (what is seen of a graph, of it without a node) for all small graphs, with edges in the same order."""
    rng, nodes, known = np.random.default_rng(0), Nodes(est), {}

    def seen(matrix, keys):  # (where no order is drawn, once a graph)
        name = matrix.tobytes(), keys.tobytes() if est.projection == "stable" else len(matrix)
        if name not in known:
            known[name] = nodes.seen(est, matrix, keys)
        return known[name]

    for matrix, node in graphs_and_nodes():
        keys = rng.permutation(len(matrix) ** 2).reshape(matrix.shape)
        yield seen(matrix, keys), seen(less(matrix, node), less(keys, node))


@pytest.mark.usefixtures("each_graph_is_read_once")
def test_a_node_moves_projected_degrees_as_far_as_is_said_and_no_further():
    """Cumulative counts by bound + 1, which some graphs reach (FORMULAS 11.4); sums up, and by twice the bound."""
    most = dict.fromkeys(BOUNDS, 0)
    est = NodeDegreeDistribution(1.0)
    for one, two in moves(est):
        for b in BOUNDS:
            assert 0 <= one.total(b) - two.total(b) <= one.rise(b)
            most[b] = max(most[b], np.abs(np.subtract(one.answers(b), two.answers(b))).sum())
            before, after = (np.bincount(seen.projection.degrees(b), minlength=b + 1) for seen in (one, two))
            assert np.abs(before - after).sum() <= 2 * b + 1
    assert most == {b: one.sensitivity(b, est) for b in BOUNDS} == {1: 2, 2: 3, 3: 4}


@pytest.mark.usefixtures("each_graph_is_read_once")
def test_a_node_moves_degrees_by_flows_no_further_than_is_said():
    est, most = NodeDegreeDistribution(1.0, projection="lipschitz"), dict.fromkeys(BOUNDS, 0)
    for one, two in moves(est):
        for b in BOUNDS:
            assert 0 <= one.total(b) - two.total(b) <= one.rise(b)
            most[b] = max(most[b], np.abs(np.subtract(one.answers(b), two.answers(b))).sum())
    assert most == {b: one.sensitivity(b, est) for b in BOUNDS}


@pytest.mark.usefixtures("each_graph_is_read_once")
@pytest.mark.parametrize(("pattern", "projection"), [("edge", "stable"), ("edge", "lipschitz"), ("k-star", "stable"),
                                                     ("k-star", "lipschitz"), ("triangle", "lipschitz"),
                                                     ("square", "lipschitz")])
def test_a_node_moves_counts_no_further_than_is_said(pattern, projection):
    est, least, most = NodeSubgraphCount(1.0, pattern=pattern, projection=projection), 0, 0
    for one, two in moves(est):
        for b in BOUNDS[:2] if hasattr(one, "copies") else BOUNDS:
            high, low = one.total(b), two.total(b)
            assert -one.fall(b) <= high - low <= one.rise(b) <= one.sensitivity(b, est)
            assert one.fall(b) <= one.sensitivity(b, est)
            most, least = max(most, (high - low) / one.rise(b) if one.rise(b) else 0), min(least, high - low)
    assert most > 0.6  # (of stars by "stable" five nodes do not reach the bound)
    assert (least < 0) == ((pattern, projection) == ("k-star", "stable")) or hasattr(one, "copies")


def test_flows_are_those_of_small_programs_and_degrees_within_a_bound_stay():
    for matrix in (drawn(12, 0.4), drawn(15, 0.3, heavy=True), np.zeros((0, 0)), np.zeros((3, 3)), 1 - np.eye(4)):
        graph = read_graph(matrix)
        flows, degrees, n = Flows(graph), graph.degrees, graph.n_nodes
        for out in (1, 2, 3):
            for into in (1, 3, 20):
                cut = min((sum(out for u in range(n) if u not in give) + into * 0 + sum(
                    min(into, sum(u in give for u in graph.neighbours[graph.starts[v]:graph.starts[v + 1]]))
                    for v in range(n)) for give in subsets(n)), default=0) if n <= 4 else None
                if cut is not None:
                    assert flows.value(out, into) == cut
                assert flows.value(out, into) <= np.minimum(degrees, out).sum()
        if n:
            top = int(degrees.max()) + 1
            seen = NodeDegreeDistribution(1.0, projection="lipschitz")._kind()(flows)
            assert seen.answers(top) == np.cumsum(np.bincount(degrees, minlength=top + 1)).tolist()
            tails = np.diff(seen.answers(2))
            assert (tails >= 0).all()


def subsets(n):
    return [{u for u in range(n) if code >> u & 1} for code in range(1 << n)]


def test_orders_of_edges_are_uniform_and_drawn_again_where_two_keys_are_equal():
    seen = [tuple(random_order(3, WordSource(seed)).tolist()) for seed in range(1200)]
    counts = [seen.count(order) for order in permutations(range(3))]
    assert sum((c - 200) ** 2 / 200 for c in counts) < 30.9  # (chi-square of 5: p = 1e-5)

    class Ties:
        def reader(self):
            return self

        def dense(self, stage, column, block, start, m):
            return np.array([5, 5, 7] if start == 0 else [9, 1, 4], np.uint64)

    assert random_order(3, Ties()).tolist() == [1, 2, 0]
    assert len(random_order(0, WordSource(0))) == 0


def test_projections_keep_what_a_loop_keeps():
    graph = read_graph(drawn(40, 0.3))
    order = np.random.default_rng(1).permutation(graph.n_edges)
    projection, degrees = Projection(graph, order), [0] * 40
    for u, v in zip(projection.first.tolist(), projection.second.tolist()):
        if max(degrees[u], degrees[v]) < 5:
            degrees[u] += 1
            degrees[v] += 1
    assert projection.degrees(5).tolist() == degrees


@pytest.mark.parametrize("bound", [1, 2, 5])
def test_programs_are_enclosed_and_a_solver_that_errs_changes_nothing(bound, monkeypatch):
    """The value is the floor of the exact one, or the next, whatever floats say: then fractions are worked out."""
    copies = COPIES["triangle"](read_graph(drawn(9, 0.6)), 2)
    parts = [[int(v in copy) for copy in copies.tolist()] for v in range(9)]
    true = packing.UNIT * packing.exact(parts, bound)
    assert packing.packed(copies, 9, bound) - math.floor(true) in (0, 1)
    for wrong in (None, np.full(len(copies), math.nan), np.full(len(copies), 0.3), np.full(len(copies), 7.0)):
        def solve(c, A, b, wrong=wrong, **how):
            x = None if wrong is None else wrong[: len(c)]
            return SimpleNamespace(x=x, ineqlin=SimpleNamespace(marginals=np.full(len(b), -0.4)))

        monkeypatch.setattr(packing, "linprog", solve)
        assert packing.packed(copies, 9, bound) == math.floor(true)


def test_exact_programs_have_known_values():
    assert packing.exact([[1, 1, 0], [1, 0, 1], [0, 1, 1]], 1) == Fraction(3, 2)  # half of each edge of a triangle
    assert packing.exact([[1, 1, 1]], 2) == 2


def test_copies_are_those_of_dense_products():
    matrix = drawn(25, 0.35)
    graph, dense = read_graph(matrix), matrix.astype(np.int64)
    degrees, second = dense.sum(0), dense @ dense
    wanted = {("triangle", 2): np.trace(second @ dense) // 6, ("k-star", 3): sum(math.comb(int(d), 3) for d in degrees),
              ("square", 2): sum(math.comb(int(second[i, j]), 2) for i in range(25) for j in range(i)) // 2}
    for (pattern, k), many in wanted.items():
        copies = COPIES[pattern](graph, k)
        assert len(copies) == many
        assert len(np.unique(copies, axis=0)) == many
        assert all(len(set(copy)) == len(copy) for copy in copies.tolist())
        assert len(COPIES[pattern](read_graph(np.zeros((0, 0))), k)) == 0


def test_a_bound_is_chosen_that_the_graph_needs():
    """Of a graph in which every node has 6 edges the bound is 8; where all are wanted it is hardly ever the largest."""
    n = 1000
    ring = sparse.coo_array((np.ones(3 * n), (np.tile(np.arange(n), 3),
                                              (np.arange(3 * n) % n + np.repeat([1, 2, 3], n)) % n)), shape=(n, n))
    ring = (ring + ring.T).tocsr()
    for est in (NodeDegreeDistribution(2.0, max_bound=256), NodeSubgraphCount(1.0, max_bound=256)):
        chosen = [est.set_params(random_state=seed).fit(ring).bound_ for seed in range(16)]
        assert sum(bound == 8 for bound in chosen) >= 10
    assert abs(est.value_ - 3 * n) < 10 * est.standard_error_


def test_how_nodes_are_listed_changes_no_law():
    """Flows and programs see no order; a random order of edges is as likely as any other."""
    matrix = drawn(20, 0.3, heavy=True)
    moved = np.random.default_rng(3).permutation(20)
    for params in ({"pattern": "edge"}, {"pattern": "triangle"}):
        est = NodeSubgraphCount(1.0, bound=2, random_state=0, **params)
        assert est.release(matrix) == est.release(matrix[np.ix_(moved, moved)])


def test_order_choice_and_noise_share_no_word():
    est, seen = NodeSubgraphCount(1.0, projection="stable", random_state=0), []

    class Kind(est._kind()):
        @classmethod
        def of(cls, graph, source, estimator):
            seen.append(source.fingerprint)
            return super().of(graph, source, estimator)

    drawn_by, est._kind = est._drawn, lambda: Kind
    est._drawn = lambda cut, bounds, *sources: seen.extend(s.fingerprint for s in sources) or drawn_by(
        cut, bounds, *sources)
    est.fit(drawn(10, 0.3))
    assert len(set(seen)) == len(seen) == 3


def test_ledgers_of_nodes_pay_those_of_edges_pay_twice_and_those_of_rows_refuse():
    graph, nodes, edges, rows = drawn(20, 0.2), *(Ledger(2, neighbours=name) for name in ("node", "edge", "add_remove"))
    for ledger, spent in ((nodes, 1), (edges, 2)):
        NodeSubgraphCount(1.0, ledger=ledger).fit(graph)
        assert ledger.spent().epsilon == spent
    with pytest.raises(ValueError, match='neighbours="node"'):
        NodeSubgraphCount(1.0, ledger=rows).fit(graph)
    assert rows.spent().is_nothing


def test_guarantees_for_nodes_hold_for_edges_at_twice_the_epsilon_and_for_nothing_else():
    node = PrivacyGuarantee(1, Fraction(1, 1000), "central", Neighbours.NODE)
    edge = node.to("edge")
    assert (edge.epsilon, edge.neighbours) == (2, Neighbours.EDGE)
    assert 0.0037 < edge.delta < 0.0038  # (1 + e) times as large
    for other in ("substitution", "add_remove", "local"):
        with pytest.raises(ValueError, match='take a ledger with neighbours="node"'):
            node.to(other)
        with pytest.raises(ValueError):
            PrivacyGuarantee(1, 0, "central", Neighbours(other)).to("node")
    with pytest.raises(ValueError, match="no bound for node"):
        edge.to("node")


@pytest.mark.ci
@pytest.mark.parametrize("matrix", [drawn(40, 0.2, heavy=True), np.zeros((12, 12)), 1 - np.eye(9), np.zeros((1, 1)),
                                    drawn(60, 0.03)])
def test_intervals_hold_for_graphs_of_any_kind(matrix):
    """At 90 percent: at least 62 of 80, and 28 of 40 (binomial: fewer with a probability below 0.04 percent)."""
    graph, n = read_graph(matrix), len(matrix)
    X = graph_of(graph)
    for projection in ("stable", "lipschitz"):
        held = np.zeros(3)
        for seed in range(80):
            est = NodeDegreeDistribution(1.0, projection=projection, max_bound=4, random_state=seed).fit(X)
            truth = np.array([(graph.degrees <= k).sum() for k in range(est.bound_)] + [n])
            inside = (est.confidence_interval(0.9) - truth[:, None]) * [1, -1] <= 0
            held += inside[0].all(), inside[len(truth) // 2].all(), inside[-1].all()
        assert (held >= 62).all()
    for params, truth in (({"pattern": "edge"}, graph.n_edges),
                          ({"pattern": "triangle", "bound": 2}, len(COPIES["triangle"](graph, 2)))):
        counts = [NodeSubgraphCount(1.0, random_state=seed, **{"max_bound": 4, **params}).fit(X)
                  for seed in range(40)]
        assert sum(est.confidence_interval(0.9)[0] <= truth for est in counts) >= 28
        assert all(est.confidence_interval()[1] == math.inf and est.value_ >= 0 for est in counts)


def graph_of(graph):
    return sparse.csr_array((np.ones(len(graph.neighbours)), graph.neighbours, graph.starts),
                            shape=(graph.n_nodes, graph.n_nodes))


def test_no_number_of_nodes_is_published_or_refused():
    """Graphs of no node and of one are released like others, and no attribute holds the exact number."""
    with config_context(strict=True):
        for n in (0, 1, 2, 37):
            est = NodeDegreeDistribution(1.0, max_bound=4, random_state=0).fit(np.zeros((n, n)))
            assert not hasattr(est, "n_features_in_")
            assert est.distribution_.sum() == pytest.approx(1)
            assert NodeSubgraphCount(1.0, pattern="square", max_bound=4).release(np.zeros((n, n))) >= 0


def test_what_cannot_be_cut_so_and_noise_beyond_integers_are_refused_before_the_charge():
    ledger, graph = Ledger(1, neighbours="node"), drawn(20, 0.2)
    for params, words in (({"pattern": "triangle", "projection": "stable"}, "projection"), ({"bound": 0}, "bound"),
                          ({"pattern": "k-star", "k": 9, "projection": "stable"}, "epsilon is too small")):
        with pytest.raises(ValueError, match=words):
            NodeSubgraphCount(1.0, ledger=ledger, **params).fit(graph)
    assert ledger.spent().is_nothing


@pytest.mark.skipif(not importlib.util.find_spec("networkx"), reason="networkx is not installed")
def test_networkx_graphs_are_taken():
    import networkx

    matrix = drawn(20, 0.2)
    est = NodeSubgraphCount(1.0, random_state=0)
    assert est.release(networkx.from_numpy_array(matrix)) == est.release(matrix)
