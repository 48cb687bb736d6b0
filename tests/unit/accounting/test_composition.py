"""Guarantees that are curves, and ledgers in which concentrated or Renyi privacy adds up."""

import math
import pickle
import sqlite3
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpestim.accounting import (
    BudgetExceededError,
    Ledger,
    LedgerError,
    RenyiCurve,
    RenyiFilter,
    group_privacy,
    largest_rho,
)
from dpestim.central import DiscreteGaussianMechanism, GaussianMechanism, LaplaceMechanism
from dpestim.privacy import ZCDP, Neighbours, PrivacyGuarantee
from dpestim.privacy.composition import COMPOSITIONS, Concentrated

DELTA = Fraction(1, 10**6)
CONVERTED = ("zcdp", "rdp")
NOISY = {"model": "central", "neighbours": Neighbours.SUBSTITUTION}


def ledger_of(composition, epsilon=1.0, **params):
    return Ledger(epsilon, delta=DELTA, composition=composition, durability="fast", **params)


def until_refused(ledger, guarantee, match):
    charged = iter(lambda: ledger.charge(guarantee), None)
    with pytest.raises(BudgetExceededError, match=match):
        list(charged)
    return len(ledger)


def gaussian_delta(ratio, epsilon):
    """The exact delta of normal noise, sigma / sensitivity being `ratio` (Balle, Wang 2018, theorem 8)."""
    def tail(x):
        return math.erfc(x / math.sqrt(2)) / 2

    return tail(epsilon * ratio - 1 / (2 * ratio)) - math.exp(epsilon) * tail(epsilon * ratio + 1 / (2 * ratio))


# -------------------------------------------------------------------- guarantees


def test_the_face_of_a_sum_is_basic_and_the_curve_says_less():
    many = sum(50 * [PrivacyGuarantee(Fraction(1, 10))])
    assert (many.epsilon, many.delta, many.curve) == (5, 0, ZCDP(Fraction(1, 4)))
    assert many.epsilon_at(0) == 5
    assert many.epsilon_at(DELTA) < Fraction("3.6")
    assert many.at(DELTA).epsilon == many.epsilon_at(DELTA)
    assert many.at(DELTA).delta == DELTA
    assert many.epsilon_at(Fraction(1, 10**301)) == 5  # no float says more
    assert many.at(DELTA) + PrivacyGuarantee(0) == many.at(DELTA)
    for bad in (-1, 2, "1", None, math.nan):
        with pytest.raises(ValueError, match="delta"):
            many.epsilon_at(bad)


def test_what_a_sum_says_is_never_below_the_truth():
    # k runs of randomised response, all outcomes: the loss is (2 i - k) epsilon with binomial weights
    for k, epsilon in product((2, 10, 40), (0.05, 0.5, 2.0)):
        p = 1 / (1 + math.exp(-epsilon))
        for delta in (1e-2, 1e-5):
            promised = float(sum(k * [PrivacyGuarantee(epsilon)]).epsilon_at(delta))
            beyond = [max(0.0, -math.expm1(promised - (2 * i - k) * epsilon)) for i in range(k + 1)]
            true = sum(math.comb(k, i) * p**i * (1 - p) ** (k - i) * beyond[i] for i in range(k + 1))
            assert true <= delta * (1 + 1e-9)


@pytest.mark.parametrize("mechanism", [
    GaussianMechanism(1.0, delta=1e-5, sensitivity=1.0), DiscreteGaussianMechanism(1.0, delta=1e-5, sensitivity=3),
    GaussianMechanism(0.3, delta=1e-5, sensitivity=3.0, calibration="classic", neighbours="add_remove"),
])
def test_normal_noise_knows_its_rho(mechanism):
    guarantee = mechanism.privacy_
    for size in (1, 2, 1000):
        law = mechanism.law(size)
        assert guarantee.curve.rho >= Fraction(law.sensitivity) ** 2 / (2 * Fraction(law.sigma) ** 2)
    law = mechanism.law(1)
    assert float(guarantee.curve.rho) == pytest.approx(float(law.sensitivity) ** 2 / (2 * law.sigma**2), rel=0.02)
    ten = sum(10 * [guarantee])
    assert ten.epsilon == 10 * guarantee.epsilon
    assert ten.epsilon_at(1e-4) < 5 * guarantee.epsilon
    # the truth: ten runs are one with sqrt(10) times the sensitivity
    ratio = 1 / math.sqrt(2 * float(ten.curve.rho))
    assert gaussian_delta(ratio, float(ten.epsilon_at(1e-4))) <= 1e-4
    assert str(guarantee).count(". ") == str(LaplaceMechanism(1.0, sensitivity=1).privacy_).count(". ")
    assert "concentrated" in str(guarantee)
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee


