"""The shorter runs (debug build, older scikit-learns) leave out nothing that they are for."""

import importlib
import pkgutil
import re
import runpy
from pathlib import Path

import pytest

from dpestim import _core

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


@pytest.mark.no_kernel
def test_kernels_refuse_while_what_the_debug_build_leaves_out_runs():
    assert "not no_kernel" in (ROOT / "Makefile").read_text()
    # (whatever is fitted reads declared categories by `encode`, makes words by `rare` and looks for what is not finite:
    # other checks call all of these)
    n_refused, others = 0, {"_cyutility", "build", "encode", "rare"}
    for name in {each.name for each in pkgutil.iter_modules(_core.__path__)} - others:
        functions = vars(importlib.import_module(f"dpestim._core.{name}"))
        for key in {key for key, value in functions.items() if callable(value) and key[0] != "_"} - {"all_finite"}:
            with pytest.raises(pytest.fail.Exception, match="the debug build must run it"):
                functions[key]()
            n_refused += 1
    assert n_refused > 100


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
