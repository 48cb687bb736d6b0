"""Dask with two processes: the result of one machine, whoever holds the rows, and workers that are killed."""

import inspect
import os
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from dpestim import distributed
from dpestim.accounting import Ledger
from dpestim.base import all_estimators
from dpestim.distributed import dask_plan, on_dask
from dpestim.distributed.engines import parts_of
from dpestim.distributed.parts import Split
from dpestim.ensemble import DPGradientBoostingClassifier
from dpestim.ensemble import parts as boosting
from dpestim.linear_model import DPLogisticRegression
from dpestim.local import GRRFrequencyEstimator, LDPSGDClassifier, PMTransformer
from dpestim.naive_bayes import DPGaussianNB
from dpestim.passes import Blueprint, Place, Summarize
from dpestim.statistics import ContingencyTable, Mean
from dpestim.synthesis import MarginalSynthesizer
from dpestim.tree import DPDecisionTreeClassifier

WHY = "dask is not installed: pip install 'dpestim[dask]'"
pytest.importorskip("dask.dataframe", reason=WHY)
cluster = pytest.importorskip("dask.distributed", reason=WHY)
dask, array, bags = (pytest.importorskip(f"dask{name}", reason=WHY) for name in ("", ".array", ".bag"))
pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
FRAME = pandas.DataFrame({
    "age": RNG.uniform(17, 90, 5000), "hours": RNG.uniform(0, 99, 5000), "kind": RNG.choice(["a", "b"], 5000),
    "user": RNG.integers(0, 300, 5000),
})
NUMBERS = ["age", "hours"]
BOUNDS = {"age": (17, 90), "hours": (0, 99)}
get_task_stream, wait = cluster.get_task_stream, cluster.wait
#: parts of `_part` that are in this process
alive = []
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def client():
    with dask.config.set({"distributed.scheduler.allowed-failures": 5}), cluster.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as local, cluster.Client(local) as client:
        yield client


def model():
    return DPGaussianNB(1.0, classes=["a", "b"], bounds=BOUNDS, random_state=1)


def kinds(**params):
    return GRRFrequencyEstimator(1.0, categories={"kind": ["a", "b"]}, **params)


def test_frames_arrays_and_bags(client):
    frame = dask.dataframe.from_pandas(FRAME, npartitions=5)
    expected = model().fit(FRAME[NUMBERS], FRAME["kind"])
    assert (distributed.fit(model(), frame[[*NUMBERS, "kind"]], y="kind").theta_ == expected.theta_).all()
    expected = Mean(1.0, bounds=BOUNDS, random_state=0).fit(FRAME[NUMBERS]).value_
    bag = bags.from_sequence(FRAME[NUMBERS].to_dict("records"), npartitions=3)
    for data in (frame[NUMBERS], bag):
        found = distributed.fit(Mean(1.0, bounds=BOUNDS, random_state=0), data)
        assert (found.value_ == expected).all()
    X = array.from_array(FRAME[NUMBERS].to_numpy(), chunks=(1300, 1))
    y = array.from_array(FRAME["kind"].to_numpy().astype(str), chunks=1300)
    plain = model().set_params(bounds=([17, 0], [90, 99]))
    expected = model().set_params(bounds=([17, 0], [90, 99])).fit(FRAME[NUMBERS].to_numpy(), FRAME["kind"])
    assert (distributed.fit(plain, X, y).theta_ == expected.theta_).all()


@pytest.mark.parametrize("est", [
    DPDecisionTreeClassifier(8.0, bounds=BOUNDS, classes=["a", "b"], max_depth=3, random_state=0),
    DPLogisticRegression(0.05, bounds=BOUNDS, classes=["a", "b"], perturbation="gradient", random_state=0),
    MarginalSynthesizer(8.0, delta=1e-6, bounds=BOUNDS, categories={"kind": ["a", "b"]}, random_state=0),
])
def test_models_of_several_rounds(client, est):
    frame = dask.dataframe.from_pandas(FRAME[[*NUMBERS, "kind"]], npartitions=3).persist()
    made = type(est)(**est.get_params(deep=False))
    if isinstance(est, MarginalSynthesizer):
        found, expected = distributed.fit(est, frame), made.fit(FRAME[[*NUMBERS, "kind"]])
        assert (found.counts_ == expected.counts_).all()
        assert found.sample(9, random_state=0)[NUMBERS].equals(expected.sample(9, random_state=0)[NUMBERS])
        return
    found, expected = distributed.fit(est, frame, y="kind"), made.fit(FRAME[NUMBERS], FRAME["kind"])
    for name in ("values_", "features_", "coef_", "intercept_"):
        assert np.array_equal(getattr(found, name, 0), getattr(expected, name, 0))


