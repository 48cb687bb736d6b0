"""Several classes under one noise: the kernel, its rounding, the guarantee by integration; less noise is rejected."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.stats import norm

from dpestim._core import softmax
from dpestim.linear_model import DPLogisticRegression, release
from dpestim.linear_model import objective as law
from dpestim.linear_model.losses import hinge
from dpestim.linear_model.shapes import BINARY, OneVersusRest, Softmax
from dpestim.linear_model.softmax import SoftmaxLoss, quotient, rounding
from dpestim.linear_model.solver import minimise

DELTA = Fraction(1, 10**13)


def problem(n, d, n_classes, seed=0, n_jobs=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) / math.sqrt(d)
    return SoftmaxLoss(X, rng.integers(0, n_classes, n), n_classes, 1.5, 0.25, n_jobs)


def plain(loss, v, dtype=np.longdouble):
    """Return loss and gradient in plain NumPy, with more digits."""
    rows = loss._rows(slice(None)).astype(dtype)
    basis, keep = loss.basis.astype(dtype), loss.codes >= 0
    logs = log_softmax(rows @ (basis @ v.astype(dtype).reshape(-1, loss.width)).T, axis=1)
    pulls = np.exp(logs)
    pulls[keep, loss.codes[keep]] -= 1
    return -logs[keep, loss.codes[keep]].sum(), (basis.T @ (pulls * keep[:, None]).T @ rows).ravel()


@pytest.mark.parametrize(("n", "d", "k"), [(1, 1, 3), (5, 7, 3), (1024, 8, 4), (5001, 3, 3), (300, 5, 100)])
@pytest.mark.parametrize("size", [0.0, 3.0, 3000.0])
def test_the_gradient_is_within_its_proven_rounding(n, d, k, size):
    loss = problem(n, d, k)
    v = np.random.default_rng(1).standard_normal(loss.size)
    v *= size / np.linalg.norm(v)
    value, gradient, _ = loss.evaluate(v)
    exact = plain(loss, v)
    assert value == pytest.approx(float(exact[0]), rel=1e-12)
    off, bound = float(np.linalg.norm(gradient - exact[1])), rounding(n, loss.size, k, size)
    assert off <= bound
    assert bound <= 1e-11 * n * (1 + size)


def test_the_bound_of_rounding_is_not_idle():
    """Products in single precision exceed it."""
    loss = problem(2000, 8, 4)
    v = np.random.default_rng(1).standard_normal(loss.size)
    exact, rough = plain(loss, v)[1], plain(loss, v, np.float32)[1]
    assert float(np.linalg.norm(rough - exact)) > 10 * rounding(2000, loss.size, 4, float(np.linalg.norm(v)))


def test_the_gradient_is_the_derivative_and_threads_change_nothing():
    loss = problem(40_000, 4, 3)
    v = np.linspace(-2, 3, loss.size)
    gradient = loss.evaluate(v)[1]
    for j in (0, 4, 9):
        e = 1e-4 * np.eye(loss.size)[j]
        slope = (loss.evaluate(v + e)[0] - loss.evaluate(v - e)[0]) / 2e-4
        assert slope == pytest.approx(gradient[j], rel=1e-5, abs=1e-3)
    for n_jobs in (2, 3):
        assert np.array_equal(problem(40_000, 4, 3, n_jobs=n_jobs).evaluate(v)[1], gradient)


def test_rows_that_do_not_count():
    loss = problem(40, 3, 3)
    X, codes, v = loss.X.copy(), loss.codes.copy(), np.linspace(-1, 1, loss.size)
    X[3, 1], X[7, 0], codes[20] = np.nan, np.inf, -1
    keep = np.setdiff1d(np.arange(40), [3, 7, 20])
    odd = SoftmaxLoss(X, codes, 3, 1.5, 0.25).evaluate(v, True)
    rest = SoftmaxLoss(np.ascontiguousarray(X[keep]), codes[keep], 3, 1.5, 0.25).evaluate(v, True)
    assert odd[0] == pytest.approx(rest[0], rel=1e-13)
    assert np.allclose(odd[1], rest[1], rtol=1e-12, atol=1e-13)
    none = SoftmaxLoss(np.empty((0, 3)), np.empty(0, np.int64), 3, 1.5, 0.25).evaluate(v, True)
    assert none[0] == 0
    assert not none[1].any()


def test_lengths_are_checked():
    with pytest.raises(ValueError, match="length"):
        softmax.pulls(np.zeros((2, 3)), np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="no margin"):
        softmax.pulls(np.zeros((1, 3)), np.full(1, 3))
    assert softmax.pulls(np.zeros((0, 3)), np.zeros(0, np.int64)) == 0


@pytest.mark.parametrize("k", [2, 3, 10, 100])
def test_the_quotient_sees_differences_and_lengthens_nothing(k):
    basis = quotient(k)
    assert np.linalg.norm(basis, 2) < 1
    assert np.allclose(basis.T @ basis, np.eye(k - 1), atol=1e-11)
    assert np.abs(basis.sum(axis=0)).max() < 1e-13


@pytest.mark.parametrize("strength", [0.5, 30.0])
def test_the_minimiser_is_within_its_certificate(strength):
    loss = problem(3000, 4, 3)
    made = law.calibrate("objective", Fraction(2), Fraction(1, 10**5), Fraction(repr(strength)), 3000, 5, Softmax(3))
    certificate = release.certificate_of(made, 3000, loss.size)
    noise = np.random.default_rng(3).standard_normal(loss.size) * made.scale
    found = minimise(loss, noise, certificate)

    def objective(v):
        value, gradient, _ = loss.evaluate(v)
        return value + made.strength / 2 * v @ v + noise @ v, gradient + made.strength * v + noise

    other = minimize(objective, found * 0.9, jac=True, method="BFGS", options={"gtol": 1e-7}).x
    assert np.linalg.norm(found - other) <= certificate.distance + 1e-6 / made.strength
    exact = plain(loss, found)[1] + made.strength * found + noise
    assert float(np.linalg.norm(exact)) / made.strength <= certificate.distance


# ---------------------------------------------------------------- the guarantee


def sigma_of(e, strength, shape, delta=DELTA):
    with localcontext(law._CONTEXT):
        return float(law.objective_sigma(Decimal(repr(e)), delta, Decimal(repr(strength)), shape))


def density(w, rows, push, sigma, strength, basis):
    """Return the density of the minimiser at points w (m, k, d): that of b times the Jacobian, integrated exactly.

    `rows` are (z, class); `push` is the gradient of very many tiny rows, which is constant.
    """
    m, k, d = w.shape
    gradient, bend = strength * w + push, np.zeros((m, k * d, k * d)) + strength * np.eye(k * d)
    for z, y in rows:
        p = np.exp(log_softmax(np.einsum("jk,mkd,d->mj", basis, w, z), axis=1))
        gradient = gradient + np.einsum("jk,mj,d->mkd", basis, p - np.eye(len(basis))[y], z)
        s = np.einsum("ja,mj,jb->mab", basis, p, basis)
        s -= np.einsum("ja,mj,mi,ib->mab", basis, p, p, basis)
        bend = bend + np.einsum("mab,c,d->macbd", s, z, z).reshape(bend.shape)
    return norm.pdf(gradient, scale=sigma).prod(axis=(1, 2)) * np.linalg.det(bend)


def hockey_sticks(rows, pairs, push, sigma, strength, basis, e, reach=None):
    """Return delta(e) between data sets of one row beside the push, on a grid in the plane of w, for pairs of rows.

    A grid that ends at `reach` gives a lower bound.
    """
    k, d = push.shape
    assert k * d == 2
    half = reach or 9.5 * sigma / strength
    axis = np.linspace(-half, half, 161)
    w = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, k, d) - push / strength
    cell = (axis[1] - axis[0]) ** 2
    made = [density(w, [row], push, sigma, strength, basis) for row in rows]
    for one in made:
        assert one.sum() * cell < 1.001
        assert reach or one.sum() * cell > 0.999
    return [float(np.maximum(0, made[i] - math.exp(e) * made[j]).sum() * cell) for i, j in pairs]


def attack_on_the_binary_loss(e, strength, sigma):
    """Two rows that point apart, both on the wrong side, where others hold the boundary: gradients nearly 2 apart."""
    angle = 0.2
    z = np.array([[math.cos(angle), math.sin(angle)], [-math.cos(angle), math.sin(angle)]])
    basis = np.array([[-0.5], [0.5]])  # margins of two classes that differ by w z: the binary loss
    # the first class; the push takes w to where both rows are far on the side of the second
    push = np.array([[0.0, -strength * (20 / math.sin(angle))]])
    return hockey_sticks([(z[0], 0), (z[1], 0)], [(0, 1)], push, sigma, strength, basis, e)[0]


def attack_on_the_softmax(e, strength, sigma):
    """One column, three classes: x = 1 and x = -1 of the middle class, each certain of another wrong one."""
    basis = quotient(3)
    push = -strength * 30 * (basis.T @ np.array([1.0, 0.0, -1.0]))[:, None]
    rows = [(np.array([x]), 1) for x in (1.0, -1.0)]
    return hockey_sticks(rows, [(0, 1)], push, sigma, strength, basis, e)[0]


@pytest.mark.law
@pytest.mark.parametrize("e", [0.5, 2.0])
@pytest.mark.parametrize(
    ("attack", "shape"), [(attack_on_the_binary_loss, BINARY), (attack_on_the_softmax, Softmax(3))]
)
@pytest.mark.no_kernel
def test_delta_is_kept_and_less_noise_is_rejected(attack, shape, e):
    strength = 8.0 / e
    sigma = sigma_of(e, strength, shape)
    assert 0 < attack(e, strength, sigma) <= DELTA
    assert attack(e, strength, 0.8 * sigma) > 1.1 * DELTA


@pytest.mark.law
@pytest.mark.parametrize("times", [0.3, 1.0])
@pytest.mark.no_kernel
def test_delta_is_kept_where_the_determinant_counts(times):
    """Near the boundary, where the Hessian of the row that changes is largest; without its cost more than delta."""
    delta, e, basis, nowhere = Fraction(1, 1000), 1.0, quotient(3), np.zeros((2, 1))
    with localcontext(law._CONTEXT):
        strength = float(law.least_strength(Decimal(repr(e)), Decimal(repr(times / e)), Softmax(3)))
    rows = [(np.array([x]), y) for x, y in ((1.0, 0), (0.0, 0), (-1.0, 0), (1.0, 1), (-1.0, 1))]
    pairs = list(itertools.permutations(range(5), 2))
    sigma = sigma_of(e, strength, Softmax(3), delta)
    assert max(hockey_sticks(rows, pairs, nowhere, sigma, strength, basis, e)) <= delta
    sigma = sigma_of(e, 1e30, Softmax(3), delta)
    assert max(hockey_sticks(rows[:2], [(0, 1)], nowhere, sigma, 0.002, basis, e, reach=12.0)) > 2 * delta


def corner_sum(shape, e, sigma, strength):
    """Return the bound of claim 2 with exact Gaussian deltas, in floats."""
    def delta_of(e, a):
        return norm.cdf(a / 2 - e / a) - math.exp(e) * norm.cdf(-a / 2 - e / a)

    with localcontext(law._CONTEXT):
        corners = shape.corners(Decimal(repr(e)), Decimal(repr(strength)))
    return sum(float(n) * delta_of(e - float(cost), float(length) / sigma) for n, length, cost in corners)


@pytest.mark.parametrize("shape", [BINARY, Softmax(3), Softmax(100), OneVersusRest(3), OneVersusRest(40),
                                   OneVersusRest(4, hinge(0.5).loss_shape)])
@pytest.mark.parametrize("e", [0.1, 1.0, 8.0])
@pytest.mark.no_kernel
def test_the_bound_is_used_up(shape, e):
    delta, strength = Fraction(1, 10**5), 100 * float(shape.trace) / e
    sigma = sigma_of(e, strength, shape, delta)
    assert 0.85 * delta <= corner_sum(shape, e, sigma, strength) <= delta * (1 + 1e-6)
    assert corner_sum(shape, e, 0.9 * sigma, strength) > 1.5 * delta


@pytest.mark.parametrize("k", [3, 5])
def test_corners_bound_all_pairs_of_vertices(k):
    """Lengths of all pairs, for rows that point together, apart, or across; same class or not."""
    with localcontext(law._CONTEXT):
        allowed = sorted(
            (float(length) for n, length, _ in Softmax(k).corners(Decimal(1), Decimal(100)) for _ in range(n)),
            reverse=True,
        )
    eye = np.eye(k)
    for cosine, other in itertools.product((-1, -0.4, 0, 0.7, 1), (0, 1)):
        lengths = []
        for i, j in itertools.product(range(k), range(k)):
            a, b = eye[i] - eye[0], eye[j] - eye[other]
            lengths.append(math.sqrt(max(0, a @ a + b @ b - 2 * cosine * (a @ b))))
        assert all(x <= y + 1e-12 for x, y in zip(sorted(lengths, reverse=True), [*allowed, 0.0]))


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("strength", [0.05, 0.4, 3.0, 50.0])
def test_the_cost_of_the_hessian_holds_for_all_probabilities(k, strength):
    shape = Softmax(k) if k > 2 else BINARY
    c = float(shape.square)
    p = np.random.default_rng(0).dirichlet(np.full(k, 0.4), 4000)
    p = np.vstack([p, np.eye(k), np.full((1, k), 1 / k), np.linspace(np.eye(k)[0], np.full(k, 1 / k), 50)])
    bends = c * (np.einsum("ni,ij->nij", p, np.eye(k)) - np.einsum("ni,nj->nij", p, p))
    logs = np.log(np.linalg.det(np.eye(k) + bends / strength))
    length = math.sqrt(c) * np.linalg.norm(p - np.eye(k)[0], axis=1)
    with localcontext(law._CONTEXT):
        s = Decimal(repr(strength))
        for e in (0.3, 3.0):
            cost, slope = (float(x) for x in shape._tangent(Decimal(repr(e)), s))
            assert (logs <= cost + slope * (1 - p[:, 0]) + 1e-12).all()
        for rate in (0.05, 0.5, 5.0):
            loss = logs - rate * (float(shape.steepest) - length)
            assert loss.max() <= float(shape.hessian_cost(Decimal(repr(rate)), s)) + 1e-12


@pytest.mark.parametrize("shape", [BINARY, Softmax(3), Softmax(10)])
@pytest.mark.parametrize("times", [0.05, 1.0, 4.0])
def test_pure_noise_pays_for_gradient_and_hessian(shape, times):
    e = Fraction(1)
    made = law.calibrate("objective", e, Fraction(0), Fraction(repr(times)) * 3, 100, 5, shape)
    with localcontext(law._CONTEXT):
        rate, strength = 1 / Decimal(made.scale), Decimal(made.strength)
        spent = 2 * shape.steepest * rate + shape.hessian_cost(rate, strength)
        assert Decimal("0.999") * law._decimal(made.noise_epsilon) <= spent <= law._decimal(made.noise_epsilon)


def test_one_against_the_rest_shares_one_noise():
    """Less than that of so many problems; and for delta 0 theirs."""
    joint = law.calibrate("objective", Fraction(1), Fraction(1, 10**5), None, 10_000, 100, OneVersusRest(10))
    single = law.calibrate("objective", Fraction(1, 10), Fraction(1, 10**6), None, 10_000, 100)
    assert joint.scale < 0.5 * single.scale
    assert joint.noise_epsilon + 10 * joint.approximation_epsilon == 1
    pure = law.calibrate("objective", Fraction(1), Fraction(0), Fraction(100), 10_000, 100, OneVersusRest(10))
    assert pure.scale == law.calibrate("objective", Fraction(1, 10), Fraction(0), Fraction(100), 10_000, 100).scale


@pytest.mark.law
def test_accuracy_on_digits():
    """Public bounds 0..16 of 64 columns; one split. Named in the issue: .20/.38/.66/.83 at epsilon 1/2/4/8."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    for epsilon, least in ((1, 0.2), (2, 0.45), (8, 0.8)):
        found = [
            DPLogisticRegression(epsilon, delta=1e-5, data_norm=128.0, classes=range(10), random_state=seed)
            .fit(X[:1350], y[:1350]).score(X[1350:], y[1350:]) for seed in range(2)
        ]
        assert np.median(found) >= least


