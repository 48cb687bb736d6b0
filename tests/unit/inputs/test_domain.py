"""`Domain`: what is public of a table, in files and as a table; its encoder; models of a declared table; messages."""

import copy
import datetime
import importlib.resources
import json
import pickle
import traceback
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import dpestim
from dpestim import Categories, Domain, Keys, Numbers, Text, config_context
from dpestim.accounting import Ledger
from dpestim.cluster import DPKMeans
from dpestim.datasets import load_us_military, load_yrbss
from dpestim.ensemble import DPRandomForestClassifier
from dpestim.exceptions import LedgerError
from dpestim.linear_model import (
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from dpestim.local import GRRFrequencyEstimator, MixedEstimator, PMTransformer, PrivatizedColumns
from dpestim.model_selection import PrivateSearchCV
from dpestim.pipeline import PrivatePipeline, check_pipeline, share_budget
from dpestim.preprocessing import DomainEncoder
from dpestim.statistics import Mean, group_by

EVERYTHING = Domain({
    "age": Numbers(17, 90, unit="years"), "height": Numbers(1.2, 2.2, missing=True), "sex": ["F", "M"],
    "grade": Categories(["9", "10", None]), "drink": Categories(["tea"], other="else"), "bio": Text(140, missing=True),
    "ratings": Keys(["a", "b"], 1, 5), 'odd "name"\\\x7f\n': [1, 1.5, "x", "é\t"],
    "born": [datetime.date(2000, 1, 1), datetime.datetime(2000, 1, 2, 3, 4, 5, 6)], 7: (-1e-300, 1e300),
})
FRAME = pd.DataFrame({"age": [20.0, 30.0, 95.0, np.nan], "sex": ["F", "X", "M", None], "other": [1, 2, 3, 4]})


def test_it_cannot_be_changed_and_compares():
    twin = Domain({name: column for name, column in EVERYTHING.items()})
    assert twin == EVERYTHING
    assert len({twin, EVERYTHING, copy.deepcopy(twin), pickle.loads(pickle.dumps(twin))}) == 1
    assert copy.copy(twin) is twin
    assert Domain({"a": [0, 1]}) != Domain({"a": [False, True]})  # 1 is not True
    assert Domain({"a": (0, 1), "b": (0, 1)}) != Domain({"b": (0, 1), "a": (0, 1)})
    for change in (lambda: setattr(twin, "x", 1), lambda: setattr(twin["age"], "low", 0),
                   lambda: setattr(twin["sex"], "values", ())):
        with pytest.raises(AttributeError):
            change()
    with pytest.raises(TypeError):
        twin["age"] = (0, 1)
    assert eval(repr(twin), {**vars(dpestim), "Domain": Domain, "Numbers": Numbers, "Categories": Categories,
                             "Text": Text, "Keys": Keys, "datetime": datetime}) == twin


def test_parts_and_unions():
    assert EVERYTHING[["sex", "age"]].names == ["sex", "age"]
    assert (EVERYTHING[["age"]] | {"age": (0, 1), "b": ["x"]})["age"] == Numbers(0, 1)
    assert "age" in EVERYTHING
    assert EVERYTHING["drink"].all_values == ["tea", "else"]
    assert EVERYTHING["grade"].all_values == ["9", "10", None]
    assert list(Domain([(0, 1), ["a"]])) == [0, 1]
    with pytest.raises(KeyError, match="no column"):
        EVERYTHING["x"]


@pytest.mark.parametrize(("columns", "message"), [
    ({}, "columns must be a dict"), ("age", "columns must be a dict"), ({"a": (1, 0)}, "'a': Numbers must have finite"),
    ({"a": (0, np.inf)}, "'a': Numbers must"),
    ({"a": (0, 1, 2)}, "'a': a column must be"),
    ({"a": "xy"}, "'a': a column"),
    ({"a": ["x", "x"]}, "'a': Categories must be distinct"), ({"a": []}, "distinct, at least one"),
    ({"a": [np.nan, "x", np.inf]}, "finite"), ({None: (0, 1)}, "named by strings"),
    ({True: (0, 1)}, "named by strings"),
    ({"a": {"x": 1}}, "a column must be"), ({"a": [b"x"]}, "must be strings"),
    ({"a": [(0, 1), (0, 1)]}, "must be strings"), ({"a": (0, 10**400)}, "'a': Numbers must"),
])
def test_bad_columns_are_named(columns, message):
    with pytest.raises(ValueError, match=message):
        Domain(columns)


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_files_keep_everything(tmp_path, ending):
    path = tmp_path / f"codebook.{ending}"
    EVERYTHING.save(path)
    found = Domain.load(str(path))
    assert found == EVERYTHING
    assert [list(map(type, c.values)) for c in found.of_kind(Categories).values()] == [
        list(map(type, c.values)) for c in EVERYTHING.of_kind(Categories).values()]


@pytest.mark.parametrize(("text", "message"), [
    ("version = 2\n[[columns]]\nkind = 'numbers'", "version = 1"), ("version = 1", "list of columns"),
    ("versi", "TOML"),
    ("version = 1\n[[columns]]\nname = 'a'\nkind = 'number'", "'a' must have a kind"),
    ("version = 1\n[[columns]]\nname = 'a'\nkind = 'numbers'\nlow = 1\nhigh = 0", "'a': Numbers must"),
    ("version = 1\n[[columns]]\nname = 'a'\nkind = 'numbers'\nlow = 1", "'a'"),
    ("version = 1\n[[columns]]\nname = 'a'\nkind = 'numbers'\nlow = 1\nhigh = 2\nhihg = 3", "hihg"),
    ("version = 1\n" + 2 * "[[columns]]\nname = 'a'\nkind = 'text'\nmax_length = 1\n", "declared once"),
])
def test_files_that_do_not_fit(tmp_path, text, message):
    path = tmp_path / "codebook.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        Domain.load(path)
    with pytest.raises(ValueError, match=r"\.toml or \.json"):
        EVERYTHING.save(tmp_path / "codebook.yaml")


COLUMN = '{"name": "a", "kind": "numbers", "low": 0, "high": 1}'


@pytest.mark.parametrize(("text", "message"), [
    ('{"version": true, "columns": [' + COLUMN + "]}", "version = 1"),
    ('{"version": 1, "columns": [' + COLUMN + '], "column": []}', "has .'column'"),
    ('{"version": 1, "columns": [], "columns": [' + COLUMN + "]}", "no key twice"),
    ('{"version": 1, "columns": [{"name": "b", ' + COLUMN[1:] + "]}", "no key twice"),
    ('{"version": 1, "columns": [{"kind": ["numbers"]}]}', "must have a kind"),
    ('{"version": 1, "columns": [{"name": ["a"], "kind": "text"}]}', "named by a string"),
    ('{"version": 1, "columns": [' + COLUMN.replace("1", "9" * 400) + "]}", "'a': Numbers must"),
    ("\xe9", "UTF-8"),
])
def test_files_that_were_changed(tmp_path, text, message):
    path = tmp_path / "codebook.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=message) as caught:
        Domain.load(path)
    assert type(caught.value) is ValueError


def test_any_real_numbers_are_bounds():
    ends = Domain({"a": (Fraction(1, 4), np.float32(3))})
    assert str(ends).endswith("0.25 to 3  no")
    assert ends == Domain({"a": (0.25, 3)})


def test_check_is_noted_or_refused_in_any_thread():
    domain, ledger = Domain({"a": (0, 1)}), Ledger(1.0, durability="fast")
    with ThreadPoolExecutor(1) as pool, ledger:
        domain.check([[0.5]])
        with pytest.raises(LedgerError, match="open in another thread"):
            pool.submit(domain.check, [[0.5]]).result()
    assert len(ledger) == 1


def test_the_schema_ships_and_knows_what_files_have(tmp_path):
    schema = json.loads(importlib.resources.files("dpestim.inputs").joinpath("domain.schema.json").read_text())
    EVERYTHING.save(tmp_path / "a.json")
    written = json.loads((tmp_path / "a.json").read_text())
    kinds = {one["properties"]["kind"]["const"]: one for one in schema["$defs"]["column"]["oneOf"]}
    assert written["version"] == schema["properties"]["version"]["const"]
    for entry in written["columns"]:
        one = kinds[entry["kind"]]
        assert set(one["required"]) <= set(entry) <= set(one["properties"])


def test_it_is_shown_as_a_table():
    lines = str(EVERYTHING).splitlines()
    assert lines[0].split() == ["column", "kind", "values", "missing"]
    assert "17 to 90 years" in lines[1]
    assert Domain({"<b>": ["<i>"]})._repr_html_().count("&lt;") == 2
    assert repr(clone(Mean(1.0, bounds=Domain({"a": (0, 1)})))) == "Mean(bounds=Domain({'a': Numbers(0, 1)}))"


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas])
def test_check_counts_what_is_outside(library):
    domain = Domain({"age": (17, 90), "sex": ["F", "M"], "gone": (0, 1)})
    found = domain.check(library(FRAME))
    head, *lines, note = str(found).splitlines()
    assert head.split("  ")[0] == "column"
    assert [line.split()[0] for line in lines] == [str(name) for name in domain]
    assert "do not publish" in note
    assert found == {"age": {"outside": 1, "missing": 1}, "sex": {"outside": 1, "missing": 1}, "gone": {"absent": True}}
    assert not found.is_clean
    assert "not differentially private" in repr(found)
    assert domain[["sex"]].check(library(FRAME[["sex"]][:1])).is_clean
    assert (domain[["age"]] | {"sex": Categories(["F"], other="x")}).check(library(FRAME))["sex"]["outside"] == 0
    with config_context(strict=True), pytest.raises(ValueError, match="strict mode"):
        domain.check(library(FRAME))
    with Ledger(1.0) as ledger:
        domain.check(library(FRAME))
    assert "Domain check" in str(ledger.entries())


