/* Losses of margins (logistic, Huber's hinge, Poisson) of a tile of rows at a time, over eight independent lanes in one fixed order of operations, so that vectors
 * of every width give the same result: setup.py forbids fused multiply-adds (-ffp-contract=off), which is what makes it
 * safe to clone loops over floats here. exp is our own for the same reason. Error bounds: linear_model/logistic.md. */
#ifndef DPESTIM_LOGISTIC_H
#define DPESTIM_LOGISTIC_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "portable.h"
#include "tiles.h"
#include "wide.h"

#define DPESTIM_TILE 8 /* rows taken together: exponentials side by side, one pass over the Hessian */
#define DPESTIM_WIDEST 128 /* wider rows are taken by halves of a tile, which stay in the first-level cache */
#define DPESTIM_LOGISTIC 0 /* kinds of losses */
#define DPESTIM_HINGE 1    /* shape: h */
#define DPESTIM_POISSON 2  /* shape: the logarithm of the largest rate; with targets */
#define DPESTIM_PAD 8  /* a row is padded with zeros to a multiple of this */

/* e^x for x <= 0 with a relative error below 2^-50: x = k ln 2 + r, |r| <= 0.35, Taylor to r^13; below -700: e^-700. */
DPESTIM_INLINE double dpestim_exp(double x) {
    const double shift = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    x = x < -700.0 ? -700.0 : x;
    double t = x * 1.4426950408889634 + shift, k = t - shift;
    double r = x - k * 0.69314718036912381649; /* ln 2 in 33 bits, so that the product is exact */
    r -= k * 1.90821492927058770002e-10;
    double r2 = r * r, r4 = r2 * r2; /* in pairs and not one after the other: a third of the latency */
    double low = ((1.0 + r) + r2 * (0.5 + r * (1.0 / 6.0)))
                 + r4 * (((1.0 / 24.0) + r * (1.0 / 120.0)) + r2 * ((1.0 / 720.0) + r * (1.0 / 5040.0)));
    double high = (((1.0 / 40320.0) + r * (1.0 / 362880.0)) + r2 * ((1.0 / 3628800.0) + r * (1.0 / 39916800.0)))
                  + r4 * ((1.0 / 479001600.0) + r * (1.0 / 6227020800.0));
    double p = low + (r4 * r4) * high;
    /* t holds k in its lowest bits: shifted into the exponent they make 2^k without a conversion */
    uint64_t bits;
    memcpy(&bits, &t, sizeof bits);
    bits = (bits << 52) + ((uint64_t)1023 << 52);
    memcpy(&t, &bits, sizeof t);
    return p * t;
}

/* What a row of d values is multiplied by so that its norm is at most limit: 0 where a value is not a number. */
DPESTIM_INLINE double dpestim_clip(const double *x, ptrdiff_t d, double inverse, double limit) {
    double lane[DPESTIM_PAD] = {0}, norm = 0.0, largest = 0.0;
    ptrdiff_t j = 0;
    for (; j + DPESTIM_PAD <= d; j += DPESTIM_PAD)
        for (int k = 0; k < DPESTIM_PAD; k++) lane[k] += x[j + k] * x[j + k];
    for (; j < d; j++) norm += x[j] * x[j];
    norm += ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    if (norm > 1e-280 && norm < 1e280) {
        norm = sqrt(norm) * inverse; /* in units of the declared norm */
        return norm <= 1.0 ? inverse * limit : inverse * (limit / norm);
    }
    /* squares that overflow, underflow or are not numbers: once more, in units of the largest value */
    for (j = 0; j < d; j++) {
        double a = fabs(x[j]);
        if (!(a <= 1.7976931348623157e308)) return 0.0;
        largest = a > largest ? a : largest;
    }
    if (largest * inverse < 1e-100) return inverse * limit;
    norm = 0.0;
    for (j = 0; j < d; j++) norm += (x[j] / largest) * (x[j] / largest);
    norm = sqrt(norm);
    return largest * inverse * norm <= 1.0 ? inverse * limit : (limit / norm) / largest;
}

