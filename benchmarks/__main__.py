"""``python -m benchmarks [NAME ...]``: run some or the standard ones, print rows as they come, write them as JSON."""

import argparse
import os
import time
from pathlib import Path

from benchmarks import (
    _harness,
    central,
    collection,
    distributed,
    distributions,
    encoding,
    family,
    fits,
    frequencies,
    heavy_hitters,
    history,
    itemsets,
    keyvalue,
    ledger,
    logistic,
    longitudinal,
    memory,
    numbers,
    personalized,
    plans,
    profile,
    ranges,
    rows,
    selection,
    shuffle,
    sketches,
    sparse_vector,
    stability,
    starts,
    statistics,
    threads,
    vectors,
    words,
)
from benchmarks._harness import Settings, header, line, write

#: In the order in which they run; `python -m benchmarks NAME ...` chooses, `--all` takes all.
MODULES = {module.__name__.rpartition(".")[2]: module for module in (
    frequencies, threads, family, sketches, heavy_hitters, itemsets, longitudinal, numbers, rows, vectors, keyvalue,
    distributions, ranges, personalized, words, central, selection, sparse_vector, stability, statistics, shuffle,
    encoding, collection, ledger, starts, logistic, fits, memory, profile, plans, distributed,
)}
#: What runs without a name, each in its short form: one row for what others are compared with, in 60 lines.
STANDARD = ("frequencies", "numbers", "statistics", "ledger", "fits")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="How fast dpestim is; see benchmarks/.")
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help=f"which to run in full (default {', '.join(STANDARD)}, in short): {', '.join(MODULES)}")
    parser.add_argument("--all", action="store_true", help="all of them, in full: some 440 rows")
    parser.add_argument("--quick", action="store_true", help="all or those named in small sizes: judges no target")
    parser.add_argument("--record", action="store_true", help="keep the rows in benchmarks/history, with the commit")
    parser.add_argument("--output", default=Path(__file__).parent / "results" / "latest.json", help="JSON file")
    chosen = parser.parse_args(arguments)
    if chosen.record and chosen.quick:
        parser.error("--record keeps times that are compared later: leave out --quick")
    unknown = sorted(set(chosen.names) - set(MODULES))
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}: choose from {', '.join(MODULES)}")
    standard = not (chosen.names or chosen.all or chosen.quick)
    settings, names = Settings(chosen.quick, standard), chosen.names or (STANDARD if standard else MODULES)
    _harness.ONCE = chosen.quick
    facts = header(settings)
    print("\n".join(f"{name:>12}: {value}" for name, value in facts.items()), end="\n\n", flush=True)
    start, found = time.perf_counter(), []
    print(line(), flush=True)
    for name in names:
        for row in MODULES[name].rows(settings):
            found.append(row)
            print(line(row), flush=True)
        facts["seconds"] = round(time.perf_counter() - start, 1)
        write(chosen.output, facts, found)  # after each module: an interrupted run keeps what it has
    if hasattr(os, "getloadavg"):
        facts["load after"] = f"{os.getloadavg()[0]:.2f}"  # ours included
        write(chosen.output, facts, found)
    if chosen.record:
        print(f"recorded as {history.record(facts, found)}")
    judged = [row for row in found if row.met is not None]
    print(f"\n{sum(row.met for row in judged)} of {len(judged)} judged targets met; {facts['seconds']} s")
    print(f"rows written to {chosen.output}")


if __name__ == "__main__":
    main()
