"""What an entry in the ledger costs, beside writing the same row by bare SQLite, as safely but without an account."""

import hashlib
import itertools
import json
import math
import os
import sqlite3
import statistics
import tempfile
import time
from datetime import UTC, datetime
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

            (control, least), close = _controls(ledger, entry, folder, durability)
            page = os.open(os.path.join(folder, "page"), os.O_CREAT | os.O_RDWR)

            def sync(page=page):
                os.pwrite(page, os.urandom(4096), 0)
                os.fsync(page)

            contestants = (entry, control, least, sync) if durability == "full" else (entry, control, least)
            times, processor = ({function: [] for function in contestants} for _ in range(2))
            for _ in range(repeats + 1):
                for function, taken in times.items():
                    start, begun = time.perf_counter(), time.thread_time()
                    function()
                    processor[function].append(time.thread_time() - begun)
                    taken.append(time.perf_counter() - start)
            close()
            os.close(page)
        ours, plain, limit, *waits = (statistics.median(taken[1:]) for taken in times.values())
        more = statistics.median(processor[entry][1:]) - statistics.median(processor[control][1:])
        row = Row(f"ledger entry, durability={durability!r}", ours=ours, peer="bare SQLite, the same row, no account",
                  baseline=plain, ratio=plain / ours, target=f"<{LARGEST * 1e6:g} us", repeats=repeats,
                  limit="least account", share=limit / ours,
                  note=f"fastest {min(times[entry]) * 1e6:.0f} us, of SQLite {min(times[control]) * 1e6:.0f} us; the "
                       f"account takes {more * 1e6:.0f} us of the processor; limit: the least that any account "
                       f"in one SQLite file does: {limit * 1e6:.0f} us, {plain / limit:.2f}x")
        if durability == "full":
            row.judge(settings, GOAL)
            row.note += f", and {_SYNCS} bare syncs of a page {_SYNCS * waits[0] * 1e6:.0f} us"
        elif not settings.quick:
            row.met = ours < LARGEST
        yield row


def _controls(ledger, entry, folder, durability):
    """Return functions that write a ledger's row to files of their own under the same pragmas, and one that closes.

    The first writes it, and no more. The second does the least that any account in one file does besides: it asks
    whether others have written, sees that the file is there and has no second one, links the row to the one before by a
    hash, counts entries in the header, so that a row that is removed is missed, reads the clock, and adds up and
    compares one exact amount, as two integers. It checks no argument, and knows one amount, one user and one file.
    """
    entry()
    source = sqlite3.connect(ledger.path)
    row = source.execute("SELECT * FROM entries").fetchone()[1:]
    (schema,) = source.execute("SELECT sql FROM sqlite_schema WHERE name = 'entries'").fetchone()
    source.close()
    insert, connections, paths = f"INSERT INTO entries VALUES (?{', ?' * len(row)})", [], []
    for name in ("control", "least"):
        paths.append(os.path.join(folder, f"{name}.sqlite"))
        connections.append(sqlite3.connect(paths[-1], isolation_level=None))
        connections[-1].execute("PRAGMA journal_mode=PERSIST")
        connections[-1].execute(f"PRAGMA synchronous={'FULL' if durability == 'full' else 'OFF'}")
        connections[-1].execute(schema)
    (plain, other), (_, path), numbers, kept = connections, paths, itertools.count(1), row[1:-5]
    above, below = 1, 1000
    spent, of, head, text, empty = 0, 1, row[-1], json.dumps(kept)[1:-1], hashlib.sha256()

    def control():
        plain.execute("BEGIN IMMEDIATE")
        plain.execute(insert, (None, *row))
        plain.execute("COMMIT")

    def least():
        """Do what no account in one SQLite file can leave out of an entry, in as few statements as there are.

        The file must be seen to be there, without a log of another mode beside it; the write lock is taken before
        anything is read, and others may have written since; the exact sum is reduced and compared with the budget; the
        clock is read; the hash is of all that the row says and of the hash before; the row and the count in the header
        become durable in one transaction. Left out, though ours does it: arguments, labels, reservations, the relation
        of neighbours, amounts of any other size, whether the file became shorter, and threads.
        """
        nonlocal spent, of, head
        os.stat(path)
        os.access(f"{path}-wal", os.F_OK)
        other.execute("BEGIN IMMEDIATE")
        other.execute("PRAGMA data_version").fetchone()
        number = next(numbers)
        total, under = spent * below + above * of, of * below
        common = math.gcd(total, under)
        if total > 10**6 * under:
            raise ValueError
        spent, of = total // common, under // common
        now, known = datetime.now(UTC).isoformat(), f"{spent}/{of}"
        chain = empty.copy()
        chain.update(f'["{head}", {number}, "{now}", {text}, "{known}", "0", "0", "0"]'.encode())
        head = chain.hexdigest()
        other.execute(insert, (number, now, *kept, known, "0", "0", "0", head))
        other.execute(f"PRAGMA user_version = {number}")
        other.execute("COMMIT")

    return (control, least), lambda: [connection.close() for connection in connections]
