"""Messages between two parties, under keys that only these have: sealed, numbered, of a size that is known before."""

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dpestim.exceptions import PartiesError
from dpestim.parties.limits import MOST_AHEAD
from dpestim.parties.wire import Message

_TAG_BYTES = 16


class Line:
    """What a party has with one other: keys for both directions, and the messages that came early.

    Parameters
    ----------
    secret : X25519PrivateKey
    other_key : bytes
    me, other : int
        Places in the list of all parties.
    terms : bytes
        A hash of all that the parties agree on; of other terms no message can be opened.
    """

    def __init__(self, secret, other_key, me, other, terms):
        try:
            agreed = secret.exchange(X25519PublicKey.from_public_bytes(other_key))
        except ValueError:
            raise PartiesError("keys", f"the key of party {other} is no key of a party: ask for it again") from None
        # (of both places: who shows another's key as its own makes no two parties use one key twice)
        places = b"dpestim parties %d %d" % (min(me, other), max(me, other))
        both = HKDF(SHA256(), 96, salt=terms, info=places).derive(agreed)
        up, down = both[:32], both[32:64]  # (from the lower place to the higher one, and back)
        out, into = (up, down) if me < other else (down, up)
        self._out, self._into = AESGCM(out), AESGCM(into)
        #: A secret of both for random words.
        self.common = both[64:]
        self._me, self._other, self._sent, self._read, self._early = me, other, 0, 0, {}

    def seal(self, phase, words):
        """Return the next message to the other, of words: `number` counts those of one sender to one receiver."""
        number, self._sent = self._sent, self._sent + 1
        data = np.ascontiguousarray(words, "<u8").tobytes()
        sealed = np.frombuffer(self._out.encrypt(_nonce(number), data, phase.encode()), np.uint8)
        return Message(phase, self._me, self._other, {"number": number}, {"sealed": sealed})

    def keep(self, message, phase):
        """Keep a message until it is its turn; what came twice is dropped."""
        number, sealed = message.fields.get("number"), message.arrays.get("sealed")
        if type(number) is not int or sealed is None or sealed.dtype != np.uint8 or sealed.ndim != 1:
            raise PartiesError(phase, f"a message of party {self._other} is not what it must be: begin again with "
                                      "equal versions of dpestim")
        if number >= self._read + MOST_AHEAD:
            raise PartiesError(phase, f"party {self._other} is too many messages ahead: begin again without it")
        if number >= self._read:
            self._early.setdefault(number, (message.phase, sealed.tobytes()))

    def ready(self):
        """Tell whether the next message is there."""
        return self._read in self._early

    def open(self, shape, phase):
        """Return the words of the next message, of this shape."""
        (said, sealed), size = self._early.pop(self._read), int(np.prod(shape))
        if len(sealed) != 8 * size + _TAG_BYTES:
            raise PartiesError(phase, f"a message of party {self._other} has another size: compare the parameters")
        try:
            data = self._into.decrypt(_nonce(self._read), sealed, said.encode())
        except InvalidTag:
            raise PartiesError(phase, f"a message of party {self._other} was changed, or is about other parameters: "
                                      "compare the parameters and the list of keys") from None
        self._read += 1
        return np.frombuffer(data, "<u8").astype(np.uint64).reshape(shape)


def new_secret(key):
    """Return a secret of 32 random bytes, and its public key."""
    secret = X25519PrivateKey.from_private_bytes(key)
    return secret, secret.public_key().public_bytes_raw()


def _nonce(number):
    return number.to_bytes(12, "little")
