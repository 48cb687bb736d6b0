/* Unary encoding on packed bits: random bytes against a threshold, and column sums of packed rows. */
#ifndef DPESTIM_UNARY_H
#define DPESTIM_UNARY_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "wide.h"

#if defined(__SSE2__) && !DPESTIM_DEBUG /* the debug build runs the portable loop, so that the suite covers it too */
#include <immintrin.h>
#define DPESTIM_SSE2 1
#else
#define DPESTIM_SSE2 0
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define DPESTIM_LITTLE_ENDIAN 1
#else
#define DPESTIM_LITTLE_ENDIAN 0
#endif

/* Number of the lowest set bit; any number below 64 where there is none. */
static inline uint64_t dpestim_lowest(uint64_t bits) {
#if defined(__GNUC__)
    return (uint64_t)__builtin_ctzll(bits | ((uint64_t)1 << 63));
#else
    uint64_t lane = 0;
    while (lane < 63 && !((bits >> lane) & 1)) lane++;
    return lane;
#endif
}

/* For 64 random bytes: bit j of *below says bytes[j] < digit, bit j of *tied says bytes[j] == digit. */
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

/* n records of n_bits packed bits, one random byte a bit; ties are listed as record * n_bits + bit. Returns their
 * number. `stride` is the distance of two records' bytes. About one word of 64 bits in four has a tie, so the first
 * two are listed without a branch, which writes at most one place beyond the list. */
#define DPESTIM_UNARY_BITS(name, attribute, compare)                                                                 \
    attribute static size_t name(const uint8_t *bytes, size_t stride, size_t n, size_t n_bits, uint8_t digit,        \
                                 uint8_t *out, uint32_t *ties) {                                                     \
        const size_t width = (n_bits + 7) / 8;                                                                       \
        size_t n_ties = 0;                                                                                           \
        for (size_t i = 0; i < n; i++, bytes += stride, out += width) {                                              \
            const uint32_t base = (uint32_t)(i * n_bits);                                                            \
            for (size_t j = 0; j < n_bits; j += 64) {                                                                \
                const size_t lanes = n_bits - j < 64 ? n_bits - j : 64;                                              \
                uint64_t below, tied;                                                                                \
                if (lanes == 64) {                                                                                   \
                    compare(bytes + j, digit, &below, &tied);                                                        \
                } else { /* padding bits are 0: nothing beyond the domain is sent */                                 \
                    uint8_t last[64] = {0};                                                                          \
                    memcpy(last, bytes + j, lanes);                                                                  \
                    compare(last, digit, &below, &tied);                                                             \
                    below &= ((uint64_t)1 << lanes) - 1;                                                             \
                    tied &= ((uint64_t)1 << lanes) - 1;                                                              \
                }                                                                                                    \
                if (DPESTIM_LITTLE_ENDIAN && lanes == 64)                                                            \
                    memcpy(out + j / 8, &below, 8);                                                                  \
                else                                                                                                 \
                    for (size_t k = 0; k < (lanes + 7) / 8; k++) out[j / 8 + k] = (uint8_t)(below >> (8 * k));       \
                for (int k = 0; k < 2; k++) {                                                                        \
                    ties[n_ties] = base + (uint32_t)(j + dpestim_lowest(tied));                                      \
                    n_ties += tied != 0;                                                                             \
                    tied &= tied - 1;                                                                                \
                }                                                                                                    \
                for (; tied; tied &= tied - 1) ties[n_ties++] = base + (uint32_t)(j + dpestim_lowest(tied));         \
            }                                                                                                        \
        }                                                                                                            \
        return n_ties;                                                                                               \
    }

DPESTIM_UNARY_BITS(dpestim_unary_bits_plain, , dpestim_compare64)

#if DPESTIM_SSE2 && defined(__GNUC__)
__attribute__((target("avx512f,avx512bw"))) static inline void dpestim_compare64_wide(
    const uint8_t *bytes, uint8_t digit, uint64_t *below, uint64_t *tied) {
    const __m512i b = _mm512_loadu_si512((const void *)bytes), d = _mm512_set1_epi8((char)digit);
    *below = _mm512_cmplt_epu8_mask(b, d);
    *tied = _mm512_cmpeq_epu8_mask(b, d);
}
DPESTIM_UNARY_BITS(dpestim_unary_bits_wide, __attribute__((target("avx512f,avx512bw"))), dpestim_compare64_wide)
#endif

