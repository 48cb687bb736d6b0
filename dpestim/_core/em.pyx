"""Expectation maximisation on a piecewise-constant channel: O(bins + outputs) an iteration, by prefix sums.

An answer's law is a constant on all outputs and another constant inside a window that moves with the input. With S the
distribution function of the inputs and A its integral, the window part of an interval of outputs [u, v) has the
probability proportional to A(v) - A(u) - A(v - W) + A(u - W); A is quadratic between bin edges, so one pass of prefix
sums gives it everywhere. The other half of an iteration is the same with the roles of bins and outputs exchanged.
Derivation: local/estimates/distribution.md.
"""

from libc.stdint cimport int32_t, int64_t


cdef inline void integrate(const double *density, const double *widths, Py_ssize_t n, double *table) noexcept nogil:
    """Fill table with (integral of the integral, integral, half density, -) at every knot; the last density is 0."""
    cdef double first = 0.0, second = 0.0, w
    cdef Py_ssize_t i
    for i in range(n):
        w = widths[i]
        table[4 * i] = second
        table[4 * i + 1] = first
        table[4 * i + 2] = 0.5 * density[i]
        second += w * (first + 0.5 * w * density[i])
        first += w * density[i]
    table[4 * n] = second
    table[4 * n + 1] = first
    table[4 * n + 2] = 0.0


cdef inline double dot(const double *a, const double *b, Py_ssize_t n) noexcept nogil:
    """Return the scalar product, in four sums that need not wait for each other."""
    cdef double s = 0.0, t = 0.0, u = 0.0, v = 0.0
    cdef Py_ssize_t i
    for i in range(0, n - 3, 4):
        s += a[i] * b[i]
        t += a[i + 1] * b[i + 1]
        u += a[i + 2] * b[i + 2]
        v += a[i + 3] * b[i + 3]
    for i in range(n - n % 4, n):
        s += a[i] * b[i]
    return (s + t) + (u + v)


cdef inline double at(const double *table, int32_t knot, double past) noexcept nogil:
    """Return the second integral at a place `past` behind a knot."""
    cdef const double *t = table + 4 * <Py_ssize_t>knot
    return t[0] + past * (t[1] + past * t[2])


