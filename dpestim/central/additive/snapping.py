"""The snapping mechanism: floating-point Laplace noise, made safe by a coarse grid (for comparison and for history)."""

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpestim.central.additive.mechanism import AdditiveMechanism
from dpestim.exact_reals import BitStream
from dpestim.privacy.rounding import float_up
from dpestim.records import record

#: What floating-point arithmetic costs, in units of the bound over the scale.
_ROUNDING = Fraction(1, 1 << 49)
_MORE = 1 + 2.0**-45  # more than the floats of a tail are off


@record
class SnappingLaw:
    """How an answer in [-bound, bound] is released, in units of 2^exponent, in which the sensitivity is at most 1."""

    epsilon: Fraction
    bound: float
    exponent: int
    delta: ClassVar = Fraction(0)

    def __reduce__(self):
        return type(self), (self.epsilon, self.bound, self.exponent)

    def __post_init__(self):
        if not self.scale < self.bound < 2**46 * self.scale:
            raise ValueError("bounds must be wider than the noise, sensitivity / epsilon for each answer, and at most "
                             "2^46 times as wide")

    @cached_property
    def scale(self):
        """The scale lambda of the noise: (1 + 2^-49 bound) / epsilon, rounded up."""
        return float_up((1 + _ROUNDING * Fraction(self.bound)) / self.epsilon)

    @cached_property
    def grid(self):
        """The least power of two that is at least lambda: results are multiples of it."""
        mantissa, exponent = math.frexp(self.scale)
        return math.ldexp(1.0, exponent - (mantissa == 0.5))

    @property
    def step(self):
        """That grid, in units of the answers."""
        return math.ldexp(self.grid, self.exponent)

    @property
    def variance(self):
        """The variance of the noise, about: that of Laplace noise and of rounding."""
        return (2 * self.scale**2 + self.grid**2 / 12) * 4.0**self.exponent

    @cached_property
    def reach(self):
        """The bound, in units of the answers."""
        return math.ldexp(self.bound, self.exponent)

    def tail(self, t):
        """Return the probability that a result is further than t from its answer, for the worst answer, rounded up.

        Noise, and rounding to the grid, for which it matters where the answer lies: see ``snapping.md``.
        """
        w = math.ldexp(max(0.0, min(float(t), 2.0**600)), -self.exponent) * (1 - 2.0**-50) - self.bound * 2.0**-50
        half = self.grid / 2
        if w < half:
            return 1.0
        nearer = self.grid - math.fmod(w, half) * 2  # in (0, grid]
        return min(1.0, (math.exp((half - w) / self.scale) + math.exp((half - w - nearer) / self.scale)) / 2 * _MORE)

    def half_width(self, confidence):
        """Return the least width that a result is further from its answer with 1 - confidence at most."""
        wanted, low = Fraction(1) - Fraction(confidence), 0.0
        high = self.step
        while self.tail(high) > wanted:
            low, high = high, 2 * high
        while low < (middle := (low + high) / 2) < high:
            low, high = (low, middle) if self.tail(middle) <= wanted else (middle, high)
        return high

    def snap(self, answer, sign, uniform):
        """Return the result of one answer for a sign (1 or -1) and a number in (0, 1); the arithmetic of the paper."""
        noisy = max(-self.bound, min(answer, self.bound)) + sign * self.scale * log(uniform)
        steps = noisy / self.grid  # (a power of two: exact)
        below = math.floor(steps)
        snapped = (below + (steps - below >= 0.5)) * self.grid
        return max(-self.bound, min(snapped, self.bound))


def uniform(stream):
    """Return a Fraction in (0, 1): a uniform real rounded down to 53 significant bits, however small it is.

    A double would end at 2^-1074, and with it what is possible for an answer: its neighbour's would end elsewhere.
    """
    zeros = 0
    while not (word := stream.word()):
        zeros += 64
    zeros += 64 - word.bit_length()
    return Fraction((1 << 52) + (stream.word() >> 12), 1 << 53 + zeros)


def log(x):
    """Return ln(x) of a dyadic Fraction in (0, 1), correctly rounded to a float, which no library promises."""
    places = x.denominator.bit_length() - 1
    exact, n_digits = Decimal(f"{x.numerator * 5**places}E-{places}"), 24
    while True:
        context = Context(prec=n_digits, rounding=ROUND_HALF_EVEN, Emax=999_999, Emin=-999_999)
        value = context.ln(exact)
        ends = float(context.next_minus(value)), float(context.next_plus(value))
        if ends[0] == ends[1]:
            return ends[0]
        n_digits += 20


class SnappingMechanism(AdditiveMechanism):
    """Release real answers by the snapping mechanism, the published repair of floating-point Laplace noise.

    Snapping is for comparison only: `LaplaceMechanism` needs no bounds, has a finer grid, less noise and a simpler
    proof, and is thousands of times faster.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours: floating-point Laplace noise with
    correctly rounded logarithms, rounded to a grid as coarse as the noise, with the scale that pays for all rounding.
    The answers are divided by the least power of two that is no less than the sensitivity, since no other division is
    exact. Each of n answers gets epsilon / n. The curator, who holds the data, must be trusted.

    **Utility.** Up to twice the noise of `LaplaceMechanism`, and rounding to a step of one to two times its scale.
    `tail` and `half_width` are bounds for the worst place of an answer between two steps: for another place the
    probability is up to 4.2 times smaller, and in the mean over all places up to 2.3 times.

    **Complexity.** O(1) an answer, one decimal logarithm: tens of microseconds.

    {parameters}
    References
    ----------
    Mironov (2012), "On significance of the least significant bits for differential privacy", CCS. The proof:
    ``snapping.md``.

    Examples
    --------
    >>> from dpestim.central import SnappingMechanism
    >>> mechanism = SnappingMechanism(1.0, sensitivity=1.0, bounds=(-1000.0, 1000.0), random_state=0)
    >>> mechanism.release(0.25) % mechanism.law().step
    0.0
    """

    _distance = "the difference of each answer"
    _own = ("bounds",)

    def _checked_bounds(self):
        bounds = super()._checked_bounds()
        if bounds is None or bounds[0] != -bounds[1]:
            raise ValueError("bounds must be declared, a pair (-B, B): snapping clips answers to this range")
        return bounds

    def _make_law(self, size):
        epsilon, _, sensitivity = self._budget()
        exponent = (math.ceil(sensitivity) - 1).bit_length() if sensitivity > 1 else 0
        while sensitivity <= Fraction(2) ** (exponent - 1):
            exponent -= 1
        return SnappingLaw(epsilon / size, math.ldexp(float(self._checked_bounds()[1]), -exponent), exponent)

    def _noisy(self, answers, law, source):
        reader = source.reader()
        out = np.empty(len(answers))
        for k, answer in enumerate(np.ldexp(answers, -law.exponent).tolist()):
            stream = BitStream(reader, k >> 32, k & 0xFFFFFFFF, 3)
            sign = 1 if stream.word() & 1 else -1
            out[k] = law.snap(answer, sign, uniform(stream))
        return np.ldexp(out, law.exponent)

    def _rounded(self, law):
        """Return 0: the law counts the rounding."""
        return 0.0

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "sensitivity": 1.0, "bounds": (-1000.0, 1000.0)},
            {"epsilon": 4.0, "sensitivity": 0.3, "bounds": (-500.0, 500.0), "neighbours": "add_remove"},
        ]
