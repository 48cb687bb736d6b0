"""Planning how to find frequent values that nobody can list: in the local, the shuffle or the central model."""

import math
from typing import NamedTuple

from scipy.special import ndtri

from dpestim.central.base import checked_delta
from dpestim.collection.compared_models import ComparedModels
from dpestim.local import HeavyHitterEstimator
from dpestim.local.domains.depths import METHODS, POWER, found_from
from dpestim.privacy.exact import canonical_epsilon
from dpestim.privacy.rounding import whole
from dpestim.records import record
from dpestim.shuffle.amplification import largest_local
from dpestim.shuffle.transport.uniform import FOR_MESSAGES
from dpestim.statistics import UnknownCategories
from dpestim.tables import short

#: Users for whom bounds are worked out, at most.
_MOST_USERS = 10**15


class HitterRow(NamedTuple):
    """One way to find frequent values."""

    mechanism: str
    model: str
    parameters: str
    frequency: float
    users: float
    standard_error: float
    local_epsilon: float
    bits: float


@record
class HitterPlan(ComparedModels):
    """What `plan_heavy_hitters` answers; ``str(plan)`` is a table.

    Attributes
    ----------
    n_users, n_bits, n_top, colluding : int
    epsilon, delta : float
    rows : tuple of HitterRow
        One for each way, the rarest value first: `mechanism` (the name of its class), `model`, `parameters`,
        `frequency` (a value of it is found with a probability of about 0.9), `users` (who hold such a value),
        `standard_error` (of the estimate of that frequency), `local_epsilon` (what a report keeps by itself) and `bits`
        (of a report).
    """

    _plotted, _least, _n_labels = ("frequency", None, None), "frequency", 3
    n_users: int
    n_bits: int
    epsilon: float
    delta: float
    n_top: int
    colluding: int
    rows: tuple

    def _asks(self):
        return f"For frequent values among {self.n_users:,} users"

    def _takes(self, row):
        found = f"{row.mechanism} ({row.parameters}) finds values of {short(row.users)} users"
        return found if row.frequency < 1 else "none is found"

    def _about(self):
        return (f"Nothing yet: a plan reads no data. It is about frequent values of {self.n_bits} bits among "
                f"{self.n_users:,} users.")


def plan_heavy_hitters(*, n_users, epsilon, n_bits, delta=1e-6, n_top=20, colluding=0):
    """Compare, before a survey is taken, which values are found in the local, the shuffle and the central model.

    The local model is `HeavyHitterEstimator` with each method. The shuffle model is `ShuffledEstimator` of these. The
    central model is `dpestim.statistics.UnknownCategories`, for a replaced row.

    **Privacy.** A plan reads no data: it costs nothing.

    **Complexity.** About half a second for a new setting.

    Parameters
    ----------
    n_users : int
        From 1 to 10^15.
    epsilon : float
        Of one report, of all shuffled reports together, or of all counts together; in (0, 80].
    n_bits : int
        Bits of a value, at most 64. Texts have as many as their characters together: 5 for each of 26 letters.
    delta : float, default=1e-6
        Of the shuffle and the central model, above 0 and below 1.
    n_top : int, default=20
        How many values are looked for, from 1 to 1000.
    colluding : int, default=0
        Users who may tell the analyser what they sent, in the shuffle model; below `n_users`.

    Returns
    -------
    HitterPlan
        With `rows`, `best`, `best_of`, `recommendation` and `to_frame`. Frequencies are normal approximations: values
        at them were found in 85 to 98 % of all cases, and in 77 % and more among 300 users. A frequency of 1 means that
        no value is found.

    Raises
    ------
    ValueError
        For a parameter that does not fit.

    Examples
    --------
    >>> from dpestim.collection import plan_heavy_hitters
    >>> found = plan_heavy_hitters(n_users=1_000_000, epsilon=1.0, n_bits=48)
    >>> [round(found.best_of(model).users) for model in ("local", "shuffle", "central")]
    [21969, 702, 37]
    """
    n, colluding = whole(n_users, "n_users"), whole(colluding, "colluding", 0)
    if n > _MOST_USERS:
        raise ValueError("n_users must be at most 10^15")
    if colluding >= n:
        raise ValueError("colluding must be less than n_users")
    epsilon, exact_delta = canonical_epsilon(epsilon), checked_delta(delta)
    local = max(epsilon, largest_local(None, n - colluding, epsilon, exact_delta * FOR_MESSAGES))
    survey = {"n_bits": n_bits, "n_top": n_top, "n_users": n}
    rows = [_by_reports(model, HeavyHitterEstimator(own, method=method, **survey))
            for model, own in (("local", epsilon), ("shuffle", local)) for method in METHODS]
    rows.append(_by_counts(n, epsilon, exact_delta, n_bits))
    rows.sort(key=lambda row: row.frequency)
    return HitterPlan(n, n_bits, float(epsilon), float(exact_delta), n_top, colluding, tuple(rows))


def _by_reports(model, estimator):
    """Return the row of users who report parts of their values."""
    columns, n = estimator._columns_now(), estimator.n_users
    f = min(1.0, estimator.detectable_)
    name = "HeavyHitterEstimator" if model == "local" else "ShuffledEstimator"
    bits = math.log2(len(columns)) + max(float(law.report_bits) for law in columns.laws)
    error, epsilon = columns.planned_error(f, n), float(estimator.epsilon)
    return HitterRow(name, model, f'method="{estimator.method}"', f, f * n, error, epsilon,
                     bits)


def _by_counts(n, epsilon, delta, n_bits):
    """Return the row of a curator, who counts all values and publishes counts above a threshold."""
    counts = UnknownCategories(epsilon, delta=delta, neighbours="substitution")
    variance, least = counts._noise().variance, counts.threshold()
    users = min(float(n), found_from(least, float(ndtri(POWER)), variance, 1))
    return HitterRow("UnknownCategories", "central", f"delta={float(delta):g}", users / n, users,
                     math.sqrt(variance + users) / n, math.inf, float(n_bits))
