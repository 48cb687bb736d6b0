"""The square wave and discrete Laplace noise: exact laws, closed forms, extremes, several columns."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpestim._core import table
from dpestim.accounting import Ledger
from dpestim.local import DistributionEstimator, LaplaceTransformer, MeanEstimator, PMTransformer, SWTransformer
from dpestim.local.numbers.hm import HM
from dpestim.local.numbers.laplace import Laplace
from dpestim.local.numbers.law import NumericRandomizer
from dpestim.local.numbers.pm import PM
from dpestim.local.numbers.sw import SW
from dpestim.local.numbers.transformer import NumericTransformer
from dpestim.privacy.exact import WORD, canonical_epsilon, log_ratio, within
from dpestim.privacy.number_weights import laplace_beyond, sw_weights

EPSILONS = [0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 40.0]


def positions(grid):
    """The inputs as x in [-1, 1]."""
    return 2 * np.arange(grid + 1) / grid - 1


# ---------------------------------------------------------------- exactness, by Fractions


@pytest.mark.parametrize("law", [SW, Laplace])
@pytest.mark.parametrize("grid", [4, 8, 64])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.no_kernel
def test_every_ratio_and_every_mean_is_exact(law, grid, epsilon):
    r = law(epsilon, grid)
    rows, z = r.transition_matrix(), r.outputs()
    for x, row in zip(r.inputs(), rows):
        assert sum(row) == 1
        assert min(row) > 0
        assert sum(p * at for p, at in zip(row, z)) == x
    columns = list(zip(*rows))
    assert all(within(max(c), min(c), r.epsilon) for c in columns)  # both directions of every pair of inputs
    used = max(log_ratio(max(c), min(c)) for c in columns)
    assert used >= 0.99 * epsilon or r.slack
    assert used >= 0.8 * epsilon
    assert (r.slack == "") == (used >= 0.99 * epsilon)
    assert used >= 0.99 * epsilon or epsilon > 15


@pytest.mark.parametrize("grid", [2, 8, 1 << 15])
def test_weights_of_the_square_wave_are_exact_for_any_epsilon(grid):
    rng = np.random.default_rng(0)
    for epsilon in [*np.exp(rng.uniform(-12, math.log(80), 200)), 1e-6, 0.000999, 0.001, 0.5, 1, 44, 80]:
        epsilon = canonical_epsilon(float(epsilon))
        w = sw_weights(epsilon, grid)
        assert w.window * w.inside + grid * w.outside == WORD
        assert w.window % 2 == 1
        assert 1 <= w.window < grid
        assert 0 < w.outside <= w.inside
        assert within(w.inside, w.outside, epsilon)
    with pytest.raises(ValueError, match="epsilon is too small"):
        sw_weights(Fraction(1, 10**19), grid)


@pytest.mark.parametrize("epsilon", [1e-6, 0.000999, 0.001, 0.01, 0.7, 3, 10, 40])
def test_window_of_the_square_wave_is_that_of_the_paper(epsilon):
    mp = pytest.importorskip("mpmath").mp
    with mp.workdps(60):
        e, E = mp.mpf(str(epsilon)), mp.exp(mp.mpf(str(epsilon)))
        share = float((e * E - E + 1) / (E * (E - 1 - e)))
    grid = 1 << 15
    window = sw_weights(canonical_epsilon(epsilon), grid).window
    assert abs(window - min(max(share * grid, 1), grid - 1)) <= 1.001


@pytest.mark.parametrize("grid", [4, 256, 1024])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1, 10, 80])
def test_places_beyond_the_bounds_are_rounded_for_privacy(grid, epsilon):
    mp = pytest.importorskip("mpmath").mp
    epsilon = canonical_epsilon(epsilon)
    beyond, places = laplace_beyond(epsilon, grid)
    assert (beyond * places).denominator == 1
    assert places & (places - 1) == 0
    with mp.workdps(100):
        ideal = 1 / mp.expm1(mp.mpf(epsilon.numerator) / epsilon.denominator / grid)
        over = mp.mpf(beyond.numerator) / beyond.denominator - ideal
        assert 0 <= over <= mp.mpf(1) / places
        assert places == 1 << 16 or over <= ideal / 1000


def test_noise_without_rounding_is_the_truncated_geometric_law():
    r = Laplace(1.0, 64)
    alpha, grid = math.exp(-1 / 64), 64
    for g in (0, 1, 31, 64):
        ideal = np.array([(1 - alpha) / (1 + alpha) * alpha ** abs(y - g) for y in range(grid + 1)])
        ideal[0], ideal[-1] = alpha**g / (1 + alpha), alpha ** (grid - g) / (1 + alpha)
        assert np.allclose([float(p) for p in r.transition_matrix()[g]], ideal, rtol=2e-3)


def test_laws_that_words_cannot_express_are_refused_before_anything_is_spent(tmp_path):
    with Ledger(1.0, path=tmp_path / "ledger.db") as ledger:
        for cls, epsilon in ((SWTransformer, 1e-15), (LaplaceTransformer, 1e-6), (LaplaceTransformer, 1e-100)):
            with pytest.raises(ValueError, match="epsilon is too small"):
                cls(epsilon, bounds=(0, 1), ledger=ledger).privatize([[0.5]])
        for cls, grid in ((SWTransformer, 1), (PMTransformer, 1), (LaplaceTransformer, 2), (LaplaceTransformer, 2048)):
            with pytest.raises(ValueError, match=r"grid must be a power of two from [24] to"):
                cls(0.5, bounds=(0, 1), grid=grid, ledger=ledger).privatize([[0.5]])
        assert ledger.spent().epsilon == 0


# ---------------------------------------------------------------- tables as cells


class Rows(NumericRandomizer):
    """Any two rows of integers."""

    def __init__(self, epsilon, rows):
        super().__init__(epsilon, 1)
        self.rows = rows

    def table(self):
        return self.rows


class RowsTransformer(NumericTransformer):
    """Two rows of integers, which an unwary author has declared."""

    _randomizer = Rows
    rows = ((WORD // 2, WORD // 2), (WORD // 2, WORD // 2))

    def _law_arguments(self, column, n_columns, domain):
        return {"rows": self.rows}


@pytest.mark.parametrize(
    ("rows", "positions", "said"),
    [
        (((WORD // 4, 3 * WORD // 4), (3 * WORD // 4, WORD // 4)), 2, "differ by more than"),  # e^1.0986
        (((WORD, 0), (0, WORD)), 2, "differ by more than"),
        (((WORD, 0), (WORD,)), 2, "equally long"),
        (((WORD // 2, WORD // 2),), 2, "grid . 1 rows"),
        (((WORD // 2, WORD // 2), (WORD // 2, WORD // 2)), 3, "one position for each"),
        (((WORD // 2, WORD // 2), (WORD // 2, WORD // 2 + 1)), 2, "summing to"),
    ],
)
def test_a_table_that_is_no_law_is_refused_before_anything_is_spent(tmp_path, rows, positions, said):
    noisy = RowsTransformer(1.09, bounds=(0, 1))
    with pytest.MonkeyPatch.context() as patch, Ledger(2.0, path=tmp_path / "ledger.db") as ledger:
        patch.setattr(RowsTransformer, "rows", rows)
        patch.setattr(Rows, "outputs", lambda self: [Fraction(k) for k in range(positions)])
        with pytest.raises(ValueError, match=said):
            noisy.privatize([[0.5]])
        assert ledger.spent().epsilon == 0
        patch.undo()
        patch.setattr(Rows, "outputs", lambda self: [Fraction(0), Fraction(1)])
        RowsTransformer(1.1, bounds=(0, 1), ledger=ledger).privatize([[0.5]])
        assert float(ledger.spent().epsilon) == 1.1


def two_rows(n_codes, seed):
    """Rows with weights of all sizes, some of them 0."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(2):
        weights = [int(2.0**e) * int(keep) for e, keep in zip(rng.uniform(0, 56, n_codes), rng.random(n_codes) < 0.7)]
        weights[int(rng.integers(n_codes))] += WORD - sum(weights)
        rows.append(tuple(weights))
    return tuple(rows)


