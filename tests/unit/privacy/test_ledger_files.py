"""The file of a ledger: missing, foreign, damaged, half made; and what is read of it, or refused."""

import contextlib
import hashlib
import itertools
import json
import math
import os
import random
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from fractions import Fraction
from unittest import mock

import _host
import numpy as np
import pytest

from dpestim.accounting import Ledger, LedgerError
from dpestim.privacy import PrivacyGuarantee, account, store
from dpestim.privacy.entering import Entering
from dpestim.privacy.exact import ZERO, exceeds

TENTH = PrivacyGuarantee(Fraction(1, 10))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.sqlite"


def run(code, *arguments):
    done = _host.run(code, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_missing_or_moved_file_is_an_error_and_never_a_fresh_budget(path):
    ledger = Ledger(1.0, path=path)
    ledger.charge(TENTH)
    shutil.move(path, path.with_suffix(".moved"))
    for use in (lambda: ledger.charge(TENTH), ledger.spent, ledger.report, lambda: Ledger.open(path)):
        with pytest.raises(LedgerError, match="missing"):
            use()
    with pytest.raises(LedgerError, match="would not count"):
        Ledger(1.0, path=path)
    assert Ledger.open(path.with_suffix(".moved")).spent().epsilon == Fraction(1, 10)
    shutil.move(path.with_suffix(".moved"), path)
    ledger.charge(TENTH)
    assert len(ledger) == 2


def test_another_ledger_in_its_place_is_an_error(path, tmp_path):
    ledger = Ledger(1.0, path=path)
    Ledger(1.0, path=tmp_path / "other.sqlite")
    shutil.copy(tmp_path / "other.sqlite", path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)
    with pytest.raises(LedgerError, match="another ledger"):
        ledger.charge(TENTH)


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.34, 0.67, 0.99])
def test_a_truncated_file_is_an_error(share, opened, path):
    ledger = Ledger(100.0, path=path, durability="fast")
    for _ in range(100):
        ledger.charge(TENTH, estimator="E" * 50)
    copied = path.with_suffix(".copy")
    shutil.copy(path, copied)
    if opened:
        Ledger.open(copied).charge(TENTH)
    os.truncate(copied, int(copied.stat().st_size * share))
    with pytest.raises(LedgerError):
        Ledger.open(copied).charge(TENTH)


@pytest.mark.parametrize("content", [b"", b"budget: 5", os.urandom(8192), "sqlite"])
def test_a_foreign_file_is_an_error_and_is_not_touched(content, path):
    if content == "sqlite":
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE terms (x)")
        connection.commit()
        connection.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    for use in (lambda: Ledger(1.0, path=path), lambda: Ledger.open(path)):
        with pytest.raises(LedgerError):
            use()
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    ["UPDATE entries SET charged_epsilon = '0' WHERE number = 2", "DELETE FROM entries WHERE number = 2",
     "DELETE FROM entries WHERE number = 3", "UPDATE entries SET everybody_epsilon = '0' WHERE number = 3",
     "UPDATE entries SET time = 'never' WHERE number = 1", "UPDATE entries SET users = 'x' WHERE number = 3",
     "CREATE TEMP TABLE t AS SELECT * FROM entries WHERE number = 3; UPDATE t SET number = 4; "
     "INSERT INTO entries SELECT * FROM t", "PRAGMA user_version = 2",
     "INSERT INTO totals VALUES ('x', '1', '0')", "DELETE FROM terms", "UPDATE terms SET uuid = 'x'"],
)
def test_changes_from_outside_are_noticed(change, path):
    ledger = Ledger(1.0, path=path)
    for _ in range(3):
        ledger.charge(TENTH)
    connection = sqlite3.connect(path)
    connection.executescript(change)
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError):
        Ledger.open(path)


