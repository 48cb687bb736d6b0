"""``python -m benchmarks``: run everything, print one table, write it as JSON."""

import argparse
import os
import time
from pathlib import Path

from benchmarks import (
    _harness,
    central,
    distributions,
    encoding,
    family,
    fits,
    frequencies,
    keyvalue,
    ledger,
    logistic,
    longitudinal,
    memory,
    numbers,
    personalized,
    profile,
    rows,
    selection,
    shuffle,
    sketches,
    sparse_vector,
    stability,
    statistics,
    vectors,
    words,
)
from benchmarks._harness import Settings, header, table, write


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="How fast dpestim is; see benchmarks/.")
    parser.add_argument("--quick", action="store_true", help="small sizes: seconds, judges no target")
    parser.add_argument("--output", default=Path(__file__).parent / "results" / "latest.json", help="JSON file")
    arguments = parser.parse_args()
    settings = Settings(quick=arguments.quick)
    _harness.ONCE = arguments.quick
    facts = header(settings)
    print("\n".join(f"{name:>12}: {value}" for name, value in facts.items()), end="\n\n", flush=True)
    start = time.perf_counter()
    modules = (frequencies, family, sketches, longitudinal, numbers, rows, vectors, keyvalue, distributions,
               personalized, words, central, selection, sparse_vector, stability, statistics, shuffle, encoding, ledger,
               logistic, fits, memory, profile)
    found = [row for module in modules for row in module.rows(settings)]
    print(table(found))
    facts["seconds"] = round(time.perf_counter() - start, 1)
    if hasattr(os, "getloadavg"):
        facts["load after"] = f"{os.getloadavg()[0]:.2f}"  # ours included
    judged = [row for row in found if row.met is not None]
    print(f"\n{sum(row.met for row in judged)} of {len(judged)} judged targets met; {facts['seconds']} s")
    write(arguments.output, facts, found)
    print(f"rows written to {arguments.output}")


if __name__ == "__main__":
    main()
