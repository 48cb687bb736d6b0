"""Graphs from noisy degrees: users report how many neighbours they have, and BTER makes a graph of such degrees."""

import math

from dpestim.graph.generators.base import GraphSampler
from dpestim.graph.generators.bter_edges import CLUSTERING, checked_clustering, edges_of
from dpestim.graph.generators.degrees import likely_degrees
from dpestim.graph.lists.either import EitherReports


class DGGGenerator(GraphSampler, EitherReports):
    """Draw graphs of the degrees that users report with noise (DGG), and of a clustering that is assumed.

    Each user reports how many neighbours the user has, with noise. The server finds the distribution of degrees that is
    likeliest, gives nodes its degrees in the order of the reports, and draws graphs by block two-level Erdos-Renyi
    (`dpestim.graph.bter`).

    **Privacy.** Pure epsilon in the local model for neighbour lists of one user that differ in one entry, exactly. A
    relationship is an entry of the lists of two users: it has twice the epsilon, and k relationships of a person have
    2 k times. No other party must be trusted. The nodes and their number are public. Graphs are drawn from reports
    alone, so that they cost nothing.

    **Utility.** A reported degree has noise of standard deviation 1.4 / epsilon. The distribution of degrees and the
    number of edges are close to those of the graph from epsilon 1 on. Nothing is learned of who is joined with whom:
    clustering and triangles are those that `clustering` assumes, and communities of the graph are lost. On two graphs
    of 2,000 nodes, with the default of `clustering`, triangles were off by half and by a factor of 12, and shortest
    paths by a sixth, for any epsilon (guide, "How like the graph are graphs that are drawn?").

    **Complexity.** O(n log n + edges) time and O(n + edges) memory for a graph. A user sends 8 bytes.

    {parameters}
    References
    ----------
    Qin, Yu, Yang, Khalil, Xiao, Ren (2017), "Generating synthetic decentralized social graphs with local differential
    privacy", CCS, section 3.2, for degrees and BTER. Seshadhri, Kolda, Pinar (2012), "Community structure and
    scale-free collections of Erdos-Renyi graphs", Physical Review E. The proof: ``dgg.md``.

    Examples
    --------
    >>> from dpestim.graph import DGGGenerator, bter
    >>> graph = bter([6] * 300, 0.5, random_state=0)
    >>> drawn = DGGGenerator(2.0, random_state=0).fit(graph).sample(random_state=0)
    >>> drawn.shape, graph.nnz // 2, bool(850 < drawn.nnz // 2 < 950)
    ((300, 300), 900, True)
    """

    _checked_as = "list generator"
    method, lists = "laplace", "whole"
    _more_parameters = CLUSTERING + "    {n_jobs}\n"
    _more_attributes = """
    degrees_ : ndarray of shape (n_nodes,)
        The degree of each node in graphs that are drawn: integers from 0 to n_nodes - 1.
    n_nodes_ : int
        The number of nodes, which is public.
    n_users_ : int
        Users whose reports were aggregated.
    """

    def __init__(self, epsilon=1.0, *, clustering=0.3, ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.clustering = clustering
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- inside

    def _check(self):
        super()._check()
        checked_clustering(self.clustering)

    def _estimates(self, read):
        degrees = likely_degrees(read.values, -math.log(self._law().ratio), read.n_nodes - 1)
        return {"degrees_": degrees, "n_nodes_": read.n_nodes, "_curve": checked_clustering(self.clustering)}

    def _draw(self, rng):
        return edges_of(self.degrees_, self._curve, rng)

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0}, {"epsilon": 2.0, "clustering": [0.0, 0.0, 0.8, 0.4]}]
