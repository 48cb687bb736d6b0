"""Laws of cells: the linear program against brute force, its rounding, and how far each mechanism moves a user."""

from fractions import Fraction

import numpy as np
import pytest

from dpestim.accounting import Ledger
from dpestim.geo import OptimalGeoTransformer, PlanarGeometricTransformer
from dpestim.geo.optimal import OptimalLaw

TOWN = ([0.0, 0.0], [300.0, 200.0])


def cells(cls, epsilon=0.01, **more):
    return cls(epsilon, **{"bounds": TOWN, "units": "metres", "step": 100.0, **more})


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("epsilon", [0.002, 0.01, 0.03])
def test_the_optimal_law_moves_users_least(metric, epsilon):
    prior = np.stack(np.meshgrid([0.0, 100.0, 200.0, 300.0], [0.0, 100.0, 200.0], indexing="ij"), -1).reshape(-1, 2)
    skewed = prior, 1.0 + np.arange(12) % 5
    best, plain = (cells(cls, epsilon, metric=metric, prior=skewed) for cls in (OptimalGeoTransformer,
                                                                                PlanarGeometricTransformer))
    assert best.expected_distance() <= plain.expected_distance() * (1 + 1e-6)


def test_two_cells_are_randomised_response():
    """Of two cells at distance r the best law keeps the own one with e^(epsilon r) / (1 + e^(epsilon r))."""
    law = OptimalLaw(Fraction(1, 100), 1, 2, Fraction(100))
    keep = np.e / (1 + np.e)
    assert np.allclose(np.array(law.transition_matrix(), float), [[keep, 1 - keep], [1 - keep, keep]], atol=1e-7)
    assert law.worst_ratio() <= Fraction(np.e) * (1 + Fraction(1, 10**12))
    assert cells(OptimalGeoTransformer, bounds=([0, 0], [0.5, 100.0])).expected_distance() == pytest.approx(
        100 * (1 - keep), rel=1e-6)


def test_floats_of_the_solver_are_not_relied_on():
    class Sloppy(OptimalLaw):
        def _solved(self, at, share):
            found = super()._solved(at, share)
            return found * (1 + 1e-6 * np.random.default_rng(0).normal(size=found.shape))

    class Greedy(OptimalLaw):
        def _rounded(self, found, mixed):
            return [[w if x == y else w - 2**44 for y, w in enumerate(row)] for x, row in enumerate(
                super()._rounded(np.exp(-2.0 * self._apart), mixed))]

    law = Sloppy(Fraction(1), 2, 3, Fraction(1))
    assert law._keeps(law.weights)
    assert all(sum(row) == 1 << 64 for row in law.weights)
    with pytest.raises(ValueError, match="cannot be rounded"):
        Greedy(Fraction(1), 2, 3, Fraction(1))


def test_the_dilation_of_moves_is_what_is_stated():
    law = OptimalLaw(Fraction(1), 5, 5, Fraction(1))
    at = np.stack(np.divmod(np.arange(25), 5), axis=1)
    assert 1 < law._dilation(at, ((0, 1), (1, 0), (1, 1), (1, -1), (1, 2), (2, 1), (1, -2), (2, -1))) < 1.028
    assert law._dilation(at, ((0, 1), (1, 0))) > 1.4


@pytest.mark.parametrize(("more", "words"), [({"step": 10.0}, "PlanarGeometric"), ({"metric": "l3"}, "metric must"),
                                             ({"step": 1e5}, "further apart"), ({"epsilon": 1e-15}, "epsilon is too")])
def test_what_is_no_program_is_refused_before_the_charge(more, words):
    ledger = Ledger(10**6)
    with pytest.raises(ValueError, match=words):
        cells(OptimalGeoTransformer, **more, ledger=ledger).fit_transform([[20.0, 20.0]])
    assert ledger.spent().is_nothing


def test_a_step_that_is_not_declared_makes_few_cells():
    for region in (([48.80, 2.22], [48.92, 2.42]), ([0.0, 0.0], [0.4, 0.01])):
        law = OptimalGeoTransformer(0.001, bounds=region)._columns_now().laws[0]
        assert 4 <= law.n_inputs <= 36


def test_distances_are_measured_as_computed():
    X = np.tile([[120.0, 80.0]], (40_000, 1))
    est = cells(PlanarGeometricTransformer, random_state=0)
    away = np.hypot(*(est.fit_transform(X) - [100.0, 100.0]).T)
    assert abs(away.mean() - est.expected_distance(([[100.0, 100.0]], [1.0]))) < 5 * away.std() / 200
