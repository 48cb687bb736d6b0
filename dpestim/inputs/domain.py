"""The public description of a table: `Domain`, declared once and given to every estimator."""

import html
import math
from numbers import Integral

import numpy as np

from dpestim.inputs.categories import CategoryEncoder
from dpestim.inputs.columns import is_missing, plain_values
from dpestim.inputs.domains import learn_categories
from dpestim.inputs.frames import as_array, columns_of, is_frame, refuse_containers
from dpestim.inputs.kinds import Categories, Keys, Numbers, Text, column_of
from dpestim.inputs.numbers import kind_of, series_numbers
from dpestim.inputs.public import PublicColumns
from dpestim.inputs.safe_errors import attempt
from dpestim.privacy import Neighbours, PrivacyGuarantee, ambient
from dpestim.privacy.config import get_config
from dpestim.tables import Table

#: Whole numbers of so few values are a draft of categories.
_FEW = 12


class Domain(PublicColumns):
    """What is public of a table: the bounds or the categories of each column.

    Declare it once, and give it to every estimator that takes `bounds`, `categories`, `classes`, `target_bounds` or
    `keys`. It cannot be changed; equal ones are equal and have one hash.

    Parameters
    ----------
    columns : dict, or list
        The columns by name, or by place: `Numbers`, `Categories`, `Text` or `Keys`. In short a tuple (low, high) stands
        for `Numbers`, and a list or an array of values for `Categories`.

    Examples
    --------
    >>> from dpestim import Domain
    >>> domain = Domain({"age": (17, 90), "sex": ["F", "M"]})
    >>> print(domain)
    column  kind        values    missing
    age     numbers     17 to 90  no
    sex     categories  F, M      no
    >>> domain["age"], domain[["sex"]].names
    (Numbers(17, 90), ['sex'])
    """

    __slots__ = ("_columns",)

    def __init__(self, columns):
        if isinstance(columns, Domain):
            columns = columns._columns
        if isinstance(columns, list):
            columns = dict(enumerate(columns))
        if not isinstance(columns, dict) or not columns:
            raise ValueError('columns must be a dict, such as {"age": (17, 90), "sex": ["F", "M"]}, or a list')
        found = {}
        for name, declared in columns.items():
            if isinstance(name, bool) or not isinstance(name, str | Integral):
                raise ValueError("columns must be named by strings, or by their places")
            try:
                found[name if isinstance(name, str) else int(name)] = column_of(declared)
            except ValueError as error:
                raise ValueError(f"column {name!r}: {error}") from None
        object.__setattr__(self, "_columns", found)

    # ---------------------------------------------------------------- a mapping that does not change

    def __setattr__(self, name, value):
        raise AttributeError("a Domain cannot be changed: make a new one, such as domain | {'age': (0, 120)}")

    def __reduce__(self):
        return Domain, (dict(self._columns),)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __eq__(self, other):
        return list(self._columns.items()) == list(other._columns.items()) if isinstance(other, Domain) else (
            NotImplemented)

    def __hash__(self):
        return hash(tuple(self._columns.items()))

    def __len__(self):
        return len(self._columns)

    def __iter__(self):
        return iter(self._columns)

    def __contains__(self, name):
        return name in self._columns

    @property
    def names(self):
        """The names (or places) of the columns, a list."""
        return list(self._columns)

    def items(self):
        """Return (name, column) of all columns, in order."""
        return self._columns.items()

    def __getitem__(self, name):
        """Return a column by name, or the domain of a list of names."""
        if isinstance(name, list):
            return Domain({own: self[own] for own in name})
        if not isinstance(name, str | int) or name not in self._columns:
            raise KeyError(f"no column {name!r}: there are {self.names}")
        return self._columns[name]

    def __or__(self, other):
        """Return the columns of both; where both have a column, that of the other."""
        if not isinstance(other, Domain | dict):
            return NotImplemented
        return Domain({**self._columns, **Domain(other)._columns})

    def of_kind(self, *kinds):
        """Return {name: column} of the columns of these kinds, such as ``domain.of_kind(Numbers)``."""
        return {name: column for name, column in self._columns.items() if isinstance(column, kinds)}

    # ---------------------------------------------------------------- files

    @classmethod
    def load(cls, path):
        """Return the domain of a file that `save` or an editor has written: TOML (``.toml``) or JSON (``.json``).

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Domain
        """
        from dpestim.inputs import domain_files

        return cls(domain_files.load(path))

    def save(self, path):
        """Write a file: TOML (``.toml``) or JSON (``.json``), after the schema ``dpestim/inputs/domain.schema.json``.

        Parameters
        ----------
        path : str or path
        """
        from dpestim.inputs import domain_files

        domain_files.save(self._columns, path)

    # ---------------------------------------------------------------- what looks at rows

    def check(self, frame):
        """Return how many values of a table are outside of this domain, an exact release: **not private**.

        A ledger notes it as a score that is not private. Strict mode refuses it.

        Parameters
        ----------
        frame : data frame, or array-like of shape (n_rows, n_columns)

        Returns
        -------
        DomainCheck
            A dict: for each column {"outside": values that are not declared, "missing": values that are missing and
            may not be}, or {"absent": True} where the table lacks the column.
        """
        if get_config()["strict"]:
            raise ValueError("strict mode: check is refused, because it releases exact counts of rows: call it outside "
                             "of strict mode")
        table = _table(frame)
        names = list(table.columns) if is_frame(table) else range(table.shape[1])
        columns = dict(zip(names, columns_of(table)))
        ledger = ambient.ledger()
        if ledger is None:
            ambient.refuse_to_slip_through()
        if hasattr(ledger, "record_score"):
            ledger.record_score(estimator="Domain check", n_rows=len(table))
        places = list(columns) if not is_frame(table) and len(names) == len(self) else None
        found = {}
        for at, (name, column) in enumerate(self._columns.items()):
            name_there = name if name in columns or places is None else places[at]
            found[name] = _outside(column, columns[name_there], name) if name_there in columns else {"absent": True}
        return DomainCheck(found)

    @classmethod
    def sketch(cls, public_frame):
        """Return a draft of a domain from **public or synthetic** rows, to be edited; it holds exact values of them.

        Numbers have the smallest and the largest value as bounds, whole numbers of at most 12 values and all else are
        categories. Strict mode refuses it.

        Parameters
        ----------
        public_frame : data frame, or array-like of shape (n_rows, n_columns)

        Returns
        -------
        Domain

        Examples
        --------
        >>> from dpestim import Domain
        >>> Domain.sketch([[17.5, "F"], [60.0, "M"]])
        Domain({0: Numbers(17.5, 60.0), 1: Categories(['F', 'M'])})
        """
        if get_config()["strict"]:
            raise ValueError("strict mode: sketch is refused, because it reads exact values: write the domain by hand")
        table = _table(public_frame)
        names = list(table.columns) if is_frame(table) else range(table.shape[1])
        return cls({name: _sketched(column, f"column {name!r}") for name, column in zip(names, columns_of(table))})

    # ---------------------------------------------------------------- shown as a table

    def __repr__(self):
        parts = [f"{name!r}: {column!r}" for name, column in self._columns.items()]
        line = f"Domain({{{', '.join(parts)}}})"
        return line if len(line) <= 80 else "Domain({\n    " + ",\n    ".join(parts) + ",\n})"

    def _rows(self):
        yield "column", "kind", "values", "missing"
        for name, column in self._columns.items():
            yield str(name), column.kind, column.described(), "yes" if column.missing else "no"

    def __str__(self):
        return _aligned(list(self._rows()))

    def _repr_html_(self):
        head, *rows = self._rows()
        lines = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
        head = "".join(f"<th>{cell}</th>" for cell in head)
        return f"<table><thead><tr>{head}</tr></thead><tbody><tr>{'</tr><tr>'.join(lines)}</tr></tbody></table>"


