"""What a mechanism of your own is made from: see CONTRIBUTING.md, and `dpestim.testing.check_mechanism` to try it."""

from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.categories.relaxed import Relaxed
from dpestim.local.law import ALL, Promise, Randomizer
from dpestim.local.numbers.law import NumericRandomizer, WindowRandomizer
from dpestim.local.numbers.transformer import NumericTransformer
from dpestim.local.reports import CodeReports, FieldReports, PackedBits
from dpestim.rng import Stage

__all__ = [
    "ALL",
    "CategoricalRandomizer",
    "CodeReports",
    "FieldReports",
    "FrequencyEstimator",
    "NumericRandomizer",
    "NumericTransformer",
    "PackedBits",
    "Promise",
    "Randomizer",
    "Relaxed",
    "Stage",
    "WindowRandomizer",
    "register",
    "registered",
    "unregister",
]

#: Classes of clients that surveys may name, besides those of `dpestim.local`.
_registered = {}


def register(cls):
    """Let surveys (`dpestim.collection`) name a class of clients of your own; returns it, as a decorator does.

    Call it in the process that writes a survey and in those that read it: a survey names classes, and nothing is
    imported because a file says so.

    Parameters
    ----------
    cls : class
        A client, whose name no class of `dpestim.local` has.

    Returns
    -------
    class
    """
    import dpestim.local

    name = getattr(cls, "__name__", None)
    if not isinstance(cls, type) or not hasattr(cls, "get_params") or not hasattr(cls, "privatize"):
        raise ValueError("cls must be a class of clients, such as a sub-class of FrequencyEstimator")
    if name in dpestim.local.__all__ and getattr(dpestim.local, name) is not cls:
        raise ValueError(f"cls must have a name of its own: dpestim.local has a {name}")
    _registered[name] = cls
    return cls


def unregister(cls):
    """Let surveys no longer name a class that `register` was told.

    Parameters
    ----------
    cls : class
    """
    _registered.pop(cls.__name__, None)


def registered():
    """Return the classes that `register` was told, by name."""
    return dict(_registered)
