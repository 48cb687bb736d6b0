"""Counterexamples: those that are found are certified, of neighbours as declared, and right programs have none."""

import math
import pickle
from fractions import Fraction
from itertools import chain, combinations, product

import numpy as np
import pytest

from dpestim.audit import Density, exact_epsilon, search_counterexample
from dpestim.audit.certificates import of_densities, of_laws
from dpestim.audit.gallery import central, local
from dpestim.audit.spaces import Box, Choices
from dpestim.local import GRRFrequencyEstimator
from dpestim.privacy.exact import exp_upper
from dpestim.testing.tools import differs_each_time

LAPLACE = Density(lambda x: 0.5 * math.exp(-abs(x)), (0,))


# ---------------------------------------------------------------- certificates


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 20), Fraction(1, 3)])
def test_no_event_proves_more_than_the_one_that_is_found(delta):
    rng = np.random.default_rng(0)
    for _ in range(20):
        p, q = ([Fraction(int(w), int(sum(part))) for w in part] for part in rng.integers(0, 9, (2, 5)))
        found = of_laws(dict(enumerate(p)), dict(enumerate(q)), delta)
        best = Fraction(0)
        for event in chain.from_iterable(combinations(range(5), size) for size in range(1, 6)):
            above, other = sum(p[k] for k in event) - delta, sum(q[k] for k in event)
            if above > 0:
                best = max(best, above / other if other else math.inf)
        if best in (0, math.inf):
            assert found.epsilon == best
        else:
            assert found.epsilon == pytest.approx(max(0.0, math.log(best)), abs=1e-12)
            assert found.epsilon == 0 or exp_upper(Fraction(found.epsilon)) * found.other <= (
                found.likelier - delta) * (1 + Fraction(1, 10**70))


def test_what_quadrature_proves_is_what_is_known():
    moved = LAPLACE.moved(2.0)
    assert 2 - 1e-5 < of_densities(LAPLACE, moved, 0.0, 1.0).epsilon <= 2
    assert of_densities(LAPLACE, moved, 0.0, 3.0).epsilon <= 2
    found = of_densities(LAPLACE, moved, 0.1, 0.5)  # P = 1 - e^-t / 2, Q = e^(t - 2) / 2 at t = 1, where both meet
    assert math.log((found.likelier - 0.1) / found.other) == pytest.approx(found.epsilon, abs=1e-6)
    uniform = Density(lambda x: 1.0, (), (0.0, 1.0))
    assert of_densities(uniform, uniform.moved(0.25), 0.2, 1.0).epsilon == math.inf
    assert of_densities(uniform, uniform.moved(0.25), 0.3, 1.0).epsilon < 0.3


# ---------------------------------------------------------------- neighbours


@pytest.mark.parametrize(("neighbours", "step"), [("any", None), ("one", None), ("each", 0.1), ("total", 0.7)])
def test_pairs_are_neighbours_exactly(neighbours, step):
    space, rng = Box((-0.3, 1.7), 6, neighbours, step), np.random.default_rng(0)
    pairs = space.starts()
    for pair in pairs[:20]:
        for _ in range(20):
            pair = space.near(pair, 0.5, rng)
            pairs.append(pair)
    for first, second in pairs:
        moves = [abs(Fraction(b) - Fraction(a)) for a, b in zip(first, second)]
        assert all(-0.3 <= value <= 1.7 for value in (*first, *second))
        assert any(moves)
        assert neighbours != "one" or sum(map(bool, moves)) == 1
        assert neighbours != "each" or max(moves) <= Fraction(1, 10)
        assert neighbours != "total" or sum(moves) <= Fraction(7, 10)
    rows = Choices([range(3), range(4)], "one")
    near = [rows.near(rows.starts()[0], 0.5, rng) for _ in range(50)]
    assert all(sum(a != b for a, b in zip(*pair)) == 1 for pair in (*rows.starts(), *near))
    assert len(set(near)) > 3


# ---------------------------------------------------------------- searches


def test_laws_of_categories_are_refuted_by_fractions():
    tuples = list(product(range(2), range(5)))
    nominal = math.log(2 * math.expm1(1.0) + 1)
    for epsilon, wrong in ((nominal, True), (1.0, False)):
        laws = {row: dict(zip(tuples, law)) for row, law in zip(tuples, local.sampled_and_faked(epsilon, (2, 5)))}
        found = search_counterexample(laws.__getitem__, claim=1.0, categories=[range(2), range(5)], neighbours="one",
                                      random_state=0, n_pairs=60)
        assert found.found is wrong
        assert found.certificate == "exact"
        assert sum(a != b for a, b in zip(*found.pair)) == 1
        if wrong:
            assert found.epsilon_lower == pytest.approx(1.138, abs=5e-4)
            likelier, other = found.probabilities
            assert isinstance(likelier, Fraction)
            assert likelier > exp_upper(Fraction(1)) * other
            value = laws[found.pair[0]], laws[found.pair[1]]
            assert any((p[y], q[y]) == (likelier, other) for p, q in [value] for y in tuples)


