"""Tables as codes: columns by name or number, the classes of rows that look alike, and how a class is written."""

from numbers import Integral

import numpy as np

from dpestim.inputs.frames import category_rows, columns_of, is_frame

#: Cells that are numbers wherever a column holds nothing else, as one of a list of mixed rows does.
NUMBERS = (int, float)


class Column:
    """One column: the codes of its rows in the order of its values, and those values.

    Numbers are in their order; other values in that of their texts, as an order is needed and none is known.
    """

    def __init__(self, name, cells):
        cells = np.asarray(cells)
        self.name = name
        if cells.dtype.kind == "O" and all(type(cell) in NUMBERS for cell in cells.tolist()):
            cells = cells.astype(float if any(type(cell) is float for cell in cells.tolist()) else np.int64)
        self.is_number = cells.dtype.kind in "iuf"
        if cells.dtype.kind == "f" and not np.isfinite(cells).all():
            raise ValueError(f"column {name!r} must hold no missing or infinite values")
        if cells.dtype.kind in "iufbU":
            self.values, self.codes = np.unique(cells, return_inverse=True)
            return
        found = {}
        codes = [found.setdefault(_key(cell, name), len(found)) for cell in cells.tolist()]
        order = sorted(found, key=lambda pair: (str(pair[1]), str(pair[0])))
        rank = np.empty(len(order), np.intp)
        rank[[found[key] for key in order]] = np.arange(len(order))
        self.codes = rank[codes]
        self.values = np.empty(len(order), object)
        self.values[:] = [key[1] for key in order]

    def __len__(self):
        return len(self.values)

    def text(self, codes):
        """Return how a set of codes is written: one value, an interval of numbers, or a set of others."""
        codes = np.unique(codes)
        if len(codes) == 1:
            return str(self.values[codes[0]])
        if self.is_number:
            return f"[{self.values[codes[0]]}, {self.values[codes[-1]]}]"
        return "{" + ", ".join(str(self.values[code]) for code in codes) + "}"


def _key(cell, name):
    """Return (type, value): 1 and True are different cells."""
    missing = cell is None or cell != cell or type(cell).__name__ in ("NAType", "NaTType")
    try:
        hash(cell)
    except TypeError:
        missing = True
    if missing:
        raise ValueError(f"column {name!r} must hold hashable values, none of them missing")
    return (type(cell).__name__, cell)


class Table:
    """A checked table: its names, how many rows it has, and any of its columns as codes."""

    def __init__(self, X):
        X = category_rows(X, strict=False)
        self.X = X
        self.names = [*X.columns] if is_frame(X) else list(range(X.shape[1]))
        self.n_rows = X.shape[0]
        self._columns = columns_of(X)

    def places(self, columns, parameter):
        """Return the places of columns given by name or number, or raise ValueError."""
        if columns is None:
            raise ValueError(f"{parameter} must name columns: what a stranger may know is never guessed")
        many = [columns] if isinstance(columns, str | Integral) else list(columns)
        places = []
        for column in many:
            if column in self.names:
                places.append(self.names.index(column))
            elif isinstance(column, Integral) and not isinstance(column, bool) and 0 <= column < len(self.names):
                places.append(int(column))
            else:
                raise ValueError(f"{parameter} must name columns of the table, and {column!r} is none of {self.names}")
        if not places or len(set(places)) < len(places):
            raise ValueError(f"{parameter} must name at least one column, and each once")
        return places

    def column(self, place):
        """Return one of the columns."""
        return Column(self.names[place], self._columns[place])

    def with_columns(self, texts):
        """Return the table in its own kind of container, with other contents in some columns ({place: texts})."""
        if hasattr(self.X, "iloc"):
            return self.X.assign(**{self.names[place]: cells for place, cells in texts.items()}) if all(
                isinstance(name, str) for name in self.names) else self._by_place(texts)
        if is_frame(self.X):
            series = type(self._columns[0])
            return self.X.with_columns([series(self.names[place], list(cells)) for place, cells in texts.items()])
        out = self.X.astype(object)
        for place, cells in texts.items():
            out[:, place] = cells
        return out

    def take(self, kept):
        """Return a table of the rows of a mask."""
        if hasattr(self.X, "iloc"):
            return Table(self.X.loc[kept])
        return Table(self.X.filter(kept) if is_frame(self.X) else self.X[kept])

    def _by_place(self, texts):
        out = self.X.copy()
        for place, cells in texts.items():
            out[self.names[place]] = cells
        return out


def classes_of(codes):
    """Return the class of each row of codes (n_rows, n_columns), numbered from 0 in the order of the codes."""
    order = np.lexsort(codes.T[::-1])
    sorted_rows = codes[order]
    changes = np.concatenate(([False], (sorted_rows[1:] != sorted_rows[:-1]).any(axis=1)))
    classes = np.empty(len(codes), np.intp)
    classes[order] = np.cumsum(changes)
    return classes


def equivalence_classes(X, quasi_identifiers):
    """Return which rows look alike to whoever knows the quasi-identifiers only.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_columns)
    quasi_identifiers : list of str or int
        Columns by name, or by number.

    Returns
    -------
    ndarray of shape (n_rows,)
        Numbers of classes, from 0. O(n log n).

    Examples
    --------
    >>> from dpestim.anonymity import equivalence_classes
    >>> equivalence_classes([["a", 1], ["b", 1], ["a", 2]], [0])
    array([0, 1, 0])
    """
    table = Table(X)
    places = table.places(quasi_identifiers, "quasi_identifiers")
    return classes_of(np.column_stack([table.column(place).codes for place in places]))


def sensitive_codes(table, sensitive):
    """Return the column of the sensitive values."""
    places = table.places(sensitive, "sensitive")
    if len(places) != 1:
        raise ValueError("sensitive must name one column")
    return table.column(places[0])


def whole(value, name, least):
    """Return a checked integer of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)
