"""Sums, quantiles and intersections under faults of the network: the right result, or an error that names the phase."""

from functools import lru_cache

import numpy as np
import pytest

from dpestim.accounting import Ledger
from dpestim.exceptions import PartiesError
from dpestim.parties import (
    Directory,
    Identity,
    PrivateIntersectionSize,
    QuantileOwner,
    Relay,
    Relayed,
    RelayTerms,
    SecureQuantile,
    SumParty,
    SumServer,
    SumTerms,
    decode,
    encode,
    run_together,
)
from dpestim.parties.wire import SERVER, Message

N = {"sum": 3, "quantile": 3, "intersection": 2}
PHASES = {"sum": {"keys", "shares", "masked", "reveal"}, "quantile": {"hello", "messages"},
          "intersection": {"hello", "messages"}}
ALL = pytest.mark.parametrize("kind", N)


def people(n):
    """Return (identities of parties, that of the server, directory)."""
    owner, *identities = (Identity() for _ in range(n + 1))
    return identities, owner, Directory(owner.public, [identity.public for identity in identities])


def made(kind, people_=None, **more):
    """Return (parties, server): a small run, the same noise each time."""
    identities, owner, directory = people_ or people(N[kind])
    if kind == "sum":
        terms = SumTerms(3, 2, dropout=0.34)
        return [SumParty(terms, directory, place, identity, np.array([1 << place, 5]))
                for place, identity in enumerate(identities)], SumServer(terms, directory, owner)
    terms = RelayTerms(N[kind])
    if kind == "quantile":
        owners = [QuantileOwner(SecureQuantile(80.0, domain=range(2), method="bisection", random_state=place, **more))
                  for place in range(3)]
        data = [[0, 1, 1], [1], [1, 1]]
    else:
        owners = [PrivateIntersectionSize(20.0, delta=0.2, role=role, random_state=place, **more)
                  for place, role in enumerate(("first", "second"))]
        data = [range(5), range(3, 9)]
    return [Relayed(terms, directory, place, identities[place], owner, data[place])
            for place, owner in enumerate(owners)], Relay(terms, directory, owner)


@lru_cache
def counted():
    """Return what the owners of an intersection count, with the noise of these seeds."""
    parties, server = made("intersection")
    assert run_together(parties, server) == 3  # (messages, each by the server)
    first, second = (party._protocol._noisy for party in parties)
    assert first == second
    return first


def right(kind, parties, server):
    """Tell whether a run has the right result, where there is one at all: of the server, or at any party."""
    if kind == "sum":
        return server.result is None or server.result.tolist() == [
            sum(1 << at for at in server.survivors), 5 * len(server.survivors)]
    name = {"quantile": "value", "intersection": "_noisy"}[kind]
    expected = 1 if kind == "quantile" else counted()
    return {getattr(party._protocol, name, None) for party in parties} <= {None, expected}


def outcome(kind, through=None, made_=None):
    """Return "result" or the phase of the error of the server; it fails where a result is wrong."""
    parties, server = made_ or made(kind)
    try:
        run_together(parties, server, through)
        found = "result"
    except PartiesError as error:
        found = error.phase
    assert found in {"result", *PHASES[kind]}
    assert (server.result is None) is (found != "result")
    assert right(kind, parties, server)
    return found


class Network:
    """Frames in their order, with something done to the one of a number."""

    def __init__(self, at=None, what=None):
        self.count, self.at, self.what = -1, at, what

    def __call__(self, frame):
        self.count += 1
        return self.what(frame) if self.count == self.at else [frame]


def n_frames(kind):
    network = Network()
    assert outcome(kind, network) == "result"
    return network.count + 1


def places(frame):
    """Return where each part of a frame begins, and where it ends: classes of bytes."""
    n_header = int.from_bytes(frame[4:8], "big")
    inside = {name: frame.index(b'"%s":' % name.encode()) + len(name) + 3
              for name in ("arrays", "fields", "phase", "receiver", "sender")}
    return {"magic": 0, "size of the header": 7, "size of the body": 15, "header": 16, **inside,
            "last of the header": 15 + n_header, "first after the header": 16 + n_header,
            "last of the arrays": len(frame) - 65, "first of the tag": len(frame) - 64, "tag": len(frame) - 1}


