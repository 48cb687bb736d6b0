"""What all generators of graphs share: a fit that learns with noise, and graphs that are drawn from what it learned."""

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from dpestim.central.base import CentralMechanism
from dpestim.graph.reading import read_graph
from dpestim.graph.tags import TagsOfGraphs
from dpestim.privacy import Neighbours
from dpestim.rng import WordSource, check_random_state


class GraphSampler(TagsOfGraphs):
    """Mixin, which stands left of what learns from graphs: `sample`, of a sub-class that brings `_draw`.

    `_draw(rng)` returns the ends of edges of a random graph and sees nothing but what was learned, `n_nodes_` included.
    """

    def sample(self, random_state=None):
        """Return a random graph, which costs nothing: draw as many as you like.

        Parameters
        ----------
        random_state : None, int, numpy.random.Generator or RandomState, default=None
            No privacy depends on it.

        Returns
        -------
        csr_array of shape (n_nodes, n_nodes)
            The adjacency matrix, of uint8, symmetric and with a zero diagonal. Node i is that of the fitted graph.
        """
        check_is_fitted(self)
        return joined(*self._draw(generator_of(random_state)), self.n_nodes_)

    # ---------------------------------------------------------------- for the sub-class

    def _draw(self, rng):
        """Return (ends, other ends) of edges, two arrays of nodes; loops and repeated edges among them are left out."""
        raise TypeError(f"{type(self).__name__} does not say how it draws a graph: implement `_draw`")


class GraphGenerator(GraphSampler, CentralMechanism):
    """Base of what makes graphs of one that a curator holds: a sub-class brings an ``__init__``, `_learn` and `_draw`.

    `_learn(graph, source)` returns the attributes of a fit, by name, and draws all its noise from the source; `_draw`
    sees nothing but these. `_check_parameters` raises ValueError for parameters.
    """

    _checked_as, _template = "graph generator", "rows"
    _not_in_parts = ("needs all edges at once, because no part knows the neighbours of a node: fit it to the whole "
                     "graph on one machine")
    #: The fewest nodes that a graph may have.
    _least_nodes = 1

    def fit(self, X, y=None):
        """Learn with noise: one release, which is charged before noise is drawn; nothing else of the graph is kept.

        Parameters
        ----------
        X : sparse matrix, ndarray of shape (n_nodes, n_nodes) or networkx.Graph
            An undirected graph as a symmetric adjacency matrix of zeros and ones with a zero diagonal. `adjacency`
            makes one of a table of edges.
        y : ignored

        Returns
        -------
        self
        """
        self._bind_here()
        self._check_parameters()
        graph = self._read(X)
        if graph.n_nodes < self._least_nodes:
            raise ValueError(f"the graph must have at least {self._least_nodes} nodes")
        self._check_nodes(graph.n_nodes)
        promised, source = self._guarantee(), WordSource(self.random_state)
        self._pay()
        return self._become({**self._learn(graph, source), "n_nodes_": graph.n_nodes, "_kept_promise": promised})

    def __sklearn_is_fitted__(self):
        return hasattr(self, "n_nodes_")

    # ---------------------------------------------------------------- inside

    def _read(self, X):
        """Return the `Graph` of X, or raise ValueError."""
        return read_graph(X, strict=self._is_strict())

    def _learn(self, graph, source):
        """Return what is learned of a `Graph`, by name of the attribute."""
        raise TypeError(f"{type(self).__name__} does not say what it learns: implement `_learn`")

    def _check_parameters(self):
        """Raise ValueError for a parameter that is wrong, whatever the graph."""
        self._budget()
        check_random_state(self.random_state)
        self._relation_of_release()

    def _check_nodes(self, n_nodes):
        """Raise ValueError for a parameter that does not fit so many nodes."""

    def _relation(self):
        return Neighbours.EDGE

    def _notes(self):
        return ("What is protected is an edge. Two graphs that differ in k edges, such as those with and without the k "
                "relationships of one person, have k times this epsilon.",)

    def _test_data(self, n_rows, seed=0):
        """Return the adjacency matrix of a graph of so many nodes."""
        upper = np.triu(np.random.default_rng(seed).random((n_rows, n_rows)) < 0.3, 1)
        return (upper | upper.T).astype(np.uint8), None


def joined(ends, others, n_nodes):
    """Return the adjacency matrix of edges between nodes; loops are left out, and so are repeated edges. O(m + n)."""
    some = ends != others
    ends, others = (np.asarray(nodes[some], np.int32) for nodes in (ends, others))
    places = np.concatenate([ends, others]), np.concatenate([others, ends])
    matrix = sparse.coo_array((np.ones(len(places[0]), np.uint8), places), shape=(n_nodes, n_nodes)).tocsr()
    matrix.sum_duplicates()
    matrix.data[:] = 1  # (a sum of 256 would be 0)
    return matrix


def generator_of(random_state):
    """Return the generator of a call of `sample`, or raise ValueError."""
    check_random_state(random_state)
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(0, 2**32, 8, dtype=np.uint32)
    return np.random.default_rng(random_state)
