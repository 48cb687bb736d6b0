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
    assert "nobody else needs to be trusted" in text


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
    "bad", [{"epsilon": 0}, {"epsilon": -1}, {"epsilon": 1, "delta": 1}, {"epsilon": 1, "model": "global"},
            {"epsilon": 1, "neighbours": "local"}, {"epsilon": float("nan")}]
)
def test_a_guarantee_of_nothing_is_refused(bad):
    with pytest.raises(ValueError, match=r"epsilon|model|neighbours"):
        PrivacyGuarantee(**bad)


def test_guarantees_are_values():
    a = PrivacyGuarantee(Fraction(1, 3), notes=("x",))
    assert a == PrivacyGuarantee(Fraction(1, 3), notes=("x",)) == pickle.loads(pickle.dumps(a))
    assert a != PrivacyGuarantee(Fraction(1, 2))
    assert hash(a) == hash(PrivacyGuarantee(Fraction(1, 3), notes=("x",)))
    assert a.is_finite
    assert not PrivacyGuarantee(math.inf).is_finite


def test_every_relation_says_what_neighbours_are():
    assert len({n.sentence for n in Neighbours}) == len(Neighbours) == 3
