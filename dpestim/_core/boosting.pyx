"""A round of boosting over rows: scores move by what a term learned, and residuals are summed by the bins of another.

Sums are of integers, so that they do not depend on the order of rows or on the number of threads.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc


cdef extern from "boosting.h" nogil:
    int32_t DPESTIM_NEXT(int32_t* number)
    void dpestim_number_residuals(const double* score, const double* target, Py_ssize_t n, int32_t* out)
    void dpestim_class_residuals(const double* score, const double* target, Py_ssize_t n, int32_t* out)
    void dpestim_softmax_residuals(const double* score, const double* target, Py_ssize_t n, Py_ssize_t k,
                                   double* shares, int32_t* out)


#: Entries of scores that are taken together: they stay in the first-level cache.
cdef enum:
    TILE = 1024

#: Rows that a thread takes at a time: some 30 us of work, which is how long one waits for another at the end.
cdef enum:
    PIECE = 8192


cdef inline void take(
    const uint8_t[::1] before, const double[:, ::1] change, const uint8_t[::1] codes, const double[::1] targets,
    int kind, Py_ssize_t row, Py_ssize_t last, double[:, ::1] scores, Py_ssize_t size, double* shares, int32_t* off,
    int64_t[:, ::1] sums,
) noexcept nogil:
    """Take one piece of rows; the rest as `sum_residuals` has it."""
    cdef Py_ssize_t k = scores.shape[1], i, j, m
    cdef double* score
    while row < last:
        m = size if last - row > size else last - row
        score = &scores[row, 0]
        if k == 1:
            for i in range(m):
                score[i] += change[before[row + i], 0]
            if kind == 0:
                dpestim_number_residuals(score, &targets[row], m, off)
            else:
                dpestim_class_residuals(score, &targets[row], m, off)
            for i in range(m):
                sums[codes[row + i], 0] += off[i]
        else:
            for i in range(m):
                for j in range(k):
                    score[i * k + j] += change[before[row + i], j]
            dpestim_softmax_residuals(score, &targets[row], m, k, shares, off)
            for i in range(m):
                for j in range(k):
                    sums[codes[row + i], j] += off[i * k + j]
        row += m


def sum_residuals(
    const uint8_t[::1] before,  # IN     the bin of each row, of the term that scores move by
    const double[:, ::1] change,  # IN   what its bins add, of shape (256, n_outputs)
    const uint8_t[::1] codes,   # IN     the bin of each row, of the term that is asked
    const double[::1] targets,  # IN     numbers in [-1, 1], or codes of classes; below 0 one does not count
    int kind,                   # IN     0 for numbers, 1 for two classes, else how many there are
    Py_ssize_t own,             # IN     the run of rows that is taken first, of as many as `taken` has entries
    int32_t[::1] taken,         # INOUT  how many pieces of each run were taken, 0 at first; threads share it
    double[:, ::1] scores,      # INOUT  of all rows, of shape (n_rows, n_outputs)
    int64_t[:, ::1] sums,       # INOUT  of shape (256, n_outputs); multiples of 2^-16 are added
):
    """Move scores of rows, and add their residuals to the sums of their bins, piece after piece until none is left.

    Threads that are called with runs and sums of their own share one pass. Each takes its own run first, whose rows
    follow each other in memory, and then pieces of others' as long as there are any: who is slower is not waited for.
    """
    cdef Py_ssize_t n = scores.shape[0], k = scores.shape[1], runs = taken.shape[0], row, end, i, j, size, run
    cdef double* shares
    cdef int32_t* off
    if kind < 0 or k != (kind if kind > 1 else 1) or not 0 <= own < runs:
        raise ValueError("scores must have an entry for each output, and the run must be one of those that are taken")
    for i in range(runs):
        if taken[i] < 0:
            raise ValueError("pieces must be counted from 0")
    if before.shape[0] != n or codes.shape[0] != n or targets.shape[0] != n:
        raise ValueError("codes and targets must have an entry for each row of scores")
    if change.shape[0] != 256 or change.shape[1] != k or sums.shape[0] != 256 or sums.shape[1] != k:
        raise ValueError("change and sums must be of shape (256, n_outputs)")
    size = TILE // k if k < TILE else 1
    shares = <double*>malloc(k * sizeof(double))
    off = <int32_t*>malloc(size * k * sizeof(int32_t))
    if shares == NULL or off == NULL:
        free(shares)
        free(off)
        raise MemoryError()
    with nogil:
        for j in range(runs):
            run = (own + j) % runs
            end = n * (run + 1) // runs
            while True:
                row = n * run // runs + <Py_ssize_t>DPESTIM_NEXT(&taken[run]) * PIECE
                if row >= end:
                    break
                take(before, change, codes, targets, kind, row, row + PIECE if end - row > PIECE else end, scores,
                     size, shares, off, sums)
        free(shares)
        free(off)


def merge(
    const uint8_t[::1] codes,   # IN     the bin of each row
    const uint8_t[::1] places,  # IN     (256) which bin each of them goes to
    Py_ssize_t first,           # IN     the rows that are taken
    Py_ssize_t last,            # IN
    uint8_t[::1] out,           # OUT    the new bins of these rows
    int64_t[::1] held,          # INOUT  (256) rows of each new bin
):
    """Take bins together, and add to the numbers of their rows."""
    cdef Py_ssize_t i
    if out.shape[0] != codes.shape[0] or not 0 <= first <= last <= codes.shape[0]:
        raise ValueError("codes and out differ in length, or rows are none of theirs")
    if places.shape[0] != 256 or held.shape[0] != 256:
        raise ValueError("places and held must have an entry for each of 256 codes")
    with nogil:
        for i in range(first, last):
            out[i] = places[codes[i]]
            held[out[i]] += 1
