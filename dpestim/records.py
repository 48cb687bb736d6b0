"""Classes whose instances are their fields and never change: dataclasses that cost little to define.

``dataclass(frozen=True)`` compiles six methods for each class, and some dozens of such classes are defined before the
first estimator is fitted. Here `__init__` alone is compiled, when somebody asks for it; the other methods are the same
functions for all classes, and a class becomes a dataclass when somebody asks for its fields.
"""

import os
from dataclasses import KW_ONLY, MISSING, Field, FrozenInstanceError, InitVar, dataclass, fields, is_dataclass, replace
from operator import attrgetter
from reprlib import recursive_repr
from threading import RLock
from typing import ClassVar, dataclass_transform, get_origin

#: Held while a class is settled; once more by the same thread, where a signal handler or a finalizer settles another.
_lock = RLock()


def _after_fork():
    """Make a new lock: the thread that held it is not in the child. (A class that it left half settled is settled.)"""
    global _lock
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


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
    for method in (_REPR, __replace__, *_FROZEN, *(_EQUAL if eq else ())):
        if method.__name__ not in own:
            setattr(cls, method.__name__, method)
    for name in _ASKED if "__init__" in own else ("__init__", *_ASKED):
        setattr(cls, name, _Late(cls, name))
    if any(isinstance(value, Field) for value in vars(cls).values()):  # (a class shows its defaults in their place)
        _settle(cls)
    return cls


class _Late:
    """Stands for what a record's class gets when somebody asks for it, which for most no first fit does."""

    def __init__(self, kind, name):
        self._kind, self._name = kind, name

    def __get__(self, instance, owner=None):
        """Return what the class has from now on. (Two threads may both make a method: the same one.)"""
        if self._name in _MADE:
            setattr(self._kind, self._name, _MADE[self._name](self._kind))
        else:
            _settle(self._kind)
        found = vars(self._kind)[self._name]
        return found.__get__(instance, owner) if hasattr(found, "__get__") else found


def _settle(cls):
    """Make a class a dataclass, once. (Its `__match_args__` come last, and tell that this was done.)"""
    above = [base.__dataclass_params__ for base in cls.__mro__[1:] if is_dataclass(base)]
    with _lock:
        if not isinstance(vars(cls)["__match_args__"], _Late):
            return
        cls.__doc__ = cls.__doc__ or cls.__name__  # (`dataclass` would ask for the signature)
        _say(above, frozen=False)  # (it refuses to mix frozen classes with others, and must compile no method)
        try:
            dataclass(init=False, repr=False, eq=False, match_args=False)(cls)
        finally:
            _say(above, frozen=True)
        _say([cls.__dataclass_params__], frozen=True)
        cls.__match_args__ = tuple(field.name for field in fields(cls) if field.init)


def _fields_of(cls):
    """Return ((name, default, maker, type) of each field that `__init__` takes, names of those that are compared).

    Where no class of them was made a dataclass, their annotations tell: none has a `Field`, as it would be one. What
    `dataclass` must read for itself is left to it: annotations that are text, and types that are no type of a field.
    """
    kinds = [kind for kind in reversed(cls.__mro__) if "__match_args__" in vars(kind)]
    if any(not isinstance(vars(kind)["__match_args__"], _Late) or any(map(_is_special, kind.__annotations__.values()))
           for kind in kinds):
        taken = [field for field in fields(cls) if field.init]
        return ([(field.name, field.default, field.default_factory, field.type) for field in taken],
                [field.name for field in fields(cls) if field.compare])
    found = {name: (name, getattr(kind, name, MISSING), MISSING, annotation) for kind in kinds
             for name, annotation in kind.__annotations__.items()
             if annotation is not ClassVar and get_origin(annotation) is not ClassVar}
    return list(found.values()), list(found)


def _is_special(annotation):
    return annotation in (KW_ONLY, InitVar) or isinstance(annotation, str | InitVar)


def _key_of(cls):
    """Return a function that takes of an instance what is compared and hashed."""
    _, names = _fields_of(cls)
    return attrgetter(*names, names[0]) if names else staticmethod(type)  # (of one name it is no tuple)


def _init_of(cls):
    """Return a function that sets each field, and then calls `__post_init__` where there is one.

    It writes where `__setattr__`, which refuses all but this, would write.
    """
    known, arguments, lines = {}, ["self"], ["_fields = self.__dict__"]
    found, _ = _fields_of(cls)
    for name, default, maker, _ in found:
        if maker is not MISSING:
            known |= {f"_default_{name}": _FACTORY, f"_make_{name}": maker}
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
    made.__annotations__ = {**{name: kind for name, _, _, kind in found}, "return": None}
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


def __replace__(self, /, **changes):
    return replace(self, **changes)


class _Factory:
    def __repr__(self):
        return "<factory>"


#: The default of a field that a function makes.
_FACTORY = _Factory()
#: What is made of fields.
_MADE = {"__init__": _init_of, "_key_of": _key_of}
#: Attributes that a class has late. (No others are added then, since somebody may be reading its names.)
_ASKED = "__dataclass_params__", "__dataclass_fields__", "__match_args__", "_key_of"
_REPR, _FROZEN, _EQUAL = __repr__, (__setattr__, __delattr__), (__eq__, __hash__)
