"""Reservations: what is set aside is counted, is spent once, and is given back only where nothing was drawn for it."""

import contextlib
import math
import pickle
import random
import sqlite3
import threading
from fractions import Fraction

import _host
import joblib
import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion

from dpestim import config_context
from dpestim.accounting import BudgetExceededError, Ledger, LedgerError
from dpestim.feature_selection import DPSelectKBest
from dpestim.linear_model import DPLinearRegression, DPLogisticRegression
from dpestim.model_selection import PrivateSearchCV
from dpestim.pipeline import PrivatePipeline
from dpestim.preprocessing import DPSimpleImputer, DPStandardScaler
from dpestim.privacy import PrivacyGuarantee, account
from dpestim.privacy.account import GIVEN_BACK
from dpestim.privacy.entering import Entering

HALF, TENTH = PrivacyGuarantee(Fraction(1, 2)), PrivacyGuarantee(Fraction(1, 10))
WAYS = ("basic", "zcdp", "rdp")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.sqlite"


def kinds(ledger):
    return [entry["kind"] for entry in ledger.entries()]


def elsewhere(function, *arguments):
    """Call in a thread, which sees no block; return what it returns or raises."""
    found = []

    def run():
        try:
            found.append(function(*arguments))
        except BudgetExceededError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def holds(ledger):
    """Check that entries add up to the totals, and that releases and what is set aside are within the budget."""
    ledger.verify()
    state, sums = ledger._read(), {}
    names = state.layout.entry[state.layout.charged]
    for entry in ledger.entries():
        own = sums.get(entry["users"], state.layout.nothing)
        sums[entry["users"]] = tuple(a + entry[name] for a, name in zip(own, names))
    everybody = sums.pop("", state.layout.nothing)
    assert state.everybody == everybody
    assert state.label == tuple(max(amounts) for amounts in zip(state.layout.nothing, *sums.values()))
    for label in (state.layout.nothing, *sums.values()):
        within = [a + b <= most for a, b, most in zip(everybody, label, state.budget)]
        assert any(within) if state.layout.way.name == "rdp" else all(within)


def model(ledger=None, **params):
    return DPLogisticRegression(0.5, **{"data_norm": 2.0, "classes": [0, 1], "ledger": ledger, **params})


X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
Y = (X[:, 0] > 0).astype(int)


# ---------------------------------------------------------------- the account


def test_the_rest_is_given_back_and_what_was_charged_is_not():
    ledger = Ledger(1, durability="fast")

    def fails():
        with ledger.reserve([HALF, HALF], estimator="Both"):
            assert ledger.remaining().epsilon == 0
            assert "set aside:         epsilon = 1 for Both (entry 1;" in ledger.report()
            ledger.charge(HALF)
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert kinds(ledger) == ["reservation", "given back", "release", "given back"]
    assert [entry["charged_epsilon"] for entry in ledger.entries()] == [1, -HALF.epsilon, HALF.epsilon, -HALF.epsilon]
    assert ledger.spent().epsilon == ledger.remaining().epsilon == HALF.epsilon
    assert "set aside" not in ledger.report()
    holds(Ledger.open(ledger.path))


@pytest.mark.parametrize("users", ["", "north"])
@pytest.mark.parametrize("way", WAYS)
def test_nobody_else_spends_what_is_set_aside(way, users):
    ledger = Ledger(1, delta=0 if way == "basic" else 1e-6, durability="fast", composition=way)
    large = PrivacyGuarantee(ledger.remaining().epsilon * Fraction(3, 4))  # one fits, and two do not
    small = PrivacyGuarantee(large.epsilon / 3)
    ledger = ledger.for_users(users) if users else ledger
    with pytest.raises(BudgetExceededError, match="with those before it"):
        ledger.reserve([large, large]).__enter__()
    assert not kinds(ledger)
    with ledger.reserve([large, small]) as reservation:
        for other in (ledger, ledger.for_everybody()):
            assert isinstance(elsewhere(other.charge, large), BudgetExceededError)
        reservation.check([large, small])
        ledger.charge(large)
        with pytest.raises(BudgetExceededError):  # it draws on what there is, which does not suffice, and stays so
            ledger.charge(large)
        assert elsewhere(reservation.charge, small) == 5
        holds(ledger)
    assert kinds(ledger).count("given back") == 2
    if users:  # disjoint from the others
        with ledger.for_users("south").reserve([large]):
            holds(ledger)
    assert ledger.for_everybody().for_users("south").spent() == ledger.spent()