def test_sketch_is_a_draft():
    found = Domain.sketch(FRAME)
    assert found["age"].missing
    assert found["other"] == Categories([1, 2, 3, 4])
    assert found["sex"] == Categories(["F", "M", "X"], missing=True)
    assert Domain.sketch(pl.from_pandas(FRAME)).names == found.names
    assert Domain.sketch(pd.DataFrame({"a": np.linspace(0, 1, 30)}))["a"] == Numbers(0.0, 1.0)
    with config_context(strict=True), pytest.raises(ValueError, match="strict mode"):
        Domain.sketch(FRAME)


@pytest.mark.parametrize("load", [load_yrbss, load_us_military])
def test_data_sets_bring_their_domain(load):
    data = load(as_frame=True)
    assert data.domain.names == list(data.feature_names)
    cells = {name: column.drop_duplicates().reset_index(drop=True) for name, column in data.frame.items()}
    longest = range(max(map(len, cells.values())))  # (each column by itself has all that it may have)
    assert data.domain.check(pd.DataFrame({name: own.reindex(longest, fill_value=own[0])
                                           for name, own in cells.items()})).is_clean
    assert load().domain == data.domain


# ---------------------------------------------------------------------------------------------- names, where X has none


def test_arrays_have_places_or_all_columns_in_order():
    X, pairs = np.array([[0.2, 30.0], [0.4, 40.0]] * 50), {"a": (0, 1), "b": (0, 100)}
    known = Mean(1.0, bounds=([0, 0], [1, 100]), random_state=0).fit(X).value_
    for bounds in (pairs, {0: (0, 1), 1: (0, 100)}, Domain(pairs), Domain({**pairs, "c": ["x"]})):
        np.testing.assert_array_equal(Mean(1.0, bounds=bounds, random_state=0).fit(X).value_, known)
    for bounds, message in (({**pairs, "c": (0, 1)}, "without names"), ({0: (0, 1)}, "column 1 of X"),
                            ({0: (0, 1), 2: (0, 1)}, "by name or place"), ({"a": (0, 1), 0: (0, 1)}, "all by place"),
                            ({}, "must name a column"), ({"a": 3}, "'a' must be a pair")):
        with pytest.raises(ValueError, match=message):
            Mean(1.0, bounds=bounds).fit(X)


