/* Unary encoding on packed bits: random bytes against a threshold, and column sums of packed rows. */
#ifndef DPESTIM_UNARY_H
#define DPESTIM_UNARY_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "wide.h"

#if defined(__SSE2__) && !DPESTIM_DEBUG
#include <emmintrin.h>
#define DPESTIM_SSE2 1
#else
#define DPESTIM_SSE2 0 /* the debug build runs the portable loop, so that the suite covers both */
#endif

/* Bit j of *below: bytes[j] < digit; bit j of *tied: bytes[j] == digit, for 64 bytes. */
static inline void dpestim_compare64(const uint8_t *bytes, uint8_t digit, uint64_t *below, uint64_t *tied) {
    uint64_t lt = 0, eq = 0;
#if DPESTIM_SSE2
    const __m128i d = _mm_set1_epi8((char)digit);
    for (int k = 0; k < 4; k++) {
        const __m128i b = _mm_loadu_si128((const __m128i *)(bytes + 16 * k));
        const __m128i same = _mm_cmpeq_epi8(b, d);
        const __m128i at_most = _mm_cmpeq_epi8(_mm_min_epu8(b, d), b); /* SSE2 has no unsigned comparison */
        eq |= (uint64_t)(uint32_t)_mm_movemask_epi8(same) << (16 * k);
        lt |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_andnot_si128(same, at_most)) << (16 * k);
    }
#else
    for (int j = 0; j < 64; j++) {
        lt |= (uint64_t)(bytes[j] < digit) << j;
        eq |= (uint64_t)(bytes[j] == digit) << j;
    }
#endif
    *below = lt;
    *tied = eq;
}

/* One record: n_bits packed bits from n_bits random bytes; ties are listed as base + lane. Returns their number. */
static inline size_t dpestim_unary_record(const uint8_t *bytes, size_t n_bits, uint8_t digit, uint8_t *row,
                                          uint32_t base, uint32_t *ties) {
    size_t n_ties = 0;
    for (size_t j = 0; j < n_bits; j += 64) {
        const size_t lanes = n_bits - j < 64 ? n_bits - j : 64;
        uint64_t below, tied;
        if (lanes == 64) {
            dpestim_compare64(bytes + j, digit, &below, &tied);
        } else {
            uint8_t last[64] = {0};
            memcpy(last, bytes + j, lanes);
            dpestim_compare64(last, digit, &below, &tied);
            below &= ((uint64_t)1 << lanes) - 1; /* padding bits are 0: nothing beyond the domain is sent */
            tied &= ((uint64_t)1 << lanes) - 1;
        }
        for (size_t k = 0; k < (lanes + 7) / 8; k++) row[j / 8 + k] = (uint8_t)(below >> (8 * k));
        for (; tied; tied &= tied - 1) {
            uint64_t lowest = tied & (~tied + 1), lane = 0;
#if defined(__GNUC__)
            lane = (uint64_t)__builtin_ctzll(lowest);
#else
            while (!((lowest >> lane) & 1)) lane++;
#endif
            ties[n_ties++] = base + (uint32_t)(j + lane);
        }
    }
    return n_ties;
}

/* Column sums of packed bits by a carry-save tree: 16 rows become one carry of weight 16, so a bit costs a few word
 * operations per row instead of one addition; the carries are rippled through planes of weight 16, 32, ... 2048. */
#define DPESTIM_TILE 512   /* bytes of a row taken at once: 12 planes of them stay in the first-level cache */
#define DPESTIM_PLANES 12
#define DPESTIM_CHUNK 4080 /* rows until the planes are emptied: 255 carries of 16 fit below 2^12 */

#define DPESTIM_CSA(high, low, a, b, c)       \
    {                                         \
        const uint8_t u_ = (a) ^ (b), c_ = (c); \
        high = ((a) & (b)) | (u_ & c_);       \
        low = u_ ^ c_;                        \
    }

