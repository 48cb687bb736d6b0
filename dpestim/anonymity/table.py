"""Tables as codes: columns by name or number, the classes of rows that look alike, and how a class is written."""

from numbers import Integral

import numpy as np

from dpestim.inputs.frames import category_rows, columns_of, is_frame
from dpestim.privacy.config import get_config

#: The largest integer that floats beside it can be compared with.
_MOST = 1 << 53


class Column:
    """One column: the codes of its rows in the order of its values, and those values.

    Numbers and dates are in their order, ordered categories in theirs; other values in that of their texts, as one is
    needed and none is known (`is_ordered` is False).
    """

    def __init__(self, name, cells):
        known = getattr(getattr(cells, "dtype", None), "categories", None)
        self.name, self.is_ordered = name, known is not None and bool(getattr(cells.dtype, "ordered", False))
        ranks = {_key(value, name): j for j, value in enumerate(known)} if self.is_ordered else None
        cells = _plain(np.asarray(cells), name) if ranks is None else np.asarray(cells, dtype=object)
        self.is_number = cells.dtype.kind in "ifM"
        self.is_ordered |= self.is_number
        kind = cells.dtype.kind
        if (kind == "f" and not np.isfinite(cells).all()) or (kind == "M" and np.isnat(cells).any()):
            raise ValueError(f"column {name!r} must hold no missing or infinite values")
        if cells.dtype.kind in "ifbUM":
            self.values, self.codes = np.unique(cells, return_inverse=True)
            return
        found = {}
        codes = [found.setdefault(_key(cell, name), len(found)) for cell in cells.tolist()]
        order = sorted(found, key=ranks.get if ranks else lambda pair: (str(pair[1]), str(pair[0])))
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
        texts = [str(self.values[code]) for code in codes]
        return "{" + ", ".join(map(repr, texts) if any(set(text) & set(",{}") for text in texts) else texts) + "}"

    def positions(self):
        """Return where values are, as floats that differ by less than infinity; ranks of what has no distances."""
        if not self.is_number:
            return np.arange(len(self), dtype=float)
        values = self.values.astype(np.int64) if self.values.dtype.kind == "M" else self.values
        values = values.astype(float)
        return values / max(1.0, np.abs(values).max())

    def keys(self):
        """Return what tells values of different tables apart: numbers by value, all else by type, too."""
        plain = self.values.tolist()
        return [value if self.is_number else _key(value, self.name) for value in plain]


def _plain(cells, name):
    """Return an array of 64-bit numbers where a column holds nothing else, as one of a list of mixed rows does."""
    if cells.dtype.kind == "O":
        plain = [cell.item() if isinstance(cell, np.integer | np.floating) else cell for cell in cells.tolist()]
        kinds = {type(cell) for cell in plain}
        if not kinds <= {int, float}:
            return cells
        most = _MOST if float in kinds else np.iinfo(np.int64).max
        if any(type(cell) is int and abs(cell) > most for cell in plain):
            raise ValueError(f"column {name!r} must hold integers of at most 2^53 beside floats, and below 2^63")
        return np.array(plain, float if float in kinds else np.int64)
    if cells.dtype.kind == "u" and cells.dtype.itemsize == 8 and (cells > np.iinfo(np.int64).max).any():
        raise ValueError(f"column {name!r} must hold integers of at most 2^53 beside floats, and below 2^63")
    # (small integers would wrap in a difference)
    return cells.astype({"i": np.int64, "u": np.int64, "f": np.float64}[cells.dtype.kind]) if (
        cells.dtype.kind in "iuf") else cells


def _key(cell, name):
    """Return (type, value): 1 and True are different cells."""
    missing = cell is None or type(cell).__name__ in ("NAType", "NaTType")
    try:
        hash(cell)
    except TypeError:
        missing = True
    missing = missing or cell != cell
    if missing:
        raise ValueError(f"column {name!r} must hold hashable values, none of them missing")
    return (type(cell).__name__, cell)


class Table:
    """A checked table: its names, how many rows it has, and any of its columns as codes."""

    def __init__(self, X):
        if get_config()["strict"]:
            raise ValueError("strict mode: dpestim.anonymity is refused, because it reads raw tables and adds no noise")
        X = category_rows(X, strict=False)
        self.X = X
        self.names = [*X.columns] if is_frame(X) else list(range(X.shape[1]))
        if len(set(self.names)) < len(self.names):
            raise ValueError("X must have columns of different names")
        self.n_rows = X.shape[0]
        self._columns = columns_of(X)

    def places(self, columns, parameter):
        """Return the places of columns given by name or number, or raise ValueError."""
        if columns is None:
            raise ValueError(f"{parameter} must name the columns that an attacker may know")
        many = [columns] if isinstance(columns, str | Integral) else list(columns)
        places = []
        for column in many:
            found = [j for j, name in enumerate(self.names) if isinstance(name, bool | float) == isinstance(
                column, bool | float) and name == column]
            if found:
                places.append(found[0])
            elif isinstance(column, Integral) and not isinstance(column, bool) and 0 <= column < len(self.names):
                places.append(int(column))
            else:
                raise ValueError(f"{parameter} must name columns of the table, which are {self.names}, got {column!r}")
        if not places or len(set(places)) < len(places):
            raise ValueError(f"{parameter} must name at least one column, and each once")
        return places

    def column(self, place):
        """Return one of the columns."""
        return Column(self.names[place], self._columns[place])

    def with_columns(self, texts):
        """Return the table in its own kind of container, with other contents in some columns ({place: texts})."""
        if hasattr(self.X, "iloc"):
            out = self.X.copy()
            for place, cells in texts.items():
                out[self.names[place]] = cells
            return out
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


def classes_of(codes):
    """Return the class of each row of codes (n_rows, n_columns), numbered from 0 in the order of the codes."""
    order = np.lexsort(codes.T[::-1])
    sorted_rows = codes[order]
    changes = np.concatenate(([False], (sorted_rows[1:] != sorted_rows[:-1]).any(axis=1)))
    classes = np.empty(len(codes), np.intp)
    classes[order] = np.cumsum(changes)
    return classes


def equivalence_classes(X, quasi_identifiers):
    """Return which rows an attacker who knows only the quasi-identifiers cannot distinguish.

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


def secret_of(table, sensitive, known=()):
    """Return the column of the sensitive values, which is at none of the places that a stranger knows."""
    places = table.places(sensitive, "sensitive")
    if len(places) != 1:
        raise ValueError("sensitive must name one column")
    if places[0] in known:
        raise ValueError("sensitive must not be one of the quasi_identifiers, which an attacker knows")
    return table.column(places[0])


def looked_up(X, quasi_identifiers, sensitive):
    """Return (the class of each row, the column of the sensitive values)."""
    table = Table(X)
    places = table.places(quasi_identifiers, "quasi_identifiers")
    secret = secret_of(table, sensitive, places)
    return classes_of(np.column_stack([table.column(place).codes for place in places])), secret


def whole(value, name, least):
    """Return a checked integer of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)
