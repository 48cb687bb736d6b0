"""AdaSSP: sensitivities by brute force, a smallest eigenvalue that is proven, the published noise, and its use."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr
from sklearn.linear_model import LinearRegression, Ridge

from dpestim.audit import Density, hockey_stick
from dpestim.datasets import load_yrbss
from dpestim.linear_model import DPLinearRegression, DPRidge
from dpestim.linear_model import adassp as adassp
from dpestim.statistics.row_moments import REACH, row_map, summary_of

RNG = np.random.default_rng


def plan_of(d, fit_intercept, replaces, epsilon=1):
    rows = row_map((-1, 1), None, (-1, 1), fit_intercept, d)
    return rows, adassp.AdaptiveRelease(rows, Fraction(epsilon), Fraction(1, 10**5), replaces)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("replaces", [True, False])
def test_no_pair_of_data_sets_exceeds_the_sensitivities_which_are_nearly_met(d, fit_intercept, replaces):
    rows, plan = plan_of(d, fit_intercept, replaces)
    rng = RNG(d)
    base = rng.uniform(-1, 1, (4, d)) * 0.3, rng.uniform(-1, 1, 4)
    places = [np.ones(d), -np.ones(d), np.eye(d)[0], np.r_[np.ones(d - 1), -1.0], np.zeros(d), rng.uniform(-1, 1, d)]

    def released(X, y):
        summary = summary_of(rows, X, y, (None, rows))
        weights = plan.weights.entries(d).tolist()
        least = adassp.least_eigenvalue(plan.matrix(summary), plan._norm >> 11)
        return [t * w for t, w in zip(summary.totals, weights)] + [least * plan._least]

    points = [released(np.r_[base[0], [x]], np.r_[base[1], y]) for x in places for y in (1.0, -1.0, 0.0)]
    others = points if replaces else [released(*base)]
    moves = [[a - b for a, b in zip(p, q)] for p in points for q in others]
    l1, l2 = plan._release.most
    assert max(sum(map(abs, move)) for move in moves) <= l1
    assert 0.4 * l2 < max(sum(a * a for a in move) for move in moves) <= l2


@pytest.mark.parametrize("rank", [1, 4, 6])
def test_the_smallest_eigenvalue_is_proven_or_found_in_integers(rank):
    rng = RNG(rank)
    X = rng.integers(-REACH, REACH, (40, rank)) @ rng.integers(-3, 4, (rank, 6))
    A = X.astype(object).T @ X.astype(object)
    off = 10**6
    exact = adassp._bisected(A, 1)
    assert adassp._is_positive(A - (exact - 2) * np.eye(6, dtype=object)) or exact < 2
    assert not adassp._is_positive(A - (exact + 2) * np.eye(6, dtype=object))
    assert abs(adassp.least_eigenvalue(A, off) - exact) <= off
    values, V = np.linalg.eigh(A.astype(float))
    far = adassp._distance(A.astype(float), values, V)
    assert abs(values[0] - exact) <= far + 1
    assert far < 1e-9 * values[-1]
    # wrong vectors, and wrong values, prove nothing
    assert adassp._distance(A.astype(float), values, V + 0.3) == math.inf
    assert adassp._distance(A.astype(float), values + 1e9, V) > 1e9
    assert adassp.least_eigenvalue(A, 2) in (exact - 2, exact - 1, exact, exact + 1, exact + 2)  # by bisection


def test_the_published_noise_is_too_small_and_this_is_not():
    delta = 1e-5

    def spent(epsilon, sigma):  # of one third, by the hockey-stick divergence of two normal densities
        normal = Density(lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi), breakpoints=(-6, 0, 6))
        return float(hockey_stick(normal, normal.moved(1 / sigma), epsilon / 3))

    def published(epsilon):
        return math.sqrt(math.log(6 / delta)) / (epsilon / 3)

    assert spent(0.93, published(0.93)) < delta / 3 < spent(1.0, published(1.0))
    assert spent(3.0, published(3.0)) > 4 * delta / 3
    for epsilon in (0.1, 1, 3, 8):
        _, plan = plan_of(3, True, True, epsilon)
        law, moved = plan.law, math.sqrt(plan._release.most[1]) / plan._release._noise.unit
        a = moved / law.sigma
        assert ndtr(a / 2 - epsilon / a) - math.exp(epsilon) * ndtr(-a / 2 - epsilon / a) <= delta
        each = plan._release.deviation * REACH**2 / plan._norm  # noise of a square, for a row of norm 1
        if epsilon > 1:  # one noise for all three costs less than thirds of epsilon and delta
            assert each < 1.5 * math.sqrt(2) * published(epsilon)


@pytest.mark.parametrize("neighbours", ["substitution", "add_remove"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_much_noise_it_is_regression(neighbours, fit_intercept):
    rng = RNG(0)
    X = rng.uniform(-1, 1, (20_000, 3))
    y = X @ [1, -0.5, 0.2] + 0.3 + 0.1 * rng.standard_normal(len(X))
    params = {"delta": 1e-5, "method": "adassp", "bounds": (-1, 1), "target_bounds": (-3, 3), "random_state": 0,
              "neighbours": neighbours, "fit_intercept": fit_intercept}
    model = DPLinearRegression(80.0, **params).fit(X, y)
    assert_allclose(model.coef_, LinearRegression(fit_intercept=fit_intercept).fit(X, y).coef_, atol=5e-3)
    assert model.privacy_.concentrated is not None
    ridge = Ridge(5000.0, fit_intercept=fit_intercept).fit(X, y)
    assert_allclose(DPRidge(80.0, alpha=5000.0, **params).fit(X, y).coef_, ridge.coef_, atol=5e-3)
    with pytest.raises(ValueError, match="standard errors"):
        model.confidence_interval()
    with pytest.raises(ValueError, match="delta"):
        DPRidge(1.0, **params | {"delta": 0.0}).fit(X, y)
    with pytest.raises(ValueError, match="method"):
        DPRidge(1.0, **params | {"method": "functional"}).fit(X, y)


def test_it_explains_weights_but_less_than_the_default():
    data = load_yrbss().data
    X = np.column_stack([data[:, 0], data[:, 1] == "male", data[:, 3]]).astype(float)
    y = data[:, 4].astype(float)
    scores = {method: [np.median([
        DPLinearRegression(epsilon, delta=1e-5, method=method, bounds=([12, 0, 1.2], [18, 1, 2.2]),
                           target_bounds=(25, 185), random_state=seed).fit(X, y).score(X, y) for seed in range(9)])
        for epsilon in (0.1, 0.5, 2.0)] for method in ("moments", "adassp")}
    assert scores["adassp"] == sorted(scores["adassp"])
    assert scores["adassp"][-1] > 0.27
    assert scores["adassp"][0] < scores["moments"][0]
    assert scores["adassp"][1] < scores["moments"][1]
