"""Plain releases, which a kernel enters: the same rows, and every check that the other way makes."""

import copy
import dataclasses
import math
import os
import shutil
import signal
import sqlite3
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import numpy as np
import pytest

from dpestim._core import entry
from dpestim.accounting import BudgetExceededError, Ledger, LedgerError
from dpestim.privacy import Neighbours, PrivacyGuarantee, ambient, entering, store

TENTH = PrivacyGuarantee(Fraction(1, 10))
CHARGE = {"estimator": "GRR", "n_rows": 7, "columns": ("a", 'ö "b"')}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.sqlite"


def charged(path, budget=100, times=3, durability="fast", **terms):
    """Return a ledger whose last charge was the kernel's, and its connection."""
    ledger = Ledger(budget, path=path, durability=durability, **terms)
    for _ in range(times):
        ledger.charge(TENTH, **CHARGE)
    file = store.opened(ledger.path)
    assert entered_by_kernel(file)
    return ledger, file


def entered_by_kernel(file):
    return file.plain.is_ahead and file.plain.length == file.execute("PRAGMA user_version").fetchone()[0]


def test_times_are_those_of_the_library(path, monkeypatch):
    ledger, _ = charged(path)
    seconds = [0, 951_782_399, 951_782_400, 951_782_400, 4_107_542_399, 4_107_542_400, 1_700_000_000, 7_000_000_000]
    for at, second in enumerate(seconds):
        monkeypatch.setattr(entry, "time_ns", lambda now=second * 10**9 + at * 123_456_789: now)
        ledger.charge(TENTH, **CHARGE)
    assert [each["time"] for each in ledger.entries()[3:]] == [
        (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second, microseconds=at * 123_456_789 // 1000)).isoformat(
            timespec="microseconds") for at, second in enumerate(seconds)]


@pytest.mark.parametrize("guarantee", [
    TENTH, PrivacyGuarantee(Fraction(2)), PrivacyGuarantee(Fraction(1, 3), model="central",
                                                           neighbours=Neighbours.SUBSTITUTION, seeded=True),
    PrivacyGuarantee(Fraction(1, 8), model="central", neighbours=Neighbours.ADD_REMOVE, seeded=None)])
@pytest.mark.parametrize("budget", [20, math.inf])
@pytest.mark.parametrize("relation", ["substitution", "add_remove", "local"])
def test_rows_are_those_of_the_other_way(tmp_path, guarantee, budget, relation):
    own = guarantee.neighbours.value
    converted = (own, relation) == ("add_remove", "substitution")
    if own != relation and not (relation == "substitution" and own in ("local", "add_remove")):
        return
    found = []
    for name in ("kernel", "other way"):
        ledger = Ledger(budget, path=tmp_path / name, durability="fast", neighbours=relation)
        for number, n_rows in enumerate((7, 8, 0, None, 2**31 - 1, 2**40, 3, 4, 5), 1):
            equal = PrivacyGuarantee(Fraction(*guarantee.epsilon.as_integer_ratio()), Fraction(0), guarantee.model,
                                     guarantee.neighbours, guarantee.seeded)
            if name == "other way" and number > 1:
                store.opened(ledger.path).plain = False
            assert ledger.charge(equal if number % 2 else guarantee, **CHARGE | {"n_rows": n_rows}) == number
        file = store.opened(ledger.path)
        assert file.plain is False if name == "other way" else entered_by_kernel(file) != converted
        ledger.verify()
        entries = ledger.entries()
        times = [(each.pop("time"), each.pop("hash"))[0] for each in entries]
        assert times == sorted(times)
        assert all(datetime.fromisoformat(time).tzinfo for time in times)
        found.append((entries, ledger.spent(), ledger.remaining(), len(ledger)))
    assert found[0] == found[1]


def test_the_two_ways_go_on_from_each_other(path):
    ledger, file = charged(path)
    other, total = PrivacyGuarantee(Fraction(1, 7)), Fraction(3, 10)
    for guarantee in (TENTH, other, other, other, other, TENTH, TENTH, TENTH, other, TENTH):
        ledger.charge(guarantee, **CHARGE)
        total += guarantee.epsilon
        assert ledger.spent().epsilon == total
    ledger.record_score()
    for _ in range(3):
        ledger.charge(TENTH, **CHARGE)
    assert entered_by_kernel(file)
    assert ledger.spent().epsilon == total + Fraction(3, 10)
    assert len(ledger) == 17
    Ledger.open(path).verify()


