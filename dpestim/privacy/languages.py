"""The languages of privacy cards and surveys: texts of ``strings.toml``, plural forms and formats of numbers."""

import re
import tomllib
from functools import lru_cache
from pathlib import Path

_FILE = Path(__file__).with_name("strings.toml")


class Language:
    """Texts of one language, by their keys; numbers in them as that language writes them.

    ``language(name)`` returns it. Call it with a key and with the parts of the text; `n` is a number that the text
    counts, and chooses between its two forms.
    """

    def __init__(self, name, texts):
        self.name, self._texts = name, texts

    def __repr__(self):
        return f"Language({self.name!r})"

    def __call__(self, key, *, n=None, **parts):
        """Return a text with its parts in it."""
        if n is not None:
            key, parts = f"{key}.{'one' if n == 1 else 'other'}", {"n": self.count(n), **parts}
        return self._texts[key].format(**parts)

    def has(self, key):
        """Tell whether there is such a text in this language."""
        return key in self._texts

    def number(self, text):
        """Return a number that Python wrote, such as "2.72", as this language writes it."""
        text = text.replace(".", self._texts["format.decimal"])
        if self.has("format.power"):
            text = re.sub(r"(\d[\d,]*)e([+-]\d+)", lambda found: self._texts["format.power"].format(
                digits=found[1], power=int(found[2])), text)
        return text

    def count(self, n):
        """Return a whole number with its thousands apart."""
        return f"{n:,}".replace(",", self._texts["format.thousands"])


def languages():
    """Return the names of all languages, such as "en"."""
    return tuple(_read()["languages"])


def language(name):
    """Return a `Language` by its name, or raise ValueError that says which names there are."""
    if not isinstance(name, str) or name not in languages():
        raise ValueError(f"language must be one of {list(languages())}, got {name!r}")
    return _language(name)


@lru_cache
def _language(name):
    return Language(name, {key: forms[name] for key, forms in texts().items() if name in forms})


def texts():
    """Return a dict from each key to its texts, by language."""
    found = {}

    def walk(path, table):
        if all(isinstance(value, str) for value in table.values()):
            found[path] = table
        else:
            for key, value in table.items():
                walk(f"{path}.{key}" if path else key, value)

    walk("", {key: table for key, table in _read().items() if key != "languages"})
    return found


@lru_cache
def _read():
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
