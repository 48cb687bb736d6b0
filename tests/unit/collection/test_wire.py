"""The kernel of reports as bytes against Python's integers and zlib."""

import zlib

import numpy as np
import pytest

from dpestim._core import wire

HERE = np.empty(0, np.int64)
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
        wire.pack(rows, widths, HERE, HERE, out)
        assert [int.from_bytes(row.tobytes(), "little") for row in out] == [packed(row, widths)[0] for row in rows]
        again = np.full_like(rows, 7)
        wire.unpack(out, widths, HERE, HERE, again)
        assert np.array_equal(again, rows)


def test_rows_may_begin_at_any_bit_of_any_row():
    rng = np.random.default_rng(1)
    widths, places, starts = np.array([3, 11], np.uint8), np.array([2, 0, 2]), np.array([0, 5, 14])
    rows, out = numbers(rng, widths, 3, np.uint16), np.zeros((3, 4), np.uint8)
    wire.pack(rows, widths, places, starts, out)
    wanted = [0, 0, 0]
    for row, place, start in zip(rows, places, starts):
        wanted[place] |= packed(row, widths)[0] << int(start)
    assert [int.from_bytes(row.tobytes(), "little") for row in out] == wanted
    again = np.empty_like(rows)
    wire.unpack(out, widths, places, starts, again)
    assert np.array_equal(again, rows)


@pytest.mark.parametrize("size", [4, 5, 11, 12, 13, 29, 200])
def test_checksums_are_those_of_zlib(size):
    rows = np.random.default_rng(size).integers(0, 256, (50, size)).astype(np.uint8)
    start = min(3, size - 4)
    rows[:, :start] = 9
    wire.write_checks(rows, start, zlib.crc32(bytes([9] * start)))
    assert [zlib.crc32(row[:-4].tobytes()) for row in rows] == [int.from_bytes(row[-4:].tobytes(), "little")
                                                                for row in rows]
    wrong = np.ones(50, np.uint8)
    assert wire.compare_checks(rows, wrong) == 0
    assert not wrong.any()
    rows[17, -1] ^= 1
    assert wire.compare_checks(rows, wrong) == 1
    assert np.flatnonzero(wrong).tolist() == [17]


def test_lengths_that_do_not_fit_are_refused():
    rows, widths, out = np.zeros((2, 3), np.uint8), np.array([8, 8, 8], np.uint8), np.zeros((2, 3), np.uint8)
    for call in (wire.pack, lambda rows, *more: wire.unpack(more[-1], *more[:-1], rows)):
        for changed in ((rows, widths[:2], HERE, HERE, out), (rows, widths, HERE, HERE, out[:1].copy()),
                        (rows, np.array([8, 9, 8], np.uint8), HERE, HERE, out),
                        (rows, widths, HERE, HERE, np.zeros((2, 2), np.uint8)),
                        (rows, widths, np.array([0, 2]), np.array([0, 0]), out),
                        (rows, widths, np.array([0, 1]), np.array([0, 1]), out),
                        (rows, widths, np.array([0, 1]), np.array([0]), out)):
            with pytest.raises(ValueError, match=r"differ in length|does not fit|too narrow|outside"):
                call(*changed)
    with pytest.raises(ValueError, match="start lies outside"):
        wire.write_checks(np.zeros((1, 8), np.uint8), 5, 0)
    with pytest.raises(ValueError, match="too short"):
        wire.compare_checks(np.zeros((1, 3), np.uint8), np.zeros(1, np.uint8))
