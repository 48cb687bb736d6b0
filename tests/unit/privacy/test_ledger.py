"""The ledger: exact accounts that survive clones, workers, crashes and damaged files."""

import copy
import math
import pickle
import re
import threading
from fractions import Fraction

import _host
import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline

from dpestim.accounting import BudgetExceededError, Ledger, LedgerError
from dpestim.linear_model import DPLogisticRegression
from dpestim.local import (
    DistributionEstimator,
    GRRFrequencyEstimator,
    MeanEstimator,
    OUEFrequencyEstimator,
    PMTransformer,
)
from dpestim.privacy import Neighbours, PrivacyGuarantee

TENTH = PrivacyGuarantee(Fraction(1, 10))
X = np.array([[0], [1], [1], [0]])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.sqlite"


def grr(epsilon=0.1, **params):
    return GRRFrequencyEstimator(epsilon, categories=[[0, 1]], **params)


# -------------------------------------------------------------------- amounts


@pytest.mark.parametrize("durability", ["full", "fast"])
def test_ten_tenths_fit_in_one_and_an_eleventh_does_not(durability):
    ledger = Ledger(1.0, durability=durability)
    for k in range(10):
        assert ledger.charge(TENTH, estimator="E", n_rows=4) == k + 1
    with pytest.raises(BudgetExceededError, match=r"needs epsilon = 0.1 and 0 of 1 is left.*set_params\(ledger=None\)"):
        ledger.charge(TENTH)
    assert len(ledger) == 10
    assert ledger.spent().epsilon == 1
    assert ledger.remaining().epsilon == 0
    assert issubclass(BudgetExceededError, LedgerError)
    assert issubclass(LedgerError, ValueError)


def test_delta_has_its_own_budget():
    ledger = Ledger(10, delta=1e-6)
    ledger.charge(PrivacyGuarantee(1, delta=Fraction(1, 10**6), model="central", neighbours=Neighbours.SUBSTITUTION))
    with pytest.raises(BudgetExceededError, match="delta") as spent:
        ledger.charge(PrivacyGuarantee(1, delta=Fraction(1, 10**9)))
    with pytest.raises(BudgetExceededError, match="open the ledger with one"):
        Ledger(10).charge(PrivacyGuarantee(1, delta=Fraction(1, 10**9)))
    assert "open the ledger with one" not in str(spent.value)  # (it has one)
    ledger.charge(PrivacyGuarantee(1))
    assert (ledger.spent().epsilon, ledger.spent().delta) == (2, Fraction(1, 10**6))


def test_disjoint_users_cost_the_maximum_and_the_same_users_the_sum():
    ledger = Ledger(1.0)
    a, b = ledger.for_users("north"), ledger.for_users("south")
    for handle in (a, a, a, b, b):
        handle.charge(PrivacyGuarantee(Fraction(3, 10)))
    assert ledger.spent().epsilon == Fraction(9, 10)
    ledger.charge(TENTH)  # about anybody: added to every label
    assert ledger.spent().epsilon == 1
    b.charge(PrivacyGuarantee(Fraction(3, 10)))
    for handle in (a, b, ledger):
        with pytest.raises(BudgetExceededError):
            handle.charge(PrivacyGuarantee(Fraction(1, 1000)))
    assert ledger.verify()
    with pytest.raises(ValueError, match="label"):
        ledger.for_users("")


def test_one_relation_a_ledger():
    add_remove = PrivacyGuarantee(Fraction(1, 2), model="central", neighbours=Neighbours.ADD_REMOVE)
    ledger = Ledger(2.0)
    ledger.charge(add_remove, n_rows=77)
    ledger.charge(TENTH, n_rows=5)
    assert ledger.spent().epsilon == Fraction(11, 10)
    assert [e["n_rows"] for e in ledger.entries()] == [None, 5]  # the number of rows is private under add/remove
    only = Ledger(2.0, neighbours="add_remove")
    only.charge(add_remove)
    assert only.spent().neighbours is Neighbours.ADD_REMOVE
    for other in (TENTH, PrivacyGuarantee(1, model="central", neighbours=Neighbours.SUBSTITUTION)):
        with pytest.raises(ValueError, match="has no bound for"):
            only.charge(other)
    assert len(only) == 1


