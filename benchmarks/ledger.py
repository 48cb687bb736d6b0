"""What an entry in the ledger costs, beside writing the same row by bare SQLite, as safely but without an account."""

import itertools
import os
import random
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


#: Files that each contestant writes, one after the other: where a file lies on the disk moves its times by 5 %.
_FILES = 4


def rows(settings):
    """Yield one row for each durability, the same release each time; and where no two are the same."""
    for durability in ("full", "fast"):
        for again in (True, False):
            yield _row(settings, durability, again)


def _row(settings, durability, again):
    repeats, order = (50 if settings.quick else 1000), random.Random(0)
    names = ("entry", "control", "least", "sync")
    times, processor = ({name: [] for name in names} for _ in range(2))
    for _ in range(_FILES):
        with tempfile.TemporaryDirectory() as folder:
            contestants, close = _contestants(folder, durability, again)
            for _ in range(3):
                contestants["entry"]()
            for _ in range(-(-repeats // _FILES)):
                # what ran before, and left which caches, moves a figure by up to 10 %: so in any order
                for name, function in order.sample(list(contestants.items()), len(contestants)):
                    start, begun = time.perf_counter(), time.thread_time()
                    function()
                    processor[name].append(time.thread_time() - begun)
                    times[name].append(time.perf_counter() - start)
            close()
    ours, plain, limit, wait = (statistics.median(times[name]) for name in names)
    more = statistics.median(processor["entry"]) - statistics.median(processor["control"])
    row = Row(f"ledger entry, durability={durability!r}" + ("" if again else ", never the same"), ours=ours,
              peer="bare SQLite, the same row, no account", baseline=plain, ratio=plain / ours,
              target=f"<{LARGEST * 1e6:g} us", repeats=repeats, limit="least account", share=limit / ours,
              note=f"fastest {min(times['entry']) * 1e6:.0f} us, of SQLite {min(times['control']) * 1e6:.0f} us; the "
                   f"account takes {more * 1e6:.0f} us of the processor; limit: the statements of any account in one "
                   f"SQLite file: {limit * 1e6:.0f} us, {plain / limit:.2f}x")
    if durability == "full":
        row.note += f"; {_SYNCS} bare syncs of a page {_SYNCS * wait * 1e6:.0f} us"
    if durability == "full" and again:
        row.judge(settings, GOAL)
    elif not settings.quick:
        row.met = ours < LARGEST
    if durability == "full" and not again:
        row.target, row.met = "", None
    return row


def _contestants(folder, durability, again):
    """Return functions that write a ledger's row to files of their own under the same pragmas, and one that closes.

    control writes it, and no more, in a file as SQLite makes them. least has pages as small as a ledger's, and the
    statements that no account in one SQLite file can leave out: it sees that the file is there and has no log of
    another mode beside it, asks whether others have written, and counts entries in the header, so that a row that is
    removed is missed. It knows no argument, amount, clock or hash.
    """
    ledger = Ledger(10**6, path=os.path.join(folder, "ledger.sqlite"), durability=durability)
    numbers = itertools.count()
    unit = PrivacyGuarantee(Fraction(1, 1000))
    several = [(PrivacyGuarantee(Fraction(1, 1000)), f"Estimator{k % 2}", 1000 + k, (f"column {k}",))
               for k in range(99)]

    def entry():
        ledger.charge(unit, estimator="GRRFrequencyEstimator", n_rows=1000, columns=("column 0",))

    def another():
        one, estimator, n_rows, columns = several[next(numbers) % len(several)]
        ledger.charge(one, estimator=estimator, n_rows=n_rows, columns=columns)

    entry()
    source = sqlite3.connect(ledger.path)
    row = source.execute("SELECT * FROM entries").fetchone()[1:]
    (schema,) = source.execute("SELECT sql FROM sqlite_schema WHERE name = 'entries'").fetchone()
    (page_size,) = source.execute("PRAGMA page_size").fetchone()
    source.close()
    insert, connections, paths = f"INSERT INTO entries VALUES (?{', ?' * len(row)})", [], []
    for name in ("control", "least"):
        paths.append(os.path.join(folder, f"{name}.sqlite"))
        connections.append(sqlite3.connect(paths[-1], isolation_level=None))
        if name == "least":
            connections[-1].execute(f"PRAGMA page_size={page_size}")
        connections[-1].execute("PRAGMA journal_mode=PERSIST")
        connections[-1].execute(f"PRAGMA synchronous={'FULL' if durability == 'full' else 'OFF'}")
        connections[-1].execute(schema)
    (plain, other), (_, path), counts = connections, paths, itertools.count(1)
    page = os.open(os.path.join(folder, "page"), os.O_CREAT | os.O_RDWR)

    def control():
        plain.execute("BEGIN IMMEDIATE")
        plain.execute(insert, (None, *row))
        plain.execute("COMMIT")

    def least():
        os.stat(path)
        os.access(f"{path}-wal", os.F_OK)
        other.execute("BEGIN IMMEDIATE")
        other.execute("PRAGMA data_version").fetchone()
        other.execute(insert, (None, *row))
        other.execute(f"PRAGMA user_version = {next(counts)}")
        other.execute("COMMIT")

    def sync():
        os.pwrite(page, os.urandom(4096), 0)
        if durability == "full":
            os.fsync(page)

    def close():
        os.close(page)
        for connection in connections:
            connection.close()

    return {"entry": entry if again else another, "control": control, "least": least, "sync": sync}, close
