"""Rows of parts turned by fitted estimators: what one machine gives, whoever holds the rows."""

import inspect
import pickle
import re
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import issparse

from dpestim import config_context, distributed
from dpestim.accounting import Ledger
from dpestim.base import all_estimators
from dpestim.central import LaplaceMechanism
from dpestim.cluster import DPKMeans
from dpestim.distributed.verbs import _METHODS
from dpestim.exceptions import BudgetExceededError, PrivacyLeakWarning
from dpestim.local import DuchiTransformer, GRRFrequencyEstimator, PrivatizedColumns
from dpestim.naive_bayes import DPGaussianNB
from dpestim.passes import Place
from dpestim.preprocessing import DPStandardScaler
from dpestim.statistics import ContingencyTable, Mean

N_ROWS = 40
CUPS = [np.array([["tea"]] * 30), np.array([["coffee"]] * 50), np.array([["tea"]] * 7)]


def drinks(**params):
    return GRRFrequencyEstimator(1.0, **{"categories": [["tea", "coffee"]], **params})


def settings(cls):
    """Yield estimators of the settings of a class, with a seed."""
    for params in cls._test_params():
        est = cls(**params)
        names = [name for name in est.get_params() if name.rpartition("__")[2] == "random_state"]
        yield est.set_params(**{min(names, key=len): 3}) if names else est


def rows_of(est):
    """Return a tuple of what `fit` takes."""
    X, y = est._test_data(N_ROWS)
    X = X.tocsr() if issparse(X) else np.asarray(X)
    return (X,) if y is None else (X, np.asarray(y))


def cut(rows, places):
    """Return rows in parts."""
    return [tuple(part[a:b] for part in rows) for a, b in pairwise([0, *places, N_ROWS])]


def fresh(est):
    return type(est)(**est.get_params(deep=False))


SETTINGS = [pytest.param(est, method, id=f"{name}-{k}-{method}") for name, cls in all_estimators()
            for method in _METHODS if hasattr(cls, method) for k, est in enumerate(settings(cls))
            if hasattr(est, method) and est._checked_as != "lists"]  # (which refuses rows without their numbers)
#: Noise for one table, not for rows.
TABLES = "one table of exact answers"
#: Why a setting is not turned in strict mode: true values, no dense array, no finite guarantee.
REFUSED = f"{TABLES}|strict mode|set sparse_output=False|dense|separately|epsilon = infinity"


@pytest.mark.parametrize(("est", "method"), SETTINGS)
def test_rows_of_parts_are_turned_as_on_one_machine(est, method):
    rows = rows_of(est)
    est = fresh(est).fit(*rows)
    try:
        found = list(distributed.transform(est, cut(rows, [13, 13, 27]), method=method))
    except ValueError as refused:
        if TABLES not in str(refused):  # (then one machine refuses, too)
            with pytest.raises(type(refused)):
                getattr(est, method)(rows[0])
        return
    expected = getattr(est, method)(rows[0])
    assert len(found) == 3
    found, expected = (np.vstack([one.toarray() for one in own]) if issparse(own[0]) else np.concatenate(own)
                       for own in (found, [expected]))
    if found.dtype.kind == "f":  # (products of a few rows are rounded otherwise than those of many)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    else:
        assert (found == expected).all()


class Seen:
    """Parts of an engine that sends requests, and asks before what comes back."""

    def __init__(self, rows):
        self.rows, self.example = rows, tuple(np.full_like(own[:1], "" if own.dtype.kind in "UO" else 0)
                                              if not issparse(own) else own[:1] * 0 for own in rows)

    def answer(self, request):
        raise AssertionError

    def reports(self, request, shown):
        sent = pickle.dumps(request)
        assert b"Ledger" not in sent
        assert b"summary_" not in sent
        return pickle.loads(sent)(self.rows, Place()), shown()


@pytest.mark.parametrize(("est", "method"), [param for param in SETTINGS if "-0-" in param.id])
def test_an_engine_knows_what_comes_and_workers_get_no_ledger_and_no_summary(est, method):
    rows = rows_of(est)
    with Ledger(1e6, delta=0.1), config_context(strict=True):
        est = fresh(est)
        try:
            est.fit(*rows)
            found, shown = distributed.transform(est, Seen(rows), method=method)
        except ValueError as refused:
            if re.search(REFUSED, str(refused)):
                return
            raise
    assert shown.filled(found).shape == (N_ROWS, *shown.shape)
    assert shown.dtype.kind == np.asarray(found).dtype.kind


