"""Running sums of streams with noise, step by step in O(log n) memory. Proof: stream/counter.md."""

from libc.stdint cimport int32_t, int64_t, uint64_t

cdef extern from "streams.h" nogil:
    enum: DPESTIM_STREAM_SUMS
    void dpestim_stream_codes(const int64_t *x, const int64_t *z, size_t n, size_t k, const int32_t *shifts,
                              const int64_t *weights, int64_t direct, int fraction, int down, double unit,
                              uint64_t *state, double *codes) noexcept
    void dpestim_stream_totals(double *codes, size_t n, size_t k, const double *omega, const double *rest,
                               double first, double *state) noexcept


def codes(
    const int64_t[::1] x,         # IN   integers of the stream
    const int64_t[::1] z,         # IN   noise
    const int32_t[::1] shifts,    # IN   (k,) a sum decays by a factor of 1 - 2^-shift a step
    const int64_t[::1] weights,   # IN   (k,) not negative
    int64_t direct,               # IN   weight of the step itself
    int fraction,                 # IN   binary digits of the sums behind the point
    int down,                     # IN   by how many digits a code is shifted
    double unit,                  # IN   what a float of the output is multiplied by, a power of two
    uint64_t[:, ::1] state,       # IN and OUT  (k, 2) low and high words of the sums
    double[::1] out,              # OUT
):
    """Write the noisy codes of the next steps. The caller sees to it that no integer reaches 2^126."""
    cdef size_t n = x.shape[0], k = shifts.shape[0]
    if (z.shape[0] != x.shape[0] or out.shape[0] != x.shape[0] or weights.shape[0] != shifts.shape[0]
            or state.shape[0] != shifts.shape[0] or state.shape[1] != 2 or not 0 < k <= DPESTIM_STREAM_SUMS
            or not 0 <= fraction < 126 or not 0 <= down < 126):
        raise ValueError("x, z, shifts, weights, state and out do not fit")
    if n:
        with nogil:
            dpestim_stream_codes(&x[0], &z[0], n, k, &shifts[0], &weights[0], direct, fraction, down, unit,
                                 &state[0, 0], &out[0])


def totals(
    double[::1] values,         # IN   codes   OUT  running totals
    const double[::1] omega,    # IN   (k,) weights
    const double[::1] rest,     # IN   (k,) 1 - 2^-shift
    double first,               # IN   the first coefficient
    double[::1] state,          # IN and OUT  (k + 1,)
):
    """Turn codes into running totals of the stream whose codes they are."""
    cdef size_t n = values.shape[0], k = omega.shape[0]
    if rest.shape[0] != omega.shape[0] or state.shape[0] != omega.shape[0] + 1 or not 0 < k <= DPESTIM_STREAM_SUMS:
        raise ValueError("omega, rest and state differ in length")
    if n:
        with nogil:
            dpestim_stream_totals(&values[0], n, k, &omega[0], &rest[0], first, &state[0])


def tree(
    const int64_t[::1] x,     # IN   integers of the stream
    const int64_t[::1] z,     # IN   noise
    uint64_t first,           # IN   the number of the first of these steps, from 1
    int64_t[::1] state,       # IN and OUT  (65,) noise of prefixes: state[j] of the last whose number ends in j zeros;
                              #             the last one is the exact total
    int64_t[::1] out,         # OUT
):
    """Write running totals with the noise of a binary tree: of a prefix of t steps one number for each one bit of t.

    The prefix of t steps is that of t without its lowest one bit, and a node with a noise of its own.
    """
    cdef Py_ssize_t i, n = x.shape[0]
    cdef uint64_t t, rest
    cdef int low, up
    cdef int64_t total, noise
    if z.shape[0] != n or out.shape[0] != n or state.shape[0] != 65 or first < 1:
        raise ValueError("x, z, state and out differ in length")
    total = state[64]
    with nogil:
        for i in range(n):
            t = first + <uint64_t>i
            low = 0
            while not (t >> low) & 1:
                low += 1
            rest = t & (t - 1)
            noise = z[i]
            if rest:
                up = 0
                while not (rest >> up) & 1:
                    up += 1
                noise += state[up]
            state[low] = noise
            total += x[i]
            out[i] = total + noise
    state[64] = total
