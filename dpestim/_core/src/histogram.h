/* Codes of words: how many of the edges each word reaches. */
#ifndef DPESTIM_HISTOGRAM_H
#define DPESTIM_HISTOGRAM_H
#include <stddef.h>
#include <stdint.h>

#define DPESTIM_LASTS 256

/* The last word of each code, the number of edges that it reaches: of the highest one that of all, so that nobody asks
 * whether there is an edge left, which is as random as the code. (An edge of 0 is reached by all, and never asked.) */
static inline void dpestim_histogram_lasts(const uint64_t *restrict edges, uint32_t most, uint64_t *restrict lasts) {
    for (uint32_t j = 0; j < most; j++) lasts[j] = edges[j] - 1;
    for (uint32_t j = most; j < DPESTIM_LASTS; j++) lasts[j] = UINT64_MAX;
}

/* guide[u >> 54] is the code of the least word with the upper 10 bits of u, so that most words need one comparison. */
static inline void dpestim_histogram_codes(const uint64_t *restrict words, size_t n, const uint64_t *restrict lasts,
                                           const uint8_t *restrict guide, uint8_t *restrict out) {
    for (size_t i = 0; i < n; i++) {
        const uint64_t u = words[i];
        uint8_t code = guide[u >> 54];
        while (u > lasts[code]) code++; /* (rarely) */
        out[i] = code;
    }
}
#endif
