"""Columns to codes: every kind of column, and errors that never show a value."""

from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpestim.inputs import CategoryEncoder, columns_of, is_missing, learn_categories, together

NAME = "column 3"


def encode(categories, column):
    return CategoryEncoder(categories, NAME).encode(column).tolist()


@pytest.mark.parametrize(
    ("categories", "column", "codes"),
    [
        ([5, 6, 7], np.array([7, 5]), [2, 0]),
        ([-1, 0, 1], np.array([1, -1], np.int8), [2, 0]),
        ([2**63, 2**63 + 1], np.array([2**63 + 1], np.uint64), [1]),
        (np.array([2**63, 2**63 + 9], np.uint64), np.array([2**63 + 9, 2**63], np.uint64), [1, 0]),
        ([10, 3, 99], np.array([99, 3, 10], np.uint8), [2, 1, 0]),
        ([10, 3, -(2**60)], np.array([-(2**60), 3]), [2, 1]),
        ([1, 2], np.array([2.0, 1.0]), [1, 0]),
        ([0.5, 1.5], np.array([1.5, 0.5], np.float32), [1, 0]),
        ([1, 2], np.array([2, 1], dtype=object), [1, 0]),
        ([1, 2], np.array([2, 1], dtype=">i8"), [1, 0]),
        ([False, True], np.array([True, False]), [1, 0]),
        (["b", "a"], np.array(["a", "b", "a"]), [1, 0, 1]),
        (["b", "a"], np.array(["a", "b"], dtype=">U1"), [1, 0]),
        (["a long one", "a"], np.array(["a"]), [1]),
        (["b", "a"], np.array(["a", "b"], dtype=object), [1, 0]),
        ([b"b", b"a"], np.array([b"a", b"b"]), [1, 0]),
        ([1, "a"], np.array([1, "a"], dtype=object), [0, 1]),
        ([None, "a"], np.array(["a", None, float("nan")], dtype=object), [1, 0, 0]),
        ([float("nan"), 1.0], np.array([1.0, np.nan]), [1, 0]),
        (np.array(["2020-01-01", "2021-01-01"], "M8[D]"), np.array(["2021-01-01"], "M8[D]"), [1]),
        (["x", "y"], pd.Series(["y", "x"]), [1, 0]),
        (["x", "y"], pd.Series(["y", "x"], dtype=object), [1, 0]),
        (["x", "y"], pd.Series(["y", "x"], dtype="category"), [1, 0]),
        (["x", None], pd.Series(["x", None], dtype="category"), [0, 1]),
        (["x", "y"], pd.Series(["y", "x"], dtype=pd.CategoricalDtype(["unused", "y", "x"])), [1, 0]),
        (["x", None], pd.Series(["x", None]), [0, 1]),
        ([1, 2], pd.Series([2, 1]), [1, 0]),
        ([1, 2], pd.Series([2, 1], dtype="Int64"), [1, 0]),
        ([1, None], pd.Series([None, 1], dtype="Int64"), [1, 0]),
        ([True, False], pd.Series([True, False], dtype="boolean"), [0, 1]),
        (["x", "y"], pl.Series(["y", "x"]), [1, 0]),
        (["x", "y"], pl.Series(["y", "x"], dtype=pl.Categorical), [1, 0]),
        ([1, 2], pl.Series([2, 1]), [1, 0]),
        ([True, False], pl.Series([True, False]), [0, 1]),
        (["x", None], pl.Series([None, "x"]), [1, 0]),
        ([2**53, 2**53 + 1, None], pl.Series([2**53 + 1, None]), [1, 2]),
        (np.array(["2020-01-01", "2021-01-01"], "M8[ns]"), pd.Series(pd.to_datetime(["2021-01-01"])), [1]),
        (np.array(["2020-01-01", "2021-01-01"], "M8[D]"), np.array(["2021-01-01"], "M8[us]"), [1]),
        (np.array(["2020-01-01", "2020-01-01T00:00:00.000000001"], "M8[ns]"), np.array(["2020-01-01"], "M8[ns]"), [0]),
        ([date(2020, 1, 1), date(2021, 1, 1)], np.array(["2021-01-01"], "M8[D]"), [1]),
        ([date(2020, 1, 1), date(2021, 1, 1)], pl.Series([date(2021, 1, 1)]), [1]),
        (np.array(["2020-01-01", "2021-01-01"], "M8[s]"), np.array([datetime(2021, 1, 1)], dtype=object), [1]),
        (np.array([5, 6], "m8[s]"), np.array([6000], "m8[ms]"), [1]),
        ([-1, 2**63 + 1], np.array([2**63 + 1], np.uint64), [1]),
        ([datetime(2020, 1, 1), datetime(2021, 1, 1)], np.array(["2021-01-01"], "M8[us]"), [1]),
        ([datetime(2020, 1, 1), datetime(2021, 1, 1)], pl.Series([datetime(2021, 1, 1)]), [1]),
    ],
    ids=str,
)
def test_codes(categories, column, codes):
    assert encode(categories, column) == codes


