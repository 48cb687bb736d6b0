/* Exact sums of the points of a grid, and of their squares: integers in floats that add up below 2^53, so that vectors of
 * every width return the same. One pass, at the speed of memory. */
#ifndef DPESTIM_SUMS_H
#define DPESTIM_SUMS_H

#include <stddef.h>

#include "portable.h"
#include "wide.h"

#define DPESTIM_SUM_LANES 8

/* A grid: a value, clipped to [least, most], times scale (a power of two) and less low, lies in [0, span]; NaN is in the
 * middle. */
typedef struct {
    double scale, low, middle, least, most;
} dpestim_grid;

/* The nearest point to a value, counted from the first point. Comparisons in place of branches. */
DPESTIM_INLINE double dpestim_point(double value, dpestim_grid grid) {
    const double shift = 4503599627370496.0; /* 2^52: adding it rounds to an integer */
    value = value < grid.least ? grid.least : value;
    value = value > grid.most ? grid.most : value;
    double at = value * grid.scale - grid.low, whole;
    at = at != at ? grid.middle : at;
    at += 0.5;
    whole = (at + shift) - shift; /* to the nearest, and down from there */
    return whole - (whole > at ? 1.0 : 0.0);
}

/* out: the sum of the nearest points, counted from the first, and 0; or with `squares` that of the points counted from the
 * middle, and of their squares; then the sum of the values, which is finite only if all of them are. */
DPESTIM_INLINE void dpestim_sums_plain(const double *x, ptrdiff_t n, const dpestim_grid *at, int squares, double *out) {
    const dpestim_grid grid = *at;
    const double from = squares ? grid.middle : 0.0;
    double lane[DPESTIM_SUM_LANES] = {0}, square[DPESTIM_SUM_LANES] = {0}, raw[DPESTIM_SUM_LANES] = {0};
    ptrdiff_t i = 0;
    for (; i + DPESTIM_SUM_LANES <= n; i += DPESTIM_SUM_LANES)
        for (int k = 0; k < DPESTIM_SUM_LANES; k++) {
            double point = dpestim_point(x[i + k], grid) - from;
            if (squares) square[k] += point * point;
            lane[k] += point;
            raw[k] += x[i + k];
        }
    for (int k = 0; i < n; i++, k++) {
        double point = dpestim_point(x[i], grid) - from;
        if (squares) square[k] += point * point;
        lane[k] += point;
        raw[k] += x[i];
    }
    out[0] = out[1] = out[2] = 0.0;
    for (int k = 0; k < DPESTIM_SUM_LANES; k++) {
        out[0] += lane[k];
        out[1] += square[k];
        out[2] += raw[k];
    }
}

#if defined(__x86_64__) && DPESTIM_GNU
#include <immintrin.h>

/* Bytes from what is read to what is asked for, a page: processors stop asking of themselves where a page ends, and do
 * so much with each number that too few others would be on their way from memory. */
#define DPESTIM_SUMS_AHEAD 4096

/* The same by vectors; `scaled` is a product less a number, which may be fused, as multiplying by a power of two is exact.
 * `max` and `min` keep their second argument if it is no number. What is left over goes the plain way. */
