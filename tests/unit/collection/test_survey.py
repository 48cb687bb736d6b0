"""`Survey`: domains of all kinds, what is refused and why, versions, and what must never change."""

import ast
import datetime
import json
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpestim.collection
from dpestim import Categories, Domain, Numbers
from dpestim.accounting import Ledger
from dpestim.collection import Survey
from dpestim.collection.canonical import DEEPEST, canonical, id_of, parsed
from dpestim.collection.messages import sealed
from dpestim.collection.values import from_plain, shortest, to_plain
from dpestim.exceptions import PrivacyLeakWarning
from dpestim.local import (
    CMSFrequencyEstimator,
    GRRFrequencyEstimator,
    LDPNaiveBayes,
    LDPSGDClassifier,
    LGRRFrequencyEstimator,
    MeanEstimator,
    MixedEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    PersonalizedEstimator,
    PMTransformer,
    PrivatizedColumns,
    PrivKVMEstimator,
    PrivUnitTransformer,
    RAPPORFrequencyEstimator,
    SDPMTransformer,
    SWTransformer,
    URRFrequencyEstimator,
    extend,
)

DAY = datetime.date(2026, 11, 26)
ROOM = Path(dpestim.collection.__file__).parent


def again(survey):
    return Survey.from_json(survey.to_json())


def grr(**params):
    return GRRFrequencyEstimator(**{"categories": [["tea", "coffee", "water"]], **params})


def changed(survey, **parts):
    return json.dumps({**json.loads(survey.to_json()), **parts})


# ---------------------------------------------------------------- domains

@pytest.mark.parametrize("values", [
    ["tea", "", "\"\\\n\u2028é\U0001f600"], [3, -1, 0], [False, True], [0.5, 1e-7, 1e300, 17.0],
    [1 << 60, -(1 << 53), 2],
    [DAY, datetime.date(1, 1, 1)], [datetime.datetime(2026, 1, 2, 3, 4, 5, 6), DAY], ["a", None], ["a", float("nan")],
    [b"a", b"\xff"], [("a", 1), ("b", 2)], [Decimal("0.10"), Fraction(1, 3)], [datetime.timedelta(1), datetime.time(3)],
    [1, "1", 0.5], np.array([1, 2]), np.array(["a", "b"]), np.array(["2026-01-02", "2026-01-03"], "M8[D]"),
    np.array([0.5, np.nan]), range(300), pd.Index(["x", "y"]), pd.Series([1.5, 2.5]), ("a", "b"),
], ids=repr)
def test_categories_of_all_kinds_travel(values):
    survey = Survey(grr(categories=[values]), name="x")
    loaded = again(survey)
    assert loaded == survey
    own, encoder = (s.layout.columns.columns[0].encoder for s in (survey, loaded))
    assert encoder.plain_categories() == own.plain_categories()
    assert list(map(type, encoder.plain_categories())) == list(map(type, own.plain_categories()))
    rows = np.empty((len(values), 1), object)
    rows[:, 0] = list(values)
    wanted = grr(categories=[values], random_state=0).privatize(rows)
    assert np.array_equal(loaded.client(random_state=0).privatize(rows), wanted)


def test_a_domain_travels_with_units_missing_values_and_others():
    domain = Domain({"age": Numbers(17, 90, unit="years", missing=True),
                     "town": Categories(["Bern", "Rom"], True, "else")})
    numbers = again(Survey(PMTransformer(bounds=domain[["age"]]), name="x"))
    towns = again(Survey(grr(categories=domain[["town"]]), name="x"))
    said, own = (json.loads(s.to_json())["columns"][0] for s in (numbers, towns))
    assert said["domain"] == {"kind": "numbers", "low": "17", "high": "90", "unit": "years", "missing": True}
    assert (said["name"], said["law"]["name"]) == ("age", "NumberOrMissing")
    assert own["domain"] == {"kind": "categories", "values": ["Bern", "Rom", "else", None], "missing": True}
    frame = pd.DataFrame({"age": [20.0, np.nan], "town": ["Bern", None]})
    for survey, columns in ((numbers, ["age"]), (towns, ["town"])):
        wanted = survey.client(random_state=0).privatize(frame[columns])
        assert np.array_equal(survey.client(random_state=0).privatize(pl.from_pandas(frame[columns])), wanted)
        assert survey.server().aggregate(survey.decode(survey.encode(wanted))).n_users_ == 2


