/* Rows, clipped to bounds, in terms of components: one pass, sixteen rows at a time side by side. A sum is over columns
 * in their order, so that vectors of every width return the same. */
#ifndef DPESTIM_PROJECT_H
#define DPESTIM_PROJECT_H

#include <math.h>
#include <stddef.h>

#include "scaled.h"
#include "scores.h"

/* Bounds of columns, (k, d) components, what is added to each score, what it is divided by (or NULL), and the length
 * that rows of scores keep. */
typedef struct {
    const double *low, *high, *w, *constant, *by;
    double longest;
} dpestim_components;

/* Sums of sixteen rows that stand side by side: to out[component * 16 + row]. */
static void dpestim_project_plain(const double *z, ptrdiff_t d, const double *w, ptrdiff_t k, double *out) {
    for (ptrdiff_t c = 0; c < k; c++) {
        double sum[DPESTIM_ABREAST] = {0};
        for (ptrdiff_t j = 0; j < d; j++)
            for (int r = 0; r < DPESTIM_ABREAST; r++) sum[r] += z[j * DPESTIM_ABREAST + r] * w[c * d + j];
        memcpy(out + c * DPESTIM_ABREAST, sum, sizeof sum);
    }
}

#if DPESTIM_HAS_WIDE
/* ... By vectors, for as many components at a time as there are registers for. */
#define DPESTIM_PROJECT(target, name, each, V, p, lanes, together)                                                    \
    target DPESTIM_INLINE void each(const double *z, ptrdiff_t d, const double *w, int some, double *out) {           \
        V sum[together][DPESTIM_ABREAST / lanes];                                                                     \
        for (int a = 0; a < some; a++)                                                                                \
            for (int q = 0; q < DPESTIM_ABREAST / lanes; q++) sum[a][q] = p##setzero_pd();                             \
        for (ptrdiff_t j = 0; j < d; j++)                                                                             \
            for (int a = 0; a < some; a++) {                                                                          \
                const V weight = p##set1_pd(w[a * d + j]);                                                             \
                for (int q = 0; q < DPESTIM_ABREAST / lanes; q++) {                                                   \
                    V value = p##loadu_pd(z + j * DPESTIM_ABREAST + q * lanes);                                        \
                    sum[a][q] = p##add_pd(sum[a][q], p##mul_pd(value, weight));                                        \
                }                                                                                                     \
            }                                                                                                         \
        for (int a = 0; a < some; a++)                                                                                \
            for (int q = 0; q < DPESTIM_ABREAST / lanes; q++)                                                         \
                p##storeu_pd(out + a * DPESTIM_ABREAST + q * lanes, sum[a][q]);                                        \
    }                                                                                                                 \
    target static void name(const double *z, ptrdiff_t d, const double *w, ptrdiff_t k, double *out) {                \
        ptrdiff_t c = 0;                                                                                              \
        for (; c + together <= k; c += together) each(z, d, w + c * d, together, out + c * DPESTIM_ABREAST);           \
        for (; c < k; c++) each(z, d, w + c * d, 1, out + c * DPESTIM_ABREAST);                                        \
    }
DPESTIM_PROJECT(DPESTIM_TARGET("arch=x86-64-v3"), dpestim_project_256, dpestim_project_each_256, __m256d, _mm256_, 4, 2)
DPESTIM_PROJECT(DPESTIM_TARGET("arch=x86-64-v4"), dpestim_project_512, dpestim_project_each_512, __m512d, _mm512_, 8, 5)
#endif

