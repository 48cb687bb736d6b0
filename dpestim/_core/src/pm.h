/* One answer of the piecewise mechanism on a grid, and of its sensitivity-aware form. Law and proof: local/numbers/pm.md and
 * local/numbers/sdpm.md. An input is a fixed-point number of grid steps with 32 fraction bits; its bitwise complement marks an
 * input of low sensitivity, counted in low levels. */
#ifndef DPESTIM_PM_H
#define DPESTIM_PM_H
#include <stddef.h>
#include <stdint.h>
#include "wide.h"
#include "wide_int.h"

typedef struct {
    uint64_t high_inside; /* words below it answer inside the window: W a */
    uint64_t low_inside;  /* words below it answer with the own level */
    uint64_t inside, outside, per_inside, per_outside; /* weights a and c; their reciprocals floor((2^64 - 1) / .) */
    uint64_t window;
    uint64_t zone, zone_size, merge, drop; /* outputs of the zone become cells, those above move down by `drop` */
    uint64_t levels, low_zone, low_gap;    /* code of level 0; high outputs from low_zone on lie low_gap higher */
} dpestim_pm_law;

/* floor(r / d), given per = floor((2^64 - 1) / d): the product is the quotient or one less (see grr.h). */
static inline uint64_t dpestim_pm_divide(uint64_t r, uint64_t d, uint64_t per) {
    const uint64_t q = dpestim_high(r, per);
    return q + ((r - q * d) >= d);
}

/* The same for per < 2^32, as products of 32-bit halves that vectors have. */
static inline uint64_t dpestim_pm_divide32(uint64_t r, uint64_t d, uint64_t per) {
    const uint64_t q = ((r >> 32) * per + (((r & 0xFFFFFFFF) * per) >> 32)) >> 32;
    return q + ((r - q * d) >= d);
}

static inline uint64_t dpestim_pm_select(uint64_t mask, uint64_t yes, uint64_t no) {
    return (yes & mask) | (no & ~mask);
}

#define DPESTIM_PM_ANSWER(name, divide)                                                                              \
    static inline uint64_t name(int64_t t, uint32_t lane, uint64_t u, const dpestim_pm_law *law) {                    \
        const uint64_t low = (uint64_t)(t >> 63), fixed = (uint64_t)t ^ low;                                          \
        /* unbiased rounding to the grid: up with the probability that the fraction says */                            \
        const uint64_t at = (fixed >> 32) + ((uint64_t)lane < (fixed & 0xFFFFFFFF));                                   \
        const uint64_t limit = dpestim_pm_select(low, law->low_inside, law->high_inside);                             \
        const uint64_t inside = -(uint64_t)(u < limit); /* a mask, because the branch would be unpredictable */       \
        const uint64_t q = divide(u - (limit & ~inside), dpestim_pm_select(inside, law->inside, law->outside),         \
                                  dpestim_pm_select(inside, law->per_inside, law->per_outside));                      \
        const uint64_t code = q + dpestim_pm_select(inside, at, law->window & -(uint64_t)(q >= at));                   \
        const uint64_t over = code - law->zone;                                                                       \
        const uint64_t cell = law->zone + ((over * law->merge) >> 31);                                                \
        const uint64_t beyond = dpestim_pm_select(-(uint64_t)(over < law->zone_size), cell, code - law->drop);        \
        const uint64_t high = dpestim_pm_select(-(uint64_t)(code < law->zone), code, beyond);                         \
        const uint64_t other = q + (law->low_gap & -(uint64_t)(q >= law->low_zone));                                  \
        return dpestim_pm_select(low, dpestim_pm_select(inside, law->levels + at, other), high);                      \
    }

DPESTIM_PM_ANSWER(dpestim_pm_answer, dpestim_pm_divide)
DPESTIM_PM_ANSWER(dpestim_pm_answer32, dpestim_pm_divide32)

#define DPESTIM_PM_LOOP(name, attribute, answer, code_t)                                                             \
    attribute static void name(const int64_t *t, const uint32_t *lanes, const uint64_t *words, size_t n,             \
                               const dpestim_pm_law *shared, code_t *out) {                                           \
        const dpestim_pm_law law = *shared; /* a copy of its own, which the stores to `out` cannot change */          \
        for (size_t i = 0; i < n; i++) out[i] = (code_t)answer(t[i], lanes[i], words[i], &law);                       \
    }

DPESTIM_PM_LOOP(dpestim_pm_wide16, DPESTIM_WIDE, dpestim_pm_answer32, uint16_t)
DPESTIM_PM_LOOP(dpestim_pm_wide32, DPESTIM_WIDE, dpestim_pm_answer32, uint32_t)
DPESTIM_PM_LOOP(dpestim_pm_plain16, , dpestim_pm_answer, uint16_t)
DPESTIM_PM_LOOP(dpestim_pm_plain32, , dpestim_pm_answer, uint32_t)

