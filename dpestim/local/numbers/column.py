"""A column of numbers: two public bounds, and the law on the grid between them; and how bounds are declared."""

import math
from fractions import Fraction

import numpy as np

from dpestim import inputs
from dpestim.inputs import in_order, is_by_column
from dpestim.local.categories.estimates import ends
from dpestim.local.columns import Column


class NumberColumn(Column):
    """One column of numbers.

    Parameters
    ----------
    name : str
    law : NumericRandomizer
    low, high : float
        Values beyond are clipped; in strict mode NaN counts as `low`.
    """

    def __init__(self, name, law, low, high):
        super().__init__(name, law)
        self.low, self.high = low, high

    def check_bounds(self):
        """Raise ValueError where floats between the bounds are too few for the law."""
        if not self.law.fits(self.low, self.high):
            raise ValueError(f"bounds of {self.name} are too close together: too few floats lie between them")

    def identity(self):
        """Return the bounds and the law."""
        return self.low, self.high, self.law

    def read(self, values, n_jobs, strict):
        """Return the values, which were checked with the rest of X; they become fixed points block by block."""
        return values

    def coder(self):
        """Return a function from a block of values to fixed points, with memory of its own."""
        fixed = np.empty(self.law.block_rows, np.int64)

        def codes_of(block):
            with np.errstate(over="ignore"):  # a wider float than this becomes an infinite one, and is clipped
                block = np.ascontiguousarray(block, np.float64)
            self.law.encode(block, self.low, self.high, fixed[: len(block)])
            return fixed[: len(block)]

        return codes_of

    @property
    def middles(self):
        """The middle between the bounds."""
        return [self.low + self.width / 2]

    @property
    def lows(self):
        """The lower bounds, one for each feature."""
        return [self.low]

    @property
    def highs(self):
        """The upper bounds, one for each feature."""
        return [self.high]

    def decode(self, reports):
        """Return what codes stand for."""
        return np.take(self.to_units(self.law.positions), reports)

    def to_units(self, positions):
        """Return positions within the bounds (0 low, 1 high) in the user's units."""
        return self.low + self.width * positions

    @property
    def width(self):
        """The distance between the bounds."""
        return self.high - self.low

    @property
    def even_spread(self):
        """The variance of values spread evenly between the bounds, and of rounding them to the grid."""
        return self.width**2 * (1 / 12 + 1 / (6 * self.law.grid**2))

    def least_noise(self, numbers, mean, counts, n):
        """Return the variance of a report of the input next to the mean: on average over values there is more."""
        law = self.shape_law
        return law.noise_at(int(np.abs(law.input_positions - mean).argmin()), numbers)

    def relaxed_interval(self):
        """Return (from, to, whether NaN is in it): all values that become a relaxed input once they are clipped."""
        start, stop = self.law.relaxed_bounds(self.low, self.high)
        nan = start <= self.low
        return (-math.inf if nan else start), (math.inf if stop >= self.high else stop), nan

    def relaxed_inputs(self):
        """Return the values that the law's relaxation gives less protection, in full: a ledger compares names."""
        start, stop, nan = self.relaxed_interval()
        return f"[{start!r}, {stop!r}]{' and NaN' if nan else ''}"


