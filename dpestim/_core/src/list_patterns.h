/* Common neighbours of pairs of nodes in rows of bits. */
#ifndef DPESTIM_LIST_PATTERNS_H
#define DPESTIM_LIST_PATTERNS_H

#include <stddef.h>
#include <stdint.h>

#include "portable.h"
#include "wide.h"

/* counts[j] = ones of both rows[j] and row, for rows first, ..., last - 1 of `width` words each. */
DPESTIM_WIDE static void dpestim_common(const uint64_t *restrict rows, size_t width, size_t first, size_t last,
                                        const uint64_t *restrict row, int64_t *restrict counts) {
    for (size_t j = first; j < last; j++) {
        const uint64_t *other = rows + j * width;
        int64_t a = 0, b = 0, c = 0, d = 0;
        size_t w = 0;
        for (; w + 4 <= width; w += 4) {
            a += dpestim_ones(row[w] & other[w]);
            b += dpestim_ones(row[w + 1] & other[w + 1]);
            c += dpestim_ones(row[w + 2] & other[w + 2]);
            d += dpestim_ones(row[w + 3] & other[w + 3]);
        }
        for (; w < width; w++) a += dpestim_ones(row[w] & other[w]);
        counts[j] = a + b + c + d;
    }
}

/* The same for ones of numbers below j. */
DPESTIM_WIDE static void dpestim_common_before(const uint64_t *restrict rows, size_t width, size_t first, size_t last,
                                               const uint64_t *restrict row, int64_t *restrict counts) {
    for (size_t j = first; j < last; j++) {
        const uint64_t *other = rows + j * width;
        const size_t whole = j / 64;
        int64_t a = dpestim_ones(row[whole] & other[whole] & (((uint64_t)1 << j % 64) - 1)), b = 0;
        size_t w = 0;
        for (; w + 2 <= whole; w += 2) {
            a += dpestim_ones(row[w] & other[w]);
            b += dpestim_ones(row[w + 1] & other[w + 1]);
        }
        for (; w < whole; w++) a += dpestim_ones(row[w] & other[w]);
        counts[j] = a + b;
    }
}
#endif
