"""What one may know of a network: one made network of 2,000 people, three ways to protect it, one table.

Who is protected differs from line to line, and so does who must be trusted. Of a real network nobody would print the
column "truth". From the top level of the repository:

    python examples/network.py
"""

import numpy as np

from dpestim.graph import (
    AGMGenerator,
    DegreeEstimator,
    DGGGenerator,
    EdgeCountEstimator,
    NodeSubgraphCount,
    SubgraphCount,
    TriangleEstimator,
    bter,
)

#: The budget of each line.
EPSILON = 2.0
PEOPLE = 2_000


def friends(people, seed):
    """Return the adjacency matrix of a made network: degrees of a power law, from 3 to 60, and much clustering."""
    rng = np.random.default_rng(seed)
    degrees = np.minimum(3 * (1 - rng.random(people)) ** (-1 / 1.5), 60).astype(int)
    return bter(degrees, 0.5, random_state=rng)


def shape(graph):
    """Return (edges, triangles, the largest degree, the share of closed wedges) of a graph."""
    graph = graph.astype(np.int64)
    degrees = graph.sum(axis=0)
    triangles = int((graph @ graph).multiply(graph).sum()) // 6
    wedges = int((degrees * (degrees - 1)).sum()) // 2
    return int(degrees.sum()) // 2, triangles, int(degrees.max()), 3 * triangles / max(1, wedges)


def main():
    graph = friends(PEOPLE, seed=0)
    edges, triangles, most, closed = shape(graph)
    print(f"{PEOPLE:,} people, {edges:,} relationships; epsilon {EPSILON:g} for each line\n")
    print(f"{'what is protected':17} {'who is trusted':14} {'question':12} {'truth':>9} {'estimate':>9}  95 % interval")
    # random_state stays None: fresh, secure noise at every run
    for protected, trusted, question, truth, est in (
        ("a relationship", "a curator", "edges", edges, SubgraphCount(EPSILON, pattern="edge")),
        ("a relationship", "a curator", "triangles", triangles, SubgraphCount(EPSILON, method="local", delta=1e-6)),
        ("a person", "a curator", "edges", edges, NodeSubgraphCount(EPSILON, pattern="edge", projection="stable")),
        ("a relationship", "nobody", "edges", edges, EdgeCountEstimator(EPSILON)),
        ("a relationship", "nobody", "triangles", triangles, TriangleEstimator(EPSILON, method="two_rounds")),
    ):
        est.fit(graph)
        value = next(getattr(est, name) for name in ("value_", "edges_", "triangles_", "count_") if hasattr(est, name))
        try:
            low, high = est.confidence_interval()
            interval = f"{low:,.0f} to {high:,.0f}"
        except AttributeError:
            interval = "none"
        print(f"{protected:17} {trusted:14} {question:12} {truth:>9,} {value:>9,.0f}  {interval}")
    degrees = DegreeEstimator(EPSILON).fit(graph)
    known = np.abs(degrees.degrees_ - graph.sum(axis=0)) < 2
    print(f"\nNobody is trusted: {known.mean():.0%} of degrees are estimated to within 2.")
    print("\nNetworks that are drawn, and may be shown to everybody:")
    print(f"{'':34} {'edges':>8} {'triangles':>10} {'largest degree':>15} {'closed wedges':>14}")
    for name, made in (("the private network", graph),
                       ("DGG, nobody is trusted", DGGGenerator(EPSILON, clustering=0.5).fit(graph).sample()),
                       ("AGM, a curator is trusted", AGMGenerator(EPSILON).fit(graph).sample())):
        edges, triangles, most, closed = shape(made)
        print(f"{name:34} {edges:>8,} {triangles:>10,} {most:>15} {closed:>14.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
