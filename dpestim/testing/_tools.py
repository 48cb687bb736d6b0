"""What the checks share: an error, raw rows made from the declared domain, and one column's reports."""

import numpy as np
from sklearn.base import clone

from dpestim.rng import WordSource


class MechanismError(AssertionError):
    """A mechanism does not keep a promise; the message says which one."""


def require(condition, message):
    """Raise MechanismError unless the condition holds."""
    if not condition:
        raise MechanismError(message)


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
    if not 0.1 <= float(estimator.epsilon) / max(np.size(end) for end in estimator.bounds) <= 5:
        raise ValueError("the checks need an epsilon between 0.1 and 5 for each column")


def fresh(estimator, **params):
    """Return an unfitted clone with other parameters, seeded unless they say otherwise."""
    return clone(estimator).set_params(**{"random_state": 0, **params})


def raw_rows(estimator, n, seed=0):
    """Return n rows that suit the declared domain of an estimator."""
    return estimator._test_data(n, seed)[0]


def randomizers(estimator):
    """Return the frozen randomizers of an estimator with declared categories."""
    return fresh(estimator).fit(raw_rows(estimator, 2)).randomizers_


def reports_of(randomizer, codes, seed=0, column=0, order=None):
    """Return the reports of one column's codes, block by block (in the given order), as every estimator makes them."""
    out = np.zeros((len(codes), randomizer.report_width), randomizer.report_dtype)
    size = randomizer.block_rows
    reader = WordSource(seed).reader()
    blocks = range(-(-len(codes) // size))
    for block in blocks if order is None else order(blocks):
        part = np.ascontiguousarray(codes[block * size : (block + 1) * size])
        randomizer.privatize(part, reader.words(column, block, 0, len(part)), out[block * size : (block + 1) * size])
    return out