LAWS = [
    Laplace(1.0, 16), Laplace(0.01, 64), Laplace(40.0, 256), Rows(1.0, ((WORD,), (WORD,))),
    Rows(1.0, ((WORD, 0, 0), (1, WORD - 2, 1))),
    *(Rows(1.0, two_rows(n, seed)) for n in (2, 3, 17, 128) for seed in (0, 1)),
]


def test_a_table_of_a_sub_class_is_the_law_whatever_its_base_makes():
    class Mirrored(Laplace):
        def table(self):
            return Laplace(1.0, 8).table()

    assert Mirrored(2.0, 8)._rows == Laplace(1.0, 8)._rows != Laplace(2.0, 8)._rows


@pytest.mark.parametrize("law", LAWS)
def test_cells_give_each_code_its_words(law):
    cells, bits = law._cells
    size = WORD >> bits
    assert cells.shape == (law.grid + 1, 1 << bits)
    for row, packed in zip(law._rows, cells.tolist()):
        found = [0] * (1 << bits)
        for own, cell in enumerate(packed):
            keep, other = cell >> bits, cell & (1 << bits) - 1
            assert keep < size
            found[own] += keep
            found[other] += size - keep
        assert found == [*row, *[0] * ((1 << bits) - len(row))]


@pytest.mark.parametrize("law", LAWS)
def test_kernel_answers_the_words_next_to_every_threshold(law):
    cells, bits = law._cells
    size = WORD >> bits
    for g, packed in enumerate(cells.tolist()):
        words, codes = [], []
        for own, cell in enumerate(packed):
            keep, other = cell >> bits, cell & (1 << bits) - 1
            for place in (0, keep - 1, keep, keep + 1, size - 1):
                if 0 <= place < size:
                    words.append(own * size + place)
                    codes.append(own if place < keep else other)
        for lane, fixed in ((0, g << 32), (7, (g << 32) - (WORD >> 32) + 8 if g else 7)):  # at g, and rounded up to g
            out = np.empty(len(words), law.report_dtype)
            fixed, lanes = np.full(len(words), fixed), np.full(len(words), lane, np.uint32)
            for quick in (law._quick, np.empty((0, 0), np.uint32)):
                table.answer(fixed, lanes, np.array(words, np.uint64), cells, quick, bits, out)
                assert out.tolist() == codes


