"""How often to run: random numbers with which the best of many runs costs little more than one (`search.md`)."""

import math
from fractions import Fraction

#: Runs are trainings: a thousand times the candidates is more than anybody waits for.
LEAST_GAMMA = Fraction(1, 10_000)
#: Where nothing is declared: runs for each candidate, on average.
_RUNS_PER_CANDIDATE = 4


def n_runs(stream, gamma, eta):
    """Return a number k >= 1, P[k] proportional to (1 - gamma)^(k - 1) times (l + eta) / (l + 1), l from 1 to k - 1.

    Exactly: a walk that stops with probability gamma, else goes on or starts again. Fractions, eta in (-1, 1].
    """
    k = 1
    while stream.below(gamma.denominator) >= gamma.numerator:
        goes_on = stream.below((k + 1) * eta.denominator) < k * eta.denominator + eta.numerator
        k = k + 1 if goes_on else 1
    return k


def best_of(stream, gamma, eta, run):
    """Return the best of a random number of runs; each returns a tuple that starts with its score.

    The first of equals: which is best must not depend on anything but scores.
    """
    best = None
    for _ in range(n_runs(stream, gamma, eta)):
        found = run()
        if best is None or found[0] > best[0]:
            best = found
    return best


def expected_runs(gamma, eta):
    """Return the mean of `n_runs`, a float: public; right to 12 digits, as a delta depends on it."""
    if gamma == 1:
        return 1.0
    gamma, stops, eta = float(gamma), float(1 - gamma), float(eta)
    log = math.log1p(-stops)
    if abs(eta) < 1e-30:  # logarithmic, the limit
        return stops / (gamma * -log)
    return eta * stops / (gamma * -math.expm1(eta * log))


def usual_gamma(n_candidates, eta):
    """Return the gamma with which four runs come on each candidate, on average, as a Fraction."""
    low, high = math.log(LEAST_GAMMA), 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if expected_runs(math.exp(middle), eta) > _RUNS_PER_CANDIDATE * n_candidates else (
            low, middle)
    return max(LEAST_GAMMA, Fraction(round(math.exp(high) * 10**6), 10**6))
