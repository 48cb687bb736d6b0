"""Models that need one pass: rows become exact, secret sums that merge, and one release says all that is kept."""

from dataclasses import replace

import numpy as np

from dpestim.central.model import CentralModel
from dpestim.inputs import name_of_target
from dpestim.summaries import Mergeable, Summary, read_schema, source_of_release


class OnePassModel(Mergeable, CentralModel):
    """Base of estimators that are functions of noisy sums: `fit`, or ``summarize`` rows, ``merge``, ``release``.

    A sub-class brings `_check` (exact epsilon and delta, or ValueError), `_read` (rows as the others take them),
    `_domain` (what was declared, as something that compares), `_sums` (a list of totals that add up), and `_released`,
    which checks everything that can fail and returns a function of a random source that returns fitted attributes (one
    with the attribute `law`, where all of its noise is of one).
    """

    _adds_up = True

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
        trial = self._declared_trial(X, y)
        data, n_rows, n_columns = trial._read(X, y, True)
        draw = trial._planned(data, n_rows, n_columns, epsilon, delta)
        return self._keep(self._promised(draw, epsilon, delta), n_rows, read_schema(trial), draw)

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
        trial = self._trial(X, y)  # (what was learned before is of other rows, perhaps of other columns)
        data, n_rows, n_columns = trial._read(X, y, True)
        identity = trial._identity(n_columns)
        names = read_schema(trial).get("feature_names_in_")
        return self._add_summary(Summary(identity, n_rows, trial._sums(data, identity[-1]),
                                         names=None if names is None else list(names), target=name_of_target(y)))

    def release(self):
        """Learn from all rows summarised so far, as `fit` would from all of them; each call charges epsilon.

        Returns
        -------
        self
        """
        summary = self._summarised()
        return self._released_of(summary, {"summary_": summary}, source_of_release)

    def _fit_summary(self, summary):
        self._released_of(summary, {})

    def _released_of(self, summary, kept, source=None):
        """Release what a summary says, and keep the columns, this, and what was learned; returns self."""
        epsilon, delta = self._check()
        reader = self._of(summary)
        draw = reader._released(summary.n_rows, summary.totals, reader._domain(summary.n_columns), epsilon, delta)
        kept = {"n_features_in_": summary.n_columns, **kept}
        if summary.names is not None:
            kept["feature_names_in_"] = np.array(summary.names, object)
        return self._keep(self._promised(draw, epsilon, delta), summary.n_rows, kept, draw, source)

    # ---------------------------------------------------------------- what a sub-class brings

    def _check(self):
        """Return (epsilon, delta) as exact numbers, 0 where nothing is learned; raise ValueError for bad parameters."""
        raise TypeError(f"{type(self).__name__} does not say what its parameters are: implement `_check`")

    def _read(self, X, y, reset):
        """Return (data as the others take them, the number of rows, the number of columns)."""
        raise TypeError(f"{type(self).__name__} does not say how rows are read: implement `_read`")

    def _domain(self, n_columns, data=None):
        """Return what was declared about so many columns, which compares; from the data where nothing was."""
        raise TypeError(f"{type(self).__name__} does not say what is declared: implement `_domain`")

    def _sums(self, data, domain):
        """Return a list of exact totals."""
        raise TypeError(f"{type(self).__name__} does not say what it sums: implement `_sums`")

    def _released(self, n_rows, totals, domain, epsilon, delta):
        """Return a function of a random source that returns what is learned, by name."""
        raise TypeError(f"{type(self).__name__} does not say what it learns: implement `_released`")

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
        self._check()
        unknown = [*self._inferred(), *("bounds" for own in [getattr(self, "bounds", None)] if isinstance(own, str))]
        if unknown:
            raise ValueError(f"{' and '.join(unknown)} must be declared to summarise rows, because they can be "
                             "inferred from all rows at once only: declare them, or use fit")

    def _identity(self, n_columns, one=False):
        return type(self).__name__, n_columns, one, self._settings(), self._domain(n_columns)

    def _promised(self, draw, epsilon, delta):
        """Return what a release by `draw` promises: what is known of Gaussian noise adds up to less."""
        guarantee = self._guarantee(epsilon, delta)
        if not (delta and guarantee.is_finite):
            return guarantee
        return replace(guarantee, curve=getattr(draw, "curve", getattr(getattr(draw, "law", None), "curve", None)))