@pytest.mark.parametrize(
    ("categories", "column"),
    [
        ([5, 6, 7], np.array([7, 8888])),
        ([5, 6, 7], np.array([8888], np.uint16)),
        ([0, 1], np.array([-8888])),
        ([0, 255], np.array([8888])),
        ([10, 3, 99], np.array([8888])),
        ([10, 3, 99], np.array([8888], np.uint64)),
        (np.array([2**63, 2**63 + 9], np.uint64), np.array([8888])),
        ([1, 2], np.array([8888.5])),
        ([-1, 2**63 + 1], np.array([2**63], np.uint64)),
        (["a", "b"], np.array(["8888"])),
        (["a", "b"], np.array(["8888"], dtype=object)),
        (["a", "b"], np.array([8888])),
        ([1, 2], np.array(["8888"])),
        (["a", "b"], pd.Series(["8888"])),
        (["a", "b"], pd.Series(["8888"], dtype="category")),
        (["a", "b"], pl.Series(["8888"])),
        (["a", "b"], np.array([["8888"], "a"], dtype=object)),
        ([1, 2], np.array([1 + 8888j])),
    ],
    ids=str,
)
def test_an_unknown_category_names_the_column_and_never_the_value(categories, column):
    with pytest.raises(ValueError, match=NAME) as error:
        encode(categories, column)
    assert "8888" not in str(error.value)


@pytest.mark.parametrize(
    "column",
    [
        np.array([1.0, np.nan]),
        np.array([1, None], dtype=object),
        np.array([1, float("nan")], dtype=object),
        pd.Series([1, None], dtype="Int64"),
        pd.Series(["1", None]),
        pd.Series([1, None], dtype="category"),
        pl.Series([1, None]),
        np.array([np.datetime64("NaT")], "M8[s]"),
    ],
    ids=str,
)
def test_a_missing_value_is_an_error_unless_listed(column):
    with pytest.raises(ValueError, match=f"{NAME} has a missing value"):
        encode([1, 2, "1"] if isinstance(column, pd.Series) else [1, 2], column)
    with pytest.raises(ValueError, match=f"{NAME} has a missing value"):
        learn_categories(column, NAME)


@pytest.mark.parametrize("column", [np.array([1.0, np.inf]), np.array([1, -np.inf], dtype=object)], ids=str)
def test_infinity_is_an_error(column):
    with pytest.raises(ValueError, match=f"{NAME} has an infinite value"):
        encode([1.0, 2.0], column)
    with pytest.raises(ValueError, match=f"{NAME} has an infinite value"):
        learn_categories(column, NAME)
    with pytest.raises(ValueError, match="finite"):
        CategoryEncoder([1.0, np.inf], NAME)


@pytest.mark.parametrize(
    "bad",
    [[1], [], [1, 1], ["a", "a"], "ab", 5, [[1, 2], [3, 4]], np.zeros((2, 2)), [None, float("nan")], [[1], [2, 3]],
     [1, True]],
    ids=str,
)
def test_bad_categories(bad):
    with pytest.raises(ValueError, match="categories"):
        CategoryEncoder(bad, NAME)


def test_categories_keep_their_order_and_kind():
    assert CategoryEncoder(["b", "a"], NAME).categories.tolist() == ["b", "a"]
    assert CategoryEncoder([3, 1], NAME).categories.dtype.kind == "i"
    assert CategoryEncoder([1, "a"], NAME).categories.tolist() == [1, "a"]