def steps(
    int64_t n_steps,                    # IN   iterations to do
    bint smooth,                        # IN   whether to smooth the densities after each
    const double[::1] counts,           # IN   (outputs), reports in each output
    double[::1] f,                      # I/O  (bins), the distribution, positive
    double[::1] p,                      # OUT  (outputs), probabilities of the outputs under the last f but one
    Py_ssize_t low_start,               # IN   bins low_start .. low_stop have a law of their own, outside the window
    Py_ssize_t low_stop,                # IN
    double gain,                        # IN   what a unit of the window adds
    const double[::1] bin_widths,       # IN   (bins)
    const double[::1] output_widths,    # IN   (axis), the first outputs lie side by side on the axis
    const double[::1] base_high,        # IN   (outputs), constant part of the law of the other bins
    const double[::1] base_low,         # IN   (outputs), the same of the low bins
    const int32_t[:, ::1] edge_knot,    # IN   (axis + 1, 2), for output edge u: the bin edge before u and before u - W
    const double[:, ::1] edge_past,     # IN   (axis + 1, 2), and how far behind it u lies
    const int32_t[:, ::1] bin_knot,     # IN   (bins + 1, 2), for bin edge t: the output edge before t + W and before t
    const double[:, ::1] bin_past,      # IN   (bins + 1, 2)
    const int32_t[::1] band_start,      # IN   (low bins + 1), the rest of the law of the low bins, row by row
    const int32_t[::1] band_output,     # IN   outputs
    const double[::1] band_weight,      # IN   their probabilities
    double[::1] scratch,                # OUT  6 * (outputs + bins) + 16 places
):
    """Do iterations of f <- f * (M (counts / (M' f))) / n, which keep the sum of f, and leave M' f in p.

    With n_steps = 0 only p is computed.
    """
    cdef Py_ssize_t n_bins = f.shape[0], n_out = counts.shape[0], n_axis = output_widths.shape[0], b, o, k
    cdef int64_t step
    cdef double high, low, before, here, added, total, rest_high, rest_low, n = 0.0, left, middle
    if (p.shape[0] != n_out or base_high.shape[0] != n_out or base_low.shape[0] != n_out or n_axis > n_out
            or bin_widths.shape[0] != n_bins or edge_knot.shape[0] != n_axis + 1 or bin_knot.shape[0] != n_bins + 1
            or edge_past.shape[0] != n_axis + 1 or bin_past.shape[0] != n_bins + 1
            or not 0 <= low_start <= low_stop <= n_bins or band_start.shape[0] != low_stop - low_start + 1
            or band_output.shape[0] != band_weight.shape[0] or scratch.shape[0] < 6 * (n_out + n_bins) + 16
            or n_bins == 0 or n_axis == 0):
        raise ValueError("arrays differ in length")
    cdef double *table = &scratch[0]
    cdef double *density = table + 4 * (n_out + n_bins) + 8
    cdef double *ratio = density + n_bins + 1
    with nogil:
        for o in range(n_out):
            n += counts[o]
        for step in range(n_steps + 1):
            # ---- p = M' f
            low = 0.0
            for b in range(n_bins):
                density[b] = f[b] / bin_widths[b]
            for b in range(low_start, low_stop):
                density[b] = 0.0
                low += f[b]
            integrate(density, &bin_widths[0], n_bins, table)
            high = table[4 * n_bins + 1]
            before = at(table, edge_knot[0, 0], edge_past[0, 0]) - at(table, edge_knot[0, 1], edge_past[0, 1])
            for o in range(n_axis):
                here = (at(table, edge_knot[o + 1, 0], edge_past[o + 1, 0])
                        - at(table, edge_knot[o + 1, 1], edge_past[o + 1, 1]))
                added = here - before
                before = here
                p[o] = base_high[o] * high + base_low[o] * low + gain * (added if added > 0.0 else 0.0)
            for o in range(n_axis, n_out):
                p[o] = base_high[o] * high + base_low[o] * low
            for b in range(low_start, low_stop):
                for k in range(band_start[b - low_start], band_start[b - low_start + 1]):
                    p[band_output[k]] += f[b] * band_weight[k]
            if step == n_steps:
                break
            # ---- f <- f * (M ratio) / n
            for o in range(n_out):
                ratio[o] = counts[o] / (p[o] if p[o] > 1e-300 else 1e-300)
            rest_high = dot(ratio, &base_high[0], n_out)
            rest_low = dot(ratio, &base_low[0], n_out) if low_stop > low_start else 0.0
            integrate(ratio, &output_widths[0], n_axis, table)
            before = at(table, bin_knot[0, 0], bin_past[0, 0]) - at(table, bin_knot[0, 1], bin_past[0, 1])
            for b in range(n_bins):
                here = (at(table, bin_knot[b + 1, 0], bin_past[b + 1, 0])
                        - at(table, bin_knot[b + 1, 1], bin_past[b + 1, 1]))
                added = here - before
                before = here
                if low_start <= b < low_stop:
                    added = rest_low
                    for k in range(band_start[b - low_start], band_start[b - low_start + 1]):
                        added += ratio[band_output[k]] * band_weight[k]
                else:
                    added = rest_high + gain * (added if added > 0.0 else 0.0) / bin_widths[b]
                f[b] *= added / n
            if smooth and n_bins > 1:
                for b in range(n_bins):
                    density[b] = f[b] / bin_widths[b]
                total = 0.0
                left = density[0]
                for b in range(n_bins):
                    if b == 0:
                        middle = (2.0 * density[0] + density[1]) / 3.0
                    elif b == n_bins - 1:
                        middle = (density[b - 1] + 2.0 * density[b]) / 3.0
                    else:
                        middle = 0.25 * density[b - 1] + 0.5 * density[b] + 0.25 * density[b + 1]
                    f[b] = middle * bin_widths[b]
                    total += f[b]
                for b in range(n_bins):
                    f[b] /= total


cdef inline void prefix(const double *x, Py_ssize_t n, double *sums) noexcept nogil:
    """Fill sums with the sums of the first 0, 1, ..., n of x, in four runs that need not wait for each other."""
    cdef double s = 0.0, t = 0.0, u = 0.0, v = 0.0, before
    cdef Py_ssize_t q = n // 4, i
    sums[0] = 0.0
    for i in range(q):
        s += x[i]
        t += x[q + i]
        u += x[2 * q + i]
        v += x[3 * q + i]
        sums[1 + i] = s
        sums[1 + q + i] = t
        sums[1 + 2 * q + i] = u
        sums[1 + 3 * q + i] = v
    for i in range(q):
        sums[1 + q + i] += s
    before = s + t
    for i in range(q):
        sums[1 + 2 * q + i] += before
    before += u
    for i in range(q):
        sums[1 + 3 * q + i] += before
    before += v
    for i in range(4 * q, n):
        before += x[i]
        sums[1 + i] = before


