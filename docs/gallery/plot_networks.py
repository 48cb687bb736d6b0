"""
What one may know of a network
==============================

A made network of 1,000 people, and what may be said of it: who is protected, who must be trusted, and what that costs.
A relationship is the least that is protected, a person with all relationships the most.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpestim.graph import (
    AGMGenerator,
    DegreeDistribution,
    DegreeEstimator,
    DGGGenerator,
    NodeDegreeDistribution,
    SubgraphCount,
    TriangleEstimator,
    bter,
)

rng = np.random.default_rng(0)
PEOPLE = 1_000
graph = bter(np.minimum(4 * (1 - rng.random(PEOPLE)) ** (-1 / 1.5), 50).astype(int), 0.5, random_state=0)
degrees = graph.astype(int).sum(axis=0)


def triangles_of(matrix):
    """Return the number of triangles of an adjacency matrix."""
    matrix = matrix.astype(np.int64)
    return int((matrix @ matrix).multiply(matrix).sum()) // 6


TRIANGLES = triangles_of(graph)
print(f"{PEOPLE:,} people, {degrees.sum() // 2:,} relationships, {TRIANGLES:,} triangles")

# %%
# Triangles
# ---------
# The error of 15 releases, as a share of the triangles (median, and the middle half). A curator who holds the graph
# adds noise that follows the graph. Where nobody is trusted, users report their lists with noise: in one round, or in
# two, of which the second counts triangles of the first one's noisy network.

EPSILONS, RELEASES = np.array([0.5, 1.0, 2.0, 4.0]), 15
WAYS = {
    "a curator, ladder": lambda epsilon, seed: SubgraphCount(epsilon, method="ladder", random_state=seed),
    "a curator, smooth": lambda epsilon, seed: SubgraphCount(epsilon, random_state=seed),
    "nobody, two rounds": lambda epsilon, seed: TriangleEstimator(epsilon, method="two_rounds", random_state=seed),
    "nobody, one round": lambda epsilon, seed: TriangleEstimator(epsilon, random_state=seed),
}


def count_of(est):
    """Return what an estimator has estimated."""
    return est.value_ if isinstance(est, SubgraphCount) else est.triangles_


fig, axis = plt.subplots(figsize=(7, 3.6), layout="constrained", dpi=120)
for name, way in WAYS.items():
    counts = [[count_of(way(epsilon, seed).fit(graph)) for seed in range(RELEASES)] for epsilon in EPSILONS]
    errors = np.abs(np.array(counts) - TRIANGLES) / TRIANGLES
    low, middle, high = np.quantile(errors, [0.25, 0.5, 0.75], axis=1)
    line, = axis.plot(EPSILONS, middle, "o-", label=name)
    axis.fill_between(EPSILONS, low, high, color=line.get_color(), alpha=0.15)
    print(f"{name:20}", "  ".join(f"epsilon {e:g}: {m:.3f}" for e, m in zip(EPSILONS, middle)))
axis.set_xscale("log", base=2)
axis.set_yscale("log")
axis.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
axis.set_xlabel("epsilon, for a relationship")
axis.set_ylabel("error, share of the triangles")
axis.legend(title="who is trusted")
plt.show()

# %%
# Degrees
# -------
# The share of people with more than d relationships, at epsilon 2. To protect a person with all relationships, a
# curator leaves out what exceeds a bound, which is chosen with noise. Where nobody is trusted, each person reports a
# number with noise, and the server works out the distribution.

EPSILON = 2.0
by_edge = DegreeDistribution(EPSILON, random_state=0).fit(graph)
by_node = NodeDegreeDistribution(EPSILON, random_state=0).fit(graph)
by_users = DegreeEstimator(EPSILON, random_state=0).fit(graph)
fig, axis = plt.subplots(figsize=(7, 3.6), layout="constrained", dpi=120)
shares = {
    "truth": np.bincount(degrees) / PEOPLE,
    "a curator, for a relationship": by_edge.distribution_,
    "a curator, for a person": by_node.distribution_,
    "nobody, for a relationship in one list": by_users.distribution_,
}
for name, share in shares.items():
    above = np.clip(1 - np.cumsum(share), 1e-4, 1)
    style = {"color": "black", "lw": 3, "alpha": 0.4} if name == "truth" else {"lw": 1.5}
    axis.plot(np.arange(len(above))[:80], above[:80], label=name, **style)
axis.set_xscale("symlog", linthresh=2)
axis.set_yscale("log")
axis.set_xlabel("relationships d")
axis.set_ylabel("share of people with more than d")
axis.legend()
plt.show()

# %%
# A network to show
# -----------------
# Networks that are drawn from what was learned with noise may be shown to everybody. Adjacency matrices, people in
# order of their degrees. What is kept depends on the model: DGG keeps degrees, and its clustering is
# assumed. AGM learns the number of triangles, and its samples have fewer where the network has much clustering.

fig, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained", dpi=120)
made = {
    "the private network": graph,
    "DGG, nobody is trusted": DGGGenerator(EPSILON, clustering=0.5, random_state=0).fit(graph).sample(0),
    "AGM, a curator is trusted": AGMGenerator(EPSILON, random_state=0).fit(graph).sample(0),
}
for axis, (name, one) in zip(axes, made.items()):
    order = np.argsort(-one.astype(int).sum(axis=0))
    rows, columns = one[order][:, order].nonzero()
    axis.plot(columns, rows, ",", color="#0072b2")
    axis.set_title(f"{name}\n{one.nnz // 2:,} edges, {triangles_of(one):,} triangles", fontsize=9)
    axis.set_xlim(0, PEOPLE)
    axis.set_ylim(PEOPLE, 0)
    axis.set_aspect("equal")
plt.show()
