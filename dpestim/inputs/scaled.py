"""Columns of numbers scaled by public bounds, and coefficients of scaled columns in units of the numbers."""

from dataclasses import dataclass

import numpy as np

from dpestim.inputs.encoded import norm_of
from dpestim.inputs.sparse import SparseRows


@dataclass(frozen=True)
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
        with np.errstate(all="ignore"):
            by = np.where(half > 0, half, 1.0)
            scaled = (X - self.low) / by - 1.0 if self.centred else np.clip(X, self.low, self.high) / by
            scaled = np.clip(scaled, -1.0, 1.0)
        return np.ascontiguousarray(np.where(half > 0, scaled, 0.0 * scaled))

    def in_units(self, coef, intercept):
        """Return coefficients and intercepts of scaled rows in units of X."""
        half = self._half
        slopes = np.where(half > 0, coef / np.where(half > 0, half, 1.0), 0.0)
        return slopes, intercept - slopes @ (self.low + half) if self.centred else intercept

    def of_scaled(self, coef, intercept):
        """Return those of scaled rows, of coefficients and intercepts in units of X."""
        half = self._half
        return coef * half, intercept + coef @ (self.low + half) if self.centred else intercept
