"""One statistic for each of several declared groups, for the price of one (`groups.md`)."""

import math
from collections.abc import Mapping
from itertools import pairwise, product

import numpy as np
from sklearn.base import clone

from dpestim.inputs import CategoryEncoder, Domain, settle
from dpestim.inputs.units import units_of
from dpestim.privacy import Neighbours
from dpestim.rng import WordSource
from dpestim.statistics.base import DPStatistic
from dpestim.statistics.result import GroupResults
from dpestim.statistics.summary import GROUPS, kept_rows, users_of
from dpestim.statistics.tables import as_columns, encode
from dpestim.summaries import names_of

#: Groups of several columns are all combinations of their values: no more than these.
_MOST_GROUPS = 1 << 16


def group_by(statistic, X, by, groups, *, columns=None, users=None):
    """Return a statistic of the rows of each group; the ledger pays once, as groups share no row.

    Parameters
    ----------
    statistic : estimator of this package
        With neighbours="add_remove" (a row that is replaced may move between groups) and declared bounds.
    X : array-like or frame of shape (n_rows,) or (n_rows, n_columns)
    by : array-like of shape (n_rows,), str, or list of str
        The group of each row, or the column or columns of a data frame X that hold it. A list of strings is taken for
        names unless it is as long as X. In strict mode a value that is none counts as the first one of its column.
    groups : array-like, dict or Domain
        The public groups; all of them are in the result, empty ones too. For several columns of `by`: a list with one
        list of values for each, or a dict or `dpestim.Domain` by name; groups are all combinations, as tuples. Where
        a `Domain` says ``missing=True``, missing values are a group, None.
    columns : list of str, default=None
        The columns of a data frame X that the statistic is of. None: all but those of `by`.
    users : array-like of shape (n_rows,), default=None
        Whose row each is; needs `max_rows_per_user` of the statistic, and no delta.

    Returns
    -------
    dict of Result
        For each group, in the order of `groups`. It is shown as one table, and has `to_frame`.

    Raises
    ------
    ValueError
        For an invalid parameter or invalid data, before anything is charged. The message never names a value of the
        data.

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
    X, by, groups = _split(X, by, groups, columns)
    statistic, keys, plans = planned(statistic, X, by, groups, users)
    # (a row is in one group, all of which have the same laws; rows of a user in several: epsilon is what is known)
    statistic._pay(plans[0].curve if users is None else None)
    source = WordSource(statistic.random_state)
    names = names_of(X, 1)  # (of what has names, however many columns there are)
    return GroupResults((key, statistic._result(plan(source.part(GROUPS + k)), names))
                        for k, (key, plan) in enumerate(zip(keys, plans)))


def _split(X, by, groups, columns=None):
    """Return X, the columns of groups, and the values of each; where `by` names columns of a frame, these leave X."""
    known, by = list(getattr(X, "columns", ())), [by] if isinstance(by, str) else by
    # (a list of strings as long as X is a group for each row: that must not depend on what they are)
    named = isinstance(by, list) and by and all(isinstance(name, str) for name in by)
    if not named or (len(by) > 1 and (not known or len(by) == len(X))):
        if columns is not None:
            raise ValueError("columns must be None unless by names columns of a data frame X")
        return X, by, [groups]
    if any(known.count(name) != 1 for name in by) or len(set(by)) < len(by):
        raise ValueError("by must be a column of values, or the name of one column of X where X is a data frame, or a "
                         "list of such names")
    kept = [name for name in known if name not in by] if columns is None else columns
    if not isinstance(kept, list) or not kept or any(known.count(name) != 1 for name in kept):
        raise ValueError("columns must be a list of names of columns of the data frame X")
    if isinstance(groups, Domain | Mapping):
        absent = [name for name in by if name not in groups]
        if absent:
            raise ValueError(f"groups must have the values of each column of by: there are none for {absent[0]!r}")
        groups = [getattr(groups[name], "all_values", groups[name]) for name in by]
    elif len(by) == 1:
        groups = [groups]
    return X[kept], X[by], groups


def planned(statistic, X, by, groups, users=None):
    """Return (the statistic, the groups, the plan of each): what is drawn, independently, and nothing is drawn yet.

    `groups` has one list of values for each column of `by`.
    """
    if not isinstance(statistic, DPStatistic):
        raise ValueError("statistic must be an estimator of dpestim.statistics, such as Mean(...)")
    given, statistic = statistic, clone(statistic)
    statistic.random_state = given.random_state  # (a copied generator would give every call the same noise)
    statistic._check()
    if statistic._relation() is not Neighbours.ADD_REMOVE:
        raise ValueError('statistic must have neighbours="add_remove", because a replaced row may move between groups: '
                         'set the parameter, or use config_context(neighbours="add_remove") or a ledger of this '
                         "relation")
    if statistic._finds_bounds():
        raise ValueError("statistic must have declared bounds, because private bounds would cost budget in each group")
    if statistic.max_rows_per_user is not None and statistic._budget()[1]:
        raise ValueError("statistic must have no delta with max_rows_per_user, because a user may be in several "
                         "groups: set delta=None")
    strict = statistic._is_strict()
    statistic._units = units_of(statistic, names_of(X, 1))
    settle(statistic, X)
    columns, one = as_columns(by, strict)
    if not isinstance(groups, list | tuple) or len(columns) != len(groups) or any(np.ndim(own) != 1 for own in groups):
        raise ValueError("by must be one column, and groups a list of the public groups; or by must name columns of a "
                         "data frame X, and groups must have a list of values for each")
    encoders = [CategoryEncoder(own, "by", fewest=1) for own in groups]
    sizes = [len(encoder.categories) for encoder in encoders]
    n_groups = math.prod(sizes)
    if n_groups > _MOST_GROUPS:
        raise ValueError(f"groups must have at most {_MOST_GROUPS:,} combinations")
    codes = np.ravel_multi_index(encode(encoders, columns, strict).T.astype(np.intp), sizes)
    most = statistic.max_rows_per_user
    statistic._refuse_half(users)
    # (rows of users are chosen here, over all groups; each group's noise is still that of a user with all of them)
    statistic.max_rows_per_user = None
    rows, one = statistic._read(X, None)
    statistic.max_rows_per_user = most
    if len(rows) != len(codes):
        raise ValueError(f"by must have one entry for each of the {len(rows)} rows")
    if users is not None:
        users = users_of(users, len(rows), strict)
        kept = kept_rows(users, len(rows), statistic._rows(), statistic.row_choice, statistic.random_state)
        rows, codes = rows[kept], codes[kept]
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(n_groups + 1))
    # (integers are rounded in every group: each of those in which a user has rows adds its rounding)
    statistic._parts = 1 if most is None else min(most, n_groups)
    plans = [statistic._plan(statistic._summary_of(rows[order[a:b]], one), statistic._shares()[1])
             for a, b in pairwise(ends)]
    keys = [encoder.categories.tolist() for encoder in encoders]
    return statistic, keys[0] if len(keys) == 1 else list(product(*keys)), plans