def test_summaries_know_their_names():
    frame = pd.DataFrame({"a": np.linspace(0, 1, 60), "b": np.linspace(0, 100, 60)})
    y = pd.Series(np.linspace(0, 1, 60), name="y")
    domain = Domain({"b": (0, 100), "a": (0, 1), "y": (0, 2), "z": (0, 3)})

    def model():
        return DPLinearRegression(1.0, bounds=domain, target_bounds=domain, random_state=0)

    parts = [model().summarize(frame[k::2], y[k::2]) for k in (0, 1)]
    merged = model().merge(parts[0]).merge(parts[1]).release()
    plain = DPLinearRegression(1.0, bounds=([0, 0], [1, 100]), target_bounds=(0, 2), random_state=0)
    plain.summarize(frame, y).release()
    np.testing.assert_array_equal(merged.coef_, plain.coef_)
    np.testing.assert_array_equal(
        Mean(1.0, bounds=domain, random_state=0).summarize(frame).release().value,
        Mean(1.0, bounds=([0, 0], [1, 100]), random_state=0).summarize(frame).release().value)
    mean = Mean(1.0, bounds=domain, neighbours="add_remove", random_state=0)
    groups = group_by(mean, frame.assign(g="u"), "g", ["u"])
    assert len(groups["u"].value) == 2


