#ifndef DPESTIM_STREAMS_H
#define DPESTIM_STREAMS_H

#include <stddef.h>
#include <stdint.h>

/* More decaying sums than this are never used. */
#define DPESTIM_STREAM_SUMS 64

typedef __int128 dpestim_s128;

/* Codes of a stream: w_t = (direct x_t + sum of weights[a] s_a) / 2^(down), rounded down, plus noise z_t, as a float of
   2^-scale units. s_a = s_a - s_a / 2^shifts[a] (rounded down) + 2^fraction x_t. Everything is exact up to the last
   conversion, in integers below 2^126. */
static inline void dpestim_stream_codes(
    const int64_t *x, const int64_t *z, size_t n, size_t k, const int32_t *shifts, const int64_t *weights,
    int64_t direct, int fraction, int down, double unit, uint64_t *state, double *codes)
{
    dpestim_s128 sums[DPESTIM_STREAM_SUMS];
    const dpestim_s128 one = (dpestim_s128)1 << fraction;
    for (size_t a = 0; a < k; a++)
        sums[a] = (dpestim_s128)(((unsigned __int128)state[2 * a + 1] << 64) | state[2 * a]);
    for (size_t t = 0; t < n; t++) {
        const dpestim_s128 moved = x[t] * one;
        dpestim_s128 code = direct * moved;
        for (size_t a = 0; a < k; a++) {
            sums[a] += moved - (sums[a] >> shifts[a]);
            code += weights[a] * sums[a];
        }
        codes[t] = (double)((code >> down) + z[t]) * unit;
    }
    for (size_t a = 0; a < k; a++) {
        state[2 * a] = (uint64_t)sums[a];
        state[2 * a + 1] = (uint64_t)((unsigned __int128)sums[a] >> 64);
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
