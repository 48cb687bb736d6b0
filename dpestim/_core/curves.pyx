"""Curves of boosting between two passes: what noisy sums of bins say of the scores of a term, under smooth priors.

All of it is arithmetic on public numbers.
"""

from libc.math cimport sqrt
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free


cdef extern from "curves.h" nogil:
    const int DPESTIM_PRIORS
    void dpestim_factor(Py_ssize_t n, const double* covariance, const double* heads, const double* priors, double* low,
                        double* logs)
    void dpestim_solve(Py_ssize_t n, const double* low, const double* priors, const double* z, double* found,
                       double* misfit)
    void dpestim_add_times(Py_ssize_t n, double by, const double* values, double* out)
    double dpestim_secant(double before, double after)
    void dpestim_chances(Py_ssize_t n, const double* likelihoods, const double* common, double* out)
    void dpestim_common(Py_ssize_t m, Py_ssize_t n, const double* likely, double pseudo, const double* known,
                        double* out)


PRIORS = DPESTIM_PRIORS  # variances that are taken together

cdef enum:
    APART = 8  # entries of a line of the cache


cdef inline double* _aligned(double* held) noexcept:
    """Return the first entry from here on at which a line of the cache starts: no vector then lies in two of them."""
    return held + (8 * APART - <size_t>held % (8 * APART)) % (8 * APART) // 8


