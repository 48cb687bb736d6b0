"""Strict mode: whoever calls learns nothing about a value from an error, a warning, a shape or an entry."""

import datetime
import inspect
import warnings
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.base import all_estimators
from dpestim.statistics import UnknownCategories

ROWS = 12
#: What is no table of rows: its own family of checks has all of this.
OWN_CHECKS = {
    "coverage",
    "graph",
    "graph answers",
    "graph generator",
    "item lists",
    "keyvalue",
    "list generator",
    "lists",
    "nodes",
    "rated rounds",
    "ratings",
    "stream",
}
#: Marks of first, second and third settings.
SETTINGS = (), (pytest.mark.ci, pytest.mark.second), (pytest.mark.law, pytest.mark.ci)
VERBS = ("fit", "partial_fit", "privatize", "fit_transform", "transform", "predict", "predict_proba",
         "get_feature_names_out")


class Spiteful:
    """A value that fails whatever is done to it."""

    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError("do not compare me")

    def __float__(self):
        raise RuntimeError("do not convert me")


class Fatal:
    """A value that can be hashed, and ends the program where it is compared."""

    def __hash__(self):
        return hash("a")

    def __eq__(self, other):
        raise SystemExit("do not compare me")


class Odd(str):
    """A string whose comparison answers with an array."""

    def __eq__(self, other):
        return np.zeros(2)

    def __hash__(self):
        return 0


OBJECTS = [None, float("nan"), float("inf"), "never declared", 10**30, Spiteful(), [1, 2], {}, Odd("x"), 1j, b"x",
           np.datetime64("NaT"), (), Fatal(), Decimal("sNaN")]
FLOATS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e30]
INTS = [-(2**62), 2**62, -1, 99]


def neighbours(X, y):
    """Yield data sets that differ from (X, y) in one record and in nothing that a schema says."""
    values = OBJECTS if X.dtype.kind == "O" else FLOATS if X.dtype.kind == "f" else INTS
    for value in values:
        for place in {(3, 0), (3, X.shape[1] - 1)} if X.ndim == 2 else {3, 0}:
            other = X.copy()
            other[place] = value
            yield other, y
    if y is not None:
        others = [*FLOATS] if y.dtype.kind == "f" else INTS if y.dtype.kind in "iu" else OBJECTS
        for value in (*others, y[0], y[1]):
            other = y.copy()
            other[3] = value
            yield X, other


def shapes(item):
    if isinstance(item, np.ndarray):
        return (item.shape, item.dtype.str)
    if isinstance(item, list | tuple):
        return [shapes(i) for i in item]
    if hasattr(item, "shape"):
        return item.shape
    return type(item).__name__


def outcome(ledger, cls, params, X, y, strict=True):
    """Return everything that an analyst sees besides the released numbers; of the ledger, what is added to it."""
    est, seen, n_before = cls(**params), [], len(ledger)
    if "random_state" in est.get_params():
        est.set_params(random_state=0)
    with config_context(strict=strict), ledger:
        for verb in VERBS if hasattr(cls, "fit") else ("release", "process"):
            if not hasattr(est, verb):
                continue
            takes_y = "y" in inspect.signature(getattr(est, verb)).parameters  # (reports may cover y, too)
            arguments = () if verb == "get_feature_names_out" else (X, y) if takes_y else (X,)
            arguments += (0,) * (verb == "process")  # (a threshold)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    result = getattr(est, verb)(*arguments)
                    seen.append((verb, "self" if result is est else shapes(result)))
                except Exception as error:
                    seen.append((verb, type(error).__name__, str(error)))
            seen.append([(w.category.__name__, str(w.message)) for w in caught])
        # (not `dir`, which asks for every one of them already)
        for name in sorted(n for n in object.__dir__(est) if n.endswith("_") and not n.startswith("_")):
            seen.append((name, shapes(getattr(est, name, None))))
        seen.append(str(getattr(est, "privacy_", None)))
    added = ledger.entries()[n_before:]
    return [*seen, [{k: v for k, v in e.items() if k not in ("number", "time", "hash")} for e in added]]


@pytest.mark.parametrize(
    ("cls", "params", "turn"),
    [pytest.param(cls, p, k, id=f"{name}-{k}", marks=SETTINGS[min(k, 2)])
     for name, cls in all_estimators()
     for k, p in enumerate(cls._test_params())  # (of groups: refused)
     if not p.get("settings") and cls._checked_as not in OWN_CHECKS],
)
def test_neighbouring_data_look_the_same(cls, params, turn):
    X, y = cls(**params)._test_data(ROWS)
    own = partial(Ledger, float("inf"), delta=0.999, durability="fast")
    if params.get("delta", 0) < 0.001:  # one for all, as a new one takes longer than a fit: there is room in it
        shared = own()
        own = lambda: shared  # noqa: E731
    wanted = outcome(own(), cls, params, X, y)
    assert wanted[-1], "nothing was charged: the test has no power"
    assert not any(isinstance(s, tuple) and len(s) == 3 for s in wanted), f"valid data fail in strict mode: {wanted}"
    n = 0
    others = list(neighbours(X, y))
    # a class sees all of them once, in its first setting, and in each other setting every third one, in turns
    for other_X, other_y in others if turn == 0 else others[turn % 3 :: 3]:
        assert outcome(own(), cls, params, other_X, other_y) == wanted
        n += 1
    assert n >= (4 if turn == 0 else 1)
    tags = cls(**params).__sklearn_tags__().input_tags
    if getattr(cls, "_integers", False) or (y is None and tags.categorical and tags.allow_nan):
        return  # every integer is an answer, any value may be a category: there is nothing to hide
    loose = outcome(own(), cls, params, X, y, strict=False)
    assert any(outcome(own(), cls, params, *other, strict=False) != loose for other in others), "no power"


