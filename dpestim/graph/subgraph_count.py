"""How often a pattern occurs in a graph: edges, triangles, stars, triangles that share an edge."""

import copy
import math
from fractions import Fraction

import numpy as np

from dpestim.central.base import CentralMechanism, checked_delta, declared_delta
from dpestim.central.stability.rows import checked_share
from dpestim.graph.noise import METHODS, PlainNoise
from dpestim.graph.patterns import PATTERNS
from dpestim.graph.reading import read_graph
from dpestim.graph.tags import TagsOfGraphs
from dpestim.privacy import Neighbours
from dpestim.privacy.exact import canonical_epsilon
from dpestim.results import Part
from dpestim.rng import WordSource, check_random_state


class SubgraphCount(TagsOfGraphs, CentralMechanism):
    """Count edges, triangles, k-stars or k-triangles of a graph with noise for its edges.

    A new edge between two nodes makes as many triangles as these have common neighbours: up to n - 2 in the worst
    graph, and few in most. The noise follows what an edge can change in this graph and in graphs near it.

    **Privacy.** Pure epsilon for "ladder" and "smooth", and (epsilon, delta) for "local", in the central model, for
    graphs on the same nodes of which one has one edge more. What is protected is a relationship of two persons, not a
    person: epsilon grows with the number of edges in which two graphs differ, as those with and without all edges of a
    node. The nodes and their number are public. The curator, who holds the graph, must be trusted.

    **Utility.** Let A(t) be the most that one edge changes after t further edges. "ladder" is off by 2.5 to 3.5 times
    A(0) / epsilon on average, if A(0) is above 10, and by more if A(0) is small and epsilon below 2; "smooth" has noise
    of standard deviation 4 S / epsilon, where S is the largest A(t) e^(-epsilon t / 6). For epsilon from 1/4 to 4 and
    seven graphs of 400 to 2,000 nodes the root mean squared error of "smooth" was 0.3 to 1.0 times that of "ladder" for
    triangles. "ladder" errs less where both are off by 1 or 2: an epsilon of 4 or more, and few triangles.
    Both depend on the graph, and have no standard error. "local" publishes a bound of A(0), and has a standard error
    and intervals: with half of epsilon for each, 2.8 / epsilon times A(0) + 2 ln(1 / delta) / epsilon, for triangles.
    One edge changes the number of edges by 1: all methods then add discrete Laplace noise.

    **Complexity.** O(m^1.5) time for triangles of m edges, and O(m + n) memory. A(t) of triangles takes the paths of
    two edges between nodes of higher degree than the most common neighbours of any two nodes.

    {parameters}
    References
    ----------
    Karwa, Raskhodnikova, Smith, Yaroslavtsev (2011), "Private analysis of graph structure", PVLDB, for k-stars and the
    noisy bound. Nissim, Raskhodnikova, Smith (2007), "Smooth sensitivity and sampling in private data analysis", STOC,
    claim 3.13, for triangles. Zhang, Cormode, Procopiuc, Srivastava, Xiao (2015), "Private release of graph statistics
    using ladder functions", SIGMOD. The proof, with the bound for k-triangles: ``subgraph_count.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.graph import SubgraphCount, adjacency
    >>> rng = np.random.default_rng(0)
    >>> friends = [(i, j) for i in range(300) for j in range(i) if rng.random() < (0.4 if i % 10 == j % 10 else 0.02)]
    >>> graph = adjacency(friends, 300)
    >>> print(SubgraphCount(1.0, method="local", delta=1e-6, random_state=0).fit(graph).result_)
    quantity             value  standard error  95 % interval
    number of triangles   2709            90.5   2517 to 2901
    From SubgraphCount; its confidence_interval says what an interval covers.
    """

    _checked_as, _template = "graph", "rows"
    _not_in_parts = ("needs all edges at once, because a triangle may have edges of several parts: fit it to the whole "
                     "graph on one machine")
    _more_parameters = """
    pattern : {"edge", "triangle", "k-star", "k-triangle"}, default="triangle"
        What is counted: pairs of nodes that are joined; three nodes that are all joined; a node and k of its
        neighbours; an edge and k nodes that are joined with both of its ends. Counts are cut at 2^62.
    k : int, default=2
        Of "k-star" and "k-triangle": from 2 to 10.
    method : {"smooth", "ladder", "local"}, default="smooth"
        How noise follows the graph; "local" takes a delta.
    delta : float, default=None
        The delta of "local", above 0 and below 1; None or 0 for the others, which need none.
    bound_fraction : float, default=0.5
        The part of epsilon, above 0 and below 1, that "local" spends on the bound.
    """
    _more_attributes = """
    value_ : float
        The count with noise, from 0 to the count of the complete graph.
    standard_error_ : float
        Of "local" and of edges: the standard deviation of the noise.
    bound_ : int
        Of "local": a bound of what one edge changes in this graph, which holds but for a probability of delta.
    n_nodes_ : int
        The number of nodes, which is public.
    """

    def __init__(self, epsilon=1.0, *, pattern="triangle", k=2, method="smooth", delta=None, bound_fraction=0.5,
                 ledger=None, random_state=None):
        self.epsilon = epsilon
        self.pattern = pattern
        self.k = k
        self.method = method
        self.delta = delta
        self.bound_fraction = bound_fraction
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X, y=None):
        """Count with noise: one release, which is charged before noise is drawn; nothing else is kept.

        Parameters
        ----------
        X : sparse matrix, ndarray of shape (n_nodes, n_nodes) or networkx.Graph
            An undirected graph as a symmetric adjacency matrix of zeros and ones with a zero diagonal. `adjacency`
            makes one of a table of edges.
        y : ignored

        Returns
        -------
        self
        """
        self._bind_here()
        noise, n_nodes = self._noise(X)
        promised, source = self._guarantee(), WordSource(self.random_state)
        self._pay()
        return self._become({**noise.draw(source), "n_nodes_": n_nodes, "_kept_promise": promised})

    def release(self, X):
        """Return the count with noise, as `fit` does, and keep nothing; one release.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        float
        """
        return copy.copy(self).fit(X).value_

    def confidence_interval(self, level=0.95):
        """Return (low, high), which encloses the exact count with at least this probability, for any graph.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).

        Returns
        -------
        (low, high) : floats

        Raises
        ------
        AttributeError
            For "ladder" and "smooth", whose noise depends on the graph.
        """
        law = self._law_of_value()
        most = float(PATTERNS[self.pattern].most(self.n_nodes_, self.k))
        if isinstance(level, bool) or not 0 < level < 1:
            raise ValueError("level must be a number between 0 and 1")
        half = law.half_width(level)
        return max(self.value_ - half, 0.0), min(self.value_ + half, most)

    @property
    def standard_error_(self):
        """The standard deviation of the noise, where it does not depend on the graph."""
        return math.sqrt(self._law_of_value().variance)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "value_")

    # ---------------------------------------------------------------- inside

    def _law_of_value(self):
        if getattr(self, "_law", None) is None:
            raise AttributeError(f"method={self.method!r} has no standard error, because its noise depends on the "
                                 'graph: take method="local", with a delta')
        return self._law

    def _relation(self):
        return Neighbours.EDGE

    def _budget(self):
        self._choices()
        return canonical_epsilon(self.epsilon), self._delta(), None

    def _delta(self):
        if self.method == "local" and self.pattern != "edge":
            return checked_delta(self.delta)
        if declared_delta(self.delta):
            raise ValueError(f"delta must be None or 0 for method={self.method!r} and pattern={self.pattern!r}, which "
                             "need none")
        return Fraction(0)

    def _choices(self):
        """Return (pattern, method), checked."""
        if not isinstance(self.pattern, str) or self.pattern not in PATTERNS:
            raise ValueError(f"pattern must be one of {sorted(PATTERNS)}")
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise ValueError(f"method must be one of {sorted(METHODS)}")
        if isinstance(self.k, bool) or not isinstance(self.k, int | np.integer) or not 2 <= self.k <= 10:
            raise ValueError("k must be an int from 2 to 10")
        checked_share(self.bound_fraction, "bound_fraction")
        self._delta()
        return PATTERNS[self.pattern], PlainNoise if self.pattern == "edge" else METHODS[self.method]

    def _noise(self, X):
        """Return (the noise for a graph, its number of nodes), or raise ValueError for whatever is wrong."""
        pattern, method = self._choices()
        graph = read_graph(X, strict=self._is_strict())
        least = pattern.least_nodes(self.k)
        if graph.n_nodes < least:
            raise ValueError(f"the graph must have at least {least} nodes, those of one pattern")
        check_random_state(self.random_state)
        self._relation_of_release()
        return method(pattern(graph, self.k), self), graph.n_nodes

    def _notes(self):
        return ("What is protected is an edge. Two graphs that differ in k edges, such as those with and without the k "
                "relationships of one person, have k times this epsilon.",)

    def _result_parts(self, level):
        interval = error = None
        if getattr(self, "_law", None) is not None:
            error = self.standard_error_
            interval = np.array(self.confidence_interval(level)) if level else None
        return [Part(f"number of {_NAMES[self.pattern].format(k=self.k)}", (), np.asarray(self.value_),
                     None if error is None else np.asarray(error), interval)]

    def _test_data(self, n_rows, seed=0):
        """Return the adjacency matrix of a graph of so many nodes."""
        upper = np.triu(np.random.default_rng(seed).random((n_rows, n_rows)) < 0.3, 1)
        return (upper | upper.T).astype(np.uint8), None

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "method": "ladder"},
            {"epsilon": 1.0, "pattern": "k-star", "k": 3, "method": "local", "delta": 1e-3, "bound_fraction": 0.4},
            {"epsilon": 2.0, "pattern": "triangle", "method": "smooth"},
            {"epsilon": 1.0, "pattern": "k-triangle"},
            {"epsilon": 0.5, "pattern": "edge"},
        ]


_NAMES = {"edge": "edges", "triangle": "triangles", "k-star": "{k}-stars", "k-triangle": "{k}-triangles"}