def test_bags_with_parts_of_no_record_and_with_generators(client):
    records = FRAME[["kind"]].iloc[:40].to_dict("records")
    bag = bags.from_sequence([[], records[:7], [], records[7:]], npartitions=4).flatten()
    for data in (bag, bag.map_partitions(iter), bag.map_partitions(list).persist()):
        found = distributed.fit(kinds(random_state=1), data)
        assert (found._counts[0] == kinds(random_state=1).fit(FRAME[["kind"]].iloc[:40])._counts[0]).all()


@pytest.mark.parametrize("scheduler", [None, "threads"])
def test_classes_and_functions_of_the_user_travel(client, scheduler):
    class Own(GRRFrequencyEstimator):
        pass

    frame = dask.dataframe.from_pandas(FRAME[["kind"]], npartitions=3)
    own = Own(1.0, categories={"kind": ["a", "b"]}, random_state=1)
    expected = kinds(random_state=1).fit(FRAME[["kind"]])._counts[0]
    with dask.config.set(scheduler=scheduler), Ledger(9.0) as ledger:
        found = distributed.fit(own, frame)
        assert (found._counts[0] == expected).all()
        assert len(distributed.privatize(own, frame).compute()) == 5000
        assert len(distributed.transform(found, frame).compute()) == 5000
        assert len(ledger.entries()) == 3


def _part(number, folder):
    """Return a part that notes in a file how many parts are alive when it is made."""
    alive.append(None)
    rows = FRAME[NUMBERS].iloc[500 * number : 500 * (number + 1)].copy()
    weakref.finalize(rows, alive.pop)
    with open(Path(folder) / "alive", "a") as file:
        file.write(f"{len(alive)} ")
    return rows


def _lazy(folder, n_parts=10):
    parts = [dask.delayed(_part)(number, str(folder)) for number in range(n_parts)]
    return dask.dataframe.from_delayed(parts, meta=FRAME[NUMBERS].iloc[:0], verify_meta=False)


def _tasks(client, data, **params):
    """Return how many tasks a fit runs."""
    mean = Mean(1.0, bounds=BOUNDS, random_state=0, **params)
    with get_task_stream(client) as stream:
        distributed.fit(mean, data)
    assert (mean.value_ == Mean(1.0, bounds=BOUNDS, random_state=0, **params).fit(FRAME[NUMBERS]).value_).all()
    return len(stream.data)


def test_a_task_makes_its_part_and_answers(client, tmp_path):
    assert _tasks(client, _lazy(tmp_path)) == 11  # (a task for each part, and one for the sum)
    held = _lazy(tmp_path).persist()
    wait(held)
    assert _tasks(client, held) <= 3  # (one for each worker, and one for the sum)


def test_a_part_is_gone_when_the_next_of_a_task_is_made(tmp_path):
    parts = [(Place(number), dask_plan.Part({"rows": (_part, number, str(tmp_path))}, (), ("rows",)))
             for number in range(5)]
    on_dask._answer(Split(), parts, Summarize(Blueprint.of(Mean(1.0, bounds=BOUNDS))))
    assert (tmp_path / "alive").read_text().split() == ["1"] * 5


def test_many_parts_are_few_tasks(client, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_plan, "_TASKS_OF_A_THREAD", 1)
    assert _tasks(client, _lazy(tmp_path)) == 3  # (five parts each)


def _twice(data):
    """Return the same rows, each part of which needs what other parts need, too."""
    return data + 0 * data["hours"].sum()


@pytest.mark.parametrize("change", [
    _twice, lambda data: data.shuffle(on="hours"), lambda data: data.repartition(npartitions=1).shuffle(on="hours"),
    lambda data: data.shuffle(on="hours").map_partitions(abs), lambda data: data.repartition(npartitions=3),
    lambda data: data.shuffle(on="hours").persist(), lambda data: data.persist()[["age", "hours"]].map_partitions(abs),
    lambda data: dask.dataframe.concat([data.partitions[:5].persist(), data.partitions[5:]]),
])
def test_parts_that_depend_on_others(client, tmp_path, change):
    _tasks(client, change(_lazy(tmp_path)))


