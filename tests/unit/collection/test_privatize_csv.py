"""CSV to Parquet: the reports are those of `privatize`, and what is wrong has a line number and no content."""

import io
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.collection import Collector, Survey, privatizing
from dpestim.collection.messages import from_text
from dpestim.collection.privatizing import privatize_csv
from dpestim.exceptions import BudgetExceededError
from dpestim.inputs import Domain, Numbers
from dpestim.local import (
    DuchiTransformer,
    GRRFrequencyEstimator,
    MixedEstimator,
    OUEFrequencyEstimator,
    PCKVEstimator,
    PMTransformer,
    RAPPORFrequencyEstimator,
)

SECRET = "Rosebud"


def row_survey():
    return Survey(MixedEstimator([
        ("drinks", GRRFrequencyEstimator(categories=[["tea", "coffee, black", 'a "wine"']]), ["drink"]),
        ("yes", OUEFrequencyEstimator(categories=[[True, False], [1, 2, 3]]), ["smokes", "rooms"]),
        ("ages", PMTransformer(bounds=(17, 90)), ["age"]),
    ], epsilon=2.0), name="row")


def rows(n):
    rng = np.random.default_rng(0)
    return pd.DataFrame({
        "age": rng.integers(10, 100, n) / 2, "unused": ["x"] * n, "rooms": rng.integers(1, 4, n),
        "drink": np.array(["tea", "coffee, black", 'a "wine"'], object)[rng.integers(0, 3, n)],
        "smokes": rng.integers(0, 2, n).astype(bool),
    })


@pytest.mark.parametrize("size", [1 << 8, 1 << 23])
def test_reports_are_those_of_privatize(tmp_path, monkeypatch, size):
    monkeypatch.setattr(privatizing, "_BLOCK_BYTES", size)
    survey, frame = row_survey(), rows(300)
    frame.to_csv(tmp_path / "in.csv", index=False)
    assert privatize_csv(tmp_path / "in.csv", survey, tmp_path / "out.parquet", random_state=7, batch="a",
                         received_on="2026-11-26") == 300
    table = pq.read_table(tmp_path / "out.parquet")
    expected = survey.client(random_state=7).privatize(frame)
    assert table.column_names == ["report", "batch", "received_on"]
    assert np.array_equal(np.array([list(each) for each in table["report"].to_pylist()]), survey.pack(expected))
    assert survey.server().aggregate(table).n_users_ == 300
    assert Survey.of_arrow(table) == survey
    out = io.BytesIO()
    assert privatize_csv(io.BytesIO((tmp_path / "in.csv").read_bytes()), survey, out, random_state=7) == 300
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert from_text([line["report"] for line in lines]) == table["report"].to_pylist()
    assert len({line["nonce"] for line in lines}) == 300
    for kind in ("csv", "jsonl"):
        privatize_csv(tmp_path / "in.csv", survey, tmp_path / f"out.{kind}", random_state=7, batch=', "',
                      received_on="2026-11-26")
        collector = Collector(survey, tmp_path / f"{kind}.sqlite")
        assert collector.add_file(tmp_path / f"out.{kind}") == (300, {}, 0, 0)
        assert all(map(np.array_equal, collector.server()._counts, survey.server().aggregate(table)._counts))


def test_progress_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(privatizing, "_BLOCK_BYTES", 1 << 8)
    monkeypatch.setattr(privatizing, "_TELL", -1)
    rows(100).to_csv(tmp_path / "in.csv", index=False)
    privatize_csv(tmp_path / "in.csv", row_survey(), tmp_path / "out.parquet", verbose=1)
    assert capsys.readouterr().err.splitlines()[-1].startswith("[privatize] 100 rows, ")


def test_a_closed_output_ends_nothing_that_was_paid(tmp_path, monkeypatch):
    class Closed:
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(privatizing, "_BLOCK_BYTES", 1 << 8)
    monkeypatch.setattr(privatizing, "_TELL", -1)
    rows(100).to_csv(tmp_path / "in.csv", index=False)
    ledger = Ledger(10)
    monkeypatch.setattr("sys.stderr", Closed())
    assert privatize_csv(tmp_path / "in.csv", row_survey(), tmp_path / "out.parquet", ledger=ledger, verbose=1) == 100
    assert len(pq.read_table(tmp_path / "out.parquet")) == 100


@pytest.mark.parametrize("client", [
    PMTransformer(bounds=([0, 10], [1, 20])), DuchiTransformer(bounds=([0, 10], [1, 20]), strategy="joint"),
], ids=["by column", "joint"])
def test_columns_without_names_are_those_in_order(tmp_path, client):
    survey, X = Survey(client, name="x"), np.random.default_rng(0).random((50, 2)) * [1, 20]
    pd.DataFrame(X, columns=["a", "b"]).to_csv(tmp_path / "in.csv", index=False)
    privatize_csv(tmp_path / "in.csv", survey, tmp_path / "out.parquet", random_state=1)
    expected = survey.client(random_state=1).privatize(X)
    assert np.array_equal(pq.read_table(tmp_path / "out.parquet")["report"].to_pylist(),
                          [bytes(each) for each in survey.pack(expected)])


def test_missing_numbers(tmp_path):
    survey = Survey(PMTransformer(bounds=Domain({"age": Numbers(0, 9, missing=True)})), name="x")
    (tmp_path / "in.csv").write_text("age\n1\n\n3\n")
    privatize_csv(tmp_path / "in.csv", survey, tmp_path / "out.parquet", random_state=1)
    expected = survey.client(random_state=1).privatize(pd.DataFrame({"age": [1, np.nan, 3]}))
    assert np.array_equal(pq.read_table(tmp_path / "out.parquet")["report"].to_pylist(),
                          [bytes(each) for each in survey.pack(expected)])