def old_file(path):
    """Make a file as the first version of this format wrote it (statement by statement, as it was dumped)."""
    connection = sqlite3.connect(path)
    connection.executescript("""
PRAGMA application_id = 0x64706573; PRAGMA user_version = 3;
CREATE TABLE terms (format, uuid, created, epsilon, delta, neighbours, relaxation);
CREATE TABLE entries (number INTEGER PRIMARY KEY, time, kind, estimator, columns, users, epsilon, delta,
  charged_epsilon, charged_delta, model, neighbours, seeded, n_rows, everybody_epsilon, everybody_delta, label_epsilon,
  label_delta, hash TEXT NOT NULL);
CREATE TABLE totals (users TEXT PRIMARY KEY, epsilon TEXT NOT NULL, delta TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO entries VALUES (1, '2026-11-22T08:25:33.295237+00:00', 'release', 'GRRFrequencyEstimator',
  '["column 0", "gr\\u00f6\\u00dfe"]', '', '1/3', '0', '1/3', '0', 'local', 'local', 'no', 7, '1/3', '0', '0',
  '0', '0e1cad7dca6bff2864cd8ba811ceaad0ce33d169c476c0d770ac0c66ceef77f3');
INSERT INTO entries VALUES (2, '2026-11-22T08:25:33.307069+00:00', 'release', 'E', '[]', 'north', '1/2', '0',
  '1', '0', 'central', 'add_remove', 'yes', NULL, '1/3', '0', '1', '0',
  'bcd57f7719f0486b5cd9786f141e0078a47e0c52f22ad99011aaab1dd6ed51c3');
INSERT INTO entries VALUES (3, '2026-11-22T08:25:33.321970+00:00', 'non-private score',
  'GRRFrequencyEstimator', '[]', '', '0', '0', '0', '0', 'central', 'substitution', 'no', 3, '1/3', '0', '1',
  '0', '8c65c2266eb0127f6bcfe64d64247ccb88d03c9bee3b624def9bc319158836f5');
INSERT INTO terms VALUES (1, '500ee652-e1f5-4d82-9be9-a573f3b65ec9', '2026-11-22T08:25:33.261215+00:00', '2',
  '0', 'substitution', 'null');
INSERT INTO totals VALUES ('north', '1', '0');
""")
    connection.close()


def test_files_of_the_first_version_open_as_they_are(path):
    old_file(path)
    ledger = Ledger.open(path)
    assert ledger.verify() == "8c65c2266eb0127f6bcfe64d64247ccb88d03c9bee3b624def9bc319158836f5"
    assert (ledger.spent().epsilon, ledger.remaining().epsilon) == (Fraction(4, 3), Fraction(2, 3))
    assert [e["estimator"] for e in ledger.entries()] == ["GRRFrequencyEstimator", "E", "GRRFrequencyEstimator"]
    assert ledger.entries()[0]["columns"] == ["column 0", "größe"]
    assert Ledger(2, path=path).charge(TENTH) == 4
    ledger.for_users("north").charge(TENTH)
    with pytest.raises(LedgerError, match=r"0\.466666 of 2"):
        ledger.for_users("north").charge(PrivacyGuarantee(1))
    with ledger.for_users("north").reserve([TENTH, TENTH]) as reservation:
        reservation.charge(TENTH)
    assert len(Ledger.open(path)) == 9
    assert ledger.spent().epsilon == Fraction(1, 3) + TENTH.epsilon * 3 + 1


def test_whatever_bytes_are_damaged_a_file_is_refused_or_read_as_it_was(path):
    ledger = Ledger(100, delta=1e-3, path=path, durability="fast")
    for k in range(12):
        handle = ledger.for_users("north" if k % 2 else "süd") if k % 3 else ledger
        handle.charge(PrivacyGuarantee(Fraction(k + 1, 7), delta=1e-6), estimator="Gé", columns=("a", "b"), n_rows=5)
    truth, data = (ledger.verify(), ledger.entries(), ledger.spent()), path.read_bytes()
    rng, refused, n = random.Random(0), 0, 1000
    for k in range(n):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8, 64))):
            damaged[rng.randrange(len(data))] = rng.randrange(256)
        other = path.with_suffix(f".{k}")
        other.write_bytes(damaged)
        try:
            opened = Ledger.open(other, durability="fast")
            assert (opened.verify(), opened.entries(), opened.spent()) == truth
        except LedgerError:
            refused += 1
        other.unlink()
    assert 0.3 * n < refused < 0.8 * n  # (the rest was written where a page holds nothing)


