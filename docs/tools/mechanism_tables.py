"""Tables made from the registry: which estimator to take for what, and all that there are, with their proofs.

The tables stand in the pages, between two marks, so that the pages can be read where nothing is built. ``make tables``
writes them again; a test says when that is needed.
"""

import importlib
import inspect
import re
from functools import cache
from pathlib import Path

from dpestim.base import SUBPACKAGES, all_estimators
from dpestim.stability import PROVISIONAL, STABILITY

DOCS = Path(__file__).parents[1]
#: What stands around a table in a page.
MARKS = "<!-- table: written by `make tables` -->\n\n", "\n\n<!-- end of the table -->"

#: The page of the guide (`docs/guide`) for each package with estimators; those of `local` by its own packages.
PAGE_OF = {
    "local.categories": "frequencies", "local.numbers": "numbers", "local.estimates": "numbers",
    "local.domains": "large_domains", "local.attributes": "many_attributes",
    "local.keyvalue": "numbers", "local.learning": "learning", "shuffle": "shuffle", "central": "mechanisms",
    "statistics": "statistics", "linear_model": "models", "tree": "models", "ensemble": "models", "cluster": "models",
    "covariance": "models", "decomposition": "models", "naive_bayes": "models", "preprocessing": "preparing",
    "feature_selection": "preparing", "synthesis": "synthesis", "graph": "graphs", "stream": "streams",
    "recommend": "recommendations", "geo": "places",
}


def page_of(cls):
    """Return which page of the guide an estimator is for: what is relaxed has a page of its own."""
    if _is_relaxed(cls):
        return "relaxed"
    parts = cls.__module__.split(".")[1:]
    return PAGE_OF[".".join(parts[:2]) if parts[0] == "local" else parts[0]]


@cache
def mechanism_table(*, tables=True, page=None):
    """Return for each task which estimator to take, and (`tables`) all there are, in Markdown, from the registry.

    `page` is the page of the guide that it is for; None: all.
    """
    tasks = {}
    for name, cls in sorted(all_estimators(), key=lambda item: _place(*item)):
        if page is None or page_of(cls) == page:
            tasks.setdefault(task_of(cls), []).append((name, cls))
    parts = []
    for task, members in tasks.items():
        guide = [f"| {when} | `dpestim.{name}` | {why} |" for when, name, why in _guide(members)]
        if not (guide or tables):
            continue
        parts.append(f"**{task}**")
        if guide:
            parts.append("\n".join(["| if | take | because |", "|---|---|---|", *guide]))
        if tables:
            rows = [f"| estimator | what it does | {_COLUMN[_is_local(members[0][1])]} | proof |", "|---|---|---|---|"]
            for name, cls in members:
                summary = inspect.getdoc(cls).splitlines()[0].rstrip(".")
                proof = cls._proof().relative_to(DOCS.parent).as_posix()
                rows.append(f"| `dpestim.{name}` | {summary} | {_bits(cls)} | [proof](../{proof}) |")
            fold = guide and len(members) > 3  # a short list may stand open
            title = f"<details>\n<summary>All {len(members)}: what they do, and the proofs</summary>"
            parts += [title, "\n".join(rows), "</details>"] if fold else ["\n".join(rows)]
    return "\n\n".join(parts)


#: What is worth comparing: what users send, or whom the guarantee is about.
_COLUMN = {True: "bits a user, epsilon = 1", False: "protects"}
#: Whom estimators of graphs protect, by how they are checked.
_OF_GRAPHS = {"graph": "one edge", "lists": "one entry of a list", "nodes": "one node with all its edges"}
#: Whom guarantees about graphs are about, by the name of their relation.
_OF_GRAPHS = {"edge": "one edge", "list": "one entry of one user's list", "node": "one node with its edges"}
#: What is added to the task of a law that gives some inputs less protection than others.
_RELAXED = ", relaxed: less protection for values that you name"


def task_of(cls):
    """Return what an estimator is for: the `TASK` of the innermost package around it, and whether it is relaxed."""
    return around(cls, "TASK") + (_RELAXED if _is_relaxed(cls) else "")


def around(cls, name):
    """Return what the innermost package around the module of a class calls by a name."""
    parts = cls.__module__.split(".")
    for depth in range(len(parts), 0, -1):
        found = getattr(importlib.import_module(".".join(parts[:depth])), name, None)
        if found is not None:
            return found
    raise ValueError(f"no package around {cls.__module__} names its {name}")


