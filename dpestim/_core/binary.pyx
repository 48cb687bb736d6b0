"""Binary randomised response: one word a record against the threshold of the record's value."""

from libc.stdint cimport uint8_t, uint64_t


def privatize(
    const uint8_t[::1] codes,     # IN   0 or 1
    const uint64_t[::1] words,    # IN   one word a record
    uint64_t if_no,               # IN   Pr[report 1] for value 0 is if_no / 2^64
    uint64_t if_yes,              # IN   ... and for value 1 if_yes / 2^64
    uint8_t[::1] out,             # OUT  0 or 1
):
    """Answer every record."""
    cdef Py_ssize_t n = codes.shape[0], i
    cdef uint64_t thresholds[2]
    if words.shape[0] != n or out.shape[0] != n:
        raise ValueError("codes, words and out differ in length")
    thresholds[0] = if_no
    thresholds[1] = if_yes
    with nogil:
        for i in range(n):
            out[i] = words[i] < thresholds[codes[i] & 1]
