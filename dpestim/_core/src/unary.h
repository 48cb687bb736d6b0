/* Unary encoding on packed bits: patterns of eight bits by a table, and column sums of packed rows. */
#ifndef DPESTIM_UNARY_H
#define DPESTIM_UNARY_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "portable.h"
#include "wide.h"

#if defined(__SSE2__) && !DPESTIM_DEBUG /* the debug build runs the portable loop, so that the suite covers it too */
#include <immintrin.h>
#define DPESTIM_SSE2 1
#else
#define DPESTIM_SSE2 0
#endif

/* Number of the lowest set bit; any number below 64 where there is none. */
static inline uint64_t dpestim_lowest(uint64_t bits) { return dpestim_lowest_one(bits | ((uint64_t)1 << 63)); }

/* For 64 bytes: bit j says that byte j is DPESTIM_OPEN. */
#define DPESTIM_OPEN 255
static inline uint64_t dpestim_open64(const uint8_t *bytes) {
    uint64_t open = 0;
#if DPESTIM_SSE2
    const __m128i mark = _mm_set1_epi8((char)DPESTIM_OPEN);
    for (int k = 0; k < 4; k++) {
        const __m128i same = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(bytes + 16 * k)), mark);
        open |= (uint64_t)(uint32_t)_mm_movemask_epi8(same) << (16 * k);
    }
#else
    for (int j = 0; j < 64; j++) open |= (uint64_t)(bytes[j] == DPESTIM_OPEN) << j;
#endif
    return open;
}

#if DPESTIM_SSE2 && DPESTIM_GNU
/* The same as the table, 64 at a time, from `columns`: the upper eight random bits choose a column, and the lower ones
 * which of its two patterns. Rows 0 and 1 of columns are the patterns, row 2 how many cells the first has. */
#define DPESTIM_QUARTERS(name, row)                                                                                    \
    const __m512i name##0 = _mm512_loadu_si512(columns + 256 * row);                                                   \
    const __m512i name##1 = _mm512_loadu_si512(columns + 256 * row + 64);                                              \
    const __m512i name##2 = _mm512_loadu_si512(columns + 256 * row + 128);                                             \
    const __m512i name##3 = _mm512_loadu_si512(columns + 256 * row + 192);
