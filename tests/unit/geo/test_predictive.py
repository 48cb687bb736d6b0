"""Traces with predictions: the law of all answers on a small grid, the budget, and what spends nothing."""

import copy
import itertools
import math
import pickle
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpestim.accounting import Ledger
from dpestim.geo import (
    OptimalGeoTransformer,
    PlanarGeometricTransformer,
    PlanarLaplaceTransformer,
    PredictiveTrace,
    predictive,
)

TOWN = {"bounds": ([0.0, 0.0], [9000.0, 9000.0]), "units": "metres"}
HOME, WORK = [1000.0, 1000.0], [8000.0, 7000.0]


def device(**more):
    return PlanarLaplaceTransformer(0.01, **{**TOWN, "random_state": 0, **more})


class Part:
    """A source without words, whose parts know their numbers."""

    def __init__(self, *path):
        self.path = path

    def part(self, number):
        return Part(*self.path, number)


class Enumerated(PredictiveTrace):
    """Takes the path of a script instead of drawing, and multiplies the probabilities of its turns.

    A turn that is no longer in the script is its first one, and is written down with how many there were.
    """

    def follow(self, script, trace, ends):
        self.script, self.turns, self.used = list(script), [], set()
        self.weight, self._source = 1.0, Part()
        self.ends, self.rate = ends, float(self._noise.rate_of_decay)
        said = []
        for place in trace:
            said.append((self._answer(None, [place, 0]), self.n_fresh_))  # (and which ones are fresh)
        return tuple(said)

    def turn(self, weights):
        at = len(self.turns)
        taken = self.script[at] if at < len(self.script) else 0
        self.turns.append((taken, len(weights)))
        self.weight *= weights[taken]
        return taken

    def tail(self, k):
        """P[Z > k] of discrete Laplace noise."""
        a = math.exp(-self.rate)
        return a ** (k + 1) / (1 + a) if k >= 0 else 1 - a ** -k / (1 + a)

    def _drawn(self, source):
        assert source.path not in self.used  # (words of a step are drawn once)
        self.used.add(source.path)
        if source.path[-1] == 2:  # the noise of a place: only whether it is far matters
            return Compared(self)
        support = range(-self.ends, self.ends + 1)  # that of the threshold, tails at both ends
        weights = [self.tail(k - 1) - self.tail(k) for k in support]
        weights[0], weights[-1] = 1 - self.tail(-self.ends), self.tail(self.ends - 1)
        return support[self.turn(weights)]

    def report_of(self, place):
        return self.turn([float(p) for p in self._law.transition_matrix()[place]])


class Compared:
    def __init__(self, trace):
        self.trace = trace

    def __radd__(self, apart):
        self.apart = apart
        return self

    def __gt__(self, limit):
        far = self.trace.tail(limit - self.apart)
        return bool(self.trace.turn([1 - far, far]))


class Reports:
    """Columns that take turns in place of words."""

    def __init__(self, trace):
        self.trace = trace

    def randomize(self, values, source, first, n_jobs):
        return np.array([[self.trace.report_of(self.trace.at)]])


def law_of(trace, **settings):
    """Return the probabilities of all sequences of answers."""
    found, script = defaultdict(float), []
    while True:
        tried = Enumerated(**settings)
        tried._columns = Reports(tried)
        answer = tried._answer

        def answered(value, cell, tried=tried, answer=answer):
            tried.at = cell[0]
            return answer(value, cell)

        tried._answer = answered
        found[tried.follow(script, trace, 7)] += tried.weight
        turns = tried.turns
        while turns and turns[-1][0] + 1 == turns[-1][1]:
            turns.pop()
        if not turns:
            return found
        script = [taken for taken, _ in turns[:-1]] + [turns[-1][0] + 1]


@pytest.mark.parametrize(("method", "test", "budget"), [("svt", 6.0, 8.0), ("tests", 1.0, 4.0)])
def test_all_answers_keep_the_budget(monkeypatch, method, test, budget):
    monkeypatch.setattr(predictive, "PARTS", 1)  # (few noises matter)
    place = OptimalGeoTransformer(1.0, bounds=([0, 0], [1, 0.5]), units="metres", step=1)
    settings = {"transformer": place, "budget": budget, "test": test, "threshold": 0, "method": method}
    laws = {trace: law_of(trace, **settings) for trace in itertools.product(range(2), repeat=3)}
    long = [law_of((0, *[k] * 9), **settings) for k in range(2)]
    for law in [*laws.values(), *long]:
        assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    worst = max(math.log(one[said] / other[said]) for own in (laws.values(), long)
                for one, other in itertools.permutations(own, 2) for said in one)
    assert budget / 4 < worst <= budget + 0.01


