"""A protocol whose parties send one another messages, over the server and sockets of sums: `Relay` and `Relayed`.

Each party first signs what the others must know of it (a key, a role) and a random number. A hash of all of these
stands in every signature that follows, so that no message of another run is taken. The proof: ``relay.md``.
"""

import hashlib
import json
import os
from dataclasses import asdict

from dpestim.exceptions import PartiesError
from dpestim.parties.limits import MOST_AHEAD, MOST_BODY, MOST_PARTIES
from dpestim.parties.wire import SERVER, Message
from dpestim.records import record
from dpestim.shuffle.transport.messages import check_integer


@record
class RelayTerms:
    """What the parties agree on with the server that passes on their messages.

    Parameters
    ----------
    n_parties : int
        From 2: three or more for quantiles, two for an intersection.
    most_bytes : int, default=2**26
        Bytes of the arrays of a message, at most: some 64 for a user of an intersection, and up to 2**26 for a quantile
        of 65,536 points.
    label : str, default=""
        The name of this run.
    """

    n_parties: int
    most_bytes: int = 1 << 26
    label: str = ""

    def __post_init__(self):
        for name, low, high in (("n_parties", 2, MOST_PARTIES), ("most_bytes", 1, MOST_BODY)):
            check_integer(name, getattr(self, name), low, high)
            object.__setattr__(self, name, int(getattr(self, name)))  # (equal terms have one text, which is signed)
        if not isinstance(self.label, str):
            raise ValueError("label must be a str")

    def context(self, directory):
        """Return a hash of the terms and of the directory, which stands in all that is signed."""
        if len(directory.parties) != self.n_parties:
            raise ValueError(f"directory must have the keys of {self.n_parties} parties, not {len(directory.parties)}")
        text = json.dumps(asdict(self), sort_keys=True).encode()
        return hashlib.sha256(b"dpestim relay 1 " + directory.digest() + text).digest()


