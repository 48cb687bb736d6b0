"""Exact noise of a release: integers from attempts, each with the same number of random words.

All functions read attempts from the start of `words` until one of three things happens: `out` is full, the words are
used up, or an attempt cannot be decided by its words (they tie with a threshold). They return (attempts that were
decided, numbers written): where neither everything was used nor everything written, the next attempt is undecided.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from "noise.h" nogil:
    int DPESTIM_ACCEPTED, DPESTIM_UNDECIDED
    ctypedef struct dpestim_bell:
        uint64_t centre, inverse, slack
        int fraction, bits
    uint64_t dpestim_exp(uint64_t g, const uint64_t *tables) noexcept
    int dpestim_laplace(const uint32_t *lanes, const uint32_t *thresholds, int n, int64_t *z) noexcept
    ctypedef struct dpestim_stairs:
        uint64_t parts[2]
        uint64_t unfair[2]
    int dpestim_staircase(const uint32_t *lanes, uint64_t word, const uint32_t *thresholds, int n,
                          const dpestim_stairs *law, int64_t *z) noexcept
    int dpestim_gaussian(const uint32_t *lanes, uint64_t word, const uint32_t *thresholds, int n,
                         const dpestim_bell *law, const uint64_t *tables, int64_t *z) noexcept
    int dpestim_normal(const uint64_t *words, const uint64_t *thresholds, int n, uint64_t factor, int shift,
                       uint64_t slack, const uint64_t *tables, int64_t *z) noexcept

cdef extern from "reals.h" nogil:
    int dpestim_vector(const uint64_t *words, Py_ssize_t points, const uint64_t *exponentials, double *high,
                       double *low, Py_ssize_t size) noexcept

cdef enum:
    TABLES = 1088  # entries of the tables of exponentials


def discrete_laplace(
    const uint64_t[::1] words,         # IN   `per` words an attempt, as lanes of 32 bits: sign, digits, overflow
    Py_ssize_t per,                    # IN
    const uint32_t[::1] thresholds,    # IN   one for each digit, and one for the overflow
    int64_t[::1] out,                  # OUT  integers
):
    """Write discrete Laplace noise."""
    cdef Py_ssize_t n = words.shape[0] // per, room = out.shape[0], attempt = 0, written = 0
    cdef int digits = thresholds.shape[0] - 1, verdict
    cdef int64_t z
    if digits < 1 or digits > 61 or 2 * per < digits + 2:
        raise ValueError("thresholds and per differ in length")
    with nogil:
        while attempt < n and written < room:
            verdict = dpestim_laplace(<const uint32_t *>&words[attempt * per], &thresholds[0], digits, &z)
            if verdict == DPESTIM_UNDECIDED:
                break
            out[written] = z
            written += verdict
            attempt += 1
    return attempt, written


def staircase(
    const uint64_t[::1] words,         # IN   `per` an attempt: lanes (sign, digits, overflow, coin), then the place
    Py_ssize_t per,                    # IN
    const uint32_t[::1] thresholds,    # IN   digits, overflow and coin
    uint64_t width,                    # IN   of a stair, from 1 to 2^40
    uint64_t upper,                    # IN   its upper part, from 1 to width
    int64_t[::1] out,                  # OUT  integers
):
    """Write discrete staircase noise."""
    cdef Py_ssize_t n = words.shape[0] // per, room = out.shape[0], attempt = 0, written = 0
    cdef int digits = thresholds.shape[0] - 2, verdict, k
    cdef dpestim_stairs law
    cdef int64_t z
    if digits < 1 or digits > 61 or 2 * (per - 1) < digits + 3 or not 1 <= upper <= width <= 1 << 40:
        raise ValueError("thresholds and per differ in length, or width and upper are out of range")
    law.parts[0], law.parts[1] = upper, width - upper
    for k in range(2):  # 2^64 modulo the part: fewer words than that would make places unequal
        law.unfair[k] = (-law.parts[k]) % law.parts[k] if law.parts[k] else 0
    with nogil:
        while attempt < n and written < room:
            verdict = dpestim_staircase(<const uint32_t *>&words[attempt * per], words[attempt * per + per - 1],
                                        &thresholds[0], digits, &law, &z)
            if verdict == DPESTIM_UNDECIDED:
                break
            out[written] = z
            written += verdict
            attempt += 1
    return attempt, written


def discrete_gaussian(
    const uint64_t[::1] words,         # IN   `per` an attempt: lanes as for `discrete_laplace`, then the coin
    Py_ssize_t per,                    # IN
    const uint32_t[::1] thresholds,    # IN   of the proposals
    uint64_t centre,                   # IN   variance / scale of the proposals, in units of 2^-fraction
    uint64_t inverse,                  # IN   2^(64 + bits - fraction) / standard deviation
    int fraction,                      # IN
    int bits,                          # IN   from 29 to 56
    uint64_t slack,                    # IN   how far the coin's threshold may be off
    const uint64_t[::1] tables,        # IN   of e^-x
    int64_t[::1] out,                  # OUT  integers
):
    """Write discrete Gaussian noise."""
    cdef Py_ssize_t n = words.shape[0] // per, room = out.shape[0], attempt = 0, written = 0
    cdef int digits = thresholds.shape[0] - 1, verdict
    cdef dpestim_bell law
    cdef int64_t z
    if (digits < 1 or 2 * (per - 1) < digits + 2 or tables.shape[0] != TABLES or not 29 <= bits <= 56
            or fraction < 0 or digits + fraction > 62):
        raise ValueError("thresholds, tables and per differ in length, or bits is out of range")
    law.centre, law.inverse, law.slack = centre, inverse, slack
    law.fraction, law.bits = fraction, bits
    with nogil:
        while attempt < n and written < room:
            verdict = dpestim_gaussian(<const uint32_t *>&words[attempt * per], words[attempt * per + per - 1],
                                       &thresholds[0], digits, &law, &tables[0], &z)
            if verdict == DPESTIM_UNDECIDED:
                break
            out[written] = z
            written += verdict
            attempt += 1
    return attempt, written


def rounded_gaussian(
    const uint64_t[::1] words,         # IN   three an attempt: sign and integer part, fraction, coin
    const uint64_t[::1] thresholds,    # IN   of the integer part, in units of 2^-63
    uint64_t factor,                   # IN   standard deviation * 2^shift, below 2^57
    int shift,                         # IN   from 0 to 63
    uint64_t slack,                    # IN   how far the coin's threshold may be off
    const uint64_t[::1] tables,        # IN   of e^-x
    int64_t[::1] out,                  # OUT  integers
):
    """Write normal numbers, rounded to integers."""
    cdef Py_ssize_t n = words.shape[0] // 3, room = out.shape[0], attempt = 0, written = 0
    cdef int steps = thresholds.shape[0], verdict
    cdef int64_t z
    if tables.shape[0] != TABLES or not 0 <= shift <= 63 or factor >> 57 or not 1 <= steps <= 12:
        raise ValueError("tables or thresholds have another length, or factor and shift are out of range")
    with nogil:
        while attempt < n and written < room:
            verdict = dpestim_normal(&words[3 * attempt], &thresholds[0], steps, factor, shift, slack, &tables[0], &z)
            if verdict == DPESTIM_UNDECIDED:
                break
            out[written] = z
            written += verdict
            attempt += 1
    return attempt, written


def exponentials(
    const uint64_t[::1] g,         # IN   in units of 2^-58
    const uint64_t[::1] tables,    # IN   of e^-x
    uint64_t[::1] out,             # OUT  2^64 e^-g, to within 256
):
    """Write what the coins above are compared with; for tests of how far it is off."""
    cdef Py_ssize_t i
    if out.shape[0] != g.shape[0] or tables.shape[0] != TABLES:
        raise ValueError("g and out differ in length, or tables has another length")
    with nogil:
        for i in range(g.shape[0]):
            out[i] = dpestim_exp(g[i], &tables[0])


def vector(
    const uint64_t[:, ::1] words,         # IN   four for each point that is tried, for each two normals
    const uint64_t[:, ::1] exponentials,  # IN   two for each number, or None: their sum is the length of the vector
    double[::1] out,                      # OUT  next to exact normals, or to a vector of that length in their direction
    double[::1] scratch,                  # OUT  of the same length
):
    """Tell whether the words decided all numbers closely enough; else what was written is of no use."""
    cdef Py_ssize_t size = out.shape[0]
    cdef const uint64_t *sums = NULL
    cdef int decided
    if size < 1 or words.shape[0] != (size + 1) // 2 or words.shape[1] < 4 or scratch.shape[0] != size:
        raise ValueError("words must have a row for each two numbers, and scratch as many as out")
    if exponentials is not None:
        if exponentials.shape[0] != size or exponentials.shape[1] != 2:
            raise ValueError("exponentials must have two words for each number")
        sums = &exponentials[0, 0]
    with nogil:
        decided = dpestim_vector(&words[0, 0], words.shape[1] // 4, sums, &out[0], &scratch[0], size)
    return bool(decided)
