"""Displays: estimates with their intervals as pictures, in scikit-learn's convention for plotting.

`from_estimator` reads public fitted attributes, the object keeps the numbers, and `plot` draws them, as often as asked.
Only then matplotlib is imported.
"""

import warnings
from numbers import Integral

import numpy as np

from dpestim.exceptions import NoIntervalError
from dpestim.plots import MOST_NAMES, Display, plain, pyplot
from dpestim.privacy.text import bound


class FrequencyDisplay(Display):
    """Frequencies of the categories of a column, each with its confidence interval.

    Draw several on the same axes to compare mechanisms or budgets; `ax_` takes whatever should be drawn beside.

    Parameters
    ----------
    categories : array-like of shape (n_categories,)
    frequencies : ndarray of shape (n_categories,)
    intervals : ndarray of shape (n_categories, 2) or None, default=None
        Lower and upper ends. They are those of the unbiased estimates, so post-processed frequencies may lie outside.
    feature : str or None, default=None
        The name of the column.
    {label}

    Attributes
    ----------
    {drawn on}
    points_ : matplotlib Line2D
        The frequencies.
    intervals_ : matplotlib LineCollection or None

    Examples
    --------
    >>> from dpestim.inspection import FrequencyDisplay
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> est = GRRFrequencyEstimator(1.0, categories=[["no", "yes"]], random_state=0).fit([["no"], ["yes"], ["no"]])
    >>> display = FrequencyDisplay.from_estimator(est)
    >>> display.ax_.get_legend_handles_labels()[1]
    ['GRRFrequencyEstimator, epsilon = 1']
    """

    def __init__(self, *, categories, frequencies, intervals=None, feature=None, label=None):
        self.categories = categories
        self.frequencies = frequencies
        self.intervals = intervals
        self.feature = feature
        self.label = label

    @classmethod
    def from_estimator(cls, estimator, *, column=0, level=0.95, offset=0.0, label=None, ax=None, **kwargs):
        """Draw a column of a fitted frequency estimator.

        Parameters
        ----------
        estimator : fitted frequency estimator
            Anything with `categories_`, `frequencies_`, `confidence_interval` and `privacy_`.
        {column}
        {level}
        offset : float, default=0.0
            How far below its category a point is drawn, in rows: so that several displays can share axes.
        {label or name}
        {ax}
        {options of points}

        Returns
        -------
        FrequencyDisplay
        """
        pyplot(cls.__name__)
        check_has(estimator, "estimator", "frequencies_", "confidence_interval", "privacy_")
        frequencies = estimator.frequencies_
        at, feature = column_of(estimator, column, len(frequencies))
        intervals = None if level is None else estimator.confidence_interval(level)[at]
        display = cls(
            categories=estimator.categories_[at], frequencies=frequencies[at], intervals=intervals, feature=feature,
            label=name_and_promise(estimator) if label is None else label,
        )
        return display.plot(ax=ax, offset=offset, **kwargs)

    def plot(self, ax=None, *, offset=0.0, **kwargs):
        """Draw the frequencies as points, the intervals as lines through them; the first category is on top.

        Parameters
        ----------
        {ax}
        offset : float, default=0.0
            How far below its category a point is drawn, in rows.
        {options of points}

        Returns
        -------
        FrequencyDisplay
            This object.
        """
        self._draw_points(ax, self.categories, self.frequencies, self.intervals, offset, kwargs)
        name = "category" if len(self.categories) <= MOST_NAMES else "number of the category"
        return self._close(xlabel="frequency", ylabel=name if self.feature is None else plain(self.feature))


