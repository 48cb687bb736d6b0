"""The other way round: the largest local epsilon with which shuffled messages keep a promise."""

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
    def fits(epsilon0):
        try:
            made = epsilon0 if law is None else type(law).make(**{**law.arguments, "epsilon": epsilon0})
        except ValueError:  # words cannot express it
            return False
        return keeps(made, n, epsilon, delta)

    found, low, high = epsilon, float(epsilon), _LARGEST
    while (middle := float(f"{(low + high) / 2:.5g}")) > low and middle < high:
        if fits(canonical_epsilon(middle)):
            found, low = canonical_epsilon(middle), middle
        else:
            high = middle
    return found


@lru_cache(maxsize=4096)
def keeps(law, n, epsilon, delta):
    """Tell whether n shuffled messages of a law, or of any with this local epsilon, are (epsilon, delta)-private.

    All numbers are Fractions; the answer is remembered.
    """
    return best_delta(n, law, epsilon) <= float_down(delta)
