"""Rows scaled by public bounds, scores of them and sums of grid points: the kernels against plain NumPy."""

import numpy as np
import pytest
from scipy.special import expit

from dpestim._core import logistic, scaled
from dpestim.inputs.scaled import Scale
from dpestim.statistics.summary import Grid

ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e300, -1e300, 5e-324, 1.0, -1.0])


def plain_rows(scale, X):
    """Return what `Scale.rows` promises, by whole tables."""
    half = scale._half
    with np.errstate(all="ignore"):
        by = np.where(half > 0, half, 1.0)
        rows = (X - scale.low) / by - 1.0 if scale.centred else np.clip(X, scale.low, scale.high) / by
        return np.where(half > 0, np.clip(rows, -1.0, 1.0), 0.0 * rows)


def scales():
    low, high = np.array([-1.0, 0.0, 2.0, -1e9, 5.0]), np.array([1.0, 0.3, 7.0, 1e9, 5.0])
    return [Scale(low, high), Scale(low, high, centred=False), Scale(0 * low, 0 * low, centred=False)]


@pytest.mark.parametrize("scale", scales())
@pytest.mark.parametrize("n_rows", [0, 1, 7, 200])
def test_rows_are_scaled_as_whole_tables_are(scale, n_rows):
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 5)) * 10.0 ** rng.integers(-3, 10, (n_rows, 5))
    X[rng.random(X.shape) < 0.2] = rng.choice(ODD)
    np.testing.assert_array_equal(scale.rows(X), plain_rows(scale, X))


@pytest.mark.parametrize("n_columns", [1, 5, 8, 19])
@pytest.mark.parametrize("kind", ["as it is", "centred", "from 0"])
def test_scores_are_those_of_clipped_rows(n_columns, kind):
    rng = np.random.default_rng(n_columns)
    X = rng.normal(size=(37, n_columns)) * 3
    X[4, 0], X[9, -1] = np.nan, np.inf
    scale = None
    columns, number = np.zeros((4, n_columns)), 0
    if kind != "as it is":
        low, high = -rng.random(n_columns), rng.random(n_columns)
        low[0] = high[0] = 0.0
        scale = Scale(low, high, centred=kind == "centred")
        columns, number = scale.parts()
    weights, constant = rng.normal(size=(2, n_columns)), rng.normal(size=2)
    out = np.full((37, 2), np.nan)
    assert not scaled.scores(X, *columns, number, 0.5, 0.9, weights, constant, out)
    with np.errstate(all="ignore"):
        rows = X if scale is None else scale.rows(X)
    good = np.isfinite(rows).all(axis=1)
    factors = np.empty(37)
    logistic.clip_factors(np.ascontiguousarray(rows), 0.5, 0.9, factors)
    expected = np.where(good, 1, 0)[:, None] * ((np.where(good[:, None], rows, 0) * factors[:, None])
                                                @ weights.T) + constant
    assert (factors[~good] == 0).all()
    assert not good.all()
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-14)
    far = np.zeros((74, 2 * n_columns))
    far[::2, ::2] = X
    for table in (np.asfortranarray(X), far[::2, ::2]):  # neither the order in memory nor vectors change a bit
        for bits in (0, 256, 512):
            again = np.full((37, 2), np.nan)
            scaled.scores(table, *columns, number, 0.5, 0.9, weights, constant, again, bits)
            np.testing.assert_array_equal(again, out)
    usual = np.where(np.isfinite(X), X, 0.5)
    assert scaled.scores(usual, *columns, number, 0.5, 0.9, weights, constant, out)


@pytest.mark.parametrize("bits", [0, 3, 20])
@pytest.mark.parametrize("n_rows", [0, 1, 15, 16, 17, 1000, 40_000])
def test_sums_of_points_are_exact(bits, n_rows):
    grid = Grid(-1.5, 2.25, bits)
    rng = np.random.default_rng(n_rows)
    column = rng.normal(size=n_rows)
    column[: min(n_rows, len(ODD))] = ODD[:n_rows]
    column[len(ODD) :: 3] = (np.round(column[len(ODD) :: 3] * grid.scale) + 0.5) / grid.scale  # (halfway)
    points = [int(point) for point in grid.points(column)]
    assert grid.sums(column) == (sum(points), 0)
    assert grid.sums(column, squares=True) == (sum(points), sum(point * point for point in points))
    assert (grid.sums(column, finite=True) is None) == (n_rows > 0)  # (the first value is NaN)
    fine = np.where(np.isfinite(column), column, 1e308)  # (of which the sum is not finite)
    assert grid.sums(fine, finite=True) == grid.sums(fine)
    for bits in (0, 128, 256, 512):  # (one that the processor has not is the widest that it has)
        call = column, grid.scale, float(grid.first), grid.span, grid.low, grid.high, grid.span // 2
        for squares in (False, True):
            assert scaled.sum_points(*call, squares, bits=bits) == grid.sums(column, squares)


