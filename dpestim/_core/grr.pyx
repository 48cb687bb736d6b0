"""Generalised randomised response over d values: one or two words a record, no float, no rejection."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dpestim._core.grr cimport dpestim_grr64, dpestim_grr128, dpestim_join, dpestim_reciprocal, dpestim_u128

cdef extern from "grr_rows.h" nogil:
    void dpestim_grr_rows8(const uint8_t *codes, const uint64_t *words, size_t n, uint64_t keep, uint64_t w,
                           uint8_t *out) noexcept
    void dpestim_grr_rows16(const uint16_t *codes, const uint64_t *words, size_t n, uint64_t keep, uint64_t w,
                            uint16_t *out) noexcept
    void dpestim_grr_rows32(const uint32_t *codes, const uint64_t *words, size_t n, uint64_t keep, uint64_t w,
                            uint32_t *out) noexcept

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t


def privatize(
    const code_t[::1] codes,      # IN   true values, below d
    const uint64_t[::1] words,    # IN   n_words a record, high word first
    keep,                         # IN   weight of the true value, an integer below 2^(64 n_words)
    other,                        # IN   weight of each other value
    code_t[::1] out,              # OUT  reported values, below d
):
    """Answer every record; ``keep + (d - 1) * other`` is 2**64 (one word a record) or 2**128 (two)."""
    cdef Py_ssize_t n = codes.shape[0], i
    cdef uint64_t keep_high, keep_low, w_high, w_low, reciprocal
    cdef dpestim_u128 keep2, w2
    if out.shape[0] != n or (words.shape[0] != n and words.shape[0] != 2 * n):
        raise ValueError("codes, words and out differ in length")
    keep_high, keep_low = keep >> 64, keep & 0xFFFFFFFFFFFFFFFF
    w_high, w_low = other >> 64, other & 0xFFFFFFFFFFFFFFFF
    if n == 0:
        return
    if words.shape[0] == n and w_low >> 33:
        with nogil:
            if code_t is uint8_t:
                dpestim_grr_rows8(&codes[0], &words[0], n, keep_low, w_low, &out[0])
            elif code_t is uint16_t:
                dpestim_grr_rows16(&codes[0], &words[0], n, keep_low, w_low, &out[0])
            else:
                dpestim_grr_rows32(&codes[0], &words[0], n, keep_low, w_low, &out[0])
    elif words.shape[0] == n:
        reciprocal = dpestim_reciprocal(w_low)
        with nogil:
            for i in range(n):
                out[i] = <code_t>dpestim_grr64(codes[i], words[i], keep_low, w_low, reciprocal)
    else:
        keep2, w2 = dpestim_join(keep_high, keep_low), dpestim_join(w_high, w_low)
        with nogil:
            for i in range(n):
                out[i] = <code_t>dpestim_grr128(codes[i], words[2 * i], words[2 * i + 1], keep2, w2)


def count(
    const code_t[::1] reports,    # IN   reported values, which should be below d
    int64_t[:, ::1] counts,       # OUT  (1 or 4, d), added to
):
    """Add a histogram of the reports; return whether all were below d.

    In four lanes equal neighbours do not wait for each other's store. A report is read once and compared before it is
    used as an index: reports may come from a file or a buffer that somebody else writes to, after any earlier check.
    """
    cdef Py_ssize_t n = reports.shape[0], i
    cdef uint64_t d = counts.shape[1], a, b, c, e
    cdef bint good = True
    if counts.shape[0] != 1 and counts.shape[0] != 4:
        raise ValueError("counts must have one lane or four lanes")
    if d == 0:
        return n == 0
    with nogil:
        if counts.shape[0] == 1:
            for i in range(n):
                a = reports[i]
                if a >= d:
                    good = False
                    break
                counts[0, a] += 1
        else:
            for i in range(0, n - 3, 4):
                a, b, c, e = reports[i], reports[i + 1], reports[i + 2], reports[i + 3]
                if (a >= d) | (b >= d) | (c >= d) | (e >= d):
                    good = False
                    break
                counts[0, a] += 1
                counts[1, b] += 1
                counts[2, c] += 1
                counts[3, e] += 1
            for i in range(n - n % 4, n):
                a = reports[i]
                if a >= d:
                    good = False
                    break
                counts[0, a] += 1
    return good
