"""Transformers of numbers and what estimates from their reports, piece by piece."""

import functools
import itertools
import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dpestim
from dpestim._core import pm
from dpestim.accounting import BudgetExceededError, Ledger
from dpestim.exceptions import PrivacyLeakWarning
from dpestim.local import (
    DistributionEstimator,
    GRRFrequencyEstimator,
    MeanEstimator,
    OLHFrequencyEstimator,
    PMTransformer,
    SDPMTransformer,
)
from dpestim.local.channel import Dense
from dpestim.local.estimates.binned import wasserstein
from dpestim.local.numbers.pm import PM
from dpestim.local.numbers.sdpm import SDPM
from dpestim.postprocessing.em import maximise
from dpestim.privacy.exact import WORD, within
from dpestim.privacy.number_weights import pm_weights

LAWS = [
    PM.make(1.0, 8),
    PM.make(2.0, 64),
    SDPM.make(1.0, 64, Fraction(1, 4), Fraction(1, 2), 5, True),
    SDPM.make(3.0, 64, Fraction(1, 5), Fraction(1), 9, True),
    SDPM.make(1.0, 64, Fraction(0), Fraction(1, 3), 1, True),
    SDPM.make(1.0, 64, Fraction(1, 4), Fraction(1, 2), 5, False),
]


# ---------------------------------------------------------------- weights and kernel


@pytest.mark.parametrize("grid", [2, 8, 1 << 15])
def test_weights_are_exact_for_any_epsilon(grid):
    rng = np.random.default_rng(0)
    for epsilon in [*np.exp(rng.uniform(-12, math.log(80), 200)), 1e-6, 0.5, 1, 44, 80]:
        epsilon = Fraction(repr(float(epsilon)))
        w = pm_weights(epsilon, grid)
        assert w.window * w.inside + grid * w.outside == WORD
        assert w.window % 2 == 1
        assert 1 <= w.window < grid
        assert 0 < w.outside <= w.inside
        assert within(w.inside, w.outside, epsilon)
        least = (WORD + w.window * w.outside - 1) // (w.window * w.outside)
        assert least > 1  # weights are not degenerate
    with pytest.raises(ValueError, match="epsilon is too small"):
        pm_weights(Fraction(1, 10**19), grid)


def answer(r, t, lane, u):
    """The law of the kernel in Python's integers."""
    low = t < 0
    fixed = ~t if low else t
    at = (fixed >> 32) + (lane < fixed & 0xFFFFFFFF)
    w = r.weights
    size = getattr(r, "zone_stop", 0) - getattr(r, "zone", 0)
    if low:
        if u < r.own:
            return r.first_level + at
        k = (u - r.own) // w.outside
        return int(r._high_codes[k])
    if u < w.window * w.inside:
        j = at + u // w.inside
    else:
        k = (u - w.window * w.inside) // w.outside
        j = k if k < at else k + w.window
    return int(r.code_of_output[j]) if size else j


@pytest.mark.parametrize("r", [
    *LAWS, PM.make(0.001, 1 << 15), PM.make(40, 1 << 15), PM.make(10, 16),
    SDPM.make(25, 1 << 15, Fraction(1, 3), Fraction(2, 3), 16, True),
    SDPM.make(0.5, 1 << 15, Fraction(1, 3), Fraction(2, 3), 1000, True),
    SDPM.make(2, 1 << 15, Fraction(0), Fraction(2, 3), 1, False),
], ids=repr)
def test_the_kernel_is_the_law_word_by_word(r):
    rng = np.random.default_rng(1)
    n, w = 3000, r.weights
    words = rng.integers(0, 1 << 64, n, dtype=np.uint64)
    edges = [0, WORD - 1, w.window * w.inside - 1, w.window * w.inside, w.inside, w.inside - 1, WORD - w.outside]
    edges += [r.own - 1, r.own, r.own + w.outside] if isinstance(r, SDPM) else []
    words[: len(edges)] = edges
    codes = rng.choice(r.input_codes, n)
    lows = codes < 0
    fixed = np.where(lows, ~codes, codes) + rng.integers(0, 1 << 32, n)
    top = np.where(lows, (getattr(r, "n_levels", 1) - 1) << 32, r.grid << 32)
    codes = np.where(lows, ~np.minimum(fixed, top), np.minimum(fixed, top))
    lanes = rng.integers(0, 1 << 32, n, dtype=np.uint32)
    out = np.empty(n, r.report_dtype)
    pm.answer(codes, lanes, words, r.integers, out)
    expected = [answer(r, *record) for record in zip(codes.tolist(), lanes.tolist(), words.tolist())]
    assert out.tolist() == expected
    assert out.max() < r.n_counts