class DomainCheck(Table, dict):
    """What `Domain.check` found: exact counts of the rows, and therefore as private as they are."""

    @property
    def is_clean(self):
        """Whether all values are declared, in columns that are all there."""
        return not any(found.get("absent") or any(found.values()) for found in self.values())

    def __repr__(self):
        return f"{dict(self)!r}\n{_EXACT}"

    _most_lines = 1000
    _plotted = ("outside", None, None)

    @property
    def privacy(self):
        """None: the counts are exact."""
        return PrivacyGuarantee(math.inf, model="central", neighbours=Neighbours.SUBSTITUTION, notes=(_EXACT,))

    def _about(self):
        return f"{len(self):,} columns, compared with what is declared of them."

    def _head(self):
        return "column", "not declared", "missing, not declared"

    def _rows(self):
        for name, absent, outside, missing in self._records():
            yield str(name), *(("column is absent", "") if absent else (str(outside), str(missing)))

    def _remarks(self):
        return (_EXACT,)

    def _columns(self):
        return "column", "absent", "outside", "missing"

    def _records(self):
        return ((name, bool(found.get("absent")), found.get("outside"), found.get("missing"))
                for name, found in self.items())


_EXACT = "These are exact counts and not differentially private: do not publish them."


def _aligned(rows):
    """Return lines of rows of text, in columns."""
    widths = [max(map(len, part)) for part in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def _table(data):
    refuse_containers(data, "X")
    return data if is_frame(data) else as_array(data)


def _outside(column, values, name):
    if isinstance(column, Numbers):
        read, error = attempt(series_numbers, _series(values), f"column {name!r}", strict=False)
        if error:
            return {"outside": len(values), "missing": 0}
        numbers, null = np.asarray(read[0], np.float64), read[1]
        missing = np.isnan(numbers) if null is None else np.isnan(numbers) | null
        outside = int(((numbers < column.low) | (numbers > column.high))[~missing].sum())
        return {"outside": outside, "missing": 0 if column.missing else int(missing.sum())}
    plain = _listed(values)
    there = [value for value in plain if not is_missing(value)]
    missing = 0 if column.missing or getattr(column, "other", None) is not None else len(plain) - len(there)
    if isinstance(column, Categories):
        encoder = CategoryEncoder([*column.values, *([column.other] if column.other is not None else [])], str(name), 1)
        objects = np.empty(len(there), object)
        objects[:] = there
        codes = encoder.read(objects, np.dtype(np.uint32), encoder.n_categories, explain=False)[0] if there else ()
        outside = 0 if column.other is not None else int((np.asarray(codes) == encoder.n_categories).sum())
        return {"outside": outside, "missing": missing}
    if isinstance(column, Text):
        return {"outside": sum(not isinstance(v, str) or len(v) > column.max_length for v in there), "missing": missing}
    known = set(column.keys)
    outside = sum(any(key not in known or not column.low <= value <= column.high for key, value in dict(v).items())
                  for v in there)
    return {"outside": outside, "missing": missing}


class _Array:
    """An array that `series_numbers` reads as it reads a column of a frame."""

    def __init__(self, values):
        self.dtype, self._values = values.dtype, values

    def to_numpy(self):
        return self._values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._values, dtype)


