"""How many nodes have how many edges, for whole nodes."""

import copy
import math

import numpy as np
from sklearn.isotonic import isotonic_regression

from dpestim.graph.nodes.base import PARAMETERS, NodeRelease, chosen
from dpestim.graph.nodes.truncation import Flows, Projection, random_order
from dpestim.results import Part


class ProjectedDegrees:
    """Degrees of the graph whose edges are kept in a random order, while both ends have less than a bound."""

    def __init__(self, projection):
        self.projection = projection

    @classmethod
    def of(cls, graph, source, estimator):
        """Return that of a graph; the source draws the order."""
        return cls(Projection(graph, random_order(graph.n_edges, source)))

    def total(self, bound):
        """Return the sum of all degrees: twice the edges that are kept."""
        return int(self.projection.degrees(bound).sum())

    def answers(self, bound):
        """Return how many nodes have at most 0, 1, ..., bound edges."""
        return np.cumsum(np.bincount(self.projection.degrees(bound), minlength=bound + 1)).tolist()

    @staticmethod
    def size(bound):
        """Return how many answers there are."""
        return bound + 1

    @staticmethod
    def sensitivity(bound, estimator):
        """Return how far one node moves the answers, in all."""
        return bound + 1

    def rise(self, bound):
        """Return how far one node may raise the total."""
        return 2 * bound

    def fall(self, bound):
        """Return how far one node may lower the total."""
        return 0


class FlowDegrees(ProjectedDegrees):
    """Degrees that largest flows say, by which those of graphs with none above the bound stay as they are."""

    def __init__(self, flows):
        self.flows = flows

    @classmethod
    def of(cls, graph, source, estimator):
        """Return that of a graph."""
        return cls(Flows(graph))

    def total(self, bound):
        """Return the largest flow."""
        return self.flows.value(bound, bound)

    def answers(self, bound):
        """Return the nodes less those of at least 1, 2, ..., bound edges, and the nodes."""
        sums = [0, *(self.flows.value(k, bound) for k in range(1, bound + 1))]
        return [*(self.flows.graph.n_nodes - np.diff(sums)).tolist(), self.flows.graph.n_nodes]


KINDS = {"lipschitz": FlowDegrees, "stable": ProjectedDegrees}


