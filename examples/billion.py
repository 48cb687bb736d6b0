"""A billion users on two cores: frequencies by three mechanisms, and a mean, with the memory of one part a worker.

    python examples/billion.py                            # ten million users, half a minute
    python examples/billion.py --n 1e9                    # all of them
    python examples/billion.py --n 1e6 --boost 2e7        # boosting of twenty million rows, central

Each user answers one of the four questions. A part is a Parquet file that a worker writes, reads and deletes, so that
no more than one part a worker is on the disk or in memory. The same parts go through one process first, without Dask:
the rate of the cluster is compared with this rate. Rows of boosting stay in the memory of the workers.
"""

import argparse
import os
import resource
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from functools import partial

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from dask import dataframe
from dask.distributed import Client, LocalCluster, wait

from dpestim import distributed
from dpestim.ensemble import DPGradientBoostingClassifier
from dpestim.local import (
    MeanEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    PGRFrequencyEstimator,
    PMTransformer,
)

SHARES = np.arange(16, 0, -1) / 136
CODES = {"town": list(range(16))}
#: What each quarter of the users is asked: (column, estimator).
QUESTIONS = (
    ("town", partial(OUEFrequencyEstimator, 1.0, categories=CODES)),
    ("town", partial(OLHFrequencyEstimator, 1.0, categories=CODES)),
    ("town", partial(PGRFrequencyEstimator, 1.0, categories=CODES)),
    ("age", lambda: MeanEstimator(PMTransformer(1.0, bounds={"age": (0, 100)}))),
)
PROCESSES = 2
#: By default a worker of Dask gives freed memory back at once, and asks for it again for each array.
KEEP_MEMORY = {"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 28,
               "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1 << 25}


def rows_of(number, n_rows, columns):
    """Return simulated rows of one part, the same whenever they are made."""
    rng = np.random.default_rng(number)
    made = {"town": lambda: np.searchsorted(SHARES.cumsum(), rng.random(n_rows, np.float32)).astype(np.uint8),
            "age": lambda: rng.standard_normal(n_rows, np.float32) * np.float32(15) + np.float32(45)}
    return pa.table({name: made[name]() for name in columns})


def part_of(number, n_rows, columns, folder):
    """Return rows of one part by way of a Parquet file, which is gone when they are read."""
    path = os.path.join(folder, f"{number}-{os.getpid()}.parquet")
    pq.write_table(rows_of(number, n_rows, columns), path)
    rows = pd.read_parquet(path)
    os.remove(path)
    with open(os.path.join(folder, "done"), "ab", buffering=0) as file:
        file.write(b".")  # (for the bar: a byte a part, whoever makes it)
    return rows


def memory_here():
    """Return the largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def processor_time(client):
    """Return the seconds of the processor of this process, in which Dask's scheduler is, and of all workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


@contextmanager
def bar(name, n_parts, n_rows, folder):
    """Show on the standard error how many parts were made; yields the seconds, known at the end."""
    done, start, over = os.path.join(folder, "done"), time.perf_counter(), threading.Event()
    open(done, "wb").close()
    seconds = []

    def show():
        made, passed = min(os.path.getsize(done), n_parts), time.perf_counter() - start
        full = 30 * made // n_parts
        print(f"\r{name:24} [{'#' * full}{'.' * (30 - full)}] {made}/{n_parts} parts, "
              f"{made * n_rows / passed / 1e6:.1f} million rows a second ", end="", file=sys.stderr, flush=True)

    def keep_showing():
        while not over.wait(0.5):
            show()

    thread = threading.Thread(target=keep_showing)
    thread.start()
    try:
        yield seconds
        seconds.append(time.perf_counter() - start)
    finally:
        over.set()
        thread.join()
        show()
        print(file=sys.stderr)


def error_of(estimator):
    """Return the largest error of the estimates."""
    if hasattr(estimator, "frequencies_"):
        return np.abs(estimator.frequencies_[0] - SHARES).max()
    return abs(estimator.mean_[0] - 45)


def ask_users(client, n_users, n_rows, folder):
    """Ask each quarter of the users its question, by one process and then by all; print rates, errors and memory."""
    n_parts = max(1, round(n_users / n_rows / len(QUESTIONS)))
    total, expected, cost, cost_alone = 0.0, 0.0, 0.0, 0.0
    for number, (column, make) in enumerate(QUESTIONS):
        first, name = number * n_parts, type(make()).__name__
        estimator, n_alone = make(), min(n_parts, 16)
        before = time.process_time()
        with bar(f"{name}, one process", n_alone, n_rows, folder) as alone:
            for k in range(n_alone):
                estimator.partial_fit(part_of(first + k, n_rows, [column], folder))
        own_alone = (time.process_time() - before) * n_parts / n_alone
        parts = [dask.delayed(part_of)(first + k, n_rows, [column], folder) for k in range(n_parts)]
        like = rows_of(0, 0, [column]).to_pandas()
        estimator, before = make(), processor_time(client)
        with bar(name, n_parts, n_rows, folder) as seconds:
            distributed.fit(estimator, dataframe.from_delayed(parts, meta=like, verify_meta=False), check_first=False)
        own = processor_time(client) - before
        assert estimator.n_users_ == n_parts * n_rows
        n, seconds_alone = n_parts * n_rows, alone[0] * n_parts / n_alone
        total, expected = total + seconds[0], expected + seconds_alone / PROCESSES
        cost, cost_alone = cost + own, cost_alone + own_alone
        print(f"{name:24} {n:13,} users in {seconds[0]:6.1f} s, {n / seconds[0] / 1e6:.2f} million a second (one "
              f"process {n / seconds_alone / 1e6:.2f}); {own / n * 1e9:.0f} ms of the processor a million (one process "
              f"{own_alone / n * 1e9:.0f}); largest error {error_of(estimator):.2g}; largest memory of a worker "
              f"{max(client.run(memory_here).values()):.0f} MB; load {os.getloadavg()[0]:.1f}", flush=True)
    n = n_parts * n_rows * len(QUESTIONS)
    print(f"all {n:,} users: {total:.0f} s, {n / total / 1e6:.2f} million a second, {expected / total:.0%} of "
          f"{PROCESSES} times one process; {cost / cost_alone:.2f} times the processor time of one process "
          "without Dask (files are made and read in both)", flush=True)


def boost(client, n, n_rows, folder):
    """Fit boosting to n rows that the workers keep; print the time and the share of right answers."""
    n_parts, columns = max(1, round(n / n_rows)), ["town", "age"]
    parts = [dask.delayed(part_of)(k, n_rows, columns, folder) for k in range(n_parts)]
    like = rows_of(0, 0, columns).to_pandas()
    with bar("rows of boosting", n_parts, n_rows, folder) as reading:
        rows = dataframe.from_delayed(parts, meta=like, verify_meta=False)
        rows = rows.assign(old=rows["age"] > 40 + rows["town"]).persist()
        wait(rows)
    model = DPGradientBoostingClassifier(1.0, delta=1e-9, classes=[False, True], bounds={"age": (0, 100)},
                                         categories=CODES)
    start = time.perf_counter()
    distributed.fit(model, rows, y="old")
    seconds = time.perf_counter() - start
    test = rows_of(n_parts, 100_000, columns).to_pandas()
    right = (model.predict(test) == (test["age"] > 40 + test["town"])).mean()
    print(f"boosting of {n_parts * n_rows:,} rows: {seconds:.1f} s after {reading[0]:.1f} s for making and reading "
          f"them; {right:.1%} of new rows right; largest memory of a worker "
          f"{max(client.run(memory_here).values()):.0f} MB; load {os.getloadavg()[0]:.1f}")


def main():
    """Start two processes, ask the users and fit the model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=float, default=1e7, help="users in all")
    parser.add_argument("--part", type=float, default=1e6, help="rows of a part")
    parser.add_argument("--boost", type=float, default=0, help="rows of a boosting model; none without")
    arguments = parser.parse_args()
    n_rows = int(min(arguments.part, max(1, arguments.n // len(QUESTIONS))))
    dask.config.set(KEEP_MEMORY)
    with tempfile.TemporaryDirectory() as folder, LocalCluster(
        n_workers=PROCESSES, threads_per_worker=1, dashboard_address=None
    ) as cluster, Client(cluster) as client:
        ask_users(client, arguments.n, n_rows, folder)
        if arguments.boost:
            boost(client, arguments.boost, int(arguments.part), folder)


if __name__ == "__main__":
    main()
