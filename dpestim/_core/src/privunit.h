/* PrivUnit over public candidates: a seed makes N unit vectors, and with their negatives they are ranked by their product
 * with the private direction. Everything random here comes from the public seed; the private answer takes one word. */
#ifndef DPESTIM_PRIVUNIT_H
#define DPESTIM_PRIVUNIT_H
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "frames.h"
#include "portable.h"
#include "wide.h"

#define DPESTIM_DENSE 64                      /* fewer dimensions than these are rotated by a matrix */
#define DPESTIM_PU_LEAST 256                  /* others by signs and transforms of at least this size */
#define DPESTIM_PU_UNIT ((double)(1 << 15))   /* what 1 is in the coordinates of a candidate of few dimensions */
#define DPESTIM_PU_BITS 10                    /* of many: the root of the mean square is 2 to this power */
#define DPESTIM_PU_RADIUS ((double)(1 << 30)) /* what the radius is in a fixed point */

/* Layers of signs that all frames share: the more, the nearer a frame is to a uniform one. */
static inline size_t dpestim_pu_shared(size_t size) { return size < 1024 ? 4 : 2; }

typedef struct {
    size_t d, size, n;   /* dimensions; with padding (as d where these are few); candidates without their negatives */
    const float *points; /* few dimensions: d x n, column i is candidate i before it is rotated; else NULL */
    uint64_t n_top, inside, outside; /* n_top * inside + (2 n - n_top) * outside == 2^64, n_top <= n */
    float guess, step;   /* about where the n_top best begin, and how far apart they are there: for speed only */
    const double *next;  /* what comes from memory meanwhile, so many numbers of it: for speed only */
    size_t ahead;
} dpestim_pu_law;

/* ---------------------------------------------------------------- what the seed makes */

/* Normal numbers by Marsaglia's polar method; an even number is drawn. */
static void dpestim_pu_normals(uint64_t *state, double *out, size_t n) {
    for (size_t k = 0; k < n; k += 2) {
        double a, b, s;
        do {
            a = (double)(dpestim_pu_next(state) >> 11) * 0x1p-52 - 1.0;
            b = (double)(dpestim_pu_next(state) >> 11) * 0x1p-52 - 1.0;
            s = a * a + b * b;
        } while (s >= 1.0 || s == 0.0);
        s = sqrt(-2.0 * log(s) / s);
        out[k] = a * s;
        if (k + 1 < n) out[k + 1] = b * s;
    }
}

/* An orthogonal matrix that is uniform (Haar), as d reflections and signs: Stewart 1980. */
typedef struct {
    double normal[DPESTIM_DENSE * (DPESTIM_DENSE + 1) / 2], scale[DPESTIM_DENSE], sign[DPESTIM_DENSE];
} dpestim_pu_rotation;

static void dpestim_pu_rotate_init(dpestim_pu_rotation *q, uint64_t seed, size_t d) {
    double *g = q->normal;
    dpestim_pu_normals(&seed, g, d * (d + 1) / 2);
    for (size_t k = 0; k < d; g += d - k, k++) {
        const size_t m = d - k;
        double square = 0.0, norm;
        for (size_t j = 0; j < m; j++) square += g[j] * g[j];
        norm = sqrt(square);
        if (m == 1) { /* only a sign is left */
            q->sign[k] = g[0] < 0.0 ? -1.0 : 1.0;
            q->scale[k] = 0.0;
            continue;
        }
        q->sign[k] = g[0] < 0.0 ? 1.0 : -1.0;
        square += norm * fabs(g[0]); /* half of the square of what follows */
        g[0] += g[0] < 0.0 ? -norm : norm;
        q->scale[k] = square > 0.0 ? 1.0 / square : 0.0;
    }
}

static inline void dpestim_pu_reflect(const double *g, double scale, double *v, size_t m) {
    double product = 0.0;
    for (size_t j = 0; j < m; j++) product += g[j] * v[j];
    product *= scale;
    for (size_t j = 0; j < m; j++) v[j] -= product * g[j];
}

