"""Every example runs somewhere: in the demo, in another test, or here."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
#: What the demo does not run, and where it runs.
ELSEWHERE = {
    "billion.py": "tests/engines/test_dask.py",
    "browser_survey/collect.py": "tests/unit/collection/test_browser_survey.py",
    "hospitals.py": "tests/unit/package/test_examples.py",
}


def test_every_example_runs_somewhere():
    demo = re.search(r"^demo:.*?\n\n", (ROOT / "Makefile").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)[0]
    in_demo = set(re.findall(r"examples/(\S+\.py)", demo))
    there = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.py") if path.name[0] != "_"}
    assert there == in_demo | set(ELSEWHERE), "name what runs the example: `make demo`, or ELSEWHERE here"
    assert not in_demo & set(ELSEWHERE)
    for name, place in ELSEWHERE.items():
        assert Path(name).name in (ROOT / place).read_text(encoding="utf-8")
    assert "make demo" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.ci
def test_hospitals_share_no_records(tmp_path):
    """Five processes over TLS, of which one dies and one lies: half a minute, most of it waiting."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, EXAMPLES / "hospitals.py"], cwd=tmp_path, env=env, capture_output=True,
                          text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Hospital 3 died" in done.stdout
    assert "Hospital 4 lied" in done.stdout
