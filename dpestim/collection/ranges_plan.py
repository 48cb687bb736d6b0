"""Planning ranges of ordered columns: errors of each method in the local, the shuffle and the central model."""

import math
from dataclasses import field
from typing import NamedTuple

from dpestim.central.base import checked_delta
from dpestim.collection.compared_models import ComparedModels
from dpestim.local.domains.levels import MOST_VALUES, best_fanouts, level_law, mean_variance
from dpestim.postprocessing.trees import level_sizes
from dpestim.privacy.exact import canonical_epsilon
from dpestim.privacy.rounding import whole
from dpestim.records import record
from dpestim.shuffle.amplification import largest_local
from dpestim.shuffle.transport.uniform import FOR_MESSAGES
from dpestim.statistics import RangeCounts

#: More users than this are nobody's.
_MOST_USERS = 1 << 53
#: Methods whose variances are known before any report.
_METHODS = ("hierarchy", "haar", "hio")


class RangeRow(NamedTuple):
    """One way to estimate ranges: its mechanism and model, the error of a range, and what a user sends."""

    mechanism: str
    model: str
    parameters: str
    range_error: float
    local_epsilon: float
    bits: float


@record
class RangePlan(ComparedModels):
    """What `plan_ranges` answers; ``str(plan)`` is a table.

    Attributes
    ----------
    n_users, n_values, n_columns, colluding : int
    epsilon, delta : float
    rows : tuple of RangeRow
        One for each way, the least error first: `mechanism` (the name of its class), `model`, `parameters`,
        `range_error` (the root mean square error of the share of a range, over all ranges), `local_epsilon` (what a
        report keeps by itself) and `bits` (of a report).
    left_out : dict of str
        Ways whose error is not known before there are reports, and why.
    """

    _plotted, _least = ("range_error", None, None), "range_error"
    _n_labels = 3
    n_users: int
    n_values: int
    n_columns: int
    epsilon: float
    delta: float
    colluding: int
    rows: tuple
    left_out: dict = field(repr=False)

    def _asks(self):
        return f"For ranges of {self.n_values:,} values and {self.n_users:,} users"

    def _about(self):
        return (f"Nothing yet: a plan reads no data. It is about ranges of {self.n_values:,} values of "
                f"{self.n_users:,} users.")


def plan_ranges(*, n_users, epsilon, n_values, n_columns=1, delta=1e-6, colluding=0):
    """Compare, before a survey is taken, the errors of shares of ranges in the local, shuffle and central model.

    The local model is `RangeEstimator` with each method of trees. The shuffle model is `ShuffledEstimator` of it. The
    central model is `dpestim.statistics.RangeCounts` for a replaced row.

    Errors are about the users who take part, on average over all ranges, by the exact variances of the laws for values
    that are held equally often; of "hio" the covariances of nodes are left out.

    **Privacy.** A plan reads no data: it costs nothing.

    **Complexity.** About a second for a million values, the first time.

    Parameters
    ----------
    n_users : int
        From 1 to 2^53.
    epsilon : float
        Of one report of a whole row, of all shuffled reports together, or of all counts together; in (0, 80].
    n_values : int
        How many values, or bins, each column has, from 2 to 1048576.
    n_columns : int, default=1
        Columns whose ranges are wanted: each user reports one of them.
    delta : float, default=1e-6
        Of the shuffle model, above 0 and below 1.
    colluding : int, default=0
        Users who may tell the analyser what they sent, in the shuffle model; below `n_users`.

    Returns
    -------
    RangePlan
        With `rows`, `best`, `best_of`, `recommendation` and `to_frame`.

    Raises
    ------
    ValueError
        For a parameter that does not fit.

    Examples
    --------
    >>> from dpestim.collection import plan_ranges
    >>> found = plan_ranges(n_users=100_000, epsilon=0.25, n_values=1440)
    >>> [found.best_of(model).parameters for model in ("local", "shuffle", "central")]
    ['method="haar"', 'method="hierarchy"', 'bins=1440']
    """
    n, colluding, columns = whole(n_users, "n_users"), whole(colluding, "colluding", 0), whole(n_columns, "n_columns")
    size = whole(n_values, "n_values", 2)
    if n > _MOST_USERS:
        raise ValueError("n_users must be at most 2^53")
    if size > MOST_VALUES:
        raise ValueError(f"n_values must be at most {MOST_VALUES:,}: take wider bins")
    if colluding >= n:
        raise ValueError("colluding must be less than n_users")
    epsilon, exact_delta = canonical_epsilon(epsilon), checked_delta(delta)
    local = max(epsilon, largest_local(None, n - colluding, epsilon, exact_delta * FOR_MESSAGES))
    rows = [_of_users(*own, method, size, columns, n) for own in (("local", epsilon), ("shuffle", local))
            for method in _METHODS]
    curator = RangeCounts(float(epsilon), bins=size, bounds=(0, size), neighbours="substitution")
    noise = curator._levels(epsilon, columns)
    rows.append(RangeRow("RangeCounts", "central", f"bins={size}", math.sqrt(noise.mean_variance) / n, math.inf,
                         columns * math.log2(size)))
    left_out = {'RangeEstimator (method="square_wave")': "its error depends on how smooth the distribution is",
                "RectangleEstimator": "its error depends on how values lie within cells"}
    return RangePlan(n, size, columns, float(epsilon), float(exact_delta), colluding,
                     tuple(sorted(rows, key=lambda row: row.range_error)), left_out)


def _of_users(model, epsilon, method, size, columns, n):
    """Return the row of users who report one level of one column."""
    fanouts = best_fanouts(epsilon, size, method)
    bits = [level_law(epsilon, nodes, method).report_bits for nodes in level_sizes(fanouts)[1:]]
    return RangeRow("RangeEstimator" if model == "local" else "ShuffledEstimator", model, f'method="{method}"',
                    math.sqrt(columns * mean_variance(epsilon, size, fanouts, method) / n), float(epsilon),
                    math.log2(columns * len(fanouts)) + max(map(float, bits)))
