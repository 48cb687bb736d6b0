"""The one base of what estimates from the reports of a transformer: integer counts of codes, and the three verbs."""

from copy import copy

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dpestim.base import PrivateEstimator
from dpestim.local._estimates import with_range
from dpestim.local._merge import check_other, check_rows
from dpestim.local._numeric import NumericTransformer
from dpestim.local._pm import PMTransformer


class Collector(PrivateEstimator):
    """Counts what a transformer reports; a sub-class makes estimates of the counts.

    State: how often each code was reported, column by column, and `n_users_`. It adds up, so that parts of the users
    can be collected anywhere and merged.
    """

    # ---------------------------------------------------------------- the three verbs

    def privatize(self, X):
        """Randomise raw rows into reports, on the user's side: the transformer's `privatize`, which charges for it."""
        return self._side().privatize(X)

    def aggregate(self, reports):
        """Add reports, as `privatize` returns them, to the counts; returns self.

        Reports carry numbers only. That they were made by the same transformer is for the caller to know; what no
        client of it could have sent is a ValueError.
        """
        side = self._side()
        width = reports.shape[1] if getattr(reports, "ndim", 0) == 2 and reports.shape[1] else 1
        columns = self._columns if self._n_users else side._columns_of(width)
        reports = columns.check_reports(reports)
        self._add(side, columns, columns.count(reports, side.n_jobs), len(reports))
        # whether clients used seeds is not known here, unless this very object is the seeded client
        self._seeded = True if self._seeded or side.random_state is not None else None
        return self

    def merge(self, other, *, users="disjoint"):
        """Add the counts of another aggregate of the same law; returns self.

        Parameters
        ----------
        other : estimator of the same type
        users : {"disjoint", "same"}, default="disjoint"
            Whether nobody, or perhaps everybody, is counted in both: then the guarantees of the two add up. `n_users_`
            is the number of reports either way.

        Raises ValueError where the laws or the bounds differ, where `other` is this object, and where both saw rows of
        one seed at the same positions, because their noise would be the same (this cannot be seen where the reports
        came in by `aggregate`).
        """
        check_other(self, other, users)
        side = self._side(other)
        columns = self._columns if self._n_users else side._columns_of(len(other._columns))
        if not columns.same_law(other._columns):
            raise ValueError("other must have the same epsilon, the same bounds and the same law in every column")
        mine, names = getattr(self, "feature_names_in_", None), getattr(other, "feature_names_in_", None)
        check_rows(self, other, mine, names)
        seeded = (self._seeded, other._seeded) if self._n_users else (other._seeded,)
        if mine is None and names is not None:
            side._payer.n_features_in_, side._payer.feature_names_in_ = len(columns), names
        times = (self._reports_each * bool(self._n_users), other._reports_each)
        self._reports_each = sum(times) if users == "same" else max(times)
        self._add(side, columns, other._counts, other._n_users)
        self._seeds = [*self._seeds, *other._seeds]
        self._seeded = True if True in seeded else None if None in seeded else False
        return self

    def fit(self, X, y=None):
        """Randomise the rows of X and estimate from the reports alone; forgets what was seen before."""
        return self._fit(X, restart=True)

    def partial_fit(self, X, y=None):
        """Randomise the rows of X and add their reports; rows must be new users (or each pays epsilon again)."""
        return self._fit(X, restart=not self._n_users)

    # ---------------------------------------------------------------- what was learned

    @property
    def n_users_(self):
        """Reports counted so far."""
        self._check_fitted()
        return self._n_users

    @property
    def privacy_(self):
        """What the reports of one user promise; known before any data where the transformer's domain is declared."""
        side = self._side()
        if self._n_users:
            return side._guarantee(self._columns, self._seeded, self._reports_each)
        return side.privacy_

    # ---------------------------------------------------------------- inside

    # State lives in these; the class attributes stand for "nothing seen yet".
    _columns = None
    _counts = None
    _n_users = 0
    _reports_each = 1
    _seeds = ()
    _seeded = False

    def __sklearn_is_fitted__(self):
        return self._n_users > 0

    def _check_fitted(self):
        if not self._n_users:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit, or aggregate reports, first"
            )

    @staticmethod
    def _clone(transformer):
        """Return a fresh transformer."""
        if not isinstance(transformer, NumericTransformer):
            raise ValueError("transformer must be None or a transformer of numbers such as dpestim.local.PMTransformer")
        return clone(transformer)

    def _side(self, other=None, restart=False):
        """Return a transformer with the law in use (or that of `other` where data would decide), else a fresh one.

        Ledger, seed and threads are those of the parameter as it is now. They are shared, not cloned: the copy of a
        generator would repeat its noise, and to the copy of a ledger nobody looks.
        """
        given = PMTransformer() if self.transformer is None else self.transformer
        side = self._clone(given)
        if self._n_users and not restart:
            side = copy(self.transformer_)
        elif other is not None and side._needs_data:
            side = copy(other.transformer_)
        payer, bound = side._payer, [item._to_bind() for item in (self, given, side._payer)]
        for name in ("ledger", "random_state", "n_jobs"):
            setattr(payer, name, getattr(given, name))
        bound = (next((book for book, _ in bound if book is not None), None), any(strict for _, strict in bound))
        if bound != payer._bound:
            payer._bound = bound
        return side

    def _find_ledger(self):
        """Return the ledger of the transformer, which pays: a score is recorded there."""
        return self._side()._payer._find_ledger()

    def _fit(self, X, restart):
        """Validate, charge (which the transformer does), then randomise and count; nothing changes before."""
        side = self._side(restart=True).fit(X) if restart else self._side()
        data, columns = side._prepare(X)
        side._learn_names(X)
        n, first = side._n_rows(data), 0 if restart else self._n_users
        source = side._pay(columns, n)
        counts = columns.randomize_and_count(data, source, first, side.n_jobs)
        if restart:
            self._forget()
        self._add(side, columns, counts, n)
        if source.seeded:
            self._seeds = with_range(self._seeds, source.fingerprint, first, first + n)
        self._seeded = source.seeded or self._seeded
        return self

    def _add(self, side, columns, counts, n):
        """Freeze the law and add counts."""
        counts = [a + b for a, b in zip(self._counts, counts)] if self._n_users else list(counts)
        side._freeze(columns)
        self.transformer_, self._columns = side, columns
        self._counts, self._n_users = counts, self._n_users + n
        self.n_features_in_ = len(columns)
        if hasattr(side, "feature_names_in_"):
            self.feature_names_in_ = side.feature_names_in_

    def _forget(self):
        for name in ("transformer_", "_columns", "_counts", "_n_users", "_reports_each", "_seeds", "_seeded",
                     "n_features_in_", "feature_names_in_"):
            vars(self).pop(name, None)

    def _raw(self, X):
        """Return X checked, to compare with: not private, so a ledger is told and strict mode refuses."""
        self._check_fitted()
        side = self._side()
        side._payer._refuse_in_strict("score compares with raw data")
        X = side._checked_X(X)
        self._note_score(len(X))
        return np.asarray(X, np.float64)

    def _test_data(self, n_rows, seed=0):
        """Return rows that suit the transformer."""
        return self.transformer._test_data(n_rows, seed)
