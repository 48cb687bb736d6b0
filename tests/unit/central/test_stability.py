"""Local sensitivity: A(k) against brute force, costs of noise, deltas, errors beside global noise."""

import itertools
import math
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.central import ProposeTestRelease, SampleAndAggregate, SmoothSensitivity, StableRelease
from dpestim.central.stability.distance_test import least_threshold, passes
from dpestim.central.stability.grid import ClippedGrid, grids
from dpestim.central.stability.heavy import NOISES, heavy_noise
from dpestim.central.stability.rehearsal import rehearse
from dpestim.central.stability.stable_release import leader
from dpestim.central.stability.statistics import NEVER, WHOLE, Declared, Stretch, smooth_weights
from dpestim.exact_reals import BitStream
from dpestim.privacy.exact import exp_lower, exp_upper
from dpestim.rng import WordSource

ALPHA = 1e-6
HALF = Fraction(1, 2)

# ---------------------------------------------------------------- A(k), smooth maxima and distances


def brute(n, values, stretch):
    """Return {data: [A(0), ..., A(n)]} over all sorted data on a grid, by nothing but the definition."""
    data = list(itertools.combinations_with_replacement(range(values), n))
    f = {x: Fraction(sum(x[stretch.first - 1 : stretch.last]), stretch.last - stretch.first + 1) for x in data}
    near = {x: {tuple(sorted((*x[:i], v, *x[i + 1 :]))) for i in range(n) for v in range(values)} for x in data}
    levels = {x: [max(abs(f[x] - f[y]) for y in near[x])] for x in data}
    for _ in range(n):
        last = {x: a[-1] for x, a in levels.items()}
        for x in data:
            levels[x].append(max(last[y] for y in near[x]))
    return levels


@pytest.mark.parametrize(("n", "values", "first", "last"), [
    (1, 4, 1, 1), (2, 4, 1, 1), (5, 3, 3, 3), (6, 3, 3, 3), (4, 4, 4, 4), (4, 4, 1, 1), (5, 3, 2, 4), (6, 3, 2, 5),
    (3, 4, 1, 3), (5, 3, 2, 5),
])
def test_what_records_can_move_is_what_they_can(n, values, first, last):
    stretch, grid = Stretch(first, last), ClippedGrid(0, values - 1, 0)
    weights = smooth_weights(Fraction(3, 2), n)
    for x, levels in brute(n, values, stretch).items():
        column = np.random.default_rng(0).permutation(x)
        seen = stretch.look(column, grid, len(weights))
        assert seen.value == Fraction(sum(x[first - 1 : last]), last - first + 1)
        assert seen.smooth(weights) == max(a * w for a, w in zip(levels, weights)) / WHOLE
        for bound in (0, HALF, 1, values - 2):
            least = next((k for k, a in enumerate(levels) if a > bound), None)
            found = stretch.look(column, grid, n).distance(Fraction(bound))
            assert found == (NEVER if least is None else least)


