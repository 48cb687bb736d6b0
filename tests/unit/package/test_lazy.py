"""Packages that import names when they are asked for: what runs and what editors read are the same."""

import ast
import importlib
import os
import pickle
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import dpestim
from dpestim import central
from dpestim.base import SUBPACKAGES

PACKAGE = Path(dpestim.__file__).parent
LAZY = [path for path in sorted(PACKAGE.rglob("__init__.py")) if "lazy.attach(" in path.read_text(encoding="utf-8")]


def name_of(path):
    return ".".join(path.parent.relative_to(PACKAGE.parent).parts)


def test_there_are_such_packages():
    assert set(map(name_of, LAZY)) >= {f"dpestim.{name}" for name in SUBPACKAGES}


@pytest.mark.parametrize("path", LAZY, ids=name_of)
def test_no_name_is_also_that_of_a_module_beside_it(path):
    """Whoever imports the module makes it an attribute of the package, and nobody asks for the name any more."""
    modules = {module.name for module in pkgutil.iter_modules([str(path.parent)])}
    assert not modules & set(importlib.import_module(name_of(path)).__all__)


@pytest.mark.parametrize("path", LAZY, ids=name_of)
def test_editors_read_the_imports_that_run(path):
    """Editors complete and explain what they can read: without these imports they know no name of the package."""
    package = importlib.import_module(name_of(path))
    checked = [node for node in ast.parse(path.read_text(encoding="utf-8")).body
               if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    read = {name.name: node.module for block in checked for node in block.body for name in node.names}
    assert set(read) == set(package.__all__)
    for name, module in read.items():
        assert getattr(importlib.import_module(module), name) is getattr(package, name)
        assert name in dir(package)


@pytest.mark.parametrize("path", LAZY, ids=name_of)
def test_names_that_are_not_there_are_refused_as_in_any_package(path):
    package = importlib.import_module(name_of(path))
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'NoSuchName'"):
        package.NoSuchName  # noqa: B018 (asked for)
    for name in package.__all__:
        item = getattr(package, name)
        assert pickle.loads(pickle.dumps(item)) is item


#: What fits, and modules that it does not need.
FITS = {
    ("local import MeanEstimator, PMTransformer\nMeanEstimator(PMTransformer(1.0, bounds=(-3, 3))).fit(X)"):
    "local.numbers.sdpm local.numbers.privunit local.numbers.duchi local.categories.grr local.numbers.missing "
    "local.sampling local.pivots docstrings.central docstrings.local passes results inputs.domain _core.em",
    ("linear_model import DPLinearRegression\n"
     "DPLinearRegression(delta=1e-6, bounds=(-3, 3), target_bounds=(0, 1)).fit(X, y)"):
    "accounting.sums accounting.renyi linear_model.adassp linear_model.functional passes results inputs.domain "
    "inputs.categories central.additive.mechanism _core.encode _core.logistic",
    ("ensemble import DPGradientBoostingClassifier\n"
     "DPGradientBoostingClassifier(bounds=(-3, 3), classes=[0, 1]).fit(X, y)\n"
     "assert not parallel._controller.cache_info().currsize"):  # (looking at all libraries takes 10 ms)
    "ensemble.pairs ensemble.parts passes steps statistics.quantiles statistics.ranks statistics.keys "
    "statistics.one_pass central.selection.exponential central.additive.gaussian tree.importances inputs.domain "
    "_core.cells",
    ("linear_model import DPLogisticRegression\n"
     "DPLogisticRegression(data_norm=3.0, classes=[0, 1]).fit(X, y)"): "linear_model.parts passes results",
    "cluster import DPKMeans\nDPKMeans(n_clusters=3, bounds=(-3, 3)).fit(X)":
    "cluster.parts passes steps inputs.labels inputs.categories statistics.one_pass _core.encode",
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process that goes on in several ways")
def test_who_fits_one_estimator_does_not_load_the_others():
    """One interpreter loads what others have made, which takes longest, and goes on once for each fit."""
    before = "import os, sys\nimport numpy as np, sklearn.base\n"
    each = "import numpy as np, sys\nfrom dpestim import parallel\nX = np.linspace(-2, 2, 1000)[:, None]\n"
    fits = [f"{each}y = (X[:, 0] > 0).astype(int)\nfrom dpestim.{fit}\nprint(*sys.modules, flush=True)" for fit in FITS]
    program = (f"{before}assert not [name for name in sys.modules if name.startswith('dpestim')]\n"
               f"for fit in {fits!r}:\n    if not os.fork():\n        exec(fit)\n        os._exit(0)\n"
               "    assert os.wait()[1] == 0\n")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, capture_output=True, text=True)
    loaded = done.stdout.splitlines()
    assert len(loaded) == len(FITS)
    for modules, others in zip(loaded, FITS.values()):
        assert "dpestim.parallel" in modules.split()
        assert not {f"dpestim.{name}" for name in others.split()} & set(modules.split())


@pytest.mark.parametrize("name", ["DiscreteLaplaceMechanism", "GaussianMechanism"])
def test_mechanisms_are_found_where_older_pickles_look_for_them(name):
    """They stood in the modules of their laws."""
    mechanism = getattr(central, name)
    module = mechanism.__module__
    old = pickle.dumps(mechanism(2.0, sensitivity=3), 0).replace(module.encode(), module[: -len("_mechanism")].encode())
    assert pickle.loads(old).get_params() == mechanism(2.0, sensitivity=3).get_params()
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchName'"):
        importlib.import_module(module[: -len("_mechanism")]).NoSuchName  # noqa: B018 (asked for)


#: Imports all modules of some packages by twelve threads, each from another one on, and half of them backwards.
_AT_ONCE = """
import importlib, pathlib, sys, threading
import sklearn.linear_model, sklearn.model_selection, sklearn.pipeline, sklearn.preprocessing
import dpestim
sys.setswitchinterval(1e-5)
root = pathlib.Path(dpestim.__file__).parent
names = [".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
         for package in sys.argv[1:] for path in sorted((root / package).rglob("*.py"))]
barrier, faults = threading.Barrier(12), set()

def import_all(i):
    start = i * len(names) // 12
    barrier.wait()
    for name in (names[start:] + names[:start])[:: -1 if i % 2 else 1]:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:  # (z3, Dask, Spark and Beam need not be here)
            if "dpestim" in str(error):
                faults.add(f"{name}: {error}")
        except Exception as error:
            faults.add(f"{name}: {error!r}")

threads = [threading.Thread(target=import_all, args=(i,), daemon=True) for i in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(60)
print(*sorted(faults), sep="\\n")
sys.exit(bool(faults) or any(thread.is_alive() for thread in threads))
"""


@pytest.mark.ci
def test_threads_may_import_everything_at_once():
    """Whoever imports a module waits for its package, which must not wait for the module."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _AT_ONCE, "parties", "testing", "verify"],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", [path for path in sorted(PACKAGE.rglob("__init__.py"))
                                  if path.parent.name not in ("dpestim", "docstrings", "commands")], ids=name_of)
def test_packages_import_their_modules_late(path):
    """Else threads that import the package and one of its modules wait for each other."""
    loaded = [node.module or "" for node in ast.parse(path.read_text(encoding="utf-8")).body
              if isinstance(node, ast.ImportFrom)]
    assert not [module for module in loaded if f"{module}.".startswith(f"{name_of(path)}.")]
