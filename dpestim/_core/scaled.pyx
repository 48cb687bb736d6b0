"""Rows scaled by public bounds, and exact sums of the points of a grid: one pass over what is read."""

from libc.math cimport frexp
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport free, malloc

cdef extern from "scaled.h" nogil:
    void dpestim_scale_row(const double *x, Py_ssize_t d, const double *low, const double *high, const double *by,
                           const double *keep, int centred, double *out)
    ctypedef struct dpestim_lines:
        const double *low
        const double *high
        const double *middle
        const double *by
        const double *add
    int dpestim_finite(const double *x, Py_ssize_t n)
    int dpestim_map_lines(const double *x, Py_ssize_t n, Py_ssize_t period, const dpestim_lines *of, double least,
                          double most, double *out)
    void dpestim_gather(const double *x, Py_ssize_t n, Py_ssize_t d, Py_ssize_t period, Py_ssize_t windows,
                        const double *low, const double *high, int64_t *below, int64_t *near, Py_ssize_t most,
                        int64_t *count, double *kept)

cdef extern from "scores.h" nogil:
    const int DPESTIM_ABREAST
    ctypedef struct dpestim_columns:
        const double *low
        const double *high
        const double *by
        const double *shift
        int kind
        double inverse, limit
    int dpestim_scores(const double *x, Py_ssize_t n, Py_ssize_t d, Py_ssize_t row, Py_ssize_t column,
                       const dpestim_columns *of, int bits, const double *w, Py_ssize_t k, const double *constant,
                       double *z, double *out)
    void dpestim_chances(const double *scores, Py_ssize_t n, double *out)

cdef extern from "project.h" nogil:
    ctypedef struct dpestim_components:
        const double *low
        const double *high
        const double *w
        const double *constant
        const double *by
        double longest
    int dpestim_project(const double *x, Py_ssize_t n, Py_ssize_t d, const dpestim_components *of, Py_ssize_t k, int bits,
                        double *z, double *out)

cdef extern from "sums.h" nogil:
    ctypedef struct dpestim_grid:
        double scale, low, middle, least, most
    void dpestim_sum_points(const double *x, Py_ssize_t n, const dpestim_grid *grid, int squares, int bits, double *out)

cdef extern from "wide.h" nogil:
    int dpestim_wide_bits()


def sum_points(
    const double[::1] values,   # IN   a column
    double scale,               # IN   points a unit, a power of two
    double low,                 # IN   the first point
    int64_t span,               # IN   the last point, counted from the first
    double least,               # IN   values are clipped to these bounds first, which lie between these points
    double most,                # IN
    int64_t middle,             # IN   the point that counts as 0
    bint squares=False,         # IN   whether squares are summed, too
    bint finite=False,          # IN   whether values must be finite numbers
    int bits=-1,                # IN   the width of vectors, or -1: as wide as the processor has them
):
    """Return (sum, sum of squares or 0) of the nearest points, counted from the middle, as ints of any size.

    NaN is in the middle. With `finite` return None where a value is not finite.
    """
    cdef Py_ssize_t i = 0, m, n = values.shape[0]
    cdef int64_t reach = max(1, middle, span - middle), most_rows
    cdef double out[3]
    cdef double raw = 0.0
    cdef int exponent, widest = max(128, dpestim_wide_bits())
    cdef dpestim_grid grid
    if not 0 <= middle <= span or span >= 1 << 51:
        raise ValueError("middle must be from 0 to span, which must be below 2^51")
    if frexp(scale, &exponent) != 0.5:
        raise ValueError("scale must be a power of two")
    if not (least * scale - low >= 0.0 and most * scale - low <= span):
        raise ValueError("the bounds must lie between the first point and the last")
    if squares and reach > 1 << 26:
        raise ValueError("squares must be below 2^53: take a grid of fewer points")
    most_rows = (<int64_t>1 << 53) // (reach * reach if squares else max(1, span))  # (so that floats are exact)
    grid.scale, grid.low, grid.middle, grid.least, grid.most = scale, low, <double>middle, least, most
    bits = widest if bits < 0 else min(bits, widest)
    square = 0
    total = 0 if squares else -(<object>n * <object>middle)  # (beyond 64 bits, perhaps)
    while i < n:
        m = min(n - i, most_rows)
        with nogil:
            dpestim_sum_points(&values[i], m, &grid, squares, bits, out)
        total += int(out[0])
        square += int(out[1])
        raw += out[2]
        i += m
    if finite and raw - raw != 0.0 and not all_finite(values):  # (the sum of finite values may be infinite)
        return None
    return total, square


