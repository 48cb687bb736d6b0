"""Graphs as they come in, and counts of patterns against brute force over all graphs of four and five nodes."""

import importlib.util
import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.graph import SubgraphCount, adjacency
from dpestim.graph.patterns import PATTERNS
from dpestim.graph.reading import read_graph
from dpestim.testing.graphs import SMALL, _matrix, _neighbours

CASES = [("edge", 2), ("triangle", 2), ("k-star", 2), ("k-star", 3), ("k-triangle", 2), ("k-triangle", 3)]


def drawn(n, share, seed=0, heavy=False):
    rng = np.random.default_rng(seed)
    weight = (1 + np.arange(n)) ** -0.6 if heavy else np.ones(n)
    upper = np.triu(rng.random((n, n)) < np.minimum(share * np.outer(weight, weight) * n / weight.sum(), 1), 1)
    return (upper | upper.T).astype(np.uint8)


def counted(matrix, pattern, k):
    """Count by dense products."""
    matrix = np.asarray(matrix, np.int64)
    common = matrix @ matrix
    joined = np.argwhere(np.triu(matrix, 1))
    if pattern == "edge":
        return len(joined)
    if pattern == "triangle":
        return int((common * matrix).sum()) // 6
    if pattern == "k-star":
        return sum(math.comb(int(d), k) for d in matrix.sum(0))
    return sum(math.comb(int(common[i, j]), k) for i, j in joined)


@pytest.mark.parametrize(("pattern", "k"), CASES)
def test_what_edges_change_is_that_of_brute_force_over_all_graphs(pattern, k):
    """A(t) is the largest change within t edges (of k-triangles: at least), and never rises faster than it may."""
    pairs = _neighbours()
    graphs = {code: PATTERNS[pattern](read_graph(_matrix(code)), k) for code in {c for pair in pairs for c in pair}}
    assert len(graphs) == 34  # all graphs of five nodes, but for the names of the nodes
    steps = math.comb(SMALL, 2) + 1
    values = {code: counted(_matrix(code).toarray(), pattern, k) for code in graphs}
    assert values == {code: graph.value for code, graph in graphs.items()}
    moves = {code: graph.moves(steps) for code, graph in graphs.items()}
    near = {code: [b if a == code else a for a, b in pairs if code in (a, b)] for code in graphs}
    most = {code: max(abs(values[code] - values[other]) for other in near[code]) for code in graphs}
    for t in range(steps):
        for code in graphs:
            assert moves[code][t] >= most[code]
            assert pattern == "k-triangle" or moves[code][t] == most[code]
            assert t + 1 == steps or all(moves[code][t] <= moves[other][t + 1] for other in near[code])
        most = {code: max(most[code], *(most[other] for other in near[code])) for code in graphs}
    for code, graph in graphs.items():
        assert graph.bound(graph.level) >= graph.moves(1)[0]
        assert all(abs(graph.level - graphs[other].level) <= 1 for other in near[code])
        assert graph.bound(SMALL) == max(moves[code][-1] for code in graphs) or pattern == "k-triangle"


def most_beside(matrix, k):
    """Return the largest sums of C(s, r), r < k, where s is of the edges from two nodes to their common neighbours."""
    common, most = matrix @ matrix, [0] * k
    for i, j in np.argwhere(np.triu(np.ones_like(matrix), 1)):
        near = np.flatnonzero(matrix[i] & matrix[j])
        beside = [int(common[end, w] - matrix[i, j]) for w in near for end in (i, j)]
        most = [max(one, sum(math.comb(s, r) for s in beside)) for r, one in enumerate(most)]
    return most


