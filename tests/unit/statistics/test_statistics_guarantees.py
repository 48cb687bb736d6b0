"""What statistics promised and once broke: one row decides for itself only, a summary is released as it was made."""

import datetime
import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone

from dpestim.privacy.config import config_context
from dpestim.privacy.exact import exp_lower, exp_upper
from dpestim.statistics import (
    ContingencyTable,
    Histogram,
    Mean,
    Quantile,
    Sum,
    UnknownCategories,
    Variance,
    contingency_table,
    group_by,
    maximum,
    minimum,
    unknown_categories,
    var,
)
from dpestim.statistics.calibrated_noise import noise_for
from dpestim.statistics.groups import planned
from dpestim.statistics.keys import key_of
from dpestim.summaries import Summary
from dpestim.testing.plans import plan_loss
from dpestim.testing.tools import Book

HOUR = datetime.timedelta(hours=1)
MOMENT = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)


def objects(*values):
    out = np.empty(len(values), object)
    out[:] = values
    return out


@pytest.mark.parametrize(("first", "other"), [
    (0.0, -0.0), (1, True), (1.0, 1), (1.0, True), (Decimal("1.0"), Decimal("1.000000000")),
    (Decimal("0"), Decimal("-0.0")), (MOMENT, MOMENT.astimezone(datetime.timezone(HOUR))), (Fraction(1), 1),
    (np.float64(0.0), -0.0), ((0.0, 1), (-0.0, 1)),
], ids=str)
def test_what_is_published_shows_no_row_s_way_of_saying_it(first, other):
    many = [first] * 300
    wanted = repr(unknown_categories(objects(*many), epsilon=10.0, delta=1e-14).keys)
    for rows in ([other, *many], [*many, other]):
        assert repr(unknown_categories(objects(*rows), epsilon=10.0, delta=1e-14).keys) == wanted
    mine, theirs = (UnknownCategories(10.0, delta=1e-14).summarize(objects(*rows)) for rows in ([other], many))
    assert repr(mine.merge(theirs).release().keys) == wanted


def test_what_has_no_form_of_its_own_is_no_category():
    class Odd(str):
        pass

    book = Book()
    with pytest.raises(ValueError, match="strings, numbers"):
        unknown_categories(objects("a", Odd("b")), epsilon=1.0, delta=1e-6, ledger=book)
    assert not book.paid
    with config_context(strict=True):
        unknown_categories(objects("a", Odd("b")), epsilon=1.0, delta=1e-6)
    pandas = pytest.importorskip("pandas")
    stamps = [pandas.Timestamp("2020-01-01", tz=zone) for zone in ("UTC", None)]
    assert [key_of(stamp)[0] for stamp in stamps] == ["Timestamp"] * 2
    for other in (stamps[0].tz_convert("Asia/Tokyo"), stamps[0].as_unit("s")):
        assert repr(key_of(other)) == repr(key_of(stamps[0]))
    assert key_of(Decimal("1e2")) == key_of(Decimal("100.0"))
    assert str(key_of(Decimal("1" * 40))[1]) == "1" * 40  # (no context rounds it)


def test_rows_of_a_list_do_not_change_each_other():
    b = 2**53
    for last in (b, 2.5):
        cells = contingency_table([b + 1] * 300 + [last], epsilon=50.0, categories=[[b, b + 1, 2.5]]).value
        assert abs(cells[1] - 300) < 5
    for low, high in ((-1, 2**63 + 1), (2**70, 2**63 + 1)):
        cells = contingency_table([high] * 300 + [low], epsilon=50.0, categories=[[low, high - 1, high]]).value
        assert abs(cells[2] - 300) < 5
    est = Sum(50.0, bounds=(0, 1), neighbours="add_remove")
    assert abs(group_by(est, np.ones(301), [b + 1] * 300 + [2.5], [b, b + 1, 2.5])[b + 1].value - 300) < 5
    assert unknown_categories([1] * 299 + [2.5], epsilon=10.0, delta=1e-14).keys == ([1],)
    assert type(unknown_categories([1] * 299 + [2.5], epsilon=10.0, delta=1e-14).keys[0][0]) is int


