"""Randomised neighbour lists: every bit of a list by randomised response."""

import numpy as np
from scipy import sparse

from dpestim.graph.lists.base import BitReports, ListMechanism
from dpestim.graph.lists.flips import slots_of
from dpestim.graph.lists.reading import read_lists, read_reports
from dpestim.inputs.safe_errors import attempt


class RNLTransformer(BitReports, ListMechanism):
    """Randomise neighbour lists by randomised response of each bit.

    Every user reports a noisy neighbour list: a bit for each other node, which is flipped with probability
    q = 1 / (e^epsilon + 1). Anything can be estimated from such reports; `EdgeCountEstimator` and `DegreeEstimator` err
    less for what they estimate.

    **Privacy.** Pure epsilon in the local model for neighbour lists of one user that differ in one entry, exactly. With
    lists="half" one user reports an edge, so that epsilon holds for an edge, too. With lists="whole" two users report
    it, and an edge has twice the epsilon. A person with k relationships is protected less: k or 2 k times. No other
    party must be trusted. The nodes and their number are public.

    **Utility.** A debiased bit has variance q (1 - q) / (1 - 2 q)^2 = e^epsilon / (e^epsilon - 1)^2, for either value
    of the bit. Of a sparse graph most reported ones are false: reports have a density of at least q.

    **Complexity.** O(edges + reported ones) time and memory for sparse reports, as gaps between flips are drawn and not
    bits. Packed reports take n^2 / 8 bytes. A user sends n bits, or about 4 q n bytes.

    {parameters}
    References
    ----------
    Qin, Yu, Yang, Khalil, Xiao, Ren (2017), "Generating synthetic decentralized social graphs with local differential
    privacy", CCS, section 3.1. The proof: ``rnl.md``; that of the drawing of gaps: ``flips.md``.

    Examples
    --------
    >>> from dpestim.graph import RNLTransformer, adjacency
    >>> graph = adjacency([(0, 1), (1, 2), (2, 3), (0, 3)], 4)
    >>> rnl = RNLTransformer(3.0, random_state=0)
    >>> reports = rnl.privatize(graph)
    >>> reports.shape, round(float(rnl.bit_law_.q), 3)
    ((4, 4), 0.047)
    >>> rnl.debiased(reports).shape
    (4, 4)
    """

    _more_parameters = "{lists}\n{reports}\n{n_jobs}\n"
    _more_attributes = """
    bit_law_ : BitLaw
        The law of a reported bit: Fractions `p` and `q`, the probabilities of a 1 where there is a neighbour and where
        there is none, and `variance`, that of a debiased bit.
    n_nodes_ : int
        After `fit`, which nothing needs: the number of nodes, which is public.
    """

    def __init__(self, epsilon=1.0, *, lists="half", reports="sparse", ledger=None, random_state=None, n_jobs=None):
        self.epsilon, self.lists, self.reports = epsilon, lists, reports
        self.ledger, self.random_state, self.n_jobs = ledger, random_state, n_jobs

    def fit(self, X, y=None):
        """Check the parameters and the graph; nothing is learned but `n_nodes_`, and nothing is released.

        {graph}

        Returns
        -------
        self
        """
        self._check()
        self.n_nodes_ = read_lists(X, strict=self._is_strict()).n_nodes
        return self

    def transform(self, X):
        """Return the noisy graph that follows from reports on a graph; one release.

        {graph}

        Returns
        -------
        csr_array of shape (n_nodes, n_nodes)
            With lists="half" an undirected graph, as estimators of `dpestim.graph` take it. With lists="whole" row i is
            the report of user i.
        """
        return self.decode(self.privatize(X))

    def fit_transform(self, X, y=None):
        """Return what `transform` does; one release.

        {graph}

        Returns
        -------
        csr_array of shape (n_nodes, n_nodes)
        """
        return self.fit(X).transform(X)

    def decode(self, reports, users=None, n_nodes=None):
        """Return the noisy graph that reports say; nothing is released.

        Parameters
        ----------
        reports : as `privatize` returns them
        users : array of int, default=None
            The numbers of the users of the rows, ascending. None: all nodes, in order.
        n_nodes : int, default=None
            The public number of nodes, if `users` are given and `reports` are not sparse.

        Returns
        -------
        csr_array of shape (n_nodes, n_nodes)
            Rows of other users are empty.
        """
        self._check()
        found = read_reports(reports, users, n_nodes, self._half)
        shape = (found.n_nodes, found.n_nodes)
        matrix = sparse.coo_array((np.ones(len(found.nodes), np.uint8), (found.rows, found.nodes)), shape).tocsr()
        return matrix + matrix.T if self._half else matrix

    def debiased(self, reports, users=None, n_nodes=None):
        """Return unbiased estimates of all entries of the adjacency matrix; nothing is released.

        Parameters
        ----------
        reports, users, n_nodes : as for `decode`

        Returns
        -------
        ndarray of shape (n_nodes, n_nodes)
            Dense: (bit - q) / (p - q), 0 on the diagonal, and NaN for pairs of which no user reported. With
            lists="whole" an entry is the mean over the users who reported the pair.
        """
        self._check()
        found = read_reports(reports, users, n_nodes, self._half)
        n = found.n_nodes
        dense, error = attempt(np.full, (n, n), np.nan)
        if error:
            raise ValueError("reports must be of fewer nodes, because the debiased matrix is dense: use the graph of "
                             "decode, and bit_law_")
        none, one = map(float, self.bit_law_.values)
        for user, first in zip(found.users, n - slots_of(found.users, n, self._half)):
            dense[user, first if self._half else 0:] = none
        dense[found.rows, found.nodes] = one
        both = np.stack([dense, dense.T])
        known = ~np.isnan(both)
        dense = np.where(known, both, 0).sum(0)
        n_known = known.sum(0)
        dense = np.divide(dense, n_known, out=np.full((n, n), np.nan), where=n_known > 0)
        np.fill_diagonal(dense, 0.0)
        return dense

    def _randomises(self, method):
        raise ValueError("lists must know the numbers of their nodes: call privatize(rows, users=...) on each part of "
                         "the rows, and decode the reports")

    def __sklearn_is_fitted__(self):
        return True

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0}, {"epsilon": 2.0, "lists": "whole", "reports": "packed"}]