def test_a_matrix_loses_what_it_loses():
    rows = GRRFrequencyEstimator(1.0, categories=[range(4)]).randomizer(0).transition_matrix()
    found = search_counterexample(rows, claim=1.0, random_state=0, n_pairs=9)
    assert not found.found
    assert 0.99 < found.epsilon_lower <= exact_epsilon(rows) <= 1
    assert search_counterexample(rows, claim=0.9, random_state=0, n_pairs=9).found
    infinite = search_counterexample([[0.5, 0.5, 0], [0.5, 0.25, 0.25]], claim=(1.0, 0.2), random_state=0)
    assert infinite.epsilon_lower == math.inf
    assert infinite.event == "output is 2"
    assert not search_counterexample([[0.5, 0.5, 0], [0.5, 0.25, 0.25]], claim=(1.0, 0.3), random_state=0).found


def test_densities_are_refuted_by_quadrature():
    answer = {"bounds": (0, 1), "n_pairs": 1, "random_state": 0}
    for sigma, wrong in ((central.classic_sigma, True), (central.analytic_sigma, False)):
        law = central.gaussians(sigma(10.0, 1e-5))[0]
        found = search_counterexample(law.moved, claim=(10.0, 1e-5), **answer)
        assert found.found is wrong
        assert found.certificate == "quadrature"
    half = search_counterexample(lambda x: LAPLACE.moved(x, 0.5), claim=1.0, **answer)
    assert half.epsilon_lower == pytest.approx(2.0, abs=1e-4)
    assert sorted(half.pair) == [0.0, 1.0]


def test_samplers_are_refuted_by_an_audit():
    def largest(answers, n, rng):  # (claimed: 1, as for the index alone)
        return np.round(np.max(answers + rng.laplace(scale=2.0, size=(n, len(answers))), axis=1))

    given = {"bounds": (0, 5), "n_values": 8, "neighbours": "each", "step": 1, "batch": True, "random_state": 0}
    found = search_counterexample(largest, claim=1.0, n_samples=16_000, **given)
    assert found.found
    assert found.certificate == "samples"
    assert found.audit.violated
    assert found.epsilon_lower == found.audit.epsilon_lower
    assert max(abs(a - b) for a, b in zip(*found.pair)) <= 1
    # (no law: outputs)
    assert search_counterexample(lambda x: [x, 0.5], claim=1.0, bounds=(0, 1), n_samples=400, random_state=0).found
    right = search_counterexample(lambda x, n, rng: rng.random(n) < 0.5 + 0.23 * x, claim=1.0, bounds=(-1, 1),
                                  batch=True, n_samples=8_000, random_state=0)  # (ln 2.7)
    assert not right.found
    assert right.epsilon_lower > 0.7


def test_searches_are_reproducible_and_travel():
    given = {"claim": 1.0, "bounds": (0, 3), "n_values": 4, "neighbours": "total", "step": 1.5, "n_pairs": 70}

    def law(values):
        share = math.exp(-sum(v * k for k, v in enumerate(values, 1)) / 8) / 2
        return {"low": share, "high": 1 - share}

    one, again = (search_counterexample(law, random_state=3, **given) for _ in range(2))
    assert (one.pair, one.epsilon_lower) == (again.pair, again.epsilon_lower)
    assert str(pickle.loads(pickle.dumps(one))) == str(one)
    assert differs_each_time(lambda: search_counterexample(law, **given).seed)


@pytest.mark.parametrize(("wrong", "said"), [
    ({"bounds": None}, "bounds or categories must be given"),
    ({"categories": [["a", "b"]]}, "bounds or categories must be given, and not both"),
    ({"bounds": None, "categories": [["a"]]}, "categories must be a list with a list of at least two"),
    ({"bounds": None, "categories": [["a", "b"]], "step": 1}, "n_values and step must be None for categories"),
    ({"neighbours": "some"}, "neighbours must be one of"),
    ({"neighbours": "each"}, "step must be given"),
    ({"step": 1}, "step must be given"),
    ({"n_pairs": 0}, "n_pairs"),
    ({"time_limit": 0}, "time_limit"),
    ({"random_state": -1}, "random_state"),
    ({"claim": -1}, "claim"),
    ({"program": 3, "bounds": None}, "program must be a function of data, or a matrix"),
    ({"program": [[1, 0], [0, 1]]}, "bounds and categories must be None for a matrix"),
    ({"program": lambda _: {"a": 0.5}}, "sum to 1"),
])
def test_what_does_not_fit_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        search_counterexample(**{"program": lambda x: {"a": 1.0}, "claim": 1.0, "bounds": (0, 1), **wrong})
