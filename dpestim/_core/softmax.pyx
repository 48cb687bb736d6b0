"""Probabilities of classes, less the class that was seen: what turns margins into gradients of the softmax loss."""

from libc.math cimport log
from libc.stdint cimport int64_t

cdef extern from "logistic.h" nogil:
    double dpestim_exp(double x)


def pulls(
    double[:, ::1] margins,    # IN   w_k z for each row and class; OUT  p_k, less 1 for the row's class
    const int64_t[::1] codes,  # IN   the class of a row; negative: the row does not count
):
    """Turn margins into p - e_y, zeros for a row that does not count; return the sum of ln sum e^m - m_y."""
    cdef Py_ssize_t n = margins.shape[0], n_classes = margins.shape[1], i, k
    cdef double loss = 0.0, top, total
    cdef double *m
    if codes.shape[0] != n or n_classes < 1:
        raise ValueError("margins and codes differ in length")
    for i in range(n):
        if codes[i] >= n_classes:
            raise ValueError("a class has no margin")
    if n == 0:
        return 0.0
    with nogil:
        for i in range(n):
            m = &margins[i, 0]
            if codes[i] < 0:
                for k in range(n_classes):
                    m[k] = 0.0
                continue
            top = m[0]
            for k in range(1, n_classes):
                top = m[k] if m[k] > top else top
            loss += top - m[codes[i]]
            for k in range(n_classes):
                m[k] = dpestim_exp(m[k] - top)
            total = 0.0
            for k in range(n_classes):
                total += m[k]
            loss += log(total)
            total = 1.0 / total
            for k in range(n_classes):
                m[k] *= total
            m[codes[i]] -= 1.0
    return loss
