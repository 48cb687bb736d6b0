"""No message shows a value: every container full of a sentinel, through the verbs of the registry, in both modes."""

import copy
import datetime
import decimal
import functools
import inspect
import itertools
import warnings
from collections import Counter
from types import FunctionType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from dpestim import config_context
from dpestim.base import all_estimators
from dpestim.statistics.base import DPStatistic

ROWS = 4
TEXT, NUMBER = "s3cr3t", 918273645
#: As they would be seen, also where a number is printed as a float or a date in another way.
SENTINELS = (TEXT, str(NUMBER), "9.18273645", "9.182736", "1918-02-07", "1918, 2, 7")
VERBS = (
    "fit",
    "partial_fit",
    "privatize",
    "fit_transform",
    "transform",
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score",
)


class ShowsItself:
    """A cell whose every failure shows what it is."""

    def __eq__(self, other):
        raise RuntimeError(TEXT)

    def __hash__(self):
        raise ValueError(TEXT)

    def __float__(self):
        raise TypeError(TEXT)

    def __repr__(self):
        return TEXT


class Table:
    """A container that fails when it is read."""

    shape, ndim, dtype = (ROWS, 1), 2, np.dtype(float)

    def __array__(self, *args, **kwargs):
        raise RuntimeError(TEXT)


CELLS = {
    "text": TEXT,
    "int": NUMBER,
    "float": NUMBER + 0.5,
    "bytes": TEXT.encode(),
    "complex": complex(NUMBER, 1),
    "date": datetime.datetime(1918, 2, 7, 3),
    "duration": datetime.timedelta(NUMBER),
    "decimal": decimal.Decimal(NUMBER),
    "signalling": decimal.Decimal(f"sNaN{NUMBER}"),
    "huge": NUMBER * 10**400,
    "list": [NUMBER, TEXT],
    "dict": {TEXT: 1},
    "tuple": (TEXT, NUMBER),
    "object": ShowsItself(),
    "M8": np.datetime64("1918-02-07"),
    "m8": np.timedelta64(NUMBER, "s"),
    "array": np.array([NUMBER]),
    "complex64": np.complex64(NUMBER + 1j),
}
DTYPES = {
    "f8": NUMBER + 0.5,
    "f4": NUMBER,
    "g": NUMBER,
    "i8": NUMBER,
    "u4": NUMBER,
    "U9": TEXT,
    "S9": TEXT,
    "c16": NUMBER + 1j,
    "M8[s]": NUMBER,
    "m8[s]": NUMBER,
    "O": TEXT,
    "i8,U9": (NUMBER, TEXT),
}
SERIES = (
    *((NUMBER, t) for t in ("Int64", "Float64", "int64[pyarrow]", "category", pd.SparseDtype("int64"))),
    *((NUMBER, t) for t in ("m8[s]", "M8[s]")),
    *((TEXT, t) for t in ("str", "string", "category", pd.ArrowDtype(pa.string()), object)),
    *((NUMBER, t) for t in (pl.Int64, pl.Int128, pl.Float32, pl.Decimal(20, 2), pl.Duration("ms"), pl.Datetime("us"))),
    *((TEXT, t) for t in (pl.String, pl.Categorical, pl.Object)),
    (TEXT.encode(), pl.Binary),
    ([NUMBER], pl.List(pl.Int64)),
    ({"a": NUMBER}, pl.Struct({"a": pl.Int64})),
    (datetime.date(1918, 2, 7), pl.Date),
)  # fmt: skip


def filled(cell, *shape):
    out = np.empty(shape, object)
    for place in np.ndindex(*shape):
        out[place] = cell
    return out


def frame_dtype(name):
    """Return the dtype that a frame of such cells is made with: pandas 2.2 cannot find one for a huge integer."""
    return object if name == "huge" else None


def typed_frame(objects, name):
    """Return a frame whose columns have the dtypes of their cells."""
    if frame_dtype(name) is None:
        return pd.DataFrame(objects.tolist())
    columns = np.atleast_2d(objects.T).tolist()
    dtypes = [object if any(cell is CELLS[name] for cell in column) else None for column in columns]
    return pd.DataFrame({j: pd.Series(column, dtype=dtype) for j, (column, dtype) in enumerate(zip(columns, dtypes))})


