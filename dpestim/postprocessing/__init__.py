"""Post-processing of frequency estimates: pure functions of what was already released, so they cost no privacy.

Each takes an array of unbiased estimates of one column (which may be negative and need not sum to 1) and the array of
their standard errors, and returns an array of the same length. All but `norm` trade bias for a smaller error.

The methods and their names are those of Wang, Lopuhaä-Zwakenberg, Li, Skoric and Li, "Locally differentially private
frequency estimation with consistency", NDSS 2020, section 4.
"""

import numpy as np
from scipy.special import ndtri

__all__ = ["base_cut", "base_pos", "norm", "norm_cut", "norm_mul", "norm_sub"]


def base_pos(estimates, standard_errors=None):
    """Raise negative estimates to 0.

    >>> base_pos([0.7, -0.1, 0.5]).tolist()
    [0.7, 0.0, 0.5]
    """
    return np.maximum(_checked(estimates), 0.0)


def base_cut(estimates, standard_errors, alpha=0.05):
    """Zero every estimate that noise alone could have made: those below Phi^-1(1 - alpha / d) standard errors.

    >>> base_cut([0.7, 0.01, 0.5], [0.01, 0.01, 0.01]).tolist()
    [0.7, 0.0, 0.5]
    """
    f = _checked(estimates)
    threshold = ndtri(1 - alpha / f.size) * np.broadcast_to(standard_errors, f.shape)
    return np.where(f >= threshold, f, 0.0)


def norm(estimates, standard_errors=None):
    """Add the same number to every estimate so that they sum to 1; stays unbiased, and may stay negative.

    >>> norm([0.5, -0.1, 0.3]).round(6).tolist()
    [0.6, 0.0, 0.4]
    """
    f = _checked(estimates)
    return f + (1.0 - f.sum()) / f.size


def norm_mul(estimates, standard_errors=None):
    """Raise negative estimates to 0 and divide by the sum; uniform where nothing is positive.

    >>> norm_mul([0.6, -0.1, 0.6]).tolist()
    [0.5, 0.0, 0.5]
    """
    f = base_pos(estimates)
    total = f.sum()
    return f / total if total > 0 else np.full(f.size, 1.0 / f.size)


def norm_cut(estimates, standard_errors=None):
    """Keep the largest positive estimates while their sum is at most 1 and zero the rest.

    >>> norm_cut([0.6, 0.2, 0.3]).tolist()
    [0.6, 0.0, 0.3]
    """
    f = base_pos(estimates)
    order = np.argsort(-f, kind="stable")
    kept = np.cumsum(f[order]) <= 1.0
    kept[0] = True  # one estimate above 1 is still the best answer there is
    out = np.zeros_like(f)
    out[order[kept]] = np.minimum(f[order[kept]], 1.0)
    return out


def norm_sub(estimates, standard_errors=None):
    """Return the nearest point of the probability simplex, in Euclidean distance, in O(d log d).

    >>> norm_sub([0.7, -0.1, 0.5]).round(6).tolist()
    [0.6, 0.0, 0.4]
    """
    f = _checked(estimates)
    largest = np.sort(f)[::-1]
    excess = np.cumsum(largest) - 1.0
    n_kept = np.count_nonzero(largest * np.arange(1, f.size + 1) > excess)
    return np.maximum(f - excess[n_kept - 1] / n_kept, 0.0)


def _checked(estimates):
    f = np.asarray(estimates, dtype=np.float64)
    if f.ndim != 1 or f.size == 0 or not np.isfinite(f).all():
        raise ValueError("estimates must be a non-empty one-dimensional array of finite numbers")
    return f
