"""A picture of a stream: what was released, the band of its intervals, and the truth where it is known."""

import numpy as np

from dpestim.plots import Display


class StreamDisplay(Display):
    """Releases of a stream, step by step, with the band of their intervals.

    Parameters
    ----------
    values : ndarray of shape (n_steps,)
    band : (ndarray, ndarray) or None
        Lower and upper ends.
    truth : ndarray of shape (n_steps,) or None
    first : int
        The number of the first step.
    label : str or None, default=None
        For the legend.

    Attributes
    ----------
    {drawn on}
    line_, truth_ : matplotlib Line2D
        `truth_` is None where no truth was given.
    band_ : matplotlib PolyCollection or None

    Examples
    --------
    >>> from dpestim.stream import StreamCounter
    >>> counter = StreamCounter(1.0, delta=1e-6, horizon=100, random_state=0).fit([1] * 100)
    >>> counter.plot(range(1, 101)).line_.get_xdata()[[0, -1]].tolist()
    [1, 100]
    """

    def __init__(self, values, band=None, truth=None, first=1, label=None):
        self.values = values
        self.band = band
        self.truth = truth
        self.first = first
        self.label = label

    @classmethod
    def from_estimator(cls, estimator, truth=None, *, column=0, level=0.95, ax=None, label=None, **kwargs):
        """Draw the releases of the latest call of a stream.

        Parameters
        ----------
        estimator : fitted estimator of `dpestim.stream`
        truth : array-like, default=None
            Exact numbers of these steps.
        column : int, default=0
            Of a stream of several numbers: which one is drawn.
        {level}
        {ax}
        {label or name}
        {options of points}

        Returns
        -------
        StreamDisplay
        """
        values, band = np.asarray(estimator.values_), None
        if level is not None and getattr(estimator, "_widths", None) is not None:
            band = estimator.confidence_interval(level)
        if values.ndim == 2:
            values, band = values[:, column], None if band is None else tuple(end[:, column] for end in band)
        if truth is not None:
            truth = np.asarray(truth, np.float64)
            truth = truth[:, column] if truth.ndim == 2 else truth
            if truth.shape != values.shape:
                raise ValueError("truth must have a number for each step of the latest call")
        label = f"{type(estimator).__name__}, epsilon={estimator.epsilon:g}" if label is None else label
        return cls(values, band, truth, estimator.n_steps_ - len(values) + 1, label).plot(ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw it.

        Parameters
        ----------
        {ax}
        {options of points}

        Returns
        -------
        self
        """
        ax = self._open(ax)
        steps = np.arange(self.first, self.first + len(self.values))
        (self.line_,) = ax.plot(steps, self.values, **{"linewidth": 1, "label": self.label, **kwargs})
        self.band_ = self.truth_ = None
        if self.band is not None:
            self.band_ = ax.fill_between(steps, *self.band, color=self.line_.get_color(), alpha=0.2, linewidth=0)
        if self.truth is not None:
            (self.truth_,) = ax.plot(steps, self.truth, color="black", linewidth=0.8, label="exact")
        return self._close(xlabel="step", ylabel="release")