def test_one_column_is_meant_where_the_data_would_say_how_many():
    for client in (PMTransformer(bounds=(0, 1)), RAPPORFrequencyEstimator(categories=None),
                   CMSFrequencyEstimator(categories=None), PrivUnitTransformer(radius=2.0)):
        survey = again(Survey(client, name="x"))
        assert len(json.loads(survey.to_json())["columns"]) == 1
    for client in (PMTransformer(bounds=(0, 1)), PMTransformer(bounds=Numbers(0, 1))):
        with pytest.raises(ValueError, match="X has 2 features"):
            Survey(client, name="x").client().privatize([[0.5, 0.5]])
    for client in (RAPPORFrequencyEstimator(categories=None), CMSFrequencyEstimator(categories=None)):
        with pytest.raises(ValueError, match="X has 2 features"):
            Survey(client, name="x").client().privatize([["a", "b"]])
    two = [[0.5, 0.5]]
    for fitted in (PMTransformer(bounds=(0, 1)).fit(two), MeanEstimator(PMTransformer(bounds=(0, 1))).fit(two)):
        assert again(Survey(fitted, name="x")).layout.columns.n_features == 2
    bayes = Survey(LDPNaiveBayes(classes=[0, 1], bounds=(0, 1)), name="x")
    assert bayes.client().privatize([[0.5]], [0]).shape == (1, bayes.layout.columns.report_width)
    with pytest.raises(ValueError, match="columns of X"):
        bayes.client().privatize(two, [0])
    text = again(Survey(RAPPORFrequencyEstimator(categories=[None, ["a", "b"]]), name="x"))
    assert [c["domain"]["kind"] for c in json.loads(text.to_json())["columns"]] == ["text", "categories"]
    rows = [["anything", "a"], ["else", "b"]]
    reports = text.client(random_state=0).privatize(rows)
    assert text.server().aggregate(text.decode(text.encode(reports))).n_users_ == 2


def test_names_of_columns_are_those_of_the_client():
    mixed = MixedEstimator([("a", grr(), ["drink"]), ("b", PMTransformer(bounds=([0, 0], [1, 1])), ["x", "y"])])
    survey = Survey(mixed, name="x", questions={"y": "How many?"})
    assert [c["name"] for c in json.loads(again(survey).to_json())["columns"]] == ["drink", "x", "y"]
    assert [c["question"] for c in json.loads(survey.to_json())["columns"]] == [None, None, "How many?"]
    joint = Survey(PrivUnitTransformer(center=[0.0, 1.0]), name="x")
    assert json.loads(joint.to_json())["columns"][0]["name"] == [0, 1]


def test_whoever_counts_is_found():
    bounds = {"bounds": (0, 1), "grid": 64}
    assert type(Survey(SWTransformer(**bounds), name="x").server()).__name__ == "DistributionEstimator"
    assert type(Survey(PMTransformer(**bounds), name="x").server()) is MeanEstimator
    survey = Survey(MeanEstimator(PMTransformer(**bounds)), name="x")
    assert type(survey.client()) is PMTransformer
    with Ledger(1.0) as ledger:
        survey.client().privatize([[0.5]])
    assert ledger.remaining().epsilon == 0


def test_what_a_client_is_used_with_is_left_out():
    ledger = Ledger(5.0)
    one = Survey(grr(ledger=ledger, random_state=3, n_jobs=2).fit([["tea"], ["tea"]]), name="x")
    assert one == Survey(grr(), name="x")
    client = again(one).client(ledger=ledger, random_state=1, n_jobs=2)
    assert (client.ledger, client.random_state, client.n_jobs) == (ledger, 1, 2)
    assert one.client().random_state is one.server().ledger is None
    assert one.privacy_.seeded is False
    assert Survey(grr(epsilon=1), name="x") == Survey(grr(epsilon=Fraction(1)), name="x") == one


# ---------------------------------------------------------------- learning in rounds

