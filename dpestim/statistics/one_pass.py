"""Models that need one pass: rows become exact, secret sums that merge, and one release says all that is kept."""

from dataclasses import replace

import numpy as np

from dpestim.central.model import CentralModel
from dpestim.privacy import Neighbours
from dpestim.rng import WordSource
from dpestim.statistics.summary import Summary, source_of_release


class OnePassModel(CentralModel):
    """Base of estimators that are functions of noisy sums: `fit`, or ``summarize`` rows, ``merge``, ``release``.

    A sub-class brings `_check` (exact epsilon and delta, or ValueError), `_read` (rows as the others take them),
    `_domain` (what was declared, as something that compares), `_sums` (a list of totals that add up), and `_released`,
    which checks everything that can fail and returns a function of a random source that returns fitted attributes (one
    with the attribute `law`, where all of its noise is of one).
    """

    def fit(self, X, y=None):
        """Learn from rows; one release of epsilon.

        Parameters
        ----------
        X : dense array-like or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None
            Needed by what learns from it.

        Returns
        -------
        self
        """
        epsilon, delta = self._check()
        if self._is_strict() and self._inferred():
            raise ValueError(f"strict mode: {' and '.join(self._inferred())} would be learned from the data: declare")
        trial = self._trial()
        data, n_rows, n_columns = trial._read(X, y, True)
        draw = trial._planned(data, n_rows, n_columns, epsilon, delta)
        schema = {name: value for name, value in vars(trial).items() if name in ("n_features_in_", "feature_names_in_")}
        return self._keep(draw, epsilon, delta, n_rows, schema, WordSource(self.random_state))

    def summarize(self, X, y=None):
        """Add rows to the exact, secret summary; nothing is released or charged.

        Parameters
        ----------
        X, y : as for `fit`

        Returns
        -------
        self
            With `summary_`, as secret as the rows.
        """
        self._check_mergeable()
        trial = self._trial()  # (what was learned before is of other rows, perhaps of other columns)
        data, n_rows, n_columns = trial._read(X, y, True)
        domain = trial._domain(n_columns)
        summary = Summary(self._identity(n_columns, domain), n_rows, trial._sums(data, domain), names=names_of(trial))
        self.summary_ = all_rows(getattr(self, "summary_", None), summary, lambda s: s.identity[1])
        self._bind_here()
        return self

    def merge(self, other):
        """Add what another one has summarised; the rows must be others.

        Parameters
        ----------
        other : estimator of the same class with the same parameters

        Returns
        -------
        self
        """
        if type(other) is not type(self) or not hasattr(other, "summary_"):
            raise ValueError(f"merge needs another {type(self).__name__} that has summarised rows")
        self._check_mergeable()
        self._refuse_others(other.summary_, "merge needs a summary of the same columns, with the same parameters")
        self.summary_ = all_rows(getattr(self, "summary_", None), other.summary_, lambda s: s.identity[1])
        self._bind_here()
        return self

    def release(self):
        """Learn from all rows summarised so far, as `fit` would from all of them; each call charges epsilon.

        Returns
        -------
        self
        """
        if not hasattr(self, "summary_"):
            raise ValueError("nothing was summarised: call summarize first, or fit")
        epsilon, delta = self._check_mergeable()
        summary = self.summary_
        self._refuse_others(summary, "release needs the parameters with which rows were summarised: take a new one")
        draw = self._released(summary.n_rows, summary.totals, self._domain(summary.identity[1]), epsilon, delta)
        kept = {**schema_of(summary, summary.identity[1]), "summary_": summary}
        return self._keep(draw, epsilon, delta, summary.n_rows, kept, source_of_release(self))

    # ---------------------------------------------------------------- what a sub-class brings

    def _check(self):
        """Return (epsilon, delta) as exact numbers, 0 where nothing is learned; raise ValueError for bad parameters."""
        raise TypeError(f"{type(self).__name__} does not say what its parameters are")

    def _read(self, X, y, reset):
        """Return (data as the others take them, the number of rows, the number of columns)."""
        raise TypeError(f"{type(self).__name__} does not say how rows are read")

    def _domain(self, n_columns, data=None):
        """Return what was declared about so many columns, which compares; from the data where nothing was."""
        raise TypeError(f"{type(self).__name__} does not say what is declared")

    def _sums(self, data, domain):
        """Return a list of exact totals."""
        raise TypeError(f"{type(self).__name__} does not say what it sums")

    def _released(self, n_rows, totals, domain, epsilon, delta):
        """Return a function of a random source that returns what is learned, by name."""
        raise TypeError(f"{type(self).__name__} does not say what it learns")

    # ---------------------------------------------------------------- inside

    def _settings(self):
        """Return which sums are asked for, as something that compares."""
        return ()

    def _planned(self, data, n_rows, n_columns, epsilon, delta):
        domain = self._domain(n_columns, data)
        return self._released(n_rows, self._sums(data, domain), domain, epsilon, delta)

    def _promise(self):
        """Return what a fit will promise."""
        return self._guarantee(*self._check())

    def _check_mergeable(self):
        budget = self._check()
        if self._inferred() or isinstance(getattr(self, "bounds", None), str):
            raise ValueError("bounds, categories and classes must be declared to summarise rows: to find them needs "
                             "all rows at once, so use fit")
        return budget

    def _identity(self, n_columns, domain):
        return type(self).__name__, n_columns, self._settings(), domain

    def _refuse_others(self, summary, message):
        kind, n_columns, settings, domain = summary.identity
        if kind != type(self).__name__ or settings != self._settings() or domain != self._domain(n_columns):
            raise ValueError(message)

    def _keep(self, draw, epsilon, delta, n_rows, schema, source):
        """Pay, draw, and hold nothing but what was drawn."""
        guarantee = self._guarantee(epsilon, delta)
        if delta and guarantee.is_finite:  # (what is known of Gaussian noise: it adds up to less)
            curve = getattr(getattr(draw, "law", None), "curve", None)
            guarantee = replace(guarantee, curve=getattr(draw, "curve", curve))
        if not guarantee.is_nothing:
            # (where records come and go, how many there are is secret)
            known = n_rows if self._neighbours is Neighbours.SUBSTITUTION else None
            self._charge(guarantee, known, schema.get("feature_names_in_", ()))
        self._warn_if_inferred()
        learned = draw(source)
        new = {**learned, **schema, "privacy_": guarantee}
        vars(self).update(new)  # (nothing is gone in between, for another thread that releases)
        for name in vars(self).copy():
            if name.endswith("_") and not name.startswith("_") and name not in new:
                vars(self).pop(name, None)
        return self


