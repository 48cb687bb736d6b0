"""Rows mapped by kernels: to a range, and in terms of components. What comes out, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest

from dpestim._core import moments, scaled
from dpestim.decomposition import DPPCA
from dpestim.preprocessing import DPMinMaxScaler

ODD = (np.nan, np.inf, -np.inf)
BOUNDS = ([-1.0, 0.0, -3.0], [1.0, 2.0, 5.0])


def table(n=5_000, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)) * [1, 2, 4]


def mapped(scaler, X):
    """Return what a scaler promises, by whole tables."""
    rows = np.clip(np.where(np.isnan(X), np.add(*scaler.bounds_) / 2, X), *scaler.bounds_)
    return np.clip(rows * scaler.scale_ + scaler.min_, *scaler.feature_range)


def projected(pca, X):
    """Return what components promise, by whole tables."""
    rows = pca._rows
    scores = rows.clipped(X) @ pca.components_.T - pca.components_ @ pca.mean_
    most = pca.norm_bound * (pca._divisors.min() if pca.whiten else 1) / (1 + 1e-6)
    length = np.linalg.norm(scores, axis=1, keepdims=True)
    scores *= most / np.maximum(length, most)
    return scores / pca._divisors if pca.whiten else scores


MODELS = [
    (DPMinMaxScaler(bounds=BOUNDS, feature_range=(-1, 2), random_state=0), mapped, 0),
    (DPMinMaxScaler(bounds=BOUNDS, quantiles=None), mapped, 0),
    *((DPPCA(9.0, delta=1e-6, random_state=0, **more), projected, 1e-12) for more in (
        {"bounds": BOUNDS}, {"bounds": BOUNDS, "n_components": 2, "whiten": True}, {"data_norm": 4.0},
        {"bounds": BOUNDS, "data_norm": 1.1, "n_components": 1}, {"bounds": BOUNDS, "assume_centered": True})),
]


@pytest.mark.parametrize(("model", "plain", "off"), MODELS)
def test_rows_of_any_kind_are_mapped_alike(model, plain, off):
    X = table()
    model.fit(X)
    X[7] *= 1e6  # (far beyond all bounds)
    expected = plain(model, X)
    locked = X.copy()
    locked.setflags(write=False)
    wide = np.zeros((len(X), 7))
    wide[:, ::3] = X
    for rows in (X, np.asfortranarray(X), locked, wide[:, ::3], X.astype(">f8"), X.tolist(), pd.DataFrame(X)):
        np.testing.assert_allclose(model.transform(rows), expected, rtol=off, atol=off)
    for kind in (np.float32, np.float16, np.int8, np.int64, bool):
        with np.errstate(all="ignore"):
            rows = np.clip(X, -90, 90).astype(kind)
        np.testing.assert_array_equal(model.transform(rows), model.transform(rows.astype(float)))
    for n in (1, 15, 16, 17, 2048, 2049):
        np.testing.assert_array_equal(model.transform(X[:n]), model.transform(X)[:n])
    assert (np.linalg.norm(model.transform(X), axis=1) <= model.norm_bound).all()


@pytest.mark.parametrize(("model", "plain", "off"), MODELS)
@pytest.mark.parametrize("at", [0, 2047, 2048, 4999])
@pytest.mark.parametrize("odd", ODD)
def test_a_row_that_is_not_finite_is_refused_wherever_it_is(model, plain, off, at, odd):
    X = table()
    model.fit(X)
    X[at, 1] = odd
    for rows in (X, np.asfortranarray(X), X.astype(np.float32)):
        with pytest.raises(ValueError, match="column 1 of X contains NaN or infinity"):
            model.transform(rows)
        with pytest.raises(ValueError, match="column 1 of X contains NaN or infinity"):
            model.fit(rows)
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        model.transform(X[:0])


@pytest.mark.skipif(np.finfo(np.longdouble).max <= np.finfo(float).max, reason="no wider floats here")
@pytest.mark.parametrize(("model", "plain", "off"), MODELS)
def test_a_number_beyond_floats_is_refused_without_a_warning(model, plain, off):
    X = table(40)
    model.fit(X)
    X = X.astype(np.longdouble)
    X[7, 1] = np.longdouble(10) ** 400
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="column 1 of X contains NaN or infinity"):
            model.transform(X)


@pytest.mark.parametrize(("model", "plain", "off"), MODELS)
def test_strict_mode_has_a_place_for_what_is_not_finite(model, plain, off):
    import dpestim

    X = table()
    model.fit(X)
    X[[3, 2500], 1] = np.nan
    X[4, 2], X[2501, 0] = np.inf, -np.inf
    with dpestim.config_context(strict=True):
        found = model.transform(X)
        assert model.transform(X[:0]).shape == (0, found.shape[1])
    np.testing.assert_allclose(found, plain(model, X), rtol=off, atol=off)


@pytest.mark.parametrize("d", [1, 3, 4, 20, 33])
@pytest.mark.parametrize("k", [1, 2, 4, 5, 7, 20])
def test_vectors_of_every_width_write_the_same_scores(d, k):
    rng = np.random.default_rng(d)
    X, w, constant = rng.normal(size=(53, d)) * 2, rng.normal(size=(k, d)), rng.normal(size=k)
    box, by = np.array([[-1.0] * d, [1.5] * d]), rng.random(k) + 0.5
    expected = np.clip(X, *box) @ w.T + constant
    expected *= (3 / np.maximum(np.linalg.norm(expected, axis=1), 3))[:, None]
    for divisors in (np.empty(0), by):
        out = []
        for bits in (128, 256, 512, -1):
            out.append(np.full((53, k), np.nan))
            assert scaled.project(X, box, w, constant, 3.0, divisors, out[-1], bits)
        assert all(np.array_equal(out[0], other) for other in out)
        np.testing.assert_allclose(out[0], expected / (by if len(divisors) else 1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("odd", ODD)
def test_kernels_see_every_number_that_is_not_finite(odd):
    lines = np.tile([[-1.0], [1.0], [0.5], [1.0], [0.0]], 30)
    for n in (1, 8, 100, (1 << 16) + 3):
        values = np.full(n, 1.7e308)
        values[::2] = 5e-324
        assert scaled.all_finite(values)
        assert scaled.map_lines(values, lines, -1.0, 1.0, np.empty(n))
        for at in {0, n // 2, n - 1}:
            row = values.copy()
            row[at] = odd
            out = np.empty(n)
            assert not scaled.all_finite(row)
            assert not scaled.map_lines(row, lines, -1.0, 1.0, out)
            assert out[at] == (0.5 if np.isnan(odd) else np.sign(odd))


def test_values_in_windows_are_gathered_in_their_order():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 50, (1001, 3)).astype(float)
    low, high = np.array([[3.0, 10, -np.inf], [20, 11, 40]]), np.array([[5.0, 10, 2], [30, 12, np.inf]])
    below, count, kept = np.zeros((2, 12), np.int64), np.zeros(3, np.int64), np.empty((3, 300))
    scaled.gather(X.reshape(-1), np.tile(low, 4), np.tile(high, 4), below, np.empty(12, np.int64), count, kept)
    assert below.reshape(2, 4, 3).sum(axis=1).tolist() == [(row > X).sum(axis=0).tolist() for row in low]
    within = ((low[:, None] <= X) & (high[:, None] >= X)).any(axis=0)
    assert count.tolist() == within.sum(axis=0).tolist()
    for j in range(3):
        assert kept[j][: count[j]][:299].tolist() == X[within[:, j], j].tolist()[:299]  # (the last place is spare)
    with pytest.raises(ValueError, match="differ in their columns"):
        scaled.gather(X.reshape(-1)[:-1], low, high, below[:, :3].copy(), np.empty(3, np.int64), count, kept)


@pytest.mark.parametrize("width", [8, 16, 24, 40, 64])
@pytest.mark.parametrize("bits", [128, 256, 512, -1])
@pytest.mark.parametrize("n", [0, 1, 127, 128, 300])
def test_products_of_columns_are_exact_by_every_width(width, bits, n):
    block = np.random.default_rng(width).integers(-(1 << 19), 1 << 19, (n, width))
    sums = np.full((width, width), 3.0)
    moments.add_products(block.astype(float), sums, bits)
    expected = block.T @ block + 3
    assert np.triu(sums).tolist() == np.triu(expected).tolist()
    with pytest.raises(ValueError, match="multiple of 8"):
        moments.add_products(np.zeros((2, 7)), np.zeros((7, 7)))