static size_t dpestim_unary_bits(const uint8_t *bytes, size_t stride, size_t n, size_t n_bits, uint8_t digit,
                                 uint8_t *out, uint32_t *ties) {
#if DPESTIM_SSE2 && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512bw"))
        return dpestim_unary_bits_wide(bytes, stride, n, n_bits, digit, out, ties);
#endif
    return dpestim_unary_bits_plain(bytes, stride, n, n_bits, digit, out, ties);
}

/* Column sums of packed bits by a carry-save tree: 64 rows become one carry of weight 64, so a bit costs a few word
 * operations per row instead of one addition; the carries are rippled through planes of weight 64, 128, ... 2048. */
#define DPESTIM_TILE 512   /* bytes of a row taken at once: 12 planes of them stay in the first-level cache */
#define DPESTIM_PLANES 12
#define DPESTIM_BATCH 64
#define DPESTIM_CHUNK 4032 /* rows until the planes are emptied: 63 carries of 64 fit below 2^12 */
#define DPESTIM_AHEAD 2
#if defined(__GNUC__)
#define DPESTIM_PREFETCH(address) __builtin_prefetch(address, 0, 2)
typedef uint64_t dpestim_vector __attribute__((vector_size(64), aligned(1), may_alias));
#else
#define DPESTIM_PREFETCH(address)
typedef uint64_t dpestim_vector;
#endif

#define DPESTIM_CSA(type, high, low, a, b, c) \
    {                                         \
        const type a_ = (a), c_ = (c);        \
        const type u_ = a_ ^ (b);             \
        high = (a_ & (b)) | (u_ & c_);        \
        low = u_ ^ c_;                        \
    }

/* Bytes j ... of 64 rows into the planes, for one type of vector. */
#define DPESTIM_CSA64(type)                                                                    \
    {                                                                                          \
        type one = PLANE(type, 0), two = PLANE(type, 1), four = PLANE(type, 2), eight = PLANE(type, 3), \
             sixteen = PLANE(type, 4), thirtytwo = PLANE(type, 5), carry, s[4];                \
        const uint8_t *r = rows + j;                                                           \
        for (int q = 0; q < 4; q++) {                                                          \
            type a2, b2, a4, b4, a8, b8;                                                       \
            DPESTIM_PAIR(type, a2) DPESTIM_PAIR(type, b2) DPESTIM_CSA(type, a4, two, two, a2, b2) \
            DPESTIM_PAIR(type, a2) DPESTIM_PAIR(type, b2) DPESTIM_CSA(type, b4, two, two, a2, b2) \
            DPESTIM_CSA(type, a8, four, four, a4, b4)                                          \
            DPESTIM_PAIR(type, a2) DPESTIM_PAIR(type, b2) DPESTIM_CSA(type, a4, two, two, a2, b2) \
            DPESTIM_PAIR(type, a2) DPESTIM_PAIR(type, b2) DPESTIM_CSA(type, b4, two, two, a2, b2) \
            DPESTIM_CSA(type, b8, four, four, a4, b4)                                          \
            DPESTIM_CSA(type, s[q], eight, eight, a8, b8)                                      \
        }                                                                                      \
        DPESTIM_CSA(type, s[0], sixteen, sixteen, s[0], s[1])                                  \
        DPESTIM_CSA(type, s[2], sixteen, sixteen, s[2], s[3])                                  \
        DPESTIM_CSA(type, carry, thirtytwo, thirtytwo, s[0], s[2])                             \
        PLANE(type, 0) = one; PLANE(type, 1) = two; PLANE(type, 2) = four; PLANE(type, 3) = eight; \
        PLANE(type, 4) = sixteen; PLANE(type, 5) = thirtytwo;                                  \
        for (int p = 6; p < DPESTIM_PLANES; p++) {                                             \
            const type old = PLANE(type, p);                                                   \
            PLANE(type, p) = old ^ carry;                                                      \
            carry &= old;                                                                      \
        }                                                                                      \
    }
