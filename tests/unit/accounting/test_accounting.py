"""Accounting against exact enumeration and closed forms: never below the truth, and hardly above it."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.integrate import quad

from dpestim.accounting import PrivacyLossDistribution, RenyiCurve, optimal_delta, optimal_epsilon
from dpestim.accounting import grid as grid_module
from dpestim.accounting.convolution import Tilted, total
from dpestim.accounting.loss_pairs import Gaussian

mp.dps = 60


@pytest.fixture(autouse=True)
def _digits():
    """Other modules have their own number of digits, and the last one imported would win."""
    with mp.workdps(60):
        yield


def exact_delta(pairs, epsilon):
    """The delta of a product of finite pairs of laws (Fractions), the larger of both directions."""
    factor, sums = mp.exp(mpf(epsilon)), [mpf(0), mpf(0)]
    for outcome in itertools.product(*(list(zip(p, q)) for p, q in pairs)):
        p, q = (mpf(x.numerator) / x.denominator for x in (math.prod(side) for side in zip(*outcome)))
        sums = [sums[0] + max(p - factor * q, 0), sums[1] + max(q - factor * p, 0)]
    return max(sums)


def random_pair(rng, zeros=False):
    p, q = (rng.integers(0 if zeros else 1, 60, size=3) for _ in range(2))
    p[0] += 1
    q[0] += 1
    # multiples of 2^-20, so that floats hold them exactly
    p, q = ([Fraction(int(x * (1 << 20) // v.sum()), 1 << 20) for x in v] for v in (p, q))
    return [1 - sum(p[1:]), *p[1:]], [1 - sum(q[1:]), *q[1:]]


@pytest.mark.parametrize("seed", range(6))
def test_random_pairs_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    pairs = [random_pair(rng, zeros=seed % 3 == 2) for _ in range(2 + seed % 3)]
    losses = PrivacyLossDistribution.total([PrivacyLossDistribution.from_pair(p, q) for p, q in pairs])
    for epsilon in (0.0, 0.73, 1.5):
        truth = exact_delta(pairs, epsilon)
        low, high = losses.interval(epsilon)
        assert low <= truth <= high <= truth + mpf(2e-8)
        assert truth - low < 1e-3
    assert high == losses.delta(epsilon)
    for delta in (0.3, 1e-3):
        epsilon = losses.epsilon(delta)
        assert epsilon == math.inf or exact_delta(pairs, epsilon) <= delta
        assert epsilon in (0, math.inf) or exact_delta(pairs, epsilon - 1e-6) > delta


def test_the_enumeration_rejects_losses_that_are_rounded_down(monkeypatch):
    pairs = [random_pair(np.random.default_rng(0)) for _ in range(3)]
    monkeypatch.setattr(grid_module, "margin", lambda largest: -2e-4)
    losses = PrivacyLossDistribution.total([PrivacyLossDistribution.from_pair(p, q) for p, q in pairs])
    assert losses.delta(0.1) < exact_delta(pairs, 0.1)


def best_delta(epsilons, epsilon):
    """Murtagh and Vadhan's formula."""
    e, total_ = [mp.exp(mpf(repr(x))) for x in epsilons], mpf(0)
    for signs in itertools.product((0, 1), repeat=len(e)):
        up, down = (mp.fprod(x for x, s in zip(e, signs) if s == side) for side in (1, 0))
        total_ += max(up - mp.exp(mpf(epsilon)) * down, 0)
    return total_ / mp.fprod(1 + x for x in e)


@pytest.mark.parametrize("epsilons", [[1.0] * 4, [0.1] * 9, [0.3, 0.7, 1.1, 0.7], [20.0, 0.001, 3.0]])
def test_pure_mechanisms_against_enumeration(epsilons):
    losses = PrivacyLossDistribution.total([PrivacyLossDistribution.pure(x) for x in epsilons])
    for share in (0.0, 0.2, 0.5, 0.9):
        epsilon = share * sum(epsilons)
        truth = best_delta(epsilons, epsilon)
        assert truth <= optimal_delta(epsilons, epsilon) <= truth * (1 + mpf(1e-8)) + mpf(1e-13)
        # never more than losses that are rounded up would give
        assert truth <= losses.delta(epsilon) <= best_delta(epsilons, epsilon - len(epsilons) * losses.step) + mpf(1e-9)
        some = optimal_epsilon(epsilons, float(truth) * (1 - 1e-6))
        assert best_delta(epsilons, some) <= truth * (1 - mpf(1e-6))
        assert some <= epsilon + 1e-4 or truth > 0.9
    assert optimal_delta(epsilons, sum(Fraction(repr(x)) for x in epsilons)) == 0
    assert optimal_epsilon(epsilons, 0) == pytest.approx(sum(epsilons), rel=1e-9)


