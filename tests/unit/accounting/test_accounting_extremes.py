"""Accounting where numbers are extreme: small samples, declared sums, huge epsilons, very many releases."""

import math
import sys
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from dpestim.accounting import (
    PrivacyLossDistribution,
    calibrate,
    largest_rho,
    optimal_delta,
    optimal_epsilon,
    subsampled,
)
from dpestim.accounting.composition import equal_delta
from dpestim.accounting.loss_pairs import Laplace, Sampled
from dpestim.privacy import ZCDP, Neighbours, PrivacyGuarantee

calibrate_module = sys.modules["dpestim.accounting.calibration"]

TWENTY = 20_000_000  # bytes; where rows had no bound, one release took 6,500,000,000


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(60):
        yield


def sampled_delta(sigma, rate, epsilon):
    """The delta of one sampled Gaussian, by its two half-lines."""
    d, q, e = 1 / mpf(sigma), mpf(rate), mp.exp(mpf(epsilon))
    x = mp.log((e - 1 + q) / q) / d + d / 2
    removed = (1 - q) * mp.ncdf(-x) + q * mp.ncdf(d - x) - e * mp.ncdf(-x)
    if 1 / e <= 1 - q:
        return removed
    x = mp.log((1 / e - 1 + q) / q) / d + d / 2
    return max(removed, mp.ncdf(x) - e * ((1 - q) * mp.ncdf(x) + q * mp.ncdf(x - d)))


@pytest.mark.parametrize(("sigma", "rate", "loose"), [(1.0, 1e-3, 1e-2), (0.6, 1e-4, 1e-2), (0.6, 1e-9, 1e-2)])
def test_small_samples_take_little_memory_and_are_never_below_the_truth(sigma, rate, loose):
    tracemalloc.start()
    losses = PrivacyLossDistribution.gaussian(sigma, sampling_rate=rate)
    found = [losses.delta(epsilon) for epsilon in (0.0, 0.3 * rate, 1.0)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * TWENTY
    truths = [sampled_delta(sigma, rate, epsilon) for epsilon in (0.0, 0.3 * rate, 1.0)]
    assert all(delta >= truth for delta, truth in zip(found, truths))
    assert found[0] <= truths[0] * (1 + mpf(loose))
    assert found[2] <= truths[2] * (1 + mpf(loose)) + mpf(1e-20)


@pytest.mark.ci
@pytest.mark.parametrize(("losses", "delta", "most"), [
    # the epsilons of an account of another library, whose steps are 1e-4 and 1e-5, and a part more
    (PrivacyLossDistribution.gaussian(1.0, sampling_rate=1e-2).compose(10_000), 1e-5, 6.18774 * 1.001),
    (PrivacyLossDistribution.gaussian(1.0, sampling_rate=1e-3).compose(10_000), 1e-5, 0.47599 * 1.001),
    (PrivacyLossDistribution.gaussian(1.0, sampling_rate=1e-4).compose(1000), 1e-5, 0.01119 * 1.002),
    (PrivacyLossDistribution.gaussian(0.6, sampling_rate=1e-9).compose(100_000), 1e-5, 2e-5),
    (PrivacyLossDistribution.laplace(0.1, sampling_rate=1e-6).compose(1000), 1e-5, 0.0241),
])
def test_many_small_samples_are_answered(losses, delta, most):
    tracemalloc.start()
    epsilon = losses.epsilon(delta)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * TWENTY
    assert losses.interval(epsilon)[0] <= delta
    assert 0 < epsilon <= most


def test_the_spread_of_sampled_laplace_noise_is_known():
    shift, rate = 3.0, 0.01
    chi = mp.quad(lambda x: mp.exp(-abs(x)) / 2 * (mp.exp(abs(x) - abs(x - shift)) - 1) ** 2, [-60, 0, shift, 80])
    assert abs(Sampled(Laplace(shift), rate).variance / (rate**2 * chi) - 1) < 1e-9


def test_what_was_declared_is_certified_without_the_error_of_a_grid():
    losses = PrivacyLossDistribution.approximate(0.1, 1e-6)
    assert optimal_epsilon([0.1], 1e-6, [1e-6]) == losses.epsilon(1e-6) == 0.1  # both were inf
    assert 1e-6 < losses.delta(0.1) < 1e-6 * (1 + 1e-15)
    assert losses.interval(0.1)[0] <= losses.interval(0.1)[1] == losses.delta(0.1)
    assert losses.delta(0.0999) > 1e-6
    assert losses.epsilon(0.99e-6) == math.inf == optimal_epsilon([0.1], 9e-7, [1e-6])
    assert PrivacyLossDistribution.pure(1).epsilon(0) == 1.0
    assert PrivacyLossDistribution.pure(0.1).compose(10).epsilon(0) == 1.0
    both = losses + PrivacyLossDistribution.gaussian(10.0)
    assert both.epsilon(1e-6) == math.inf  # a sum of other things is no basic sum
    assert optimal_epsilon([0.1, 0.2], 3e-6, [1e-6, 2e-6]) >= 0.3 - 1e-5


def test_releases_of_nothing_are_left_out():
    assert optimal_delta([0.0] * 65_536, 0.5) == 0.0
    assert optimal_epsilon([0.0] * 9, 0.0) == 0.0
    assert optimal_delta([0.0] * 9 + [1.0], 0.5) == optimal_delta([1.0], 0.5)
    assert optimal_delta([0.0] * 9, 0.0, [1e-9] * 9) == pytest.approx(9e-9)


@pytest.mark.parametrize("epsilon", [1001, 10**9, 10**400])
def test_huge_epsilons_are_converted(epsilon):
    g = PrivacyGuarantee(Fraction(epsilon), Fraction(1, 10**300), model="central", neighbours=Neighbours.ADD_REMOVE)
    assert (g.to("substitution").epsilon, g.to("substitution").delta) == (2 * epsilon, 1)
    assert subsampled(g, 0.5, sampling="poisson").epsilon == epsilon
    pure = PrivacyGuarantee(Fraction(epsilon), model="central", neighbours=Neighbours.ADD_REMOVE)
    assert pure.to("substitution").delta == 0


@pytest.mark.ci
def test_budgets_of_very_many_releases_are_found_by_one_search(monkeypatch):
    counts = []
    monkeypatch.setattr(calibrate_module, "equal_delta", lambda *args: counts.append(args) or equal_delta(*args))
    each = calibrate(PrivacyGuarantee, epsilon=1, delta=1e-6, n_releases=100_000)
    assert len(counts) <= 40  # there were 19 times as many
    assert each["epsilon"] == pytest.approx(7.467e-4, rel=1e-3)
    for part in (2, 10, 19):  # with more of delta for the releases, this epsilon fits no longer
        assert equal_delta(Fraction(each["epsilon"]), Fraction(part, 20 * 10**11), 100_000, Fraction(1)) > 1e-6


def test_noise_is_calibrated_to_no_more_than_what_was_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(calibrate_module, "_least_noise", lambda family, *what: asked.append(what) or 1.0)
    calibrate(PrivacyLossDistribution.gaussian, epsilon=0.1, delta=0.1, n_releases=2)
    assert max(asked[0][:2]) <= Fraction(1, 10)  # the nearest float is above


def concentrated_truth(rho, delta):
    """The least epsilon over all orders, to 40 digits: no order gives less."""

    def at(u):
        t = mp.exp(u)
        return rho * (1 + t) - (mp.log1p(t) + t * mp.log1p(1 / t) + mp.log(delta)) / t

    near = mp.log(max(mp.sqrt(-mp.log(delta) / rho), mpf("1e-3")))
    low, high, golden = near - 6, near + 6, (mp.sqrt(5) - 1) / 2
    for _ in range(90):
        one, two = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, two) if at(one) < at(two) else (one, high)
    return max(at(low), mpf(0))