/* Write one scaled row with its tail (the intercept's constant, or nothing) to z, whose padding is 0 already; return
 * z w: eight lanes, then a tree. The values are finite. The last eight of them may overlap those before; `ends` holds
 * the weights of these eight, 0 where they overlap. */
DPESTIM_INLINE double dpestim_pack(const double *restrict x, ptrdiff_t d, double scale, double tail,
                                   const double *restrict w, const double *restrict ends, double *restrict z,
                                   ptrdiff_t width) {
    double lane[DPESTIM_PAD] = {0};
    ptrdiff_t j = 0;
    for (; j + DPESTIM_PAD <= d; j += DPESTIM_PAD)
        for (int k = 0; k < DPESTIM_PAD; k++) {
            double value = scale * x[j + k];
            z[j + k] = value;
            lane[k] += value * w[j + k];
        }
    if (d < DPESTIM_PAD) {
        for (; j < d; j++) {
            double value = scale * x[j];
            z[j] = value;
            lane[j] = value * w[j];
        }
    } else if (j < d) {
        for (int k = 0; k < DPESTIM_PAD; k++) {
            double value = scale * x[d - DPESTIM_PAD + k];
            z[d - DPESTIM_PAD + k] = value;
            lane[k] += value * ends[k];
        }
    }
    for (int k = 0; k < 4; k++) lane[k] += lane[k + 4];
    lane[0] += lane[2];
    lane[1] += lane[3];
    lane[0] += lane[1];
    if (width > d) {
        z[d] = tail;
        lane[0] += tail * w[d];
    }
    return lane[0];
}

/* For each margin m of a tile: pull = 1 / (1 + e^m), bend = pull (1 - pull), and rest = e^-|m|, past = max(-m, 0). */
DPESTIM_INLINE void dpestim_sigmoid(const double *restrict m, double *restrict pull, double *restrict bend,
                                    double *restrict rest, double *restrict past) {
    for (int r = 0; r < DPESTIM_TILE; r++) {
        double e = dpestim_exp(-fabs(m[r])), inverse = 1.0 / (1.0 + e);
        pull[r] = m[r] >= 0.0 ? e * inverse : inverse;
        bend[r] = e * inverse * inverse;
        rest[r] = e;
        past[r] = m[r] >= 0.0 ? 0.0 : -m[r];
    }
}

/* The hinge, rounded by a parabola over 1 - h <= m <= 1 + h; its loss goes to past (rest is 0). */
DPESTIM_INLINE void dpestim_hinge(const double *restrict m, double h, double *restrict pull, double *restrict bend,
                                  double *restrict rest, double *restrict past) {
    double a = 1.0 + h, c = 0.5 / h;
    for (int r = 0; r < DPESTIM_TILE; r++) {
        double t = (a - m[r]) * c;
        bend[r] = t > 0.0 && t < 1.0 ? c : 0.0;
        pull[r] = t < 0.0 ? 0.0 : t > 1.0 ? 1.0 : t;
        rest[r] = 0.0;
        past[r] = t > 1.0 ? 1.0 - m[r] : h * pull[r] * pull[r];
    }
}

/* Poisson in units of the largest rate e^top: e^(m - top) - target m, continued by its tangent beyond top. */
DPESTIM_INLINE void dpestim_rate(const double *restrict m, const double *restrict target, double top,
                                 double *restrict pull, double *restrict bend, double *restrict rest,
                                 double *restrict past) {
    for (int r = 0; r < DPESTIM_TILE; r++) {
        double x = m[r] - top, q = dpestim_exp(x < 0.0 ? x : 0.0);
        pull[r] = target[r] - q;
        bend[r] = x < 0.0 ? q : 0.0;
        rest[r] = 0.0;
        past[r] = (x < 0.0 ? q : 1.0 + x) - target[r] * m[r];
    }
}

