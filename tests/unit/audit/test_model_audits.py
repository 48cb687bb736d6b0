"""Audits of models by one fit: the bound is valid by exact enumeration, and faults are found."""

import itertools
import math
import pickle

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom
from sklearn.base import BaseEstimator
from sklearn.naive_bayes import GaussianNB

from dpestim import Categories, Domain, Numbers, config_context
from dpestim.accounting import Ledger
from dpestim.audit import audit_model
from dpestim.audit.canaries import declared_columns, draw
from dpestim.audit.one_run import chance, lower_bound
from dpestim.ensemble import DPGradientBoostingClassifier
from dpestim.linear_model import DPLogisticRegression, DPRidge
from dpestim.naive_bayes import DPCategoricalNB, DPGaussianNB
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.synthesis import MarginalSynthesizer

X = np.random.default_rng(0).uniform(-1, 1, (20, 60))
Y = (X[:, 0] > 0).astype(int)


# ---------------------------------------------------------------- the bound


def most_right(m, epsilon, delta, v):
    """Return the largest P[V >= v] of all mechanisms from m coins to m guesses, by a linear program."""
    coins = list(itertools.product((0, 1), repeat=m))
    n = len(coins)
    turned = [(a, b) for a, b in itertools.permutations(range(n), 2)
              if sum(x != y for x, y in zip(coins[a], coins[b])) == 1]
    size = n * n + len(turned) * n  # M[s, t], and what is above e^epsilon times the neighbour's
    above, most = [], []
    for k, (a, b) in enumerate(turned):
        total = np.zeros(size)
        total[n * n + k * n : n * n + (k + 1) * n] = 1
        above.append(total)
        most.append(delta)
        for t in range(n):
            line = np.zeros(size)
            line[[a * n + t, b * n + t, n * n + k * n + t]] = 1, -math.exp(epsilon), -1
            above.append(line)
            most.append(0)
    sums = np.zeros((n, size))
    for s in range(n):
        sums[s, s * n : (s + 1) * n] = 1
    right = [sum(x == y for x, y in zip(s, t)) >= v for s in coins for t in coins]
    goal = np.concatenate([-np.array(right, float) / n, np.zeros(size - n * n)])
    return -linprog(goal, A_ub=np.array(above), b_ub=most, A_eq=sums, b_eq=np.ones(n)).fun


@pytest.mark.parametrize(("m", "epsilon", "delta"), [(2, 0.3, 0.02), (3, 0.3, 0.0), (3, 1.0, 0.05)])
def test_no_mechanism_guesses_more_than_the_bound_and_one_attains_it(m, epsilon, delta):
    for v in range(1, m + 1):
        assert most_right(m, epsilon, delta, v) <= chance(v, m, m, epsilon, delta) + 1e-9
    assert most_right(m, epsilon, delta, m) == pytest.approx(chance(m, m, m, epsilon, delta), abs=1e-6)
    if delta:
        assert most_right(m, epsilon, delta, m) > chance(m, m, m, epsilon) + delta / 2  # (delta is needed)


