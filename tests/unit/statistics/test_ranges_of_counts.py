"""Counts of ranges: the noise is what is stated, levels have the best weights, and neighbours move what is claimed."""

import pickle
from fractions import Fraction

import numpy as np
import pytest

from dpestim.postprocessing import trees
from dpestim.statistics import RangeCounts, group_by
from dpestim.statistics.calibrated_noise import noise_for
from dpestim.statistics.range_noise import LevelNoise, best_noise

X = np.random.default_rng(0).gamma(3.0, 8.0, 2000)


def counts(**more):
    return RangeCounts(1.0, bins=64, bounds=(0, 64), **more)


@pytest.mark.ci
@pytest.mark.parametrize("more", [{}, {"neighbours": "add_remove"}, {"delta": 1e-6, "branching": 2}])
def test_ranges_have_the_errors_that_are_stated(more):
    """The mean of squares over R seeds is within 5 standard deviations of the square of what is stated."""
    seeds, asked = 200, [(0, 1), (3, 40), (16, 32), (10, 64)]
    right = np.array([((X.clip(0, 63.9) >= a) & (X.clip(0, 63.9) < b)).sum() for a, b in asked])
    found = []
    for seed in range(seeds):
        result = counts(random_state=seed, **more).fit(X).result_
        found.append([(*result.range(a, b), *result.range_interval(a, b)) for a, b in asked])
    values, errors, low, high = np.moveaxis(np.array(found), -1, 0)
    ratio = ((values - right) ** 2).mean(axis=0) / errors[0] ** 2
    assert (np.abs(ratio - 1) < 5 * np.sqrt(5 / seeds)).all(), ratio  # (the fourth moment of Laplace noise is 6)
    covered = ((low <= right) & (right <= high)).mean()
    assert abs(covered - 0.95) < 3.5 * np.sqrt(0.05 * 0.95 / (2 * seeds)), covered


def test_weights_and_fanouts_are_the_best_there_are():
    def noise_of(l1, l2, size):
        return noise_for(Fraction(1), 0, 2 * l1, 2 * l2, size)

    best = best_noise(256, None, True, noise_of)
    for branching in (2, 4, 16, 256):
        own = best_noise(256, branching, True, noise_of)
        assert best.mean_variance <= own.mean_variance * (1 + 1e-9)
        for level in range(1, len(own.weights)):
            for weight in (own.weights[level] + 6, max(own.weights[level] - 6, 1)):
                weights = (*own.weights[:level], weight, *own.weights[level + 1 :])
                other = LevelNoise(own.fanouts, weights, noise_of(sum(weights), 0, 99), True, 256)
                assert own.mean_variance <= other.mean_variance * 1.01
    equal = LevelNoise((2,) * 8, (0,) + (1,) * 8, noise_of(8, 0, 99), True, 256)
    assert best_noise(256, 2, True, noise_of).mean_variance < 0.5 * equal.mean_variance


@pytest.mark.parametrize(("more", "times", "squared"), [({}, 2, 2), ({"neighbours": "add_remove"}, 1, 1), (
    {"neighbours": "add_remove", "max_rows_per_user": 3}, 3, 9)])
def test_neighbours_move_what_noise_is_for(more, times, squared):
    est = counts(**more)
    levels = est._levels(Fraction(1))
    worst = (0, 0)
    for old in range(0, 64, 5):
        for new in range(64):
            change = np.zeros(64, np.int64)
            change[new] += times if "neighbours" in more else 1
            if not more:
                change[old] -= 1
            moved = levels.weighted(change)
            worst = max(worst[0], int(np.abs(moved).sum())), max(worst[1], int((moved**2).sum()))
    assert worst == (times * sum(levels.weights), squared * sum(w * w for w in levels.weights))
    assert levels.noise.law == noise_for(Fraction(1), 0, *worst, len(moved)).law


def test_results_answer_and_travel():
    result = counts(random_state=0).fit(X).result_
    again = pickle.loads(pickle.dumps(result))
    assert again.range(3, 9) == result.range(3, 9)
    assert result.range(0, 64)[0] == pytest.approx(len(X))
    assert result.range(0, 64)[1] == pytest.approx(0, abs=1e-6)
    assert result.value.sum() == pytest.approx(len(X))
    assert np.abs(result.quantile([0.1, 0.5]) - np.quantile(X, [0.1, 0.5])).max() < 2
    assert len(result.to_frame()) == 64
    halves = counts(random_state=0).summarize(X[:900])
    merged = halves.merge(counts().summarize(X[900:])).release()
    assert abs(merged.range(3, 40)[0] - result.range(3, 40)[0]) < 6 * result.range(3, 40)[1]
    groups = group_by(counts(random_state=0, neighbours="add_remove"), X, ["a", "b"] * 1000, groups=["a", "b"])
    assert abs(groups["a"].range(0, 20)[0] - (X[::2] < 20).sum()) < 6 * groups["a"].range(0, 20)[1]
    uneven = RangeCounts(1.0, bins=[0, 1, 10, 100], random_state=0).fit(X).result_
    assert uneven.range(0, 5.5)[0] == pytest.approx(uneven.value[0] + uneven.value[1] / 2)
    both = counts(random_state=0).fit(np.c_[X, 64 - X]).result_
    assert both.value.shape == (64, 2)
    assert abs(both.range(40, 64, 1)[0] - (X.clip(0, 64) <= 24).sum()) < 6 * both.range(40, 64, 1)[1]
    assert both.range(3, 40)[1] == pytest.approx(2 * result.range(3, 40)[1], rel=0.1)
    assert len(both.to_frame()) == 128
    one = RangeCounts(1.0, bins=1, bounds=(0, 1), neighbours="add_remove", random_state=0).fit(X).result_
    assert abs(one.value[0] - len(X)) < 30


@pytest.mark.ci
def test_intervals_cover_single_cells_whose_noise_is_mostly_zero():
    x, held = np.repeat([0.5, 1.5, 7.5], [30, 60, 10]), []
    for seed in range(150):
        found = RangeCounts(6.0, bins=40, bounds=(0, 40), random_state=seed).fit(x).result_
        ends = [found.range_interval(k, k + 1) for k in range(0, 40, 8)]
        held += [low <= 30 * (k == 0) <= high for k, (low, high) in zip(range(0, 40, 8), ends)]
    assert np.mean(held) > 0.93


def test_what_is_refused():
    with pytest.raises(ValueError, match="as many in each column"):
        RangeCounts(1.0, bins=[[0, 1], [0, 1, 2]]).fit(np.ones((4, 2)))
    for wrong in (1, 2.5, True, "best", None):
        with pytest.raises(ValueError, match="branching"):
            counts(branching=wrong).fit(X)
    with pytest.raises(ValueError, match="at most 1048576"):
        RangeCounts(1.0, bins=1 << 21, bounds=(0, 1)).fit(X)
    result = counts(random_state=0).fit(X).result_
    for low, high in ((3, 2), ("a", 1), (0, float("nan"))):
        with pytest.raises(ValueError, match="low"):
            result.range(low, high)
    for column in (1, -1, "x", True):
        with pytest.raises(ValueError, match="column must"):
            result.range(0, 1, column)
    for q in (2, [[0.5]], float("nan")):
        with pytest.raises(ValueError, match="q must"):
            result.quantile(q)
    with pytest.raises(ValueError, match="level"):
        result.range_interval(0, 1, 1.0)
    assert trees.even_fanouts(1, 1) == (1,)