def test_optimal_composition_with_deltas():
    # 1 - (1 - delta_1)(1 - delta_2)(1 - delta of the pure parts), enumerated by dominating pairs
    def pair(epsilon, delta):
        e = Fraction(mp.exp(mpf(repr(epsilon))).man_exp[0]) * Fraction(2) ** mp.exp(mpf(repr(epsilon))).man_exp[1]
        p = [delta, (1 - delta) * e / (1 + e), (1 - delta) / (1 + e), Fraction(0)]
        return p, p[::-1]

    pairs = [pair(0.5, Fraction(1, 1000)), pair(0.8, Fraction(1, 100))]
    for epsilon in (0.0, 0.4, 1.0):
        truth = exact_delta(pairs, epsilon)
        assert truth - mpf(1e-40) <= optimal_delta([0.5, 0.8], epsilon, [0.001, 0.01]) <= truth * (1 + mpf(1e-8))
        both = PrivacyLossDistribution.approximate(0.5, 0.001) + PrivacyLossDistribution.approximate(0.8, 0.01)
        assert truth - mpf(1e-40) <= both.delta(epsilon) <= truth + mpf(2e-8)
    assert optimal_epsilon([0.5, 0.8], 0.005, [0.001, 0.01]) == math.inf


def gaussian_delta(epsilon, shift):
    e, m = mpf(epsilon), mpf(shift)
    return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize(("n", "sigma", "loose"), [(1, 1.0, 1e-7), (4, 8.0, 1e-5), (1000, 25.0, 1e-2), (3, 0.2, 1e-4)])
def test_gaussians_add_up_as_the_closed_form_says(n, sigma, loose):
    losses, shift = PrivacyLossDistribution.gaussian(sigma).compose(n), mp.sqrt(n) / mpf(sigma)
    for distance in (0.5, 7.0, 12.0):  # standard deviations; delta falls to 1e-33
        epsilon = float(shift * (shift / 2 + mpf(distance)))
        truth = gaussian_delta(epsilon, shift)
        low, high = losses.interval(epsilon)
        assert low <= truth <= high <= truth * (1 + loose) + n * mpf(1e-50)
    for delta in (1e-3, 1e-25):
        epsilon = losses.epsilon(delta)
        assert gaussian_delta(epsilon, shift) <= delta
        assert gaussian_delta(epsilon * (1 - loose - 1e-7), shift) > delta


def test_deltas_far_below_the_precision_of_floats_are_certified():
    losses = PrivacyLossDistribution.gaussian(1.0)
    assert 0 < losses.delta(11.5) < 1.01 * float(gaussian_delta(11.5, 1)) < 1e-25


def test_different_gaussians_add_up_as_the_closed_form_says():
    sigmas = np.linspace(10, 30, 60)
    losses = PrivacyLossDistribution.total(PrivacyLossDistribution.gaussian(s) for s in sigmas)
    shift = mp.sqrt(mp.fsum(1 / mpf(float(s)) ** 2 for s in sigmas))
    for epsilon in (0.5, 2.0, 4.0):
        truth = gaussian_delta(epsilon, shift)
        low, high = losses.interval(epsilon)
        assert low <= truth <= high <= truth * mpf(1 + 1e-3)


def test_thousands_of_different_mechanisms_lie_between_equal_ones():
    many = PrivacyLossDistribution.total(PrivacyLossDistribution.laplace(100 + i / 100) for i in range(2000))
    assert many.n_releases == 2000
    ends = [PrivacyLossDistribution.laplace(scale).compose(2000).epsilon(1e-6) for scale in (120, 100)]
    assert ends[0] < many.epsilon(1e-6) < ends[1]


