"""Linear and ridge regression: what is exact, what is private, what is accurate, and its standard errors."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom
from sklearn.linear_model import LinearRegression, Ridge

import dpestim
from dpestim._core import moments as kernel
from dpestim.accounting import Ledger
from dpestim.feature_selection import DPSelectKBest
from dpestim.linear_model import DPLinearRegression, DPRidge, DPTukeyRegression
from dpestim.linear_model.functional import FunctionalLogistic, functional_release
from dpestim.rng import WordSource
from dpestim.statistics.moment_noise import gaussian_weights, laplace_weights
from dpestim.statistics.row_moments import REACH, row_map, summary_of

RNG = np.random.default_rng


def data(n=2000, seed=0, d=3, noise=0.1):
    rng = RNG(seed)
    X = rng.uniform(-1, 1, size=(n, d))
    return X, X @ np.linspace(1, -0.5, d) + 0.3 + noise * rng.standard_normal(n)


def model(epsilon=1.0, cls=DPLinearRegression, **params):
    return cls(epsilon, **{"bounds": (-1, 1), "target_bounds": (-3, 3), "random_state": 0, **params})


def integers(rows, X, y):
    out = np.empty((len(X), rows.n_columns + 2))
    rows.write(np.asarray(X, float), np.asarray(y, float), out)
    return out


# ---------------------------------------------------------------- integers


@pytest.mark.parametrize("bounds", [None, (-1, 1), ([0, -5, 7], [0, 5, 1e6])])
@pytest.mark.parametrize("norm", [None, 0.5, 40.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_no_row_is_longer_than_the_reach(bounds, norm, fit_intercept):
    if bounds is None and norm is None:
        return
    rows = row_map(bounds, norm, (-1, 1), fit_intercept, 3)
    X = RNG(0).normal(size=(400, 3)) * np.logspace(-3, 3, 400)[:, None]
    X = np.r_[X, np.full((2, 3), 1.7e308), np.full((1, 3), -1e200), [[0, 1e308, -1e308]], np.zeros((1, 3))]
    out = integers(rows, X, X[:, 0])
    assert_array_equal(out, np.rint(out))
    exact = [sum(int(v) ** 2 for v in row[:3]) for row in out]
    assert max(exact) <= REACH**2
    assert np.abs(out[:, 4]).max() <= REACH
    assert (out[:, 3] == 1).all()
    if norm is None and bounds is not None:
        assert max(exact) > 0.9 * REACH**2 / 3  # the reach is used


def test_the_kernel_rounds_as_numpy_does_and_refuses_other_shapes():
    rows, out = RNG(0).normal(size=(50, 3)) * [1, 1e-5, 1e300], np.zeros((50, 4))
    centers, factors = np.array([0.5, 0.0, -1.0]), np.array([10.0, 1e7, 3.0])
    kernel.round_rows(rows, centers, factors, 12.0, out)
    assert_array_equal(out[:, :3], np.rint(np.clip((rows - centers) * factors, -12, 12)))
    for bad in ((rows[:4], centers, factors, 12.0, out), (rows, centers[:2], factors, 12.0, out),
                (rows, centers, factors, 2.0**51, out), (rows, centers, factors, -1.0, out)):
        with pytest.raises(ValueError, match="must"):
            kernel.round_rows(*bad)


def test_sums_are_exact_and_merge_in_any_order():
    rows = row_map((-1, 1), 0.9, (-3, 3), True, 3)
    X, y = data(20_000)
    out = integers(rows, X, y).astype(object)
    want = [int((out[:, i] * out[:, j]).sum()) for i in range(5) for j in range(i, 5)]
    assert summary_of(rows, X, y, ()).totals == want
    whole = model(delta=1e-6).summarize(X, y).release()
    first = model(delta=1e-6).summarize(X[:15_000], y[:15_000])
    parts = model(delta=1e-6).summarize(X[15_000:], y[15_000:]).merge(first)
    assert_array_equal(parts.release().coef_, whole.coef_)
    assert not np.array_equal(model(delta=1e-6).fit(X, y).coef_, whole.coef_)  # one seed, two verbs: other noise
    again = whole.coef_.copy()
    assert not np.array_equal(whole.release().coef_, again)  # a second release has noise of its own
    with pytest.raises(ValueError, match="twice"):
        whole.merge(whole)
    with pytest.raises(ValueError, match="parameters"):
        whole.merge(model(delta=1e-6, bounds=(-2, 2)).summarize(X, y))
    with pytest.raises(ValueError, match="parameters"):
        model(delta=1e-6).summarize(X, y).set_params(target_bounds=(0, 1)).release()


# ---------------------------------------------------------------- sensitivities


def vectors(d, reach, rng):
    """Rows that use the norm: corners, single columns, random directions."""
    rows = [np.full(d, 1 / math.sqrt(d)), np.eye(d)[0], -np.full(d, 1 / math.sqrt(d)), np.zeros(d)]
    rows += [v / np.linalg.norm(v) for v in rng.normal(size=(10, d))]
    return [[int(x) for x in np.trunc(row * (reach - d))] for row in rows]


def weighted(weights, row, y):
    z = [*row, 1, y]
    products = [z[i] * z[j] for i in range(len(z)) for j in range(i, len(z))]
    return [a * w for a, w in zip(products, weights.entries(len(row)).tolist())]


@pytest.mark.law
@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_no_pair_of_rows_exceeds_the_sensitivities_which_are_nearly_met(d, fit_intercept):
    rows = [weighted_pair for weighted_pair in vectors(d, REACH, RNG(d))]
    for replaces in (True, False):
        for weights in (gaussian_weights(replaces, fit_intercept), laplace_weights(replaces, fit_intercept, d)):
            points = [weighted(weights, row, y) for row in rows for y in (REACH, -REACH, 0)]
            moved = [[a - b for a, b in zip(p, q)] for p in points for q in points] if replaces else points
            l1 = max(sum(map(abs, move)) for move in moved)
            assert l1 <= weights.l1(d, replaces)
            if weights.l2_squared is None:
                assert l1 > (0.65 if replaces else 0.8) * weights.l1(d, replaces)
            else:
                l2 = max(sum(a * a for a in move) for move in moved)
                assert 0.6 * weights.l2_squared < l2 <= weights.l2_squared


@pytest.mark.parametrize("sensitivity", ["tight", "published"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_functional_sensitivities_hold(sensitivity, fit_intercept):
    d = 4
    rows = row_map((-1, 1), None, (-1, 1), fit_intercept, d)
    moved = {}
    for replaces in (True, False):
        release = functional_release(rows, Fraction(1), sensitivity, replaces)
        most = release._noise.law.sensitivity * release._noise.unit
        corner = [int(v) for v in np.full(d, rows.most)]
        points = [weighted(release.weights, row, y) for row in (corner, [-v for v in corner], [0] * d)
                  for y in (REACH, -REACH)]
        moves = [[a - b for a, b in zip(p, q)] for p in points for q in points] if replaces else points
        moved[replaces] = max(sum(map(abs, move)) for move in moves) / most
        assert moved[replaces] <= 1
    assert moved[False] > 0.99  # tight: equal coordinates meet it


def test_published_functional_sensitivity_is_that_of_the_paper():
    rows = row_map((-1, 1), None, (-1, 1), False, 4)
    release = functional_release(rows, Fraction(1), "published", True)
    scale = math.sqrt(release._noise.variance / 2) / release.weights.square / rows.most**2
    assert scale == pytest.approx(2 * (1 + 2 * 4 + 16), rel=1e-4)
    tight = functional_release(rows, Fraction(1), "tight", True)
    scale = math.sqrt(tight._noise.variance / 2) / tight.weights.square / REACH**2
    assert scale == pytest.approx(2 * (2 * 2 + 4), rel=1e-4)


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("neighbours", ["substitution", "add_remove"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_much_noise_it_is_linear_regression(delta, neighbours, fit_intercept):
    X, y = data(20_000)
    known = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    got = model(80.0, delta=delta, neighbours=neighbours, fit_intercept=fit_intercept).fit(X, y)
    assert_allclose(got.coef_, known.coef_, atol=3e-3)
    assert got.intercept_ == pytest.approx(known.intercept_, abs=3e-3)
    assert got.score(X, y) == pytest.approx(known.score(X, y), abs=1e-3)
    assert (got.privacy_.concentrated is not None)
    assert float(got.privacy_.delta) <= delta


@pytest.mark.parametrize("target", [(0, 1e6), (-2e6, -1e6), (1e6, 1e6 + 4)])
def test_bounds_may_be_zero_or_lopsided(target):
    X, y = data(20_000)
    low, high = target
    X = X * [1, 100, 0] - [0, 5000, 0]
    y = low + (high - low) * np.clip((y + 3) / 6, 0, 1)
    got = model(8.0, delta=1e-6, bounds=([-1, -5100, 0], [1, -4900, 0]), target_bounds=target).fit(X, y)
    known = LinearRegression().fit(X, y)
    assert got.coef_[2] == 0
    assert got.score(X, y) > known.score(X, y) - 0.01
    assert_allclose(got.coef_[:2], known.coef_[:2], rtol=0.1)
    assert ((got.predict(X * 1e9) >= low) & (got.predict(X * 1e9) <= high)).all()


def test_units_change_nothing_but_units():
    X, y = data(3000)
    one = model(1.0, delta=1e-6).fit(X, y)
    # (powers of two: the same floats)
    other = model(1.0, delta=1e-6, bounds=(-1024, 1024), target_bounds=(-0.375, 0.375)).fit(X * 1024, y / 8)
    assert_allclose(other.coef_, one.coef_ / 8192, rtol=1e-12)


def test_norms_and_ridge():
    X, y = data(20_000)
    for params in ({"bounds": None, "data_norm": 2.0}, {"data_norm": 1.8}):
        got = model(80.0, delta=1e-6, **params).fit(X, y)
        assert_allclose(got.coef_, LinearRegression().fit(X, y).coef_, atol=3e-3)
    known = Ridge(5000.0).fit(X, y)
    assert_allclose(model(80.0, DPRidge, alpha=5000.0, delta=1e-6).fit(X, y).coef_, known.coef_, atol=3e-3)
    cut = model(80.0, bounds=None, data_norm=0.5).fit(X, y)
    assert_allclose(cut.predict(X * 100), cut.predict(X * 1e200))  # rows are cut as in fit


def test_one_hot_columns_may_have_a_norm_beside_bounds():
    """Medians of 7 fits: two groups of 10 categories and a number; -1 and 1 for 0 and 1 would be cut to a fifth."""
    scores = {None: [], math.sqrt(3): []}
    for seed in range(7):
        rng = RNG(seed)
        codes, number = rng.integers(0, 10, (3000, 2)), rng.uniform(20, 60, 3000)
        y = codes[:, 0] + 2 * (codes[:, 1] > 5) + number / 20 + rng.normal(0, 0.5, 3000)
        X = np.c_[np.eye(10)[codes[:, 0]], np.eye(10)[codes[:, 1]], number]
        for norm, found in scores.items():
            fit = model(1.0, delta=1e-5, bounds=([0] * 20 + [20], [1] * 20 + [60]), data_norm=norm,
                        target_bounds=(0, 16), random_state=seed).fit(X[:2000], y[:2000])
            found.append(fit.score(X[2000:], y[2000:]))
    plain, short = (np.median(found) for found in scores.values())
    assert short > plain + 0.1
    assert short > 0.7


@pytest.mark.parametrize("sensitivity", ["tight", "published"])
def test_functional(sensitivity):
    X, y = data(20_000)
    got = model(1.0, method="functional", sensitivity=sensitivity).fit(X, y)
    assert got.score(X, y) > 0.9
    with pytest.raises(ValueError, match="standard errors"):
        got.confidence_interval()
    signs = np.sign(y)
    Z = X / 2
    w = FunctionalLogistic(Fraction(20), 3, sensitivity=sensitivity).fit(Z, [signs], WordSource(0))[0]
    known = np.linalg.solve(Z.T @ Z / 4, Z.T @ signs / 2)
    assert_allclose(w, known, rtol=0.15, atol=0.1)


def test_error_falls_with_epsilon_and_small_data_do_not_explode():
    scores = []
    for epsilon in (0.1, 0.5, 2.0, 8.0):
        X, y = data(1500, noise=0.5)
        scores.append(np.median([model(epsilon, random_state=s).fit(X, y).score(X, y) for s in range(9)]))
    assert scores == sorted(scores)
    assert scores[0] > -0.3
    assert scores[-1] > 0.6


# ---------------------------------------------------------------- standard errors

SHAPES = {
    "smooth": lambda r, n: (r.uniform(-1, 1, (n, 2)), r.normal(0, 0.3, n)),
    "skewed": lambda r, n: (r.beta(0.5, 3, (n, 2)) * 2 - 1, r.exponential(0.3, n) - 0.3),
    "heavy": lambda r, n: (np.clip(r.standard_t(3, (n, 2)) / 4, -1, 1), np.clip(r.standard_t(3, n) / 6, -1, 1)),
    "collinear": lambda r, n: ((lambda a: np.c_[a, 0.9 * a + 0.1 * r.uniform(-1, 1, n)])(r.uniform(-1, 1, n)),
                               r.normal(0, 0.3, n)),
    "few": lambda r, n: (r.uniform(-1, 1, (n // 20, 2)), r.normal(0, 0.3, n // 20)),
}
#: Epsilon where the noise is small beside the moments, as first order needs.
EPSILON = {"collinear": 30.0, "few": 12.0, "skewed": 4.0}


def draw(shape, seed):
    X, rest = SHAPES[shape](RNG(seed), 4000)
    return X, X @ [0.8, -0.4] + 0.2 + rest


@pytest.mark.ci
@pytest.mark.law
@pytest.mark.parametrize(("shape", "delta"), [*((shape, 1e-6) for shape in sorted(SHAPES)), ("collinear", 0.0),
                                              ("skewed", 0.0)])
def test_standard_errors_are_those_of_resampled_data_and_noise(shape, delta):
    # 200 fits: the ratio of a right standard error is within 0.85 and 1.15 with probability 0.997
    fits = [model(EPSILON.get(shape, 2.0), delta=delta, random_state=k).fit(*draw(shape, k)) for k in range(200)]
    found = np.sqrt(np.mean(np.square(np.array([f.coef_ for f in fits]) - [0.8, -0.4]), axis=0))  # (with its bias)
    stated = np.sqrt(np.mean([f.standard_errors_**2 for f in fits], axis=0))
    assert_allclose(stated / found, 1, atol=0.17)
    covered = np.mean([(np.abs(f.coef_ - [0.8, -0.4]) <= 1.96 * f.standard_errors_).all() for f in fits])
    if shape != "heavy":  # (what clipping y does is bias)
        assert covered > 0.72
    half = stated / 2  # and a wrong one is rejected
    assert not np.allclose(half / found, 1, atol=0.17)


def test_a_penalty_is_no_residual_and_no_row():
    # n = 60 fits: the ratio of a right standard error is within 0.7 and 1.4 with probability 0.999
    fits = []
    for seed in range(60):
        X = RNG(seed).uniform(-1, 1, (20_000, 2))
        y = 3 * X[:, 0] - X[:, 1] + RNG(seed + 99).normal(0, 0.1, 20_000)
        fits.append(model(20.0, DPRidge, alpha=1000.0, target_bounds=(-4.5, 4.5), random_state=seed).fit(X, y))
    stated = np.sqrt(np.mean([f.standard_errors_**2 for f in fits], axis=0))
    ratio = stated / np.std([f.coef_ for f in fits], axis=0)
    assert (ratio > 0.7).all()
    assert (ratio < 1.4).all()  # counted as residuals, the penalty makes it 2.9


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_where_nothing_stands_out_intervals_say_so(delta):
    for seed in range(10):
        rng = RNG(seed)
        X = np.clip(0.05 * rng.standard_t(2, (2000, 2)), -1, 1)
        y = X @ [2, 1] + rng.normal(0, 0.3, 2000)
        fit = model(1.0, delta=delta, target_bounds=(-4, 4), random_state=seed).fit(X, y)
        assert not fit.identified_.any()
        assert np.isnan(fit.standard_errors_).all()
        with pytest.warns(UserWarning, match="2 of 2 coefficients"):
            assert np.isnan(fit.confidence_interval()).all()


def _uniform(rng, n, d):
    return rng.uniform(-1, 1, (n, d))


def _nearly_alike(rng, n, d):
    X = rng.uniform(-1, 1, (n, d))
    X[:, 1] = 0.9 * X[:, 0] + 0.1 * X[:, 1]
    return X


#: name -> columns, how they are drawn, rows, epsilon, delta, share that is identified: (at least, at most)
DESIGNS = {
    "few of many matter": (20, _uniform, 2000, 8.0, 1e-5, (0.6, 1.0)),
    "pure": (5, _uniform, 2000, 2.0, 0.0, (0.9, 1.0)),
    "nearly alike": (6, _nearly_alike, 2000, 8.0, 1e-5, (0.6, 0.7)),
    "drowned": (20, _uniform, 2000, 2.0, 0.0, (0.0, 0.05)),
    "one": (1, _uniform, 500, 1.0, 1e-5, (0.9, 1.0)),
}


@pytest.mark.ci
@pytest.mark.law
@pytest.mark.filterwarnings("ignore:.*coefficients have no interval")
@pytest.mark.parametrize("cls", [DPLinearRegression, DPRidge])
@pytest.mark.parametrize("design", sorted(DESIGNS))
def test_intervals_hold_for_each_coefficient(design, cls):
    """n = 100 fits: as many misses as are refused have a probability of 1e-4 for each coefficient (1e-3 for all)."""
    d, draw_rows, n, epsilon, delta, (least, most) = DESIGNS[design]
    w, covered, alpha = np.zeros(d), [], 0.0
    w[:2] = [1.0, -0.5][:d]
    target = np.abs(w).sum() + 0.6
    for seed in range(100):
        X = draw_rows(RNG(seed), n, d)
        y = X @ w + RNG(seed + 999).normal(0, 0.2, n)
        params = {"bounds": (-1, 1), "target_bounds": (-target, target), "delta": delta, "random_state": seed}
        if cls is DPRidge:
            params["alpha"] = alpha = 0.05 * n
        fit = cls(epsilon, **params).fit(X, y)
        # (uniform columns have the variance 1/3, whatever is nearly alike has less: what a penalty leaves)
        truth = np.linalg.solve(_covariance(draw_rows, d) * n + alpha * np.eye(d), _covariance(draw_rows, d) @ w * n)
        low, high = fit.confidence_interval().T
        covered.append(np.where(fit.identified_, (low <= truth) & (truth <= high), np.nan))
    covered = np.array(covered)
    told = ~np.isnan(covered)
    if cls is DPLinearRegression:
        assert least <= told.mean() <= most
    n_told = told.sum(axis=0)
    assert ((covered == 0).sum(axis=0) <= binom.isf(1e-4, n_told, 0.05)).all()
    if n_told.sum() > 400:
        assert 0.92 < np.nanmean(covered) < 0.985


@lru_cache
def _covariance(draw_rows, d):
    covariance = np.eye(d) / 3
    if draw_rows is _nearly_alike:
        covariance[0, 1] = covariance[1, 0] = 0.3
        covariance[1, 1] = (0.81 + 0.01) / 3
    return covariance


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_few_rows_are_predicted_by_a_mean_that_noise_does_not_rule(delta):
    """250 rows, five columns, epsilon .1: errors in half ranges of the target; they were .65 and .50."""
    X = RNG(0).uniform(-1, 1, (250, 5))
    y = 1 + 0.05 * X[:, 0] + 0.1 * RNG(1).normal(size=250)
    squares = [
        np.square(model(0.1, delta=delta, target_bounds=(-1, 2), random_state=seed).fit(X, y).predict(X) - y).mean()
        for seed in range(40)
    ]
    assert np.sqrt(np.mean(squares)) / 1.5 < 0.4


def test_known_zeros_have_narrow_intervals():
    X = RNG(0).uniform(-1, 1, (20_000, 3))
    for seed in range(5):
        fit = model(1.0, target_bounds=(-1, 1), random_state=seed).fit(X, RNG(seed).normal(0, 0.3, 20_000))
        assert (fit.standard_errors_ < 0.1).all()
        assert_allclose(fit.coef_, 0, atol=0.1)


def test_a_constant_column_is_known():
    X, y = data(4000)
    X[:, 1] = 0.5
    fit = model(4.0, delta=1e-6, bounds=([-1, 0.5, -1], [1, 0.5, 1])).fit(X, y)
    assert fit.identified_.all()
    assert_array_equal(fit.confidence_interval()[1], 0)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_lopsided_bounds_are_not_far_worse_than_a_private_mean(epsilon):
    # n = 15 fits: noise of the means, times where the target is in its bounds, must not be taken for news
    lost, mean = [], []
    for seed in range(15):
        rng = RNG(seed)
        X = rng.uniform(0, 100, (2000, 4))
        y = 1e4 + 5e3 * ((X[:, 0] - X[:, 1]) / 40 + rng.normal(0, 1, 2000))
        params = {"bounds": (0, 100), "target_bounds": (0, 1e6), "random_state": seed}
        lost.append(1 - model(epsilon, **params).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]))
        constant = model(epsilon, **{**params, "bounds": (7, 7)})  # (constant columns: the mean alone)
        mean.append(1 - constant.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]))
    assert np.median(lost) < 2 * np.median(mean) + 0.5  # (was ten times as much)


def test_confidence_intervals():
    X, y = data(5000)
    fit = model(4.0, delta=1e-6).fit(X, y)
    low, high = fit.confidence_interval(0.9).T
    assert (low < fit.coef_).all()
    assert (fit.coef_ < high).all()
    assert_allclose((high - low) / 2, 1.6448536 * fit.standard_errors_)
    with pytest.raises(ValueError, match="level"):
        fit.confidence_interval(1.0)


# ---------------------------------------------------------------- bad input, ledger, strict mode


@pytest.mark.parametrize(("name", "value"), [
    ("bounds", (1, 0)), ("bounds", (0,)), ("bounds", "private"), ("bounds", (0, math.inf)),
    ("bounds", ([0, 0], [1, 1])),
    ("target_bounds", (1, 1)), ("target_bounds", 3), ("target_bounds", (0, math.nan)), ("neighbours", "local"),
    ("method", "ols"), ("sensitivity", "mine"), ("fit_intercept", 1),
])
def test_bad_parameters_are_named_and_not_charged(name, value):
    ledger = Ledger(10.0)
    with pytest.raises(ValueError, match=name):
        model(ledger=ledger, **{name: value}).fit(*data(50))
    assert not ledger.entries()
    with pytest.raises(ValueError, match="alpha"):
        model(1.0, DPRidge, alpha=-1.0).fit(*data(50))
    with pytest.raises(ValueError, match="delta"):
        model(method="functional", delta=1e-6).fit(*data(50))


def test_strict_rows_with_missing_values_count_as_the_middle():
    X, y = data(200)
    with dpestim.config_context(strict=True):
        bad_X, bad_y, mid_X, mid_y = X.copy(), y.copy(), X.copy(), y.copy()
        bad_X[3, 1], bad_y[7] = np.nan, np.inf
        mid_X[3], mid_y[3], mid_X[7], mid_y[7] = 0.0, 0.0, 0.0, 0.0
        assert_array_equal(model().fit(bad_X, bad_y).coef_, model().fit(mid_X, mid_y).coef_)
        with pytest.raises(ValueError, match="y must"):
            model().fit(X, list(y))
    with pytest.raises(ValueError, match="declared"):
        model(bounds=None).summarize(X, y)


def test_add_remove_hides_the_number_of_rows():
    ledger = Ledger(10.0, neighbours="add_remove")
    X, y = data(300)
    model(neighbours="add_remove", ledger=ledger).fit(X, y)
    assert ledger.entries()[0]["n_rows"] is None


@pytest.mark.parametrize("dtype", ["boolean", "Int64", "Float64", "bool[pyarrow]", "int64[pyarrow]", "double[pyarrow]"])
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_a_null_in_y_is_charged_in_strict_mode_as_any_value_is(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    X = data(40)[0]
    whole = pd.Series([True, False] * 20).astype("bool" if "bool" in dtype else "int64").astype(dtype)
    with_null = whole.copy()
    with_null[7] = None
    makers = [lambda: model(target_bounds=(0, 1)), lambda: model(1.0, DPRidge, target_bounds=(0, 1)),
              lambda: DPTukeyRegression(1.0, delta=1e-3, random_state=0),
              lambda: DPSelectKBest(1, bounds=(-1, 1), score_func="covariance", target_bounds=(0, 1), random_state=0)]
    ledger = Ledger(100.0, delta=0.1, durability="fast")
    for make in makers:
        for y in (whole, with_null, whole.to_frame("y"), with_null.to_frame("y")):
            before = len(ledger)
            with dpestim.config_context(strict=True):
                make().set_params(ledger=ledger).fit(X, y)
            assert len(ledger) == before + 1


def test_standard_errors_where_nothing_tells_the_number_of_rows():
    X, y = data(4000, noise=0.3)
    y -= 0.3
    known, unknown = (model(20.0, neighbours=n, fit_intercept=False).fit(X, y).standard_errors_
                      for n in ("substitution", "add_remove"))
    assert (unknown < 3 * known).all()  # (rows fill the bounds to a third: the root of 3 times, and not that of 4000)
    assert (unknown > known / 2).all()


@pytest.mark.parametrize("norm", [None, 0.5])
def test_rows_are_clipped_to_bounds_of_one_sign(norm):
    rows = row_map(([2, -1, -5], [3, 4, -1]), norm, (1, 2), False, 3)
    outside = integers(rows, [[-3, -4, 0], [9, 9, -9], [0, 0, -2]], [-5.0, 9.0, 1.5])
    inside = integers(rows, [[2, -1, -1], [3, 4, -5], [2, 0, -2]], [1.0, 2.0, 1.5])
    assert_array_equal(outside, inside)
    assert (outside[:, 4] >= REACH // 2).all()
    with dpestim.config_context(strict=True):
        X, y = np.tile([2.5, 1.5, -3.0], (20, 1)), np.full(20, 1.5)
        bad = X.copy()
        bad[3, 0] = np.nan
        fits = [model(bounds=([2, -1, -5], [3, 4, -1]), target_bounds=(1, 2), data_norm=norm, fit_intercept=False).fit(
            rows, y) for rows in (X, bad)]
        assert_array_equal(fits[0].coef_, fits[1].coef_)
        assert_array_equal(fits[0].predict(bad), fits[0].predict(X))


def test_a_fit_leaves_no_exact_sums():
    X, y = data(50)
    fitted = model().summarize(X, y).fit(X[:, :2], y)
    assert not hasattr(fitted, "summary_")
    assert fitted.summarize(X[:, :2], y).release().n_features_in_ == 2