def test_no_guarantee_has_no_curve():
    lost = replace(sum(2 * [PrivacyGuarantee(1)]), epsilon=math.inf)
    assert lost.curve is lost.concentrated is None
    assert lost.epsilon_at(DELTA) == math.inf
    assert (lost + PrivacyGuarantee(1)).epsilon_at(DELTA) == math.inf


def test_curves_of_guarantees_are_converted_and_compared():
    one = PrivacyGuarantee(1, DELTA, "central", Neighbours.ADD_REMOVE, curve=ZCDP(0.1))
    assert one.to("substitution").curve == ZCDP(Fraction(2, 5))
    pure = PrivacyGuarantee(1, model="central", neighbours=Neighbours.ADD_REMOVE)
    assert pure.to("substitution").concentrated == ZCDP(2)
    none = PrivacyGuarantee(1, DELTA, "central", Neighbours.ADD_REMOVE)
    assert (one + none).curve is None
    assert none.concentrated is None
    assert none.epsilon_at(0) == math.inf
    assert one <= none
    assert not none <= one
    assert one != none
    assert hash(one) == hash(one + PrivacyGuarantee(0))
    with pytest.raises(ValueError, match="no epsilon is known for this delta"):
        none.at(0)
    # less delta, more epsilon: what follows by the curve is promised, too
    assert sum(50 * [PrivacyGuarantee(0.1)]) <= PrivacyGuarantee(3.6, DELTA)
    assert not sum(50 * [PrivacyGuarantee(0.1)]) <= PrivacyGuarantee(3.5, DELTA)
    with pytest.raises(ValueError, match="curve must be"):
        PrivacyGuarantee(1, curve=0.1)
    for bad in (-1, math.inf, None, "1"):
        with pytest.raises(ValueError, match="rho"):
            ZCDP(bad)


# -------------------------------------------------------------------- filters


@pytest.mark.parametrize("composition", CONVERTED)
def test_many_small_releases_cost_less_than_their_sum(composition):
    ledger, small = ledger_of(composition), PrivacyGuarantee(Fraction(1, 50))
    n = until_refused(ledger, small, "left")
    assert n == {"zcdp": 121, "rdp": 107}[composition]  # by sums: 50
    assert ledger.spent().epsilon <= 1
    assert ledger.spent().delta == DELTA
    assert 0 <= ledger.remaining().epsilon < Fraction(1, 50)
    ledger.verify()


@pytest.mark.parametrize("seed", range(3))
def test_filters_never_exceed(seed):
    # budgets chosen at random, as an adversary might, against exact sums kept beside the ledgers
    rng = np.random.default_rng(seed)
    epsilon = float(rng.uniform(0.5, 5))
    zcdp, rdp = (ledger_of(name, epsilon) for name in CONVERTED)
    rho, most, amounts = Fraction(0), largest_rho(epsilon, DELTA), {}
    assert RenyiCurve.concentrated(most).epsilon(float(DELTA)) <= epsilon * (1 + 1e-9)
    for _ in range(40):
        size, noise = float(rng.choice([0.01, 0.1, 0.4, 1.5]) * epsilon), float(rng.uniform(0.001, 0.2))
        guarantee = PrivacyGuarantee(size) if rng.random() < 0.7 else PrivacyGuarantee(1, DELTA, curve=ZCDP(noise))
        cost = guarantee.concentrated.rho
        fits = rho + cost <= most
        if fits:
            zcdp.charge(guarantee)
            rho += cost
        else:
            with pytest.raises(BudgetExceededError):
                zcdp.charge(guarantee)
        assert zcdp.spent().concentrated.rho == rho if rho else zcdp.spent().is_nothing
        assert zcdp.spent().epsilon <= Fraction(epsilon)
        curve = RenyiCurve.pure(size) if not guarantee.delta else RenyiCurve.concentrated(noise)
        try:
            rdp.charge(guarantee)
        except BudgetExceededError:
            continue
        amounts[len(amounts)] = curve
    assert rdp.spent().epsilon <= Fraction(epsilon)
    # without looking back for the best order, the same releases are within what was promised, at least
    assert sum(amounts.values()).epsilon(float(DELTA)) <= epsilon


def test_a_filter_of_orders_is_a_renyi_filter_at_one_of_them():
    ledger = ledger_of("rdp", 2.0)
    noise = PrivacyGuarantee(1, DELTA, curve=ZCDP(Fraction(1, 2000)), **NOISY)
    n = until_refused(ledger, noise, r"Renyi's divergence \(times order - 1\) of order 17 ")
    best = RenyiFilter(2.0, float(DELTA), order=17)
    best.spend(RenyiCurve.concentrated(Fraction(1, 2000)).compose(n))  # a union bound costs little, and never less
    assert 0.8 < best.spent <= 1