@pytest.mark.parametrize("persist", [False, True])
def test_whatever_holds_the_parts(client, persist):
    # (without hashes: Dask loses data that are sent again while the same data of the case before are let go)
    X, pieces = FRAME[NUMBERS].to_numpy(), [FRAME[NUMBERS].iloc[at] for at in (slice(700), slice(0), slice(700, None))]
    frame = dask.dataframe.from_pandas(FRAME[NUMBERS], npartitions=5)
    futures = client.scatter(np.array_split(X, 5), hash=False)
    for data in (
        frame, frame["age"].to_frame().assign(hours=frame["hours"]), array.from_array(X, chunks=(1300, 1)) + 0,
        array.concatenate([array.from_delayed(own, (1000, 2), float) for own in futures]),
        bags.from_sequence(FRAME[NUMBERS].to_dict("records"), npartitions=3).map(dict),
        dask.dataframe.from_delayed(client.scatter(pieces, hash=False), meta=pieces[0].iloc[:0]),
    ):
        if persist:
            data = data.persist()
        bounds = BOUNDS if hasattr(data, "columns") or hasattr(data, "take") else ([17, 0], [90, 99])
        found = distributed.fit(Mean(1.0, bounds=bounds, random_state=0), data)
        assert (found.value_ == Mean(1.0, bounds=BOUNDS, random_state=0).fit(FRAME[NUMBERS]).value_).all(), data
        reports = distributed.privatize(_pm(bounds), data)
        here = _pm(bounds).privatize(FRAME[NUMBERS] if bounds is BOUNDS else X)
        assert (reports.compute() == here).all()


def _pm(bounds):
    return PMTransformer(1.0, bounds=bounds, random_state=1)


def test_a_large_request_is_sent_once(client):
    names = [f"a rather long name of town {number}" for number in range(1000)]
    frame = pandas.DataFrame({"town": RNG.choice(names, 3000)})
    params = {"categories": {"town": names}, "random_state": 1}
    found = distributed.fit(GRRFrequencyEstimator(1.0, **params), dask.dataframe.from_pandas(frame, npartitions=5))
    assert (found._counts[0] == GRRFrequencyEstimator(1.0, **params).fit(frame)._counts[0]).all()


def test_without_a_cluster():
    with dask.config.set(scheduler="threads"):
        frame = dask.dataframe.from_pandas(FRAME[["kind"]], npartitions=40)
        found = distributed.fit(kinds(random_state=1), frame)
    assert (found._counts[0] == kinds(random_state=1).fit(FRAME[["kind"]])._counts[0]).all()


def test_reports(client):
    frame = dask.dataframe.from_pandas(FRAME[["kind"]], npartitions=5)
    expected = kinds(random_state=1).fit(FRAME[["kind"]])
    found = distributed.fit(kinds(random_state=1), frame)
    assert (found._counts[0] == expected._counts[0]).all()
    assert found.privacy_ == expected.privacy_
    with Ledger(1.0) as ledger:
        reports = distributed.privatize(kinds(), frame)
        assert ledger.spent().epsilon == 1
    assert (reports.compute() == reports.compute()).all()  # (what is lazy is made again, with the same words)
    assert distributed.aggregate(kinds(), reports).n_users_ == 5000


def test_rows_are_turned_where_they_are(client):
    frame = dask.dataframe.from_pandas(FRAME, npartitions=5)
    fitted = distributed.fit(model(), frame, y="kind", columns=NUMBERS)
    assert (fitted.theta_ == model().fit(FRAME[NUMBERS], FRAME["kind"]).theta_).all()
    labels = distributed.transform(fitted, frame, columns=NUMBERS, method="predict")
    assert (labels.compute() == fitted.predict(FRAME[NUMBERS])).all()
    shares = distributed.transform(fitted, frame, columns=NUMBERS, method="predict_proba")
    assert shares.shape[1] == 2
    assert np.allclose(shares.compute(), fitted.predict_proba(FRAME[NUMBERS]))
    est = kinds(random_state=1).fit(FRAME[["kind"]])
    found = distributed.transform(est, frame, columns=["kind"])
    assert (found.compute() == est.transform(FRAME[["kind"]])).all()


def test_columns_that_are_not_wanted_are_not_read(client, tmp_path):
    frame = dask.dataframe.from_pandas(FRAME, npartitions=2)
    frame.to_parquet(tmp_path)
    parts = parts_of(dask.dataframe.read_parquet(tmp_path), "kind", None, ["hours"])
    assert "columns=['hours', 'kind']" in str(parts.data.optimize().expr.tree_repr())
    for columns, y in ((["none"], "kind"), (["hours"], "none"), (None, "none")):
        with Ledger(1.0) as ledger, pytest.raises(ValueError, match="must be"):
            distributed.fit(model(), frame, y=y, columns=columns)
        assert not ledger.entries()


