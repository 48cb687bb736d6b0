/* The highest bits of 64 bytes, as one word. */
#ifndef DPESTIM_MOVEMASK_H
#define DPESTIM_MOVEMASK_H
#include <stdint.h>

#if defined(__SSE2__) && !DPESTIM_DEBUG /* the debug build runs the portable loop, so that the suite covers it too */
#include <emmintrin.h>
static inline uint64_t dpestim_high_bits(const uint8_t *bytes) {
    uint64_t bits = 0;
    for (int k = 0; k < 4; k++) {
        const __m128i part = _mm_loadu_si128((const __m128i *)(bytes + 16 * k));
        bits |= (uint64_t)(uint32_t)_mm_movemask_epi8(part) << (16 * k);
    }
    return bits;
}
#else
static inline uint64_t dpestim_high_bits(const uint8_t *bytes) {
    uint64_t bits = 0;
    for (int j = 0; j < 64; j++) bits |= (uint64_t)(bytes[j] >> 7) << j;
    return bits;
}
#endif
#endif
