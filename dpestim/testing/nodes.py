"""What releases from a graph for whole nodes: worst cases over all small graphs and all of their nodes, and laws."""

import math
from functools import cache

import numpy as np
from scipy import stats

from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import WordSource
from dpestim.testing.graphs import SMALL, _matrix, _neighbours, check_graph_containers
from dpestim.testing.releases import RELEASE_CHECKS, Releases
from dpestim.testing.tools import require

#: Orders of edges that are tried for each pair; releases that are compared with their law, and the significance.
ORDERS, N, ALPHA = 2, 640, 1e-6
#: Logarithms of probabilities are sums of floats.
_FLOAT = 1e-9


class Nodes(Releases):
    """An estimator that protects nodes of a graph, and how it is used."""

    relation = "node"
    wrong = {"pattern": (None, "k-triangle", 3), "projection": (None, "flow", 1), "k": (1, 11, 2.5, True, "2", None),
             "bound": (0, 2**20 + 1, 2.5, True, "2"), "max_bound": (None, 0, 2**20 + 1, 2.5, True),
             "bound_fraction": (0, 1, "a", None, True)}

    def checks(self):
        """Return the checks of what protects nodes."""
        return *CHECKS, *RELEASE_CHECKS

    @property
    def data(self):
        """An adjacency matrix."""
        return self.estimator._test_data(24)[0]

    def entropy(self, est):
        """Return several releases: counts of few edges repeat."""
        return [est.release(self.estimator._test_data(20 + k)[0]) for k in range(4)]

    def bad(self):
        """Return what is no undirected graph."""
        graph = self.data
        for change in (lambda m: m[:, :-1], lambda m: np.triu(m), lambda m: 2 * m, lambda m: m + np.eye(len(m)),
                       lambda m: np.where(m, math.nan, 0.0), lambda m: m.astype(str)):
            yield change(graph)

    def odd(self):
        """Return square matrices that differ in one entry, or in nodes, down to none."""
        yield self.data
        for value in (0.5, -1e308, math.nan):
            matrix = self.data.astype(float)
            matrix[0, 1] = matrix[2, 2] = value
            yield matrix
        for n in (0, 1, 23):
            yield self.data[:n, :n]

    def seen(self, est, matrix, keys):
        """Return what an estimator makes of a graph whose edges are looked at in the order of their keys."""
        return est._seen(matrix, _Order(matrix, keys))


class _Order:
    """Gives the edges of a graph the keys that a matrix has at their places, in place of random words."""

    def __init__(self, matrix, keys):
        rows, columns = np.nonzero(np.triu(matrix))
        self.keys = keys[rows, columns]

    def reader(self):
        return self

    def dense(self, stage, column, block, start, m):
        return self.keys


def less(matrix, node):
    """Return a matrix without a node."""
    return np.delete(np.delete(matrix, node, 0), node, 1)


@cache
def graphs_and_nodes():
    """Return (graph of at most five nodes, node) for all that only names tell apart, as matrices."""
    found = []
    for code in sorted({code for pair in _neighbours() for code in pair}):
        matrix = _matrix(code).toarray().astype(np.uint8)
        found += [(matrix, node) for node in range(SMALL)]
        isolated = np.flatnonzero(matrix.sum(0) == 0)
        while len(isolated):  # (graphs of fewer nodes)
            matrix = less(matrix, isolated[0])
            found += [(matrix, node) for node in range(len(matrix))]
            isolated = np.flatnonzero(matrix.sum(0) == 0)
    return found


def check_nodes_keep_epsilon(nodes):
    """Over all graphs of at most five nodes, and every node: no outcome is e^epsilon times likelier without it."""
    est, rng = nodes.fresh(), np.random.default_rng(0)
    kind, bounds, epsilon = est._kind(), est._bounds(), float(canonical_epsilon(est.epsilon))
    rates = [float(est._law(kind, bound).rate_of_decay) for bound in bounds.bounds]
    known = {}

    def law(matrix, keys):  # (of what draws no order, one law a graph)
        name = matrix.tobytes(), keys.tobytes() if est.projection == "stable" else len(matrix)
        if name not in known:
            seen = nodes.seen(est, matrix, keys)
            known[name] = np.log(bounds.probabilities(seen)), [np.array(seen.answers(b)) for b in bounds.bounds]
        return known[name]

    for matrix, node in graphs_and_nodes():
        for _ in range(ORDERS if est.projection == "stable" else 1):
            keys = rng.permutation(len(matrix) ** 2).reshape(matrix.shape)
            (p, one), (q, two) = law(matrix, keys), law(less(matrix, node), less(keys, node))
            loss = max(abs(a - b) + rate * np.abs(x - y).sum() for a, b, rate, x, y in zip(p, q, rates, one, two))
            require(loss <= epsilon * (1 + _FLOAT), f"a release is e^{loss:.3f} times likelier with or without a node")


def check_nodes_follow_law(nodes):
    """Bounds and noise of releases follow their laws; the same test rejects noise that is 0.7 times as large."""
    matrix = np.kron(np.eye(8), [[0, 1], [1, 0]]).astype(np.uint8)  # 8 edges, apart: no bound cuts any
    est = nodes.fresh()
    bounds = est._bounds()
    seen = nodes.seen(est, matrix, np.arange(matrix.size).reshape(matrix.shape))
    drawn = []
    for seed in range(N // min(seen.size(bounds.bounds[0]), 3)):
        bound, _, noisy = est._drawn(seen, bounds, WordSource(2 * seed), WordSource(2 * seed + 1))
        drawn.append((bound, np.array(noisy) - seen.answers(bound)))
    counts = np.array([sum(bound == b for bound, _ in drawn) for b in bounds.bounds])
    chances = bounds.probabilities(seen)
    require(_p_value(counts, chances) > ALPHA, "the bound does not follow its law")
    scaled = [z * float(est._law(type(seen), bound).rate_of_decay) for bound, z in drawn]
    scale, steps = np.concatenate(scaled), np.concatenate([np.full(len(z), bound) for bound, z in drawn])
    for factor in (1.0, 0.7):
        observed, expected = 0, 0
        for bound in bounds.bounds:
            rate, z = float(est._law(type(seen), bound).rate_of_decay), factor * scale[steps == bound]
            places = np.arange(-int(12 / rate) - 1, int(12 / rate) + 2)
            law = math.tanh(rate / 2) * np.exp(-rate * np.abs(places))
            edges = np.array([0.4, 0.9, 1.6, 2.5])
            observed = observed + np.bincount(np.searchsorted(edges, np.abs(z)), minlength=5)
            expected = expected + len(z) * np.bincount(np.searchsorted(edges, np.abs(places) * rate), law, 5)
        p_value = _p_value(observed, expected / expected.sum())
        require((p_value > ALPHA) == (factor == 1.0), "noise does not follow its law" if factor == 1.0 else
                "the test sees no wrong noise")


def _p_value(observed, chances):
    """Return the p-value of a chi-square test of cells, those that are rare taken together."""
    expected = chances * observed.sum()
    rare = expected < 5
    if rare.any():
        observed, expected = (np.append(x[~rare], x[rare].sum()) for x in (observed, expected))
    some = expected > 0
    if observed[~some].any():
        return 0.0
    if some.sum() < 2:
        return 1.0
    return float(stats.chi2.sf(((observed - expected)[some] ** 2 / expected[some]).sum(), some.sum() - 1))


CHECKS = (check_nodes_keep_epsilon, check_nodes_follow_law, check_graph_containers)