GOOD = "drink,smokes,rooms,age\ntea,True,1,20\n"


@pytest.mark.parametrize(("text", "why"), [
    ("", "first line must name"),
    (f"{SECRET},b\n1,2\n", "first line must name"),
    ("drink,drink,smokes,rooms,age\ntea,tea,True,1,20\n", "first line must name"),
    (b"\xff,drink\n", "first line must name"),
    ("drink,smokes,rooms,age\n", "at least one line"),
    (GOOD + f"{SECRET},True,1,20\n", "line 3: the value of column 'drink'"),
    (GOOD + f"tea,{SECRET},1,20\n", "line 3: the value of column 'smokes'"),
    (GOOD * 1 + "tea,False,2,30\n" + f"tea,False,{SECRET},30\n", "line 4: the value of column 'rooms'"),
    (GOOD + f"tea,False,2,{SECRET}\n", "line 3: the value of column 'age'"),
    (GOOD + "tea,False,2,\n", "line 3: the value of column 'age'"),
    (GOOD + "tea,False,2,nan\n", "line 3: the value of column 'age'"),
    (GOOD + "tea,False,2,1e999\n", "line 3: the value of column 'age'"),
    (GOOD + "\n" + GOOD.split("\n")[1], "line 3: the value of column 'drink'"),
    (GOOD + f"tea,True,1,20,{SECRET}\n", "line 3: the line must have as many values"),
    (GOOD + "tea,True,1\n", "line 3: the line must have as many values"),
    (GOOD.encode() + b"\xff\xfe,True,1,20\n", "line 3: the value of column 'drink'"),
    (GOOD + "tea,True,1," + "9" * 600 + "\n" + "tea,True,1,20\n" * 100, "line"),
])
def test_what_is_wrong_costs_nothing_and_is_named_by_its_line(tmp_path, monkeypatch, text, why):
    monkeypatch.setattr(privatizing, "_BLOCK_BYTES", 1 << 8)
    ledger, path = Ledger(10.0, path=tmp_path / "ledger.sqlite"), tmp_path / "in.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=why) as caught:
        privatize_csv(path, row_survey(), tmp_path / "out.parquet", ledger=ledger)
    error = caught.value
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__ or error.__context__
    assert ledger.spent().epsilon == 0
    assert {each.name for each in tmp_path.iterdir()} <= {"in.csv", "ledger.sqlite", "ledger.sqlite-journal"}


def test_a_ledger_is_charged_once_before_the_file_is_there(tmp_path):
    survey, path = row_survey(), tmp_path / "in.csv"
    path.write_text(GOOD)
    ledger = Ledger(3.0, path=tmp_path / "ledger.sqlite")
    privatize_csv(path, survey, tmp_path / "out.parquet", ledger=ledger)
    assert ledger.spent().epsilon == 2.0
    with pytest.raises(BudgetExceededError):
        privatize_csv(path, survey, tmp_path / "more.parquet", ledger=ledger)
    assert not (tmp_path / "more.parquet").exists()


@pytest.mark.parametrize("text", [GOOD, GOOD + "no answer\n", "", None])
def test_strict_mode_tells_nothing_of_the_file(tmp_path, text):
    path = tmp_path / "in.csv"
    if text is not None:
        path.write_text(text)
    with config_context(strict=True), pytest.raises(ValueError, match="strict mode: privatize_csv"):
        privatize_csv(path, row_survey(), tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize(("client", "why"), [
    (RAPPORFrequencyEstimator(categories=[["a", "b"]]), "keep no answers"),
    (PCKVEstimator(keys=["a", "b"], bounds=(0, 1), padding_length=2), "numbers or categories"),
    (GRRFrequencyEstimator(categories=[["1", 1]]), "texts differ"),
])
def test_surveys_that_are_not_read_from_csv(tmp_path, client, why):
    (tmp_path / "in.csv").write_text("a\n1\n")
    with pytest.raises(ValueError, match=why):
        privatize_csv(tmp_path / "in.csv", Survey(client, name="x"), tmp_path / "out.parquet")


@pytest.mark.parametrize(("text", "expected"), [
    ("drink;age", "'drink' is not there, and the line has semicolons"), ("drink\tage", "the line has tabs"),
    ("drink,Age", "'age' is not there"), ("drink,age,age", "'age' is there 2 times"), ("", "'drink' is not there"),
    (f"{SECRET};drink", "semicolons"), (f'drink,age\n{SECRET},3', "'drink' must be .* one of its values"),
    ('drink,age\ntea,"1,5"', "'age' must be .* a number with a decimal point"),
    ("drink,age\ntea,", "'age' must be .* and no empty value"),
])
def test_a_file_of_another_program_gets_advice(text, expected):
    survey = Survey(MixedEstimator([
        ("drink", GRRFrequencyEstimator(categories=[["tea", "water"]]), ["drink"]),
        ("age", PMTransformer(bounds=(17, 90)), ["age"]),
    ], epsilon=1.0), name="s")
    with pytest.raises(ValueError, match=expected) as info:
        privatize_csv(io.BytesIO(text.encode()), survey, io.BytesIO())
    assert SECRET not in str(info.value)


def test_columns_that_are_not_read_may_have_no_name():
    survey = Survey(PMTransformer(bounds=Domain({"age": (17, 90)})), name="s")
    assert privatize_csv(io.BytesIO(b",age,x,x\n0,30,,\n1,40,,\n"), survey, io.BytesIO()) == 2
