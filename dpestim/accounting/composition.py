"""Optimal composition: the best that holds for all mechanisms with given guarantees, declared in advance."""

import math
from collections import Counter
from decimal import Context, Decimal, localcontext

import numpy as np

from dpestim.accounting.loss import PrivacyLossDistribution
from dpestim.privacy.rounding import LARGEST, OUTWARD, TINY, amount, float_down, float_up, several, share, whole

#: So many sums of losses are enumerated.
_SUMS = 1 << 16
_LOOSE = 1e-9
_CONTEXT = Context(prec=50, Emax=999_999_999, Emin=-999_999_999)


def optimal_delta(epsilons, epsilon, deltas=()):
    """Return the delta of several releases together at an epsilon: the least that holds for all such mechanisms.

    Parameters
    ----------
    epsilons : array-like of float
        Those of the releases, each from 0 to 500; one for each release.
    epsilon : float
        Of all together, at least 0.
    deltas : array-like of float, default=()
        Those of the releases; none: all are pure.

    Returns
    -------
    float
        An upper bound: the optimum but for a relative 1e-9, where equal epsilons leave at most 65,536 sums of losses;
        else by a `PrivacyLossDistribution`.

    Notes
    -----
    O(k^2) for k equal epsilons, at worst O(65,536). Releases may use earlier results, but no guarantee may be chosen
    by them. Raises ValueError for what is no such number, by its name.

    References
    ----------
    Kairouz, Oh, Viswanath (2015), "The composition theorem for differential privacy", ICML, theorem 3.3. Murtagh,
    Vadhan (2016), "The complexity of computing the optimal composition of differential privacy", TCC, theorem 1.5. The
    proof: ``composition.md``.

    Examples
    --------
    >>> from dpestim.accounting import optimal_delta
    >>> f"{optimal_delta([0.1] * 100, 4.0):.3g}"
    '3.42e-05'
    """
    epsilons, exact = several(epsilons, "epsilons"), amount(epsilon, "epsilon")
    return _delta_at(exact, *_counted(epsilons, deltas))


def equal_delta(epsilon, delta, n, total):
    """Return `optimal_delta` at the epsilon `total` of n releases of (epsilon, delta), Fractions; n may be large."""
    return _delta_at(total, {epsilon: n}, {delta: n} if delta else {})


def _delta_at(epsilon, counts, deltas):
    composed, kept = _composed(counts, deltas)
    if epsilon < sum(n * x for x, n in counts.items()):
        return _total(composed(float_down(epsilon)), kept)
    # no loss is larger: only deltas are left, which are at most their sum (rounded once)
    return min(_total(0.0, kept), float_up(sum(n * x for x, n in deltas.items())))


def optimal_epsilon(epsilons, delta, deltas=()):
    """Return the epsilon of several releases together at a delta: the least that holds for all such mechanisms.

    Parameters
    ----------
    epsilons : array-like of float
        Those of the releases, each from 0 to 500.
    delta : float
        Of all together, from 0 to 1.
    deltas : array-like of float, default=()
        Those of the releases; none: all are pure.

    Returns
    -------
    float
        An upper bound, as of `optimal_delta`; inf where the deltas of the releases are already more than delta.

    Examples
    --------
    >>> from dpestim.accounting import advanced_composition, optimal_epsilon
    >>> round(optimal_epsilon([0.1] * 100, 1e-6), 2), round(advanced_composition(0.1, 100, slack=1e-6)[0], 2)
    (4.77, 6.31)
    """
    epsilons, exact = several(epsilons, "epsilons"), amount(delta, "delta", 1)
    wanted, (counts, deltas) = float_down(exact), _counted(epsilons, deltas)
    composed, kept = _composed(counts, deltas)
    high = float_up(sum(n * x for x, n in counts.items()))
    if _total(0.0, kept) > wanted:  # by rounding only, where their sum is not: then all add up
        return high if sum(n * x for x, n in deltas.items()) <= exact else math.inf
    low = 0.0
    if _total(composed(0.0), kept) <= wanted:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _total(composed(middle), kept) <= wanted else (middle, high)
        if high - low <= 1e-12 * high:
            break
    return high


