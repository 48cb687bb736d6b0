"""Messages as bytes: what was sent arrives, and nothing else is read, nor memory taken for it."""

import json
import struct

import numpy as np
import pytest

from dpestim.exceptions import PartiesError
from dpestim.parties.wire import PREFIX, Message, decode, encode, left

MESSAGE = Message("masked", 3, -1, {"a": [1, "x", None]}, {
    "masked": np.arange(4, dtype=np.uint64), "texts": np.zeros((2, 3), np.uint8), "none": np.zeros((0, 5), np.int64)},
    bytes(range(64)))


def test_round_trip():
    frame = encode(MESSAGE)
    again = decode(frame, 1000)
    assert encode(again) == frame
    assert left(frame[:PREFIX], 1000) == len(frame) - PREFIX
    assert again.fields == MESSAGE.fields
    for name, array in MESSAGE.arrays.items():
        assert again.arrays[name].dtype == array.dtype
        assert again.arrays[name].tolist() == array.tolist()
    assert again.digest(b"") == MESSAGE.digest(b"") != MESSAGE.digest(b"x")


def test_every_byte_matters():
    """A flipped bit is no message, or one of another digest or signature."""
    frame = encode(MESSAGE)
    for at in range(len(frame)):
        other = bytearray(frame)
        other[at] ^= 1
        try:
            message = decode(bytes(other), 1000)
        except PartiesError:
            continue
        assert message.digest(b"") != MESSAGE.digest(b"") or message.signature != MESSAGE.signature
    for end in range(len(frame)):
        with pytest.raises(PartiesError):
            decode(frame[:end], 1000)


def test_large_and_foreign_frames_are_refused():
    with pytest.raises(PartiesError, match="above the 10 of these terms"):
        left(encode(MESSAGE)[:PREFIX], 10)
    with pytest.raises(PartiesError, match="damaged"):
        left(struct.pack(">4sIQ", b"DPP1", 2**32 - 1, 0), 10)
    good = {"phase": "x", "sender": 0, "receiver": 1, "fields": {}, "arrays": []}
    for wrong in ({"arrays": [["a", "|O", [1]]]}, {"arrays": [["a", "<u8", [2**62]]]}, {"arrays": [["a", "<u8", [-1]]]},
                  {"arrays": [["a", "<u8", [2**70]]]}, {"arrays": [["a", "<f8", [0]]]},
                  {"arrays": [["a", "|u1", [1, 1, 1]]]}, {"sender": True}, {"phase": 1}, {"fields": []}, {"more": 1},
                  {"arrays": 3}, {"arrays": [["a", "a5", [0]]]}, {"arrays": [["a", "|u1", [0]], ["a", "|u1", [0]]]}):
        header = json.dumps({**good, **wrong}, sort_keys=True, separators=(",", ":")).encode()
        with pytest.raises(PartiesError):
            decode(struct.pack(">4sIQ", b"DPP1", len(header), 0) + header + bytes(64), 1000)
    frame = encode(Message("x", 0, 1))  # (a byte that belongs to nothing, and that nobody would sign)
    longer = struct.pack(">4sIQ", b"DPP1", len(frame) - PREFIX - 64, 1) + frame[PREFIX:-64] + b"x" + frame[-64:]
    with pytest.raises(PartiesError):
        decode(longer, 1000)
    for header in (b"[]", b"3", b"{", b"[" * 100_000):
        with pytest.raises(PartiesError):
            decode(struct.pack(">4sIQ", b"DPP1", len(header), 0) + header + bytes(64), 1000)
    with pytest.raises(ValueError, match="uint64"):
        encode(Message("x", 0, 1, {}, {"a": np.zeros(2, np.float64)}))
