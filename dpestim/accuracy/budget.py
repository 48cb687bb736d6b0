"""`budget_for`: the least epsilon with which a program is as accurate as it must be."""

import math
from numbers import Real

import numpy as np

from dpestim.accuracy.error import Error, checked_beta
from dpestim.privacy.exact import LARGEST_EPSILON

#: Where the search begins, and how close it comes, relatively.
_FIRST, _LEAST, _CLOSE = 1.0, 1e-9, 1e-4


def budget_for(make, accuracy, beta=0.05):
    """Return the least epsilon with which every error of a program is below a number with probability 1 - beta.

    **Privacy.** No data is read: it costs nothing.

    **Complexity.** About 30 times that of the error.

    Parameters
    ----------
    make : callable
        From epsilon, a float, to an `Error`, such as that of several statistics which share epsilon.
    accuracy : float
        What no absolute error may exceed.
    beta : float, default=0.05
        With this probability at most, an error is larger; for each number by itself: for all at once return `max_of`
        of them.

    Returns
    -------
    float
        Found by bisection: the bound of the error keeps `accuracy` with it, and not with a ten-thousandth less.

    Raises
    ------
    ValueError
        Where no epsilon up to the largest (80) is enough, as rounding alone is more.

    Examples
    --------
    >>> from dpestim import accuracy
    >>> from dpestim.statistics import Count, Mean
    >>> epsilon = accuracy.budget_for(lambda eps: accuracy.of(Mean(eps, bounds=(0, 100)), 1000), 0.5)
    >>> round(epsilon, 2)
    0.6
    >>> def program(eps):  # two groups, each with half of epsilon; the difference of their counts
    ...     return accuracy.of(Count(eps / 2), 1000) - accuracy.of(Count(eps / 2), 1000)
    >>> round(accuracy.budget_for(program, 20, beta=0.01), 2)
    0.58
    """
    if isinstance(accuracy, bool) or not isinstance(accuracy, Real) or not 0 < accuracy < math.inf:
        raise ValueError("accuracy must be a number above 0: what no error may exceed")
    checked_beta(beta)
    if not callable(make):
        raise ValueError("make must be a callable from epsilon to an error, such as "
                         "lambda eps: accuracy.of(Count(eps), 1000)")

    def is_enough(epsilon):
        error = make(epsilon)
        if not isinstance(error, Error):
            raise ValueError("make must return an error, as dpestim.accuracy.of does")
        return bool(np.all(error.bound(beta) <= accuracy))

    low, high = _FIRST, _FIRST
    if is_enough(high):
        while is_enough(low := low / 4):
            high = low
            if low < _LEAST:
                return high
    else:
        while not is_enough(high := min(4 * high, float(LARGEST_EPSILON))):
            low = high
            if high >= LARGEST_EPSILON:
                raise ValueError(f"no epsilon up to {LARGEST_EPSILON} makes errors as small as {accuracy:g}: allow a "
                                 "larger error, take narrower bounds or more rows")
    while high > low * (1 + _CLOSE):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
