"""Rows in parts: every estimator of the registry whose parts add up is what it is on one machine, bit for bit."""

import pickle
import re
import time
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse

from dpestim import Categories, Domain, Numbers, config_context, distributed
from dpestim.accounting import Ledger
from dpestim.base import PrivateEstimator, all_estimators
from dpestim.central.stability.rows import RowMechanism
from dpestim.cluster import DPKMeans
from dpestim.cluster.parts import PartRows, Tally
from dpestim.cluster.rounds import Plan
from dpestim.decomposition import DPPCA
from dpestim.distributed.parts import Batches, added, frame_of, frame_of_records, made_up
from dpestim.ensemble import (
    DPGradientBoostingClassifier,
    DPGradientBoostingRegressor,
    DPRandomForestClassifier,
    DPRandomForestRegressor,
)
from dpestim.ensemble import parts as parts_of_boosting
from dpestim.exceptions import BudgetExceededError
from dpestim.linear_model import DPLogisticRegression
from dpestim.local import (
    GRRFrequencyEstimator,
    LDPSGDClassifier,
    LDPSGDRegressor,
    MixedEstimator,
    PrivatizedColumns,
    PrivKVMEstimator,
)
from dpestim.naive_bayes import DPGaussianNB
from dpestim.passes import Blueprint, CountRows, Place
from dpestim.statistics import ContingencyTable, Mean
from dpestim.synthesis import MarginalSynthesizer, MultiplicativeWeights
from dpestim.testing.tools import differs_each_time, same_state
from dpestim.tree import DPDecisionTreeClassifier, DPDecisionTreeRegressor

#: Settings that need all rows at once, by what they say.
WHOLE = "all rows at once|edges_fraction must be 0"
N_ROWS = 40
#: Where rows are cut: one part, two, five of which two are empty.
CUTS = ([], [13], [13, 13, 27, 40])


def settings(cls):
    """Yield estimators of the settings of a class, with a seed where one can be given."""
    for params in cls._test_params():
        est = cls(**params)
        names = [name for name in est.get_params() if name.rpartition("__")[2] == "random_state"]
        if names:
            est.set_params(**{min(names, key=len): 3})  # (parts of an estimator that has a seed have none)
        yield est


def rows_of(est):
    """Return a tuple of what `fit` takes."""
    X, y = est._test_data(N_ROWS)
    X = X.tocsr() if issparse(X) else np.asarray(X)
    return (X,) if y is None else (X, np.asarray(y))


def cut(rows, places):
    """Return rows in parts."""
    ends = [0, *places, N_ROWS]
    return [tuple(part[a:b] for part in rows) for a, b in pairwise(ends)]


def fresh(est):
    return type(est)(**est.get_params(deep=False))


def learned(est):
    """Return what was learned: counts of reports, or what has a name that ends with an underscore."""
    if est.merges == "reports":
        return [counts.tolist() for counts in est._counts], est._n_users, est.privacy_
    return {name: value for name, value in vars(est).items() if name.endswith("_") and not name.startswith("_")}


class Sent(Batches):
    """Batches whose requests travel, as to the worker of an engine; it keeps its answers, as an engine may."""

    def __init__(self, batches):
        super().__init__(batches)
        self.kept = []

    def answer(self, request):
        found = super().answer(pickle.loads(pickle.dumps(request)))
        self.kept.append((found, pickle.dumps(found)))
        return found

    def check(self):
        """Exact answers stay as they are: noise that was added in place would be added again to one that is reused."""
        for found, before in self.kept:
            assert same_state(found, pickle.loads(before))


REGISTRY = [pytest.param(est, id=f"{name}-{k}") for name, cls in all_estimators()
            if hasattr(cls, "fit_parts") for k, est in enumerate(settings(cls))]
#: Which need all rows at once, whatever their settings. The shuffle model: users hide among all others, whose number
#: must be known. Groups of users: the words of a row depend on how many rows of its group came before.
NEVER = {"BooleanSum", "RealSum", "ShuffledHistogram", "PersonalizedEstimator", "LDPartEstimator"}


def test_whatever_merges_fits_parts():
    without = {cls.__name__ for _, cls in all_estimators() if cls.merges != "nothing" and not hasattr(cls, "fit_parts")
               and not cls.__module__.startswith("dpestim.graph")}  # (whose rows do not know who they are)
    assert without == {"ShuffledEstimator", "DPLCFRecommender"}  # (which says why)


@pytest.mark.parametrize("cls", [pytest.param(cls, id=name) for name, cls in all_estimators()
                                 if not hasattr(cls, "fit_parts")])
