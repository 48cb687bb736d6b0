"""Parts of a table: how their rows are read, and the parts of one process.

Whatever holds parts has `example`, one made-up row as `Split` returns rows, and ``answer(request)``, the merged answer
of all parts, None where there is no row.
"""

import glob
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np
from scipy.sparse import issparse

from dpestim.passes import Place, size
from dpestim.records import record


@record
class Split:
    """Takes rows of one part apart into a tuple of what `fit` takes; small, as it travels with each request.

    Parameters
    ----------
    name : str or None
        The column of the targets, or of the users.
    of : {"y", "users"}
    columns : tuple of str or None
        The columns of X, in this order; None: all others.
    """

    name: str | None = None
    of: str = "y"
    columns: tuple | None = None

    @classmethod
    def by(cls, y, users, columns=None):
        """Return that for these arguments of `fit`, or raise ValueError."""
        for name, value in (("y", y), ("users", users)):
            if value is not None and not isinstance(value, str):
                raise ValueError(f"{name} must be the name of a column of the data")
        if y is not None and users is not None:
            raise ValueError("y or users must be None: statistics take users, and models take y")
        name, of = (y, "y") if users is None else (users, "users")
        if columns is not None:
            wrong = not isinstance(columns, list | tuple) or not columns or not all(
                isinstance(own, str) for own in columns)
            if wrong or len({*columns, name}) <= len(columns):
                raise ValueError("columns must be a list of different names of columns of the data, without that of "
                                 "y or users")
            columns = tuple(columns)
        return cls(name, of, columns)

    @property
    def wanted(self):
        """The names of all columns that are read, a list; None: all."""
        return None if self.columns is None else [*self.columns, *([] if self.name is None else [self.name])]

    def check(self, names):
        """Raise ValueError unless each column that is wanted is among these names, once."""
        names = list(names)
        if self.name is not None and names.count(self.name) != 1:
            raise ValueError(f"{self.of} must be the name of a column of the data, and of one column only")
        for name in self.columns or ():
            if names.count(name) != 1:
                raise ValueError(f"columns must be names of columns of the data, and each of one column only: change "
                                 f"{name!r}, or give parts that have such a column. Arrays have no names")

    def project(self, rows):
        """Return a frame or a table of the columns that are wanted; an engine then reads no others."""
        if self.columns is None:
            return rows
        if hasattr(rows, "column_names"):  # (of Arrow)
            self.check(rows.column_names)
            return rows.select(self.wanted)
        self.check(getattr(rows, "columns", ()))
        return rows[self.wanted]

    def __call__(self, rows):
        """Return (X,), (X, y) or (X, users)."""
        if type(rows) is tuple:
            if self.name is not None:
                raise ValueError(f"{self.of} must be None with pairs, which have their own: leave {self.of} out")
            if self.columns is None:
                return rows
            return frame_of(replace(self, name=None).project(rows[0])), *rows[1:]
        rows = frame_of(self.project(rows))
        if self.name is None:
            return (rows,)
        self.check(getattr(rows, "columns", ()))
        return rows[[name for name in rows.columns if name != self.name]], rows[self.name]


@record
class Shown:
    """What a row is turned into: a number (or text), or so many numbers; engines must know it before the rows.

    Parameters
    ----------
    name : str
        Of the column, where an engine holds a frame.
    width : int or None
    dtype : dtype
    """

    name: str
    width: int | None
    dtype: np.dtype

    @classmethod
    def like(cls, name, rows):
        """Return that of an array of what some rows are turned into."""
        if issparse(rows):
            raise ValueError("Dask and Spark take dense arrays: set sparse_output=False")
        rows = np.asarray(rows)
        return cls(name, rows.shape[1] if rows.ndim > 1 else None, rows.dtype)

    @property
    def shape(self):
        """The shape of a row."""
        return () if self.width is None else (self.width,)

    def filled(self, rows):
        """Return rows as an array, also where there are none."""
        return np.empty((0, *self.shape), self.dtype) if rows is None else np.asarray(rows)


class Batches:
    """Batches in this process, one after the other: frames, Arrow tables or record batches, arrays, (X, y) pairs."""

    def __init__(self, batches, y=None, users=None, columns=None):
        self.split = Split.by(y, users, columns)
        if users is not None:
            raise ValueError("users needs all rows of a user in one part: give one frame to fit, or use an engine "
                             "that shuffles by a column (Dask, Spark)")
        # (an object may hand out one iterator again and again, which a first look would shorten)
        self.once = isinstance(batches, Iterator) or iter(batches) is iter(batches)
        self.batches, self.asked = batches, 0

    @property
    def example(self):
        """One made-up row of the columns and types of the first batch."""
        batches = iter(self.batches)
        first = next(batches, None)
        if first is None:
            raise ValueError("the data must have at least one batch")
        if self.once:
            self.batches = chain([first], batches)
        return self.split(made_up(first))

    def answer(self, request):
        """Return the merged answer of all batches, which are read one after the other."""
        if self.once and (self.asked or getattr(request, "again", False)):
            raise ValueError("the data are read more than once: give a list, a file or an object whose iter() starts "
                             "anew, in place of a generator")
        self.asked += 1
        total, before = None, 0
        for number, batch in enumerate(self.batches):
            rows = self.split(batch)
            place = Place(0, before) if request.needs_order else Place(number, 0)
            total, before = added(request, total, request(rows, place)), before + size(rows)
            self.done(size(rows))
        return total

    def done(self, n_rows):
        """Hear that one more part was read; whoever watches replaces this."""

    def reports(self, request, shown):
        """Yield what the rows of each batch are turned into."""
        before = 0
        for number, batch in enumerate(self.batches):
            rows = self.split(batch)
            place = Place(0, before) if request.needs_order else Place(number)
            found, before = request(rows, place), before + size(rows)
            if found is not None:
                yield found


