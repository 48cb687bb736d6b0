"""Processes that are killed at every message: the others have the right result, or an error that names its phase."""

import asyncio
import multiprocessing
import os
import signal

import pytest
from test_protocol_faults import N, made, people, right

from dpestim.exceptions import PartiesError
from dpestim.parties import Certificate, QuantileOwner, Relayed, SecureQuantile, join, serve, session

SERVER = "server"
CERTIFICATE = Certificate.make()


def dies(at, half):
    """Kill this process at its message of a number: before it is sent, or when half of it is."""
    n_sent, encode = [0], session.encode

    def counted(message):
        n_sent[0] += 1
        frame = encode(message)
        if n_sent[0] - 1 > at:  # (half of a message was the last)
            return b""
        if n_sent[0] - 1 < at:
            return frame
        if not half:
            os.kill(os.getpid(), signal.SIGKILL)
        asyncio.get_running_loop().call_later(0.01, os.kill, os.getpid(), signal.SIGKILL)
        return frame[: len(frame) // 2]
    session.encode = counted


def life(make, place, end, timeout, death):
    """What runs in the process of a party or of the server: it tells ("result" or "error", a value or a phase)."""
    if death is not None:
        dies(*death)
    parties, server = make()
    try:
        if place == SERVER:
            asyncio.run(serve(server, CERTIFICATE, timeout=timeout, ready=end.send))
            value = server.survivors if hasattr(server, "survivors") else None
        else:
            asyncio.run(join(parties[place], "127.0.0.1", end.recv(), CERTIFICATE.fingerprint, timeout=20))
            value = None
        assert right(kind_of(parties[0]), parties, server)
        end.send(("result", value, None))
    except PartiesError as error:
        end.send(("error", error.phase, str(error)))


def kind_of(party):
    if not isinstance(party, Relayed):
        return "sum"
    return "quantile" if isinstance(party._protocol, QuantileOwner) else "intersection"


def lived(make, n, victim=None, at=0, half=False, timeout=20.0):
    """Return {place: what its process told}: None of the one that was killed."""
    context, ends, processes = multiprocessing.get_context("fork"), {}, {}
    for place in (SERVER, *range(n)):
        ends[place], end = context.Pipe()
        death = (at, half) if place == victim else None
        processes[place] = context.Process(target=life, args=(make, place, end, timeout, death), daemon=True)
        processes[place].start()
        end.close()
    port = ends[SERVER].recv()
    for place in range(n):
        ends[place].send(port)
    told = {}
    for place, end in ends.items():
        try:
            told[place] = end.recv() if end.poll(30) else "it does not end"
        except EOFError:
            told[place] = None
        processes[place].join()
        assert processes[place].exitcode == (-signal.SIGKILL if told[place] is None else 0)
    return told


def maker(kind, **more):
    same = people(N[kind])
    return lambda: made(kind, same, **more)


@pytest.mark.parametrize("half", [False, pytest.param(True, marks=pytest.mark.ci)])
def test_a_party_of_a_sum_is_killed_at_every_message(half):
    """One of three may drop out: the sum is that of the others, and of all three once the vector was sent."""
    for at in range(4):
        told = lived(maker("sum"), 3, 1, at, half, timeout=20.0 if at else 1.5)
        assert told[1] is None
        assert told[SERVER] == ("result", [0, 1, 2] if at == 3 else [0, 2], None)
        assert told[0][0] == told[2][0] == "result"


@pytest.mark.ci
@pytest.mark.parametrize(("kind", "victim"), [("quantile", 0), ("intersection", 0), ("intersection", 1)])
def test_a_party_of_another_protocol_is_killed_at_every_message(kind, victim):
    n, make = N[kind], maker(kind)
    for at in range(100):
        told = lived(make, n, victim, at, at % 2 == 1, timeout=20.0 if at else 1.0)
        if told[victim] is not None:  # (it has sent all)
            break
        assert told[SERVER][:2] == ("error", "messages" if at else "hello")
        assert {told[place][0] for place in range(n) if place != victim} == {"error"}
    assert at >= 3
    assert {kind for kind, _, _ in told.values()} == {"result"}


@pytest.mark.ci
@pytest.mark.parametrize("kind", N)
def test_the_server_is_killed_at_every_message(kind):
    make, unhurt = maker(kind), []
    for at in range(0, 100, 3):
        told = lived(make, N[kind], SERVER, at)
        if told.pop(SERVER) is not None:
            break
        assert {found[0] for found in told.values()} <= {"error", "result"}
        assert all(found[1] for found in told.values() if found[0] == "error")
        if "error" not in {found[0] for found in told.values()}:
            unhurt.append(at)
    assert at > N[kind]
    assert min(unhurt, default=at) >= at - 3  # (all but those who are told "done" have an error)


@pytest.mark.ci
def test_an_owner_is_killed_in_the_rounds_of_an_exponential_mechanism():
    same = people(3)

    def make():
        parties, server = made("quantile", same)
        for place, party in enumerate(parties):
            party._protocol = QuantileOwner(SecureQuantile(80.0, domain=range(2), random_state=place))
            party._mine["said"] = party._protocol._hello()
        return parties, server
    phases = set()
    for at in (4, 60, 150):
        told = lived(make, 3, 1, at)
        assert told[1] is None
        assert told[SERVER][:2] == ("error", "messages")
        phases |= {told[0][1], told[2][1]}
        assert told[0][0] == told[2][0] == "error"
    assert phases == {"messages"}
