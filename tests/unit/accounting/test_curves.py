"""Curves of guarantees: never below the truth, by exact enumeration, however they are added, converted and charged."""

import base64
import math
import pickle
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from dpestim.accounting import Ledger, PrivacyLossDistribution, RenyiCurve, calibrate, largest_rho, parallel, subsampled
from dpestim.audit import compose, hockey_stick
from dpestim.central import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    StaircaseMechanism,
)
from dpestim.central.additive.discrete_laplace import losses_of
from dpestim.privacy import ZCDP, Neighbours, PrivacyGuarantee
from dpestim.privacy.composition import COMPOSITIONS, Renyi

DELTA = Fraction(1, 10**6)
CENTRAL = {"model": "central", "neighbours": Neighbours.SUBSTITUTION}
ADD_REMOVE = {"model": "central", "neighbours": Neighbours.ADD_REMOVE}
#: pickled before guarantees had curves of other kinds
OLD = """
gASVUQEAAAAAAACMGWRwZXN0aW0ucHJpdmFjeS5ndWFyYW50ZWWUjBBQcml2YWN5R3VhcmFudGVllJOUKYGUfZQojAdlcHNpbG9u
lIwJZnJhY3Rpb25zlIwIRnJhY3Rpb26Uk5RLAUsChpRSlIwFZGVsdGGUaAhLAUpAQg8AhpRSlIwFbW9kZWyUjAdjZW50cmFslIwK
bmVpZ2hib3Vyc5SMGmRwZXN0aW0ucHJpdmFjeS5uZWlnaGJvdXJzlIwKTmVpZ2hib3Vyc5STlIwKYWRkX3JlbW92ZZSFlFKUjAZz
ZWVkZWSUiYwFbm90ZXOUKYwKcmVsYXhhdGlvbpROjA9yZWxheGVkX2Vwc2lsb26UTowFY3VydmWUjBxkcGVzdGltLnByaXZhY3ku
Y29uY2VudHJhdGVklIwEWkNEUJSTlCmBlH2UjANyaG+UaAhLAUsKhpRSlHNidWIu"""


def laplace_pair(rate, moved):
    """Discrete Laplace noise on an integer that moves: outcomes up to 0, 1, ..., moved - 1, and from there."""
    a = Fraction(math.exp(-rate))
    p = [1 / (1 + a), *((1 - a) / (1 + a) * a**z for z in range(1, moved)), a**moved / (1 + a)]
    return p, p[::-1]


def response_pair(epsilon, delta=Fraction(0)):
    """The worst of all (epsilon, delta)-private releases."""
    yes = 1 / (1 + Fraction(math.exp(-epsilon)))
    p = [delta, (1 - delta) * yes, (1 - delta) * (1 - yes), Fraction(0)]
    return p, p[::-1]


def normal_pair(sigma):
    z = np.arange(-60, 62)
    p, q = (np.exp(-((z - moved) ** 2) / (2 * sigma**2)) for moved in (0, 1))
    return (p / p.sum()).tolist(), (q / q.sum()).tolist()


def true_delta(pairs, epsilon, times=1):
    p, q = compose(pairs, times)
    return max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))


class HalfRenyi(RenyiCurve):
    """A broken twin."""

    def cgf(self, t):
        return super().cgf(t) / 2


def halved(curve):
    """A broken twin of a curve: losses, or divergences, that are half of what they are, or less."""
    if isinstance(curve, PrivacyLossDistribution):
        return PrivacyLossDistribution.laplace(2.0, sensitivity=float(min(pair.reach for pair in curve._pieces)))
    return ZCDP(curve.rho / 2) if isinstance(curve, ZCDP) else HalfRenyi(curve._pieces)


