"""What an entry in the ledger costs, beside writing a line to a file as safely without any account."""

import os
import statistics
import tempfile
import time
from fractions import Fraction

from benchmarks._harness import Row
from dpestim.accounting import Ledger
from dpestim.privacy import PrivacyGuarantee

LARGEST = {"full": 2e-3, "fast": 100e-6}


def rows(settings):
    """Yield one row for each durability."""
    repeats = 50 if settings.quick else 500
    unit = PrivacyGuarantee(Fraction(1, 1000))
    for durability, largest in LARGEST.items():
        with tempfile.TemporaryDirectory() as folder:
            ledger = Ledger(10**6, path=os.path.join(folder, "ledger.sqlite"), durability=durability)
            descriptor = os.open(os.path.join(folder, "log"), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

            def line(descriptor=descriptor, durability=durability):
                os.write(descriptor, b"0.001 GRRFrequencyEstimator 1000\n")
                if durability == "full":
                    os.fsync(descriptor)

            def entry(ledger=ledger):
                ledger.charge(unit, estimator="GRRFrequencyEstimator", n_rows=1000, columns=("column 0",))

            times = {entry: [], line: []}
            for _ in range(repeats + 1):
                for function, taken in times.items():
                    start = time.perf_counter()
                    function()
                    taken.append(time.perf_counter() - start)
            os.close(descriptor)
        ours, plain = (statistics.median(taken[1:]) for taken in times.values())  # the first one opens the file
        row = Row(f"ledger entry, durability={durability!r}", ours=ours, peer="a line to a file, no account",
                  baseline=plain, ratio=plain / ours, target=f"<{largest * 1e6:g} us", repeats=repeats,
                  note=f"fastest {min(times[entry]) * 1e6:.0f} us")
        if not settings.quick:
            row.met = ours < largest
        yield row
