"""Discrete Gaussian noise: integers with probability proportional to e^(-z^2 / (2 sigma^2))."""

import math
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpestim._core import noise
from dpestim.central.additive.discrete_laplace import digit_laws, lanes_of, signed
from dpestim.central.additive.law import NoiseLaw, settle_digits
from dpestim.central.additive.mechanism import AdditiveMechanism
from dpestim.central.additive.normal import discrete_sigma, upper_tail
from dpestim.central.exact_bernoulli import exp_bounds, exponential_tables, power, threshold
from dpestim.privacy import ZCDP
from dpestim.privacy.rounding import float_up
from dpestim.records import record

#: Up to this standard deviation tails and the variance are summed term by term.
_WIDE = 1 << 12
#: How far such a sum, and an integral besides its bound, can be off, relatively.
_LOOSE, _TINY = Fraction(1, 10**12), Fraction(1, 10**30)


@record
class DiscreteGaussianLaw(NoiseLaw):
    """P[Z = z] proportional to e^(-z^2 / (2 sigma^2)): (epsilon, delta) for moves of an L2 norm, `size` integers."""

    size: int = 1
    norm: ClassVar = 2

    def __post_init__(self):
        _ = self._lanes  # ValueError, where integers are too small

    @cached_property
    def sigma(self):
        """The parameter sigma, a float that is used exactly."""
        return discrete_sigma(self.epsilon, self.delta, self.sensitivity, self.size)[0]

    @cached_property
    def true_delta(self):
        """The delta of `sigma`, rounded up."""
        return discrete_sigma(self.epsilon, self.delta, self.sensitivity, self.size)[1]

    @cached_property
    def rho(self):
        """sensitivity^2 / (2 sigma^2), rounded up."""
        return Fraction(float_up(self.sensitivity**2 / (2 * self._square)))

    @cached_property
    def curve(self):
        """Its concentrated privacy, which is that of any number of answers."""
        return ZCDP(self.rho)

    @cached_property
    def _square(self):
        return Fraction(self.sigma) ** 2

    @cached_property
    def _scale(self):
        return math.isqrt(math.floor(self._square)) + 1

    @cached_property
    def _lanes(self):
        return digit_laws(Fraction(1, self._scale))

    @cached_property
    def _arguments(self):
        """What the kernel takes: see `_core/noise.pyx` and the proof."""
        digits, overflow = self._lanes
        fraction = 62 - len(digits)
        inverse = Fraction(1 << 64) / (Fraction(self.sigma) * (1 << fraction))
        bits = min(56, 63 - math.floor(math.log2(inverse)))
        return (
            self.per, np.array([threshold(p, 32) for p in (*digits, overflow)], np.uint32),
            math.floor(self._square / self._scale * (1 << fraction)), math.floor(inverse * (1 << bits)),
            fraction, bits, 512 + (1 << 64 - bits + 6), exponential_tables(),
        )

    @cached_property
    def per(self):
        """Words an attempt: lanes for the sign, every digit and the overflow, and a word for the coin."""
        return (len(self._lanes[0]) + 3) // 2 + 1

    @cached_property
    def rate(self):
        """The share of attempts that is accepted, about."""
        t, s = self._scale, self.sigma
        mass = 2 * sum(math.exp(-z * z / (2 * s * s)) for z in range(1, int(9 * s) + 1)) + 1 if s < 9 else 2.5066 * s
        return mass * math.exp(-s * s / (2 * t * t)) * -math.expm1(-1 / t) / 2

    def _attempts(self, words, out):
        return noise.discrete_gaussian(words, *self._arguments, out)

    def _settle(self, words, stream):
        from dpestim.exact_reals import Real  # (ties are rare)

        lanes = lanes_of(words)
        z = signed(settle_digits(lanes[1:], *self._lanes, stream), lanes[0])
        if z is None:
            return None
        away = abs(z) - self._square / self._scale
        return z if Real(stream, words[-1], 64).is_below(power(away**2 / (2 * self._square))) else None

    @cached_property
    def _total(self):
        """Fractions around the sum of all weights."""
        if self.sigma < 40:
            ends = [[exp_bounds(z * z / (2 * self._square), 60)[side] for z in range(math.ceil(13 * self.sigma) + 20)]
                    for side in (0, 1)]
            low, high = (2 * sum(part) - part[0] for part in ends)
            return low, high * (1 + Fraction(1, 10**30))
        # by Poisson summation sigma sqrt(2 pi) (1 + 2 e^(-2 pi^2 sigma^2) + ...): as good as exact
        middle = Fraction(self.sigma) * _SQRT_2_PI
        return middle * (1 - Fraction(1, 10**30)), middle * (1 + Fraction(1, 10**30))

    def probability(self, z):
        """Return Fractions around P[Z = z]."""
        low, high = exp_bounds(z * z / (2 * self._square), 60)
        return low / self._total[1], high / self._total[0]

    def beyond(self, k):
        """Return an upper bound of P[abs(Z) >= k]."""
        return self._tails(k)[1]

    def beyond_at_least(self, k):
        """Return a lower bound of P[abs(Z) >= k]."""
        return self._tails(k)[0]

    def _tails(self, k):
        """Return Fractions around P[abs(Z) >= k]: a sum, or for a wide law an integral (see the proof)."""
        first = [2 * end for end in self.probability(k)]
        if first[1] == 0 or k > 30 * self.sigma:  # (where floats still reach)
            return first[0], first[1] * (1 + Fraction(self._square) / k)
        if self.sigma <= _WIDE:
            z = np.arange(k, k + math.ceil(40 * self.sigma) + 20, dtype=np.float64)
            total = Fraction(float(np.exp(-(z - k) * (z + k) / (2 * self.sigma**2)).sum()))
            return first[0] * total * (1 - _LOOSE), first[1] * total * (1 + _LOOSE)
        x = (Decimal(k) - Decimal("0.5")) / Decimal(self.sigma)
        middle, off = 2 * Fraction(upper_tail(x)), Fraction((x * x + x + 2) / 20) / self._square + _TINY
        return middle * (1 - off), middle * (1 + off)

    @property
    def variance_steps(self):
        """The variance of Z: at most sigma^2."""
        if self.sigma > 40:
            return self.sigma**2
        z = np.arange(1, math.ceil(40 * self.sigma) + 2, dtype=np.float64)
        p = np.exp(-(z**2) / (2 * self.sigma**2))
        return float(2 * (z * z * p).sum() / (1 + 2 * p.sum()))


