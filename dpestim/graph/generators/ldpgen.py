"""Graphs from groups that users report to: first to groups of any nodes, then to groups of nodes that are alike."""

from dataclasses import replace

import numpy as np

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.central.stability.rows import checked_share
from dpestim.graph.generators.base import GraphGenerator
from dpestim.graph.generators.bter_edges import CLUSTERING, checked_clustering, edges_of, matched
from dpestim.graph.generators.degrees import likely_degrees
from dpestim.graph.lists.reading import read_lists
from dpestim.models import checked_number
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import WordSource

#: Numbers of groups that the second round may have.
_SIZES = (1, 2, 3, 4, 6, 8, 12, 16)
#: The fewest nodes of a group, on average; and steps of k-means.
_FEWEST, _STEPS = 8, 20


class LDPGenGenerator(GraphGenerator):
    """Draw graphs from how many neighbours users have in groups of nodes, in two rounds of reports (LDPGen).

    In the first round users report, with noise, how many neighbours they have in each of some groups of arbitrary
    nodes. The server groups users whose reports are alike. In the second round users report how many neighbours they
    have in each of these groups. Graphs are then drawn group by group: within a group by BTER, between two groups by
    random pairs of ends.

    **Privacy.** Pure epsilon in the local model for neighbour lists of one user that differ in one entry, exactly, for
    both rounds together. A relationship is an entry of the lists of two users: it has twice the epsilon, and k
    relationships of a person have 2 k times. No other party must be trusted. The nodes and their number are public.
    Graphs are drawn from reports alone, so that they cost nothing.

    **Utility.** A reported number has noise of standard deviation 2.8 / epsilon in each round, with halves of epsilon.
    The number of groups is the one with the least sum of two errors, as the first round shows them: noise of the
    numbers, and differences within groups. This rule is our own; that of the paper is not restated here. Below epsilon
    2 or so, the noise leaves one group of a graph of few neighbours a node: `DGGGenerator` then does the same at half
    of the noise.

    **Complexity.** O(n (first groups + groups) + edges) time and memory, and k-means besides.

    {parameters}
    References
    ----------
    Qin, Yu, Yang, Khalil, Xiao, Ren (2017), "Generating synthetic decentralized social graphs with local differential
    privacy", CCS, section 4. The proof: ``ldpgen.md``.

    Examples
    --------
    >>> from dpestim.graph import LDPGenGenerator, bter
    >>> graph = bter([8] * 300, 0.5, random_state=0)
    >>> generator = LDPGenGenerator(4.0, random_state=0).fit(graph)
    >>> generator.sample(random_state=0).shape, graph.nnz // 2
    ((300, 300), 1200)
    """

    _least_nodes = 2
    _more_parameters = CLUSTERING + """    first_groups : int, default=10
        Groups of the first round, from 1 to 1000.
    first_fraction : float, default=0.5
        The part of epsilon, above 0 and below 1, that the first round spends.
    """
    _more_attributes = """
    groups_ : ndarray of shape (n_nodes,)
        The group of each node in the second round.
    degrees_ : ndarray of shape (n_nodes, n_groups)
        How many neighbours each node has in each group, in graphs that are drawn, about.
    n_nodes_ : int
        The number of nodes, which is public.
    """

    def __init__(self, epsilon=1.0, *, clustering=0.3, first_groups=10, first_fraction=0.5, ledger=None,
                 random_state=None):
        self.epsilon = epsilon
        self.clustering = clustering
        self.first_groups = first_groups
        self.first_fraction = first_fraction
        self.ledger = ledger
        self.random_state = random_state

    def privatize(self, X, users=None, groups=None):
        """Report on neighbour lists in one round, on the users' side; one release of the round's part of epsilon.

        Parameters
        ----------
        X : sparse matrix, ndarray of shape (n_nodes, n_nodes) or networkx.Graph
            The graph, as for `fit`; or, if `users` are given, rows of its adjacency matrix, of shape (n_users,
            n_nodes).
        users : array of int, default=None
            The numbers of the nodes whose lists are the rows of X, ascending. None: X is the whole graph.
        groups : array of int of shape (n_nodes,), default=None
            None: the first round. What `find_groups` returned of its reports: the second one.

        Returns
        -------
        ndarray of shape (n_users, n_groups)
            Noisy numbers of neighbours, int64.
        """
        self._bind_here()
        self._check_parameters()
        found = read_lists(X, users, strict=self._is_strict())
        turn = 0 if groups is None else 1
        groups = _checked_groups(groups, found.n_nodes) if turn else self._start(found.n_nodes)
        source = WordSource(self.random_state).part(turn)
        if self._find_ledger() is not None:
            self._charge(self._promise_of(self._shares()[turn]), len(found.users))
        return self._reported(found, groups, turn, source)

    def find_groups(self, reports):
        """Return the groups of the second round, from the reports of all users in the first one; on the server's side.

        Parameters
        ----------
        reports : ndarray of shape (n_nodes, first_groups)
            Rows of all users, in order of their nodes.

        Returns
        -------
        ndarray of shape (n_nodes,)
            The number of the group of each node.
        """
        self._check_parameters()
        return self._grouped(_checked_reports(reports, int(self.first_groups)))

    def aggregate(self, reports, groups):
        """Learn from the reports of all users in the second round, on the server's side.

        Parameters
        ----------
        reports : ndarray of shape (n_nodes, n_groups)
            Rows of all users, in order of their nodes.
        groups : ndarray of shape (n_nodes,)
            As `find_groups` returned them.

        Returns
        -------
        self
        """
        self._check_parameters()
        groups = _checked_groups(groups, len(groups))
        reports = _checked_reports(reports, int(groups.max()) + 1)
        if len(reports) != len(groups):
            raise ValueError("reports must have a row for each node: those of all users, in order of their nodes")
        # (whether clients used seeds is not known here, unless this very object is the seeded client)
        promised = replace(self._guarantee(), seeded=True if self.random_state is not None else None)
        return self._become({**self._modelled(reports, groups), "n_nodes_": len(groups), "_kept_promise": promised})

    # ---------------------------------------------------------------- inside

    def _read(self, X):
        return read_lists(X, strict=self._is_strict())

    def _learn(self, graph, source):
        start = self._start(graph.n_nodes)
        groups = self._grouped(self._reported(graph, start, 0, source.part(0)))
        return self._modelled(self._reported(graph, groups, 1, source.part(1)), groups)

    def _start(self, n_nodes):
        """Return the groups of the first round: public ones, of about equal size, whatever the order of nodes means."""
        return np.random.default_rng(n_nodes).permutation(n_nodes) % int(self.first_groups)

    def _reported(self, found, groups, turn, source):
        """Return how many of each list are in each group, with noise: one entry of a list moves one number by 1."""
        n_groups = int(self.first_groups) if turn == 0 else int(groups.max()) + 1
        places = np.repeat(np.arange(len(found.users)), found.lengths) * n_groups + groups[found.nodes]
        counts = np.bincount(places, minlength=len(found.users) * n_groups).astype(np.int64).reshape(-1, n_groups)
        # (users who share a seed have the noise of their numbers, and no two of them the same)
        users = found.users if source.seeded else slice(None)
        every = np.zeros((found.n_nodes if source.seeded else len(counts), n_groups), np.int64)
        every[users] = counts
        return self._law(turn).add(every, source)[users]

    def _grouped(self, reports):
        """Return groups of users whose reports are alike, of the number that leaves the least error, as it seems.

        It sees reports alone. Within k groups the true numbers differ by a sum of squares that is estimated by that of
        the reports without its noise; and k numbers of each user get noise in the next round.
        """
        n, width = reports.shape
        noise, later = self._law(0).variance, self._law(1).variance
        best, found = np.inf, None
        for k in _SIZES:
            if k > max(n // _FEWEST, 2):
                break
            groups = np.zeros(n, np.int64)
            spread = float(((reports - reports.mean(axis=0)) ** 2).sum())
            if k > 1:
                groups, spread = nearest_means(reports.astype(float), k)
            error = max(spread - (n - k) * width * noise, 0.0) + n * k * later
            if error < best:
                best, found = error, groups
        return found

    def _modelled(self, reports, groups):
        n_groups = reports.shape[1]
        sizes, rate = np.bincount(groups, minlength=n_groups), float(self._shares()[1])
        degrees = np.zeros(reports.shape, np.int64)
        for own in range(n_groups):
            nodes = np.flatnonzero(groups == own)
            for other in range(n_groups):
                degrees[nodes, other] = likely_degrees(reports[nodes, other], rate,
                                                       int(sizes[other]) - (own == other))
        return {"groups_": groups, "degrees_": degrees, "_curve": checked_clustering(self.clustering)}

    def _draw(self, rng):
        ends, others = [], []
        members = [np.flatnonzero(self.groups_ == g) for g in range(self.degrees_.shape[1])]
        for g, own in enumerate(members):
            drawn = [(own, edges_of(self.degrees_[own, g], self._curve, rng))]
            for h in range(g):
                sides = self.degrees_[own, h], self.degrees_[members[h], g]
                n_edges = sum(int(side.sum()) for side in sides) // 2  # (both sides reported the number of these edges)
                degrees = np.concatenate([_summing_to(side, n_edges, rng) for side in sides])
                none = np.empty(0, np.int64)
                drawn.append((np.concatenate([own, members[h]]), matched(degrees, none, none, rng, left=len(own))))
            for nodes, (one, two) in drawn:
                ends.append(nodes[one])
                others.append(nodes[two])
        return np.concatenate(ends), np.concatenate(others)

    def _law(self, turn):
        return law_of_rate(self._shares()[turn])

    def _shares(self):
        epsilon, first = canonical_epsilon(self.epsilon), checked_share(self.first_fraction, "first_fraction")
        return epsilon * first, epsilon * (1 - first)

    def _check_parameters(self):
        super()._check_parameters()
        checked_clustering(self.clustering)
        checked_number("first_groups", self.first_groups, "an int from 1 to 1000",
                       lambda v: v == int(v) and 1 <= v <= 1000)
        for turn in range(2):
            _ = self._law(turn)  # (ValueError: too small an epsilon)

    def _relation(self):
        return Neighbours.LIST

    def _guarantee(self):
        return self._promise_of(canonical_epsilon(self.epsilon))

    def _promise_of(self, epsilon):
        return PrivacyGuarantee(epsilon, 0, "local", Neighbours.LIST, self.random_state is not None, self._notes())

    def _notes(self):
        return ("What is protected is one entry of a user's list. A relationship is an entry of the lists of two "
                "users: it has twice this epsilon, and k relationships have 2 k times this epsilon.",)

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0, "first_groups": 3},
                {"epsilon": 4.0, "first_groups": 2, "first_fraction": 0.25, "clustering": [0.0, 0.0, 0.6]}]


