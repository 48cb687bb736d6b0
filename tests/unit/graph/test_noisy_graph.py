"""Counts of noisy graphs against dense products, and estimates over all noisy graphs of four nodes, in rationals."""

import math
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from dpestim.graph.lists import noisy_graph
from dpestim.graph.lists.noisy_graph import NoisyGraph, Unbiased

Q = Fraction(2, 7)
COUNTS = ("edges", "wedges", "triangles", "squares_below")
VARIANCES = {"variance_of_wedges": ("wedges", "wedges"), "variance_of_triangles": ("triangles", "triangles"),
             "covariance": ("triangles", "wedges")}


def half(upper):
    rows, nodes = np.nonzero(np.triu(upper, 1))
    return NoisyGraph(np.searchsorted(rows, np.arange(len(upper) + 1)).astype(np.int64), nodes.astype(np.int32))


def drawn(n, share, seed=0):
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < share, 1)
    return (upper | upper.T).astype(np.int64)


@cache
def small(n):
    """Return (all graphs of n nodes, the probability of each as a report of each other)."""
    pairs = list(combinations(range(n), 2))
    graphs = []
    for code in range(1 << len(pairs)):
        graphs.append(np.zeros((n, n), np.int64))
        for bit, pair in enumerate(pairs):
            graphs[-1][pair] = code >> bit & 1
    apart = [Q**k * (1 - Q) ** (len(pairs) - k) for k in range(len(pairs) + 1)]
    return graphs, [[apart[(a ^ b).bit_count()] for b in range(len(graphs))] for a in range(len(graphs))]


def exact(upper, name):
    graph = upper + upper.T
    common, n = graph @ graph, len(graph)
    if name == "edges":
        return int(upper.sum())
    if name == "wedges":
        return sum(math.comb(d, 2) for d in graph.sum(0).tolist())
    if name == "triangles":
        return int((common * upper).sum()) // 3
    return sum(int(graph[:j, j] @ graph[:j, k]) ** 2 for j, k in combinations(range(n), 2))


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_sums_over_pairs_are_those_of_dense_products(share, before, monkeypatch):
    """Both kernels, also where tiles and words are not full."""
    n = 141
    upper = np.triu(drawn(n, share), 1)
    graph, wanted = upper + upper.T, dict.fromkeys(("u", "uu", "us", "s", "ss", "ua", "uj", "sj"), 0)
    for k in range(n):
        for j in range(k):
            top = j if before else n
            u = int(graph[:top, j] @ graph[:top, k])
            s = int(graph[:top, j].sum() + graph[:top, k].sum()) - (0 if before else 2 * int(graph[j, k]))
            for name, value in {"u": u, "uu": u * u, "us": u * s, "s": s, "ss": s * s,
                                **({"uj": u * j, "sj": s * j} if before else {"ua": u * int(graph[j, k])})}.items():
                wanted[name] += value
    for sparse in (False, True):
        noisy = half(upper)
        assert noisy.wedges >= 0  # (kept from now on)
        monkeypatch.setitem(vars(noisy), "wedges", 0 if sparse else 1 << 60)
        found = noisy.pairs_below if before else noisy.pairs
        assert vars(found) == wanted


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(noisy_graph, "_TASK", 30)
    upper = np.triu(drawn(101, 0.5), 1)
    one, two = half(upper), half(upper)
    two.n_jobs = 2
    assert one.pairs == two.pairs
    assert one.pairs_below == two.pairs_below


def test_estimates_and_variances_are_unbiased_over_all_noisy_graphs():
    graphs, chances = small(4)
    found = [Unbiased(half(graph), Q) for graph in graphs]
    table = {name: [getattr(one, name) for one in found] for name in (*COUNTS, *VARIANCES)}
    for graph, law in list(zip(graphs, chances))[::3]:
        mean = {name: sum(p * x for p, x in zip(law, values)) for name, values in table.items()}
        for name in COUNTS:
            assert mean[name] == exact(graph, name)
        for name, (a, b) in VARIANCES.items():
            assert mean[name] == sum(p * x * y for p, x, y in zip(law, table[a], table[b])) - mean[a] * mean[b]


def test_estimates_of_reports_without_flips_are_the_counts():
    upper = np.triu(drawn(40, 0.3), 1)
    found = Unbiased(half(upper), Fraction(0))
    assert [getattr(found, name) for name in COUNTS] == [exact(upper, name) for name in COUNTS]
    assert all(getattr(found, name) == 0 for name in VARIANCES)
