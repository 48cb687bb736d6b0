"""Where numbers fall: points of a grid, and cells between edges. Each row by itself; NaN has a place of its own."""

from libc.stdint cimport int32_t, int64_t, uint64_t

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


cdef void sort_digits(int64_t *values, int64_t *spare, Py_ssize_t n, int shift, int bits) noexcept nogil:
    """Sort by the digits from one on, the lower ones first; what was equal stays in its order."""
    cdef Py_ssize_t i, start, size
    cdef int digit
    cdef int64_t counts[2048]
    cdef int64_t *one = values
    cdef int64_t *other = spare
    cdef int64_t *swap
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
    if one != values:
        for i in range(n):
            values[i] = one[i]


cdef bint insert(int64_t *values, Py_ssize_t n) noexcept nogil:
    """Sort what is nearly sorted; tell whether few moves were enough."""
    cdef Py_ssize_t i, j, left = 4 * n
    cdef int64_t value
    for i in range(1, n):
        value, j = values[i], i
        while j and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
        left -= i - j
        if left < 0:
            return False
    return True


def sort_points(
    int64_t[::1] values,        # IO   points counted from the first, at least 0; ascending afterwards
    int64_t[::1] spare,         # OUT  of the same length: overwritten
):
    """Sort points, digit by digit: several times as fast as comparing them.

    Two digits nearly sort points that are spread out, and few that are compared remain.
    """
    cdef Py_ssize_t i, n = values.shape[0]
    cdef int bits = 0
    cdef int64_t most = 0
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
    with nogil:
        if bits > 22:
            sort_digits(&values[0], &spare[0], n, bits - 22, bits)
        if bits <= 22 or not insert(&values[0], n):
            sort_digits(&values[0], &spare[0], n, 0, bits)


def distinct(
    int64_t[::1] points,        # IO   ascending; each of them once afterwards
    int64_t[::1] upto,          # OUT  of the same length: how many there were up to each
):
    """Count points that repeat, and return how many there are."""
    cdef Py_ssize_t i, n = points.shape[0], found = 0
    if upto.shape[0] != n:
        raise ValueError("upto differs in length")
    with nogil:
        for i in range(n):
            points[found] = points[i]
            upto[found] = i + 1
            found += i + 1 == n or points[i + 1] != points[i]
    return found


cdef inline int64_t weight_before(int64_t at, int levels, const int64_t[::1] low, const int64_t[::1] high,
                                  int low_bits) noexcept nogil:
    """What multiples of the step below this one weigh, counted from the number 0."""
    if not levels:
        return at
    return (low[-at & (low.shape[0] - 1)] + high[(-at >> low_bits) & (high.shape[0] - 1)] + at * (levels + 8)) >> 1


def span_weights(
    const int64_t[::1] points,  # IN   (m) ascending, counted from the first one of a grid
    int64_t first,              # IN   which this is
    int64_t beyond,             # IN   how many the grid has
    int levels,                 # IN   as in `Cells`
    const int64_t[::1] low,     # IN   tables of what remainders weigh, of powers of two entries
    const int64_t[::1] high,    # IN
    int low_bits,               # IN   of the first
    int64_t[::1] starts,        # OUT  (2 m + 2) the first point of all, of each and of what is behind it, and `beyond`
    int64_t[::1] times,         # OUT  (2 m + 1) what each of these stretches weighs
):
    """Write stretches of a grid, and what their points weigh together."""
    cdef Py_ssize_t i, m = points.shape[0]
    cdef int64_t at, here, own, before, most = <int64_t>1 << levels
    if starts.shape[0] != 2 * m + 2 or times.shape[0] != 2 * m + 1 or not 0 <= low_bits < 32 or (
            low.shape[0] != <Py_ssize_t>1 << low_bits or not high.shape[0] or high.shape[0] & (high.shape[0] - 1)
            or not 0 <= levels < 60):
        raise ValueError("starts, times and points differ in length, or tables have other ones")
    with nogil:
        starts[0], before = 0, weight_before(first, levels, low, high, low_bits)
        for i in range(m):
            at = points[i] + first
            here = weight_before(at, levels, low, high, low_bits)
            own = at & -at  # the largest power of two of which it is a multiple
            own = 4 * most if own >= most or own == 0 else own
            own = own if levels else 1
            starts[2 * i + 1], starts[2 * i + 2] = points[i], points[i] + 1
            times[2 * i], times[2 * i + 1] = here - before, own
            before = here + own
        starts[2 * m + 1] = beyond
        times[2 * m] = weight_before(beyond + first, levels, low, high, low_bits) - before


def rank_scores(
    const int64_t[::1] upto,    # IN   (m) how many rows there are up to each point
    int64_t before,             # IN   how many are before the first, less the target; at most 0 for the first of all
    int64_t target,             # IN   in units of 2^-shift
    int shift,                  # IN
    bint last,                  # IN   whether no rank is too high for the last point
    int64_t far,                # IN   no score is worse
    int64_t[::1] out,           # OUT  (2 m - 1) of each point, and of what is between it and the next one
):
    """Write how far a target is from the ranks of cells, negated."""
    cdef Py_ssize_t i, m = upto.shape[0]
    cdef int64_t over, under = before, score
    if not m or out.shape[0] != 2 * m - 1 or not 0 <= shift < 63:
        raise ValueError("upto and out differ in length, or shift is out of range")
    with nogil:
        for i in range(m):
            over = <int64_t>((<uint64_t>upto[i] << shift) - <uint64_t>target)
            over = -far if over < -far else far if over > far else over
            score = -under if under > 0 else 0
            if over < 0 and not (last and i + 1 == m):
                score = over
            out[2 * i] = score
            if i + 1 < m:
                out[2 * i + 1] = -over if over > 0 else over
            under = over


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