class MissingColumn(NumberColumn):
    """A column of numbers, or none: its law is a `NumberOrMissing` (``missing.md``)."""

    may_be_missing = True

    def means(self, counts):
        """Return (mean of the values that are there, its standard error, largest bias), in the user's units."""
        told, n = self._told(counts), self.n_reports(counts)
        if not n:
            return tuple(np.full(1, np.nan) for _ in range(3))
        (total, share), cov = told
        share = max(share, 1 / n)
        mean = min(max(total / share, -0.5), 0.5)
        line = np.array([1.0, -mean])
        error = math.sqrt(max(float(line @ cov @ line), 0.0) / n) / share if n > 1 else math.nan
        (p, q), bias = map(float, self.law.says_missing), self.law.number.mean_values()[1]
        bias *= 1 + max(1 - share, 0.0) / share * (1 - p) / (1 - q)
        return np.array([self.to_units(0.5 + mean)]), np.array([error * self.width]), np.array([bias * self.width])

    def mean_interval(self, counts, z):
        """Return (low, high) of the mean, in the user's units: Fieller's; the bounds, where perhaps none is there."""
        n = self.n_reports(counts)
        if n < 2:
            return self.low, self.high
        (total, share), cov = self._told(counts)
        a, b, c = (x - z * z / n * v for x, v in ((share * share, cov[1, 1]), (total * share, cov[0, 1]),
                                                  (total * total, cov[0, 0])))
        if a <= 0 or share <= 0:
            return self.low, self.high
        root = math.sqrt(max(b * b - a * c, 0.0))
        bias = self.means(counts)[2][0]
        return tuple(min(max(self.to_units(0.5 + (b + sign * root) / a) + sign * bias, self.low), self.high)
                     for sign in (-1, 1))

    def missing_share(self, counts):
        """Return (the share of missing values, its standard error), NaN without reports."""
        (p, q), n = map(float, self.law.says_missing), self.n_reports(counts)
        if not n:
            return math.nan, math.nan
        said = int(counts[-1]) / n
        error = math.sqrt(said * (1 - said) / (n - 1)) / (p - q) if n > 1 else math.nan
        return (said - q) / (p - q), error

    def missing_interval(self, counts, z):
        """Return (low, high) of the share of missing values: a score interval, from 0 to 1."""
        (p, q), n = map(float, self.law.says_missing), self.n_reports(counts)
        if not n:
            return 0.0, 1.0
        low, high = ends(np.array([int(counts[-1]) / n]), z, lambda s: np.sqrt(s * (1 - s) / n))
        return tuple(min(max(float((end[0] - q) / (p - q)), 0.0), 1.0) for end in (low, high))

    def _told(self, counts):
        """Return the mean and the covariance of what a report tells of: (number less the middle, a value is there)."""
        (p, q), n = map(float, self.law.says_missing), self.n_reports(counts)
        if not n:
            return np.full(2, np.nan), np.full((2, 2), np.nan)
        numbers = (self.law.number.mean_values()[0] - 0.5) / (1 - q)
        told = np.stack([np.append(numbers, 0.0), 1 + q / (p - q) - np.append(np.zeros(len(numbers)), 1 / (p - q))])
        mean = told @ counts / n
        away = told - mean[:, None]
        return mean, (away * counts) @ away.T / max(n - 1, 1)

    @property
    def shape_law(self):
        """The law of the reports that do not say "missing"."""
        return self.law.number

    def shape_counts(self, counts):
        """Return the counts of these reports."""
        return counts[:-1]

    def unmixed(self, counts, shares):
        """Return shares of bins of equal width of the values that are there, without uniform ones of missing values."""
        missing = min(max(self.missing_share(counts)[0], 0.0), 1 - 1 / self.n_reports(counts))
        there = np.maximum(self._without(self.law.mixed_in(missing), shares, 1 / len(shares)), 0.0)
        return there / there.sum() if there.any() else np.full(len(shares), 1 / len(shares))

    def unmixed_intervals(self, counts, ends, z):
        """Return intervals for shares of bins of the values that are there, from those of all such reports.

        Both these and that of the share of missing values are to hold, at `z`.
        """
        found = np.stack([self._without(self.law.mixed_in(missing), ends, 1 / len(ends))
                          for missing in self.missing_interval(counts, z)])
        return np.stack([found[:, :, 0].min(axis=0), found[:, :, 1].max(axis=0)], axis=1).clip(0.0, 1.0)

    @staticmethod
    def _without(part, shares, even):
        """Return (shares - part * even) / (1 - part); without a limit where nothing else is there."""
        return (shares - part * even) / max(1 - part, 1e-12)

    def two_numbers(self, counts):
        """Return None: a report is a number, or says that there is none."""
        return None

    def check_mean(self):
        """Raise ValueError where the counts do not tell about the mean."""
        self.law.number.mean_values()

    def even_variance(self):
        """Return the variance of a report's number over users with values spread evenly over the domain."""
        numbers, _ = self.law.number.mean_values()
        noise = self.law.number.noise_of(numbers - 0.5).mean() * self.width**2 + self.even_spread
        return np.array([noise / (1 - float(self.law.says_missing[1]))])

    def average(self, rows):
        """Return the mean of the values that are there; without any the middle."""
        there = self.binned(rows)
        return np.array([there.mean() if len(there) else self.middles[0]])

    def binned(self, rows):
        """Return the values that are there."""
        rows = self.numbers(rows)
        return rows[~np.isnan(rows)]


def pair_of(pair, name, n_columns):
    """Return (lows, highs), lists of floats, from a pair of scalars or of arrays, or a dict of pairs by column name.

    n_columns None: as many as it has.
    """
    if is_by_column(pair):
        pair = tuple(zip(*in_order(pair, "pairs", name=name)[1]))
    lows, highs = inputs.pair_of(pair, n_columns, name=name)
    return lows.tolist(), highs.tolist()


def share_of(value, low, high):
    """Return where a value lies between bounds, exactly: 0 at low, 1 at high."""
    low, high = Fraction(low), Fraction(high)
    return (Fraction(value) - low) / (high - low)
