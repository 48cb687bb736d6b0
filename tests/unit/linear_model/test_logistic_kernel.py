"""The fused kernel, the certified solver and the release of one problem."""

import hashlib
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit

from dpestim._core import logistic
from dpestim.inputs import sparse_rows
from dpestim.linear_model import release, solver
from dpestim.linear_model.objective import LEAST_EPSILON, calibrate
from dpestim.linear_model.solver import Certificate, MarginLoss
from dpestim.rng import WordSource


def problem(n, d, seed=0, intercept=0.25, norm=1.5, n_jobs=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) / math.sqrt(d)
    signs = np.where(rng.random(n) < expit(3 * X[:, 0]), 1, -1).astype(np.int8)
    return MarginLoss(X, signs, norm, intercept, n_jobs)


def rows_of(loss):
    """Return the clipped rows with their constant, in plain NumPy."""
    norms = np.linalg.norm(loss.X, axis=1)
    Z = loss.X * (loss.limit * np.minimum(loss._inverse, 1 / np.where(norms > 0, norms, 1)))[:, None]
    return np.column_stack([Z, np.full(len(Z), loss.tail)]) if loss.size > loss.X.shape[1] else Z


def plain(loss, w):
    Z = rows_of(loss)
    margins = loss.signs * (Z @ w)
    p = expit(-margins)
    return (
        np.where(loss.signs, np.logaddexp(0, -margins), 0).sum(),
        -Z.T @ (loss.signs * p),
        (Z * (np.abs(loss.signs) * p * (1 - p))[:, None]).T @ Z,
    )


@pytest.mark.parametrize("d", [1, 7, 8, 9, 20])
@pytest.mark.parametrize("n", [1, 3, 4, 5, 2047, 2048, 5001])
@pytest.mark.parametrize("intercept", [0.0, 0.25])
def test_the_kernel_agrees_with_numpy(n, d, intercept):
    loss = problem(n, d, intercept=intercept)
    w = np.random.default_rng(1).standard_normal(loss.size) * 3
    for ours, theirs in zip(loss.evaluate(w, True), plain(loss, w)):
        assert np.abs(ours - theirs).max() <= 1e-13 * n
    assert loss.evaluate(w)[2] is None


