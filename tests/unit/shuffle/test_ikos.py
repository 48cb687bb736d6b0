"""Split and mix: shares against brute force, Polya noise against its law, and the law that is made of both."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import stats

from dpestim._core import ikos
from dpestim.rng import WordSource
from dpestim.shuffle import RealSum
from dpestim.shuffle.law import ONE
from dpestim.shuffle.sums.ikos import IKOSLaw
from dpestim.shuffle.sums.polya import PolyaNoise, epsilon_of_share
from dpestim.shuffle.sums.shares import least_shares, log_spread, shares_distance
from dpestim.testing.sample import reports_of

ALPHA = 1e-6
DELTA = Fraction(1, 10**6)


# ---------------------------------------------------------------- shares


@pytest.mark.parametrize(("m", "bits"), [(8, -29.2), (9, -36.5), (10, -43.9), (12, -58.5)])
def test_number_of_shares_of_ten_thousand_users(m, bits):
    assert math.log2(shares_distance(10**4, m, 1 << 32)) == pytest.approx(bits, abs=0.05)
    assert least_shares(2.0 ** (bits + 0.1), 10**4, 1 << 32) == m


@pytest.mark.parametrize(("n", "m", "h", "worst"), [(2, 2, 3, 0.296), (3, 2, 3, 0.420), (2, 4, 3, 0.073),
                                                    (4, 3, 2, 0.093)])
def test_bound_lies_above_brute_force(n, m, h, worst):
    """All shares of tiny cases are enumerated: the multiset is nowhere further from uniform than the bound."""
    uniform = [{} for _ in range(h)]
    for y in product(range(h), repeat=n * m):
        _add(uniform[sum(y) % h], y, h ** -(n * m - 1.0))
    found = 0.0
    for held, law in _views(n, m, h).items():
        other = uniform[sum(held) % h]
        found = max(found, sum(abs(law.get(v, 0.0) - p) for v, p in other.items()) / 2)
    assert found == pytest.approx(worst, abs=1e-3)
    assert found <= shares_distance(n, m, h)


@pytest.mark.parametrize(("n", "m", "h"), [(2, 4, 3), (2, 4, 4), (3, 4, 2)])
@pytest.mark.parametrize("epsilon", [0.2, 0.6, 1.5])
def test_delta_of_tiny_protocols_by_brute_force(n, m, h, epsilon):
    """Users of a bit each, noise and shares enumerated: delta is at most (1 + e^epsilon) times the distance."""
    alpha, weights = math.exp(-epsilon), [1.0]
    for i in range(600):
        weights.append(weights[-1] * (1 / n + i) / (i + 1) * alpha)
    one = np.zeros(h)
    np.add.at(one, np.arange(601) % h, np.array(weights) / sum(weights))
    noise = np.array([sum(one[i] * one[(i - z) % h] for i in range(h)) for z in range(h)])
    views, keys = _views(n, m, h), {}
    for law in views.values():
        for view in law:
            keys.setdefault(view, len(keys))
    of_bits = {}
    for bits in product(range(2), repeat=n):
        of_bits[bits] = np.zeros(len(keys))
        for held, law in views.items():
            weight = math.prod(noise[(v - x) % h] for v, x in zip(held, bits))
            for view, p in law.items():
                of_bits[bits][keys[view]] += weight * p
    worst = max(
        np.maximum(of_bits[bits] - math.exp(epsilon) * of_bits[(1 - bits[0], *bits[1:])], 0).sum() for bits in of_bits
    )
    stated = (1 + math.exp(epsilon)) * shares_distance(n, m, h)
    assert 0 < worst <= stated < 1.5


def _views(n, m, h):
    """Return {what users hold: the law of all shares, as a multiset}."""
    of_sum = [[s for s in product(range(h), repeat=m) if sum(s) % h == total] for total in range(h)]
    views = {}
    for held in product(range(h), repeat=n):
        law = views[held] = {}
        for rows in product(*(of_sum[s] for s in held)):
            _add(law, sum(rows, ()), h ** -(n * (m - 1.0)))
    return views


def _add(law, shares, p):
    view = tuple(sorted(shares))
    law[view] = law.get(view, 0.0) + p


@pytest.mark.parametrize(("m", "h"), [(2, 4), (4, 100), (5, 1 << 12), (7, 1 << 20)])
def test_bound_for_many_users_against_the_exact_recursion(m, h):
    exact = [Fraction(1)]
    for n in range(2, 71):
        parts = (Fraction(n - j, n) * Fraction(math.comb(n, j) ** 2, math.comb(m * n, m * j)) * exact[j - 1]
                 for j in range(1, n))
        exact.append(1 + h * sum(parts))
    for n in (2, 3, 10, 30, 70):
        true, bound = math.log(exact[n - 1] - 1), log_spread(n, m, h)
        assert true <= bound
        assert bound <= true + 1e-6 or (true < 0 and bound <= min(0.0, true + 0.7))  # (twice, in the middle)
    if m > 2:
        assert log_spread(70, m, h) <= true + 0.1


def test_bound_falls_and_takes_any_number_of_users():
    for m in (8, 14, 30, 50):
        found = [shares_distance(n, m, 1 << 64) for n in (2, 3, 4, 5, 8, 20, 60, 70, 100, 1000, 10**5, 10**7, 10**9)]
        assert all(a >= b for a, b in pairwise(found))
    n, m = 10**9, 8  # there the bound is one user alone, of whose shares nobody else holds one
    first = math.log((1 << 64) * n**2 / math.comb(n * m, m))
    assert log_spread(n, m, 1 << 64) == pytest.approx(first, abs=1e-6)
    assert shares_distance(1, 9, 1 << 64) == shares_distance(4, 2, 1 << 64) == 1
    with pytest.raises(ValueError, match="no number of shares"):
        least_shares(1e-200, 2, 1 << 64)


# ---------------------------------------------------------------- noise


def _whole(thresholds):
    return [int(high) << 64 | int(low) for high, low in zip(*thresholds)]


def test_thresholds_make_jumps_of_the_stated_law():
    """What the integers say, in Fractions, is the logarithmic law, to the distance that is counted."""
    rate, unit = Fraction(1, 4), 1 << 128
    noise = PolyaNoise(rate, 5)
    upto, ones = [0, *_whole(noise.levels), unit], [Fraction(t, unit) for t in _whole(noise.digits)]
    with localcontext(prec=100):
        alpha = (-Decimal(1) / 4).exp()
        jumps, made = -(1 - alpha).ln(), {}
        for level, (low, high) in enumerate(pairwise(upto)):
            digits = [Fraction(high - low, unit)]
            for one in ones[:level]:  # from the lowest digit on
                digits = [p * (1 - one) for p in digits] + [p * one for p in digits]
            made |= {(1 << level) + t: p * Fraction(1 << level, (1 << level) + t) for t, p in enumerate(digits)}
        shown = sum(made.values())
        off = sum(abs(Fraction(alpha**g / (g * jumps)) - p / shown) for g, p in made.items()) / 2
        counts = [Fraction(t, unit) for t in _whole(noise.counts)]
        mean, term, total = 2 * jumps / 5, (-2 * jumps / 5).exp(), Decimal(0)
        for k, threshold in enumerate(counts):
            total += term
            term *= mean / (k + 1)
            assert abs(Fraction(total) - threshold) <= Fraction(1, unit)
    assert shown > Fraction(1, 2)
    assert off < 1e-34
    assert 0 < noise.distance < 1e-33
    assert Fraction(2 * jumps) * off <= noise.distance  # (of all five users)


def test_jumps_make_discrete_laplace_noise():
    """Jumps of this law, their number Poisson, are exactly what n users need, by generating functions."""
    rate, n, size = 0.25, 7, 1 << 10
    alpha, g = math.exp(-rate), np.arange(1, size // 2)
    jumps = -math.log1p(-alpha)
    law = np.zeros(size)
    law[g] += alpha**g / (2 * g * jumps)
    law[-g] += alpha**g / (2 * g * jumps)
    one = np.exp(2 * jumps / n * (np.fft.fft(law).real - 1))
    found = np.fft.ifft(one**n).real
    z = np.minimum(np.arange(size), size - np.arange(size))
    assert np.abs(found - (1 - alpha) / (1 + alpha) * alpha**z).max() < 1e-14


@pytest.mark.parametrize("n", [1, 6])
def test_noise_of_all_users_follows_its_law(n):
    """A sample of 20,000 sums, by a chi-square test that tells a scale 15 % off."""
    size, rate = 20_000, Fraction(1, 3)
    noise, total = PolyaNoise(rate, n), np.zeros(n * size, np.int64)
    rows, drawn = noise.draw(WordSource(7).reader().words(0, 0, 0, n * size))
    total[rows] = drawn
    total = np.clip(total.reshape(size, n).sum(axis=1), -15, 15)
    seen = np.bincount(total + 15, minlength=31)
    for scale, holds in ((1.0, True), (1.15, False)):
        alpha, z = math.exp(-scale / 3), np.abs(np.arange(-15, 16))
        p = (1 - alpha) / (1 + alpha) * alpha**z
        p[[0, -1]] /= 1 - alpha
        assert (stats.chisquare(seen, p * size).pvalue > ALPHA) == holds


def test_few_words_decide_and_blocks_do_not_matter():
    noise = PolyaNoise(Fraction(1, 1000), 10**5)
    reader = WordSource(1).reader()
    rows, drawn = noise.draw(reader.words(0, 0, 0, 10**5))
    assert 0 < len(rows) < 60
    late, again = noise.draw(reader.words(0, 0, 50_000, 50_000))
    assert np.array_equal(rows[rows >= 50_000] - 50_000, late)
    assert np.array_equal(drawn[rows >= 50_000], again)


def test_kernel_at_its_thresholds():
    """Where high words tie the low words decide; below a threshold, never on it."""
    high, rest = np.array([5, 5, 9], np.uint64), np.array([3, 8, 0], np.uint64)
    words, low = np.array([4, 5, 5, 5, 5, 8, 9, 9], np.uint64), np.array([9, 2, 3, 7, 8, 0, 0, 1], np.uint64)
    out = np.empty(8, np.int64)
    ikos.reached(words, low, high, rest, out)
    assert out.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    with pytest.raises(ValueError, match="differ in length"):
        ikos.reached(words, low[:3], high, rest, out)
    # level 1 from (10, 1) on; a digit is 1 below (20, 5); the coin of 3 = 2 + 1 shows 2 / 3
    third = (2 << 64) // 3
    part = ((2 << 64) % 3 << 64) // 3  # (2 / 3 of 2^128 is third, part and a bit)
    rows = [([0, 10, 0, 0, 20], 1), ([1, 10, 0, 0, 20], 3), ([4, 10, 0, 1 << 63, 20], -3), ([5, 10, 0, 0, 20], 2),
            ([1, 11, third - 1, 0, 0], 3), ([part, 11, third, 0, 0], 3), ([part + 1, 11, third, 0, 0], 0),
            ([1, 11, third + 1, 0, 0], 0), ([1, 11, (1 << 64) - 1, 0, 30], 2), ([1, 9, (1 << 64) - 1, 0, 0], 1)]
    limits = [np.array([t], np.uint64) for t in (10, 1, 20, 5)]
    out = np.empty(len(rows), np.int64)
    ikos.jumps(np.array([words for words, _ in rows], np.uint64), *limits, out)
    assert out.tolist() == [jump for _, jump in rows]
    with pytest.raises(ValueError, match="differ in length"):
        ikos.jumps(np.zeros((2, 4), np.uint64), *limits, out[:2])


def test_share_of_the_noise_keeps_what_is_said():
    """The law of fewer users' noise, summed term by term, has no larger ratio than stated, and nearly that one."""
    rate, steps, share, n = 0.2, 8, 0.3, 400
    alpha, weights = math.exp(-rate), [1.0]
    for i in range(n):
        weights.append(weights[-1] * (share + i) / (i + 1) * alpha)
    weights = np.array(weights)
    law = np.array([weights[: n + 1 - z] @ weights[z:] for z in range(60)])
    both = np.concatenate([law[:0:-1], law])
    worst = max(np.log(both[s:] / both[: len(both) - s]).max() for s in range(1, steps + 1))
    stated = epsilon_of_share(Fraction(1, 5), steps, share)
    assert worst <= stated <= worst + 1e-5
    assert stated > rate * steps


