"""The package as a whole: what importing it loads, its layers, its registry, its documents."""

import ast
import codeop
import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dpestim
from benchmarks import starts
from dpestim.base import SUBPACKAGES, all_estimators

PACKAGE = Path(dpestim.__file__).parent
ROOT = Path(__file__).parents[3]

#: Layer of each module; an import may only point down (or stay inside one room).
LAYERS = {
    "_core": 1, "exceptions": 1, "version": 1, "stability": 1, "notebook": 1, "docstrings": 1, "plots": 1, "tables": 1,
    "privacy": 2, "base": 2, "rng": 2, "words_of_one": 2, "exact_reals": 2,
    "parallel": 2, "datasets": 2, "inputs": 2, "lazy": 0, "records": 0, "links": 2,
    "passes": 2, "summaries": 2, "results": 2, "progress": 2, "steps": 2,
    "accounting": 3, "anonymity": 3, "models": 3, "postprocessing": 3, "testing": 3,
    "central": 4, "local": 4,
    "statistics": 5, "shuffle": 5,
    "linear_model": 6, "preprocessing": 6, "feature_selection": 6, "naive_bayes": 6, "tree": 6, "cluster": 6,
    "covariance": 6, "synthesis": 6, "graph": 6, "geo": 6, "stream": 6,
    "recommend": 7, "ensemble": 7, "decomposition": 7,
    "accuracy": 8, "audit": 8, "pipeline": 8, "collection": 8, "verify": 8,
    "distributed": 9, "inspection": 9, "model_selection": 9,
    "parties": 10,
    "commands": 11, "pytest_plugin": 11, "__main__": 12,
}


#: Lines of a file at most; and files that hold one idea in more, with the most of each and the reason.
LINES = 450
LONGER = {
    "linear_model/federated.py": (480, "one class, with 100 lines of docstring and its own predictions and losses"),
    "local/estimates/mixed.py": (490, "one class; half of it are one-line attributes by column, with their docstrings"),
    "local/learning/rounds.py": (465, "one class: the verbs of users and of the server share every state"),
}


def modules():
    found = [m.name for m in pkgutil.walk_packages([str(PACKAGE)], "dpestim.")]
    found.remove("dpestim._core._cyutility")  # Cython writes it
    return found


def room(module):
    return module.split(".")[1] if "." in module else ""


def statements(node):
    """Yield all statements below a node: no expression has any, and most nodes are within expressions."""
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, ast.expr):
            yield part
            yield from statements(part)


def imports(path):
    """Return the names that a file imports, those inside functions, too: a late circle is a circle."""
    names = []
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} uses a relative import"
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def faults(path, names):
    """Yield what is wrong with the names that a file of the package imports."""
    for name in names:
        first, *rest = name.split(".")
        if first != "dpestim" and any(part.startswith("_") for part in rest):
            yield f"{path} imports the private {name}"
    mine = path.parts[0].removesuffix(".py")
    if mine == "__init__":
        return
    if mine not in LAYERS:
        yield f"give {mine} a layer"
        return
    for name in names:
        if name.startswith("dpestim.") and room(name) in LAYERS and room(name) != mine:
            if LAYERS[room(name)] > LAYERS[mine]:
                yield f"{path} imports {name}, which stands above it"
            if LAYERS[room(name)] == LAYERS[mine] > 2:
                yield f"{path} imports its neighbour {name}"


def test_imports_point_down_and_see_public_faces_only():
    found = [fault for path in sorted(PACKAGE.rglob("*.py"))
             for fault in faults(path.relative_to(PACKAGE), imports(path))]
    assert not found, "\n".join(found)
    # and what is wrong is seen
    path = Path("accounting") / "x.py"
    for name in ("scipy._lib", "dpestim.local", "dpestim.models"):
        assert len(list(faults(path, [name]))) == 1
    assert not list(faults(path, ["scipy.stats", "dpestim.privacy", "dpestim.accounting._y"]))
    assert list(faults(Path("new.py"), [])) == ["give new a layer"]


