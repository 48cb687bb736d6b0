"""One rule for what may be merged, for every estimator of the registry that summarises rows."""

import pickle

import numpy as np
import pytest

from dpestim.base import all_estimators
from dpestim.central import StableRelease

pandas = pytest.importorskip("pandas")
#: Settings that need all rows at once, and say so.
WHOLE = {"bounds": "private", "method": "power"}
REGISTRY = [pytest.param(cls, id=name) for name, cls in all_estimators()]
MERGEABLE = [pytest.param(cls, id=name) for name, cls in all_estimators() if cls.merges == "summaries"]


@pytest.mark.parametrize("cls", REGISTRY)
def test_every_estimator_says_by_which_protocol_it_merges(cls):
    verbs = {name for name in ("summarize", "aggregate", "merge", "release") if hasattr(cls, name)}
    if cls.merges == "summaries":
        assert {"summarize", "release"} <= verbs  # (what keeps no summary returns it, and that merges)
    else:  # (what learns from reports in several rounds aggregates, and does not merge)
        assert cls.merges == ("reports" if "merge" in verbs else "nothing")
        assert "summarize" not in verbs


def mergeable(cls):
    """Return an estimator of the first setting that may summarise rows in parts, and rows for it: a table."""
    for params in cls._test_params():
        if any(params.get(name) == value for name, value in WHOLE.items()) or params.get("edges_fraction"):
            continue
        est = cls(**params)
        X, y = est._test_data(40)
        if np.ndim(X) == 1:
            X = np.asarray(X).reshape(-1, 1)
            if est._bounded and cls._checked_as == "statistic":
                X = np.column_stack([X, X])
        return est, np.asarray(X), y
    raise AssertionError(f"no setting of {cls.__name__} can be merged")


def summarised(est, X, y):
    """Return what `summarize` returns: an estimator that keeps its summary, or a summary by itself."""
    return est.summarize(X) if y is None else est.summarize(X, y)


def added(cls, params, one, other, y):
    """Return how many rows the summary of two parts has."""
    first, second = (summarised(cls(**params), part, y) for part in (one, other))
    merged = first.merge(second)
    return getattr(merged, "summary_", merged).n_rows


@pytest.mark.parametrize("cls", MERGEABLE)
def test_names_of_columns_and_their_order_must_agree(cls):
    est, X, y = mergeable(cls)
    params, names = est.get_params(deep=False), [f"column {j}" for j in range(X.shape[1])]
    frame = pandas.DataFrame(X, columns=names)
    others = names[::-1] if len(names) > 1 else ["another"]
    swapped = pandas.DataFrame(X, columns=others)
    for same in (frame, X, pandas.DataFrame(X)):  # (columns that are numbered have no names)
        assert added(cls, params, same, same, y) == 2 * len(X)
    assert added(cls, params, pandas.DataFrame(X), X, y) == 2 * len(X)
    for one, other in ((frame, swapped), (frame, X), (X, frame), (swapped, frame)):
        with pytest.raises(ValueError, match=r"merge needs .*names"):
            added(cls, params, one, other, y)
        first = summarised(cls(**params), one, y)
        if hasattr(first, "summary_"):
            before = first.summary_
            with pytest.raises(ValueError, match=r"merge needs .*names"):
                summarised(first, other, y)
            assert first.summary_ is before


@pytest.mark.parametrize("cls", MERGEABLE)
def test_rows_are_counted_once_and_what_is_no_summary_is_refused(cls):
    est, X, y = mergeable(cls)
    one, other = (summarised(cls(**est.get_params(deep=False)), X, y) for _ in range(2))
    one, other = getattr(one, "summary_", one), getattr(other, "summary_", other)
    for part in (one, pickle.loads(pickle.dumps(one)), one + other):
        with pytest.raises(ValueError, match="count twice"):
            one.merge(part)
    for part in (X, None, summarised(StableRelease(1.0, delta=1e-6, candidates=[0, 1]), [[0], [1]], None)):
        with pytest.raises(ValueError, match="merge needs"):
            one.merge(part)
