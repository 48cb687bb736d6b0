"""Packages whose names are imported when they are first asked for: who fits one estimator does not load a hundred.

Such a package has the same imports below ``if TYPE_CHECKING:``, since editors and type checkers read code and do not
run it.
"""

import importlib

#: By package, the module of each name that is imported late.
_homes = {}


def attach(package, homes):
    """Return (`__getattr__`, `__dir__`) of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : dict
        Modules of the package, with the names that each brings, in one string. (A module elsewhere is named whole.)
    """
    home_of = _homes[package] = {name: home if home.startswith("dpestim.") else f"{package}.{home}"
                                 for home, names in homes.items() for name in names.split()}

    def __getattr__(name):
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(home_of[name]), name)
        setattr(importlib.import_module(package), name, found)  # (asked once)
        return found

    def __dir__():
        return sorted({*vars(importlib.import_module(package)), *home_of})

    return __getattr__, __dir__


def home(package, name):
    """Return the module of a name of a package that is imported late; "" for any other name."""
    return _homes.get(package, {}).get(name, "")