#define PLANE(type, p) (*(type *)(planes + (p) * DPESTIM_TILE + j))
#define DPESTIM_PAIR(type, high)                                                               \
    DPESTIM_CSA(type, high, one, one, *(const type *)r, *(const type *)(r + stride))           \
    if (sizeof(type) > 1) { /* memory, not arithmetic, is what the loop waits for */           \
        DPESTIM_PREFETCH(r + ahead);                                                           \
        DPESTIM_PREFETCH(r + stride + ahead);                                                  \
    }                                                                                          \
    r += 2 * stride;

DPESTIM_WIDE static void dpestim_csa64(const uint8_t *restrict rows, size_t stride, size_t len,
                                       uint8_t *restrict planes) {
    const size_t ahead = DPESTIM_AHEAD * DPESTIM_BATCH * stride;
    size_t j = 0;
#if defined(__GNUC__)
    for (; j + sizeof(dpestim_vector) <= len; j += sizeof(dpestim_vector)) DPESTIM_CSA64(dpestim_vector)
#endif
    for (; j < len; j++) DPESTIM_CSA64(uint8_t)
}
#undef PLANE
#undef DPESTIM_PAIR

/* sums[8][tile] = the numbers that the planes spell, bit by bit: at most 4032, so 16 bits hold them. */
DPESTIM_WIDE static void dpestim_spell(const uint8_t *restrict planes, size_t n_planes, size_t len,
                                       uint16_t *restrict sums) {
    memset(sums, 0, 8 * DPESTIM_TILE * sizeof *sums);
    for (size_t p = 0; p < n_planes; p++)
        for (int b = 0; b < 8; b++) {
            const uint8_t *restrict plane = planes + p * DPESTIM_TILE;
            uint16_t *restrict sum = sums + b * DPESTIM_TILE;
            for (size_t j = 0; j < len; j++) sum[j] += (uint16_t)(((plane[j] >> b) & 1) << p);
        }
}

/* counts[8 * (byte % width) + bit] += column sums of n rows that are len bytes long; len is a multiple of width. */
static void dpestim_count_rows(const uint8_t *rows, size_t n, size_t len, size_t width, int64_t *counts) {
    uint8_t planes[DPESTIM_PLANES * DPESTIM_TILE];
    uint8_t last[DPESTIM_BATCH * DPESTIM_TILE];
    uint16_t sums[8 * DPESTIM_TILE];
    for (size_t r0 = 0; r0 < n; r0 += DPESTIM_CHUNK) {
        const size_t chunk = n - r0 < DPESTIM_CHUNK ? n - r0 : DPESTIM_CHUNK;
        size_t n_planes = 0, byte = 0;
        while (chunk >> n_planes) n_planes++;
        for (size_t j0 = 0; j0 < len; j0 += DPESTIM_TILE) {
            const size_t tile = len - j0 < DPESTIM_TILE ? len - j0 : DPESTIM_TILE;
            size_t r = 0;
            memset(planes, 0, sizeof planes);
            for (; r + DPESTIM_BATCH <= chunk; r += DPESTIM_BATCH) {
                const uint8_t *batch = rows + (r0 + r) * len + j0;
                dpestim_csa64(batch, len, tile, planes);
            }
            if (r < chunk) { /* the last rows, padded with rows of zeros */
                memset(last, 0, sizeof last);
                for (size_t k = 0; r + k < chunk; k++)
                    memcpy(last + k * DPESTIM_TILE, rows + (r0 + r + k) * len + j0, tile);
                dpestim_csa64(last, DPESTIM_TILE, tile, planes);
            }
            dpestim_spell(planes, n_planes, tile, sums);
            for (size_t j = 0; j < tile; j++) {
                for (int b = 0; b < 8; b++) counts[8 * byte + b] += sums[b * DPESTIM_TILE + j];
                if (++byte == width) byte = 0;
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