def test_another_release_is_entered_as_what_it_is(path):
    ledger, _ = charged(path)
    changes = (("model", "central", "central"), ("seeded", True, "yes"), ("epsilon", Fraction(1, 5), Fraction(1, 5)),
               ("neighbours", Neighbours.SUBSTITUTION, "substitution"))
    for k, (key, value, shown) in enumerate(changes):
        ledger.charge(TENTH, **CHARGE)
        ledger.charge(TENTH, **CHARGE)
        ledger.charge(dataclasses.replace(TENTH, **{key: value}), **CHARGE)
        assert ledger.entries()[-1][key] == shown
        assert len(ledger) == 6 + 3 * k
    others = [CHARGE | change for change in ({"estimator": "OUE"}, {"n_rows": 8}, {"n_rows": None}, {"columns": ("a",)},
                                             {"columns": ("a", "c")}, {"columns": ["a", 1]}, {"n_rows": True})]
    for other in others:
        ledger.charge(TENTH, **CHARGE)
        ledger.charge(TENTH, **CHARGE)
        ledger.charge(TENTH, **other)
        row = ledger.entries()[-1]
        assert row["estimator"] == other["estimator"]
        assert row["n_rows"] == other["n_rows"]
        assert list(row["columns"]) == [str(name) for name in other["columns"]]
    ledger.verify()


@pytest.mark.parametrize("durability", ["full", "fast"])
def test_the_budget_is_never_exceeded(path, durability):
    ledger, _ = charged(path, 1, durability=durability)
    for number in range(4, 11):
        assert ledger.charge(TENTH, **CHARGE) == number
    for _ in range(3):
        with pytest.raises(BudgetExceededError, match="0 of 1 is left"):
            ledger.charge(TENTH, **CHARGE)
    assert len(ledger) == 10
    assert not ledger.remaining().epsilon
    ledger.verify()


@pytest.mark.parametrize("change", [
    {"n_rows": True}, {"n_rows": np.int64(7)}, {"n_rows": -1}, {"n_rows": 2**63}, {"n_rows": 10**5000}, {"n_rows": 1.5},
    {"n_rows": "x"}, {"columns": ["a", "b"]}, {"columns": ("\ud800",)}, {"columns": (1, None)}, {"columns": "ab"},
    {"columns": iter("ab")}, {"columns": iter("ab"), "n_rows": True}, {"columns": 3},
    {"columns": np.array(["a"], object)},
    {"columns": ("a\0", "\x7f", "\U0001f600", '"')}, {"columns": ()}, {"columns": (np.str_("a"),)},
    {"estimator": "\ud800"}, {"estimator": 'E"\\\0ö'}, {"estimator": 3}, {"estimator": np.str_("E")},
    {"guarantee": None}, {"guarantee": 0.1}, {"guarantee": PrivacyGuarantee(Fraction(1, 10), Fraction(1, 1000))},
    {"guarantee": PrivacyGuarantee(math.inf)}, {"guarantee": PrivacyGuarantee(0)}, {"guarantee": PrivacyGuarantee(11)},
    {"guarantee": PrivacyGuarantee(math.inf, relaxation="R", relaxed_epsilon=Fraction(1, 10))},
    {"guarantee": PrivacyGuarantee(Fraction(3), relaxation="R", relaxed_epsilon=Fraction(1, 10))},
    {"guarantee": PrivacyGuarantee(Fraction(1, 10), neighbours=Neighbours.EDGE)},
    {"guarantee": PrivacyGuarantee(Fraction(1, 10), neighbours=Neighbours.ADD_REMOVE, model=np.str_("central"))},
    {"guarantee": PrivacyGuarantee(Fraction(1, 10), seeded=1)},
    {"guarantee": PrivacyGuarantee(Fraction(1, 10), seeded="x")}])
