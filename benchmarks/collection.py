"""Reports that travel: files against reading them, the collector against bare counting, bytes against counting, CSV.

``python -m benchmarks.collection N`` counts a file of N reports in a process of its own and prints its peak memory.
"""

import itertools
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks._harness import Row, interleave
from dpestim.local import GRRFrequencyEstimator, OLHFrequencyEstimator, OUEFrequencyEstimator

D, BATCH = 1000, 100_000
LARGEST_MB = 300
ROOT = Path(__file__).parents[1]


def survey_of(cls=GRRFrequencyEstimator, domain=D):
    from dpestim.collection import Survey

    return Survey(cls(1.0, categories={"value": list(range(domain)) if isinstance(domain, int) else domain}), name="x")


def rows(settings):
    """Yield the rows; what needs pyarrow is left out without it."""
    try:
        import pyarrow
    except ImportError:
        yield Row("collection", note="not measured: pyarrow is absent")
        return
    print(f"pyarrow {pyarrow.__version__}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield from files(settings, folder)
        yield from batches_of(settings, folder)
        yield from messages(settings)
        yield from csv(settings, folder)


# ---------------------------------------------------------------- files


def write(survey, path, n):
    """Write n reports into a Parquet file, in parts."""
    from dpestim.collection import batches

    rng, client = np.random.default_rng(0), survey.client()

    def tables():
        for start in range(0, n, 1 << 22):
            yield survey.to_arrow(client.privatize(rng.integers(0, D, (min(1 << 22, n - start), 1))))

    batches.write(path, tables())


def files(settings, folder):
    """Yield: a file of GRR reports counted, by a collector and by `aggregate`, against reading it."""
    import pyarrow.parquet as pq

    from dpestim.collection import Collector

    n, survey = 1_000_000 if settings.quick else 100_000_000, survey_of()
    path, numbers = folder / "reports.parquet", itertools.count()
    write(survey, path, n)

    def read():
        return sum(part.num_rows for part in pq.ParquetFile(path).iter_batches(1 << 20, use_threads=False))

    def collect():
        collector = Collector(survey, folder / f"files{next(numbers)}.sqlite")
        added = collector.add_file(path)
        collector.close()
        return added.n

    def aggregate():
        server, file = survey.server(), pq.ParquetFile(path)
        for part in file.iter_batches(1 << 20, use_threads=False):
            server.aggregate(part.replace_schema_metadata(file.schema_arrow.metadata))
        return server.n_users_

    times, results, repeats = interleave({"read": read, "collect": collect, "aggregate": aggregate})
    if set(results.values()) != {n}:
        raise RuntimeError("reports were lost")
    for key, name in (("collect", "Collector.add_file"), ("aggregate", "aggregate of record batches")):
        yield Row(f"{name}, {n:,} GRR reports", ours=times[key], peer="pyarrow reads the file", baseline=times["read"],
                  ratio=times["read"] / times[key], repeats=repeats,
                  note=f"{n / times[key] / 1e6:.0f} million a second; file of {path.stat().st_size / 1e6:.0f} MB"
                  ).judge(settings, 0.5)
    yield memory(settings, path)


def memory(settings, path):
    row = Row("Collector.add_file, memory of a process", unit="MB", target=f"<{LARGEST_MB} MB")
    done = subprocess.run([sys.executable, "-m", "benchmarks.collection", str(path)], cwd=ROOT, capture_output=True,
                          text=True)
    if done.returncode:
        row.note = f"failed: {(done.stderr.strip() or 'no message').splitlines()[-1]}"
        return row
    found = json.loads(done.stdout)
    row.ours, row.note = found["peak"], f"VmHWM, all of the process; {found['before']:.0f} MB before"
    if not settings.quick:
        row.met = row.ours < LARGEST_MB
    return row


# ---------------------------------------------------------------- batches


def batches_of(settings, folder):
    """Yield: a batch in a transaction against bare `aggregate` of it."""
    from dpestim.collection import Collector

    for cls in (GRRFrequencyEstimator, OUEFrequencyEstimator, OLHFrequencyEstimator):
        survey, n = survey_of(cls), 2_000 if settings.quick else BATCH
        reports = survey.client().privatize(np.random.default_rng(0).integers(0, D, (n, 1)))
        batch, numbers = survey.to_arrow(reports).combine_chunks().to_batches()[0], itertools.count()
        server, collector = survey.server(), Collector(survey, folder / f"{cls.__name__}.sqlite")

        def collect(durable, batch=batch, collector=collector, numbers=numbers):
            return collector.add(batch, name=f"batch {next(numbers)}", durable=durable).n

        times, _, repeats = interleave({"later": lambda c=collect: c(False), "now": lambda c=collect: c(True),
                                        "peer": lambda b=batch, s=server: s.aggregate(b)})
        collector.close()
        name = cls.__name__.removesuffix("FrequencyEstimator")
        for key, note in (("later", "one transaction; on the disk after flush"),
                          ("now", "one transaction, on the disk: waits for it")):
            yield Row(f"Collector.add, {n:,} {name} reports", ours=times[key], peer="aggregate",
                      baseline=times["peer"], ratio=times["peer"] / times[key], repeats=repeats, note=note
                      ).judge(settings, 1 / 1.1)


# ---------------------------------------------------------------- bytes


def messages(settings):
    """Yield: reports to messages and back against counting them."""
    for cls in (GRRFrequencyEstimator, OUEFrequencyEstimator, OLHFrequencyEstimator):
        survey, n = survey_of(cls), 2_000 if settings.quick else BATCH
        reports = survey.client().privatize(np.random.default_rng(0).integers(0, D, (n, 1)))
        server = survey.server()
        times, results, repeats = interleave({
            "bytes": lambda s=survey, r=reports: s.decode(s.encode(r)),
            "payload": lambda s=survey, r=reports: s.unpack(s.pack(r)),
            "count": lambda s=server, r=reports: s.aggregate(r)})
        if not np.array_equal(results["bytes"], reports):
            raise RuntimeError("other reports came back")
        name = cls.__name__.removesuffix("FrequencyEstimator")
        for key, what in (("payload", "pack, unpack"), ("bytes", "encode, decode")):
            yield Row(f"{what} {n:,} {name} reports", ours=times[key], peer="aggregate", baseline=times["count"],
                      ratio=times["count"] / times[key], repeats=repeats).judge(settings, 1.0)


# ---------------------------------------------------------------- CSV


def csv(settings, folder):
    """Yield: a CSV file of raw rows to a Parquet file of reports, against reading it."""
    import pyarrow as pa
    from pyarrow import csv

    from dpestim.collection import Survey, privatize_csv
    from dpestim.local import MixedEstimator, PMTransformer

    n, rng, path = 20_000 if settings.quick else 3_000_000, np.random.default_rng(0), folder / "rows.csv"
    values = [f"value{i:04d}" for i in range(D)]
    csv.write_csv(pa.table({"id": pa.array(np.arange(n)), "age": pa.array(rng.integers(17, 90, n)),
                            "value": pa.array(values).take(pa.array(rng.integers(0, D, n)))}), path)
    row = MixedEstimator([("value", GRRFrequencyEstimator(categories=[values]), ["value"]),
                          ("age", PMTransformer(bounds=(17, 90)), ["age"])])

    def read():
        options = csv.ReadOptions(block_size=1 << 23, use_threads=False)
        return sum(part.num_rows for part in csv.open_csv(path, options))

    for name, survey in (("GRR", survey_of(domain=values)), ("OUE", survey_of(OUEFrequencyEstimator, values)),
                         ("a row of GRR and PM", Survey(row, name="row"))):
        times, _, repeats = interleave({"ours": lambda s=survey: privatize_csv(path, s, folder / "out.parquet"),
                                        "read": read})
        out = Row(f"privatize_csv, {n:,} rows, {name}", ours=times["ours"], peer="pyarrow reads the file",
                  baseline=times["read"], ratio=times["read"] / times["ours"], repeats=repeats, target="1e6 rows/s",
                  note=f"{n / times['ours'] / 1e6:.2f} million rows a second")
        if not settings.quick:
            out.met = n / times["ours"] >= 1e6
        yield out


def resident(name):
    return int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1e3


def main(path):
    """Count a file and print the peak of this process."""
    from dpestim.collection import Collector

    with tempfile.TemporaryDirectory() as folder:
        survey, before, start = survey_of(), resident("VmRSS"), time.perf_counter()
        collector = Collector(survey, Path(folder) / "state.sqlite")
        collector.add_file(path)
        collector.close()
        print(json.dumps({"before": before, "peak": resident("VmHWM"), "seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main(sys.argv[1])
