/* Rows of scaled numbers: a loop of floats that vectors of any width do alike, because each result is one value's own. */
#ifndef DPESTIM_SCALED_H
#define DPESTIM_SCALED_H

#include <stddef.h>

#include "wide.h"

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
