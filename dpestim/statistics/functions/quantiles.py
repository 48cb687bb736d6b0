"""Quantiles, the median, the smallest and the largest value."""

from numbers import Real

from dpestim.statistics.functions.making import EXAMPLE, function_of
from dpestim.statistics.quantiles import Quantile

median = function_of(
    __name__, "median", Quantile, "Return a median of the rows, chosen privately; level= makes intervals.",
    EXAMPLE.format("median", 5, ""), q=0.5)
minimum = function_of(
    __name__, "minimum", Quantile, "Return about the `rank`-th smallest value, by default one above the noise.",
    EXAMPLE.format("minimum", 0, ""), changed={"rank": None}, q=0.0)


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
