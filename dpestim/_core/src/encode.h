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

/* Whether each value is the one before it and 1, modulo 2^w. What comes next is fetched before it is wanted, some lines
 * at a time: a processor's own look ahead ends with the page. */
#define DPESTIM_STEPS(in)                                                                       \
    DPESTIM_WIDE static int dpestim_steps##in(const uint##in##_t *restrict values, size_t n) {  \
        const size_t size = 4096 / in, ahead = 8 * size; /* 512 bytes, and 4,096 */             \
        for (size_t at = 1; at < n; at += size) {                                               \
            const size_t stop = n - at > size ? at + size : n;                                  \
            uint##in##_t bad = 0;                                                               \
            if (n - at >= ahead + size)                                                         \
                for (size_t i = 0; i < size; i += 512 / in) DPESTIM_FETCH_TO_READ(values + at + ahead + i); \
            for (size_t i = at; i < stop; i++)                                                  \
                bad |= (uint##in##_t)(values[i] - values[i - 1] - 1);                           \
            if (bad) return 0;                                                                  \
        }                                                                                       \
        return 1;                                                                               \
    }
DPESTIM_STEPS(8)
DPESTIM_STEPS(16)
DPESTIM_STEPS(32)
DPESTIM_STEPS(64)

/* Rows of columns with a range each: marks columns with a value outside, row by row; and turns rows that stay in the
 * nearest cache into columns of codes, which are those of `dpestim_encode` where no value is outside. */
#define DPESTIM_ENCODE_ROWS(in)                                                                                     \
    DPESTIM_WIDE static void dpestim_outside##in(const uint##in##_t *restrict values, size_t rows, size_t d,        \
                                                 const uint##in##_t *restrict low,                                  \
                                                 const uint##in##_t *restrict span, uint##in##_t *restrict bad) {   \
        for (size_t i = 0; i < rows; i++)                                                                           \
            for (size_t j = 0; j < d; j++) bad[j] |= (uint##in##_t)(values[i * d + j] - low[j]) > span[j];          \
    }                                                                                                               \
    static void dpestim_turn##in(const uint##in##_t *restrict values, size_t rows, size_t d, uint##in##_t shift,    \
                                 uint8_t *restrict out) {                                                           \
        for (size_t i = 0; i < rows; i++) out[i] = (uint8_t)(values[i * d] - shift);                                \
    }
DPESTIM_ENCODE_ROWS(8)
DPESTIM_ENCODE_ROWS(16)
DPESTIM_ENCODE_ROWS(32)
DPESTIM_ENCODE_ROWS(64)
#endif
