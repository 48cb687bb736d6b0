"""Parties over sockets: the same sum, pinned certificates, and errors that name the phase."""

import asyncio
import socket

import numpy as np
import pytest
from test_protocol_faults import made as made_of
from test_protocol_faults import right
from test_secure_sum import made

from dpestim.exceptions import PartiesError
from dpestim.parties import Certificate, join, serve, session
from dpestim.parties.session import checked_fingerprint, of_parties
from dpestim.parties.wire import SERVER, Message


def served(parties, server, fingerprint=None, timeout=20.0, before=None):
    """Return what the server and each party ended with."""
    certificate = Certificate.make()

    async def run():
        port = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(serve(server, certificate, timeout=timeout, ready=port.set_result))
        at = await port
        if before is not None:
            await asyncio.to_thread(before, at)
        joined = [join(party, "127.0.0.1", at, fingerprint or certificate.fingerprint, timeout=20) for party in parties]
        return await asyncio.gather(serving, *joined, return_exceptions=True)
    return asyncio.run(run())


@pytest.mark.parametrize("active", [False, True])
def test_the_sum_over_sockets(active):
    parties, server, vectors = made(active=active)
    total, *survivors = served(parties, server)
    assert total.tolist() == vectors.sum(0).tolist()
    assert survivors == [[0, 1, 2, 3]] * 4


def test_a_party_that_never_comes_is_dropped_or_ends_the_sum():
    for seconds in (0.5, 5.0, 20.0):  # (on a machine that is busy, parties that come are late)
        parties, server, vectors = made(dropout=0.25)
        total = served(parties[:3], server, timeout=seconds)[0]
        if not isinstance(total, PartiesError):
            break
    assert total.tolist() == vectors[:3].sum(0).tolist()
    parties, server, _ = made()
    error, *others = served(parties[:3], server, timeout=0.5)
    assert {type(at) for at in (error, *others)} == {PartiesError}
    assert {at.phase for at in (error, *others)} == {"keys"}


def test_strangers_end_no_sum():
    def strangers(port):
        for sent in (b"", b"x" * 100):
            with socket.create_connection(("127.0.0.1", port)) as stranger:
                stranger.sendall(sent)
    parties, server, vectors = made()
    assert np.array_equal(served(parties, server, before=strangers)[0], vectors.sum(0))


def test_a_wrong_certificate_gets_nothing():
    parties, server, _ = made()
    error, *others = served(parties, server, fingerprint="0" * 64, timeout=0.5)
    assert error.phase == "keys"
    assert all("another certificate" in str(at) for at in others)


@pytest.mark.parametrize("kind", ["quantile", "intersection"])
def test_quantiles_and_intersections_over_sockets(kind):
    parties, server = made_of(kind)
    n, *survivors = served(parties, server)
    assert n == server.result > 2
    assert survivors == [list(range(len(parties)))] * len(parties)
    assert right(kind, parties, server)
    assert {party._protocol.phase for party in parties} == {"end"}


@pytest.mark.parametrize("kind", ["quantile", "intersection"])
def test_a_party_whose_data_are_refused_ends_the_run_of_all_at_once(kind):
    parties, server = made_of(kind)
    parties[1]._data = [[None, "x", 1.5]]
    error, *others = served(parties, server)
    assert type(others[1]) is ValueError
    assert {type(at) for at in (error, others[0])} == {PartiesError}
    assert error.phase == others[0].phase == "messages"
    assert "parties [1] have ended their connection" in str(others[0])


def test_a_party_that_never_comes_ends_a_quantile_before_it_costs():
    parties, server = made_of("quantile")
    error, *others = served(parties[:2], server, timeout=0.3)
    assert {at.phase for at in (error, *others)} == {"hello"}
    assert {party._protocol.phase for party in parties} == {"start"}