def test_a_client_and_its_server_share_a_domain():
    domain = Domain({"age": (0, 1), "sex": ["F", "M"], "job": ["a", "b", "c"]})
    frame = pd.DataFrame({"sex": ["F", "M"] * 20, "job": ["a", "b"] * 20})
    reports = GRRFrequencyEstimator(2.0, categories=domain, random_state=0).privatize(frame)
    server = GRRFrequencyEstimator(2.0, categories=domain).aggregate(reports)
    assert list(server.feature_names_in_) == ["sex", "job"]
    assert server.n_users_ == 40


# ---------------------------------------------------------------------------------------------- the encoder and models


@pytest.fixture(scope="module")
def teenagers():
    data = load_yrbss(as_frame=True)
    return data.frame[:3000], data.domain


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas])
def test_the_encoder_scales_and_splits(library):
    domain = Domain({"a": Numbers(0, 10, missing=True), "b": Categories(["x", "y"], other="o"),
                     "c": Categories([0, 1], missing=True), "d": (5, 5), "not here": (0, 1)})
    frame = library(pd.DataFrame({"d": [5.0, 5.0, 9.0, 5.0], "c": [0, None, 1, 0], "a": [0.0, 20.0, None, 5.0],
                                  "b": ["x", "y", "?", None]}))
    encoder = DomainEncoder(domain).fit(frame)
    assert list(encoder.get_feature_names_out()) == ["d_scaled", "c_0", "c_1", "c_missing", "a_scaled", "a_missing",
                                                     "b_x", "b_y", "b_o"]
    rows = encoder.transform(frame)
    assert rows.tolist() == [[0, 1, 0, 0, -1, 0, 1, 0, 0], [0, 0, 0, 1, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1, 0, 0, 1],
                             [0, 1, 0, 0, 0, 0, 0, 0, 1]]
    assert 2.0 <= encoder.norm_bound < 2.0 + 1e-12
    assert np.linalg.norm(rows, axis=1).max() <= encoder.norm_bound
    sparse = clone(encoder).set_params(sparse_output=True).fit_transform(frame)
    assert (sparse.toarray() == rows).all()
    # rows by themselves are what they are among others, and nothing is learned: neither costs anything
    assert all((encoder.transform(frame[k : k + 1]) == rows[k]).all() for k in range(4))
    assert encoder.privacy_.is_nothing
    assert check_pipeline(encoder).steps[0].verdict == "data-independent"


