/* Numbers become integers in floats, each by itself: vectors of every width do it alike. */
#ifndef DPESTIM_MOMENTS_H
#define DPESTIM_MOMENTS_H

#include <stddef.h>

#include "wide.h"

/* The nearest integers to (x - center) factor, cut to [-most, most]; -most for NaN. Rows of `out` are `width` apart. */
DPESTIM_WIDE static void dpestim_round_rows(const double *x, ptrdiff_t n, ptrdiff_t d, const double *centers,
                                            const double *factors, double most, ptrdiff_t width, double *out) {
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: floats next to it are the integers */
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *from = x + i * d;
        double *to = out + i * width;
        DPESTIM_INDEPENDENT
        for (ptrdiff_t j = 0; j < d; j++) {
            double value = (from[j] - centers[j]) * factors[j];
            value = value > -most ? value : -most;
            value = value < most ? value : most;
            to[j] = (value + magic) - magic;
        }
    }
}
#endif
