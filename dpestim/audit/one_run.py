"""A lower bound of epsilon from one run, of guesses of independent coins: the proof is ``one_run.md``."""

import math

import numpy as np
from scipy.special import betainc

#: What is more than the rounding of binomial probabilities, relatively.
_ROUNDING = 1e-9
#: Where e^epsilon ends, and how exactly a bound is searched for.
_LARGEST, _STEPS = 700.0, 60


def chance(correct, guesses, canaries, epsilon, delta=0.0):
    """Return an upper bound of the probability of so many correct guesses or more, where (epsilon, delta) holds.

    Parameters
    ----------
    correct, guesses, canaries : int
        Guesses that are right, guesses, and independent fair coins; each at most the next one.
    epsilon, delta : float
        What holds where one coin is turned.
    """
    if not correct:
        return 1.0
    odds = math.exp(min(epsilon, _LARGEST))
    above = float(betainc(correct, guesses - correct + 1, odds / (1 + odds)))
    if above > 0.5:
        return 1.0
    found = above
    if delta:
        # P[W >= v] / P[W = v], from the ratios of binomial probabilities: none of them can vanish
        k = np.arange(correct, guesses)
        hazard = 1 + float(np.cumprod((guesses - k) / (k + 1) * odds).sum())
        found += canaries * delta * (1 - above) * hazard / correct  # equation (1) of the proof
    return min(1.0, found * (1 + _ROUNDING))


def lower_bound(correct, guesses, canaries, delta, error):
    """Return a number that is above the true epsilon, the least with this delta, with probability at most `error`."""
    if chance(correct, guesses, canaries, 0.0, delta) > error:
        return 0.0
    low, high = 0.0, 1.0
    while high < _LARGEST and chance(correct, guesses, canaries, high, delta) <= error:
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if chance(correct, guesses, canaries, middle, delta) <= error:
            low = middle
        else:
            high = middle
    return low