def exactly(x):
    """A number as the fraction that its shortest decimal form names."""
    x = Fraction(repr(x)) if isinstance(x, float) else x
    return mpf(x.numerator) / x.denominator


def test_concentrated_privacy_is_converted_against_the_one_who_asks():
    rng = np.random.default_rng(2)
    for _ in range(20):
        rho, delta, epsilon = (float(10 ** rng.uniform(*ends)) for ends in ((-12, 4), (-290, -1), (-4, 3)))
        truth, found = concentrated_truth(exactly(rho), mpf(delta)), ZCDP(rho).epsilon_at(Fraction(delta))
        assert truth <= exactly(found) <= truth * (1 + mpf(2e-6)) + mpf(1e-11)
        most = exactly(largest_rho(epsilon, max(delta, 1e-100)))
        delta = exactly(max(delta, 1e-100))
        assert concentrated_truth(most, delta) <= exactly(epsilon) < concentrated_truth(most * (1 + mpf(1e-5)), delta)


def pure_delta(x, n, epsilon):
    """The delta of n releases of epsilon x: the upper tail of a binomial law, from its first term on."""
    x, epsilon = exactly(x), exactly(epsilon)
    p, k = 1 / (1 + mp.exp(-x)), int(mp.floor((epsilon / x + n) / 2)) + 1
    term = mp.exp(mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1) + k * mp.log(p)
                  + (n - k) * mp.log1p(-p))
    odds, total, gap, step = mp.exp(x), mpf(0), mp.exp(epsilon - (2 * k - n) * x), mp.exp(-2 * x)
    while k <= n and not term < total * mpf(1e-15):
        total += term * (1 - gap)
        term, gap, k = term * odds * (n - k) / (k + 1), gap * step, k + 1
    return total


@pytest.mark.parametrize(("x", "epsilon", "loose"), [
    (Fraction(1, 10**4), Fraction(305, 1000), 2e-2), (Fraction(1, 1000), Fraction(7, 2), 1e-2),
    (Fraction(1, 10**4), Fraction(805, 1000), 1e-1), (Fraction(1, 200), Fraction(55, 2), 1e-2)])
def test_a_million_pure_releases_are_never_below_the_truth(x, epsilon, loose):
    truth, found = pure_delta(x, 10**6, epsilon), equal_delta(x, Fraction(0), 10**6, epsilon)
    assert truth <= found <= truth * (1 + mpf(loose))
