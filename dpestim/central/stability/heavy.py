"""Noise whose scale may depend on the data: laws that change little when they are moved *or stretched* a little.

The scale is secret, so that noise cannot be an integer number of steps: the released number is the exact real
center + scale * Z, rounded to a grid that is public. Z is known by as many digits as the rounding asks for, and no
result is ever off: this is post-processing of the mechanism on real numbers.

Cauchy noise and its relatives are quotients v / u of a point that is uniform where u^2 <= density(v / u) (ratio of
uniforms, Kinderman and Monahan). For the three laws here that is a polynomial inequality u^p + |v|^p <= u^q, which
integers decide:

    law         density            p  q    a shift by t scales costs    a stretch by e^b costs
    cauchy      1 / (1 + z^2)      2  0    t                            b
    quartic     1 / (1 + z^4)      4  2    3^(3/4) t                    3 b
    student     1 / (1 + z^2)^2    2  1    2 t                          3 b     (Student's t of 3 degrees, over sqrt 3)
    laplace     e^-abs(z)                  t                            b, but for an event of probability delta
"""

import math
from dataclasses import fields
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from dpestim.central.exact_bernoulli import power
from dpestim.exact_reals import Real
from dpestim.privacy.exact import exp_lower, exp_upper
from dpestim.records import record

_UNIT = 1 << 64


@record
class HeavyNoise:
    """The law of Z, and what of epsilon pays for a shift and what for a stretch.

    Parameters
    ----------
    epsilon, delta : Fraction
    share : Fraction
        The part of epsilon that pays for a stretch: how different scales of neighbours may be.
    """

    epsilon: Fraction
    delta: Fraction
    share: Fraction
    #: what a shift by one scale costs, rounded up, and what a stretch by e^b costs, over b
    sliding: ClassVar[Fraction]
    widening: ClassVar[Fraction] = Fraction(1)

    def __reduce__(self):
        """Pickle what it was made from."""
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def beta(self):
        """How fast smooth sensitivities may change, an exact Fraction."""
        return self.share * self.epsilon / self.widening

    @property
    def multiplier(self):
        """The scale of the noise, in smooth sensitivities."""
        return self.sliding / ((1 - self.share) * self.epsilon)

    @cached_property
    def ratio(self):
        """At most e^beta: what smooth sensitivities of neighbours may differ by."""
        return Fraction(max(_UNIT, math.floor(exp_lower(self.beta) * _UNIT)), _UNIT)


class Quotient(HeavyNoise):
    """Z = v / u for a point (u, v) that is uniform where u^p + |v|^p <= u^q; 0 < u < 1, -1 < v < 1."""

    p: ClassVar[int]
    q: ClassVar[int]

    def nearest(self, center, scale, grid, stream):
        """Return the integer of the grid nearest to center + scale * Z; all of it in Fractions."""
        while True:
            u, v = Real(stream), Real(stream)
            sign = 1 if stream.word() & 1 else -1
            u.extend()
            v.extend()
            while True:
                inside = self._inside(u.digits, v.digits, u.n_bits)
                if inside is False:
                    break
                if inside and u.digits:
                    ends = [nearest(center + sign * scale * Fraction(top, bottom), grid)
                            for top, bottom in ((v.digits, u.digits + 1), (v.digits + 1, u.digits))]
                    if ends[0] == ends[1]:
                        return ends[0]
                u.extend()
                v.extend()

    def _inside(self, u, v, n_bits):
        """Tell whether all points (u..u + 1, v..v + 1) / 2^n_bits are inside (True), or none (False)."""
        p, q, n = self.p, self.q, n_bits
        if (u + 1) ** p + (v + 1) ** p <= u**q << n * (p - q):
            return True
        return False if u**p + v**p > (u + 1) ** q << n * (p - q) else None