def test_a_round_of_pairs_is_a_survey_of_its_own():
    server = PrivKVMEstimator(3.0, keys=["a", "b"], n_rounds=3, random_state=0)
    X, _ = server._test_data(300)
    first = Survey(server, name="x")
    server.partial_fit(X).next_round()
    second = again(Survey(server.client(), name="x"))
    assert second != first
    assert json.loads(second.to_json())["columns"][0]["law"]["name"] == "Feedback"
    reports = second.client(random_state=5).privatize(X)
    assert np.array_equal(reports, server.client().set_params(random_state=5).privatize(X))
    with pytest.raises(ValueError, match="another survey"):
        first.decode(second.encode(reports))
    counted = second.server().aggregate(second.decode(second.encode(reports)))
    assert server.merge(counted).n_users_ == 300
    server.next_round()
    third = again(Survey(server.client(), name="x"))
    reports = third.client(random_state=6).privatize(X)
    assert np.array_equal(reports, server.client().set_params(random_state=6).privatize(X))
    said = json.loads(second.to_json())
    for published in ([["0.5"]], [["2", "0"]], [["0.5", "0.5"]] * 3, "0.5", [], [["0.5", "x"]]):
        said["client"]["round"] = {"published": published}
        with pytest.raises(ValueError, match=r"published|shortest"):
            Survey.from_json(json.dumps(said))


def test_a_server_of_a_round_goes_on_from_there():
    model = LDPSGDClassifier(4.0, data_norm=1.0, classes=[0, 1], random_state=0)
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = (X[:, 0] > 0).astype(int)
    model.next_round(n_features=2)
    for _ in range(3):
        survey = again(Survey(model, name="x"))
        reports = survey.decode(survey.encode(survey.client(random_state=1).privatize(X, y)))
        other = survey.server().aggregate(reports)
        other.next_round()
        model.aggregate(reports).next_round()
        assert np.array_equal(other.coef_, model.coef_)
        assert Survey(other, name="x") == Survey(model, name="x")


def test_a_round_must_be_open_and_of_the_model():
    model = LDPSGDClassifier(2.0, data_norm=1.0, classes=[0, 1])
    with pytest.raises(ValueError, match=r"next_round\(n_features"):
        Survey(model, name="x")
    model.next_round(n_features=2)
    said = json.loads(Survey(model, name="x").to_json())
    for part, value in (("weights", [["0"]]), ("weights", "0"), ("average", [["1e999", "0", "0"]]), ("number", "0"),
                        ("steps", -1), ("centre", ["0"]), ("features", 0), ("features", "2"), ("more", 1)):
        wrong = {**said, "client": {**said["client"], "round": {**said["client"]["round"], part: value}}}
        with pytest.raises(ValueError):
            Survey.from_json(json.dumps(wrong))
    wrong = {**json.loads(Survey(grr(), name="x").to_json())}
    wrong["client"]["round"] = said["client"]["round"]
    with pytest.raises(ValueError, match="has no rounds"):
        Survey.from_json(json.dumps(wrong))
    with pytest.warns(PrivacyLeakWarning):
        learned = LDPSGDClassifier(2.0).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="must declare"):
        Survey(learned, name="x")


# ---------------------------------------------------------------- what is refused

@pytest.mark.parametrize(("make", "says"), [
    (lambda: grr(categories="auto"), "declare its domain"),
    (lambda: PMTransformer(), "declare its domain"),
    (lambda: LDPNaiveBayes(classes=[0, 1]), "declare its domain"),
    (lambda: PersonalizedEstimator(grr(), {"x": {}}), "PersonalizedEstimator make a survey for each group"),
    (lambda: PrivatizedColumns([("a", grr(), [0])]), "PrivatizedColumns keeps each report"),
    (lambda: MixedEstimator([("a", grr(), lambda frame: [0])]), "before fit"),
    (lambda: grr(categories=[[object(), "a"]]), "cannot write down"),
    (lambda: grr(categories=[["\ud800", "a"]]), "surrogates"),
    (lambda: grr(categories=[[pd.Timestamp("2026-01-01 00:00:00.000000001"), DAY]]), "nanoseconds"),
    (lambda: "GRRFrequencyEstimator", "another one"),
    (lambda: GRRFrequencyEstimator, "another one"),
    (lambda: Survey(grr(), name="x"), "another one"),
])
def test_what_cannot_travel_says_why(make, says):
    with pytest.raises(ValueError, match=says):
        Survey(make(), name="x")


