"""The number of users that two owners have in common: the protocol, its noise, and damaged messages."""

import hashlib
import math
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone

from dpestim.accounting import Ledger
from dpestim.exceptions import PartiesError
from dpestim.parties import BinomialShares, PrivateIntersectionSize, decode, encode, intersection, masked_sets
from dpestim.privacy import Neighbours

SMALL = {"epsilon": 3.0, "delta": 0.05}


def owners(seed=0, **params):
    params = {**SMALL, **params}
    return [PrivateIntersectionSize(role=role, random_state=None if seed is None else 2 * seed + at, **params)
            for at, role in enumerate(("first", "second"))]


def exchanged(first, second, a, b):
    """Return all messages."""
    one, = first.start(a)
    assert second.start(b) == []
    two, = second.receive(one)
    three, = first.receive(two)
    assert second.receive(three) == []
    return one, two, three


def points_in(message):
    return [point.tobytes() for point in message.arrays["points"]]


def changed(message, points=None, **fields):
    """Return a message with other points or fields, and the hash that they need."""
    arrays = message.arrays if points is None else {
        "points": np.frombuffer(b"".join(points), np.uint8).reshape(-1, 32)}
    message = replace(message, fields={**message.fields, **fields}, arrays=arrays)
    message.fields["check"] = intersection._check(message)
    return message


def test_masks_commute_and_points_are_of_the_curve():
    points = [masked_sets.point_of(bytes([i])) for i in range(20)]
    a, b = (hashlib.sha256(name).digest() for name in (b"a", b"b"))
    both = masked_sets.masked(masked_sets.masked(points, a), b)
    assert both == masked_sets.masked(masked_sets.masked(points, b), a)
    assert len(set(both)) == 20
    assert all(masked_sets.is_on_curve(int.from_bytes(p, "little")) for p in points + both)
    assert masked_sets.is_on_curve(9)  # (the base point)
    assert sum(masked_sets.is_on_curve(u) for u in range(1, 401)) in range(150, 250)  # (half belong to the twist)


def test_twist_would_show_through_a_mask(monkeypatch):
    """A point of the twist stays one under any mask: what is sent would tell a bit of the user."""
    first, second = owners()
    one, two, _ = exchanged(first, second, ["a", "b", "c"], ["b", "c", "d"])
    shown = {masked_sets.is_on_curve(int.from_bytes(p, "little")) for p in points_in(one) + points_in(two)}
    assert shown == {True}
    monkeypatch.setattr("dpestim.parties.masked_sets.is_on_curve", lambda u: True)
    one, = owners()[0].start(range(20))
    monkeypatch.undo()
    assert {masked_sets.is_on_curve(int.from_bytes(p, "little")) for p in points_in(one)} == {True, False}


def test_size_is_that_of_the_common_users_plus_noise_of_both(monkeypatch):
    drawn = iter([2, -1] * 3)  # (of the second owner, then of the first)
    monkeypatch.setattr(BinomialShares, "draw", lambda self, source, size: np.array([next(drawn)]))
    for a, b, common in ((range(30), range(20, 60), 10), (["x", "y", "x"] * 9, [b"x", 1], 0), ([], [5], 0)):
        first, second = owners()
        exchanged(first, second, a, b)
        assert first._noisy == second._noisy == common + 1
        assert first.size_ == second.size_ == min(common + 1, len(set(a)), len(set(b)))


