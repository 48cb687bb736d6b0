"""The other way round: the largest local epsilon with which shuffled messages keep a promise."""

import math
from functools import lru_cache

from dpestim.privacy.exact import canonical_epsilon
from dpestim.privacy.rounding import float_down
from dpestim.shuffle.amplification.bounds import best_delta

#: The largest local epsilon that is tried: nothing is gained beyond.
_LARGEST = 30.0


@lru_cache(maxsize=512)
def largest_local(law, n, epsilon, delta):
    """Return about the largest local epsilon of a law with which n shuffled messages are (epsilon, delta)-private.

    Each candidate is tried itself, so that the bound need not grow with it.

    Parameters
    ----------
    law : Randomizer or None
        The law with a local `epsilon`, whose others differ in their epsilon alone; None: any law.
    n : int
        Users who follow the protocol.
    epsilon, delta : Fraction

    Returns
    -------
    Fraction
        At least `epsilon`, of five decimal digits otherwise.
    """
    def over(epsilon0):
        try:
            made = epsilon0 if law is None else type(law).make(**{**law.arguments, "epsilon": epsilon0})
        except ValueError:  # words cannot express it
            return math.inf
        return math.log(max(_delta_of(made, n, epsilon), 1e-320)) - wanted

    found, low, high = epsilon, float(epsilon), _LARGEST
    wanted, known = math.log(float_down(delta)), []
    tried = _guess(n, low, wanted)
    while low < (middle := _digits((low + high) / 2)) < high:
        tried = _digits(tried) if low < _digits(tried) < high else middle
        excess = over(canonical_epsilon(tried))
        if excess <= 0:
            found, low = canonical_epsilon(tried), tried
        else:
            high = tried
        known.append((tried, excess))
        tried = _next(known[-2:], wanted, middle)
    return found


def _digits(epsilon0):
    return float(f"{epsilon0:.5g}")


def _guess(n, epsilon, wanted):
    """Return about the local epsilon whose messages are that private: a first one to be tried, and no bound."""
    if epsilon > 20:
        return _LARGEST
    return math.log(n / 4 / (math.log(4) - wanted)) + 2 * math.log(math.expm1(epsilon))


def _next(known, wanted, middle):
    """Return what to try after these (local epsilon, logarithm of delta over the wanted one), at most two of them."""
    if not all(-600 < excess < math.log(0.5) - wanted for _, excess in known):  # (as if delta were 0, or 1)
        return middle
    tried, excess = known[-1]
    if len(known) == 1:
        return tried - math.copysign(1.0, excess)
    before, other = known[0]
    step = excess * (tried - before) / (excess - other) if excess != other else 0.0
    # a little beyond, and by a digit at least: then both ends close in
    least = 0.6 * 10.0 ** (math.floor(math.log10(tried)) - 4)
    return tried - step - math.copysign(max(0.02 * abs(step), least), excess)


def keeps(law, n, epsilon, delta):
    """Tell whether n shuffled messages of a law, or of any with this local epsilon, are (epsilon, delta)-private.

    All numbers are Fractions; the answer is remembered.
    """
    return _delta_of(law, n, epsilon) <= float_down(delta)


@lru_cache(maxsize=4096)
def _delta_of(law, n, epsilon):
    return best_delta(n, law, epsilon)
