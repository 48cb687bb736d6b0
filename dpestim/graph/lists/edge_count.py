"""The number of edges from reports on neighbour lists."""

import math

import numpy as np

from dpestim.graph.lists.either import EitherReports
from dpestim.graph.lists.intervals import Ones, checked_level
from dpestim.results import Part


class EdgeCountEstimator(EitherReports):
    """Estimate the number of edges of a graph from reports on neighbour lists.

    Each user reports how many neighbours the user has, with noise; or all bits of the list, from which other questions
    can be answered, too.

    **Privacy.** Pure epsilon in the local model for neighbour lists of one user that differ in one entry. With
    lists="half" epsilon holds for an edge, too, which one user reports. With lists="whole" an edge has twice the
    epsilon. A person with k relationships is protected less: k or 2 k times. No other party must be trusted. The nodes
    and their number are public.

    **Utility.** Unbiased. Of n users "laplace" has the variance n V with half and n V / 4 with whole lists, where V =
    2 a / (1 - a)^2 and a = e^-epsilon: about 2 n / epsilon^2. "rnl" has n (n - 1) / 2 times v with half and half of
    that with whole lists, where v = e^epsilon / (e^epsilon - 1)^2: more from a few users on.

    **Complexity.** O(n + edges) time for "laplace", O(edges + reported ones) for "rnl". A user sends 8 bytes for
    "laplace".

    {parameters}
    References
    ----------
    Imola, Murakami, Chaudhuri (2021), "Locally differentially private analysis of graph statistics", USENIX Security,
    section 4.1 and theorem 2 (for sums of noisy degrees). The proof: ``edge_count.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.graph import EdgeCountEstimator, adjacency
    >>> rng = np.random.default_rng(0)
    >>> friends = [(i, j) for i in range(300) for j in range(i) if rng.random() < 0.05]
    >>> graph = adjacency(friends, 300)
    >>> print(EdgeCountEstimator(1.0, random_state=0).fit(graph).result_)
    quantity         value  standard error  95 % interval
    number of edges   2234            23.5   2188 to 2280
    From EdgeCountEstimator; its confidence_interval says what an interval covers.
    """

    _more_parameters = '''
    method : {"laplace", "rnl"}, default="laplace"
        "laplace": a user reports the number of the user's neighbours, with two-sided geometric noise (the discrete form
        of Laplace noise). "rnl": a user reports all bits by randomised response, as `RNLTransformer` does.
    {lists}
    {n_jobs}
    '''
    _more_attributes = """
    edges_ : float
        The estimated number of edges, without bias: it may be below 0.
    standard_error_ : float
        The standard deviation of the noise, which does not depend on the graph.
    n_nodes_ : int
        The number of nodes, which is public.
    n_users_ : int
        Users whose reports were aggregated.
    """
    _unbiased = ("edges_",)

    def __init__(self, epsilon=1.0, *, method="laplace", lists="half", ledger=None, random_state=None, n_jobs=None):
        self.epsilon, self.method, self.lists = epsilon, method, lists
        self.ledger, self.random_state, self.n_jobs = ledger, random_state, n_jobs

    def confidence_interval(self, level=0.95):
        """Return (low, high), which encloses the number of edges with at least this probability, for any graph.

        Of "rnl" with more than a few thousand reported bits the probability is that of a normal law.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).

        Returns
        -------
        (low, high) : floats
        """
        self._check_fitted()
        level, each = checked_level(level), self._times
        most = math.comb(self.n_nodes_, 2)
        if self._seen.settings["method"] == "rnl":
            low, high = (float(end) for end in Ones(self._made_law, most * each).interval(self._total, level))
        else:
            half = self._made_law.half_width(self.n_nodes_, level)
            low, high = self._total - half, self._total + half
        low, high = math.floor(low / each) if each > 1 else low, math.ceil(high / each) if each > 1 else high
        return float(min(max(low, 0), most)), float(min(max(high, 0), most))

    # ---------------------------------------------------------------- inside

    def _estimates(self, read):
        n, law, each = read.n_nodes, self.bit_law_ if self.method == "rnl" else self._law(), 1 if self._half else 2
        pairs = math.comb(n, 2)
        if self.method == "rnl":
            total = len(read.nodes)
            edges, variance = float(law.debiased(total, pairs * each)) / each, pairs * law.variance / each
        else:
            total = int(read.values.sum())
            edges, variance = total / each, n * law.variance / each**2
        return {"edges_": edges, "standard_error_": math.sqrt(variance), "n_nodes_": n, "_total": total,
                "_made_law": law, "_times": each}

    def _result_parts(self, level):
        self._check_fitted()
        interval = np.array(self.confidence_interval(level)) if level else None
        return [Part("number of edges", (), np.asarray(self.edges_), np.asarray(self.standard_error_), interval)]

    @staticmethod
    def _truth(graph):
        return {"edges_": graph.sum() / 2}

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0}, {"epsilon": 2.0, "method": "rnl"}, {"epsilon": 1.0, "lists": "whole"},
                {"epsilon": 1.0, "method": "rnl", "lists": "whole"}]
