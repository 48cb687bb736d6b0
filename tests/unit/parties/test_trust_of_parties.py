"""Whom one must trust where several parties make a release: no curator, and no more colluders than are proved."""

import math
import pickle
import sys
from dataclasses import replace
from fractions import Fraction
from time import sleep

import numpy as np
import pytest

from dpestim import distributed
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.additive.gaussian import RoundedGaussianLaw
from dpestim.inspection import privacy_card
from dpestim.linear_model import DPLinearRegression, DPLogisticRegression
from dpestim.naive_bayes import DPGaussianNB
from dpestim.parties import PolyaShares, PrivateIntersectionSize, SecureQuantile, SumTerms, federated, take_part
from dpestim.privacy import PrivacyGuarantee
from dpestim.privacy.trust import Parties
from dpestim.rng import WordSource
from dpestim.statistics import Count, Mean, Sum

module = sys.modules["dpestim.parties.model_of_all"]
ROWS = [np.ones(40, bool)] * 3


class Alone:
    """Adds up for a party whose partners have no rows, and says whom the masks hide from."""

    def __init__(self, n_parties=5, **terms):
        self.n_parties, self.place = n_parties, 0
        vars(self).update(terms)

    def total(self, words, label):
        return words.copy()


def owned():
    owners = [distributed.Owner(Count(1.0)) for _ in range(3)]
    keys = [owner.key for owner in owners]
    return distributed.combine(Count(1.0), [owner.answer(keys, rows) for owner, rows in zip(owners, ROWS)])


@pytest.mark.parametrize(("make", "said"), [
    (lambda: federated(Count(1.0), ROWS), "at most 1 of the 3 parties colludes or drops out"),
    (lambda: federated(Count(1.0), ROWS, honest=1), "at most 2 of the 3 parties collude or drop out"),
    (lambda: federated(Count(1.0), ROWS, honest=3), "none of the 3 parties colludes or drops out"),
    (lambda: federated(DPLinearRegression(1.0, bounds=(0, 1), target_bounds=(0, 1)),
                       [(np.ones((9, 2)), np.ones(9))] * 3), "at most 1 of the 3 parties"),
    (owned, "no owner and no aggregator must be trusted, as long as at most 1 of the 3 owners colludes"),
    (lambda: SecureQuantile(1.0, domain=range(9)).fit([[1], [2], [3]]), "no two of the three computing owners collude "
     "and all owners follow the protocol"),
    (lambda: SecureQuantile(1.0, domain=range(9), method="bisection").fit([[1], [2], [3]]),
     "no two of the three computing owners collude, at most 1 of the owners colludes, and all owners follow"),
    (lambda: SecureQuantile(1.0, domain=range(9), method="bisection", honest=2).fit([[1], [2], [3]]),
     "at least 2 of the owners collude with nobody"),
])
def test_no_curator_is_to_be_trusted(make, said):
    est = make()
    for text in (str(est.privacy_), str(privacy_card(est)), str(pickle.loads(pickle.dumps(est)).privacy_)):
        assert said in text
        assert "urator" not in text
    assert "must be trusted, as long as" in str(est.privacy_)


def test_two_owners_who_count_their_common_users_trust_nobody():
    clinic = PrivateIntersectionSize(1.0, role="first")
    clinic.start(range(3))
    assert "no owner and no aggregator must be trusted, as long as all owners follow" in str(clinic.guarantee_)


def test_shares_alone_say_who_may_collude():
    shares = PolyaShares(5, 3, 1.0)
    assert "at most 2 of the 5 parties collude or drop out and a secure sum adds up" in str(shares.guarantee)
    assert not shares.privacy_against(5).parties


