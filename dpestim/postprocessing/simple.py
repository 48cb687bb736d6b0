"""Methods without a model: cut off what is negative or may be noise, and add or multiply until the sum is 1."""

import numpy as np
from scipy.special import ndtri

from dpestim.postprocessing.inputs import errors_of, estimates_of


def base_pos(estimates, standard_errors=None):
    """Raise negative estimates to 0.

    Parameters
    ----------
    estimates : array-like of shape (d,)
    standard_errors : ignored

    Returns
    -------
    ndarray of shape (d,)
        At least 0; the sum is at least that of the estimates. Biased upwards: for single values the error is at most
        that of the estimates, but do not add up many, as their biases add up, too. Sums over 500 of 1,000 values had 7
        times the error of unbiased estimates (20,000 users, OUE, epsilon 1); take `norm_sub` or `post_pos` for sums.

    Examples
    --------
    >>> base_pos([0.7, -0.1, 0.5]).tolist()
    [0.7, 0.0, 0.5]
    """
    return np.maximum(estimates_of(estimates), 0.0)


def post_pos(estimates, standard_errors=None, *, sets=None):
    """Raise negative *answers* to 0: estimates stay as they are, and sums of them over sets are what is cut off.

    Parameters
    ----------
    estimates : array-like of shape (d,)
    standard_errors : ignored
    sets : list of array-like of int, default=None
        The positions of each set that is asked for, each position at most once in a set. None asks for every single
        value, for which this is `base_pos`.

    Returns
    -------
    ndarray of shape (len(sets),), or (d,)
        O(d + total size of the sets). Biased upwards where the true share of a set is near 0, and there alone.

    Raises
    ------
    ValueError
        For positions that no estimate has.

    Examples
    --------
    >>> post_pos([0.7, -0.1, 0.05], sets=[[0, 1], [1, 2]]).round(6).tolist()
    [0.6, 0.0]
    """
    f = estimates_of(estimates)
    if sets is None:
        return np.maximum(f, 0.0)
    chosen = [np.asarray(one) for one in sets]
    for one in chosen:
        if one.ndim != 1 or (one.size and (one.dtype.kind not in "iu" or one.min() < 0 or one.max() >= f.size
                                           or np.unique(one).size < one.size)):
            raise ValueError(f"sets must be lists of different positions from 0 to {f.size - 1}")
    return np.array([max(float(f[one.astype(np.intp)].sum()), 0.0) for one in chosen])


def base_cut(estimates, standard_errors, alpha=0.05):
    """Zero every estimate that noise alone could have made: those below Phi^-1(1 - alpha / d) standard errors.

    Parameters
    ----------
    estimates : array-like of shape (d,)
    standard_errors : float or array-like of shape (d,)
    alpha : float, default=0.05
        In (0, 1): about how often any of d values that nobody holds is kept.

    Returns
    -------
    ndarray of shape (d,)
        At least 0. Biased downwards for rare values, which it mostly zeroes.

    Examples
    --------
    >>> base_cut([0.7, 0.01, 0.5], [0.01, 0.01, 0.01]).tolist()
    [0.7, 0.0, 0.5]
    """
    f = estimates_of(estimates)
    if not 0 < alpha < 1:
        raise ValueError("alpha must lie strictly between 0 and 1")
    threshold = np.maximum(-ndtri(alpha / f.size), 0.0) * errors_of(standard_errors, f)  # (of one value it may be < 0)
    return np.where(f >= threshold, f, 0.0)


def norm(estimates, standard_errors=None):
    """Add the same number to every estimate so that they sum to 1; stays unbiased, and may stay negative.

    Parameters
    ----------
    estimates : array-like of shape (d,)
    standard_errors : ignored

    Returns
    -------
    ndarray of shape (d,)

    Examples
    --------
    >>> norm([0.5, -0.1, 0.3]).round(6).tolist()
    [0.6, 0.0, 0.4]
    """
    f = estimates_of(estimates)
    return f + (1.0 - f.sum()) / f.size


def norm_mul(estimates, standard_errors=None):
    """Raise negative estimates to 0 and divide by the sum; uniform where nothing is positive.

    Parameters
    ----------
    estimates : array-like of shape (d,)
    standard_errors : ignored

    Returns
    -------
    ndarray of shape (d,)
        At least 0, of sum 1. Biased towards the uniform distribution.

    Examples
    --------
    >>> norm_mul([0.6, -0.1, 0.6]).tolist()
    [0.5, 0.0, 0.5]
    """
    f = base_pos(estimates)
    total = f.sum()
    return f / total if total > 0 else np.full(f.size, 1.0 / f.size)


def norm_cut(estimates, standard_errors=None):
    """Keep the largest positive estimates while their sum is at most 1 and zero the rest.

    Parameters
    ----------
    estimates : array-like of shape (d,)
    standard_errors : ignored

    Returns
    -------
    ndarray of shape (d,)
        At least 0, of a sum of at most 1, which is less where fewer are positive; all 0 where none is. Biased downwards
        for all but the largest. O(d log d).

    Examples
    --------
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