/* v becomes Q' v, or Q v where not `inverse`. */
static void dpestim_pu_rotate(const dpestim_pu_rotation *q, double *v, size_t d, int inverse) {
    if (!inverse)
        for (size_t k = 0; k < d; k++) v[k] *= q->sign[k];
    for (size_t step = 0; step < d; step++) {
        const size_t k = inverse ? step : d - 1 - step;
        dpestim_pu_reflect(q->normal + k * d - (k * k - k) / 2, q->scale[k], v + k, d - k);
    }
    if (inverse)
        for (size_t k = 0; k < d; k++) v[k] *= q->sign[k];
}

DPESTIM_WIDE static void dpestim_pu_products(const float *restrict points, const float *restrict v, float *restrict y,
                                             size_t d, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = points[i] * v[0];
    for (size_t k = 1; k < d; k++)
        for (size_t i = 0; i < n; i++) y[i] += points[k * n + i] * v[k];
}

static inline void dpestim_pu_fetch(const dpestim_pu_law *law, size_t from, size_t size) {
    for (size_t k = from; k < from + size && k < law->ahead; k += 8) DPESTIM_FETCH_TO_READ(law->next + k);
}

/* The products of all candidates with the direction in `work`, up to one factor; it is 2 * size floats of memory. */
static void dpestim_pu_project(const dpestim_pu_law *law, uint64_t seed, float *y, float *work) {
    const size_t d = law->d, size = law->size, shared = dpestim_pu_shared(size);
    if (law->points) {
        dpestim_pu_rotation q;
        double v[DPESTIM_DENSE];
        dpestim_pu_rotate_init(&q, seed, d);
        for (size_t k = 0; k < d; k++) v[k] = work[k];
        dpestim_pu_rotate(&q, v, d, 1);
        for (size_t k = 0; k < d; k++) work[k] = (float)v[k];
        dpestim_pu_products(law->points, work, y, d, law->n);
        return;
    }
    uint32_t *bits = (uint32_t *)(work + size);
    for (size_t k = d; k < size; k++) work[k] = 0.0f;
    const size_t share = (law->ahead / (shared + law->n / size) + 15) / 8 * 8; /* a part of what is next with each layer */
    for (size_t layer = 0; layer < shared; layer++) {
        dpestim_pu_fetch(law, layer * share, share);
        dpestim_pu_layer(seed, layer, size, bits);
        dpestim_pu_turn(work, bits, size, work);
    }
    for (size_t f = 0; f < law->n / size; f++) {
        dpestim_pu_fetch(law, (shared + f) * share, share);
        dpestim_pu_layer(seed, shared + f, size, bits);
        dpestim_pu_turn(work, bits, size, y + f * size);
    }
}

/* Divide by a power of two, rounding to nearest and halves away from 0, so that negatives stay negatives. */
DPESTIM_WIDE static void dpestim_pu_shorten(int32_t *restrict z, size_t n, int by) {
    const int32_t half = by ? (int32_t)1 << (by - 1) : 0;
    for (size_t k = 0; k < n; k++) {
        const int32_t s = z[k] >> 31;
        z[k] = ((((z[k] ^ s) - s + half) >> by) ^ s) - s;
    }
}

/* Candidate `index` (from n on: the negatives) in integers, d of them; work: 2 * size numbers of memory. */
static void dpestim_pu_lift(const dpestim_pu_law *law, uint64_t seed, uint64_t index, int32_t *work) {
    const size_t d = law->d, size = law->size, shared = dpestim_pu_shared(size);
    const size_t i = (size_t)(index < law->n ? index : index - law->n);
    if (law->points) {
        dpestim_pu_rotation q;
        double v[DPESTIM_DENSE];
        dpestim_pu_rotate_init(&q, seed, d);
        for (size_t k = 0; k < d; k++) v[k] = law->points[k * law->n + i];
        dpestim_pu_rotate(&q, v, d, 0);
        for (size_t k = 0; k < d; k++) work[k] = (int32_t)lrint(v[k] * DPESTIM_PU_UNIT);
    } else {
        uint32_t *bits = (uint32_t *)(work + size);
        const size_t row = i % size;
        work[0] = 1;
        for (size_t h = 1; h < size; h *= 2) {
            const int32_t s = row & h ? -1 : 1;
            for (size_t k = 0; k < h; k++) work[h + k] = s * work[k];
        }
        dpestim_pu_layer(seed, shared + i / size, size, bits);
        dpestim_pu_signs_32(work, bits, size);
        for (size_t layer = shared; layer-- > 0;) {
            dpestim_fwht_32(work, size);
            dpestim_pu_layer(seed, layer, size, bits);
            dpestim_pu_signs_32(work, bits, size);
        }
        /* each transform has made coordinates sqrt(size) times larger; at least size^(shared / 2) >= 2^10 */
        dpestim_pu_shorten(work, d, (int)(shared / 2) * (int)dpestim_lowest_one(size) - DPESTIM_PU_BITS);
    }
    if (index >= law->n)
        for (size_t k = 0; k < d; k++) work[k] = -work[k];
}