def test_what_is_not_fitted_in_parts_says_why_and_what_to_do_instead(cls):
    why = cls._not_in_parts
    assert why != PrivateEstimator._not_in_parts
    assert re.search(r"[^:]{20,}: (call|fit|let|randomise|take) ", why)
    named = set(re.findall(r"\b[A-Z]\w+(?=\b)", why))
    assert named <= {name.rpartition(".")[2] for name, own in all_estimators() if hasattr(own, "fit_parts")}
    for verb in re.findall(r"call (\w+)", why):
        assert hasattr(cls, verb)
    with pytest.raises(ValueError, match=re.escape(f"{cls.__name__} {why}")):
        distributed.fit(cls(**cls._test_params()[0]), [np.zeros((3, 1))])


@pytest.mark.parametrize("est", REGISTRY)
def test_parts_are_what_one_machine_has(est):
    rows = rows_of(est)
    try:
        parts = [kind(cut(rows, places)) for places, kind in zip(CUTS, (list, Sent, list))]
        found = [distributed.fit(fresh(est), data) for data in parts]
    except ValueError:
        with pytest.raises(ValueError, match=WHOLE):
            distributed.fit(fresh(est), cut(rows, []))
        return
    assert type(est).__name__ not in NEVER
    parts[1].check()
    expected = learned(fresh(est).fit(*rows))
    for one in found:
        assert same_state(learned(one), expected)


@pytest.mark.parametrize("est", [param for param in REGISTRY if param.values[0].merges != "reports"
                                 and getattr(param.values[0], "_trust", "") != "local"
                                 and not isinstance(param.values[0], RowMechanism)])
def test_no_answer_follows_from_places_of_rows(est):
    """Parts of an engine may follow from values: a row that is replaced then moves, and shifts all others."""
    rows, order = rows_of(est), np.random.default_rng(1).permutation(N_ROWS)
    try:
        found = distributed.fit(fresh(est), cut(rows, [13]))
    except ValueError:
        return
    moved = distributed.fit(fresh(est), cut(tuple(part[order] for part in rows), [5, 20]))
    assert same_state(learned(moved), learned(found))


def test_cells_of_a_row_that_moves_to_another_part_change_by_two():
    X = np.where(np.arange(1 << 18) >> 7 & 1, 0.9, -0.9)[:, None]
    other = np.r_[X[1:], [[0.9]]]  # (the first row is replaced by the last: of a sample by places all blocks change)

    class Noiseless:
        @staticmethod
        def add(law, whole):
            return np.array(whole)

    def cells(data):
        model = DPKMeans(1.0, n_clusters=2, bounds=(-1, 1))
        blueprint = replace(Blueprint.of(model), state={"n_features_in_": 1})
        tally = Tally(blueprint, np.array([-1.0]), np.array([1.0]), np.array([True]), ())
        parts = [(Place(0, at), data[at : at + (1 << 16)]) for at in range(0, len(data), 1 << 16)]
        rows = PartRows(lambda asked: [sum(own) for own in zip(*(asked((part,), place) for place, part in parts))],
                        tally, len(data), Noiseless)
        return rows.cells(Plan.of(Fraction(1), Fraction(0), len(data), [2.0], 1, 2), np.array([[-0.9], [0.9]]))

    assert np.abs(cells(X) - cells(other)).sum() <= 2


def users_of_parts(x, users):
    frame = pytest.importorskip("pandas").DataFrame({"x": x, "user": users})
    return [frame[:1], frame[1:2], frame[2:]]


@pytest.mark.parametrize(("call", "message"), [
    (lambda **more: distributed.fit(mean(**more), [(np.ones(1), ["a"])] * 5), "users must name the column"),
    (lambda **more: distributed.fit(mean(**more), users_of_parts(np.ones(5), ["a"] * 5), y="user"),
     "users must name the column"),
    (lambda **_: distributed.fit(mean(), users_of_parts(np.ones(5), ["a"] * 5), users="user"), "users must be None"),
    (lambda **_: distributed.fit(DPKMeans(1.0, bounds=(-1, 1)), users_of_parts(np.ones(5), ["a"] * 5), users="user"),
     "users must be None"),
    (lambda **_: distributed.fit(drinks(), users_of_parts(np.ones(5), ["a"] * 5), users="user"), "users must be None"),
])
def test_users_come_by_what_brings_their_rows_together_and_by_nothing_else(call, message):
    with Ledger(9.0) as ledger:
        with pytest.raises(ValueError, match=message):
            call(max_rows_per_user=1, neighbours="add_remove")
        assert ledger.spent().epsilon == 0


