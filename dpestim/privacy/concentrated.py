"""Concentrated privacy (zCDP): what is known of a release besides (epsilon, delta), and what follows from it.

Conversions from Renyi's divergences to (epsilon, delta) are here too, for every kind of curve. Floats are moved
outward: whatever comes out is a bound (the proof is in ``accounting/renyi.md``).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpestim.privacy.outward import OUTWARD, TINY, amount, float_up, log_constant, positive, share

#: Orders minus 1 that are tried first; then finer ones next to the best.
_ORDERS = np.geomspace(1e-3, 1e4, 141)
_LOOSE = 1e-9


@dataclass(frozen=True)
class PureLaw:
    """Any epsilon-private release: randomised response is the worst."""

    epsilon: float

    def cgf(self, t):
        """Return an upper bound of ln E[e^(t loss)]."""
        p, e = 1 / (1 + math.exp(-self.epsilon)), t * self.epsilon
        near = np.log1p(p * np.expm1(np.minimum(e, 1)) + (1 - p) * np.expm1(-e))
        far = e + np.log(p + (1 - p) * np.exp(-2 * e))
        return np.where(e <= 1, near, far) + 2.0**-48 * e


@dataclass(frozen=True)
class ConcentratedLaw:
    """Any rho-concentrated release."""

    rho: float

    def cgf(self, t):
        """Return an upper bound of ln E[e^(t loss)]."""
        return self.rho * t * (1 + t) * (1 + OUTWARD)


def curve_delta(curve, epsilon):
    """Return delta at an epsilon of at least 0, an upper bound; the curve answers ``cgf(t)``."""
    e = float(amount(epsilon, "epsilon"))
    log = _least(curve, lambda cgf, t: cgf - t * e + _log_constants(t))
    return min(1.0, math.exp(min(log, 0.0)) * (1 + _LOOSE) + TINY)


def curve_epsilon(curve, delta):
    """Return epsilon at a delta from 0 to 1, an upper bound; inf where delta is 0."""
    wanted = float(amount(delta, "delta", 1))
    if wanted == 0:
        return math.inf
    least = _least(curve, lambda cgf, t: (cgf + _log_constants(t) - math.log(wanted)) / t)
    return max(0.0, least + OUTWARD * (1 + abs(least)))


def renyi_budget(t, epsilon, delta):
    """Return what ln E[e^(t loss)] may be for (epsilon, delta), rounded down; below 0: nothing at all may be spent."""
    whole = t * float(epsilon)
    return whole + math.log(delta) - log_constant(t) - OUTWARD * (10 + whole)


def _least(curve, objective):
    """Return about the least value over orders."""
    t = _ORDERS
    for _ in range(3):
        with np.errstate(over="ignore", invalid="ignore"):
            value = objective(curve.cgf(t), t)
        value = np.where(np.isnan(value), np.inf, value)  # too large for floats: of such an order nothing is known
        best = int(np.argmin(value))
        ends = t[max(best - 1, 0)], t[min(best + 1, t.size - 1)]
        least, t = float(value[best]), np.geomspace(*ends, 41)
    return least


def _log_constants(t):
    return t * np.log(t) - (1 + t) * np.log1p(t)


@dataclass(frozen=True)
class ZCDP:
    """Concentrated privacy: Renyi's divergence of every order a is at most rho a, in both directions.

    What a `PrivacyGuarantee` may carry as its ``curve``: rhos of several releases add up.

    Parameters
    ----------
    rho : Fraction or float
        At least 0, kept as the exact fraction that its shortest decimal form names; math.inf is refused.

    References
    ----------
    Bun, Steinke (2016), "Concentrated differential privacy", TCC: definition 1.1, lemma 1.7 (sums), propositions 1.4
    (pure) and 1.9 (groups). Canonne, Kamath, Steinke (2020), "The discrete Gaussian for differential privacy",
    NeurIPS, proposition 12 (conversion). The proof: ``guarantee.md``.

    Examples
    --------
    >>> from dpestim.privacy import ZCDP
    >>> both = ZCDP(0.1) + ZCDP(0.2)
    >>> both, round(float(both.epsilon_at(1e-6)), 3)
    (ZCDP(rho=Fraction(3, 10)), 3.92)
    """

    rho: Fraction | float

    def __post_init__(self):
        """Keep rho exactly, or raise ValueError."""
        object.__setattr__(self, "rho", amount(self.rho, "rho"))

    def __add__(self, other):
        """Return that of both releases together."""
        return ZCDP(self.rho + other.rho) if isinstance(other, ZCDP) else NotImplemented

    def of_groups(self, size):
        """Return that for groups of so many neighbours: size^2 rho."""
        return ZCDP(size * size * self.rho)

    def epsilon_at(self, delta):
        """Return epsilon at a delta from 0 to 1 (a Fraction rounded up).

        inf where delta is 0 and rho is not, and where floats cannot hold the result.
        """
        if not self.rho:
            return Fraction(0)
        if delta < Fraction(1, 10**300):
            return math.inf
        return _epsilon_of(self.rho, Fraction(delta))


@lru_cache(maxsize=1024)
def _epsilon_of(rho, delta):
    epsilon = curve_epsilon(ConcentratedLaw(float_up(rho)), math.nextafter(float(delta), 0))
    return Fraction(epsilon) if epsilon < math.inf else math.inf


def simple_epsilon(rho, delta):
    """Return rho + 2 sqrt(rho ln(1 / delta)), rounded up: what is usually quoted for rho-concentrated privacy.

    `dpestim.accounting.RenyiCurve.concentrated` is tighter, always.

    Parameters
    ----------
    rho : float
        Above 0.
    delta : float
        Above 0, at most 1.

    Returns
    -------
    float

    Examples
    --------
    >>> from dpestim.accounting import simple_epsilon
    >>> round(simple_epsilon(0.1, 1e-6), 3)
    2.451
    """
    r, d = float(positive(rho, "rho")), float(share(delta, "delta"))
    return (r + 2 * math.sqrt(r * -math.log(d))) * (1 + OUTWARD)


def concentrated_of(epsilon):
    """Return rho such that epsilon-privacy is rho-concentrated: epsilon^2 / 2, exactly (a Fraction).

    Examples
    --------
    >>> from dpestim.accounting import concentrated_of
    >>> concentrated_of(0.1)
    Fraction(1, 200)
    """
    return amount(epsilon, "epsilon") ** 2 / 2


def largest_rho(epsilon, delta):
    """Return the largest rho whose concentrated privacy is (epsilon, delta)-private, rounded down.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        Above 0, below 1.

    Returns
    -------
    Fraction

    Examples
    --------
    >>> from dpestim.accounting import RenyiCurve, largest_rho
    >>> rho = largest_rho(2.0, 1e-6)
    >>> RenyiCurve.concentrated(rho).delta(2.0) <= 1e-6, round(float(rho), 4)
    (True, 0.0882)
    """
    e, d = float(positive(epsilon, "epsilon")), float(share(delta, "delta"))
    if d == 1:
        raise ValueError("delta must be below 1")
    more = 1 + 4 * OUTWARD  # so that sums, each rounded up, are still within it

    def fits(rho):
        return curve_delta(ConcentratedLaw(rho * more), e) <= d

    low, high = 0.0, e
    while fits(high):  # where delta is large, rho may be above epsilon
        low, high = high, 2 * high
    for _ in range(60):
        middle = low + (high - low) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    if not low:
        raise ValueError("epsilon and delta are too small to be told from rounding")
    return Fraction(low)