@pytest.mark.parametrize("intercept", [0.0, 0.25])
def test_sparse_rows_give_the_same_gradient(intercept):
    from scipy.sparse import csr_array

    from dpestim.inputs import sparse_rows

    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 6)) * (rng.random((300, 6)) < 0.3)
    X[7, 2], codes = np.inf, rng.integers(-1, 3, 300)
    sparse = sparse_rows(csr_array(X), lambda j: f"column {j}", strict=True)
    one, other = (SoftmaxLoss(rows, codes, 3, 1.5, intercept) for rows in (np.ascontiguousarray(X), sparse))
    v = np.linspace(-2, 3, one.size)
    for a, b in zip(one.evaluate(v, True)[:2], other.evaluate(v, True)[:2]):
        assert np.allclose(a, b, rtol=1e-12, atol=1e-12)
    x = np.linspace(1, 2, one.size)
    solved = [loss.evaluate(v, True)[2](2.0)(x) for loss in (one, other)]
    assert np.allclose(*solved, rtol=1e-9)


@pytest.mark.parametrize("k", [3, 4])
def test_corners_of_one_against_the_rest_bound_all_pairs(k):
    """Opposite rows: a problem's gradients add up, so g has one of three squared lengths in each."""
    with localcontext(law._CONTEXT):
        corners = OneVersusRest(k).corners(Decimal(1), Decimal(100))
    allowed = sorted((float(length) for n, length, _ in corners for _ in range(n)), reverse=True)
    lengths = [math.sqrt(sum((a + b) ** 2 for a, b in zip(own, other)))
               for own in itertools.product((0, 1), repeat=k) for other in itertools.product((0, 1), repeat=k)]
    lengths = sorted((x for x in lengths if x), reverse=True)
    assert len(allowed) == len(lengths)
    assert all(x <= y + 1e-12 for x, y in zip(lengths, allowed))


def test_the_search_ends_where_values_tell_no_more(monkeypatch):
    # Rounded values let tiny steps pass for progress: with this noise the search went on for ever.
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    calls, evaluate = [], SoftmaxLoss.evaluate

    def counted(self, *args):
        calls.append(1)
        assert len(calls) < 300
        return evaluate(self, *args)

    monkeypatch.setattr(SoftmaxLoss, "evaluate", counted)
    rows = np.tile(X / 8 - 1, (5, 1)) / 8
    model = DPLogisticRegression(1.0, delta=1e-5, data_norm=1.0, classes=list(range(10)), random_state=1)
    assert model.fit(rows, np.tile(y, 5)).score(rows, np.tile(y, 5)) > 0.8