def test_the_gradient_is_the_derivative():
    loss = problem(500, 4)
    w, h = np.random.default_rng(2).standard_normal(5), 1e-5
    for j in range(5):
        e = h * np.eye(5)[j]
        slope = (loss.evaluate(w + e)[0] - loss.evaluate(w - e)[0]) / (2 * h)
        bend = (loss.evaluate(w + e)[1] - loss.evaluate(w - e)[1]) / (2 * h)
        _, gradient, hessian = loss.evaluate(w, True)
        assert slope == pytest.approx(gradient[j], rel=1e-6, abs=1e-5)
        assert bend == pytest.approx(hessian[j], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(("n", "d"), [(50_000, 5), (5000, 100)])
def test_threads_change_nothing(n, d):
    """Neither ours nor those of BLAS, which forms the Hessian of wide rows."""
    w = np.linspace(-1, 1, d + 1)
    one = problem(n, d, n_jobs=1).evaluate(w, True)
    for n_jobs in (2, 3):
        for a, b in zip(one, problem(n, d, n_jobs=n_jobs).evaluate(w, True)):
            assert np.array_equal(a, b)


def test_the_hessian_of_wide_rows_may_be_that_of_some_of_them(monkeypatch):
    """Whatever Hessian the search begins with, it ends with the same certificate."""
    loss, found = problem(30_000, 70), []
    noise, certificate = np.linspace(-3, 3, 71), Certificate(30_000, 71, 5.0, 60.0)
    for enough in (1, 100, 10**9):
        monkeypatch.setattr(solver, "_ENOUGH", enough)
        w = solver.minimise(loss, noise, certificate)
        residual = np.linalg.norm(loss.evaluate(w)[1] + 5.0 * w + noise)
        assert certificate.error(residual, np.linalg.norm(w), np.linalg.norm(noise)) <= certificate.tolerance
        found.append(w)
    assert np.abs(found[0] - found[1]).max() <= 2 * certificate.tolerance


def test_the_bits_are_those_of_every_processor():
    """Vectors of 128, 256 and 512 bits and plain loops give one gradient; a fused multiply-add would give another."""
    i = np.arange(3001 * 21, dtype=np.uint64)
    X = ((i * np.uint64(2654435761)) % np.uint64(2**32)).astype(float).reshape(3001, 21) / 2**32 - 0.5
    signs = np.where(np.arange(3001) % 3 == 0, -1, 1).astype(np.int8)
    _, gradient, hessian = MarginLoss(X, signs, 2.0, 0.25).evaluate(np.arange(22) * 0.25 - 2, True)
    assert hashlib.sha256(gradient.tobytes() + hessian.tobytes()).hexdigest()[:16] == "bb0638dc33a018e7"


@pytest.mark.parametrize("d", [15, 16, 17, 127, 128, 150])
def test_a_row_that_was_left_out_leaves_no_trace(d):
    """Rows are written over one another, their last eight values perhaps twice; wide ones by halves of a tile."""
    loss = problem(9, d)
    X, w = loss.X.copy(), np.linspace(-1, 1, d + 1)
    X[4] = np.nan
    for hessian in (False, True):
        ours = MarginLoss(X, loss.signs, 1.5, 0.25).evaluate(w, hessian)
        keep = MarginLoss(np.delete(X, 4, axis=0), np.delete(loss.signs, 4), 1.5, 0.25)
        for a, b in zip(ours[: 2 + hessian], plain(keep, w)):
            assert np.abs(a - b).max() <= 1e-12
    assert np.array_equal(MarginLoss(X, loss.signs, 1.5, 0.25).evaluate(w)[1], ours[1]), "with or without Hessian"


def test_a_step_takes_every_kth_row():
    loss = problem(1003, 3)
    some = MarginLoss(np.ascontiguousarray(loss.X[::16]), loss.signs[::16].copy(), 1.5, 0.25)
    w = np.array([0.3, -2.0, 1.0, 0.1])
    for a, b in zip(loss.evaluate(w, True, 16), some.evaluate(w, True)):
        assert np.allclose(a, 16 * b, rtol=1e-13)


def test_rows_that_do_not_count():
    loss = problem(40, 3)
    w = np.array([0.3, -2.0, 1.0, 0.1])
    X, signs = loss.X.copy(), loss.signs.copy()
    X[3, 1], X[7, 0], X[11, 2], signs[20] = np.nan, np.inf, -np.inf, 0
    keep = np.ones(40, bool)
    keep[[3, 7, 11, 20]] = False
    odd = MarginLoss(X, signs, 1.5, 0.25).evaluate(w, True)
    rest = MarginLoss(np.ascontiguousarray(X[keep]), signs[keep].copy(), 1.5, 0.25).evaluate(w, True)
    for a, b in zip(odd, rest):
        assert np.allclose(a, b, rtol=1e-13)
    none = MarginLoss(np.empty((0, 3)), np.empty(0, np.int8), 1.5, 0.25).evaluate(w, True)
    assert [np.abs(part).max() for part in none] == [0, 0, 0]


@pytest.mark.parametrize("intercept", [0.0, 0.25, 1.0, 1e6])
def test_no_row_is_longer_than_1_not_even_by_rounding(intercept):
    rng = np.random.default_rng(3)
    for d in (1, 3, 30):
        limit, tail = solver.row_shape(d, intercept)
        X = rng.standard_normal((100, d)) * 10.0 ** rng.integers(-320, 300, (100, 1)).astype(float)
        X[0], X[1], X[2], X[3] = 1.7e308, 5e-324, 0.0, 1e154
        edge = rng.standard_normal((36, d))
        X[4:40] = edge / np.linalg.norm(edge, axis=1, keepdims=True)
        with np.errstate(all="ignore"):
            for norm in (1.0, 1 / 3, 1e-100, 1e100, 0.7):
                factors = np.empty(100)
                logistic.clip_factors(X, 1.0 / norm, limit, factors)
                assert (factors > 0).all()
                for x, s in zip(X, factors):
                    square = sum(Fraction(v) ** 2 for v in (s * x).tolist()) + Fraction(tail) ** 2 * (intercept > 0)
                    assert square <= 1
                    if sum(Fraction(v) ** 2 for v in x.tolist()) >= Fraction(1.01 * norm) ** 2:
                        assert square >= Fraction(999, 1000), "a clipped row loses length"


def test_the_exponential_keeps_its_error_bound():
    x = -np.concatenate([np.linspace(0, 3, 2001), np.geomspace(1e-300, 700, 2001), [0.0, 0.5 * math.log(2)]])
    out = np.empty_like(x)
    logistic.exponentials(x, out)
    with mpmath.workdps(40):
        worst = max(abs(mpmath.mpf(float(o)) / mpmath.exp(mpmath.mpf(float(v))) - 1) for v, o in zip(x, out))
    assert worst < 2.0**-50
    logistic.exponentials(np.array([-1e308, -701.0]), out[:2])
    assert (out[:2] < 1e-300).all()


@pytest.mark.parametrize("arguments", [
    {"last": 11}, {"first": -1}, {"step": 0}, {"w": np.zeros(7)}, {"gradient": np.zeros(16)},
    {"work": np.zeros((3, 8))}, {"hessian": np.zeros((8, 16))}, {"signs": np.ones(9, np.int8)}, {"scales": np.ones(11)},
])
def test_lengths_are_checked(arguments):
    given = {
        "X": np.zeros((10, 3)), "signs": np.ones(10, np.int8), "scales": np.ones(10), "inverse": 1.0, "limit": 0.9,
        "tail": 0.1, "offset": 0.0, "first": 0, "last": 10, "step": 1, "w": np.zeros(8), "work": np.zeros((16, 8)),
        "gradient": np.zeros(8), "hessian": np.zeros((0, 0)),
    }
    logistic.accumulate(*given.values())
    with pytest.raises(ValueError, match=r"width|length"):
        logistic.accumulate(*{**given, **arguments}.values())


def sparse_twin(loss):
    """Return the same loss of rows of which only the entries are kept."""
    X = sparse_rows(csr_array(loss.X), str, strict=True)
    return MarginLoss(X, loss.signs, 1.5, 0.25 * (loss.size > loss.X.shape[1]), margin=loss.margin,
                      targets=loss._targets)


@pytest.mark.parametrize("d", [1, 7, 8, 30])
@pytest.mark.parametrize("intercept", [0.0, 0.25])
def test_sparse_rows_give_what_dense_ones_do(d, intercept):
    loss = problem(5001, d, intercept=intercept)
    loss.X[np.random.default_rng(5).random(loss.X.shape) < 0.7] = 0.0
    loss.X[3, 0], loss.X[5, d - 1], loss.signs[7] = np.nan, np.inf, 0
    sparse, w = sparse_twin(loss), np.random.default_rng(1).standard_normal(loss.size) * 3
    assert len(sparse.X.values) < 0.4 * loss.X.size + 5000
    for step in (1, 16):
        for ours, theirs in zip(sparse.evaluate(w, True, step), loss.evaluate(w, True, step)):
            assert np.abs(ours - theirs).max() <= 1e-13 * 5001
    assert np.allclose(sparse.scales, loss.scales, rtol=1e-15)


# ---------------------------------------------------------------- the certificate


def exact_gradient(loss, w, noise, strength):
    """Return the gradient of the whole objective in 40 digits, for the float rows that the kernel sees."""
    with mpmath.workdps(40):
        total = [mpmath.mpf(float(b)) + mpmath.mpf(strength) * mpmath.mpf(float(v)) for b, v in zip(noise, w)]
        for x, s, sign in zip(loss.X, loss.scales, loss.signs):
            z = [*(s * x).tolist(), loss.tail][: loss.size]
            m = sum((mpmath.mpf(a) * mpmath.mpf(float(v)) for a, v in zip(z, w)), mpmath.mpf(0)) * int(sign)
            pull = 1 / (1 + mpmath.exp(m))
            total = [t - int(sign) * pull * a for t, a in zip(total, z)]
        return float(mpmath.sqrt(sum(t * t for t in total)))


def test_a_hessian_that_rounding_made_indefinite_is_lifted():
    """As single precision leaves two columns that are copies: no guarantee rests on it, so a little more will do."""
    bend, slope = np.array([[1.0, 1.0 + 1e-7], [1.0 + 1e-7, 1.0]]), np.array([1.0, -1.0])
    assert np.linalg.eigvalsh(bend)[0] < -5e-8
    move = -solver._factor(bend, 1e-9)(slope)
    assert move @ slope < 0


@pytest.mark.parametrize("sparse", [False, True])
def test_wide_rows_need_no_hessian_of_all_of_them(sparse, monkeypatch):
    loss, seen, evaluate = problem(30_000, 70), [], MarginLoss.evaluate
    loss = sparse_twin(loss) if sparse else loss

    def counted(self, w, hessian=False, step=1):
        seen.append((hessian, step))
        return evaluate(self, w, hessian, step)

    monkeypatch.setattr(MarginLoss, "evaluate", counted)
    solver.minimise(loss, np.linspace(-3, 3, 71), Certificate(30_000, 71, 5.0, 60.0))
    assert (True, 1) not in seen
    assert (True, 4) in seen
    assert seen.count((False, 1)) < 14


@pytest.mark.parametrize("strength", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("size", [0.1, 10.0, 1e4])
def test_the_certificate_holds_in_exact_arithmetic(strength, size):
    loss = problem(300, 3)
    noise = np.array([0.3, -0.5, 0.1, 0.7]) * size
    certificate = Certificate(300, 4, strength, 3 * size)
    w = solver.minimise(loss, noise, certificate)
    assert np.linalg.norm(w) <= certificate.fold
    assert exact_gradient(loss, w, noise, strength) / strength <= certificate.tolerance
    assert certificate.tolerance < 1e-9 * (1 + size / strength + math.sqrt(300 / strength))


@pytest.mark.parametrize("sparse", [False, True])
def test_the_bound_of_the_float_gradient_holds(sparse):
    loss = problem(400, 5)
    if sparse:
        dense, loss = loss, sparse_twin(loss)
        loss.evaluate(np.zeros(6))
        dense.scales[:] = loss.scales
    for norm in (0.0, 1.0, 100.0):
        w = np.full(6, norm / math.sqrt(6))
        gradient = loss.evaluate(w)[1]
        with mpmath.workdps(40):
            off = exact_gradient(dense if sparse else loss, w, -gradient, 0.0)
        assert off <= loss.rounding(norm)


@pytest.mark.parametrize("n", [0, 1, 2, 50, 20_000])
def test_the_minimum_is_scipys(n):
    loss = problem(n, 4)
    noise, strength = np.array([3.0, -20.0, 5.0, 1.0, 0.0]), 2.0
    certificate = Certificate(n, 5, strength, 30.0)
    w = solver.minimise(loss, noise, certificate)
    found = minimize(
        lambda v: loss.evaluate(v)[0] + strength / 2 * v @ v + noise @ v, np.zeros(5),
        jac=lambda v: loss.evaluate(v)[1] + strength * v + noise, method="BFGS", options={"gtol": 1e-7},
    )
    assert np.abs(w - found.x).max() < 1e-5


@pytest.mark.parametrize("kind", ["separable", "one class", "one column is constant", "huge noise", "tiny strength",
                                  "sorted", "huge values"])
def test_hard_problems_are_solved(kind):
    loss = problem(3000, 4)
    noise, strength, reach = np.array([1.0, -2.0, 3.0, 0.0, 1.0]), 0.5, 10.0
    if kind == "separable":
        loss.signs[:] = np.sign(loss.X[:, 0])
    elif kind == "one class":
        loss.signs[:] = 1
    elif kind == "one column is constant":
        loss.X[:, 1] = 3.0
    elif kind == "huge noise":
        noise, reach = noise * 1e12, 1e13
    elif kind == "tiny strength":
        strength = 1e-9
    elif kind == "sorted":
        order = np.argsort(loss.signs, kind="stable")
        loss = MarginLoss(loss.X[order], loss.signs[order], 1.5, 0.25)
    else:
        loss.X[::7] *= 1e300
    certificate = Certificate(3000, 5, strength, reach)
    w = solver.minimise(loss, noise, certificate)
    _, gradient, _ = loss.evaluate(w)
    residual = np.linalg.norm(gradient + strength * w + noise)
    assert certificate.error(residual, np.linalg.norm(w), np.linalg.norm(noise)) <= certificate.tolerance


def test_the_fold():
    certificate = Certificate(100, 3, 1.0, 10.0)
    e = np.array([0.6, 0.0, 0.8])
    assert np.array_equal(certificate.folded(certificate.fold * 0.99 * e), certificate.fold * 0.99 * e)
    assert np.linalg.norm(certificate.folded(1.5 * certificate.fold * e)) == pytest.approx(0.75 * certificate.fold)
    for far in (2.0, 2.5, 1e200):
        assert not certificate.folded(far * certificate.fold * e).any()
    points = np.random.default_rng(0).standard_normal((300, 2, 3)) * certificate.fold
    for a, b in points:
        apart = np.linalg.norm(certificate.folded(a) - certificate.folded(b))
        assert apart <= 2 * np.linalg.norm(a - b) * (1 + 1e-12)


def test_noise_beyond_all_bounds_gives_0_and_no_search():
    loss = problem(100, 3)
    certificate = Certificate(100, 4, 1.0, 10.0)
    w = solver.minimise(loss, np.array([1e300, 0, 0, 0]), certificate)
    assert not w.any()
    # just inside, the search says so itself
    just = np.array([0.99 * certificate.beyond, 0, 0, 0])
    assert not solver.minimise(loss, just, certificate).any()


# ---------------------------------------------------------------- the release


@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**5)])
def test_a_release_is_integers_on_a_public_grid(perturbation, delta):
    steps = set()
    for seed in range(3):
        loss = problem(500, 3, seed)
        law = calibrate(perturbation, Fraction(1), delta, None, 500, 4)
        codes, step = release.release(loss, law, WordSource(seed), 0)
        assert all(isinstance(c, int) for c in codes)
        steps.add(step)
    assert len(steps) == 1, "the grid depends on the data"
    assert math.log2(steps.pop()).is_integer()


