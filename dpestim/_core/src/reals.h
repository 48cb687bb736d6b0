/* Normals and balls from 128 digits a number, as sums of two doubles: each operation errs by a relative 2^-101 at most.
 * What these digits do not decide, or not closely enough, is left to decimal intervals. Proof: ../../exact_reals.md. */
#ifndef DPESTIM_REALS_H
#define DPESTIM_REALS_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "portable.h"

typedef struct {
    double high, low; /* the number is their sum, and high is the double next to it */
} dpestim_pair;

/* a + b where |a| >= |b| or a = 0; a + b; a b: exactly. (Without fused multiply-adds, as setup.py forbids them.) */
DPESTIM_INLINE dpestim_pair dpestim_joined(double a, double b) {
    dpestim_pair s;
    s.high = a + b;
    s.low = b - (s.high - a);
    return s;
}
DPESTIM_INLINE dpestim_pair dpestim_sum(double a, double b) {
    dpestim_pair s;
    s.high = a + b;
    double other = s.high - a;
    s.low = (a - (s.high - other)) + (b - other);
    return s;
}
DPESTIM_INLINE dpestim_pair dpestim_product(double a, double b) {
    const double splitter = 134217729.0; /* 2^27 + 1 */
    double ta = splitter * a, tb = splitter * b;
    double a1 = ta - (ta - a), b1 = tb - (tb - b), a2 = a - a1, b2 = b - b1;
    dpestim_pair p;
    p.high = a * b;
    p.low = ((a1 * b1 - p.high) + a1 * b2 + a2 * b1) + a2 * b2;
    return p;
}

DPESTIM_INLINE dpestim_pair dpestim_add(dpestim_pair a, dpestim_pair b) {
    dpestim_pair s = dpestim_sum(a.high, b.high), t = dpestim_sum(a.low, b.low);
    s = dpestim_joined(s.high, s.low + t.high);
    return dpestim_joined(s.high, s.low + t.low);
}
DPESTIM_INLINE dpestim_pair dpestim_multiply(dpestim_pair a, dpestim_pair b) {
    dpestim_pair p = dpestim_product(a.high, b.high);
    return dpestim_joined(p.high, p.low + (a.high * b.low + a.low * b.high));
}
DPESTIM_INLINE dpestim_pair dpestim_divide(dpestim_pair a, dpestim_pair b) {
    double q = a.high / b.high;
    dpestim_pair minus = {-q, 0.0}, rest = dpestim_add(a, dpestim_multiply(minus, b));
    return dpestim_joined(q, rest.high / b.high);
}
DPESTIM_INLINE dpestim_pair dpestim_part(dpestim_pair a, double n) {
    double q = a.high / n;
    dpestim_pair p = dpestim_product(q, n);
    return dpestim_joined(q, (((a.high - p.high) - p.low) + a.low) / n);
}
DPESTIM_INLINE dpestim_pair dpestim_root(dpestim_pair a) {
    double q = sqrt(a.high);
    dpestim_pair p = dpestim_product(q, q);
    return dpestim_joined(q, (((a.high - p.high) - p.low) + a.low) / (2.0 * q));
}
DPESTIM_INLINE dpestim_pair dpestim_single(double a) {
    dpestim_pair p = {a, 0.0};
    return p;
}

/* (128 digits + 1/2) 2^-128: the middle of where the real lies. */
DPESTIM_INLINE dpestim_pair dpestim_middle(uint64_t high, uint64_t low) {
    const double step = 1.0 / 4294967296.0; /* 2^-32 */
    double parts[4] = {(double)(low & 0xFFFFFFFFu) + 0.5, (double)(low >> 32), (double)(high & 0xFFFFFFFFu),
                       (double)(high >> 32)};
    dpestim_pair sum = dpestim_single(parts[0] * step);
    for (int k = 1; k < 4; k++) {
        sum = dpestim_add(dpestim_single(parts[k]), sum);
        sum.high *= step;
        sum.low *= step;
    }
    return sum;
}

/* 2 u - 1, likewise: the middle of (-1, 1) has no digits that cancel. */
DPESTIM_INLINE dpestim_pair dpestim_side(uint64_t high, uint64_t low) {
    const uint64_t top = (uint64_t)1 << 63;
    int positive = (high & top) != 0;
    dpestim_pair side = positive ? dpestim_middle(high ^ top, low) : dpestim_middle(high ^ (top - 1), ~low);
    double sign = positive ? 2.0 : -2.0;
    side.high *= sign;
    side.low *= sign;
    return side;
}

