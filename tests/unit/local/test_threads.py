"""Threads over rows: how many there are, how long each works alone, and sums that depend on none of it."""

import threading
import time

import numpy as np
import pytest

from dpestim import parallel
from dpestim.base import all_estimators
from dpestim.local import GRRFrequencyEstimator, HCMSFrequencyEstimator
from dpestim.local.categories.estimator import FrequencyEstimator

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
    threads = parallel._threads
    monkeypatch.setattr(parallel, "_threads", lambda *args: asked.append(args[-1]) or threads(*args))
    X = np.zeros((1000, 1), int)
    for d, enough in ((1 << 20, False), (16, True)):
        est = HCMSFrequencyEstimator(1.0, categories=[np.arange(d)], n_jobs=2)
        reports = est.privatize(X)
        asked.clear()
        est.aggregate(reports) if aggregates else est.fit(X)
        assert [most > 1 for most in asked if most is not None] == [enough]


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