cdef inline double total_of(const double[::1] x, Py_ssize_t n) noexcept nogil:
    """Return the sum, in four sums that need not wait for each other."""
    cdef double s = 0.0, t = 0.0, u = 0.0, v = 0.0
    cdef Py_ssize_t i
    for i in range(0, n - 3, 4):
        s += x[i]
        t += x[i + 1]
        u += x[i + 2]
        v += x[i + 3]
    for i in range(n - n % 4, n):
        s += x[i]
    return (s + t) + (u + v)


def shifts(
    int64_t n_steps,             # IN   iterations to do
    bint smooth,                 # IN   whether to smooth after each
    const double[::1] counts,    # IN   (outputs), reports in each output
    double[::1] f,               # I/O  (bins), the distribution, positive
    double[::1] p,               # OUT  (outputs), probabilities of the outputs under the last f but one
    Py_ssize_t whole,            # IN   whole outputs in a window
    double full,                 # IN   what an output adds that lies in the window of all values of a bin
    double first,                # IN   what the first output adds, which lies in those of half of them
    double less,                 # IN   how much less than `full` the output `whole` further on adds
    double last,                 # IN   how much less the next one adds, which is the last to add anything
    const double[::1] base,      # IN   (outputs), constant part of the law
    double[::1] scratch,         # OUT  4 * (outputs + 2 * whole + 8) places
):
    """Do what `steps` does where bins are whole numbers of codes, and outputs as wide: all rows are shifts of one.

    One pass of first-order sums is enough then, and every other loop runs over neighbours.
    """
    cdef Py_ssize_t n_bins = f.shape[0], n_out = counts.shape[0], pad = whole + 2, i
    cdef Py_ssize_t size = n_out + 2 * pad + 2
    cdef int64_t step
    cdef double total, rest, n = 0.0, value
    if (p.shape[0] != n_out or base.shape[0] != n_out or n_bins + whole > n_out or whole < 0
            or scratch.shape[0] < 4 * (n_out + 2 * whole + 8)):
        raise ValueError("arrays differ in length")
    # zeros on both sides of f and of the ratios, and sums that are 0 before and constant behind
    cdef double *shares = &scratch[0]
    cdef double *sums = shares + size
    cdef double *ratios = sums + size
    cdef double *ratio_sums = ratios + size
    with nogil:
        for i in range(4 * size):
            scratch[i] = 0.0
        for i in range(n_out):
            n += counts[i]
        for step in range(n_steps + 1):
            for i in range(n_bins):
                shares[pad + i] = f[i]
            prefix(shares + pad, n_bins, sums + pad)
            total = sums[pad + n_bins]
            for i in range(pad + n_bins, size):
                sums[i] = total
            for i in range(n_out):
                value = (full * (sums[pad + i] - sums[pad + i - whole - 1]) + first * shares[pad + i]
                         - less * shares[pad + i - whole] - last * shares[pad + i - whole - 1])
                p[i] = base[i] * total + (value if value > 0.0 else 0.0)
            if step == n_steps:
                break
            for i in range(n_out):
                ratios[pad + i] = counts[i] / (p[i] if p[i] > 1e-300 else 1e-300)
            rest = dot(ratios + pad, &base[0], n_out)
            prefix(ratios + pad, n_out, ratio_sums + pad)
            for i in range(pad + n_out, size):
                ratio_sums[i] = ratio_sums[pad + n_out]
            for i in range(n_bins):
                value = (full * (ratio_sums[pad + i + whole + 2] - ratio_sums[pad + i + 1]) + first * ratios[pad + i]
                         - less * ratios[pad + i + whole] - last * ratios[pad + i + whole + 1])
                f[i] *= (rest + (value if value > 0.0 else 0.0)) / n
            if smooth and n_bins > 1:
                for i in range(n_bins):
                    shares[pad + i] = f[i]
                for i in range(1, n_bins - 1):
                    f[i] = 0.25 * shares[pad + i - 1] + 0.5 * shares[pad + i] + 0.25 * shares[pad + i + 1]
                f[0] = (2.0 * shares[pad] + shares[pad + 1]) / 3.0
                f[n_bins - 1] = (shares[pad + n_bins - 2] + 2.0 * shares[pad + n_bins - 1]) / 3.0
                total = 1.0 / total_of(f, n_bins)
                for i in range(n_bins):
                    f[i] *= total
