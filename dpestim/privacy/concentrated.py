"""Concentrated privacy (zCDP): the curve that is one number, and the budgets and epsilons that follow from it."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from dpestim.privacy.curve import ConcentratedLaw, Curve, curve_delta, curve_epsilon
from dpestim.privacy.rounding import OUTWARD, amount, float_down, float_up, positive, share
from dpestim.records import record


@record
class ZCDP(Curve):
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

    rank: ClassVar[int] = 1

    def cgf(self, t):
        """Return an upper bound of ln E[e^(t loss)]."""
        return ConcentratedLaw(float_up(self.rho)).cgf(t)

    def joined(self, other):
        """Return that of both releases together."""
        return ZCDP(self.rho + other.rho)

    def lift(self, other):
        """Return another curve as concentrated privacy, where its rho is known."""
        return other if isinstance(other, ZCDP) else None if other.rho is None else ZCDP(other.rho)

    def covers(self, other):
        """Tell whether this follows from another one."""
        return other.rho <= self.rho

    def follows_from(self, other):
        """Tell whether this follows from any curve: by its rho."""
        return other.rho is not None and other.rho <= self.rho

    def compose(self, n):
        """Return that of n releases."""
        return ZCDP(n * self.rho)

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


@record
class Face(Curve):
    """What (epsilon, delta), Fractions, says as a curve; it follows from the face of a guarantee and is never kept."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    @property
    def rho(self):
        """epsilon^2 / 2 where delta is 0 (Bun, Steinke 2016, proposition 3.3)."""
        return None if self.delta else self.epsilon**2 / 2

    def joined(self, other):
        """Return that of both, as far as rhos know it."""
        return None if None in (self.rho, other.rho) else ZCDP(self.rho + other.rho)


@lru_cache(maxsize=1024)
def _epsilon_of(rho, delta):
    epsilon = curve_epsilon(ConcentratedLaw(float_up(rho)), delta)
    return Fraction(epsilon) if epsilon < math.inf else math.inf


def checked_curve(curve):
    """Return a curve or None, or raise ValueError."""
    if not isinstance(curve, Curve | None) or isinstance(curve, Face):
        raise ValueError("curve must be None, a dpestim.privacy.ZCDP, or a RenyiCurve or PrivacyLossDistribution of "
                         "dpestim.accounting")
    return curve


def known(epsilon, delta, curve):
    """Return the curve of a guarantee, or what its face says as one; None where it promises nothing."""
    if curve is not None or epsilon == math.inf or delta == 1:
        return curve
    return Face(epsilon, delta)


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
        Above 0; one that floats cannot hold counts as their largest.
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
    e, d = float_down(positive(epsilon, "epsilon")), float_down(share(delta, "delta"))
    if d == 1:
        raise ValueError("delta must be below 1")
    return _largest(e, d)


@lru_cache(maxsize=256)
def _largest(e, d):
    """Return the largest rho within (e, d): found once, as one release asks for it several times."""
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
        raise ValueError("epsilon and delta are too small for floating point")
    return Fraction(low)
