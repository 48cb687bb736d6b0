"""A billion users on two cores: frequencies by three mechanisms, and a mean, with the memory of one part a worker.

    python examples/billion.py                       # ten million users, a minute
    python examples/billion.py --users 1e9           # all of them

Each part is a Parquet file that a worker writes, reads and deletes, so that no more than one part a worker is on the
disk or in memory. Boosting is central: a fiftieth of the rows stays in the memory of the workers.
"""

import argparse
import os
import resource
import tempfile
import time

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from dask import dataframe
from dask.distributed import Client, LocalCluster

from dpestim import distributed
from dpestim.ensemble import DPGradientBoostingClassifier
from dpestim.local import (
    MeanEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    PGRFrequencyEstimator,
    PMTransformer,
)

TOWNS = [f"town {k}" for k in range(16)]
SHARES = np.arange(16, 0, -1) / 136


def part_of(number, n_rows, folder):
    """Return rows of one part by way of a Parquet file, which is gone when they are read."""
    rng = np.random.default_rng(number)
    path = os.path.join(folder, f"{number}-{os.getpid()}.parquet")
    table = pa.table({"town": rng.choice(16, n_rows, p=SHARES).astype(np.uint8),
                      "age": rng.normal(45, 15, n_rows).astype(np.float32)})
    pq.write_table(table, path)
    rows = pd.read_parquet(path)
    os.remove(path)
    return rows


def memory_of_worker():
    """Return the largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    """Make parts, fit, and print times, errors and memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=float, default=1e7)
    parser.add_argument("--part", type=float, default=1e6, help="rows of a part")
    arguments = parser.parse_args()
    n_rows, n_parts = int(arguments.part), max(1, round(arguments.users / arguments.part))
    with tempfile.TemporaryDirectory() as folder, LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster, Client(cluster) as client:
        parts = [dask.delayed(part_of)(k, n_rows, folder) for k in range(n_parts)]
        users = dataframe.from_delayed(parts, meta=part_of(0, 1, folder), verify_meta=False)
        codes = {"town": list(range(16))}
        start = time.perf_counter()
        users.map_partitions(len).compute()
        reading = time.perf_counter() - start
        print(f"{n_parts * n_rows:,} users in {n_parts} parts, 2 processes; making and reading alone: {reading:.1f} s")
        for estimator, column in ((OUEFrequencyEstimator(1.0, categories=codes), "town"),
                                  (OLHFrequencyEstimator(1.0, categories=codes), "town"),
                                  (PGRFrequencyEstimator(1.0, categories=codes), "town"),
                                  (MeanEstimator(PMTransformer(1.0, bounds={"age": (0, 100)})), "age")):
            start = time.perf_counter()
            distributed.fit(estimator, users[[column]])
            seconds = time.perf_counter() - start
            if column == "town":
                error = np.abs(estimator.frequencies_[0] - SHARES).max()
            else:
                error = abs(estimator.mean_[0] - 45)
            print(f"{type(estimator).__name__:24} {seconds:7.1f} s with making the files, "
                  f"{n_parts * n_rows / seconds / 1e6:.1f} million users a second; largest error {error:.2g}")
        start = time.perf_counter()
        tree = DPGradientBoostingClassifier(1.0, delta=1e-6, classes=[False, True], bounds={"age": (0, 100)},
                                            categories=codes, random_state=0)
        n_kept = max(1, n_parts // 50)
        some = users.partitions[:n_kept].assign(old=lambda rows: rows["age"] > 40 + rows["town"]).persist()
        distributed.fit(tree, some, y="old")
        print(f"boosting of {n_kept * n_rows:,} of them: {time.perf_counter() - start:.1f} s")
        most = max(client.run(memory_of_worker).values())
        print(f"largest memory of a worker: {most:,.0f} MB")


if __name__ == "__main__":
    main()
