"""Graphs that are cut to a bound, so that one node cannot change much: by a projection, or by flows. Exact integers.

Proofs: ``degree_distribution.md`` (both), ``subgraph_count.md``.
"""

from functools import cache

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import maximum_flow

from dpestim._core import nodes
from dpestim.rng import Stage


def random_order(m, source):
    """Return an order of m edges, exactly uniform among all: that of an edge less is uniform, too."""
    reader, start = source.reader(), 0
    while True:
        keys = reader.dense(Stage.NOISE, 0, 0, start, m).copy() if m else np.empty(0, np.uint64)
        order = np.argsort(keys)
        if (np.diff(keys[order]) > 0).all():  # (given that no two are equal, all orders are equally likely)
            return order
        start += m


class Projection:
    """The graphs that are left where edges are looked at in an order, and kept while both ends have less than a bound.

    `order` numbers the edges (i, j), i < j, that `edges` lists.
    """

    def __init__(self, graph, order):
        first, second = edges(graph)
        self.n, self.first, self.second = graph.n_nodes, first[order], second[order]
        self.degrees = cache(self._degrees)

    def _degrees(self, bound):
        """Return the degrees of the nodes with this bound."""
        degrees = np.zeros(self.n, np.int32)
        nodes.project(self.first, self.second, bound, degrees)
        return degrees


class Flows:
    """The largest flows from copies of the nodes, each of which gives `out` at most, to others, which take `into`.

    A unit may go from i to j where i and j are joined, so that flows of a graph whose degrees are at most both numbers
    are its degrees.
    """

    def __init__(self, graph):
        self.graph = graph
        self.value = cache(self._value)

    def _value(self, out, into):
        """Return the largest flow, an int."""
        degrees, n = self.graph.degrees, self.graph.n_nodes
        if degrees.max(initial=0) <= min(out, into):
            return int(degrees.sum())
        if degrees.max() <= into:
            return int(np.minimum(degrees, out).sum())
        # 0: the source; 1, ..., n: what gives; n + 1, ..., 2 n: what takes; 2 n + 1: the sink
        starts = np.concatenate([[0, n], n + self.graph.starts[1:], n + self.graph.starts[-1] + np.arange(1, n + 1),
                                 [2 * n + self.graph.starts[-1]]])
        ends = np.concatenate([np.arange(1, n + 1), self.graph.neighbours + (n + 1), np.full(n, 2 * n + 1)])
        most = np.concatenate([np.full(n, out), np.ones(len(self.graph.neighbours)), np.full(n, into)])
        network = sparse.csr_array((most.astype(np.int32), ends.astype(np.int32), starts.astype(np.int32)),
                                   shape=(2 * n + 2, 2 * n + 2))
        return int(maximum_flow(network, 0, 2 * n + 1).flow_value)


def edges(graph):
    """Return the ends of all edges (i, j), i < j, row by row."""
    rows = np.repeat(np.arange(graph.n_nodes, dtype=np.int32), graph.degrees)
    upper = rows < graph.neighbours
    return rows[upper], graph.neighbours[upper]
