"""Two threads beside one, for every mechanism, and beside what two threads of this machine gain where nothing waits.

Two programs say what that is, in the same repeats: arithmetic in registers (SHA-256 of a piece that stays in the
second-level cache), and reading memory (a sum over an array far larger than the cache). Of one thread's time, what it
takes to read X at the speed of memory gains at most what reading gains, and the rest what arithmetic gains.
"""

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks._harness import Row, interleave, n_cores
from benchmarks.frequencies import Case, case_of, estimator, mechanisms

#: What two threads must gain, or that share of what the machine allows, where it is less. The share is an allowance for
#: noise, as the limit is itself made of ratios of medians of three repeats or more; it is chosen, and not measured.
TARGET, SHARE = 1.85, 0.95
#: Where two threads of arithmetic gain less, the machine is busy, and no row is judged.
LEAST_CONTROL = 1.8
#: Bytes that SHA-256 reads at a time, and how often; numbers that are summed.
PIECE, TIMES, NUMBERS = 1 << 19, 1 << 6, 1 << 24


def rows(settings):
    """Yield a row for each mechanism; those for fewer values have none."""
    with ThreadPoolExecutor(2) as pool:
        machine = Machine(pool, settings.quick)
        for name, cls in mechanisms():
            row = thread_row(settings, name, cls, machine)
            if row is not None:
                yield row


class Machine:
    """What two threads gain, as contestants: one thread does twice what each of two does."""

    def __init__(self, pool, quick=False):
        self.pool, self.times = pool, 1 if quick else TIMES
        self.piece, self.numbers = bytes(PIECE), np.ones(NUMBERS // 64 if quick else NUMBERS)

    def contestants(self):
        """Return the functions to time, by name."""
        halves = np.split(self.numbers, 2)
        return {"arithmetic 1": lambda: [self._hash(k) for k in range(2)],
                "arithmetic 2": lambda: list(self.pool.map(self._hash, range(2))),
                "memory 1": lambda: [half.sum() for half in halves],
                "memory 2": lambda: list(self.pool.map(np.sum, halves))}

    def _hash(self, _):
        # (each piece releases the interpreter's lock once, for some hundred microseconds)
        return [hashlib.sha256(self.piece).digest() for _ in range(self.times)]

    def gains(self, times):
        """Return (what two threads gain in arithmetic, and in reading)."""
        return tuple(times[f"{kind} 1"] / times[f"{kind} 2"] for kind in ("arithmetic", "memory"))

    def most(self, times, seconds, n_bytes):
        """Return what two threads gain at most, where one takes so many seconds and reads so many bytes."""
        arithmetic, memory = self.gains(times)
        reading = min(seconds, times["memory 1"] * n_bytes / self.numbers.nbytes)
        return seconds / (reading / memory + (seconds - reading) / arithmetic)


def thread_row(settings, name, cls, machine):
    """Return one thread against two; None: a mechanism for fewer values."""
    row = Row(f"{name} fit, 2 threads", peer="1 thread", target=f"{TARGET:g}x")
    if n_cores() < 2:
        row.note = "not measured: one core"
        return row
    try:
        case = case_of(cls, settings.n, 1024)
        start = time.perf_counter()
        case.fit()
    except ValueError:
        return None
    if time.perf_counter() - start < 0.1:  # a longer time is easier to compare
        case = Case(cls, settings.n_large, 1024)
    row.name = f"{name} fit, 2 threads, {case.n:,} x {case.d}"
    contestants = {"1": lambda: estimator(cls, case.d, n_jobs=1).fit(case.X),
                   "2": lambda: estimator(cls, case.d, n_jobs=2).fit(case.X), **machine.contestants()}
    for attempt in range(1 if settings.quick else 5):
        # tried again where arithmetic, and nothing else, says that the machine was busy
        time.sleep(2 if attempt else 0)
        times, results, row.repeats = interleave(contestants, slow=4)
        control, reading = machine.gains(times)
        if control >= LEAST_CONTROL:
            break
    for count in ("1", "2"):
        case.check(results[count]._counts[0], f"{name} with {count} threads")
    row.ours, row.baseline, row.ratio = times["2"], times["1"], times["1"] / times["2"]
    most = machine.most(times, times["1"], case.X.nbytes)
    row.note = f"of at most {most:.2f}x: arithmetic gains {control:.2f}x, reading {reading:.2f}x"
    row.judge(settings, round(min(TARGET, SHARE * most), 2))
    if control < LEAST_CONTROL:
        row.met = None
        row.note += f"; below {LEAST_CONTROL:g}x, not judged"
    return row
