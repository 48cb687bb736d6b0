"""PageRank from degrees: close to that of walks, and closer than from a release of all pairs."""

import numpy as np
import pytest

from dpestim.graph import CutEstimator, PageRankEstimator


def groups(n, k, inside, between, seed):
    """Return a graph of groups whose nodes have weights with heavy tails."""
    rng = np.random.default_rng(seed)
    group, weight = rng.integers(0, k, n), rng.pareto(2.5, n) + 0.3
    weight /= weight.mean()
    chance = np.where(group[:, None] == group, inside, between) * np.outer(weight, weight)
    half = np.triu(rng.random((n, n)) < np.minimum(chance, 1), 1)
    return (half | half.T).astype(float)


def walked(weights, damping=0.85):
    """Return PageRank by steps along the edges; nodes without an edge jump."""
    degrees, ranks = weights.sum(0), np.full(len(weights), 1 / len(weights))
    for _ in range(100):
        steps = weights @ (ranks / np.where(degrees > 0, degrees, 1)) + ranks[degrees <= 0].sum() / len(weights)
        ranks = (1 - damping) / len(weights) + damping * steps
    return ranks


@pytest.mark.parametrize(("inside", "between", "most"), [(0.1, 0.004, 0.05), (0.3, 0.05, 0.02)])
def test_degrees_are_close_to_walks_and_closer_than_a_release_of_all_pairs(inside, between, most):
    graph = groups(300, 3, inside, between, seed=0)
    truth = walked(graph)
    exact = PageRankEstimator(40.0, random_state=0).fit(graph)
    assert np.abs(exact.pagerank_ - truth).sum() < most
    assert exact.degrees_.tolist() == graph.sum(0).tolist()
    noisy = PageRankEstimator(1.0, random_state=0).fit(graph).pagerank_
    assert noisy.sum() == pytest.approx(1)
    later = CutEstimator(1.0, random_state=0).fit(graph)
    bits = np.unpackbits(later.noisy_pairs_, axis=1, count=300, bitorder="little")
    flip = float(later.flip_)
    pairs = np.triu((bits - flip) / (1 - 2 * flip), 1)
    degrees = np.maximum((pairs + pairs.T).sum(0), 0)
    other = 0.15 / 300 + 0.85 * degrees / degrees.sum()
    assert np.abs(noisy - truth).sum() < 0.7 * np.abs(other - truth).sum()


def test_regular_graphs_and_graphs_without_edges_are_uniform():
    n = 30
    circle = np.eye(n, k=1) + np.eye(n, k=n - 1)
    for graph in (circle + circle.T, np.zeros((n, n)), 1 - np.eye(n)):
        assert PageRankEstimator(40.0, random_state=0).fit(graph).pagerank_ == pytest.approx(np.full(n, 1 / n))


def test_intervals_of_degrees_hold():
    graph, held = groups(100, 2, 0.2, 0.02, seed=1), []
    for seed in range(5):
        low, high = PageRankEstimator(0.5, random_state=seed).fit(graph).confidence_interval(0.8)
        held.append((low <= graph.sum(0)) & (graph.sum(0) <= high))
    assert 0.75 < np.mean(held) < 0.95
    frame = PageRankEstimator(0.5, random_state=0).fit(graph).result_.to_frame()
    assert frame["quantity"].value_counts().to_dict() == {"PageRank": 100, "degree": 100}


@pytest.mark.parametrize("damping", [0, 1, -0.1, "a", None, True, np.nan])
def test_dampings_that_are_none(damping):
    with pytest.raises(ValueError, match="damping must"):
        PageRankEstimator(1.0, damping=damping).fit(np.zeros((3, 3)))
