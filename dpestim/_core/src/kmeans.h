/* Which center is nearest: rows stand in blocks of DPESTIM_LANES, a column after the other, so that a vector holds a
 * number of many rows. Each row is looked at by itself, in one order of operations, for every width of vectors. */
#ifndef DPESTIM_KMEANS_H
#define DPESTIM_KMEANS_H
#include <stddef.h>
#include <stdint.h>
#include "wide.h"

#define DPESTIM_LANES 128

/* The first of the centers (k, d) that is nearest to each of the rows of a block (d, DPESTIM_LANES). */
DPESTIM_WIDE static void dpestim_nearest(const float *block, const float *centers, size_t k, size_t d,
                                         int32_t *labels) {
    float best[DPESTIM_LANES], sum[DPESTIM_LANES];
    for (size_t i = 0; i < DPESTIM_LANES; i++) {
        best[i] = 3.4e38f;
        labels[i] = 0;
    }
    for (size_t c = 0; c < k; c++) {
        for (size_t i = 0; i < DPESTIM_LANES; i++) sum[i] = 0.0f;
        for (size_t j = 0; j < d; j++) {
            const float *row = block + j * DPESTIM_LANES;
            const float at = centers[c * d + j];
            for (size_t i = 0; i < DPESTIM_LANES; i++) {
                const float off = row[i] - at;
                sum[i] += off * off;
            }
        }
        for (size_t i = 0; i < DPESTIM_LANES; i++) {
            labels[i] = sum[i] < best[i] ? (int32_t)c : labels[i];
            best[i] = sum[i] < best[i] ? sum[i] : best[i];
        }
    }
}

/* How far a row is from a center in steps, rounded (halves to even), from -most to most. */
static inline int32_t dpestim_steps(float value, float at, float scale, float most) {
    float z = (value - at) * scale;
    z = z > -most ? z : -most;
    z = z < most ? z : most;
    return (int32_t)((z + 12582912.0f) - 12582912.0f); /* 1.5 * 2^23: floats next to it are the integers */
}

#endif
