"""Planning: how many users, or how much epsilon, an error takes, and which mechanism; no data are needed for it.

A plan reads the registry, the variances of the laws and their costs (`costs.py`): a mechanism that is listed there is
planned with no line here.
"""

import math
from dataclasses import field
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from dpestim.local.estimates.options import PlanRow, setting_of
from dpestim.privacy import PrivacyGuarantee
from dpestim.privacy.exact import LARGEST_EPSILON, canonical_epsilon
from dpestim.records import record
from dpestim.tables import Table, short

#: The smallest epsilon that is looked for, and how many significant digits one is found with.
_LEAST_EPSILON, _DIGITS = 1e-6, 3
#: How many mechanisms are asked at each step of the search.
_NEAR = 3
#: More users than this are nobody's.
_MOST_USERS = 1 << 53
#: How much more error, as a share, is little where another mechanism sends less.
_LITTLE = 0.1


@record
class SurveyPlan(Table):
    """What `plan` and `plan_mean` answer; ``str(plan)`` is a table.

    Attributes
    ----------
    n_users : int
    epsilon : float
        Given or found.
    target_rmse : float or None
        What was asked for.
    probability : float
    n_categories, n_columns : int or None
        The one that the plan is about.
    rows : tuple of PlanRow
        One for each mechanism, the least error first: `mechanism` (the name of its class), `rmse`, `max_error`, `bits`,
        `client_us`, `server_s`, `memory_mb` and `parameters` (those that are not left at their defaults).
    left_out : dict of str
        Mechanisms that have no law for this setting, and why.

    Examples
    --------
    >>> from dpestim.local import plan
    >>> found = plan(n_categories=16, n_users=10_000, epsilon=1.0)
    >>> found.best.mechanism
    'SSFrequencyEstimator'
    """

    _most_lines = 1000
    _plotted = ("rmse", None, None)
    n_users: int
    epsilon: float
    target_rmse: float | None
    probability: float
    rows: tuple
    left_out: dict = field(repr=False)
    n_categories: int | None = None
    n_columns: int | None = None

    @property
    def best(self):
        """The row of the least error."""
        return self.rows[0]

    @property
    def recommendation(self):
        """Which mechanism to take, in a sentence."""
        best, what = self.rows[0], "frequencies" if self.n_columns is None else "means"
        text = (f"For {self.n_users:,} users and epsilon = {self.epsilon:g} take {_called(best)}: it has the least "
                f"root mean square error of {what}, {best.rmse:.3g}, with reports of {best.bits:,.0f} bits")
        short = min((row for row in self.rows if row.rmse <= (1 + _LITTLE) * best.rmse), key=lambda row: row.bits)
        if short.bits < best.bits / 2:
            text += (f"; or {_called(short)}, with {short.rmse:.3g} and reports of {short.bits:,.0f} "
                     f"bit{'s' * (round(short.bits) != 1)}")
        return text + "."

    def errors_at(self, epsilons):
        """Return {mechanism: root mean square errors at other budgets}, an array each; NaN where there is no law."""
        epsilons = [canonical_epsilon(epsilon) for epsilon in epsilons]
        tables = [setting_of(self.n_categories, self.n_columns)(epsilon) for epsilon in epsilons]
        return {
            name: np.array([options[name].spread.rmse(self.n_users) if name in options else np.nan
                            for options, _ in tables])
            for name in (row.mechanism for row in self.rows)
        }

    @property
    def privacy(self):
        """What reports of one user would promise; the plan itself costs nothing."""
        return PrivacyGuarantee(self.epsilon)

    def _columns(self):
        return PlanRow._fields

    def _records(self):
        return self.rows

    def _about(self):
        what = f"{self.n_categories} categories" if self.n_columns is None else f"{self.n_columns} columns of numbers"
        return (f"Nothing yet: a plan reads no data. It is about reports of {self.n_users:,} users on {what}, through "
                f"{self.best.mechanism}.")

    def _head(self):
        return (*PlanRow._fields[:-1], "") if any(row.parameters for row in self.rows) else PlanRow._fields[:-1]

    def _rows(self):
        return (list(map(short, row))[: len(self._head())] for row in self.rows)

    def _remarks(self):
        return (self.recommendation,)


