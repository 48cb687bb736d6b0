"""How often a pattern occurs in a graph, for whole nodes."""

import copy
import math

import numpy as np

from dpestim.graph.nodes.base import PARAMETERS, NodeRelease, chosen
from dpestim.graph.nodes.copies import COPIES
from dpestim.graph.nodes.packing import UNIT, packed
from dpestim.graph.nodes.truncation import Flows, Projection, random_order
from dpestim.results import Part


class ProjectedEdges:
    """Edges that are kept in a random order, while both ends have less than a bound."""

    unit = 1

    def __init__(self, projection, k):
        self.projection, self.k = projection, k

    @classmethod
    def of(cls, graph, source, estimator):
        """Return that of a graph; the source draws the order."""
        return cls(Projection(graph, random_order(graph.n_edges, source)), estimator.k)

    def total(self, bound):
        """Return the count."""
        return int(self.projection.degrees(bound).sum()) // 2

    def answers(self, bound):
        """Return the count, in units."""
        return [self.total(bound)]

    @staticmethod
    def size(bound):
        """Return how many answers there are."""
        return 1

    @staticmethod
    def sensitivity(bound, estimator):
        """Return how far one node moves the count, in units."""
        return bound

    def rise(self, bound):
        """Return how far one node may raise the count, in units."""
        return bound

    def fall(self, bound):
        """Return how far one node may lower the count, in units."""
        return 0


class ProjectedStars(ProjectedEdges):
    """Stars of the edges that are kept."""

    def total(self, bound):
        """Return the count."""
        sizes = np.bincount(self.projection.degrees(bound), minlength=1).tolist()
        return sum(times * math.comb(degree, self.k) for degree, times in enumerate(sizes))

    @staticmethod
    def sensitivity(bound, estimator):
        """Return how far one node moves the count."""
        return (estimator.k + 1) * math.comb(bound, estimator.k) or 1  # (of bounds without stars: a law needs one)

    def rise(self, bound):
        """Return how far one node may raise the count."""
        return (self.k + 1) * math.comb(bound, self.k)

    def fall(self, bound):
        """Return how far one node may lower the count, and at least 1."""
        return bound * math.comb(bound - 1, self.k - 1) or 1


class FlowEdges(ProjectedEdges):
    """Half of the largest flow in which no node gives or takes more than a bound."""

    unit = 2

    def __init__(self, flows):
        self.flows = flows

    @classmethod
    def of(cls, graph, source, estimator):
        """Return that of a graph."""
        return cls(Flows(graph))

    def total(self, bound):
        """Return the flow."""
        return self.flows.value(bound, bound)

    @staticmethod
    def sensitivity(bound, estimator):
        """Return how far one node moves the flow."""
        return 2 * bound

    def rise(self, bound):
        """Return how far one node may raise the flow."""
        return 2 * bound


class PackedCopies(ProjectedEdges):
    """Copies of the pattern, taken whole or in part, of which no node has more than a bound."""

    unit = UNIT

    def __init__(self, copies, n_nodes):
        self.copies, self.n_nodes, self.known = copies, n_nodes, {}

    @classmethod
    def of(cls, graph, source, estimator):
        """Return that of a graph."""
        return cls(COPIES[estimator.pattern](graph, estimator.k), graph.n_nodes)

    def total(self, bound):
        """Return the value of the linear program."""
        if bound not in self.known:
            self.known[bound] = packed(self.copies, self.n_nodes, bound)
        return self.known[bound]

    @staticmethod
    def sensitivity(bound, estimator):
        """Return how far one node moves the value: by the bound, and rounding."""
        return UNIT * bound + 1

    def rise(self, bound):
        """Return how far one node may raise the value."""
        return UNIT * bound + 1

    def fall(self, bound):
        """Return how far one node may lower the value: by rounding."""
        return 1


#: By pattern, and by projection.
KINDS = {
    "edge": {"lipschitz": FlowEdges, "stable": ProjectedEdges},
    "k-star": {"lipschitz": PackedCopies, "stable": ProjectedStars},
    "square": {"lipschitz": PackedCopies},
    "triangle": {"lipschitz": PackedCopies},
}