@pytest.mark.parametrize(
    "change",
    ["UPDATE terms SET neighbours = 'planets'", "UPDATE terms SET epsilon = '1e999999999'",
     "UPDATE terms SET epsilon = 1", "UPDATE terms SET epsilon = x'ff'", "UPDATE terms SET delta = '1/0'",
     "UPDATE terms SET relaxation = NULL", "UPDATE terms SET uuid = CAST(x'ff' AS TEXT)",
     "UPDATE entries SET everybody_epsilon = '-1'", "UPDATE entries SET label_delta = x'31'",
     "UPDATE entries SET hash = x'31'", "UPDATE entries SET columns = replace(hex(zeroblob(100000)), '0', '[')",
     "UPDATE entries SET columns = '[', epsilon = 'much'", "UPDATE entries SET model = 'global'",
     "UPDATE entries SET model = x'31'", "DROP TABLE totals", "ALTER TABLE terms RENAME COLUMN delta TO x",
     "UPDATE totals SET epsilon = 'few'", "UPDATE totals SET users = 'others'"],
)
def test_what_no_ledger_writes_is_refused_by_handles_that_are_open(change, path):
    ledger = Ledger(10.0, path=path)
    north = ledger.for_users("north")
    north.charge(TENTH)
    ledger.charge(TENTH, columns=("a",))
    truth = (2, ledger.spent(), ledger.remaining(), ledger.entries())
    connection = sqlite3.connect(path)
    connection.executescript(change)
    connection.commit()
    connection.close()
    readings = []
    for use in (lambda: len(ledger), ledger.spent, ledger.remaining, ledger.entries, ledger.report,
                lambda: ledger.charge(TENTH), lambda: north.charge(TENTH)):
        try:
            readings.append(use())
        except LedgerError:
            readings.append(LedgerError)
    assert all(r is LedgerError or r == t for r, t in zip(readings, truth)) or "entries" in change
    assert readings[4] is LedgerError  # a report verifies
    with pytest.raises(LedgerError):
        Ledger.open(path)


def test_what_others_wrote_is_seen_at_once(path):
    """A process remembers what holds after its own entry, but only until another connection has written."""
    ledger, outside = Ledger(1.0, path=path), sqlite3.connect(path, isolation_level=None)
    for number in range(1, 4):
        assert ledger.charge(TENTH) == 2 * number - 1
        run(f"from dpestim.accounting import Ledger; from dpestim.privacy import PrivacyGuarantee; "
            f"Ledger.open({str(path)!r}).charge(PrivacyGuarantee(0.1))")
        assert ledger.spent().epsilon == Fraction(number, 5)
    outside.execute("DELETE FROM entries WHERE number = 6")
    with pytest.raises(LedgerError, match="lost entries"):
        ledger.charge(TENTH)
    outside.close()


@pytest.mark.parametrize("use", ["kernel", "other way", "reading"])
def test_a_log_that_an_open_handle_was_made_to_begin_is_ended_by_it(path, use):
    """Another program put the file in WAL mode and closed it: then the next statement here begins a log of its own."""
    ledger = Ledger(10, path=path)
    for _ in range(3):
        ledger.charge(TENTH)
    handle = ledger.for_users("north") if use == "other way" else ledger
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
    assert len(ledger) == 3 if use == "reading" else handle.charge(TENTH) == 4
    before = len(ledger)
    assert not path.with_name(f"{path.name}-wal").exists()
    assert store.opened(ledger.path).execute("PRAGMA journal_mode").fetchone() == ("persist",)
    for number in (before + 1, before + 2):
        assert ledger.charge(TENTH) == number
    assert ledger.spent().epsilon == Fraction(before + 2, 10)
    Ledger.open(path).verify()


def test_a_handle_lets_others_end_the_log_of_another_program(path):
    ledger, other = Ledger(10, path=path), sqlite3.connect(path, isolation_level=None)
    ledger.charge(TENTH)
    ledger.charge(TENTH)
    other.execute("PRAGMA journal_mode=WAL")
    assert len(ledger) == 2  # begins a log here
    other.execute("SELECT * FROM terms").fetchall()  # ... and it is shared
    for _ in range(2):
        with pytest.raises(LedgerError, match="WAL mode by another program"):
            ledger.charge(TENTH)
    assert other.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)
    assert ledger.charge(TENTH) == 3
    other.close()
    ledger.verify()


@pytest.mark.parametrize("durability", ["FULL", "Fast", "", None, True, 1, ["full"], b"full"])
def test_a_durability_that_is_none_is_refused(durability, path):
    with pytest.raises(ValueError, match="durability must be 'full' or 'fast'"):
        Ledger(1.0, path=path, durability=durability)
    assert not path.exists()
    Ledger(1.0, path=path)
    with pytest.raises(ValueError, match="durability must be 'full' or 'fast'"):
        Ledger.open(path, durability=durability)