@pytest.mark.parametrize(("parts", "says"), [
    ({"name": ""}, "name"), ({"name": 3}, "name"), ({"valid_from": "26.11.2026"}, "valid_from"),
    ({"valid_until": "2026-11-31"}, "valid_until"), ({"valid_until": 5}, "valid_until"),
    ({"valid_from": "2026-11-27", "valid_until": DAY}, "before valid_from"), ({"questions": ["a", "b"]}, "questions"),
    ({"questions": {"x": "?"}}, "questions"), ({"questions": [3]}, "questions"), ({"name": "\ud800"}, "surrogates"),
])
def test_names_days_and_questions_are_checked(parts, says):
    with pytest.raises(ValueError, match=says):
        Survey(grr(), **{"name": "x", **parts})


def test_days_may_be_dates_and_questions_have_all_forms():
    survey = Survey(grr(), name="x", valid_from=DAY, valid_until=datetime.datetime(2027, 1, 31, 12), questions="What?")
    assert (survey.valid_from, survey.valid_until) == (DAY, datetime.date(2027, 1, 31))
    assert survey == Survey(grr(), name="x", valid_from="2026-11-26", valid_until="2027-01-31", questions=["What?"])
    assert survey == Survey(grr(), name="x", valid_from="2026-11-26", valid_until="2027-01-31", questions={0: "What?"})
    assert survey != Survey(grr(), name="x")


def test_a_newer_version_says_what_to_update():
    survey = Survey(grr(), name="x")
    for version in ("1.3", "2.0", "10.0"):
        with pytest.raises(ValueError, match=rf"{version} .*newer than 1\.2.*update dpestim"):
            Survey.from_json(changed(survey, version=version))
    for version in ("0.9", "1", "1.0 ", "1.0.0", 1, None, "１.1"):
        with pytest.raises(ValueError, match="version must be"):
            Survey.from_json(changed(survey, version=version))
    for text in ("{}", "[]", "null", '"x"', changed(survey, format="dpestim domain")):
        with pytest.raises(ValueError, match="must be a survey"):
            Survey.from_json(text)


def test_a_survey_with_another_threshold_is_refused_by_name():
    survey = Survey(OUEFrequencyEstimator(1.0, categories=[["a", "b"]]), name="x")
    said = json.loads(survey.to_json())
    said["columns"][0]["law"]["constants"]["false_threshold"] = "1"
    with pytest.raises(ValueError, match=r"columns\[0\]\.law\.constants\.false_threshold does not follow"):
        Survey.from_json(json.dumps(said))


@pytest.mark.parametrize("text", [
    '{"a": 1, "a": 2}', '{"a": 1.0}', '{"a": 1e3}', '{"a": NaN}', '{"a": -Infinity}', '{"a": 9007199254740992}',
    '{"a": -0}', '{"a": "\\ud800"}', "\ufeff{}", "", "{", b"\xff", '{"é": 1}', '{"": 1}',
    '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
    '{"a": ' + "[" * (DEEPEST + 2) + "]" * (DEEPEST + 2) + "}", None, 3,
])
def test_json_that_two_readers_may_read_in_two_ways_is_refused(text):
    with pytest.raises(ValueError):
        parsed(text)