def all_finite(
    const double[::1] values,   # IN
):
    """Tell whether all values are finite numbers."""
    cdef Py_ssize_t i = 0, m, n = values.shape[0]
    cdef int finite = 1
    with nogil:
        while finite and i < n:  # (what is known after a part need not read the rest)
            m = min(n - i, 1 << 16)
            finite = dpestim_finite(&values[i], m)
            i += m
    return finite != 0


def map_lines(
    const double[::1] values,   # IN   rows, one after the other
    const double[:, ::1] lines, # IN   (5, p) bounds, what stands for NaN, a factor and what is added, of p / d rows
    double least,               # IN   what comes out is clipped to these
    double most,
    double[::1] out,            # OUT  as long as values
):
    """Write values, clipped to the bounds of their columns and mapped to a range; tell whether all were finite."""
    cdef Py_ssize_t n = values.shape[0], period = lines.shape[1]
    cdef int finite = 1
    cdef dpestim_lines of
    if lines.shape[0] != 5 or out.shape[0] != n or (n and not period):
        raise ValueError("lines must have 5 rows, and out must be as long as values")
    if n:
        of.low, of.high, of.middle, of.by, of.add = &lines[0, 0], &lines[1, 0], &lines[2, 0], &lines[3, 0], &lines[4, 0]
        with nogil:
            finite = dpestim_map_lines(&values[0], n, period, &of, least, most, &out[0])
    return finite != 0


def gather(
    const double[::1] values,       # IN   rows of d columns, one after the other
    const double[:, ::1] low,       # IN   (w, p) where windows of the columns begin, of p / d rows alike
    const double[:, ::1] high,      # IN   (w, p) and end, ascending
    int64_t[:, ::1] below,          # IO   (w, p) how many values are below the windows
    int64_t[::1] near,              # OUT  (p) scratch
    int64_t[::1] count,             # IO   (d) how many values are in a window; from r on there was no room
    double[:, ::1] kept,            # IO   (d, r) these, in the order of the rows; the last place is spare
):
    """Sort out the values of columns that lie in windows; NaN lies in none, and is not below one."""
    cdef Py_ssize_t n = values.shape[0], d = count.shape[0], windows = low.shape[0], period = low.shape[1]
    if (not d or period < d or period % d or n % d or high.shape[0] != windows or high.shape[1] != period
            or below.shape[0] != windows or below.shape[1] != period or near.shape[0] != period or kept.shape[0] != d
            or not windows):
        raise ValueError("windows, counters and values differ in their columns")
    if n and kept.shape[1]:
        with nogil:
            dpestim_gather(&values[0], n, d, period, windows, &low[0, 0], &high[0, 0], &below[0, 0], &near[0],
                           kept.shape[1], &count[0], &kept[0, 0])


def scale_rows(
    const double[:, ::1] X,     # IN   rows
    const double[::1] low,      # IN   public bounds of the columns
    const double[::1] high,
    const double[::1] by,       # IN   what columns are divided by, above 0
    const double[::1] keep,     # IN   1, or 0 where a column has no width
    bint centred,               # IN   whether the middle becomes 0, or 0 stays 0
    double[:, ::1] out,         # OUT  (n, d)
):
    """Write rows, each column scaled and clipped to [-1, 1]; NaN stays."""
    cdef Py_ssize_t i, n = X.shape[0], d = X.shape[1]
    if out.shape[0] != n or out.shape[1] != d or low.shape[0] != d or high.shape[0] != d or by.shape[0] != d or (
            keep.shape[0] != d):
        raise ValueError("X, the bounds and out differ in shape")
    if d:
        with nogil:
            for i in range(n):
                dpestim_scale_row(&X[i, 0], d, &low[0], &high[0], &by[0], &keep[0], centred, &out[i, 0])


