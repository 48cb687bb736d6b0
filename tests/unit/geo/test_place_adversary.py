"""The best guess of an adversary, against brute force in fractions and against reports."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from dpestim.geo import OptimalGeoTransformer, PlaceAdversary, PlanarGeometricTransformer, PlanarLaplaceTransformer

TOWN = {"bounds": ([0.0, 0.0], [2.0, 1.0]), "units": "metres", "step": 1.0}


@pytest.mark.parametrize("device", [PlanarGeometricTransformer(0.7, metric="manhattan", **TOWN),
                                    PlanarLaplaceTransformer(1.0, **TOWN), OptimalGeoTransformer(1.5, **TOWN)])
def test_expected_errors_are_those_of_brute_force(device):
    weights = [Fraction(k, 21) for k in (1, 2, 3, 4, 5, 6)]
    places = list(itertools.product(range(3), range(2)))
    spy = PlaceAdversary(device, (places, [float(w) for w in weights]))
    matrix = device._columns_now().laws[0].transition_matrix()
    manhattan = device._columns_now().laws[0].manhattan

    def far(p, q):
        return abs(p[0] - q[0]) + abs(p[1] - q[1]) if manhattan else float(np.hypot(p[0] - q[0], p[1] - q[1]))

    error = sum(min(sum(float(w * row[y]) * far(p, q) for w, row, p in zip(weights, matrix, places)) for q in places)
                for y in range(6))
    assert spy.expected_error() == pytest.approx(error, rel=1e-12)
    success = sum(max(w * row[y] for w, row in zip(weights, matrix)) for y in range(6))
    assert spy.expected_success() == pytest.approx(float(success), rel=1e-12)
    assert spy.expected_success(10.0) == pytest.approx(1.0)
    assert spy.expected_error() <= spy.error_without_report() + 1e-12


def test_guesses_are_as_far_off_as_expected():
    device = PlanarGeometricTransformer(0.7, random_state=0, **TOWN)
    spy = PlaceAdversary(device)
    X = np.array(list(itertools.product(range(3), range(2))), float)[np.random.default_rng(1).integers(0, 6, 40_000)]
    away = np.hypot(*(spy.guess(device.privatize(X)) - X).T)
    assert abs(away.mean() - spy.expected_error()) < 5 * away.std() / 200


def test_more_epsilon_tells_more_and_a_sharp_prior_needs_no_report():
    errors = [PlaceAdversary(PlanarGeometricTransformer(e, **TOWN)).expected_error() for e in (0.1, 0.5, 2.0)]
    assert errors[0] > errors[1] > errors[2]
    sharp = PlaceAdversary(PlanarGeometricTransformer(0.1, **TOWN), ([[1.0, 1.0]], [1.0]))
    assert sharp.expected_error() == sharp.error_without_report() == 0


@pytest.mark.parametrize(("call", "words"), [
    (lambda: PlaceAdversary(3), "transformer must be"),
    (lambda: PlaceAdversary(PlanarLaplaceTransformer(0.01, bounds=([48.8, 2.2], [48.9, 2.4]))), "at most 1024 places"),
    (lambda: PlaceAdversary(PlanarGeometricTransformer(1.0, **TOWN)).expected_success(-1), "metres must be"),
    (lambda: PlaceAdversary(PlanarGeometricTransformer(1.0, **TOWN)).guess([[1.5]]), "reports must be"),
])
def test_what_cannot_be_guessed_from_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
