"""Directed rounding of privacy parameters, against rationals and an independent interval arithmetic."""

import math
import random
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpestim.privacy import category_weights, exact

N_RANDOM = 2_000


def random_laws(n, seed):
    rng = random.Random(seed)
    for _ in range(n):
        epsilon = 10 ** rng.uniform(-6, np.log10(40))
        d = int(2 ** rng.uniform(1, 32))
        yield exact.canonical_epsilon(epsilon), max(2, d)


def enclosure(x, digits=40):
    """An interval around e^x from mpmath, independent of the decimal module; thresholds have 20 or 39 digits."""
    mpmath.iv.dps = digits
    return mpmath.iv.exp(mpmath.iv.mpf(x.numerator) / mpmath.iv.mpf(x.denominator))


def certainly_at_most(fraction, interval):
    return (mpmath.iv.mpf(fraction.numerator) / mpmath.iv.mpf(fraction.denominator)) <= interval.a


def certainly_at_least(fraction, interval):
    return (mpmath.iv.mpf(fraction.numerator) / mpmath.iv.mpf(fraction.denominator)) >= interval.b


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (0.1, Fraction(1, 10)),
        (1, Fraction(1)),
        (np.float32(0.1), Fraction(Decimal(repr(float(np.float32(0.1)))))),
        (np.float64(0.3), Fraction(3, 10)),
        (1e-6, Fraction(1, 10**6)),
        (Decimal("0.7"), Fraction(7, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (np.int64(2), Fraction(2)),
    ],
)
def test_canonical_epsilon_is_what_the_number_prints_as(given, wanted):
    assert exact.canonical_epsilon(given) == wanted


def test_ten_tenths_are_one_and_seven_sevenths_of_a_tenth_are_a_tenth():
    assert sum([exact.canonical_epsilon(0.1)] * 10) == 1
    assert sum([exact.canonical_epsilon(0.1) / 7] * 7) == Fraction(1, 10)


@pytest.mark.parametrize(
    "bad", [0, -1, float("nan"), float("inf"), True, "1", None, 81, 1e9, [1.0], Decimal("NaN"), Fraction(0), 1j]
)
def test_canonical_epsilon_refuses(bad):
    with pytest.raises(ValueError, match="epsilon"):
        exact.canonical_epsilon(bad)


@pytest.mark.parametrize("x", [Fraction(1, 10**6), Fraction(1, 3), Fraction(1), Fraction(40), Fraction(80, 7)])
def test_exp_bounds_enclose_and_are_tight(x):
    low, high, truth = exact.exp_lower(x), exact.exp_upper(x), enclosure(x, 110)
    assert certainly_at_most(low, truth)
    assert certainly_at_least(high, truth)
    assert (high - low) / low < Fraction(1, 10**75)


def test_grr_weights_keep_epsilon_in_both_directions_and_use_it():
    n_words = []
    for epsilon, d in random_laws(N_RANDOM, seed=1):
        weights = category_weights.grr_weights(epsilon, d)
        assert weights.keep + (d - 1) * weights.other == weights.total == 2 ** (64 * weights.n_words)
        assert 0 < weights.other <= weights.keep  # so the inverse ratio is at most 1
        ratio = Fraction(weights.keep, weights.other)
        assert certainly_at_most(ratio, enclosure(epsilon))
        assert certainly_at_least(ratio, enclosure(Fraction(99, 100) * epsilon))
        n_words.append(weights.n_words)
    # one word is often too coarse (SOUNDNESS 13): both kinds have been exercised
    assert 0.02 < np.mean(np.array(n_words) == 2) < 0.5


