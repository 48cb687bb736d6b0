"""What mechanisms on rows of data share: reading, summaries that merge, paying, and scikit-learn's `fit`."""

import numpy as np

from dpestim.central.base import CentralMechanism
from dpestim.inputs import number_rows, refuse_infinite
from dpestim.inputs.frames import is_series
from dpestim.passes import Blueprint, Summarize
from dpestim.privacy.exact import canonical_amount
from dpestim.rng import WordSource, check_random_state
from dpestim.summaries import RowSummary, Summary, names_of, schema_of


class RowMechanism(CentralMechanism):
    """Base of what takes rows: `summarize`, `release`, and `fit`, which is both.

    A sub-class brings `_plan` (all that is public, or ValueError), `_kept` (rows as they are summarised) and `_answer`.
    """

    _template = "rows"
    #: (parts are summaries, which merge by themselves: nothing is kept between verbs)
    merges = "summaries"
    #: which family of checks of `dpestim.testing` knows how it is used
    _checked_as = "rows"
    #: whether the order of the rows is of no importance
    _is_symmetric = True
    #: whether a column may be given by itself, as a flat array, and what is released is then a number by itself
    _takes_columns = True

    def summarize(self, X, y=None):
        """Return the summary of rows: secret, merged by its method `merge`; nothing is drawn, released or charged.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns); one column also as a series, a flat array or a list
        y : ignored, but by what says that it takes it

        Returns
        -------
        Summary
        """
        is_flat, table = self._takes_columns and (is_series(X) or _is_flat(X)), X
        if is_flat:
            table = X.to_frame() if is_series(X) else [[x] for x in X] if isinstance(X, list) else X.reshape(-1, 1)
        return self._summarize(table, y, is_flat, X)

    def _summarize(self, X, y, is_flat=False, given=None):
        self._bind_here()
        strict = self._is_strict()
        rows = self._read_table(X, strict)
        n_columns = rows.shape[1]
        reader = self._settled(X)
        kind, kept = reader._kept(rows, y, reader._plan(n_columns), strict)
        return RowSummary((type(self).__name__, n_columns, is_flat, kept.shape[1:], kind), len(kept), kept,
                          names=names_of(X if given is None else given, n_columns))

    def release(self, X, y=None):
        """Return a private answer about all rows: one release, charged before any noise is drawn.

        Parameters
        ----------
        X : Summary, or what `summarize` takes
        y : ignored, but by what says that it takes it

        Returns
        -------
        The answer, as in `value_`; of a flat column a number by itself.
        """
        summary = X if isinstance(X, Summary) else self.summarize(X, y)
        if summary.identity[0] != type(self).__name__:
            raise ValueError(f"the summary must be one of {type(self).__name__}.summarize")
        plan = self._settled_to(summary.names, summary.n_columns)._plan(summary.n_columns)
        if summary.domain != self._kind(plan):
            raise ValueError("the summary must be made by a mechanism of equal parameters")
        check_random_state(self.random_state)
        seen = self._look(summary.totals, plan)
        source = WordSource(self.random_state)
        seen = self._sampled(seen, plan, source)  # as secret as the rows; it may warn, and a warning may be an error
        self._pay()
        answer = self._answer(seen, plan, source)
        if summary.one and len(answer) == 1:
            return answer[0].item() if isinstance(answer, np.ndarray) else answer[0]
        return answer

    def fit(self, X, y=None):
        """Summarise and release: `value_` is the answer, and nothing else is kept.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)
        y : ignored, but by what says that it takes it

        Returns
        -------
        self
        """
        summary = self._summarize(X, y)
        learned = schema_of(X, summary.n_columns)  # names of columns are looked at before the release
        promised, value = self._guarantee(), self.release(summary)
        return self._become({**learned, "value_": value, "_kept_promise": promised})

    def fit_parts(self, ask, example):
        """Fit to rows in parts (`dpestim.passes`), asked once; charges after the answer, before noise is drawn.

        {fit of parts}
        """
        summary = ask(Summarize(Blueprint.of(self)))
        learned = {"n_features_in_": summary.n_columns}
        if summary.names is not None and not summary.one:
            learned["feature_names_in_"] = np.array(summary.names, object)
        promised, value = self._guarantee(), self.release(summary)
        self._become({**learned, "value_": value, "_kept_promise": promised})

    def __sklearn_is_fitted__(self):
        return hasattr(self, "value_")

    # ---------------------------------------------------------------- inside

    def _plan(self, n_columns):
        """Return all that is public about a release of so many columns, or raise ValueError."""
        raise TypeError(f"{type(self).__name__} does not say what it plans: implement `_plan`")

    def _kind(self, plan):
        """Return what summaries must have in common to be merged, besides the class and the number of columns."""
        raise TypeError(f"{type(self).__name__} does not say what its summaries are: implement `_kind`")

    def _kept(self, rows, y, plan, strict):
        """Return (`_kind`, the rows as they are kept)."""
        raise TypeError(f"{type(self).__name__} does not say what it keeps: implement `_kept`")

    def _look(self, rows, plan):
        """Return what the answer needs of the rows; the last chance to raise ValueError, before anything is charged."""
        return rows

    def _sampled(self, seen, plan, source):
        """Return what noise is added to, where that is random too; it takes words of stages of its own."""
        return seen

    def _answer(self, seen, plan, source):
        """Return the answer, with noise by the words of a source."""
        raise TypeError(f"{type(self).__name__} does not say what it answers: implement `_answer`")

    def _read_table(self, X, strict):
        rows = number_rows(X, strict=strict)
        return rows if strict else self._refuse_infinite(rows)

    @staticmethod
    def _refuse_infinite(rows):
        refuse_infinite(rows, [f"column {j}" for j in range(rows.shape[1])])
        return rows

    def _notes(self):
        return ()


def _is_flat(X):
    """Tell whether a list or an array is one column by itself."""
    if isinstance(X, list):
        return bool(X) and (isinstance(X[0], str) or not hasattr(X[0], "__len__"))
    return isinstance(X, np.ndarray) and X.ndim == 1


def checked_share(value, name, *, most=1):
    """Return a number strictly between 0 and `most` as an exact fraction."""
    exact = canonical_amount(value, name)
    if not 0 < exact < most:
        raise ValueError(f"{name} must be a number above 0 and below {most}")
    return exact
