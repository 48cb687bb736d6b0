"""`dpestim survey` and `dpestim audit`: what a domain becomes, and what a changed file is called."""

import io
import json
import math

import pandas as pd
import pytest

from dpestim.accounting import Ledger
from dpestim.collection import Collector, Survey
from dpestim.commands import main
from dpestim.commands.parser import DONE, FAILED, REJECTED, USAGE
from dpestim.commands.surveys import client_for
from dpestim.inputs import Domain

DOMAIN = Domain({"drink": ["tea", "coffee", "water"], "age": (17, 90)})


def run(capsys, *words):
    code = main(list(map(str, words)))
    return (code, *capsys.readouterr())


@pytest.fixture
def files(tmp_path):
    DOMAIN.save(tmp_path / "domain.toml")
    return tmp_path


def new(capsys, files, *more):
    known = ("--domain", files / "domain.toml", "--epsilon", "1/3", "--name", "Drinks")
    return run(capsys, "survey", "new", *known, *more)


def test_a_domain_becomes_a_survey(files, capsys):
    path = files / "survey.json"
    code, out, err = new(capsys, files, "--question", "drink=What do you = drink?", "--valid-until", "2030-01-31",
                         "-o", path)
    assert (code, out) == (DONE, "")
    survey = Survey.load(path)
    assert survey.id in err
    assert survey.privacy_.epsilon * 3 == 1
    assert (survey.name, survey.valid_until.isoformat()) == ("Drinks", "2030-01-31")
    assert json.loads(survey.to_json())["columns"][0]["question"] == "What do you = drink?"
    code, out, _ = new(capsys, files)
    assert Survey.from_json(out).privacy_ == survey.privacy_
    for question in ("drink", "colour=Which?"):
        code, _, err = new(capsys, files, "--question", question)
        assert (code, "--question must be COLUMN=TEXT" in err) == (FAILED, True)


def test_show_and_check(files, capsys, monkeypatch):
    path = files / "survey.json"
    new(capsys, files, "--question", "drink=What do you drink?", "-o", path)
    code, out, _ = run(capsys, "survey", "show", path)
    assert code == DONE
    assert "drink: What do you drink? Answers: tea, coffee, water." in out
    assert "age: no question is given. Answers: 17 to 90." in out
    assert out.rstrip("\n") == str(Survey.load(path))
    found = json.loads(run(capsys, "survey", "show", path, "--json")[1])
    assert [row["column"] for row in found["rows"]] == ["drink", "age"]
    assert found["asked"][0]["question"] == "What do you drink?"
    assert found["guarantee"] in out
    monkeypatch.setattr("sys.stdin", io.StringIO(path.read_text()))
    assert json.loads(run(capsys, "survey", "check", "-", "--json")[1])["valid"] is True
    path.write_text(path.read_text().replace('"1/3"', '"2/3"'))
    code, out, err = run(capsys, "survey", "check", path, "--json")
    assert (code, json.loads(out)) == (REJECTED, {"valid": False})
    assert "does not follow" in err
    assert run(capsys, "survey", "show", path)[0] == FAILED
    assert run(capsys, "survey")[0] == USAGE


@pytest.mark.parametrize(("column", "epsilon", "expected"), [
    (["a", "b"], 1.0, "GRRFrequencyEstimator"), (list(range(11)), 1.0, "OUEFrequencyEstimator"),
    (list(range(11)), 3.0, "GRRFrequencyEstimator"), (list(range(2000)), 1.0, "OLHFrequencyEstimator"),
    ((0, 1), 1.0, "HMTransformer"),
])
def test_one_column_gets_the_mechanism_of_the_least_error(column, epsilon, expected):
    client = client_for(Domain({"x": column}), epsilon)
    assert type(client).__name__ == expected
    assert Survey(client, name="x").privacy_.epsilon == epsilon


def test_a_named_mechanism(capsys, files):
    client = client_for(Domain({"x": ["a", "b"], "y": ["c", "d", "e"]}), 2.0, "SUE")
    assert [type(law).__name__ for law in client._columns_now().laws] == ["SUE", "SUE"]
    for words, why in ((("SUE",), "several kinds"), (("nothing",), "must name a class of dpestim.local")):
        code, _, err = new(capsys, files, "--mechanism", *words)
        assert (code, why in err) == (FAILED, True)
    with pytest.raises(ValueError, match="MixedEstimator is not"):
        client_for(Domain({"x": ["a", "b"]}), 2.0, "Mixed")


def test_audit(files, capsys):
    path = files / "survey.json"
    new(capsys, files, "-o", path)
    code, out, _ = run(capsys, "audit", path, "--json")
    found = json.loads(out)
    assert (code, found["kept"]) == (DONE, True)
    drink = found["rows"][0]
    assert drink["exact epsilon"] == pytest.approx(1 / 3)
    odds = math.exp(1 / 3)
    # a report is about one of the two columns: without it the guess is blind
    assert drink["best guess right"] == pytest.approx((odds / (odds + 2) + drink["without report"]) / 2)