/* ---------------------------------------------------------------- the answer */

DPESTIM_WIDE static size_t dpestim_pu_above(const float *restrict y, size_t n, float t) {
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++) count += fabsf(y[i]) > t;
    return count;
}

/* Mark the n_top largest of |y|, the first of equals; fewer than n of them have an order of their own. */
DPESTIM_WIDE static void dpestim_pu_mark(const float *restrict y, size_t n, float t, uint8_t *restrict top) {
    for (size_t i = 0; i < n; i++) top[i] = fabsf(y[i]) > t;
}
static void dpestim_pu_top(const float *y, size_t n, size_t n_top, float guess, float step, uint8_t *top) {
    float low = -1.0f, high = FLT_MAX, middle = guess; /* at least n_top are above low, fewer above high */
    for (int tries = 0;; tries++) {
        if (!(low < middle && middle < high)) middle = 0.5f * (low + high);
        if (!(low < middle && middle < high)) break; /* what is above low and not above high equals high */
        const size_t above = dpestim_pu_above(y, n, middle);
        if (above == n_top) {
            dpestim_pu_mark(y, n, middle, top);
            return;
        }
        if (above > n_top) low = middle;
        else high = middle;
        /* as many steps away as there are too many; bisection where that does not end */
        middle = tries < 6 ? middle + step * ((float)above - (float)n_top) : low;
    }
    size_t left = n_top - dpestim_pu_above(y, n, high);
    for (size_t i = 0; i < n; i++) {
        top[i] = fabsf(y[i]) > high;
        if (left && fabsf(y[i]) == high) top[i] = 1, left--;
    }
}

/* The number of mark `wanted`, counted from 0, among those that are `value`. */
DPESTIM_WIDE static size_t dpestim_pu_find(const uint8_t *top, size_t n, size_t wanted, uint8_t value) {
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        uint8_t same = 0;
        for (size_t k = 0; k < 64; k++) same += top[i + k] == value;
        if (wanted < same) break;
        wanted -= same;
    }
    for (;; i++)
        if (top[i] == value && wanted-- == 0) return i;
}

/* The candidate that a word answers: each of the n_top best for `inside` words, each other one for `outside`. */
static uint64_t dpestim_pu_answer(const dpestim_pu_law *law, const float *y, uint64_t word, uint8_t *top) {
    const uint64_t best = law->n_top * law->inside, n = law->n;
    uint64_t i, flip = 0;
    if (word < best) {
        dpestim_pu_top(y, n, law->n_top, law->guess, law->step, top);
        i = dpestim_pu_find(top, n, (size_t)(word / law->inside), 1);
    } else {
        i = (word - best) / law->outside;
        if (i < n) flip = 1; /* on the far side nobody is among the best */
        else {
            dpestim_pu_top(y, n, law->n_top, law->guess, law->step, top);
            i = dpestim_pu_find(top, n, (size_t)(i - n), 0);
        }
    }
    return i + n * (flip ^ (y[i] < 0.0f));
}

/* The square of the length of a point. */
DPESTIM_WIDE static int64_t dpestim_pu_square(const int32_t *restrict code, size_t d) {
    int64_t square = 0;
    for (size_t k = 0; k < d; k++) square += (int64_t)code[k] * code[k];
    return square;
}
DPESTIM_WIDE static void dpestim_pu_direct(const int32_t *restrict code, float scale, size_t d, float *restrict out) {
    for (size_t k = 0; k < d; k++) out[k] = (float)code[k] * scale;
}

