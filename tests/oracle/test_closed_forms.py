"""Laws and variances against the closed forms of the literature, written down here independently of the package."""

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from dpestim.local import (
    BinaryFrequencyEstimator,
    BLHFrequencyEstimator,
    GRRFrequencyEstimator,
    HRFrequencyEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    SSFrequencyEstimator,
    SUEFrequencyEstimator,
)

mp.dps = 40


@pytest.fixture(autouse=True)
def _digits():
    """Other modules have their own number of digits, and the last one imported would win."""
    with mp.workdps(40):
        yield
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
    if name == "SUE":
        h = mp.sqrt(e)
        return h / (h + 1), 1 / (h + 1), h / (h - 1) ** 2, mpf(0)
    if name == "BLH":
        return e / (e + 1), mpf(1) / 2, ((e + 1) / (e - 1)) ** 2, mpf(-1)
    if name == "SS":
        def law(k):
            p = k * e / (k * e + d - k)
            q = (p * (k - 1) + (1 - p) * k) / (d - 1)
            return q * (1 - q) / (p - q) ** 2, p, q

        at_zero, p, q = min(law(k) for k in range(1, d))
        return p, q, at_zero, (1 - p - q) / (p - q)
    g = min(range(2, int(e) + 4), key=lambda g: (e - 1 + g) ** 2 / (g - 1))
    p, q = e / (e + g - 1), mpf(1) / g
    return p, q, (e - 1 + g) ** 2 / ((e - 1) ** 2 * (g - 1)), (1 - p - q) / (p - q)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("d", DOMAINS)
@pytest.mark.parametrize(
    ("name", "face"),
    [
        ("GRR", GRRFrequencyEstimator),
        ("OUE", OUEFrequencyEstimator),
        ("SUE", SUEFrequencyEstimator),
        ("OLH", OLHFrequencyEstimator),
        ("BLH", BLHFrequencyEstimator),
        ("SS", SSFrequencyEstimator),
    ],
)
def test_realised_laws_are_the_ideal_ones(name, face, epsilon, d):
    randomizer = face._randomizer.make(epsilon, d)
    p, q, at_zero, slope = ideal(name, epsilon, d)
    close = 1e-6 if name == "SS" else 1e-9  # subset selection pays 2e-7 of epsilon for the unevenness of its draws
    for realised, wanted in ((randomizer.p_star, p), (randomizer.q_star, q)):
        assert isinstance(realised, Fraction)
        assert abs(mpf(realised.numerator) / realised.denominator / wanted - 1) < close
    n = 1000
    for f in (0.0, 0.3, 1.0):
        wanted = float((at_zero + slope * mpf(f)) / n)
        assert randomizer.variance(n, f) == pytest.approx(wanted, rel=100 * close)


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


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("d", DOMAINS)
def test_hadamard_response_has_the_best_number_of_blocks_and_its_variance(epsilon, d):
    randomizer = HRFrequencyEstimator._randomizer.make(epsilon, d)
    e = float(exp(epsilon))
    blocks = [1 << i for i in range(12) if 1 << i < 2 * d]
    assert randomizer.n_blocks == min(blocks, key=lambda b: (2 + (e - 1) / b) * (e + 2 * b - 1))
    b = randomizer.n_blocks
    f = np.random.default_rng(d).dirichlet(np.ones(d))
    share = np.array([f[x % b :: b].sum() for x in range(d)])
    wanted = ((2 + share * (e - 1)) * (e + 2 * b - 1) / (e - 1) ** 2 - f) / 1000
    assert np.allclose(randomizer.variance(1000, f), wanted, rtol=1e-7)
    assert randomizer.n_counts == 2 * b * randomizer.half
    assert -(-d // b) <= 2 * randomizer.half - 1 < 4 * -(-d // b)


@pytest.mark.parametrize("n_blocks", [1, 4])
def test_hadamard_estimates_solve_the_linear_system(n_blocks):
    epsilon = {1: 1.0, 4: 2.3}[n_blocks]
    randomizer = HRFrequencyEstimator._randomizer.make(epsilon, 11)
    assert randomizer.n_blocks == n_blocks
    f = np.random.default_rng(0).dirichlet(np.ones(11))
    expected = f @ np.array(randomizer.transition_matrix(), dtype=float)
    scaled = np.round(expected * 2**40).astype(np.int64)
    assert np.allclose(randomizer.estimate(scaled, 2**40), f, atol=1e-9)


def test_the_coin_is_exact():
    coin = BinaryFrequencyEstimator._randomizer.make(None, 2)
    assert coin.transition_matrix() == [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]]
    assert float(coin.epsilon) == pytest.approx(np.log(3), abs=1e-14)
    assert coin.variance(100, np.array([0.2, 0.8])) == pytest.approx([3 / 400, 3 / 400])


def test_subset_selection_is_never_worse_than_its_siblings():
    for epsilon in EPSILONS:
        for d in (3, 18, 1024):
            values = [
                face._randomizer.make(epsilon, d).variance(1, np.full(d, 1 / d)).mean()
                for face in (SSFrequencyEstimator, GRRFrequencyEstimator, OUEFrequencyEstimator, SUEFrequencyEstimator)
            ]
            assert values[0] <= min(values) * (1 + 1e-6)
