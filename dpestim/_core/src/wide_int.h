/* Integers of 128 bits, unsigned, modulo 2^128; a signed one is its two's complement. The compiler's own where it has
 * them, else (MSVC, 32-bit targets, or -DDPESTIM_NO_INT128) two words, with the same results: every kernel that needs
 * more than 64 bits calls these functions and nothing else. tests/unit/package/test_wide_int.py compares both with
 * Python's integers. */
#ifndef DPESTIM_WIDE_INT_H
#define DPESTIM_WIDE_INT_H
#include <stdint.h>

#if defined(__SIZEOF_INT128__) && !defined(DPESTIM_NO_INT128)
#define DPESTIM_HAS_INT128 1
typedef unsigned __int128 dpestim_u128;

static inline dpestim_u128 dpestim_join(uint64_t high, uint64_t low) { return ((dpestim_u128)high << 64) | low; }
static inline uint64_t dpestim_low_word(dpestim_u128 a) { return (uint64_t)a; }
static inline uint64_t dpestim_high_word(dpestim_u128 a) { return (uint64_t)(a >> 64); }
static inline dpestim_u128 dpestim_times(uint64_t a, uint64_t b) { return (dpestim_u128)a * b; }
static inline dpestim_u128 dpestim_multiple(dpestim_u128 a, uint64_t b) { return a * b; }
static inline dpestim_u128 dpestim_plus(dpestim_u128 a, dpestim_u128 b) { return a + b; }
static inline dpestim_u128 dpestim_minus(dpestim_u128 a, dpestim_u128 b) { return a - b; }
static inline int dpestim_less(dpestim_u128 a, dpestim_u128 b) { return a < b; }
/* Shifts by 0 to 127. */
static inline dpestim_u128 dpestim_up(dpestim_u128 a, int by) { return a << by; }
static inline dpestim_u128 dpestim_down(dpestim_u128 a, int by) { return a >> by; }
/* The quotient, b > 0, modulo 2^64. */
static inline uint64_t dpestim_quotient(dpestim_u128 a, dpestim_u128 b) { return (uint64_t)(a / b); }

/* Of signed numbers: one of 64 bits, the product with one, a shift that rounds down, and the nearest float. */
static inline dpestim_u128 dpestim_signed(int64_t a) { return (dpestim_u128)(__int128)a; }
static inline dpestim_u128 dpestim_signed_multiple(dpestim_u128 a, int64_t b) { return a * (dpestim_u128)b; }
static inline dpestim_u128 dpestim_signed_down(dpestim_u128 a, int by) { return (dpestim_u128)((__int128)a >> by); }
static inline double dpestim_signed_float(dpestim_u128 a) { return (double)(__int128)a; }

#else
#define DPESTIM_HAS_INT128 0
typedef struct {
    uint64_t low, high;
} dpestim_u128;

static inline dpestim_u128 dpestim_join(uint64_t high, uint64_t low) {
    dpestim_u128 a;
    a.low = low;
    a.high = high;
    return a;
}
static inline uint64_t dpestim_low_word(dpestim_u128 a) { return a.low; }
static inline uint64_t dpestim_high_word(dpestim_u128 a) { return a.high; }

