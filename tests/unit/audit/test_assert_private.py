"""`assert_private` in test suites of others, by hand and through the plug-in, and `dpestim audit` of code."""

import json
import os
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import pytest

from dpestim.audit import assert_private
from dpestim.audit.running import asserting
from dpestim.central import DiscreteLaplaceMechanism
from dpestim.commands import main

ROOT = Path(__file__).resolve().parents[3]
#: A module of somebody else: what is too private to be caught, what is not, and what is slow.
COUNTS = """
import time

def good(n, rng):
    return n + rng.geometric(0.6) - rng.geometric(0.6)

def bad(n, rng):
    return n + rng.geometric(0.8) - rng.geometric(0.8)

def slow(n):
    time.sleep(0.05)
    return n

def broken(n):
    raise KeyError(n)
"""
#: A suite of somebody else, which also tells what pytest has loaded before its first test. (What stands for
#: `dpestim.audit` tells with what it is called: to load the real one takes seconds.)
SUITE = """
import sys
import types

def test_nothing_is_loaded_before_a_test_asks_for_it():
    assert not {"numpy", "scipy", "sklearn", "dpestim.audit"} & set(sys.modules)
    sys.modules["dpestim.audit"] = types.SimpleNamespace(assert_private=lambda f, **known: f(known))

def test_the_option_is_the_time_limit(assert_private):
    for told in ({}, {"time_limit": 30}):
        assert assert_private(dict, epsilon=1.0, **told) == {"epsilon": 1.0, "time_limit": 0.25}

def test_bad(assert_private):
    assert_private(lambda known: [][1], epsilon=1.0)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "counts.py").write_text(COUNTS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield tmp_path
    sys.modules.pop("counts", None)


def test_wrong_claims_are_assertion_errors_in_words():
    def leaky(n, rng):
        return n + rng.geometric(0.8) - rng.geometric(0.8)

    told = (r"(?s)leaky: the claim of epsilon 1 is wrong: .*Event: output <= 3.\nIt was seen [\d,]+ times of [\d,]+ "
            r"with 3, and .* neighbour 4\.")
    with pytest.raises(AssertionError, match=told):
        assert_private(leaky, epsilon=1.0, pairs=[(3, 4)], n_samples=4000)
    assert not assert_private(leaky, epsilon=1.7, pairs=[(3, 4)], n_samples=4000).violated
    assert not assert_private(leaky, epsilon=1.0, delta=0.8, pairs=[(3, 4)], n_samples=4000).violated
    own = DiscreteLaplaceMechanism(2.0, sensitivity=1)
    with pytest.raises(AssertionError, match="DiscreteLaplaceMechanism: the claim of epsilon 1"):
        assert_private(own, epsilon=1.0, n_samples=40_000)
    assert not assert_private(own, epsilon=2.0, n_samples=4000).violated


def test_what_was_not_tested_does_not_pass(folder, monkeypatch):
    import counts

    with pytest.raises(ValueError, match="time_limit must be larger"):
        assert_private(counts.slow, epsilon=1.0, pairs=[(3, 4)], n_samples=100_000, time_limit=1e-9)
    with monkeypatch.context() as patch:
        patch.setattr(asserting, "audit", lambda *_, **__: types.SimpleNamespace(
            counts=((0, 0), (0, 0)), violated=False, claim=(1.0, 0.0), _reach=0.0))
        with pytest.raises(ValueError, match="before anything was tested"):
            assert_private(counts.bad, epsilon=1.0, pairs=[(3, 4)])
    with pytest.raises(ValueError, match="KeyError"):
        assert_private(counts.broken, epsilon=1.0, pairs=[(3, 4)])


def test_the_plug_in_is_light_and_fails_tests_of_other_suites(folder):
    (folder / "test_suite.py").write_text(SUITE, encoding="utf-8")
    known = folder / "dpestim-0.dist-info"  # (as an installation has it)
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: dpestim\nVersion: 0\n", encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    points = project["entry-points"]["pytest11"]
    (known / "entry_points.txt").write_text("[pytest11]\n" + "".join(
        f"{name} = {module}\n" for name, module in points.items()), encoding="utf-8")
    words = "-m", "pytest", "-q", "-p", "no:cacheprovider", "--dpestim-time-limit", "0.25"
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=folder,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])})
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "pytest_plugin.py" not in done.stdout  # (the line that is shown is that of the test)


def run(capsys, *words):
    code = main(["audit", *words])
    return (code, *capsys.readouterr())


def test_the_command_audits_code(folder, capsys):
    pair = "--pair", "3", "4", "--samples", "4000", "--seed", "0"
    code, out, _ = run(capsys, "counts:bad", "--epsilon", "1", *pair)
    assert (code, "epsilon 1 is wrong" in out, "Likelier with " in out) == (1, True, True)
    code, out, _ = run(capsys, "counts:good", "--epsilon", "1", "--json", *pair)
    found = json.loads(out)
    assert (code, found["violated"], found["seed"], found["pair"]) == (0, False, 0, ["3", "4"])
    for words, message in [
        (["counts:bad", "--epsilon", "1"], "give --pair"), (["counts:bad"], "give --epsilon"),
        (["counts:worse", "--epsilon", "1", *pair], "has no 'worse'"),
        (["counts", "--epsilon", "1"], "module:function"),
        (["cuonts:bad", "--epsilon", "1", *pair], "cannot be imported"),
        (["counts:bad", "--epsilon", "-1", *pair], "--epsilon and --delta must be"),
        (["counts:broken", "--epsilon", "1", *pair], "KeyError"),
        (["counts:slow", "--epsilon", "1", "--time", "1e-9", *pair], "--time"),
    ]:
        code, out, err = run(capsys, *words)
        assert (code, out, message in err) == (2, "", True), err
