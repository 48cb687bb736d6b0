"""What all statistics share: rows become a summary, summaries merge, and a release is charged once."""

import warnings
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from numbers import Integral, Real

import numpy as np

from dpestim.central.base import LEAST_EPSILON, CentralMechanism, declared_delta
from dpestim.inputs.units import units_of
from dpestim.privacy import Neighbours
from dpestim.privacy.exact import canonical_amount, canonical_epsilon
from dpestim.rng import WordSource, check_random_state
from dpestim.statistics.calibrated_noise import curve_of_either, noise_for
from dpestim.statistics.plan import Plan
from dpestim.statistics.private_bounds import find_bounds, without
from dpestim.statistics.result import Result
from dpestim.statistics.summary import grids_of, kept_rows, read_rows, users_of
from dpestim.summaries import Mergeable, Summary, names_of, schema_of, source_of_release

#: Parameters of most statistics, for their docstrings.
DELTA = """\
    delta : float, default=None
        The delta of (epsilon, delta)-differential privacy, below 1. None or 0: none. Above 0 noise is Gaussian if that
        is less; it is charged in any case.
"""
USERS = """\
    max_rows_per_user : int, default=None
        Maximum number of rows kept per user; enables user-level privacy: a record is then a user. `users` names the
        user of each row, and neighbours must be "add_remove". None: a record is a row. Every row needs a user; in
        strict mode rows without a user do not count.
    row_choice : {"first", "sample"}, default="first"
        Which rows of a user count.
"""
SHARE = """\
    bounds_fraction : float, default=0.1
        The part of epsilon that finds private bounds.
"""

_NEEDS = ('users (whose each row is) and max_rows_per_user (how many rows of each count) need each other, and '
          'neighbours="add_remove": another user may have another number of rows')


#: Types of most parameters, of which equal ones of one type mean the same.
_PLAIN = (float, int, str, bool, type(None))


@lru_cache(maxsize=256, typed=True)
def _exact_budget(epsilon, delta):
    """Return (epsilon, delta, None), exact, or raise ValueError."""
    epsilon = canonical_epsilon(epsilon)
    if epsilon < LEAST_EPSILON:
        raise ValueError("epsilon is too small: it must be at least 1e-100")
    return epsilon, declared_delta(delta), None


