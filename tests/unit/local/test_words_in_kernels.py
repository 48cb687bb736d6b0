"""Kernels that make their words: the reports are those of words that were made before, whoever makes these."""

import numpy as np
import pytest

from dpestim import rng
from dpestim._core import grr, hcms, rare, unary
from dpestim.local import (
    GRRFrequencyEstimator,
    HCMSFrequencyEstimator,
    LGRRFrequencyEstimator,
    SDGRRFrequencyEstimator,
)
from dpestim.local.categories.cms import CMS
from dpestim.local.categories.grr import GRR
from dpestim.local.categories.hcms import HCMS
from dpestim.local.categories.lgrr import LGRR
from dpestim.local.categories.lunary import LOSUE, LOUE
from dpestim.local.categories.rappor import RAPPOR
from dpestim.local.categories.sdgrr import SDGRR
from dpestim.local.categories.unary import OUE, SUE
from dpestim.local.categories.urap import URAP
from dpestim.local.categories.urr import URR
from dpestim.local.columns import Columns
from dpestim.local.patterns import bit_patterns
from dpestim.rng import Stage, WordReader, Words, WordSource

own_aes = pytest.mark.skipif(not rare.HAS_AES, reason="the processor or the compiler has no instructions for AES")
LAWS = [GRR, LGRR, OUE, SUE, LOSUE, LOUE, RAPPOR, CMS]