#define DPESTIM_LOOK_UP(name, index, upper)                                                                            \
    _mm512_mask_blend_epi8(upper, _mm512_permutex2var_epi8(name##0, index, name##1),                                   \
                           _mm512_permutex2var_epi8(name##2, index, name##3))
DPESTIM_TARGET("avx512f,avx512bw,avx512vbmi")
static size_t dpestim_unary_draw_wide(const uint16_t *random, size_t stride, size_t n, size_t width,
                                      const uint8_t *columns, uint8_t *restrict out, uint32_t *restrict ties) {
    size_t n_ties = 0;
    uint8_t order[64];
    DPESTIM_QUARTERS(first, 0)
    DPESTIM_QUARTERS(second, 1)
    DPESTIM_QUARTERS(cut, 2)
    for (int k = 0; k < 64; k++) order[k] = (uint8_t)(2 * k);
    const __m512i even = _mm512_loadu_si512(order), odd = _mm512_add_epi8(even, _mm512_set1_epi8(1));
    for (size_t i = 0; i < n; i++, random += stride)
        for (size_t j = 0; j < width; j += 64) {
            const size_t place = i * width + j, left = width - j;
            const __mmask64 mask = left < 64 ? ((__mmask64)1 << left) - 1 : ~(__mmask64)0;
            const __m512i a = _mm512_maskz_loadu_epi16((__mmask32)mask, random + j);
            const __m512i b = _mm512_maskz_loadu_epi16((__mmask32)(mask >> 32), random + j + 32);
            const __m512i column = _mm512_permutex2var_epi8(a, odd, b), lower = _mm512_permutex2var_epi8(a, even, b);
            const __mmask64 upper = _mm512_movepi8_mask(column);
            const __mmask64 is_first = _mm512_cmplt_epu8_mask(lower, DPESTIM_LOOK_UP(cut, column, upper));
            const __m512i pattern = _mm512_mask_blend_epi8(is_first, DPESTIM_LOOK_UP(second, column, upper),
                                                           DPESTIM_LOOK_UP(first, column, upper));
            _mm512_mask_storeu_epi8(out + place, mask, pattern);
            uint64_t open = _mm512_mask_cmpeq_epi8_mask(mask, pattern, _mm512_set1_epi8((char)DPESTIM_OPEN));
            for (; open; open &= open - 1) ties[n_ties++] = (uint32_t)(place + dpestim_lowest(open));
        }
    return n_ties;
}
#endif

/* n records of `width` patterns of eight bits: table[the next 16 random bits]. Where the table leaves it open the place
 * (record * width + number of the pattern) is listed; returns how many. `stride` is the distance of two records' random
 * bits. About one piece of 64 patterns in eight has an open one, so the first is listed without a branch, which
 * writes at most one place beyond the list. Pieces are looked through while they are still in the cache. */
static size_t dpestim_unary_draw(const uint16_t *random, size_t stride, size_t n, size_t width, const uint8_t *table,
                                 const uint8_t *columns, uint8_t *restrict out, uint32_t *restrict ties) {
    const size_t total = n * width;
#if DPESTIM_SSE2 && DPESTIM_GNU
    if (width >= 16 && dpestim_looks_up_bytes()) /* (narrow records would fill little of a vector) */
        return dpestim_unary_draw_wide(random, stride, n, width, columns, out, ties);
#else
    (void)columns;
#endif
    size_t n_ties = 0, drawn = 0, place = 0;
    while (place < total) {
        const size_t enough = place + 4096 < total ? place + 4096 : total;
        for (; drawn < enough; drawn += width, random += stride)
            for (size_t j = 0; j < width; j++) out[drawn + j] = table[random[j]];
        for (; place < drawn; place += 64) {
            uint64_t open;
            if (drawn - place >= 64) {
                open = dpestim_open64(out + place);
            } else if (drawn < total) { /* looked through with what is drawn next */
                break;
            } else {
                uint8_t last[64] = {0};
                memcpy(last, out + place, drawn - place);
                open = dpestim_open64(last);
            }
            ties[n_ties] = (uint32_t)(place + dpestim_lowest(open));
            n_ties += open != 0;
            for (open &= open - 1; open; open &= open - 1) ties[n_ties++] = (uint32_t)(place + dpestim_lowest(open));
        }
    }
    return n_ties;
}

/* How many of 255 ascending numbers are below u. */
static inline size_t dpestim_rank(const uint64_t *edges, uint64_t u) {
    size_t rank = 0;
    for (size_t step = 128; step; step >>= 1) rank += step & (0 - (size_t)(edges[rank + step - 1] < u)); /* no branch */
    return rank;
}

/* The pattern of 16 random bits, from the columns alone: 768 bytes of them stay in the first-level cache. */
static inline uint8_t dpestim_pattern(const uint8_t *columns, uint16_t random) {
    const size_t column = random >> 8;
    return columns[((random & 255) < columns[512 + column] ? 0 : 256) + column];
}

/* Bit j of `out`, packed: whether word j is below threshold j. */
static inline void dpestim_unary_compare(const uint64_t *restrict words, const uint64_t *restrict thresholds, size_t n,
                                         uint8_t *restrict out) {
    for (size_t j = 0; j < n / 8; j++, words += 8, thresholds += 8) {
        unsigned bits = 0;
        for (int k = 0; k < 8; k++) bits |= (unsigned)(words[k] < thresholds[k]) << k;
        out[j] = (uint8_t)bits;
    }
    if (n % 8) {
        unsigned bits = 0;
        for (size_t k = 0; k < n % 8; k++) bits |= (unsigned)(words[k] < thresholds[k]) << k;
        out[n / 8] = (uint8_t)bits;
    }
}

/* Column sums of packed bits by a carry-save tree: 16 rows become one carry of weight 16, so a bit costs a few word
 * operations per row instead of one addition; the carries ripple through planes of weight 16, 32, ... 2048. Rows are
 * taken in strips of two vectors, row after row: only where addresses follow each other does the processor itself
 * fetch ahead as fast as memory can be read. */
#define DPESTIM_STRIP 128  /* bytes of a row taken at once */
#define DPESTIM_STRIPS 8   /* strips whose planes are kept at a time */
#define DPESTIM_PLANES 12
#define DPESTIM_CHUNK 4080 /* rows until the planes are emptied: 255 carries of 16 */
#if DPESTIM_GNU
DPESTIM_VECTOR(uint64_t, 64, dpestim_vector);
#define DPESTIM_GET(at) (*(const dpestim_vector *)(at))
#define DPESTIM_PUT(at, value) (*(dpestim_vector *)(at) = (value))
#else
typedef uint64_t dpestim_vector;
static inline dpestim_vector dpestim_get(const uint8_t *at) {
    dpestim_vector value;
    memcpy(&value, at, sizeof value);
    return value;
}
static inline void dpestim_put(uint8_t *at, dpestim_vector value) { memcpy(at, &value, sizeof value); }
#define DPESTIM_GET dpestim_get
#define DPESTIM_PUT dpestim_put
#endif

#define DPESTIM_CSA(high, low, a, b, c)                                                                                \
    {                                                                                                                  \
        const dpestim_vector a_ = (a), c_ = (c);                                                                       \
        const dpestim_vector u_ = a_ ^ (b);                                                                            \
        high = (a_ & (b)) | (u_ & c_);                                                                                 \
        low = u_ ^ c_;                                                                                                 \
    }

/* nv vectors of each of n rows (a multiple of 16), which stand `second` bytes apart, into the planes. */
#define DPESTIM_EACH(nv) for (int v = 0; v < nv; v++)
#define DPESTIM_PLANE(p) (planes + (p) * DPESTIM_STRIP + v * 64)
#define DPESTIM_PAIR(csa, nv, high)                                                                                    \
    DPESTIM_EACH(nv) {                                                                                                 \
        const uint8_t *const q = r + v * second;                                                                       \
        DPESTIM_FETCH_TO_READ(q + ahead);                                                                                   \
        DPESTIM_FETCH_TO_READ(q + ahead + stride);                                                                          \
        csa(high[v], one[v], one[v], DPESTIM_GET(q), DPESTIM_GET(q + stride))                                          \
    }                                                                                                                  \
    r += 2 * stride;
#define DPESTIM_FOUR(csa, nv, high)                                                                                    \
    DPESTIM_PAIR(csa, nv, a2)                                                                                          \
    DPESTIM_PAIR(csa, nv, b2)                                                                                          \
    DPESTIM_EACH(nv) csa(high[v], two[v], two[v], a2[v], b2[v])
#define DPESTIM_CSA16(csa, n, nv)                                                                                      \
    {                                                                                                                  \
        dpestim_vector one[nv], two[nv], four[nv], eight[nv], a2[nv], b2[nv], a4[nv], b4[nv], a8[nv], b8[nv];          \
        DPESTIM_EACH(nv) {                                                                                             \
            one[v] = DPESTIM_GET(DPESTIM_PLANE(0)); two[v] = DPESTIM_GET(DPESTIM_PLANE(1));                            \
            four[v] = DPESTIM_GET(DPESTIM_PLANE(2)); eight[v] = DPESTIM_GET(DPESTIM_PLANE(3));                         \
        }                                                                                                              \
        for (size_t left = n; left >= 16; left -= 16) {                                                                \
            DPESTIM_FOUR(csa, nv, a4) DPESTIM_FOUR(csa, nv, b4)                                                        \
            DPESTIM_EACH(nv) csa(a8[v], four[v], four[v], a4[v], b4[v])                                                \
            DPESTIM_FOUR(csa, nv, a4) DPESTIM_FOUR(csa, nv, b4)                                                        \
            DPESTIM_EACH(nv) csa(b8[v], four[v], four[v], a4[v], b4[v])                                                \
            DPESTIM_EACH(nv) csa(a8[v], eight[v], eight[v], a8[v], b8[v])                                              \
            DPESTIM_EACH(nv) for (int p = 4; p < DPESTIM_PLANES; p++) {                                                \
                const dpestim_vector old = DPESTIM_GET(DPESTIM_PLANE(p));                                              \
                DPESTIM_PUT(DPESTIM_PLANE(p), old ^ a8[v]);                                                            \
                a8[v] &= old;                                                                                          \
            }                                                                                                          \
        }                                                                                                              \
        DPESTIM_EACH(nv) {                                                                                             \
            DPESTIM_PUT(DPESTIM_PLANE(0), one[v]); DPESTIM_PUT(DPESTIM_PLANE(1), two[v]);                              \
            DPESTIM_PUT(DPESTIM_PLANE(2), four[v]); DPESTIM_PUT(DPESTIM_PLANE(3), eight[v]);                           \
        }                                                                                                              \
    }

DPESTIM_WIDE static void dpestim_csa16_plain(const uint8_t *restrict rows, size_t stride, size_t n, size_t second,
                                             size_t ahead, uint8_t *restrict strip) {
    size_t m;
    if (ahead < 1 << 15) ahead = 1 << 15; /* one vector at a time leaves gaps between addresses: fetch ahead oneself */
    for (; n >= 16; n -= m, rows += m * stride) {
        m = n < 128 ? n : 128;
        for (size_t j = 0; j < DPESTIM_STRIP; j += sizeof(dpestim_vector)) {
            const uint8_t *r = rows + (j < 64 ? j : second + j - 64);
            uint8_t *planes = strip + j;
            DPESTIM_CSA16(DPESTIM_CSA, m, 1)
        }
    }
}

#if DPESTIM_SSE2 && DPESTIM_GNU
/* Any function of three bits is one instruction here: two for the sum and the carry instead of five. */
#define DPESTIM_TERNARY(high, low, a, b, c)                                                                            \
    {                                                                                                                  \
        const __m512i a_ = (__m512i)(a), b_ = (__m512i)(b), c_ = (__m512i)(c);                                         \
        high = (dpestim_vector)_mm512_ternarylogic_epi64(a_, b_, c_, 0xE8);                                            \
        low = (dpestim_vector)_mm512_ternarylogic_epi64(a_, b_, c_, 0x96);                                             \
    }
DPESTIM_TARGET("avx512f") static void dpestim_csa16_wide(const uint8_t *restrict r, size_t stride, size_t n,
                                                         size_t second, size_t ahead, uint8_t *restrict planes) {
    DPESTIM_CSA16(DPESTIM_TERNARY, n, 2)
}
#endif

/* n rows, a multiple of 16, of a strip that consists of bytes 0 ... 63 and second ... second + 63. */
static void dpestim_csa16(const uint8_t *rows, size_t stride, size_t n, size_t second, size_t ahead,
                          uint8_t *planes) {
#if DPESTIM_SSE2 && DPESTIM_GNU
    if (dpestim_avx512()) {
        dpestim_csa16_wide(rows, stride, n, second, ahead, planes);
        return;
    }
#endif
    dpestim_csa16_plain(rows, stride, n, second, ahead, planes);
}

/* sums[8][strip] = the numbers that the planes spell, bit by bit: at most 4080, so 16 bits hold them. */
DPESTIM_WIDE static void dpestim_spell(const uint8_t *restrict planes, size_t n_planes, uint16_t *restrict sums) {
    memset(sums, 0, 8 * DPESTIM_STRIP * sizeof *sums);
    for (size_t p = 0; p < n_planes; p++)
        for (int b = 0; b < 8; b++) {
            const uint8_t *restrict plane = planes + p * DPESTIM_STRIP;
            uint16_t *restrict sum = sums + b * DPESTIM_STRIP;
            for (size_t j = 0; j < DPESTIM_STRIP; j++) sum[j] += (uint16_t)(((plane[j] >> b) & 1) << p);
        }
}

/* Where the strip that brings byte j of a row starts: the last one overlaps the one before. */
static size_t dpestim_strip_start(size_t j, size_t len, size_t size) { return j + size <= len ? j : len - size; }

/* counts[8 * (byte % width) + bit] += column sums of n rows that are len bytes long; len is a multiple of width. */
static void dpestim_count_rows(const uint8_t *rows, size_t n, size_t len, size_t width, int64_t *counts) {
    uint8_t planes[DPESTIM_STRIPS][DPESTIM_PLANES * DPESTIM_STRIP];
    uint8_t last[16 * DPESTIM_STRIP];
    uint16_t sums[8 * DPESTIM_STRIP];
    const size_t size = len < DPESTIM_STRIP ? len : DPESTIM_STRIP, second = size < 64 ? 64 : size - 64;
    /* rows of one strip follow each other in memory; longer ones are taken 64 at a time, fetched two times 64 ahead */
    const size_t batch = len > DPESTIM_STRIP ? 64 : DPESTIM_CHUNK, ahead = (len > DPESTIM_STRIP ? 128 : 16) * len;
    for (size_t r0 = 0; r0 < n; r0 += DPESTIM_CHUNK) {
        const size_t chunk = n - r0 < DPESTIM_CHUNK ? n - r0 : DPESTIM_CHUNK, whole = size < 64 ? 0 : chunk / 16 * 16;
        size_t n_planes = 0;
        while (chunk >> n_planes) n_planes++;
        for (size_t j0 = 0; j0 < len; j0 += DPESTIM_STRIPS * DPESTIM_STRIP) {
            memset(planes, 0, sizeof planes);
            for (size_t r = 0; r < whole; r += batch)
                for (size_t s = 0, j = j0; s < DPESTIM_STRIPS && j < len; s++, j += DPESTIM_STRIP)
                    dpestim_csa16(rows + (r0 + r) * len + dpestim_strip_start(j, len, size), len,
                                  whole - r < batch ? whole - r : batch, second, ahead, planes[s]);
            for (size_t s = 0, j = j0; s < DPESTIM_STRIPS && j < len; s++, j += DPESTIM_STRIP) {
                const size_t start = dpestim_strip_start(j, len, size);
                for (size_t r = whole; r < chunk; r += 16) { /* padded with rows, and bytes, of zeros */
                    memset(last, 0, sizeof last);
                    for (size_t k = r; k < chunk && k < r + 16; k++)
                        memcpy(last + (k - r) * DPESTIM_STRIP, rows + (r0 + k) * len + start, size);
                    dpestim_csa16(last, DPESTIM_STRIP, 16, second, 0, planes[s]);
                }
                dpestim_spell(planes[s], n_planes, sums);
                size_t byte = j % width;
                for (size_t k = j - start; k < size; k++) {
                    const uint16_t *sum = sums + (k < 64 ? k : 64 + k - second);
                    for (int b = 0; b < 8; b++) counts[8 * byte + b] += sum[b * DPESTIM_STRIP];
                    if (++byte == width) byte = 0;
                }
            }
        }
    }
}

/* Rows shorter than a strip are taken several at a time as one long row, which fills the vectors at every width. */
static void dpestim_unary_count(const uint8_t *reports, size_t n, size_t width, int64_t *counts) {
    const size_t group = width >= DPESTIM_STRIP ? 1 : DPESTIM_STRIP / width;
    const size_t whole = n / group;
    dpestim_count_rows(reports, whole, group * width, width, counts);
    dpestim_count_rows(reports + whole * group * width, n - whole * group, width, width, counts);
}
#endif
