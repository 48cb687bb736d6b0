"""A column of numbers, or none: the mean and the shape of the values that are there, and the share of the others."""

import math

import numpy as np

from dpestim.local.interval_ends import ends
from dpestim.local.numbers.column import NumberColumn


class MissingColumn(NumberColumn):
    """A column of numbers, or none: its law is a `NumberOrMissing` (``missing.md``)."""

    may_be_missing = True

    def means(self, counts):
        """Return (mean of the values that are there, its standard error, largest bias), in the user's units."""
        n = self.n_reports(counts)
        if not n:
            return tuple(np.full(1, np.nan) for _ in range(3))
        mean, share, _, cov = self._told(counts)
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
        _, _, (total, share), cov = self._told(counts)
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
        likely = min(max(said, q), p)  # (few reports may show less noise than the law has)
        error = math.sqrt(likely * (1 - likely) / (n - 1)) / (p - q) if n > 1 else math.nan
        return (said - q) / (p - q), error

    def missing_interval(self, counts, z):
        """Return (low, high) of the share of missing values: a score interval, from 0 to 1."""
        (p, q), n = map(float, self.law.says_missing), self.n_reports(counts)
        if not n:
            return 0.0, 1.0
        low, high = ends(np.array([int(counts[-1]) / n]), z, lambda s: np.sqrt(s * (1 - s) / n))
        return tuple(min(max(float((end[0] - q) / (p - q)), 0.0), 1.0) for end in (low, high))

    def _told(self, counts):
        """Return (mean, share of values that are there, both unclipped as (sum over n, share), their covariance).

        Means are less the middle. The covariance is that of a report's numbers, from their spread, or as much larger as
        what the law adds at least where few reports show less.
        """
        (p, q), n, law = map(float, self.law.says_missing), self.n_reports(counts), self.shape_law
        numbers = (law.mean_values()[0] - 0.5) / (1 - q)
        told = np.stack([np.append(numbers, 0.0), 1 + q / (p - q) - np.append(np.zeros(len(numbers)), 1 / (p - q))])
        found = told @ counts / n
        away = told - found[:, None]
        cov = (away * counts) @ away.T / max(n - 1, 1)
        share = max(found[1], 1 / n)
        mean = min(max(found[0] / share, -0.5), 0.5)
        line = np.array([1.0, -mean])
        least, seen = self._least(line @ told, mean, min(share, 1.0), p, q), float(line @ cov @ line)
        if seen < least:
            cov = cov * (least / seen) if seen > 0 else least * np.outer(line, line) / float(line @ line) ** 2
        return mean, share, found, cov

    def _least(self, numbers, mean, share, p, q):
        """Return the variance of a report's number where all values that are there are the mean."""
        law = self.shape_law
        row = int(np.abs(law.input_positions - 0.5 - mean).argmin())
        own, squares = numbers[:-1], np.square(numbers)
        of_value, of_missing = (tuple(law.expect(x)[row] for x in (own, squares[:-1])),
                                tuple(self.law.of_missing @ x for x in (own, squares[:-1])))

        def variance(said, first, second):
            return (1 - said) * second + said * squares[-1] - ((1 - said) * first + said * numbers[-1]) ** 2

        return share * variance(q, *of_value) + (1 - share) * variance(p, *of_missing)

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