def releases():
    sigma = DiscreteGaussianMechanism(0.9, delta=1e-2, sensitivity=1)
    return {
        "laplace": (DiscreteLaplaceMechanism(0.75, sensitivity=2).privacy_, laplace_pair(0.375, 2)),
        "pure": (PrivacyGuarantee(0.5, **CENTRAL), response_pair(0.5)),
        "both": (PrivacyGuarantee(0.25, 0.001, **CENTRAL), response_pair(0.25, Fraction(1, 1000))),
        "normal": (sigma.privacy_, normal_pair(sigma.law(1).sigma)),
    }


KINDS = {"laplace": PrivacyLossDistribution, "pure": ZCDP, "both": type(None), "normal": ZCDP}
SERIES = [names for k in (1, 2, 3) for names in combinations_with_replacement(KINDS, k) if names.count("normal") < 2]


def test_sums_of_any_kinds_are_never_below_the_truth():
    known, failed = releases(), set()
    for names in SERIES:
        total, pairs = sum(known[name][0] for name in names), [known[name][1] for name in names]
        for delta in (Fraction(1, 30),):
            epsilon = total.epsilon_at(delta)
            assert true_delta(pairs, epsilon) <= delta * (1 + Fraction(1, 10**9)), names
            broken = None if total.curve is None else halved(total.curve).epsilon_at(delta)
            if broken is not None and true_delta(pairs, broken) > delta:
                failed.add(type(total.curve))
    assert failed == {PrivacyLossDistribution, RenyiCurve, ZCDP}


def test_the_tightest_rule_that_both_have():
    known = {name: guarantee for name, (guarantee, _) in releases().items()}
    for names in SERIES:
        kind = type(sum(known[name] for name in names).curve)
        if len(names) > 1 and names[0] != "laplace":
            assert kind is (type(None) if "both" in names else ZCDP)
        elif len(names) == 2:
            assert kind is (RenyiCurve if "normal" in names else PrivacyLossDistribution)
    many = sum(30 * [known["laplace"]])
    assert many.epsilon == 30 * known["laplace"].epsilon
    assert many.epsilon_at(DELTA) < Fraction(9, 10) * many.concentrated.epsilon_at(DELTA)
    assert many.at(DELTA).curve == many.curve


def test_losses_of_one_integer_are_those_of_any_vector():
    for sensitivity, moves in (
        (3, [(3,), (1, 2), (1, 1, 1), (2,)]), (Fraction(7, 2), [(3,), (2, 1)]), (1, [(1,)]),
    ):
        epsilon = Fraction(3, 2)
        losses = losses_of(epsilon, Fraction(sensitivity))
        rate, low = float(epsilon / sensitivity), []
        for moved in moves:
            pairs = [laplace_pair(rate, m) for m in moved]
            for e in (0.3, 1.0):
                true = true_delta(pairs, e)
                assert true <= losses.delta(e) + 1e-12
                low.append(true > PrivacyLossDistribution.laplace(2.0, sensitivity=1.5).delta(e))
        assert sum(low) > len(low) / 2
    assert losses_of(Fraction(1), Fraction(1, 2)) is None
    assert losses_of(Fraction(501), Fraction(1)) is None


@pytest.mark.parametrize("sensitivity", [4096, 5000.5, 100])
def test_a_fine_grid_is_within_real_noise(sensitivity):
    moved, epsilon = int(sensitivity), 1.0  # (all of it: less, or vectors, have less)
    losses, rate = losses_of(Fraction(epsilon), min(Fraction(sensitivity), Fraction(4096))), epsilon / sensitivity
    z = np.arange(1, moved)
    a = math.exp(-rate)
    p = np.concatenate([[1], (1 - a) * np.exp(-rate * z), [math.exp(-rate * moved)]]) / (1 + a)
    for e in (0.0, 0.5, 0.9, 0.9999):
        true = np.maximum(p - math.exp(e) * p[::-1], 0).sum()
        assert true <= losses.delta(e) <= true + 0.6 / moved + 2e-4
        assert true > PrivacyLossDistribution.laplace(1.02).delta(e) or e > 0.95


