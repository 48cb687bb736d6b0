"""Two threads beside one, for every mechanism, and beside what two processes that never wait for each other gain.

Each of the two processes fits half of the rows by one thread, in the same repeats: it is the same work, on the same
two processors, without the interpreter's lock between them, and no pages, allocator or counters in common. What they
gain is the most that threads can be asked for on this machine, whose processors may share units, memory or a clock.
Threads that gain more than they do share something that processes have twice.

Where no process can be forked, and as an explanation, other contestants tell the same by kinds of work: SHA-256 (a
chain of additions that wait for each other: it tells whether a second processor was free, and nothing else), the
keystream as `dpestim.rng` draws it, vector arithmetic on integers that stay in the first-level cache, and reading an
array far larger than the caches. Of one thread's time, what X takes to read at the speed of memory gains at most what
reading gains, what the words take at the speed of the keystream what the keystream gains, the rest what vector
arithmetic gains; none of them more than two. It leaves out increments of counters and gathers from tables.
"""

import hashlib
import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.lib.stride_tricks import as_strided

from benchmarks._harness import Row, interleave, n_cores
from benchmarks.frequencies import Case, case_of, estimator, mechanisms
from dpestim._core import rare

#: What two threads must gain, or that share of what two processes gain, where it is less. The share is an allowance for
#: noise, as the limit is itself made of medians of ratios of some repeats; it is chosen, and not measured.
TARGET, SHARE = 1.85, 0.95
#: Where two threads of arithmetic gain less, the machine is busy, and no row is judged.
LEAST_CONTROL = 1.8
#: Bytes that SHA-256 reads at a time, and how often; numbers that are summed.
PIECE, TIMES, NUMBERS = 1 << 19, 1 << 6, 1 << 24
#: Bytes of keystream drawn at a time, and integers that are added at a time: all of them stay in the caches.
CHUNK, LANES = 1 << 20, 1 << 11
#: Repeats at least: gains of three of them swing by a sixth.
REPEATS = 11
#: What gains, by name.
KINDS = "arithmetic", "memory", "keystream", "vector"


def rows(settings):
    """Yield a row for each mechanism; those for fewer values have none."""
    with ThreadPoolExecutor(2) as pool:
        machine = Machine(pool, settings.quick)
        for name, cls in mechanisms():
            row = thread_row(settings, name, cls, machine)
            if row is not None:
                yield row


def gain(one, two):
    """Return the median of the ratios of times that were taken in turns, so that a clock that moves is in both."""
    return median(a / b for a, b in zip(one, two))


