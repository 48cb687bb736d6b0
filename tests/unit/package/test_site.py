"""What the documentation is made of: tables in pages, choices of classes, words of the search, looks of series."""

import importlib
import inspect
import re
import sys
import tomllib
from pathlib import Path

import pytest

from dpestim.audit import mistakes
from dpestim.base import all_estimators

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
TOOLS = DOCS / "tools"
REGISTRY = dict(all_estimators())


@pytest.fixture(scope="module")
def tools():
    """Return the helpers of the documentation, which stand outside of the package."""
    sys.path.insert(0, str(TOOLS))
    try:
        yield {name: importlib.import_module(name) for name in ("mechanism_tables", "series_check", "caught_by")}
    finally:
        sys.path.remove(str(TOOLS))


# ---------------------------------------------------------------- what catches mistakes


def test_every_mistake_is_caught_and_the_table_is_of_this_gallery(tools):
    tool = tools["caught_by"]
    mark, rows = tool.kept(tool.PAGE.read_text(encoding="utf-8"))
    assert mark == tool.fingerprint(), "the gallery has changed: run docs/tools/caught_by.py"
    assert [row[0] for row in rows] == [mistake.name for mistake in mistakes()]
    for mistake, row in zip(mistakes(), rows):
        assert row[2] == tool.exactly(mistake)
        ways = [cell for cell in row[3:] if cell != "-" and not cell.startswith(tool.NO)]
        assert ways, mistake.name
        assert all(float(cell.split()[0].replace("infinite", "inf")) > mistake.claimed.epsilon for cell in ways)
    assert set(tool.IN_SUITE) | set(tool.IN_BITS) <= {mistake.name for mistake in mistakes()}
    assert tool.kept(tool.with_table("a" + tool.MARKS[0].format("b") + tool.MARKS[1] + "c", rows))[1] == rows


# ---------------------------------------------------------------- tables of what to take

def test_every_task_says_which_estimator_to_take_and_lists_all(tools):
    tables = tools["mechanism_tables"]
    guides, table = tables.mechanism_table(tables=False), tables.mechanism_table()
    for name, cls in REGISTRY.items():
        row = f"| `dpestim.{name}` | {inspect.getdoc(cls).splitlines()[0].rstrip('.')} |"
        assert table.count(row) == 1, name
        assert f"**{tables.task_of(cls)}**" in table
    rooms = {importlib.import_module(cls.__module__.rpartition(".")[0]) for cls in REGISTRY.values()}
    rows = [row for module in rooms for row in module.GUIDE]
    assert len(rows) == guides.count("| `dpestim.") > 0  # none names what is not in the registry
    for when, name, why in rows:
        assert guides.count(f"| {when} | ") == guides.count(f".{name}` | {why} |") == 1


def test_tables_in_the_pages_are_those_of_today(tools):
    """The pages are read where nothing is built, too."""
    tables = tools["mechanism_tables"]
    pages = tables.pages()
    assert len(pages) == len({tables.page_of(cls) for cls in REGISTRY.values()}) + 1
    for path, text in pages.items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} has an old table: run `make tables`"
        assert text.count(tables.MARKS[0]) == text.count(tables.MARKS[1]) == 1
    text = (DOCS / "mechanisms.md").read_text(encoding="utf-8")
    proofs = re.findall(r"\[proof\]\((.*?)\)", text)
    assert len(proofs) == len(REGISTRY)
    assert all((DOCS / proof).exists() for proof in proofs)
    assert "dpestim.tree" in tables.mechanism_table(page="models")
    assert "dpestim.tree" not in tables.mechanism_table(page="statistics")


def test_tables_have_links_where_they_are_built(tools):
    tables = tools["mechanism_tables"]
    text = tables.linked((DOCS / "mechanisms.md").read_text(encoding="utf-8"))
    assert text.count("{doc}`proof </generated/proofs/") == len(REGISTRY)
    assert "](../dpestim" not in text
    assert "| `dpestim." not in text
    assert "{py:class}`GRRFrequencyEstimator <dpestim.local.GRRFrequencyEstimator>`" in text
    assert "{doc}`proof </generated/proofs/local_grr>`" in text


