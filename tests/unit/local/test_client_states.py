"""States of rows of several kinds: kept draws and answers, some rows at a time, the cost of all reports, refusals."""

import math
import pickle
import threading
import time
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.exceptions import BudgetExceededError
from dpestim.local import (
    DBitFlipFrequencyEstimator,
    DuchiTransformer,
    GRRFrequencyEstimator,
    LGRRFrequencyEstimator,
    LOLOHAFrequencyEstimator,
    LOSUEFrequencyEstimator,
    MixedEstimator,
    PMTransformer,
    RAPPORFrequencyEstimator,
)

MOODS, PLACES = ["bad", "fair", "good"], ["home", "work"]
FACES = [LGRRFrequencyEstimator, LOSUEFrequencyEstimator, LOLOHAFrequencyEstimator, RAPPORFrequencyEstimator,
         DBitFlipFrequencyEstimator]
STRATEGIES = [{"strategy": "split"}, {"n_sampled": 1}, {"n_sampled": 2}]


def frame(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"id": np.arange(n), "mood": rng.choice(MOODS, n, p=[0.2, 0.3, 0.5]),
                         "sleep": rng.normal(7, 1, n), "place": rng.choice(PLACES, n, p=[0.6, 0.4])})


def weekly(face=LGRRFrequencyEstimator, **more):
    return MixedEstimator([
        ("mood", face(categories=[MOODS]), ["mood"]), ("sleep", PMTransformer(bounds=(4, 10)), ["sleep"]),
        ("place", GRRFrequencyEstimator(categories=[PLACES]), ["place"]),
    ], **{"epsilon": 6.0, "random_state": 0, **more})


@pytest.mark.ci
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("face", FACES)
def test_some_rows_report_each_week_and_every_estimate_is_right(face, strategy):
    # n = 4,000 rows, of which half report in each of 2 weeks, 2 weeks x 4 numbers x 15 settings, |z| < 5
    X, rng = frame(4000), np.random.default_rng(1)
    est = weekly(face, **strategy)
    state = est.client_state(X)
    for _ in range(2):
        X["mood"] = np.where(rng.random(4000) < 0.1, "good", X["mood"])
        rows = rng.permutation(4000)[:2000]
        now = X.iloc[rows]
        server = weekly(face, **strategy).aggregate(est.privatize(now, state=state[rows]))
        wanted = [(now["mood"] == c).mean() for c in MOODS[:2]] + [(now["place"] == "work").mean()]
        f, errors = server.frequencies_, server.standard_errors_
        z = (np.r_[f["mood"][:2], f["place"][1]] - wanted) / np.r_[errors["mood"][:2], errors["place"][1]]
        assert np.abs(z).max() < 5
        assert abs(server.means_["sleep"] - now["sleep"].clip(4, 10).mean()) < 5 * errors["sleep"]
    assert (state.n_reports, len(state)) == (2, 4000)


@pytest.mark.parametrize("face", FACES)
def test_rows_keep_which_columns_they_report(face):
    est, X = weekly(face, n_sampled=2), frame()
    state = est.client_state(X)
    half = np.arange(300) % 2 == 1
    parts = [est.privatize(X[rows], state=state[rows]) for rows in (half, ~half)]
    slots = [est._columns_now()._slots(reports)[:, :, 0] for reports in (*parts, est.privatize(X, state=state))]
    np.testing.assert_array_equal(slots[2][half], slots[0])
    np.testing.assert_array_equal(slots[2][~half], slots[1])
    assert np.bincount(slots[2].ravel()).min() > 150  # of 600, by chance 200 each (standard deviation 8)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_answers_are_kept_where_a_column_is_longitudinal_and_fresh_elsewhere(strategy):
    est, X = weekly(DBitFlipFrequencyEstimator, epsilon=2.0, **strategy), frame()  # (that sends what it keeps)
    state = est.client_state(X)
    one, two = est.privatize(X, state=state), pickle.loads(pickle.dumps(state))
    reports = [one, est.privatize(X, state=two), est.privatize(X, state=state)]
    columns = est._columns_now()
    for number, same in enumerate((True, False, False)):
        mine = [columns.reports_of(number, r)[1] for r in reports]
        assert np.array_equal(mine[0], mine[2]) == same
        np.testing.assert_array_equal(mine[1], mine[2])  # (a copy repeats the seed, too)


def test_the_number_of_threads_and_the_container_change_nothing():
    X = frame(70_000)
    first, *others = [weekly(LOLOHAFrequencyEstimator, n_jobs=n) for n in (None, 2, None)]
    rows = np.arange(70_000)[::-3]
    wanted = first.privatize(X.iloc[rows], state=first.client_state(X)[rows])
    for est, table in zip(others, (X, pl.from_pandas(X))):
        own = table.iloc[rows] if table is X else table[rows]
        np.testing.assert_array_equal(est.privatize(own, state=est.client_state(table)[rows]), wanted)


