/* Duchi's mechanism: one number becomes one bit; a row of numbers becomes a row of signs on a likely side. */
#include <stddef.h>
#include <stdint.h>

#include "movemask.h"
#include "pm.h"
#include "portable.h"
#include "wide.h"

/* A row of d values as 32-bit fractions of their bounds; clipped, NaN counts as the lower one. */
DPESTIM_WIDE static void dpestim_duchi_encode(const double *restrict x, size_t n, size_t d, const double *restrict low,
                                              const double *restrict high, const double *restrict scale,
                                              int64_t *restrict out) {
    for (size_t i = 0; i < n; i++, x += d, out += d)
        for (size_t j = 0; j < d; j++) out[j] = dpestim_pm_fixed(x[j], low[j], high[j], scale[j], (int64_t)1 << 32);
}

/* Whether all numbers are finite: of what is not, the difference from itself is NaN. */
DPESTIM_WIDE static int dpestim_duchi_finite(const double *restrict x, size_t n) {
    uint64_t bad = 0;
    for (size_t i = 0; i < n; i++) bad |= (uint64_t)(x[i] - x[i] != 0);
    return bad == 0;
}

/* Rounding to signs looks at 16 random bits of a number, and where these do not decide leaves it open: once in 2^16 times.
 * Rows become bytes, 255 for a 1, and then bits, a few rows at a time so that the bytes stay in the nearest cache. */
#define DPESTIM_DUCHI_PIECE 4096 /* bytes, and numbers of a row at most */
#define DPESTIM_DUCHI_AHEAD 1024 /* numbers from memory meanwhile */
#define DPESTIM_DUCHI_ROUND(name, what, fixed)                                                                       \
    /* Bytes of rows, which begin `wide` bytes apart; marks rows with numbers that may be open. */                    \
    DPESTIM_WIDE static void dpestim_duchi_bytes_##name(const what *restrict x, const double *restrict low,           \
                                                        const double *restrict high, const double *restrict scale,    \
                                                        const uint16_t *restrict lanes, size_t n, size_t d,           \
                                                        size_t stride, size_t wide, uint8_t *restrict bytes,          \
                                                        uint8_t *restrict marks) {                                    \
        for (size_t i = 0; i < n; i++, x += d, lanes += stride, bytes += wide) {                                      \
            uint32_t open = 0, uppers[DPESTIM_DUCHI_PIECE];                                                           \
            for (size_t j = 0; j < d; j += 8) DPESTIM_FETCH_TO_READ(x + DPESTIM_DUCHI_AHEAD + j);                     \
            for (size_t j = 0; j < d; j++) uppers[j] = (uint32_t)((fixed) >> 16);                                     \
            for (size_t j = 0; j < d; j++) {                                                                          \
                const uint32_t upper = uppers[j], lane = lanes[j];                                                    \
                open |= lane == upper;                                                                                \
                bytes[j] = (uint8_t) - (lane < upper);                                                                \
            }                                                                                                         \
            marks[i] = open != 0;                                                                                     \
        }                                                                                                             \
    }                                                                                                                 \
    /* Bits of rows, 64 to a word, each row from a new one on; returns how many are open: place << 16 | what 16 more  \
     * bits must be below for a 1. */                                                                                 \
    static size_t dpestim_duchi_signs_##name(const what *x, const double *low, const double *high,                    \
                                             const double *scale, const uint16_t *lanes, size_t n, size_t d,          \
                                             size_t stride, uint64_t *out, uint64_t *left) {                          \
        const size_t width = (d + 63) / 64, rows = DPESTIM_DUCHI_PIECE / (64 * width);                                \
        uint8_t bytes[DPESTIM_DUCHI_PIECE] = {0}, marks[DPESTIM_DUCHI_PIECE / 64];                                    \
        size_t n_left = 0;                                                                                            \
        for (size_t first = 0; first < n; first += rows, x += rows * d, lanes += rows * stride) {                     \
            const size_t m = n - first < rows ? n - first : rows;                                                     \
            dpestim_duchi_bytes_##name(x, low, high, scale, lanes, m, d, stride, 64 * width, bytes, marks);           \
            for (size_t w = 0; w < m * width; w++) *out++ = dpestim_high_bits(bytes + 64 * w);                        \
            for (size_t i = 0; i < m; i++)                                                                            \
                for (size_t j = 0; marks[i] && j < d; j++) {                                                          \
                    const int64_t f = dpestim_duchi_at_##name(x + i * d, low, high, scale, j);                        \
                    if (lanes[i * stride + j] == f >> 16 && (f & 0xFFFF))                                             \
                        left[n_left++] = (uint64_t)((first + i) * d + j) << 16 | (uint64_t)(f & 0xFFFF);              \
                }                                                                                                     \
        }                                                                                                             \
        return n_left;                                                                                                \
    }