class Relay:
    """The server that passes on signed messages of parties; it keeps none, and can open none that is sealed.

    `serve` runs it over sockets, and `run_together` in one process.

    Parameters
    ----------
    terms : RelayTerms
    directory : Directory
    identity : Identity
        That of the server in the directory.

    Attributes
    ----------
    phase : str
        "hello", "messages", "done" or "failed".
    result : int or None
        How many messages were passed on, at the end.
    """

    #: Seconds that it waits for an answer, if nothing is said: parties compute between messages.
    patience = 600.0

    def __init__(self, terms, directory, identity):
        self.terms, self._directory, self._identity = terms, directory, identity
        self._context = terms.context(directory)
        if directory.server != identity.public:
            raise ValueError("identity must be that of the server in the directory: compare the public keys")
        self.phase, self.result, self._session = "hello", None, None
        self._hello, self._ended, self._n = {}, set(), 0

    @property
    def awaited(self):
        """The places of parties that have not introduced themselves, and then of those that have not ended."""
        return sorted(set(range(self.terms.n_parties)) - (self._hello.keys() if self.phase == "hello" else self._ended))

    @property
    def pace(self):
        """What changes when the time for an answer begins anew."""
        return len(self._hello), self._n, len(self._ended)

    def lost(self, gone):
        """Raise PartiesError where one of the parties that are gone has not ended: all are needed."""
        if self.phase not in ("done", "failed") and not gone.isdisjoint(self.awaited):
            raise self._failed(f"the parties {sorted(gone.intersection(self.awaited))} have ended their connection: "
                               "ask their owners, and begin again")
        return []

    def is_signed(self, message):
        """Tell whether the sender of a message is a party of the directory, and has signed it."""
        context = self._context if message.phase == "hello" else self._session
        if context is None or message.sender == SERVER:
            return False
        try:
            self._directory.check(message, context)
        except PartiesError:
            return False
        return True

    def receive(self, message):
        """Return the messages that follow; PartiesError, after which nothing is passed on."""
        if self.phase == "failed":
            raise PartiesError("failed", "the run has failed before: begin again")
        if not self.is_signed(message):
            raise PartiesError(self.phase, f"a message is not signed by party {message.sender}: compare the terms and "
                                           "the directory")
        place = message.sender
        if message.phase == "hello":
            return self._met(place, message)
        if message.receiver != SERVER:
            if not 0 <= message.receiver < self.terms.n_parties or message.receiver == place:
                raise self._failed(f"party {place} has sent a message to nobody: begin again without it")
            self._n += 1
            return [message]
        if message.phase != "end":
            raise self._failed(f"party {place} has sent the server a message of phase {message.phase!r}: begin again "
                               "with equal versions of dpestim")
        self._ended.add(place)
        if self.awaited:
            return []
        self.phase, self.result = "done", self._n
        return self._to_all("done", {})

    def close(self):
        """Raise PartiesError: a party has sent nothing for too long, or is gone, and all are needed."""
        if self.phase in ("done", "failed"):
            return []
        raise self._failed(f"a message of one of the parties {self.awaited} did not come: ask their owners, and begin "
                           "again")

    def abort(self, error):
        """Return the messages that tell all parties that there is no result."""
        self.phase = "failed"
        return self._to_all("abort", {"phase": error.phase, "what": error.what})

    # ---------------------------------------------------------------- inside

    def _met(self, place, message):
        said = [message.fields, message.signature.hex()]
        if self._hello.setdefault(place, said) != said:
            raise self._failed(f"party {place} has introduced itself twice: begin again without it")
        if self.phase != "hello" or self.awaited:
            return []
        said = [self._hello[at] for at in range(self.terms.n_parties)]
        self.phase, self._session = "messages", session_of(self._context, said)
        return self._to_all("hello", {"said": said})

    def _failed(self, what):
        phase, self.phase = self.phase, "failed"
        return PartiesError(phase, what)

    def _to_all(self, phase, fields):
        return [self._identity.signed(Message(phase, SERVER, place, fields), self._context)
                for place in range(self.terms.n_parties)]


