"""Ranks found without a sort of all rows: choices are those of all rows, whatever was guessed."""

import numpy as np
import pytest

from dpestim.preprocessing import DPMinMaxScaler
from dpestim.statistics import near_ranks
from dpestim.statistics.near_ranks import NearRanked, ranked_near
from dpestim.statistics.ranks import fine, ranked
from dpestim.statistics.summary import grids_of

N = 40_000


def near_of(column, grid, windows, whole):
    """Return what `ranked_near` would of these windows, counted by NumPy."""
    within = np.zeros(len(column), bool)
    for low, high in windows:
        within |= (low <= column) & (column <= high)
    below = [int((column < low).sum()) for low, _ in windows]
    return NearRanked(len(column), column[within], windows, below, whole)


@pytest.mark.parametrize("decimals", [0, 1, 9])
@pytest.mark.parametrize("seed", range(20))
def test_cells_of_any_windows_are_those_of_all_rows(seed, decimals):
    rng = np.random.default_rng(seed)
    (grid,) = grids_of(((-2.0, 3.0), (0.0, 1.0), (1e6, 1e6 + 1))[seed % 3], 1)
    spread = (grid.high - grid.low) * rng.choice([0.2, 0.5, 2.0])
    column = (grid.low + spread * rng.random(60) - spread / 4).round(decimals)
    ends = np.sort(rng.choice(np.r_[column, column + grid.step, column - grid.step], 4)).tolist()
    windows = [(-np.inf if seed % 4 == 0 else ends[0], ends[1]), (ends[2], np.inf if seed % 5 == 0 else ends[3])]
    if ends[1] >= ends[2]:
        windows = [(-np.inf, -np.inf), (windows[0][0], windows[1][1])]
    (all_rows,) = ranked(column[:, None], [grid])
    found = []

    def whole():
        found.append(1)
        return all_rows

    known, kept = all_rows.fine_cells(grid), near_of(column, grid, windows, whole).fine_cells(grid)
    at = fine(grid).points(np.array(ends)) + kept.points[-1] // 2
    for target in [*range(-8, 69, 7), *np.searchsorted(np.sort(column), ends).tolist()]:
        own = near_of(column, grid, windows, whole).fine_cells(grid)
        assert own.total == known.total
        for gap, cells in ((0, own), (3, own), (0, kept), (3, kept)):
            mine, theirs = cells.near(target, 0, gap), known.near(target, 0, gap)
            for a, b in zip(cells.spans(*mine), known.spans(*theirs)):
                np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(cells.scores(target, 0, *mine), known.scores(target, 0, *theirs))
        last = own.last - own.first
        points = np.clip(np.r_[at, 0, last, own.points - 1, own.points, own.points + 1], 0, last)
        for point in [*points[:6], *points[6 :: 1 + len(points) // 12]]:
            fresh = near_of(column, grid, windows, whole).fine_cells(grid)
            assert fresh.score(int(point), target, 0) == known.score(int(point), target, 0)
    assert near_of(column, grid, windows, whole).coarse_cells(grid).upto.tolist() == (
        all_rows.coarse_cells(grid).upto.tolist())
    fresh = near_of(column, grid, windows, whole).fine_cells(grid)
    assert fresh.scores(30, 0).tolist() == known.scores(30, 0).tolist()
    fresh = near_of(column, grid, windows, whole).fine_cells(grid)
    assert fresh.starts().tolist() == known.starts().tolist()


@pytest.fixture
def sorted_columns(monkeypatch):
    """Return the list of columns that were sorted after all."""
    found, whole = [], near_ranks._whole

    def noted(rows, j, grid):
        found.append(j)
        return whole(rows, j, grid)

    monkeypatch.setattr(near_ranks, "_whole", noted)
    return found


def tables():
    X = np.random.default_rng(5).normal(size=(N, 3))
    return {
        "numbers": (X, (-5.0, 5.0)), "sorted": (np.sort(X, axis=0), (-5.0, 5.0)), "tenths": (X.round(1), (-5, 5)),
        "too wide": (X, (-1e9, 1e9)), "clipped": (np.abs(X), (0.0, 1.0)), "one column": (X[:, :1], (-5.0, 5.0)),
        "constant": (0 * X + 1, (-5.0, 5.0)), "a wave": (np.tile(np.arange(64.0), N // 64)[:, None], (0.0, 64.0)),
        "float32": (X.astype(np.float32), (-5.0, 5.0)), "Fortran": (np.asfortranarray(X), (-5.0, 5.0)),
        "integers": (np.random.default_rng(6).integers(-99, 99, (N, 2)), (-100, 100)),
    }


@pytest.mark.parametrize("name", tables())
@pytest.mark.parametrize("quantiles", [(0.01, 0.99), (0, 1), (0.4, 0.41)])
def test_seeded_ends_are_those_of_sorted_columns(name, quantiles, monkeypatch, sorted_columns):
    X, bounds = tables()[name]
    scalers = [DPMinMaxScaler(20.0, bounds=bounds, quantiles=quantiles, random_state=seed) for seed in range(3)]
    for scaler in scalers:
        scaler.fit(X)
    if quantiles == (0.01, 0.99) and name in ("numbers", "sorted", "tenths", "too wide", "float32", "Fortran"):
        assert not sorted_columns
    monkeypatch.setattr(near_ranks, "_FEWEST", 1 << 40)
    for scaler in scalers:
        other = DPMinMaxScaler(**scaler.get_params()).fit(X)
        assert other.data_min_.tolist() == scaler.data_min_.tolist()
        assert other.data_max_.tolist() == scaler.data_max_.tolist()


def test_a_draw_that_meets_a_far_point_sorts_the_column(sorted_columns):
    X = np.random.default_rng(0).normal(size=(N, 1))
    (grid,) = grids_of((-5.0, 5.0), 1)
    (near,) = ranked_near(X, [grid], [(1_900, 2_100)])
    (known,) = ranked(X, [grid])
    cells, whole = near.fine_cells(grid), known.fine_cells(grid)
    assert cells.score(1 << 30, 2_000, 0) == whole.score(1 << 30, 2_000, 0)
    assert sorted_columns == [0]
    few, known = near.fine_cells(grid), whole.spans(5, 9)[0].tolist()
    assert few.spans(5, 9)[0].tolist() != known
    few.starts()
    assert few.spans(5, 9)[0].tolist() == known


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_rows_are_not_lost(n, monkeypatch):
    """Room for kept rows is a part of their number, which rounds to none: they were no rows at all then."""
    monkeypatch.setattr(near_ranks, "_FEWEST", 1)
    monkeypatch.setattr(near_ranks, "_guessed", lambda *_: (np.array([[[-np.inf, np.inf]]]), 0.0))
    X, (grid,) = np.full((n, 1), 29.5), grids_of((0.0, 64.0), 1)
    (near,), (known,) = ranked_near(X, [grid], [(0, n)]), ranked(X, [grid])
    cells, whole = near.fine_cells(grid), known.fine_cells(grid)
    for a, b in zip(cells.spans(*cells.near(1, 0, 9)), whole.spans(*whole.near(1, 0, 9))):
        np.testing.assert_array_equal(a, b)
