"""Tables of messages: equal messages, sums of tables, what cannot be taken apart is reported."""

import numpy as np
import pytest

from dpestim._core import iblt as kernel
from dpestim.exceptions import DecodeError
from dpestim.shuffle.transport import IBLTShuffler, SecureSum


def table_of(keys, cells=60, salt=5):
    table = np.zeros((cells, keys.shape[1] + 2), np.uint64)
    kernel.insert(keys, salt, table)
    return table


def peeled(table, most, salt=5):
    found = np.zeros((most, table.shape[1] - 2), np.uint64)
    n = kernel.peel(table, salt, np.empty(len(table), np.int64), found)
    return found[:n]


def test_equal_messages_need_their_nonces():
    equal = np.full((20, 2), 7, np.uint64)
    assert len(peeled(table_of(equal), 20)) == 0  # erratum V21: they share their cells
    assert IBLTShuffler(random_state=0).shuffle(np.full(500, 7, np.uint8)).tolist() == [7] * 500


def test_tables_add_up():
    keys = np.random.default_rng(0).integers(0, 1 << 63, (20, 3), dtype=np.uint64)
    whole = table_of(keys)
    assert (whole == sum(table_of(key[np.newaxis]) for key in keys)).all()
    assert whole[:, 0].sum() == 60  # three cells each, one in each third
    assert whole[:20, 0].sum() == 20
    found = peeled(whole, 20)
    assert sorted(found.tolist()) == sorted(keys.tolist())
    assert not whole.any()


@pytest.mark.parametrize("gone", [0, 1])
def test_through_a_secure_sum(gone):
    messages = np.arange(30, dtype=np.uint16) % 4
    out = IBLTShuffler(SecureSum(random_state=gone), random_state=gone).shuffle(messages)
    assert np.bincount(out).tolist() == np.bincount(messages).tolist()


def test_what_is_left_is_reported_and_nothing_returned():
    messages = np.arange(1000, dtype=np.uint16)
    with pytest.raises(DecodeError, match=r"\d+ of 1000 messages could not be decoded .* in attempt 2"):
        IBLTShuffler(cells=900, attempts=2, random_state=0).shuffle(messages)
    assert issubclass(DecodeError, ValueError)


def test_failures_are_as_rare_as_the_proof_says():
    """n = 60, 141 cells, 2,000 tables: two keys in the same cells are the common failure, 1.7 %, +- 6 sigma."""
    failed = 0
    rng = np.random.default_rng(0)
    for salt in range(2000):
        keys = rng.integers(0, 1 << 63, (60, 3), dtype=np.uint64)
        failed += len(peeled(table_of(keys, 141, salt), 60, salt)) < 60
    expected = 2000 * (60 * 59 / 2) / 47**3
    assert expected - 6 * expected**0.5 < failed < expected + 6 * expected**0.5


def test_cells_that_no_user_wrote_are_reported(monkeypatch):
    keys = np.random.default_rng(0).integers(0, 1 << 63, (5, 3), dtype=np.uint64)
    table = table_of(keys)
    table[3, 0] += 1
    table[4, 1] += 1
    assert len(peeled(table, 5)) <= 5
    shuffler = IBLTShuffler(random_state=0)
    whole = shuffler._sum

    def spoiled(keys, salt):
        out = whole(keys, salt)
        out[np.flatnonzero(out[:, 0] == 0)[0], 1] = 1  # a cell without a count
        return out

    monkeypatch.setattr(shuffler, "_sum", spoiled)
    with pytest.raises(DecodeError):
        shuffler.shuffle(np.arange(10, dtype=np.uint8))


def test_sizes():
    shuffler = IBLTShuffler()
    assert [shuffler.n_cells(n) for n in (0, 100, 999, 1000, 1_000_000)] == [51, 201, 1551, 1551, 1_300_002]
    assert IBLTShuffler(cells=10).n_cells(5) == 12


def test_parameters_are_checked():
    for wrong in ({"cells": 2}, {"cells": 3.0}, {"attempts": 0}, {"secure_sum": SecureSum(32)}, {"secure_sum": 1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            IBLTShuffler(**wrong)


def test_kernels_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="fit"):
        kernel.insert(np.zeros((1, 2), np.uint64), 0, np.zeros((4, 4), np.uint64))
    with pytest.raises(ValueError, match="fit"):
        kernel.peel(np.zeros((6, 4), np.uint64), 0, np.empty(5, np.int64), np.zeros((1, 2), np.uint64))