def test_the_encoder_is_sparse_where_it_is_wide():
    domain = Domain({"a": list(range(200)), "b": (0, 1)})
    frame = pd.DataFrame({"a": [3, 199], "b": [0.5, 1.0]})
    wide = DomainEncoder(domain).fit(frame).transform(frame)
    assert wide.format == "csr"
    assert (wide.toarray() == DomainEncoder(domain, sparse_output=False).fit(frame).transform(frame)).all()


def test_the_encoder_names_what_does_not_fit():
    domain = Domain({"age": (17, 90), "sex": ["F", "M"], "bio": Text(3)})
    good = pd.DataFrame({"age": [20.0, 30.0], "sex": ["F", "M"]})
    encoder = DomainEncoder(domain).fit(good)
    for X, message in ((good.assign(age=[np.nan, 1.0]), r"column 'age' .*missing=True"),
                       (good.assign(sex=["s3cr3t", "F"]), r"column 'sex' .*other="),
                       (good[["sex", "age"]], "order"), (good[["age"]], "sex")):
        with pytest.raises(ValueError, match=message) as error:
            encoder.transform(X)
        assert "s3cr3t" not in "".join(traceback.format_exception(error.value))
    for X, message in ((good.assign(job="x"), "lacks 'job'"), (good.assign(bio="x"), "'bio' must be left out"),
                       (good[["age"]].to_numpy(), "without names")):
        with pytest.raises(ValueError, match=message):
            DomainEncoder(domain).fit(X)
    with pytest.raises(ValueError, match="domain must be a dpestim"):
        DomainEncoder().fit(good)
    with config_context(strict=True):  # total: nothing that is seen depends on a value
        rows = clone(encoder).fit(good).transform(good.assign(age=[np.nan, 1.0], sex=["s3cr3t", "F"]))
    assert rows.tolist() == [[0, 0, 0], [-1, 1, 0]]


@pytest.mark.parametrize(("model", "target", "more"), [
    (DPLogisticRegression, "gender", {}), (DPLinearSVC, "gender", {}), (DPLinearRegression, "height", {}),
    (DPRidge, "height", {}), (DPPoissonRegressor, "age", {"max_target": 18}),
])
def test_a_raw_frame_needs_no_square_root(teenagers, model, target, more):
    frame, domain = teenagers
    X, y = frame.drop(columns=target), frame[target]
    short = make_pipeline(DomainEncoder(domain), model(1.0, delta=1e-5, domain=domain, random_state=0, **more))
    short.fit(X, y)
    known = {"classes": ["female", "male"]} if target == "gender" else {"target_bounds": (1.2, 2.2)} if (
        target == "height") else {}
    by_hand = make_pipeline(DomainEncoder(domain), model(1.0, delta=1e-5, data_norm=short[0].norm_bound, random_state=0,
                                                         **known, **more)).fit(X, y)
    assert short[1].privacy_ == by_hand[1].privacy_
    assert short[1].privacy_.is_finite
    np.testing.assert_array_equal(short[1].coef_, by_hand[1].coef_)
    with config_context(strict=True):
        strict = PrivatePipeline(clone(short).steps).fit(X, y)
    np.testing.assert_array_equal(strict[1].coef_, short[1].coef_)


def test_a_model_with_a_domain_knows_the_norm_of_some_columns(teenagers):
    frame, domain = teenagers
    X, y = frame[["grade", "age"]], frame["gender"]
    model = make_pipeline(DomainEncoder(domain), DPLogisticRegression(1.0, domain=domain, random_state=0)).fit(X, y)
    assert model[1].data_norm_ == model[0].norm_bound
    for rows, target, message in ((frame.to_numpy(), y, "columns of all columns of domain"),
                                  (X, y.to_numpy(), "y has no name"), (X, y.rename("sex"), "called 'sex'")):
        with pytest.raises(ValueError, match=message):
            model.fit(rows, target)
    with pytest.raises(ValueError, match="columns of all columns of domain"):
        DPLogisticRegression(1.0, domain=domain).fit(np.zeros((9, 40)), pd.Series(["male"] * 9, name="gender"))
    with pytest.raises(ValueError, match="domain must be None"):
        DPLogisticRegression(1.0, domain=3).fit(np.zeros((9, 4)), y[:9])
    with pytest.raises(ValueError, match="classes"):  # before the first step
        PrivatePipeline(model.steps).fit(X, y.replace("male", "s3cr3t"))


