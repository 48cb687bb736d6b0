"""Install what `make wheel` built in clean environments and use it there: every interpreter present, no compiler.

Checks that there is one cp311-abi3 wheel with all it needs and nothing it does not, that it was built from the source
distribution, that it runs on every CPython from 3.11 on that this machine has, and that what depends on scikit-learn
passes with the oldest one and, where a test names scikit-learn itself, with the one before the newest. Each environment
is for both, an interpreter and a scikit-learn, and they are made and used side by side. The one of the oldest
scikit-learn has the oldest release of every dependency.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MINORS = (11, 12, 13)
#: The newest CPython that the oldest release of every dependency has wheels for.
LAST_OF_OLDEST = 12
#: scikit-learn besides the newest that is tried: the oldest with public tags, and the one before last.
OLDER_SKLEARN = ("1.6.*", "1.8.*")
#: What depends on scikit-learn: its own checks, the behaviour of every mechanism (clone, tags, validation, set_output),
#: strict mode, and the unit tests of estimators and of ledgers in blocks, searches and pipelines. What is marked `law`
#: is integers, NumPy or SQLite (samples, intervals, exact sums, killed and racing processes), and that checks reject
#: what is broken is a property of the checks. `make test` has run all that.
SKLEARN_UNITS = """
    adaptive adassp answers base_rate boosting client_and_server clusters collected_numbers columns config
    covariance detaching domain encode factorization federated federated_parties graph_answers heavy_hitters
    importances inputs inspection intersection lcf ledger linear list_patterns lists local local_bayes
    local_factorization local_stream logistic margins missing_numbers missing_values mixed model_audits
    model_selection naive_bayes named_scores numbers one_pass personalized pipeline pools postprocessing
    preprocessing privatized progress ranges rectangles relations reservations running_subjects secure_quantile
    share_budget shuffled sketches softmax sparse_vector stability statistics statistics_guarantees statistics_users
    trees verdicts
"""
SKLEARN_TESTS = (
    *(f"common/test_{name}.py" for name in ("sklearn", "mechanisms", "strict", "messages", "declarations")),
    *(str(path.relative_to(ROOT / "tests")) for name in SKLEARN_UNITS.split()
      for path in [*(ROOT / "tests").glob(f"unit/*/test_{name}.py")] or [ROOT / "tests" / f"test_{name}.py"]),
)
#: ... of which these are run.
CHOSEN = "not law and (not ci or second)"
#: Files that are about scikit-learn as a whole.
WHOLE = [ROOT / "tests" / "common" / f"test_{name}.py" for name in ("sklearn", "mechanisms")]
#: What names nothing of scikit-learn, and alone enters a part of it (`SelectorMixin`, and names of components).
ALONE = {"test_naive_bayes.py": {"test_the_best_columns_are_chosen_and_named"},
         "test_clusters.py": {"test_the_face"}}

USE = """
import subprocess, sys
import numpy as np
from dpestim.accounting import Ledger
from dpestim.base import all_estimators
from dpestim.datasets import load_yrbss
from dpestim.linear_model import DPLogisticRegression
from dpestim.local import GRRFrequencyEstimator, OLHFrequencyEstimator, OUEFrequencyEstimator
from dpestim.local import MeanEstimator, PMTransformer
from dpestim.testing import check_mechanism
from dpestim._core import build
assert "site-packages" in build.__file__, build.__file__
from importlib.metadata import entry_points
assert "dpestim" in entry_points(group="pytest11").names
for name, cls in all_estimators():
    assert cls._proof().exists(), name
for cls in (GRRFrequencyEstimator, OUEFrequencyEstimator, OLHFrequencyEstimator):
    check_mechanism(cls(1.0, categories=[["a", "b", "c"]]))
x = np.random.default_rng(0).uniform(-1, 1, (2000, 1))
with Ledger(2.0) as ledger:
    assert abs(MeanEstimator(PMTransformer(1.0, bounds=(-1, 1), random_state=0)).fit(x).mean_[0]) < 0.3
    model = DPLogisticRegression(1.0, classes=[False, True], data_norm=1.0, random_state=0).fit(x, x[:, 0] > 0)
