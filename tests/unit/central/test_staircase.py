"""Staircase noise: exact laws, the folding, closed forms, extremes, and what errors say."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from dpestim.accounting import Ledger
from dpestim.local import DistributionEstimator, LaplaceTransformer, MeanEstimator, StaircaseTransformer
from dpestim.local.numbers.duchi import Duchi
from dpestim.local.numbers.hm import HM
from dpestim.local.numbers.laplace import Laplace
from dpestim.local.numbers.pm import PM
from dpestim.local.numbers.staircase import Staircase
from dpestim.privacy.exact import canonical_epsilon, log_ratio, within
from dpestim.privacy.number_weights import staircase_beyond


def best_gamma(b):
    """The optimum for the variance, as Geng et al. write it."""
    return -b / (1 - b) + math.cbrt(b - 2 * b**2 + 2 * b**4 - b**5) / (2 ** (1 / 3) * (1 - b) ** 2)


def unfolded(epsilon):
    """The smallest variance of staircase noise on the real line, values in [-1, 1]."""
    b = math.exp(-epsilon)
    return 4 * ((b * (1 + b) / 2) ** (2 / 3) + b) / (1 - b) ** 2


# ---------------------------------------------------------------- exactness, by Fractions


@pytest.mark.parametrize("gamma", [None, 0.01, 0.4, 1.0])
@pytest.mark.parametrize("grid", [4, 8, 32])
@pytest.mark.parametrize("epsilon", [0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0])
@pytest.mark.no_kernel
def test_every_ratio_and_every_mean_is_exact(epsilon, grid, gamma):
    r = Staircase.make(epsilon, grid, gamma)
    rows, z = r.transition_matrix(), r.outputs()
    for x, row in zip(r.inputs(), rows):
        assert sum(row) == 1
        assert min(row) > 0
        assert sum(p * at for p, at in zip(row, z)) == x
    columns = list(zip(*rows))
    assert all(within(max(c), min(c), r.epsilon) for c in columns)  # both directions of every pair of inputs
    assert 0.99 * epsilon <= max(log_ratio(max(c), min(c)) for c in columns)
    assert r.slack == ""


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1, 1, 5, 6.9, 7, 20, 80])
def test_what_lies_beyond_is_rounded_for_privacy(epsilon):
    mp = pytest.importorskip("mpmath").mp
    epsilon = canonical_epsilon(epsilon)
    beyond = staircase_beyond(epsilon)
    assert beyond.denominator <= 1 << max(0, 12 + 2 * int(epsilon))  # small: weights are rounded to multiples of it
    with mp.workdps(100):
        spent = mp.log(1 + mp.mpf(beyond.denominator) / beyond.numerator)
        whole = mp.mpf(epsilon.numerator) / epsilon.denominator
        assert whole * 0.997 < spent <= whole * 1023 / 1024 * (1 + mp.mpf(10) ** -60)


@pytest.mark.parametrize("gamma", [None, 0.2, 1.0])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_law_is_staircase_noise_whose_sums_beyond_the_bounds_are_folded(epsilon, gamma):
    grid, law = 16, Staircase.make(epsilon, 16, gamma)
    b = float(law.beyond / (1 + law.beyond))
    k = np.arange(-400 * grid, 400 * grid + 1)
    noise = b ** (np.abs(k) // grid + (np.abs(k) % grid >= law.flat))
    noise /= noise.sum()
    assert np.allclose(noise[k == 0], (1 - b) / (2 * law.flat + 2 * b * (grid - law.flat) - (1 - b)))
    codes = np.arange(1 - grid, 2 * grid)
    for g, row in enumerate(law.transition_matrix()):
        y = g + k
        folded = np.where(y >= grid, y % grid + grid, np.where(y <= 0, -(-y % grid), y))
        sums = np.bincount(folded + grid - 1, noise, minlength=len(codes))
        means = np.bincount(folded + grid - 1, noise * y, minlength=len(codes)) / sums
        assert np.allclose([float(p) for p in row], sums, rtol=1e-6)
        assert np.allclose(law.positions * grid, means, rtol=1e-6, atol=1e-6)  # whatever the input is


# ---------------------------------------------------------------- closed forms


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, 4.0, 9.0])
def test_gamma_is_the_optimum_for_the_variance(epsilon):
    mp = pytest.importorskip("mpmath").mp
    with mp.workdps(60):
        b = mp.exp(-mp.mpf(epsilon))
        exact = -b / (1 - b) + mp.cbrt(b - 2 * b**2 + 2 * b**4 - b**5) / (mp.cbrt(2) * (1 - b) ** 2)
    grid = 4 if epsilon < 1e-4 else 128
    if epsilon >= 1e-4:
        assert abs(Staircase.make(epsilon if epsilon > 1e-3 else 0.001, grid).flat - exact * grid) <= 0.5001
    short = (math.cbrt(math.exp(-epsilon) * (1 + math.exp(-epsilon)) / 2) - math.exp(-epsilon)) / -math.expm1(-epsilon)
    assert short == pytest.approx(float(exact), rel=1e-8)


@pytest.mark.ci
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 6.0])
def test_variance_is_that_of_unfolded_noise_less_the_spread_of_what_is_folded(epsilon):
    law = Staircase.make(epsilon)
    rows = np.array(law.table(), float) / 2**64
    b = float(law.beyond / (1 + law.beyond))
    folded = rows[:, :256].sum(axis=1) + rows[:, 511:].sum(axis=1)
    whole = 4 * (law.variance() + folded * b / (1 - b) ** 2)
    assert np.allclose(whole, unfolded(epsilon), rtol=0.02)
    for factor in (0.95, 1.05):
        assert not np.allclose(whole, unfolded(factor * epsilon), rtol=0.02)


@pytest.mark.parametrize("epsilon", [0.3, 0.7, 1.0, 4.0, 8.0])
def test_no_other_gamma_saves_much_of_the_largest_variance(epsilon):
    grid = 32  # what the law would be without rounding
    b, g, y = math.exp(-epsilon), np.arange(grid + 1)[:, None], np.arange(1 - grid, 2 * grid)
    worst = []
    for r in range(1, grid + 1):
        far, k = b / (1 - b), np.abs(y - g)
        p = b ** (k // grid + (k % grid >= r)) * np.where((y <= 0) | (y >= grid), 1 / (1 - b), 1.0)
        p /= p.sum(axis=1, keepdims=True)
        z = y / grid + far * (y >= grid) - far * (y <= 0)
        worst.append((p @ z**2 - (p @ z) ** 2).max())
    ours = worst[max(1, round(best_gamma(b) * grid)) - 1]
    assert min(worst) <= ours < 1.01 * min(worst)
    if epsilon > 3:  # the optimum for the mean absolute noise
        assert worst[max(1, round(grid / (1 + math.exp(epsilon / 2)))) - 1] > 1.05 * ours


@pytest.mark.ci
def test_the_table_that_tells_when_to_prefer_it():
    for line in StaircaseTransformer.__doc__.splitlines():
        numbers = line.split()
        if len(numbers) == 5 and numbers[0].replace(".", "").isdigit():
            epsilon = float(numbers[0])
            found = [4 * law.make(epsilon).variance().max() for law in (Staircase, Laplace, PM, HM)]
            assert [float(n) for n in numbers[1:]] == pytest.approx(found, rel=1e-3)
            assert (found[0] < found[3]) == (epsilon >= 5)
    stated = re.search(r"`PMTransformer` from about ([\d.]+) to ([\d.]+)\.", StaircaseTransformer.__doc__)
    low, high = (float(epsilon) for epsilon in stated.groups())
    for epsilon, less in ((low - 0.02, True), (low + 0.02, False), (high - 0.04, False), (high + 0.04, True)):
        assert (Staircase.make(epsilon).variance().max() < PM.make(epsilon).variance().max()) == less


@pytest.mark.ci
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 1.25, 1.35, 4.0, 4.7, 5.0, 8.0, 10.0])
def test_no_guide_recommends_what_another_beats(epsilon):
    """Of the largest variance, and of that in the middle of the bounds: what the tables and the docstrings say."""
    laws = {"HM": HM(epsilon), "PM": PM(epsilon), "Duchi": Duchi(epsilon), "Staircase": Staircase.make(epsilon),
            "Laplace": Laplace.make(epsilon)}
    worst = {name: law.sampled_variance(1, 1) for name, law in laws.items()}  # (between grid points, too)
    best = "HM" if epsilon < 4.87 else "Staircase"
    assert worst[best] < (1 + 1e-6) * min(worst.values())
    assert worst["HM"] < worst["Laplace"]
    assert (worst["Staircase"] < worst["Laplace"]) == (epsilon > 1.3)
    assert (worst["PM"] < worst["Laplace"]) == (epsilon > 0.8)
    middle = {name: law.variance()[law.n_inputs // 2] for name, law in laws.items() if name != "Duchi"}
    assert (min(middle, key=middle.get) == "PM") == (epsilon > 0.61)


@pytest.mark.parametrize("epsilon", [1, 3, 6, 10])
def test_of_many_columns_signs_of_some_have_less_variance(epsilon):
    def least(law, d):
        return min(law(Fraction(epsilon, k)).sampled_variance(d, k) for k in range(1, d + 1))

    assert least(Duchi, 16) < least(HM, 16)
    assert (least(Duchi, 8) > least(HM, 8)) == (epsilon > 3)  # and of few columns not


# ---------------------------------------------------------------- what users see


@pytest.mark.parametrize("epsilon", [0.01, 3.0, 30.0])
def test_means_are_right_for_several_columns(epsilon):
    rng = np.random.default_rng(0)
    n = 100_000
    X = np.column_stack([rng.uniform(-1, 0.5, n), rng.uniform(1000, 1010, n), np.full(n, -3.0)])
    bounds = ([-1.0, 1000.0, -4.0], [1.0, 1010.0, 4.0])
    noisy = StaircaseTransformer(epsilon, bounds=bounds, grid=64, random_state=1)
    estimate = MeanEstimator(noisy).fit(X)
    assert (np.abs(estimate.mean_ - X.mean(axis=0)) < 5 * estimate.standard_error_).all()
    assert (estimate.bias_ == 0).all()


def test_distributions_are_found():
    ages = np.clip(np.random.default_rng(0).normal(40, 8, (100_000, 1)), 0, 100)
    noisy = StaircaseTransformer(5.0, bounds=(0, 100), grid=128, random_state=0)
    estimate = DistributionEstimator(noisy, n_bins=32, smoothing=False).fit(ages)
    truth = np.histogram(ages, estimate.bin_edges_[0])[0] / len(ages)
    assert np.abs(estimate.distribution_[0] - truth).sum() < 0.15  # the sum of two unrelated ones is near 2
    assert abs(estimate.quantile(0.5)[0] - 40) < 1


@pytest.mark.parametrize("gamma", [0, -0.1, 1.5, True, "0.5", math.nan])
def test_gamma_must_be_a_share(gamma):
    with pytest.raises(ValueError, match="gamma must be"):
        StaircaseTransformer(1.0, bounds=(0, 1), gamma=gamma).privatize([[0.5]])


@pytest.mark.parametrize(("cls", "grid"), [(LaplaceTransformer, 4), (LaplaceTransformer, 64), (LaplaceTransformer, 256),
                                           (StaircaseTransformer, 4), (StaircaseTransformer, 64)])
def test_an_epsilon_that_is_too_small_is_refused_with_one_that_would_do(cls, grid, tmp_path):
    with Ledger(1.0, path=tmp_path / "ledger.db") as ledger:
        for epsilon in (1e-7, 1e-12):
            with pytest.raises(ValueError, match=f"epsilon is too small.*grid of {grid} steps") as error:
                cls(epsilon, bounds=(0, 1), grid=grid, ledger=ledger).privatize([[0.5]])
        enough = float(re.search(r"take (\S+) a column, or", str(error.value))[1])
        assert ledger.spent().epsilon == 0
        cls(enough, bounds=(0, 1), grid=grid, ledger=ledger).privatize([[0.5]])
        assert ledger.spent().epsilon == canonical_epsilon(enough)
        for more in np.exp(np.random.default_rng(0).uniform(0, 3, 5)):
            cls._randomizer.make(Fraction(float(more * enough)), grid)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**400), 5e-324, 1e-100, 1e-30])
def test_an_epsilon_that_is_hardly_any_is_refused(epsilon):
    for law in (Staircase, Laplace, HM):
        with pytest.raises(ValueError, match="epsilon is too small"):
            law.make(epsilon, 16)


def test_an_epsilon_that_is_too_large_is_refused():
    with pytest.raises(ValueError, match=r"epsilon is too large.*at most 12"):
        StaircaseTransformer(40, bounds=(0, 1)).privatize([[0.5]])