def plan(*, n_users=None, n_categories=None, epsilon=None, target_rmse=None, probability=0.95):
    """Compare all mechanisms of categories before a survey is taken; leave out what is to be found.

    Give two of `n_users`, `epsilon` and `target_rmse`. Given the first two, the plan says which error each mechanism
    has; given the target, it finds the fewest users, or the least epsilon, with which one of them keeps it, and
    compares all of them there.

    The errors are those of the laws' exact variances, before any post-processing, given the users (only the mechanism
    is random), where all categories are held equally often. `rmse` hardly depends on that: the frequencies add up to
    1, and a variance is a line in them, so for most mechanisms it is the same for all data. (What the hashes of a
    sketch add does depend on it, and is least then.) `max_error` does: a very frequent value has another error.

    **Privacy.** A plan reads no data: it costs nothing.

    **Complexity.** O(n_categories) a mechanism at most, once for each epsilon; 4 to 2^20 categories took 7 to 15
    milliseconds of the processor, 20 to 50 where epsilon is found.

    Parameters
    ----------
    n_users : int, default=None
        From 1 to 2^53.
    n_categories : int
        At least 2.
    epsilon : float, default=None
        In (0, 80], the budget of the column: with w columns give each epsilon / w. Where it is found, it has three
        significant digits, rounded up, and is at least 1e-6.
    target_rmse : float, default=None
        Above 0 and below 1: the root of the mean, over all categories, of the squared error of a frequency.
    probability : float, default=0.95
        With at least this probability no category is further off than `max_error`. An error's law is taken to be
        normal, or binomial where few reports support a value. The categories' errors are taken to be independent, and
        all as large as the worst: both are on the safe side.

    Returns
    -------
    SurveyPlan
        With `rows`, `best`, `recommendation` and `to_frame`. Bits are exact; times and memory are estimates for one
        thread, made from the law's words, reports and counts with constants that were measured once, to compare
        mechanisms by: for 16 to 16,384 categories most were within a factor of three of what was measured.

    Raises
    ------
    ValueError
        For a parameter that does not fit, where not exactly one of the three is left out, and for a target that nobody
        meets.

    References
    ----------
    The variances are those of each mechanism's page; Z. Sidak, "Rectangular confidence regions for the means of
    multivariate normal distributions", JASA 62, 1967, theorem 1, for `max_error`.

    Examples
    --------
    >>> from dpestim.local import plan
    >>> found = plan(n_categories=1024, n_users=1_000_000, epsilon=1.0)
    >>> round(found.best.rmse, 5)
    0.00192
    >>> found.best.mechanism
    'SSFrequencyEstimator'
    >>> plan(n_categories=1024, epsilon=1.0, target_rmse=0.001).n_users
    3674534
    >>> plan(n_categories=1024, n_users=1_000_000, target_rmse=0.001).epsilon
    1.77
    """
    n_categories = _count(n_categories, "n_categories", 2, 1 << 32)
    return _planned(n_users, epsilon, target_rmse, probability, n_categories=n_categories)


def plan_mean(*, n_users=None, epsilon=None, target_rmse=None, n_columns=1, probability=0.95):
    """Compare all transformers of numbers for the means of columns; leave out what is to be found, as in `plan`.

    Errors are in widths of the bounds, given the users, and at worst: of values where the mechanism is noisiest. (With
    several columns of which each user reports some, values lie at both sides of the middle alike; of joint reports the
    error is that of values spread evenly, which is the worst for `DuchiTransformer`.) All of these mechanisms are
    unbiased, and have their default grids. `PrivUnitTransformer`, whose rows lie in a ball, is not comparable, and left
    out.

    **Privacy.** A plan reads no data: it costs nothing.

    **Complexity.** A table of the law for each mechanism, kept from one plan to the next: the first plan of a process
    took 55 milliseconds of the processor, one of another epsilon 45, and one that finds epsilon tenths of a second.

    Parameters
    ----------
    n_users : int, default=None
        From 1 to 2^53.
    epsilon : float, default=None
        In (0, 80], the budget of a row. Where it is found, it has three significant digits, rounded up.
    target_rmse : float, default=None
        Above 0 and below 1, in widths of the bounds: 0.01 is a hundredth of the range.
    n_columns : int, default=1
        Columns of a row, which share epsilon by the best `strategy` that each transformer has, named in `parameters`.
    probability : float, default=0.95
        With at least this probability no mean is further off than `max_error` (normal approximation).

    Returns
    -------
    SurveyPlan
        As `plan` returns it; bits, times and memory are those of a row.

    Raises
    ------
    ValueError
        As `plan`.

    Examples
    --------
    >>> from dpestim.local import plan_mean
    >>> found = plan_mean(n_users=10_000, epsilon=1.0)
    >>> found.best.mechanism
    'HMTransformer'
    >>> round(found.best.rmse, 4)
    0.0104
    """
    return _planned(n_users, epsilon, target_rmse, probability, n_columns=_count(n_columns, "n_columns", 1, 1 << 10))


# -------------------------------------------------------------------------------------------------- solving


