"""Gaussian noise: exact normal numbers, rounded to a public grid. Its mechanism is in `gaussian_mechanism.py`."""

import math
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import ClassVar

import numpy as np

from dpestim import accounting
from dpestim._core import noise
from dpestim.central.additive.law import NoiseLaw
from dpestim.central.additive.normal import analytic_ratio, classic_ratio, upper_tail
from dpestim.central.exact_bernoulli import exp_bounds, exponential_tables
from dpestim.privacy import ZCDP
from dpestim.privacy.rounding import float_up
from dpestim.records import record

#: By the name of a calibration, the least standard deviation over the sensitivity.
RATIOS = {"analytic": analytic_ratio, "classic": classic_ratio}
#: How far the kernel's e^-(x (2 k + x) / 2) may be off, in units of 2^-64 (gaussian.md).
_SLACK = 512
_TINY = Fraction(1, 10**30)


@record
class RoundedGaussianLaw(NoiseLaw):
    """Z is the integer nearest to sigma times a normal number, sigma in steps: (epsilon, delta) for an L2 norm."""

    calibration: str = "analytic"
    norm: ClassVar = 2
    per: ClassVar = 3
    #: a half-normal density over its envelope: sqrt(pi / 2) / sum of e^(-k^2 / 2)
    rate: ClassVar = 0.7148

    def __post_init__(self):
        if not 2**-11 <= self.sigma < 2**50:
            raise ValueError("epsilon and delta are too small or too large for the sensitivity, because the noise "
                             "would not fit 64-bit integers: change epsilon, delta or the unit of the answers")

    @property
    def slack(self):
        """Why much less than delta is used."""
        return "the textbook's formula is not tight" if self.calibration == "classic" else ""

    @cached_property
    def sigma(self):
        """The standard deviation before rounding, in steps, a float that is used exactly."""
        return math.nextafter(
            RATIOS[self.calibration](self.epsilon, self.delta) * float_up(self.sensitivity), math.inf)

    @cached_property
    def rho(self):
        """1 / (2 ratio^2), rounded up: sigma is at least ratio times the sensitivity, for any number of answers."""
        return Fraction(float_up(1 / (2 * Fraction(RATIOS[self.calibration](self.epsilon, self.delta)) ** 2)))

    @cached_property
    def curve(self):
        """The losses of normal noise, which are those of any number of answers; rho where one may be very large."""
        try:
            ratio = Fraction(RATIOS[self.calibration](self.epsilon, self.delta))
            return accounting.PrivacyLossDistribution.gaussian(ratio)
        except ValueError:  # hardly any noise
            return ZCDP(self.rho)

    @cached_property
    def _factor(self):
        """The standard deviation as (factor, shift): factor / 2^shift."""
        mantissa, exponent = math.frexp(self.sigma)
        return int(math.ldexp(mantissa, 53)), 53 - exponent

    def _attempts(self, words, out):
        return noise.rounded_gaussian(words, _INTEGER_THRESHOLDS, *self._factor, _SLACK, exponential_tables(), out)

    def _settle(self, words, stream):
        from dpestim.exact_reals import Real  # (ties are rare)

        whole, x, coin = Real(stream, words[0] >> 1, 63), Real(stream, words[1], 64), Real(stream, words[2], 64)
        k = 0
        while not whole.is_below(_at_most(k)):
            k += 1

        def shown(n_digits):
            if n_digits > 40:  # asked again: the fraction must be known better too
                x.extend()
            least, most = (Fraction(d, 1 << x.n_bits) for d in (x.digits, x.digits + 1))
            return (exp_bounds(most * (2 * k + most) / 2, n_digits)[0],
                    exp_bounds(least * (2 * k + least) / 2, n_digits)[1])

        if not coin.is_below(shown):
            return None
        factor, shift = self._factor
        while True:
            ends = (((k << x.n_bits) + x.digits + i) * factor + (1 << x.n_bits + shift - 1) for i in (0, 1))
            low, high = (end >> x.n_bits + shift for end in ends)
            if low == high:
                return -low if words[0] & 1 else low
            x.extend()

    def probability(self, z):
        """Return Fractions around Phi((z + 1/2) / sigma) - Phi((z - 1/2) / sigma)."""
        sigma, z = Decimal(self.sigma), abs(z)
        if z == 0:
            middle = 1 - 2 * Fraction(upper_tail(Decimal("0.5") / sigma))
        else:
            ends = (upper_tail((z + side * Decimal("0.5")) / sigma) for side in (-1, 1))
            middle = Fraction(next(ends)) - Fraction(next(ends))
        return middle * (1 - _TINY), middle * (1 + _TINY)

    def beyond(self, k):
        """Return an upper bound of P[abs(Z) >= k] = 2 (1 - Phi((k - 1/2) / sigma))."""
        x = (Decimal(k) - Decimal("0.5")) / Decimal(self.sigma)
        return 2 * Fraction(upper_tail(min(x, Decimal(100)))) * (1 + _TINY)

    def beyond_at_least(self, k):
        """Return a lower bound of it; 0 where `beyond` is cut."""
        return Fraction(0) if k > 99 * self.sigma else super().beyond_at_least(k)

    @cached_property
    def variance_steps(self):
        """The variance of Z: that before rounding, and 1/12, but for e^(-2 pi^2 sigma^2); summed where that matters."""
        if self.sigma >= 2:
            return self.sigma**2 + 1 / 12
        # E[Z^2] is the sum of (2 k - 1) P[abs(Z) >= k]; no float of a variance is 0, as errors are divided by it
        return max(1e-300, sum((2 * k - 1) * math.erfc((k - 0.5) / (self.sigma * math.sqrt(2))) for k in range(1, 90)))


def _at_most(k):
    """Return the probability that the integer part of the envelope is at most k: e^(-i^2 / 2) summed to k, over all."""

    def bounds(n_digits):
        low, high = _envelope(max(k, math.isqrt(5 * n_digits)) + 2, n_digits)
        return low[k] / high[-1], high[k] / low[-1]

    return bounds


@lru_cache(maxsize=2)
def _envelope(last, n_digits):
    """Return lower and upper bounds of e^(-i^2 / 2) summed to 0, 1, ..., `last`, and over all i."""
    parts = [exp_bounds(Fraction(i * i, 2), n_digits + 10) for i in range(last + 1)]
    rest = 2 * exp_bounds(Fraction((last + 1) ** 2, 2), n_digits)[1]  # the terms beyond at least halve
    return [list(accumulate((*ends, more))) for ends, more in zip(zip(*parts), (0, rest))]


#: The first 63 bits of those probabilities, ``threshold(_at_most(k), 63)``, up to the one whose bits are all 1: the
#: number is at least 9. (They are written out, as a first fit would take 2 ms to find them.)
_INTEGER_THRESHOLDS = np.array(
    [0x49012D8CA4167395, 0x7548BCC2A3D077C9, 0x7F2A0AE374ED25D7, 0x7FF9A9198CC84608, 0x7FFFEE18DC77ACA1,
     0x7FFFFFED516B91A2, 0x7FFFFFFFF8D106D2, 0x7FFFFFFFFFFEFBB6, 0x7FFFFFFFFFFFFFF2, 0x7FFFFFFFFFFFFFFF], np.uint64)


def __getattr__(name):
    if name == "GaussianMechanism":  # (it was defined here, and pickles of then look for it here)
        from dpestim.central.additive.gaussian_mechanism import GaussianMechanism

        return GaussianMechanism
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
