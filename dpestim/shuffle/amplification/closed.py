"""Closed formulas of the literature, for comparison: quoted, not proven here, and never the basis of a guarantee."""

import math

from dpestim.privacy.rounding import OUTWARD, amount, float_down, float_up, positive, whole


def erlingsson(n, epsilon0, delta):
    """Return epsilon by the first published bound, 12 epsilon0 sqrt(ln(1 / delta) / n); compare `clones`.

    Parameters
    ----------
    n : int
        Users, at least 1,000.
    epsilon0 : float
        The local epsilon, above 0 and at most 0.5.
    delta : float
        Above 0 and below 0.01.

    Returns
    -------
    float
        The smaller of the formula, rounded up, and epsilon0.

    Raises
    ------
    ValueError
        Outside of these ranges, where the theorem says nothing.

    References
    ----------
    U. Erlingsson, V. Feldman, I. Mironov, A. Raghunathan, K. Talwar, A. Thakurta, "Amplification by shuffling: from
    local to central differential privacy via anonymity", SODA 2019. Quoted: nothing here relies on it, and `clones` is
    tested to be smaller.

    Examples
    --------
    >>> from dpestim.shuffle.amplification import erlingsson
    >>> round(erlingsson(10_000, 0.5, 1e-6), 3)
    0.223
    """
    n, exact, wanted = _checked(n, epsilon0, delta)
    if n < 1000 or exact > 0.5 or wanted >= 0.01:
        raise ValueError("n must be at least 1000, epsilon0 at most 0.5, and delta below 0.01, for this theorem")
    return min(float_up(exact), 12 * float_up(exact) * math.sqrt(-math.log(wanted) / n) * (1 + OUTWARD))


def clones_closed(n, epsilon0, delta):
    """Return epsilon by the closed form of the clones; compare `clones`, which computes what this one bounds.

    Parameters
    ----------
    n : int
        Users.
    epsilon0 : float
        The local epsilon, above 0.
    delta : float
        Above 0 and below 1.

    Returns
    -------
    float
        The smaller of the formula, rounded up, and epsilon0; epsilon0 where the theorem says nothing, which is from
        ln(n / (16 ln(2 / delta))) on.

    References
    ----------
    V. Feldman, A. McMillan, K. Talwar, "Hiding among the clones", FOCS 2021, theorem 3.1. Quoted, not relied on:
    `clones` is tested to be smaller.

    Examples
    --------
    >>> from dpestim.shuffle.amplification import clones_closed
    >>> round(clones_closed(10_000, 1.0, 1e-6), 3), round(clones_closed(100_000, 2.0, 1e-6), 3)
    (0.214, 0.186)
    """
    n, exact, wanted = _checked(n, epsilon0, delta)
    return clones_guess(n, float_up(exact), wanted)


def clones_guess(n, epsilon0, delta):
    """Return the closed form for checked floats."""
    if n <= 16 * math.log(2 / delta) * math.exp(min(epsilon0, 700.0)):
        return epsilon0
    odds = math.exp(epsilon0)
    root = 8 * math.sqrt(odds * math.log(4 / delta) / n) + 8 * odds / n
    return min(epsilon0, math.log1p(math.expm1(epsilon0) / (odds + 1) * root) * (1 + OUTWARD))


def _checked(n, epsilon0, delta):
    n, exact, wanted = whole(n, "n"), positive(epsilon0, "epsilon0"), float_down(amount(delta, "delta", 1))
    if not 0 < wanted < 1:
        raise ValueError("delta must be above 0 and below 1")
    return n, exact, wanted
