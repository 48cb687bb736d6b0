"""Rows set aside, and scores of a model on them: sums of integers, to which each row adds a bounded one."""

import math
import warnings
from numbers import Real

import numpy as np

from dpestim.inputs import label_codes
from dpestim.inputs.quiet import attempt
from dpestim.rng import Stage

#: Steps between the declared bounds of a row's score.
_STEPS = 1 << 20


def with_rows(data):
    """Return data as a container whose rows can be taken: what only turns into an array, as an array."""
    return np.asarray(data) if hasattr(data, "__array__") and not hasattr(data, "shape") else data


def count_rows(X):
    """Return the number of rows of any container."""
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    if not hasattr(X, "__len__"):
        raise ValueError("X must be an array, a data frame or a list of rows")
    return len(X)


def take(data, at):
    """Return the rows at some positions, in the container that they came in; None stays None."""
    if data is None:
        return None
    if hasattr(data, "iloc"):
        return data.iloc[at]
    return data[at] if hasattr(data, "shape") else [data[i] for i in at.tolist()]


def split(n, n_aside, source):
    """Return (positions to train on, positions set aside), drawn from words and numbers of rows alone."""
    words = source.reader().dense(Stage.NOISE, 0, 0, 0, n)
    order = np.argsort(words, kind="stable")
    return np.sort(order[n_aside:]), np.sort(order[:n_aside])


class Accuracy:
    """How many rows are classified rightly."""

    #: what one row can add
    sensitivity = 1

    def total(self, model, X, y, strict):
        """Return how many, an int."""
        n = count_rows(X)
        if not n:
            return 0
        truth, _ = label_codes(y, model.classes_, n, strict=strict, total=True)
        found, _ = label_codes(np.asarray(model.predict(X)), model.classes_, n, strict=False, total=True)
        return int(((truth == found) & (truth >= 0)).sum())

    def mean(self, total, n):
        """Return a total as a score for each row."""
        return total / max(n, 1)

    def warn_of_faults(self):
        """Do nothing: counting cannot fail."""


class RowScores:
    """Sums of what a function says about each row, cut to declared bounds and rounded down to a grid between them."""

    sensitivity = _STEPS

    def __init__(self, function, low, high):
        self._function, self._low, self._high, self._fault = function, low, high, None

    def total(self, model, X, y, strict):
        """Return the sum in steps of the grid, an int; NaN counts as the lower bound, and so does what is no numbers.

        The total is paid by now: an exception would publish what a run did, and might show values.
        """
        n = count_rows(X)
        scores, raised = attempt(lambda: np.asarray(self._function(model, X, y), dtype=np.float64))
        if raised is not None or scores.shape != (n,):
            self._fault = self._fault or ("other things" if raised is None else raised.__name__)
            return 0
        with np.errstate(all="ignore"):
            shares = (np.clip(scores, self._low, self._high) - self._low) / (self._high - self._low)
        return int(np.floor(np.nan_to_num(shares, nan=0.0) * _STEPS).astype(np.int64).sum())

    def warn_of_faults(self):
        """Tell, once for all runs and without values, that some scores were none."""
        if self._fault is not None:
            warnings.warn("scoring must return one number for each row, an array of shape (n_rows,), not "
                          f"{self._fault}; where it did not, a run had the lowest score", stacklevel=4)

    def mean(self, total, n):
        """Return a total as a score for each row."""
        return self._low + (self._high - self._low) * (total / _STEPS / max(n, 1))


def scorer_of(scoring, bounds):
    """Return what scores, or raise ValueError."""
    if isinstance(scoring, str) and scoring == "accuracy":
        if bounds is not None:
            raise ValueError('score_bounds must be None for scoring="accuracy", which counts rows')
        return Accuracy()
    if not callable(scoring):
        raise ValueError('scoring must be "accuracy" or a function of (model, X, y) that returns a number for each row')
    wrong = "score_bounds must be a pair (low, high) of finite numbers: the public range of a row's score"
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ValueError(wrong)
    if not all(isinstance(v, Real) and not isinstance(v, bool) and math.isfinite(v) for v in bounds):
        raise ValueError(wrong)
    low, high = map(float, bounds)
    if not (low < high and math.isfinite(high - low)):
        raise ValueError(wrong)
    return RowScores(scoring, low, high)


def size_aside(n, share):
    """Return how many of n rows to set aside: at least one, where that leaves one."""
    return min(max(1, int(n * share)), n - 1) if n > 1 else 0