@pytest.mark.parametrize("make", [
    lambda: mean(neighbours="add_remove"),
    lambda: DPKMeans(1.0, n_clusters=2, bounds=(-1, 1), neighbours="add_remove"),
    lambda: DPGradientBoostingClassifier(1.0, classes=[0, 1], bounds=(-1, 1), neighbours="add_remove"),
    lambda: DPGaussianNB(1.0, classes=[0, 1], bounds=(-1, 1), neighbours="add_remove"),
    lambda: DPDecisionTreeClassifier(1.0, classes=[0, 1], bounds=(-1, 1), max_depth=2, neighbours="add_remove"),
    lambda: MarginalSynthesizer(1.0, delta=1e-6, bounds=(-1, 1), neighbours="add_remove"),
    lambda: MultiplicativeWeights(1.0, bounds=(-1, 1), neighbours="add_remove"),
])
def test_in_strict_mode_no_rows_in_any_part_look_like_a_few(make):
    rows = np.zeros((0, 1)), np.zeros(0, int)
    with Ledger(9.0, delta=0.1) as ledger, config_context(strict=True):
        est = make()
        takes_y = hasattr(est, "classes")
        distributed.fit(est, [rows if takes_y else rows[:1]] * 2)
        assert len(ledger.entries()) == 1
    assert est.__sklearn_is_fitted__()


def test_a_null_of_one_row_changes_no_value_of_another():
    pyarrow = pytest.importorskip("pyarrow")
    large = 2**53
    ids = [large + 1] * 4
    for parts in ([pyarrow.table({"id": ids})], [pyarrow.table({"id": [*ids, None]})]):
        with config_context(strict=True):
            table = distributed.fit(ContingencyTable(80.0, categories=[[large, large + 1]]), parts)
        assert table.value_[1] == 4
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint64"):
        kind = getattr(pyarrow, name)()
        one, other = (frame_of(pyarrow.table({"a": pyarrow.array(own, kind)})) for own in ([1, 0], [1, None]))
        assert one["a"].dtype == other["a"].dtype, name
    records = frame_of_records([{"id": large + 1}, {"id": None}])
    assert records["id"][0] == large + 1


def mean(**params):
    return Mean(1.0, bounds=(0.0, 1.0), **params)


def drinks(**params):
    return GRRFrequencyEstimator(1.0, categories=[["tea", "coffee"]], **params)


CUPS = [np.array([["tea"]] * 30), np.array([["coffee"]] * 50), np.array([["tea"]] * 7)]
NUMBERS = np.random.default_rng(0).uniform(size=(4, 25))
PAIRS = [(NUMBERS, np.arange(4) % 2)] * 2


class Attempts:
    """Parts of an engine that reads each part twice, in another order, and keeps the last attempt."""

    example = (CUPS[0][:1],)

    def answer(self, request):
        request = pickle.loads(pickle.dumps(request))  # as an engine sends it
        self.first, self.last = [], []
        for number, part in reversed(list(enumerate(CUPS))):
            for kept in (self.first, self.last):
                kept.append(request((part,), Place(number)))
        total = None
        for answer in self.last:
            total = added(request, total, answer)
        return total


def test_a_part_that_is_read_twice_gives_the_same_reports_and_is_counted_once():
    parts = Attempts()
    est = distributed.fit(drinks(), parts)
    assert est.n_users_ == 87
    for first, last in zip(parts.first, parts.last):
        assert (first._counts[0] == last._counts[0]).all()

    def counts():
        again = Attempts()
        distributed.fit(drinks(), again)  # another release, with other words
        return [a._counts[0].tolist() for a in again.last]

    assert differs_each_time(counts)


class TwiceInRounds:
    """Parts of rows and targets of an engine that asks each part twice, and keeps who answered."""

    def __init__(self, n_rows):
        X = np.random.default_rng(0).uniform(-1, 1, size=(n_rows, 2))
        self.parts = [(own, (own[:, 0] > 0).astype(int)) for own in np.array_split(X, 3)]
        self.example, self.answered = tuple(own[:1] for own in self.parts[0]), 0

    def answer(self, request):
        total = None
        for number, part in enumerate(self.parts):
            first, last = (pickle.loads(pickle.dumps(request))(part, Place(number)) for _ in range(2))
            if hasattr(first, "_counts"):
                assert [own.tolist() for own in first._counts] == [own.tolist() for own in last._counts]
                self.answered += first.n_users_
            total = added(request, total, last)
        return total