/* Pulls (slopes, negated), curvatures and losses (the logarithm of 1 + rest, plus past) of a tile, by kind of loss. */
DPESTIM_INLINE void dpestim_slopes(int kind, double shape, const double *m, const double *target, double *pull,
                                   double *bend, double *rest, double *past) {
    if (kind == DPESTIM_LOGISTIC)
        dpestim_sigmoid(m, pull, bend, rest, past);
    else if (kind == DPESTIM_HINGE)
        dpestim_hinge(m, shape, pull, bend, rest, past);
    else
        dpestim_rate(m, target, shape, pull, bend, rest, past);
}

/* g += sum_r c_r z_r over half a tile. */
DPESTIM_INLINE void dpestim_add(const double *restrict z, const double *restrict c, double *restrict g,
                                ptrdiff_t width) {
    const double *z1 = z + width, *z2 = z1 + width, *z3 = z2 + width;
    for (ptrdiff_t j = 0; j < width; j++) g[j] += (c[0] * z[j] + c[1] * z1[j]) + (c[2] * z2[j] + c[3] * z3[j]);
}

/* H += sum_r s_r z_r z_r' over a tile: rows of the upper triangle, from a multiple of eight on. */
DPESTIM_INLINE void dpestim_outer(const double *restrict z, const double *restrict s, double *restrict h,
                                  ptrdiff_t width) {
    const double *z1 = z + width, *z2 = z1 + width, *z3 = z2 + width, *z4 = z3 + width, *z5 = z4 + width,
                 *z6 = z5 + width, *z7 = z6 + width;
    for (ptrdiff_t i = 0; i < width; i++) {
        double a0 = s[0] * z[i], a1 = s[1] * z1[i], a2 = s[2] * z2[i], a3 = s[3] * z3[i];
        double a4 = s[4] * z4[i], a5 = s[5] * z5[i], a6 = s[6] * z6[i], a7 = s[7] * z7[i];
        double *row = h + i * width;
        for (ptrdiff_t j = i - i % DPESTIM_PAD; j < width; j += DPESTIM_PAD)
            for (ptrdiff_t k = j; k < j + DPESTIM_PAD; k++)
                row[k] += ((a0 * z[k] + a1 * z1[k]) + (a2 * z2[k] + a3 * z3[k]))
                          + ((a4 * z4[k] + a5 * z5[k]) + (a6 * z6[k] + a7 * z7[k]));
    }
}

/* Rows first, first + step, ... below last: adds to g (and to the upper triangle of h, if there is one), returns the
 * loss. A negative scale is computed here and kept; a row whose scale or sign is 0 does not count. Curvatures of
 * losses go to bends, if that is there. z has room for two tiles: by vectors of 512 bits two are taken at a time, so
 * that what one waits for is hidden by the other. */