def laws():
    for d in (2, 3, 64, 65, 1024, 20_000):
        yield from (cls.make(1.0, d) for cls in LAWS if cls is not RAPPOR or d < 500)
        low = tuple(range(d // 2))
        yield from (SDGRR.make(1.0, d, low), URAP.make(1.0, d, low), URR.make(1.0, d, low))
    yield GRR.make(1e-15, 300)  # two words a record
    yield from (OUE.make(12.0, 100), SUE.make(1e-3, 1000))  # (the latter has about 31 ties a tile)


def reports(law, first, n, seed=3):
    codes = np.random.default_rng(seed).integers(0, law.n_categories, n).astype(law.code_dtype)
    out = np.full((n, law.report_width), 170, law.report_dtype)
    law.privatize(codes, Words(WordSource(seed).reader(), 5, 2, first, n), out)
    return out


@own_aes
@pytest.mark.parametrize("law", list(laws()), ids=lambda law: f"{type(law).__name__} {law.n_categories}")
def test_reports_are_those_of_words_that_openssl_makes(monkeypatch, law):
    """From rows that begin within a pair of words, and over more than one tile; more ties than settled at a time."""
    n = 5001 if law.n_categories < 2000 else 21
    for first in (0, 1, 6, 7):
        monkeypatch.setattr(rng, "_OWN_MOST", 1 << 62)
        drawn = reports(law, first, n)
        monkeypatch.setattr(rng, "_OWN_MOST", 0)
        assert np.array_equal(drawn, reports(law, first, n)), first


def sketched(law, first, n, seed=3):
    """Return reports, and the counts of those that a fit would send."""
    codes = np.random.default_rng(seed).integers(0, law.n_categories, n).astype(law.code_dtype)
    out, counters = np.full((n, 3), 170, law.report_dtype), law.sent_counters(n)
    law.privatize(codes, Words(WordSource(seed).reader(), 5, 2, first, n), out)
    law.count_sent(codes, Words(WordSource(seed).reader(), 5, 2, first, n), counters)
    return out, law.counts_of_sent(counters)


@own_aes
@pytest.mark.parametrize("law", [HCMS(1.0, 9), HCMS(1e-9, 1024), HCMS(40.0, 300), HCMS(1.0, 1 << 20, 4, 64),
                                 HCMS(1.0, 300, 3, 64), HCMS(46.0, 300)], ids=str)
def test_reports_of_signs_are_those_of_words_that_openssl_makes(monkeypatch, law):
    """Rows begin at any half word and eighth of a counter; tiles have more ties than are settled at a time."""
    keep = law.weights.keep
    made = law.n_hashes != 3 and law.weights.n_words == 1  # (else there are whole words, as before)
    for n in (0, 1, 511, 2047, 2048, 2049, 9001):
        for first in (0, 1, 2, 3, 7, 8, 15, 16, 2049) if n > 2000 else (0, 5):
            monkeypatch.setattr(rng, "_OWN_MOST", 0)
            expected, wanted = sketched(law, first, n)
            monkeypatch.setattr(rng, "_OWN_MOST", 1 << 62)
            with monkeypatch.context() as patch:
                if made:
                    patch.delattr(WordReader, "dense")
                reports, counts = sketched(law, first, n)
            assert np.array_equal(reports, expected), (n, first)
            assert np.array_equal(counts, wanted), (n, first)
    if made:  # what the last rows met
        lanes = Words(WordSource(3).reader(), 5, 2, first, n).eighths(Stage.RESPONSE)
        assert np.add.reduceat(lanes == keep - 1 >> 56, np.arange(0, n, 2048)).max() > 8


@pytest.mark.parametrize("d", [9, 1024, 1 << 16])
def test_fits_of_signs_do_not_depend_on_threads_or_batches(monkeypatch, d):
    """Also with OpenSSL's words, and where a batch begins within a block."""
    def new(n_jobs):
        return HCMSFrequencyEstimator(1.0, categories=[np.arange(d)], random_state=1, n_jobs=n_jobs)

    X, found = np.random.default_rng(0).integers(0, d, (300_001, 1)), []
    for own in (rng._OWN_MOST, 0):
        monkeypatch.setattr(rng, "_OWN_MOST", own)
        for n_jobs in (1, 2):
            found += [new(n_jobs).fit(X)._counts[0], new(n_jobs).aggregate(new(n_jobs).privatize(X))._counts[0],
                      new(n_jobs).partial_fit(X[:100_007]).partial_fit(X[100_007:])._counts[0]]
    for counts in found[1:]:
        assert np.array_equal(counts, found[0])


@own_aes
def test_ties_that_64_digits_leave_open_are_told_and_settled_by_others(monkeypatch):
    """A boundary is put where a number is: the kernel says so, and all digits are asked for."""
    monkeypatch.setattr(rng, "_OWN_MOST", 1 << 62)
    law, n = OUE.make(1.0, 200), 300
    patterns, width = bit_patterns(law.false_threshold), law.report_width
    words, out = Words(WordSource(3).reader(), 5, 2, 1, n), np.empty((n, width), np.uint8)
    drawn = words.dense(Stage.RESPONSE, law.n_words).reshape(n, -1).copy()
    ties = np.empty(n * width + 1, np.uint32)
    ties = ties[: unary.draw(drawn, patterns.table, patterns.columns, out, ties)]
    row, group = divmod(int(ties[-1]), width)
    rest = words.sparse(Stage.RARE, 8 * width, np.array([8 * int(ties[-1])]))[0]
    number = int(drawn[row, 1:].view(np.uint16)[group]) << 48 | int(rest) >> 16
    edges = patterns.edges.copy()
    edges[np.searchsorted(edges, number)] = number
    rows, size = unary.tile_rows(width)
    cipher = words.cipher(Stage.RESPONSE, law.n_words) + words.rare_cipher(Stage.RARE, 8 * width)
    memory = np.empty(size, np.uint64), np.empty(rows * width + 1, np.uint32), np.empty(0, np.uint64)
    codes = np.zeros(n, np.uint8)
    for known, n_open in ((patterns.edges, 0), (edges, 1)):
        assert unary.encode(codes, True, cipher, patterns.table, patterns.columns, known, 200, law.true_threshold, out,
                            *memory) == n_open
    monkeypatch.setattr(rng, "_OWN_MOST", 0)
    expected = reports(law, 1, n)
    monkeypatch.setattr(rng, "_OWN_MOST", 1 << 62)

    def left_open(*args):
        args[8][...] = 85  # (reports: of no use)
        return 1

    monkeypatch.setattr(unary, "encode", left_open)
    assert np.array_equal(reports(law, 1, n), expected)


@own_aes
def test_kernels_refuse_what_does_not_fit():
    codes, out, cipher = np.zeros(4, np.uint8), np.zeros(4, np.uint8), (bytes(32), 0, 2, 0)
    for wrong in ((bytes(31), 0, 2, 0), (bytes(32), 0, 2, 2), (bytes(32), 0, 2, -1)):
        with pytest.raises(ValueError, match="differ in length"):
            grr.answer(codes, wrong, 1, 1 << 63, 1 << 63, out)
        with pytest.raises(ValueError, match="differ in length"):
            unary.toss(np.zeros((4, 1), np.uint8), wrong, 8, np.zeros((4, 1), np.uint8))
    with pytest.raises(ValueError, match="differ in length"):
        grr.answer(codes, cipher, 3, 1 << 63, 1 << 63, out)
    with pytest.raises(ValueError, match="differ in length"):
        grr.answer(codes, cipher, 1, 1 << 63, 1 << 63, out[:3])
    wide = np.zeros((1, 8 * unary.MOST_COINS + 1), np.uint8)
    with pytest.raises(ValueError, match="differ in length"):
        unary.toss(wide, cipher, 8 * wide.size, wide.copy())
    sketch, fields, counts = HCMS(1.0, 64), np.empty((4, 3), np.uint8), np.zeros(128, np.int64)
    given = [(bytes(32), 0, 2, 3, 0, 2, 15, 0, 2), None, 1 << 63, sketch.columns, 6]
    hcms.answer(codes, *given, fields)
    key, *streams = given[0]
    for place, wrong in ((0, (bytes(31), *streams)), (0, (key, 0, 2, 4, *streams[3:])), (0, given[0][:-1]),
                         (0, (key, 0, 2, -1, *streams[3:])), (0, (key, *streams[:5], 16, 0, 2)),
                         (0, (key, *streams[:5], -1, 0, 2)),
                         (1, np.zeros(4, np.uint64)), (2, 1 << 64), (2, 0), (3, sketch.columns.repeat(3, axis=0)),
                         (4, 0)):
        for kernel, out_of in ((hcms.answer, fields), (hcms.send, counts[: 6 if place == 3 else 128])):
            with pytest.raises(ValueError, match=r"must|values to unpack"):
                kernel(codes, *given[:place], wrong, *given[place + 1 :], out_of)
    law, memory = bit_patterns(1 << 62), [np.empty(unary.tile_rows(2)[1], np.uint64), np.empty(1 << 14, np.uint32)]
    given = [(*cipher, 0, 2), law.table, law.columns, law.edges, 16, 1, np.empty((4, 2), np.uint8), *memory,
             np.empty(0, np.uint64)]
    assert unary.encode(codes, True, *given) in (0, 1)
    for place, wrong in ((0, (bytes(31), *given[0][1:])), (1, law.table[:-1]), (3, law.edges[1:]), (4, 17), (4, 8),
                         (7, memory[0][1:]), (8, memory[1][:9]), (9, np.empty(3, np.uint64))):
        with pytest.raises(ValueError, match="differ in length"):
            unary.encode(codes, True, *given[:place], wrong, *given[place + 1 :])
    for n_parts in (0, 1, 3, 5):  # (what is behind a tuple is no part of it)
        wrong = (*cipher, 0)[:n_parts]
        with pytest.raises(ValueError, match="cipher must have"):
            grr.answer(codes, wrong, 1, 1 << 63, 1 << 63, out)
        with pytest.raises(ValueError, match="cipher must have"):
            unary.toss(np.zeros((4, 1), np.uint8), wrong, 8, np.zeros((4, 1), np.uint8))
        with pytest.raises(ValueError, match="cipher must have"):
            unary.encode(codes, True, wrong, *given[1:])


@pytest.mark.parametrize("cls", [GRRFrequencyEstimator, SDGRRFrequencyEstimator, LGRRFrequencyEstimator])
@pytest.mark.parametrize("dtype", [np.int64, np.uint16, np.float64])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_reports_in_place_of_codes_are_the_same_and_change_nobody_elses_array(cls, dtype, n_jobs):
    """`randomize` writes them to an array of its own."""
    X = np.random.default_rng(0).integers(0, 300, (600_000, 1)).astype(dtype)
    kept = X.copy()
    more = {"low_sensitivity": [np.arange(100)]} if cls is SDGRRFrequencyEstimator else {}
    est = cls(1.0, categories=[np.arange(300)], random_state=1, n_jobs=n_jobs, **more)
    data, columns, _ = est._read(X)
    expected = columns.randomize(data, WordSource(1), 0, n_jobs)
    assert np.array_equal(data[0], kept[:, 0])
    assert columns.columns[0].reads_afresh
    assert np.array_equal(est.privatize(X), expected)
    X.flags.writeable = False
    assert np.array_equal(est.privatize(X), expected)
    assert np.array_equal(X, kept)


def test_codes_of_others_are_never_written_to(monkeypatch):
    """Two columns share memory; what a law of another kind, or an encoder of another kind, reads is not ours."""
    replaced = []
    monkeypatch.setattr("dpestim.local.columns.Overwritten", lambda values: replaced.append(values) or values)
    X = np.random.default_rng(0).integers(0, 300, (100, 2))
    GRRFrequencyEstimator(1.0, categories=[np.arange(300)] * 2).privatize(X)
    assert not replaced
    est = GRRFrequencyEstimator(1.0, categories=[np.arange(300)])
    est.privatize(X[:, :1])
    assert len(replaced) == 1
    (column,) = est._columns_now().columns
    monkeypatch.setattr(type(column), "reads_afresh", False)
    codes = np.zeros(100, np.uint16)
    Columns([column]).randomize_spent([codes], WordSource(0), 0, 1)
    assert len(replaced) == 1
    assert not codes.any()
