"""Curves: what is known of a release besides (epsilon, delta), and what follows from it.

A curve bounds ``ln E[e^(t loss)]``, the loss being the logarithm of how much likelier an outcome is with a record than
without. Layers above bring tighter kinds (`dpestim.accounting.RenyiCurve`, `PrivacyLossDistribution`); here are what
all share, and the conversion to (epsilon, delta). Floats are moved
outward: whatever comes out is a bound (the proof is in ``accounting/renyi.md``).
"""

import math
from fractions import Fraction
from functools import cache
from typing import ClassVar

import numpy as np

from dpestim.privacy.rounding import OUTWARD, amount, float_down, float_up, log_constant
from dpestim.records import record

_LOOSE = 1e-9
#: No delta is less: below, floats have few digits.
_LEAST = 1e-306


class Curve:
    """What is known of a release; curves add up (``+``) by the tightest rule that both have, or to None.

    A sub-class brings `rho` (an upper bound of its concentrated privacy, a Fraction; None: not known), `cgf`,
    `epsilon_at`, `of_groups`, and how it adds up: `joined`, `lift`, `weaker`, `covers`.
    It is immutable, hashable, and equal to what was made alike.
    """

    #: Kinds from weak to tight; a sum is of the tightest kind that both can be put in.
    rank: ClassVar[int] = 0
    #: Whether it holds for add/remove neighbours only.
    is_sampled: ClassVar[bool] = False

    @property
    def face(self):
        """What it promises, in words."""
        from dpestim.privacy.text import bound  # (only who reads it needs numbers as text)

        return "known privacy losses" if self.rho is None else f"{bound(self.rho)}-concentrated privacy"

    def cgf(self, t):
        """Return an upper bound of ln E[e^(t loss)] for an array of t above 0; inf where none is known."""
        raise NotImplementedError  # (each kind of curve has its own)

    def epsilon_at(self, delta):
        """Return epsilon at a delta from 0 to 1, a Fraction rounded up; inf where there is none."""
        epsilon = curve_epsilon(self, delta)
        return Fraction(epsilon) if epsilon < math.inf else math.inf

    def of_groups(self, size):
        """Return the curve for groups of so many neighbours; None where none is known."""
        raise NotImplementedError  # (each kind of curve has its own)

    def joined(self, other):
        """Return that of this and another one of the same kind."""
        raise NotImplementedError  # (each kind of curve has its own)

    def lift(self, other):
        """Return another curve, of a weaker kind or of this one, as one of this kind; None where that is impossible."""
        return other if other.rank == self.rank else None

    def weaker(self):
        """Return what follows from it, of the next weaker kind; None where nothing does."""
        return None

    def covers(self, other):
        """Tell whether this follows from another one of the same kind (False: not known)."""
        return self == other

    def follows_from(self, other):
        """Tell whether this follows from another curve (False: not known)."""
        while other is not None and other.rank > self.rank:
            other = other.weaker()
        other = None if other is None else self.lift(other)
        return other is not None and self.covers(other)

    def __add__(self, other):
        """Return that of both releases together; None where nothing is known of both."""
        if not isinstance(other, Curve):
            return NotImplemented
        one, two = (self, other) if self.rank >= other.rank else (other, self)
        while one is not None:
            lifted = one.lift(two)
            if lifted is not None:
                return one.joined(lifted)
            one = one.weaker()
            if one is not None and one.rank < two.rank:
                one, two = two, one
        return None

    def __radd__(self, other):
        """Let ``sum(...)`` start at 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@record
class PureDPLoss:
    """Any epsilon-private release: randomised response is the worst."""

    epsilon: float

    @property
    def rho(self):
        """epsilon^2 / 2."""
        return Fraction(self.epsilon) ** 2 / 2

    @property
    def order(self):
        """Its family and its size."""
        return (type(self),), self.epsilon

    def of_groups(self, size):
        """Return that for groups."""
        return type(self)(float_up(size * Fraction(self.epsilon)))

    def cgf(self, t):
        """Return an upper bound of ln E[e^(t loss)]."""
        p, e = 1 / (1 + math.exp(-self.epsilon)), t * self.epsilon
        near = np.log1p(p * np.expm1(np.minimum(e, 1)) + (1 - p) * np.expm1(-e))
        far = e + np.log(p + (1 - p) * np.exp(-2 * e))
        return np.where(e <= 1, near, far) + 2.0**-48 * e


@record
class ConcentratedLaw:
    """Any concentrated release; `size` is an upper bound of its rho."""

    size: float

    @property
    def rho(self):
        """Its rho."""
        return Fraction(self.size)

    @property
    def order(self):
        """Its family, in which rhos add up, and its size."""
        return (ConcentratedLaw, True), self.size

    def of_groups(self, size):
        """Return that for groups."""
        return ConcentratedLaw(float_up(size * size * Fraction(self.size)))

    def cgf(self, t):
        """Return an upper bound of ln E[e^(t loss)]."""
        return self.size * t * (1 + t) * (1 + OUTWARD)


def curve_delta(curve, epsilon):
    """Return delta at an epsilon of at least 0, an upper bound; the curve answers ``cgf(t)``."""
    e = float_down(amount(epsilon, "epsilon"))
    small = 0 < e < 1e-5  # then the best order is larger, the more so the less epsilon is
    orders = np.geomspace(1e-3, 1e4 / e, 2000) if small else _orders()
    log = _least(curve, lambda cgf, t: cgf - t * e + log_constant(t), orders)
    return min(1.0, max(math.exp(min(log, 0.0)) * (1 + _LOOSE), _LEAST))


def curve_epsilon(curve, delta):
    """Return epsilon at a delta from 0 to 1, an upper bound; inf where delta is 0."""
    wanted = float_down(amount(delta, "delta", 1))
    if wanted == 0:
        return math.inf
    least = _least(curve, lambda cgf, t: (cgf + log_constant(t) - math.log(wanted)) / t, _orders())
    return max(0.0, least + OUTWARD * (1 + abs(least)))


def renyi_budget(t, epsilon, delta):
    """Return what ln E[e^(t loss)] may be for (epsilon, delta), rounded down; below 0: nothing at all may be spent."""
    whole = t * float(epsilon)
    return whole + math.log(delta) - float(log_constant(t)) - OUTWARD * (10 + whole)


@cache
def _orders():
    """Return the orders minus 1 that are tried first; then finer ones next to the best."""
    return np.geomspace(1e-3, 1e9, 241)


def _least(curve, objective, t):
    """Return about the least value over orders minus 1."""
    for _ in range(3):
        with np.errstate(over="ignore", invalid="ignore"):
            value = objective(curve.cgf(t), t)
        value = np.where(np.isnan(value), np.inf, value)  # too large for floats: of such an order nothing is known
        best = int(np.argmin(value))
        ends = t[max(best - 1, 0)], t[min(best + 1, t.size - 1)]
        least, t = float(value[best]), np.geomspace(*ends, 41)
    return least
