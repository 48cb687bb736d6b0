"""Ranges from trees of reports: exact variances, intervals that cover, and what is refused."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from dpestim.collection import Survey
from dpestim.inputs import Domain, Numbers
from dpestim.local import RangeEstimator
from dpestim.local.categories.grr import GRR
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.categories.pgr import PGR
from dpestim.local.domains.levels import best_fanouts, best_method, mean_variance
from dpestim.local.domains.signs import HaarSign
from dpestim.local.domains.waves import Wave
from dpestim.postprocessing import trees
from dpestim.postprocessing.trees import even_fanouts, fanouts_of
from dpestim.privacy.config import config_context
from dpestim.rng import WordSource

SIZE = 64


def zipf(n, seed=0):
    return (np.minimum(np.random.default_rng(seed).zipf(1.4, n), SIZE) - 1.0)[:, None]


def estimator(epsilon=1.0, **more):
    return RangeEstimator(epsilon, bounds=([0.0], [float(SIZE)]), n_bins=SIZE, n_jobs=1, **more)


@pytest.mark.parametrize("law", [GRR.make(1.0, 7), PGR.make(1.0, 7), PGR.make(2.0, 50), PGR.make(5.0, 30, 4)])
def test_numbers_of_a_sum_are_those_of_the_estimates(law):
    rng = np.random.default_rng(0)
    counts, weights = rng.integers(0, 50, law.n_counts), rng.normal(size=law.n_categories)
    n = counts.sum()
    numbers = law.numbers_of_sum(weights)
    assert counts @ numbers / n == pytest.approx(weights @ law.estimate(counts, n))
    np.testing.assert_allclose(law.mean_of(numbers), weights, atol=1e-12)  # no bias
    np.testing.assert_allclose(law.mean_of(numbers**2), CategoricalRandomizer.mean_of(law, numbers**2), rtol=1e-9)


@pytest.mark.parametrize("size", [2, 8, 32])
def test_signs_of_haar_coefficients(size):
    """The kernel draws by the matrix, and all numbers that follow are those of the matrix."""
    law, rng, n = HaarSign.make(1.3, size), np.random.default_rng(0), 60_000
    exact = law.transition_matrix()
    assert all(sum(row) == 1 for row in exact)
    assert law.worst_ratio() == max(max(column) / min(column) for column in zip(*exact)) <= np.exp(1.3)
    matrix, weights, counts = np.array(exact, float), rng.normal(size=size), rng.integers(0, 50, size)
    numbers = law.numbers_of_sum(weights)
    np.testing.assert_allclose(matrix @ numbers, law.truth(weights), atol=1e-12)
    assert counts @ numbers / counts.sum() == pytest.approx(weights @ law.estimate(counts, counts.sum()))
    np.testing.assert_allclose(law.squares_of_sum(weights), matrix @ numbers**2)
    np.testing.assert_allclose(law.mean_of(numbers), matrix @ numbers, atol=1e-12)
    symbols = np.arange(size, dtype=law.report_dtype)[:, None]
    np.testing.assert_array_equal(law.supporters(counts), law.support(symbols).T.astype(int) @ counts)
    codes, out = rng.integers(0, size, n).astype(law.code_dtype), np.empty((n, 1), law.report_dtype)
    law.privatize(codes, WordSource(3).reader().words(0, 0, 0, n), out)
    expected = np.bincount(codes, minlength=size)[:, None] * matrix
    seen = np.zeros((size, size))
    np.add.at(seen, (codes, out[:, 0]), 1)
    freedom = size * (size - 1)
    assert abs(((seen - expected) ** 2 / expected).sum() - freedom) < 5 * np.sqrt(2 * freedom)
    with pytest.raises(ValueError, match="power of two"):
        HaarSign.make(1.0, 6)


def test_the_method_is_that_of_the_least_variance():
    assert [best_method(epsilon, 64) for epsilon in (0.25, 0.5, 1, 4)] == ["haar", "haar", "hierarchy", "hierarchy"]
    est = RangeEstimator(0.5, bounds=([0, 0], [8, 1]), n_bins=8, random_state=0).fit(np.zeros((9, 2)))
    assert est.methods_ == ["haar", "haar"]
    assert est.fanouts_ == [(2, 2, 2)] * 2
    for wrong in ({"method": "haar", "branching": 2}, {"method": "square_wave", "branching": 3}):
        with pytest.raises(ValueError, match="branching must be 'auto'"):
            estimator(**wrong).fit(zipf(10))


@pytest.mark.ci
def test_a_square_wave_tells_ranges_and_quantiles():
    """A smooth column and one of few values, of which each user reports one; intervals hold for both."""
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.gamma(4.0, 4.0, 40_000).clip(0, 63.9), rng.choice([0.5, 1.5, 6.5], 40_000)])
    est = RangeEstimator(2.0, bounds=([0.0, 0.0], [64.0, 8.0]), n_bins=8, method="square_wave", random_state=0).fit(X)
    assert est.methods_ == ["square_wave"] * 2
    assert est.fanouts_ == [(8,)] * 2
    for column, asked in enumerate(([(0, 8), (8, 24), (24, 64)], [(0, 1), (1, 2), (2, 6), (6, 7)])):
        for low, high in asked:
            right = ((X[:, column] >= low) & (X[:, column] < high)).mean()
            share, error = est.range(low, high, column)
            first, last = est.confidence_interval(low, high, column=column)
            assert first <= right <= last, (low, high)
            assert abs(share - right) < 4 * error + 0.01
    low, high = est.quantile_interval(0.5)[0]
    assert low <= np.median(X[:, 0]) <= high
    first, last = est.confidence_interval(7, 25)  # (parts of values: any)
    assert first < est.confidence_interval(8, 24)[1] < last
    assert est.range(0, 64) == (1.0, 0.0)
    assert est.frequencies_[1][[2, 3, 4]].max() < 0.05
    nobody = Wave(est.randomizers_[0], np.zeros(est.randomizers_[0].n_counts), 0, 8)
    assert nobody.interval(1, 2, 2.0) == (0.0, 1.0)
    assert nobody.range(1, 2)[0] == pytest.approx(1 / 8)
    with pytest.raises(ValueError, match="square_wave"):
        RangeEstimator(bounds=Domain({"x": Numbers(0, 1, missing=True)}), method="square_wave").fit(X[:, :1])


@pytest.mark.ci
@pytest.mark.parametrize(("method", "epsilon"), [("hierarchy", 1.0), ("hierarchy", 6.0), ("hio", 3.0), ("haar", 2.0)])
def test_errors_are_those_of_theory(method, epsilon):
    """The mean of squares over R seeds is within 5 standard deviations of the square of what is stated."""
    X, seeds = zipf(600), 150
    asked = [(0, 1), (3, 40), (10, 11), (33, 64)]
    right = np.array([((a <= X) & (b > X)).mean() for a, b in asked])
    found = []
    for seed in range(seeds):
        est = estimator(epsilon, method=method, random_state=seed).fit(X)
        found.append([(*est.range(a, b), *est.confidence_interval(a, b)) for a, b in asked])
    shares, errors, low, high = np.moveaxis(np.array(found), -1, 0)
    ratio = ((shares - right) ** 2).mean(axis=0) / (errors**2).mean(axis=0)
    assert (np.abs(ratio - 1) < 5 * np.sqrt(2 / seeds)).all(), ratio
    assert (np.abs(shares.mean(axis=0) - right) < 5 * errors.mean(axis=0) / np.sqrt(seeds)).all()
    covered = ((low <= right) & (right <= high)).mean()
    # (ranges of one run go together: as if half of them were independent)
    assert abs(covered - 0.95) < 3.5 * np.sqrt(0.05 * 0.95 / (2 * seeds)), covered


def test_the_average_over_all_ranges_is_what_branching_is_chosen_by():
    n, size = 40_000, 16
    X = (np.arange(n) % size)[:, None] + 0.5
    for method, branching, epsilon in (("hierarchy", "auto", 5.0), ("hierarchy", 2, 1.0), ("haar", "auto", 1.0)):
        est = RangeEstimator(epsilon, bounds=([0.0], [float(size)]), n_bins=size, method=method, branching=branching,
                             random_state=0).fit(X)
        stated = mean_variance(est._columns.laws[0].epsilon, size, est.fanouts_[0], method) / n
        ranges = [(a, b) for a in range(size) for b in range(a + 1, size + 1)]
        errors = np.mean([est.range(a, b).standard_error ** 2 for a, b in ranges])
        assert errors == pytest.approx(stated, rel=0.06), (method, branching)


def test_fanouts():
    assert fanouts_of(100, 4) == (2, 4, 4, 4)
    assert fanouts_of(64, 4) == (4, 4, 4)
    assert fanouts_of(3, 4) == (3,)
    assert fanouts_of(4, 4) == (4,)
    for size in (2, 3, 17, 100, 1000):
        for height in range(1, 6):
            assert np.prod(even_fanouts(size, height)) >= size
    best = best_fanouts(1, 256, "hierarchy")
    others = [fanouts_of(256, b) for b in (2, 3, 4, 8, 16, 256)]
    assert min(mean_variance(1, 256, own, "hierarchy") for own in others) >= 0.99 * mean_variance(1, 256, best,
                                                                                                "hierarchy")
    assert best_fanouts(1, 256, "hio") != (2,) * 8
    fanouts, n = (3, 2, 4), 22
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n + 1)]
    covers = np.mean([[level.sum() for level in trees.cover_weights(fanouts, a, b)] for a, b in pairs], axis=0)
    np.testing.assert_allclose(trees.mean_cover(fanouts, n), covers)


def test_shares_of_ranges_and_quantiles_are_right():
    X = np.random.default_rng(1).gamma(4.0, 4.0, (200_000, 1))
    est = estimator(3.0, random_state=0).fit(X)
    for low, high in ((3, 9), (0, 64), (2.5, 2.75), (-5, 100), (63, 64), (7, 7)):
        share, error = est.range(low, high)
        assert abs(share - ((X.clip(0, 63.9) >= low) & (X.clip(0, 63.9) < high)).mean()) < 5 * error + 1e-3
    assert est.range(0, 64) == (1.0, 0.0)
    assert est.cdf(20)[0] == est.range(0, 20)[0]
    assert est.frequencies_[0].sum() == pytest.approx(1)
    assert est.frequencies_[0][5] == pytest.approx(est.range(5, 6)[0])
    q = [0.0, 0.1, 0.5, 0.9]
    assert np.abs(est.quantile(q)[1:, 0] - np.quantile(X, q)[1:]).max() < 0.5
    ends = est.quantile_interval(q)
    assert ends.shape == (4, 1, 2)
    assert (ends[1:, 0, 0] <= np.quantile(X, q)[1:]).all()
    assert est.quantile(0.5).shape == (1,)
    assert est.quantile_interval(0.5).shape == (1, 2)


@pytest.mark.ci
@pytest.mark.parametrize("method", ["hio", "haar"])
def test_intervals_of_quantiles_cover_where_noise_is_larger_than_shares(method):
    held, rng = 0, np.random.default_rng(4)
    for seed in range(30):
        x = np.minimum(rng.zipf(1.4, 300), 32) - 1
        est = RangeEstimator(0.3, bounds=(0, 32), n_bins=32, method=method, random_state=seed).fit(x[:, None] + 0.5)
        low, high = est.quantile_interval(0.1)[0]
        held += low <= 0.1 / np.mean(x == 0) <= high
    assert held >= 25  # (of 30 with probability 0.95 each: fewer in one of 300 such tests)


def test_categories_frames_and_names():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.choice(["S", "M", "L"], 60_000, p=[0.5, 0.3, 0.2]),
                          "age": rng.uniform(0, 100, 60_000)})
    est = RangeEstimator(4.0, categories={"size": ["S", "M", "L"]}, bounds={"age": (0, 100)}, n_bins=20,
                         random_state=0).fit(frame)
    assert abs(est.range("S", "M", "size")[0] - 0.8) < 0.05
    assert abs(est.range(0, 50, "age")[0] - 0.5) < 0.05
    assert est.quantile(0.5).tolist()[0] in ("S", "M")
    assert est.quantile_interval(0.9).shape == (2, 2)
    shown = est.result_.to_frame()
    assert shown.groupby("feature").size().to_dict() == {"size": 3, "age": 16}
    assert np.isfinite(shown[["value", "standard_error"]].to_numpy(float)).all()
    domain = Domain({"age": Numbers(0, 100), "size": ["S", "M", "L"]})
    both = RangeEstimator(4.0, bounds=domain, n_bins=20, random_state=0).fit(frame[["age", "size"]])
    assert abs(both.range("L", "L", "size")[0] - 0.2) < 0.05
    twin = pickle.loads(pickle.dumps(est))
    assert twin.range(0, 50, 1) == est.range(0, 50, 1)
    assert clone(est).get_params() == est.get_params()
    with pytest.raises(ValueError, match="categories of the column"):
        est.range("S", "XL", "size")
    with pytest.raises(ValueError, match="must not come after"):
        est.range("L", "S", "size")


def test_missing_numbers_are_behind_the_bins():
    pd = pytest.importorskip("pandas")
    x = np.random.default_rng(0).uniform(0, 1, 100_000)
    frame = pd.DataFrame({"x": np.where(np.random.default_rng(1).random(len(x)) < 0.3, np.nan, x)})
    est = RangeEstimator(4.0, bounds=Domain({"x": Numbers(0, 1, missing=True)}), n_bins=31, random_state=0).fit(frame)
    share, error = est.range(0, 1)
    assert abs(share - 0.7) < 0.02
    assert error > 0
    assert abs(est.quantile(0.5)[0] - 0.5) < 0.02
    low, high = est.quantile_interval(0.5)[0]
    assert low < 0.5 < high
    assert est.frequencies_[0].shape == (32,)
    assert abs(est.frequencies_[0][-1] - 0.3) < 0.02


def test_what_is_refused():
    for wrong in ({"method": "tree"}, {"branching": 1}, {"branching": "best"}, {"n_bins": 1}, {"n_bins": 1 << 21}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            estimator(**{k: v for k, v in wrong.items() if k != "n_bins"}).set_params(**wrong).fit(zipf(10))
    est = estimator(random_state=0).fit(zipf(100))
    for low, high in ((2, 1), ("a", 3), (float("nan"), 1)):
        with pytest.raises(ValueError, match="low"):
            est.range(low, high)
    for column in (1, "x", True):
        with pytest.raises(ValueError, match="column must be"):
            est.range(0, 1, column)
    for wrong in (-0.1, 2, [[0.5]], float("nan")):
        with pytest.raises(ValueError, match="q must be"):
            est.quantile(wrong)
    with config_context(strict=True):
        assert estimator(random_state=0).fit(np.array([[1.0], [np.nan]])).n_users_ == 2


def test_levels_that_nobody_reported():
    est = estimator(random_state=3, branching=2).fit(zipf(3))
    share, error = est.range(0, 10)
    assert np.isfinite([share, error, *est.confidence_interval(0, 10), *est.quantile_interval(0.5)[0]]).all()
    assert error > 0.3


def test_surveys_of_one_pair_of_bounds_are_of_the_columns_that_were_seen():
    est = RangeEstimator(2.0, bounds=(0, 8), n_bins=8, random_state=0).fit(zipf(50) % 8)
    survey = Survey(est, name="waiting times")
    again = Survey.from_json(survey.to_json()).server()
    assert again.aggregate(survey.client(random_state=0).privatize(zipf(50) % 8)).n_users_ == 50
