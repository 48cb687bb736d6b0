"""Laws and variances against the closed forms of the literature, written down here independently of the package."""

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from dpestim.local import GRRFrequencyEstimator, OLHFrequencyEstimator, OUEFrequencyEstimator

mp.dps = 40
EPSILONS = [0.1, 0.5, 1.0, 2.5, 6.0]
DOMAINS = [2, 3, 18, 1024]


def exp(epsilon):
    return mp.exp(mpf(repr(epsilon)))


def ideal(name, epsilon, d):
    """(p, q, n Var at f = 0, coefficient of f in n Var) of the ideal mechanism."""
    e = exp(epsilon)
    if name == "GRR":
        return e / (e + d - 1), 1 / (e + d - 1), (e + d - 2) / (e - 1) ** 2, (d - 2) / (e - 1)
    if name == "OUE":
        return mpf(1) / 2, 1 / (e + 1), 4 * e / (e - 1) ** 2, mpf(1)
    g = min(range(2, int(e) + 4), key=lambda g: (e - 1 + g) ** 2 / (g - 1))
    p, q = e / (e + g - 1), mpf(1) / g
    return p, q, (e - 1 + g) ** 2 / ((e - 1) ** 2 * (g - 1)), (1 - p - q) / (p - q)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("d", DOMAINS)
@pytest.mark.parametrize(
    ("name", "face"), [("GRR", GRRFrequencyEstimator), ("OUE", OUEFrequencyEstimator), ("OLH", OLHFrequencyEstimator)]
)
def test_realised_laws_are_the_ideal_ones(name, face, epsilon, d):
    randomizer = face._randomizer.make(epsilon, d)
    p, q, at_zero, slope = ideal(name, epsilon, d)
    for realised, wanted in ((randomizer.p_star, p), (randomizer.q_star, q)):
        assert isinstance(realised, Fraction)
        assert abs(mpf(realised.numerator) / realised.denominator / wanted - 1) < 1e-9
    n = 1000
    for f in (0.0, 0.3, 1.0):
        wanted = float((at_zero + slope * mpf(f)) / n)
        assert randomizer.variance(n, f) == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_grr_is_best_up_to_3e_plus_2(epsilon):
    edge = 3 * np.exp(epsilon) + 2
    for d, best in ((int(edge) - 1, "GRR"), (int(edge) + 2, "OUE")):
        grr = GRRFrequencyEstimator._randomizer.make(epsilon, max(d, 2)).variance(1, 0.0)
        oue = OUEFrequencyEstimator._randomizer.make(epsilon, max(d, 2)).variance(1, 0.0)
        assert (grr < oue) == (best == "GRR")


def test_estimates_solve_the_linear_system():
    """The transition matrix inverts the expected counts: Q^T f = E[counts] / n."""
    f = np.array([0.5, 0.3, 0.15, 0.05])
    randomizer = GRRFrequencyEstimator._randomizer.make(1.3, 4)
    law = np.array(randomizer.transition_matrix(), dtype=float)
    expected = 1000 * f @ law
    assert np.allclose(np.linalg.solve(law.T, expected / 1000), f)
    assert np.allclose(randomizer.estimate(expected, 1000), f)
