"""Local hashing with a multiply-shift hash: privatize, support counts and the support matrix."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dpestim._core.grr cimport dpestim_grr64, dpestim_grr128, dpestim_join, dpestim_reciprocal, dpestim_u128

cdef extern from "olh.h" nogil:
    uint32_t dpestim_bucket32(uint32_t h, uint64_t g) noexcept
    uint64_t dpestim_bucket64(uint64_t h, uint64_t g) noexcept
    void dpestim_olh_count32(const uint32_t *reports, size_t n, uint64_t g, size_t d, int64_t *counts) noexcept
    void dpestim_olh_count64(const uint64_t *reports, size_t n, uint64_t g, size_t d, int64_t *counts) noexcept
    void dpestim_olh_support32(const uint32_t *reports, size_t n, uint64_t g, size_t d, uint8_t *out) noexcept
    void dpestim_olh_support64(const uint64_t *reports, size_t n, uint64_t g, size_t d, uint8_t *out) noexcept

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t

ctypedef fused lane_t:
    uint32_t
    uint64_t


def privatize(
    const code_t[::1] codes,      # IN   true values
    const uint64_t[::1] seeds,    # IN   one word a record (32-bit lanes: a low, b high) or two (64-bit: a, b)
    const uint64_t[::1] words,    # IN   one or two words a record, high word first
    uint64_t g,                   # IN   buckets, 2 <= g < 2^31
    keep,                         # IN   weight of the true bucket
    other,                        # IN   weight of each other bucket
    lane_t[:, ::1] out,           # OUT  (n, 3): a, b, reported bucket
):
    """Hash every value with its user's own hash and answer for the bucket by randomised response over g."""
    cdef Py_ssize_t n = codes.shape[0], i
    cdef int n_seeds = 1 if lane_t is uint32_t else 2
    cdef int n_words = 1 if words.shape[0] == n else 2
    cdef uint64_t x, reciprocal, keep_high, keep_low, w_high, w_low
    cdef lane_t a, b
    cdef dpestim_u128 keep2, w2
    if (seeds.shape[0] != n * n_seeds or words.shape[0] != n * n_words or out.shape[0] != n or out.shape[1] != 3
            or g < 2 or g >= 1 << 31):
        raise ValueError("codes, seeds, words and out differ in length, or g is out of range")
    keep_high, keep_low = keep >> 64, keep & 0xFFFFFFFFFFFFFFFF
    w_high, w_low = other >> 64, other & 0xFFFFFFFFFFFFFFFF
    reciprocal = dpestim_reciprocal(w_low) if n_words == 1 else 0
    keep2, w2 = dpestim_join(keep_high, keep_low), dpestim_join(w_high, w_low)
    with nogil:
        for i in range(n):
            if lane_t is uint32_t:
                a = <uint32_t>seeds[i]
                b = <uint32_t>(seeds[i] >> 32)
                x = dpestim_bucket32(a * <uint32_t>codes[i] + b, g)
            else:
                a = seeds[2 * i]
                b = seeds[2 * i + 1]
                x = dpestim_bucket64(a * <uint64_t>codes[i] + b, g)
            out[i, 0] = a
            out[i, 1] = b
            if n_words == 1:
                out[i, 2] = <lane_t>dpestim_grr64(x, words[i], keep_low, w_low, reciprocal)
            else:
                out[i, 2] = <lane_t>dpestim_grr128(x, words[2 * i], words[2 * i + 1], keep2, w2)


def bucket(
    const code_t[::1] codes,         # IN   values
    const lane_t[:, ::1] reports,    # IN   (n, 3), of which a and b are read
    uint64_t g,                      # IN
    lane_t[::1] out,                 # OUT  the bucket each value falls into under its user's hash
):
    """Hash value i with the hash of report i."""
    cdef Py_ssize_t n = codes.shape[0], i
    if reports.shape[0] != n or reports.shape[1] != 3 or out.shape[0] != n:
        raise ValueError("codes, reports and out differ in length")
    with nogil:
        for i in range(n):
            if lane_t is uint32_t:
                out[i] = dpestim_bucket32(reports[i, 0] * <uint32_t>codes[i] + reports[i, 1], g)
            else:
                out[i] = dpestim_bucket64(reports[i, 0] * <uint64_t>codes[i] + reports[i, 1], g)


def count(
    const lane_t[:, ::1] reports,    # IN   (n, 3): a, b, bucket below g
    uint64_t g,                      # IN
    int64_t[::1] counts,             # OUT  (d), added to: reports whose bucket holds the value
):
    """Add, for every value, the number of reports that support it."""
    if reports.shape[1] != 3:
        raise ValueError("a report has three fields")
    if reports.shape[0] == 0 or counts.shape[0] == 0:
        return
    with nogil:
        if lane_t is uint32_t:
            dpestim_olh_count32(&reports[0, 0], reports.shape[0], g, counts.shape[0], &counts[0])
        else:
            dpestim_olh_count64(&reports[0, 0], reports.shape[0], g, counts.shape[0], &counts[0])


def support(
    const lane_t[:, ::1] reports,    # IN   (n, 3): a, b, bucket below g
    uint64_t g,                      # IN
    uint8_t[:, ::1] out,             # OUT  (n, d): 1 where the report supports the value
):
    """Write the 0/1 support matrix."""
    if reports.shape[1] != 3 or out.shape[0] != reports.shape[0]:
        raise ValueError("reports and out differ in length")
    if out.shape[0] == 0 or out.shape[1] == 0:
        return
    with nogil:
        if lane_t is uint32_t:
            dpestim_olh_support32(&reports[0, 0], reports.shape[0], g, out.shape[1], &out[0, 0])
        else:
            dpestim_olh_support64(&reports[0, 0], reports.shape[0], g, out.shape[1], &out[0, 0])