def test_widest_span_adds_up_in_steps():
    span = (1 << 51) - 1
    column = np.full(9, 1e30)
    assert scaled.sum_points(column, 1.0, 0.0, span, 0.0, float(span), 0) == (9 * span, 0)


def test_many_points_far_from_the_middle_add_up_beyond_64_bits():
    """The sum is an int of any size: it was once short by multiples of 2^64."""
    span, n = (1 << 51) - 1, 20_000
    for value, middle in ((np.inf, span // 2), (-np.inf, span // 2), (np.inf, 0), (-np.inf, span)):
        total, _ = scaled.sum_points(np.full(n, value), 1.0, 0.0, span, 0.0, float(span), middle)
        assert total == n * ((span if value > 0 else 0) - middle)


@pytest.mark.parametrize("kind", [0, 2])
def test_rows_beyond_all_squares_have_scores(kind):
    """Squares that overflow, or are 0, and a row of zeros: as for other rows, and all are finite."""
    X = np.array([[3e200, 4e200], [0.0, 0.0], [3e-200, 4e-200], [3.0, 4.0], [1e308, 1e308]])
    ends, out = np.full(2, 1e308), np.full((5, 1), np.nan)
    assert scaled.scores(X, -ends, ends, np.ones(2), ends, kind, 0.1, 1.0, np.array([[1.0, 2.0]]), np.zeros(1), out)
    np.testing.assert_allclose(out[:, 0], [2.2, 0.0, 1.1e-200, 1.1, 3 / np.sqrt(2)], rtol=4e-16)


def test_chances_are_those_of_scipy():
    scores = np.r_[np.linspace(-800, 800, 1001), 0.0, -0.0, np.inf, -np.inf, 1e-300, np.nan, np.linspace(-1, 1, 99)]
    out = np.full((len(scores), 2), np.nan)
    scaled.chances(scores, out)
    np.testing.assert_allclose(out, np.stack([expit(-scores), expit(scores)], axis=1), rtol=1e-14, atol=1e-304)
    assert np.isnan(out[np.isnan(scores)]).all()
    scaled.chances(np.zeros(0), np.zeros((0, 2)))
    with pytest.raises(ValueError, match="two"):
        scaled.chances(scores, out[:-1])


def test_scores_without_columns_are_written():
    out, none = np.full((3, 2), np.nan), np.zeros(0)
    scaled.scores(np.zeros((3, 0)), none, none, none, none, 0, 1.0, 1.0, np.zeros((2, 0)), np.ones(2), out)
    assert (out == 1).all()


def test_shapes_are_checked():
    X, d = np.zeros((3, 2)), np.ones(2)
    with pytest.raises(ValueError, match="shape"):
        scaled.scale_rows(X, d, d, d, np.ones(3), True, np.zeros((3, 2)))
    for wrong, call in (("shape", (0, 1.0, 1.0, np.zeros((1, 7)), d[:1], np.zeros((3, 1)))),
                        ("shape", (0, 1.0, 1.0, np.zeros((1, 2)), d, np.zeros((3, 1)))),
                        ("kind", (3, 1.0, 1.0, np.zeros((1, 2)), d[:1], np.zeros((3, 1))))):
        with pytest.raises(ValueError, match=wrong):
            scaled.scores(X, d, d, d, d, *call)
    apart = np.zeros((3, 2), "f8,i4")["f0"]
    with pytest.raises(ValueError, match="apart"):
        scaled.scores(apart, d, d, d, d, 0, 1.0, 1.0, np.zeros((1, 2)), d[:1], np.zeros((3, 1)))
    with pytest.raises(ValueError, match="2\\^51"):
        scaled.sum_points(np.zeros(1), 1.0, 0.0, 1 << 51, 0.0, 1.0, 0)
    for wrong, call in (("power of two", (1.5, 0.0, 3, 0.0, 2.0, 0)), ("bounds", (1.0, 0.0, 3, -1.0, 2.0, 0)),
                        ("bounds", (1.0, 0.0, 3, 0.0, np.nan, 0)), ("squares", (1.0, 0.0, 1 << 30, 0.0, 2.0, 0, True))):
        with pytest.raises(ValueError, match=wrong):
            scaled.sum_points(np.zeros(1), *call)
