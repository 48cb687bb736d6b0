"""How a ledger adds up: which amounts it counts, what a release costs in them, and when too little is left.

Each way is a filter: it holds for releases that are chosen as results come in (the proof is in ``ledger.md``).
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpestim.privacy.concentrated import ZCDP, largest_rho
from dpestim.privacy.curve import PureDPLoss, renyi_budget
from dpestim.privacy.exact import ZERO, exceeds
from dpestim.privacy.rounding import float_up
from dpestim.privacy.text import bound

#: Less could not be told from the rounding of floats.
_LEAST_DELTA = Fraction(1, 10**300)
#: A larger budget counts as this one, which floats can hold with room for orders.
_MOST_EPSILON = Fraction(10**290)
#: Steps of what is left, as an epsilon.
_STEPS = 10**12
#: Orders minus 1 of Renyi's divergences that a ledger counts: powers of two, so that multiples are exact.
_T = (Fraction(1, 2), *(Fraction(2**k) for k in range(8)))
_FLOATS = np.array([float(t) for t in _T])


class Basic:
    """Epsilons and deltas."""

    name, title = "basic", "basic: epsilons and deltas add up"
    units = labels = ("epsilon", "delta")

    def budget(self, epsilon, delta):
        """Return the amounts of a budget, or raise ValueError."""
        return epsilon, delta

    def costs(self, guarantee, relaxed):
        """Return the amounts that a release costs, or raise ValueError; relaxed: its relaxation is what counts."""
        return guarantee.relaxed_epsilon if relaxed else guarantee.epsilon, guarantee.delta

    def short(self, total, budget, charged):
        """Return the place of an amount of which too little is left, or None."""
        for k, cost in enumerate(charged):
            if cost is not ZERO and exceeds(total[k], budget[k]) and cost:
                return k
        return None

    def promise(self, spent, budget, epsilon, delta, plain):
        """Return (epsilon, delta, curve, notes): what the amounts spent promise.

        epsilon and delta are the budget; plain is the sum of epsilons where every release is pure, else inf.
        """
        return (*spent, None, ())

    def left(self, spent, budget):
        """Return (epsilon, delta, notes): what may still be released."""
        return (*map(_less, budget, spent), ())

    def remains(self, spent, budget):
        """Return what is left, in words."""
        epsilon, delta, _ = self.left(spent, budget)
        return f"epsilon = {bound(epsilon, down=True)}, delta = {bound(delta, down=True)}"

    def advice(self, spent, budget):
        """Return what a release that was refused may be instead, where its amounts do not say so."""
        return ""

    def shown(self, spent, budget):
        """Return the places of the amounts that a reader should see."""
        return range(len(self.units))


class _Converted(Basic):
    """What costs less than the sum: pure and concentrated releases only, and a delta that all share."""

    def budget(self, epsilon, delta):
        if delta < _LEAST_DELTA:
            raise ValueError(f"delta must be at least 1e-300 for composition={self.name!r}, in which all releases "
                             "share one delta")
        if epsilon == math.inf:
            return len(self.units) * (math.inf,)
        return self._amounts(min(epsilon, _MOST_EPSILON), delta)

    def costs(self, guarantee, relaxed):
        if guarantee.epsilon == math.inf:
            return len(self.units) * (math.inf,)
        pure = None if guarantee.delta else self._pure_costs(guarantee.epsilon)
        own = None if guarantee.curve is None else self._costs(guarantee.curve)
        if pure is None and own is None:
            raise ValueError(f"a ledger of composition {self.name!r} cannot charge a release with a delta above 0 and "
                             f"no {self.needs}. Such a ledger charges pure releases (delta 0) and Gaussian noise; a "
                             "ledger of composition 'basic' charges all releases")
        return own if pure is None else pure if own is None else tuple(map(min, own, pure))

    def promise(self, spent, budget, epsilon, delta, plain):
        if not any(spent):
            return ZERO, ZERO, None, ()
        known, curve = (math.inf, None) if math.inf in spent else self._promise(spent, budget, epsilon, delta)
        if self.short(spent, budget, spent) is None:
            known = min(known, epsilon)  # that is what the budget is
        if plain <= known and plain < math.inf:
            known, delta = plain, ZERO
        return known, delta, curve, (
            f"This is {self._spent(spent, budget)} of a ledger of composition {self.name!r}. If releases depend on "
            "earlier results, the guarantee is the whole budget.",)

    def left(self, spent, budget):
        amounts = tuple(map(_less, budget, spent))
        return self._pure(amounts), ZERO, (
            f"It is the epsilon of one more pure release in a ledger of composition {self.name!r}.",)

    def remains(self, spent, budget):
        k = self.shown(spent, budget)[0]
        return (f"{self._one(spent, budget)}; {bound(_less(budget[k], spent[k]), down=True)} of "
                f"{bound(budget[k], down=True)} in {self.labels[k]}")

    def advice(self, spent, budget):
        return (f" The remaining budget of composition {self.name!r} is {self._one(spent, budget)}, because this "
                "composition is for many small releases"
                + (", and 'rdp' takes larger ones." if self.name == "zcdp" else "."))

    def _one(self, spent, budget):
        return f"one pure release of at most epsilon = {bound(self.left(spent, budget)[0], down=True)}"


class Concentrated(_Converted):
    """Rhos, of concentrated privacy."""

    name, title, needs = "zcdp", "zcdp: rhos add up", "rho"
    units = labels = ("rho",)

    def _amounts(self, epsilon, delta):
        try:
            return (largest_rho(epsilon, delta),)
        except ValueError as error:
            raise ValueError(f"{error}: use composition='basic'") from None

    def _costs(self, curve):
        return None if curve.rho is None else (curve.rho,)

    def _pure_costs(self, epsilon):
        return (_rho_of(*epsilon.as_integer_ratio()),)

    def _promise(self, spent, budget, epsilon, delta):
        return ZCDP(spent[0]).epsilon_at(delta), ZCDP(spent[0])

    def _spent(self, spent, budget):
        return f"rho = {bound(spent[0])}"

    def _pure(self, left):
        if isinstance(left[0], float):
            return math.inf
        return Fraction(math.isqrt(math.floor(2 * left[0] * _STEPS**2)), _STEPS)


class Renyi(_Converted):
    """ln E[e^(t loss)] at each order 1 + t of a grid; it is enough that one order is within its budget."""

    name, title, needs = "rdp", "rdp: Renyi's divergences add up, by order", "Renyi divergence"
    units = tuple(f"order_{float(1 + t):g}".replace(".", "_") for t in _T)
    labels = tuple(f"Renyi's divergence (times order - 1) of order {float(1 + t):g}" for t in _T)

    def _amounts(self, epsilon, delta):
        def amounts(n):  # each order that is of use has the same share of delta
            return [max(0.0, renyi_budget(float(t), epsilon, delta / n)) for t in _T]

        useful = [bool(amount) for amount in amounts(len(_T))]
        if not any(useful):
            raise ValueError("epsilon and delta are too small for composition='rdp': use 'zcdp' or 'basic'")
        return tuple(Fraction(a) if use else ZERO for a, use in zip(amounts(sum(useful)), useful))

    def _costs(self, curve):
        return _concentrated_costs(curve.rho) if isinstance(curve, ZCDP) else _curve_costs(curve)

    def _pure_costs(self, epsilon):
        return _renyi_of(epsilon) if epsilon else len(_T) * (ZERO,)

    def short(self, total, budget, charged):
        """Return the order that lacks least where no order has room, else None."""
        if not any(charged) or any(amount <= most for amount, most in zip(total, budget) if most):
            return None
        return max(range(len(_T)), key=lambda k: budget[k] and 1 / (1 + total[k] / budget[k]))

    def shown(self, spent, budget):
        """Return the order with the largest part of its budget left."""
        return [max(range(len(_T)), key=lambda k: _less(budget[k], spent[k]) / budget[k]
                    if budget[k] and budget[k] != math.inf else 0)]

    def _promise(self, spent, budget, epsilon, delta):
        if epsilon != math.inf:
            return max(ZERO, min(epsilon - (b - s) / t for t, s, b in zip(_T, spent, budget) if b)), None
        rest = (Fraction(renyi_budget(float(t), ZERO, delta / len(_T))) for t in _T)
        return max(ZERO, min((s - b) / t for t, s, b in zip(_T, spent, rest))), None

    def _spent(self, spent, budget):
        return f"{self.labels[(k := self.shown(spent, budget)[0])]} = {bound(spent[k])}"

    def _pure(self, left):
        if math.inf in left:
            return math.inf

        def fits(steps):
            return any(c <= a for c, a in zip(_renyi_of(Fraction(steps, _STEPS)), left))

        low, high = 0, _STEPS
        while fits(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return Fraction(low, _STEPS)


COMPOSITIONS = {way.name: way for way in (Basic(), Concentrated(), Renyi())}


@lru_cache(maxsize=1024)
def _rho_of(above, below):  # (of integers, because the hash of a fraction takes longer than all the rest)
    return Fraction(above * above, 2 * below * below)


@lru_cache(maxsize=1024)
def _renyi_of(epsilon):
    exact = ((t * epsilon, epsilon**2 / 2 * t * (1 + t)) for t in _T)  # no loss is above epsilon
    return tuple(map(min, _cgf_of(PureDPLoss(float_up(epsilon))), map(min, exact)))


def _cgf_of(law):
    with np.errstate(over="ignore", invalid="ignore"):
        costs = map(float, law.cgf(_FLOATS))
    return tuple(Fraction(max(cost, 1e-300)) if math.isfinite(cost) else math.inf for cost in costs)


@lru_cache(maxsize=1024)
def _curve_costs(curve):
    costs = _cgf_of(curve)
    if curve.rho is not None:  # (an exact one, where floats overflow)
        costs = tuple(map(min, costs, _concentrated_costs(curve.rho)))
    return None if math.inf in costs else costs


def _concentrated_costs(rho):
    return tuple(rho * t * (1 + t) for t in _T)


def _less(a, b):
    """Return a - b, at least 0."""
    return a if isinstance(a, float) else ZERO if isinstance(b, float) else max(a - b, ZERO)
