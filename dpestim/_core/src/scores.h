/* Linear scores of rows that are clipped to a norm, in one pass over them: sixteen rows at a time side by side, each
 * summed over its columns in their order, whatever the vectors and the order of the table in memory are. */
#ifndef DPESTIM_SCORES_H
#define DPESTIM_SCORES_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "logistic.h"
#include "portable.h"
#include "wide.h"

#define DPESTIM_ABREAST 16 /* rows side by side */

/* What columns are before they are scored. kind 0: as they are; 1: (x - low) by - shift, clipped to [-1, 1]; 2: x between
 * low and high, times by. */
typedef struct {
    const double *low, *high, *by, *shift;
    int kind;
    double inverse, limit; /* 1 / the declared norm, and the norm that clipped rows keep */
} dpestim_columns;

DPESTIM_INLINE double dpestim_in_unit(double x, const dpestim_columns *of, ptrdiff_t j, int kind) {
    if (kind == 1) {
        x = (x - of->low[j]) * of->by[j] - of->shift[j];
        x = x < -1.0 ? -1.0 : x;
        return x > 1.0 ? 1.0 : x;
    }
    if (kind == 2) {
        x = x < of->low[j] ? of->low[j] : x;
        return (x > of->high[j] ? of->high[j] : x) * of->by[j];
    }
    return x;
}

/* Sixteen rows turned over: z[j * 16 + r] is column j of row r; rows beyond the last are zeros. */
DPESTIM_INLINE void dpestim_turn_plain(const double *x, ptrdiff_t m, ptrdiff_t d, ptrdiff_t row, ptrdiff_t column,
                                       ptrdiff_t from, double *z) {
    for (ptrdiff_t r = 0; r < DPESTIM_ABREAST; r++)
        for (ptrdiff_t j = from; j < d; j++) z[j * DPESTIM_ABREAST + r] = r < m ? x[r * row + j * column] : 0.0;
}

#if DPESTIM_HAS_WIDE
DPESTIM_VECTOR(double, 32, dpestim_four);

/* The first columns, by squares of four rows and four columns, where rows are contiguous; returns how many. */
DPESTIM_TARGET("arch=x86-64-v3") static ptrdiff_t dpestim_turn_256(const double *x, ptrdiff_t d, ptrdiff_t row,
                                                                  double *z) {
    ptrdiff_t whole = d - d % 4;
    for (ptrdiff_t r = 0; r < DPESTIM_ABREAST; r += 4) {
        const double *at = x + r * row;
        for (ptrdiff_t j = 0; row < DPESTIM_WIDEST && j < 4 * row; j += 8)
            DPESTIM_FETCH_TO_READ(at + 3 * DPESTIM_ABREAST * row + j);
        for (ptrdiff_t j = 0; j < whole; j += 4) {
            double *to = z + j * DPESTIM_ABREAST + r;
            dpestim_four a = *(const dpestim_four *)(at + j), b = *(const dpestim_four *)(at + row + j);
            dpestim_four c = *(const dpestim_four *)(at + 2 * row + j), e = *(const dpestim_four *)(at + 3 * row + j);
            dpestim_four ab = DPESTIM_CHOSEN(a, b, 0, 4, 2, 6), ba = DPESTIM_CHOSEN(a, b, 1, 5, 3, 7);
            dpestim_four ce = DPESTIM_CHOSEN(c, e, 0, 4, 2, 6), ec = DPESTIM_CHOSEN(c, e, 1, 5, 3, 7);
            *(dpestim_four *)to = DPESTIM_CHOSEN(ab, ce, 0, 1, 4, 5);
            *(dpestim_four *)(to + DPESTIM_ABREAST) = DPESTIM_CHOSEN(ba, ec, 0, 1, 4, 5);
            *(dpestim_four *)(to + 2 * DPESTIM_ABREAST) = DPESTIM_CHOSEN(ab, ce, 2, 3, 6, 7);
            *(dpestim_four *)(to + 3 * DPESTIM_ABREAST) = DPESTIM_CHOSEN(ba, ec, 2, 3, 6, 7);
        }
    }
    return whole;
}
#endif

DPESTIM_INLINE void dpestim_turn(const double *x, ptrdiff_t m, ptrdiff_t d, ptrdiff_t row, ptrdiff_t column, int bits,
                                 double *z) {
    ptrdiff_t from = 0;
#if DPESTIM_HAS_WIDE
    if (bits >= 256 && column == 1 && m == DPESTIM_ABREAST) from = dpestim_turn_256(x, d, row, z);
#endif
    (void)bits;
    dpestim_turn_plain(x, m, d, row, column, from, z);
}