def test_one_word_rounding_without_the_check_would_break_a_guarantee():
    """The rule that the check of both directions replaces, as a reminder that it matters."""
    broken = 0
    for epsilon, d in random_laws(2000, seed=2):
        other = -(-exact.WORD // int(exact.exp_lower(epsilon) + d - 1))
        keep = exact.WORD - (d - 1) * other
        broken += keep <= 0 or not exact.within(other, keep, epsilon)
    assert broken > 20


def test_oue_thresholds_keep_epsilon_in_both_directions_and_use_it():
    for epsilon, _ in random_laws(N_RANDOM, seed=3):
        true, false = category_weights.oue_thresholds(epsilon)
        p, q = Fraction(true, exact.WORD), Fraction(false, exact.WORD)
        assert 0 < q < p == Fraction(1, 2)
        ratio = p * (1 - q) / ((1 - p) * q)
        assert ratio >= 1
        assert certainly_at_most(ratio, enclosure(epsilon))
        assert certainly_at_least(ratio, enclosure(Fraction(99, 100) * epsilon))


def test_sue_thresholds_keep_epsilon_in_both_directions_and_use_it():
    for epsilon, _ in random_laws(N_RANDOM, seed=4):
        true, false = category_weights.sue_thresholds(epsilon)
        assert true + false == exact.WORD
        assert 0 < false < true
        ratio = Fraction(true, false) ** 2
        assert certainly_at_most(ratio, enclosure(epsilon))
        assert certainly_at_least(ratio, enclosure(Fraction(99, 100) * epsilon))


@pytest.mark.parametrize("share", [1, 2, 1 << 10, 1 << 31])
def test_grr_weights_of_a_share_of_the_words(share):
    for epsilon, d in random_laws(2000, seed=5):
        slots = 1 << (d % 20 + 1)
        weights = category_weights.grr_weights(epsilon, slots, share)
        assert weights.keep + (slots - 1) * weights.other == weights.total == 2 ** (64 * weights.n_words) // share
        assert 0 < weights.other <= weights.keep
        assert certainly_at_most(Fraction(weights.keep, weights.other), enclosure(epsilon))


def test_subset_weights_keep_epsilon_with_the_unevenness_paid_for():
    rng = random.Random(6)
    tried = 0
    for _ in range(1500):
        epsilon = exact.canonical_epsilon(10 ** rng.uniform(-3, 1))
        d = max(2, int(2 ** rng.uniform(1, 20)))
        weights = category_weights.subset_weights(epsilon, d, Fraction(1, 10**7))
        k, rho, p = weights.k, 1 + weights.uneven, Fraction(weights.include, exact.WORD)
        assert 1 <= k < d
        ratio = p * (d - k) / ((1 - p) * k)
        assert rho**2 <= ratio  # the inverse ratio is at most 1
        assert certainly_at_most(ratio * rho**2, enclosure(epsilon))
        assert certainly_at_least(ratio / rho**2, enclosure(Fraction(99, 100) * epsilon))
        assert weights.uneven <= Fraction(1, 10**7)
        tried += weights.batch > 1
    assert tried > 500


@pytest.mark.parametrize("d", [2, 3, 10, 79])
def test_the_subset_size_is_the_best_integer(d):
    for epsilon in np.linspace(0.1, 6, 25):
        e = math.exp(epsilon)

        def variance(k, e=e):
            p = k * e / (k * e + d - k)
            q = (p * (k - 1) + (1 - p) * k) / (d - 1)
            return q * (1 - q) / (p - q) ** 2

        best = min(variance(k) for k in range(1, d))
        found = category_weights.subset_weights(exact.canonical_epsilon(epsilon), d, Fraction(1, 10**7)).k
        assert variance(found) == pytest.approx(best, rel=1e-12)


def test_the_bound_on_unevenness_covers_the_exact_one():
    for d, k, batch in ((1024, 275, 3), (100, 30, 5), (9, 3, 3), (1 << 20, 40, 2)):
        ranges = [d - 1 - i for i in range(k)]
        exactly = Fraction(1)
        for first in range(0, k, batch):
            size = math.prod(ranges[first : first + batch])
            exactly *= Fraction(-(-exact.WORD // size), exact.WORD // size)
        stated = 1 + Fraction(2 * -(-k // batch), exact.WORD // (d - 1) ** batch)
        assert 1 <= exactly <= stated


@pytest.mark.parametrize(("epsilon", "d"), [(1, 1024), (1, 3000), (0.1, 500), (3, 10_000)])
def test_the_stated_unevenness_covers_the_exact_one(epsilon, d):
    weights = category_weights.subset_weights(exact.canonical_epsilon(epsilon), d, Fraction(1, 10**7))
    ranges = [d - 1 - i for i in range(weights.k)]
    exactly = Fraction(1)
    for first in range(0, weights.k, weights.batch):
        size = math.prod(ranges[first : first + weights.batch])
        exactly *= Fraction(-(-exact.WORD // size), exact.WORD // size)
    assert 0 < exactly - 1 <= weights.uneven


def test_draws_that_are_too_uneven_are_refused():
    with pytest.raises(ValueError, match="subset selection"):
        category_weights.subset_weights(Fraction(1), 1 << 20, Fraction(1, 10**30))


@pytest.mark.parametrize("ratio", [Fraction(3), Fraction(10**9 + 1, 10**9), Fraction(10**17)])
def test_log_upper(ratio):
    upper = exact.log_upper(ratio)
    assert certainly_at_most(ratio, enclosure(upper))
    assert certainly_at_least(ratio, enclosure(upper - Fraction(3, 10**15)))


@pytest.mark.parametrize(("epsilon", "d"), [(Fraction(1, 10**60), 2), (Fraction(1, 10**30), 1 << 32)])
def test_laws_that_two_words_cannot_express_are_refused(epsilon, d):
    with pytest.raises(ValueError, match="epsilon"):
        category_weights.grr_weights(epsilon, d)


def test_oue_refuses_an_epsilon_below_the_resolution_of_a_word():
    with pytest.raises(ValueError, match="epsilon"):
        category_weights.oue_thresholds(Fraction(1, 10**300))


def test_within_and_uses_enough_are_strict_about_the_wrong_side():
    one = Fraction(1)
    assert exact.within(exact.exp_lower(one), 1, one)
    assert not exact.within(exact.exp_upper(one), 1, one)
    assert exact.uses_enough(exact.exp_upper(one), 1, one)
    assert not exact.uses_enough(exact.exp_lower(Fraction(98, 100)), 1, one)


def test_log_ratio():
    assert exact.log_ratio(3, 1) == pytest.approx(np.log(3), rel=1e-15)
    assert exact.log_ratio(10**30 + 1, 10**30) == pytest.approx(1e-30, rel=1e-9)


def test_urap_thresholds_keep_epsilon_in_both_directions_and_use_it():
    for epsilon, _ in random_laws(N_RANDOM, seed=9):
        true, false, reveal = category_weights.urap_thresholds(epsilon)
        assert 0 < false < true == exact.WORD - false
        assert 0 < reveal < exact.WORD
        hidden = Fraction(exact.WORD - reveal, exact.WORD)
        ratio, limit = Fraction(true, false), enclosure(epsilon)
        for one in (ratio / hidden, ratio * hidden, ratio**2):
            assert certainly_at_most(one, limit)
        assert certainly_at_least(ratio / hidden, enclosure(Fraction(99, 100) * epsilon))


def test_urap_refuses_an_epsilon_below_the_resolution_of_a_word():
    with pytest.raises(ValueError, match="epsilon is too small"):
        category_weights.urap_thresholds(Fraction(1, 10**300))