def test_collect_and_report(files, capsys, monkeypatch):
    survey_path, state = files / "survey.json", files / "state.sqlite"
    new(capsys, files, "-o", survey_path)
    survey = Survey.load(survey_path)
    client = survey.client(random_state=0)
    rows = pd.DataFrame({"drink": ["tea", "coffee"] * 500, "age": [20.0, 60.0] * 500})
    survey.write(files / "a.parquet", client.privatize(rows[:600]))
    lines = "".join(f'{{"report": "{text}"}}\n' for text in survey.encode_text(client.privatize(rows[600:])))
    known = ("-s", survey_path, "--state", state, "--json", "--quiet")
    code, out, err = run(capsys, "collect", files / "*.parquet", *known)
    assert (code, json.loads(out)["added"], err) == (DONE, 600, "")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    assert json.loads(run(capsys, "collect", "-", *known)[1])["reports"] == 1000
    code, out, _ = run(capsys, "collect", files / "*.parquet", *known)
    assert (code, json.loads(out)["added"], json.loads(out)["reports"]) == (DONE, 0, 1000)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"nonsense\n" + lines[:100].encode())))
    code, out, _ = run(capsys, "collect", "-", *known)
    assert code == REJECTED
    assert sum(json.loads(out)["rejected"].values()) == 1

    (files / "raw.csv").write_text("drink,age\nsecret,20\n")
    code, _, err = run(capsys, "collect", files / "a.parquet", files / "raw.csv", *known, "--keep-rejected",
                       files / "bad")
    assert (code, "dpestim privatize" in err, "secret" in err, (files / "bad").exists()) == (FAILED, True, False, False)

    code, out, err = run(capsys, "report", state, "--html", files / "report.html", "--json")
    found = json.loads(out)
    assert (code, found["survey"]) == (DONE, survey.id)
    assert found["rows"][0]["value"] == Collector.open(state).server().frequencies_["drink"][0]
    page = (files / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert f"{found['rows'][0]['value']:.3g}"[:4] in page
    assert run(capsys, "report", files / "none")[0] == FAILED
    assert run(capsys, "report", survey_path)[0] == FAILED


def test_privatize(files, capsys, monkeypatch):
    survey, ledger = files / "survey.json", files / "ledger.sqlite"
    new(capsys, files, "-o", survey)
    rows = "id,age,drink\n" + "".join(f"{i},{20 + i % 50},{('tea', 'water')[i % 2]}\n" for i in range(300))
    (files / "rows.csv").write_text(rows)
    Ledger(1.0, path=ledger)
    code, out, err = run(capsys, "privatize", files / "rows.csv", "-s", survey, "-o", files / "a.parquet", "--ledger",
                         ledger)
    assert (code, out) == (DONE, "")
    assert "300 reports of" in err
    assert Ledger.open(ledger).spent().epsilon * 3 == 1
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(rows.encode())))
    out = io.TextIOWrapper(io.BytesIO())
    with monkeypatch.context() as patched:
        patched.setattr("sys.stdout", out)
        assert main(["privatize", "-", "-s", str(survey), "-o", "-", "--quiet"]) == DONE
    lines = out.buffer.getvalue().decode().splitlines()
    assert len(lines) == 300
    assert set(json.loads(lines[0])) == {"report", "nonce"}
    (files / "b.jsonl").write_text("\n".join(lines) + "\n")
    code, out, _ = run(capsys, "collect", files / "a.parquet", files / "b.jsonl", "-s", survey, "--state",
                       files / "state.sqlite", "--json", "--quiet")
    assert (code, json.loads(out)["reports"]) == (DONE, 600)
    (files / "rows.csv").write_text(rows.replace("7,27,water", "7,27,secret"))
    code, _, err = run(capsys, "privatize", files / "rows.csv", "-s", survey, "-o", files / "c.parquet")
    assert (code, "line 9" in err, "secret" in err, (files / "c.parquet").exists()) == (FAILED, True, False, False)
    assert run(capsys, "privatize", "-", "-s", "-", "-o", "-")[0] == FAILED


def test_paths_that_are_not_there_are_no_silent_success(files, capsys):
    survey, rows, state = files / "survey.json", files / "rows.csv", files / "state.sqlite"
    new(capsys, files, "-o", survey)
    rows.write_text("drink,age\ntea,30\n")
    for words, expected in (
        (("privatize", rows, "-s", survey, "-o", files / "none" / "a.parquet"), "there is no folder"),
        (("privatize", files / "none.csv", "-s", survey, "-o", files / "a.parquet"), "there is no file"),
        (("privatize", rows, "-s", survey, "-o", files / "a.json"), "--output must end in"),
        (("collect", files / "none.parquet", "-s", survey, "--state", state), "there is no file"),
        (("report", state), "has no counted report yet"),
        (("privatize", rows, "-s", rows, "-o", files / "a.csv"), f"the survey file {rows}: "),
    ):
        code, out, err = run(capsys, *words)
        assert (code, out, expected in err, ".new" in err) == (FAILED, "", True, False), words
    # a file whose name has signs of patterns is that file
    assert run(capsys, "privatize", rows, "-s", survey, "-o", files / "a[1].parquet")[0] == DONE
    known = ("-s", survey, "--state", state, "--json", "--quiet")
    assert json.loads(run(capsys, "collect", files / "a[1].parquet", *known)[1])["added"] == 1
    assert json.loads(run(capsys, "collect", files / "*.parquet", *known)[1])["reports"] == 1


def test_demo(tmp_path, capsys):
    code, out, err = run(capsys, "demo", "--output", tmp_path)
    assert code == DONE
    assert "height" in out
    assert err.count("$ dpestim") == 5
    assert (tmp_path / "report.html").stat().st_size > 1000