def test_little_is_sorted_and_the_maximum_is_still_exact():
    rng = np.random.default_rng(1)
    for ratio, n in ((Fraction(11, 10), 300), (Fraction(5, 4), 400), (Fraction(1001, 1000), 90)):
        for x in (rng.integers(0, 1000, n), np.repeat([3, 990], n // 2), rng.integers(0, 3, n) * 400,
                  np.arange(n) * 2):
            grid, n, m = ClippedGrid(0, 1000, 0), len(x), len(x) // 2
            weights = smooth_weights(ratio, n)
            padded = np.r_[np.zeros(n + 1, int), np.sort(x), np.full(n + 1, 1000)]
            at = n + m  # where number m is
            want = 0
            for k in range(n + 1):
                b = np.arange(k + 2)
                most = int((padded[at + b] - padded[at + b - k - 1]).max())
                want = max(want, most * weights[min(k, len(weights) - 1)])
            assert Stretch(m, m).look(x, grid, len(weights)).smooth(weights) == Fraction(want, WHOLE)


def test_weights_fall_no_faster_than_they_may():
    for beta in (Fraction(1, 2), Fraction(1, 1000), Fraction(1, 10**25)):
        ratio = heavy_noise("cauchy", 2 * beta, Fraction(0), HALF).ratio
        assert 1 <= ratio <= exp_lower(beta)
        weights = smooth_weights(ratio, 3000)
        assert weights[0] == WHOLE
        assert all(0 < following <= w <= ratio * following for w, following in itertools.pairwise(weights))
        assert len(weights) in ((1,) if ratio == 1 else (3001, *range(64, 100)))  # 2^60 is e^41.6


def test_a_statistic_of_the_user_is_cut_and_made_to_rise():
    grid = ClippedGrid(0, 100, -1)
    seen = Declared(lambda x, low, high: (x[-1] + 1000, [1, 0.5, math.inf])).look(np.array([4, 2]), grid, 9)
    assert (seen.value, seen._steps) == (100, [2, 2, 100])
    assert (seen.distance(2), seen.distance(1)) == (2, 0)
    assert seen.smooth([WHOLE, WHOLE // 2, WHOLE // 4]) == 25
    flat = Declared(lambda x, low, high: (0, [0])).look(np.array([4, 2]), grid, 9)
    assert flat.smooth([WHOLE, 1]) == 1  # never no noise
    assert flat.distance(0) == NEVER


@pytest.mark.parametrize("said", [None, 1, (1, 2), (math.nan, [1]), (1, []), (1, [-1]), ("1", [1]), (1, [math.nan])])
def test_a_statistic_of_the_user_that_fails(said):
    data = np.array([0.25, 0.5])
    est = SmoothSensitivity(1.0, bounds=(0, 1), statistic=lambda x, low, high: said)
    with pytest.raises(ValueError, match="statistic must return"):
        est.release(data)
    with config_context(strict=True), pytest.raises(ValueError, match="statistic must be a name in strict mode"):
        est.release(data)


def test_memory_that_a_value_asks_for_is_a_failure_like_another():
    def greedy(x, *ends):
        if np.max(x) > 1.5:
            raise MemoryError("Unable to allocate 2 bytes")
        return (0.5, [1]) if ends else 0.5

    data = np.array([0.25, 2.0] * 50)
    with pytest.raises(ValueError, match="statistic must return") as caught:
        SmoothSensitivity(1.0, bounds=(0, 2), statistic=greedy).release(data)
    assert caught.value.__cause__ is caught.value.__context__ is None
    with pytest.warns(UserWarning, match="failed on .* MemoryError"):
        SampleAndAggregate(1.0, function=greedy, bounds=(0, 2)).release(data.reshape(-1, 1))
    with config_context(strict=True):
        SampleAndAggregate(1.0, function=greedy, bounds=(0, 2)).release(data.reshape(-1, 1))


def test_the_last_number_of_a_user_holds_for_all_further_records():
    """A scale of the stated sensitivity, however few the rows: a floor that depends on n would be 79 times as much."""
    est = SmoothSensitivity(0.1, bounds=(0.0, 1e4), statistic=lambda x, low, high: (5000.0, [1.0]))
    for n in (2, 100, 2000):
        plan = est._plan(1)
        ((_, scale),), (grid,) = est._look(est.summarize(np.zeros(n)).totals, plan), plan["grids"]
        assert grid.number(scale) == pytest.approx(20)


def test_a_median_by_the_user_is_the_median():
    def median(x, low, high):
        n, m = len(x), (len(x) + 1) // 2
        padded = np.r_[[low] * (n + 1), x, [high] * (n + 1)]
        at = n + m
        return x[m - 1], [max(padded[at + b] - padded[at + b - k - 1] for b in range(k + 2)) for k in range(n + 1)]

    x = np.random.default_rng(0).uniform(-1, 2, 30)
    one, two = (SmoothSensitivity(1.0, bounds=(-1, 2), statistic=s, random_state=0).release(x)
                for s in ("median", median))
    assert one == two
    assert "statistic" in str(SmoothSensitivity(1.0, bounds=(-1, 2), statistic=median).privacy_)


# ---------------------------------------------------------------- grids


def test_values_are_integers_between_the_bounds():
    (grid,) = grids((-3.0, 5.0), 1)
    assert (grid.width, grid.exponent) == (2**39, 4 - 40)
    assert grid.read([np.nan, np.inf, -np.inf, 1e308, -3.0, 5.0]).tolist() == [
        grid.middle, grid.high, grid.low, grid.high, grid.low, grid.high]
    (far,) = grids((2.0**60, 2.0**60 + 1024), 1)
    assert far.high < 2**53
    assert far.read([2.0**60 + 512]) == far.middle
    for bad in ((0, 1e300), (0, 2.0**-950), (1, 1), ([0, 1], [1, 2, 3])):
        with pytest.raises(ValueError, match="bounds"):
            grids(bad, 2)


# ---------------------------------------------------------------- noise


@pytest.mark.parametrize("name", NOISES)
def test_noise_costs_what_the_proof_says_and_no_less(name):
    law = heavy_noise(name, Fraction(1), Fraction(1, 1000) if name == "laplace" else Fraction(0), HALF)
    z = np.geomspace(1e-6, 1e9, 200_001)
    if name != "laplace":
        z = np.r_[-z[::-1], z]
    density = law.log_density(z)
    slope = np.abs(np.diff(density) / np.diff(z)).max()
    assert float(law.sliding) * 0.999 < slope <= float(law.sliding) * (1 + 1e-6)
    if name != "laplace":
        stretch = np.abs(law.log_density(z / 2) - math.log(2) - density).max()
        assert float(law.widening) * math.log(2) * 0.999 < stretch <= float(law.widening) * math.log(2) * (1 + 1e-9)
        assert law.sliding / law.multiplier + law.widening * law.beta == 1
    total = integrate.quad(lambda t: math.exp(law.log_density(np.float64(t))), 0, np.inf)[0]
    assert abs(total - 0.5) < 1e-9
    for t in (0.1, 1.0, 7.0):
        assert abs(2 * integrate.quad(lambda u: math.exp(law.log_density(np.float64(u))), t, np.inf)[0]
                   - law.beyond(t)) < 1e-9


@pytest.mark.law
@pytest.mark.parametrize(("epsilon", "delta", "share"), [(1, "1e-6", "0.5"), (10, "1e-3", "0.5"), (0.1, "0.01", "0.7")])
def test_delta_of_laplace_noise_is_enough_and_used(epsilon, delta, share):
    epsilon, delta, share = (Fraction(str(x)) for x in (epsilon, delta, share))
    law = heavy_noise("laplace", epsilon, delta, share)

    e = float(share * epsilon)
    far = (e + float(law.beta)) / math.expm1(float(law.beta))  # where the loss of the stretch reaches e
    most = math.exp(-far) - math.exp(e - far * math.exp(float(law.beta)))
    assert float(law.beta) <= e
    assert most <= float(delta) * (1 + 1e-9)
    assert most > 0.999 * float(delta) or law.beta > 0.999 * share * epsilon
    z = np.linspace(-60, 60, 2_000_001)
    r, s = math.exp(float(law.beta)), float(law.multiplier)
    p = np.exp(-np.abs(z)) / 2
    for shift in (0, 1 / s):  # of S' = 1 / r scales, and none
        q = np.exp(-np.abs(z * r - shift)) * r / 2
        for one, two in ((p, q), (q, p)):
            assert np.maximum(one - math.exp(float(epsilon)) * two, 0).sum() * (z[1] - z[0]) <= float(delta) * 1.001
    assert float(law.beta) > 0.9 * float(epsilon) / (2 * math.log(2 / float(delta)))  # the published one


@pytest.mark.parametrize("name", NOISES)
def test_results_are_the_rounded_real_sum(name):
    """One draw at finer and finer grids is one real number, seen ever more closely."""
    law = heavy_noise(name, Fraction(1), Fraction(1, 100), HALF)
    center, scale = Fraction(1, 3), Fraction(7, 5)
    for seed in range(40):
        seen = [Fraction(law.nearest(center * 2**k, scale * 2**k, ClippedGrid(-(2**90), 2**90, 0),
                                     BitStream(WordSource(seed).reader(), 0, 0)), 2**k) for k in (0, 5, 20, 45)]
        for k, one in zip((0, 5, 20), seen):
            assert abs(one - seen[-1]) <= Fraction(1, 2 ** (k + 1)) + Fraction(1, 2**46)


# ---------------------------------------------------------------- propose, test, release


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), (0.01, "1e-9"), (5, "0.3"), (2, "0.9"), (40, "1e-300")])
def test_the_threshold_is_the_least_that_is_private(epsilon, delta):
    epsilon, delta = Fraction(str(epsilon)), Fraction(delta)
    threshold = least_threshold(epsilon, delta)
    a = math.exp(-float(epsilon))
    assert a**threshold / (1 + a) <= float(delta) * (1 + 1e-12)
    assert threshold == 1 or a ** (threshold - 1) / (1 + a) > float(delta)
    if epsilon == 1:
        published = math.ceil(math.log(2e6) / 2)  # sqrt(delta / 8), about, for real noise
        assert 1e-4 < passes(0, published, 1.0) < 1e-3
        assert passes(0, threshold, 1.0) <= 1e-6


