"""The gallery of broken mechanisms: each loses what is known of it, by numbers typed here, and its repair does not."""

import importlib
import math
import re
from itertools import combinations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dpestim.audit import exact_epsilon, hockey_stick, max_loss, mistakes
from dpestim.audit.gallery import central, floats, learning, local, sparse, streams
from dpestim.audit.gallery.mistake import Loss, audit
from dpestim.audit.gallery.programs import programs
from dpestim.central import DiscreteLaplaceMechanism, LaplaceMechanism
from dpestim.stream import HaarRelease

INF = math.inf
#: What is known of each: the epsilon at the claimed delta, and the delta at the claimed epsilon where it is known.
KNOWN = {
    "Sparse vector that releases the compared value": (10.0, None),
    "Sparse vector, noise that ignores the cut-off": (7.75, None),
    "Sparse vector without noise on the queries": (INF, None),
    "Sparse vector without a cut-off": (19.0, None),
    "Sparse vector, noise for monotone queries on others": (1.5, None),
    "Gaussian noise by the textbook, epsilon = 10": (None, 2.3e-5),
    "A sum of values in [50, 60], sensitivity 60 - 50": (6.0, None),
    "Counts of two groups, one person moves": (2.0, None),
    "Smooth sensitivity from distance 1": (2 * math.asinh(0.75 * math.exp(1.5)), None),
    "Propose-test-release, threshold ln(2/delta) / (2 epsilon)": (INF, 3.54e-4),
    "(0, delta) for every single output": (INF, 1.0),
    "Noisy maximum, published with its value": (10.0, None),
    "Laplace noise in floating point": (INF, None),
    "Discrete Laplace noise from independent bits": (1.016, None),
    "Duchi's mechanism for two numbers, first version": (0.974, None),
    "Continuous SDPM, a low value among high ones": (INF, None),
    "One column drawn, the others faked (RS+FD)": (math.log(2 * math.expm1(1) + 1), None),
    "One column drawn and named, a larger epsilon for it": (math.log(2 * math.expm1(1) + 1), None),
    "RS+FD for columns of 2 and of 5 values": (1.138, None),
    "An epsilon for each value, each bit by its own": (1.25, None),
    "Orthonormal Haar coefficients, noise for a change of 1": (2**-1.5 + 2**-0.5 + 2**-1.0 + 2**-1.5, None),
    "A row is published only where the exact one has changed": (INF, 1.0),
    "Steps of a stream without a publication, not counted": (20.0, None),
    "Objective perturbation of 2008": (3.05, None),
}


def entry(name):
    """Return an entry (found when a test asks, not when tests are collected)."""
    return next(m for m in mistakes() if m.name == name)


def loss(pair):
    """Return the larger of the two losses of a pair."""
    return max(max_loss(*pair), max_loss(*pair[::-1]))


