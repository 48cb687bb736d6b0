"""Columns of (class, value): one code for both, from a public list of classes and a public domain of a feature."""

from dataclasses import replace

import numpy as np

from dpestim.local.column import Column
from dpestim.local.sampling import CountedDraws


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

    @property
    def domain(self):
        """The classes, and the values of the feature."""
        return {"kind": "classes", "classes": self.classes.tolist(), "feature": self.feature.domain}

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


class JointColumns(CountedDraws):
    """Columns of (class, value) of which users report some."""

    def with_columns(self, columns):
        """Return the same draw of other columns."""
        return JointColumns(columns, self.inferred, self.keys, n_sampled=self.n_sampled)

    def guarantee(self, seeded=None, times=1, n_batches=1):
        """Return what the report of one row promises, of the class, too."""
        plain = super().guarantee(seeded, times, n_batches)
        return replace(plain, notes=(*plain.notes, "It covers the class of a row, too."))

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