def _planned(n_users, epsilon, target, probability, **size):
    if [n_users, epsilon, target].count(None) != 1:
        raise ValueError("exactly one of n_users, epsilon and target_rmse must be None: plan finds this one")
    probability = _share(probability, "probability")
    n_users = None if n_users is None else _count(n_users, "n_users", 1, _MOST_USERS)
    target = None if target is None else _share(target, "target_rmse")
    setting = setting_of(size.get("n_categories"), size.get("n_columns"))
    if epsilon is None:
        epsilon = _least_epsilon(setting, n_users, target)
    exact = canonical_epsilon(epsilon)
    options, refused = setting(exact)
    if not options:
        raise ValueError("epsilon must suit at least one mechanism, and none accepts it: "
                         f"{next(iter(refused.values()))}")
    n = _fewest_users(options, target) if n_users is None else n_users
    count = size.get("n_categories") or size["n_columns"]
    # the share of the law of one error that must lie within, where they all do with this probability (Sidak)
    z = -ndtri(-math.expm1(math.log(probability) / count) / 2)
    rows = sorted((option.row(name, n, z) for name, option in options.items()), key=lambda row: (row.rmse, row.bits))
    return SurveyPlan(n, float(epsilon), target, probability, tuple(rows), dict(refused), **size)


def _least(options, n):
    """Return the least error of all mechanisms, infinite where there is none."""
    return min((option.spread.rmse(n) for option in options.values()), default=math.inf)


def _fewest_users(options, target):
    """Return the fewest users with which a mechanism keeps the target."""
    each = [s.unit / (target**2 - s.floor) for s in (o.spread for o in options.values()) if target**2 > s.floor]
    if not each or min(each) > _MOST_USERS:
        raise ValueError("target_rmse is too small for any mechanism with this epsilon and 2**53 users: take a larger "
                         "target or epsilon")
    n = max(1, math.ceil(min(each)))
    return n + 1 if _least(options, n) > target else n  # (rounding)


def _least_epsilon(setting, n, target):
    """Return the least epsilon, of few digits, with which a mechanism keeps the target for n users.

    Looked for among the mechanisms that are nearly best where the search begins; in the end all of them are asked.
    """
    ratio = target**2 * n  # of unary encoding: 4 e^eps / (e^eps - 1)^2, solved for epsilon
    guess = float(np.clip(math.log1p(2 * (1 + math.sqrt(1 + ratio)) / ratio), _LEAST_EPSILON, LARGEST_EPSILON))
    near, found = (), None
    options, refused = setting(_rounded_up(guess, 12))
    while True:
        if not options:
            raise ValueError("target_rmse needs a mechanism for this setting, and all refuse it: "
                             f"{next(iter(refused.values()))}")
        order = sorted(options, key=lambda name: options[name].spread.rmse(n))
        if order[0] in near:
            return found
        near = (*near, *order[:_NEAR])
        found = _least_of(lambda epsilon, names=near: setting(epsilon, names)[0], n, target, guess)
        options, refused = setting(canonical_epsilon(found))


def _least_of(options_at, n, target, guess):
    """Return the least epsilon with which one of these options keeps the target, from a guess."""

    def error(log_epsilon):
        error = _least(options_at(_rounded_up(math.exp(log_epsilon), 12)), n)
        return math.log(max(error, 1e-300) if error < math.inf else 1e300) - math.log(target)

    least, most = math.log(_LEAST_EPSILON), math.log(LARGEST_EPSILON)
    low = high = math.log(guess)
    while error(high) > 0:
        if high >= most:
            raise ValueError("target_rmse is too small for any mechanism with this number of users and epsilon = 80: "
                             "take a larger target, or more users")
        low, high = high, min(high + 0.5, most)
    while low == high or error(low) <= 0:
        if low <= least:
            return _LEAST_EPSILON
        low, high = max(low - 0.2, least), low
    found = _rounded_up(math.exp(brentq(error, low, high, xtol=1e-5)), _DIGITS)
    while _least(options_at(found), n) > target:  # (the root is known so far only, and laws of integers have steps)
        found = _rounded_up(found * (1 + Fraction(1, 10**9)), _DIGITS)
    return float(found)


def _rounded_up(epsilon, digits):
    """Return a Fraction of so many significant digits, at least epsilon, and at most the largest there is."""
    return min(Fraction(LARGEST_EPSILON), rounded_up(epsilon, digits))


def rounded_up(number, digits):
    """Return a Fraction of so many significant digits that is at least a number."""
    unit = Fraction(10) ** (math.floor(math.log10(number)) + 1 - digits)
    return math.ceil(Fraction(number) / unit) * unit


# -------------------------------------------------------------------------------------------------- parameters


def _count(value, name, least, most):
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise ValueError(f"{name} must be an integer from {least:,} to {most:,}, got {value!r}")
    return int(value)


def _share(value, name):
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < 1:
        raise ValueError(f"{name} must be a number above 0 and below 1, got {value!r}")
    return float(value)


def _called(row):
    """Return how a sentence calls the mechanism of a row."""
    return f"{row.mechanism} ({row.parameters})" if row.parameters else row.mechanism