@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("epsilon", [LEAST_EPSILON, Fraction(80)])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**300)])
def test_the_last_law_exists_for_all_models(perturbation, epsilon, delta):
    """No budget, strength or size needs integers larger than there are; more columns would need a matrix of 80 GB."""
    for size in (1, 1000, 90_000):
        for n_rows in (1, 10**9):
            for strength in (None, Fraction(1, 10**12), Fraction(10**12)):
                calibration = calibrate(perturbation, epsilon, delta, strength, n_rows, size)
                grid = release.CoefficientGrid.of(release.certificate_of(calibration, n_rows, size), size)
                law = release.last_law(calibration, grid)
                assert law.epsilon == epsilon / 100
                assert grid.sensitivity <= 6 * size + 1
                assert law.variance_steps < 2.0**114


def test_the_grid_covers_what_certificates_leave_open(monkeypatch):
    """Two vectors within `distance` of one point are at most `sensitivity` apart after rounding, and can get near."""
    rng = np.random.default_rng(0)
    for size in (1, 4, 30):
        certificate = Certificate(1000, size, 2.0, 20.0)
        grid = release.CoefficientGrid.of(certificate, size)
        worst = 0
        for _ in range(300):
            centre = rng.standard_normal(size)
            away = np.sign(rng.standard_normal(size)) * certificate.distance / math.sqrt(size)
            a, b = (np.rint((centre + s * away) / grid.step) for s in (1, -1))
            worst = max(worst, np.abs(a - b).sum())
        assert 0.5 * grid.sensitivity <= worst <= grid.sensitivity