class Machine:
    """What two threads gain, as contestants: one thread does twice what each of two does."""

    def __init__(self, pool, quick=False):
        self.pool, self.times = pool, 1 if quick else TIMES
        self.piece, self.numbers = bytes(PIECE), np.ones(NUMBERS // 64 if quick else NUMBERS)

    def contestants(self):
        """Return the functions to time, by name."""
        halves = np.split(self.numbers, 2)
        work = {"arithmetic": self._hash, "memory": lambda k: halves[k].sum(), "keystream": self._encrypt,
                "vector": self._add}
        return {f"{kind} 1": lambda f=f: list(map(f, range(2))) for kind, f in work.items()} | {
            f"{kind} 2": lambda f=f: list(self.pool.map(f, range(2))) for kind, f in work.items()}

    def _hash(self, _):
        # (each piece releases the interpreter's lock once, for some hundred microseconds)
        return [hashlib.sha256(self.piece).digest() for _ in range(self.times)]

    def _encrypt(self, _):
        if rare.VECTOR_AES:
            out = np.empty(CHUNK, np.uint8)
            for _ in range(self.times):
                rare.keystream(bytes(32), 0, 0, out)
            return
        mode, zeros, out = modes.CTR(bytes(16)), bytes(CHUNK), bytearray(CHUNK + 15)
        cipher = Cipher(algorithms.AES(bytes(32)), mode).encryptor()
        for _ in range(self.times):
            cipher.update_into(zeros, out)

    def _add(self, _):
        # (one call of NumPy's adds the same rows again and again, and holds no lock)
        one, two, out = (np.ones(LANES, np.uint32) for _ in range(3))
        np.add(*(as_strided(row, (512 * self.times, LANES), (0, row.itemsize)) for row in (one, two)),
               out=as_strided(out, (512 * self.times, LANES), (0, out.itemsize)))

    def gains(self, times):
        """Return what two threads gain, by kind."""
        return {kind: gain(times[f"{kind} 1"], times[f"{kind} 2"]) for kind in KINDS}

    def most(self, times, seconds, n_bytes, n_drawn=0):
        """Return what two threads gain at most, where one takes so many seconds, reads and draws so many bytes."""
        gains = {kind: min(2.0, own) for kind, own in self.gains(times).items()}  # (more is a clock that moved)
        reading = min(seconds, median(times["memory 1"]) * n_bytes / self.numbers.nbytes)
        drawing = min(seconds - reading, median(times["keystream 1"]) * n_drawn / (2 * self.times * CHUNK))
        rest = seconds - reading - drawing
        return seconds / (reading / gains["memory"] + drawing / gains["keystream"] + rest / gains["vector"])


class Halves:
    """A fit of the rows of a case by two processes, half of them each; the second is forked, and ends with `close`."""

    def __init__(self, case):
        half = case.n // 2
        self._own, self._other = Case(case.cls, half, case.d), Case(case.cls, case.n - half, case.d)
        self._own.X, self._other.X = case.X[:half], case.X[half:].copy()
        context = multiprocessing.get_context("fork")
        self._end, end = context.Pipe()
        self._process = context.Process(target=self._serve, args=(end,), daemon=True)
        self._process.start()

    def _serve(self, end):
        while end.recv():
            end.send(fitted(self._other, 1) is None)

    def __call__(self):
        self._end.send(True)
        fitted(self._own, 1)
        self._end.recv()

    def close(self):
        """End the second process."""
        self._end.send(False)
        self._process.join()


def fitted(case, n_jobs):
    """Return an estimator that so many threads have fitted."""
    return estimator(case.cls, case.d, n_jobs=n_jobs).fit(case.X)


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
    contestants = {"1": lambda: fitted(case, 1), "2": lambda: fitted(case, 2), **machine.contestants()}
    halves = Halves(case) if "fork" in multiprocessing.get_all_start_methods() else None
    if halves:
        contestants["processes"] = halves
    for attempt in range(1 if settings.quick else 5):
        # tried again where arithmetic, and nothing else, says that the machine was busy
        time.sleep(2 if attempt else 0)
        times, results, row.repeats = interleave(contestants, least=REPEATS, summary=list)
        gains = machine.gains(times)
        control = gains["arithmetic"]
        if control >= LEAST_CONTROL:
            break
    if halves:
        halves.close()
    for count in ("1", "2"):
        case.check(results[count]._counts[0], f"{name} with {count} threads")
    row.ours, row.baseline, row.ratio = median(times["2"]), median(times["1"]), gain(times["1"], times["2"])
    most = machine.most(times, row.baseline, case.X.nbytes, 8 * case.n * case.randomizer.n_words)
    kinds = ", ".join(f"{kind} {own:.2f}x" for kind, own in gains.items())
    row.note = f"by kinds of work at most {most:.2f}x: {kinds}"
    if halves:
        most = gain(times["1"], times["processes"])
        row.note = f"two processes {most:.2f}x; {row.note}"
    row.limit, row.share = "two processes" if halves else "both threads", row.ratio / most
    row.judge(settings, round(min(TARGET, SHARE * most), 2))
    if control < LEAST_CONTROL:
        row.met = None
        row.note += f"; below {LEAST_CONTROL:g}x, not judged"
    return row