def test_reports_of_transform_are_charged_when_they_are_asked_for_and_made_again_alike():
    with Ledger(2.0) as ledger:
        est = drinks().fit(np.concatenate(CUPS))
        assert ledger.spent().epsilon == 1
        made = distributed.transform(est, CUPS)
        assert ledger.spent().epsilon == 2
        assert [len(part) for part in made] == [30, 50, 7]
        assert ledger.spent().epsilon == 2
        with pytest.raises(BudgetExceededError):
            distributed.transform(est, CUPS)


class Twice:
    """Parts of an engine that makes each part twice."""

    example = (CUPS[0][:1],)

    def answer(self, request):
        raise AssertionError

    @staticmethod
    def reports(request, shown):
        request = pickle.loads(pickle.dumps(request))
        return [[request((part,), Place(number)) for _ in range(2)] for number, part in enumerate(CUPS)]


def test_a_part_that_is_made_twice_has_the_same_reports_and_another_call_has_others():
    est = drinks().fit(np.concatenate(CUPS))
    calls = [distributed.transform(est, Twice()) for _ in range(2)]
    for first, second in calls[0]:
        assert (first == second).all()
    assert any((one[0] != other[0]).any() for one, other in zip(*calls))
    assert (np.concatenate([both[0] for both in calls[0]]).sum(axis=1) == 1).all()


class Column:
    """A column of Spark Connect: of no length, and nothing can be called or asked."""

    def __iter__(self):
        raise TypeError("Column is not iterable")

    def __bool__(self):
        raise ValueError("Cannot convert column into bool")


class Connect:
    """A DataFrame of Spark Connect, in what matters here: it has an attribute of any name."""

    columns = "a", "b"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Column()


@pytest.mark.parametrize("cls", [pytest.param(cls, id=name) for name, cls in all_estimators() if hasattr(cls, "fit")])
def test_fit_of_a_frame_of_connect_says_where_to_go(cls, monkeypatch):
    monkeypatch.setattr(Connect, "__module__", "pyspark.sql.connect.dataframe")
    for params in cls._test_params():
        y = [np.arange(40) % 2] if "y" in inspect.signature(cls.fit).parameters else []
        with pytest.raises(ValueError, match=r"dpestim\.distributed"):
            cls(**params).fit(Connect(), *y)


def test_strict_mode_notes_one_call_for_all_parts():
    X = np.random.default_rng(0).uniform(size=(60, 2))
    with Ledger(2.0) as ledger, config_context(strict=True):
        scaler = DPStandardScaler(1.0, bounds=(0, 1)).fit(X)
        before = len(ledger.entries())
        assert np.concatenate(list(distributed.transform(scaler, [X[:20], X[20:]]))).shape == X.shape
        assert len(ledger.entries()) == before + 1


@pytest.mark.parametrize(("make", "more", "message"), [
    (lambda: LaplaceMechanism(1.0, sensitivity=1).fit(np.ones((3, 2))), {}, TABLES),
    (lambda: DPGaussianNB(1.0, bounds=(0, 1), classes=[0, 1]).fit(np.eye(2), [0, 1]), {}, "method must be one .*'pred"),
    (lambda: Mean(1.0, bounds=(0, 1)).fit(np.ones(3)), {}, "none that turns rows"),
    (lambda: drinks().fit(CUPS[0]), {"columns": ["a"]}, "columns must be names of columns"),
    (lambda: drinks(), {}, "not fitted"),
    (lambda: drinks(categories=[["tea", "coffee"]] * 2).fit(np.array([["tea", "tea"]])), {}, "X has 1 features"),
    (lambda: drinks().fit(CUPS[0]), {"method": "fit"}, "method must be one"),
])
def test_what_is_refused_charges_nothing(make, more, message):
    est = make()
    with Ledger(9.0) as ledger:
        with pytest.raises(ValueError, match=message):
            distributed.transform(est, CUPS, **more)
        assert not ledger.entries()


def test_an_estimator_of_another_library_is_refused():
    class Other:
        def transform(self, X):
            return X

    with pytest.raises(ValueError, match="no estimator of dpestim"):
        distributed.transform(Other(), [np.eye(2)])


