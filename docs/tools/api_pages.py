"""Pages of the API reference: one for each package, one for each class or function, and a list from A to Z.

Pages of estimators say, besides what docstrings say, when to take the class and when not (`choices.toml` and the
`GUIDE` of its package), show a picture of its law where there is one, and link to the pages whose code uses the class.
"""

import ast
import importlib
import inspect
import re
import tomllib
from itertools import groupby
from pathlib import Path

from error_curves import table_of
from mechanism_tables import around, mechanism_table, page_of, stability_lines, task_of
from scale_pictures import lines_of
from site_search import rst_entries

import dpestim
from dpestim.base import SUBPACKAGES, PrivateEstimator, all_estimators

DOCS = Path(__file__).parents[1]
REGISTRY = dict(all_estimators())
#: {name: {"take": ..., "avoid": ...}}
CHOICES = tomllib.loads((DOCS / "tools" / "choices.toml").read_text(encoding="utf-8"))
PICTURES = DOCS / "generated" / "pictures"


# ---------------------------------------------------------------- which pages there are

def api_pages():
    """Return {name: text} of all pages of the reference."""
    public = [name for name in dpestim.__all__ if name not in (*SUBPACKAGES, "__version__")]
    functions = [name for name in public if not inspect.ismodule(getattr(dpestim, name))]
    packages = sorted({*SUBPACKAGES, *public} - set(functions))
    uses = uses_of_names()
    pages, summaries = {}, {"dpestim": "What all packages share: settings of a block, and what is imported from here."}
    names = [f"dpestim.{name}" for name in functions]
    pages["dpestim"] = package_page("dpestim", summaries["dpestim"], {"": functions})
    listed = re.findall(r"^\| `dpestim\.([\w.]+)`", mechanism_table(), re.MULTILINE)  # in the order of the tables
    assert sorted(listed) == sorted(REGISTRY)
    for package in packages:
        module = importlib.import_module(f"dpestim.{package}")
        groups = {}
        for name in listed:
            if name.startswith(f"{package}."):
                groups.setdefault(task_of(REGISTRY[name]), []).append(name.removeprefix(f"{package}."))
        groups["Functions and other classes" if groups else ""] = [
            name for name in module.__all__ if f"{package}.{name}" not in REGISTRY]
        summaries[package] = first_line(module)
        pages[package] = package_page(f"dpestim.{package}", summaries[package], groups)
        names += [f"dpestim.{package}.{name}" for name in module.__all__]
    pages |= {name: object_page(name, uses.get(name, [])) for name in names}
    pages["alphabetical"] = alphabetical(names)
    rows = [f"* :doc:`{name}`: {summary}" for name, summary in summaries.items()]
    tree = toctree({"A to Z": "alphabetical", **{name: name for name in summaries}})
    pages["index"] = [*title("API reference"), ":doc:`alphabetical` lists all names.", "", *rows, "", *tree]
    return {name: "\n".join([*text, ""]) for name, text in pages.items()}


def package_page(full, summary, groups):
    """Return the lines of a package: its names by task, and alphabetically in the navigation."""
    lines = [*title(full), f".. currentmodule:: {full}", "", summary, "", *stability_lines(full, package=True)]
    for task, names in groups.items():
        if names:
            lines += [f".. rubric:: {task}", ""] if task else []
            lines += table(f"{full}.{name}" for name in names)
    names = sorted((name for group in groups.values() for name in group), key=str.lower)
    return [*lines, *toctree({name: f"{full}.{name}" for name in names})]


def object_page(full, uses):
    """Return the lines of the page of a class or function, with the pages that use it."""
    module, _, name = full.rpartition(".")
    item = item_of(full)
    if inspect.isclass(item):
        kind = "exception" if issubclass(item, BaseException) else "class"
    else:
        kind = "function" if callable(item) else "data"
    lines = [*title(name), *rst_entries(full), *stability_lines(full), f".. currentmodule:: {module}", "",
             f".. auto{kind}:: {name}"]
    if kind == "class":
        lines += ["   :members:", "   :undoc-members:",
                  "   :inherited-members: TransformerMixin, BaseEstimator, Enum, Exception"]
    if uses:
        lines += ["", *title("Examples using this class" if kind == "class" else "Examples using it", "-")]
        lines += [*(f"* :doc:`{page}`" for page in uses if "gallery" not in page), ""]
        for page in uses:
            folder, _, example = page.rpartition("/")
            if folder.endswith("gallery"):
                lines += [f".. figure:: {folder}/images/thumb/sphx_glr_{example}_thumb.png", "   :width: 280px",
                          f"   :target: ../gallery/{example}.html", f"   :alt: a picture of {example}", "",
                          f"   :doc:`{page}`", ""]
    return lines


def alphabetical(names):
    """Return the lines of the list of all names; DPKMeans stands under K, too."""
    entries = {(name.rpartition(".")[2], name) for name in names}
    entries |= {(short[2:], name) for short, name in entries if re.match("DP[A-Z]", short)}
    lines = title("All classes and functions, from A to Z")
    entries = sorted(entries, key=lambda entry: (entry[0].lower(), entry))
    for letter, group in groupby(entries, key=lambda entry: entry[0][0].upper()):
        lines += [f".. rubric:: {letter}", "", *table(name for _, name in group)]
    return lines