/* One report: `code` is a point of the ball; words: one for its length, one for the answer; memory: 2 size + n floats. */
static uint64_t dpestim_pu_report(const dpestim_pu_law *law, const int32_t *code, uint64_t seed, const uint64_t *words,
                                  float *memory, uint8_t *top) {
    const double norm = sqrt((double)dpestim_pu_square(code, law->d));
    double sign = 1.0;
    if (norm < DPESTIM_PU_RADIUS) {
        const uint64_t keep = ((uint64_t)1 << 63) + (uint64_t)(norm * (0x1p63 / DPESTIM_PU_RADIUS));
        if (words[0] >= keep) sign = -1.0;
    }
    dpestim_pu_direct(code, norm > 0.0 ? (float)(sign / norm) : 0.0f, law->d, memory);
    if (!(norm > 0.0)) memory[0] = (float)sign;
    dpestim_pu_project(law, seed, memory + 2 * law->size, memory);
    return dpestim_pu_answer(law, memory + 2 * law->size, words[1], top);
}

/* The offsets of a row from the centre, in radii; returns the sum of their squares. */
DPESTIM_WIDE static double dpestim_pu_offset(const double *restrict x, const double *restrict centre, double per_radius,
                                             size_t d, double *restrict offset) {
    double square = 0.0, part[8] = {0.0};
    size_t k = 0;
    for (; k + 8 <= d; k += 8)
        for (int j = 0; j < 8; j++) {
            const double v = (x[k + j] - centre[k + j]) * per_radius;
            offset[k + j] = v;
            part[j] += v * v;
        }
    for (; k < d; k++) {
        offset[k] = (x[k] - centre[k]) * per_radius;
        square += offset[k] * offset[k];
    }
    for (int j = 0; j < 8; j++) square += part[j];
    return square;
}
DPESTIM_WIDE static void dpestim_pu_fix(const double *restrict offset, double scale, size_t d, int32_t *restrict out) {
    for (size_t k = 0; k < d; k++) out[k] = (int32_t)(offset[k] * scale);
}

/* The fixed point of a row: its offset from the centre, scaled back into the ball where it is longer, towards 0. */
static void dpestim_pu_encode(const double *x, const double *centre, double per_radius, size_t d, double *offset,
                              int32_t *out) {
    double square = dpestim_pu_offset(x, centre, per_radius, d, offset);
    if (!(square <= DBL_MAX)) { /* something is no number, infinite, or has no square */
        square = 0.0;
        for (size_t k = 0; k < d; k++) {
            const double v = offset[k] == offset[k] ? offset[k] : 0.0;
            offset[k] = v > 1e100 ? 1e100 : v < -1e100 ? -1e100 : v;
            square += offset[k] * offset[k];
        }
    }
    dpestim_pu_fix(offset, DPESTIM_PU_RADIUS / (square > 1.0 ? sqrt(square) : 1.0), d, out);
}

/* Reports of rows, each encoded where it is answered; the next row comes from memory meanwhile. */
#define DPESTIM_PU_AHEAD 2048 /* numbers of it at most */
static void dpestim_pu_rows(const dpestim_pu_law *law, const double *x, size_t n, const double *centre,
                            double per_radius, double *offset, int32_t *code, const uint64_t *seeds,
                            const uint64_t *words, float *memory, uint8_t *top, uint64_t *out) {
    dpestim_pu_law here = *law;
    for (size_t i = 0; i < n; i++) {
        here.next = x + (i + 1) * law->d;
        here.ahead = i + 1 == n ? 0 : law->d < DPESTIM_PU_AHEAD ? law->d : DPESTIM_PU_AHEAD;
        dpestim_pu_encode(x + i * law->d, centre, per_radius, law->d, offset, code);
        out[2 * i] = seeds[i];
        out[2 * i + 1] = dpestim_pu_report(&here, code, seeds[i], words + 2 * i, memory, top);
    }
}

/* Add a candidate, and the squares of its coordinates. */
DPESTIM_WIDE static void dpestim_pu_add(const int32_t *restrict z, size_t d, int64_t *restrict sums,
                                        int64_t *restrict squares) {
    for (size_t k = 0; k < d; k++) {
        sums[k] += z[k];
        squares[k] += (int64_t)z[k] * z[k];
    }
}
#endif