def containers(width):
    """Yield (name, make a container whose every cell is a sentinel)."""
    for name, cell in CELLS.items():
        rows = [[cell] * width for _ in range(ROWS)]
        for what, data in (
            ("scalar", cell),
            ("list", [cell] * ROWS),
            ("rows", rows),
            ("ragged rows", [*rows, [cell] * (width + 1)]),
            ("deep rows", [rows]),
            ("dict", {"a": [cell] * ROWS}),
            ("rows of dicts", [{"a": cell}] * ROWS),
            ("objects", filled(cell, ROWS, width)),
            ("flat objects", filled(cell, ROWS)),
            ("0-D", filled(cell)),
            ("deep objects", filled(cell, 1, ROWS, width)),
            ("masked", np.ma.masked_array(filled(cell, ROWS, width))),
            ("pandas objects", pd.DataFrame(filled(cell, ROWS, width), dtype=frame_dtype(name))),
            ("series", pd.Series(filled(cell, ROWS), dtype=frame_dtype(name))),
        ):
            yield f"{what} of {name}", lambda data=data: data
        yield f"generator of {name}", lambda rows=rows: (row for row in rows)
    for dtype, cell in DTYPES.items():
        array = np.empty((ROWS, width), dtype)
        array[...] = cell
        for what, data in (
            ("array", array),
            ("flat array", array[:, 0].copy()),
            ("0-D array", array[0, 0]),
            ("deep array", array[None]),
            ("masked array", np.ma.masked_array(array)),
        ):
            yield f"{what} of {dtype}", lambda data=data: data
    for cell, dtype in SERIES:
        series = (pl if isinstance(dtype, pl.DataType | type(pl.Int64)) else pd).Series
        column = (
            series([cell] * ROWS).cast(dtype)
            if series is pl.Series and cell is NUMBER
            else series([cell] * ROWS, dtype=dtype)
        )
        frame = type(column.to_frame())({f"c{j}": column for j in range(width)})
        yield f"frame of {series.__module__.split('.')[0]} {dtype}", lambda frame=frame: frame
        yield f"series of {series.__module__.split('.')[0]} {dtype}", lambda column=column: column
    numbers = np.full((ROWS, width), NUMBER)
    yield "sparse", lambda: sp.csr_array(numbers)
    yield "lazy frame", lambda: pl.LazyFrame({"a": [TEXT]})
    yield "arrow table", lambda: pa.table({f"c{j}": [TEXT] * ROWS for j in range(width)})
    yield "set", lambda: {TEXT}
    yield "a table that fails", Table


@functools.cache
def all_containers(width):
    return list(containers(width))


def one_cell(X):
    """Yield valid data with one cell that is a sentinel."""
    for name, cell in CELLS.items():
        objects = (X.toarray() if hasattr(X, "nnz") else X).astype(object)  # (of sparse rows: such as are refused)
        objects[(1, -1)[: X.ndim]] = cell
        yield f"one {name}", lambda objects=objects: objects
        yield f"one {name} in a list", lambda objects=objects: objects.tolist()
        dtype = frame_dtype(name)
        yield f"one {name} in a frame", lambda objects=objects, dtype=dtype: pd.DataFrame(objects, dtype=dtype)
        yield f"one {name} in a frame of its dtypes", lambda objects=objects, name=name: typed_frame(objects, name)


def texts(error, caught):
    """Yield all that is said about a failure, causes and contexts included."""
    yield from (str(w.message) for w in caught)
    seen = []
    while error is not None and error not in seen:
        seen.append(error)
        yield f"{error!r} {error} {getattr(error, '__notes__', '')}"
        error = error.__cause__ or error.__context__


def said(est, verb, arguments, strict):
    """Return what is said in a call, and the exception."""
    with warnings.catch_warnings(record=True) as caught, config_context(strict=strict):
        warnings.simplefilter("always")
        try:
            getattr(est, verb)(*arguments)
            return [repr(est), *texts(None, caught)], None
        except BaseException as error:
            return list(texts(error, caught)), error