def test_the_budget_is_charged_once_and_never_exceeded():
    rng, spent = np.random.default_rng(0), []
    for method in predictive.METHODS:
        ledger = Ledger(math.inf)
        trace = PredictiveTrace(device(ledger=ledger), 0.07, method=method)
        for _ in range(4):
            before = trace.n_fresh_, trace.spent_
            trace.report(rng.uniform(0, 9000, (20, 2)))
            assert trace.spent_ >= before[1]
            assert trace.spent_ <= Fraction(7, 100)
        spent.append(trace.n_fresh_)
        assert len(ledger.entries()) == 1
        assert ledger.spent().epsilon == trace.privacy_.epsilon
        assert trace.privacy_.relaxed_epsilon == Fraction(7, 100)
        assert trace.left_ < trace.test + Fraction(1, 100)  # (nothing fresh fits)
        last = trace.report(HOME)
        assert trace.report(WORK).tolist() == last.tolist()
        assert trace.n_steps_ == 82
        stays = PredictiveTrace(device(), 0.07, method=method, threshold=1e6)
        stays.report([HOME] * 80)
        assert stays.spent_ == Fraction(2 if method == "svt" else 6, 100)  # (one run; all tests that fit)
    assert spent == [4, 6]  # (1 + 3 (1 + 1) hundredths, and 1 + 5 (1 + 1 / 10) with some tests)


def test_who_stays_pays_little_and_errs_less_than_independent_reports():
    day = np.repeat([HOME, WORK, HOME], 30, axis=0)
    errors, fresh = [], []
    for seed in range(5):
        trace = PredictiveTrace(device(random_state=seed), 0.2)
        errors.append(np.hypot(*(trace.report(day) - day).T).mean())
        fresh.append(trace.n_fresh_)
    assert np.mean(errors) < 400 < 2 / (0.2 / 90)  # the mean error of 90 independent reports of the same budget
    assert 3 <= np.mean(fresh) < 9


def test_frames_seeds_steps_and_priors_do_not_matter_but_where_they_should():
    day = np.repeat([HOME, WORK], 4, axis=0)
    whole = PredictiveTrace(device(), 0.2).report(day)
    one_by_one = PredictiveTrace(device(), 0.2)
    assert np.array([one_by_one.report(place) for place in day]).tolist() == whole.tolist()
    assert PredictiveTrace(device(), 0.2).report(pd.DataFrame(day)).tolist() == whole.tolist()
    assert PredictiveTrace(device(random_state=1), 0.2).report(day).tolist() != whole.tolist()
    known = PredictiveTrace(device(prior=([HOME, WORK], [1, 1])), 0.2).report(day)
    assert np.hypot(*(known - day).T).max() < 1000
    assert known[0].tolist() != whole[0].tolist()
    changed = device()
    trace = PredictiveTrace(changed, 0.2)
    changed.set_params(bounds=([0, 0], [1, 1]))
    assert trace.report(day).tolist() == whole.tolist()
    cells = PlanarGeometricTransformer(0.01, metric="manhattan", step=100, random_state=0, **TOWN)
    assert PredictiveTrace(cells, 0.2).report(day).shape == (8, 2)


@pytest.mark.parametrize(("settings", "words"), [
    ({"budget": 0.001}, "budget must be finite"), ({"method": "paper"}, "method must be"),
    ({"threshold": -1}, "threshold"), ({"threshold": math.nan}, "threshold"), ({"test": 0}, "test"),
    ({"transformer": 3}, "transformer must"), ({"budget": math.inf}, "budget"),
    ({"transformer": device(bounds=None)}, "bounds"),
])
def test_bad_settings_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        PredictiveTrace(**{"transformer": device(), "budget": 0.1, **settings})


def test_bad_places_spend_nothing_and_copies_are_refused():
    ledger = Ledger(math.inf)
    trace = PredictiveTrace(device(ledger=ledger), 0.1)
    for bad in ([[1.0, math.nan]], [[1.0, 2.0, 3.0]], [1.0], "ab", [[math.inf, 1]]):
        with pytest.raises(ValueError):
            trace.report(bad)
    assert ledger.spent().is_nothing
    assert trace.n_steps_ == 0
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="one budget"):
            duplicate(trace)
    assert "left_=0.1" in repr(trace)
