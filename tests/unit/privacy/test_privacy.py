"""Guarantees as objects."""

import math
import pickle
from fractions import Fraction

import pytest

from dpestim.privacy import Neighbours, PrivacyGuarantee


def test_a_guarantee_prints_one_honest_sentence():
    text = str(PrivacyGuarantee(Fraction(1, 2)))
    assert "0.5-differential privacy in the local model" in text
    assert "any two inputs of one user" in text
    assert "1.65 times likelier" in text
    assert "no other party must be trusted" in text


def test_bounds_are_never_rounded_down():
    assert "e^0.7 = 2.02 times" in str(PrivacyGuarantee(Fraction(7, 10)))  # 2.01375
    assert str(PrivacyGuarantee(Fraction(1, 3))).startswith("0.333334-")
    assert "plus 1e-06;" in str(PrivacyGuarantee(1, delta=1e-6, model="central"))
    for large in (1000, 10**400):
        assert "times likelier" in str(PrivacyGuarantee(large))
    assert "delta is 1" in str(PrivacyGuarantee(1, delta=1))


def test_what_is_not_promised_is_said():
    assert "do not publish" in str(PrivacyGuarantee(Fraction(1), seeded=True))
    assert str(PrivacyGuarantee(math.inf, notes=("Because.",))) == (
        "No privacy guarantee (epsilon is infinite). Because."
    )
    assert "must be trusted" in str(
        PrivacyGuarantee(Fraction(1), delta=Fraction(1, 10**6), model="central", neighbours=Neighbours.SUBSTITUTION)
    )
    assert "(1, 1e-06)" in str(PrivacyGuarantee(1, delta=1e-6, model="central"))


@pytest.mark.parametrize(
    "bad", [{"epsilon": -1}, {"epsilon": 1, "delta": 1.5}, {"epsilon": 1, "delta": -1e-9}, {"epsilon": float("nan")},
            {"epsilon": 1, "model": "global"}, {"epsilon": 1, "neighbours": "local"},
            {"epsilon": 1, "relaxation": "SDLDP"}, {"epsilon": 1, "relaxed_epsilon": 1},
            {"epsilon": 1, "relaxation": "SDLDP", "relaxed_epsilon": -50}]
)
def test_what_is_no_guarantee_is_refused(bad):
    with pytest.raises(ValueError, match=r"epsilon|delta|model|neighbours|relaxation"):
        PrivacyGuarantee(**bad)


def test_guarantees_are_values():
    a = PrivacyGuarantee(Fraction(1, 3), notes=("x",))
    assert a == PrivacyGuarantee(Fraction(1, 3), notes=("x",)) == pickle.loads(pickle.dumps(a))
    assert a != PrivacyGuarantee(Fraction(1, 2))
    assert hash(a) == hash(PrivacyGuarantee(Fraction(1, 3), notes=("x",)))
    assert a.is_finite
    assert not PrivacyGuarantee(math.inf).is_finite


def test_every_relation_says_what_neighbours_are():
    assert len({n.sentence for n in Neighbours}) == len(Neighbours) == 9


def test_guarantees_add_exactly():
    tenth = PrivacyGuarantee(Fraction(1, 10), delta=Fraction(1, 10**9))
    total = PrivacyGuarantee(0)
    for _ in range(10):
        total = total + tenth
    assert (total.epsilon, total.delta) == (1, Fraction(1, 10**8))
    assert total.model == "local"
    assert total.delta == Fraction(1, 10**8)
    both = tenth + PrivacyGuarantee(1, model="central", neighbours=Neighbours.ADD_REMOVE)
    assert (both.epsilon, both.model, both.neighbours) == (Fraction(21, 10), "central", Neighbours.SUBSTITUTION)
    assert (tenth + PrivacyGuarantee(math.inf, notes=("Because.",))).notes == ("Because.",)
    assert not (tenth + PrivacyGuarantee(math.inf)).is_finite
    with pytest.raises(TypeError):
        tenth + 1
    assert sum([PrivacyGuarantee(0.1)] * 10).epsilon == 1  # what 0.1 names, not the float
    assert (PrivacyGuarantee(0, notes=("Nothing.",)) + tenth) is tenth


@pytest.mark.parametrize(("a", "b", "both"), [(False, False, False), (True, None, True), (None, False, None)])
def test_a_sum_says_whether_seeds_were_used(a, b, both):
    assert (PrivacyGuarantee(1, seeded=a) + PrivacyGuarantee(1, seeded=b)).seeded is both


