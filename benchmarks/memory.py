"""Peak memory of `fit` beyond its input, in a process of its own: ``python -m benchmarks.memory CLASS N D``."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks._harness import Row

LARGEST_MB = 300
PATIENCE = 60
SKETCHES = ("CMS", "HCMS")
#: These get a tenth of the users: they draw a word for every user and value.
SLOW = ("SHE",)
_PROC = Path("/proc/self")


def rows(settings):
    """Yield one row for each mechanism; a quick run takes one of each kind, as every row is a process of its own."""
    from benchmarks.frequencies import mechanisms
    from benchmarks.numbers import transformers

    most = 1 if settings.quick else None
    cases = [(name, cls, 1024) for name, cls in mechanisms()[:most]]
    cases += [(f"mean of {name}", cls, 1024) for name, cls in transformers()[:most]]
    if not settings.quick:  # what is kept must not depend on how many values there are, but for a few numbers each
        cases += [(name, cls, 1 << 20) for name, cls in mechanisms() if name in SKETCHES]
    for name, cls, d in cases:
        n = settings.n_large // (10 if name in SLOW else 1)
        row = Row(f"{name} fit memory, {n:,} x {d}", unit="MB", target=f"<{LARGEST_MB} MB")
        if not (_PROC / "clear_refs").exists():
            row.note = "not measured: needs Linux's /proc"
        else:
            command = [sys.executable, "-m", "benchmarks.memory", cls.__name__, str(n), str(d)]
            try:
                done = subprocess.run(
                    command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=PATIENCE
                )
            except subprocess.TimeoutExpired:
                row.note = f"not measured: gave up after {PATIENCE} s"
                yield row
                continue
            if done.returncode:
                row.note = f"failed: {(done.stderr.strip() or 'no message').splitlines()[-1]}"
            else:
                found = json.loads(done.stdout)
                row.ours = found["peak"] - found["before"]
                row.note = (f"VmHWM of a fresh process; input {found['input']:.0f} MB, resident before "
                            f"{found['before']:.0f} MB; fit took {found['seconds']:.2f} s")
                if not settings.quick:
                    row.met = row.ours < LARGEST_MB
        yield row
    if not settings.quick and (_PROC / "clear_refs").exists():
        yield _stream_row(100, 1_000_000)


def _stream_row(batches, n):
    """Stream batches into `partial_fit`: what the process grows by after the second batch."""
    row = Row(f"GRR + OUE partial_fit, {batches} batches of {n:,}, d = 16", unit="MB", target="<10 MB")
    command = [sys.executable, "-m", "benchmarks.memory", "stream", str(n), str(batches)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=300)
    if done.returncode:
        row.note = f"failed: {(done.stderr.strip() or 'no message').splitlines()[-1]}"
        return row
    found = json.loads(done.stdout)
    row.ours, row.met = found["grown"], found["grown"] < 10
    row.note = (f"VmHWM after the last batch less that after the second; {found['users']:,} users in "
                f"{found['seconds']:.1f} s, data included")
    return row


def _stream(n, batches):
    from dpestim.local import GRRFrequencyEstimator, OUEFrequencyEstimator

    estimators = [cls(1.0, categories=[range(16)]) for cls in (GRRFrequencyEstimator, OUEFrequencyEstimator)]
    rng, start = np.random.default_rng(0), time.perf_counter()
    for batch in range(batches):
        X = rng.integers(0, 16, (n, 1))
        for estimator in estimators:
            estimator.partial_fit(X)
        if batch == 1:
            before = _resident("VmHWM")
    users = sum(estimator.n_users_ for estimator in estimators)
    return {"grown": _resident("VmHWM") - before, "users": users, "seconds": time.perf_counter() - start}


def _resident(field):
    return int(re.search(rf"{field}:\s*(\d+) kB", (_PROC / "status").read_text())[1]) * 1024 / 1e6


def _measure(name, n, d):
    from benchmarks.frequencies import estimator, mechanisms
    from benchmarks.numbers import transformers
    from dpestim.local import MeanEstimator

    X = np.random.default_rng(0).integers(0, d, (n, 1))
    numeric = {c.__name__: c for _, c in transformers()}
    if name in numeric:
        X, server = X.astype(float), MeanEstimator(numeric[name](1.0, bounds=(0.0, float(d))))
    else:
        server = estimator(dict((c.__name__, c) for _, c in mechanisms())[name], d)
    (_PROC / "clear_refs").write_text("5")  # the high-water mark starts again from what is resident now
    before, start = _resident("VmRSS"), time.perf_counter()
    server.fit(X)
    seconds = time.perf_counter() - start
    return {"before": before, "peak": _resident("VmHWM"), "input": X.nbytes / 1e6, "seconds": seconds}


if __name__ == "__main__":
    if sys.argv[1] == "stream":
        print(json.dumps(_stream(int(sys.argv[2]), int(sys.argv[3]))))
    else:
        print(json.dumps(_measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
