"""The hybrid mechanism: exact laws, closed forms, the kernel at its thresholds, distributions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpestim._core import pm
from dpestim.local import DistributionEstimator, HMTransformer, MeanEstimator
from dpestim.local.channel import Beside, Dense
from dpestim.local.numbers.hm import HM
from dpestim.local.numbers.pm import PM
from dpestim.privacy.exact import WORD, canonical_epsilon, log_ratio, within
from dpestim.privacy.number_weights import ALL_SIGNS, hybrid_weights


def closed_form(epsilon, x):
    """Variance of the continuous mechanism, x in [-1, 1] (FORMULAS, section 3)."""
    s, signs = math.exp(epsilon / 2), (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
    if epsilon <= ALL_SIGNS:
        return signs**2 - np.square(x)
    return np.full(len(x), (s + 3) / (3 * s * (s - 1)) + signs**2 / s)


# ---------------------------------------------------------------- exactness, by Fractions


@pytest.mark.parametrize("grid", [2, 4, 64])
@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 0.609, 0.61, 1.0, 4.0, 16.0, 45.0, 80.0])
@pytest.mark.no_kernel
def test_every_ratio_and_every_mean_is_exact(grid, epsilon):
    r = HM.make(epsilon, grid)
    z = r.outputs()
    for x, row in zip(r.inputs(), r.transition_matrix()):
        assert sum(row) == 1
        assert min(row) > 0
        assert sum(p * at for p, at in zip(row, z)) == x
    columns = list(zip(*r.transition_matrix()))
    assert all(within(max(c), min(c), r.epsilon) for c in columns)  # both directions of every pair of inputs
    used = max(log_ratio(max(c), min(c)) for c in columns)
    assert (r.slack == "") == (used >= 0.99 * epsilon)
    assert used >= 0.99 * epsilon or epsilon > 44
    assert len(columns) == (2 if epsilon <= ALL_SIGNS else grid + r.weights.window + 2)
    assert np.allclose(r.positions, [float(at) for at in z], rtol=1e-12)
    some = np.random.default_rng(0).normal(size=len(z))
    assert np.allclose(r.expect(some), np.array(r.transition_matrix(), float) @ some, rtol=0, atol=1e-12)


@pytest.mark.parametrize("grid", [2, 8, 1 << 15])
def test_weights_are_exact_for_any_epsilon(grid):
    rng = np.random.default_rng(0)
    for epsilon in [*np.exp(rng.uniform(-12, math.log(80), 200)), 1e-9, 0.6093, 0.60936, 1, 44, 80]:
        epsilon = canonical_epsilon(float(epsilon))
        h = hybrid_weights(epsilon, grid)
        w, most = h.window, h.least + grid * h.rise
        assert h.signs + (w.window * w.inside + grid * w.outside if w else 0) == WORD
        assert (w is None) == (epsilon <= ALL_SIGNS)
        assert 0 < h.least < most
        assert within(most, h.least, epsilon)
        assert w is None or (w.window % 2 == 1 and 0 < w.outside <= w.inside and within(w.inside, w.outside, epsilon))
        if 1e-3 < epsilon < 40:  # the coin, and all of epsilon for the signs
            assert h.signs / WORD == pytest.approx(math.exp(-epsilon / 2) if w else 1, rel=1e-4)
            assert epsilon > 20 or log_ratio(most, h.least) == pytest.approx(float(epsilon), rel=1e-3)
    with pytest.raises(ValueError, match="epsilon is too small"):
        hybrid_weights(Fraction(1, 10**19), grid)


def test_the_coin_has_a_threshold_that_the_paper_derives():
    mp = pytest.importorskip("mpmath").mp
    with mp.workdps(40):
        root = 405 * mp.sqrt(241)
        exact = mp.log((-5 + 2 * mp.cbrt(6353 - root) + 2 * mp.cbrt(6353 + root)) / 27)
        assert abs(exact - ALL_SIGNS) < 1e-7


def test_weights_that_are_no_law_are_refused():
    good = HM(1.0, 16)
    wrong = HM(1.0, 16)
    wrong.hybrid = hybrid_weights(Fraction(5), 16)
    wrong.weights = wrong.hybrid.window
    good.check()
    with pytest.raises(ValueError, match="do not make a law"):
        wrong.check()


# ---------------------------------------------------------------- the kernel


@pytest.mark.parametrize("law", [HM(0.3, 8), HM(1.0, 16), HM(4.0, 64), HM(80.0, 8), HM(1.0)])
def test_kernel_answers_the_words_next_to_every_threshold(law):
    w, h = law.weights, law.hybrid
    start = w.total if w else 0
    for g in sorted({0, 1, law.grid // 3, law.grid - 1, law.grid}):
        plus = h.least + g * h.rise
        expected = {start: law.n_counts - 1, start + plus - 1: law.n_counts - 1,
                    start + plus: law.n_counts - 2, WORD - 1: law.n_counts - 2}
        if w:
            inside = w.window * w.inside
            expected |= {0: g, w.inside - 1: g, inside - 1: g + w.window - 1,
                         inside: 0 if g else w.window, start - 1: w.n_outputs - 1 if g < law.grid else law.grid - 1}
        words = np.array(list(expected), np.uint64)
        for lane, fixed in ((0, g << 32), (7, (g << 32) - (WORD >> 32) + 8 if g else 7)):  # at g, and rounded up to it
            out = np.empty(len(words), law.report_dtype)
            fixed, lanes = np.full(len(words), fixed), np.full(len(words), lane, np.uint32)
            pm.mix(fixed, lanes, words, law.integers, out)
            assert out.tolist() == list(expected.values())


def test_kernel_refuses_arrays_that_differ_in_length():
    some = np.zeros(3, np.int64), np.zeros(3, np.uint32), np.zeros(3, np.uint64)
    with pytest.raises(ValueError, match="length"):
        pm.mix(*some, HM(1.0).integers, np.zeros(4, np.uint16))


# ---------------------------------------------------------------- closed forms


@pytest.mark.parametrize("epsilon", [0.1, 0.6, 0.7, 1.0, 2.0, 4.0, 8.0])
def test_variance_is_that_of_the_paper(epsilon):
    law = HM.make(epsilon)
    x = 2 * np.arange(law.grid + 1) / law.grid - 1
    variance = 4 * law.variance()
    assert np.allclose(variance, closed_form(epsilon, x), rtol=0.002)
    if epsilon > ALL_SIGNS:  # nobody has more than another
        assert np.ptp(variance) < 0.002 * variance.mean()
    for factor in (0.95, 1.05):
        assert not np.allclose(variance, closed_form(factor * epsilon, x), rtol=0.002)
    assert variance.max() < 4 * PM.make(epsilon).variance().max()


# ---------------------------------------------------------------- what users see


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
def test_means_are_right_for_several_columns(epsilon):
    rng = np.random.default_rng(0)
    n = 100_000
    X = np.column_stack([rng.uniform(-1, 0.5, n), rng.uniform(1000, 1010, n), np.full(n, -3.0)])
    noisy = HMTransformer(epsilon, bounds=([-1.0, 1000.0, -4.0], [1.0, 1010.0, 4.0]), random_state=1)
    estimate = MeanEstimator(noisy).fit(X)
    assert (np.abs(estimate.mean_ - X.mean(axis=0)) < 5 * estimate.standard_error_).all()
    assert (estimate.bias_ == 0).all()
    assert noisy.randomizer(0).n_counts == 2 or epsilon > 3 * ALL_SIGNS


def test_messages_are_signs_where_epsilon_is_small():
    noisy = HMTransformer(0.5, bounds=(0, 10), random_state=0)
    reports = noisy.privatize(np.linspace(0, 10, 1000)[:, None])
    assert set(reports[:, 0]) == {0, 1}
    assert noisy.randomizer().report_bits == 1


@pytest.mark.parametrize(("epsilon", "grid", "n_bins"), [(1.0, 64, 8), (1.0, 64, 7), (3.0, 32, 40), (0.3, 8, 4)])
def test_channel_is_the_law_of_inputs_that_are_spread_over_bins(epsilon, grid, n_bins):
    law = HM.make(epsilon, grid)
    edges, output, channel = law.channel(n_bins)
    assert np.allclose(edges, np.linspace(0, 1, n_bins + 1))
    fine = 64 * n_bins  # values in the middle of cells, which rounding sends to two grid points
    x = (np.arange(fine) + 0.5) / fine * grid
    g = np.minimum(x.astype(int), grid - 1)
    rows = np.array(law.transition_matrix(), float)
    mixed = (g + 1 - x)[:, None] * rows[g] + (x - g)[:, None] * rows[g + 1]
    expected = np.zeros((n_bins, channel.n_outputs))
    np.add.at(expected.T, output, mixed.reshape(n_bins, 64, -1).mean(axis=1).T)
    assert np.allclose(channel.matrix(), expected, atol=2e-4)
    assert np.allclose(channel.matrix().sum(axis=1), 1)


@pytest.mark.parametrize("smooth", [False, True])
def test_channels_beside_each_other_do_the_iterations_of_their_matrix(smooth):
    _, _, channel = HM.make(2.0, 64).channel(16)
    assert isinstance(channel, Beside)
    rng = np.random.default_rng(0)
    dense, f = Dense(channel.matrix()), rng.dirichlet(np.ones(16))
    for counts in (rng.integers(0, 50, channel.n_outputs), np.eye(channel.n_outputs)[-1], np.eye(channel.n_outputs)[3]):
        a, b = f.copy(), f.copy()
        channel.steps(a, counts.astype(float), 25, smooth)
        dense.steps(b, counts.astype(float), 25, smooth)
        assert np.allclose(a, b, rtol=1e-9, atol=1e-15)
        assert np.allclose(channel.expected(a), dense.expected(a))


def test_distributions_are_found():
    ages = np.clip(np.random.default_rng(0).normal(40, 8, (100_000, 1)), 0, 100)
    noisy = HMTransformer(3.0, bounds=(0, 100), random_state=0)
    estimate = DistributionEstimator(noisy, n_bins=32).fit(ages)
    truth = np.histogram(ages, estimate.bin_edges_[0])[0] / len(ages)
    assert np.abs(estimate.distribution_[0] - truth).sum() < 0.15  # the sum of two unrelated ones is near 2
    assert abs(estimate.quantile(0.5)[0] - 40) < 1
