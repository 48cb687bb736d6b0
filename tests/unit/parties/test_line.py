"""A TLS connection that one thread reads while another writes."""

import socket
import ssl
import time
from contextlib import closing, suppress
from threading import Thread

import pytest

from dpestim.parties import Certificate
from dpestim.parties.line import Line
from dpestim.parties.session import of_parties


def lines(deadline):
    """Return both ends of a connection."""
    ends, (one, two) = [], socket.socketpair()
    server = Thread(target=lambda: ends.append(Certificate.make().context().wrap_socket(one, server_side=True)))
    server.start()
    client = of_parties().wrap_socket(two)
    server.join()
    return closing(Line(client, deadline)), closing(Line(ends[0], deadline))


def test_both_ends_write_and_read_at_once():
    one, two = lines(20)
    with one as a, two as b:
        data, found = [bytes([k]) * 3_000_000 for k in (1, 2)], {}

        def read(line, name):
            out = bytearray()
            while len(out) < len(data[0]):
                out += line.recv(1 << 16)
            found[name] = bytes(out)
        threads = [Thread(target=read, args=(a, "a")), Thread(target=read, args=(b, "b")),
                   Thread(target=a.sendall, args=(data[0],)), Thread(target=b.sendall, args=(data[1],))]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert found == {"a": data[1], "b": data[0]}


def test_who_waits_too_long_or_for_a_closed_end_is_told():
    one, two = lines(0.05)
    with one as a:
        with two as b:
            begin = time.monotonic()
            with pytest.raises(TimeoutError):
                a.recv(1)
            assert time.monotonic() - begin < 30
            b.sendall(b"x")
            assert a.recv(5) == b"x"
        with suppress(ssl.SSLEOFError):  # (the other end was closed without a farewell)
            assert a.recv(1) == b""
    with pytest.raises(OSError):
        a.recv(1)
