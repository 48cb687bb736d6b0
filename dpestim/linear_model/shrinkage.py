"""From noisy moments to coefficients: no data, only what is published already."""


import numpy as np
from scipy.special import log_ndtr

from dpestim.records import record

#: The squared normal quantile of 95 %: by how much twice a log-likelihood may be below the largest.
_LIKELY = 2.7055
#: The variance of means of targets about the middle of their bounds, over their half range squared: how far a noisy
#: mean is drawn there. Chosen on seven tables, judged on seven others (`linear.md`).
_MEANS = 0.09


@record
class Solution:
    """Coefficients w and intercept b in scaled units."""

    w: np.ndarray
    b: float


@record
class Centred:
    """Noisy moments of centred columns and target: A w = b, where `penalty` was added to A."""

    A: np.ndarray
    b: np.ndarray
    mean: np.ndarray
    target: float
    penalty: np.ndarray
    #: the sum of squares of the centred target, and the number of rows, or what stands for it
    total: float
    n: float
    intercept: bool

    def noise_of(self, V, noise):
        """Return the variances of the noise of b and of A in each direction, a column of V.

        Centring adds that of the means, times what is subtracted.
        """
        d, along = len(self.b), np.square(V.T @ self.mean)
        own = noise["with_target"] + self.target**2 * noise["column"] + along * noise["target"]
        return own, noise["square"] + (d - 1) * noise["product"] + noise["column"] * (along.sum() + (d + 2) * along)

    @property
    def rows(self):
        """A without the penalty, which is no row."""
        return self.A - np.diag(self.penalty)

    def spread(self, w):
        """Return the variance of what coefficients w leave of the target, in [0, 1]."""
        left = self.total - 2 * self.b @ w + w @ self.rows @ w
        return min(max(left / max(1.0, self.n - len(w) - self.intercept), 0.0), 1.0)


def centred(moments, penalty, fit_intercept, columns=slice(None)):
    """Return centred moments of some columns of X."""
    sums, xy, gram = moments.columns[columns], moments.with_target[columns], moments.gram[columns][:, columns]
    # (0 where it is unknown: no row or target is above 1, so there are at least as many as their squares add up to)
    n = max(1.0, moments.n_rows or max(np.trace(moments.gram), moments.target_square))
    mean, target = np.zeros(len(sums)), 0.0
    if fit_intercept:
        mean, target = np.clip(sums / n, -1, 1), min(max(moments.target / n, -1.0), 1.0)
    A = gram - n * np.outer(mean, mean) + np.diag(penalty[columns])
    return Centred(A, xy - n * target * mean, mean, target, penalty[columns],
                   moments.target_square - n * target * target, n, fit_intercept)


def shrunken(moments, penalty, fit_intercept):
    """Return the solution of A w = b where A and b are noisy, by Tikhonov's filter, of a strength that they tell.

    What is left of b, b - A w, has noise of variance s^2 + t^2 k in each direction if w has the variance t^2; t is the
    one under which b is likeliest. Directions whose eigenvalue is below the noise are left out gradually, and all of
    them where b does not stand out of its noise: then the answer is the private mean of the target. That is drawn to
    the middle of the bounds, by as much as its noise is larger than what means of targets are (`_MEANS`).

    Parameters
    ----------
    moments : Moments
    penalty : ndarray of shape (n_columns,)
        Public numbers that are added to the diagonal.
    fit_intercept : bool
    """
    at = centred(moments, penalty, fit_intercept)
    values, V = np.linalg.eigh(at.A)
    own, product = at.noise_of(V, moments.noise)
    values, z = expected(values, np.sqrt(product)), V.T @ at.b
    log, _ = strength(values, z, own, product, 1 - moments.noise["with_target"] / own.mean())
    target = at.target / (1.0 + moments.noise["target"] / (at.n**2 * _MEANS))
    if log is None:
        return Solution(np.zeros(len(z)), float(target))
    w = V @ (values / (values**2 + own * np.exp(-log) + product) * z)
    return Solution(w, float(target - at.mean @ w))


def expected(values, spread):
    """Return what eigenvalues that cannot be negative are expected to be, known with normal errors of this spread."""
    x = np.maximum(values / spread, -1e4)  # (rounding of a huge penalty; what follows would overflow)
    values = x * spread
    return np.maximum(values + spread * np.exp(-x * x / 2 - np.log(2 * np.pi) / 2 - log_ndtr(x)), 1e-12 * spread)


def strength(values, z, own, product, share):
    """Return ln t^2 where z is likeliest, and the largest that is likely enough.

    In direction i, z has the variance v = m^2 t^2 + s^2 + t^2 k: minus twice its log-likelihood is the sum of
    ln v + z^2 / v, minimised over ln t^2 on a grid and then by Newton's steps. ``share`` is the part of s^2 that is due
    to centring, of which the private mean, the answer for t = 0, has none: None, where z is no more likely than for
    t = 0, by more than half of it; and twice the share of directions are not counted, as Stein's estimator does not
    count two: few directions may hold all of w. The second ends an interval of one side and level 95 %.
    """
    least, pull = share / 2, min(2 * share, len(z) / 2)
    ratio = (values**2 + product) / own

    def parts(log):  # v, and its first derivative by ln t^2, which is its second too
        slope = np.exp(log) * (values**2 + product)
        return slope + own, slope

    # from where nothing is seen of w to variances of coefficients in scaled units
    low = -8.0 - np.log(ratio.max())
    logs = np.linspace(low, 12, 2 + int(4 * (12 - low)))[:, None]
    v, _ = parts(logs)
    costs = (np.log(v) + z**2 / v).sum(axis=1)
    place = int(np.argmin(costs - pull * logs[:, 0]))
    highest = float(logs[np.flatnonzero(costs <= costs.min() + _LIKELY)[-1], 0])
    if place == 0 or (np.log(own) + z**2 / own).sum() - costs.min() < least:
        return None, highest
    log = float(logs[place, 0])
    if place < len(logs) - 1:
        for _ in range(4):
            v, slope = parts(log)
            first = (slope / v * (1 - z**2 / v)).sum() - pull
            second = (slope / v * (1 - slope / v) - z**2 * slope / v**2 * (1 - 2 * slope / v)).sum()
            if second <= 0:
                break
            log = min(max(log - first / second, logs[place - 1, 0]), logs[place + 1, 0])
    return log, highest


def trimmed(moments, ridge, fit_intercept, constant=1.0):
    """Return the minimum of a noisy quadratic by spectral trimming (Zhang et al. 2012, section 5).

    ``ridge``, a number or one for each, is added to the diagonal; then directions of positive eigenvalues are kept, and
    coefficients are 0 in all others. The intercept is the coefficient of a column of this constant.
    """
    d = len(moments.columns)
    A, b = moments.gram, moments.with_target
    if fit_intercept:
        one = constant * moments.columns
        A = np.block([[A, one[:, None]], [one[None], np.array([[constant**2 * moments.n_rows]])]])
        b = np.r_[b, constant * moments.target]
    values, V = np.linalg.eigh(A + np.diag(np.broadcast_to(ridge, len(b))))
    keep = values > 1e-12 * max(1.0, np.abs(values).max())
    w = V[:, keep] @ ((V[:, keep].T @ b) / values[keep])
    return Solution(w[:d], float(constant * w[d]) if fit_intercept else 0.0)