def test_the_canonical_form_and_numbers_as_text():
    value = {"b": [True, None, -5, "é\u2028\x7f\x1f\"\\\t"], "a": {"z z": 1, "B": {}}}
    assert canonical(value).decode() == ('{"a":{"B":{},"z z":1},"b":[true,null,-5,"é\u2028\x7f\\u001f\\"\\\\\\t"]}')
    texts = {17.0: "17", 0.1: "0.1", 1e-7: "1e-7", 1e22: "1e22", -2.5e-300: "-2.5e-300", 0.0001: "0.0001", -0.0: "-0"}
    assert {x: shortest(x) for x in texts} == texts
    for text in ("17.0", "1e-07", "+1", ".5", "1e400", "nan", "0x1", " 1", "1_0", "٣"):
        with pytest.raises(ValueError):
            from_plain({"number": text})
    for wrong in ({"fraction": "2/4"}, {"fraction": "1/0"}, {"integer": "5"}, {"integer": "00"}, {"date": "2026-1-1"},
                  {"bytes": "A"}, {"tuple": 1}, {"dict": [[1]]}, {"dict": [["a", 1], ["a", 2]]}, {"other": 1}, {},
                  {"duration": "9" * 20}, {"decimal": "sNaN"}, {"dict": [[{"dict": []}, 1]]},
                  {"number": "1", "date": "x"}):
        with pytest.raises(ValueError):
            from_plain(wrong)
    for value in (float("nan"), float("inf"), Decimal("NaN"), object(), {1, 2}, lambda: 0):
        with pytest.raises(ValueError):
            from_plain(to_plain(value))


def test_a_client_must_be_what_its_parameters_say():
    mixed = MixedEstimator([("a", grr(), [0])], epsilon=3.0).fit(np.full((20, 1), "tea", object))
    with pytest.raises(ValueError, match="part of a MixedEstimator"):
        Survey(mixed.named_estimators_["a"], name="x")


def test_parameters_are_all_there_and_written_in_one_way():
    said = json.loads(Survey(grr(categories=[[DAY, 0.5]]), name="x").to_json())
    for change in (lambda own: own.pop("postprocess"), lambda own: own.update(epsilon="2/2"),
                   lambda own: own.update(categories=[[{"date": "20261126"}, {"number": "0.5"}]]),
                   lambda own: own.update(categories=[[{"date": "2026-11-26"}, {"number": "0.50"}]]),
                   lambda own: own.update(categories={"tuple": said["client"]["parameters"]["categories"]}, more=1)):
        wrong = json.loads(json.dumps(said))
        change(wrong["client"]["parameters"])
        wrong["id"] = id_of(wrong)
        with pytest.raises(ValueError, match="client"):
            Survey.from_json(json.dumps(wrong))


def test_reports_that_no_client_sends_are_refused():
    survey = Survey(grr(), name="x")  # (three values in two bits)
    for payload, says in ((3, "code below 3"), (4, "zeros"), (128, "zeros")):
        message = sealed(np.array([[payload]], np.uint8), survey.id)
        with pytest.raises(ValueError, match=says):
            survey.decode(message)
    mixed = Survey(MixedEstimator(**MixedEstimator._test_params()[0]), name="x")  # (three bits of a column, of five)
    fine = mixed.pack(mixed.client().privatize(mixed.server()._test_data(50)[0]))
    assert mixed.unpack(fine).shape[0] == 50
    for payload in (5, 6, 7, 0b10000000, 0b01000000):
        assert not mixed.layout.possible(np.array([[payload]], np.uint8)).all()
        with pytest.raises(ValueError, match="no other columns"):
            mixed.unpack(np.array([[payload]], np.uint8))
    with pytest.raises(ValueError, match="at least one"):
        survey.decode([])


def test_a_message_has_one_text():
    survey = Survey(grr(), name="x")
    [text] = survey.encode_text(survey.client().privatize([["tea"]]))
    assert survey.decode_text(text).shape == (1, 1)
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = text[:-1] + last[last.index(text[-1]) ^ 1]  # (bits behind the last byte)
    for wrong in (other, text + "=", text + "A", text[:-1], "", text.replace("A", "+", 1), text + "\n", None, 3, b"x"):
        with pytest.raises(ValueError, match=r"messages? |texts must"):
            survey.decode_text(wrong if not isinstance(wrong, str) else [text, wrong])


# ---------------------------------------------------------------- classes of others

