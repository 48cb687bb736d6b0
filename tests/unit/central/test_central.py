"""Mechanisms on answers: kernels at their ties, laws against closed forms, deltas against the literature, faces."""

import math
import struct
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpestim._core import noise
from dpestim.accounting import Ledger
from dpestim.central import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    SnappingMechanism,
    StaircaseMechanism,
)
from dpestim.central.additive.discrete_gaussian import DiscreteGaussianLaw
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw, _thresholds_of, digit_laws
from dpestim.central.additive.gaussian import _INTEGER_THRESHOLDS, RoundedGaussianLaw, _at_most
from dpestim.central.additive.normal import (
    analytic_delta,
    analytic_ratio,
    classic_ratio,
    discrete_delta,
    discrete_sigma,
    upper_tail,
)
from dpestim.central.additive.snapping import SnappingLaw, log, uniform
from dpestim.central.additive.staircase import StaircaseLaw
from dpestim.central.exact_bernoulli import binary_digit, exp_bounds, exponential_tables, power, threshold
from dpestim.exact_reals import BitStream, Real
from dpestim.exceptions import BudgetExceededError
from dpestim.privacy.curve import ConcentratedLaw, curve_delta
from dpestim.privacy.exact import canonical_epsilon, exp_lower, exp_upper
from dpestim.rng import WordSource

ALPHA = 1e-6
MECHANISMS = [LaplaceMechanism, DiscreteLaplaceMechanism, GaussianMechanism, DiscreteGaussianMechanism,
              StaircaseMechanism]


class Script:
    """Words that are dealt out one by one."""

    def __init__(self, *words):
        self.words = list(words)

    def word(self):
        return self.words.pop(0)


def laplace(epsilon, sensitivity=1):
    return DiscreteLaplaceLaw(canonical_epsilon(epsilon), Fraction(0), Fraction(sensitivity), 0)


def gaussian(epsilon, delta, size=1, sensitivity=1):
    return DiscreteGaussianLaw(canonical_epsilon(epsilon), Fraction(str(delta)), Fraction(sensitivity), 0, size)


# ---------------------------------------------------------------- digits


@pytest.mark.parametrize("x", [Fraction(1, 10**12), Fraction(1, 3), Fraction(40), Fraction(2000)])
def test_probabilities_are_enclosed(x):
    for n_digits in (40, 60, 200):
        mpmath.mp.dps = n_digits + 40
        exact = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)
        for bounds, wanted in ((power(x), exact), (binary_digit(x), exact / (1 + exact))):
            low, high = (mpmath.mpf(end.numerator) / end.denominator for end in bounds(n_digits))
            assert low <= wanted <= high <= low * (1 + mpmath.mpf(10) ** -n_digits)
    mpmath.mp.dps = 15


def test_the_tables_and_the_polynomial_are_as_near_as_the_proof_says():
    rng = np.random.default_rng(0)
    g = np.r_[rng.integers(0, 2**64, 3000, dtype=np.uint64), np.uint64(2) ** np.arange(64, dtype=np.uint64),
              np.arange(50, dtype=np.uint64), (np.uint64(1) << np.uint64(40)) - np.arange(1, 50, dtype=np.uint64)]
    out = np.empty(len(g), np.uint64)
    noise.exponentials(g, exponential_tables(), out)
    mpmath.mp.dps = 60
    off = [int(o) - mpmath.exp(-mpmath.mpf(int(x)) / 2**58) * 2**64 for x, o in zip(g, out)]
    mpmath.mp.dps = 15
    assert 100 < max(map(abs, off)) < 256


def test_products_of_bounds_give_the_first_bits_of_each_power():
    places = [(i, unit) for n, unit in ((64, 1), (512, 1 << 9), (512, 1 << 18)) for i in range(n)]
    for (i, unit), found in list(zip(places, exponential_tables().tolist()))[::7]:
        assert found == (threshold(power(Fraction(i, unit)), 64) if i else 2**64 - 1)


