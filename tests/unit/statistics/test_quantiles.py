"""Quantiles on two grids: the law of a choice point by point, bounds that are far too wide, ties, intervals."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpestim.central.exact_bernoulli import exp_bounds
from dpestim.central.selection.exponential import ExponentialLaw
from dpestim.rng import WordSource
from dpestim.statistics import Quantile
from dpestim.statistics import choice as choices
from dpestim.statistics.choice import RANK, Choice
from dpestim.statistics.ranks import Cells, Ranked, coarse, fine, ranked
from dpestim.statistics.summary import grids_of

LEVEL, ALPHA = 0.8, 1e-6


def by_definition(rows, first, last, levels, target, rate):
    """Return the probabilities of all points of a small grid, each by itself."""
    out = []
    for c in range(last - first + 1):
        below = -math.inf if c == 0 else (rows < c).sum()
        upto = math.inf if c == last - first else (rows <= c).sum()
        at = first + c
        j = min(levels, (at & -at).bit_length() - 1 if at else levels)
        weight = (4 if j == levels > 0 else 1) << j
        out.append(weight * math.exp(-rate * max(0, below - target, target - upto)))
    return np.array(out) / sum(out)


@pytest.mark.parametrize(("first", "last", "levels", "epsilon"), [(-11, 9, 3, 4.0), (5, 40, 0, 0.3),
                                                                  (-64, -33, 4, 400.0)])
def test_points_are_chosen_by_the_law_whatever_cells_are_near(first, last, levels, epsilon):
    rng, n = np.random.default_rng(0), 250
    law = ExponentialLaw(Fraction(epsilon), 1 << RANK, -RANK, False)
    for rows, target in itertools.product(([], [3, 3, 3, 7, 8]), (-1.0, 1.5, 3.0)):
        rows = np.array(rows, int)
        known = Ranked.of(rows, np.ones(len(rows), np.int64))
        part = Choice(law, Cells(known, first, last, levels), int(target * 2**RANK))
        truth = by_definition(rows, first, last, levels, target, epsilon / 2)
        of_cells = np.add.reduceat(truth, part.cells.starts()[:-1].clip(max=last - first))
        some = np.diff(part.cells.starts()) > 0
        assert np.allclose(part.probabilities()[some], of_cells[some], rtol=1e-6)
        seen = np.bincount([part.draw(WordSource(int(rng.integers(2**60)))) for _ in range(n)], minlength=len(truth))
        likely = truth * n > 5
        observed, expected = (np.r_[x[likely], x[~likely].sum()] for x in (seen, truth * n))
        if expected[-1] < 1e-9:
            assert not observed[-1]
            observed, expected = observed[:-1], expected[:-1]
        assert len(expected) == 1 or stats.chisquare(observed, expected * (n / expected.sum())).pvalue > ALPHA


@pytest.mark.parametrize("width", [1, 1e3, 1e6])
def test_bounds_that_are_far_too_wide_cost_ranks_and_nothing_else(width):
    x = np.random.default_rng(0).normal(37.3, 3, 4_000)
    found = [Quantile(1.0, q=0.5, bounds=(-20 * width, 120 * width), random_state=k).fit(x).value_ for k in range(7)]
    ranks = [abs((x < value).mean() - 0.5) * len(x) for value in found]
    assert np.median(ranks) < 2 * math.log(13 * 1e3 * width) + 1


@pytest.mark.parametrize("width", [1, 1e3])
def test_whole_numbers_that_many_rows_share_are_found(width):
    x = np.rint(np.random.default_rng(0).normal(40, 12, 20_000))
    found = [Quantile(0.5, q=[0.25, 0.5], bounds=(0, 120 * width), random_state=k).fit(x).value_ for k in range(9)]
    assert (np.median(found, axis=0) == np.quantile(x, [0.25, 0.5])).all()


@pytest.mark.ci
@pytest.mark.parametrize("width", [1, 1e6])
@pytest.mark.parametrize("shape", ["continuous", "heaped", "equal"])
def test_intervals_hold_whatever_the_width_of_the_bounds(width, shape):
    rng = np.random.default_rng(1)
    x = {"continuous": rng.normal(50, 9, 700), "heaped": np.rint(rng.normal(5, 1, 700)) * 10,
         "equal": np.full(700, 7.1)}[shape]
    est = Quantile(4.0, q=[0.1, 0.5], bounds=(-20 * width, 120 * width), level=LEVEL, random_state=0).summarize(x)
    truth, hits = np.quantile(x, [0.1, 0.5], method="inverted_cdf"), 0
    for _ in range(40):
        low, high = est.release().interval(LEVEL)
        hits = hits + ((low <= truth) & (truth <= high))
    assert hits.min() >= stats.binom.ppf(ALPHA, 40, LEVEL)


def test_sorted_points_merge_exactly_and_grids_fit_the_bounds():
    rng = np.random.default_rng(2)
    x, bounds = rng.normal(size=(300, 2)), [(-3.0, 5.0), (1e6, 1e6 + 1)]
    grids = grids_of(tuple(np.transpose(bounds)), 2)
    whole, parts = ranked(x, grids), [ranked(x[rows], grids) for rows in (slice(100, 300), slice(0, 100))]
    for own, a, b in zip(whole, *parts):
        for merged in (a + b, b + a, pickle.loads(pickle.dumps(a)) + b):
            assert merged.points.tolist() == own.points.tolist()
            assert merged.counts.tolist() == own.counts.tolist()
            assert own.total == 300
    assert [len(own.points) for own in ranked(x[:0], grids)] == [0, 0]
    for grid, (low, high) in zip(grids, bounds):
        assert coarse(grid).step <= (high - low) / 2**15
        assert fine(grid).step <= (high - low) / 2**29
        assert max(map(abs, (fine(grid).first, fine(grid).last))) < 1 << 50
    _, last = whole
    assert (last.points.tolist(), last.total) == ([0], 300)  # (clipped)


@pytest.mark.parametrize("levels", [0, 1, 11, 12, 13, 24])
def test_points_before_one_weigh_what_their_multiples_do(levels):
    rng = np.random.default_rng(levels)
    for first in (-(1 << 49), -12_345, 0, 1 << 40):
        cells = Cells(Ranked(np.empty(0, np.int64), np.empty(0, np.int64)), first, first + (1 << 40), levels)
        points = np.r_[np.arange(40), rng.integers(0, 1 << 40, 200), rng.integers(0, 1 << 16, 50) << 24]
        expected = [sum(-(-(at + first) // (1 << j)) * more for j, more in enumerate(cells.more))
                    for at in points.tolist()]
        assert cells.weight_before(points).tolist() == expected


@pytest.mark.parametrize("levels", [0, 1, 2, 12, 13, 24])
def test_stretches_weigh_what_the_points_before_their_ends_do(levels):
    rng = np.random.default_rng(levels)
    for first, beyond in ((-20, 41), (-(1 << 40), 1 << 41), (3, 1 << 20)):
        points = np.unique(rng.integers(0, beyond, 30))
        cells = Cells(Ranked(points, np.ones_like(points)), first, first + beyond - 1, levels)
        most = len(cells.points) - 1
        for begin, end in ((0, most), (2, 2), (1, most - 1)):
            starts, times = cells.spans(begin, end)
            assert starts.tolist() == [0, *cells.starts(begin, end).tolist(), beyond]
            assert times.tolist() == np.diff(cells.weight_before(starts)).tolist()


def test_cells_remember_the_weights_of_the_cells_that_were_asked_for_last():
    cells = Cells(Ranked(np.array([3, 5, 9]), np.array([1, 2, 1])), 0, 12, 2)
    for begin, end in ((0, 4), (0, 4), (1, 3), (0, 4)):
        starts, weights = cells.spans(begin, end)
        assert starts.tolist() == [0, *cells.starts(begin, end).tolist(), 13]
        assert weights.tolist() == np.diff(cells.weight_before(starts)).tolist()


ROWS = [[], [0], [12], [3, 3, 3, 7, 8], [0, 0, 5, 12]]


def distance(rows, c, target, last):
    """Return how far a target is from the ranks of a point c."""
    below, upto = sum(row < c for row in rows), sum(row <= c for row in rows)
    return max(0, below - target if c else 0, target - upto if c < last else 0)


@pytest.mark.parametrize("rows", ROWS)
def test_cells_and_points_have_the_score_of_the_definition(rows):
    cells = Cells(Ranked.of(np.array(rows, np.int64), np.ones(len(rows), np.int64)), -4, 8, 2)
    starts, most = cells.starts(), len(cells.points) - 1
    for target in (-9, -1, 0, 1, 3, 5, 6, 9, 12, 99):  # (in halves)
        truth = [-2 * distance(rows, c, Fraction(target, 2), 12) for c in range(13)]
        assert [cells.score(c, target, 1) for c in range(13)] == truth
        scores = cells.scores(target, 1)
        for score, first, after in zip(scores.tolist(), starts, starts[1:]):
            assert {score} >= set(truth[first:after])
        for begin, end in itertools.combinations_with_replacement(range(most + 1), 2):
            np.testing.assert_array_equal(cells.scores(target, 1, begin, end), scores[2 * begin : 2 * end + 1])


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**30), Fraction(1), Fraction(30), Fraction(400)])
def test_each_coin_is_that_of_the_point_and_hardly_less_than_sure(monkeypatch, epsilon):
    """Nearly all coins are settled by the weight of the cell alone, so that no sample would show a wrong one."""
    asked = []
    monkeypatch.setattr(choices, "surely", lambda weight, word: False)
    monkeypatch.setattr(choices, "accepts", lambda weight, x, *_: asked.append((weight, x)) or True)
    law = ExponentialLaw(epsilon, 1 << RANK, -RANK, False)
    for rows, target in itertools.product(ROWS, (-2, 1, 3, 50)):
        known = Ranked.of(np.array(rows, np.int64), np.ones(len(rows), np.int64))
        part = Choice(law, Cells(known, -4, 8, 2), target << RANK)
        spans = []
        monkeypatch.setattr(choices, "propose",
                            lambda _, stream, times, spans=spans: spans.append(times) or times.argmax())
        part.draw(WordSource(0))
        for place in np.flatnonzero(spans[0]).tolist():  # (each that has points)
            monkeypatch.setattr(choices, "propose", lambda *_, place=place: place)
            point = part.draw(WordSource(place))
            weight, x = asked[-1]
            assert x == epsilon / 2 * distance(rows, point, target, 12)
            low, high = (side * 2**56 for side in exp_bounds(x, 40))
            assert high <= weight <= low + 4


def test_cells_that_two_threads_share_do_not_swap_their_weights():
    known = Ranked(np.array([3, 5, 9]), np.array([1, 2, 1]))
    other = (1, 3), *Cells(known, 0, 12, 2).spans(1, 3)

    class Shared(Cells):
        """What it remembers is at once overwritten by the other thread."""

        @property
        def _spans(self):
            return other

        @_spans.setter
        def _spans(self, value):
            pass

    starts, weights = Shared(known, 0, 12, 2).spans(0, 4)
    assert len(starts) == len(weights) + 1 == 12
