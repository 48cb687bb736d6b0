"""Threads over runs of blocks: each thread takes one contiguous run, from one reused pool that a fork drops."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral

from joblib import effective_n_jobs

_lock = threading.Lock()
_pool = None
_pool_size = 0


def check_n_jobs(n_jobs):
    """Raise ValueError unless joblib could say how many threads `n_jobs` means."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError("n_jobs must be None or an integer other than 0")


def run(task, n_blocks, n_jobs=None):
    """Call ``task(first, last)`` on contiguous runs that cover range(n_blocks); return the results in order.

    `n_jobs` is scikit-learn's: None is one thread unless a joblib context says otherwise. The kernels and the cipher
    release the GIL, so threads are all it takes. One task a block would scale badly.
    """
    n = min(effective_n_jobs(n_jobs), n_blocks) if n_blocks > 1 else 1
    if n <= 1:
        return [task(0, n_blocks)]
    edges = [n_blocks * k // n for k in range(n + 1)]
    futures = [_get_pool(n - 1).submit(task, *edges[k : k + 2]) for k in range(1, n)]
    try:
        results = [task(*edges[:2])]  # this thread works too
    finally:
        rest = [f.exception() for f in futures]  # wait for all, so that no thread writes after a failure
    for error in rest:
        if error is not None:
            raise error
    return results + [f.result() for f in futures]


def _get_pool(size):
    global _pool, _pool_size
    with _lock:
        if _pool is None or _pool_size < size:
            _pool, _pool_size = ThreadPoolExecutor(size, thread_name_prefix="dpestim"), size
        return _pool


def _forget_pool():
    """Drop the pool in a forked child: its threads exist only in the parent."""
    global _pool, _pool_size, _lock
    _pool, _pool_size, _lock = None, 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