DPESTIM_WIDE static double dpestim_logistic(const double *x, ptrdiff_t d, const int8_t *signs, double *scales,
                                            double inverse, double limit, double tail, double offset,
                                            ptrdiff_t first, ptrdiff_t last, ptrdiff_t step, const double *w,
                                            double *z, ptrdiff_t width, double *g, double *h, int kind, double shape,
                                            const double *targets, double *bends, int bits) {
    double m[DPESTIM_TILE] = {0}, sign[DPESTIM_TILE], pull[2 * DPESTIM_TILE], bend[2 * DPESTIM_TILE],
        rest[2 * DPESTIM_TILE], past[2 * DPESTIM_TILE], target[DPESTIM_TILE] = {0}, ends[DPESTIM_PAD] = {0}, loss = 0.0,
        product = 1.0;
    (void)bits;
    int merged = 0, ahead = 0, rows = h || width <= DPESTIM_WIDEST ? DPESTIM_TILE : DPESTIM_TILE / 2;
    for (ptrdiff_t k = 0; d >= DPESTIM_PAD && k < d % DPESTIM_PAD; k++)
        ends[DPESTIM_PAD - d % DPESTIM_PAD + k] = w[d - d % DPESTIM_PAD + k];
    memset(z, 0, (size_t)(2 * DPESTIM_TILE * width) * sizeof(double));
    for (ptrdiff_t i = first; i < last; i += rows * step) {
        double *own = z, *tilt = pull, *curve = bend, *left = rest, *more = past;
        int full = ahead; /* done with the tile before */
        if (ahead) {
            own += rows * width, tilt += rows, curve += rows, left += rows, more += rows;
            ahead = 0;
        }
#if DPESTIM_HAS_WIDE /* (two tiles are scored together) */
        else if (bits >= 512 && kind != DPESTIM_HINGE && rows == DPESTIM_TILE && i + (2 * rows - 1) * step < last) {
            for (int again = 0; !full && again < 2; again++) { /* (once more where scales were not known yet) */
                for (ptrdiff_t at = i; again && at < i + 2 * rows * step; at += step)
                    if (scales[at] < 0.0) scales[at] = dpestim_clip(x + at * d, d, inverse, limit);
                full = ahead = dpestim_tiles_512(x + i * d, d, step, signs + i, scales + i,
                                                 targets ? targets + i : NULL, tail, offset, w, ends, z, width, shape,
                                                 pull, bend, rest, past);
            }
        }
#endif
        for (int r = 0; r < rows && !full; r++) {
            ptrdiff_t at = i + r * step;
            double *row = z + r * width;
            sign[r] = 0.0;
            if (at < last) {
                if (scales[at] < 0.0) scales[at] = dpestim_clip(x + at * d, d, inverse, limit);
                /* scale 0: a value is no number, and 0 * NaN must not be formed */
                if (scales[at] > 0.0) sign[r] = signs[at];
            }
            if (sign[r] != 0.0) {
                m[r] = sign[r] * (dpestim_pack(x + at * d, d, scales[at], tail, w, ends, row, width) + offset);
                if (targets) target[r] = targets[at];
            } else {
                memset(row, 0, (size_t)width * sizeof(double));
                m[r] = 0.0;
            }
        }
        if (!full) {
            dpestim_slopes(kind, shape, m, target, pull, bend, rest, past);
            for (int r = 0; r < rows; r++) pull[r] *= -sign[r];
        }
        for (int r = 0; r < rows; r++) {
            int counts = full || sign[r] != 0.0;
            if (bends && i + r * step < last) bends[i + r * step] = counts ? curve[r] : 0.0;
            if (counts) {
                product *= 1.0 + left[r];
                loss += more[r];
            }
        }
        merged += rows;
        if (merged >= 512) { /* each factor is at most 2, so 512 of them stay below the largest float */
            loss += log(product);
            product = 1.0;
            merged = 0;
        }
#if DPESTIM_HAS_WIDE
        if (bits >= 512) {
            dpestim_gradient_512(own, tilt, g, width, rows / 4);
            if (h) dpestim_outer_512(own, curve, h, width);
            continue;
        }
#endif
        for (int r = 0; r < rows; r += DPESTIM_TILE / 2) dpestim_add(own + r * width, tilt + r, g, width);
        if (h) dpestim_outer(own, curve, h, width);
    }
    return loss + log(product);
}

/* The same for rows of which only entries are kept: columns index[k] (ascending) and values x[k], k from start[i] to
 * start[i + 1]. Margins are summed in eight lanes and a tree here too; a row is added to g by itself. */
