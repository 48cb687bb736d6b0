"""Unary encoding on packed bits: privatize (eight bits from 16 random ones, ties settled exactly) and column sums."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "unary.h" nogil:
    size_t dpestim_unary_draw(const uint16_t *random, size_t stride, size_t n, size_t width, const uint8_t *table,
                              const uint8_t *columns, uint8_t *out, uint32_t *ties) noexcept
    size_t dpestim_rank(const uint64_t *edges, uint64_t u) noexcept
    void dpestim_unary_count(const uint8_t *reports, size_t n, size_t width, int64_t *counts) noexcept

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t


def draw(
    const uint64_t[:, ::1] words,   # IN   (n, 1 + ceil(width / 4)): a word for `finish`, then 16 random bits a pattern
    const uint8_t[::1] table,       # IN   (65536) the pattern that 16 random bits decide on, 255 where they do not
    const uint8_t[:, ::1] columns,  # IN   (3, 256) the same: two patterns a column, first one's end
    uint8_t[:, ::1] out,            # OUT  (n, width) patterns of eight bits
    uint32_t[::1] ties,             # OUT  capacity n * width + 1: record * width + number of the pattern, where open
):
    """Draw every bit as if it were false, but for the ties, whose number is returned; `settle` and `finish` follow."""
    cdef Py_ssize_t n = words.shape[0], width = out.shape[1]
    cdef size_t n_ties
    if (words.shape[1] != 1 + (width + 3) // 4 or out.shape[0] != n or table.shape[0] != 65536 or width < 1
            or columns.shape[0] != 3 or columns.shape[1] != 256 or ties.shape[0] <= n * width
            or n * width >= <int64_t>1 << 32):
        raise ValueError("words, table, columns, out and ties differ in length")
    if n == 0:
        return 0
    with nogil:
        n_ties = dpestim_unary_draw(<const uint16_t *>&words[0, 1], 4 * words.shape[1], n, width, &table[0],
                                    &columns[0, 0], &out[0, 0], &ties[0])
    return n_ties


def settle(
    const uint64_t[:, ::1] words,   # IN   the same as for `draw`
    uint32_t[::1] ties,             # IN   from `draw`;  OUT  in front: those that are still open
    const uint64_t[:] rare,         # IN   one word a tie: its upper 48 bits are the next digits after the 16
    const uint64_t[::1] edges,      # IN   (255) ascending: the first 64 digits of the boundaries between patterns
    uint8_t[:, ::1] out,            # OUT  their patterns: how many of the boundaries are not above the number
):
    """Settle the ties by 64 digits; return how many equal a boundary's, so that only more digits can tell."""
    cdef Py_ssize_t width = out.shape[1], i, n_open = 0
    cdef uint32_t record, group
    cdef uint64_t u
    cdef size_t rank
    if (rare.shape[0] != ties.shape[0] or words.shape[0] != out.shape[0] or words.shape[1] != 1 + (width + 3) // 4
            or edges.shape[0] != 255):
        raise ValueError("words, ties, rare, edges and out differ in length")
    with nogil:
        for i in range(ties.shape[0]):
            record = ties[i] // <uint32_t>width
            group = ties[i] - record * <uint32_t>width
            u = <uint64_t>(<const uint16_t *>&words[record, 1])[group] << 48 | rare[i] >> 16
            rank = dpestim_rank(&edges[0], u)
            if rank < 255 and edges[rank] == u:
                ties[n_open] = ties[i]
                n_open += 1
            else:
                out[record, group] = <uint8_t>rank
    return n_open


def finish(
    const code_t[::1] codes,        # IN   true values, below n_bits
    const uint64_t[:, ::1] words,   # IN   the same as for `draw`; the first word of a record decides its true bit
    Py_ssize_t n_bits,              # IN   8 * width or up to 7 less: surplus bits are dropped
    uint64_t true_threshold,        # IN   Pr[1] of the true bit is true_threshold / 2^64
    uint8_t[:, ::1] out,            # OUT  complete reports
):
    """Drop the surplus bits of the last pattern and put the true bits."""
    cdef Py_ssize_t n = codes.shape[0], i, last = out.shape[1] - 1
    cdef uint8_t place, one, inside = <uint8_t>(255 >> (8 * out.shape[1] - n_bits))
    if words.shape[0] != n or out.shape[0] != n or out.shape[1] != (n_bits + 7) // 8 or n_bits < 1:
        raise ValueError("codes, words and out differ in length")
    with nogil:
        for i in range(n):
            if inside != 255:
                out[i, last] &= inside
            place = <uint8_t>(1 << (codes[i] & 7))
            one = <uint8_t>((words[i, 0] < true_threshold) << (codes[i] & 7))
            out[i, codes[i] >> 3] = (out[i, codes[i] >> 3] & <uint8_t>~place) | one


def count(
    const uint8_t[:, ::1] reports,  # IN   (n, width) packed bits
    int64_t[::1] counts,            # OUT  (8 * width), added to
):
    """Add the column sums of packed bits."""
    if counts.shape[0] != 8 * reports.shape[1]:
        raise ValueError("counts must have 8 places a byte")
    if reports.shape[0] == 0 or reports.shape[1] == 0:
        return
    with nogil:
        dpestim_unary_count(&reports[0, 0], reports.shape[0], reports.shape[1], &counts[0])
