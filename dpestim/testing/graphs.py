"""Counts of graphs whose noise depends on the graph: worst cases over all small graphs, and laws of releases."""

import math
from functools import cache
from itertools import combinations, permutations

import numpy as np
from scipy import sparse, stats

from dpestim.privacy.exact import canonical_amount
from dpestim.rng import WordSource
from dpestim.testing.releases import RELEASE_CHECKS, Releases
from dpestim.testing.tools import require, same_state

#: All graphs of so many nodes are looked at; releases that are compared with their law, and the significance.
SMALL, N, ALPHA = 5, 2_000, 1e-6
#: Logarithms of probabilities are sums of floats.
_FLOAT = 1e-6
#: Values at which laws are compared: integers, further out than any count of a small graph.
PLACES = np.arange(-40, 81)


class Graphs(Releases):
    """An estimator of a graph, and how it is used."""

    relation = "edge"

    def __init__(self, estimator):
        super().__init__(estimator)
        self.wrong = {"pattern": (None, "square", 3), "method": (None, "noise", 1), "k": (1, 11, 2.5, True, "2", None),
                      "bound_fraction": (0, 1, "a", None, True)}
        if not estimator.delta:  # what needs none
            self.wrong["delta"] = (1, 1.5, -1e-9, math.nan, "0", True, 1e-5)

    def checks(self):
        """Return the checks of what takes a graph."""
        return *CHECKS, *RELEASE_CHECKS

    @property
    def data(self):
        """An adjacency matrix."""
        return self.estimator._test_data(30)[0]

    def entropy(self, est):
        """Return several releases: counts of few edges repeat."""
        return [est.release(self.estimator._test_data(30 + k)[0]) for k in range(12)]

    def bad(self):
        """Return what is no undirected graph."""
        graph = self.data
        for change in (lambda m: m[:, :-1], lambda m: np.triu(m), lambda m: 2 * m, lambda m: m + np.eye(len(m)),
                       lambda m: np.where(m, math.nan, 0.0), lambda m: m[:1, :1], lambda m: m.astype(str)):
            yield change(graph)

    def odd(self):
        """Return square matrices that differ in one entry."""
        yield self.data
        for value in (0.5, -1e308, math.nan, 1.0):
            for place in ((0, 1), (2, 2)):
                matrix = self.data.astype(float)
                matrix[place] = value
                yield matrix


def check_graph_keeps_epsilon(graphs):
    """Over all graphs of five nodes, and every edge: no outcome is e^epsilon times likelier; or its delta is kept."""
    est = graphs.fresh()
    epsilon, delta = (float(canonical_amount(getattr(est, name, None) or 0, name)) for name in ("epsilon", "delta"))
    laws = {}
    for codes in _neighbours():
        for code in codes:
            if code not in laws:
                noise = est._noise(_matrix(code))[0]
                ladder = est.method == "ladder" and est.pattern != "edge"
                laws[code] = noise.log_law(np.arange(noise.seen.largest + 1) if ladder else PLACES)
        one, two = (laws[code] for code in codes)
        if not delta:
            loss = float(np.max(np.abs(one - two)))
            require(loss <= epsilon * (1 + _FLOAT), f"a count is e^{loss:.3f} times likelier for a neighbour")
            continue
        for p, q in ((one, two), (two, one)):
            over = float(np.maximum(np.exp(p) - np.exp(epsilon + q), 0).sum())
            require(over <= delta * (1 + _FLOAT), f"delta is at least {over:.3g}, more than declared")


@cache
def _neighbours():
    """Return the pairs of graphs that differ in one edge, as codes: one pair for all that only names tell apart."""
    pairs = list(combinations(range(SMALL), 2))
    codes = np.arange(1 << len(pairs))
    bits = codes[:, None] >> np.arange(len(pairs)) & 1
    least = codes.copy()
    for names in permutations(range(SMALL)):
        places = [pairs.index(tuple(sorted((names[i], names[j])))) for i, j in pairs]
        np.minimum(least, bits @ (1 << np.array(places)), out=least)
    return sorted({(int(least[code]), int(least[code ^ (1 << edge)])) for code in codes for edge in range(len(pairs))
                   if not code >> edge & 1})


def _matrix(code):
    ends = np.array([pair for edge, pair in enumerate(combinations(range(SMALL), 2)) if code >> edge & 1], int)
    both = np.concatenate([ends.reshape(-1, 2), ends.reshape(-1, 2)[:, ::-1]])
    return sparse.coo_array((np.ones(len(both)), both.T), shape=(SMALL, SMALL))


def check_graph_follows_law(graphs):
    """Releases of a graph follow the law that is stated; the same test rejects noise that is 0.7 times as large."""
    noise = graphs.fresh()._noise(graphs.data)[0]
    drawn = np.array([noise.draw(WordSource(seed))["value_"] for seed in range(N)])
    most, center = noise.seen.largest, noise.seen.value
    places = np.arange(max(center - 20_000, 0), min(center + 20_000, most) + 1)
    law = noise.log_law(places)
    chances = np.exp(law if law.ndim == 1 else np.logaddexp.reduce(law))
    require(_p_value(drawn, places, chances) > ALPHA, "releases do not follow the law")
    require(_p_value(np.rint(center + 0.7 * (drawn - center)), places, chances) < ALPHA, "the test sees no wrong noise")


def _p_value(drawn, places, chances):
    """Return the p-value of a chi-square test in some 20 cells of about equal chances, without both ends."""
    cdf = np.cumsum(chances)
    edges = np.unique(np.searchsorted(cdf, np.linspace(0.03, 0.97, 21) * cdf[-1]))
    expected, observed, n = np.diff(cdf[edges]) * len(drawn), np.histogram(drawn, places[edges] + 0.5)[0], len(drawn)
    observed, expected = np.append(observed, n - observed.sum()), np.append(expected, n - expected.sum())
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def check_graph_containers(graphs):
    """Sparse matrices of any format and arrays of any dtype give the same release."""
    graph = graphs.data
    wanted = graphs.release(graphs.fresh(), graph)
    for other in (graph.astype(bool), graph.astype(np.float32), np.asfortranarray(graph), sparse.csr_array(graph),
                  sparse.csc_matrix(graph), sparse.coo_array(graph.astype(np.int64)), sparse.lil_array(graph)):
        same = same_state(graphs.release(graphs.fresh(), other), wanted)
        require(same, f"{type(other).__name__} gives another release")


CHECKS = (check_graph_keeps_epsilon, check_graph_follows_law, check_graph_containers)
