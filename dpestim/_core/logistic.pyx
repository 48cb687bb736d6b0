"""Logistic loss, gradient and Hessian of clipped rows in one pass over the data."""

from libc.stdint cimport int8_t

cdef extern from "logistic.h" nogil:
    const int DPESTIM_TILE
    const int DPESTIM_PAD
    double dpestim_exp(double x)
    double dpestim_clip(const double *x, Py_ssize_t d, double inverse, double limit)
    double dpestim_logistic(const double *x, Py_ssize_t d, const int8_t *signs, double *scales, double inverse,
                            double limit, double tail, Py_ssize_t first, Py_ssize_t last, Py_ssize_t step,
                            const double *w, double *z, Py_ssize_t width, double *g, double *h)

TILE = DPESTIM_TILE  # rows that are taken together (gradients are added by halves of it)
PAD = DPESTIM_PAD    # the padded width is a multiple of this


def accumulate(
    const double[:, ::1] X,    # IN   rows
    const int8_t[::1] signs,   # IN   +1 or -1: the class of a row; 0: the row does not count
    double[::1] scales,        # IN and OUT  a row's factor; negative: not known yet, to be computed here
    double inverse,            # IN   1 / the declared norm of a row
    double limit,              # IN   the norm that clipped rows keep, below 1
    double tail,               # IN   the constant that is appended to each row where the width allows, or 0
    Py_ssize_t first,          # IN   rows first, first + step, ... below last
    Py_ssize_t last,
    Py_ssize_t step,
    const double[::1] w,       # IN   (width,) padded with zeros
    double[:, ::1] work,       # OUT  (TILE, width), scratch
    double[::1] gradient,      # OUT  (width,), added to
    double[:, ::1] hessian,    # OUT  (width, width) upper triangle, added to; or of no rows: not wanted
):
    """Add the gradient and Hessian of sum log(1 + exp(-sign z w)) over clipped rows z; return the loss."""
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], width = w.shape[0]
    cdef bint bent = hessian.shape[0] > 0
    cdef double loss
    if signs.shape[0] != n or scales.shape[0] != n or first < 0 or last > n or step < 1:
        raise ValueError("X, signs and scales differ in length")
    if width % DPESTIM_PAD or width < d or work.shape[0] != DPESTIM_TILE or work.shape[1] != width:
        raise ValueError("w or work has the wrong width")
    if gradient.shape[0] != width or (bent and (hessian.shape[0] != width or hessian.shape[1] != width)):
        raise ValueError("gradient or hessian has the wrong width")
    if d == 0 or first >= last:
        return 0.0
    with nogil:
        loss = dpestim_logistic(&X[0, 0], d, &signs[0], &scales[0], inverse, limit, tail, first, last, step, &w[0],
                                &work[0, 0], width, &gradient[0], &hessian[0, 0] if bent else NULL)
    return loss


def exponentials(
    const double[::1] x,  # IN   at most 0
    double[::1] out,      # OUT
):
    """Write e^x as the loss computes it, so that its error bound can be tested."""
    cdef Py_ssize_t i
    if out.shape[0] != x.shape[0]:
        raise ValueError("x and out differ in length")
    with nogil:
        for i in range(x.shape[0]):
            out[i] = dpestim_exp(x[i])


def clip_factors(
    const double[:, ::1] X,  # IN   rows
    double inverse,          # IN   1 / the declared norm
    double limit,            # IN   the norm that clipped rows keep
    double[::1] out,         # OUT  factors
):
    """Write what each row is multiplied by; 0 for a row with a value that is not a finite number."""
    cdef Py_ssize_t i
    if out.shape[0] != X.shape[0] or X.shape[1] == 0:
        raise ValueError("X and out differ in length, or X has no columns")
    with nogil:
        for i in range(X.shape[0]):
            out[i] = dpestim_clip(&X[i, 0], X.shape[1], inverse, limit)
