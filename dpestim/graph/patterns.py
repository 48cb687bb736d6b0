"""Subgraphs that are counted: how many there are, and how far edges can move the number, on this graph and near it.

A pattern of a graph has `value`, its count, and `moves(n)`, the numbers A(0), ..., A(n - 1): A(0) is at least what one
edge can change the count by, and A(t) of a graph at most A(t + 1) of one with one edge more or less. Both the ladder
mechanism and smooth sensitivity need no more. `level` is an integer that one edge moves by at most 1, and
`bound(level)`, which rises with it, at least A(0). All of it is exact and secret. Proofs: ``subgraph_count.md``.
"""

import math
from functools import cached_property

import numpy as np
from scipy import sparse

from dpestim._core import graphs

#: Counts are cut at this: only graphs of millions of nodes can have more stars.
LARGEST = 1 << 62


class Edges:
    """The edges: one edge more is one more."""

    def __init__(self, graph, k):
        self.graph, self.k, self.n = graph, k, graph.n_nodes

    @staticmethod
    def least_nodes(k):
        """Return the nodes of the pattern."""
        return 2

    @staticmethod
    def most(n, k):
        """Return the largest count of any graph of n nodes, cut."""
        return min(math.comb(n, 2), LARGEST)

    @property
    def largest(self):
        """The largest count of any graph of so many nodes, cut."""
        return self.most(self.n, self.k)

    @cached_property
    def value(self):
        """The count, cut."""
        return min(self._count(), LARGEST)

    def _count(self):
        return self.graph.n_edges

    @property
    def level(self):
        """What one edge moves by at most 1."""
        return 0

    def bound(self, level):
        """Return at least what one edge can change the count by, if the level is at least the graph's."""
        return 1

    def moves(self, n):
        """Return A(0), ..., A(n - 1), as Python integers."""
        return [1] * n


class Stars(Edges):
    """k-stars: a node and k of its neighbours."""

    @staticmethod
    def least_nodes(k):
        """Return the nodes of the pattern."""
        return k + 1

    @staticmethod
    def most(n, k):
        """Return the largest count of any graph of n nodes, cut."""
        return min(n * math.comb(n - 1, k), LARGEST)

    def _count(self):
        sizes, times = np.unique(self.graph.degrees, return_counts=True)
        return sum(times * math.comb(size, self.k) for size, times in zip(sizes.tolist(), times.tolist()))

    @property
    def level(self):
        """The largest degree."""
        return int(self.graph.degrees.max(initial=0))

    def bound(self, level):
        """Return the stars that an edge adds to two nodes of that degree."""
        return 2 * math.comb(min(level, self.n - 2), self.k - 1)

    def moves(self, n):
        """Return the largest number of stars that an edge makes after t further edges, for each t."""
        pairs, cap, m = self._ends, self.n - 2, self.k - 1

        def after(t, x, y):  # t edges between two ends of x and y other neighbours: convex, so an end of the range
            splits = {max(0, t - (cap - y)), min(t, cap - x)} if t < 2 * cap - x - y else {cap - x}
            return max(math.comb(min(x + s, cap), m) + math.comb(min(y + t - s, cap), m) for s in splits)

        return [max(after(t, x, y) for x, y in pairs) for t in range(n)]

    @cached_property
    def _ends(self):
        """The (other) neighbours of any two nodes, (x, y) with x >= y, that no other two nodes exceed in both."""
        graph = self.graph.ranked
        degrees = graph.degrees.tolist()
        found = {(degrees[0] - (joined := _joined(graph, 0, 1)), degrees[1] - joined)}
        for i, degree in enumerate(degrees):
            if degree < degrees[1]:
                break
            near = graph.neighbours[graph.starts[i] : graph.starts[i + 1]]  # ascending: the first gap is the best node
            taken = np.sort(np.append(near, np.int32(i)))
            gaps = np.flatnonzero(taken != np.arange(len(taken)))
            j = int(gaps[0]) if len(gaps) else len(taken)
            if j < self.n:
                found.add((max(degree, degrees[j]), min(degree, degrees[j])))
        return [pair for pair in found if not any(other != pair and other[0] >= pair[0] and other[1] >= pair[1]
                                                  for other in found)]