def test_what_costs_more_than_was_planned_pays_the_rest():
    ledger = Ledger(1, durability="fast")
    with ledger.reserve([TENTH]):
        ledger.charge(HALF)
        assert ledger.spent().epsilon == HALF.epsilon
        with pytest.raises(BudgetExceededError, match=r"needs epsilon = 0\.6"):
            ledger.charge(PrivacyGuarantee(0.6))
    assert ledger.spent().epsilon == HALF.epsilon


def test_one_inside_another_draws_on_both():
    ledger = Ledger(1, durability="fast")
    with ledger.reserve([HALF, HALF]), ledger.reserve([TENTH]) as inner:
        assert ledger.spent().epsilon == 1
        ledger.charge(HALF)
        elsewhere(inner.charge, TENTH)
        assert ledger.spent().epsilon == 1
        holds(ledger)
    assert ledger.spent().epsilon == Fraction(3, 5)
    assert ledger.remaining().epsilon == Fraction(2, 5)


def test_a_reservation_is_for_its_users_and_its_ledger_only():
    ledger, other = Ledger(1, durability="fast"), Ledger(1, durability="fast")
    north = ledger.for_users("north")
    with north.reserve([HALF]) as reservation:
        ledger.for_users("south").charge(HALF)
        reservation.for_users("south").charge(TENTH)
        with pytest.raises(BudgetExceededError):
            ledger.charge(PrivacyGuarantee(0.6))
        other.charge(HALF)
        assert kinds(ledger) == ["reservation", "release", "release"]
        reservation.charge(HALF)
    ledger.charge(PrivacyGuarantee(0.4))  # what the largest label left
    holds(ledger)


def test_what_nothing_refuses_needs_no_reservation():
    for ledger, entries in ((Ledger(math.inf, durability="fast"), 0), (Ledger(1, durability="fast"), 1)):
        nothing = PrivacyGuarantee(0)
        with ledger.reserve([HALF] if not entries else [nothing]), ledger.reserve([]):
            ledger.charge(HALF)
        assert kinds(ledger) == ["release"]
    with Ledger(math.inf, delta=0.5, durability="fast").reserve([PrivacyGuarantee(math.inf, 0.4)]) as ledger:
        assert "delta" in str(elsewhere(Ledger.open(ledger.path).charge, PrivacyGuarantee(1, 0.2)))
        ledger.charge(PrivacyGuarantee(math.inf, 0.4))


def test_what_was_given_back_pays_for_nothing():
    ledger = Ledger(1, durability="fast")
    with ledger.reserve([HALF]) as reservation:
        kept = pickle.loads(pickle.dumps(ledger))  # (inside, it takes the reservation along)
        assert kept._reservations == reservation._reservations == (1,)
        ledger.give_back(1)
        ledger.charge(TENTH)
    ledger.charge(PrivacyGuarantee(0.8))
    for handle in (reservation, kept):
        with pytest.raises(BudgetExceededError):
            handle.charge(HALF)
    ledger.give_back(1)
    assert kept.charge(TENTH) == len(ledger) == 5
    for number in (2, 3, 99):
        with pytest.raises(ValueError, match="number must be"):
            ledger.give_back(number)


@pytest.mark.parametrize("number", [1.0, np.float64(1), "1", "1.0", True, [1], None, -1, 10**30])
def test_only_the_number_of_an_entry_gives_back(number):
    """SQLite takes 1.0 for 1: what was drawn from entry 1 was given back too, and a release of 1/2 counted as none."""
    ledger = Ledger(2, durability="fast")
    with ledger.reserve([HALF, HALF]):
        ledger.charge(HALF)
        with pytest.raises(ValueError, match="number must be an int, the number of the entry"):
            ledger.give_back(number)
        ledger.give_back(np.int64(1))
    ledger.verify()
    assert ledger.spent().epsilon == HALF.epsilon


def test_what_was_not_given_back_may_be_given_back_again(monkeypatch):
    """The file could not be written at that moment: what is left must not be lost to this process."""
    ledger = Ledger(1, durability="fast")
    reservation = ledger.reserve([HALF])
    reservation.__enter__()

    give_back = Entering.give_back

    def fails(self, one):
        give_back(self, one)
        raise OSError  # (before it is committed)

    monkeypatch.setattr(Entering, "give_back", fails)
    with pytest.raises(OSError):
        ledger.give_back(1)
    monkeypatch.undo()
    reservation.__exit__(None, None, None)
    assert ledger.spent().epsilon == 0
    assert kinds(ledger) == ["reservation", "given back"]