def test_classes_of_others_are_known_once_they_are_registered():
    class Elsewhere(GRRFrequencyEstimator):
        pass

    with pytest.raises(ValueError, match=r"extend\.register"):
        Survey(Elsewhere(categories=[["a", "b"]]), name="x")
    try:
        assert extend.register(Elsewhere) is Elsewhere
        text = Survey(Elsewhere(categories=[["a", "b"]]), name="x").to_json()
        assert type(Survey.from_json(text).client()) is Elsewhere
    finally:
        extend.unregister(Elsewhere)
    with pytest.raises(ValueError, match=r"class of dpestim\.local"):
        Survey.from_json(text)
    # (what was known of the name is forgotten)
    other = extend.register(type("Elsewhere", (OUEFrequencyEstimator,), {}))
    try:
        with pytest.raises(ValueError, match="does not follow"):
            Survey.from_json(text)
    finally:
        extend.unregister(other)
    impostor = type("GRRFrequencyEstimator", (GRRFrequencyEstimator,), {})
    for cls in (impostor, int, 3):
        with pytest.raises(ValueError, match="cls must"):
            extend.register(cls)
    for name in ("Ledger", "dpestim.local.GRRFrequencyEstimator", "os", "plan", "", 3):
        with pytest.raises(ValueError, match=r"client"):
            Survey.from_json(changed(Survey(grr(), name="x"), client={"class": name, "parameters": {}}))


def test_nothing_in_the_room_runs_what_a_file_says():
    """No pickle, no eval, nothing imported by a name that is not in the source."""
    forbidden = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml", "importlib",
                 "runpy", "subprocess", "ctypes"}
    for path in ROOM.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not forbidden & {part for name in names for part in name.split(".")}, path
            called = getattr(getattr(node, "func", None), "id", None)
            assert called not in ("eval", "exec", "compile", "__import__", "globals", "locals"), path
            assert getattr(getattr(node, "func", None), "attr", None) not in ("import_module", "loads_pickle"), path
    assert len(list(ROOM.glob("*.py"))) > 5


# ---------------------------------------------------------------- an object

def test_it_is_shown_pickled_and_compared_as_what_it_says():
    survey = Survey(grr(), name="<b>", questions="What?")
    assert "drawn at random there" in str(survey)
    assert "<b>" not in survey._repr_html_()
    assert survey.id in repr(survey)
    twin = pickle.loads(pickle.dumps(survey))
    assert twin == survey
    assert hash(twin) == hash(survey)
    assert survey != 3
    assert survey.to_frame().shape == (1, 5)


def test_a_file_is_written_and_read(tmp_path):
    survey = Survey(grr(), name="drinks", questions="Was trinkst du: Café?")
    survey.save(tmp_path / "a.json")
    assert Survey.load(tmp_path / "a.json") == survey
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert text.startswith(f'{{\n  "id": "{survey.id}",\n  "format": "dpestim survey"')
    assert "Café" in text


#: What files of version 1.0 must be for ever: whoever kept one can read it with every later version.
KEPT = {
    "grr": lambda: GRRFrequencyEstimator(0.5, categories={"drink": ["tea", "coffee", None]}),
    "oue": lambda: OUEFrequencyEstimator(1.0, categories=[list(range(20))]),
    "olh": lambda: OLHFrequencyEstimator(3, categories=[["a", 1, 0.5, DAY]]),
    "pm": lambda: PMTransformer(2.0, bounds={"age": Numbers(17, 90, unit="years", missing=True)}),
    "mixed": lambda: MixedEstimator([("kind", grr(), ["kind"]), ("size", PMTransformer(bounds=(0, 2.5)), ["size"])]),
    "kept": lambda: LGRRFrequencyEstimator(1.0, categories=[["a", "b"]]),
    "relaxed": lambda: URRFrequencyEstimator(1.0, categories=[["a", "b", "c"]], non_sensitive=[["c"]]),
    "low": lambda: SDPMTransformer(1.0, bounds={"x": (0, 1)}, low_sensitivity={"x": (0, 0.5)}),
}


#: ... and of version 1.2, by language.
SPOKEN = {
    "german": ("de", KEPT["mixed"]),
    "german_relaxed": ("de", KEPT["relaxed"]),
    "german_kept": ("de", lambda: RAPPORFrequencyEstimator(2.0, **_KEPT_BITS)),
    "english": ("en", KEPT["grr"]),
}