def worst_delta(way, epsilon, delta, strategy):
    """The exact delta of randomised responses that a strategy chooses by the loss so far, until too little is left.

    Releases of which each keeps an epsilon, and outcomes of which each raises the loss by it, or lowers it.
    """
    budget = way.budget(epsilon, delta)

    def go(loss, spent, depth):
        size = strategy(loss, depth)
        costs = way.costs(PrivacyGuarantee(size), False)
        total = tuple(a + b for a, b in zip(spent, costs))
        if depth == 9 or way.short(total, budget, costs) is not None:
            return max(0.0, -math.expm1(float(epsilon - loss)))
        p = 1 / (1 + math.exp(-size))
        return p * go(loss + size, total, depth + 1) + (1 - p) * go(loss - size, total, depth + 1)

    return go(Fraction(0), tuple(0 * b for b in budget), 0)


class Cheap(Concentrated):
    """A broken twin: a pure release costs an eighth of epsilon^2."""

    def _pure_costs(self, epsilon):
        return (epsilon**2 / 8,)


STRATEGIES = (
    lambda loss, depth: Fraction(1, 2),
    lambda loss, depth: Fraction(1) if loss > 0 else Fraction(1, 4),  # press on where it went well
    lambda loss, depth: Fraction(1, 4) if loss > 0 else Fraction(5, 4),
    lambda loss, depth: Fraction(6, 5) if depth < 2 else Fraction(1, 2) if loss > 1 else Fraction(1, 8),
)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_whoever_chooses_by_results_gets_no_more_than_the_budget(strategy):
    for way, epsilon, delta in product(COMPOSITIONS.values(), (1, 3), (0.1, 0.3)):
        assert worst_delta(way, Fraction(epsilon), Fraction(delta), strategy) <= delta
    assert worst_delta(Cheap(), Fraction(1), Fraction(1, 10), strategy) > 0.1


def test_labels_are_parallel_and_everybody_is_added():
    for composition in CONVERTED:
        ledger = ledger_of(composition, 4.0)
        for label in ("a", "b", "a"):
            ledger.for_users(label).charge(PrivacyGuarantee(Fraction(1, 4)))
        alone = ledger_of(composition, 4.0)
        for _ in range(2):
            alone.charge(PrivacyGuarantee(Fraction(1, 4)))
        assert ledger.spent().epsilon == alone.spent().epsilon
        ledger.charge(PrivacyGuarantee(Fraction(1, 4)))
        alone.charge(PrivacyGuarantee(Fraction(1, 4)))
        assert ledger.spent().epsilon == alone.spent().epsilon
        assert ledger.verify()


def test_add_remove_neighbours_cost_four_times_rho_under_substitution():
    ledger = ledger_of("zcdp", 8.0)
    ledger.charge(PrivacyGuarantee(1, DELTA, "central", Neighbours.ADD_REMOVE, curve=ZCDP(Fraction(1, 10))))
    ledger.charge(PrivacyGuarantee(Fraction(1, 2), 0, "central", Neighbours.ADD_REMOVE))
    assert [entry["charged_rho"] for entry in ledger.entries()] == [Fraction(2, 5), Fraction(1, 2)]
    assert ledger.spent().curve == ZCDP(Fraction(9, 10))


@pytest.mark.parametrize("composition", CONVERTED)
def test_what_has_no_rho_is_refused_and_costs_nothing(composition):
    ledger = ledger_of(composition)
    with pytest.raises(ValueError, match="cannot charge a release with a delta above 0 and no"):
        ledger.charge(PrivacyGuarantee(Fraction(1, 10**6), DELTA, **NOISY))
    with pytest.raises(BudgetExceededError, match="infinity"):
        ledger.charge(PrivacyGuarantee(math.inf))
    assert len(ledger) == 0
    assert ledger.spent().is_nothing
    ledger.record_score(estimator="E")
    assert ledger.spent().is_nothing
    assert ledger.verify()
    for bad, text in (({"delta": 0}, "delta"), ({"delta": 1e-6, "relaxation": "R"}, "relaxation")):
        with pytest.raises(ValueError, match=text):
            Ledger(1.0, composition=composition, **bad)
    boundless = ledger_of(composition, math.inf)
    boundless.charge(PrivacyGuarantee(0.1))
    assert boundless.spent().epsilon < 2
    assert boundless.remaining().epsilon == math.inf
    boundless.charge(PrivacyGuarantee(math.inf))
    assert boundless.spent().epsilon == math.inf


