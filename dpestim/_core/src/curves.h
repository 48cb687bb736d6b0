/* Curves from noisy sums, under several prior variances at a time: what is known of bins is z = h f + noise of variance
 * 1, and f has covariances p K. Each variance p has a lane of its own in one fixed order of operations, so that vectors
 * of every width give the same result (setup.py forbids fused multiply-adds). Matrices are I + p h K h, whose
 * eigenvalues are at least 1: no pivots, and no root of what is negative. */
#ifndef DPESTIM_CURVES_H
#define DPESTIM_CURVES_H

#include "logistic.h"

#define DPESTIM_PRIORS 8 /* lanes */

/* Where a row of the factor starts: rows of a lower triangle, one after the other. */
#define DPESTIM_ROW(i) ((i) * ((i) + 1) / 2 * DPESTIM_PRIORS)

/* All lanes at a time where vectors are part of the language, else one after the other: each by itself, so alike. */
#if DPESTIM_GNU
DPESTIM_VECTOR(double, 8 * DPESTIM_PRIORS, dpestim_lanes);
#else
typedef double dpestim_lanes;
#endif
#define DPESTIM_AT(row, k) (*(dpestim_lanes *)((row) + (k) * DPESTIM_PRIORS))

#define DPESTIM_COLUMNS 4 /* that are taken together */

/* Entries of `rows` rows from i on, in the columns from j on, less the products of the columns before j: each row is
 * read once for all these columns. The products of an entry are taken from it one after the other, as ever. */
DPESTIM_INLINE void dpestim_less(double *low, ptrdiff_t i, int rows, ptrdiff_t j) {
    for (int l = 0; l < DPESTIM_PRIORS; l += (int)(sizeof(dpestim_lanes) / sizeof(double))) {
        double *at[4], *by[DPESTIM_COLUMNS];
        dpestim_lanes left[4][DPESTIM_COLUMNS];
        for (int r = 0; r < rows; r++) at[r] = low + DPESTIM_ROW(i + r) + l;
        for (int c = 0; c < DPESTIM_COLUMNS; c++) by[c] = low + DPESTIM_ROW(j + c) + l;
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < DPESTIM_COLUMNS; c++) left[r][c] = DPESTIM_AT(at[r], j + c);
        for (ptrdiff_t k = 0; k < j; k++)
            for (int r = 0; r < rows; r++)
                for (int c = 0; c < DPESTIM_COLUMNS; c++) left[r][c] -= DPESTIM_AT(at[r], k) * DPESTIM_AT(by[c], k);
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < DPESTIM_COLUMNS; c++)
                if (j + c <= i + r) DPESTIM_AT(at[r], j + c) = left[r][c]; /* (others belong to rows below) */
    }
}

/* The lower Cholesky factor of I + p h K h, with inverses on its diagonal; logs: of the determinants, added to. */
DPESTIM_WIDE static void dpestim_factor(ptrdiff_t n, const double *covariance, const double *heads,
                                        const double *priors, double *low, double *logs) {
    const int step = (int)(sizeof(dpestim_lanes) / sizeof(double));
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j <= i; j++) {
            double *to = low + DPESTIM_ROW(i) + j * DPESTIM_PRIORS;
            double of = heads[i] * covariance[i * n + j] * heads[j], one = i == j ? 1.0 : 0.0;
            for (int l = 0; l < DPESTIM_PRIORS; l++) to[l] = one + priors[l] * of;
        }
    for (ptrdiff_t j = 0, from = 0; j < n; j++) { /* (columns before `from` were taken off already) */
        double *row = low + DPESTIM_ROW(j);
        if (j % DPESTIM_COLUMNS == 0) {
            ptrdiff_t i = j;
            from = j + DPESTIM_COLUMNS <= n ? j : 0;
            for (; from && i + 3 < n; i += 4) dpestim_less(low, i, 4, j);
            for (; from && i < n; i++) dpestim_less(low, i, 1, j);
        }
        for (int l = 0; l < DPESTIM_PRIORS; l += step) {
            dpestim_lanes left = DPESTIM_AT(row + l, j);
            for (ptrdiff_t k = from; k < j; k++) left -= DPESTIM_AT(row + l, k) * DPESTIM_AT(row + l, k);
            DPESTIM_AT(row + l, j) = left;
        }
        for (int l = 0; l < DPESTIM_PRIORS; l++) {
            double root = sqrt(row[j * DPESTIM_PRIORS + l]);
            logs[l] += 2.0 * log(root);
            row[j * DPESTIM_PRIORS + l] = 1.0 / root;
        }
        ptrdiff_t i = j + 1;
        for (; i + 3 < n; i += 4) /* (four rows, so that no sum waits for itself) */
            for (int l = 0; l < DPESTIM_PRIORS; l += step) {
                double *a = low + DPESTIM_ROW(i) + l, *b = low + DPESTIM_ROW(i + 1) + l;
                double *c = low + DPESTIM_ROW(i + 2) + l, *d = low + DPESTIM_ROW(i + 3) + l;
                dpestim_lanes of_a = DPESTIM_AT(a, j), of_b = DPESTIM_AT(b, j);
                dpestim_lanes of_c = DPESTIM_AT(c, j), of_d = DPESTIM_AT(d, j), own = DPESTIM_AT(row + l, j);
                for (ptrdiff_t k = from; k < j; k++) {
                    dpestim_lanes by = DPESTIM_AT(row + l, k);
                    of_a -= DPESTIM_AT(a, k) * by;
                    of_b -= DPESTIM_AT(b, k) * by;
                    of_c -= DPESTIM_AT(c, k) * by;
                    of_d -= DPESTIM_AT(d, k) * by;
                }
                DPESTIM_AT(a, j) = of_a * own;
                DPESTIM_AT(b, j) = of_b * own;
                DPESTIM_AT(c, j) = of_c * own;
                DPESTIM_AT(d, j) = of_d * own;
            }
        for (; i < n; i++)
            for (int l = 0; l < DPESTIM_PRIORS; l += step) {
                double *a = low + DPESTIM_ROW(i) + l;
                dpestim_lanes of_a = DPESTIM_AT(a, j);
                for (ptrdiff_t k = from; k < j; k++) of_a -= DPESTIM_AT(a, k) * DPESTIM_AT(row + l, k);
                DPESTIM_AT(a, j) = of_a * DPESTIM_AT(row + l, j);
            }
    }
}