@pytest.mark.parametrize(("terms", "honest", "said"), [
    # masks of these terms hide from the server alone: who colludes with it unmasks the others
    ({"n_corrupt": 0, "n_dropped": 0}, None, "at most 1 of the 5 parties colludes or drops out, none of them colludes "
     "with the server, and the server follows"),
    ({"n_corrupt": 1, "n_dropped": 1}, None, "at most 2 of the 5 parties collude or drop out, at most 1 of them "
     "colludes with the server"),
    ({"n_corrupt": 2, "n_dropped": 0}, None, "at most 2 of the 5 parties collude or drop out and the server follows"),
    ({"n_corrupt": 2, "active": True}, 3, "at most 2 of the 5 parties collude or drop out."),
    # each share is all of the noise: masks are not needed
    ({"n_corrupt": 0}, 1, "at most 4 of the 5 parties collude or drop out and the server follows"),
])
def test_no_more_colluders_are_named_than_masks_hide_from(terms, honest, said):
    count = take_part(Count(1.0), Alone(**terms), ROWS[0], honest=honest)
    assert said in str(count.privacy_)


def test_the_sums_of_federated_hide_from_as_many_as_it_names(monkeypatch):
    made = []
    monkeypatch.setattr(module, "SumTerms", lambda *a, **b: made.append(SumTerms(*a, **b)) or made[-1])
    for honest, corrupt in ((None, 1), (2, 3), (1, 0), (5, 0)):
        made.clear()
        federated(Count(1.0), [ROWS[0]] * 5, honest=honest)
        assert {terms.n_corrupt for terms in made} == {corrupt}


def test_sums_and_comparisons():
    parties = PrivacyGuarantee(1, 0, "central", parties=(Parties(3, 1),))
    other, curator = replace(parties, parties=(Parties(5, 2),)), replace(parties, parties=())
    local = PrivacyGuarantee(1)
    assert (parties + other).parties == (Parties(3, 1), Parties(5, 2))
    assert (parties + parties).parties == (Parties(3, 1),)
    assert (parties + curator).parties == (curator + parties).parties == ()
    assert (parties + local).parties == (Parties(3, 1),)
    assert "curator" in str(parties + curator)
    assert parties <= curator
    assert parties <= parties
    assert local <= parties
    assert not curator <= parties
    assert not parties <= other
    assert parties <= parties + other
    assert not parties + other <= parties
    assert parties.to(parties.neighbours).parties == parties.at(0).parties == (Parties(3, 1),)
    with pytest.raises(ValueError, match="parties must"):
        replace(parties, parties="3")


# ---------------------------------------------------------------- fewer honest parties than were to suffice


def rows_of(n):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3))
    return [(X[k::4], (X[k::4, 0] > 0).astype(int)) for k in range(4)]


def test_what_fewer_honest_parties_keep_of_counts():
    count = federated(Count(1.0, neighbours="add_remove"), [ROWS[0]] * 5)
    shares = PolyaShares(5, 4, 1.0)
    found = [count.shares_.privacy_against(k) for k in range(6)]
    assert [float(one.epsilon) for one in found] == pytest.approx([
        float(shares.privacy_against(k).epsilon) for k in range(6)])
    assert found[1] == count.privacy_
    assert found[5].epsilon == math.inf
    assert "at most 3 of the 5 parties collude or drop out, at most 1 of them colludes with the server" in str(found[3])


def test_what_fewer_honest_parties_keep_of_gaussian_noise():
    rows = [np.random.default_rng(k).uniform(size=(50, 30)) for k in range(6)]
    sums = federated(Sum(1.0, delta=1e-5, bounds=(0, 1)), rows, honest=4)
    told = [sums.shares_.privacy_against(k) for k in range(7)]
    rho = sums.privacy_.concentrated.rho
    assert [float(one.concentrated.rho) for one in told[3:5]] == pytest.approx([float(rho) * 4 / 3, float(rho) * 2])
    assert told[2] == sums.privacy_
    assert 1 < told[3].epsilon < told[4].epsilon < told[5].epsilon < math.inf
    assert told[6].epsilon == math.inf
    assert sums.shares_.distance == 0.0  # (below the least float)


