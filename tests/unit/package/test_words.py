"""Plain words: no page, docstring or message has a word that makes it hard to read (CONTRIBUTING, "Plain words")."""

import ast
import inspect
import re
from pathlib import Path

import dpestim
from dpestim.base import all_estimators

PACKAGE = Path(dpestim.__file__).parent
ROOT = Path(__file__).parents[3]
#: What is never written, and what is written instead.
BANNED = {
    "whoever": "the person: the curator, the caller, an observer",
    "whatever": "for any ...",
    "what is none": "the case: a value that is not a category",
    "so many": "the number, or the name of the parameter that holds it",
    "the own": "the user's, the true",
    "an own": "user-defined, separate",
    "own one": "the user's, the true",
    "minds ties": "handles ties",
    "crooked": "nonlinear",
    "made-up rows": "artificial rows",
    "vouches": "declares",
    "drowns": "the noise exceeds the signal",
}
PATTERN = re.compile(rf"\b({'|'.join(BANNED)})\b", re.IGNORECASE)


def found(where, text):
    """Return a line for each banned word, with what to write."""
    return [f"{where}: '{word}': write {BANNED[word.lower()]}" for word in PATTERN.findall(" ".join(text.split()))]


def messages(path):
    """Yield (line, text) of the strings of exceptions and warnings in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        called = node.func if isinstance(node, ast.Call) else None
        name = getattr(called, "attr", getattr(called, "id", ""))  # (of `warnings.warn`, or of `warn`)
        if isinstance(node, ast.Raise) or name.endswith("warn"):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def test_banned_words_are_found(tmp_path):
    file = tmp_path / "x.py"
    for text in ('"""A."""\nraise ValueError("whatever")', 'raise E(\n    f"{x} # crooked"\n)', 'warn("so\tmany")'):
        file.write_text(text, encoding="utf-8")
        assert has_any(file)
        assert [line for _, said in messages(file) for line in found("x", said)]
    file.write_text('warn("so "\n     f"many {x}")', encoding="utf-8")
    assert has_any(file)
    file.write_text('"""Whatever."""\nx = 1  # whatever\nraise ValueError("its own value")', encoding="utf-8")
    assert not has_any(file)
    assert found("x", "Whoever\n holds it") == ["x: 'Whoever': write the person: the curator, the caller, an observer"]
    assert len(found("x", "noise for so   many answers, and the own value")) == 2
    assert not found("x", "its own value; somany; a crook")


#: Docstrings, comments, and what is between two strings that Python joins.
BETWEEN = re.compile(r'''^\s*"""[\s\S]*?"""|(?:^|  )\s*#.*|["']\s*[rRfFbB]*["']''', re.MULTILINE)


def has_any(path):
    """Tell whether a banned word stands in a file outside of docstrings and comments."""
    return PATTERN.search(" ".join(BETWEEN.sub("", path.read_text(encoding="utf-8")).split()))


def test_messages_have_plain_words():
    # (no file is parsed without need: that of all of them takes seconds)
    files = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] != "testing"]
    assert not [line for path in filter(has_any, files) for number, text in messages(path)
                for line in found(f"{path.relative_to(PACKAGE)}:{number}", text)]


def test_docstrings_of_estimators_have_plain_words():
    lines = []
    for name, cls in all_estimators():
        lines += found(name, cls.__doc__)
        for member in dir(cls):
            if not member.startswith("_") and (doc := inspect.getdoc(inspect.getattr_static(cls, member))):
                lines += found(f"{name}.{member}", doc)
    assert not lines


def test_pages_have_plain_words():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guide").glob("*.md")]
    assert not [line for page in pages for line in found(page.name, page.read_text(encoding="utf-8"))]