@pytest.mark.parametrize(("name", "cls"), all_estimators())
def test_the_same_data_are_errors_for_a_curator(name, cls):
    """Outside strict mode a bad value is a ValueError, which is what strict mode hides."""
    if cls is UnknownCategories:
        return  # whatever can be named is a category, what is missing too
    params = cls._test_params()[0]
    if cls(**params).__sklearn_tags__().input_tags.allow_nan:
        pytest.skip("it takes missing values")
    X, y = cls(**params)._test_data(ROWS)
    bad = X.astype(object) if X.dtype.kind in "OU" else X.astype(float)
    bad[(3, 0)[: X.ndim]] = np.nan
    est = cls(**params)
    with pytest.raises(ValueError, match=r"NaN|missing"):
        est.fit(bad, y) if hasattr(est, "fit") else est.process(bad, 0) if hasattr(est, "process") else est.release(bad)


def frame_columns():
    """Yield (name, make a column of valid values with this in row 3, categories) over dtypes that frames have."""
    days = [datetime.date(2020, 1, 1 + k % 2) for k in range(ROWS)]
    big = [2**53 + 1 + k % 2 for k in range(ROWS)]
    text = ["a" if k % 2 else "b" for k in range(ROWS)]
    flags = [k % 2 == 0 for k in range(ROWS)]
    for name, values, dtype, categories in (
        ("date", days, pl.Date, np.array(["2020-01-01", "2020-01-02"], "M8[D]")),
        ("date by ns", days, pl.Date, np.array(["2020-01-01", "2020-01-02"], "M8[ns]")),
        ("date objects", days, pl.Date, sorted(set(days))),
        ("ns", days, pl.Datetime("ns"), np.array(["2020-01-01", "2020-01-02"], "M8[ns]")),
        ("int", big, pl.Int64, sorted(set(big))),
        ("str", text, pl.String, ["a", "b"]),
        ("categorical", text, pl.Categorical, ["a", "b"]),
        ("bool", flags, pl.Boolean, [False, True]),
    ):
        yield f"polars {name}", lambda v, d=dtype, x=values: pl.DataFrame({"c": pl.Series([*x[:3], v, *x[4:]], dtype=d,
                                                                          strict=False)}), categories
    codes = pd.Index(sorted(set(big)), dtype="Int64")
    for name, values, dtype, categories in (
        ("Int64", big, "Int64", sorted(set(big))),
        ("Categorical of Int64", big, pd.CategoricalDtype(codes), sorted(set(big))),
        ("string", text, "string", ["a", "b"]),
        ("object", text, object, ["a", "b"]),
        ("boolean", flags, "boolean", [False, True]),
        ("datetime", days, "M8[ns]", np.array(["2020-01-01", "2020-01-02"], "M8[ns]")),
    ):
        yield f"pandas {name}", lambda v, d=dtype, x=values: pd.DataFrame({"c": pd.Series([*x[:3], v, *x[4:]],
                                                                          dtype=d)}), categories


FRAMES = list(frame_columns())


@pytest.mark.parametrize(("make", "categories"), [f[1:] for f in FRAMES], ids=[f[0] for f in FRAMES])
def test_a_null_changes_nobody_elses_report(make, categories):
    from dpestim.local import GRRFrequencyEstimator

    def reports(frame):
        est = GRRFrequencyEstimator(60.0, categories=[categories], random_state=0)  # next to no noise
        with config_context(strict=True):
            return np.delete(est.privatize(frame)[:, 0], 3)

    whole = reports(make(make(None)["c"][0]))
    assert len(set(whole.tolist())) == 2
    np.testing.assert_array_equal(reports(make(None)), whole)


#: Classes that share a float, and columns that hold them.
NEAR = [2**53, 2**53 + 1]
LABELS = {
    "pandas Categorical": lambda y: pd.Series(y, dtype=pd.CategoricalDtype(NEAR)),
    "pandas Int64": lambda y: pd.Series(y, dtype="Int64"),
    "polars Int64": lambda y: pl.Series(y, dtype=pl.Int64),
    "objects": lambda y: np.array(y, dtype=object),
}


@pytest.mark.parametrize("make", LABELS.values(), ids=LABELS)
def test_a_missing_label_changes_nobody_elses(make):
    from dpestim.linear_model import DPLogisticRegression

    X = np.linspace(-1, 1, 400)[:, None]
    y = [NEAR[int(x > 0)] for x in X[:, 0]]

    def right(labels):
        with config_context(strict=True):
            est = DPLogisticRegression(80.0, data_norm=1.0, classes=NEAR, random_state=0).fit(X, make(labels))
            return np.mean(est.predict(X) == y)

    assert right(y) > 0.95
    assert right([*y[:3], None, *y[4:]]) > 0.95
