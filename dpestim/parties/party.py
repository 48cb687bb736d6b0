"""One party of a secure sum, without input and output: messages in, messages out. The protocol: `secure_sum.md`."""

import hashlib
import os

import numpy as np

from dpestim.exceptions import PartiesError
from dpestim.inputs.frames import refuse_masked
from dpestim.parties import keys
from dpestim.parties.wire import SERVER, Message
from dpestim.shuffle.transport.secure_sum import mask_of, one_sided
from dpestim.shuffle.transport.shamir import coefficients, split

#: The phases of a party, named by the message of the server that ends each.
PHASES = ("keys", "shares", "masked", "agree", "reveal", "done")


class SumParty:
    """One party of a secure sum: `start` gives its first messages, and `receive` of a message those that answer it.

    Parameters
    ----------
    terms : SumTerms
    directory : Directory
    place : int
        The place of this party in the directory.
    identity : Identity
    vector : array of uint64 or int64, (size,), or a function that returns one
        Taken modulo 2**bits. A function is called once, just before the masked vector is sent.

    Attributes
    ----------
    phase : str
        Which message of the server is awaited; "done" at the end.
    survivors : list of int or None
        Whose vectors are in the sum, at the end.
    """

    #: Seconds that it waits for the server, if nothing is said.
    patience = 120.0

    def __init__(self, terms, directory, place, identity, vector):
        self.terms, self.place, self._directory, self._identity = terms, place, directory, identity
        self._context, self._process = terms.context(directory), os.getpid()
        if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < terms.n_parties:
            raise ValueError(f"place must be from 0 to {terms.n_parties - 1}")
        if directory.parties[place] != identity.public:
            raise ValueError(f"identity must be that of place {place} of the directory: compare the public keys")
        self._vector = vector if callable(vector) else self._checked(vector)
        self.phase, self.survivors, self._seen = "keys", None, {}
        words = np.frombuffer(os.urandom(32 * terms.graph[1]), np.uint64).reshape(2, terms.graph[1], 2)
        numbers = coefficients(words)
        self._mask_seed, self._self_seed = (int(row[0]) for row in numbers)
        self._split = split(numbers, terms.graph[0])
        self._boxes, self._pair = keys.Pair(), mask_pair(self._mask_seed, self._context)

    def __reduce__(self):
        """Refuse: a copy would send other vectors under the same masks."""
        raise TypeError("a SumParty cannot be pickled or copied, because its masks would be used twice: make a new one")

    def start(self):
        """Return the first messages."""
        return [self._to_server("keys", {"boxes": self._boxes.public.hex(), "masks": self._pair.public.hex()})]

    def receive(self, message):
        """Return the messages that answer one of the server; PartiesError, after which the party is of no more use."""
        if self.phase == "failed":
            raise PartiesError("failed", "this party has failed before: begin again, with a new SumParty")
        if os.getpid() != self._process:
            raise PartiesError(self.phase, "a SumParty works in the process that made it, because a copy would use its "
                                           "masks twice: make it there")
        try:
            return self._received(message)
        except Exception:
            self.phase = "failed"
            raise

    def _received(self, message):
        self._directory.check(message, self._context)
        if message.sender != SERVER or message.receiver != self.place:
            raise PartiesError(self.phase, "a message is not from the server to this party: send each to its receiver")
        digest = message.digest(self._context)
        if self._seen.setdefault(message.phase, digest) != digest:
            raise PartiesError(message.phase, "the server has sent two different messages: it does not follow the "
                                              "protocol; begin again with another server")
        if message.phase == "abort":
            raise PartiesError(str(message.fields.get("phase")), f"the server ended: {message.fields.get('what')}")
        if message.phase != self.phase:
            if message.phase in PHASES and PHASES.index(message.phase) < PHASES.index(self.phase):
                return []  # (a copy of what was answered)
            raise PartiesError(self.phase, f"a message of phase {message.phase!r} came too early: begin again")
        try:
            answers = getattr(self, "_on_" + message.phase)(message)
        except PartiesError:
            raise
        except (KeyError, TypeError, IndexError, OverflowError, ValueError, AttributeError) as error:
            raise PartiesError(self.phase, f"a message of the server lacks what it must have ({error}): begin again "
                                           "with equal versions of dpestim") from None
        return [self._masked()] if message.phase == "shares" else answers  # (a function of the vector has own errors)

    # ---------------------------------------------------------------- phases

    def _on_keys(self, message):
        """Learn the keys of neighbours, and send each its shares."""
        self._session = hashlib.sha256(self._context + bytes.fromhex(message.fields["seed"])).digest()
        self._around = self.terms.neighbours(bytes.fromhex(message.fields["seed"]))[self.place].tolist()
        self._keys = {}
        for place, boxes, masks, signature in message.fields["keys"]:
            public = {"boxes": boxes, "masks": masks}
            said = Message("keys", place, SERVER, public)
            if self.terms.active:
                self._directory.check_text("keys", place, bytes.fromhex(signature), said.digest(self._context))
            self._keys[place] = bytes.fromhex(boxes), bytes.fromhex(masks)
        self._check_around("keys", self._keys)
        self._keys = {place: self._keys[place] for place in self._around if place in self._keys}
        texts = []
        for place in self._keys:
            at = self._around.index(place)
            text = b"".join(int(shares[at]).to_bytes(16, "big") for shares in self._split)
            texts.append(np.frombuffer(keys.sealed(self._box_key("keys", self.place, place), text), np.uint8))
        self.phase = "shares"
        proof = hashlib.sha256(b"self" + self._session + self._self_seed.to_bytes(16, "big")).hexdigest()
        return [self._to_server("shares", {"to": list(self._keys), "self": proof, "session": self._session.hex()},
                                {"texts": np.array(texts).reshape(len(texts), 32 + keys.TAG)})]

    def _on_shares(self, message):
        """Open the shares of neighbours: the vector is masked next."""
        places, texts = message.fields["from"], message.arrays["texts"]
        self._shares = {}
        if len(places) != len(texts):
            raise PartiesError("shares", "shares are missing: begin again")
        for place, text in zip(places, texts, strict=True):
            if place not in self._keys:
                raise PartiesError("shares", f"shares are from party {place}, which is no neighbour: begin again")
            text = keys.opened("shares", self._box_key("shares", place, self.place), text.tobytes())
            if len(text) != 32:
                raise PartiesError("shares", f"party {place} has sent no two shares: begin again without it")
            self._shares[place] = text[:16], text[16:]
        self._check_around("shares", self._shares)
        self._roster = roster_of(self._session, self._own_and(self._shares)) if self.terms.active else b""

    def _masked(self):
        """Return the message of the vector under masks."""
        vector = self._checked(self._vector()) if callable(self._vector) else self._vector
        masked = vector + self_mask(self._self_seed, self._session, self.terms.size)
        for place in self._shares:
            agreed = self._pair.agreed("shares", self._keys[place][1], mask_purpose(self._session, self.place, place))
            masked += one_sided(self.place, place, mask_of(agreed, self.terms.size))
        masked &= np.uint64((1 << self.terms.bits) - 1)
        self._vector, self.phase = None, "agree" if self.terms.active else "reveal"
        said = {"session": self._session.hex()}
        if self.terms.active:
            said["signed"] = self._identity.sign(b"masked" + self._roster).hex()
        return self._to_server("masked", said, {"masked": masked})

    def _on_agree(self, message):
        """Sign who has survived: once, where an active server could tell each party another set."""
        self._alive = self._checked_survivors("agree", message.fields["survivors"])
        self._agreed = agreed_of(self._roster, self._alive)
        self.phase = "reveal"
        return [self._to_server("agree", {"signed": self._identity.sign(self._agreed).hex(),
                                          "session": self._session.hex()})]

    def _on_reveal(self, message):
        """Send one of the two shares of every neighbour: that which its survival calls for."""
        alive = self._checked_survivors("reveal", message.fields["survivors"])
        if self.terms.active:
            self._check_agreement(alive, message.fields)
        places = list(self._shares)
        kept = [self._shares[place][place in alive] for place in places]
        self._shares, self.phase, self.survivors = None, "done", sorted(alive)
        return [self._to_server("reveal", {"of": places, "session": self._session.hex()},
                                {"shares": np.frombuffer(b"".join(kept), np.uint8).reshape(len(kept), 16)})]

    def _on_done(self, message):
        """Nothing is left to do."""
        return []

    # ---------------------------------------------------------------- checks

    def _check_around(self, phase, places):
        if len(set(places) & set(self._around)) < self.terms.graph[1]:
            raise PartiesError(phase, f"fewer than {self.terms.graph[1]} neighbours are left, so that the masks could "
                                      "not be removed: begin again, with a higher dropout")

    def _checked_survivors(self, phase, survivors):
        alive = set(survivors)
        if len(alive) < self.terms.n_parties - self.terms.n_dropped or self.place not in alive or not (
                alive <= set(range(self.terms.n_parties))):
            raise PartiesError(phase, f"more than {self.terms.n_dropped} parties dropped out, or the server says that "
                                      "this one has: begin again, with a higher dropout")
        return alive

    def _check_agreement(self, alive, fields):
        """Raise PartiesError unless enough parties have signed these survivors, and neighbours masked for the same."""
        if alive != self._alive:
            raise PartiesError("reveal", "the server names other survivors than before: begin again elsewhere")
        if not alive <= {self.place, *self._shares}:
            raise PartiesError("reveal", "a survivor has sent no shares: begin again with another server")
        agreed = {place: bytes.fromhex(text) for place, text in fields["agreed"]}
        if len(agreed.keys() & alive) < self.terms.quorum:
            raise PartiesError("reveal", f"fewer than {self.terms.quorum} parties have signed who survived: begin "
                                         "again, with a higher dropout")
        for place, signature in agreed.items():
            self._directory.check_text("reveal", place, signature, self._agreed)
        masked = dict(fields["masked"])
        for place in alive:
            self._directory.check_text("reveal", place, bytes.fromhex(masked[place]), b"masked" + self._roster)

    # ---------------------------------------------------------------- small ones

    def _own_and(self, places):
        own = self._boxes.public, self._pair.public
        return {self.place: own, **{place: self._keys[place] for place in places}}

    def _box_key(self, phase, sender, receiver):
        other = self._keys[receiver if sender == self.place else sender][0]
        ends = sender.to_bytes(4, "big") + receiver.to_bytes(4, "big")
        return self._boxes.agreed(phase, other, b"box" + self._session + ends)

    def _checked(self, vector):
        refuse_masked(vector, "vector")
        vector = np.asarray(vector)
        if vector.dtype not in (np.uint64, np.int64) or vector.shape != (self.terms.size,):
            raise ValueError(f"vector must be an array of {self.terms.size} integers of type uint64 or int64")
        return vector.astype(np.int64).view(np.uint64) if vector.dtype == np.int64 else vector.copy()

    def _to_server(self, phase, fields, arrays=None):
        return self._identity.signed(Message(phase, self.place, SERVER, fields, arrays or {}), self._context)


# ---------------------------------------------------------------- what both sides compute


def mask_pair(seed, context):
    """Return the key pair of pairwise masks of a seed, of which neighbours keep shares."""
    return keys.Pair(keys.derived(int(seed).to_bytes(16, "big"), b"pair" + context))


def self_mask(seed, session, size):
    """Return the mask that a party adds for itself."""
    return mask_of(keys.derived(int(seed).to_bytes(16, "big"), b"self" + session), size)


def mask_purpose(session, place, other):
    """Return what the mask of two parties is agreed on for; of their places, as a third may show the key of one."""
    return b"mask" + session + b"".join(end.to_bytes(4, "big") for end in sorted((place, other)))


def roster_of(session, public):
    """Return a hash of the keys of all who have sent shares."""
    listed = b"".join(place.to_bytes(4, "big") + b"".join(public[place]) for place in sorted(public))
    return hashlib.sha256(b"roster" + session + listed).digest()


def agreed_of(roster, alive):
    """Return what parties sign about who has survived."""
    return b"agree" + roster + b"".join(place.to_bytes(4, "big") for place in sorted(alive))