@pytest.mark.parametrize("epsilon", ["1e-20", "1e-30", "1e-300"])
def test_a_threshold_of_a_tiny_epsilon_is_found_and_exact(epsilon):
    epsilon, delta = Fraction(epsilon), Fraction(1, 10**6)
    threshold, most = least_threshold(epsilon, delta), delta * (1 + exp_lower(-epsilon))
    assert exp_upper(-epsilon * threshold) <= most < exp_upper(-epsilon * (threshold - 1))


def test_what_is_asked_of_a_test_is_looked_at_first():
    est = StableRelease(1.0, delta=1e-6, candidates=["a", "b"])
    for bad in (0, -1, 1.5, True, None, "a"):
        for ask in (est.threshold, lambda n: est.refusal_rate(3, n)):
            with pytest.raises(ValueError, match="n_columns"):
                ask(bad)
    for bad in (math.nan, "a", -1, None):
        with pytest.raises(ValueError, match="distance"):
            est.refusal_rate(bad)
    assert est.refusal_rate(math.inf) == 0
    with pytest.raises(ValueError, match="epsilon is too small"):
        SmoothSensitivity(1e-300, noise="laplace", delta=1e-6, bounds=(0, 1)).release([0.5])
    with pytest.raises(ValueError, match="delta must be declared"):
        SmoothSensitivity(1.0, noise="laplace", bounds=(0, 1)).release([0.5])


