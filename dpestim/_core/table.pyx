"""Any law of numbers that is a table of integer weights: unbiased rounding to the grid, then one of a row's cells."""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

ctypedef fused code_t:
    uint16_t
    uint32_t


def answer(
    const int64_t[::1] fixed,       # IN   fixed-point inputs, 32 fraction bits, at most the last row
    const uint32_t[::1] lanes,      # IN   a random number each, for the rounding
    const uint64_t[::1] words,      # IN   a random word each, for the answer
    const uint64_t[:, ::1] cells,   # IN   (inputs, 2**bits): the words of a cell that answer its own number, shifted
                                    #      left by `bits`, and below them what the others answer
    int bits,                       # IN   from 1 to 32
    code_t[::1] out,                # OUT  codes
):
    """Answer every record: the upper bits of its word are a cell, the others a place in it (Walker 1977)."""
    cdef Py_ssize_t n = fixed.shape[0], i
    cdef uint64_t row, own, cell, other
    if lanes.shape[0] != n or words.shape[0] != n or out.shape[0] != n:
        raise ValueError("fixed, lanes, words and out differ in length")
    if not 1 <= bits <= 32 or cells.shape[1] != (<Py_ssize_t>1) << bits:
        raise ValueError("cells must have 2**bits columns")
    cdef uint64_t place = (<uint64_t>0xFFFFFFFFFFFFFFFF) >> bits, code = ((<uint64_t>1) << bits) - 1
    with nogil:
        for i in range(n):
            row = (fixed[i] >> 32) + (lanes[i] < <uint32_t>fixed[i])
            own = words[i] >> (64 - bits)
            cell = cells[row, own]
            other = -<uint64_t>((words[i] & place) >= cell >> bits)  # a mask: a branch would be unpredictable
            out[i] = <code_t>(own ^ ((own ^ cell) & other & code))
