"""Errors of values that are no linear functions of their noise: bounds that hold for any data (`accuracy.md`)."""

import math
from dataclasses import dataclass
from fractions import Fraction

from dpestim.accuracy.numbers import Bounded, Number
from dpestim.accuracy.tails import share
from dpestim.central.selection.exponential import ExponentialLaw
from dpestim.statistics.plan import RANK


@dataclass(frozen=True, eq=False)
class Worst(Bounded):
    """The error of a law that knows its tail for the worst answer."""

    law: object

    def width(self, beta):
        """Return that of the law."""
        return self.law.half_width(1 - Fraction(beta))


@dataclass(frozen=True, eq=False)
class Ranks(Bounded):
    """By how many ranks the choice of a point is off, of several choices that are put in order."""

    law: ExponentialLaw
    total: int
    n_choices: int

    def width(self, beta):
        """Return what holds for all choices at once: the order may swap them."""
        return math.ceil(self.law.gap(self.total, float(share(beta, self.n_choices)))) / (1 << RANK)


@dataclass(frozen=True, eq=False)
class Ratio(Bounded):
    """The error of a mean of numbers within `reach` of the middle, where the number of rows is secret."""

    total: Number
    count: Number
    reach: float
    n: int
    most: float

    def width(self, beta):
        """Return what both noises, each with half of beta, make of it."""
        each = share(beta, 2)
        return min(self.most, _ratio(self.total.bound(each), self.count.bound(each), self.reach, self.n))


@dataclass(frozen=True, eq=False)
class Moment(Bounded):
    """The error of a covariance of two columns, where the number of rows is secret."""

    product: Number
    sums: tuple
    count: Number
    reaches: tuple
    n: int
    most: float

    def width(self, beta):
        """Return what three or four noises, with equal parts of beta, make of it."""
        same = self.sums[0] == self.sums[1]
        each = share(beta, 3 if same else 4)
        count, (first, second) = self.count.bound(each), self.reaches
        mean = _ratio(self.product.bound(each), count, first * second, self.n)
        ends = [_ratio(total.bound(each), count, reach, self.n) for total, reach in zip(self.sums, self.reaches)]
        return min(self.most, mean + ends[0] * second + (first + ends[0]) * ends[1])


@dataclass(frozen=True, eq=False)
class Root(Bounded):
    """The error of the root of a number that is not negative."""

    square: Number

    def width(self, beta):
        """Return the root of that of the number."""
        return math.sqrt(self.square.bound(beta))


def _ratio(total, count, reach, n):
    """Return by how much (S + s) / max(1, n + c) is off S / n, |S| <= reach n, |s| <= total, |c| <= count."""
    return (total + reach * count) / (n - count) if n - count >= 1 else math.inf
