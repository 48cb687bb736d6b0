"""Chances in whole numbers out of 100: bounds of what releases really do, and tight where a law is the worst."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from dpestim.audit import BayesianAdversary
from dpestim.local import GRRFrequencyEstimator, OUEFrequencyEstimator
from dpestim.privacy import ZCDP, Neighbours, PrivacyGuarantee
from dpestim.privacy.chances import chances, chances_of, guessed


def best_event(p, q, most):
    """Return the largest probability under p of a randomised event whose probability under q is `most`."""
    order = np.argsort(-p / q)
    p, q = p[order], q[order]
    before = np.concatenate([[0.0], np.cumsum(q)])
    return float(np.interp(most, before, np.concatenate([[0.0], np.cumsum(p)])))


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1, 2, 5, 8, 12])
def test_randomised_response_is_the_worst_and_nothing_is_given_away(epsilon):
    found, e = chances(PrivacyGuarantee(epsilon)), math.exp(epsilon)
    yes, no = np.array([e, 1]) / (1 + e), np.array([1, e]) / (1 + e)
    for without, within in ((found.without, found.within), (found.few, found.within_few)):
        true = found.base * best_event(yes, no, without / found.base)
        assert true <= within < true + 1
    right = found.base * e / (1 + e)
    assert right <= found.right < right + 1
    assert found.right < found.base  # (a bound never looks like certainty)
    assert found == chances_of(Fraction(str(epsilon)))


@pytest.mark.parametrize("rho", [0.001, 0.02, 0.1, 0.5, 2])
def test_a_curve_bounds_gaussian_noise_and_says_more_than_its_face(rho):
    distance = math.sqrt(2 * rho)
    face = PrivacyGuarantee(9, 1e-6, "central", Neighbours.SUBSTITUTION)
    found = chances(PrivacyGuarantee(9, 1e-6, "central", Neighbours.SUBSTITUTION, curve=ZCDP(rho)))
    for without, within in ((found.without, found.within), (found.few, found.within_few)):
        assert within >= found.base * norm.cdf(norm.ppf(without / found.base) + distance)
    assert found.right >= found.base * norm.cdf(distance / 2)
    assert found.right / found.base < chances(face).right / chances(face).base
    if rho < 0.5:
        assert found.right / found.base < norm.cdf(distance / 2) + 0.15  # (it is no empty bound)


def test_delta_counts_and_what_is_no_bound_is_none():
    told = chances(PrivacyGuarantee(1, 0.1))
    lying = np.array([0.1, 0.9 * math.e / (1 + math.e), 0.9 / (1 + math.e), 1e-300])  # (one in ten times it tells all)
    other = lying[::-1]
    true = 100 * best_event(lying, np.maximum(other, 1e-300), told.without / 100)
    assert true <= told.within < true + 1
    for nothing in (PrivacyGuarantee(math.inf), PrivacyGuarantee(15), PrivacyGuarantee(1, 1)):
        assert chances(nothing) is None
    relaxed = PrivacyGuarantee(math.inf, relaxation="SDLDP(x)", relaxed_epsilon=1)
    assert chances(relaxed) == chances(PrivacyGuarantee(1))
    assert chances_of(Fraction(15)) is None


@pytest.mark.parametrize("n", [2, 3, 10, 150])
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_a_guess_is_bounded_for_every_law_and_direct_encoding_reaches_it(n, epsilon):
    base, before, after = guessed(Fraction(str(epsilon)), n)
    given = {"categories": [list(range(n))]}
    right = base * BayesianAdversary(GRRFrequencyEstimator(epsilon, **given)).expected_success()
    assert right - 1e-6 <= after < right + 1
    assert abs(before - base / n) <= 0.5
    assert base >= n
    assert base * BayesianAdversary(OUEFrequencyEstimator(epsilon, **given)).expected_success() <= after
    assert guessed(Fraction(15), n) is None
