"""Degrees of all nodes, and their distribution, from reports on neighbour lists."""

import math

import numpy as np

from dpestim.graph.lists.either import EitherReports
from dpestim.graph.lists.intervals import Ones, checked_level
from dpestim.postprocessing.em import Matrix, maximise
from dpestim.results import Part

#: Degrees, and reported numbers, that the distribution has cells for, about: large ones share one.
_CELLS, _OUTPUTS = 1024, 2048
#: The distribution is climbed to until the log-likelihood rises by less an iteration.
_TOL, _MOST_STEPS = 0.1, 1000


class DegreeEstimator(EitherReports):
    """Estimate the degrees of all nodes, and their distribution, from reports on neighbour lists.

    Each user reports how many neighbours the user has, with noise; or all bits of the list, from which other questions
    can be answered, too.

    **Privacy.** Pure epsilon in the local model for neighbour lists of one user that differ in one entry. With
    lists="whole" an edge has twice the epsilon, because two users report it. With lists="half" epsilon holds for an
    edge, too; then a degree is put together from the bits of several users. A person with k relationships is protected
    less: 2 k or k times. No other party must be trusted. The nodes and their number are public.

    **Utility.** Degrees are unbiased. Their variance is 2 a / (1 - a)^2 with a = e^-epsilon for "laplace", about
    2 / epsilon^2; (n - 1) v for "rnl" with half, and half of that with whole lists, where v = e^epsilon /
    (e^epsilon - 1)^2. The distribution is biased: it maximises the likelihood of the reports, and stops early.

    **Complexity.** O(n + edges) time for "laplace", O(edges + reported ones) for "rnl". A user sends 8 bytes for
    "laplace". The distribution is found when it is asked for, in seconds at most.

    {parameters}
    References
    ----------
    Qin, Yu, Yang, Khalil, Xiao, Ren (2017), "Generating synthetic decentralized social graphs with local differential
    privacy", CCS, section 3.1. The proof: ``degree.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.graph import DegreeEstimator, adjacency
    >>> graph = adjacency([(0, j) for j in range(1, 40)], 40)
    >>> degrees = DegreeEstimator(2.0, random_state=0).fit(graph)
    >>> bool(abs(degrees.degrees_[0] - 39) < 5), int(degrees.distribution_.argmax())
    (True, 1)
    """

    _more_parameters = '''
    method : {"laplace", "rnl"}, default="laplace"
        "laplace": a user reports the number of the user's neighbours, with two-sided geometric noise (the discrete form
        of Laplace noise); it needs whole lists. "rnl": a user reports bits by randomised response, as `RNLTransformer`
        does.
    lists : {"half", "whole"}, default="whole"
        "half": the user of node i reports on the nodes j > i. "whole": a user reports on all other nodes.
    {n_jobs}
    '''
    _more_attributes = """
    degrees_ : ndarray of shape (n_nodes,)
        The estimated degree of each node, without bias: it may be below 0.
    standard_error_ : float
        The standard deviation of each degree, which does not depend on the graph.
    distribution_ : ndarray of shape (n_nodes,)
        The estimated share of nodes of degree 0, 1, ..., n_nodes - 1. It has no intervals, because it is biased.
    n_nodes_ : int
        The number of nodes, which is public.
    n_users_ : int
        Users whose reports were aggregated.
    """
    _unbiased = ("degrees_",)

    def __init__(self, epsilon=1.0, *, method="laplace", lists="whole", ledger=None, random_state=None, n_jobs=None):
        self.epsilon, self.method, self.lists = epsilon, method, lists
        self.ledger, self.random_state, self.n_jobs = ledger, random_state, n_jobs

    def confidence_interval(self, level=0.95):
        """Return (low, high): each encloses the degree of its node with at least this probability, for any graph.

        Of "rnl" with many slots the probability is that of a normal law. Intervals hold node by node, and not for all
        nodes at once.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).

        Returns
        -------
        (low, high) : ndarrays of shape (n_nodes,)
        """
        self._check_fitted()
        level, most = checked_level(level), self.n_nodes_ - 1
        if self._seen.settings["method"] == "rnl":
            low, high = self._ones().interval(self._totals, level)
            low, high = np.floor(low / self._times), np.ceil(high / self._times)
        else:
            half = self._made_law.half_width(1, level)
            low, high = self._totals - half, self._totals + half
        return np.clip(low, 0, most).astype(float), np.clip(high, 0, most).astype(float)

    @property
    def distribution_(self):
        """The estimated share of nodes of each degree."""
        self._check_fitted()
        if self._shares is None:
            self._shares = self._distribution()
        return self._shares

    # ---------------------------------------------------------------- inside

    _shares = None

    def _check(self):
        super()._check()
        if self.method == "laplace" and self._half:
            raise ValueError('lists must be "whole" for method="laplace", because half of a list does not say the '
                             'degree: take method="rnl" for lists="half"')

    def _estimates(self, read):
        n, each = read.n_nodes, 1
        if self.method == "rnl":
            law, each = self.bit_law_, 1 if self._half else 2
            totals = np.bincount(read.rows, minlength=n) + np.bincount(read.nodes, minlength=n)
            degrees, variance = law.debiased(totals, each * (n - 1)) / each, (n - 1) * law.variance / each
        else:
            law, totals = self._law(), read.values
            degrees, variance = totals.astype(float), law.variance
        return {"degrees_": degrees, "standard_error_": math.sqrt(variance), "n_nodes_": n, "_totals": totals,
                "_made_law": law, "_times": each, "_shares": None}

    def _ones(self):
        return Ones(self._made_law, self._times * (self.n_nodes_ - 1))

    def _distribution(self):
        """Return the shares under which the reported numbers are likeliest, from equal shares on; stopped early."""
        n, times = self.n_nodes_, self._times
        top = int(min(max(math.ceil(self.degrees_.max() + 2 * self.standard_error_), 1), n - 1))
        starts = _starts(top + 1, _CELLS)
        sizes = np.diff(starts, append=top + 1)
        low, high = int(self._totals.min()), int(self._totals.max())
        edges = low + np.append(_starts(high - low + 1, _OUTPUTS), high - low + 1)
        cells, counts = np.unique(np.searchsorted(edges, self._totals, side="right") - 1, return_counts=True)
        if self._seen.settings["method"] == "rnl":
            cdf = self._ones().cdf
        else:
            cdf = lambda values, d: self._made_law.cdf(values - d)  # noqa: E731
        middles = (starts + (sizes - 1) // 2).tolist()
        law = np.array([cdf(edges[cells + 1] - 1, d * times) - cdf(edges[cells] - 1, d * times) for d in middles])
        found = maximise(Matrix(np.maximum(law, 0)), counts, sizes / sizes.sum(), smooth=False, max_iter=_MOST_STEPS,
                         tol=_TOL)[0]
        shares = np.zeros(n)
        shares[: top + 1] = np.repeat(found / sizes, sizes)
        return shares / shares.sum()

    def _result_parts(self, level):
        self._check_fitted()
        interval = np.stack(self.confidence_interval(level), axis=-1) if level else None
        nodes = (("node", list(range(self.n_nodes_))),)
        return [Part("degree", nodes, self.degrees_, np.full(self.n_nodes_, self.standard_error_), interval)]

    @staticmethod
    def _truth(graph):
        return {"degrees_": graph.sum(axis=1, dtype=float)}

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0}, {"epsilon": 2.0, "method": "rnl", "lists": "half"},
                {"epsilon": 1.0, "method": "rnl"}]


def _starts(size, n_cells):
    """Return where cells of 0, ..., size - 1 begin: numbers by themselves, and those beyond in ever longer cells."""
    fine = n_cells * 3 // 4
    if size <= n_cells:
        return np.arange(size)
    far = np.unique(np.rint(np.geomspace(fine, size, n_cells - fine + 1)[:-1]).astype(int))
    return np.concatenate([np.arange(fine), far])
