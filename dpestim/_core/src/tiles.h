/* What logistic.h does with tiles of eight rows, by vectors of eight numbers: the same operations in the same order,
 * and so the same bits. A margin is a tree over eight lanes there; here the trees of eight rows grow side by side. */
#ifndef DPESTIM_TILES_H
#define DPESTIM_TILES_H
#include <stddef.h>
#include <stdint.h>

#include "portable.h"
#include "wide.h"

#if DPESTIM_HAS_WIDE
#include <immintrin.h>
#define DPESTIM_512 DPESTIM_TARGET("arch=x86-64-v4")
#define DPESTIM_8(c) _mm512_set1_pd(c)
#define DPESTIM_SHORT 128 /* columns up to which the rows of two tiles stay in the first-level cache */
#define DPESTIM_STEP(a, b, c) _mm512_add_pd(a, _mm512_mul_pd(b, c)) /* a + b c, rounded twice */

/* Scaled rows with their tails to z; returns z w of each. */
DPESTIM_512 static inline __m512d dpestim_pack_512(const double *x, ptrdiff_t d, ptrdiff_t stride, const double *scales,
                                                    ptrdiff_t step, double tail, const double *w, const double *ends,
                                                    double *z, ptrdiff_t width) {
    __m512d sum[8];
    const ptrdiff_t rest = d % 8, whole = d - rest;
    const __mmask8 some = (__mmask8)((1u << rest) - 1u);
    const __m512i back = _mm512_add_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi64(8 - rest));
    const __m512d constant = DPESTIM_8(tail);
    const uintptr_t ahead = (uintptr_t)(16 * stride) * sizeof(double); /* the two tiles after these, if they are there */
    __m512d weights = rest ? d < 8 ? _mm512_maskz_loadu_pd(some, w) : _mm512_loadu_pd(ends) : _mm512_setzero_pd();
    for (int r = 0; r < 8; r++) {
        const double *from = x + r * stride;
        double *to = z + r * width;
        /* asked for long before it is needed: of short rows the processor's own guesses come late */
        for (ptrdiff_t j = 0; j < d && d <= DPESTIM_SHORT; j += 8)
            _mm_prefetch((const char *)((uintptr_t)(from + j) + ahead), _MM_HINT_T0);
        __m512d scale = DPESTIM_8(scales[r * step]), lanes = _mm512_setzero_pd();
        for (ptrdiff_t j = 0; j < whole; j += 8) {
            __m512d value = _mm512_mul_pd(scale, _mm512_loadu_pd(from + j));
            _mm512_storeu_pd(to + j, value);
            lanes = _mm512_add_pd(lanes, _mm512_mul_pd(value, _mm512_loadu_pd(w + j)));
        }
        __m512d last = _mm512_setzero_pd();
        if (rest) {
            if (d < 8) {
                last = _mm512_maskz_mul_pd(some, scale, _mm512_maskz_loadu_pd(some, from));
                lanes = _mm512_mul_pd(last, weights);
            } else {
                last = _mm512_mul_pd(scale, _mm512_loadu_pd(from + d - 8));
                lanes = _mm512_add_pd(lanes, _mm512_mul_pd(last, weights));
                last = _mm512_maskz_permutexvar_pd(some, back, last);
            }
        }
        if (width > whole) _mm512_storeu_pd(to + whole, _mm512_mask_mov_pd(last, (__mmask8)(1u << rest), constant));
        sum[r] = lanes;
    }
    /* lanes four apart, two apart, then both; rows come out as 0, 4, 1, 5, 2, 6, 3, 7 */
    for (int r = 0; r < 8; r += 2)
        sum[r] = _mm512_add_pd(_mm512_shuffle_f64x2(sum[r], sum[r + 1], 0x44),
                               _mm512_shuffle_f64x2(sum[r], sum[r + 1], 0xEE));
    for (int r = 0; r < 8; r += 4)
        sum[r] = _mm512_add_pd(_mm512_shuffle_f64x2(sum[r], sum[r + 2], 0x88),
                               _mm512_shuffle_f64x2(sum[r], sum[r + 2], 0xDD));
    __m512d all = _mm512_add_pd(_mm512_unpacklo_pd(sum[0], sum[4]), _mm512_unpackhi_pd(sum[0], sum[4]));
    all = _mm512_permutexvar_pd(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), all);
    return width > d ? _mm512_add_pd(all, DPESTIM_8(tail * w[d])) : all;
}