def test_the_kernel_checks_lengths_and_takes_nothing():
    law = PM.make(1.0, 8).integers
    empty = np.empty(0, np.int64)
    pm.answer(empty, empty.astype("u4"), empty.astype("u8"), law, empty.astype("u2"))
    pm.encode(np.empty(0), 0.0, 1.0, 1.0, 8, 1.0, 0.0, 0.0, 0, empty)
    with pytest.raises(ValueError, match="length"):
        pm.answer(empty, np.zeros(1, "u4"), empty.astype("u8"), law, empty.astype("u2"))
    with pytest.raises(ValueError, match="length"):
        pm.encode(np.zeros(1), 0.0, 1.0, 1.0, 8, 1.0, 0.0, 0.0, 0, empty)


def test_halves_of_words_belong_to_rows():
    from dpestim.rng import Stage, WordSource

    reader = WordSource(0).reader()
    whole = reader.words(0, 0, 0, 101).halves(Stage.ROUNDING).copy()
    for first, n in ((0, 1), (1, 1), (7, 30), (100, 1)):
        assert (reader.words(0, 0, first, n).halves(Stage.ROUNDING) == whole[first : first + n]).all()
    assert len(set(whole.tolist())) == 101


# ---------------------------------------------------------------- against theory


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_variance_tends_to_that_of_the_continuous_mechanism(epsilon):
    r, s = PM.make(epsilon, 1 << 15), math.exp(epsilon / 2)
    x = np.linspace(-1, 1, r.grid + 1)
    theory = x**2 / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)
    np.testing.assert_allclose(4 * r.variance(), theory, rtol=2e-4)
    assert float(r.positions[-1] * 2 - 1) == pytest.approx((s + 1) / (s - 1), rel=1e-3)


@pytest.mark.ci
@pytest.mark.law
@pytest.mark.parametrize("form", ["discretised", "continuous"])
def test_sdpm_reports_are_as_biased_as_theory_says(form):
    """E[y | low x] = p' x (D3), in the units of [-1, 1], for an interval around 0."""
    epsilon, half = 1.0, 0.4
    r = SDPMTransformer(epsilon, bounds=(-1.0, 1.0), low_sensitivity=(-half, half), form=form).randomizer()
    s, E = math.exp(epsilon / 2), math.exp(epsilon)
    p, C = (E - s) / (2 * s + 2), (s + 1) / (s - 1)
    own = 1 - (2 * C - 2 * half) * p / E
    assert r.own / WORD == pytest.approx(own, rel=1e-3)
    levels = 2 * np.array([float(x) for x in r.level_positions()]) - 1
    means = 2 * r.expect(r.positions)[r.input_kinds() == "low"] - 1
    np.testing.assert_allclose(means, own * levels, atol=1e-3)


def test_the_ratio_of_low_to_high_is_that_of_the_closed_form():
    """ln(p' E / (w p)), where some high value's window does not reach the cell, and cells are equally wide."""
    r = SDPMTransformer(0.5, bounds=(-1.0, 1.0), low_sensitivity=(-0.1, 0.1), n_cells=2).randomizer()
    s, E = math.exp(0.25), math.exp(0.5)
    p, C = (E - s) / (2 * s + 2), (s + 1) / (s - 1)
    own = 1 - (2 * C - 0.2) * p / E
    # a cell is a whole number of some 370 codes, so that the two differ by a few parts in a thousand
    assert float(r.low_high) == pytest.approx(own * E / (0.1 * p), rel=4e-3)


