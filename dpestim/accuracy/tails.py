"""Tails and concentration of the noise laws of `dpestim.central`, as floats, for many points at a time."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from dpestim.central.additive.discrete_gaussian import DiscreteGaussianLaw
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.additive.gaussian import RoundedGaussianLaw


def has_closed_form(law):
    """Tell whether `tails` takes no rational for each point."""
    return isinstance(law, DiscreteLaplaceLaw | RoundedGaussianLaw)


def tails(law, k):
    """Return P[Z >= k] for an array of numbers of at least 1, integers or floats that stand for some."""
    if isinstance(law, DiscreteLaplaceLaw):
        rate = float(law.rate_of_decay)
        return np.exp(-rate * k) / (1 + math.exp(-rate))
    if isinstance(law, RoundedGaussianLaw):
        return ndtr((0.5 - k) / law.sigma)
    return np.array([_tail(law, int(each)) for each in k])


@lru_cache(maxsize=1 << 15)
def _tail(law, k):
    return float(law.beyond(k)) / 2


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
