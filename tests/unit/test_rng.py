"""Word sources: secure, seeded, disjoint, and safe across forks and processes."""

import copy
import os
import pickle
from collections import Counter

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from joblib import Parallel, delayed

from dpestim import parallel, rng
from dpestim.local import GRRFrequencyEstimator, OLHFrequencyEstimator, OUEFrequencyEstimator
from dpestim.rng import Stage, WordReader, WordSource

KEY = bytes(range(32))


def keystream(counter, n_bytes):
    """AES-256-CTR as the standard says, one block at a time."""
    block = Cipher(algorithms.AES(KEY), modes.ECB()).encryptor()
    out = b"".join(block.update((counter + k).to_bytes(16, "big")) for k in range(-(-n_bytes // 16)))
    return np.frombuffer(out[:n_bytes], np.uint8)


def test_dense_words_are_the_keystream_at_their_counter():
    counter = (int(Stage.RESPONSE) << 120) | (5 << 96) | (7 << 64) | 3
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
    expected = [keystream(base + int(p), 8).view(np.uint64)[0] for p in places]
    assert WordReader(KEY).sparse(Stage.RARE, 1, 2, places).tolist() == expected
    assert WordReader(KEY).sparse(Stage.RARE, 1, 2, places[:0]).size == 0


@pytest.mark.parametrize("args", [(1 << 24, 0), (0, 1 << 32), (-1, 0)])
def test_counters_that_would_run_into_their_neighbour_are_refused(args):
    with pytest.raises(ValueError, match="counter"):
        WordReader(KEY).dense(Stage.RESPONSE, *args, 0, 1)


def test_all_streams_of_a_call_are_disjoint(monkeypatch):
    """Every word that a fit of two columns on two threads draws, by its counter: none is drawn twice."""
    seen = Counter()
    dense, sparse = WordReader.dense, WordReader.sparse

    def recording_dense(self, stage, column, block, start, size):
        first = int.from_bytes(rng._counter(stage, column, block, 0), "big")
        seen.update((first, word) for word in range(start, start + size))
        return dense(self, stage, column, block, start, size)

    def recording_sparse(self, stage, column, block, places):
        first = int.from_bytes(rng._counter(stage, column, block, 0), "big")
        seen.update((first, 2 * int(place)) for place in places)
        return sparse(self, stage, column, block, places)

    monkeypatch.setattr(WordReader, "dense", recording_dense)
    monkeypatch.setattr(WordReader, "sparse", recording_sparse)
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
        assert stages <= {int(s) for s in Stage}


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
    assert abs(agree - (p * p + (1 - p) ** 2)) < 6 * np.sqrt(0.25 / 4096)  # as independent as two calls


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
    ended = []

    def task(a, b):
        ended.append(a)
        if a:
            raise KeyError("from a thread")

    with pytest.raises(KeyError, match="from a thread"):
        parallel.run(task, 4, 4)
    assert len(ended) == 4
