"""Shares of discrete Laplace noise: the law in rationals, its coins where digits tie, and samples."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpestim.central.exact_bernoulli import exp_bounds
from dpestim.distributed.exact_share import PolyaShare
from dpestim.exact_reals import BitStream
from dpestim.rng import WordSource

ALPHA = 1e-6
LAWS = [PolyaShare(Fraction(1, 2), 3), PolyaShare(Fraction(7, 3), 1), PolyaShare(Fraction(1, 100), 20),
        PolyaShare(Fraction(30), 2)]


@pytest.mark.parametrize("law", LAWS)
def test_each_jump_has_its_rate_exactly(law):
    """What is proposed of a size, times the probability that it is accepted, is a^g / (h g), to 60 digits."""
    total, n_levels = sum(law.weights) + 1, len(law.weights)
    for level in range(n_levels + 3):
        proposed = law.weights[level] if level < n_levels else Fraction(1, 2 << level - n_levels)
        for size in {1 << level, (1 << level) + 1 if level else 1, (2 << level) - 1}:
            low, high = law.accepted(level, size)(60)
            assert 0 < low < high <= 1
            kept = law.mean * proposed / total / (1 << level) * Fraction(1 << level, size) / 2  # (one sign)
            wanted = [end / law.honest / size for end in exp_bounds(law.rate * size, 60)]
            assert abs(kept * low / wanted[0] - 1) < Fraction(1, 10**59)
            assert abs(kept * high / wanted[1] - 1) < Fraction(1, 10**59)


@pytest.mark.parametrize("law", LAWS)
def test_number_of_proposals_is_poisson(law):
    k = np.arange(len(law.thresholds))
    assert law.thresholds / 2.0**64 == pytest.approx(stats.poisson.cdf(k, float(law.mean)), rel=1e-12)
    for at, found in enumerate(law.thresholds.tolist()):
        low, high = law.at_most(at)(50)
        assert found <= low * 2**64 <= high * 2**64 < found + 1


def test_ties_are_settled_by_further_digits():
    law = LAWS[0]
    for k in (0, 3):
        low, _ = law.at_most(k)(60)
        rest = float(low * 2**64 - int(law.thresholds[k]))  # the share of reals with these digits that are below
        stream = BitStream(WordSource(k).reader(), 0, 0)
        found = [law._settle(int(law.thresholds[k]), stream) for _ in range(400)]
        assert set(found) <= {k, k + 1}
        assert stats.binomtest(found.count(k), 400, rest).pvalue > ALPHA
    ends = law.thresholds[:4]
    for after, more in ((0, 0), ((1 << 64) - 1, 1)):
        assert (law.counts(ends, Script([after] * 8)) == np.arange(4) + more).all()
    assert (law.counts(ends - np.uint64(1), None) == np.arange(4)).all()
    assert (law.counts(ends + np.uint64(1), None) == np.arange(1, 5)).all()
    assert law.counts(law.thresholds[-1:], Script([0] * 8))[0] >= len(law.thresholds) - 1
    level, size = 1, 3
    law._accepts(level, size, Script([0]))
    low, first = law.accepted(level, size)(60)[0], law._known[size]
    for after in (0, (1 << 64) - 1):
        assert law._accepts(level, size, Script([first, after, after])) == (after < (low * 2**64 - first) * 2**64)
    assert law._accepts(level, size, Script([first - 1]))
    assert not law._accepts(level, size, Script([first + 1]))


class Script:
    """A stream of given words and draws."""

    def __init__(self, words):
        self.words = list(words)

    def word(self):
        return self.words.pop(0)

    def below(self, n):
        assert self.words[0] < n
        return self.words.pop(0)


def test_jumps_beyond_the_last_level():
    law = LAWS[0]
    total, n_levels = sum(law.weights), len(law.weights)
    # the last place, two more levels, the digits 5, accepted as 2^l of so many, the coin (128 bits), the sign
    for sign in (0, 1):
        size = (1 << n_levels + 2) + 5
        assert law.jump(Script([total, 1, 1, 0, 5, (1 << n_levels + 2) - 1, 0, 0, sign])) == (size if sign else -size)
    assert law.jump(Script([total, 0, 5, (1 << n_levels)])) == 0
    for level in range(n_levels):
        first = sum(law.weights[:level])
        for place in (first, first + law.weights[level] - 1):
            assert law.jump(Script([place, 0, 0, 0, 1])) == 1 << level


@pytest.mark.parametrize(("rate", "honest"), [(Fraction(1), 2), (Fraction(1, 3), 5)])
def test_samples_follow_the_law(rate, honest):
    drawn = PolyaShare(rate, honest).draw(WordSource(5), 6000).view(np.int64)
    one = stats.nbinom.pmf(np.arange(400), 1 / honest, -math.expm1(-float(rate)))
    law = np.convolve(one, one[::-1])
    kept = np.flatnonzero(law * 6000 > 10)
    seen = np.array([(drawn == z - 399).sum() for z in kept])
    seen, expected = np.r_[seen, 6000 - seen.sum()], np.r_[law[kept], 1 - law[kept].sum()] * 6000
    assert stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1) > ALPHA


@pytest.mark.parametrize("shift", [12, 30])
def test_jumps_of_fine_grids(shift):
    """Sizes over many levels: the share of each level is that of the logarithmic series, signs are fair."""
    law = PolyaShare(Fraction(1, 1 << shift), 2)
    stream = BitStream(WordSource(1).reader(), 0, 0, 1024)
    jumps = np.array([z for z in (law.jump(stream) for _ in range(4000)) if z])
    ends = np.arange(0, shift + 5)
    rate = 2.0**-shift
    sizes = np.unique(np.floor(np.geomspace(1, 40 / rate, 40_000)))  # (sums of e^(-rate g) / g, piece by piece)
    weights = np.exp(-rate * sizes) * np.log1p(np.diff(np.r_[sizes, sizes[-1] * 1.001]) / sizes)
    few = sizes < 256
    weights[few] = np.exp(-rate * sizes[few]) / sizes[few]
    expected = np.histogram(sizes, 2.0**ends, weights=weights)[0]
    seen = np.histogram(np.abs(jumps), 2.0**ends)[0]
    kept = expected / expected.sum() * seen.sum() > 5
    share = expected[kept] / expected[kept].sum()
    assert stats.chisquare(seen[kept], share * seen[kept].sum()).pvalue > ALPHA
    assert stats.binomtest(int((jumps > 0).sum()), len(jumps)).pvalue > ALPHA


def test_draws_repeat_with_their_source_and_differ_otherwise():
    law = LAWS[0]
    one, other = law.draw(WordSource(1), 500), law.draw(WordSource(2), 500)
    assert (law.draw(WordSource(1), 500) == one).all()
    assert (one != other).mean() > 0.3
