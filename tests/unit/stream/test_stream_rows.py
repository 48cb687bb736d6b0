"""Rows of streams: what they cost by brute force, budgets within any window, and intervals."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpestim.privacy import Neighbours
from dpestim.stream import ContinualHistogram, HaarRelease, SVTRelease, WEventRelease


@pytest.mark.parametrize("weights", ["haar", "equal"])
def test_haar_coefficients_cost_epsilon_for_all_rows_of_eight_cells(weights):
    """Every event in every row of zeros and ones costs all of epsilon; orthonormal ones move by up to 1 + sqrt(2)."""
    spec = HaarRelease(1.0, n_cells=8, weights=weights)._spec()
    norms = set()
    for row in product((0, 1), repeat=8):
        one = np.array([row], np.int64)
        for cell in range(8):
            two = one.copy()
            two[0, cell] ^= 1
            moves = [int(np.abs(a - b).sum()) for a, b in zip(spec.coefficients(one), spec.coefficients(two))]
            norms.add(sum(move / size**0.5 for move, size in zip(moves, spec.sizes)))
            assert Fraction(999, 1000) < spec.loss(one, two, None) <= 1
    assert len(norms) == 1
    assert 1.9 < norms.pop() < 1 + 2**0.5


def test_haar_inverts_and_its_intervals_hold():
    rows = np.random.default_rng(0).poisson(20, (400, 8))
    est = HaarRelease(1.0, n_cells=8, bounds=(0, 100), change=1, random_state=0)
    found = est.partial_fit(rows)
    low, high = est.confidence_interval(0.9)
    assert 0.9 < ((low <= rows) & (rows <= high)).mean() <= 1
    assert np.isclose(((found - rows) ** 2).mean(), est.standard_errors_[0, 0] ** 2, rtol=0.2)
    sure = HaarRelease(80.0, n_cells=8, bounds=(0, 100), change=1, weights="equal", random_state=0).partial_fit(rows)
    assert np.abs(sure - rows).max() < 2
    flat = np.full((200, 8), 20)
    haar = HaarRelease(1.0, n_cells=8, bounds=(0, 100), change=1, random_state=0)
    plain, hard = (haar.set_params(shrink=shrink).release(flat) for shrink in (None, "hard"))
    assert ((hard - flat) ** 2).mean() < 0.7 * ((plain - flat) ** 2).mean()


@pytest.mark.parametrize("method", ["bd", "ba"])
@pytest.mark.parametrize("window", [1, 2, 5])
def test_no_window_of_steps_costs_more_than_epsilon(method, window):
    """Whatever is decided: publications at all, at few and at no steps of many streams; the bound is reached."""
    spec = WEventRelease(1.0, window=window, method=method)._spec()
    worst, rng = Fraction(0), np.random.default_rng(0)
    for chance in (1.0, 0.7, 0.3, 0.1):
        state, costs = spec.begin(), []
        for t in range(300):
            cost = spec.offered(state) * int(rng.random() < chance)
            if cost:
                state["last"], state["shares"] = t + 1, int(cost / spec._share)
            state["steps"], state["spent"] = t + 1, [*state["spent"], cost][-window:]
            costs.append(cost)
        worst = max([worst, *(sum(costs[t : t + window]) for t in range(300))])
    assert worst <= Fraction(1, 2)
    assert worst > Fraction(1, 5)


def test_a_sparse_release_is_renewed_where_the_stream_moves_and_stops_after_the_last():
    people = np.repeat([[500, 20], [100, 420], [500, 20], [0, 0]], 20, axis=0)
    est = SVTRelease(4.0, n_cells=2, bounds=(0, 1000), change=2, threshold=200, max_releases=3, random_state=0)
    est.fit(people)
    assert np.flatnonzero(est.renewed_).tolist() == [0, 20, 40]
    assert est.n_releases_ == 3
    assert np.array_equal(est.values_[-1], est.values_[40])
    assert est.privacy_.neighbours is Neighbours.USER


def test_what_moves_at_every_step_costs_no_more_than_epsilon():
    """Streams of up to 8 steps in which a user changes every row: the worst cost of many runs, to the end."""
    spec = SVTRelease(1.0, n_cells=1, bounds=(0, 3), change=1, threshold=1.0, max_releases=2)._spec()
    worst = 0
    for seed, one in enumerate(product((0, 2), repeat=8)):
        one = np.array(one, np.int64)[:, None]
        for sign in (1, -1):
            two = np.clip(one + sign, 0, 3)
            worst = max(worst, spec.loss(one, two, SVTRelease()._noise(seed)))
    assert Fraction(1, 2) < worst <= 1


def test_cells_are_counters_with_noise_of_their_own():
    rows = np.random.default_rng(0).integers(0, 2, (200, 3))
    est = ContinualHistogram(1.0, n_cells=3, delta=1e-6, horizon=200, random_state=0).fit(rows)
    errors = (est.values_ - rows.cumsum(0)) / est.standard_errors_
    assert len({tuple(column.round(6)) for column in errors.T}) == 3
    assert np.abs(errors).max() < 6
    assert est.result_.to_frame().shape[0] == 3


@pytest.mark.parametrize("resolution", [1, 0.5, 0.1])
@pytest.mark.parametrize("cls", [SVTRelease, WEventRelease])
def test_a_user_who_moves_from_one_cell_to_another_is_protected(cls, resolution):
    """`change` is that of a whole row: two cells that change cost no more than epsilon, on any grid."""
    top = round(3 * resolution, 9)
    values = (np.arange(4) * resolution).round(9)
    for change, bounds, pairs in ((2, (0, 1), [((0, 1), (1, 0))]),
                                  (2 * resolution, (0, top), list(product(product(values, values), repeat=2)))):
        est = cls(1.0, n_cells=2, bounds=bounds, change=change, resolution=resolution)
        spec, worst = est._spec(), 0
        for one, two in pairs:
            if np.abs(np.subtract(one, two)).sum() > change * (1 + 1e-9):
                continue
            rows = [spec.read(np.array([row] * 3, float), False)[0] for row in (one, two)]
            assert np.abs(rows[0] - rows[1])[0].sum() <= spec.steps.change
            worst = max(worst, spec.loss(*rows, est._noise(0)))
        assert worst <= 1
