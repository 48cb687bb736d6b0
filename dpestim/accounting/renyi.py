"""Renyi and concentrated privacy: curves that add up, and what they say about (epsilon, delta)."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy.special import gammaln, logsumexp

from dpestim.accounting.composed import Series
from dpestim.privacy.curve import ConcentratedLaw, PureDPLoss, curve_delta, curve_epsilon
from dpestim.privacy.rounding import OUTWARD, amount, float_up, positive, ratio, share
from dpestim.records import record

#: Sampled Gaussians know whole orders up to this one.
_LAST = 256


class _Laplace(PureDPLoss):
    """Laplace noise, which loses less than the worst of its epsilon."""

    def cgf(self, t):
        """Return an upper bound of ln E[e^(t loss)]."""
        e, a, b = t * self.epsilon, (1 + t) / (1 + 2 * t), t / (1 + 2 * t)
        near = np.log1p(a * np.expm1(np.minimum(e, 1)) + b * np.expm1(-e - self.epsilon))
        far = e + np.log(a + b * np.exp(-2 * e - self.epsilon))
        return np.where(e <= 1, near, far) + 2.0**-48 * e


@record
class _SampledGaussian:
    shift: float
    rate: float
    rho: ClassVar = None

    @property
    def order(self):
        return (_SampledGaussian, self.rate), self.shift

    def of_groups(self, size):
        return None

    def cgf(self, t):
        t = np.asarray(t, np.float64)
        known, low = _whole_orders(self.shift, self.rate), np.minimum(np.floor(t), _LAST - 2).astype(int)
        between = known[low] + (t - low) * (known[low + 1] - known[low])
        return np.where(t <= _LAST - 1, between * (1 + OUTWARD), math.inf)


@record
class _Largest:
    """One of several curves, nobody knows which."""

    curves: frozenset

    @property
    def rho(self):
        rhos = [curve.rho for curve in self.curves]
        return None if None in rhos else max(rhos)

    @property
    def order(self):
        return (self,), 0

    def of_groups(self, size):
        groups = [curve.of_groups(size) for curve in self.curves]
        return None if None in groups else _Largest(frozenset(groups))

    def cgf(self, t):
        return np.maximum.reduce([curve.cgf(t) for curve in self.curves])


def law_of(pair):
    """Return the law of a pair of laws (`dpestim.accounting.loss_pairs`), or None where a loss may be infinite."""
    from dpestim.accounting.grid import margin
    from dpestim.accounting.loss_pairs import Approximate, Laplace, Points

    if isinstance(pair, Points):
        return pair if pair.is_pure else None
    if isinstance(pair, Approximate):
        return None if pair.delta else PureDPLoss(pair.reach)
    shift, rate = pair.base.shift, pair.rate
    if isinstance(pair.base, Laplace):
        return _Laplace(shift) if rate == 1 else PureDPLoss(pair.reach + margin(pair.reach))
    return ConcentratedLaw(float_up(pair.rho)) if rate == 1 else _SampledGaussian(shift, rate)


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


class RenyiCurve(Series):
    """An upper bound of the Renyi divergences of a series of releases, by order; curves add up.

    Less tight than a `PrivacyLossDistribution`, but it needs no schedule of *results*: `RenyiFilter` and
    `ConcentratedFilter` use it for budgets that are chosen as results come in. Made by one of the class methods.

    **Privacy.** Arithmetic about declared numbers; it touches no data. It holds for the neighbours that the
    sensitivities were declared for; a sampled one for neighbours of which one has one record more.

    **Complexity.** O(1) orders for each different release; microseconds.

    {attributes of a series}

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

    rank = 2

    @classmethod
    def pure(cls, epsilon):
        """Return that of any epsilon-private release, randomised response included; epsilon is above 0."""
        return cls({PureDPLoss(_small(positive(epsilon, "epsilon"))): 1})

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
            return cls({ConcentratedLaw(float_up(Fraction(shift) ** 2 / 2)): 1}, rate < 1)
        return cls({_SampledGaussian(shift, float_up(rate)): 1}, True)

    @classmethod
    def largest(cls, curves):
        """Return that of a release of which only this is known: it has one of these curves."""
        pieces = {_Largest(frozenset(curves)): 1}
        return cls(pieces, any(curve.is_sampled for curve in curves))

    def lift(self, other):
        """Return concentrated or pure privacy as a curve of this kind; None of what has a delta."""
        if isinstance(other, RenyiCurve):
            return other
        if other.rho is None:
            return None
        if not other.rho:
            return RenyiCurve({})
        epsilon = getattr(other, "epsilon", None)
        law = ConcentratedLaw(float_up(other.rho)) if epsilon is None else PureDPLoss(float_up(epsilon))
        return RenyiCurve({law: 1})

    def __repr__(self):
        return f"<RenyiCurve of {self.n_releases} releases>"

    def divergence(self, order):
        """Return an upper bound of the divergence of an order above 1."""
        t = float(positive(order, "order")) - 1
        if t <= 0:
            raise ValueError("order must be above 1")
        return float(self.cgf(np.array([t]))[0] / t) * (1 + OUTWARD)

    def cgf(self, t):
        """Return an upper bound of ln E[e^(t loss)], the order being 1 + t; t is an array of numbers above 0."""
        return sum((count * law.cgf(t) for law, count in self._pieces.items()), np.zeros(np.shape(t))) * (1 + OUTWARD)

    def delta(self, epsilon):
        """Return delta at an epsilon of at least 0, an upper bound; 0 from the sum on, where all releases are pure."""
        return 0.0 if amount(epsilon, "epsilon") >= self._pure else curve_delta(self, epsilon)

    def epsilon(self, delta):
        """Return epsilon at a delta from 0 to 1, an upper bound; inf where delta is 0 and a release is not pure."""
        return min(float_up(self._pure), curve_epsilon(self, delta))

    def epsilon_at(self, delta):
        """Return `epsilon` as a Fraction, or inf."""
        epsilon = self.epsilon(delta)
        return Fraction(epsilon) if epsilon < math.inf else math.inf

    @property
    def _pure(self):
        """The sum of the epsilons, exactly (Renyi's bounds end above it); inf where a release is not pure."""
        if not all(hasattr(law, "epsilon") for law in self._pieces):
            return math.inf
        return sum(count * Fraction(law.epsilon) for law, count in self._pieces.items())


def as_renyi(curve):
    """Return what follows from any curve, as a `RenyiCurve`; None where nothing does."""
    while curve is not None and curve.rank > RenyiCurve.rank:
        curve = curve.weaker()
    return None if curve is None else RenyiCurve({}).lift(curve)


def _small(epsilon):
    if epsilon > 500:
        raise ValueError("the privacy loss of one release must be at most 500: add more noise")
    return float_up(epsilon)
