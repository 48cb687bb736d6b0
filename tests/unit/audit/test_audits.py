"""Exact audits: closed forms, enumeration, all local and central laws, composition, densities, and what is refused."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpestim.audit import Density, compose, exact_delta, exact_epsilon, hockey_stick, max_loss
from dpestim.base import all_estimators
from dpestim.central import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    PermuteAndFlip,
    SnappingMechanism,
    SparseVector,
    StaircaseMechanism,
)
from dpestim.central.additive.discrete_gaussian import DiscreteGaussianLaw
from dpestim.central.additive.normal import analytic_delta, discrete_delta
from dpestim.local import (
    DuchiTransformer,
    GRRFrequencyEstimator,
    OUEFrequencyEstimator,
    PrivUnitTransformer,
    SSFrequencyEstimator,
    SUEFrequencyEstimator,
    URAPFrequencyEstimator,
)
from dpestim.privacy.exact import exp_lower, exp_upper
from dpestim.privacy.rounding import float_up

THIRD = Fraction(1, 3)
YES, NO = [Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]


def close(value, rel=1e-9):
    return pytest.approx(value, rel=rel)


# ---------------------------------------------------------------- laws of finitely many outcomes


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("d", [2, 7])
def test_randomised_response(epsilon, d):
    est = GRRFrequencyEstimator(epsilon, categories=[range(d)])
    law = est.randomizer()
    assert exact_epsilon(est) == exact_epsilon(law) == exact_epsilon(law.transition_matrix()) == epsilon
    for part in (0, 0.3, 0.9):
        delta = float(law.p_star) - math.exp(part * epsilon) * float(law.q_star)
        assert exact_delta(est, part * epsilon) == close(delta)
    assert exact_delta(law, epsilon * (1 + 1e-9)) == 0


def test_a_hockey_stick_is_enclosed():
    for epsilon in (Fraction(1, 2), Fraction(1)):
        delta = hockey_stick(YES, NO, epsilon)
        assert isinstance(delta, Fraction)
        assert YES[0] - exp_upper(epsilon) * NO[0] <= delta <= YES[0] - exp_lower(epsilon) * NO[0]
    assert hockey_stick(YES, NO, 0) == Fraction(1, 2)  # the total variation, exactly
    assert hockey_stick(YES, NO, 2) == 0
    assert hockey_stick([THIRD, THIRD, THIRD], [0, THIRD, 2 * THIRD], math.inf) == THIRD
    assert max_loss(YES, NO) == exact_epsilon([YES, NO]) == float_up(Fraction(math.log(3)))
    assert max_loss([THIRD, 2 * THIRD], [0, 1]) == math.inf
    assert max_loss([0, 1], [THIRD, 2 * THIRD]) == close(math.log(1.5))  # the order matters


def test_dicts_sequences_and_floats_are_one():
    p, q = {"a": 0.5, "b": 0.5}, {"b": 0.25, "c": 0.75}
    rows = [0.5, 0.5, 0], [0, 0.25, 0.75]
    assert hockey_stick(p, q, 0.5) == hockey_stick(*rows, 0.5) == hockey_stick(*map(np.array, rows), 0.5)
    assert type(hockey_stick(p, q, 0.5)) is float
    assert hockey_stick(p, q, 0.5) == close(0.5 + 0.5 - math.exp(0.5) / 4)
    assert hockey_stick(np.array([1.0], np.float32), [np.int64(1)], 0) == 0
    assert max_loss(p, q) == exact_epsilon(np.array(rows)) == math.inf
    assert exact_delta(np.array(rows), 0.5) == hockey_stick(q, p, 0.5)


def test_answers_are_rounded_up():
    """The float is never below the fraction, and it is the next one."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        matrix = rng.dirichlet(np.ones(4), 3)
        exact = max(hockey_stick(p, q, 0.25) for p, q in itertools.product(matrix, repeat=2))
        assert exact_delta(matrix, 0.25) == exact >= np.maximum(matrix[0] - math.exp(0.25) * matrix[1], 0).sum() - 1e-15
        worst = max(Fraction(float(p)) / Fraction(float(q)) for col in matrix.T for p in col for q in col)
        found = exact_epsilon(matrix)
        assert exp_lower(Fraction(math.nextafter(found, 0))) < worst <= exp_upper(Fraction(found))


