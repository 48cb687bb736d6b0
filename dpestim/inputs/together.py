"""Columns that are read together: one piece of memory for the codes of all, and each line of the cache is read once."""

from typing import NamedTuple

import numpy as np

from dpestim import parallel
from dpestim._core import encode
from dpestim.inputs.categories import CategoryEncoder, smallest_dtype

#: Threads share rows in multiples of so many.
_TASK_ROWS = 1 << 17


class Coded(NamedTuple):
    """The codes of a column, and why one of them is the first code: it is no category; None where there is none."""

    codes: np.ndarray
    why: str | None


def read_together(X, encoders, n_jobs=None):
    """Return `Coded` of each column of an array of integers, or None where the columns are to be read one by one.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    encoders : list of CategoryEncoder
        Of up to 256 categories each.
    n_jobs : int, default=None
    """
    small, plain = smallest_dtype(2), type(X) is np.ndarray and X.dtype.kind in "iub" and X.dtype.isnative
    if not plain or len(encoders) < 2 or not all(type(e) is CategoryEncoder and e.dtype == small for e in encoders):
        return None
    out = np.empty((len(encoders), len(X)), small)
    if X.flags.c_contiguous:
        ranges = [encoder.range_in(X.dtype) for encoder in encoders]
        if None in ranges:
            return None
        bad = _by_rows(X.view(f"u{X.dtype.itemsize}"), ranges, out, n_jobs)
        return None if bad else [Coded(codes, None) for codes in out]  # (one by one they tell which column it is)
    if not X.flags.f_contiguous or any(encoder.fill_for(X.dtype) is None for encoder in encoders):
        return None

    def task(first, last):
        rows = slice(first * _TASK_ROWS, last * _TASK_ROWS)
        return [encoder.fill_for(X.dtype)(X[rows, j], codes[rows], 0) for j, (encoder, codes) in enumerate(zip(
            encoders, out))]

    reasons = parallel.run(task, -(-len(X) // _TASK_ROWS), n_jobs)
    return [Coded(codes, next((why for why in own if why), None)) for codes, own in zip(out, zip(*reasons))]


def _by_rows(values, ranges, out, n_jobs):
    """Write the codes of rows of unsigned integers; return whether any was no category."""
    low, span, first = (np.array(own, values.dtype) for own in zip(*ranges))

    def task(a, b):
        rows, bad = slice(a * _TASK_ROWS, b * _TASK_ROWS), np.empty_like(low)
        encode.together(values[rows], low, span, first, bad, out[:, rows])
        return bad.any()

    return any(parallel.run(task, -(-len(values) // _TASK_ROWS), n_jobs))
