"""A share of Gaussian noise: integers on a fine grid, of which enough keep what normal noise keeps."""

import math
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from dpestim.central.additive.discrete_gaussian import DiscreteGaussianLaw
from dpestim.central.additive.law import LARGEST
from dpestim.records import record

#: A share has at least this standard deviation, in fine steps.
_LEAST = 1 << 8
#: The variance of the rounding, in squared fine steps, by which discrete noise is made of normal noise in the proof.
_ROUNDING = 64
#: By so much more than that of one machine is the noise, relatively, which pays for all distances of laws.
_MORE = 1 + Fraction(1, 1 << 30)
#: The sensitivity is at most so many standard deviations: where less noise is asked for, there is more.
_WIDEST = 64
#: With fewer honest parties than this part of `honest`, or a sensitivity of more deviations, nothing is proved.
_FEWEST, _NARROWER = Fraction(1, 8), 8


@record
class GaussianLawOf(DiscreteGaussianLaw):
    """Discrete Gaussian noise of a given sigma; its own (epsilon, delta) says nothing."""

    given: float = 1.0

    @property
    def sigma(self):
        """The parameter sigma."""
        return self.given


@lru_cache(maxsize=256)
def gaussian_law_of(sigma):
    """Return the law of discrete Gaussian noise of a sigma, from a cache where it was made before."""
    return GaussianLawOf(Fraction(1), Fraction(1, 2), Fraction(1), 0, 1, sigma)


@record
class GaussianShare:
    """A share of noise that protects as normal noise of a standard deviation does, with `honest` shares.

    Parameters
    ----------
    sigma : float
        Of the noise of one machine, in steps.
    sensitivity : Fraction
        How far sums can move, in Euclidean norm, in steps.
    honest : int
    """

    sigma: float
    sensitivity: Fraction
    honest: int

    @cached_property
    def _whole(self):
        """The standard deviation that is asked for, in steps, squared."""
        return max(Fraction(self.sigma), self.sensitivity / _WIDEST) ** 2

    @cached_property
    def bits(self):
        """A fine step is 2^-bits steps."""
        return next(k for k in range(64) if self._whole * 4**k >= _LEAST**2 * self.honest)

    @cached_property
    def scale(self):
        """The parameter sigma of a share, in fine steps, a float that is used exactly."""
        wanted = (_MORE**2 * self._whole * 4**self.bits + _ROUNDING) / self.honest
        scale = math.sqrt(wanted)
        while Fraction(scale) ** 2 < wanted:
            scale = math.nextafter(scale, math.inf)
        return scale

    def draw(self, source, size):
        """Return the share of one party: so many integers modulo 2^64, in fine steps, an array of uint64."""
        return gaussian_law_of(self.scale).draw(source, size).view(np.uint64)

    def variance(self, n_shares):
        """Return the variance of a total of so many shares, in squared steps."""
        fine = Fraction(self.scale) ** 2 * n_shares / 4**self.bits
        return float(fine + Fraction(1, 12) * (1 - Fraction(1, 4**self.bits)))

    def half_width(self, confidence, n_shares):
        """Return what a total of so many shares exceeds with probability 1 - confidence at most, in steps."""
        wanted = 1 - Fraction(confidence)
        law, high = gaussian_law_of(self.scale * math.sqrt(n_shares)), 1

        def exceeds(width):  # (up to a factor of the distance, which is far below what floats tell)
            return law.beyond(math.ceil((width + Fraction(1, 2)) * 2**self.bits)) > wanted

        while exceeds(high):
            high *= 2
        low = 0
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if exceeds(middle) else (low, middle)
        return float(high)

    def left(self, rho, honest):
        """Return the concentrated privacy of what has rho with all shares, where only so many parties are honest."""
        if honest >= self.honest:
            return rho
        part = Fraction(honest, self.honest)
        if part < _FEWEST or self.sensitivity**2 > _NARROWER**2 * part * self._whole:
            return math.inf
        return rho / part


@lru_cache(maxsize=64)
def gaussian_share(sigma, sensitivity, honest):
    """Return the `GaussianShare`, from a cache where it was made before."""
    return GaussianShare(sigma, sensitivity, honest)


def raised(share, codes):
    """Return integers in fine steps modulo 2^64, an array of uint64: what a share is added to."""
    if not share.bits:
        return codes.view(np.uint64)
    most = LARGEST // 2 >> share.bits
    return (np.clip(codes, -most, most) << share.bits).view(np.uint64)


def lowered(share, total):
    """Return a total of words as integers in steps, rounded, cut as those of one machine are."""
    codes, bits = total.view(np.int64), share.bits
    if bits:  # (the sum of an integer and a half might not fit)
        codes = (codes >> bits) + ((codes >> (bits - 1)) & 1)
    return np.clip(codes, -LARGEST // 2, LARGEST // 2)
