"""Laws that give some categories less protection: what follows after the kernels of the plain laws."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t


def own_if_low(
    const code_t[::1] codes,        # IN   true values
    const uint8_t[::1] low,         # IN   (d) 1 for low values
    code_t[::1] out,                # IN   answers of randomised response;  OUT  a low one to a low value is that value
):
    """Let low values report themselves where their answer is a low one (SDGRR)."""
    cdef Py_ssize_t n = codes.shape[0], i
    cdef code_t mask
    if out.shape[0] != n:
        raise ValueError("codes and out differ in length")
    with nogil:
        for i in range(n):
            mask = <code_t>-<int>(low[codes[i]] & low[out[i]])  # a branch would be unpredictable, and tell by its time
            out[i] = (codes[i] & mask) | (out[i] & <code_t>~mask)


def choose(
    const code_t[::1] codes,        # IN   true values
    const code_t[::1] slots,        # IN   0 to s, of randomised response over s + 1 values
    const code_t[::1] rank,         # IN   (d) the number of each sensitive value among them, s for all others
    const code_t[::1] sensitive,    # IN   (s) the sensitive values
    code_t[::1] out,                # OUT  reported values
):
    """Read slots: 0 is the own value, 1 too for a sensitive one, and then come the sensitive ones but it (URR)."""
    cdef Py_ssize_t n = codes.shape[0], i
    cdef uint64_t r, k, s = sensitive.shape[0]
    cdef code_t kept
    if out.shape[0] != n or slots.shape[0] != n or s == 0:
        raise ValueError("codes, slots and out differ in length, or nothing is sensitive")
    with nogil:
        for i in range(n):
            r = rank[codes[i]]
            k = <uint64_t>slots[i] + (r == s)
            kept = <code_t>-<int>(k < 2)
            k = (k - 2) & <uint64_t>~-<uint64_t>(k < 2)
            k += k >= r
            k = k if k < s else s - 1  # where it is kept
            out[i] = (codes[i] & kept) | (sensitive[k] & <code_t>~kept)


def reveal(
    const code_t[::1] codes,        # IN   true values
    const uint64_t[::1] words,      # IN   a word a record
    uint64_t threshold,             # IN   of 2^64 words so many reveal a value that is not sensitive
    const uint8_t[::1] open_,       # IN   (d) 1 for values that are not sensitive
    const uint8_t[::1] mask,        # IN   (width) the bits of sensitive values
    uint8_t[:, ::1] out,            # IN   packed bits   OUT  of the others only that of a revealed value is 1
):
    """Drop the bits of values that are not sensitive, and let some of their holders say so (uRAP)."""
    cdef Py_ssize_t n = codes.shape[0], width = out.shape[1], i, j
    cdef uint8_t one
    if (words.shape[0] != n or out.shape[0] != n or mask.shape[0] != width or width < 1
            or (open_.shape[0] + 7) // 8 != width):
        raise ValueError("codes, words, mask and out differ in length")
    with nogil:
        for i in range(n):
            for j in range(width):
                out[i, j] &= mask[j]
            one = open_[codes[i]] & (words[i] < threshold)
            out[i, codes[i] >> 3] |= <uint8_t>(one << (codes[i] & 7))


def at_most_one(
    const uint8_t[:, :] reports,    # IN   packed bits; the bytes of a row lie side by side
    const uint8_t[::1] mask,        # IN   (width) the bits to look at
):
    """Tell whether every row has at most one 1 among the bits of the mask (uRAP)."""
    cdef Py_ssize_t n = reports.shape[0], width = reports.shape[1], i, j, k
    cdef uint64_t seen, more = 0, word, looked
    if mask.shape[0] != width or (width > 1 and reports.strides[1] != 1):
        raise ValueError("mask must be as wide as a report, whose bytes must lie side by side")
    if n == 0 or width == 0:
        return True
    with nogil:
        for i in range(n):
            seen = 0
            for j in range(0, width, 8):
                word = looked = 0
                if width - j >= 8:
                    memcpy(&word, &reports[i, j], 8)
                    memcpy(&looked, &mask[j], 8)
                else:
                    for k in range(j, width):
                        word = word << 8 | reports[i, k]
                        looked = looked << 8 | mask[k]
                word &= looked
                # two ones here, or one here and one before
                more |= (word & (word - 1)) | (seen & -<uint64_t>(word != 0))
                seen |= -<uint64_t>(word != 0)
    return more == 0
