"""The law of a metric: exact ratios for every pair, shortest paths, and refusals."""

from fractions import Fraction

import numpy as np
import pytest

from dpestim.accounting import Ledger
from dpestim.local import MetricFrequencyEstimator
from dpestim.local.categories.grr import GRR
from dpestim.local.categories.metric import Metric, shortest
from dpestim.privacy.exact import exp_lower


def keeps(law, distances, per_unit):
    rows = law.transition_matrix()
    return all(
        rows[x][y] <= exp_lower(per_unit * distances[x][z]) * rows[z][y]
        for x in range(len(rows)) for z in range(len(rows)) for y in range(len(rows)) if x != z
    )


def line(d):
    return tuple(tuple(abs(x - y) for y in range(d)) for x in range(d))


def ring(d):
    return tuple(tuple(min((x - y) % d, (y - x) % d) for y in range(d)) for x in range(d))


@pytest.mark.parametrize("distances", [line(5), line(12), ring(6),
                                       ((0, 3, 1), (3, 0, Fraction(1, 2)), (1, Fraction(1, 2), 0))])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 7.0])
def test_every_ratio_keeps_its_distance(distances, epsilon):
    law = Metric.make(epsilon, len(distances), distances)
    assert keeps(law, law.distances, law.epsilon)
    assert keeps(law, distances, law.epsilon)  # shortest paths promise more


def test_the_half_may_be_left_out_only_where_all_sums_are_equal():
    # a ring spends nearly all of epsilon, a line with the whole exponent would break it: the check tells
    assert float(Metric.make(3.0, 6, ring(6)).worst_ratio()) > np.exp(0.999 * 3)

    class Whole:
        ideal = np.exp(-np.array(line(5), float))
        rows = [[Fraction(w) for w in row] for row in (ideal / ideal.sum(axis=1, keepdims=True)).tolist()]

        @classmethod
        def transition_matrix(cls):
            return cls.rows

    assert not keeps(Whole, line(5), Fraction(1))


def test_equal_distances_are_randomised_response():
    assert float(Metric.make(1.0, 5).p_star) == pytest.approx(float(GRR.make(1.0, 5).p_star), rel=1e-5)


def test_shortest_paths():
    assert shortest(((0, 1, 9), (1, 0, 1), (9, 1, 0)), 3)[0][2] == 2


@pytest.mark.parametrize("matrix", [
    [[0, 1, 2], [1, 0, 1], [1, 1, 0]], [[0, 1, 0], [1, 0, 1], [0, 1, 0]], [[1, 1, 1], [1, 0, 1], [1, 1, 0]],
    [[0, 1], [1, 0]], [[0, 1, -1], [1, 0, 1], [-1, 1, 0]], [[0, 1, np.inf], [1, 0, 1], [np.inf, 1, 0]], 5,
])
def test_bad_distances(matrix):
    with pytest.raises(ValueError, match="distance"):
        MetricFrequencyEstimator(distance=[matrix], categories=[["a", "b", "c"]]).fit(np.array([["a"], ["b"]]))


def test_a_callable_is_the_matrix_of_its_distances():
    one = MetricFrequencyEstimator(3.0, distance=lambda a, b: abs(a - b), categories=[[0, 1, 2]])
    assert one.randomizer() == MetricFrequencyEstimator(3.0, distance=[line(3)], categories=[[0, 1, 2]]).randomizer()


def test_a_law_that_tells_nothing_is_refused():
    with pytest.raises(ValueError, match="epsilon is too small"):
        Metric.make(1e-5, 30, line(30))


def test_an_account_of_a_unit_of_distance_and_a_plain_one():
    setting = {"distance": [line(4)], "categories": [[10, 11, 12, 13]]}
    stated = MetricFrequencyEstimator(0.5, **setting).privacy_
    assert stated.relaxed_epsilon == Fraction(1, 2)
    assert 0.7 < float(stated.epsilon) <= 1.5
    assert stated.relaxation.startswith("metric LDP(column 0: all=[10, 11, 12, 13], distances up to 3, ")
    plain, metric = Ledger(2.0), Ledger(2.0, relaxation=stated.relaxation)
    for ledger, paid in ((plain, stated.epsilon), (metric, Fraction(1, 2))):
        MetricFrequencyEstimator(0.5, ledger=ledger, **setting).fit([[10], [13]])
        assert ledger.spent().epsilon == paid
    others = ({"distance": [[[2 * part for part in row] for row in line(4)]]}, {"categories": [[13, 11, 12, 10]]})
    for other in others:
        assert MetricFrequencyEstimator(0.5, **setting | other).privacy_.relaxation != stated.relaxation