def scores(
    const double[:, :] X,       # IN   rows
    const double[::1] low,      # IN   public bounds of the columns
    const double[::1] high,
    const double[::1] by,       # IN   what columns are multiplied by
    const double[::1] shift,    # IN   what is subtracted then
    int kind,                   # IN   0: rows as they are; 1: scaled, the middle becomes 0; 2: scaled, 0 stays 0
    double inverse,             # IN   1 / the declared norm of a row, so scaled
    double limit,               # IN   the norm that clipped rows keep
    const double[:, ::1] w,     # IN   (k, d) weights
    const double[::1] constant, # IN   (k) what is added
    double[:, ::1] out,         # OUT  (n, k)
    int bits=-1,                # IN   the width of vectors, or -1: as wide as the processor has them
):
    """Write the linear scores of clipped rows; a row with a value that is no number is one of zeros.

    Returns whether all values are finite.
    """
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], k = w.shape[0], size = sizeof(double)
    cdef int finite = 1, widest = dpestim_wide_bits()
    cdef double *z
    cdef dpestim_columns of
    if low.shape[0] != d or high.shape[0] != d or by.shape[0] != d or shift.shape[0] != d or w.shape[1] != d or (
            constant.shape[0] != k or out.shape[0] != n or out.shape[1] != k):
        raise ValueError("X, the bounds, w and out differ in shape")
    if not 0 <= kind <= 2:
        raise ValueError("kind must be 0, 1 or 2")
    if n and d and k:
        if X.strides[0] % size or X.strides[1] % size:
            raise ValueError("X must be an array of whole numbers of floats apart")
        bits = widest if bits < 0 else min(bits, widest)
        z = <double *> malloc(<size_t>(d * (DPESTIM_ABREAST + 1) + 8) * sizeof(double))
        if z is NULL:
            raise MemoryError
        of.low, of.high, of.by, of.shift = &low[0], &high[0], &by[0], &shift[0]
        of.kind, of.inverse, of.limit = kind, inverse, limit
        with nogil:
            # (vectors of scratch that lie in two lines of the cache would take twice as long)
            finite = dpestim_scores(&X[0, 0], n, d, X.strides[0] // size, X.strides[1] // size, &of, bits, &w[0, 0], k,
                                    &constant[0], <double *>((<uintptr_t>z + 63) & ~<uintptr_t>63), &out[0, 0])
        free(z)
    elif n and k:
        out[:, :] = constant
    return finite != 0


def project(
    const double[:, ::1] X,     # IN   rows
    const double[:, ::1] box,   # IN   (2, d) what columns are clipped to
    const double[:, ::1] w,     # IN   (k, d) components
    const double[::1] constant, # IN   (k) what is added to scores
    double longest,             # IN   rows of scores are shortened to this length
    const double[::1] by,       # IN   (k) what they are divided by then, or nothing
    double[:, ::1] out,         # OUT  (n, k)
    int bits=-1,                # IN   the width of vectors, or -1: as wide as the processor has them
):
    """Write the scores of clipped rows; tell whether all values were finite (else rows of others mean nothing)."""
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], k = w.shape[0]
    cdef int finite = 1, widest = dpestim_wide_bits()
    cdef double *z
    cdef dpestim_components of
    if box.shape[0] != 2 or box.shape[1] != d or w.shape[1] != d or constant.shape[0] != k or out.shape[0] != n or (
            out.shape[1] != k or by.shape[0] not in (0, k)):
        raise ValueError("X, the bounds, w and out differ in shape")
    if n and d and k:
        z = <double *> malloc(<size_t>((d + k) * DPESTIM_ABREAST + 8) * sizeof(double))
        if z is NULL:
            raise MemoryError
        of.low, of.high, of.w, of.constant, of.longest = &box[0, 0], &box[1, 0], &w[0, 0], &constant[0], longest
        of.by = &by[0] if by.shape[0] else NULL
        bits = widest if bits < 0 else min(bits, widest)
        with nogil:
            finite = dpestim_project(&X[0, 0], n, d, &of, k, bits, <double *>((<uintptr_t>z + 63) & ~<uintptr_t>63),
                                     &out[0, 0])
        free(z)
    return finite != 0


def chances(
    const double[::1] scores,   # IN   linear scores
    double[:, ::1] out,         # OUT  (n, 2) 1 / (1 + e^score) and 1 / (1 + e^-score)
):
    """Write the probabilities of two classes."""
    cdef Py_ssize_t n = scores.shape[0]
    if out.shape[0] != n or out.shape[1] != 2:
        raise ValueError("out must have two numbers for each score")
    if n:
        with nogil:
            dpestim_chances(&scores[0], n, &out[0, 0])
