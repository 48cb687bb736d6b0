"""Install what `make wheel` built in clean environments and use it there: every interpreter present, no compiler.

Checks that there is one cp311-abi3 wheel with all it needs and nothing it does not, that it runs on every CPython from
3.11 on that this machine has, that what depends on scikit-learn passes with the oldest one and the one before the
newest, and that the source distribution builds.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MINORS = (11, 12, 13)
#: scikit-learn besides the newest that is tried: the oldest with public tags, and the one before last.
OLDER_SKLEARN = ("1.6.*", "1.8.*")
#: What depends on scikit-learn: its own checks, the behaviour of every mechanism (clone, tags, validation, set_output),
#: strict mode, and the unit tests of estimators and of ledgers in blocks, searches and pipelines. Laws (marked `law`),
#: kernels, words, exact rounding and the noise of models are integers and NumPy; killed processes (`kill_9`) are
#: SQLite's business; and that checks reject what is broken is a property of the checks. `make test` has run all that.
SKLEARN_TESTS = (*(f"common/test_{name}.py" for name in ("sklearn", "mechanisms", "strict", "messages")),
                 *(f"unit/test_{name}.py" for name in ("local", "numbers", "collected_numbers", "logistic", "config",
                                                       "personalized",
                                                       "columns", "encode", "inputs", "inspection", "ledger",
                                                       "postprocessing")))
SELECTED = ("-m", "not law", "-k", "not kill_9")

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
for name, cls in all_estimators():
    assert cls._proof().exists(), name
for cls in (GRRFrequencyEstimator, OUEFrequencyEstimator, OLHFrequencyEstimator):
    check_mechanism(cls(1.0, categories=[["a", "b", "c"]]))
x = np.random.default_rng(0).uniform(-1, 1, (2000, 1))
with Ledger(2.0) as ledger:
    assert abs(MeanEstimator(PMTransformer(1.0, bounds=(-1, 1))).fit(x).mean_[0]) < 0.3
    model = DPLogisticRegression(1.0, classes=[False, True], data_norm=1.0).fit(x, x[:, 0] > 0)
assert model.score(x, x[:, 0] > 0) > 0.8
assert ledger.remaining().epsilon == 0
grade = load_yrbss().data[:, 1:2]
f = OUEFrequencyEstimator(2.0, categories=[["female", "male"]]).fit(grade).frequencies_[0]
assert abs(f[0] - np.mean(grade == "female")) < 0.1
print(f"wheel works on {sys.version.split()[0]}, {build.VECTOR_BITS}-bit vectors")
"""


def run(*command, **kwargs):
    return subprocess.run([str(c) for c in command], check=True, **kwargs)


def interpreters():
    """Return one interpreter for each minor version that is present: on the path, or in a version manager's folder."""
    found = {}
    managed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in MINORS:
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
    run(interpreter, "-m", "venv", folder)
    # no compiler: whatever would need one must fail
    env = {**os.environ, "CC": "false", "CXX": "false"}
    env.pop("PYTHONPATH", None)
    run(folder / "bin/python", "-m", "pip", "install", "--quiet", *packages, env=env)
    return folder / "bin/python"


def main(dist):
    wheels, sources = list(dist.glob("*.whl")), list(dist.glob("*.tar.gz"))
    assert len(wheels) == 1, wheels
    assert len(sources) == 1, sources
    wheel = wheels[0]
    assert re.search(r"-cp311-abi3-", wheel.name), wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    package = ROOT / "dpestim"
    needed = [*package.rglob("*.md"), *package.rglob("*.csv.gz")]
    needed += [p.with_suffix(".abi3.so") for p in package.rglob("*.pyx")]
    for path in needed:
        assert str(path.relative_to(ROOT)) in names, f"{path.name} is not in the wheel"
    unwanted = [n for n in names if re.search(r"\.(c|pyx|pxd|h)$|^(tests|benchmarks|examples)/", n)]
    assert not unwanted, unwanted
    print(f"{wheel.name}: {wheel.stat().st_size / 1024:.0f} KiB, {len(names)} files")

    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        present = interpreters()
        assert sys.version_info[1] in present or sys.version_info[1] > max(MINORS)
        for minor in MINORS:
            if minor not in present:
                print(f"no CPython 3.{minor} on this machine: the wheel was not tried there")
        for minor, interpreter in present.items():
            python = environment(folder / f"py{minor}", interpreter, wheel)
            run(python, "-I", "-c", USE, cwd=folder)
        pythons = [
            environment(folder / f"sklearn{version[:3]}", sys.executable, f"{wheel}[test]", f"scikit-learn=={version}")
            for version in OLDER_SKLEARN
        ]
        # an old scikit-learn beside new libraries warns about itself: warnings are errors in `make test` only
        quiet = "filterwarnings=ignore::dpestim.exceptions.PrivacyLeakWarning"
        workers = ("-n", str(max(1, os.cpu_count() // len(pythons))), "--dist", "loadgroup")
        options = ("-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", quiet, *workers, *SELECTED,
                   *(ROOT / "tests" / name for name in SKLEARN_TESTS))
        suites = [  # side by side: tests do not measure time
            subprocess.Popen([python, *options], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for python in pythons
        ]
        for version, suite in zip(OLDER_SKLEARN, suites):
            output = suite.communicate()[0]
            print(f"what depends on scikit-learn, with {version}\n{output}", flush=True)
            assert suite.returncode == 0, version
        # the source distribution builds with its own declared requirements only
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder / "built", sources[0])
        built = [p.name for p in (folder / "built").glob("*.whl")]
        assert built == [wheel.name], built
    print("the source distribution builds the same wheel")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