def test_without_a_guarantee_only_a_ledger_without_limit_accepts():
    nothing = PrivacyGuarantee(math.inf, notes=("The bounds were learned.",))
    ledger = Ledger(80)
    with pytest.raises(BudgetExceededError, match=r"infinity.*The bounds were learned"):
        ledger.charge(nothing)
    assert len(ledger) == 0
    open_end = Ledger(math.inf)
    open_end.charge(TENTH)
    assert open_end.spent().epsilon == Fraction(1, 10)
    open_end.charge(PrivacyGuarantee(10**400))
    open_end.charge(nothing)
    assert open_end.spent().epsilon == math.inf
    open_end.charge(PrivacyGuarantee(10**400))
    open_end.for_users("a").charge(PrivacyGuarantee(10**400))
    assert open_end.verify()


def test_a_relaxation_must_have_been_opened():
    release = PrivacyGuarantee(math.inf, relaxation="SDLDP(low=(0, 1))", relaxed_epsilon=Fraction(1, 2))
    with pytest.raises(BudgetExceededError):
        Ledger(5).charge(release)
    with pytest.raises(BudgetExceededError):
        Ledger(5, relaxation="another").charge(release)
    ledger = Ledger(5, relaxation="SDLDP(low=(0, 1))")
    ledger.charge(release)
    ledger.charge(TENTH)
    assert ledger.spent().epsilon == Fraction(6, 10)
    assert "relaxation" in str(ledger.spent())


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((0,), "epsilon"), ((-1,), "epsilon"), (("1",), "epsilon"), ((float("nan"),), "epsilon"), ((True,), "epsilon"),
     ((1, {"delta": 1}), "delta"), ((1, {"delta": -1e-9}), "delta"), ((1, {"neighbours": "planets"}), "neighbours"),
     ((1, {"relaxation": ""}), "relaxation"), ((1, {"durability": "none"}), "durability")],
)
def test_bad_terms_make_no_file(arguments, name, tmp_path):
    epsilon, more = (*arguments, {})[:2]
    with pytest.raises(ValueError, match=name):
        Ledger(epsilon, path=tmp_path / "no.sqlite", **more)
    assert not list(tmp_path.iterdir())


def test_what_is_charged_must_be_a_guarantee():
    ledger = Ledger(1)
    with pytest.raises(ValueError, match="PrivacyGuarantee"):
        ledger.charge(0.1)
    with pytest.raises(BudgetExceededError):
        ledger.charge(PrivacyGuarantee(10**400))
    with pytest.raises(ValueError, match="10,000 bits"):
        ledger.charge(PrivacyGuarantee(Fraction(1, 3**10_000)))
    with pytest.raises(ValueError, match=r"Ledger\.open"):
        Ledger("survey.sqlite")
    with pytest.raises(ValueError, match="ledger must be"):
        grr(ledger=Ledger).fit(X)
    assert ledger  # also without entries
    assert len(ledger) == 0


# -------------------------------------------------------------------- accounts


def test_entries_frame_and_reports():
    ledger = Ledger(1.0, delta=1e-6)
    with ledger:
        est = grr(random_state=0).fit(X)
        est.score(X)
    frame = ledger.to_frame()
    assert frame["kind"].tolist() == ["release", "non-private score"]
    assert frame["estimator"].tolist() == ["GRRFrequencyEstimator"] * 2
    assert frame["epsilon"].tolist() == [Fraction(1, 10), 0]
    assert frame["n_rows"].tolist() == [4, 4]
    assert frame["columns"].tolist() == [["column 0"], []]
    assert frame["seeded"].tolist() == ["yes", "no"]
    assert str(frame["time"].dt.tz) == "UTC"
    text = ledger.report()
    for part in ("epsilon = 1, delta = 1e-06", "epsilon = 0.1", "epsilon = 0.9", "GRRFrequencyEstimator",
                 "1 scores compared with raw data", "1 releases with a seed", ledger.verify(), ledger.uuid):
        assert part in text
    html = ledger.report("html")
    assert ledger.verify() in html
    assert not re.search(r"https?:|<script|<link|src=", html)
    assert ledger._repr_html_() == html
    with pytest.raises(ValueError, match="format"):
        ledger.report("pdf")
    assert str(Ledger(1).spent()) == "Nothing has been charged yet."
    assert "remaining part of a budget" in str(ledger.remaining())
    assert "seed" in str(ledger.spent())
    assert ledger.spent().model == "local"
    assert "e^1000 times" in str(Ledger(1000).remaining())
    assert "1.00000e+400" in Ledger(10**400).report()


