"""Parties over sockets: the same sum, pinned certificates, and errors that name the phase."""

import asyncio
import socket

import numpy as np
import pytest
from test_secure_sum import made

from dpestim.exceptions import PartiesError
from dpestim.parties import Certificate, join, serve


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
