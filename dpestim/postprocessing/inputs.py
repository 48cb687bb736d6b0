"""What the functions of this package check of their arguments, and the one root that two of them look for."""

import numpy as np
from scipy.optimize import brentq

#: Steps, each twice the one before, or half way to a limit, after which a root is not looked for any more.
_DOUBLED, _HALVED = 60, 40


def _numbers(values):
    """Return real numbers as an array of float64, and what is none as a NaN: messages of others show values."""
    try:
        out = np.asarray(values)
        return out.astype(np.float64) if out.dtype.kind in "biufO" else np.full(1, np.nan)
    except Exception:
        return np.full(1, np.nan)


def estimates_of(estimates):
    """Return estimates as an array, or raise ValueError."""
    f = _numbers(estimates)
    if f.ndim != 1 or f.size == 0 or not np.isfinite(f).all():
        raise ValueError("estimates must be a non-empty one-dimensional array of finite numbers")
    return f


def number_for_each(numbers, f, name, *, least=0.0, most=np.inf):
    """Return a number, or one for each estimate, as an array of the estimates' shape, or raise ValueError."""
    try:
        out = np.broadcast_to(_numbers(numbers), f.shape)
    except ValueError:
        out = np.full(1, np.nan)
    if not ((out >= least) & (out <= most)).all():  # (also where there is a NaN)
        raise ValueError(f"{name} must be a number, or one for each of the estimates, "
                         + (f"of at least {least:g}" if most == np.inf else f"in [{least:g}, {most:g}]"))
    return out


def errors_of(standard_errors, f):
    """Return finite standard errors as an array of the estimates' shape, or raise ValueError; None is 1 for all."""
    return number_for_each(1.0 if standard_errors is None else standard_errors, f, "standard_errors",
                           most=np.finfo(np.float64).max)


def root_of(rising, low=-np.inf, high=np.inf, unit=1.0):
    """Return where a rising function is 0, between limits around 0 that it is never asked for, or None."""
    value = rising(0.0)
    if value == 0:
        return 0.0
    near, limit = 0.0, low if value > 0 else high
    for k in range(1, _HALVED if np.isfinite(limit) else _DOUBLED):
        far = limit * (1 - 0.5**k) if np.isfinite(limit) else np.copysign(unit * 2.0**k, limit)
        there = rising(far)
        if there == 0:
            return far
        if (there > 0) != (value > 0):
            return brentq(rising, min(near, far), max(near, far), xtol=1e-300, rtol=1e-15, maxiter=500)
        near = far
    return None