def test_wider_cells_in_the_tails_are_never_below_the_truth(monkeypatch):
    series = [PrivacyLossDistribution.gaussian(s, sampling_rate=0.05) for s in (1.0, 1.1, 1.2, 1.3)] * 5
    fine = PrivacyLossDistribution.total(series)
    monkeypatch.setattr("dpestim.accounting.sums._WORK", 20_000)
    coarse = PrivacyLossDistribution.total(series)
    for epsilon in (0.2, 1.0, 3.0):
        low, high = fine.interval(epsilon)
        assert low <= coarse.delta(epsilon) <= high * 1.1
        assert coarse.delta(epsilon) >= high * (1 - 1e-6)
        assert coarse.interval(epsilon)[0] <= low * (1 + 1e-6)
    assert coarse.step >= fine.step
    assert max(loss.widest for loss, _ in coarse._sum._losses(False)) > 1


def laplace_delta(epsilon, shift):
    return max(mpf(0), 1 - mp.exp((epsilon - mpf(shift)) / 2) if epsilon > -shift else 1 - mp.exp(epsilon))


def test_laplace_alone_and_twice():
    one = PrivacyLossDistribution.laplace(1.25)
    for epsilon in (0.0, 0.3, 0.79, 0.8):
        truth = laplace_delta(epsilon, 0.8)
        low, high = one.interval(epsilon)
        assert low <= truth <= high <= laplace_delta(epsilon - one.step, 0.8) + mpf(1e-9)
    a, b = mpf("0.8"), mpf("0.5")
    two = one + PrivacyLossDistribution.laplace(2.0)
    for epsilon in (0.2, 0.7, 1.1):
        # the loss of the first: a with probability 1/2, -a with e^-a / 2, between with density e^((l - a) / 2) / 4
        points = sorted({-a, a, *(x for x in (epsilon - b, epsilon + b) if -a < x < a)})
        truth = (laplace_delta(epsilon - a, b) + mp.exp(-a) * laplace_delta(epsilon + a, b)) / 2 + mp.quad(
            lambda x, e=epsilon: mp.exp((x - a) / 2) / 4 * laplace_delta(e - x, b), points)
        low, high = two.interval(epsilon)
        assert low <= truth <= high <= truth + mpf(1e-7)


@pytest.mark.parametrize("rate", [0.01, 0.5, 0.9])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_poisson_samples_against_integrals(rate, noise):
    if noise == "gaussian":
        losses, ends = PrivacyLossDistribution.gaussian(1.5, sampling_rate=rate), (-13.0, 15.0)
        scale, level = math.sqrt(2 * math.pi) * 1.5, lambda x: (x - 0.5) / 2.25
        density = [lambda x: math.exp(-((x / 1.5) ** 2) / 2) / scale]
    else:
        losses, ends = PrivacyLossDistribution.laplace(2.0, sampling_rate=rate), (-70.0, 70.0)
        level = lambda x: min(max(x, 0.0), 1.0) - 0.5  # noqa: E731
        density = [lambda x: math.exp(-abs(x) / 2) / 4]
    f = density[0]
    for epsilon in (0.02, 0.2):
        g, cuts = math.exp(epsilon), {*ends, 0.0, 1.0}
        # where the mixture is g times, and 1 / g times, the first law
        for odds in ((g - 1 + rate) / rate, (1 / g - 1 + rate) / rate):
            if odds > 0:
                cuts.add(math.log(odds) * (2.25 if noise == "gaussian" else 1) + 0.5)
        cuts = sorted(c for c in cuts if ends[0] <= c <= ends[1])

        def integral(h, cuts=cuts):
            return sum(quad(h, a, b, epsabs=1e-14, epsrel=1e-12)[0] for a, b in itertools.pairwise(cuts))

        remove = integral(lambda x, g=g: f(x) * max(1 - rate + rate * math.exp(level(x)) - g, 0.0))
        add = integral(lambda x, g=g: f(x) * max(1 - g * (1 - rate + rate * math.exp(level(x))), 0.0))
        low, high = losses.interval(epsilon)
        assert low - 1e-12 <= max(remove, add) <= high + 1e-12
        assert high <= max(remove, add) + 1e-7
    assert losses.is_sampled


