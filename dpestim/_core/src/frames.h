/* Frames of signs: layers of random signs, each followed by a Hadamard transform, of floats and of integers. */
#ifndef DPESTIM_FRAMES_H
#define DPESTIM_FRAMES_H
#include <stdint.h>
#include <string.h>
#include "hadamard.h"
#include "portable.h"
#include "wide.h"

DPESTIM_FWHT(f32, float)

/* SplitMix64 (Steele, Lea, Flood 2014): the word of a state, and the next word. */
#define DPESTIM_PU_GAMMA 0x9E3779B97F4A7C15ULL
#define DPESTIM_PU_MIX(z)                           \
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;     \
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;     \
    z ^= z >> 31;
static inline uint64_t dpestim_pu_next(uint64_t *state) {
    uint64_t z = (*state += DPESTIM_PU_GAMMA);
    DPESTIM_PU_MIX(z)
    return z;
}

/* Words of signs, 32 to a number: of the shared layers, number 0 next to the data, and then of the frames. */
DPESTIM_WIDE static void dpestim_pu_layer(uint64_t seed, size_t layer, size_t size, uint32_t *restrict bits) {
    const size_t first = layer * (size / 64) + 1;
    for (size_t w = 0; w < size / 64; w++) {
        uint64_t z = seed + DPESTIM_PU_GAMMA * (uint64_t)(first + w);
        DPESTIM_PU_MIX(z)
        bits[2 * w] = (uint32_t)z;
        bits[2 * w + 1] = (uint32_t)(z >> 32);
    }
}

/* Change signs as random bits say; n is a multiple of 64. */
DPESTIM_WIDE static void dpestim_pu_signs_32(int32_t *restrict a, const uint32_t *restrict bits, size_t n) {
    for (size_t w = 0; w < n / 32; w++)
        for (int k = 0; k < 32; k++) {
            const int32_t s = (int32_t)(bits[w] << (31 - k)) >> 31;
            a[32 * w + k] = (a[32 * w + k] ^ s) - s;
        }
}

/* out becomes the transform of `a` with changed signs, which may be the same memory. Where the compiler has vectors of
 * eight: strides to 32 within eight of them, which change signs as they are read, then 64 to 512 within sixteen. All
 * ways add the same numbers in the same order. */
#if DPESTIM_GNU && !defined(__clang__)
DPESTIM_VECTOR(float, 32, dpestim_pu_v8);
DPESTIM_VECTOR(int32_t, 32, dpestim_pu_i8);
DPESTIM_VECTOR(uint32_t, 32, dpestim_pu_u8);
/* Each number and its partner, or its partner less itself. Products with 1 and -1 are exact, so that one fused with the
 * addition rounds as the addition does: here alone they may be fused. */
#define DPESTIM_PU_STRIDE(v, a, b, c, d, e, f, g, h, ...)                  \
    {                                                                      \
        const dpestim_pu_i8 order = {a, b, c, d, e, f, g, h};              \
        const dpestim_pu_v8 own = __VA_ARGS__;                             \
        v = v * own + DPESTIM_SHUFFLED(v, order);                          \
    }
DPESTIM_FUSED
DPESTIM_WIDE static void dpestim_pu_first64(const float *a, const uint32_t *bits, size_t n, float *out) {
    const dpestim_pu_u8 up = {31, 30, 29, 28, 27, 26, 25, 24}, sign = (dpestim_pu_u8){0} + 0x80000000u;
    for (size_t k = 0; k < n; k += 64) {
        dpestim_pu_v8 v[8];
        for (int j = 0; j < 8; j++) {
            const dpestim_pu_u8 word = (dpestim_pu_u8){0} + bits[k / 32 + j / 4];
            const dpestim_pu_u8 turned = (word << (up - 8 * (j % 4))) & sign;
            v[j] = (dpestim_pu_v8)(*(const dpestim_pu_u8 *)(a + k + 8 * j) ^ turned);
            DPESTIM_PU_STRIDE(v[j], 1, 0, 3, 2, 5, 4, 7, 6, {1, -1, 1, -1, 1, -1, 1, -1})
            DPESTIM_PU_STRIDE(v[j], 2, 3, 0, 1, 6, 7, 4, 5, {1, 1, -1, -1, 1, 1, -1, -1})
            DPESTIM_PU_STRIDE(v[j], 4, 5, 6, 7, 0, 1, 2, 3, {1, 1, 1, 1, -1, -1, -1, -1})
        }
        DPESTIM_BUTTERFLY4(dpestim_pu_v8, v[0], v[1], v[2], v[3]) DPESTIM_BUTTERFLY4(dpestim_pu_v8, v[4], v[5], v[6], v[7])
        for (int j = 0; j < 4; j++) DPESTIM_BUTTERFLY(dpestim_pu_v8, v[j], v[j + 4])
        for (int j = 0; j < 8; j++) *(dpestim_pu_v8 *)(out + k + 8 * j) = v[j];
    }
}
DPESTIM_WIDE static void dpestim_pu_pass16(float *a, size_t n, size_t h) {
    for (size_t base = 0; base < n; base += 16 * h)
        for (size_t k = 0; k < h; k += 8) {
            float *p = a + base + k;
            dpestim_pu_v8 v[16];
            for (int j = 0; j < 16; j++) v[j] = *(const dpestim_pu_v8 *)(p + j * h);
            for (int j = 0; j < 16; j += 4) {
                DPESTIM_BUTTERFLY4(dpestim_pu_v8, v[j], v[j + 1], v[j + 2], v[j + 3])
            }
            for (int j = 0; j < 4; j++) {
                DPESTIM_BUTTERFLY(dpestim_pu_v8, v[j], v[j + 4])
                DPESTIM_BUTTERFLY(dpestim_pu_v8, v[j + 8], v[j + 12])
            }
            for (int j = 0; j < 8; j++) DPESTIM_BUTTERFLY(dpestim_pu_v8, v[j], v[j + 8])
            for (int j = 0; j < 16; j++) *(dpestim_pu_v8 *)(p + j * h) = v[j];
        }
}
static inline void dpestim_pu_turn(const float *a, const uint32_t *bits, size_t n, float *out) {
    dpestim_pu_first64(a, bits, n, out);
    if (n >= 1024) dpestim_pu_pass16(out, n, 64);
    dpestim_passes_f32(out, n, n >= 1024 ? 1024 : 64);
}
#else
static inline void dpestim_pu_turn(const float *a, const uint32_t *bits, size_t n, float *out) {
    if (out != a) memcpy(out, a, n * sizeof *a);
    for (size_t k = 0; k < n; k++)
        if (bits[k / 32] >> (k % 32) & 1) out[k] = -out[k];
    dpestim_fwht_f32(out, n);
}
#endif
#endif