def names_of(reader):
    """Return the names of the columns that an estimator has read; None: they had none."""
    names = getattr(reader, "feature_names_in_", None)
    return None if names is None else list(names)


def schema_of(summary, n_columns):
    """Return what a model that is released from a summary says of its columns, by name."""
    names = {} if summary.names is None else {"feature_names_in_": np.array(summary.names, object)}
    return {"n_features_in_": n_columns, **names}


def all_rows(before, summary, width):
    """Return the summary of the rows of both, or raise ValueError where columns differ; `before` may be None.

    `width` returns the number of columns of a summary.
    """
    if before is None:
        return summary
    if width(before) != width(summary):
        raise ValueError(f"merge needs rows of the same columns: X has {width(summary)} features, and rows that came "
                         f"before have {width(before)}")
    if (before.names is None) != (summary.names is None):
        raise ValueError("merge needs rows of the same columns: all in data frames with names of columns, or none")
    return before + summary


def range_of(rows, apart=True):
    """Return the smallest and largest value of each column: what nobody should do with private rows.

    Those of a constant column are the same, or a little apart where bounds have to be.
    """
    known = ~np.isnan(rows)
    low, high = np.min(rows, axis=0, where=known, initial=np.inf), np.max(rows, axis=0, where=known, initial=-np.inf)
    low, high = (np.clip(np.where(low <= high, end, 0.0), -1e138, 1e138) for end in (low, high))
    if not apart:
        return low, high
    width = np.maximum(np.abs(low), np.abs(high)) * 2.0**-20 + 1e-9
    return low - width * (low == high), high + width * (low == high)
