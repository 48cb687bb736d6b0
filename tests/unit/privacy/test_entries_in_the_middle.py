"""Entries of the kernel in whose middle something else runs, or goes wrong: a finalizer, a signal handler, an error."""

import gc
import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

from dpestim.accounting import Ledger, LedgerError
from dpestim.privacy import PrivacyGuarantee, store

TENTH = PrivacyGuarantee(Fraction(1, 10))
CHARGE = {"estimator": "GRR", "n_rows": 7, "columns": ("a", 'ö "b"')}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.sqlite"


class Statements:
    """Statements of a connection, before one of which something else happens."""

    def __init__(self, file):
        self.execute, self.before, file.execute = file.execute, {}, self

    def __call__(self, text, *arguments):
        happens = self.before.pop(text.split()[0], None)
        if happens is not None:
            happens()
        return self.execute(text, *arguments)


def watched(path):
    ledger = Ledger(1, path=path, durability="fast")
    ledger.charge(PrivacyGuarantee(0))
    file = store.opened(ledger.path)
    statements = Statements(file)
    file.plain = None  # (it has taken the statements of before)
    for _ in range(2):
        ledger.charge(TENTH, **CHARGE)
    assert store.opened(ledger.path).plain.is_ahead
    return ledger, statements


@pytest.mark.parametrize("inner", [TENTH, PrivacyGuarantee(Fraction(1, 2))])
def test_what_a_finalizer_enters_before_the_lock_is_taken_counts(path, inner):
    ledger, statements = watched(path)
    statements.before["BEGIN"] = lambda: ledger.charge(inner, **CHARGE)
    ledger.charge(TENTH, **CHARGE)
    assert ledger.spent().epsilon == Fraction(3, 10) + inner.epsilon
    assert len(ledger) == 5
    ledger.verify()


@pytest.mark.parametrize("place", ["PRAGMA", "INSERT", "COMMIT"])
def test_what_is_entered_in_the_middle_ends_the_outer_one(path, place):
    ledger, statements = watched(path)
    statements.before[place] = lambda: ledger.charge(PrivacyGuarantee(Fraction(1, 2)))
    with pytest.raises(LedgerError, match="signal handler"):
        ledger.charge(TENTH, **CHARGE)
    assert ledger.spent().epsilon == Fraction(7, 10)
    assert len(ledger) == 4
    ledger.verify()


@pytest.mark.parametrize(("error", "raised"), [(KeyboardInterrupt, KeyboardInterrupt), (MemoryError, MemoryError),
                                           (sqlite3.OperationalError("database is locked"), LedgerError),
                                           (sqlite3.DatabaseError("malformed"), LedgerError)])
@pytest.mark.parametrize("place", ["BEGIN", "PRAGMA", "INSERT", "COMMIT"])
def test_an_error_undoes_an_entry(path, place, error, raised):
    ledger, statements = watched(path)

    def fail():
        raise error

    statements.before[place] = fail
    with pytest.raises(raised):
        ledger.charge(TENTH, **CHARGE)
    with ThreadPoolExecutor(1) as pool:  # (the lock is free)
        assert pool.submit(ledger.charge, TENTH, **CHARGE).result() == 4
    assert ledger.spent().epsilon == Fraction(3, 10)
    ledger.verify()


def test_a_score_of_a_finalizer_before_the_lock_is_taken_counts(path):
    ledger, statements = watched(path)
    statements.before["BEGIN"] = ledger.record_score
    ledger.charge(TENTH, **CHARGE)
    assert ledger.spent().epsilon == Fraction(3, 10)
    assert len(ledger) == 5
    ledger.verify()


