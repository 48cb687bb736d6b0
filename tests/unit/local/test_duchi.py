"""Duchi's mechanism: its closed forms, by enumeration for few numbers, and samples of its kernels for many."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpestim._core import duchi
from dpestim.local import (
    BinaryFrequencyEstimator,
    DistributionEstimator,
    DuchiTransformer,
    GRRFrequencyEstimator,
    HMTransformer,
    MeanEstimator,
    PrivUnitTransformer,
)
from dpestim.local.numbers.duchi import Duchi, JointDuchi
from dpestim.privacy.exact import WORD, log_ratio, within
from dpestim.privacy.number_weights import duchi_weights, joint_duchi_weights
from dpestim.rng import Stage, WordSource

ALPHA = 1e-6
EPSILONS = [Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(5, 2), Fraction(6), Fraction(20)]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_number_is_the_closed_form(epsilon):
    law, e = Duchi.make(epsilon), math.exp(epsilon)
    other, step = duchi_weights(epsilon)
    assert 2 * other + (step << 32) == WORD
    assert within(WORD - other, other, epsilon)
    assert law.slack or log_ratio(WORD - other, other) > 0.99 * float(epsilon)
    b = float(2 * law.outputs()[1] - 1)
    assert b == pytest.approx((e + 1) / (e - 1), rel=1e-2 if epsilon > 10 else 1e-5)
    assert 4 * law.variance() == pytest.approx([b * b - 1] * 2, rel=1e-9, abs=1e-9)


def test_one_number_is_a_line_in_the_fixed_point():
    """The kernel compares with one whole number, at each fixed point: no rounding is left."""
    other, step = duchi_weights(Fraction(1))
    fixed = np.array([0, 1, 1 << 31, (1 << 32) - 1, 1 << 32], np.int64)
    for beyond in (-1, 0):
        words = np.array([other + int(f) * step + beyond for f in fixed], np.uint64)
        out = np.empty(5, np.uint8)
        duchi.answer_one(fixed, words, other, step, out)
        assert (out == (beyond < 0)).all()
    with pytest.raises(ValueError, match="differ in length"):
        duchi.answer_one(fixed, words[:4], other, step, out)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_a_row_by_enumeration(d, epsilon):
    law = JointDuchi.make(epsilon, d)
    matrix = law.transition_matrix()
    cells = {p for row in matrix for p in row}
    assert all(sum(row) == 1 for row in matrix)
    assert within(max(cells), min(cells), epsilon)
    assert log_ratio(max(cells) / min(cells), 1) > 0.99 * float(epsilon)
    # the corrected closed form: ties among the light ones
    heavy = (2**d - (math.comb(d, d // 2) if d % 2 == 0 else 0)) / 2
    e = math.exp(epsilon)
    ideal = (2**d + heavy * (e - 1)) / (math.comb(d - 1, d // 2) * (e - 1))
    assert float(law.scale) == pytest.approx(ideal, rel=0.004)
    if epsilon <= 4:
        assert float(law.scale) == pytest.approx(ideal, rel=1e-9)


def test_the_original_form_breaks_its_promise_for_even_rows():
    """Ties on both sides: exact epsilons are ln(e^epsilon + 1) for even d, and epsilon for odd d."""
    for d, epsilon in ((2, 0.5), (4, 1.0), (3, 0.5)):
        agree = np.array([bin(t).count("1") for t in range(1 << d)])  # with v = all ones; other v only permute
        keep = math.exp(epsilon) / (math.exp(epsilon) + 1)
        upper, lower = 2 * agree >= d, 2 * agree <= d
        p = keep * upper / upper.sum() + (1 - keep) * lower / lower.sum()
        exact = math.log(p.max() / p.min())
        assert exact == pytest.approx(math.log(math.exp(epsilon) + 1) if d % 2 == 0 else epsilon)
    assert math.log(math.exp(0.5) + 1) == pytest.approx(0.974, abs=5e-4)


@pytest.mark.parametrize("d", [6, 63, 64, 65, 130, 1024, 4096])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(4)])
def test_weights_of_long_rows(d, epsilon):
    w = joint_duchi_weights(epsilon, d)
    ties = math.comb(d, d // 2) if d % 2 == 0 else 0
    assert (2**d - ties) // 2 * (w.heavy + w.light) + ties * w.tied == w.total
    found = [w.heavy, w.light] + ([w.tied] if ties else [])
    assert within(max(found), min(found), epsilon)
    if ties:  # as light as may be
        assert w.tied * WORD < w.light * (WORD + (1 << 44))


@pytest.mark.parametrize("d", [7, 64, 100, 130])
def test_agreements_of_long_rows_follow_their_law(d):
    """Chi-square over the number of agreements, n = 100,000, alpha = 1e-6; another epsilon's law is rejected."""
    n, epsilon = 100_000, Fraction(2)
    law = JointDuchi.make(epsilon, d)
    codes = np.broadcast_to((np.arange(d) % 3 == 0).astype(np.int64) << 32, (n, d))
    out = np.empty((n, law.report_width), np.uint8)
    size, reader = law.block_rows, WordSource(5).reader()
    for block in range(-(-n // size)):
        part = slice(block * size, min(n, (block + 1) * size))
        law.privatize(np.ascontiguousarray(codes[part]), reader.words(0, block, 0, part.stop - part.start), out[part])
    law.check_reports(out)
    agree = np.bincount((law.support(out) == (codes > 0)).sum(axis=1), minlength=d + 1)

    def p_value(w):
        weight = [w.heavy if 2 * a > d else w.light if 2 * a < d else w.tied for a in range(d + 1)]
        expected = n * np.array([float(Fraction(math.comb(d, a) * weight[a], w.total)) for a in range(d + 1)])
        few = expected < 5
        seen, wanted = np.append(agree[~few], agree[few].sum()), np.append(expected[~few], expected[few].sum())
        return stats.chisquare(seen[wanted > 0], wanted[wanted > 0] * seen.sum() / wanted.sum()).pvalue

    assert p_value(law.weights) > ALPHA
    assert p_value(joint_duchi_weights(Fraction(21, 10), d)) < ALPHA
    # each place agrees as often as any other
    share = (law.support(out) == (codes > 0)).mean(axis=0)
    assert np.abs(share - share.mean()).max() < 5 * math.sqrt(0.25 / n)


@pytest.mark.parametrize("d", [1, 5, 31, 32, 33, 64, 65, 96, 130])
def test_values_become_the_signs_of_their_fixed_points(d):
    """Values at and beyond bounds, next to them, infinite and missing, whose lanes often equal their upper half."""
    rng = np.random.default_rng(d)
    for n in (1, 15, 16, 17, 50):
        low, high = rng.uniform(-1.5, -0.5, d), rng.uniform(0.5, 1.5, d)
        kinds = rng.integers(0, 9, (n, d))
        edges = [np.full(d, np.nan), np.full(d, np.inf), np.full(d, -np.inf), low, high, np.nextafter(high, 0)]
        x = np.choose(np.minimum(kinds, 6), [*edges, rng.uniform(-2, 2, (n, d))])
        scale, fixed = 2.0**32 / (high - low), np.empty((n, d), np.int64)
        duchi.encode(x, low, high, scale, fixed)
        lanes = rng.integers(0, 1 << 16, (n, d + n % 3), dtype=np.uint16)
        lanes[:, :d] = np.where(rng.random((n, d)) < 0.5, np.minimum(fixed >> 16, 65_535), lanes[:, :d])
        found = []
        for rounded, *rows in ((duchi.signs, fixed), (duchi.signs_of, x, low, high, scale)):
            out, left = np.empty((n, -(-d // 64)), np.uint64), np.empty(n * d, np.uint64)
            found.append((sorted(left[: rounded(*rows, lanes, out, left)].tolist()), out.tolist()))
        assert found[0] == found[1]


@pytest.mark.parametrize("d", [1, 3, 64, 65, 130])
def test_sixteen_bits_decide_or_leave_open(d):
    """All lanes next to a fixed point's upper half, in one row or the other: with 16 more bits it is 32 that decide."""
    upper, lower = np.meshgrid([0, 1, 40_000, 65_535], [0, 1, 77, 65_535])
    fixed = np.append(upper * 65_536 + lower, [1 << 32, 0])
    fixed, lanes = (a.ravel() for a in np.meshgrid(fixed, [0, 1, 2, 39_999, 40_000, 40_001, 65_534, 65_535]))
    n = -(-len(fixed) // d)
    fixed, lanes = np.resize(fixed, (n, d)), np.resize(lanes, (n, d)).astype(np.uint16)
    out, left = np.empty((n, -(-d // 64)), np.uint64), np.empty(n * d, np.uint64)
    left = left[: duchi.signs(fixed, lanes, out, left)].tolist()
    bits = np.unpackbits(out.view(np.uint8), axis=1, bitorder="little")
    assert np.array_equal(bits[:, :d], (lanes.astype(np.int64) + 1) * 65_536 <= fixed)
    assert not bits[:, d:].any()
    at = np.flatnonzero((lanes == fixed >> 16) & (fixed % 65_536 > 0))
    assert left == (at << 16 | fixed.ravel()[at] % 65_536).tolist()


@pytest.mark.parametrize("client", [
    DuchiTransformer(1.0, bounds=([0.0, -2.0, 1.0], [1.0, 2.0, 1.5]), strategy="joint"),
    DuchiTransformer(1.0, bounds=([-1.0] * 70, [1.0] * 70), strategy="joint"),
    PrivUnitTransformer(1.0, center=[0.1] * 3, candidates=64), PrivUnitTransformer(1.0, center=[0.1] * 70),
])
def test_values_are_answered_as_their_codes_are(client):
    """What is answered without codes in between: the same reports, of values beyond the bounds and NaN, too."""
    (column,), n = client._columns_now(), 2000
    X = np.random.default_rng(0).normal(0.3, 1.0, (n, column.n_joint)).astype(np.float32)
    X[:4, 0] = np.nan, np.inf, -np.inf, 0.0
    law, words = column.law, lambda: WordSource(3).reader().words(0, 0, 5, n)
    codes, asked, out = np.empty((n, column.n_joint), law.code_dtype), [], np.empty((2, n, law.report_width),
                                                                                    law.report_dtype)
    law.encode(X.astype(np.float64), *column._ends, codes)
    law.privatize(codes, words(), out[0])
    drawn = words()
    drawn.sparse, sparse = lambda stage, *more: asked.append(stage) or sparse(stage, *more), drawn.sparse
    column.privatizer()(X, drawn, out[1])
    assert np.array_equal(*out)
    assert not isinstance(law, JointDuchi) or n * law.n_numbers < 1 << 16 or Stage.COINS in asked


def test_open_bits_are_as_likely_as_the_rest_of_the_number_says():
    """Rows that nothing but further bits decide: of lanes that equal the upper half, every fourth becomes a 1."""
    law, n = JointDuchi.make(30.0, 1), 4000

    class Words:
        def dense(self, stage, per_row):
            return np.zeros(n * per_row, np.uint64)  # lanes of 0, and answers that keep the sign

        def sparse(self, stage, per_row, places):
            assert (stage, per_row) == (Stage.COINS, 1)
            return np.random.default_rng(0).integers(0, WORD, len(places), np.uint64, endpoint=False)

        def scratch(self, size, dtype):
            return np.empty(size, dtype)

    out = np.empty((n, 1), np.uint8)
    law.privatize(np.full((n, 1), 1 << 14, np.int64), Words(), out)
    assert stats.binomtest(int(out.sum()), n, 0.25).pvalue > ALPHA


def test_means_of_a_long_row():
    n, d = 50_000, 100
    X = np.random.default_rng(0).beta(2, 4, (n, d)) * np.linspace(0.2, 1, d)
    for strategy in ("joint", "sample"):
        t = DuchiTransformer(2.0, bounds=([0.0] * d, [1.0] * d), strategy=strategy, random_state=1)
        est = MeanEstimator(t).fit(X)
        z = (est.mean_ - X.mean(axis=0)) / est.standard_error_
        assert np.abs(z).max() < 5
        assert 0.7 < z.std() < 1.3
        assert (est.bias_ == 0).all()
        again = MeanEstimator(t).aggregate(DuchiTransformer(**{**t.get_params(), "n_jobs": 2}).privatize(X))
        assert np.array_equal(again.mean_, est.mean_)


def test_which_strategy_has_less_error():
    """The table of the docstring, to the digits it has."""
    text = DuchiTransformer.__doc__
    for d in (2, 4, 16, 64):
        cells = []
        for epsilon in (Fraction(1, 2), 1, 2, 4):
            split = float(2 * Duchi(Fraction(epsilon) / d).outputs()[1] - 1)
            drawn = min(2 * math.sqrt(Duchi(Fraction(epsilon) / k).sampled_variance(d, k)) for k in range(1, d + 1))
            cells.append([split, drawn, float(JointDuchi(Fraction(epsilon), d).scale)])
        line = next(line for line in text.splitlines() if line.split()[:1] == [str(d)] and line.count("/") == 8)
        stated = np.array(line.replace("/", " ").split()[1:], float).reshape(4, 3)
        assert stated == pytest.approx(np.array(cells), rel=5e-3), d


def covered(client, n, shares, truths, level=0.95):
    """Return how likely an interval covers each truth, exactly, where 1s in a report have this share: one a truth."""
    ones, dtype = np.arange(n + 1), client.randomizer().report_dtype
    fitted = [MeanEstimator(client).aggregate((np.arange(n) < k).astype(dtype)[:, None]) for k in ones]
    low, high = np.array([est.confidence_interval(level)[0] for est in fitted]).T
    means = np.array([est.mean_[0] for est in fitted])
    assert ((low <= means + 1e-12) & (means <= high + 1e-12)).all()
    return [stats.binom.pmf(ones, n, p)[(low <= x) & (x <= high)].sum() for p, x in zip(shares, truths)]


@pytest.mark.ci
@pytest.mark.parametrize(("cls", "epsilon", "n"), [(DuchiTransformer, 4.0, 20), (DuchiTransformer, 6.0, 100),
                                                   (DuchiTransformer, 1.0, 50), (HMTransformer, 0.6, 20)])
def test_intervals_of_one_bit_cover_at_the_bounds_too(cls, epsilon, n):
    """Exact probabilities, for rows that are all alike; a score interval of a share has its dips."""
    client = cls(epsilon, bounds=(0.0, 1.0))
    a, b = (float(z) for z in client.randomizer().outputs())
    x = np.array([0.0, 0.01, 0.05, 0.2, 0.5, 0.95, 1.0])
    cover = np.array(covered(client, n, (x - a) / (b - a), x))
    # (Student's: 0.744 with 20 rows at 0.05 and epsilon 4, 0.712 with 100 at 0.01 and epsilon 6)
    assert cover.min() > 0.89
    assert cover.mean() > 0.94
    assert np.mean(covered(client, n, (x - a) / (b - a), x, level=0.5)) < 0.75  # and the level matters


@pytest.mark.parametrize("client", [GRRFrequencyEstimator(3.0, categories=[[5, 2]]),
                                    BinaryFrequencyEstimator(None, categories=[[2, 5]],
                                                             design=[[0.9, 0.1], [0.3, 0.7]])])
def test_intervals_of_two_categories_cover(client):
    (_no, _yes), law = client.categories[0], client.randomizer().transition_matrix()
    x = np.linspace(2, 5, 7)
    fives = (x - 2) / 3
    of_five, of_two = (float(law[client.categories[0].index(v)][1]) for v in (5, 2))
    cover = covered(client, 30, of_two + fives * (of_five - of_two), x)
    assert min(cover) > 0.9
    assert np.mean(cover) > 0.94


@pytest.mark.parametrize("d", [1, 2, 3])
def test_intervals_of_joint_bits_cover(d):
    """Every bit is one of two numbers: n = 20 rows at 0.01 of the bounds, exact probabilities."""
    n, client = 20, DuchiTransformer(6.0, bounds=([0.0] * d, [4.0] * d), strategy="joint")
    half = float(client.randomizer().scale / 2)
    share = 0.5 + (0.01 - 0.5) / (2 * half)
    cover = 0.0
    for ones in range(n + 1):
        bits = (np.arange(n) < ones).astype(np.uint8)[:, None]
        ci = MeanEstimator(client).aggregate(bits).confidence_interval()  # the first column's bit alone
        cover += stats.binom.pmf(ones, n, share) * (ci[0, 0] <= 0.04 <= ci[0, 1])
        assert ci.shape == (d, 2)
        assert (ci[1:] == ci[-1:]).all()
    assert cover > 0.93
    assert np.isfinite(MeanEstimator(client).aggregate(bits[:1]).confidence_interval()).all()  # one report, too


@pytest.mark.parametrize("strategy", ["sample", "joint"])
def test_the_text_says_what_a_server_must_know_that_was_never_fitted(strategy):
    """As it does what reports do not tell."""
    X = np.full((20, 2), 0.5)
    reports = DuchiTransformer(2.0, bounds=(0, 1), strategy=strategy).privatize(X)
    with pytest.raises(ValueError, match="bounds must have one number for each column"):
        MeanEstimator(DuchiTransformer(2.0, bounds=(0, 1), strategy=strategy)).aggregate(reports)
    told = MeanEstimator(DuchiTransformer(2.0, bounds=([0, 0], [1, 1]), strategy=strategy)).aggregate(reports)
    assert len(told.mean_) == 2
    text = " ".join(DuchiTransformer.__doc__.split())
    assert "do not contain d: for a server that was never fitted, declare `bounds`" in text
    assert "determine the mean and nothing else" in text
    assert "Declare it for a server that was never fitted" in " ".join(PrivUnitTransformer.__doc__.split())


@pytest.mark.parametrize("strategy", ["split", "joint"])
def test_intervals_of_the_widest_bounds_are_numbers(strategy):
    client = DuchiTransformer(4.0, bounds=([-1e140] * 2, [0.79e140] * 2), strategy=strategy, random_state=0)
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(MeanEstimator(client).fit(np.full((50, 2), -1e139)).confidence_interval()).all()


def test_what_is_refused():
    with pytest.raises(ValueError, match="more than 4096 columns"):
        DuchiTransformer(1.0, bounds=(0, 1), strategy="joint").fit(np.zeros((1, 5000)))
    for strategy in ("split", "joint"):
        with pytest.raises(ValueError, match="epsilon is too small"):
            DuchiTransformer(1e-19, bounds=(0, 1), strategy=strategy).fit(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="joint"):
        DistributionEstimator(DuchiTransformer(1.0, bounds=(0, 1), strategy="joint")).fit(np.zeros((9, 2)))
    with pytest.raises(ValueError, match="enumerated"):
        JointDuchi.make(1.0, 9).transition_matrix()
    t = DuchiTransformer(1.0, bounds=([0, 0, 0], [1, 1, 1]), strategy="joint")
    with pytest.raises(ValueError, match="no bits beyond"):
        MeanEstimator(t).aggregate(np.full((3, 1), 255, np.uint8))
    words, signs, again = np.zeros((2, 2), np.uint64), np.zeros((2, 1), np.uint64), np.empty(2, np.uint32)
    with pytest.raises(ValueError, match="differ in length"):
        duchi.answer(words, again[:0], 65, 1, 1, True, signs, again)
    with pytest.raises(ValueError, match="beyond"):
        duchi.answer(words, np.array([0, 2], np.uint32), 64, 1, 1, True, signs, again)
    rows, left = (np.zeros((2, 3), np.int64), np.zeros((2, 4), np.uint16), signs), np.empty(6, np.uint64)
    ends = np.zeros(3), np.ones(3), np.ones(3)
    for narrow, few in ((rows[1][:, :2].copy(), left), (rows[1], left[:5])):
        with pytest.raises(ValueError, match="differ in length"):
            duchi.signs(rows[0], narrow, signs, few)
        with pytest.raises(ValueError, match="differ in length"):
            duchi.signs_of(np.zeros((2, 3)), *ends, narrow, signs, few)
    with pytest.raises(ValueError, match="differ in length"):
        duchi.signs_of(np.zeros((2, 3)), *ends[:2], np.ones(2), rows[1], signs, left)
    with pytest.raises(ValueError, match="differ in length"):
        duchi.encode(np.zeros((2, 3)), np.zeros(2), np.ones(3), np.ones(3), np.zeros((2, 3), np.int64))
