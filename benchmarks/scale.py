"""``python -m benchmarks.scale [NAME ...]``: time and memory of fits over rows, columns and categories.

Each point is a process of its own, forked where estimators have been imported and have run once. It makes the rows,
resets the kernel's high-water mark, and fits: memory is what the mark has risen by, beyond the rows; time is that of
the processor, the least of up to three fits, so that other processes may run beside it. A curve ends before a fit would
take longer than `PATIENCE`, or rows more memory than `LARGEST`. Slopes are compared with what docstrings claim
(``scale_claims.toml``). What is measured is merged into ``docs/_static/scale.json``, of which pictures are drawn.
"""

import argparse
import ctypes
import json
import multiprocessing
import os
import sys
import time
import warnings
from datetime import date
from pathlib import Path

from benchmarks._harness import Settings, header
from benchmarks.memory import _resident
from benchmarks.scale_cases import CASES, case
from benchmarks.scale_claims import AXES, KINDS, TOLERANCE, judged

KEPT = Path(__file__).parents[1] / "docs" / "_static" / "scale.json"
#: Seconds that a fit may take, as the points before it foretell; bytes that rows may take.
PATIENCE, LARGEST = 20.0, 2.5e9
#: The sizes of each axis, and those of a quick run, which proves that everything runs.
SIZES = {"rows": [round(10 ** (k / 2)) for k in range(6, 17)], "columns": [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
         "categories": [1 << k for k in range(1, 21)]}
QUICK = {"rows": [1000, 3000], "columns": [1, 3], "categories": [2, 8]}
#: (rows, columns, categories) where an axis does not vary; models of several columns have two.
BASE = {"rows": (None, 1, 16), "columns": (10_000, None, 16), "categories": (10_000, 1, None)}
BASES = {"linear_model.DPLogisticRegression": {"rows": (None, 2, 2), "columns": (10_000, None, 2)},
         "ensemble.DPGradientBoostingClassifier": {"rows": (None, 2, 2), "columns": (10_000, None, 2)},
         "statistics.Histogram": {"columns": (10_000, None, 1)},  # (cells are all combinations of bins)
         "statistics.Quantile": {"categories": (1 << 21, 1, None)}}


def sizes_of(name, axis, size):
    """Return (rows, columns, categories) of a point."""
    base = (BASES.get(name, {}).get(axis) or BASE[axis])
    return tuple(size if each is None else each for each in base)


def curve(name, axis, sizes):
    """Return (points, why it ends before the last size, or None)."""
    points, before = [], None
    for size in sizes:
        n, columns, _ = sizes_of(name, axis, size)
        if n * columns * 8 > LARGEST:
            return points, f"{size:,} {axis} are {n * columns * 8 / 1e9:.1f} GB"
        if before and before["first"] * (size / before["size"]) > PATIENCE:
            return points, f"a fit of {size:,} {axis} takes more than {PATIENCE:.0f} s"
        found = apart(name, *sizes_of(name, axis, size))
        if "refused" in found:
            return points, f"{size:,} {axis} are refused: {found['refused']}"
        before = {"size": size, **found}
        points.append({"size": size, "time": float(f"{found['time']:.3g}"), "memory": round(found["memory"], -3)})
    return points, None


def apart(*point):
    """Return what a process of its own measures of a point."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=measure, args=(theirs, *point))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        return {"refused": "the process ended without an answer: it had too little memory"}
    finally:
        process.join()


def measure(pipe, name, n, columns, categories):
    """Send the least time of some fits, that of the first, and the memory of the first beyond rows."""
    warnings.simplefilter("ignore")
    try:
        case(name, 100, 1, 2)()  # what every fit touches first is no memory of a size
        fit = case(name, n, columns, categories)
        ctypes.CDLL(None).malloc_trim(0)  # what the making of rows has left is no room for a fit
        Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again
        before, times = _resident("VmRSS"), [seconds(fit)]
        memory = 1e6 * max(_resident("VmHWM") - before, 0)
        while times[0] < 2 and len(times) < 3:
            times.append(seconds(fit))
        pipe.send({"time": min(times), "first": times[0], "memory": memory})
    except (ValueError, MemoryError) as error:
        pipe.send({"refused": str(error).partition(". ")[0] or "too little memory"})


def seconds(fit):
    """Return the seconds of the processor that a fit takes."""
    start = time.process_time()
    fit()
    return time.process_time() - start


def measured(name, sizes):
    """Return what is kept of an estimator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case(name, 1000, 2, 2)()  # what is imported late is imported now
    found = {"date": date.today().isoformat(), "load": round(os.getloadavg()[0], 2), "third": CASES[name][2],
             "axes": {}}
    for axis in AXES:
        if axis == "categories" and CASES[name][2] is None:
            continue
        points, ends = curve(name, axis, sizes[axis])
        found["axes"][axis] = {
            "fixed": dict(zip(AXES, sizes_of(name, axis, None))), "points": points, "ends": ends}
        report(name, axis, found["axes"][axis])
    return found


def report(name, axis, own):
    """Judge a curve and print it."""
    own.update({kind: judged(name, kind, axis, own["points"]) for kind in KINDS})
    print(f"\n{name} over {axis}" + (f" (ends: {own['ends']})" if own["ends"] else ""))
    for point in own["points"]:
        print(f"  {point['size']:>12,} {point['time']:>9.3g} s {point['memory'] / 1e6:>9.1f} MB")
    for kind in KINDS:
        line = own[kind]
        said = "nothing to fit" if line["slope"] is None else (
            f"slope {line['slope']:.2f} ({line['error']:.2f}), claimed {line['claimed']:.2f}"
            + ("" if line["kept"] else ": GROWS FASTER THAN CLAIMED"))
        print(f"  {kind:>12}: {said}", flush=True)


def write(path, kept):
    """Write what is known so far: who stops the script loses one estimator."""
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def main(arguments=None):
    """Measure some or all and merge what is found into the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which (default: all): {', '.join(CASES)}")
    parser.add_argument("--judge", action="store_true", help="measure nothing: fit the slopes of what is kept again")
    parser.add_argument("--quick", action="store_true", help="small sizes, to show that everything runs")
    parser.add_argument("--output", type=Path, default=KEPT, help="JSON file")
    chosen = parser.parse_args(arguments)
    unknown = sorted(set(chosen.names) - set(CASES))
    if unknown:
        parser.error(f"no case is called {', '.join(unknown)}: choose from {', '.join(CASES)}")
    if not Path("/proc/self/clear_refs").exists():
        sys.exit("benchmarks.scale needs Linux's /proc")
    if chosen.quick and chosen.output == KEPT:
        parser.error("--quick keeps nothing that is worth drawing: name another --output")
    kept = json.loads(chosen.output.read_text(encoding="utf-8")) if chosen.output.exists() else {"estimators": {}}
    facts = header(Settings())
    if not chosen.judge:
        kept["header"] = {key: facts[key] for key in ("machine", "system", "Python", "packages", "kernels")}
    kept["tolerance"] = TOLERANCE
    for name, own in kept["estimators"].items() if chosen.judge else ():
        for axis, line in own["axes"].items():
            report(name, axis, line)
    for name in () if chosen.judge else chosen.names or CASES:
        kept["estimators"][name] = measured(name, QUICK if chosen.quick else SIZES)
        kept["estimators"] = {each: kept["estimators"][each] for each in CASES if each in kept["estimators"]}
        write(chosen.output, kept)
    write(chosen.output, kept)
    faults = [f"{name} over {axis}: {kind}" for name, own in kept["estimators"].items()
              for axis, line in own["axes"].items() for kind in KINDS if not line[kind]["kept"]]
    print("\ngrows faster: " + "; ".join(faults) if faults else "\nnothing grows faster than its docstring says")
    return len(faults)


if __name__ == "__main__":
    sys.exit(main())
