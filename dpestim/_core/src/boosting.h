/* Residuals of a block of rows at their scores, in integers. Each is a function of its own row alone: exp is ours
 * (logistic.h), and without fused multiply-adds a vector rounds as a scalar does, so that no row's place in a block, no
 * number of threads and no width of vectors changes it. */
#ifndef DPESTIM_BOOSTING_H
#define DPESTIM_BOOSTING_H

#include "logistic.h"

#define DPESTIM_UNIT 65536.0 /* 2^16: what a residual of 1 is */

/* The integer nearest to a residual in [-1, 1], cut to that; 0 of what is no number. */
DPESTIM_INLINE int32_t dpestim_whole(double residual) {
    const double shift = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer, ties to even ones */
    residual = residual == residual ? residual : 0.0;
    residual = residual > 1.0 ? 1.0 : residual;
    residual = residual < -1.0 ? -1.0 : residual;
    return (int32_t)((residual * DPESTIM_UNIT + shift) - shift);
}

DPESTIM_WIDE static void dpestim_number_residuals(const double *score, const double *target, ptrdiff_t n, int32_t *out) {
    for (ptrdiff_t i = 0; i < n; i++) out[i] = dpestim_whole(target[i] - score[i]);
}

DPESTIM_WIDE static void dpestim_class_residuals(const double *score, const double *target, ptrdiff_t n, int32_t *out) {
    for (ptrdiff_t i = 0; i < n; i++) {
        double s = score[i], e = dpestim_exp(s < 0.0 ? s : -s);
        double off = target[i] - (s < 0.0 ? e : 1.0) / (1.0 + e);
        out[i] = dpestim_whole(target[i] < 0.0 ? 0.0 : off);
    }
}

/* Of k classes, entry after entry and row after row; a target below 0 does not count. */
static void dpestim_softmax_residuals(const double *score, const double *target, ptrdiff_t n, ptrdiff_t k, double *shares,
                                      int32_t *out) {
    for (ptrdiff_t i = 0; i < n; i++, score += k, out += k) {
        double most = score[0], total = 0.0;
        for (ptrdiff_t j = 1; j < k; j++) most = score[j] > most ? score[j] : most;
        for (ptrdiff_t j = 0; j < k; j++) shares[j] = dpestim_exp(score[j] - most);
        for (ptrdiff_t j = 0; j < k; j++) total += shares[j];
        for (ptrdiff_t j = 0; j < k; j++) {
            double off = (target[i] == (double)j ? 1.0 : 0.0) - shares[j] / total;
            out[j] = target[i] < 0.0 ? 0 : dpestim_whole(off);
        }
    }
}

#endif
