"""Exact numbers of a law as plain values: what a client in another language draws by, and a reader compares."""

from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

#: Attributes that say what a law is made from, or how it works here, and nothing about the drawing.
_OTHER = frozenset(("arguments", "epsilon", "slack", "notes", "promises", "report_width", "block_words", "tile_words",
                    "n_words", "n_spare", "n_counts", "field_limits", "p_star", "q_star", "p_stars", "q_stars", "bias",
                    "_frozen"))


def constants_of(law):
    """Return the integers and Fractions among the public attributes of a law, by name, and those of its parts.

    A tuple with names is a dict, a law in a law is {"name", "arguments", "constants"}; floats draw nothing and are left
    out. What is worked out only when it is asked for is left out, too: it may be there or not.
    """
    found = {}
    for name, value in vars(law).items():
        late = isinstance(getattr(type(law), name, None), cached_property)
        if not (name.startswith("_") or name in _OTHER or late) and name not in law.arguments:
            plain = plain_value(value)
            if plain is not None:
                found[name] = plain
    return found


def plain_value(value):
    """Return integers, Fractions, booleans and lists, dicts or laws of such as plain values; None for others."""
    if isinstance(value, bool | int | Fraction):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "biu":
        return value.tolist()
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if hasattr(value, "_asdict") or (is_dataclass(value) and not isinstance(value, type)):
        named = value._asdict() if hasattr(value, "_asdict") else {
            field.name: getattr(value, field.name) for field in fields(value)}
        parts = {name: plain_value(part) for name, part in named.items()}
        return {name: part for name, part in parts.items() if part is not None} or None
    if isinstance(value, tuple | list):
        parts = [plain_value(part) for part in value]
        return parts if parts and all(part is not None for part in parts) else None
    if hasattr(value, "constants") and hasattr(value, "arguments"):
        return {"name": type(value).__name__, "arguments": dict(value.arguments), "constants": value.constants()}
    return None
