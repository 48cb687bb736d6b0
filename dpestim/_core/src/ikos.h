/* Shares of a number, and the jumps that Polya noise is made of. The law and its proof: shuffle/sums/ikos.md. */
#ifndef DPESTIM_IKOS_H
#define DPESTIM_IKOS_H
#include <stdint.h>
#include "wide_int.h"

/* Thresholds have 128 bits, a high and a low word; `low` are the 64 bits that decide where the high words tie. */
static inline int dpestim_below(uint64_t word, uint64_t low, uint64_t high, uint64_t rest) {
    return word < high || (word == high && low < rest);
}

/* How many of n ascending thresholds a number of 128 bits has reached. */
static inline int64_t dpestim_reached(uint64_t word, uint64_t low, const uint64_t *high, const uint64_t *rest, int n) {
    int64_t k = 0;
    while (k < n && !dpestim_below(word, low, high[k], rest[k])) ++k;
    return k;
}

/* One attempt at a jump: its level l, the digits below the leading one of a number of l + 1 digits, and a coin that
 * shows 2^l / number. Words: low bits, level, coin, sign, then one a digit. Returns 0 where the coin does not show. */
static inline int64_t dpestim_jump(const uint64_t *words, const uint64_t *levels, const uint64_t *levels_rest,
                                   int n_levels, const uint64_t *digits, const uint64_t *digits_rest) {
    const uint64_t low = words[0];
    const int level = (int)dpestim_reached(words[1], low, levels, levels_rest, n_levels - 1);
    uint64_t number = (uint64_t)1 << level;
    for (int i = 0; i < level; ++i)
        number |= (uint64_t)dpestim_below(words[4 + i], low, digits[i], digits_rest[i]) << i;
    const uint64_t whole = (uint64_t)1 << level; /* times 2^64 */
    if (number > (uint64_t)1 << level) {  /* (else the coin always shows) */
        const uint64_t share = dpestim_quotient(dpestim_join(whole, 0), dpestim_join(0, number));
        const uint64_t left = 0 - share * number; /* what the division leaves, below number */
        if (words[2] > share || (words[2] == share && dpestim_high(low, number) >= left)) return 0;
    }
    return words[3] >> 63 ? -(int64_t)number : (int64_t)number;
}

#endif