def test_a_report_shows_names_as_text():
    ledger = Ledger(1)
    ledger.for_users("<b>x</b>").charge(TENTH, estimator="<script>")
    assert "<b>x" not in ledger.report("html")
    assert "<script" not in ledger.report("html")


def test_joining_needs_the_same_terms(path):
    first = Ledger(1.0, path=path)
    first.charge(TENTH)
    again = Ledger(1, path=str(path))
    assert again == first == Ledger.open(path)
    assert again != first.for_users("some")
    assert again.spent().epsilon == Fraction(1, 10)
    for other, name in (({"epsilon": 2}, "epsilon"), ({"epsilon": 1, "delta": 1e-9}, "delta"),
                        ({"epsilon": 1, "neighbours": "local"}, "neighbours"),
                        ({"epsilon": 1, "relaxation": "r"}, "relaxation")):
        with pytest.raises(LedgerError, match=f"another {name}"):
            Ledger(**other, path=path)
    assert len(first) == 1
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    assert {p.name for p in path.parent.iterdir()} <= {path.name, path.name + "-journal"}  # no draft is left


def test_a_temporary_ledger_outlives_its_handles():
    ledger = Ledger(1.0)
    where = ledger.path
    ledger.charge(TENTH)
    del ledger
    assert Ledger.open(where).spent().epsilon == Fraction(1, 10)


# -------------------------------------------------------------------- clones, pickles, blocks, workers


def test_copies_of_a_handle_are_the_same_account():
    ledger = Ledger(1.0)
    copies = [clone(ledger, safe=False), copy.copy(ledger), copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger)),
              clone(grr(ledger=ledger)).ledger, pickle.loads(pickle.dumps(ledger.for_users("a")))]
    for other in copies:
        other.charge(TENTH)
    assert ledger.spent().epsilon == Fraction(6, 10)
    assert len({hash(c) for c in copies}) == 2
    assert ledger.path in repr(ledger)


def test_handles_that_were_pickled_before_their_code_moved_are_found():
    ledger = Ledger(1.0, durability="fast")
    made = pickle.dumps(ledger, 0)
    assert b"dpestim.privacy.handles\nrebuilt" in made
    older = made.replace(b"dpestim.privacy.handles\nrebuilt", b"dpestim.privacy.ledger\n_handle")
    assert pickle.loads(older) == ledger


def test_every_verb_that_releases_is_charged_before_words_are_drawn():
    ledger = Ledger(0.5)
    est = grr(ledger=ledger)
    est.fit(X).partial_fit(X).transform(X)
    est.privatize(X)
    est.fit_transform(X)
    assert ledger.remaining().epsilon == 0
    n, counts = est.n_users_, est.frequencies_
    for verb in ("fit", "partial_fit", "transform", "privatize", "fit_transform"):
        with pytest.raises(BudgetExceededError):
            getattr(est, verb)(X)
    assert (est.n_users_, len(ledger)) == (n, 5)
    np.testing.assert_array_equal(est.frequencies_, counts)
    with pytest.raises(ValueError, match="column 0"):
        est.fit(X + 5)
    assert len(ledger) == 5


def test_the_block_is_the_default_and_the_parameter_wins():
    ledger, other = Ledger(1.0), Ledger(1.0)
    with ledger:
        grr().fit(X)
        grr(ledger=other).fit(X)
        with other.for_users("inner"):
            grr().fit(X)
        twin, packed = clone(grr()), pickle.dumps(grr())
    grr().fit(X)  # outside: nobody pays
    assert (len(ledger), len(other)) == (1, 2)
    assert other.entries()[1]["users"] == "inner"
    for est in (twin, clone(twin), pickle.loads(packed), copy.deepcopy(twin)):
        est.fit(X)  # made inside: the block pays, wherever they go
    assert (len(ledger), len(other)) == (5, 2)