def test_what_the_first_owner_counts_is_private_by_enumeration(monkeypatch):
    """Neighbouring sets of the second owner: the law of the count among its points, over all of its coins.

    The count of the first owner, before its own noise, is all that depends on the other set; sizes are the same.
    """
    scale = BinomialShares(2, 1, **SMALL).scale
    weights = stats.binom.pmf(np.arange(scale + 1), scale, 0.5)
    laws, lengths = [], set()
    for users in (["a", "b"], ["a", "c"]):
        law = np.zeros(scale + 6)
        for heads in range(scale + 1):
            drawn = iter([heads - scale // 2, 0])
            monkeypatch.setattr(BinomialShares, "draw", lambda self, source, size, d=drawn: np.array([next(d)]))
            first, second = owners()
            lengths.add(tuple(len(encode(m)) for m in exchanged(first, second, ["a", "b"], users)[:2]))
            law[first._noisy + scale // 2] += weights[heads]
        laws.append(law)
    assert len(lengths) == 1
    for p, q in (laws, laws[::-1]):
        assert 0.001 < np.maximum(0, p - math.exp(3) * q).sum() <= 0.05
    assert np.maximum(0, laws[0] - math.exp(1) * laws[1]).sum() > 0.05  # (less than epsilon would not do)


def test_orders_and_damaged_messages_end_in_an_error_that_names_the_phase():
    first, second = owners()
    with pytest.raises(PartiesError, match="call start"):
        first.receive(None)
    one, = first.start(range(6))
    second.start(range(3, 9))
    with pytest.raises(PartiesError, match="'both' comes next") as error:
        first.receive(one)
    assert error.value.phase == "both"
    frame = encode(one)
    for at in range(0, len(frame) - 64, 7):  # (the last 64 are a signature, which is of a carrier)
        flipped = bytearray(frame)
        flipped[at] ^= 1 << at % 8
        with pytest.raises(PartiesError, match="damaged"):
            second.receive(decode(bytes(flipped)))
    with pytest.raises(PartiesError, match="damaged"):
        second.receive(replace(one, fields={}))
    with pytest.raises(PartiesError, match="`decode` of its bytes"):
        second.receive(frame)
    two, = second.receive(one)
    assert second.receive(one) == []  # (a copy)
    with pytest.raises(PartiesError, match="'size' comes next"):
        second.receive(changed(one, points_in(one)[1:]))
    three, = first.receive(two)
    assert first.receive(two) == []
    with pytest.raises(PartiesError, match="not from the other owner"):
        second.receive(changed(replace(three, receiver=0)))
    assert [first.phase, second.phase] == ["end", "size"]
    second.receive(three)
    assert first.size_ == second.size_
    assert second.phase == "end"


def test_other_terms_are_refused():
    for other in ({"epsilon": 2.0}, {"label": "june"}, {"max_users": 50}):
        first, second = owners()[0], owners(**other)[1]
        second.start(range(5))
        with pytest.raises(ValueError, match="'points': both owners must have the same"):
            second.receive(*first.start(range(5)))


def test_max_users_hides_sizes():
    lengths = set()
    for n in (0, 3, 12):
        first, second = owners(max_users=12)
        lengths.add(tuple(len(encode(m)) for m in exchanged(first, second, range(n), range(2))[:2]))
        assert first.guarantee_.neighbours is Neighbours.ADD_REMOVE
    assert len(lengths) == 1
    with pytest.raises(ValueError, match="raise max_users"):
        first.start(range(13))
    assert owners()[0].max_users is None
    first, second = owners()
    assert len(points_in(exchanged(first, second, range(4), range(2))[0])) != len(points_in(*first.start(range(5))))
    assert first.guarantee_.neighbours is Neighbours.SUBSTITUTION


def test_ledgers_pay_before_anything_is_sent():
    ledger = Ledger(4.0, delta=0.1)
    first, second = owners(ledger=ledger)
    first.start(range(3))
    assert ledger.spent().epsilon == 3
    with pytest.raises(ValueError, match="ledger"):
        second.start(range(3))
    assert not hasattr(second, "_run")
    with Ledger(3.0, delta=0.1) as of_block:
        owners()[0].start(range(3))
    assert of_block.spent().epsilon == 3
    with pytest.raises(ValueError, match="users must be names"):
        owners()[0].start([1.5])
    for users in ([None], [True], [math.nan], np.array([1.0])):
        with pytest.raises(ValueError, match="users must be names"):
            owners(ledger=ledger)[0].start(users)
    assert ledger.spent().epsilon == 3


@pytest.mark.parametrize("users", ["anna", b"anna", {"anna": 1}, pd.DataFrame({"anna": ["x"]}), None, 3], ids=str)
def test_one_name_or_a_table_is_no_list_of_users(users):
    with pytest.raises(ValueError, match="users must be a list of names"):
        owners()[0].start(users)


def test_names_of_any_characters_are_users():
    odd = ["\ud800", "\udfff", "", "\0", b"\xff", 2**70]
    first, second = owners()
    exchanged(first, second, odd, odd)
    assert masked_sets.text_of("\ud800") != masked_sets.text_of("\udfff")


def test_estimator_is_cloned_and_pickled_between_runs_only():
    first, second = owners(seed=None)
    copied = clone(first)
    assert copied.get_params() == first.get_params()
    one, = first.start(range(40))
    with pytest.raises(TypeError, match="noise would be used twice"):
        pickle.dumps(first)
    assert hasattr(clone(first), "epsilon")
    second.start(range(20, 60))
    second.receive(*first.receive(*second.receive(one)))
    again = pickle.loads(pickle.dumps(first))
    assert again.size_ == second.size_
    low, high = again.confidence_interval(0.99)
    assert low <= again.size_ <= high
    assert again.confidence_interval() == second.confidence_interval()
    assert again.guarantee_.seeded is False
    assert not hasattr(clone(again), "size_")
    with pytest.raises(ValueError, match="exchange messages first"):
        clone(again).confidence_interval()


def test_interval_covers():
    """The noise of both owners is the binomial law of twice the coins: coverage is exact."""
    shares = BinomialShares(2, 1, **SMALL)
    width = shares.half_width(0.9)
    law = stats.binom(2 * shares.scale, 0.5)
    inside = [law.cdf(shares.scale + w) - law.cdf(shares.scale - w - 1) for w in (width - 1, width)]
    assert inside[0] < 0.9 <= inside[1]


def test_bad_parameters():
    for params, match in (({"role": "third"}, "role must be"), ({"label": 3}, "label must be"),
                          ({"delta": 0}, "delta must be"), ({"max_users": 0}, "max_users must be")):
        with pytest.raises(ValueError, match=match):
            PrivateIntersectionSize(**params).start(["a"])


def test_order_of_points_tells_nothing():
    """Points are sorted: whose point is where does not follow from the order of the users."""
    first, second = owners()
    one, two, _ = exchanged(first, second, range(9), range(4, 9))
    n_first = len(points_in(one))
    for points in (points_in(one), points_in(two)[:n_first], points_in(two)[n_first:]):
        assert points == sorted(points)


def test_points_that_are_none_are_refused():
    _, second = owners()
    second.start(range(3))
    one, = owners()[0].start(range(3))
    points = points_in(one)
    twist = next(u for u in range(2, 50) if not masked_sets.is_on_curve(u)).to_bytes(32, "little")
    above = (9 + (1 << 255) - 19).to_bytes(32, "little")  # (the base point, written otherwise)
    for bad in (twist, above, bytes(32), points[1]):
        with pytest.raises(PartiesError, match="'points': points of the message must differ and be points of"):
            second.receive(changed(one, [bad, *points[1:]]))
    for few in ([], points[:5]):
        with pytest.raises(PartiesError, match="'points': the message has another number"):
            second.receive(changed(one, few))
    for array in (np.zeros(64, np.uint8), np.zeros((2, 31), np.uint8), np.zeros((2, 32), np.int64)):
        with pytest.raises(PartiesError, match="'points': the message has no points"):
            second.receive(changed(replace(one, arrays={"points": array})))
    size = replace(second.receive(one)[0], phase="size", sender=0, receiver=1)
    for bad in (None, True, 10**9, "3"):
        with pytest.raises(PartiesError, match="'size': the message has no possible number"):
            second.receive(changed(size, size=bad))
    _, second = owners(max_users=4)
    second.start(range(3))
    with pytest.raises(PartiesError, match="'points': the message has another number"):
        second.receive(changed(one, terms=second._run.terms))  # (one of 3 users, not 4)


def test_max_users_of_numpy_is_that_of_python():
    exchanged(*(owner.set_params(max_users=most(30)) for owner, most in zip(owners(), (np.int64, int), strict=True)),
              range(10), range(20))


def test_more_points_than_an_owner_may_have_are_refused_before_they_are_masked(monkeypatch):
    first, second = owners()
    one, = first.start(range(40))
    second.start(range(5))
    monkeypatch.setattr(intersection, "MOST_USERS", 39)
    with pytest.raises(PartiesError, match="another number of points"):
        second.receive(one)


def test_parameters_that_change_between_messages_change_nothing():
    first, second = owners()
    one, = first.start(range(10))
    second.start(range(5))
    second.set_params(max_users=1)
    assert first.receive(*second.receive(one))