def talk(hall_of, *acts):
    """Serve a sum of 4 parties, and let strangers act on open connections; return (what came out, answers)."""
    parties, server, _ = made()
    certificate = Certificate.make()

    async def run():
        port, answers = asyncio.get_running_loop().create_future(), []
        serving = asyncio.ensure_future(serve(server, certificate, timeout=hall_of, ready=port.set_result))
        at = await port
        for act in acts:
            reader, writer = await asyncio.open_connection("127.0.0.1", at, ssl=of_parties())
            answers.append((reader, writer))
            act(writer)
        if len(acts) > session.MOST_STRANGERS:  # (the first is sent away before anybody has joined)
            assert await asyncio.wait_for(answers[0][0].read(), 5) == b""
        joined = [join(party, "127.0.0.1", at, certificate.fingerprint, timeout=20) for party in parties]
        found = await asyncio.gather(serving, *joined, return_exceptions=True)
        ended = [await asyncio.wait_for(reader.read(), 5) for reader, _ in answers]
        for _, writer in answers:
            writer.close()
        return found, ended
    return asyncio.run(run())


def test_strangers_may_send_one_short_message_and_are_sent_away_at_the_end(monkeypatch):
    """No memory is taken for a large frame of a stranger, and one that says nothing does not stay."""
    monkeypatch.setattr(session, "MOST_STRANGERS", 5)
    large = b"DPP1" + (100).to_bytes(4, "big") + (24).to_bytes(8, "big")  # (as large as a vector of these terms)
    unsigned = session.encode(Message("keys", 0, SERVER, {"boxes": "9" * 64, "masks": "9" * 64}))
    taken, left = [], session.left

    def watched(prefix, most, most_header):
        taken.append((prefix, most))
        return left(prefix, most, most_header)
    monkeypatch.setattr(session, "left", watched)
    (total, *survivors), ended = talk(
        20.0, lambda w: None, lambda w: w.write(large), lambda w: w.write(unsigned), *[lambda w: None] * 5)
    assert isinstance(total, np.ndarray)
    assert survivors == [[0, 1, 2, 3]] * 4
    assert ended == [b""] * 8
    assert (large, 0) in taken
    assert {most for prefix, most in taken if prefix != large} == {0, made()[1].terms.most_bytes}


def test_a_server_takes_no_more_messages_than_wait():
    """A party that floods fills a queue of 256, and no more; the time of a phase ends also while it floods."""
    parties, server, _ = made(dropout=0.25)
    copies = parties[0].start() * 2000

    async def run():
        hall = session._Hall(server, 0.5)
        reader = asyncio.StreamReader()
        reader.feed_data(b"".join(session.encode(message) for message in copies))

        class Writer:
            transport = None

            def close(self):
                pass
        flood = asyncio.ensure_future(hall.connected(reader, Writer()))
        await asyncio.sleep(0.1)
        assert hall.queue.qsize() == session.MOST_WAITING == 256
        assert await hall._next(-1.0) == (None, None)
        assert (await hall._next(1.0))[0] == 0
        flood.cancel()
    asyncio.run(run())


def test_a_fingerprint_may_be_written_as_openssl_prints_it():
    plain = Certificate.make().fingerprint
    assert checked_fingerprint(":".join(plain[i:i + 2] for i in range(0, 64, 2)).upper()) == plain
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        checked_fingerprint(plain[:-1])


@pytest.mark.parametrize(("wrong", "says"), [
    ({"timeout": "a"}, "timeout"), ({"timeout": 0}, "timeout must be above 0"),
    ({"fingerprint": "zz" * 32}, "hexadecimal"),
    ({"fingerprint": None}, "hexadecimal"), ({"port": 0}, "port")])
def test_join_refuses_what_can_reach_no_server(wrong, says):
    party = made()[0][0]
    asked = {"port": 1, "fingerprint": "0" * 64, "timeout": 1.0} | wrong
    with pytest.raises(ValueError, match=says):
        asyncio.run(join(party, "127.0.0.1", asked["port"], asked["fingerprint"], timeout=asked["timeout"]))


@pytest.mark.parametrize(("wrong", "says"), [
    ({"timeout": "a"}, "timeout"), ({"timeout": float("nan")}, "timeout"),
    ({"host": "no such name"}, "host must be a name")])
def test_serve_refuses_what_it_cannot_listen_at(wrong, says):
    with pytest.raises(ValueError, match=says):
        asyncio.run(serve(made()[1], Certificate.make(), **wrong))
