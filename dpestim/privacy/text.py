"""Exact amounts as people read them: few digits, and never a bound that was rounded down."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from dpestim.privacy.exact import exp_upper

#: Beyond this no number of times means anything to anybody.
_LARGEST_ODDS = 230


def bound(amount, down=False):
    """Return an amount with six digits, rounded up (or down, where less is the honest side)."""
    if amount == math.inf:
        return "infinity"
    amount = Fraction(amount)
    context = Context(prec=6, rounding=ROUND_FLOOR if down else ROUND_CEILING, Emax=999_999, Emin=-999_999)
    rounded = context.divide(Decimal(amount.numerator), Decimal(amount.denominator))
    return f"{float(rounded):g}" if abs(rounded.adjusted()) < 300 else f"{rounded:.5e}"


def odds(epsilon, many=1):
    """Return " = 2.72" for epsilon = 1: e^epsilon with three digits, rounded up; nothing where it is astronomic.

    `many` times that, where it is not 1.
    """
    if epsilon > _LARGEST_ODDS:
        return ""
    times = Context(prec=3, rounding=ROUND_CEILING).create_decimal(_decimal(many * exp_upper(Fraction(epsilon))))
    return f" = {times:f}" if times < 10_000 else f" = {times:.2e}"


def posterior(epsilon, many=1):
    """Return the largest probability, in percent, of what was as likely as not; rounded up, below 100."""
    if epsilon > _LARGEST_ODDS:
        return "nearly 100"
    times = many * exp_upper(Fraction(epsilon))
    percent = Context(prec=4, rounding=ROUND_CEILING).create_decimal(_decimal(100 * times / (1 + times)))
    return f"{percent.normalize():f}" if percent < 100 else "nearly 100"


def _decimal(fraction):
    return Context(prec=40, rounding=ROUND_CEILING).divide(Decimal(fraction.numerator), Decimal(fraction.denominator))