def test_what_remains_can_be_spent_and_not_more():
    for composition in CONVERTED:
        ledger = ledger_of(composition, 3.0)
        ledger.charge(PrivacyGuarantee(0.2))
        left = ledger.remaining().epsilon
        with pytest.raises(BudgetExceededError):
            ledger.charge(PrivacyGuarantee(left + Fraction(1, 10**6)))
        ledger.charge(PrivacyGuarantee(left))


def test_a_first_release_that_does_not_fit_is_told_what_would(tmp_path):
    ledger = Ledger(5, delta=1e-6, composition="zcdp", path=tmp_path / "zcdp")
    left = "one pure release of at most epsilon = 0.962356"
    assert f"{left}; 0.463064 of 0.463064 in rho" in ledger.report()
    with pytest.raises(BudgetExceededError, match=f"{left}, because this composition is for many.*'rdp'"):
        ledger.charge(PrivacyGuarantee(1))
    basic = Ledger(5, delta=1e-6, path=tmp_path / "basic")
    assert "remaining:         epsilon = 5, delta = 1e-06" in basic.report()
    other = Ledger(5, delta=1e-6, composition="rdp", path=tmp_path / "rdp")
    other.charge(PrivacyGuarantee(1))
    assert "one pure release of at most" in other.report()
    with pytest.raises(BudgetExceededError, match="one pure release of at most"):
        other.charge(PrivacyGuarantee(5))


@pytest.mark.parametrize(("composition", "most"), [("basic", 10), ("zcdp", 4), ("rdp", 9)])
def test_how_many_small_releases_fit_is_what_the_docstring_says(composition, most):
    ledger = Ledger(1, delta=1e-6, composition=composition, durability="fast")
    for _ in range(most):
        ledger.charge(PrivacyGuarantee(0.1))
    with pytest.raises(BudgetExceededError):
        ledger.charge(PrivacyGuarantee(0.1))


@pytest.mark.parametrize("composition", CONVERTED)
@pytest.mark.parametrize("size", [1e155, 1e200, 1e308, Fraction(10**400)])
def test_a_huge_release_is_charged_or_refused_and_can_be_read(composition, size):
    huge = PrivacyGuarantee(size, **NOISY)
    ledger = ledger_of(composition, math.inf)
    ledger.charge(huge)
    assert ledger.spent().epsilon == huge.epsilon
    ledger.charge(PrivacyGuarantee(1, DELTA, curve=ZCDP(1), **NOISY))
    assert ledger.spent().epsilon >= huge.epsilon
    assert ledger.remaining().epsilon == math.inf
    assert "spent" in ledger.report()
    ledger = ledger_of(composition)
    with pytest.raises(BudgetExceededError):
        ledger.charge(huge)
    assert ledger.spent().is_nothing
    wide = ledger_of(composition, size)
    wide.charge(PrivacyGuarantee(1))
    assert 1e70 < wide.remaining().epsilon <= huge.epsilon
    wide.charge(wide.remaining())
    assert wide.spent().epsilon <= huge.epsilon


def test_huge_guarantees_are_compared():
    for size in (Fraction(10**200), Fraction(10**400)):
        huge = PrivacyGuarantee(size)
        assert huge.epsilon_at(DELTA) == size
        assert huge.at(DELTA).epsilon == size
        assert not huge <= PrivacyGuarantee(1, DELTA)
        assert ZCDP(size**2).epsilon_at(DELTA) == math.inf


def test_one_large_release_is_within_a_large_budget():
    ledger = ledger_of("rdp", 1e4)
    left = ledger.remaining().epsilon
    assert left > 9000  # and not 80
    with pytest.raises(BudgetExceededError):
        ledger.charge(PrivacyGuarantee(left + Fraction(1, 10**6)))
    ledger.charge(PrivacyGuarantee(left))


@pytest.mark.parametrize("composition", CONVERTED)
def test_few_pure_releases_are_shown_as_their_sum(composition):
    ledger = ledger_of(composition, 8.0)
    ledger.charge(PrivacyGuarantee(1.2))
    assert (ledger.spent().epsilon, ledger.spent().delta) == (Fraction("1.2"), 0)
    for label in ("a", "b", "b"):
        ledger.for_users(label).charge(PrivacyGuarantee(0.1, 0, "central", Neighbours.ADD_REMOVE))
    assert ledger.spent().epsilon == Fraction("1.6")
    ledger.for_users("a").charge(PrivacyGuarantee(Fraction(1, 10**6), DELTA, curve=ZCDP(Fraction(1, 10**6)), **NOISY))
    assert ledger.spent().delta == DELTA  # one of them is not pure
    assert ledger.spent().epsilon > Fraction("1.6")
    boundless = ledger_of(composition, math.inf)
    boundless.charge(PrivacyGuarantee(1e3))
    assert (boundless.spent().epsilon, boundless.spent().delta) == (1000, 0)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0.999), (0.1, 0.9), (1e-3, 0.5), (2, 1e-6), (1e308, 1e-6)])
