"""What all statistics share: rows become a summary, summaries merge, and a release is charged once."""

import warnings
from dataclasses import replace
from fractions import Fraction
from numbers import Integral, Real

import numpy as np

from dpestim.central.base import CentralMechanism, checked_delta
from dpestim.privacy import Neighbours
from dpestim.privacy.exact import canonical_amount, canonical_epsilon
from dpestim.rng import WordSource, check_random_state
from dpestim.statistics.private_bounds import find_bounds, without
from dpestim.statistics.result import Result
from dpestim.statistics.summary import Summary, grids_of, kept_rows, named, read_rows

#: Parameters of most statistics, for their docstrings.
DELTA = """\
    delta : float, default=None
        What may be added to the probability of any event. Where it is declared, noise is Gaussian if that is less;
        it is charged in any case.
"""
USERS = """\
    max_rows_per_user : int, default=None
        A record is a user, of whom so many rows count; `users` then says whose each row is, and neighbours must be
        "add_remove". None: a record is a row.
    row_choice : {"first", "sample"}, default="first"
        Which rows of a user count.
"""
SHARE = """\
    bounds_share : float, default=0.1
        The part of epsilon that finds private bounds.
"""

#: The parts of a random source for releases after the first.
_AGAIN = 1 << 41


class DPStatistic(CentralMechanism):
    """Base of all statistics: ``summarize`` rows, in batches, ``merge`` what others summarised, ``release``.

    A sub-class brings `_sums` (rows to exact sums), and `_plan`, which checks everything that can fail and returns a
    function of a random source that draws and returns (value, standard error, ends of intervals).
    """

    _about = "the statistic of the rows as they were read"
    #: Whether columns are numbers between bounds, which may be found privately.
    _bounded = True
    bounds, bounds_share, delta = None, 0.1, None  # (of those that have no such parameters)
    #: Among how many releases a record may be shared (those of `group_by`).
    _parts = 1
    _more_parameters = """
    bounds : (low, high) or "private", default=None
        Public range of the values, numbers or one for each column; they must be declared. Values outside are clipped.
        "private" finds powers of two around most of the rows, with `bounds_share` of epsilon; then `fit` is the verb.
        Rows in a cell with few others are outside, and clipped; where all are, the value is NaN.
""" + DELTA + USERS + SHARE + "    "
    _more_attributes = """
    result_ : Result
        After `fit`: value, intervals, and what they cost.
    value_ : number or ndarray
        That of the result.
    bounds_ : (ndarray, ndarray) of shape (n_columns,)
        With private bounds: what was found.
    summary_ : Summary
        After `summarize`: exact sums, as secret as the rows; `fit` keeps none.
    """

    def __init__(self, epsilon=1.0, *, bounds=None, delta=None, neighbours="substitution", max_rows_per_user=None,
                 row_choice="first", bounds_share=0.1, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.neighbours = neighbours
        self.max_rows_per_user = max_rows_per_user
        self.row_choice = row_choice
        self.bounds_share = bounds_share
        self.ledger = ledger
        self.random_state = random_state

    # ---------------------------------------------------------------- verbs

    def summarize(self, X, users=None):
        """Add rows to the exact, secret summary; nothing is released or charged.

        Parameters
        ----------
        X : array-like, Series or data frame of shape (n_rows,) or (n_rows, n_columns)
        users : array-like of shape (n_rows,), default=None
            Whose row each is; needs `max_rows_per_user`, and all rows of a user in one call.

        Returns
        -------
        self
        """
        self._check()
        if isinstance(self.bounds, str):
            raise ValueError('bounds="private" needs all rows at once: use fit')
        summary = self._summary_of(*self._read(X, users))
        before = getattr(self, "summary_", None)
        if before is not None and users is not None:
            raise ValueError("users must come in one call, as nobody could count their rows otherwise; others merge")
        self.summary_ = summary if before is None else before + summary
        return self

    def merge(self, other, users=None):
        """Add what another one has summarised; the rows, and with `max_rows_per_user` the users, must be others.

        Parameters
        ----------
        other : estimator of the same class with the same parameters
        users : {"disjoint"}, default=None
            Your word that no user has rows in both; needed with `max_rows_per_user`.

        Returns
        -------
        self
        """
        if type(other) is not type(self) or not hasattr(other, "summary_"):
            raise ValueError(f"merge needs another {type(self).__name__} that has summarised rows")
        if other is self or getattr(self, "summary_", None) is other.summary_:
            raise ValueError("merge needs another one: with itself every row would count twice")
        if self.max_rows_per_user is not None and users != "disjoint":
            raise ValueError('merge with max_rows_per_user needs users="disjoint": your word that nobody is in both')
        mine = getattr(self, "summary_", None)
        self._check()
        self._refuse_others(other.summary_, "merge needs a summary of the same statistic, with the same parameters")
        self.summary_ = other.summary_ if mine is None else mine + other.summary_
        return self

    def release(self):
        """Return the noisy statistic of all rows summarised so far; each call charges epsilon.

        Returns
        -------
        Result
        """
        self._check()
        if not hasattr(self, "summary_"):
            raise ValueError("nothing was summarised: call summarize first, or fit")
        self._refuse_others(self.summary_, "release needs the parameters with which rows were summarised: these have "
                                           "changed since; take a new estimator")
        plan = self._plan(self.summary_, self._shares()[1])
        self._pay()
        source, before = WordSource(self.random_state), getattr(self, "_n_released", 0)
        self._n_released = before + 1
        # (releases of one seed must not share their noise: what is between them would be exact)
        return self._result(plan(source.part(_AGAIN + before) if before else source))

    def fit(self, X, y=None, users=None):
        """Summarise rows, release, and keep what was released; the summary is dropped.

        Parameters
        ----------
        X, users : as for `summarize`
        y : ignored

        Returns
        -------
        self
            With `result_` and `value_`.
        """
        self._check()
        rows, one = self._read(X, users)
        if isinstance(self.bounds, str):
            share, epsilon = self._shares()
            find = find_bounds(rows, share, self._relation() is Neighbours.SUBSTITUTION, self._rows())
            self._plan(self._summary_of(rows, one, grids_of((-1.0, 1.0), rows.shape[1])), epsilon)  # (may fail)
            self._pay()
            source = WordSource(self.random_state)
            self.bounds_ = find(source.part(1))
            unknown = np.isnan(self.bounds_[0])  # (as private as the bounds)
            low, high = (np.where(unknown, side, end) for side, end in zip((-1.0, 1.0), self.bounds_))
            plan = self._plan(self._summary_of(rows, one, grids_of((low, high), rows.shape[1])), epsilon)
            drawn = plan(source.part(0))
            if unknown.any():
                drawn = without(drawn, self._touched(unknown, np.shape(drawn[0])))
                if not self._is_strict():
                    warnings.warn("no private bounds were found, as too few rows are alike for the epsilon: what "
                                  "depends on them is NaN", UserWarning, stacklevel=2)
            found = ", ".join(f"{a:g} to {b:g}" for a, b in np.transpose(self.bounds_))
            self.result_ = replace(self._result(drawn), about=f"{self._about}; the bounds that were found: {found}")
        else:
            plan = self._plan(self._summary_of(rows, one), self._shares()[1])
            self._pay()
            self.result_ = self._result(plan(WordSource(self.random_state)))
        self.value_ = self.result_.value
        return self

    def __sklearn_is_fitted__(self):
        return hasattr(self, "result_")

    # ---------------------------------------------------------------- what a sub-class brings

    def _sums(self, rows, grids):
        """Return the exact sums of a table."""
        raise TypeError(f"{type(self).__name__} does not say what it sums")

    def _plan(self, summary, epsilon):
        """Return a function of a source that returns (value, standard error, ends), and keys of a table."""
        raise TypeError(f"{type(self).__name__} does not say how it is released")

    # ---------------------------------------------------------------- inside

    def _identity(self, n_columns, one):
        """Return what was summed, and how: all that another summary must share, from what parameters mean."""
        grids = grids_of(self.bounds, n_columns) if self._bounded else ()
        most = None if self.max_rows_per_user is None else self._rows()
        return (type(self).__name__, self.neighbours, most, self.row_choice, self._cells(n_columns),
                n_columns, one, tuple(grids))

    def _cells(self, n_columns):
        """Return what else rows were counted by, as something that compares exactly."""
        return ()

    def _touched(self, columns, shape):
        """Return which numbers of a value depend on these columns."""
        return np.broadcast_to(columns, shape) if shape else columns[0]

    def _refuse_others(self, summary, message):
        *_, n_columns, one, _ = summary.identity
        if isinstance(self.bounds, str) or summary.identity != self._identity(n_columns, one):
            raise ValueError(message)

    def _check(self):
        self._budget()
        check_random_state(self.random_state)
        self._rows()
        if self._bounded and isinstance(self.bounds, str):
            self._shares()
        elif self._bounded:
            grids_of(self.bounds)

    def _budget(self):
        self._relation()
        return canonical_epsilon(self.epsilon), Fraction(0) if self.delta is None else checked_delta(self.delta), None

    def _rows(self):
        """Return how many rows a user may have."""
        most = self.max_rows_per_user
        if not isinstance(self.row_choice, str) or self.row_choice not in ("first", "sample"):
            raise ValueError('row_choice must be "first" or "sample"')
        if most is None:
            return 1
        if isinstance(most, bool) or not isinstance(most, Integral) or not 1 <= most <= 1 << 20:
            raise ValueError("max_rows_per_user must be None or an int from 1 to 2^20")
        if self._relation() is not Neighbours.ADD_REMOVE:
            raise ValueError('max_rows_per_user needs neighbours="add_remove": another user may have another number '
                             "of rows")
        return int(most)

    def _shares(self):
        """Return epsilon for the bounds, and for the statistic."""
        epsilon = self._budget()[0]
        if not isinstance(self.bounds, str):
            return Fraction(0), epsilon
        if self.bounds != "private":
            raise ValueError('bounds must be a pair (low, high) of numbers, or "private"')
        share = canonical_amount(self.bounds_share, "bounds_share") if (
            isinstance(self.bounds_share, Real) and not isinstance(self.bounds_share, bool)) else 0
        if not 0 < share < 1:
            raise ValueError("bounds_share must be a number between 0 and 1")
        return epsilon * share, epsilon * (1 - share)

    def _read(self, X, users):
        """Return the rows that count, and whether they are one column."""
        rows, one = read_rows(X, self._is_strict())
        return self._kept(rows, users, len(rows)), one

    def _kept(self, rows, users, n_rows):
        if (users is None) != (self.max_rows_per_user is None):
            raise ValueError("users and max_rows_per_user need each other")
        if users is None:
            return rows
        users = named(users, n_rows, "users", self._is_strict())
        return rows[kept_rows(users, n_rows, self._rows(), self.row_choice, self.random_state)]

    def _summary_of(self, rows, one, grids=None):
        if grids is None:
            identity = self._identity(rows.shape[1], one)
        else:  # (bounds that were found: nothing is merged with it)
            identity = (type(self).__name__, rows.shape[1], one, tuple(grids))
        return Summary(identity, len(rows), self._sums(rows, identity[-1]))

    def _result(self, drawn):
        value, error, ends, *keys = drawn
        return Result(value, error, self.privacy_, self._about, keys[0] if keys else (), ends)

    def _notes(self):
        """Return what the guarantee is about."""
        if self.max_rows_per_user is not None:
            return (f"A record is a user, of whom at most {self.max_rows_per_user} rows count.",)
        return ()

    def _test_data(self, n_rows, seed=0):
        """Return rows that go with any bounds."""
        return np.random.default_rng(seed).normal(size=n_rows), None
