"""Graphs that are drawn: degrees, clustering and density, laws of pairs, rounds of users, what is protected."""

import math
import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.graph import DGGGenerator, LDPGenGenerator, RNLGenerator, bter
from dpestim.graph.generators import degrees as degrees_of
from dpestim.graph.generators.base import joined
from dpestim.graph.generators.bter_edges import pairs_in_blocks
from dpestim.graph.generators.degrees import likely_degrees, noise_law
from dpestim.graph.generators.rnl import _chances


def local_clustering(graph):
    """Return the clustering of each node, by dense products."""
    dense = graph.toarray().astype(float)
    degrees = dense.sum(0)
    return np.diag(dense @ dense @ dense) / np.maximum(degrees * (degrees - 1), 1), degrees.astype(int)


def apart(one, two):
    """Return the largest distance of two distribution functions of integers."""
    size = max(one.max(), two.max()) + 1
    return np.abs(np.cumsum(np.bincount(one, minlength=size) / len(one)
                            - np.bincount(two, minlength=size) / len(two))).max()


def heavy(n, seed=0):
    return np.minimum((np.random.default_rng(seed).pareto(1.8, n) * 3 + 1).astype(int), n // 4)


@pytest.mark.parametrize("clustering", [0, 0.3, 1, [0, 0, 0.9, 0.5, 0.1]])
def test_bter_meets_degrees_and_is_never_above_them(clustering):
    degrees = heavy(800)
    found = np.diff(bter(degrees, clustering, random_state=0).indptr)
    assert (found <= degrees).all()
    assert degrees.sum() - found.sum() <= 1  # (an odd sum cannot be met)


@pytest.mark.parametrize("clustering", [0.1, 0.5, 0.9])
def test_bter_meets_the_clustering_of_blocks(clustering):
    """Blocks of nodes of one degree have it exactly on average; random pairs between blocks add hardly any."""
    found, _ = local_clustering(bter([10] * 550, clustering, random_state=0))
    assert abs(found.mean() - clustering) < 0.02  # (550 nodes)
    curve, _ = local_clustering(bter([10] * 550, [1.0] * 10 + [clustering], random_state=0))
    assert abs(curve.mean() - found.mean()) < 0.02  # (entry 10 is about degree 10, and not one beside it)


@pytest.mark.parametrize("degrees", [[0], [0, 0], [1, 1], [3] * 4, [6] * 7, [1, 0, 2, 1], [1] * 7, [5, 1, 1, 1, 1, 1]])
@pytest.mark.parametrize("clustering", [0, 0.5, 1])
def test_small_and_complete_graphs(degrees, clustering):
    found = np.diff(bter(degrees, clustering, random_state=1).indptr)
    assert (found <= degrees).all()
    assert sum(degrees) - found.sum() <= 1


@pytest.mark.parametrize("degrees", [[], [1.0, 1.0], [-1, 0], [3, 1, 1], [[1, 1]], "11", None])
def test_what_are_no_degrees(degrees):
    with pytest.raises(ValueError, match="degrees"):
        bter(degrees, 0.5)


@pytest.mark.parametrize("chances", [[0.3, 0.85], [0.95, 0.5], [0.0, 1.0]])
def test_pairs_of_blocks_are_joined_independently(chances):
    """All graphs of a block of three nodes have the probability of independent pairs, in two blocks side by side."""
    starts, counts = np.array([0, 3, 6]), np.zeros((2, 8))
    for seed in range(600):
        i, j = pairs_in_blocks(starts, np.array(chances), np.random.default_rng(seed))
        assert (i < j).all()
        assert (i // 3 == j // 3).all()
        for block in range(2):
            own = i // 3 == block
            counts[block, int((1 << (i[own] % 3 + j[own] % 3 - 1)).sum())] += 1
    for own, chance in zip(counts, chances):
        law = np.array([chance ** k.bit_count() * (1 - chance) ** (3 - k.bit_count()) for k in range(8)])
        assert own[law == 0].sum() == 0
        assert len(law[law > 0]) == 1 or stats.chisquare(own[law > 0], 600 * law[law > 0]).pvalue > 1e-5


def test_degrees_from_noisy_degrees_are_closer_than_clipped_ones():
    for n, epsilon in ((600, 1.0), (4000, 0.5)):  # (by a matrix, and by recursion)
        degrees, rng = heavy(n), np.random.default_rng(1)
        noisy = degrees + rng.geometric(1 - math.exp(-epsilon), n) - rng.geometric(1 - math.exp(-epsilon), n)
        found, clipped = likely_degrees(noisy, epsilon, n - 1), np.clip(noisy, 0, n - 1)
        far = [apart(degrees, one) for one in (found, clipped)]
        assert far[0] < 0.7 * far[1]
        assert abs(found.sum() / degrees.sum() - 1) < 0.03
        assert (found[np.argsort(noisy, kind="stable")] == np.sort(found)).all()
    for noisy in ([-5, -3, -4], [9, 9, 9], [0, 0, 0], [-100, 100, 3], [2**60, -(2**60), 0]):
        found = likely_degrees(np.array(noisy), 1.0, 2)
        assert found.min() >= 0
        assert found.max() <= 2
        assert len(found) == 3


def test_the_recursion_is_the_matrix(monkeypatch):
    rng, rate = np.random.default_rng(0), 0.3
    wanted = noise_law(rate, 30, 7, 20)
    monkeypatch.setattr("dpestim.graph.generators.degrees._SMALL", 0)
    other = noise_law(rate, 30, 7, 20)
    for size, back in ((20, False), (30, True)):
        values = rng.random(size)
        assert np.allclose(wanted(values, back=back), other(values, back=back))


@pytest.mark.parametrize("density", [0.02, 0.6])
def test_rnl_draws_pairs_with_what_bayes_leaves_of_them(density):
    """Over many graphs of one fit, pairs with and without a reported 1 are joined as often as Bayes' rule says."""
    n, rng = 24, np.random.default_rng(0)
    graph = np.triu(rng.random((n, n)) < density, 1).astype(np.uint8)
    est = RNLGenerator(2.0, random_state=3).fit(graph | graph.T)
    assert est.n_edges_ > 0
    times, counts = 800, np.zeros((n, n))
    rng = np.random.default_rng(1)
    for _ in range(times):
        i, j = est._draw(rng)
        counts[i, j] += 1
    codes = np.array([i * n + j for i, j in combinations(range(n), 2)])
    _, silent, loud = _chances(est._rate * est._weights[codes // n] * est._weights[codes % n], float(est.bit_law_.q))
    law = np.where(np.isin(codes, est._reported), loud, silent)
    errors = (counts.ravel()[codes] - times * law) / np.sqrt(times * law * (1 - law) + 1e-9)
    assert np.abs(errors).max() < 5.5
    assert 0.8 < errors.std() < 1.2


def test_rnl_has_the_right_density_and_reports_do_not():
    graph = bter(heavy(500), 0.3, random_state=0)
    for epsilon, off in ((1.0, 0.5), (5.0, 0.05)):
        fits = [RNLGenerator(epsilon, random_state=seed).fit(graph) for seed in range(4)]
        edges = np.mean([est.sample(random_state=0).nnz for est in fits]) / graph.nnz
        assert abs(edges - 1) < off  # (three standard errors of the estimated number of edges)
        assert len(fits[0]._reported) > (10 if epsilon == 1 else 1.5) * graph.nnz / 2
        assert abs(np.mean([est.sample(0).nnz / 2 / est.n_edges_ for est in fits]) - 1) < 0.06
    for matrix in (np.zeros((40, 40)), 1 - np.eye(40)):
        found = RNLGenerator(3.0, random_state=0).fit(matrix).sample(0).nnz
        assert abs(found - matrix.sum()) < 60


def planted(n=160, seed=0):
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    upper = np.triu(rng.random((n, n)) < np.where(group[:, None] == group, 0.4, 0.02), 1)
    return (upper | upper.T).astype(np.uint8), group


def test_ldpgen_finds_groups_where_noise_lets_it_and_draws_their_edges():
    graph, group = planted()
    est = LDPGenGenerator(20.0, random_state=0).fit(graph)
    same = np.equal.outer(est.groups_, est.groups_)
    assert same[np.not_equal.outer(group, group)].mean() < 0.06  # (half of the pairs by chance)
    drawn = est.sample(random_state=0).toarray()
    across = np.not_equal.outer(group, group)
    assert abs(drawn.sum() / graph.sum() - 1) < 0.03
    assert drawn[across].sum() < 0.1 * drawn.sum()  # (5 % in truth, and 50 % without groups)
    far = LDPGenGenerator(0.1, random_state=0).fit(graph)
    assert len(np.unique(far.groups_)) < 4  # (noise pays for no more groups)


def test_rounds_of_users_are_the_fit_and_each_pays_its_part():
    graph, _ = planted(60)
    for ledger in (Ledger(2, neighbours="list"), Ledger(4, neighbours="edge")):
        est = LDPGenGenerator(2.0, first_fraction=0.25, ledger=ledger, random_state=0)
        first = est.privatize(graph)
        assert float(ledger.spent().epsilon) == 0.5 * (1 + (ledger.neighbours == "edge"))
        groups = est.find_groups(first)
        second = est.privatize(graph, groups=groups)
        assert ledger.remaining().epsilon == 0  # (a relationship, which two users report, costs twice)
        est.aggregate(second, groups)
        wanted = LDPGenGenerator(2.0, first_fraction=0.25, random_state=0).fit(graph)
        assert np.array_equal(est.groups_, wanted.groups_)
        assert np.array_equal(est.degrees_, wanted.degrees_)
        assert est.privacy_ == wanted.privacy_
    rows = LDPGenGenerator(2.0).privatize(graph[[3, 5]], users=[3, 5])
    assert rows.shape == (2, 10)


def test_rounds_have_noise_of_their_own(monkeypatch):
    """A fit, and users who report in both rounds by one seed, draw other noise in the second round."""
    graph, seen = planted(60)[0], []
    est = LDPGenGenerator(2.0, first_groups=1, random_state=0)
    assert not np.array_equal(est.privatize(graph), est.privatize(graph, groups=np.zeros(60, int)))
    monkeypatch.setattr(est, "_grouped", lambda reports: seen.append(reports) or np.zeros(60, np.int64))
    monkeypatch.setattr(est, "_modelled", lambda reports, groups: seen.append(reports) or {})
    est.fit(graph)
    assert seen[0].shape == seen[1].shape
    assert not np.array_equal(*seen)


@pytest.mark.parametrize("call", [
    lambda est, graph: est.aggregate(est.privatize(graph), np.zeros(60, int)),
    lambda est, graph: est.aggregate(est.privatize(graph, groups=np.zeros(60, int)), np.zeros(59, int)),
    lambda est, graph: est.find_groups(est.privatize(graph)[:, :-1]),
    lambda est, graph: est.find_groups(est.privatize(graph).astype(float)),
    lambda est, graph: est.privatize(graph, groups=np.full(60, 60)),
    lambda est, graph: est.privatize(graph, groups=np.zeros(60)),
    lambda est, graph: est.privatize(graph[:2], users=[1, 0]),
])
def test_rounds_refuse_what_is_of_another_round(call):
    with pytest.raises(ValueError, match=r"groups|reports|users"):
        call(LDPGenGenerator(2.0, random_state=0), planted(60)[0])


def test_in_strict_mode_one_entry_moves_the_report_of_its_row_alone():
    graph = planted(60)[0].astype(float)
    with config_context(strict=True):
        wanted = LDPGenGenerator(2.0, random_state=0).privatize(graph)
        graph[3, 7] = 1 - graph[3, 7]
        moved = np.abs(LDPGenGenerator(2.0, random_state=0).privatize(graph) - wanted)
    assert moved.sum() == 1
    assert moved[3].sum() == 1


def test_a_relationship_costs_twice_where_two_users_report_it():
    for cls, factor in ((DGGGenerator, 2), (LDPGenGenerator, 2), (RNLGenerator, 1)):
        assert float(cls(1.5).privacy_.to("edge").epsilon) == 1.5 * factor


def test_dgg_knows_degrees_and_assumes_the_clustering():
    graph = bter(np.arange(490) % 7 + 2, 0.5, random_state=0)
    for clustering in (0.0, 0.6):
        drawn = DGGGenerator(4.0, clustering=clustering, random_state=0).fit(graph).sample(random_state=0)
        found, degrees = local_clustering(drawn)
        assert apart(degrees, np.diff(graph.indptr)) < 0.05
        assert abs(found[degrees > 3].mean() - clustering) < 0.1


def test_loops_and_repeated_edges_are_left_out():
    ends = np.array([0, 1, 2, 2] + [3] * 256)
    graph = joined(ends, np.array([1, 0, 2, 0] + [1] * 256), 5).toarray()
    assert graph.tolist() == [[0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0] * 5]


def test_degrees_of_any_noise_take_little_memory(monkeypatch):
    monkeypatch.setattr(degrees_of, "_ROUNDS", 2)  # (the first has all arrays that the others have)
    tracemalloc.start()
    degrees = likely_degrees(np.array([-(10**15), 3, 10**15]), 1e-12, 5)
    assert tracemalloc.get_traced_memory()[1] < 2**28
    tracemalloc.stop()
    assert degrees.min() >= 0
    assert degrees.max() <= 5


@pytest.mark.parametrize("cls", [DGGGenerator, LDPGenGenerator, RNLGenerator])
def test_users_who_share_a_seed_have_noise_of_their_own(cls):
    """Users who report apart send what they send together: no two of them have the noise of one place."""
    graph = planted(12)[0]
    graph = np.asarray(graph.todense() if hasattr(graph, "todense") else graph)
    whole = cls(1.0, random_state=3).privatize(graph)
    for users in ([0, 1, 2], [5], [3, 9, 11]):
        part = cls(1.0, random_state=3).privatize(graph[users], users=np.array(users))
        wanted = whole[users]
        assert (part != wanted).sum() == 0