@pytest.mark.parametrize(
    ("column", "learned"),
    [
        (np.array([3, 1, 3]), [1, 3]),
        (np.array(["b", "a"]), ["a", "b"]),
        (np.array(["b", "a"], dtype=object), ["a", "b"]),
        (pd.Series(["b", "a", "b"]), ["a", "b"]),
        (pd.Series(["b", "a"], dtype="category"), ["a", "b"]),
        (pd.Series(["b", "a"], dtype=pd.CategoricalDtype(["unused", "b", "a"])), ["a", "b"]),
        (pl.Series(["b", "a"]), ["a", "b"]),
        (np.array([0.5, -1.0]), [-1.0, 0.5]),
    ],
    ids=str,
)
def test_learned_categories_are_sorted(column, learned):
    assert sorted(learn_categories(column, NAME).tolist()) == learned


def test_learning_from_values_that_do_not_sort():
    with pytest.raises(ValueError, match=NAME):
        learn_categories(np.array([1, "a"], dtype=object), NAME)


def test_every_container_gives_its_columns():
    frame = {"a": [1, 2], "b": ["x", "y"]}
    for X in (pd.DataFrame(frame), pl.DataFrame(frame), np.array([[1, "x"], [2, "y"]], dtype=object)):
        assert [list(c) for c in columns_of(X)] == [[1, 2], ["x", "y"]]


def test_is_missing():
    for value in (None, float("nan"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT")):
        assert is_missing(value)
    for value in (0, "", "nan", False, np.array([1, 2]), [None]):
        assert not is_missing(value)


@pytest.mark.parametrize("d", [2, 255, 256, 257, 65536, 65537])
def test_the_smallest_dtype_that_holds_the_codes(d):
    codes = CategoryEncoder(np.arange(d), NAME).encode(np.array([d - 1]))
    assert codes.tolist() == [d - 1]
    assert codes.dtype.itemsize == (1 if d <= 256 else 2 if d <= 65536 else 4)


@pytest.mark.parametrize(
    "categories", [np.arange(7), np.array([3, 90, -4, 12]), np.array(["one", "three", "two"]), np.array([False, True])]
)
@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_share_a_column(categories, n_jobs):
    encoder = CategoryEncoder(categories, NAME)
    codes = np.random.default_rng(0).integers(0, len(categories), 600_001)
    assert np.array_equal(encoder.encode(categories[codes], n_jobs), codes)
    if categories.dtype.kind != "b":
        column = categories[codes]
        column[-1] = 91 if column.dtype.kind == "i" else "four"
        with pytest.raises(ValueError, match=f"^{NAME} has a value that is not among"):
            encoder.encode(column, n_jobs)


def test_a_range_of_integers_does_not_run_over_the_end_of_its_type():
    encoder = CategoryEncoder(np.array([254, 255, 0], np.uint8), NAME)
    assert encoder.encode(np.array([0, 255, 254], np.uint8)).tolist() == [2, 1, 0]
    with pytest.raises(ValueError, match="not among its declared"):
        encoder.encode(np.array([256]))


@pytest.mark.parametrize("dtype", "?bhilqBHILQ")
def test_columns_that_are_read_together_have_the_codes_of_columns_read_alone(dtype, monkeypatch):
    """Rows of both orders, more than a tile and a task; what is no category is told by its column."""
    monkeypatch.setattr(together, "_TASK_ROWS", 700)
    lists = [range(2), [1, 0], range(-3, 4), np.arange(2, dtype=np.uint8)]
    tables = [CategoryEncoder(own, f"column {j}") for j, own in enumerate(lists)]
    ranges = [tables[0], *tables[2:]]
    for encoders in (ranges, tables):
        X = np.random.default_rng(0).integers(0, 2, (1500, len(encoders))).astype(dtype)
        for rows in (X, np.asfortranarray(X)):
            found = together.read_together(rows, encoders, 2)
            if rows is X and encoders is tables:
                assert found is None  # (some have no range)
                continue
            assert all(np.array_equal(own.codes, e.encode(x)) for own, e, x in zip(found, encoders, X.T))
            assert all(own.why is None and own.codes.dtype == np.uint8 for own in found)
            if dtype != "?":
                rows = rows.copy(order="K")
                rows[1499, 0] = 2
                found = together.read_together(rows, encoders, 2)
                assert found is None if rows.flags.c_contiguous else "not among" in found[0].why
    assert together.read_together(X[::2], tables) is None
    assert together.read_together(X.astype(float), tables) is None