@pytest.mark.parametrize("mechanism", ["privunit", "duchi", "pm"])
def test_each_user_of_gradients_answers_in_one_round_and_alike_when_asked_again(mechanism):
    parts = TwiceInRounds(900)
    with Ledger(1.0) as ledger:
        model = LDPSGDClassifier(1.0, bounds=(-1, 1), classes=[0, 1], n_rounds=5, mechanism=mechanism)
        distributed.fit(model, parts)
        assert len(ledger.entries()) == 1
    assert parts.answered == 900
    assert np.isfinite(model.coef_).all()
    assert model.n_rounds_ == 5


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("est", [param for param in REGISTRY if param.id.endswith("-0")])
def test_parts_of_named_columns_and_series_are_what_one_machine_has(est, library):
    pandas, made = pytest.importorskip("pandas"), pytest.importorskip(library)
    X, *y = rows_of(est)
    if issparse(X):
        return
    X = X.reshape(N_ROWS, -1)
    X = made.DataFrame(pandas.DataFrame(X).rename(columns="c{}".format).to_dict("series"))
    y = [made.Series(own.tolist()) for own in y]
    parts = [(X[rows], *(own[rows] for own in y)) for rows in (slice(13), slice(13, 13), slice(13, N_ROWS))]
    try:
        found = distributed.fit(fresh(est), parts)
    except ValueError as refused:
        if not re.search(WHOLE, str(refused)):  # (then one machine refuses, too)
            with pytest.raises(ValueError, match=re.escape(str(refused)[:20])):
                fresh(est).fit(X, *y)
        return
    assert same_state(learned(found), learned(fresh(est).fit(X, *y)))


def test_targets_that_an_estimator_does_not_need_are_ignored():
    pairs = [(part, np.zeros(len(part))) for part in CUPS]
    assert distributed.fit(drinks(), pairs).n_users_ == 87
    assert len(list(distributed.privatize(drinks(), pairs))) == 3
    power = DPPCA(epsilon=1.0, delta=1e-3, bounds=(-2, 2), n_components=1, method="power")
    assert distributed.fit(power, [(np.eye(4), np.zeros(4))]).n_features_in_ == 4


@pytest.mark.parametrize("names", [["b", "a"], ["a", "c"], [0, 1]])
def test_reports_of_parts_with_other_columns_are_refused(names):
    pandas = pytest.importorskip("pandas")
    parts = [pandas.DataFrame([["tea", "coffee"]] * 5, columns=own) for own in (["a", "b"], names)]
    two = GRRFrequencyEstimator(1.0, categories=[["tea", "coffee"]] * 2)
    for call in (distributed.fit, lambda *own: list(distributed.privatize(*own))):
        with pytest.raises(ValueError, match=r"same columns|same names"):
            call(two, parts)


@pytest.mark.parametrize("est", [mean(), DPGaussianNB(1.0, bounds=(0, 1), classes=[0, 1]),
                                 DPKMeans(1.0, n_clusters=2, bounds=(0, 1)),
                                 DPGradientBoostingClassifier(1.0, bounds=(0, 1), classes=[0, 1], max_iter=1),
                                 DPDecisionTreeRegressor(1.0, bounds=(0, 1), target_bounds=(0, 1), max_depth=2),
                                 MultiplicativeWeights(1.0, bounds=(0, 1), bins=4)])
def test_whether_there_is_a_row_is_secret_where_the_number_of_rows_is(est):
    X, y = np.zeros((0, 2)), np.zeros(0, int)
    with config_context(strict=True, neighbours="add_remove"), Ledger(9.0, delta=0.1) as ledger:
        distributed.fit(fresh(est), [X] if isinstance(est, Mean) else [(X, y)])
        assert len(ledger.entries()) == 1


def test_parts_do_not_share_words():
    same = [CUPS[0]] * 20
    counts = [tuple(reports[:, 0]) for reports in distributed.privatize(drinks(), same)]
    assert len(set(counts)) == 20


@pytest.mark.parametrize(("make", "parts"), [(mean, list(NUMBERS)), (drinks, CUPS)])
def test_a_fit_is_charged_once_and_before_anything_is_released(make, parts):
    with Ledger(1.0) as ledger:
        distributed.fit(make(), parts)
        assert ledger.spent().epsilon == 1
        assert len(ledger.entries()) == 1
        est = make()
        with pytest.raises(BudgetExceededError):
            distributed.fit(est, parts)
        assert not hasattr(est, "value_")
        assert not getattr(est, "_n_users", 0)
    ledger = Ledger(1.0)
    distributed.fit(make(ledger=ledger), parts)
    assert len(ledger.entries()) == 1


def test_workers_know_no_ledger_and_the_strict_mode_and_relation_of_the_driver():
    with Ledger(1.0), config_context(strict=True, neighbours="add_remove"):
        blueprint = Blueprint.of(mean(ledger=Ledger(3.0)))
    made = pickle.loads(pickle.dumps(blueprint)).build()
    assert made._find_ledger() is None
    assert made._is_strict()
    assert made._relation().value == "add_remove"
    mixed = MixedEstimator([("drink", drinks(), [0])], epsilon=1.0)
    assert isinstance(Blueprint.of(mixed).params["transformers"][0][1], Blueprint)


