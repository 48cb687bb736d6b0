"""Partitions and quadtrees of places: costs of splits, containers, bounds on memory, intervals, pictures."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.geo import LDPartEstimator, SpatialDensity
from dpestim.geo.partitions import METHODS, box_of, interleaved, path_cost
from dpestim.geo.trees import consistent

REGION = ([48.8, 2.2], [48.92, 2.46])


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal([48.86, 2.34], [0.012, 0.02], (n * 6 // 10, 2)),
                           rng.normal([48.88, 2.40], [0.002, 0.004], (n * 4 // 10, 2))])


def test_the_cost_of_a_path_is_that_of_its_exact_sum():
    for epsilon in (Fraction(1, 20), Fraction(1), Fraction(6)):
        tree = METHODS["privtree"](epsilon, 1)
        a, s = math.exp(-tree.rate), math.exp(-tree.rate * tree.bias)
        exact = 2 * float(tree.rate) + sum(math.log1p(s**i * (1 - a) / (1 + a - s**i)) for i in range(1, 60))
        cost = path_cost(tree.rate, tree.bias)
        assert exact <= float(cost) <= float(epsilon) / 2
        assert cost > epsilon * Fraction(45, 100)  # (and little of the share is left over)


def test_cells_of_a_quadtree_are_ranges_of_interleaved_bits():
    units = np.random.default_rng(0).integers(0, 1 << 16, (200, 2))
    codes = interleaved(*units.T)
    for depth in (1, 5, 16):
        for code, (x, y) in zip((codes >> 2 * (16 - depth)).tolist(), units.tolist()):
            low0, high0, low1, high1 = box_of(depth, code)
            assert low0 <= x < high0
            assert low1 <= y < high1


@pytest.mark.parametrize("method", ["ug", "ag", "privtree"])
def test_counts_follow_the_rows(method):
    X = people(50_000)
    est = SpatialDensity(1.0, bounds=REGION, method=method, random_state=0).fit(X)
    low, high = np.array([48.84, 2.30]), np.array([48.89, 2.42])
    truth = ((low <= X) & (high > X)).all(axis=1).sum()
    ends = est.confidence_interval(low, high, inside="any")
    assert ends[0] <= truth <= ends[1]
    assert abs(est.range(low, high)[0] - truth) < 1_000
    drawn = est.sample(20_000, random_state=0)
    assert abs(((drawn >= low) & (drawn < high)).all(axis=1).mean() - truth / 50_000) < 0.03
    assert est.density([[48.88, 2.40]])[0] > 20 * est.density([[48.81, 2.25]])[0]


def test_intervals_of_cells_cover_their_counts():
    X, held = people(3_000), 0
    for seed in range(60):
        est = SpatialDensity(1.0, bounds=REGION, method="ag", neighbours="add_remove", cells=5, n_rows=3_000,
                             random_state=seed).fit(X)
        low, high = np.array(REGION[0]), np.array(REGION[1])
        low[0], high[0] = low[0] + (high[0] - low[0]) * np.array([13107, 52428]) / 65536  # (edges of the first grid)
        units = est._units(X, *est.bounds_)
        truth = ((units[:, 0] >= 13107) & (units[:, 0] < 52428)).sum()
        ends = est.confidence_interval(low, high, 0.9)
        held += ends[0] <= truth <= ends[1]
    assert 45 <= held <= 60  # (binomial, n = 60: outside with probability 1e-3)


def test_a_ledger_pays_once_and_bad_rows_spend_nothing():
    ledger = Ledger(1)
    est = SpatialDensity(0.5, bounds=REGION, ledger=ledger)
    for bad in ([[48.85, math.nan]], [[1.0, 2.0, 3.0]], [["a", "b"]]):
        with pytest.raises(ValueError):
            est.fit(bad)
    assert ledger.spent().is_nothing
    est.fit(people(100))
    assert ledger.spent().epsilon == Fraction(1, 2)
    with pytest.raises(ValueError, match="bounds must be declared"):
        SpatialDensity(0.5).fit(people(100))


def test_no_rows_and_rows_at_one_place_have_cells_too():
    with config_context(strict=True):
        for method in METHODS:
            for X in (np.array([[math.nan, math.inf]]), np.tile([[48.86, 2.3]], (5_000, 1))):
                est = SpatialDensity(2.0, bounds=REGION, method=method, random_state=0).fit(X)
                assert abs(est.counts_.sum() - len(X)) < 600


def test_estimates_of_levels_agree_and_use_all_of_them():
    nodes = tuple(range(16))
    shares = np.zeros(16)
    shares[5] = 1.0
    levels = [(2, nodes, shares, 1e-4, 100), (3, (20, 21, 22, 23), np.array([0.7, 0.4, -0.1, 0.2]), 1e-4, 100)]
    leaves, counts, variances = consistent(levels, 1000)
    assert len(leaves) == 15 + 4 == len(variances)
    assert counts.sum() == pytest.approx(1000)
    assert counts[-4:].tolist() == pytest.approx([1000 * 0.7 / 1.3, 1000 * 0.4 / 1.3, 0, 1000 * 0.2 / 1.3])


def test_a_quadtree_of_reports_is_near_the_truth_and_finer_where_users_are():
    X = people(60_000)
    est = LDPartEstimator(2.0, bounds=REGION, n_users=60_000, random_state=0).fit(X)
    low, high = [48.84, 2.2675], [48.89, 2.3975]
    truth = ((low <= X) & (high > X)).all(axis=1).sum()
    assert abs(est.range(low, high)[0] - truth) < 5_000
    sizes = est.boxes_[:, 1] - est.boxes_[:, 0]
    assert sizes.max() >= 4 * sizes.min()
    with pytest.raises(ValueError, match="rows"):
        LDPartEstimator(2.0, bounds=REGION, depth=10).fit(X[:3])


def test_intervals_of_quadtrees_of_reports_cover_their_counts():
    """Half of the users are in each of two cells; at epsilon 8 who is asked in a round is most of the error."""
    X, hits = np.repeat([[0.3, 0.3], [0.3, 0.8]], 500, axis=0), []
    for seed in range(30):
        est = LDPartEstimator(8.0, bounds=([0, 0], [1, 1]), units="metres", depth=6, random_state=seed).fit(X)
        low, high = est.confidence_interval([0, 0], [1, 0.5], 0.9)
        hits.append(low <= 500 <= high)
    assert np.mean(hits) >= 0.9


def test_rounds_that_no_user_answers_tell_nothing():
    """Of five users none may be in one of two rounds; rows after a round answer the next one."""
    seen = [LDPartEstimator(2.0, bounds=REGION, depth=3, random_state=seed).fit(people(5)) for seed in range(30)]
    assert any(level[-1] == 0 for est in seen for level in est._levels)
    assert any(est._n_users == 0 for est in seen)
    assert all(est.counts_.sum() == pytest.approx(5) and np.isfinite(est.standard_errors_).all() for est in seen)
    server = LDPartEstimator(2.0, bounds=REGION, depth=4, random_state=0).partial_fit(people(50)).next_round()
    assert server.n_users_ == 50 == pytest.approx(server.counts_.sum())
    with pytest.raises(ValueError, match="not fitted"):
        server.next_round()
    server.partial_fit(people(60))
    assert server.n_users_ == 110 == pytest.approx(server.counts_.sum())


def test_maps_have_a_scale_and_a_label_in_square_kilometres():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for units, bounds in (("degrees", REGION), ("metres", ([0.0, 0.0], [900.0, 500.0]))):
        est = SpatialDensity(2.0, bounds=bounds, units=units, random_state=0)
        display = est.fit(est._test_data(2_000)[0]).plot()
        assert any(text.get_text().endswith("m") for text in display.ax_.texts)
        assert display.figure_.axes[1].get_ylabel() == "rows a square kilometre"
        pyplot.close(display.figure_)
