"""Histogram encoding: a code of noise for every cell, from a word each."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "histogram.h" nogil:
    enum:
        DPESTIM_LASTS
    void dpestim_histogram_lasts(const uint64_t *edges, uint32_t most, uint64_t *lasts) noexcept
    void dpestim_histogram_codes(const uint64_t *words, size_t n, const uint64_t *lasts, const uint8_t *guide,
                                 uint8_t *out) noexcept

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t


def privatize(
    const code_t[::1] codes,        # IN   true values, below the number of cells
    const uint64_t[:, ::1] words,   # IN   (n, cells) a word for each cell
    const uint64_t[::1] edges,      # IN   ascending: a cell's code is the number of edges that its word reaches
    const uint8_t[::1] guide,       # IN   (1024) the code of the least word with these upper 10 bits
    uint8_t[:, ::1] out,            # OUT  (n, cells); the code of the true value is taken from the number of edges
):
    """Answer every record."""
    cdef Py_ssize_t n = codes.shape[0], cells = out.shape[1], i
    cdef uint32_t most = <uint32_t>edges.shape[0]
    cdef uint64_t lasts[DPESTIM_LASTS]
    if (words.shape[0] != n or out.shape[0] != n or words.shape[1] != cells or guide.shape[0] != 1024
            or not 1 <= edges.shape[0] <= 255):
        raise ValueError("codes, words, edges, guide and out differ in length")
    if n == 0 or cells == 0:
        return
    with nogil:
        dpestim_histogram_lasts(&edges[0], most, lasts)
        dpestim_histogram_codes(&words[0, 0], <size_t>(n * cells), lasts, &guide[0], &out[0, 0])
        for i in range(n):
            out[i, codes[i]] = <uint8_t>(most - out[i, codes[i]])


def privatize_one(
    Py_ssize_t code,                # IN   the true value, below the number of cells
    const uint64_t[::1] words,      # IN   (cells)
    const uint64_t[::1] search,     # IN   (128 + the number of edges) the guide's bytes, and the edges
    uint8_t[:, ::1] out,            # OUT  (1, cells)
):
    """Do the same for one record; each array more takes as long as a hundred cells."""
    cdef Py_ssize_t cells = words.shape[0], most = search.shape[0] - 128
    cdef uint64_t lasts[DPESTIM_LASTS]
    if out.shape[0] != 1 or out.shape[1] != cells or not 0 <= code < cells or not 1 <= most <= 255:
        raise ValueError("words, search and out differ in length")
    dpestim_histogram_lasts(&search[128], <uint32_t>most, lasts)
    dpestim_histogram_codes(&words[0], <size_t>cells, lasts, <const uint8_t *>&search[0], &out[0, 0])
    out[0, code] = <uint8_t>(most - out[0, code])