_SQRT_2_PI = Fraction("2.506628274631000502415765284811045253006986740609938316629923")  # to 60 digits


class DiscreteGaussianMechanism(AdditiveMechanism):
    """Release integers with discrete Gaussian noise, such as a histogram of which one person changes many counts.

    **Privacy.** (epsilon, delta)-differential privacy in the central model, for the declared neighbours; also 1 / (2
    r^2)-concentrated, r being sigma over the sensitivity. For one integer delta is summed over all outputs. For several
    integers delta follows from concentrated privacy. Both are upper bounds, rounded up. The curator, who holds the
    data, must be trusted.

    **Utility.** Unbiased; the variance is at most sigma^2. For several answers sigma is some 8 per cent larger than
    that of `GaussianMechanism` at epsilon 1 and delta 1e-5: take `GaussianMechanism` where results need not be
    integers.

    **Complexity.** Expected O(1) an answer: 1.3 to 1.5 attempts of 32 random bits a digit.

    {parameters}
    References
    ----------
    Canonne, Kamath, Steinke (2020), "The discrete Gaussian for differential privacy", NeurIPS: the sampler, the exact
    condition for one integer, and what concentrated privacy gives for several. The proof: ``discrete_gaussian.md``.

    Examples
    --------
    >>> from dpestim.central import DiscreteGaussianMechanism
    >>> mechanism = DiscreteGaussianMechanism(1.0, delta=1e-5, sensitivity=1, random_state=0)
    >>> abs(mechanism.release(1000) - 1000) < 30
    True
    >>> print(f"{mechanism.variance() ** 0.5:.2f} {mechanism.variance(size=100) ** 0.5:.2f}")
    3.74 4.05
    """

    _integers = True
    _own = ("delta",)
    _more_parameters = """
    {delta that must be declared}
    """
    _distance = "the Euclidean norm of the differences"
    _noise = DiscreteGaussianLaw
    _sizes = (1, 2)  # one integer needs less noise; of several, all have one law

    def __init__(self, epsilon=1.0, *, delta=None, sensitivity=None, bounds=None, neighbours=None,
                 ledger=None, random_state=None):
        super().__init__(epsilon, sensitivity=sensitivity, bounds=bounds, neighbours=neighbours, ledger=ledger,
                         random_state=random_state)
        self.delta = delta

    @classmethod
    def _law_of(cls, epsilon, delta, sensitivity, exponent, size):
        return cls._noise(epsilon, delta, sensitivity, exponent, min(size, 2))

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "delta": 1e-5, "sensitivity": 1},
            {"epsilon": 2.0, "delta": 1e-4, "sensitivity": 2, "bounds": (-1000, 1000), "neighbours": "add_remove"},
        ]