def test_the_worst_high_value_is_found_among_all():
    r, w = LAWS[3], LAWS[3].weights
    ratios = [
        Fraction(r.own, w.outside * (b - a) + (w.inside - w.outside) * max(0, min(b, g + w.window) - max(a, g)))
        for a, b in itertools.pairwise(r.cell_edges)
        for g in r.high_points.tolist()
    ]
    assert r.low_high == max(ratios)


@pytest.mark.parametrize("r", LAWS, ids=repr)
def test_bins_are_averages_of_exact_rows(r):
    """Values spread evenly within a bin: their law is the average over a fine lattice of exact mixtures of rows."""
    exact = np.array([[float(p) for p in row] for row in r.transition_matrix()])
    codes = r.input_codes
    for n_bins in (5, 8):
        edges, output, channel = r.channel(n_bins)
        matrix = channel.matrix()
        assert len(edges) == n_bins + 1
        np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-12)
        for b in range(n_bins):
            low = isinstance(r, SDPM) and r.low_from <= Fraction((edges[b] + edges[b + 1]) / 2) <= r.low_to
            points = np.linspace(edges[b], edges[b + 1], 20001)
            points = (points[1:] + points[:-1]) / 2
            share = np.zeros(r.n_inputs)
            if low:
                spread = float(r.low_to - r.low_from)
                at = (points - float(r.low_from)) / spread * (r.n_levels - 1)
                first = len(r.high_points)
            else:
                at, first = points * r.grid, None
            floor = np.floor(at).astype(int)
            for k, weight in ((floor, 1 - (at - floor)), (floor + 1, at - floor)):
                used = weight > 0
                k, weight = k[used], weight[used]
                rows = first + k if low else np.searchsorted(codes[r.input_kinds() != "low"], k << 32)
                np.add.at(share, rows, weight / len(points))
            law = np.bincount(output, weights=share @ exact, minlength=channel.n_outputs)
            np.testing.assert_allclose(matrix[b], law, atol=2e-6)


@functools.cache
def dense_of(r, n_bins):
    return Dense(r.channel(n_bins)[2].matrix())


@pytest.mark.ci
@pytest.mark.second
@pytest.mark.law
@pytest.mark.parametrize("r", [*LAWS, PM.make(1.0, 1 << 15), SDPM.make(
    2.0, 1 << 15, Fraction(1, 7), Fraction(3, 5), 16, True)], ids=repr)
@pytest.mark.parametrize("n_bins", [4, 7, 100])
@pytest.mark.parametrize("smooth", [False, True])
def test_linear_iterations_are_the_dense_product(r, n_bins, smooth):
    _, _, channel = r.channel(n_bins)
    dense, rng = dense_of(r, n_bins), np.random.default_rng(2)
    f = rng.random(channel.n_bins)
    f /= f.sum()
    counts = rng.integers(0, 100, channel.n_outputs).astype(float)
    np.testing.assert_allclose(channel.expected(f), dense.expected(f), rtol=1e-12)
    if smooth and isinstance(r, SDPM):
        return  # bins differ in width there, and densities are what is smoothed
    ours, theirs = f.copy(), f.copy()
    channel.steps(ours, counts, 3, smooth)
    dense.steps(theirs, counts, 3, smooth)
    np.testing.assert_allclose(ours / ours.sum(), theirs, rtol=1e-12, atol=1e-15)