class NodeSubgraphCount(NodeRelease):
    """Count edges, triangles, k-stars or squares of a graph with noise for whole nodes.

    A further node may make any number of triangles. So the count is that of a graph which is cut to a bound: of the
    edges of a node, or of the triangles that a node is part of. Graphs within the bound keep their count.

    **Privacy.** Pure epsilon in the central model, for graphs of which one has one node more, with all its edges. The
    number of nodes is private, too. Two graphs in which one node has other edges are two steps apart: 2 epsilon. How
    nodes are listed does not matter. The curator, who holds the graph, must be trusted. Floats of a solver decide
    nothing: its answers are checked in integers, and what they are off is part of the sensitivity.

    **Utility.** With a bound B the noise has a standard deviation of 1.4 S / epsilon, where epsilon is what the choice
    of the bound has left. S is B for edges, B + 1/16 for what is packed, and (k + 1) C(B, k) for k-stars by "stable".
    What is beyond the bound is not counted. So the interval has a lower end only. At epsilon 1, 25,000 edges of 5,000
    nodes are off by 4 to 5 percent (degrees by a power law up to 326), and 60,000 triangles of 4,000 nodes in groups by
    3 percent; 1,300 triangles of the former graph are off by half: few nodes have most of them.

    **Complexity.** Edges: a maximum flow for each bound, 0.5 s for 200,000 edges and eleven bounds. Packed patterns:
    all copies are listed, and a linear program over those that meet a node above the bound is solved for each bound: 8
    s for 73,000 triangles of a graph whose degrees follow a power law, 58 s for 99,000 of one with groups; far beyond
    some 100,000 copies it is too slow. "stable": O(m log m) for m edges, 0.2 s for 1e6. All of these are from
    ``python -m benchmarks.whole_nodes``, on one core.

    {parameters}
    References
    ----------
    Kasiviswanathan, Nissim, Raskhodnikova, Smith (2013), "Analyzing graphs with node differential privacy", TCC, for
    flows and linear programs. Day, Li, Lyu (2016), "Publishing graph degree distribution with node differential
    privacy", SIGMOD, for the projection. Raskhodnikova, Smith (2016), "Lipschitz extensions for node-private graph
    statistics and the generalized exponential mechanism", FOCS, for the choice of the bound. The proof:
    ``subgraph_count.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.graph import NodeSubgraphCount, adjacency
    >>> rng = np.random.default_rng(0)
    >>> groups = [(5 * g + i, 5 * g + j) for g in range(400) for i in range(5) for j in range(i)]
    >>> est = NodeSubgraphCount(1.0, pattern="triangle", max_bound=64, random_state=0).fit(adjacency(groups, 2000))
    >>> est.bound_, est.value_ > 3000  # 4000 triangles: 6 of each node
    (8, True)
    """

    _more_parameters = """
    pattern : {"edge", "triangle", "k-star", "square"}, default="edge"
        What is counted: pairs of nodes that are joined; three nodes that are all joined; a node and k of its
        neighbours; cycles of four nodes.
    k : int, default=2
        Of "k-star": from 2 to 10.
    projection : {"lipschitz", "stable"}, default="lipschitz"
        How the graph is cut: by largest flows (edges) and linear programs; or by leaving out edges one after the other,
        in an order that is drawn at random ("edge" and "k-star").
    """ + PARAMETERS.lstrip("\n").lstrip()
    _more_attributes = """
    value_ : float
        The count of what the bound leaves, with noise; at least 0.
    standard_error_ : float
        The standard deviation of the noise, without what the bound leaves out.
    bound_ : int
        The most edges of a node, or the most copies that it is part of, which are counted.
    """

    def __init__(self, epsilon=1.0, *, pattern="edge", k=2, projection="lipschitz", bound=None, max_bound=1024,
                 bound_fraction=0.5, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.pattern = pattern
        self.k = k
        self.projection = projection
        self.bound = bound
        self.max_bound = max_bound
        self.bound_fraction = bound_fraction
        self.ledger = ledger
        self.random_state = random_state

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
        """Return (low, inf): the exact count is at least `low` with this probability or more, for any graph.

        Nothing is known of what the bound leaves out, and so there is no upper end.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).

        Returns
        -------
        (low, high) : floats
        """
        if isinstance(level, bool) or not 0 < level < 1:
            raise ValueError("level must be a number between 0 and 1")
        above = self._unit == UNIT  # (what is packed may be read as a unit more)
        return max(self._noisy - (self._law_.half_width(level) + above) / self._unit, 0.0), math.inf

    @property
    def standard_error_(self):
        """The standard deviation of the noise."""
        return math.sqrt(self._law_.variance) / self._unit

    # ---------------------------------------------------------------- inside

    def _kind(self):
        if isinstance(self.k, bool) or not isinstance(self.k, int | np.integer) or not 2 <= self.k <= 10:
            raise ValueError("k must be an int from 2 to 10")
        ways = chosen(KINDS, self.pattern, "pattern")
        return chosen(ways, self.projection, f"projection of pattern={self.pattern!r}")

    def _learned(self, noisy):
        unit = self._kind().unit
        return {"value_": max(noisy[0] / unit, 0.0), "_noisy": noisy[0] / unit, "_unit": unit}

    def _result_parts(self, level):
        interval = np.array(self.confidence_interval(level)) if level else None
        return [Part(f"number of {_NAMES[self.pattern].format(k=self.k)}", (), np.asarray(self.value_),
                     np.asarray(self.standard_error_), interval)]

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "max_bound": 4},
            {"epsilon": 1.0, "pattern": "triangle", "max_bound": 2, "bound_fraction": 0.4},
            {"epsilon": 2.0, "pattern": "k-star", "projection": "stable", "bound": 3},
            {"epsilon": 1.0, "pattern": "square", "bound": 2},
            {"epsilon": 1.0, "pattern": "k-star", "max_bound": 4},
            {"epsilon": 1.0, "projection": "stable", "max_bound": 4},
        ]


_NAMES = {"edge": "edges", "triangle": "triangles", "k-star": "{k}-stars", "square": "squares"}
