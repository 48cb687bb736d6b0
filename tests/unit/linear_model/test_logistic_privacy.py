"""The guarantee of logistic regression, checked by integration and not by sampling; wrong versions are rejected."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate
from scipy.integrate import dblquad, quad
from scipy.special import expit, log_ndtr
from scipy.stats import norm

from dpestim.linear_model import objective as law
from dpestim.linear_model.shapes import BINARY, Softmax

SLACK = 1e-6  # of the integration grid, relative


# ---------------------------------------------------------------- pure, one dimension: change of variables


def density_logs(rows, w, rate, strength):
    """Return ln of the density of the minimiser at each w: the density of b times the Jacobian, one dimension."""
    rows, counts = np.unique(rows, return_counts=True)  # (nearly all are equal)
    p = expit(np.outer(w, rows))
    b = (1 - p) @ (counts * rows) - strength * w
    return -rate * np.abs(b) + np.log((p * (1 - p)) @ (counts * rows**2) + strength)


def worst_loss(rate, strength, n=11):
    """Return the largest loss over adversarial neighbours: n - 1 equal rows and one that changes."""
    w = np.concatenate([np.linspace(-60, 60, 24_001), np.linspace(-3000, 3000, 6_001)])
    worst = 0.0
    for common in (-1.0, 0.0, 0.3, 1.0):
        rest = [common] * (n - 1)
        logs = [
            density_logs(np.array([*rest, last]), w, rate, strength) for last in (-1.0, -0.5, -0.1, 0.0, 0.1, 0.5, 1.0)
        ]
        worst = max(worst, float((np.max(logs, axis=0) - np.min(logs, axis=0)).max()))
    return worst


def pure_law(epsilon, strength):
    """Return (rate, strength) as the estimator would use them, before the share of the approximation."""
    with localcontext(law._CONTEXT):
        e = law._decimal(Fraction(str(epsilon)))
        strength = law.least_strength(e, Decimal(repr(strength)))
        return float(law.gradient_rate(e, strength)), float(strength)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 8.0])
@pytest.mark.parametrize("strength", [0.011, 0.1, 1.0, 2.5, 20.0, 1000.0])
@pytest.mark.no_kernel
def test_the_pure_law_never_exceeds_epsilon_in_one_dimension(epsilon, strength):
    assert worst_loss(*pure_law(epsilon, strength)) <= epsilon * (1 + SLACK)


@pytest.mark.parametrize(("epsilon", "at_least"), [(0.1, 1.0), (0.5, 2.5)])
def test_the_version_of_2008_is_rejected(epsilon, at_least):
    """No determinant, no Delta: rate epsilon / 2 whatever the strength (n = 11, Lambda = 0.001)."""
    assert worst_loss(epsilon / 2, 0.011) > at_least > 2 * epsilon


def test_too_little_noise_is_rejected():
    """In one dimension gradients differ by 1 and not by 2, so 0.4 of the noise is what the test must notice."""
    rate, strength = pure_law(1.0, 20.0)
    assert worst_loss(rate / 0.4, strength) > 1.0
    rate, strength = pure_law(1.0, 0.5)
    assert worst_loss(2 * rate, strength / 20) > 1.0


def joint_loss(rate, strength):
    """Return the largest of rate (2 - p) + ln(1 + p (1 - p) / strength), by brute force."""
    p = np.linspace(0, 1, 200_001)
    return float((rate * (2 - p) + np.log1p(p * (1 - p) / strength)).max())


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("times", [1e-6, 0.05, 0.3, 0.99, 1.0, 1.01, 4.0])
def test_the_bound_of_claim_1_holds_and_is_used(epsilon, times):
    """The loss of claim 1 is at most epsilon and uses all of it, whatever the strength."""
    rate, strength = pure_law(epsilon, times * 2 / epsilon)
    assert joint_loss(rate, strength) <= epsilon * (1 + 1e-12)
    assert joint_loss(rate, strength) >= epsilon * (1 - 1e-6)
    assert rate >= epsilon / 4 * (1 - 1e-12)


def test_a_pair_of_rows_in_the_plane_reaches_nearly_epsilon():
    """Two opposite rows far from the decision boundary: gradients 2 apart, so the constant 2 cannot be lowered."""
    rate, _ = pure_law(1.0, 5.0)
    w, angle = 1e4, 1e-2
    v, other = np.array([math.cos(angle), -math.sin(angle)]), np.array([-math.cos(angle), -math.sin(angle)])
    at = np.array([0.0, w])
    g = v * expit(-v @ at) - other * expit(-other @ at)
    assert 0.99 < rate * np.linalg.norm(g) <= 1.0


# ---------------------------------------------------------------- Gaussian


def plane_sigma(e, delta, strength):
    """Return what claim 3 alone would take."""
    return law._smallest(lambda sigma: law.plane_delta(e, sigma, strength), delta)


def decimal(function, *arguments):
    with localcontext(law._CONTEXT):
        return float(function(*(Decimal(repr(a)) for a in arguments)))


@pytest.mark.parametrize("e", [0.05, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9])
def test_the_closed_form_is_the_integral_of_claim_3(e, delta):
    """Integrate r e^(-r^2/2) (1 - e^(e - K(r)))_+ directly, with the exact joint maximum over p in K."""
    with localcontext(law._CONTEXT):
        sigma = float(plane_sigma(Decimal(repr(e)), Fraction(repr(delta)), Decimal(10) ** 30))
    a = 2 / sigma

    def integrand(r):
        return r * math.exp(-r * r / 2) * max(0.0, 1 - math.exp(e - a * r - a * a / 2))

    start = e / a - a / 2
    wanted = quad(integrand, start, start + 12, epsabs=0, epsrel=1e-10, limit=200)[0]
    assert wanted <= delta
    assert wanted >= 0.99 * delta
    # closed form with the exact Gaussian tail
    x = e / a + a / 2
    assert math.exp(0.5 * math.log(2 * math.pi) + math.log(a) + e + log_ndtr(-x)) == pytest.approx(wanted, rel=1e-6)


def total_delta(e, sigma, strength):
    """Return E[(1 - e^(e - loss))_+] with the maximum of the loss over p taken at every r, by numerical integration."""
    p = np.linspace(0, 1, 801)
    r = np.linspace(0, 14, 1_401)
    loss = (r[:, None] * (2 - p) / sigma + (2 - p) ** 2 / (2 * sigma**2) + np.log1p(p * (1 - p) / strength)).max(axis=1)
    return float(integrate.trapezoid(r * np.exp(-r * r / 2) * np.maximum(0, -np.expm1(e - loss)), r))


@pytest.mark.parametrize("e", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("strength", [0.02, 0.3, 1.0, 2.2, 30.0])
def test_the_hessian_is_paid_for_in_claim_3(e, strength):
    with localcontext(law._CONTEXT):
        budget = Decimal(repr(e))
        strength = float(law.least_strength(budget, Decimal(repr(strength / e))))
        sigma = float(plane_sigma(budget, Fraction(1, 10**5), Decimal(repr(strength))))
    # the bound takes (2 - p)^2 <= 4, which wastes up to half of delta (3 % of sigma) where strengths are small
    assert 0.5e-5 <= total_delta(e, sigma, strength) <= 1e-5 * (1 + 1e-3)
    assert total_delta(e, 0.8 * sigma, strength) > 4e-5


def tail_integral(y, a):
    """Return I(y, a) of claim 3 by numerical integration."""
    return quad(lambda t: (y + t) * math.exp(-((y + t) ** 2) / 2) * -math.expm1(-a * t), 0, 40, epsabs=0, epsrel=1e-10,
                limit=400)[0]


def test_the_integral_of_claim_3_falls_in_y_and_rises_in_a():
    ys, scales = np.linspace(0, 6, 13), np.geomspace(0.01, 8, 13)
    grid = np.array([[tail_integral(y, a) for a in scales] for y in ys])
    assert (np.diff(grid, axis=0) < 0).all()
    assert (np.diff(grid, axis=1) > 0).all()
    for y in ys[::3]:
        for a in scales[::3]:  # and it is at most the closed form that the code compares with delta
            bound = a * math.exp(-y * y / 2) * decimal(law.mills_upper, float(y + a))
            assert bound / 1.15 <= tail_integral(y, a) <= bound * (1 + 1e-9)


@pytest.mark.parametrize("e", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("strength", [0.05, 0.7, 1.5, 1e30])
def test_more_noise_in_the_objective_needs_no_more_delta(e, strength):
    """What makes it safe to round sigma up: no post-processing, but y = rate sigma rises, a = 2 / sigma falls."""
    with localcontext(law._CONTEXT):
        budget, strong = Decimal(repr(e)), law.least_strength(Decimal(repr(e)), Decimal(repr(strength / e)))
        least = plane_sigma(budget, Fraction(9, 10), strong)
        sigmas = [least * Decimal(repr(f)) for f in np.geomspace(1, 50, 25).tolist()]
        ys = [law.gradient_rate(budget - 2 / s**2, strong) * s for s in sigmas]
        bounds = [law.plane_delta(budget, s, strong) for s in sigmas]
    assert (np.diff(np.array(ys, dtype=float)) > 0).all()
    exact = [tail_integral(float(y), 2 / float(s)) for y, s in zip(ys, sigmas) if y < 30]
    assert (np.diff(exact) < 0).all()
    assert bounds == sorted(bounds, reverse=True)
    assert all(x <= float(b) * (1 + 1e-9) for x, b in zip(exact, bounds))


@pytest.mark.parametrize("C", [None, Fraction(1), Fraction(10**6)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(8)])
def test_the_scale_that_is_used_keeps_delta(epsilon, C):
    """The very float, rounded up from what the bisection accepted: its bound is at most delta too."""
    delta = Fraction(1, 10**5)
    made = law.calibrate("objective", epsilon, delta, C and 1 / C, 1000, 100)
    assert made.delta == delta
    with localcontext(law._CONTEXT):
        e, exact = law._decimal(made.noise_epsilon) / law._MORE, Decimal(made.strength)
        accepted = law.objective_sigma(e, delta, exact)
        assert accepted < Decimal(made.scale) < accepted * (1 + Decimal("1e-15"))
        assert law.objective_delta(e, Decimal(made.scale), exact) <= law._decimal(delta)
        assert law.objective_delta(e, Decimal(made.scale) * Decimal("0.99999"), exact) > law._decimal(delta)


def hockey_sticks_1d(rest, pairs, sigma, strength, e):
    """Return delta(e) between the minimisers of two data sets of one column, exactly but for the grid, for each pair.

    A pair is the last row of either data set; the others are the same.
    """
    reach = (12 * sigma + len(rest) + 1) / strength
    w = np.sort(np.concatenate([np.linspace(-reach, reach, 100_001), np.linspace(-40, 40, 50_001)]))

    def density(last):
        values, counts = np.unique([*rest, last], return_counts=True)
        p = expit(np.outer(w, values))
        b = ((1 - p) * counts) @ values - strength * w
        # (by hand: `norm.pdf` takes longer)
        bell = np.exp(-0.5 * (b / sigma) ** 2) / (math.sqrt(2 * math.pi) * sigma)
        return bell * ((p * (1 - p) * counts) @ (values**2) + strength)

    densities = {last: density(last) for last in {last for pair in pairs for last in pair}}
    for one in densities.values():
        assert integrate.trapezoid(one, w) == pytest.approx(1, rel=1e-4)
    return [float(integrate.trapezoid(np.maximum(0, densities[a] - math.exp(e) * densities[b]), w)) for a, b in pairs]


@pytest.mark.parametrize("e", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("strength", [0.2, 1.0, 10.0])
def test_delta_in_one_dimension(e, strength):
    delta = Fraction(1, 1000)
    with localcontext(law._CONTEXT):
        s = float(law.least_strength(Decimal(repr(e)), Decimal(repr(strength))))
        sigma = float(law.objective_sigma(Decimal(repr(e)), delta, Decimal(repr(s))))
    for common in (-1.0, 0.0, 1.0):
        pairs = ((1.0, -1.0), (1.0, 0.1), (0.1, 1.0), (0.0, 1.0))
        assert max(hockey_sticks_1d([common] * 10, pairs, sigma, s, e)) <= delta


def test_the_one_dimensional_delta_check_has_power():
    """A quarter of the noise exceeds delta, and so does the noise for a large strength used with a small one."""
    with localcontext(law._CONTEXT):
        sigma = float(law.objective_sigma(Decimal(1), Fraction(1, 1000), Decimal(100)))
    rest = [0.0] * 10
    assert hockey_sticks_1d(rest, [(1.0, -1.0)], sigma / 4, 1.0, 1.0)[0] > 2e-3
    assert hockey_sticks_1d(rest, [(1.0, 0.0)], sigma, 0.001, 1.0)[0] > 0.01


def test_delta_in_two_dimensions():
    """No other rows, two that point apart: integrate the hockey-stick over b in the plane."""
    e, strength, delta = 1.0, 3.0, 0.05
    with localcontext(law._CONTEXT):
        sigma = float(law.objective_sigma(Decimal(1), Fraction(1, 20), Decimal(3)))
    angle = 0.3
    v, other = np.array([math.cos(angle), -math.sin(angle)]), np.array([-math.cos(angle), -math.sin(angle)])

    def log_density(row, x, y):
        p = expit(row[0] * x + row[1] * y)
        b = [(1 - p) * row[k] - strength * at for k, at in enumerate((x, y))]
        bend = p * (1 - p) / strength
        return -(b[0] ** 2 + b[1] ** 2) / (2 * sigma**2) + math.log1p(bend) - math.log(2 * math.pi * sigma**2)

    def excess(y, x):
        one, two = log_density(v, x, y), log_density(other, x, y)
        return max(0.0, math.exp(one) - math.exp(e + two)) * strength**2

    reach = 6 * sigma / strength + 1
    found = dblquad(excess, -reach, reach, -reach, reach, epsabs=1e-5)[0]
    assert 0 < found <= delta


@pytest.mark.parametrize("e", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_output_perturbation_uses_the_analytic_gaussian(e, delta):
    with localcontext(law._CONTEXT):
        sigma = float(law.output_sigma(Decimal(repr(e)), Fraction(repr(delta))))
    a = 2 / sigma

    def exact(a):
        return norm.cdf(a / 2 - e / a) - math.exp(e + log_ndtr(-a / 2 - e / a))

    assert 0.8 * delta < exact(a) <= delta
    assert exact(a / 0.8) > 1.5 * delta  # a fifth less noise is not enough


@pytest.mark.parametrize("x", [0.0, 0.01, 0.5, 1.0, 3.0, 10.0, 30.0])
def test_bounds_of_mills_ratio(x):
    exact = math.exp(log_ndtr(-x) + x * x / 2 + 0.5 * math.log(2 * math.pi))
    assert decimal(law.mills_lower, x) <= exact * (1 + 1e-12)
    assert decimal(law.mills_upper, x) >= exact * (1 - 1e-12)
    assert decimal(law.mills_upper, x) <= 1.15 * exact


# ---------------------------------------------------------------- the calculus as a whole


@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**5)])
def test_the_parts_of_epsilon_sum_to_it_exactly(perturbation, delta):
    for k in (1, 3, 7):
        c = law.calibrate(perturbation, Fraction(1, 10) / k, delta / k, None, 1000, 5)
        assert k * (c.noise_epsilon + c.approximation_epsilon) == Fraction(1, 10)
        assert k * c.delta in (0, delta)


def test_pure_noise_is_taken_where_it_is_smaller():
    """Few columns: pure; many: Gaussian. Delta never makes the noise larger."""
    for size in (1, 3, 30, 300):
        pure = law.calibrate("objective", Fraction(1), Fraction(0), None, 1000, size)
        other = law.calibrate("objective", Fraction(1), Fraction(1, 10**5), None, 1000, size)
        assert (other.delta == 0) == (size <= 16)
        assert other.scale * (1 if other.delta else math.sqrt(size + 1)) <= pure.scale * math.sqrt(size + 1)


@pytest.mark.ci
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**5)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2), Fraction(4)])
def test_there_is_no_cliff_in_c(epsilon, delta):
    """Noise falls as the strength rises, never jumps, and is at most twice what the strongest regulariser allows."""
    strengths = [Fraction(repr(x)) for x in np.geomspace(1e-4, 1e5, 120).tolist()]
    laws = [law.calibrate("objective", epsilon, delta, s, 1000, 5) for s in strengths]
    scales, used = np.array([c.scale for c in laws]), np.array([c.strength for c in laws])
    assert (np.diff(used) >= -1e-8 * used[:-1]).all()
    assert (np.diff(scales) <= 3e-6 * scales[:-1]).all()  # to the precision of the bisection
    assert scales.max() <= 2.2 * scales.min()
    # a step in the strength never lowers the noise by more than the square of its factor: no jump anywhere
    assert (np.log(scales[:-1] / scales[1:]) <= 2 * np.log(used[1:] / used[:-1]) + 3e-6).all()


@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**5), Fraction(1, 10**200), Fraction(1, 3)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(1), Fraction(80)])
def test_extreme_budgets_are_finite(perturbation, delta, epsilon):
    for strength in (None, Fraction(1, 10**12), Fraction(10**12)):
        for n, size in ((0, 1), (10**9, 10_000)):
            c = law.calibrate(perturbation, epsilon, delta, strength, n, size)
            assert 0 < c.scale < math.inf
            assert 0 < c.strength < math.inf


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(1, 100), Fraction(1), Fraction(80)])
@pytest.mark.parametrize("C", [Fraction(1, 10**12), Fraction(1), Fraction(10**12)])
def test_the_pure_budget_holds_to_two_hundred_digits(epsilon, C):
    """Claim 1 for the very float that is used, far beyond the digits that it was computed with."""
    assert law._MORE > 1
    made = law.calibrate("objective", epsilon, Fraction(0), 1 / C, 1000, 3)
    with localcontext(Context(prec=200, Emax=999_999, Emin=-999_999)):
        rate, strength = 1 / Decimal(made.scale), Decimal(made.strength)
        e = Decimal(made.noise_epsilon.numerator) / Decimal(made.noise_epsilon.denominator)
        loss = 2 * rate + BINARY.hessian_cost(rate, strength)
        assert loss <= e * (1 - Decimal(10) ** -31)
        assert loss >= e * Decimal("0.499999")


@pytest.mark.parametrize("shape", [BINARY, Softmax(4)])
def test_rates_are_those_of_bisection(shape):
    """Secants only tell where bisection need not ask."""
    with localcontext(law._CONTEXT):
        for budget, strength in [(0.01, 120), (0.5, 1.3), (1, 0.6), (1, 0.02), (3, 1e-3), (8, 1e-5), (1e-3, 10)]:
            budget, strength = Decimal(budget), Decimal(strength)
            sensitivity, most = 2 * shape.steepest, budget / law._MORE
            free = budget / sensitivity / law._MORE
            low, high = Decimal(0), free
            if shape.hessian_cost(free, strength) == 0:
                low = high
            while (high - low) * law._FINE > high and high > free * law._LEAST_PART:
                middle = (low + high) / 2
                fits = sensitivity * middle + shape.hessian_cost(middle, strength) <= most
                low, high = (middle, high) if fits else (low, middle)
            assert law.gradient_rate(budget, strength, shape) == (low if high > free * law._LEAST_PART else 0)
