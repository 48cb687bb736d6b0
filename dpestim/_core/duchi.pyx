"""Duchi's mechanism: a bit for a number, and for a row of numbers a row of signs, most of which likely agree."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "duchi.h" nogil:
    int DPESTIM_DUCHI_PIECE
    void dpestim_duchi_encode(const double *x, size_t n, size_t d, const double *low, const double *high,
                              const double *scale, int64_t *out) noexcept
    size_t dpestim_duchi_signs_codes(const int64_t *x, const double *low, const double *high, const double *scale,
                                     const uint16_t *lanes, size_t n, size_t d, size_t stride, uint64_t *out,
                                     uint64_t *left) noexcept
    size_t dpestim_duchi_signs_values(const double *x, const double *low, const double *high, const double *scale,
                                      const uint16_t *lanes, size_t n, size_t d, size_t stride, uint64_t *out,
                                      uint64_t *left, int *finite) noexcept
    size_t dpestim_duchi_answer(const uint64_t *words, const uint32_t *rows, size_t n, size_t d, uint64_t keep,
                                uint64_t ties, bint last, uint64_t *signs, uint32_t *again) noexcept


def answer_one(
    const int64_t[::1] fixed,    # IN   from 0 to 2**32
    const uint64_t[::1] words,   # IN   a random word each
    uint64_t other,              # IN   of 2**64 words so many answer 1 where fixed is 0
    uint64_t step,               # IN   ... and so many more for each unit of fixed
    uint8_t[::1] out,            # OUT  0 or 1
):
    """Answer every number."""
    cdef Py_ssize_t n = fixed.shape[0], i
    if words.shape[0] != n or out.shape[0] != n:
        raise ValueError("fixed, words and out differ in length")
    with nogil:
        for i in range(n):
            out[i] = words[i] < other + <uint64_t>fixed[i] * step


def encode(
    const double[:, ::1] x,    # IN   (n, d) values in the user's units; clipped, and NaN counts as the lower bound
    const double[::1] low,     # IN   (d)
    const double[::1] high,    # IN   (d) above low
    const double[::1] scale,   # IN   (d) 2**32 / (high - low)
    int64_t[:, ::1] out,       # OUT  (n, d) from 0 to 2**32
):
    """Write every value as a fraction of its bounds."""
    cdef Py_ssize_t n = x.shape[0], d = x.shape[1]
    if (out.shape[0] != n or out.shape[1] != d or low.shape[0] != d or high.shape[0] != d or scale.shape[0] != d
            or d == 0):
        raise ValueError("x, low, high, scale and out differ in length")
    if n == 0:
        return
    with nogil:
        dpestim_duchi_encode(&x[0, 0], n, d, &low[0], &high[0], &scale[0], &out[0, 0])


def signs(
    const int64_t[:, ::1] fixed,    # IN   (n, d) from 0 to 2**32
    const uint16_t[:, ::1] lanes,   # IN   (n, at least d) a random number each
    uint64_t[:, ::1] out,           # OUT  (n, ceil(d / 64)) bits, 1 with probability fixed / 2**32; 0 where open
    uint64_t[::1] left,             # OUT  capacity n d: what is open, place << 16 | what 16 more bits must be below
):
    """Round every number to a sign, without bias, as far as 16 bits decide; return how many are open."""
    cdef Py_ssize_t n = fixed.shape[0], d = fixed.shape[1]
    cdef size_t n_left
    if (lanes.shape[0] != n or lanes.shape[1] < d or out.shape[0] != n or out.shape[1] != (d + 63) // 64 or d == 0
            or left.shape[0] < n * d or d > DPESTIM_DUCHI_PIECE):
        raise ValueError("fixed, lanes, out and left differ in length")
    if n == 0:
        return 0
    with nogil:
        n_left = dpestim_duchi_signs_codes(&fixed[0, 0], NULL, NULL, NULL, &lanes[0, 0], n, d, lanes.shape[1],
                                           &out[0, 0], &left[0])
    return n_left


def signs_of(
    const double[:, ::1] x,         # IN   as in `encode`
    const double[::1] low,          # IN
    const double[::1] high,         # IN
    const double[::1] scale,        # IN
    const uint16_t[:, ::1] lanes,   # IN   as in `signs`
    uint64_t[:, ::1] out,           # OUT
    uint64_t[::1] left,             # OUT
    bint refuse=False,              # IN
):
    """Round every value to a sign as `encode` and `signs` do one after the other, without fixed points in memory.

    Return how many are open; with `refuse`, -1 where a value is not finite: the reports are of no use then.
    """
    cdef Py_ssize_t n = x.shape[0], d = x.shape[1]
    cdef size_t n_left
    cdef int finite = 1
    if (lanes.shape[0] != n or lanes.shape[1] < d or out.shape[0] != n or out.shape[1] != (d + 63) // 64 or d == 0
            or left.shape[0] < n * d or d > DPESTIM_DUCHI_PIECE or low.shape[0] != d or high.shape[0] != d
            or scale.shape[0] != d):
        raise ValueError("x, low, high, scale, lanes, out and left differ in length")
    if n == 0:
        return 0
    with nogil:
        n_left = dpestim_duchi_signs_values(&x[0, 0], &low[0], &high[0], &scale[0], &lanes[0, 0], n, d,
                                            lanes.shape[1], &out[0, 0], &left[0],
                                            &finite if refuse else NULL)
    return n_left if finite else -1


def answer(
    const uint64_t[:, ::1] words,   # IN   (m, 1 + ceil(d / 64)): one that decides, then the bits of a draw
    const uint32_t[::1] rows,       # IN   (m) which rows they are for; empty: all, in their order
    uint64_t d,                     # IN
    uint64_t keep,                  # IN   of 2**64 words so many take the side of the signs
    uint64_t ties,                  # IN   ... and so many keep a draw that is on no side
    bint last,                      # IN   whether such a draw is kept whatever the word is
    uint64_t[:, ::1] out,           # IN   (n, ceil(d / 64)) signs;  OUT  the answers
    uint32_t[::1] again,            # OUT  capacity m: rows that need another round, whose signs are left
):
    """Do a round for some rows; return how many of them need another one."""
    cdef Py_ssize_t m = words.shape[0], i
    cdef size_t left
    if (d == 0 or words.shape[1] != 1 + <Py_ssize_t>((d + 63) // 64) or out.shape[1] != words.shape[1] - 1
            or (rows.shape[0] != m if rows.shape[0] else out.shape[0] != m) or again.shape[0] < m):
        raise ValueError("words, rows, out and again differ in length")
    for i in range(rows.shape[0]):
        if rows[i] >= out.shape[0]:
            raise ValueError("rows lie beyond out")
    if m == 0:
        return 0
    with nogil:
        left = dpestim_duchi_answer(&words[0, 0], &rows[0] if rows.shape[0] else NULL, m, d, keep, ties, last,
                                    &out[0, 0], &again[0])
    return left
