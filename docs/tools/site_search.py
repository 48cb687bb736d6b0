"""What the search of the site knows: words of `search.toml` become entries of the index, which are found first."""

import tomllib
from functools import cache
from pathlib import Path

from jinja2 import FileSystemLoader
from jinja2.sandbox import SandboxedEnvironment
from numpydoc import docscrape_sphinx
from sphinx.search.en import SearchEnglish

#: {page or full name of a class or function: words}
WORDS = tomllib.loads((Path(__file__).parent / "search.toml").read_text(encoding="utf-8"))


def rst_entries(full):
    """Return the lines that enter the words of a class or function into the index."""
    return [".. index::", *(f"   ! single: {word}" for word in WORDS.get(full, ())), ""] if full in WORDS else []


def with_entries(page, text):
    """Return a page of Markdown with its words entered into the index below the title."""
    heading, end, rest = text.partition("\n")
    entries = "".join(f"\n```{{index}} ! single: {word}\n```\n" for word in WORDS.get(page, ()))
    return f"{heading}{end}{entries}{rest}"


def build_faster():
    """Stem each word once and compile the template of docstrings once, not on every page: a sixth of the time."""
    SearchEnglish.stem = cache(SearchEnglish.stem)
    templates = FileSystemLoader(Path(docscrape_sphinx.__file__).parent / "templates")
    shared = SandboxedEnvironment(loader=templates)
    docscrape_sphinx.SandboxedEnvironment = lambda loader: shared
