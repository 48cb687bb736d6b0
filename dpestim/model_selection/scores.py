"""Rows set aside, and scores of a model on them: sums of integers, to which each row adds a bounded one."""

import math
import warnings

import numpy as np

from dpestim.inputs import label_codes, target_numbers, target_pair
from dpestim.inputs.safe_errors import attempt
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
        scores, raised = attempt(lambda: np.asarray(self._scores(model, X, y, strict), dtype=np.float64))
        if raised is not None or scores.shape != (n,):
            self._fault = self._fault or ("other things" if raised is None else raised.__name__)
            return 0
        with np.errstate(all="ignore"):
            shares = (np.clip(scores, self._low, self._high) - self._low) / (self._high - self._low)
        return int(np.floor(np.nan_to_num(shares, nan=0.0) * _STEPS).astype(np.int64).sum())

    def _scores(self, model, X, y, strict):
        return self._function(model, X, y)

    def warn_of_faults(self):
        """Tell, once for all runs and without values, that some scores were none."""
        if self._fault is not None:
            warnings.warn("scoring must return one number for each row, an array of shape (n_rows,), not "
                          f"{self._fault}; each run with another result got the lowest score", stacklevel=4)

    def mean(self, total, n):
        """Return a total as a score for each row."""
        return self._low + (self._high - self._low) * (total / _STEPS / max(n, 1))


class NamedScores(RowScores):
    """Scores of rows that scikit-learn has under the same name."""

    def _scores(self, model, X, y, strict):
        return self._function(model, X, y, strict)


def _of_probabilities(score):
    """Return a score of rows from (the probabilities of classes, one row each; the place of its class, -1 is none)."""
    def scores(model, X, y, strict):
        found = np.asarray(model.predict_proba(X), np.float64)
        codes, _ = label_codes(y, model.classes_, len(found), strict=strict, total=True)
        return np.where(codes < 0, np.nan, score(found, np.maximum(codes, 0)))

    return scores


def _of_errors(score):
    """Return a score of rows from how far off predictions of numbers are."""
    def scores(model, X, y, strict):
        found = np.asarray(model.predict(X), np.float64)
        return score(target_numbers(y, len(found), strict=strict) - found)

    return scores


def _log_likelihood(found, codes):
    with np.errstate(divide="ignore"):
        return np.log(np.take_along_axis(found, codes[:, None], axis=1)[:, 0])


def _minus_brier(found, codes):
    return -np.square(found - np.eye(found.shape[1])[codes]).sum(axis=1) / 2


#: What scikit-learn calls a score that adds up over rows: (method of the estimator, score of rows, its public range).
#: Of a log-loss that of a row is cut to that of a probability of .01, the more of which would be noise.
NAMED = {
    "neg_log_loss": ("predict_proba", _of_probabilities(_log_likelihood), (math.log(0.01), 0.0)),
    "neg_brier_score": ("predict_proba", _of_probabilities(_minus_brier), (-1.0, 0.0)),
    "neg_mean_absolute_error": ("predict", _of_errors(lambda off: -np.abs(off)), None),
    "neg_mean_squared_error": ("predict", _of_errors(lambda off: -np.square(off)), None),
}
#: Scores of scikit-learn that one row can move by much, or that are no sums over rows, and what stands for each.
_INSTEAD = {
    **dict.fromkeys(("roc_auc", "roc_auc_ovr", "roc_auc_ovo", "roc_auc_ovr_weighted", "roc_auc_ovo_weighted",
                     "average_precision", "top_k_accuracy", "d2_log_loss_score", "d2_brier_score"), "neg_log_loss"),
    **dict.fromkeys([name + more for name in ("f1", "precision", "recall", "jaccard")
                     for more in ("", "_macro", "_micro", "_weighted", "_samples")], "neg_log_loss"),
    **dict.fromkeys(("balanced_accuracy", "matthews_corrcoef"), "neg_log_loss"),
    **dict.fromkeys(("r2", "explained_variance", "neg_root_mean_squared_error", "neg_mean_squared_log_error",
                     "neg_root_mean_squared_log_error"), "neg_mean_squared_error"),
    **dict.fromkeys(("neg_median_absolute_error", "neg_max_error", "max_error", "neg_mean_absolute_percentage_error"),
                    "neg_mean_absolute_error"),
}


def scorer_of(scoring, bounds):
    """Return what scores, or raise ValueError."""
    names = ["accuracy", *NAMED]
    if isinstance(scoring, str) and scoring == "accuracy":
        if bounds is not None:
            raise ValueError('score_bounds must be None for scoring="accuracy", which counts rows')
        return Accuracy()
    if isinstance(scoring, str) and scoring in _INSTEAD:
        more = ", and declare score_bounds" if NAMED[_INSTEAD[scoring]][2] is None else ""
        raise ValueError(f'scoring="{scoring}" is not available, because one row can change it much: it is not a mean '
                         f'over rows. Take scoring="{_INSTEAD[scoring]}"{more}')
    if not callable(scoring) and not (isinstance(scoring, str) and scoring in NAMED):
        raise ValueError(f"scoring must be one of {names}, or a function of (model, X, y) that returns a number for "
                         "each row")
    if isinstance(scoring, str):
        _, function, usual = NAMED[scoring]
        return NamedScores(function, *_range(usual if bounds is None else bounds))
    return RowScores(scoring, *_range(bounds))


def _range(bounds):
    """Return the declared range of a row's score as two floats."""
    if bounds is None:
        raise ValueError("score_bounds must be declared, a pair (low, high): the public range of the score of a row")
    return target_pair(bounds, name="score_bounds")


def size_aside(n, share):
    """Return how many of n rows to set aside: at least one, where that leaves one."""
    return min(max(1, int(n * share)), n - 1) if n > 1 else 0