def test_the_noise_of_the_release_has_its_scale(monkeypatch):
    """The integers are the rounded minimiser plus discrete Laplace of scale sensitivity / epsilon2."""
    loss = problem(500, 3)
    law = calibrate("objective", Fraction(1), Fraction(0), None, 500, 4)
    grid = release.CoefficientGrid.of(release.certificate_of(law, 500, 4), 4)
    monkeypatch.setattr(release, "minimise", lambda *_: np.zeros(4))
    drawn = np.array([release.release(loss, law, WordSource(s), 0)[0] for s in range(250)]).ravel()
    scale = grid.sensitivity / float(law.approximation_epsilon)
    assert law.approximation_epsilon == Fraction(1, 100)
    # |drawn| has mean and deviation close to scale: n = 1000, alpha = 1e-5 on either side
    assert np.abs(drawn).mean() == pytest.approx(scale, rel=4.3 / math.sqrt(1000))
    assert abs(drawn.mean()) < 4.3 * scale * math.sqrt(2 / 1000)


def test_the_last_noise_is_small_beside_the_first():
    for n, d, delta in ((1000, 4, 0), (100_000, 21, 0), (30_000, 89, Fraction(1, 10**5)), (10**6, 200, 0)):
        law = calibrate("objective", Fraction(1, 10), Fraction(delta), None, n, d)
        grid = release.CoefficientGrid.of(release.certificate_of(law, n, d), d)
        last = math.sqrt(2) * grid.step * grid.sensitivity / float(law.approximation_epsilon)
        first = law.scale * (1 if delta else math.sqrt(d + 1)) / law.strength
        assert last < 0.02 * first
