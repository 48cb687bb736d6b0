"""Choosing in proportion to e^-x: integers that are at least the weights, and their sums. Proof: central/selection."""

from libc.stdint cimport int64_t, uint64_t

cdef extern from "choice.h" nogil:
    uint64_t dpestim_weight(uint64_t gap, uint64_t rate, int shift, uint64_t far, const uint64_t *tables) noexcept
    int64_t dpestim_floor(double score, double largest) noexcept
    void dpestim_add(uint64_t *high, uint64_t *low, uint64_t weight, uint64_t times) noexcept

cdef enum:
    TABLES = 1088  # entries of the tables of exponentials


def round_down(
    const double[::1] scores,      # IN   no NaN
    double scale,                  # IN   a power of two: one over the step
    double largest,                # IN   steps at which scores are cut, at most 2^62
    int64_t[::1] out,              # OUT  the next lower integer number of steps
):
    """Write scores in steps."""
    cdef Py_ssize_t i
    if out.shape[0] != scores.shape[0] or not scores.shape[0] or not 1 <= largest <= 4611686018427387904.0:
        raise ValueError("scores and out differ in length or are empty, or largest is out of range")
    with nogil:
        for i in range(scores.shape[0]):
            out[i] = dpestim_floor(scores[i] * scale, largest)


def upper_weights(
    const int64_t[::1] codes,      # IN   scores, in steps
    int64_t best,                  # IN   the largest of them
    uint64_t rate,                 # IN   what a step costs, in units of 2^-(58 + shift), rounded down
    int shift,                     # IN   from 0 to 127
    uint64_t far,                  # IN   steps from which on e^-x is below 2^-56, above 0
    const uint64_t[::1] tables,    # IN   of e^-x
    uint64_t[::1] out,             # OUT  integers of at least 2^56 e^-x, and at most 5 more
):
    """Write upper bounds of weights."""
    cdef Py_ssize_t i, n = codes.shape[0]
    if out.shape[0] != codes.shape[0] or tables.shape[0] != TABLES or not 0 <= shift <= 127 or far < 1:
        raise ValueError("codes and out differ in length, tables has another one, or shift is out of range")
    with nogil:
        for i in range(n):
            if i and codes[i] == codes[i - 1]:  # (by ranks a value, and what is next to it, are as good)
                out[i] = out[i - 1]
            else:
                out[i] = dpestim_weight(<uint64_t>best - <uint64_t>codes[i], rate, shift, far, &tables[0])


def total(
    const uint64_t[::1] weights,   # IN
    const int64_t[::1] times,      # IN   how often each counts, not negative; or nothing: once
):
    """Return the exact sum, below 2^128: (its upper, its lower half)."""
    cdef Py_ssize_t i, n = weights.shape[0]
    cdef bint once = times.shape[0] == 0
    cdef uint64_t high = 0, low = 0
    if not (once or times.shape[0] == n):
        raise ValueError("lengths differ")
    with nogil:
        for i in range(n):
            dpestim_add(&high, &low, weights[i], 1 if once else <uint64_t>times[i])
    return high, low


def place_of(
    const uint64_t[::1] weights,   # IN   as in `total`
    const int64_t[::1] times,
    uint64_t above,                # IN   the upper and the lower half of a number below the total
    uint64_t below,
):
    """Return the first place up to which weights add up to more than a number."""
    cdef Py_ssize_t i, n = weights.shape[0]
    cdef bint once = times.shape[0] == 0
    cdef uint64_t high = 0, low = 0
    if not (once or times.shape[0] == n):
        raise ValueError("lengths differ")
    with nogil:
        for i in range(n):
            dpestim_add(&high, &low, weights[i], 1 if once else <uint64_t>times[i])
            if high > above or (high == above and low > below):
                break
        else:
            with gil:
                raise ValueError("the number is not below the total")
    return i
