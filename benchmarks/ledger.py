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

#: Of an entry that waits for no disk.
LARGEST = 100e-6
#: Of an entry that does, beside bare SQLite.
GOAL = 0.9
#: How often SQLite waits for the disk: for the journal, its folder, its header, the pages, and the end of the journal.
_SYNCS = 5


def rows(settings):
    """Yield one row for each durability."""
    repeats = 50 if settings.quick else 1000
    unit = PrivacyGuarantee(Fraction(1, 1000))
    for durability in ("full", "fast"):
        with tempfile.TemporaryDirectory() as folder:
            ledger = Ledger(10**6, path=os.path.join(folder, "ledger.sqlite"), durability=durability)

            def entry(ledger=ledger):
                ledger.charge(unit, estimator="GRRFrequencyEstimator", n_rows=1000, columns=("column 0",))

            control, close = _control(ledger, entry, os.path.join(folder, "control.sqlite"), durability)
            page = os.open(os.path.join(folder, "page"), os.O_CREAT | os.O_RDWR)

            def sync(page=page):
                os.pwrite(page, os.urandom(4096), 0)
                os.fsync(page)

            contestants = (entry, control, sync) if durability == "full" else (entry, control)
            times, processor = ({function: [] for function in contestants} for _ in range(2))
            for _ in range(repeats + 1):
                for function, taken in times.items():
                    start, begun = time.perf_counter(), time.thread_time()
                    function()
                    processor[function].append(time.thread_time() - begun)
                    taken.append(time.perf_counter() - start)
            close()
            os.close(page)
        ours, plain, *waits = (statistics.median(taken[1:]) for taken in times.values())
        more = statistics.median(processor[entry][1:]) - statistics.median(processor[control][1:])
        row = Row(f"ledger entry, durability={durability!r}", ours=ours, peer="bare SQLite, the same row, no account",
                  baseline=plain, ratio=plain / ours, target=f"<{LARGEST * 1e6:g} us", repeats=repeats,
                  note=f"fastest {min(times[entry]) * 1e6:.0f} us, of SQLite {min(times[control]) * 1e6:.0f} us; the "
                       f"account takes {more * 1e6:.0f} us of the processor")
        if durability == "full":
            row.judge(settings, GOAL)
            row.note += f", and {_SYNCS} bare syncs of a page {_SYNCS * waits[0] * 1e6:.0f} us"
        elif not settings.quick:
            row.met = ours < LARGEST
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
