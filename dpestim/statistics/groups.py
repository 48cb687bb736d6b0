"""One statistic for each of several declared groups, for the price of one (`groups.md`)."""

from itertools import pairwise

import numpy as np
from sklearn.base import clone

from dpestim.inputs import CategoryEncoder
from dpestim.privacy import Neighbours
from dpestim.rng import WordSource
from dpestim.statistics.base import DPStatistic
from dpestim.statistics.summary import kept_rows, named
from dpestim.statistics.tables import as_columns, encode


def group_by(statistic, X, by, groups, *, users=None):
    """Return a statistic of the rows of each group; the ledger pays once, as groups share no row.

    Parameters
    ----------
    statistic : estimator of this package
        With neighbours="add_remove" (a row that is replaced may move between groups) and declared bounds.
    X : array-like or frame of shape (n_rows,) or (n_rows, n_columns)
    by : array-like of shape (n_rows,)
        The group of each row. In strict mode a value that is none counts as the first group.
    groups : array-like
        The public groups; all of them are in the result, empty ones too.
    users : array-like of shape (n_rows,), default=None
        Whose row each is; needs `max_rows_per_user` of the statistic, and no delta.

    Returns
    -------
    dict of Result
        For each group, in the order of `groups`.

    Raises
    ------
    ValueError
        For a parameter or data that do not fit, before anything is charged; it never names a value of the data.

    Notes
    -----
    **Privacy.** That of the statistic, once, by parallel composition: one record more or less is in one group. Of a
    user with several rows as many count as `max_rows_per_user` says, in all groups together. **Complexity.** O(n) and
    one release a group. The proof: ``groups.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.statistics import Mean, group_by
    >>> rng = np.random.default_rng(0)
    >>> by, x = np.repeat(["a", "b"], 5000), np.r_[rng.normal(1, 1, 5000), rng.normal(2, 1, 5000)]
    >>> means = group_by(Mean(1.0, bounds=(-4, 7), neighbours="add_remove", random_state=0), x, by, ["a", "b", "c"])
    >>> [round(result.value, 1) for result in means.values()][:2], len(means)
    ([1.0, 2.0], 3)
    """
    if not isinstance(statistic, DPStatistic):
        raise ValueError("statistic must be an estimator of dpestim.statistics, such as Mean(...)")
    statistic = clone(statistic)
    statistic._check()
    if statistic._relation() is not Neighbours.ADD_REMOVE:
        raise ValueError('statistic must have neighbours="add_remove": a row that is replaced may move between groups')
    if isinstance(statistic.bounds, str):
        raise ValueError("statistic must have declared bounds: private ones would be found for each group anew")
    if statistic.max_rows_per_user is not None and statistic.delta is not None:
        raise ValueError("statistic must have no delta where users have several rows: they may be in several groups")
    strict = statistic._is_strict()
    columns, one = as_columns(by, strict)
    if len(columns) != 1 or not np.ndim(groups) == 1:
        raise ValueError("by must be one column, and groups a list of the public groups")
    encoder = CategoryEncoder(groups, "by", fewest=1)
    codes = encode([encoder], columns, strict)[:, 0]
    most = statistic.max_rows_per_user
    if (users is None) != (most is None):
        raise ValueError("users and max_rows_per_user need each other")
    # (rows of users are chosen here, over all groups; each group's noise is still that of a user with all of them)
    statistic.max_rows_per_user = None
    rows, one = statistic._read(X, None)
    statistic.max_rows_per_user = most
    if len(rows) != len(codes):
        raise ValueError(f"by must have one entry for each of the {len(rows)} rows")
    if users is not None:
        users = named(users, len(rows), "users", strict)
        kept = kept_rows(users, len(rows), statistic._rows(), statistic.row_choice, statistic.random_state)
        rows, codes = rows[kept], codes[kept]
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(encoder.categories) + 1))
    # (integers are rounded in every group: each of those in which a user has rows adds its rounding)
    statistic._parts = 1 if most is None else min(most, len(encoder.categories))
    plans = [statistic._plan(statistic._summary_of(rows[order[a:b]], one), statistic._shares()[1])
             for a, b in pairwise(ends)]
    statistic._pay()
    source = WordSource(statistic.random_state)
    keys = encoder.categories.tolist()
    return {key: statistic._result(plan(source.part(k))) for k, (key, plan) in enumerate(zip(keys, plans))}