def test_discrete_noise_against_sums():
    sigma, z = mpf(2), range(-90, 91)
    weights = [mp.exp(-mpf(k * k) / (2 * sigma**2)) for k in z]
    scale = mp.fsum(weights)
    losses, laplace = PrivacyLossDistribution.discrete_gaussian(2.0, sensitivity=3), mp.exp(-mpf(1) / 4)
    geometric = PrivacyLossDistribution.discrete_laplace(4.0, sensitivity=3)
    for epsilon in (0.0, 0.6, 0.75, 2.0, 6.0):
        g = mp.exp(mpf(epsilon))
        truth = mp.fsum(max(mp.exp(-mpf(k * k) / (2 * sigma**2)) - g * mp.exp(-mpf((k - 3) ** 2) / (2 * sigma**2)), 0)
                        for k in z) / scale
        low, high = losses.interval(epsilon)
        assert low <= truth <= high <= truth * (1 + mpf(1e-3)) + mpf(1e-12)
        truth = mp.fsum(max(laplace ** abs(k) - g * laplace ** abs(k - 3), 0) for k in range(-400, 400))
        truth *= (1 - laplace) / (1 + laplace)
        low, high = geometric.interval(epsilon)
        assert low <= truth + mpf(1e-30)
        assert truth <= high <= truth + mpf(1e-4)


def test_masses_of_normal_intervals_are_accurate():
    for shift, step in ((0.01, 2.0**-9), (1.0, 2.0**-11), (20.0, 2.0**-6), (0.5, 4.0)):
        base = Gaussian(shift)
        middle = np.arange(math.ceil(base.ends[0] / step), math.floor(base.ends[1] / step) + 1) * step
        edges = np.concatenate([[base.ends[0]], middle, [base.ends[1]]])[None]
        one, two = base.masses(np.array([[shift]]), edges)
        x = edges[0] / shift + shift / 2  # (what floats make of the ends *is* the ends)
        for i in np.linspace(0, x.size - 2, 5).astype(int):
            for mass, mean in ((one, mpf(0)), (two, mpf(shift))):
                a, b = (mpf(float(v)) - mean for v in x[i : i + 2])
                far = a > 0
                truth = (mp.erfc(a / mp.sqrt(2)) - mp.erfc(b / mp.sqrt(2))) if far else (
                    mp.erfc(-b / mp.sqrt(2)) - mp.erfc(-a / mp.sqrt(2)))
                if truth:
                    assert abs(mpf(float(mass[0, i])) * 2 / truth - 1) < 2.0**-41


@pytest.mark.parametrize("shape", [(1, 40), (17, 30), (9, 200)])
def test_sums_by_fft_are_within_their_bound(shape):
    rng = np.random.default_rng(3)
    whole = rng.integers(0, 1 << 20, size=shape) ** 2 + 1
    truth = np.ones(1, dtype=object)
    for row in whole.astype(object):
        truth = np.convolve(truth, row)
    mass = whole / whole.sum(axis=1, keepdims=True)
    counts = np.ones(shape[0], int)
    if shape[0] == 1:
        counts[0] = 5
        for _ in range(4):
            truth = np.convolve(truth, whole[0].astype(object))
    result = total([(Tilted(0, mass, np.full(shape[0], 1e-16)), counts)])
    scale = Fraction(int(truth.sum()))
    computed = dict(enumerate(result.mass[0].tolist(), result.first))
    error = sum(abs(Fraction(computed.get(i, 0.0)) - int(x) / scale) for i, x in enumerate(truth.tolist()))
    assert error <= result.error[0] < 1e-10
    assert error < result.error[0] / 3  # (it is a bound, and not a close one)


