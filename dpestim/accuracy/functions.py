"""Errors of values that are no linear functions of their noise: bounds that hold for any data (`accuracy.md`)."""

import math
from fractions import Fraction

from dpestim.accuracy.numbers import Bounded, Number
from dpestim.accuracy.tails import share
from dpestim.central.selection.exponential import ExponentialLaw
from dpestim.records import record
from dpestim.statistics.choice import RANK


@record(eq=False)
class Worst(Bounded):
    """The error of a law that knows its tail for the worst answer."""

    law: object

    def width(self, beta):
        """Return that of the law."""
        return self.law.half_width(1 - Fraction(beta))


@record(eq=False)
class Ranks(Bounded):
    """By how many ranks the choice of a point is off, of several choices that are put in order."""

    law: ExponentialLaw
    total: int
    n_choices: int

    def width(self, beta):
        """Return what holds for all choices at once: the order may swap them."""
        return math.ceil(self.law.gap(self.total, float(share(beta, self.n_choices)))) / (1 << RANK)


@record(eq=False)
class Ratio(Bounded):
    """The error of a mean of numbers within `reach` of the middle, where the number of rows is secret."""

    total: Number
    count: Number
    reach: float
    n: int
    most: float

    def width(self, beta):
        """Return what noise of the sum and of the number of rows make of it together."""
        little = share(beta, 10)
        least = self.n - self.count.bound(little)
        return min(self.most, _ratio(self.total, self.count, self.reach, least, beta - little))


@record(eq=False)
class Moment(Bounded):
    """The error of a covariance of two columns, where the number of rows is secret."""

    product: Number
    sums: tuple
    count: Number
    reaches: tuple
    n: int
    most: float

    def width(self, beta):
        """Return what noise of sums, of products and of the number of rows make of it together.

        The part that is linear in noise has most of beta, equal shares for the ends of what its coefficients may be.
        """
        (one, two), (first, second) = self.sums, self.reaches
        little, same = share(beta, 20), one == two
        least = self.n - self.count.bound(2 * little)
        ends = [_ratio(total, self.count, reach, least, little) for total, reach in zip(self.sums, self.reaches)]
        linear = self.product + self.count * Fraction(first * second) + one * Fraction(second) + two * Fraction(first)
        rest = (beta - (3 if same else 4) * little) / (4 if same else 8)
        return min(self.most, linear.bound(rest) / least + ends[0] * ends[1]) if least >= 1 else self.most


@record(eq=False)
class Root(Bounded):
    """The error of the root of a number that is not negative."""

    square: Number

    def width(self, beta):
        """Return the root of that of the number."""
        return math.sqrt(self.square.bound(beta))


def _ratio(total, count, reach, least, beta):
    """Return by how much (S + s) / N' is off S / n, where N' = n + c is no less than `least`, and |S| <= reach n.

    Both ends of what S / n may be have half of beta.
    """
    return (total + count * Fraction(reach)).bound(beta / 2) / least if least >= 1 else math.inf
