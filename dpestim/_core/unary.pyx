"""Unary encoding on packed bits: privatize (one random byte a bit, ties settled exactly) and column sums."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "unary.h" nogil:
    size_t dpestim_unary_bits(const uint8_t *bytes, size_t stride, size_t n, size_t n_bits, uint8_t digit, uint8_t *out,
                              uint32_t *ties) noexcept
    void dpestim_unary_count(const uint8_t *reports, size_t n, size_t width, int64_t *counts) noexcept

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t


def bits(
    const uint64_t[:, ::1] words,   # IN   (n, 1 + ceil(n_bits / 8)): a word for `finish`, then one byte a bit
    Py_ssize_t n_bits,              # IN
    uint64_t threshold,             # IN   Pr[1] is threshold / 2^64, of which this kernel compares the first byte
    uint8_t[:, ::1] out,            # OUT  (n, ceil(n_bits / 8)) packed bits, little-endian
    uint32_t[::1] ties,             # OUT  capacity n * n_bits + 1: record * n_bits + bit, where the byte ties
):
    """Draw every bit as if it were false, but for the ties, whose number is returned; `finish` does the rest."""
    cdef Py_ssize_t n = words.shape[0]
    cdef size_t n_ties
    if (words.shape[1] != 1 + (n_bits + 7) // 8 or out.shape[0] != n or out.shape[1] != (n_bits + 7) // 8
            or ties.shape[0] <= n * n_bits or n * n_bits >= <int64_t>1 << 32):
        raise ValueError("words, out and ties differ in length")
    if n == 0:
        return 0
    with nogil:
        n_ties = dpestim_unary_bits(<const uint8_t *>&words[0, 1], 8 * words.shape[1], n, n_bits,
                                    <uint8_t>(threshold >> 56), &out[0, 0], &ties[0])
    return n_ties


def finish(
    const code_t[::1] codes,        # IN   true values, below n_bits
    const uint64_t[:, ::1] words,   # IN   the same as for `bits`; the first word of a record decides its true bit
    const uint32_t[::1] ties,       # IN   record * n_bits + bit, from `bits`
    const uint64_t[:] rare,         # IN   one word a tie, for the digits below the first byte
    Py_ssize_t n_bits,              # IN
    uint64_t true_threshold,        # IN   Pr[1] of the true bit is true_threshold / 2^64
    uint64_t threshold,             # IN   the same as for `bits`
    uint8_t[:, ::1] out,            # OUT  complete reports
):
    """Settle the ties, whose bit is 1 where the next 56 digits are below the threshold's; then put the true bits."""
    cdef Py_ssize_t n = codes.shape[0], i
    cdef uint64_t rest = threshold & <uint64_t>0x00FFFFFFFFFFFFFFULL
    cdef uint32_t record, bit
    cdef uint8_t place, one
    if rare.shape[0] != ties.shape[0] or words.shape[0] != n or out.shape[0] != n:
        raise ValueError("codes, words, ties and out differ in length")
    with nogil:
        for i in range(ties.shape[0]):
            record = ties[i] // <uint32_t>n_bits
            bit = ties[i] - record * <uint32_t>n_bits
            out[record, bit >> 3] |= <uint8_t>(((rare[i] >> 8) < rest) << (bit & 7))
        for i in range(n):
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