def test_what_a_block_has_paid_for_once_it_pays_for_ever():
    ledger, est = Ledger(10.0), grr()
    twin, packed = clone(est), pickle.dumps(est)
    est.fit(X)  # nobody was asked to pay yet
    with ledger:
        est.fit(X)
    est.fit(X)
    clone(est).fit(X)
    pickle.loads(pickle.dumps(est)).partial_fit(X)
    copy.deepcopy(est).privatize(X)
    thread = threading.Thread(target=est.transform, args=(X,))
    thread.start()
    thread.join()
    assert len(ledger) == 6
    for other in (twin, pickle.loads(packed)):  # these are none that it paid for
        other.fit(X)
    assert len(ledger) == 6


@pytest.mark.parametrize("first", ["privatize", "fit", "fit_transform", "partial_fit"])
def test_any_verb_that_a_block_paid_for_binds(first):
    ledger, est = Ledger(10.0), grr()
    with ledger:
        getattr(est, first)(X)
    est.fit(X)
    assert len(ledger) == 2


def test_a_score_in_a_block_binds_as_well():
    ledger, est = Ledger(10.0), grr().fit(X)
    with ledger:
        est.score(X)
    est.fit(X).score(X)
    assert [e["kind"] for e in ledger.entries()] == ["non-private score", "release", "non-private score"]


def test_what_a_block_refused_to_pay_for_is_not_bound():
    ledger, est = Ledger(0.05), grr()
    with ledger, pytest.raises(BudgetExceededError):
        est.fit(X)
    with ledger, pytest.raises(ValueError, match="column 0"):
        est.fit(X + 5)
    est.fit(X)
    assert "_bound" not in vars(est)
    assert len(ledger) == 0


def test_the_parameter_and_another_block_win_over_what_is_bound():
    first, second, third = Ledger(10.0), Ledger(10.0), Ledger(10.0)
    est = grr()
    with first:
        est.fit(X)
        with second:
            est.fit(X)
        est.fit(X)
    assert (len(first), len(second)) == (2, 1)
    with second:
        est.fit(X)
    est.fit(X)  # the last that paid for it
    assert (len(first), len(second)) == (2, 3)
    est.set_params(ledger=third).fit(X)
    with first:
        est.fit(X)  # paid by the parameter: the block has not paid
    est.set_params(ledger=None).fit(X)  # nobody pays: neither the parameter, nor what it was bound to
    assert (len(first), len(second), len(third)) == (2, 3, 2)
    fresh = grr(ledger=third)
    with first:
        fresh.fit(X)
    fresh.set_params(ledger=None).fit(X)
    assert (len(first), len(third)) == (2, 3)


@pytest.mark.parametrize("first", ["fit", "privatize", "partial_fit"])
@pytest.mark.parametrize("transformer", [PMTransformer(0.1, bounds=(0, 1)), None], ids=["numbers", "categories"])
def test_a_collector_whose_transformer_was_paid_for_is_bound(transformer, first):
    transformer = grr() if transformer is None else clone(transformer)
    ledger, est = Ledger(10.0), DistributionEstimator(transformer, n_bins=2)
    with ledger:
        getattr(est, first)(X)
    est.fit(X)
    est.partial_fit(X)
    est.privatize(X)
    clone(est).fit(X)
    assert len(ledger) == 5
    other = Ledger(10.0)
    est.set_params(transformer__ledger=other).fit(X)
    assert (len(ledger), len(other)) == (5, 1)
    with ledger:
        unpaid = DistributionEstimator(clone(transformer).set_params(ledger=other))
        unpaid.set_params(n_bins=2).fit(X)
    assert (len(ledger), len(other)) == (5, 2)


def test_a_score_of_a_collector_in_a_block_binds_it():
    ledger, est = Ledger(10.0), MeanEstimator(PMTransformer(0.1, bounds=(0, 1))).fit(X)
    with ledger:
        est.score(X)
    est.fit(X)
    assert [e["kind"] for e in ledger.entries()] == ["non-private score", "release"]


def test_a_model_that_was_paid_for_is_bound():
    rng = np.random.default_rng(0)
    data, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    ledger, model = Ledger(10.0), DPLogisticRegression(1.0, classes=[0, 1], data_norm=1.0)
    with ledger:
        model.fit(data, y)
    model.fit(data, y)
    assert len(ledger) == 2


