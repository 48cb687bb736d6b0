"""Nearest probability vectors: in Euclidean distance, and in units of what the noise of each value is."""

import numpy as np

from dpestim.postprocessing.inputs import errors_of, estimates_of, number_for_each, root_of


def norm_sub(estimates, standard_errors=None):
    """Return the nearest point of the probability simplex, in Euclidean distance.

    That is max(f - tau, 0) with the one tau for which the sum is 1. O(d log d).

    Parameters
    ----------
    estimates : array-like of shape (d,)
    standard_errors : ignored

    Returns
    -------
    ndarray of shape (d,)
        At least 0, of sum 1. Frequent values lose tau, which grows with d: biased downwards for them.

    Examples
    --------
    >>> norm_sub([0.7, -0.1, 0.5]).round(6).tolist()
    [0.6, 0.0, 0.4]
    """
    f = estimates_of(estimates)
    with np.errstate(over="ignore"):  # (-inf is as far below the largest as any)
        f = f - f.max()  # changes nothing, and what is kept lies in (-1, 0], where 1 is not lost in rounding
        largest = np.sort(f)[::-1]
        excess = np.cumsum(largest) - 1.0
        n_kept = np.count_nonzero(largest * np.arange(1, f.size + 1) > excess)  # at least 1: 0 > -1
    return np.maximum(f - excess[n_kept - 1] / n_kept, 0.0)


def mle_apx(estimates, standard_errors=None, *, at_zero=None, slope=0.0):
    """Return the likeliest point of the probability simplex, for normal noise whose variance is a line in frequency.

    Minimises the sum of (f' - f)^2 / (at_zero + slope f'). On the values that stay positive that is
    f' = (f + u at_zero) / (1 - u slope), with 2 u - slope u^2 the same for all (one u where all have one slope), and
    what would be negative is 0. Of the two u with that value, the one is taken for which 1 - u slope has the sign of
    at_zero + slope f. With equal noise and no slope it is `norm_sub`. O(d) an evaluation of the sum, of which a root
    takes about twenty.

    Parameters
    ----------
    estimates : array-like of shape (d,)
    standard_errors : float or array-like of shape (d,), default=None
        Used where `at_zero` is not given; None is the same for all.
    at_zero : float or array-like of shape (d,), default=None
        The variance of the estimate of a value that nobody holds, up to a common factor: q (1 - q) in the source. None
        is the square of the standard errors. ``postprocess="mle_apx"`` takes it, and the slope, from the law.
    slope : float or array-like of shape (d,), default=0.0
        How the variance grows with the frequency, in the same units: (p - q)(1 - p - q) in the source. One so far
        below 0 that a variance would be negative at a frequency of 1 is raised to 0 there.

    Returns
    -------
    ndarray of shape (d,)
        At least 0, of sum 1.

    Notes
    -----
    The sum is a convex function wherever variances are positive, so that the conditions above suffice, whatever the
    estimates are. Variances of 0 may leave no such point (``[0.9, 0.9]`` without noise): then it is `norm_sub`.

    Examples
    --------
    >>> mle_apx([0.7, -0.1, 0.5], at_zero=0.2, slope=0.1).round(4).tolist()
    [0.5962, 0.0, 0.4038]
    """
    f = estimates_of(estimates)
    at_zero = errors_of(standard_errors, f) ** 2 if at_zero is None else number_for_each(at_zero, f, "at_zero")
    slope = number_for_each(slope, f, "slope", least=-np.inf)
    scale = max(np.max(at_zero), np.max(np.abs(slope)))
    if not np.isfinite(scale):
        raise ValueError("at_zero and slope must be finite")
    if scale == 0:
        return norm_sub(f)
    A, B = at_zero / scale, np.maximum(slope, -at_zero) / scale
    A, B = (each[:1] if (each == each[0]).all() else each for each in (A, B))
    own = A + B * f  # (A + B f')^2 (1 - B multiplier) is its square: below 0 where no reports could have given f
    steepest, below = B.max(), own < 0

    def at(multiplier):
        with np.errstate(all="ignore"):
            left = np.sqrt(np.maximum(1 - B * multiplier, 0.0))  # |1 - u slope|
            out = (f + multiplier / (1 + left) * A) / left
            if below.any():
                out = np.where(below, (np.abs(own) / left - A) / B, out)
        return np.maximum(np.where(left > 0, out, 0.0), 0.0)  # (at 0 the slope is negative, and the value long gone)

    high = 1 / steepest if steepest > 0 else np.inf
    found = root_of(lambda multiplier: at(multiplier).sum() - 1.0, -np.inf, high,
                    unit=1e-3 * max(1.0, np.abs(f).max()))
    if found is not None:
        out = at(found)
        return out / out.sum()
    if steepest <= 0:
        return norm_sub(f)
    # The root is as good as at the limit, where values of the steepest slope cost the same however much they get
    free = np.broadcast_to(steepest <= B, f.shape)
    out = np.where(free, 0.0, at(high * (1 - 1e-12)))
    weight = np.where(free, np.abs(own), 0.0)
    weight = weight / weight.max() if weight.max() > 0 else free.astype(np.float64)
    out += (1 - min(out.sum(), 1.0)) * weight / weight.sum()
    return out / out.sum()
