/* Where bytes are small, which few are. */
#ifndef DPESTIM_RARE_H
#define DPESTIM_RARE_H
#include <stddef.h>
#include <stdint.h>
#include "movemask.h"
#include "portable.h"
#include "wide.h"

#define DPESTIM_RARE_RUN 64    /* as many as a word has bits */
#define DPESTIM_RARE_TILE 4096 /* that are compared at a time: a call for each run would cost more than its loop does */

/* The highest bit says whether a byte is `least` to `most`. */
DPESTIM_WIDE static void dpestim_rare_compare(const uint8_t *restrict lanes, size_t n, uint8_t least, uint8_t most,
                                              uint8_t *restrict small) {
    const uint8_t span = (uint8_t)(most - least);
    for (size_t i = 0; i < n; i++) small[i] = (uint8_t)-((uint8_t)(lanes[i] - least) <= span);
}

/* Writes the places of bytes from `least` to `most`, in order; `places` has room for all. */
static inline size_t dpestim_rare_places(const uint8_t *lanes, size_t n, uint8_t least, uint8_t most,
                                         int64_t *places) {
    uint8_t small[DPESTIM_RARE_TILE];
    size_t found = 0;
    for (size_t at = 0; at < n; at += DPESTIM_RARE_TILE) {
        const size_t now = n - at < DPESTIM_RARE_TILE ? n - at : DPESTIM_RARE_TILE;
        size_t i = 0;
        dpestim_rare_compare(lanes + at, now, least, most, small);
        for (; i + DPESTIM_RARE_RUN <= now; i += DPESTIM_RARE_RUN)
            for (uint64_t bits = dpestim_high_bits(small + i); bits; bits &= bits - 1)
                places[found++] = (int64_t)(at + i + (size_t)dpestim_lowest_one(bits));
        for (; i < now; i++)
            if (small[i]) places[found++] = (int64_t)(at + i);
    }
    return found;
}
#endif
