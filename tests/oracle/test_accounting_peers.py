"""Accounting against dp-accounting and opendp, where an environment has them."""

import math

import pytest

from dpestim.accounting import PrivacyLossDistribution, RenyiCurve
from dpestim.central import LaplaceMechanism
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.composition import COMPOSITIONS

#: its own, 1e-4, moves randomised response up by more than we differ
STEP = 1e-5
CENTRAL = {"model": "central", "neighbours": Neighbours.SUBSTITUTION}

CASES = {
    "gaussian": (lambda: PrivacyLossDistribution.gaussian(40.0).compose(1000),
                 lambda pld: pld.from_gaussian_mechanism(40.0).self_compose(1000)),
    "laplace": (lambda: PrivacyLossDistribution.laplace(20.0).compose(500),
                lambda pld: pld.from_laplace_mechanism(20.0).self_compose(500)),
    "sampled gaussian": (lambda: PrivacyLossDistribution.gaussian(1.0, sampling_rate=0.01).compose(1000),
                         lambda pld: pld.from_gaussian_mechanism(1.0, sampling_prob=0.01).self_compose(1000)),
    "sampled laplace": (lambda: PrivacyLossDistribution.laplace(1.0, sampling_rate=0.05).compose(200),
                        lambda pld: pld.from_laplace_mechanism(1.0, sampling_prob=0.05).self_compose(200)),
    "discrete laplace": (lambda: PrivacyLossDistribution.discrete_laplace(10.0).compose(50),
                         lambda pld: pld.from_discrete_laplace_mechanism(0.1).self_compose(50)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("delta", [1e-5, 1e-8])
def test_epsilons_of_dp_accounting(case, delta):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution", reason="dp-accounting is not installed")
    ours, peer = CASES[case]
    assert ours().epsilon(delta) == pytest.approx(peer(pld).get_epsilon_for_delta(delta), abs=2e-4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_conversion_of_opendp(delta):
    dp = pytest.importorskip("opendp.prelude", reason="opendp is not installed")
    dp.enable_features("contrib")
    noise = dp.m.make_gaussian(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=math.sqrt(5))
    peer = dp.c.make_zCDP_to_approxDP(noise).map(1.0).epsilon(delta)
    assert RenyiCurve.concentrated(0.1).epsilon(delta) == pytest.approx(peer, rel=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("delta", [1e-5, 1e-8])
def test_sums_of_guarantees_against_dp_accounting(delta):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution", reason="dp-accounting is not installed")
    noise = LaplaceMechanism(0.1, sensitivity=1.0).privacy_
    ours = sum(50 * [noise]) + sum(20 * [PrivacyGuarantee(0.05, **CENTRAL)], start=noise)
    peer = (pld.from_laplace_mechanism(10.0, value_discretization_interval=STEP).self_compose(51)
            .compose(pld.from_randomized_response(
                2 / (1 + math.exp(0.05)), 2, value_discretization_interval=STEP).self_compose(20)))
    known = peer.get_epsilon_for_delta(delta)
    assert known - 2e-4 <= ours.epsilon_at(delta) <= known * 1.001
    half = sum(51 * [LaplaceMechanism(0.05, sensitivity=1.0).privacy_])
    assert half.epsilon_at(delta) < known - 0.1  # (it can fail)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_renyi_divergences_of_dp_accounting(epsilon):
    rdp = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant", reason="dp-accounting is not installed")
    event = pytest.importorskip("dp_accounting").LaplaceDpEvent(1 / epsilon)
    accountant = rdp.RdpAccountant([1.5, 2.0, 17.0, 129.0])
    accountant.compose(event)
    costs = COMPOSITIONS["rdp"].costs(LaplaceMechanism(epsilon, sensitivity=1.0).privacy_, False)
    for order, divergence in zip(accountant._orders, accountant._rdp):
        cost = costs[[1.5, 2, 3, 5, 9, 17, 33, 65, 129].index(order)]
        assert divergence * (order - 1) <= float(cost) <= 1.001 * divergence * (order - 1)
