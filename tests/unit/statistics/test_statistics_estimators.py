"""What analysts meet: counts of rows, one column as a list, a name or a frame, messages that say what to do."""

import numpy as np
import pytest

from dpestim import Domain, statistics
from dpestim.accounting import Ledger
from dpestim.privacy.config import config_context
from dpestim.statistics import Correlation, Count, Mean, StandardDeviation, Sum, group_by
from dpestim.testing.tools import Book

ONE = {"epsilon": 1.0, "bounds": (0, 1)}


def test_rows_are_counted_whatever_is_in_them():
    pandas = pytest.importorskip("pandas")
    for x in ([0, 0, 0, 5] * 100, ["a", "b"] * 200, [None] * 400, np.zeros((400, 3)),
              pandas.DataFrame({"a": ["x", None] * 200})):
        result = statistics.n_rows(x, epsilon=80.0)
        assert result.value == 400
        assert result.about == "the number of rows"
        assert result.privacy.neighbours.value == "add_remove"
    users = {"users": [1, 1, 2, 3], "max_rows_per_user": 1}
    assert statistics.n_rows(["a"] * 4, epsilon=80.0, **users).value == 3
    with pytest.raises(ValueError, match="is public"):
        statistics.n_rows([1], epsilon=1.0, neighbours="substitution")
    with pytest.raises(ValueError, match="an array, a data frame or a list"):
        statistics.n_rows(3, epsilon=1.0)
    with Ledger(1.0, neighbours="add_remove", durability="fast") as ledger:
        statistics.n_rows([1, 2], epsilon=0.5)
    assert ledger.spent().epsilon == 0.5


@pytest.mark.parametrize("x", [[0, 0, 0, 5], ["a", "b"], [0.5], [-1.0]], ids=str)
def test_what_is_neither_true_nor_false_is_not_counted(x):
    book = Book()
    with pytest.raises(ValueError, match="n_rows"):
        Count(1.0, ledger=book).fit(x)
    assert not book.paid
    with config_context(strict=True):
        Count(1.0).fit(np.array([0.0, 5.0]))


def test_a_correlation_of_which_nothing_is_known_is_nan():
    x = np.c_[np.full(1000, 1.25), np.resize([0.0, 1.0, 2.0], 1000), np.resize([0.0, 2.0, 4.0], 1000)]
    for params in ({}, {"neighbours": "add_remove"}):
        results = [Correlation(20.0, bounds=(0, 5), random_state=seed, **params).fit(x).result_ for seed in range(20)]
        # Laplace noise is above two standard deviations with probability 0.03; of 20 releases more than 8 below 1e-8
        unknown = np.array([np.isnan(result.value) for result in results]).sum(axis=0)
        assert unknown[0, 1:].min() >= 12
        assert not unknown[1:, 1:].any()
        result = results[int(np.argmax([np.isnan(result.value[0, 1]) for result in results]))]
        assert result.value[1, 2] > 0.8
        assert result.interval()[0][0, 1] == -1
        assert result.interval()[1][0, 1] == 1
    assert "NaN" in result.about


@pytest.mark.parametrize("cls", [Mean, Sum, StandardDeviation])
@pytest.mark.parametrize("x", [
    [1e308] * 30,  # (the sum of what is finite need not be)
    pytest.param(np.array(["1e400", "0.5", "-1e400"], np.longdouble), marks=pytest.mark.skipif(
        np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="long doubles are no longer than doubles")),
], ids=["sum beyond floats", "numbers beyond floats"])
def test_what_is_finite_is_clipped_however_large_it_is(cls, x):
    one = {**ONE, "random_state": 0}
    assert cls(**one).fit(x).value_ == cls(**one).fit(np.clip(x, 0, 1)).value_
    with pytest.raises(ValueError, match="infinity"):
        cls(**one).fit(np.append(x, np.inf))


@pytest.mark.parametrize("bounds", [(0, 1e4), (-3, 5), (1.25, 1.5)])
def test_errors_of_equal_rows_are_finite(bounds):
    for seed in range(20):
        result = StandardDeviation(0.1, bounds=bounds, random_state=seed).fit(np.full(200, 1.25)).result_
        assert np.isfinite(result.standard_error)