CLASSES = sorted(places(encode(Message("x", 0, 1))))


@pytest.mark.parametrize("every", [1, pytest.param(5, marks=pytest.mark.ci)])
@ALL
def test_a_byte_of_any_part_of_any_message_may_flip(kind, every):
    """A sum goes on without its sender; the others need every message, so that none is accepted with a flip."""
    for at in range(n_frames(kind)):
        for part in range(every * at, every * at + every):
            def flip(frame, part=part):
                frame = bytearray(frame)
                frame[places(frame)[CLASSES[part % len(CLASSES)]]] ^= 1 << part % 7
                return [bytes(frame)]
            found = outcome(kind, Network(at, flip))
            assert found == "result" if kind == "sum" else found in ("hello", "messages", "result")
            if found == "result" and kind != "sum":  # (the server's "done", when all have ended)
                assert at >= n_frames(kind) - N[kind]


@pytest.mark.parametrize("kind", ["quantile", "intersection"])  # (of a sum: test_secure_sum.py)
def test_each_message_may_be_lost_or_arrive_twice(kind):
    n = n_frames(kind)
    for at in range(n):
        if at % 2:
            assert outcome(kind, Network(at, lambda frame: [frame, frame])) == "result"
        found = outcome(kind, Network(at, lambda frame: []))
        assert (found == "result") is (at >= n - N[kind])
    assert outcome(kind, lambda frame: [frame, frame]) == "result"


@ALL
def test_messages_may_be_late_and_in_any_order(kind):
    found = []
    for seed in range(8):
        draw, held = np.random.default_rng(seed), []

        def through(frame, draw=draw, held=held):
            held.append(frame)
            draw.shuffle(held)
            n = len(held) - int(draw.random() < 0.04)
            out, held[:] = held[:n], held[n:]
            return out
        found.append(outcome(kind, through))
    assert "result" in found


@ALL
def test_of_messages_that_wait_any_may_be_the_next(kind):
    """No message is lost, and all orders that a network could make lead to the right result."""
    for seed in range(6):
        draw = np.random.default_rng(seed)
        parties, server = made(kind)
        waiting = [(server, message) for party in parties for message in party.start()]
        while waiting:
            at, message = waiting.pop(int(draw.integers(len(waiting))))
            waiting += [(parties[more.receiver] if at is server else server, more) for more in at.receive(message)]
        assert server.phase == "done"
        assert right(kind, parties, server)


@ALL
def test_messages_of_another_run_are_not_taken(kind):
    """With the same identities and terms: every message is replaced by that of the same number of an earlier run."""
    same, recorded = people(N[kind]), []
    outcome(kind, lambda frame: recorded.append(frame) or [frame], made(kind, same))
    for at, old in enumerate(recorded):
        found = outcome(kind, Network(at, lambda frame, old=old: [old]), made(kind, same))
        assert found in {"result", *PHASES[kind]}
        if kind != "sum" and at < len(recorded) - N[kind]:
            assert found != "result"


@pytest.mark.parametrize("kind", ["quantile", "intersection"])
def test_who_is_alone_pays_nothing(kind):
    """A protocol begins when all have introduced themselves; who fails before has no charge."""
    ledger = Ledger(300.0, delta=0.5)
    parties, server = made(kind, ledger=ledger)
    with pytest.raises(PartiesError, match=r"parties \[0\] did not come"):
        run_together(parties, server, lambda frame: [] if decode(frame).sender == 0 else [frame])
    assert ledger.spent().epsilon == 0
    assert outcome(kind, made_=made(kind, ledger=ledger)) == "result"
    assert ledger.spent().epsilon == (240 if kind == "quantile" else 40)


