"""Sums over sockets for a fit: strangers, floods, silence and wrong certificates end nothing for the others."""

import inspect
import socket
import time
from collections import Counter
from contextlib import closing, suppress
from threading import Thread

import numpy as np
import pytest

from dpestim.exceptions import PartiesError
from dpestim.parties import Certificate, Directory, Identity, RoundsClient, SumTerms, rounds, serve_rounds
from dpestim.parties.session import of_parties
from dpestim.parties.wire import SERVER, Message, encode

CERTIFICATE = Certificate.make()


class Attended:
    """Parties of a sum, as threads; `act` is done by one of them instead, with its client."""

    def __init__(self, n=3, act=None, deadline=2.0, before=None, **terms):
        terms = SumTerms(n, 1, **terms)
        self.owner, *self.identities = (Identity() for _ in range(n + 1))
        directory = Directory(self.owner.public, [identity.public for identity in self.identities])
        self.found, self.seen = [None] * n, None

        def attend(place, address):
            with suppress(OSError), closing(RoundsClient(
                    socket.create_connection(address), terms, directory, place, self.identities[place],
                    CERTIFICATE.fingerprint, deadline=10)) as sums:
                try:
                    if act is not None and place == n - 1:
                        self.found[place] = act(self, sums)
                    else:
                        self.found[place] = int(sums.total(np.array([1 << place], np.uint64), "")[0])
                except PartiesError as error:
                    self.found[place] = error
        with socket.create_server(("127.0.0.1", 0)) as listener:
            others = before(listener.getsockname()) if before else ()
            threads = [Thread(target=attend, args=(place, listener.getsockname()), daemon=True) for place in range(n)]
            [thread.start() for thread in threads]
            try:
                self.seen = serve_rounds(listener, terms, directory, self.owner, CERTIFICATE, deadline=deadline)
            except PartiesError as error:
                self.seen = error
            [thread.join() for thread in threads]
            self.left = [other.recv(10) for other in others]
            for other in others:
                other.close()


def test_strangers_are_few_and_are_sent_away(monkeypatch):
    """More connections than are kept: the oldest goes; those that are left at the start of the sums go, too."""
    def silent(address):
        found = [socket.create_connection(address) for _ in range(6)]
        for sock in found:
            sock.settimeout(5)

        def half():  # (one shakes hands by TLS, and then sends a part of a message)
            with of_parties().wrap_socket(socket.create_connection(address)) as sock:
                sock.sendall(b"DPP")
                late.append(sock.recv(1))
        threads.append(Thread(target=half))
        threads[0].start()
        return found
    late, threads = [], []
    kept = []
    monkeypatch.setattr(rounds, "MOST_STRANGERS", 4)
    greet = rounds._Rounds._greet
    monkeypatch.setattr(rounds._Rounds, "_greet", lambda self, line: kept.append(len(self.strangers)) or greet(
        self, line))
    run = Attended(before=silent, deadline=20.0)
    threads[0].join(5)
    assert max(kept) <= 4
    assert run.found == [7] * 3
    assert run.left == [b""] * 6
    assert late == [b""]


def test_a_first_message_is_short():
    """A stranger's frame of the size of a vector takes no memory: it is refused by its size."""
    sizes, left = [], rounds.left

    def watched(prefix, most, most_header):
        sizes.append(most)
        return left(prefix, most, most_header)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "left", watched)
        assert Attended().found == [7] * 3
    assert sizes.count(0) == 3
    assert len(set(sizes)) == 2


def test_a_party_that_floods_ends_in_time_and_is_no_more_than_a_dropout():
    """Copies of a message keep no phase open in which another party is silent."""
    over = []

    def flood(run, sums):
        asked = Message("round", 2, SERVER, {"size": 1, "label": ""})
        sums._send([sums._identity.signed(asked, sums._base)])
        copy = encode(sums._identity.signed(Message("keys", 2, SERVER, {"boxes": "9" * 64, "masks": "9" * 64}),
                                            rounds._terms_of(sums._terms, 1, 0, "").context(sums._directory)))
        with suppress(OSError):
            while not over:
                sums._sock.sendall(copy * 20)
    begin = time.monotonic()
    watch = Thread(target=lambda: (time.sleep(6), over.append(1)), daemon=True)
    watch.start()
    run = Attended(act=flood, dropout=0.34)
    assert time.monotonic() - begin < 5
    assert run.found[:2] == [3, 3]
    assert [survivors for _, survivors, _ in run.seen] == [[0, 1]]


