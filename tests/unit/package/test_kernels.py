"""Kernels word by word, against plain Python integers."""

import numpy as np
import pytest
import scipy.linalg

from dpestim._core import binary, cells, encode, grr, hadamard, olh, rows, subset, unary
from dpestim.privacy import category_weights, exact

WORD = 1 << 64


def random_words(n, seed=0):
    return np.random.default_rng(seed).integers(0, WORD, n, dtype=np.uint64, endpoint=False)


def grr_answer(x, u, keep, other):
    if u < keep:
        return x
    k = (u - keep) // other
    return k if k < x else k + 1


@pytest.mark.parametrize(("epsilon", "d"), [(1.0, 2), (1.0, 4), (0.01, 1000), (5.0, 70_000), (30.0, 200), (40.0, 3)])
def test_grr_answers_every_word_as_the_law_says(epsilon, d):
    weights = category_weights.grr_weights(exact.canonical_epsilon(epsilon), d)
    assert weights.n_words == 1
    keep, other = weights.keep, weights.other
    edges = [0, 1, keep - 1, keep, keep + 1, WORD - 1, WORD - 2]
    for k in (1, 2, d // 2, d - 2, d - 1):
        edges += [(keep + k * other + e) % WORD for e in (-1, 0, 1)]
    words = np.concatenate([np.array(edges, dtype=np.uint64), random_words(500)])
    dtype = np.uint8 if d <= 256 else np.uint16 if d <= 65536 else np.uint32
    for x in {0, 1, d // 2, d - 1}:
        out = np.empty(words.size, dtype)
        grr.privatize(np.full(words.size, x, dtype), words, keep, other, out)
        assert out.tolist() == [grr_answer(x, int(u), keep, other) for u in words]


@pytest.mark.parametrize("other", [5, (1 << 32) + 1, (1 << 33) - 1, 1 << 33, (1 << 33) + 1, (1 << 34) - 1, 1 << 34,
                                   0x2C000001D, (1 << 45) + 12_345, (1 << 63) - 1, 1 << 63])
def test_grr_quotients_at_every_size_of_the_divisor(other):
    # the kernel divides by its own means from 2**33 on: all multiples of the divisor that matter, and their neighbours
    most = (1 << 32) - 2
    ks = [k for k in (0, 1, 2, 3, 1000, most // 3, most - 1, most) if k * other < WORD]
    rests = [k * other + e for k in ks for e in (-1, 0, 1, (1 << 32) - 1, 1 << 32)]
    rests = [r for r in [*rests, *random_words(500).tolist()] if 0 <= r < min(WORD, (most + 1) * other)]
    keep = WORD - 1 - max(rests)
    words = np.array([keep + r for r in rests], np.uint64)
    for x in (0, 7, most + 1):
        out = np.empty(len(words), np.uint32)
        grr.privatize(np.full(len(words), x, np.uint32), words, keep, other, out)
        assert out.tolist() == [grr_answer(x, int(u), keep, other) for u in words]


def test_grr_with_two_words():
    weights = category_weights.grr_weights(exact.canonical_epsilon(1e-6), 1 << 32)
    assert weights.n_words == 2
    keep, other = weights.keep, weights.other
    d = 1 << 32
    us = [0, keep - 1, keep, keep + 1, weights.total - 1, keep + other - 1, keep + other, keep + (d - 2) * other]
    us += [int(h) << 64 | int(w) for h, w in random_words(200).reshape(-1, 2)]
    words = np.array([[u >> 64, u % WORD] for u in us], dtype=np.uint64).reshape(-1)
    for x in (0, 5, d - 1):
        out = np.empty(len(us), np.uint32)
        grr.privatize(np.full(len(us), x, np.uint32), words, keep, other, out)
        assert out.tolist() == [grr_answer(x, u, keep, other) for u in us]


@pytest.mark.parametrize("n", [1, 4095, 4096, 4097, 10_003])
@pytest.mark.parametrize("d", [1, 3, 255, 256, 300])
def test_grr_count_of_bytes(n, d):
    reports = np.random.default_rng(n).integers(0, min(d, 256), n).astype(np.uint8)
    counts = np.full(d, 5)
    assert grr.count(reports, counts)
    assert np.array_equal(counts, 5 + np.bincount(reports, minlength=d))
    for place in {0, n // 2, n - 1} if d < 256 else ():  # in each lane, and in what is left of eights
        for wrong in (d, 255):
            bad = reports.copy()
            bad[place] = wrong
            assert not grr.count(bad, counts)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 1001])
def test_grr_count(n):
    reports = np.random.default_rng(n).integers(0, 7, n).astype(np.uint8)
    counts = np.ones(7, np.int64)
    assert grr.count(reports, counts)
    assert (counts - 1).tolist() == np.bincount(reports, minlength=7).tolist()


@pytest.mark.parametrize("open_share", [0, 0.004, 1])
@pytest.mark.parametrize(("n", "width"), [(1, 1), (7, 1), (50, 3), (1, 63), (3, 64), (9, 65), (700, 17), (2, 5000)])
def test_unary_draw_looks_up_every_pattern_and_lists_the_open_ones(n, width, open_share):
    columns = np.random.default_rng(width).integers(0, 255, (3, 256)).astype(np.uint8)
    columns[0, np.random.default_rng(n).random(256) < open_share] = 255
    table = np.where(np.arange(256) < columns[2, :, None], columns[0, :, None], columns[1, :, None]).reshape(-1)
    words = random_words(n * (1 + -(-width // 4)), seed=n).reshape(n, -1)
    groups = words[:, 1:].view(np.uint16)[:, :width]
    out, ties = np.empty((n, width), np.uint8), np.empty(n * width + 1, np.uint32)
    ties = ties[: unary.draw(words, table, columns, out, ties)]
    assert np.array_equal(out, table[groups])
    assert ties.tolist() == np.flatnonzero(out == 255).tolist()


@pytest.mark.parametrize("ends", ["spread", "all the same", "at the end"])
def test_unary_settle_counts_boundaries_below_64_digits(ends):
    n, width = 30, 9
    edges = np.sort(random_words(255, seed=5))
    if ends != "spread":
        edges[:] = {"all the same": 1 << 63, "at the end": WORD - 1}[ends]
    words = random_words(n * 4, seed=6).reshape(n, 4)
    groups = words[:, 1:].view(np.uint16)
    rare = random_words(n * width, seed=7)
    near = np.resize(edges, n * width) + (np.arange(n * width) % 3 - 1).astype(np.uint64)  # one less, same, one more
    groups[:, :width] = (near >> np.uint64(48)).reshape(n, width)
    rare[:] = near << np.uint64(16) | rare >> np.uint64(48)
    ties = np.arange(n * width, dtype=np.uint32)[::2].copy()
    out = np.full((n, width), 170, np.uint8)
    asked = ties.tolist()
    n_open = unary.settle(words, ties, rare[::2], edges, out)
    numbers, edges = near.tolist(), edges.tolist()
    assert ties[:n_open].tolist() == [t for t in asked if numbers[t] in edges]
    expected = [170 if t not in asked or numbers[t] in edges else sum(e < numbers[t] for e in edges)
                for t in range(n * width)]
    assert out.ravel().tolist() == expected
    assert n_open > 30


@pytest.mark.parametrize("d", [2, 3, 8, 63, 64, 65, 1023])
def test_unary_finish_puts_the_true_bit_and_drops_the_surplus(d):
    n, width = 40, -(-d // 8)
    words = random_words(2 * n, seed=d).reshape(n, 2)
    threshold = int(words[3, 0])
    codes = (np.arange(n) * 7 % d).astype(np.uint16)
    out = np.random.default_rng(d).integers(0, 256, (n, width)).astype(np.uint8)
    expected = np.unpackbits(out, axis=1, bitorder="little")
    expected[:, d:] = 0
    expected[np.arange(n), codes] = [int(u) < threshold for u in words[:, 0]]
    unary.finish(codes, words, d, threshold, out)
    assert np.array_equal(np.unpackbits(out, axis=1, bitorder="little"), expected)


@pytest.mark.parametrize("width", [1, 2, 7, 63, 65, 100, 127, 128, 129, 200, 1023, 1024, 1025, 1500])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 255, 4081])
def test_unary_count_is_the_column_sum(width, n):
    reports = np.random.default_rng(width * n).integers(0, 256, (n, width)).astype(np.uint8)
    counts = np.full(8 * width, 5, np.int64)
    unary.count(reports, counts)
    assert np.array_equal(counts - 5, np.unpackbits(reports, axis=1, bitorder="little").sum(axis=0, dtype=np.int64))


@pytest.mark.parametrize("n", [4079, 4080, 4081, 8161])
@pytest.mark.parametrize("width", [128, 300])
def test_unary_count_at_the_end_of_a_chunk(width, n):
    counts = np.zeros(8 * width, np.int64)
    unary.count(np.full((n, width), 255, np.uint8), counts)
    assert set(counts.tolist()) == {n}


@pytest.mark.parametrize("bits", [0, 255])
def test_unary_count_at_the_largest_sums(bits):
    reports = np.full((70_001, 2), bits, np.uint8)
    counts = np.zeros(16, np.int64)
    unary.count(reports, counts)
    assert set(counts.tolist()) == {70_001 if bits else 0}


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("g", [2, 3, 4, 21, 1000, (1 << 31) - 1])
def test_olh_against_python_integers(bits, g):
    n, d, mod = 40, 37, 1 << bits
    dtype = np.uint32 if bits == 32 else np.uint64
    weights = category_weights.grr_weights(exact.canonical_epsilon(2.0), g)
    seeds = random_words(n * (bits // 32), seed=g)
    words = random_words(n * weights.n_words, seed=g + 1)
    codes = (np.arange(n) % d).astype(np.uint8)
    reports = np.empty((n, 3), dtype)
    olh.privatize(codes, seeds, words, g, weights.keep, weights.other, reports)
    if bits == 32:
        pairs = [(int(s) % mod, int(s) >> 32) for s in seeds]
    else:
        pairs = [(int(a), int(b)) for a, b in seeds.reshape(-1, 2)]
    assert [(int(a), int(b)) for a, b, _ in reports] == pairs

    def bucket(v, a, b):
        return ((a * v + b) % mod) * g >> bits

    hashed = np.empty(n, dtype)
    olh.bucket(codes, reports, g, hashed)
    assert hashed.tolist() == [bucket(int(c), *p) for c, p in zip(codes, pairs)]
    us = words.reshape(n, -1)
    us = [int(w[0]) if weights.n_words == 1 else (int(w[0]) << 64) | int(w[1]) for w in us]
    expected = [grr_answer(int(h), u, weights.keep, weights.other) for h, u in zip(hashed, us)]
    assert reports[:, 2].tolist() == expected
    support = np.array([[bucket(v, *p) == y for v in range(d)] for p, y in zip(pairs, expected)])
    out = np.empty((n, d), np.uint8)
    olh.support(reports, g, out)
    assert np.array_equal(out, support)
    counts = np.zeros(d, np.int64)
    olh.count(np.tile(reports, (60, 1)), g, counts)  # more users than a tile holds
    assert np.array_equal(counts, 60 * support.sum(axis=0))


@pytest.mark.parametrize(("dtype", "bits"), [(np.uint32, 32), (np.uint64, 64)])
@pytest.mark.parametrize("g", [2, 3, 1024, 1025])
def test_olh_counts_at_the_ends_of_buckets(dtype, bits, g):
    """Hashes on both sides of every end, and numbers of values and users on both sides of what is taken at a time."""
    ends = [(-(-(k << bits) // g) + e) % (1 << bits) for k in {0, 1, 2, g // 2, g - 1} for e in (-1, 0, 1)]
    reports = np.array([(a, b, y) for a in (0, 1, (1 << bits) - 1) for b in ends for y in {0, 1, g - 1}], dtype)
    for d, times in ((1, 1), (7, 20), (8, 60), (9, 1), (16, 1)):
        held = np.ones(d, np.int64)
        olh.count(np.tile(reports, (times, 1)), g, held)
        buckets = [[((int(a) * v + int(b)) % (1 << bits)) * g >> bits for v in range(d)] for a, b, _ in reports]
        assert held.tolist() == (1 + times * (np.array(buckets) == reports[:, 2:]).sum(0)).tolist()


@pytest.mark.parametrize("log_n", [0, 1, 2, 3, 5, 7, 10, 13, 14, 16])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_fwht_is_multiplication_by_the_hadamard_matrix(log_n, dtype):
    n = 1 << log_n
    a = np.random.default_rng(log_n).integers(-1000, 1000, (3, n)).astype(dtype)
    out = a.copy()
    hadamard.fwht(out)
    if n <= 1024:
        assert np.array_equal(out, a @ scipy.linalg.hadamard(n).astype(dtype))
    hadamard.fwht(out)
    assert np.array_equal(out, n * a)


@pytest.mark.parametrize("bad", [0, 3, 12])
def test_fwht_refuses_other_lengths(bad):
    with pytest.raises(ValueError, match="power of two"):
        hadamard.fwht(np.zeros((1, bad), np.int64))


@pytest.mark.parametrize(
    ("epsilon", "n_blocks", "half"), [(1.0, 1, 8), (3.0, 4, 2), (5.0, 8, 1), (1e-9, 1, 1 << 20), (1e-12, 1, 1 << 30)]
)
def test_hadamard_symbols_against_the_matrix(epsilon, n_blocks, half):
    weights = category_weights.grr_weights(exact.canonical_epsilon(epsilon), 2 * n_blocks, half)
    assert weights.n_words == (2 if epsilon < 1e-10 else 1)
    size, log_half, log_blocks = 2 * half, half.bit_length() - 1, n_blocks.bit_length() - 1
    d = min(n_blocks * (size - 1), 200)
    drawn = random_words(400 * weights.n_words, seed=half)
    us = drawn.reshape(400, -1)
    us = [int(u[0]) if weights.n_words == 1 else (int(u[0]) << 64) | int(u[1]) for u in us]
    for x in {0, 1, d // 2, d - 1}:
        own, j = x % n_blocks, x // n_blocks + 1
        out = np.empty(400, np.uint32)
        codes = np.full(400, x, np.uint8)
        hadamard.privatize(codes, drawn, weights.keep, weights.other, log_blocks, log_half, out)
        for u, symbol in zip(us, out.tolist()):
            v, r = divmod(u, half)
            slot = 0 if v < weights.keep else 1 + (v - weights.keep) // weights.other
            block, t = divmod(symbol, size)
            if slot < 2:
                assert block == own
                assert (j & t).bit_count() % 2 == slot
                low = (j & -j).bit_length() - 1
                assert (t >> (low + 1) << low) | (t & ((1 << low) - 1)) == r  # a bijection of r
            else:
                other = [b for b in range(n_blocks) if b != own][(slot - 2) // 2]
                assert (block, t) == (other, (slot % 2) * half + r)
    support = np.empty((400, d), np.uint8)
    hadamard.support(out, log_blocks, log_half, support)
    for symbol, row in zip(out[:20].tolist(), support):
        block, t = divmod(symbol, size)
        wanted = [x % n_blocks == block and ((x // n_blocks + 1) & t).bit_count() % 2 == 0 for x in range(d)]
        assert row.tolist() == wanted


@pytest.mark.parametrize(
    ("d", "k", "batch"),
    [(2, 1, 1), (3, 2, 2), (9, 4, 3), (64, 20, 5), (65, 64, 1), (200, 54, 4), (65_536, 40, 2), (65_537, 40, 2)],
)
def test_subsets_against_a_shuffle_in_python(d, k, batch):
    n, n_words = 23, 1 + -(-k // batch)
    words = random_words(n * n_words, seed=d).reshape(n, n_words)
    codes = (np.arange(n) * 5 % d).astype(np.uint64)
    codes[:3], words[:3, 0] = d - 1, 0  # the largest value is in
    words[3:6, 1] = WORD - 1  # the first draw is of the largest of the others
    threshold = 1 << 63
    out = np.empty((n, (d + 7) // 8), np.uint8)
    subset.privatize(codes, words, d, k, batch, threshold, np.empty(d, np.uint64), out)
    bits = np.unpackbits(out, axis=1, bitorder="little")
    assert not bits[:, d:].any()
    assert subset.weighs(out, k)
    assert not subset.weighs(out, k - 1)
    for x, row, drawn in zip(codes.tolist(), bits, words.tolist()):
        left = [v for v in range(d) if v != x]
        include, chosen, u = drawn[0] < threshold, set(), 0
        for i in range(k - include):
            if i % batch == 0:
                u = drawn[1 + i // batch]
            place, u = divmod(u * (d - 1 - i), WORD)
            left[i], left[i + place] = left[i + place], left[i]
            chosen.add(left[i])
        wanted = chosen | ({x} if include else set())
        assert len(wanted) == k
        assert set(np.flatnonzero(row).tolist()) == wanted


def test_binary_answers():
    words = random_words(200)
    words[:4] = [0, 5, 6, 7]
    codes = (np.arange(200) % 2).astype(np.uint8)
    out = np.empty(200, np.uint8)
    binary.privatize(codes, words, 6, 1 << 63, out)
    assert out.tolist() == [int(int(u) < (1 << 63 if c else 6)) for c, u in zip(codes, words)]


@pytest.mark.parametrize("dtype", "bhilqBHILQ")
def test_encode_integers_at_the_ends_of_the_type(dtype):
    info, unsigned = np.iinfo(dtype), f"u{np.dtype(dtype).itemsize}"
    modulus = 1 << info.bits
    for low, high in ((info.min, min(info.min + 200, info.max)), (info.max - 100, info.max)):
        values = np.array([low, high, (low + high) // 2] * 30, dtype)
        out = np.empty(90, np.uint8)
        assert not encode.integers(values.view(unsigned), low % modulus, high - low, 3, 0, out)
        assert out.tolist() == [(int(v) - int(low) + 3) % 256 for v in values]
    low, high = max(info.min + 1, -5), 5
    for bad in (low - 1, high + 1):
        for place in (0, 63, 89):
            values = np.full(90, high, dtype)
            values[place] = bad
            for code in (np.uint8, np.uint16, np.uint32):
                out = np.empty(90, code)
                codes = np.arange(high - low + 1)
                for add in (0, 1):  # the range and the table say the same
                    arguments = (0, 7, out) if add else (codes, 7, out)
                    out[:] = 9
                    assert (encode.integers if add else encode.table)(
                        values.view(unsigned), low % modulus, high - low, *arguments
                    )
                    assert out.tolist() == [7 if k == place else high - low for k in range(90)]
    assert not encode.integers(np.empty(0, unsigned), 0, 0, 0, 0, np.empty(0, np.uint8))
    assert not encode.table(np.empty(0, unsigned), 0, 0, np.zeros(1, np.int64), 0, np.empty(0, np.uint8))


@pytest.mark.parametrize("dtype", ["i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("d", [0, 1, 2, 3, 7, 64, 1000])
def test_encode_numbers_by_bisection(dtype, d):
    rng = np.random.default_rng(d)
    known = np.unique(rng.integers(0, 10_000, d)).astype(dtype)
    codes = rng.permutation(len(known)).astype(np.uint32)
    values = rng.integers(0, 10_000, 3000).astype(dtype)
    values[::3] = rng.choice(known, 1000) if d else 0
    table = dict(zip(known.tolist(), codes.tolist()))
    out = np.empty(3000, np.uint16)
    wanted = [table.get(v, 60_000) for v in values.tolist()]
    assert encode.numbers(values, known, codes, 50_000, 60_000, out) == (60_000 in wanted, False)
    assert out.tolist() == wanted
    if dtype.startswith("f"):
        values[7] = np.nan
        assert encode.numbers(values, known, codes, 50_000, 60_000, out)[1]
        assert out[7] == 50_000


def test_encode_strings_and_objects():
    known = np.array(["a", "bb", "", "日本", "bba"])
    width = known.dtype.itemsize // 4
    slots = np.empty(16, np.int64)
    table = known.view(np.uint32).reshape(-1, width)
    encode.build_slots(table, slots)
    values = known[[4, 3, 2, 1, 0, 1]]
    out = np.empty(6, np.uint8)
    codes = np.arange(5, dtype=np.uint32)
    assert not encode.strings(values.view(np.uint32).reshape(-1, width), table, slots, codes, 9, out)
    assert out.tolist() == [4, 3, 2, 1, 0, 1]
    values[3] = "b"
    assert encode.strings(values.view(np.uint32).reshape(-1, width), table, slots, codes, 9, out)
    assert out.tolist() == [4, 3, 2, 9, 0, 1]
    dictionary = {v: i for i, v in enumerate(known.tolist())}
    assert encode.objects(["a", "日本"], dictionary, 9, out[:2]) == []
    assert encode.objects(["a", "x", [], "a", None, "bb"], dictionary, 9, out) == [1, 2, 4]
    assert out.tolist() == [0, 9, 9, 0, 9, 1]


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, GeneratorExit, BaseException])
def test_an_object_that_fails_is_one_bad_row(error):
    class Bad:
        def __hash__(self):
            raise error("s3cr3t")

    out = np.empty(3, np.uint8)
    assert encode.objects(["a", Bad(), "a"], {"a": 1}, 9, out) == [1]
    assert out.tolist() == [1, 9, 1]


@pytest.mark.parametrize(
    "call",
    [
        lambda: grr.privatize(np.zeros(3, np.uint8), random_words(2), 5, 1, np.zeros(3, np.uint8)),
        *(lambda args=args: unary.draw(random_words(4).reshape(2, 2), np.zeros(args[0], np.uint8),
                                       np.zeros(args[1], np.uint8), np.zeros((2, args[2]), np.uint8),
                                       np.zeros(args[3], np.uint32))
          for args in ((65_536, (3, 256), 5, 11), (65_536, (3, 256), 4, 8), (65_535, (3, 256), 4, 9),
                       (65_536, (2, 256), 4, 9), (65_536, (3, 255), 4, 9))),
        lambda: unary.settle(random_words(4).reshape(2, 2), np.zeros(3, np.uint32), random_words(2), random_words(255),
                             np.zeros((2, 4), np.uint8)),
        lambda: unary.settle(random_words(4).reshape(2, 2), np.zeros(3, np.uint32), random_words(3), random_words(254),
                             np.zeros((2, 4), np.uint8)),
        lambda: unary.finish(np.zeros(2, np.uint8), random_words(4).reshape(2, 2), 9, 5, np.zeros((2, 1), np.uint8)),
        lambda: unary.count(np.zeros((3, 2), np.uint8), np.zeros(15, np.int64)),
        lambda: olh.count(np.zeros((3, 2), np.uint32), 4, np.zeros(3, np.int64)),
        lambda: binary.privatize(np.zeros(3, np.uint8), random_words(2), 5, 6, np.zeros(3, np.uint8)),
        lambda: hadamard.privatize(np.zeros(3, np.uint8), random_words(2), 5, 6, 0, 1, np.zeros(3, np.uint8)),
        lambda: hadamard.support(np.zeros(3, np.uint8), 0, 1, np.zeros((2, 3), np.uint8)),
        lambda: subset.privatize(np.zeros(3, np.uint64), random_words(6).reshape(3, 2), 9, 3, 2, 5,
                                 np.zeros(8, np.uint64), np.zeros((3, 2), np.uint8)),
        lambda: olh.support(np.zeros((3, 3), np.uint32), 4, np.zeros((2, 5), np.uint8)),
        lambda: encode.integers(np.zeros(3, np.uint8), 0, 1, 0, 0, np.zeros(2, np.uint8)),
        lambda: encode.together(np.zeros((3, 2), np.uint8), *[np.zeros(2, np.uint8)] * 4, np.zeros((3, 2), np.uint8)),
        lambda: encode.together(np.zeros((3, 2), np.uint8), *[np.zeros(3, np.uint8)] * 4, np.zeros((2, 3), np.uint8)),
        lambda: encode.together(np.zeros((3, 2), np.uint8), *[np.zeros(2, np.uint8)] * 4, np.zeros((3, 2), np.uint8).T),
        lambda: rows.places(np.zeros(3, np.uint16), np.zeros(2, np.int64), np.zeros(2, np.int64)),
        lambda: rows.places(np.full(3, 2, np.uint16), np.zeros(2, np.int64), np.zeros(3, np.int64)),
        lambda: encode.table(np.zeros(3, np.uint8), 0, 1, np.zeros(1, np.int64), 0, np.zeros(3, np.uint8)),
        lambda: encode.numbers(np.zeros(3), np.zeros(2), np.zeros(1, np.uint32), 0, 0, np.zeros(3, np.uint8)),
    ],
)
def test_kernels_refuse_lengths_that_differ(call):
    with pytest.raises(ValueError, match=r"differ|lanes|places|fields|below"):
        call()


@pytest.mark.parametrize("most", [1, 2, 2047, 2048, 2049, 1 << 22, (1 << 33) - 1, 1 << 41, (1 << 63) - 1])
def test_points_are_sorted(most):
    for n in (0, 1, 2, 999):
        points = np.random.default_rng(n).integers(0, most, n)
        expected = np.sort(points)
        cells.sort_points(points, np.empty_like(points))
        assert (points == expected).all()


@pytest.mark.parametrize("spread", [1, 1 << 10, 1 << 30])
def test_points_in_clumps_or_in_the_wrong_order_are_sorted_and_counted(spread):
    rng = np.random.default_rng(spread)
    for points in (rng.integers(0, 3, 999) * (1 << 40) + rng.integers(0, spread, 999),
                   (1 << 40) + np.arange(999)[::-1] * spread, np.full(999, 1 << 40), np.empty(0, np.int64)):
        points, upto = points.astype(np.int64), np.empty(len(points), np.int64)
        expected, counts = np.unique(points, return_counts=True)
        cells.sort_points(points, upto)
        size = cells.distinct(points, upto)
        assert points[:size].tolist() == expected.tolist()
        assert upto[:size].tolist() == np.cumsum(counts).tolist()


def test_points_that_cannot_be_sorted_are_refused():
    with pytest.raises(ValueError, match="differs in length"):
        cells.sort_points(np.zeros(3, np.int64), np.zeros(2, np.int64))
    with pytest.raises(ValueError, match="differs in length"):
        cells.distinct(np.zeros(3, np.int64), np.zeros(2, np.int64))
    with pytest.raises(ValueError, match="none is negative"):
        cells.sort_points(np.array([1, -1]), np.zeros(2, np.int64))
