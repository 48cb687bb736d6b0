"""Triangles from reports on neighbour lists: in one round of bits, or with a second round of clipped counts."""

import math

import numpy as np

from dpestim._core import list_patterns
from dpestim.central.stability.rows import checked_share
from dpestim.graph.lists.base import ListEstimator
from dpestim.graph.lists.clipped import ClippedCounts, joined_numbers
from dpestim.graph.lists.flips import BitLaw
from dpestim.graph.lists.noisy_graph import NoisyGraph, Unbiased
from dpestim.graph.lists.one_number import OneNumber, root
from dpestim.graph.lists.rounds import TwoRounds
from dpestim.privacy.exact import canonical_epsilon

#: Counts of the second round are in steps of 2^-16.
_DIGITS = 16


class TriangleEstimator(OneNumber, TwoRounds, ClippedCounts, ListEstimator):
    """Estimate the number of triangles of a graph from noisy neighbour lists, in one round or two.

    In one round the triangles of the noisy graph are counted and debiased. In two rounds the noisy graph is published;
    a user sees it, and counts the pairs of neighbours of higher number that are joined in it. So two edges of a
    triangle are exact and one is noisy, which pays in graphs of thousands of nodes.

    **Privacy.** Pure epsilon in the local model, for neighbour lists of one user that differ in one entry, and for
    graphs of which one has one edge more: in both rounds the user of lower number alone reports a pair. No other party
    must be trusted. In two rounds a user spends epsilon in parts: on a bound of the user's degree, on bits and on a
    count. A person with k relationships has up to k times this epsilon. The nodes and their number are public.

    **Utility.** "one_round" is unbiased. Its variance is v^3 C(n, 3) + v^2 (n - 2) edges + v wedges + 4 v cycles,
    where v = e^epsilon / (e^epsilon - 1)^2 and cycles are those of four edges. "two_rounds" loses at most 1 % of the
    triangles on average: a noisy bound is below a user's degree with this probability, and then neighbours are left
    out. Without clipping it is unbiased. Its variance is that of the noise of all users, about 2 (bound / epsilon_3)^2
    / (1 - 2 q)^2 each, and v times the sum over pairs of the squares of their common neighbours below both. Variances
    are estimated from the reports alone, without bias. "one_round" errs less up to about 1,000 nodes at epsilon 1, and
    3,000 at epsilon 2. Intervals are approximate: 95 % ones held in 92 to 100 % of trials (table in ``triangle.md``).

    **Complexity.** A noisy graph is dense if epsilon is small: "one_round" takes n^3 / 128 steps and n^2 / 8 bytes,
    about 3 s for 10,000 nodes. If it is sparse, the steps are its paths of two edges. "two_rounds" needs half of that
    for the standard error, and C(bound, 2) steps of each user, who downloads the noisy graph.

    {parameters}
    References
    ----------
    Imola, Murakami, Chaudhuri (2021), "Locally differentially private analysis of graph statistics", USENIX Security,
    algorithms 2 and 4; there all users have the bound of the largest noisy degree. The proofs: ``triangle.md``,
    ``noisy_graph.md`` and ``clipped.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.graph import TriangleEstimator, adjacency
    >>> rng = np.random.default_rng(0)
    >>> friends = [(i, j) for i in range(300) for j in range(i) if rng.random() < (0.4 if i % 10 == j % 10 else 0.02)]
    >>> graph = adjacency(friends, 300)
    >>> print(TriangleEstimator(4.0, method="two_rounds", random_state=0).fit(graph).result_)
    quantity               value  standard error       95 % interval
    number of triangles  2998.75             337  2339.18 to 3658.31
    From TriangleEstimator; its confidence_interval says what an interval covers.
    """

    _number, _quantity = "triangles_", "number of triangles"
    lists = "half"
    _least, _rounding = 2, 0.25
    _more_parameters = """
    method : {"one_round", "two_rounds"}, default="one_round"
        "one_round": users report bits. "two_rounds": then `next_round` publishes the noisy graph, and users whose
        clients are made by `client` report counts; `fit` does all of this.
    bound_fraction : float, default=0.2
        Of "two_rounds": the part of epsilon, above 0 and below 1, for the bound of a user's degree.
    bits_fraction : float, default=0.5
        Of "two_rounds": the part of what is left of epsilon, above 0 and below 1, for bits.
    {reports}
    {n_jobs}
    """
    _more_attributes = """
    triangles_ : float
        The estimated number of triangles, which may be negative.
    standard_error_ : float
        Its estimated standard error.
    noisy_graph_ : csr_array
        Of "two_rounds": the published noisy graph.
    """

    def __init__(self, epsilon=1.0, *, method="one_round", bound_fraction=0.2, bits_fraction=0.5, reports="sparse",
                 ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.method = method
        self.bound_fraction = bound_fraction
        self.bits_fraction = bits_fraction
        self.reports = reports
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def bit_law_(self):
        """The law of a reported bit: `p`, `q`, `variance`, `debiased`."""
        return BitLaw(self._shares()[0])

    # ---------------------------------------------------------------- inside

    def _check(self):
        if not isinstance(self.method, str) or self.method not in ("one_round", "two_rounds"):
            raise ValueError('method must be "one_round" or "two_rounds"')
        super()._check()
        if self._two:
            _ = self._bounds, self._top  # (ValueError: too small an epsilon)

    def _shares(self):
        """Return epsilon of both rounds; all of it is for the first where there is no second."""
        epsilon = canonical_epsilon(self.epsilon)
        bound, bits = (checked_share(getattr(self, name), name) for name in ("bound_fraction", "bits_fraction"))
        first = bits * (1 - bound) * epsilon if self.method == "two_rounds" else epsilon
        return first, epsilon - first

    def _count_epsilon(self):
        share = checked_share(self.bits_fraction, "bits_fraction")
        return (1 - share) * super()._count_epsilon()

    @staticmethod
    def _range(n):
        return 0, math.comb(n, 3)

    def _estimates(self, read):
        if not self._two:
            found = Unbiased(NoisyGraph(read.starts, read.nodes, self.n_jobs), self.bit_law_.q)
            n, v = read.n_nodes, found.v
            parts = v**3 * math.comb(n, 3), v**2 * (n - 2) * found.edges, v * found.wedges, v * found.cycles
            return {"triangles_": float(found.triangles), "standard_error_": root(sum(max(part, 0) for part in parts))}
        if self._published is None:
            return {}
        published = NoisyGraph(self._published.starts, self._published.nodes, self.n_jobs)
        found = Unbiased(published, self.bit_law_.q)
        total = sum(read.values[:, 1].tolist()) / found.d / (1 << _DIGITS)
        noise = self._variance_of_noise(read) / float(found.d * (1 << _DIGITS)) ** 2
        return {"triangles_": float(total),
                "standard_error_": root(noise + float(max(found.v * found.squares_below, 0)))}

    # the second round

    def _usable(self, users, n):
        return n - 1 - users

    @staticmethod
    def _moves(bound):
        return (bound - 1) << _DIGITS

    @staticmethod
    def _largest(bound):
        return math.comb(bound, 2) << _DIGITS

    def _answers(self, found, source):
        return self._clipped(found.after(), source)

    def _steps(self, found, bounds):
        """Return w = t - q s in steps: t joined pairs among s of the first `bound` neighbours."""
        kept = np.minimum(found.lengths, bounds)
        places = np.arange(len(found.nodes)) - np.repeat(found.starts[:-1], found.lengths)
        nodes = found.nodes[places < np.repeat(bounds, found.lengths)]
        joined = np.empty(len(kept), np.int64)
        list_patterns.within(self._published.starts, self._published.nodes, np.concatenate([[0], np.cumsum(kept)]),
                             np.ascontiguousarray(nodes), joined)
        q = self.bit_law_.q
        counts = [(q.denominator * t - q.numerator * math.comb(m, 2)) << _DIGITS
                  for t, m in zip(joined.tolist(), kept.tolist())]
        return counts, q.denominator

    def _read_answers(self, reports, users, n_nodes):
        return self._read_clipped(reports, users, n_nodes)

    def _joined_answers(self, mine, theirs):
        return joined_numbers(mine, theirs)

    @staticmethod
    def _truth_of_mean(graph):
        graph = graph.astype(int)
        return {"triangles_": np.trace(graph @ graph @ graph) / 6}

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0}, {"epsilon": 4.0, "method": "two_rounds", "bound_fraction": 0.3, "bits_fraction": 0.4}]