def test_iterations_never_lower_the_likelihood_and_end_at_a_maximum():
    rng = np.random.default_rng(3)
    rows = rng.random((4, 9))
    channel = Dense(rows / rows.sum(axis=1, keepdims=True))
    counts = rng.multinomial(10_000, np.array([0.5, 0.2, 0.3, 0.0]) @ channel.rows()).astype(float)
    even = np.full(4, 0.25)
    values = [maximise(channel, counts, even, smooth=False, max_iter=k, tol=0)[1] for k in (1, 10, 100, 1000)]
    assert values == sorted(values)
    f, _, n_iter, converged = maximise(channel, counts, np.full(4, 0.25), smooth=False, max_iter=200_000, tol=1e-10)
    assert converged
    assert n_iter < 200_000
    slope = channel.rows() @ (counts / channel.expected(f)) / counts.sum()
    assert (slope < 1 + 1e-3).all()  # no direction leads up (Karush, Kuhn, Tucker)
    assert f @ slope == pytest.approx(1)


def test_the_distance_is_that_of_scipy():
    rng = np.random.default_rng(4)
    x, f = np.sort(rng.normal(0, 1, 500)), rng.random(7)
    f[2] = 0
    f /= f.sum()
    edges = np.linspace(-2, 3, 8)
    fine = np.linspace(-2, 3, 7 * 400 + 1)
    by_points = stats.wasserstein_distance(x, (fine[1:] + fine[:-1]) / 2, v_weights=np.repeat(f, 400))
    assert wasserstein(x, f, edges) == pytest.approx(by_points, rel=1e-3)


# ---------------------------------------------------------------- means and distributions


def data(n=20_000, seed=0):
    return np.random.default_rng(seed).normal([1.0, 40.0], [0.5, 10.0], (n, 2))


BOUNDS = ([-1.0, 0.0], [3.0, 100.0])
TRANSFORMERS = {
    "pm": PMTransformer(4.0, bounds=BOUNDS, random_state=0),
    "sdpm": SDPMTransformer(4.0, bounds=BOUNDS, low_sensitivity=([0.0, 20.0], [2.0, 50.0]), random_state=0),
    "continuous": SDPMTransformer(4.0, bounds=BOUNDS, low_sensitivity=([0.0, 20.0], [2.0, 50.0]), form="continuous",
                                  random_state=0),
}


@pytest.mark.ci
@pytest.mark.law
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_estimates_are_near_the_truth(name):
    X = data()
    mean = MeanEstimator(TRANSFORMERS[name]).fit(X)
    assert (np.abs(mean.mean_ - X.mean(axis=0)) < 5 * mean.standard_error_ + mean.bias_).all()
    assert (mean.bias_ < 1e-11 * (np.array(BOUNDS[1]) - BOUNDS[0])).all()
    assert mean.score(X) == pytest.approx(-np.square(mean.mean_ - X.mean(axis=0)).mean())
    distribution = DistributionEstimator(TRANSFORMERS[name], n_bins=128).fit(X)
    width = np.array(BOUNDS[1]) - BOUNDS[0]
    assert (np.abs(distribution.mean_ - X.mean(axis=0)) < 0.02 * width).all()
    assert (np.abs(distribution.quantile([0.25, 0.75]) - np.quantile(X, [0.25, 0.75], axis=0)) < 0.03 * width).all()
    np.testing.assert_allclose(np.sqrt(distribution.variance_), X.std(axis=0), rtol=0.15)
    assert -1 < distribution.score(X) < 0
    assert all(f.sum() == pytest.approx(1) and (f >= 0).all() for f in distribution.distribution_)
    assert all(len(e) == 129 for e in distribution.bin_edges_)
    assert (distribution.log_likelihood_ < 0).all()
    assert all(n % 15 == 0 for n in distribution.n_iter_)  # ten, and five from where these lead to


@pytest.mark.law
def test_the_plain_mean_of_sdpm_reports_is_wrong_and_the_estimator_right():
    X = np.full((40_000, 1), 0.8)
    t = SDPMTransformer(1.0, bounds=(-1.0, 1.0), low_sensitivity=(0.0, 1.0), random_state=0)
    plain = t.fit(X).transform(X)
    assert abs(plain.mean() - 0.8) > 10 * plain.std() / 200
    est = MeanEstimator(t).fit(X)
    assert abs(est.mean_[0] - 0.8) < 5 * est.standard_error_[0] + est.bias_[0]