@pytest.mark.parametrize("after", [1, 3, 4])
def test_a_block_that_is_collected_in_the_middle_of_a_charge_undoes_all_of_it(monkeypatch, after):
    """Part of the charge was written all the same, so that the file could not be opened any more."""
    ledger = Ledger(1, durability="fast")
    block, text, asked = ledger.reserve([TENTH]), account.text, []
    block.__enter__()

    def collects(amount):
        asked.append(amount)
        if len(asked) == after:
            block.__exit__(None, None, None)
        return text(amount)

    monkeypatch.setattr("dpestim.privacy.entering.text", collects)
    with pytest.raises(LedgerError, match="a signal handler or a finalizer during this operation"):
        ledger.for_users("north").charge(HALF)
    assert kinds(ledger) == ["reservation", "given back"]
    ledger.verify()
    ledger.for_users("north").charge(HALF)
    assert kinds(Ledger.open(ledger.path)) == ["reservation", "given back", "release"]


def test_what_is_no_guarantee_is_neither_reserved_nor_checked():
    ledger = Ledger(1, durability="fast")
    for ask in (ledger.check, lambda costs: ledger.reserve(costs).__enter__()):
        with pytest.raises(ValueError, match="guarantees must be a list of"):
            ask([HALF, 0.5])
    assert len(ledger) == 0


@pytest.mark.parametrize("way", WAYS)
def test_whatever_is_done_in_whatever_order_nothing_is_overdrawn(way):
    rng = random.Random(0)
    ledger = Ledger(2, delta=0 if way == "basic" else 1e-6, durability="fast", composition=way)
    done, refused, held = 0, 0, []
    for step in range(150):
        handle = rng.choice((ledger, ledger.for_users("a"), ledger.for_users("b"), *(one for one, _ in held)))
        costs = [PrivacyGuarantee(Fraction(rng.randrange(1, 30), 97)) for _ in range(rng.randrange(1, 4))]
        try:
            if rng.random() < 0.4:
                stack = contextlib.ExitStack()
                held.append((stack.enter_context(handle.reserve(costs)), stack))
            else:
                rng.choice((elsewhere, lambda charge, cost: charge(cost)))(handle.charge, costs[0])
                done += 1
        except BudgetExceededError:
            refused += 1
        if held and rng.random() < 0.4:
            held.pop(rng.randrange(len(held)))[1].close()
        if step % 15 == 0:
            holds(ledger)
    for _, stack in held:
        stack.close()
    holds(Ledger.open(ledger.path, durability="fast"))
    assert min(done, refused, kinds(ledger).count("given back")) > 10


def test_no_denominator_gives_back_more_than_was_set_aside():
    ledger = Ledger(3, durability="fast")
    odd = [PrivacyGuarantee(Fraction(1, below)) for below in (3**2500, 5**1700, 7**1400)]
    with ledger.reserve([TENTH, *odd]):
        for one in odd:  # (what is left has a denominator of 12,000 bits, which no file may hold)
            ledger.charge(one)
    ledger.verify()
    released = sum(entry["epsilon"] for entry in ledger.entries() if entry["kind"] == "release")
    assert released <= ledger.spent().epsilon <= released + Fraction(1, 2**1000)


# ---------------------------------------------------------------- the file


@pytest.mark.parametrize("change", [
    "charged_epsilon = '0'", "charged_epsilon = '1/2'", "charged_epsilon = '-1'", "kind = 'release'",
    "columns = '[\"entry 9\"]'", "kind = 'reservation'"])
def test_changes_of_what_was_given_back_are_noticed(path, change):
    with Ledger(1, path=path).reserve([HALF]):
        pass
    Ledger.open(path)
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE entries SET {change} WHERE number = 2")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError):
        Ledger.open(path)


def test_more_than_there_is_cannot_be_given_back(path):
    ledger = Ledger(1, path=path)
    ledger.charge(HALF)
    with ledger.reserve([TENTH]):
        forged = ledger._handle(ledger.path, ledger.uuid, "others", "full", (2,))
        forged.charge(TENTH)  # (it pays for itself: the reservation is another's)
        assert kinds(ledger) == ["release", "reservation", "release"]
        ledger._entered(lambda entering: entering._append(GIVEN_BACK, (-HALF.epsilon, Fraction(0)),
                                                          PrivacyGuarantee(0), "", ("entry 2",)))
        with pytest.raises(LedgerError, match="entry 4"):
            ledger.verify()


