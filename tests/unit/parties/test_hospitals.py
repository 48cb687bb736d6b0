"""The example of five hospitals in five processes, and the list of all examples."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.ci
def test_the_hospitals_run_and_lose_one_of_five():
    """Five processes over TLS: one dies before the last sum, and the others end with equal models."""
    said = subprocess.run([sys.executable, ROOT / "examples" / "hospitals.py"], capture_output=True, text=True,
                          timeout=300, check=True, cwd=ROOT).stdout
    assert "of hospitals [0, 1, 2, 3, 4]: 1 integers with noise" in said
    assert "of hospitals [0, 1, 2, 4]: 10 integers with noise" in said
    found = re.findall(r"^Hospital (\d) saw 4 totals, spent epsilon 2, and has: (.*)$", said, re.M)
    assert [place for place, _ in found] == ["0", "1", "2", "4"]
    assert len({model for _, model in found}) == 1
    count, truth = map(int, re.search(r"the count is (\d+), the truth (\d+)", said).groups())
    assert abs(count - truth - 1000) < 60
    assert "at most 2 of the 5 parties" in said


def test_every_example_is_in_the_guides_list():
    listed = set(re.findall(r"^\| `([\w/]+\.py)` \|", (ROOT / "docs" / "guide" / "index.md").read_text(), re.M))
    there = {path.name for path in (ROOT / "examples").glob("[!_]*.py")}
    assert listed == there | {"browser_survey/collect.py"}
    assert (ROOT / "examples" / "browser_survey" / "collect.py").exists()
