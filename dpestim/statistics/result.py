"""What a statistic releases: a value, how far off it may be, and what was promised; nothing in it is exact."""

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache
from html import escape
from numbers import Real

import numpy as np

from dpestim.privacy import PrivacyGuarantee
from dpestim.records import record
from dpestim.tables import NumberTable


@record(eq=False)
class Result(NumberTable):
    """A released statistic: ``print(result)`` shows the numbers with their intervals, labels and names of columns.

    Attributes
    ----------
    value : number or ndarray
        The noisy statistic: a number where the data were one column without a second axis (a Series, a list of
        numbers), else an array with an entry for each column, also where it is a frame with a single one.
    standard_error : number, ndarray or None
        Standard deviation of the value, over the noise: worked out as if the value that was released were the exact
        one, where the value is clipped to its range or follows from several noisy numbers (of few rows, or with a small
        epsilon, it was found within a third of what is seen); None if the standard error depends on the data.
    privacy : PrivacyGuarantee
        The guarantee of all numbers in this object together.
    about : str
        The statistic that an interval encloses, as a sentence.
    keys : tuple
        Names of the cells, where the statistic is a table: edges or categories of each axis.
    axes : tuple of (str, list)
        What each axis of the value is, such as ``("column", ["height", "weight"])``, and the label of each entry: names
        of columns, quantiles, bins or categories.
    level : float or None
        The level of the intervals that are shown; None where no interval was released.
    units : dict of str
        The unit of each column whose unit the `dpestim.Domain` of the statistic says.

    Examples
    --------
    >>> from dpestim.statistics import Count
    >>> result = Count(1.0, random_state=1).fit([True, False] * 500).result_
    >>> result.value, result.interval(0.95), result.privacy.epsilon
    (500, (497.0, 503.0), Fraction(1, 1))
    >>> print(result)
    value  standard error  95 % interval
      500            1.36     497 to 503
    """

    value: object
    standard_error: object
    privacy: PrivacyGuarantee
    about: str
    keys: tuple = ()
    _ends: Callable | None = field(default=None, repr=False)
    axes: tuple = ()
    level: float | None = None
    units: Mapping = field(default_factory=dict)
    _none = "missing"

    def interval(self, level=0.95):
        """Return (low, high), each of the shape of the value: ends that enclose the exact statistic.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1): the least probability, over the noise and for any data, for each number by itself.

        Returns
        -------
        (low, high)

        Raises
        ------
        ValueError
            Where no interval of this level was released.
        """
        if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
            raise ValueError("level must be a number between 0 and 1")
        if self._ends is None:
            raise ValueError("no interval was released: set level= for an interval of a quantile, such as median(x, "
                             "..., level=0.95), which spends half of epsilon on the interval")
        low, high = self._ends(float(level))
        return (low, high) if np.ndim(self.value) else (_scalar(low), _scalar(high))

    # ---------------------------------------------------------------- inside

    def _about(self):
        return f"{', '.join(map(str, self._names())) or 'one number'}: {self.about}."

    @property
    def _has_errors(self):
        return self.standard_error is not None

    def _names(self):
        return tuple(name for name, _ in self.axes)

    def _cells(self):
        """Yield (labels, value, standard error, low, high) of each number; None where one was not released."""
        low, high = (None, None) if self.level is None else self.interval(self.level)
        parts = [None if part is None else np.asarray(part) for part in (self.value, self.standard_error, low, high)]
        for place in np.ndindex(np.shape(self.value)):
            labels = (labels[k] for (_, labels), k in zip(self.axes, place))
            yield (*labels, *(None if part is None else part[place].item() for part in parts))

    def _remarks(self):
        if not np.ndim(self.value):
            return self._units()
        what = "Intervals enclose" if self.level is not None else "Values estimate"
        return (f"{what} {self.about}.", *self._units())

    def _repr_html_(self):
        return super()._repr_html_().replace("</div>", f"<p>{escape(str(self.privacy))}</p></div>")


