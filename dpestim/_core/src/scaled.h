/* Rows of scaled numbers, and scores of them: loops of floats that vectors of any width do alike, because each result is
 * one value's own, or a sum in one order. */
#ifndef DPESTIM_SCALED_H
#define DPESTIM_SCALED_H

#include <stddef.h>
#include <stdint.h>

#include "logistic.h"
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
/* The linear scores of rows, clipped to the norm `limit` in units of the declared one: of columns scaled to [-1, 1]
 * (kind 1: (x - low) by - shift; kind 2: x between low and high, times by), or of the rows as they are (kind 0). Eight
 * lanes and a tree, in one order whatever the vectors. A row with a value that is not finite counts as one of zeros.
 * `z` is scratch of a tile of rows of `width`, the columns padded with zeros to a multiple of eight, as weights are. */
DPESTIM_WIDE static void dpestim_scores(const double *x, ptrdiff_t n, ptrdiff_t d, const double *low, const double *high,
                                        const double *by, const double *shift, int kind, double inverse, double limit,
                                        const double *w, ptrdiff_t k, ptrdiff_t width, double *z, double *out) {
    double factors[DPESTIM_TILE];
    for (ptrdiff_t i = 0; i < n; i += DPESTIM_TILE) {
        ptrdiff_t m = n - i < DPESTIM_TILE ? n - i : DPESTIM_TILE;
        /* a tile at a time: what was just written by single values is read by vectors, which waits for the last write */
        for (ptrdiff_t r = 0; r < m; r++) {
            const double *row = x + (i + r) * d;
            double *to = z + r * width;
            if (kind == 1)
                for (ptrdiff_t j = 0; j < d; j++) {
                    double value = (row[j] - low[j]) * by[j] - shift[j];
                    value = value < -1.0 ? -1.0 : value;
                    to[j] = value > 1.0 ? 1.0 : value;
                }
            else if (kind == 2)
                for (ptrdiff_t j = 0; j < d; j++) {
                    double value = row[j];
                    value = value < low[j] ? low[j] : value;
                    to[j] = (value > high[j] ? high[j] : value) * by[j];
                }
            else
                for (ptrdiff_t j = 0; j < d; j++) to[j] = row[j];
        }
        for (ptrdiff_t r = 0; r < m; r++) factors[r] = dpestim_clip(z + r * width, width, inverse, limit);
        for (ptrdiff_t r = 0; r < m; r++)
            for (ptrdiff_t c = 0; c < k; c++) {
                const double *v = w + c * width, *from = z + r * width;
                double lane[DPESTIM_PAD] = {0}, factor = factors[r];
                for (ptrdiff_t j = 0; j < width; j += DPESTIM_PAD)
                    for (int l = 0; l < DPESTIM_PAD; l++) lane[l] += from[j + l] * factor * v[j + l];
                out[(i + r) * k + c] = factor == 0.0 ? 0.0 : ((lane[0] + lane[1]) + (lane[2] + lane[3]))
                                                                + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
            }
    }
}
#endif
