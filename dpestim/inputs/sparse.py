"""Sparse tables of numbers: rows of which only the entries are kept, read by dtype and shape, never made dense."""

import numpy as np
from scipy.sparse import csr_array, issparse

from dpestim.inputs.frames import is_frame, refuse_empty
from dpestim.inputs.numbers import refuse_infinite, refuse_kind
from dpestim.inputs.safe_errors import attempt


class SparseRows:
    """Rows of entries as kernels take them: float64 `values`, int32 columns `index`, int64 `start`.

    Columns ascend in a row. What is not an entry is exactly 0. Entries may be 0, or no number.
    """

    def __init__(self, values, index, start, shape):
        self.values, self.index, self.start, self.shape = values, index, start, shape

    def __len__(self):
        return self.shape[0]

    def times(self, factors, matrix):
        """Return the product of these rows, each multiplied by its factor (0 also where no number is), and a matrix."""
        with np.errstate(all="ignore"):
            found = (csr_array((self.values, self.index, self.start), shape=self.shape) @ matrix) * factors[:, None]
        if np.isfinite(found).all():
            return found
        # (entries first: what no number is must not be added, and large ones may overflow)
        each = np.repeat(factors, np.diff(self.start))
        values = np.where(each == 0, 0.0, self.values * each)
        return csr_array((values, self.index, self.start), shape=self.shape) @ matrix

    def longest(self):
        """Return the largest Euclidean norm of a row."""
        scale = float(np.abs(self.values).max(initial=0.0))
        rows = np.repeat(np.arange(len(self)), np.diff(self.start))
        squares = np.bincount(rows, np.square(self.values / (scale or 1.0)), minlength=len(self))
        return scale * float(np.sqrt(squares.max(initial=0.0)))


def is_sparse(X):
    """Tell whether this is a sparse matrix or array, or a pandas frame of nothing but sparse columns around 0."""
    if is_frame(X) and hasattr(X, "iloc"):
        return X.shape[1] > 0 and all(hasattr(dtype, "subtype") and type(dtype).__name__ == "SparseDtype"
                                      and dtype.subtype.kind in "biuf" and dtype.fill_value == 0 for dtype in X.dtypes)
    return issparse(X)


def sparse_rows(X, names, *, strict, fewest=1):
    """Return a sparse X as `SparseRows`; raise ValueError, unless in strict mode, where a value is not finite.

    `names` are those of the columns, for messages. Nothing that is not a valid sparse table is read, in any mode: such
    an object says what its rows are by nobody's rules.
    """
    invalid = "X must be a valid sparse matrix: two-dimensional, with row and column indices that are within its shape"
    if is_frame(X):
        X, error = attempt(X.sparse.to_coo)
        if error:
            raise ValueError("X must hold numbers in all sparse columns: convert them, or pass a dense frame")
    if len(X.shape) != 2:
        raise ValueError(invalid)
    refuse_empty(X.shape, fewest)
    refuse_kind(X.dtype, "X")
    if X.dtype.kind == "O":
        raise ValueError("X must have a numeric dtype where it is sparse")
    if X.format not in ("csr", "csc"):
        X, error = attempt(X.tocsr)
        if error:
            raise ValueError(invalid)
    if X.shape[1] >= 1 << 31 or X.shape[0] >= 1 << 31:
        raise ValueError("X must have fewer than 2^31 rows and columns where it is sparse")
    order = _checked(X, X.shape[X.format == "csr"], len(X.indptr) == X.shape[X.format == "csc"] + 1)
    if order == 2:
        raise ValueError(invalid)
    if X.format == "csc" or order == 1:
        X = X.tocsr(copy=True) if X.format == "csc" else csr_array((X.data, X.indices, X.indptr), X.shape, copy=True)
        with np.errstate(all="ignore"):
            X.sum_duplicates()  # a column that a row has twice is a sum, before the row is measured
    index, start = np.ascontiguousarray(X.indices, np.int32), np.ascontiguousarray(X.indptr, np.int64)
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(X.data[: start[-1]], np.float64)
    if not strict and not np.isfinite(values).all():
        column = index[int(np.argmin(np.isfinite(values)))]
        refuse_infinite(np.array([[np.nan]]), [names(int(column))])
    return SparseRows(values, index[: start[-1]], start, tuple(X.shape))


def _checked(X, across, complete):
    """Return what `check_entries` says of a matrix in compressed form."""
    from dpestim._core import logistic  # (a library that dense rows need not load)

    index, start = np.asarray(X.indices), np.asarray(X.indptr)
    short = np.ascontiguousarray(index, np.int32)
    if not complete or (index.dtype != np.int32 and not np.array_equal(short, index)):
        return 2
    return logistic.check_entries(short, np.ascontiguousarray(start, np.int64), across, len(X.data))