def test_only_neighbours_are_compared():
    line = [[THIRD, 2 * THIRD], [Fraction(1, 2)] * 2, [2 * THIRD, THIRD]]
    steps = [(0, 1), (2, 1)]
    assert exact_epsilon(line) == close(math.log(2))
    assert exact_epsilon(line, pairs=steps) == close(math.log(1.5))
    assert exact_delta(line, 0) == float_up(THIRD)
    assert exact_delta(line, 0, pairs=steps) == float_up(Fraction(1, 6))


# ---------------------------------------------------------------- the laws of the package


def local_laws():
    for name, cls in all_estimators():
        if hasattr(cls, "randomizer") and cls._checked_as != "shuffle":
            for k, params in enumerate(cls._test_params()):
                yield pytest.param(cls, params, id=f"{name}-{k}")


@pytest.mark.parametrize(("cls", "params"), list(local_laws()))
def test_local_laws_have_the_epsilon_that_they_declare(cls, params):
    est = cls(**params)
    est.fit(*[data for data in est._test_data(10) if data is not None])
    for law in dict.fromkeys(est._columns.laws):
        found, declared = exact_epsilon(law), law.plain_epsilon
        if declared == math.inf:
            assert found == law.worst_ratio() == math.inf
        else:
            assert found <= float_up(declared)
            assert law.slack or found >= 0.9 * float(declared)
            assert math.log(law.worst_ratio()) == pytest.approx(found, rel=1e-6)  # (subset selection: an upper bound)


@pytest.mark.parametrize("est", [
    GRRFrequencyEstimator(1.0, categories=[range(5000)]),
    OUEFrequencyEstimator(1.0, categories=[range(40)]),
    SUEFrequencyEstimator(1.0, categories=[range(2000)]),
    SSFrequencyEstimator(1.0, categories=[range(30)]),
    PrivUnitTransformer(1.0, center=[0.0, 0.0, 0.0], radius=1.0),
    DuchiTransformer(1.0, bounds=([-1.0] * 30, [1.0] * 30), strategy="joint"),
    URAPFrequencyEstimator(1.0, categories=[range(40)], non_sensitive=[range(3)]),
], ids=lambda est: type(est).__name__)
def test_laws_too_large_for_a_matrix(est):
    wanted = math.inf if isinstance(est, URAPFrequencyEstimator) else pytest.approx(1.0, rel=2e-7)
    assert exact_epsilon(est.randomizer()) == wanted
    with pytest.raises(ValueError, match=r"law must have at most .* and be enumerable"):
        exact_delta(est.randomizer(), 0.5)


CENTRAL = [
    DiscreteLaplaceMechanism(1.0, sensitivity=3), LaplaceMechanism(0.5, sensitivity=1.0),
    StaircaseMechanism(2.0, sensitivity=1.0), DiscreteGaussianMechanism(1.0, delta=1e-5, sensitivity=1),
    DiscreteGaussianMechanism(2.0, delta=1e-4, sensitivity=2), GaussianMechanism(1.0, delta=1e-5, sensitivity=1.0),
    GaussianMechanism(10.0, delta=1e-5, sensitivity=1.0),
]


@pytest.mark.parametrize("mechanism", CENTRAL, ids=lambda m: type(m).__name__)
def test_noise_has_the_budget_that_it_declares(mechanism):
    delta = getattr(mechanism, "delta", 0)
    if delta:
        assert exact_epsilon(mechanism) == math.inf
        assert 0.999 * delta < exact_delta(mechanism, mechanism.epsilon) <= delta * (1 + 1e-6)
    else:
        assert 0.999 * mechanism.epsilon < exact_epsilon(mechanism) <= mechanism.epsilon
        assert exact_delta(mechanism, mechanism.epsilon) == 0
    half, none = exact_delta(mechanism, mechanism.epsilon / 2), exact_delta(mechanism.law(), 0)
    assert delta < half < none < 1