/* e^x for x <= 0, as dpestim_exp. */
DPESTIM_512 static inline __m512d dpestim_exp_512(__m512d x) {
    const __m512d shift = DPESTIM_8(6755399441055744.0);
    x = _mm512_max_pd(DPESTIM_8(-700.0), x);
    __m512d t = _mm512_add_pd(_mm512_mul_pd(x, DPESTIM_8(1.4426950408889634)), shift), k = _mm512_sub_pd(t, shift);
    __m512d r = _mm512_sub_pd(x, _mm512_mul_pd(k, DPESTIM_8(0.69314718036912381649)));
    r = _mm512_sub_pd(r, _mm512_mul_pd(k, DPESTIM_8(1.90821492927058770002e-10)));
    __m512d r2 = _mm512_mul_pd(r, r), r4 = _mm512_mul_pd(r2, r2);
    /* pairs of terms, as there */
    __m512d t01 = _mm512_add_pd(DPESTIM_8(1.0), r), t23 = DPESTIM_STEP(DPESTIM_8(0.5), r, DPESTIM_8(1.0 / 6.0));
    __m512d t45 = DPESTIM_STEP(DPESTIM_8(1.0 / 24.0), r, DPESTIM_8(1.0 / 120.0));
    __m512d t67 = DPESTIM_STEP(DPESTIM_8(1.0 / 720.0), r, DPESTIM_8(1.0 / 5040.0));
    __m512d t89 = DPESTIM_STEP(DPESTIM_8(1.0 / 40320.0), r, DPESTIM_8(1.0 / 362880.0));
    __m512d tab = DPESTIM_STEP(DPESTIM_8(1.0 / 3628800.0), r, DPESTIM_8(1.0 / 39916800.0));
    __m512d tcd = DPESTIM_STEP(DPESTIM_8(1.0 / 479001600.0), r, DPESTIM_8(1.0 / 6227020800.0));
    __m512d low = DPESTIM_STEP(DPESTIM_STEP(t01, r2, t23), r4, DPESTIM_STEP(t45, r2, t67));
    __m512d high = DPESTIM_STEP(DPESTIM_STEP(t89, r2, tab), r4, tcd);
    __m512d p = DPESTIM_STEP(low, _mm512_mul_pd(r4, r4), high);
    __m512i bits = _mm512_slli_epi64(_mm512_castpd_si512(t), 52);
    bits = _mm512_add_epi64(bits, _mm512_set1_epi64((int64_t)1023 << 52));
    return _mm512_mul_pd(p, _mm512_castsi512_pd(bits));
}

/* Whether all rows of a tile count: scales are known and no sign is 0, which go to `sign`. */
DPESTIM_512 static inline int dpestim_counts_512(const int8_t *signs, const double *scales, ptrdiff_t step,
                                                 __m512d *sign) {
    const int8_t *s = signs;
    const ptrdiff_t k = step;
    const __m512i side =
        k == 1 ? _mm512_cvtepi8_epi64(_mm_loadl_epi64((const __m128i *)s))
               : _mm512_set_epi64(s[7 * k], s[6 * k], s[5 * k], s[4 * k], s[3 * k], s[2 * k], s[k], s[0]);
    int all = _mm512_cmpeq_epi64_mask(side, _mm512_setzero_si512()) == 0;
    if (k == 1)
        all &= _mm512_cmp_pd_mask(_mm512_loadu_pd(scales), _mm512_setzero_pd(), _CMP_GT_OQ) == 0xFF;
    else
        for (int r = 0; r < 8; r++) all &= scales[r * k] > 0.0;
    *sign = _mm512_cvtepi64_pd(side);
    return all;
}

/* By row: slope (times the sign), curvature and loss of margins m, as `dpestim_slopes` has them. */
DPESTIM_512 static inline void dpestim_slopes_512(__m512d m, __m512d sign, const double *targets, ptrdiff_t step,
                                                  double top, double *slope, double *bend, double *rest, double *past) {
    const __m512d zero = _mm512_setzero_pd(), minus = DPESTIM_8(-0.0);
    __m512d pull, curve, left, loss;
    if (targets) {
        const double *t = targets;
        const ptrdiff_t k = step;
        __m512d aim = k == 1 ? _mm512_loadu_pd(t)
                             : _mm512_set_pd(t[7 * k], t[6 * k], t[5 * k], t[4 * k], t[3 * k], t[2 * k], t[k], t[0]);
        __m512d over = _mm512_sub_pd(m, DPESTIM_8(top));
        __mmask8 low = _mm512_cmp_pd_mask(over, zero, _CMP_LT_OQ);
        __m512d q = dpestim_exp_512(_mm512_maskz_mov_pd(low, over));
        pull = _mm512_sub_pd(aim, q);
        curve = _mm512_maskz_mov_pd(low, q);
        left = zero;
        loss = _mm512_sub_pd(_mm512_mask_mov_pd(_mm512_add_pd(DPESTIM_8(1.0), over), low, q), _mm512_mul_pd(aim, m));
    } else {
        __m512d e = dpestim_exp_512(_mm512_or_pd(m, minus));
        __m512d inverse = _mm512_div_pd(DPESTIM_8(1.0), _mm512_add_pd(DPESTIM_8(1.0), e));
        __m512d small = _mm512_mul_pd(e, inverse);
        __mmask8 up = _mm512_cmp_pd_mask(m, zero, _CMP_GE_OQ);
        pull = _mm512_mask_mov_pd(inverse, up, small);
        curve = _mm512_mul_pd(small, inverse);
        left = e;
        loss = _mm512_mask_mov_pd(_mm512_xor_pd(m, minus), up, zero);
    }
    _mm512_storeu_pd(slope, _mm512_mul_pd(pull, _mm512_xor_pd(sign, minus)));
    _mm512_storeu_pd(bend, curve);
    _mm512_storeu_pd(rest, left);
    _mm512_storeu_pd(past, loss);
}