DPESTIM_WIDE static double dpestim_sparse(const double *x, const int32_t *index, const int64_t *start, ptrdiff_t d,
                                          const int8_t *signs, double *scales, double inverse, double limit,
                                          double tail, double offset, ptrdiff_t first, ptrdiff_t last, ptrdiff_t step,
                                          const double *w, ptrdiff_t width, double *g, double *h, int kind, double shape,
                                          const double *targets) {
    double m[DPESTIM_TILE] = {0}, sign[DPESTIM_TILE], pull[DPESTIM_TILE], bend[DPESTIM_TILE], rest[DPESTIM_TILE],
        past[DPESTIM_TILE], target[DPESTIM_TILE] = {0}, loss = 0.0, product = 1.0;
    int merged = 0;
    for (ptrdiff_t i = first; i < last; i += DPESTIM_TILE * step) {
        for (int r = 0; r < DPESTIM_TILE; r++) {
            ptrdiff_t at = i + r * step;
            sign[r] = m[r] = 0.0;
            if (at >= last) continue;
            const double *v = x + start[at];
            const int32_t *column = index + start[at];
            ptrdiff_t n = start[at + 1] - start[at], k = 0;
            if (scales[at] < 0.0) scales[at] = dpestim_clip(v, n, inverse, limit);
            if (scales[at] > 0.0) sign[r] = signs[at];
            if (sign[r] == 0.0) continue;
            double lane[DPESTIM_PAD] = {0}, scale = scales[at];
            for (; k + DPESTIM_PAD <= n; k += DPESTIM_PAD)
                for (int j = 0; j < DPESTIM_PAD; j++) lane[j] += (scale * v[k + j]) * w[column[k + j]];
            for (int j = 0; k < n; k++, j++) lane[j] += (scale * v[k]) * w[column[k]];
            double sum = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
            if (width > d) sum += tail * w[d];
            m[r] = sign[r] * (sum + offset);
            if (targets) target[r] = targets[at];
        }
        dpestim_slopes(kind, shape, m, target, pull, bend, rest, past);
        for (int r = 0; r < DPESTIM_TILE; r++) {
            if (sign[r] == 0.0) continue;
            ptrdiff_t at = i + r * step;
            double scale = scales[at], c = -sign[r] * pull[r];
            product *= 1.0 + rest[r];
            loss += past[r];
            for (int64_t k = start[at]; k < start[at + 1]; k++) g[index[k]] += c * (scale * x[k]);
            if (width > d) g[d] += c * tail;
            if (!h || bend[r] == 0.0) continue;
            for (int64_t k = start[at]; k < start[at + 1]; k++) {
                double a = bend[r] * (scale * x[k]);
                double *row = h + (ptrdiff_t)index[k] * width;
                for (int64_t j = k; j < start[at + 1]; j++) row[index[j]] += a * (scale * x[j]);
                if (width > d) row[d] += a * tail;
            }
            if (width > d) h[d * width + d] += bend[r] * tail * tail;
        }
        merged += DPESTIM_TILE;
        if (merged >= 512) { /* as above */
            loss += log(product);
            product = 1.0;
            merged = 0;
        }
    }
    return loss + log(product);
}

#if DPESTIM_HAS_WIDE
/* The same for one weight a column: rows from i on of at most sixteen entries, by vectors, in the same order of
 * operations. Returns the first row that is longer, or n; -1 for what the loop below refuses. */
DPESTIM_512 static ptrdiff_t dpestim_short_rows_512(const double *x, const int32_t *index, const int32_t *start,
                                                    ptrdiff_t i, ptrdiff_t n, int64_t most, double inverse,
                                                    double limit, const double *w, int32_t d, double constant,
                                                    double *out) {
    const __m512i back = _mm512_set_epi32(14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0);
    const __m512i none = _mm512_set1_epi32(-1), end = _mm512_set1_epi32(d);
    const double plain = inverse * limit, squared = inverse * inverse;
    for (; i < n; i++) {
        const int64_t m = (int64_t)start[i + 1] - start[i];
        if (m < 0 || start[i + 1] > most) return -1;
        if (m > 16) return i;
        const double *v = x + start[i];
        const int32_t *column = index + start[i];
        const __mmask16 there = (__mmask16)((1u << m) - 1u);
        const __m512i at = _mm512_maskz_loadu_epi32(there, column);
        const __m512i before = _mm512_mask_permutexvar_epi32(none, 0xFFFE, back, at);
        if (_mm512_mask_cmple_epi32_mask(there, at, before) | _mm512_mask_cmpge_epi32_mask(there, at, end)) return -1;
        /* its norm, in the lanes of dpestim_clip, which is asked where the row may be longer than allowed, or odd */
        __m512d eight = _mm512_setzero_pd();
        double norm = 0.0;
        int64_t j = 0;
        for (; j + 8 <= m; j += 8) eight = DPESTIM_STEP(eight, _mm512_loadu_pd(v + j), _mm512_loadu_pd(v + j));
        for (; j < m; j++) norm += v[j] * v[j];
        const __m256d half = _mm256_hadd_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
        const __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
        norm += _mm_cvtsd_f64(_mm_hadd_pd(pair, pair));
        const int easy = norm > 1e-280 && norm * squared < 0.999;
        const double factor = easy ? plain : dpestim_clip(v, (ptrdiff_t)m, inverse, limit);
        __m256d four = _mm256_setzero_pd();
        for (j = 0; j + 4 <= m; j += 4) {
            const int32_t *c = column + j;
            const __m256d weights = _mm256_set_pd(w[c[3]], w[c[2]], w[c[1]], w[c[0]]);
            four = _mm256_add_pd(four, _mm256_mul_pd(_mm256_loadu_pd(v + j), weights));
        }
        __m128d low = _mm256_castpd256_pd128(four);
        for (; j < m; j++) low = _mm_add_sd(low, _mm_set_sd(v[j] * w[column[j]]));
        low = _mm_hadd_pd(low, _mm256_extractf128_pd(four, 1));
        const double sum = _mm_cvtsd_f64(_mm_hadd_pd(low, low)) * factor;
        if (factor == 0.0 || sum - sum != 0.0) return -1;
        out[i] = sum + constant;
    }
    return n;
}
#endif

