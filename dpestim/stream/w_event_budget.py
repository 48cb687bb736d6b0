"""Amounts of budget that steps of a stream cost: short fractions, rounded down."""

import math
from fractions import Fraction

#: Nothing is published for less than this part of epsilon.
LEAST = Fraction(1, 1 << 20)


def short(amount, epsilon):
    """Return an amount with four binary digits, rounded down, or 0 where it is not worth a publication."""
    if amount < epsilon * LEAST:
        return Fraction(0)
    step = Fraction(2) ** (math.floor(math.log2(amount)) - 4)
    return math.floor(amount / step) * step