@pytest.mark.parametrize("place", ["BEGIN", "PRAGMA", "INSERT", "COMMIT"])
@pytest.mark.parametrize("undone", [False, True])
def test_an_interrupt_of_what_ends_an_entry_leaves_no_account_that_is_wrong(path, monkeypatch, place, undone):
    """As by a second signal, where SQLite had ended the transaction, or had not."""
    ledger, statements = watched(path)
    file = store.opened(ledger.path)

    def fail():
        if undone and place != "BEGIN":
            file.connection.execute("ROLLBACK")
        raise sqlite3.OperationalError("disk I/O error")

    def interrupted(*_):
        raise KeyboardInterrupt

    statements.before[place] = fail
    monkeypatch.setattr(store, "_raise_as_ledger_error", interrupted)
    monkeypatch.setattr(store, "_undo", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ledger.charge(TENTH, **CHARGE)
    monkeypatch.undo()
    for number in (4, 5):
        assert ledger.charge(TENTH, **CHARGE) == number
    assert ledger.spent().epsilon == Fraction(4, 10)
    ledger.verify()


def test_what_is_committed_and_then_interrupted_is_read_anew(path):
    """The row of the entry is in the file, and nobody was told its number."""
    ledger, statements = watched(path)
    execute = statements.execute

    def commits(text, *arguments):
        found = execute(text, *arguments)
        if text == "COMMIT":
            statements.execute = execute
            raise KeyboardInterrupt
        return found

    statements.execute = commits
    with pytest.raises(KeyboardInterrupt):
        ledger.charge(TENTH, **CHARGE)
    assert ledger.charge(TENTH, **CHARGE) == 5
    assert ledger.spent().epsilon == Fraction(4, 10)
    ledger.verify()


FINALIZERS = """
import gc, random, sys
from fractions import Fraction
from dpestim.accounting import BudgetExceededError, Ledger, LedgerError
from dpestim.privacy import PrivacyGuarantee, store
store._PATIENCE = 0.02
ledger, unit = Ledger(1, path=sys.argv[1], durability="fast"), PrivacyGuarantee(Fraction(1, 200))
inside = False
def charge():
    try:
        ledger.charge(unit, estimator="x")
    except (BudgetExceededError, LedgerError):
        pass
class Charging:
    def __init__(self):
        self.me = self
    def __del__(self):
        global inside
        if not inside:
            inside = True
            if rng.random() < 0.3:
                charge()
            inside = False
rng = random.Random(3)
gc.freeze()
gc.set_threshold(7, 2)
for _ in range(100):
    for _ in range(rng.randint(0, 3)):
        Charging()
    charge()
gc.set_threshold(0)
ledger.verify()
assert len(ledger) <= 200
"""


def test_finalizers_that_charge_do_not_end_the_process(path):
    """CPython 3.11 collects inside of SQLite's calls, which then found their connection closed."""
    done = subprocess.run([sys.executable, "-c", FINALIZERS, path], capture_output=True, check=False)
    assert not done.returncode, done.stderr


@pytest.mark.parametrize("collects", [True, False])
@pytest.mark.parametrize("error", [None, KeyboardInterrupt, sqlite3.DatabaseError("malformed")])
def test_garbage_is_collected_after_an_entry_as_before(path, error, collects):
    ledger, statements = watched(path)
    seen = []

    def look():
        seen.append(gc.isenabled())
        if error is not None:
            raise error

    statements.before["INSERT"] = look
    if not collects:
        gc.disable()
    try:
        if error is None:
            ledger.charge(TENTH, **CHARGE)
        else:
            with pytest.raises((KeyboardInterrupt, LedgerError)):
                ledger.charge(TENTH, **CHARGE)
        assert gc.isenabled() == collects
        assert seen == [collects and sys.version_info >= (3, 12)]
        ledger.for_users("north").charge(TENTH)  # (what is left to the other way)
        ledger.charge(TENTH, **CHARGE)
        assert gc.isenabled() == collects
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_that_is_forked_in_the_middle_of_an_entry_collects_garbage(path):
    ledger, statements = watched(path)
    codes = []

    def fork():
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 3)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    statements.before["INSERT"] = fork
    ledger.charge(TENTH, **CHARGE)
    assert codes == [0]
    assert gc.isenabled()
    assert ledger.spent().epsilon == Fraction(3, 10)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("use", ["kernel", "reading"])
def test_a_child_that_is_forked_in_the_middle_is_refused_at_once(path, monkeypatch, use):
    """It inherits SQLite's belief in locks that are its parent's: it would wait for itself, or read with none."""
    ledger, statements = watched(path)
    monkeypatch.setattr(store, "_PATIENCE", 0.1)
    codes = []

    def tried(charge):
        try:
            charge()
        except LedgerError as error:
            return "was forked in the middle" in str(error)
        return False

    def fork():
        child = os.fork()
        if not child:
            os._exit(0 if tried(lambda: ledger.charge(TENTH)) and tried(lambda: len(ledger)) else 3)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    if use == "kernel":
        statements.before["INSERT"] = fork
        ledger.charge(TENTH, **CHARGE)
    else:
        ledger._reading(lambda file: fork())
    assert codes == [0]
    assert ledger.charge(TENTH, **CHARGE) == 4 + (use == "kernel")
    ledger.verify()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_signal_handlers_that_charge_count_and_overdraw_nothing(path):
    ledger, unit, done = Ledger(1, path=path, durability="fast"), PrivacyGuarantee(Fraction(1, 1000)), []
    refused = []

    def charge(*_):
        try:
            done.append(ledger.charge(unit))
        except LedgerError as error:
            refused.append(str(error))

    def handle(*_):
        charge()  # (and only then may the next one come: handlers that are slower than their timer would never end)
        signal.setitimer(signal.ITIMER_REAL, 0.0005)

    for _ in range(2):  # (CPython's own locks of imports fail where a handler imports in the middle of an import)
        charge()
    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    try:
        for _ in range(300):
            charge()
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(done) + len(refused) > 300
    assert all("signal handler" in words for words in refused)
    assert len(set(done)) == len(done) <= len(ledger)
    assert ledger.spent().epsilon == Fraction(len(ledger), 1000)
    ledger.verify()


def test_an_entry_of_a_taken_number_leaves_no_lock(path):
    """A tracer that charges while the kernel takes what is known has it write a number twice, which SQLite refuses."""
    ledger, done = Ledger(1, path=path, durability="fast"), []
    for _ in range(2):
        ledger.charge(TENTH)
    ledger.record_score()

    def trace(frame, event, _):
        if frame.f_code.co_name == "texts" and not done:
            done.append(ledger.record_score())

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        ledger.charge(TENTH)
    except LedgerError:
        pass
    finally:
        sys.settrace(before)
    assert done
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("ROLLBACK")
    other.close()
    ledger.charge(TENTH)
    ledger.verify()