/* found: p (I + p h K h)^-1 z, of shape (n, lanes); misfit: z' (I + p h K h)^-1 z, added to. */
DPESTIM_WIDE static void dpestim_solve(ptrdiff_t n, const double *restrict low, const double *priors, const double *z,
                                       double *restrict found, double *misfit) {
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *row = low + DPESTIM_ROW(i);
        double *to = found + i * DPESTIM_PRIORS, left[DPESTIM_PRIORS];
        for (int l = 0; l < DPESTIM_PRIORS; l++) left[l] = z[i];
        for (ptrdiff_t k = 0; k < i; k++)
            for (int l = 0; l < DPESTIM_PRIORS; l++)
                left[l] -= row[k * DPESTIM_PRIORS + l] * found[k * DPESTIM_PRIORS + l];
        for (int l = 0; l < DPESTIM_PRIORS; l++) to[l] = left[l] * row[i * DPESTIM_PRIORS + l];
        for (int l = 0; l < DPESTIM_PRIORS; l++) misfit[l] += to[l] * to[l];
    }
    for (ptrdiff_t i = n - 1; i >= 0; i--) {
        const double *row = low + DPESTIM_ROW(i);
        double *to = found + i * DPESTIM_PRIORS, by[DPESTIM_PRIORS];
        for (int l = 0; l < DPESTIM_PRIORS; l++) by[l] = to[l] * row[i * DPESTIM_PRIORS + l];
        for (int l = 0; l < DPESTIM_PRIORS; l++) to[l] = by[l] * priors[l];
        for (ptrdiff_t k = 0; k < i; k++)
            for (int l = 0; l < DPESTIM_PRIORS; l++)
                found[k * DPESTIM_PRIORS + l] -= row[k * DPESTIM_PRIORS + l] * by[l];
    }
}

/* out += by * in: what a bin says of all places. */
DPESTIM_WIDE static void dpestim_add_times(ptrdiff_t n, double by, const double *restrict in, double *restrict out) {
    for (ptrdiff_t i = 0; i < n; i++) out[i] += by * in[i];
}

/* The probability of a score. */
DPESTIM_INLINE double dpestim_expit(double s) {
    double e = dpestim_exp(s < 0.0 ? s : -s);
    return (s < 0.0 ? e : 1.0) / (1.0 + e);
}

/* By how much the probability rises from one score to another, over how far these are apart. */
static double dpestim_secant(double before, double after) {
    double low = dpestim_expit(before), far = after - before;
    return fabs(far) > 1e-4 ? (dpestim_expit(after) - low) / far : low * (1.0 - low);
}

/* Chances of priors, from logarithms of likelihoods and how common each is (NULL: alike). */
static void dpestim_chances(ptrdiff_t n, const double *likelihoods, const double *common, double *out) {
    double most = likelihoods[0], total = 0.0;
    for (ptrdiff_t l = 1; l < n; l++) most = likelihoods[l] > most ? likelihoods[l] : most;
    for (ptrdiff_t l = 0; l < n; l++) total += out[l] = (common ? common[l] : 1.0) * dpestim_exp(likelihoods[l] - most);
    for (ptrdiff_t l = 0; common && l < n; l++) out[l] /= total;
}

/* How common each prior is among terms, from what makes each likely (m, n) and from pseudo-terms: expectation and
 * maximisation. */
static void dpestim_common(ptrdiff_t m, ptrdiff_t n, const double *likely, double pseudo, const double *known,
                           double *out) {
    double next[DPESTIM_PRIORS];
    for (ptrdiff_t l = 0; l < n; l++) out[l] = known[l];
    for (int step = 0; step < 20; step++) {
        double total = 0.0;
        for (ptrdiff_t l = 0; l < n; l++) next[l] = 0.0;
        for (ptrdiff_t i = 0; i < m; i++) {
            double sum = 0.0;
            for (ptrdiff_t l = 0; l < n; l++) sum += likely[i * n + l] * out[l];
            sum = 1.0 / sum;
            for (ptrdiff_t l = 0; l < n; l++) next[l] += sum * likely[i * n + l];
        }
        for (ptrdiff_t l = 0; l < n; l++) total += out[l] = pseudo * known[l] + out[l] * next[l];
        for (ptrdiff_t l = 0; l < n; l++) out[l] /= total;
    }
}

#endif
