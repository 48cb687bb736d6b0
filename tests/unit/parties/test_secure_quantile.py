"""Quantiles of several owners: the law of the central mechanism, and nothing else in any message."""

import pickle
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.central import ExponentialMechanism
from dpestim.exceptions import PartiesError
from dpestim.parties import QuantileOwner, SecureQuantile
from dpestim.parties.quantile_law import LIMB, quantile_program, weight_law
from dpestim.parties.quantile_owner import QuantilePlan, exchange
from dpestim.parties.replicated import _BITS, _SUMS, Computer, Shared, run_rounds, split
from dpestim.parties.sealed import Line, new_secret

KEYS = [bytes([place]) * 32 for place in range(3)]


def computers(kind=Computer, *more):
    return [kind(place, KEYS[place], KEYS[(place + 1) % 3], *more) for place in range(3)]


def shared(numbers, seed=0):
    words = np.asarray(numbers, np.int64).view(np.uint64)
    masks = np.random.default_rng(seed).integers(0, 1 << 64, (2, *words.shape), dtype=np.uint64)
    return split(words, masks)


def ranks(rows, points):
    rows = np.sort(rows)
    return np.searchsorted(rows, points, "left"), np.searchsorted(rows, points, "right"), len(rows)


# ---------------------------------------------------------------- gates


def test_gates_are_right():
    x, y = np.random.default_rng(0).integers(-(2**62), 2**62, (2, 40))

    def program(computer, x, y):
        product = yield from computer.multiply(x, y)
        bits = yield from computer.bits_of(product)
        again = yield from computer.sum_of(bits)
        low = yield from computer.looked_up(bits, 3, [5, 7, 11, 13, 17, 19, 23, 29])
        down = yield from computer.shifted_down(bits, bits, 6)
        return [(yield from computer.open_sum(again)), (yield from computer.open_bits(low)),
                (yield from computer.open_bits(down)), (yield from computer.open_bits(bits))]

    words = (x * y).view(np.uint64)
    expected = [words, np.array([5, 7, 11, 13, 17, 19, 23, 29])[words & np.uint64(7)],
                words >> (words & np.uint64(63)), words]
    for opened in run_rounds([program(*each) for each in zip(computers(), shared(x), shared(y, 1), strict=True)]):
        for got, right in zip(opened, expected, strict=True):
            assert np.array_equal(got, right)


class Enumerated(Computer):
    """A computer whose masks are given: all that there can be, modulo a small power of two."""

    def __init__(self, place, own, following, masks):
        super().__init__(place, own, following)
        self._masks = masks[place], masks[(place + 1) % 3]

    def _words(self, column, shape):
        return self._masks


class Bare(Enumerated):
    """Broken: it masks nothing."""

    def _hidden(self, words, column):
        return words


def views(kind, gate, size, x, y):
    """Return, for each party, how often each view occurs, over all shares and masks modulo `size`."""
    every = np.array(list(product(range(size), repeat=7)), np.uint64).T
    sent = {}

    def program(computer, x, y):
        return (yield from getattr(computer, gate)(x, y))

    def pairs(value, first, second):
        last = value - first - second if gate == "multiply" else value ^ first ^ second
        shares = [first, second, last % np.uint64(size)]
        return [Shared(shares[place], shares[(place + 1) % 3]) for place in range(3)]

    xs, ys = pairs(np.uint64(x), *every[:2]), pairs(np.uint64(y), *every[2:4])
    run_rounds([program(*each) for each in zip(computers(kind, every[4:]), xs, ys, strict=True)],
               lambda place, words: sent.update({place: words % np.uint64(size)}))
    laws = []
    for place in range(3):
        seen = [xs[place].first, xs[place].second, ys[place].first, ys[place].second, every[4 + place],
                every[4 + (place + 1) % 3], sent[place]]
        code = sum(words.astype(np.int64) * size**at for at, words in enumerate(seen))
        laws.append(np.bincount(code, minlength=size**7))
    return laws


