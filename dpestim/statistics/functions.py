"""Statistics as functions: summarise, release, charge once; the classes do the work."""

import inspect
from dataclasses import replace
from numbers import Real

import numpy as np

from dpestim.inputs.safe_errors import attempt
from dpestim.statistics.moments import Correlation, Covariance, StandardDeviation, Variance
from dpestim.statistics.quantiles import Quantile
from dpestim.statistics.sums import Count, Mean, Sum
from dpestim.statistics.tables import ContingencyTable, Histogram
from dpestim.statistics.unknown import UnknownCategories

_TEXT = """{line}

    The function calls `{name}`, whose page states the guarantee, the accuracy and the proof.

    Parameters
    ----------
    x : array-like, Series or data frame of shape (n_rows,) or (n_rows, n_columns)
    users : array-like of shape (n_rows,), default=None
        The user of each row; needs `max_rows_per_user`.
    {keywords}
        As for `{name}`; epsilon must be given.

    Returns
    -------
    Result
        With value, standard_error, interval(level) and privacy.

    Raises
    ------
    ValueError
        For an invalid parameter or invalid data, before anything is charged. The message never names a value of the
        data.

    Notes
    -----
    **Privacy.** In the central model, for the declared neighbours (by default one record is replaced); the curator, who
    holds the data, must be trusted. **Complexity.** That of `{name}`.

    Examples
    --------
    {example}
    """