@pytest.mark.parametrize("params", [{"n_bins": 0}, {"n_bins": 2.5}, {"max_iter": 0}, {"tol": -1.0},
                                    {"tol": float("nan")}, {"smoothing": "yes"}])
def test_bad_parameters_of_a_distribution_are_refused_before_anything_is_spent(params):
    with Ledger(1) as ledger, pytest.raises(ValueError, match=next(iter(params))):
        DistributionEstimator(PMTransformer(1.0, bounds=(0.0, 1.0)), **params).fit(np.ones((3, 1)))
    assert ledger.spent().epsilon == 0


def test_not_converging_is_said():
    from sklearn.exceptions import ConvergenceWarning

    est = DistributionEstimator(TRANSFORMERS["pm"], max_iter=10).fit(data(1000))
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        _ = est.distribution_


def test_a_distribution_from_randomised_response():
    X = np.random.default_rng(0).choice(["a", "b", "c"], (20_000, 1), p=[0.6, 0.3, 0.1])
    grr = GRRFrequencyEstimator(1.0, categories=[["a", "b", "c"]], random_state=0)
    est = DistributionEstimator(grr, smoothing=False).fit(X)
    plain = grr.fit(X)
    np.testing.assert_allclose(est.distribution_[0], plain.frequencies_[0], atol=2e-3)
    assert est.privacy_ == plain.privacy_
    assert est.bin_edges_[0].tolist() == [-0.5, 0.5, 1.5, 2.5]
    parts = DistributionEstimator(grr, smoothing=False).partial_fit(X[:5000]).partial_fit(X[5000:])
    np.testing.assert_array_equal(parts.distribution_[0], est.distribution_[0])
    other = DistributionEstimator(grr, smoothing=False).aggregate(grr.privatize(X))
    np.testing.assert_array_equal(other.distribution_[0], est.distribution_[0])
    assert pickle.loads(pickle.dumps(est)).mean_ == est.mean_
    assert est.score(X) <= 0
    with pytest.raises(ValueError, match="one matrix"):
        DistributionEstimator(OLHFrequencyEstimator(1.0, categories=[["a", "b"]])).fit(X)
    with pytest.warns(PrivacyLeakWarning):
        learned = DistributionEstimator(GRRFrequencyEstimator(1.0)).fit(X)
    assert learned.privacy_.epsilon == math.inf


# ---------------------------------------------------------------- scikit-learn, frames, budgets


def test_frames_pipelines_and_column_transformers():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(data(300), columns=["height", "weight"])
    frame["sex"] = 1.0
    both = ColumnTransformer([
        ("h", PMTransformer(1.0, bounds=(-1.0, 3.0), random_state=0), ["height"]),
        ("w", SDPMTransformer(1.0, bounds=(0.0, 100.0), low_sensitivity=(20.0, 50.0), random_state=0), ["weight"]),
    ], remainder="passthrough", verbose_feature_names_out=False).set_output(transform="pandas")
    out = both.fit_transform(frame)
    assert list(out.columns) == ["height", "weight", "sex"]
    assert (out["sex"] == 1).all()
    model = make_pipeline(PMTransformer(2.0, bounds=BOUNDS, random_state=0), StandardScaler(), Ridge())
    assert model.fit(data(300), np.arange(300)).predict(data(10)).shape == (10,)
    est = MeanEstimator(TRANSFORMERS["pm"]).fit(frame[["height", "weight"]])
    assert list(est.feature_names_in_) == ["height", "weight"]
    with pytest.raises(ValueError, match="feature names"):
        est.partial_fit(frame[["weight", "height"]])
    frame.loc[3, "weight"] = np.nan
    with pytest.raises(ValueError, match=r"'weight'.*NaN"):
        MeanEstimator(TRANSFORMERS["pm"]).fit(frame[["height", "weight"]])