def test_a_real_is_compared_with_as_many_digits_as_it_takes():
    p = power(Fraction(1, 3))
    digits = threshold(p, 256)
    words = [digits >> 192 - 64 * k & 2**64 - 1 for k in range(4)]
    for change, wanted in ((-1, True), (1, False)):
        real = Real(Script(*words[1:3], words[3] + change), words[0], 64)
        assert real.is_below(p) is wanted
        assert real.n_bits == 256
    real = Real(Script(), words[0] - 1, 64)
    assert real.is_below(p)
    assert real.n_bits == 64


# ---------------------------------------------------------------- kernels


def test_a_tie_in_any_lane_is_left_to_be_settled():
    law = laplace(1.0)
    n = len(law._lanes[0])
    for lane in range(n + 1):
        for off in (-1, 0, 1):
            lanes = np.full(2 * law.per, 2**32 - 1, np.uint32)
            lanes[1 + lane] = max(int(law._thresholds[lane]) + off, 0)
            out = np.empty(1, np.int64)
            decided, written = law._attempts(lanes.view(np.uint64), out)
            tied = int(lanes[1 + lane]) == int(law._thresholds[lane])
            assert (decided, written) == ((0, 0) if tied else (1, int(lane < n and off < 0)))
            if written:
                assert out[0] == -(1 << lane)


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 3), Fraction(23), Fraction(7, 10**12),
                                  Fraction(10**9 + 7, 10**8)])
def test_first_digits_are_those_of_each_probability(rate):
    digits, overflow = digit_laws(rate)
    assert _thresholds_of(rate).tolist() == [threshold(p, 32) for p in (*digits, overflow)]


def test_settled_digits_decide_a_tie_both_ways():
    """The lane holds the first 32 digits of its probability; what decides are the 64 that follow."""
    law = laplace(1.0)
    p = law._lanes[0][1]
    lanes = np.full(2 * law.per, 2**32 - 1, np.uint32)
    lanes[0], lanes[2] = 0, law._thresholds[1]
    words = lanes.view(np.uint64).tolist()
    following = threshold(p, 96) & 2**64 - 1
    assert law._settle(words, Script(following - 1)) == 2
    assert law._settle(words, Script(following + 1)) == 0


def test_numbers_beyond_the_digits_are_settled_too():
    law = laplace(1.0)
    n = len(law._lanes[0])
    lanes = np.full(2 * law.per, 2**32 - 1, np.uint32)
    lanes[0], lanes[n + 1] = 1, 0
    words = lanes.view(np.uint64).tolist()
    assert law._settle(words, Script(0, 2**64 - 1)) == -(1 << n)  # 96 zeros are below e^-24, a word of ones is not
    assert law._settle(words, Script(0, 0, 2**63)) == -(2 << n)


def test_draws_go_through_ties(monkeypatch):
    """A coarse kernel that ties nearly always gives the same noise as one that never does."""
    law = laplace(0.5)
    wanted = law.draw(WordSource(5), 300)
    calls = []

    def nothing(self, words, out):
        calls.append(len(words))
        return 0, 0

    monkeypatch.setattr(DiscreteLaplaceLaw, "_attempts", nothing)
    assert np.array_equal(law.draw(WordSource(5), 300), wanted)
    assert len(calls) > 300


@pytest.mark.parametrize("law", [
    laplace(1.0), laplace(2.0, 7), DiscreteLaplaceLaw(Fraction(200_000), Fraction(0), Fraction(1), 0),
    laplace(0.001, 7), laplace(30.0), gaussian(1.0, 1e-5), gaussian(0.01, 1e-6), gaussian(20.0, 1e-3),
    RoundedGaussianLaw(Fraction(1), Fraction(1, 10**5), Fraction(4097), -12),
    RoundedGaussianLaw(Fraction(40), Fraction(1, 10), Fraction(4097), -12),
    StaircaseLaw(Fraction(1), Fraction(0), Fraction(7), 0), StaircaseLaw(Fraction(6), Fraction(0), Fraction(4097), -12),
    StaircaseLaw(Fraction(1, 2), Fraction(0), Fraction(1), 0),
    StaircaseLaw(Fraction(1, 2), Fraction(0), Fraction(5), 0),
], ids=repr)
def test_noise_has_its_law(law):
    n = 100_000
    z = law.draw(WordSource(0), n)
    scale = math.sqrt(law.variance_steps)
    edges = sorted({0, *(math.ceil(scale * x) for x in (0.2, 0.5, 1, 1.5, 2, 2.5))})
    expected, observed = [float(law.probability(0)[0])], [(z == 0).sum()]
    tails = [float(law.beyond(k)) / 2 for k in [1, *edges[1:]]]
    for k, (low, high) in enumerate(zip([1, *edges[1:]], [*edges[1:], None])):
        share = tails[k] - (tails[k + 1] if high is not None else 0)
        for sign in (1, -1):
            expected.append(share)
            observed.append(((sign * z >= low) & ((sign * z < high) if high is not None else True)).sum())
    expected, observed = np.array(expected) * n, np.array(observed)
    keep = expected > 5
    if keep.sum() > 1:
        assert stats.chi2.sf(((observed - expected)[keep] ** 2 / expected[keep]).sum(), keep.sum() - 1) > ALPHA
    assert observed[~keep].sum() <= 5 * keep.size + 20