class NodeDegreeDistribution(NodeRelease):
    """Estimate how many nodes have how many edges with noise for whole nodes.

    A further node may have an edge to all others, and then moves all degrees. So nodes of high degree lose edges first,
    down to a bound, in a way in which one node cannot change much. What is published is how many nodes have at most 0,
    1, ..., bound edges, with noise; isotonic regression makes the numbers rise.

    **Privacy.** Pure epsilon in the central model, for graphs of which one has one node more, with all its edges. The
    number of nodes is private, too. Two graphs in which one node has other edges are two steps apart: 2 epsilon. How
    nodes are listed does not matter. The curator, who holds the graph, must be trusted.

    **Utility.** With a bound B, the noise of each number has a standard deviation of 1.4 (B + 1) / epsilon, where
    epsilon is what the choice of the bound has left; the regression reduces it where few nodes have such a degree.
    Nodes with more than B edges, and some of their neighbours, are counted at smaller degrees. So what is known is
    one-sided: see `confidence_interval`. Graphs whose degrees are at most B lose nothing. Of others, "lipschitz" keeps
    as many edges as possible, which takes longer and is hardly more accurate: on 5,000 nodes and 25,000 edges with
    degrees by a power law up to 326, the largest error of a cumulative share is 0.07 and 0.06 at epsilon 1, and 0.03
    with both at epsilon 4.

    **Complexity.** "stable": O(m log m) time for m edges, 0.2 s for 1e6 edges of 1e5 nodes and eleven bounds.
    "lipschitz": a maximum flow for each degree up to B and each bound, 5 s for 200,000 edges of 10,000 nodes. These
    figures are from ``python -m benchmarks.whole_nodes``, on one core.

    {parameters}
    References
    ----------
    Day, Li, Lyu (2016), "Publishing graph degree distribution with node differential privacy", SIGMOD, for the
    projection and its sensitivity. Raskhodnikova, Smith (2016), "Lipschitz extensions for node-private graph statistics
    and the generalized exponential mechanism", FOCS, for flows and the choice of the bound. The proof, with
    the sensitivity of cumulative counts by flows: ``degree_distribution.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.graph import NodeDegreeDistribution, adjacency
    >>> rng = np.random.default_rng(0)
    >>> ring = [(i, (i + step) % 2000) for i in range(2000) for step in (1, 2, 3)]  # every node has 6 edges
    >>> est = NodeDegreeDistribution(2.0, max_bound=64, random_state=0).fit(adjacency(ring, 2000))
    >>> est.bound_, int(np.argmax(est.distribution_))
    (8, 6)
    >>> print(est.privacy_.neighbours.sentence)
    graphs of which one has one node more, with all its edges
    """

    _more_parameters = """
    projection : {"stable", "lipschitz"}, default="stable"
        How edges are left out: one after the other, in an order that is drawn at random; or by largest flows.
    """ + PARAMETERS.lstrip("\n").lstrip()
    _more_attributes = """
    cumulative_ : ndarray of shape (bound + 1,)
        The nodes with at most 0, 1, ..., `bound_` edges that are kept; it rises, from 0 on.
    distribution_ : ndarray of shape (bound + 1,)
        The share of nodes with 0, 1, ..., `bound_` edges; the sum is 1.
    n_nodes_ : float
        The number of nodes with noise: the last of `cumulative_`.
    noisy_cumulative_ : ndarray of shape (bound + 1,)
        Integers, before the regression: unbiased for the graph that is left.
    standard_error_ : float
        The standard deviation of the noise of each of these.
    bound_ : int
        The largest degree that is kept.
    """

    def __init__(self, epsilon=1.0, *, projection="stable", bound=None, max_bound=1024, bound_fraction=0.5, ledger=None,
                 random_state=None):
        self.epsilon = epsilon
        self.projection = projection
        self.bound = bound
        self.max_bound = max_bound
        self.bound_fraction = bound_fraction
        self.ledger = ledger
        self.random_state = random_state

    def release(self, X):
        """Return the cumulative counts with noise, as `fit` does, and keep nothing; one release.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (bound + 1,)
        """
        return copy.copy(self).fit(X).cumulative_

    def confidence_interval(self, level=0.95):
        """Return (low, high) of the exact number of nodes with at most 0, 1, ..., `bound_` edges, for any graph.

        The number of all nodes, the last one, has both ends. Of the others only `high` is known, and `low` is 0:
        edges that are left out let nodes have fewer edges, never more.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1), for each number.

        Returns
        -------
        ndarray of shape (bound + 1, 2)
        """
        if isinstance(level, bool) or not 0 < level < 1:
            raise ValueError("level must be a number between 0 and 1")
        half, noisy = self._law_.half_width(level), self.noisy_cumulative_
        high = np.maximum(noisy + half, self.cumulative_)
        low = np.zeros(len(noisy))
        low[-1] = min(max(noisy[-1] - half, 0.0), self.cumulative_[-1])
        return np.column_stack([low, high])

    @property
    def standard_error_(self):
        """The standard deviation of the noise of a number."""
        return math.sqrt(self._law_.variance)

    # ---------------------------------------------------------------- inside

    def _kind(self):
        return chosen(KINDS, self.projection, "projection")

    def _learned(self, noisy):
        noisy = np.array(noisy, float)
        rising = np.maximum(isotonic_regression(noisy), 0)
        total = rising[-1]
        shares = np.diff(rising, prepend=0) / total if total > 0 else np.full(len(rising), 1 / len(rising))
        return {"cumulative_": rising, "distribution_": shares, "n_nodes_": float(total), "noisy_cumulative_": noisy}

    def _result_parts(self, level):
        labels = (("degree", list(range(self.bound_ + 1))),)
        intervals = self.confidence_interval(level) if level else None
        return [Part("nodes of at most this degree", labels, self.cumulative_, None, intervals)]

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "max_bound": 4},
            {"epsilon": 2.0, "projection": "lipschitz", "max_bound": 3, "bound_fraction": 0.3},
            {"epsilon": 1.0, "bound": 2},
        ]
