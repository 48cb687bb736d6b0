"""Docstrings that are filled in: of a method when its class is made, of the class when somebody reads it."""

import inspect
import textwrap

from dpestim.docstrings.glossary import GLOSSARY

#: Methods of which scikit-learn makes requests, for their parameters besides these; and methods that it wraps.
_ROUTED = frozenset(("fit", "partial_fit", "predict", "predict_proba", "predict_log_proba", "decision_function",
                     "score", "split", "transform", "inverse_transform"))
_ROWS = frozenset(("self", "X", "y"))
_WRAPPED = "transform", "fit_transform"


class Documented:
    """Base of classes whose docstrings are filled in: a line ``{name}`` stands for a text of that name.

    That is a text in `_texts` of the class or of a base of it, else one of the glossary. Four names are special:
    ``{parameters}`` is the section of parameters and attributes that all classes of a kind share (`_template` says
    which kind, else a parameter that only one kind has), and in it ``{own}`` and ``{attributes}`` are what the class
    adds, `_more_parameters` and `_more_attributes`. A name that nothing explains is a KeyError: at once for a
    method, and when it is read for a class.
    """

    _texts = {}

    def __init_subclass__(cls, **kwargs):
        """Fill in the docstrings of the class's own methods, and that of the class late. (-OO leaves none.)

        scikit-learn reads the signatures of all methods of a class, and makes `set_fit_request` and others of these: it
        need not where those of one of its bases are those of the class.
        """
        if kwargs or _asks_more(cls):
            super().__init_subclass__(**kwargs)
        for item in vars(cls).values():
            item = getattr(item, "__func__", item)
            if inspect.isfunction(item) and item.__doc__:
                item.__doc__ = _filled(cls, item.__doc__)
        text = vars(cls)["__doc__"]
        if isinstance(text, str) and "{" in text:
            cls.__doc__ = _Late(text)


def _asks_more(cls):
    """Tell whether scikit-learn would set anything for a class that its longest base does not have."""
    base = max((base for base in cls.__bases__ if issubclass(base, Documented)), key=lambda base: len(base.__mro__))
    inherited = set(base.__mro__)
    for new in cls.__mro__:
        if new in inherited:
            continue
        for name, value in vars(new).items():
            if "__metadata_request__" in name or name in _WRAPPED or (name == "__init_subclass__" and new is not cls):
                return True
            if name in _ROUTED and (not _takes_rows(value) or hasattr(cls, f"set_{name}_request")):
                return True
    return False


def _takes_rows(method):
    """Tell whether this is a plain function of rows and targets alone."""
    if not inspect.isfunction(method) or hasattr(method, "__wrapped__") or hasattr(method, "__signature__"):
        return False
    code = method.__code__
    return _ROWS.issuperset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


class _Late:
    """The docstring of a class for who reads it, which no first fit does."""

    def __init__(self, text):
        self._text = text

    def __get__(self, instance, owner):
        return _filled(owner, self._text)


def _filled(cls, text):
    if "{" not in text:
        return text
    # (by lines: to compile a pattern takes longer than to fill all that a first fit imports)
    return "".join(_filled_line(cls, line) for line in text.splitlines(keepends=True))


def _filled_line(cls, line):
    start = line.find("{")
    name = line[start + 1 : -2]
    if start < 0 or line[:start].strip(" ") or not line.endswith("}\n") or not name.replace(" ", "_").isidentifier():
        return line
    return textwrap.indent(_filled(cls, _text_of(cls, name)), line[:start], lambda line: line != "\n")


def _text_of(cls, name):
    """Return what a name stands for in the docstrings of a class: lines without an indent."""
    if name in ("own", "attributes"):
        return _dedented(getattr(cls, "_more_parameters" if name == "own" else "_more_attributes", ""))
    for base in cls.__mro__:
        if name in vars(base).get("_texts", {}):
            return textwrap.dedent(vars(base)["_texts"][name])
    if name != "parameters":
        return GLOSSARY[name]
    from dpestim.docstrings.central import CENTRAL  # (only readers of a class's docstring need these)
    from dpestim.docstrings.local import LOCAL

    sections = {**CENTRAL, **LOCAL}  # by the parameter that tells for which classes each is
    known = inspect.signature(cls.__init__).parameters
    kind = getattr(cls, "_template", None) or next(kind for kind in sections if kind in known)
    strategies = ", ".join(f'"{strategy}"' for strategy in getattr(cls, "_strategies", ()))
    return sections[kind].replace("{strategies}", f"{{{strategies}}}")


def _dedented(text):
    text = textwrap.dedent(text.strip("\n").rstrip())
    return text + "\n" * bool(text)
