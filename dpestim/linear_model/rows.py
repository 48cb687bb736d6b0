"""Rows of a classifier while it is fitted, which answer with exact sums; `parts.py`: rows in parts, that do the same.

Counts of classes, sums of gradients and sums of products are integers that add up.
"""

import numpy as np

from dpestim.inputs import clipped_rows, row_shape
from dpestim.linear_model.base_rate import class_counts, signs_of


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