def calls(cls, params):
    """Yield (what, verb, make its arguments, estimator): all containers for fit, and in turns for the other verbs.

    The estimator is fitted, and to be copied before a call. Whoever skips a call has made nothing for it.
    """
    X, y = cls(**params)._test_data(ROWS)
    fitted = cls(**params).fit(X, y) if hasattr(cls, "fit") else cls(**params)
    first, *others = [verb for verb in VERBS if hasattr(cls, verb)] if hasattr(cls, "fit") else [
        "release" if hasattr(cls, "release") else "process"]
    with_y = {verb for verb in (first, *others)
              if y is not None and "y" in inspect.signature(getattr(cls, verb)).parameters}
    for k, (name, make) in enumerate([*all_containers(X.shape[1] if X.ndim == 2 else 1), *one_cell(X)]):
        for verb in (first, others[k % len(others)]) if others else (first,):
            if verb not in with_y:
                # (with a threshold)
                yield name, verb, lambda make=make, more=(0,) * (verb == "process"): (make(), *more), fitted
                continue
            yield name, verb, lambda make=make: (make(), y), fitted
            yield name, verb, lambda make=make: (X, make()), fitted
            # both at once every fourth time: whichever is read first says what it says beside a good one
            if k % 4 == len(cls.__name__) % 4:
                yield name, verb, lambda make=make: (make(), make()), fitted


#: What a class says of its law, which sees codes and never a value.
LAW = {"__init__", "_law_arguments", "_test_params", "_typical_parameters"}


def code_of(cls):
    """Return all methods of a class, inherited ones too, but for what is about its law; and what its flags are."""
    members = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items() if name not in LAW}
    kinds = FunctionType | property | functools.cached_property | classmethod | staticmethod
    flags = bool | int | tuple | type(None)
    return frozenset((name, value if isinstance(value, kinds) else repr(value))
                     for name, value in members.items() if isinstance(value, kinds | flags) and name != "__doc__")


def readers():
    """Yield the registry, and of what shares all code that meets a value one: the others say nothing else.

    Frequency estimators of plain laws are such, and statistics that read rows alike. (What takes no arrays of cells
    has check_pair_refusals.)
    """
    seen = set()
    for name, cls in all_estimators():
        if cls._checked_as == "keyvalue":
            continue
        reads = cls._read if issubclass(cls, DPStatistic) else code_of(cls)
        if reads not in seen:
            seen.add(reads)
            yield name, cls


def settings():
    """Yield (name, class, every which call): all of them for the first of a kind, then every fourth, in turns."""
    seen = Counter()
    for name, cls in readers():
        seen[cls._checked_as] += 1
        yield name, cls, 1 if seen[cls._checked_as] < 2 else 4


@pytest.mark.parametrize("strict", [False, True], ids=["curator", "analyst"])
@pytest.mark.parametrize(("name", "cls", "step"), list(settings()))
def test_no_message_shows_a_value(name, cls, step, strict):
    n_errors = 0
    # strict mode hides what the other says, on the same road: there, every sixth call, other ones for every class
    step = 6 if strict else step
    for what, verb, arguments, fitted in itertools.islice(calls(cls, cls._test_params()[0]), len(name) % step, None,
                                                          step):
        words, error = said(copy.copy(fitted), verb, arguments(), strict)
        shown = [word for word in words if any(sentinel in word for sentinel in SENTINELS)]
        assert not shown, f"{verb} of {what} shows a value: {shown[0][:300]}"
        # and it is an error of this package: a ValueError that says which input it is about
        assert error is None or isinstance(error, ValueError), f"{verb} of {what}: {error!r}"
        n_errors += error is not None
    assert n_errors > 100 / step, "hardly anything was refused: the test has no power"


def test_the_check_sees_what_is_shown():
    class Shows:
        def fit(self, X):
            try:
                raise ValueError(f"array={X}")
            except ValueError:
                raise ValueError("X is wrong") from None

    words, error = said(Shows(), "fit", (TEXT,), False)
    assert isinstance(error, ValueError)
    assert any(TEXT in word for word in words)
