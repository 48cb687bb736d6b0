"""Files, standard streams, and tables as text or as JSON."""

import json
import math
import sys
from fractions import Fraction
from pathlib import Path

from dpestim.tables import as_lines, as_text


def read_text(path):
    """Return the text of a file, or of the standard input for "-"."""
    return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")


def write_text(path, text):
    """Write a text to a file, or to the standard output for "-"."""
    if path == "-":
        sys.stdout.write(text)
    else:
        Path(path).write_text(text, encoding="utf-8")


def say(text):
    """Print a line for a person who waits, on the standard error."""
    print(text, file=sys.stderr, flush=True)


def show(table, as_json, **facts):
    """Print a table, as text or as JSON with facts beside its rows."""
    if as_json:
        names = [str(name) for name in table._columns()]
        print(json.dumps({**plain(facts), "rows": [dict(zip(names, plain(list(row)))) for row in table._records()]},
                         indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print(table)


def show_facts(facts, as_json):
    """Print named facts, a line each, or as JSON."""
    if as_json:
        print(json.dumps(plain(facts), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        width = max(map(len, facts))
        for name, value in facts.items():
            print(f"{name:<{width}}  {'' if value is None else value}")


def plain(value):
    """Return a value as JSON has it; infinite numbers are strings, because JSON has none."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part) for part in value]
    if isinstance(value, Fraction):
        value = float(value)
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)


class Facts:
    """Named columns and rows, for what no class of results has: printed as these are."""

    def __init__(self, names, rows):
        self._names, self._lines = names, rows

    def _columns(self):
        return self._names

    def _records(self):
        return self._lines

    def __str__(self):
        return "\n".join(as_lines(self._names, [tuple(map(as_text, row)) for row in self._lines], 2))
