"""A domain as a file: TOML or JSON, after ``domain.schema.json``, with a version."""

import datetime
import json
import tomllib
from pathlib import Path

from dpestim.inputs.kinds import Categories, Keys, Numbers, Text
from dpestim.inputs.safe_errors import attempt

#: What a file of this version says.
VERSION = 1
_KINDS = {"numbers": (Numbers, ("low", "high", "unit", "missing")),
          "categories": (Categories, ("values", "missing", "other")), "text": (Text, ("max_length", "missing")),
          "keys": (Keys, ("keys", "low", "high"))}
_DEFAULTS = {"unit": None, "missing": False, "other": None}


def load(path):
    """Return {name: column} of a file, or raise ValueError that says what is wrong with it."""
    path = Path(path)
    read = {".toml": tomllib.loads, ".json": _json}.get(path.suffix.lower())
    if read is None:
        raise ValueError("path must end in .toml or .json")
    written = path.read_bytes()
    found, error = attempt(lambda: read(written.decode("utf-8")))
    if error or not isinstance(found, dict):
        raise ValueError(f"{path.name} must be a file of {path.suffix[1:].upper()}, in UTF-8 and with no key twice: it "
                         "cannot be read as such")
    if isinstance(found.get("version"), bool) or found.get("version") != VERSION:
        raise ValueError(f"{path.name} must have version = {VERSION}, the only format that this version of dpestim "
                         "reads")
    unknown = set(found) - {"version", "columns"}
    if unknown:
        raise ValueError(f"{path.name} must have version and columns only, and has {sorted(unknown)}")
    listed = found.get("columns")
    if not isinstance(listed, list) or not listed:
        raise ValueError(f"{path.name} must have a list of columns")
    columns = {}
    for at, entry in enumerate(listed):
        name = entry.get("name", at) if isinstance(entry, dict) else at
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise ValueError(f"column {at} of {path.name} must be named by a string, or by its place")
        said = entry.get("kind") if isinstance(entry, dict) else None
        kind, parts = _KINDS.get(said if isinstance(said, str) else None, (None, ()))
        if kind is None:
            raise ValueError(f"column {name!r} must have a kind, one of {sorted(_KINDS)}")
        unknown = set(entry) - {"name", "kind", *parts}
        if unknown:
            raise ValueError(f"column {name!r} must have {', '.join(parts)} only, and has {sorted(unknown)}")
        if name in columns:
            raise ValueError(f"column {name!r} must be declared once")
        try:
            columns[name] = kind(**{part: _from_json(entry[part]) for part in parts if part in entry})
        except (TypeError, ValueError) as error:
            raise ValueError(f"column {name!r}: {error}") from None
    return columns


def _json(text):
    """Return what JSON says, or raise ValueError for a key that is there twice, of which readers differ."""
    def distinct(pairs):
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("keys must be distinct")
        return found

    return json.loads(text, object_pairs_hook=distinct)


def save(columns, path):
    """Write {name: column} to a file whose name ends in ``.toml`` or ``.json``."""
    path = Path(path)
    entries = [{"name": name, "kind": column.kind, **{
        part: list(value) if isinstance(value, tuple) else value for part in _KINDS[column.kind][1]
        if (value := getattr(column, part)) != _DEFAULTS.get(part, ...)}} for name, column in columns.items()]
    if path.suffix.lower() == ".json":
        text = json.dumps({"version": VERSION, "columns": _to_json(entries)}, indent=2, ensure_ascii=False) + "\n"
    elif path.suffix.lower() == ".toml":
        lines = [f"version = {VERSION}\n"]
        for entry in entries:
            lines += ["\n[[columns]]\n", *(f"{part} = {_toml(value)}\n" for part, value in entry.items())]
        text = "".join(lines)
    else:
        raise ValueError("path must end in .toml or .json")
    path.write_text(text, encoding="utf-8")


def _toml(value):
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):  # (JSON's escapes are TOML's, but for one character)
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, datetime.date):
        return value.isoformat()
    return repr(value)


def _to_json(value):
    if isinstance(value, list):
        return list(map(_to_json, value))
    if isinstance(value, dict):
        return {key: _to_json(part) for key, part in value.items()}
    return {"date": value.isoformat()} if isinstance(value, datetime.date) else value


def _from_json(value):
    if isinstance(value, list):
        return list(map(_from_json, value))
    if isinstance(value, dict) and set(value) == {"date"}:
        kind = datetime.datetime if "T" in value["date"] else datetime.date
        return kind.fromisoformat(value["date"])
    return value
