"""Boosting: what one row moves, given all answers; what curves are found; what is refused."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpestim import config_context
from dpestim.ensemble import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from dpestim.ensemble._rounds import Cost, Histograms, boost, merged

BOX = {"delta": 1e-5, "bounds": (-1, 1), "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(20_000, 4))


class Told(Histograms):
    """Answers as it is told to, whatever the rows are, and keeps what it would have added noise to."""

    def __init__(self, answers, *args):
        super().__init__(*args)
        self.answers, self.integers = answers, []

    def _noisy(self, integers):
        self.integers.append(integers.ravel().copy())
        return self.answers[len(self.integers) - 1][: integers.size].reshape(integers.shape)


def moved(cost, kind, extreme):
    """Return the largest change of all integers by one row, given all answers: every pair of rows is tried."""
    rng, most = np.random.default_rng(1), 0.0
    targets = [-1.0, 1.0] if kind == 0 else range(max(kind, 2))
    rows = list(itertools.product(range(3), range(2), targets))
    n_bins = [1, 3, 2]
    n_answers = cost.n_terms * (1 + cost.n_rounds)
    answers = [rng.choice([-extreme, extreme], 16) for _ in range(n_answers)]
    for at in range(cost.n_terms):
        answers[at] = np.full(16, 100 * cost.weight)

    def integers(row):
        known = [(0, 0, targets[0]), *([row] if row else [])]
        codes = [np.array([r[j] for r in known]) for j in (0, 1)]
        codes.insert(0, np.zeros(len(known), int))
        y = np.array([r[2] for r in known], float if kind == 0 else int)
        asked = Told(answers, codes, n_bins, y, kind, cost, None, None)
        boost(asked, [False, True, False], 64, cost.n_rounds, kind, 1.0)
        return np.concatenate(asked.integers)

    found = {row: integers(row) for row in rows}
    for a, b in itertools.combinations(rows, 2) if cost.replaces else ((row, None) for row in rows):
        off = np.array([abs(int(v)) for v in found[a] - (integers(None) if b is None else found[b])], object)
        most = max(most, Fraction(off.sum()) if cost.pure else Fraction((off * off).sum()))
    return most if cost.pure else Fraction(math.isqrt(int(most) << 80), 1 << 40)


@pytest.mark.parametrize("kind", [0, 1, 3])
@pytest.mark.parametrize("replaces", [True, False])
@pytest.mark.parametrize("pure", [True, False])
def test_one_row_moves_all_histograms_by_what_is_claimed(kind, replaces, pure):
    cost = Cost(3, 3, max(kind, 1), replaces, pure)
    most = max(moved(cost, kind, extreme) for extreme in (1e5, 1e8))
    assert most <= cost.sensitivity
    assert most > 0.6 * cost.sensitivity  # so that half of it is refused
    if replaces and kind == 1:  # one that forgets that a replaced row has two residuals
        assert most > replace(cost, replaces=False).sensitivity


def test_all_that_names_a_cost_matters():
    cost = Cost(3, 4, 1, True, False)
    for change in ({"n_terms": 4}, {"n_rounds": 5}, {"n_outputs": 3}, {"replaces": False}, {"pure": True}):
        assert replace(cost, **change).sensitivity != cost.sensitivity
    law = cost.law(Fraction(1), Fraction(1, 10**5))
    assert law.sensitivity == cost.sensitivity
    assert law.sigma >= float(cost.sensitivity)


def test_histograms_are_not_copied():
    import pickle

    with pytest.raises(TypeError, match="used twice"):
        pickle.dumps(Histograms([], [], np.zeros(0), 1, None, None, None))


def test_bins_are_merged_by_mass_in_order():
    group = merged(np.array([0.0, 100, 0, -5, 50, 50, 0, 0]), 4)
    assert (np.diff(group) >= 0).all()
    assert group.max() + 1 <= 4
    assert group[1] < group[4] <= group[5]
    assert merged(np.zeros(8), 4).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_crooked_curve_is_found_and_noise_is_not():
    model = DPGradientBoostingClassifier(1.0, classes=[0, 1], **BOX).fit(X, np.abs(X[:, 0]) > 0.5)
    assert model.score(X, np.abs(X[:, 0]) > 0.5) > 0.93
    spread = [np.ptp(scores) for scores in model.term_scores_]
    assert spread[0] > 3 > 4 * max(spread[1:])
    assert model.privacy_.curve is not None
    assert [len(a) for a in model.term_scores_] == [len(a) for a in model.term_standard_errors_]


def test_pairs_find_what_sums_cannot():
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    alone = DPGradientBoostingClassifier(1.0, classes=[0, 1], **BOX).fit(X, y)
    pair = DPGradientBoostingClassifier(1.0, classes=[0, 1], interactions=[(0, 1)], **BOX).fit(X, y)
    assert alone.score(X, y) < 0.6 < 0.9 < pair.score(X, y)
    assert pair.term_features_ == [(0,), (1,), (2,), (3,), (0, 1)]


def test_categories_have_no_order_and_rare_classes_are_ranked():
    codes = RNG.integers(0, 10, size=len(X))
    y = RNG.uniform(size=len(X)) < np.where(codes % 3 == 1, 0.03, 0.002)
    rows = np.column_stack([codes, X[:, 0]])
    model = DPGradientBoostingClassifier(2.0, delta=1e-5, bounds=([0, -1], [9, 1]), categorical_features=[0],
                                         classes=[False, True], random_state=0).fit(rows, y)
    scores = model.term_scores_[0][:, 0]
    assert len(scores) == 10
    assert scores[[1, 4, 7]].min() > np.delete(scores, [1, 4, 7]).max()
    assert abs(model.predict_proba(rows)[:, 1].mean() - y.mean()) < 0.01


def test_numbers_in_their_own_units_and_many_columns_of_few_rows():
    y = 1000 + 50 * np.abs(X[:, 1])
    model = DPGradientBoostingRegressor(1.0, target_bounds=(1000, 1050), **BOX).fit(X, y)
    assert model.score(X, y) > 0.9
    few = RNG.uniform(-1, 1, size=(300, 60))
    model = DPGradientBoostingRegressor(0.5, target_bounds=(-1, 1), **BOX).fit(few, few[:, 0])
    assert np.abs(model.predict(few)).max() <= 1  # (within the bounds; little can be learned)


def test_what_does_not_fit_is_refused_by_name():
    y = X[:, 0] > 0
    for name, values in {
        "max_iter": (0, 1.5, True, 1001), "max_bins": (1, 257, "8", [8, 8], None), "bounds": ((1, 0), ([0], [1, 1])),
        "categorical_features": ([4], [0.5], "a", [True]), "interactions": ([(0, 0)], [(0, 9)], 3, [(0, 1, 2)]),
        "neighbours": ("rows", None), "delta": (1.0, -1),
    }.items():
        for value in values:
            model = DPGradientBoostingClassifier(**{"classes": [0, 1], **BOX, name: value})
            with pytest.raises(ValueError, match=name):
                model.fit(X[:50], y[:50])
    with pytest.raises(ValueError, match="whole numbers"):
        DPGradientBoostingClassifier(classes=[0, 1], **{**BOX, "bounds": (-0.5, 1)}, categorical_features=[1]).fit(X, y)
    with pytest.raises(ValueError, match="target_bounds"):
        DPGradientBoostingRegressor(target_bounds=(1, 1), **BOX).fit(X, y)


def test_strict_mode_takes_what_is_missing_as_the_lowest():
    rows, y = X[:100].copy(), X[:100, 1] > 0
    rows[3, 1] = np.nan
    other = rows.copy()
    other[3, 1] = -1
    with config_context(strict=True):
        one, two = (DPGradientBoostingClassifier(1.0, classes=[0, 1], **BOX).fit(r, y.astype(int))
                    for r in (rows, other))
    assert np.array_equal(one.scores_, two.scores_)
