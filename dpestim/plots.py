"""How results are drawn: what all displays share, points with intervals, guarantees; matplotlib is imported late."""

import math
from numbers import Real

import numpy as np

from dpestim.docstrings import Documented

#: More labels than this have no room for their names, and more numbers for themselves.
MOST_NAMES, _MOST_POINTS = 40, 10_000
#: Deltas of the picture of a guarantee.
_DELTAS = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)


class Display(Documented):
    """What displays share: the axes, their labels, the legend, and texts of docstrings."""

    _texts = {
        "ax": """\
            ax : matplotlib Axes or None, default=None
                None makes new ones.
        """,
        "options of points": """\
            **kwargs
                For matplotlib's `plot` of the points.
        """,
        "label": """\
            label : str or None, default=None
                For the legend.
        """,
        "column": """\
            column : int or str, default=0
                The number of the column, or its name.
        """,
        "drawn on": """\
            ax_ : matplotlib Axes
            figure_ : matplotlib Figure
        """,
        "label or name": """\
            label : str or None, default=None
                For the legend; None: the name of the estimator and its epsilon.
        """,
        "level": """\
            level : float or None, default=0.95
                Level of the intervals; None draws none.
        """,
    }
    #: For the legend; None: none.
    label = None

    def _open(self, ax):
        """Set `ax_` and `figure_`: those given, or new ones."""
        plt = pyplot(type(self).__name__)
        self.ax_ = plt.subplots(layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_

    def _close(self, **labels):
        """Write the labels of the axes and, where there is something to tell apart, the legend."""
        self.ax_.set(**labels)
        if self.label is not None:
            self.ax_.legend(frameon=False)
        return self

    def _draw_points(self, ax, names, values, intervals, offset, kwargs):
        """Draw values as points, intervals as lines through them; the first one is on top."""
        ax = self._open(ax)
        y = np.arange(len(values))
        style = {"marker": "o", "linestyle": "none", "markersize": 4, "label": self.label, **kwargs}
        (self.points_,) = ax.plot(values, y + offset, **style)
        self.intervals_ = None
        if intervals is not None:
            low, high = np.asarray(intervals, np.float64).reshape(-1, 2).T
            self.intervals_ = ax.hlines(y + offset, low, high, color=self.points_.get_color(), linewidth=1)
        if len(y) <= MOST_NAMES:
            ax.set_yticks(y, [str(name) for name in names], parse_math=False)
        ax.set_ylim(max(len(y), 1) - 0.5, -0.5)


class ResultDisplay(Display):
    """Numbers of a result as points, each with its interval; the first one is on top.

    ``result.plot()`` makes it. Draw several results on the same axes to compare them.

    Parameters
    ----------
    names : list of str
        What each number is called.
    values : array-like of shape (n_values,)
        Numbers; or str, which are drawn as categories.
    intervals : array-like of shape (n_values, 2) or None, default=None
        Lower and upper ends; NaN where there is none.
    axis : str, default="value"
        What the numbers are.
    {label}

    Attributes
    ----------
    {drawn on}
    points_ : matplotlib Line2D
    intervals_ : matplotlib LineCollection or None

    Examples
    --------
    >>> from dpestim.statistics import count
    >>> display = count([True, False] * 500, epsilon=1.0, random_state=0).plot()
    >>> display.ax_.get_xlabel()
    'value'
    """

    def __init__(self, *, names, values, intervals=None, axis="value", label=None):
        self.names = names
        self.values = values
        self.intervals = intervals
        self.axis = axis
        self.label = label

    @classmethod
    def from_result(cls, result, *, label=None, ax=None, offset=0.0, **kwargs):
        """Draw the numbers of a result.

        Parameters
        ----------
        result : result, plan or report
            What has `to_frame`.
        {label}
        {ax}
        offset : float, default=0.0
            How far below its place a point is drawn, in rows: so that several displays can share axes.
        {options of points}

        Returns
        -------
        ResultDisplay
        """
        pyplot(cls.__name__)
        plotted, columns = getattr(result, "_plotted", (None,)), list(getattr(result, "_columns", tuple)())
        if plotted[0] not in columns:
            raise ValueError(f"result must have numbers to draw: {type(result).__name__} has none")
        rows = [tuple(row) for row in result._records()]
        if len(rows) > _MOST_POINTS:
            raise ValueError(f"result must have at most {_MOST_POINTS:,} numbers to draw, got {len(rows):,}: draw a "
                             "part of its to_frame()")
        value, *ends = (None if name is None else [row[columns.index(name)] for row in rows] for name in plotted)
        # (a label that all numbers share tells none apart)
        told = [k for k in range(result._n_labels) if len(rows) == 1 or len({row[k] for row in rows}) > 1]
        names = [", ".join(str(row[k]) for k in told if row[k] is not None) for row in rows]
        intervals = None
        if None not in ends and any(end is not None for end in ends[0]):
            intervals = np.array([[as_float(end) for end in each] for each in zip(*ends)])
        shared = "quantity" in columns and len({row[columns.index("quantity")] for row in rows}) == 1
        axis = rows[0][columns.index("quantity")] if shared else plotted[0].replace("_", " ")
        return cls(names=names, values=drawable(value), intervals=intervals, axis=axis, label=label).plot(
            ax, offset=offset, **kwargs)

    def plot(self, ax=None, *, offset=0.0, **kwargs):
        """Draw the numbers as points, the intervals as lines through them.

        Parameters
        ----------
        {ax}
        offset : float, default=0.0
            How far below its place a point is drawn, in rows.
        {options of points}

        Returns
        -------
        ResultDisplay
            This object.
        """
        self._draw_points(ax, map(plain_name, self.names), self.values, self.intervals, offset, kwargs)
        return self._close(xlabel=self.axis)


class GuaranteeDisplay(Display):
    """The least epsilon that is known to hold at each delta.

    Parameters
    ----------
    deltas : array-like of shape (n_deltas,)
    epsilons : array-like of shape (n_deltas,)
        NaN where none is known.
    {label}

    Attributes
    ----------
    {drawn on}
    line_ : matplotlib Line2D

    Examples
    --------
    >>> from dpestim.inspection import GuaranteeDisplay
    >>> from dpestim.privacy import PrivacyGuarantee
    >>> GuaranteeDisplay.from_guarantee(PrivacyGuarantee(1, 1e-6, "central")).ax_.get_xlabel()
    'delta'
    """

    def __init__(self, *, deltas, epsilons, label=None):
        self.deltas = deltas
        self.epsilons = epsilons
        self.label = label

    @classmethod
    def from_guarantee(cls, guarantee, *, label=None, ax=None, **kwargs):
        """Draw a guarantee.

        Parameters
        ----------
        guarantee : dpestim.privacy.PrivacyGuarantee
        {label}
        {ax}
        **kwargs
            For matplotlib's `plot` of the line.

        Returns
        -------
        GuaranteeDisplay
        """
        pyplot(cls.__name__)
        own = [guarantee.delta] if 0 < guarantee.delta < 1 else []
        deltas = sorted([*_DELTAS, *own])
        epsilons = np.array([as_float(guarantee.epsilon_at(delta)) for delta in deltas])
        return cls(deltas=np.array(deltas, np.float64), epsilons=epsilons, label=label).plot(ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw the line; the axis of delta is logarithmic.

        Parameters
        ----------
        {ax}
        **kwargs
            For matplotlib's `plot` of the line.

        Returns
        -------
        GuaranteeDisplay
            This object.
        """
        ax = self._open(ax)
        (self.line_,) = ax.plot(self.deltas, self.epsilons, **{"linewidth": 1.4, "label": self.label, **kwargs})
        known = np.isfinite(self.epsilons).any()
        ax.set(xscale="log", title=None if known else "no guarantee")
        if known:
            ax.set_ylim(bottom=0)
        return self._close(xlabel="delta", ylabel="least epsilon that is known to hold")


def drawable(values):
    """Return values as floats, those that are infinite as NaN; where one is no number, all as text."""
    if all(value is None or isinstance(value, Real) for value in values):
        return np.array([as_float(value) for value in values])
    return ["none" if value is None else str(value) for value in values]


def as_float(value):
    """Return a number as a float, and NaN for None and what is not finite."""
    try:
        value = math.nan if value is None else float(value)
    except OverflowError:  # (an exact number may be larger than any float)
        return math.nan
    return value if math.isfinite(value) else math.nan


def plain_name(name):
    """Return a name as one short line."""
    line = " ".join(str(name).split())
    return line if len(line) <= 60 else f"{line[:57]}..."


def plain(name):
    """Return a name in which matplotlib sees no formula."""
    return name.replace("$", r"\$")


def pyplot(name):
    """Return matplotlib's pyplot, or raise ImportError that says what to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{name} needs matplotlib: pip install 'dpestim[plot]'") from error

    return plt