def test_what_all_reports_promise_is_added_up_exactly():
    laws = [law.epsilon_instant for law in weekly(strategy="split").fit(frame()).randomizers_[:1]]
    for n in (1, 2, 3, 30):
        est, X = weekly(strategy="split"), frame(20)
        state = est.client_state(X)
        for _ in range(n):
            est.privatize(X, state=state)
        promise = est.privacy_of(state)
        assert promise.epsilon == (6 if n == 1 else n * laws[0] + 4 * n)
        assert promise.relaxed_epsilon == (None if n == 1 else min(n * laws[0], 4) + 4 * n)
    assert "column 'mood';" in promise.relaxation
    assert "sleep" not in promise.relaxation
    drawn, X = weekly(n_sampled=2), frame(20)
    state = drawn.client_state(X)
    for _ in range(5):
        drawn.privatize(X, state=state)
    assert drawn.privacy_of(state).relaxed_epsilon == 2 * 5 * 3  # two columns that keep nothing cost most
    assert drawn.longitudinal_privacy_.epsilon == math.inf
    alone = MixedEstimator([("mood", LGRRFrequencyEstimator(categories=[MOODS]), ["mood"])], epsilon=1.0)
    assert alone.longitudinal_privacy_.relaxed_epsilon == 2


def test_a_ledger_pays_what_the_promise_grows_by_before_anything_is_drawn():
    est, X = weekly(strategy="split", random_state=None), frame(40)
    state = est.client_state(X)
    for _ in range(2):
        est.privatize(X, state=state)
    name = est.privacy_of(state).relaxation
    with Ledger(17.0, relaxation=name) as ledger, config_context(strict=True):
        est = weekly(strategy="split", random_state=None)
        est.privatize(X[:9], state=state[:9])
        assert ledger.spent().epsilon == est.privacy_of(state).relaxed_epsilon == 4 + 3 * 4
        est.privatize(X[9:], state=state[9:])
        assert ledger.spent().epsilon == 16
        with pytest.raises(BudgetExceededError):
            est.privatize(X[:9], state=state[:9])
        assert state.n_reports == 3


def test_foreign_states_are_refused_and_change_nothing():
    X, moods = frame(), frame()[["mood"]]
    est, alone = weekly(strategy="split"), LGRRFrequencyEstimator(2.0, categories=[MOODS])
    state, own = est.client_state(X), alone.client_state(moods)
    one = MixedEstimator([("mood", LGRRFrequencyEstimator(categories=[MOODS]), ["mood"])], epsilon=2.0)
    foreign = [(est, X, own), (alone, moods, state), (one, moods, own), (alone, moods, one.client_state(moods)),
               (weekly(n_sampled=1), X, state), (weekly(n_sampled=2), X, weekly(n_sampled=1).client_state(X)),
               (weekly(LOSUEFrequencyEstimator, strategy="split"), X, state), (weekly(epsilon=5.0), X, state)]
    for who, rows, what in foreign:
        with pytest.raises(ValueError, match="same law and the same categories"):
            who.privatize(rows, state=what)
        with pytest.raises(ValueError, match="same law and the same categories"):
            who.privacy_of(what)
        assert what.n_reports == 0
    with pytest.raises(ValueError, match="300 rows of state"):
        est.privatize(X[:9], state=state)
    with pytest.raises(ValueError, match="9 rows of this part"):
        est.privatize(X, state=state[:9])
    with pytest.raises(ValueError, match="client_state"):
        est.privatize(X, state=np.zeros(300))
    with pytest.raises(TypeError, match=r"take state\[rows\]"):
        list(state)


def test_states_need_a_longitudinal_column_and_rounds_are_counted_apart():
    X = frame(60)
    with pytest.raises(ValueError, match="client_state needs a longitudinal estimator"):
        MixedEstimator([("sleep", PMTransformer(bounds=(4, 10)), ["sleep"])]).client_state(X)
    one, two = weekly().fit(X), weekly(random_state=1).fit(X)
    with pytest.raises(ValueError, match="of the same users separately"):
        one.merge(two, users="same")
    assert one.merge(two).n_users_ == 120
    assert "of the same users separately" in str(one.privacy_)


def test_numbers_that_share_a_report_stand_beside_kept_answers():
    X = np.column_stack([np.random.default_rng(0).uniform(-0.5, 0.5, (3000, 2)), np.arange(3000) % 3])
    est = MixedEstimator([("where", DuchiTransformer(bounds=(-1, 1), strategy="joint"), [0, 1]),
                          ("mood", LGRRFrequencyEstimator(categories=[[0, 1, 2]]), [2])],
                         epsilon=8.0, strategy="split", random_state=0)
    state, rows = est.client_state(X), np.arange(2000)[::-1]
    est.aggregate(est.privatize(X[rows], state=state[rows]))
    for j in (0, 1):  # n = 2,000, |z| < 5 for 2 means
        assert abs(est.means_[j] - X[:2000, j].mean()) < 5 * est.standard_errors_[j]
    assert est.privacy_of(state[2000:]).epsilon == 0
    assert est.privacy_of(state).epsilon == Fraction(8)


class SlowLedger:
    """A ledger whose charges take a while, so that threads meet there."""

    uuid, users = "one", ""

    def __init__(self):
        self.charged = []

    def charge(self, guarantee, **about):
        self.charged.append(guarantee)
        time.sleep(0.05)


def test_threads_that_share_a_state_pay_for_each_report():
    ledger = SlowLedger()
    client = LGRRFrequencyEstimator(2.0, categories=[MOODS], ledger=ledger)
    X = np.array([["good"]] * 5)
    state = client.client_state(X)
    threads = [threading.Thread(target=client.privatize, args=(X,), kwargs={"state": each})
               for each in (state, state, state[[1, 0, 2, 3, 4]])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stated = client.privacy_of(state)
    assert state.n_reports == 3
    assert sum(one.epsilon for one in ledger.charged) == stated.epsilon
    assert pickle.loads(pickle.dumps(state)).n_reports == 3
