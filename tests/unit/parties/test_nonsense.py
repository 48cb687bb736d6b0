"""Whoever signs nonsense is answered by a PartiesError that names the phase, and by no other error."""

import multiprocessing
from dataclasses import replace

import numpy as np
import pytest
from test_secure_sum import made

from dpestim.exceptions import PartiesError
from dpestim.parties import QuantileOwner, SecureQuantile, SumParty
from dpestim.parties.quantile_owner import exchange
from dpestim.parties.wire import SERVER

VALUES = (None, True, -1, 1.0, 10**30, "x", "zz", [], [1], [1.5], ["0"], [[]], [[0, 1]], [[0, "0", "0", "0"]], {},
          {"a": 1})
ARRAYS = (np.zeros(3, np.int64), np.zeros((2, 48), np.uint8), np.zeros((0, 48), np.uint8), np.zeros((2, 3), np.uint64),
          np.zeros((1, 16), np.uint8), np.zeros(0, np.uint8))


def wrongly(message):
    """Return messages with one part that is missing or nonsense."""
    for name in message.fields:
        yield replace(message, fields={key: value for key, value in message.fields.items() if key != name})
        for value in VALUES:
            yield replace(message, fields={**message.fields, name: value})
    for name in message.arrays:
        yield replace(message, arrays={})
        for array in ARRAYS:
            yield replace(message, arrays={name: array})


@pytest.mark.parametrize("active", [False, True])
def test_nonsense_of_the_server_or_of_a_party_is_an_error_with_its_phase(active):
    parties, server, vectors = made(3, 2, active=active, dropout=0.34)
    waiting = [message for party in parties for message in party.start()]
    phases, tried = set(), 0
    while waiting:
        message = waiting.pop(0)
        at = server if message.receiver == SERVER else parties[message.receiver]
        identity = server._identity if message.sender == SERVER else parties[message.sender]._identity
        state = dict(vars(at)), dict(vars(at).get("_got", {})), vars(at).get("_total", np.zeros(1)).copy()
        if (message.phase, message.sender == SERVER) not in phases:
            for wrong in wrongly(message):
                signed = identity.signed(wrong, at._context)
                tried += 1
                try:
                    at.receive(signed)
                except PartiesError as error:
                    assert error.phase in (message.phase, state[0]["phase"])  # noqa: PT017
                vars(at).update(state[0], _seen={}, _digests={})
                if at is server:
                    at._got, at._total = dict(state[1]), state[2].copy()
        phases.add((message.phase, message.sender == SERVER))
        waiting += at.receive(message)
    assert server.result.tolist() == vectors.sum(0).tolist()
    assert tried > 200
    assert len(phases) == 8 + 2 * active


def test_an_error_of_the_own_function_is_shown_as_it_is():
    """What a vector is made by is not blamed on the server; and a party that had an error is of no more use."""
    parties, server, _ = made(2, 1)
    parties[0]._vector = lambda: {}["no such column"]
    waiting = [message for party in parties for message in party.start()]
    told = [answer for message in waiting for answer in server.receive(message)]
    sent = [answer for message in told for answer in parties[message.receiver].receive(message)]
    shares = [answer for message in sent for answer in server.receive(message)]
    with pytest.raises(KeyError, match="no such column"):
        parties[0].receive(shares[0])
    with pytest.raises(PartiesError, match="failed before"):
        parties[0].receive(shares[0])


def test_shares_of_another_length_are_refused_before_a_vector_is_sent(monkeypatch):
    parties, server, _ = made(2, 1)
    monkeypatch.setattr("dpestim.parties.party.keys.opened", lambda *given: b"short")
    waiting = [message for party in parties for message in party.start()]
    told = [answer for message in waiting for answer in server.receive(message)]
    sent = [answer for message in told for answer in parties[message.receiver].receive(message)]
    shares = [answer for message in sent for answer in server.receive(message)]
    with pytest.raises(PartiesError, match="no two shares") as error:
        parties[0].receive(shares[0])
    assert error.value.phase == "shares"


def test_a_copy_of_a_party_in_another_process_sends_nothing():
    """Both would send vectors under the same masks."""
    (party, *_), server, _ = made(2, 1)
    message = server._to(0, "keys", {"seed": "0" * 64, "keys": []})
    ours, theirs = multiprocessing.Pipe()

    def copy():
        try:
            party.receive(message)
        except PartiesError as error:
            theirs.send(str(error))
    process = multiprocessing.get_context("fork").Process(target=copy)
    process.start()
    process.join()
    assert ours.poll(5)
    assert "in the process that made it" in ours.recv()


def test_an_outcome_outside_of_the_domain_is_an_error():
    """A computing owner that sends other words can open what is no point."""
    made_ = [QuantileOwner(SecureQuantile(80.0, domain=range(4))) for _ in range(3)]
    true = made_[0]._rounds

    def moved(program):
        return (yield from true(program)) + 4
    made_[0]._rounds = moved
    with pytest.raises(PartiesError, match="no point of the domain") as error:
        exchange(made_, [[1], [2], [3]])
    assert error.value.phase == "rounds"
    assert (made_[0].value, made_[0].phase) == (None, "failed")


def test_a_vector_that_is_none_is_a_value_error_of_its_owner():
    (party, _), _, _ = made(2, 1)
    with pytest.raises(ValueError, match="vector must"):
        SumParty(party.terms, party._directory, 0, party._identity, [0.5])


def shown(parties, server, phase):
    """Run up to the server's messages of a phase, and return these."""
    waiting = [message for party in parties for message in party.start()]
    while True:
        told = [answer for message in waiting for answer in server.receive(message)]
        if told[0].phase == phase:
            return told
        waiting = [answer for message in told for answer in parties[message.receiver].receive(message)]


@pytest.mark.parametrize(("forge", "match"), [
    (lambda message, server: replace(message, signature=bytes(64)), "not signed by the server"),
    (lambda message, server: server._identity.signed(replace(message, receiver=1), server._context), "its receiver"),
    (lambda message, server: server._identity.signed(replace(message, fields={
        **message.fields, "survivors": [0, 1, 2]}), server._context), "other survivors")])
def test_a_party_takes_what_its_server_signed_for_it_about_the_survivors_it_signed(forge, match):
    parties, server, _ = made(4, 1, active=True, dropout=0.25)
    message = shown(parties, server, "reveal")[0]
    with pytest.raises(PartiesError, match=match) as error:
        parties[0].receive(forge(message, server))
    assert error.value.phase == "reveal"


def test_a_server_takes_one_message_of_a_phase_and_no_message_of_its_own():
    parties, server, _ = made(3, 1, dropout=0.34)
    first, second = parties[0].start()[0], parties[1].start()[0]
    server.receive(first)
    other = parties[0]._to_server("keys", {**first.fields, "boxes": second.fields["boxes"]})
    with pytest.raises(PartiesError, match="two different messages"):
        server.receive(other)
    parties, server, _ = made(3, 1, dropout=0.34)
    assert not server.is_signed(server._to(0, "keys", {}))
    assert server.is_signed(parties[0].start()[0])


def test_too_few_shares_are_an_error_and_no_wrong_sum():
    """More parties end before they reveal than may drop out: a threshold of 3 with 2 neighbours left."""
    parties, server, _ = made(5, 1, dropout=0.2, corrupt=0.4)
    told = shown(parties, server, "reveal")
    assert server.terms.graph[1] >= 3
    for message in told[:2]:
        server.receive(*parties[message.receiver].receive(message))
    with pytest.raises(PartiesError, match="neighbours of party 0 are left") as error:
        server.close()
    assert error.value.phase == "reveal"
    assert server.result is None
