"""How data come in: containers, parameters, numbers and labels; what is refused, and by what name."""

import datetime
import decimal
import fractions
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning

from dpestim.central import SmoothSensitivity
from dpestim.inputs import (
    CategoryEncoder,
    bound_array,
    category_rows,
    class_array,
    label_codes,
    number_column,
    number_rows,
    refuse_infinite,
)
from dpestim.linear_model import DPLinearRegression, DPLogisticRegression
from dpestim.local import LDPNaiveBayes, PMTransformer

BIG = 2**53 + 1
DAYS = [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), datetime.date(2022, 1, 1)]
SPANS = [datetime.timedelta(seconds=k) for k in (1, 2, 3)]


class Spiteful:
    """A value that fails whatever is done to it."""

    def __init__(self, error):
        self.error = error

    def __eq__(self, other):
        raise self.error

    def __hash__(self):
        raise self.error

    def __float__(self):
        raise self.error


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    "bad",
    [
        np.ma.masked_array([1, 2, 3], [0, 1, 0]),
        sp.csr_array(np.eye(3)),
        pd.DataFrame({"a": [1, 2]}),
        pl.DataFrame({"a": [1, 2]}),
        [decimal.Decimal("sNaN"), 1],
        [Spiteful(RuntimeError()), 1],
        [[1, 2], [3, 4]],
        [np.array([1]), np.array([2])],
        (value for value in range(3)),
        {1: 2, 3: 4},
        np.array(3),
        np.float64(3),
        [float("inf"), 1],
        [1, 1.0],
        [DAYS[0], np.datetime64(DAYS[0])],
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_bad_categories_are_named(bad):
    with pytest.raises(ValueError, match="categories of column 0"):
        CategoryEncoder(bad, "column 0")


@pytest.mark.parametrize(
    "good",
    [
        range(2),
        (0, 1),
        pd.Series([0, 1]),
        pl.Series([0, 1]),
        pd.Index([0, 1]),
        np.array([0, 1], "u1"),
        pd.Categorical([0, 1]),
        pl.Series([0, 1], dtype=pl.Int128),
    ],
    ids=lambda good: type(good).__name__,
)
def test_lists_of_categories_may_be_of_any_library(good):
    assert CategoryEncoder(good, "column 0").encode(np.array([1, 0])).tolist() == [1, 0]


@pytest.mark.parametrize(
    "end",
    [
        10**400,
        -(10**400),
        np.inf,
    ],
)
def test_huge_bounds_are_infinite(end):
    assert np.isinf(bound_array(end, "bounds"))


@pytest.mark.parametrize(
    "end",
    [
        None,
        "1",
        True,
        1j,
        np.timedelta64(3, "s"),
        np.datetime64("2020"),
        np.array([3], "m8[ns]"),
        np.array([3], "M8[ns]"),
        datetime.timedelta(3),
        [[1]],
        [],
        np.ma.masked_array([1.0]),
        pd.Series([3], dtype="m8[ns]"),
        [None],
        {1: 2},
        [Spiteful(RuntimeError())],
        decimal.Decimal("sNaN"),
    ],
    ids=lambda end: type(end).__name__,
)
def test_bounds_are_numbers(end):
    with pytest.raises(ValueError, match=r"^bounds must be a pair"):
        bound_array(end, "bounds")


@pytest.mark.parametrize("estimator", ["PMTransformer", "SDPMTransformer"])
@pytest.mark.parametrize(
    "end", [10**400, np.timedelta64(3, "s"), np.datetime64("2020"), DAYS[0], np.array([3], "m8[ns]")]
)
def test_estimators_name_bounds_that_are_no_numbers(estimator, end):
    from dpestim import local

    more = {"low_sensitivity": (0.0, 1.0)} if estimator.startswith("SD") else {}
    est = getattr(local, estimator)(1.0, bounds=(0, end), **more)
    for verb in (est.privatize, est.fit):
        with pytest.raises(ValueError, match="bounds"):
            verb(np.zeros((2, 1)))


@pytest.mark.parametrize(
    "bad",
    [
        [0],
        [],
        3,
        None,
        "ab",
        [0, 0],
        [0, None],
        [0, np.nan],
        [0, "a"],
        [0, 1j],
        [[0, 1]],
        [{}, {1: 2}],
        {0, 1},
        np.ma.masked_array([0, 1]),
        sp.csr_array(np.eye(2)),
        [Spiteful(RuntimeError()), 1],
        [decimal.Decimal("sNaN"), 1],
        [0, DAYS[0]],
        pd.DataFrame({"a": [1, 2]}),
        np.zeros((2, 2)),
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_bad_classes_are_named(bad):
    with pytest.raises(ValueError, match="classes"):
        class_array(bad)


def test_classes_keep_what_they_are():
    assert class_array(["b", "a"]).dtype.kind == "U"
    assert class_array([1, 0]).tolist() == [0, 1]
    assert class_array([1, 0]).dtype.kind == "i"
    assert class_array([1.5, 0]).dtype.kind == "f"
    assert class_array([-1, 2**63]).tolist() == [-1, 2**63]
    assert class_array([BIG, 0.5]).tolist() == [0.5, BIG]
    assert class_array(DAYS).tolist() == DAYS
    assert class_array(np.array(DAYS, "M8[ns]")).dtype == np.dtype("M8[ns]")
    assert class_array(pl.Series(["b", "a"])).tolist() == ["a", "b"]


# ---------------------------------------------------------------- labels


def test_labels_of_any_shape_and_library_that_sklearn_takes():
    for y in ([0, 1, 1], np.array([0, 1, 1]), pd.Series([0, 1, 1]), pl.Series([0, 1, 1]), (0, 1, 1)):
        codes, classes = label_codes(y, None, 3, strict=False)
        assert codes.tolist() == [0, 1, 1]
        assert classes.tolist() == [0, 1]
    for y in (
        np.array([[0], [1], [1]]),
        [[0], [1], [1]],
        pd.DataFrame({"y": [0, 1, 1]}),
        pl.DataFrame({"y": [0, 1, 1]}),
    ):
        with pytest.warns(DataConversionWarning):
            assert label_codes(y, [0, 1], 3, strict=False)[0].tolist() == [0, 1, 1]
    assert label_codes(["b", "a"], None, 2, strict=False)[1].dtype.kind == "U"
    codes, classes = label_codes(np.arange(70_000), np.arange(70_000), 70_000, strict=True)
    assert np.array_equal(codes, np.arange(70_000))
    for n in (2, 126, 127, 128, 129, 32767, 32768, 32769):
        codes, _ = label_codes(np.array([-5, n - 1, n, 0]), range(n), 4, strict=True)
        assert codes.tolist() == [-1, n - 1, -1, 0]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y"),
        ([0.5, 1.5, 0.5], "Unknown label type: continuous"),
        ([0, 1, np.nan], "NaN"),
        ([0, 0, 0], "class"),
        ([0, None, 1], "missing"),
        ([0, "a", 1], "order"),
        ([0, 1], "inconsistent"),
        (np.zeros((3, 2)), "1d array"),
        (3, "1d array"),
        (np.ma.masked_array([0, 1, 1]), "masked"),
        (np.array([1j, 2, 1]), "Complex"),
        (sp.csr_array(np.eye(3)), "Sparse"),
        (pl.LazyFrame({"y": [0, 1, 1]}), "lazy"),
        (pd.DataFrame({"a": [0, 1, 1], "b": [0, 1, 1]}), "1d array"),
        ([[0], [1, 2], 3], "order|rows"),
        (pl.Series([0, 1, None]), "NaN"),
        (pd.Series([0, 1, None], dtype="Int64"), "NaN"),
    ],
    ids=lambda case: type(case).__name__,
)
def test_bad_labels_are_named(y, message):
    with pytest.raises(ValueError, match=message):
        label_codes(y, None, 3, strict=False)


def test_strict_mode_takes_no_labels_without_a_dtype():
    for y in ([0, 1, 1], (0, 1, 1)):
        with pytest.raises(ValueError, match="strict mode: y must have a dtype"):
            label_codes(y, [0, 1], 3, strict=True)


def test_classes_that_share_a_float_are_two_classes():
    y = np.array([2.0**53, 2.0**53 + 2])
    assert label_codes(y, [2**53, BIG], 2, strict=True)[0].tolist() == [0, -1]
    assert label_codes(y, [0, 2**53], 2, strict=True)[0].tolist() == [1, -1]


# ---------------------------------------------------------------- numbers


NUMBERS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


@pytest.mark.parametrize(
    "X",
    [
        NUMBERS,
        np.array(NUMBERS),
        np.array(NUMBERS, "f4"),
        np.array(NUMBERS, "i1"),
        np.array(NUMBERS, object),
        np.asfortranarray(NUMBERS),
        pd.DataFrame(NUMBERS),
        pd.DataFrame(NUMBERS, dtype="Int64"),
        pl.DataFrame(NUMBERS, orient="row"),
        pd.DataFrame(NUMBERS, dtype="float64[pyarrow]"),
        pd.DataFrame(NUMBERS, dtype=object),
        pd.DataFrame(NUMBERS, dtype=pd.SparseDtype(float)),
        pd.DataFrame(NUMBERS).astype({0: "int64", 1: "float32"}),
        pl.DataFrame(NUMBERS, orient="row").cast(pl.Int128),
        pl.DataFrame(NUMBERS, orient="row").cast(pl.Decimal(9, 2)),
        pl.DataFrame(NUMBERS, orient="row", schema={"a": pl.Object, "b": pl.Float32}),
        [[decimal.Decimal(int(v)) for v in row] for row in NUMBERS],
        [[fractions.Fraction(v) for v in row] for row in NUMBERS],
        pd.DataFrame(NUMBERS).astype("category"),
        pa.table({"a": [1, 3, 5], "b": [2, 4, 6]}),
    ],
    ids=lambda X: type(X).__name__,
)
def test_numbers_of_any_container(X):
    rows = number_rows(X, strict=False)
    assert rows.dtype.kind in "biuf"
    assert rows.tolist() == NUMBERS


def test_nulls_are_nan_and_change_nothing_else():
    for make in (
        lambda v: pd.DataFrame({"a": pd.Series(v, dtype="Int64")}),
        lambda v: pl.DataFrame({"a": pl.Series(v, dtype=pl.Int64)}),
    ):
        whole, other = (number_rows(make([BIG, value, 2]), strict=True)[:, 0] for value in (3, None))
        assert np.isnan(other[1])
        assert whole[[0, 2]].tolist() == other[[0, 2]].tolist()


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT])
def test_every_kind_of_missing_value_among_objects_is_nan(missing):
    objects = pd.Series([0.5, missing, 2], dtype=object)
    for X in (objects.to_frame("a"), objects.to_frame("a").to_numpy(), [[value] for value in objects]):
        assert np.array_equal(number_rows(X, strict=False), [[0.5], [np.nan], [2.0]], equal_nan=True)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((2, 1), 3, "m8[ms]"), "dates or durations"),
        (np.full((2, 1), 3, "M8[ms]"), "dates or durations"),
        (pd.DataFrame({"a": pd.Series([3], dtype="m8[ms]")}), "column 'a'.*dates or durations"),
        (pl.DataFrame({"a": SPANS}), "column 'a'"),
        (pl.DataFrame({"a": DAYS}), "column 'a'"),
        (np.array([[np.timedelta64(3, "s")], [1]], object), "column 0.*number"),
        ([[np.timedelta64(3, "s")], [1]], "number"),
        ([[np.timedelta64(3, "s")], [np.timedelta64(3, "ms")]], "dates or durations"),
        ([[SPANS[0]]], "number"),
        (np.array([["1"]]), "convert strings"),
        (np.array([[b"1"]]), "another type"),
        (pl.DataFrame({"a": ["1"]}), "column 'a'"),
        (np.array([[1j]]), "Complex"),
        (np.array([[1j]], object), "number"),
        (np.array([[np.complex64(1j)]], object), "number"),
        ([[1j]], "Complex"),
        (pd.DataFrame({"a": [1j]}), "Complex"),
        (np.array([[10**400]], object), "float can hold"),
        (np.array([[decimal.Decimal("sNaN")]], object), "float"),
        (pl.DataFrame({"a": [[1]]}), "column 'a'"),
        (pl.DataFrame({"a": [{"b": 1}]}), "column 'a'"),
        (pd.DataFrame({"a": [[1]]}), "column 'a'"),
        (pd.DataFrame(), "minimum of 1"),
        (pl.DataFrame(), "minimum of 1"),
        (np.zeros((0, 2)), "0 sample"),
        (np.zeros((2, 0)), "0 feature"),
        (pd.Series([1]), "2D"),
        (pl.Series([1]), "2D"),
        (np.zeros(2), "2D"),
        (np.float64(2), "2D"),
        (np.zeros((1, 1, 1)), "2D"),
        ([1, 2], "2D"),
        (3, "2D"),
        ({1: 2}, "2D"),
        ([[1], [1, 2]], "equal length|2D"),
        (sp.csr_array(np.eye(2)), "Sparse"),
        (np.ma.masked_array([[1.0]]), "masked"),
        (pl.LazyFrame({"a": [1]}), "lazy"),
        (np.array([[(1, 2)]], "i4,i4"), "numbers"),
        ((row for row in NUMBERS), "2D"),
        ("12", "2D"),
        (pl.DataFrame({"a": [None]}), "column 'a'"),
        (np.array([[Spiteful(SystemExit())]], object), "number"),
    ],
    ids=lambda case: type(case).__name__,
)
def test_what_is_no_table_of_numbers(X, message):
    with pytest.raises(ValueError, match=message) as error:
        number_rows(X, strict=False)
    assert error.value.__cause__ is None
    assert error.value.__context__ is None
    with pytest.raises(ValueError, match=r".") as error:
        number_rows(X, strict=True)
    assert error.value.__context__ is None