# ---------------------------------------------------------------- the law


def test_kernel_of_shares():
    fixed = np.array([0, 1, 3, ONE - 1, ONE], np.int64)
    lanes = np.array([0, (1 << 64) - 1, 1, (1 << 64) - 1, (1 << 64) - 1], np.uint64)
    words = np.random.default_rng(0).integers(0, 1 << 64, 10, dtype=np.uint64)
    out = np.empty((5, 3), np.uint64)
    for places, numbers in ((1, [0, 1, 2, ONE // 2, ONE // 2]), (48, [0, 1, 0, 1, 1]), (0, fixed)):
        ikos.shares(fixed, lanes, places, words, out)
        assert np.array_equal(out[:, :2].ravel(), words)
        assert out.sum(axis=1, dtype=np.uint64).tolist() == list(numbers)
    for bad in ((fixed, lanes[:4], 1, words, out), (fixed, lanes, 49, words, out), (fixed, lanes, 1, words[:9], out)):
        with pytest.raises(ValueError, match="differ in length"):
            ikos.shares(*bad)


def test_delta_lies_above_that_of_the_noise():
    """For smaller epsilons the sum alone, whose law is known, tells no more than is stated, and hardly less."""
    law = IKOSLaw.make(1.0, DELTA, 60, 10, 16)
    alpha, z = math.exp(-1 / 16), np.arange(-1000, 1001)
    p = (1 - alpha) / (1 + alpha) * alpha ** np.abs(z)
    stated = [law.delta_at(e, 50) for e in (0, 0.2, 0.5, 0.9, 1.0, 2.0)]
    for e, delta in zip((0, 0.2, 0.5, 0.9, 1.0), stated):
        true = max(np.maximum(p[s:] - math.exp(e) * p[:-s], 0).sum() for s in (1, 8, 16))
        assert true <= delta + 1e-15
        assert delta <= true + 2e-3
    assert all(a >= b for a, b in pairwise(stated))
    assert stated[-1] <= DELTA
    assert law.delta_at(1.0, 55) == law.delta_at(1.0, 50)  # more users add noise of their own
    assert law.delta_at(1.0, 49) == law.delta_at(9.0, 1) == 1


def test_fewer_honest_users_leave_less():
    law = IKOSLaw.make(1.0, DELTA, 1000, 0)
    left = [law.epsilon_left(k) for k in (0, 1, 20, 500, 999)]
    assert all(a <= b for a, b in pairwise(left))
    assert 1 < left[1] < 1.01
    assert left[-1] == math.inf == law.local_epsilon
    assert "only their sum" in law.notes[0]


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("n", [2, 300, 10**9])
@pytest.mark.no_kernel
def test_shares_are_as_few_as_the_bound_allows(epsilon, n):
    law = IKOSLaw.make(epsilon, DELTA, n, 0)
    spread = [(1 + math.exp(epsilon)) * shares_distance(n, law.report_width - less, 1 << 64) for less in (0, 1)]
    assert spread[0] <= DELTA < spread[1]
    assert law.delta_at(epsilon, n) <= DELTA
    assert law.variance(n) <= 2.04 / epsilon**2
    assert law.steps >= 4 * epsilon * math.sqrt(n)


def test_totals():
    """2,000 totals are unbiased and vary as stated; numbers between two steps are rounded without bias."""
    law, size = IKOSLaw.make(2.0, DELTA, 6, 2, 8), 2000
    codes = np.array([0, ONE // 16, ONE // 3, ONE // 2, ONE - 1, ONE], np.int64)
    reports = reports_of(law, np.tile(codes, size), 3).reshape(size, -1)
    totals = []
    for each in reports:
        counts = np.zeros(1, np.int64)
        law.count(each, counts)
        totals.append(law.total(counts, 6))
    noise = 2 * math.exp(-1 / 4) / (1 - math.exp(-1 / 4)) ** 2 * 6 / 4
    rounding = 1 / 4 + 2 / 9  # of 1 / 16 and 1 / 3
    truth, room = codes.sum() / ONE, stats.norm.isf(ALPHA / 2)
    assert law.variance(6) == pytest.approx((noise + 6 / 4) / 64)
    true = (noise + rounding) / 64
    assert abs(np.mean(totals) - truth) < room * math.sqrt(true / size)
    assert abs(np.var(totals) / true - 1) < room * math.sqrt(5 / size)


def test_shares_are_uniform_but_for_their_sum():
    law = IKOSLaw.make(1.0, DELTA, 50, 0)
    reports = reports_of(law, np.full(4000, ONE, np.int64), 1)
    m = law.report_width
    for column in range(m):
        assert stats.chisquare(np.bincount(reports[:, column] >> np.uint64(60), minlength=16)).pvalue > ALPHA
    last = reports[:, 0] + reports[:, m - 1]  # (two of many are independent)
    assert stats.chisquare(np.bincount(last >> np.uint64(60), minlength=16)).pvalue > ALPHA
    sums = reports.sum(axis=1, dtype=np.uint64).view(np.int64)
    assert np.mean(sums == law.steps) > 0.7  # who knows which shares are yours knows your number


@pytest.mark.parametrize(("arguments", "match"), [
    ((1.0, DELTA, 5, 4), "n_users must exceed"),
    ((1.0, DELTA, 50, 0, 3), "grid"),
    ((1.0, DELTA, 50, 0, 1 << 31), "grid"),
    ((1.0, DELTA, 50, 0, True), "grid"),
    ((1.0, DELTA, 50, 0, 8.0), "grid"),
    ((70.0, DELTA, 50, 0), "delta is too small"),
    ((1.0, Fraction(1, 10**300), 50, 0), "delta is too small"),
    ((1.0, DELTA, 1 << 58, 0), "n_users must be smaller"),
    ((1e-9, DELTA, 50, 0, 1 << 20), "grid is too fine"),
])
def test_refusals(arguments, match):
    with pytest.raises(ValueError, match=match):
        IKOSLaw.make(*arguments)


class Split(RealSum):
    """The law behind the usual face."""

    _randomizer = IKOSLaw
    grid = None


def test_face():
    X = np.random.default_rng(0).uniform(-5, 12, (5000, 2))
    est = Split(1.0, delta=1e-6, bounds=([0, -5], [10, 5]), random_state=0).fit(X)
    truth = np.clip(X, [0, -5], [10, 5]).sum(axis=0)
    assert est.standard_error_ == pytest.approx([20 * math.sqrt(2)] * 2, rel=0.01)
    assert (np.abs(est.sum_ - truth) < 6 * est.standard_error_).all()
    assert est.privacy_.epsilon == 1
    alone = Split(1.0, delta=1e-6, bounds=(0, 1), n_users=5001)
    assert alone.encode(np.ones((3, 1))).dtype == np.uint64
    with pytest.raises(ValueError, match="n_users"):
        alone.fit(X)