DPESTIM_WIDE static void dpestim_csa16(const uint8_t *restrict rows, size_t stride, size_t len,
                                       uint8_t *restrict planes) {
    for (size_t j = 0; j < len; j++) {
        const uint8_t *r = rows + j;
        uint8_t one = planes[j], two = planes[DPESTIM_TILE + j], four = planes[2 * DPESTIM_TILE + j],
                eight = planes[3 * DPESTIM_TILE + j], carry;
        uint8_t a2, b2, a4, b4, a8, b8;
        DPESTIM_CSA(a2, one, one, r[0], r[stride]);
        DPESTIM_CSA(b2, one, one, r[2 * stride], r[3 * stride]);
        DPESTIM_CSA(a4, two, two, a2, b2);
        DPESTIM_CSA(a2, one, one, r[4 * stride], r[5 * stride]);
        DPESTIM_CSA(b2, one, one, r[6 * stride], r[7 * stride]);
        DPESTIM_CSA(b4, two, two, a2, b2);
        DPESTIM_CSA(a8, four, four, a4, b4);
        DPESTIM_CSA(a2, one, one, r[8 * stride], r[9 * stride]);
        DPESTIM_CSA(b2, one, one, r[10 * stride], r[11 * stride]);
        DPESTIM_CSA(a4, two, two, a2, b2);
        DPESTIM_CSA(a2, one, one, r[12 * stride], r[13 * stride]);
        DPESTIM_CSA(b2, one, one, r[14 * stride], r[15 * stride]);
        DPESTIM_CSA(b4, two, two, a2, b2);
        DPESTIM_CSA(b8, four, four, a4, b4);
        DPESTIM_CSA(carry, eight, eight, a8, b8);
        planes[j] = one;
        planes[DPESTIM_TILE + j] = two;
        planes[2 * DPESTIM_TILE + j] = four;
        planes[3 * DPESTIM_TILE + j] = eight;
#define DPESTIM_RIPPLE(p)                                       \
    {                                                           \
        const uint8_t old = planes[(p) * DPESTIM_TILE + j];     \
        planes[(p) * DPESTIM_TILE + j] = old ^ carry;           \
        carry &= old;                                           \
    }
        DPESTIM_RIPPLE(4) DPESTIM_RIPPLE(5) DPESTIM_RIPPLE(6) DPESTIM_RIPPLE(7)
        DPESTIM_RIPPLE(8) DPESTIM_RIPPLE(9) DPESTIM_RIPPLE(10) DPESTIM_RIPPLE(11)
    }
}

/* counts[8 * (byte % width) + bit] += column sums of n rows that are len bytes long; len is a multiple of width. */
static void dpestim_count_rows(const uint8_t *rows, size_t n, size_t len, size_t width, int64_t *counts) {
    uint8_t planes[DPESTIM_PLANES * DPESTIM_TILE];
    uint8_t last[16 * DPESTIM_TILE];
    for (size_t r0 = 0; r0 < n; r0 += DPESTIM_CHUNK) {
        const size_t chunk = n - r0 < DPESTIM_CHUNK ? n - r0 : DPESTIM_CHUNK;
        for (size_t j0 = 0; j0 < len; j0 += DPESTIM_TILE) {
            const size_t tile = len - j0 < DPESTIM_TILE ? len - j0 : DPESTIM_TILE;
            size_t r = 0;
            memset(planes, 0, sizeof planes);
            for (; r + 16 <= chunk; r += 16) dpestim_csa16(rows + (r0 + r) * len + j0, len, tile, planes);
            if (r < chunk) { /* the last rows, padded with rows of zeros */
                memset(last, 0, sizeof last);
                for (size_t k = 0; r + k < chunk; k++)
                    memcpy(last + k * DPESTIM_TILE, rows + (r0 + r + k) * len + j0, tile);
                dpestim_csa16(last, DPESTIM_TILE, tile, planes);
            }
            for (size_t j = 0; j < tile; j++) {
                int64_t *c = counts + 8 * ((j0 + j) % width);
                for (int b = 0; b < 8; b++) {
                    int64_t total = 0;
                    for (int p = 0; p < DPESTIM_PLANES; p++)
                        total += (int64_t)((planes[p * DPESTIM_TILE + j] >> b) & 1) << p;
                    c[b] += total;
                }
            }
        }
    }
}

/* Rows shorter than a vector are taken several at a time as one long row, which fills the vectors at every width. */
static void dpestim_unary_count(const uint8_t *reports, size_t n, size_t width, int64_t *counts) {
    const size_t group = width >= 256 ? 1 : (256 + width - 1) / width;
    const size_t whole = n / group;
    dpestim_count_rows(reports, whole, group * width, width, counts);
    dpestim_count_rows(reports + whole * group * width, n - whole * group, width, width, counts);
}
#endif