@pytest.mark.parametrize("k", [2, 3, 4])
def test_triangles_that_share_an_edge_are_bounded_by_edges_of_the_same_pair(k):
    """On graphs of six and of ten nodes: at least what any edge changes, and never above the bound by the level."""
    rng, below = np.random.default_rng(k), 0
    for n, share in [(6, 0.5), (6, 0.8), (10, 0.3), (10, 0.6)] * 2:
        half = np.triu(rng.random((n, n)) < share, 1).astype(int)
        matrix = half + half.T
        seen = PATTERNS["k-triangle"](read_graph(matrix), k)
        value, moves = seen.value, seen.moves(8)
        x, most = seen.level, most_beside(matrix, k)
        assert moves == [min(seen.bound(x + t), math.comb(x + t, k) + 2 * t * math.comb(x + t, k - 1) + sum(
            m * math.comb(t, k - 1 - r) for r, m in enumerate(most))) for t in range(8)]  # (the bound of the proof)
        below += moves[0] < seen.bound(seen.level)
        for i, j in np.argwhere(np.triu(np.ones((n, n)), 1)):
            matrix[i, j] = matrix[j, i] = 1 - matrix[i, j]
            other = PATTERNS["k-triangle"](read_graph(matrix), k)
            near = other.moves(9)
            assert abs(value - other.value) <= min(moves[0], near[0])
            assert all(a <= b for a, b in zip(moves, near[1:]))
            assert all(a <= b for a, b in zip(near, moves[1:]))
            matrix[i, j] = matrix[j, i] = 1 - matrix[i, j]
    assert below >= 4


