"""Planning behind a shuffler: which mechanism, how many users, or how much epsilon; no data are needed for it."""

import math
from fractions import Fraction
from numbers import Real
from typing import NamedTuple

from scipy.optimize import brentq
from scipy.special import ndtri

from dpestim.central.base import checked_delta
from dpestim.local.categories.choice import spread_of
from dpestim.local.estimates.planning import rounded_up
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.exact import LARGEST_EPSILON, canonical_epsilon
from dpestim.privacy.rounding import whole
from dpestim.records import record
from dpestim.shuffle.choice import SHORT_LIST, options
from dpestim.shuffle.histograms.fakes import Fakes
from dpestim.shuffle.transport.uniform import FOR_MESSAGES
from dpestim.tables import Table, short

#: More categories, or users, than this are not planned; significant digits of what is found.
_MOST_CATEGORIES, _MOST_USERS, _DIGITS = 1 << 16, 10**15, 3
#: The smallest epsilon that is looked for.
_LEAST_EPSILON = Fraction(1, 1000)


@record
class ShufflePlan(Table):
    """What `plan` answers; ``str(plan)`` is a table.

    Attributes
    ----------
    n_users, n_categories : int
    epsilon, delta : float
        Of all messages together; given or found.
    target_rmse : float or None
        What was asked for.
    probability : float
    rows : tuple of ShuffleRow
        One for each mechanism, the least error first: `mechanism` (the name of its class), `local_epsilon` (what a
        message keeps by itself), `rmse` and `max_error` (of frequencies), `messages` (of a user) and `bits` (of these
        together).
    """

    _most_lines = 1000
    _plotted = ("rmse", None, None)
    n_users: int
    n_categories: int
    epsilon: float
    delta: float
    target_rmse: float | None
    probability: float
    rows: tuple

    @property
    def best(self):
        """The row of the least error."""
        return self.rows[0]

    @property
    def privacy(self):
        """What the shuffled messages of all users would promise; the plan itself costs nothing."""
        return PrivacyGuarantee(self.epsilon, self.delta, "shuffle", Neighbours.SUBSTITUTION)

    def _columns(self):
        return ShuffleRow._fields

    def _records(self):
        return self.rows

    def _about(self):
        return (f"Nothing yet: a plan reads no data. It is about shuffled messages of {self.n_users:,} users on "
                f"{self.n_categories:,} categories, through {self.best.mechanism}.")

    def _head(self):
        return ShuffleRow._fields

    def _rows(self):
        return (map(short, row) for row in self.rows)


class ShuffleRow(NamedTuple):
    """One mechanism of a plan."""

    mechanism: str
    local_epsilon: float
    rmse: float
    max_error: float
    messages: float
    bits: float