def solve(
    const double[:, ::1] covariances,  # IN   K, of bins
    const double[::1] heads,           # IN   h, of each bin
    const double[::1] priors,          # IN   (PRIORS) prior variances p
    const double[:, ::1] seen,         # IN   z, several of them
    double[:, :, ::1] found,           # OUT  p (I + p h K h)^-1 z, of shape (len(seen), n_bins, PRIORS)
    double[:, ::1] misfit,             # INOUT  z' (I + p h K h)^-1 z is added, of shape (len(seen), PRIORS)
    double[::1] logs,                  # INOUT  the logarithm of the determinant of I + p h K h is added
):
    """Solve for what was seen of bins under each of several prior variances."""
    cdef Py_ssize_t n = heads.shape[0], m = seen.shape[0], i
    if covariances.shape[0] != n or covariances.shape[1] != n or seen.shape[1] != n or found.shape[1] != n:
        raise ValueError("covariances, heads and what was seen must be of the same bins")
    if (priors.shape[0] != DPESTIM_PRIORS or found.shape[2] != DPESTIM_PRIORS or misfit.shape[1] != DPESTIM_PRIORS
            or logs.shape[0] != DPESTIM_PRIORS or found.shape[0] != m or misfit.shape[0] != m):
        raise ValueError("priors and what is returned must have an entry for each lane")
    if not n:
        return
    cdef double* held = <double*>calloc(n * (n + 1) // 2 * DPESTIM_PRIORS + APART, sizeof(double))
    if held == NULL:
        raise MemoryError()
    cdef double* low = _aligned(held)
    with nogil:
        dpestim_factor(n, &covariances[0, 0], &heads[0], &priors[0], low, &logs[0])
        for i in range(m):
            dpestim_solve(n, low, &priors[0], &seen[i, 0], &found[i, 0, 0], &misfit[i, 0])
    free(held)


def learn(
    const double[:, ::1] between,      # IN   covariances of bins and places, of shape (n_bins, n_places)
    const double[:, ::1] covariances,  # IN   of bins
    const int64_t[::1] bins,           # IN   the bin of each place
    const double[::1] shares,          # IN   the part of the rows of its bin that a place has
    const double[::1] counted,         # IN   rows of each bin, about
    const double[::1] priors,          # IN   (PRIORS) prior variances; those that are 0 are none
    const double[::1] usual,           # IN   (n_priors) how common each is, by itself
    double pseudo,                     # IN   of how many terms that is known
    const double[:, ::1] sums,         # IN   of residuals, of shape (n_bins, n_outputs)
    const double[:, ::1] offset,       # IN   what makes scores logits, of bins; None: slopes are known
    const double[:, ::1] before,       # IN   the scores of bins that sums were taken at
    double[:, ::1] slopes,             # INOUT  how fast sums fall, at first and at last
    double[:, ::1] mean,               # INOUT  the average of what was measured
    double[:, ::1] slope,              # INOUT  the average of slopes
    double[:, ::1] likelihoods,        # INOUT  logarithms, of all terms that tell which priors are common
    Py_ssize_t own,                    # IN   the row there of this term
    int turns,                         # IN   steps by the secant
    bint first,                        # IN   whether nothing was measured before
    double part,                       # IN   the weight of these sums in the averages
    double noisy,                      # IN   the standard deviation of the noise of the average
    double varies,                     # IN   the sampling variance of a residual
    double trust,                      # IN   what logarithms of likelihoods are multiplied by
    double most,                       # IN   the largest score
    double[:, ::1] heads,              # OUT  h of each output and bin
    double[:, ::1] errors,             # OUT  standard deviations of the average, likewise
    double[::1] common,                # OUT  (n_priors) how common each prior is
    double[:, ::1] scores,             # OUT  of places, of shape (n_places, n_outputs)
    double[:, ::1] level,              # OUT  of bins
):
    """Take sums into the averages, and learn the curve anew, as often as slopes follow from it."""
    cdef Py_ssize_t n = sums.shape[0], k = sums.shape[1], places = bins.shape[0], m = likelihoods.shape[0]
    cdef Py_ssize_t q = usual.shape[0], b, j, l, i, lanes = DPESTIM_PRIORS
    cdef int turn
    cdef double along, total, at
    if offset is not None and (offset.shape[0] != n or offset.shape[1] != k):
        raise ValueError("offset must have an entry for each sum")
    if (before.shape[0] != n or slopes.shape[0] != n or mean.shape[0] != n or slope.shape[0] != n
            or level.shape[0] != n or before.shape[1] != k or slopes.shape[1] != k or mean.shape[1] != k
            or slope.shape[1] != k or level.shape[1] != k):
        raise ValueError("what is known of bins must have an entry for each sum")
    if (between.shape[0] != n or between.shape[1] != places or covariances.shape[0] != n or covariances.shape[1] != n
            or shares.shape[0] != places or counted.shape[0] != n or scores.shape[0] != places or scores.shape[1] != k
            or heads.shape[0] != k or heads.shape[1] != n or errors.shape[0] != k or errors.shape[1] != n):
        raise ValueError("bins, places and outputs differ in number")
    if (priors.shape[0] != lanes or not 0 < q <= lanes or likelihoods.shape[1] != q or common.shape[0] != q
            or not 0 <= own < m):
        raise ValueError("priors differ in number, or the term is none of those that tell of them")
    for i in range(places):
        if not 0 <= bins[i] < n:
            raise ValueError("a place is in no bin")
    if not n or not k:
        return
    cdef Py_ssize_t triangle = n * (n + 1) // 2 * lanes, size = n * lanes
    cdef double* held = <double*>calloc(triangle + k * size + n + 3 * lanes + m * q + places + 2 * n * k + APART,
                                        sizeof(double))
    if held == NULL:
        raise MemoryError()
    cdef double* low = _aligned(held)
    cdef double* found = low + triangle
    cdef double* seen = found + k * size
    cdef double* misfit = seen + n
    cdef double* logs = misfit + lanes
    cdef double* chances = logs + lanes
    cdef double* likely = chances + lanes
    cdef double* learned = likely + m * q
    cdef double* old = learned + places  # averages before these sums: means, then slopes
    with nogil:
        for b in range(n):
            for j in range(k):
                old[b * k + j], old[(n + b) * k + j] = mean[b, j], slope[b, j]
                level[b, j] = before[b, j]
        for i in range(m):
            dpestim_chances(q, &likelihoods[i, 0], NULL, likely + i * q)
        for turn in range(turns):
            for l in range(2 * lanes):
                misfit[l] = 0.0
            for j in range(k):
                for b in range(n):
                    if offset is not None and (turn or not first):
                        along = counted[b] * dpestim_secant(offset[b, j] + before[b, j], offset[b, j] + level[b, j])
                        # (half way: steps do not swing to and fro)
                        slopes[b, j] = sqrt(slopes[b, j] * along) if turn else along
                    # (slopes of several rounds are averaged, as what they go with is)
                    at = old[(n + b) * k + j]
                    slope[b, j] = at + part * (slopes[b, j] - at)
                    at = old[b * k + j]
                    mean[b, j] = at + part * (sums[b, j] + slopes[b, j] * before[b, j] - at)
                    # the noise of the average, and that of rows: the variance of sums is in proportion to slopes
                    errors[j, b] = sqrt(noisy * noisy + varies * slope[b, j])
                    heads[j, b] = slope[b, j] / errors[j, b]
                    seen[b] = mean[b, j] / errors[j, b]
                dpestim_factor(n, &covariances[0, 0], &heads[j, 0], &priors[0], low, logs)
                dpestim_solve(n, low, &priors[0], seen, found + j * size, misfit)
            for l in range(q):
                likelihoods[own, l] = -trust * (misfit[l] + logs[l]) / 2
            dpestim_chances(q, &likelihoods[own, 0], NULL, likely + own * q)
            dpestim_common(m, q, likely, pseudo, &usual[0], &common[0])
            # the mean over priors, by how likely each is: the likeliest alone is too sure of itself
            dpestim_chances(q, &likelihoods[own, 0], &common[0], chances)
            for j in range(k):
                for i in range(places):
                    learned[i] = 0.0
                for b in range(n):
                    at = 0.0
                    for l in range(q):
                        at += chances[l] * found[j * size + b * lanes + l]
                    dpestim_add_times(places, heads[j, b] * at, &between[b, 0], learned)
                for i in range(places):
                    scores[i, j] = learned[i]
            for b in range(n):
                for j in range(k):
                    level[b, j] = 0.0
            for i in range(places):
                total = 0.0
                if k > 1:  # (what all classes have in common changes no probability, and nothing holds it back)
                    for j in range(k):
                        total += scores[i, j]
                    total /= k
                for j in range(k):
                    at = scores[i, j] - total
                    at = most if at > most else -most if at < -most else at
                    scores[i, j] = at
                    level[bins[i], j] += shares[i] * at
    free(held)

