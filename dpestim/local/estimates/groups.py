"""Rows, promises and reports by group: one column of X is public, and names the group that each user belongs to."""

import math
from functools import cached_property
from numbers import Integral

import numpy as np

from dpestim._core import groups, grr
from dpestim.inputs import CategoryEncoder, category_rows, columns_of, smallest_dtype
from dpestim.privacy import Neighbours, PrivacyGuarantee

_PUBLIC = ("The group of a user is public and not protected: choose groups that do not depend on private values.")
_REGIONS = "Groups have different domains: it is public that a value lies in the domain of its group."
_SEVERAL = ("The named relaxation is the protection that all groups share; guarantee_by_group_ has the guarantee of "
            "each group.")


class Groups:
    """The groups of users that settings name, in their order: group number k is `names[k]`.

    Parameters
    ----------
    names : iterable of hashable or None
        As the column of groups has them; None: everybody is in one group, and there is no such column.
    column : int or str
        Which column of X that is: a position (without that column the others are counted from 0), or a name.
    """

    def __init__(self, names, column):
        self.are_named = names is not None
        self.names, self.column = list(names) if self.are_named else [None], column
        if not self.are_named:
            return
        named = isinstance(column, str) or (isinstance(column, Integral) and not isinstance(column, bool))
        if not named:
            raise ValueError("group_column must be the position of a column of X, or its name where X is a frame")
        try:
            self._encoder = CategoryEncoder(self.names, "settings", fewest=1)
        except ValueError:
            self._encoder = None
        if self._encoder is None:
            raise ValueError("settings must name groups by different finite scalars, such as strings or whole numbers")

    def split(self, X):
        """Return (numbers of the groups that have rows, the rows of each without that column, `Order` of X)."""
        if not self.are_named:
            return [0], [X], Order(np.zeros(1, np.uint8), 1)  # (nobody asks for places)
        X = category_rows(X, strict=False)
        j, name = self._find(X)
        codes, why = self._encoder.read(columns_of(X)[j], self._dtype, 0)
        if why:
            raise ValueError(f"{name} of X must name a group of settings in every row, and has another or a missing "
                             "value")
        order = Order(codes, len(self.names))
        return order.present, order.parts(_without(X, j)), order

    def words(self, source, k):
        """Return the source of the words of group number k."""
        return source.part(k) if self.are_named else source

    def _find(self, X):
        """Return (position, how messages call it) of the column of groups."""
        labels, n = list(X.columns) if hasattr(X, "columns") else None, X.shape[1]
        if isinstance(self.column, str):
            if labels is None or labels.count(self.column) != 1:
                raise ValueError(f"group_column: X must be a frame with one column {self.column!r}")
            j = labels.index(self.column)
        else:
            if not -n <= self.column < n:
                raise ValueError(f"group_column must be the position of one of the {n} columns of X, or its name")
            j = int(self.column) % n
        if n < 2:
            raise ValueError("X must have a column of groups (group_column) and at least one more column, and has 1 "
                             "feature(s)")
        return j, f"column {j}" if labels is None else f"column {labels[j]!r}"

    # ---------------------------------------------------------------- promises

    def guarantee(self, columns, present, seeded, times=1, n_batches=1):
        """Return what every user of the present groups is promised, from the `Columns` of all groups.

        The relaxation is one that holds in all groups, present or not, so that one name covers all calls.
        """
        every = [part.guarantee(seeded, times, n_batches) for part in columns]
        if not self.are_named:
            return every[0]
        mine = [every[k] for k in present]
        notes = {}
        for k, guarantee in zip(present, mine):
            for note in guarantee.notes:
                all_have_it = all(note in g.notes for g in mine)
                notes[note if all_have_it else f"Of group {self.names[k]!r}: {note}"] = None
        if len({tuple(frozenset(c.categories.tolist()) for c in part if c.is_discrete) for part in columns}) > 1:
            notes[_REGIONS] = None
        named = {group: guarantee.relaxation for group, guarantee in zip(self.names, every) if guarantee.relaxation}
        relaxation, relaxed = next(iter(named.values()), None), None
        if len(set(named.values())) > 1:
            relaxation = " and ".join(sorted(f"{name} in group {group!r}" for group, name in named.items()))
            notes[_SEVERAL] = None
        if relaxation is not None:
            # a group without a relaxation keeps every relaxation, at its plain epsilon
            relaxed = max(g.epsilon if g.relaxation is None else g.relaxed_epsilon for g in mine)
            relaxation, relaxed = (None, None) if relaxed == math.inf else (relaxation, relaxed)
        return PrivacyGuarantee(
            max(g.epsilon for g in mine), model="local", neighbours=Neighbours.LOCAL, seeded=seeded,
            notes=(*notes, _PUBLIC), relaxation=relaxation, relaxed_epsilon=relaxed,
        )

    # ---------------------------------------------------------------- reports

    def layout(self, columns):
        """Return (dtype, width) of an array that holds the number of a group and a report of any of these columns."""
        dtypes = [self._dtype, *(c.dtype for c in columns)]
        return max(dtypes, key=lambda dtype: dtype.itemsize), 1 + max(c.report_width for c in columns)

    def pack(self, columns, reports, order):
        """Return one array of reports in the order of the rows: the number of the group, its report, zeros."""
        dtype, width = self.layout(columns)
        out = np.zeros((sum(map(len, reports)), width), dtype)
        for k, part in zip(order.present, reports):
            rows = order.rows_of(k)
            out[rows, 0] = k
            out[rows, 1 : 1 + part.shape[1]] = part
        return out

    def unpack(self, columns, reports):
        """Return (numbers of the groups that have reports, the reports of each), or raise ValueError.

        What a law says about its own reports is for that to check.
        """
        dtype, width = self.layout(columns)
        if type(reports) not in (np.ndarray, np.memmap) or reports.ndim != 2 or reports.shape[1] != width:
            raise ValueError(f"reports must be a two-dimensional array of width {width}, as privatize returns it")
        if reports.dtype != dtype:
            raise ValueError(f"reports must have dtype {dtype}, got {reports.dtype}")
        if not len(reports):
            raise ValueError("reports must not be empty")
        numbers = np.asarray(reports[:, 0])
        if int(numbers.max()) >= len(self.names):
            raise ValueError(f"field 0 of a report must be the number of one of the {len(self.names)} groups")
        order, parts = Order(numbers.astype(self._dtype), len(self.names)), []
        for k in order.present:
            part, own = reports[order.rows_of(k)], 1 + columns[k].report_width
            if part[:, own:].any():
                raise ValueError(f"a report of group number {k} must have zeros from field {own} on")
            if columns[k].dtype != dtype and int(part[:, 1:own].max()) > np.iinfo(columns[k].dtype).max:
                raise ValueError(f"reports of group number {k} must fit {columns[k].dtype}")
            parts.append(np.ascontiguousarray(part[:, 1:own], columns[k].dtype))
        return order.present, parts

    @property
    def _dtype(self):
        """The type of numbers of groups."""
        return smallest_dtype(max(2, len(self.names)))