class DistributionDisplay(Display):
    """The distribution of a column of numbers as a density over bins, with a band of intervals over fewer ones.

    Parameters
    ----------
    distribution : ndarray of shape (n_bins,)
        Shares of the bins.
    bin_edges : ndarray of shape (n_bins + 1,)
    intervals : ndarray of shape (n_intervals, 2) or None, default=None
        Lower and upper ends of the shares of the bins, or of other bins of equal width between the same bounds.
    feature : str or None, default=None
        The name of the column.
    {label}

    Attributes
    ----------
    {drawn on}
    density_ : matplotlib StepPatch
        Shares divided by the widths of their bins, which need not be equal.
    band_ : matplotlib StepPatch or None

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.inspection import DistributionDisplay
    >>> from dpestim.local import DistributionEstimator, PMTransformer
    >>> heights = np.random.default_rng(0).normal(1.7, 0.1, (2_000, 1))
    >>> est = DistributionEstimator(PMTransformer(2.0, bounds=(1.2, 2.2), random_state=0), n_bins=16).fit(heights)
    >>> display = DistributionDisplay.from_estimator(est)
    >>> display.ax_.get_ylabel()
    'density'
    """

    def __init__(self, *, distribution, bin_edges, intervals=None, feature=None, label=None):
        self.distribution = distribution
        self.bin_edges = bin_edges
        self.intervals = intervals
        self.feature = feature
        self.label = label

    @classmethod
    def from_estimator(cls, estimator, *, column=0, level=0.95, n_intervals=16, label=None, ax=None, **kwargs):
        """Draw a column of a fitted `dpestim.local.DistributionEstimator`.

        Parameters
        ----------
        estimator : fitted distribution estimator
            Anything with `distribution_`, `bin_edges_`, `confidence_interval` and `privacy_`.
        {column}
        {level}
        n_intervals : int, default=16
            Bins of the intervals, at most 256: the more there are, the wider is each interval for its share. Categories
            have one each.
        {label or name}
        {ax}
        **kwargs
            For matplotlib's `stairs` of the density.

        Returns
        -------
        DistributionDisplay
        """
        pyplot(cls.__name__)
        check_has(estimator, "estimator", "distribution_", "bin_edges_", "confidence_interval", "privacy_")
        shares = estimator.distribution_
        at, feature = column_of(estimator, column, len(shares))
        intervals = None
        if level is not None:
            try:
                intervals = estimator.confidence_interval(level, n_bins=n_intervals)[at]
            except NoIntervalError as error:  # where they would not hold there are none
                warnings.warn(f"no intervals are drawn: {error}", stacklevel=2)
        display = cls(
            distribution=shares[at], bin_edges=estimator.bin_edges_[at], intervals=intervals, feature=feature,
            label=name_and_promise(estimator) if label is None else label,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw the density as steps, the intervals as a band around them.

        Parameters
        ----------
        {ax}
        **kwargs
            For matplotlib's `stairs` of the density.

        Returns
        -------
        DistributionDisplay
            This object.
        """
        ax = self._open(ax)
        width = np.diff(self.bin_edges)
        style = {"label": self.label, "linewidth": 1.4, **kwargs}
        self.density_ = ax.stairs(self.distribution / width, self.bin_edges, baseline=None, **style)
        self.band_ = None
        if self.intervals is not None:
            edges = self.bin_edges
            if len(self.intervals) != len(width):
                edges = np.linspace(edges[0], edges[-1], len(self.intervals) + 1)
            low, high = np.asarray(self.intervals).T / np.diff(edges)
            colour = self.density_.get_edgecolor()
            # (`color`, not `facecolor`, which would take a colour from the cycle away from the next display)
            self.band_ = ax.stairs(high, edges, baseline=low, fill=True, color=colour, alpha=0.25, linewidth=0)
        ax.set_ylim(bottom=0)
        return self._close(xlabel="value" if self.feature is None else plain(self.feature), ylabel="density")


def check_has(item, parameter, *names):
    """Refuse what is no such estimator, or plan; an unfitted one says so itself when its attributes are read."""
    for name in names:
        if not hasattr(type(item), name) and not hasattr(item, name):
            raise ValueError(f"{parameter} must have {', '.join(names)}: {type(item).__name__} has no {name}")


def column_of(estimator, column, n):
    """Return (number, name or None) of a column."""
    names = getattr(estimator, "feature_names_in_", None)
    names = None if names is None else list(names)
    if isinstance(column, Integral) and not isinstance(column, bool):
        at = int(column)
    elif isinstance(column, str) and names is not None and column in names:
        at = names.index(column)
    else:
        raise ValueError("column must be the number of a column, or the name of a column that fit saw")
    if not 0 <= at < n:
        raise ValueError(f"column must be at least 0 and below {n}, the number of columns")
    return at, None if names is None else str(names[at])


def name_and_promise(estimator):
    """Return the name of the estimator and what it promises."""
    privacy = estimator.privacy_
    if privacy.is_finite:
        promise = f"epsilon = {bound(privacy.epsilon)}"
    elif privacy.relaxation is not None:
        promise = f"epsilon = {bound(privacy.relaxed_epsilon)} under a relaxation"
    else:
        promise = "no guarantee"
    return f"{type(estimator).__name__}, {promise}"