def test_kernel_refuses_cells_of_another_shape():
    (cells, bits), none = Laplace(1.0, 16)._cells, np.empty((0, 0), np.uint32)
    some = np.zeros(3, np.int64), np.zeros(3, np.uint32), np.zeros(3, np.uint64)
    for wrong in (bits + 1, 0, 64):
        with pytest.raises(ValueError, match=r"2\*\*bits"):
            table.answer(*some, cells, none, wrong, np.zeros(3, np.uint16))
    with pytest.raises(ValueError, match="length"):
        table.answer(*some, cells, none, bits, np.zeros(4, np.uint16))
    with pytest.raises(ValueError, match="quick"):
        table.answer(*some, cells, np.zeros((17, 2), np.uint32), bits, np.zeros(3, np.uint16))


# ---------------------------------------------------------------- closed forms


def square_wave(epsilon, x):
    """Variance of the moment estimator of the continuous square wave, x in [0, 1] (FORMULAS, section 3)."""
    e = math.exp(epsilon)
    b = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
    q = 1 / (2 * b * e + 1)
    p = e * q
    m1 = 2 * b * (p - q) * x + q * (1 + 2 * b) / 2
    m2 = q * ((1 + b) ** 3 + b**3) / 3 + (p - q) * ((x + b) ** 3 - (x - b) ** 3) / 3
    return (m2 - m1**2) / (2 * b * (p - q)) ** 2


def clipped_laplace(epsilon, x):
    """Variance where Laplace noise of scale 2 / epsilon that passes a bound becomes its mean beyond it."""
    return (8 - 2 * np.exp(-epsilon * (1 + x) / 2) - 2 * np.exp(-epsilon * (1 - x) / 2)) / epsilon**2


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4, 8])
def test_variance_of_the_square_wave_is_that_of_the_paper(epsilon):
    variance, x = SW(epsilon).variance(), (positions(1 << 15) + 1) / 2
    assert np.allclose(variance, square_wave(epsilon, x), rtol=0.01)
    for factor in (0.9, 1.1):
        assert not np.allclose(variance, square_wave(factor * epsilon, x), rtol=0.01)


@pytest.mark.ci
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 2, 4, 8])
def test_variance_of_laplace_is_below_that_of_unclipped_noise(epsilon):
    law = Laplace(epsilon)
    variance = 4 * law.variance()
    assert np.allclose(variance, clipped_laplace(epsilon, positions(256)), rtol=0.02)
    for factor in (0.9, 1.1):
        assert not np.allclose(variance, clipped_laplace(factor * epsilon, positions(256)), rtol=0.02)
    # what the outermost codes leave out is the spread of noise beyond a bound: with it, 8 / epsilon^2
    ends = np.array([[float(row[0] + row[-1])] for row in law.transition_matrix()])[:, 0]
    alpha = float(law.beyond / (1 + law.beyond))
    unclipped = variance + ends * 4 * alpha / (1 - alpha) ** 2 / 256**2
    assert np.allclose(unclipped, 8 / epsilon**2, rtol=0.01)