def test_wal_mode_an_older_copy_and_other_terms_are_noticed(path):
    ledger = Ledger(1.0, path=path)
    ledger.charge(TENTH)
    shutil.copy(path, path.with_suffix(".old"))
    ledger.charge(TENTH)
    path.write_bytes(path.with_suffix(".old").read_bytes())  # in place: the same file, an older account
    with pytest.raises(LedgerError, match="older copy"):
        ledger.charge(TENTH)
    other = Ledger(1.0, path=path.with_suffix(".other"))
    other.charge(TENTH)
    connection = sqlite3.connect(other.path)
    connection.execute("UPDATE terms SET epsilon = '1000'")
    connection.commit()
    with pytest.raises(LedgerError):
        other.verify()
    connection.execute("UPDATE terms SET epsilon = '1'")
    connection.commit()
    assert other.verify()
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE x (y)")
    with pytest.raises(LedgerError, match="WAL"):
        other.charge(TENTH)
    connection.close()


def test_who_may_only_read_can_read(path, monkeypatch):
    ledger = Ledger(1.0, path=path)
    ledger.charge(TENTH)
    from dpestim.privacy import store

    store._disconnect(ledger.path)  # as in a process that has not charged
    monkeypatch.setattr(os, "access", lambda *_: False)  # (root may write whatever the mode says)
    assert "0.9" in Ledger.open(path).report()
    with pytest.raises(LedgerError, match="is read-only"):
        ledger.charge(TENTH)


