"""The secure sum of parties: exact under dropouts, and an error, never a wrong sum, under faults of the network."""

import numpy as np
import pytest

from dpestim.exceptions import PartiesError
from dpestim.parties import Directory, Identity, SumParty, SumServer, SumTerms, run_together
from dpestim.parties.party import self_mask
from dpestim.parties.wire import SERVER, Message, decode, encode


def made(n=4, size=3, **terms):
    """Return (parties, server, vectors)."""
    terms = SumTerms(n, size, **terms)
    owner, *identities = (Identity() for _ in range(n + 1))
    directory = Directory(owner.public, [identity.public for identity in identities])
    vectors = np.random.default_rng(0).integers(0, 2**64, (n, size), np.uint64)
    parties = [SumParty(terms, directory, *at) for at in zip(range(n), identities, vectors, strict=True)]
    return parties, SumServer(terms, directory, owner), vectors


def outcome(through, **terms):
    """Return "sum" or the phase of the error of a run; it fails where a sum is wrong."""
    parties, server, vectors = made(**terms)
    try:
        total = run_together(parties, server, through)
    except PartiesError as error:
        assert server.result is None
        return error.phase
    alive = server.survivors
    assert len(alive) >= server.terms.n_parties - server.terms.n_dropped
    assert total.tolist() == (vectors[alive].sum(0) & np.uint64(2**server.terms.bits - 1)).tolist()
    return "sum"


BOTH = pytest.mark.parametrize("active", [False, True])


class Network:
    """Frames in the order in which they were sent, with something done to the one of a number."""

    def __init__(self, at=None, what=None):
        self.count, self.at, self.what, self.kept = -1, at, what, []

    def __call__(self, frame):
        self.count += 1
        if self.count == self.at:
            return self.what(frame)
        return [frame]


def n_frames(**terms):
    network = Network()
    assert outcome(network, **terms) == "sum"
    return network.count + 1


@BOTH
@pytest.mark.parametrize("bits", [1, 32, 64])
def test_the_sum_is_exact(active, bits):
    assert outcome(None, active=active, bits=bits) == "sum"
    assert outcome(None, n=2, active=active) == "sum"


SMALL = {"n": 3, "dropout": 0.34}


@pytest.mark.parametrize("active", [False, pytest.param(True, marks=pytest.mark.ci)])
def test_each_message_may_be_lost_or_arrive_twice(active):
    for at in range(n_frames(active=active, **SMALL)):
        assert outcome(Network(at, lambda frame: [frame, frame]), active=active, **SMALL) == "sum"
        assert outcome(Network(at, lambda frame: []), active=active, **SMALL) == "sum"


@pytest.mark.ci
@BOTH
def test_each_message_may_be_damaged(active):
    """One bit in each part of each message: what is damaged counts as lost."""
    for at in range(n_frames(active=active, **SMALL)):
        for where in (5, 30, -100, -1):
            def flip(frame, where=where):
                frame = bytearray(frame)
                frame[where] ^= 1
                return [bytes(frame)]
            assert outcome(Network(at, flip), active=active, **SMALL) == "sum"


@BOTH
def test_a_party_may_die_at_every_message(active):
    """All prefixes of what a party sends, one party and then two of four: one may drop out."""
    for dead in ({0}, {0, 3}):
        for life in range(4 + active):
            sent = dict.fromkeys(dead, 0)

            def through(frame, sent=sent, life=life):
                sender = decode(frame, 1 << 20).sender
                if sender in sent:
                    sent[sender] += 1
                    return [frame] if sent[sender] <= life else []
                return [frame]
            result = outcome(through, active=active, dropout=0.25)
            if len(dead) == 1 or life > (3 + active):
                assert result == "sum"
            elif life < 3:
                assert result in ("keys", "shares", "masked")


@BOTH
@pytest.mark.parametrize("seed", range(2))
def test_frames_may_arrive_in_any_order(active, seed):
    """Each frame is held back for a random while; where it comes too late its sender has dropped out."""
    draw, held = np.random.default_rng(seed), []

    def through(frame):
        held.append(frame)
        draw.shuffle(held)
        n = int(draw.integers(0, len(held) + 1))
        out, held[:] = held[:n], held[n:]
        return out
    assert outcome(through, active=active, dropout=0.25) in ("sum", "keys", "shares", "masked", "agree", "reveal")