def test_an_inner_estimator_takes_what_it_has_learned_along():
    X = np.array([["tea"], ["coffee"], ["milk"]] * 10)
    with pytest.warns(PrivacyLeakWarning):
        step = PrivatizedColumns([("cup", GRRFrequencyEstimator(), [0])], epsilon=1.0, predict_on="privatized",
                                 random_state=0).fit(X)
    assert (np.concatenate(list(distributed.transform(step, [X[:11], X[11:]]))) == step.transform(X)).all()


def test_columns_that_pass_through_stand_beside_reports():
    X = np.random.default_rng(0).uniform(-1, 1, size=(30, 2))
    step = PrivatizedColumns([("a", DuchiTransformer(bounds=(-1, 1)), [0])], epsilon=1.0, remainder="passthrough",
                             predict_on="privatized", random_state=0, correction="unbiased").fit(X)
    found = np.concatenate(list(distributed.transform(step, [X[:11], X[11:]])))
    assert (found == step.transform(X)).all()
    assert (found[:, 1] == X[:, 1]).all()


def frames():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"a": rng.uniform(size=60), "other": ["x"] * 60, "b": rng.uniform(size=60),
                              "kind": rng.integers(0, 2, 60)})
    return frame, [frame[:20], frame[20:]]


def test_columns_name_the_features_in_any_data(tmp_path):
    frame, parts = frames()
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    polars, dataset = pytest.importorskip("polars"), pytest.importorskip("pyarrow.dataset")
    for number, part in enumerate(parts):
        parquet.write_table(pyarrow.table(part), tmp_path / f"{number}.parquet")

    def model():
        return DPGaussianNB(1.0, bounds=(0, 1), classes=[0, 1], random_state=0)

    expected, tables = model().fit(frame[["b", "a"]], frame["kind"]), [pyarrow.table(part) for part in parts]
    for data in (parts, str(tmp_path / "*.parquet"), dataset.dataset(tmp_path), tables,
                 tables[0].to_batches() + tables[1].to_batches(), [polars.from_pandas(part) for part in parts]):
        found = distributed.fit(model(), data, y="kind", columns=["b", "a"])
        assert (found.theta_ == expected.theta_).all()
        assert found.feature_names_in_.tolist() == ["b", "a"]
        made = list(distributed.transform(found, data, columns=["b", "a"], method="predict"))
        assert (np.concatenate(made) == expected.predict(frame[["b", "a"]])).all()
    pairs = [(part.drop(columns="kind"), part["kind"]) for part in parts]
    assert (distributed.fit(model(), pairs, columns=["b", "a"]).theta_ == expected.theta_).all()
    reports = distributed.privatize(drinks(categories={"other": ["x", "y"]}), parts, columns=["other"])
    assert sum(map(len, reports)) == 60


def test_columns_that_are_not_wanted_are_not_read(tmp_path):
    _, parts = frames()
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    dataset = pytest.importorskip("pyarrow.dataset")
    parquet.write_table(pyarrow.table(parts[0]), tmp_path / "0.parquet")

    class Asked:
        """A dataset that tells which columns were read."""

        def __init__(self):
            self.data, self.read = dataset.dataset(tmp_path), []
            self.schema, self.get_fragments = self.data.schema, self.data.get_fragments

        def to_batches(self, columns=None, **more):
            self.read.append(columns)
            return self.data.to_batches(columns=columns, **more)

    data = Asked()
    distributed.fit(Mean(1.0, bounds=(0, 1)), data, columns=["b"])
    assert data.read == [["b"]]


@pytest.mark.parametrize(("columns", "y", "message"), [
    ("a", None, "columns must be a list"), ([], None, "columns must be a list"), (["a", "a"], None, "different names"),
    (["a", 1], None, "columns must be a list"), (["a", "kind"], "kind", "without that of y"),
    (["a", "none"], "kind", "change 'none'"), (["a"], "none", "y must be the name"),
])
def test_wrong_columns_are_refused_before_anything_else(columns, y, message):
    _, parts = frames()
    with Ledger(1.0) as ledger:
        with pytest.raises(ValueError, match=message):
            distributed.fit(Mean(1.0, bounds=(0, 1)), parts, y=y, columns=columns)
        assert not ledger.entries()


class OneIterator:
    """Batches that can be read once, as `iter` gives what is left of them."""

    def __init__(self, batches):
        self.left = iter(batches)

    def __iter__(self):
        return self.left


