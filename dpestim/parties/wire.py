"""Messages between parties as bytes: a header in JSON, arrays as raw bytes, a signature. Nothing is pickled."""

import hashlib
import json
import math
import struct
from dataclasses import field

import numpy as np

from dpestim.exceptions import PartiesError
from dpestim.parties.limits import MOST_BODY, MOST_HEADER
from dpestim.records import record

#: The place of the server, among senders and receivers.
SERVER = -1
#: What a frame begins with; types of arrays; the parts of a frame of fixed size.
_MAGIC, _TYPES, _PREFIX, _SIGNATURE = b"DPP1", ("<u8", "<i8", "|u1"), struct.Struct(">4sIQ"), 64
PREFIX = _PREFIX.size
_PARTS = ("arrays", "fields", "phase", "receiver", "sender")
_DAMAGED = "a message is damaged: it must be one of `encode`, sent unchanged; send it again"


@record
class Message:
    """What one party sends to another in a phase: fields of JSON, and arrays of uint64, int64 or uint8, by name."""

    phase: str
    sender: int
    receiver: int
    fields: dict = field(default_factory=dict)
    arrays: dict = field(default_factory=dict)
    signature: bytes = bytes(_SIGNATURE)

    def header(self):
        """Return the bytes that describe the message: one text for one message."""
        arrays = [[name, _code(array), list(array.shape)] for name, array in self.arrays.items()]
        parts = {"phase": self.phase, "sender": self.sender, "receiver": self.receiver, "fields": self.fields,
                 "arrays": arrays}
        return json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()

    def digest(self, context):
        """Return what is signed: a hash of the context (who does what with whom) and of all that is sent."""
        header = self.header()
        found = hashlib.sha256(context + len(header).to_bytes(4, "big") + header)
        for array in self.arrays.values():
            found.update(memoryview(np.ascontiguousarray(array)).cast("B") if array.size else b"")
        return found.digest()


def encode(message):
    """Return a message as bytes; `decode` makes the message of them again."""
    header = message.header()
    body = b"".join(np.ascontiguousarray(array).tobytes() for array in message.arrays.values())
    return _PREFIX.pack(_MAGIC, len(header), len(body)) + header + body + message.signature


def left(prefix, most, most_header=MOST_HEADER):
    """Return how many bytes follow the first `PREFIX` of a frame, before memory for them is taken.

    Raises PartiesError where the body is above `most` bytes, or where the bytes begin no frame.
    """
    magic, header, body = _PREFIX.unpack(prefix)
    if magic != _MAGIC or header > most_header:
        raise PartiesError("wire", _DAMAGED)
    if body > most:
        raise PartiesError("wire", f"a message has {body} bytes of arrays, above the {most} of these terms: all "
                                   "parties must have the same terms")
    return header + body + _SIGNATURE


def decode(frame, most=MOST_BODY):
    """Return the message of bytes; PartiesError where they are none, or above `most` bytes of arrays."""
    if len(frame) < PREFIX or len(frame) != PREFIX + left(frame[:PREFIX], most):
        raise PartiesError("wire", _DAMAGED)
    _, n_header, _ = _PREFIX.unpack(frame[:PREFIX])
    header, at = bytes(frame[PREFIX : PREFIX + n_header]), PREFIX + n_header
    try:
        parts = json.loads(header)
        good = tuple(sorted(parts)) == _PARTS and isinstance(parts["phase"], str) and isinstance(parts["fields"], dict)
        good = good and all(type(parts[name]) is int for name in ("sender", "receiver"))
        arrays = {}
        for name, code, shape in parts["arrays"] if good else ():
            if code not in _TYPES or not all(type(n) is int and n >= 0 for n in shape) or len(shape) > 2:
                raise ValueError(code)
            count = math.prod(shape)
            if count * np.dtype(code).itemsize > len(frame) - _SIGNATURE - at:  # (also where count is beyond all size)
                raise ValueError(shape)
            arrays[str(name)] = np.frombuffer(frame, code, count, at).reshape(shape)
            at += arrays[name].nbytes
        message = Message(parts["phase"], parts["sender"], parts["receiver"], parts["fields"], arrays,
                          bytes(frame[-_SIGNATURE:]))
        if not good or at != len(frame) - _SIGNATURE or message.header() != header:
            raise ValueError(at)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise PartiesError("wire", _DAMAGED) from None
    return message


def _code(array):
    """Return the name of the type of an array."""
    code = array.dtype.str
    if code not in _TYPES:
        raise ValueError(f"arrays of a message must be of uint64, int64 or uint8, not {array.dtype}")
    return code
