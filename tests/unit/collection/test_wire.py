"""The kernel of reports as bytes against Python's integers and zlib."""

import zlib
from pathlib import Path

import numpy as np
import pytest

from dpestim._core import wire
from dpestim.collection import Survey
from dpestim.local import GRRFrequencyEstimator

DTYPES = (np.uint8, np.uint16, np.uint32, np.uint64)


def numbers(rng, widths, n, dtype):
    words = rng.integers(0, 1 << 64, (n, len(widths)), np.uint64, endpoint=False)
    masks = np.array([(1 << int(width)) - 1 for width in widths], np.uint64)
    return (words & masks).astype(dtype)


def packed(row, widths):
    """Return the bits of a row as an integer."""
    out = at = 0
    for number, width in zip(row.tolist(), widths.tolist()):
        out |= number << at
        at += width
    return out, at


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_lie_side_by_side_lowest_bit_first(dtype):
    rng = np.random.default_rng(0)
    for _ in range(40):
        widths = rng.integers(0, 8 * np.dtype(dtype).itemsize + 1, int(rng.integers(1, 9))).astype(np.uint8)
        rows = numbers(rng, widths, 5, dtype)
        bits = int(widths.sum(dtype=np.int64))
        out = np.zeros((5, max(1, -(-bits // 8))), np.uint8)
        wire.pack(rows, widths[None], out)
        assert [int.from_bytes(row.tobytes(), "little") for row in out] == [packed(row, widths)[0] for row in rows]
        again = np.full_like(rows, 7)
        wire.unpack(out, widths[None], again)
        assert np.array_equal(again, rows)


@pytest.mark.parametrize("k", [1, 3])
def test_slots_say_their_column_and_are_filled_with_zeros(k):
    rng = np.random.default_rng(1)
    widths = np.array([[3, 0], [11, 16], [0, 9]], np.uint8)
    columns = rng.integers(0, 3, 7 * k)
    slots = np.array([[c, *numbers(rng, widths[c], 1, np.uint16)[0]] for c in columns], np.uint16)
    out, size = np.zeros((7, -(-(29 * k) // 8)), np.uint8), 29
    wire.pack_slots(slots, widths, 2, size, k, out)
    wanted = [0] * 7
    for place, slot in enumerate(slots):
        own = packed(slot, np.array([2, *widths[slot[0]]]))[0]
        wanted[place // k] |= own << size * (place % k)
    assert [int.from_bytes(row.tobytes(), "little") for row in out] == wanted
    again, wrong = np.full_like(slots, 9), np.ones(7, np.uint8)
    assert wire.unpack_slots(out, widths, 2, size, k, again, wrong) == 0
    assert np.array_equal(again, slots)
    assert not wrong.any()


def test_slots_that_nobody_writes_are_found():
    widths, good = np.array([[3], [11]], np.uint8), np.zeros((1, 4), np.uint8)
    slots, wrong = np.zeros((2, 2), np.uint16), np.zeros(1, np.uint8)
    for bit in range(32):
        row = good.copy()
        row[0, bit // 8] = 1 << bit % 8
        # slots of 13 bits: two for the column, of which there are two, three for what column 0 says
        fine = bit % 13 in (0, 2, 3, 4) and bit < 26
        assert wire.unpack_slots(row, widths, 2, 13, 2, slots, wrong) == wrong[0] == (not fine), bit
    with pytest.raises(ValueError, match="does not exist"):
        wire.pack_slots(np.array([[2, 0]], np.uint16), widths, 2, 13, 1, np.zeros((1, 2), np.uint8))


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 25, 200])
@pytest.mark.parametrize("has_nonce", [False, True])
def test_messages_are_sealed_and_opened(size, has_nonce):
    rng = np.random.default_rng(size)
    heads = [b"DPR\x01" + bytes([flag]) + bytes(range(16)) for flag in (0, 1)]
    payloads, nonces = (rng.integers(0, 256, (20, n)).astype(np.uint8) for n in (size, 8))
    nonces = nonces if has_nonce else nonces[:0]
    head = heads[has_nonce]
    out = np.empty((20, 21 + 8 * has_nonce + size + 4), np.uint8)
    wire.seal(np.frombuffer(head, np.uint8), zlib.crc32(head), nonces, payloads, out)
    for row, payload, number in zip(out, payloads, range(20)):
        said = head + (nonces[number].tobytes() if has_nonce else b"") + payload.tobytes()
        assert row.tobytes() == said + zlib.crc32(said).to_bytes(4, "little")
    found = [np.ones(20, np.uint8), np.ones((20, size), np.uint8), np.ones((20, 8), np.uint8), np.ones(20, np.uint8)]
    checks = list(map(zlib.crc32, heads))
    wire.open_(out, np.frombuffer(heads[0], np.uint8), *checks, *found)
    assert not found[0].any()
    assert np.array_equal(found[1], payloads)
    assert np.array_equal(found[2], nonces) or not (has_nonce or found[2].any())
    assert (found[3] == has_nonce).all()
    # every bit counts, and what it stands for
    for bit in range(8 * out.shape[1]):
        row = out[:1].copy()
        row[0, bit // 8] ^= 1 << bit % 8
        wire.open_(row, np.frombuffer(heads[0], np.uint8), *checks, *(part[:1] for part in found))
        place, reason = bit // 8, int(found[0][0])
        wanted = {1} if place < 3 else {1, 2} if place == 3 else {2, 4} if place == 4 else {4}
        assert reason in wanted, (bit, reason)
        assert not found[1][0].any()
    foreign = out[:1].copy()
    foreign[0, 7] ^= 1
    foreign[0, -4:] = np.frombuffer(zlib.crc32(foreign[0, :-4].tobytes()).to_bytes(4, "little"), np.uint8)
    wire.open_(foreign, np.frombuffer(heads[0], np.uint8), *checks, *(part[:1] for part in found))
    assert found[0][0] == 3


def test_lengths_that_do_not_fit_are_refused():
    rows, widths, out = np.zeros((2, 3), np.uint8), np.array([[8, 8, 8]], np.uint8), np.zeros((2, 3), np.uint8)
    for call in (wire.pack, lambda rows, widths, out: wire.unpack(out, widths, rows)):
        for changed in ((rows, widths[:, :2].copy(), out), (rows, widths, out[:1].copy()), (rows, widths[:0], out),
                        (rows, np.array([[8, 9, 8]], np.uint8), out), (rows, widths, np.zeros((2, 2), np.uint8))):
            with pytest.raises(ValueError, match=r"differ in length|does not fit|too narrow"):
                call(*changed)
    slots, each = np.zeros((4, 2), np.uint8), np.array([[3], [8]], np.uint8)
    wrong = np.zeros(2, np.uint8)
    for sizes in ((each, 0, 12, 2, out), (each, 9, 17, 2, out), (each, 1, 8, 2, out), (each, 1, 13, 2, out),
                  (each, 1, 9, 3, out), (each, 1, 9, 0, out), (each[:0], 1, 9, 2, out),
                  (np.array([[3, 3]], np.uint8), 1, 9, 2, out), (each, 1, 9, 2, out[:1].copy())):
        with pytest.raises(ValueError, match=r"differ in length|too narrow"):
            wire.pack_slots(slots, *sizes)
        with pytest.raises(ValueError, match=r"differ in length|too narrow"):
            wire.unpack_slots(sizes[-1], *sizes[:-1], slots, wrong)
    with pytest.raises(ValueError, match="wrong has"):
        wire.unpack_slots(out, each, 1, 9, 2, slots, wrong[:1])
    head, none = np.zeros(21, np.uint8), np.zeros((0, 8), np.uint8)
    with pytest.raises(ValueError, match="differ in length"):
        wire.seal(head[:20], 0, none, rows, np.zeros((2, 28), np.uint8))
    with pytest.raises(ValueError, match="differ in length"):
        wire.seal(head, 0, none, rows, np.zeros((2, 29), np.uint8))
    with pytest.raises(ValueError, match="differ in length"):
        wire.open_(rows, head, 0, 0, wrong[:1], rows.copy(), np.zeros((2, 8), np.uint8), wrong)


def test_the_guide_says_how_long_messages_are():
    survey = Survey(GRRFrequencyEstimator(categories=[["tea", "coffee"]]), name="s")
    reports = survey.client(random_state=0).privatize(np.array([["tea"]], object))
    plain, named = (len(survey.encode(reports, nonces=nonces)[0]) - survey.report_bytes for nonces in (False, True))
    guide = (Path(__file__).resolve().parents[3] / "docs" / "guide" / "surveys.md").read_text(encoding="utf-8")
    assert f"sends {plain} bytes and a report" in guide
    assert f"| {plain} bytes and the report's bits; {named} with a nonce |" in guide