def _total(delta, kept):
    """Return 1 - (1 - delta) kept, rounded up, where `kept` is (whether it is 1, itself)."""
    exact, kept = kept
    return delta if exact else min(1.0, -math.expm1(math.log1p(-delta) + kept) * (1 + OUTWARD)) if delta < 1 else 1.0


def _counted(epsilons, deltas):
    """Return ({epsilon: how often}, {delta: how often}), or raise ValueError."""
    exact = [amount(x, "epsilons", LARGEST) for x in epsilons]
    deltas = [amount(x, "deltas", 1) for x in several(deltas, "deltas")]
    if not exact:
        raise ValueError("epsilons must hold at least one number")
    if deltas and len(deltas) != len(exact):
        raise ValueError("deltas must be empty, or as many as epsilons")
    return Counter(exact), Counter(deltas)


def _composed(counts, deltas):
    """Return (the delta of the pure parts, a function of epsilon; what `_total` takes of the deltas)."""
    counts = {x: n for x, n in counts.items() if x}  # (0: no loss)
    gone = math.fsum(n * math.log1p(-float_up(x)) if x < 1 else -math.inf for x, n in deltas.items())
    if math.prod(n + 1 for n in counts.values()) > _SUMS:
        parts = [PrivacyLossDistribution.pure(x).compose(n) for x, n in counts.items()]
        return PrivacyLossDistribution.total(parts).delta, (not gone, gone)
    loss, mass = np.zeros(1), np.ones(1)
    for x, n in counts.items():
        ways = np.arange(n, -n - 1, -2) * float_up(x)
        loss = np.add.outer(loss, ways).reshape(-1)
        mass = np.multiply.outer(mass, _binomial(x, n)).reshape(-1)
    loss += 2.0**-45 * float(sum(n * x for x, n in counts.items()))

    def delta(epsilon):
        above = loss > epsilon
        return min(1.0, float(np.sum(mass[above] * -np.expm1(epsilon - loss[above]))) * (1 + _LOOSE) + TINY)

    return delta, (not gone, gone)


def _binomial(epsilon, n):
    """Return the probabilities of 0, 1, ..., n negative losses among n."""
    with localcontext(_CONTEXT):
        odds = (-Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        term, out = (1 / (1 + odds)) ** n, []
        for k in range(n + 1):
            out.append(float(term))
            term = term * odds * (n - k) / (k + 1)
    return np.array(out)


def advanced_composition(epsilon, k, *, slack, delta=0):
    """Return (epsilon, delta) of k equal releases by the advanced composition theorem, to compare with.

    Never better than `optimal_epsilon`, and for few releases worse than adding up.

    Parameters
    ----------
    epsilon, delta : float
        Of each release.
    k : int
        How many.
    slack : float
        The delta that the theorem adds to k delta.

    Returns
    -------
    tuple of two floats
        epsilon sqrt(2 k ln(1 / slack)) + k epsilon (e^epsilon - 1), and k delta + slack; rounded up.

    References
    ----------
    Dwork, Rothblum, Vadhan (2010), "Boosting and differential privacy", FOCS, theorem III.3.

    Examples
    --------
    >>> from dpestim.accounting import advanced_composition
    >>> epsilon, delta = advanced_composition(0.1, 10, slack=1e-6, delta=1e-9)
    >>> round(epsilon, 3), f"{delta:.3g}"
    (1.767, '1.01e-06')
    """
    e, k = float(amount(epsilon, "epsilon", LARGEST)), whole(k, "k")
    s = share(slack, "slack")
    total = e * math.sqrt(2 * k * -math.log(s)) + k * e * math.expm1(e)
    return total * (1 + OUTWARD), min(1.0, float_up(k * amount(delta, "delta", 1) + s))
