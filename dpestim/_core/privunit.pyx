"""PrivUnit over candidates that a public seed makes: rows to points of a ball, points to reports, reports to vectors."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef extern from "privunit.h" nogil:
    int DPESTIM_DENSE, DPESTIM_PU_LEAST
    size_t dpestim_pu_shared(size_t size) noexcept
    ctypedef struct dpestim_pu_law:
        size_t d, size, n
        const float *points
        uint64_t n_top, inside, outside
        float guess, step
        const double *next
        size_t ahead
    void dpestim_pu_encode(const double *x, const double *centre, double per_radius, size_t d, double *offset,
                           int32_t *out) noexcept
    void dpestim_pu_project(const dpestim_pu_law *law, uint64_t seed, float *y, float *work) noexcept
    uint64_t dpestim_pu_report(const dpestim_pu_law *law, const int32_t *code, uint64_t seed, const uint64_t *words,
                               float *memory, uint8_t *top) noexcept
    void dpestim_pu_rows(const dpestim_pu_law *law, const double *x, size_t n, const double *centre,
                         double per_radius, double *offset, int32_t *code, const uint64_t *seeds,
                         const uint64_t *words, float *memory, uint8_t *top, uint64_t *out) noexcept
    void dpestim_pu_lift(const dpestim_pu_law *law, uint64_t seed, uint64_t index, int32_t *work) noexcept
    void dpestim_pu_add(const int32_t *z, size_t d, int64_t *sums, int64_t *squares) noexcept

DENSE, LEAST = DPESTIM_DENSE, DPESTIM_PU_LEAST


def n_layers(Py_ssize_t size):
    """Return how many layers of signs, and as many transforms, make a frame of this size."""
    return 1 + dpestim_pu_shared(size)


cdef dpestim_pu_law _law(Py_ssize_t d, Py_ssize_t n, const float[:, ::1] points):
    cdef dpestim_pu_law law
    law.d = law.size = d
    law.n, law.points = n, NULL
    law.n_top = law.inside = law.outside = 0
    law.guess = law.step = 0
    law.next, law.ahead = NULL, 0
    if not 1 <= d <= 1 << 20 or n < 1:
        raise ValueError("there must be dimensions and candidates")
    if points.shape[0]:
        if d >= DPESTIM_DENSE or points.shape[0] != d or points.shape[1] != n:
            raise ValueError("points must have a row for each dimension and a column for each candidate")
        law.points = &points[0, 0]
        return law
    law.size = DPESTIM_PU_LEAST
    while law.size < <size_t>d:
        law.size *= 2
    if n % law.size:
        raise ValueError("candidates must come in whole frames")
    return law


cdef dpestim_pu_law _weighed(
    Py_ssize_t d, const float[:, ::1] points, uint64_t n_top, uint64_t inside, uint64_t outside, float guess,
    float step, float[::1] memory, uint8_t[::1] top,
):
    """Return the law of an answer, for which there is memory."""
    cdef dpestim_pu_law law = _law(d, top.shape[0], points)
    law.n_top, law.inside, law.outside = n_top, inside, outside
    law.guess, law.step = guess, step
    if not 1 <= n_top <= law.n or outside < 1 or memory.shape[0] < <Py_ssize_t>(2 * law.size + law.n):
        raise ValueError("n_top, weights or memory do not suit the candidates")
    if n_top * inside + (2 * law.n - n_top) * outside != 0:  # modulo 2^64
        raise ValueError("the weights must add up to 2^64")
    return law


def encode(
    const double[:, ::1] x,    # IN   rows in the user's units; NaN counts as the centre
    const double[::1] centre,  # IN
    double per_radius,         # IN   1 / radius
    double[::1] offset,        # memory, one a dimension
    int32_t[:, ::1] out,       # OUT  offsets from the centre, 2^30 a radius, no longer than that
):
    """Write every row as a point of the ball."""
    cdef Py_ssize_t n = x.shape[0], d = x.shape[1], i
    if centre.shape[0] != d or offset.shape[0] != d or out.shape[0] != n or out.shape[1] != d or d < 1:
        raise ValueError("x, centre, offset and out differ in length")
    with nogil:
        for i in range(n):
            dpestim_pu_encode(&x[i, 0], &centre[0], per_radius, d, &offset[0], &out[i, 0])


def products(
    const uint64_t[::1] seeds,   # IN   one a row
    const float[:, ::1] x,       # IN   directions
    const float[:, ::1] points,  # IN   (d, n) candidates before their rotation; (0, 0) for frames of signs
    float[::1] memory,           # memory, two a padded dimension
    float[:, ::1] out,           # OUT  (rows, n), products of candidates and direction up to one factor
):
    """Write what candidates are ranked by: exactly what `answer` looks at."""
    cdef Py_ssize_t n = x.shape[0], i, k
    cdef dpestim_pu_law law = _law(x.shape[1], out.shape[1], points)
    if seeds.shape[0] != n or out.shape[0] != n or memory.shape[0] < <Py_ssize_t>(2 * law.size):
        raise ValueError("seeds, x, memory and out differ in length")
    with nogil:
        for i in range(n):
            for k in range(x.shape[1]):
                memory[k] = x[i, k]
            dpestim_pu_project(&law, seeds[i], &out[i, 0], &memory[0])


def answer(
    const int32_t[:, ::1] codes,  # IN   points of the ball, as `encode` writes them
    const uint64_t[::1] seeds,    # IN   one a row
    const uint64_t[::1] words,    # IN   two a row: for the length, for the answer
    const float[:, ::1] points,   # IN   as in `products`
    uint64_t n_top,               # IN   n_top * inside + (2 n - n_top) * outside == 2^64, n_top <= n
    uint64_t inside,              # IN
    uint64_t outside,             # IN   at least 1
    float guess,                  # IN   about where the n_top best products begin, for speed only
    float step,                   # IN   ... and how far apart they are there
    float[::1] memory,            # memory, two a padded dimension and one a candidate
    uint8_t[::1] top,             # memory, one a candidate: this is how n is told
    uint64_t[:, ::1] out,         # OUT  (rows, 2): seed and index
):
    """Answer every record."""
    cdef Py_ssize_t m = codes.shape[0], i
    cdef dpestim_pu_law law = _weighed(codes.shape[1], points, n_top, inside, outside, guess, step, memory, top)
    if out.shape[1] != 2 or seeds.shape[0] != m or words.shape[0] != 2 * m or out.shape[0] != m:
        raise ValueError("codes, seeds, words and out differ in length")
    with nogil:
        for i in range(m):
            out[i, 0] = seeds[i]
            out[i, 1] = dpestim_pu_report(&law, &codes[i, 0], seeds[i], &words[2 * i], &memory[0], &top[0])


def answer_rows(
    const double[:, ::1] x,       # IN   rows in the user's units, as in `encode`
    const double[::1] centre,     # IN
    double per_radius,            # IN   1 / radius
    double[::1] offset,           # memory, one a dimension
    int32_t[::1] code,            # memory, one a dimension
    const uint64_t[::1] seeds,    # IN   one a row; this and all that follows as in `answer`
    const uint64_t[::1] words,    # IN
    const float[:, ::1] points,   # IN
    uint64_t n_top,               # IN
    uint64_t inside,              # IN
    uint64_t outside,             # IN
    float guess,                  # IN
    float step,                   # IN
    float[::1] memory,            # memory
    uint8_t[::1] top,             # memory
    uint64_t[:, ::1] out,         # OUT
):
    """Answer every row as `encode` and `answer` do one after the other, without going through memory twice."""
    cdef Py_ssize_t m = x.shape[0], d = x.shape[1]
    cdef dpestim_pu_law law = _weighed(d, points, n_top, inside, outside, guess, step, memory, top)
    if out.shape[1] != 2 or seeds.shape[0] != m or words.shape[0] != 2 * m or out.shape[0] != m or (
        centre.shape[0] != d or offset.shape[0] != d or code.shape[0] != d
    ):
        raise ValueError("x, centre, seeds, words, memory and out differ in length")
    if m == 0:
        return
    with nogil:
        dpestim_pu_rows(&law, &x[0, 0], m, &centre[0], per_radius, &offset[0], &code[0], &seeds[0], &words[0],
                        &memory[0], &top[0], &out[0, 0])


def lift(
    const uint64_t[:, ::1] reports,  # IN   (rows, 2): seed and index below 2 n
    const float[:, ::1] points,      # IN   as in `products`
    Py_ssize_t n,                    # IN   candidates without their negatives
    int32_t[::1] memory,             # memory, two a padded dimension
    int32_t[:, ::1] out,             # OUT  (rows, d): the candidates, in integers
):
    """Write the candidates that reports name."""
    cdef Py_ssize_t m = reports.shape[0], d = out.shape[1], i, k
    cdef bint known = True
    cdef dpestim_pu_law law = _law(d, n, points)
    if reports.shape[1] != 2 or out.shape[0] != m or memory.shape[0] < <Py_ssize_t>(2 * law.size):
        raise ValueError("reports, memory and out differ in length")
    with nogil:
        for i in range(m):
            known = reports[i, 1] < 2 * law.n
            if not known:
                break
            dpestim_pu_lift(&law, reports[i, 0], reports[i, 1], &memory[0])
            for k in range(d):
                out[i, k] = memory[k]
    if not known:
        raise ValueError("there are fewer candidates than a report says")


def count(
    const uint64_t[:, ::1] reports,  # IN   (rows, 2): seed and index below 2 n
    const float[:, ::1] points,      # IN   as in `products`
    Py_ssize_t n,                    # IN   candidates without their negatives
    int32_t[::1] memory,             # memory, two a padded dimension
    int64_t[::1] sums,               # IN and OUT  one a dimension
    int64_t[::1] squares,            # IN and OUT  one a dimension
):
    """Add the candidates that reports name, and the squares of their coordinates."""
    cdef Py_ssize_t m = reports.shape[0], d = sums.shape[0], i
    cdef bint known = True
    cdef dpestim_pu_law law = _law(d, n, points)
    if reports.shape[1] != 2 or squares.shape[0] != d or memory.shape[0] < <Py_ssize_t>(2 * law.size):
        raise ValueError("reports, memory, sums and squares differ in length")
    with nogil:
        for i in range(m):
            known = reports[i, 1] < 2 * law.n
            if not known:
                break
            dpestim_pu_lift(&law, reports[i, 0], reports[i, 1], &memory[0])
            dpestim_pu_add(&memory[0], d, &sums[0], &squares[0])
    if not known:
        raise ValueError("there are fewer candidates than a report says")
