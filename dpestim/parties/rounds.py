"""As many secure sums as a fit needs, one after the other, over sockets: each has terms with a label of its own.

Connections use TLS, with a certificate that is known by its fingerprint. Frames are those of `wire.py`, signed and with
their secrets sealed, so that the promise does not rest on TLS.
"""

import queue
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from threading import Thread

import numpy as np

from dpestim.exceptions import PartiesError
from dpestim.parties.limits import MOST_FIRST, MOST_HEADER, MOST_IN_A_ROUND, MOST_STRANGERS, MOST_WAITING
from dpestim.parties.line import Line
from dpestim.parties.party import SumParty
from dpestim.parties.server import SumServer
from dpestim.parties.session import checked_fingerprint, of_parties, refuse_others
from dpestim.parties.wire import PREFIX, SERVER, Message, decode, encode, left
from dpestim.privacy.rounding import positive

_DIFFER = ("parties must have an estimator with the same parameters and the same columns: compare what each party has "
           "passed")
#: Seconds between two looks at who has joined.
_GLANCE = 0.02


class RoundsClient:
    """One party of several sums: what `take_part` adds up by, in the process of this party.

    Parameters
    ----------
    sock : socket.socket
        Connected to `serve_rounds`.
    terms : SumTerms
        Its size is the largest of any vector.
    directory : Directory
    place : int
    identity : Identity
        Of this party.
    fingerprint : str
        `fingerprint` of the server's Certificate.
    deadline : float, default=180
        Seconds that the server may take for a message. More than twice the deadline of `serve_rounds`: the server waits
        that long for a slow party, and as long again for a silent one.
    """

    def __init__(self, sock, terms, directory, place, identity, fingerprint, deadline=180):
        fingerprint = checked_fingerprint(fingerprint)
        sock.settimeout(float(positive(deadline, "deadline")))
        try:
            self._sock = of_parties().wrap_socket(sock)
        except OSError as error:
            raise PartiesError("round", f"no connection by TLS ({error}): start the server first") from None
        try:
            refuse_others(self._sock, fingerprint, "round")
        except PartiesError:
            self._sock.close()
            raise
        self._terms, self._directory, self._identity = terms, directory, identity
        self.place, self.n_parties, self.n_dropped = place, terms.n_parties, terms.n_dropped
        self.n_corrupt, self.active = terms.n_corrupt, terms.active
        self.survivors, self._base, self._n = list(range(terms.n_parties)), terms.context(directory), 0

    def close(self):
        """End the connection; the server then counts this party as dropped out."""
        self._sock.close()

    def total(self, words, label):
        """Return the sum of the words of all parties that have survived; PartiesError where there is none."""
        terms = _terms_of(self._terms, len(words), self._n, label)
        self._n += 1
        asked = Message("round", self.place, SERVER, {"size": len(words), "label": label})
        self._send([self._identity.signed(asked, self._base)])
        party, context = SumParty(terms, self._directory, self.place, self._identity, words), terms.context(
            self._directory)
        self._send(party.start())
        while True:
            message = self._received(party.phase)
            if message.phase == "refused":
                self._directory.check(message, self._base)
                raise PartiesError(str(message.fields.get("phase")), str(message.fields.get("what")))
            if message.phase != "total":
                self._send(party.receive(message))
                continue
            self._directory.check(message, context)
            found = message.arrays.get("total")
            if party.survivors is None or found is None or found.dtype != np.uint64 or found.shape != words.shape:
                raise PartiesError("total", "the server sent no total of this sum: begin again with another server")
            self.survivors = party.survivors
            return found.copy()

    def _send(self, messages):
        try:
            for message in messages:
                self._sock.sendall(encode(message))
        except OSError as error:
            raise PartiesError("wire", f"the server is gone ({error}): begin again") from None

    def _received(self, phase):
        try:
            return _read(self._sock, self._terms.most_bytes)
        except OSError as error:
            raise PartiesError(phase, f"the server did not answer ({error}): begin again") from None


def serve_rounds(listener, terms, directory, identity, certificate, deadline=60):
    """Add up for parties until the last has left; returns what the server has seen: (label, survivors, total) a sum.

    A party that breaks its connection, sends what it has not signed, or neither sends nor reads for `deadline` seconds,
    has dropped out for good.

    Parameters
    ----------
    listener : socket.socket
        Listening; all parties of the terms connect to it.
    terms, directory : as for `RoundsClient`
    identity : Identity
        Of the server.
    certificate : Certificate
        Of the server: parties know its fingerprint.
    deadline : float, default=60
    """
    deadline = float(positive(deadline, "deadline"))
    return _Rounds(terms, directory, identity, certificate.context(), deadline).run(listener)


# ---------------------------------------------------------------- inside