def test_reports_are_charged_when_they_are_asked_for_and_counted_later():
    with Ledger(1.0) as ledger:
        reports = distributed.privatize(drinks(random_state=1), CUPS)
        assert ledger.spent().epsilon == 1
        est = distributed.aggregate(drinks(), reports)
        assert ledger.spent().epsilon == 1
    assert est._counts[0].tolist() == drinks(random_state=1).fit(np.concatenate(CUPS))._counts[0].tolist()


def test_files_and_batches_of_libraries(tmp_path):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    polars, parquet = pytest.importorskip("polars"), pytest.importorskip("pyarrow.parquet")
    frame = pandas.DataFrame({"a": NUMBERS.ravel(), "kind": np.where(NUMBERS.ravel() < 0.5, "x", "y")})
    halves = [frame.iloc[:30], frame.iloc[30:]]
    for number, half in enumerate(halves):
        parquet.write_table(pyarrow.table(half), tmp_path / f"{number}.parquet")

    def model():
        return DPGaussianNB(1.0, bounds={"a": (0, 1)}, classes=["x", "y"], random_state=0)

    expected = model().fit(frame[["a"]], frame["kind"])
    dataset = pytest.importorskip("pyarrow.dataset").dataset(tmp_path, format="parquet")
    names = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    for data in (str(tmp_path / "*.parquet"), names, list(map(str, names)), [str(tmp_path / "[01].parquet")], dataset,
                 halves, iter(halves), [pyarrow.table(half) for half in halves],
                 pyarrow.table(frame).to_batches(max_chunksize=9), [polars.from_pandas(half) for half in halves]):
        found = distributed.fit(model(), data, y="kind")
        assert (found.theta_ == expected.theta_).all()
        assert found.feature_names_in_.tolist() == ["a"]
    with Ledger(1.0) as ledger:
        for wrong in ([names[0], tmp_path / "none.parquet"], tmp_path, [tmp_path / "?.parquet", names[1]]):
            with pytest.raises(ValueError, match=r"no file|named once"):
                distributed.fit(model(), wrong, y="kind")
        assert ledger.spent().epsilon == 0
    with pytest.raises(ValueError, match="one column only"):
        distributed.fit(model(), [pandas.concat([frame, frame["kind"]], axis=1)], y="kind")


@pytest.mark.parametrize(("call", "message"), [
    (lambda: distributed.fit(mean(), NUMBERS), "must be in parts"),
    (lambda: distributed.fit(mean(), []), "at least one batch"),
    (lambda: distributed.fit(mean(), {"a": NUMBERS}), "each part of the data must be"),
    (lambda: distributed.fit(mean(), "nowhere/*.parquet"), "no file"),
    (lambda: distributed.fit(DPLogisticRegression(), CUPS), "needs all rows at once"),
    (lambda: distributed.fit(Mean(1.0, bounds="private"), list(NUMBERS)), "needs all rows at once"),
    (lambda: distributed.fit(GRRFrequencyEstimator(1.0), CUPS), "categories must be declared"),
    (lambda: distributed.fit(mean(), list(NUMBERS), y=3), "y must be the name"),
    (lambda: distributed.fit(DPGaussianNB(1.0, bounds=(0, 1), classes=[0, 1]), PAIRS, y="kind"), "y must be None with"),
    (lambda: distributed.fit(mean(max_rows_per_user=1), list(NUMBERS), users="u"),
     "users needs all rows of a user in one part"),
    (lambda: distributed.fit(mean(max_rows_per_user=1), list(NUMBERS), y="y", users="u"), "y or users"),
    (lambda: distributed.fit(PrivKVMEstimator(1.0, keys=2), iter([csr_array(np.eye(2))] * 3)), "more than once"),
    (lambda: distributed.fit(LDPSGDClassifier(1.0, classes=[0, 1]), PAIRS), "all rows at once to find data_norm"),
    (lambda: distributed.fit(LDPSGDClassifier(1.0, data_norm=1.0, classes=[0, 1]), list(NUMBERS)), "y must be given"),
    (lambda: distributed.privatize(mean(), list(NUMBERS)), "makes no reports"),
    (lambda: distributed.privatize(PrivatizedColumns(**PrivatizedColumns._test_params()[0]), list(NUMBERS)),
     "makes no reports"),
    (lambda: distributed.aggregate(mean(), list(NUMBERS)), "counts no reports"),
    (lambda: distributed.aggregate(drinks(), [np.zeros((0, 1), np.uint8)]), "at least one row"),
])
def test_what_is_refused_charges_nothing(call, message):
    with Ledger(100.0) as ledger:
        with pytest.raises(ValueError, match=message):
            call()
        assert not ledger.entries()


