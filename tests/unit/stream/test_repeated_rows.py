"""Rows that are repeated: their laws by enumeration, their intervals, adaptive budgets, and what a user may change."""

import math
import pickle
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dpestim.stream import SVTRelease, WEventRelease

#: Integers of noise of releases are enumerated up to this.
SHOWN = 2


class Script:
    """Noise that goes through all integers up to a limit, one path after another."""

    def __init__(self, hidden, shown):
        self.path, self.hidden, self.shown = [], hidden, shown

    def start(self):
        """Begin the next path; False after the last one."""
        while self.path and self.path[-1][0] == self.path[-1][1]:
            self.path.pop()
        if self.path:
            self.path[-1][0] += 1
        self.at, self.chance = 0, 1.0
        return self

    def take(self, law, column, size):
        """Return the integers of this path."""
        out = []
        for _ in range(size):
            if self.at == len(self.path):
                most = SHOWN if column == self.shown else self.hidden
                self.path.append([-most, most])
            z, decay = self.path[self.at][0], math.exp(-float(law.rate_of_decay))
            self.chance *= decay ** abs(z) * (1 - decay) / (1 + decay)
            self.at += 1
            out.append(z)
        return np.array(out)


def law_of(spec, rows, *limits):
    """Return the probability of each sequence of releases, as the estimator's code makes them of all noise."""
    script, law = Script(*limits), defaultdict(float)
    while True:
        found = spec.take(spec.begin(), np.array(rows)[:, None], script.start())
        law[tuple(found["more"]["renewed_"]), tuple(found["values"][:, 0])] += script.chance
        if all(z == most for z, most in script.path):
            return dict(law)


CASES = [
    (SVTRelease(8.0, n_cells=1, bounds=(0, 2), change=1, threshold=1, max_releases=2), 13, 2, (0, 1), (1, 0)),
    (WEventRelease(8.0, n_cells=1, bounds=(0, 2), change=1, window=2, method="bd"), 6, 1, (1, 2), (2, 1)),
    pytest.param(WEventRelease(8.0, n_cells=1, bounds=(0, 2), change=1, window=2), 6, 1, (1, 2), (2, 1),
                 marks=pytest.mark.ci),
    (WEventRelease(8.0, n_cells=1, bounds=(0, 2), change=1, window=2, method="adaptive"), 0, 0, (0, 1), (1, 0)),
]


@pytest.mark.parametrize(("est", "hidden", "shown", "one", "two"), CASES)
def test_laws_by_enumeration_keep_epsilon_and_are_those_of_releases(est, hidden, shown, one, two):
    """Of all releases of two steps that both streams may give: ratios up to e^epsilon, and as often as they come."""
    spec = est._spec()
    laws = [law_of(spec, rows, hidden, shown) for rows in (one, two)]
    both = set(laws[0]) & set(laws[1])
    ratios = [abs(math.log(laws[0][key] / laws[1][key])) for key in both]
    assert len(both) > 10
    assert 0.25 * 8 < max(ratios) <= 8 + 1e-3  # (what is not enumerated has a probability of 1e-4)
    n = 1500
    found = defaultdict(int)
    for seed in range(n):
        made = spec.take(spec.begin(), np.array(one)[:, None], est._noise(seed))
        found[tuple(made["more"]["renewed_"]), tuple(made["values"][:, 0])] += 1
    for key, chance in sorted(laws[0].items(), key=lambda item: -item[1])[:12]:
        assert abs(found[key] - n * chance) < 5 * math.sqrt(n * chance) + 1


def streams():
    """Return rows of two cells that jump, that drift, and that stay near the threshold of the latest row."""
    drift = np.stack([500 + 2 * np.arange(120), 700 - 2 * np.arange(120)], 1)
    return np.repeat([[500, 20], [100, 420], [900, 20]], 40, axis=0), drift, np.tile([[300, 300], [340, 260]], (60, 1))


@pytest.mark.parametrize(("cls", "params"), [
    (SVTRelease, {"threshold": 80, "max_releases": 6}), (WEventRelease, {"window": 6}),
    (WEventRelease, {"window": 6, "method": "adaptive"}),
    pytest.param(WEventRelease, {"window": 6, "method": "bd"}, marks=pytest.mark.ci)])
def test_intervals_of_new_and_of_repeated_rows_hold_as_often_as_they_say(cls, params):
    """At every step of any stream, over the noise; and they are narrower than the bounds where that can be told."""
    streams_ = streams()
    for rows in streams_:
        inside, narrow, kept = [], [], []
        for seed in range(8):
            est = cls(4.0, n_cells=2, bounds=(0, 1000), change=2, **params, random_state=seed).fit(rows)
            low, high = est.confidence_interval(0.8)
            inside.append(((low <= rows) & (rows <= high)).mean(1))
            narrow.append((high - low)[:, 0] < 400)
            kept.append(est.renewed_)
        inside, narrow, kept = np.array(inside), np.array(narrow), np.array(kept)
        assert inside.mean() >= 0.8
        assert inside[kept].mean() > 0.8
        assert narrow[kept].mean() > 0.9
        if rows is streams_[0] and params.get("method") != "adaptive":
            assert narrow[~kept].mean() > 0.9
    assert est.result_.to_frame().shape[0] == 2