@pytest.mark.parametrize(("gate", "size"), [("multiply", 4), ("both", 2)])
def test_what_a_party_sees_of_a_gate_has_the_same_law_for_all_inputs(gate, size):
    """By enumeration: messages modulo 4 are those of the ring modulo 4, and bits are apart from each other."""
    first = views(Enumerated, gate, size, 0, 0)
    inputs = [(1, 0), (size - 1, 1)]
    for x, y in inputs:
        assert all(np.array_equal(*laws) for laws in zip(first, views(Enumerated, gate, size, x, y), strict=True))
    bare = views(Bare, gate, size, 0, 0)
    assert not all(np.array_equal(*laws) for laws in zip(bare, views(Bare, gate, size, 1, 1), strict=True))


def test_no_mask_is_used_twice_and_party_1_is_not_shown_share_0():
    computer, seen = computers()[0], []
    drawn = [words.tobytes() for column in range(3) for _ in range(2) for words in computer._words(column, (2,))]
    assert len(set(drawn)) == 12
    numbers = np.arange(5)
    programs = [each.sum_of(parts) for each, parts in zip(computers(), shared(numbers), strict=True)]
    run_rounds(programs, lambda place, words: seen.append(words) if place == 1 else None)
    assert not seen[-1].any()
    assert all(words.any() for words in seen[:-1])


# ---------------------------------------------------------------- the law


def outcomes(law, rows, points):
    """Return the share of each place among all numbers of 8 bits that can be drawn, by the protocol."""
    limbs = np.arange(1 << LIMB)[np.newaxis]
    above, under = (shared(part, at) for at, part in enumerate(law.scores(*ranks(rows, points))))
    programs = [quantile_program(computer, law, *parts) for computer, *parts in
                zip(computers(), above, under, shared(limbs, 2), strict=True)]
    return [Fraction(int(n), 1 << LIMB) for n in np.bincount(run_rounds(programs)[0], minlength=len(points))]


def test_points_far_from_the_target_have_equal_weights():
    law, points, rows = weight_law(Fraction(2), Fraction(1, 2), 4, True), np.array([0, 1, 9, 10]), [5] * 2000
    assert set(law.weights(*ranks(rows, points)).tolist()) == {1 << law.low}
    assert outcomes(law, rows, points) == [Fraction(1, 4)] * 4


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(3, 4)])
def test_choices_have_the_law_of_the_central_mechanism(q):
    """Exactly: all numbers that can be drawn, of 8 bits, go through the protocol; and 88 bits are counted."""
    points, rows = np.arange(6), np.array([1, 1, 2, 3, 3, 3, 4, 5, 7])
    law = weight_law(Fraction(2), q, len(points), False)
    weights = law.weights(*ranks(rows, points))
    assert outcomes(law, rows, points) == law.probabilities(weights, LIMB)
    # of all 88 bits the law is that of weights, and weights are those of the central mechanism
    below, up_to, n = ranks(rows, points)
    units = np.maximum(0, np.maximum(q.denominator * below - q.numerator * n, q.numerator * n - q.denominator * up_to))
    central = ExponentialMechanism(2 * law.rate * law.moved, sensitivity=law.moved, neighbours="add_remove")
    ours = np.array([float(p) for p in law.probabilities(weights)])
    assert np.allclose(ours, central.probabilities(-units), rtol=1e-9)
    assert not np.allclose(ours, ExponentialMechanism(2.1 * law.rate * law.moved, sensitivity=law.moved,
                                                      neighbours="add_remove").probabilities(-units), rtol=1e-3)


