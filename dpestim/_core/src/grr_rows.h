/* Generalised randomised responses of many records. */
#ifndef DPESTIM_GRR_ROWS_H
#define DPESTIM_GRR_ROWS_H
#include <stddef.h>
#include <stdint.h>
#include "grr.h"
#include "wide.h"

/* One word each, for w >= 2^33, and no product beyond 64 bits, which vectors have not: the high half of u - keep times
 * c = floor((2^(64 + k) - 1) / w) < 2^32, where 2^(32 + k) <= w < 2^(33 + k), gives the quotient or one less (proof:
 * local/categories/grr.md), and one comparison corrects it exactly. */
#define DPESTIM_GRR_ROWS(bits, code)                                                                                 \
    DPESTIM_WIDE static void dpestim_grr_rows##bits(const code *restrict codes, const uint64_t *restrict words,      \
                                                    size_t n, uint64_t keep, uint64_t w, code *restrict out) {       \
        int k = 1;                                                                                                   \
        while (k < 31 && w >> (33 + k)) k++;                                                                         \
        const dpestim_u128 top = dpestim_join(((uint64_t)1 << k) - 1, UINT64_MAX); /* 2^(64 + k) - 1 */               \
        const uint64_t c = dpestim_quotient(top, dpestim_join(0, w));                                                \
        for (size_t i = 0; i < n; i++) {                                                                             \
            const uint64_t u = words[i], x = codes[i], rest = u - keep;                                              \
            uint64_t other = ((rest >> 32) * c) >> (32 + k);                                                         \
            other += (rest - other * w) >= w;                                                                        \
            other += other >= x;                                                                                     \
            out[i] = (code)(u < keep ? x : other);                                                                   \
        }                                                                                                            \
    }
DPESTIM_GRR_ROWS(8, uint8_t)
DPESTIM_GRR_ROWS(16, uint16_t)
DPESTIM_GRR_ROWS(32, uint32_t)
#endif