# ---------------------------------------------------------------- laws


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_discrete_laplace_is_exact(epsilon):
    law, e = laplace(epsilon, 3), canonical_epsilon(epsilon)
    assert law.rate_of_decay * 3 == e
    a = math.exp(-epsilon / 3)
    assert float(law.probability(-4)[0]) == pytest.approx((1 - a) / (1 + a) * a**4, rel=1e-12)
    assert float(law.beyond(4)) == pytest.approx(2 * a**4 / (1 + a), rel=1e-12)
    assert law.variance_steps == pytest.approx(2 * a / (1 - a) ** 2, rel=1e-12)


def test_epsilons_that_no_integer_expresses_are_refused_by_name():
    for mechanism in (LaplaceMechanism(1e-14, sensitivity=1.0), DiscreteLaplaceMechanism(1e-17, sensitivity=1),
                      GaussianMechanism(1e-16, delta=1e-17, sensitivity=1.0)):
        with pytest.raises(ValueError, match="epsilon"):
            mechanism.release(1)


@pytest.mark.parametrize("x", ["-30", "-4.5", "-1", "0", "0.001", "4.2", "6.99", "7.01", "10.9", "11.1", "12",
                               "38", "99"])
def test_normal_tails(x):
    mpmath.mp.dps = 120
    exact = mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) / 2
    off = abs(mpmath.mpf(str(upper_tail(Decimal(x)))) / exact - 1)
    mpmath.mp.dps = 15
    assert off < mpmath.mpf("1e-80")


@pytest.mark.parametrize(("epsilon", "wanted"), [(0.1, 30.75), (1.0, 3.731), (10.0, 0.4999)])
def test_the_analytic_gaussian_is_that_of_balle_and_wang(epsilon, wanted):
    e, delta = canonical_epsilon(epsilon), Fraction(1, 10**5)
    ratio = analytic_ratio(e, delta)
    assert ratio == pytest.approx(wanted, rel=2e-4)
    assert analytic_delta(e, ratio) <= Decimal("1e-5") < analytic_delta(e, ratio * (1 - 1e-8))


@pytest.mark.parametrize(("epsilon", "delta"), [("1e-6", "1e-9"), ("80", "1e-300"), ("1", "0.5"), ("1e-3", "0.9"),
                                               ("1e-9", "1e-12")])
def test_extreme_budgets(epsilon, delta):
    e, d = Fraction(epsilon), Fraction(delta)
    for size in (1, 2):
        sigma, known = discrete_sigma(e, d, Fraction(1), size)
        assert known <= d
        assert sigma > 1e4 or size > 1 or discrete_delta(e, sigma, 1) <= d
    ratio = analytic_ratio(e, d)
    assert analytic_delta(e, ratio) <= Decimal(delta) < analytic_delta(e, ratio * (1 - 1e-6))


def test_the_classic_gaussian_is_refused_where_it_is_not_proven():
    assert classic_ratio(Fraction(1, 10), Fraction(1, 10**5)) == pytest.approx(48.45, rel=2e-4)
    assert analytic_delta(Fraction(10), 0.4845) > Decimal("2e-5")  # what the formula would give, and its true delta
    with pytest.raises(ValueError, match="epsilon must be below 1"):
        GaussianMechanism(1.0, delta=1e-5, sensitivity=1.0, calibration="classic").release(0.0)