class Relayed:
    """One party of a protocol, for `join` and `run_together`: it signs what is sent, and checks what comes.

    Parameters
    ----------
    terms : RelayTerms
    directory : Directory
    place : int
        The place of this party in the directory: the first three compute a quantile; the "first" owner of an
        intersection has place 0.
    identity : Identity
        Of this party.
    protocol : QuantileOwner or PrivateIntersectionSize
        Not started: it starts, and its ledger is charged, when all parties are there. The result is in it at the end.
    *data
        What `start` of the protocol takes, without keys: the records of this owner, or its users.

    Attributes
    ----------
    phase : str
        That of the protocol, or "hello" before it starts, "end" and "done".
    survivors : list of int or None
        All places, at the end.

    Examples
    --------
    >>> from dpestim.parties import (
    ...     Directory, Identity, PrivateIntersectionSize, Relay, Relayed, RelayTerms, run_together)
    >>> terms = RelayTerms(n_parties=2)
    >>> server, *identities = (Identity() for _ in range(3))
    >>> directory = Directory(server.public, [identity.public for identity in identities])
    >>> owners = [PrivateIntersectionSize(2.0, delta=1e-4, role=role) for role in ("first", "second")]
    >>> parties = [Relayed(terms, directory, place, identities[place], owners[place], range(100 * place, 300))
    ...            for place in range(2)]
    >>> run_together(parties, Relay(terms, directory, server))
    3
    >>> owners[0].size_ == owners[1].size_
    True
    """

    #: Seconds that it waits for the server, if nothing is said.
    patience = 1200.0

    def __init__(self, terms, directory, place, identity, protocol, *data):
        self.terms, self.place, self._directory, self._identity = terms, place, directory, identity
        self._context, self._session = terms.context(directory), None
        if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < terms.n_parties:
            raise ValueError(f"place must be from 0 to {terms.n_parties - 1}")
        if directory.parties[place] != identity.public:
            raise ValueError(f"identity must be that of place {place} of the directory: compare the public keys")
        if protocol.phase != "start":
            raise ValueError("protocol must be one that has not started: make a new one")
        self._protocol, self._data, self._early, self._stage = protocol, data, [], "hello"
        self._mine = {"said": protocol._hello(), "random": os.urandom(32).hex()}
        self._told, self.survivors = None, None

    @property
    def phase(self):
        """Where this party is."""
        return self._protocol.phase if self._stage == "messages" else self._stage

    def start(self):
        """Return the first messages."""
        return [self._signed(Message("hello", self.place, SERVER, self._mine), self._context)]

    def receive(self, message):
        """Return the messages that answer one; PartiesError, after which the party is of no more use."""
        phase = self.phase
        if phase == "failed":
            raise PartiesError(phase, "this party has failed before: all parties begin again")
        if message.receiver != self.place:
            raise PartiesError(phase, "a message is for another party: send each to its receiver")
        try:
            return self._from_server(message) if message.sender == SERVER else self._from_party(message)
        except Exception:
            self._stage = "failed"
            raise

    # ---------------------------------------------------------------- inside

    def _from_server(self, message):
        self._directory.check(message, self._context)
        if message.phase == "abort":
            raise PartiesError(str(message.fields.get("phase")), f"the server ended: {message.fields.get('what')}")
        if message.phase == "done" and self._stage in ("end", "done"):
            self._stage, self.survivors = "done", list(range(self.terms.n_parties))
            return []
        if message.phase != "hello":
            raise PartiesError(self.phase, f"a message {message.phase!r} of the server came too early: begin again")
        if self._told is not None:
            if message.fields != self._told:
                raise PartiesError("hello", "the server has named two different lists of parties: begin again with "
                                            "another server")
            return []
        self._told, said = message.fields, self._heard(message.fields)
        out = [self._signed(each, self._session) for each in self._protocol._begin(said, self._data)]
        self._stage, self._data, early, self._early = "messages", None, self._early, None
        return [*out, *(answer for each in early for answer in self._from_party(each))]

    def _heard(self, fields):
        """Return what each party said of itself, which it has signed; all that follows is signed over it."""
        try:
            said = [[dict(own), str(signature)] for own, signature in fields["said"]]
            if len(said) != self.terms.n_parties or said[self.place][0] != self._mine:
                raise ValueError(said)
            for place, (own, signature) in enumerate(said):
                text = Message("hello", place, SERVER, own).digest(self._context)
                self._directory.check_text("hello", place, bytes.fromhex(signature), text)
            self._session = session_of(self._context, said)
            return [str(own["said"]) for own, _ in said]
        except PartiesError:
            raise
        except (KeyError, TypeError, ValueError):
            raise PartiesError("hello", "the server's list of parties is not what it must be: begin again with equal "
                                        "versions of dpestim") from None

    def _from_party(self, message):
        if self._stage == "hello":  # (the server's list is on its way)
            if len(self._early) >= MOST_AHEAD * self.terms.n_parties:
                raise PartiesError("hello", "too many messages came before the list of parties: begin again")
            self._early.append(message)
            return []
        self._directory.check(message, self._session)
        if self._stage in ("end", "done"):  # (a copy: the protocol needs no more)
            return []
        out = self._protocol.receive(message)
        if self._protocol.phase == "end":
            self._stage = "end"
            out = [*out, Message("end", self.place, SERVER)]
        return [self._signed(each, self._session) for each in out]

    def _signed(self, message, context):
        return self._identity.signed(message, context)


def session_of(context, said):
    """Return a hash of what all parties said of themselves."""
    return hashlib.sha256(b"session" + context + json.dumps([own for own, _ in said], sort_keys=True).encode()).digest()