@pytest.mark.parametrize("replaces", [False, True])
def test_neighbours_are_within_epsilon_exactly(replaces):
    """By enumeration, with few rows, with more rows than the range of weights, and with both ends far."""
    most, settings = 0.0, [([], (0, 1, 2)), ([0] * 30, (0, 1, 2)), ([1] * 40 + [3] * 15, (0, 2))]
    for q, (more, points) in product((Fraction(1, 2), Fraction(1, 5), Fraction(1)), settings):
        law = weight_law(Fraction(1), q, len(points), replaces)
        assert 0.95 <= law.epsilon <= 1

        def chances(rows, law=law, points=points):
            return law.probabilities(law.weights(*ranks(rows, np.array(points))))

        for rows in product([-1, 0, 1, 3], repeat=2):
            base = [*more, *rows]
            near = [[*base[:-1], other] for other in (-1, 0, 1, 3)] if replaces else [base[:-1]]
            most = max(most, *(abs(np.log(float(a / b))) for there in near
                               for a, b in zip(chances(base), chances(there), strict=True)))
    assert 0.9 < most <= 1


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 20])
@pytest.mark.parametrize("n_points", [2, 1 << 12, 1 << 16])
def test_weights_of_any_domain_keep_what_was_declared(epsilon, n_points):
    try:
        law = weight_law(Fraction(epsilon), Fraction(1, 2), n_points, True)
    except ValueError:
        assert (epsilon, n_points) == (0.01, 1 << 16)
        return
    steps = np.arange(law.cap + 1)
    weights = law.weights_of(steps).astype(float)
    there = weights[np.minimum(steps + law.factor * 2, law.cap)]
    assert 0.8 * epsilon < 2 * np.log(np.max(weights / there)) <= epsilon
    assert law.moved == 2
    assert n_points * int(weights[0]) <= 1 << 54
    assert weights[-1] == 1 << law.low == weights.min()
    assert np.all(np.diff(weights) <= 0)
    # the largest sums of an exact share of a weight do not leave 63 bits
    assert (1 << 54) * ((1 << LIMB) - 1) + (1 << 54) < 1 << 63


def test_noise_of_steps_has_its_share_of_epsilon():
    for relation, moved in (("substitution", 4), ("add_remove", 3)):
        plan = SecureQuantile(1.0, q=0.75, domain=range(1000), method="bisection", neighbours=relation)._planned(5)
        assert (plan.n_steps, plan.share.rate, plan.share.honest) == (10, Fraction(1, 10 * moved), 4)
    rows = np.array([1.0, 2.0, 2.0, 9.0])
    assert [int(plan.count(rows, at)[0]) for at in (0, 2, 9)] == [-12, 0, 4]


# ---------------------------------------------------------------- the view of a party, of the whole protocol


class Coupled(Computer):
    """What parties 1 and 2 draw without party 0 is changed so that party 0 is sent what was recorded."""

    def __init__(self, place, own, following, record, replayed):
        super().__init__(place, own, following)
        self._record, self._replayed, self._notes = record, replayed, record.setdefault("notes", [])

    def _hidden(self, words, column):
        mine = super()._hidden(words, column)
        if self.place == 1:
            before = mine
            if self._replayed is not None:
                mine = self._replayed["sent"].pop(0)
            else:
                self._record.setdefault("sent", []).append(mine)
            self._notes.append(mine - before if column == _SUMS else mine ^ before)
        if self.place == 2:
            moved = self._notes.pop(0)
            return mine - moved if column == _SUMS else mine ^ moved
        return mine

    def _drawn_for(self, x):
        drawn = super()._drawn_for(x)
        if self.place == 0:
            self._record["x"] = x
            return drawn
        known = self._record
        if self.place == 1:
            number = known["x"].first ^ x.first ^ x.second
            if self._replayed is not None:
                drawn = Shared(drawn.first, number - drawn.first - self._replayed["rests"].pop(0))
            else:
                known.setdefault("rests", []).append(number - drawn.first - drawn.second)
            known["drawn"] = drawn
            return drawn
        return Shared(known["drawn"].second, drawn.second)