assert model.score(x, x[:, 0] > 0) > 0.8
assert ledger.remaining().epsilon == 0
grade = load_yrbss().data[:, 1:2]
f = OUEFrequencyEstimator(2.0, categories=[["female", "male"]], random_state=0).fit(grade).frequencies_[0]
assert abs(f[0] - np.mean(grade == "female")) < 0.1
print(f"wheel works on {sys.version.split()[0]}, {build.VECTOR_BITS}-bit vectors")
"""


def run(*command, **kwargs):
    return subprocess.run([str(c) for c in command], check=True, **kwargs)


def interpreters():
    """Return one interpreter for each minor version that is present: on the path, or in a version manager's folder."""
    found = {}
    managed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in sorted({*MINORS, sys.version_info[1]}):
        candidates = [sys.executable, shutil.which(f"python3.{minor}")]
        candidates += sorted(managed.glob(f"3.{minor}.*/bin/python"))
        for candidate in filter(None, candidates):
            done = subprocess.run(
                [candidate, "-c", "import sys, venv; print(*sys.version_info[:2])"], capture_output=True, text=True
            )
            if done.returncode == 0 and done.stdout.split() == ["3", str(minor)]:
                found[minor] = candidate
                break
    return found


def environment(folder, interpreter, *packages):
    # (this environment's pip is used: another for each takes as long as many a package)
    run(interpreter, "-m", "venv", "--without-pip", folder)
    # no compiler: whatever would need one must fail; no byte code before it is asked for: it is half of the time
    env = {**os.environ, "CC": "false", "CXX": "false"}
    env.pop("PYTHONPATH", None)
    run(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--quiet", "--no-compile", *packages,
        env=env)
    return folder / "bin/python"


