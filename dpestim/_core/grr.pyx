"""Generalised randomised response over d values: one or two words a record, no float, no rejection."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from dpestim._core.grr cimport dpestim_grr64, dpestim_grr128, dpestim_join, dpestim_reciprocal, dpestim_u128
from dpestim._core.rare cimport dpestim_aes_keys, dpestim_aes_schedule, dpestim_aes_stream, dpestim_has_aes

cdef extern from "grr_rows.h" nogil:
    void dpestim_grr_rows8(const uint8_t *codes, const uint64_t *words, size_t n, uint64_t keep, uint64_t w,
                           uint8_t *out) noexcept
    void dpestim_grr_rows16(const uint16_t *codes, const uint64_t *words, size_t n, uint64_t keep, uint64_t w,
                            uint16_t *out) noexcept
    void dpestim_grr_rows32(const uint32_t *codes, const uint64_t *words, size_t n, uint64_t keep, uint64_t w,
                            uint32_t *out) noexcept

cdef enum:
    TILE_WORDS = 2048  # made at a time, an even number for each record: whole counters
    MOST_IN_LANES = 4096  # four lanes of so many 32-bit counts stay near the first-level cache
    LONG = 4096  # bytes from which on eight tables of 256 counts are worth clearing

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
    cdef Py_ssize_t n = codes.shape[0]
    cdef uint64_t keep_high, keep_low, w_high, w_low
    if out.shape[0] != n or (words.shape[0] != n and words.shape[0] != 2 * n):
        raise ValueError("codes, words and out differ in length")
    keep_high, keep_low = keep >> 64, keep & 0xFFFFFFFFFFFFFFFF
    w_high, w_low = other >> 64, other & 0xFFFFFFFFFFFFFFFF
    if n == 0:
        return
    with nogil:
        _answer(&codes[0], &words[0], n, words.shape[0] == n, keep_high, keep_low, w_high, w_low, &out[0])


def answer(
    const code_t[::1] codes,      # IN   as for `privatize`
    tuple cipher not None,        # IN   (key, head, counter, words to skip) of n_words words a record
    int n_words,                  # IN   1 or 2
    keep,                         # IN   as for `privatize`
    other,                        # IN   as for `privatize`
    code_t[::1] out,              # OUT  as for `privatize`
):
    """Do the same, and make the words, tile by tile: they stay in the first-level cache, and threads hand over less."""
    if len(cipher) != 4:  # (before anything of it is read)
        raise ValueError("cipher must have four parts")
    cdef bytes key = cipher[0]
    cdef uint64_t head = cipher[1], first = cipher[2], keep_high, keep_low, w_high, w_low
    cdef Py_ssize_t n = codes.shape[0], skip = cipher[3], low = 0, rows, m
    cdef dpestim_aes_keys keys
    cdef uint64_t words[TILE_WORDS + 2]
    if (out.shape[0] != n or n_words not in (1, 2) or not 0 <= skip <= 1 or len(key) != 32 or not dpestim_has_aes()):
        raise ValueError("codes, cipher and out differ in length")
    keep_high, keep_low = keep >> 64, keep & 0xFFFFFFFFFFFFFFFF
    w_high, w_low = other >> 64, other & 0xFFFFFFFFFFFFFFFF
    if n == 0:
        return
    dpestim_aes_schedule(<const uint8_t *>key, &keys)
    rows = TILE_WORDS // n_words
    with nogil:
        while low < n:
            m = min(rows, n - low)
            dpestim_aes_stream(&keys, head, first + <uint64_t>(low * n_words) // 2, <uint8_t *>&words[0],
                               <size_t>(skip + m * n_words + 1) // 2)
            _answer(&codes[low], &words[skip], m, n_words == 1, keep_high, keep_low, w_high, w_low, &out[low])
            low += m


cdef void _answer(const code_t *codes, const uint64_t *words, Py_ssize_t n, bint one, uint64_t keep_high,
                  uint64_t keep_low, uint64_t w_high, uint64_t w_low, code_t *out) noexcept nogil:
    """Answer records by one word each or by two."""
    cdef uint64_t reciprocal
    cdef dpestim_u128 keep2, w2
    cdef Py_ssize_t i
    if one and w_low >> 33:
        if code_t is uint8_t:
            dpestim_grr_rows8(codes, words, n, keep_low, w_low, out)
        elif code_t is uint16_t:
            dpestim_grr_rows16(codes, words, n, keep_low, w_low, out)
        else:
            dpestim_grr_rows32(codes, words, n, keep_low, w_low, out)
    elif one:
        reciprocal = dpestim_reciprocal(w_low)
        for i in range(n):
            out[i] = <code_t>dpestim_grr64(codes[i], words[i], keep_low, w_low, reciprocal)
    else:
        keep2, w2 = dpestim_join(keep_high, keep_low), dpestim_join(w_high, w_low)
        for i in range(n):
            out[i] = <code_t>dpestim_grr128(codes[i], words[2 * i], words[2 * i + 1], keep2, w2)


cdef bint _count_bytes(const uint8_t *reports, size_t n, int64_t *counts, uint64_t d) noexcept nogil:
    """Add a histogram of bytes, fewer than 2^32; whether all were below d.

    No byte is beyond the end of a table of 256, so that none is compared: what is d or more is seen at the end.
    """
    cdef size_t i = 0
    cdef uint64_t eight, held
    cdef int a, lane
    cdef uint32_t lanes[8][256]
    cdef bint good = True
    memset(lanes, 0, sizeof(lanes))
    while i + 8 <= n:
        memcpy(&eight, reports + i, 8)
        lanes[0][eight & 255] += 1
        lanes[1][eight >> 8 & 255] += 1
        lanes[2][eight >> 16 & 255] += 1
        lanes[3][eight >> 24 & 255] += 1
        lanes[4][eight >> 32 & 255] += 1
        lanes[5][eight >> 40 & 255] += 1
        lanes[6][eight >> 48 & 255] += 1
        lanes[7][eight >> 56] += 1
        i += 8
    while i < n:
        lanes[0][reports[i]] += 1
        i += 1
    for a in range(256):
        held = 0
        for lane in range(8):
            held += lanes[lane][a]
        if <uint64_t>a < d:
            counts[a] += <int64_t>held
        elif held:
            good = False
    return good


cdef bint _count(const code_t *reports, size_t n, int64_t *counts, uint64_t d) noexcept nogil:
    """Add a histogram; False at once where a report is d or more.

    A report is read once and compared before it is used as an index: reports may come from a file or a buffer that
    somebody else writes to, after any earlier check.
    """
    cdef size_t i = 0
    cdef uint64_t a, b, c, e
    cdef uint32_t lanes[4][MOST_IN_LANES]
    if code_t is uint8_t and LONG <= n < <uint64_t>1 << 32:
        return _count_bytes(<const uint8_t*>reports, n, counts, d)
    if d <= MOST_IN_LANES and d <= n < <uint64_t>1 << 32:
        # equal neighbours in four lanes do not wait for each other's store; in a larger domain they are rare
        for a in range(4):
            memset(lanes[a], 0, d * sizeof(uint32_t))
        while i + 4 <= n:
            a, b, c, e = reports[i], reports[i + 1], reports[i + 2], reports[i + 3]
            if (a >= d) | (b >= d) | (c >= d) | (e >= d):
                return False
            lanes[0][a] += 1
            lanes[1][b] += 1
            lanes[2][c] += 1
            lanes[3][e] += 1
            i += 4
        for a in range(d):
            counts[a] += <int64_t>lanes[0][a] + lanes[1][a] + lanes[2][a] + lanes[3][a]
    while i < n:
        a = reports[i]
        if a >= d:
            return False
        counts[a] += 1
        i += 1
    return True


def count(
    const code_t[::1] reports,    # IN   reported values, which should be below d
    int64_t[::1] counts,          # OUT  (d), added to
):
    """Add a histogram of the reports; return whether all were below d (if not, `counts` is of no use)."""
    cdef bint good = True
    if reports.shape[0] and counts.shape[0] == 0:
        return False
    if reports.shape[0]:
        with nogil:
            good = _count(&reports[0], reports.shape[0], &counts[0], counts.shape[0])
    return good
