"""How many nodes of a graph have each degree: noise for sorted numbers, and isotonic regression of these."""

from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.graph.edge_release import EdgeRelease
from dpestim.graph.falling import band, fall
from dpestim.results import Part

METHODS = ("cumulative", "sequence")


class DegreeDistribution(EdgeRelease):
    """Publish how many nodes have each degree, with noise for edges and isotonic regression.

    The numbers of nodes of at least each degree fall, and so does the sorted sequence of degrees. Either gets noise;
    isotonic regression of the published numbers then takes most of it away, which costs nothing.

    **Privacy.** Pure epsilon in the central model, for graphs on the same nodes of which one has one edge more. One
    edge moves two nodes by one degree: either list of numbers moves by 2 in all. What is protected is a relationship
    of two persons, not a person: epsilon grows with the number of edges in which two graphs differ. The nodes and
    their number are public. The curator, who holds the graph, must be trusted.

    **Utility.** Each number has noise of standard deviation 2.8 / epsilon before the regression. A histogram of the
    degrees would move by 4, and have twice the noise. `at_least_` of "cumulative" is closest to the truth where nodes
    are many and degrees few, that is, in most networks; "sequence" tells the largest degrees a little better.

    **Complexity.** O(n + m) time and memory for n nodes and m edges.

    {parameters}
    References
    ----------
    Hay, Li, Miklau, Jensen (2009), "Accurate estimation of the degree distribution of private networks", ICDM, for the
    sorted sequence. The proof: ``degree_distribution.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.graph import DegreeDistribution, adjacency
    >>> circle = adjacency([(i, (i + 1) % 500) for i in range(500)], 500)
    >>> est = DegreeDistribution(4.0, max_degree=4, random_state=0).fit(circle)
    >>> est.distribution_.round(2).tolist()
    [0.0, 0.0, 1.0, 0.0, 0.0]
    """

    _released = "at_least_"
    _more_parameters = """
    method : {"cumulative", "sequence"}, default="cumulative"
        Which numbers get noise: how many nodes have at least each degree, or the degrees in order.
    max_degree : int or None, default=None
        Larger degrees count as this one. It is public, and must not be learned from the graph. None: n_nodes - 1.
    """
    _more_attributes = """
    distribution_ : ndarray of shape (max_degree + 1,)
        The share of nodes of each degree, from 0 on; the last is that of max_degree and more.
    at_least_ : ndarray of shape (max_degree + 1,)
        The number of nodes of at least each degree.
    degrees_ : ndarray of shape (n_nodes,)
        The degrees, as integers, from the largest down.
    noisy_ : ndarray
        What was published before the regression: unbiased, with noise of a known law.
    n_nodes_ : int
        The number of nodes, which is public.
    """

    def __init__(self, epsilon=1.0, *, method="cumulative", max_degree=None, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.method = method
        self.max_degree = max_degree
        self.ledger = ledger
        self.random_state = random_state

    def confidence_interval(self, level=0.95):
        """Return (low, high) of `at_least_`: all of them hold at once with at least this probability, for any graph.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).

        Returns
        -------
        (low, high) : ndarrays of the shape of `at_least_`
            They fall, as the exact numbers do.
        """
        low, high = band(self.noisy_, self._fit, self._law, level)
        most = self._top if self._method == "sequence" else self.n_nodes_
        low = np.clip(np.minimum(np.ceil(low - 1e-6), np.floor(self._fit)), 0, most)
        high = np.clip(np.maximum(np.floor(high + 1e-6), np.ceil(self._fit)), 0, most)
        if self._method == "sequence":
            return _numbers_of(low, self._top), _numbers_of(high, self._top)
        return tuple(np.append(float(self.n_nodes_), ends) for ends in (low, high))

    # ---------------------------------------------------------------- inside

    def _settings(self):
        self._budget()
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise ValueError(f"method must be one of {list(METHODS)}")
        most = self.max_degree
        if most is not None and (isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 1):
            raise ValueError("max_degree must be None or an int of at least 1")

    def _noisy_parts(self, n_nodes):
        return [DiscreteLaplaceLaw(self._budget()[0], Fraction(0), Fraction(2), 0)]

    def _most(self, n_nodes):
        return n_nodes - 1 if self.max_degree is None else min(int(self.max_degree), n_nodes - 1)

    def _answers(self, graph):
        top = self._most(graph.n_nodes)
        degrees = np.minimum(graph.degrees, top)
        if self.method == "sequence":
            return [np.sort(degrees)[::-1].astype(np.int64)]
        return [_numbers_of(degrees, top)[1:].astype(np.int64)]

    def _learned(self, noisy, n_nodes):
        (noisy,), top = noisy, self._most(n_nodes)
        fit = fall(noisy.astype(float), 0, top if self.method == "sequence" else n_nodes)
        if self.method == "sequence":
            degrees = np.rint(fit).astype(np.int64)
            at_least = _numbers_of(degrees, top)
        else:
            at_least = np.append(float(n_nodes), fit)
            degrees = np.searchsorted(-np.rint(fit), -np.arange(1, n_nodes + 1), side="right")
        shares = (at_least - np.append(at_least[1:], 0.0)) / n_nodes
        return {"distribution_": shares, "at_least_": at_least, "degrees_": degrees, "noisy_": noisy, "_fit": fit,
                "_top": top, "_law": self._noisy_parts(n_nodes)[0], "_method": self.method}

    def _result_parts(self, level):
        ends = np.stack(self.confidence_interval(level), -1) if level else None
        labels = (("degree of at least", list(range(self._top + 1))),)
        return [Part("number of nodes", labels, self.at_least_, None, ends)]

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0}, {"epsilon": 1.0, "method": "sequence", "max_degree": 3},
                {"epsilon": 0.5, "max_degree": 2}]


def _numbers_of(degrees, top):
    """Return how many of these are at least 0, 1, ..., top."""
    counts = np.bincount(np.asarray(degrees, np.int64), minlength=top + 1)[: top + 1]
    return np.cumsum(counts[::-1])[::-1].astype(float)