def oldest():
    """Return the oldest release of every library that pyproject.toml allows, as lines of a file of constraints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = (project["optional-dependencies"][name] for name in ("arrow", "pandas", "plot", "test"))
    asked = sorted({*project["dependencies"], *(text for extra in extras for text in extra)})
    found = [re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)(?:,<[\d.]+)?", text) for text in asked]
    assert all(found), f"without an oldest version: {[text for text, each in zip(asked, found) if not each]}"
    return [f"{each[1]}=={each[2]}" for each in found]


def assignments(present):
    """Return (minor version of an interpreter, an older scikit-learn or None) so that each occurs: old beside old."""
    ranked = sorted(present)
    sklearns = [*OLDER_SKLEARN, *[None] * max(1, len(ranked) - len(OLDER_SKLEARN))]
    return list(zip([*ranked[:1] * (len(sklearns) - len(ranked)), *ranked], sklearns))


def constraints_of(minor, sklearn):
    """Return the constraints of an environment: that of the oldest scikit-learn has the oldest of all libraries."""
    if sklearn != OLDER_SKLEARN[0]:
        return []
    if minor > LAST_OF_OLDEST:
        print(f"no CPython up to 3.{LAST_OF_OLDEST} on this machine: the oldest of every library were not tried")
        return []
    return oldest()


def naming(path):
    """Return the tests of a file that name what it imports of scikit-learn, by themselves or in what they call there.

    Names in the file are all that is read: a helper that shares one with something else adds tests and loses none.
    """
    uses, naming = {}, {"sklearn"}
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        inside = [*ast.walk(statement)]
        imported = {(alias.asname or alias.name).partition(".")[0] for node in inside for alias in
                    getattr(node, "names", ()) if isinstance(node, ast.Import | ast.ImportFrom)
                    and (getattr(node, "module", None) or alias.name).partition(".")[0] == "sklearn"}
        if isinstance(statement, ast.Import | ast.ImportFrom):
            naming |= imported
            continue
        named = {getattr(node, "id", None) or (node.arg if isinstance(node, ast.arg) else None) for node in inside}
        made = [statement.name] if hasattr(statement, "name") else [
            node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        for name in made:
            uses.setdefault(name, set()).update(named - {None}, {"sklearn"} if imported else ())
    while more := {name for name, named in uses.items() if named & naming} - naming:
        naming |= more
    return {name for name in naming if name and name.startswith("test_")}


def tests_of(sklearn):
    """Return what pytest runs with an older scikit-learn: with the oldest one, all of `SKLEARN_TESTS`.

    With one between the oldest and the newest, each test that names scikit-learn, and first settings of mechanisms. The
    rest enters it through the same few methods of estimators as these do (or not at all), or is about containers
    (second settings, messages, strict mode): of both the oldest and the newest are tried.
    """
    paths = [ROOT / "tests" / name for name in SKLEARN_TESTS]
    if sklearn == OLDER_SKLEARN[0]:
        return paths
    chosen = [f"{path}::{name}" for path in paths if path not in WHOLE
              for name in sorted(naming(path) | ALONE.get(path.name, set()))]
    return [*WHOLE, *chosen, "-k", "not (-1-check_ or check_survey_)"]


def try_out(folder, wheel, interpreter, sklearn, constraints=()):
    """Use the wheel in an environment of its own; with an older scikit-learn, run what depends on it; return a text."""
    packages = [wheel] if sklearn is None else [f"{wheel}[test]", f"scikit-learn=={sklearn}"]
    chosen = tests_of(sklearn)
    if constraints:
        listed = folder.with_suffix(".txt")
        listed.write_text("\n".join(constraints) + "\n", encoding="utf-8")
        packages = [f"{wheel}[test,plot]", "--constraint", listed]
        sklearn = f"all of the oldest: {', '.join(constraints)}"
    python = environment(folder, interpreter, *packages)
    used = run(python, "-I", "-c", USE, cwd=folder, text=True, stdout=subprocess.PIPE).stdout
    if sklearn is None:
        return used
    # an old scikit-learn beside new libraries warns about itself: warnings are errors in `make test` only
    quiet = "filterwarnings=ignore::dpestim.exceptions.PrivacyLeakWarning"
    one_core = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
    command = [python, "-P", "-m", "pytest", "-q", "-o", f"cache_dir={folder / 'cache'}", "-o", quiet,
               "-m", CHOSEN, *chosen]
    tested = partial(subprocess.run, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                     env={**os.environ, **one_core})
    suite = tested([*command, "--assert=plain"])  # (as `make test`: what fails runs again, and says more)
    text = f"{used}what depends on scikit-learn, with {sklearn}\n{suite.stdout}"
    if suite.returncode:
        again = tested([*command, "--last-failed", "--last-failed-no-failures", "none"])
        raise AssertionError(f"{text}\n{again.stdout}")
    known = {line.partition("==")[0] for line in constraints}
    absent = known & {*re.findall(r"could not import '(\w+)", suite.stdout)}
    assert not absent, f"tests were skipped without {absent}\n{text}"
    return text


def check_contents(wheel, source):
    """Check that the wheel has what it needs and no more, all of it from the source distribution.

    `python -m build` makes the wheel of the unpacked source distribution, with no other requirements than those that
    are declared there; had that one lacked a file, there would be no wheel.
    """
    assert re.search(r"-cp311-abi3-", wheel.name), wheel.name
    packed = zipfile.ZipFile(wheel)
    names = packed.namelist()
    package = ROOT / "dpestim"
    needed = [*package.rglob("*.md"), *package.rglob("*.csv.gz")]
    needed += [p.with_suffix(".abi3.so") for p in (*package.rglob("*.pyx"), package / "_core/_cyutility.pyx")]
    for path in needed:
        assert str(path.relative_to(ROOT)) in names, f"{path.name} is not in the wheel"
    unwanted = [n for n in names if re.search(r"\.(c|pyx|pxd|h)$|^(tests|benchmarks|examples)/", n)]
    assert not unwanted, unwanted
    with tarfile.open(source) as sources:
        top = source.name.removesuffix(".tar.gz")
        for name in names:
            if name.startswith("dpestim/") and not name.endswith(".so"):
                assert packed.read(name) == sources.extractfile(f"{top}/{name}").read(), name
    print(f"{wheel.name}: {wheel.stat().st_size / 1024:.0f} KiB, {len(names)} files, of the source distribution")


def main(dist):
    wheels, sources = list(dist.glob("*.whl")), list(dist.glob("*.tar.gz"))
    assert len(wheels) == 1, wheels
    assert len(sources) == 1, sources
    check_contents(wheels[0], sources[0])
    present = interpreters()
    assert sys.version_info[1] in present
    for minor in MINORS:
        if minor not in present:
            print(f"no CPython 3.{minor} on this machine: the wheel was not tried there")
    # side by side: tests do not measure time
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        tried = [pool.submit(try_out, Path(folder) / f"env{k}", wheels[0], present[minor], sklearn,
                             constraints_of(minor, sklearn))
                 for k, (minor, sklearn) in enumerate(assignments(present))]
        for each in tried:
            print(each.result(), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
