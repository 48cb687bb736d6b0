"""Fits of Hadamard sketches count what would be sent; a server adds bits of many buckets at once."""

import numpy as np
import pytest

from dpestim._core import sketch
from dpestim.local import HCMSFrequencyEstimator
from dpestim.local.categories.cms import HCMS
from dpestim.local.columns import counts_unsent

#: More rows than a block of words has.
MANY = HCMS(1.0, 9).block_rows + 1234


@pytest.mark.parametrize(("d", "n", "more"), [
    (9, 5000, {}),
    (1 << 16, MANY, {}),  # counters are bytes first
    (1 << 16, 30_000, {"epsilon": 46.0}),  # two words a sign
    (1 << 20, 3000, {"n_hashes": 7, "n_buckets": 64}),
    ("open", 3000, {}),
])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_fit_counts_what_would_be_sent(d, n, more, n_jobs):
    def new(**own):
        categories = None if d == "open" else [np.arange(d)]
        return HCMSFrequencyEstimator(**{"epsilon": 4.0, "categories": categories, "random_state": 3, **more, **own})

    X = np.random.default_rng(0).integers(0, 1000 if d == "open" else d, (n, 1))
    reports = new().privatize(X)
    law = new().fit(X[:1]).randomizers_[0]
    cells = (reports[:, 0].astype(np.int64) * law.n_buckets + reports[:, 1]) * 2 + reports[:, 2]
    wanted = np.bincount(cells, minlength=law.n_counts)
    np.testing.assert_array_equal(new(n_jobs=n_jobs).fit(X)._counts[0], wanted)
    np.testing.assert_array_equal(new(n_jobs=n_jobs).aggregate(reports)._counts[0], wanted)
    half = new(n_jobs=n_jobs).partial_fit(X[: n // 3]).partial_fit(X[n // 3 :])
    np.testing.assert_array_equal(half._counts[0], wanted)


@pytest.mark.parametrize("n_words", [1, 2])
@pytest.mark.parametrize("lanes", [0, 32])
def test_bytes_that_overflow_lose_nothing(n_words, lanes):
    law, n = HCMS(1.0, 16), 1500
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 16, n).astype(law.code_dtype)
    seeds = rng.integers(0, 1 << 60, n, dtype=np.uint64)  # the first row alone
    words, keep = rng.integers(0, 1 << 64, n * n_words, dtype=np.uint64), (1 << 64 * n_words) // 3
    out, counts, bytes_ = np.empty((n, 3), np.uint8), np.full(32, 5), np.zeros(lanes, np.uint8)
    sketch.answer(codes, seeds, words, keep, law.columns, 4, out)
    sketch.send(codes, seeds, words, keep, law.columns, 4, bytes_, counts)
    if lanes:
        sketch.settle(bytes_, counts)
    assert counts.max() > 512
    np.testing.assert_array_equal(counts, 5 + np.bincount(2 * out[:, 1].astype(int) + out[:, 2], minlength=32))
    for wrong in (lambda: sketch.send(codes, seeds[1:].copy(), words, keep, law.columns, 4, bytes_, counts),
                  lambda: sketch.send(codes, seeds, words[1:].copy(), keep, law.columns, 4, bytes_, counts),
                  lambda: sketch.send(codes, seeds, words, keep, law.columns, 3, bytes_, counts),
                  lambda: sketch.send(codes, seeds, words, keep, law.columns[:0].copy(), 4, bytes_, counts),
                  lambda: sketch.send(codes, seeds, words, keep, law.columns, 4, np.zeros(31, np.uint8), counts),
                  lambda: sketch.settle(np.zeros(31, np.uint8), counts)):
        with pytest.raises(ValueError, match=r"must|differ"):
            wrong()


def test_a_sub_class_that_sends_or_counts_in_its_own_way_is_asked():
    assert counts_unsent(HCMS)
    for own in ("privatize", "count"):
        assert not counts_unsent(type("Other", (HCMS,), {own: lambda self, *args: None}))


@pytest.mark.parametrize("m", [1, 7, 8, 9, 64, 250, 256, 500])
@pytest.mark.parametrize("k", [1, 3])
def test_bits_of_every_place_are_added_to_their_hash(m, k):
    """Against NumPy; every hash has more reports than a byte holds, and one that does not exist is refused anywhere."""
    rng, n, width = np.random.default_rng(m), 1100, (m + 7) // 8
    bits = rng.random((n, m)) < rng.random(m)
    hashes = rng.integers(0, k, n)
    packed = np.packbits(bits, axis=1, bitorder="little")
    reports = np.column_stack([hashes & 255, hashes >> 8, packed]).astype(np.uint8)
    counts = np.full((k, m), 9)
    assert sketch.count(reports, counts)
    np.testing.assert_array_equal(counts, 9 + np.array([bits[hashes == j].sum(axis=0) for j in range(k)]))
    assert reports.shape[1] == 2 + width
    for place in (0, 700, n - 1):
        bad = reports.copy()
        bad[place, 0] = k
        assert not sketch.count(bad, counts.copy())