#define DPESTIM_SUMS(target, name, V, lanes, p, scaled, known, down)                                                \
    target static void name(const double *x, ptrdiff_t n, const dpestim_grid *grid, int squares,                    \
                                          double *out) {                                                            \
        const V least = p##set1_pd(grid->least), most = p##set1_pd(grid->most), scale = p##set1_pd(grid->scale),    \
                low = p##set1_pd(grid->low), middle = p##set1_pd(grid->middle), half = p##set1_pd(0.5);             \
        V sum[2], square[2], raw[2];                                                                                \
        double part[lanes], rest[3];                                                                                \
        ptrdiff_t i = 0;                                                                                            \
        for (int k = 0; k < 2; k++) sum[k] = square[k] = raw[k] = p##setzero_pd();                                  \
        for (; i + 2 * lanes <= n; i += 2 * lanes)                                                                  \
            for (int k = 0; k < 2; k++) {                                                                           \
                V value = p##loadu_pd(x + i + k * lanes), at;                                                       \
                _mm_prefetch((const char *)(x + i + k * lanes) + DPESTIM_SUMS_AHEAD, _MM_HINT_T0);                  \
                raw[k] = p##add_pd(raw[k], value);                                                                  \
                value = p##min_pd(most, p##max_pd(least, value));                                                   \
                at = scaled(value, scale, low);                                                                     \
                known(at, middle);                                                                                  \
                at = down(p##add_pd(at, half));                                                                     \
                if (squares) at = p##sub_pd(at, middle);                                                            \
                sum[k] = p##add_pd(sum[k], at);                                                                     \
                if (squares) square[k] = p##add_pd(square[k], p##mul_pd(at, at));                                   \
            }                                                                                                       \
        dpestim_sums_plain(x + i, n - i, grid, squares, rest);                                                      \
        for (int j = 0; j < 3; j++) {                                                                               \
            V *of = j == 0 ? sum : j == 1 ? square : raw;                                                           \
            p##storeu_pd(part, p##add_pd(of[0], of[1]));                                                            \
            for (int k = 0; k < lanes; k++) rest[j] += part[k];                                                     \
            out[j] = rest[j];                                                                                       \
        }                                                                                                           \
    }
#define DPESTIM_KNOWN_128(at, middle)                            \
    at = _mm_or_pd(_mm_and_pd(_mm_cmpord_pd(at, at), at), _mm_andnot_pd(_mm_cmpord_pd(at, at), middle))

DPESTIM_INLINE __m128d dpestim_down(__m128d at) { /* numbers from 0 to 2^51, by adding 2^52 */
    const __m128d shift = _mm_set1_pd(4503599627370496.0);
    __m128d whole = _mm_sub_pd(_mm_add_pd(at, shift), shift);
    return _mm_sub_pd(whole, _mm_and_pd(_mm_cmpgt_pd(whole, at), _mm_set1_pd(1.0)));
}

#define DPESTIM_SCALED_128(value, scale, low) _mm_sub_pd(_mm_mul_pd(value, scale), low)
DPESTIM_SUMS(, dpestim_sums_128, __m128d, 2, _mm_, DPESTIM_SCALED_128, DPESTIM_KNOWN_128, dpestim_down)
#define DPESTIM_HAS_SUMS 1

#if DPESTIM_HAS_WIDE
#define DPESTIM_KNOWN_256(at, middle) at = _mm256_blendv_pd(middle, at, _mm256_cmp_pd(at, at, _CMP_ORD_Q))
#define DPESTIM_KNOWN_512(at, middle) \
    at = _mm512_mask_mov_pd(middle, _mm512_cmp_pd_mask(at, at, _CMP_ORD_Q), at)
#define DPESTIM_DOWN_512(at) _mm512_roundscale_pd(at, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
DPESTIM_SUMS(DPESTIM_TARGET("arch=x86-64-v3"), dpestim_sums_256, __m256d, 4, _mm256_, _mm256_fmsub_pd,
             DPESTIM_KNOWN_256, _mm256_floor_pd)
DPESTIM_SUMS(DPESTIM_TARGET("arch=x86-64-v4"), dpestim_sums_512, __m512d, 8, _mm512_, _mm512_fmsub_pd,
             DPESTIM_KNOWN_512, DPESTIM_DOWN_512)
#endif
#endif

/* `bits`: the width of vectors that may be used. What is added, n times, stays below 2^53. */
static void dpestim_sum_points(const double *x, ptrdiff_t n, const dpestim_grid *grid, int squares, int bits,
                               double *out) {
#if DPESTIM_HAS_WIDE
    if (bits >= 512) {
        dpestim_sums_512(x, n, grid, squares, out);
        return;
    }
    if (bits >= 256) {
        dpestim_sums_256(x, n, grid, squares, out);
        return;
    }
#endif
#ifdef DPESTIM_HAS_SUMS
    if (bits >= 128) {
        dpestim_sums_128(x, n, grid, squares, out);
        return;
    }
#endif
    (void)bits;
    dpestim_sums_plain(x, n, grid, squares, out);
}
#endif