class Triangles(Edges):
    """Triangles: three nodes, each joined with the others."""

    @staticmethod
    def least_nodes(k):
        """Return the nodes of the pattern."""
        return 3

    @staticmethod
    def most(n, k):
        """Return the largest count of any graph of n nodes, cut."""
        return min(math.comb(n, 3), LARGEST)

    @cached_property
    def _of_edges(self):
        """The count, and the triangles of each edge."""
        graph = self.graph.ranked
        counts = np.zeros(len(graph.neighbours), np.int32)
        return graphs.triangles(graph.starts, graph.neighbours, np.zeros(self.n, np.int32), counts), counts

    def _count(self):
        return self._of_edges[0]

    @cached_property
    def _shared(self):
        """The largest number of common neighbours of two nodes with at least s others between them; for each s."""
        graph = self.graph.ranked
        most = np.full(2 * int(graph.degrees[0]) + 1, -1, np.int32)
        graphs.most_common(graph.starts, graph.neighbours, graph.starts[:-1].copy(), np.zeros(self.n, np.int32),
                           np.empty(self.n, np.int32), most)
        widest = max(x + y for x, y in Stars(self.graph, 2)._ends)
        np.maximum(most[: widest + 1], 0, out=most[: widest + 1])
        return most

    @property
    def level(self):
        """The largest number of common neighbours of two nodes."""
        return int(self._shared[0])

    def bound(self, level):
        """Return how many triangles an edge between two nodes with so many common neighbours makes."""
        return min(level, self.n - 2)

    def moves(self, n):
        """Return the largest number of triangles that an edge makes after t further edges, for each t."""
        common, reach = np.unique(self._shared[::-1], return_index=True)
        both = len(self._shared) - 1 - reach  # the most neighbours of two nodes with at least so many common ones
        common, both = common[common >= 0].astype(np.int64), both[common >= 0]
        found = []
        for t in range(n):
            found.append(min(int(np.minimum(common + t, (both + t) // 2).max()), self.n - 2))
            if found[-1] == self.n - 2:
                return found + [self.n - 2] * (n - len(found))
        return found


class SharedTriangles(Triangles):
    """k-triangles: an edge, and k nodes that are joined with both of its ends."""

    @staticmethod
    def least_nodes(k):
        """Return the nodes of the pattern."""
        return k + 2

    @staticmethod
    def most(n, k):
        """Return the largest count of any graph of n nodes, cut."""
        return min(math.comb(n, 2) * math.comb(n - 2, k), LARGEST)

    def _count(self):
        sizes, times = np.unique(self._of_edges[1], return_counts=True)
        return sum(times * math.comb(size, self.k) for size, times in zip(sizes.tolist(), times.tolist()))

    def bound(self, level):
        """Return at least what an edge changes where no two nodes have more than so many common neighbours."""
        level = min(level, self.n - 2)
        return math.comb(level, self.k) + 2 * level * math.comb(min(level, self.n - 3), self.k - 1)

    def moves(self, n):
        """Return at least what an edge changes after t further edges, for each t.

        The triangles of edges from two nodes to their common neighbours matter, and not those of any edges.
        """
        x, k, beside, found = self.level, self.k, self._beside, []
        for t in range(n):
            found.append(self.bound(x + t))
            if beside is not None:
                terms = sum(most * math.comb(t, k - 1 - r) for r, most in enumerate(beside))
                found[-1] = min(found[-1], math.comb(x + t, k) + terms + 2 * t * math.comb(x + t, k - 1))
        return found

    @cached_property
    def _beside(self):
        """The largest sums, over the edges from two nodes to their common neighbours, of C(triangles, r), r < k.

        None where sums of some graph of so many nodes would not fit into 64 bits: which bound is taken is public.
        """
        if 2 * self.n * math.comb(self.n - 2, self.k - 1) >= LARGEST:
            return None
        graph, (_, counts) = self.graph.ranked, self._of_edges
        matrix = sparse.csr_array((counts + 1, graph.neighbours, graph.starts), shape=(self.n, self.n))
        counts = (matrix + matrix.T).tocsr().data - 2  # (each edge at both of its places; no entry is 0 before)
        most = int(counts.max(initial=0))
        found = [2 * self.level]
        for r in range(1, self.k):
            weights = np.array([math.comb(count, r) for count in range(most + 1)], np.int64)
            ends = np.concatenate([[0], np.cumsum(weights[counts])])[graph.starts]
            sums = np.diff(ends)
            order = np.argsort(-sums, kind="stable").astype(np.int32)
            ranks = np.empty(self.n, np.int32)
            ranks[order] = np.arange(self.n, dtype=np.int32)
            found.append(graphs.most_beside(
                graph.starts, graph.neighbours, counts, weights, sums, order, ranks, np.zeros(self.n, np.int64),
                np.zeros(self.n, np.int32), np.empty(self.n, np.int32)))
        return found


def _joined(graph, i, j):
    """Return 1 where two nodes are joined, and else 0."""
    return int((graph.neighbours[graph.starts[i] : graph.starts[i + 1]] == j).any())


#: By the name of the pattern.
PATTERNS = {"edge": Edges, "triangle": Triangles, "k-star": Stars, "k-triangle": SharedTriangles}
