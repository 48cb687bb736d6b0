"""Regression by deep points among models: its guarantee on small grids, exactly, and what it answers."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dpestim
from dpestim.central.stability.distance_test import least_threshold, passes
from dpestim.linear_model import DPTukeyRegression, tukey
from dpestim.linear_model.tukey import Boxes, models_needed, models_of
from dpestim.rng import WordSource

RNG = np.random.default_rng


def law(models, size, epsilon, delta, threshold):
    """The probability of every answer, None included, by the definition of depth."""
    boxes = Boxes(models, size)
    rate, points = float(epsilon) / 4, {}
    for y in product(range(-3, 4), repeat=size):
        depth = min(min(sum(m[j] >= y[j] for m in models), sum(m[j] <= y[j] for m in models)) for j in range(size))
        if depth >= boxes.least:
            points[y] = math.exp(rate * min(depth, boxes.deepest))
    chance = passes(boxes.distance(epsilon / 2, delta), threshold, float(epsilon / 2))
    total = sum(points.values())
    return {None: 1 - chance, **{y: chance * p / total for y, p in points.items()}}


def beyond(p, q, epsilon):
    """The largest P[E] - e^epsilon Q[E]."""
    return sum(max(0.0, mass - math.exp(epsilon) * q.get(y, 0.0)) for y, mass in p.items())


def worst(models, epsilon, delta, threshold=None):
    """The largest violation, as a part of delta, over neighbours of these models; and whether they get an answer."""
    if threshold is None:
        threshold = least_threshold(epsilon / 2, delta) + 1
    one, found = law(models, 1, epsilon, delta, threshold), 0.0
    for k, new in product(range(len(models)), (-3, 3)):
        other = law([*models[:k], [new], *models[k + 1:]], 1, epsilon, delta, threshold)
        found = max(found, beyond(one, other, float(epsilon)), beyond(other, one, float(epsilon)))
    return found / float(delta), one[None] < 0.5


def test_the_guarantee_holds_on_small_grids_and_without_the_test_it_would_not(monkeypatch):
    monkeypatch.setattr(tukey, "_FAR", 3)
    cases = [(6 * [[-3]] + 19 * [[3]], Fraction(2), Fraction(1, 100))]
    for seed in range(30):
        rng = RNG(seed)
        center, spread = rng.integers(-2, 3), rng.choice([0, 1, 3], p=[0.3, 0.4, 0.3])
        models = np.clip(center + rng.integers(-spread, spread + 1, size=(25, 1)), -3, 3).tolist()
        cases.append((models, Fraction(6), Fraction(1, 100)))
    found = [worst(*case) for case in cases]
    assert max(violation for violation, _ in found) <= 1
    assert 2 < sum(answered for _, answered in found) < 28  # some data are refused, some are not
    assert worst(*cases[0], threshold=-1000)[0] > 1  # nothing is refused


def test_neighbours_have_distances_next_to_each_other(monkeypatch):
    monkeypatch.setattr(tukey, "_FAR", 3)
    seen = set()
    for seed in range(200):
        rng = RNG(seed)
        models = np.clip(np.rint(rng.normal(0, rng.choice([0.2, 0.7, 2]), size=(25, 1))), -3, 3).astype(int).tolist()
        other = [[int(rng.choice([-3, 3]))], *models[1:]]
        a, b = (Boxes(m, 1).distance(Fraction(3), Fraction(1, 100)) for m in (models, other))
        assert abs(a - b) <= 1
        seen.add(a)
    assert len(seen) > 1


def test_points_are_drawn_from_their_law(monkeypatch):
    # n = 1,000 draws, 7 points at most: chi-squared above its mean plus 6 standard deviations has alpha below 1e-4
    monkeypatch.setattr(tukey, "_FAR", 3)
    models = [[-3], [-2], [-1], [-1], [0], [0], [1], [2], [3]]
    boxes, epsilon = Boxes(models, 1), Fraction(2)
    want = law(models, 1, 2 * epsilon, Fraction(1, 2), -100)
    drawn = [boxes.draw(epsilon, WordSource(k).reader())[0] for k in range(1000)]
    values = [y for y in want if y is not None]
    expected = np.array([1000 * want[y] for y in values])
    counts = np.array([drawn.count(y[0]) for y in values])
    assert counts.sum() == 1000
    degrees = len(values) - 1
    assert ((counts - expected) ** 2 / expected).sum() < degrees + 6 * math.sqrt(2 * degrees)
    even = np.full(len(values), 1000 / len(values))
    assert ((counts - even) ** 2 / even).sum() > degrees + 6 * math.sqrt(2 * degrees)  # rejects a wrong law


def test_a_row_moves_one_model_only():
    rng = RNG(0)
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    before = models_of(X, y, 20, True)
    for value in (1e300, np.nan, np.inf, 0.0):
        other = X.copy()
        other[57] = value
        after = models_of(other, y, 20, True)
        assert [k for k in range(20) if after[k] != before[k]] == [17]
    assert models_of(X[:0], y[:0], 0, True) == []


def test_answers_need_no_bounds():
    rng = RNG(0)
    X = rng.lognormal(8, 1, size=(8000, 2)) * [1, 1e-6]
    y = 3 * X[:, 0] + 4e6 * X[:, 1] + 500 + 10 * rng.standard_t(3, 8000)
    model = DPTukeyRegression(4.0, delta=1e-6, random_state=0).fit(X, y)
    assert_allclose(model.coef_, [3, 4e6], rtol=1e-3)
    assert not model.refused_
    assert float(model.privacy_.delta) == 1e-6
    with pytest.warns(UserWarning, match="n_models: these rows give 16"):  # before it is charged
        few = DPTukeyRegression(0.1, delta=1e-6, random_state=0).fit(X[:100], y[:100])
    assert few.refused_
    assert not few.coef_.any()
    assert DPTukeyRegression(4.0, delta=1e-6, fit_intercept=False).fit(X, y).intercept_ == 0


@pytest.mark.parametrize(("n_columns", "epsilon", "delta"), [(1, 1.0, 1e-6), (5, 2.0, 1e-6), (2, 4.0, 1e-9),
                                                            (20, 4.0, 1e-3)])
def test_the_stated_number_of_models_passes_and_much_fewer_do_not(n_columns, epsilon, delta):
    half, delta = Fraction(epsilon) / 2, Fraction(delta)
    threshold, needed = least_threshold(half, delta) + 1, models_needed(Fraction(epsilon), delta, n_columns)
    rng = RNG(n_columns)
    for k, errors in enumerate((rng.standard_normal, lambda size: rng.standard_t(3, size)) * 2):
        size = needed if k < 2 else needed // 2
        models = [[round(v * 2.0**60) for v in row] for row in (3 + errors((size, n_columns))).tolist()]
        chance = passes(Boxes(models, n_columns).distance(half, delta), threshold, float(half))
        assert (chance > 0.95) == (k < 2)


def test_the_default_takes_as_many_models_as_the_test_needs():
    X = RNG(0).normal(size=(30_000, 1))  # 1,000 models were refused, whatever the rows
    model = DPTukeyRegression(0.2, delta=1e-6, random_state=0).fit(X, 2 * X[:, 0] + RNG(1).normal(size=30_000))
    assert not model.refused_
    assert_allclose(model.coef_, 2, atol=0.2)
    assert DPTukeyRegression(delta=1e-6)._blocks(10_000, 2, Fraction(1), Fraction(1, 10**6)) == 1000
    assert DPTukeyRegression(delta=1e-6)._blocks(10**9, 2, Fraction(1, 10**6), Fraction(1, 10**6)) == 1 << 16


@pytest.mark.parametrize(("name", "value"), [("n_models", 0), ("n_models", 2.5), ("n_models", True), ("delta", 0.0),
                                             ("delta", None), ("fit_intercept", "yes")])
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        DPTukeyRegression(1.0, **{"delta": 1e-6, name: value}).fit(np.zeros((9, 1)), np.zeros(9))


def test_strict_mode_is_total():
    X, y = RNG(0).normal(size=(400, 2)), RNG(1).normal(size=400)
    X[::3], y[1::3] = np.nan, np.inf
    with dpestim.config_context(strict=True):
        model = DPTukeyRegression(10.0, delta=1e-6).fit(X, y)
        assert (np.isnan if model.refused_ else np.isfinite)(model.predict(X)).all()


def test_where_nothing_is_released_nothing_is_predicted():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = DPTukeyRegression(1.0, delta=1e-6, random_state=0)
    with pytest.warns(UserWarning, match="nothing was released"):
        model.fit(X, X[:, 0])
    assert model.refused_
    assert np.isnan(model.predict(X)).all()
    assert np.isnan(model.score(X, X[:, 0]))


def test_a_column_of_years_needs_a_public_center():
    """Lines of blocks agree near the rows, and not 2,000 years away."""
    rng = np.random.default_rng(0)
    years = rng.integers(2000, 2020, size=(20_000, 1)).astype(float)
    y = 0.1 * (years[:, 0] - 2010) + rng.normal(size=20_000)
    far, near = (DPTukeyRegression(2.0, delta=1e-6, random_state=0, center=center).fit(years, y) for center in (0.0,
                                                                                                                2010))
    assert near.score(years, y) > 0.2
    assert near.coef_[0] == pytest.approx(0.1, abs=0.02)
    assert far.score(years, y) < near.score(years, y)
    with pytest.raises(ValueError, match="center"):
        DPTukeyRegression(2.0, delta=1e-6, center=[1.0, 2.0]).fit(years, y)
    with pytest.raises(ValueError, match="center"):
        DPTukeyRegression(2.0, delta=1e-6, center=2010, fit_intercept=False).fit(years, y)