def plan(*, n_users=None, n_categories=None, epsilon=None, target_rmse=None, delta=1e-6, colluding=0,
         probability=0.95):
    """Compare `ShuffledHistogram` and all local estimators behind `ShuffledEstimator`, before a survey is taken.

    Give two of `n_users`, `epsilon` and `target_rmse`, as for `dpestim.local.plan`. Given the first two, the plan says
    which error each mechanism has. Given the target, it finds the fewest users, or the least epsilon, with which one of
    them keeps it, and compares all of them there.

    Behind a shuffler each mechanism has another local epsilon, so that another one is best than in the local model:
    there direct responses (`GRRFrequencyEstimator`) nearly always are, of those that send one message.

    **Privacy.** A plan reads no data: it costs nothing.

    **Complexity.** Half a second to a second for a new setting, and 1.5 to 4 where users or epsilon are found.

    Parameters
    ----------
    n_users : int, default=None
        From 1 to 10^15. Where it is found, it has three significant digits, rounded up.
    n_categories : int
        From 2 to 65,536.
    epsilon : float, default=None
        Of the shuffled messages of one column, in (0, 80]. Where it is found, it has three significant digits, rounded
        up, and is at least 0.001.
    target_rmse : float, default=None
        Above 0 and below 1: the root of the mean, over all categories, of the squared error of a frequency.
    delta : float, default=1e-6
        Above 0 and below 1.
    colluding : int, default=0
        How many users may tell the analyser what they sent.
    probability : float, default=0.95
        With at least this probability no category is further off than `max_error` (normal approximation).

    Returns
    -------
    ShufflePlan
        With `rows`, `best` and `to_frame`. Errors are those of exact variances, where all categories are held equally
        often.

    Raises
    ------
    ValueError
        For a parameter that does not fit, where not exactly one of the three is left out, and for a target that nobody
        meets.

    Examples
    --------
    >>> from dpestim.shuffle import plan
    >>> found = plan(n_users=50_000, n_categories=3, epsilon=1.0)
    >>> found.best.mechanism, round(50_000 * found.best.rmse, 1)
    ('ShuffledHistogram', 6.5)
    >>> plan(n_categories=3, epsilon=1.0, target_rmse=0.001).n_users
    6510
    """
    if [n_users, epsilon, target_rmse].count(None) != 1:
        raise ValueError("exactly one of n_users, epsilon and target_rmse must be None: plan finds this one")
    d, colluding = whole(n_categories, "n_categories", 2), whole(colluding, "colluding", 0)
    if d > _MOST_CATEGORIES or colluding > _MOST_USERS:
        raise ValueError(f"n_categories must be at most {_MOST_CATEGORIES:,}, and colluding at most 10^15")
    probability, delta = _share(probability, "probability"), checked_delta(delta)
    target = None if target_rmse is None else _share(target_rmse, "target_rmse")
    e = None if epsilon is None else canonical_epsilon(epsilon)
    n = None if n_users is None else whole(n_users, "n_users")
    if n is not None and n > _MOST_USERS:
        raise ValueError("n_users must be at most 10^15")
    if n is not None and n <= colluding:
        raise ValueError("colluding must be less than n_users")
    if e is None:
        e = canonical_epsilon(_found(lambda e, names: _rows(d, n, colluding, e, delta, names), target,
                                     n - colluding, _LEAST_EPSILON, Fraction(LARGEST_EPSILON), "epsilon = 80"))
    if n is None:
        n = _found(lambda n, names: _rows(d, n, colluding, e, delta, names), target, float(e),
                       colluding + 1, _MOST_USERS, "10^15 users")
    # the share of the law of one error that must lie within, where they all do with this probability (Sidak)
    z = -float(ndtri(-math.expm1(math.log(probability) / d) / 2))
    rows = [row._replace(max_error=z * row.max_error) for row in _rows(d, n, colluding, e, delta, None)]
    return ShufflePlan(n, d, float(e), float(delta), target, probability, tuple(rows))


def _rows(d, n, colluding, e, delta, names):
    """Return a `ShuffleRow` of each mechanism, or of these and `ShuffledHistogram`; errors are standard deviations."""
    honest = n - colluding
    rows = [ShuffleRow(one.name, float(one.local_epsilon), one.rmse, spread_of(one.law).worst(n), 1.0,
                       float(one.law.report_bits)) for one in options(d, honest, n, e, delta, names=names)]
    try:
        law = Fakes.make(e, d, delta * FOR_MESSAGES, n, colluding)
        error = math.sqrt(float(law.variance(n)))
        rows.append(ShuffleRow("ShuffledHistogram", math.inf, error, error, 1 + law.n_fakes, float(law.report_bits)))
    except ValueError:  # (so few users would have to send too many fakes)
        pass
    return sorted(rows, key=lambda row: (row.rmse, row.bits))


def _found(rows_at, target, other, least, most, limit):
    """Return the least number, of three significant digits, at which a mechanism keeps the target.

    `rows_at` returns the rows of a number and of names of mechanisms, and errors are about 7 over the product of the
    number and `other`. Looked for among few mechanisms; in the end all of them are asked.
    """
    names = SHORT_LIST
    low_end, high_end = math.log(least), math.log(most)

    def number(x, digits=_DIGITS):
        x = min(max(rounded_up(x, digits), least), most)
        return math.ceil(x) if isinstance(most, int) else x

    def error(log):
        rows = rows_at(number(math.exp(log), 9), names)
        return math.log(max(rows[0].rmse, 1e-300) / target) if rows else 700.0

    start = min(max(math.log(7 / target / other), low_end), high_end)
    while True:
        low = high = start
        while error(high) > 0:
            if high >= high_end:
                raise ValueError(f"target_rmse is too small for any mechanism with {limit}: give a larger one")
            low, high = high, min(high + 0.5, high_end)
        while error(low) <= 0 and low > low_end:
            low, high = max(low - 0.5, low_end), low
        start = low if low == high or error(low) <= 0 else brentq(error, low, high, xtol=1e-4)
        x = number(math.exp(start))
        while x < most and rows_at(x, names)[0].rmse > target:  # (laws of integers have steps)
            x = number(x * (1 + Fraction(1, 10**6)))
        best = rows_at(x, None)[0].mechanism
        if best in (*names, "ShuffledHistogram"):
            return x
        names, start = (*names, best), math.log(x)


def _share(value, name):
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < 1:
        raise ValueError(f"{name} must be a number above 0 and below 1")
    return float(value)