class Order:
    """The order in which rows of the same group stand together, each group's in the order in which they were.

    Parameters
    ----------
    numbers : contiguous array of unsigned integers
        The group of every row.
    n_groups : int
    """

    def __init__(self, numbers, n_groups):
        sizes = np.zeros(n_groups, np.int64)
        if not grr.count(numbers, sizes):
            raise ValueError("random words name a group that does not exist: pass fewer groups")
        self._numbers, self._edges = numbers, np.concatenate([[0], np.cumsum(sizes)])
        self.present = np.flatnonzero(sizes).tolist()

    @cached_property
    def _places(self):
        out = np.empty(len(self._numbers), np.int64)
        groups.places(self._numbers, self._edges[:-1].copy(), out)
        return out

    def rows_of(self, k):
        """Return what selects the rows of group number k."""
        return slice(None) if len(self.present) == 1 else self._places[self._edges[k] : self._edges[k + 1]]

    def parts(self, X):
        """Return the rows of each group that is present."""
        if len(self.present) == 1:
            return [X]
        edges = self._edges
        if hasattr(X, "iloc"):
            columns = {i: self._of_series(X.iloc[:, i]) for i in range(X.shape[1])}
            frame = type(X)(columns, copy=False)
            frame.columns = X.columns
            return [frame.iloc[edges[k] : edges[k + 1]] for k in self.present]
        if hasattr(X, "get_column"):
            X = X[self._places]
        else:
            out = np.empty(X.shape[::-1], X.dtype)
            for column, values in zip(out, X.T):
                self._gather(values, column)
            X = out.T  # each column lies in one piece, and so do the rows of a group in it
        return [X[edges[k] : edges[k + 1]] for k in self.present]

    def _of_series(self, series):
        """Return the values of a pandas series in this order, in its own dtype."""
        if not isinstance(series.dtype, np.dtype):
            return series.array.take(self._places)
        out = np.empty(len(series), series.dtype)
        self._gather(series.to_numpy(), out)
        return out

    def _gather(self, values, out):
        """Write values in this order (ten times as fast as to take them by their places)."""
        starts, size = self._edges[:-1].copy(), values.dtype.itemsize
        if values.dtype.kind == "O":
            groups.gather_objects(self._numbers, starts, values, out)
        elif size in (1, 2, 4, 8):
            groups.gather(self._numbers, starts, values.view(f"u{size}"), out.view(f"u{size}"))
        else:
            np.take(values, self._places, out=out)


def _without(X, j):
    """Return X without column j; of an array a view, where that can be."""
    others = [i for i in range(X.shape[1]) if i != j]
    if hasattr(X, "iloc"):
        return X.iloc[:, others]
    if hasattr(X, "get_column"):
        return X.drop(X.columns[j])
    return X[:, 1:] if j == 0 else X[:, :-1] if j == len(others) else X[:, others]
