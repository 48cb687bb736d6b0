"""Graphs that are given back are the graphs that came in, with the names of their nodes."""

import importlib.util
import sys
import types

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from dpestim.graph import SubgraphCount, adjacency, export_graph
from dpestim.graph.reading import read_graph

NAMES = ["ann", "bob", "cleo", "dan", "eve"]
EDGES = [("bob", "ann"), ("bob", "cleo"), ("eve", "ann")]


class Stand:
    """What the package uses of networkx.Graph, where networkx is not installed."""

    __module__ = "networkx.classes.graph"

    def __init__(self):
        self.nodes, self.pairs = {}, []

    def add_nodes_from(self, names):
        self.nodes |= dict.fromkeys(names)

    def add_edges_from(self, pairs):
        self.pairs += list(pairs)

    def edges(self):
        return self.pairs

    def __iter__(self):
        return iter(self.nodes)

    def is_directed(self):
        return False

    is_multigraph = is_directed


@pytest.fixture
def networkx(monkeypatch):
    if not importlib.util.find_spec("networkx"):
        monkeypatch.setitem(sys.modules, "networkx", types.SimpleNamespace(Graph=Stand))
    return sys.modules.get("networkx") or __import__("networkx")


@pytest.mark.parametrize("make", [list, lambda pairs: pd.DataFrame(pairs, columns=["a", "b"]),
                                  lambda pairs: pl.DataFrame(pairs, schema=["a", "b"], orient="row")])
@pytest.mark.parametrize("kind", ["pandas", "polars", "pairs"])
def test_tables_of_edges_are_given_back(make, kind):
    matrix = adjacency(make(EDGES), NAMES)
    given = export_graph(matrix, kind, nodes=NAMES)
    pairs = given if kind == "pairs" else [tuple(row) for row in given.to_numpy().tolist()]
    assert pairs == [("ann", "bob"), ("ann", "eve"), ("bob", "cleo")]
    assert kind == "pairs" or list(given.columns) == ["source", "target"]
    assert (adjacency(given, NAMES) != matrix).nnz == 0
    assert len(export_graph(np.zeros((4, 4)), kind)) == 0
    assert export_graph(1 - np.eye(3), "pairs") == [(0, 1), (0, 2), (1, 2)]


def test_networkx_graphs_keep_names_and_nodes_without_an_edge(networkx):
    graph = export_graph(adjacency(EDGES, NAMES), nodes=NAMES)
    assert isinstance(graph, networkx.Graph)
    assert list(graph) == NAMES
    again = export_graph(graph, "pairs")  # (names are those of the graph)
    assert again == [("ann", "bob"), ("ann", "eve"), ("bob", "cleo")]
    assert export_graph(sparse.csr_array(adjacency(EDGES, NAMES)), "pairs", nodes=graph) == again
    assert np.array_equal(read_graph(graph).neighbours, read_graph(adjacency(EDGES, NAMES)).neighbours)


@pytest.mark.parametrize(("nodes", "kind", "words"), [
    (NAMES[:4], "pairs", "one for each row"), (["a"] * 5, "pairs", "differ"), ([[]] * 5, "pairs", "hashed"),
    (NAMES, "igraph", "kind must"), (NAMES, None, "kind must"),
])
def test_what_cannot_be_given_back(nodes, kind, words):
    with pytest.raises(ValueError, match=words):
        export_graph(adjacency(EDGES, NAMES), kind, nodes=nodes)


def test_a_library_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match="pip install networkx"):
        export_graph(adjacency(EDGES, NAMES))


@pytest.mark.parametrize("frame", [pd.DataFrame(EDGES), pl.DataFrame(EDGES, orient="row"),
                                   pd.DataFrame([("ann", None), ("bob", "eve")])])
def test_a_frame_without_the_list_of_nodes_is_refused_with_what_helps(frame):
    with pytest.raises(ValueError, match=r"adjacency\(frame, nodes\)"):
        SubgraphCount(1.0).fit(frame)


@pytest.mark.parametrize("make", [pd.DataFrame, lambda pairs: pl.DataFrame(pairs, orient="row")])
def test_missing_nodes_are_refused(make):
    with pytest.raises(ValueError, match="listed in nodes"):
        adjacency(make([("ann", None), ("bob", "eve")]), NAMES)