@pytest.mark.parametrize("mechanism", [DiscreteLaplaceMechanism(1.0, sensitivity=4.5),
                                       DiscreteGaussianMechanism(2.0, delta=1e-3, sensitivity=3)],
                         ids=lambda m: type(m).__name__)
def test_the_worst_move_by_enumeration(mechanism):
    """Claims 2 and 3: over all moves up to the sensitivity, and all outputs, the tails at the largest move."""
    law = mechanism.law()
    assert_worst_move(law, math.floor(law.sensitivity), 120)


def test_the_worst_move_of_a_staircase_by_enumeration():
    law = type(StaircaseMechanism(1.0, sensitivity=1.0).law())(Fraction(1), Fraction(0), Fraction(7), 0)
    assert law.width == 7
    assert exact_epsilon(law) == 1.0
    assert_worst_move(law, 7, 400)


def assert_worst_move(law, most, far):
    p = np.array([float(sum(law.probability(z)) / 2) for z in range(-far - most, far + most + 1)])
    for epsilon in (0.0, 0.3, 0.7, 0.95):
        deltas = [np.maximum(p[move:] - math.exp(epsilon) * p[: len(p) - move], 0).sum() for move in range(most + 1)]
        assert (np.diff(deltas) > -1e-15).all()
        assert exact_delta(law, epsilon) == pytest.approx(deltas[-1], rel=1e-6)


def test_deltas_of_gaussian_noise():
    law = DiscreteGaussianMechanism(1.0, delta=1e-5, sensitivity=2).law()
    for epsilon in (0.25, 1.0, 1.5):
        assert exact_delta(law, epsilon) == close(discrete_delta(Fraction(epsilon), law.sigma, 2), rel=1e-6)
    law = GaussianMechanism(1.0, delta=1e-5, sensitivity=1.0).law()
    for epsilon in (0.25, 1.0, 1.5):  # 4,097 steps: as good as continuous
        move = math.floor(law.sensitivity)
        assert exact_delta(law, epsilon) == close(float(analytic_delta(Fraction(epsilon), law.sigma / move)), rel=1e-4)


def test_deltas_of_wide_discrete_noise_are_never_below_the_truth():
    for epsilon, close_to in ((1e-9, 1e-5), (1e-3, 1e-6), (2e-4, 1e-3)):
        law = DiscreteGaussianMechanism(epsilon, delta=1e-6, sensitivity=1).law()
        truth = law.probability(0)[0]  # the tails from 0 and from 1 on
        assert truth <= exact_delta(law, 0) < float(truth) * (1 + close_to)
    for sigma in (5000.0, 60000.0):
        law = DiscreteGaussianLaw(Fraction(1), Fraction(1, 10**6), Fraction(1), 0)
        law.__dict__.update(sigma=sigma, _square=Fraction(sigma) ** 2)
        for k in (1, 700, math.floor(2.5 * sigma)):
            z = np.arange(k, 12 * sigma)
            tail = 2 * math.fsum(np.exp(-(z / sigma) ** 2 / 2)) / (sigma * math.sqrt(2 * math.pi))
            low, high = law.beyond_at_least(k), law.beyond(k)
            assert low * (1 - Fraction(1, 10**11)) <= tail <= high * (1 + Fraction(1, 10**11))
            assert high < low * (1 + Fraction(1, 10**7))


# ---------------------------------------------------------------- composition


def test_the_smallest_floats_are_probabilities():
    assert hockey_stick([5e-324, 1.0], [1.0, 5e-324], 1) == 1