def test_what_is_relaxed_has_a_table_of_its_own(tools):
    tables = tools["mechanism_tables"]
    tasks = {cls.__name__: tables.task_of(cls) for cls in REGISTRY.values()}
    assert "relaxed" in tasks["SDPMTransformer"]
    assert "relaxed" not in tasks["PMTransformer"]
    table = tables.mechanism_table()
    assert table.index(tasks["PMTransformer"]) < table.index(tasks["SDPMTransformer"])


# ---------------------------------------------------------------- what pages of classes say

def test_every_class_says_when_to_take_it_and_when_not():
    choices = tomllib.loads((TOOLS / "choices.toml").read_text(encoding="utf-8"))
    assert sorted(choices) == sorted(REGISTRY)
    for name, cls in REGISTRY.items():
        room = importlib.import_module(cls.__module__.rpartition(".")[0])
        named = any(row[1] == cls.__name__ for row in room.GUIDE)
        assert {"avoid"} <= set(choices[name]) <= {"take", "avoid"}, name
        assert named or "take" in choices[name], f"{name}: add a row of GUIDE, or `take` in choices.toml"
        for text in choices[name].values():
            assert text[0].isupper(), name
            assert text.endswith("."), name
            for link in re.findall(r"`(?:dpestim\.(\w+)\.)?([A-Z]\w+)`", text):
                package = link[0] or name.split(".")[0]
                assert exported(f"dpestim.{package}", link[1]) or exported("dpestim", link[1]), (name, link)


def exported(package, name):
    return name in importlib.import_module(package).__all__


def test_words_of_the_search_name_pages_that_exist():
    words = tomllib.loads((TOOLS / "search.toml").read_text(encoding="utf-8"))
    for page in words:
        if page.startswith("dpestim."):
            package, _, name = page.rpartition(".")
            assert exported(package, name), page
        else:
            assert (DOCS / f"{page}.md").exists(), page
    listed = [word for some in words.values() for word in some]
    assert len(listed) == len(set(listed)), "one word leads to one page"
    assert all(word == word.lower() for word in listed)  # as the search compares them


# ---------------------------------------------------------------- pictures

def test_no_two_series_of_a_picture_look_alike(tools):
    """The build of the documentation asks this of every figure of the gallery and of the pages of classes."""
    from matplotlib.figure import Figure

    check = tools["series_check"]

    def drawn(draw):
        figure = Figure()
        draw(figure.subplots())
        return figure

    def pairs(draw):
        return check.alike(drawn(draw))

    def lines(*styles):
        return lambda ax: [ax.plot([1, 2], style, color=color, label=f"{k}") for k, (style, color) in enumerate(styles)]

    assert pairs(lines(("o-", "C0"), ("s-", "C0"), ("o-", "C1"), ("-", "C0"))) == []
    assert pairs(lines(("o-", "C0"), ("o--", "C0"))) == [("0", "1")]  # dashes are too little
    assert pairs(lines(("-", "C0"), (":", "C0"))) == [("0", "1")]
    assert pairs(lambda ax: [ax.bar([1], [2], color="C0", label=name) for name in "ab"]) == [("a", "b")]
    bars = drawn(lambda ax: [ax.errorbar([1], [2], 1, fmt="o", color="C0", label=name) for name in "ab"])
    assert check.alike(bars) == [("a", "b")]
    assert pairs(lambda ax: [ax.stairs([1, 2], label=name) for name in "ab"]) == []  # the cycle gives each a colour
    assert pairs(lambda ax: [ax.stairs([1, 2], label=name, color="C2") for name in "ab"]) == [("a", "b")]
    pale = drawn(lambda ax: [ax.plot([1, 2], "o-", color="C0", alpha=a, label=f"{a}") for a in (1, 0.5)])
    with pytest.raises(ValueError, match=r"here: '1' and '0\.5' share colour and marker"):
        check.refuse_alike(pale, "here")


def test_every_page_of_the_gallery_draws_a_picture():
    for path in sorted((DOCS / "gallery").glob("plot_*.py")):
        text = path.read_text(encoding="utf-8")
        assert "plt.show()" in text or "plt.subplots(" in text, f"{path.name} has no picture for its thumbnail"
