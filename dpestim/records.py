"""Classes whose instances are their fields and never change: dataclasses that cost little to define.

``dataclass(frozen=True)`` compiles six methods for each class, and some dozens of such classes are defined before the
first estimator is fitted. Here `__init__` alone is compiled, when it is first asked for; the other methods are the same
functions for all classes.
"""

from dataclasses import MISSING, FrozenInstanceError, dataclass, fields, is_dataclass
from operator import attrgetter
from reprlib import recursive_repr
from threading import Lock
from typing import dataclass_transform

_lock = Lock()


@dataclass_transform(frozen_default=True)
def record(cls=None, *, eq=True):
    """Return a class as a dataclass that is frozen; as a decorator with arguments, too.

    Parameters
    ----------
    cls : class
        Its annotations are the fields. Methods that it has itself are kept.
    eq : bool, default=True
        Whether instances of equal fields are equal, and have one hash. False: each is equal to itself alone.
    """
    if cls is None:
        return lambda cls: record(cls, eq=eq)
    own = {name for name, value in vars(cls).items() if value is not None}  # (`__eq__` alone makes `__hash__` None)
    above = [base.__dataclass_params__ for base in cls.__mro__[1:] if is_dataclass(base)]
    if "__init__" not in own:
        cls.__init__ = _Init(cls)
    with _lock:
        _say(above, frozen=False)  # (`dataclass` refuses to mix frozen classes with others, and must compile no method)
        try:
            cls = dataclass(init=False, repr=False, eq=False)(cls)
        finally:
            _say(above, frozen=True)
    _say([cls.__dataclass_params__], frozen=True)
    names = [field.name for field in fields(cls) if field.compare]
    cls._key_of = attrgetter(*names, names[0]) if names else staticmethod(type)  # (of one name it would be no tuple)
    for method in (_REPR, *_FROZEN, *(_EQUAL if eq else ())):
        if method.__name__ not in own:
            setattr(cls, method.__name__, method)
    return cls


class _Init:
    """Stands for the `__init__` of a class, until somebody asks for it."""

    def __init__(self, kind):
        self._kind = kind

    def __get__(self, instance, owner=None):
        """Return the method, which the class has from now on (two threads may both make it: the same one)."""
        self._kind.__init__ = made = _init_of(self._kind)
        return made.__get__(instance, owner)


def _init_of(cls):
    """Return a function that sets each field, and then calls `__post_init__` where there is one.

    It writes where `__setattr__`, which refuses all but this, would write.
    """
    known, arguments, lines = {}, ["self"], ["_fields = self.__dict__"]
    for name, default, maker in [(f.name, f.default, f.default_factory) for f in fields(cls) if f.init]:
        if maker is not MISSING:
            known |= {f"_default_{name}": _MADE, f"_make_{name}": maker}
            arguments.append(f"{name}=_default_{name}")
            lines.append(f"_fields[{name!r}] = _make_{name}() if {name} is _default_{name} else {name}")
            continue
        known[f"_default_{name}"] = default
        arguments.append(name if default is MISSING else f"{name}=_default_{name}")
        lines.append(f"_fields[{name!r}] = {name}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(arguments)}):\n " + "\n ".join(lines), known)
    made = known["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    made.__annotations__ = {**{field.name: field.type for field in fields(cls) if field.init}, "return": None}
    return made


def _say(kinds, frozen):
    for kind in kinds:
        kind.frozen = frozen


@recursive_repr()
def __repr__(self):
    shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{type(self).__qualname__}({shown})"


def __setattr__(self, name, value):
    if name in self.__dict__ or name not in type(self).__dataclass_fields__:  # (`__init__` sets each field once)
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    self.__dict__[name] = value


def __delattr__(self, name):
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def __eq__(self, other):
    return self._key_of(self) == self._key_of(other) if other.__class__ is self.__class__ else NotImplemented


def __hash__(self):
    return hash(self._key_of(self))


class _Made:
    def __repr__(self):
        return "<factory>"


#: The default of a field that a function makes.
_MADE = _Made()
_REPR, _FROZEN, _EQUAL = __repr__, (__setattr__, __delattr__), (__eq__, __hash__)