/* (of the loop below) */
#define DPESTIM_SHORT_ROWS_int64_t (void)bits;
#if DPESTIM_HAS_WIDE
#define DPESTIM_SHORT_ROWS_int32_t                                                                                    \
    if (bits >= 512 && k == 1 && d <= INT32_MAX) {                                                                    \
        i = dpestim_short_rows_512(x, index, start, i, n, most, inverse, limit, w, (int32_t)d, constant[0], out);     \
        if (i < 0) return 1;                                                                                          \
        if (i == n) break;                                                                                            \
    }
#else
#define DPESTIM_SHORT_ROWS_int32_t (void)bits;
#endif

/* The linear scores of clipped sparse rows, whose places nobody has checked yet: 0; or 1, with `out` unfinished, where
 * columns do not ascend below d, there are no such rows, or a number is not finite. */
#define DPESTIM_SPARSE_SCORES(name, place)                                                                            \
    static int name(const double *x, const place *index, const place *start, ptrdiff_t n, int64_t most,  \
                                 double inverse, double limit, const double *w, ptrdiff_t d, ptrdiff_t k,             \
                                 const double *constant, double *out, int bits) {                                     \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                           \
            DPESTIM_SHORT_ROWS_##place                                                                                \
            if (start[i + 1] < start[i] || start[i + 1] > most) return 1;                                             \
            const double *v = x + start[i];                                                                           \
            const place *column = index + start[i];                                                                   \
            ptrdiff_t m = (ptrdiff_t)(start[i + 1] - start[i]);                                                       \
            int bad = m > 0 && (column[0] < 0 || column[m - 1] >= d);                                                 \
            for (ptrdiff_t j = 1; j < m; j++) bad |= column[j] <= column[j - 1];                                      \
            if (bad) return 1;                                                                                        \
            double factor = dpestim_clip(v, m, inverse, limit);                                                       \
            if (factor == 0.0) return 1;                                                                              \
            for (ptrdiff_t c = 0; c < k; c++) {                                                                       \
                double lane[4] = {0};                                                                                 \
                ptrdiff_t j = 0;                                                                                      \
                for (; j + 4 <= m; j += 4)                                                                            \
                    for (int r = 0; r < 4; r++) lane[r] += v[j + r] * w[(ptrdiff_t)column[j + r] * k + c];            \
                for (; j < m; j++) lane[0] += v[j] * w[(ptrdiff_t)column[j] * k + c];                                 \
                double sum = ((lane[0] + lane[1]) + (lane[2] + lane[3])) * factor;                                    \
                if (sum - sum != 0.0) return 1;                                                                       \
                out[i * k + c] = sum + constant[c];                                                                   \
            }                                                                                                         \
        }                                                                                                             \
        return 0;                                                                                                     \
    }
DPESTIM_SPARSE_SCORES(dpestim_sparse_scores_32, int32_t)
DPESTIM_SPARSE_SCORES(dpestim_sparse_scores_64, int64_t)
#endif
