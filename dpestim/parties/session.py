"""Secure sums over sockets: asyncio and TLS, where the server's certificate is known by its fingerprint."""

import asyncio
import contextlib
import datetime
import hashlib
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

from dpestim.exceptions import PartiesError
from dpestim.parties.wire import PREFIX, decode, encode, left

#: Days for which a certificate is valid; messages that wait for the server at most (a stranger could fill the memory).
_DAYS, _MOST_WAITING = 365, 256
_CLOSED = "the connection ended: the server has stopped, or this party was too late; ask the server, and begin again"


@dataclass(frozen=True)
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


def refuse_others(connection, fingerprint, phase):
    """Raise PartiesError unless the server of a connection has the certificate of this fingerprint."""
    if hashlib.sha256(connection.getpeercert(binary_form=True)).hexdigest() != fingerprint:
        raise PartiesError(phase, "the server has another certificate than that of the fingerprint: ask its operator "
                                  "for the fingerprint again")


async def serve(server, certificate, host="127.0.0.1", port=0, *, timeout=30.0, ready=None):
    """Serve one sum to all parties, and return its result.

    Parameters
    ----------
    server : SumServer
    certificate : Certificate
    host : str, default="127.0.0.1"
    port : int, default=0
        0 takes a free one.
    timeout : float, default=30.0
        Seconds of a phase: who has not answered then has dropped out.
    ready : function, default=None
        Called with the port, when parties can join.

    Raises
    ------
    PartiesError
        Where there is no result; the parties are told.
    """
    queue, writers = asyncio.Queue(_MOST_WAITING), {}

    async def connected(reader, writer):
        """Pass on what arrives; a connection belongs to the party whose signed message came over it last."""
        try:
            while True:
                message = await _read(reader, server.terms.most_bytes)
                await queue.put((message, writer))
        except (PartiesError, OSError, asyncio.IncompleteReadError):
            writer.close()

    async def send(messages):
        for message in messages:
            writer = writers.get(message.receiver)
            if writer is not None and not writer.is_closing():
                with contextlib.suppress(OSError, asyncio.TimeoutError):
                    writer.write(encode(message))
                    await asyncio.wait_for(writer.drain(), timeout)

    listener = await asyncio.start_server(connected, host, port, ssl=certificate.context())
    clock = asyncio.get_running_loop().time
    try:
        if ready is not None:
            ready(listener.sockets[0].getsockname()[1])
        phase, end = server.phase, clock() + timeout
        while server.phase != "done":
            try:
                message, writer = await asyncio.wait_for(queue.get(), max(0.0, end - clock()))
            except TimeoutError:
                await send(server.close())
            else:
                if server.is_signed(message):  # (what anybody could have sent ends no sum)
                    writers[message.sender] = writer
                    await send(server.receive(message))
                else:
                    writer.close()
            if server.phase != phase:
                phase, end = server.phase, clock() + timeout
        return server.result
    except PartiesError as error:
        await send(server.abort(error))
        raise
    finally:
        for writer in writers.values():
            writer.close()
        listener.close()


async def join(party, host, port, fingerprint, *, timeout=120.0):
    """Take part in one sum, and return the places of the survivors.

    Parameters
    ----------
    party : SumParty
    host, port : str, int
        Where `serve` listens.
    fingerprint : str
        `fingerprint` of the server's Certificate.
    timeout : float, default=120.0
        Seconds between two messages of the server.

    Raises
    ------
    PartiesError
        Where the sum ended without a result, as far as this party knows.
    """
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
            await writer.drain()
            message = await asyncio.wait_for(_read(reader, party.terms.most_bytes), timeout)
            answers = party.receive(message)
            if message.phase == "done":
                return party.survivors
    except (TimeoutError, OSError, asyncio.IncompleteReadError):
        raise PartiesError(party.phase, _CLOSED) from None
    finally:
        writer.close()


async def _read(reader, most):
    prefix = await reader.readexactly(PREFIX)
    return decode(prefix + await reader.readexactly(left(prefix, most)), most)