def test_messages_of_another_sum_are_refused():
    """The same label and the same identities: what was recorded is of no use."""
    terms = SumTerms(2, 1)
    owner, *identities = (Identity() for _ in range(3))
    directory = Directory(owner.public, [identity.public for identity in identities])
    recorded = []

    def fresh():
        parties = [SumParty(terms, directory, at, identity, np.array([5])) for at, identity in enumerate(identities)]
        return parties, SumServer(terms, directory, owner)
    run_together(*fresh(), lambda frame: recorded.append(frame) or [frame])
    parties, server = fresh()
    old = next(frame for frame in recorded if decode(frame, 100_000).phase == "masked")
    with pytest.raises(PartiesError, match="of another sum"):
        run_together(parties, server, lambda frame: [old] if decode(frame, 100_000).phase == "masked" else [frame])


def test_a_wrong_share_is_no_wrong_sum():
    """A party that lies about a share ends the sum."""
    for dropped in (False, True):
        parties, server, _ = made(4, 3, dropout=0.25)
        liar = parties[0]
        reveal = liar._on_reveal

        def lying(message, reveal=reveal, liar=liar):
            said, = reveal(message)
            said.arrays["shares"] = said.arrays["shares"].copy()
            said.arrays["shares"][said.fields["of"].index(3)] ^= 1
            return [liar._identity.signed(said, liar._context)]
        liar._on_reveal = lying

        def through(frame, dropped=dropped):
            message = decode(frame, 100_000)
            return [] if dropped and (message.phase, message.sender) == ("masked", 3) else [frame]
        with pytest.raises(PartiesError, match="wrong share") as caught:
            run_together(parties, server, through)
        assert caught.value.phase == "reveal"


class Split(SumServer):
    """An active server that names other survivors to the last party than to the others, and signs it."""

    def _to(self, place, phase, fields, arrays=None):
        if phase in ("agree", "reveal") and place == self.terms.n_parties - 1:
            fields = {**fields, "survivors": fields["survivors"][1:]}
        return super()._to(place, phase, fields, arrays)


class Fork(SumServer):
    """An active server that hides the first party's shares from the last party: two sets of senders."""

    def _to(self, place, phase, fields, arrays=None):
        if phase == "shares" and place == self.terms.n_parties - 1:
            fields, arrays = {"from": fields["from"][1:]}, {"texts": arrays["texts"][1:]}
        if phase == "reveal":  # (and hides that the last party has signed another set)
            fields = {**fields, "agreed": fields["agreed"][:-1]}
        return super()._to(place, phase, fields, arrays)


class Few(SumServer):
    """An active server that shows fewer signatures than the quorum."""

    def _to(self, place, phase, fields, arrays=None):
        if phase == "reveal":
            fields = {**fields, "agreed": fields["agreed"][:2]}
        return super()._to(place, phase, fields, arrays)


class Small(SumServer):
    """An active server that tells all the same survivors, too few of them."""

    def _to(self, place, phase, fields, arrays=None):
        if phase in ("agree", "reveal"):
            fields = {**fields, "survivors": [0, 1]}
        return super()._to(place, phase, fields, arrays)


class Empty(SumServer):
    """An active server that passes on no shares, so that there would be no masks."""

    def _to(self, place, phase, fields, arrays=None):
        if phase == "shares":
            fields, arrays = {"from": []}, {"texts": arrays["texts"][:0]}
        return super()._to(place, phase, fields, arrays)


@pytest.mark.parametrize("kind", [Split, Fork, Few, Small, Empty])
def test_an_active_server_is_caught(kind):
    """No honest party reveals a share, and so there is nothing to unmask; an honest-but-curious one is not checked."""
    parties, server, _ = made(4, 3, active=True, dropout=0.25)
    server.__class__ = kind
    revealed = []

    def through(frame):
        message = decode(frame, 100_000)
        if message.phase == ("masked" if kind is Empty else "agree" if kind is Small else "reveal") and (
                message.sender != SERVER):
            revealed.append(message.sender)
        return [frame]
    with pytest.raises(PartiesError):
        run_together(parties, server, through)
    assert not revealed