@pytest.mark.parametrize(("estimator", "change"), [
    (Sum(1.0, bounds=(0, 1)), {"neighbours": "add_remove"}), (Mean(1.0, bounds=(0, 1)), {"bounds": (0, 0.5)}),
    (Mean(1.0, bounds=(0, 1)), {"bounds": "private"}), (Histogram(1.0, bounds=(0, 1)), {"bins": [0.0, 0.5, 1.0]}),
    (ContingencyTable(1.0, categories=[[0, 1]]), {"categories": [[1, 0]]}),
], ids=str)
def test_a_summary_is_released_with_the_parameters_it_was_made_with(estimator, change):
    est = estimator.summarize(np.zeros(9, int)).set_params(ledger=Book(), **change)
    with pytest.raises(ValueError, match=r"parameters|use fit"):
        est.release()
    assert not est.ledger.paid
    users = Sum(1.0, bounds=(0, 1), neighbours="add_remove", max_rows_per_user=50).summarize(np.ones(9), users=[0] * 9)
    with pytest.raises(ValueError, match="parameters"):
        users.set_params(max_rows_per_user=1).release()
    median = Quantile(1.0, bounds=(0, 1)).summarize(np.zeros(9))
    assert median.set_params(q=0.9, epsilon=2.0).release().privacy.epsilon == 2


def test_summaries_merge_where_they_mean_the_same_and_only_then():
    a, b = (ContingencyTable(1.0, categories=[["1", own]]).summarize([["1"]]) for own in ("True", True))
    with pytest.raises(ValueError, match="merge needs"):
        a.merge(b)
    several = (0, [1.0, 2]), ((0, 0), np.array([1, 2]))
    one, other = (Mean(1.0, bounds=own).summarize(np.zeros((2, 2))) for own in several)
    assert one.merge(other).summary_.n_rows == 4
    with pytest.raises(ValueError, match="count twice"):
        one.merge(pickle.loads(pickle.dumps(other)))
    with pytest.raises(ValueError, match="2\\^31"):
        Summary((), (1 << 31) - 1, [0]) + Summary((), 1, [0])


def test_rounding_in_every_group_of_a_user_is_paid_for():
    sensitivity, m = (1 << 20) - 1, 4096
    for parts in (1, 2, 4096):
        noise = noise_for(Fraction(1), Fraction(0), sensitivity * m, sensitivity**2 * m**2, 1, parts)
        # a row in each of so many groups, and the rest in one: what rounding adds to a step is below a step each time
        moved = Fraction(sensitivity * m, noise.unit) + (parts if noise.unit > 1 else 0)
        assert noise.law.sensitivity >= moved
    est = Sum(1.0, bounds=(0, 0.500001), neighbours="add_remove", max_rows_per_user=64)
    group_by(est, np.ones(64), np.arange(64), np.arange(64), users=[0] * 64)


def test_bounds_that_cannot_be_computed_with_are_refused_before_they_are_paid():
    for bounds, rows in (((-1e199, 1e199), [0.5] * 9), ((0, 1e-190), [0.5] * 9), ((0, [1, 2, 3]), np.zeros((9, 2))),
                         ((0, [1, 2]), np.zeros(0))):
        book = Book()
        with pytest.raises(ValueError, match="bounds"):
            var(rows, epsilon=1.0, bounds=bounds, ledger=book)
        assert not book.paid
    assert np.isfinite(var([0.5] * 9, epsilon=1.0, bounds=(-1e139, 1e138)).value)


def test_releases_of_one_seed_share_no_noise():
    est = Sum(1.0, bounds=(0, 1), random_state=0).summarize(np.ones(9))
    values = [est.release().value for _ in range(5)]
    assert len(set(values)) == 5


@pytest.mark.parametrize(("kind", "truth"), [(Sum, 0.1e5), (Mean, 0.1), (Variance, 0.0)])
def test_intervals_hold_the_statistic_of_rows_between_points_of_the_grid(kind, truth):
    result = kind(80.0, bounds=(0, 1), random_state=0).fit(np.full(100_000, 0.1)).result_
    low, high = result.interval(0.999)
    assert low <= truth <= high
    low, high = Mean(1.0, bounds=(0, 1.00000001), random_state=1).fit(np.full(5, 3.0)).result_.interval(0.1)
    assert 0 <= low <= high <= 1.00000001


def test_the_smallest_and_largest_values_are_aimed_inside_of_the_noise():
    x = np.linspace(0, 1, 5000)
    kept = {"epsilon": 1.0, "bounds": (-100, 100)}
    hits = sum(0 <= minimum(x, **kept, random_state=k).value < 0.1 for k in range(20))
    hits += sum(0.9 < maximum(x, **kept, random_state=k).value <= 1.0031 for k in range(20))
    assert hits >= 30  # of 40, of which 0.95 are expected at least: 29 or fewer have probability below 1e-4
    assert "q=1.0 of them and the rank -2 more" in maximum(x, epsilon=1.0, bounds=(0, 1), rank=np.int64(2)).about