class _Rounds:
    def __init__(self, terms, directory, identity, tls, deadline):
        self.terms, self.directory, self.identity, self.deadline = terms, directory, identity, deadline
        self.tls = tls
        self.base, self.alive, self.seen = terms.context(directory), {}, []
        # of parties; of those whose first message is signed; of all others, in the order in which they have come
        self.got, self.met, self.strangers = queue.Queue(MOST_WAITING), queue.Queue(), {}

    def run(self, listener):
        asked = self._joined(listener)
        if not self.alive:
            raise PartiesError("round", "no party has joined: give all the address, the terms and the directory")
        try:
            while self.alive:
                self._round(asked)
                asked = {}
        except PartiesError as error:
            self._tell({place: Message("refused", SERVER, place, {"phase": error.phase, "what": error.what})
                        for place in list(self.alive)}, self.base)
            raise
        finally:
            for sock in self.alive.values():
                sock.close()
        return self.seen

    def _joined(self, listener):
        """Wait for all parties, `deadline` seconds for each; return what each asks for.

        Each connection has a thread: one that sends nothing, of whomever, keeps no party waiting.
        """
        asked, until = {}, time.monotonic() + self.deadline
        listener.settimeout(min(_GLANCE, self.deadline))
        while len(self.alive) < self.terms.n_parties and time.monotonic() < until:
            with suppress(TimeoutError):
                self._admit(listener.accept()[0])
            while not self.met.empty():
                message, line = self.met.get()
                if message.sender in self.alive:
                    line.close()
                    continue
                asked[message.sender], self.alive[message.sender] = message.fields, line
                Thread(target=self._listen, args=(message.sender, line), daemon=True).start()
                until = time.monotonic() + self.deadline
        for line in list(self.strangers):
            self._send_away(line)
        return asked

    def _admit(self, sock):
        """Let a stranger say who it is, in a thread; of too many the one that is silent for longest has to go."""
        try:
            line = Line(self.tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False), self.deadline)
        except OSError:
            sock.close()
            return
        for oldest in list(self.strangers)[: max(0, len(self.strangers) + 1 - MOST_STRANGERS)]:
            self._send_away(oldest)
        self.strangers[line] = True
        Thread(target=self._greet, args=(line,), daemon=True).start()

    def _send_away(self, line):
        self.strangers.pop(line, None)
        line.close()

    def _greet(self, line):
        try:
            line.shake_hands()
            message = _read(line, 0, MOST_FIRST)
            self.directory.check(message, self.base)
        except (OSError, PartiesError):
            self._send_away(line)
            return
        if message.phase == "round" and message.sender != SERVER and self.strangers.pop(line, False):
            self.met.put((message, line))
        else:
            self._send_away(line)

    def _listen(self, place, sock):
        try:
            while True:
                message = _read(sock, self.terms.most_bytes)
                if message.sender != place:
                    break
                self.got.put((place, message), timeout=self.deadline)
        except (OSError, PartiesError, queue.Full):
            pass
        with suppress(queue.Full):
            self.got.put((place, None), timeout=self.deadline)

    def _next(self, until):
        """Return (place, message), or None where a party is gone or all are late."""
        try:
            place, message = self.got.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return None
        self.n_sent[place] += 1
        if message is None or self.n_sent[place] > MOST_IN_A_ROUND:  # (a flood would keep the others waiting)
            self._drop(place)
        return (place, message) if place in self.alive else None

    def _drop(self, place):
        sock = self.alive.pop(place, None)
        if sock is not None:
            sock.close()

    def _round(self, asked):
        until, early, self.n_sent = time.monotonic() + self.deadline, {}, Counter()
        while self.alive and asked.keys() < self.alive.keys() and time.monotonic() < until:
            found = self._next(until)
            if found and found[1].phase == "round":
                try:
                    self.directory.check(found[1], self.base)
                    asked[found[0]] = found[1].fields
                except PartiesError:
                    self._drop(found[0])
            elif found:
                early.setdefault(*found)  # (one a party: more would fill the memory)
        for place in self.alive.keys() - asked.keys():
            self._drop(place)
        if not self.alive:
            return
        wanted = [asked[place] for place in self.alive]
        if any(one != wanted[0] for one in wanted):
            raise PartiesError("round", _DIFFER)
        size, label = wanted[0].get("size"), wanted[0].get("label")
        if type(size) is not int or not 1 <= size <= self.terms.size or not isinstance(label, str):
            raise PartiesError("round", f"vectors must have 1 to {self.terms.size} entries: raise size in the terms")
        terms = _terms_of(self.terms, size, len(self.seen), label)
        server, context = SumServer(terms, self.directory, self.identity), terms.context(self.directory)
        until = time.monotonic() + self.deadline
        while server.phase != "done":
            messages = []
            if time.monotonic() >= until:  # (also where copies still come)
                messages = server.close()
            elif early or set(server.awaited) & self.alive.keys():
                found = early.popitem() if early else self._next(until)
                if found and server.is_signed(found[1]):
                    messages = server.receive(found[1])
                elif found:
                    self._drop(found[0])
            else:
                messages = server.close()
            if messages:
                until = time.monotonic() + self.deadline
            self._tell({message.receiver: message for message in messages}, None)
        self.seen.append((label, server.survivors, server.result))
        fields = {"survivors": server.survivors}
        self._tell({place: Message("total", SERVER, place, fields, {"total": server.result})
                    for place in list(self.alive)}, context)

    def _tell(self, messages, context):
        for place, message in messages.items():
            sock = self.alive.get(place)
            if sock is not None:
                try:
                    sock.sendall(encode(message if context is None else self.identity.signed(message, context)))
                except OSError:  # (also where it reads nothing: the others wait for it once)
                    self._drop(place)


def _terms_of(terms, size, number, label):
    return replace(terms, size=size, label=f"{terms.label} {number} {label}")


def _read(sock, most, most_header=MOST_HEADER):
    """Return the next message; its size is looked at before memory is taken."""
    prefix = _exactly(sock, PREFIX)
    return decode(prefix + _exactly(sock, left(prefix, most, most_header)), most)


def _exactly(sock, n_bytes):
    out = bytearray()
    while len(out) < n_bytes:
        part = sock.recv(min(n_bytes - len(out), 1 << 20))
        if not part:
            raise ConnectionError("the connection was closed")
        out += part
    return bytes(out)
