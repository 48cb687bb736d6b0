"""Threads over rows: how many there are, how long each works alone, and sums that depend on none of it."""

import platform
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from dpestim import parallel
from dpestim.base import all_estimators
from dpestim.local import (
    GRRFrequencyEstimator,
    HCMSFrequencyEstimator,
    LGRRFrequencyEstimator,
    OUEFrequencyEstimator,
    URRFrequencyEstimator,
)
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.rng import WordSource

FREQUENCIES = [cls for _, cls in all_estimators() if issubclass(cls, FrequencyEstimator)]


@pytest.mark.parametrize("cls", FREQUENCIES)
def test_a_block_takes_a_thread_a_while(cls):
    """Between two blocks threads wait for the interpreter's lock, some ten microseconds each time."""
    law = cls(1.0, categories=[[0, 1]]).randomizer()
    assert law.block_rows * (law.word_ns * law.report_width + law.count_ns) > 190_000


@pytest.mark.parametrize(("most", "wanted"), [(None, 2), (5, 2), (1, 1)])
def test_there_are_no_more_threads_than_are_of_use(most, wanted):
    assert len(parallel.run(lambda first, last: (first, last), 8, 2, most=most)) == wanted


@pytest.mark.parametrize("aggregates", [False, True])
def test_threads_with_more_counters_than_rows_are_not_begun(monkeypatch, aggregates):
    """Each thread clears counters of its own, and adds them up: for few rows that takes longer than counting them."""
    asked = []
    threads = parallel.threads
    monkeypatch.setattr(parallel, "threads", lambda *args: asked.append(args[-1]) or threads(*args))
    X = np.zeros((1000, 1), int)
    for d, enough in ((1 << 20, False), (16, True)):
        est = HCMSFrequencyEstimator(1.0, categories=[np.arange(d)], n_jobs=2)
        reports = est.privatize(X)
        asked.clear()
        est.aggregate(reports) if aggregates else est.fit(X)
        assert [most > 1 for most in asked if most is not None] == [enough]


@pytest.mark.parametrize("verb", ["fit", "privatize"])
def test_several_threads_take_whole_blocks_where_one_takes_parts(monkeypatch, verb):
    """Words and reports are the same; but between two parts threads wait for the interpreter's lock."""
    est = GRRFrequencyEstimator(1.0, categories=[range(5)], random_state=0)
    law, sizes, results = est.randomizer(), [], []
    X = np.arange(2 * law.block_rows + 1000)[:, None] % 5
    privatize = type(law).privatize
    monkeypatch.setattr(type(law), "privatize", lambda *args: sizes.append(len(args[1])) or privatize(*args))
    for n_jobs, most in ((1, law.counted_rows), (2, law.block_rows)):
        sizes.clear()
        done = getattr(est.set_params(n_jobs=n_jobs), verb)(X)
        assert max(sizes) == most
        results.append(done if verb == "privatize" else done._counts[0].copy())
    assert law.counted_rows < law.block_rows
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_counts_of_threads_add_up_and_leave_what_was_counted(n_jobs):
    X = np.arange(600_000).reshape(-1, 1) % 5
    est = GRRFrequencyEstimator(1.0, categories=[range(5)], n_jobs=n_jobs, random_state=0).fit(X)
    before = est._counts[0].copy()
    once = GRRFrequencyEstimator(1.0, categories=[range(5)], random_state=0).fit(X)
    np.testing.assert_array_equal(before, once._counts[0])
    reports = once.privatize(X)
    twice = GRRFrequencyEstimator(1.0, categories=[range(5)], n_jobs=n_jobs).aggregate(reports)
    first = twice._counts[0]
    copy = first.copy()
    twice.aggregate(reports)
    np.testing.assert_array_equal(first, copy)
    np.testing.assert_array_equal(twice._counts[0], 2 * copy)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_steps_are_taken_once_each_by_threads_that_are_free(n_jobs):
    """A thread whose processor is slow takes fewer steps, and a step that fails is raised after all threads ended."""
    taken, slow = [], threading.Barrier(2 if n_jobs > 1 else 1)

    def start():
        mine = []
        taken.append(mine)

        def step(k):
            if k == 0:
                time.sleep(0.05)
            mine.append(k)

        if len(taken) <= 2:
            slow.wait(5)
        return step

    parallel.walk(start, 40, n_jobs)
    assert sorted(k for mine in taken for k in mine) == list(range(40))
    assert n_jobs == 1 or min(map(len, taken)) < 10
    with pytest.raises(ZeroDivisionError):
        parallel.walk(lambda: lambda k: 1 // (k - 3), 8, n_jobs)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("tile", [None, 64, 100, 1 << 20])
@pytest.mark.parametrize("cls", [GRRFrequencyEstimator, LGRRFrequencyEstimator, URRFrequencyEstimator,
                                 OUEFrequencyEstimator])
def test_rows_have_the_words_of_their_block(monkeypatch, cls, tile, n_jobs):
    """Whoever takes a block, and in whatever tiles: its reports are those of its own words, and counted once."""
    monkeypatch.setattr(cls._randomizer, "block_words", 1503)
    monkeypatch.setattr(cls._randomizer, "tile_words", tile)
    X = np.random.default_rng(0).integers(0, 9, (20_011, 1))
    est = cls(1.0, categories=[range(9)], random_state=7, n_jobs=n_jobs)
    law = est.randomizer()
    assert tile is None or law.counted_rows == min(law.block_rows, max(16, tile // law.n_words // 16 * 16))
    reader, codes = WordSource(7).reader(), X[:, 0].astype(law.code_dtype)
    expected, counts = np.empty((len(X), law.report_width), law.report_dtype), np.zeros(law.n_counts, np.int64)
    for block in range(-(-len(X) // law.block_rows)):
        rows = slice(block * law.block_rows, (block + 1) * law.block_rows)
        law.privatize(codes[rows], reader.words(0, block, 0, len(codes[rows])), expected[rows])
    law.count(expected, counts)
    np.testing.assert_array_equal(est.privatize(X), expected)
    np.testing.assert_array_equal(est.fit(X)._counts[0], counts)
    # parts that begin within a tile, and within a pair of words
    est.fit(X[:1]).partial_fit(X[1:1235]).partial_fit(X[1235:])
    np.testing.assert_array_equal(est._counts[0], counts)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what malloc gives back is glibc's own choice")
def test_a_fit_in_a_process_of_its_own_asks_for_no_fresh_pages():
    """Buffers of a whole block were given back after each fit, and their pages cost as much as what was written."""
    code = """if True:
        import resource, numpy as np
        from dpestim.local import GRRFrequencyEstimator
        X, faults = np.zeros((1_000_000, 1), int), []
        for _ in range(9):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            GRRFrequencyEstimator(1.0, categories=[np.arange(1024)]).fit(X)
            faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
        print(sorted(faults)[4])"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 200
