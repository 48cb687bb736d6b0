"""Whose rows are whose, what a seed repeats, what concentrated ledgers pay: statistics that several people share."""

import uuid
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone

from dpestim.accounting import Ledger, calibrate
from dpestim.exceptions import BudgetExceededError
from dpestim.privacy.config import config_context
from dpestim.privacy.exact import exp_upper
from dpestim.statistics import Count, Histogram, Mean, Quantile, Sum, UnknownCategories, group_by
from dpestim.statistics.keys import key_of
from dpestim.testing.plans import plan_loss
from dpestim.testing.tools import Book

KEPT = {"bounds": (0, 4), "neighbours": "add_remove", "max_rows_per_user": 1}
NOBODY = [None, float("nan"), np.datetime64("NaT")]


def of(*values):
    out = np.empty(len(values), object)
    out[:] = values
    return out


def plan_of(est, rows, users):
    return est._plan(est._summary_of(*est._read(np.array(rows), users)), est._shares()[1])


@pytest.mark.parametrize("nobody", NOBODY, ids=str)
@pytest.mark.parametrize("est", [Histogram(1.0, bins=3, **{**KEPT, "bounds": (0, 3)}), Sum(1.0, **KEPT)], ids=str)
def test_people_without_an_id_are_not_one_user(est, nobody):
    book = Book()
    with pytest.raises(ValueError, match="without missing values"):
        est.set_params(ledger=book).fit([2.5, 0.5], users=of(nobody, "a"))
    with pytest.raises(ValueError, match="without missing values"):
        group_by(Sum(1.0, **KEPT), [2.5, 0.5], ["x", "y"], ["x", "y"], users=of("a", nobody))
    assert not book.paid
    with config_context(strict=True):  # one person without an id more or less costs epsilon at most
        for rows, users in (([2.5, 0.5], of(nobody, nobody)), ([2.5, 0.5], of("a", nobody))):
            pure, deltas = plan_loss(plan_of(est, rows, users), plan_of(est, rows[1:], users[1:]))
            assert pure <= exp_upper(Fraction(1))
            assert not deltas
        assert est._read(np.array([2.5, 0.5]), of(nobody, "a"))[0].tolist() == [[0.5]]


def test_that_loss_tells_two_rows_of_one_user_from_one():
    est = Histogram(1.0, bins=3, **{**KEPT, "bounds": (0, 3)})  # as it was: both without an id were one user
    loss, _ = plan_loss(plan_of(est, [2.5, 0.5], ["a", "a"]), plan_of(est, [0.5], ["a"]))
    assert loss > exp_upper(Fraction(199, 100))


def test_ids_are_those_of_one_user_where_they_are_of_one_type():
    est = Sum(1.0, **KEPT)
    for users, n in ((of(1, True, 1.0), 3), (of(7, np.int8(7)), 1), (of("a", "a", ("a", 1)), 2),
                     (of(uuid.UUID(int=5), uuid.UUID(int=5)), 1)):
        assert len(est._read(np.ones(len(users)), users)[0]) == n
    unsafe = uuid.UUID(int=5, is_safe=uuid.SafeUUID.safe)
    assert key_of(unsafe)[1].is_safe is uuid.SafeUUID.unknown


def test_groups_of_one_generator_get_noise_of_their_own():
    est = Sum(1.0, bounds=(0, 1), neighbours="add_remove", random_state=np.random.default_rng(0))
    seen = [group_by(est, np.ones(4), ["a", "b"] * 2, ["a", "b"])[key].value for _ in range(2) for key in "ab"]
    assert len(set(seen)) == 4


@pytest.mark.parametrize("est", [Count(1e-4, random_state=3), Quantile(1e-4, q=[0.2, 0.7], bounds=(0, 9), level=0.5,
                                                                           random_state=3)], ids=str)
def test_verbs_of_one_seed_share_no_noise(est):
    x = np.resize([0.0, 1.0], 1000)
    fitted = est.fit(x).result_.value
    released = [est.summarize(x).release().value, est.release().value]
    grouped = group_by(est.set_params(neighbours="add_remove"), x, ["a"] * 1000, ["a"])["a"].value
    shown = [np.ravel(value).tolist() for value in (fitted, *released, grouped)]
    assert all(a != b for k, a in enumerate(shown) for b in shown[:k])


def releases(est, x, composition, most=12):
    """Return how many releases a budget of five of them pays, up to so many, where they add up in this way."""
    ledger = Ledger(5 * est.epsilon, delta=1e-5, composition=composition, durability="fast")
    est = clone(est).set_params(ledger=ledger)
    for n in range(most):
        try:
            est.fit(x)
        except BudgetExceededError:
            return n
    return most


@pytest.mark.parametrize("composition", ["zcdp", "rdp"])
def test_normal_noise_is_paid_by_what_is_known_of_it(composition):
    x = np.resize([0.0, 1.0], (40, 50))
    est = Mean(0.02, bounds=(0, 1), delta=1e-7)
    assert releases(est, x, "basic") == 5
    assert releases(est, x, composition) == 12  # (of about 20: rho is 1/14 of what epsilon says)
    with pytest.raises(ValueError, match="cannot charge"):  # a threshold costs a delta and no curve
        releases(UnknownCategories(0.02, delta=1e-7), ["a"] * 9, composition)


def test_the_curve_of_a_release_is_that_of_its_laws():
    x, pure = np.resize([0.0, 1.0], (40, 50)), Fraction(1) / 2
    kept = {"bounds": (0, 1), "delta": 1e-7}
    plan = plan_of(Mean(1.0, **kept), x, None)
    assert plan.curve.rho == plan.parts[0].noise.law.curve.rho < pure / 10
    few = Mean(1.0, **kept).fit(x[:, 0]).privacy_.curve.rho  # Laplace noise is less for one column
    assert pure <= few < pure * (1 + Fraction(1, 10**9))
    for est, share in ((Mean(1.0, bounds="private"), Fraction(1, 10)),
                       (Mean(1.0, bounds="private", delta=1e-7), Fraction(1, 10)),
                       (Quantile(1.0, q=[0.2, 0.4], bounds=(0, 1)), Fraction(1, 2))):
        rho = est.fit(np.resize([0.0, 1.0], 4000)).result_.privacy.curve.rho
        assert rho == pytest.approx(float(pure * (share**2 + (1 - share) ** 2)), rel=1e-9)
        assert rho >= pure * (share**2 + (1 - share) ** 2)
        assert est.privacy_ == est.result_.privacy
        assert est.set_params(epsilon=2.0).privacy_ == est.result_.privacy  # (that of the release, whatever comes)
        assert clone(est).privacy_.curve is None  # what a release with another one has, nobody knows
    grouped = {"neighbours": "add_remove", **kept}
    (result,) = group_by(Mean(1.0, **grouped), x, ["a"] * 40, ["a"]).values()
    assert result.privacy.curve.rho < pure / 10
    shared = Sum(1.0, bounds=(0, 1), neighbours="add_remove", max_rows_per_user=2)
    assert group_by(shared, x[:, 0], ["a"] * 40, ["a"], users=[0] * 40)["a"].privacy.curve is None


def test_a_released_statistic_is_calibrated_as_a_new_one():
    est = Mean(0.5, bounds=(0, 1), delta=1e-7)
    fresh = calibrate(est, epsilon=1, delta=1e-5, n_releases=10)
    assert calibrate(est.fit(np.ones((9, 50))), epsilon=1, delta=1e-5, n_releases=10) == fresh