def test_a_flat_list_is_a_column():
    for est, column in ((SmoothSensitivity(1.0, bounds=(0, 1), random_state=0), [0.25, 0.5, 0.5]),
                        (StableRelease(4.0, delta=0.1, candidates=["a", "b"], random_state=0), ["a"] * 9)):
        assert est.release(column) == est.release(np.array(column))
        assert not isinstance(est.release(column), list | np.ndarray)


def test_refusals_are_as_frequent_as_stated():
    est = ProposeTestRelease(2.0, delta=1e-3, proposed_bound=0.5, bounds=(0.0, 10.0))
    threshold = est.threshold()
    assert est.refusal_rate(threshold) < 0.5 < est.refusal_rate(threshold - 1)
    n, column = 600, np.full(2 * threshold, 5.0)  # 5 everywhere, at a distance of threshold - 1
    (_, distance), = est._look(est.summarize(column).totals, est._plan(1))
    assert distance == threshold - 1
    refused = [est.set_params(random_state=k).release(column) is None for k in range(n)]
    z = (np.mean(refused) - est.refusal_rate(distance)) / math.sqrt(0.25 / n)
    assert abs(z) < 5  # alpha = 6e-7
    assert abs(np.mean(refused) - est.refusal_rate(distance + 1)) > 5 * math.sqrt(0.25 / n)  # nor another distance


