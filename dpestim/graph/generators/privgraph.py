"""PrivGraph: communities that are found privately, degrees within them, and numbers of edges between them."""

import math

import numpy as np

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.central.stability.rows import checked_share
from dpestim.graph.generators.base import GraphGenerator
from dpestim.graph.generators.blocks import Blocks, law_of_degrees, whole_numbers
from dpestim.graph.generators.cells import ends_of
from dpestim.graph.generators.communities import chosen, merged, scores_of, weights_of
from dpestim.graph.generators.degrees import likely_degrees
from dpestim.inputs.safe_errors import attempt
from dpestim.postprocessing import norm_sub
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import Stage

#: The most groups of nodes; and random ones, where nothing is said.
_MOST, _RANDOM = 1024, 256


class PrivGraphGenerator(GraphGenerator):
    """Make graphs of private communities, of degrees within them and of numbers of edges between them.

    Groups of nodes are merged to communities by noisy numbers of edges between groups, nodes move to the communities of
    their neighbours by private choices, and what is counted of the communities gets noise. Take it where communities
    matter, with public groups of nodes (departments, regions) if there are any.

    **Privacy.** Pure epsilon in the central model, for graphs on the same nodes of which one has one edge more. What is
    protected is a relationship of two persons, not a person. The nodes, their number and `groups` are public. The
    curator, who holds the graph, must be trusted.

    **Utility.** A node with s neighbours in a community chooses it e^(r s) times as often as one without, where r is
    epsilon times `community_fraction` / 4 / `rounds`. Random groups tell little: without public groups, communities of
    1,000 nodes with 16 neighbours inside were not found at an epsilon of 8. Degrees within communities get noise of
    standard deviation 2.8 / epsilon divided by 1 - `community_fraction`, and numbers of edges between communities half
    of that.

    **Complexity.** O(m log m + n) time and O(m + n + groups^2) memory; a sample O(m log m).

    {parameters}
    References
    ----------
    Yuan, Zhang, Du, Chen, He, Sun (2023), "PrivGraph: differentially private graph data publication by exploiting
    community information", USENIX Security. Blondel, Guillaume, Lambiotte, Lefebvre (2008), "Fast unfolding of
    communities in large networks", J. Stat. Mech., for the merging. The proof, with what differs: ``privgraph.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.graph import PrivGraphGenerator, adjacency
    >>> rng = np.random.default_rng(0)
    >>> friends = [(i, j) for i in range(300) for j in range(i) if rng.random() < (0.4 if i % 10 == j % 10 else 0.02)]
    >>> graph, teams = adjacency(friends, 300), np.arange(300) % 10
    >>> made = PrivGraphGenerator(2.0, groups=teams, random_state=0).fit(graph).sample(random_state=0)
    >>> [round(float((teams[g.nonzero()[0]] == teams[g.nonzero()[1]]).mean()), 2) for g in (graph, made)]
    [0.68, 0.69]
    """

    _least_nodes = 2
    #: where the choices of nodes are checked
    _told_apart = "tests/unit/graph/test_privgraph.py"
    _more_parameters = """
    groups : int or array-like of shape (n_nodes,), default=None
        Public groups of nodes that communities are made of: the group of each node, at most 1024 different ones, or
        how many groups of random nodes there are. None: the square root of the number of nodes, at most 256.
    rounds : int, default=None
        How often every node chooses a community, from 0 to 10. 0: communities are merged groups. None: 0 where the
        groups of nodes are given, and else 2.
    community_fraction : float, default=0.5
        The part of epsilon, above 0 and below 1, that communities take: half of it for the numbers of edges between
        groups, half of it for the choices of nodes; all of it for the former with 0 rounds.
    """
    _more_attributes = """
    communities_ : ndarray of int of shape (n_nodes,)
        The community of each node, from 0 to `n_communities_` - 1.
    n_communities_ : int
        The number of communities.
    within_degrees_ : ndarray of int of shape (n_nodes,)
        For each node, how many neighbours it has within its community, from noisy numbers.
    between_edges_ : ndarray of shape (n_communities, n_communities)
        The number of edges between two different communities, from noisy numbers; 0 on the diagonal.
    n_nodes_ : int
        The number of nodes, which is public.
    """

    def __init__(self, epsilon=1.0, *, groups=None, rounds=None, community_fraction=0.5, ledger=None,
                 random_state=None):
        self.epsilon = epsilon
        self.groups = groups
        self.rounds = rounds
        self.community_fraction = community_fraction
        self.ledger = ledger
        self.random_state = random_state

    # ---------------------------------------------------------------- inside

    def _check_parameters(self):
        super()._check_parameters()
        self._groups()
        between, _, counted = self._rates()
        law_of_rate(between)  # (ValueError: too small an epsilon)
        law_of_degrees(counted / 2)

    def _rates(self):
        """Return (what an edge between groups costs, a choice of a node, an edge that is counted), exactly."""
        epsilon, share = canonical_epsilon(self.epsilon), checked_share(self.community_fraction, "community_fraction")
        if not (rounds := self._rounds()):
            return share * epsilon, share * epsilon, (1 - share) * epsilon
        return share * epsilon / 2, share * epsilon / 4 / rounds, (1 - share) * epsilon

    def _rounds(self):
        """Return how often nodes choose, or raise ValueError."""
        if self.rounds is None:
            return 0 if np.ndim(self.groups) else 2
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, int | np.integer) or not (
                0 <= self.rounds <= 10):
            raise ValueError("rounds must be None or an int from 0 to 10")
        return int(self.rounds)

    def _groups(self, n_nodes=None):
        """Return the public groups as an int or as numbers from 0 on, or raise ValueError."""
        message = f"groups must be None, an int from 1 to {_MOST}, or the group of each node, at most {_MOST} groups"
        if self.groups is None:
            return None
        if isinstance(self.groups, int | np.integer) and not isinstance(self.groups, bool):
            if not 1 <= self.groups <= _MOST:
                raise ValueError(message)
            return int(self.groups)
        found, error = attempt(lambda: np.unique(np.asarray(self.groups), return_inverse=True))
        if error or np.ndim(self.groups) != 1 or not 1 <= len(found[0]) <= _MOST:
            raise ValueError(message)
        if n_nodes is not None and len(found[1]) != n_nodes:
            raise ValueError("groups must have the group of each node of the graph")
        return found[1].astype(np.int64)

    def _check_nodes(self, n_nodes):
        self._groups(n_nodes)

    def _learn(self, graph, source):
        between, choice, counted = self._rates()
        groups = _grouped(self._groups(graph.n_nodes), graph.n_nodes, source.part(0))
        matrix = law_of_rate(between).add(_edges_between(graph, groups), source.part(1))
        labels = merged(_symmetric(matrix))[groups]
        n = int(labels.max()) + 1
        table = weights_of(choice, n)
        for k in range(self._rounds() if n > 1 else 0):
            labels = chosen(scores_of(graph, labels, n), graph.n_nodes, n, table, source.part(4 + k))
        within = _degrees_within(graph, labels)
        noisy = law_of_degrees(counted / 2).add(within, source.part(2))
        sizes = np.bincount(labels, minlength=n)
        degrees = likely_degrees(noisy, float(counted / 2), max(int(sizes.max()) - 1, 0))
        pairs = _edges_between(graph, labels, n, diagonal=False)
        pairs = law_of_rate(counted).add(pairs, source.part(3)) if n > 1 else pairs
        return {"communities_": labels, "n_communities_": n, "between_edges_": _symmetric(_raised(pairs), n),
                "within_degrees_": np.minimum(degrees, sizes[labels] - 1)}

    def _draw(self, rng):
        n, labels = self.n_communities_, self.communities_
        within, even = Blocks(labels, self.within_degrees_, n), Blocks(labels, np.ones(len(labels)), n)
        every = np.arange(n)
        inside = np.floor(within.totals / 2 + rng.random(n) / 2).astype(np.int64)
        one, two = np.triu_indices(n, 1)
        expected = self.between_edges_[one, two]
        outside = whole_numbers(expected, expected.sum(), rng)
        cells = [within.cells(every, every, inside, rng)[0], even.cells(one, two, outside, rng)[0]]
        return ends_of(np.concatenate(cells))

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 2.0, "groups": 3}, {"epsilon": 1.0, "rounds": 0, "community_fraction": 0.3}]


