"""The largest eigenvalues of a graph, with noise for its edges."""

from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.graph.edge_release import EdgeRelease
from dpestim.graph.falling import band, fall
from dpestim.results import Part

MATRICES = ("adjacency", "laplacian")
#: Eigenvalues are rounded to a grid of 2^-20, and are known to half of its step.
_DIGITS = 20
#: The most nodes: of more a dense matrix takes minutes.
LARGEST = 5_000


class GraphSpectrum(EdgeRelease):
    """Publish the largest eigenvalues of the adjacency or Laplacian matrix of a graph, with noise for edges.

    One edge moves all eigenvalues together by 2 at most, however many there are. So noise is added to eigenvalues, and
    not to the matrix: noise of all entries would move each eigenvalue by about 2 sqrt(n) times its standard deviation.

    **Privacy.** Pure epsilon in the central model, for graphs on the same nodes of which one has one edge more. What is
    protected is a relationship of two persons, not a person: epsilon grows with the number of edges in which two graphs
    differ. The nodes and their number are public. The curator, who holds the graph, must be trusted.

    **Utility.** Each eigenvalue has noise of standard deviation 2.8 / epsilon (1.4 / epsilon for the largest one of the
    adjacency matrix alone) before they are put in order, which takes some of it away and costs nothing.

    **Complexity.** O(n^3) time and O(n^2) memory: a dense matrix, of 5,000 nodes at most.

    {parameters}
    References
    ----------
    Mirsky (1960), "Symmetric gauge functions and unitarily invariant norms", Quarterly Journal of Mathematics, for the
    move of eigenvalues. The proof: ``spectrum.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.graph import GraphSpectrum
    >>> complete = 1 - np.eye(200)
    >>> est = GraphSpectrum(1.0, n_values=2, random_state=0).fit(complete)
    >>> bool(abs(est.eigenvalues_[0] - 199) < 15)
    True
    """

    _released = "eigenvalues_"
    _more_parameters = """
    n_values : int, default=1
        How many eigenvalues, from the largest down.
    matrix : {"adjacency", "laplacian"}, default="adjacency"
        Whose eigenvalues: those of the adjacency matrix A, or of D - A, where D holds the degrees.
    """
    _more_attributes = """
    eigenvalues_ : ndarray of shape (n_values,)
        From the largest down.
    noisy_ : ndarray of shape (n_values,)
        What was published before they were put in order: unbiased, with noise of a known law.
    n_nodes_ : int
        The number of nodes, which is public.
    """

    def __init__(self, epsilon=1.0, *, n_values=1, matrix="adjacency", ledger=None, random_state=None):
        self.epsilon = epsilon
        self.n_values = n_values
        self.matrix = matrix
        self.ledger = ledger
        self.random_state = random_state

    def confidence_interval(self, level=0.95):
        """Return (low, high) of `eigenvalues_`: all hold at once with at least this probability, for any graph.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).

        Returns
        -------
        (low, high) : ndarrays of the shape of `eigenvalues_`
        """
        low, high = band(self.noisy_, self.eigenvalues_, self._law, level)
        return np.clip(low - self._law.step, *self._range), np.clip(high + self._law.step, *self._range)

    @property
    def standard_error_(self):
        """The standard deviation of the noise of each eigenvalue, before they are put in order."""
        return float(np.sqrt(self._law.variance))

    # ---------------------------------------------------------------- inside

    def _settings(self):
        self._budget()
        if isinstance(self.n_values, bool) or not isinstance(self.n_values, int | np.integer) or self.n_values < 1:
            raise ValueError("n_values must be an int of at least 1")
        if not isinstance(self.matrix, str) or self.matrix not in MATRICES:
            raise ValueError(f"matrix must be one of {list(MATRICES)}")

    def _nodes_of_audit(self):
        return max(8, int(self.n_values))

    def _check_graph(self, graph):
        if graph.n_nodes > LARGEST:
            raise ValueError(f"the graph must have at most {LARGEST} nodes, because eigenvalues are taken of a dense "
                             "matrix: take a part of the nodes that is public")
        if self.n_values > graph.n_nodes:
            raise ValueError("n_values must be at most the number of nodes")

    def _noisy_parts(self, n_nodes):
        moved = 1 if self.n_values == 1 and self.matrix == "adjacency" else 2
        # (each is rounded, which moves two of them apart by a step, and known to half of a step, which does, too)
        steps = Fraction(moved * (1 << _DIGITS) + 2 * int(self.n_values))
        return [DiscreteLaplaceLaw(self._budget()[0], Fraction(0), steps, -_DIGITS)]

    def _answers(self, graph):
        n = graph.n_nodes
        dense = np.zeros((n, n))
        dense[np.repeat(np.arange(n), graph.degrees), graph.neighbours] = 1
        if self.matrix == "laplacian":
            dense = np.diag(graph.degrees.astype(float)) - dense
        values = np.linalg.eigvalsh(dense)[::-1][: self.n_values]
        return [np.rint(values * (1 << _DIGITS)).astype(np.int64)]

    def _learned(self, noisy, n_nodes):
        law, ends = self._noisy_parts(n_nodes)[0], (0, n_nodes) if self.matrix == "laplacian" else (1 - n_nodes,
                                                                                                     n_nodes - 1)
        noisy = noisy[0] * law.step
        return {"eigenvalues_": fall(noisy, *ends), "noisy_": noisy, "_law": law, "_range": ends}

    def _result_parts(self, level):
        ends = np.stack(self.confidence_interval(level), -1) if level else None
        errors = np.full(len(self.noisy_), self.standard_error_)
        return [Part("eigenvalue", (("rank", list(range(1, len(self.noisy_) + 1))),), self.eigenvalues_, errors, ends)]

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0, "n_values": 3}, {"epsilon": 2.0, "matrix": "laplacian", "n_values": 2},
                {"epsilon": 0.5}]