def test_the_table_that_tells_when_to_prefer_the_piecewise_mechanism():
    for line in LaplaceTransformer.__doc__.splitlines():
        numbers = line.split()
        if len(numbers) == 5 and numbers[0].replace(".", "").isdigit():
            epsilon = float(numbers[0])
            here, piecewise, hybrid = (4 * law.make(epsilon).variance().max() for law in (Laplace, PM, HM))
            assert [float(n) for n in numbers[1:]] == pytest.approx((here, 8 / epsilon**2, piecewise, hybrid), rel=1e-3)
            assert (here < piecewise) == (epsilon < 0.7)
            assert hybrid < here
    assert 4 * Laplace(0.65).variance().max() < 4 * PM(0.65).variance().max()
    assert 4 * Laplace(0.8).variance().max() > 4 * PM(0.8).variance().max()


def test_the_piecewise_mechanism_has_less_variance_than_the_square_wave():
    share = {e: SW(e).variance().max() / PM(e).variance().max() for e in (0.1, 0.5, 1.0, 2.0, 3.0, 4.0)}
    assert all(s > 1 for s in share.values())
    assert sorted(share.values()) == list(share.values())
    assert share[1.0] < 1.06
    assert 1.2 < share[2.0] < 1.25
    assert 1.5 < share[3.0] < 1.6


# ---------------------------------------------------------------- what users see


@pytest.mark.ci
@pytest.mark.parametrize("cls", [SWTransformer, LaplaceTransformer])
@pytest.mark.parametrize("epsilon", [0.001, 1.0, 40.0])
def test_means_are_right_for_any_epsilon_and_several_columns(cls, epsilon):
    rng = np.random.default_rng(0)
    n = 100_000
    X = np.column_stack([rng.uniform(-1, 0.5, n), rng.uniform(1000, 1010, n), np.full(n, -3.0)])
    bounds = ([-1.0, 1000.0, -4.0], [1.0, 1010.0, 4.0])
    noisy = cls(epsilon, bounds=bounds, random_state=1)
    reports = noisy.privatize(X)
    means, spread = noisy.decode(reports).mean(axis=0), noisy.decode(reports).std(axis=0) / math.sqrt(n)
    assert (np.abs(means - X.mean(axis=0)) < 5 * spread).all()
    estimate = MeanEstimator(noisy).fit(X)
    assert (estimate.bias_ == 0).all()
    assert np.allclose(estimate.mean_, means)
    assert noisy.randomizer(0).epsilon == canonical_epsilon(epsilon) / 3
    assert noisy.privacy_.epsilon == pytest.approx(epsilon)


@pytest.mark.parametrize("cls", [SWTransformer, LaplaceTransformer])
def test_distributions_are_found(cls):
    ages = np.clip(np.random.default_rng(0).normal(40, 8, (100_000, 1)), 0, 100)
    noisy = cls(3.0, bounds=(0, 100), random_state=0)
    # smoothing is for windows: as Laplace's docstring says, it flattens what reports of that noise tell
    estimate = DistributionEstimator(noisy, n_bins=32, smoothing=cls is SWTransformer).fit(ages)
    truth = np.histogram(ages, estimate.bin_edges_[0])[0] / len(ages)
    assert np.abs(estimate.distribution_[0] - truth).sum() < 0.15  # the sum of two unrelated ones is near 2
    assert abs(estimate.quantile(0.5)[0] - 40) < 1


def test_codes_of_laplace_stay_within_the_grid_and_decode_beyond_the_bounds():
    noisy = LaplaceTransformer(1.0, bounds=(0, 10), grid=16, random_state=0)
    X = np.linspace(-5, 15, 10_000)[:, None]
    reports = noisy.privatize(X)
    assert reports.dtype == np.uint16
    assert set(reports[:, 0]) == set(range(17))
    values = np.unique(noisy.decode(reports))
    beyond = float(noisy.randomizer().beyond) / 16 * 10
    assert values[0] == pytest.approx(-beyond)
    assert values[-1] == pytest.approx(10 + beyond)
    assert np.allclose(values[1:-1], 10 * np.arange(1, 16) / 16)
