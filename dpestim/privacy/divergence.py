"""How far apart two laws are, exactly: the worst ratio, and the part of one that exceeds e^epsilon times the other.

The one place where deltas are summed: checks (`dpestim.testing`) and audits (`dpestim.audit`) both ask here.
"""

import math
from fractions import Fraction

import numpy as np

from dpestim.privacy.exact import exp_lower, exp_upper

#: e^epsilon is taken for e^100000 beyond: a lower bound, which makes a delta larger.
_LARGEST = Fraction(100_000)
#: Where even the whole tail of noise is below this, it is the delta.
_NOTHING = Fraction(1, 10**330)


def as_integers(matrix):
    """Return (the law as an array of Python ints, what makes 1): ratios stay, and comparisons get fast.

    A float is taken for the fraction that it is.
    """
    pairs = [[p.as_integer_ratio() for p in row] for row in matrix]
    unit = math.lcm(*{int(d) for row in pairs for _, d in row})
    return np.array([[int(n) * (unit // int(d)) for n, d in row] for row in pairs], dtype=object), unit


def worst_ratio(whole, one, two, at):
    """Return the largest ratio of an entry of the rows `one` to one of the rows `two` in a column of `at`; or inf."""
    worst = Fraction(0)
    for highs, lows in zip(whole[np.ix_(one, at)].T.tolist(), whole[np.ix_(two, at)].T.tolist()):
        high, low = max(highs), min(lows)
        if high and not low:
            return math.inf
        if high * worst.denominator > worst.numerator * low:
            worst = Fraction(high, low)
    return worst


def exponential_below(epsilon):
    """Return a Fraction at most e^epsilon, relative error below 1e-75; exactly 1 for 0."""
    return exp_lower(min(epsilon, _LARGEST)) if epsilon else Fraction(1)


def excess(p, q, epsilon):
    """Return the sum of (p - e^epsilon q)_+, a Fraction, of two arrays of Python ints; an upper bound.

    For epsilon infinite that is what p has where q has nothing.
    """
    if epsilon == math.inf:
        return Fraction((p * (q == 0)).sum())
    e = exponential_below(epsilon)
    return Fraction(np.maximum(p * e.denominator - q * e.numerator, 0).sum(), e.denominator)


def delta_of_move(law, move, epsilon):
    """Return the delta at epsilon of noise, an answer being moved by `move` steps: by the tails of the law.

    Parameters
    ----------
    law : with `probability`, `beyond` and `beyond_at_least`, as `dpestim.central` has
        Symmetric about 0, and p(z) / p(z + move) never falls as z grows; from some z on p may be 0.
    move : int, at least 0
    epsilon : Fraction, at least 0

    Returns
    -------
    Fraction
        P[Z >= h] - e^epsilon P[Z >= h + move], h being the least z with p(z) > e^epsilon p(z + move), rounded up: the
        first tail by what it is at most, the second by what it is at least. Where there is no such z, below 1e-330.
    """
    if not move:
        return Fraction(0)

    def is_over(z):
        least, most = law.probability(z)
        # (of a law that ends, what lies beyond the end is over, too: it comes after what the move takes out of reach)
        return least > exp_upper(epsilon) * law.probability(z + move)[1] or (z > 0 and not most)

    low, high = -move, move
    while not is_over(high):
        low, high = high, 2 * high
        if 0 < law.beyond(high) < _NOTHING:
            return _mass(law, high)[1]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_over(middle) else (middle, high)
    return max(Fraction(0), _mass(law, high)[1] - exponential_below(epsilon) * _mass(law, high + move)[0])


def _mass(law, z):
    """Return Fractions around P[Z >= z]."""
    if z >= 1:
        return law.beyond_at_least(z) / 2, law.beyond(z) / 2
    return 1 - law.beyond(1 - z) / 2, 1 - law.beyond_at_least(1 - z) / 2