def test_the_largest_rho_is_the_largest(epsilon, delta):
    rho = float(largest_rho(epsilon, delta))
    assert RenyiCurve.concentrated(rho).delta(epsilon) <= delta
    assert RenyiCurve.concentrated(rho * 1.001).delta(epsilon) > delta
    assert rho > 4 or delta != 0.999


def test_budgets_too_small_for_floats_name_what_to_take():
    with pytest.raises(ValueError, match="for floating point: use composition='basic'"):
        Ledger(1e-30, delta=1e-50, composition="zcdp")
    with pytest.raises(ValueError, match="use 'zcdp' or 'basic'"):
        Ledger(1e-30, delta=1e-6, composition="rdp")


def test_what_face_and_curve_say_alone():
    curve = PrivacyGuarantee(1, 1, curve=ZCDP(1), **NOISY)
    assert curve.is_finite
    assert str(curve).startswith("1-concentrated privacy in the central model")
    assert not PrivacyGuarantee(1, 1, **NOISY).is_finite
    with pytest.raises(ValueError, match="a delta below 1"):
        group_privacy(curve, 2)
    pure = PrivacyGuarantee(1, curve=ZCDP(5))  # says less than the face
    assert pure == PrivacyGuarantee(1)
    assert pure.concentrated == ZCDP(Fraction(1, 2))
    assert PrivacyGuarantee(1) <= pure <= PrivacyGuarantee(1)
    assert PrivacyGuarantee(1, DELTA, curve=ZCDP(5)).curve == ZCDP(5)


# -------------------------------------------------------------------- files


def test_a_composition_is_a_term(tmp_path):
    path = tmp_path / "budget.sqlite"
    ledger = ledger_of("zcdp", path=path)
    ledger.charge(PrivacyGuarantee(0.1), estimator="E")
    assert ledger.composition == Ledger.open(path).composition == "zcdp"
    assert ledger_of("zcdp", path=path) == ledger
    for other in ("basic", "rdp"):
        with pytest.raises(LedgerError, match="another composition"):
            ledger_of(other, path=path)
    assert pickle.loads(pickle.dumps(ledger)).remaining() == ledger.remaining()
    frame = ledger.to_frame()
    assert frame.attrs["composition"] == "zcdp"
    assert frame["charged_rho"][0] == Fraction(1, 200)
    assert "composition:       zcdp" in ledger.report()
    assert "rho each" in ledger.report("html")
    assert "rho = 0.005" in str(ledger.spent())
    assert "'zcdp'" in str(ledger.remaining())
    other = ledger_of("rdp")
    other.charge(PrivacyGuarantee(0.1))
    assert "order 129 each" in other.report()
    with pytest.raises(ValueError, match="composition must be one of"):
        Ledger(1.0, composition="renyi")


def test_a_ledger_of_sums_is_written_as_ever_and_is_no_other(tmp_path):
    path = tmp_path / "budget.sqlite"
    Ledger(1.0, delta=DELTA, path=path).charge(PrivacyGuarantee(0.1))
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT format FROM terms").fetchone() == (1,)
    assert len(connection.execute("SELECT * FROM terms").description) == 7
    connection.close()
    with pytest.raises(LedgerError, match="another composition"):
        ledger_of("zcdp", path=path)
    assert Ledger.open(path).composition == "basic"


@pytest.mark.parametrize("change", [
    "UPDATE terms SET amounts = '[\"1\"]'", "UPDATE terms SET composition = 'rdp'",
    "UPDATE terms SET composition = 'basic'",
    "UPDATE terms SET format = 1", "UPDATE terms SET format = 3", "UPDATE terms SET amounts = '[]'",
    "UPDATE entries SET charged_rho = '0'", "UPDATE entries SET everybody_rho = '0'",
    "UPDATE terms SET amounts = NULL",
    "INSERT INTO totals VALUES ('x', '1')",
])
def test_changes_from_outside_are_noticed(change, tmp_path):
    path = tmp_path / "budget.sqlite"
    ledger_of("zcdp", path=path).charge(PrivacyGuarantee(0.1))
    connection = sqlite3.connect(path)
    connection.executescript(change)
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError):
        Ledger.open(path)
