"""The piecewise mechanism on a grid, plain, sensitivity-aware and hybrid: floats to fixed point, and fixed point to codes."""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

cdef extern from "pm.h" nogil:
    ctypedef struct dpestim_pm_law:
        uint64_t high_inside, low_inside, inside, outside, per_inside, per_outside, window
        uint64_t zone, zone_size, merge, drop, levels, low_zone, low_gap
    void dpestim_pm_answer_all(const int64_t *t, const uint32_t *lanes, const uint64_t *words, size_t n,
                               const dpestim_pm_law *law, void *out, int n_bytes) noexcept
    ctypedef struct dpestim_hm_law:
        uint64_t inside_words, inside, outside, per_inside, per_outside, window, piecewise, minus, least, rise
    void dpestim_hm_answer_all(const int64_t *t, const uint32_t *lanes, const uint64_t *words, size_t n,
                               const dpestim_hm_law *law, void *out, int n_bytes) noexcept
    void dpestim_pm_encode(const double *x, size_t n, double low, double high, double scale, int64_t top,
                           int64_t *out) noexcept
    void dpestim_pm_encode_low(const double *x, size_t n, double low, double high, double scale, int64_t top,
                               double low_from, double low_to, double low_scale, int64_t low_top, int64_t *out) noexcept

ctypedef fused code_t:
    uint16_t
    uint32_t


def encode(
    const double[::1] x,     # IN   values in the user's units; clipped, and NaN counts as `low`
    double low,              # IN
    double high,             # IN   above low
    double scale,            # IN   fixed-point units a unit of x
    int64_t top,             # IN   the fixed point of high
    double low_from,         # IN   values in [low_from, low_to] have low sensitivity; none where low_from > low_to
    double low_to,           # IN
    double low_scale,        # IN
    int64_t low_top,         # IN   the fixed point of low_to, in levels
    int64_t[::1] out,        # OUT  fixed point, 32 fraction bits; the complement of it for low sensitivity
):
    """Write every value as a fixed-point number of steps."""
    cdef Py_ssize_t n = x.shape[0]
    if out.shape[0] != n:
        raise ValueError("x and out differ in length")
    if n == 0:
        return
    with nogil:
        if low_from > low_to:
            dpestim_pm_encode(&x[0], n, low, high, scale, top, &out[0])
        else:
            dpestim_pm_encode_low(&x[0], n, low, high, scale, top, low_from, low_to, low_scale, low_top, &out[0])


def encode_one(double x, double low, double high, double scale, int64_t top, double low_from, double low_to,
               double low_scale, int64_t low_top):
    """Return what `encode` writes for one value, without arrays, which take most of the time of one."""
    cdef int64_t out
    if low_from > low_to:
        dpestim_pm_encode(&x, 1, low, high, scale, top, &out)
    else:
        dpestim_pm_encode_low(&x, 1, low, high, scale, top, low_from, low_to, low_scale, low_top, &out)
    return out


def answer(
    const int64_t[::1] fixed,       # IN   as `encode` writes them
    const uint32_t[::1] lanes,      # IN   a random number each, for the rounding
    const uint64_t[::1] words,      # IN   a random word each, for the answer
    tuple law,                      # IN   the integers of `dpestim_pm_law`, in order, without the reciprocals
    code_t[::1] out,                # OUT  codes
):
    """Answer every record: unbiased rounding to the grid, then the piecewise law."""
    cdef Py_ssize_t n = fixed.shape[0]
    cdef dpestim_pm_law c
    if lanes.shape[0] != n or words.shape[0] != n or out.shape[0] != n:
        raise ValueError("fixed, lanes, words and out differ in length")
    (c.high_inside, c.low_inside, c.inside, c.outside, c.window, c.zone, c.zone_size, c.merge, c.drop, c.levels,
     c.low_zone, c.low_gap) = law
    if n == 0:
        return
    c.per_inside = <uint64_t>0xFFFFFFFFFFFFFFFFULL // c.inside
    c.per_outside = <uint64_t>0xFFFFFFFFFFFFFFFFULL // c.outside
    with nogil:
        dpestim_pm_answer_all(&fixed[0], &lanes[0], &words[0], n, &c, <void *>&out[0], sizeof(code_t))


def mix(
    const int64_t[::1] fixed,       # IN   as `encode` writes them, none of low sensitivity
    const uint32_t[::1] lanes,      # IN   a random number each, for the rounding
    const uint64_t[::1] words,      # IN   a random word each, for the answer
    tuple law,                      # IN   the integers of `dpestim_hm_law`, in order, without the reciprocals
    code_t[::1] out,                # OUT  codes
):
    """Answer every record: unbiased rounding to the grid, then the hybrid law."""
    cdef Py_ssize_t n = fixed.shape[0]
    cdef dpestim_hm_law c
    if lanes.shape[0] != n or words.shape[0] != n or out.shape[0] != n:
        raise ValueError("fixed, lanes, words and out differ in length")
    c.inside_words, c.inside, c.outside, c.window, c.piecewise, c.minus, c.least, c.rise = law
    if n == 0:
        return
    c.per_inside = <uint64_t>0xFFFFFFFFFFFFFFFFULL // c.inside
    c.per_outside = <uint64_t>0xFFFFFFFFFFFFFFFFULL // c.outside
    with nogil:
        dpestim_hm_answer_all(&fixed[0], &lanes[0], &words[0], n, &c, <void *>&out[0], sizeof(code_t))
