"""Calls that pages for people from other packages name: which they are, and whether a package has them.

It needs nothing but Python, so that it can be run in the environment of another package:
``python calls.py '["diffprivlib.tools.mean(array, epsilon)"]'`` prints {call: "" or what is wrong}.
"""

import importlib
import inspect
import json
import re
import sys

_CALL = re.compile(r"([A-Za-z_]\w*(?:\.\w+)+)(?:\(([^()]*)\))?")

_OURS = re.compile(r"`dpestim\.([\w.]+)(\([^`]*\))?`")


def calls_of(text, roots):
    """Return the calls in the tables of a page (code in backticks) whose first name is one of `roots`, in order."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    found = [code for line in rows for code in re.findall(r"`([^`]+)`", line)]
    return [*dict.fromkeys(code for code in found if _CALL.fullmatch(code) and code.split(".")[0] in roots)]


def shown(page, text):
    """Return a page as the site shows it: long names in tables are wrapped, calls of dpestim link to their pages."""
    if page != "errata" and not page.startswith("guide/from_"):
        return text
    text = re.sub(r"\n\n(?=\|)", "\n\n```{rst-class} long-names\n```\n\n", text)
    return re.sub(r"^\|.*", lambda row: _OURS.sub(r"{py:obj}`\1\2 <dpestim.\1>`", row[0]), text, flags=re.MULTILINE)


def problem(call):
    """Return what is wrong with a call: a name that does not exist, a parameter that it does not take; or ""."""
    path, given = _CALL.fullmatch(call).groups()
    first, *rest = path.split(".")
    try:
        item = importlib.import_module(first)
    except ImportError:
        return f"{first} cannot be imported"
    for k, name in enumerate(rest):
        if not hasattr(item, name):
            try:
                importlib.import_module(".".join([first, *rest[:k + 1]]))
            except ImportError:
                return f"{path} does not exist"
        item = getattr(item, name)
    names = [name.split("=")[0].strip() for name in (given or "").split(",") if name.strip()]
    known = inspect.signature(item).parameters if names else {}
    open_ended = any(one.kind is one.VAR_KEYWORD for one in getattr(known, "values", dict().values)())
    missing = [name for name in names if name not in known and not open_ended]
    return f"{path} has no parameter {missing[0]}" if missing else ""


if __name__ == "__main__":
    print(json.dumps({call: problem(call) for call in json.loads(sys.argv[1])}))