ROUNDS = [DPKMeans(epsilon=1.0, n_clusters=2, bounds=(-2, 2)),
          DPKMeans(epsilon=1.0, n_clusters=2, bounds=(-2, 2), neighbours="add_remove"),
          DPPCA(epsilon=1.0, delta=1e-3, bounds=(-2, 2), n_components=1, method="power"),
          DPGradientBoostingClassifier(1.0, delta=1e-6, bounds=(-2, 2), classes=[0, 1]),
          DPGradientBoostingRegressor(1.0, bounds=(-2, 2), target_bounds=(0, 1), max_iter=2, neighbours="add_remove"),
          DPRandomForestClassifier(1.0, bounds=(-2, 2), classes=[0, 1]),
          DPDecisionTreeClassifier(1.0, bounds=(-2, 2), classes=[0, 1]),
          DPDecisionTreeRegressor(1.0, bounds=(-2, 2), target_bounds=(0, 1), max_depth=2, neighbours="add_remove"),
          MarginalSynthesizer(1.0, delta=1e-6, bounds=(-2, 2), bins=4),
          MultiplicativeWeights(1.0, bounds=(-2, 2), bins=4, neighbours="add_remove"),
          DPLogisticRegression(1.0, delta=1e-6, data_norm=2.0, classes=[0, 1], perturbation="gradient"),
          DPLogisticRegression(1.0, bounds=(-2, 2), classes=[0, 1], perturbation="functional"),
          PrivKVMEstimator(1.0, keys=2, n_rounds=2), LDPSGDClassifier(1.0, bounds=(-2, 2), classes=[0, 1], n_rounds=3),
          LDPSGDRegressor(1.0, data_norm=2.0, target_bounds=(0, 1), mechanism="pm")]


@pytest.mark.parametrize("est", ROUNDS)
def test_parts_that_a_fit_in_rounds_refuses_cost_nothing(est):
    X, wider, infinite = np.random.default_rng(0).uniform(size=(40, 2)), np.ones((40, 3)), np.full((40, 2), np.inf)
    X, wider, infinite = ((csr_array(rows),) if est.merges == "reports" else (rows, np.arange(40) % 2)
                          for rows in (X, wider, infinite))
    for parts in ([X, wider], [X, infinite], iter([X, X])):
        with Ledger(100.0, delta=0.1) as ledger:
            with pytest.raises(ValueError, match=r"features|columns|keys|infinity|finite|more than once"):
                distributed.fit(fresh(est), parts)
            assert not ledger.entries()


@pytest.mark.parametrize("room", [0, 2000])
def test_scores_that_a_worker_has_lost_are_made_again(monkeypatch, room):
    X = np.random.default_rng(1).uniform(-1, 1, size=(90, 2))
    y = (X[:, 0] > 0).astype(int)

    def model():
        return DPGradientBoostingClassifier(5.0, delta=1e-5, classes=[0, 1], bounds=(-1, 1), interactions=1,
                                            random_state=0)

    expected = model().fit(X, y)
    monkeypatch.setattr("dpestim.ensemble.parts._MOST_BYTES", room)
    found = distributed.fit(model(), [(X[:50], y[:50]), (X[50:], y[50:])])
    assert (found.scores_ == expected.scores_).all()
    assert (found.intercept_ == expected.intercept_).all()
    assert not parts_of_boosting._kept  # (no rows are left in this process)


def test_a_process_that_is_asked_nothing_drops_codes_and_scores(monkeypatch):
    monkeypatch.setattr("dpestim.ensemble.parts._IDLE", 0.2)
    monkeypatch.setattr("dpestim.ensemble.parts._clock", SimpleNamespace(last=0.0, thread=None))
    X = np.random.default_rng(1).uniform(-1, 1, size=(90, 2))
    asked = []

    class Unreached:
        """A process that nobody tells when a fit is over."""

        example = X[:1], np.zeros(1, int)

        def answer(self, request):
            answer = request((X, (X[:, 0] > 0).astype(int)), Place(0))
            asked.append(len(parts_of_boosting._kept))
            return answer

    monkeypatch.setattr("dpestim.ensemble.parts.forget", int)
    model = DPGradientBoostingClassifier(5.0, classes=[0, 1], bounds=(-1, 1), max_iter=1)
    distributed.fit(model, Unreached())
    assert max(asked) == 1
    until = time.monotonic() + 60  # (on a machine that is busy; it takes 0.2 seconds)
    while parts_of_boosting._kept and time.monotonic() < until:
        time.sleep(0.02)
    assert not parts_of_boosting._kept


class Enormous:
    """Parts with more rows than sums of 64 bits are made for (a grid of gradients follows from the number of rows)."""

    example = np.zeros((1, 2)), np.zeros(1, int)

    def answer(self, request):
        if not isinstance(request, CountRows):
            raise AssertionError("rows were asked after they were counted")
        return 1 << 31