@pytest.mark.parametrize(("model", "more"), [
    (DPLogisticRegression, {}), (DPLinearSVC, {"delta": 1e-5}), (DPPoissonRegressor, {"max_target": 1}),
])
def test_coefficients_are_in_units_of_raw_numbers(model, more):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(10, 95, 2000), "b": rng.uniform(1, 2, 2000), "c": np.full(2000, 5.0)})
    y = pd.Series((X["a"] > 50).astype(int), name="y")
    domain = Domain({"c": (5, 5), "b": (1, 2), "a": (17, 90), "y": [0, 1], "z": (0, 1)})
    known = {"classes": domain} if model is not DPPoissonRegressor else {}
    raw = model(1.0, bounds=domain, random_state=0, **known, **more).fit(X, y)
    scaled = np.clip(np.column_stack([(X["a"] - 17) / 36.5 - 1, 2 * X["b"] - 3, 0 * X["c"]]), -1, 1)
    by_hand = model(1.0, data_norm=raw.data_norm_, random_state=0, **({"classes": [0, 1]} if known else {}), **more)
    by_hand.fit(scaled, y)
    assert raw.privacy_ == by_hand.privacy_
    assert np.sqrt(2) <= raw.data_norm_ < 1.4143  # (the constant column adds nothing)
    np.testing.assert_allclose(raw._scores(X), by_hand._scores(scaled), rtol=1e-9)
    clipped = X.clip([17, 1, 5], [90, 2, 5], axis=1).to_numpy()
    np.testing.assert_allclose(clipped @ np.atleast_2d(raw.coef_).T + raw.intercept_, raw._scores(X), atol=1e-9)
    with pytest.raises(ValueError, match="bounds need dense rows"):
        clone(raw).set_params(bounds=(0, 1)).fit(csr_array(scaled), y)
    again = raw.set_params(bounds=None, data_norm=raw.data_norm_).fit(scaled, y)  # nothing of the bounds is left
    np.testing.assert_array_equal(again._scores(scaled), by_hand._scores(scaled))


@pytest.mark.parametrize("model", [DPLogisticRegression, DPLinearSVC, DPPoissonRegressor])
def test_without_an_intercept_zero_stays_zero(model):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-20, 30, 500), rng.uniform(1, 2, 500), np.full(500, 5.0), np.zeros(500)])
    y = (X[:, 0] > 0).astype(int)
    known = {"max_target": 1} if model is DPPoissonRegressor else {"classes": [0, 1]}
    known |= {"fit_intercept": False, "random_state": 0}
    raw = model(5.0, bounds={0: (-10, 20), 1: (1, 2), 2: (5, 5), 3: (0, 0)}, **known).fit(X, y)
    inside = X.clip([-10, 1, 5, 0], [20, 2, 5, 0])
    by_hand = model(5.0, data_norm=raw.data_norm_, **known).fit(inside / [20, 2, 5, 1], y)
    assert np.sqrt(3) <= raw.data_norm_ < 1.7321
    np.testing.assert_array_equal(raw.intercept_, 0)
    np.testing.assert_allclose(raw._scores(X), by_hand._scores(inside / [20, 2, 5, 1]), rtol=1e-9)
    np.testing.assert_allclose(inside @ np.atleast_2d(raw.coef_).T, raw._scores(X), atol=1e-9)


def test_clients_of_a_mixed_row_share_a_domain(teenagers):
    frame, domain = teenagers
    parts = [("g", GRRFrequencyEstimator(categories=domain), ["gender", "grade"]),
             ("n", PMTransformer(bounds=domain), ["age", "height"])]
    lists = [["female", "male"], ["9", "10", "11", "12", "other", None]]
    plain = [("g", GRRFrequencyEstimator(categories=lists), ["gender", "grade"]),
             ("n", PMTransformer(bounds=([12, 1.2], [18, 2.2])), ["age", "height"])]
    for kind, verb in ((MixedEstimator, "privatize"), (PrivatizedColumns, "fit_transform")):
        found, known = (getattr(kind(own, epsilon=2.0, random_state=0), verb)(frame) for own in (parts, plain))
        np.testing.assert_array_equal(np.asarray(found), np.asarray(known))
        assert kind(parts, epsilon=2.0).privacy_.epsilon == 2


