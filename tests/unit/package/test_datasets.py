"""The shipped data."""

import builtins

import numpy as np
import pandas as pd
import pytest

from dpestim.datasets import load_us_military, load_yrbss


@pytest.mark.parametrize("loader", [load_us_military, load_yrbss])
def test_arrays_and_frames_hold_the_same(loader):
    plain, framed = loader(), loader(as_frame=True)
    assert plain.feature_names == framed.feature_names == framed.frame.columns.tolist()
    assert plain.frame is None
    assert framed.data is framed.frame
    assert plain.data.shape == framed.frame.shape
    for j, name in enumerate(plain.feature_names):
        column = framed.frame[name].astype(object)
        column = column.where(column.notna(), None).to_numpy()
        assert (column == plain.data[:, j]).all()
    assert "Source:" in plain.DESCR


def test_us_military():
    data = load_us_military(as_frame=True)
    assert data.frame.shape == (1_414_593, 6)
    assert [len(c) for c in data.categories.values()] == [3, 4, 2, 7, 2, 11]
    assert data.categories["rank"].tolist() == list(range(1, 12))
    assert data.categories["hisp"].tolist() == [False, True]
    assert list(data.categories) == data.feature_names
    for name, known in data.categories.items():
        assert set(data.frame[name].unique()) == set(known.tolist())


def test_yrbss():
    frame = load_yrbss(as_frame=True).frame
    assert frame.shape == (12_579, 5)
    assert frame.columns.tolist() == ["age", "gender", "grade", "height", "weight"]
    assert frame.height.mean() == pytest.approx(1.691, abs=5e-4)
    assert frame.weight.mean() == pytest.approx(67.91, abs=5e-3)
    assert frame.height.std() == pytest.approx(0.105, abs=5e-4)
    assert set(frame.gender) == {"female", "male"}
    assert np.isfinite(frame[["age", "height", "weight"]].to_numpy()).all()
    assert set(frame.grade.dropna()) == {"9", "10", "11", "12", "other"}


def test_frames_without_pandas_are_a_clear_error(monkeypatch):
    real = builtins.__import__

    def without_pandas(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ImportError, match=r"dpestim\[pandas\]"):
        load_yrbss(as_frame=True)
    assert load_yrbss().data.shape == (12_579, 5)
    assert pd is not None
