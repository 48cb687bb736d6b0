"""What an entry in the ledger costs, beside writing the same row by bare SQLite, as safely but without an account."""

import os
import sqlite3
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
    repeats = 50 if settings.quick else 1000
    unit = PrivacyGuarantee(Fraction(1, 1000))
    for durability, largest in LARGEST.items():
        with tempfile.TemporaryDirectory() as folder:
            ledger = Ledger(10**6, path=os.path.join(folder, "ledger.sqlite"), durability=durability)

            def entry(ledger=ledger):
                ledger.charge(unit, estimator="GRRFrequencyEstimator", n_rows=1000, columns=("column 0",))

            control, close = _control(ledger, entry, os.path.join(folder, "control.sqlite"), durability)
            times = {entry: [], control: []}
            for _ in range(repeats + 1):
                for function, taken in times.items():
                    start = time.perf_counter()
                    function()
                    taken.append(time.perf_counter() - start)
            close()
        ours, plain = (statistics.median(taken[1:]) for taken in times.values())
        row = Row(f"ledger entry, durability={durability!r}", ours=ours, peer="bare SQLite, the same row, no account",
                  baseline=plain, ratio=plain / ours, target=f"<{largest * 1e6:g} us", repeats=repeats,
                  note=f"fastest {min(times[entry]) * 1e6:.0f} us, of SQLite {min(times[control]) * 1e6:.0f} us")
        if not settings.quick:
            row.met = ours < largest
        yield row


def _control(ledger, entry, path, durability):
    """Return a function that writes a ledger's row to another file under the same pragmas, and one that closes it."""
    entry()
    source = sqlite3.connect(ledger.path)
    row = source.execute("SELECT * FROM entries").fetchone()[1:]
    (schema,) = source.execute("SELECT sql FROM sqlite_schema WHERE name = 'entries'").fetchone()
    source.close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=PERSIST")
    connection.execute(f"PRAGMA synchronous={'FULL' if durability == 'full' else 'OFF'}")
    connection.execute(schema)
    insert = f"INSERT INTO entries VALUES (NULL{', ?' * len(row)})"

    def control():
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(insert, row)
        connection.execute("COMMIT")

    return control, connection.close
