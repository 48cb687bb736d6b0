/* Codes of words: how many of the edges each word reaches. */
#ifndef DPESTIM_HISTOGRAM_H
#define DPESTIM_HISTOGRAM_H
#include <stddef.h>
#include <stdint.h>

/* guide[u >> 54] is the code of the least word with the upper 10 bits of u, so that most words need one comparison. */
static inline void dpestim_histogram_codes(const uint64_t *restrict words, size_t n, const uint64_t *restrict edges,
                                           uint32_t most, const uint8_t *restrict guide, uint8_t *restrict out) {
    for (size_t i = 0; i < n; i++) {
        const uint64_t u = words[i];
        uint32_t code = guide[u >> 54];
        /* Whether there is an edge left is as random as the code: no branch asks it, only that after a step, which is
         * rare, does. */
        const uint32_t left = code < most, step = left & (u >= edges[code - !left]);
        if (step)
            do code++;
            while (code < most && u >= edges[code]);
        out[i] = (uint8_t)code;
    }
}
#endif