def test_the_bound_of_triangles_is_chosen_by_the_public_number_of_nodes():
    for n, k, known in ((2_000, 3, True), (2_000, 10, False)):
        seen = PATTERNS["k-triangle"](read_graph(sparse.csr_array((n, n))), k)
        assert (seen._beside is not None) == known
        assert seen.moves(5) == [seen.bound(t) for t in range(5)]


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("share", [0.02, 0.2, 0.7])
def test_larger_graphs_against_dense_products(share, heavy):
    matrix = drawn(70, share, heavy=heavy)
    graph, dense = read_graph(matrix), matrix.astype(int)
    for pattern, k in CASES:
        assert PATTERNS[pattern](graph, k).value == counted(matrix, pattern, k)
    i, j = np.triu_indices(70, 1)
    common, degrees = (dense @ dense)[i, j], dense.sum(0)
    both = degrees[i] + degrees[j] - 2 * dense[i, j]
    seen = PATTERNS["triangle"](graph, 2)
    assert seen.level == common.max()
    wanted = [min(np.minimum(common + t, (both + t) // 2).max(), 68) for t in range(120)]
    assert seen.moves(120) == wanted
    x, y = degrees[i] - dense[i, j], degrees[j] - dense[i, j]
    stars = [max(max(math.comb(min(a + s, 68), 2) + math.comb(min(b + t - s, 68), 2) for s in range(t + 1))
                 for a, b in set(zip(x.tolist(), y.tolist()))) for t in (0, 1, 5)]
    moves = PATTERNS["k-star"](graph, 3).moves(6)
    assert [moves[0], moves[1], moves[5]] == stars


@pytest.mark.parametrize("matrix", [np.zeros((6, 6)), 1 - np.eye(6), np.eye(6)[::-1] + np.eye(6)[::-1].T - 1 * 0])
def test_empty_and_complete_graphs(matrix):
    matrix = (matrix > 0).astype(int)
    np.fill_diagonal(matrix, 0)
    for pattern, k in CASES:
        for method, delta in (("ladder", None), ("smooth", None), ("local", None if pattern == "edge" else 1e-3)):
            est = SubgraphCount(1.0, pattern=pattern, k=k, method=method, delta=delta, random_state=0).fit(matrix)
            assert 0 <= est.value_ <= PATTERNS[pattern].most(6, k)


def test_containers_and_tables_of_edges_are_the_same_graph():
    matrix = drawn(30, 0.2)
    ends = np.argwhere(np.triu(matrix, 1))
    names = [f"node {i}" for i in range(30)]
    wanted = read_graph(matrix)
    graphs = [adjacency(ends, 30), adjacency(ends[::-1, ::-1].tolist(), 30),
              adjacency(pd.DataFrame(ends, columns=["a", "b"]), range(30)),
              adjacency([(names[i], names[j]) for i, j in ends], names), sparse.bsr_array(matrix), matrix.astype(bool)]
    if importlib.util.find_spec("networkx"):
        import networkx

        graphs.append(networkx.from_numpy_array(matrix))
    for graph in graphs:
        read = read_graph(graph)
        assert np.array_equal(read.starts, wanted.starts)
        assert np.array_equal(read.neighbours, wanted.neighbours)
    assert adjacency([], 3).nnz == 0


@pytest.mark.parametrize(("change", "words"), [
    (np.triu, "undirected"), (lambda m: 2 * m, "weights"), (lambda m: m + np.eye(len(m)), "loops"),
    (lambda m: m[:-1], "square"), (lambda m: m.astype(object), "adjacency matrix"),
    (lambda m: [1, 2], "adjacency matrix"),
    (lambda m: np.where(m, math.nan, 0), "NaN"), (lambda m: m.astype(complex), "adjacency matrix"),
    (lambda m: sparse.coo_array(([1, 1, 1, 1], ([0, 1, 0, 1], [1, 0, 1, 0])), shape=(5, 5)), "multiple edges"),
    (lambda m: m[:2, :2], "at least 3 nodes"), (lambda m: pd.DataFrame(m), "adjacency"),
])
def test_what_is_no_graph_is_refused_with_what_helps_before_the_charge(change, words):
    ledger = Ledger(1, neighbours="edge")
    with pytest.raises(ValueError, match=words):
        SubgraphCount(1.0, ledger=ledger).fit(change(drawn(30, 0.2)))
    assert ledger.spent().is_nothing


@pytest.mark.parametrize(("edges", "nodes", "words"), [
    ([(0, 1), (1, 0)], 3, "multiple"), ([(1, 1)], 3, "loops"), ([(0, 5)], 3, "listed"), ([(0, 1, 2)], 3, "two columns"),
    ([(0, 1)], [0, 0, 1], "differ"), ([([], 1)], 3, "two columns|listed"), ([("secret", 1)], 3, "listed"),
])
def test_tables_of_edges_that_are_no_graph(edges, nodes, words):
    with pytest.raises(ValueError, match=words) as error:
        adjacency(edges, nodes)
    assert "secret" not in str(error.value)


def test_networkx_graphs_with_directions_or_multiple_edges_are_refused():
    class Directed:
        __module__ = "networkx.classes.digraph"

        def is_directed(self):
            return True

        def adjacency(self):
            return {}

        def __iter__(self):
            return iter(())

    with pytest.raises(ValueError, match="to_undirected"):
        SubgraphCount(1.0).fit(Directed())


def test_a_ledger_of_edges_pays_and_one_of_rows_refuses():
    graph, edges, rows = drawn(30, 0.2), Ledger(2, neighbours="edge"), Ledger(2)
    SubgraphCount(1.0, ledger=edges).fit(graph)
    assert edges.spent().epsilon == 1
    for _ in range(2):
        with pytest.raises(ValueError, match='neighbours="edge"'):
            SubgraphCount(1.0, ledger=rows).fit(graph)
    assert rows.spent().is_nothing


def test_intervals_of_bounds_hold_and_no_other_method_has_any():
    matrix = drawn(60, 0.2, heavy=True)
    truth, held, errors = counted(matrix, "triangle", 2), 0, []
    for seed in range(80):
        est = SubgraphCount(1.0, method="local", delta=1e-6, random_state=seed).fit(matrix)
        low, high = est.confidence_interval(0.9)
        held += low <= truth <= high
        errors.append((est.value_ - truth) / est.standard_error_)
    assert 62 <= held <= 79  # (binomial: outside with probability 2e-3)
    assert 0.7 < np.std(errors) < 1.3
    for method in ("ladder", "smooth"):
        est = SubgraphCount(1.0, method=method, random_state=0).fit(matrix)
        with pytest.raises(AttributeError, match='method="local"'):
            est.confidence_interval()
        assert not hasattr(est, "standard_error_")


def test_strict_mode_reads_any_square_matrix():
    matrix = drawn(30, 0.2).astype(float)
    with config_context(strict=True):
        wanted = SubgraphCount(1.0, random_state=0).fit(matrix).value_
        odd = np.triu(matrix) * 7.5
        np.fill_diagonal(odd, math.inf)
        assert SubgraphCount(1.0, random_state=0).fit(odd).value_ == wanted
