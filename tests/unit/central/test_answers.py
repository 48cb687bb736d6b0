"""Answers that mechanisms add noise to: containers and dtypes, how large they may be, and scikit-learn around them."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.central import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    StaircaseMechanism,
)
from dpestim.central.additive.answers import read_answers
from dpestim.inputs.safe_errors import attempt

MECHANISMS = [LaplaceMechanism, DiscreteLaplaceMechanism, GaussianMechanism, DiscreteGaussianMechanism,
              StaircaseMechanism]


def made(cls, **params):
    delta = {"delta": 1e-5} if "delta" in cls().get_params() else {}
    return cls(**{"epsilon": 1.0, "sensitivity": 1, "random_state": 0, **delta, **params})


# ---------------------------------------------------------------- how they are read

COUNTS = {
    "NumPy": np.array([1, 2]), "unsigned": np.array([1, 2], np.uint64), "pandas": pd.Series([1, 2]),
    "nullable": pd.Series([1, 2], dtype="Int64"), "small": pd.Series([1, 2], dtype="UInt8"),
    "polars": pl.Series("a", [1, 2]), "polars, small": pl.Series("a", [1, 2], dtype=pl.Int8),
}
WITH_NULLS = {
    "nullable": pd.Series([1, None], dtype="Int64"), "boolean": pd.Series([True, None], dtype="boolean"),
    "polars": pl.Series("a", [1, None]), "polars, boolean": pl.Series("a", [True, None]),
    "frame": pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), "polars frame": pl.DataFrame({"a": [1, None]}),
}


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("strict", [False, True])
def test_counts_are_counts_in_every_container(name, strict):
    for integers in (True, False):
        for bounds in (None, (-1000, 1000)):
            read = read_answers(COUNTS[name], integers=integers, strict=strict, bounds=bounds)
            assert read.tolist() == [1, 2]
            assert read.dtype == (np.int64 if integers else np.float64)


@pytest.mark.parametrize("name", WITH_NULLS)
@pytest.mark.parametrize("integers", [True, False])
def test_a_null_is_refused_or_the_middle(name, integers):
    ledger = Ledger(1.0)
    mechanism = (DiscreteLaplaceMechanism if integers else LaplaceMechanism)(sensitivity=1, ledger=ledger)
    with pytest.raises(ValueError, match="finite"):
        mechanism.release(WITH_NULLS[name])
    assert ledger.spent().is_nothing
    for bounds, middle in ((None, 0), ((-10, 20), 5)):
        read = read_answers(WITH_NULLS[name], integers=integers, strict=True, bounds=bounds)
        assert read.reshape(-1).tolist() == [1, middle]


@pytest.mark.parametrize("make", [lambda x: pd.Series(x, dtype="Int64"), lambda x: pl.Series("a", x, dtype=pl.Int64),
                                  lambda x: pd.DataFrame({"a": pd.array(x, dtype="Int64"), "b": 1.0})[["a"]]])
def test_a_null_changes_no_other_answer(make):
    """As floats 2^53 + 1 and 2^53 would be one number."""
    one, two = (read_answers(make([2**60 + 1, x]), integers=True, strict=True, bounds=None) for x in (7, None))
    assert one.reshape(-1)[0] == two.reshape(-1)[0] == 2**60 + 1


def test_dtypes_that_are_no_counts_are_refused_in_strict_mode():
    with config_context(strict=True):
        for values in ([1, 2], pd.Series([1, 2], dtype=object), pd.DataFrame({"a": [1.0]}), pl.Series([1.0]), 1.0,
                       np.array([1], object)):
            with pytest.raises(ValueError, match="strict mode"):
                DiscreteLaplaceMechanism(sensitivity=1).release(values)


@pytest.mark.filterwarnings("error")
def test_no_value_makes_a_warning():
    """A signalling NaN is noticed by the processor when it is converted."""
    nan = np.array([0x7FA00000], np.uint32).view(np.float32)
    with config_context(strict=True):
        assert math.isfinite(made(LaplaceMechanism).release(nan)[0])
    assert made(DiscreteLaplaceMechanism).release(np.ones(3, np.float16)).shape == (3,)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_errors_name_the_column(frame):
    X = frame({"men": [1.0, 2.0], "women": [3.0, math.nan]})
    for mechanism in (LaplaceMechanism(sensitivity=1.0), DiscreteLaplaceMechanism(sensitivity=1)):
        for verb, name in ((mechanism.release, "values"), (mechanism.fit, "X"), (mechanism.transform, "X")):
            with pytest.raises(ValueError, match=f"column 'women' of {name} must be finite"):
                verb(X)
    with pytest.raises(ValueError, match="column 1 of X must be finite"):
        mechanism.transform(np.array([[1.0, math.inf]]))
    with pytest.raises(ValueError, match="column 'women' of X must be integers"):
        mechanism.transform(frame({"men": [1.0], "women": [0.5]}))


# ---------------------------------------------------------------- how large they may be


@pytest.mark.law
@pytest.mark.parametrize("cls", MECHANISMS)
def test_answers_beyond_the_grid_are_refused_or_cut(cls):
    """Outside strict mode before anything is charged; in strict mode nothing overflows, and nothing is not finite."""
    reach, kind = made(cls).law().reach, np.int64 if cls._integers else np.float64
    assert reach == 2.0**61 if cls._integers else reach >= 2**48
    answers = [2**62, -(2**62), 10**30, 2**63, np.int64(-(2**63)), np.uint64(2**64 - 1)]
    answers += [] if cls._integers else [1e308, -1e308, 1.01 * reach]
    for answer in answers:
        for values in (answer, np.array([answer], None if isinstance(answer, np.generic) else float), [1, answer]):
            ledger = Ledger(1.0, delta=0.1)
            with pytest.raises(ValueError, match=r"must be at most|up to 2\^53"):
                made(cls, ledger=ledger).release(values)
            assert ledger.spent().is_nothing
        bounded = made(cls, bounds=(-5, 2**30)).release(np.array([answer], np.uint64 if answer is answers[-1] else None)
                                                        if isinstance(answer, np.generic) else answer)
        assert -5 <= bounded <= 2**30
        with config_context(strict=True):
            released = made(cls).release(answer)
            assert isinstance(released, int if cls._integers else float)
            assert 2**40 < abs(released) <= reach
    assert abs(made(cls).release(kind(reach))) > 2**40  # the largest is none too many
    if not cls._integers:
        for answer in (5e-324, 1e-320):
            assert math.isfinite(made(cls).release(answer))


def test_bounds_beyond_the_grid_are_refused():
    mechanism = LaplaceMechanism(1.0, sensitivity=1e-6, bounds=(0.0, 1e10))
    for strict in (False, True):
        with config_context(strict=strict), pytest.raises(ValueError, match="bounds must be at most"):
            mechanism.release(1.0)


def test_large_integers_stay_exact():
    """As floats 2^53 + 1 and 2^53 would be one number, and their neighbours two apart."""
    mechanism = DiscreteLaplaceMechanism(80.0, sensitivity=1, random_state=0)
    answers = np.array([2**60 + 1, -(2**60) - 1, 2**53 + 1])
    for values in (answers, answers.tolist(), pd.Series(answers), pl.Series(answers),
                   pd.DataFrame({"a": answers, "b": [0.0, 1.0, 2.0]})[["a"]]):
        assert (np.abs(np.asarray(mechanism.release(values)).reshape(-1) - answers) <= 1).all()


def test_how_an_integer_is_read_depends_on_no_other_answer():
    """Lists and objects make floats of integers beyond 2^53 where another answer is one: these are refused."""
    for large in (2**53 + 1, 2**53 + 2, 2**60 + 1, 2**63):
        for others in ([1, 2], [1, -2], [1.0, 2], [True, 2], [2**63, -1], [2.0**70, 1.5]):
            frames = (pd.DataFrame({"a": [large], "b": [others[0]], "c": [others[1]]}),
                      pd.Series([large], dtype="UInt64"),
                      pl.DataFrame({"a": [large], "b": [1.5]}, schema={"a": pl.UInt64, "b": pl.Float64}))
            for values in frames:
                read = read_answers(values, integers=False, strict=True, bounds=None)
                assert read.reshape(-1)[0] == 2**53, (large, others)
            whole = [large, *others]
            for values in (*frames, whole, np.array(whole, object), pd.Series(whole, dtype=object)):
                with pytest.raises(ValueError, match=r"up to 2\^53"):
                    read_answers(values, integers=False, strict=False, bounds=None)
            for values in ([whole], np.array([whole], object), pd.DataFrame([whole], dtype=object)):
                answers, error = attempt(DiscreteLaplaceMechanism(sensitivity=1)._read_table, values, reset=True)
                assert error is not None or answers[0][0, 0] == large
    for values in ([np.inf, 1], [1.0, np.inf], pd.Series([np.inf])):
        with pytest.raises(ValueError, match="finite"):
            read_answers(values, integers=True, strict=False, bounds=None)
    assert read_answers([1e17, 1.5], integers=False, strict=False, bounds=None)[0] == 1e17  # a float is what it is


# ---------------------------------------------------------------- scikit-learn around them


def test_frames_keep_their_labels():
    frame = pd.DataFrame({"men": [1, 2], "women": [3, 4]}, index=["a", "b"])
    released = DiscreteLaplaceMechanism(1.0, sensitivity=1).release(frame)
    assert released.index.equals(frame.index)
    assert released.columns.equals(frame.columns)
    assert (released.dtypes == np.int64).all()
    out = DiscreteLaplaceMechanism(1.0, sensitivity=1).set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["men", "women"]


def halves(X):
    return X // 2


@pytest.mark.parametrize("wrap", [
    lambda m: make_pipeline(FunctionTransformer(halves, feature_names_out="one-to-one"), m),
    lambda m: ColumnTransformer([("noise", m, ["men", "women"])], verbose_feature_names_out=False),
])
def test_a_table_in_a_pipeline(wrap):
    """One release for the table, labels kept, and a fit that releases nothing."""
    frame = pd.DataFrame({"men": [10, 20], "women": [30, 40]}, index=["a", "b"])
    ledger = Ledger(2.0)
    table = wrap(DiscreteLaplaceMechanism(1.0, sensitivity=1, ledger=ledger)).set_output(transform="pandas")
    table.fit(frame)
    spent = ledger.spent().epsilon
    assert spent == (1 if isinstance(table, ColumnTransformer) else 0)  # that one transforms in order to fit
    out = table.transform(frame)
    assert ledger.spent().epsilon - spent == 1
    assert list(out.columns) == list(table.get_feature_names_out()) == ["men", "women"]
    assert out.index.equals(frame.index)
    assert (out.dtypes == np.int64).all()


def test_a_search_over_epsilon():
    """Scored by how near the noisy table is: an exact comparison, so for public data only; more epsilon is nearer."""
    X = np.arange(4000).reshape(-1, 2)

    def near(mechanism, X, y=None):
        return -np.abs(mechanism.transform(X) - X).mean()

    search = GridSearchCV(DiscreteLaplaceMechanism(sensitivity=1, random_state=0), {"epsilon": [0.1, 1.0, 4.0]},
                          scoring=near, cv=2).fit(X)
    assert search.best_params_ == {"epsilon": 4.0}
    assert np.all(np.diff(search.cv_results_["mean_test_score"]) > 0)


# ---------------------------------------------------------------- nothing is charged for what cannot be returned

@pytest.mark.parametrize("output", ["pandas", "polars", "nope"])
def test_what_set_output_lacks_is_found_before_anything_is_charged(output):
    ledger, table = Ledger(1.0), np.ones((2, 2))
    mechanism = LaplaceMechanism(1.0, sensitivity=1, ledger=ledger).set_output(transform=output)
    _, error = attempt(mechanism.transform, table)  # no such output, or no names of columns (older versions need none)
    assert ledger.spent().epsilon == (0 if error else 1)
    if output == "nope":
        assert error is ValueError
    elif error:
        assert mechanism.fit_transform(table).shape == (2, 2)
        assert ledger.spent().epsilon == 1


def test_columns_of_one_name_are_a_value_error():
    frame = pd.DataFrame(np.ones((2, 2)), columns=["a", "a"])
    ledger = Ledger(1.0)
    with pytest.raises(ValueError, match="columns of different names"):
        LaplaceMechanism(1.0, sensitivity=1, ledger=ledger).fit_transform(frame)
    assert ledger.spent().epsilon == 0
    assert LaplaceMechanism(1.0, sensitivity=1, ledger=ledger).release(frame).shape == (2, 2)


class Unnamed(pd.Series):
    """A series whose makers give it no name."""

    def __init__(self, data):
        super().__init__(data)


def test_series_of_a_sub_class_come_back():
    out = LaplaceMechanism(1.0, sensitivity=1).release(Unnamed([1.0, 2.0]))
    assert type(out) is pd.Series
    assert len(out) == 2
