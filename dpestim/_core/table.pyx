"""Any law of numbers that is a table of integer weights: unbiased rounding to the grid, then a search in one row."""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

ctypedef fused code_t:
    uint16_t
    uint32_t


cdef inline Py_ssize_t find(const uint64_t *starts, Py_ssize_t last, uint64_t u) noexcept nogil:
    """Return the largest j <= last with starts[j] <= u; starts[0] is 0 and they do not fall."""
    cdef Py_ssize_t first = 0, size = last + 1, half
    while size > 1:
        half = size >> 1
        first += half * (starts[first + half] <= u)
        size -= half
    return first


def answer(
    const int64_t[::1] fixed,       # IN   fixed-point inputs, 32 fraction bits, at most the last row
    const uint32_t[::1] lanes,      # IN   a random number each, for the rounding
    const uint64_t[::1] words,      # IN   a random word each, for the answer
    const uint64_t[:, ::1] starts,  # IN   (inputs, codes): the least word that gives the code, row by row
    const int64_t[::1] last,        # IN   the last code of each row that has any weight
    code_t[::1] out,                # OUT  codes
):
    """Answer every record."""
    cdef Py_ssize_t n = fixed.shape[0], i, row
    if lanes.shape[0] != n or words.shape[0] != n or out.shape[0] != n or last.shape[0] != starts.shape[0]:
        raise ValueError("fixed, lanes, words and out differ in length")
    with nogil:
        for i in range(n):
            row = (fixed[i] >> 32) + (lanes[i] < <uint32_t>fixed[i])
            out[i] = <code_t>find(&starts[row, 0], last[row], words[i])