def test_a_wider_row_than_the_latest_is_told_by_the_distance():
    """A repeated row is as wide as what its noisy distance allows, whatever the threshold is; bounds end it."""
    est = SVTRelease(4.0, n_cells=2, bounds=(0, 1000), change=2, threshold=200, max_releases=1, random_state=0)
    low, high = est.fit([[500, 20]] * 3).confidence_interval()
    assert (low[1:] <= 0).all()
    assert (high[1:] >= 1000).all()
    assert (high - low)[0].max() < 100
    few, many = (SVTRelease(4.0, n_cells=2, bounds=(0, 1000), change=2, threshold=far, max_releases=2,
                            random_state=0).fit([[500, 20]] * 3).confidence_interval()[1][-1] for far in (50, 150))
    assert np.allclose(many - few, 100)


@pytest.mark.parametrize("cls", [SVTRelease, WEventRelease])
def test_no_declared_change_protects_the_whole_row(cls):
    """A user may move between cells, or change all of them: by default that costs no more than epsilon."""
    est = cls(1.0, n_cells=3, bounds=(0, 1))
    spec = est._spec()
    rows = [np.array([row] * 2, np.int64) for row in ((0, 0, 1), (1, 1, 0))]
    assert spec.steps.change == 3
    assert 0 < spec.loss(*rows, est._noise(0)) <= 1


@pytest.mark.parametrize("method", ["bd", "ba", "adaptive"])
@pytest.mark.parametrize("window", [1, 3, 40])
def test_no_window_of_steps_that_are_taken_costs_more_than_epsilon_and_much_of_it_is_used(window, method):
    spec = WEventRelease(1.0, window=window, method=method, bounds=(0, 5000), change=1)._spec()
    worst = []
    for k, rows in enumerate((np.zeros((150, 2), np.int64), np.random.default_rng(0).integers(0, 5001, (150, 2)))):
        costs = spec.take(spec.begin(), rows, WEventRelease()._noise(k))["more"]["_costs"]
        worst.append(max(sum(costs[t : t + window], Fraction(0)) for t in range(150)))
    most = 1 if method == "adaptive" else Fraction(1, 2)
    assert max(worst) <= most
    assert max(worst) > Fraction(2, 5) * most


def test_a_row_is_compared_with_noise_of_the_threshold_and_of_the_query():
    """Given the first release, the second row is new as often as sums of both laws say, added up here."""
    est, _, shown, rows, _ = CASES[0]
    spec, z = est._spec(), np.arange(-13, 14)
    first, query = (np.exp(-float(law.rate_of_decay) * np.abs(z)) * np.tanh(float(law.rate_of_decay) / 2)
                    for law in (spec.law.threshold, spec.law.query))
    above = z[None, :] - z[:, None]  # (noise of the query, less that of the threshold)
    found = law_of(spec, rows, 13, shown)
    for value in {values[0] for _, values in found}:
        own = {key: chance for key, chance in found.items() if key[1][0] == value}
        shares = [sum(chance for (fresh, _), chance in own.items() if fresh[1] == new) for new in (True, False)]
        reached = (first[:, None] * query)[above >= spec.limit - abs(rows[1] - value)].sum()
        rate = float(spec.law.number.rate_of_decay)  # (of the new row integers up to SHOWN are enumerated)
        known = np.tanh(rate / 2) * np.exp(-rate * np.abs(np.arange(-SHOWN, SHOWN + 1))).sum()
        assert np.isclose(shares[0] / known / (shares[0] / known + shares[1]), reached, atol=1e-3)


def test_adaptive_releases_are_sparse_where_nothing_moves_and_go_on_after_a_restart():
    still, moving = np.full((300, 4), 400), np.random.default_rng(1).integers(0, 1001, (300, 4))
    made = {"n_cells": 4, "window": 30, "method": "adaptive", "bounds": (0, 1000), "change": 2}
    few, many = (WEventRelease(2.0, **made, random_state=0).fit(rows) for rows in (still, moving))
    assert few.renewed_.sum() < 75 < 250 < many.renewed_.sum()
    assert np.abs(few.values_[60:] - 400).mean() < 0.25 * np.abs(
        WEventRelease(2.0, **{**made, "method": "ba"}, random_state=0).fit(still).values_[60:] - 400).mean()
    widths, moved = few._widths, few._widths.half(0.8) - replace(few._widths, off=0.0).half(0.8)
    assert np.allclose(moved[few.renewed_], widths.off[few.renewed_])  # (what the filter has moved is in the interval)
    assert widths.off[few.renewed_][1:].min() > 0
    again = pickle.loads(pickle.dumps(few))
    assert again.partial_fit(still).shape == (300, 4)
    gaps = np.diff(np.flatnonzero(few.renewed_))
    assert all(later <= 30 and later <= earlier + 1 for earlier, later in pairwise(gaps))
