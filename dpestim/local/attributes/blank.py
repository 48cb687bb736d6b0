"""Unary encodings that can say nothing: a report of no value, in which every bit is that of a value not held."""

import numpy as np

from dpestim._core import unary
from dpestim.inputs import smallest_dtype
from dpestim.local.categories.unary import OUE, SUE


class _Blank:
    """Mixin, left of a unary encoding: the code after the last value stands for no value."""

    #: Reports of no value have another number of ones.
    knows_reports = False

    def __init__(self, epsilon, n_categories):
        super().__init__(epsilon, n_categories)
        self.code_dtype = smallest_dtype(n_categories + 1)

    def privatize(self, codes, words, out):
        """Write packed bits; a report of no value keeps the bits that a value not held would have everywhere."""
        drawn = self._draw(codes, words, out)
        none = codes == self.n_categories
        kept = out[none]
        kept[:, -1] &= 255 >> (-self.n_categories % 8)  # (surplus bits of the last pattern)
        unary.finish(np.where(none, 0, codes).astype(self.code_dtype), drawn, self.n_categories, self.true_threshold,
                     out)
        out[none] = kept


class BlankOUE(_Blank, OUE):
    """Optimised unary encoding, of a value or of none."""


class BlankSUE(_Blank, SUE):
    """Symmetric unary encoding, of a value or of none."""