def test_what_parties_say_of_themselves_is_theirs():
    """A server cannot put a key in the place of another's, nor name two lists, nor end what has not ended."""
    for wrong in ("key", "order", "few", "signature", "text"):
        parties, server = made("quantile")
        tell = server._to_all

        def lying(phase, fields, tell=tell, wrong=wrong):
            if phase == "hello":
                said = [[dict(own), signature] for own, signature in fields["said"]]
                if wrong == "key":
                    said[2][0]["said"] = Identity().public.hex()
                said = {"order": said[::-1], "few": said[:2], "text": "x"}.get(wrong, said)
                if wrong == "signature":
                    said[1][1] = "x"
                fields = {"said": said}
            return tell(phase, fields)
        server._to_all = lying
        messages = [message for party in parties for message in party.start()]
        told = [answer for message in messages for answer in server.receive(message)]
        with pytest.raises(PartiesError) as error:
            parties[0].receive(told[0])
        assert error.value.phase == "hello"
    parties, server = made("quantile")
    told = [answer for party in parties for message in party.start() for answer in server.receive(message)]
    done = server._to_all("done", {})[0]
    with pytest.raises(PartiesError, match="too early"):
        parties[0].receive(done)
    with pytest.raises(PartiesError, match="failed before"):
        parties[0].receive(told[0])
    assert parties[1].receive(told[1])
    assert parties[1].receive(told[1]) == []
    with pytest.raises(PartiesError, match="two different lists"):
        parties[1].receive(server._to_all("hello", {"said": []})[1])


def test_the_relay_refuses_what_is_for_nobody():
    (first, _), relay = made("intersection")
    hello, = first.start()
    stranger = Identity().signed(Message("hello", 0, SERVER), relay._context)
    assert not relay.is_signed(stranger)
    with pytest.raises(PartiesError, match="not signed"):
        relay.receive(stranger)
    assert relay.receive(hello) == relay.receive(hello) == []
    told = relay._to_all("done", {})
    assert not relay.is_signed(told[0])
    with pytest.raises(PartiesError, match="for another party"):
        first.receive(told[1])
    again = Relayed(relay.terms, relay._directory, 0, first._identity, PrivateIntersectionSize(), [1])
    with pytest.raises(PartiesError, match="introduced itself twice"):
        relay.receive(*again.start())
    with pytest.raises(PartiesError, match="failed before"):
        relay.receive(hello)
    for receiver, phase, match in ((7, "both", "to nobody"), (0, "both", "to nobody"), (SERVER, "x", "phase 'x'")):
        parties, relay = made("intersection")
        for party in parties:
            relay.receive(*party.start())
        assert not relay.is_signed(relay._to_all("hello", {"said": []})[0])
        with pytest.raises(PartiesError, match=match):
            relay.receive(parties[0]._identity.signed(Message(phase, 0, receiver), relay._session))


def test_bad_terms_and_roles():
    for wrong in ({"n_parties": 1}, {"most_bytes": 0}, {"label": 3}):
        with pytest.raises(ValueError):
            RelayTerms(**{"n_parties": 2, **wrong})
    identities, owner, directory = people(2)
    with pytest.raises(ValueError, match="keys of 3 parties"):
        Relay(RelayTerms(3), directory, owner)
    terms = RelayTerms(2)
    with pytest.raises(ValueError, match="identity must be that"):
        Relay(terms, directory, identities[0])
    first = PrivateIntersectionSize(role="first")
    for place, identity, match in ((2, identities[0], "place must"), (1, identities[0], "identity must")):
        with pytest.raises(ValueError, match=match):
            Relayed(terms, directory, place, identity, first, [1])
    parties = [Relayed(terms, directory, place, identities[place], PrivateIntersectionSize(role="first"), [1])
               for place in range(2)]
    told = Relay(terms, directory, owner)
    hellos = [told.receive(*party.start()) for party in parties][1]
    with pytest.raises(PartiesError, match="change the roles"):
        parties[0].receive(hellos[0])
    first.start([1])
    with pytest.raises(ValueError, match="not started"):
        Relayed(terms, directory, 0, identities[0], first, [1])
