"""From noisy moments to coefficients and what their errors are: no data, only what is published already."""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

#: The squared normal quantile of 95 %: by how much twice a log-likelihood may be below the largest.
_LIKELY = 2.7055


@dataclass(frozen=True)
class Solution:
    """Coefficients w and intercept b in scaled units, and their covariance (None: not known)."""

    w: np.ndarray
    b: float
    covariance: np.ndarray | None


def shrunken(moments, penalty, fit_intercept):
    """Return the solution of A w = b where A and b are noisy, by Tikhonov's filter, of a strength that they tell.

    What is left of b, b - A w, has noise of variance s^2 + t^2 k in each direction if w has the variance t^2; t is the
    one under which b is likeliest. Directions whose eigenvalue is below the noise are left out gradually, and all of
    them where b does not stand out of its noise: then the answer is the private mean of the target.

    Parameters
    ----------
    moments : Moments
    penalty : ndarray of shape (n_columns,)
        Public numbers that are added to the diagonal.
    fit_intercept : bool
    """
    d, noise = len(moments.columns), moments.noise
    # (0 where it is unknown: no row or target is above 1, so there are at least as many as their squares add up to)
    n = max(1.0, moments.n_rows or max(np.trace(moments.gram), moments.target_square))
    mean, target = np.zeros(d), 0.0
    if fit_intercept:
        mean, target = np.clip(moments.columns / n, -1, 1), min(max(moments.target / n, -1.0), 1.0)
    A = moments.gram - n * np.outer(mean, mean) + np.diag(penalty)
    b = moments.with_target - n * target * mean
    values, V = np.linalg.eigh(A)
    # noise of b and of A in each direction: centring adds that of the means, times what is subtracted
    along = np.square(V.T @ mean)
    own = noise["with_target"] + target**2 * noise["column"] + along * noise["target"]
    product = noise["square"] + (d - 1) * noise["product"] + noise["column"] * (along.sum() + (d + 2) * along)
    values = _expected(values, np.sqrt(product))
    z = V.T @ b
    log, highest, derivative = _strength(values, z, own, product, 1 - noise["with_target"] / own.mean())
    if log is None:
        largest = np.maximum(np.exp(highest), (z**2 + own) / values**2)
        return Solution(np.zeros(d), float(target), (V * largest) @ V.T)
    strength = own * np.exp(-log) + product
    below = values**2 + strength
    filters = values / below
    w = V @ (filters * z)
    b0 = target - mean @ w if fit_intercept else 0.0
    # how w moves with b - A w (the strength moves too), and with A times what is left of b
    L1, L2 = (V * filters) @ V.T, (V / below) @ V.T
    L1 += np.outer(V @ (filters / below * z * own * np.exp(-log)), V @ derivative)
    covariance = _noise_covariance(L1, L2, w, b - A @ w, mean, b0, noise, fit_intercept)
    total = moments.target_square - n * target * target
    spread = (total - 2 * b @ w + w @ (A - np.diag(penalty)) @ w) / max(1.0, n - d - fit_intercept)
    free = (V * values) @ V.T - np.diag(penalty)  # (the penalty is no row)
    covariance += min(max(spread, 0.0), 1.0) * (L1 @ free @ L1.T)
    # what the filter took away, of coefficients of variance t^2, or as large as their direction alone allows
    bias = np.maximum(np.exp(log), (z**2 + own) / values**2) * np.square(strength / below)
    return Solution(w, float(b0), covariance + (V * bias) @ V.T)


def _expected(values, spread):
    """Return what eigenvalues that cannot be negative are expected to be, known with normal errors of this spread."""
    x = np.maximum(values / spread, -1e4)  # (rounding of a huge penalty; what follows would overflow)
    values = x * spread
    return np.maximum(values + spread * np.exp(-x * x / 2 - np.log(2 * np.pi) / 2 - log_ndtr(x)), 1e-12 * spread)


def _strength(values, z, own, product, share):
    """Return ln t^2 where z is likeliest, the largest that is likely enough, and how the first moves with z.

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
        return None, highest, None
    log, derivative = float(logs[place, 0]), np.zeros(len(z))
    if place < len(logs) - 1:
        for _ in range(4):
            v, slope = parts(log)
            first = (slope / v * (1 - z**2 / v)).sum() - pull
            second = (slope / v * (1 - slope / v) - z**2 * slope / v**2 * (1 - 2 * slope / v)).sum()
            if second <= 0:
                break
            log = min(max(log - first / second, logs[place - 1, 0]), logs[place + 1, 0])
        if second > 0:
            derivative = 2 * z * slope / v**2 / second
    return log, highest, derivative


def _noise_covariance(L1, L2, w, r, mean, b0, noise, fit_intercept):
    """Return the covariance of w that is due to the noise of the moments, to first order (`_linear.md`).

    dw = L1 (noise of b - noise of A w) + L2 (noise of A) r.
    """
    d = len(w)

    def cov(p, q):  # of E p and E q, E symmetric with independent noise
        return (noise["product"] * (p @ q * np.eye(d) + np.outer(q, p))
                + (noise["square"] - 2 * noise["product"]) * np.diag(p * q))

    cross = L1 @ cov(w, r) @ L2.T
    out = L1 @ cov(w, w) @ L1.T + L2 @ cov(r, r) @ L2.T - cross - cross.T + noise["with_target"] * L1 @ L1.T
    if fit_intercept:
        S = L1 @ (np.outer(mean, w) - b0 * np.eye(d)) - L2 @ (np.outer(mean, r) + mean @ r * np.eye(d))
        by_target, by_rows = L1 @ mean, b0 * L1 @ mean + mean @ r * L2 @ mean
        out += noise["column"] * S @ S.T + noise["target"] * np.outer(by_target, by_target)
        out += noise["rows"] * np.outer(by_rows, by_rows)
    return out


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
    return Solution(w[:d], float(constant * w[d]) if fit_intercept else 0.0, None)
