"""Probabilities that are known by as many digits as a question needs, to compare a uniform `Real` with.

A probability is a function of a number of decimal digits that returns (low, high), Fractions around it which meet as
the digits grow. Those of a law, which are public, remember what they answered: every draw asks for the same. A kernel
compares the first 32 or 64 digits of a uniform real; where these tie with the probability's, more of both are asked for
here, so that nothing is ever rounded: the coin shows its probability exactly.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

#: Of powers that are multiplied up.
_BITS = 192
#: For so many numbers of digits a probability remembers its bounds; a third is needed once in some 2^64 comparisons.
_REMEMBERED = 2


def power(x):
    """Return the probability e^-x of a Fraction x >= 0."""
    return lru_cache(maxsize=_REMEMBERED)(lambda n_digits: exp_bounds(x, n_digits))


def binary_digit(x):
    """Return the probability 1 / (1 + e^x) of a Fraction x > 0."""

    @lru_cache(maxsize=_REMEMBERED)
    def bounds(n_digits):
        low, high = exp_bounds(x, n_digits)
        return low / (1 + low), high / (1 + high)

    return bounds


def exp_bounds(x, n_digits):
    """Return Fractions around e^-x, x a Fraction, a relative 10^-n_digits apart or less (but for underflow)."""
    if x > 100_000 and x > 100 * n_digits:  # (which a number that small makes large in the end)
        return Fraction(0), _underflow()
    down, up = _contexts(n_digits)
    least, most = (context.divide(Decimal(-x.numerator), Decimal(x.denominator)) for context in (down, up))
    # Decimal.exp is correctly rounded, so the neighbours of its results are bounds
    return max(Fraction(0), Fraction(down.next_minus(down.exp(least)))), Fraction(up.next_plus(up.exp(most)))


@lru_cache(maxsize=1)
def _underflow():
    """Return more than e^-100000; fractions of a million digits would take seconds."""
    return Fraction(1, 10**43_000)


@lru_cache(maxsize=16)
def _contexts(n_digits):
    return tuple(
        Context(prec=n_digits + 12, rounding=rounding, Emax=999_999, Emin=-999_999)
        for rounding in (ROUND_FLOOR, ROUND_CEILING)
    )


def threshold(probability, n_bits):
    """Return floor(probability * 2^n_bits): the first digits of an irrational number."""
    from dpestim.exact_reals import FIRST_DIGITS, MORE_DIGITS  # (few first fits need digits)

    n_digits = FIRST_DIGITS
    while True:
        low, high = (math.floor(end * (1 << n_bits)) for end in probability(n_digits))
        if low == high:
            return low
        n_digits += MORE_DIGITS


@lru_cache(maxsize=1)
def exponential_tables():
    """Return the tables of `_core/noise`: e^-i, e^-(i / 2^9) and e^-(i / 2^18) in units of 2^-64, rounded down."""
    return np.array(_first_bits(64, 1) + _first_bits(512, 1 << 9) + _first_bits(512, 1 << 18), np.uint64)


def _first_bits(n, unit):
    """Return floor(e^-(i / unit) * 2^64) for i below n; 2^64 - 1 for i = 0.

    Let a 2^b lie in [l, l + d], a = e^-(1 / unit), b = `_BITS`, and low_1 = l, low_(i + 1) = floor(low_i l / 2^b). Then
    a^i 2^b lies in [low_i, low_i + (d + 1) i]: what it exceeds low_i by grows by a factor of a < 1, by at most d as
    low_i < 2^b, and by less than 1 that is rounded off. Where both ends differ in 64 bits, `threshold` asks for more.
    """
    first = exp_bounds(Fraction(1, unit), 60)
    least, most = math.floor(first[0] * (1 << _BITS)), math.ceil(first[1] * (1 << _BITS))
    slack, rest, low, found = (most - least + 1) * n, _BITS - 64, least, [(1 << 64) - 1]
    for i in range(1, n):
        word = low >> rest
        found.append(word if word == low + slack >> rest else threshold(power(Fraction(i, unit)), 64))
        low = low * least >> _BITS
    return found