def test_modules_have_no_underscore():
    """What is public is what `__init__.py` of a room has in `__all__`; `_core` is what is compiled."""
    assert not [name for name in modules() if "._" in name.replace("dpestim._core", "").replace("dpestim.__main__", "")]


def test_sub_packages_are_there_when_asked_for():
    for name in dpestim.__all__:
        assert getattr(dpestim, name)
    assert set(dpestim.__all__) <= set(dir(dpestim))
    with pytest.raises(AttributeError, match="nothing"):
        _ = dpestim.nothing


def test_every_module_explains_itself():
    for name in modules():
        module = importlib.import_module(name)
        assert (module.__doc__ or "").strip(), f"{name} has no docstring"
        for exported in getattr(module, "__all__", []):
            assert hasattr(module, exported), f"{name}.__all__ lists {exported}, which does not exist"


@pytest.mark.ci
@pytest.mark.parametrize("name", [n for n in modules() if "_core" not in n])
def test_doctests(name):
    # (docstrings without an example are run, too, unless it is said, and each run looks at all files of all tracebacks)
    result = doctest.testmod(importlib.import_module(name), exclude_empty=True)
    assert result.failed == 0


def test_every_public_function_and_estimator_has_a_doctest():
    finder = doctest.DocTestFinder(recurse=False)
    for package in ("accounting", "audit", "inspection", "model_selection", "postprocessing", "datasets", "statistics",
                    "verify"):
        module = importlib.import_module(f"dpestim.{package}")
        for name in module.__all__:
            item = getattr(module, name)
            if not (inspect.isclass(item) and issubclass(item, Exception)):
                assert any(t.examples for t in finder.find(item, name)), f"{name} has no example"
    for name, cls in all_estimators():
        assert any(t.examples for t in finder.find(cls, name)), f"{name} has no example"


def test_every_public_method_is_documented():
    for _, cls in all_estimators():
        for name in dir(cls):
            if not name.startswith("_"):
                assert (getattr(cls, name).__doc__ or "").strip(), f"{cls.__name__}.{name} has no docstring"
        assert not re.search(r"\S {4}\w+ : ", cls.__doc__), f"a parameter of {cls.__name__} has no line of its own"


def test_the_registry_covers_every_sub_package_with_estimators():
    listed = {name.split(".")[0] for name, _ in all_estimators()}
    assert listed == set(SUBPACKAGES)
    assert {p for p in LAYERS if LAYERS[p] in (4, 5, 6, 7) and (PACKAGE / p).exists()} == set(SUBPACKAGES)


def test_readers_of_signatures_find_that_of_init():
    """Sphinx asks a class for `__signature__`, and then its `__new__`, which takes anything."""
    for name, cls in all_estimators():
        init = inspect.signature(cls.__init__)
        expected = init.replace(parameters=list(init.parameters.values())[1:])
        assert cls.__signature__ == inspect.signature(cls) == expected, name
        assert "args" not in expected.parameters, name
        law = getattr(cls, "_randomizer", None)
        if inspect.isclass(law):
            assert list(law.__signature__.parameters) == list(inspect.signature(law.__init__).parameters)[1:], name


#: How many blocks of Python each page has: an example that loses its fences is no longer run, and nothing else tells.
BLOCKS = {
    "README.md": 3,
    "docs/guide/audit_my_code.md": 2,
    "docs/guide/budgets.md": 4,
    "docs/guide/displays.md": 5,
    "docs/guide/distributed.md": 5,
    "docs/guide/frequencies.md": 9,
    "docs/guide/from_diffprivlib.md": 1,
    "docs/guide/from_interpret.md": 1,
    "docs/guide/from_opendp.md": 1,
    "docs/guide/from_pure_ldp.md": 1,
    "docs/guide/from_smartnoise.md": 1,
    "docs/guide/graphs.md": 10,
    "docs/guide/recommendations.md": 3,
    "docs/guide/parties.md": 8,
    "docs/guide/large_domains.md": 9,
    "docs/guide/learning.md": 5,
    "docs/guide/many_attributes.md": 5,
    "docs/guide/mechanisms.md": 8,
    "docs/guide/models.md": 10,
    "docs/guide/numbers.md": 7,
    "docs/guide/places.md": 4,
    "docs/guide/preparing.md": 7,
    "docs/guide/programs.md": 2,
    "docs/guide/reading_a_privacy_card.md": 4,
    "docs/guide/refuting.md": 2,
    "docs/guide/relaxed.md": 6,
    "docs/guide/shuffle.md": 3,
    "docs/guide/statistics.md": 3,
    "docs/guide/streams.md": 3,
    "docs/guide/surveys.md": 3,
    "docs/guide/synthesis.md": 1,
    "docs/howto.md": 13,
}
#: A line that is Python, and no sentence.
PYTHON = re.compile(r"(import \w+( as \w+)?|from [\w.]+ import .*|print\(.*\).*|\w+ = \w+.*\(.*)")
#: Numbers of an example are drawn anew in each run: those shown are near.
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def blocks_of(page):
    return [block for block, _ in examples_of(page)]


