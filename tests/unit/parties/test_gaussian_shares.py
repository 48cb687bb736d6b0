"""Shares of Gaussian noise keep what normal noise keeps: laws are compared outcome by outcome."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpestim import distributed
from dpestim.central.additive.discrete_gaussian import DiscreteGaussianLaw
from dpestim.central.additive.gaussian import RoundedGaussianLaw
from dpestim.central.additive.law import LARGEST
from dpestim.central.additive.normal import analytic_delta
from dpestim.distributed.gaussian_share import GaussianShare, lowered, raised
from dpestim.distributed.shared_noise import SharedNoise, share_of
from dpestim.parties import DiscreteGaussianShares
from dpestim.parties.laws_of_sums import gaussian_distance, gaussian_law
from dpestim.rng import WordSource
from dpestim.statistics import Sum

N = 20_000


def delta_of(share, n_shares, moved, epsilon):
    """Return the divergence of sums of shares of which one is moved by so many steps, from the laws of integers."""
    half = gaussian_law(share.scale, n_shares)
    law, shift = np.concatenate([half[:0:-1], half]), moved << share.bits
    p, q = np.pad(law, (0, shift)), np.pad(law, (shift, 0))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("honest", [1, 4, 300])
@pytest.mark.parametrize(("sigma", "moved"), [(0.7, 1), (4.0, 1), (4.0, 3)])
def test_honest_shares_keep_the_curve_of_normal_noise(honest, sigma, moved):
    share = GaussianShare(sigma, Fraction(moved), honest)
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        normal = float(analytic_delta(Fraction(epsilon), sigma / moved))
        found = delta_of(share, honest, moved, epsilon)
        assert found <= normal * (1 + 1e-9)
        if normal > 1e-9:
            assert found > 0.98 * normal  # (and hardly more noise than that)
    # a twentieth less noise would not do
    assert delta_of(GaussianShare(0.95 * sigma, Fraction(moved), honest), honest, moved, 1.0) > float(
        analytic_delta(Fraction(1), sigma / moved))


def test_fewer_honest_parties_keep_what_is_told():
    share = GaussianShare(4.0, Fraction(1), 6)
    for left in (1, 3, 5):
        ratio = 4.0 * math.sqrt(left / 6)
        assert share.left(Fraction(1, 32), left) == Fraction(6, 32 * left)
        for epsilon in (0.0, 0.5, 2.0):
            assert delta_of(share, left, 1, epsilon) <= float(analytic_delta(Fraction(epsilon), ratio)) * (1 + 1e-9)
    assert share.left(Fraction(1, 32), 6) == Fraction(1, 32)
    assert GaussianShare(4.0, Fraction(1), 100).left(Fraction(1, 32), 12) == math.inf  # (nothing is proved)
    assert GaussianShare(0.1, Fraction(1), 6).left(Fraction(50), 3) == math.inf


def test_a_sum_is_as_good_as_discrete_gaussian():
    """What the proof says of distances: below what floats tell, for as many parties as there may be."""
    for honest in (1, 1000, 1 << 16):
        assert gaussian_distance(GaussianShare(2.0**-11, Fraction(1), honest).scale, 1 << 16) < 1e-300
    assert DiscreteGaussianShares(5, 4, 1.0, 1e-5).distance < 1e-11  # (at the least share these keep it, too)


@pytest.mark.parametrize("sigma", [2.0**-11, 0.3, 4.0, 1e3, 2.0**40])
def test_terms_of_a_share(sigma):
    for honest in (1, 7, 1 << 16):
        share = GaussianShare(sigma, Fraction(1), honest)
        whole = max(Fraction(sigma), Fraction(1, 64)) ** 2 * 4**share.bits
        assert share.scale >= 2**8
        assert whole + 64 < Fraction(share.scale) ** 2 * honest <= whole * (1 + Fraction(1, 500))
        assert share.bits <= 22


def test_integers_come_back_rounded_and_cut():
    share = GaussianShare(4.0, Fraction(1), 4)
    codes = np.array([0, -3, 1 << 40, -(1 << 40)])
    assert lowered(share, raised(share, codes)).tolist() == codes.tolist()
    half = np.int64(1 << share.bits - 1)
    moved = (raised(share, codes).view(np.int64) + np.array([half - 1, -half, half, -half - 1])).view(np.uint64)
    assert lowered(share, moved).tolist() == [0, -3, (1 << 40) + 1, -(1 << 40) - 1]
    far = np.array([LARGEST // 2, -LARGEST // 2])
    cut = (LARGEST // 2 >> share.bits << share.bits) >> share.bits
    assert lowered(share, raised(share, far)).tolist() == [cut, -cut]
    fine = GaussianShare(1e6, Fraction(1), 4)
    assert fine.bits == 0
    assert lowered(fine, raised(fine, codes)).tolist() == codes.tolist()


@pytest.mark.parametrize(("parties", "honest"), [(3, 2), (40, 40)])
def test_totals_follow_the_law_that_is_told(parties, honest):
    law = RoundedGaussianLaw(Fraction(1), Fraction(1, 10**5), Fraction(1), 0)
    share = share_of(law, honest)
    words = sum(share.draw(WordSource(k), N) for k in range(parties))
    noise = lowered(share, words)
    spread = share.variance(parties)
    assert abs(noise.mean()) < 5 * math.sqrt(spread / N)
    assert abs(noise.var() / spread - 1) < 5 * math.sqrt(2 / N)
    assert spread == pytest.approx(parties / honest * law.sigma**2, rel=0.01)
    for level in (0.5, 0.95):
        width = share.half_width(level, parties)
        assert (np.abs(noise) <= width).mean() > level - 5 * math.sqrt(level * (1 - level) / N)
        assert (np.abs(noise) <= width - 1).mean() < level + 5 * math.sqrt(level * (1 - level) / N)


def test_owners_with_a_delta_add_gaussian_noise():
    """Less noise than discrete Laplace, with intervals of it; a delta once bought nothing."""
    def make(**more):
        return Sum(1.0, bounds=(0, 1), delta=1e-3, neighbours="add_remove", **more)

    rows = np.random.default_rng(0).integers(0, 2, (90, 40)).astype(float)
    owners = [distributed.Owner(make(random_state=k), honest=2) for k in range(3)]
    keys = [owner.key for owner in owners]
    messages = [owner.answer(keys, rows[k::3]) for k, owner in enumerate(owners)]
    found, pure = distributed.combine(make(), messages), Sum(1.0, bounds=(0, 1), neighbours="add_remove").fit(rows)
    assert (found.result_.standard_error < 0.5 * pure.result_.standard_error).all()
    one = make().fit(rows).result_.standard_error
    assert found.result_.standard_error == pytest.approx(math.sqrt(3 / 2) * one, rel=0.01)
    away = found.value_ - rows.sum(axis=0)
    assert away.any()
    assert 0.5 < np.mean(np.square(away / found.result_.standard_error)) < 2
    low, high = found.result_.interval(0.9)
    assert np.mean((low <= rows.sum(axis=0)) & (rows.sum(axis=0) <= high)) > 0.7
    assert found.privacy_.concentrated.rho == pytest.approx(make().fit(rows).privacy_.concentrated.rho)
    assert "Against one owner more, epsilon is" in str(found.privacy_)


def test_what_fewer_owners_keep_with_a_delta():
    noise = SharedNoise.maker(3, 2)(Fraction(1), Fraction(1, 1000), 40, 40, 40)
    assert noise.is_normal
    assert noise.epsilon_left(40, 2) == 1
    assert 1 < noise.epsilon_left(40, 1) < 2
    assert noise.epsilon_left(40, 0) == math.inf


def test_other_laws_are_refused():
    with pytest.raises(ValueError, match="take another mechanism"):
        share_of(DiscreteGaussianLaw(Fraction(1), Fraction(1, 100), Fraction(1), 0), 2)