def test_an_interrupt_in_a_transaction_locks_nobody_out(path, monkeypatch):
    ledger = Ledger(1.0, path=path)
    for owner, name in ((Entering, "_append"), (Ledger, "_check")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                ledger.charge(TENTH)
    from dpestim.privacy import store

    store._connections[ledger.path].execute("BEGIN IMMEDIATE")  # as if one came right after the lock was taken
    ledger.charge(TENTH)
    assert len(ledger) == 1


@pytest.mark.parametrize(("plain", "most"), [(None, 10), (False, 99)])
def test_an_interrupt_where_any_function_begins_leaves_the_lock_free(path, plain, most):
    """There Python looks for signals: also where a block of `with` is left."""
    ledger = Ledger(10.0, path=path)
    store.opened(ledger.path).plain = plain  # (None: the kernel enters from the second time on)
    ledger.charge(TENTH)

    def interrupted(number):
        left, home = iter(range(number)), os.path.dirname(store.__file__)

        def trace(frame, event, _):
            if os.path.dirname(frame.f_code.co_filename) == home and next(left, None) is None:
                sys.settrace(None)
                raise KeyboardInterrupt

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            ledger.charge(TENTH)
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False

    for number in range(100):
        again = interrupted(number)
        with ThreadPoolExecutor(1) as pool:
            lock = store._locks[ledger.path]
            assert pool.submit(lock.acquire, blocking=False).result(), f"locked at call {number}"
            pool.submit(lock.release).result()
        assert not store._connections[ledger.path].connection.in_transaction
        if not again:
            break
    assert most // 10 + 1 < number < most
    ledger.verify()


def test_many_ledgers_need_few_connections():
    from dpestim.privacy import store

    ledgers = [Ledger(1.0, durability="fast") for _ in range(50)]
    for ledger in ledgers:
        ledger.charge(TENTH)
    assert len(store._connections) <= 33
    assert all(len(ledger) == 1 for ledger in ledgers)


def test_a_folder_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(LedgerError, match="folder"):
        Ledger(1, path=tmp_path / "nowhere" / "x.sqlite")


# -------------------------------------------------------------------- drafts of processes that died


DIE = """
import os, signal, sys
from dpestim.accounting import Ledger
link = os.link
def die(*arguments):
    if sys.argv[2] == "after":
        link(*arguments)
    if sys.argv[2] == "journal":
        open(arguments[0] + "-journal", "w").close()
    os.kill(os.getpid(), signal.SIGKILL)
os.link = die
Ledger(1.0, path=sys.argv[1] or None)
"""


def drafts(folder):
    return [p.name for p in folder.iterdir() if ".new" in p.name]


@pytest.mark.parametrize("join", [True, False])
@pytest.mark.parametrize("when", ["before", "journal", "after"])
def test_drafts_of_a_killed_process_are_swept(when, join, path):
    foreign = path.with_suffix(".0123456789abcdef.new")
    foreign.write_text("not of this ledger")
    killed = _host.run(DIE, path, when)
    assert killed.returncode == -signal.SIGKILL
    assert len(drafts(path.parent)) == (3 if when == "journal" else 2)
    if not join and when != "after":
        shutil.move(Ledger(1.0, path=path.with_suffix(".elsewhere")).path, path)
    ledger = Ledger(1.0, path=path) if join else Ledger.open(path)
    assert ledger.charge(TENTH) == 1
    assert drafts(path.parent) == [foreign.name]
    assert Ledger.open(path).verify()


def test_drafts_of_temporary_ledgers_are_swept(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    killed = _host.run(DIE, "", "before")
    assert killed.returncode == -signal.SIGKILL
    assert len(drafts(tmp_path)) == 1
    assert Ledger(1.0).charge(TENTH)
    assert not drafts(tmp_path)


def test_a_draft_that_somebody_writes_is_left_alone(path):
    code = """
import os, sys
from dpestim.accounting import Ledger
link = os.link
def wait(*arguments):
    print("ready", flush=True)
    sys.stdin.readline()
    link(*arguments)
os.link = wait
print(Ledger(1.0, path=sys.argv[1]).uuid)
"""
    pipe = subprocess.PIPE
    slow = subprocess.Popen([sys.executable, "-c", code, path], stdin=pipe, stdout=pipe, text=True)
    assert slow.stdout.readline() == "ready\n"
    ledger = Ledger(1.0, path=path)
    Ledger.open(path)
    assert len(drafts(path.parent)) == 1
    answer, _ = slow.communicate("\n")
    assert (slow.returncode, answer.strip()) == (0, ledger.uuid)  # it lost the race, and joined
    assert not drafts(path.parent)


def test_a_draft_that_is_swept_at_this_moment_is_made_anew(path, monkeypatch):
    from dpestim.privacy import store

    lock, tried = store._flock, []

    def sweeping(descriptor):
        tried.append(drafts(path.parent))
        if len(tried) == 1:  # a sweeper has the lock, and removes the draft next
            raise BlockingIOError
        (path.parent / tried[0][0]).unlink(missing_ok=True)
        lock(descriptor)

    monkeypatch.setattr(store, "_flock", sweeping)
    assert Ledger(1.0, path=path).remaining().epsilon == 1
    assert len(tried) == 2
    assert not drafts(path.parent)


def test_creators_that_sweep_each_other_all_get_the_one_ledger(path):
    code = f"""
import os, sys
from dpestim.accounting import Ledger
start = os.pipe()
children = []
for k in range(12):
    pid = os.fork()
    if not pid:
        os.close(start[1])
        os.read(start[0], 1)
        for round in range(10):
            Ledger(1.0, path=f"{path}.{{round}}").uuid
        os._exit(0)
    children.append(pid)
os.close(start[0]), os.close(start[1])
print(*(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children))
"""
    assert run(code) == ["0"] * 12
    assert not drafts(path.parent)


PLANTED = {
    "trigger": "CREATE TRIGGER undo AFTER INSERT ON entries BEGIN UPDATE entries SET everybody_epsilon = '0'; END",
    "on totals": "CREATE TRIGGER undo AFTER INSERT ON totals BEGIN DELETE FROM totals; END",
    "view": "CREATE VIEW other AS SELECT * FROM entries",
    "index": "CREATE INDEX other ON entries (users)",
    "table": "CREATE TABLE other (x)",
}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
@pytest.mark.parametrize("opened", [True, False])
def test_what_was_planted_in_a_file_is_refused(tmp_path, planted, opened):
    """... by a handle that was open before, too: a trigger let a budget of 5 pay 49 releases of one half."""
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(5, path=path)
    if opened:
        ledger.charge(TENTH)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(planted)
    for use in (lambda: ledger.charge(TENTH), lambda: Ledger.open(path), lambda: Ledger(5, path=path)):
        with pytest.raises(LedgerError, match="another program"):
            use()


def test_no_denominator_blocks_a_ledger_for_good(tmp_path):
    """Sums of fractions of many primes cannot be written: they are rounded up."""
    ledger = Ledger(10, path=tmp_path / "ledger.sqlite", durability="fast")
    primes = [n for n in range(2, 6000) if all(n % k for k in range(2, int(n**0.5) + 1))][-150:]
    exact = Fraction(0)
    for k in range(0, len(primes), 10):  # (each a denominator of some 400 bits)
        amount = Fraction(1, math.prod(primes[k : k + 10]) ** 3)
        ledger.charge(PrivacyGuarantee(amount))
        exact += amount
    spent = ledger.spent().epsilon
    assert exact < spent < exact + Fraction(1, 2**1000)
    ledger.charge(TENTH)
    assert Ledger.open(ledger.path).spent().epsilon > Fraction(1, 10)  # (which verifies every entry)
    with pytest.raises(ValueError, match="10,000 bits"):
        ledger.charge(PrivacyGuarantee(Fraction(1, 3**7000)))
    ledger.charge(TENTH)


def test_temporary_ledgers_of_dead_processes_are_removed_by_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    dead.wait()
    names = {"old": (dead.pid, 2), "young": (dead.pid, 0), "of a live one": (os.getppid(), 2)}
    files = {}
    for what, (process, hours) in names.items():
        files[what] = tmp_path / f"dpestim-ledger-{process}-{secrets.token_hex(8)}.sqlite"
        files[what].write_bytes(b"x")
        (tmp_path / f"{files[what].name}-journal").write_bytes(b"x")
        os.utime(files[what], (time.time() - 3600 * hours - 9,) * 2)
    ledger = Ledger(1)
    assert {what for what, file in files.items() if file.exists()} == {"young", "of a live one"}
    assert not (tmp_path / f"{files['old'].name}-journal").exists()
    assert os.path.exists(ledger.path)


def test_many_temporary_ledgers_look_through_their_folder_once(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    looked = []
    monkeypatch.setattr(store, "_sweep_temporary", looked.append)
    Ledger(1), Ledger(1)
    assert looked == [str(tmp_path)]
    monkeypatch.setattr(store, "_UNUSED", -1)  # (an hour later)
    monkeypatch.setattr(store, "_next_sweep", {})
    Ledger(1), Ledger(1)
    assert looked == [str(tmp_path)] * 3


@pytest.mark.parametrize("plain", [None, False])
def test_an_entry_is_written_as_it_always_was(tmp_path, monkeypatch, plain):
    ledger = Ledger(5, path=tmp_path / "ledger.sqlite", durability="fast")
    store.opened(ledger.path).plain = plain  # (None: the kernel enters from the second time on)
    times = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2030, 1, 2, 3, 4, 5, 60, tzinfo=UTC)
    for at in times:
        now = int(at.timestamp()) * 10**9 + at.microsecond * 1000
        monkeypatch.setattr("dpestim._core.entry.time_ns", lambda now=now: now)
        with mock.patch("dpestim.privacy.entering.datetime", mock.Mock(now=mock.Mock(return_value=at))):
            ledger.charge(PrivacyGuarantee(Fraction(1, 3)), estimator='Ä "quoted"\n', n_rows=7, columns=("a", "b"))
    with contextlib.closing(sqlite3.connect(ledger.path)) as file:
        terms, entries = (file.execute(f"SELECT * FROM {name}").fetchall() for name in ("terms", "entries"))
    assert [entry[1] for entry in entries] == ["2030-01-02T03:04:05.000000+00:00", "2030-01-02T03:04:05.000060+00:00"]
    head = ""
    for number, row in enumerate((terms[0], *(entry[1:-1] for entry in entries))):
        head = hashlib.sha256(json.dumps([head, number, *row]).encode()).hexdigest()
        assert not number or head == entries[number - 1][-1]


def test_amounts_add_up_and_compare_exactly():
    long, rng = Fraction(1, 3**3000), np.random.default_rng(0)
    amounts = [ZERO, Fraction(0), Fraction(1, 3), Fraction(7, 2), Fraction(1 << 70, 3), long, math.inf]
    amounts += [Fraction(int(a), int(b)) for a, b in rng.integers(1, 1 << 62, (20, 2))]
    for a, b in itertools.product(amounts, amounts):
        assert account.add(a, b) == (a + b if long not in (a, b) or not a or not b or math.inf in (a, b) else
                                     Fraction(math.ceil((a + b) * 2**1024), 2**1024))
        assert exceeds(a, b) == (a > b)
    assert account.add(Fraction(1, 3), ZERO) == Fraction(1, 3)
    third = Fraction(1, 3**1500)  # (the product of two denominators is long, and that of the sum is not)
    assert account.add(third, third) == 2 * third
