/* Local hashing: h(v) = a v + b on 32- or 64-bit lanes, bucket y = floor(h g / 2^bits).
 *
 * Bucket y is the interval [lo(y), lo(y + 1)), lo(y) = ceil(y 2^bits / g), so "v is in the reported bucket" is
 * one comparison, (a v + (b - lo(y))) mod 2^bits < lo(y + 1) - lo(y), and along v one addition: no multiplication. */
#ifndef DPESTIM_OLH_H
#define DPESTIM_OLH_H
#include <stddef.h>
#include <stdint.h>
#include "wide.h"
#include "wide_int.h"

#define DPESTIM_USERS 2048 /* users whose a, b - lo and width stay in the first-level cache while all values pass */

static inline uint32_t dpestim_lo32(uint32_t y, uint64_t g) {
    return (uint32_t)((((uint64_t)y << 32) + g - 1) / g); /* y = g gives 2^32, that is 0 modulo 2^32, as wanted */
}

static inline uint64_t dpestim_lo64(uint64_t y, uint64_t g) { /* g <= 2^32: nothing below overflows */
    const uint64_t q = UINT64_MAX / g, r = UINT64_MAX % g + 1; /* 2^64 = q g + r, with r = g where g divides 2^64 */
    return y * q + (y * r + g - 1) / g;
}

static inline uint32_t dpestim_bucket32(uint32_t h, uint64_t g) { return (uint32_t)(((uint64_t)h * g) >> 32); }

static inline uint64_t dpestim_bucket64(uint64_t h, uint64_t g) {
    return dpestim_high(h, g);
}

/* The count walks through the values eight at a time, while their counters stay in registers: a pair of a user and a
 * value is one addition, one comparison, one count. Hashes and widths have their highest bit turned, because what vectors
 * compare is signed; an addition modulo 2^bits does not notice. */
#define DPESTIM_OLH_VALUES 8
#define DPESTIM_OLH_LOWS 1024 /* buckets whose lowest hashes are kept in a table: a division takes ten times as long */

#define DPESTIM_OLH_EACH(step) step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7)
#define DPESTIM_OLH_NAME(k) s##k = 0,
#define DPESTIM_OLH_STEP(k)                                                                                            \
    s##k += (lane)h < w;                                                                                               \
    h += step;
#define DPESTIM_OLH_PUT(k) sums[k] = (int64_t)s##k;

#define DPESTIM_OLH_COUNT(bits, type, signed_type)                                                                     \
    DPESTIM_WIDE256 static void dpestim_olh_sum##bits(const type *restrict a, type *restrict c,                        \
                                                   const type *restrict width, size_t n, int64_t *restrict sums) {     \
        typedef signed_type lane;                                                                                      \
        type DPESTIM_OLH_EACH(DPESTIM_OLH_NAME) unused = 0;                                                            \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const type step = a[i];                                                                                    \
            const lane w = (lane)width[i];                                                                             \
            type h = c[i];                                                                                             \
            DPESTIM_OLH_EACH(DPESTIM_OLH_STEP)                                                                         \
            c[i] = h;                                                                                                  \
        }                                                                                                              \
        (void)unused;                                                                                                  \
        DPESTIM_OLH_EACH(DPESTIM_OLH_PUT)                                                                              \
    }                                                                                                                  \
    static void dpestim_olh_count##bits(const type *reports, size_t n, uint64_t g, size_t d, int64_t *counts) {        \
        type a[DPESTIM_USERS], c[DPESTIM_USERS], width[DPESTIM_USERS], lows[DPESTIM_OLH_LOWS + 1];                     \
        const type half = (type)1 << (bits - 1);                                                                       \
        const uint64_t known = g <= DPESTIM_OLH_LOWS && g <= n ? g : 0;                                                \
        for (uint64_t y = 0; known && y <= g; y++) lows[y] = dpestim_lo##bits((type)y, g);                             \
        for (size_t i0 = 0; i0 < n; i0 += DPESTIM_USERS) {                                                             \
            const size_t m = n - i0 < DPESTIM_USERS ? n - i0 : DPESTIM_USERS;                                          \
            for (size_t i = 0; i < m; i++) {                                                                           \
                const type *r = reports + 3 * (i0 + i);                                                                \
                const type low = r[2] < known ? lows[r[2]] : dpestim_lo##bits(r[2], g);                                \
                const type next = r[2] < known ? lows[r[2] + 1] : dpestim_lo##bits((type)(r[2] + 1), g);               \
                a[i] = r[0];                                                                                           \
                c[i] = (type)(r[1] - low) ^ half;                                                                      \
                width[i] = (type)(next - low) ^ half;                                                                  \
            }                                                                                                          \
            for (size_t v = 0; v < d; v += DPESTIM_OLH_VALUES) {                                                       \
                int64_t sums[DPESTIM_OLH_VALUES];                                                                      \
                dpestim_olh_sum##bits(a, c, width, m, sums);                                                           \
                for (size_t k = 0; k < DPESTIM_OLH_VALUES && v + k < d; k++) counts[v + k] += sums[k];                 \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    DPESTIM_WIDE static void dpestim_olh_support##bits(const type *restrict reports, size_t n, uint64_t g,             \
                                                       size_t d, uint8_t *restrict out) {                              \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const type *r = reports + 3 * i;                                                                           \
            const type low = dpestim_lo##bits(r[2], g);                                                                \
            const type a = r[0], c = (type)(r[1] - low);                                                               \
            const type width = (type)(dpestim_lo##bits((type)(r[2] + 1), g) - low);                                    \
            for (size_t v = 0; v < d; v++) out[i * d + v] = (type)(a * (type)v + c) < width;                           \
        }                                                                                                              \
    }

DPESTIM_OLH_COUNT(32, uint32_t, int32_t)
DPESTIM_OLH_COUNT(64, uint64_t, int64_t)
#endif
