"""Noise in shares: what each owner of rows adds, so that the noise of enough of them keeps epsilon (`owners.md`)."""

import math
from functools import lru_cache

import numpy as np
from scipy.special import betainc, betaincc

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.additive.gaussian import RoundedGaussianLaw
from dpestim.distributed.exact_share import polya_share
from dpestim.distributed.gaussian_share import gaussian_share, lowered
from dpestim.privacy import ZCDP
from dpestim.privacy.rounding import float_up
from dpestim.records import record
from dpestim.shuffle.sums.polya import epsilon_of_share
from dpestim.statistics.calibrated_noise import Noise, noise_for

#: Blocks in the scale of the noise; tails below `_LEAST` have another bound, and floats are off by less than `_OFF`.
_BLOCKS, _LEAST, _OFF = 256, 1e-6, 1e-9


def share_of(law, honest):
    """Return the share of the noise of a law, so many of which keep its guarantee; ValueError for another law."""
    if type(law) is DiscreteLaplaceLaw:
        return polya_share(law.rate_of_decay, honest)
    if type(law) is RoundedGaussianLaw:
        return gaussian_share(law.sigma, law.sensitivity, honest)
    raise ValueError(f"noise of several parties must be discrete Laplace or Gaussian, and {type(law).__name__} is not: "
                     "take another mechanism")


@record
class SharedNoise:
    """Noise of which each of `n_owners` adds one share of `honest`: discrete Laplace, or Gaussian.

    Parameters
    ----------
    single : Noise
        What one machine adds.
    n_owners, honest : int
    """

    single: Noise
    n_owners: int
    honest: int

    @classmethod
    def maker(cls, n_owners, honest):
        """Return what stands in for `noise_for`: of the same law."""
        return lambda epsilon, delta, *change: cls(noise_for(epsilon, delta, *change), n_owners, honest)

    @property
    def law(self):
        """The law of the noise of `honest` owners."""
        return self.single.law

    @property
    def share(self):
        """What one owner adds, a `PolyaShare` or a `GaussianShare`."""
        return share_of(self.law, self.honest)

    @property
    def is_normal(self):
        """Whether the noise is Gaussian."""
        return bool(self.law.delta)

    @property
    def variance(self):
        """The variance of a number, with the noise of all owners."""
        if self.is_normal:
            return self.share.variance(self.n_owners) * float(self.single.unit) ** 2
        return self.single.variance * self.n_owners / self.honest

    def codes(self, numbers):
        """Return integers in units, an array of int64."""
        return self.single.codes(numbers)

    def total(self, words):
        """Return the sum of what all owners sent as integers in units."""
        return lowered(self.share, words)

    def scaled(self, codes):
        """Return integers in units as numbers."""
        return self.single.scaled(codes)

    def add(self, numbers, source):
        """Return the total of the integers of all owners with their shares, `scaled`: those who add up are at hand."""
        if source.sums is None:
            raise TypeError("noise in shares needs the sums of all owners")
        return self.scaled(self.law.add(self.codes(numbers).copy(), source))

    def half_width(self, confidence):
        """Return what the error of a number exceeds with probability 1 - confidence at most."""
        if self.is_normal:
            width = _normal_width(self.share, confidence, self.n_owners)
        elif self.n_owners == self.honest:
            width = self.law.half_width(confidence)
        else:
            width = _half_width(float(self.law.rate_of_decay), self.n_owners / self.honest, confidence)
        return (width + (self.n_owners / 2 if self.single.unit > 1 else 0.0)) * self.single.unit

    def epsilon_left(self, size, honest):
        """Return the epsilon, rounded up, of so many integers where only so many owners are honest."""
        if honest >= self.honest:
            return float_up(self.law.epsilon)
        if honest < 1:
            return math.inf
        if self.is_normal:
            rho = self.share.left(self.law.rho, honest)
            return math.inf if rho == math.inf else float_up(ZCDP(rho).epsilon_at(self.law.delta))
        steps = max(1, math.floor(self.law.sensitivity))
        moved = min(size, steps)
        return moved * epsilon_of_share(self.law.rate_of_decay, -(-steps // moved), honest / self.honest)


@lru_cache(maxsize=128)
def _normal_width(share, confidence, n_owners):
    return share.half_width(confidence, n_owners)


@lru_cache(maxsize=128)
def _half_width(rate, shares, confidence):
    """Return a width that X - X' exceeds with probability 1 - confidence at most, both NB(shares, 1 - e^-rate)."""
    wanted, success = 1 - confidence, -math.expm1(-rate)
    if wanted < _LEAST:
        return float(_tail(shares, success, wanted / 2 * (1 - _LEAST)))
    block = max(1, int(1 / (rate * _BLOCKS)))
    last = _tail(shares, success, _OFF / 100) // block + 2
    law = np.diff(betainc(shares, np.arange(1, last + 1) * float(block), success), prepend=0.0)  # of F
    apart = np.fft.irfft(np.abs(np.fft.rfft(law, 2 * last)) ** 2, 2 * last)[:last]  # of F - F' = 0, 1, ...
    inside = np.cumsum(apart * np.where(np.arange(last), 2.0, 1.0))
    return float((np.argmax(inside >= confidence + _OFF) + 1) * block - 1)


def _tail(shares, success, wanted):
    """Return the least k for which P[X >= k] is at most this, of X of NB(shares, success)."""
    low, high = 0, 1
    while betaincc(shares, float(high), success) > wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if betaincc(shares, float(middle), success) > wanted else (low, middle)
    return high