def view(law, rows, points, record, replayed, kind=Coupled):
    """Return (all that party 0 is sent, the outcome) of fixed shares 0 and 1 of the input."""
    seen = []
    scores = [shared(part, at) for at, part in enumerate(law.scores(*ranks(rows, points)))]
    programs = [quantile_program(computer, law, *parts) for computer, *parts in
                zip(computers(kind, record, replayed), *scores, strict=True)]
    places = run_rounds(programs, lambda place, words: seen.append(words.copy()) if place == 0 else None)
    return seen, int(places[0][0])


class Leaking(Coupled):
    """Broken: what party 1 sends of bits has no mask."""

    def _hidden(self, words, column):
        return words if column == _BITS else super()._hidden(words, column)


def test_all_that_a_party_sees_is_the_same_of_data_with_the_same_outcome():
    """A bijection of what is drawn, between neighbours, leaves the shares and all messages of a party as they are."""
    points, law = np.arange(4), weight_law(Fraction(1), Fraction(1, 2), 4, True)
    for kind, same in ((Coupled, True), (Leaking, False)):
        record = {}
        seen, place = view(law, [0, 1, 1, 2], points, record, None, kind)
        again, there = view(law, [0, 1, 1, 3], points, {}, record, kind)
        assert place == there
        assert all(np.array_equal(*words) for words in zip(seen, again, strict=True)) is same


# ---------------------------------------------------------------- owners and their messages


def owners(n=4, **more):
    return [QuantileOwner(SecureQuantile(domain=range(8), **more)) for _ in range(n)]


ROWS = [[1, 2, 3], [4, 4, 5], [], [3, 9]]


@pytest.mark.parametrize("method", ["exponential", "bisection"])
def test_messages_in_any_order_and_twice_give_one_result(method):
    rng, made = np.random.default_rng(0), owners(epsilon=80, method=method)

    def mixed(waiting):
        return [waiting[at] for at in rng.permutation(np.repeat(np.arange(len(waiting)), 2))]

    exchange(made, ROWS, mixed)
    assert [owner.value for owner in made] == [made[0].value] * 4
    assert made[0].value in (3, 4)  # (4, though half are below, where noise of one count is drawn: once in 600,000)
    assert {owner.phase for owner in made} == {"end"}