static inline int64_t dpestim_duchi_at_plain(const double *x, const double *low, const double *high,
                                              const double *scale, size_t j) {
    return dpestim_pm_fixed(x[j], low[j], high[j], scale[j], (int64_t)1 << 32);
}
static inline int64_t dpestim_duchi_at_codes(const int64_t *x, const double *low, const double *high,
                                             const double *scale, size_t j) {
    (void)low, (void)high, (void)scale;
    return x[j];
}
DPESTIM_DUCHI_ROUND(plain, double, dpestim_pm_fixed(x[j], low[j], high[j], scale[j], (int64_t)1 << 32))
DPESTIM_DUCHI_ROUND(codes, int64_t, x[j])

#if defined(__SSE2__) && DPESTIM_GNU && !DPESTIM_DEBUG
#include <immintrin.h>
/* The same of values, 32 columns at a time, whose bounds stay in registers, for rows that stay in the nearest cache.
 * What is clipped to `high` comes out within a unit of 2^32, and what is no less as the largest of 32 bits: no lane is
 * above its upper half, and where one equals it the exact fixed point is looked at. */
#define DPESTIM_DUCHI_ROWS 16
DPESTIM_TARGET("avx512f,avx512bw,avx512dq")
static size_t dpestim_duchi_signs_wide(const double *restrict x, const double *restrict low,
                                       const double *restrict high, const double *restrict scale,
                                       const uint16_t *restrict lanes, size_t n, size_t d, size_t stride,
                                       uint64_t *restrict out, uint64_t *restrict left, int *finite) {
    const size_t width = (d + 63) / 64;
    size_t n_left = 0;
    __mmask8 bad = 0;
    uint16_t order[32];
    for (int k = 0; k < 32; k++) order[k] = (uint16_t)(2 * k + 1);
    const __m512i odd = _mm512_loadu_si512(order);
    for (size_t first = 0; first < n; first += DPESTIM_DUCHI_ROWS) {
        const size_t m = n - first < DPESTIM_DUCHI_ROWS ? n - first : DPESTIM_DUCHI_ROWS;
        for (size_t j = 0; j < d; j += 32) {
            const uint32_t inside = d - j < 32 ? ((uint32_t)1 << (d - j)) - 1 : ~(uint32_t)0;
            __m512d lows[4], highs[4], scales[4];
            for (int k = 0; k < 4; k++) {
                const __mmask8 mask = (__mmask8)(inside >> (8 * k));
                lows[k] = _mm512_maskz_loadu_pd(mask, low + j + 8 * k);
                highs[k] = _mm512_maskz_loadu_pd(mask, high + j + 8 * k);
                scales[k] = _mm512_maskz_loadu_pd(mask, scale + j + 8 * k);
            }
            for (size_t i = first; i < first + m; i++) {
                const double *const row = x + i * d + j;
                __m256i fixed[4];
                for (int k = 0; k < 4; k++) {
                    DPESTIM_FETCH_TO_READ(row + DPESTIM_DUCHI_AHEAD + 8 * k);
                    const __m512d value = _mm512_maskz_loadu_pd((__mmask8)(inside >> (8 * k)), row + 8 * k);
                    bad |= _mm512_fpclass_pd_mask(value, 0x01 | 0x08 | 0x10 | 0x80); /* NaN or infinite */
                    const __m512d in = _mm512_min_pd(_mm512_max_pd(value, lows[k]), highs[k]);
                    const __m512d units = _mm512_mul_pd(_mm512_sub_pd(in, lows[k]), scales[k]);
                    fixed[k] = _mm512_cvttpd_epu32(units);
                }
                const __m512i a = _mm512_inserti64x4(_mm512_castsi256_si512(fixed[0]), fixed[1], 1);
                const __m512i b = _mm512_inserti64x4(_mm512_castsi256_si512(fixed[2]), fixed[3], 1);
                const __m512i upper = _mm512_permutex2var_epi16(a, odd, b);
                const __m512i lane = _mm512_maskz_loadu_epi16(inside, lanes + i * stride + j);
                uint32_t ones = _mm512_cmplt_epu16_mask(lane, upper) & inside;
                uint32_t open = _mm512_cmpeq_epu16_mask(lane, upper) & inside;
                for (; open; open &= open - 1) {
                    const size_t at = j + dpestim_lowest_one(open);
                    const int64_t f = dpestim_duchi_at_plain(x + i * d, low, high, scale, at);
                    if (f >> 32) ones |= open & (0 - open);
                    else if (f & 0xFFFF) left[n_left++] = (uint64_t)(i * d + at) << 16 | (uint64_t)(f & 0xFFFF);
                }
                uint64_t *const word = out + i * width + j / 64;
                *word = j % 64 ? *word | (uint64_t)ones << 32 : ones;
            }
        }
    }
    if (finite) *finite = bad == 0;
    return n_left;
}
#define DPESTIM_DUCHI_WIDE 1
#else
#define DPESTIM_DUCHI_WIDE 0
#endif

