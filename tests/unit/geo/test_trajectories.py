"""Walks of cells, and chains that are drawn from noisy counts of them."""

import numpy as np
import pytest

from dpestim.accounting import Ledger
from dpestim.geo import TrajectorySynthesizer
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


@pytest.mark.parametrize(("more", "rows", "words"), [
    ({}, [[1.0, 2.0, 3.0]], "two columns for each place"), ({}, [[np.nan, 2.0]], "first place"),
    ({"region": None}, [[1.0, 2.0]], "region must be declared"), ({"cells": 1}, [[1.0, 2.0]], "cells must be"),
])
def test_what_is_no_trajectory_spends_nothing(more, rows, words):
    ledger = Ledger(1)
    with pytest.raises(ValueError, match=words):
        TrajectorySynthesizer(0.5, **{"region": (0, 4), "units": "metres", **more}, ledger=ledger).fit(rows)
    assert ledger.spent().is_nothing
