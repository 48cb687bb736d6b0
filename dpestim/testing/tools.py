"""What the checks share: an error, refusals, equality of states, and what a setting must be like."""

import copy
import importlib
import importlib.util
import math
from fractions import Fraction
from functools import cached_property

import numpy as np
from sklearn.base import clone

#: Types whose values are equal where they say so.
_PLAIN = {int, str, bool, bytes, Fraction}
#: Draws without a seed that are compared with a first one.
DRAWS = 64


class MechanismError(AssertionError):
    """A mechanism does not keep a promise; the message says which one."""


def require(condition, message):
    """Raise MechanismError unless the condition holds."""
    if not condition:
        raise MechanismError(message)


def refuses(call, what, estimator=None, kinds=ValueError):
    """Require a ValueError (or another kind) that leaves the estimator as it was, and return its message."""
    before = snapshot(estimator)
    try:
        call()
    except kinds as error:
        require(same_state(before, state_of(estimator)), f"{what}: the {type(error).__name__} left a change behind")
        return str(error)
    except Exception as error:
        require(False, f"{what} must be a ValueError, got {type(error).__name__}")
    require(False, f"{what} must be a ValueError")


def snapshot(estimator):
    """Return a copy of the state of an estimator (of None: None)."""
    return copy.deepcopy(state_of(estimator))


def state_of(estimator):
    """Return the state of an estimator, no copy, to be compared at once (of None: None)."""
    return None if estimator is None else estimator.__getstate__()


def same_state(a, b, _seen=()):
    """Tell whether two states are equal, value by value: equal states may well have different pickles."""
    if type(a) is not type(b):
        return False
    if a is b:
        return True
    if type(a) in _PLAIN:  # (most of what there is, and never a circle)
        return a == b
    if (id(a), id(b)) in _seen:
        return True
    seen = (*_seen, (id(a), id(b)))
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        return a.tobytes() == b.tobytes() if a.dtype.kind != "O" else same_state(a.tolist(), b.tolist(), seen)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_state(v, b[k], seen) for k, v in a.items())
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same_state(v, w, seen) for v, w in zip(a, b))
    if isinstance(a, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    if isinstance(a, np.random.Generator):
        return same_state(a.bit_generator.state, b.bit_generator.state, seen)
    if isinstance(a, np.random.RandomState):
        return same_state(a.get_state(), b.get_state(), seen)
    if type(a).__eq__ is not object.__eq__:
        return bool(a == b)
    return same_state(_attributes(a), _attributes(b), seen)


def differs_each_time(draw, same=same_state):
    """Tell whether draws without a seed differ: whether any of many is unlike the first one.

    Two draws are equal by chance where they hold little: a few choices at a large epsilon. All `DRAWS` after the first
    are equal to it with chance p**DRAWS at most, p that of the likeliest draw: below 1e-12 for every p up to 0.64. What
    repeats its noise is caught all the same, and what does not costs two draws, nearly always.
    """
    first = draw()
    return any(not same(first, draw()) for _ in range(DRAWS))


def _attributes(item):
    """Return what a pickle of an object would keep, except what it has only worked out from the rest."""
    kept, cls = item.__getstate__(), type(item)
    if not isinstance(kept, dict):
        return kept
    return {k: v for k, v in kept.items() if not isinstance(getattr(cls, k, None), cached_property)}


class Book:
    """A ledger that only writes down, or refuses."""

    def __init__(self, refuse=False):
        self.paid, self.scores, self.refuse = [], [], refuse

    def charge(self, guarantee, *, estimator, n_rows, columns):
        """Write down a release."""
        if self.refuse:
            raise ValueError("overdrawn")
        self.paid.append((guarantee, estimator, n_rows, len(columns)))

    def record_score(self, *, estimator, n_rows):
        """Write down a score."""
        self.scores.append((estimator, n_rows))

    def __deepcopy__(self, memo):
        return self


def layouts(X):
    """Yield (name, the same rows in another memory layout or container), without another dtype."""
    read_only = X.copy()
    read_only.flags.writeable = False
    yield "list", X.tolist()
    yield "Fortran order", np.asfortranarray(X)
    yield "strided", np.repeat(X, 2, axis=0)[::2]
    yield "read-only", read_only
    columns = {f"c{j}": list(X[:, j]) for j in range(X.shape[1])}
    for library in ("pandas", "polars"):
        if importlib.util.find_spec(library):
            yield library, importlib.import_module(library).DataFrame(columns)


# ---------------------------------------------------------------------------------------------- clients and settings


def client_of(estimator):
    """Return what randomises: the transformer of what collects for one, what a personalised one wraps, or itself."""
    for name in ("estimator", "transformer"):
        inner = getattr(estimator, name, estimator)
        estimator = inner if hasattr(inner, "get_params") else estimator  # (some name a law by a string)
    return estimator


def with_params(estimator, **params):
    """Set parameters of what randomises, and return the estimator."""
    inner = getattr(estimator, "estimator", estimator)
    wrapped = inner if hasattr(inner, "get_params") else estimator
    prefix = "estimator__" * (wrapped is not estimator) + "transformer__" * hasattr(wrapped, "transformer")
    return estimator.set_params(**{prefix + name: value for name, value in params.items()})


def fresh(estimator, **params):
    """Return an unfitted clone with other parameters of what randomises, seeded unless they say otherwise."""
    seeded = getattr(estimator, "_checked_as", None) != "encoder"  # (which draws nothing)
    return with_params(clone(estimator), **{**({"random_state": 0} if seeded else {}), **params})


def raw_rows(estimator, n, seed=0):
    """Return n rows that suit the declared domain of an estimator."""
    return estimator._test_data(n, seed)[0]


def check_setting(estimator):
    """Raise ValueError where the checks have no power, or data that they make does not fit."""
    lists = estimator.categories
    if not isinstance(lists, list | tuple) or not all(isinstance(c, list | tuple | np.ndarray) for c in lists):
        raise ValueError("declare the categories of the estimator to check, a list of lists")
    for values in (list(c) for c in lists):
        kinds = {type(v) for v in values}
        if not 2 <= len(values) <= 9 or len(kinds) != 1 or not issubclass(kinds.pop(), str | int | float | np.generic):
            raise ValueError("each column to check needs 2 to 9 categories of one type: str, int, float or bool")
        if any(v != v for v in values):
            raise ValueError("the checks need categories without a missing value")
    if not 0.1 <= float(estimator.epsilon) / len(lists) <= 5:
        raise ValueError("the checks need an epsilon between 0.1 and 5 for each column")


def check_numeric_setting(estimator):
    """Raise ValueError where the checks of a transformer of numbers have no power, or would not end."""
    if estimator.bounds is None or getattr(estimator, "grid", 64) > 64:
        raise ValueError("declare the bounds of the transformer to check, and a grid of at most 64 steps")
    n = max(np.size(end) for end in estimator.bounds)
    if not 0.1 <= float(estimator.epsilon) / (n if getattr(estimator, "strategy", "split") == "split" else 1) <= 5:
        raise ValueError("the checks need an epsilon between 0.1 and 5 for each column")
