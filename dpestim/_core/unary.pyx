"""Unary encoding on packed bits: privatize (one random byte a bit, ties settled exactly) and column sums."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "unary.h" nogil:
    size_t dpestim_unary_record(const uint8_t *bytes, size_t n_bits, uint8_t digit, uint8_t *row, uint32_t base,
                                uint32_t *ties) noexcept
    void dpestim_unary_count(const uint8_t *reports, size_t n, size_t width, int64_t *counts) noexcept

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t


def privatize(
    const code_t[::1] codes,        # IN   true values, below n_bits
    const uint64_t[:, ::1] words,   # IN   (n, 1 + ceil(n_bits / 8)): the true bit's word, then one byte a bit
    Py_ssize_t n_bits,              # IN
    uint64_t true_threshold,        # IN   Pr[1] of the true bit is true_threshold / 2^64
    uint64_t false_threshold,       # IN   Pr[1] of every other bit, of which this kernel compares the first byte
    uint8_t[:, ::1] out,            # OUT  (n, ceil(n_bits / 8)) packed bits, little-endian
    uint32_t[::1] ties,             # OUT  capacity n * n_bits: record * n_bits + bit, where the byte does not decide
):
    """Answer every record but for the ties, and return their number; `settle` decides those."""
    cdef Py_ssize_t n = codes.shape[0], i
    cdef size_t n_ties = 0, found, k
    cdef uint8_t digit = <uint8_t>(false_threshold >> 56), bit
    cdef uint32_t base, true_position
    if (words.shape[0] != n or words.shape[1] != 1 + (n_bits + 7) // 8 or out.shape[0] != n
            or out.shape[1] != (n_bits + 7) // 8 or ties.shape[0] < n * n_bits or n * n_bits >= 1 << 32):
        raise ValueError("codes, words, out and ties differ in length")
    if n == 0:
        return 0
    with nogil:
        for i in range(n):
            base = <uint32_t>(i * n_bits)
            found = dpestim_unary_record(<const uint8_t *>&words[i, 1], n_bits, digit, &out[i, 0], base,
                                         &ties[0] + n_ties)
            # the true bit has a word of its own: its byte of the row, and a tie there, are dropped
            true_position = base + <uint32_t>codes[i]
            for k in range(found):
                if ties[n_ties + k] == true_position:
                    found -= 1
                    ties[n_ties + k] = ties[n_ties + found]
                    break
            n_ties += found
            bit = <uint8_t>(1 << (codes[i] & 7))
            if words[i, 0] < true_threshold:
                out[i, codes[i] >> 3] |= bit
            else:
                out[i, codes[i] >> 3] &= <uint8_t>~bit
    return n_ties


def settle(
    const uint32_t[::1] ties,       # IN   record * n_bits + bit
    const uint64_t[::1] words,      # IN   one word a tie: the digits below the first byte
    Py_ssize_t n_bits,              # IN
    uint64_t false_threshold,       # IN
    uint8_t[:, ::1] out,            # OUT  the tied bits are set where the word is below the threshold
):
    """Settle the ties: a bit is 1 where (first byte, next 56 bits) is below the threshold, byte being equal."""
    cdef Py_ssize_t i
    cdef uint64_t rest = false_threshold & <uint64_t>0x00FFFFFFFFFFFFFFULL
    cdef uint32_t record, bit
    if words.shape[0] != ties.shape[0]:
        raise ValueError("ties and words differ in length")
    with nogil:
        for i in range(ties.shape[0]):
            if (words[i] >> 8) < rest:
                record = ties[i] // <uint32_t>n_bits
                bit = ties[i] - record * <uint32_t>n_bits
                out[record, bit >> 3] |= <uint8_t>(1 << (bit & 7))


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