class DPStatistic(Mergeable, CentralMechanism):
    """Base of all statistics: ``summarize`` rows, in batches, ``merge`` what others summarised, ``release``.

    A sub-class brings `_sums` (rows to exact sums), and `_plan`, which checks everything that can fail and returns a
    `Plan`: what is drawn, by which laws, and what is made of it.
    """

    #: Which family of checks of `dpestim.testing` knows how it is used.
    _checked_as = "statistic"
    _about = "the statistic of the rows as they were read"
    #: Whether columns are numbers between bounds, which may be found privately.
    _bounded = True
    #: {column: unit}, where what declares it is no longer a parameter.
    _units = None
    #: Among how many releases a record may be shared (those of `group_by`).
    _parts = 1
    #: Which noise integers get; owners of parts have one in shares (`dpestim.distributed.owners`).
    _noise_for = staticmethod(noise_for)
    #: More notes of the guarantee: how the noise was made, where that is not here.
    _made = ()
    _more_parameters = """
    bounds : (low, high), dict, Domain or "private", default=None
        Public range of the values, numbers or one for each column; they must be declared. Values outside are clipped.
        "private" finds powers of two around most of the rows, with `bounds_fraction` of epsilon; use `fit` then. Values
        far from most rows are clipped; if no bounds are found, the value is NaN.
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
    {columns seen}
    """

    def __init__(self, epsilon=1.0, *, bounds=None, delta=None, neighbours=None, max_rows_per_user=None,
                 row_choice="first", bounds_fraction=0.1, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.neighbours = neighbours
        self.max_rows_per_user = max_rows_per_user
        self.row_choice = row_choice
        self.bounds_fraction = bounds_fraction
        self.ledger = ledger
        self.random_state = random_state

    # ---------------------------------------------------------------- verbs

    def summarize(self, X, users=None):
        """Add rows to the exact, secret summary; nothing is released or charged.

        Parameters
        ----------
        X : array-like, Series or data frame of shape (n_rows,) or (n_rows, n_columns)
        users : array-like of shape (n_rows,), default=None
            The user of each row; needs `max_rows_per_user`, and all rows of a user in one call.

        Returns
        -------
        self
        """
        self._check_mergeable()
        summary = self._settled(X)._summarized(X, users)
        if hasattr(self, "summary_") and users is not None:
            raise ValueError("with users, pass all rows of a user in one call to summarize; merge summaries of "
                             "disjoint users")
        summary.names = names_of(X, summary.n_columns)
        return self._add_summary(summary)

    def merge(self, other, users=None):
        """Add what another one has summarised; the rows, and with `max_rows_per_user` the users, must be others.

        Parameters
        ----------
        other : estimator of the same class with the same parameters
        users : {"disjoint"}, default=None
            Declares that no user has rows in both summaries; needed with `max_rows_per_user`.

        Returns
        -------
        self
        """
        if self.max_rows_per_user is not None and users != "disjoint":
            raise ValueError('merge with max_rows_per_user needs users="disjoint", by which you declare that no user '
                             "is in both summaries")
        return super().merge(other)

    def release(self):
        """Return the noisy statistic of all rows summarised so far; each call charges epsilon.

        Returns
        -------
        Result
        """
        summary = self._summarised()
        plan = self._of(summary)._plan(summary, self._shares()[1])
        self._pay(plan.curve)
        return self._result(plan(source_of_release(self)), summary.names)

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
        reader, private = self._settled(X), self._finds_bounds()
        rows, one = reader._read(X, users) if private else (None, None)
        summary = None if private else reader._summarized(X, users)
        n_columns = rows.shape[1] if private else summary.n_columns
        # names of columns are looked at before the release
        learned, names = schema_of(X, n_columns), names_of(X, n_columns)
        if private:
            find = self._plan_of_bounds(rows)
            plan = self._plan_within(rows, one, (-1.0, 1.0))  # (may fail)
            delta = self._budget()[1]
            self._pay(find.curve + (curve_of_either(self._shares()[1], delta) if delta else plan.curve))
            source = WordSource(self.random_state)
            bounds = learned["bounds_"] = find(source.part(1))
            drawn = self._plan_within(rows, one, bounds)(source.part(0))
            if np.isnan(bounds[0]).any() and not self._is_strict():
                warnings.warn("no private bounds were found, because too few rows are similar for this epsilon, and "
                              "the results of these columns are NaN: declare bounds, or take a larger "
                              "epsilon", UserWarning, stacklevel=2)
            found = ", ".join(f"{a:g} to {b:g}" for a, b in np.transpose(bounds))
            result = replace(self._result(drawn, names), about=f"{self._about}; the bounds that were found: {found}")
        else:
            plan = reader._plan(summary, self._shares()[1])
            promised = self._pay(plan.curve)
            result = self._result(plan(WordSource(self.random_state)), names, promised)
        return self._become({**learned, "result_": result, "value_": result.value, "_kept_promise": result.privacy})

    def _fit_summary(self, summary):
        plan = self._of(summary)._plan(summary, self._shares()[1])
        self._pay(plan.curve)
        self._keep(self._result(plan(WordSource(self.random_state)), summary.names), summary)

    def _keep(self, result, summary):
        """Become what `fit` makes, of a result of a summary (of which only public facts are used)."""
        learned = {"n_features_in_": summary.n_columns}
        if summary.names is not None and not summary.one:
            learned["feature_names_in_"] = np.array(summary.names, object)
        self._become({**learned, "result_": result, "value_": result.value, "_kept_promise": result.privacy})

    def __sklearn_is_fitted__(self):
        return "result_" in vars(self)

    # ---------------------------------------------------------------- what a sub-class brings

    def _sums(self, rows, grids):
        """Return the exact sums of a table."""
        raise TypeError(f"{type(self).__name__} does not say what it sums")

    def _plan(self, summary, epsilon):
        """Return the `Plan` of a release of (value, standard error, ends), and keys of a table."""
        raise TypeError(f"{type(self).__name__} does not say how it is released")

    def set_params(self, **params):
        """Set parameters, and forget what the last release promised with others.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self
        """
        vars(self).pop("_promised", None)
        return super().set_params(**params)

    # ---------------------------------------------------------------- inside

    def _prepared(self, n_rows, totals, n_columns):
        """Return the plan of the value alone of exact sums, for an estimator that pays itself.

        Everything that can fail has been checked then.
        """
        self._check()
        plan = self._plan(Summary(self._identity(n_columns, False), n_rows, totals), self._shares()[1])
        return replace(plan, finish=lambda found: plan.finish(found)[0])

    def _pay(self, curve=None):
        """Charge one release of which this is known besides (epsilon, delta), and return what it promises."""
        promised = self._guarantee_with(curve)
        if self._find_ledger() is not None:
            self._charge(promised, None)
        self._promised, self._last_relation = promised, [promised.neighbours.value]
        return promised

    def _guarantee(self):
        plain, last = super()._guarantee(), getattr(self, "_promised", None)
        return last if last is not None and vars(last) | {"curve": None} == vars(plain) else plain

    def _identity(self, n_columns, one=False):
        """Return what was summed, and how: all that another summary must share, from what parameters mean."""
        grids = grids_of(self.bounds, n_columns) if self._bounded else ()
        most = None if self.max_rows_per_user is None else self._rows()
        settings = self._relation(), most, self.row_choice, self._cells(n_columns)
        return type(self).__name__, n_columns, one, settings, tuple(grids)

    def _cells(self, n_columns):
        """Return what else rows were counted by, as something that compares exactly."""
        return ()

    def _plan_of_bounds(self, rows):
        """Return the plan of a release of bounds, where they are private."""
        return find_bounds(rows, self._shares()[0], self._replaces, self._rows())

    def _plan_within(self, rows, one, bounds):
        """Return the plan of a release with bounds that were found; NaN stands for those that were not."""
        unknown = np.isnan(np.broadcast_to(bounds[0], rows.shape[1]))  # (as private as the bounds)
        bounds = [np.where(unknown, side, end) for side, end in zip((-1.0, 1.0), bounds)]
        plan = self._plan(self._summary_of(rows, one, grids_of(bounds, rows.shape[1])), self._shares()[1])
        if not unknown.any():
            return plan

        def finish(outcomes):
            drawn = plan.finish(outcomes)
            return without(drawn, self._touched(unknown, np.shape(drawn[0])))

        return Plan(plan.parts, finish)

    def _touched(self, columns, shape):
        """Return which numbers of a value depend on these columns."""
        return np.broadcast_to(columns, shape) if shape else columns[0]

    def _check_mergeable(self):
        self._check()
        if self._finds_bounds():
            raise ValueError('bounds="private" needs all rows at once: use fit, or declare bounds')

    def _check(self):
        self._budget()
        check_random_state(self.random_state)
        self._rows()
        if self._finds_bounds():
            self._shares()
        elif self._bounded:
            grids_of(self.bounds)

    def _finds_bounds(self):
        """Tell whether bounds are to be found privately (not all statistics have any)."""
        return isinstance(getattr(self, "bounds", None), str)

    def _budget(self):
        self._relation()
        epsilon, delta = self.epsilon, getattr(self, "delta", None)
        known = type(epsilon) in _PLAIN and type(delta) in _PLAIN
        return (_exact_budget if known else _exact_budget.__wrapped__)(epsilon, delta)

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
            raise ValueError(_NEEDS)
        return int(most)

    def _shares(self):
        """Return epsilon for the bounds, and for the statistic."""
        epsilon = self._budget()[0]
        if not self._finds_bounds():
            return Fraction(0), epsilon
        if self.bounds != "private":
            raise ValueError('bounds must be a pair (low, high) of numbers, or "private"')
        share = canonical_amount(self.bounds_fraction, "bounds_fraction") if (
            isinstance(self.bounds_fraction, Real) and not isinstance(self.bounds_fraction, bool)) else 0
        if not 0 < share < 1:
            raise ValueError("bounds_fraction must be a number between 0 and 1")
        return epsilon * share, epsilon * (1 - share)

    def _read(self, X, users):
        """Return the rows that count, and whether they are one column."""
        rows, one = read_rows(X, self._is_strict())
        return self._kept(rows, users, len(rows)), one

    def _kept(self, rows, users, n_rows):
        self._refuse_half(users)
        if users is None:
            return rows
        users = users_of(users, n_rows, self._is_strict())
        return rows[kept_rows(users, n_rows, self._rows(), self.row_choice, self.random_state)]

    def _refuse_half(self, users):
        if (users is None) != (self.max_rows_per_user is None):
            raise ValueError(_NEEDS)

    def _summarized(self, X, users):
        """Return the summary of rows, which are read."""
        return self._summary_of(*self._read(X, users))

    def _summary_of(self, rows, one, grids=None):
        if grids is None:
            identity = self._identity(rows.shape[1], one)
        else:  # (bounds that were found: nothing is merged with it)
            identity = (type(self).__name__, rows.shape[1], one, (), tuple(grids))
        return Summary(identity, len(rows), self._sums(rows, identity[-1]))

    def _result(self, drawn, names=None, promised=None):
        value, error, ends, *keys = drawn
        keys, level = keys[0] if keys else (), None
        if ends is not None:
            level = float(getattr(self, "level", None) or 0.95)
        axes = self._axes(np.shape(value), keys, names)
        return Result(value, error, promised or self._guarantee(), self._about, keys, ends, axes, level,
                      self._units if self._units is not None else units_of(self, names))

    def _axes(self, shape, keys, names):
        """Return (what it is, the label of each entry) of each axis of a value."""
        titles = ("column",) if len(shape) < 2 else ("row", "column")
        return tuple((title, columns_shown(names, size)) for title, size in zip(titles, shape))

    def _notes(self):
        """Return what the guarantee is about."""
        if self.max_rows_per_user is not None:
            return f"A record is a user; at most {self.max_rows_per_user} rows of each user count.", *self._made
        return self._made

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 8.0, "bounds": (-3.0, 5.0)},
                {"epsilon": 16.0, "bounds": ([-3.0, 0.0], [5.0, 40.0]), "neighbours": "add_remove"}]

    def _test_data(self, n_rows, seed=0):
        """Return rows that go with any bounds: as many columns as bounds are declared for."""
        rows = np.random.default_rng(seed).normal(size=n_rows)
        bounds = getattr(self, "bounds", None)
        if not isinstance(bounds, tuple) or not np.ndim(bounds[0]):
            return rows, None
        low, high = map(np.asarray, bounds)
        others = np.random.default_rng(seed + 1).normal(size=(n_rows, len(low) - 1))
        return low + (np.column_stack([rows, others]) + 3) * ((high - low) / 8), None


def columns_shown(names, size):
    """Return a label for each of so many columns: its name, or its place."""
    return list(range(size)) if names is None else list(names)
