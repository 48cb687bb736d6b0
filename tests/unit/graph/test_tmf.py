"""The top-m filter: its coins against all graphs of four nodes, and its law against noise on all cells."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse, stats

from dpestim.accounting import Ledger
from dpestim.central.exact_bernoulli import exp_bounds
from dpestim.graph import TmFGenerator
from dpestim.graph.generators.cells import Filter, cell_of, ends_of, other_cells
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import WordSource

CELLS = 6  # of four nodes
#: Sets of cells that are drawn, and the significance with which their law is tested.
N, ALPHA = 800, 1e-6


def test_cells_are_pairs_of_nodes():
    j, i = np.tril_indices(60, -1)
    assert np.array_equal(cell_of(i, j), np.arange(math.comb(60, 2)))
    assert np.array_equal(cell_of(j, i), np.arange(math.comb(60, 2)))
    large = np.concatenate([[math.comb(n, 2) - 1, math.comb(n, 2)] for n in (1 << 20, 94_906_267, 1 << 25)])
    low, high = ends_of(large)
    assert (low < high).all()
    assert np.array_equal(cell_of(low, high), large)


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 5.0, 30.0, 80.0])
@pytest.mark.parametrize("rate", [Fraction(1, 1 << 40), Fraction(1, 1000), None])
def test_no_ratio_of_a_filter_exceeds_epsilon(epsilon, rate):
    """Exactly: of cells that pass and of those that fail, in both directions, with bounds of e^x on the wrong side."""
    exact = canonical_epsilon(epsilon)
    rate = Filter.passing(exact, 10**6, 10**5, 10**6).rate if rate is None else rate
    own = Filter(exact, rate)
    fails, least = (exp_bounds(x, 50) for x in (rate, exact))
    edge, free = Fraction(own.threshold, 1 << 64), [1 - fails[1], 1 - fails[0]]
    assert 0 < edge < 1
    close = 1 + Fraction(1, 10**40)
    assert edge * least[0] <= free[1] * close
    assert fails[1] * least[0] <= (1 - edge) * close
    assert free[0] <= edge  # so the other two ratios are at most 1


def test_the_cells_that_pass_follow_independent_coins():
    """Chi-square over all 64 sets; the same test rejects coins of another probability."""
    own, edges = Filter(Fraction(1), Fraction(3, 10)), np.array([1, 4])
    assert np.array_equal(own.draw(edges, CELLS, WordSource(0)), own.draw(edges, CELLS, WordSource(0)))
    seen = np.zeros(1 << CELLS)
    for seed in range(N):
        seen[(1 << own.draw(edges, CELLS, WordSource(seed))).sum()] += 1
    bits = np.arange(1 << CELLS)[:, None] >> np.arange(CELLS) & 1

    def p_value(free, edge):
        chances = np.where(np.isin(np.arange(CELLS), edges), edge, free)
        law = np.where(bits, chances, 1 - chances).prod(1)
        some = law * N >= 5
        observed, expected = np.append(seen[some], seen[~some].sum()), np.append(law[some], law[~some].sum()) * N
        return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1)

    free, edge = own.chances
    assert p_value(free, edge) > ALPHA
    assert p_value(0.8 * free, edge) < ALPHA
    assert p_value(free, 0.8 * edge) < ALPHA


def test_the_largest_noisy_cells_are_a_thinned_randomised_response():
    """Three cells: all noises up to 25. Then 200 cells by counts: the law of how many edges are kept, at any level."""
    a, edges, m = math.exp(-1.0), np.array([1, 0, 0]), 2
    noise = np.arange(-25, 26)
    chances = (1 - a) / (1 + a) * a ** np.abs(noise)
    values = np.stack(np.meshgrid(*[noise + e for e in edges], indexing="ij"), -1).reshape(-1, 3)
    law = np.prod(np.meshgrid(chances, chances, chances, indexing="ij"), 0).ravel()
    wanted = np.zeros(3)  # which cell is left out
    for order in itertools.permutations(range(3)):  # ties at random: whoever is first in a random order
        key = 3 * values + np.array([order[c] for c in range(3)])
        np.add.at(wanted, key.argmin(1), law / 6)
    passed = np.where(edges, 1 / (1 + a), a / (1 + a))
    found = np.zeros(3)
    for bits in itertools.product([0, 1], repeat=3):
        chance, ones = np.where(bits, passed, 1 - passed).prod(), [c for c in range(3) if bits[c]]
        kept = list(itertools.combinations(ones, m)) if len(ones) >= m else [
            (*ones, *more) for more in itertools.combinations(sorted(set(range(3)) - set(ones)), m - len(ones))]
        for cells in kept:
            found[next(c for c in range(3) if c not in cells)] += chance / len(kept)
    assert found == pytest.approx(wanted, abs=1e-9)

    def edges_kept(share, n_cells=4_000, n_edges=12, m=50):
        law, k = np.zeros(n_edges + 1), np.arange(n_edges + 1)
        true = stats.binom.pmf(k, n_edges, share / (1 + a))
        false = stats.binom.pmf(np.arange(n_cells), n_cells - n_edges, share * a / (1 + a))
        for f in np.flatnonzero(false > 1e-12):
            t = k[k + f >= m][:, None]
            law += false[f] * (true[t] * stats.hypergeom.pmf(k, t + f, t, m)).sum(0)
        return law

    few, more = edges_kept(0.14), edges_kept(0.2)
    assert np.abs(few - more).sum() < 1e-9


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 60.0])
def test_a_sample_has_as_many_edges_as_the_noisy_count(epsilon):
    graph = sparse.random_array((80, 80), density=0.05, rng=np.random.default_rng(0)) > 0
    graph = (sparse.triu(graph, 1) + sparse.triu(graph, 1).T).astype(np.uint8)
    est = TmFGenerator(epsilon, random_state=0).fit(graph)
    assert est.sample().nnz == 2 * est.n_edges_
    assert (est.sample(0) != graph).nnz > 0 or epsilon == 60
    low, high = est.confidence_interval()
    assert low <= est.n_edges_ <= high


@pytest.mark.parametrize("matrix", [np.zeros((9, 9)), 1 - np.eye(9), np.zeros((2, 2))])
def test_empty_and_complete_graphs(matrix):
    for epsilon in (0.01, 1.0, 80.0):
        est = TmFGenerator(epsilon, random_state=1).fit(matrix)
        assert est.sample(0).nnz == 2 * est.n_edges_
        low, high = est.confidence_interval()
        assert 0 <= low <= high <= math.comb(len(matrix), 2)


def test_cells_that_fill_up_are_uniform_and_others():
    rng, known = np.random.default_rng(0), np.array([0, 3, 4])
    for n_cells, size in ((8, 3), (60, 3)):
        seen = np.bincount(np.concatenate([other_cells(known, n_cells, size, rng) for _ in range(2_000)]),
                           minlength=n_cells)
        assert not seen[known].any()
        rest = np.delete(seen, known)
        assert stats.chi2.sf(((rest - rest.mean()) ** 2 / rest.mean()).sum(), len(rest) - 1) > ALPHA
    assert sorted(other_cells(known, 5, 9, rng)) == [1, 2]


def test_parameters_are_refused_before_the_charge():
    ledger = Ledger(5, neighbours="edge")
    for wrong in ({"count_fraction": 0}, {"count_fraction": 1}, {"epsilon": 1e-6}, {"epsilon": 0}):
        with pytest.raises(ValueError, match=r"count_fraction|epsilon"):
            TmFGenerator(**{"epsilon": 1.0, **wrong}, ledger=ledger).fit(np.zeros((4, 4)))
    with pytest.raises(ValueError, match="at least 2 nodes"):
        TmFGenerator(ledger=ledger).fit(np.zeros((1, 1)))
    assert ledger.spent().is_nothing


def test_intervals_hold_the_number_of_edges():
    """60 fits at a level of 0.9: by the binomial law 40 or fewer hold with a probability below 1e-5."""
    graph, held = np.triu(np.ones((12, 12)), 1) * (np.arange(12) % 2), 0
    for seed in range(60):
        low, high = TmFGenerator(1.0, random_state=seed).fit(graph + graph.T).confidence_interval(0.9)
        held += low <= graph.sum() <= high
    assert held > 40
