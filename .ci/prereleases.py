"""Use the wheel with what its dependencies will be next: pre-releases. What fails is a warning, never an error."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import check_wheel

#: Libraries whose next release is tried; what they need comes along.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "polars")


def warn(text):
    """Print a warning, in the form that GitHub shows beside a run."""
    print(f"::warning::{text}")


def main(dist):
    (wheel,) = dist.glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        try:
            asked = ("--pre", *LIBRARIES, f"{wheel}[test]")
            python = check_wheel.environment(Path(folder) / "env", sys.executable, *asked)
        except subprocess.CalledProcessError:
            return warn("the pre-releases cannot be installed together: see the output of pip above")
        frozen = subprocess.run([sys.executable, "-m", "pip", "--python", python, "freeze"], text=True,
                                stdout=subprocess.PIPE, check=True).stdout
        versions = ", ".join(line for line in frozen.split() if line.partition("==")[0] in LIBRARIES)
        print(f"tried: {versions}")
        used = subprocess.run([python, "-I", "-c", check_wheel.USE], cwd=folder)
        suite = subprocess.run(
            [python, "-P", "-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider", "-m", check_wheel.CHOSEN,
             *(check_wheel.ROOT / "tests" / name for name in check_wheel.SKLEARN_TESTS)],
            cwd=check_wheel.ROOT, env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        if used.returncode or suite.returncode:
            warn(f"something fails, or warns, with {versions}")


if __name__ == "__main__":
    main((check_wheel.ROOT / "dist").resolve())
