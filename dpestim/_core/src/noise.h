/* Attempts at exact noise: each is accepted or rejected, or its words do not decide and it is settled elsewhere.
 * The laws and their proofs: central/additive/discrete_laplace.md, gaussian.md, discrete_gaussian.md, staircase.md. */
#ifndef DPESTIM_NOISE_H
#define DPESTIM_NOISE_H
#include <stdint.h>
#include "wide_int.h"

enum { DPESTIM_REJECTED = 0, DPESTIM_ACCEPTED = 1, DPESTIM_UNDECIDED = 2 };

/* The binary digits of a geometric number: each is 1 where its lane is below its threshold. The last threshold is that
 * of the number being 2^n or more. A tie decides nothing, and nor does such a number. Every number costs the same time. */
static inline int dpestim_digits(const uint32_t *lanes, const uint32_t *thresholds, int n, int64_t *number) {
    uint64_t digits = 0;
    uint32_t tied = lanes[n] <= thresholds[n];
    for (int k = 0; k < n; ++k) {
        digits |= (uint64_t)(lanes[k] < thresholds[k]) << k;
        tied |= lanes[k] == thresholds[k];
    }
    *number = (int64_t)digits;
    return (int)tied;
}

/* 2^64 e^-g to within 256, for g in units of 2^-58: three factors from tables (64, 512 and 512 entries, in units of
 * 2^-64, each rounded down), and 1 - r + r^2 / 2 for what is left, r < 2^-18, which exceeds e^-r by at most r^3 / 6. */
static inline uint64_t dpestim_exp(uint64_t g, const uint64_t *tables) {
    const uint64_t product = dpestim_high(dpestim_high(tables[g >> 58], tables[64 + (g >> 49 & 511)]),
                                          tables[576 + (g >> 40 & 511)]);
    const uint64_t r = (g & (((uint64_t)1 << 40) - 1)) << 6;
    return dpestim_high(product, (dpestim_high(r, r) >> 1) - (r + !r));
}

/* A coin that shows e^-g, where that is known to within `slack` (in units of 2^-64). */
static inline int dpestim_coin(uint64_t word, uint64_t g, uint64_t slack, const uint64_t *tables) {
    const uint64_t e = dpestim_exp(g, tables);
    if (word < (e > slack ? e - slack : 0)) return DPESTIM_ACCEPTED;
    return e < UINT64_MAX - slack && word >= e + slack ? DPESTIM_REJECTED : DPESTIM_UNDECIDED;
}

/* Lanes: sign, digits. There is one 0. */
static inline int dpestim_laplace(const uint32_t *lanes, const uint32_t *thresholds, int n, int64_t *z) {
    int64_t size;
    const int undecided = dpestim_digits(lanes + 1, thresholds, n, &size);
    const int64_t minus = -(int64_t)(lanes[0] & 1);
    *z = (size ^ minus) - minus;
    return undecided ? DPESTIM_UNDECIDED : !(minus && !size);
}

typedef struct {
    uint64_t parts[2], unfair[2]; /* how many places the upper and the lower part have; 2^64 modulo that */
} dpestim_stairs;

/* Lanes: sign, digits of the stair, a coin for its upper part (where there is a lower one); then a word for the place. */
static inline int dpestim_staircase(const uint32_t *lanes, uint64_t word, const uint32_t *thresholds, int n,
                                    const dpestim_stairs *law, int64_t *z) {
    int64_t stair;
    const int undecided = dpestim_digits(lanes + 1, thresholds, n, &stair);
    const uint32_t coin = lanes[n + 2], threshold = thresholds[n + 1];
    const int lower = coin > threshold && law->parts[1];
    const uint64_t place = dpestim_high(word, law->parts[lower]) + (lower ? law->parts[0] : 0);
    const int64_t minus = -(int64_t)(lanes[0] & 1);
    const int64_t size = (int64_t)((uint64_t)stair * (law->parts[0] + law->parts[1]) + place);
    if (undecided || coin == threshold) return DPESTIM_UNDECIDED;
    *z = (size ^ minus) - minus;
    return word * law->parts[lower] >= law->unfair[lower] && !(minus && !size);
}

/* Laplace lanes, then a word for the coin of Canonne, Kamath and Steinke: e^-((|z| - s^2 / t)^2 / (2 s^2)). */
typedef struct {
    uint64_t centre, inverse, slack; /* s^2 / t in units of 2^-fraction; (units of 2^-bits) 1 / s, times 2^64 */
    int fraction, bits;
} dpestim_bell;

static inline int dpestim_gaussian(const uint32_t *lanes, uint64_t word, const uint32_t *thresholds, int n,
                                   const dpestim_bell *law, const uint64_t *tables, int64_t *z) {
    const int tried = dpestim_laplace(lanes, thresholds, n, z);
    if (tried != DPESTIM_ACCEPTED) return tried;
    const uint64_t size = (uint64_t)(*z < 0 ? -*z : *z) << law->fraction;
    const uint64_t away = size > law->centre ? size - law->centre : law->centre - size;
    uint64_t u = dpestim_high(away, law->inverse);
    const uint64_t far = ((uint64_t)11 << law->bits) - 1; /* from here on e^-g is below 2^-64 */
    if (u > far) u = far;
    const uint64_t g = dpestim_low_word(dpestim_down(dpestim_times(u, u), 2 * law->bits + 1 - 58));
    return dpestim_coin(word, g, law->slack, tables);
}

/* A normal number k + x: the lowest bit of the first word is its sign, the rest finds k by thresholds; the second word
 * is x; the third a coin that shows e^-(x (2 k + x) / 2). What comes out is the number times factor / 2^shift, rounded. */
static inline int dpestim_normal(const uint64_t *words, const uint64_t *thresholds, int n, uint64_t factor, int shift,
                                 uint64_t slack, const uint64_t *tables, int64_t *z) {
    const uint64_t x = words[1];
    uint64_t k = 0;
    *z = 0;
    int tied = 0;
    for (int j = 0; j < n; ++j) {
        k += (words[0] >> 1) >= thresholds[j];
        tied |= (words[0] >> 1) == thresholds[j];
    }
    if (tied) return DPESTIM_UNDECIDED;
    const dpestim_u128 squares = dpestim_plus(dpestim_times(x, 2 * k), dpestim_join(0, dpestim_high(x, x)));
    const int shown = dpestim_coin(words[2], dpestim_low_word(dpestim_down(squares, 7)), slack, tables);
    if (shown != DPESTIM_ACCEPTED) return shown;
    const dpestim_u128 half = dpestim_up(dpestim_join(0, 1), 63 + shift);
    const dpestim_u128 least = dpestim_plus(dpestim_multiple(dpestim_join(k, x), factor), half);
    const dpestim_u128 most = dpestim_plus(least, dpestim_join(0, factor));
    const int64_t size = (int64_t)dpestim_low_word(dpestim_down(least, 64 + shift)), minus = -(int64_t)(words[0] & 1);
    *z = (size ^ minus) - minus;
    return (int64_t)dpestim_low_word(dpestim_down(most, 64 + shift)) == size ? DPESTIM_ACCEPTED : DPESTIM_UNDECIDED;
}
#endif
