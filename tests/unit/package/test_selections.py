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
    assert '-m "(not ci or second) and not no_kernel"' in makefile
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
    *tests, option, _ = tools["tests_of"](between)
    assert option == "-k"
    of = {}
    for each in tests:
        path, _, name = str(each).partition("::")
        of.setdefault(Path(path).name, set()).add(name)
    assert [name for name, chosen in of.items() if chosen == {""}] == ["test_sklearn.py", "test_mechanisms.py"]
    # (a file that imports scikit-learn and of which no test is chosen names it in no test)
    assert files("sklearn") - NOT_ABOUT_SKLEARN <= of.keys()
    assert {"test_the_best_columns_are_chosen_and_named"} <= of["test_naive_bayes.py"]
    assert {"test_isotonic_is_the_projection_on_a_ranking"} <= of.get("test_postprocessing.py", set())
    assert {"test_what_set_output_lacks_is_found_before_anything_is_charged"} <= of["test_answers.py"]
    for name, chosen in tools["ALONE"].items():
        (path,) = [path for path in TESTS if path.name == name]
        assert all(f"\ndef {test}(" in path.read_text() for test in chosen)


def test_what_names_scikit_learn_is_found_through_helpers_fixtures_and_parameters(tmp_path):
    naming = runpy.run_path(str(ROOT / ".ci" / "check_wheel.py"))["naming"]
    path = tmp_path / "test_some.py"
    path.write_text("""
import numpy as np
import sklearn.base as base
from sklearn.base import clone as twin

from dpestim import thing

CASES = [twin(1)]
OTHERS = [1]

def helper(x):
    return twin(x)

class Own(base.BaseEstimator):
    pass

@pytest.fixture
def model():
    return Own()

def further(x):
    return helper(x)

def test_itself(): twin(2)
def test_by_a_helper_of_a_helper(): further(2)
def test_by_a_fixture(model): model.fit()
@pytest.mark.parametrize("x", CASES)
def test_by_a_case(x): thing(x)
def test_inside():
    from sklearn.svm import SVC
    SVC()
@pytest.mark.parametrize("x", OTHERS)
def test_other(x, y):
    clone = thing(x)
    np.sum(clone)
""")
    assert naming(path) == {f"test_{name}" for name in (
        "itself", "by_a_helper_of_a_helper", "by_a_fixture", "by_a_case", "inside")}


def test_planted_faults_still_fit_the_package():
    faults = runpy.run_path(str(ROOT / "tests" / "mutations.py"))["faults"]()
    assert len(faults) >= 10
    for name, own in faults.items():
        assert len(own) >= 10, name
        lost = [(file, right) for file, right, _ in own if right not in (ROOT / "dpestim" / file).read_text()]
        assert not lost, f"{name}: what is right is written otherwise now; change tests/mutations.txt: {lost}"