@pytest.mark.parametrize("name", SPOKEN)
def test_files_in_a_language_can_be_read_for_ever(name):
    """If this fails, the files of everybody are refused: keep what they say, or give the format another version."""
    path, (language, client) = Path(__file__).parent / "surveys" / f"{name}.json", SPOKEN[name]
    survey = Survey(client(), name=name, valid_until="2027-01-31", language=language)
    assert Survey.load(path) == survey
    assert path.read_text(encoding="utf-8") == survey.to_json()


@pytest.mark.parametrize(("change", "wrong"), [
    ({"language": "en"}, r"guarantee\.text does not follow"), ({"language": "fr"}, "language must be one of"),
    ({"language": None}, "does not follow"), ({"version": "1.0"}, "version does not follow"),
    ({"language": ["de"]}, "language must be one of"),
])
def test_a_survey_in_another_language_than_it_says_is_refused(change, wrong):
    with pytest.raises(ValueError, match=wrong):
        Survey.from_json(changed(Survey(grr(), name="x", language="de"), **change))
    with pytest.raises(ValueError, match="does not follow"):
        Survey.from_json(changed(Survey(grr(), name="x"), language="de"))


@pytest.mark.parametrize("name", KEPT)
def test_files_of_this_version_can_be_read_for_ever(name):
    """If this fails, the files of everybody are refused: keep what they say, or give the format another version."""
    path = Path(__file__).parent / "surveys" / f"{name}.json"
    survey = Survey(KEPT[name](), name=name, valid_until="2027-01-31")
    assert Survey.load(path) == survey
    assert path.read_text(encoding="utf-8") == survey.to_json()


# ---------------------------------------------------------------- many reports of one person

_KEPT_BITS = {"categories": [["a", "b", "c"]], "n_bits": 16}


def _row(*clients, **parameters):
    return MixedEstimator([(str(at), client, [at]) for at, client in enumerate(clients)], epsilon=2.0, **parameters)


@pytest.mark.parametrize("client", [
    LGRRFrequencyEstimator(1.0, categories=[["a", "b"]]), RAPPORFrequencyEstimator(2.0, **_KEPT_BITS),
    RAPPORFrequencyEstimator(2.0, f=0.0, **_KEPT_BITS), grr(), OUEFrequencyEstimator(1.0, categories=[["a", "b"]]),
    _row(*(RAPPORFrequencyEstimator(f=f, **_KEPT_BITS) for f in (0.2, 0.3, 0.4)), n_sampled=2),
    _row(RAPPORFrequencyEstimator(**_KEPT_BITS), grr()), _row(grr(), grr()),
], ids=repr)
def test_a_survey_says_what_all_reports_from_one_state_promise_together(client):
    survey = Survey(client, name="x")
    said = json.loads(survey.to_json())["guarantee"]
    promised = getattr(client, "longitudinal_privacy_", None)
    wanted = promised.relaxed_epsilon if survey.keeps_answers else None
    assert said["longitudinal_epsilon"] == (None if wanted is None else str(Fraction(wanted)))
    assert ("all of your reports together have an epsilon" in said["text"]) == (wanted is not None)
    for other in ("1", None if wanted is not None else "80"):
        with pytest.raises(ValueError, match=r"guarantee\.longitudinal_epsilon does not follow"):
            Survey.from_json(changed(survey, guarantee={**said, "longitudinal_epsilon": other}))


def test_words_do_not_say_of_kept_answers_what_is_only_true_of_fresh_ones():
    law = LGRRFrequencyEstimator(1.0, categories=[["a", "b", "c"]])._columns_now().laws[0]
    first, once, kept = (np.array([[float(w.keep if x == y else w.other) for y in range(3)] for x in range(3)])
                         for w in (law.first, law.weights, law.second))
    first, once, kept = (matrix / matrix.sum(axis=1, keepdims=True) for matrix in (first, once, kept))
    same = first[0] @ kept[:, 0] ** 2  # two reports of an answer that stays: both say a
    other = once[1, 0] * once[2, 0]  # ... and of one that changes
    assert np.log(same / other) > 2 * float(law.epsilon) + 0.1
    for client in (LGRRFrequencyEstimator(1.0, categories=[["a", "b"]]), _row(RAPPORFrequencyEstimator(**_KEPT_BITS),
                                                                             grr())):
        assert "add up" not in Survey(client, name="x")._body["guarantee"]["text"]
