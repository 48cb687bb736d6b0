"""Subset selection: draw k distinct values, with or without the true one, as packed bits."""

from libc.stdint cimport uint8_t, uint64_t

cdef extern from "subset.h" nogil:
    int DPESTIM_LANES
    void dpestim_subset_rows(const uint64_t *codes, const uint64_t *words, size_t n, size_t stride, uint64_t d,
                             uint64_t k, uint64_t batch, uint64_t threshold, uint64_t *bits, size_t n_words64,
                             uint8_t *out, size_t width) noexcept


def privatize(
    const uint64_t[::1] codes,      # IN   true values, below d
    const uint64_t[:, ::1] words,   # IN   (n, 1 + ceil(k / batch)): one for the true value, the others for draws
    uint64_t d,                     # IN
    uint64_t k,                     # IN   size of the subset, 1 <= k < d
    uint64_t batch,                 # IN   draws that share a word
    uint64_t threshold,             # IN   the true value is in with probability threshold / 2^64
    uint64_t[::1] scratch,          # OUT  4 * ceil(d / 64) words of working memory
    uint8_t[:, ::1] out,            # OUT  (n, ceil(d / 8)) packed bits, k of them 1
):
    """Answer every record."""
    cdef size_t n = codes.shape[0], n_words64 = (d + 63) // 64
    if (words.shape[0] != codes.shape[0] or out.shape[0] != codes.shape[0] or not 1 <= k < d or batch == 0
            or words.shape[1] != 1 + (k + batch - 1) // batch or out.shape[1] != (d + 7) // 8
            or scratch.shape[0] < DPESTIM_LANES * n_words64):
        raise ValueError("codes, words, scratch and out differ in length, or k is out of range")
    if n == 0:
        return
    with nogil:
        dpestim_subset_rows(&codes[0], &words[0, 0], n, words.shape[1], d, k, batch, threshold, &scratch[0], n_words64,
                            &out[0, 0], out.shape[1])


def weighs(
    const uint8_t[:, :] reports,    # IN   packed bits
    uint64_t k,                     # IN
):
    """Tell whether every row has exactly k ones."""
    cdef Py_ssize_t i, b
    cdef uint64_t total
    cdef uint8_t x
    cdef bint good = True
    with nogil:
        for i in range(reports.shape[0]):
            total = 0
            for b in range(reports.shape[1]):
                x = reports[i, b]
                x = x - ((x >> 1) & 0x55)
                x = (x & 0x33) + ((x >> 2) & 0x33)
                total += (x + (x >> 4)) & 0x0F
            good &= total == k
    return good
