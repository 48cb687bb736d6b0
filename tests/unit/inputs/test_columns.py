"""Columns that differ in one row differ in one code: every dtype of every library, as categories and as labels."""

import datetime
import decimal
import fractions

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpestim.inputs import (
    CategoryEncoder,
    label_codes,
    learn_categories,
)

ROWS = 9
AT = 3
BIG = 2**53 + 1
BIGS = [0, BIG - 1, BIG]
DAYS = [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), datetime.date(2022, 1, 1)]
TIMES = [datetime.datetime(2020, 1, 1, 3), datetime.datetime(2021, 1, 1), datetime.datetime(2022, 1, 1)]
SPANS = [datetime.timedelta(seconds=k) for k in (1, 2, 3)]
TEXT = ["a", "b", "never declared"]


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


def array(dtype):
    return lambda values: np.array(values, dtype)


def series(dtype):
    return lambda values: pd.Series(values, dtype=dtype)


def categorical(index):
    return lambda values: pd.Series(values, dtype=pd.CategoricalDtype(index))


def polars(dtype):
    return lambda values: pl.Series(values, dtype=dtype)


def strings(na):
    return array(np.dtypes.StringDType(na_object=na))


#: name -> (two declared values and one that is not, make a column, what a missing value is there)
COLUMNS = {
    **{f"numpy {t}": ([1, 2, 5], array(t), []) for t in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4")},
    "numpy i8 above 2^53": ([BIG - 1, BIG, BIG + 1], array("i8"), []),
    "numpy u8 above 2^63": ([2**63 + BIG, 2**63 + BIG + 1, 2**63], array("u8"), []),
    "numpy i8 far apart": ([-(2**62), 2**62, 0], array("i8"), []),
    **{f"numpy {t}": ([0.5, 1.5, 7.5], array(t), [np.nan]) for t in ("f2", "f4", "f8", "g", ">f8")},
    "numpy bool": ([False, True, True], array(bool), []),
    "numpy U": (TEXT, array("U20"), []),
    "numpy >U": (TEXT, array(">U20"), []),
    "numpy S": ([b"a", b"b", b"never"], array("S9"), []),
    "numpy object": (TEXT, array(object), [None, np.nan, pd.NA, pd.NaT, decimal.Decimal("NaN"), np.float32("nan")]),
    "numpy object of ints": ([BIG - 1, BIG, 0], array(object), [None, np.nan]),
    "numpy object of dates": (DAYS, array(object), [None, pd.NaT, np.datetime64("NaT")]),
    **({
        "numpy StringDType": (TEXT, array(np.dtypes.StringDType()), []),
        "numpy StringDType nan": (TEXT, strings(np.nan), [np.nan]),
        "numpy StringDType None": (TEXT, strings(None), [None]),
        "numpy StringDType NA": (TEXT, strings(pd.NA), [pd.NA]),
    } if hasattr(np.dtypes, "StringDType") else {}),  # (from NumPy 2 on)
    **{f"numpy M8[{u}]": (DAYS, array(f"M8[{u}]"), ["NaT"]) for u in ("Y", "D", "s", "us", "ns")},
    "numpy m8[s]": (SPANS, array("m8[s]"), ["NaT"]),
    "numpy m8[ns]": ([np.timedelta64(k, "ns") for k in (1, 2, 3)], array("m8[ns]"), ["NaT"]),
    **{f"pandas {t}": ([1, 2, 5], series(t), [pd.NA]) for t in ("Int8", "Int64", "UInt16", "int64[pyarrow]")},
    "pandas Int64 above 2^53": ([BIG - 1, BIG, BIG + 1], series("Int64"), [pd.NA]),
    "pandas int64": ([1, 2, 5], series("int64"), []),
    **{f"pandas {t}": ([0.5, 1.5, 7.5], series(t), [None]) for t in ("float64", "Float64", "double[pyarrow]")},
    "pandas bool": ([False, True, True], series(bool), []),
    **{f"pandas {t}": ([False, True, True], series(t), [None]) for t in ("boolean", "bool[pyarrow]")},
    **{f"pandas {t}": (TEXT, series(t), [None]) for t in ("str", "string", "string[pyarrow]", object)},
    "pandas arrow string": (TEXT, series(pd.ArrowDtype(pa.string())), [None]),
    "pandas arrow date": (DAYS, series(pd.ArrowDtype(pa.date32())), [None]),
    "pandas arrow timestamp": (TIMES, series(pd.ArrowDtype(pa.timestamp("us"))), [None]),
    "pandas datetime64": (TIMES, series("M8[ns]"), [None]),
    "pandas timedelta64": (SPANS, series("m8[ns]"), [None]),
    "pandas Sparse": ([1, 2, 5], series(pd.SparseDtype("int64", 1)), []),
    "pandas Categorical": (TEXT, categorical([*TEXT, "of no row"]), [None]),
    "pandas Categorical of ints": ([1, 2, 5], categorical([1, 2, 5]), [None]),
    "pandas Categorical of big Int64": (
        [BIG - 1, BIG, 0],
        categorical(pd.Index(BIGS, dtype="Int64")),
        [None],
    ),
    "pandas Categorical of big ints": ([BIG - 1, BIG, 0], categorical(BIGS), [None]),
    **{f"polars {t}": ([1, 2, 5], polars(t), [None]) for t in (pl.Int8, pl.Int64, pl.UInt64, pl.Int128)},
    "polars big Int64": ([BIG - 1, BIG, 0], polars(pl.Int64), [None]),
    **{f"polars {t}": ([0.5, 1.5, 7.5], polars(t), [None, float("nan")]) for t in (pl.Float32, pl.Float64)},
    **{f"polars {t}": (TEXT, polars(t), [None]) for t in (pl.String, pl.Categorical, pl.Enum(TEXT))},
    "polars Boolean": ([False, True, True], polars(pl.Boolean), [None]),
    "polars Binary": ([b"a", b"b", b"never"], polars(pl.Binary), [None]),
    "polars Date": (DAYS, polars(pl.Date), [None]),
    "polars Datetime": (TIMES, polars(pl.Datetime("us")), [None]),
    "polars Datetime ns": (TIMES, polars(pl.Datetime("ns")), [None]),
    "polars Duration": (SPANS, polars(pl.Duration("ms")), [None]),
    "polars Time": ([datetime.time(1), datetime.time(2), datetime.time(3)], polars(pl.Time), [None]),
    "polars Decimal": ([decimal.Decimal(k) for k in ("0.5", "1.5", "2.5")], polars(pl.Decimal(9, 1)), [None]),
}


def neighbours(known, make, missing):
    """Yield columns that differ in one row, and what that row holds: a known value, another one, or None."""
    first, second, other = known
    rows = [first if k % 2 else second for k in range(ROWS)]
    for value in (first, second, other, *missing):
        kind = None if not any(value is v for v in known) else value if value in (first, second) else other
        yield make([*rows[:AT], value, *rows[AT + 1 :]]), kind


@pytest.mark.parametrize("declared", ["values", "values and the missing one", "objects"])
@pytest.mark.parametrize("name", COLUMNS)
def test_columns_that_differ_in_a_row_differ_in_its_code(name, declared):
    known, make, missing = COLUMNS[name]
    first, second, _ = known
    categories = [first, second] if declared != "values and the missing one" else [first, None, second]
    if declared == "objects":
        categories, categories[:] = np.empty(2, object), [first, second]
    encoder = CategoryEncoder(categories, "column 0")
    codes = {first: 0, second: len(categories) - 1}
    wanted = [codes[first] if k % 2 else codes[second] for k in range(ROWS)]
    for column, value in neighbours(known, make, missing):
        gone = value is None
        code = (1 if len(categories) == 3 else 0) if gone else codes.get(value, 0)
        got = encoder.encode_total(column)
        assert got.tolist() == [*wanted[:AT], code, *wanted[AT + 1 :]], (name, value)
        if value in codes or (gone and len(categories) == 3):
            assert encoder.encode(column).tolist() == got.tolist()
        else:
            with pytest.raises(ValueError, match=rf"^column 0 has a {'missing' if gone else 'value that is not'}"):
                encoder.encode(column)


@pytest.mark.parametrize("name", COLUMNS)
def test_labels_that_differ_in_a_row_differ_in_its_code(name):
    known, make, missing = COLUMNS[name]
    first, second, _ = known
    order = sorted([first, second])
    for column, value in neighbours(known, make, missing):
        wanted = [order.index(first if k % 2 else second) for k in range(ROWS)]
        wanted[AT] = order.index(value) if value in order else -1
        codes, classes = label_codes(column, [second, first], ROWS, strict=True)
        assert codes.tolist() == wanted
        assert len(classes) == 2
        if value in order:
            assert label_codes(column, [first, second], ROWS, strict=False)[0].tolist() == wanted
        else:
            with pytest.raises(ValueError, match=r"^y .*holds a missing value or a class that is not declared"):
                label_codes(column, [first, second], ROWS, strict=False)


@pytest.mark.parametrize("name", COLUMNS)
def test_what_is_learned_does_not_depend_on_the_library(name):
    known, make, missing = COLUMNS[name]
    for column, value in neighbours(known, make, missing):
        if value is None:
            with pytest.raises(ValueError, match=r"^column 0 has a missing value"):
                learn_categories(column, "column 0")
        learned = learn_categories(column, "column 0", allow_missing=True)
        wanted = {*known[:2]} | ({value} - {None})
        assert len(learned) == len(wanted) + (value is None)
        codes = CategoryEncoder(learned, "column 0").encode(column)
        assert len(set(codes.tolist())) == len(learned)


@pytest.mark.parametrize(
    "error", [RuntimeError(), SystemExit(), GeneratorExit(), decimal.InvalidOperation(), BaseException()]
)
def test_a_value_that_fails_is_a_stranger(error):
    rows = np.array(["a", "b", Spiteful(error), "b"], dtype=object)
    assert CategoryEncoder(["a", "b"], "column 0").encode_total(rows).tolist() == [0, 1, 0, 1]
    assert label_codes(rows, ["a", "b"], 4, strict=True)[0].tolist() == [0, 1, -1, 1]
    with pytest.raises(ValueError, match=r"^column 0 has a value that is not among"):
        CategoryEncoder(["a", "b"], "column 0").encode(rows)


@pytest.mark.parametrize("name", [n for n in COLUMNS if n not in ("numpy bool", "pandas bool")])
def test_a_stranger_is_not_looked_at_row_by_row(name, monkeypatch):
    """Ten thousand rows, one of them undeclared: what is done for one row alone is done for one row alone."""
    known, make, _ = COLUMNS[name]
    column = make([known[k % 2] for k in range(10_000)] + [known[2]])
    seen = []
    original = CategoryEncoder._code
    monkeypatch.setattr(CategoryEncoder, "_code", lambda self, value: seen.append(1) or original(self, value))
    CategoryEncoder(list(known[:2]), "column 0").encode_total(column)
    assert len(seen) <= 2


def test_equal_numbers_are_equal_whatever_their_type():
    for declared in ([1, 2], [1.0, 2.0], [fractions.Fraction(1), 2], [decimal.Decimal(1), 2], [True, 2], [1, "a", 2]):
        codes = CategoryEncoder(declared, "column 0")
        for column in (
            np.array([1, 2]),
            np.array([1.0, 2.0], "f4"),
            np.array([1, 2], "u1"),
            pl.Series([1, 2]),
            np.array([1, 2.0], object),
        ):
            assert codes.encode(column).tolist() == [0, len(declared) - 1]
        assert codes.encode(np.array([True])).tolist() == [0]
    # floats that share a float are not the same number
    codes = CategoryEncoder([2**53, BIG], "column 0")
    assert codes.encode(np.array([2.0**53])).tolist() == [0]
    assert CategoryEncoder([0.1, 0.5], "column 0").encode_total(np.array([0.5, 0.1], "f4")).tolist() == [1, 0]
    with pytest.raises(ValueError, match="not among"):
        CategoryEncoder([0.1, 0.5], "column 0").encode(np.array([0.1], "f4"))


def test_dates_compare_whatever_their_unit_and_their_library():
    moment = np.datetime64("2020-01-01T00:00:00")
    for declared in (
        [moment, None],
        [moment, np.datetime64("2021-01-01")],
        np.array(["2020-01-01", "2021-01-01"], "M8[D]"),
        [DAYS[0], DAYS[1]],
        [datetime.datetime(2020, 1, 1), None],
        [pd.Timestamp("2020-01-01"), None],
    ):
        encoder = CategoryEncoder(declared, "column 0")
        for column in (
            np.array(["2020-01-01"], "M8[D]"),
            np.array(["2020-01-01"], "M8[ns]"),
            np.array([moment], object),
            pl.Series([DAYS[0]]),
            pd.Series([pd.Timestamp("2020-01-01")]),
        ):
            assert encoder.encode(column).tolist() == [0]
    plain = CategoryEncoder(DAYS, "column 0").plain_categories()
    for days in (np.array(DAYS, "M8[D]"), np.array(DAYS, "M8[ns]"), list(np.array(DAYS, "M8[s]")), pd.Series(DAYS)):
        assert CategoryEncoder(days, "column 0").plain_categories() == plain
    far = np.array(["2020", "300000"], "M8[Y]")
    assert CategoryEncoder(far, "column 0").encode(far).tolist() == [0, 1]
    wrapped = far.astype("M8[us]")  # NumPy runs over in silence
    assert CategoryEncoder(far, "column 0").encode_total(wrapped).tolist() == [0, 0]
    close = [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-01 00:00:00.000000001")]
    assert CategoryEncoder(close, "column 0").encode(pd.Series(close).to_numpy()).tolist() == [0, 1]
