"""Intervals for shares of bins: as likely to cover next to zero as elsewhere, and refused where they would not hold."""

import numpy as np
import pytest

from benchmarks.distributions import SHAPES, clients
from dpestim.exceptions import NoIntervalError
from dpestim.local import DistributionEstimator, LaplaceTransformer, PersonalizedEstimator, PMTransformer
from dpestim.local.estimates.intervals import unified
from dpestim.local.interval_ends import ends

Z = 1.959963984540054
#: Trials, and the deviation of their average that chance exceeds once in a million.
TRIALS = 100_000
CHANCE = 4.9 * np.sqrt(0.95 * 0.05 / TRIALS)


def covered(truth, ends):
    return ((ends[:, 0] <= truth + 1e-12) & (truth - 1e-12 <= ends[:, 1])).mean()


@pytest.mark.parametrize("truth", [0.0, 0.001, 0.005, 0.0164, 0.03, 0.5, 0.97, 0.999, 1.0])
def test_unified_intervals_have_their_level_at_every_truth(truth):
    estimate = np.random.default_rng(0).normal(truth, 0.01, TRIALS)
    error = np.full(TRIALS, 0.01)
    assert abs(covered(truth, unified(estimate, error, Z)) - 0.95) < CHANCE
    # those that are only cut at the bounds do not: they cover a truth there in 97.5 % of cases
    cut = np.clip(np.stack([estimate - Z * error, estimate + Z * error], axis=1), 0, 1)
    assert (abs(covered(truth, cut) - 0.95) > CHANCE) == (truth in (0, 1))


def intervals(shape, client, n_bins, n=100_000, seed=0):
    draw = SHAPES[shape] if isinstance(shape, str) else shape
    X = np.clip(draw(np.random.default_rng(seed), n), 0, 1)[:, None]
    truth = np.histogram(X, np.linspace(0, 1, n_bins + 1))[0] / n
    return truth, DistributionEstimator(client).fit(X).confidence_interval(n_bins=n_bins)[0]


@pytest.mark.ci
@pytest.mark.parametrize("n_bins", [16, 64])
def test_intervals_hold_for_large_epsilon(n_bins):
    shapes = ["bell", "skewed", "two humps", "96 % at 0", "uniform"]
    found = [covered(*intervals(shape, clients(4.0, seed)[name], n_bins, 50_000, seed))
             for seed, shape in enumerate(shapes) for name in ("PM", "SW")]
    assert 0.9 <= np.mean(found) <= 0.99  # of 160 and 640 bins, which depend on each other


def test_values_on_edges_are_refused_and_those_between_are_not():
    def whole(rng, n):
        return np.rint(rng.normal(40, 14, n)) / 100

    def tens(rng, n):  # heaped on edges of 20 bins
        return rng.choice([0.2, 0.3, 0.4, 0.5, 0.6], n)

    for shape, n_bins in ((whole, 50), (tens, 20)):
        with pytest.raises(ValueError, match="n_bins must put values between"):
            intervals(shape, clients(4.0, 0)["SW"], n_bins)
    # edges halfway between values: 101 bins about 0, 1, ..., 100
    def between(rng, n):
        return (np.clip(rng.poisson(40, n), 0, 100) + 0.5) / 101

    truth, ends = intervals(between, clients(4.0, 0)["SW"], 101)
    assert covered(truth, ends) > 0.9


def test_intervals_that_say_nothing_are_refused():
    client = LaplaceTransformer(0.5, bounds=(0, 1), random_state=0)
    with pytest.raises(ValueError, match="n_bins must be smaller"):
        intervals("bell", client, 64, 10_000)
    est = DistributionEstimator(clients(1.0, 0)["PM"]).fit(np.full((3, 1), 0.3))
    with pytest.raises(ValueError, match="n_bins must be smaller"):
        est.confidence_interval(n_bins=5)


@pytest.mark.parametrize("uneven", [0.0, 0.01])
def test_ends_are_as_far_away_as_their_own_errors_say(uneven):
    f, at_zero = np.array([-0.2, 0.0, 1e-9, 0.3, 0.99, 1.2]), np.array([1e-14, 1e-9, 0.5, 1e-3, 2.0, 1e-6])

    def error(p):
        return np.sqrt(at_zero * (1 - p / 2) + uneven * p * (1 - p))

    both = ends(f, 1.96, error)
    np.testing.assert_array_less(both[0], f)
    np.testing.assert_array_less(f, both[1])
    far, own = np.abs(both - f), 1.96 * error(np.clip(both, 0, 1))
    np.testing.assert_allclose(far, own, rtol=1e-12, atol=4 * np.spacing(1.0))
    for moved in (0.999, 1.001):  # and nowhere else near by
        assert (np.abs(far * moved - 1.96 * error(np.clip(f + moved * (both - f), 0, 1))) > 1e-4 * far).all()


@pytest.mark.ci
@pytest.mark.parametrize("share", [0.9, 1.0])
def test_quantiles_of_values_that_many_share_are_within_their_intervals(share):
    held, within = 0.337, []  # just inside an edge of 128 bins
    for seed in range(5):
        x = np.random.default_rng(seed).random(50_000)
        x[: int(share * len(x))] = held
        client = PMTransformer(3.0, bounds=(0.0, 1.0), random_state=seed)
        q = [0.05, 0.1, 0.5]
        low, high = DistributionEstimator(client).fit(x[:, None]).quantile_interval(q)[:, 0].T
        truth = np.quantile(x, q, method="inverted_cdf")
        within.append((low <= truth) & (truth <= high))
        assert high[2] - low[2] < 4 / 128
    # each covers 95 % or more: 2 misses of 5 and more have a probability of 2.3 %
    assert (np.sum(within, axis=0) > 3).all()


