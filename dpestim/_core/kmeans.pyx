"""Rows and centers: which center is nearest, and integer sums of how far rows are from theirs, in one pass."""

from libc.stdint cimport int32_t, int64_t

cdef extern from "kmeans.h" nogil:
    enum: DPESTIM_LANES
    void dpestim_nearest(const float *block, const float *centers, size_t k, size_t d, int32_t *labels)
    int32_t dpestim_steps(float value, float at, float scale, float most)

#: Rows of a block.
LANES = DPESTIM_LANES


def pack(
    const double[:, ::1] rows,    # IN   (n, d)
    const double[::1] low,        # IN   (d) values are clipped to these bounds
    const double[::1] high,       # IN
    const double[::1] middle,     # IN   (d) what stands for NaN, and becomes 0
    double factor,                # IN   units a unit of X
    Py_ssize_t first,             # IN   blocks to write: from here
    Py_ssize_t last,              # IN   up to there
    float[:, :, ::1] out,         # OUT  (blocks, d, LANES) rows that are none are zeros
):
    """Write blocks of rows, each turned over: clipped, counted from the middle, in units."""
    cdef Py_ssize_t n = rows.shape[0], d = rows.shape[1], b, i, j, m
    cdef double value
    if (low.shape[0] != d or high.shape[0] != d or middle.shape[0] != d or out.shape[1] != d
            or out.shape[2] != DPESTIM_LANES or out.shape[0] * DPESTIM_LANES < n or not 0 <= first <= last
            or last > out.shape[0]):
        raise ValueError("arrays differ in shape")
    with nogil:
        for b in range(first, last):
            m = n - b * DPESTIM_LANES
            m = 0 if m < 0 else DPESTIM_LANES if m > DPESTIM_LANES else m
            for i in range(m):
                for j in range(d):
                    value = rows[b * DPESTIM_LANES + i, j]
                    value = middle[j] if value != value else value
                    value = low[j] if value < low[j] else value
                    value = high[j] if value > high[j] else value
                    out[b, j, i] = <float>((value - middle[j]) * factor)
            for j in range(d):
                for i in range(m, DPESTIM_LANES):
                    out[b, j, i] = 0.0


def nearest(
    const float[:, :, ::1] blocks,  # IN   (blocks, d, LANES)
    const float[:, ::1] centers,    # IN   (k, d)
    int32_t[:, ::1] labels,         # OUT  (blocks, LANES) the first nearest center
):
    """Write which center is nearest to each row of all blocks, those that are none included."""
    cdef Py_ssize_t b, k = centers.shape[0], d = centers.shape[1]
    if blocks.shape[1] != d or blocks.shape[2] != DPESTIM_LANES or k < 1 or d < 1 or (
            labels.shape[0] != blocks.shape[0] or labels.shape[1] != DPESTIM_LANES):
        raise ValueError("arrays differ in shape")
    with nogil:
        for b in range(blocks.shape[0]):
            dpestim_nearest(&blocks[b, 0, 0], &centers[0, 0], k, d, &labels[b, 0])


def tally(
    const float[:, :, ::1] blocks,  # IN   (blocks, d, LANES)
    Py_ssize_t n,                   # IN   rows of these blocks that are some: the first n
    const float[:, ::1] centers,    # IN   (k, d)
    const float[::1] scales,        # IN   (d) steps a unit
    const int32_t[::1] limits,      # IN   (d) steps that a row counts at most, below 2^22
    int64_t[:, ::1] sums,           # IO   (k, 1 + d) rows of each center, and their steps from it
    int64_t[::1] squares,           # IO   (d) of the steps of all rows
):
    """Add to sums: each row counts at the nearest center, by an integer for each column within the limits."""
    cdef Py_ssize_t b, i, j, m, k = centers.shape[0], d = centers.shape[1]
    cdef int32_t labels[DPESTIM_LANES]
    cdef int32_t z
    cdef int64_t square
    if (blocks.shape[1] != d or blocks.shape[2] != DPESTIM_LANES or k < 1 or d < 1 or scales.shape[0] != d
            or limits.shape[0] != d or sums.shape[0] != k or sums.shape[1] != d + 1 or squares.shape[0] != d
            or not 0 <= n <= blocks.shape[0] * DPESTIM_LANES):
        raise ValueError("arrays differ in shape")
    for j in range(d):
        if not 0 <= limits[j] < 1 << 22:
            raise ValueError("limits must be below 2^22")
    with nogil:
        for b in range((n + DPESTIM_LANES - 1) // DPESTIM_LANES):
            m = n - b * DPESTIM_LANES
            m = DPESTIM_LANES if m > DPESTIM_LANES else m
            dpestim_nearest(&blocks[b, 0, 0], &centers[0, 0], k, d, labels)
            for i in range(m):
                sums[labels[i], 0] += 1
            for j in range(d):
                square = 0
                for i in range(m):
                    z = dpestim_steps(blocks[b, j, i], centers[labels[i], j], scales[j], <float>limits[j])
                    sums[labels[i], 1 + j] += z
                    square += <int64_t>z * z
                squares[j] += square
