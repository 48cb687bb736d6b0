"""Rows of several kinds of columns: which columns of X each client reads, and all of them as those of one row."""

from numbers import Integral
from typing import NamedTuple

import numpy as np

from dpestim.inputs.frames import is_frame
from dpestim.inputs.numbers import floats_of
from dpestim.inputs.safe_errors import attempt
from dpestim.local.columns import Columns
from dpestim.local.numbers.transformer import NumberClient
from dpestim.local.sampling import SampledColumns

_CHOICE = ("a name or a position, a list of these, a slice, a mask, or a callable of a frame without rows")


class Part(NamedTuple):
    """What one entry of `transformers` brings to a row."""

    name: str
    #: An unfitted server, and who randomises for it.
    server: object
    client: object
    #: Its columns of the row, and their features.
    at: slice
    features: slice
    #: What its columns are called: names of X, or positions.
    labels: tuple

    def columns_of(self, columns):
        """Return its own `Columns` from those of the row."""
        return Columns(columns.columns[self.at])

    def taken(self, X, strict):
        """Return its columns of a checked X."""
        wrong = f"transformers: the columns of {self.name!r} are known by name"
        names = list(X.columns) if is_frame(X) else []
        places = [_place(v, names, X.shape[1], wrong) for v in self.labels]
        if hasattr(X, "iloc"):
            return X.iloc[:, places]
        if not strict and isinstance(self.client, NumberClient) and isinstance(X, np.ndarray) and X.dtype.kind == "O":
            # (here, as messages elsewhere would count these columns alone)
            return np.stack([floats_of(X[:, j], f"column {j} of X") for j in places], axis=1)
        if places == list(range(places[0], places[-1] + 1)):
            return X[:, places[0] : places[-1] + 1]  # (a view)
        return X[:, places]


class _OfParts:
    """Mixin, left of `Columns`: they know which part of the row each of them is of."""

    #: A `Part` for each client, in their order.
    members = ()

    def same_law(self, other):
        """Tell whether reports of the two can be counted together, for the same parts of a row."""
        mine, theirs = ([(p.name, p.at, type(p.server)) for p in columns.members] for columns in (self, other))
        # (positions may be those of a frame's names: nobody knows)
        named = all(a.labels == b.labels or type(a.labels[0]) is not type(b.labels[0])
                    for a, b in zip(self.members, other.members))
        return mine == theirs and named and super().same_law(other)

    def with_columns(self, columns):
        """Return the same parts of other columns."""
        return row_of(columns, self.members, self.n_sampled)


class Row(_OfParts, Columns):
    """The columns of a row, all of which each user reports."""


class DrawnRow(_OfParts, SampledColumns):
    """The columns of a row of which each user reports some; how many drew each of them is counted last."""

    def told(self, number, counts, n):
        """Return (the counts of one of the columns, how many rows drew it)."""
        return counts[number], int(counts[-1][number])

    def _no_counts(self):
        return [*super()._no_counts(), np.zeros(len(self), np.int64)]

    def _count(self, number, reports, counts):
        super()._count(number, reports, counts)
        counts[-1][number] += len(reports)


def row_of(columns, members, n_sampled):
    """Return the `Columns` of a row: with all of them reported where n_sampled is None."""
    row = Row(columns) if n_sampled is None else DrawnRow(columns, n_sampled=n_sampled)
    row.members = tuple(members)
    return row


def labels_of(choice, X, name):
    """Return what a choice of columns names: names where X has them, else positions; X None: as far as it says itself.

    A callable is called with a frame without rows, so that it sees names and dtypes, and no value.
    """
    wrong = f"transformers: the columns of {name!r} must be {_CHOICE}"
    if X is None:
        found = _listed(choice, wrong) if not callable(choice) and not isinstance(choice, slice) else None
        if found is None or any(not isinstance(v, str) and v < 0 for v in found):
            raise ValueError(f"transformers: the columns of {name!r} must be names, or positions of at least 0, before "
                             "fit: other choices need data. Call fit first, or use names")
        return tuple(found)
    if callable(choice):
        choice, error = attempt(choice, X.iloc[:0] if hasattr(X, "iloc") else X[:0])
        if error:
            raise ValueError(f"transformers: the callable that chooses the columns of {name!r} must take a frame "
                             "without rows")
    n, names = X.shape[1], list(X.columns) if is_frame(X) else []
    if isinstance(choice, slice):
        ends = [choice.start, choice.stop]
        if any(isinstance(end, str) for end in ends):
            start, stop = (None if end is None else _place(end, names, n, wrong) for end in ends)
            choice = slice(start, None if stop is None else stop + 1, choice.step)  # (as pandas does: both ends)
        elif any(end is not None and (isinstance(end, bool) or not isinstance(end, Integral)) for end in ends):
            raise ValueError(wrong)
        places = list(range(*choice.indices(n)))
    else:
        found = _listed(choice, wrong, n)
        places = [_place(v, names, n, wrong) for v in found]
    if not places:
        raise ValueError(f"transformers: the columns of {name!r} must be at least one, and no column of X is chosen")
    return tuple(names[j] for j in places) if names and all(isinstance(v, str) for v in names) else tuple(places)


def _listed(choice, wrong, n=None):
    """Return the list of names or positions that a choice is; a mask must fit n columns, where known."""
    if isinstance(choice, str | Integral) and not isinstance(choice, bool):
        return [choice if isinstance(choice, str) else int(choice)]
    if not hasattr(choice, "__len__") or isinstance(choice, bytes | dict | set) or getattr(choice, "ndim", 1) != 1:
        raise ValueError(wrong)
    found = choice.tolist() if hasattr(choice, "tolist") else list(choice)
    if found and all(isinstance(v, bool | np.bool_) for v in found):
        if n not in (None, len(found)):
            raise ValueError(f"{wrong}; a mask has one entry for each of the {n} columns of X")
        found = [j for j, chosen in enumerate(found) if chosen]
    elif any(isinstance(v, bool | np.bool_) for v in found) or not (
        all(isinstance(v, str) for v in found) or all(isinstance(v, Integral) for v in found)
    ):
        raise ValueError(wrong)
    return [v if isinstance(v, str) else int(v) for v in found]


def _place(label, names, n, wrong):
    """Return the position of a column of X."""
    if isinstance(label, str):
        if names.count(label) != 1:
            raise ValueError(f"{wrong}; X must be a frame with one column {label!r}")
        return names.index(label)
    if not -n <= label < n:
        raise ValueError(f"{wrong}; X has {n} columns, of which {label} is none")
    return label % n
