"""Patterns from reports on neighbour lists: exact means and variances, rounds, ledgers, odd graphs, what is found."""

import importlib.util
import math
import pickle
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

from dpestim.accounting import Ledger
from dpestim.exact_reals import BitStream
from dpestim.exceptions import BudgetExceededError
from dpestim.graph import (
    ClusteringCoefficientEstimator,
    CommunityEstimator,
    KStarEstimator,
    ModularityEstimator,
    TriangleEstimator,
)
from dpestim.graph.lists.clipped import BOUND, CLIPPED, COUNT, NoisyBounds, laplace, noise_of
from dpestim.graph.lists.noisy_graph import NoisyGraph
from dpestim.graph.lists.partition import modularity
from dpestim.graph.lists.reading import Lists
from dpestim.graph.lists.spectral import Debiased
from dpestim.graph.lists.stars import as_subsets, stars_of, subsets, variance_of_list
from dpestim.rng import WordSource

Q = Fraction(2, 7)
D, V = 1 - 2 * Q, Q * (1 - Q) / (1 - 2 * Q) ** 2
VALUES = -Q / D, (1 - Q) / D
LOUD = 80.0


def grouped(n, parts, inside, outside, seed=0):
    groups = np.arange(n) % parts
    chances = np.where(groups[:, None] == groups, inside, outside)
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < chances, 1)
    return (upper | upper.T).astype(np.uint8), groups


def estimators(n):
    """Return one estimator of each kind, for graphs of n nodes."""
    parts = np.arange(n) % 2
    return [TriangleEstimator(), TriangleEstimator(method="two_rounds"), KStarEstimator(), KStarEstimator(method="rnl"),
            ClusteringCoefficientEstimator(), ModularityEstimator(communities=parts),
            ModularityEstimator(communities=parts, method="rnl"), CommunityEstimator()]


def half(upper):
    rows, nodes = np.nonzero(upper)
    return NoisyGraph(np.searchsorted(rows, np.arange(len(upper) + 1)).astype(np.int64), nodes.astype(np.int32))


def test_stars_of_one_list_have_the_mean_and_the_variance_of_all_its_reports():
    slots = 5
    for k, degree in product((2, 3), range(slots + 1)):
        chances = {}
        for flips in product((0, 1), repeat=slots):
            ones = sum(flip ^ (place < degree) for place, flip in enumerate(flips))
            chances[ones] = chances.get(ones, 0) + Q ** sum(flips) * (1 - Q) ** (slots - sum(flips))
        found = {ones: subsets(ones, slots, VALUES, slots) for ones in chances}
        mean = sum(p * found[ones][k] for ones, p in chances.items())
        assert mean == math.comb(degree, k)
        variance = sum(p * found[ones][k] ** 2 for ones, p in chances.items()) - mean**2
        assert variance == variance_of_list(degree, slots, V, k)
        c = as_subsets([variance_of_list(d, slots, V, k) for d in range(slots + 1)])
        assert variance == sum(p * sum(a * b for a, b in zip(c, found[ones])) for ones, p in chances.items())


@pytest.mark.parametrize("k", [2, 3])
def test_stars_of_graphs_and_their_variance_over_all_noisy_graphs(k):
    n = 4
    pairs, graphs, found = list(combinations(range(n), 2)), [], []
    for code in range(1 << len(pairs)):
        graphs.append(np.zeros((n, n), int))
        graphs[-1][tuple(np.array(pairs).T)] = code >> np.arange(len(pairs)) & 1
        noisy = half(graphs[-1])
        found.append(stars_of(noisy, noisy.degrees.astype(object), VALUES, V, k))
    for graph in graphs[::5]:
        apart = [int((graph != other).sum()) for other in graphs]
        chances = [Q**a * (1 - Q) ** (len(pairs) - a) for a in apart]
        mean, spread = (sum(p * one[which] for p, one in zip(chances, found)) for which in (0, 1))
        assert mean == sum(math.comb(int(d), k) for d in (graph + graph.T).sum(0))
        assert spread == sum(p * one[0] ** 2 for p, one in zip(chances, found)) - mean**2


