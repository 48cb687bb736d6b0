"""The adaptive estimator: what it chooses, that it is the chosen estimator in all it does, and that it sees no data."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import dpestim.local
from dpestim.local import AdaptiveFrequencyEstimator, GRRFrequencyEstimator, SSFrequencyEstimator, plan

BIG = [range(300)]


def adaptive(epsilon=1.0, categories=BIG, **params):
    return AdaptiveFrequencyEstimator(epsilon, categories=categories, **params)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("d", [2, 9, 300])
def test_the_error_is_the_least_there_is(epsilon, d):
    law = adaptive(epsilon, [range(d)]).randomizer()
    best = plan(n_users=1, n_categories=d, epsilon=epsilon).best
    assert np.sqrt(np.mean(law.variance(1, np.full(d, 1 / d)))) == pytest.approx(best.rmse, rel=1e-6)


def test_bits_and_time_stay_near_the_least_error():
    rows = {row.mechanism: row for row in plan(n_users=10**6, n_categories=300, epsilon=1).rows}
    least = min(row.rmse for row in rows.values())
    for objective, cost in (("bits", lambda r: r.bits), ("time", lambda r: r.server_s + r.client_us)):
        for tolerance in (0.01, 0.1, 0.5):
            (name,) = adaptive(objective=objective, tolerance=tolerance).chosen_
            near = [row for row in rows.values() if row.rmse <= (1 + tolerance) * least]
            assert cost(rows[name]) == min(map(cost, near))
    assert adaptive(objective="bits").chosen_ == ["PGRFrequencyEstimator"]


def test_it_is_the_estimator_that_it_chose():
    X = np.random.default_rng(0).integers(0, 300, (500, 1))
    mine = adaptive(random_state=3, postprocess="norm_sub").fit(X)
    assert mine.chosen_ == ["SSFrequencyEstimator"]
    theirs = SSFrequencyEstimator(1.0, categories=BIG, random_state=3, postprocess="norm_sub").fit(X)
    np.testing.assert_array_equal(mine.frequencies_[0], theirs.frequencies_[0])
    np.testing.assert_array_equal(adaptive(random_state=1).privatize(X),
                                  SSFrequencyEstimator(1.0, categories=BIG, random_state=1).privatize(X))
    assert mine.privacy_.epsilon == 1
    assert mine.randomizers_ == theirs.randomizers_


def test_each_column_has_its_own_and_a_reason():
    est = adaptive(4.0, {"sex": ["f", "m"], "town": range(1000)})
    assert est.chosen_ == ["GRRFrequencyEstimator", "SSFrequencyEstimator"]
    assert est.reason_[1].startswith("SSFrequencyEstimator has the least error for 1,000 categories and epsilon = 2: ")
    est.set_params(objective="bits")
    assert est.chosen_[1] == "PGRFrequencyEstimator"
    assert "mechanisms whose error is at most 10 % above the least" in est.reason_[1]
    assert [type(law).__name__ for law in map(est.randomizer, ("sex", "town"))] == ["GRR", "PGR"]
    for name in est.chosen_:
        assert hasattr(dpestim.local, name)


def test_no_row_has_a_part_in_the_choice():
    few, many = np.zeros((10, 1), int), np.random.default_rng(0).integers(0, 300, (400, 1))
    assert adaptive().fit(few).randomizers_ == adaptive().fit(many).randomizers_ == [adaptive().randomizer()]


def test_what_was_chosen_stays_until_the_next_fit():
    X = np.zeros((10, 1), int)
    est = adaptive(random_state=0).fit(X)
    before = est.reason_
    est.set_params(objective="bits", epsilon=0.2)
    assert (est.chosen_, est.reason_) == (["SSFrequencyEstimator"], before)
    assert pickle.loads(pickle.dumps(est)).reason_ == before
    assert clone(est).chosen_ == ["PGRFrequencyEstimator"]
    assert est.fit(X).chosen_ == ["PGRFrequencyEstimator"]


def test_only_the_same_choice_is_merged():
    X = np.zeros((10, 1), int)
    a, b = adaptive().fit(X), adaptive(tolerance=0.2).fit(X)
    assert a.merge(b).n_users_ == 20
    with pytest.raises(ValueError, match="other must have the same"):
        a.merge(adaptive(objective="bits").fit(X))
    with pytest.raises(ValueError, match="other must be a AdaptiveFrequencyEstimator"):
        a.merge(SSFrequencyEstimator(categories=BIG).fit(X))


def test_a_search_over_epsilon_may_change_the_mechanism():
    X = np.random.default_rng(0).integers(0, 12, (200, 1))
    search = GridSearchCV(adaptive(categories=[range(12)], random_state=0), {"epsilon": [0.5, 5.0]}, cv=2).fit(X)
    assert search.best_params_ == {"epsilon": 5.0}
    assert search.best_estimator_.chosen_ == ["GRRFrequencyEstimator"]
    assert search.best_estimator_.randomizers_ == GRRFrequencyEstimator(5.0, categories=[range(12)]).fit(X).randomizers_
    assert adaptive(0.5, [range(12)]).chosen_ != ["GRRFrequencyEstimator"]


@pytest.mark.parametrize(("bad", "match"), [
    ({"objective": "error"}, "objective must be one of"),
    ({"objective": None}, "objective must be one of"),
    ({"tolerance": -0.1}, "tolerance must be a finite number of at least 0"),
    ({"tolerance": float("nan")}, "tolerance must be a finite number of at least 0"),
    ({"tolerance": True}, "tolerance must be a finite number of at least 0"),
    ({"n_users": 0}, "n_users must be None or an integer from 1"),
    ({"n_users": 10.0}, "n_users must be None or an integer from 1"),
    ({"epsilon": 81.0}, "epsilon must be"),
])
def test_what_does_not_fit_is_refused(bad, match):
    with pytest.raises(ValueError, match=match):
        adaptive(**bad).fit(np.zeros((10, 1), int))