@pytest.mark.parametrize("sigma", [0.4, 1.0, 3.0, 11.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_delta_of_one_integer(sigma, epsilon):
    """Against the closed condition, term by term; smaller moves need no more; concentrated privacy is a bound."""
    e, shift = Fraction(str(epsilon)), 3
    z = np.arange(-2000, 2000)
    p = np.exp(-(z**2) / (2 * sigma**2))
    p /= p.sum()
    known = [discrete_delta(e, sigma, s) for s in range(1, shift + 1)]
    for s, delta in enumerate(known, 1):
        edge = epsilon * sigma**2 / s - s / 2
        closed = p[z > edge].sum() - math.exp(epsilon) * p[z > edge + s].sum()
        assert delta == pytest.approx(closed, rel=1e-6, abs=1e-13)
        assert delta <= curve_delta(ConcentratedLaw(0.5 * (s / sigma) ** 2), e)
    assert known == sorted(known)


def test_no_less_noise_would_do():
    e, delta = Fraction(1), Fraction(1, 10**5)
    sigma, known = discrete_sigma(e, delta, Fraction(1), 1)
    assert known <= delta < Fraction(discrete_delta(e, sigma * (1 - 1e-5), 1))
    several, _ = discrete_sigma(e, delta, Fraction(1), 2)
    assert sigma < several < 1.1 * sigma


def test_discrete_gaussian_probabilities():
    law = gaussian(0.05, 1e-6)
    assert law.sigma > 40
    z = np.arange(-20_000, 20_001)
    p = np.exp(-(z**2) / (2 * law.sigma**2))
    p /= p.sum()
    for k in (0, 1, 50, 300):
        assert float(law.probability(k)[0]) == pytest.approx(p[z == k][0], rel=1e-11)
    for k in (1, 50, 300):
        assert float(law.beyond(k)) == pytest.approx(p[np.abs(z) >= k].sum(), rel=1e-6)
    assert law.variance_steps == pytest.approx((z**2 * p).sum(), rel=1e-9)


def test_the_envelope_of_normal_numbers():
    total = sum(math.exp(-k * k / 2) for k in range(30))
    for k in range(10):
        low, high = _at_most(k)(40)
        assert high - low < Fraction(1, 10**40)
        assert float(low) == pytest.approx(sum(math.exp(-i * i / 2) for i in range(k + 1)) / total, rel=1e-14)
        assert threshold(_at_most(k), 63) == _INTEGER_THRESHOLDS[k]
    assert len(_INTEGER_THRESHOLDS) == 10


def test_the_staircase_keeps_epsilon_for_every_move():
    law = StaircaseLaw(Fraction(2), Fraction(0), Fraction(11, 2), 0)
    p = {z: law.probability(z) for z in range(-40, 41)}
    worst = max(p[z][0] / p[z + s][1] for z in range(-30, 31) for s in range(-5, 6))
    assert exp_lower(Fraction(2)) * (1 - Fraction(1, 10**30)) < worst <= exp_upper(Fraction(2))
    assert any(p[z][0] / p[z + 6][1] > exp_upper(Fraction(2)) for z in range(-30, 31))
    assert sum(float(high) for _, high in p.values()) == pytest.approx(1, abs=1e-6)
    mean_square = sum(z * z * float(law.probability(z)[0]) for z in range(-200, 201))
    assert law.variance_steps == pytest.approx(mean_square, rel=1e-12)


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 10.0])
def test_the_staircase_has_the_least_mean_absolute_noise(epsilon):
    law = StaircaseMechanism(epsilon, sensitivity=1.0).law()
    mean = np.abs(law.draw(WordSource(0), 200_000)).mean() * law.step
    assert mean == pytest.approx(1 / (2 * math.sinh(epsilon / 2)), rel=0.02)
    assert mean < 0.98 / epsilon


def test_answers_share_the_budget_of_the_staircase():
    mechanism = StaircaseMechanism(1.0, sensitivity=1.0)
    assert mechanism.law(8).epsilon == Fraction(1, 8)
    assert mechanism.law(8).sensitivity == mechanism.law().sensitivity


