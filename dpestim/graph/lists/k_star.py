"""k-stars from reports on neighbour lists: clipped counts of the users, or bits."""

import math

import numpy as np

from dpestim.graph.lists.base import BitReports, ListEstimator
from dpestim.graph.lists.clipped import ClippedCounts, joined_numbers
from dpestim.graph.lists.noisy_graph import NoisyGraph
from dpestim.graph.lists.one_number import OneNumber, root
from dpestim.graph.lists.stars import stars_of


class KStarEstimator(OneNumber, ClippedCounts, BitReports, ListEstimator):
    """Estimate the number of k-stars, which are a node and k of its neighbours, from reports of the users.

    Each user counts the stars of the user's node: C(degree, k). "laplace" reports this count with noise for a bound of
    the degree. "rnl" estimates stars from the bits of noisy neighbour lists, which also serve other estimators.

    **Privacy.** Pure epsilon in the local model, for neighbour lists of one user that differ in one entry. "laplace"
    uses whole lists: a relationship is in the lists of two users, and has twice the epsilon. "rnl" uses half lists:
    epsilon holds for an edge, too. No other party must be trusted. The nodes and their number are public.

    **Utility.** "laplace": a user publishes a noisy bound of the degree, and the noise of the count is for that bound:
    its standard deviation is about 1.4 C(bound - 1, k - 1) / epsilon_2. No second round is needed, because each user's
    bound is the user's own. A bound is below the degree with a probability of at most 1 %, and then the count is
    clipped: on average at most 1 % of the stars are lost. Without clipping the estimate is unbiased. The standard
    error is exact. "rnl" is unbiased for every graph, with an estimated standard error; its variance is at least n v^k
    C(n - 1, k), where v = e^epsilon / (e^epsilon - 1)^2, and so it errs more, except in dense graphs. Intervals are
    approximate: 95 % ones held in 87 to 100 % of trials, least often if one node has most of the stars.

    **Complexity.** "laplace": O(edges) time, and two integers of each user. "rnl": O(edges + reported ones).

    {parameters}
    References
    ----------
    Imola, Murakami, Chaudhuri (2021), "Locally differentially private analysis of graph statistics", USENIX Security,
    algorithm 1; there all users have the bound of the largest noisy degree, which takes a second round. The proofs:
    ``k_star.md`` and ``clipped.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.graph import KStarEstimator, adjacency
    >>> rng = np.random.default_rng(0)
    >>> friends = [(i, j) for i in range(300) for j in range(i) if rng.random() < (0.4 if i % 10 == j % 10 else 0.02)]
    >>> graph = adjacency(friends, 300)
    >>> print(KStarEstimator(2.0, k=2, random_state=0).fit(graph).result_)
    quantity           value  standard error       95 % interval
    number of 2-stars  42267             405  41473.4 to 43060.6
    From KStarEstimator; its confidence_interval says what an interval covers.
    """

    _number, _quantity = "stars_", "number of {k}-stars"
    _more_parameters = """
    k : int, default=2
        From 2 to 10.
    method : {"laplace", "rnl"}, default="laplace"
        Whether users report counts or bits.
    bound_fraction : float, default=0.2
        Of "laplace": the part of epsilon, above 0 and below 1, for the bound of a user's degree.
    {n_jobs}
    """
    _more_attributes = """
    stars_ : float
        The estimated number of k-stars, which may be negative.
    standard_error_ : float
        Its standard error.
    """

    def __init__(self, epsilon=1.0, *, k=2, method="laplace", bound_fraction=0.2, ledger=None, random_state=None,
                 n_jobs=None):
        self.epsilon = epsilon
        self.k = k
        self.method = method
        self.bound_fraction = bound_fraction
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def lists(self):
        """Which lists users report on, as the method says."""
        return "half" if self.method == "rnl" else "whole"

    # ---------------------------------------------------------------- inside

    @property
    def _bits(self):
        return self.method == "rnl"

    def _check(self):
        if isinstance(self.k, bool) or not isinstance(self.k, int | np.integer) or not 2 <= self.k <= 10:
            raise ValueError("k must be an int from 2 to 10")
        if not isinstance(self.method, str) or self.method not in ("laplace", "rnl"):
            raise ValueError('method must be "laplace" or "rnl"')
        super()._check()
        if not self._bits:
            _ = self._bounds, self._top  # (ValueError: too small an epsilon)

    @staticmethod
    def _most_stars(n, k):
        return n * math.comb(n - 1, k)

    def _range(self, n):
        return 0, self._most_stars(n, self.k)

    def _randomised(self, found, source):
        return super()._randomised(found, source) if self._bits else self._clipped(found, source)

    def _read_reports(self, reports, users, n_nodes):
        return (super()._read_reports if self._bits else self._read_clipped)(reports, users, n_nodes)

    def _joined(self, mine, theirs):
        return super()._joined(mine, theirs) if self._bits else joined_numbers(mine, theirs)

    def _estimates(self, read):
        if not self._bits:
            stars = float(sum(read.values[:, 1].tolist()))
            return {"stars_": stars, "standard_error_": root(self._variance_of_noise(read))}
        noisy, law, k, n = NoisyGraph(read.starts, read.nodes), self.bit_law_, self.k, read.n_nodes
        v = law.q * law.p / (law.p - law.q) ** 2
        stars, variance = stars_of(noisy, noisy.degrees, tuple(map(float, law.values)), v, k)
        least = n * float(v) ** k * math.comb(n - 1, k)  # (of a graph without edges)
        return {"stars_": float(stars), "standard_error_": root(max(variance, least))}

    # counts

    @property
    def _least(self):
        return self.k

    def _usable(self, users, n):
        return np.full(len(users), n - 1)

    def _moves(self, bound):
        return math.comb(bound - 1, self.k - 1)

    def _largest(self, bound):
        return math.comb(bound, self.k)

    def _steps(self, found, bounds):
        """Return the stars of each user with at most so many neighbours."""
        return [math.comb(size, self.k) for size in np.minimum(found.lengths, bounds).tolist()], 1

    def _truth_of_mean(self, graph):
        return {"stars_": sum(math.comb(degree, self.k) for degree in graph.sum(0).tolist())}

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0}, {"epsilon": 2.0, "k": 3, "method": "rnl"},
                {"epsilon": 3.0, "k": 3, "bound_fraction": 0.4}]
