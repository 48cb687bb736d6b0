"""What estimators share that publish noisy facts of a graph whose edges are private.

A sub-class brings `_settings()`, which checks its parameters, `_noisy_parts(n_nodes)`, the laws of its noise,
`_answers(graph)`, an array of integers for each of these, `_learned(noisy, n_nodes)`, the attributes of a fit from
these arrays with noise, and `_released`, the name of the attribute that `release` returns. So all that a fit reads of a
graph is `_answers`, and the checks compare these of all small neighbours with the sensitivities of the laws.
"""

import copy

import numpy as np

from dpestim.central.additive.law import COLUMNS
from dpestim.central.base import CentralMechanism
from dpestim.graph.reading import read_graph
from dpestim.graph.tags import TagsOfGraphs
from dpestim.privacy import Neighbours
from dpestim.rng import WordSource, check_random_state


class EdgeRelease(TagsOfGraphs, CentralMechanism):
    """Base of estimators of a graph, for graphs on the same nodes of which one has one edge more."""

    _checked_as, _template = "graph answers", "rows"
    _not_in_parts = ("needs all edges at once, because what it publishes of a node depends on edges of several parts: "
                     "fit it to the whole graph on one machine")
    #: the fewest nodes of a graph
    _least_nodes = 2

    def fit(self, X, y=None):
        """Publish with noise: one release, which is charged before noise is drawn; nothing else is kept.

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
        self._settings()
        graph = self._read(X)
        self._check_graph(graph)
        check_random_state(self.random_state)
        laws = self._noisy_parts(graph.n_nodes)
        answers = self._answers(graph)
        promised, source = self._guarantee(), WordSource(self.random_state)
        self._pay()
        noisy = [law.add(part, source, COLUMNS * k) for k, (part, law) in enumerate(zip(answers, laws))]
        learned = self._learned(noisy, graph.n_nodes)
        return self._become({**learned, "n_nodes_": graph.n_nodes, "_kept_promise": promised})

    def release(self, X):
        """Return what `fit` publishes, and keep nothing; one release.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray
        """
        return getattr(copy.copy(self).fit(X), self._released)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "n_nodes_")

    # ---------------------------------------------------------------- inside

    def _read(self, X):
        """Return the graph, or raise ValueError."""
        graph = read_graph(X, strict=self._is_strict())
        if graph.n_nodes < self._least_nodes:
            raise ValueError(f"the graph must have at least {self._least_nodes} nodes")
        return graph

    def _settings(self):
        """Raise ValueError for wrong parameters, those about which the graph says nothing."""
        self._budget()

    def _check_graph(self, graph):
        """Raise ValueError for parameters that do not suit the public number of nodes."""

    def _relation(self):
        return Neighbours.EDGE

    def _notes(self):
        return ("What is protected is an edge. Two graphs that differ in k edges, such as those with and without the k "
                "relationships of one person, have k times this epsilon.",)

    def _test_data(self, n_rows, seed=0):
        """Return the adjacency matrix of a graph of so many nodes."""
        upper = np.triu(np.random.default_rng(seed).random((n_rows, n_rows)) < 0.3, 1)
        return (upper | upper.T).astype(np.uint8), None
