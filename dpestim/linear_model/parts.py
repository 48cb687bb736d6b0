"""Rows of a classifier while it is fitted by exact sums: rows that are here, or in parts.

Counts of classes, sums of gradients and sums of products are integers that add up.
"""


import numpy as np

from dpestim.inputs import clipped_rows, row_shape
from dpestim.linear_model.base_rate import class_counts, signs_of
from dpestim.passes import Blueprint, Request
from dpestim.records import record


class Rows:
    """Rows with the code of the class of each, which answer with exact sums.

    Parameters
    ----------
    X : ndarray or SparseRows
    codes : ndarray of int
        Negative: no class.
    n_classes : int
    norm, intercept : float
    """

    def __init__(self, X, codes, n_classes, norm, intercept):
        self.X, self.codes, self.shape = X, codes, X.shape
        self._n_classes, self._norm, self._intercept = n_classes, norm, intercept

    def __len__(self):
        return self.shape[0]

    def counts(self):
        """Return how many rows each class has."""
        return class_counts(self.codes, self._n_classes)

    def products(self, problems):
        """Return the `Summary` of each problem, of one class against the rest."""
        from dpestim.linear_model.functional import products_of, unit_rows

        rows = unit_rows(self.X, self._norm, *row_shape(self.shape[1], self._intercept))
        return products_of(rows, [signs_of(self.codes, kind) for kind in problems])

    def gradients(self, link, bits, offset):
        """Return the function of coefficients that is the exact sum of gradients, on a grid of so many bits."""
        from dpestim.linear_model.gradient import GradientSums

        targets = self.codes.astype(np.int64)
        if link.n_outputs == 1:
            targets, offset = np.where(self.codes < 0, 0.0, 2.0 * (self.codes > 0) - 1.0), offset[0]
        return GradientSums(clipped_rows(self.X, self._norm, self._intercept), targets, link, bits, offset)

    def gradient(self, link, bits, offset, w):
        """Return that of one w."""
        return self.gradients(link, bits, offset)(w)


@record
class SumRows(Request):
    """Asks rows in parts what `Rows` answer.

    Parameters
    ----------
    blueprint : Blueprint
    name : str
        The method that answers.
    arguments : tuple
    """

    blueprint: Blueprint
    name: str
    arguments: tuple = ()

    def of_rows(self, rows, place):
        """Return exact sums."""
        return getattr(self.blueprint.build()._read_part(rows), self.name)(*self.arguments)

    @staticmethod
    def add(one, other):
        """Return the sums of both; neither is changed."""
        return [a + b for a, b in zip(one, other)] if isinstance(one, list) else one + other


class PartRows(Rows):
    """Rows in parts, that answer as `Rows` do: they are asked by a function, and none of them is here.

    Parameters
    ----------
    ask : callable
        Returns the merged answer to a request.
    blueprint : Blueprint
    shape : tuple
        (how many rows, columns)
    intercept : bool
    """

    def __init__(self, ask, blueprint, shape, intercept):
        self._ask, self._blueprint, self.shape, self._intercept = ask, blueprint, shape, intercept

    def counts(self):
        """Return how many rows each class has."""
        return self._ask(SumRows(self._blueprint, "counts"))

    def products(self, problems):
        """Return the `Summary` of each problem."""
        return self._ask(SumRows(self._blueprint, "products", (problems,)))

    def gradients(self, link, bits, offset):
        """Return the function of coefficients that is the exact sum of gradients, asked for at each step."""
        return PartSums(lambda w: self._ask(SumRows(self._blueprint, "gradient", (link, bits, offset, w))), link,
                        self.shape[0], self.shape[1] + self._intercept)


class PartSums:
    """Exact sums of gradients of rows in parts."""

    def __init__(self, answer, link, n_rows, size):
        self._answer, self.link, self.n_rows, self.shape = answer, link, n_rows, (link.n_outputs, size)

    def __call__(self, w):
        """Return the sum at w, integers."""
        return self._answer(w)