def test_second_rounds_have_the_exact_mean_and_variance_over_all_published_graphs():
    """Without noise and without clipping; clipped lists lose triangles, and never count more than there are."""
    n, est = 4, TriangleEstimator(method="two_rounds")
    q = est.bit_law_.q
    pairs = list(combinations(range(n), 2))
    graphs = []
    for code in range(1 << len(pairs)):
        graphs.append(np.zeros((n, n), int))
        graphs[-1][tuple(np.array(pairs).T)] = code >> np.arange(len(pairs)) & 1
    for upper in graphs[::9]:
        rows, nodes = np.nonzero(upper)
        lists = Lists(np.arange(n), np.searchsorted(rows, np.arange(n + 1)), nodes.astype(np.int32), n)
        for bound in (n, 2):
            mean = square = 0
            for noisy in graphs:
                rows, nodes = np.nonzero(noisy)
                starts = np.searchsorted(rows, np.arange(n + 1)).astype(np.int64)
                est._published = Lists(np.arange(n), starts, nodes.astype(np.int32), n)
                counts, divisor = est._steps(lists, np.full(n, bound))
                value = Fraction(sum(counts), divisor << 16) / (1 - 2 * q)
                chance = math.prod(1 - q if noisy[pair] == upper[pair] else q for pair in pairs)
                mean, square = mean + chance * value, square + chance * value**2
            triangles = sum(int(upper[i, j] & upper[i, k] & upper[j, k]) for i, j, k in combinations(range(n), 3))
            if bound < n:
                assert 0 <= mean <= triangles
                continue
            squares = sum(int(upper[:j, j] @ upper[:j, k]) ** 2 for j, k in pairs)
            assert mean == triangles
            assert square - mean**2 == est.bit_law_.q * est.bit_law_.p / (1 - 2 * q) ** 2 * squares


def test_noise_of_a_user_is_what_the_exact_law_makes_of_the_users_words():
    source = WordSource(0)
    for epsilon, sensitivity in ((1, 1), (Fraction(1, 10), 7 << 16), (40, 1)):
        law = laplace(Fraction(epsilon), sensitivity)
        for user in range(40):
            stream = BitStream(source.reader(), COUNT, user)
            wanted = [law.one(stream) for _ in range(5)]
            assert noise_of(law, source.reader(), COUNT, user, 5) == wanted
            assert noise_of(law, source.reader(), COUNT, user) == wanted[:1]
    assert noise_of(law, source.reader(), BOUND, 3) is not None


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), 1, 30])
def test_margins_are_the_least_that_hold(epsilon):
    bounds = NoisyBounds(Fraction(epsilon))
    assert bounds.law.beyond(bounds.margin + 1) / 2 <= CLIPPED
    assert bounds.margin == 1 or bounds.law.beyond(bounds.margin) / 2 > CLIPPED


