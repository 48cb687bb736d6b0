"""Projective geometry response: the geometry by brute force, every slot of a word, the law, and variances."""

from fractions import Fraction

import numpy as np
import pytest

from dpestim._core import pgr as kernel
from dpestim.local import PGRFrequencyEstimator
from dpestim.local.categories.hr import HR
from dpestim.local.categories.pgr import PGR
from dpestim.local.categories.projective import Space, best_space, is_prime, n_points, next_prime, same_points
from dpestim.local.guessing import BestGuess, Runs
from dpestim.privacy import category_weights, exact

SPACES = [(2, 2), (2, 3), (2, 5), (3, 2), (3, 4), (5, 3), (7, 2), (7, 3)]


def vector(number, q, t, as_value):
    """The coordinates of a point, from the definition of its two numbers."""
    if as_value:
        lead, size = 0, q ** (t - 1)
        while number >= size:
            number, size, lead = number - size, size // q, lead + 1
        digits = [number // q**k % q for k in range(t - lead - 1)]
        return [0] * lead + [1] + digits[::-1]
    if number == 0:
        return [1] + [0] * (t - 1)
    number -= 1
    return [number % q, *vector(number // q, q, t - 1, as_value)]


def orthogonal(q, t):
    """The incidence matrix: (value, report)."""
    values, reports = ([vector(k, q, t, kind) for k in range(n_points(q, t))] for kind in (True, False))
    return np.array(values) @ np.array(reports).T % q == 0


@pytest.mark.parametrize(("q", "t"), SPACES)
def test_geometry_is_that_of_brute_force(q, t):
    space, meets = Space(q, t), orthogonal(q, t)
    n = space.points
    assert meets.shape == (n, n)
    assert (meets.sum(axis=0) == space.orthogonal).all()
    assert (meets.sum(axis=1) == space.orthogonal).all()
    common = meets.astype(int) @ meets.T
    assert set(common[~np.eye(n, dtype=bool)]) == {space.both}
    counts = np.random.default_rng(0).integers(0, 1000, (2, n))
    for dtype, most in ((np.int64, n), (np.float64, n // 2 + 1)):
        out = np.empty((2, most), dtype)
        kernel.decode(counts.astype(dtype), q, t, np.empty(2 * n, dtype), out)
        assert (out == (counts @ meets.T)[:, :most]).all()
    support = np.empty((n, n), np.uint8)
    kernel.support(np.arange(n, dtype=np.uint32), q, t, 1, support)
    assert (support == meets.T).all()
    same = same_points(q, t)
    for number in range(n):
        value, report = (np.array(vector(k, q, t, kind)) for k, kind in ((number, True), (same[number], False)))
        assert any((scale * value % q == report).all() for scale in range(1, q))


@pytest.mark.parametrize(("q", "t"), SPACES[:6])
@pytest.mark.parametrize("blocks", [1, 4])
def test_every_slot_of_a_word_is_another_symbol(q, t, blocks):
    space, meets = Space(q, t, blocks), orthogonal(q, t)
    s, n = space.orthogonal, blocks * space.points
    inside, outside = category_weights.cap_weights(Fraction(13, 10), s, n)
    assert s * inside + (n - s) * outside == exact.WORD
    assert exact.within(inside, outside, Fraction(13, 10))
    first = [k * inside for k in range(s)] + [s * inside + k * outside for k in range(n - s)]
    ends = [*first[1:], exact.WORD]
    for value in range(space.points):
        code = np.full(n, value * blocks + value % blocks, np.uint16)
        low, high = np.empty(n, np.uint16), np.empty(n, np.uint16)
        kernel.privatize(code, np.array(first, np.uint64), q, t, blocks, inside, outside, low)
        kernel.privatize(code, np.array([k - 1 for k in ends], np.uint64), q, t, blocks, inside, outside, high)
        assert (low == high).all()
        assert sorted(low) == list(range(n))
        assert set(low[:s]) == set(value % blocks * space.points + np.flatnonzero(meets[value]))


def test_kernel_refuses_what_it_cannot_index():
    codes, words, out = np.zeros(3, np.uint8), np.zeros(3, np.uint64), np.zeros(3, np.uint8)
    inside, outside = category_weights.cap_weights(Fraction(1), 1, 3)
    kernel.privatize(codes, words, 2, 2, 1, inside, outside, out)
    for bad in ((1, 2, 1, inside, outside), (2, 1, 1, inside, outside), (2, 2, 0, inside, outside),
                (2, 40, 1, inside, outside), (2, 2, 1, inside + 1, outside), (2, 2, 1, 0, outside)):
        with pytest.raises(ValueError, match=r"prime|points|weights"):
            kernel.privatize(codes, words, *bad, out)
    with pytest.raises(ValueError, match="length"):
        kernel.privatize(codes, words[:2], 2, 2, 1, inside, outside, out)
    with pytest.raises(ValueError, match="fewer points"):
        kernel.support(out, 2, 2, 1, np.zeros((3, 4), np.uint8))
    sums = np.zeros((1, 3), np.int64)
    for scratch, result in ((np.zeros(5, np.int64), sums), (np.zeros(6, np.int64), np.zeros((1, 4), np.int64))):
        with pytest.raises(ValueError, match="length"):
            kernel.decode(sums, 2, 2, scratch, result)
    support = np.ones((1, 3), np.uint8)
    kernel.support(np.array([200], np.uint8), 2, 2, 1, support)
    assert not support.any()  # no such symbol, so nobody's


@pytest.mark.parametrize("epsilon", ["0.001", "0.3", "1", "4", "20", "43"])
@pytest.mark.parametrize(("d", "hybrid"), [(2, None), (13, None), (1000, None), (999, "auto"), (37, 8), (1 << 20, 1)])
def test_weights_keep_epsilon_exactly(epsilon, d, hybrid):
    law = PGR.make(Fraction(epsilon), d, hybrid)
    space, e = law.space, law.epsilon
    assert is_prime(space.q)
    assert space.blocks * space.points >= d
    assert space.orthogonal * law.inside + (law.n_counts - space.orthogonal) * law.outside == exact.WORD
    assert exact.within(law.inside, law.outside, e)
    assert law.outside <= law.inside
    assert law.slack or exact.uses_enough(law.inside, law.outside, e)


@pytest.mark.parametrize(("d", "hybrid"), [(7, None), (40, None), (40, 4), (9, 4), (4, 1)])
def test_estimates_are_exactly_unbiased_and_variances_exact(d, hybrid):
    law = PGR.make(1.5, d, hybrid)
    matrix = np.array([[float(p) for p in row] for row in law.transition_matrix()])
    # an estimate from one report of each symbol, weighed by the law: linear, so its mean is the law's
    each = np.stack([law.estimate(row, 1) for row in np.eye(law.n_counts, dtype=np.int64)])
    np.testing.assert_allclose(matrix @ each, np.eye(d), atol=1e-11)
    f = np.arange(1.0, d + 1) / np.arange(1.0, d + 1).sum()
    variance = f @ (matrix @ np.square(each) - np.square(matrix @ each))
    np.testing.assert_allclose(law.variance(1, f), variance, rtol=1e-10)
    # what counts tell of it: expected counts are those of f
    n = 10**9
    at_zero, slope = law.variance_line(np.rint(n * (f @ matrix)).astype(np.int64), n)
    np.testing.assert_allclose(at_zero + slope * f, variance, rtol=1e-7)
    assert [[float(p) for p in row] for row in law.support_law()] == pytest.approx(
        matrix @ law.support(np.arange(law.n_counts, dtype=law.report_dtype)[:, None]), rel=1e-12)


def test_average_variance_is_near_that_of_subset_selection():
    """The table of the docstring; and the error of the hybrid form falls below that of Hadamard response."""
    seen = {}
    for d in (1024, 1 << 14):
        f = np.full(d, 1 / d)
        for epsilon in (0.5, 1.0, 2.0, 4.0):
            e = np.exp(epsilon)
            k = max(1, round(d / (e + 1)))
            p = k * e / (k * e + d - k)
            q = p * (k - 1) / (d - 1) + (1 - p) * k / (d - 1)
            best = q * (1 - q) / (p - q) ** 2 + (1 - p - q) / (p - q) / d
            law, hybrid = PGR.make(epsilon, d), PGR.make(epsilon, d, "auto")
            seen[d, epsilon] = law.variance(1, f).mean() / best
            assert law.variance(1, f).mean() <= hybrid.variance(1, f).mean() * 1.0001
            assert hybrid.variance(1, f).mean() < HR.make(epsilon, d).variance(1, f).mean()
    assert all(1 - 1e-9 < ratio < 1.03 for ratio in seen.values()), seen
    assert seen[1024, 1.0] == pytest.approx(1.024, abs=5e-4)


def test_spaces():
    assert [k for k in range(30) if is_prime(k)] == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
    assert next_prime(1000) == 1009
    assert best_space(Fraction(1), 1024, 1) == (3, 7, 1)
    assert best_space(Fraction(4), 1024, 1) == (53, 3, 1)
    assert best_space(Fraction(40), 100, 1) == (101, 2, 1)  # randomised response, but for what primes there are
    blocks = best_space(Fraction(4), 1 << 20, "auto")
    assert blocks.blocks > 1
    assert blocks.q * blocks.points * blocks.blocks <= 32 << 20


@pytest.mark.parametrize("hybrid", [None, 4])
def test_best_guess_is_that_of_the_matrix(hybrid):
    law = PGR.make(2.0, 21, hybrid)
    rng = np.random.default_rng(3)
    runs = Runs.of_matrix([[float(p) for p in row] for row in law.transition_matrix()])
    for prior in (np.full(21, 1 / 21), np.sort(rng.dirichlet(np.full(21, 0.3))), rng.integers(0, 3, 21) + 0.0):
        prior = prior / prior.sum()
        np.testing.assert_allclose(law.guessing(prior), BestGuess(runs, prior).success, atol=1e-12)


def test_parameters_are_refused_by_name():
    X = np.array([[0], [1], [2]])
    for hybrid in (0, 3, 8, -2, True, 2.0, "fast", [2]):
        est = PGRFrequencyEstimator(1.0, categories=[[0, 1, 2]], hybrid=hybrid)
        with pytest.raises(ValueError, match="hybrid"):
            est.fit(X)
        assert not hasattr(est, "n_users_")
    with pytest.raises(ValueError, match="categories"):
        PGR.make(1.0, (1 << 20) + 1)
    with pytest.raises(ValueError, match="epsilon"):
        PGR.make(1e-19, 1000)
    assert "coarser" in PGR.make(80, 1000).slack
