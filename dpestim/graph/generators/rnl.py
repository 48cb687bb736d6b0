"""Graphs from randomised neighbour lists: what reports leave likely, pair by pair."""

import numpy as np

from dpestim.graph.generators.base import GraphSampler
from dpestim.graph.lists.base import BitReports, ListEstimator

#: Where pairs are joined at more than this rate, all pairs are gone through: edges are then about as many.
_DENSE = 0.7
#: Bins of nodes, and the largest rate: e^-40 is no probability that matters.
_BINS, _MOST = 64, 40.0


class RNLGenerator(GraphSampler, BitReports, ListEstimator):
    """Draw graphs from randomised neighbour lists (RNL), of the right density.

    The noisy graph that reports say has far too many edges: of a sparse graph of n nodes about q n^2 / 2 false ones,
    with q = 1 / (e^epsilon + 1). A graph is drawn pair by pair instead, with the probability of an edge given the
    report and an estimated number of edges and degrees (Bayes).

    **Privacy.** Pure epsilon in the local model for an edge of the graph, which one user reports (the one of lower
    number), exactly. A person with k relationships has k times this epsilon. No other party must be trusted. The nodes
    and their number are public. Graphs are drawn from reports alone, so that they cost nothing.

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
    (888, 900)
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
        reported = np.sort(read.rows.astype(np.int64) * n + read.nodes)
        weights = degrees / degrees.mean() if n_edges else np.ones(n)
        rate = _rate_for(n_edges, weights, reported, float(law.q))
        return {"n_edges_": n_edges, "degrees_": weights * mean, "n_nodes_": n, "_weights": weights, "_rate": rate,
                "_reported": reported, "_flip": float(law.q)}

    def _draw(self, rng):
        n, q, weights, reported = self.n_nodes_, self._flip, self._weights, self._reported

        def chances(codes):
            return _chances(self._rate * weights[codes // n] * weights[codes % n], q)

        if self._rate > _DENSE:
            one, two = np.triu_indices(n, 1)
            silent = np.setdiff1d(one * n + two, reported, assume_unique=True)
            silent = silent[rng.random(len(silent)) < chances(silent)[1]]
        else:  # candidates come with their probability before the report, and stay with what the report leaves of it
            line = np.cumsum(weights)
            points = rng.poisson(self._rate * line[-1] ** 2 / 2)
            one, two = (np.minimum(np.searchsorted(line, rng.random(points) * line[-1]), n - 1) for _ in range(2))
            codes = np.unique((np.minimum(one, two) * n + np.maximum(one, two))[one != two])
            silent = np.setdiff1d(codes, reported, assume_unique=True)
            before, after, _ = chances(silent)
            silent = silent[rng.random(len(silent)) * before < after]
        loud = reported[rng.random(len(reported)) < chances(reported)[2]]
        return np.divmod(np.concatenate([silent, loud]), n)

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0}, {"epsilon": 3.0, "n_jobs": 2}]


def _chances(rates, q):
    """Return the probabilities of edges: before a report, after a report of 0, and after one of 1 (Bayes).

    Pairs are joined with probability 1 - e^-rate, and a report is wrong with probability q.
    """
    before = -np.expm1(-rates)
    silent, loud = before * q, before * (1 - q)
    return before, silent / (silent + (1 - before) * (1 - q)), loud / (loud + (1 - before) * q)


def _rate_for(n_edges, weights, reported, q):
    """Return the rate for which as many edges are drawn on average, by bins of nodes of about equal weight."""
    n = len(weights)
    if not n_edges:
        return 0.0
    order = np.argsort(weights)
    line = np.cumsum(weights[order])
    bins = np.empty(n, np.int64)
    bins[order] = np.minimum(line / line[-1] * _BINS, _BINS - 1)
    sizes, total = np.bincount(bins, minlength=_BINS), np.bincount(bins, weights, minlength=_BINS)
    own = total / np.maximum(sizes, 1)
    pairs = (np.outer(sizes, sizes) - np.diag(sizes)) / 2
    loud = np.bincount(bins[reported // n] * _BINS + bins[reported % n], minlength=_BINS**2).reshape(_BINS, _BINS)
    loud = (loud + loud.T) / 2
    low, high = 0.0, _MOST
    for _ in range(60):
        middle = (low + high) / 2
        _, after, sure = _chances(middle * np.outer(own, own), q)
        low, high = (low, middle) if ((pairs - loud) * after + loud * sure).sum() > n_edges else (middle, high)
    return low
