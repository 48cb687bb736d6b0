"""The largest budget of each release, or the least noise, such that a declared number of them stays within a total."""

import inspect
import math
from fractions import Fraction

from dpestim.accounting.composition import equal_delta
from dpestim.accounting.loss import PrivacyLossDistribution
from dpestim.accounting.renyi import RenyiCurve
from dpestim.privacy import ZCDP
from dpestim.privacy.rounding import LARGEST, amount, crossing, float_down, positive, whole

#: More than the logarithm of any delta.
_FAR = 1e3
#: Which part of delta the releases themselves get, where they have one: the less, the larger is their epsilon.
_SHARE = Fraction(1, 20)


def calibrate(mechanism, *, epsilon, delta=0, n_releases):
    """Return the parameters of a mechanism with which n releases together are (epsilon, delta)-private.

    The number of releases is declared in advance, and all are made with the same parameters; what they are asked may
    depend on earlier results. For budgets that depend on results, take a filter.

    Parameters
    ----------
    mechanism : class, object or callable
        * A class or object with a parameter `epsilon` (and `delta`), or an object whose ``law()`` has them: nothing
          else is taken to be known about it, so the answer holds for *every* such mechanism.
        * An object whose guarantee has a curve (``privacy_.curve``), such as a `GaussianMechanism` or a
          `LaplaceMechanism`: its least noise, for any number of answers.
        * A function of its noise (one number) that returns the losses of a release, a `PrivacyLossDistribution` or a
          `RenyiCurve`, such as ``PrivacyLossDistribution.gaussian``: the least noise. Much less noise for Gaussians.
    epsilon : float
        Of all releases together, above 0.
    delta : float, default=0
        Of all releases together, from 0 to below 1.
    n_releases : int
        At least 1.

    Returns
    -------
    dict
        Parameters, rounded to the safe side: ``{"epsilon": ...}``, ``{"epsilon": ..., "delta": ...}``, or the name of
        the function's first parameter with the least noise (to a relative 1e-5).

    Raises
    ------
    ValueError
        For a mechanism that has no such parameters, for one that needs a delta where there is none in all, for one
        whose epsilon holds under a relaxation only (as those of utility-optimised and of distance-aware local
        privacy), and for totals that no noise up to 1e9 keeps.

    Notes
    -----
    Some 15 compositions for noise, 40 for a budget. Of a budget with a delta, the releases' own deltas are a
    twentieth of the delta in all: the less they have, the larger is their epsilon.

    References
    ----------
    Kairouz, Oh, Viswanath (2015), "The composition theorem for differential privacy", ICML. The proofs:
    ``composition.md``, ``loss.md``.

    Examples
    --------
    >>> from dpestim.accounting import PrivacyLossDistribution, calibrate
    >>> from dpestim.privacy import PrivacyGuarantee
    >>> calibrate(PrivacyGuarantee, epsilon=1, n_releases=10)
    {'epsilon': 0.1, 'delta': 0.0}
    >>> each = calibrate(PrivacyLossDistribution.gaussian, epsilon=1, delta=1e-6, n_releases=100)
    >>> round(each["sigma"], 2)
    42.25
    """
    total, allowed = positive(epsilon, "epsilon"), amount(delta, "delta", 1)
    if allowed == 1:
        raise ValueError("delta must be below 1")
    n = whole(n_releases, "n_releases")
    names = _parameters(mechanism)
    if "epsilon" in names:
        _refuse_relaxed(mechanism)
        has_delta = "delta" in names and _needs_delta(mechanism)
        if not inspect.isclass(mechanism) and _has_curve(mechanism):
            return _by_own_curve(mechanism, total, allowed, n, has_delta)
        return _largest_budget(total, allowed, n, has_delta)
    if not callable(mechanism) or not names:
        raise ValueError("mechanism must have a parameter epsilon, or be a function of its noise that returns a "
                         "PrivacyLossDistribution or a RenyiCurve")
    return {names[0]: _least_noise(mechanism, float_down(total), float_down(allowed), n)}


def _parameters(mechanism):
    """Return the names of its parameters; of an object, those of its class, and else those of its law."""
    if inspect.isclass(mechanism) or inspect.isroutine(mechanism):
        return list(inspect.signature(mechanism).parameters)
    names = [name for name in ("epsilon", "delta") if hasattr(mechanism, name)]
    if "epsilon" in names or callable(mechanism):
        return names or list(inspect.signature(mechanism).parameters)
    law = getattr(mechanism, "law", None)
    return [name for name in ("epsilon", "delta") if hasattr(law(), name)] if callable(law) else []


