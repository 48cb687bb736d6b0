/* A law that is a table: a word's upper bits are a cell of its row, and of a cell's words the first `keep` answer its own
 * number, the others one other code (Walker 1977). A cell is keep << bits | other. Its upper half decides all but one in
 * 2^(32 - bits) records: `quick`, tables of half the size, hold (keep >> 32) << bits | other. */
#ifndef DPESTIM_TABLE_H
#define DPESTIM_TABLE_H
#include <stddef.h>
#include <stdint.h>
#include "wide.h"

#define DPESTIM_TABLE_PIECE 512 /* records at a time: words, fixed points and cells stay in the nearest cache */
#define DPESTIM_TABLE_QUICK 16  /* bits of a number of a cell, at most, where there are quick tables */

/* The row that a fixed point is rounded to. */
static inline uint64_t dpestim_table_row(int64_t fixed, uint32_t lane) {
    return (uint64_t)(fixed >> 32) + (lane < (uint32_t)fixed);
}

/* The answer by the whole word. */
static inline uint64_t dpestim_table_code(const uint64_t *cells, uint64_t row, uint64_t word, int bits) {
    const uint64_t own = word >> (64 - bits), code = ((uint64_t)1 << bits) - 1;
    const uint64_t cell = cells[(row << bits) + own];
    const uint64_t other = -(uint64_t)((word & (~(uint64_t)0 >> bits)) >= cell >> bits); /* a mask: no branch */
    return own ^ ((own ^ cell) & other & code);
}

/* Where in the quick tables each record looks. */
DPESTIM_WIDE static void dpestim_table_places(const int64_t *restrict fixed, const uint32_t *restrict lanes,
                                              const uint64_t *restrict words, size_t n, int bits,
                                              uint32_t *restrict at) {
    const int down = 32 - bits;
    for (size_t i = 0; i < n; i++) {
        const uint32_t row = (uint32_t)(fixed[i] >> 32) + (lanes[i] < (uint32_t)fixed[i]);
        at[i] = (row << bits) + ((uint32_t)(words[i] >> 32) >> down);
    }
}

#define DPESTIM_TABLE(code_t, size)                                                                                  \
    /* The codes of quick cells; returns whether the lower half of a word has to decide anywhere. */                  \
    DPESTIM_WIDE static uint32_t dpestim_table_pick##size(const uint32_t *restrict found,                             \
                                                          const uint64_t *restrict words, size_t n, int bits,         \
                                                          code_t *restrict out) {                                     \
        const uint32_t code = ((uint32_t)1 << bits) - 1, place = ~(uint32_t)0 >> bits;                                \
        const int down = 32 - bits;                                                                                   \
        uint32_t open = 0;                                                                                            \
        for (size_t i = 0; i < n; i++) {                                                                              \
            const uint32_t half = (uint32_t)(words[i] >> 32), own = half >> down, keep = found[i] >> bits;            \
            open |= (half & place) == keep;                                                                           \
            out[i] = (code_t)((half & place) < keep ? own : found[i] & code);                                         \
        }                                                                                                             \
        return open;                                                                                                  \
    }                                                                                                                 \
    static void dpestim_table_answer##size(const int64_t *fixed, const uint32_t *lanes, const uint64_t *words,        \
                                           size_t n, const uint64_t *cells, const uint32_t *quick, int bits,          \
                                           code_t *out) {                                                             \
        uint32_t found[DPESTIM_TABLE_PIECE];                                                                          \
        for (size_t first = 0; quick && first < n; first += DPESTIM_TABLE_PIECE) {                                    \
            const size_t m = n - first < DPESTIM_TABLE_PIECE ? n - first : DPESTIM_TABLE_PIECE;                       \
            dpestim_table_places(fixed + first, lanes + first, words + first, m, bits, found);                        \
            for (size_t i = 0; i < m; i++) found[i] = quick[found[i]];                                                \
            if (!dpestim_table_pick##size(found, words + first, m, bits, out + first)) continue;                      \
            for (size_t i = first; i < first + m; i++) /* rare */                                                     \
                out[i] = (code_t)dpestim_table_code(cells, dpestim_table_row(fixed[i], lanes[i]), words[i], bits);     \
        }                                                                                                             \
        for (size_t i = 0; !quick && i < n; i++)                                                                      \
            out[i] = (code_t)dpestim_table_code(cells, dpestim_table_row(fixed[i], lanes[i]), words[i], bits);        \
    }
DPESTIM_TABLE(uint16_t, 16)
DPESTIM_TABLE(uint32_t, 32)
#endif