def test_a_mechanism_hands_in_what_is_known_of_it():
    for mechanism, kind in (
        (LaplaceMechanism(0.3, sensitivity=2.5), PrivacyLossDistribution),
        (DiscreteLaplaceMechanism(0.3, sensitivity=1), PrivacyLossDistribution),
        (GaussianMechanism(0.3, delta=1e-6, sensitivity=1.0), PrivacyLossDistribution),
        (DiscreteGaussianMechanism(0.3, delta=1e-6, sensitivity=1), ZCDP),
        (StaircaseMechanism(0.3, sensitivity=1.0), type(None)),
        (GaussianMechanism(80, delta=1 - 1e-15, sensitivity=1.0), ZCDP),  # losses of more than is accounted for
    ):
        guarantee = mechanism.privacy_
        assert type(guarantee.curve) is kind
        again = pickle.loads(pickle.dumps(guarantee))
        assert again == guarantee == type(mechanism)(**mechanism.get_params()).privacy_
        assert hash(again) == hash(guarantee)
        assert guarantee <= again
        both = str(guarantee + PrivacyGuarantee(1, DELTA, **CENTRAL))
        assert both.count(". ") <= 1
    noise, pure = LaplaceMechanism(0.3, sensitivity=1.0), StaircaseMechanism(0.3, sensitivity=1.0)
    assert LaplaceMechanism(0.2, sensitivity=1.0).privacy_ <= noise.privacy_
    assert not noise.privacy_ <= LaplaceMechanism(0.2, sensitivity=1.0).privacy_
    assert noise.privacy_ <= pure.privacy_
    assert not pure.privacy_ <= noise.privacy_  # less is known of it
    assert sum(2 * [noise.privacy_]) <= sum(3 * [noise.privacy_])
    wide, four = GaussianMechanism(0.5, delta=1e-6, sensitivity=1.0).privacy_, PrivacyLossDistribution.gaussian(8.0)
    assert PrivacyLossDistribution.gaussian(4.0).follows_from(four.compose(4))
    assert not PrivacyLossDistribution.gaussian(4.0).follows_from(four.compose(5))
    assert wide <= PrivacyGuarantee(0.5, 1e-6, curve=ZCDP(wide.curve.rho), **CENTRAL)
    assert not wide <= PrivacyGuarantee(0.5, 1e-6, curve=ZCDP(wide.curve.rho / 2), **CENTRAL)


def test_old_pickles_are_read():
    old = pickle.loads(base64.b64decode(OLD))
    assert old == PrivacyGuarantee(Fraction(1, 2), DELTA, curve=ZCDP(Fraction(1, 10)), **ADD_REMOVE)
    assert (old + old).curve == ZCDP(Fraction(1, 5))


def test_another_relation_and_what_it_costs():
    given = {"neighbours": "add_remove"}
    for mechanism, pair, rate in (
        (DiscreteLaplaceMechanism(0.75, sensitivity=2, **given), laplace_pair(0.375, 4), 0.375),
        (DiscreteLaplaceMechanism(0.75, sensitivity=1, **given), laplace_pair(0.75, 2), 0.75),
    ):
        twice = sum(2 * [mechanism.privacy_]).to("substitution")
        for delta in (0.05, 0.01):
            assert true_delta([pair], twice.epsilon_at(delta), 2) <= delta * (1 + 1e-9)
        assert true_delta([pair], sum(2 * [mechanism.privacy_]).epsilon_at(0.05), 2) > 0.05
        assert rate
    fine = LaplaceMechanism(0.5, sensitivity=1.0, **given).privacy_
    assert fine.to("substitution").curve == PrivacyLossDistribution.laplace(
        1.0, sensitivity=2 * next(iter(fine.curve._pieces)).base.shift)
    sampled = subsampled(fine, 0.1, sampling="poisson")
    assert sampled.to("substitution").curve is None
    with pytest.raises(ValueError, match="add_remove neighbours"):
        PrivacyGuarantee(1, curve=sampled.curve, **CENTRAL)
    with pytest.raises(ValueError, match="curve must be"):
        PrivacyGuarantee(1, curve=[sampled.curve], **CENTRAL)
    assert RenyiCurve.laplace(2.0).of_groups(3) == RenyiCurve.laplace(2.0, sensitivity=3)
    assert RenyiCurve.pure(0.5).of_groups(2) == RenyiCurve.pure(1)
    assert PrivacyLossDistribution.gaussian(0.1).of_groups(3).rho >= 450  # too near for losses
    assert PrivacyLossDistribution.approximate(1, 0.1).of_groups(2) is None