def _series(values):
    return _Array(values) if isinstance(values, np.ndarray) else values


def _listed(column):
    if isinstance(column, np.ndarray) and column.dtype.kind in "mM":
        return [None if value is None else value for value in column.astype("M8[us]").tolist()] if (
            column.dtype.kind == "M") else plain_values(column)
    return column.tolist() if hasattr(column, "tolist") else column.to_list()


def _sketched(column, name):
    read, error = attempt(series_numbers, _series(column), name, strict=False)
    if not error and kind_of(column.dtype) in "iufO" and not hasattr(column.dtype, "categories"):
        numbers, null = np.asarray(read[0], np.float64), read[1]
        gone = ~np.isfinite(numbers) if null is None else ~np.isfinite(numbers) | null
        there = numbers[~gone]
        whole = bool(len(there)) and bool((there == np.floor(there)).all()) and bool((np.abs(there) < 2**53).all())
        few = np.unique(there)
        if whole and len(few) <= _FEW:
            return Categories([int(value) for value in few], missing=bool(gone.any()))
        if len(there):
            low, high = (int(end) if whole else float(end) for end in (few[0], few[-1]))
            return Numbers(low, high, missing=bool(gone.any()))
    values = learn_categories(column, name, allow_missing=True)
    return Categories(values)


__all__ = ["Categories", "Domain", "DomainCheck", "Keys", "Numbers", "Text"]
