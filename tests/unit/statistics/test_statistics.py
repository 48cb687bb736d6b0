"""Statistics: sensitivities on small data, exact summaries, intervals that hold, what is charged."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from dpestim.rng import WordSource
from dpestim.statistics import (
    Correlation,
    Count,
    Covariance,
    Histogram,
    Mean,
    Quantile,
    StandardDeviation,
    Sum,
    Variance,
)
from dpestim.testing.tools import differs_each_time

BOUNDED = [Sum, Mean, Variance, StandardDeviation, Covariance, Correlation]
BOTH = ["substitution", "add_remove"]


def weighted(estimator, rows):
    """Return the integers to which noise is added, and their L1 and squared L2 sensitivity, from the plan."""
    from dpestim.statistics.calibrated_noise import equal_shares

    est = clone(estimator).summarize(rows)
    numbers, changes = est._numbers(est.summary_)
    weights, l1, l2 = equal_shares(changes)
    return [w * x for w, x in zip(weights, numbers)], l1, l2, changes


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("kind", BOUNDED)
def test_sensitivities_hold_on_all_neighbours_of_small_data_and_are_reached(kind, neighbours):
    bounds, values = (-1.0, 2.0), (-1.0, 0.25, 2.0)
    points = list(itertools.product(values, repeat=2))
    est, rng = kind(1.0, bounds=bounds, neighbours=neighbours), np.random.default_rng(0)
    largest, bound = 0.0, None
    for rows in [np.full((3, 2), -1.0), *rng.choice(values, (3, 3, 2))]:
        base, l1, l2, changes = weighted(est, rows)
        others = [np.r_[rows[:-1], [p]] if neighbours == "substitution" else np.r_[rows, [p]] for p in points]
        for other in others:
            moved = [abs(a - b) for a, b in zip(base, weighted(est, other)[0])]
            assert sum(moved) <= l1
            assert sum(m * m for m in moved) <= l2
            largest = max(largest, *(m / (l1 / len(changes)) for m in moved))
        bound = l1
    assert bound
    assert largest > 0.99  # each share is used by some neighbours


def test_the_noise_is_what_the_sensitivity_asks_for():
    x = np.resize([0.0, 2.0], 5000)
    for kind, moved in ((Sum, 4.0), (Mean, 4.0 / 5000), (Variance, 16.0 * 4999 / 5000**2)):
        error = kind(0.5, bounds=(-1, 3)).fit(x).result_.standard_error
        assert error == pytest.approx(math.sqrt(2) * moved / 0.5, rel=1e-3)
    # around a centre far from 0, one more or less costs the largest absolute value (not the range)
    error = Sum(1.0, bounds=(50, 60), neighbours="add_remove").fit(x + 54).result_.standard_error
    assert error == pytest.approx(math.sqrt(2) * 60, rel=1e-3)
    many = np.random.default_rng(0).choice([-1.0, 3.0], (4000, 95))  # 4,560 numbers, of up to 66 bits each
    result = Covariance(80.0, bounds=(-1, 3)).fit(many).result_
    assert result.standard_error[0, 1] == pytest.approx(math.sqrt(2) * 4560 * 16.0 * 3999 / 4000**2 / 80, rel=1e-2)
    assert (np.abs(result.value - np.cov(many.T, bias=True)) < 12 * result.standard_error).mean() > 0.99
    both = Mean(1.0, bounds=(0, [1] * 50), delta=1e-6).fit(np.full((10**4, 50), 0.5)).result_.standard_error
    assert both.max() < Mean(1.0, bounds=(0, [1] * 50)).fit(np.full((10**4, 50), 0.5)).result_.standard_error.min()


@pytest.mark.ci
@pytest.mark.law
@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("kind", [Mean, Variance, StandardDeviation])
def test_standard_errors_are_those_seen_where_values_are_clipped(kind, neighbours):
    """The spread of 300 releases, over the middle of what is stated, of few rows and of equal ones, at epsilon 1."""
    for x in (np.zeros(0), np.array([0.3, 4.0, -1.0, 0.0, 2.0]), np.full(100, 1.3)):
        est = kind(1.0, bounds=(-3, 5), neighbours=neighbours).summarize(x)
        plan = est._plan(est.summary_, est._shares()[1])
        drawn = [plan(WordSource(k)) for k in range(300)]
        values, errors = np.array([own[:2] for own in drawn], float).T
        assert 0.75 < values.std() / np.median(errors) < 1.3


SHAPES = {
    "smooth": lambda rng, n: rng.normal(0, 1, n),
    "skewed": lambda rng, n: rng.exponential(1.0, n),
    "two humps": lambda rng, n: rng.normal(rng.choice([-1.5, 1.5], n), 0.1),
    "point masses": lambda rng, n: rng.choice([0.0, 1.0, 1.0, 2.0], n),
    "outside": lambda rng, n: rng.normal(4, 3, n),
}
#: Releases a setting; at level 0.8, fewer than the 1e-6 quantile of the binomial law refutes the level.
N_RELEASES, LEVEL, ALPHA = 120, 0.8, 1e-6


def covered(estimator, x, *truths, level=LEVEL, n=N_RELEASES):
    """Return how often the interval of an entry held all truths, the least of all entries."""
    est = clone(estimator).set_params(random_state=np.random.default_rng(5)).summarize(x)
    hits = 0
    for _ in range(n):
        low, high = est.release().interval(level)
        assert np.all(np.asarray(low) <= high)
        hits = hits + np.all([(low <= truth + 1e-9) & (truth - 1e-9 <= high) for truth in truths], axis=0)
    return int(np.min(hits))


def fewest(level, n=N_RELEASES):
    return stats.binom.ppf(ALPHA, n, level)


TRUTHS = {
    Sum: lambda x: x.sum(axis=0), Mean: lambda x: x.mean(axis=0), Variance: lambda x: x.var(axis=0),
    StandardDeviation: lambda x: x.std(axis=0), Covariance: lambda x: np.cov(x.T, bias=True),
    Correlation: lambda x: np.corrcoef(x.T),
}


@pytest.mark.ci
@pytest.mark.law
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", [Sum, Mean, StandardDeviation, Correlation])
def test_intervals_hold_the_statistic_of_the_clipped_rows(kind, shape):
    rng = np.random.default_rng(7)
    for neighbours, n in zip(BOTH, (8, 400)):
        x = SHAPES[shape](rng, 2 * n).reshape(n, 2)
        # multiples of the grid's step: what the interval is about is then exact
        x = np.round(np.clip(x, -3, 5) * 2**10) / 2**10
        est = kind(1.0, bounds=(-3, 5), neighbours=neighbours)
        assert covered(est, x, TRUTHS[kind](x)) >= fewest(LEVEL), (neighbours, n)


def test_the_test_of_intervals_rejects_intervals_that_are_too_short():
    x = np.random.default_rng(0).normal(size=100)
    assert covered(Mean(1.0, bounds=(-3, 5)), x, x.mean(), level=0.5) < fewest(LEVEL)


@pytest.mark.ci
@pytest.mark.law
@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("kind", [Mean, Variance])
def test_intervals_hold_for_many_columns_and_few_rows_at_any_epsilon(kind, neighbours):
    rows = np.round(np.random.default_rng(3).normal(0, 1, (5, 30)) * 2**10) / 2**10
    nothing = np.full(30, {Mean: 1.0, Variance: 0.0}[kind])
    for n, epsilon in itertools.product((0, 5), (0.1, 8.0)):
        est, x = kind(epsilon, bounds=(-3, 5), neighbours=neighbours), rows[:n]
        assert covered(est, x, TRUTHS[kind](x) if n else nothing, n=40) >= fewest(LEVEL, 40), (n, epsilon)


@pytest.mark.parametrize("neighbours", BOTH)
def test_scores_of_quantiles_move_as_much_as_is_declared_and_no_more(neighbours):
    from dpestim.statistics.choice import Choice
    from dpestim.statistics.ranks import Cells, Ranked

    rng, unit = np.random.default_rng(0), 1 << 30
    for q in (0, unit // 4, unit // 2, unit):
        worst, est = 0, Quantile(1.0, q=q / unit, bounds=(0, 4), neighbours=neighbours)
        declared = est._laws(q, Fraction(1))[0].sensitivity
        for _ in range(60):
            x = rng.integers(0, 5, rng.integers(1, 6))
            y = np.r_[x[1:], rng.integers(0, 5)] if neighbours == "substitution" else np.r_[x, rng.integers(0, 5)]
            scores = []
            for rows in (x, y):
                cells = Cells(Ranked.of(rows, np.ones(len(rows), np.int64)), 0, 4, 2)
                part = Choice(None, cells, q * len(rows))
                scores.append(np.array([part.code(point) for point in range(5)]))
            worst = max(worst, int(np.abs(scores[0] - scores[1]).max()))
        assert worst <= declared
        assert worst >= declared / 2
        best = np.flatnonzero(scores[0] == 0)  # what is nearest is a quantile, by any definition
        x = np.sort(x)
        assert x[max(0, math.ceil(q * len(x) / unit) - 1)] in best


@pytest.mark.ci
@pytest.mark.law
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_of_quantiles_hold_any_quantile_of_the_clipped_rows(shape):
    rng, q = np.random.default_rng(1), [0.1, 0.5]
    for neighbours, n in zip(BOTH, (9, 900)):
        x = SHAPES[shape](rng, n)
        est = Quantile(4.0, q=q, bounds=(-3, 5), level=LEVEL, neighbours=neighbours)
        truths = [np.quantile(np.clip(x, -3, 5), q, method=method) for method in ("inverted_cdf", "linear")]
        assert covered(est, x, *truths, n=25) >= fewest(LEVEL, 25)
        with pytest.raises(ValueError, match="level must be at most"):
            est.summarize(x).release().interval(0.9)
        assert (np.diff(est.release().value) >= 0).all()


def test_quantiles_are_near():
    x = np.random.default_rng(0).integers(0, 100, 20_000)
    value = Quantile(1.0, q=[0.0, 0.25, 0.5, 1.0], bounds=(0, 100)).fit(x).value_
    assert np.abs(value - [0, 25, 50, 99]).max() < 2
    spread = Quantile(1.0, q=0.5, bounds=([0, -100], [1, 100])).fit(np.c_[x / 100, x])
    assert np.abs(spread.value_ - [0.5, 50]).max() < 2
    assert Quantile(1.0, q=[0.2, 0.8], bounds=(0, 100)).fit(np.c_[x, x, x]).value_.shape == (2, 3)


@pytest.mark.parametrize("params", [{}, {"delta": 1e-6, "neighbours": "add_remove"}])
def test_intervals_of_counts_hold(params):
    x = np.random.default_rng(0).normal(size=300).clip(-3, 3)
    assert covered(Count(1.0, **params), x > 0, (x > 0).sum()) >= fewest(LEVEL)
    edges = [-3.0, -1.0, 0.0, 3.0]
    assert covered(Histogram(1.0, bins=edges, **params), x, np.histogram(x, edges)[0]) >= fewest(LEVEL)


def test_a_fitted_statistic_shows_a_card_and_no_rows():
    est = Mean(1.0, bounds=(0, 1)).fit(np.full(50, 0.123456789))
    assert "epsilon" in est._repr_html_()
    state = pickle.dumps(est)
    assert pickle.loads(state).result_.interval() == est.result_.interval()
    assert not hasattr(est, "summary_")  # what is fitted holds what was released, and no exact sum


def test_private_bounds_and_what_is_in_them_have_new_noise_each_time():
    x = np.random.default_rng(0).normal(1, 1, 2000)
    fits = [Mean(1.0, bounds="private", random_state=seed).fit(x) for seed in (0, 0, 1)]
    values = [fit.value_ for fit in fits]
    assert values[0] == values[1] != values[2]
    assert differs_each_time(lambda: Mean(1.0, bounds="private").fit(x).value_)
