"""Statistics show numbers with labels, names of columns and intervals (all other results: `test_results.py`)."""

import pickle

import numpy as np
import pytest
from _html import Balanced

from dpestim.base import all_estimators
from dpestim.statistics import Mean, group_by, histogram, mean, quantile

pandas = pytest.importorskip("pandas")
STATISTICS = [pytest.param(cls, params, id=f"{name}-{k}") for name, cls in all_estimators(("statistics",))
              for k, params in enumerate(cls._test_params())]


@pytest.mark.parametrize(("cls", "params"), STATISTICS)
def test_a_statistic_shows_numbers_intervals_labels_and_names(cls, params):
    est = cls(**params, random_state=0)
    X, _ = est._test_data(400)
    table = np.asarray(X).reshape(len(X), -1)
    names = [f"<name> {j}" for j in range(table.shape[1])]
    result = est.fit(pandas.DataFrame(table, columns=names)).result_
    assert [len(labels) for _, labels in result.axes] == list(np.shape(result.value))
    frame, text, html = result.to_frame(), str(result), Balanced(result._repr_html_())
    assert frame["value"].tolist() == np.ravel(result.value).tolist()
    if result.level is None:
        assert frame[["low", "high"]].isna().all(axis=None)
    else:
        low, high = result.interval(result.level)
        assert frame["low"].tolist() == np.ravel(low).tolist()
        assert frame["high"].tolist() == np.ravel(high).tolist()
        assert f"{100 * result.level:g} % interval" in text
    if result.standard_error is not None:
        assert frame["standard_error"].tolist() == np.ravel(result.standard_error).tolist()
    assert any(names[0] in [str(label) for label in labels] or names[0] == name for name, labels in result.axes)
    assert names[0] in text
    assert names[0] in html.seen
    assert any(str(result.privacy) in part for part in html.seen)
    lines = text.splitlines()
    for row, (*labels, value) in zip(lines[1:21], zip(*(frame[name] for name, _ in result.axes), frame["value"])):
        assert all(str(label) in row for label in labels)
        assert f"{value:,}" in row or f"{value:.6g}" in row or f"{value:,.0f}" in row
    copy = pickle.loads(pickle.dumps(result))
    assert str(copy) == text


def test_names_come_from_summaries_series_and_groups():
    frame = pandas.DataFrame({"a": np.arange(50.0), "b": 1.0})
    kind = {"bounds": (0, 50), "random_state": 0}
    released = Mean(1.0, **kind).summarize(frame).merge(Mean(1.0, **kind).summarize(frame)).release()
    assert released.axes == (("column", ["a", "b"]),)
    assert mean(frame.to_numpy(), epsilon=1.0, **kind).axes == (("column", [0, 1]),)
    assert mean(frame["a"], epsilon=1.0, **kind).axes == ()
    assert quantile(frame["a"], [0.25, 0.5], epsilon=1.0, **kind).axes == (("q", [0.25, 0.5]),)
    assert quantile(frame, [0.5], epsilon=1.0, **kind).axes == (("q", [0.5]), ("column", ["a", "b"]))
    bins = histogram(frame["a"], epsilon=1.0, bins=[0, 0.5, 50], random_state=0)
    assert bins.axes == (("a", ["[0, 0.5)", "[0.5, 50]"]),)
    table = pandas.DataFrame({"<age>": [1.0, 2.0] * 20, "size": [0.5] * 40})
    by_group = group_by(Mean(1.0, bounds=(0, 3), neighbours="add_remove", random_state=0), table, ["<a>", "b"] * 20,
                        ["<a>", "b"])
    assert by_group.to_frame()["group"].tolist() == ["<a>", "<a>", "b", "b"]
    assert by_group.to_frame()["column"].tolist() == ["<age>", "size"] * 2
    assert list(by_group) == ["<a>", "b"]


def test_a_long_table_is_cut_and_says_so():
    text = str(histogram(np.arange(100), epsilon=1.0, bins=30, bounds=(0, 100), random_state=0))
    assert len(text.splitlines()) == 1 + 20 + 2
    assert "to_frame() has all" in text
