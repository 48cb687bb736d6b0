"""Filters, odometers, calibration, and guarantees for parts, groups and samples."""

import contextlib
import copy
import itertools
import math
import pickle
import sys
import threading
from fractions import Fraction

import pytest
from mpmath import mp, mpf

from dpestim.accounting import (
    BasicFilter,
    BudgetExceededError,
    ConcentratedFilter,
    ConcentratedOdometer,
    PrivacyLossDistribution,
    RenyiCurve,
    RenyiFilter,
    advanced_composition,
    calibrate,
    concentrated_of,
    group_privacy,
    largest_rho,
    optimal_delta,
    optimal_epsilon,
    parallel,
    simple_epsilon,
    subsampled,
)
from dpestim.accounting.composition import equal_delta
from dpestim.base import all_estimators
from dpestim.central import DiscreteGaussianMechanism, GaussianMechanism, SmoothSensitivity
from dpestim.privacy import Neighbours, PrivacyGuarantee

mp.dps = 40


@pytest.fixture(autouse=True)
def _digits():
    """Other modules have their own number of digits, and the last one imported would win."""
    with mp.workdps(40):
        yield


def central(epsilon, delta=0, neighbours=Neighbours.ADD_REMOVE):
    return PrivacyGuarantee(epsilon, delta, model="central", neighbours=neighbours)


def test_basic_filter_is_exact_and_refuses_without_spending():
    budget = BasicFilter(1.0, 1e-6)
    for _ in range(10):
        budget.spend(0.1, 1e-7)
    assert budget.spent == (1, Fraction(1, 10**6))
    assert budget.would_exceed(1e-300)
    assert not budget.would_exceed(0)
    with pytest.raises(BudgetExceededError):
        budget.spend(0.0, 1e-9)
    assert budget.spent == (1, Fraction(1, 10**6))
    with pytest.raises(ValueError, match="epsilon"):
        budget.spend(-0.1)


def test_concentrated_filter_lets_the_square_root_through():
    budget, each, n = ConcentratedFilter(1.0, 1e-6), concentrated_of(0.02), 0
    while not budget.would_exceed(each):
        budget.spend(each)
        n += 1
    assert budget.spent == n * each <= budget.rho
    assert RenyiCurve.concentrated(budget.rho).delta(1.0) <= 1e-6 < RenyiCurve.concentrated(budget.rho * 2).delta(1.0)
    assert n > 1.0 / 0.02  # more than the sum allows
    # what it let through is private by the optimum, too, which a declared schedule may use
    assert optimal_delta([0.02] * n, 1.0) < 1e-6
    with pytest.raises(BudgetExceededError):
        budget.spend(each)


def test_renyi_filter_stops_where_its_order_does():
    curve, n = RenyiCurve.gaussian(30.0), 0
    budget = RenyiFilter(1.0, 1e-6, order=25)
    while not budget.would_exceed(curve):
        budget.spend(curve)
        n += 1
    a = mpf(25)
    within = a - 1 + mp.log(mpf("1e-6")) - (a * mp.log(1 - 1 / a) - mp.log(a - 1))
    assert n == int(within / ((a - 1) * a / (2 * mpf(900))))
    assert curve.compose(n).delta(1.0) <= 1e-6
    with pytest.raises(BudgetExceededError):
        budget.spend(curve)
    assert budget.would_exceed(RenyiCurve.gaussian(1.0, sampling_rate=0.1).compose(10**6))
    with pytest.raises(ValueError, match="order is too small"):
        RenyiFilter(0.1, 1e-9, order=2)
    with pytest.raises(ValueError, match="curve"):
        budget.spend(0.1)


def test_odometer_pays_for_not_knowing_when_to_stop():
    odometer, shown = ConcentratedOdometer(1e-6, start=1e-3), []
    for _ in range(50):
        odometer.spend(0.001)
        assert odometer.epsilon > simple_epsilon(odometer.spent, 1e-6)
        shown.append(odometer.epsilon)
    assert shown == sorted(shown)
    assert len(set(shown)) == 7  # levels 1, 2, 4, ..., 64
    with pytest.raises(ValueError, match="delta"):
        ConcentratedOdometer(1.0)


