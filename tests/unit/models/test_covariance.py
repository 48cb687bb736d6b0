"""Covariance and components: sensitivities by enumeration, exact sums, the repair, verbs, units, norms."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA

import dpestim
from dpestim.accounting import Ledger
from dpestim.covariance import DPCovariance, repair
from dpestim.decomposition import DPPCA, power
from dpestim.linear_model import DPLogisticRegression
from dpestim.rng import WordSource
from dpestim.statistics.moment_noise import MomentRelease, scatter_weights
from dpestim.statistics.row_moments import REACH, row_map, summary_of

RNG = np.random.default_rng
BOX = {"epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), "random_state": 0}


def rows(n=4000, seed=0, d=5):
    rng = RNG(seed)
    turn = np.linalg.qr(RNG(1).normal(size=(d, d)))[0]
    return np.clip(0.1 + rng.normal(size=(n, d)) * 0.5 ** np.arange(1, d + 1) @ turn, -1, 1)


# ---------------------------------------------------------------- sensitivities


def weighted(weights, row):
    z = [*row, 1, 0]
    return [z[i] * z[j] * w for (i, j), w in zip(
        [(i, j) for i in range(len(z)) for j in range(i, len(z))], weights.entries(len(row)).tolist())]


def lattice(d, steps=4):
    """All integer rows of a coarse grid that are no longer than the reach, on a scale that they meet."""
    for point in product(range(-steps, steps + 1), repeat=d):
        if sum(v * v for v in point) <= steps * steps:
            yield [v * REACH // steps for v in point]


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("centred", [True, False])
def test_no_pair_of_rows_of_a_grid_exceeds_the_sensitivities(d, centred):
    normal, pure = scatter_weights(True, centred, d), scatter_weights(False, centred, d)
    points = [weighted(normal, row) for row in lattice(d, 4 if d < 3 else 2)]
    l2 = max(sum((a - b) ** 2 for a, b in zip(p, q)) for p in points for q in points)
    assert l2 <= normal.l2_squared
    assert l2 > 0.9 * normal.l2_squared or d == 1  # (one column knows no two rows at a right angle)
    broken = replace(normal, product=256 if d > 1 else 0, square=256)  # (what this test has to see)
    points = [weighted(broken, row) for row in lattice(d, 4 if d < 3 else 2)]
    assert max(sum((a - b) ** 2 for a, b in zip(p, q)) for p in points for q in points) > normal.l2_squared
    points = [weighted(pure, row) for row in lattice(d, 4 if d < 3 else 2)]
    l1 = max(sum(abs(a - b) for a, b in zip(p, q)) for p in points for q in points)
    assert 0.65 * pure.l1(d, True) < l1 <= pure.l1(d, True)


def test_rows_that_meet_the_sensitivity_are_told_from_a_smaller_one():
    weights, quarter = scatter_weights(True, True, 2), -REACH // 4
    rest = math.isqrt(REACH * REACH - quarter * quarter)
    one, two = weighted(weights, [REACH, 0]), weighted(weights, [quarter, rest])
    l2 = sum((a - b) ** 2 for a, b in zip(one, two))
    assert Fraction(99, 100) * weights.l2_squared < l2 <= weights.l2_squared


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("centred", [True, False])
def test_no_row_of_a_grid_exceeds_the_sensitivities_for_one_more(d, centred):
    """The row counts, too: with twice the weight of that the claims would be wrong."""
    normal, pure = (scatter_weights(kind, centred, d, False) for kind in (True, False))
    points = list(lattice(d, 4 if d < 3 else 2))
    broken = replace(normal, rows=2 * normal.rows)
    l2, more = (max(sum(a * a for a in weighted(weights, row)) for row in points) for weights in (normal, broken))
    assert 0.99 * normal.l2_squared < l2 <= normal.l2_squared < more
    for weights in (normal, pure):
        l1 = max(sum(map(abs, weighted(weights, row))) for row in points)
        assert 0.7 * weights.l1(d, False) < l1 <= weights.l1(d, False)
        assert weights.rows > 0
        assert scatter_weights(weights is normal, centred, d).rows == 0
        plan = MomentRelease(Fraction(1), Fraction(0 if weights is pure else 1, 10**6), weights, d, False)
        assert plan.most[0] == weights.l1(d, False)


def test_the_release_has_noise_for_these_sensitivities():
    for centred, delta in product((True, False), (Fraction(0), Fraction(1, 10**6))):
        weights = scatter_weights(delta > 0, centred, 12)
        plan = MomentRelease(Fraction(1), delta, weights, 12, True)
        assert plan.most == (weights.l1(12, True), weights.l2_squared or weights.l1(12, True) ** 2)
        assert plan.law.epsilon == 1
        need = math.sqrt(plan.most[1]) if delta else plan.most[0]
        assert plan.law.sensitivity * plan._noise.unit >= need


# ---------------------------------------------------------------- sums and units


def test_sums_without_targets_are_exact():
    X, shape = rows(20_000, d=3), row_map((-1, 1), 0.9, (-1, 1), True, 3)
    out = np.empty((len(X), 5))
    shape.write(X, None, out)
    exact = out.astype(object)
    assert summary_of(shape, X, None, ()).totals == [
        int((exact[:, i] * exact[:, j]).sum()) for i in range(5) for j in range(i, 5)]
    assert not out[:, 4].any()
    assert max(sum(int(v) ** 2 for v in row[:3]) for row in out) <= REACH**2


@pytest.mark.parametrize("how", [{"bounds": ([-1, -2, -1, -1, -1], [1, 1, 3, 1, 1])},
                                 {"data_norm": 5.0, "bounds": None}, {"bounds": (-2, 1), "data_norm": 1.9},
                                 {"neighbours": "add_remove"}])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_with_much_budget_it_is_that_of_scikit_learn(how, delta):
    X = rows(50_000)
    params = {**BOX, "epsilon": 80.0, "delta": delta, **how}
    got, want = DPCovariance(**params).fit(X), EmpiricalCovariance().fit(X)
    assert_allclose(got.covariance_, want.covariance_, atol=1e-3)
    assert_allclose(got.location_, want.location_, atol=1e-3)
    assert got.error_norm(want.covariance_, norm="spectral", squared=False) < 1e-3
    assert_allclose(got.get_precision() @ got.covariance_, np.eye(5), atol=1e-6)
    about = DPCovariance(**params, assume_centered=True).fit(X)
    assert_allclose(about.covariance_, X.T @ X / len(X), atol=1e-3)
    assert not about.location_.any()
    pca, plain = DPPCA(**params, n_components=3).fit(X), PCA(3).fit(X)
    assert_allclose(np.abs(np.sum(pca.components_ * plain.components_, axis=1)), 1, atol=1e-2)
    for name in ("explained_variance_", "explained_variance_ratio_", "mean_", "noise_variance_"):
        assert_allclose(getattr(pca, name), getattr(plain, name), atol=5e-3, err_msg=name)
    assert_allclose(pca.singular_values_, plain.singular_values_, rtol=2e-2)
    assert (pca.components_[np.arange(3), np.abs(pca.components_).argmax(axis=1)] > 0).all()
    assert_allclose(pca.components_ @ pca.components_.T, np.eye(3), atol=1e-9)
    assert_allclose(pca.get_covariance(), want.covariance_, atol=5e-3)


def test_standard_errors_are_those_of_the_noise():
    # n = 300 releases, alpha = 1e-6 for each of 6 entries: chi-squared quantiles of 300 degrees of freedom
    X, d = rows(500, d=3), 3
    model = DPCovariance(**BOX).summarize(X)
    unit = model._domain(d).factors()[0] / REACH
    plan = MomentRelease(Fraction(1), Fraction(1, 10**6), scatter_weights(True, True, d), d, True)
    drawn = [repair.scatter_of(plan.draw(model.summary_, WordSource(k), 500), 1.0) for k in range(300)]
    found = np.array([s.matrix for s in drawn])
    ratio = found.var(axis=0) / drawn[0].standard_errors() ** 2
    assert ((ratio > 0.65) & (ratio < 1.45)).all()
    assert not ((2 * ratio > 0.65) & (2 * ratio < 1.45)).any()  # (what square and product would be for each other)
    error = found.mean(axis=0) - np.cov(X.T, bias=True) * unit**2
    assert np.abs(error / np.sqrt(found.var(axis=0) / 300)).max() < 5.2


class Kept(DPCovariance):
    """Keeps what came before the repair."""

    def _learn(self, scatter, rows, n_rows):
        public = replace(scatter, counted=0.0).standard_errors()
        return {"covariance_": scatter.matrix, "errors_": scatter.standard_errors(), "public_": public, "n_": n_rows}


@pytest.mark.ci
@pytest.mark.law
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.5, 1e-5)])
@pytest.mark.parametrize("neighbours", ["substitution", "add_remove"])
def test_intervals_hold_for_each_entry(epsilon, delta, neighbours):
    """n = 100 fits, 16 entries: more misses have a probability of 2e-3 at .95; shrunken ones are off."""
    missed, shrunken = np.zeros((4, 4)), np.zeros((4, 4))
    for seed in range(100):
        X = np.random.default_rng(seed).uniform(-0.6, 0.8, (1000, 4))
        X[:, 1] = 0.5 * X[:, 0]
        truth = np.cov(X, rowvar=False, bias=True)
        fit = DPCovariance(epsilon, delta=delta, bounds=(-1, 1), neighbours=neighbours, random_state=seed).fit(X)
        ends = fit.confidence_interval()
        missed += (truth < ends[..., 0]) | (truth > ends[..., 1])
        shrunken += np.abs(fit.covariance_ - truth) > 1.96 * fit.standard_errors_
    assert missed.max() <= 15
    assert 0.025 < missed.mean() / 100 < 0.075
    assert not 0.025 < shrunken.mean() / 100 < 0.075


def test_standard_errors_know_of_a_noisy_number_of_rows():
    # 300 releases of 6 entries, alike at worst: the mean ratio of variances is within 5 standard errors, sqrt(2 / 300)
    X = np.clip(0.98 + 0.01 * rows(900, d=3), -1, 1)
    model = Kept(**{**BOX, "epsilon": 4.0}, neighbours="add_remove").summarize(X)
    found, numbers = [], []
    for _ in range(300):
        found.append(model.release().covariance_)
        numbers.append(model.n_)
    spread = np.array(found).var(axis=0)
    assert abs((spread / model.errors_**2).mean() - 1) < 0.41 < (spread / model.public_**2).mean() - 1
    assert np.mean(numbers) == pytest.approx(900, abs=5 * np.std(numbers) / math.sqrt(300))
    known = Kept(**BOX).fit(X)
    assert known.n_ == 900
    assert (known.errors_ == known.public_).all()


def test_who_is_protected_is_a_setting_of_a_summary_and_of_a_charge():
    X, ledger = rows(300), Ledger(5, delta=0.1, durability="fast")
    for cls in (DPCovariance, DPPCA):
        one = cls(**BOX, neighbours="add_remove", ledger=ledger).summarize(X)
        with pytest.raises(ValueError, match="same parameters"):
            cls(**BOX).merge(one)
        assert one.release().privacy_.neighbours.value == "add_remove"
        assert one.privacy_.curve is not None
    assert [entry["n_rows"] for entry in ledger.entries()] == [None, None]
    assert isinstance(one.n_samples_, int)
    assert one.n_samples_ != 300  # (noisy)
    with pytest.raises(ValueError, match="substitution"):
        DPPCA(**BOX, method="power", n_components=2, neighbours="add_remove", ledger=ledger).fit(X)
    assert len(ledger) == 2


# ---------------------------------------------------------------- the repair


def noise(d, size, rng):
    E = np.triu(rng.normal(size=(d, d)), 1) * size
    return E + E.T + np.diag(rng.normal(size=d) * size * math.sqrt(2))


SHAPES = {
    "flat": np.eye(30) / 30, "spiked": np.diag([0.6, 0.2, *[0.2 / 28] * 28]),
    "one direction": np.full((30, 30), 1 / 30), "decay": np.diag(0.7 ** np.arange(30)) * 0.3,
    "neighbours": 0.8 ** np.abs(np.subtract.outer(np.arange(30), np.arange(30))) / 30,
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("level", [0.05, 0.5, 2.0])
def test_what_is_repaired_is_nearer_on_every_shape(name, level):
    truth, rng = SHAPES[name], RNG(0)
    size, lost, left = level * np.linalg.norm(truth) / 30, 0.0, 0.0
    for _ in range(8):
        A = truth + noise(30, size, rng)
        scatter = repair.Scatter(A, np.zeros(30), 2 * size**2, size**2, 0.0)
        got = scatter.repaired("auto")
        assert_array_equal(got, got.T)
        assert np.linalg.eigvalsh(got)[0] > -1e-12
        assert np.trace(got) < 1 + 1e-9
        left += np.square(got - truth).sum()
        lost += np.square(repair.possible(A, np.inf) - truth).sum()
    assert left < (1.02 if level < 0.1 else 0.8) * lost


def laplace_noise(d, size, rng):
    E = np.triu(rng.laplace(size=(d, d))) * size / math.sqrt(2)
    return E + np.triu(E, 1).T


@pytest.mark.ci
@pytest.mark.law
@pytest.mark.parametrize("name", [*SHAPES, "constant"])
@pytest.mark.parametrize("law", [noise, laplace_noise])
@pytest.mark.parametrize("size", [0.003, 0.03, 30.0])
@pytest.mark.no_kernel
def test_the_default_is_never_much_worse_than_a_number(name, law, size):
    """From little noise to noise that drowns all; errors of 20 matrices, of which few lie about what noise explains."""
    truth, rng, lost = SHAPES.get(name, np.zeros((30, 30))), RNG(0), dict.fromkeys(("auto", 1.0, 0.0), 0.0)
    for _ in range(20):
        A = truth + law(30, size, rng)
        scatter = repair.Scatter(A, np.zeros(30), (2 if law is noise else 1) * size**2, size**2, 0.0)
        for how in lost:
            got = scatter.repaired(how)
            lost[how] += np.square(got - truth).sum()
            assert how != "auto" or np.trace(got) > 0
    assert lost["auto"] < 1.3**2 * min(lost[1.0], lost[0.0])


def test_estimated_risks_are_right_on_average():
    # 400 matrices of 8 columns: the mean of what is estimated is within 4 standard errors of the true one
    truth, rng, size = np.diag([0.5, 0.2, *[0.05] * 6]), RNG(3), 0.02
    for method in (repair._by_blocks, repair._by_eigenvalues):
        found = [(risk, np.square(out - truth).sum()) for risk, out in (
            method(truth + noise(8, size, rng), 2 * size**2, size**2) for _ in range(400))]
        apart = np.subtract(*np.array(found).T)
        assert abs(apart.mean()) < 4 * apart.std() / 20, method
        assert abs(apart.mean() + size**2 * 8) > 4 * apart.std() / 20 or method is repair._by_blocks


def test_the_nearest_possible_matrix():
    assert_allclose(np.diag(repair.possible(np.diag([0.5, -0.2, 0.1]))), [0.5, 0, 0.1])
    assert_allclose(np.diag(repair.possible(np.diag([1.4, -0.2, 0.2]))), [1, 0, 0], atol=1e-12)
    assert_allclose(np.diag(repair.possible(np.diag([0.9, 0.7, 0.0]))), [0.6, 0.4, 0], atol=1e-12)


# ---------------------------------------------------------------- what stands around


@pytest.mark.parametrize("n", [1, 2, 300])
@pytest.mark.parametrize("d", [1, 2, 40])
@pytest.mark.parametrize("neighbours", ["substitution", "add_remove"])
def test_few_rows_and_any_number_of_columns(n, d, neighbours):
    X, params = np.clip(RNG(0).normal(size=(n, d)), -1, 1), {**BOX, "neighbours": neighbours}
    model, pca = DPCovariance(**params).fit(X), DPPCA(**params, whiten=True).fit(X)
    assert pca.n_samples_ >= 1
    assert model.covariance_.shape == (d, d)
    assert np.linalg.eigvalsh(model.covariance_)[0] >= -1e-9
    assert np.trace(model.covariance_) <= d * (1 + 1e-4)  # (no more than the longest row has)
    assert (np.diff(pca.explained_variance_) <= 0).all()
    assert pca.transform(X).shape == (n, d)
    assert np.isfinite(pca.transform(X)).all()


def test_more_noise_where_less_is_promised_and_a_norm_helps():
    X = rows(3000)

    def error(**params):
        return DPCovariance(**{**BOX, "shrinkage": 0.0, **params}).fit(X).standard_errors_.max()

    assert error(epsilon=0.1) > 5 * error() > 5 * error(data_norm=1.0)
    assert error(assume_centered=True) < error()
    assert error(delta=0.0, bounds=(-1, 1)) > error(delta=1e-6)


@pytest.mark.parametrize("how", [{}, {"data_norm": 1.0}, {"bounds": None, "data_norm": 0.7},
                                 {"bounds": ([-1] * 5, [3] * 5)}])
@pytest.mark.parametrize("whiten", [False, True])
def test_no_transformed_row_is_longer_than_its_bound(how, whiten):
    X = rows(500)
    pca = DPPCA(**{**BOX, **how}, whiten=whiten).fit(X)
    far = np.r_[X * 1e3, X, np.eye(5) * 1e300, [[np.finfo(float).max] * 5]]
    for table in (far, -far):
        assert np.sqrt(np.square(pca.transform(table)).sum(axis=1)).max() <= pca.norm_bound
    inside = pca.inverse_transform(pca.transform(X))
    assert inside.shape == X.shape
    if not how:
        assert_allclose(inside, X, atol=1e-9)


def test_the_norm_is_known_before_fit_where_it_is_declared():
    assert DPPCA(data_norm=2.0).norm_bound == pytest.approx(2, rel=1e-5)
    for pca in (DPPCA(), DPPCA(bounds=(-1, 1)), DPPCA(data_norm=2.0, whiten=True)):
        with pytest.raises(AttributeError, match="after fit"):
            _ = pca.norm_bound
    X = rows(3000)
    pca = DPPCA(1.0, n_components=2, data_norm=1.0, delta=1e-6, random_state=0).fit(X)
    model = DPLogisticRegression(2.0, data_norm=pca.norm_bound, classes=[0, 1], random_state=0)
    assert model.fit(pca.transform(X), (X[:, 0] > 0.1).astype(int)).coef_.shape == (1, 2)


def test_constant_columns_stay_what_they_are():
    """With bounds and a norm together, too."""
    X = np.column_stack([RNG(0).normal(size=(2000, 2)).clip(-4, 4), np.full(2000, 1000.0)])
    pca = DPPCA(5.0, delta=1e-5, bounds=([-4, -4, 1000], [4, 4, 1000]), data_norm=1.2, random_state=0).fit(X)
    out = pca.transform(X)
    assert (out.std(axis=0)[:2] > 0.9).all()
    assert_allclose(pca.inverse_transform(out), X, atol=1e-9)


def test_scores_leave_out_columns_that_are_constant():
    X = np.column_stack([rows(2000), np.full(2000, 3.0)])
    model = DPCovariance(**{**BOX, "bounds": ([-1] * 5 + [3], [1] * 5 + [3])}).fit(X)
    other = DPCovariance(**BOX).fit(X[:, :5])
    assert model.score(X) == pytest.approx(other.score(X[:, :5]), abs=1.0)


def test_totals_of_many_columns_are_those_of_the_rows():
    """Noise of means adds up over columns; 12 totals have a standard error of some 3.5 (seeded), and were off by 12
    without what is taken off for it."""
    X = np.clip(0.3 * RNG(0).normal(size=(3000, 500)), -1, 1)
    found = [DPPCA(1.0, delta=1e-6, bounds=(-1, 1), n_components=2, method="power", random_state=seed).fit(X)
             for seed in range(12)]
    totals = [pca.explained_variance_.sum() + 498 * pca.noise_variance_ for pca in found]
    assert np.mean(totals) == pytest.approx(X.var(axis=0).sum(), abs=8)


def test_variances_fall_in_the_order_of_components():
    for seed in range(20):
        X = RNG(seed).normal(size=(600, 6)).clip(-3, 3) * [2, 1, 1, 1, 0.5, 0.5]
        pca = DPPCA(1.0, delta=1e-6, bounds=(-6, 6), random_state=seed).fit(X)
        assert (np.diff(pca.explained_variance_) <= 1e-12).all()
        some = DPPCA(1.0, delta=1e-6, bounds=(-6, 6), n_components=0.6, random_state=seed).fit(X)
        assert some.n_components_ == (np.cumsum(pca.explained_variance_ratio_) < 0.6 - 1e-12).sum() + 1
        assert np.isclose(pca.explained_variance_ratio_.sum(), 1)
        assert_array_equal(some.components_, pca.components_[: some.n_components_])


def test_precisions_know_that_noise_hides_small_variances():
    """Few rows, so that some eigenvalues of the repaired matrix are 0: rows far off are far, and scores are finite."""
    X = RNG(0).normal(size=(1000, 10)).clip(-4, 4) * np.linspace(1, 0.2, 10)
    for seed in range(5):
        model = DPCovariance(1.0, delta=1e-6, bounds=(-4, 4), random_state=seed).fit(X)
        least = np.linalg.eigh(model.covariance_)[1][:, 0]
        typical = np.median(model.mahalanobis(X))
        assert model.mahalanobis((model.location_ + 3 * least / np.abs(least).max())[None])[0] > 2 * typical
        assert -20 < model.score(X) < EmpiricalCovariance().fit(X).score(X)


# ---------------------------------------------------------------- power iteration


class Recorded(power.Rows):
    """Rows whose answers are exact, and kept as the integers that were to get noise."""

    def _noisy(self, whole):
        self.integers = [*getattr(self, "integers", []), np.ravel(whole).tolist()]
        return whole.astype(float)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("bounds", [None, (-1, 1)])
def test_replaced_rows_move_rounds_by_no_more_than_was_paid_for(bounds, centred):
    """All pairs of rows of a lattice, bases of several directions: what they move, and that it is nearly met."""
    law = power.power_law(Fraction(1), Fraction(1, 10**6), 2, 2, centred)
    domain = row_map(bounds, 1.0, (-1, 1), centred, 2)
    bases = [np.linalg.qr(RNG(k).normal(size=(2, 2)))[0] for k in (0, 1)]
    points = [(a, b) for a in (-1, -0.6, 0, 0.3, 1) for b in (-1, -0.8, 0, 0.5, 1)]
    told = []
    for point in points:
        asked = Recorded(np.array([point], float), domain, law, None)
        asked.means(centred, np.ones(2))
        for basis in bases:
            asked.product(basis)
        told.append([value for part in asked.integers for value in part])
    moved = max(math.dist(a, b) for a in told for b in told)
    assert 0.8 * float(law.sensitivity) < moved <= float(law.sensitivity)
    # the exact condition of normal noise for that distance
    far = float(law.sensitivity) / law.sigma
    assert ndtr(far / 2 - 1 / far) - math.e * ndtr(-far / 2 - 1 / far) <= 1e-6


def test_public_bases_lengthen_nobody():
    for d, k in ((1, 1), (3, 3), (200, 7)):
        basis = np.linalg.qr(RNG(d).normal(size=(d, k)))[0]
        whole = power.public_basis(basis)
        assert np.linalg.svd(whole, compute_uv=False)[0] <= 2**20
        assert np.abs(whole / 2**20 - basis).max() < 1e-4
    assert np.linalg.svd(power.public_basis(np.eye(2) * 1.5), compute_uv=False)[0] <= 2**20


def test_power_iteration_finds_what_there_is_to_find():
    X = rows(20_000)
    for how in ({"data_norm": 2.0, "bounds": None}, {"bounds": ([-1, -2, -1, -1, -3], [1, 1, 1, 2, 1])}):
        pca = DPPCA(**{**BOX, "epsilon": 50.0, **how}, n_components=2, method="power", iterated_power=8).fit(X)
        plain = PCA(2).fit(X)
        assert_allclose(np.abs(np.sum(pca.components_ * plain.components_, axis=1)), 1, atol=1e-3)
        assert_allclose(pca.components_ @ pca.components_.T, np.eye(2), atol=1e-9)
        assert_allclose(pca.explained_variance_, plain.explained_variance_, rtol=0.02)
        assert_allclose(pca.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=0.05)
        assert_allclose(pca.mean_, plain.mean_, atol=2e-3)
    about = DPPCA(**{**BOX, "epsilon": 50.0}, n_components=1, method="power", assume_centered=True).fit(X)
    assert (about.mean_ == 0).all()


def test_what_power_iteration_cannot_do_is_refused_before_it_is_paid(monkeypatch):
    X, ledger = rows(50), Ledger(5, delta=0.1, durability="fast")
    good = {**BOX, "method": "power", "n_components": 2, "ledger": ledger}
    for bad in ({"delta": 0}, {"n_components": 0.5}, {"n_components": None}, {"shrinkage": 0.1}, {"method": "qr"},
                {"iterated_power": 0}, {"iterated_power": True}, {"n_components": 6}):
        with pytest.raises(ValueError, match=r"method|iterated_power|n_components"):
            DPPCA(**{**good, **bad}).fit(X)
    monkeypatch.setattr("dpestim.decomposition.power.MOST_ROWS", 50)
    with pytest.raises(ValueError, match="fewer than 50 rows"):
        DPPCA(**good).fit(X)
    with pytest.raises(ValueError, match="each round of 'power'"):
        DPPCA(**good).summarize(X)
    assert not len(ledger)
    assert DPPCA(**good).fit(X[:49]).n_components_ == 2
    assert ledger.spent().epsilon == 1


def test_how_many_components():
    X = rows(20_000)
    frame = pd.DataFrame(X, columns=list("abcde"))
    pca = DPPCA(**{**BOX, "epsilon": 20.0}, n_components=0.9).fit(frame)
    assert 1 <= pca.n_components_ < 5
    assert pca.explained_variance_ratio_.sum() >= 0.9 > pca.explained_variance_ratio_[:-1].sum()
    assert list(pca.get_feature_names_out()) == [f"dppca{k}" for k in range(pca.n_components_)]
    assert DPPCA(**BOX).fit(X).n_components_ == 5
    for bad in (0, -1, 1.0, 1.5, True, "mle", 6, math.nan):
        ledger = Ledger(5, delta=0.1, durability="fast")
        with pytest.raises(ValueError, match="n_components"):
            DPPCA(**BOX, n_components=bad, ledger=ledger).fit(X)
        assert not len(ledger)
    with pytest.raises(ValueError, match="columns"):
        pca.inverse_transform(X[:, :1].repeat(9, axis=1))


@pytest.mark.parametrize("cls", [DPCovariance, DPPCA])
def test_bad_parameters_are_refused_before_anything_is_paid(cls):
    X = rows(50)
    for name, values in {"shrinkage": (-0.1, 1.1, "none", math.nan, None, True), "assume_centered": (1, "no", None),
                         "data_norm": (0, -1, math.inf, "1"), "delta": (-1e-9, 1, "0"),
                         "epsilon": (0, 81), "neighbours": ("local", 1)}.items():
        for value in values:
            ledger = Ledger(100, delta=0.1, durability="fast")
            with pytest.raises(ValueError, match=name):
                cls(**{**BOX, "ledger": ledger, name: value}).fit(X)
            assert not len(ledger)


def test_strict_mode_takes_any_rows_and_columns_that_do_not_vary():
    with dpestim.config_context(strict=True):
        for X in (np.full((3, 2), np.nan), np.zeros((0, 2)), np.ones((1, 2)), np.array([[1, np.inf], [2, 3]])):
            for how in ({"bounds": (-1, 1)}, {"bounds": None, "data_norm": 1.0}, {"bounds": ([0, 2], [1, 2])},
                        {"neighbours": "add_remove", "delta": 0.0}):
                pca = DPPCA(**{**BOX, **how}).fit(X)
                assert np.isfinite(pca.components_).all()
                assert np.isfinite(pca.transform(X)).all()
                model = DPCovariance(**{**BOX, **how}).fit(X)
                assert np.isfinite(model.covariance_).all()
                assert np.isfinite(model.mahalanobis(X)).all()
        with pytest.raises(ValueError, match="strict"):
            model.score(np.ones((3, 2)))


def test_a_score_is_entered_and_a_fit_says_what_it_promised():
    ledger, X = Ledger(5, delta=0.1, durability="fast"), rows(5000)
    model = DPCovariance(**BOX, ledger=ledger).fit(X)
    assert ledger.spent().epsilon == 1 == model.privacy_.epsilon
    assert model.score(X) == pytest.approx(EmpiricalCovariance().fit(X).score(X), rel=0.5)
    assert len(ledger) == 2
    assert ledger.spent().epsilon == 1
    for bad in ((np.eye(4), "frobenius"), (np.eye(5), "nuclear")):
        with pytest.raises(ValueError, match=r"comp_cov|norm"):
            model.error_norm(*bad)
