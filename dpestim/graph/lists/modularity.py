"""The modularity of a public partition of the nodes, from reports on neighbour lists."""

import numpy as np

from dpestim.graph.lists.base import BitReports, ListEstimator
from dpestim.graph.lists.clipped import COUNT, cut, joined_numbers, laplace, noise_of, read_numbers
from dpestim.graph.lists.one_number import OneNumber
from dpestim.graph.lists.partition import by_parts, modularity, slots_of_parts
from dpestim.inputs.safe_errors import attempt
from dpestim.privacy.exact import canonical_epsilon


class ModularityEstimator(OneNumber, BitReports, ListEstimator):
    """Estimate the modularity of a public partition: how many more edges lie within its parts than degrees let expect.

    Modularity is the sum over parts of L / m - (D / 2 m)^2, where m is the number of edges, L that of edges within the
    part, and D the sum of its degrees. "laplace": a user reports how many neighbours the user has in each part, with
    noise. "rnl": a user reports a noisy neighbour list, which serves other estimators, too.

    **Privacy.** Pure epsilon in the local model, for neighbour lists of one user that differ in one entry, and for
    graphs of which one has one edge more, because the user of lower number alone reports a pair. No other party must
    be trusted. A person with k relationships has up to k times this epsilon. The nodes, their number and the partition
    are public: a partition that was found in the same graph without noise would tell of it.

    **Utility.** Numbers of edges between parts are unbiased, and have exact variances: "laplace" about 2 / epsilon^2
    for every user and part, "rnl" v = e^epsilon / (e^epsilon - 1)^2 for every pair of nodes. So "laplace" errs less
    unless there are nearly as many parts as nodes. The modularity is a ratio of these: its bias is of the order of the
    squared relative error of m, its standard error is that of a linear approximation, and intervals are approximate:
    95 % ones held in 88 to 100 % of trials.

    **Complexity.** O(edges + n parts) time and memory for "laplace", O(edges + reported ones + n parts) for "rnl".

    {parameters}
    References
    ----------
    Newman, Girvan (2004), "Finding and evaluating community structure in networks", Physical Review E. Ye, Hu, Au,
    Meng, Xiao (2020), "LF-GDPR", IEEE TKDE, for the bits. The proof: ``modularity.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.graph import ModularityEstimator, adjacency
    >>> rng = np.random.default_rng(0)
    >>> friends = [(i, j) for i in range(300) for j in range(i) if rng.random() < (0.4 if i % 10 == j % 10 else 0.02)]
    >>> graph = adjacency(friends, 300)
    >>> print(ModularityEstimator(1.0, communities=np.arange(300) % 10, random_state=0).fit(graph).result_)
    quantity       value  standard error        95 % interval
    modularity  0.592772          0.0193  0.55495 to 0.630593
    From ModularityEstimator; its confidence_interval says what an interval covers.
    """

    _number, _quantity = "modularity_", "modularity"
    lists = "half"
    _more_parameters = """
    communities : array-like of shape (n_nodes,)
        The public part of each node: integers or strings.
    method : {"laplace", "rnl"}, default="laplace"
        Whether users report counts or bits.
    {n_jobs}
    """
    _more_attributes = """
    modularity_ : float
        The estimate; nan where the estimated number of edges is not above its error.
    standard_error_ : float
        Its estimated standard error.
    communities_ : ndarray
        The parts, sorted.
    edges_ : ndarray of shape (n_parts, n_parts)
        The estimated number of edges between any two parts, and within each.
    edges_standard_errors_ : ndarray of shape (n_parts, n_parts)
        Their standard errors.
    """

    def __init__(self, epsilon=1.0, *, communities=None, method="laplace", ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.communities = communities
        self.method = method
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- inside

    @property
    def _bits(self):
        return self.method == "rnl"

    def _check(self):
        if not isinstance(self.method, str) or self.method not in ("laplace", "rnl"):
            raise ValueError('method must be "laplace" or "rnl"')
        super()._check()
        self._parts()
        laplace(canonical_epsilon(self.epsilon))

    def _check_nodes(self, n):
        if len(self._parts()[1]) != n:
            raise ValueError(f"communities must name the part of each of the {n} nodes")

    def _parts(self):
        """Return (names of parts, the number of the part of each node)."""
        given, error = attempt(np.asarray, self.communities)
        if error or given.ndim != 1 or given.dtype.kind not in "iuUb" or len(given) < 2:
            raise ValueError("communities must be integers or strings, the public part of each node")
        return np.unique(given, return_inverse=True)

    def _settings(self):
        return {**super()._settings(), "communities": tuple(self._parts()[1].tolist())}

    def _range(self, n):
        return -0.5, 1

    def _randomised(self, found, source):
        if self._bits:
            return super()._randomised(found, source)
        upper, (names, codes) = found.after(), self._parts()
        rows = np.repeat(np.arange(len(upper.users)), upper.lengths)
        out = np.zeros((len(upper.users), len(names)), np.int64)
        np.add.at(out, (rows, codes[upper.nodes]), 1)
        law, reader = laplace(canonical_epsilon(self.epsilon)), source.reader()
        for row, user in zip(out, upper.users.tolist()):
            row += np.array([cut(z) for z in noise_of(law, reader, COUNT, user, len(names))], np.int64)
        return out

    def _read_reports(self, reports, users, n_nodes):
        read = (super()._read_reports(reports, users, n_nodes) if self._bits
                else read_numbers(reports, users, n_nodes, len(self._parts()[0])))
        self._check_nodes(read.n_nodes)
        return read

    def _joined(self, mine, theirs):
        return super()._joined(mine, theirs) if self._bits else joined_numbers(mine, theirs)

    def _estimates(self, read):
        names, codes = self._parts()
        slots = slots_of_parts(codes, len(names))
        if self._bits:
            law, ones = self.bit_law_, np.zeros((len(codes), len(names)))
            np.add.at(ones, (read.rows, codes[read.nodes]), 1)
            numbers, noise = law.debiased(ones, slots), slots * law.variance
        else:
            # (who has no node of higher number in a part has no neighbour there)
            numbers = np.where(slots, read.values, 0)
            noise = (slots > 0) * laplace(canonical_epsilon(self.epsilon)).variance_steps
        edges, variances = (by_parts(each, codes, len(names)) for each in (numbers, noise))
        value, error = modularity(edges, variances)
        return {"modularity_": float(value), "standard_error_": float(error), "communities_": names, "edges_": edges,
                "edges_standard_errors_": np.sqrt(variances)}

    def _test_data(self, n_rows, seed=0):
        """Return the adjacency matrix of a graph of the nodes whose parts are a parameter."""
        return super()._test_data(len(self.communities), seed)

    def _truth_of_mean(self, graph):
        names, codes = self._parts()
        return {"edges_": by_parts(np.triu(graph) @ np.eye(len(names))[codes], codes, len(names))}

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0, "communities": np.arange(12) % 3},
                {"epsilon": 1.0, "communities": list("aabbaabbaabb"), "method": "rnl"}]