def gradients():
    return LDPSGDClassifier(2.0, classes=["a", "b"], bounds=BOUNDS, n_rounds=4, random_state=1)


def test_users_of_gradients_answer_where_they_are(client):
    frame = dask.dataframe.from_pandas(FRAME, npartitions=5)
    found = distributed.fit(gradients(), frame, y="kind", columns=NUMBERS)
    assert (found.coef_ == gradients().fit(FRAME[NUMBERS], FRAME["kind"]).coef_).all()


def _kept():
    return len(boosting._kept)


def test_a_fit_of_boosting_leaves_nothing_on_workers(client):
    frame = dask.dataframe.from_pandas(FRAME, npartitions=4)
    trees = DPGradientBoostingClassifier(1.0, classes=["a", "b"], bounds=BOUNDS, random_state=1, max_iter=1)
    distributed.fit(trees, frame, y="kind", columns=NUMBERS)
    assert set(client.run(_kept).values()) == {0}


def test_all_rows_of_a_user_meet(client):
    frame = dask.dataframe.from_pandas(FRAME[["hours", "user"]], npartitions=5)

    def mean():
        return Mean(1.0, bounds=(0, 99), max_rows_per_user=300, neighbours="add_remove", random_state=0)

    found = distributed.fit(mean(), frame, users="user")
    assert found.value_ == mean().fit(FRAME[["hours"]], users=FRAME["user"]).value_


def _loaded(number, folder):
    """Return a part; the first attempt at the second one kills its worker."""
    mark = Path(folder) / "killed"
    if number == 1 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return FRAME[["kind"]].iloc[1000 * number : 1000 * (number + 1)]


def test_a_killed_worker_changes_nothing(client, tmp_path):
    parts = [dask.delayed(_loaded)(number, str(tmp_path)) for number in range(5)]
    frame = dask.dataframe.from_delayed(parts, meta=FRAME[["kind"]].iloc[:0], verify_meta=False)
    with Ledger(1.0) as ledger:
        found = distributed.fit(kinds(random_state=1), frame)
        assert len(ledger.entries()) == 1
    assert (tmp_path / "killed").exists()
    assert (found._counts[0] == kinds(random_state=1).fit(FRAME[["kind"]])._counts[0]).all()


def test_a_null_of_one_record_changes_no_value_of_another(client):
    large = 2**53
    bag = bags.from_sequence([{"id": large + 1}, {"id": large + 1}, {"id": None}], npartitions=1)
    table = distributed.fit(ContingencyTable(80.0, categories=[[large, large + 1, None]]), bag)
    assert table.value_.tolist() == [0, 2, 1]


@pytest.mark.parametrize(("make", "more"), [
    (lambda: bags.from_sequence(FRAME[["hours", "user"]].to_dict("records")), {}),
    (lambda: dask.dataframe.from_pandas(FRAME[["hours", "user"]], npartitions=2),
     {"y": array.from_array(FRAME["user"].to_numpy())}),
])
def test_users_must_name_a_column_of_a_frame(make, more):
    est = Mean(1.0, bounds=(0, 99), neighbours="add_remove", max_rows_per_user=1)
    with pytest.raises(ValueError, match="must name a column of a Dask DataFrame"):
        distributed.fit(est, make(), users="user", **more)


@pytest.mark.parametrize("cls", [pytest.param(cls, id=name) for name, cls in all_estimators() if hasattr(cls, "fit")])
def test_fit_of_an_estimator_says_where_to_go(cls):
    frame = dask.dataframe.from_pandas(FRAME[NUMBERS].iloc[:40], npartitions=2)
    for X in (frame, array.from_array(FRAME[NUMBERS].to_numpy()[:40], chunks=(20, 2))):
        est = cls(**cls._test_params()[0])
        y = [np.arange(40) % 2] if "y" in inspect.signature(cls.fit).parameters else []
        with pytest.raises(ValueError, match=r"dpestim\.distributed"):
            est.fit(X, *y)


def test_a_billion_users_are_an_example_that_runs(tmp_path):
    """`examples/billion.py` with fewer of them: parts through a cluster, and through one process to compare."""
    example = Path(__file__).parents[2] / "examples" / "billion.py"
    done = subprocess.run([sys.executable, example, "--n", "1e5"], cwd=tmp_path, capture_output=True, text=True,
                          check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "users" in done.stdout
