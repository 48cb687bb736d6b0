"""What is cited is the version that is built."""

from pathlib import Path

import dpestim

ROOT = Path(__file__).parents[3]


def test_citation_names_this_version():
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {dpestim.__version__}" in lines