static inline dpestim_u128 dpestim_times(uint64_t a, uint64_t b) {
    const uint64_t a0 = a & 0xFFFFFFFFu, a1 = a >> 32, b0 = b & 0xFFFFFFFFu, b1 = b >> 32;
    const uint64_t low = a0 * b0, cross = a1 * b0 + (low >> 32); /* at most (2^32 - 1) 2^32: no overflow */
    const uint64_t middle = a0 * b1 + (cross & 0xFFFFFFFFu);     /* as much */
    return dpestim_join(a1 * b1 + (cross >> 32) + (middle >> 32), (middle << 32) | (low & 0xFFFFFFFFu));
}
static inline dpestim_u128 dpestim_multiple(dpestim_u128 a, uint64_t b) {
    const dpestim_u128 low = dpestim_times(a.low, b);
    return dpestim_join(low.high + a.high * b, low.low);
}
static inline dpestim_u128 dpestim_plus(dpestim_u128 a, dpestim_u128 b) {
    const uint64_t low = a.low + b.low;
    return dpestim_join(a.high + b.high + (low < a.low), low);
}
static inline dpestim_u128 dpestim_minus(dpestim_u128 a, dpestim_u128 b) {
    return dpestim_join(a.high - b.high - (a.low < b.low), a.low - b.low);
}
static inline int dpestim_less(dpestim_u128 a, dpestim_u128 b) {
    return (a.high < b.high) | ((a.high == b.high) & (a.low < b.low));
}
static inline dpestim_u128 dpestim_up(dpestim_u128 a, int by) {
    if (by >= 64) return dpestim_join(a.low << (by - 64), 0);
    return by ? dpestim_join((a.high << by) | (a.low >> (64 - by)), a.low << by) : a;
}
static inline dpestim_u128 dpestim_down(dpestim_u128 a, int by) {
    if (by >= 64) return dpestim_join(0, a.high >> (by - 64));
    return by ? dpestim_join(a.high >> by, (a.low >> by) | (a.high << (64 - by))) : a;
}
static inline int dpestim_bits(dpestim_u128 a) { /* how many a has, without zeros in front */
    const uint64_t word = a.high ? a.high : a.low;
    int bits = a.high ? 64 : 0;
    for (uint64_t rest = word; rest; rest >>= 1) bits++;
    return bits;
}
static inline uint64_t dpestim_quotient(dpestim_u128 a, dpestim_u128 b) {
    uint64_t quotient = 0;
    for (int by = dpestim_bits(a) - dpestim_bits(b); by >= 0; by--) { /* long division: a step for each of its bits */
        const dpestim_u128 part = dpestim_up(b, by);
        quotient <<= 1;
        if (!dpestim_less(a, part)) {
            a = dpestim_minus(a, part);
            quotient |= 1;
        }
    }
    return quotient;
}

static inline dpestim_u128 dpestim_signed(int64_t a) { return dpestim_join(a < 0 ? UINT64_MAX : 0, (uint64_t)a); }
static inline dpestim_u128 dpestim_signed_multiple(dpestim_u128 a, int64_t b) {
    const dpestim_u128 product = dpestim_multiple(a, (uint64_t)b); /* b is 2^64 too large where it is negative */
    return b < 0 ? dpestim_minus(product, dpestim_join(a.low, 0)) : product;
}
static inline dpestim_u128 dpestim_signed_down(dpestim_u128 a, int by) {
    if (!(a.high >> 63)) return dpestim_down(a, by);
    a = dpestim_down(dpestim_join(~a.high, ~a.low), by);
    return dpestim_join(~a.high, ~a.low);
}
static inline double dpestim_signed_float(dpestim_u128 a) {
    const int negative = (int)(a.high >> 63);
    dpestim_u128 size = negative ? dpestim_minus(dpestim_join(0, 0), a) : a;
    double scale = 1.0;
    if (size.high || size.low >> 62) { /* the highest 62 bits, and whether more follow: rounded once, to nearest */
        const int by = dpestim_bits(size) - 62;
        const dpestim_u128 rest = dpestim_up(size, 128 - by);
        size = dpestim_down(size, by);
        size.low = (size.low << 1) | ((rest.low | rest.high) != 0);
        for (int k = 1; k < by; k++) scale *= 2.0;
    }
    return (negative ? -scale : scale) * (double)(int64_t)size.low;
}
#endif

/* The upper word of a product: a number below b, as a word a says it. */
static inline uint64_t dpestim_high(uint64_t a, uint64_t b) { return dpestim_high_word(dpestim_times(a, b)); }
#endif