def test_a_stable_answer_is_exact():
    est = ProposeTestRelease(1.0, delta=1e-6, proposed_bound=0, bounds=(0.0, 10.0), random_state=0)
    column = np.full(200, 7.5)
    assert est.release(column) == 7.5
    assert est.release(np.r_[column[:100], np.zeros(99)]) is None
    assert est.fit(np.column_stack([column, np.linspace(0, 10, 200)])).value_ == [7.5, None]
    with pytest.raises(ValueError, match="proposed_bound"):
        est.set_params(proposed_bound=1e-13).release(column)


# ---------------------------------------------------------------- sample and aggregate


@pytest.mark.parametrize("neighbours", ["substitution", "add_remove"])
def test_blocks_are_of_words_alone(neighbours):
    est = SampleAndAggregate(1.0, bounds=(0, 1), n_blocks=7, neighbours=neighbours)
    one, two = (est._blocks(np.full((1000, 1), value), WordSource(3)) for value in (0.0, 5.0))
    assert np.array_equal(one, two)
    sizes = np.bincount(one, minlength=7)
    if neighbours == "substitution":
        assert sizes.max() - sizes.min() <= 1
    else:  # each row by its own word: one more row at the end moves none
        assert np.array_equal(est._blocks(np.zeros((1001, 1)), WordSource(3))[:-1], one)
        assert sizes.min() > 90
        assert sizes.max() < 200
    assert not np.array_equal(est._blocks(np.zeros((1000, 1)), WordSource(4)), one)


@pytest.mark.filterwarnings("ignore:the function failed")  # (blocks without rows)
def test_one_row_more_is_as_private_as_one_row_replaced():
    """Over all assignments of positions to blocks, each equally likely: the exact law of the mean of two blocks."""
    values, places = (0.0, 0.5, 1.0), np.linspace(-3, 4, 701)

    class Given(SampleAndAggregate):
        def _blocks(self, rows, source):
            return np.array(self.given)

    def law(x):
        total = 0
        for given in itertools.product(range(2), repeat=len(x)):
            est = Given(1.0, function=np.max, bounds=(0.0, 1.0), n_blocks=2, neighbours="add_remove")
            est.given = given
            total = total + np.exp(est._outcomes(est.summarize(np.array(x)), places)[0]) / 2 ** len(x)
        return np.log(total)

    worst = 0
    for x in itertools.product(values, repeat=2):
        for value, at in itertools.product(values, range(3)):
            more = (*x[:at], value, *x[at:])
            worst = max(worst, np.abs(law(x) - law(more)).max())
    assert 0.4 < worst <= 1 + 1e-9


def test_an_estimator_is_fitted_to_each_block():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 2))
    y = X @ [1.0, -2.0] + rng.normal(size=4_000)
    est = SampleAndAggregate(8.0, function=LinearRegression(), attribute="coef_", n_blocks=100,
                             bounds=([-5.0, -5.0], [5.0, 5.0]), random_state=0)
    for aggregate in ("mean", "median"):
        assert np.abs(est.set_params(aggregate=aggregate).fit(X, y).value_ - [1, -2]).max() < 0.2
    whole = est.release(est.summarize(X, y))
    parts = est.summarize(X[:99], y[:99]).merge(est.summarize(X[99:], y[99:]))
    assert np.array_equal(est.release(parts), whole)
    with pytest.raises(ValueError, match="merge needs"):
        est.summarize(X, y).merge(est.summarize(X))
    for bad in (y[:5], np.where(y > 0, np.nan, y), ["a"] * len(y)):
        with pytest.raises(ValueError, match="y "):
            est.fit(X, bad)
    with pytest.raises(ValueError, match="attribute"):
        est.set_params(attribute=None).fit(X, y)


def of_positive(block):
    """Return a number for data between 1 and 2 only: on made-up rows it fails."""
    if block.min() > 1 and block.max() < 2:
        return block.mean()
    raise ValueError


