#ifndef DPESTIM_STREAMS_H
#define DPESTIM_STREAMS_H

#include <stddef.h>
#include <stdint.h>
#include "wide_int.h"

/* More decaying sums than this are never used. */
#define DPESTIM_STREAM_SUMS 64

/* Codes of a stream: w_t = (direct x_t + sum of weights[a] s_a) / 2^(down), rounded down, plus noise z_t, as a float of
   2^-scale units. s_a = s_a - s_a / 2^shifts[a] (rounded down) + 2^fraction x_t. Everything is exact up to the last
   conversion, in integers below 2^126. */
static inline void dpestim_stream_codes(
    const int64_t *x, const int64_t *z, size_t n, size_t k, const int32_t *shifts, const int64_t *weights,
    int64_t direct, int fraction, int down, double unit, uint64_t *state, double *codes)
{
    dpestim_u128 sums[DPESTIM_STREAM_SUMS]; /* signed */
    for (size_t a = 0; a < k; a++)
        sums[a] = dpestim_join(state[2 * a + 1], state[2 * a]);
    for (size_t t = 0; t < n; t++) {
        const dpestim_u128 moved = dpestim_up(dpestim_signed(x[t]), fraction);
        dpestim_u128 code = dpestim_signed_multiple(moved, direct);
        for (size_t a = 0; a < k; a++) {
            const dpestim_u128 lost = dpestim_signed_down(sums[a], shifts[a]);
            sums[a] = dpestim_plus(sums[a], dpestim_minus(moved, lost));
            code = dpestim_plus(code, dpestim_signed_multiple(sums[a], weights[a]));
        }
        codes[t] = dpestim_signed_float(dpestim_plus(dpestim_signed_down(code, down), dpestim_signed(z[t]))) * unit;
    }
    for (size_t a = 0; a < k; a++) {
        state[2 * a] = dpestim_low_word(sums[a]);
        state[2 * a + 1] = dpestim_high_word(sums[a]);
    }
}

/* The running totals of the stream whose codes these are: u_t solves codes_t = first u_t + sum of omega[a] rest[a] q_a,
   q_a = rest[a] q_a + u_t, and a total is the sum of u. In place; state is q_0, q_1, ..., and the total. */
static inline void dpestim_stream_totals(
    double *codes, size_t n, size_t k, const double *omega, const double *rest, double first, double *state)
{
    double q[DPESTIM_STREAM_SUMS], total = state[k];
    for (size_t a = 0; a < k; a++) q[a] = state[a];
    for (size_t t = 0; t < n; t++) {
        double u = codes[t];
        for (size_t a = 0; a < k; a++) {
            q[a] *= rest[a];
            u -= omega[a] * q[a];
        }
        u /= first;
        for (size_t a = 0; a < k; a++) q[a] += u;
        total += u;
        codes[t] = total;
    }
    for (size_t a = 0; a < k; a++) state[a] = q[a];
    state[k] = total;
}

#endif
