"""AdaSSP: moments and their smallest eigenvalue, which says how large a ridge the noise needs (`linear.md`)."""

import math

import numpy as np

from dpestim.statistics.moment_noise import _ROOT_2, _UNIT, MomentRelease, Weights
from dpestim.statistics.row_moments import REACH

#: By what part of a row's squared norm the integer that stands for the eigenvalue may be off: 2^-11.
_OFF = 11
#: The probability with which the published ridge may be too small.
_RARELY = 0.05


class AdaptiveRelease:
    """A release of A = sum of z z^T, b = sum of z y and the smallest eigenvalue of A, z = (x, constant).

    Raises ValueError where epsilon and delta are too small for integers to hold the noise.

    Parameters
    ----------
    rows : RowMap
    epsilon, delta : Fraction
    replaces : bool
    """

    def __init__(self, rows, epsilon, delta, replaces):
        self._delta, self._constant = delta, rows.most if rows.fit_intercept else 0
        self.size = size = rows.n_columns + rows.fit_intercept
        own, self._norm = self._constant, REACH**2 + self._constant**2
        norm, moved = self._norm, self._norm + (self._norm >> _OFF - 1)
        times = 2 if replaces else 1
        # (weights of equal parts: the first is sqrt(2) times as far from another as from nothing, b twice)
        with_target = math.isqrt(_UNIT * _UNIT * norm // (REACH * REACH * times))
        weights = Weights(_UNIT, _ROOT_2, _ROOT_2 * own, with_target, with_target * own, 0,
                          0 if replaces else _UNIT * own * own,
                          times * _UNIT**2 * norm**2 + (times * with_target * REACH) ** 2 * norm
                          + (_ROOT_2 if replaces else _UNIT) ** 2 * moved**2)
        self._least = _ROOT_2 if replaces else _UNIT
        l1 = times * (_UNIT * norm - (-_ROOT_2 * (size - 1) * norm // 2)
                      + with_target * REACH * (math.isqrt(size * norm) + 1)) + self._least * moved
        self._release = MomentRelease(epsilon, delta, weights, rows.n_columns, replaces, l1, (self._least,))
        self.law, self.weights = self._release.law, weights

    @property
    def constant(self):
        """The column of the intercept, in units of the longest row."""
        return self._constant / REACH

    def draw(self, summary, source, known_rows):
        """Return noisy moments, and the ridge that they need."""
        least = least_eigenvalue(self.matrix(summary), self._norm >> _OFF)
        moments = self._release.draw(summary, source, known_rows, (least,))
        spread = self._release.deviation
        own = spread * self.weights.square / self._least
        known = max(0.0, moments.more[0] / REACH**2 - own * math.sqrt(math.log(6 / self._delta)))
        return moments, max(0.0, spread * math.sqrt(self.size * math.log(2 * self.size**2 / _RARELY)) - known)

    def matrix(self, summary):
        """Return A, exact."""
        d, own = summary.domain.n_columns, self._constant
        full = np.zeros((d + 2, d + 2), dtype=object)
        full[np.triu_indices(d + 2)] = summary.totals
        full += np.triu(full, 1).T
        full[d] *= own
        full[:, d] *= own
        return full[: self.size, : self.size]


def least_eigenvalue(A, off):
    """Return an integer at most `off` away from the smallest eigenvalue of A, which has integers and none below 0."""
    values, V = np.linalg.eigh(A.astype(float))
    return max(0, round(values[0])) if _distance(A.astype(float), values, V) + 1 < off else _bisected(A, off)


def _distance(A, values, V):
    """Return how far the smallest eigenvalue of A, exact, may be from that of these: `linear.md`, (2)."""
    k, length, norm = len(A), np.linalg.norm(V), np.linalg.norm(A)
    ulp = (k + 2) * 2.0**-53
    AV = A @ V
    defect = np.linalg.norm(V.T @ V - np.eye(k)) + ulp * length**2
    rest = np.linalg.norm(V.T @ AV - np.diag(values)) + ulp * length * (np.linalg.norm(AV) + 2 * norm * length)
    return 2 * (rest + defect * abs(values[0])) / (1 - defect) if defect < 0.5 else math.inf


def _bisected(A, off):
    low, high = 0, int(A.trace()) // len(A) + 1
    while high - low > off:
        middle = (low + high) // 2
        if _is_positive(A - middle * np.eye(len(A), dtype=object)):
            low = middle
        else:
            high = middle
    return low


def _is_positive(A):
    """Tell whether a matrix of integers is positive definite: all leading minors are positive (Bareiss)."""
    M, before = A.copy(), 1
    for k in range(len(M)):
        pivot = int(M[k, k])
        if pivot <= 0:
            return False
        rest = M[k + 1 :, k + 1 :]
        M[k + 1 :, k + 1 :] = (rest * pivot - np.outer(M[k + 1 :, k], M[k, k + 1 :])) // before
        before = pivot
    return True