@pytest.mark.parametrize("terms", [{}, {"relaxation": "R"}, {"neighbours": "add_remove"}])
def test_whatever_is_passed_comes_to_the_same_by_both_ways(tmp_path, change, terms):
    found = []
    for name in ("kernel", "other way"):
        ledger = Ledger(10, path=tmp_path / name, durability="fast", **terms)
        plain = dataclasses.replace(TENTH, neighbours=Neighbours(ledger.neighbours), model="central")
        said = {"guarantee": plain, **CHARGE, **{key: copy.copy(value) for key, value in change.items()}}
        for arguments in ({"guarantee": plain, **CHARGE}, {"guarantee": plain, **CHARGE}, said):
            if name == "other way" and (file := store.opened(ledger.path)):
                file.plain = False
            try:
                ledger.charge(**arguments)
                raised = None
            except Exception as error:
                raised = type(error), str(error).replace(ledger.path, "")
        ledger.verify()
        entries = ledger.entries()
        for each in entries:
            del each["time"], each["hash"]
        found.append((raised, entries, ledger.spent().epsilon, ledger.charge(plain)))
    assert found[0] == found[1]


class Importing(types.ModuleType):
    """A kernel that is being imported, and charged for by a handler of a signal: what Cython raises."""

    def __getattr__(self, name):
        raise RuntimeError("Module 'entry' has already been imported. Re-initialisation is not supported.")


@pytest.mark.parametrize("kernel", [None, Importing("entry")])
def test_a_ledger_is_charged_where_the_kernel_was_not_built(path, monkeypatch, kernel):
    monkeypatch.setitem(sys.modules, "dpestim._core.entry", kernel)
    ledger = Ledger(1, path=path, durability="fast")
    for number in range(1, 4):
        assert ledger.charge(TENTH, **CHARGE) == number
    assert store.opened(ledger.path).plain is False
    monkeypatch.undo()
    file = store.opened(ledger.path)
    monkeypatch.setattr(file, "key", (file.key[0], file.key[1], 2**70, *file.key[3:]))  # (as on Windows)
    assert entering.plain_entries(file, ledger.path, {}) is False
    monkeypatch.undo()
    with pytest.raises(BudgetExceededError):
        ledger.charge(PrivacyGuarantee(1))
    assert ledger.remaining().epsilon == Fraction(7, 10)


def test_amounts_that_are_not_the_kernels(path):
    for budget, first in ((math.inf, PrivacyGuarantee(math.inf)), (Fraction(2**70, 3), TENTH)):
        ledger = Ledger(budget, path=path.with_suffix(f".{len(str(budget))}"), durability="fast")
        for number, guarantee in enumerate((first, TENTH, TENTH), 1):
            assert ledger.charge(guarantee, **CHARGE) == number
        ledger.verify()
    ledger = Ledger(1, delta=1e-6, path=path, durability="fast", composition="zcdp")
    for number in range(1, 4):
        assert ledger.charge(TENTH, **CHARGE) == number
    ledger.verify()


def test_a_handle_of_another_ledger_is_noticed_where_nothing_is_held(path):
    ledger, _ = charged(path)
    ledger.record_score()
    with pytest.raises(LedgerError, match="another ledger"):
        Ledger._handle(ledger.path, "other", "", "fast").charge(TENTH, **CHARGE)


def test_a_handle_that_waits_for_the_disk_has_a_connection_that_does(path):
    ledger, file = charged(path)
    Ledger._handle(ledger.path, ledger.uuid, "", "full").charge(TENTH, **CHARGE)
    assert store.opened(ledger.path) is not file
    assert store.opened(ledger.path).execute("PRAGMA synchronous").fetchone() == (2,)
    ledger.charge(TENTH, **CHARGE)
    ledger.verify()
    assert len(ledger) == 5


def test_the_connection_used_last_is_closed_last(path):
    ledger, file = charged(path)
    for k in range(store._MOST_CONNECTIONS + 2):
        Ledger(1, path=path.with_suffix(f".{k}"), durability="fast").charge(TENTH)
        ledger.charge(TENTH)
    assert store.opened(ledger.path) is file


def test_numbers_of_more_than_31_bits_are_left_to_the_other_way(path):
    ledger, total = Ledger(1, path=path, durability="fast"), 0
    for below in (2**30, 2**30 - 1, 3**19, 3**20, 5**13, 2**31 - 1, 2**31, 2**70):
        guarantee = PrivacyGuarantee(Fraction(1, below))
        for _ in range(4):
            ledger.charge(guarantee)
            total += guarantee.epsilon
        assert ledger.spent().epsilon == total
    ledger.verify()


