/* Upper bounds of the weights of candidates, and their sums. The law and its proof: central/selection/exponential.md. */
#ifndef DPESTIM_CHOICE_H
#define DPESTIM_CHOICE_H
#include "noise.h"

static inline int64_t dpestim_floor(double score, double largest) {
    const double cut = score > largest ? largest : score < -largest ? -largest : score;
    const int64_t towards = (int64_t)cut;
    return towards - ((double)towards > cut);
}

/* At least 2^56 e^-x, and at most 5 more: x = gap * rate / 2^(58 + shift) is rounded down, dpestim_exp is within one
 * unit of the result, rounding down loses another. From `far` on e^-x is below 2^-56, and 1 will do. */
static inline uint64_t dpestim_weight(uint64_t gap, uint64_t rate, int shift, uint64_t far, const uint64_t *tables) {
    if (gap >= far) return 1;
    return (dpestim_exp(dpestim_low_word(dpestim_down(dpestim_times(gap, rate), shift)), tables) >> 8) + 2;
}

static inline void dpestim_add(uint64_t *high, uint64_t *low, uint64_t weight, uint64_t times) {
    const dpestim_u128 sum = dpestim_plus(dpestim_join(*high, *low), dpestim_times(weight, times));
    *high = dpestim_high_word(sum);
    *low = dpestim_low_word(sum);
}
#endif
