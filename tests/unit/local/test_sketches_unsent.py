"""Hadamard sketches: reports of parts of words, counted unsent; bits of many buckets are added at once."""

import pickle

import numpy as np
import pytest

from dpestim._core import hcms, sketch
from dpestim.base import PrivateEstimator
from dpestim.local import HCMSFrequencyEstimator
from dpestim.local.categories.hcms import HCMS, Quarters
from dpestim.local.columns import counts_unsent
from dpestim.privacy.exact import WORD
from dpestim.rng import Stage, WordSource

#: More rows than a block of words has.
MANY = HCMS(1.0, 9).block_rows + 1234


@pytest.mark.parametrize(("d", "n", "more"), [
    (9, 5000, {}),
    (1 << 16, MANY, {}),  # counters are bytes first
    (1 << 16, 30_000, {"epsilon": 46.0}),  # two words a sign
    (1 << 20, 3000, {"n_hashes": 7, "n_buckets": 64}),
    (1 << 16, 40_000, {"n_hashes": 32_769, "n_buckets": 2}),
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
@pytest.mark.parametrize("many", [0, 1, 4])
def test_bytes_that_overflow_lose_nothing(n_words, many):
    law, n = HCMS(1.0, 16), 1500
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 16, n).astype(law.code_dtype)
    seeds = rng.integers(0, 1 << 60, n, dtype=np.uint64)  # the first row alone
    words, keep = rng.integers(0, 1 << 64, n * n_words, dtype=np.uint64), (1 << 64 * n_words) // 3
    out, counts = np.empty((n, 3), np.uint8), np.full(32, 5)
    full = np.zeros(n // (4 if many == 4 else 256) + 2, np.uint32)
    lanes = np.zeros(32 // (many or 1), np.uint8)
    hcms.answer(codes, seeds, words, keep, law.columns, 4, out)
    hcms.send(codes, seeds, words, keep, law.columns, 4, *((lanes, full, many == 4) if many else (counts,)))
    if many:
        sketch.settle(lanes, full, counts, many == 4)
        counts += 5
    assert counts.max() > 512
    np.testing.assert_array_equal(counts, 5 + np.bincount(2 * out[:, 1].astype(int) + out[:, 2], minlength=32))
    for wrong in (lambda: hcms.send(codes, seeds[1:].copy(), words, keep, law.columns, 4, counts),
                  lambda: hcms.send(codes, seeds, words[1:].copy(), keep, law.columns, 4, counts),
                  lambda: hcms.send(codes, seeds, words, keep, law.columns, 3, counts),
                  lambda: hcms.send(codes, seeds, words, keep, law.columns[:0].copy(), 4, counts)):
        with pytest.raises(ValueError, match=r"must|differ"):
            wrong()


def test_a_sub_class_that_sends_or_counts_in_its_own_way_is_asked():
    assert counts_unsent(HCMS)
    for own in ("privatize", "count"):
        assert not counts_unsent(type("Other", (HCMS,), {own: lambda self, *args: None}))


@pytest.mark.parametrize("keep", [(1 << 64) // 3, 1 << 63, (1 << 63) + 1, (77 << 56) - 1, 1, (1 << 64) - 1])
def test_reports_of_half_words_and_first_digits_are_those_of_whole_words(keep):
    rng, n, first = np.random.default_rng(keep % 97), 1300, keep - 1 >> 56
    law = HCMS(1.0, 64)
    codes = rng.integers(0, 64, n).astype(law.code_dtype)
    halves, words = rng.integers(0, 1 << 32, n, dtype=np.uint32), rng.integers(0, 1 << 64, n, dtype=np.uint64)
    words[rng.random(n) < 0.3] = keep - 1
    words[rng.random(n) < 0.1] = min(keep, WORD - 1)
    ties = rng.random(n) < 0.3
    words[ties] = words[ties] >> np.uint64(8) | np.uint64(first << 56)
    lanes = (words >> np.uint64(56)).astype(np.uint8)
    kept = np.flatnonzero((lanes == first) & (words < np.uint64(keep)))
    whole, parts = np.empty((n, 3), np.uint8), np.full((n, 3), 9, np.uint8)
    hcms.answer(codes, halves.astype(np.uint64) << np.uint64(32), words, keep, law.columns, 6, whole)
    hcms.answer(codes, halves, (lanes, kept), keep, law.columns, 6, parts)
    np.testing.assert_array_equal(parts, whole)
    np.testing.assert_array_equal(parts[:, 1], halves >> 26)
    counts = np.zeros(128, np.int64)
    hcms.send(codes, halves, (lanes, kept), keep, law.columns, 6, counts)
    np.testing.assert_array_equal(counts, np.bincount(2 * whole[:, 1].astype(int) + whole[:, 2], minlength=128))


def test_half_words_and_first_digits_that_do_not_fit_are_refused():
    law, three = HCMS(1.0, 64), HCMS(1.0, 64, 3, 16)
    codes, halves, lanes = np.zeros(9, np.uint8), np.zeros(9, np.uint32), np.zeros(9, np.uint8)
    none, out, keep = np.zeros(0, np.int64), np.empty((9, 3), np.uint8), 1 << 63
    for own, seeds, response, limit, log_m in (
        (law, halves[1:], (lanes, none), keep, 6), (law, halves, (lanes[1:], none), keep, 6),
        (law, halves, (lanes, none), 1 << 64, 6), (law, halves, (lanes, none), 0, 6),
        (law, halves, (lanes, np.array([9])), keep, 6), (law, halves, (lanes, np.array([-1])), keep, 6),
        (law, halves, (lanes, np.array([4, 4])), keep, 6), (three, halves, (lanes, none), keep, 4),
    ):
        with pytest.raises(ValueError, match=r"must|differ"):
            hcms.answer(codes, seeds.copy(), response, limit, own.columns, log_m, out)


def test_lists_of_full_counters_that_do_not_fit_are_refused():
    reports, lanes, counts = np.zeros((700, 3), np.uint8), np.zeros(32, np.uint8), np.zeros(32, np.int64)
    for full in (np.zeros(0, np.uint32), np.zeros(1, np.uint32), np.zeros(3, np.uint32), np.full(4, 9, np.uint32)):
        lanes[:] = 0
        with pytest.raises(ValueError, match="full counters"):
            hcms.tally(reports, 4, lanes, full)
    for full in ([], [1], [32, 1], [3, 9]):
        with pytest.raises(ValueError, match="full counters"):
            sketch.settle(lanes, np.array(full, np.uint32), counts)
    for short in ((lanes[:31], np.zeros(1, np.uint32), counts), (lanes, np.zeros(1, np.uint32), counts, True),
                  (lanes[:7], np.zeros(1, np.uint32), counts[:30].copy(), True)):
        with pytest.raises(ValueError, match="do not fit"):
            sketch.settle(*short)
    for wrong in ((lanes[:8], None), (lanes[:8], np.zeros(176, np.uint32))):  # a list of one in 4 and one more, or none
        with pytest.raises(ValueError, match=r"full counters|one entry"):
            hcms.tally(reports, 4, *wrong, True)
    hcms.tally(reports, 4, np.zeros(8, np.uint8), np.zeros(177, np.uint32), True)


def test_a_seeded_report_is_half_a_word_and_a_number_of_64_digits_a_row():
    law, n = HCMS(1.007, 1 << 16), 3000  # (of what the first digits leave open half is below)
    codes, out = np.arange(n).astype(law.code_dtype), np.empty((n, 3), law.report_dtype)
    law.privatize(codes, WordSource(3).reader().words(5, 2, 7, n), out)
    words = WordSource(3).reader().words(5, 2, 7, n)
    halves, lanes = words.halves(Stage.SEED), words.eighths(Stage.RESPONSE)
    rest, ties = words.sparse(Stage.RARE, 1, np.arange(n)), [0, 0]
    for i, (hash_, row, sign) in enumerate(out.tolist()):
        number = int(lanes[i]) << 56 | int(rest[i]) >> 8
        if lanes[i] == law.weights.keep >> 56:
            ties[number >= law.weights.keep] += 1
        assert (hash_, row) == (0, halves[i] >> 16)
        assert sign == (i & row).bit_count() % 2 ^ (number >= law.weights.keep)
    assert min(ties) > 1
    parts = np.empty_like(out)  # of a block, whatever others ask for
    for low, high in ((0, 1), (1, 1700), (1700, n)):
        law.privatize(codes[low:high], WordSource(3).reader().words(5, 2, 7 + low, high - low), parts[low:high])
    np.testing.assert_array_equal(parts, out)


@pytest.mark.parametrize("d", [16, 1 << 16])
def test_a_server_counts_what_does_not_lie_side_by_side(d):
    law = HCMS(4.0, d)
    reports = np.zeros((1 << 17, 6), np.uint32)
    reports[:, 1] = np.random.default_rng(0).integers(0, d, len(reports))
    wanted = np.bincount(2 * reports[:, 1], minlength=law.n_counts)
    part = reports[:, :3]
    for own in (part, np.asfortranarray(part), np.ascontiguousarray(part, law.report_dtype)):
        np.testing.assert_array_equal(law.counted(own), wanted)
        counts = np.full(law.n_counts, 4)
        law.count(np.ascontiguousarray(own, law.report_dtype), counts)
        np.testing.assert_array_equal(counts, 4 + wanted)


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


@pytest.mark.parametrize(("n", "kept"), [*((70_000, kept) for kept in (0, 2, 3, 4, 255, 300)),
                                         *((300_000, kept) for kept in (0, 250, 256, 300))])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_counts_that_are_bytes_add_up_as_integers(n, kept, n_jobs):
    """Whatever is done with a state: bytes that are added, or subtracted from each other, would run over."""
    d, new = 1 << 17, lambda: HCMSFrequencyEstimator(4.0, categories=[range(d)], n_jobs=n_jobs)
    reports = np.zeros((n, 3), np.uint32)
    reports[kept:, 1] = (np.arange(n - kept) + 5) % d
    reports[::2, 2] = 1
    reports[:kept, 2] = 0
    wanted = np.bincount(2 * reports[:, 1] + reports[:, 2], minlength=2 * d)
    once = new().aggregate(reports)
    first = vars(once)["_counts"][0]
    assert type(first) is Quarters if n <= 2 * d else first.dtype == (np.uint8 if kept < 256 else np.int64)
    if n <= 2 * d:  # (two digits a counter until somebody reads them)
        np.testing.assert_array_equal(first, wanted)
        assert len(first) == 2 * d
    law, counts = once.randomizers_[0], once._columns.count(reports, n_jobs)
    for own in (counts[0], once._counts[0], pickle.loads(pickle.dumps(once))._counts[0]):
        assert own.dtype == np.int64
        np.testing.assert_array_equal(own, wanted)
    np.testing.assert_array_equal(new().aggregate(reports).estimate([0, 1, 9])[0],
                                  law.estimate_of(np.array([0, 1, 9], np.uint32), wanted, n))
    twice = new().aggregate(reports).aggregate(reports.copy())
    np.testing.assert_array_equal(twice._counts[0], 2 * wanted)
    merged = new().aggregate(reports).merge(new().aggregate(reports.copy()))
    np.testing.assert_array_equal(merged._counts[0], 2 * wanted)
    state = vars(pickle.loads(pickle.dumps(new().aggregate(reports))))  # (an older version adds what it finds)
    assert state["_counts"][0].dtype == np.int64


def test_a_tile_of_reports_before_and_after_what_is_fetched_ahead():
    """Each number of rows around a tile, and few counters in four tables, whose last tile is no multiple of four."""
    rng = np.random.default_rng(0)
    for dtype in (np.uint8, np.uint16, np.uint32):
        reports = np.zeros((9000, 3), dtype)
        reports[:, 1], reports[:, 2] = rng.integers(0, 64, 9000), rng.integers(0, 2, 9000)
        for n in (0, 1, 15, 127, 128, 129, 255, 271, 272, 273, 399, 511, 512, 513, 8997):
            counts = np.full(128, 3)
            assert hcms.tally(reports[:n], 6, counts)
            np.testing.assert_array_equal(
                counts, 3 + np.bincount(2 * reports[:n, 1].astype(int) + reports[:n, 2], minlength=128))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize(("k", "log_m"), [(1, 0), (1, 8), (1, 10), (2, 5), (4, 8), (256, 2), (3, 5)])
def test_few_counters_of_every_number_of_hashes_and_rows(dtype, k, log_m):
    """Against NumPy; a field beyond its range is refused in any report, the last one included."""
    rng, m, n = np.random.default_rng(k + log_m), 1 << log_m, 9003
    limits = [min(limit, 1 << 8 * np.dtype(dtype).itemsize) for limit in (k, m, 2)]
    reports = rng.integers(0, limits, (n, 3)).astype(dtype)
    hashes, rows, signs = reports.T.astype(np.int64)
    counts = np.full(2 * k * m, 7)
    assert hcms.tally(reports, log_m, counts)
    np.testing.assert_array_equal(counts, 7 + np.bincount(2 * (hashes * m + rows) + signs, minlength=2 * k * m))
    for place in (0, 1, 4000, n - 3, n - 1):
        for field, limit in enumerate((k, m, 2)):
            for value in {limit, np.iinfo(dtype).max}:
                if limit <= value <= np.iinfo(dtype).max:
                    bad = reports.copy()
                    bad[place, field] = value
                    assert not hcms.tally(bad, log_m, counts.copy())


def test_bytes_of_several_threads_of_a_server_are_added_as_integers(monkeypatch):
    monkeypatch.setattr("dpestim.local.columns._worth", lambda *_: 2)
    reports = np.zeros((70_000, 3), np.uint32)
    reports[200:-200, 1] = np.arange(69_600) + 1
    est = HCMSFrequencyEstimator(4.0, categories=[range(1 << 17)], n_jobs=2).aggregate(reports)
    assert est._counts[0][0] == 400
    assert est._counts[0].sum() == 70_000


def test_a_pickle_that_is_made_while_reports_are_counted_holds_one_state(monkeypatch):
    """Counts are those of the other numbers in it, though another thread adds reports before it is complete."""
    reports = np.zeros((1 << 16, 3), np.uint32)
    reports[:, 1] = np.arange(1 << 16)
    est = HCMSFrequencyEstimator(4.0, categories=[range(1 << 17)]).aggregate(reports)
    state_of = PrivateEstimator.__getstate__

    def slowly(self):
        state = state_of(self)
        self.aggregate(reports)
        return state

    monkeypatch.setattr(PrivateEstimator, "__getstate__", slowly)
    state = est.__getstate__()
    assert state["_n_users"] == state["_counts"][0].sum() == 1 << 16
    assert state["_counts"][0].dtype == np.int64
    assert est.n_users_ == est._counts[0].sum() == 1 << 17
