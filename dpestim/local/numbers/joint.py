"""Columns whose law is about several numbers together: a row's features between bounds of their own, one report."""

from copy import copy
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim.local.column import Column
from dpestim.local.law import Randomizer
from dpestim.local.numbers.column import as_floats, coder_of


class JointRandomizer(Randomizer):
    """Base of the laws of several numbers together; positions are shares of the bounds of each.

    A code is a row of `n_numbers` fixed points, what a sub-class's `encode` makes of a row of values. Besides what
    `Randomizer` asks for, a sub-class brings `encode`, `decode`, `means` and `n_reports`, which know what the counts
    are, and `even_variance`. Where it knows a faster way than `encode` and `privatize` one after the other, it may
    bring ``privatize_values(block, *ends, words, out)``, which writes the same reports; where
    `looks_at_values` it takes ``refuse=True``, and raises `NotFiniteError` where a value is not finite.

    Attributes
    ----------
    n_numbers : int
    """

    looks_at_values = False

    code_dtype = np.dtype(np.int64)

    def encode(self, block, lows, highs, out):
        """Write the (n, n_numbers) fixed points of a block of values in the user's units, float64 of that shape."""
        raise TypeError(f"{type(self).__name__} does not say how to encode: implement `encode`")

    def decode(self, reports):
        """Return an (n, n_numbers) array: the positions that each report stands for, without bias."""
        raise TypeError(f"{type(self).__name__} does not say what reports stand for: implement `decode`")

    def n_reports(self, counts):
        """Return how many reports the counts are of."""
        raise TypeError(f"{type(self).__name__} does not say how many reports were counted: implement `n_reports`")

    def means(self, counts):
        """Return (means, standard errors, largest biases) of the positions, arrays with one entry a number.

        There is at least one report; of a single one the standard errors are NaN.
        """
        raise TypeError(f"{type(self).__name__} does not say what counts tell about means: implement `means`")

    def two_positions(self, counts):
        """Return (shares of the larger, how far apart they are) where a number is one of two positions, else None."""
        return None

    def even_variance(self):
        """Return the variance of a number's position in a report over users with rows spread evenly over the domain.

        `PersonalizedEstimator` weighs groups by it, so it must not depend on data.
        """
        raise TypeError(f"{type(self).__name__} does not state its variance: implement `even_variance`")

    def reach(self):
        """Return the least and the largest position that a report stands for in one of the numbers, exactly."""
        raise ValueError(f"the law {type(self).__name__} does not say how far one report can move a mean: it must have "
                         "a method `reach` for this audit")

    def mean_reach(self):
        """Return the same of the mean over the reports of one row: 0 and 1, as there is no bias."""
        return Fraction(0), Fraction(1)

    def channel(self, n_bins):
        """Refuse: one report is about several numbers."""
        raise ValueError("transformer must report every column separately, because joint reports determine means only: "
                         "set strategy='split', or take MeanEstimator")

    def mean_values(self):
        """Refuse, as `channel` does: a report is more than one number."""
        return self.channel(None)


class JointColumn(Column):
    """Several columns of numbers that share a report.

    Parameters
    ----------
    names : sequence of str
    law : JointRandomizer
    lows, highs : sequences of float
        Values beyond are clipped; in strict mode NaN counts as the lower one.
    """

    def __init__(self, names, law, lows, highs):
        super().__init__(names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}", law)
        self._names, self.lows, self.highs = list(names), list(lows), list(highs)
        self.n_joint = len(self._names)

    @property
    def feature_names(self):
        """How messages call its features."""
        return self._names

    def named(self, *names):
        """Return the same columns under other names."""
        return self if list(names) == self._names else type(self)(names, self.law, self.lows, self.highs)

    def identity(self):
        """Return the bounds and the law."""
        return self.lows, self.highs, self.law

    @property
    def middles(self):
        """The middles between the bounds."""
        zero, unit = self._scale
        return (zero + unit / 2).tolist()

    @property
    def domain(self):
        """The bounds of each number."""
        return {"kind": "row", "lows": list(map(float, self.lows)), "highs": list(map(float, self.highs))}

    #: Whether values that are not finite are refused as they are randomised; else the client has refused them before.
    refuses = False

    def refusing(self):
        """Return the same column, whose law refuses values that are not finite."""
        column = copy(self)
        column.refuses = True
        return column

    def read(self, values, n_jobs, strict):
        """Return the block of values, which was checked with the rest of X; fixed points are made block by block."""
        return values

    def coder(self):
        """Return a function from a block of rows to fixed points, with memory of its own."""
        return coder_of(lambda block, out: self.law.encode(block, *self._ends, out), self.n_joint,
                        dtype=self.law.code_dtype)

    def privatizer(self):
        """Return a function that writes the reports of a block of values, without codes where the law can."""
        privatize, ends = getattr(self.law, "privatize_values", None), self._ends
        if privatize is None:
            return super().privatizer()
        more = {"refuse": True} if self.refuses else {}
        return lambda block, words, out: privatize(as_floats(block), *ends, words, out, **more)

    @property
    def _ends(self):
        """What the law takes of the domain, with values."""
        return self.lows, self.highs

    @cached_property
    def _scale(self):
        return np.array(self.lows), np.array(self.highs) - np.array(self.lows)

    def check_mean(self):
        """Accept: every joint law knows the means."""

    def n_reports(self, counts):
        """Return how many reports the counts are of, as the law says."""
        return self.law.n_reports(counts)

    def means(self, counts):
        """Return (means, standard errors, biases) as the law says, in the user's units."""
        zero, unit = self._scale
        if not self.n_reports(counts):
            return (np.full(self.n_joint, np.nan),) * 3
        means, errors, biases = self.law.means(counts)
        return zero + unit * means, unit * errors, unit * biases

    def two_numbers(self, counts):
        """Return what the law says of two positions, and the unit of that; None without any report."""
        two = self.law.two_positions(counts) if self.n_reports(counts) else None
        return None if two is None else (*two, self._scale[1])

    def even_variance(self):
        """Return the variance of each feature in a report as the law says, in the user's units."""
        return np.full(self.n_joint, self.law.even_variance()) * np.square(self._scale[1])

    def decode(self, reports):
        """Return what reports stand for, in the user's units."""
        zero, unit = self._scale
        return zero + unit * self.law.decode(reports)
