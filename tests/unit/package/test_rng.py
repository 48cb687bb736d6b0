"""Word sources: secure, seeded, disjoint, and safe across forks and processes."""

import contextlib
import contextvars
import copy
import gc
import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from joblib import Parallel, delayed, effective_n_jobs, parallel_backend

from dpestim import parallel, rng
from dpestim._core import build, rare
from dpestim.local import GRRFrequencyEstimator, OLHFrequencyEstimator, OUEFrequencyEstimator
from dpestim.rng import Stage, WordReader, WordSource, fresh_words

KEY = bytes(range(32))


def keystream(counter, n_bytes):
    """AES-256-CTR as the standard says, one block at a time."""
    block = Cipher(algorithms.AES(KEY), modes.ECB()).encryptor()
    out = b"".join(block.update((counter + k).to_bytes(16, "big")) for k in range(-(-n_bytes // 16)))
    return np.frombuffer(out[:n_bytes], np.uint8)


def test_dense_words_are_the_keystream_at_their_counter():
    counter = (int(Stage.RESPONSE) << 120) | (5 << 96) | (7 << 64) | (3 + 2)
    expected = keystream(counter, 80).view(np.uint64)
    reader = WordReader(KEY)
    assert np.array_equal(reader.dense(Stage.RESPONSE, 5, 7, 6, 10), expected)
    assert np.array_equal(reader.dense(Stage.RESPONSE, 5, 7, 7, 9), expected[1:])  # an odd start is inside a counter
    assert np.array_equal(reader.dense(Stage.RESPONSE, 5, 7, 7, 2), expected[1:3])


def test_long_dense_draws_are_one_stream():
    n = 3 * rng._CHUNK // 8 + 5
    whole = WordReader(KEY).dense(Stage.NOISE, 0, 0, 0, n).copy()
    parts = WordReader(KEY)
    for start in (0, 1, n // 2, n - 7):
        assert np.array_equal(parts.dense(Stage.NOISE, 0, 0, start, 7), whole[start : start + 7])


def test_sparse_words_have_a_counter_each():
    places = np.array([0, 5, 2**40], np.uint64)
    base = (int(Stage.RARE) << 120) | (1 << 96) | (2 << 64)
    expected = [keystream(base + int(p) + 2, 8).view(np.uint64)[0] for p in places]
    assert WordReader(KEY).sparse(Stage.RARE, 1, 2, places).tolist() == expected
    assert WordReader(KEY).sparse(Stage.RARE, 1, 2, places[:0]).size == 0


@pytest.mark.parametrize("n", [1, 7, (1 << 15) - 1, 1 << 15, (1 << 15) + 3])
def test_counters_of_places_are_their_sixteen_bytes(n):
    """Below 2^15 places the interpreter's lock is kept, and from there on released: the counters are the same."""
    places = np.random.default_rng(n).integers(0, 1 << 62, n, np.uint64)
    places[n // 2] = largest = (1 << 62) + 5
    head, first, counters = 0x0102030405060708, (1 << 61) + 0xA1B2C3, np.full((n, 16), 7, np.uint8)
    assert rare.counters_of(places, head, first, counters) == largest
    expected = b"".join((head << 64 | first + int(place)).to_bytes(16, "big") for place in places)
    assert counters.tobytes() == expected


@pytest.mark.parametrize(("n", "shape"), [(0, (0, 16)), (3, (2, 16)), (3, (4, 16)), (3, (3, 15)), (3, (3, 17))])
def test_counters_of_places_have_room(n, shape):
    with pytest.raises(ValueError, match="places and counters"):
        rare.counters_of(np.zeros(n, np.uint64), 0, 0, np.zeros(shape, np.uint8))


@pytest.mark.parametrize("first", [0, 5, 1 << 40])
def test_sparse_words_are_counted_from_the_first_place_and_end_before_others(first):
    places = np.array([3, 0, 9], np.uint64)
    drawn = WordReader(KEY).sparse(Stage.RARE, 1, 2, places, first, 10)
    assert np.array_equal(drawn, WordReader(KEY).sparse(Stage.RARE, 1, 2, places + np.uint64(first)))
    with pytest.raises(ValueError, match="other rows"):
        WordReader(KEY).sparse(Stage.RARE, 1, 2, places, first, 9)
    with pytest.raises(ValueError, match="counter"):
        WordReader(KEY).sparse(Stage.RARE, 1, 2, np.array([(1 << 64) - 2 - first], np.uint64), first)


@pytest.mark.parametrize("args", [(1 << 24, 0, 0), (0, 1 << 32, 0), (-1, 0, 0), (0, -1, 0), (0, 0, -2),
                                  (0, 0, 2 * ((1 << 64) - 2)), (0, 0, 2 * ((1 << 64) - 3))])
def test_counters_that_would_run_into_their_neighbour_are_refused(args):
    with pytest.raises(ValueError, match="counter"):
        WordReader(KEY).dense(Stage.RESPONSE, *args, 3)


def test_the_last_words_of_a_block():
    """The largest counter of a block is drawn, and the carry of 2**32 counters is made as the standard makes it."""
    reader = WordReader(KEY)
    last = (int(Stage.NOISE) << 120) | (1 << 64) | ((1 << 64) - 1)
    assert np.array_equal(reader.dense(Stage.NOISE, 0, 1, 2 * ((1 << 64) - 3), 2), keystream(last, 16).view(np.uint64))
    carry = (int(Stage.NOISE) << 120) | (1 << 64) | ((1 << 32) - 2)
    assert np.array_equal(reader.dense(Stage.NOISE, 0, 1, 2 * ((1 << 32) - 4), 8), keystream(carry, 64).view(np.uint64))


def gcm_opened(monkeypatch, least):
    """Count the draws that GCM serves from now on, from so many bytes on, whatever the processor."""
    opened = []

    def counting(nonce):
        opened.append(nonce)
        return modes.GCM(nonce)

    monkeypatch.setattr(rng, "_OWN_MOST", 0)
    monkeypatch.setattr(rng, "_gcm_is_faster", lambda: True)
    monkeypatch.setattr(rng, "_GCM_LEAST", least)
    monkeypatch.setattr(rng._ciphers(), "GCM", counting)
    return opened


@pytest.mark.parametrize(
    "place", [(Stage.SEED, 0, 0), (Stage.RESPONSE, 5, 7), (Stage.ROUNDING, (1 << 24) - 1, (1 << 32) - 1)]
)
@pytest.mark.parametrize("size", [1, 2, 31, 4096, rng._CHUNK // 8, rng._CHUNK // 8 + 1, 3 * rng._CHUNK // 8 + 5])
def test_gcm_and_ctr_give_the_same_words(monkeypatch, place, size):
    by_counter = {}
    monkeypatch.setattr(rng, "_OWN_MOST", 0)
    monkeypatch.setattr(rng, "_gcm_is_faster", lambda: False)
    for start in (0, 1, 2, 77):
        by_counter[start] = WordReader(KEY).dense(*place, start, size).copy()
    opened = gcm_opened(monkeypatch, 0)
    reader = WordReader(KEY)
    for start, words in by_counter.items():
        assert np.array_equal(reader.dense(*place, start, size), words)
    # from the start of a block, and only there: GCM cannot begin anywhere else
    assert opened == [rng._counter(*place)[:12]] * 2
    first = (int(place[0]) << 120) | (place[1] << 96) | (place[2] << 64) | 2
    assert np.array_equal(by_counter[0][:30], keystream(first, 8 * min(size, 30)).view(np.uint64))


def test_gcm_goes_on_where_it_was_and_nowhere_else(monkeypatch):
    """Parts of a block's stream in order are had without a new set-up; no other words are taken for the next."""
    one, two, other, later = (Stage.NOISE, 1, 2), (Stage.RARE, 1, 2), (Stage.NOISE, 1, 3), (Stage.NOISE, 2, 2)
    monkeypatch.setattr(rng, "_OWN_MOST", 0)
    monkeypatch.setattr(rng, "_gcm_is_faster", lambda: False)
    order = [(one, 0, 64), (one, 64, 64), (two, 0, 65), (one, 128, 33), (two, 66, 10), (one, 161, 7), (one, 162, 8),
             (two, 76, 4), (one, 0, 64), (other, 64, 64), (one, 64, 64), (one, 0, 64), (later, 64, 8), (one, 64, 64),
             (one, 0, 64), (one, 128, 8), (two, 0, 64), (two, 64, 600), (two, 664, 2), (two, 666, 2),
             (other, 0, 64), (other, 65, 7), (other, 70, 4)]
    expected = [WordReader(KEY).dense(*place, *part).copy() for place, *part in order]
    opened = gcm_opened(monkeypatch, 0)
    monkeypatch.setattr(rng, "_CHUNK", 512)  # (some parts take several calls of the cipher)
    monkeypatch.setattr(rng, "_GCM_MOST", 8 * 666)
    reader = WordReader(KEY)
    for (place, *part), words in zip(order, expected):
        assert np.array_equal(reader.dense(*place, *part), words), (place, part)
    assert len(opened) == 7  # the parts that begin at 0


@pytest.mark.parametrize(
    "place", [(Stage.SEED, 0, 0), (Stage.RESPONSE, 5, 7), (Stage.ROUNDING, (1 << 24) - 1, (1 << 32) - 1)]
)
@pytest.mark.parametrize("start", [0, 1, 2, 77, 2 * ((1 << 32) - 4)])
def test_few_words_are_the_same_words_as_those_of_openssl(monkeypatch, place, start):
    """Whatever a reader drew before, and whichever way it took: OpenSSL makes them where a processor has no AES."""
    most = (1 << 14) // 8  # (the most, where the processor has no vector AES)
    sizes = 0, 1, 2, 33, most - 2, most - 1, most, most + 1, 1 << 14, (1 << 18) + 3
    drawn = {size: WordReader(KEY).dense(*place, start, size).copy() for size in sizes}
    one = WordReader(KEY)
    for size in sizes:
        assert np.array_equal(one.dense(*place, start, size), drawn[size])
    heads = [WordReader(KEY).heads(place[0], place[1], 3, 4)]
    monkeypatch.setattr(rng.rare, "HAS_AES", False)
    for size in sizes:
        assert np.array_equal(WordReader(KEY).dense(*place, start, size), drawn[size])
    heads.append(WordReader(KEY).heads(place[0], place[1], 3, 4))
    assert np.array_equal(*heads)
    first = (int(place[0]) << 120) | (place[1] << 96) | (place[2] << 64) | (start // 2 + 2)
    words = keystream(first, 16 * 40).view(np.uint64)[start % 2 :]
    assert np.array_equal(drawn[33], words[:33])


@pytest.mark.skipif(not rare.HAS_AES, reason="the processor or the compiler has no instructions for AES")
def test_the_processors_cipher_is_that_of_openssl():
    """Every number of blocks around the 8 and 32 encrypted at a time, under keys that reach all of the schedule.

    The example of FIPS 197, C.3, is the first.
    """
    known = np.frombuffer(bytes.fromhex("00112233445566778899aabbccddeeff"), np.uint8).copy()
    rare.encrypt(KEY, known)
    assert known.tobytes().hex() == "8ea2b7ca516745bfeafc49904b496089"
    generator = np.random.default_rng(0)
    for number in [*range(300), 4095, 4096, 5001]:
        key, n = generator.bytes(32), number if number > 300 else number % 100
        blocks = np.frombuffer(generator.bytes(16 * n), np.uint8).copy()
        expected = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(blocks.tobytes())
        rare.encrypt(key, blocks)
        assert blocks.tobytes() == expected


@pytest.mark.skipif(not rare.HAS_AES, reason="the processor or the compiler has no instructions for AES")
@pytest.mark.parametrize(("key", "size"), [(KEY[1:], 16), (KEY + b"0", 16), (KEY, 15), (KEY, 17)])
def test_the_processors_cipher_refuses_other_lengths(key, size):
    for encrypt in rare.encrypt, lambda key, blocks: rare.keystream(key, 0, 0, blocks):
        with pytest.raises(ValueError, match="another length"):
            encrypt(key, np.zeros(size, np.uint8))


@pytest.mark.skipif(not rare.HAS_AES, reason="the processor or the compiler has no instructions for AES")
def test_fresh_bytes_are_counter_mode():
    """Under counters whose bytes all differ, and of lengths around the pieces that are encrypted at a time.

    Bytes that are carried into, and what is as large as makes threads let go of the interpreter's lock.
    """
    firsts = 0xA1B2C3D4E5F60708, 0xFFFFFFEF, 0x01FFFFFFFFFFFFF0, (1 << 64) - (1 << 13)
    for n_blocks, first in itertools.product((1, 2, 7, 8, 9, 31, 32, 33, 64, 100, 1024, 4095, 4096, 4097), firsts):
        head = 0x0102030405060708
        expected = Cipher(algorithms.AES(KEY), modes.CTR((head << 64 | first).to_bytes(16, "big"))).encryptor().update(
            bytes(16 * n_blocks))
        out = np.empty(16 * n_blocks, np.uint8)
        rare.keystream(KEY, head, first, out)
        assert rare.fresh(KEY, head, first, 16 * n_blocks) == expected == out.tobytes()
    for key, n_bytes in ((KEY, 0), (KEY, -16), (KEY, 17), (KEY[1:], 16)):
        with pytest.raises(ValueError, match="another length"):
            rare.fresh(key, 0, 0, n_bytes)


@pytest.mark.parametrize("n_words", [1, 32, 33, 34, 128, 129, 130, 1024, 1025, 2047, 2048, 2049, 4096])
def test_fresh_words_are_as_many_as_asked_for_and_never_the_same(n_words):
    one, other = (np.frombuffer(fresh_words(n_words), np.uint64) for _ in range(2))
    assert len(one) == len(other) == n_words
    assert not np.intersect1d(one, other).size


@pytest.mark.skipif(not rare.HAS_AES, reason="the processor or the compiler has no instructions for AES")
def test_few_words_need_no_library():
    program = ("import sys\nimport numpy as np\nfrom dpestim.statistics import mean\n"
               "mean(np.linspace(-1, 1, 1000), epsilon=1.0, bounds=(-3, 3))\nprint(*sys.modules)")
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, capture_output=True, text=True)
    assert "dpestim.rng" in found.stdout.split()
    assert "cryptography" not in found.stdout.split()


def test_gcm_is_taken_where_it_pays_and_never_beyond_its_limit(monkeypatch):
    opened = gcm_opened(monkeypatch, 1 << 18)
    reader = WordReader(KEY)
    for n_words, used in ((1 << 15, 1), ((1 << 15) - 2, 0)):
        opened.clear()
        reader.dense(Stage.RESPONSE, 0, 0, 0, n_words)
        assert len(opened) == used
    assert rng._GCM_MOST <= (1 << 36) - 32  # the standard's limit for one nonce
    assert rng._GCM_MOST // 16 + rng._OFFSET == 1 << 32  # so that the counter's low half never wraps around
    monkeypatch.setattr(rng, "_GCM_MOST", 1 << 18)
    opened.clear()
    reader.dense(Stage.RESPONSE, 0, 0, 0, (1 << 15) + 2)
    assert not opened


def test_gcm_is_not_taken_where_it_is_refused_or_differs(monkeypatch):
    test = rng._gcm_is_faster.__wrapped__
    monkeypatch.setattr(build, "VECTOR_AES", True)
    assert test()

    def refuse(nonce):
        raise ValueError("this provider chooses its nonces itself")

    for other in (refuse, lambda nonce: modes.GCM(nonce[1:] + b"\0\1")):
        monkeypatch.setattr(rng._ciphers(), "GCM", other)
        assert not test()
    monkeypatch.undo()
    monkeypatch.setattr(build, "VECTOR_AES", False)
    assert not test()


@pytest.mark.parametrize("per_row", [1, 3])
def test_numbers_below_a_limit_are_those_of_all_digits(per_row):
    """Of every place a number of 64 digits: those below are found, and no split of the rows changes any."""
    n, stages = 3000, (Stage.RESPONSE, Stage.RARE)
    for limit in (1, 1 << 56, (1 << 56) + 1, (5 << 56) - 1, 1 << 60, (1 << 60) + 12345):
        lanes = WordReader(KEY).words(2, 3, 0, n).eighths(Stage.RESPONSE, per_row)
        rare = WordReader(KEY).words(2, 3, 0, n).sparse(Stage.RARE, per_row, np.arange(n * per_row))
        u = [int(lane) << 56 | int(word) >> 8 for lane, word in zip(lanes, rare)]
        at, found = WordReader(KEY).words(2, 3, 0, n).below(limit, *stages, per_row)
        assert at.tolist() == [k for k, number in enumerate(u) if number < limit]
        assert found.tolist() == [number for number in u if number < limit]
        for first in (1, 2, 3, 7, 8, 1001):
            part, numbers = WordReader(KEY).words(2, 3, first, n - first).below(limit, *stages, per_row)
            mine = at >= first * per_row
            assert np.array_equal(part + first * per_row, at[mine])
            assert np.array_equal(numbers, found[mine])


def test_fields_of_a_counter_never_meet():
    """Different (stage, column, block, position) have different counters, and none ends in a low half of 0 or 1."""
    ends = [(0, 1, 2, 255), (0, 1, (1 << 24) - 1), (0, 1, (1 << 32) - 1),
            (0, 1, (1 << 32) - 3, (1 << 32) - 2, (1 << 32) - 1, 1 << 32, (1 << 64) - 3)]
    counters = {rng._counter(*fields): fields for fields in itertools.product(*ends)}
    assert len(counters) == np.prod([len(e) for e in ends])
    for counter, (stage, column, block, position) in counters.items():
        assert int.from_bytes(counter[:1]) == stage
        assert int.from_bytes(counter[1:4]) == column
        assert int.from_bytes(counter[4:8]) == block
        assert int.from_bytes(counter[8:]) == position + 2 >= 2


@pytest.mark.parametrize("own", [0, 1 << 62])
def test_all_streams_of_a_call_are_disjoint(monkeypatch, own):
    """Every word that a fit of two columns on two threads draws, by its counter: none is drawn twice."""
    seen = Counter()
    dense, sparse, cipher = WordReader.dense, WordReader.sparse, WordReader.cipher
    monkeypatch.setattr(rng, "_OWN_MOST", own)

    def recording_dense(self, stage, column, block, start, size):
        first = int.from_bytes(rng._counter(stage, column, block, 0), "big")
        seen.update((first, word) for word in range(start, start + size))
        return dense(self, stage, column, block, start, size)

    def recording_sparse(self, stage, column, block, places, *where):
        first = int.from_bytes(rng._counter(stage, column, block, 0), "big")
        seen.update((first, 2 * (int(place) + (where[0] if where else 0))) for place in places)
        return sparse(self, stage, column, block, places, *where)

    def recording_cipher(self, stage, column, block, start, size):
        made = cipher(self, stage, column, block, start, size)
        if made is not None:
            first = int.from_bytes(rng._counter(stage, column, block, 0), "big")
            assert (made[1] << 64) + 2 * made[2] + made[3] == (first >> 64 << 64) + start + 2 * rng._OFFSET
            seen.update((first, word) for word in range(start, start + size))
        return made

    monkeypatch.setattr(WordReader, "dense", recording_dense)
    monkeypatch.setattr(WordReader, "sparse", recording_sparse)
    monkeypatch.setattr(WordReader, "cipher", recording_cipher)
    X = np.random.default_rng(0).integers(0, 20, (5000, 2))
    domain = [np.arange(20)] * 2
    for cls in (GRRFrequencyEstimator, OUEFrequencyEstimator, OLHFrequencyEstimator):
        seen.clear()
        monkeypatch.setattr(cls._randomizer, "block_words", 3000)
        est = cls(1.0, categories=domain, n_jobs=2, random_state=3)
        est.partial_fit(X[:1234]).partial_fit(X[1234:])
        assert len(seen) > 5000
        assert max(seen.values()) == 1, cls.__name__
        # words of different counters: the high halves hold stage, column and block, each in its own bits
        stages = {first >> 120 for first, _ in seen}
        columns = {(first >> 96) & 0xFFFFFF for first, _ in seen}
        assert columns == {0, 1}
        assert stages <= {stage for name, stage in vars(Stage).items() if name[0] != "_"}


def test_secure_sources_differ_and_seeded_ones_repeat():
    def draw(state):
        return WordSource(state).reader().dense(Stage.RESPONSE, 0, 0, 0, 4).tolist()

    assert draw(None) != draw(None)
    assert draw(3) == draw(3) == draw(np.int64(3)) != draw(4)
    assert draw(np.random.default_rng(3)) == draw(np.random.default_rng(3))
    assert draw(np.random.RandomState(3)) == draw(np.random.RandomState(3))
    generator = np.random.default_rng(3)
    assert draw(generator) != draw(generator)  # a generator supplies a new key for each call


def test_seeded_sources_say_so_and_have_a_fingerprint():
    assert not WordSource().seeded
    assert WordSource().fingerprint is None
    assert WordSource(1).seeded
    assert WordSource(1).fingerprint == WordSource(1).fingerprint != WordSource(2).fingerprint


@pytest.mark.parametrize("bad", [-1, 1.5, "x", True, np.random])
def test_bad_random_state(bad):
    with pytest.raises(ValueError, match="random_state"):
        WordSource(bad)


def test_a_source_cannot_travel():
    for travel in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="repeat"):
            travel(WordSource())


def first_words(_=None):
    return WordSource().reader().dense(Stage.RESPONSE, 0, 0, 0, 4).tobytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork on this platform")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_does_not_repeat_noise_and_can_use_threads():
    X = np.zeros((200_000, 1), int)
    est = GRRFrequencyEstimator(1.0, categories=[[0, 1]], n_jobs=2).fit(X)  # the pool exists before the fork
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, est.privatize(X).tobytes()[:4096])
        finally:
            os._exit(0)
    mine = est.privatize(X).tobytes()[:4096]
    theirs = b""
    while len(theirs) < 4096:
        piece = os.read(read, 4096)
        assert piece, "the child died"
        theirs += piece
    assert os.waitpid(child, 0)[1] == 0
    os.close(read)
    os.close(write)
    assert mine != theirs
    agree = np.mean(np.frombuffer(mine, np.uint8) == np.frombuffer(theirs, np.uint8))
    p = float(est.randomizers_[0].p_star)
    # as independent as two calls (which are further apart once in 10**11 runs)
    assert abs(agree - (p * p + (1 - p) ** 2)) < 7 * np.sqrt(0.25 / 4096)


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_joblib_workers_never_repeat_noise(backend):
    draws = Parallel(n_jobs=2, backend=backend)(delayed(first_words)() for _ in range(8))
    assert len(set(draws)) == 8


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_runs_are_contiguous_and_in_order(n_jobs):
    runs = parallel.run(lambda a, b: (a, b), 11, n_jobs)
    assert [b for r in runs for b in range(*r)] == list(range(11))
    assert len(runs) == n_jobs


def test_an_error_in_a_thread_is_raised_after_all_threads_ended():
    begun, ended = [], []

    def task(a, b):
        begun.append(a)
        try:
            if a == 0:
                time.sleep(0.02)
            else:
                raise KeyError("from a thread")
        finally:
            ended.append(a)

    for pieces in (1, 2):
        with pytest.raises(KeyError, match="from a thread"):
            parallel.run(task, 4, 4, pieces)
        assert len(begun) == len(ended)


@pytest.mark.parametrize("pieces", [1, 3])
def test_threads_that_are_busy_elsewhere_are_not_waited_for(pieces, monkeypatch):
    """The only helper hangs: this thread does the work, and what was asked of the helper keeps nothing alive."""
    release, jobs = threading.Event(), SimpleQueue()
    monkeypatch.setattr(parallel, "_jobs", jobs)
    monkeypatch.setattr(parallel, "_n_helpers", 1)
    helper = threading.Thread(target=lambda: (release.wait(5), parallel._help(jobs)), daemon=True)
    helper.start()
    rows = np.zeros(1)
    held = weakref.ref(rows)
    assert parallel.run(lambda a, b, rows=rows: (a, b), 2, 2, pieces) == [(0, 1), (1, 2)]
    del rows
    assert held() is None
    assert not jobs.empty()
    release.set()
    met = threading.Barrier(2)
    parallel.run(lambda a, b: met.wait(5), 2, 2)  # (it takes up what comes next)
    assert jobs.empty()


def test_interrupts_are_raised_when_threads_have_ended():
    begun, ended = threading.Event(), []

    def task(a, b):
        if threading.current_thread() is threading.main_thread():
            begun.wait(5)
            raise KeyboardInterrupt
        begun.set()
        time.sleep(0.02)
        ended.append(a)

    with pytest.raises(KeyboardInterrupt):
        parallel.run(task, 2, 2)
    assert len(ended) == 1
    # helpers live on, whatever a task raised in them
    for error in (SystemExit, KeyboardInterrupt):
        def fails(a, b, error=error):
            if threading.current_thread() is not threading.main_thread():
                begun.set()
                raise error
            begun.wait(5)

        begun.clear()
        with pytest.raises(error):
            parallel.run(fails, 2, 2)
    assert parallel.run(lambda a, b: a, 2, 2) == [0, 1]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signal to a thread on this platform")
def test_a_second_interrupt_waits_for_helpers_too():
    """Whoever waits for helpers may be interrupted, and again: no thread writes once that is raised."""
    begun, ended, waits = threading.Event(), [], [True]

    def interrupt(*_):
        if waits:
            raise KeyboardInterrupt

    def task(a, b):
        if threading.current_thread() is threading.main_thread():
            begun.wait(5)
            return
        begun.set()
        for _ in range(3):
            time.sleep(0.05)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.05)
        ended.append(a)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            parallel.run(task, 2, 2)
        waits.clear()
        met = list(ended)
        time.sleep(0.3 * (not met))  # (no signal comes after this test)
        assert len(met) == 1
    finally:
        waits.clear()
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_between_any_two_steps_of_a_wait_can_be_followed_by_another_wait():
    """Each line of `end`, before and after a helper has begun, in place of wherever a signal may come."""
    for begins, line in itertools.product((False, True), range(1, 9)):
        job, seen = parallel._Job(lambda: None), []
        if begins:
            job.begin()

        def trace(frame, event, arg, line=line, seen=seen):
            if frame.f_code is not parallel._Job.end.__code__:
                return None
            seen.append(event)
            if len(seen) == line:
                raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        with contextlib.suppress(KeyboardInterrupt):
            try:
                job.end()
            finally:
                sys.settrace(before)
        waiting = threading.Thread(target=job.end, daemon=True)
        waiting.start()
        waiting.join(5)
        assert not waiting.is_alive()


@pytest.mark.parametrize("who", ["caller", "helper", "both"])
def test_nothing_is_begun_after_a_failure_and_an_error_that_was_raised_keeps_nothing(who):
    met, done, rows = threading.Barrier(2), [], np.zeros(1)

    def start():
        met.wait(5)
        fails = (threading.current_thread() is threading.main_thread()) == (who == "caller") or who == "both"

        def step(k):
            if fails:
                raise ZeroDivisionError(rows)
            done.append(k)
            time.sleep(0.005)

        return step

    held = weakref.ref(rows)
    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(ZeroDivisionError):
            parallel.walk(start, 200, 2)
        rows = start = None
        for _ in range(100):  # (a helper leaves its frame a moment later)
            time.sleep(0.01 * (held() is not None))
        assert held() is None
    finally:
        gc.enable()
    assert len(done) < 100


def test_where_no_thread_can_be_started_this_one_does_all(monkeypatch):
    """After a charge a fit is not to fail for that; helpers that there are help."""
    def refuse(self):
        raise RuntimeError("can't start new thread")

    jobs = SimpleQueue()
    monkeypatch.setattr(parallel, "_jobs", jobs)
    monkeypatch.setattr(parallel, "_n_helpers", 0)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert parallel.run(lambda a, b: (a, b), 4, 4) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert jobs.empty()
    assert parallel._n_helpers == 0


def test_helpers_keep_no_context(monkeypatch):
    """Threads may start in the context of who starts them (Python 3.14): a helper would keep its first caller's."""
    class Inherits(threading.Thread):
        def start(self):
            context, run = contextvars.copy_context(), self.run
            self.run = lambda: context.run(run)
            super().start()

    monkeypatch.setattr(parallel, "_jobs", SimpleQueue())
    monkeypatch.setattr(parallel, "_n_helpers", 0)
    monkeypatch.setattr(threading, "Thread", Inherits)
    here, met = contextvars.ContextVar("here", default=0), threading.Barrier(2)
    here.set(1)

    def task(a, b):
        met.wait(5)
        return here.get()

    assert sorted(parallel.run(task, 2, 2)) == [0, 1]


def test_threads_within_threads_do_not_wait_for_each_other():
    def outer(a, b):
        return sum(parallel.run(lambda a, b: b - a, 100, 3, 2))

    for _ in range(50):
        assert parallel.run(outer, 5, 3) == [100] * len(parallel.run(lambda a, b: 0, 5, 3))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork on this platform")
def test_a_forked_child_has_helpers_of_its_own():
    parallel.run(lambda a, b: 0, 3, 3)
    child = os.fork()
    if child == 0:
        met = threading.Barrier(2)
        try:
            parallel.run(lambda a, b: met.wait(5), 2, 2)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_stage_is_drawn_in_one_way_only():
    words = WordSource(0).reader().words(0, 0, 0, 4)
    assert words.dense(Stage.RESPONSE, 1).tolist() == words.dense(Stage.RESPONSE, 1).tolist()
    for again in (lambda: words.dense(Stage.RESPONSE, 2), lambda: words.halves(Stage.RESPONSE),
                  lambda: words.sparse(Stage.RESPONSE, 1, [0])):
        with pytest.raises(ValueError, match="another stage"):
            again()
    words.sparse(Stage.RARE, 2, [7])
    for outside in ([8], [-1], [0, 1 << 63]):
        with pytest.raises(ValueError, match="places"):
            words.sparse(Stage.RARE, 2, outside)


def test_a_reader_cannot_be_copied():
    with pytest.raises(TypeError, match="repeat"):
        copy.copy(WordSource(0).reader())


def test_heads_are_the_first_words_of_blocks():
    heads = WordSource(3).reader().heads(Stage.NOISE, 5, 4, 6)
    assert heads.shape == (4, 6)
    for block in range(4):
        assert np.array_equal(heads[block], WordSource(3).reader().dense(Stage.NOISE, 5, block, 0, 6))
    with pytest.raises(ValueError, match="overflow"):
        WordSource(3).reader().heads(Stage.NOISE, 1 << 24, 4, 6)


def test_the_known_words_are_those_of_counter_mode():
    modes = rng._ciphers()
    stream = modes.Cipher(modes.AES(bytes(32)), modes.CTR(rng._OFFSET.to_bytes(16, "big"))).encryptor()
    assert stream.update(bytes(len(rng._KNOWN))) == rng._KNOWN
    assert WordReader(bytes(32)).dense(0, 0, 0, 0, 8).tobytes() == rng._KNOWN


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_none_is_what_a_context_of_joblib_says(backend, keeps, monkeypatch):
    """... in the thread that is in it; also of a joblib that keeps its contexts elsewhere."""
    if not keeps:
        monkeypatch.setattr(parallel, "_contexts", None)
    with ThreadPoolExecutor(1) as pool:
        assert parallel.threads(8) == 1
        with parallel_backend(backend, n_jobs=3):
            assert (parallel.threads(8), parallel.threads(2), parallel.threads(8, 2)) == (3, 2, 2)
            assert pool.submit(parallel.threads, 8).result() == 1
            with parallel_backend(backend, n_jobs=2):
                assert parallel.threads(8) == 2
            assert parallel.threads(8) == 3
        assert parallel.threads(8) == 1
        found = Parallel(n_jobs=2, backend="threading")(delayed(parallel.threads)(8) for _ in range(4))
    assert found == [effective_n_jobs(None)] * 4
    for n_jobs in (None, 1, 2, -1):
        assert parallel.threads(100, n_jobs) == min(effective_n_jobs(n_jobs), 100)