def test_largest_rho_and_simple_conversion():
    assert round(simple_epsilon(0.1, 1e-6), 3) == 2.451
    assert round(simple_epsilon(0.5, 1e-5), 3) == 5.299
    rho = largest_rho(2.142, 1e-6)
    assert 0.0999 < rho < 0.1001
    more = RenyiCurve.concentrated(rho * Fraction(1001, 1000))
    assert RenyiCurve.concentrated(rho).delta(2.142) <= 1e-6 < more.delta(2.142)


@pytest.mark.parametrize("k", [2, 30, 300])
def test_advanced_composition_is_never_better_than_the_optimum(k):
    epsilon, delta = advanced_composition(0.05, k, slack=1e-6)
    assert delta >= 1e-6
    assert optimal_epsilon([0.05] * k, delta) <= min(epsilon, 0.05 * k + 1e-12)


def test_parts_of_the_data():
    assert parallel([central(1), central(0.5, 1e-6)]) == central(1, 1e-6)
    replaced = [central(e, d, Neighbours.SUBSTITUTION) for e, d in ((1, 0), (0.5, 1e-6), (0.75, 1e-7))]
    fixed = parallel(replaced, public_parts=True)
    assert (fixed.epsilon, fixed.delta) == (1, Fraction(1, 10**6))
    assert parallel([PrivacyGuarantee(1), PrivacyGuarantee(2)], public_parts=True).epsilon == 2
    assert parallel([central(math.inf), central(1)]).epsilon == math.inf
    converted = parallel([central(1), central(0.5, 1e-6)], neighbours="substitution")
    assert converted == central(1, 1e-6).to("substitution")
    assert converted.epsilon == 2
    with pytest.raises(ValueError, match="same neighbours"):
        parallel([central(1), replaced[0]])
    with pytest.raises(ValueError, match="guarantees"):
        parallel([])
    with pytest.raises(ValueError, match="public_parts"):
        parallel([central(1)], public_parts=1)
    with pytest.raises(ValueError, match="neighbours must be"):
        parallel([central(1)], neighbours="local")


@pytest.mark.parametrize("refused", [central(1, 0, Neighbours.SUBSTITUTION), PrivacyGuarantee(1)])
def test_parts_that_a_record_may_leave_need_more_than_guarantees_of_replaced_records(refused):
    """A sum between 1,000 and 1,001 has noise for a change of 1, and a row that moves changes it by 1,000."""
    with pytest.raises(ValueError, match=r'add_remove neighbours.*public_parts=True'):
        parallel([refused, refused])


def test_parallel_for_replaced_records_is_the_worst_pair_of_histograms():
    # counts of two cells by randomised response on membership: a record that moves changes both
    odds, releases = Fraction(3), (Fraction(3, 4), Fraction(1, 4))
    worst = max(Fraction(releases[a] * releases[1 - b], releases[1 - a] * releases[b])
                for a, b in itertools.product((0, 1), repeat=2))
    assert worst == odds**2
    epsilon = parallel([central(math.log(3))] * 5, neighbours="substitution").epsilon
    assert float(epsilon) == pytest.approx(2 * math.log(3))


def test_groups():
    assert group_privacy(PrivacyGuarantee(0.5), 4) == (2, 0)
    epsilon, delta = group_privacy(PrivacyGuarantee(0.1, 1e-6), 7)
    truth = mpf("1e-6") * mp.expm1(mpf("0.7")) / mp.expm1(mpf("0.1"))
    assert epsilon == Fraction(7, 10)
    assert abs(mpf(delta.numerator) / delta.denominator / truth - 1) < mpf(10) ** -35
    assert group_privacy(PrivacyGuarantee(0, 1e-6), 7) == (0, Fraction(7, 10**6))
    assert group_privacy(PrivacyGuarantee(1, 1e-6), 10**9) == (10**9, 1)
    assert group_privacy(PrivacyGuarantee(1), 10**9) == (10**9, 0)
    with pytest.raises(ValueError, match="size"):
        group_privacy(PrivacyGuarantee(1), 0)
    for guarantee in (PrivacyGuarantee(math.inf), 0.5):
        with pytest.raises(ValueError, match="guarantee"):
            group_privacy(guarantee, 2)