def test_rounding_is_unbiased():
    for count, divisor in product(range(-9, 10), (1, 3, 7)):
        assert sum((count + u) // divisor for u in range(divisor)) == count


def test_hardly_any_noise_gives_the_exact_numbers():
    X, groups = grouped(60, 3, 0.5, 0.1)
    A = X.astype(int)
    degrees, edges = A.sum(0), A.sum() / 2
    triangles, wedges = np.trace(A @ A @ A) / 6, (degrees * (degrees - 1)).sum() / 2
    for method in ("one_round", "two_rounds"):
        est = TriangleEstimator(LOUD, method=method, random_state=0).fit(X)
        assert abs(est.triangles_ - triangles) <= 4 * est.standard_error_ + 1e-6
        assert est.standard_error_ < (8 if method == "two_rounds" else 1e-6)
    for method, k in product(("laplace", "rnl"), (2, 4)):
        est = KStarEstimator(LOUD, k=k, method=method, random_state=0).fit(X)
        assert est.stars_ == pytest.approx(sum(math.comb(int(d), k) for d in degrees), rel=1e-3)
    assert ClusteringCoefficientEstimator(LOUD, random_state=0).fit(X).coefficient_ == pytest.approx(
        3 * triangles / wedges)
    wanted = sum(A[np.ix_(groups == c, groups == c)].sum() / 2 / edges - (degrees[groups == c].sum() / 2 / edges) ** 2
                 for c in range(3))
    for method in ("laplace", "rnl"):
        est = ModularityEstimator(LOUD, communities=groups, method=method, random_state=0).fit(X)
        assert est.modularity_ == pytest.approx(wanted)
        assert est.edges_[np.triu_indices(3)].sum() == pytest.approx(edges)


def test_the_error_of_a_modularity_is_that_of_the_first_order():
    edges = np.array([[30.0, 4, 7], [4, 25, 3], [7, 3, 41]])
    variances = np.array([[2.0, 1, 3], [1, 1, 2], [3, 2, 2]]) * 1e-6
    value, error = modularity(edges, variances)
    total = 0
    for a, b in combinations(range(3), 2):
        moved = edges.copy()
        moved[a, b] += 1e-4
        moved[b, a] = moved[a, b]
        total += ((modularity(moved, variances)[0] - value) / 1e-4) ** 2 * variances[a, b]
    for a in range(3):
        moved = edges.copy()
        moved[a, a] += 1e-4
        total += ((modularity(moved, variances)[0] - value) / 1e-4) ** 2 * variances[a, a]
    assert error == pytest.approx(total**0.5, rel=1e-3)
    assert np.isnan(modularity(edges * 0, variances)).all()


@pytest.mark.parametrize("share", [0.0, 1.0])
@pytest.mark.parametrize("n", [2, 3, 9])
def test_tiny_empty_and_complete_graphs_have_estimates_or_none(n, share):
    X = ((np.ones((n, n)) - np.eye(n)) * share).astype(np.uint8)
    for est in estimators(n):
        for seed in range(3):
            est.set_params(random_state=seed).fit(X)
            assert str(est.result_)
            if hasattr(est, "confidence_interval"):
                low, high = est.confidence_interval(0.9)
                assert low <= high
    wide = ClusteringCoefficientEstimator(0.5, random_state=0).fit(np.zeros((20, 20)))
    assert wide.confidence_interval() == (0.0, 1.0)


def test_threads_containers_and_pickles_change_nothing():
    X, _ = grouped(30, 2, 0.5, 0.1)
    kinds = [sparse.csr_array(X), X.astype(bool)]
    if importlib.util.find_spec("networkx"):
        import networkx

        kinds.append(networkx.from_numpy_array(X))
    for est in estimators(30):
        est.set_params(random_state=0, epsilon=4.0)
        wanted = str(est.fit(X).result_)
        assert str(pickle.loads(pickle.dumps(est)).result_) == wanted
        assert str(est.set_params(n_jobs=2).fit(kinds[len(wanted) % len(kinds)]).result_) == wanted


def test_rounds_are_paid_one_by_one_and_a_client_travels():
    X, _ = grouped(40, 2, 0.5, 0.1)
    ledger = Ledger(1.0, neighbours="edge", durability="fast")
    est = TriangleEstimator(1.0, method="two_rounds", bound_fraction=0.2, bits_fraction=0.5, random_state=0)
    est.aggregate(pickle.loads(pickle.dumps(est)).set_params(ledger=ledger).privatize(X))
    assert float(ledger.spent().epsilon) == pytest.approx(0.4)
    with pytest.raises(NotFittedError, match="next_round"):
        est.confidence_interval()
    with pytest.raises(AttributeError, match="next_round"):
        _ = est.noisy_graph_
    client = pickle.loads(pickle.dumps(est.next_round().client())).set_params(ledger=ledger)
    assert (client.noisy_graph_ != client.noisy_graph_.T).nnz == 0
    est.aggregate(client.privatize(X))
    assert ledger.spent().epsilon == 1
    assert est.triangles_ == TriangleEstimator(1.0, method="two_rounds", random_state=0).fit(X).triangles_
    with pytest.raises(BudgetExceededError):
        client.privatize(X)
    with pytest.raises(ValueError, match="two_rounds"):
        TriangleEstimator().next_round()


def test_counts_from_whole_lists_cost_an_edge_twice():
    X, _ = grouped(20, 2, 0.5, 0.1)
    for neighbours, spent in (("edge", 2), ("list", 1)):
        ledger = Ledger(3.0, neighbours=neighbours, durability="fast")
        KStarEstimator(1.0, ledger=ledger).fit(X)
        assert ledger.spent().epsilon == spent


def test_large_stars_never_fail_after_the_charge():
    hub = np.zeros((300, 300), np.uint8)
    hub[0, 1:] = hub[1:, 0] = 1
    est = KStarEstimator(0.01, k=10, random_state=0).fit(hub)
    assert np.isfinite(est.stars_)
    assert est._top < 300
    with pytest.raises(ValueError, match="larger epsilon"):
        KStarEstimator(1e-18).fit(hub)


def test_products_with_the_debiased_matrix_are_those_of_the_dense_one():
    for n, share in ((131, 0.3), (131, 0.01)):
        upper = np.triu(np.random.default_rng(0).random((n, n)) < share, 1)
        matrix = Debiased(half(upper), Q)
        dense = ((upper | upper.T) - float(Q)) / float(D)
        np.fill_diagonal(dense, 0)
        assert (matrix._matrix is None) == (share > 0.1)
        assert np.allclose(matrix.times(np.eye(n)), dense)
        assert np.allclose(matrix.degrees, dense.sum(0))
        values, vectors = matrix.leading(3)
        assert np.allclose(values, np.sort(np.linalg.eigvalsh(dense))[::-1][:3], rtol=1e-3)
        assert np.allclose(dense @ vectors, vectors * values, atol=0.05 * values[0])


def test_communities_above_noise_are_found_and_none_where_there_are_none():
    X, groups = grouped(240, 3, 0.5, 0.05)
    found = CommunityEstimator(1.0, random_state=0).fit(X)
    assert found.n_communities_ == 3
    assert adjusted_rand_score(groups, found.labels_) > 0.95
    assert np.all(np.diff(np.bincount(found.labels_)) <= 0)
    for seed in range(3):
        alone = CommunityEstimator(0.3, random_state=seed).fit(X)
        assert alone.n_communities_ <= 2  # (groups are below noise)
        assert CommunityEstimator(2.0, random_state=seed).fit(grouped(240, 1, 0.2, 0.2, seed)[0]).n_communities_ == 1
    assert CommunityEstimator(1.0, n_communities=3, random_state=0).fit(X).n_communities_ == 3
    with pytest.raises(ValueError, match="n_communities"):
        CommunityEstimator(n_communities=9).fit(X[:5, :5])


@pytest.mark.ci
def test_intervals_of_a_graph_with_heavy_tails_hold_about_as_often_as_they_say():
    weights = np.random.default_rng(1).pareto(1.5, 40) + 0.3
    chances = np.minimum(0.2 * np.outer(weights, weights), 1)
    upper = np.triu(np.random.default_rng(2).random((40, 40)) < chances, 1)
    X = (upper | upper.T).astype(np.uint8)
    A = X.astype(int)
    degrees = A.sum(0)
    truth = {"triangles_": np.trace(A @ A @ A) / 6, "stars_": (degrees * (degrees - 1)).sum() / 2}
    truth["coefficient_"] = 3 * truth["triangles_"] / truth["stars_"]
    for est in estimators(40)[:5]:
        held = 0
        for seed in range(15):
            low, high = est.set_params(epsilon=2.0, random_state=seed).fit(X).confidence_interval(0.9)
            held += low <= truth[est._number] <= high
        assert held >= 9  # (binomial: below with a probability of 3e-4)
