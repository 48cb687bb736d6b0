"""Invertible Bloom lookup tables: cells of (count, sums of key words, check sum) modulo 2^64. Proof: shuffle/transport."""

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    AHEAD = 16  # keys whose cells are fetched before they are needed

cdef extern from "shuffle.h" nogil:
    uint64_t dpestim_product(uint64_t a, uint64_t b, uint64_t *low) noexcept
    void DPESTIM_FETCH_TO_WRITE(const void *at) noexcept


cdef inline uint64_t mixed(uint64_t x) noexcept nogil:
    # the finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection that no sum commutes with
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)


cdef inline uint64_t hashed(const uint64_t *key, Py_ssize_t n, uint64_t salt) noexcept nogil:
    cdef Py_ssize_t i
    cdef uint64_t h = salt
    for i in range(n):
        h = mixed((h ^ key[i]) + <uint64_t>0x9E3779B97F4A7C15)
    return h


cdef inline Py_ssize_t cell(uint64_t h, int j, Py_ssize_t third) noexcept nogil:
    cdef uint64_t low
    return j * third + <Py_ssize_t>dpestim_product(mixed(h + <uint64_t>(j + 1) * <uint64_t>0xD1B54A32D192ED03), third, &low)


cdef inline uint64_t check(uint64_t h) noexcept nogil:
    return mixed(h ^ <uint64_t>0xA0761D6478BD642F)


def insert(
    const uint64_t[:, ::1] keys,   # IN   a row of words for each key
    uint64_t salt,                 # IN   public
    uint64_t[:, ::1] table,        # IN and OUT  3 equal sub-tables of cells: count, key words, check
):
    """Add keys to a table."""
    cdef Py_ssize_t batch, i, k, w, at, n_words = keys.shape[1], third = table.shape[0] // 3
    cdef uint64_t h[AHEAD]
    cdef int j
    if third < 1 or table.shape[0] != 3 * third or table.shape[1] != n_words + 2 or n_words < 1:
        raise ValueError("table and keys do not fit")
    with nogil:
        for batch in range((keys.shape[0] + AHEAD - 1) // AHEAD):
            i = batch * AHEAD
            for k in range(min(AHEAD, keys.shape[0] - i)):
                h[k] = hashed(&keys[i + k, 0], n_words, salt)
                for j in range(3):
                    DPESTIM_FETCH_TO_WRITE(&table[cell(h[k], j, third), 0])
            for k in range(min(AHEAD, keys.shape[0] - i)):
                for j in range(3):
                    at = cell(h[k], j, third)
                    table[at, 0] += 1
                    for w in range(n_words):
                        table[at, w + 1] += keys[i + k, w]
                    table[at, n_words + 1] += check(h[k])


def peel(
    uint64_t[:, ::1] table,        # IN and OUT  what is found is taken out
    uint64_t salt,                 # IN   public
    int64_t[::1] pending,          # WORK one place for each cell
    uint64_t[:, ::1] keys,         # OUT  what is found
):
    """Take out the keys of cells that hold one, as long as there are any; return how many."""
    cdef Py_ssize_t n_words = keys.shape[1], third = table.shape[0] // 3, most = keys.shape[0]
    cdef Py_ssize_t found = 0, queued = 0, first = 0, w, at, other
    cdef uint64_t h
    cdef int j
    if (third < 1 or table.shape[0] != 3 * third or table.shape[1] != n_words + 2 or n_words < 1
            or pending.shape[0] != table.shape[0]):
        raise ValueError("table, pending and keys do not fit")
    with nogil:
        # counts only fall, so a cell begins with 1 or falls to 1, once: each is queued at most once
        for at in range(table.shape[0]):
            if table[at, 0] == 1:
                pending[queued] = at
                queued += 1
        while first < queued and found < most:
            if first + 2 * AHEAD < queued:
                DPESTIM_FETCH_TO_WRITE(&table[pending[first + 2 * AHEAD], 0])
            if first + AHEAD < queued:
                h = hashed(&table[pending[first + AHEAD], 1], n_words, salt)
                for j in range(3):
                    DPESTIM_FETCH_TO_WRITE(&table[cell(h, j, third), 0])
            at = pending[first]
            first += 1
            if table[at, 0] != 1:
                continue
            h = hashed(&table[at, 1], n_words, salt)
            if check(h) != table[at, n_words + 1] or cell(h, <int>(at // third), third) != at:
                continue  # not what an honest user wrote
            for w in range(n_words):
                keys[found, w] = table[at, w + 1]
            for j in range(3):
                other = cell(h, j, third)
                table[other, 0] -= 1
                for w in range(n_words):
                    table[other, w + 1] -= keys[found, w]
                table[other, n_words + 1] -= check(h)
                if table[other, 0] == 1:
                    pending[queued] = other
                    queued += 1
            found += 1
    return found
