"""Shares of noise: exact draws, laws of their sums, and what holds with fewer honest parties."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpestim.distributed.exact_poisson import ExactPoisson
from dpestim.parties import BinomialShares, DiscreteGaussianShares, PolyaShares, SkellamShares
from dpestim.parties.laws_of_sums import gaussian_distance, gaussian_law
from dpestim.privacy import Neighbours
from dpestim.rng import WordSource

ALPHA = 1e-6
CALIBRATED = [BinomialShares, DiscreteGaussianShares, SkellamShares]


def made(cls, **changed):
    given = {"n_parties": 5, "honest": 4, "epsilon": 1.0, "delta": 0 if cls is PolyaShares else 1e-5}
    return cls(**{**given, **changed})


def both_sides(law):
    return np.concatenate([law[:0:-1], law])


def law_of_share(shares, wide):
    """The law of one share on -wide, ..., wide by other code: of scipy, or its definition."""
    z = np.arange(-wide, wide + 1)
    if isinstance(shares, BinomialShares):
        return stats.binom.pmf(z + shares.scale // 2, shares.scale, 0.5)
    if isinstance(shares, SkellamShares):
        return stats.skellam.pmf(z, float(shares.scale), float(shares.scale))
    if isinstance(shares, PolyaShares):
        i = np.arange(4000)
        one = stats.nbinom.pmf(i, 1 / shares.honest, 1 - math.exp(-float(shares.epsilon)))
        return np.array([one[: len(one) - abs(k)] @ one[abs(k) :] for k in z])
    law = np.exp(-z * z / (2 * shares.scale**2))
    return law / law.sum()


@pytest.mark.parametrize("cls", [*CALIBRATED, PolyaShares])
@pytest.mark.parametrize("n_shares", [1, 2, 5])
def test_law_of_a_sum_is_the_convolution_of_shares(cls, n_shares):
    shares = made(cls)
    one = total = law_of_share(shares, 60)
    for _ in range(n_shares - 1):
        total = np.convolve(total, one)
    law = shares.law(n_shares)[:15]
    middle = len(total) // 2
    assert law == pytest.approx(total[middle : middle + len(law)], rel=1e-6 if cls is PolyaShares else 1e-9, abs=1e-13)
    assert n_shares == 1 or law != pytest.approx(shares.law(n_shares - 1)[: len(law)], rel=1e-2)


@pytest.mark.parametrize("cls", [*CALIBRATED, PolyaShares])
def test_draws_have_their_law(cls):
    """A chi-squared test of a sample of shares, which a law of 1.2 times the variance fails."""
    shares = made(cls)
    drawn = shares.draw(WordSource(1), 40_000)
    assert drawn.dtype == np.int64
    assert drawn.shape == (40_000,)
    assert (drawn == shares.draw(WordSource(1), 40_000)).all()
    law = law_of_share(shares, 60)
    for factor, good in ((1, True), (1.2, False)):
        z = np.arange(-60, 61)
        keep = law if good else np.interp(z / math.sqrt(factor), z, law)
        expected = np.bincount(np.clip(z, -6, 6) + 6, keep / keep.sum(), 13) * len(drawn)
        found = np.bincount(np.clip(drawn, -6, 6) + 6, minlength=13)
        kept = expected > 5
        score = ((found - expected)[kept] ** 2 / expected[kept]).sum()
        assert (stats.chi2.sf(score, kept.sum() - 1) > ALPHA) == good


@pytest.mark.parametrize("cls", CALIBRATED)
@pytest.mark.parametrize(("change", "n_changed"), [(1, 1), (2, 1), (1, 2)])
def test_delta_is_that_of_all_outputs(cls, change, n_changed):
    """Enumerate outputs of one or two integers: delta at the stated epsilon is at most the stated one, and near it."""
    shares = made(cls, change=change, n_changed=n_changed)
    for k in (0, 1, 3):
        guarantee = shares.privacy_against(k)
        law = both_sides(shares.law(5 - k))
        p, q = np.concatenate([law, np.zeros(change)]), np.concatenate([np.zeros(change), law])
        if n_changed == 2:
            p, q = np.outer(p, p), np.outer(q, q)
        delta = np.maximum(0, p - math.exp(float(guarantee.epsilon)) * q).sum()
        assert delta <= 1e-5
        assert k < 2 or delta > 0.9e-5
        for less in range(1, change):  # (no smaller change is worse)
            here = np.maximum(0, law[less:] - math.exp(float(guarantee.epsilon)) * law[:-less]).sum() + law[:less].sum()
            assert here <= delta + 1e-12


@pytest.mark.parametrize("cls", [*CALIBRATED, PolyaShares])
def test_guarantee_names_how_many_may_be_bad(cls):
    shares = made(cls, neighbours="substitution")
    epsilons = [shares.privacy_against(k).epsilon for k in range(6)]
    assert epsilons[0] == epsilons[1] == 1
    assert epsilons == sorted(epsilons)
    assert 1 < epsilons[2] < 2
    assert epsilons[-1] == math.inf
    assert shares.guarantee == shares.privacy_against(1)
    assert shares.guarantee.neighbours is Neighbours.SUBSTITUTION
    assert "up to 1 of the parties" in str(shares.guarantee.notes)
    assert shares.variance == pytest.approx(5 * shares.variance_of_share)
    with pytest.raises(ValueError, match="k must be at most n_parties"):
        shares.privacy_against(6)


@pytest.mark.parametrize("cls", CALIBRATED)
def test_noise_is_about_the_least(cls):
    shares = made(cls, change=5)
    smaller = cls._rounded(shares.variance_of_share * 0.97)
    law = both_sides(cls._law(smaller, 4))
    delta = np.maximum(0, law[5:] - math.e * law[:-5]).sum() + law[:5].sum()
    assert delta > 1e-5


def test_sum_of_discrete_gaussians_is_within_its_distance():
    for sigma, n in ((0.6, 2), (0.6, 6), (1.0, 5)):
        one = both_sides(gaussian_law(sigma, 1))
        total = one
        for _ in range(n - 1):
            total = np.convolve(total, one)
        law, middle = gaussian_law(sigma, n), len(total) // 2
        near = law[: int(4 * sigma * math.sqrt(n))]
        off = np.abs(np.log(total[middle : middle + len(near)] / near)).max()
        assert off <= gaussian_distance(sigma, n)
        assert gaussian_distance(sigma, n) < 400 * off
    assert gaussian_distance(math.sqrt(3), 1 << 31) < 6e-13
    ripples = [2 / math.expm1(2 * math.pi**2 * j / (j + 1)) for j in range(1, 1 << 14)]  # (t of each further share)
    assert gaussian_distance(1.0, 1 << 14) >= 2 * math.fsum(ripples)


def test_poisson_thresholds_are_those_of_fractions():
    for mean in (Fraction(1, 3), Fraction(200), Fraction(1023)):
        law = ExactPoisson(mean)
        assert law.thresholds / 2.0**64 == pytest.approx(stats.poisson.cdf(np.arange(len(law.thresholds)), float(mean)),
                                                         rel=1e-9, abs=1e-18)
        for k in (0, 1, math.ceil(mean)):
            low, high = law.at_most(k)(80)
            assert int(law.thresholds[k]) == math.floor(low * 2**64) == math.floor(high * 2**64)


@pytest.mark.parametrize(("cls", "changed", "match"), [
    (BinomialShares, {"honest": 6}, "honest must be at most"),
    (SkellamShares, {"delta": 0}, "take PolyaShares"),
    (PolyaShares, {"delta": 1e-5}, "leave it out"),
    (SkellamShares, {"change": 0}, "change must be"),
    (DiscreteGaussianShares, {"epsilon": 0}, "epsilon must be above 0"),
    (SkellamShares, {"epsilon": 1e-6}, "coarser unit"),
    (SkellamShares, {"neighbours": "friends"}, "neighbours must be"),
    (PolyaShares, {"n_parties": True}, "n_parties must be an integer"),
])
def test_bad_parameters(cls, changed, match):
    with pytest.raises(ValueError, match=match):
        made(cls, **changed)


@pytest.mark.parametrize("cls", [*CALIBRATED, PolyaShares])
def test_half_width_covers(cls):
    shares = made(cls)
    for n_shares in (None, 1):
        width = shares.half_width(0.9, n_shares)
        law = shares.law(n_shares or 5)
        inside = 2 * law[: width + 1].sum() - law[0]
        assert inside >= 0.9 - 1e-6
        assert width == 0 or inside - 2 * law[width] < 0.9 + 1e-6


def test_polya_shares_are_about_all_integers_that_change():
    shares = made(PolyaShares, change=2, n_changed=3, honest=5)
    a = math.exp(-1 / 6)
    assert shares.variance == pytest.approx(2 * a / (1 - a) ** 2)
    assert shares.privacy_against(1).epsilon > 1


def test_large_skellam_shares_are_sums_of_several_poisson_numbers():
    shares = made(SkellamShares, change=60)
    assert shares.scale > 2048
    drawn = shares.draw(WordSource(5), 4000)
    score = (drawn.astype(float) ** 2).sum() / shares.variance_of_share
    assert ALPHA < stats.chi2.cdf(score, 4000) < 1 - ALPHA
    assert abs(drawn.mean()) < 5 * math.sqrt(shares.variance_of_share / 4000)
