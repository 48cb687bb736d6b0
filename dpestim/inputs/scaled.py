"""Columns of numbers scaled by public bounds, and coefficients of scaled columns in units of the numbers."""


import numpy as np

from dpestim._core import scaled
from dpestim.inputs.encoded import norm_of
from dpestim.inputs.sparse import SparseRows
from dpestim.records import record


@record
class Scale:
    """Public bounds of columns: rows are scaled to [-1, 1] by them, and coefficients of these to units of X.

    Not centred: 0 stays 0, as for a model without an intercept, which is 0 at the origin of X.
    """

    low: np.ndarray
    high: np.ndarray
    centred: bool = True

    @property
    def _half(self):
        return (self.high - self.low) / 2 if self.centred else np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def norm(self):
        """The largest norm of a scaled row."""
        return norm_of(max(1, int((self._half > 0).sum())))

    def rows(self, X):
        """Return rows, each column scaled and clipped; a column whose scale is 0 is 0."""
        if isinstance(X, SparseRows):
            raise ValueError("bounds need dense rows, because scaling maps 0 to another number: pass X.toarray(), or "
                             "declare data_norm instead")
        half = self._half
        X = np.ascontiguousarray(X, np.float64)
        out = np.empty_like(X)
        by, wide = np.where(half > 0, half, 1.0), (half > 0).astype(np.float64)
        low, high = (np.ascontiguousarray(end, np.float64) for end in (self.low, self.high))
        scaled.scale_rows(X, low, high, by, wide, bool(self.centred), out)
        return out

    def parts(self):
        """Return ((low, high, factors, what is subtracted then), kind), as `_core.scaled.scores` takes them."""
        half = self._half
        with np.errstate(all="ignore"):
            factors = np.where(half > 0, 1.0 / np.where(half > 0, half, 1.0), 0.0)
        return np.array([self.low, self.high, factors, half > 0], dtype=np.float64), 1 if self.centred else 2

    def in_units(self, coef, intercept):
        """Return coefficients and intercepts of scaled rows in units of X."""
        half = self._half
        slopes = np.where(half > 0, coef / np.where(half > 0, half, 1.0), 0.0)
        return slopes, intercept - slopes @ (self.low + half) if self.centred else intercept

    def of_scaled(self, coef, intercept):
        """Return those of scaled rows, of coefficients and intercepts in units of X."""
        half = self._half
        return coef * half, intercept + coef @ (self.low + half) if self.centred else intercept