def test_mistakes_that_are_public_cost_nothing():
    """Arguments, attributes and numbers of results are tried on made-up rows, before the charge; strict or not."""
    rng, ledger = np.random.default_rng(0), Ledger(10.0)
    X = rng.normal(size=(400, 3))
    y, label = X @ [1.0, -2.0, 0.5], (X[:, 0] > 0).astype(float)
    three = ([-5.0] * 3, [5.0] * 3)
    line, curve = LinearRegression(), LogisticRegression()
    for function, attribute, bounds, target, said in (
        (line, "coefs_", three, y, "must be an attribute of"), (line, "coef_", three, None, "y must be given"),
        (line, "coef_", (0, 1), y, "it returns 3"), (curve, "coef_", (0, 1), label, "it returns 3"),
        (PCA(), "noise", (0, 1), None, "must be an attribute of"), (lambda x: 1, None, (0, 1), y, "y must not be"),
        (lambda x: x.mean(axis=0), None, (0, 1), None, "it returns 3"), (lambda x: None, None, (0, 1), None, "nothing"),
        (lambda x, y: 1, None, (0, 1), None, "y must be"),
    ):
        est = SampleAndAggregate(1.0, function=function, attribute=attribute, bounds=bounds, ledger=ledger)
        for strict in (False, True):
            with config_context(strict=strict), pytest.raises(ValueError, match=said):
                est.fit(X, target)
    for too_many in (401, 1000):
        with pytest.raises(ValueError, match="n_blocks must be at most"):
            SampleAndAggregate(1.0, bounds=(0, 1), n_blocks=too_many, ledger=ledger).fit(X)
    with pytest.raises(ValueError, match="n_blocks must be given"):
        SampleAndAggregate(1.0, bounds=(0, 1), neighbours="add_remove", ledger=ledger).fit(X)
    assert ledger.spent().epsilon == 0


@pytest.mark.parametrize(("function", "attribute", "n_results"), [
    (LogisticRegression(), "coef_", 3), (LogisticRegression(), "coef_", 9), (LogisticRegression(), "classes_", 5),
    (GaussianNB(), "class_prior_", 40), (of_positive, None, 1), (lambda x, y: np.bincount(y.astype(int)), None, 7),
    (lambda x, y: x[:, 0], None, 20), (lambda x, y: np.log(-1 - y[0]) / 0, None, 3), (PCA(2), "components_", 6),
])
def test_what_may_work_on_data_is_not_refused(function, attribute, n_results):
    rehearse(function, attribute, 3, function is not of_positive, n_results)


def test_a_warning_that_is_an_error_costs_nothing():
    ledger = Ledger(10.0)
    est = SampleAndAggregate(1.0, function=of_positive, bounds=(0, 4), n_blocks=4, ledger=ledger, random_state=0)
    X = np.full((40, 1), 1.5)
    X[3] = 9.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=r"failed on 1 of 4 blocks.*first error: ValueError"):
            est.release(X)
    assert ledger.spent().epsilon == 0
    est.set_params(neighbours="add_remove", n_blocks=200, function=None)
    with pytest.warns(UserWarning, match=r"of 200 blocks.*first error: no rows"):
        est.release(X)
    assert ledger.spent().epsilon == 2  # an entry of add_remove, in a ledger of substitution


@pytest.mark.parametrize(("n", "blocks"), [(1, 1), (2, 2), (3, 2), (9, 3), (1000, 31), (20_000, 141)])
def test_blocks_are_as_many_as_the_root_of_rows(n, blocks):
    sizes = []
    est = SampleAndAggregate(1.0, function=lambda x: sizes.append(len(x)) or 0.0, bounds=(0, 1))
    est._run(np.zeros((n, 1)), 1, WordSource(0), float)
    assert (len(sizes), sum(sizes)) == (blocks, n)


@pytest.mark.parametrize("function", [lambda block: 1 / 0, lambda block: np.nan, lambda block: "a",
                                      lambda block: [1, 2] if block.max() == 0 else 1, lambda block: exit()])
def test_blocks_that_fail_are_in_the_middle(function):
    est = SampleAndAggregate(80.0, function=function, bounds=(2.0, 4.0), n_blocks=50, random_state=0)
    X = np.zeros((100, 1))
    with pytest.warns(UserWarning, match="failed on all of 50 blocks"):
        assert abs(est.release(X)[0] - 3) < 0.01
    with config_context(strict=True):
        assert abs(est.release(X)[0] - 3) < 0.01


