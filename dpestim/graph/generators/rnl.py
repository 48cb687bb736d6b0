"""Graphs from randomised neighbour lists: what reports leave likely, pair by pair."""

import numpy as np

from dpestim.graph.generators.base import GraphSampler
from dpestim.graph.lists.base import BitReports, ListEstimator

#: Where pairs are joined with more than this probability, all pairs are gone through.
_DENSE = 0.5


class RNLGenerator(GraphSampler, BitReports, ListEstimator):
    """Draw graphs from randomised neighbour lists (RNL), of the right density.

    The noisy graph that reports say has far too many edges: of a sparse graph of n nodes about q n^2 / 2 false ones, with
    q = 1 / (e^epsilon + 1). A graph is drawn pair by pair instead, with the probability of an edge given the report and
    an estimated number of edges and degrees (Bayes).

    **Privacy.** Pure epsilon in the local model for an edge of the graph, which one user reports (the one of lower
    number), exactly. A person with k relationships has k times this epsilon. No other party must be trusted. The nodes and
    their number are public. Graphs are drawn from reports alone, so that they cost nothing.

    **Utility.** The number of edges is right on average: the debiased number of reported ones, with standard deviation
    n (q (1 - q) / 2)^0.5 / (1 - 2 q). Of a sparse graph a report says little of a pair below epsilon 4 or so: edges are
    then drawn nearly at random, and a graph has hardly a triangle of the true ones. Above epsilon ln(n / mean degree)
    most edges that are drawn are true ones.

    **Complexity.** O(edges + reported ones) time and memory, for a fit and for a graph.

    {parameters}
    References
    ----------
    Qin, Yu, Yang, Khalil, Xiao, Ren (2017), "Generating synthetic decentralized social graphs with local differential
    privacy", CCS, section 3.1, for the reports and their density. The proof: ``rnl.md``.

    Examples
    --------
    >>> from dpestim.graph import RNLGenerator, bter
    >>> graph = bter([6] * 300, 0.5, random_state=0)
    >>> generator = RNLGenerator(4.0, random_state=0).fit(graph)
    >>> generator.sample(random_state=0).nnz // 2, graph.nnz // 2
    (0, 0)
    """

    _checked_as = "list generator"
    lists = "half"
    _more_parameters = "{n_jobs}\n"
    _more_attributes = """
    n_edges_ : float
        The estimated number of edges.
    degrees_ : ndarray of shape (n_nodes,)
        Estimated degrees, drawn towards their mean where the noise is larger than what they differ by.
    n_nodes_ : int
        The number of nodes, which is public.
    bit_law_ : BitLaw
        The law of a reported bit.
    """

    def __init__(self, epsilon=1.0, *, ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- inside

    def _estimates(self, read):
        n, law = read.n_nodes, self.bit_law_
        pairs = n * (n - 1) // 2
        n_edges = float(np.clip(law.debiased(len(read.nodes), pairs), 0, pairs))
        ones = np.bincount(read.rows, minlength=n) + np.bincount(read.nodes, minlength=n)
        degrees, mean = law.debiased(ones, n - 1), 2 * n_edges / n
        noise = (n - 1) * law.variance
        spread = max(float(np.mean((degrees - mean) ** 2)) - noise, 0.0)
        degrees = np.clip(mean + (degrees - mean) * spread / (spread + noise), mean / 10, n - 1)
        degrees *= 2 * n_edges / max(degrees.sum(), 1e-300)
        return {"n_edges_": n_edges, "degrees_": degrees, "n_nodes_": n,
                "_reported": np.sort(read.rows.astype(np.int64) * n + read.nodes)}

    def _draw(self, rng):
        n, q = self.n_nodes_, float(self.bit_law_.q)
        pairs, reported = n * (n - 1) // 2, self._reported
        density = min(self.n_edges_ / pairs, 1 - 0.5 / pairs)
        weights = self.degrees_ / max(self.degrees_.mean(), 1e-300)
        rate = -np.log1p(-density)  # (a pair i, j is joined with probability 1 - e^(-rate w_i w_j) before its report)

        def before(codes):
            return -np.expm1(-rate * weights[codes // n] * weights[codes % n])

        if density > _DENSE:
            one, two = np.triu_indices(n, 1)
            silent = np.setdiff1d(one * n + two, reported, assume_unique=True)
            chances = before(silent)
        else:
            line = np.cumsum(weights)
            points = rng.poisson(rate * line[-1] ** 2 / 2)
            one, two = (np.minimum(np.searchsorted(line, rng.random(points) * line[-1]), n - 1) for _ in range(2))
            codes = np.unique((np.minimum(one, two) * n + np.maximum(one, two))[one != two])
            silent = np.setdiff1d(codes, reported, assume_unique=True)
            chances = np.ones(len(silent))
        prior = before(silent)
        # (candidates come with their probability before the report, and stay with what the report leaves of it)
        silent = silent[rng.random(len(silent)) * (prior * q + (1 - prior) * (1 - q)) < chances * q]
        prior = before(reported)
        true = prior * (1 - q)
        loud = reported[rng.random(len(reported)) * (true + (1 - prior) * q) < true]
        return np.divmod(np.concatenate([silent, loud]), n)
