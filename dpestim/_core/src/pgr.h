/* Projective geometry response. See local/categories/pgr.md for the law, the numbering of points and the proof. */
#ifndef DPESTIM_PGR_H
#define DPESTIM_PGR_H
#include <stddef.h>
#include <stdint.h>

enum { DPESTIM_MOST_COORDINATES = 32 };

/* The point number e: one that begins with (1, 0, ..., 0) is 0, and (b, w) is 1 + b + q e(w). */
static inline void dpestim_pgr_coordinates(uint32_t e, uint32_t q, int t, uint32_t *y) {
    int i = 0;
    for (; e > 0; i++) {
        e--;
        y[i] = e % q;
        e /= q;
    }
    y[i++] = 1;
    for (; i < t; i++) y[i] = 0;
}

/* Point number r among those orthogonal to value v (inside), or among the others. */
static inline uint32_t dpestim_pgr_point(uint32_t v, int inside, uint32_t r, uint32_t q, int t, uint32_t first) {
    uint32_t a[DPESTIM_MOST_COORDINATES], y[DPESTIM_MOST_COORDINATES], size = first, scale = 0, e = 0;
    int lead = 0, last = -1, i;
    for (; lead < t - 1 && v >= size; lead++) { /* first = q^(t-1) values have 1 in front, q^(t-2) have (0, 1), and so on */
        v -= size;
        size /= q;
    }
    for (i = t - 1; i > lead; i--) {
        a[i] = v % q;
        v /= q;
    }
    if (!inside) {
        if (r == 0) {
            for (i = lead; i > 0; i--) e = 1 + q * e;
            return e;
        }
        r--;
        scale = 1 + r % (q - 1);
        r /= q - 1;
    }
    for (i = 0; last < 0; i++) { /* a point of all other coordinates */
        if (i == lead) continue;
        if (r == 0) {
            y[i] = 1;
            last = i;
        } else {
            r--;
            y[i] = r % q;
            r /= q;
        }
    }
    if (last > lead) {
        uint64_t sum = 0;
        for (i = lead + 1; i <= last; i++) sum += (uint64_t)a[i] * y[i];
        y[lead] = (q - (uint32_t)(sum % q) + scale) % q;
    } else if (!inside) {
        for (i = 0; i <= last; i++) y[i] = (uint32_t)((uint64_t)scale * y[i] % q);
        for (i = last + 1; i < lead; i++) y[i] = 0;
        last = lead; /* whose coordinate is 1 */
    }
    for (i = last - 1; i >= 0; i--) e = 1 + y[i] + q * e;
    return e;
}

/* Write 1 for every stride-th place of out, from block on, whose value is orthogonal to point e, else 0. */
static inline void dpestim_pgr_support(uint32_t e, uint32_t q, int t, size_t block, size_t stride, size_t d,
                                       uint8_t *out) {
    uint32_t y[DPESTIM_MOST_COORDINATES], digits[DPESTIM_MOST_COORDINATES];
    dpestim_pgr_coordinates(e, q, t, y);
    size_t x = block;
    for (int lead = 0; lead < t; lead++) {
        uint32_t sum = y[lead]; /* (canonical coordinates are below q, which is at least 2) */
        int i;
        for (i = lead + 1; i < t; i++) digits[i] = 0;
        do {
            if (x >= d) return;
            out[x] = sum == 0;
            x += stride;
            for (i = t - 1; i > lead; i--) { /* the next value; a digit that wraps has added q times its coordinate */
                sum += y[i];
                sum -= sum >= q ? q : 0;
                if (++digits[i] < q) break;
                digits[i] = 0;
            }
        } while (i > lead);
    }
}

#define DPESTIM_PGR_DECODE(name, number)                                                                              \
    /* sums[w][z]: weight of the points (.., w) whose coordinates so far give the product z with those of the value; */ \
    /* w has `left` coordinates, of which there are `rows`. Returns how many values are written. */                   \
    static size_t name##_walk(const number *sums, size_t rows, int left, number settled, uint32_t q, size_t most,     \
                              number *scratch, number *out) {                                                         \
        if (left == 0) {                                                                                              \
            out[0] = settled;                                                                                         \
            return 1;                                                                                                 \
        }                                                                                                             \
        size_t done = 0;                                                                                              \
        const size_t next = (rows - 1) / q;                                                                           \
        for (uint32_t a = 0; a < q && done < most; a++) {                                                             \
            const number here = settled + sums[a ? q - a : 0];                                                        \
            if (left == 1) {                                                                                          \
                out[done++] = here;                                                                                   \
                continue;                                                                                             \
            }                                                                                                         \
            for (size_t w = 0; w < next; w++) {                                                                       \
                const number *from = sums + (1 + q * w) * q;                                                          \
                number *to = scratch + w * q;                                                                         \
                for (uint32_t z = 0; z < q; z++) to[z] = from[z];                                                     \
                uint32_t shift = 0;                                                                                   \
                for (uint32_t b = 1; b < q; b++) {                                                                    \
                    from += q;                                                                                        \
                    shift += a;                                                                                       \
                    shift -= shift >= q ? q : 0;                                                                      \
                    for (uint32_t z = 0; z < q - shift; z++) to[shift + z] += from[z];                                \
                    for (uint32_t z = 0; z < shift; z++) to[z] += from[q - shift + z];                                \
                }                                                                                                     \
            }                                                                                                         \
            done += name##_walk(scratch, next, left - 1, here, q, most - done, scratch + next * q, out + done);       \
        }                                                                                                             \
        return done;                                                                                                  \
    }                                                                                                                 \
                                                                                                                      \
    /* out[v]: the sum of weights over the points orthogonal to value v, for the first d; scratch has 2 n places. */  \
    static inline void name(const number *weights, size_t n, uint32_t q, int t, number *scratch, number *out,         \
                            size_t d) {                                                                               \
        number settled = 0;                                                                                           \
        size_t done = 0;                                                                                              \
        for (int lead = 0; lead < t && done < d; lead++) {                                                            \
            const size_t rows = (n - 1) / q;                                                                          \
            done += name##_walk(weights + 1, rows, t - 1 - lead, settled, q, d - done, scratch + rows, out + done);   \
            settled += weights[0];                                                                                    \
            for (size_t w = 0; w < rows; w++) {                                                                       \
                number sum = 0;                                                                                       \
                for (uint32_t z = 0; z < q; z++) sum += weights[1 + q * w + z];                                       \
                scratch[w] = sum;                                                                                     \
            }                                                                                                         \
            weights = scratch;                                                                                        \
            scratch += rows;                                                                                          \
            n = rows;                                                                                                 \
        }                                                                                                             \
    }

DPESTIM_PGR_DECODE(dpestim_pgr_decode_int64, int64_t)
DPESTIM_PGR_DECODE(dpestim_pgr_decode_double, double)
#endif