def false_alarms(law, epsilon, m, delta, error):
    """Return the exact probability that the bound is above epsilon, for a law of the number of right guesses."""
    return sum(p for v, p in enumerate(law) if p and lower_bound(v, m, m, delta, error) > epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("error", [0.001, 0.05])
def test_bounds_are_false_as_often_as_declared_at_most(epsilon, error):
    m, keep = 60, math.exp(epsilon) / (1 + math.exp(epsilon))
    law = binom.pmf(np.arange(m + 1), m, keep)
    assert false_alarms(law, epsilon, m, 0.0, error) <= error
    assert false_alarms(law, 0.5 * epsilon, m, 0.0, error) > error or epsilon < 0.5  # (and it is not idle)


def test_bounds_hold_where_delta_reveals_coins():
    """With probability m delta / i the mechanism reveals i coins at random, and answers the others: each has delta."""
    m, epsilon, delta, error = 60, 0.5, 2e-4, 0.001
    keep, k = math.exp(epsilon) / (1 + math.exp(epsilon)), np.arange(m + 1)
    alarms, ignored = [], []
    for i in (1, 5, 20, 40, m):
        share = m * delta / i
        law = (1 - share) * binom.pmf(k, m, keep) + share * binom.pmf(k - i, m - i, keep)
        alarms.append(false_alarms(law, epsilon, m, delta, error))
        ignored.append(false_alarms(law, epsilon, m, 0.0, error))
    assert max(alarms) <= error
    assert max(ignored) > error


def test_bounds_of_many_coins_stay_numbers():
    assert lower_bound(100, 100, 100, 0.0, 1e-3) == pytest.approx(-math.log(1e-3 ** (-1 / 100) - 1), rel=1e-8)
    assert 9 < lower_bound(10**5, 10**5, 10**5, 1e-9, 1e-3) < 10
    assert chance(1, 2000, 2000, 0.0) == 1.0
    assert 0 <= chance(2000, 2000, 2000, 0.0, 1e-5) < 1.1e-5


# ---------------------------------------------------------------- models


class Answers(BaseEstimator):
    """Randomised response on the last row: the sum of its numbers times each column, kept by a bit for each column."""

    def __init__(self, epsilon=1.0, random_state=0):
        self.epsilon = epsilon
        self.random_state = random_state

    def fit(self, rows, y=None):
        sums = np.sign(np.asarray(rows, float).sum(axis=0))
        keep = 1 / (1 + math.exp(-self.epsilon))
        self.mean_ = np.where(np.random.default_rng(self.random_state).random(len(sums)) < keep, sums, -sums)
        return self


@pytest.mark.parametrize("neighbours", ["substitution", "add_remove"])
def test_what_a_column_answers_is_found_by_one_fit(neighbours):
    """Each canary has a column of its own: the claim is right for 2.0, and refuted where the answers say 4.0."""
    rows = np.zeros((1, 400)) if neighbours == "substitution" else np.full((1, 400), -0.5)
    found = {epsilon: audit_model(Answers(epsilon), rows, n_canaries=400, claim=2.0, random_state=1, confidence=0.99,
                                  domain=Domain([(-1, 1)] * 400), neighbours=neighbours) for epsilon in (2.0, 4.0)}
    assert 1.2 < found[2.0].epsilon_lower <= 2.0
    assert found[4.0].violated
    assert 2.2 < found[4.0].epsilon_lower <= 4.0
    assert 150 < found[2.0].coins_.sum() < 250


def test_noise_that_is_forgotten_is_found_and_right_models_are_not_accused():
    """Rows all alike, and a column for each canary, are the strongest: what is left is what canaries have changed."""
    rows, labels = np.zeros((4, 60)), [0, 1, 0, 1]
    options = {"n_canaries": 60, "random_state": 2, "domain": [(-1, 1)] * 60}
    for broken in (DPLogisticRegression(80.0, data_norm=1.5, classes=[0, 1], C=1.0, random_state=0), GaussianNB()):
        found = audit_model(broken, rows, labels, claim=1.0, **options)
        assert found.violated
        assert 1 < found.epsilon_lower < 2
    for right in (DPLogisticRegression(1.0, data_norm=1.5, classes=[0, 1], C=1.0, random_state=0),
                  DPGaussianNB(1.0, bounds=(-1, 1), classes=[0, 1], random_state=0)):
        found = audit_model(right, rows, labels, **options)
        assert not found.violated
        assert found.claim == (1.0, 0.0)


def test_a_score_of_one_s_own_and_canaries_of_one_s_own():
    wide = np.eye(60)
    model = Answers(5.0)
    seen = []

    def score(fitted, rows, labels):
        seen.append((rows.shape, labels))
        return rows @ fitted.mean_

    given = {"score": score, "claim": 1.0, "n_canaries": 60, "random_state": 0}
    found = audit_model(model, np.zeros((1, 60)), canaries=((wide, None), (-wide, None)), **given)
    assert found.violated
    assert seen == [((60, 60), None)] * 2
    with pytest.raises(ValueError, match="score must return a number for each of 60 rows"):
        audit_model(model, np.zeros((1, 60)), canaries=((wide, None), (-wide, None)),
                    **{**given, "score": lambda *_: 0.0})


# ---------------------------------------------------------------- tables


def tables():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame({"age": [20.0, 40.0, 60.0] * 5, "kind": ["a", "b", "b"] * 5, "k": [1, 2, 3] * 5})
    return [frame, frame.astype({"kind": "category"}), polars.from_pandas(frame), frame.to_numpy().tolist()]


DOMAIN = Domain({"age": Numbers(17, 90), "kind": Categories(["a", "b", "ccc"]), "k": Numbers(0, 50)})


@pytest.mark.parametrize("at", range(4))
def test_canaries_are_rows_of_the_table(at):
    table = tables()[at]
    columns = declared_columns(None, np.array(table, dtype=object), DOMAIN)
    rows, twins = draw(columns, np.array(table, dtype=object), 40, np.random.default_rng(0))
    assert len(set(rows)) == 40
    for age, kind, k in (*rows, *twins):
        assert 17 <= age <= 90
        assert kind in ("a", "b", "ccc")
        assert isinstance(k, int)
    kinds = [row[1] for row in rows]
    assert kinds.count("b") > 20  # what most rows have, and of the others the rarest first
    assert kinds.index("ccc") < kinds.index("a")
    columns = DOMAIN if at < 3 else Domain(dict(enumerate(column for _, column in DOMAIN.items())))
    for model, y in (
        (DPGradientBoostingClassifier(1.0, bounds=columns, categories=columns, classes=["no", "sometimes"], max_iter=1,
                                      random_state=0),
         ["no"] * 15),
        (MarginalSynthesizer(1.0, delta=1e-6, bounds=columns, categories=columns, bins=2, degree=1,
                             random_state=0), None),
    ):
        found = audit_model(model, table, y, n_canaries=12, random_state=0)
        assert not found.violated
        assert found.lines[0].guesses == 12


def test_a_fit_is_charged_once_and_audits_are_reproducible():
    model, book = DPRidge(1.0, bounds=(-1, 1), target_bounds=(-2, 2), random_state=0), Ledger(5.0, durability="fast")
    with book:
        one = audit_model(model, X, Y * 1.0, n_canaries=20, random_state=3)
    assert len(book) == 1
    again = audit_model(model, X, Y * 1.0, n_canaries=20, random_state=3)
    other = audit_model(model, X, Y * 1.0, n_canaries=20, random_state=4)
    assert one.lines == again.lines
    assert (one.coins_ == again.coins_).all()
    assert (one.coins_ != other.coins_).any()
    assert pickle.loads(pickle.dumps(one)).estimator_ is None
    assert str(pickle.loads(pickle.dumps(one))) == str(one)


def test_the_relation_is_that_of_the_claim():
    model = DPGaussianNB(1.0, bounds=(-1, 1), classes=[0, 1], neighbours="add_remove")
    found = audit_model(model, X, Y, n_canaries=20, random_state=0)
    assert found.neighbours == "add_remove"
    with pytest.raises(ValueError, match='neighbours must be "add_remove", for which the estimator promises'):
        audit_model(model, X, Y, n_canaries=20, neighbours="substitution")
    # (a replaced row may cost twice what is claimed for one row more or less; no local claim is about a row more)
    for claimed, other in ((Neighbours.ADD_REMOVE, "substitution"), (Neighbours.SUBSTITUTION, "add_remove"),
                           (Neighbours.LOCAL, "add_remove")):
        with pytest.raises(ValueError, match="for which the guarantee is claimed"):
            audit_model(model, X, Y, n_canaries=20, neighbours=other,
                        claim=PrivacyGuarantee(1, model="central", neighbours=claimed))


@pytest.mark.parametrize(("wrong", "said"), [
    ({"n_canaries": 0}, "n_canaries"),
    ({"confidence": 1.0}, "confidence must be a number between 0 and 1"),
    ({"claim": (1, 2, 3)}, "claim must be an epsilon of at least 0"),
    ({"claim": (1, 2)}, "claim must be an epsilon of at least 0"),
    ({"neighbours": "any"}, "neighbours must be None or one of"),
    ({"n_guesses": 21}, "n_guesses must be numbers from 1 to n_canaries"),
    ({"canaries": 3}, "canaries must be"),
    ({"canaries": (([[0.0] * 60], [0]),) * 2}, "canaries must have n_canaries rows, 20"),
    ({"y": [0, 1]}, "y must have a label for each row"),
    ({"estimator": DPCategoricalNB(1.0, categories=[[0, 1]], classes=[0, 1]), "X": [[0], [1]], "y": [0, 1]},
     "n_canaries must be at most about 1"),
    ({"estimator": Answers()}, "claim must be given for an estimator that is not one of dpestim"),
    ({"estimator": DPRidge}, "estimator must be an object"),
    ({"estimator": 3}, "estimator must be an object"),
])
def test_what_does_not_fit_is_refused_before_the_fit(wrong, said):
    book = Ledger(5.0, durability="fast")
    model = DPLogisticRegression(1.0, bounds=(-1, 1), classes=[0, 1])
    with book, pytest.raises(ValueError, match=said):
        audit_model(**{"estimator": model, "X": X, "y": Y, "n_canaries": 20, **wrong})
    assert not len(book)


def test_in_strict_mode_no_column_is_read_for_its_bounds():
    model = DPLogisticRegression(1.0, data_norm=2.0, classes=[0, 1], random_state=0)
    with config_context(strict=True):
        with pytest.raises(ValueError, match="strict mode: pass domain="):
            audit_model(model, X, Y, n_canaries=20)
        assert audit_model(model, X, Y, n_canaries=20, domain=[(-1, 1)] * 60).lines