class Copied:
    """The mask key of another party, of which a copier knows the public half."""

    def __init__(self, pair):
        self.public = pair.public

    def agreed(self, phase, public, purpose):
        return bytes(32)


@pytest.mark.parametrize(("active", "copied", "copier"), [(False, 0, 2), (False, 2, 0), (True, 0, 2)])
def test_who_copies_a_key_unmasks_nobody(active, copied, copier):
    """With the copier the server knows all but masks of honest pairs; the copy once took these away again."""
    parties, server, vectors = made(3, 3, active=active, corrupt=0.4)
    parties[copier]._pair, masked = Copied(parties[copied]._pair), {}

    def through(frame):
        message = decode(frame, 100_000)
        if message.phase == "masked" and message.sender != SERVER:
            masked[message.sender] = message.arrays["masked"]
        return [frame]

    run_together(parties, server, through)
    for place in {0, 1, 2} - {copier}:
        left = masked[place] - self_mask(parties[place]._self_seed, server._session, 3) - vectors[place]
        assert left.all()


def test_a_server_that_asks_twice_gets_one_answer():
    """Both shares of a neighbour would unmask its vector."""
    parties, server, _ = made(3, 1, dropout=0.34)
    asked = []

    def through(frame):
        message = decode(frame, 100_000)
        if message.phase == "reveal" and message.sender == SERVER:
            asked.append(message)
        return [frame]
    run_together(parties, server, through)
    for message in asked:
        party = parties[message.receiver]
        other = server._to(message.receiver, "reveal", {"survivors": sorted({message.receiver, (
            message.receiver + 1) % 3})})
        assert party.receive(message) == []
        with pytest.raises(PartiesError, match="two different"):
            party.receive(other)


@BOTH
def test_messages_say_nothing_of_the_vector(active, monkeypatch):
    """With the same randomness all messages but the masked vectors are equal, and those differ by the difference."""
    def transcript(vectors):
        n_calls = iter(range(10**6))

        def numbered(n=32):
            return np.random.default_rng(next(n_calls)).bytes(n)
        with monkeypatch.context() as patch:
            patch.setattr("os.urandom", numbered)
            patch.setattr("dpestim.parties.keys.X25519PrivateKey", Numbered(numbered))
            terms = SumTerms(3, 2, active=active)
            owner, *identities = (Identity(numbered()) for _ in range(4))
            directory = Directory(owner.public, [identity.public for identity in identities])
            parties = [SumParty(terms, directory, *at) for at in zip(range(3), identities, vectors, strict=True)]
            seen = []
            run_together(parties, SumServer(terms, directory, owner), lambda frame: seen.append(frame) or [frame])
            return [decode(frame, 100_000) for frame in seen]
    a = np.array([[1, 2], [3, 4], [5, 6]])
    b = a + np.array([[1, 0], [-1, 0], [0, 0]])
    n_masked = 0
    for one, two in zip(transcript(a), transcript(b), strict=True):
        if one.phase != "masked":
            assert encode(one) == encode(two)
            continue
        n_masked += 1
        difference = (two.arrays["masked"] - one.arrays["masked"]).view(np.int64)
        assert difference.tolist() == (b - a)[one.sender].tolist()
        assert one.fields == two.fields
    assert n_masked == 3


class Numbered:
    """X25519 private keys of numbered bytes."""

    def __init__(self, draw):
        self.draw = draw

    def generate(self):
        return self.from_private_bytes(self.draw(32))

    def from_private_bytes(self, secret):
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
        return X25519PrivateKey.from_private_bytes(secret)