def test_samples_keep_the_noise():
    rate, epsilon, moved = 0.25, 1.0, 100
    guarantee = PrivacyGuarantee(epsilon, curve=losses_of(Fraction(epsilon), Fraction(moved)), **ADD_REMOVE)
    sampled = subsampled(guarantee, rate, sampling="poisson")
    assert sampled.curve.is_sampled
    p, q = (np.array(law, float) for law in laplace_pair(epsilon / moved, moved))
    mixed = rate * p + (1 - rate) * q
    for e in (0.0, 0.1, 0.25):
        for one, two in ((mixed, q), (q, mixed)):
            twice = np.maximum(np.outer(one, one) - math.exp(e) * np.outer(two, two), 0).sum()
            assert twice <= sampled.curve.compose(2).delta(e)
    whole = np.maximum(np.outer(p, p) - np.outer(q, q), 0).sum()
    assert whole > sampled.curve.compose(2).delta(0)  # (it can fail)
    assert sum(20 * [sampled]).epsilon_at(1e-6) < sum(20 * [sampled]).epsilon
    many = subsampled(sum(2 * [guarantee]), rate, sampling="poisson")
    assert many.curve is None
    assert subsampled(PrivacyGuarantee(1, curve=guarantee.curve, **CENTRAL), rate,
                      sampling="without_replacement").curve is None


def test_parts_keep_the_largest():
    small, large = (LaplaceMechanism(e, sensitivity=1.0, neighbours="add_remove").privacy_ for e in (0.2, 0.4))
    normal = GaussianMechanism(0.3, delta=1e-6, sensitivity=1.0, neighbours="add_remove").privacy_
    pure = PrivacyGuarantee(0.5, **ADD_REMOVE)
    assert parallel([small, large, small]).curve == large.curve
    true = 0.5 + math.log1p(-1e-6 * (1 + math.exp(-0.5)))  # of randomised response
    assert true <= parallel([small, pure]).epsilon_at(DELTA) < Fraction(1, 2)
    mixed = parallel([small, large, normal, pure])
    assert (mixed.epsilon, mixed.delta) == (Fraction(1, 2), DELTA)
    t = np.array([0.5, 2.0, 30.0])
    for part in (large, normal):
        assert (part.curve.cgf(t) <= mixed.curve.cgf(t)).all()
    assert (RenyiCurve.pure(0.5).cgf(t) <= mixed.curve.cgf(t)).all()
    assert mixed.to("substitution").curve.rho == 4 * mixed.curve.rho
    fixed = parallel([LaplaceMechanism(e, sensitivity=1.0).privacy_ for e in (0.2, 0.4)], public_parts=True)
    assert fixed.curve == LaplaceMechanism(0.4, sensitivity=1.0).privacy_.curve
    assert parallel([pure, pure]).curve is None
    assert parallel([small, PrivacyGuarantee(0.1, DELTA, **ADD_REMOVE)]).curve is None


class Cheap(Renyi):
    """A broken twin: an eighth of what a curve costs."""

    def _costs(self, curve):
        return tuple(cost / 8 for cost in super()._costs(curve))

    def _pure_costs(self, epsilon):
        return tuple(cost / 8 for cost in super()._pure_costs(epsilon))