def joint_loss(statistic, one, two, groups=("a", "b")):
    """Return the worst ratio of the joint probabilities of all groups' outcomes; each is (rows, groups, users)."""
    plans = [planned(statistic, np.array(rows, float), objects(*by), [groups], users)[2]
             for rows, by, users in (one, two)]
    outcomes = [[part.exact() for part in plan.parts] for plan in plans[0]]
    for mine, other, drawn in zip(*plans, outcomes):  # what is made of them is the same for both
        a, b = mine.finish(drawn), other.finish(drawn)
        assert (a[0], a[1], a[2] and a[2](0.5)) == (b[0], b[1], b[2] and b[2](0.5))
    ratio = Fraction(1)
    for mine, other in zip(*plans):
        pure, deltas = plan_loss(mine, other)
        assert not deltas
        ratio *= pure
    return ratio


@pytest.mark.parametrize("kind", [Sum, Mean, Variance, Quantile])
def test_all_groups_together_cost_epsilon_once(kind):
    """Exactly, over all small tables; a record that moves would cost more, and so no relation allows it."""
    statistic = kind(1.0, bounds=(0, 4), neighbours="add_remove")
    worst = moved = 0
    for base in itertools.product(itertools.product((0, 4), "ab"), repeat=2):
        rows, by = zip(*base)
        ways = [((*rows, x), (*by, group), None) for x in (0, 1, 4) for group in "ab"]
        worst = max(worst, *(joint_loss(statistic, (rows, by, None), way) for way in ways))
        moved = max(moved, joint_loss(statistic, ways[0], ways[-1]), joint_loss(statistic, ways[-2], ways[-1]))
    assert worst <= exp_upper(Fraction(1))
    assert worst > exp_lower(Fraction(97, 100)) or kind is Quantile
    assert moved > exp_upper(Fraction(1)) or kind is Quantile  # (small tables move its scores little)
    with pytest.raises(ValueError, match="may move between groups"):
        group_by(kind(1.0, bounds=(0, 4)), np.zeros(2), ["a", "b"], ["a", "b"])


@pytest.mark.parametrize("kind", [Sum, Quantile])
def test_the_rows_of_a_user_in_several_groups_cost_epsilon_once(kind):
    statistic, worst = kind(1.0, bounds=(0, 4), neighbours="add_remove", max_rows_per_user=2), 0
    base = (0, 4), ("a", "b"), (0, 1)
    for by in itertools.product("ab", repeat=3):  # the third is one too many, wherever it is
        for x in (0, 4):
            more = (0, 4, x, x, x), ("a", "b", *by), (0, 1, 2, 2, 2)
            worst = max(worst, joint_loss(statistic, base, more))
    assert worst <= exp_upper(Fraction(1))
    assert worst > exp_lower(Fraction(97, 100)) or kind is Quantile
    unbounded = statistic.set_params(max_rows_per_user=1)
    more = (0, 4, 4, 4), ("a", "b", "a", "b"), (0, 1, 2, 3)  # two users with a row each, where one is protected
    assert joint_loss(unbounded, base, more) > exp_upper(Fraction(1)) or kind is Quantile


def test_threads_that_release_under_one_seed_share_no_noise():
    est = Sum(1.0, bounds=(0, 1), random_state=0).summarize(np.ones(9))
    with ThreadPoolExecutor(8) as pool:
        values = [result.value for result in pool.map(lambda _: est.release(), range(200))]
    assert len(set(values)) == 200
    assert set(values) == {clone_of_part(est, k) for k in range(200)}


def clone_of_part(est, k):
    """Return what the k-th release of a statistic is."""
    twin = clone(est).summarize(np.ones(9))
    twin._n_released = k
    return twin.release().value


def test_result_promises_what_was_charged():
    """Also where somebody changes parameters of a statistic while it pays: by them nothing was released."""
    mean, paid = Mean(1.0, bounds=(0, 1)), []

    class Changing(Book):
        def charge(self, guarantee, **about):
            paid.append(guarantee)
            mean.epsilon = 9.0

    mean.ledger = Changing()
    assert mean.fit(np.ones(100)).result_.privacy is paid[0]
    assert mean.privacy_.epsilon == 1
