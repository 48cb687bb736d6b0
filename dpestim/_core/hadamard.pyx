"""Hadamard response: privatize, support matrix, and the fast Walsh-Hadamard transform in place."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dpestim._core.grr cimport dpestim_join, dpestim_reciprocal, dpestim_u128

cdef extern from "hadamard.h" nogil:
    uint64_t dpestim_odd_ones(uint64_t x) noexcept
    uint64_t dpestim_hadamard_symbol(uint64_t x, uint64_t slot, uint64_t r, int log_blocks, int log_s) noexcept
    void dpestim_fwht_32(int32_t *a, size_t n) noexcept
    void dpestim_fwht_64(int64_t *a, size_t n) noexcept
    uint64_t dpestim_slot64(uint64_t u, uint64_t keep, uint64_t w, uint64_t reciprocal) noexcept
    uint64_t dpestim_slot128(dpestim_u128 u, dpestim_u128 keep, dpestim_u128 w) noexcept
    dpestim_u128 dpestim_down(dpestim_u128 u, int by) noexcept

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t

ctypedef fused symbol_t:
    uint8_t
    uint16_t
    uint32_t

ctypedef fused sum_t:
    int32_t
    int64_t


def privatize(
    const code_t[::1] codes,      # IN   true values
    const uint64_t[::1] words,    # IN   one or two words a record, high word first
    keep,                         # IN   weight of the own half, out of 2^(64 n_words - log_s)
    other,                        # IN   weight of each other half
    int log_blocks,               # IN   there are 2^log_blocks blocks
    int log_s,                    # IN   of 2^(log_s + 1) symbols
    symbol_t[::1] out,            # OUT  symbols
):
    """Answer every record: the low log_s bits of the word pick within a half, the rest picks the half."""
    cdef Py_ssize_t n = codes.shape[0], i
    cdef uint64_t r, slot, mask, keep1, w1, reciprocal = 0
    cdef dpestim_u128 keep2, w2
    cdef bint one = words.shape[0] == n
    if out.shape[0] != n or (not one and words.shape[0] != 2 * n) or not 0 <= log_s < 60 or not 0 <= log_blocks < 60:
        raise ValueError("codes, words and out differ in length")
    mask = (<uint64_t>1 << log_s) - 1
    keep1, w1 = keep & 0xFFFFFFFFFFFFFFFF, other & 0xFFFFFFFFFFFFFFFF
    keep2, w2 = dpestim_join(keep >> 64, keep1), dpestim_join(other >> 64, w1)
    if one:
        reciprocal = dpestim_reciprocal(w1)
    with nogil:
        for i in range(n):
            if one:
                r = words[i] & mask
                slot = dpestim_slot64(words[i] >> log_s, keep1, w1, reciprocal)
            else:
                r = words[2 * i + 1] & mask
                slot = dpestim_slot128(dpestim_down(dpestim_join(words[2 * i], words[2 * i + 1]), log_s), keep2, w2)
            out[i] = <symbol_t>dpestim_hadamard_symbol(codes[i], slot, r, log_blocks, log_s)


def support(
    const symbol_t[::1] reports,  # IN   symbols
    int log_blocks,               # IN
    int log_s,                    # IN
    uint8_t[:, ::1] out,          # OUT  (n, d): 1 where the symbol is in the half of the value
):
    """Write the 0/1 support matrix."""
    cdef Py_ssize_t n = reports.shape[0], d = out.shape[1], i, x
    cdef uint64_t symbol, block, t, row, mask = (<uint64_t>2 << log_s) - 1
    cdef Py_ssize_t blocks = <Py_ssize_t>1 << log_blocks
    if out.shape[0] != n:
        raise ValueError("reports and out differ in length")
    with nogil:
        for i in range(n):
            symbol = reports[i]
            block = symbol >> (log_s + 1)
            t = symbol & mask
            for x in range(d):
                out[i, x] = 0
            x, row = <Py_ssize_t>block, 1  # value x stands in row x // blocks + 1 of block x mod blocks
            while x < d:
                out[i, x] = <uint8_t>(1 ^ dpestim_odd_ones(row & t))
                x += blocks
                row += 1


def fwht(
    sum_t[:, ::1] a,              # IN and OUT  (blocks, size), size a power of two
):
    """Transform every row in place: a[i] becomes H a[i], H the Sylvester matrix of +1 and -1."""
    cdef Py_ssize_t i, n = a.shape[1]
    if n == 0 or n & (n - 1):
        raise ValueError("the rows must have a power of two as their length")
    if a.shape[0] == 0:
        return
    with nogil:
        for i in range(a.shape[0]):
            if sum_t is int32_t:
                dpestim_fwht_32(&a[i, 0], n)
            else:
                dpestim_fwht_64(&a[i, 0], n)
