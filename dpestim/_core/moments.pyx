"""Rows of numbers become integers in floats: centred, scaled, clipped and rounded, each number by itself."""

cdef extern from "moments.h" nogil:
    void dpestim_round_rows(const double *x, Py_ssize_t n, Py_ssize_t d, const double *centers, const double *factors,
                            double most, Py_ssize_t width, double *out)
    void dpestim_products(const double *x, Py_ssize_t n, Py_ssize_t width, int bits, double *sums)

cdef extern from "wide.h" nogil:
    int dpestim_wide_bits()


def round_rows(
    const double[:, ::1] rows,   # IN   (n, d)
    const double[::1] centers,   # IN   (d)
    const double[::1] factors,   # IN   (d)
    double most,                 # IN   integers are clipped to -most and most, an integer below 2^51
    double[:, ::1] out,          # OUT  (n, at least d): nearest integers to (x - center) factor; -most for NaN
):
    """Write the integers of a block of rows; further columns of `out` are left as they are."""
    cdef Py_ssize_t n = rows.shape[0], d = rows.shape[1]
    if out.shape[0] != n or out.shape[1] < d or centers.shape[0] != d or factors.shape[0] != d:
        raise ValueError("arrays must have the same numbers of rows and columns")
    if not 0 <= most < 2251799813685248.0:
        raise ValueError("most must be below 2^51")
    if n and d:
        with nogil:
            dpestim_round_rows(&rows[0, 0], n, d, &centers[0], &factors[0], most, out.shape[1], &out[0, 0])


def add_products(
    const double[:, ::1] block,  # IN   (n, w) integers, w a multiple of 8, whose products add up to less than 2^53
    double[:, ::1] sums,         # IO   (w, w) at and above the diagonal: sums of products of every two columns
    int bits=-1,                 # IN   the width of vectors, or -1: as wide as the processor has them
):
    """Add the products of columns; what stands below the diagonal means nothing."""
    cdef Py_ssize_t n = block.shape[0], width = block.shape[1]
    cdef int widest = dpestim_wide_bits()
    if width % 8 or sums.shape[0] != width or sums.shape[1] != width:
        raise ValueError("sums must have a row and a column for each column, whose number is a multiple of 8")
    bits = widest if bits < 0 else min(bits, widest)
    if n and width:
        with nogil:
            dpestim_products(&block[0, 0], n, width, bits, &sums[0, 0])
