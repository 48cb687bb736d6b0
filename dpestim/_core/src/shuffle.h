/* Places for a shuffle: uniform below m by a multiplication, with the exact rejection of Lemire (2019). */
#ifndef DPESTIM_SHUFFLE_H
#define DPESTIM_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "portable.h"
#include "wide_int.h"

static inline uint64_t dpestim_product(uint64_t a, uint64_t b, uint64_t *low) {
    const dpestim_u128 both = dpestim_times(a, b);
    *low = dpestim_low_word(both);
    return dpestim_high_word(both);
}

/* Uniform below m. A rejected word is replaced by a spare one; with no spare left *used passes n_spare, which the caller reads. */
static inline uint64_t dpestim_below(uint64_t word, uint64_t m, const uint64_t *spare, size_t n_spare, size_t *used) {
    uint64_t low, high = dpestim_product(word, m, &low);
    if (low < m) {  /* else it is above any threshold: the division is for few */
        uint64_t least = (0 - m) % m;
        while (low < least) {
            if (*used >= n_spare) { *used = n_spare + 1; return 0; }
            high = dpestim_product(spare[(*used)++], m, &low);
        }
    }
    return high;
}

#define DPESTIM_AHEAD 64

/* Swap what stands at last - 1, ..., first with places at or below; the places do not depend on data, so they are fetched ahead. */
#define DPESTIM_SWAP(SAVE, MOVE) \
    for (size_t done = 0; done < n; done += DPESTIM_AHEAD) { \
        size_t step = n - done < DPESTIM_AHEAD ? n - done : DPESTIM_AHEAD; \
        for (size_t k = 0; k < step; k++) { \
            size_t at = last - 1 - done - k; \
            place[k] = (size_t)dpestim_below(words[done + k], (uint64_t)at + 1, spare, n_spare, used); \
            DPESTIM_FETCH_TO_WRITE(rows + place[k] * width); \
        } \
        for (size_t k = 0; k < step; k++) { \
            uint8_t *a = rows + (last - 1 - done - k) * width, *b = rows + place[k] * width; \
            SAVE; MOVE; \
        } \
    }

static inline void dpestim_swaps(uint8_t *rows, size_t width, size_t first, size_t last, const uint64_t *words,
                                 const uint64_t *spare, size_t n_spare, size_t *used) {
    size_t place[DPESTIM_AHEAD], n = last - first;
    if (width == 8) {
        uint64_t x, y;
        DPESTIM_SWAP((memcpy(&x, a, 8), memcpy(&y, b, 8)), (memcpy(a, &y, 8), memcpy(b, &x, 8)))
    } else {
        DPESTIM_SWAP((void)0, for (size_t c = 0; c < width; c++) { uint8_t x = a[c]; a[c] = b[c]; b[c] = x; })
    }
}

static inline void dpestim_slot(uint8_t *to, const uint8_t *from, size_t width) {
    if (width == 8) memcpy(to, from, 8); else memcpy(to, from, width);
}

#endif
