"""Split and mix: numbers cut into shares that are uniform by themselves, and the noise that is added before."""

from libc.stdint cimport int64_t, uint64_t

cdef extern from "ikos.h" nogil:
    int64_t dpestim_reached(uint64_t word, uint64_t low, const uint64_t *high, const uint64_t *rest,
                            int n) noexcept
    int64_t dpestim_jump(const uint64_t *words, const uint64_t *levels, const uint64_t *levels_rest, int n_levels,
                         const uint64_t *digits, const uint64_t *digits_rest) noexcept


def reached(
    const uint64_t[::1] words,   # IN   (n) the high words of random numbers of 128 bits
    const uint64_t[::1] low,     # IN   (n) ... and their low ones
    const uint64_t[::1] high,    # IN   (k) ascending thresholds
    const uint64_t[::1] rest,    # IN   (k) ... and their low words
    int64_t[::1] out,            # OUT  (n) how many thresholds each has reached
):
    """Write a number of 0 to k for each."""
    cdef Py_ssize_t n = words.shape[0], i
    cdef int k = high.shape[0]
    if low.shape[0] != n or out.shape[0] != n or rest.shape[0] != k or k == 0:
        raise ValueError("words, low and out, or high and rest, differ in length")
    with nogil:
        for i in range(n):
            out[i] = dpestim_reached(words[i], low[i], &high[0], &rest[0], k)


def jumps(
    const uint64_t[:, ::1] words,       # IN   (n, 4 + k) low bits, level, coin, sign, digits
    const uint64_t[::1] levels,         # IN   (k) ascending thresholds of the level, from 0 to k
    const uint64_t[::1] levels_rest,    # IN   (k) ... and their low words
    const uint64_t[::1] digits,         # IN   (k) thresholds of each digit, from the lowest on
    const uint64_t[::1] digits_rest,    # IN   (k) ... and their low words
    int64_t[::1] out,                   # OUT  (n) a jump, or 0 where the attempt was rejected
):
    """Make one attempt each."""
    cdef Py_ssize_t n = words.shape[0], i
    cdef int k = levels.shape[0]
    if (words.shape[1] != 4 + k or levels_rest.shape[0] != k or digits.shape[0] != k or digits_rest.shape[0] != k
            or out.shape[0] != n or not 1 <= k <= 61):
        raise ValueError("words, thresholds and out differ in length, or there are too many levels")
    with nogil:
        for i in range(n):
            out[i] = dpestim_jump(&words[i, 0], &levels[0], &levels_rest[0], k + 1, &digits[0], &digits_rest[0])


def shares(
    const int64_t[::1] fixed,       # IN   (n) from 0 to 2^48
    const uint64_t[::1] lanes,      # IN   (n) a random word each, for rounding
    int places,                     # IN   the number is fixed / 2^places, rounded; from 0 to 48
    const uint64_t[::1] words,      # IN   (n (m - 1)) random words
    uint64_t[:, ::1] out,           # OUT  (n, m) shares whose sum modulo 2^64 is the rounded number
):
    """Round every number, without bias, and cut it into shares."""
    cdef Py_ssize_t n = fixed.shape[0], m = out.shape[1], i, j
    cdef uint64_t left, mask = (<uint64_t>1 << places) - 1 if 0 <= places <= 48 else 0
    if lanes.shape[0] != n or out.shape[0] != n or words.shape[0] != n * (m - 1) or m < 1 or not 0 <= places <= 48:
        raise ValueError("fixed, lanes, words and out differ in length, or places is out of range")
    with nogil:
        for i in range(n):
            left = (<uint64_t>fixed[i] + (lanes[i] & mask)) >> places
            for j in range(m - 1):
                out[i, j] = words[i * (m - 1) + j]
                left -= words[i * (m - 1) + j]
            out[i, m - 1] = left