FORKS = """
import os, sys
from fractions import Fraction
from dpestim import config_context
from dpestim.accounting import BudgetExceededError, Ledger
from dpestim.privacy import PrivacyGuarantee
ledger, tenth = Ledger(1, path=sys.argv[1]), PrivacyGuarantee(Fraction(1, 10))
def status(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def run(code, *arguments):
    done = _host.run(FORKS + code, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_of_processes_that_race_those_who_reserve_finish(path):
    """Eight want three tenths each: three of them get all of it, the others nothing, and none a part."""
    assert run("""
start, children = os.pipe(), []
for _ in range(8):
    children.append(os.fork())
    if not children[-1]:
        os.close(start[1])
        os.read(start[0], 1)  # all start when the parent closes its end
        done = 0
        try:
            with ledger.reserve([tenth] * 3):
                for _ in range(3):
                    ledger.charge(tenth)
                    done += 1
        except BudgetExceededError:
            pass
        os._exit(done)
os.close(start[0])
os.close(start[1])
print(*sorted(map(status, children)), ledger.spent().epsilon, ledger.verify() != "")
""", path) == ["0"] * 5 + ["3"] * 3 + ["9/10", "True"]


def test_a_process_that_dies_leaves_all_of_it_counted(path):
    assert run("""
pid = os.fork()
if not pid:
    with ledger.reserve([tenth] * 4):
        ledger.charge(tenth)
        os._exit(3)
print(status(pid), ledger.spent().epsilon, len(ledger))
ledger.give_back(1)
print(ledger.spent().epsilon, ledger.verify() != "")
""", path) == ["3", "2/5", "3", "1/10", "True"]


def test_a_fork_shares_the_reservation_and_does_not_end_it(path):
    assert run("""
with ledger.reserve([tenth] * 4):
    pid = os.fork()
    if pid:
        print(status(pid), ledger.spent().epsilon)
        for _ in range(3):
            ledger.charge(tenth)
        print(ledger.spent().epsilon)
    else:
        ledger.charge(tenth)
if not pid:
    os._exit(len(ledger))
print(ledger.spent().epsilon, len(ledger), ledger.verify() != "")
""", path) == ["3", "2/5", "2/5", "2/5", "9", "True"]


# ---------------------------------------------------------------- who uses it


def pipeline(ledger, last=None, **params):
    return PrivatePipeline([("scale", DPStandardScaler(0.5, bounds=(-1, 1), ledger=ledger)),
                            ("model", model(ledger, **params) if last is None else last)])


class Failing(DPLogisticRegression):
    """What fails when it is fitted, before it pays; `seen` are the ledger's kinds then."""

    seen = ()

    def fit(self, X, y=None):
        type(self).seen = kinds(self.ledger), self.ledger.remaining().epsilon
        raise ValueError("no")


def test_a_pipeline_that_fails_has_paid_for_what_it_drew_only():
    ledger = Ledger(1, durability="fast")
    failing = Failing(0.5, data_norm=2.0, classes=[0, 1], ledger=ledger)
    with pytest.raises(ValueError, match="no"):
        pipeline(ledger, failing).fit(X, Y)
    assert Failing.seen == (["reservation", "given back", "release"], 0)
    assert ledger.remaining().epsilon == HALF.epsilon
    assert "_reservations" not in vars(failing)


@pytest.mark.parametrize("last", [
    model, lambda ledger: PrivatePipeline([("inner", DPSimpleImputer(0.25, bounds=(-1, 1), ledger=ledger)),
                                           ("model", model(ledger).set_params(epsilon=0.25))]),
    lambda ledger: PrivateSearchCV(model(), {"intercept_scaling": [0.1, 1.0]}, epsilon=0.5, gamma=0.5, ledger=ledger)])
def test_the_whole_budget_is_enough_for_a_pipeline(last):
    ledger = Ledger(1, durability="fast")
    pipeline(ledger, last(ledger)).fit(X, Y)
    assert (ledger.spent().epsilon, ledger.remaining().epsilon) == (1, 0)
    with Ledger(1, durability="fast") as ledger:
        fitted = pipeline(None, last(None)).fit(X, Y)
    with pytest.raises(BudgetExceededError):  # bound to it, as always
        fitted["scale"].fit(X)
    assert ledger.spent().epsilon == 1
    holds(ledger)


