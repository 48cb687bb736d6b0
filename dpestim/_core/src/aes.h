/* AES-256 by the processor's own instructions, whose time depends on no key and no message (FIPS 197; the key's schedule
 * as Intel's manual has it). Few words cost less so than OpenSSL takes to be set up, and kernels that make their words
 * hand over nothing to Python meanwhile. Where compiler or processor have no such instructions, dpestim_has_aes (wide.h)
 * says so, and nothing here may be called. */
#ifndef DPESTIM_AES_H
#define DPESTIM_AES_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "portable.h"
#include "wide.h"

#if DPESTIM_AES_COMPILED
#include <wmmintrin.h>
#if DPESTIM_HAS_WIDE
#include <immintrin.h>
#endif

#define DPESTIM_AES_ROUNDS 14
#define DPESTIM_AES_LANES 8 /* blocks at a time: an instruction takes several cycles, and one can begin in each */
/* The keys of the rounds, which are worked out once for many calls. */
typedef struct {
    __m128i round[DPESTIM_AES_ROUNDS + 1];
} dpestim_aes_keys;

/* The next round's key: that of two rounds ago, its words summed from the first on, and a word of the last. */
#define DPESTIM_AES_NEXT(keys, i, constant, word) \
    (keys)[i] = _mm_xor_si128(dpestim_aes_summed((keys)[(i) - 2]), \
                              _mm_shuffle_epi32(_mm_aeskeygenassist_si128((keys)[(i) - 1], constant), word))
#define DPESTIM_AES_EVEN(keys, i, constant) DPESTIM_AES_NEXT(keys, i, constant, 0xff)
#define DPESTIM_AES_ODD(keys, i) DPESTIM_AES_NEXT(keys, i, 0, 0xaa)

static inline __m128i dpestim_aes_summed(__m128i x) {
    x = _mm_xor_si128(x, _mm_slli_si128(x, 4));
    return _mm_xor_si128(x, _mm_slli_si128(x, 8));
}

DPESTIM_TARGET("aes") static void dpestim_aes_schedule(const uint8_t *key, dpestim_aes_keys *schedule) {
    __m128i *keys = schedule->round;
    keys[0] = _mm_loadu_si128((const __m128i *)key);
    keys[1] = _mm_loadu_si128((const __m128i *)(key + 16));
    DPESTIM_AES_EVEN(keys, 2, 0x01);
    DPESTIM_AES_ODD(keys, 3);
    DPESTIM_AES_EVEN(keys, 4, 0x02);
    DPESTIM_AES_ODD(keys, 5);
    DPESTIM_AES_EVEN(keys, 6, 0x04);
    DPESTIM_AES_ODD(keys, 7);
    DPESTIM_AES_EVEN(keys, 8, 0x08);
    DPESTIM_AES_ODD(keys, 9);
    DPESTIM_AES_EVEN(keys, 10, 0x10);
    DPESTIM_AES_ODD(keys, 11);
    DPESTIM_AES_EVEN(keys, 12, 0x20);
    DPESTIM_AES_ODD(keys, 13);
    DPESTIM_AES_EVEN(keys, 14, 0x40);
}

/* A counter's bytes, the highest first. */
static inline uint64_t dpestim_aes_turned(uint64_t x) {
    return x >> 56 | (x >> 40 & 0xff00) | (x >> 24 & 0xff0000) | (x >> 8 & 0xff000000) | (x & 0xff000000) << 8 |
           (x & 0xff0000) << 24 | (x & 0xff00) << 40 | x << 56;
}
static inline void dpestim_aes_counter(uint64_t head, uint64_t place, uint8_t *block) {
    const uint64_t counter[2] = {dpestim_aes_turned(head), dpestim_aes_turned(place)};
    memcpy(block, counter, sizeof counter);
}

/* Encrypts up to DPESTIM_AES_LANES blocks of 16 bytes in place. */
DPESTIM_TARGET("aes") static inline void dpestim_aes_lanes(const __m128i *keys, uint8_t *blocks, size_t n) {
    __m128i lanes[DPESTIM_AES_LANES];
    for (size_t j = 0; j < n; j++)
        lanes[j] = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(blocks + 16 * j)), keys[0]);
    for (int round = 1; round < DPESTIM_AES_ROUNDS; round++)
        for (size_t j = 0; j < n; j++) lanes[j] = _mm_aesenc_si128(lanes[j], keys[round]);
    for (size_t j = 0; j < n; j++)
        _mm_storeu_si128((__m128i *)(blocks + 16 * j), _mm_aesenclast_si128(lanes[j], keys[DPESTIM_AES_ROUNDS]));
}

#if DPESTIM_HAS_WIDE
#define DPESTIM_AES_VECTORS 8 /* of four blocks */

/* Encrypts DPESTIM_AES_VECTORS vectors, whose first round's sum is done. */
DPESTIM_TARGET("avx512f,vaes") static inline void dpestim_aes_vectors(const __m128i *keys, __m512i *lanes,
                                                                      uint8_t *out) {
    __m512i key;
    for (int round = 1; round < DPESTIM_AES_ROUNDS; round++) {
        key = _mm512_broadcast_i32x4(keys[round]);
        for (int j = 0; j < DPESTIM_AES_VECTORS; j++) lanes[j] = _mm512_aesenc_epi128(lanes[j], key);
    }
    key = _mm512_broadcast_i32x4(keys[DPESTIM_AES_ROUNDS]);
    for (int j = 0; j < DPESTIM_AES_VECTORS; j++)
        _mm512_storeu_si512((void *)(out + 64 * j), _mm512_aesenclast_epi128(lanes[j], key));
}