def examples_of(page):
    """Return the blocks of Python of a page, each with the output that is shown right after it, or None."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", text, re.DOTALL)
    return [(block, shown or None) for block, shown in found]


def near(printed, shown):
    """Tell whether an output has the words that are shown, and numbers that are within a tenth or a fiftieth."""
    if NUMBER.sub("0", " ".join(printed.split())) != NUMBER.sub("0", " ".join(shown.split())):
        return False
    pairs = zip(map(float, NUMBER.findall(printed)), map(float, NUMBER.findall(shown)))
    return all(abs(x - y) <= max(0.1 * abs(y), 0.02) for x, y in pairs)


def test_pages_have_kept_the_fences_of_their_examples():
    pages = ["README.md", *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md"))
                            if not {"generated", "_build"} & set(p.parts))]
    found = {page: len(blocks_of(page)) for page in pages}
    assert {page: n for page, n in found.items() if n} == BLOCKS
    for page in pages:
        text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
        lost = [line for line in text.splitlines() if PYTHON.fullmatch(line)]
        assert not lost, f"{page} has code that is not in a block: {lost[0]}"


#: A square root, in code.
ROOT_OF = re.compile(r"sqrt|hypot|\*\*\s*0?\.5|linalg\.norm")


def test_no_square_root_is_left_to_users():
    """Norms follow from what is declared: `norm_bound` and `domain=` compute them."""
    for page in BLOCKS:
        code = "\n".join(blocks_of(page))
        assert not ROOT_OF.search(code), f"{page} has a square root"
    for path in sorted((ROOT / "examples").rglob("*.py")):  # (errors of results are roots of squares there)
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if ROOT_OF.search(line)]
        assert not [line for line in lines if "norm" in line or "hypot" in line], f"{path.name} has the root of a norm"
    assert ROOT_OF.search("data_norm=3**0.5")


#: Modules that a first fit has no use for: of others, and ours.
HEAVY = {"pandas", "matplotlib", "sqlite3", "polars", "tomllib", "asyncio", "dpestim.accuracy", "dpestim.audit",
         "dpestim.collection", "dpestim.inspection", "dpestim.plots", "dpestim.privacy.ledger", "dpestim.testing"}
#: Modules of this package that a first fit loads at most: each takes some 0.2 ms.
MOST_MODULES = 105


@pytest.mark.ci
def test_importing_is_light():
    """scikit-learn itself imports pandas where it is installed; dpestim adds nothing to what scikit-learn loads."""
    steps = ("dpestim", "sklearn.base, sklearn.utils.validation, scipy.stats",
             "dpestim.local, dpestim.inspection, dpestim.datasets, dpestim.testing, dpestim.postprocessing")
    heavy = "{'pandas', 'matplotlib', 'sqlite3', 'cryptography', 'polars', 'sklearn'}"
    light = "import sys\n" + "".join(f"import {step}\nprint(*sorted({heavy} & set(sys.modules)))\n" for step in steps)
    first, theirs, ours, _ = _run(light).split("\n")
    assert first == ""
    assert "sklearn" in theirs
    assert ours == theirs


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process that goes on in several ways")
def test_a_first_fit_loads_what_it_needs():
    """How long that takes is measured by `benchmarks/starts.py`; this counts, which is the same on any machine."""
    program = (f"import os, sys\n{starts.BEFORE}\nbefore = set(sys.modules)\n"
               f"for name, fit in {starts.FITS!r}.items():\n    if not os.fork():\n        exec(fit)\n"
               "        print(name, *sorted(set(sys.modules) - before), sep=',', flush=True)\n        os._exit(0)\n"
               "    os.wait()\n")
    loaded = {name: set(modules) for name, *modules in (line.split(",") for line in _run(program).splitlines())}
    assert set(loaded) == set(starts.FITS)
    for name, modules in loaded.items():
        assert not modules & HEAVY, f"a fit of {name} loads {sorted(modules & HEAVY)}"
        ours = [module for module in modules if module.startswith("dpestim")]
        assert len(ours) <= MOST_MODULES, f"a fit of {name} loads {len(ours)} modules of dpestim"


@pytest.mark.ci
def test_all_examples_of_a_page_run_one_after_another(tmp_path):
    """Nothing runs before the first one, which shows something; what is shown is what is printed, but for the noise."""
    for k, page in enumerate(BLOCKS):
        code = "\nprint('<end of a block>')\n".join([*blocks_of(page), ""])
        (tmp_path / f"{k}.py").write_text(code, encoding="utf-8")
    # each by itself, in one process: what they import takes longer than they do, also where workers would import it
    pages = _run(f"import functools, joblib, runpy\nfrom dpestim import datasets\n"
                 f"joblib.parallel_config('threading')\n"
                 f"datasets.load_us_military = functools.lru_cache(datasets.load_us_military)\n"  # no page changes it
                 f"for k in range({len(BLOCKS)}):\n    runpy.run_path(f'{{k}}.py', run_name='__main__')\n"
                 f"    print('<end of a page>')", cwd=tmp_path)
    for page, output in zip(BLOCKS, pages.split("<end of a page>\n")):
        printed = output.split("<end of a block>\n")
        assert printed[0].strip(), f"the first example of {page} shows nothing"
        for (block, shown), text in zip(examples_of(page), printed):
            assert shown is None or near(text, shown), f"{page}:\n{block}\nprints\n{text}"


def _run(code, **where):
    """Return what a program prints in a new interpreter, where each warning is an error."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, **where)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_outputs_that_are_shown_are_compared():
    assert near("a  1.02 b\n-3", "a 1.0 b -3.1\n")
    assert not near("a 1.2 b", "a 1.0 b")
    assert not near("a 1.0 c", "a 1.0 b")


