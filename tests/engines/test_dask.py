"""Dask with two processes: the result of one machine, whoever holds the rows, and workers that are killed."""

import inspect
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from dpestim import distributed
from dpestim.accounting import Ledger
from dpestim.base import all_estimators
from dpestim.linear_model import DPLogisticRegression
from dpestim.local import GRRFrequencyEstimator
from dpestim.naive_bayes import DPGaussianNB
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
