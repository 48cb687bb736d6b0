"""Rows in parts on Dask and Spark against a bare loop and against the engine alone, on the same parts.

One worker with one thread, so that nothing but the engine differs. ``loop`` is ``partial_fit`` of one part after the
other (of a statistic: ``summarize``, and sums), ``there`` is this very loop as one task of the Dask worker, whose
allocator is not that of this process, and ``no-op`` is the engine over the same parts with a function that does
nothing. Ratios are those of the loop to ours; 0.91 is an overhead of 10 %, 0.8 of 25 %.
"""

import os
import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import _harness
from benchmarks._harness import Row, interleave
from dpestim import distributed
from dpestim.local import (
    GRRFrequencyEstimator,
    MeanEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    PMTransformer,
)
from dpestim.statistics import Mean

CODES = {"town": list(range(16))}
CASES = (
    ("GRR", "town", partial(GRRFrequencyEstimator, 1.0, categories=CODES)),
    ("OUE", "town", partial(OUEFrequencyEstimator, 1.0, categories=CODES)),
    ("OLH", "town", partial(OLHFrequencyEstimator, 1.0, categories=CODES)),
    ("mean of PM", "age", lambda: MeanEstimator(PMTransformer(1.0, bounds={"age": (0, 100)}))),
    ("central mean", "age", partial(Mean, 1.0, bounds={"age": (0, 100)})),
)
#: Without these, a Dask worker gives freed memory back at once, and each large array costs page faults.
KEEP_MEMORY = {"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 28,
               "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1 << 25}
DASK, SPARK = 1 / 1.1, 1 / 1.25


def rows(settings):
    """Yield the rows; one that says why where an engine is missing."""
    for name, measure in (("Dask", _dask_rows), ("Spark", _spark_rows)):
        try:
            yield from measure(settings)
        except ImportError as error:
            yield Row(f"{name}, overhead of a fit", note=f"not measured: {error}")


def fit(make, data):
    """Fit to parts, which are read once, as the loop reads them."""
    return distributed.fit(make(), data, check_first=False)


def loop(make, parts):
    """Fit to parts, one after the other."""
    estimator = make()
    if hasattr(estimator, "partial_fit"):
        for part in parts:
            estimator.partial_fit(part)
        return estimator
    for part in parts:
        estimator.merge(make().summarize(part))
    return estimator.release()


def loop_of_files(make, column, names):
    """Fit to Parquet files, one after the other."""
    import pandas as pd

    return loop(make, (pd.read_parquet(name, columns=[column]) for name in names))


def nothing(rows):
    """Take rows, and do nothing."""
    return rows.iloc[:0]


def frames(n, n_parts):
    """Return parts of n rows each."""
    import pandas as pd

    rng = np.random.default_rng(0)
    return [pd.DataFrame({"town": rng.integers(0, 16, n).astype(np.uint8),
                          "age": rng.normal(45, 15, n).astype(np.float32)}) for _ in range(n_parts)]


def _dask_rows(settings):
    import dask
    from dask.distributed import Client, LocalCluster

    parts = frames(settings.n, 2 if settings.quick else 32)
    for keep in (True, False):
        with dask.config.set(KEEP_MEMORY if keep else {}), tempfile.TemporaryDirectory() as folder, LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=None
        ) as cluster, Client(cluster) as client:
            if keep:
                for n_parts in (1, 8, 64):
                    yield _cost_of_tasks(client, n_parts)
            names = _written(parts, folder)
            for name, column, make in CASES:
                title = f"Dask, {name}, {len(parts)} x {settings.n:,}"
                row = _held(client, title, make, [part[[column]] for part in parts], keep)
                yield row.judge(settings, DASK)
                if keep:
                    yield _of_files(client, title, make, column, names).judge(settings, DASK)