/* Reciprocals below 2^32 take the loop of 32-bit products. */
static inline void dpestim_pm_answer_all(const int64_t *t, const uint32_t *lanes, const uint64_t *words, size_t n,
                                         const dpestim_pm_law *law, void *out, int bytes) {
    const int small = law->per_outside >> 32 == 0 && law->per_inside >> 32 == 0;
    if (bytes == 2) (small ? dpestim_pm_wide16 : dpestim_pm_plain16)(t, lanes, words, n, law, (uint16_t *)out);
    else (small ? dpestim_pm_wide32 : dpestim_pm_plain32)(t, lanes, words, n, law, (uint32_t *)out);
}

/* The hybrid mechanism (local/numbers/hm.md): words below `piecewise` answer as PM does, without zones; of the others
 * those up to a line in the rounded input answer with the upper of two signs, the rest with the lower one. */
typedef struct {
    uint64_t inside_words, inside, outside, per_inside, per_outside, window;
    uint64_t piecewise, minus, least, rise; /* `minus` is the code of the lower sign */
} dpestim_hm_law;

#define DPESTIM_HM_LOOP(name, attribute, divide, code_t)                                                             \
    attribute static void name(const int64_t *t, const uint32_t *lanes, const uint64_t *words, size_t n,             \
                               const dpestim_hm_law *shared, code_t *out) {                                           \
        const dpestim_hm_law law = *shared;                                                                           \
        for (size_t i = 0; i < n; i++) {                                                                              \
            const uint64_t fixed = (uint64_t)t[i], u = words[i];                                                      \
            const uint64_t at = (fixed >> 32) + ((uint64_t)lanes[i] < (fixed & 0xFFFFFFFF));                           \
            const uint64_t inside = -(uint64_t)(u < law.inside_words);                                                \
            const uint64_t q = divide(u - (law.inside_words & ~inside),                                               \
                                      dpestim_pm_select(inside, law.inside, law.outside),                             \
                                      dpestim_pm_select(inside, law.per_inside, law.per_outside));                    \
            const uint64_t code = q + dpestim_pm_select(inside, at, law.window & -(uint64_t)(q >= at));               \
            const uint64_t sign = law.minus + (u - law.piecewise < law.least + at * law.rise);                        \
            out[i] = (code_t)dpestim_pm_select(-(uint64_t)(u >= law.piecewise), sign, code);                          \
        }                                                                                                             \
    }

DPESTIM_HM_LOOP(dpestim_hm_wide16, DPESTIM_WIDE, dpestim_pm_divide32, uint16_t)
DPESTIM_HM_LOOP(dpestim_hm_wide32, DPESTIM_WIDE, dpestim_pm_divide32, uint32_t)
DPESTIM_HM_LOOP(dpestim_hm_plain16, , dpestim_pm_divide, uint16_t)
DPESTIM_HM_LOOP(dpestim_hm_plain32, , dpestim_pm_divide, uint32_t)

static inline void dpestim_hm_answer_all(const int64_t *t, const uint32_t *lanes, const uint64_t *words, size_t n,
                                         const dpestim_hm_law *law, void *out, int bytes) {
    const int small = law->per_outside >> 32 == 0 && law->per_inside >> 32 == 0;
    if (bytes == 2) (small ? dpestim_hm_wide16 : dpestim_hm_plain16)(t, lanes, words, n, law, (uint16_t *)out);
    else (small ? dpestim_hm_wide32 : dpestim_hm_plain32)(t, lanes, words, n, law, (uint32_t *)out);
}

/* Fixed point of bounded floats. Every step is exact or correctly rounded and none can be fused, so the result is the
 * same everywhere. Total: what is not above `low`, NaN included, is 0 and what is not below `high` is the top. */
static inline int64_t dpestim_pm_fixed(double x, double low, double high, double scale, int64_t top) {
    const double above = x > low ? x : low, inside = above < high ? above : high; /* a maximum and a minimum */
    const int64_t t = (int64_t)((inside - low) * scale);
    const int64_t full = -(int64_t)((x >= high) | (t > top)); /* a mask: values may be clipped half of the time */
    return (top & full) | (t & ~full);
}

/* Values that lie in [low_from, low_to] once they are clipped have low sensitivity and become the complement of their own
 * fixed point. These loops are of floats, and cloned all the same: no product is added to anything, so there is nothing to fuse. */
DPESTIM_WIDE static void dpestim_pm_encode(const double *x, size_t n, double low, double high, double scale,
                                           int64_t top, int64_t *out) {
    for (size_t i = 0; i < n; i++) out[i] = dpestim_pm_fixed(x[i], low, high, scale, top);
}

DPESTIM_WIDE static void dpestim_pm_encode_low(const double *x, size_t n, double low, double high, double scale,
                                               int64_t top, double low_from, double low_to, double low_scale,
                                               int64_t low_top, int64_t *out) {
    for (size_t i = 0; i < n; i++) {
        const double above = x[i] > low ? x[i] : low, v = above < high ? above : high;
        const int64_t is_low = -(int64_t)((v >= low_from) & (v <= low_to));
        const int64_t own = ~dpestim_pm_fixed(v, low_from, low_to, low_scale, low_top);
        out[i] = (own & is_low) | (dpestim_pm_fixed(v, low, high, scale, top) & ~is_low);
    }
}
#endif
