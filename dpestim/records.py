"""Classes whose instances are their fields and never change: dataclasses that cost little to define.

``dataclass(frozen=True)`` compiles six methods for each class, and some dozens of such classes are defined before the
first estimator is fitted. Here `__init__` alone is compiled; the other methods are the same functions for all classes.
"""

from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass
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
    with _lock:
        _say(above, frozen=False)  # (`dataclass` refuses to mix frozen classes with others, and must compile no method)
        try:
            cls = dataclass(repr=False, eq=False)(cls)
        finally:
            _say(above, frozen=True)
    _say([cls.__dataclass_params__], frozen=True)
    names = [field.name for field in fields(cls) if field.compare]
    cls._key_of = attrgetter(*names, names[0]) if names else staticmethod(type)  # (of one name it would be no tuple)
    for method in (_REPR, *_FROZEN, *(_EQUAL if eq else ())):
        if method.__name__ not in own:
            setattr(cls, method.__name__, method)
    return cls


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


_REPR, _FROZEN, _EQUAL = __repr__, (__setattr__, __delattr__), (__eq__, __hash__)