@pytest.mark.ci
def test_bins_by_default_are_as_many_as_reports_have_intervals_for():
    sizes, covers = {}, []
    for epsilon, n in ((0.5, 10_000), (1.0, 10_000), (1.0, 50_000), (4.0, 50_000)):
        for seed, shape in enumerate(("bell", "skewed", "uniform")):
            x = np.clip(SHAPES[shape](np.random.default_rng(seed), n), 0, 1)
            found = DistributionEstimator(clients(epsilon, seed)["PM"]).fit(x[:, None]).confidence_interval()[0]
            truth = np.histogram(x, np.linspace(0, 1, len(found) + 1))[0] / n
            covers.append(covered(truth, found))
            sizes.setdefault((epsilon, n), set()).add(len(found))
    assert all(len(each) == 1 for each in sizes.values())  # public numbers choose, and no report
    assert [min(each) for each in sizes.values()] == [2, 8, 32, 256]
    assert 0.88 < np.mean(covers) < 1
    few = DistributionEstimator(clients(4.0, 0)["PM"], n_bins=5).fit(x[:, None])
    assert len(few.confidence_interval()[0]) == 5  # no more than the distribution has


@pytest.mark.ci
def test_groups_have_as_many_bins_by_default_as_all_of_them_have_intervals_for():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.repeat([0, 1], [4000, 30_000]), rng.random(34_000)])
    base = DistributionEstimator(PMTransformer(1.0, bounds=(0.0, 1.0), random_state=0))
    est = PersonalizedEstimator(base, {0: {}, 1: {}}).fit(X)
    alone = [len(each.confidence_interval()[0]) for each in est.estimators_.values()]
    assert alone[0] < alone[1]
    assert len(est.confidence_interval()[0]) == alone[0]


@pytest.mark.ci
@pytest.mark.parametrize("n_bins", [2, 3, 8])
def test_few_bins_hold_their_values_wherever_these_are(n_bins):
    def beside(rng, n):  # an edge of three bins
        return np.where(rng.random(n) < 0.6, 0.337, rng.random(n))

    def on(rng, n):  # edges, or far from them
        return rng.choice([0.25, 0.5, 0.625, 0.9], n)

    found = [covered(*intervals(shape, clients(1.0, seed)["PM"], n_bins, 10_000, seed))
             for shape in (beside, on) for seed in range(4)]
    assert np.mean(found) > 0.85


@pytest.mark.ci
def test_bins_of_values_that_all_are_equal_may_have_all():
    full = []
    for seed in range(6):
        truth, ends = intervals(lambda rng, n: np.full(n, 0.55), clients(4.0, seed)["PM"], 8, 20_000, seed)
        full.append(ends[truth == 1, 1] == 1)
    # each covers 95 %; with one degree of freedom no more than a third do
    assert np.sum(full) >= 5


def test_public_numbers_refuse_few_bins():
    # of a bell half is on either side, and some reports tell it more narrowly than others
    for seed in range(4):
        intervals("bell", clients(1.0, seed)["PM"], 2, 2000, seed)
        with pytest.raises(NoIntervalError, match="n_bins must be smaller"):
            intervals("bell", clients(0.5, seed)["PM"], 4, 2000, seed)


@pytest.mark.ci
@pytest.mark.parametrize("shape", ["bell", "96 % at 0", "whole percents"])
def test_quantiles_have_narrow_intervals(shape):
    q, within, widths = [0.05, 0.25, 0.5, 0.75, 0.95], [], []
    for seed in range(3):
        x = np.clip(SHAPES[shape](np.random.default_rng(seed), 50_000), 0, 1)[:, None]
        low, high = DistributionEstimator(clients(1.0, seed)["PM"]).fit(x).quantile_interval(q)[:, 0].T
        truth = np.quantile(x, q, method="inverted_cdf")
        within.append((low <= truth) & (truth <= high))
        widths.append(high - low)
    assert np.mean(within) > 0.85
    assert np.mean(widths) < 0.14  # (cumulative shares of 8 to 128 bins: .2 to .25)


def test_edges_on_round_numbers_have_wider_intervals():
    rng, n = np.random.default_rng(0), 50_000
    heights, widths, found = np.rint(rng.normal(172, 9, (n, 1))), {}, []
    for low in (120.0, 119.5, 120.03125):
        est = DistributionEstimator(PMTransformer(3.0, bounds=(low, low + 100), random_state=0)).fit(heights)
        ends = est.confidence_interval(n_bins=20)[0]
        truth = np.histogram(heights, np.linspace(low, low + 100, 21))[0] / n
        found.append(covered(truth, ends))
        widths[low] = np.diff(ends)[truth > 0.05].mean()
    assert widths[119.5] < 0.8 * widths[120.0]  # halfway
    assert widths[120.03125] < 0.8 * widths[120.0]  # no round numbers: nothing is allowed for
    assert min(found[:2]) >= 0.9