/* The scores of one row, whose values may be anything: one after the other; whether all values are finite. */
static int dpestim_one_row(const double *x, ptrdiff_t d, ptrdiff_t step, const dpestim_columns *of, const double *w,
                           ptrdiff_t k, const double *constant, double *one, double *out) {
    int finite = 1;
    for (ptrdiff_t j = 0; j < d; j++) {
        finite &= x[j * step] - x[j * step] == 0.0;
        one[j] = dpestim_in_unit(x[j * step], of, j, of->kind);
    }
    double factor = dpestim_clip(one, d, of->inverse, of->limit);
    for (ptrdiff_t c = 0; c < k; c++) {
        double sum = 0.0;
        for (ptrdiff_t j = 0; factor != 0.0 && j < d; j++) sum += one[j] * factor * w[c * d + j];
        out[c] = sum + constant[c];
    }
    return finite;
}

/* What sixteen rows add up to: their values as they are (if they are scaled), squares, and products with weights. */
static void dpestim_add_rows(const double *side, ptrdiff_t step, ptrdiff_t d, const dpestim_columns *of,
                             const double *w, double *raw, double *norm, double *sum) {
    const int kind = of->kind;
    double own[3][DPESTIM_ABREAST] = {{0}};
    for (ptrdiff_t j = 0; j < d; j++) {
        const double *from = side + j * step, weight = w[j];
        for (int r = 0; r < DPESTIM_ABREAST; r++) {
            double value = dpestim_in_unit(from[r], of, j, kind);
            if (kind) own[0][r] += from[r];
            own[1][r] += value * value;
            own[2][r] += value * weight;
        }
    }
    memcpy(raw, own[0], sizeof own[0]);
    memcpy(norm, own[1], sizeof own[1]);
    memcpy(sum, own[2], sizeof own[2]);
}

#if DPESTIM_HAS_WIDE
#include <immintrin.h>

/* ... By vectors; columns of the next rows are fetched where they are far apart. */
#define DPESTIM_ADD_ROWS(name, V, p, lanes)                                                                           \
    DPESTIM_INLINE void name(const double *side, ptrdiff_t step, ptrdiff_t d, const dpestim_columns *of, int kind,     \
                             const double *w, double *raw, double *norm, double *sum) {                               \
        const V one = p##set1_pd(1.0), minus = p##set1_pd(-1.0);                                                       \
        V x[DPESTIM_ABREAST / lanes], y[DPESTIM_ABREAST / lanes], u[DPESTIM_ABREAST / lanes];                          \
        for (int q = 0; q < DPESTIM_ABREAST / lanes; q++) x[q] = y[q] = u[q] = p##setzero_pd();                        \
        for (ptrdiff_t j = 0; j < d; j++) {                                                                           \
            const double *from = side + j * step;                                                                     \
            const V weight = p##set1_pd(w[j]);                                                                        \
            if (step != DPESTIM_ABREAST) {                                                                            \
                DPESTIM_FETCH_TO_READ(from + 8 * DPESTIM_ABREAST);                                                     \
                DPESTIM_FETCH_TO_READ(from + 8 * DPESTIM_ABREAST + 8);                                                 \
            }                                                                                                         \
            for (int q = 0; q < DPESTIM_ABREAST / lanes; q++) {                                                       \
                V value = p##loadu_pd(from + q * lanes);                                                               \
                if (kind) u[q] = p##add_pd(u[q], value);                                                               \
                if (kind == 1) {                                                                                      \
                    value = p##mul_pd(p##sub_pd(value, p##set1_pd(of->low[j])), p##set1_pd(of->by[j]));                  \
                    value = p##sub_pd(value, p##set1_pd(of->shift[j]));                                                 \
                    value = p##min_pd(one, p##max_pd(minus, value));                                                    \
                } else if (kind == 2) {                                                                               \
                    value = p##min_pd(p##set1_pd(of->high[j]), p##max_pd(p##set1_pd(of->low[j]), value));                \
                    value = p##mul_pd(value, p##set1_pd(of->by[j]));                                                    \
                }                                                                                                     \
                x[q] = p##add_pd(x[q], p##mul_pd(value, value));                                                       \
                y[q] = p##add_pd(y[q], p##mul_pd(value, weight));                                                      \
            }                                                                                                         \
        }                                                                                                             \
        for (int q = 0; q < DPESTIM_ABREAST / lanes; q++) {                                                           \
            p##storeu_pd(raw + q * lanes, u[q]);                                                                       \
            p##storeu_pd(norm + q * lanes, x[q]);                                                                      \
            p##storeu_pd(sum + q * lanes, y[q]);                                                                       \
        }                                                                                                             \
    }