@pytest.mark.parametrize("page", BLOCKS)
def test_all_examples_of_a_page_can_be_pasted_line_by_line(page):
    """An interactive console ends a block at an empty line only, so a statement right after one would be an error."""
    for block in blocks_of(page):
        pending = []
        for line in [*block.splitlines(), ""]:
            pending.append(line)
            if codeop.compile_command("\n".join(pending), symbol="single") is not None:
                pending = []
        assert not pending


def test_the_readme_is_short_and_shows_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert all(len(block.strip().splitlines()) <= 8 for block in blocks_of("README.md"))
    assert all(shown for _, shown in examples_of("README.md"))
    assert "make demo" in text
    assert "make test" in text
    picture = ROOT / re.search(r"!\[.*?\]\((.*?)\)", text)[1]
    assert picture.stat().st_size < 100_000


def test_links_between_pages_lead_somewhere():
    """The site's builder checks its own pages, and neither the README nor parts of pages."""
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[\w-]+)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_no_file_is_longer_than_a_reader_bears():
    for path in [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyx")]:
        n, name = len(path.read_text(encoding="utf-8").splitlines()), path.relative_to(PACKAGE).as_posix()
        assert n <= LONGER.get(name, (LINES,))[0], f"{name} has {n} lines: does it hold two ideas?"
        assert n > LINES or name not in LONGER, f"{name} is short enough now: take it out of LONGER"
