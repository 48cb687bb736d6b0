"""What a change rebuilds, read from the extensions that setup.py declares; nothing is compiled."""

import runpy
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CORE = "dpestim/_core"

pytestmark = pytest.mark.skipif(not (ROOT / "setup.py").is_file(), reason="the tests of an installed package")


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A copy of the kernels' sources, in which setup.py believes to be run."""
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "*.py", "__pycache__")
    shutil.copytree(ROOT / CORE, tmp_path / CORE, ignore=ignored)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rebuilt_by(monkeypatch, *files):
    """Return the kernels that a change of these files rebuilds."""
    made = []
    monkeypatch.setattr("setuptools.setup", lambda **_: None)
    monkeypatch.setattr("Cython.Build.cythonize", lambda extensions, **_: made.extend(extensions))
    runpy.run_path(str(ROOT / "setup.py"))
    assert len(made) == len(list((ROOT / CORE).glob("*.pyx"))) + 1  # and what they share, which Cython writes
    return {e.name.rpartition(".")[2] for e in made if {f"{CORE}/{f}" for f in files} & {*e.sources, *e.depends}}


def test_a_change_rebuilds_what_is_made_of_it(tree, monkeypatch):
    pytest.importorskip("Cython")
    assert rebuilt_by(monkeypatch, "unary.pyx") == {"unary"}
    assert rebuilt_by(monkeypatch, "src/unary.h") == {"unary"}
    assert rebuilt_by(monkeypatch, "src/grr_rows.h") == {"grr"}
    assert rebuilt_by(monkeypatch, "grr.pxd") == {"grr", "hadamard", "hcms", "olh"}
    assert rebuilt_by(monkeypatch, "src/grr.h") == {"grr", "hadamard", "hcms", "olh", "privunit", "sketch", "subset"}
    assert rebuilt_by(monkeypatch, "src/wide.h") >= {"build", "encode", "grr", "unary"}
    assert not rebuilt_by(monkeypatch, "src/wide.h") & {"binary", "em"}


def test_what_a_header_includes_is_read_from_its_text(tree, monkeypatch):
    pytest.importorskip("Cython")
    (tree / CORE / "src/tables.h").write_text("/* #include in a comment is no line of its own */\n")
    header = tree / CORE / "src/pm.h"
    assert rebuilt_by(monkeypatch, "src/tables.h") == set()
    header.write_text('#  include "tables.h"\n#include <stdio.h>\n' + header.read_text())
    assert rebuilt_by(monkeypatch, "src/tables.h") == {"duchi", "pm"}
    (tree / CORE / "em.pxd").write_text('cdef extern from "tables.h" nogil:\n    int dpestim_table()\n')
    both = rebuilt_by(monkeypatch, "em.pxd", "src/pm.h")
    assert rebuilt_by(monkeypatch, "src/tables.h") == both == {"duchi", "em", "pm"}
