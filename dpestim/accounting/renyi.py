"""Renyi and concentrated privacy: curves that add up, and what they say about (epsilon, delta)."""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, logsumexp

from dpestim.privacy.concentrated import ConcentratedLaw, PureLaw, curve_delta, curve_epsilon
from dpestim.privacy.outward import OUTWARD, amount, float_up, positive, ratio, share, whole

#: Sampled Gaussians know whole orders up to this one.
_LAST = 256


@dataclass(frozen=True)
class _Laplace:
    epsilon: float

    def cgf(self, t):
        e, a, b = t * self.epsilon, (1 + t) / (1 + 2 * t), t / (1 + 2 * t)
        near = np.log1p(a * np.expm1(np.minimum(e, 1)) + b * np.expm1(-e - self.epsilon))
        far = e + np.log(a + b * np.exp(-2 * e - self.epsilon))
        return np.where(e <= 1, near, far) + 2.0**-48 * e


@dataclass(frozen=True)
class _SampledGaussian:
    shift: float
    rate: float

    def cgf(self, t):
        t = np.asarray(t, np.float64)
        known, low = _whole_orders(self.shift, self.rate), np.minimum(np.floor(t), _LAST - 2).astype(int)
        between = known[low] + (t - low) * (known[low + 1] - known[low])
        return np.where(t <= _LAST - 1, between * (1 + OUTWARD), math.inf)


@lru_cache(maxsize=64)
def _whole_orders(shift, rate):
    """Return the cgf at t = 0, 1, ..., _LAST - 1, as floats that are upper bounds."""
    out = np.zeros(_LAST)
    for t in range(1, _LAST):
        k = np.arange(2.0, t + 2)
        x = k * (k - 1) * shift**2 / 2
        logs = (gammaln(t + 2) - gammaln(k + 1) - gammaln(t + 2 - k) + (t + 1 - k) * math.log1p(-rate)
                + k * math.log(rate) + x + np.log(-np.expm1(-x)))
        out[t] = np.logaddexp(0.0, logsumexp(logs)) * (1 + 1e-11)
    return out


class RenyiCurve:
    """An upper bound of the Renyi divergences of a series of releases, by order; curves add up.

    Less tight than a `PrivacyLossDistribution`, but it needs no schedule of *results*: `RenyiFilter` and
    `ConcentratedFilter` use it for budgets that are chosen as results come in. Made by one of the class methods.

    **Privacy.** Arithmetic about declared numbers; it touches no data. It holds for the neighbours that the
    sensitivities were declared for; a sampled one for neighbours of which one has one record more.

    **Complexity.** O(1) orders for each different release; microseconds.

    Attributes
    ----------
    is_sampled : bool
        Whether it holds for add/remove neighbours only, because of Poisson sampling.

    References
    ----------
    Mironov (2017), "Renyi differential privacy", CSF, propositions 6 and 7. Bun, Steinke (2016), "Concentrated
    differential privacy", TCC. Canonne, Kamath, Steinke (2020), "The discrete Gaussian for differential privacy",
    NeurIPS, proposition 12 (conversion). Mironov, Talwar, Zhang (2019), "Renyi differential privacy of the sampled
    Gaussian mechanism", section 3.3. The proof: ``renyi.md``.

    Examples
    --------
    >>> from dpestim.accounting import RenyiCurve
    >>> round(RenyiCurve.concentrated(0.1).epsilon(1e-6), 3)
    2.142
    >>> both = RenyiCurve.gaussian(10.0).compose(30) + RenyiCurve.laplace(20.0)
    >>> round(both.epsilon(1e-6), 3)
    2.685
    """

    def __init__(self, laws, is_sampled=False):
        self._laws = laws  # {law: how often}
        self.is_sampled = is_sampled

    @classmethod
    def pure(cls, epsilon):
        """Return that of any epsilon-private release, randomised response included; epsilon is above 0."""
        return cls({PureLaw(_small(positive(epsilon, "epsilon"))): 1})

    @classmethod
    def concentrated(cls, rho):
        """Return that of any rho-concentrated release (zCDP); rho is above 0."""
        return cls({ConcentratedLaw(float_up(positive(rho, "rho"))): 1})

    @classmethod
    def laplace(cls, scale, *, sensitivity=1.0):
        """Return that of Laplace noise of a scale on one answer that changes by `sensitivity` at most."""
        return cls({_Laplace(_small(ratio(sensitivity, scale))): 1})

    @classmethod
    def gaussian(cls, sigma, *, sensitivity=1.0, sampling_rate=1.0):
        """Return that of Gaussian noise, continuous or (without sampling) discrete.

        Parameters
        ----------
        sigma : float
            Standard deviation.
        sensitivity : float, default=1.0
            Largest Euclidean distance of the answers of neighbours.
        sampling_rate : float, default=1.0
            Below 1: each record takes part with this probability, on its own and in secret.
        """
        shift, rate = ratio(sensitivity, sigma), share(sampling_rate, "sampling_rate")
        if float_up(rate) == 1:
            return cls({ConcentratedLaw(shift**2 / 2): 1}, rate < 1)
        return cls({_SampledGaussian(shift, float_up(rate)): 1}, True)

    def compose(self, n):
        """Return that of n runs of all of it; n is an integer of at least 1."""
        n = whole(n, "n")
        return type(self)({law: n * count for law, count in self._laws.items()}, self.is_sampled)

    def __add__(self, other):
        """Return that of both together."""
        if not isinstance(other, RenyiCurve):
            return NotImplemented
        return type(self)(dict(Counter(self._laws) + Counter(other._laws)), self.is_sampled or other.is_sampled)

    def __radd__(self, other):
        """Let ``sum(...)`` start at 0."""
        return self if other == 0 else NotImplemented

    def __repr__(self):
        return f"<RenyiCurve of {sum(self._laws.values())} releases>"

    def divergence(self, order):
        """Return an upper bound of the divergence of an order above 1."""
        t = float(positive(order, "order")) - 1
        if t <= 0:
            raise ValueError("order must be above 1")
        return float(self.cgf(np.array([t]))[0] / t) * (1 + OUTWARD)

    def cgf(self, t):
        """Return an upper bound of ln E[e^(t loss)], the order being 1 + t; t is an array of numbers above 0."""
        return sum(count * law.cgf(t) for law, count in self._laws.items()) * (1 + OUTWARD)

    def delta(self, epsilon):
        """Return delta at an epsilon of at least 0, an upper bound; 0 from the sum on, where all releases are pure."""
        return 0.0 if amount(epsilon, "epsilon") >= self._pure else curve_delta(self, epsilon)

    def epsilon(self, delta):
        """Return epsilon at a delta from 0 to 1, an upper bound; inf where delta is 0 and a release is not pure."""
        return min(float_up(self._pure), curve_epsilon(self, delta))

    @property
    def _pure(self):
        """The sum of the epsilons, exactly (Renyi's bounds end above it); inf where a release is not pure."""
        if not all(hasattr(law, "epsilon") for law in self._laws):
            return math.inf
        return sum(count * Fraction(law.epsilon) for law, count in self._laws.items())


def _small(epsilon):
    if epsilon > 500:
        raise ValueError("the privacy loss of one release must be at most 500: less noise protects nobody")
    return float_up(epsilon)
