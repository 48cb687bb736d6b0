"""How fits grow: what was measured of twelve estimators keeps to what their docstrings say."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import scale_claims as claims
from dpestim.base import all_estimators

ROOT = Path(__file__).parents[3]
REGISTRY = dict(all_estimators())
KEPT = json.loads((ROOT / "docs" / "_static" / "scale.json").read_text(encoding="utf-8"))
POINTS = [{"size": n, "time": 1e-6 * n, "memory": 100.0 * n} for n in (10**4, 10**5, 10**6, 10**7)]


def test_twelve_estimators_are_measured_and_their_docstrings_claim_what_is_judged():
    assert len(claims.CLAIMS) == 12
    assert {*KEPT["estimators"]} == {*claims.CLAIMS} <= {*REGISTRY}, "run benchmarks/scale.py"
    for name, own in claims.CLAIMS.items():
        text = inspect.getdoc(REGISTRY[name]).partition("**Complexity.**")[2].partition("Parameters\n")[0]
        told = " ".join(text.split())
        for claim in (*own["time"], *own["memory"]):
            assert f"O({claim})" in told, f"{name}: its docstring does not claim O({claim})"
        assert {*claims.AXES} & {*own} == {*KEPT["estimators"][name]["axes"]}, name


@pytest.mark.parametrize("name", claims.CLAIMS)
def test_nothing_grows_faster_than_its_docstring_says(name):
    """Slopes are fitted again, so that neither the file nor a claim can be changed alone."""
    for axis, own in KEPT["estimators"][name]["axes"].items():
        sizes = [point["size"] for point in own["points"]]
        assert sizes == sorted(sizes)
        assert len(sizes) >= 5, (name, axis)
        for kind in claims.KINDS:
            found = claims.judged(name, kind, axis, own["points"])
            assert found == own[kind], f"{name}: run benchmarks/scale.py"
            assert found["kept"], f"{name} over {axis}: {kind} has slope {found['slope']}, not {found['claimed']}"


def test_what_grows_faster_is_found(monkeypatch):
    monkeypatch.setitem(claims.CLAIMS, "own", {"rows": "n", "time": ["n"], "memory": ["d^2"]})
    assert claims.judged("own", "time", "rows", POINTS)["kept"]
    found = claims.judged("own", "memory", "rows", POINTS)
    assert (found["slope"], found["claimed"], found["kept"]) == (1, 0, False)
    monkeypatch.setitem(claims.CLAIMS, "own", {"rows": "n", "time": ["d", "log n"], "memory": ["n"]})
    assert not claims.judged("own", "time", "rows", POINTS)["kept"]
    faster = [{**point, "memory": point["memory"] ** 1.15} for point in POINTS]
    assert not claims.judged("own", "memory", "rows", faster)["kept"]
    assert claims.judged("own", "memory", "rows", POINTS[:2])["slope"] is None


@pytest.mark.parametrize(("claim", "letter", "slope"), [
    ("n d^2", "d", 2), ("n d^2", "n", 1), ("n d^2", "k", 0), ("n c + c^3 d", "c", 3), ("c (n + d)", "n", 1),
    ("K n (d + p)", "K", 1), ("n d + cells", "cells", 1)])
def test_claims_are_read(claim, letter, slope):
    sizes = np.geomspace(1e6, 1e8, 5)
    assert claims.slope(sizes, claims.evaluate(claim, letter, sizes) + 0 * sizes)[0] == pytest.approx(slope, abs=1e-3)
    assert 1.05 < claims.slope(sizes, claims.evaluate("d n log n", "n", sizes))[0] < 1.07


def test_a_slope_and_its_error_are_those_of_least_squares():
    x, y = np.array([1.0, 10, 100, 1000]), np.array([2.0, 30, 200, 2500])
    (slope, _), covariance = np.polyfit(np.log(x), np.log(y), 1, cov=True)
    assert claims.slope(x, y) == pytest.approx((slope, covariance[0, 0] ** 0.5))


@pytest.mark.ci
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is read from Linux's /proc")
def test_the_script_runs(tmp_path):
    path = tmp_path / "scale.json"
    subprocess.run([sys.executable, "-m", "benchmarks.scale", "--quick", "--output", path], cwd=ROOT, timeout=120,
                   check=False, capture_output=True)  # (slopes of small sizes may be anything)
    found = json.loads(path.read_text(encoding="utf-8"))["estimators"]
    assert {*found} == {*claims.CLAIMS}
    for name, own in found.items():
        for axis, line in own["axes"].items():
            assert len(line["points"]) == 2, (name, axis, line["ends"])
            assert all(point["time"] > 0 for point in line["points"])
