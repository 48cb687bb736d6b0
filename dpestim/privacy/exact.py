"""Exact arithmetic of privacy parameters: the one place where e^epsilon becomes integers.

The canonical epsilon of a float is the decimal fraction it prints as (0.1 is 1/10, not 0.1000000000000000055), so that
ten shares of 0.1 are exactly 1. From there everything is a `Fraction`; e^epsilon enters as a lower or an upper bound
(`exp_lower`, `exp_upper`, relative error below 1e-75), chosen so that the one directed rounding to integer weights errs
on the side of privacy.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Real

import numpy as np

WORD = 1 << 64  # the number of values of one random word
#: The least part of epsilon that a law must use; below it, two words a record are taken instead of one.
LEAST_USE = Fraction(99, 100)
#: Laws beyond this make no sense as privacy, and their weights no longer fit two words.
LARGEST_EPSILON = 80
#: Nothing, as one object: sums of amounts see at once that nothing is added, without a call.
ZERO = Fraction(0)

_DIGITS = 80
_DOWN = Context(prec=_DIGITS, rounding=ROUND_FLOOR, Emax=999_999, Emin=-999_999)
_UP = Context(prec=_DIGITS, rounding=ROUND_CEILING, Emax=999_999, Emin=-999_999)


def canonical_epsilon(epsilon, name="epsilon"):
    """Return epsilon as the exact fraction that its shortest decimal form names.

    Raises ``ValueError`` unless it is a finite number in (0, 80]; a bool is not a number here.
    """
    value = _canonical(epsilon, name)
    if value.numerator > LARGEST_EPSILON * value.denominator:
        raise ValueError(f"{name} must be above 0 and at most {LARGEST_EPSILON}, got {epsilon!r}")
    return value


def _canonical(number, name, what="a finite number above 0"):
    if type(number) is float and math.isfinite(number):  # (as most are: to ask what else it is takes longer)
        value = _of_float(number)
    elif isinstance(number, int) and not isinstance(number, bool):
        value = Fraction(number)  # also where it is too large for a float
    elif isinstance(number, Fraction):
        value = number
    elif isinstance(number, Decimal) and number.is_finite():
        value = Fraction(number)
    elif isinstance(number, Real) and not isinstance(number, bool | np.timedelta64) and math.isfinite(number):
        value = _of_float(float(number))
    else:
        raise ValueError(f"{name} must be {what}, got {number!r}")
    if value.numerator <= 0:
        raise ValueError(f"{name} must be {what}, got {number!r}")
    return value


@lru_cache(maxsize=512)
def _of_float(number):
    return Fraction(Decimal(repr(number)))


def canonical_amount(value, name):
    """Return an amount of a budget as the exact fraction that its shortest decimal form names; inf stays infinite.

    Raises ``ValueError`` unless it is a number of at least 0.
    """
    if type(value) is Fraction and value.numerator >= 0:
        return value
    if isinstance(value, Real) and not isinstance(value, bool | np.timedelta64):
        if value == math.inf:
            return math.inf
        if value == 0:
            return ZERO
    return _canonical(value, name, "a number of at least 0")


def exceeds(a, b):
    """Return whether a > b, amounts."""
    if isinstance(a, float) or isinstance(b, float):
        return a > b
    (above, below), (most, under) = a.as_integer_ratio(), b.as_integer_ratio()
    return above * under > most * below


@lru_cache(maxsize=4096)
def exp_lower(x):
    """Return a Fraction at most e^x, for a Fraction x; relative error below 1e-75."""
    low = _DOWN.divide(Decimal(x.numerator), Decimal(x.denominator))
    # Decimal.exp is correctly rounded (half even), so the neighbour below its result is a lower bound
    return Fraction(_DOWN.next_minus(_DOWN.exp(low)))


@lru_cache(maxsize=4096)
def exp_upper(x):
    """Return a Fraction at least e^x, for a Fraction x; relative error below 1e-75."""
    high = _UP.divide(Decimal(x.numerator), Decimal(x.denominator))
    return Fraction(_UP.next_plus(_UP.exp(high)))


def within(numerator, denominator, epsilon):
    """Tell whether numerator / denominator <= e^epsilon is certain (non-negative integers or Fractions)."""
    return numerator <= exp_lower(epsilon) * denominator


def uses_enough(numerator, denominator, epsilon):
    """Tell whether ln(numerator / denominator) >= 0.99 epsilon is certain."""
    return numerator >= exp_upper(LEAST_USE * epsilon) * denominator


def log_ratio(numerator, denominator):
    """Return ln(numerator / denominator) as a float, for display and tests; accurate also near 1."""
    with_margin = Context(prec=60, Emax=999_999, Emin=-999_999)
    n, d = Fraction(numerator), Fraction(denominator)
    ratio = with_margin.divide(Decimal(n.numerator * d.denominator), Decimal(n.denominator * d.numerator))
    return float(with_margin.ln(ratio))


def log_above(ratio):
    """Return a Fraction at least ln(ratio), for a Fraction above 0; above it by 1e-78 and a relative 1e-78 at most."""
    if ratio == 1:
        return Fraction(0)
    return Fraction(_UP.next_plus(_UP.ln(_UP.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))))


def log_upper(ratio):
    """Return a Fraction, a multiple of 1e-15, that is at least ln(ratio) and exceeds it by at most 2e-15."""
    low = Fraction(math.floor(log_ratio(ratio, 1) * 10**15) - 1, 10**15)
    while not within(ratio, 1, low):
        low += Fraction(1, 10**15)
    return low
