"""What checks the built site: links that lead nowhere, what its search must find, the list of its versions."""

import importlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def tools():
    sys.path.insert(0, str(DOCS / "tools"))
    try:
        yield {name: importlib.import_module(name) for name in ("link_check", "search_check", "versions")}
    finally:
        sys.path.remove(str(DOCS / "tools"))


def test_links_that_lead_nowhere_are_found(tools, tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "index.html").write_text(
        '<h1 id="a">a</h1><a href="#a">x</a><a href="#b">x</a><a href="more/page.html#c&amp;d">x</a>'
        '<a href="more/">x</a><img src="none.png"><a href="https://example.org/x">x</a><a href="http://example.org">x</a>'
        '<a href="../out.html">x</a><a href="more/page.html#e">x</a><a href="https://nowhere">x</a>'
        '<pre>&lt;a href=&quot;text.html&quot;&gt;</pre>')
    (tmp_path / "more" / "page.html").write_text('<p id="c&amp;d"><a href="../index.html#a">x</a><a href="">x</a></p>')
    n, wrong, others = tools["link_check"].checked(tmp_path)
    assert n == 11
    assert wrong == [
        "index.html: #b: the page has no such anchor",
        "index.html: ../out.html: it leaves the site",
        "index.html: http://example.org: write https",
        "index.html: https://nowhere: it is no address",
        "index.html: more/: there is no such file",
        "index.html: more/page.html#e: the page has no such anchor",
        "index.html: none.png: there is no such file",
    ]
    assert others["https://example.org/x"] == "index.html"
    with pytest.raises(SystemExit, match="run `make docs` first"):
        tools["link_check"].checked(tmp_path / "none")


def test_queries_of_visitors_are_those_that_were_promised(tools):
    queries = tools["search_check"].QUERIES
    assert {"count distinct", "median", "A/B test", "histogram"} <= set(queries)
    assert len(queries) >= 24
    exported = re.compile(r"dpestim(\.\w+)+")
    for pages in queries.values():
        for page in pages:
            if exported.fullmatch(page):
                package, _, name = page.rpartition(".")
                assert name in importlib.import_module(package).__all__, page
    pages = [page for pages in queries.values() for page in pages if not page.startswith("dpestim.")]
    assert all((DOCS / f"{page}.md").exists() for page in pages)
    words = {word for some in tomllib.loads((DOCS / "tools" / "search.toml").read_text(encoding="utf-8")).values()
             for word in some}
    assert {"count distinct", "median", "a/b test", "histogram"} <= words


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
@pytest.mark.ci
def test_a_query_without_an_answer_is_named(tools, tmp_path):
    """The whole site is asked by `make searchcheck`; this is what it says where words are missing."""
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "searchtools.js").write_text(
        "const Search = { _parseQuery: (query) => [query], _performSearch: (query) => "
        'query === "known" ? [["other", "t", ""], ["page", "t", "#x"]] : [] };')
    for name in ("_static/language_data.js", "searchindex.js"):
        (tmp_path / name).write_text("")
    lines = tools["search_check"].unanswered(tmp_path, {"known": ["page"], "unknown": ["dpestim.local.plan"]})
    assert lines == ["'unknown' finds nothing first, and not generated/api/dpestim.local.plan: "
                     "add the words to docs/tools/search.toml"]


# ---------------------------------------------------------------- versions

def site(tools, folder, menu):
    """Make a site of four versions, whose pages have nothing but the menu."""
    for name in ("0.9.0", "0.10.0", "1.0.0rc1", "1.0.0"):
        (folder / name).mkdir()
        (folder / name / "index.html").write_text(menu.replace("VERSION", name))
    (folder / "1.1.0").mkdir()  # not built
    tools["versions"].write(folder, {"0.9.0", "0.10.0"})


def test_versions_are_listed_the_newest_first(tools, tmp_path):
    site(tools, tmp_path, "")
    listed = json.loads((tmp_path / "versions.json").read_text())
    assert [one["title"] for one in listed] == ["1.0.0 (unreleased)", "1.0.0rc1 (unreleased)", "0.10.0", "0.9.0"]
    assert "url=0.10.0/index.html" in (tmp_path / "index.html").read_text()
    assert all((tmp_path / one["url"]).exists() for one in listed)


@pytest.mark.ci
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_the_menu_of_versions_works_from_a_file(tools, tmp_path):
    menu = (DOCS / "_templates" / "versions.html").read_text(encoding="utf-8")
    for old, new in (("{{ pathto('', 1) or './' }}", "./"), ("{{ version }}", "VERSION")):
        menu = menu.replace(old, new)
    menu = re.sub(r"\{#.*?#\}", "", menu)
    assert "{{" not in menu
    code = (DOCS / "_static" / "versions_menu.js").read_text(encoding="utf-8")
    site(tools, tmp_path, f"<body>{menu}<script>{code}</script>")
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
         "--dump-dom", (tmp_path / "0.10.0" / "index.html").as_uri()],
        capture_output=True, text=True, check=False, timeout=120)
    assert re.findall(r'<a href="(\S+)"', done.stdout) == [
        f"./../{name}/index.html" for name in ("1.0.0", "1.0.0rc1", "0.10.0", "0.9.0")]
    assert 'href="./../0.10.0/index.html" aria-current="true"' in done.stdout
