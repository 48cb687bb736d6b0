"""Where numbers fall: points of a grid, and cells between edges. Each row by itself; NaN has a place of its own."""

from libc.stdint cimport int32_t, int64_t

ctypedef fused counter:
    int32_t  # half of the cache, for fewer than 2^31 rows
    int64_t


cdef inline double point_of(double value, double scale, double low, double span, double middle, double least,
                             double most) noexcept nogil:
    cdef double at
    value = least if value < least else value
    value = most if value > most else value
    at = value * scale - low
    if at != at:
        at = middle
    if at < 0:
        at = 0
    if at > span:
        at = span
    return at + 0.5  # (to be rounded down)


def count_points(
    const double[::1] values,   # IN   a column
    double scale,               # IN   points a unit
    double low,                 # IN   the first point
    int64_t span,               # IN   the last point, counted from the first
    double least,               # IN   values are clipped to these bounds first
    double most,                # IN
    counter[::1] counts,        # IO   (span + 1) rows at each point
):
    """Add to `counts` the rows nearest to each point; NaN is in the middle."""
    cdef Py_ssize_t i, j, m, n = values.shape[0]
    cdef double last = <double>span, middle = <double>(span // 2)
    cdef int places[256]  # of a few rows at a time, so that the arithmetic is free of the counts
    if counts.shape[0] != span + 1 or not 0 <= span < 1 << 30:
        raise ValueError("counts must have an entry for each point")
    with nogil:
        for i in range(0, n, 256):
            m = min(n - i, 256)
            for j in range(m):
                places[j] = <int>point_of(values[i + j], scale, low, last, middle, least, most)
            for j in range(m):
                counts[places[j]] += 1


def points(
    const double[::1] values,   # IN   a column
    double scale,               # IN   points a unit
    double low,                 # IN   the first point
    int64_t span,               # IN   the last point, counted from the first
    double least,               # IN   values are clipped to these bounds first
    double most,                # IN
    int64_t middle,             # IN   the point that counts as 0
    int64_t[::1] out,           # OUT  the nearest point, counted from the middle
):
    """Write the nearest points; NaN is in the middle."""
    cdef Py_ssize_t i, n = values.shape[0]
    if out.shape[0] != n or not 0 <= middle <= span:
        raise ValueError("out differs in length, or middle is out of range")
    with nogil:
        for i in range(n):
            out[i] = <int64_t>point_of(values[i], scale, low, <double>span, <double>middle, least, most) - middle


def sort_points(
    int64_t[::1] values,        # IO   points counted from the first, at least 0; ascending afterwards
    int64_t[::1] spare,         # OUT  of the same length: overwritten
):
    """Sort points, digit by digit from the last: several times as fast as comparing them."""
    cdef Py_ssize_t i, n = values.shape[0], start, size
    cdef int shift, bits = 0, digit
    cdef int64_t most = 0
    cdef int64_t counts[2048]
    cdef int64_t *one
    cdef int64_t *other
    cdef int64_t *swap
    if spare.shape[0] != n:
        raise ValueError("spare differs in length")
    if n < 2:
        return
    with nogil:
        for i in range(n):
            most |= values[i]  # (no less than the largest, with as many bits; negative where one is)
    if most < 0:
        raise ValueError("points are counted from the first one: none is negative")
    while most >> bits:
        bits += 1
    one, other = &values[0], &spare[0]
    with nogil:
        shift = 0
        while shift < bits:
            for digit in range(2048):
                counts[digit] = 0
            for i in range(n):
                counts[(one[i] >> shift) & 2047] += 1
            start = 0
            for digit in range(2048):
                size = counts[digit]
                counts[digit] = start
                start += size
            for i in range(n):
                digit = <int>((one[i] >> shift) & 2047)
                other[counts[digit]] = one[i]
                counts[digit] += 1
            swap = one
            one = other
            other = swap
            shift += 11
        if one != &values[0]:
            for i in range(n):
                values[i] = one[i]


def add_cells(
    const double[::1] values,   # IN   a column
    const double[::1] edges,    # IN   ascending, at least two
    double per,                 # IN   cells a unit where they are equally wide, else 0
    int64_t stride,             # IN   what a cell further counts
    int64_t[::1] cells,         # IO   of each row
):
    """Add stride times the cell of each row: the last edge belongs to the last cell, what is outside to the nearest."""
    cdef Py_ssize_t i, n = values.shape[0], last = edges.shape[0] - 2, at, low, high
    cdef double value, first = edges[0], guess
    if cells.shape[0] != n or last < 0:
        raise ValueError("cells differ in length, or there are no edges")
    with nogil:
        for i in range(n):
            value = values[i]
            if value != value:
                at = last // 2
            elif per > 0:
                guess = (value - first) * per
                at = 0 if not guess > 0 else last if guess >= last else <Py_ssize_t>guess
                while at > 0 and value < edges[at]:
                    at -= 1
                while at < last and value >= edges[at + 1]:
                    at += 1
            else:
                low, high = 0, last
                while low < high:
                    at = (low + high + 1) // 2
                    if value >= edges[at]:
                        low = at
                    else:
                        high = at - 1
                at = low
            cells[i] += stride * at


def tally(
    const int64_t[::1] cells,   # IN   below the length of counts
    int64_t[::1] counts,        # IO
):
    """Count the rows of each cell."""
    cdef Py_ssize_t i, n = cells.shape[0]
    cdef int64_t m = counts.shape[0]
    with nogil:
        for i in range(n):
            if 0 <= cells[i] < m:
                counts[cells[i]] += 1