def test_what_fewer_honest_parties_keep_of_both_kinds_of_noise():
    est = DPLogisticRegression(2.0, delta=1e-5, data_norm=2.0, classes=[0, 1], perturbation="gradient")
    model = federated(est, rows_of(120), honest=3)
    told = [model.shares_.privacy_against(k).epsilon for k in (1, 2, 3)]
    assert told[0] == 2 < told[1] < told[2] < 6
    normal, pure = ([law for law, _ in model.shares_._releases if bool(law.delta) is kind] for kind in (True, False))
    rho = normal[0].rho + sum(law.epsilon**2 for law in pure) / 2
    assert float(model.privacy_.concentrated.rho) == pytest.approx(float(rho), rel=0.01)
    assert rho > 1.05 * normal[0].rho
    # (what counts classes costs more, too)
    assert model.shares_.privacy_against(2).concentrated.rho > 3 / 2 * rho


def test_releases_of_one_fit_have_noise_of_their_own():
    """Twice the same would cancel in a difference."""
    shares = module._Shares(Alone(3), 2, WordSource(0), "")
    for law in (DiscreteLaplaceLaw(Fraction(1, 9), Fraction(0), Fraction(1), 0),
                RoundedGaussianLaw(Fraction(1), Fraction(1, 10**5), Fraction(1), 0)):
        found = [shares.noisy(law, np.zeros(40, np.int64)).tolist() for _ in range(2)]
        assert found[0] != found[1]


def test_shares_belong_to_one_fit():
    count = federated(Count(1.0), ROWS)
    assert pickle.loads(pickle.dumps(count)).shares_.honest == 2
    assert not hasattr(count.fit(ROWS[0]), "shares_")
    for bad in (-1, 4, 1.5):
        with pytest.raises(ValueError, match="k must be"):
            federated(Count(1.0), ROWS).shares_.privacy_against(bad)


# ---------------------------------------------------------------- generators and lists


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState, int])
def test_seeds_and_generators_are_reproducible(make, monkeypatch):
    """Whichever party comes first: threads that drew from one generator took turns by chance."""
    found = set()
    for turn in (1, -1):

        def late(est, seat, *rows, turn=turn, **options):
            sleep(0.02 * ((turn * seat.place) % 3))
            return take_part(est, seat, *rows, **options)

        monkeypatch.setattr(module, "take_part", late)
        mean = Mean(0.1, bounds=(0, 1), random_state=make(3))
        found.add(float(federated(mean, [np.linspace(0, 1, 9)] * 3).value_))
    assert len(found) == 1


def test_rows_may_be_lists():
    mean = federated(Mean(50.0, bounds=(0, 1)), [[0.25] * 50, [0.75] * 50])
    assert abs(mean.value_ - 0.5) < 0.05
    model = federated(DPGaussianNB(8.0, bounds=(0, 1), classes=["no", "yes"]),
                      [([[0.1, 0.2], [0.3, 0.3]] * 30, ["no", "yes"] * 30)] * 2)
    assert model.theta_.shape == (2, 2)
    for bad in ([0.1, "a", None], [[0.1, 0.2], [0.3]], [[0.1, None]] * 9):
        with pytest.raises(ValueError) as error:
            federated(Mean(1.0, bounds=(0, 1)), [bad, bad])
        assert "strict mode" not in str(error.value)
    strict = Mean(1.0, bounds=(0, 1))
    strict._bound = (None, True)
    with pytest.raises(ValueError, match="strict mode"):
        federated(strict, [[0.1, "a"], [0.1, "a"]])


def test_an_epsilon_at_a_delta_says_nothing_of_how_far_pure_releases_move():
    rows = [np.random.default_rng(k).uniform(size=(50, 3)) for k in range(5)]
    shares = federated(Sum(1.0, bounds=(0, 1)), rows).shares_
    told = [shares._pure(left) for left in (1, 2, 3)]
    shares.guarantee = replace(shares.guarantee, epsilon=0.01, delta=1e-6)  # (as of many releases, converted together)
    assert [shares._pure(left) for left in (1, 2, 3)] == told
