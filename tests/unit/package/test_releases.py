"""What a release promises: oldest dependencies, pinned workflows, a bill of materials, a label for every package."""

import base64
import hashlib
import importlib
import inspect
import json
import re
import runpy
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import dpestim
from dpestim.base import SUBPACKAGES
from dpestim.stability import PROVISIONAL, STABILITY, STABLE

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "pyproject.toml"
PROJECT = tomllib.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

pytestmark = pytest.mark.skipif(not WORKFLOWS, reason="the tests of an installed package")


def test_every_package_has_a_label_and_no_label_is_of_nothing():
    folders = {path.parent.name for path in (ROOT / "dpestim").glob("*/__init__.py")} - {"_core", "docstrings"}
    modules = {name for name in dpestim.__all__ if inspect.ismodule(getattr(dpestim, name))}
    assert {"exceptions", *folders, *modules, *SUBPACKAGES} == set(STABILITY)
    assert set(STABILITY.values()) == {STABLE, PROVISIONAL}
    for part in STABILITY:
        importlib.import_module(f"dpestim.{part}")


def test_api_pages_show_the_label():
    sys.path.insert(0, str(ROOT / "docs" / "tools"))
    try:
        lines = importlib.import_module("mechanism_tables").stability_lines
    finally:
        sys.path.remove(str(ROOT / "docs" / "tools"))
    assert "stable" in lines("dpestim.local", package=True)[0]
    assert "provisional" in lines("dpestim.geo", package=True)[0]
    assert "provisional" in lines("dpestim.geo.Anything")[0]
    assert lines("dpestim.local.Anything") == lines("dpestim", package=True) == []


def test_the_oldest_of_every_dependency_is_tried():
    tools = runpy.run_path(str(ROOT / ".ci" / "check_wheel.py"))
    pins = dict(line.split("==") for line in tools["oldest"]())
    for text in PROJECT["project"]["dependencies"]:
        name, oldest = text.split(">=")
        assert pins[name] == oldest
    assert {"pandas", "polars", "matplotlib", "pyarrow", "pytest"} <= set(pins)
    assert tools["OLDER_SKLEARN"][0] == pins["scikit-learn"] + ".*"
    # whatever interpreters a machine has, one environment has all of the oldest, and each interpreter is used
    for minors in ([11], [11, 12], [11, 12, 13], [11, 12, 13, 14], [12, 13]):
        tried = tools["assignments"](dict.fromkeys(minors, "python"))
        assert {minor for minor, _ in tried} == {*minors}
        assert {sklearn for _, sklearn in tried} == {*tools["OLDER_SKLEARN"], None}
        assert (minors[-1], None) in tried
        assert len(tried) == max(3, len(minors))
        constraints = [tools["constraints_of"](*each) for each in tried]
        assert [each for each in constraints if each] == [tools["oldest"]()]
    # what has no oldest version would be the newest, unseen
    extras = PROJECT["project"]["optional-dependencies"]
    for extra in ("arrow", "pandas", "plot", "test", "release"):
        assert all(">=" in text for text in extras[extra]), extra


def test_the_oldest_libraries_have_what_is_used():
    """Names of NumPy 2 that are called without a fallback: the oldest NumPy has none of them."""
    assert PROJECT["project"]["dependencies"][0] == "numpy>=1.26"
    newer = re.compile(r"\bnp\.(trapezoid|bitwise_count|concat|isdtype|vecdot|unstack|cumulative_\w+|"
                       r"unique_(?:all|counts|inverse|values)|permute_dims|matrix_transpose|linalg\.vecdot|strings|acos|asin|atan|pow)\b")
    found = {f"{path.relative_to(ROOT)}: {match[0]}" for path in (ROOT / "dpestim").rglob("*.py")
             for match in newer.finditer(re.sub(r"`[^`\n]*`", "", path.read_text(encoding="utf-8")))}
    assert not found


def test_actions_of_workflows_are_pinned_and_may_do_little():
    used = [line for path in WORKFLOWS for line in path.read_text().splitlines() if re.match(r"\s*-? *uses:", line)]
    assert len(used) > 10
    pinned = re.compile(r"\s*-? *uses: ([\w-]+/[\w.-]+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+$")
    pins = {}
    for line in used:
        name, commit = pinned.fullmatch(line).groups()
        assert pins.setdefault(name, commit) == commit, f"{name} has two pins"
    for path in WORKFLOWS:
        text = path.read_text()
        assert re.search(r"^permissions:(?: \{\}|\n  contents: read)$", text, re.M), path.name
        assert "secrets." not in text
        assert "pull_request_target" not in text
        assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    publish = release[release.index("  publish:\n"):]
    assert "id-token: write" in publish
    assert "password" not in publish
    assert "needs: [source, wheels, attest]" in publish


def test_workflows_name_files_and_commands_that_exist():
    for path in WORKFLOWS:
        text = path.read_text()
        for name in re.findall(r"(?<![\w/])((?:tests|\.ci|dpestim)/[\w/.]+\w)", text):
            assert (ROOT / name).exists(), f"{path.name}: {name}"
        targets = re.findall(r"run: make ([\w-]+)", text)
        makefile = (ROOT / "Makefile").read_text()
        assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets), targets
    wheels = PROJECT["tool"]["cibuildwheel"]
    for name in re.findall(r"\{package\}/([\w/.]+\w)", wheels["test-command"]):
        assert (ROOT / name).exists(), name
    assert wheels["build"][0] == "cp" + PROJECT["project"]["requires-python"].removeprefix(">=").replace(".", "") + "-*"
    assert {*wheels["test-requires"]} <= {*PROJECT["project"]["optional-dependencies"]["test"]}


def test_a_bill_of_materials_says_what_the_wheel_is_and_needs(tmp_path, monkeypatch):
    wheel = tmp_path / "dpestim-1.2.3-cp311-abi3-any.whl"
    module = b"machine code"
    digest = base64.urlsafe_b64encode(hashlib.sha256(module).digest()).decode().rstrip("=")
    head = ("Metadata-Version: 2.4\nName: dpestim\nVersion: 1.2.3\nSummary: a summary\n"
            "License-Expression: BSD-3-Clause\n"
            "Requires-Dist: numpy>=1.26\nRequires-Dist: dask[array,dataframe]>=2024.8; extra == \"dask\"\n"
            "Requires-Dist: pyarrow; extra == 'arrow'\nRequires-Dist: dpestim[test]; extra == 'dev'\n\n")
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("dpestim/_core/grr.abi3.so", module)
        packed.writestr("dpestim-1.2.3.dist-info/METADATA", head)
        packed.writestr("dpestim-1.2.3.dist-info/RECORD", f"dpestim/_core/grr.abi3.so,sha256={digest},12\n")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    write = runpy.run_path(str(ROOT / ".ci" / "sbom.py"))["write"]
    path = write(wheel)
    bill, again = json.loads(path.read_text()), write(wheel).read_bytes()
    assert path.read_bytes() == again
    own = bill["metadata"]["component"]
    assert own["hashes"][0]["content"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert own["components"][0]["hashes"][0]["content"] == hashlib.sha256(module).hexdigest()
    assert bill["metadata"]["timestamp"] == "1970-01-02T00:00:00Z"
    listed = {one["name"]: (one["scope"], [each["value"] for each in one["properties"]]) for one in bill["components"]}
    assert listed == {"numpy": ("required", [">=1.26"]), "dask": ("optional", [">=2024.8", "dask"]),
                      "pyarrow": ("optional", ["any", "arrow"])}
    assert bill["dependencies"][0]["dependsOn"] == ["requirement:numpy>=1.26"]
