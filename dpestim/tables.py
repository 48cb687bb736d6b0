"""How results are shown: a table of facts as text, as HTML in notebooks, as a pandas frame, and as a picture."""

import itertools
import math
import re
from html import escape
from numbers import Integral, Real
from types import MappingProxyType

#: Rows of a table that are shown in a notebook; a frame has all of them.
_MOST_ROWS = 200
#: Characters that nobody sees, and that would write a line anew, or turn the text around them; `re` compiles it when
#: something is first shown.
_ORDERS = r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+"


def one_line(text):
    """Return a text without what breaks lines or turns their direction: names and questions may be of strangers."""
    return re.sub(_ORDERS, " ", text)


class Table:
    """Base of what is shown as a table: a sub-class brings `_head`, the names of columns, `_rows`, and `_remarks`.

    A sub-class whose frame has more than its text brings `_columns` and `_records`, too.
    """

    #: Rows that are shown as text.
    _most_lines = 20
    #: Columns on the left that hold labels.
    _n_labels = 1
    #: What `plot` draws: the columns of the values, and of the ends of their intervals (None: they have none).
    _plotted = (None, None, None)

    def to_frame(self):
        """Return all rows as a pandas frame."""
        return frame_of(self._records(), self._columns())

    def plot(self, ax=None, **kwargs):
        """Draw the numbers as points, the first one on top, and their intervals as lines.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None makes new ones.
        **kwargs
            For matplotlib's `plot` of the points.

        Returns
        -------
        dpestim.inspection.ResultDisplay
            With `ax_` and `figure_`.
        """
        from dpestim.plots import ResultDisplay

        return ResultDisplay.from_result(self, ax=ax, **kwargs)

    def __str__(self):
        lines, more = _shown(self, self._most_lines)
        told = map(one_line, (*more, *self._remarks()))
        return "\n".join([*as_lines(self._head(), lines, self._n_labels), *told])

    def _repr_html_(self):
        rows, more = _shown(self, _MOST_ROWS)
        head = "".join(f"<th>{escape(name)}</th>" for name in self._head())
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        notes = "".join(f"<p>{escape(one_line(sentence))}</p>" for sentence in (*more, *self._remarks()))
        return (f"<div style='font-family:sans-serif;max-width:60em'><table style='text-align:right'><tr>{head}</tr>"
                f"{body}</table>{notes}</div>")

    def _head(self):
        raise TypeError(f"{type(self).__name__} does not say what its columns are: implement `_head`")

    def _rows(self):
        """Return an iterable of rows, each with a value for each column."""
        raise TypeError(f"{type(self).__name__} does not say what its rows are: implement `_rows`")

    def _remarks(self):
        """Return sentences that belong below the table."""
        return ()

    def _about(self):
        """Return what this is about, in a sentence, for a privacy card."""
        return f"What is in this {type(self).__name__}."

    def _columns(self):
        """Return the names of the columns of a frame."""
        return self._head()

    def _records(self):
        """Return an iterable of the rows of a frame, none of whose numbers is rounded."""
        return self._rows()


class NumberTable(Table):
    """Base of numbers with labels, standard errors and intervals; a sub-class brings `_names`, of labels, and `_cells`.

    A cell is (labels, value, standard error, low, high), with None for what is not known.
    """

    _plotted = ("value", "low", "high")
    #: The level of the intervals that are shown; None where there are none.
    level = None
    #: {name: unit} of columns whose unit is declared.
    units = MappingProxyType({})
    _has_errors = True
    #: What a label that is None is called: "missing", where it stands for missing values, and not for no label.
    _none = "-"

    def _names(self):
        raise TypeError(f"{type(self).__name__} does not say what its labels are")

    def _cells(self):
        raise TypeError(f"{type(self).__name__} does not say what its numbers are")

    @property
    def _n_labels(self):
        return len(self._names())

    def to_frame(self):
        """Return a pandas frame with a row for each number: labels, value, standard error, and ends of the interval.

        ``frame.attrs["units"]`` has the declared units of columns.
        """
        frame = super().to_frame()
        if self.units:
            frame.attrs["units"] = dict(self.units)
        return frame

    def _units(self):
        """Return a sentence about units, where some are declared."""
        told = ", ".join(f"{name} in {unit}" for name, unit in self.units.items())
        return (f"Units of columns: {told}.",) * bool(told)

    def _columns(self):
        return (*self._names(), "value", "standard_error", "low", "high")

    def _records(self):
        return self._cells()

    def _head(self):
        return (*self._names(), "value", *["standard error"] * self._has_errors,
                *([] if self.level is None else [f"{100 * self.level:g} % interval"]))

    def _rows(self):
        for *labels, value, error, low, high in self._cells():
            yield (*(called(label, self._none) for label in labels), value,
                   *[None if error is None else f"{error:.3g}"] * self._has_errors,
                   *(() if self.level is None else (_ends(low, high),)))


def _ends(low, high):
    return "-" if low is None or low != low else f"{as_text(low)} to {as_text(high)}"


def called(label, none="-"):
    """Return a label as text; one of several columns is a tuple of their values. `none` is what None is called."""
    return ", ".join(called(own, none) for own in label) if isinstance(label, tuple) else (
        none if label is None else str(label))


def _shown(table, most):
    """Return (the first rows as text, a sentence about the others where there are some)."""
    rows = [tuple(map(as_text, row)) for row in itertools.islice(table._rows(), most + 1)]
    return rows[:most], ("... more rows: to_frame() has all of them",) * (len(rows) > most)


def as_text(value):
    """Return a value of a cell as text: numbers with up to six digits, what is not known as a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, Real):
        return one_line(str(value))
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