/* -ln s, 2^-400 < s < 1, within 2^-88 and the relative error of s; 0: the library's logarithm is too far off. */
static int dpestim_minus_log(dpestim_pair s, dpestim_pair *out) {
    const dpestim_pair ln2 = {0.6931471805599453094, 2.3190468138462995584e-17};
    double guess = -log(s.high); /* not trusted */
    if (!(guess >= 0.0 && guess < 300.0)) return 0;
    double k = floor(guess * 1.4426950408889634 + 0.5);
    dpestim_pair r = dpestim_multiply(dpestim_single(-k), ln2), power = dpestim_single(1.0);
    r = dpestim_add(dpestim_single(guess), r);
    r.high *= 1.0 / 32.0;
    r.low *= 1.0 / 32.0;
    for (int n = 14; n > 0; n--) /* e^r by Taylor's series, |r| < 0.0112 */
        power = dpestim_add(dpestim_single(1.0), dpestim_part(dpestim_multiply(r, power), (double)n));
    for (int n = 0; n < 5; n++) power = dpestim_multiply(power, power);
    power.high = ldexp(power.high, (int)k);
    power.low = ldexp(power.low, (int)k);
    dpestim_pair rest = dpestim_add(dpestim_multiply(s, power), dpestim_single(-1.0)); /* s e^guess - 1 */
    if (!(fabs(rest.high) < 1.0 / 1073741824.0)) return 0;
    double bend = rest.high * rest.high * (0.5 - rest.high / 3.0);
    rest.high = -rest.high;
    rest.low = -rest.low;
    *out = dpestim_add(dpestim_add(dpestim_single(guess), rest), dpestim_single(bend));
    return 1;
}

/* A pair of normals by the polar method, from so many points of four words each; 0: these do not decide. */
static int dpestim_normals(const uint64_t *words, ptrdiff_t n_points, dpestim_pair *x, dpestim_pair *y) {
    for (ptrdiff_t k = 0; k < n_points; k++, words += 4) {
        dpestim_pair a = dpestim_side(words[0], words[1]), b = dpestim_side(words[2], words[3]), log;
        dpestim_pair s = dpestim_add(dpestim_multiply(a, a), dpestim_multiply(b, b));
        if (s.high > 1.0 + 1.0 / 1073741824.0) continue; /* outside of the disk */
        if (!(s.high < 1.0 - 1.0 / 134217728.0 && s.high > 1.0 / 1099511627776.0)) return 0;
        if (!dpestim_minus_log(s, &log)) return 0;
        log.high *= 2.0;
        log.low *= 2.0;
        dpestim_pair factor = dpestim_root(dpestim_divide(log, s));
        *x = dpestim_multiply(a, factor);
        *y = dpestim_multiply(b, factor);
        return 1;
    }
    return 0;
}

/* A sum of n exponentials, each minus the logarithm of a uniform number of two words; 0: these do not decide. */
static int dpestim_exponentials(const uint64_t *words, ptrdiff_t n, dpestim_pair *out) {
    const dpestim_pair ln2 = {0.6931471805599453094, 2.3190468138462995584e-17};
    const double large = ldexp(1.0, 200);
    dpestim_pair product = dpestim_single(1.0);
    double lifted = 0.0; /* powers of two that the product was multiplied by */
    for (ptrdiff_t k = 0; k < n; k++) {
        dpestim_pair u = dpestim_middle(words[2 * k], words[2 * k + 1]);
        if (!(u.high > 1.0 / 16777216.0)) return 0;
        product = dpestim_multiply(product, u);
        if (product.high * large < 1.0) {
            product.high *= large;
            product.low *= large;
            lifted += 200.0;
        }
    }
    if (!(product.high < 1.0) || !dpestim_minus_log(product, out)) return 0;
    *out = dpestim_add(*out, dpestim_multiply(dpestim_single(lifted), ln2));
    return out->high > 1.0 / 1048576.0;
}

/* Normals, `points` points for each two of them, as doubles. With words of exponentials, one for each, their length
 * becomes the sum of these. 0: not decided. `low` is scratch. */
static int dpestim_vector(const uint64_t *words, ptrdiff_t points, const uint64_t *exponentials, double *high,
                          double *low, ptrdiff_t size) {
    if (FLT_EVAL_METHOD != 0) return 0; /* a processor that rounds otherwise */
    dpestim_pair squares = dpestim_single(0.0), radius;
    for (ptrdiff_t i = 0; i < size; i += 2, words += 4 * points) {
        dpestim_pair v[2];
        if (!dpestim_normals(words, points, v, v + 1)) return 0;
        for (ptrdiff_t j = 0; j < 2 && i + j < size; j++) {
            high[i + j] = v[j].high;
            low[i + j] = v[j].low;
            squares = dpestim_add(squares, dpestim_multiply(v[j], v[j]));
        }
    }
    if (!(squares.high > 1.0 / 1099511627776.0)) return 0;
    if (!exponentials) return 1;
    if (!dpestim_exponentials(exponentials, size, &radius)) return 0;
    dpestim_pair factor = dpestim_divide(radius, dpestim_root(squares));
    for (ptrdiff_t i = 0; i < size; i++) {
        dpestim_pair v = {high[i], low[i]};
        high[i] = dpestim_multiply(v, factor).high;
    }
    return 1;
}
#endif
