"""Discrete Gaussian noise of a given width, which is what concentrated privacy asks for."""

import math
from fractions import Fraction
from functools import cached_property

from dpestim.central.additive.discrete_gaussian import DiscreteGaussianLaw
from dpestim.records import record


@record
class WidthLaw(DiscreteGaussianLaw):
    """P[Z = z] proportional to e^(-z^2 / (2 width^2)); of what it promises only its `cost` is stated.

    Parameters
    ----------
    width : float
    square : int
        The square of the L2 norm by which neighbours differ.
    """

    width: float = 1.0
    square: int = 1

    @classmethod
    def of(cls, width, square):
        """Return the law of a width."""
        # ((0, 1) holds for anything)
        return cls(Fraction(0), Fraction(1), Fraction(math.isqrt(square) + 1), 0, 2, float(width), square)

    @property
    def sigma(self):
        """The width."""
        return self.width

    @cached_property
    def rho(self):
        """Concentrated privacy: square / (2 width^2), exactly."""
        return Fraction(self.square) / (2 * Fraction(self.width) ** 2)


def width_for(rho, square):
    """Return the least float whose cost is at most rho, about: never more than rho."""
    width = math.sqrt(square / (2 * float(rho)))
    while Fraction(square) / (2 * Fraction(width) ** 2) > rho:
        width = math.nextafter(width, math.inf)
    return width
