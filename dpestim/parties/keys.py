"""Keys of parties: who signs (Ed25519), what two of them agree on (X25519, HKDF), and texts for one alone (AES-GCM)."""

import hashlib
from dataclasses import replace

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dpestim.exceptions import PartiesError
from dpestim.parties.wire import SERVER
from dpestim.records import record

#: Bytes that AES-GCM adds to a text.
TAG = 16


class Identity:
    """The long-lived key by which one party, or the server, signs: keep it secret, and give away `public`.

    Parameters
    ----------
    secret : bytes, default=None
        32 bytes, as `secret` of another; None draws new ones.

    Examples
    --------
    >>> from dpestim.parties import Identity
    >>> identity = Identity()
    >>> len(identity.public)
    32
    >>> Identity(identity.secret).public == identity.public
    True
    """

    def __init__(self, secret=None):
        if secret is not None and not (isinstance(secret, bytes) and len(secret) == 32):
            raise ValueError("secret must be None or the 32 bytes of `secret` of another Identity")
        self._key = Ed25519PrivateKey.generate() if secret is None else Ed25519PrivateKey.from_private_bytes(secret)
        self.public = self._key.public_key().public_bytes_raw()

    @property
    def secret(self):
        """The bytes that make this identity again."""
        return self._key.private_bytes_raw()

    def __repr__(self):
        return f"<Identity {self.public.hex()[:16]}>"

    def sign(self, text):
        """Return the signature of bytes."""
        return self._key.sign(text)

    def signed(self, message, context):
        """Return a message with a signature."""
        return replace(message, signature=self.sign(message.digest(context)))


@record
class Directory:
    """Whose public key is whose: of the server, and of all parties in the order of their places.

    All must have the same directory before they begin. Whoever hands it out is trusted with nothing else.
    """

    server: bytes
    parties: tuple

    def __post_init__(self):
        object.__setattr__(self, "parties", tuple(self.parties))
        keys = (self.server, *self.parties)
        if not all(isinstance(key, bytes) and len(key) == 32 for key in keys) or len(set(keys)) < len(keys):
            raise ValueError("server and parties must be the `public` bytes of identities, all different")

    def digest(self):
        """Return a hash of all keys."""
        return hashlib.sha256(b"".join((self.server, *self.parties))).digest()

    def check(self, message, context):
        """Raise PartiesError unless the sender has signed a message."""
        self.check_text(message.phase, message.sender, message.signature, message.digest(context))

    def check_text(self, phase, place, signature, text):
        """Raise PartiesError unless a party has signed bytes."""
        who = "the server" if place == SERVER else f"party {place}"
        if place != SERVER and not 0 <= place < len(self.parties):
            raise PartiesError(phase, f"a message is from {who}, and there are {len(self.parties)} parties")
        key = self.server if place == SERVER else self.parties[place]
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, text)
        except (InvalidSignature, ValueError):
            raise PartiesError(phase, f"a message is not signed by {who}: it was changed, or the terms or the "
                                      "directory differ; compare them with those of the others") from None


class Pair:
    """A key pair for one sum: what it agrees on with the public keys of others."""

    def __init__(self, secret=None):
        self._key = X25519PrivateKey.generate() if secret is None else X25519PrivateKey.from_private_bytes(secret)
        self.public = self._key.public_key().public_bytes_raw()

    def agreed(self, phase, public, purpose):
        """Return 32 bytes that both owners of two keys find for a purpose, and nobody else."""
        try:
            secret = self._key.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:
            raise PartiesError(phase, "a key that was sent is no X25519 key: begin again without its sender") from None
        return derived(secret, purpose)


def derived(secret, purpose):
    """Return 32 bytes that follow from a secret, for a purpose."""
    return HKDF(hashes.SHA256(), 32, None, b"dpestim parties " + purpose).derive(secret)


def sealed(key, text):
    """Return a text for those who have a key, which is used for this text alone."""
    return AESGCM(key).encrypt(bytes(12), text, None)


def opened(phase, key, text):
    """Return what was sealed; PartiesError where it was changed."""
    try:
        return AESGCM(key).decrypt(bytes(12), text, None)
    except InvalidTag:
        raise PartiesError(phase, "shares that were sent cannot be opened: they were changed on the way, or their "
                                  "sender has other keys; begin again") from None
