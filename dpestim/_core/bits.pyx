"""Numbers as bits of which some are ones, each flipped by a word of its own."""

from libc.stdint cimport int64_t, uint8_t, uint64_t


def privatize(
    const int64_t[::1] codes,      # IN   fixed points, 0 to 2^48
    const uint64_t[::1] rounding,  # IN   one word a record
    const uint64_t[:, ::1] words,  # IN   (n, r) one word a bit
    uint64_t flip,                 # IN   a bit is flipped with probability flip / 2^64
    uint8_t[:, ::1] out,           # OUT  (n, r) bits: r x of them ones, rounded without bias, before they are flipped
):
    """Write the bits of every record."""
    cdef Py_ssize_t n = codes.shape[0], r = out.shape[1], i, j
    cdef uint64_t steps, ones
    if rounding.shape[0] != n or words.shape[0] != n or out.shape[0] != n or words.shape[1] != r or r >= 1 << 15:
        raise ValueError("codes, rounding, words and out differ in length")
    with nogil:
        for i in range(n):
            steps = <uint64_t>codes[i] * <uint64_t>r
            ones = (steps >> 48) + ((rounding[i] >> 16) < (steps & 0xFFFFFFFFFFFFULL))
            for j in range(r):
                out[i, j] = (words[i, j] < flip) ^ (<uint64_t>j < ones)
