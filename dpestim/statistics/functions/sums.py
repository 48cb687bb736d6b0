"""`mean`, `sum` and counts of rows."""

from dataclasses import replace

import numpy as np

from dpestim.inputs.safe_errors import attempt
from dpestim.statistics.functions.making import EXAMPLE, function_of
from dpestim.statistics.sums import Count, Mean, Sum

count = function_of(
    __name__, "count", Count, "Return how many rows are true, with noise; `n_rows` counts all.",
    ">>> from dpestim.statistics import count\n>>> count([True, False] * 500, epsilon=1.0, random_state=1).value\n500")
sum = function_of(
    __name__, "sum", Sum, "Return the sum of the rows, clipped to bounds, with noise.",
    EXAMPLE.format("sum", "{}", "").replace(
        "round(result.value)\n{}", "bool(abs(result.value - x.sum()) < 2_000)\nTrue"))
mean = function_of(
    __name__, "mean", Mean, "Return the mean of the rows, clipped to bounds, with noise.",
    EXAMPLE.format("mean", 5, ""))


def n_rows(x, *, epsilon, users=None, **params):
    """Return how many rows there are, with noise: missing values are counted like all others.

    A function of `Count` for neighbours of which one has a record more: where records are replaced, the number of rows
    is public. With ``max_rows_per_user=1`` it is the number of users.

    Parameters
    ----------
    x : array-like, Series or data frame of shape (n_rows,) or (n_rows, n_columns)
    epsilon : float
        Privacy budget of the release, in (0, 80].
    users : array-like of shape (n_rows,), default=None
        The user of each row; needs `max_rows_per_user`.
    **params
        As for `Count`.

    Returns
    -------
    Result

    Raises
    ------
    ValueError
        For an invalid parameter or invalid data, before anything is charged. The message never names a value of the
        data.

    Examples
    --------
    >>> from dpestim.statistics import n_rows
    >>> n_rows(["tea", "coffee", None] * 500, epsilon=1.0, random_state=1).interval(0.95)
    (1497.0, 1503.0)
    """
    if params.get("neighbours") is None:
        params["neighbours"] = "add_remove"
    if params["neighbours"] == "substitution":
        raise ValueError('neighbours must be "add_remove", because with "substitution" the number of rows is public: '
                         "use len(x)")
    n, error = attempt(lambda: x.shape[0] if hasattr(x, "shape") else len(x))
    if error or isinstance(x, str | bytes | dict):
        raise ValueError("x must be an array, a data frame or a list of rows")
    result = Count(epsilon, **params).fit(np.ones(n), users=users).result_
    return replace(result, about="the number of rows")