@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_composed_randomised_response_is_that_of_the_theorem(k):
    """Kairouz, Oh, Viswanath, theorem 3.3 (FORMULAS 8.2): delta_i at epsilon (k - 2 i)."""
    epsilon = 0.75
    e = math.exp(epsilon)
    p, q = compose([([e / (1 + e), 1 / (1 + e)], [1 / (1 + e), e / (1 + e)])], times=k)
    for i in range(k // 2 + 1):
        delta = sum(math.comb(k, j) * (e ** (k - j) - e ** (k - 2 * i + j)) for j in range(i)) / (1 + e) ** k
        assert hockey_stick(p, q, (k - 2 * i) * epsilon) == pytest.approx(delta, rel=1e-9, abs=1e-15)


def test_composition_is_enumeration():
    """Of three different laws, one of which tells for sure sometimes, used twice."""
    sure = [THIRD, 2 * THIRD, 0], [0, 2 * THIRD, THIRD]
    three = [Fraction(1, 2), THIRD, Fraction(1, 6)], [Fraction(1, 6), THIRD, Fraction(1, 2)]
    pairs = [(YES, NO), sure, three]
    p, q = compose(pairs, times=2)
    assert sum(p.values()) == sum(q.values()) == 1
    assert list(p) == sorted(p, reverse=True)
    assert p[math.inf] == 1 - Fraction(4, 9)
    one, two = ([math.prod(w) for w in itertools.product(*[pair[side] for pair in pairs * 2])] for side in (0, 1))
    for epsilon in (0, 0.5, 1, 2.5, math.inf):
        assert hockey_stick(p, q, epsilon) == hockey_stick(one, two, epsilon)
        assert hockey_stick(q, p, epsilon) == hockey_stick(two, one, epsilon)
    once = compose(pairs)
    assert compose([once, once]) == compose([once], times=2) == (p, q)
    assert len(compose([(YES, NO)], times=200)[0]) == 201


# ---------------------------------------------------------------- densities

LAPLACE = Density(lambda x: 0.5 * math.exp(-abs(x)), (0,))
GAUSS = Density(lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi))
CAUCHY = Density(lambda x: 1 / (math.pi * (1 + x * x)))
UNIFORM = Density(lambda x: 1.0, support=(0, 1))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("shift", [0.25, 1.0, 4.0])
def test_densities_with_closed_forms(shift, scale):
    for epsilon in (0.0, 0.2, 0.9 * shift, 1.1 * shift):
        found = hockey_stick(LAPLACE.moved(0, scale), LAPLACE.moved(shift * scale, scale), epsilon)
        wanted = max(0.0, -math.expm1((epsilon - shift) / 2))
        assert found == pytest.approx(wanted, rel=1e-8, abs=1e-13)
        assert abs(found - wanted) <= found.error + 1e-12
        found = hockey_stick(GAUSS.moved(0, scale), GAUSS.moved(shift * scale, scale), epsilon)
        one, two = stats.norm.cdf([shift / 2 - epsilon / shift, -shift / 2 - epsilon / shift])
        assert found == pytest.approx(one - math.exp(epsilon) * two, rel=1e-7)
        assert found.error <= 1e-6 * found
    assert max_loss(LAPLACE.moved(0, scale), LAPLACE.moved(shift * scale, scale)) == close(shift)
    assert max_loss(GAUSS.moved(0, scale), GAUSS.moved(shift * scale, scale)) == math.inf


@pytest.mark.parametrize(("epsilon", "sigma", "delta"), [(0.1, 30.75, 1.000e-5), (1, 3.731, 9.984e-6),
                                                         (10, 0.4999, 9.994e-6), (10, 0.4845, 2.263e-5)])
def test_the_gaussian_mechanism_and_where_the_textbook_fails(epsilon, sigma, delta):
    assert hockey_stick(GAUSS.moved(0, sigma), GAUSS.moved(1, sigma), epsilon) == pytest.approx(delta, rel=3e-4)


