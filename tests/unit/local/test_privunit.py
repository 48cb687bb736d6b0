"""PrivUnit: answers word by word, uniform candidates, the scale, variances against the best, vectors in a ball."""

import math
import pickle

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from dpestim._core import privunit
from dpestim.exceptions import PrivacyLeakWarning
from dpestim.local import DistributionEstimator, MeanEstimator, PMTransformer, PrivUnitTransformer
from dpestim.local.numbers.privunit import PrivUnit
from dpestim.privacy import category_weights, exact
from dpestim.testing import check_mechanism
from dpestim.testing.sample import reports_of

ALPHA = 1e-6
WORD = exact.WORD


# ---------------------------------------------------------------- the answer


class GivenWords:
    """Words that a test chooses."""

    def __init__(self, seeds, words):
        self.drawn = {0: np.array(seeds, np.uint64), 1: np.array(words, np.uint64).ravel()}

    def dense(self, stage, per_row):
        return self.drawn[int(stage)]

    def scratch(self, size, dtype):
        return np.empty(size, dtype)


def edges_of_answers(law):
    """Return the first and the last word of every slot of answers."""
    slots = [(j * law.inside, (j + 1) * law.inside - 1) for j in range(law.n_top)]
    start = law.n_top * law.inside
    slots += [(start + j * law.outside, start + (j + 1) * law.outside - 1) for j in range(2 * law.n_half - law.n_top)]
    assert slots[-1][1] == WORD - 1
    return slots


@pytest.mark.parametrize(("d", "epsilon", "candidates"), [
    (1, 1.0, 8), (2, 0.5, 8), (2, 3.0, 64), (5, 8.0, 256), (63, 1.0, 64), (64, 2.0, 512), (100, 8.0, 2048),
    (1024, 1.0, 2048),
])
@pytest.mark.parametrize("kind", ["random", "one entry", "zero", "opposite"])
def test_every_candidate_has_its_words(d, epsilon, candidates, kind):
    """Word by word at all edges: the best ones for `inside` words each, every other one for `outside`. Exactly."""
    law = PrivUnit(epsilon, d, candidates)
    x = np.random.default_rng(d).normal(size=d) if kind == "random" else np.eye(d)[-1]
    code = np.zeros((1, d), np.int32)
    law.encode(9.0 * x[None], np.zeros(d), 1.0, code)
    if kind == "zero":
        code[:], x = 0, np.eye(d)[0]
    if kind == "opposite":  # half as long, and the word of the length turns it
        code //= 2
    slots = edges_of_answers(law)
    words = [(WORD - 1 if kind == "opposite" else 0, edge) for slot in slots for edge in slot]
    reports = np.empty((len(words), 2), np.uint64)
    law.privatize(np.repeat(code, len(words), axis=0), GivenWords([77] * len(words), words), reports)
    first, last = reports[::2, 1], reports[1::2, 1]
    assert np.array_equal(first, last)
    assert np.array_equal(np.sort(first), np.arange(2 * law.n_half))
    sign = -1.0 if kind == "opposite" else 1.0
    direction = sign * code[0] / np.linalg.norm(code[0].astype(float)) if code.any() else x
    y = law.products(np.array([77], np.uint64), direction[None])[0]
    both = np.concatenate([y, -y])[first.astype(int)]
    assert both[: law.n_top].min() >= both[law.n_top :].max()
    assert both[: law.n_top].min() >= 0


