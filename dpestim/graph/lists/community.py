"""Communities of a graph from randomised neighbour lists."""

import numpy as np

from dpestim.graph.lists.base import BitReports, ListEstimator
from dpestim.graph.lists.noisy_graph import NoisyGraph
from dpestim.graph.lists.spectral import Debiased, communities
from dpestim.results import Part


class CommunityEstimator(BitReports, ListEstimator):
    """Find communities, groups of nodes with many edges among them, from randomised neighbour lists.

    Nodes are grouped by the leading eigenvectors of the debiased noisy graph; then each is moved to the community with
    which it has most edges beyond those that degrees let expect.

    **Privacy.** Pure epsilon in the local model, for neighbour lists of one user that differ in one entry, and for
    graphs of which one has one edge more, because the user of lower number alone reports a pair. No other party must
    be trusted. A person with k relationships has up to k times this epsilon. The nodes and their number are public. To
    which community a user belongs may be learned, because many relationships tell it.

    **Utility.** Noise has eigenvalues up to 2 sqrt(n v), v = e^epsilon / (e^epsilon - 1)^2. A community is found if its
    own eigenvalue, about its size times the share of its pairs that are joined beyond those of other pairs, is above
    that: 100 nodes of which half of the pairs are joined, at epsilon 1, among up to 600. n_communities=None counts the
    eigenvalues beyond noise, and finds one community where there is none. There is no standard error.

    **Complexity.** A product with the noisy graph takes n^2 / 8 steps, or as many as it has edges, where it is sparse;
    there are some 100 of them, or 2 s for 10,000 nodes, and n^2 / 8 bytes of memory.

    {parameters}
    References
    ----------
    Hehir, Slavkovic, Niu (2022), "Consistent spectral clustering of network block models under local differential
    privacy", Journal of Privacy and Confidentiality 12(2). Newman (2006), "Modularity and community structure in
    networks", PNAS, for the moves. The proof: ``community.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.graph import CommunityEstimator, adjacency
    >>> rng = np.random.default_rng(0)
    >>> friends = [(i, j) for i in range(300) for j in range(i) if rng.random() < (0.5 if i % 3 == j % 3 else 0.05)]
    >>> found = CommunityEstimator(1.0, random_state=0).fit(adjacency(friends, 300))
    >>> found.n_communities_, np.bincount(found.labels_[::3]).tolist()  # of the first group
    (3, [1, 0, 99])
    """

    lists = "half"
    _truth_of_mean = None  # (nothing is said to be unbiased)
    _more_parameters = """
    n_communities : int, default=None
        The public number of communities, from 1 to the number of nodes. None: found in the reports.
    max_communities : int, default=20
        The most communities that are found where n_communities is None.
    {reports}
    {n_jobs}
    """
    _more_attributes = """
    labels_ : ndarray of shape (n_nodes,)
        The community of each node, numbered from the largest down.
    n_communities_ : int
        How many there are.
    """

    def __init__(self, epsilon=1.0, *, n_communities=None, max_communities=20, reports="sparse", ledger=None,
                 random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.n_communities = n_communities
        self.max_communities = max_communities
        self.reports = reports
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- inside

    def _check(self):
        super()._check()
        for name in ("n_communities", "max_communities"):
            value = getattr(self, name)
            if value is None and name == "n_communities":
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= 1000:
                raise ValueError(f"{name} must be an int from 1 to 1000")

    def _check_nodes(self, n):
        if self.n_communities is not None and self.n_communities > n:
            raise ValueError(f"n_communities must be at most {n}, the number of nodes")

    def _read_reports(self, reports, users, n_nodes):
        read = super()._read_reports(reports, users, n_nodes)
        self._check_nodes(read.n_nodes)
        return read

    def _estimates(self, read):
        matrix = Debiased(NoisyGraph(read.starts, read.nodes, self.n_jobs), self.bit_law_.q)
        labels = communities(matrix, self.n_communities, min(self.max_communities, read.n_nodes))
        return {"labels_": labels, "n_communities_": int(labels.max()) + 1}

    def _result_parts(self, level):
        sizes = np.bincount(self.labels_)
        return [Part("nodes", (("community", np.arange(len(sizes))),), sizes)]

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 2.0, "n_communities": 3}, {"epsilon": 4.0, "reports": "packed"}]