class GroupResults(NumberTable, dict):
    """Results by group, a dict in the order of the groups; ``print`` shows one table of all, `to_frame` returns it."""

    _none = "missing"

    def interval(self, level=0.95):
        """Return {group: (low, high)}: for each group, the ends that enclose its exact statistic.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1): the least probability, for each number by itself.

        Raises
        ------
        ValueError
            Where no interval of this level was released.
        """
        return {group: result.interval(level) for group, result in self.items()}

    @property
    def level(self):
        """The level of the intervals that are shown; None where no interval was released."""
        return self._one().level

    @property
    def units(self):
        """The unit of each column whose unit is declared."""
        return self._one().units

    @property
    def privacy(self):
        """What all groups together promise: as much as one of them, since groups share no row."""
        return self._one().privacy

    @property
    def _has_errors(self):
        return self._one()._has_errors

    def _about(self):
        return f"{len(self):,} groups: {self._one().about}."

    def _one(self):
        return next(iter(self.values()))

    def _names(self):
        return ("group", *self._one()._names())

    def _cells(self):
        return ((group, *row) for group, result in self.items() for row in result._cells())

    def _remarks(self):
        what = "Intervals enclose" if self.level is not None else "Values estimate"
        return (f"{what} {self._one().about}.", *self._units())


def _scalar(value):
    return np.asarray(value).reshape(-1)[0].item()


@cache
def nodes():
    """Return noise of one number, of variance 1."""
    return _nodes(1, 64)[0]


@cache
def joint_nodes():
    """Return noise of four numbers whose function is wanted, each of variance 1."""
    return _nodes(4, 256)


def _nodes(n, size):
    """Return n vectors of noise of variance 1, each from quantiles of the Laplace law, and uncorrelated."""
    middle = np.linspace(-1, 1, 2 * size + 1)[1::2]
    quantiles = -np.sign(middle) * np.log1p(-np.abs(middle))
    rng = np.random.default_rng(0)
    made = np.array([quantiles, *(rng.permutation(quantiles) for _ in range(n - 1))]).T
    made, _ = np.linalg.qr(np.c_[np.ones(size), made])
    return made[:, 1:].T / made[:, 1:].std(axis=0)[:, None]


def spread(samples, limits, function=None):
    """Return the standard deviation of samples, the last axis, clipped to limits, of a function of them."""
    low, high = (end[..., None] for end in limits)
    samples = np.minimum(np.maximum(samples, low), high)
    samples = samples if function is None else function(samples)
    scale = np.maximum.reduce(np.abs(samples), axis=-1, keepdims=True)  # (its square may be no float)
    scale[scale == 0] = 1.0
    samples = samples / scale
    # (what `std` does, bit for bit, without what it asks before)
    samples -= np.add.reduce(samples, axis=-1, keepdims=True) / samples.shape[-1]
    samples *= samples
    return np.sqrt(np.add.reduce(samples, axis=-1) / samples.shape[-1]) * scale[..., 0]


def shaped(values, one):
    """Return an array, or its only number where the data were one column."""
    values = np.asarray(values)
    return values.reshape(-1)[0].item() if one and values.size == 1 else values


def ratio_range(number, count):
    """Return the least and largest ratio of a number in an interval to a count in one, which is at least 1."""
    t = [1 / max(1.0, end) for end in count]
    ends = [a * b for a in number for b in t]
    return min(ends), max(ends)


def moment_range(square, first, second, count, same):
    """Return the least and largest Q / N - S T / N^2, where Q, S, T and N lie in intervals (`same`: S is T)."""
    products = [a * b for a in first for b in second]
    if same:
        products = [end * end for end in first] + ([0.0] if first[0] <= 0 <= first[1] else [])
    t = sorted(1 / max(1.0, end) for end in count)
    return (min(_along(square[0], max(products), t)), max(_along(square[1], min(products), t)))


def _along(q, p, t):
    """Return the values of q t - p t^2 at the ends of an interval and where it turns inside."""
    at = list(t)
    turn = q / (2 * p) if p else math.inf
    if t[0] < turn < t[1]:
        at.append(turn)
    return [q * x - p * x * x for x in at]
