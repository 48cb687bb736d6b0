"""Tails and concentration of the noise laws of `dpestim.central`, as floats, for many points at a time."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from dpestim.central.additive.discrete_gaussian import DiscreteGaussianLaw
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.additive.gaussian import RoundedGaussianLaw
from dpestim.central.additive.staircase import StaircaseLaw

#: Up to this sigma tails of a discrete Gaussian are summed.
_WIDE = 1 << 13


def tails(law, k):
    """Return P[Z >= k] for an array of numbers of at least 1, integers or floats that stand for some."""
    if isinstance(law, DiscreteLaplaceLaw):
        rate = float(law.rate_of_decay)
        return np.exp(-rate * k) / (1 + math.exp(-rate))
    if isinstance(law, RoundedGaussianLaw):
        return ndtr((0.5 - k) / law.sigma)
    if isinstance(law, StaircaseLaw):
        return _stairs(law, k) / (2 * _stairs(law, np.zeros(1)) - 1)
    if isinstance(law, DiscreteGaussianLaw):
        if law.sigma > _WIDE:
            x = (k - 0.5) / law.sigma  # (discrete_gaussian.md says how far off this may be)
            return ndtr(-x) * (1 + (x * x + x + 2) / (20 * law.sigma**2))
        known = _sums(law.sigma)
        return known[np.minimum(k, len(known) - 1).astype(np.int64)]
    raise ValueError(f"the tails of {type(law).__name__} are not known: take another mechanism")


def _stairs(law, k):
    """Return the sums of the weights of k, k + 1, ..., that of 0 being 1."""
    stair, place = np.divmod(k, law.width)
    up, fall = np.maximum(0, law.upper - place), math.exp(-float(law.epsilon))
    rest = (law.upper + fall * (law.width - law.upper)) / -math.expm1(-float(law.epsilon))
    return np.exp(-float(law.epsilon) * stair) * (
        up + fall * (law.width - np.maximum(place, law.upper)) + fall * rest)


@lru_cache(maxsize=16)
def _sums(sigma):
    """Return P[Z >= k] for k = 0, 1, ..., as far as floats reach."""
    z = np.arange(math.ceil(38 * sigma) + 2)
    weights = np.exp(-np.square(z / sigma) / 2)
    sums = np.cumsum(weights[::-1])[::-1]
    return sums / (2 * sums[0] - 1)


@lru_cache(maxsize=512)
def steps_beyond(law, lost):
    """Return the least integer that abs(Z) exceeds with probability `lost`, a Fraction, at most."""
    return round(law.half_width(1 - lost) / law.step)


def log_moment(law, s):
    """Return an upper bound of ln E[e^(s Z)], s >= 0; infinity where none is known (``accuracy.md``)."""
    if isinstance(law, DiscreteLaplaceLaw):
        rate = float(law.rate_of_decay)
        if s >= rate:
            return math.inf
        return 2 * _log1mexp(rate) - _log1mexp(rate - s) - _log1mexp(rate + s)
    if isinstance(law, RoundedGaussianLaw):
        return (s * law.sigma) ** 2 / 2 + s / 2
    if isinstance(law, DiscreteGaussianLaw):
        return (s * law.sigma) ** 2 / 2
    return math.inf


def _log1mexp(x):
    """Return ln(1 - e^-x)."""
    return math.log(-math.expm1(-x))


def largest_scale(law):
    """Return where `log_moment` begins to be infinite; what is of use is below."""
    return float(law.rate_of_decay) if isinstance(law, DiscreteLaplaceLaw) else 40 / math.sqrt(law.variance_steps)


def share(beta, parts):
    """Return an equal part of a probability, a Fraction."""
    return Fraction(beta) / parts