@pytest.mark.parametrize("method", ["exponential", "bisection"])
def test_lost_and_changed_messages_give_no_result_or_the_right_one(method):
    """Message by message: a lost one ends in no result where it matters, and a changed one in an error of its phase."""
    made, count = owners(epsilon=80, method=method), [0]
    exchange(made, ROWS, lambda waiting: count.__setitem__(0, count[0] + len(waiting)) or waiting)
    every = sorted({*range(0, 15, 8), *range(count[0] - 2, count[0]), *range(15, count[0], max(1, count[0] // 2))})
    for lost in every:
        for changes in (False, True):
            made, at = owners(epsilon=80, method=method), [0]

            def change(waiting, at=at, lost=lost, changes=changes):
                out = []
                for message in waiting:
                    if at[0] != lost:
                        out.append(message)
                    elif changes:
                        sealed = message.arrays["sealed"].copy()
                        sealed[0] ^= 1
                        out.append(replace(message, arrays={"sealed": sealed}))
                    at[0] += 1
                return out

            if changes:
                with pytest.raises(PartiesError, match="was changed") as error:
                    exchange(made, ROWS, change)
                assert error.value.phase in ("shares", "rounds", "result")
            else:
                exchange(made, ROWS, change)
            values = {owner.value for owner in made}
            assert None in values
            assert values <= {None, 3, 4}


def test_a_copied_key_gives_no_two_pairs_the_same_words():
    """Owner 2 shows the key of owner 0 as its own: owner 1 must not use one key, with one counter, for both."""
    (_, shown), (own, _) = (new_secret(bytes([n]) * 32) for n in (1, 2))
    first, second = Line(own, shown, 1, 0, b"terms"), Line(own, shown, 1, 2, b"terms")
    assert first.common != second.common
    words = np.arange(4, dtype=np.uint64)
    one, two = (line.seal("keys", words).arrays["sealed"].tobytes() for line in (first, second))
    assert one != two


def test_directions_and_messages_have_words_of_their_own():
    (one, key), (two, other) = (new_secret(bytes([n]) * 32) for n in (1, 2))
    lines = Line(one, other, 0, 1, b"terms"), Line(two, key, 1, 0, b"terms")
    sealed = [line.seal("shares", np.zeros(2, np.uint64)) for line in lines * 2]
    assert len({message.arrays["sealed"].tobytes() for message in sealed}) == 4
    assert [message.fields["number"] for message in sealed] == [0, 0, 1, 1]
    assert lines[0].common == lines[1].common
    lines[1].keep(sealed[2], "shares")  # (the second first)
    assert not lines[1].ready()
    lines[1].keep(sealed[0], "shares")
    assert not lines[1].open((2,), "shares").any()
    with pytest.raises(PartiesError, match="size"):
        lines[1].open((3,), "shares")
    with pytest.raises(PartiesError, match="ahead"):
        lines[1].keep(replace(sealed[0], fields={"number": 99}), "shares")
    for wrong in ({"fields": {}}, {"fields": {"number": 1.0}}, {"arrays": {}}, {"arrays": {"sealed": np.zeros(3)}}):
        with pytest.raises(PartiesError, match="not what it must be"):
            lines[1].keep(replace(sealed[0], **wrong), "shares")
    lines[0].keep(replace(sealed[1], phase="rounds"), "shares")  # (the phase is sealed, too)
    with pytest.raises(PartiesError, match="was changed"):
        lines[0].open((2,), "shares")


@pytest.mark.parametrize("method", ["exponential", "bisection"])
def test_each_share_has_masks_and_each_step_noise_of_its_own(method, monkeypatch):
    masks, sources = [], []

    class Noise:
        def draw(self, source, size):
            sources.append(source.key_for_workers())
            return np.full(size, 1000, np.uint64)

    def watched(words, drawn):
        masks.extend([bytes(drawn[0]), bytes(drawn[1])])
        return split(words, drawn)

    monkeypatch.setattr("dpestim.parties.quantile_owner.split", watched)
    made = owners(epsilon=80, method=method)
    start = QuantilePlan.__init__
    monkeypatch.setattr(QuantilePlan, "__init__", lambda self, *given: start(self, *given) or setattr(
        self, "share", Noise()))
    exchange(made, ROWS)
    steps = 3 if method == "bisection" else 1
    assert len(set(masks)) == len(masks) == 2 * 4 * steps
    assert all(any(mask) for mask in masks)
    if method == "bisection":  # noise of 4000 says each time that the target is below
        assert len(set(sources)) == len(sources) == 4 * steps
        assert {owner.value for owner in made} == {0}


def test_uniform_numbers_are_drawn():
    every = set()
    for session in range(8):
        law, points = weight_law(Fraction(2), Fraction(1, 2), 4, True), np.array([0, 1, 9, 10])
        parts = [shared(part) for part in law.scores(*ranks([5] * 2000, points))]
        keys = [bytes([place, session]) * 16 for place in range(3)]
        sessions = [Computer(place, keys[place], keys[(place + 1) % 3]) for place in range(3)]
        programs = [quantile_program(each, law, *own) for each, *own in zip(sessions, *parts, strict=True)]
        every.add(int(run_rounds(programs)[0][0]))
    assert len(every) >= 3  # (keys are fixed: the outcomes are the same in each run)


def test_computing_owners_that_say_different_results_are_found():
    made = owners(epsilon=80)
    true = made[1]._rounds

    def lying(program):
        place = yield from true(program)
        return place ^ 1

    made[1]._rounds = lying
    with pytest.raises(PartiesError, match="different results") as error:
        exchange(made, ROWS)
    assert error.value.phase == "result"
    assert made[3].value is None


def test_owners_of_other_parameters_have_no_result():
    made = [QuantileOwner(SecureQuantile(domain=range(n))) for n in (8, 8, 9)]
    with pytest.raises(PartiesError, match=r"size|other parameters"):
        exchange(made, ROWS[:3])
    made = [QuantileOwner(SecureQuantile(domain=range(8), q=q)) for q in (0.5, 0.5, 0.25)]
    with pytest.raises(PartiesError, match="other parameters"):
        exchange(made, ROWS[:3])


def test_each_owner_pays_before_it_sends():
    ledgers = [Ledger(1.5) for _ in range(3)]
    made = [QuantileOwner(SecureQuantile(1.0, domain=range(8), ledger=ledger)) for ledger in ledgers]
    exchange(made, ROWS[:3])
    assert [ledger.spent().epsilon for ledger in ledgers] == [1.0] * 3
    again = QuantileOwner(SecureQuantile(1.0, domain=range(8), ledger=ledgers[0]))
    keys = [again.key, made[1].key, made[2].key]
    for strict in (False, True):
        with config_context(strict=strict), pytest.raises(ValueError, match="X must not be a masked array"):
            SecureQuantile(1.0, domain=range(5))._rows(np.ma.array([1.0, 2.0], mask=[True, False]))
    with pytest.raises(ValueError, match="missing values"):
        again.start(keys, [1, np.nan])
    with pytest.raises(ValueError, match=r"budget|exceed|left"):
        again.start(keys, [1])
    assert ledgers[0].spent().epsilon == 1.0
    with pytest.raises(TypeError, match="make a new one"):
        pickle.dumps(again)


# ---------------------------------------------------------------- the estimator


def test_estimator_is_one_of_dpestim():
    ledger = Ledger(3.0)
    parts = [np.arange(100), np.arange(50, 80), np.arange(30)[:, np.newaxis]]
    median = SecureQuantile(1.0, domain=range(0, 101), random_state=0, ledger=ledger)
    first = clone(median).fit(parts)
    assert first.value_ == median.fit(parts).value_
    assert 30 < first.value_ < 65
    assert ledger.spent().epsilon == 2.0
    assert first.privacy_.epsilon == 1
    assert "computing owners" in str(first.privacy_)
    assert "secrets" not in str(first.privacy_)
    assert pickle.loads(pickle.dumps(first)).value_ == first.value_
    by_counts = clone(median).set_params(method="bisection", honest=1, domain=range(1 << 40), ledger=None).fit(parts)
    assert "at least 1 of the owners tell" in str(by_counts.privacy_)
    assert "all owners but one tell" in str(clone(by_counts).set_params(honest=None).fit(parts).privacy_)
    assert by_counts.value_ < 1 << 40


@pytest.mark.parametrize(("wrong", "words"), [
    ({"q": 2}, "q must"), ({"domain": None}, "domain must"), ({"domain": [2, 1]}, "domain must"),
    ({"domain": range(1 << 17)}, "domain must"), ({"method": "x"}, "method must"), ({"honest": 9}, "honest must"),
    ({"epsilon": 0}, "epsilon"), ({"epsilon": 1e-9}, "epsilon must be larger"), ({"neighbours": "x"}, "neighbours"),
])
def test_wrong_parameters_cost_nothing(wrong, words):
    ledger = Ledger(3.0)
    with pytest.raises(ValueError, match=words):
        SecureQuantile(**{"domain": range(8), "ledger": ledger, **wrong}).fit(ROWS)
    with pytest.raises(ValueError, match="parts must"):
        SecureQuantile(domain=range(8), ledger=ledger).fit(ROWS[:2])
    assert ledger.spent().epsilon == 0