#define DPESTIM_ADD_KINDS(target, name, each, V, p, lanes)                                                            \
    target DPESTIM_ADD_ROWS(each, V, p, lanes)                                                                        \
    target static void name(const double *side, ptrdiff_t step, ptrdiff_t d, const dpestim_columns *of,               \
                            const double *w, double *raw, double *norm, double *sum) {                                \
        if (of->kind == 0) each(side, step, d, of, 0, w, raw, norm, sum);                                             \
        else if (of->kind == 1) each(side, step, d, of, 1, w, raw, norm, sum);                                        \
        else each(side, step, d, of, 2, w, raw, norm, sum);                                                           \
    }
DPESTIM_ADD_KINDS(DPESTIM_TARGET("arch=x86-64-v3"), dpestim_add_rows_256, dpestim_add_256, __m256d, _mm256_, 4)
DPESTIM_ADD_KINDS(DPESTIM_TARGET("arch=x86-64-v4"), dpestim_add_rows_512, dpestim_add_512, __m512d, _mm512_, 8)
#endif

/* What is done with it; whether all values are finite. A row with a value that is no number is one of zeros. */
DPESTIM_WIDE static int dpestim_scores(const double *x, ptrdiff_t n, ptrdiff_t d, ptrdiff_t row, ptrdiff_t column,
                                       const dpestim_columns *of, int bits, const double *w, ptrdiff_t k,
                                       const double *constant, double *z, double *out) {
    const double inverse = of->inverse, limit = of->limit, plain = inverse * limit, squared = inverse * inverse;
    const double largest = 1.7976931348623157e308;
    int finite = 1;
    for (ptrdiff_t i = 0; i < n; i += DPESTIM_ABREAST) {
        ptrdiff_t m = n - i < DPESTIM_ABREAST ? n - i : DPESTIM_ABREAST, step = DPESTIM_ABREAST;
        const double *side = z, *at = x + i * row;
        double norm[DPESTIM_ABREAST], raw[DPESTIM_ABREAST], sum[DPESTIM_ABREAST], factor[DPESTIM_ABREAST];
        int odd[DPESTIM_ABREAST] = {0}, far = 0, any = 0;
        if (row == 1 && m == DPESTIM_ABREAST) { /* they stand side by side as it is */
            side = at;
            step = column;
        } else
            dpestim_turn(at, m, d, row, column, bits, z);
        for (ptrdiff_t c = 0; c < k; c++) {
#if DPESTIM_HAS_WIDE
            if (bits >= 512) dpestim_add_rows_512(side, step, d, of, w + c * d, raw, norm, sum);
            else if (bits >= 256) dpestim_add_rows_256(side, step, d, of, w + c * d, raw, norm, sum);
            else
#endif
                dpestim_add_rows(side, step, d, of, w + c * d, raw, norm, sum);
            if (c == 0) {
                for (int r = 0; r < DPESTIM_ABREAST; r++) {
                    factor[r] = plain;
                    far |= norm[r] * squared > 1.0;
                }
                for (int r = 0; far && r < DPESTIM_ABREAST; r++)
                    if (norm[r] * squared > 1.0) factor[r] = inverse * (limit / (sqrt(norm[r]) * inverse));
            }
            for (int r = 0; r < DPESTIM_ABREAST; r++) {
                sum[r] *= factor[r];
                odd[r] |= !(norm[r] > 1e-280) | !(norm[r] < 1e280) | !(fabs(raw[r]) <= largest) | !(fabs(sum[r]) <= largest);
                sum[r] += constant[c];
            }
            if (k == 1 && m == DPESTIM_ABREAST) memcpy(out + i, sum, sizeof sum);
            else
                for (int r = 0; r < m; r++) out[(i + r) * k + c] = sum[r];
        }
        for (int r = 0; r < DPESTIM_ABREAST; r++) any |= odd[r];
        for (int r = 0; any && r < m; r++) /* rows of zeros, too */
            if (odd[r])
                finite &= dpestim_one_row(at + r * row, d, column, of, w, k, constant, z + DPESTIM_ABREAST * d,
                                          out + (i + r) * k);
    }
    return finite;
}


/* The probabilities of both classes, (1 / (1 + e^s), 1 / (1 + e^-s)); NaN of NaN. */
DPESTIM_WIDE static void dpestim_chances(const double *scores, ptrdiff_t n, double *out) {
    for (ptrdiff_t i = 0; i < n; i++) {
        double s = scores[i], e = dpestim_exp(-fabs(s)), near = 1.0 / (1.0 + e), far = e * near;
        out[2 * i] = s < 0.0 ? near : far;
        out[2 * i + 1] = s < 0.0 ? far : near;
    }
}
#endif
