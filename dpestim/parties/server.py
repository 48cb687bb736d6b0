"""The server of a secure sum, without input and output: messages in, messages out. The protocol: `secure_sum.md`."""

import hashlib
import os

import numpy as np

from dpestim.exceptions import PartiesError
from dpestim.parties.party import mask_pair, mask_purpose, self_mask
from dpestim.parties.wire import SERVER, Message
from dpestim.shuffle.transport.secure_sum import mask_of, one_sided
from dpestim.shuffle.transport.shamir import recover

_BEFORE = {"keys": (), "shares": ("keys",), "masked": ("keys", "shares"), "agree": ("keys", "shares", "masked"),
           "reveal": ("keys", "shares", "masked", "agree"), "done": ("keys", "shares", "masked", "agree", "reveal")}


class SumServer:
    """The server of a secure sum: `receive` of each message, and `close` when a phase has lasted long enough.

    Both return the messages that are to be sent. A phase ends by itself when all have answered; `close` counts those
    who have not as dropped out.

    Parameters
    ----------
    terms : SumTerms
    directory : Directory
    identity : Identity
        That of the server in the directory.

    Attributes
    ----------
    phase : str
        Which messages of parties are awaited: "keys", "shares", "masked", "agree" (with an active server), "reveal";
        "done" at the end.
    result : array of uint64 or None
        The sum of the vectors of the survivors modulo 2**bits.
    survivors : list of int or None
        Whose vectors are in the sum.
    """

    #: Seconds that it waits for an answer, if nothing is said.
    patience = 30.0

    def __init__(self, terms, directory, identity):
        self.terms, self._directory, self._identity = terms, directory, identity
        self._context = terms.context(directory)
        if directory.server != identity.public:
            raise ValueError("identity must be that of the server in the directory: compare the public keys")
        self.phase, self.result, self.survivors = "keys", None, None
        self._awaited, self._got, self._digests = set(range(terms.n_parties)), {}, {}
        self._total, self._seed = np.zeros(terms.size, np.uint64), os.urandom(32)
        self._session = hashlib.sha256(self._context + self._seed).digest()
        self._around = terms.neighbours(self._seed).tolist()

    @property
    def awaited(self):
        """The places of parties that have not answered in this phase."""
        return sorted(self._awaited - self._got.keys())

    @property
    def pace(self):
        """What changes when the time for an answer begins anew."""
        return self.phase

    def lost(self, gone):
        """Return the messages that follow where these parties are gone: a phase ends where nobody else is awaited."""
        out = []
        while self.phase not in ("done", "failed") and gone.issuperset(self.awaited):
            out += self.close()
        return out

    def is_signed(self, message):
        """Tell whether the sender of a message is a party of the directory, and has signed it."""
        try:
            self._directory.check(message, self._context)
        except PartiesError:
            return False
        return message.sender != SERVER

    def receive(self, message):
        """Return the messages that follow; PartiesError, after which there is no result."""
        if self.phase == "failed":
            raise PartiesError("failed", "the sum has failed before: begin again")
        self._directory.check(message, self._context)
        if message.sender == SERVER or message.receiver != SERVER:
            raise PartiesError(self.phase, "a message is not from a party to the server: send each to its receiver")
        place, digest = message.sender, message.digest(self._context)
        if self._digests.setdefault((message.phase, place), digest) != digest:
            raise self._failed(f"party {place} has sent two different messages of phase {message.phase!r}: begin again "
                               "without it")
        if message.phase != self.phase or place in self._got or place not in self._awaited:
            if message.phase == self.phase or message.phase in _BEFORE[self.phase]:
                return []  # a copy, or too late: its sender counts as dropped out
            raise self._failed(f"party {place} has sent a message of phase {message.phase!r} too early: begin again")
        if self.phase != "keys" and message.fields.get("session") != self._session.hex():
            raise self._failed(f"a message of party {place} is of another sum: give every sum a label of its own")
        try:
            self._got[place] = getattr(self, "_from_" + self.phase)(message)
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise self._failed(f"a message of party {place} is not what it must be ({error}): begin again with equal "
                               "versions of dpestim") from None
        return [] if self.awaited else self.close()

    def close(self):
        """End the phase, and return the messages that begin the next; PartiesError where too few have answered."""
        if self.phase in ("done", "failed"):
            return []
        least = self.terms.n_parties - self.terms.n_dropped
        if self.phase in ("agree", "reveal"):  # (their vectors are in the sum; that enough answer is checked by shares)
            least = self.terms.quorum if self.terms.active else 1
        if len(self._got) < least:
            raise self._failed(f"{len(self._got)} of {self.terms.n_parties} parties have answered, and {least} are "
                               "needed: begin again, with a higher dropout")
        got, self._got = self._got, {}
        self._awaited = set(got)
        return getattr(self, "_after_" + self.phase)(got)

    def abort(self, error):
        """Return the messages that tell all parties that there is no result."""
        self.phase = "failed"
        fields = {"phase": error.phase, "what": error.what}
        return [self._to(place, "abort", fields) for place in range(self.terms.n_parties)]

    def _failed(self, what):
        phase, self.phase = self.phase, "failed"
        return PartiesError(phase, what)

    # ---------------------------------------------------------------- keys of all, to neighbours

    def _from_keys(self, message):
        public = [message.fields[name] for name in ("boxes", "masks")]
        if set(message.fields) != {"boxes", "masks"} or [len(bytes.fromhex(key)) for key in public] != [32, 32]:
            raise ValueError("keys")
        return [*public, message.signature.hex()]

    def _after_keys(self, got):
        self._public, self.phase = got, "shares"
        return [self._to(place, "keys", {"seed": self._seed.hex(), "keys": [
            [other, *got[other]] for other in self._around[place] if other in got]}) for place in got]

    # ---------------------------------------------------------------- shares, from neighbour to neighbour

    def _from_shares(self, message):
        expected = [other for other in self._around[message.sender] if other in self._public]
        texts = message.arrays["texts"]
        if message.fields["to"] != expected or texts.shape != (len(expected), 48) or texts.dtype != np.uint8:
            raise ValueError("shares")
        return dict(zip(expected, texts, strict=True)), message.fields["self"]

    def _after_shares(self, got):
        self._senders, self.phase = got, "masked"
        out = []
        for place in got:
            senders = [other for other in self._around[place] if other in got]
            texts = np.array([got[other][0][place] for other in senders], np.uint8).reshape(len(senders), 48)
            out.append(self._to(place, "shares", {"from": senders}, {"texts": texts}))
        return out

    # ---------------------------------------------------------------- vectors under masks

    def _from_masked(self, message):
        masked = message.arrays["masked"]
        if masked.dtype != np.uint64 or masked.shape != self._total.shape:
            raise ValueError("masked")
        signed = message.fields["signed"] if self.terms.active else ""
        self._total += masked
        return signed

    def _after_masked(self, got):
        self.survivors, self._signed = sorted(got), got
        self.phase = "agree" if self.terms.active else "reveal"
        return [self._to(place, self.phase, {"survivors": self.survivors}) for place in got]

    # ---------------------------------------------------------------- who has survived, with an active server

    def _from_agree(self, message):
        return message.fields["signed"]

    def _after_agree(self, got):
        self.phase = "reveal"
        fields = {"survivors": self.survivors, "agreed": sorted(got.items()), "masked": sorted(self._signed.items())}
        return [self._to(place, "reveal", fields) for place in got]

    # ---------------------------------------------------------------- one share of each

    def _from_reveal(self, message):
        shares, places = message.arrays["shares"], message.fields["of"]
        expected = [other for other in self._around[message.sender] if other in self._senders]
        if places != expected or shares.dtype != np.uint8 or shares.shape != (len(expected), 16):
            raise ValueError("shares")
        return {other: int.from_bytes(share.tobytes(), "big") for other, share in zip(expected, shares, strict=True)}

    def _after_reveal(self, got):
        alive, threshold = set(self.survivors), self.terms.graph[1]
        for place in self._senders:
            around = self._around[place]
            points = [(at + 1, got[other][place]) for at, other in enumerate(around) if other in got][:threshold]
            if len(points) < threshold:
                raise self._failed(f"fewer than {threshold} neighbours of party {place} are left, so that its masks "
                                   "cannot be removed: begin again, with a higher dropout")
            (self._without_self if place in alive else self._without_pairs)(place, recover(points), alive)
        self.result = self._total & np.uint64((1 << self.terms.bits) - 1)
        self.phase = "done"
        return [self._to(place, "done", {}) for place in got]

    def _without_self(self, place, seed, alive):
        proof = hashlib.sha256(b"self" + self._session + int(seed).to_bytes(16, "big")).hexdigest()
        if proof != self._senders[place][1]:
            raise self._failed(f"the shares of party {place} do not give its seed: a party sent a wrong share; begin "
                               "again without it")
        self._total -= self_mask(seed, self._session, self.terms.size)

    def _without_pairs(self, place, seed, alive):
        pair = mask_pair(seed, self._context)
        if pair.public.hex() != self._public[place][1]:
            raise self._failed(f"the shares of party {place} do not give its key: a party sent a wrong share; begin "
                               "again without it")
        for other in self._around[place]:
            if other in alive:
                purpose = mask_purpose(self._session, place, other)
                agreed = pair.agreed("reveal", bytes.fromhex(self._public[other][1]), purpose)
                self._total -= one_sided(other, place, mask_of(agreed, self.terms.size))

    def _to(self, place, phase, fields, arrays=None):
        return self._identity.signed(Message(phase, SERVER, place, fields, arrays or {}), self._context)
