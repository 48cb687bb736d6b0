/* Where 16-bit numbers are small, which few are: runs without any are left at vector speed. */
#ifndef DPESTIM_RARE_H
#define DPESTIM_RARE_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "wide.h"

#define DPESTIM_RARE_RUN 64
#define DPESTIM_RARE_RUNS 64 /* that are asked together: a call for each would cost more than its loop does */

/* Whether any of a run is at most `most`, for each run. */
DPESTIM_WIDE static void dpestim_rare_runs(const uint16_t *restrict lanes, size_t runs, uint16_t most,
                                           uint8_t *restrict some) {
    for (size_t r = 0; r < runs; r++) {
        uint16_t found = 0;
        for (size_t j = 0; j < DPESTIM_RARE_RUN; j++)
            found |= (uint16_t)(lanes[r * DPESTIM_RARE_RUN + j] <= most);
        some[r] = (uint8_t)found;
    }
}

/* Writes the places from `low` to `high` of those at most `most`, without branches; `places` has room for all. */
static inline size_t dpestim_rare_each(const uint16_t *lanes, size_t low, size_t high, uint16_t most, int64_t *places) {
    size_t found = 0;
    for (size_t i = low; i < high; i++) {
        places[found] = (int64_t)i;
        found += lanes[i] <= most;
    }
    return found;
}

/* The same for a run, of which eights without any are left. */
static inline size_t dpestim_rare_run(const uint16_t *lanes, size_t low, uint16_t most, int64_t *places) {
    uint8_t small[DPESTIM_RARE_RUN];
    uint64_t eight;
    size_t found = 0;
    for (size_t j = 0; j < DPESTIM_RARE_RUN; j++) small[j] = lanes[low + j] <= most;
    for (size_t j = 0; j < DPESTIM_RARE_RUN; j += 8) {
        memcpy(&eight, small + j, 8);
        if (eight) found += dpestim_rare_each(lanes, low + j, low + j + 8, most, places + found);
    }
    return found;
}

static inline size_t dpestim_rare_places(const uint16_t *lanes, size_t n, uint16_t most, int64_t *places) {
    const size_t runs = n / DPESTIM_RARE_RUN;
    uint8_t some[DPESTIM_RARE_RUNS];
    size_t found = 0;
    for (size_t at = 0; at < runs; at += DPESTIM_RARE_RUNS) {
        const size_t now = runs - at < DPESTIM_RARE_RUNS ? runs - at : DPESTIM_RARE_RUNS;
        dpestim_rare_runs(lanes + at * DPESTIM_RARE_RUN, now, most, some);
        for (size_t r = 0; r < now; r++)
            if (some[r])
                found += dpestim_rare_run(lanes, (at + r) * DPESTIM_RARE_RUN, most, places + found);
    }
    return found + dpestim_rare_each(lanes, runs * DPESTIM_RARE_RUN, n, most, places + found);
}
#endif