def test_labels_reservations_and_audits_go_the_other_way(path):
    ledger, file = charged(path, 1)
    ledger.for_users("north").charge(TENTH, **CHARGE)
    assert ledger.entries()[-1]["users"] == "north"
    for _ in range(3):  # what a label has is added to what everybody has
        ledger.charge(TENTH, **CHARGE)
    assert file.plain is False
    assert ledger.remaining().epsilon == Fraction(3, 10)

    ledger, file = charged(path.with_suffix(".second"), 1)
    with ledger.reserve([TENTH, TENTH]):
        ledger.charge(TENTH, **CHARGE)
        assert ledger.remaining().epsilon == Fraction(5, 10)
    assert ledger.remaining().epsilon == Fraction(6, 10)
    with ledger.reserve([TENTH]) as handle:
        for _ in range(2):
            ledger.charge(PrivacyGuarantee(0), **CHARGE)
        handle.charge(TENTH, **CHARGE)
    assert ledger.remaining().epsilon == Fraction(5, 10)

    ledger, _ = charged(path.with_suffix(".third"), 1)
    with ambient.audited(), pytest.raises(LedgerError, match="audit"):
        ledger.charge(TENTH, **CHARGE)
    assert len(ledger) == 3


def gone(path, moved):
    shutil.move(path, moved)


def replaced(path, moved):
    Ledger(100, path=moved)
    shutil.copy(moved, f"{moved}.new")
    os.replace(f"{moved}.new", path)


def shortened(path, _):
    os.truncate(path, os.path.getsize(path) - 4096)


def logged(path, _):
    with open(f"{path}-wal", "w"):
        pass


def statement(text):
    def change(path, _):
        connection = sqlite3.connect(path)
        connection.executescript(text)
        connection.close()
    return change


@pytest.mark.parametrize(("change", "words"), [
    (gone, "missing"), (replaced, "replaced by another ledger"), (shortened, "damaged"), (logged, "WAL"),
    (statement("PRAGMA journal_mode=WAL; CREATE TABLE x (y)"), "WAL|another program"),
    (statement("CREATE TRIGGER undo AFTER INSERT ON entries BEGIN DELETE FROM entries; END"), "another program"),
    (statement("DELETE FROM entries WHERE number = 40"), "lost entries"),
    (statement("PRAGMA user_version = 3"), "lost entries"),
    (statement("UPDATE terms SET uuid = 'x'"), "replaced by another ledger"),
    (statement("UPDATE entries SET everybody_epsilon = 'few' WHERE number = 40"), "damaged")])
def test_what_others_did_to_the_file_is_noticed(path, tmp_path, change, words):
    ledger, _ = charged(path, times=40)
    change(ledger.path, str(tmp_path / "moved"))
    with pytest.raises(LedgerError, match=words):
        ledger.charge(TENTH, **CHARGE)


def test_what_others_entered_counts(path):
    """... also what another process enters, whose account says more than this one knows."""
    ledger, _ = charged(path, 1)
    connection, other = sqlite3.connect(path), Ledger(1, path=path.with_suffix(".other"), durability="fast")
    other.charge(TENTH)
    connection.execute("UPDATE entries SET everybody_epsilon = '1' WHERE number = 3")
    connection.commit()
    connection.close()
    with pytest.raises(BudgetExceededError):
        ledger.charge(TENTH, **CHARGE)


def test_an_object_of_a_file_that_was_closed_enters_nothing(path):
    """As in a thread that waited for the lock while another one closed the connection."""
    ledger, file = charged(path, 1)
    store._disconnect(ledger.path)
    assert not file.plain.enter(ledger, TENTH, *CHARGE.values())
    assert ledger.charge(TENTH, **CHARGE) == 4
    assert not file.plain.enter(ledger, TENTH, *CHARGE.values())
    assert len(ledger) == 4


def test_each_entry_has_the_names_of_its_own_release(path):
    """... though the texts of the last ones are kept: of the same tuple and the same estimator alone."""
    ledger, file = charged(path)
    columns, names = ("a", "b"), ["a", "b"]
    for estimator, given in [("GRR", columns), ("GRR", columns), ("OUE", columns), ("OUE", names), ("OUE", names),
                             ("GRR", ("a",)), ("GRR", columns)]:
        ledger.charge(TENTH, estimator=estimator, columns=given)
        assert entered_by_kernel(file)
        found = ledger.entries()[-1]
        assert (found["estimator"], found["columns"]) == (estimator, list(given))
        names.append("c")
    ledger.verify()


