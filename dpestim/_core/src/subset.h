/* Subset selection: k distinct values by Floyd's algorithm, draws by multiply-shift, several to a word. */
#ifndef DPESTIM_SUBSET_H
#define DPESTIM_SUBSET_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "grr.h"

#define DPESTIM_LANES 4 /* records at a time: one record's draws wait for each other's stores, four fill the gaps */

/* For up to DPESTIM_LANES records: set bits of `bits` (lane-major, n_words64 words each, zeroed by the caller).
 * Draw i is from d - k + i values; a record that includes its true value skips draw 0 and gets that value instead. */
static inline void dpestim_subset_lanes(const uint64_t *x, const uint64_t *include, const uint64_t *const *draws,
                                        size_t lanes, uint64_t d, uint64_t k, uint64_t batch, uint64_t *bits,
                                        size_t n_words64) {
    uint64_t w[DPESTIM_LANES] = {0};
    uint64_t left = 0, word = 0;
    for (uint64_t i = 0; i < k; i++) {
        const uint64_t range = d - k + i; /* Floyd: of the values below range, or the new one, range - 1 */
        if (left == 0) {
            for (size_t l = 0; l < lanes; l++) w[l] = draws[l][word];
            word++;
            left = batch;
        }
        left--;
        for (size_t l = 0; l < lanes; l++) {
            const dpestim_u128 product = (dpestim_u128)w[l] * range;
            uint64_t v = (uint64_t)(product >> 64), top = range - 1;
            w[l] = (uint64_t)product;
            uint64_t *row = bits + l * n_words64;
            v += v >= x[l]; /* the true value is none of the others */
            top += top >= x[l];
            const uint64_t taken = -((row[v >> 6] >> (v & 63)) & 1);
            v = (v & ~taken) | (top & taken);
            const uint64_t skip = -(uint64_t)(i == 0 && include[l]);
            v = (v & ~skip) | (x[l] & skip);
            row[v >> 6] |= (uint64_t)1 << (v & 63);
        }
    }
}

/* n records; words of a record: one that decides about the true value, then the draws. */
static void dpestim_subset_rows(const uint64_t *codes, const uint64_t *words, size_t n, size_t stride, uint64_t d,
                                uint64_t k, uint64_t batch, uint64_t threshold, uint64_t *bits, size_t n_words64,
                                uint8_t *out, size_t width) {
    for (size_t i = 0; i < n; i += DPESTIM_LANES) {
        const size_t lanes = n - i < DPESTIM_LANES ? n - i : DPESTIM_LANES;
        uint64_t x[DPESTIM_LANES], include[DPESTIM_LANES];
        const uint64_t *draws[DPESTIM_LANES];
        for (size_t l = 0; l < lanes; l++) {
            const uint64_t *record = words + (i + l) * stride;
            x[l] = codes[i + l];
            include[l] = record[0] < threshold;
            draws[l] = record + 1;
        }
        memset(bits, 0, DPESTIM_LANES * n_words64 * sizeof *bits);
        if (lanes == DPESTIM_LANES) /* a constant number of lanes lets the compiler unroll them */
            dpestim_subset_lanes(x, include, draws, DPESTIM_LANES, d, k, batch, bits, n_words64);
        else
            dpestim_subset_lanes(x, include, draws, lanes, d, k, batch, bits, n_words64);
        for (size_t l = 0; l < lanes; l++)
            for (size_t b = 0; b < width; b++) /* little-endian bytes whatever the machine */
                out[(i + l) * width + b] = (uint8_t)(bits[l * n_words64 + b / 8] >> (8 * (b % 8)));
    }
}
#endif
