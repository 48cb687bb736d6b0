"""The secure sum of parties: exact under dropouts, and an error, never a wrong sum, under faults of the network."""

import numpy as np
import pytest

from dpestim.exceptions import PartiesError
from dpestim.parties import Directory, Identity, SumParty, SumServer, SumTerms, run_together
from dpestim.parties.wire import decode


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


@BOTH
def test_each_message_may_be_lost_or_arrive_twice(active):
    for at in range(n_frames(active=active, **SMALL)):
        assert outcome(Network(at, lambda frame: [frame, frame]), active=active, **SMALL) == "sum"
        assert outcome(Network(at, lambda frame: []), active=active, **SMALL) == "sum"


@pytest.mark.ci
@BOTH
def test_each_message_may_be_damaged(active):
    """What is damaged never arrives, or is an error; one bit in each part of each message."""
    found = set()
    for at in range(n_frames(active=active, **SMALL)):
        for where in (5, 30, -100, -1):
            def flip(frame, where=where):
                frame = bytearray(frame)
                frame[where] ^= 1
                return [bytes(frame)]
            found.add(outcome(Network(at, flip), active=active, **SMALL))
    assert len(found) > 2


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
