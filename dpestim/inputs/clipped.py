"""Rows of norm at most 1, as linear models take them: clipped to a public norm, a constant appended."""

import math

import numpy as np
from scipy.sparse import csr_array, hstack

from dpestim._core import logistic
from dpestim.inputs.sparse import SparseRows


def row_shape(n_features, intercept):
    """Return (norm that the features of a row keep, its appended constant): a row's exact norm is at most 1."""
    room = (1.0 - (n_features + 64) * 2.0**-52) / math.sqrt(1.0 + intercept * intercept)
    return room, intercept * room


def clipped_rows(X, data_norm, intercept):
    """Return rows of norm at most 1, the constant of the intercept appended; with a value that is not finite: 0.

    An array of floats gives one, `SparseRows` a sparse array.
    """
    (n, d), (limit, tail) = X.shape, row_shape(X.shape[1], intercept)
    scales = np.empty(n)
    if isinstance(X, SparseRows):
        logistic.clip_factors_sparse(X.values, X.start, 1.0 / data_norm, limit, scales)
        each = np.repeat(scales, np.diff(X.start))
        with np.errstate(invalid="ignore", over="ignore"):
            values = np.where(each > 0, X.values * each, 0.0)
        rows = csr_array((values, X.index, X.start), shape=(n, d))
        ends = csr_array(np.where(scales > 0, tail, 0.0)[:, None])
        return csr_array(hstack([rows, ends])) if intercept > 0 else rows
    logistic.clip_factors(X, 1.0 / data_norm, limit, scales)
    rows = np.zeros((n, d + (intercept > 0)))
    with np.errstate(invalid="ignore", over="ignore"):
        np.multiply(X, scales[:, None], out=rows[:, :d])
    rows[scales == 0] = 0.0
    if intercept > 0:
        rows[scales > 0, -1] = tail
    return rows


def longest(X):
    """Return the largest norm of a row (1 where all are 0)."""
    if isinstance(X, SparseRows):
        found = X.longest() or 1.0
    else:
        scale = float(np.abs(X).max(initial=0.0))
        found = scale * float(np.sqrt(np.square(X / scale).sum(axis=1).max())) if scale else 1.0
    return min(max(found, 1e-100), 1e100)
