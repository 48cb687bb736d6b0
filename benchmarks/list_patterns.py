"""Patterns of graphs from neighbour lists: how often 95 % intervals hold, errors of one and of two rounds, and times.

``python -m benchmarks.list_patterns`` prints the tables that the proofs in dpestim/graph/lists quote.
"""

import argparse
import math
import time

import numpy as np

from dpestim.graph import ClusteringCoefficientEstimator, KStarEstimator, ModularityEstimator, TriangleEstimator
from dpestim.graph.lists.noisy_graph import NoisyGraph

#: Trials of an interval, and of an error.
TRIALS, ERRORS = 400, 20


def graph(kind, n, seed=0):
    """Return (adjacency matrix, the part of each node) of a graph of a kind."""
    rng, parts = np.random.default_rng(seed), np.arange(n) % 4
    if kind == "empty":
        chances = np.zeros((n, n))
    elif kind == "complete":
        chances = np.ones((n, n))
    elif kind == "sparse":
        chances = np.full((n, n), 4 / n)
    elif kind == "groups":
        chances = np.where(parts[:, None] == parts, 0.5, 0.05)
    elif kind == "star":
        chances = np.zeros((n, n))
        chances[0] = 1
    else:  # heavy tails
        weights = rng.pareto(1.5, n) + 0.3
        chances = np.minimum(10 / n * np.outer(weights, weights) / weights.mean() ** 2, 1)
    upper = np.triu(rng.random((n, n)) < chances, 1)
    return (upper | upper.T).astype(np.uint8), parts


def truths(X, parts):
    """Return the exact numbers of a graph, by the name of the attribute."""
    A = X.astype(np.int64)
    degrees, n = A.sum(0), len(A)
    edges, triangles = A.sum() / 2, np.trace(A @ A @ A) / 6
    wedges = (degrees * (degrees - 1)).sum() / 2
    by_part = [(A[np.ix_(parts == c, parts == c)].sum() / 2, degrees[parts == c].sum()) for c in np.unique(parts)]
    modularity = sum(within / edges - (ends / edges / 2) ** 2 for within, ends in by_part) if edges else math.nan
    stars = {k: sum(math.comb(int(d), k) for d in degrees) for k in (2, 3)}
    return {"triangles_": triangles, "coefficient_": 3 * triangles / wedges if wedges else math.nan,
            "modularity_": modularity, "stars": stars, "n": n}


def cases(parts):
    """Yield (name, what makes an estimator of epsilon and a seed, name of the attribute, k)."""
    for method in ("one_round", "two_rounds"):
        yield (f"triangles, {method}", lambda e, s, m=method: TriangleEstimator(e, method=m, random_state=s),
               "triangles_", 0)
    for method in ("laplace", "rnl"):
        for k in (2, 3):
            yield (f"{k}-stars, {method}",
                   lambda e, s, m=method, k=k: KStarEstimator(e, k=k, method=m, random_state=s), "stars_", k)
    yield "clustering", lambda e, s: ClusteringCoefficientEstimator(e, random_state=s), "coefficient_", 0
    for method in ("laplace", "rnl"):
        yield (f"modularity, {method}",
               lambda e, s, m=method: ModularityEstimator(e, communities=parts, method=m, random_state=s),
               "modularity_", 0)


def coverage(trials):
    """Print the share of 95 % intervals that hold."""
    print("| graph | n | epsilon | " + " | ".join(name for name, *_ in cases([])) + " |")
    for kind, n in (("heavy", 100), ("groups", 100), ("sparse", 100), ("star", 60), ("groups", 8), ("empty", 30),
                    ("complete", 30)):
        X, parts = graph(kind, n)
        exact = truths(X, parts)
        for epsilon in (0.5, 1.0, 4.0):
            shares = []
            for _, make, name, k in cases(parts):
                truth = exact["stars"][k] if k else exact[name]
                if math.isnan(truth):
                    shares.append("none")
                    continue
                ends = [make(epsilon, seed).fit(X).confidence_interval() for seed in range(trials)]
                shares.append(f"{100 * np.mean([low - 1e-9 <= truth <= high + 1e-9 for low, high in ends]):.1f}")
            print(f"| {kind} | {n} | {epsilon:g} | " + " | ".join(shares) + " |", flush=True)


def errors(trials):
    """Print root mean squared errors of triangles, and standard errors that were estimated."""
    print("| n | epsilon | triangles | error, one round | stated | error, two rounds | stated |")
    for n in (300, 1000, 3000, 6000):
        rng = np.random.default_rng(0)
        parts = np.arange(n) % (n // 50)
        upper = np.triu(rng.random((n, n)) < np.where(parts[:, None] == parts, 0.3, 3 / n), 1)
        X = (upper | upper.T).astype(np.uint8)
        A = X.astype(np.float32)
        truth = float((A @ A * A).sum(dtype=float)) / 6
        for epsilon in (1.0, 2.0, 4.0):
            row = []
            for method in ("one_round", "two_rounds"):
                found = [TriangleEstimator(epsilon, method=method, random_state=seed).fit(X)
                         for seed in range(trials if n < 6000 else 8)]
                row += [np.mean([(one.triangles_ - truth) ** 2 for one in found]) ** 0.5,
                        np.mean([one.standard_error_**2 for one in found]) ** 0.5]
            print(f"| {n} | {epsilon:g} | {truth:.0f} | " + " | ".join(f"{x:,.0f}" for x in row) + " |", flush=True)


def times():
    """Print seconds for the counts of noisy graphs that are dense."""
    print("| n | epsilon | noisy edges | both sums of one round (s) | sums of two rounds (s) |")
    for n in (1000, 3000, 10_000):
        for epsilon in (1.0, 6.0):
            q = 1 / (math.exp(epsilon) + 1)
            upper = np.random.default_rng(0).random((n, n), dtype=np.float32) < q
            rows, nodes = np.nonzero(np.triu(upper, 1))
            noisy = NoisyGraph(np.searchsorted(rows, np.arange(n + 1)).astype(np.int64), nodes.astype(np.int32))
            del upper, rows
            start = time.perf_counter()
            _ = noisy.pairs
            middle = time.perf_counter()
            _ = noisy.pairs_below
            end = time.perf_counter()
            print(f"| {n} | {epsilon:g} | {noisy.n_edges:,} | {middle - start:.2f} | {end - middle:.2f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    given = parser.parse_args()
    times()
    errors(ERRORS)
    coverage(given.trials)
