/* One generalised randomised response from one or two words. See local/categories/grr.md for the law and its proof. */
#ifndef DPESTIM_GRR_H
#define DPESTIM_GRR_H
#include <stdint.h>
#include "wide_int.h"

/* floor((2^64 - 1) / w), so that a quotient by w is one multiplication and one correction. */
static inline uint64_t dpestim_reciprocal(uint64_t w) { return UINT64_MAX / w; }

/* floor((u - keep) / w), for u >= keep. */
static inline uint64_t dpestim_other(uint64_t u, uint64_t keep, uint64_t w, uint64_t reciprocal) {
    const uint64_t rest = u - keep;
    /* reciprocal > 2^64 / w - 1, hence the product is rest / w or one less; the comparison corrects it exactly */
    const uint64_t other = dpestim_high(rest, reciprocal);
    return other + ((rest - other * w) >= w);
}

/* keep + (d - 1) w = 2^64: the word u keeps x below `keep`, else names the other value number (u - keep) / w. */
static inline uint64_t dpestim_grr64(uint64_t x, uint64_t u, uint64_t keep, uint64_t w, uint64_t reciprocal) {
    uint64_t other = dpestim_other(u, keep, w, reciprocal);
    other += other >= x;
    const uint64_t kept = -(uint64_t)(u < keep); /* a mask, because the branch would be unpredictable */
    return (x & kept) | (other & ~kept);
}

/* The same with 2^128 slots, for laws that one word is too coarse for. The division is rare and may be slow. */
static inline uint64_t dpestim_grr128(uint64_t x, uint64_t high, uint64_t low, dpestim_u128 keep, dpestim_u128 w) {
    const dpestim_u128 u = dpestim_join(high, low);
    if (dpestim_less(u, keep)) return x;
    const uint64_t other = dpestim_quotient(dpestim_minus(u, keep), w);
    return other + (other >= x);
}

/* Slot 0 has weight keep, slots 1, 2, ... have weight w. */
static inline uint64_t dpestim_slot64(uint64_t u, uint64_t keep, uint64_t w, uint64_t reciprocal) {
    return (1 + dpestim_other(u, keep, w, reciprocal)) & -(uint64_t)(u >= keep);
}

static inline uint64_t dpestim_slot128(dpestim_u128 u, dpestim_u128 keep, dpestim_u128 w) {
    return dpestim_less(u, keep) ? 0 : 1 + dpestim_quotient(dpestim_minus(u, keep), w);
}
#endif