def test_the_law_of_what_the_server_sees_depends_on_the_sum_alone(monkeypatch):
    """All masks of two parties with one bit each, enumerated: masked vectors and the own masks that are revealed."""
    laws = {}
    for vectors in ((0, 0), (0, 1), (1, 0), (1, 1)):
        law = laws[vectors] = {}
        for bits in np.ndindex(2, 2, 2):
            own = iter([*bits[:2], *bits[:2]])
            masks = {"dpestim.parties.party.self_mask": lambda *_, own=own: np.array([next(own)], np.uint64),
                     "dpestim.parties.server.self_mask": lambda *_, own=own: np.array([next(own)], np.uint64),
                     "dpestim.parties.party.mask_of": lambda *_, bits=bits: np.array([bits[2]], np.uint64)}
            seen = []

            def through(frame, seen=seen):
                message = decode(frame, 100_000)
                seen += message.arrays["masked"].tolist() if message.phase == "masked" else []
                return [frame]
            with monkeypatch.context() as patch:
                for name, mask in masks.items():
                    patch.setattr(name, mask)
                parties, server, _ = made(2, 1, bits=1)
                for party, number in zip(parties, vectors, strict=True):
                    party._vector = np.array([number], np.uint64)
                assert run_together(parties, server, through).tolist() == [sum(vectors) % 2]
            view = (*seen, *bits[:2])
            law[view] = law.get(view, 0) + 1
    assert laws[0, 1] == laws[1, 0] != laws[0, 0] == laws[1, 1]


@pytest.mark.ci
def test_what_is_not_masked_for_is_removed_in_a_graph():
    """More parties than neighbours, of whom some drop out before and after they masked."""
    parties, server, vectors = made(60, 2, dropout=0.1, corrupt=0.0)
    assert server.terms.graph[0] < 59

    def through(frame):
        message = decode(frame, 100_000)
        gone = {"shares": {1}, "masked": {2, 3}, "reveal": {4}}.get(message.phase, ())
        return [] if message.sender in gone else [frame]
    total = run_together(parties, server, through)
    assert server.survivors == [0, *range(4, 60)]
    assert total.tolist() == vectors[server.survivors].sum(0).tolist()


def test_one_neighbour_may_drop_out_before_it_shared_and_one_after():
    """No vector has the mask of the two, so that it may not be removed."""
    parties, server, vectors = made(5, 2, dropout=0.4)

    def through(frame):
        message = decode(frame, 100_000)
        return [] if (message.phase, message.sender) in (("shares", 1), ("masked", 2)) else [frame]
    assert run_together(parties, server, through).tolist() == vectors[[0, 3, 4]].sum(0).tolist()


def test_a_function_makes_the_vector_when_it_is_due():
    parties, server, _ = made(2, 1)
    calls = []
    for party in parties:
        party._vector = lambda: calls.append(server.phase) or np.array([-3])
    assert run_together(parties, server).view(np.int64).tolist() == [-6]
    assert calls == ["masked", "masked"]


def test_bad_input():
    for wrong in ({"n_parties": 1}, {"size": 0}, {"bits": 65}, {"dropout": 1.0}, {"corrupt": -0.1}, {"active": 1},
                  {"dropout": 0.5, "corrupt": 0.5}, {"n_parties": 4, "dropout": 0.5, "active": True}):
        with pytest.raises(ValueError):
            SumTerms(**{"n_parties": 10, "size": 3, **wrong})
    (party, _), server, _ = made(2, 3)
    identity, directory, terms = party._identity, party._directory, party.terms
    for place, vector in ((1, np.zeros(3, np.int64)), (2, np.zeros(3, np.int64)), (0, np.zeros(2, np.int64)),
                          (0, np.zeros(3))):
        with pytest.raises(ValueError):
            SumParty(terms, directory, place, identity, vector)
    with pytest.raises(ValueError, match="identity must be that"):
        SumServer(terms, directory, identity)
    with pytest.raises(ValueError, match="all different"):
        Directory(directory.server, [directory.server])
    with pytest.raises(PartiesError, match="not signed"):
        server.receive(Message("keys", 0, SERVER, {"boxes": "", "masks": ""}))
    with pytest.raises(TypeError, match="masks would be used twice"):
        party.__reduce__()
