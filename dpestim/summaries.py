"""Summaries: what is kept of rows until a release, and the protocol ``summarize``, ``merge``, ``release`` around it."""

from threading import Lock

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from dpestim.docstrings import Documented
from dpestim.privacy.lineage import Lineage
from dpestim.rng import WordSource

#: Summaries are of fewer rows: an assumption about all data sets, so that the relation is one of smaller ones.
MOST_ROWS = 1 << 31
TOO_MANY_ROWS = "X must have fewer than 2^31 rows, in all that is merged (a public assumption: fit a part of them)"
#: From here on: parts of a random source for one release after the other of an estimator that keeps a summary.
_RELEASES = 1 << 41
_counting = Lock()


def refuse_too_many(n_rows):
    """Return the number of rows, or raise ValueError where sums over so many might not fit into 64 bits."""
    if n_rows >= MOST_ROWS:
        raise ValueError(TOO_MANY_ROWS)
    return n_rows


class Summary:
    """What is kept of rows: as secret as the rows. Two of one identity add up to that of all rows.

    Parameters
    ----------
    identity : tuple
        (class of the estimator, number of columns, whether it was one flat column, settings, domain): what was
        summarised, and how. Only equal ones may be merged.
    n_rows : int
    totals : list of int, ndarray of int64, or dict of int
    names : list of str, default=None
        Names of the columns, None where they have none. Those of two that are added must be the same, in the same
        order; columns with names are not added to columns without.
    target : str, default=None
        What the targets are called, where they have a name: by it a declaration by name is found.
    lineage : Lineage, default=None
        Of the summaries that were added: no copy of one is added to it, which would count rows twice.
    """

    def __init__(self, identity, n_rows, totals, lineage=None, names=None, target=None):
        self.identity, self.n_rows, self.totals = identity, refuse_too_many(n_rows), totals
        self.lineage, self.names, self.target = lineage or Lineage.new(), names, target

    @property
    def n_columns(self):
        """How many columns were summarised."""
        return self.identity[1]

    @property
    def one(self):
        """Whether the rows were one column without a second axis."""
        return self.identity[2]

    @property
    def domain(self):
        """What was declared of the columns."""
        return self.identity[-1]

    def merge(self, other):
        """Return the summary of both; each person must be in one of them only."""
        return self + other

    def __add__(self, other):
        if not isinstance(other, Summary) or other.identity[:1] != self.identity[:1]:
            raise ValueError(f"merge needs another summary of {self.identity[0]}, as summarize makes it")
        if other.identity[1:2] != self.identity[1:2]:
            raise ValueError(f"merge needs rows of the same columns: one summary has {self.n_columns} features, and "
                             f"the other {other.n_columns}")
        if other.identity != self.identity:
            raise ValueError("merge needs a summary made with the same parameters and columns")
        refuse_other_names(self.names, other.names)
        if self.lineage.meets(other.lineage):
            raise ValueError("merge needs a summary of other rows, because rows of this summary, a copy or a part "
                             "would count twice")
        return type(self)(self.identity, self.n_rows + other.n_rows, self._added(self.totals, other.totals),
                          self.lineage | other.lineage, self.names, self.target or other.target)

    @staticmethod
    def _added(mine, theirs):
        if isinstance(mine, dict):
            return {key: mine.get(key, 0) + theirs.get(key, 0) for key in {**mine, **theirs}}
        return [a + b for a, b in zip(mine, theirs)] if isinstance(mine, list) else mine + theirs

    def __repr__(self):
        return "<Summary: exact, and therefore secret>"


class RowSummary(Summary):
    """A summary of what needs the rows themselves: ``totals`` are the rows of one part after those of the other."""

    @staticmethod
    def _added(mine, theirs):
        return np.concatenate([mine, theirs])


def refuse_other_names(names, others, advice="Give all rows as data frames, or all as arrays"):
    """Raise ValueError unless columns have the same names in the same order, or none of both has names.

    The one rule for all that is added up: summaries, and reports of users.
    """
    if (names is None) != (others is None):
        raise ValueError("merge needs rows of the same columns: all in data frames with names of columns, or none. "
                         f"{advice}")
    if names is not None and list(names) != list(others):
        raise ValueError("merge needs columns with the same names, in the same order: reorder or rename those of one")


