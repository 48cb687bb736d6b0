"""A function is tried on made-up rows before anything is charged: what goes wrong there is wrong for all data.

Made-up rows know nothing of the data: they are constants, drawn by a generator of a fixed seed. The function may fail
on them for reasons of its own (a log of what is negative), so no exception counts. What counts is a missing argument,
an attribute that a fitted estimator has not, and a wrong number of results, the same on all tables that do not fail.
"""

import inspect
import warnings
from functools import lru_cache

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from dpestim.inputs.safe_errors import attempt

#: Rows of a table, enough for most estimators, and for how many results at most all numbers of classes are tried.
_ROWS, _MOST_CLASSES = 60, 12


def made_of(function, *arguments):
    """Return what a function returns, or an estimator that was fitted."""
    return clone(function).fit(*arguments) if hasattr(function, "fit") else function(*arguments)


def rehearse(function, attribute, n_columns, with_y, n_results):
    """Raise ValueError where a function or an estimator cannot give so many results, whatever the rows."""
    _check_arguments(function, with_y)
    counts, of_classes = [], attempt(is_classifier, function)[0] if hasattr(function, "fit") else False
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for table in _tables(n_columns, with_y, n_results if of_classes else 0):
            made, error = attempt(made_of, function, *(part.copy() for part in table))
            if error:
                continue
            if hasattr(function, "fit"):
                made, error = attempt(getattr, made, attribute)
                if error and issubclass(error, AttributeError):
                    raise ValueError(f"attribute must be an attribute of the fitted {type(function).__name__}, which "
                                     f"has no {attribute!r}")
            size = None if error else _size(made)
            if size == n_results:
                return
            counts += [] if size is None else [size]
    if len(counts) > 1 and (n_results <= _MOST_CLASSES if of_classes else len(set(counts)) == 1):
        raise ValueError(f"function must return {n_results} results for each block, one for each pair of bounds (or "
                         f"one candidate); for artificial rows it returns {counts[0] or 'nothing'}")


def _size(made):
    """Return how many results there are, or None where NaN says that there are none of this table."""
    if made is None:
        return 0
    if attempt(lambda: np.isnan(np.asarray(made, np.float64)).any())[0]:
        return None
    return attempt(np.size, made)[0]


def _check_arguments(function, with_y):
    is_estimator = hasattr(function, "fit")
    signature, error = attempt(inspect.signature, function.fit if is_estimator else function)
    if not error and attempt(signature.bind, *([None] * (1 + with_y)))[1]:
        raise ValueError("y must not be given, because function takes no second argument" if with_y else
                         "y must be given, because function takes a second argument")
    tags, error = attempt(get_tags, function) if is_estimator else (None, True)
    if not error and tags.target_tags.required and not with_y:
        raise ValueError(f"y must be given: {type(function).__name__} needs a target")


@lru_cache(maxsize=16)
def _tables(n_columns, with_y, n_results):
    """Return tuples (X,) or (X, y) of different lengths: numbers around 0, in (0, 1), and counts.

    For a classifier of so many results: with two classes, and more, of which there are at most as many, or one more.
    """
    rng = np.random.default_rng(0)
    draws = rng.normal, rng.uniform, rng.standard_exponential
    tables = [draw(size=(_ROWS + j, n_columns)) for j, draw in enumerate(draws)]
    tables[2] = 1 + np.floor(4 * tables[2])
    if not with_y:
        return tuple((table,) for table in tables)
    if not n_results:
        return tuple((table, table[:, 0] + np.arange(len(table)) % 2) for table in tables)
    return tuple((tables[0], np.arange(float(_ROWS)) % m) for m in range(2, max(min(n_results, _MOST_CLASSES), 2) + 2))
