"""Subset selection: draw k distinct values, with or without the true one, as packed bits."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "subset.h" nogil:
    void dpestim_subset_uint16_t(const uint64_t *codes, const uint64_t *words, size_t n, size_t stride, uint64_t d,
                                 uint64_t k, uint64_t batch, uint64_t threshold, uint16_t *scratch, uint8_t *out,
                                 size_t width) noexcept
    void dpestim_subset_uint32_t(const uint64_t *codes, const uint64_t *words, size_t n, size_t stride, uint64_t d,
                                 uint64_t k, uint64_t batch, uint64_t threshold, uint32_t *scratch, uint8_t *out,
                                 size_t width) noexcept
    bint dpestim_weighs(const uint8_t *rows, size_t n, size_t stride, size_t width, uint64_t k) noexcept


def privatize(
    const uint64_t[::1] codes,      # IN   true values, below d
    const uint64_t[:, ::1] words,   # IN   (n, 1 + ceil(k / batch)): one for the true value, the others for draws
    uint64_t d,                     # IN   below 2^32
    uint64_t k,                     # IN   size of the subset, 1 <= k < d
    uint64_t batch,                 # IN   draws that share a word
    uint64_t threshold,             # IN   the true value is in with probability threshold / 2^64
    uint64_t[::1] scratch,          # OUT  d words of working memory
    uint8_t[:, ::1] out,            # OUT  (n, ceil(d / 8)) packed bits, k of them 1
):
    """Answer every record."""
    cdef size_t n = codes.shape[0]
    if (words.shape[0] != codes.shape[0] or out.shape[0] != codes.shape[0] or not 1 <= k < d or batch == 0
            or words.shape[1] != 1 + (k + batch - 1) // batch or out.shape[1] != (d + 7) // 8
            or scratch.shape[0] < d):
        raise ValueError("codes, words, scratch and out differ in length, or k is out of range")
    if n == 0:
        return
    with nogil:
        if d <= 65536:
            dpestim_subset_uint16_t(&codes[0], &words[0, 0], n, words.shape[1], d, k, batch, threshold,
                                    <uint16_t *>&scratch[0], &out[0, 0], out.shape[1])
        else:
            dpestim_subset_uint32_t(&codes[0], &words[0, 0], n, words.shape[1], d, k, batch, threshold,
                                    <uint32_t *>&scratch[0], &out[0, 0], out.shape[1])


def weighs(
    const uint8_t[:, :] reports,    # IN   packed bits; the bytes of a row lie side by side
    uint64_t k,                     # IN
):
    """Tell whether every row has exactly k ones."""
    cdef bint good
    if reports.shape[0] == 0 or reports.shape[1] == 0:
        return reports.shape[0] == 0 or k == 0
    if reports.shape[1] > 1 and reports.strides[1] != 1:
        raise ValueError("the bytes of a row must lie side by side")
    with nogil:
        good = dpestim_weighs(&reports[0, 0], reports.shape[0], reports.strides[0], reports.shape[1], k)
    return good