def worst_delta(way, epsilon, delta, strategy):
    """The exact delta of noise on an integer that moves by 2, chosen by the loss so far, until too little is left."""
    budget = way.budget(epsilon, delta)
    costs = {size: way.costs(DiscreteLaplaceMechanism(size, sensitivity=2).privacy_, False) for size in (0.25, 0.5, 1)}

    def go(loss, spent, depth):
        size = strategy(loss)
        total = tuple(a + b for a, b in zip(spent, costs[size]))
        if depth == 7 or way.short(total, budget, costs[size]) is not None:
            return max(0.0, -math.expm1(float(epsilon) - loss))
        p, _ = laplace_pair(size / 2, 2)
        return sum(float(mass) * go(loss + step * size, total, depth + 1) for mass, step in zip(p, (1, 0, -1)))

    return go(0.0, tuple(0 * b for b in budget), 0)


def test_a_ledger_charges_noise_as_noise_and_keeps_its_budget():
    strategies = (lambda loss: 0.5, lambda loss: 1 if loss > 0.5 else 0.25, lambda loss: 0.25 if loss > 0 else 1)
    for strategy in strategies:
        for epsilon, delta in ((1, 0.1), (2, 0.02)):
            for name in ("zcdp", "rdp"):
                assert worst_delta(COMPOSITIONS[name], Fraction(epsilon), Fraction(str(delta)), strategy) <= delta
    assert worst_delta(Cheap(), Fraction(1), Fraction(1, 10), strategies[0]) > 0.1
    way, noise, pure = COMPOSITIONS["rdp"], LaplaceMechanism(1.0, sensitivity=1.0), PrivacyGuarantee(1, **CENTRAL)
    assert all(a < b for a, b in zip(way.costs(noise.privacy_, False), way.costs(pure, False)))
    assert COMPOSITIONS["zcdp"].costs(noise.privacy_, False) == COMPOSITIONS["zcdp"].costs(pure, False)
    assert way.costs(noise.privacy_, False)[0] >= Fraction(float(RenyiCurve.laplace(1.0).cgf(np.array([0.5]))[0]))
    ledger = Ledger(2.0, delta=DELTA, composition="rdp", durability="fast")
    ledger.charge(noise.privacy_)
    ledger.charge(GaussianMechanism(0.2, delta=1e-8, sensitivity=1.0).privacy_)
    with pytest.raises(ValueError, match="Renyi divergence"):
        ledger.charge(PrivacyGuarantee(1, DELTA, curve=PrivacyLossDistribution.approximate(1, DELTA), **CENTRAL))
    assert len(ledger) == 2
    assert ledger.verify()


def test_noise_is_calibrated_by_its_own_losses():
    for mechanism, params in ((LaplaceMechanism, {"sensitivity": 1.0}), (DiscreteLaplaceMechanism, {"sensitivity": 5})):
        each = calibrate(mechanism(1.0, **params), epsilon=1, delta=1e-6, n_releases=40)["epsilon"]
        assert each > calibrate(StaircaseMechanism(1.0, sensitivity=1.0), epsilon=1, delta=1e-6,
                                n_releases=40)["epsilon"]
        total = sum(40 * [mechanism(each, **params).privacy_])
        assert total.curve.delta(1) <= 1e-6 < sum(40 * [mechanism(1.01 * each, **params).privacy_]).curve.delta(1)
    assert calibrate(mechanism(1.0, sensitivity=1), epsilon=1, n_releases=4) == {"epsilon": 0.25}


def test_numbers_that_no_float_holds():
    assert largest_rho(Fraction(10) ** 400, 1e-6) > 10**300
    assert RenyiCurve.concentrated(1).delta(Fraction(10) ** 400) < 1e-300
    assert RenyiCurve.gaussian(1.0).delta(10**400) < 1e-300
    for epsilon in (1e-9, 1e-6, 1e-3, 0.1):  # orders reach what a small epsilon asks for
        assert RenyiCurve.concentrated(epsilon**2 / 100).delta(epsilon) < 1e-9
