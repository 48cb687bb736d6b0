"""IDUE: every pair of values keeps the smaller epsilon exactly, and the optimisations are those of the paper."""

from fractions import Fraction

import numpy as np
import pytest

from dpestim.local import IDUEFrequencyEstimator
from dpestim.local.categories.idue import IDUE
from dpestim.local.categories.unary import OUE
from dpestim.privacy.category_weights import sue_thresholds
from dpestim.privacy.exact import WORD, exp_lower

LEVELS = (0.5,) * 5 + (1.0,) * 20 + (2.0,) * 75


def keeps(law, epsilons):
    p, q = law.p_stars, law.q_stars
    return all(
        p[x] * (1 - q[y]) <= exp_lower(min(epsilons[x], epsilons[y])) * q[x] * (1 - p[y])
        for x in range(len(p)) for y in range(len(p)) if x != y
    )


@pytest.mark.parametrize("optimize", ["opt0", "opt1", "opt2"])
@pytest.mark.parametrize("epsilons", [(0.5, 0.5, 1.0, 2.0), (0.01, 0.02, 3.0), (1.0, 1.0), (0.5, 8.0, 8.0)])
def test_every_pair_keeps_the_smaller_epsilon(optimize, epsilons):
    exact = tuple(Fraction(str(e)) for e in epsilons)
    law = IDUE.make(8.0, len(exact), exact, optimize)
    assert keeps(law, exact)
    assert law.worst_ratio() <= exp_lower(min(max(exact), 2 * min(exact)))


@pytest.mark.parametrize(("optimize", "expected"), [("opt0", 970), ("opt1", 979)])
def test_the_objective_is_that_of_the_formulas(optimize, expected):
    at_zero, slope = IDUE.make(1.0, 100, LEVELS, optimize).variance_line(None, 1)
    assert round(at_zero.sum() + max(slope.max(), 0)) == expected
    at_zero, slope = OUE.make(0.5, 100).variance_line(None, 1)
    assert round(100 * at_zero + slope) == 1568


def test_half_of_each_own_epsilon_is_not_enough():
    """The broken twin: each bit flipped as symmetric unary encoding with its own epsilon would."""

    class Naive:
        pairs = [[Fraction(t, WORD) for t in sue_thresholds(e)] for e in (Fraction(1, 2), Fraction(2))]
        p_stars, q_stars = zip(*pairs)

    assert not keeps(Naive, (Fraction(1, 2), Fraction(2)))


def test_without_own_epsilons_it_is_as_good_as_oue():
    at_zero, _ = IDUE.make(1.0, 100).variance_line(None, 1)
    assert at_zero.max() <= 1.01 * OUE.make(1.0, 100).variance_line(None, 1)[0]


@pytest.mark.parametrize("epsilons", [[[1.0, 2.0]], [[1.0, 2.0, -1.0]], [[1.0, 2.0, None]], [[1.0] * 3] * 2, 3])
def test_bad_epsilons(epsilons):
    with pytest.raises(ValueError, match="epsilons"):
        IDUEFrequencyEstimator(epsilons=epsilons, categories=[["a", "b", "c"]]).fit(np.array([["a"], ["b"]]))


def test_bad_optimize():
    with pytest.raises(ValueError, match="optimize"):
        IDUE.make(1.0, 3, None, "opt3")