/* Two tiles of rows that all count, whose latencies overlap: scaled rows to z, and by row what `dpestim_slopes` says.
 * 0, and nothing done, where a row does not count or its scale is not known yet. */
DPESTIM_512 static int dpestim_tiles_512(const double *x, ptrdiff_t d, ptrdiff_t step, const int8_t *signs,
                                         const double *scales, const double *targets, double tail, double offset,
                                         const double *w, const double *ends, double *z, ptrdiff_t width, double top,
                                         double *slope, double *bend, double *rest, double *past) {
    const ptrdiff_t on = 8 * step, stride = step * d;
    __m512d one, two;
    if (!dpestim_counts_512(signs, scales, step, &one)) return 0;
    if (!dpestim_counts_512(signs + on, scales + on, step, &two)) return 0;
    __m512d a = dpestim_pack_512(x, d, stride, scales, step, tail, w, ends, z, width);
    __m512d b = dpestim_pack_512(x + on * d, d, stride, scales + on, step, tail, w, ends, z + 8 * width, width);
    a = _mm512_mul_pd(one, _mm512_add_pd(a, DPESTIM_8(offset)));
    b = _mm512_mul_pd(two, _mm512_add_pd(b, DPESTIM_8(offset)));
    dpestim_slopes_512(a, one, targets, step, top, slope, bend, rest, past);
    dpestim_slopes_512(b, two, targets ? targets + on : NULL, step, top, slope + 8, bend + 8, rest + 8, past + 8);
    return 1;
}

/* g += sum_r c_r z_r over half a tile. */
DPESTIM_512 static void dpestim_gradient_512(const double *z, const double *c, double *g, ptrdiff_t width, int halves) {
    for (ptrdiff_t j = 0; j < width; j += 8) {
        __m512d sum = _mm512_loadu_pd(g + j);
        for (int half = 0; half < halves; half++) {
            const double *at = z + 4 * half * width + j;
            const double *by = c + 4 * half;
            __m512d a = _mm512_mul_pd(DPESTIM_8(by[0]), _mm512_loadu_pd(at));
            __m512d b = _mm512_mul_pd(DPESTIM_8(by[1]), _mm512_loadu_pd(at + width));
            __m512d e = _mm512_mul_pd(DPESTIM_8(by[2]), _mm512_loadu_pd(at + 2 * width));
            __m512d f = _mm512_mul_pd(DPESTIM_8(by[3]), _mm512_loadu_pd(at + 3 * width));
            sum = _mm512_add_pd(sum, _mm512_add_pd(_mm512_add_pd(a, b), _mm512_add_pd(e, f)));
        }
        _mm512_storeu_pd(g + j, sum);
    }
}

/* H += sum_r s_r z_r z_r' over a tile: eight columns at a time, in rows down to the diagonal. */
DPESTIM_512 static void dpestim_outer_512(const double *z, const double *s, double *h, ptrdiff_t width) {
    double part[8 * 8];
    for (ptrdiff_t up = 0; up < width; up += 8) {
        for (int r = 0; r < 8; r++)
            _mm512_storeu_pd(part + 8 * r, _mm512_mul_pd(DPESTIM_8(s[r]), _mm512_loadu_pd(z + r * width + up)));
        for (ptrdiff_t j = up; j < width; j += 8) {
            __m512d at[8];
            for (int r = 0; r < 8; r++) at[r] = _mm512_loadu_pd(z + r * width + j);
            for (int i = 0; i < 8; i++) {
                double *row = h + (up + i) * width + j;
                __m512d a = _mm512_mul_pd(DPESTIM_8(part[i]), at[0]);
                a = _mm512_add_pd(a, _mm512_mul_pd(DPESTIM_8(part[8 + i]), at[1]));
                __m512d b = _mm512_mul_pd(DPESTIM_8(part[16 + i]), at[2]);
                b = _mm512_add_pd(b, _mm512_mul_pd(DPESTIM_8(part[24 + i]), at[3]));
                __m512d e = _mm512_mul_pd(DPESTIM_8(part[32 + i]), at[4]);
                e = _mm512_add_pd(e, _mm512_mul_pd(DPESTIM_8(part[40 + i]), at[5]));
                __m512d f = _mm512_mul_pd(DPESTIM_8(part[48 + i]), at[6]);
                f = _mm512_add_pd(f, _mm512_mul_pd(DPESTIM_8(part[56 + i]), at[7]));
                a = _mm512_add_pd(_mm512_add_pd(a, b), _mm512_add_pd(e, f));
                _mm512_storeu_pd(row, _mm512_add_pd(_mm512_loadu_pd(row), a));
            }
        }
    }
}
#endif
#endif