#if DPESTIM_HAS_WIDE
/* The first scores of sixteen rows, by squares of four; returns of how many components. */
DPESTIM_TARGET("arch=x86-64-v3") static ptrdiff_t dpestim_turn_back_256(const double *score, ptrdiff_t k, double *out) {
    ptrdiff_t whole = k - k % 4, s = DPESTIM_ABREAST;
    for (ptrdiff_t c = 0; c < whole; c += 4)
        for (ptrdiff_t r = 0; r < DPESTIM_ABREAST; r += 4) {
            const double *at = score + c * s + r;
            double *to = out + r * k + c;
            dpestim_four a = *(const dpestim_four *)at, b = *(const dpestim_four *)(at + s);
            dpestim_four e = *(const dpestim_four *)(at + 2 * s), f = *(const dpestim_four *)(at + 3 * s);
            dpestim_four ab = DPESTIM_CHOSEN(a, b, 0, 4, 2, 6), ba = DPESTIM_CHOSEN(a, b, 1, 5, 3, 7);
            dpestim_four ef = DPESTIM_CHOSEN(e, f, 0, 4, 2, 6), fe = DPESTIM_CHOSEN(e, f, 1, 5, 3, 7);
            *(dpestim_four *)to = DPESTIM_CHOSEN(ab, ef, 0, 1, 4, 5);
            *(dpestim_four *)(to + k) = DPESTIM_CHOSEN(ba, fe, 0, 1, 4, 5);
            *(dpestim_four *)(to + 2 * k) = DPESTIM_CHOSEN(ab, ef, 2, 3, 6, 7);
            *(dpestim_four *)(to + 3 * k) = DPESTIM_CHOSEN(ba, fe, 2, 3, 6, 7);
        }
    return whole;
}
#endif

/* z: d and k times sixteen numbers of scratch. Whether all values are finite. */
DPESTIM_WIDE static int dpestim_project(const double *x, ptrdiff_t n, ptrdiff_t d, const dpestim_components *of,
                                        ptrdiff_t k, int bits, double *z, double *out) {
    double *score = z + d * DPESTIM_ABREAST;
    uint64_t odd = 0;
    for (ptrdiff_t i = 0; i < n; i += DPESTIM_ABREAST) {
        ptrdiff_t m = n - i < DPESTIM_ABREAST ? n - i : DPESTIM_ABREAST;
        double square[DPESTIM_ABREAST] = {0}, factor[DPESTIM_ABREAST];
        dpestim_turn(x + i * d, m, d, d, 1, bits, z);
        for (ptrdiff_t j = 0; j < d; j++) {
            double least = of->low[j], most = of->high[j], *side = z + j * DPESTIM_ABREAST;
            DPESTIM_AT_ONCE
            for (int r = 0; r < DPESTIM_ABREAST; r++) {
                double value = side[r];
                odd |= dpestim_odd(value);
                value = value < least ? least : value;
                side[r] = value > most ? most : value;
            }
        }
#if DPESTIM_HAS_WIDE
        if (bits >= 512) dpestim_project_512(z, d, of->w, k, score);
        else if (bits >= 256) dpestim_project_256(z, d, of->w, k, score);
        else
#endif
            dpestim_project_plain(z, d, of->w, k, score);
        for (ptrdiff_t c = 0; c < k; c++)
            DPESTIM_AT_ONCE
            for (int r = 0; r < DPESTIM_ABREAST; r++) {
                double value = score[c * DPESTIM_ABREAST + r] + of->constant[c];
                square[r] += value * value;
                score[c * DPESTIM_ABREAST + r] = value;
            }
        DPESTIM_AT_ONCE
        for (int r = 0; r < DPESTIM_ABREAST; r++) {
            double length = sqrt(square[r]);
            factor[r] = length > of->longest ? of->longest / length : 1.0;
        }
        for (ptrdiff_t c = 0; c < k; c++) {
            double *side = score + c * DPESTIM_ABREAST;
            DPESTIM_AT_ONCE
            for (int r = 0; r < DPESTIM_ABREAST; r++) side[r] *= factor[r];
            DPESTIM_AT_ONCE
            for (int r = 0; of->by && r < DPESTIM_ABREAST; r++) side[r] /= of->by[c];
        }
        ptrdiff_t from = 0;
#if DPESTIM_HAS_WIDE
        if (bits >= 256 && m == DPESTIM_ABREAST) from = dpestim_turn_back_256(score, k, out + i * k);
#endif
        for (ptrdiff_t r = 0; r < m; r++)
            for (ptrdiff_t c = from; c < k; c++) out[(i + r) * k + c] = score[c * DPESTIM_ABREAST + r];
    }
    return !(odd >> 63);
}
#endif
