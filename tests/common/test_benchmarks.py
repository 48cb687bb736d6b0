"""Benchmarks take their mechanisms from the registry: a newcomer is timed without a line there."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from dpestim.base import all_estimators


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    from benchmarks import _harness, frequencies, memory, numbers, vectors

    monkeypatch.setattr(_harness, "ONCE", True)
    return frequencies, numbers, memory, vectors


def test_every_mechanism_is_timed(benchmarks):
    frequencies, numbers, _, vectors = benchmarks
    timed = {cls for _, cls in (*frequencies.mechanisms(), *numbers.transformers(), *vectors.transformers())}
    assert timed == {cls for _, cls in all_estimators() if hasattr(cls, "privatize") and hasattr(cls, "transform")}


def test_every_mechanism_on_answers_is_timed(benchmarks):
    from benchmarks import central

    names = [name for name, _ in central.mechanisms()]
    assert set(central.PEERS) | set(central.FEWER) <= set(names)
    rows = list(islice(central.rows(type("Settings", (), {"n": 1000})), 2))
    assert [row.name.split(",")[0] for row in rows] == 2 * names[:1]
    assert all(row.ours > 0 for row in rows)


def test_every_mechanism_that_chooses_is_timed(benchmarks):
    from benchmarks import selection

    names = [name for name, _ in selection.mechanisms()]
    assert {*selection.PEERS, *selection.TARGET} <= set(names)
    rows = list(islice(selection.rows(type("Settings", (), {"n": 1000})), 2))
    assert [row.name.split(",")[0] for row in rows] == 2 * names[:1]
    assert all(row.ours > 0 for row in rows)


def test_sparse_vectors_are_timed(benchmarks):
    from benchmarks import sparse_vector

    rows = list(sparse_vector.rows(type("Settings", (), {"n": 1000, "quick": True})))
    assert all(row.ours > 0 and row.ratio > 0 and row.met is None for row in rows)


def test_medians_are_timed_beside_the_same_medians(benchmarks, monkeypatch):
    from benchmarks import stability

    monkeypatch.setattr(stability, "_LOOP", 200)
    rows = list(stability.rows(type("Settings", (), {"n": 1000})))
    assert [row.baseline is not None for row in rows] == [False, True]
    assert all(row.ours > 0 for row in rows)
    x = np.random.default_rng(0).normal(size=101)
    median, smooth = stability.published(x, -10.0, 10.0, 0.5)
    mechanism = stability.SmoothSensitivity(1.0, bounds=(-10.0, 10.0))
    plan = mechanism._plan(1)
    ((value, scale),) = mechanism._look(mechanism.summarize(x)._rows, plan)
    assert abs(plan["grids"][0].number(value) - median) < 1e-10
    assert abs(plan["grids"][0].number(scale / plan["noise"].multiplier) - smooth) < 1e-10


def test_a_transformer_without_a_baseline_is_timed_too(benchmarks, monkeypatch):
    _, numbers, _, _ = benchmarks
    monkeypatch.setattr(numbers, "PEERS", {})
    monkeypatch.setattr(numbers, "_maximise", lambda settings: ())
    settings = type("Settings", (), {"quick": True, "n_large": 1000})
    rows = list(numbers.rows(settings))
    assert [row.name.split()[0] for row in rows] == [name for name, _ in numbers.transformers()]
    assert all(row.ours > 0 and row.baseline is None for row in rows)


def test_statistics_are_timed_and_their_baseline_is_right(benchmarks):
    from benchmarks import statistics

    settings = type("Settings", (), {"quick": True, "n": 20_000})
    assert [row.target for row in statistics.rows(settings)] == ["1x", "20x", "20x", ""]
