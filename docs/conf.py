"""How the documentation is built: ``python -m sphinx -W --keep-going -b html docs docs/_build/html``.

What the registry, `__all__` and the proofs say is written into ``docs/generated`` before anything is read, so that a
newly listed mechanism has its page and its proof here with no further line. Helpers stand in ``docs/tools``.
"""

import re
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "tools"))

import api_pages  # noqa: E402  (it is found by now)
import calls  # noqa: E402
import law_pictures  # noqa: E402
import mechanism_tables  # noqa: E402
import planner  # noqa: E402
import scale_pictures  # noqa: E402
import site_search  # noqa: E402

import dpestim  # noqa: E402
from dpestim.stability import STABILITY  # noqa: E402
from dpestim.version import __version__  # noqa: E402

GENERATED = HERE / "generated"

project = "dpestim"
author = "The dpestim developers"
copyright = author  # (Sphinx's name)
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery", "tools"]
myst_heading_anchors = 2
default_role = "py:obj"  # docstrings write `fit`; it becomes a link where there is such a thing

autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # autodoc writes them, on the same page
numpydoc_attributes_as_param_list = True

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["generated/gallery"],
    "parallel": True,  # examples side by side, as many as pages are
    "image_scrapers": ("series_check",),  # the pictures of matplotlib, in which no two series may look alike
    "remove_config_comments": True,
    "thumbnail_size": (480, 336),
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
templates_path = ["_templates"]
html_css_files = ["dpestim.css"]
html_js_files = [("versions_menu.js", {"defer": "defer"})]
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_end": ["versions", "theme-switcher"],
    "navigation_with_keys": False,
    "show_toc_level": 2,
    # all pages but those of the gallery, where pictures take the room
    "secondary_sidebar_items": {
        key: ["page-toc"] for key in ("*", "guide/*", "generated/api/*", "generated/proofs/*")
    },
    "footer_start": ["sphinx-version"],
    "footer_end": ["theme-version"],
}
html_sidebars = {page.stem: [] for page in HERE.glob("*.md") if "{toctree}" not in page.read_text(encoding="utf-8")}


def generate(app, config):
    """Write the pages that the package dictates; without leftovers of what it no longer lists."""
    files = {"benchmarks.rst.inc": benchmarks_text(), "stability.md": stability_text(),
             "planner.html": planner.page(), "scale.md.inc": scale_pictures.page()}
    files |= {f"pictures/{name}": text for name, text in pictures().items()}
    files |= {f"api/{page}.rst": text for page, text in api_pages.api_pages().items()}
    for proof in sorted((HERE.parent / "dpestim").glob("*/**/*.md")):
        place = proof.relative_to(HERE.parent)
        include = f"```{{include}} ../../../{place.as_posix()}\n```\n"
        # two models may have a mechanism of one name
        files[f"proofs/{place.parts[1]}_{proof.name}"] = include
    for name in ("api", "pictures", "proofs"):
        (GENERATED / name).mkdir(parents=True, exist_ok=True)
        for path in (GENERATED / name).iterdir():
            if f"{name}/{path.name}" not in files:
                path.unlink()
    for name, text in files.items():  # (what has not changed is not read again)
        if not (GENERATED / name).exists() or (GENERATED / name).read_text(encoding="utf-8") != text:
            (GENERATED / name).write_text(text, encoding="utf-8")


def pictures():
    """Return {file: text} of all pictures; those of laws are drawn beside those of scale, half a minute on one core."""
    with ProcessPoolExecutor(1) as pool:
        laws = pool.submit(law_pictures.drawn)
        return scale_pictures.drawn() | laws.result()


def benchmarks_text():
    """Return what the benchmarks say about themselves, without the title line."""
    source = (HERE.parent / "benchmarks" / "__init__.py").read_text(encoding="utf-8")
    return source.split('"""')[1].split("\n", 2)[2]


def stability_text():
    """Return the table of how settled each package is."""
    rows = [f"| {{doc}}`dpestim.{part} </generated/api/{part}>` | {label} |" if part in dpestim.__all__
            else f"| `dpestim.{part}` | {label} |" for part, label in sorted(STABILITY.items())]
    return "\n".join(["| Part | Label |", "|---|---|", *rows, ""])


def arrange(app, what, name, obj, options, lines):
    """Make file names of proofs in a docstring links, and arrange the docstrings of estimators."""
    room = (getattr(obj, "__module__", None) or name).split(".")[1]  # where it is written, not where it is exported
    link = rf":doc:`\1.md </generated/proofs/{room}_\1>`"
    lines[:] = [re.sub(r"``(\w+)\.md``", link, line) for line in lines]
    if api_pages.is_estimator(what, name):
        lines[:] = api_pages.arrange(name, lines)


def refuse_anything(app, what, name, obj, options, signature, annotation):
    """Stop the build where an estimator's page would say that it takes any arguments."""
    api_pages.check_signature(what, name, obj, signature)


def complete(app, page, source):
    """Link what the tables of mechanisms name, and enter what people search for into the index."""
    source[0] = site_search.with_entries(page, calls.shown(page, mechanism_tables.linked(source[0])))


def add_planner(app, page, template, context, doctree):
    """Add the planner's code to its page, and to no other."""
    if page == "planner":
        app.add_js_file("planner.js", loading_method="defer")


def lead_back(app, page, template, context, doctree):
    """Let a page of source lead to where a class is documented, under the name that this place has for it."""
    if page.startswith("_modules/") and "body" in context:
        context["body"] = re.sub(r"generated/api/([\w.]+)\.html#([\w.]+)", anchored, context["body"])


def anchored(link):
    """Return a link whose anchor begins with the name of its page, if it means the same class."""
    page, anchor = link.groups()
    _, own, rest = anchor.partition("." + page.rpartition(".")[2])
    there = anchor == page or anchor.startswith(f"{page}.")
    return link[0] if there or not own else f"generated/api/{page}.html#{page}{rest}"


def skip_foreign(app, what, name, obj, skip, options):
    """Leave out what is inherited from scikit-learn (or Python) and documented there."""
    owner = getattr(getattr(obj, "fget", obj), "__module__", None) or "dpestim"
    return True if not owner.startswith("dpestim") else None


def setup(app):
    """Connect the functions above."""
    site_search.build_faster()
    app.connect("config-inited", generate)
    app.connect("autodoc-process-docstring", arrange, priority=900)  # (numpydoc first)
    app.connect("source-read", complete)
    app.connect("html-page-context", add_planner)
    app.connect("html-page-context", lead_back)
    app.connect("autodoc-process-signature", refuse_anything)
    app.connect("autodoc-skip-member", skip_foreign)
