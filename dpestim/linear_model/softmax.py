"""The softmax loss of clipped rows: products of matrices by BLAS, probabilities by a kernel."""

import math

import numpy as np
from scipy.sparse import csr_array, hstack

from dpestim import parallel
from dpestim._core import logistic, softmax
from dpestim.inputs import SparseRows, row_shape
from dpestim.linear_model.solver import LARGEST_OFFSET

_ULP = 2.0**-53
_BLOCK = 1024  # rows of one product
_LANES = 8  # parts with sums of their own, so that threads do not change the order of additions
_THREAD_CELLS = 1 << 20  # work of less than about a millisecond is done before threads have woken


class SoftmaxLoss:
    """Sum over rows of ln sum_k e^(m_k) - m_y, m_k = w_k z + offset_k; z is a row clipped to norm 1 with its constant.

    The w_k are ``basis @ v``, v being the K - 1 rows of what is minimised over: what the loss does not see, the sum of
    all w_k, is 0.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), C-contiguous float64, or SparseRows
        A row with a value that is not finite does not count.
    codes : ndarray of int64
        Classes 0, 1, ...; negative for a row that does not count.
    n_classes : int
    data_norm, intercept, n_jobs
        As for `_solver.MarginLoss`.
    offset : ndarray of shape (n_classes,), optional
        Added to the margins of each row; moduli are at most `LARGEST_OFFSET`.
    """

    curvature, patience, dear = 0.5, math.inf, None

    def __init__(self, X, codes, n_classes, data_norm, intercept, n_jobs=None, offset=None):
        n, d = X.shape
        self.X, self.n_rows, self.n_jobs, self.basis = X, len(X), n_jobs, quotient(n_classes)
        self.offset = np.zeros(n_classes) if offset is None else offset
        self.limit, self.tail = row_shape(d, intercept)
        self.width = d + (intercept > 0)
        self.size = (n_classes - 1) * self.width
        self.scales = np.empty(n)
        if isinstance(X, SparseRows):
            logistic.clip_factors_sparse(X.values, X.start, 1.0 / data_norm, self.limit, self.scales)
        else:
            logistic.clip_factors(X, 1.0 / data_norm, self.limit, self.scales)
        self.codes = np.where(self.scales > 0, codes, -1).astype(np.int64)
        self.scales[self.codes < 0] = 0.0
        self._sparse = self._scaled() if isinstance(X, SparseRows) else None
        self._whole = bool((self.codes >= 0).all())

    def evaluate(self, w, hessian=False, step=1):
        """Return loss, gradient and curvature (None unless asked for) of every step-th row, times step.

        The curvature is a function of the regulariser's strength that returns a function which solves with the
        approximate Hessian: it is a guide for the search, which no guarantee rests on.
        """
        weights = self.basis @ w.reshape(-1, self.width)
        n, span = self.n_rows, _BLOCK * step
        n_blocks = -(-n // span)
        lanes = min(_LANES, n_blocks)

        def task(first, last):
            return [self._lane(weights, hessian, step, n_blocks * lane // lanes, n_blocks * (lane + 1) // lanes)
                    for lane in range(first, last)]

        found = []
        if lanes:
            cells = n // step * self.width * len(weights)
            runs = parallel.run(task, lanes, self.n_jobs if cells >= _THREAD_CELLS else 1)
            found = [lane for run in runs for lane in run]
        loss = step * sum(lane[0] for lane in found)
        gradient = step * (self.basis.T @ sum((lane[1] for lane in found), np.zeros(weights.shape)))
        if not hessian:
            return loss, gradient.ravel(), None
        classes = sum((lane[2] for lane in found), np.zeros((len(weights),) * 2))
        columns = step * sum((lane[3] for lane in found), np.zeros((self.width,) * 2))
        return loss, gradient.ravel(), Curvature(self.basis.T @ classes @ self.basis, columns)

    def _lane(self, weights, hessian, step, first, last):
        """Return loss, gradient and the two factors of the curvature over some blocks of rows."""
        loss, gradient = 0.0, np.zeros(weights.shape)
        classes, columns = np.zeros((len(weights),) * 2), np.zeros((self.width,) * 2)
        for block in range(first, last):
            part = slice(block * _BLOCK * step, (block + 1) * _BLOCK * step, step)
            z, codes = self._rows(part), self.codes[part]
            codes = np.ascontiguousarray(codes)
            pulls = z @ weights.T + self.offset
            loss += softmax.pulls(pulls, codes)
            gradient += (z.T @ pulls).T
            if hessian:
                rows = np.flatnonzero(codes >= 0)
                z = z[rows]
                p = pulls[rows]
                p[np.arange(len(rows)), codes[rows]] += 1.0
                bends = 1.0 - np.square(p).sum(axis=1)
                classes += np.diag(p.sum(axis=0)) - p.T @ p
                weighted = z.multiply(bends[:, None]).T @ z if self._sparse is not None else (z * bends[:, None]).T @ z
                columns += weighted.toarray() if self._sparse is not None else weighted
        return loss, gradient, classes, columns

    def _scaled(self):
        """Return sparse rows z with their constant."""
        factors = np.repeat(self.scales, np.diff(self.X.start))
        with np.errstate(invalid="ignore", over="ignore"):
            values = np.where(factors > 0, self.X.values * factors, 0.0)  # 0 * NaN is none
        rows = csr_array((values, self.X.index, self.X.start), shape=self.X.shape)
        constant = np.where(self.codes >= 0, self.tail, 0.0)[:, None]
        return hstack([rows, csr_array(constant)], format="csr") if self.tail else rows

    def _rows(self, part):
        """Return the rows z: the same floats in every pass."""
        if self._sparse is not None:
            return self._sparse[part]
        z = np.empty((len(self.scales[part]), self.width))
        with np.errstate(invalid="ignore", over="ignore"):
            z[:, : self.X.shape[1]] = self.X[part] * self.scales[part, None]
        z[:, self.X.shape[1] :] = self.tail
        if not self._whole:
            z[self.codes[part] < 0] = 0.0  # 0 * NaN is none
        return z


class Curvature:
    """A Hessian sum_i S_i (x) z_i z_i', taken as the product of its two marginals over a trace."""

    def __init__(self, classes, columns):
        self._bends, self._turn = np.linalg.eigh(classes / max(np.trace(classes), 1e-300))
        self._curves, self._axes = np.linalg.eigh(columns)

    def __call__(self, strength):
        """Return a function that divides by this plus the curvature of the regulariser."""
        scale = np.maximum(np.outer(self._bends, self._curves), 0.0) + strength

        def solve(x):
            inner = self._turn.T @ x.reshape(scale.shape) @ self._axes / scale
            return (self._turn @ inner @ self._axes.T).ravel()

        return solve


def quotient(n_classes):
    """Return K x (K - 1) floats, next to an orthonormal basis of vectors of sum 0; as a matrix of norm at most 1."""
    basis = np.zeros((n_classes, n_classes - 1))
    for j in range(1, n_classes):
        basis[:j, j - 1], basis[j, j - 1] = 1.0 / math.sqrt(j * (j + 1)), -j / math.sqrt(j * (j + 1))
    return basis * (1.0 - 2.0**-40)


def rounding(n_rows, size, n_classes, norm):
    """Return what the float gradient of `n_rows` rows is off by at most, in Euclidean norm, at v of this norm.

    Whatever the order in which BLAS adds. Margins of a row err by (width + K^1.5 + 2 sqrt K + 6) ulp |v| and 3 sqrt K
    ulp of the largest offset, its probabilities by half of that, a relative 2^-48 and (K + 4) ulp; then sums over a
    block, over blocks and over classes.
    """
    width = size // (n_classes - 1)
    turn = n_classes**1.5
    root = math.sqrt(n_classes)
    row = 0.5 * ((width + turn + 2 * root + 6) * norm + 3 * root * LARGEST_OFFSET) * _ULP
    row += 2.0**-48 + (n_classes + 4) * _ULP
    depth = _BLOCK + -(-n_rows // _BLOCK) + turn + 8
    return 1.01 * n_rows * (row + 1.42 * depth * _ULP)
