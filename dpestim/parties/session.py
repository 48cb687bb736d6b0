"""Protocols over sockets: asyncio and TLS, where the server's certificate is known by its fingerprint.

One transport for sums (`SumServer`, `SumParty`) and for what a `Relay` passes on (`Relayed`).
"""

import asyncio
import contextlib
import datetime
import hashlib
import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

from dpestim.exceptions import PartiesError
from dpestim.parties.limits import MOST_FIRST, MOST_HEADER, MOST_STRANGERS, MOST_WAITING
from dpestim.parties.wire import PREFIX, decode, encode, left
from dpestim.privacy.rounding import positive
from dpestim.records import record
from dpestim.shuffle.transport.messages import check_integer

#: Days for which a certificate is valid; seconds that the end of a connection may take, and a stranger's first message.
_DAYS, _FAREWELL, _GREETING = 365, 1.0, 30.0
_LAST_PORT = 65535
_CLOSED = "the connection ended: the server has stopped, or this party was too late; ask the server, and begin again"


@record
class Certificate:
    """A self-signed certificate of the server, with its key: keep `key` secret, and give away `fingerprint`."""

    certificate: bytes
    key: bytes

    @classmethod
    def make(cls):
        """Return a new one."""
        key = generate_private_key(SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dpestim parties")])
        now = datetime.datetime.now(datetime.UTC)
        made = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
                .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
                .not_valid_after(now + datetime.timedelta(days=_DAYS)).sign(key, SHA256()))
        secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                   serialization.NoEncryption())
        return cls(made.public_bytes(serialization.Encoding.PEM), secret)

    def __repr__(self):
        return f"<Certificate {self.fingerprint[:16]}>"

    @property
    def fingerprint(self):
        """SHA-256 of the certificate, in hexadecimal digits: all parties must know it."""
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(self.certificate.decode())).hexdigest()

    def context(self):
        """Return what the standard library needs of a server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        with tempfile.TemporaryDirectory() as folder:  # (readable by this user alone; `ssl` takes files only)
            path = Path(folder) / "server.pem"
            path.write_bytes(self.key + self.certificate)
            context.load_cert_chain(path)
        return context


def of_parties():
    """Return what the standard library needs of a party, which then compares the fingerprint."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # (`refuse_others` is called instead)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def checked_fingerprint(fingerprint):
    """Return a fingerprint in small letters without colons, as openssl prints it otherwise; or raise ValueError."""
    plain = fingerprint.replace(":", "").lower() if isinstance(fingerprint, str) else ""
    if len(plain) != 64 or set(plain) - set("0123456789abcdef"):
        raise ValueError("fingerprint must be the 64 hexadecimal digits that `Certificate.fingerprint` of the server "
                         f"gives, got {fingerprint!r}")
    return plain


def refuse_others(connection, fingerprint, phase):
    """Raise PartiesError unless the server of a connection has the certificate of this checked fingerprint."""
    if hashlib.sha256(connection.getpeercert(binary_form=True)).hexdigest() != fingerprint:
        raise PartiesError(phase, "the server has another certificate than that of the fingerprint: ask its operator "
                                  "for the fingerprint again")


async def serve(server, certificate, host="127.0.0.1", port=0, *, timeout=None, ready=None):
    """Serve one protocol to all parties, and return its result.

    Parameters
    ----------
    server : SumServer or Relay
    certificate : Certificate
    host : str, default="127.0.0.1"
    port : int, default=0
        0 takes a free one.
    timeout : float, default=None
        Seconds of a phase of a sum: who has not answered then has dropped out. With a Relay, seconds between messages,
        in which parties compute. Who ends its connection has dropped out at once. None: 30, and 600 with a Relay.
    ready : function, default=None
        Called with the port, when parties can join.

    Raises
    ------
    PartiesError
        Where there is no result; the parties are told.
    """
    check_integer("port", port, 0, _LAST_PORT)
    hall = _Hall(server, server.patience if timeout is None else float(positive(timeout, "timeout")))
    try:
        listener = await asyncio.start_server(hall.connected, host, port, ssl=certificate.context(),
                                              ssl_handshake_timeout=hall.greeting)
    except OSError as error:
        raise ValueError(f"cannot listen at {host}:{port} ({error}): host must be a name or an address of this "
                         "machine, and port a free one, or 0") from None
    try:
        if ready is not None:
            ready(listener.sockets[0].getsockname()[1])
        return await hall.run()
    except PartiesError as error:
        await hall.send(server.abort(error))
        raise
    finally:
        listener.close()
        await hall.close()