@pytest.mark.parametrize("beside", ["union", "columns", "nested"])
@pytest.mark.parametrize("made", ["inside", "outside"])
def test_steps_in_threads_draw_on_the_reservation(made, beside):
    ledger = Ledger(1, durability="fast")
    with ledger if made == "inside" else contextlib.nullcontext():
        own = None if made == "inside" else ledger
        parts = [(name, DPStandardScaler(0.25, bounds=(-1, 1), ledger=own)) for name in "ab"]
        if beside == "nested":
            two = [(name, DPStandardScaler(0.125, bounds=(-1, 1), ledger=own)) for name in "cd"]
            parts[1] = "b", PrivatePipeline(two)
        if beside == "columns":
            parts = ColumnTransformer([(name, part, [k]) for k, (name, part) in enumerate(parts)], n_jobs=2)
        else:
            parts = FeatureUnion(parts, n_jobs=2)
        with joblib.parallel_backend("threading", n_jobs=2):
            PrivatePipeline([("parts", parts), ("model", model(own))]).fit(X, Y)
    assert ledger.spent().epsilon == 1
    assert kinds(ledger).count("release") == (4 if beside == "nested" else 3)
    holds(ledger)


def test_fits_of_one_step_in_two_threads_end_in_any_order():
    ledger, step = Ledger(2, durability="fast"), model()
    with ledger.reserve([HALF]) as one, ledger.reserve([HALF]) as two:
        first, second = step._drawing_on([one]), step._drawing_on([two])
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert step._reservations == (two,)
        assert step._reservations[0] is two  # (it drew on none: handles are equal, and so tell nothing)
        second.__exit__(None, None, None)
    assert "_reservations" not in vars(step)


def test_a_step_that_travels_draws_on_the_reservation(path):
    ledger, step = Ledger(1, path=path), DPStandardScaler(1.0, bounds=(-1, 1))
    step.set_params(ledger=ledger)
    with ledger.reserve([PrivacyGuarantee(1)]) as reservation, step._drawing_on((reservation,)):
        packed = elsewhere(lambda: pickle.dumps(step)).hex()  # as the thread of a pool does it
        run(f"import pickle; pickle.loads(bytes.fromhex('{packed}')).fit([[0.5], [1]])", path)
    assert kinds(ledger) == ["reservation", "given back", "release"]


@pytest.mark.parametrize(("changes", "y", "what"), [
    ({}, Y + 5, "classes"), ({}, Y[:-1], "inconsistent"), ({}, None, "target y is None"),
    ({"classes": ["a", "b"]}, Y, "classes"), ({"random_state": "now"}, Y, "random_state|leaking"),
    ({"C": -1.0}, Y, "C must|leaking")])
@pytest.mark.parametrize("search", [False, True])
def test_what_a_later_step_refuses_costs_nothing(changes, y, what, search):
    ledger = Ledger(2, durability="fast")
    last = model(ledger, **changes)
    if search:
        last = PrivateSearchCV(last, {"fit_intercept": [True, False]}, epsilon=0.5, ledger=ledger)
    with pytest.raises(ValueError, match=what):
        pipeline(ledger, last).fit(X, y)
    if y is None or len(y) < len(X):  # what a schema says is refused in strict mode, too
        with config_context(strict=True), pytest.raises(ValueError, match=what):
            pipeline(ledger, last).fit(X, y)
    assert len(ledger) == 0


def test_targets_of_every_step_are_looked_at():
    ledger = Ledger(2, durability="fast")
    for select in ({"classes": [0, 1]}, {"score_func": "covariance", "target_bounds": (0, 1)}):
        chosen = DPSelectKBest(1, epsilon=0.5, bounds=(-1, 1), ledger=ledger, **select)
        for y in (Y + 5 if "classes" in select else np.full(len(X), np.nan), None):
            steps = [("scale", DPStandardScaler(0.5, bounds=(-1, 1), ledger=ledger)), ("select", chosen),
                     ("model", model(ledger, classes=[5, 6, 0, 1]) if "classes" in select else
                      DPLinearRegression(0.5, bounds=(-1, 1), target_bounds=(0, 1), ledger=ledger))]
            with pytest.raises(ValueError, match="y"):
                PrivatePipeline(steps).fit(X, y)
    assert len(ledger) == 0
