"""How the documentation is built: ``python -m sphinx -W --keep-going -b html docs docs/_build/html``.

What the registry, `__all__` and the proofs say is written into ``docs/generated`` before anything is read, so that a
newly listed mechanism has its page, its row in the table and its proof here with no further line.
"""

import importlib
import inspect
import re
import shutil
import sys
from pathlib import Path

import dpestim
from dpestim.base import SUBPACKAGES, PrivateEstimator, all_estimators
from dpestim.version import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from _mechanisms import PAGE_OF, mechanism_table, task_of  # noqa: E402  (it is found by now)

GENERATED = HERE / "generated"

project = "dpestim"
author = "The dpestim developers"
copyright = author  # (Sphinx's name)
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "gallery"]
templates_path = ["_templates"]
myst_heading_anchors = 2
default_role = "py:obj"  # docstrings write `fit`; it becomes a link where there is such a thing

autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
autosummary_generate = True
numpydoc_show_class_members = False  # autodoc writes them, on the same page
numpydoc_attributes_as_param_list = True

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["generated/gallery"],
    "within_subsection_order": "FileNameSortKey",
    "reference_url": {"dpestim": None},  # names in the code link to the API pages
    "write_computation_times": False,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # an example's run time says nothing about the package
}

html_theme = "pydata_sphinx_theme"
html_title = f"dpestim {__version__}"
html_static_path = ["_static"]
html_css_files = ["dpestim.css"]
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    # all pages but those of the gallery, where pictures take the room
    "secondary_sidebar_items": {
        key: ["page-toc"] for key in ("*", "guide/*", "generated/api/*", "generated/proofs/*")
    },
    "footer_start": ["sphinx-version"],
    "footer_end": ["theme-version"],
}
html_sidebars = {page: [] for page in ("getting_started", "howto", "mechanisms", "glossary", "known_limits")}


def generate(app, config):
    """Write the pages that the package dictates; without leftovers of what it no longer lists."""
    for name in ("api", "proofs"):
        shutil.rmtree(GENERATED / name, ignore_errors=True)
        (GENERATED / name).mkdir(parents=True)
    for page, text in api_pages().items():
        (GENERATED / "api" / f"{page}.rst").write_text(text, encoding="utf-8")
    (GENERATED / "mechanisms.md.inc").write_text(linked(mechanism_table()), encoding="utf-8")
    for page in {*PAGE_OF.values(), "relaxed"}:
        text = linked(mechanism_table(tables=False, page=page))
        (GENERATED / f"which_{page}.md.inc").write_text(text, encoding="utf-8")
    (GENERATED / "benchmarks.rst.inc").write_text(benchmarks_text(), encoding="utf-8")
    for proof in sorted((HERE.parent / "dpestim").glob("*/**/*.md")):
        place = proof.relative_to(HERE.parent)
        include = f"```{{include}} ../../../{place.as_posix()}\n```\n"
        # two models may have a mechanism of one name
        (GENERATED / "proofs" / f"{place.parts[1]}_{proof.name.lstrip('_')}").write_text(include, encoding="utf-8")


def api_pages():
    """Return {name: text} of a page for each package, estimators from the registry by task, and an index of them."""
    listed = re.findall(r"^\| `dpestim\.([\w.]+)`", mechanism_table(), re.MULTILINE)  # in the order of the tables
    registry = dict(all_estimators())
    assert sorted(listed) == sorted(registry)
    public = [name for name in dpestim.__all__ if name not in (*SUBPACKAGES, "__version__")]
    functions = [name for name in public if not inspect.ismodule(getattr(dpestim, name))]
    packages = sorted({*SUBPACKAGES, *public} - set(functions))
    pages, rows = {}, [("dpestim", "What all packages share: settings of a block, and what is imported from here.")]
    for package in packages:
        module = importlib.import_module(f"dpestim.{package}")
        groups = {}
        for name in listed:
            if name.startswith(f"{package}."):
                groups.setdefault(task_of(registry[name]), []).append(name.removeprefix(f"{package}."))
        rest = [n for n in module.__all__ if f"{package}.{n}" not in registry]
        summary = (module.__doc__ or package).splitlines()[0]
        rows.append((package, summary))
        text = api_page(f"dpestim.{package}", summary)
        for task, names in groups.items():
            text += [f".. rubric:: {task}", "", *summaries(names)]
        pages[package] = [*text, *(summaries(rest) if rest else [])]
    pages["dpestim"] = [*api_page("dpestim", rows[0][1]), *summaries(functions)]
    tree = [".. toctree::", "   :hidden:", "", *(f"   {name} <{name}>" for name, _ in rows), ""]
    pages["index"] = ["API reference", "=" * 13, "", *tree, *(f"* :doc:`{name}`: {summary}" for name, summary in rows)]
    return {name: "\n".join([*text, ""]) for name, text in pages.items()}


def api_page(title, summary):
    """Return the first lines of the page of a package."""
    return [title, "=" * len(title), "", f".. currentmodule:: {title}", "", summary, ""]


def summaries(names):
    """Return the lines of a table of names, each with a page of its own."""
    return [".. autosummary::", "   :toctree: .", "   :nosignatures:", "", *(f"   {name}" for name in names), ""]


def linked(table):
    """Return the Markdown table of mechanisms with links to their pages and proofs."""
    row = r"^(\| `dpestim\.(\w+)\..*)`_?(\w+)\.md`"
    table = re.sub(row, r"\1{doc}`proof </generated/proofs/\2_\3>`", table, flags=re.MULTILINE)
    return re.sub(r"`(dpestim\.\w+\.)(\w+)`", r"{py:class}`\2 <\1\2>`", table)


def benchmarks_text():
    """Return what the benchmarks say about themselves, without the title line."""
    source = (HERE.parent / "benchmarks" / "__init__.py").read_text(encoding="utf-8")
    return source.split('"""')[1].split("\n", 2)[2]


def link_proofs(app, what, name, obj, options, lines):
    """Make the file name of a proof in a docstring a link to it."""
    room = (getattr(obj, "__module__", None) or name).split(".")[1]  # where it is written, not where it is exported
    link = rf":doc:`\1\2.md </generated/proofs/{room}_\2>`"
    lines[:] = [re.sub(r"``(_?)(\w+)\.md``", link, line) for line in lines]


def refuse_anything(app, what, name, obj, options, signature, annotation):
    """Stop the build where an estimator's page would say that it takes any arguments."""
    if what == "class" and issubclass(obj, PrivateEstimator) and "*args" in (signature or ""):
        raise ValueError(f"{name} is shown as {signature}")


def skip_foreign(app, what, name, obj, skip, options):
    """Leave out what is inherited from scikit-learn (or Python) and documented there."""
    owner = getattr(getattr(obj, "fget", obj), "__module__", None) or "dpestim"
    return True if not owner.startswith("dpestim") else None


def setup(app):
    """Connect the functions above."""
    app.connect("config-inited", generate)
    app.connect("autodoc-process-docstring", link_proofs)
    app.connect("autodoc-process-signature", refuse_anything)
    app.connect("autodoc-skip-member", skip_foreign)
