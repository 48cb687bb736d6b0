"""Rows of numbers become integers in floats: centred, scaled, clipped and rounded, each number by itself."""


def round_rows(
    const double[:, ::1] rows,   # IN   (n, d)
    const double[::1] centers,   # IN   (d)
    const double[::1] factors,   # IN   (d)
    double most,                 # IN   integers are clipped to -most and most, an integer below 2^51
    double[:, ::1] out,          # OUT  (n, at least d): nearest integers to (x - center) factor; -most for NaN
):
    """Write the integers of a block of rows; further columns of `out` are left as they are."""
    cdef Py_ssize_t i, j, n = rows.shape[0], d = rows.shape[1]
    cdef double value, magic = 6755399441055744.0  # 1.5 * 2^52: floats next to it are the integers
    if out.shape[0] != n or out.shape[1] < d or centers.shape[0] != d or factors.shape[0] != d:
        raise ValueError("arrays must have the same numbers of rows and columns")
    if not 0 <= most < 2251799813685248.0:
        raise ValueError("most must be below 2^51")
    with nogil:
        for i in range(n):
            for j in range(d):
                value = (rows[i, j] - centers[j]) * factors[j]
                value = value if value > -most else -most
                value = value if value < most else most
                out[i, j] = (value + magic) - magic