def _needs_delta(mechanism):
    """Tell whether an object uses its delta (some noises do not); of a class that is not known."""
    if inspect.isclass(mechanism) or not hasattr(mechanism, "privacy_"):
        return True
    return mechanism.privacy_.delta > 0


def _has_curve(mechanism):
    """Tell whether an object has a curve whatever its budget: what is known of one release says nothing of others."""
    fresh = type(mechanism)(**mechanism.get_params(deep=False)) if hasattr(mechanism, "get_params") else mechanism
    return getattr(getattr(fresh, "privacy_", None), "curve", None) is not None


def _by_own_curve(mechanism, total, allowed, n, has_delta):
    """Return the budget of a mechanism whose guarantees have curves, the largest, and so that of the least noise.

    What is composed is the curve of the guarantee that the budget makes, with a delta, where it has one, that is its
    face only.
    """
    if not allowed:
        if has_delta:
            raise ValueError("delta must be above 0 for this mechanism, which needs a delta")
        return _largest_budget(total, allowed, n, has_delta)
    each = {"delta": _down(allowed / (2 * n))} if has_delta else {}
    given = mechanism.get_params(deep=False) | {"ledger": None} | each

    def family(noise):
        curve = type(mechanism)(**given | {"epsilon": 1 / noise}).privacy_.curve
        if curve is None:
            raise ValueError("noise must be larger: no curve is known for so little noise")
        return RenyiCurve.concentrated(curve.rho) if isinstance(curve, ZCDP) else curve

    best = {"epsilon": 1 / _least_noise(family, float_down(total), float_down(allowed), n)} | each
    worst = {} if has_delta else _largest_budget(total, allowed, n, has_delta)
    return max(best, worst, key=lambda found: found.get("epsilon", 0.0))


def _refuse_relaxed(mechanism):
    """Raise ValueError where epsilon does not hold for any two inputs: what is composed here does."""
    law = getattr(mechanism, "_randomizer", mechanism)
    name = getattr(law, "relaxation", None)
    if name is not None:
        raise ValueError("mechanism must keep its epsilon for any two inputs, and this one keeps its epsilon only "
                         f"under the relaxation {name}: add up the guarantees of its releases instead, by "
                         "sum(guarantees)")


def _largest_budget(total, allowed, n, has_delta):
    """Return the largest epsilon of a release, by the worst mechanism of that budget."""
    delta = allowed * _SHARE / n if has_delta else Fraction(0)
    each = {"epsilon": _down(_largest_epsilon(total, allowed, delta, n))}
    return each | {"delta": _down(delta)} if has_delta else each


def _largest_epsilon(total, allowed, delta, n):
    """Return the largest epsilon of n releases of (epsilon, delta) within the total, as a Fraction."""
    low = min(total / n, Fraction(LARGEST))  # always right: n delta is at most the allowed
    if not allowed:
        return low
    high = min(total, Fraction(LARGEST))
    for _ in range(40):
        middle = (low + high) / 2
        fits = equal_delta(_decimal(middle), delta, n, total) <= allowed
        low, high = (_decimal(middle), high) if fits else (low, middle)
        if high - low <= low / 10**6:
            break
    return low


def _decimal(x):
    """Return a Fraction of few digits, at most x."""
    digits = 12 - math.floor(math.log10(x))
    return Fraction(math.floor(x * 10**digits), 10**digits)


def _down(x):
    """Return a float whose exact (decimal) value is at most x."""
    if not x:
        return 0.0
    value = float(x)
    while amount(value, "epsilon") > x:
        value = math.nextafter(value, 0)
    return value


def _least_noise(family, epsilon, delta, n):
    """Return the least noise such that n releases of it are (epsilon, delta)-private."""

    def over(log_noise):
        try:
            losses = family(math.exp(log_noise))
        except ValueError:  # too little noise to be accounted for
            return _FAR
        if not isinstance(losses, PrivacyLossDistribution | RenyiCurve):
            raise ValueError("mechanism must return a PrivacyLossDistribution or a RenyiCurve")
        got = losses.compose(n).delta(epsilon)
        if got <= delta:
            return min(math.log(got / delta), -1e-9) if got else -_FAR
        return max(math.log(got / delta), 1e-9) if delta else _FAR

    high = 0.0
    while over(high) > 0:
        high += math.log(4)
        if high > math.log(1e9):
            raise ValueError("epsilon and delta are too small: no noise up to 1e9 suffices. Take a larger epsilon or "
                             "delta, or fewer releases")
    low = high - math.log(4)
    while low > math.log(1e-9) and over(low) <= 0:
        low, high = low - math.log(4), low
    return math.exp(crossing(over, low, high, 1e-6))
