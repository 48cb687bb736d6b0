"""The benchmark of generators: a graph has no error against itself, and generators are those of the registry."""

from pathlib import Path

import numpy as np
import pytest

from dpestim.base import all_estimators
from dpestim.graph import DGGGenerator


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3])
    from benchmarks import graph_generators

    return graph_generators


def test_a_graph_has_no_error_against_itself_and_another_graph_has(benchmark):
    graph, other = benchmark.circles(120), benchmark.power_law(120)
    seen, unlike = benchmark.Seen(graph), benchmark.Seen(other)
    same = benchmark.errors(seen, benchmark.Seen(graph))
    assert max(np.abs(list(same.values()))) < 1e-9
    assert all(error > 0 for error in benchmark.errors(seen, unlike).values())
    dense = other.toarray().astype(float)
    degrees = dense.sum(0)
    assert unlike.triangles == round(np.trace(dense @ dense @ dense) / 6)
    ends = np.argwhere(dense)
    assert np.isclose(unlike.assortativity, np.corrcoef(degrees[ends[:, 0]], degrees[ends[:, 1]])[0, 1])


def test_all_generators_of_the_registry_at_the_same_epsilon_of_an_edge(benchmark, monkeypatch, tmp_path):
    found = benchmark.generators()
    assert {"DGGGenerator", "LDPGenGenerator", "RNLGenerator"} <= set(found)
    assert set(found) == {name.split(".")[1] for name, cls in all_estimators(("graph",)) if hasattr(cls, "sample")}
    for cls in found.values():
        assert float(benchmark.at(cls, 2.0, 0).privacy_.to("edge").epsilon) == 2.0
    monkeypatch.setattr(benchmark, "generators", lambda: {"DGGGenerator": DGGGenerator})
    own = ["--nodes", "60", "--seeds", "1", "--cache", str(tmp_path / "kept.json")]
    text = benchmark.main([*own, "--epsilons", "1", "4"])
    assert text.count("| DGGGenerator |") == 4