@pytest.mark.parametrize("size", [512, 4096])
def test_pages_are_small_and_may_have_any_size(path, size):
    """... as those of files that older versions made, of 4096 bytes."""
    ledger, file = charged(path)
    assert file.execute("PRAGMA page_size").fetchone() == (1024,)
    store._disconnect(ledger.path)
    connection = sqlite3.connect(path)
    connection.executescript(f"PRAGMA page_size={size}; VACUUM")
    connection.close()
    ledger, file = charged(path)
    assert file.execute("PRAGMA page_size").fetchone() == (size,)
    assert len(ledger) == 6
    ledger.verify()


def test_threads_and_forks_enter_in_one_account(path):
    ledger, _ = charged(path)
    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(lambda _: ledger.charge(TENTH, **CHARGE), range(60)))
    assert sorted(numbers) == list(range(4, 64))
    for _ in range(2):
        if hasattr(os, "fork"):
            child = os.fork()
            if not child:
                os._exit(int(ledger.charge(TENTH, **CHARGE) != len(ledger)))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        ledger.charge(TENTH, **CHARGE)
    assert ledger.spent().epsilon == Fraction(len(ledger), 10)
    ledger.verify()


def test_a_copy_in_the_files_place_is_what_is_charged(path, tmp_path):
    ledger, _ = charged(path, times=40)
    shutil.copy(path, tmp_path / "copy")
    os.replace(tmp_path / "copy", path)
    ledger.charge(TENTH, **CHARGE)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT COUNT(*) FROM entries").fetchone() == (41,)
    connection.close()


def test_an_older_copy_and_a_handle_of_another_ledger_are_noticed(path):
    ledger, _ = charged(path)
    older = path.read_bytes()
    for _ in range(2):
        ledger.charge(TENTH, **CHARGE)
    path.write_bytes(older)  # in place
    with pytest.raises(LedgerError, match="older copy"):
        ledger.charge(TENTH, **CHARGE)
    ledger, _ = charged(path.with_suffix(".second"))
    with pytest.raises(LedgerError, match="another ledger"):
        Ledger._handle(ledger.path, "other", "", "fast").charge(TENTH, **CHARGE)


def test_a_transaction_that_was_left_and_a_reservation_of_another_process(path):
    ledger, file = charged(path, 1)
    file.execute("BEGIN IMMEDIATE")  # as if an interrupt came
    assert ledger.charge(TENTH, **CHARGE) == 4
    number = ledger._entered(lambda entering: entering.reserve([TENTH], ""))
    assert ledger.charge(TENTH, **CHARGE) == 6
    assert ledger.charge(TENTH, **CHARGE) == 7
    Ledger._handle(ledger.path, ledger.uuid, "", "fast", (number,)).charge(TENTH, **CHARGE)
    assert ledger.remaining().epsilon == Fraction(3, 10)


def test_a_handler_that_charges_while_the_kernel_learns_what_holds_counts(path):
    ledger, file = charged(path)
    inside = []

    class Interrupted(Fraction):
        def as_integer_ratio(self):
            if not inside:
                inside.append(True)
                ledger.charge(TENTH, **CHARGE)
            return super().as_integer_ratio()

    known = file.known
    file.known = dataclasses.replace(known, everybody=(Interrupted(known.everybody[0]), known.everybody[1]))
    assert ledger.charge(TENTH, **CHARGE) == 5
    assert ledger.spent().epsilon == Fraction(1, 2)
    ledger.verify()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_a_signal_that_came_before_is_handled_outside_of_transactions(path):
    ledger, _ = charged(path)

    before = signal.signal(signal.SIGALRM, lambda *_: ledger.charge(TENTH, **CHARGE))
    try:
        for n_rows in range(30):  # (writing an int asks for signals)
            signal.setitimer(signal.ITIMER_REAL, 1e-5)
            ledger.charge(TENTH, estimator="GRR", n_rows=10**9 + n_rows)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    ledger.verify()


@pytest.mark.parametrize("now", [5_000, -1_500_000_000])
def test_a_clock_at_its_start_and_before_it(path, monkeypatch, now):
    monkeypatch.setattr(entry, "time_ns", lambda: now)
    ledger, _ = charged(path) if now > 0 else (Ledger(1, path=path), None)
    for _ in range(3):
        ledger.charge(TENTH, **CHARGE)
    assert all(datetime.fromisoformat(each["time"]) for each in ledger.entries())
