"""Long tables of constants: a survey has their length and their hash, and readers work them out again."""

import hashlib

from dpestim.collection.canonical import canonical

#: Numbers of a list that a survey writes down.
LONGEST_LIST = 4096


def shortened(value):
    """Return constants with {"length", "sha256"} in place of lists of more numbers than a survey writes down.

    The hash is that of the canonical form of the list.
    """
    if isinstance(value, dict):
        return {key: shortened(part) for key, part in value.items()}
    if isinstance(value, list) and _size(value) > LONGEST_LIST:
        return {"length": len(value), "sha256": hashlib.sha256(canonical(value)).hexdigest()}
    return value


def _size(value):
    return sum(map(_size, value)) if isinstance(value, list) else 1
