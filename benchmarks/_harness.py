"""Repeats, limits of the machine, the header and the lines of the table."""

import gc
import json
import os
import platform
import re
import statistics
import time
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from dpestim._core import build


@dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    quick: bool = False
    #: Whether a module leaves out what only those ask for who choose it by name.
    short: bool = False

    @property
    def n(self):
        return 20_000 if self.quick else 1_000_000

    @property
    def n_large(self):
        return 50_000 if self.quick else 10_000_000


@dataclass
class Row:
    """One line of the table; `ours` and `baseline` are in `unit`, and `ratio` above 1 means that we win."""

    name: str
    ours: float | None = None
    unit: str = "s"
    peer: str = ""
    baseline: float | None = None
    ratio: float | None = None
    target: str = ""
    met: bool | None = None
    limit: str = ""
    share: float | None = None
    repeats: int | None = None
    note: str = ""

    def judge(self, settings, target):
        """Set the target of the ratio and whether it was met; sizes of a quick run prove nothing."""
        self.target = f"{target:g}x"
        if not settings.quick and self.ratio is not None:
            self.met = self.ratio >= target
        return self


#: Whether one repeat after the warm-up is enough: ``--quick`` shows that every row runs, and judges none.
ONCE = False


def interleave(contestants, *, slow=1.0, before=None, least=1, summary=statistics.median):
    """Return (median seconds, warm-up results, number of repeats) of functions called in turn: A B A B ...

    The warm-up's results are handed out so that contestants can be compared. Three repeats where the warm-up of all
    took more than `slow` seconds (one beyond 30), else at least five, and up to 25 within about a second. `before` is
    called before each call, and its time is not counted. `least`: so many repeats at least. `summary` is
    what is returned of the seconds in place of their median.
    """
    _settle_allocator()
    times = {name: [] for name in contestants}
    results = {}
    enabled = gc.isenabled()
    if not ONCE:  # (one repeat judges nothing, and collecting takes longer than most rows)
        gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        for name, function in contestants.items():
            results[name] = function()
        taken = time.perf_counter() - start
        repeats = 1 if ONCE or taken > 30 else 3 if taken > slow else min(25, max(5, int(1 / taken)))
        repeats = repeats if ONCE else max(repeats, least)
        for _ in range(repeats):
            for name, function in contestants.items():
                if before is not None:
                    before()
                start = time.perf_counter()
                result = function()
                times[name].append(time.perf_counter() - start)
                del result  # freeing a large result is not part of the next one's time
    finally:
        if enabled:
            gc.enable()
    return {name: summary(t) for name, t in times.items()}, results, repeats


@cache
def _settle_allocator():
    """Bring glibc's malloc to where a process that has run for a while has it.

    Freeing a large array raises the size from which arrays get fresh pages each time (to at most 32 MB). Before that a
    2 MB output costs 500 page faults a call, and whether it does would depend on the rows that ran before.
    """
    np.ones(30 << 20, np.uint8)


# ---------------------------------------------------------------- limits: name -> (function, units of work in a call)


@cache
def _limits():
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    big = np.ones(1 << 25, np.int64)  # 256 MB
    matrix = np.ones((1024, 1024), np.float32)
    product = np.empty_like(matrix)
    zeros, stream = bytes(1 << 18), np.empty(1 << 18, np.uint8)
    # counter mode by the faster of its two implementations, as `dpestim.rng` has it
    mode = modes.GCM(bytes(12)) if build.VECTOR_AES else modes.CTR(bytes(16))

    def keystream():
        cipher = Cipher(algorithms.AES(bytes(32)), mode).encryptor()  # (one nonce of GCM ends after 64 GiB)
        for _ in range(256):
            cipher.update_into(zeros, stream)

    def vector():
        with threadpool_limits(1):
            np.matmul(matrix, matrix, out=product)

    return {
        "memory": (big.sum, big.nbytes),
        "keystream": (keystream, 256 * len(zeros)),
        "vector": (vector, 2 * 1024**3),  # a fused multiply-add of one 32-bit lane is two operations
    }


def limit(name):
    """Return the function that exercises a limit; it belongs among the contestants."""
    return _limits()[name][0]


def share(name, seconds_of_limit, work, seconds):
    """Return the part of a limit's measured rate at which `work` bytes or lane operations were done."""
    return work / seconds / (_limits()[name][1] / seconds_of_limit)


# ---------------------------------------------------------------- what the numbers belong to


def header(settings):
    """Return machine, system, versions and sizes."""
    facts = {
        "machine": f"{_processor()}, {n_cores()} cores usable, vectors of {build.VECTOR_BITS or 'unknown'} bits chosen",
        "system": platform.platform(),
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
    }
    versions = []
    for package in ("numpy", "scikit-learn", "scipy", "cryptography", "pandas", "dpestim"):
        try:
            found = version(package)
        except PackageNotFoundError:
            import dpestim

            found = dpestim.__version__ if package == "dpestim" else "absent"
        versions.append(f"{package} {found}")
    facts["packages"] = ", ".join(versions)
    facts["kernels"] = f"{_compiler()}{', debug build' if build.DEBUG else ''}"
    facts["n"] = f"{settings.n:,} users{', quick run: targets are not judged' if settings.quick else ''}"
    if hasattr(os, "getloadavg"):
        facts["load before"] = f"{os.getloadavg()[0]:.2f}"
    return facts


def n_cores():
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _processor():
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def _compiler():
    """Return what gcc or clang left in the comment section of a kernel."""
    found = re.search(rb"(GCC: \([^\0]*|clang version [^\0]*)", Path(build.__file__).read_bytes())
    return found[1].decode(errors="replace") if found else "compiler unknown"


# ---------------------------------------------------------------- the table


def show(number, unit):
    """Return a number with its unit, three digits or so."""
    if number is None:
        return ""
    if unit == "s":
        scale, unit = (1, "s") if number >= 1 else (1e3, "ms") if number >= 1e-3 else (1e6, "us")
        number *= scale
    return f"{number:.3g} {unit}" if number < 100 else f"{number:.0f} {unit}"


#: (title, width, side) of the columns that stand before the note.
_COLUMNS = (("what", 56, "<"), ("ours", 9, ">"), ("baseline", 9, ">"), ("", 26, "<"), ("ratio", 7, ">"),
            ("target", 6, ">"), ("met", 3, "<"), ("of limit", 14, "<"))


def line(row=None):
    """Return a row as one line of text; without a row, the titles."""
    cells = [title for title, _, _ in _COLUMNS] + ["note"] if row is None else [
        row.name,
        show(row.ours, row.unit),
        show(row.baseline, row.unit),
        row.peer,
        "" if row.ratio is None else f"{row.ratio:.3g}x",
        row.target,
        {True: "yes", False: "NO", None: "-" if row.target else ""}[row.met],
        "" if row.share is None else f"{row.share:.0%} {row.limit}",
        row.note,
    ]
    shown = [f"{cell:{side}{width}}" for cell, (_, width, side) in zip(cells, _COLUMNS)]
    return "  ".join([*shown, cells[-1]]).rstrip()


def write(path, facts, rows):
    """Write header and rows as JSON."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({"header": facts, "rows": [asdict(row) for row in rows]}, indent=1) + "\n")
    partial.replace(path)
