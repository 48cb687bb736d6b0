"""Pages for people from other packages: every call of both sides exists, and what is said to be measured was."""

import importlib
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script():
    """Return the script that checks the pages in the environments of other packages."""
    sys.path.insert(0, str(ROOT))
    try:
        yield importlib.import_module("benchmarks.moves")
    finally:
        sys.path.remove(str(ROOT))


@pytest.fixture(scope="module")
def kept(script):
    """Return what the script kept."""
    return json.loads(script.KEPT.read_text(encoding="utf-8"))


def test_every_call_of_the_other_package_was_looked_up_there(script, kept):
    assert {*kept} == {*script.PAGES}
    for name, (roots, _) in script.PAGES.items():
        calls = script.calls_tool().calls_of(script.page_of(name).read_text(encoding="utf-8"), roots)
        assert calls == [*kept[name]["calls"]], f"run python -m benchmarks.moves for {name}"
        assert len(calls) >= 5
        assert not {call: why for call, why in kept[name]["calls"].items() if why}


def test_every_call_of_ours_exists(script):
    tool = script.calls_tool()
    for page in {script.page_of(name) for name in script.PAGES}:
        calls = tool.calls_of(page.read_text(encoding="utf-8"), ("dpestim",))
        assert len(calls) >= 5
        assert not [why for why in map(tool.problem, calls) if why], page.name


def test_wrong_calls_are_noticed(script):
    tool = script.calls_tool()
    assert tool.calls_of("`dpestim.no`\n| `dpestim.a.b(c)` | `x` | `other.d` |", ("dpestim",)) == ["dpestim.a.b(c)"]
    assert tool.problem("dpestim.statistics.mean(x, epsilon)") == tool.problem("dpestim.statistics.mean") == ""
    assert tool.problem("dpestim.statistics.mean(x, scale)") == "dpestim.statistics.mean has no parameter scale"
    assert tool.problem("dpestim.statistics.no") == "dpestim.statistics.no does not exist"
    assert tool.problem("dpestim_no.mean") == "dpestim_no cannot be imported"


def test_pages_show_what_was_measured(script, kept):
    for page in {script.page_of(name) for name in script.PAGES}:
        text = page.read_text(encoding="utf-8")
        assert script.with_block(text, [kept[name] for name in script.packages_of(page)]) == text, (
            f"run python -m benchmarks.moves: {page.name} is older than its measurements")


def test_calls_link_to_their_pages_and_long_names_are_wrapped(script):
    tool, text = script.calls_tool(), "a `dpestim.b.c`\n\n| a |\n|---|\n| `dpestim.b.c(d)` |\n"
    assert tool.shown("index", text) == text
    found = tool.shown("guide/from_opendp", text)
    assert "a `dpestim.b.c`" in found
    assert "| {py:obj}`b.c(d) <dpestim.b.c>` |" in found
    assert found.count("{rst-class} long-names") == 1
