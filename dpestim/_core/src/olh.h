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

#define DPESTIM_OLH_COUNT(bits, type, sum)                                                                          \
    DPESTIM_WIDE static void dpestim_olh_sum##bits(const type *restrict a, const type *restrict c,                  \
                                                   const type *restrict width, size_t n, size_t d,                  \
                                                   int64_t *restrict counts) {                                      \
        size_t v = 0;                                                                                               \
        for (; v + 4 <= d; v += 4) {                                                                                \
            sum s0 = 0, s1 = 0, s2 = 0, s3 = 0;                                                                     \
            for (size_t i = 0; i < n; i++) {                                                                        \
                const type step = a[i], w = width[i];                                                               \
                const type h0 = (type)(step * (type)v + c[i]), h1 = (type)(h0 + step), h2 = (type)(h1 + step),      \
                           h3 = (type)(h2 + step);                                                                  \
                s0 += h0 < w;                                                                                       \
                s1 += h1 < w;                                                                                       \
                s2 += h2 < w;                                                                                       \
                s3 += h3 < w;                                                                                       \
            }                                                                                                       \
            counts[v] += (int64_t)s0;                                                                               \
            counts[v + 1] += (int64_t)s1;                                                                           \
            counts[v + 2] += (int64_t)s2;                                                                           \
            counts[v + 3] += (int64_t)s3;                                                                           \
        }                                                                                                           \
        for (; v < d; v++) {                                                                                        \
            sum s = 0;                                                                                              \
            for (size_t i = 0; i < n; i++) s += (type)(a[i] * (type)v + c[i]) < width[i];                           \
            counts[v] += (int64_t)s;                                                                                \
        }                                                                                                           \
    }                                                                                                               \
    static void dpestim_olh_count##bits(const type *reports, size_t n, uint64_t g, size_t d, int64_t *counts) {     \
        type a[DPESTIM_USERS], c[DPESTIM_USERS], width[DPESTIM_USERS];                                              \
        for (size_t i0 = 0; i0 < n; i0 += DPESTIM_USERS) {                                                          \
            const size_t m = n - i0 < DPESTIM_USERS ? n - i0 : DPESTIM_USERS;                                       \
            for (size_t i = 0; i < m; i++) {                                                                        \
                const type *r = reports + 3 * (i0 + i);                                                             \
                const type low = dpestim_lo##bits(r[2], g);                                                         \
                a[i] = r[0];                                                                                        \
                c[i] = (type)(r[1] - low);                                                                          \
                width[i] = (type)(dpestim_lo##bits((type)(r[2] + 1), g) - low);                                     \
            }                                                                                                       \
            dpestim_olh_sum##bits(a, c, width, m, d, counts);                                                       \
        }                                                                                                           \
    }                                                                                                               \
    DPESTIM_WIDE static void dpestim_olh_support##bits(const type *restrict reports, size_t n, uint64_t g,          \
                                                       size_t d, uint8_t *restrict out) {                           \
        for (size_t i = 0; i < n; i++) {                                                                            \
            const type *r = reports + 3 * i;                                                                        \
            const type low = dpestim_lo##bits(r[2], g);                                                             \
            const type a = r[0], c = (type)(r[1] - low);                                                            \
            const type width = (type)(dpestim_lo##bits((type)(r[2] + 1), g) - low);                                 \
            for (size_t v = 0; v < d; v++) out[i * d + v] = (type)(a * (type)v + c) < width;                        \
        }                                                                                                           \
    }

DPESTIM_OLH_COUNT(32, uint32_t, uint32_t)
DPESTIM_OLH_COUNT(64, uint64_t, uint64_t)
#endif