def test_no_rows_are_an_answer_where_their_number_is_private():
    est = SampleAndAggregate(80.0, bounds=(2.0, 4.0), n_blocks=50, neighbours="add_remove", random_state=0)
    with config_context(strict=True):
        assert abs(est.release(np.zeros((0, 1)))[0] - 3) < 0.01
    with pytest.raises(ValueError, match="sample"):
        est.release(np.zeros((0, 1)))


# ---------------------------------------------------------------- stable answers


@pytest.mark.parametrize(("n", "m"), [(1, 2), (4, 2), (5, 3), (6, 3), (4, 4)])
def test_the_distance_of_a_leader_is_that_to_another_answer(n, m):
    """Against brute force: how many of n votes must be replaced until another candidate leads."""
    votes = list(itertools.combinations_with_replacement(range(m + 1), n))  # m: for none
    led = {x: leader(np.bincount(x, minlength=m + 1)[:m]) for x in votes}
    for x in votes:
        other = min(n - sum((Counter(x) & Counter(y)).values()) for y in votes if led[y][0] != led[x][0])
        top = x.count(led[x][0])
        assert led[x][1] + 1 == other or (top < other and led[x][1] + 1 <= other)
        for y in votes:
            if n - sum((Counter(x) & Counter(y)).values()) == 1:
                assert abs(led[x][1] - led[y][1]) <= 1 if led[x][0] == led[y][0] else led[x][1] == led[y][1] == 0


def test_a_stable_mode_of_words_and_of_blocks():
    words = np.array([["a", "x"]] * 60 + [["b", "y"]] * 30, dtype=object)
    est = StableRelease(4.0, delta=1e-4, candidates=["a", "b"], random_state=0).fit(words)
    assert est.value_ == ["a", None]  # nobody votes in the second column
    assert est.threshold(2) > est.threshold()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=3_000)

    def best(X, y):
        return ["first", "second"][int(np.argmax(np.abs(X.T @ y)))]

    blocks = StableRelease(1.0, delta=1e-6, candidates=["first", "second"], function=best, random_state=0)
    assert blocks.fit(X, y).value_ == ["first"]
    with config_context(strict=True):
        assert blocks.set_params(function=lambda X: "third").release(X) == [None]
        none = StableRelease(4.0, delta=1e-4, candidates=["a", "b"], neighbours="add_remove", random_state=0)
        assert none.release(np.zeros((0, 1))) == [None]


# ---------------------------------------------------------------- errors beside noise for the worst case

SHAPES = {
    "even": lambda rng, n: rng.uniform(0, 10, n),
    "skewed": lambda rng, n: rng.exponential(1.0, n),
    "two humps": lambda rng, n: np.where(rng.random(n) < 0.7, rng.normal(3, 0.3, n), rng.normal(8, 0.3, n)),
    "points": lambda rng, n: rng.choice([2.0, 3.0, 9.0], n, p=[0.3, 0.5, 0.2]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_errors_are_far_below_those_of_global_noise(shape):
    """The median of 2,000 values in (0, 10) at epsilon = 1: Laplace noise for the worst case has scale 10."""
    rng = np.random.default_rng(0)
    errors, globally = [], np.abs(rng.laplace(0, 10, 60))
    for seed in range(60):
        x = SHAPES[shape](rng, 2_000)
        exact = np.sort(x)[999]
        errors.append(abs(SmoothSensitivity(1.0, bounds=(0.0, 10.0), random_state=seed).release(x) - exact))
    assert np.median(errors) < 0.05
    assert np.median(globally) > 3


def test_few_rows_have_no_more_than_global_noise():
    est = SmoothSensitivity(1.0, bounds=(0.0, 10.0))
    for x in ([5.0], [0.0, 10.0], [1.0, 2.0, 3.0]):
        plan = est._plan(1)
        ((_, scale),) = est._look(est.summarize(np.array(x)).totals, plan)
        assert scale <= plan["noise"].multiplier * plan["grids"][0].width