def test_a_search_and_cross_validation_take_raw_frames(teenagers):
    frame, domain = teenagers
    X, y = frame.drop(columns="gender"), frame["gender"]
    model = make_pipeline(DomainEncoder(domain), DPLogisticRegression(domain=domain))
    space = {"dplogisticregression__intercept_scaling": [0.1, 0.5]}
    search = PrivateSearchCV(model, space, epsilon=2.0, random_state=0)
    assert search.fit(X, y).privacy_.epsilon == 2
    assert search.best_estimator_[-1].data_norm_ == search.best_estimator_[0].norm_bound
    shared = share_budget(model, 1.0)
    assert check_pipeline(shared).privacy_.epsilon == 1
    assert cross_val_score(shared, X, y, cv=2, error_score="raise").shape == (2,)


# ---------------------------------------------------------------------------------------------- messages


@pytest.mark.parametrize("make", [
    lambda: DPLogisticRegression(1.0, data_norm=1.0, classes=[0, 1]), lambda: DPKMeans(1.0, bounds=(0, 1)),
    lambda: DPRandomForestClassifier(1.0, bounds=(0, 1), classes=[0, 1]), lambda: Mean(1.0, bounds=(0, 1)),
])
@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas])
@pytest.mark.parametrize("strict", [False, True])
def test_columns_that_cannot_be_read_are_named_with_a_way_out(make, library, strict):
    frame = library(pd.DataFrame({"age": [1.0, 2.0], "sex": ["s3cr3t", "b"], "job": ["x", "y"], "height": [1, 2]}))
    with config_context(strict=strict), pytest.raises(ValueError, match="'sex', 'job'") as error:
        make().fit(frame, np.array([0, 1]))
    text = str(error.value)
    assert "Domain({'age': (low, high), 'sex': [values], 'job': [values], 'height': (low, high)})" in text
    assert "DomainEncoder(domain).fit_transform(X)" in text
    assert "s3cr3t" not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize("model", [
    DPLogisticRegression(1.0, data_norm=1.0, classes=[0, 1]), DPKMeans(1.0, bounds=(0, 1), n_clusters=2),
    DPRandomForestClassifier(1.0, bounds=(0, 1), classes=[0, 1]),
    DPRandomForestClassifier(1.0, bounds=Domain({"a": (0, 1), "b": ["u", "v"]}), classes=[0, 1]),
    DPLinearRegression(1.0, bounds=(0, 1), target_bounds=(0, 1)),
])
def test_missing_values_name_the_column_and_the_imputer(model):
    frame = pd.DataFrame({"a": [0.1, 0.2, 0.3] * 9, "b": [0.1, 0.2, 0.3] * 9 if not hasattr(
        model, "bounds") or not isinstance(model.bounds, Domain) else ["u", "v", "u"] * 9})
    y, holes = [0, 1, 1] * 9, frame.assign(a=[np.nan, 0.1, 0.2] * 9)
    fitted = clone(model).fit(frame, y)
    for verb in (lambda: clone(model).fit(holes, y), lambda: fitted.predict(holes)):
        with pytest.raises(ValueError, match=r"column 'a' of X contains NaN.*DPSimpleImputer"):
            verb()


def test_a_server_of_more_columns_than_its_clients_is_told_what_to_give():
    domain = Domain({"age": ["old", "young"], "sex": ["F", "M"]})
    reports = GRRFrequencyEstimator(1.0, categories=domain[["sex"]]).privatize(pd.DataFrame({"sex": ["F", "M"]}))
    with pytest.raises(ValueError, match="a Domain of the columns that clients report"):
        GRRFrequencyEstimator(1.0, categories=domain).aggregate(reports)
