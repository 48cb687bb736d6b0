"""Walks of cells, and chains that are drawn from noisy counts of them."""

import itertools

import numpy as np
import pytest

from dpestim.accounting import Ledger
from dpestim.geo import TrajectorySynthesizer
from dpestim.geo.fine import FINE, fine_table, parts_of, spread, summed
from dpestim.geo.trajectories import tables_of, walks_of

LOW, HIGH = np.zeros(2), np.full(2, 4.0)


def walk(row, most=6):
    found = walks_of(np.array([row], float), LOW, HIGH, 4, most)[0]
    return [tuple(cell) for cell in found.tolist() if cell[0] >= 0]


def test_walks_go_through_neighbours_and_end():
    nan = np.nan
    assert walk([0.5, 0.5, 0.6, 0.4]) == [(0, 0), (0, 0)]
    assert walk([0.5, 0.5, 3.5, 1.5]) == [(0, 0), (1, 1), (2, 1), (3, 1)]
    assert walk([0.5, 0.5, nan, nan, 3.5, 3.5]) == [(0, 0)]
    assert walk([9.0, -9.0, 3.9, 0.0]) == [(3, 0), (3, 0)]
    assert walk([0.5, 0.5, 3.5, 3.5], most=3) == [(0, 0), (1, 1), (2, 2)]
    walks = walks_of(np.array([[0.5, 0.5, 3.5, 1.5], [2.5, 2.5, nan, nan]]), LOW, HIGH, 4, 6)
    lengths, starts, steps = tables_of(walks, 4)
    assert lengths.tolist() == [1, 0, 0, 1, 0, 0]
    assert starts[0, 0] == starts[2, 2] == 1
    assert steps.sum() == 3
    assert steps[0, 0, 8] == steps[1, 1, 7] == steps[2, 1, 7] == 1


def test_drawn_trajectories_resemble_those_of_people():
    rng = np.random.default_rng(0)
    steps = rng.uniform([0, -30], [100, 30], (20_000, 8, 2))
    X = np.add(np.cumsum(steps, axis=1), [100, 500]).reshape(20_000, 16)
    X[rng.random(20_000) < 0.5, 8:] = np.nan  # half of them are short
    est = TrajectorySynthesizer(2.0, region=(0, 1000), units="metres", cells=8, max_length=8, random_state=0).fit(X)
    drawn = est.sample(10_000, random_state=0).reshape(10_000, 8, 2)
    assert abs(np.isnan(drawn[:, 7, 0]).mean() - 0.5) < 0.15
    assert abs(np.nanmean(drawn[:, 3, 0] - drawn[:, 0, 0]) - 150) < 30
    assert abs(np.nanmean(drawn[:, 3, 1]) - 500) < 30


def test_a_row_moves_sums_of_places_by_no_more_than_its_places():
    """All rows of four places that a small set allows, all pairs of these, and parts of all sizes."""
    places = [(0.1, 0.1), (0.2, 0.1), (3.9, 2.1), (-9.0, 99.0), (np.nan, 1.0), (np.nan, np.nan)]
    rows = np.array([np.ravel(own) for own in itertools.product(places, repeat=4)])
    parts = np.array([[1, 2], [4, 8]])
    tables = [fine_table(row[None], LOW, HIGH, 2, 3) for row in rows]
    for counts in (np.array([table.ravel() for table in tables]), np.array([summed(t, parts) for t in tables])):
        own = np.unique(counts, axis=0)
        assert own.sum(axis=1).max() == 3
        assert np.abs(own[:, None] - own).sum(axis=2).max() == 6
    together = fine_table(rows, LOW, HIGH, 2, 3)
    assert (together == sum(tables)).all()
    assert (summed(spread(summed(together, parts), parts), parts) == summed(together, parts)).all()
    one = fine_table(np.array([[3.9, 2.1, np.nan, np.nan, 0.1, 0.1]]), LOW, HIGH, 2, 3)
    assert one.sum() == one[1, 1, 7, 0] == 1


def test_cells_of_many_visits_have_many_parts():
    noise = TrajectorySynthesizer(1.0, region=(0, 1), units="metres", method="ag", max_length=10)._noises()[3]
    steps = np.zeros((1, 5, 9), np.int64)
    steps[0, :, 4] = -10**6, 100, 10**4, 10**5, 10**6
    assert parts_of(steps, noise).tolist() == [[1, 1, 4, FINE, FINE]]


def test_parts_follow_from_released_steps_alone():
    """Exact steps would tell about rows: counts are even within the parts that noisy steps ask for, with every seed."""
    est = TrajectorySynthesizer(12.0, region=(0, 1), units="metres", cells=2, max_length=3, method="ag")
    X, seen = np.random.default_rng(0).random((60, 6)), set()
    for seed in range(20):
        est.set_params(random_state=seed).fit(X)
        parts = parts_of(est.steps_, est._noises()[3])
        assert (spread(summed(est.places_, parts), parts) == est.places_).all()
        seen.add(tuple(parts.ravel().tolist()))
    assert len(seen) > 3


def test_places_of_a_city_are_nearer_with_the_adaptive_grid():
    rng = np.random.default_rng(0)
    spots = rng.uniform(1000, 7000, (12, 2))[rng.integers(0, 12, (4_000, 2))]
    ways = np.clip(np.linspace(-0.5, 1.5, 10), 0, 1)[:, None]
    X = spots[:, :1] * (1 - ways) + spots[:, 1:] * ways + rng.normal(0, 100, (4_000, 10, 2))
    truth, error = shares(X), {}
    for method in ("ug", "ag"):
        est = TrajectorySynthesizer(4.0, region=(0, 8000), units="metres", cells=8, max_length=15, method=method,
                                    random_state=0).fit(X.reshape(4_000, 20))
        error[method] = np.abs(shares(est.sample(4_000, random_state=0)) - truth).sum() / 2
    assert error["ag"] < 0.75 * error["ug"]


def shares(rows):
    places = rows.reshape(-1, 2)
    places = places[~np.isnan(places[:, 0])]
    counts = np.histogram2d(*places.T, bins=64, range=[[0, 8000]] * 2)[0]
    return counts / counts.sum()


def test_a_fit_with_even_places_forgets_counted_ones():
    X = np.random.default_rng(0).random((50, 6))
    est = TrajectorySynthesizer(1.0, region=(0, 1), units="metres", cells=2, method="ag", random_state=0).fit(X)
    assert est.places_.shape == (2, 2, FINE, FINE)
    assert len(est.release(X)) == 4
    assert est.set_params(method="ug").fit(X).places_ is None
    assert len(est.release(X)) == 3


@pytest.mark.parametrize(("more", "rows", "words"), [
    ({}, [[1.0, 2.0, 3.0]], "two columns for each place"), ({}, [[np.nan, 2.0]], "first place"),
    ({"region": None}, [[1.0, 2.0]], "region must be declared"), ({"cells": 1}, [[1.0, 2.0]], "cells must be"),
    ({"method": "privtree"}, [[1.0, 2.0]], "method must be"),
])
def test_what_is_no_trajectory_spends_nothing(more, rows, words):
    ledger = Ledger(1)
    with pytest.raises(ValueError, match=words):
        TrajectorySynthesizer(0.5, **{"region": (0, 4), "units": "metres", **more}, ledger=ledger).fit(rows)
    assert ledger.spent().is_nothing
