/* Subset selection: k distinct values by the first k swaps of a Fisher-Yates shuffle, draws by multiply-shift, several
 * to a word. (Floyd's algorithm needs less memory, but each of its stores waits for the load before it: 3x slower.) */
#ifndef DPESTIM_SUBSET_H
#define DPESTIM_SUBSET_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "grr.h"
#include "wide.h"

/* n records; words of a record: one that decides about the true value, then the draws. Draw i is from d - 1 - i values;
 * a record that includes its true value leaves the last draw out. `scratch` has room for 2 d values. */
#define DPESTIM_SUBSET(type)                                                                                        \
    static void dpestim_subset_##type(const uint64_t *codes, const uint64_t *words, size_t n, size_t stride,        \
                                      uint64_t d, uint64_t k, uint64_t batch, uint64_t threshold, type *scratch,    \
                                      uint8_t *out, size_t width) {                                                 \
        type *restrict all = scratch, *restrict left = scratch + d;                                                 \
        for (uint64_t v = 0; v < d; v++) all[v] = (type)v;                                                          \
        for (size_t r = 0; r < n; r++, words += stride, out += width) {                                             \
            const uint64_t x = codes[r], include = words[0] < threshold;                                            \
            const uint64_t *next = words + 1;                                                                       \
            uint64_t word = 0, unused = 0;                                                                          \
            memcpy(left, all, x * sizeof(type)); /* every value but the true one */                                 \
            memcpy(left + x, all + x + 1, (d - 1 - x) * sizeof(type));                                              \
            memset(out, 0, width);                                                                                  \
            for (uint64_t i = 0; i < k - include; i++) {                                                            \
                if (unused == 0) {                                                                                  \
                    word = *next++;                                                                                 \
                    unused = batch;                                                                                 \
                }                                                                                                   \
                unused--;                                                                                           \
                const dpestim_u128 product = dpestim_times(word, d - 1 - i);                                        \
                const uint64_t j = i + dpestim_high_word(product);                                                  \
                const type v = left[j];                                                                             \
                word = dpestim_low_word(product);                                                                   \
                left[j] = left[i];                                                                                  \
                out[v >> 3] |= (uint8_t)(1 << (v & 7));                                                             \
            }                                                                                                       \
            out[x >> 3] |= (uint8_t)(include << (x & 7));                                                           \
        }                                                                                                           \
    }

DPESTIM_SUBSET(uint16_t)
DPESTIM_SUBSET(uint32_t)

/* Whether each of n rows of packed bits has exactly k ones. */
DPESTIM_WIDE static int dpestim_weighs(const uint8_t *restrict rows, size_t n, size_t stride, size_t width, uint64_t k) {
    int good = 1;
    for (size_t i = 0; i < n; i++, rows += stride) {
        uint32_t total = 0;
        for (size_t b = 0; b < width; b++) {
            uint8_t x = rows[b];
            x = (uint8_t)(x - ((x >> 1) & 0x55));
            x = (uint8_t)((x & 0x33) + ((x >> 2) & 0x33));
            total += (uint8_t)((x + (x >> 4)) & 0x0F);
        }
        good &= total == k;
    }
    return good;
}
#endif
