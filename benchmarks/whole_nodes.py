"""Graphs whose nodes are protected: errors over epsilon, and seconds by size: ``python -m benchmarks.whole_nodes``.

Errors are relative root mean squares of counts, and of degree distributions the mean over runs of the largest distance
of cumulative shares (Kolmogorov's). Seconds are those of the processor. Graphs: degrees that follow a power law, and
groups that overlap, which make many triangles.
"""

import time

import numpy as np
from sklearn.base import clone

from dpestim.graph import NodeDegreeDistribution, NodeSubgraphCount, adjacency
from dpestim.rng import WordSource

RUNS, EPSILONS = 20, (0.5, 1.0, 2.0, 4.0)


def power_law(n, mean, seed=0):
    """Return an adjacency matrix of n nodes of this mean degree, whose expected degrees fall like i^-1/2."""
    rng, shares, m = np.random.default_rng(seed), np.arange(1, n + 1) ** -0.5, n * mean // 2
    ends = rng.choice(n, (3 * m, 2), p=shares / shares.sum())
    ends = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]]), axis=0)
    return adjacency(rng.permutation(ends)[:m], n)


def groups(n, many, seed=0):
    """Return an adjacency matrix of n nodes in groups of 4 to 13, in each of which all are joined."""
    rng, pairs = np.random.default_rng(seed), set()
    for _ in range(many):
        members = np.sort(rng.choice(n, rng.integers(4, 14), replace=False)).tolist()
        pairs |= {(a, b) for k, a in enumerate(members) for b in members[k + 1 :]}
    return adjacency(sorted(pairs), n)


def triangles(graph):
    """Return the number of triangles."""
    graph = graph.astype(np.int64)
    return int((graph @ graph * graph).sum()) // 6


def errors():
    """Print errors over epsilon."""
    kinds = {
        "degrees, stable": (NodeDegreeDistribution, {}),
        "degrees, lipschitz": (NodeDegreeDistribution, {"projection": "lipschitz", "max_bound": 128}),
        "edges, lipschitz": (NodeSubgraphCount, {}),
        "edges, stable": (NodeSubgraphCount, {"projection": "stable"}),
        "triangles, lipschitz": (NodeSubgraphCount, {"pattern": "triangle"}),
    }
    for title, graph in (("power law", power_law(5000, 10)), ("groups", groups(4000, 600))):
        degrees, truth = graph.sum(0), {"edges": graph.nnz // 2, "triangles": triangles(graph)}
        print(f"\n{title}: {graph.shape[0]} nodes, {truth['edges']} edges, {truth['triangles']} triangles, "
              f"degrees up to {degrees.max()}\n\n| | " + " | ".join(f"{e:g}" for e in EPSILONS))
        known = {}
        for name, (cls, params) in kinds.items():
            row = []
            for epsilon in EPSILONS:
                fits = fitted(cls(epsilon, **params), graph, known.setdefault(name, []))
                if cls is NodeSubgraphCount:
                    true = truth[name.partition(",")[0]]
                    error = np.sqrt(np.mean([(est.value_ / true - 1) ** 2 for est in fits]))
                else:
                    error = np.mean([distance(est.distribution_, degrees) for est in fits])
                row.append(f"{error:.3f} ({np.median([est.bound_ for est in fits]):g})")
            print(f"| {name} | " + " | ".join(row) + " |", flush=True)


def fitted(est, graph, cut):
    """Return fits of many seeds; what draws no order cuts the graph once, and keeps it in `cut`."""
    if est.projection == "stable":
        return [clone(est).set_params(random_state=seed).fit(graph) for seed in range(RUNS)]
    cut += [] if cut else [est._seen(graph, None)]
    fits = []
    for seed in range(RUNS):
        bound, _, noisy = est._drawn(cut[0], est._bounds(), WordSource(2 * seed), WordSource(2 * seed + 1))
        fits.append(clone(est)._become({**est._learned(noisy), "bound_": bound}))
    return fits


def distance(shares, degrees):
    """Return the largest distance of cumulative shares."""
    true = np.cumsum(np.bincount(degrees, minlength=len(shares))) / len(degrees)
    ours = np.cumsum(np.append(shares, np.zeros(len(true) - len(shares))))
    return np.abs(true - ours).max()


def seconds():
    """Print seconds of one fit, with all eleven bounds."""
    cases = [("1e6 edges of 1e5 nodes", power_law(100_000, 20), ["degrees, stable", "edges, stable"]),
             ("2e5 edges of 1e4 nodes", power_law(10_000, 40), ["degrees, lipschitz", "edges, lipschitz", "triangles"]),
             ("groups of 2,000 nodes", groups(2000, 300), ["triangles"]),
             ("groups of 6,667 nodes", groups(6667, 1000), ["triangles"])]
    print()
    for title, graph, names in cases:
        for name in names:
            what, _, projection = name.partition(", ")
            if what == "degrees":
                est = NodeDegreeDistribution(1.0, projection=projection, random_state=0)
            else:
                more = {"projection": projection} if projection else {"pattern": "triangle"}
                est = NodeSubgraphCount(1.0, random_state=0, **more)
            start = time.process_time()
            est.fit(graph)
            more = f" ({triangles(graph):,} of them)" if what == "triangles" else ""
            print(f"{title}: {name}{more}: {time.process_time() - start:.2f} s, bound {est.bound_}", flush=True)


if __name__ == "__main__":
    errors()
    seconds()
