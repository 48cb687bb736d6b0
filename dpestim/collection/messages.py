"""One report on its own, as bytes or as text that a URL can hold.

::

    "DPR"  version  flags  id of the survey  [nonce]  payload  checksum
    3      1        1      16                [8]      ...      4          bytes

The version is 1. Of the flags only the lowest bit may be set: a nonce is there. The checksum is CRC-32, as zlib has it,
of all bytes before, little endian. It finds accidents; it is no signature. The text form is base64url without padding.
"""

import base64
import re
import secrets
import zlib
from typing import NamedTuple

import numpy as np

from dpestim._core import wire

MAGIC, VERSION, NONCE_BYTES, CHECK_BYTES = b"DPR", 1, 8, 4
#: Bytes of magic, version, flags and id.
HEAD_BYTES = 21
_NO_NONCES = np.empty((0, NONCE_BYTES), np.uint8)
#: Why a message is refused, by number; 0: it is not.
REASONS = ("", "malformed", "newer", "foreign", "damaged")
_SENTENCES = {
    "malformed": "must be a message as encode makes it, with as many bytes as this survey's reports have",
    "newer": "is of a newer version of the format: update dpestim",
    "foreign": "belongs to another survey: decode it with the survey that its client had",
    "damaged": "has another checksum than it was sent with: ask for it again",
}
_TEXT = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


class Opened(NamedTuple):
    """Messages taken apart; of a row that is refused the other parts mean nothing."""

    #: For each message the number of a reason in `REASONS`; 0: none.
    reasons: np.ndarray
    #: (n, bytes) array of uint8.
    payloads: np.ndarray
    #: (n, 8) array of uint8, zeros where there is no nonce; and where there is one.
    nonces: np.ndarray
    has_nonce: np.ndarray


def sealed(payloads, survey_id, nonces=None):
    """Return messages, an (n, size) array of uint8: a row is a message."""
    n = len(payloads)
    nonces = _NO_NONCES if nonces is None else np.ascontiguousarray(nonces)
    head = _head(survey_id, len(nonces) > 0)
    out = np.empty((n, HEAD_BYTES + NONCE_BYTES * (len(nonces) > 0) + payloads.shape[1] + CHECK_BYTES), np.uint8)
    wire.seal(np.frombuffer(head, np.uint8), zlib.crc32(head), nonces, np.ascontiguousarray(payloads), out)
    return out


def fresh_nonces(n):
    """Return n random nonces."""
    return np.frombuffer(secrets.token_bytes(n * NONCE_BYTES), np.uint8).reshape(n, NONCE_BYTES)


def opened(messages, survey_id, n_bytes):
    """Take messages apart: bytes, a list of bytes, or an array as `sealed` returns it; nothing is raised for one."""
    if isinstance(messages, bytes | bytearray | memoryview):
        messages = [bytes(messages)]
    if isinstance(messages, np.ndarray):
        if messages.ndim != 2 or messages.dtype != np.uint8:
            raise ValueError("messages must be bytes, a list of bytes, or an array of uint8 with a message in each row")
        return _opened_rows(np.ascontiguousarray(messages), survey_id, n_bytes)
    if not isinstance(messages, list | tuple) or not all(
            isinstance(own, bytes | bytearray | memoryview) for own in messages):
        raise ValueError("messages must be bytes, a list of bytes, or an array of uint8 with a message in each row")
    found = _nothing(len(messages), n_bytes)
    sizes = np.array([len(own) for own in messages], np.int64)
    for size in np.unique(sizes):  # (with and without a nonce, and what is no message)
        at = np.flatnonzero(sizes == size)
        if HEAD_BYTES + CHECK_BYTES <= size <= HEAD_BYTES + NONCE_BYTES + n_bytes + CHECK_BYTES:
            rows = np.frombuffer(b"".join(messages[i] for i in at), np.uint8).reshape(len(at), size)
            for whole, part in zip(found, _opened_rows(rows, survey_id, n_bytes)):
                whole[at] = part
    return found


def _nothing(n, n_bytes):
    return Opened(np.full(n, REASONS.index("malformed"), np.uint8), np.zeros((n, n_bytes), np.uint8),
                  np.zeros((n, NONCE_BYTES), np.uint8), np.zeros(n, bool))


def _opened_rows(rows, survey_id, n_bytes):
    out, size = _nothing(len(rows), n_bytes), rows.shape[1]
    if not len(rows) or size < HEAD_BYTES + CHECK_BYTES:
        return out
    heads = [_head(survey_id, flag) for flag in (False, True)]
    wire.open_(rows, np.frombuffer(heads[0], np.uint8), *map(zlib.crc32, heads), out.reasons, out.payloads, out.nonces,
               out.has_nonce.view(np.uint8))
    return out


def _head(survey_id, nonce):
    return MAGIC + bytes([VERSION, nonce]) + bytes.fromhex(survey_id)


def refuse(reasons):
    """Raise ValueError where a message is refused, with its place and no content."""
    bad = np.flatnonzero(reasons)
    if len(bad):
        more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
        raise ValueError(f"message {bad[0]} {_SENTENCES[REASONS[reasons[bad[0]]]]}{more}")


def to_text(messages):
    """Return messages as a list of texts."""
    return [base64.urlsafe_b64encode(own).rstrip(b"=").decode("ascii") for own in map(bytes, messages)]


def from_text(texts):
    """Return the bytes of texts, a list; empty bytes for what is no text of a message."""
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list | tuple | np.ndarray):
        raise ValueError("texts must be a string or a list of strings")
    return [_bytes_of(text) for text in texts]


def _bytes_of(text):
    if not isinstance(text, str) or not _TEXT.fullmatch(text) or len(text) % 4 == 1:
        return b""
    found = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    # (bits beyond the last byte must be 0: a message has one text)
    return found if base64.urlsafe_b64encode(found).rstrip(b"=").decode("ascii") == text else b""