def nearest_means(rows, k):
    """Return (groups of rows by k-means, numbered without gaps; the sum of squares within them)."""
    rng, means, nearest = np.random.default_rng(0), rows[:1] + 0.0, np.inf
    for _ in range(1, k):  # (k-means++)
        nearest = np.minimum(nearest, ((rows - means[-1]) ** 2).sum(axis=1))
        means = np.vstack([means, rows[_by_weight(nearest, 1, rng)]])
    groups = None
    for _ in range(_STEPS):
        before, groups = groups, np.argmin((means**2).sum(axis=1) - 2 * rows @ means.T, axis=1)
        groups = np.unique(groups, return_inverse=True)[1]
        if before is not None and np.array_equal(groups, before):
            break
        sizes = np.bincount(groups)
        means = np.stack([np.bincount(groups, column) for column in rows.T], axis=1) / sizes[:, None]
    return groups.astype(np.int64), float(((rows - means[groups]) ** 2).sum())


def _summing_to(degrees, n, rng):
    """Return degrees whose sum is n: ends of edges are left out at random, or added in proportion to degrees."""
    ends = rng.permutation(np.repeat(np.arange(len(degrees)), degrees))[:n]
    return np.bincount(np.concatenate([ends, _by_weight(degrees, n - len(ends), rng)]), minlength=len(degrees))


def _by_weight(weights, n, rng):
    """Return n places, with probabilities proportional to weights (equal ones, where all are 0)."""
    line = np.cumsum(weights if weights.any() else np.ones(len(weights)))
    return np.searchsorted(line, rng.random(n) * line[-1], side="right")


def _checked_groups(groups, n_nodes):
    found = np.asarray(groups)
    if found.ndim != 1 or found.dtype.kind not in "iu" or len(found) != n_nodes or not len(found) or not (
            0 <= found.min() <= found.max() < n_nodes):
        raise ValueError("groups must be what find_groups returned: an integer for each node")
    return found.astype(np.int64)


def _checked_reports(reports, n_groups):
    if not isinstance(reports, np.ndarray) or reports.dtype != np.int64 or reports.ndim != 2 or (
            reports.shape[1] != n_groups or not len(reports)):
        raise ValueError(f"reports must be an array of int64 with {n_groups} columns, as privatize returns it")
    return reports
