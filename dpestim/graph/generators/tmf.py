"""TmF: a graph of the edges that pass a filter of noisy cells, as many as a noisy count says."""

import itertools
import math

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.central.stability.rows import checked_share
from dpestim.graph.generators.base import GraphGenerator
from dpestim.graph.generators.cells import LEAST_EPSILON, Filter, edges_of, ends_of, other_cells
from dpestim.graph.reading import read_graph
from dpestim.privacy.exact import canonical_epsilon
from dpestim.results import Part

#: The filter lets pass fewer cells than wanted with a probability of e^-21 + e^-24.5 at most, below 1e-9.
_LATE, _FEW = 21, 7
#: The cells of a sparse graph.
_MANY = 1_000_000


class TmFGenerator(GraphGenerator):
    """Release the cells of the adjacency matrix that are largest with noise, as edges, by the top-m filter.

    Every pair of nodes gets noise, and the m largest ones are edges of the released graph, where m is the noisy number
    of edges. Take it with an epsilon above the logarithm of 1 / density: it keeps single edges. For a smaller epsilon
    take a generator that keeps degrees or communities.

    **Privacy.** Pure epsilon in the central model, for graphs on the same nodes of which one has one edge more. What is
    protected is a relationship of two persons, not a person. The nodes and their number are public. The curator, who
    holds the graph, must be trusted. The released cells hold the edges of persons by name: node i is node i.

    **Utility.** Of a graph of m edges among N pairs, a released edge is an edge of the graph with a probability of
    about m e^epsilon / (m e^epsilon + N - m), at most e^epsilon / (1 + e^epsilon): with epsilon 1 hardly more often
    than a pair that is drawn at random. No mechanism that treats pairs independently does better at the same number of
    edges.

    **Complexity.** O(m + n) time and memory: noise is drawn for the cells that pass the filter, with the law that noise
    for all pairs has.

    {parameters}
    References
    ----------
    Nguyen, Imine, Rusinowitch (2015), "Differentially private publication of social graphs at linear cost", ASONAM,
    algorithm 1. Cormode, Procopiuc, Srivastava, Tran (2012), "Differentially private summaries for sparse data", ICDT,
    for the filter. The proof, with what differs: ``tmf.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.graph import TmFGenerator, adjacency
    >>> rng = np.random.default_rng(0)
    >>> friends = [(i, j) for i in range(300) for j in range(i) if rng.random() < (0.4 if i % 10 == j % 10 else 0.02)]
    >>> graph = adjacency(friends, 300)
    >>> made = TmFGenerator(6.0, random_state=0).fit(graph)
    >>> found = made.sample(random_state=0)
    >>> print(round(float(graph.multiply(found).sum() / found.sum()), 1))
    0.9
    """

    _least_nodes = 2
    _more_parameters = """
    count_fraction : float, default=0.1
        The part of epsilon, above 0 and below 1, that the noisy number of edges takes.
    """
    _more_attributes = """
    n_edges_ : int
        The number of edges with noise, from 0 to that of the complete graph. A sample has `n_edges_` edges.
    standard_error_ : float
        The standard deviation of the noise of the number of edges.
    n_passed_ : int
        How many cells passed the filter: a sample draws its edges among these.
    n_nodes_ : int
        The number of nodes, which is public.
    """

    def __init__(self, epsilon=1.0, *, count_fraction=0.1, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.count_fraction = count_fraction
        self.ledger = ledger
        self.random_state = random_state

    def confidence_interval(self, level=0.95):
        """Return (low, high), which encloses the exact number of edges with at least this probability, for any graph.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).

        Returns
        -------
        (low, high) : floats
        """
        check_is_fitted(self)
        if isinstance(level, bool) or not isinstance(level, float) or not 0 < level < 1:
            raise ValueError("level must be a float between 0 and 1")
        half, most = self._law.half_width(level), float(math.comb(self.n_nodes_, 2))
        return max(self.n_edges_ - half, 0.0), min(self.n_edges_ + half, most)

    @property
    def standard_error_(self):
        """The standard deviation of the noise of the number of edges."""
        if not hasattr(self, "_law"):
            raise AttributeError("standard_error_ needs a fit: call fit first")
        return math.sqrt(self._law.variance)

    # ---------------------------------------------------------------- inside

    def _check_parameters(self):
        super()._check_parameters()
        self._shares()

    def _shares(self):
        """Return (epsilon of the filter, epsilon of the count), exactly, or raise ValueError."""
        epsilon, share = canonical_epsilon(self.epsilon), checked_share(self.count_fraction, "count_fraction")
        if min(share, 1 - share) * epsilon < LEAST_EPSILON:
            raise ValueError("epsilon is too small for count_fraction: both parts must be at least 1e-6")
        return (1 - share) * epsilon, share * epsilon

    def _filter(self, n_edges, n_cells):
        """Return the filter for a noisy number of edges: more cells than that pass it, nearly surely."""
        epsilon, rest = self._shares()
        at_least = max(n_edges - math.ceil(_LATE / rest), 0)
        wanted = n_edges + _FEW * math.sqrt(n_edges) + _FEW**2
        return Filter.passing(epsilon, n_cells, at_least, wanted)

    def _learn(self, graph, source):
        n_cells, law = math.comb(graph.n_nodes, 2), law_of_rate(self._shares()[1])
        noisy = graph.n_edges + int(law.draw(source.part(0), 1)[0])
        n_edges = min(max(noisy, 0), n_cells)
        passed = self._filter(n_edges, n_cells).draw(edges_of(graph), n_cells, source.part(1))
        return {"n_edges_": n_edges, "n_passed_": len(passed), "_passed": passed, "_law": law}

    def _draw(self, rng):
        missing = self.n_edges_ - len(self._passed)
        if missing <= 0:
            cells = rng.choice(self._passed, self.n_edges_, replace=False)
        else:
            more = other_cells(self._passed, math.comb(self.n_nodes_, 2), missing, rng)
            cells = np.concatenate([self._passed, more])
        return ends_of(cells)

    def _log_law(self, X):
        """Return the logarithms of the probabilities of all (number of edges, set of cells) of a graph of few nodes.

        By two filters, each with probability 1/2: that of these nodes, and that of a sparse graph of many cells.
        """
        graph = read_graph(X, strict=self._is_strict())
        n_cells, rate, edges = math.comb(graph.n_nodes, 2), float(self._shares()[1]), edges_of(graph)
        counts = np.arange(n_cells + 1)
        ends = np.isin(counts, (0, n_cells))  # (all that was cut)
        logs = -rate * np.abs(counts - graph.n_edges) - math.log1p(math.exp(-rate))
        logs += np.where(ends, 0.0, math.log(-math.expm1(-rate)))
        passed = (np.arange(1 << n_cells)[:, None] >> np.arange(n_cells) & 1).astype(bool)
        out = np.empty((2, n_cells + 1, 1 << n_cells))
        for dense, count in itertools.product((0, 1), counts.tolist()):
            own = self._filter(count, n_cells if dense else _MANY)
            empty, edge = own.chances
            chances = np.full(n_cells, empty)
            chances[edges] = edge
            out[dense, count] = logs[count] + np.where(passed, np.log(chances), np.log1p(-chances)).sum(axis=1)
        return out - math.log(2)

    def _result_parts(self, level):
        interval = np.array(self.confidence_interval(float(level))) if level else None
        return [Part("number of edges", (), np.asarray(float(self.n_edges_)), np.asarray(self.standard_error_),
                     interval)]

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 2.0}, {"epsilon": 1.0, "count_fraction": 0.3}]
