"""The shorter runs (debug build, older scikit-learns) leave out nothing that they are for."""

import importlib
import pkgutil
import re
import runpy
from pathlib import Path

import pytest

from dpestim import _core
from dpestim.base import all_estimators
from dpestim.testing import mechanism_checks

ROOT = Path(__file__).resolve().parents[3]
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
#: What mentions scikit-learn and has no say in it: layers and imports, pictures, and this file.
NOT_ABOUT_SKLEARN = {"test_package.py", "test_lazy.py", "test_displays.py", "test_selections.py"}


def files(word):
    """Return the test files that import something of this name."""
    line = re.compile(rf"^\s*(from|import) {word}\b", re.M)
    return {path.name for path in TESTS if line.search(path.read_text())}


def test_the_debug_build_runs_all_that_calls_kernels():
    makefile = (ROOT / "Makefile").read_text()
    listed = re.search(r"KERNEL_TESTS := (.*?)\n\n", makefile, re.S)[1]
    listed = {f"test_{name}" for name in re.findall(r"(?<!test_)\b(\w+\.py)", listed.replace("test_", ""))}
    assert files(r"dpestim\._core") <= listed <= {path.name for path in TESTS}


@pytest.mark.ci
def test_checks_that_the_debug_build_leaves_out_call_no_kernel(monkeypatch):
    listed = re.search(r"NO_KERNEL := (.*?)\n\n", (ROOT / "Makefile").read_text(), re.S)[1]
    runs = dict.fromkeys(re.findall(r"check_\w+", listed))
    for _, cls in all_estimators():
        for check, run in mechanism_checks(cls(**cls._test_params()[0])) if None in runs.values() else ():
            if check in runs:
                runs[check] = runs[check] or run

    def refuse(*args, **kwargs):
        raise AssertionError("a kernel is called")

    # (whatever is fitted reads declared categories by `encode`, makes words by `rare` and looks for what is not finite:
    # other checks call all of these)
    others, each_fit = {"_cyutility", "build", "encode", "rare"}, {"all_finite"}
    for name in {each.name for each in pkgutil.iter_modules(_core.__path__)} - others:
        module = importlib.import_module(f"dpestim._core.{name}")
        public = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        for function in set(public) - each_fit:
            monkeypatch.setattr(module, function, refuse)
    for run in runs.values():  # (each with the first estimator that has it)
        run()


def test_third_settings_and_studies_are_looked_for_where_they_are():
    """`make ci-test` names the files in which their mark is written: no other module hands it to them."""
    assert 'grep -rlw "mark.ci" tests --include="test_*.py"' in (ROOT / "Makefile").read_text()
    others = set((ROOT / "tests").rglob("*.py")) - set(TESTS)
    assert others
    assert not [path.name for path in others if re.search(r"mark\.ci\b", path.read_text())]


def test_older_scikit_learns_run_all_that_uses_it():
    selected = runpy.run_path(str(ROOT / ".ci" / "check_wheel.py"))["SKLEARN_TESTS"]
    assert all((ROOT / "tests" / name).exists() for name in selected)
    assert files("sklearn") - NOT_ABOUT_SKLEARN <= {Path(name).name for name in selected}


def test_between_the_oldest_and_the_newest_all_that_names_scikit_learn_is_run():
    tools = runpy.run_path(str(ROOT / ".ci" / "check_wheel.py"))
    oldest, between = tools["OLDER_SKLEARN"]
    assert tools["tests_of"](oldest) == [ROOT / "tests" / name for name in tools["SKLEARN_TESTS"]]
    *paths, option, _ = tools["tests_of"](between)
    assert option == "-k"
    assert {path.name for path in paths} == files("sklearn") - NOT_ABOUT_SKLEARN | {"test_mechanisms.py"}


def test_planted_faults_still_fit_the_package():
    faults = runpy.run_path(str(ROOT / "tests" / "mutations.py"))["faults"]()
    assert len(faults) >= 10
    for name, own in faults.items():
        assert len(own) >= 10, name
        lost = [(file, right) for file, right, _ in own if right not in (ROOT / "dpestim" / file).read_text()]
        assert not lost, f"{name}: what is right is written otherwise now; change tests/mutations.txt: {lost}"
