"""Threads over runs of blocks: each thread takes one contiguous run, from one reused pool that a fork drops."""

import os
import threading
from collections import deque
from contextlib import nullcontext
from contextvars import Context
from functools import lru_cache
from numbers import Integral
from queue import SimpleQueue

import joblib.parallel
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

#: Columns from which on BLAS would take several threads for a block of rows.
_WIDE = 64

#: What joblib keeps of each thread's contexts; where a version of it keeps that elsewhere, it is asked.
_contexts = getattr(joblib.parallel, "_backend", None)
_lock = threading.Lock()
_jobs = SimpleQueue()
_n_helpers = 0


def check_n_jobs(n_jobs):
    """Raise ValueError unless joblib could say how many threads `n_jobs` means."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError("n_jobs must be None or an integer other than 0")


def run(task, n_blocks, n_jobs=None, pieces=1, most=None):
    """Call ``task(first, last)`` on contiguous runs that cover range(n_blocks); return the results in order.

    `n_jobs` is scikit-learn's: None is one thread unless a joblib context says otherwise. The kernels and the cipher
    release the GIL, so threads are all it takes. One task a block would scale badly: each thread takes its share of
    blocks in so many `pieces`. Whoever is free takes the next one, this thread too, and what no other thread has
    begun by then is not waited for: on a busy machine many threads are hardly slower than one. `most`: so many threads
    at most, because more would take longer.
    """
    n = threads(n_blocks, n_jobs, most)
    if n <= 1:
        return [task(0, n_blocks)]
    n_runs = min(n * pieces, n_blocks)
    edges, results = [n_blocks * k // n_runs for k in range(n_runs + 1)], [None] * n_runs

    def do(k):
        results[k] = task(*edges[k : k + 2])

    _share(n, n_runs, lambda: do)
    return results


def walk(start, n_steps, n_jobs=None, most=None):
    """Call ``step(k)`` for every k below n_steps, where each thread has a step of its own, ``start()``.

    Whoever is free takes the next step: processors that share units or have other work differ by a fifth and more, and
    of two equal runs the slower one would be waited for. What a thread keeps from step to step, `start` makes.
    """
    n = threads(n_steps, n_jobs, most)
    if n > 1:
        _share(n, n_steps, start)
        return
    step = start()
    for k in range(n_steps):
        step(k)


def threads(n_steps, n_jobs=None, most=None):
    """Return how many threads `walk` shares so many steps among."""
    if n_steps <= 1 or (n_jobs is None and not _may_be_in_context()):
        return 1
    return min(effective_n_jobs(n_jobs), n_steps, n_steps if most is None else most)


def _may_be_in_context():
    """Tell whether joblib may say how many threads None is here: to ask it takes as long as counting some thousands."""
    return not isinstance(_contexts, threading.local) or bool(vars(_contexts))


def _share(n, n_steps, start):
    """Let n threads, this one among them, call each a ``start()`` of its own with the next of n_steps steps."""
    left = deque(range(n_steps))

    def work():
        step = None
        try:
            while left:
                try:
                    k = left.popleft()
                except IndexError:  # another thread was quicker
                    break
                step = step or start()  # (made by those alone who find something to do)
                step(k)
        except BaseException:
            left.clear()  # (nobody begins what is no longer asked for)
            raise

    jobs = [_Job(work) for _ in range(1, n)]
    try:
        _put(jobs)
        work()
        _end(jobs)
    except BaseException:
        # wait for all that have begun, so that no thread writes after a failure
        _end(jobs)
        raise
    errors = [job.raised() for job in jobs]
    try:
        for error in errors:
            if error is not None:
                raise error
    finally:
        error = errors = None  # (an error holds this frame, which is not to hold the error)


def _end(jobs):
    """Wait until nobody does any of these jobs or will; an interrupt is raised after that, however many come."""
    try:
        for job in jobs:
            job.end()
    except BaseException:
        _end(jobs)
        raise


class _Job:
    """What a helper is asked to call once: a future, with less to do between two threads that wait for each other."""

    __slots__ = ("_call", "_error", "_over", "_taker", "_waits")

    def __init__(self, call):
        self._call, self._error, self._taker, self._over, self._waits = call, None, {}, False, threading.Lock()
        self._waits.acquire()

    def begin(self):
        """Call it, unless nobody waits for it any more."""
        if self._taker.setdefault(0, "helper") != "helper":
            return
        try:
            self._call()
        except BaseException as error:
            self._error = error
        finally:
            self._call, self._over = None, True
            self._waits.release()
            self = None  # (the error holds this frame)

    def end(self):
        """Wait until it is over if it has begun, and see to it that it does not begin.

        An interrupt may come between any two steps of this: it can be called again, then and at any time.
        """
        if self._taker.setdefault(0, "nobody") == "helper":
            while not self._over:
                self._waits.acquire()
        self._call = None  # (helpers that hang keep jobs, and nothing of what these were about)

    def raised(self):
        """Return what it raised, and keep it no longer."""
        error, self._error = self._error, None
        return error


def one_thread(n_columns=_WIDE):
    """Return a context in which BLAS has one thread: for matrices of a few hundred rows more of them only wait.

    So what it returns depends on no number of threads, and threads that wait for work do not take time from ours. It
    does nothing where matrices are so narrow that BLAS takes one anyway.
    """
    return _controller().limit(limits=1, user_api="blas") if n_columns >= _WIDE else nullcontext()


@lru_cache(maxsize=1)
def _controller():
    return ThreadpoolController()  # (looks at every library that is loaded: once is enough)


def _put(jobs):
    """Hand jobs to helpers, of which there are as many as were ever asked for at a time, or could be had."""
    global _n_helpers
    with _lock:
        while _n_helpers < len(jobs):
            # (a daemon: it waits for jobs as long as there is a process, and in no context: not in its first caller's)
            helper = threading.Thread(target=Context().run, args=(_help, _jobs), name=f"dpestim_{_n_helpers}",
                                      daemon=True)
            try:
                helper.start()
            except RuntimeError:  # (the system gives no more threads: those that are there do it, or this one alone)
                break
            _n_helpers += 1
        jobs = jobs[:_n_helpers]
    for job in jobs:
        _jobs.put(job)


def _help(jobs):
    while True:
        jobs.get().begin()


def _forget_helpers():
    """Start anew in a forked child: helpers exist only in the parent."""
    global _jobs, _n_helpers, _lock
    _jobs, _n_helpers, _lock = SimpleQueue(), 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)
