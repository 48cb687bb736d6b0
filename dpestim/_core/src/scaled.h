/* Rows of scaled numbers: a loop of floats that vectors of any width do alike, because each result is one value's own. */
#ifndef DPESTIM_SCALED_H
#define DPESTIM_SCALED_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wide.h"

/* The highest bit says whether a number is infinite or NaN: one more in its exponent, which is all ones, carries there. */
DPESTIM_INLINE uint64_t dpestim_odd(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7ff0000000000000u) + 0x0010000000000000u;
}

/* Whether all numbers are finite: by integers, which vectors add up in any order. */
DPESTIM_WIDE static int dpestim_finite(const double *x, ptrdiff_t n) {
    uint64_t odd = 0;
    for (ptrdiff_t i = 0; i < n; i++) odd |= dpestim_odd(x[i]);
    return !(odd >> 63);
}

/* What a column is clipped to, what stands for NaN, and what it is multiplied by, and moved by, then. */
typedef struct {
    const double *low, *high, *middle, *by, *add;
} dpestim_lines;

/* `n` numbers, whose columns come again after `period` of them, mapped and clipped to [least, most]; whether all are
 * finite. A period is many columns, so that vectors have no rest after each row. */
DPESTIM_WIDE static int dpestim_map_lines(const double *x, ptrdiff_t n, ptrdiff_t period, const dpestim_lines *of,
                                          double least, double most, double *out) {
    const double *low = of->low, *high = of->high, *middle = of->middle, *by = of->by, *add = of->add;
    uint64_t odd = 0;
    for (ptrdiff_t at = 0; at < n; at += period) {
        ptrdiff_t m = n - at < period ? n - at : period;
        const double *from = x + at;
        double *to = out + at;
        DPESTIM_INDEPENDENT
        for (ptrdiff_t j = 0; j < m; j++) {
            double value = from[j];
            odd |= dpestim_odd(value);
            value = value != value ? middle[j] : value;
            value = value < low[j] ? low[j] : value;
            value = value > high[j] ? high[j] : value;
            value = value * by[j] + add[j];
            value = value < least ? least : value;
            to[j] = value > most ? most : value;
        }
    }
    return !(odd >> 63);
}

/* Rows between windows of each column, which come again after `period`. How many are below each window is added to
 * `below` (windows, period). What is in one goes to its column's `kept`, and `count` says how many there are: as many
 * as `most` and more where there was no room. The last of `most` places holds any number. What is in no window is
 * written, too, and the next number over it: a processor's guess which is which would often be wrong. */
DPESTIM_WIDE static void dpestim_mark(const double *x, ptrdiff_t m, ptrdiff_t period, ptrdiff_t windows,
                                      const double *low, const double *high, int64_t *below, int64_t *near) {
    for (ptrdiff_t j = 0; j < m; j++) near[j] = 0;
    for (ptrdiff_t w = 0; w < windows; w++) {
        const double *from = low + w * period, *to = high + w * period;
        int64_t *under = below + w * period;
        DPESTIM_INDEPENDENT
        for (ptrdiff_t j = 0; j < m; j++) {
            under[j] += x[j] < from[j];
            near[j] |= (int64_t)(x[j] >= from[j]) & (int64_t)(x[j] <= to[j]);
        }
    }
}

static void dpestim_gather(const double *x, ptrdiff_t n, ptrdiff_t d, ptrdiff_t period, ptrdiff_t windows,
                           const double *low, const double *high, int64_t *below, int64_t *near, ptrdiff_t most,
                           int64_t *count, double *kept) {
    const ptrdiff_t skip = 8 % d;
    for (ptrdiff_t at = 0; at < n; at += period) {
        ptrdiff_t m = n - at < period ? n - at : period, column = 0;
        dpestim_mark(x + at, m, period, windows, low, high, below, near);
        for (ptrdiff_t j = 0; j < m;) {
            if (j + 8 <= m && !(near[j] | near[j + 1] | near[j + 2] | near[j + 3] | near[j + 4] | near[j + 5]
                                | near[j + 6] | near[j + 7])) {
                j += 8;
                column += skip;
                column -= column < d ? 0 : d;
                continue;
            }
            for (ptrdiff_t stop = j + 8 < m ? j + 8 : m; j < stop; j++) {
                const int64_t known = count[column];
                kept[column * most + (known < most ? known : most - 1)] = x[at + j];
                count[column] = known + near[j];
                column = column + 1 < d ? column + 1 : 0;
            }
        }
    }
}

/* Columns scaled by public bounds and clipped to [-1, 1], or clipped and divided; NaN stays. `keep` is 1, or 0 for a
 * column without a width. */
DPESTIM_WIDE static void dpestim_scale_row(const double *x, ptrdiff_t d, const double *low, const double *high,
                                           const double *by, const double *keep, int centred, double *out) {
    if (centred)
        for (ptrdiff_t j = 0; j < d; j++) {
            double value = (x[j] - low[j]) / by[j] - 1.0;
            value = value < -1.0 ? -1.0 : value;
            value = value > 1.0 ? 1.0 : value;
            out[j] = value * keep[j];
        }
    else
        for (ptrdiff_t j = 0; j < d; j++) {
            double value = x[j];
            value = value < low[j] ? low[j] : value;
            value = value > high[j] ? high[j] : value;
            value /= by[j];
            value = value < -1.0 ? -1.0 : value;
            value = value > 1.0 ? 1.0 : value;
            out[j] = value * keep[j];
        }
}
#endif
