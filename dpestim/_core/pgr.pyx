"""Projective geometry response: privatize, the support matrix, and sums over hyperplanes for all values at once."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "pgr.h" nogil:
    enum:
        DPESTIM_MOST_COORDINATES
    uint32_t dpestim_pgr_point(uint32_t v, bint inside, uint32_t r, uint32_t q, int t, uint32_t first) noexcept
    void dpestim_pgr_support(uint32_t e, uint32_t q, int t, size_t block, size_t stride, size_t d,
                             uint8_t *out) noexcept
    void dpestim_pgr_decode_int64(const int64_t *weights, size_t n, uint32_t q, int t, int64_t *scratch, int64_t *out,
                                  size_t d) noexcept
    void dpestim_pgr_decode_double(const double *weights, size_t n, uint32_t q, int t, double *scratch, double *out,
                                   size_t d) noexcept

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t

ctypedef fused symbol_t:
    uint8_t
    uint16_t
    uint32_t

ctypedef fused number_t:
    int64_t
    double


cdef uint64_t _points(uint32_t q, int t) except 0:
    """Return (q^t - 1) / (q - 1), below 2^32."""
    cdef uint64_t n = 1
    cdef int i
    if q < 2 or not 2 <= t <= DPESTIM_MOST_COORDINATES:
        raise ValueError("q must be a prime and t from 2 to 32")
    for i in range(t - 1):
        n = 1 + q * n
        if n >> 32:
            raise ValueError("a plane must have fewer than 2**32 points")
    return n


def privatize(
    const code_t[::1] codes,      # IN   true values: block + n_blocks * place
    const uint64_t[::1] words,    # IN   one word a record
    uint32_t q,                   # IN   a prime
    int t,                        # IN   coordinates
    uint32_t n_blocks,            # IN
    uint64_t inside,              # IN   weight of each point of the own block that is orthogonal to the value
    uint64_t outside,             # IN   weight of each other point; all of them together have 2^64
    symbol_t[::1] out,            # OUT  symbols: block * points + point
):
    """Answer every record."""
    cdef Py_ssize_t n = codes.shape[0], i
    cdef uint64_t points = _points(q, t), s = (points - 1) // q, own = s * inside, r, block, other
    cdef uint32_t first = <uint32_t>(points - s), place
    if words.shape[0] != n or out.shape[0] != n:
        raise ValueError("codes, words and out differ in length")
    if n_blocks == 0 or inside == 0 or outside == 0 or own + (n_blocks * points - s) * outside != 0:  # (modulo 2^64)
        raise ValueError("the weights of all points must add up to 2**64")
    with nogil:
        for i in range(n):
            block = codes[i] % n_blocks
            place = codes[i] // n_blocks
            if words[i] < own:
                r = dpestim_pgr_point(place, True, <uint32_t>(words[i] // inside), q, t, first)
            else:
                r = (words[i] - own) // outside
                if r < points - s:
                    r = dpestim_pgr_point(place, False, <uint32_t>r, q, t, first)
                else:
                    r -= points - s
                    other = r // points
                    r -= other * points
                    block = other + (other >= block)
            out[i] = <symbol_t>(block * points + r)


def support(
    const symbol_t[::1] reports,  # IN   symbols
    uint32_t q,                   # IN
    int t,                        # IN
    uint32_t n_blocks,            # IN
    uint8_t[:, ::1] out,          # OUT  (n, d): 1 where the point is orthogonal to the value, in its own block
):
    """Write the 0/1 support matrix."""
    cdef Py_ssize_t n = reports.shape[0], d = out.shape[1], i, x
    cdef uint64_t points = _points(q, t), block
    if out.shape[0] != n or n_blocks == 0:
        raise ValueError("reports and out differ in length")
    if d > <int64_t>(points * n_blocks):
        raise ValueError("there are fewer points than values")
    with nogil:
        for i in range(n):
            block = reports[i] // points
            for x in range(d):
                out[i, x] = 0
            if block < n_blocks:
                dpestim_pgr_support(<uint32_t>(reports[i] - block * points), q, t, block, n_blocks, d, &out[i, 0])


def decode(
    const number_t[:, ::1] counts,  # IN   (blocks, points) a weight for each point
    uint32_t q,                     # IN
    int t,                          # IN
    number_t[::1] scratch,          # OUT  2 * points places of working memory
    number_t[:, ::1] out,           # OUT  (blocks, values): the sum over the points orthogonal to each of the values
):
    """Add up, for the first values of every block, the weights of the points that are orthogonal to them."""
    cdef Py_ssize_t i, n = counts.shape[1], d = out.shape[1]
    if <uint64_t>n != _points(q, t) or scratch.shape[0] < 2 * n or out.shape[0] != counts.shape[0] or d > n:
        raise ValueError("counts, scratch and out differ in length")
    if d == 0:
        return
    with nogil:
        for i in range(counts.shape[0]):
            if number_t is int64_t:
                dpestim_pgr_decode_int64(&counts[i, 0], n, q, t, &scratch[0], &out[i, 0], d)
            else:
                dpestim_pgr_decode_double(&counts[i, 0], n, q, t, &scratch[0], &out[i, 0], d)