def test_renyi_curves_and_conversions():
    # FORMULAS of the literature: simple, tight, exact for a Gaussian
    for rho, delta, tight, exact in ((0.1, 1e-6, 2.142, 1.995), (0.5, 1e-5, 4.728, 4.377)):
        curve = RenyiCurve.concentrated(rho)
        assert round(curve.epsilon(delta), 3) == tight
        gaussian = PrivacyLossDistribution.gaussian(1 / math.sqrt(2 * rho)).epsilon(delta)
        assert round(gaussian, 3) == exact
        assert curve.delta(curve.epsilon(delta)) <= delta * (1 + 1e-6)
    for order in (1.5, 3, 8):
        a, e = mpf(order), mpf("0.5")
        laplace = mp.log(a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)) / (a - 1)
        assert laplace <= RenyiCurve.laplace(2.0).divergence(order) <= laplace * mpf(1 + 1e-9)
        p = mp.exp(e) / (1 + mp.exp(e))
        pure = mp.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)
        assert pure <= RenyiCurve.pure(0.5).divergence(order) <= pure * mpf(1 + 1e-9)
        assert pure <= RenyiCurve.concentrated(0.125).divergence(order)
    q, m = mpf("0.1"), mpf("0.5")
    for order in (2, 5, 40):
        terms = (mp.binomial(order, k) * (1 - q) ** (order - k) * q**k * mp.exp((k * k - k) * m**2 / 2)
                 for k in range(order + 1))
        truth = mp.log(mp.fsum(terms)) / (order - 1)
        got = RenyiCurve.gaussian(2.0, sampling_rate=0.1).divergence(order)
        assert truth <= got <= truth * mpf(1 + 1e-9)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.3, 3.0, 60.0])
@pytest.mark.parametrize("order", [1.001, 1.5, 30.0, 5000.0])
def test_renyi_curves_are_never_below_the_truth(epsilon, order):
    a, e = mpf(order), mpf(repr(epsilon))
    p = 1 / (1 + mp.exp(-e))
    pure = mp.log(p * mp.exp(e * (a - 1)) + (1 - p) * mp.exp(-e * (a - 1))) / (a - 1)
    assert pure <= RenyiCurve.pure(epsilon).divergence(order)
    laplace = mp.log(a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)) / (a - 1)
    assert laplace <= RenyiCurve.laplace(1, sensitivity=epsilon).divergence(order)


def test_losses_are_never_worse_than_renyi_curves_of_the_same_releases():
    for losses, curve in [
        (PrivacyLossDistribution.pure(0.1).compose(200), RenyiCurve.pure(0.1).compose(200)),
        (PrivacyLossDistribution.laplace(3.0).compose(30), RenyiCurve.laplace(3.0).compose(30)),
        (PrivacyLossDistribution.gaussian(2.0, sampling_rate=0.02).compose(500),
         RenyiCurve.gaussian(2.0, sampling_rate=0.02).compose(500)),
    ]:
        assert losses.epsilon(1e-6) < curve.epsilon(1e-6)
        assert losses.delta(1.0) < curve.delta(1.0)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: PrivacyLossDistribution.pure(0), "epsilon must be above 0"),
    (lambda: PrivacyLossDistribution.pure(1e9), "at most 500"),
    (lambda: PrivacyLossDistribution.pure("a lot"), "epsilon"),
    (lambda: PrivacyLossDistribution.gaussian(math.nan), "scale|sigma"),
    (lambda: PrivacyLossDistribution.gaussian(0.01), "sigma"),
    (lambda: PrivacyLossDistribution.gaussian(1.0, sampling_rate=2), "sampling_rate"),
    (lambda: PrivacyLossDistribution.laplace(0.0), "scale"),
    (lambda: PrivacyLossDistribution.discrete_laplace(1.0, sensitivity=0.5), "sensitivity"),
    (lambda: PrivacyLossDistribution.discrete_gaussian(1e9), "sigma"),
    (lambda: PrivacyLossDistribution.from_pair([0.5, 0.6], [0.5, 0.5]), "p must hold probabilities"),
    (lambda: PrivacyLossDistribution.from_pair([0.5, 0.5], [1.0]), "as many"),
    (lambda: PrivacyLossDistribution.approximate(1, 2), "delta"),
    (lambda: PrivacyLossDistribution.pure(1).compose(0), "n must be"),
    (lambda: PrivacyLossDistribution.pure(1).delta(-1), "epsilon"),
    (lambda: PrivacyLossDistribution.pure(1).epsilon(2), "delta"),
    (lambda: PrivacyLossDistribution.total([]), "series"),
    (lambda: RenyiCurve.concentrated(-1), "rho"),
    (lambda: RenyiCurve.concentrated(1).divergence(1), "order"),
    (lambda: optimal_delta([], 1), "epsilons"),
    (lambda: optimal_delta([1, 1], 1, [0.1]), "deltas"),
    (lambda: optimal_delta(0.5, 1), "epsilons"),
    (lambda: optimal_epsilon([1, "much"], 0.1), "epsilons"),
    (lambda: PrivacyLossDistribution.from_pair(None, [1.0]), "p must be a sequence"),
    (lambda: PrivacyLossDistribution.from_pair([math.nan], [1.0]), "p must hold"),
    (lambda: PrivacyLossDistribution.total(3), "series"),
])
def test_what_is_no_such_number_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_no_delta_is_rounded_to_zero():
    assert RenyiCurve.gaussian(1e5).delta(1.0) > 0
    assert optimal_delta([1.0] * 2000, 1999.5) > 0
    assert PrivacyLossDistribution.laplace(1.0).compose(2000).delta(1999.0) > 0