@pytest.mark.parametrize("est", [est for est in ROUNDS if getattr(est, "_trust", "local") == "central"
                                 and not isinstance(est, DPLogisticRegression)])
def test_more_rows_than_sums_hold_are_refused_before_the_charge(est):
    for relation in ("substitution", "add_remove"):
        model = fresh(est)
        if hasattr(est, "neighbours"):
            model.set_params(neighbours=relation)
        with Ledger(9.0, delta=0.1) as ledger, pytest.raises(ValueError, match=r"fewer than|neighbours="):
            distributed.fit(model, Enormous())
        assert not ledger.entries()


@pytest.mark.parametrize("est", ROUNDS)
def test_rounds_of_parts_are_charged_once(est):
    X = np.random.default_rng(1).uniform(-1, 1, size=(90, 2))
    parts = [csr_array(X[:50]), csr_array(X[50:])] if est.merges == "reports" else [
        (X[:50], np.arange(50) % 2), (X[50:], np.arange(40) % 2)]
    with Ledger(2.0, delta=0.1) as ledger:  # (where a row comes or goes, one that is replaced costs twice)
        distributed.fit(fresh(est), parts)
        assert len(ledger.entries()) == 1
        assert ledger.spent().epsilon <= 1 + (getattr(est, "neighbours", None) == "add_remove")
    if est.merges != "reports":  # (rows and targets may be lists, as on one machine)
        distributed.fit(fresh(est), [(rows.tolist(), y.tolist()) for rows, y in parts])
    with Ledger(0.9, delta=0.1) as ledger:
        with pytest.raises(BudgetExceededError):
            distributed.fit(fresh(est), parts)
        assert not ledger.entries()


