"""Local estimators behind a shuffler: the promise, who pays, what the verbs do, and what is refused."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from dpestim import config_context
from dpestim.accounting import BudgetExceededError, Ledger
from dpestim.exceptions import PrivacyLeakWarning
from dpestim.local import (
    AdaptiveFrequencyEstimator,
    DistributionEstimator,
    DuchiTransformer,
    GRRFrequencyEstimator,
    HRFrequencyEstimator,
    LDPSGDClassifier,
    MeanEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    PersonalizedEstimator,
    PMTransformer,
    PrivKVMEstimator,
    SSFrequencyEstimator,
    URRFrequencyEstimator,
)
from dpestim.privacy import Neighbours
from dpestim.shuffle import plan
from dpestim.shuffle.amplification import best_delta, clones, exact_delta, largest_local
from dpestim.shuffle.shuffled import ShuffledEstimator

DELTA = Fraction(1, 10**6)
LETTERS = ["a", "b", "c"]
GRR = GRRFrequencyEstimator(categories=[LETTERS], random_state=0)
X = np.repeat([["a"], ["b"], ["c"]], [1000, 600, 400], axis=0).astype(object)
NUMBERS = np.random.default_rng(0).uniform(0, 1, (2000, 2))


def shuffled(estimator=GRR, epsilon=1.0, delta=DELTA, **params):
    return ShuffledEstimator(estimator, epsilon, delta=delta, **params)


def test_the_promise():
    est = shuffled().fit(X)
    promise = est.privacy_
    assert (promise.epsilon, promise.delta, promise.model) == (1, DELTA, "shuffle")
    assert promise.neighbours is Neighbours.SUBSTITUTION
    assert promise.seeded
    assert "at least 2000 users" in str(promise)
    assert est.local_privacy_.epsilon == est.local_epsilon_ > 3
    assert est.local_privacy_.model == "local"
    # the realised law keeps it, and hardly a larger epsilon would
    law = est.estimator_.randomizer()
    assert best_delta(2000, law, 1) <= DELTA
    assert best_delta(2000, type(law).make(law.epsilon * Fraction(1001, 1000), 3), 1) > DELTA
    assert shuffled(n_users=2000).privacy_ == promise


def test_the_truth_for_a_few_users():
    # what is certified for few users is compared with all that can happen
    for n, delta in ((4, 0.05), (7, 0.01)):
        est = shuffled(epsilon=0.5, delta=delta, n_users=n).fit(X[:n])
        rows = est.estimator_.randomizer().transition_matrix()
        assert est.local_epsilon_ > 0.5
        assert exact_delta(rows, n, 0.5) <= delta
        # a twin that takes the users for more than they are is found out
        wrong = largest_local(None, 20 * n, Fraction(1, 2), Fraction(delta))
        twin = GRRFrequencyEstimator(wrong, categories=[LETTERS]).randomizer().transition_matrix()
        assert exact_delta(twin, n, 0.5) > delta


@pytest.mark.law
@pytest.mark.filterwarnings("ignore:.* has an error of about")
@pytest.mark.parametrize("estimator", [
    OUEFrequencyEstimator(categories=[LETTERS]),
    HRFrequencyEstimator(categories=[LETTERS]),
    OLHFrequencyEstimator(categories=[LETTERS]),
])
def test_laws_of_categories(estimator):
    est = shuffled(clone(estimator).set_params(random_state=0)).fit(X)
    assert abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 6 * est.standard_errors_[0].max()
    law = est.estimator_.randomizer()
    assert best_delta(2000, law, 1) <= DELTA
    by_clones = shuffled(estimator, bound="clones").fit(X)
    assert by_clones.local_epsilon_ <= est.local_epsilon_ * Fraction(1001, 1000)
    assert clones(2000, by_clones.local_epsilon_, DELTA) <= 1


def test_rows_of_numbers():
    for transformer in (PMTransformer(bounds=(0, 1)), PMTransformer(bounds=(0, 1), strategy="sample"),
                        DuchiTransformer(bounds=(0, 1), strategy="joint")):
        est = shuffled(MeanEstimator(transformer.set_params(random_state=0))).fit(NUMBERS)
        assert abs(est.mean_ - 0.5).max() < 6 * est.standard_error_.max()
        assert est.local_epsilon_ == shuffled(est.estimator).fit(NUMBERS[::-1]).local_epsilon_
        # the whole row is one message
        assert clones(2000, est.local_epsilon_, DELTA) <= 1 < clones(2000, est.local_epsilon_ * 1.01, DELTA)
    one = shuffled(DistributionEstimator(PMTransformer(bounds=(0, 1), random_state=0, grid=16), n_bins=8,
                                         smoothing=True))
    assert one.fit(NUMBERS[:, :1]).distribution_[0].sum() == pytest.approx(1)
    assert one.quantile(0.5).shape == (1,)


def test_the_verbs():
    est = shuffled(n_users=2000)
    messages = est.encode(X)
    mixed = est.shuffle(messages)
    assert not np.array_equal(messages, mixed)
    assert np.array_equal(np.sort(messages, axis=0), np.sort(mixed, axis=0))
    assert np.array_equal(est.analyse(mixed).frequencies_, shuffled().fit(X).frequencies_)
    assert est.n_users_ == 2000
    assert np.array_equal(clone(est).analyse(messages).release(), est.release())
    pairs = np.column_stack([X, X[::-1]])
    rows = shuffled(GRRFrequencyEstimator(categories=[LETTERS, LETTERS], random_state=0), n_users=2000)
    messages = rows.encode(pairs)
    mixed = rows.shuffle(messages)
    assert sorted(map(tuple, messages.tolist())) == sorted(map(tuple, mixed.tolist()))  # rows stay whole

    class Backwards:
        @staticmethod
        def distance(n):
            return 0.0

        def shuffle(self, items):
            assert items.shape == (2000, 2)
            return items[::-1]

    assert np.array_equal(rows.shuffle(messages, Backwards()), messages[::-1])
    numbers = shuffled(MeanEstimator(PMTransformer(bounds=(0, 1), random_state=0)), n_users=2000)
    sent = numbers.encode(NUMBERS)
    assert np.array_equal(numbers.analyse(numbers.shuffle(sent)).mean_, clone(numbers).fit(NUMBERS).mean_)


def test_who_pays():
    ledger = Ledger(2, delta=2 * DELTA, durability="fast")
    est = shuffled(clone(GRR).set_params(ledger=ledger), n_users=2000).fit(X)
    assert ledger.spent().epsilon == 1
    assert ledger.spent().delta == DELTA
    assert ledger.spent().model == "shuffle"
    est.encode(X)
    assert ledger.spent().epsilon == 2
    with pytest.raises(BudgetExceededError):
        est.fit(X)
    est.score(X)
    with Ledger(1, delta=DELTA, durability="fast") as block:
        shuffled().fit(X)
    assert block.spent().epsilon == 1


def test_colluding_users():
    est, fewer = shuffled(colluding=1000).fit(X), shuffled().fit(X[:1000])
    assert est.local_epsilon_ == fewer.local_epsilon_
    left = [est.privacy_against(k).epsilon for k in (0, 1000, 1500, 1999)]
    assert left == sorted(left)
    assert left[:2] == [1, 1] < left[2:]
    assert left[-1] <= est.local_epsilon_
    for bad in (-1, 2000, 1.5):
        with pytest.raises(ValueError, match="colluding"):
            est.privacy_against(bad)


def test_too_few_users():
    est = shuffled(delta=1e-9).fit(X[:20])
    assert est.local_epsilon_ == est.privacy_.epsilon == 1
    assert est.privacy_.delta == 0
    assert "too small for amplification" in str(est.privacy_)


def test_merging_is_of_shuffles():
    one = shuffled(n_users=1000).fit(X[::2])
    two = shuffled(clone(GRR).set_params(random_state=1), n_users=1000).fit(X[1::2])
    before = pickle.loads(pickle.dumps(one))
    both = pickle.loads(pickle.dumps(one)).merge(two)
    assert both.n_users_ == 2000
    assert (both.privacy_.epsilon, both.privacy_.delta) == (1, DELTA)
    assert "2 shuffles" in str(both.privacy_)
    same = pickle.loads(pickle.dumps(one)).merge(two, users="same")
    assert (same.privacy_.epsilon, same.privacy_.delta) == (2, 2 * DELTA)
    other = shuffled(clone(GRR).set_params(random_state=2)).fit(X)  # more users: another law
    for bad in (other, one, clone(two), object(), before):
        with pytest.raises(ValueError, match="other"):
            one.merge(bad)
    assert np.array_equal(one.frequencies_, before.frequencies_)
    assert not hasattr(one, "partial_fit")


def test_it_is_an_estimator():
    est = shuffled()
    for ask in (lambda: est.privacy_against(1), lambda: est.local_epsilon_, lambda: est.score(X)):
        with pytest.raises(NotFittedError):
            ask()
    assert not hasattr(est, "frequencies_")
    est.fit(X)
    twin = pickle.loads(pickle.dumps(est))
    assert twin.privacy_ == est.privacy_
    assert np.array_equal(twin.frequencies_, est.frequencies_)
    assert not hasattr(clone(est), "frequencies_")
    frozen = est.local_epsilon_
    est.set_params(epsilon=0.5, estimator__random_state=3)
    assert (est.local_epsilon_, est.privacy_.epsilon) == (frozen, 1)
    assert est.fit(X).local_epsilon_ < frozen
    copied = est.estimator_
    copied.partial_fit(X)
    assert est.n_users_ == 2000
    assert est.confidence_interval()[0].shape == (3, 2)
    search = GridSearchCV(shuffled(), {"epsilon": [0.25, 2.0]}, cv=2).fit(X[np.random.default_rng(0).permutation(2000)])
    assert search.best_params_["epsilon"] in (0.25, 2.0)
    assert GRR.epsilon == 1.0  # who was given stays as it was


def test_strict_mode_and_learned_domains():
    with config_context(strict=True):
        est = shuffled().fit(np.array([["a"], ["what"]] * 500, dtype=object))
        assert est.privacy_.epsilon == 1
        for bad in (lambda: est.score(X), lambda: shuffled(GRRFrequencyEstimator()).fit(X)):
            with pytest.raises(ValueError, match="strict"):
                bad()
    with pytest.warns(PrivacyLeakWarning):
        est = shuffled(GRRFrequencyEstimator()).fit(X)
    assert est.privacy_.epsilon == float("inf")


@pytest.mark.parametrize(("params", "name"), [
    ({"epsilon": 0}, "epsilon"), ({"epsilon": "1"}, "epsilon"), ({"delta": None}, "delta"), ({"delta": 1}, "delta"),
    ({"bound": "erlingsson"}, "bound"), ({"colluding": -1}, "colluding"), ({"colluding": 2000}, "colluding"),
    ({"n_users": 2001}, "n_users"), ({"n_users": 0}, "n_users"), ({"estimator": object()}, "estimator"),
    ({"estimator": PMTransformer(bounds=(0, 1))}, "estimator"),
    ({"estimator": PersonalizedEstimator(GRR)}, "estimator"),
    ({"estimator": PrivKVMEstimator(keys=LETTERS, n_rounds=2)}, "several rounds"),
    ({"estimator": LDPSGDClassifier(classes=LETTERS)}, "estimator"),
    ({"estimator": URRFrequencyEstimator(categories=[LETTERS], non_sensitive=[["a"]])}, "estimator"),
    ({"estimator": SSFrequencyEstimator(categories=[LETTERS]), "bound": "blanket"}, "law"),
])
def test_bad_parameters(params, name):
    ledger = Ledger(2, delta=2 * DELTA, durability="fast")
    est = shuffled(**params)
    with ledger, pytest.raises(ValueError, match=name):
        est.fit(X)
    assert not ledger.spent().epsilon
    assert not est.__sklearn_is_fitted__()


def test_bad_rows_and_messages():
    est = shuffled(n_users=2000)
    with pytest.raises(ValueError, match="column 0"):
        est.fit(np.array([["secret"]] * 2000, dtype=object))
    messages = est.encode(X)
    for bad in (messages[:-1], messages.astype(float), messages + np.uint8(3), None, messages[:0]):
        with pytest.raises(ValueError, match=r"n_users|report"):
            est.analyse(bad)
    for bad in (None, messages.tolist(), messages[:0], messages.astype(float)):
        with pytest.raises(ValueError, match="messages"):
            est.shuffle(bad)
    with pytest.raises(ValueError, match="n_users"):
        shuffled().encode(X)
    with pytest.raises(ValueError, match="users"):
        shuffled().fit(X).merge(est, users="all")


# ---------------------------------------------------------------- which mechanism


def test_a_law_that_is_far_from_the_best_is_warned_of():
    with pytest.warns(UserWarning, match=r"OUE.* has an error of about 27 users.*GRRFrequencyEstimator of 7"):
        shuffled(OUEFrequencyEstimator(categories=[LETTERS], random_state=0)).fit(X)


@pytest.mark.ci
@pytest.mark.law
def test_adaptive_takes_what_is_best_behind_the_shuffler():
    # locally, with 300 categories and an epsilon of 1, direct responses have far more error than what it takes
    domain = [list(range(300))]
    assert AdaptiveFrequencyEstimator(1.0, categories=domain).chosen_ != ["GRRFrequencyEstimator"]
    rows = np.random.default_rng(0).integers(0, 300, (5000, 1))
    est = shuffled(AdaptiveFrequencyEstimator(categories=domain, random_state=0), n_users=5000)
    direct = shuffled(GRRFrequencyEstimator(categories=domain, random_state=0), n_users=5000)
    messages = est.encode(rows)
    np.testing.assert_array_equal(messages, direct.encode(rows))
    assert est.analyse(est.shuffle(messages)).local_epsilon_ == direct.fit(rows).local_epsilon_
    # in a domain that is so large that shuffling gains nothing it is still what is best
    few = shuffled(AdaptiveFrequencyEstimator(categories=[range(1000)], random_state=0)).fit(rows[:20])
    rows = plan(n_users=20, n_categories=1000, epsilon=1.0).rows
    local = [row for row in rows if row.mechanism != "ShuffledHistogram"]
    assert type(few.estimator_).__name__ == local[0].mechanism


@pytest.mark.ci
@pytest.mark.law
def test_the_errors_of_a_plan_are_those_of_a_simulation():
    """n = 200 surveys of 9 categories: a right root mean square is within 6 % of this with probability 0.999."""
    found = plan(n_users=2000, n_categories=9, epsilon=1.0)
    row = next(row for row in found.rows if row.mechanism == "GRRFrequencyEstimator")
    rows = np.repeat(np.arange(9), 223)[:2000, None]
    truth = np.bincount(rows[:, 0], minlength=9) / 2000
    est = shuffled(GRRFrequencyEstimator(categories=[range(9)], random_state=1), n_users=2000)
    errors = np.array([est.fit(rows).frequencies_[0] - truth for est.estimator.random_state in range(200)])
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(row.rmse, rel=0.06)
    assert 0.9 <= np.mean(np.abs(errors).max(axis=1) <= row.max_error) <= 1
    assert found.best.mechanism == "ShuffledHistogram"
    assert "ShuffledHistogram" in str(found)
    assert list(found.to_frame()) == list(row._fields)


@pytest.mark.parametrize(("name", "value"), [("n_users", 0), ("n_categories", 1), ("epsilon", 0), ("delta", 0),
                                             ("colluding", 10), ("probability", 1), ("n_users", 10**15 + 1)])
def test_plans_refuse_what_does_not_fit(name, value):
    with pytest.raises(ValueError, match=name):
        plan(**{"n_users": 10, "n_categories": 3, "epsilon": 1.0, name: value})


@pytest.mark.ci
@pytest.mark.law
def test_plans_find_the_fewest_users_and_the_least_epsilon():
    found = plan(n_categories=3, n_users=40, target_rmse=0.05, colluding=4)
    assert (found.n_users, found.target_rmse) == (40, 0.05)
    assert found.best.rmse <= 0.05
    unit = 10.0 ** (math.floor(math.log10(found.epsilon)) - 2)
    assert plan(n_categories=3, n_users=40, epsilon=found.epsilon - unit, colluding=4).best.rmse > 0.05
    fewest = plan(n_categories=3, epsilon=found.epsilon, target_rmse=0.05, colluding=4)
    assert fewest.n_users <= 40
    assert fewest.best.rmse <= 0.05
    assert plan(n_categories=3, n_users=fewest.n_users - 1, epsilon=found.epsilon, colluding=4).best.rmse > 0.05


@pytest.mark.parametrize("given", [{}, {"n_users": 9}, {"n_users": 9, "epsilon": 1.0, "target_rmse": 0.1}])
def test_plans_need_two_of_three(given):
    with pytest.raises(ValueError, match="exactly one"):
        plan(n_categories=3, **given)


def test_plans_say_what_nobody_keeps():
    with pytest.raises(ValueError, match="target_rmse is too small"):
        plan(n_categories=3, n_users=2, target_rmse=1e-40)
    with pytest.raises(ValueError, match="target_rmse must be"):
        plan(n_categories=3, n_users=2, target_rmse=1)