class Cauchy(Quotient):
    """Cauchy noise: the least for its epsilon, without mean or variance."""

    sliding, p, q = Fraction(1), 2, 0

    def log_density(self, z):
        """Return the logarithm of the density of Z."""
        return -math.log(math.pi) - np.log1p(z * z)

    def beyond(self, z):
        """Return P[abs(Z) > z]."""
        return 1 - 2 / np.pi * np.arctan(z)


class Quartic(Quotient):
    """Density proportional to 1 / (1 + z^4): variance 1."""

    sliding, widening, p, q = Fraction(22_796, 10_000), Fraction(3), 4, 2

    def log_density(self, z):
        """Return the logarithm of the density of Z."""
        return math.log(math.sqrt(2) / math.pi) - np.log1p(z**4)

    def beyond(self, z):
        """Return P[abs(Z) > z]."""
        r = math.sqrt(2)
        inside = np.log((z * z + r * z + 1) / (z * z - r * z + 1)) / 2 + np.arctan(r * z + 1) + np.arctan(r * z - 1)
        return 1 - inside / np.pi


class Student(Quotient):
    """Student's t of 3 degrees of freedom over the square root of 3: variance 1, and no delta."""

    sliding, widening, p, q = Fraction(2), Fraction(3), 2, 1

    def log_density(self, z):
        """Return the logarithm of the density of Z."""
        return math.log(2 / math.pi) - 2 * np.log1p(z * z)

    def beyond(self, z):
        """Return P[abs(Z) > z]."""
        return 1 - 2 / np.pi * (np.arctan(z) + z / (1 + z * z))


class Laplace(HeavyNoise):
    """Laplace noise: the least far out, for a delta."""

    sliding = Fraction(1)

    @cached_property
    def beta(self):
        """The largest, about, whose exact delta, (1 - e^-b) e^(-(e + b) / (e^b - 1)), e = share epsilon, will do."""
        e = self.share * self.epsilon

        def is_enough(beta):
            stretch = exp_upper(beta)
            exponent = (e + beta) / (stretch - 1)
            return exponent > 2000 or (1 - 1 / stretch) * exp_upper(-_coarse(exponent)) <= self.delta

        low, high = 0.0, float(e)
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if is_enough(Fraction(middle)) else (low, middle)
        return Fraction(low)

    def nearest(self, center, scale, grid, stream):
        """Return the integer of the grid nearest to center + scale * Z: digits of u decide where -ln u lies."""
        sign = 1 if stream.word() & 1 else -1
        u = Real(stream)
        u.extend()

        def is_over(n):  # center * sign + scale * (-ln u) >= n - 1/2
            place = (n - Fraction(1, 2) - sign * center) / scale
            return place <= 0 or u.is_below(power(place))

        ends = sorted((sign * grid.low, sign * grid.high))
        guess = -math.log(max(u.digits, 1) / 2.0**64)
        n = min(max(math.floor(float(sign * center) + float(scale) * guess + 0.5), ends[0]), ends[1])
        while n > ends[0] and not is_over(n):
            n -= 1
        while n < ends[1] and is_over(n + 1):
            n += 1
        return sign * n

    def log_density(self, z):
        """Return the logarithm of the density of Z."""
        return -math.log(2) - np.abs(z)

    def beyond(self, z):
        """Return P[abs(Z) > z]."""
        return np.exp(-z)


NOISES = {"cauchy": Cauchy, "student": Student, "quartic": Quartic, "laplace": Laplace}


@lru_cache(maxsize=256)
def heavy_noise(name, epsilon, delta, share):
    """Return a law by its name, the same object for the same arguments: some take a while to be worked out."""
    return NOISES[name](epsilon, delta, share)


def nearest(x, grid):
    """Return the integer of the grid nearest to a Fraction."""
    return min(max(math.floor(x + Fraction(1, 2)), grid.low), grid.high)


def _coarse(x):
    """Return a Fraction of few digits that is no larger: the exponential of it is no smaller once it is negated."""
    return Fraction(math.floor(x * _UNIT), _UNIT)
