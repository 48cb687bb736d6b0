"""Columns that are chosen of a table, by place or by name."""

from dataclasses import replace
from itertools import pairwise
from numbers import Integral

import numpy as np

from dpestim.inputs.frames import is_frame
from dpestim.local.categories.column import CategoryColumn
from dpestim.local.columns import Columns


class ChosenColumns(Columns):
    """The chosen columns of a row, whatever their kind; `notes` say what is not protected."""

    def __init__(self, columns, inferred, notes):
        super().__init__(columns, inferred)
        self.notes = notes

    def with_columns(self, columns):
        """Return other columns in the same layout."""
        return ChosenColumns(columns, self.inferred, self.notes)

    def guarantee(self, seeded=None, times=1, n_batches=1):
        """Return what the reports of one row promise about the chosen columns."""
        plain = super().guarantee(seeded, times, n_batches)
        return replace(plain, notes=(*plain.notes, *self.notes))


def place(column, n_columns, names):
    """Return the position of a column that is chosen by position or by name."""
    if isinstance(column, str):
        if column not in (names or ()):
            raise ValueError(f"transformers choose the column {column!r}, which X does not have by name")
        return names.index(column)
    if isinstance(column, bool) or not isinstance(column, Integral) or not -n_columns <= column < n_columns:
        raise ValueError(f"transformers must choose columns by name or by position below {n_columns}")
    return int(column) % n_columns


def columns_at(table, places):
    """Return some columns of an array or a frame."""
    if hasattr(table, "iloc"):
        return table.iloc[:, places]
    return table[:, places] if not is_frame(table) else table.select([table.columns[j] for j in places])


def labels(column, size):
    """Return what the entries of a distribution are called: categories, or the bins of a number."""
    if isinstance(column, CategoryColumn):
        return np.asarray(column.categories).tolist()
    return [f"{a:g} to {b:g}" for a, b in pairwise(column.to_units(np.linspace(0.0, 1.0, size + 1)))]