def test_samples_of_the_records():
    got = subsampled(central(1, 1e-6), 0.01, sampling="poisson")
    truth = mp.log1p(mpf("0.01") * mp.expm1(1))
    assert truth <= mpf(got.epsilon.numerator) / got.epsilon.denominator <= truth + mpf(3e-15)
    assert got.delta == Fraction(1, 10**8)
    assert got.neighbours is Neighbours.ADD_REMOVE
    replaced = central(1, neighbours=Neighbours.SUBSTITUTION)
    assert subsampled(replaced, 0.01, sampling="without_replacement").epsilon == got.epsilon
    assert subsampled(replaced, 1, sampling="without_replacement") is replaced
    local = PrivacyGuarantee(1)
    for guarantee, sampling in ((replaced, "poisson"), (central(1), "without_replacement"), (local, "poisson")):
        with pytest.raises(ValueError, match="needs a guarantee for"):
            subsampled(guarantee, 0.01, sampling=sampling)
    with pytest.raises(ValueError, match="rate"):
        subsampled(central(1), 0, sampling="poisson")
    with pytest.raises(ValueError, match="sampling"):
        subsampled(central(1), 0.1, sampling="bernoulli")


def test_a_sample_is_never_better_than_the_losses_of_its_worst_case():
    # randomised response on a Poisson sample: the pair that subsampled() must cover
    e, q = math.e, 0.1
    p, other = [e / (1 + e), 1 / (1 + e)], [1 / (1 + e), e / (1 + e)]
    mixture = [(1 - q) * b + q * a for a, b in zip(p, other)]
    losses = PrivacyLossDistribution.from_pair(mixture, other)
    assert losses.delta(float(subsampled(central(1), q, sampling="poisson").epsilon) * (1 + 1e-4)) < 1e-9
    assert losses.delta(float(subsampled(central(1), q, sampling="poisson").epsilon) * 0.95) > 1e-4


class Mechanism:
    def __init__(self, epsilon=1.0, *, delta=None):
        self.epsilon, self.delta = epsilon, delta


class Pure:
    def __init__(self, epsilon=1.0):
        self.epsilon = epsilon


class WithLaw:
    def law(self):
        return Mechanism(1.0, delta=0.1)


def test_calibrate_budgets():
    assert calibrate(Pure, epsilon=1, n_releases=3)["epsilon"] == pytest.approx(1 / 3)
    assert 3 * Fraction(repr(calibrate(Pure, epsilon=1, n_releases=3)["epsilon"])) <= 1
    each = calibrate(Pure(), epsilon=1, delta=1e-6, n_releases=200)["epsilon"]
    assert optimal_delta([each] * 200, 1.0) <= 1e-6 < optimal_delta([each * 1.0001] * 200, 1.0)
    assert each > 2 / 200
    given = calibrate(Mechanism, epsilon=1, delta=1e-6, n_releases=50)
    assert optimal_delta([given["epsilon"]] * 50, 1.0, [given["delta"]] * 50) <= 1e-6
    assert given["epsilon"] > 1 / 50
    assert given["delta"] > 0
    assert set(calibrate(WithLaw(), epsilon=1, n_releases=2)) == {"epsilon", "delta"}


def test_a_delta_that_is_not_used_is_not_given():
    each = calibrate(SmoothSensitivity(1.0, bounds=(0.0, 1.0)), epsilon=1, delta=1e-6, n_releases=50)
    assert set(each) == {"epsilon"}
    each = calibrate(SmoothSensitivity(1.0, bounds=(0, 1), noise="laplace", delta=1e-6), epsilon=1, delta=1e-6,
                     n_releases=50)
    assert set(each) == {"epsilon", "delta"}


@pytest.mark.parametrize("cls", [GaussianMechanism, DiscreteGaussianMechanism])
def test_normal_noise_is_the_least(cls):
    given = calibrate(cls(1.0, delta=1e-5, sensitivity=1), epsilon=1, delta=1e-6, n_releases=50)
    made = cls(**given, sensitivity=1)
    rho = made.privacy_.curve.rho
    if cls is DiscreteGaussianMechanism:  # of several integers no more is known than that it is concentrated
        assert 0.99e-6 < RenyiCurve.concentrated(50 * rho).delta(1) <= 1e-6
    sigma = 1 / math.sqrt(2 * rho)
    assert PrivacyLossDistribution.gaussian(sigma).compose(50).delta(1) <= 1e-6
    assert sigma == pytest.approx(29.88 if cls is GaussianMechanism else 32.04, rel=1e-3)
    with pytest.raises(ValueError, match="delta must be above 0"):
        calibrate(made, epsilon=1, n_releases=5)