def _grouped(groups, n_nodes, source):
    """Return the group of each node: as declared, or random ones of about equal size, which see no edge."""
    if isinstance(groups, np.ndarray):
        return groups
    n = min(groups or min(math.isqrt(n_nodes), _RANDOM), n_nodes)
    words = source.reader().dense(Stage.SEED, 0, 0, 0, n_nodes)
    out = np.empty(n_nodes, np.int64)
    out[np.argsort(words, kind="stable")] = np.arange(n_nodes) % n
    return out


def _edges_between(graph, labels, n=None, diagonal=True):
    """Return the numbers of edges between blocks, those of the lower triangle of the matrix row by row."""
    n = int(labels.max()) + 1 if n is None else n
    rows = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    one, two = labels[rows], labels[graph.neighbours]
    counts = np.bincount(one * n + two, minlength=n * n).reshape(n, n)
    counts[np.diag_indices(n)] //= 2  # (both of its ends are there)
    return counts[np.tril_indices(n, 0 if diagonal else -1)].astype(np.int64)


def _symmetric(values, n=None):
    """Return the symmetric matrix of a lower triangle; with n that of one without its diagonal, which is 0."""
    size = (math.isqrt(8 * len(values) + 1) - 1) // 2 if n is None else n
    out = np.zeros((size, size))
    out[np.tril_indices(size, 0 if n is None else -1)] = values
    return np.maximum(out, out.T) if n is not None else out + np.tril(out, -1).T


def _degrees_within(graph, labels):
    rows = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    return np.bincount(rows[labels[rows] == labels[graph.neighbours]], minlength=graph.n_nodes).astype(np.int64)


def _raised(noisy):
    """Return numbers of at least 0 that add up to what noisy ones do, which all lost the same."""
    total = float(noisy.sum())
    return norm_sub(noisy / total) * total if total > 0 else np.zeros(len(noisy))
