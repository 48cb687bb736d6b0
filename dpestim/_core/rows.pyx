"""Rows of several columns: which of them a row reports, and which rows report a column."""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

cdef extern from "rows.h" nogil:
    int dpestim_choose(const uint64_t *words, uint64_t d, size_t k, uint16_t *out) noexcept


def choose(
    const uint64_t[:, ::1] words,   # IN   (n, k)
    uint64_t d,                     # IN   from k to 65536
    uint16_t[:, ::1] out,           # OUT  (n, k) ascending numbers below d
    uint32_t[::1] rejected,         # OUT  capacity n: rows whose words give no uniform draw
):
    """Draw a set of k numbers for every row, all sets equally likely; return how many rows were rejected."""
    cdef Py_ssize_t n = words.shape[0], i, n_rejected = 0
    cdef size_t k = words.shape[1]
    if not 1 <= k <= d <= 65536 or out.shape[0] != n or out.shape[1] != words.shape[1] or rejected.shape[0] < n:
        raise ValueError("words, out and rejected differ in length, or k or d is out of range")
    if n == 0:
        return 0
    with nogil:
        for i in range(n):
            if not dpestim_choose(&words[i, 0], d, k, &out[i, 0]):
                rejected[n_rejected] = <uint32_t>i
                n_rejected += 1
    return n_rejected


def places(
    const uint16_t[::1] numbers,    # IN   (n) below d
    int64_t[::1] ends,              # OUT  (d) where the places of a number end
    int64_t[::1] out,               # OUT  (n) places, by their numbers, ascending
):
    """Sort places by the numbers that stand there, by counting."""
    cdef Py_ssize_t n = numbers.shape[0], d = ends.shape[0], i, total = 0, own
    if out.shape[0] != n:
        raise ValueError("numbers and out differ in length")
    ends[:] = 0
    with nogil:
        for i in range(n):
            if numbers[i] >= d:
                with gil:
                    raise ValueError("numbers must be below d")
            ends[numbers[i]] += 1
        for i in range(d):  # (where those of a number begin, and, after all of them were written, end)
            own = ends[i]
            ends[i] = total
            total += own
        for i in range(n):
            out[ends[numbers[i]]] = i
            ends[numbers[i]] += 1