def test_losses_of_densities():
    golden = 2 * math.log((1 + math.sqrt(5)) / 2)  # the largest (1 + (x - 1)^2) / (1 + x^2)
    assert max_loss(CAUCHY, CAUCHY.moved(1)) == close(golden)
    assert max_loss(CAUCHY.moved(0, 1.5), CAUCHY) == close(math.log(1.5))
    assert max_loss(CAUCHY, CAUCHY.moved(0, 1.5)) == close(math.log(1.5))
    assert max_loss(UNIFORM, UNIFORM.moved(0.25)) == math.inf
    assert max_loss(UNIFORM, UNIFORM.moved(-1, 3)) == close(math.log(3))
    for epsilon in (0, 1, math.inf):
        assert hockey_stick(UNIFORM, UNIFORM.moved(0.25), epsilon) == close(0.25)
    assert hockey_stick(GAUSS.moved(1e7), GAUSS.moved(1e7 + 1), 1) == close(float(analytic_delta(1, 1.0)), rel=1e-7)


def test_what_cannot_be_integrated_is_an_error():
    half = Density(lambda x: 0.25 * math.exp(-abs(x)), (0,))
    far = Density(lambda x: math.exp(-((x - 1e4) ** 2) / 2) / math.sqrt(2 * math.pi))
    for wrong in (half, far):
        with pytest.raises(ValueError, match="p must integrate to 1"):
            hockey_stick(wrong, GAUSS, 1)
        with pytest.raises(ValueError, match="q must integrate to 1"):
            hockey_stick(GAUSS, wrong, 1)
    fine = Density(lambda x: 1 + 1e-3 * math.sin(2 * math.pi * 1234 * x), support=(0, 1))
    with pytest.raises(ValueError, match="p and q cannot be integrated accurately"):
        hockey_stick(fine, UNIFORM, 0)


