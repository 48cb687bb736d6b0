"""Docstrings that are filled in when a class is made."""

import inspect
import re
import textwrap

from dpestim.docstrings.central import CENTRAL
from dpestim.docstrings.glossary import GLOSSARY
from dpestim.docstrings.local import LOCAL

#: Sections of parameters, by the parameter that tells for which classes each is.
_SECTIONS = {**CENTRAL, **LOCAL}
_PLACE = re.compile(r"^( *)\{(\w+(?: \w+)*)\}\n", re.MULTILINE)


class Documented:
    """Base of classes whose docstrings are filled in: a line ``{name}`` stands for a text of that name.

    That is a text in `_texts` of the class or of a base of it, else one of the glossary. Four names are special:
    ``{parameters}`` is the section of parameters and attributes that all classes of a kind share (`_template` says
    which kind, else a parameter that only one kind has), and in it ``{own}`` and ``{attributes}`` are what the class
    adds, `_more_parameters` and `_more_attributes`. A name that nothing explains is a KeyError.
    """

    _texts = {}

    def __init_subclass__(cls, **kwargs):
        """Fill in the docstrings of the class and of its own methods. (They are absent under -OO.)"""
        super().__init_subclass__(**kwargs)
        for item in (cls, *vars(cls).values()):
            item = getattr(item, "__func__", item)
            if (item is cls or inspect.isfunction(item)) and item.__doc__:
                item.__doc__ = _filled(cls, item.__doc__)


def _filled(cls, text):
    def fill(place):
        found = _filled(cls, _text_of(cls, place[2]))
        return textwrap.indent(found, place[1], lambda line: line != "\n")

    return _PLACE.sub(fill, text)


def _text_of(cls, name):
    """Return what a name stands for in the docstrings of a class: lines without an indent."""
    if name in ("own", "attributes"):
        return _dedented(getattr(cls, "_more_parameters" if name == "own" else "_more_attributes", ""))
    for base in cls.__mro__:
        if name in vars(base).get("_texts", {}):
            return textwrap.dedent(vars(base)["_texts"][name])
    if name != "parameters":
        return GLOSSARY[name]
    known = inspect.signature(cls.__init__).parameters
    kind = getattr(cls, "_template", None) or next(kind for kind in _SECTIONS if kind in known)
    strategies = ", ".join(f'"{strategy}"' for strategy in getattr(cls, "_strategies", ()))
    return _SECTIONS[kind].replace("{strategies}", f"{{{strategies}}}")


def _dedented(text):
    text = textwrap.dedent(text.strip("\n").rstrip())
    return text + "\n" * bool(text)