async def join(party, host, port, fingerprint, *, timeout=None):
    """Take part in one protocol, and return the places of the survivors.

    Parameters
    ----------
    party : SumParty or Relayed
    host, port : str, int
        Where `serve` listens.
    fingerprint : str
        `fingerprint` of the server's Certificate: 64 hexadecimal digits, in small or capital letters, with or without
        colons.
    timeout : float, default=None
        Seconds between two messages of the server. None: 120 for a sum, and 1,200 with a Relay.

    Raises
    ------
    PartiesError
        Where the protocol ended without a result, as far as this party knows.
    """
    check_integer("port", port, 1, _LAST_PORT)
    if not isinstance(host, str) or not host:
        raise ValueError("host must be the name or the address of the server, a str")
    fingerprint = checked_fingerprint(fingerprint)
    timeout = party.patience if timeout is None else float(positive(timeout, "timeout"))
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(host, port, ssl=of_parties()), timeout)
    except (TimeoutError, OSError) as error:
        raise PartiesError(party.phase, f"no connection to {host}:{port} ({error}): start the server first") from None
    try:
        refuse_others(writer.get_extra_info("ssl_object"), fingerprint, party.phase)
        answers = party.start()
        while True:
            for message in answers:
                writer.write(encode(message))
            await asyncio.wait_for(writer.drain(), timeout)
            message = await asyncio.wait_for(_read(reader, party.terms.most_bytes), timeout)
            answers = party.receive(message)
            if message.phase == "done":
                return party.survivors
    except (TimeoutError, OSError, asyncio.IncompleteReadError):
        raise PartiesError(party.phase, _CLOSED) from None
    finally:
        await _ended(writer)


# ---------------------------------------------------------------- inside


class _Hall:
    """The connections of a server: a connection belongs to the party whose signed message came over it first."""

    def __init__(self, server, timeout):
        self.server, self.timeout, self.greeting = server, timeout, min(timeout, _GREETING)
        self.queue, self.gone = asyncio.Queue(MOST_WAITING), set()
        self.writers, self.strangers, self.tasks = {}, {}, set()

    async def connected(self, reader, writer):
        """Pass on what arrives, if it is signed; a stranger may send one short message, and takes no other's place."""
        self.strangers[writer] = place = None
        self.tasks.add(task := asyncio.current_task())
        if len(self.strangers) > MOST_STRANGERS:  # (the one that has been silent for longest)
            next(iter(self.strangers)).transport.abort()
        try:
            message = await asyncio.wait_for(_read(reader, 0, MOST_FIRST), self.greeting)
            while self.server.is_signed(message) and place in (None, message.sender):
                if place is None:
                    place = message.sender
                    self.strangers.pop(writer)
                    self.writers[place] = writer
                await self.queue.put((place, message))
                message = await _read(reader, self.server.terms.most_bytes)
        except (PartiesError, OSError, TimeoutError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:  # (the protocol is over)
            return
        finally:
            self.strangers.pop(writer, None)
            self.tasks.discard(task)
            writer.close()
        if place is not None and self.writers[place] is writer:
            with contextlib.suppress(asyncio.CancelledError):
                await self.queue.put((place, None))

    async def run(self):
        server, clock = self.server, asyncio.get_running_loop().time
        pace, end = server.pace, clock() + self.timeout
        while server.phase != "done":
            place, message = await self._next(end - clock())
            if place is None:
                await self.send(server.close())
            elif message is None:
                self.gone.add(place)
            else:
                self.gone.discard(place)
                await self.send(server.receive(message))
            await self.send(server.lost(self.gone))
            if server.pace != pace:
                pace, end = server.pace, clock() + self.timeout
        return server.result

    async def _next(self, seconds):
        """Return (place, message), or (None, None) where the time is over, also if messages still come."""
        if seconds <= 0:
            return None, None
        try:
            return await asyncio.wait_for(self.queue.get(), seconds)
        except TimeoutError:
            return None, None

    async def send(self, messages):
        """Send messages at once: who does not read keeps the others waiting once, and is then gone."""
        await asyncio.gather(*map(self._deliver, messages))

    async def _deliver(self, message):
        writer = self.writers.get(message.receiver)
        if writer is not None and not writer.is_closing():
            try:
                writer.write(encode(message))
                await asyncio.wait_for(writer.drain(), self.timeout)
            except (OSError, TimeoutError):
                writer.transport.abort()

    async def close(self):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*map(_ended, (*self.writers.values(), *self.strangers)))


async def _ended(writer):
    """End a connection, and wait for its end, but not for long: a loop that ends before leaves it open."""
    writer.close()
    try:
        await asyncio.wait_for(writer.wait_closed(), _FAREWELL)
    except (OSError, TimeoutError):
        writer.transport.abort()


async def _read(reader, most, most_header=MOST_HEADER):
    prefix = await reader.readexactly(PREFIX)
    return decode(prefix + await reader.readexactly(left(prefix, most, most_header)), most)