def test_every_mistake_has_a_known_loss():
    assert [m.name for m in mistakes()] == list(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_found_is_what_is_known(name):
    mistake, (epsilon, delta) = entry(name), KNOWN[name]
    if epsilon is not None:
        assert mistake.found.epsilon == pytest.approx(epsilon, rel=2e-3)
    if delta is not None:
        assert mistake.found.delta == pytest.approx(delta, rel=2e-2)
    assert mistake.found.epsilon > mistake.claimed.epsilon
    assert mistake.found.delta > mistake.claimed.delta


@pytest.mark.parametrize("name", KNOWN)
def test_the_repaired_mechanism_passes_the_same_audit(name):
    mistake = entry(name)
    assert mistake.repaired.epsilon <= mistake.claimed.epsilon * (1 + 1e-9)
    assert mistake.repaired.delta <= mistake.claimed.delta * (1 + 1e-9)


@pytest.mark.parametrize("name", KNOWN)
def test_what_to_use_instead_exists(name):
    mistake = entry(name)
    for package, public in re.findall(r"(dpestim\.\w+)\.(\w+)", mistake.instead):
        assert hasattr(importlib.import_module(package), public)
    assert mistake.source
    assert mistake.why.endswith(".")


def test_the_gallery_prints_as_a_table_and_is_made_once():
    assert mistakes() is mistakes()
    lines = repr(mistakes()).splitlines()
    assert len(lines) == len(mistakes()) + 1
    assert lines[0].split() == ["mistake", "claimed", "found", "repaired"]
    assert all(m.name in line for m, line in zip(mistakes(), lines[1:]))


def share(name, side, happens, n=20_000):
    """Return how often something happens among outputs of a program, on one side of its pair."""
    program = programs()[name]
    return np.mean(happens(program.sample(program.pair[side], n, np.random.default_rng(side))))


def test_every_mistake_has_a_program_that_makes_it():
    """The programs and the laws of the gallery are of one mechanism: an event is as likely as the law says."""
    assert list(programs()) == list(KNOWN)

    same = sum(float(p) ** 2 for p in floats.digits_law(1, 6).values())  # (two such numbers)

    def five_and_five(y):
        return (y == [0] * 5 + [1] * 5).all(axis=1)

    for side in (0, 1):
        for name, law, happens in (
            ("Sparse vector without a cut-off", sparse.neighbours(2, 2, 5, 5), five_and_five),
            ("Sparse vector, noise that ignores the cut-off", sparse.neighbours(4, 4 / 3, 5, 5), five_and_five),
            ("Sparse vector that releases the compared value", sparse.noisy_value(4),
             lambda y: (y[:, 0] == 4) & (y[:, 1] <= 0)),
            ("Orthonormal Haar coefficients, noise for a change of 1", streams.noisy_coefficients(1.0),
             lambda y: (y[:, streams.haar_rows()[:, 0] != 0] <= 0).all(axis=1)),
            ("Steps of a stream without a publication, not counted", streams.silent_steps(1.0, 0),
             lambda y: y[:, 0] == -1),
            ("Counts of two groups, one person moves", None, lambda y: y[:, 0] > 0),
            ("Noisy maximum, published with its value",
             [central.largest_at_most_0([answer] * 5) for answer in (0, 1)], lambda y: y <= 0),
            ("Discrete Laplace noise from independent bits", None, lambda y: y <= 0),
        ):
            law = [{"seen": 1 / (1 + math.exp(-1 if x else 1))} for x in (1, 0)] if name.startswith("Counts") else (
                [{"seen": 0.5 + same / 2}, {"seen": 0.5 - same / 2}] if law is None else law)
            p = law[side]["seen"]
            assert abs(share(name, side, happens) - p) < 4.5 * math.sqrt(p * (1 - p) / 20_000) + 1e-9, (name, side)
    name = "Objective perturbation of 2008"
    density = learning.coefficient(learning.FIRST, 0.25, 0.011)
    median = np.median(programs()[name].sample(learning.FIRST, 4_000, np.random.default_rng(0)))
    p = quad(density, -1e4, median, points=density.breakpoints, limit=200)[0]
    assert abs(p - 0.5) < 4.5 * 0.5 / math.sqrt(4_000)


# ---------------------------------------------------------------- sparse vectors


@pytest.mark.parametrize(("n", "known"), [(5, 2.5), (20, 10.0), (60, 30.0)])
def test_a_released_value_costs_half_an_epsilon_for_every_query_before_it(n, known):
    assert loss(sparse.noisy_value(n)) == pytest.approx(known, rel=1e-9)
    assert loss(sparse.fresh_value(n)) <= 1 + 1e-9


@pytest.mark.parametrize(("c", "known"), [(1, 1.75), (5, 7.75)])
def test_noise_that_ignores_the_cut_off(c, known):
    assert loss(sparse.neighbours(4, 4 / 3, 60, c)) == pytest.approx(known, rel=1e-9)


def test_what_a_missing_cut_off_costs_grows_with_the_answers():
    assert loss(sparse.neighbours(2, 2, 20, 5)) == pytest.approx(5.5, rel=1e-3)
    assert loss(sparse.neighbours(2, 2, 20, 20)) == pytest.approx(19.0, rel=2e-3)
    assert loss(sparse.neighbours(2, 2, 100, 20)) == pytest.approx(20.5, rel=1e-6)


@pytest.mark.parametrize("c", [1, 3])
@pytest.mark.parametrize("optimal", [False, True])
def test_the_right_sparse_vector_loses_epsilon_and_no_more(c, optimal):
    first = 1 / (1 + (2 * c) ** (2 / 3)) if optimal else 0.5
    rho, nu = 1 / first, 2 * c / (1 - first)
    losses = [loss(sparse.neighbours(rho, nu, n, c)) for n in (1, 5, 20, 300)]
    assert losses[0] < losses[1] < losses[2]
    assert losses[-1] == pytest.approx(1.0, abs=1e-6)
    assert losses[-1] <= 1 + 1e-9
    assert loss(sparse.neighbours(rho, nu / 2, 300, c)) == pytest.approx(1 + (1 - first), abs=1e-6)


# ---------------------------------------------------------------- noise on answers


def test_the_textbook_s_gaussian_noise_fails_from_an_epsilon_of_about_8_4_on():
    def delta(epsilon, sigma):
        return float(hockey_stick(*central.gaussians(sigma), epsilon))

    assert central.classic_sigma(10, 1e-5) == pytest.approx(0.4845, abs=5e-5)
    assert central.analytic_sigma(10, 1e-5) == pytest.approx(0.4999, rel=2e-3)  # (with the rounding to a grid)
    assert delta(8, central.classic_sigma(8, 1e-5)) < 1e-5 < delta(9, central.classic_sigma(9, 1e-5))
    sigma = central.classic_sigma(10, 1e-5)
    closed = norm.cdf(0.5 / sigma - 10 * sigma) - math.exp(10) * norm.cdf(-0.5 / sigma - 10 * sigma)
    assert delta(10, sigma) == pytest.approx(closed, rel=1e-6)


def test_the_published_threshold_is_enough_for_large_deltas_only():
    for delta in (1e-6, 1e-3, 0.2):
        published, right = math.log(2 / delta) / 2, math.log(1 / (2 * delta))
        passes = {t: audit(Loss(2.0, delta), [central.tested_releases(1.0, t)]).delta for t in (published, right)}
        assert passes[published] == pytest.approx(math.sqrt(delta / 8), rel=1e-9)
        assert passes[right] == pytest.approx(delta, rel=1e-9)
        assert (passes[published] > delta) == (delta < 1 / 8)


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_smooth_sensitivity_of_a_count(epsilon):
    for first, h in ((0, epsilon / 2), (1, epsilon / 2 * math.exp(epsilon / 2))):
        assert loss(central.counts_with_cauchy_noise(epsilon, first)) == pytest.approx(2 * math.asinh(h / 2), rel=1e-6)
    assert (loss(central.counts_with_cauchy_noise(epsilon, 1)) > epsilon) == (epsilon > 1.594)


def test_the_value_of_a_noisy_maximum_costs_half_an_epsilon_for_each_answer():
    assert loss((central.largest_at_most_0([0] * 5), central.largest_at_most_0([1] * 5))) == pytest.approx(2.5)
    index = loss((central.first_is_largest([1] + [0] * 50), central.first_is_largest([0] + [1] * 50)))
    assert 0.97 < index <= 1 + 1e-9


# ---------------------------------------------------------------- machine numbers


def test_low_bits_tell_what_laplace_noise_in_floating_point_was_added_to():
    rng = np.random.default_rng(1)
    outputs = {x: floats.textbook_laplace(x, 2_000, rng) for x in (0.0, 1.0)}
    for x, y in outputs.items():
        assert floats.reaches(x, y).all()  # the test never says so of what an answer did become
        assert 0.5 < np.mean(~floats.reaches(1 - x, y)) < 0.75
    small = {x: y[(y > 0.25) & (y < 0.5)] for x, y in outputs.items()}
    assert floats.lowest_bits(small[1.0]).min() == -53  # 1 - log(u) has no finer bits there, and -log(u) has
    assert floats.lowest_bits(small[0.0]).min() == -54
    assert floats.lowest_bits([0.75, 6.0, -1.0]).tolist() == [-2, 1, 0]


def test_of_our_laplace_noise_every_output_of_one_answer_is_possible_for_the_other():
    mechanism = LaplaceMechanism(1.0, sensitivity=1.0, random_state=0)
    law = mechanism.law()
    outputs = np.array([mechanism.set_params(random_state=seed).release(0.0) for seed in range(200)])
    steps = (outputs - 1.0) / law.step  # how far from the other answer
    assert (steps == np.rint(steps)).all()
    ratios = [law.probability(int(k + 1 / law.step))[0] / law.probability(int(k))[1] for k in steps[:20]]
    assert all(0 < math.exp(-1) * (1 - 1e-9) < ratio < math.e for ratio in ratios)


def test_digits_that_end_are_not_pure_and_a_uniform_share_makes_up_for_it():
    assert loss(floats.noisy_digits(60)) == pytest.approx(1.016, abs=5e-4)
    assert loss(floats.noisy_digits(62)) > 1.1
    assert loss(floats.noisy_digits(100)) == INF  # 64 is out of reach for 0
    for top in (60, 100):
        share = floats.enough_uniform(top)
        assert share < 1e-16
        assert loss(floats.noisy_digits(top, share)) <= 1
    assert loss(floats.noisy_digits(100, share / 10**12)) > 1  # and less of it does not
    assert exact_epsilon(DiscreteLaplaceMechanism(1.0, sensitivity=1)) <= 1


# ---------------------------------------------------------------- streams


@pytest.mark.parametrize("levels", [1, 2, 3, 6])
def test_an_event_moves_orthonormal_coefficients_by_up_to_1_and_the_root_of_2(levels):
    """In whichever cell; and the matrix is that of `HaarRelease`, whose integers are divided by roots of sizes."""
    rows = streams.haar_rows(levels)
    assert np.allclose(rows @ rows.T, np.eye(2**levels))
    moves = np.abs(rows).sum(axis=0)
    assert np.allclose(moves, sum(streams.coefficients_move(levels)))
    assert 1.4 < moves[0] < 1 + math.sqrt(2)
    spec, cells = HaarRelease(1.0, n_cells=2**levels)._spec(), np.arange(2**levels)[None] ** 2
    ours = [part / math.sqrt(size) for part, size in zip(spec.coefficients(cells), spec.sizes)]
    theirs = rows @ cells[0]
    assert np.allclose(np.sort(np.concatenate(ours, axis=1)[0]), np.sort(theirs))


def test_silent_steps_cost_an_epsilon_each():
    for others, known in ((0, math.log(2 - math.exp(-1))), (1, 1.0), (2, 1.0)):
        assert loss(streams.silent_steps(1.0, others)) == pytest.approx(streams.STEPS * known, rel=1e-9)
    assert sum(streams.first_publication([0.3] * 7, 2.0).values()) == pytest.approx(1.0, abs=1e-12)


# ---------------------------------------------------------------- reports of single users, and models


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_half_spaces_overlap_in_even_dimensions(epsilon):
    for d in (1, 2, 3, 4):
        known = math.log(math.exp(epsilon) + 1) if d % 2 == 0 else epsilon
        assert exact_epsilon(local.half_spaces(epsilon, d)) == pytest.approx(known, rel=1e-9)


def test_a_low_value_is_revealed_with_the_probability_that_the_paper_gives_it():
    s = math.exp(0.25)
    c, p = (s + 1) / (s - 1), (s * s - s) / (2 * s + 2)
    own = 1 - (2 * c - 1) * p / s**2
    assert own == pytest.approx(1 - 1 / s + p / s**2)
    for grid in (32, 128):  # (the window and the low interval are rounded to the grid)
        assert float(hockey_stick(*local.low_and_high(grid), INF)) == pytest.approx(own, abs=0.5 / grid)


@pytest.mark.parametrize(("sizes", "known"), [((2, 5), 1.138), ((2, 2, 6), 1.261), ((3, 3), 1.0)])
def test_faked_columns_hide_less_where_sizes_differ(sizes, known):
    nominal = math.log(len(sizes) * math.expm1(1) + 1)
    rows = local.sampled_and_faked(nominal, sizes)
    assert all(sum(row) == 1 for row in rows)
    assert max(map(loss, local._differing_in_one(rows, sizes))) == pytest.approx(known, abs=5e-4)
    assert exact_epsilon(rows) == pytest.approx(nominal, rel=1e-9)  # whole tuples: drawing a column gains nothing
    assert max(map(loss, combinations(local.sampled(1.0, sizes), 2))) == pytest.approx(1.0, rel=1e-9)


def test_the_correction_for_the_curvature_is_what_keeps_objective_perturbation_private():
    """The curvature alone is worth ln(1 + 1/4 / (n Lambda)); that densities integrate to 1 `hockey_stick` has asked."""
    rate, strength = learning.corrected(0.5, 0.011)
    assert rate == 0.125
    assert strength == pytest.approx(0.25 / math.expm1(0.125))
    alone = [((1.0, 1),), ((0.0, 1),)]
    for epsilon in (0.1, 0.5, 1.0):
        pair = [learning.coefficient(data, epsilon / 2, 0.011) for data in alone]
        assert 2.9 < loss(pair) < math.log(1 + 0.25 / 0.011)
        rate, strength = learning.corrected(epsilon, 0.011)
        assert loss([learning.coefficient(data, rate, strength) for data in alone]) <= epsilon