def test_blocks_left_out_of_order_close_themselves_only():
    a, b = Ledger(1.0), Ledger(1.0)

    def holds(ledger):
        with ledger:
            yield

    generator = holds(a)
    next(generator)
    with b:
        generator.close()  # leaves a's block inside b's
        grr().fit(X)
    assert (len(a), len(b)) == (0, 1)
    a.__enter__()
    thread = threading.Thread(target=a.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    grr().fit(X)  # no block is open anywhere any more
    assert (len(a), len(b)) == (0, 1)


def test_what_was_made_inside_is_paid_by_the_block_wherever_it_runs_later():
    ledger, outside = Ledger(1.0), grr()
    with ledger:
        inside = grr()
    threads = [threading.Thread(target=est.fit, args=(X,)) for est in (inside, outside)]
    for thread in threads:
        thread.start()
        thread.join()
    assert len(ledger) == 1
    other = Ledger(1.0)
    inside.set_params(ledger=other).fit(X)
    assert (len(ledger), len(other)) == (1, 1)


def test_a_block_that_a_thread_cannot_see_lets_nothing_slip_through():
    ledger, caught = Ledger(1.0), []

    def release(est):
        try:
            est.fit(X)
        except LedgerError as error:
            caught.append(str(error))

    outside = grr()
    with ledger:
        for est in (outside, grr(), clone(outside), grr(ledger=ledger)):
            thread = threading.Thread(target=release, args=(est,))
            thread.start()
            thread.join()
    assert len(caught) == 1
    assert "would not be charged" in caught[0]
    assert len(ledger) == 3
    release(grr())
    assert len(caught) == 1


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_a_search_is_charged_by_every_worker(backend):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    data = np.where(rng.random(400) < 0.9, y, 1 - y)[:, None]
    model = make_pipeline(OUEFrequencyEstimator(categories=[[0, 1]]), BernoulliNB())
    grid = {"ouefrequencyestimator__epsilon": [0.5, 1.0, 2.0]}
    ledger = Ledger(100)
    with ledger, joblib.parallel_backend(backend, n_jobs=2):
        search = GridSearchCV(model, grid, cv=3, n_jobs=2, error_score="raise").fit(data, y)
    # a candidate on a split: fit_transform of the training rows, transform of the others for the score; then the refit
    charged = [e["charged_epsilon"] for e in ledger.entries() if e["kind"] == "release"]
    assert len(charged) == 3 * 3 * 2 + 1
    best = Fraction(search.best_params_["ouefrequencyestimator__epsilon"])
    assert ledger.spent().epsilon == 2 * 3 * Fraction("3.5") + best == sum(charged)
    assert ledger.verify()


def test_an_overdraft_inside_a_search_is_raised():
    with Ledger(1.0) as ledger, pytest.raises(BudgetExceededError):
        GridSearchCV(grr(), {"epsilon": [0.3, 0.4]}, cv=2, error_score="raise").fit(X)
    assert ledger.spent().epsilon <= 1


FORKS = """
import os, sys
import numpy as np
from fractions import Fraction
from dpestim.accounting import BudgetExceededError, Ledger
from dpestim.local import GRRFrequencyEstimator
from dpestim.privacy import PrivacyGuarantee
ledger = Ledger(1.0, path=sys.argv[1], durability=sys.argv[2])
X = np.zeros((4, 1), int)
"""

RACE = FORKS + """
unit, start = PrivacyGuarantee(Fraction(1, 100)), os.pipe()
ledger.charge(unit)  # a connection of the parent, which no child may use
children = []
for _ in range(8):
    pid = os.fork()
    if not pid:
        os.close(start[1])
        os.read(start[0], 1)  # all start when the parent closes its end
        done = 0
        try:
            while True:
                ledger.charge(unit)
                done += 1
        except BudgetExceededError:
            os._exit(done)
    children.append(pid)
os.close(start[0])
os.close(start[1])
done = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
print(sum(done) + 1, len(ledger), ledger.spent().epsilon, ledger.verify() != "")
"""

KILL = FORKS + """
import random, signal, time
acknowledged, random = 0, random.Random(0)
# (loaded here, what releases need is not loaded by each child)
GRRFrequencyEstimator(1.0, categories=[[0, 1]], ledger=Ledger(1.0)).privatize(X)
for k in range(int(sys.argv[3])):
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        est = GRRFrequencyEstimator(Fraction(1, 10**6), categories=[[0, 1]], ledger=ledger)
        while True:
            est.privatize(X)
            os.write(write, b".")
    os.close(write)
    acknowledged += len(os.read(read, 1))  # it is at work
    time.sleep(random.random() * 0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while part := os.read(read, 1 << 16):
        acknowledged += len(part)
    os.close(read)
    n = len(ledger)
    assert acknowledged <= n <= acknowledged + k + 1, (acknowledged, n, k)
    # (that of all entries so far; to add them up anew after every kill takes longer than all else)
    assert k % 10 or ledger.spent().epsilon == Fraction(n, 10**6)
assert ledger.spent().epsilon == Fraction(n, 10**6)
print(acknowledged, n, ledger.verify() != "")
"""


def run(code, *arguments):
    done = _host.run(code, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.law
@pytest.mark.parametrize("durability", ["full", "fast"])
def test_eight_processes_racing_never_overdraw(durability, path):
    assert run(RACE, path, durability) == ["100", "100", "1", "True"]


@pytest.mark.law
@pytest.mark.parametrize(("durability", "times"), [
    ("full", 100), pytest.param("fast", 50, marks=pytest.mark.ci)])  # (one code, but for the fsync)
def test_kill_9_in_the_middle_of_releases_loses_nothing(durability, times, path):
    acknowledged, entries, whole = run(KILL, path, durability, times)
    assert whole == "True"
    assert times <= int(acknowledged) <= int(entries) <= int(acknowledged) + times


def test_a_pickle_reaches_the_same_file_from_another_process(path):
    packed = pickle.dumps(grr(ledger=Ledger(1.0, path=path))).hex()
    run(f"import pickle; pickle.loads(bytes.fromhex('{packed}')).fit([[0], [1]])")
    assert Ledger.open(path).spent().epsilon == Fraction(1, 10)


@pytest.mark.law
def test_a_fork_in_the_middle_of_another_threads_charge_is_safe(path):
    code = FORKS + """
import threading
def spend():
    for _ in range(300):
        ledger.charge(PrivacyGuarantee(Fraction(1, 10**6)))
thread = threading.Thread(target=spend)
thread.start()
codes = []
for _ in range(20):
    pid = os.fork()
    if not pid:
        ledger.charge(PrivacyGuarantee(Fraction(1, 10**6)))
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
thread.join()
print(sum(codes), len(ledger), ledger.verify() != "")
"""
    assert run(code, path, "fast") == ["0", "320", "True"]


def test_what_would_be_refused_is_foreseen_and_nothing_is_entered():
    ledger = Ledger(1.0, durability="fast")
    half, label = PrivacyGuarantee(Fraction(1, 2)), ledger.for_users("A")
    ledger.charge(PrivacyGuarantee(Fraction(1, 10)))
    ledger.check([half])
    label.check([half])
    for handle in (ledger, label):
        with pytest.raises(BudgetExceededError):
            handle.check([half, half])
    with pytest.raises(BudgetExceededError):  # in its own relation: this one counts double
        ledger.check([PrivacyGuarantee(half.epsilon, 0, "central", Neighbours.ADD_REMOVE)])
    assert len(ledger) == 1
    label.charge(half)
    with pytest.raises(BudgetExceededError):
        label.check([half])
    ledger.for_users("B").check([half])


@pytest.mark.parametrize("same", ["North", "north ", " NORTH", "no\uff52th", "N\u004frth"])
def test_labels_that_differ_by_case_or_white_space_are_one(same):
    ledger = Ledger(1)
    ledger.for_users("north").charge(PrivacyGuarantee(Fraction(3, 5)))
    with pytest.raises(BudgetExceededError):
        ledger.for_users(same).charge(PrivacyGuarantee(Fraction(3, 5)))
    ledger.for_users("south").charge(PrivacyGuarantee(Fraction(3, 5)))
    assert ledger.spent().epsilon == Fraction(3, 5)
