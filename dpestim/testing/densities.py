"""Counts of places in the central model: what splits of a quadtree tell, exactly, and errors beside what is stated."""

import copy
import itertools
import math
from functools import cache

import numpy as np

from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import WordSource
from dpestim.testing.releases import RELEASE_CHECKS, Releases
from dpestim.testing.tools import require, same_state

#: Counts along a path that are looked at go up to here; releases whose errors are looked at.
LARGEST, N = 6, 200
#: Logarithms are sums of floats.
_FLOAT = 1e-9


class Densities(Releases):
    """An estimator of a density, and how it is used."""

    def __init__(self, estimator):
        super().__init__(estimator)
        self.wrong = {"method": (None, "kd", 1), "cells": (0, 1.5, True, "2", 513), "n_rows": (0, 1.5, "3", True),
                      "units": (None, "miles", 1), "bounds": (None, 3, (1,), (1, 1), (2, 1), (0, math.inf), "ab")}

    def checks(self):
        """Return the checks of what takes places."""
        return *CHECKS, *RELEASE_CHECKS

    @property
    def data(self):
        """Rows."""
        return self.estimator._test_data(40)[0]

    def bad(self):
        """Return rows that are none."""
        rows = self.data
        yield rows[:, :1]
        yield np.where(rows > rows.mean(), math.nan, rows)

    def odd(self):
        """Return rows that differ in one value."""
        yield self.data
        for value in (math.nan, math.inf, -1e300):
            rows = self.data.copy()
            rows[3, 1] = value
            yield rows

    def shown(self, released):
        """Return types only: how many cells there are is private, and is released with noise."""
        return [type(part) for part in released]


def check_density_splits_keep_epsilon(densities):
    """All decisions along a path of a quadtree tell of one row by no more than their share, for any counts.

    Over all sequences of counts that never rise, with one row more or less on the path up to any node: exactly, by the
    law of the noise.
    """
    est = densities.fresh()
    if est.method != "privtree":
        return
    tree = est._partition(40)
    moved = 2 if est._replaces else 1
    share = float(canonical_epsilon(est.epsilon)) / 2 / moved
    rate = float(tree.decision.rate_of_decay)
    norm = math.log1p(math.exp(-rate))

    @cache
    def logs(count, depth):  # of the probabilities that a cell is split, and that it is not
        x = int(tree.biased(np.array([count]), depth)[0])
        near = -rate * (1 - x if x < 1 else x) - norm
        return (near, math.log1p(-math.exp(near)))[:: 1 if x < 1 else -1]

    depth = min(tree.depth, 3)
    for counts in itertools.combinations_with_replacement(range(LARGEST * (1 + tree.bias), -1, -tree.bias), depth):
        for more in range(tree.bias):  # (counts between two multiples of the bias)
            told, path = 0.0, [count + more for count in counts]
            for level, count in enumerate(path):
                (split, stop), (split_without, stop_without) = logs(count + 1, level), logs(count, level)
                leaf = stop_without - stop
                require(leaf <= share + _FLOAT and told - leaf <= share + _FLOAT, "a leaf tells more than its share")
                told += split - split_without
            require(told <= share + _FLOAT, f"the splits of a path tell {told:.3f} of one row, and {share:.3f} is "
                    "their share")
    rows = densities.data[:1]
    units, chance = est._units(rows, *est._region()), math.exp(logs(1, 0)[0])
    split = sum(len(tree.draw(units, WordSource(seed))[0]) > 1 for seed in range(N))
    room = 5 * math.sqrt(N * chance * (1 - chance))
    require(abs(split - N * chance) < room, "the first split does not follow the law of its noise")


def check_density_counts_have_the_stated_error(densities):
    """Noise of counts, and of sums of counts, has the variance that is stated (n = 200, five standard errors)."""
    est = densities.fresh()
    rows = np.repeat(densities.data, 25, axis=0)
    lows, highs = est._region()
    partition = est._partition(len(rows))
    units = est._units(rows, lows, highs)
    few, often = np.unique(units, axis=0, return_counts=True)
    places = few.T
    middle = lows + (highs - lows) * 0.5
    seen, stated = [], []
    for seed in range(N):
        twin = copy.copy(est)
        twin.boxes_, twin.counts_, twin._groups = partition.draw(units, WordSource(seed))
        twin._noises, twin.bounds_ = partition, (lows, highs)
        part = twin._inside(lows, middle)
        low0, high0, low1, high1 = twin.boxes_[part > 0].T[:, :, None]
        inside = (places[0] >= low0) & (places[0] < high0) & (places[1] >= low1) & (places[1] < high1)
        exact = (inside @ often) @ part[part > 0]
        estimate, error = twin.range(lows, middle)
        seen.append((estimate - exact) / error)
        stated.append(error)
    room = 5 * math.sqrt(5 / N)  # (squares of Laplace noise have a variance of 5, of sums less)
    require(abs(np.mean(np.square(seen)) - 1) < room, "the error of a range is not the one that is stated")
    require(abs(np.mean(seen)) < 5 / math.sqrt(N), "ranges must be unbiased, given the cells")


def check_density_answers_agree(densities):
    """Cells tile the region, ranges add up, and what follows from cells is free and repeats with a seed."""
    est = densities.fresh().fit(densities.data)
    lows, highs = est.bounds_
    sizes = (est.boxes_[:, 1] - est.boxes_[:, 0]) * (est.boxes_[:, 3] - est.boxes_[:, 2])
    require(sizes.min() > 0 and sizes.sum() == 1 << 32, "cells must tile the region")
    middle = lows + (highs - lows) * [0.37, 1.0]
    whole, parts = est.range(lows, highs)[0], [est.range(lows, middle)[0], est.range([middle[0], lows[1]], highs)[0]]
    require(abs(whole - sum(parts)) < 1e-6 * (1 + abs(whole)), "two rectangles must add up to both")
    require(abs(whole - est.counts_.sum()) < 1e-6 * (1 + abs(whole)), "a range must be a sum of counts")
    low, high = est.confidence_interval(lows, middle)
    wide = est.confidence_interval(lows, middle, inside="any")
    require(low <= parts[0] <= high and low < high, "an interval must enclose its estimate")
    require(wide[0] <= wide[1], "an interval must have a low end and a high one")
    drawn = est.sample(50, random_state=3)
    require(same_state(drawn.tolist(), est.sample(50, random_state=3).tolist()), "a seed must reproduce a sample")
    require(bool(((drawn >= lows) & (drawn <= highs)).all()), "a sample must lie in the region")
    require((est.density(drawn) >= 0).all(), "a density must not be negative")


CHECKS = (check_density_splits_keep_epsilon, check_density_counts_have_the_stated_error, check_density_answers_agree)
