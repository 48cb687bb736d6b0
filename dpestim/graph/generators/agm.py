"""AGM: graphs whose nodes have attributes, by noisy attributes, attributes of edges, degrees and triangles."""

from types import SimpleNamespace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.central.stability.rows import checked_share
from dpestim.graph.generators.attributes import Attributes, edge_kinds, kept_edges
from dpestim.graph.generators.base import GraphGenerator, generator_of, joined
from dpestim.graph.generators.blocks import Blocks, law_of_degrees, whole_numbers
from dpestim.graph.generators.cells import ends_of
from dpestim.graph.generators.closing import ROUNDS, closed
from dpestim.graph.generators.degrees import likely_degrees
from dpestim.graph.noise import Ladder
from dpestim.graph.patterns import Triangles
from dpestim.graph.reading import read_graph
from dpestim.postprocessing import norm_sub
from dpestim.privacy.exact import canonical_epsilon
from dpestim.progress import Progress
from dpestim.rng import Stage, WordSource

#: What one edge changes in the edges that are kept, at most.
_EDGE = 3


class AGMGenerator(GraphGenerator):
    """Make graphs whose nodes have attributes, by the attributed graph model with triangles (AGM, TriCycLe).

    How many nodes have which attributes, how many edges join which attributes, degrees and the number of triangles get
    noise; a sample has about these. Without attributes it makes graphs of given degrees and triangles.

    **Privacy.** Pure epsilon in the central model, for two kinds of neighbours: graphs on the same nodes of which one
    has one edge more, and graphs with the same edges that differ in the attributes of one node. Edges and attributes
    are protected, each of them by all of epsilon; what differs in an edge and in attributes has twice epsilon. The
    nodes, their number and `categories` are public. The curator, who holds the graph, must be trusted.

    **Utility.** An attribute of a node with many edges moves many numbers of edges. So at most `max_degree` edges of a
    node count for these, which are hardly typical where degrees are larger. Their noise has a standard deviation of
    2.8 `max_degree` / (epsilon times `link_fraction`), that of numbers of nodes 2.8 / (epsilon times 1 -
    `link_fraction`). Attributes of a sample do not depend on degrees. A sample has at least the triangles of a random
    graph of its degrees, also where the graph has fewer. It has fewer than the graph where clustering is strong: 9,000
    in place of 14,200 at epsilon 1, 2 and 4, for 2,000 nodes of a power law where 0.35 of all wedges are closed.

    **Complexity.** O(m^1.5 + n) time for the triangles of m edges, and O(m + n) memory; so has a sample, which counts
    triangles up to 17 times (9 s for 1,000,000 edges).

    {parameters}
    References
    ----------
    Jorgensen, Yu, Cormode (2016), "Publishing attributed social graphs with formal privacy guarantees", SIGMOD, for
    AGM-DP and TriCycLe. Zhang, Cormode, Procopiuc, Srivastava, Xiao (2015), "Private release of graph statistics using
    ladder functions", SIGMOD, for triangles. The proof, with what differs: ``agm.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.graph import AGMGenerator, adjacency
    >>> rng = np.random.default_rng(0)
    >>> team = rng.choice(["red", "blue"], 300)
    >>> friends = [(i, j) for i in range(300) for j in range(i) if rng.random() < (0.1 if team[i] == team[j] else 0.02)]
    >>> graph = adjacency(friends, 300)
    >>> made = AGMGenerator(4.0, categories=[["red", "blue"]], random_state=0).fit(graph, team)
    >>> sample, teams = made.sample_with_attributes(random_state=0)
    >>> [round(float((t[g.nonzero()[0]] == t[g.nonzero()[1]]).mean()), 2) for g, t in ((graph, team), (sample, teams))]
    [0.84, 0.88]
    """

    _least_nodes = 3
    #: where all that is released is checked
    _told_apart = "tests/unit/graph/test_agm.py"
    _more_parameters = """
    categories : list of array-like, dict or Domain, default=None
        The public categories of each attribute, needed where nodes have attributes. At most 256 combinations.
    max_degree : int, default=None
        Public: the most edges of a node that count for the attributes of edges, at least 2. None: the cube root of the
        number of nodes, rounded up, at least 2.
    link_fraction : float, default=0.5
        The part of epsilon, above 0 and below 1, that the attributes of edges take of what protects attributes; the
        rest is for the attributes of nodes.
    triangle_fraction : float, default=0.3
        The part, above 0 and below 1, that the number of triangles takes of what protects edges; the rest, but for what
        the attributes of edges cost, is for degrees.
    """
    _more_attributes = """
    attribute_counts_ : ndarray of shape (n_combinations,)
        The number of nodes of each combination of categories, from noisy numbers; the last attribute changes fastest.
    link_counts_ : ndarray of shape (n_combinations, n_combinations)
        The share of the edges between each two combinations, from noisy numbers of the edges that count; symmetric, and
        its lower triangle, with the diagonal, adds up to 1.
    degrees_ : ndarray of int of shape (n_nodes,)
        The degree of each node, from noisy degrees.
    triangles_ : float
        The number of triangles, noisy.
    n_nodes_ : int
        The number of nodes, which is public.
    """

    def __init__(self, epsilon=1.0, *, categories=None, max_degree=None, link_fraction=0.5, triangle_fraction=0.3,
                 ledger=None, random_state=None):
        self.epsilon = epsilon
        self.categories = categories
        self.max_degree = max_degree
        self.link_fraction = link_fraction
        self.triangle_fraction = triangle_fraction
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X, y=None):
        """Learn with noise: one release, which is charged before noise is drawn; nothing else of the graph is kept.

        Parameters
        ----------
        X : sparse matrix, ndarray of shape (n_nodes, n_nodes) or networkx.Graph
            An undirected graph as a symmetric adjacency matrix of zeros and ones with a zero diagonal. `adjacency`
            makes one of a table of edges.
        y : array-like or data frame of shape (n_nodes, n_attributes) or (n_nodes,), default=None
            The attributes of each node, in the order of the nodes, all among `categories`. None: nodes have none.

        Returns
        -------
        self
        """
        self._bind_here()
        self._check_parameters()
        graph = read_graph(X, strict=self._is_strict())
        if graph.n_nodes < self._least_nodes:
            raise ValueError(f"the graph must have at least {self._least_nodes} nodes")
        attributes = Attributes(self.categories, y, graph.n_nodes, self._is_strict())
        rates = self._rates(graph.n_nodes, attributes.n_kinds)
        promised, source = self._guarantee(), WordSource(self.random_state)
        self._pay()
        learned = self._released(graph, attributes, rates, source)
        return self._become({**learned, "n_nodes_": graph.n_nodes, "_kept_promise": promised})

    def sample_with_attributes(self, random_state=None):
        """Return a random graph and attributes of its nodes, which costs nothing; `sample` returns the same graph.

        Parameters
        ----------
        random_state : None, int, numpy.random.Generator or RandomState, default=None
            No privacy depends on it.

        Returns
        -------
        graph : csr_array of shape (n_nodes, n_nodes)
        attributes : ndarray of shape (n_nodes, n_attributes) or (n_nodes,)
            As many dimensions as y had in `fit`.
        """
        check_is_fitted(self)
        if self._attributes is None:
            raise ValueError("the fitted graph has no attributes: pass y to fit, or call sample")
        labels, cells = self._made(generator_of(random_state))
        return joined(*ends_of(cells), self.n_nodes_), self._attributes.values(labels)

    # ---------------------------------------------------------------- inside

    def _check_parameters(self):
        super()._check_parameters()
        if self.max_degree is not None and (isinstance(self.max_degree, bool) or self.max_degree != self.max_degree or (
                not isinstance(self.max_degree, int | np.integer)) or not 2 <= self.max_degree < 1 << 31):
            raise ValueError("max_degree must be None or an int of at least 2")
        checked_share(self.link_fraction, "link_fraction")
        checked_share(self.triangle_fraction, "triangle_fraction")

    def _most_edges(self, n_nodes):
        if self.max_degree is not None:
            return int(self.max_degree)
        return next(k for k in range(2, n_nodes + 2) if k**3 >= n_nodes)

    def _rates(self, n_nodes, n_kinds):
        """Return what a unit of nodes of a kind, edges of a kind and degrees costs, and triangles; exactly."""
        epsilon, link = canonical_epsilon(self.epsilon), checked_share(self.link_fraction, "link_fraction")
        triangles = checked_share(self.triangle_fraction, "triangle_fraction")
        # attributes of one node: two numbers of nodes, and twice as many of edges as are kept of a node
        nodes, edges = (1 - link) * epsilon / 2, link * epsilon / (2 * self._most_edges(n_nodes))
        left = epsilon - (_EDGE * edges if n_kinds > 1 else 0)
        rates = SimpleNamespace(nodes=nodes, edges=edges, degrees=(1 - triangles) * left / 2,
                                triangles=triangles * left)
        law_of_degrees(rates.degrees)
        for rate in (rates.nodes, rates.edges):
            law_of_rate(rate)  # (ValueError: too small an epsilon)
        return rates

    def _released(self, graph, attributes, rates, source):
        n, kinds = graph.n_nodes, attributes.n_kinds
        counts, links = np.array([float(n)]), np.ones(1)
        if kinds > 1:
            exact = np.bincount(attributes.codes, minlength=kinds)
            counts = _shares(law_of_rate(rates.nodes).add(exact, source.part(0))) * n
            order = np.argsort(source.part(1).reader().dense(Stage.SEED, 0, 0, 0, n), kind="stable")
            kept = kept_edges(graph, order, self._most_edges(n))
            links = _shares(law_of_rate(rates.edges).add(edge_kinds(*kept, attributes.codes, kinds), source.part(2)))
        noisy = law_of_degrees(rates.degrees).add(graph.degrees.astype(np.int64), source.part(3))
        ladder = Ladder(Triangles(graph, 2), SimpleNamespace(epsilon=rates.triangles))
        matrix = np.zeros((kinds, kinds))
        matrix[np.tril_indices(kinds)] = links
        return {"attribute_counts_": counts, "link_counts_": np.maximum(matrix, matrix.T),
                "degrees_": likely_degrees(noisy, float(rates.degrees), n - 1),
                "triangles_": ladder.draw(source.part(4))["value_"],
                "_attributes": attributes.public() if attributes.codes is not None else None}

    def _made(self, rng):
        """Return (the kind of each node, cells of edges)."""
        n, kinds = self.n_nodes_, len(self.attribute_counts_)
        labels = rng.permutation(np.repeat(np.arange(kinds), whole_numbers(self.attribute_counts_, n, rng)))
        blocks = Blocks(labels, self.degrees_.astype(float), kinds)
        one, two = np.tril_indices(kinds)
        possible = (blocks.totals[one] > 0) & (blocks.totals[two] > 0)
        shares = np.where(possible, self.link_counts_[one, two], 0.0)
        counts = whole_numbers(shares, int(self.degrees_.sum()) // 2, rng)
        cells, places = blocks.cells(one, two, counts, rng)
        if not len(cells):
            return labels, cells
        numbers = np.zeros((kinds, kinds), np.int64)
        numbers[one, two] = numbers[two, one] = np.arange(len(one))
        return labels, closed(cells, places, n, self.triangles_, lambda i, j: numbers[labels[i], labels[j]], rng,
                              Progress(self, ROUNDS, most=True).of)

    def _draw(self, rng):
        return ends_of(self._made(rng)[1])

    def _notes(self):
        return ("It holds, too, for graphs with the same edges that differ in the attributes of one node.",
                *super()._notes())

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 2.0}, {"epsilon": 1.0, "triangle_fraction": 0.5, "max_degree": 3}]


def _shares(noisy):
    """Return shares of noisy numbers, of which none is below 0."""
    total = float(noisy.sum())
    return norm_sub(noisy / total) if total > 0 else np.full(len(noisy), 1 / len(noisy))
