"""Numbers that users give, read exactly and turned into floats that err on the side of privacy."""

import math
from fractions import Fraction
from numbers import Integral, Real

import numpy as np

from dpestim.privacy.exact import canonical_amount

#: Results of formulas in floats are moved outward by this factor: far more than their errors.
OUTWARD = 1e-12
#: Added to deltas that floats may have rounded to 0.
TINY = 1e-300
#: No loss larger than this is accounted for.
LARGEST = 500


def float_up(x):
    """Return the smallest float of at least x."""
    try:
        rounded = float(x)
    except OverflowError:
        return math.inf
    return rounded if rounded == math.inf or Fraction(rounded) >= x else math.nextafter(rounded, math.inf)


def float_down(x):
    """Return the largest float of at most x."""
    try:
        rounded = float(x)
    except OverflowError:
        return math.nextafter(math.inf, 0)
    return rounded if Fraction(rounded) <= x else math.nextafter(rounded, -math.inf)


def amount(value, name, most=None):
    """Return a number of at least 0 as an exact Fraction, or raise ValueError naming it."""
    exact = canonical_amount(value, name)
    if exact == math.inf or (most is not None and exact > most):
        raise ValueError(f"{name} must be a number from 0 to {most if most is not None else 'below infinity'}, "
                         f"got {value!r}")
    return exact


def positive(value, name):
    """Return a finite number above 0 as an exact Fraction, or raise ValueError naming it."""
    exact = amount(value, name)
    if not exact:
        raise ValueError(f"{name} must be above 0")
    return exact


def ratio(sensitivity, scale):
    """Return sensitivity / scale as a float, rounded up."""
    return float_up(positive(sensitivity, "sensitivity") / positive(scale, "scale"))


def several(values, name):
    """Return a list, or raise ValueError naming it."""
    try:
        return list(values)
    except TypeError:
        raise ValueError(f"{name} must be a sequence, got {type(values).__name__}") from None


def whole(value, name, least=1):
    """Return an int of at least `least`, or raise ValueError naming it."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)


def share(value, name):
    """Return a number in (0, 1] as an exact Fraction, or raise ValueError naming it."""
    if isinstance(value, Real) and not isinstance(value, bool) and 0 < value <= 1:
        return amount(value, name)
    raise ValueError(f"{name} must be above 0 and at most 1, got {value!r}")


def log_constant(t):
    """Return ln(t^t / (1 + t)^(1 + t)), that of Renyi's bound of order 1 + t: delta is e^(cgf - t epsilon) times it.

    t is a float of at least 0 or an array of numbers above 0; no two large terms cancel.
    """
    if isinstance(t, float):  # (math is faster, and takes 0)
        return -math.log1p(t) - t * math.log1p(1 / t) if t > 1e-300 else 0.0
    return -np.log1p(t) - t * np.log1p(1 / t)


def crossing(over, low, high, tolerance):
    """Return about the least x at which over(x), which falls, is at most 0, and never one where it is above.

    At `high` it is at most 0, which the caller knows.
    """
    at_low, at_high, side = over(low), -1.0, 0
    if at_low <= 0:
        return low
    for _ in range(60):  # false position, where an end that stays loses half of its weight
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        middle = min(max(middle, low + 1e-3 * (high - low)), high - 1e-3 * (high - low))
        value = over(middle)
        if value <= 0:
            high, at_high = middle, min(value, -1e-300)
            at_low, side = (at_low / 2 if side > 0 else at_low), 1
        else:
            low, at_low = middle, value
            at_high, side = (at_high / 2 if side < 0 else at_high), -1
        if high - low <= tolerance * (1 + abs(high)):
            break
    return high
