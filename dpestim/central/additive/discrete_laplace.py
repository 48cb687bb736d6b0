"""Discrete Laplace noise: integers whose probability falls by the same factor with each step away from 0.

Its mechanism is in `discrete_laplace_mechanism.py`: of those who add its noise, most release no answers of others.
"""

import math
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from dpestim import accounting
from dpestim._core import noise
from dpestim.central.additive.law import NoiseLaw, settle_digits
from dpestim.central.exact_bernoulli import binary_digit, exp_bounds, power, threshold
from dpestim.records import record

#: The kernel's digits reach numbers that are larger with a probability below e^-24; most digits that it has.
_REACH, _MOST_DIGITS = 24, 60
#: Of powers of bounds that are multiplied up.
_BITS = 192
#: Sensitivities up to which losses are added up as those of integers, and from which on a step more is none.
_COARSE, _FINE = 64, Fraction(4096)


def n_digits_of(rate):
    """Return how many binary digits of a geometric number of this rate the kernel draws."""
    n = max(1, (math.ceil(_REACH / rate) - 1).bit_length())
    if n > _MOST_DIGITS:
        raise ValueError("epsilon is too small for the sensitivity, because the noise would exceed 64-bit integers: "
                         "take a larger epsilon")
    return n


@lru_cache(maxsize=256)  # (of public numbers; every fit makes its laws anew, and they are the same ones)
def digit_laws(rate):
    """Return (the probability of each binary digit of a geometric number of this rate, that of exceeding them)."""
    n = n_digits_of(rate)
    return tuple(binary_digit(rate * (1 << k)) for k in range(n)), power(rate * (1 << n))


@lru_cache(maxsize=256)
def _thresholds_of(rate):
    """Return the first 32 bits of these probabilities: squares of bounds around e^-rate are bounds for later digits."""
    low, high = (math.floor(end * (1 << _BITS)) + k for k, end in enumerate(exp_bounds(rate, 60)))
    found = []
    for _ in range(n_digits_of(rate)):
        found.append([(y << 32) // ((1 << _BITS) + y) for y in (low, high)])
        low, high = low * low >> _BITS, (high * high >> _BITS) + 1
    found.append([low >> _BITS - 32, high >> _BITS - 32])
    if any(below != above for below, above in found):  # (hardly ever)
        digits, overflow = digit_laws(rate)
        found = [[threshold(p, 32)] for p in (*digits, overflow)]
    found = np.array([first for first, *_ in found], np.uint32)
    found.flags.writeable = False
    return found


@record
class DiscreteLaplaceLaw(NoiseLaw):
    """P[Z = z] proportional to e^(-rate abs(z)), rate = epsilon / sensitivity: pure epsilon, for that L1 norm."""

    norm: ClassVar = 1

    def __post_init__(self):
        n_digits_of(self.rate_of_decay)  # ValueError, where integers are too small

    @property
    def rate_of_decay(self):
        """What a step further costs in the logarithm of the probability, exactly."""
        return self.epsilon / self.sensitivity

    @property
    def decay(self):
        """Every step costs as much."""
        return 1, self.rate_of_decay

    @property
    def curve(self):
        """Its privacy losses; None where one may be larger than is accounted for."""
        return losses_of(self.epsilon, min(self.sensitivity, _FINE))

    @cached_property
    def _lanes(self):
        return digit_laws(self.rate_of_decay)

    @cached_property
    def _thresholds(self):
        return _thresholds_of(self.rate_of_decay)

    @cached_property
    def per(self):
        """Words an attempt: lanes for the sign, every digit and the overflow."""
        return (n_digits_of(self.rate_of_decay) + 3) // 2

    @cached_property
    def rate(self):
        """The share of attempts that is accepted: all but minus zero."""
        return 0.5 + 0.5 * math.exp(-float(self.rate_of_decay))

    def _attempts(self, words, out):
        return noise.discrete_laplace(words, self.per, self._thresholds, out)

    def _settle(self, words, stream):
        lanes = lanes_of(words)
        size = settle_digits(lanes[1:], *self._lanes, stream)
        return signed(size, lanes[0])

    def probability(self, z):
        """Return Fractions around (1 - a) / (1 + a) a^abs(z), a = e^-rate."""
        low, high = exp_bounds(self.rate_of_decay, 60)
        least, most = exp_bounds(self.rate_of_decay * abs(z), 60)
        return (1 - high) / (1 + high) * least, (1 - low) / (1 + low) * most

    def beyond(self, k):
        """Return an upper bound of P[abs(Z) >= k] = 2 a^k / (1 + a)."""
        return 2 * exp_bounds(self.rate_of_decay * k, 40)[1] / (1 + exp_bounds(self.rate_of_decay, 40)[0])

    @cached_property
    def variance_steps(self):
        """The variance of Z, 2 a / (1 - a)^2."""
        rate = float(self.rate_of_decay)
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2


@lru_cache(maxsize=256)
def losses_of(epsilon, sensitivity):
    """Return the losses of an L1 sensitivity, Fractions, or None: those of one integer that moves by all of it.

    Up to a sensitivity of `_COARSE` as they are; beyond, those of real Laplace noise on what moves by one more.
    """
    moved = math.floor(sensitivity)
    try:
        if not moved:
            return None  # (integers cannot move by less than 1)
        if moved == 1:
            return accounting.PrivacyLossDistribution.pure(epsilon / sensitivity)
        if moved <= _COARSE:
            return accounting.PrivacyLossDistribution.discrete_laplace(sensitivity / epsilon, sensitivity=moved)
        return accounting.PrivacyLossDistribution.laplace(sensitivity / epsilon, sensitivity=moved + 1)
    except ValueError:  # a loss above 500
        return None


@lru_cache(maxsize=256)
def law_of_rate(rate):
    """Return the law that is proportional to e^(-rate abs(z)), a Fraction."""
    return DiscreteLaplaceLaw(rate, Fraction(0), Fraction(1), 0)


def lanes_of(words):
    """Return the lanes of 32 bits of words, a list of ints."""
    return np.array(words, np.uint64).view(np.uint32).tolist()


def signed(size, sign):
    """Return a number with its sign; None for minus zero, so that there is one zero."""
    return (-size if size else None) if sign & 1 else size


def __getattr__(name):
    if name == "DiscreteLaplaceMechanism":  # (it was defined here, and pickles of then look for it here)
        from dpestim.central.additive.discrete_laplace_mechanism import DiscreteLaplaceMechanism

        return DiscreteLaplaceMechanism
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
