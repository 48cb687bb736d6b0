"""Exact noise: laws by enumeration and by samples, digits on demand."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dpestim import exact_reals
from dpestim._core import noise
from dpestim.rng import WordSource

ALPHA = 1e-6


class Script:
    """A reader that deals out scripted words first and seeded ones afterwards."""

    def __init__(self, *words):
        self.words, self.rng, self.drawn = list(words), np.random.default_rng(0), 0

    def dense(self, stage, column, block, start, size):
        out = self.rng.integers(0, 2**64, size, dtype=np.uint64)
        if column == 0 and block == 0:
            self.drawn = max(self.drawn, start + size)
            for k in range(start, min(start + size, len(self.words))):
                out[k - start] = self.words[k]
        return out


def stream(seed=0, column=0, ahead=64):
    return exact_reals.BitStream(WordSource(seed).reader(), column, 0, ahead)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 2**64 - 1, 2**64, 2**64 + 1, 3 * 2**100])
def test_below_is_uniform(n):
    source = stream()
    drawn = [source.below(n) for _ in range(3000)]
    assert 0 <= min(drawn) <= max(drawn) < n
    if n < 100:
        assert n == 1 or stats.chisquare(np.bincount(drawn, minlength=n)).pvalue > ALPHA
    else:
        assert stats.kstest([d / n for d in drawn], "uniform").pvalue > ALPHA


def test_exponentials_are_exponential():
    source = stream(ahead=1000)
    drawn = [exact_reals.gamma([source]) for _ in range(4000)]
    assert all(0 < low < high < low * (1 + Decimal(2) ** -63) for low, high in drawn)
    middle = np.array([float(low) for low, _ in drawn])
    assert stats.kstest(middle, "expon").pvalue > ALPHA
    assert stats.kstest(1.15 * middle, "expon").pvalue < ALPHA


def test_a_sum_of_exponentials_is_the_sum():
    """The logarithm of the product, and the sum of the logarithms: intervals around the same real meet."""
    reader = WordSource(3).reader()
    for size in (2, 21, 500):
        low, high = exact_reals.gamma([exact_reals.BitStream(reader, size, block) for block in range(size)])
        parts = [exact_reals.gamma([exact_reals.BitStream(reader, size, block)]) for block in range(size)]
        assert high - low <= low * Decimal(2) ** -64
        with localcontext(Context(prec=100)):
            assert max(low, sum(p[0] for p in parts)) <= min(high, sum(p[1] for p in parts))


@pytest.mark.parametrize("digits", [128, 192, 640])
@pytest.mark.parametrize("log", [math.log, lambda x: 1.0001 * math.log(x), lambda x: 99.0])
@pytest.mark.no_kernel
def test_logarithms_are_enclosed_whatever_the_library_says(digits, log, monkeypatch):
    down, up = exact_reals._directed(digits)
    monkeypatch.setattr(exact_reals, "math", SimpleNamespace(log=log))
    rng = np.random.default_rng(0)
    xs = np.concatenate([rng.random(60), 1 - rng.random(20) / 2**40, 10.0 ** -rng.uniform(1, 300, 20)])
    for x in [*map(Decimal, xs.tolist()), Decimal(1), Decimal("1e-12345"), Decimal(2) ** -64]:
        low, high = exact_reals._log(x, down, up)
        with localcontext(Context(prec=400)):
            assert low <= x.ln() <= high
            if log is math.log:
                assert high - low <= max(1, abs(high)) * Decimal(2) ** -100  # intervals of 2^-64 are wanted


def test_normals_are_normal():
    x = np.concatenate([exact_reals.gaussian(WordSource(0).reader(), c, 41) for c in range(100)])
    assert stats.kstest(x, "norm").pvalue > ALPHA
    assert stats.kstest(1.2 * x, "norm").pvalue < ALPHA
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 5 / math.sqrt(len(x))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_ball_has_a_gamma_radius_and_any_direction(size):
    reader = WordSource(1).reader()
    x = np.array([exact_reals.gamma_ball(reader, 2 * c, size) for c in range(1000)])
    radius = np.linalg.norm(x, axis=1)
    assert stats.kstest(radius, "gamma", args=(size,)).pvalue > ALPHA
    assert stats.kstest(radius, "gamma", args=(1.3 * size,)).pvalue < ALPHA
    assert (np.abs(x.mean(axis=0)) < 5 * x.std(axis=0) / math.sqrt(1000)).all()
    if size == 2:
        angle = np.arctan2(x[:, 1], x[:, 0])
        assert stats.kstest((angle + math.pi) / (2 * math.pi), "uniform").pvalue > ALPHA


def test_a_word_of_zeros_makes_it_draw_more():
    """u near 0 and u near 1: the interval of -ln u is too wide until further digits come."""
    short, zeros, ones = Script(1 << 63), Script(0, 0, 0, 0), Script(*[2**64 - 1] * 3)
    for script, digits in ((short, 2), (zeros, 6), (ones, 5)):
        low, high = exact_reals.gamma([exact_reals.BitStream(script, 0, 0, 1)])
        assert 0 < low < high <= low * (1 + Decimal(2) ** -63)
        assert script.drawn >= min(digits, 4)
    low, _ = exact_reals.gamma([exact_reals.BitStream(Script(0, 0, 0, 0), 0, 0, 1)])
    assert low > 4 * 64 * Decimal(2).ln() * Decimal("0.99")  # beyond what any float of 64 or 128 bits could give
    low, high = exact_reals.gamma([exact_reals.BitStream(Script(*[2**64 - 1] * 3), 0, 0, 1)])
    assert high < Decimal(2) ** -190


def test_an_undecided_point_of_the_disk_is_decided_by_more_digits():
    """(x, y) = (1, 0) as far as 128 bits tell: on which side of the circle it lies takes further ones."""
    top, half = 2**64 - 1, 1 << 63
    script = Script(top, top, half, 0)
    pairs = exact_reals._normal_pair(exact_reals.BitStream(script, 0, 0, 1), Decimal(2) ** -64)
    assert script.drawn > 4
    assert all(high - low <= Decimal(2) ** -64 for low, high in pairs)
    # the centre of the disk: s = 0 until more digits come
    script = Script(half, 0, half, 0)
    pairs = exact_reals._normal_pair(exact_reals.BitStream(script, 0, 0, 1), Decimal(2) ** -64)
    assert script.drawn > 4
    assert max(abs(low) for low, _ in pairs) > 10


def test_narrower_intervals_lie_inside_wider_ones():
    reader = WordSource(5).reader()
    wide = exact_reals._normals(reader, 3, 9, Decimal(2) ** -60)
    narrow = exact_reals._normals(reader, 3, 9, Decimal(2) ** -200)
    for (a, b), (c, d) in zip(wide, narrow):
        assert a <= c < d <= b
        assert d - c <= Decimal(2) ** -200


SLOW = {exact_reals.gaussian: exact_reals.by_intervals, exact_reals.gamma_ball: exact_reals.ball_by_intervals}


@pytest.mark.parametrize("draw", [*SLOW, *SLOW.values()])
def test_floats_keep_the_promised_distance(draw, monkeypatch):
    """Asked for many more digits, the same words give the same vector within the bound: by the kernel, too."""
    for seed in range(20):
        coarse = draw(WordSource(seed).reader(), 0, 7)
        monkeypatch.setattr(exact_reals, "_NARROW", Decimal(2) ** -150)
        fine = SLOW.get(draw, draw)(WordSource(seed).reader(), 0, 7)
        monkeypatch.undo()
        assert np.linalg.norm(coarse - fine) <= exact_reals.RELATIVE_ERROR * np.linalg.norm(fine)
        if draw in SLOW:  # (what both round is next to the same real)
            assert np.array_equal(coarse, fine)


@pytest.mark.parametrize("size", [1, 2, 41, 700])
def test_the_kernel_decides_nearly_always(size, monkeypatch):
    monkeypatch.setattr(exact_reals, "_normals", None)
    for draw in SLOW:
        norms = [np.linalg.norm(draw(WordSource(seed).reader(), 0, size)) for seed in range(5)]
        assert np.isfinite(norms).all()


def corner(x, y, more=()):
    """Return words of a point of the disk, from sides in (-1, 1), and then of others."""
    digits = [int((Fraction(side) + 1) * 2**127) for side in (x, y)]
    return np.array([[w for d in digits for w in (d >> 64, d & (2**64 - 1))] + list(more)], np.uint64)


def test_the_kernel_leaves_to_decimals_what_its_digits_do_not_decide():
    """Points next to the circle or to the centre, products next to 1 or of tiny numbers, and points that never hit."""
    out, scratch = np.empty((2, 2))
    good = corner(Fraction(1, 3), Fraction(-1, 5))
    sums = np.full((2, 2), 1 << 63, np.uint64)
    assert noise.vector(good, sums, out, scratch)
    assert out[0] / out[1] == pytest.approx(-5 / 3, rel=1e-15)
    assert np.linalg.norm(out) == pytest.approx(2 * math.log(2), rel=1e-15)
    near = Fraction(1, 2**29)
    for x, y in ((1 - near, 0), (Fraction(3, 5), Fraction(4, 5)), (Fraction(1, 2**21), 0), (0, 0)):
        assert not noise.vector(corner(x, y), None, out, scratch)
    outside = corner(Fraction(9, 10), Fraction(-9, 10))
    assert not noise.vector(outside, None, out, scratch)
    assert noise.vector(np.hstack([outside, good]), None, out, scratch)
    assert np.linalg.norm(out) == pytest.approx(math.sqrt(-2 * math.log(1 / 9 + 1 / 25)), rel=1e-15)
    for word in (0, 2**39, 2**64 - 1):
        assert not noise.vector(good, np.full((2, 2), word, np.uint64), out, scratch)
    for words, more in ((good[:, :3].copy(), None), (good, sums[:1].copy()), (np.vstack([good, good]), None)):
        with pytest.raises(ValueError, match="words"):
            noise.vector(words, more, out, scratch)


def test_a_tiny_vector_is_drawn_with_relative_precision(monkeypatch):
    asked = []

    def tiny(reader, column, size, narrow):
        asked.append(narrow)
        return [(Decimal("1e-12"), Decimal("1e-12") + narrow)] * size

    monkeypatch.setattr(exact_reals, "_normals", tiny)
    exact_reals.by_intervals(None, 0, 3)
    assert len(asked) == 2
    assert asked[1] < Decimal("1.01") * asked[0] ** 2
    exact_reals.ball_by_intervals(WordSource(0).reader(), 0, 3)
    assert len(asked) == 4
