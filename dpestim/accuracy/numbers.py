"""The error of one number: a linear function of independent noises and of errors with a known bound, and rounding."""

import math
from dataclasses import field
from fractions import Fraction

from dpestim.accuracy.sums import SIGNED, tail_of, width_of
from dpestim.accuracy.tails import share
from dpestim.central.additive.law import NoiseLaw
from dpestim.records import record


@record
class Source:
    """The integer that a law draws at one place of a release: independent of that at any other."""

    release: str
    place: int
    law: NoiseLaw = field(compare=False)


class Bounded:
    """Base of an error of which a bound is known, and no law; none is taken for independent of anything.

    A sub-class brings `width`.
    """

    def width(self, beta):
        """Return what the absolute error exceeds with probability beta at most."""
        raise TypeError(f"{type(self).__name__} does not say how far off it is: implement `width`")

    #: Whether `width` is an exact quantile of a law.
    is_exact = False


@record
class Number:
    """The error of one number: the sum of coefficients times sources, and at most `rounding` more, for certain."""

    terms: dict
    rounding: Fraction = Fraction(0)

    def __add__(self, other):
        terms = dict(self.terms)
        for source, coefficient in other.terms.items():
            total = terms.pop(source, 0) + coefficient
            if total:
                terms[source] = total
        return Number(terms, self.rounding + other.rounding)

    def __mul__(self, factor):
        if not factor:
            return Number({})
        return Number({source: c * factor for source, c in self.terms.items()}, self.rounding * abs(factor))

    @property
    def is_linear(self):
        """Whether it is linear in independent noises, and rounding."""
        return not any(isinstance(source, Bounded) for source in self.terms)

    def noise(self):
        """Return the sum of its noises as `dpestim.accuracy.sums` takes one."""
        often = {}
        for source, c in self.terms.items():
            if not isinstance(source, Bounded):
                key = source.law, abs(c)
                often[key] = often.get(key, 0) + 1
        return tuple((law, c, n) for (law, c), n in sorted(often.items(), key=lambda item: (item[0][1], item[1])))

    def bound(self, beta):
        """Return what the absolute error exceeds with probability beta at most."""
        parts = [(abs(c), source) for source, c in self.terms.items() if isinstance(source, Bounded)]
        noise = self.noise()
        each = share(beta, max(1, len(parts) + bool(noise)))
        width = width_of(noise, each, SIGNED)[0] if noise else 0.0
        return width + sum(float(c) * source.width(each) for c, source in parts) + float(self.rounding)

    def quantile(self, beta):
        """Return the quantile of its noise and whether no less would do; None where no law is known."""
        noise = self.noise()
        if self.is_linear:
            return width_of(noise, beta) if noise else (0.0, True)
        (source, c), *more = self.terms.items()
        return (abs(float(c)) * source.width(beta), True) if source.is_exact and not more else None

    def tail(self, t):
        """Return an upper bound of the probability that the absolute error exceeds t, of a linear one."""
        t, noise = Fraction(t) - self.rounding, self.noise()
        return tail_of(noise, t) if noise else float(t < 0)

    @property
    def variance(self):
        """The variance of the noise; NaN where no law is known."""
        if not self.is_linear:
            return math.nan
        return sum(n * float(c) ** 2 * law.variance_steps for law, c, n in self.noise())


def at_sources(numbers):
    """Tell whether no two numbers depend on one source (then they are independent)."""
    seen = [source for number in numbers for source in number.terms]
    return len(seen) == len(set(seen))