def test_answers_too_large_for_one_message_come_in_turn(monkeypatch):
    X = np.random.default_rng(1).uniform(-1, 1, size=(90, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    for est in (DPDecisionTreeClassifier(40.0, bounds=(-1, 1), classes=[0, 1], n_bins=8, max_depth=4, random_state=0),
                MarginalSynthesizer(9.0, delta=1e-3, bounds=(-1, 1), bins=4, random_state=0)):
        expected = learned(fresh(est).fit(X, y))
        for room in (0, 300):
            monkeypatch.setattr("dpestim.tree.rounds._MOST_CELLS", room)
            monkeypatch.setattr("dpestim.synthesis.tables._MOST_CELLS", room // 10)
            asked = Sent([(X[:50], y[:50]), (X[50:], y[50:])])
            assert same_state(learned(distributed.fit(fresh(est), asked)), expected)
            assert asked.asked > 5
        monkeypatch.undo()


def test_made_up_rows_have_the_types_of_the_data_and_none_of_their_values():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    days = pandas.to_datetime(["2020-01-01"])
    frame = pandas.DataFrame({
        "int8": np.array([7], np.int8), "float32": np.array([0.5], np.float32), "bool": [True],
        "Int64": pandas.array([7], "Int64"), "boolean": pandas.array([True], "boolean"),
        "string": pandas.array(["tea"], "string"), "days": days,
        "zone": days.tz_localize("UTC"), "span": days - days[0], "object": np.array(["tea"], object)})
    listed = pandas.DataFrame({"str": ["tea"], "int": [7], "days": days, "cut": pandas.cut([7], [5, 9])})
    listed = listed.astype("category")
    period = pandas.DataFrame({"p": pandas.period_range("2020-01", periods=1, freq="M")})
    plain = polars.DataFrame({"int": [7], "float": [0.5], "bool": [True], "str": ["tea"], "day": [days[0].date()]})
    plain = plain.with_columns(kind=polars.col("str").cast(polars.Categorical))
    for given in (frame, plain):
        found = made_up(given)
        assert type(found) is type(given)
        assert list(found.dtypes) == list(given.dtypes)
        assert not set(map(str, found.to_numpy().ravel())) & {"7", "0.5", "True", "tea"}
    assert [str(kind) for kind in made_up(listed).dtypes] == ["category"] * 4
    assert not set(map(str, made_up(listed).to_numpy().ravel())) - {"", "0"}
    assert made_up(period)["p"][0] == ""


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_parts_of_frames_give_what_one_frame_gives(library):
    pandas, made = pytest.importorskip("pandas"), pytest.importorskip(library)
    rng = np.random.default_rng(0)
    cups, sizes = rng.choice(["tea", "coffee"], 60), np.where(rng.random(60) < 0.2, np.nan, rng.uniform(0, 9, 60))
    frame = pandas.DataFrame({"cup": cups, "size": sizes, "n": rng.integers(0, 4, 60), "hot": rng.random(60) < 0.5})
    frame = frame.astype({"cup": "category", "n": "int32"}) if library == "pandas" else made.from_pandas(frame)
    y, cuts = frame["n"], (slice(0, 20), slice(20, 20), slice(20, 60))
    domain = Domain({"cup": Categories(["tea", "coffee"]), "size": Numbers(0, 9, missing=True),
                     "n": Categories([0, 1, 2, 3]), "hot": Categories([False, True])})
    for est in (MultiplicativeWeights(9.0, bounds=domain, bins=3, random_state=0),
                MarginalSynthesizer(9.0, delta=1e-3, categories=domain, bins=3, random_state=0)):
        one, found = fresh(est).fit(frame), distributed.fit(fresh(est), [frame[rows] for rows in cuts])
        rows, expected = found.sample(40, random_state=0), one.sample(40, random_state=0)
        assert type(rows) is type(expected)
        assert list(rows.dtypes) == list(expected.dtypes)
        assert rows.equals(expected)
    tree = DPDecisionTreeClassifier(9.0, bounds=domain, classes=[0, 1, 2, 3], max_depth=3, random_state=0)
    one, found = fresh(tree).fit(frame, y), distributed.fit(tree, [(frame[rows], y[rows]) for rows in cuts])
    assert same_state(learned(found), learned(one))
    numbers = [frame[rows][["size", "n"]] for rows in cuts]
    means = DPKMeans(1.0, n_clusters=2, bounds={"size": (0, 9), "n": (0, 3)})
    numbers = [part.fillna(0) if library == "pandas" else part.fill_nan(0).fill_null(0) for part in numbers]
    assert distributed.fit(means, numbers).n_features_in_ == 2


@pytest.mark.parametrize("est", [
    DPRandomForestClassifier(20.0, bounds=(-2, 2), classes=[0, 1], random_state=0),
    DPRandomForestRegressor(20.0, bounds=(-2, 2), target_bounds=(0, 1), max_depth=3, random_state=0)])
def test_forests_whose_size_follows_from_the_number_of_rows_count_them(est):
    X, y = np.random.default_rng(0).uniform(size=(300, 2)), np.arange(300) % 2
    expected = fresh(est).fit(X, y)
    found = distributed.fit(fresh(est), Sent([(X[:7], y[:7]), (X[7:], y[7:])]))
    assert same_state(learned(found), learned(expected))


@pytest.mark.parametrize("more", [{"perturbation": "gradient", "delta": 1e-5}, {"perturbation": "functional"}])
@pytest.mark.parametrize("classes", [["x", "y"], ["x", "y", "z"]])
def test_parts_of_frames_and_of_sparse_rows_give_a_linear_model(more, classes):
    pandas, rng = pytest.importorskip("pandas"), np.random.default_rng(0)
    frame = pandas.DataFrame({"a": rng.uniform(0, 9, 70), "b": rng.integers(0, 4, 70), "kind": rng.choice(classes, 70)})
    X, y, cuts = frame[["a", "b"]], frame["kind"], (slice(0, 20), slice(20, 20), slice(20, 70))
    domain = Domain({"a": Numbers(0, 9), "b": Numbers(0, 3), "kind": Categories(classes)})
    of_domain = DPLogisticRegression(4.0, domain=domain, random_state=0, **more)
    found = distributed.fit(fresh(of_domain), [frame[rows] for rows in cuts], y="kind")
    assert same_state(learned(found), learned(fresh(of_domain).fit(X, y)))
    plain = DPLogisticRegression(4.0, data_norm=9.0, classes=classes, random_state=0, fit_intercept=False, **more)
    rows, expected = csr_array(X.to_numpy(float)), fresh(plain).fit(csr_array(X.to_numpy(float)), y)
    found = distributed.fit(plain, [(rows[part], y[part]) for part in cuts])
    assert same_state(learned(found), learned(expected))


@pytest.mark.parametrize("est", [
    DPLogisticRegression(1.0, classes=[0, 1], perturbation="gradient"),
    DPLogisticRegression(1.0, data_norm=1.0, perturbation="functional"),
    DPDecisionTreeClassifier(1.0, bounds=(-1, 1), classes=[0, 1], edges_fraction=0.1),
    DPDecisionTreeClassifier(1.0, bounds=(-1, 1)), DPDecisionTreeRegressor(1.0, bounds=(-1, 1))])
def test_what_would_be_learned_of_all_rows_is_refused(est):
    with Ledger(9.0) as ledger:
        with pytest.raises(ValueError, match="all rows at once"):
            distributed.fit(est, [(np.zeros((9, 2)), np.zeros(9))])
        assert not ledger.entries()