def test_weights_against_rationals():
    """In both directions, and at least 0.99 of epsilon, for any number of best candidates."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        epsilon = exact.canonical_epsilon(round(10 ** rng.uniform(-4, 1.4), 6))
        n = 1 << int(rng.integers(1, 17))
        k = int(rng.integers(1, n // 2 + 1))
        inside, outside = category_weights.cap_weights(epsilon, k, n)
        assert k * inside + (n - k) * outside == WORD
        assert 0 < outside <= inside <= exact.exp_lower(epsilon) * outside
        assert exact.uses_enough(inside, outside, epsilon)
    with pytest.raises(ValueError, match="epsilon is too small"):
        category_weights.cap_weights(exact.canonical_epsilon(1e-19), 3, 8)


def test_large_epsilons_state_their_slack():
    law = PrivUnit.make(80.0, 8, 64)
    assert law.slack
    assert law.inside <= exact.exp_lower(law.epsilon) * law.outside
    assert not PrivUnit.make(40.0, 8, 64).slack


def test_the_kernel_refuses_what_does_not_fit():
    law = PrivUnit(1.0, 3, 8)
    codes, seeds, words = np.zeros((2, 3), np.int32), np.zeros(2, np.uint64), np.zeros(4, np.uint64)
    memory, top, out = np.empty(64, np.float32), np.empty(4, np.uint8), np.empty((2, 2), np.uint64)
    good = (codes, seeds, words, law._points, law.n_top, law.inside, law.outside, *law._near, memory, top, out)
    privunit.answer(*good)
    wrong_points = law._points[:, :3].copy()
    for place, bad in ((1, seeds[:1]), (2, words[:3]), (3, wrong_points), (4, 0), (4, 5), (5, law.inside + 1),
                       (9, memory[:3]), (10, top[:3]), (11, out[:1])):
        wrong = list(good)
        wrong[place] = bad
        with pytest.raises(ValueError, match=r"differ|weights|points|whole"):
            privunit.answer(*wrong)
    out[:], beyond = 0, np.full((2, 2), 8, np.uint64)

    def f32(*shape):
        return np.zeros(shape, np.float32)

    for call in (lambda: privunit.lift(beyond, law._points, 4, np.empty(6, np.int32), codes),
                 lambda: privunit.count(beyond, law._points, 4, np.empty(6, np.int32), *np.zeros((2, 3), int)),
                 lambda: privunit.lift(out, law._points, 4, np.empty(3, np.int32), np.empty((2, 3), np.int32)),
                 lambda: privunit.encode(np.zeros((2, 3)), np.zeros(2), 1.0, np.empty(3), codes),
                 lambda: privunit.products(seeds, f32(1, 3), law._points, memory, f32(2, 4)),
                 lambda: privunit.products(seeds, f32(2, 100), f32(0, 0), np.empty(512, np.float32), f32(2, 100)),
                 lambda: privunit.count(out, law._points, 4, np.empty(6, np.int32), *np.zeros((2, 2), int))):
        with pytest.raises(ValueError, match=r"differ|whole|points|fewer"):
            call()


# ---------------------------------------------------------------- candidates


@pytest.mark.parametrize("d", [1, 2, 3, 17, 63, 64, 300, 1024, 2000])
def test_products_are_those_with_the_candidates_of_the_seed(d):
    law = PrivUnit(1.0, d, 64)
    rng = np.random.default_rng(d)
    x = rng.normal(size=(3, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    seeds = rng.integers(0, WORD, 3, np.uint64)
    y = law.products(seeds, x)
    index = np.arange(2 * law.n_half, dtype=np.uint64)
    for row in range(3):
        z = law.candidates_of(np.stack([np.full(len(index), seeds[row]), index], axis=1)) / law.length
        assert np.abs(z[: law.n_half] @ x[row] - y[row]).max() < 2e-3 / math.sqrt(d)
        assert np.array_equal(z[: law.n_half], -z[law.n_half :])
        if law.size == d:
            assert np.allclose(np.linalg.norm(z, axis=1), 1, atol=1e-3)
        frame = z[: min(law.size, law.n_half)]
        if d >= 64 and law.size == d:
            assert np.allclose(frame @ frame.T, np.eye(d), atol=1e-2)


@pytest.mark.parametrize("d", [2, 3, 8])
def test_rotations_are_uniform(d):
    """Products of images of two vectors with fixed ones (Kolmogorov, n = 20,000, alpha = 1e-6); folded, rejected."""
    n = 20_000
    reports = np.zeros((n, 2), np.uint64)
    reports[:, 0] = np.random.default_rng(5).integers(0, WORD, n, np.uint64)
    law = PrivUnit(1.0, d, 16)
    uniform = stats.beta((d - 1) / 2, (d - 1) / 2, loc=-1, scale=2).cdf
    for index in (0, 3):
        reports[:, 1] = index
        z = law.candidates_of(reports) / law.length
        for fixed in (np.eye(d)[0], np.eye(d)[-1], np.ones(d) / math.sqrt(d)):
            assert stats.kstest(z @ fixed, uniform).pvalue > ALPHA
            assert stats.kstest(np.abs(z @ fixed), uniform).pvalue < ALPHA
    signs = np.sign(z[:, 0] * z[:, 1])
    assert abs(signs.sum()) < 4.9 * math.sqrt(n)  # all quadrants are equally likely


# ---------------------------------------------------------------- the scale, and variances


def best_normals(n, k):
    """The mean of the sum of the k largest of n independent |normals|, by integration."""
    y = np.linspace(0, 9, 20_001)
    return n * integrate.trapezoid(y * 2 * stats.norm.pdf(y) * special.bdtr(k - 1, n - 1, 2 * stats.norm.sf(y)), y)


@pytest.mark.parametrize(("d", "epsilon"), [(256, 0.5), (256, 4.0), (1024, 1.0), (1024, 8.0)])
def test_the_scale_is_that_of_a_uniform_frame(d, epsilon):
    """One frame of size D: products with a uniform unit vector are D normal numbers over their common length."""
    law = PrivUnit.make(epsilon, d, 2 * d)
    wanted = best_normals(d, law.n_top) / (math.sqrt(2) * math.exp(math.lgamma((d + 1) / 2) - math.lgamma(d / 2)))
    best, error = law._best_sum
    assert error < 1e-3 * best
    assert abs(best - wanted) < error + 64 / d**2 * best


def test_the_scale_in_one_and_two_dimensions():
    law = PrivUnit.make(1.0, 1)
    assert law.scale[0] * law.length == pytest.approx(1 / math.tanh(0.5))  # randomised response to a sign
    law = PrivUnit.make(2.0, 2, 1024)
    n, k = law.n_half, law.n_top
    # k neighbouring ones of n lines evenly spaced; the mean over where the vector lies between them
    off = np.linspace(-0.5, 0.5, 2001) * math.pi / n
    place = (np.arange(k) - (k - 1) / 2) * math.pi / n
    assert law._best_sum[0] == pytest.approx(np.cos(place[:, None] + off).sum(axis=0).mean(), rel=1e-6)


def best_continuous(d, epsilon):
    """The variance in total of PrivUnit with the best cap: a share q of the sphere is e^epsilon times likelier."""
    a = (d - 1) / 2
    peak = math.exp(math.lgamma(d / 2) - math.lgamma(a)) / math.sqrt(math.pi) / (d - 1)

    def variance(log_q):
        q = math.exp(log_q)
        t = 2 * stats.beta.isf(q, a, a) - 1
        return 1 / (math.expm1(epsilon) / (q * math.expm1(epsilon) + 1) * peak * (1 - t * t) ** a) ** 2 - 1

    return optimize.minimize_scalar(variance, bounds=(-epsilon - 4, math.log(0.5)), method="bounded").fun


def codes_of(x, n):
    codes = np.empty((n, len(x)), np.int32)
    privunit.encode(np.tile(np.asarray(x, float), (n, 1)), np.zeros(len(x)), 1.0, np.empty(len(x)), codes)
    return codes


def counts_of(law, x, n, seed):
    counts = np.zeros(law.n_counts, np.int64)
    law.count(reports_of(law, codes_of(x, n), seed), counts)
    return counts


def means_of(law, x, n, seed):
    return law.means(counts_of(law, x, n, seed))


@pytest.mark.ci
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("d", [2, 16, 128, 1024])
def test_the_variance_is_within_five_percent_of_the_best(d, epsilon):
    """In total over the columns: the mean square of 2,000 reports, of nearly one length, less that of the vector."""
    law, x, n = PrivUnit.make(epsilon, d), np.ones(d) / math.sqrt(d), 2000
    square = counts_of(law, x, n, seed=1)[1 + d :].sum() / n * law.scale[0] ** 2
    best = best_continuous(d, epsilon)
    assert 0.99 * best < square - 1 < 1.05 * best


@pytest.mark.ci
@pytest.mark.parametrize(("d", "epsilon", "candidates"), [
    (2, 2.0, 256), (16, 4.0, 256), (100, 4.0, 512), (1024, 8.0, 2048),
])
@pytest.mark.parametrize("kind", ["one entry", "all equal", "two entries", "short"])
def test_means_are_the_vectors(d, epsilon, candidates, kind):
    """Chi-square over the columns (n = 8,000, alpha = 1e-6) and a z-test along the vector; 1.3 times it is rejected."""
    x = {"one entry": np.eye(d)[0], "all equal": np.ones(d) / math.sqrt(d), "short": 0.3 * np.eye(d)[-1],
         "two entries": (np.eye(d)[0] - np.eye(d)[-1]) / math.sqrt(2)}[kind]
    law = PrivUnit.make(epsilon, d, candidates)
    means, errors, biases = means_of(law, x, 8000, seed=3)
    assert np.square((means - x) / errors).sum() < stats.chi2.isf(ALPHA, d)
    length = np.linalg.norm(x)
    along, error = means @ x / length, math.sqrt(np.square(errors * x / length).sum())
    assert abs(along - length) < 4.9 * error + biases[0]
    if kind != "short":
        assert abs(along - 1.3 * length) > 4.9 * error + biases[0]


# ---------------------------------------------------------------- few users


@pytest.mark.ci
@pytest.mark.parametrize(("d", "epsilon", "n", "length"), [
    (1, 4.0, 20, 0.99), (1, 10.0, 5, 0.75), (1, 10.0, 200, 0.99), (2, 10.0, 5, 0.75), (16, 10.0, 5, 0.75),
])
def test_intervals_of_few_reports_cover(d, epsilon, n, length):
    """At least 90 % of 300 intervals of 95 % (binomial, alpha = 1e-6); the spread of reports alone is rejected."""
    law, repetitions = PrivUnit.make(epsilon, d, 256), 300
    x = length * np.eye(d)[0]
    z = law.candidates_of(reports_of(law, codes_of(x, n * repetitions), seed=5)).astype(np.int64)
    covered, seen = 0, 0
    for part in z.reshape(repetitions, n, d):
        means, errors, biases = law.means(np.concatenate([[n], part.sum(axis=0), np.square(part).sum(axis=0)]))
        reach = stats.t.isf(0.025, n - 1)
        covered += abs(means[0] - length) <= reach * errors[0] + biases[0]
        seen += abs(means[0] - length) <= reach * part[:, 0].std(ddof=1) * law.scale[0] / math.sqrt(n) + biases[0]
        assert (errors >= math.sqrt(law.least_noise / n)).all()
    assert covered >= stats.binom.ppf(ALPHA, repetitions, 0.9) > seen


@pytest.mark.ci
@pytest.mark.parametrize(("d", "epsilon"), [(1, 0.5), (1, 8.0), (2, 1.0), (3, 4.0), (16, 2.0), (63, 0.5), (300, 4.0)])
def test_no_vector_has_less_noise_than_the_least(d, epsilon):
    """Full vectors along an axis (n = 8,000, alpha = 1e-6 for each mean square); 0.8 of it is what there is at most."""
    law, n = PrivUnit.make(epsilon, d, 512), 8000
    squares = np.square(law.decode(reports_of(law, codes_of(np.eye(d)[0], n), seed=4))[:, : min(d, 2)])
    noise, error = squares.mean(axis=0) - np.eye(d)[0, :2], 4.9 * squares.std(axis=0) / math.sqrt(n)
    assert (law.least_noise <= noise + error + 1e-3 * law.least_noise).all()
    assert law.least_noise > 0.8 * (noise - error).min()
    if d == 1:
        assert law.least_noise == pytest.approx((law.scale[0] * law.length) ** 2 - 1)


# ---------------------------------------------------------------- the face


def test_rows_are_vectors_around_a_center():
    rng = np.random.default_rng(0)
    center = np.array([10.0, -5.0, 3.0])
    X = center + rng.normal(size=(30_000, 3)) * [0.5, 0.1, 2.0]
    est = MeanEstimator(PrivUnitTransformer(4.0, radius=1.5, center=center, random_state=0)).fit(X)
    offset = X - center
    clipped = center + offset / np.maximum(np.linalg.norm(offset, axis=1, keepdims=True) / 1.5, 1)
    assert (np.abs(est.mean_ - clipped.mean(axis=0)) < 5 * est.standard_error_).all()
    client = est.transformer_
    assert np.array_equal(client.center_, center)
    assert client.radius_ == 1.5
    assert np.allclose(client.bounds_, [center - 1.5, center + 1.5])
    assert est.n_features_in_ == 3
    assert est.privacy_.epsilon == 4
    again = pickle.loads(pickle.dumps(est))
    assert np.array_equal(again.mean_, est.mean_)
    assert again._columns.same_law(est._columns)
    half = MeanEstimator(PrivUnitTransformer(4.0, radius=1.5, center=center, random_state=1)).fit(X[:99])
    assert half.merge(est).n_users_ == 30_099
    other = MeanEstimator(PrivUnitTransformer(4.0, radius=2.0, center=center, random_state=2)).fit(X[:99])
    with pytest.raises(ValueError, match="must have the same epsilon, the same radius and center and the same param"):
        half.merge(other)


def test_transform_returns_one_vector_a_user():
    X = np.random.default_rng(0).normal(0, 0.1, (20_000, 4))
    t = PrivUnitTransformer(8.0, random_state=0).fit(X)
    out = t.transform(X)
    assert out.shape == X.shape
    assert (np.abs(out.mean(axis=0) - X.mean(axis=0)) < 5 * out.std(axis=0) / math.sqrt(len(X))).all()
    assert t.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3"]
    assert np.array_equal(t.set_params(n_jobs=2).transform(X), out)


def test_reports_need_a_known_number_of_columns():
    t = PrivUnitTransformer(1.0, center=[0.0, 0.0], random_state=0)
    reports = t.privatize([[0.1, 0.2]] * 5)
    assert t.decode(reports).shape == (5, 2)
    assert MeanEstimator(t).aggregate(reports).n_users_ == 5
    for reader in (PrivUnitTransformer(1.0).decode, MeanEstimator(PrivUnitTransformer(1.0)).aggregate):
        with pytest.raises(ValueError, match="center must be declared"):
            reader(reports)
    reports[3, 1] = 2048
    with pytest.raises(ValueError, match="must be below 2048"):
        t.decode(reports)
    with pytest.raises(ValueError, match="at most 65,536 columns"):
        PrivUnit(1.0, (1 << 16) + 1)


def test_a_radius_that_was_learned_protects_nothing():
    with pytest.warns(PrivacyLeakWarning, match="radius"):
        t = PrivUnitTransformer(1.0, radius=None).fit([[3.0, 4.0], [0.0, 1.0]])
    assert t.radius_ == 5
    assert t.privacy_.epsilon == math.inf


def test_one_report_has_no_standard_error_and_distributions_are_refused():
    est = MeanEstimator(PrivUnitTransformer(1.0, random_state=0)).fit([[0.1, 0.2]])
    assert np.isnan(est.standard_error_).all()
    assert np.isfinite(est.mean_).all()
    with pytest.raises(ValueError, match="MeanEstimator"):
        DistributionEstimator(PrivUnitTransformer(1.0, random_state=0)).fit([[0.1, 0.2]] * 9)


def test_a_vector_has_less_noise_than_its_columns_have():
    """Where vectors, not columns, are bounded: the reason to be."""
    X = np.random.default_rng(0).normal(size=(2000, 8))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    ours = MeanEstimator(PrivUnitTransformer(2.0, random_state=0)).fit(X)
    split = MeanEstimator(PMTransformer(2.0, bounds=(-1.0, 1.0), grid=256, random_state=0)).fit(X)
    assert 5 * np.square(ours.standard_error_).sum() < np.square(split.standard_error_).sum()


def test_third_parties_can_check_it():
    assert len(check_mechanism(PrivUnitTransformer(1.0, center=[0.0], candidates=8))) > 10
    with pytest.raises(ValueError, match="8 candidates"):
        check_mechanism(PrivUnitTransformer(1.0))


@pytest.mark.parametrize(("d", "epsilon"), [(3, 4.0), (65, 12.0)])
def test_the_mean_square_of_a_number_counts_what_padding_does(d, epsilon):
    """65 numbers are padded to 256; without that in mind the mean square would be an eighth less."""
    rows = np.random.default_rng(2).standard_normal((4000, d))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    est = PrivUnitTransformer(epsilon, random_state=3)
    numbers = est.fit_transform(rows)
    assert est.randomizer().even_variance() == pytest.approx(np.square(numbers).mean(), rel=0.015)