def test_half_lines_and_poles():
    one = Density(lambda x: math.exp(-x), support=(0, math.inf))
    two = one.moved(1)
    for epsilon in (0, 0.5, 1, 1000, math.inf):
        assert hockey_stick(one, two, epsilon) == close(-math.expm1(-1))  # what is below 1
        assert hockey_stick(two, one, epsilon) == pytest.approx(-math.expm1(min(epsilon, 1) - 1), abs=1e-13)
    assert (max_loss(one, two), max_loss(two, one)) == (math.inf, close(1.0))
    root = Density(lambda x: 0.5 / math.sqrt(x), support=(0, 1))
    edge = (0.5 / math.exp(0.5)) ** 2
    assert hockey_stick(root, UNIFORM, 0.5) == close(math.sqrt(edge) - math.exp(0.5) * edge)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(("ask", "message"), [
    (lambda: hockey_stick(YES, NO, -1), "epsilon must be"),
    (lambda: hockey_stick(YES, NO, math.nan), "epsilon must be"),
    (lambda: hockey_stick(YES, NO, True), "epsilon must be"),
    (lambda: hockey_stick(YES, [1], 1), "p and q must have rows of one length"),
    (lambda: hockey_stick(YES, {0: 1}, 1), "p and q must be two dicts"),
    (lambda: hockey_stick(1, 2, 1), "p and q must be rows of probabilities"),
    (lambda: hockey_stick(["1"], [1], 1), "p and q must hold probabilities"),
    (lambda: hockey_stick([True], [1], 1), "p and q must hold probabilities"),
    (lambda: hockey_stick([2, -1], [1, 0], 1), "p and q must hold probabilities"),
    (lambda: hockey_stick([math.nan], [1], 1), "p and q must hold probabilities"),
    (lambda: hockey_stick([THIRD, THIRD], [1, 0], 1), "p and q must hold probabilities that sum to 1"),
    (lambda: hockey_stick([0.5, 0.4], [1, 0], 1), "p and q must hold probabilities that sum to 1"),
    (lambda: hockey_stick([], [], 1), "p and q must have rows of one length"),
    (lambda: hockey_stick(GAUSS, YES, 1), "p and q must be two dicts"),
    (lambda: max_loss(YES, {0: 1}), "p and q must be two dicts"),
    (lambda: exact_epsilon([[0.5, 0.5], [1.0]]), "law must have rows of one length"),
    (lambda: exact_epsilon([[0.5, 0.4]]), "law must hold probabilities that sum to 1"),
    (lambda: exact_epsilon("law"), "law must be a matrix"),
    (lambda: exact_epsilon(None), "law must be a matrix"),
    (lambda: exact_epsilon(SnappingMechanism(1.0, sensitivity=1.0, bounds=(-8.0, 8.0))), "law must be a matrix"),
    (lambda: exact_epsilon(GRRFrequencyEstimator(1.0, categories=[range(2)] * 2)), "law must be of one column"),
    (lambda: exact_epsilon([YES, NO], pairs=[(0, 2)]), "pairs must be"),
    (lambda: exact_epsilon([YES, NO], pairs=[]), "pairs must be"),
    (lambda: exact_delta([YES, NO], 1, pairs=3), "pairs must be"),
    (lambda: exact_delta(DiscreteLaplaceMechanism(1.0, sensitivity=1), 1, pairs=[(0, 1)]), "pairs must be None"),
    (lambda: exact_delta([YES, NO], None), "epsilon must be"),
    (lambda: compose([]), "pairs must hold"),
    (lambda: compose(3), "pairs must be a sequence"),
    (lambda: compose([(YES, NO), (YES, {})]), "pair 1 must be"),
    (lambda: compose([(YES, NO)], times=0), "times must be"),
    (lambda: compose([(YES, NO)], times=2.0), "times must be"),
    (lambda: compose(np.random.default_rng(0).dirichlet(np.ones(2100), (2, 2))), "pairs must have fewer"),
    (lambda: hockey_stick(abs, abs, 1), r"wrap a function as Density\(f\)"),
    (lambda: hockey_stick(YES, NO, -1), "epsilon must be a number of at least 0"),
    (lambda: exact_epsilon(PermuteAndFlip(1.0, sensitivity=1)), r"mechanisms that choose, call hockey_stick\(m.prob"),
    (lambda: Density(1), "f must be"),
    (lambda: Density(abs, breakpoints=3), "breakpoints and support must be"),
    (lambda: Density(abs, breakpoints=(math.inf,)), "breakpoints must be finite"),
    (lambda: Density(abs, support=(1, 0)), "support must be"),
    (lambda: GAUSS.moved(0, -1), "shift must be"),
    (lambda: hockey_stick(Density(lambda x: -1.0), GAUSS, 1), "f must return"),
])
def test_bad_input_is_named(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()


def test_a_pair_is_found_where_floats_end():
    t = Fraction(1, 10**326)
    rows = [[Fraction(1, 2), Fraction(1, 2), 0], [t, 1 - t, 0], [t, Fraction(7, 10) - t, Fraction(3, 10)]]
    assert exact_delta(rows, 800) == close(0.3)
    assert exact_delta(rows, 700) == close(0.5)  # e^700 t is nothing


def test_a_peak_that_quadrature_misses_is_in_the_error():
    part = 5e-7

    def density(x):
        return (1 - part) * stats.norm.pdf(x) + (part / 2e-9 if abs(x - 3.3) < 1e-9 else 0.0)

    smooth = Density(stats.norm.pdf)
    for p, q, truth in ((Density(density), smooth, part), (smooth, Density(density), 0.0)):
        delta = hockey_stick(p, q, 1)
        assert abs(delta - truth) <= delta.error * 1.01
        assert delta.error < 2e-6
    seen = hockey_stick(Density(density, breakpoints=(0, 3.3 - 1e-9, 3.3 + 1e-9)), smooth, 1)
    assert abs(seen - part) < 1e-9
    assert seen.error < 1e-12


@pytest.mark.parametrize("mechanism", [
    PermuteAndFlip(1.0, sensitivity=1.0),
    SparseVector(1.0, sensitivity=1.0),
    SnappingMechanism(1.0, sensitivity=1.0, bounds=(-8.0, 8.0)),
])
def test_which_laws_are_audited_is_said(mechanism):
    for ask in (exact_epsilon, lambda mechanism: exact_delta(mechanism, 1)):
        with pytest.raises(ValueError, match=r"additive noise.* pass the matrix of probabilities"):
            ask(mechanism)
