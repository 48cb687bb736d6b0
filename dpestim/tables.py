"""How results are shown: a table of facts as text, as HTML in notebooks, and as a pandas frame."""

import itertools
import math
from html import escape
from numbers import Integral, Real

#: Rows of a table that are shown in a notebook; a frame has all of them.
_MOST_ROWS = 200


class Table:
    """Base of what is shown as a table: a sub-class brings `_head`, the names of columns, `_rows`, and `_remarks`."""

    #: Rows that are shown as text.
    _most_lines = 20
    #: Columns on the left that hold labels.
    _n_labels = 1

    def to_frame(self):
        """Return all rows as a pandas frame."""
        return frame_of(self._rows(), self._head())

    def __str__(self):
        lines, more = _shown(self, self._most_lines)
        return "\n".join([*as_lines(self._head(), lines, self._n_labels), *more, *self._remarks()])

    def _repr_html_(self):
        rows, more = _shown(self, _MOST_ROWS)
        head = "".join(f"<th>{escape(name)}</th>" for name in self._head())
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        notes = "".join(f"<p>{escape(sentence)}</p>" for sentence in (*more, *self._remarks()))
        return (f"<div style='font-family:sans-serif;max-width:60em'><table style='text-align:right'><tr>{head}</tr>"
                f"{body}</table>{notes}</div>")

    def _head(self):
        raise TypeError(f"{type(self).__name__} does not say what its columns are")

    def _rows(self):
        """Return an iterable of rows, each with a value for each column."""
        raise TypeError(f"{type(self).__name__} does not say what its rows are")

    def _remarks(self):
        """Return sentences that belong below the table."""
        return ()


def _shown(table, most):
    """Return (the first rows as text, a sentence about the others where there are some)."""
    rows = [tuple(map(as_text, row)) for row in itertools.islice(table._rows(), most + 1)]
    return rows[:most], ("... more rows: to_frame() has all of them",) * (len(rows) > most)


def as_text(value):
    """Return a value of a cell as text: numbers with up to six digits, what is not known as a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, Real):
        return str(value)
    if isinstance(value, Integral):
        return f"{value:,}"
    value = float(value)
    return f"{value:,.0f}" if 1e6 <= abs(value) < 1e15 and math.isfinite(value) else f"{value:.6g}"


def short(value):
    """Return a number as text with three digits; text stays as it is."""
    return value if isinstance(value, str) else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def as_lines(head, rows, n_labels):
    """Return the lines of a table of text: labels to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    places = [(str.ljust if k < n_labels else str.rjust, width) for k, width in enumerate(widths)]
    return ["  ".join(pad(cell, width) for cell, (pad, width) in zip(line, places)).rstrip() for line in (head, *rows)]


def frame_of(rows, columns):
    """Return a pandas frame of rows, or raise ImportError."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("to_frame needs pandas: pip install 'dpestim[pandas]'") from error

    return pd.DataFrame(list(rows), columns=list(columns))
