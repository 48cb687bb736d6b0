"""Any law of numbers that is a table of integer weights: unbiased rounding to the grid, then one of a row's cells."""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

cdef extern from "table.h" nogil:
    int DPESTIM_TABLE_QUICK
    void dpestim_table_answer16(const int64_t *fixed, const uint32_t *lanes, const uint64_t *words, size_t n,
                                const uint64_t *cells, const uint32_t *quick, int bits, uint16_t *out) noexcept
    void dpestim_table_answer32(const int64_t *fixed, const uint32_t *lanes, const uint64_t *words, size_t n,
                                const uint64_t *cells, const uint32_t *quick, int bits, uint32_t *out) noexcept

#: Bits of the number of a cell, at most, where quick cells help.
QUICK = DPESTIM_TABLE_QUICK

ctypedef fused code_t:
    uint16_t
    uint32_t


def answer(
    const int64_t[::1] fixed,       # IN   fixed-point inputs, 32 fraction bits, at most the last row
    const uint32_t[::1] lanes,      # IN   a random number each, for the rounding
    const uint64_t[::1] words,      # IN   a random word each, for the answer
    const uint64_t[:, ::1] cells,   # IN   (inputs, 2**bits): the words of a cell that answer its own number, shifted
                                    #      left by `bits`, and below them what the others answer
    const uint32_t[:, ::1] quick,   # IN   the same with the words' upper halves alone: for speed only; or empty
    int bits,                       # IN   from 1 to 32, and with quick cells to 16
    code_t[::1] out,                # OUT  codes
):
    """Answer every record: the upper bits of its word are a cell, the others a place in it (Walker 1977)."""
    cdef Py_ssize_t n = fixed.shape[0]
    cdef const uint32_t *halves = NULL
    if lanes.shape[0] != n or words.shape[0] != n or out.shape[0] != n:
        raise ValueError("fixed, lanes, words and out differ in length")
    if not 1 <= bits <= 32 or cells.shape[1] != (<Py_ssize_t>1) << bits:
        raise ValueError("cells must have 2**bits columns")
    if quick.shape[0]:
        if (bits > DPESTIM_TABLE_QUICK or cells.shape[0] >> (32 - bits) or quick.shape[0] != cells.shape[0]
                or quick.shape[1] != cells.shape[1]):
            raise ValueError("quick must have the shape of cells, 2**16 columns at most, or no rows")
        halves = &quick[0, 0]
    if n == 0 or cells.shape[0] == 0:
        return
    with nogil:
        if code_t is uint16_t:
            dpestim_table_answer16(&fixed[0], &lanes[0], &words[0], n, &cells[0, 0], halves, bits, &out[0])
        else:
            dpestim_table_answer32(&fixed[0], &lanes[0], &words[0], n, &cells[0, 0], halves, bits, &out[0])
