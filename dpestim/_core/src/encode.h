/* Codes of integers in a contiguous range: one subtraction and one comparison, for signed and unsigned types alike,
 * because v - low modulo 2^w is at most high - low exactly where low <= v <= high. A row outside gets the fallback and
 * costs what any other row does. */
#ifndef DPESTIM_ENCODE_H
#define DPESTIM_ENCODE_H
#include <stddef.h>
#include <stdint.h>
#include "wide.h"

#define DPESTIM_ENCODE(in, bits, code)                                                                              \
    DPESTIM_WIDE static int dpestim_encode##in##_##bits(const uint##in##_t *restrict values, size_t n,              \
                                                        uint##in##_t low, uint##in##_t span, uint32_t first,        \
                                                        uint32_t fallback, code *restrict out) {                    \
        uint##in##_t bad = 0;                                                                                       \
        for (size_t i = 0; i < n; i++) {                                                                            \
            const uint##in##_t x = (uint##in##_t)(values[i] - low);                                                 \
            bad |= x > span;                                                                                        \
            out[i] = (code)(x > span ? fallback : x + first);                                                       \
        }                                                                                                           \
        return bad != 0;                                                                                            \
    }
#define DPESTIM_ENCODE_ALL(in)        \
    DPESTIM_ENCODE(in, 8, uint8_t)    \
    DPESTIM_ENCODE(in, 16, uint16_t)  \
    DPESTIM_ENCODE(in, 32, uint32_t)
DPESTIM_ENCODE_ALL(8)
DPESTIM_ENCODE_ALL(16)
DPESTIM_ENCODE_ALL(32)
DPESTIM_ENCODE_ALL(64)

/* The same for rows of columns with a range each; what is outside gets 0. */
#define DPESTIM_ENCODE_ROWS(in)                                                                                     \
    DPESTIM_WIDE static int dpestim_encode_rows##in(const uint##in##_t *restrict values, size_t n,                  \
                                                    const uint##in##_t *restrict low,                               \
                                                    const uint##in##_t *restrict span,                              \
                                                    const uint8_t *restrict first, uint8_t *restrict out) {         \
        uint##in##_t bad = 0;                                                                                       \
        for (size_t i = 0; i < n; i++) {                                                                            \
            const uint##in##_t x = (uint##in##_t)(values[i] - low[i]);                                              \
            bad |= x > span[i];                                                                                     \
            out[i] = (uint8_t)(x > span[i] ? 0 : x + first[i]);                                                     \
        }                                                                                                           \
        return bad != 0;                                                                                            \
    }
DPESTIM_ENCODE_ROWS(8)
DPESTIM_ENCODE_ROWS(16)
DPESTIM_ENCODE_ROWS(32)
DPESTIM_ENCODE_ROWS(64)
#endif