def test_an_unfair_place_is_rejected():
    """Steps of 1 and 3 places: of three, the words 0, and 2^64 / 3 rounded up, are one too many for their places."""
    out = np.empty(1, np.int64)
    for upper, coin, word, wanted in ((1, 1, 0, 0), (1, 1, 2**64 // 3, 1), (1, 1, 2**64 - 1, 1), (1, 0, 0, 1),
                                      (3, 0, 0, 0), (3, 0, 2**64 - 1, 1), (3, 1, 0, 1), (4, 1, 0, 1)):
        law = StaircaseLaw(Fraction(1), Fraction(0), Fraction(4), 0)
        vars(law)["upper"] = upper
        thresholds = law._thresholds
        lanes = np.full(2 * law.per - 2, 2**32 - 1, np.uint32)
        lanes[0] = 0
        lanes[len(thresholds)] = 2**32 - 1 if coin else 0  # lower, or upper
        words = np.r_[lanes.view(np.uint64), np.uint64(word)]
        assert noise.staircase(words, law.per, thresholds, 4, upper, out) == (1, wanted)
        assert law._settle(words.tolist(), None) == (out[0] if wanted else None)


def test_steps_of_the_staircase_are_as_likely_as_stated():
    """The share of the upper step, and the words that each place has, as fractions: their ratio is e^-epsilon."""
    for epsilon, sensitivity in ((Fraction(1), 7), (Fraction(4), 4097), (Fraction(80), 3), (Fraction(1, 100), 8191)):
        law = StaircaseLaw(epsilon, Fraction(0), Fraction(sensitivity), 0)
        lower = law.width - law.upper
        low, high = ((1 - p) * (2**64 // lower) / (p * (2**64 // law.upper)) for p in reversed(law._upper_share(60)))
        assert low <= 1 / exp_lower(epsilon)
        assert high >= 1 / exp_upper(epsilon)
        assert high / low < 1 + Fraction(1, 10**20)


# ---------------------------------------------------------------- faces


def made(cls, **params):
    delta = {"delta": 1e-5} if "delta" in cls().get_params() else {}
    return cls(**{"epsilon": 1.0, "sensitivity": 1, "random_state": 0, **delta, **params})


@pytest.mark.parametrize("cls", MECHANISMS)
def test_a_missing_sensitivity_is_never_no_noise(cls):
    ledger = Ledger(10.0, delta=0.1)
    with pytest.raises(ValueError, match="sensitivity must be declared"):
        made(cls, sensitivity=None, bounds=(0, 1), ledger=ledger).release(1)
    assert ledger.spent().is_nothing


@pytest.mark.parametrize("cls", MECHANISMS)
def test_a_ledger_pays_or_refuses(cls):
    ledger = Ledger(1.0, delta=1e-5, neighbours="add_remove")
    mechanism = made(cls, ledger=ledger, neighbours="add_remove")
    mechanism.release(np.zeros((3, 2), int))
    assert ledger.spent().epsilon == 1
    assert float(ledger.spent().delta) == (1e-5 if hasattr(mechanism, "delta") else 0)
    with pytest.raises(BudgetExceededError):
        mechanism.release(0)


def test_bounds_clip_answers_and_results():
    mechanism = LaplaceMechanism(0.1, sensitivity=1.0, bounds=(-1.0, 2.0), random_state=0)
    released = mechanism.release(np.r_[np.full(500, -1e9), np.full(500, 1e9)])
    assert released.min() == -1
    assert released.max() == 2
    assert set(np.sign(released)) == {-1, 0, 1} or len(set(released)) > 100


def test_low_bits_do_not_tell_answers_apart():
    """All outputs lie on one grid, which the answer has no part in: attacks on floating-point noise find nothing."""
    mechanism = LaplaceMechanism(1.0, sensitivity=1.0, random_state=None)
    step = mechanism.law(1000).step
    for answer in (0.0, 1.0, 0.1, 1e-9):
        released = mechanism.release(np.full(1000, answer)) / step
        assert (released == np.rint(released)).all()


def test_sensitivities_grow_with_the_rounding():
    law = LaplaceMechanism(1.0, sensitivity=1.0).law
    for size in (1, 7, 1000):
        steps = Fraction(1) / Fraction(2) ** law(size).exponent
        assert law(size).sensitivity == steps + size
        assert size * 4096 <= steps < size * 8192 + 4096
    law = GaussianMechanism(1.0, delta=1e-5, sensitivity=1.0).law
    for size in (1, 7, 1000):
        steps = Fraction(1) / Fraction(2) ** law(size).exponent
        assert 0 <= law(size).sensitivity - steps - Fraction(math.isqrt(size * 10**20), 10**10) < Fraction(1, 10**6)


@pytest.mark.parametrize("cls", MECHANISMS)
def test_bounds_of_any_kind_of_number(cls):
    for low, high in ((-1000, 1000), (np.int16(-1000), np.int64(1000))) + (
            () if cls._integers else ((Fraction(-1000), Fraction(1000)), (np.longdouble(-1000), np.float32(1000)))):
        released = made(cls, bounds=(low, high)).release(np.array([1, 2, 3]))
        assert released.dtype == (np.int64 if cls._integers else np.float64)


@pytest.mark.parametrize("cls", MECHANISMS)
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 80.0])
@pytest.mark.parametrize("sensitivity", [1e-12, 1, 1e12])
def test_what_cannot_be_drawn_is_refused_before_it_is_charged(cls, epsilon, sensitivity):
    for delta in (1e-300, 0.5) if "delta" in cls().get_params() else (None,):
        ledger = Ledger(80.0, delta=0.9)
        params = {} if delta is None else {"delta": delta}
        bounds = (-1000 * sensitivity, 1000 * sensitivity) if cls is SnappingMechanism else None
        mechanism = made(cls, epsilon=epsilon, sensitivity=sensitivity, bounds=bounds, ledger=ledger, **params)
        for values in (1, np.array([1, 2])):
            before = ledger.spent().epsilon
            try:
                mechanism.release(values)
            except ValueError:
                assert ledger.spent().epsilon == before
            except BudgetExceededError:
                assert epsilon == 80


@pytest.mark.parametrize("cls", MECHANISMS)
def test_tails_end(cls):
    law = made(cls, epsilon=80.0, sensitivity=1e-12 if cls._integers else 1.0, bounds=(-1000, 1000)).law()
    for t in (1e5, 1e9, 1e300, math.inf):
        assert 0 <= law.tail(t) < 1e-300


def test_deltas_that_floats_cannot_tell_are_refused():
    for cls in (GaussianMechanism, DiscreteGaussianMechanism):
        for delta in (Decimal("1e-400"), 5e-324, 9e-301, 1.0, 0, None):
            with pytest.raises(ValueError, match="delta must be"):
                made(cls, delta=delta).release(1)


def test_floats_are_taken_by_mechanisms_for_integers_only_where_they_are_integers():
    mechanism = DiscreteLaplaceMechanism(1.0, sensitivity=1, random_state=0)
    assert mechanism.release(3.0) == mechanism.release(3)
    with pytest.raises(ValueError, match="must be integers"):
        mechanism.release([0.5])
    with pytest.raises(ValueError, match="at most 64 bits"):
        LaplaceMechanism(1.0, sensitivity=1).release(np.zeros(2, np.longdouble))


def test_size_and_confidence_are_checked():
    mechanism = LaplaceMechanism(1.0, sensitivity=1.0)
    for size in (0, 1.5, True, "1"):
        with pytest.raises(ValueError, match="size"):
            mechanism.variance(size)
    for confidence in (0, 1, "1", True):
        with pytest.raises(ValueError, match="confidence"):
            mechanism.half_width(confidence)
    assert mechanism.tail(np.float32(2.5)) == mechanism.tail(Fraction(5, 2)) == mechanism.tail(2.5)
    assert mechanism.half_width(np.float32(0.75)) == mechanism.half_width(Fraction(3, 4)) == mechanism.half_width(0.75)


def test_kernels_refuse_lengths_that_differ():
    out, words = np.empty(3, np.int64), np.zeros(8, np.uint64)
    thresholds, tables = np.zeros(4, np.uint32), exponential_tables()
    for call in (
        lambda: noise.discrete_laplace(words, 1, thresholds, out),
        lambda: noise.discrete_gaussian(words, 2, thresholds, 0, 1, 5, 40, 9, tables, out),
        lambda: noise.discrete_gaussian(words, 4, thresholds, 0, 1, 60, 40, 9, tables, out),
        lambda: noise.rounded_gaussian(words, np.zeros(3, np.uint64), 1 << 60, 1, 9, tables, out),
        lambda: noise.rounded_gaussian(words, np.zeros(3, np.uint64), 1, 1, 9, tables[:5], out),
        lambda: noise.exponentials(words, tables[:5], words),
        lambda: noise.staircase(words, 1, thresholds, 8, 3, out),
        lambda: noise.staircase(words, 4, thresholds, 0, 3, out),
    ):
        with pytest.raises(ValueError, match="length"):
            call()
    assert exp_bounds(Fraction(0), 40)[0] <= 1 <= exp_bounds(Fraction(0), 40)[1]


# ---------------------------------------------------------------- snapping


def exact_snapping(law, answer):
    """Return {result: probability, a Fraction}, by the floats u at which the result changes; P[u < v] = v."""
    out = {}
    for sign in (1, -1):

        def steps(bits, sign=sign):  # the float of these bits, floats above 0 being in the order of their bits
            return round(law.snap(answer, sign, Fraction(struct.unpack("d", struct.pack("Q", bits))[0])) / law.grid)

        first, last = 1 << 52, struct.unpack("Q", struct.pack("d", math.nextafter(1.0, 0.0)))[0]
        before = 0
        while True:
            here, low, high = steps(first), first, last + 1
            while high - low > 1:  # the last float with this result: the result is monotone in u
                middle = (low + high) // 2
                low, high = (middle, high) if steps(middle) == here else (low, middle)
            edge = Fraction(struct.unpack("d", struct.pack("Q", high))[0]) if high <= last else Fraction(1)
            out[here] = out.get(here, 0) + (edge - before) / 2
            if high > last:
                break
            first, before = high, edge
    return out


@pytest.mark.parametrize("epsilon", ["1/2", "1", "3", "10"])
@pytest.mark.no_kernel
def test_snapping_is_private_exactly(epsilon):
    """The exact law, for answers 1 apart: every ratio is within e^epsilon, and half the noise would not be."""
    law = SnappingLaw(Fraction(epsilon), 4.0, 0)
    for answer in (-4.0, -1.3, 0.1, 2.0):
        one, two = exact_snapping(law, answer), exact_snapping(law, answer + 1.0)
        assert sum(one.values()) == sum(two.values()) == 1
        assert one.keys() == two.keys()
        ratios = [max(one[y] / two[y], two[y] / one[y]) for y in one]
        assert max(ratios) <= exp_upper(law.epsilon)
    assert max(ratios) > exp_lower(law.epsilon * Fraction(1, 2))


def test_the_floats_of_snapping():
    assert uniform(Script(2**63, 0)) == 0.5
    assert uniform(Script(0, 2**62, 2**64 - 1)) == Fraction(2**53 - 1, 2**118)
    assert uniform(Script(*[0] * 30, 2**63, 0)) == Fraction(1, 2**1921)
    drawn = [float(uniform(noise_words(k))) for k in range(3000)]
    assert stats.kstest(drawn, "uniform").pvalue > ALPHA
    mpmath.mp.dps = 60
    for x in (0.5, 1 - 2**-53, 2.0**-1022, 0.3, 1e-200):
        assert log(Fraction(x)) == float(mpmath.log(mpmath.mpf(x)))
    assert log(Fraction(1, 2**5000)) == float(-5000 * mpmath.log(2))
    mpmath.mp.dps = 15


def noise_words(seed):
    return BitStream(WordSource(seed).reader(), 0, 0)


def test_snapping_in_units_of_a_power_of_two():
    for sensitivity, exponent in ((1, 0), (0.5, -1), (0.3, -1), (0.51, 0), (1.5, 1), (2, 1), (2.5, 2), (1e-9, -29)):
        mechanism = SnappingMechanism(1.0, sensitivity=sensitivity, bounds=(-100.0, 100.0))
        assert mechanism.law().exponent == exponent
        assert mechanism.law(4).epsilon == Fraction(1, 4)
    law = mechanism.law()
    assert law.scale * law.epsilon >= 1
    assert law.scale <= law.grid < 2 * law.scale


def test_noise_of_snapping_is_as_large_as_stated():
    mechanism = SnappingMechanism(2.0, sensitivity=1.0, bounds=(-1000.0, 1000.0), random_state=0)
    answers = np.random.default_rng(0).uniform(-100, 100, 4000)
    off = mechanism._noisy(answers, mechanism.law(), WordSource(0)) - answers
    assert off.var() == pytest.approx(mechanism.variance(), rel=0.25)
    for confidence in (0.5, 0.9, 0.99):
        width = mechanism.half_width(confidence)
        assert mechanism.tail(width) <= 1 - confidence
        assert (np.abs(off) <= width).mean() > confidence - 0.02


@pytest.mark.parametrize("epsilon", ["1/2", "3"])
def test_widths_of_snapping_are_the_least_that_hold_for_all_answers(epsilon):
    """No answer is worse than `tail` says, and some are next to it, by the law for each place between two results."""
    law = SnappingLaw(Fraction(epsilon), 2.0**20, 0)
    places = np.r_[np.linspace(-0.5, 0.5, 33), np.linspace(-0.5, 0.5, 33)[1:] - 1e-9][:, None]
    results = np.arange(-200, 201)
    edges = stats.laplace(scale=law.scale / law.grid).cdf(np.r_[results - 0.5, 200.5] - places)

    def worst(w):  # in steps
        return (np.diff(edges) * (np.abs(results - places) > w)).sum(axis=1).max() + edges[:, 0].max() * 2

    for w in (0.25, 0.53125, 0.875, 1.03125, 1.46875, 2.125, 3.0625):
        assert worst(w) * (1 - 1e-9) <= law.tail(w * law.grid) <= 1.0001 * worst(w)
    for confidence in (0.5, 0.9, 0.99):
        width = law.half_width(confidence)
        assert law.tail(width) <= 1 - confidence < law.tail(width * (1 - 1e-12))
        assert worst(width / law.grid) <= 1 - confidence + 1e-9


def test_snapping_needs_a_range_that_suits_it():
    for bounds in (None, (0.0, 1.0), (-0.5, 0.5), (-1e17, 1e17)):
        with pytest.raises(ValueError, match="bounds"):
            SnappingMechanism(1.0, sensitivity=1e-3 if bounds and bounds[1] > 1e9 else 1.0, bounds=bounds).release(0.0)


@pytest.mark.parametrize("cls", [*MECHANISMS, SnappingMechanism])
def test_an_epsilon_that_no_law_has_is_refused_quickly_and_without_warnings(cls, recwarn):
    params = {"delta": 1e-5} if "delta" in cls().get_params() else {}
    params["bounds"] = (-1, 1)
    for epsilon in (5e-324, 1e-300, Fraction(1, 10**400)):
        with pytest.raises(ValueError, match="epsilon is too small: it must be at least 1e-100"):
            cls(epsilon, sensitivity=1e-60 if cls is SnappingMechanism else 1, **params).release(0)
    least = cls(1e-100, sensitivity=1, **params)
    if "delta" in params:
        assert abs(least.release(0)) <= 1
    else:  # what integers hold is not wide enough
        with pytest.raises(ValueError, match=r"too small|wider than the noise"):
            least.release(0)
    assert not recwarn.list


@pytest.mark.ci
@pytest.mark.parametrize("epsilon", [1, 10, 20, 40])
def test_rounded_noise_of_any_size_has_the_variance_that_it_states(epsilon):
    """Below one step it is much less than sigma^2 + 1/12: rounding makes most of it 0."""
    law = RoundedGaussianLaw(Fraction(epsilon), Fraction(1, 10**5), Fraction(1), 0)
    true = 2 * sum(z * z * law.probability(z)[1] for z in range(1, 60 + math.ceil(12 * law.sigma)))
    assert law.variance_steps == pytest.approx(float(true), rel=1e-9, abs=1e-290)
    if law.sigma < 0.2:
        assert law.variance_steps < (law.sigma**2 + 1 / 12) / 5
