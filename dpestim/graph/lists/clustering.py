"""The clustering coefficient of a graph, from randomised neighbour lists."""

import math

import numpy as np
from scipy.special import ndtri

from dpestim.graph.lists.base import BitReports, ListEstimator
from dpestim.graph.lists.noisy_graph import NoisyGraph, Unbiased
from dpestim.graph.lists.one_number import OneNumber, root


class ClusteringCoefficientEstimator(OneNumber, BitReports, ListEstimator):
    """Estimate the clustering coefficient: how often two neighbours of a node are neighbours of each other.

    This is the global coefficient, or transitivity: 3 triangles / wedges, where a wedge is a node and two of its
    neighbours. Both numbers are estimated from the same noisy neighbour lists.

    **Privacy.** Pure epsilon in the local model, for neighbour lists of one user that differ in one entry, and for
    graphs of which one has one edge more, because the user of lower number alone reports a pair. No other party must
    be trusted. A person with k relationships has up to k times this epsilon. The nodes and their number are public.

    **Utility.** Triangles and wedges are unbiased; their ratio is biased by about the square of the relative error of
    the wedges. The standard error follows from estimated variances and the covariance of both. An interval holds all
    coefficients r for which 3 triangles - r wedges may be 0, so that it is wide, and honest, where wedges are few; it
    is approximate, and held in 91 to 100 % of trials at 95 %. Noise of triangles grows as n^1.5: a sparse graph of
    many nodes needs an epsilon of 4 and more.

    **Complexity.** n^3 / 128 steps and n^2 / 8 bytes for a dense noisy graph: about 3 s for 10,000 nodes. If the noisy
    graph is sparse, the steps are its paths of two edges.

    {parameters}
    References
    ----------
    Ye, Hu, Au, Meng, Xiao (2020), "LF-GDPR: a framework for estimating graph metrics with local differential privacy",
    IEEE TKDE. Fieller (1954), "Some problems in interval estimation", JRSS B, for intervals of ratios. The proofs:
    ``clustering.md`` and ``noisy_graph.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.graph import ClusteringCoefficientEstimator, adjacency
    >>> rng = np.random.default_rng(0)
    >>> friends = [(i, j) for i in range(300) for j in range(i) if rng.random() < (0.4 if i % 10 == j % 10 else 0.02)]
    >>> graph = adjacency(friends, 300)
    >>> print(ClusteringCoefficientEstimator(3.0, random_state=0).fit(graph).result_)
    quantity                   value  standard error        95 % interval
    clustering coefficient  0.201005         0.00844  0.185178 to 0.21841
    From ClusteringCoefficientEstimator; its confidence_interval says what an interval covers.
    """

    _number, _quantity = "coefficient_", "clustering coefficient"
    lists = "half"
    _more_parameters = "{reports}\n{n_jobs}\n"
    _more_attributes = """
    coefficient_ : float
        The estimated coefficient, which may lie outside of [0, 1]; nan where the estimate of wedges is not above 0.
    standard_error_ : float
        Its estimated standard error.
    triangles_, wedges_ : float
        Unbiased estimates of both numbers.
    """

    def __init__(self, epsilon=1.0, *, reports="sparse", ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.reports = reports
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    @staticmethod
    def _range(n):
        return 0, 1

    def _estimates(self, read):
        found = Unbiased(NoisyGraph(read.starts, read.nodes, self.n_jobs), self.bit_law_.q)
        n, v = read.n_nodes, found.v
        # (an estimated variance is at least that of a graph without edges)
        triangles = float(max(found.variance_of_triangles, v**3 * math.comb(n, 3)))
        wedges = float(max(found.variance_of_wedges, v**2 * n * math.comb(n - 1, 2)))
        most = math.sqrt(triangles * wedges)
        covariance = min(max(float(found.covariance), -most), most)
        learned = {"triangles_": float(found.triangles), "wedges_": float(found.wedges),
                   "_second_moments": (triangles, covariance, wedges)}
        if found.wedges <= 0:
            return {**learned, "coefficient_": math.nan, "standard_error_": math.nan}
        ratio = float(3 * found.triangles / found.wedges)
        variance = 9 * triangles - 6 * ratio * covariance + ratio**2 * wedges
        return {**learned, "coefficient_": ratio, "standard_error_": root(max(variance, 0)) / learned["wedges_"]}

    def _ends(self, level):
        """Return the ends of the coefficients r with (3 T - r S)^2 <= z^2 Var(3 T - r S), within [0, 1]."""
        z2 = float(ndtri((1 + level) / 2)) ** 2
        (triangles, covariance, wedges), t, s = self._second_moments, 3 * self.triangles_, self.wedges_
        a, b, c = s * s - z2 * wedges, t * s - 3 * z2 * covariance, t * t - 9 * z2 * triangles
        if a <= 0 or s <= 0:  # (wedges may be none)
            return 0.0, 1.0
        half = math.sqrt(max(b * b - a * c, 0)) / a
        return tuple(float(np.clip(b / a + sign * half, 0, 1)) for sign in (-1, 1))

    @staticmethod
    def _truth_of_mean(graph):
        graph = graph.astype(int)
        degrees = graph.sum(0)
        return {"triangles_": np.trace(graph @ graph @ graph) / 6, "wedges_": (degrees * (degrees - 1)).sum() / 2}

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 2.0}, {"epsilon": 4.0, "reports": "packed"}]
