"""Benchmarks take their mechanisms from the registry: a newcomer is timed without a line there."""

from itertools import islice
from pathlib import Path

import pytest

from dpestim.base import all_estimators


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    from benchmarks import frequencies, memory, numbers, vectors

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


def test_a_transformer_without_a_baseline_is_timed_too(benchmarks, monkeypatch):
    _, numbers, _, _ = benchmarks
    monkeypatch.setattr(numbers, "PEERS", {})
    monkeypatch.setattr(numbers, "_maximise", lambda settings: ())
    settings = type("Settings", (), {"quick": True, "n_large": 1000})
    rows = list(numbers.rows(settings))
    assert [row.name.split()[0] for row in rows] == [name for name, _ in numbers.transformers()]
    assert all(row.ours > 0 and row.baseline is None for row in rows)