/* Encrypts pieces of DPESTIM_AES_VECTORS vectors in place, and returns how many blocks it has left. */
DPESTIM_TARGET("avx512f,vaes") static size_t dpestim_aes_wide(const __m128i *keys, uint8_t *blocks, size_t n) {
    for (; n >= 4 * DPESTIM_AES_VECTORS; n -= 4 * DPESTIM_AES_VECTORS, blocks += 64 * DPESTIM_AES_VECTORS) {
        __m512i lanes[DPESTIM_AES_VECTORS], key = _mm512_broadcast_i32x4(keys[0]);
        for (int j = 0; j < DPESTIM_AES_VECTORS; j++)
            lanes[j] = _mm512_xor_si512(_mm512_loadu_si512((const void *)(blocks + 64 * j)), key);
        dpestim_aes_vectors(keys, lanes, blocks);
    }
    return n;
}

/* The same of counters, which are never in memory: written as numbers, turned in the register. */
DPESTIM_TARGET("avx512f,avx512bw,vaes") static size_t dpestim_aes_wide_stream(const __m128i *keys, uint64_t head,
                                                                              uint64_t first, uint8_t *out, size_t n) {
    const __m512i turn = _mm512_broadcast_i32x4(_mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    const __m512i step = _mm512_set_epi64(0, 4, 0, 4, 0, 4, 0, 4), key = _mm512_broadcast_i32x4(keys[0]);
    const long long high = (long long)head, low = (long long)first;
    __m512i counters = _mm512_add_epi64(_mm512_set_epi64(high, low, high, low, high, low, high, low),
                                        _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0));
    for (; n >= 4 * DPESTIM_AES_VECTORS; n -= 4 * DPESTIM_AES_VECTORS, out += 64 * DPESTIM_AES_VECTORS) {
        __m512i lanes[DPESTIM_AES_VECTORS];
        for (int j = 0; j < DPESTIM_AES_VECTORS; j++) {
            lanes[j] = _mm512_xor_si512(_mm512_shuffle_epi8(counters, turn), key);
            counters = _mm512_add_epi64(counters, step);
        }
        dpestim_aes_vectors(keys, lanes, out);
    }
    return n;
}
#endif

/* Encrypts n blocks of 16 bytes in place. */
DPESTIM_TARGET("aes") static void dpestim_aes_blocks(const dpestim_aes_keys *keys, uint8_t *blocks, size_t n) {
#if DPESTIM_HAS_WIDE
    if (n >= 4 * DPESTIM_AES_VECTORS && dpestim_vector_aes()) {
        const size_t left = dpestim_aes_wide(keys->round, blocks, n);
        blocks += 16 * (n - left);
        n = left;
    }
#endif
    for (; n >= DPESTIM_AES_LANES; n -= DPESTIM_AES_LANES, blocks += 16 * DPESTIM_AES_LANES)
        dpestim_aes_lanes(keys->round, blocks, DPESTIM_AES_LANES);
    dpestim_aes_lanes(keys->round, blocks, n);
}

/* Writes what n counters head, first + 0, 1, ... become; `first` is never carried into `head`. */
DPESTIM_TARGET("aes") static void dpestim_aes_stream(const dpestim_aes_keys *keys, uint64_t head, uint64_t first,
                                                     uint8_t *out, size_t n) {
#if DPESTIM_HAS_WIDE
    if (n >= 4 * DPESTIM_AES_VECTORS && dpestim_vector_aes()) {
        const size_t left = dpestim_aes_wide_stream(keys->round, head, first, out, n);
        first += n - left;
        out += 16 * (n - left);
        n = left;
    }
#endif
    for (size_t step; n; n -= step, first += step, out += 16 * step) {
        step = n < DPESTIM_AES_LANES ? n : DPESTIM_AES_LANES;
        for (size_t k = 0; k < step; k++) dpestim_aes_counter(head, first + k, out + 16 * k);
        if (step == DPESTIM_AES_LANES)
            dpestim_aes_lanes(keys->round, out, DPESTIM_AES_LANES);
        else
            dpestim_aes_lanes(keys->round, out, step);
    }
}
#else
typedef struct {
    int none;
} dpestim_aes_keys;
static inline void dpestim_aes_schedule(const uint8_t *key, dpestim_aes_keys *keys) { (void)key, (void)keys; }
static inline void dpestim_aes_counter(uint64_t head, uint64_t place, uint8_t *block) {
    (void)head, (void)place, (void)block;
}
static inline void dpestim_aes_blocks(const dpestim_aes_keys *keys, uint8_t *blocks, size_t n) {
    (void)keys, (void)blocks, (void)n;
}
static inline void dpestim_aes_stream(const dpestim_aes_keys *keys, uint64_t head, uint64_t first, uint8_t *out,
                                      size_t n) {
    (void)keys, (void)head, (void)first, (void)out, (void)n;
}
#endif
#endif