def test_batches_that_can_be_read_once_are_known_by_their_iterators():
    parts = [np.full(50, 0.2), np.full(50, 0.4)]
    expected = Mean(1.0, bounds=(0, 1), random_state=0).fit(np.concatenate(parts)).value_
    assert distributed.fit(Mean(1.0, bounds=(0, 1), random_state=0), OneIterator(parts)).value_ == expected
    assert distributed.fit(drinks(), OneIterator(CUPS)).n_users_ == 87
    assert sum(map(len, distributed.privatize(drinks(), OneIterator(CUPS)))) == 87
    with Ledger(1.0) as ledger:
        with pytest.raises(ValueError, match="more than once"):
            distributed.fit(DPKMeans(1.0, n_clusters=2, bounds=(0, 1)), OneIterator([np.eye(2)]))
        assert not ledger.entries()


@pytest.mark.parametrize(("first", "second"), [
    ([1, 2], [1.5, 2.0]), ([1.5, 2.0], [2**53 + 1, 1]), ([1, 2], ["a secret", "1"]), ([None, None], ["1", "2"]),
    (["1", "2"], [1, 2]),
])
def test_files_keep_their_own_types(first, second, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    tables = [pyarrow.table({"a": own, "b": own}) for own in (first, second)]
    for number, table in enumerate(tables):
        parquet.write_table(table.select(["ab"[number], "ba"[number]]), tmp_path / f"{number}.parquet")

    def counts(data):
        with config_context(strict=True), Ledger(99.0):
            lists = {name: [1, 2, 2**53, "1"] for name in "ab"}
            return distributed.fit(ContingencyTable(9.0, categories=lists, random_state=0), data).value_

    assert (counts(str(tmp_path / "*.parquet")) == counts(tables)).all()


def test_files_without_a_column_of_others_are_refused(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for number, names in enumerate([["a"], ["a", "b"]]):
        parquet.write_table(pyarrow.table({name: [0.5] for name in names}), tmp_path / f"{number}.parquet")
    files = sorted(tmp_path.iterdir())
    mean = Mean(1.0, bounds=(0, 1))
    with Ledger(2.0) as ledger:
        for data, more in ((files, {}), (files[::-1], {}), (files[::-1], {"columns": ["b"]})):
            with config_context(strict=True), pytest.raises(ValueError, match="columns"):
                distributed.fit(mean, data, **more)
        assert not ledger.entries()
        assert distributed.fit(mean, files, columns=["a"]).n_features_in_ == 1


BAD = [np.array([["tea"]] * 5), np.array([["milk"]] * 5)]


def test_bad_values_of_later_parts_cost_a_local_fit_nothing():
    with Ledger(2.0) as ledger:
        for strict, parts in ((False, BAD), (True, [CUPS[0], np.array([["tea", "tea"]])])):
            with config_context(strict=strict), pytest.raises(ValueError, match=r"categor|columns|features"):
                distributed.fit(drinks(), parts)
        assert not ledger.entries()
        for data, more in ((iter(BAD), {}), (BAD, {"check_first": False})):  # (read once: charged before)
            with pytest.raises(ValueError, match="categor"):
                distributed.fit(drinks(), data, **more)
        assert ledger.spent().epsilon == 2


def test_lines_of_a_fit_tell_parts_and_rows_only_where_their_number_is_public(capsys):
    parts = [np.ones(3), np.ones(4)]
    distributed.fit(Mean(1.0, bounds=(0, 1)), parts)
    assert capsys.readouterr() == ("", "")
    distributed.fit(Mean(1.0, bounds=(0, 1)), parts, verbose=1)
    out, err = capsys.readouterr()
    assert not out
    assert "[Mean] reading 1: 2 parts" in err
    assert "rows a second" in err
    distributed.fit(Mean(1.0, bounds=(0, 1)), parts, verbose=2)
    assert len(capsys.readouterr().err.splitlines()) == 3
    distributed.fit(Mean(1.0, bounds=(0, 1), neighbours="add_remove"), parts, verbose=2)
    with config_context(strict=True):
        distributed.fit(Mean(1.0, bounds=(0, 1)), parts, verbose=2)
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 6
    assert "rows" not in err
    with pytest.raises(ValueError, match="verbose must be"):
        distributed.fit(Mean(1.0, bounds=(0, 1)), parts, verbose=-1)
