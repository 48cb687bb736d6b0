"""JSON of a survey: plain values only, one canonical form, and the id that is a hash of it.

Plain values are strings, integers below 2^53 in size, True, False, None, lists and dicts with ASCII words as keys. A
reader in another language has them exactly: there are no floats, and no integer that a double cannot hold.
"""

import hashlib
import json
import re

#: The size that integers stay below: of these a double holds every one.
LARGEST = 1 << 53
#: How deep lists and dicts may lie in each other, and how many characters a file may have.
DEEPEST, LONGEST = 60, 1 << 28
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_ ]*", re.ASCII)


def check_plain(value, where="the survey", depth=0):
    """Raise ValueError unless this is a plain value."""
    if depth > DEEPEST:
        raise ValueError(f"{where} must not be nested as deeply")
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            value = None
        if value is None:
            raise ValueError(f"{where} must be text without lone surrogates, which UTF-8 cannot write")
    elif isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str) or not _KEY.fullmatch(key):
                raise ValueError(f"{where} must have words as keys")
            if not _is_simple(part) or depth == DEEPEST:  # (names of places are made for few)
                check_plain(part, f"{where}.{key}", depth + 1)
    elif isinstance(value, list):
        for number, part in enumerate(value):
            if not _is_simple(part) or depth == DEEPEST:
                check_plain(part, f"{where}[{number}]", depth + 1)
    elif not (value is None or isinstance(value, bool)) and not (isinstance(value, int) and abs(value) < LARGEST):
        raise ValueError(f"{where} must be a string, an integer below 2^53, true, false, null, a list or an object")


def _is_simple(value):
    """Tell whether a value is plain at first sight: no list or dict, and no text that has to be looked at."""
    kind = type(value)
    if kind is str:
        return value.isascii()
    return kind is bool or value is None or (kind is int and -LARGEST < value < LARGEST)


def canonical(value):
    """Return the canonical form of a plain value: bytes of UTF-8 with sorted keys and no spaces."""
    check_plain(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def id_of(value):
    """Return the id of a survey: the first 32 hexadecimal digits of SHA-256 of the canonical form without "id"."""
    return hashlib.sha256(canonical({key: part for key, part in value.items() if key != "id"})).hexdigest()[:32]


def parsed(text, what="text"):
    """Return the plain value that JSON text says, or raise ValueError: no key twice, no floats, no special numbers."""
    if isinstance(text, bytes | bytearray):
        try:
            text = bytes(text).decode("utf-8")
        except UnicodeDecodeError:
            text = None
    if not isinstance(text, str) or len(text) > LONGEST:
        raise ValueError(f"{what} must be JSON in UTF-8, of at most {LONGEST:,} characters")
    value, wrong = None, False
    try:
        value = json.loads(text, object_pairs_hook=_distinct, parse_float=_refused, parse_constant=_refused,
                           parse_int=_small)
    except (ValueError, RecursionError):
        wrong = True
    if wrong:  # (what Python says shows the content)
        raise ValueError(f"{what} must be JSON with no key twice, and without numbers but integers below 2^53 in size: "
                         "it cannot be read as such")
    check_plain(value, what)
    return value


def _distinct(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _refused(text):
    raise ValueError


def _small(text):
    if len(text) > 17 or abs(int(text)) >= LARGEST or text == "-0":
        raise ValueError
    return int(text)


def _is_same(a, b):
    """Tell whether two values are equal at first sight."""
    return type(a) is type(b) and not isinstance(a, dict | list) and a == b


def first_difference(a, b, where=""):
    """Return where two plain values differ first, such as "columns[0].law.epsilon"; None where they are equal."""
    if type(a) is not type(b):
        return where
    if isinstance(a, dict):
        for key in sorted({*a, *b}):
            if key in a and key in b and _is_same(a[key], b[key]):
                continue
            path = f"{where}.{key}" if where else key
            found = path if key not in a or key not in b else first_difference(a[key], b[key], path)
            if found is not None:
                return found
        return None
    if isinstance(a, list):
        for number, (one, other) in enumerate(zip(a, b)):
            found = None if _is_same(one, other) else first_difference(one, other, f"{where}[{number}]")
            if found is not None:
                return found
        return None if len(a) == len(b) else where
    return None if a == b else where
