/* Numbers become integers in floats, each by itself: vectors of every width do it alike. */
#ifndef DPESTIM_MOMENTS_H
#define DPESTIM_MOMENTS_H

#include <stddef.h>

#include "wide.h"

/* The nearest integers to (x - center) factor, cut to [-most, most]; -most for NaN. Rows of `out` are `width` apart. */
DPESTIM_WIDE static void dpestim_round_rows(const double *x, ptrdiff_t n, ptrdiff_t d, const double *centers,
                                            const double *factors, double most, ptrdiff_t width, double *out) {
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: floats next to it are the integers */
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *from = x + i * d;
        double *to = out + i * width;
        DPESTIM_INDEPENDENT
        for (ptrdiff_t j = 0; j < d; j++) {
            double value = (from[j] - centers[j]) * factors[j];
            value = value > -most ? value : -most;
            value = value < most ? value : most;
            to[j] = (value + magic) - magic;
        }
    }
}

/* Sums of products of every two columns, at and above the diagonal (and some below it), added to `sums` (width, width).
 * Integers whose sums are below 2^53: exact in any order, and with one rounding or two. `width` is a multiple of 8. */
static void dpestim_products_plain(const double *x, ptrdiff_t n, ptrdiff_t width, double *sums) {
    for (ptrdiff_t r = 0; r < n; r++)
        for (ptrdiff_t i = 0; i < width; i++)
            for (ptrdiff_t j = i / 8 * 8; j < width; j++) sums[i * width + j] += x[r * width + i] * x[r * width + j];
}

#if DPESTIM_HAS_WIDE
#include <immintrin.h>
#define DPESTIM_PART_ROWS 128 /* rows that stay in the nearest cache meanwhile */

/* By tiles of four columns and `many` vectors of columns from `j` on. */
#define DPESTIM_PRODUCTS(target, name, each, V, p, lanes, most)                                                       \
    target DPESTIM_INLINE void each(const double *x, ptrdiff_t n, ptrdiff_t width, ptrdiff_t i, ptrdiff_t j, int many, \
                                    double *sums) {                                                                   \
        V sum[4][most];                                                                                               \
        for (int a = 0; a < 4; a++)                                                                                   \
            for (int q = 0; q < many; q++) sum[a][q] = p##loadu_pd(sums + (i + a) * width + j + q * lanes);            \
        for (ptrdiff_t r = 0; r < n; r++) {                                                                           \
            const double *row = x + r * width;                                                                        \
            for (int a = 0; a < 4; a++) {                                                                             \
                const V by = p##set1_pd(row[i + a]);                                                                   \
                for (int q = 0; q < many; q++)                                                                        \
                    sum[a][q] = p##fmadd_pd(by, p##loadu_pd(row + j + q * lanes), sum[a][q]);                          \
            }                                                                                                         \
        }                                                                                                             \
        for (int a = 0; a < 4; a++)                                                                                   \
            for (int q = 0; q < many; q++) p##storeu_pd(sums + (i + a) * width + j + q * lanes, sum[a][q]);            \
    }                                                                                                                 \
    target static void name(const double *x, ptrdiff_t n, ptrdiff_t width, double *sums) {                            \
        for (ptrdiff_t at = 0; at < n; at += DPESTIM_PART_ROWS) {                                                     \
            ptrdiff_t m = n - at < DPESTIM_PART_ROWS ? n - at : DPESTIM_PART_ROWS;                                    \
            for (ptrdiff_t i = 0; i < width; i += 4) {                                                                \
                ptrdiff_t j = i / 8 * 8;                                                                              \
                for (; j + most * lanes <= width; j += most * lanes) each(x + at * width, m, width, i, j, most, sums); \
                for (; j + 2 * lanes <= width; j += 2 * lanes) each(x + at * width, m, width, i, j, 2, sums);          \
                for (; j < width; j += lanes) each(x + at * width, m, width, i, j, 1, sums);                           \
            }                                                                                                         \
        }                                                                                                             \
    }
DPESTIM_PRODUCTS(DPESTIM_TARGET("arch=x86-64-v3"), dpestim_products_256, dpestim_tile_256, __m256d, _mm256_, 4, 2)
DPESTIM_PRODUCTS(DPESTIM_TARGET("arch=x86-64-v4"), dpestim_products_512, dpestim_tile_512, __m512d, _mm512_, 8, 3)
#endif

static void dpestim_products(const double *x, ptrdiff_t n, ptrdiff_t width, int bits, double *sums) {
#if DPESTIM_HAS_WIDE
    if (bits >= 512) {
        dpestim_products_512(x, n, width, sums);
        return;
    }
    if (bits >= 256) {
        dpestim_products_256(x, n, width, sums);
        return;
    }
#endif
    (void)bits;
    dpestim_products_plain(x, n, width, sums);
}
#endif