class Files(Batches):
    """A `pyarrow.dataset.Dataset`, or Parquet files by names or patterns: record batches, in constant memory."""

    def __init__(self, source, y=None, users=None, columns=None, batch_rows=1 << 20):
        import pyarrow.dataset

        if not hasattr(source, "get_fragments"):
            given = list(map(os.fspath, source if isinstance(source, list | tuple) else [source]))
            # (a name that is there is no pattern, whatever brackets it has)
            found = [[name] if os.path.isfile(name) else sorted(glob.glob(name)) for name in given]
            names = [name for some in found for name in some]
            if not all(found) or not all(map(os.path.isfile, names)):
                raise ValueError("no file has such a name: give the name of a Parquet file, a list of names, or a "
                                 "pattern such as 'reports/*.parquet'")
            if len(set(map(os.path.realpath, names))) < len(names):
                raise ValueError("a file must be named once only, because its rows would count twice: remove the "
                                 "name that stands twice or meets a pattern")
            source = [pyarrow.dataset.dataset(name, format="parquet") for name in names]
        self.datasets, self.batch_rows = source if isinstance(source, list) else [source], batch_rows
        super().__init__(self, y, users, columns)
        for dataset in self.datasets:
            self.split.check(dataset.schema.names)
        names = self.datasets[0].schema.names
        if columns is None and any(sorted(own.schema.names) != sorted(names) for own in self.datasets):
            raise ValueError("all files must have the same columns: name those that are wanted by columns")
        self.wanted = self.split.wanted or names

    def __iter__(self):
        """Yield record batches, from the first on.

        Each file keeps its own types: cast to those of another file, a column that is missing would have nulls, and the
        error of a cast would tell a value.
        """
        for dataset in self.datasets:
            yield from dataset.to_batches(columns=self.wanted, batch_size=self.batch_rows)

    @property
    def example(self):
        """One made-up row of the columns and types of the files."""
        return self.split(made_up(self.datasets[0].schema.empty_table()))


def added(request, one, other):
    """Return the sum of two answers, of which either may be None."""
    return other if one is None else one if other is None else request.add(one, other)


def frame_of(rows):
    """Return Arrow data as a pandas frame, and all else as it is.

    Integers stay integers, whatever is missing beside them: as floats, one null would change the values of other rows.
    """
    return rows.to_pandas(types_mapper=_nullable) if type(rows).__module__.split(".")[0] == "pyarrow" else rows


def frame_of_records(records):
    """Return records (dicts) as a frame whose values are as they were written, for the same reason."""
    import pandas

    return pandas.DataFrame(records, dtype=object)


def _nullable(kind):
    """Return the type of pandas that has a null besides, where the usual one has not; None elsewhere."""
    import pandas
    import pyarrow

    if pyarrow.types.is_boolean(kind):
        return pandas.BooleanDtype()
    if pyarrow.types.is_integer(kind):
        return pandas.api.types.pandas_dtype(str(kind).replace("uint", "UInt").replace("int", "Int"))
    return None


def made_up(rows):
    """Return one row of the same columns and types, of which no value is of the data."""
    if type(rows) is tuple:
        return tuple(map(made_up, rows))
    rows = frame_of(rows)
    if isinstance(rows, list):
        return made_up(np.asarray(rows)).tolist()
    if issparse(rows):
        return type(rows)((1, rows.shape[1]), dtype=rows.dtype)
    if isinstance(rows, np.ndarray):
        return np.full((1, *rows.shape[1:]), _blank(rows.dtype), dtype=rows.dtype)
    if hasattr(rows, "get_column"):
        import polars

        return polars.DataFrame([polars.Series(name, [_blank_of_polars(dtype)], dtype=dtype)
                                 for name, dtype in rows.schema.items()])
    if hasattr(rows, "columns"):
        import pandas

        return pandas.DataFrame({name: _column(getattr(rows[name], "dtype", None)) for name in rows.columns})
    if hasattr(rows, "get_chunks"):  # (a series of polars)
        return made_up(rows.to_frame()).to_series()
    if not hasattr(rows, "dtype"):
        raise ValueError("each part of the data must be a frame, an Arrow table, an array, a list or a pair (X, y)")
    return _column(rows.dtype).rename(rows.name)


def _column(dtype):
    """Return one made-up value of a column of pandas, of its dtype: models that make rows make them of these dtypes.

    Of a dtype that lists its categories it has one, because these may follow from values.
    """
    import pandas

    found = getattr(dtype, "categories", None)
    if found is not None:
        kind = pandas.CategoricalDtype(pandas.Index([_blank(found.dtype)], dtype=_plain(found.dtype)), dtype.ordered)
        return pandas.Series(kind.categories, dtype=kind)
    if getattr(dtype, "kind", "O") in "mM":
        return pandas.Series([pandas.NaT], dtype=dtype)
    return pandas.Series([_blank(dtype)], dtype=_plain(dtype))


def _plain(dtype):
    """Return a type of numbers or strings as it is, and `object` for any other."""
    return dtype if getattr(dtype, "kind", "O") in "biuf" or str(dtype).startswith("str") else object


def _blank_of_polars(dtype):
    """Return a value of a type of polars; None, which is of any, where there is no plain one."""
    return 0 if dtype.is_numeric() else {"Boolean": False, "String": ""}.get(str(dtype))


def _blank(dtype):
    return {"b": False, **dict.fromkeys("iuf", 0)}.get(getattr(dtype, "kind", None), "")
