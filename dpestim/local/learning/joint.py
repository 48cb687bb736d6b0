"""Columns of (class, value): one code for both, from a public list of classes and a public domain of a feature."""

from dataclasses import replace

import numpy as np

from dpestim.inputs.frames import is_series
from dpestim.inputs.numbers import DECLARE, OR_FILL, floats_of, refuse_kind, series_numbers
from dpestim.local.column import Column
from dpestim.local.sampling import SampledColumns

_INFINITE = "contains NaN or infinity: every value must be finite" + DECLARE + OR_FILL
_OR_MISSING = "contains infinity: every value must be finite or NaN"


class CategoryFeature:
    """A feature of categories, and how its values become small numbers.

    Parameters
    ----------
    encoder : CategoryEncoder
    """

    def __init__(self, encoder):
        self.encoder, self.n_values = encoder, encoder.n_categories

    def identity(self):
        """Return what two features must share to be counted together."""
        return self.encoder.plain_categories()

    def read(self, values, n_jobs, explain=True):
        """Return (the place of each value, that of none for what is no category; why there is such a value, or None).

        Where not `explain`, nobody asks for the reason.
        """
        return self.encoder.read(values, np.dtype(np.uint32), self.n_values, n_jobs, explain)


class NumberFeature:
    """A feature of numbers between public bounds, in bins of equal width; what lies beyond is clipped.

    A number that may be missing has one value more, behind the bins.

    Parameters
    ----------
    name : str
        As errors call it.
    low, high : float
    n_bins : int
    missing : bool, default=False
    """

    def __init__(self, name, low, high, n_bins, missing=False):
        self.name, self.low, self.high, self.n_bins, self.missing = name, low, high, n_bins, bool(missing)
        self.n_values = n_bins + self.missing

    def identity(self):
        """Return what two features must share to be counted together."""
        return self.low, self.high, self.n_bins, self.missing

    @property
    def edges(self):
        """The edges of the bins."""
        return np.linspace(self.low, self.high, self.n_bins + 1)

    def read(self, values, n_jobs, explain=True):
        """Return (the place of each value, `n_values` for what is none; why there is such a value, or None)."""
        numbers, nulls = values, None
        if is_series(values):
            numbers, nulls = series_numbers(values, f"{self.name} of X", strict=not explain)
        elif values.dtype.kind == "O" and explain:
            numbers = floats_of(values, f"{self.name} of X")
        elif values.dtype.kind == "O":
            raise ValueError("strict mode: X must have a numeric dtype in every column with bounds: convert columns of "
                             "objects")
        else:
            refuse_kind(values.dtype, f"{self.name} of X")
        with np.errstate(all="ignore"):
            numbers = np.asarray(numbers, np.float64)
            lost = ~np.isfinite(numbers) if nulls is None else nulls | ~np.isfinite(numbers)
            bins = np.searchsorted(self.edges[1:-1], numbers, side="right").astype(np.uint32)
        if not self.missing:
            bins[lost] = self.n_values
            return bins, _INFINITE if lost.any() else None
        infinite = np.isinf(numbers) if nulls is None else np.isinf(numbers) & ~nulls
        bins[lost], bins[infinite] = self.n_bins, self.n_values
        return bins, _OR_MISSING if infinite.any() else None


class JointColumn(Column):
    """A feature together with the class: a code is class * (number of values) + value.

    Parameters
    ----------
    name : str
    law : CategoricalRandomizer
    classes : ndarray
        Sorted.
    feature : CategoryFeature or NumberFeature
    """

    def __init__(self, name, law, classes, feature):
        super().__init__(name, law)
        self.classes, self.feature = classes, feature

    def identity(self):
        """Return classes and domain, in order, and the law."""
        values = self.classes.tolist()
        return tuple(type(value) for value in values), values, self.feature.identity(), self.law

    def read(self, values, n_jobs, strict):
        """Return the codes of (places of classes, values of the feature).

        In strict mode what is no value counts as the first one.
        """
        labels, values = values
        places, why = self.feature.read(values, n_jobs, explain=not strict)
        if strict:
            places[places == self.feature.n_values] = 0
        elif why:
            raise ValueError(f"{self.name} {why}")
        return (labels.astype(np.uint32) * np.uint32(self.feature.n_values) + places).astype(self.law.code_dtype)


class JointColumns(SampledColumns):
    """Columns of which users report some; the last count of each is how many reports it has."""

    def with_columns(self, columns):
        """Return the same draw of other columns."""
        return JointColumns(columns, self.inferred, self.keys, n_sampled=self.n_sampled)

    def guarantee(self, seeded=None, times=1, n_batches=1):
        """Return what the report of one row promises, of the class, too."""
        plain = super().guarantee(seeded, times, n_batches)
        return replace(plain, notes=(*plain.notes, "It covers the class of a row, too."))

    def told(self, number, counts, n):
        """Return (the counts of one of the columns, how many rows drew it)."""
        return counts[number][:-1], int(counts[number][-1])

    def _no_counts(self):
        return [np.zeros(law.n_counts + 1, np.int64) for law in self.laws]

    def _count(self, number, reports, counts):
        self.laws[number].count(reports, counts[number][:-1])
        counts[number][-1] += len(reports)

    def shares(self, counts):
        """Return (estimated shares of class and value, the variance of a cell on average, reports) of each column.

        Shares have shape (n_classes, n_values) and no bias; they may be negative. Without any report they are even, and
        the variance is 1.
        """
        return [_shares(column, own[:-1], int(own[-1])) for column, own in zip(self, counts)]


def _shares(column, counts, m):
    law, shape = column.law, (len(column.classes), column.feature.n_values)
    even = 1 / law.n_categories
    if not m:
        return np.full(shape, even), 1.0, 0
    at_zero, slope = law.variance_line(counts, m)
    # (that of the law; a plain model does not count who was drawn either. A little, so that it can be divided by)
    noise = max(float(np.mean(at_zero)) + float(np.mean(slope)) * even, 1 / m) / m
    return law.estimate(counts, m).reshape(shape), noise, m

