/* Hadamard response and the fast Walsh-Hadamard transform. Entry (j, t) of the Sylvester matrix is +1 where j & t has
 * an even number of ones. */
#ifndef DPESTIM_HADAMARD_H
#define DPESTIM_HADAMARD_H
#include <stddef.h>
#include <stdint.h>
#include "grr.h"
#include "portable.h"
#include "wide.h"

/* The t in [0, 2s) number r of s whose j & t has this parity: r with a bit put in at the lowest one of j. */
static inline uint64_t dpestim_member(uint64_t j, uint64_t r, uint64_t parity) {
    const uint64_t k = dpestim_lowest_one(j), below = ((uint64_t)1 << k) - 1;
    const uint64_t t = ((r & ~below) << 1) | (r & below);
    return t | ((dpestim_odd_ones(j & t) ^ parity) << k);
}

/* The symbol for value x: `slot` 0 is the own half of the own block, 1 the other half of it, 2, 3, ... the lower and
 * upper halves of the other blocks; r < s picks within the half. */
static inline uint64_t dpestim_hadamard_symbol(uint64_t x, uint64_t slot, uint64_t r, int log_blocks, int log_s) {
    const uint64_t own = x & (((uint64_t)1 << log_blocks) - 1), j = (x >> log_blocks) + 1;
    if (slot < 2) return (own << (log_s + 1)) | dpestim_member(j, r, slot);
    const uint64_t block = (slot >> 1) - 1, half = slot & 1;
    return ((block + (block >= own)) << (log_s + 1)) | (half << log_s) | r;
}

/* Steps of the transform, one to three of them in one pass over the data: strides h, 2h and 4h. */
#define DPESTIM_BUTTERFLY(type, x, y) \
    {                                 \
        const type s_ = x + y;        \
        y = x - y;                    \
        x = s_;                       \
    }
#define DPESTIM_BUTTERFLY4(type, x, y, z, t)                        \
    DPESTIM_BUTTERFLY(type, x, y) DPESTIM_BUTTERFLY(type, z, t)     \
    DPESTIM_BUTTERFLY(type, x, z) DPESTIM_BUTTERFLY(type, y, t)

#define DPESTIM_FWHT(bits, type)                                                                                    \
    /* p[0], p[h], ... p[7h] */                                                                                     \
    static inline void dpestim_eight_##bits(type *restrict p, size_t h) {                                           \
        type x0 = p[0], x1 = p[h], x2 = p[2 * h], x3 = p[3 * h], x4 = p[4 * h], x5 = p[5 * h],                      \
                      x6 = p[6 * h], x7 = p[7 * h];                                                                 \
        DPESTIM_BUTTERFLY4(type, x0, x1, x2, x3) DPESTIM_BUTTERFLY4(type, x4, x5, x6, x7)                                       \
        DPESTIM_BUTTERFLY(type, x0, x4) DPESTIM_BUTTERFLY(type, x1, x5) DPESTIM_BUTTERFLY(type, x2, x6) DPESTIM_BUTTERFLY(type, x3, x7)     \
        p[0] = x0; p[h] = x1; p[2 * h] = x2; p[3 * h] = x3;                                                         \
        p[4 * h] = x4; p[5 * h] = x5; p[6 * h] = x6; p[7 * h] = x7;                                                 \
    }                                                                                                               \
    /* Strides 1, 2 and 4: a loop of its own, so that the compiler makes vectors of neighbouring eights. */         \
    DPESTIM_WIDE static void dpestim_first8_##bits(type *restrict a, size_t n) {                                    \
        DPESTIM_INDEPENDENT for (size_t k = 0; k < n; k += 8) dpestim_eight_##bits(a + k, 1);                      \
    }                                                                                                               \
    DPESTIM_WIDE static void dpestim_pass8_##bits(type *restrict a, size_t n, size_t h) {                           \
        for (size_t base = 0; base < n; base += 8 * h)                                                              \
            DPESTIM_INDEPENDENT for (size_t k = 0; k < h; k++) dpestim_eight_##bits(a + base + k, h);              \
    }                                                                                                               \
    DPESTIM_WIDE static void dpestim_pass4_##bits(type *restrict a, size_t n, size_t h) {                           \
        for (size_t base = 0; base < n; base += 4 * h) {                                                            \
            type *p = a + base;                                                                                     \
            DPESTIM_INDEPENDENT for (size_t k = 0; k < h; k++) {                                                   \
                type x = p[k], y = p[h + k], z = p[2 * h + k], t = p[3 * h + k];                                    \
                DPESTIM_BUTTERFLY4(type, x, y, z, t)                                                                      \
                p[k] = x; p[h + k] = y; p[2 * h + k] = z; p[3 * h + k] = t;                                         \
            }                                                                                                       \
        }                                                                                                           \
    }                                                                                                               \
    DPESTIM_WIDE static void dpestim_pass2_##bits(type *restrict a, size_t n, size_t h) {                           \
        for (size_t base = 0; base < n; base += 2 * h) {                                                            \
            type *p = a + base;                                                                                     \
            DPESTIM_INDEPENDENT for (size_t k = 0; k < h; k++) {                                                   \
                type x = p[k], y = p[h + k];                                                                        \
                DPESTIM_BUTTERFLY(type, x, y)                                                                             \
                p[k] = x; p[h + k] = y;                                                                             \
            }                                                                                                       \
        }                                                                                                           \
    }                                                                                                               \
    /* Strides h, 2h, ... n / 2, three at a time. */                                                                \
    static void dpestim_passes_##bits(type *a, size_t n, size_t h) {                                                \
        if (h == 1 && n >= 8) {                                                                                     \
            dpestim_first8_##bits(a, n);                                                                            \
            h = 8;                                                                                                  \
        }                                                                                                           \
        for (; 8 * h <= n; h *= 8) dpestim_pass8_##bits(a, n, h);                                                   \
        if (4 * h == n) dpestim_pass4_##bits(a, n, h);                                                              \
        if (2 * h == n) dpestim_pass2_##bits(a, n, h);                                                              \
    }                                                                                                               \
    /* In place, n a power of two: small strides within pieces that stay in the cache, then the large ones. */      \
    static inline void dpestim_fwht_##bits(type *a, size_t n) {                                                     \
        const size_t piece = n < DPESTIM_PIECE / sizeof *a ? n : DPESTIM_PIECE / sizeof *a;                         \
        for (size_t base = 0; base < n; base += piece) dpestim_passes_##bits(a + base, piece, 1);                   \
        dpestim_passes_##bits(a, n, piece);                                                                         \
    }

#define DPESTIM_PIECE ((size_t)1 << 15) /* bytes: the first-level cache */
DPESTIM_FWHT(32, int32_t)
DPESTIM_FWHT(64, int64_t)
#endif