def _guide(members):
    """Return (if, name, because) for the members of a task that the `GUIDE` of their package names, in its order."""
    names = {cls.__name__: name for name, cls in members}
    guides = dict.fromkeys(row for _, cls in members for row in around(cls, "GUIDE"))
    return [(when, names[name], why) for when, name, why in guides if name in names]


def _place(name, cls):
    """Return where a reader looks for it: who randomises before who estimates, what is relaxed after what is not."""
    return (
        SUBPACKAGES.index(name.split(".")[0]),
        not {"transformer", "estimator"}.isdisjoint(inspect.signature(cls).parameters),
        around(cls, "TASK"),
        _is_relaxed(cls),
        cls.__name__,
    )


def _is_relaxed(cls):
    return _is_local(cls) and getattr(getattr(cls, "_randomizer", None), "relaxation", None) is not None


def _is_local(cls):
    return cls.__module__.startswith("dpestim.local")


def _bits(cls):
    """Return how much a user sends, in the local model; else who is protected."""
    parameters = inspect.signature(cls).parameters
    if hasattr(cls, "_protects"):
        return cls._protects
    if "neighbours" in parameters:
        return "one record, replaced, or one more"
    if cls.__module__.startswith("dpestim.graph."):
        relation = cls(**cls._test_params()[0]).privacy_.neighbours
        return _OF_GRAPHS.get(relation.value, relation.sentence)
    if not _is_local(cls):
        return _OF_GRAPHS.get(getattr(cls, "_checked_as", None), "one record, replaced")
    if hasattr(cls, "_typical_bits"):
        return cls._typical_bits()
    if "categories" in parameters:
        d = getattr(cls, "_typical_domain", 1024)
        more = getattr(cls, "_typical_parameters", dict)()
        return f"{cls(1.0, categories=[range(d)], **more).randomizer().report_bits:,.0f} (d = {d:,})"
    if "keys" in parameters:
        more = getattr(cls, "_typical_parameters", dict)()
        return f"{cls(1.0, keys=1024, **more).randomizer().report_bits:,.0f} (1,024 keys)"
    if "bounds" in parameters:
        return f"{cls(1.0, bounds=(0.0, 1.0)).randomizer().report_bits:,.0f} a number"
    if "radius" in parameters:
        return f"{cls(1.0, center=[0.0] * 1024).randomizer().report_bits:,.0f} a row (of 1,024 numbers)"
    wrapped = next((name for name in ("transformer", "transformers", "estimator") if name in parameters), None)
    return f"as its {wrapped}"


def pages():
    """Return {path: its text with the tables of today} of all pages with a table of this module."""
    tables = {DOCS / "guide" / f"{page}.md": mechanism_table(tables=False, page=page)
              for page in sorted({*PAGE_OF.values(), "relaxed"})}
    tables[DOCS / "mechanisms.md"] = mechanism_table()
    return {path: _with_table(path.read_text(encoding="utf-8"), table) for path, table in tables.items()}


def _with_table(text, table):
    before, after = text.split(MARKS[0])[0], text.rpartition(MARKS[1])[2]
    return f"{before}{MARKS[0]}{table}{MARKS[1]}{after}"


def linked(text):
    """Return a page whose table has links to the pages and proofs of the site."""
    before, mark, rest = text.partition(MARKS[0])
    table, end, after = rest.partition(MARKS[1])
    proof = r"\[proof\]\(\.\./dpestim/(\w+)/(?:\w+/)*(\w+)\.md\)"
    table = re.sub(proof, r"{doc}`proof </generated/proofs/\1_\2>`", table)
    table = re.sub(r"`(dpestim\.\w+\.)(\w+)`", r"{py:class}`\2 <\1\2>`", table)
    return f"{before}{mark}{table}{end}{after}"


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


def stability_lines(full, package=False):
    """Return the lines that say how settled a package is, and on pages of its names that it is not."""
    part = full.split(".")[1:2]
    label = STABILITY.get(part[0]) if part else None
    if label == PROVISIONAL or (package and label):
        return [f"``dpestim.{part[0]}`` is :doc:`{label} </project/releases>`.", ""]
    return []
