"""Sets of users under masks that commute: points of Curve25519 times a secret scalar (`intersection.md`)."""

import hashlib

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

#: The field and the curve v^2 = u^3 + A u^2 + u.
_P, _A = (1 << 255) - 19, 486662
#: Bytes of a point.
WIDTH = 32


def is_on_curve(u):
    """Tell whether an integer is the u of a point of the curve; all others belong to its twist."""
    return 0 < u < _P and pow(u * (u * u + _A * u + 1), (_P - 1) // 2, _P) == 1


def point_of(text):
    """Return the point of some bytes, as bytes: of the curve, never of its twist, whose scalar nobody knows."""
    attempt = 0
    while True:
        digest = hashlib.sha256(b"dpestim intersection" + attempt.to_bytes(4, "big") + text).digest()
        u = int.from_bytes(digest, "little") & (1 << 255) - 1
        if is_on_curve(u):
            return u.to_bytes(WIDTH, "little")
        attempt += 1


def masked(points, secret):
    """Return points under the mask of a secret (bytes), sorted: their order tells nothing of the order before.

    Raises ValueError where a point is none, or of an order that shows.
    """
    key = X25519PrivateKey.from_private_bytes(secret)
    return sorted(key.exchange(X25519PublicKey.from_public_bytes(point)) for point in points)


def text_of(user):
    """Return the bytes that stand for a user, or raise ValueError."""
    if isinstance(user, np.generic):
        user = user.item()
    if isinstance(user, bytes):
        return b"b" + user
    if isinstance(user, str):
        return b"s" + user.encode("utf-8", "surrogatepass")  # (an error would name a user)
    if isinstance(user, int) and not isinstance(user, bool):
        return b"i" + str(user).encode()
    raise ValueError("users must be names: str, bytes or int, and none of them missing; turn others into str")
