"""Losses of margins of clipped rows: value, gradient and Hessian in one pass over the data, dense or sparse."""

from libc.stdint cimport int8_t, int32_t, int64_t

cdef extern from "logistic.h" nogil:
    const int DPESTIM_TILE
    const int DPESTIM_PAD
    const int DPESTIM_LOGISTIC
    const int DPESTIM_HINGE
    const int DPESTIM_POISSON
    double dpestim_exp(double x)
    double dpestim_clip(const double *x, Py_ssize_t d, double inverse, double limit)
    double dpestim_logistic(const double *x, Py_ssize_t d, const int8_t *signs, double *scales, double inverse,
                            double limit, double tail, double offset, Py_ssize_t first, Py_ssize_t last,
                            Py_ssize_t step, const double *w, double *z, Py_ssize_t width, double *g, double *h,
                            int kind, double shape, const double *targets, double *bends, int bits)
    double dpestim_sparse(const double *x, const int32_t *index, const int64_t *start, Py_ssize_t d,
                          const int8_t *signs, double *scales, double inverse, double limit, double tail,
                          double offset, Py_ssize_t first, Py_ssize_t last, Py_ssize_t step, const double *w,
                          Py_ssize_t width, double *g, double *h, int kind, double shape, const double *targets)
    int dpestim_wide_bits()
    int dpestim_sparse_scores_32(const double *x, const int32_t *index, const int32_t *start, Py_ssize_t n,
                                 int64_t most, double inverse, double limit, const double *w, Py_ssize_t d,
                                 Py_ssize_t k, const double *constant, double *out, int bits)
    int dpestim_sparse_scores_64(const double *x, const int64_t *index, const int64_t *start, Py_ssize_t n,
                                 int64_t most, double inverse, double limit, const double *w, Py_ssize_t d,
                                 Py_ssize_t k, const double *constant, double *out, int bits)

AHEAD = 2 * DPESTIM_TILE  # rows that `work` has room for
LOGISTIC, HINGE, POISSON = DPESTIM_LOGISTIC, DPESTIM_HINGE, DPESTIM_POISSON  # kinds of losses
PAD = DPESTIM_PAD    # the padded width is a multiple of this


def accumulate(
    const double[:, ::1] X,    # IN   rows
    const int8_t[::1] signs,   # IN   +1 or -1: the class of a row; 0: the row does not count
    double[::1] scales,        # IN and OUT  a row's factor; negative: not known yet, to be computed here
    double inverse,            # IN   1 / the declared norm of a row
    double limit,              # IN   the norm that clipped rows keep, below 1
    double tail,               # IN   the constant that is appended to each row where the width allows, or 0
    double offset,             # IN   added to each z w
    Py_ssize_t first,          # IN   rows first, first + step, ... below last
    Py_ssize_t last,
    Py_ssize_t step,
    const double[::1] w,       # IN   (width,) padded with zeros
    double[:, ::1] work,       # OUT  (AHEAD, width), scratch
    double[::1] gradient,      # OUT  (width,), added to
    double[:, ::1] hessian,    # OUT  (width, width) upper triangle, added to; or of no rows: not wanted
    int kind=DPESTIM_LOGISTIC, # IN   the loss of a margin sign z w
    double shape=0.0,          # IN   its parameter
    const double[::1] targets=None,  # IN   of a Poisson loss, in [0, 1]; signs are 1 then, or 0
    double[::1] bends=None,    # OUT  the curvatures of the rows' losses, 0 for a row that does not count
    int bits=-1,               # IN   the width of vectors, or -1: as wide as the processor has them
):
    """Add the gradient and Hessian of the losses of clipped rows z at sign (z w + offset); return their sum."""
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], width = w.shape[0]
    cdef bint bent = hessian.shape[0] > 0
    cdef int widest = dpestim_wide_bits()
    cdef double loss
    if signs.shape[0] != n or scales.shape[0] != n or first < 0 or last > n or step < 1:
        raise ValueError("X, signs and scales differ in length")
    if width % DPESTIM_PAD or width < d or work.shape[0] != 2 * DPESTIM_TILE or work.shape[1] != width:
        raise ValueError("w or work has the wrong width")
    if gradient.shape[0] != width or (bent and (hessian.shape[0] != width or hessian.shape[1] != width)):
        raise ValueError("gradient or hessian has the wrong width")
    _check_kind(kind, n, targets)
    if bends is not None and bends.shape[0] != n:
        raise ValueError("X and bends differ in length")
    cdef const double *aims = &targets[0] if targets is not None and n else NULL
    cdef double *curves = &bends[0] if bends is not None and n else NULL
    if d == 0 or first >= last:
        return 0.0
    bits = widest if bits < 0 else min(bits, widest)
    with nogil:
        loss = dpestim_logistic(&X[0, 0], d, &signs[0], &scales[0], inverse, limit, tail, offset, first, last, step,
                                &w[0], &work[0, 0], width, &gradient[0], &hessian[0, 0] if bent else NULL, kind, shape,
                                aims, curves, bits)
    return loss


cdef _check_kind(int kind, Py_ssize_t n, const double[::1] targets):
    if not 0 <= kind <= DPESTIM_POISSON or (kind == DPESTIM_POISSON) != (targets is not None):
        raise ValueError("only the kind POISSON has targets")
    if targets is not None and targets.shape[0] != n:
        raise ValueError("X and targets differ in length")