class _Reader(BaseEstimator):
    """What scikit-learn reads the names of columns into."""


def schema_of(X, n_columns):
    """Return what `fit` keeps of the columns of X, by name: how many, and their names where all are strings."""
    if not hasattr(X, "columns"):
        return {"n_features_in_": n_columns}
    reader = _Reader()
    validate_data(reader, X, reset=True, skip_check_array=True)
    return read_schema(reader)


def read_schema(reader):
    """Return what an estimator has read of the columns of X, by name."""
    return {name: value for name, value in vars(reader).items() if name in ("n_features_in_", "feature_names_in_")}


def names_of(X, n_columns):
    """Return the names of the columns of X, a list of strings (that of a series is one), or None."""
    if not hasattr(X, "columns"):
        name = getattr(X, "name", None)
        return [name] if isinstance(name, str) and name else None
    names = schema_of(X, n_columns).get("feature_names_in_")
    return None if names is None else list(names)


def source_of_release(estimator):
    """Return a random source for one more release of an estimator, before which it has been paid for.

    No two verbs of one seed share noise, in any thread: what is between their results would be exact.
    """
    with _counting:
        before = getattr(estimator, "_n_released", 0)
        estimator._n_released = before + 1
    return WordSource(estimator.random_state).part(_RELEASES + before)


class Mergeable(Documented):
    """Base of what learns from a summary: ``summarize`` rows in parts, ``merge`` what others summarised, ``release``.

    A sub-class brings `summarize` and `release`, `_check_mergeable` (ValueError where parameters need all rows at once)
    and `_identity` of a number of columns and whether X is one flat column.
    """

    merges = "summaries"

    def merge(self, other):
        """Add what another one has summarised; the rows must be others.

        Parameters
        ----------
        other : estimator of the same class with the same parameters

        Returns
        -------
        self
        """
        if type(other) is not type(self) or not isinstance(getattr(other, "summary_", None), Summary):
            raise ValueError(f"merge needs another {type(self).__name__} that has summarised rows")
        self._check_mergeable()
        self._refuse_others(other.summary_, "merge needs a summary of the same columns, with the same parameters")
        return self._add_summary(other.summary_)

    def fit_parts(self, ask, example):
        """Fit to rows in parts (`dpestim.passes`), asked once; charges after the answer, before noise is drawn.

        {fit of parts}
        """
        self._check_mergeable()
        from dpestim.passes import Blueprint, Summarize  # (only who reads rows in parts asks for them)

        self._fit_summary(ask(Summarize(Blueprint.of(self))))

    def _fit_summary(self, summary):
        """Release, and keep what `fit` keeps."""
        raise TypeError(f"{type(self).__name__} does not say how it is fitted to a summary")

    def _add_summary(self, summary):
        before = getattr(self, "summary_", None)
        self.summary_ = summary if before is None else before + summary
        self._bind_here()
        return self

    def _summarised(self):
        """Return the summary of all rows so far, or raise ValueError."""
        self._check_mergeable()
        if not hasattr(self, "summary_"):
            raise ValueError("release needs rows: call summarize first, or fit")
        self._refuse_others(self.summary_, "release needs the parameters with which rows were summarised, and these "
                                           "have changed: set them back, or summarise with a new estimator")
        return self.summary_

    def _refuse_others(self, summary, message):
        if summary.identity != self._of(summary)._identity(summary.n_columns, summary.one):
            raise ValueError(message)

    def _of(self, summary):
        """Return one whose declarations by name are those of the columns of a summary, and of its target."""
        return self._settled_to(summary.names, summary.n_columns, summary.target)

    def _check_mergeable(self):
        raise TypeError(f"{type(self).__name__} does not say what its parameters are: implement `_check_mergeable`")

    def _identity(self, n_columns, one=False):
        raise TypeError(f"{type(self).__name__} does not say what its summaries are: implement `_identity`")