/* The same, by the widest vectors there are; where asked, writes whether all values are finite: they are
 * read once. */
static inline size_t dpestim_duchi_signs_values(const double *x, const double *low, const double *high,
                                                const double *scale, const uint16_t *lanes, size_t n, size_t d,
                                                size_t stride, uint64_t *out, uint64_t *left, int *finite) {
#if DPESTIM_DUCHI_WIDE
    if (dpestim_wide_bits() == 512)
        return dpestim_duchi_signs_wide(x, low, high, scale, lanes, n, d, stride, out, left, finite);
#endif
    if (finite && !(*finite = dpestim_duchi_finite(x, n * d))) return 0; /* (no integer is made of what is none) */
    return dpestim_duchi_signs_plain(x, low, high, scale, lanes, n, d, stride, out, left);
}

/* Replace the signs v of rows by the answer to them; return how many rows need another round (their v is left).
 * words: of every row one to decide, then the bits of a draw u. rows: which rows they are for, or NULL for all. */
DPESTIM_WIDE static size_t dpestim_duchi_answer(const uint64_t *words, const uint32_t *rows, size_t n, size_t d,
                                          uint64_t keep, uint64_t ties, int last, uint64_t *signs, uint32_t *again) {
    const size_t width = (d + 63) / 64;
    const uint64_t mask = d % 64 ? ((uint64_t)1 << d % 64) - 1 : ~(uint64_t)0;
    size_t n_again = 0;
    for (size_t i = 0; i < n; i++, words += 1 + width) {
        const size_t row = rows ? rows[i] : i;
        uint64_t *v = signs + row * width;
        size_t agree = 0;
        for (size_t j = 0; j < width; j++)
            agree += (size_t)dpestim_ones(~(v[j] ^ words[1 + j]) & (j + 1 < width ? ~(uint64_t)0 : mask));
        if (2 * agree == d && !last && words[0] >= ties) {
            again[n_again++] = (uint32_t)row;
            continue;
        }
        /* u stays where it is tied, or on the side that the word wants */
        const uint64_t flip = -(uint64_t)(2 * agree != d && (2 * agree > d) != (words[0] < keep));
        for (size_t j = 0; j < width; j++)
            v[j] = (words[1 + j] ^ flip) & (j + 1 < width ? ~(uint64_t)0 : mask);
    }
    return n_again;
}