def test_what_is_pickled_is_the_series():
    series = PrivacyLossDistribution.gaussian(2.0, sampling_rate=0.1).compose(3) + PrivacyLossDistribution.pure(0.1)
    delta = series.delta(1.0)
    again = pickle.loads(pickle.dumps(series))
    assert again.n_releases == 4
    assert again.is_sampled
    assert again.delta(1.0) == delta
    assert len(pickle.dumps(series)) < 2000


def test_odd_cases():
    disjoint = PrivacyLossDistribution.from_pair([1.0, 0.0], [0.0, 1.0])
    assert disjoint.delta(1.0) == 1 > disjoint.interval(1.0)[0] > 1 - 1e-9
    assert disjoint.epsilon(0.5) == math.inf
    same = PrivacyLossDistribution.from_pair([0.5, 0.5], [0.5, 0.5])
    assert same.delta(0.0) < 1e-11
    assert PrivacyLossDistribution.approximate(0, 1e-6).compose(3).epsilon(4e-6) == 0
    assert PrivacyLossDistribution.approximate(0.5, 0.1).epsilon(0.05) == math.inf
    assert 1 <= PrivacyLossDistribution.pure(1.0).epsilon(0) < 1.001
    assert PrivacyLossDistribution.gaussian(1.0).epsilon(1) == 0
    assert PrivacyLossDistribution.gaussian(1.0).epsilon(0) == math.inf
    assert sum([PrivacyLossDistribution.pure(1), PrivacyLossDistribution.pure(1)]).n_releases == 2


def test_curves_of_pure_releases_end_at_their_sum():
    series = RenyiCurve.laplace(1.0) + RenyiCurve.pure(0.5)
    # Laplace noise and randomised response have a loss of 1.5 with probability 1/2 p
    p = 1 / (1 + math.exp(-0.5))
    assert 1.5 + math.log1p(-1e-6 / (p / 2)) < series.epsilon(1e-6) < series.epsilon(0) == 1.5
    assert series.epsilon(1e-12) == 1.5
    assert series.delta(1.5) == 0 < series.delta(1.4)
    assert (series + RenyiCurve.gaussian(1.0)).epsilon(0) == math.inf
    assert math.copysign(1, PrivacyLossDistribution.laplace(1000).delta(1.0)) == 1


def test_probabilities_that_no_float_holds_are_refused():
    for small in (Fraction(1, 10**400), Fraction(1, 3 * 10**310)):  # their ratio is no float's, or another float's
        with pytest.raises(ValueError, match="p must hold probabilities of 0, or of at least"):
            PrivacyLossDistribution.from_pair([small, 1 - small], [Fraction(0), Fraction(1)])
        with pytest.raises(ValueError, match="q must hold probabilities of 0, or of at least"):
            PrivacyLossDistribution.from_pair([Fraction(1, 2)] * 2, [small, 1 - small])
    held = Fraction(1, 10**300)
    assert PrivacyLossDistribution.from_pair([held, 1 - held], [Fraction(0), Fraction(1)]).epsilon(0) == math.inf
