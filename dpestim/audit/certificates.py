"""Certificates: the event that tells two laws apart best, and what it proves of epsilon (``search.md``)."""

import math
from fractions import Fraction
from typing import NamedTuple

from dpestim.audit.density import density_excess, density_loss, density_masses
from dpestim.audit.finite_laws import read_pair
from dpestim.privacy.exact import exp_lower, log_above
from dpestim.privacy.rounding import float_down

#: Shares of the way from the claim to the largest loss at which events of densities are tried, and epsilons beyond.
_WAY, _BEYOND = (0.5, 0.99, 1 - 1e-6), (0.5, 2.0, 8.0)
#: Outcomes that an event names.
_NAMED = 6


class Certificate(NamedTuple):
    """An event, its probabilities under two laws (upper and lower ends, where there is an error), and the epsilon."""

    epsilon: float
    event: str
    likelier: object
    other: object
    how: str


def of_laws(p, q, delta):
    """Return the best `Certificate` of two laws of finitely many outcomes, dicts or rows, in this order.

    The event is a set of outcomes of the largest ratios: of all such sets the one with the largest (P - delta) / Q.
    """
    laws, delta = read_pair(p, q), Fraction(delta)
    names = list({**p, **q}) if isinstance(p, dict) else list(range(len(p)))
    one, two = laws.whole.tolist()
    order = sorted((k for k in range(len(names)) if one[k] or two[k]),
                   key=lambda k: (-(Fraction(one[k], two[k]) if two[k] else math.inf)))
    best, inside, sums, at = Fraction(0), 0, [0, 0], (0, 0)
    for n, k in enumerate(order, 1):
        sums = [sums[0] + one[k], sums[1] + two[k]]
        above = sums[0] - delta * laws.unit
        if above <= 0:
            continue
        ratio = Fraction(above, sums[1]) if sums[1] else math.inf
        if ratio > best:
            best, inside, at = ratio, n, tuple(sums)
        if ratio == math.inf or not delta:  # (the mean of ratios that fall does not rise)
            break
    chosen = [names[k] for k in order[:inside]]
    shown = ", ".join(map(repr, chosen[:_NAMED])) + f" and {len(chosen) - _NAMED} more" * (len(chosen) > _NAMED)
    event = "none" if not chosen else f"output is {shown}" if len(chosen) == 1 else f"output is one of {shown}"
    how = "exact" if laws.exact else "exact, of the fractions that the floats are"
    return Certificate(_log_below(best), event, *(Fraction(part, laws.unit) for part in at), how)


def of_densities(p, q, delta, claimed):
    """Return the best `Certificate` of two densities, in this order, of the events that are tried.

    An event is where the ratio is above e^t. Probabilities are by quadrature, each with its error against the claim.
    """
    top = density_loss(p, q)
    tries = [claimed + (top - claimed) * share for share in _WAY] if top < math.inf else [claimed + t for t in _BEYOND]
    best = Certificate(0.0, "none", 0.0, 0.0, "quadrature")
    for t in sorted({max(0.0, t) for t in [claimed, *tries]}):
        likelier, other, places = density_masses(p, q, t)
        above = likelier - likelier.error - delta
        if above <= 0:
            continue
        below = other + other.error
        epsilon = math.log(above) - math.log(below) if below > 0 else math.inf
        if epsilon > best.epsilon * (1 + 1e-9):  # (of equals the likelier event)
            event = " or ".join(f"{a:.4g} < output < {b:.4g}" for a, b in places[:_NAMED])
            best = Certificate(epsilon, event, likelier, other, "quadrature")
    if top == math.inf and delta < 1:
        alone = density_excess(p, q, math.inf)
        if alone - alone.error > delta:
            best = Certificate(math.inf, "output is possible for one of the two only", alone, 0.0, "quadrature")
    return best


def exceeds(certificate, claim):
    """Tell whether the epsilon of a certificate is certainly above a claimed one (a Fraction)."""
    if certificate.epsilon == math.inf:
        return True
    return Fraction(certificate.epsilon) > claim


def _log_below(ratio):
    """Return a float of at most ln(ratio), and at least 0."""
    if ratio == math.inf:
        return math.inf
    if ratio <= 1:
        return 0.0
    found = float_down(-log_above(1 / ratio))
    assert exp_lower(Fraction(found)) <= ratio
    return max(found, 0.0)