def _held(client, title, make, parts, keep):
    """Return the row of parts that the worker holds."""
    from dask import dataframe
    from dask.distributed import wait

    held = client.scatter(parts, hash=False)
    data = dataframe.from_delayed(held, meta=parts[0].iloc[:0], verify_meta=False)
    contestants = {
        "ours": lambda: fit(make, data),
        "there": lambda: client.submit(loop, make, held, pure=False).result(),
        "loop": lambda: loop(make, parts),
        "no-op": lambda: wait(data.map_partitions(nothing, meta=data._meta).persist()),
    }
    times, _, repeats = interleave(contestants)
    given = "memory" if keep else "memory, Dask's defaults"
    return _row(f"{title}, {given}", times, "there", repeats,
                f"{_more_work(client, contestants)}; loop here {_ms(times['loop'])}, no-op {_ms(times['no-op'])}")


def _more_work(client, contestants):
    """Return what all processes take more of the processor than for the loop there: a busy machine changes it less."""
    def seconds(name):
        before = time.process_time() + sum(client.run(time.process_time).values())
        for _ in range(1 if _harness.ONCE else 4):
            contestants[name]()
        return time.process_time() + sum(client.run(time.process_time).values()) - before

    return f"of the processor {seconds('ours') / seconds('there') - 1:+.0%}"


def _of_files(client, title, make, column, names):
    """Return the row of parts that are read from files each time."""
    from dask import dataframe

    data = dataframe.from_map(_read, names, column=column, meta=_read(names[0], column).iloc[:0])
    contestants = {
        "ours": lambda: fit(make, data),
        "there": lambda: client.submit(loop_of_files, make, column, names, pure=False).result(),
        "loop": lambda: loop_of_files(make, column, names),
    }
    times, _, repeats = interleave(contestants)
    return _row(f"{title}, files", times, "there", repeats,
                f"{_more_work(client, contestants)}; loop here {_ms(times['loop'])}")


def _cost_of_tasks(client, n_parts):
    """Return the row of what a fit costs where rows cost nothing."""
    from dask import dataframe

    make, parts = CASES[0][2], [part[["town"]] for part in frames(1, n_parts)]
    data = dataframe.from_delayed(client.scatter(parts, hash=False), meta=parts[0].iloc[:0], verify_meta=False)
    times, _, repeats = interleave({"ours": lambda: fit(make, data), "loop": lambda: loop(make, parts)})
    more = times["ours"] - times["loop"]
    return _row(f"Dask, GRR, {n_parts} x 1, memory", times, "loop", repeats,
                f"{_ms(more)} more: under 10 % where the loop takes {10 * more:.2f} s")


def _spark_rows(settings):
    from pyspark import sql

    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        raise ImportError("no Java")
    parts = frames(settings.n, 2 if settings.quick else 8)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config(
        "spark.ui.showConsoleProgress", "false").config("spark.sql.files.openCostInBytes", 1 << 30).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        with tempfile.TemporaryDirectory() as folder:
            _written(parts, folder)
            for name, column, make in CASES:
                data = session.read.parquet(folder).select(column)
                row = _on_spark(f"Spark, {name}, {len(parts)} x {settings.n:,}, files", make, data,
                                [part[[column]] for part in parts])
                yield row.judge(settings, SPARK)
    finally:
        session.stop()


def _on_spark(title, make, data, parts):
    times, _, repeats = interleave({
        "ours": lambda: fit(make, data),
        "no-op": lambda: data.mapInPandas(_nothing_of, data.schema).collect(),
        "loop": lambda: loop(make, parts),
    })
    return _row(title, times, "no-op", repeats,
                f"loop here {_ms(times['loop'])}; {data.rdd.getNumPartitions()} partitions")


def _nothing_of(batches):
    return map(nothing, batches)


def _row(title, times, against, repeats, note):
    return Row(title, ours=times["ours"], peer=against, baseline=times[against],
               ratio=times[against] / times["ours"], repeats=repeats,
               note=f"{times['ours'] / times[against] - 1:+.0%}; {note}")


def _ms(seconds):
    return f"{1e3 * seconds:.0f} ms"


def _read(name, column):
    import pandas as pd

    return pd.read_parquet(name, columns=[column])


def _written(parts, folder):
    names = [str(Path(folder, f"{number}.parquet")) for number in range(len(parts))]
    for part, name in zip(parts, names):
        part.to_parquet(name)
    return names