def test_strict_numbers_need_dtypes():
    for X in (
        NUMBERS,
        np.array(NUMBERS, object),
        pd.DataFrame(NUMBERS, dtype=object),
        pd.DataFrame(NUMBERS).astype("category"),
    ):
        with pytest.raises(ValueError, match=r"strict mode: .*X must have a numeric dtype"):
            number_rows(X, strict=True)
    for X in (
        pd.DataFrame(NUMBERS, dtype="Int64"),
        pl.DataFrame(NUMBERS, orient="row"),
        pl.DataFrame(NUMBERS, orient="row").cast(pl.Int128),
    ):
        assert number_rows(X, strict=True).tolist() == NUMBERS


def test_a_column_of_weights():
    assert number_column([1, 2], 2, "sample_weight").tolist() == [1.0, 2.0]
    for bad in (
        [1],
        [1, np.nan],
        ["a", "b"],
        [[1, 2]],
        [1, None],
        np.array([1, 2], "m8[s]"),
        [1, 2j],
        3,
        np.ma.masked_array([1, 2]),
    ):
        with pytest.raises(ValueError, match="sample_weight"):
            number_column(bad, 2, "sample_weight")


# ---------------------------------------------------------------- containers of categories


def test_containers_of_categories():
    for X in (
        [["a", 1]],
        np.array([["a", 1]], object),
        pd.DataFrame({0: ["a"], 1: [1]}),
        pl.DataFrame({"0": ["a"], "1": [1]}),
    ):
        assert category_rows(X, strict=False).shape == (1, 2)
    assert category_rows([["a", 1]], strict=False).dtype.kind == "O"
    assert category_rows([[2, 1]], strict=False).dtype.kind == "i"
    with pytest.raises(ValueError, match="strict mode"):
        category_rows([["a", 1]], strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix = np.matrix([[1, 2]])
    assert type(category_rows(matrix, strict=False)) is np.ndarray


# ---------------------------------------------------------------- a model


def test_scores_take_labels_of_any_kind():
    X = np.linspace(-1, 1, 40)[:, None]
    y = np.where(X[:, 0] > 0, "yes", "no")
    est = DPLogisticRegression(80.0, data_norm=1.0, classes=["no", "yes"], random_state=0).fit(X, y)
    right = est.predict(X) == y
    for labels in (y, y.tolist(), y.astype(object), pd.Series(y), pl.Series(y), pd.Series(y, dtype="category")):
        assert est.score(X, labels) == right.mean()
    assert est.score(X, np.arange(40)) == 0  # classes that are new
    weights = np.arange(40.0)
    assert est.score(X, y, weights) == pytest.approx(np.average(right, weights=weights))
    for bad in (np.zeros(40), weights[:3], np.full(40, np.nan), y):
        with pytest.raises(ValueError, match="sample_weight"):
            est.score(X, y, bad)


@pytest.mark.parametrize("name", ["data_norm", "C", "intercept_scaling", "delta"])
@pytest.mark.parametrize("value", [np.timedelta64(1, "s"), 10**5000, decimal.Decimal("sNaN"), "1", 1j, True],
                         ids=lambda value: type(value).__name__)
def test_parameters_of_the_model_that_are_no_numbers_are_named(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be (None or 0, or )?a number"):
        DPLogisticRegression(**{"classes": [0, 1], "data_norm": 1.0, name: value}).fit(np.zeros((2, 1)), [0, 1])


def test_where_values_are_missing_messages_say_what_to_do():
    rows = pd.DataFrame({"age": [20.0, np.nan]})
    client = PMTransformer(1.0, bounds={"age": (0, 100)})
    bayes = LDPNaiveBayes(1.0, classes=[0, 1], bounds={"age": (0, 100)})
    for call in (lambda: client.privatize(rows), lambda: bayes.privatize(rows, [0, 1]),
                 lambda: SmoothSensitivity(1.0, bounds=(0, 100)).fit(rows)):
        with pytest.raises(ValueError, match=r"(?i)fill missing values with a public number"):
            call()
    with pytest.raises(ValueError, match="Leave out rows without a target"):
        DPLinearRegression(1.0, bounds=(0, 100), target_bounds=(0, 1)).fit([[1.0], [2.0]], [0.5, np.nan])


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_threads_name_the_first_column_that_is_not_finite(n_jobs):
    """Blocks that other threads look at are refused, too, and the first of them is named whoever finds it first."""
    rows = np.zeros((300_000, 3))
    refuse_infinite(rows, ["a", "b", "c"], n_jobs=n_jobs)
    rows[-1, 2] = np.inf
    with pytest.raises(ValueError, match="c of X"):
        refuse_infinite(rows, ["a", "b", "c"], n_jobs=n_jobs)
    rows[:2, 0], rows[70_000, 1] = np.nan, np.nan
    with pytest.raises(ValueError, match="a of X"):
        refuse_infinite(rows, ["a", "b", "c"], n_jobs=n_jobs)
    with pytest.raises(ValueError, match="b of X contains NaN or inf"):
        refuse_infinite(rows, ["a", "b", "c"], missing=np.array([True, False, True]), n_jobs=n_jobs)
    refuse_infinite(rows[:-1], ["a", "b", "c"], missing=True, n_jobs=n_jobs)