# ---------------------------------------------------------------- pieces of a page

def title(text, line="="):
    """Return the lines of a title."""
    return [text, line * len(text), ""]


def toctree(entries):
    """Return the lines of a hidden tree of pages, which the navigation shows."""
    return [".. toctree::", "   :hidden:", "", *(f"   {text} <{page}>" for text, page in entries.items()), ""]


def table(names):
    """Return the lines of a table of names and what they are."""
    lines = [".. list-table::", "   :widths: auto", ""]
    for full in names:
        lines += [f"   * - :py:obj:`{full.rpartition('.')[2]} <{full}>`", f"     - {first_line(item_of(full))}"]
    return [*lines, ""]


def item_of(full):
    """Return what a full name names."""
    module, _, name = full.rpartition(".")
    return getattr(importlib.import_module(module), name)


def first_line(item):
    """Return the first line of a docstring, without code in double backticks that would break a table."""
    return (inspect.getdoc(item) or "").partition("\n")[0]


# ---------------------------------------------------------------- what docstrings of estimators get

def choice_lines(name, cls):
    """Return the lines that say when to take a class and when not."""
    rows = [row for row in around(cls, "GUIDE") if row[1] == cls.__name__]
    rows = [f"{when[0].upper()}{when[1:]}: {why}." for when, _, why in rows]
    choice = CHOICES[name]
    lines = [".. rubric:: When to take it", ""]
    lines += [f"* {text}" for text in [*([choice["take"]] if "take" in choice else []), *rows]]
    page = page_of(cls)
    return [*lines, "", ".. rubric:: When not", "", choice["avoid"], "",
            f"The tables of :doc:`/guide/{page}` compare it with its siblings.", ""]


def arrange(name, lines):
    """Return the lines of an estimator's docstring in the order in which readers ask, with what the site adds.

    `lines` are those that numpydoc made: a description, the paragraphs on privacy, utility and complexity, parameters,
    attributes, errors, references, examples.
    """
    cls = REGISTRY[name.removeprefix("dpestim.")]
    privacy = next(i for i, line in enumerate(lines) if line.startswith("**Privacy.**"))
    sections = next(i for i, line in enumerate(lines) if line.startswith(":Parameters:"))
    examples = lines.index(".. rubric:: Examples")
    facts = [*lines[privacy:sections]]
    for word, heading in {"Privacy": "Guarantee", "Utility": "Accuracy", "Complexity": "Cost"}.items():
        at = next(i for i, line in enumerate(facts) if line.startswith(f"**{word}.**"))
        facts[at:at + 1] = [f".. rubric:: {heading}", "", facts[at].removeprefix(f"**{word}.**").strip()]
    picture, shown = PICTURES / f"{name}.svg", []
    if picture.exists():
        caption = picture.with_suffix(".txt").read_text(encoding="utf-8")
        shown = [f".. figure:: /generated/pictures/{name}.svg", f"   :alt: {caption}", "", f"   {caption}", ""]
    return [*lines[:privacy], *choice_lines(name.removeprefix("dpestim."), cls), *facts,
            *lines_of(name.removeprefix("dpestim.")), *shown, *table_of(name.removeprefix("dpestim.")),
            *lines[examples:], "", *lines[sections:examples]]


# ---------------------------------------------------------------- which pages use what

def uses_of_names():
    """Return {full name: pages whose code imports it}: the guide and how-tos first, then the gallery."""
    found = {}
    for page, code in sources():
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "dpestim":
                for alias in node.names:
                    pages = found.setdefault(f"{node.module}.{alias.name}", [])
                    pages += [page] if page not in pages else []
    return found


def sources():
    """Yield (page, code) of all pages that are written by hand and have code."""
    pages = [DOCS / "guide" / f"{name}.md" for name in toc(DOCS / "guide" / "index.md")]
    for path in [*pages, DOCS / "howto.md"]:
        blocks = re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
        yield f"/{path.relative_to(DOCS).with_suffix('').as_posix()}", "\n".join(blocks)
    for path in sorted((DOCS / "gallery").glob("plot_*.py")):
        yield f"/generated/gallery/{path.stem}", path.read_text(encoding="utf-8")


def toc(path):
    """Return the pages of the list in a page of Markdown, in order."""
    tree = re.search(r"```\{toctree\}\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)[1]
    return [line for line in tree.splitlines() if line and not line.startswith(":")]


def is_estimator(what, name):
    """Tell whether a docstring is that of a class with an arranged page."""
    return what == "class" and name.removeprefix("dpestim.") in REGISTRY


def check_signature(what, name, obj, signature):
    """Stop the build where an estimator's page would say that it takes any arguments."""
    if what == "class" and issubclass(obj, PrivateEstimator) and "*args" in (signature or ""):
        raise ValueError(f"{name} is shown as {signature}")