@pytest.mark.parametrize("cls", [MeanEstimator, DistributionEstimator])
def test_epsilon_of_the_transformer_can_be_searched(cls):
    X = data(2000)
    with Ledger(100) as ledger:
        search = GridSearchCV(
            cls(PMTransformer(bounds=BOUNDS, random_state=0)), {"transformer__epsilon": [0.1, 10.0]}, cv=KFold(3),
            error_score="raise",
        ).fit(X)
    assert search.best_params_ == {"transformer__epsilon": 10.0}
    assert ledger.spent().epsilon == 3 * Fraction(101, 10) + 10
    with pytest.raises(BudgetExceededError), Ledger(1):
        cls(PMTransformer(2.0, bounds=BOUNDS)).fit(X)


def test_strict_mode_says_nothing_about_values():
    X = data(50)
    X[3, 1], X[4, 0], X[5, 0] = np.nan, np.inf, 1e300
    with dpestim.config_context(strict=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        for t in TRANSFORMERS.values():
            reports = t.privatize(X)
            assert (reports[3, 1:] == t.privatize(np.where(np.isnan(X), 0.0, X))[3, 1:]).all()  # NaN is the lower bound
            for bad in (X.tolist(), X.astype(object)):
                with pytest.raises(ValueError, match="strict mode"):
                    t.privatize(bad)
        with pytest.raises(ValueError, match="strict mode"):
            PMTransformer(1.0).fit(X)
        one = MeanEstimator(TRANSFORMERS["pm"]).fit(X[:1])
        assert np.isnan(one.standard_error_).all()


def test_bounds_learned_from_the_data_void_the_guarantee():
    X = data(100)
    with pytest.warns(PrivacyLeakWarning, match="bounds"):
        t = PMTransformer(1.0, random_state=0).fit(X)
    assert t.privacy_.epsilon == math.inf
    assert np.array_equal(t.bounds_[0], X.min(axis=0))
    with Ledger(9), pytest.raises(BudgetExceededError, match="infinity"):
        t.privatize(X)
    with pytest.warns(PrivacyLeakWarning):
        assert np.isfinite(PMTransformer(1.0).fit_transform(np.full((5, 1), 7.0))).all()  # a constant column


@pytest.mark.parametrize("low", [(2.0, 12.0), (-1.0, 5.0), (0.0, 10.0), (5.0, 5.0), (6.0, 4.0), (1.0, np.inf), "ab", 3])
def test_low_intervals_outside_the_bounds_are_refused(low):
    t = SDPMTransformer(1.0, bounds=(0.0, 10.0), low_sensitivity=low)
    with pytest.raises(ValueError, match="low_sensitivity"):
        t.fit(np.ones((3, 1)))


@pytest.mark.parametrize("params", [{"n_cells": 0}, {"n_cells": 1.5}, {"form": "smooth"}, {"n_cells": 10**6}])
def test_bad_parameters_of_sdpm_are_refused(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        SDPMTransformer(1.0, bounds=(0.0, 10.0), **params).privatize(np.ones((3, 1)))


def test_values_beyond_a_low_end_of_the_bounds_are_low_too():
    """Values are clipped first: else what lies beyond would have a row that the guarantee does not know."""
    t = SDPMTransformer(1.0, bounds=(0.0, 1.0), low_sensitivity=(0.5, 1.0))
    fixed = np.empty(6, np.int64)
    t.randomizer().encode(np.array([0.2, 0.5, 1.0, 1.2, np.inf, np.nan]), 0.0, 1.0, fixed)
    assert (fixed < 0).tolist() == [False, True, True, True, True, False]
    assert (fixed[2:5] == fixed[2]).all()


def test_guarantees_of_sdpm():
    one = SDPMTransformer(1.0, bounds=(0.0, 1.0), low_sensitivity=(0.5, 1.0), n_cells=1).fit(np.ones((2, 1)))
    assert 1 < one.privacy_.epsilon < math.inf
    assert one.privacy_.relaxed_epsilon == 1
    assert one.privacy_.relaxation == "SDLDP(column 0: low=[0.5, inf])"
    assert one.guarantee_by_input_[0]["low-low"] == 0
    with pytest.raises(AttributeError):
        _ = SDPMTransformer(1.0, bounds=(0.0, 1.0), n_cells=1).privacy_  # how many columns share epsilon?
    more = SDPMTransformer(1.0, bounds=(0.0, 1.0), low_sensitivity=(0.5, 1.0))
    assert more.privacy_.epsilon == math.inf
    assert more.guarantee_by_input_[0]["high-high"] == 1
    assert more.guarantee_by_input_[0]["low-high"] < math.inf
    leaks = SDPMTransformer(1.0, bounds=(0.0, 1.0), form="continuous")
    assert leaks.guarantee_by_input_[0]["low-high"] == math.inf
    assert "a reader of the report knows the low value" in str(leaks.privacy_)
    two = SDPMTransformer(1.0, bounds=([0.0, 0.0], [1.0, 1.0]), low_sensitivity=([0.5, 0.2], [1.0, 0.4]))
    assert [e["high-high"] for e in two.guarantee_by_input_] == [Fraction(1, 2)] * 2


def test_a_ledger_of_the_relaxation_pays_for_sdpm():
    X, t = np.ones((3, 1)), SDPMTransformer(1.0, bounds=(0.0, 1.0), low_sensitivity=(0.25, 0.5))
    with Ledger(5), pytest.raises(BudgetExceededError):
        MeanEstimator(t).fit(X)
    with Ledger(5, relaxation="SDLDP(column 0: low=[0.25, 0.5])") as ledger:
        MeanEstimator(t).fit(X)
    assert ledger.remaining().epsilon == 4


def test_scalar_bounds_share_epsilon_among_the_columns_that_come():
    t = PMTransformer(3.0, bounds=(0.0, 1.0), random_state=0)
    assert t.randomizer().epsilon == 3
    assert t.fit(np.zeros((2, 3))).randomizer(2).epsilon == 1
    assert t.privacy_.epsilon == 3
    with pytest.raises(ValueError, match="3 features"):
        t.privatize(np.zeros((2, 2)))


def test_a_pickle_holds_no_tables():
    est = MeanEstimator(TRANSFORMERS["sdpm"]).fit(data(10))
    _ = est.mean_
    assert len(pickle.dumps(est.transformer_)) < 5000


def test_decoding_knows_its_codes():
    t = PMTransformer(1.0, bounds=(2.0, 4.0), grid=8)
    r = t.randomizer()
    codes = np.arange(r.n_counts, dtype=r.report_dtype).reshape(-1, 1)
    values = t.decode(codes)[:, 0]
    assert values[len(values) // 2] == 3.0
    np.testing.assert_allclose(values + values[::-1], 6.0, rtol=1e-12)
    with pytest.raises(ValueError, match="code below"):
        t.decode(codes + 1)


@pytest.mark.parametrize("law", [PM.make(Fraction(2), 64), PM.make(Fraction(3), 1 << 15),
                                 SDPM.make(Fraction(2), 1 << 10, Fraction(1, 5), Fraction(7, 10), 4, True),
                                 SDPM.make(Fraction(1), 64, Fraction(1, 4), Fraction(3, 4), None, False)])
def test_the_noise_of_one_row_is_that_of_all_rows(law):
    """Every mean asks for one row: that of the input next to it."""
    numbers = law.mean_values()[0]
    every = law.noise_of(numbers)
    rows = np.unique(np.linspace(0, len(every) - 1, 30).astype(int))
    np.testing.assert_allclose([law.noise_at(row, numbers) for row in rows], every[rows], rtol=1e-13)