def test_very_many_releases_are_counted_and_not_listed():
    found = [equal_delta(Fraction(1, 10**k), Fraction(0), 10**9, Fraction(1)) for k in (4, 6)]
    assert found[1] < 1e-6 < 0.818 < found[0]  # (0.8181 by the normal limit)


def test_calibrate_noise():
    sigma = calibrate(PrivacyLossDistribution.gaussian, epsilon=1.0, delta=1e-6, n_releases=16)["sigma"]
    assert PrivacyLossDistribution.gaussian(sigma).compose(16).delta(1.0) <= 1e-6
    one = PrivacyLossDistribution.gaussian(sigma / 4)  # sixteen of sigma are one of a quarter
    assert one.delta(1.0) == pytest.approx(1e-6, rel=1e-3)
    scale = calibrate(lambda b: RenyiCurve.laplace(b), epsilon=2.0, delta=1e-6, n_releases=10)
    assert RenyiCurve.laplace(scale["b"]).compose(10).delta(2.0) <= 1e-6
    pure = calibrate(PrivacyLossDistribution.laplace, epsilon=2.0, n_releases=4)["scale"]
    assert 2 <= pure < 2.001


@pytest.mark.parametrize(("arguments", "message"), [
    ({"mechanism": Pure, "epsilon": 0, "n_releases": 2}, "epsilon"),
    ({"mechanism": Pure, "epsilon": 1, "n_releases": 0}, "n_releases"),
    ({"mechanism": Pure, "epsilon": 1, "delta": 1, "n_releases": 2}, "delta"),
    ({"mechanism": 3, "epsilon": 1, "n_releases": 2}, "mechanism"),
    ({"mechanism": lambda x: x, "epsilon": 1, "n_releases": 2}, "mechanism"),
    ({"mechanism": RenyiCurve.gaussian, "epsilon": 1, "n_releases": 2}, "no noise"),
])
def test_calibrate_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        calibrate(arguments.pop("mechanism"), **arguments)


@pytest.mark.parametrize(("make", "n"), [(lambda: BasicFilter(1000), 1000), (lambda: ConcentratedOdometer(0.1), 1600)])
def test_threads_share_one_account(make, n):
    account, before, spent, start = make(), sys.getswitchinterval(), [], threading.Barrier(8)

    def spend():
        start.wait()
        with contextlib.suppress(BudgetExceededError):
            for _ in range(200):
                account.spend(1)
                spent.append(1)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert len(spent) == n
    assert account.spent in (n, (n, 0))


@pytest.mark.parametrize("account", [BasicFilter(1), ConcentratedFilter(1, 1e-6), RenyiFilter(1, 1e-6, order=25),
                                     ConcentratedOdometer(1e-6)])
def test_an_account_has_no_copies(account, monkeypatch):
    for how in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            how(account)
    cost = RenyiCurve.gaussian(1e3) if isinstance(account, RenyiFilter) else 1e-9
    account.spend(cost)
    spent = account.spent
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(ValueError, match="in the process that made it"):
        account.spend(cost)
    assert account.spent == spent


@pytest.mark.parametrize("exponent", [30, 60, 74, 75, 76, 79, 80, 300])
def test_groups_of_tiny_epsilons(exponent):
    epsilon = Fraction(1, 10**exponent)
    for size in (1, 3):
        delta = group_privacy(PrivacyGuarantee(epsilon, Fraction(1, 10**6)), size)[1]
        least = size + epsilon * size * (size - 1) / 2  # the first two terms of the series, all of which are above 0
        assert least <= delta * 10**6 <= least + max(epsilon * size**2, Fraction(1, 10**29))


@pytest.mark.parametrize("cls", [cls for _, cls in all_estimators() if hasattr(cls, "_randomizer")])
def test_only_what_holds_for_any_two_inputs_is_calibrated(cls):
    relaxed = cls.__name__.startswith(("URR", "URAP", "SDGRR", "SDPM", "Metric", "Planar", "OptimalGeo"))
    if not relaxed:
        assert calibrate(cls, epsilon=1, n_releases=2)["epsilon"] == 0.5
        return
    for mechanism in (cls, cls(**cls._test_params()[0]), cls._randomizer):
        with pytest.raises(ValueError, match="only under the relaxation"):
            calibrate(mechanism, epsilon=1, n_releases=2)