def accumulate_sparse(
    const double[::1] values,  # IN   the entries of all rows
    const int32_t[::1] index,  # IN   their columns, ascending in each row
    const int64_t[::1] start,  # IN   (n + 1,) where a row's entries start
    Py_ssize_t d,              # IN   columns
    const int8_t[::1] signs,   # and the rest as in `accumulate`
    double[::1] scales,
    double inverse,
    double limit,
    double tail,
    double offset,
    Py_ssize_t first,
    Py_ssize_t last,
    Py_ssize_t step,
    const double[::1] w,
    double[::1] gradient,
    double[:, ::1] hessian,
    int kind=DPESTIM_LOGISTIC,
    double shape=0.0,
    const double[::1] targets=None,
):
    """Add the gradient and Hessian of the losses of clipped rows of which only entries are kept; return their sum.

    The caller has checked the entries with `check_entries`.
    """
    cdef Py_ssize_t n = start.shape[0] - 1, width = w.shape[0]
    cdef bint bent = hessian.shape[0] > 0
    cdef double loss
    if signs.shape[0] != n or scales.shape[0] != n or first < 0 or last > n or step < 1:
        raise ValueError("X, signs and scales differ in length")
    if width < d or gradient.shape[0] != width or (bent and (hessian.shape[0] != width or hessian.shape[1] != width)):
        raise ValueError("w, gradient or hessian has the wrong width")
    _check_kind(kind, n, targets)
    if first >= last:
        return 0.0
    cdef const double *entries = &values[0] if values.shape[0] else NULL
    cdef const int32_t *columns = &index[0] if values.shape[0] else NULL
    cdef const double *aims = &targets[0] if targets is not None else NULL
    with nogil:
        loss = dpestim_sparse(entries, columns, &start[0], d, &signs[0], &scales[0], inverse, limit, tail, offset,
                              first, last, step, &w[0], width, &gradient[0], &hessian[0, 0] if bent else NULL, kind,
                              shape, aims)
    return loss


def check_entries(
    const int32_t[::1] index,  # IN   columns of entries
    const int64_t[::1] start,  # IN   where a row's entries start
    Py_ssize_t d,              # IN   columns there are
    Py_ssize_t n_values,       # IN   entries there are
):
    """Return 0 where rows and columns are there, and ascend; 1: columns do not ascend; 2: these are no rows."""
    cdef Py_ssize_t i, n = start.shape[0] - 1
    cdef int64_t k
    cdef bint ascend = True
    if n < 0 or start[0] != 0 or start[n] > n_values or start[n] > index.shape[0]:
        return 2
    with nogil:
        for i in range(n):
            if start[i + 1] < start[i]:
                with gil:
                    return 2
        for i in range(n):
            for k in range(start[i], start[i + 1]):
                if index[k] < 0 or index[k] >= d:
                    with gil:
                        return 2
                if k > start[i] and index[k] <= index[k - 1]:
                    ascend = False
    return 0 if ascend else 1


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


def clip_factors_sparse(
    const double[::1] values,  # IN   entries
    const int64_t[::1] start,  # IN   where a row's entries start
    double inverse,            # IN   as in `clip_factors`
    double limit,
    double[::1] out,           # OUT  factors
):
    """Write what each row is multiplied by, as `clip_factors` does; a row without entries is one of zeros."""
    cdef Py_ssize_t i
    cdef const double *entries = &values[0] if values.shape[0] else NULL
    if out.shape[0] != start.shape[0] - 1 or (out.shape[0] and start[out.shape[0]] > values.shape[0]):
        raise ValueError("values, start and out differ in length")
    with nogil:
        for i in range(out.shape[0]):
            out[i] = dpestim_clip(entries + start[i], start[i + 1] - start[i], inverse, limit)


ctypedef fused place:
    int32_t
    int64_t


def scores_sparse(
    const double[::1] values,    # IN   the entries of all rows
    const place[::1] index,      # IN   their columns; nothing is known of them yet
    const place[::1] start,      # IN   (n + 1,) where a row's entries start; nothing is known of them either
    double inverse,              # IN   1 / the declared norm of a row
    double limit,                # IN   the norm that clipped rows keep
    const double[:, ::1] w,      # IN   (d, k) weights
    const double[::1] constant,  # IN   (k) what is added
    double[:, ::1] out,          # OUT  (n, k)
    int bits=-1,                 # IN   the width of vectors, or -1: as wide as the processor has them
):
    """Write the linear scores of clipped rows of which only entries are kept.

    Return 0; or, with `out` unfinished, 1 where columns do not ascend, rows are none, or a number is not finite.
    """
    cdef Py_ssize_t n = start.shape[0] - 1, d = w.shape[0], k = w.shape[1]
    cdef int64_t most = min(values.shape[0], index.shape[0])
    cdef int left, widest = dpestim_wide_bits()
    bits = widest if bits < 0 else min(bits, widest)
    if n < 1 or out.shape[0] != n or out.shape[1] != k or constant.shape[0] != k or d == 0 or k == 0:
        raise ValueError("start, w and out differ in shape")
    if start[0] != 0 or start[n] > most:
        return 1
    if most == 0:
        out[:, :] = constant
        return 1 if _descends(start) else 0
    with nogil:
        if place is int32_t:
            left = dpestim_sparse_scores_32(&values[0], &index[0], &start[0], n, most, inverse, limit, &w[0, 0], d, k,
                                            &constant[0], &out[0, 0], bits)
        else:
            left = dpestim_sparse_scores_64(&values[0], &index[0], &start[0], n, most, inverse, limit, &w[0, 0], d, k,
                                            &constant[0], &out[0, 0], bits)
    return left


cdef bint _descends(const place[::1] start) noexcept:
    cdef Py_ssize_t i
    for i in range(start.shape[0] - 1):
        if start[i + 1] < start[i]:
            return True
    return False