@pytest.mark.parametrize("kind", ["unsigned", "of another", "torn"])
def test_who_sends_what_it_has_not_signed_has_dropped_out(kind):
    """The others go on, where the terms let one drop out: before, one damaged message ended the fit of all."""
    def send(run, sums):
        asked = Message("round", 2, SERVER, {"size": 1, "label": ""})
        sums._send([sums._identity.signed(asked, sums._base)])
        said = Message("keys", 2, SERVER, {"boxes": "0" * 64, "masks": "0" * 64})
        if kind == "of another":
            terms = rounds._terms_of(sums._terms, 1, 0, "")
            said = run.identities[0].signed(Message("shares", 0, SERVER), terms.context(sums._directory))
        frame = encode(said)
        with suppress(OSError):
            sums._sock.sendall(frame[:-10] if kind == "torn" else frame)
            return sums._sock.recv(1) if kind != "torn" else None
    run = Attended(act=send, dropout=0.34)
    assert run.found[:2] == [3, 3]
    assert [survivors for _, survivors, _ in run.seen] == [[0, 1]]


def test_a_server_that_says_nothing_ends_a_sum_in_time():
    """The client's deadline, 180 s if nothing is said, is more than twice that of the server."""
    terms, identities = SumTerms(2, 1), [Identity() for _ in range(3)]
    directory = Directory(identities[0].public, [identity.public for identity in identities[1:]])
    default = [inspect.signature(of).parameters["deadline"].default for of in (RoundsClient, serve_rounds)]
    assert default[0] > 2 * default[1]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ends = []
        server = Thread(target=lambda: ends.append(CERTIFICATE.context().wrap_socket(
            listener.accept()[0], server_side=True)))
        server.start()
        sums = RoundsClient(socket.create_connection(listener.getsockname()), terms, directory, 0, identities[1],
                            CERTIFICATE.fingerprint, deadline=0.3)
        server.join()
        begin = time.monotonic()
        with closing(sums), pytest.raises(PartiesError, match="did not answer") as error:
            sums.total(np.array([1], np.uint64), "")
        assert error.value.phase == "keys"
        assert 0.2 < time.monotonic() - begin < 5
        ends[0].close()


def test_a_server_with_another_certificate_is_sent_nothing():
    terms, identities = SumTerms(2, 1), [Identity() for _ in range(3)]
    directory, got = Directory(identities[0].public, [identity.public for identity in identities[1:]]), []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def fake():
            with CERTIFICATE.context().wrap_socket(listener.accept()[0], server_side=True) as sock, suppress(OSError):
                got.append(sock.recv(100))
        server = Thread(target=fake)
        server.start()
        with pytest.raises(PartiesError, match="fingerprint") as error:
            RoundsClient(socket.create_connection(listener.getsockname()), terms, directory, 0, identities[1],
                         Certificate.make().fingerprint, deadline=5)
        server.join()
        assert error.value.phase == "round"
        assert got in ([], [b""])


def test_sums_of_nobody_are_an_error():
    terms, identities = SumTerms(2, 1), [Identity() for _ in range(3)]
    directory = Directory(identities[0].public, [identity.public for identity in identities[1:]])
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(PartiesError, match="no party has joined"):
        serve_rounds(listener, terms, directory, identities[0], CERTIFICATE, deadline=0.05)


def alone(n, deadline):
    """Return what serves sums of n parties, of which each has one end of a connection, and the other ends."""
    terms = SumTerms(n, 1)
    owner, *identities = (Identity() for _ in range(n + 1))
    served = rounds._Rounds(terms, Directory(owner.public, [one.public for one in identities]), owner, None, deadline)
    pairs = [socket.socketpair() for _ in range(n)]
    served.alive = {place: pair[0] for place, pair in enumerate(pairs)}
    return served, [pair[1] for pair in pairs]


def test_who_sends_too_many_messages_in_a_round_is_dropped(monkeypatch):
    monkeypatch.setattr(rounds, "MOST_IN_A_ROUND", 3)
    served, ends = alone(2, 5.0)
    served.n_sent = Counter()
    for _ in range(4):
        served.got.put((0, Message("x", 0, SERVER)))
    assert [served._next(time.monotonic() + 5) is not None for _ in range(4)] == [True, True, True, False]
    assert list(served.alive) == [1]
    [end.close() for end in (*ends, *served.alive.values())]


def test_who_asks_for_nothing_has_dropped_out_when_the_round_begins():
    served, ends = alone(2, 0.0)
    served._round({})
    assert not served.alive
    [end.close() for end in ends]
