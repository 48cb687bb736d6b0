"""PageRank of the nodes of a graph, from degrees with noise for edges."""

import math
from fractions import Fraction
from numbers import Real

import numpy as np

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.graph.edge_release import EdgeRelease
from dpestim.results import Part


class PageRankEstimator(EdgeRelease):
    """Estimate the PageRank of all nodes of an undirected graph, from their degrees with noise for edges.

    A walk along the edges of an undirected graph visits nodes in proportion to their degrees. PageRank with jumps is
    close to that: jumps to all nodes alike, and else degrees. One edge moves two degrees by 1, whereas a release of the
    adjacency matrix puts noise into each of the n - 1 pairs of a node, which hides all but dense graphs.

    **Privacy.** Pure epsilon in the central model, for graphs on the same nodes of which one has one edge more. What is
    protected is a relationship of two persons, not a person: epsilon grows with the number of edges in which two graphs
    differ. The nodes and their number are public. The curator, who holds the graph, must be trusted.

    **Utility.** Each degree has noise of standard deviation 2.8 / epsilon. Degrees without noise are off by 1 to 4
    percent of all PageRank, in all, in the graphs that ``pagerank.md`` measures; the paths behind the neighbours are
    not looked at. PageRanks have no standard errors, because the second error depends on the graph; degrees have.

    **Complexity.** O(n + m) time and memory for n nodes and m edges.

    {parameters}
    References
    ----------
    Grolmusz (2015), "A note on the PageRank of undirected graphs", Information Processing Letters, for how close
    degrees are. The proof, and the comparison with a release of the matrix: ``pagerank.md``.

    Examples
    --------
    >>> from dpestim.graph import PageRankEstimator, adjacency
    >>> star = adjacency([(0, i) for i in range(1, 200)], 200)
    >>> est = PageRankEstimator(4.0, random_state=0).fit(star)
    >>> int(est.pagerank_.argmax())
    0
    """

    _released = "pagerank_"
    _more_parameters = """
    damping : float, default=0.85
        The probability of a step along an edge, above 0 and below 1; else a jump to any node.
    """
    _more_attributes = """
    pagerank_ : ndarray of shape (n_nodes,)
        At least 0, with the sum 1.
    degrees_ : ndarray of shape (n_nodes,)
        The degrees with noise, cut to where degrees are: from 0 to n_nodes - 1.
    standard_error_ : float
        The standard deviation of the noise of a degree.
    n_nodes_ : int
        The number of nodes, which is public.
    """

    def __init__(self, epsilon=1.0, *, damping=0.85, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.damping = damping
        self.ledger = ledger
        self.random_state = random_state

    def confidence_interval(self, level=0.95):
        """Return (low, high) of `degrees_`: each encloses the exact degree with at least this probability.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).

        Returns
        -------
        (low, high) : ndarrays of shape (n_nodes,)
        """
        if isinstance(level, bool) or not 0 < level < 1:
            raise ValueError("level must be a number between 0 and 1")
        half = self._law.half_width(level)
        return tuple(np.clip(self._noisy + sign * half, 0, self.n_nodes_ - 1) for sign in (-1, 1))

    @property
    def standard_error_(self):
        """The standard deviation of the noise of a degree."""
        return math.sqrt(self._law.variance)

    # ---------------------------------------------------------------- inside

    def _settings(self):
        self._budget()
        if isinstance(self.damping, bool) or not isinstance(self.damping, Real) or not 0 < self.damping < 1:
            raise ValueError("damping must be a number above 0 and below 1")

    def _noisy_parts(self, n_nodes):
        return [DiscreteLaplaceLaw(self._budget()[0], Fraction(0), Fraction(2), 0)]

    def _answers(self, graph):
        return [graph.degrees.astype(np.int64)]

    def _learned(self, noisy, n_nodes):
        degrees = np.clip(noisy[0], 0, n_nodes - 1).astype(float)
        total, jump = degrees.sum(), np.full(n_nodes, 1 / n_nodes)
        steps = degrees / total if total else jump
        ranks = (1 - float(self.damping)) * jump + float(self.damping) * steps
        return {"pagerank_": ranks, "degrees_": degrees, "_noisy": noisy[0], "_law": self._noisy_parts(n_nodes)[0]}

    def _result_parts(self, level):
        nodes = (("node", list(range(self.n_nodes_))),)
        ends = np.stack(self.confidence_interval(level), -1) if level else None
        errors = np.full(self.n_nodes_, self.standard_error_)
        return [Part("PageRank", nodes, self.pagerank_), Part("degree", nodes, self.degrees_, errors, ends)]

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0}, {"epsilon": 3.0, "damping": 0.5}]