def _function(name, kind, line, example, changed=None, **fixed):
    """Return a function that fits a class, with its parameters as keywords."""
    own = [p for p in list(inspect.signature(kind.__init__).parameters.values())[1:] if p.name not in fixed]

    def function(x, *, users=None, **params):
        if "epsilon" not in params:
            raise ValueError("epsilon must be given, the budget of the release, such as epsilon=1.0")
        return kind(**fixed, **{**(changed or {}), **params}).fit(x, users=users).result_

    defaults = {"epsilon": inspect.Parameter.empty, **(changed or {})}
    keywords = [p.replace(kind=p.KEYWORD_ONLY, default=defaults.get(p.name, p.default)) for p in own]
    first = [inspect.Parameter("x", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    last = [inspect.Parameter("users", inspect.Parameter.KEYWORD_ONLY, default=None)]
    function.__signature__ = inspect.Signature(first + keywords + last)
    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = _TEXT.format(line=line, name=kind.__name__, keywords=", ".join(p.name for p in own),
                                    example="\n    ".join(example.split("\n")))
    return function


_NUMBERS = (">>> import numpy as np\n>>> from dpestim.statistics import {0}\n"
            ">>> x = np.random.default_rng(0).normal(5, 2, 50_000)\n"
            ">>> result = {0}(x, epsilon=1.0, bounds=(0, 10), {2}random_state=0)\n>>> round(result.value)\n{1}")
_PAIRS = (">>> import numpy as np\n>>> from dpestim.statistics import {0}\n"
          ">>> X = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 50_000)\n"
          ">>> {0}(X, epsilon=4.0, bounds=(-5, 5), random_state=0).value.round(1)\n"
          "array([[1. , 0.6],\n       [0.6, 1. ]])")

count = _function(
    "count", Count, "Return how many rows are true, with noise; `n_rows` counts all.",
    ">>> from dpestim.statistics import count\n>>> count([True, False] * 500, epsilon=1.0, random_state=1).value\n500")
sum = _function("sum", Sum, "Return the sum of the rows, clipped to bounds, with noise.",
                _NUMBERS.format("sum", "{}", "").replace("round(result.value)\n{}",
                                                         "bool(abs(result.value - x.sum()) < 2_000)\nTrue"))
mean = _function("mean", Mean, "Return the mean of the rows, clipped to bounds, with noise.",
                 _NUMBERS.format("mean", 5, ""))
var = _function("var", Variance, "Return the variance of the rows, clipped to bounds, with noise.",
                _NUMBERS.format("var", 4, ""))
std = _function("std", StandardDeviation, "Return the standard deviation of the rows, clipped to bounds, with noise.",
                _NUMBERS.format("std", 2, ""))
covariance = _function("covariance", Covariance, "Return the covariance matrix of columns, with noise.",
                       _PAIRS.format("covariance"))
correlation = _function("correlation", Correlation, "Return the correlation matrix of columns, from noisy covariances.",
                        _PAIRS.format("correlation"))
median = _function("median", Quantile, "Return a median of the rows, chosen privately; level= makes intervals.",
                   _NUMBERS.format("median", 5, ""), q=0.5)
minimum = _function("minimum", Quantile, "Return about the `rank`-th smallest value, by default one above the noise.",
                    _NUMBERS.format("minimum", 0, ""), changed={"rank": None}, q=0.0)
histogram = _function(
    "histogram", Histogram, "Return a histogram of one or several columns, with noise.",
    ">>> import numpy as np\n>>> from dpestim.statistics import histogram\n"
    ">>> histogram(np.arange(1000), epsilon=1.0, bins=2, bounds=(0, 1000), random_state=1).value\narray([500, 501])")
contingency_table = _function(
    "contingency_table", ContingencyTable, "Return how many rows have each combination of declared categories.",
    '>>> from dpestim.statistics import contingency_table\n>>> X = [["tea", 1]] * 90 + [["coffee", 2]] * 60\n'
    '>>> table = contingency_table(X, epsilon=1.0, categories=[["tea", "coffee"], [1, 2]], random_state=1)\n'
    ">>> table.value.shape\n(2, 2)")
unknown_categories = _function(
    "unknown_categories", UnknownCategories, "Return the categories with enough rows, and how many they have.",
    '>>> from dpestim.statistics import unknown_categories\n>>> x = ["tea"] * 90 + ["a secret"]\n'
    ">>> unknown_categories(x, epsilon=1.0, delta=1e-6, random_state=1).keys\n(['tea'],)")


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


def maximum(x, *, epsilon, rank=None, **params):
    """Return about the `rank`-th largest value.

    A function of `Quantile` with q=1 and the rank subtracted; all else is as for `minimum`.

    Parameters
    ----------
    x : array-like, Series or data frame of shape (n_rows,) or (n_rows, n_columns)
    epsilon : float
        Privacy budget of the release, in (0, 80].
    rank : float, default=None
        None: what the rank is off by with probability 0.05 at most, so that with 0.95 the value is no larger than the
        largest row, rounded to the grid. With 0 it may lie anywhere between the largest row and the bound.
    **params
        As for `minimum`: bounds must be declared.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.statistics import maximum
    >>> maximum(np.arange(10_000), epsilon=1.0, rank=50, bounds=(0, 50_000), random_state=0).value > 9_800
    True
    """
    if rank is not None and (isinstance(rank, bool) or not isinstance(rank, Real)):
        raise ValueError("rank must be None or a number")
    return quantile(x, 1.0, epsilon=epsilon, rank=None if rank is None else -rank, **params)


def quantile(x, q, *, epsilon, **params):
    """Return quantiles of the rows, chosen privately.

    A function of `Quantile`, whose page says what is promised, how exact it is, and where the proof is.

    Parameters
    ----------
    x : array-like, Series or data frame of shape (n_rows,) or (n_rows, n_columns)
    q : float or sequence of float
        Between 0 and 1; several share epsilon equally.
    epsilon : float
        Privacy budget of the release, in (0, 80].
    **params
        As for `Quantile`, and users: bounds must be declared; level asks for intervals.

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
    >>> import numpy as np
    >>> from dpestim.statistics import quantile
    >>> quantile(np.arange(10_000), [0.25, 0.75], epsilon=1.0, bounds=(0, 10_000), random_state=0).value.round(-2)
    array([2500., 7500.])
    """
    users = params.pop("users", None)
    return Quantile(epsilon, q=q, **params).fit(x, users=users).result_