def test_messages_say_what_to_do():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"height": [1.0, np.nan], "g": ["a", "b"]})
    for ask, message in (
        (lambda: statistics.mean([1.0, np.nan], **ONE), r"^X contains NaN.*dropna"),
        (lambda: statistics.mean(frame[["height"]], **ONE), r"^column 'height' of X contains NaN"),
        (lambda: statistics.mean([1.0], epsilon=1.0, bounds=(5, 1)), "wrong order"),
        (lambda: statistics.mean([1.0], epsilon=1.0, bounds=(0, 0)), "equal"),
        (lambda: statistics.median([1.0], **ONE).interval(), "level="),
        (lambda: statistics.mean([1.0], **ONE, users=[1]), "users.*max_rows_per_user.*add_remove"),
        (lambda: statistics.mean([1.0], **ONE, max_rows_per_user=1), "users.*max_rows_per_user.*add_remove"),
        (lambda: group_by(Sum(1.0, bounds=(0, 1), neighbours="add_remove"), frame, "h", ["a"]), "name of one column"),
        (lambda: group_by(Sum(1.0, bounds=(0, 1), neighbours="add_remove"), [1.0], "g", ["a"]), "name of one column"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


def test_a_column_may_be_a_name_and_its_categories_a_list():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1.0, 0.0] * 50, "g": ["a", "b"] * 50})
    est = Mean(80.0, bounds=(0, 1), neighbours="add_remove")
    named, given = group_by(est, frame, "g", ["a", "b"]), group_by(est, frame[["x"]], frame["g"], ["a", "b"])
    for key, mean in (("a", 1.0), ("b", 0.0)):
        assert named[key].value.shape == given[key].value.shape == (1,)
        assert abs(named[key].value[0] - mean) < 0.05
    for own in (["a", "b"], ("a", "b"), np.array(["a", "b"]), [["a", "b"]]):
        for x in (frame["g"], frame["g"].tolist(), tuple(frame["g"])):
            assert statistics.contingency_table(x, epsilon=80.0, categories=own).value.tolist() == [50, 50]
    with pytest.raises(ValueError, match="each of the 2 columns"):
        statistics.contingency_table(frame, epsilon=1.0, categories=["a", "b"])


def test_groups_of_several_columns_are_all_combinations():
    """By names: as a column of pairs says, with the values by place, by name or by a domain; bad names are refused."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": np.linspace(0, 1, 120), "z": 1.0, "g": ["a", "b"] * 60, "h": [0, 1, 2, 3] * 30})
    est, values = Mean(80.0, bounds=(0, 1), neighbours="add_remove", random_state=0), {"g": ["a", "b"], "h": range(4)}
    named = group_by(est, frame, ["g", "h"], [["a", "b"], [0, 1, 2, 3]], columns=["x"])
    assert list(named) == [(g, h) for g in "ab" for h in range(4)]
    for key, result in named.items():
        own = frame["x"][(frame["g"] == key[0]) & (frame["h"] == key[1])]
        assert not len(own) or abs(result.value[0] - own.mean()) < 0.05
    assert "b, 3" in str(named)
    assert len(named.to_frame()) == 8
    for groups in (values, Domain({"x": (0, 1), **values})):
        same = group_by(est, frame, ["g", "h"], groups, columns=["x"])
        assert [result.value for result in same.values()] == [result.value for result in named.values()]
    assert group_by(est, frame, "g", values, columns=["x"])["a"].value == group_by(
        est, frame[["x"]], frame["g"], ["a", "b"])["a"].value
    book = Ledger(100.0, neighbours="add_remove", durability="fast")
    for ask, message in (
        (lambda: group_by(est, frame, ["g", "g"], [["a"], ["a"]]), "each once|list of such names"),
        (lambda: group_by(est, frame, ["g", "k"], [["a"], ["a"]]), "list of such names"),
        (lambda: group_by(est, frame, ["g", "h"], ["a", "b"]), "a list of values for each"),
        (lambda: group_by(est, frame, ["g", "h"], {"g": ["a", "b"]}), "there are none for 'h'"),
        (lambda: group_by(est, frame, ["g", "h"], values, columns=["k"]), "columns must be a list of names"),
        (lambda: group_by(est, frame[["x"]], frame["g"], ["a", "b"], columns=["x"]), "columns must be None"),
        (lambda: group_by(est, frame, ["g", "h"], [range(300), range(300)], columns=["x"]), "at most 65,536"),
    ):
        with book, pytest.raises(ValueError, match=message):
            ask()
    assert not book.entries()


def test_columns_of_other_names_are_not_added():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0] * 9, "b": [0.0] * 9})
    est, other = (Mean(80.0, bounds=(0, 1)).summarize(own) for own in (frame, frame[["b", "a"]]))
    for add in (lambda: est.merge(other), lambda: est.summarize(frame[["b", "a"]]), lambda: other.summarize(frame)):
        with pytest.raises(ValueError, match="same names, in the same order"):
            add()
    assert est.merge(Mean(80.0, bounds=(0, 1)).summarize(frame)).summary_.n_rows == 18
    ages, incomes = (Mean(80.0, bounds=(0, 1)).summarize(frame[name]) for name in "ab")  # (series have names, too)
    with pytest.raises(ValueError, match="same names"):
        ages.merge(incomes)


def test_tuples_in_a_list_are_categories_whichever_row_is_first():
    many = [("a", 1)] * 99
    for x in ([*many, "x"], ["x", *many], many, [("b",), *many]):
        assert statistics.unknown_categories(x, epsilon=10.0, delta=1e-14).keys == ([("a", 1)],)
    assert statistics.unknown_categories([["a"]] * 99, epsilon=10.0, delta=1e-6).keys == (["a"],)
    assert statistics.unknown_categories([None] * 99, epsilon=10.0, delta=1e-6).keys == ([None],)

    class Secret:
        def __len__(self):
            raise RuntimeError("a secret")

        __repr__ = __array__ = __len__

    for x in ([Secret(), "a"], ("a", Secret())):
        with pytest.raises(ValueError, match="strings, numbers"):
            statistics.unknown_categories(x, epsilon=10.0, delta=1e-6)
    with pytest.raises(ValueError, match=r"hashable|equal length|one column"):
        statistics.unknown_categories([["a", 1]] * 99, epsilon=10.0, delta=1e-6)