def test_guarantees_compare_under_one_relation():
    local, add_remove = PrivacyGuarantee(1), PrivacyGuarantee(Fraction(1, 2), neighbours=Neighbours.ADD_REMOVE)
    assert local <= PrivacyGuarantee(1)
    assert add_remove <= PrivacyGuarantee(1, neighbours=Neighbours.SUBSTITUTION)  # 1/2 doubles to 1
    assert local <= PrivacyGuarantee(1, model="central", neighbours=Neighbours.SUBSTITUTION)
    assert not add_remove <= local  # who holds the data is no local model
    assert not local <= add_remove
    assert PrivacyGuarantee(2) >= local
    assert not PrivacyGuarantee(1, seeded=True) <= local
    assert not local <= PrivacyGuarantee(1 - Fraction(1, 10**20))
    assert not PrivacyGuarantee(1, delta=1e-9) <= PrivacyGuarantee(2)
    assert PrivacyGuarantee(2) <= PrivacyGuarantee(math.inf)


def test_a_guarantee_that_trusts_more_people_is_not_as_strong():
    local, shuffle, central = (PrivacyGuarantee(1, model=m, neighbours=Neighbours.SUBSTITUTION)
                               for m in ("local", "shuffle", "central"))
    ordered = [local, shuffle, central]
    for i, a in enumerate(ordered):
        for j, b in enumerate(ordered):
            assert (a <= b) == (b >= a) == (i <= j)
    assert not PrivacyGuarantee(Fraction(1, 1000), model="central") <= PrivacyGuarantee(1)
    assert PrivacyGuarantee(0, model="central") <= local  # nothing was released: nobody had to be trusted
    assert (local + shuffle).model == "shuffle"
    assert (shuffle + central).model == (local + central).model == "central"


def test_a_guarantee_that_lacks_a_relaxation_is_not_as_strong():
    name = "SDLDP(column 'weight': low=[50.0, 80.0])"
    relaxed = PrivacyGuarantee(math.inf, relaxation=name, relaxed_epsilon=1)
    nothing = PrivacyGuarantee(math.inf)
    assert relaxed <= nothing
    assert not nothing <= relaxed
    assert PrivacyGuarantee(1) <= relaxed  # plain epsilon holds in every relaxation
    assert not PrivacyGuarantee(2) <= relaxed
    assert not relaxed <= PrivacyGuarantee(5)
    assert PrivacyGuarantee(math.inf, relaxation=name, relaxed_epsilon=Fraction(1, 2)) <= relaxed
    assert not PrivacyGuarantee(math.inf, relaxation=name, relaxed_epsilon=2) <= relaxed
    assert not PrivacyGuarantee(math.inf, relaxation=name + " ", relaxed_epsilon=1) <= relaxed
    assert PrivacyGuarantee(2, relaxation=name, relaxed_epsilon=1) <= PrivacyGuarantee(2, relaxation=name,
                                                                                       relaxed_epsilon=1)


def test_names_of_relaxations_are_not_read():
    names = ("SDLDP(column 'a': low=[0, 1]) x SDLDP(column 'b + c': low=[0, 1])", "%s{}", "\u00e9 <b>")
    for name in names:
        one = PrivacyGuarantee(math.inf, relaxation=name, relaxed_epsilon=1)
        both = one + PrivacyGuarantee(2) + one
        assert (both.relaxation, both.relaxed_epsilon) == (name, 4)
        assert name in str(both)
        assert both.to("substitution").relaxation == name


def test_guarantees_convert_where_something_follows():
    g = PrivacyGuarantee(1, delta=Fraction(1, 1000), model="central", neighbours=Neighbours.ADD_REMOVE)
    doubled = g.to("substitution")
    assert doubled.epsilon == 2
    assert (1 + math.e) / 1000 <= doubled.delta <= (1 + math.e) / 1000 + 1e-12  # a removal, then an addition
    relaxed = PrivacyGuarantee(math.inf, Fraction(1, 1000), "central", Neighbours.ADD_REMOVE, relaxation="r",
                               relaxed_epsilon=1)
    assert relaxed.to("substitution").delta == doubled.delta
    assert g.to(Neighbours.ADD_REMOVE) is g
    for nothing in (Neighbours.LOCAL, Neighbours.ADD_REMOVE):
        with pytest.raises(ValueError, match="has no bound for"):
            doubled.to(nothing)
    with pytest.raises(ValueError, match="planets"):
        g.to("planets")


def test_relaxed_models_are_told_apart_from_the_plain_one():
    relaxed = PrivacyGuarantee(math.inf, relaxation="SDLDP", relaxed_epsilon=Fraction(1), notes=("Because.",))
    assert "SDLDP epsilon is 1" in str(relaxed)
    assert (relaxed + PrivacyGuarantee(2)).relaxed_epsilon == 3  # plain privacy holds in every relaxation
    assert (relaxed + relaxed).relaxed_epsilon == 2
    other = PrivacyGuarantee(math.inf, relaxation="ULDP", relaxed_epsilon=Fraction(1))
    assert (relaxed + other).relaxation is None
    assert (relaxed + PrivacyGuarantee(math.inf)).relaxation is None
