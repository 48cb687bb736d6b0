"""What estimates say of how frequencies are spread, used on each of them: posterior means under a fitted prior.

An estimate is a frequency x plus normal noise, and frequencies are drawn from a prior whose parameter the estimates
choose. The power law has density proportional to x^-s on [low, 1]. In units t = estimate / sigma and u = x / sigma it
is u^-s on [low / sigma, 1 / sigma]: one table over t for each of a few levels of low / sigma serves all values.
"""

from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar

from dpestim.postprocessing.inputs import errors_of, estimates_of, number_for_each
from dpestim.postprocessing.simplex import norm_sub

#: Estimates beyond so many standard errors have E[u | t] = t - s / t, up to terms of s^2 / t^3.
_FAR = 12.0
#: Places t of a table for each standard error; places u below 1 (geometric) and, for each standard error, above.
_PER_ERROR, _BELOW, _ABOVE = 32, 96, 8
#: What has less noise than this is a number without noise: its square must not underflow.
_LEAST_ERROR = 1e-30
#: Levels of low / sigma, where standard errors differ; estimates from which a prior is fitted, spread over all.
_LEVELS, _FITTED = 8, 1024
#: Exponents of the power law, and of ranks in Zipf's law.
_EXPONENTS, _RANKS = (0.0, 5.0), (0.1, 4.0)
#: Ranks whose powers are added one by one; of the others an integral is the sum, up to 1e-7 of it.
_RANKS_ADDED = 1024


def calibrate(estimates, standard_errors, *, family="power_law", exponent=None, smallest=None):
    """Return the mean of each frequency given its estimate, under a prior of a family that all estimates fit.

    Parameters
    ----------
    estimates : array-like of shape (d,)
    standard_errors : float or array-like of shape (d,)
    family : {"power_law", "zipf", "normal"}, default="power_law"
        How frequencies of different values are spread. "normal": mean and variance are those of the estimates, less
        what the noise adds; what comes out may be negative. "power_law": a density proportional to x^-s on
        [smallest, 1]. "zipf": the frequency of the value of rank r is proportional to r^-a, whatever value that is:
        a power law with s = 1 + 1 / a whose smallest frequency is the one of rank d.
    exponent : float, default=None
        The exponent, s in [0, 5] or a in [0.1, 4]; None takes the one under which the estimates are likeliest. Not for
        "normal".
    smallest : float, default=None
        For "power_law": the smallest frequency there may be, in (0, 1): 1 / n for n users, which is what
        ``postprocess=`` says. None is the square of the smallest standard error, which is of that size, at most
        1 / (2 d).

    Returns
    -------
    ndarray of shape (d,)
        They need not sum to 1 (`power_ns` does). Biased: rare values are drawn to where the prior says most are.
        O(d log d).

    References
    ----------
    J. Jia, N. Z. Gong, "Calibrate: frequency estimation and heavy hitter identification with local differential privacy
    via incorporating prior knowledge", INFOCOM 2019.

    Examples
    --------
    >>> calibrate([0.5, 0.3, 0.01, -0.02, 0.0, 0.02], 0.02).round(2).tolist()
    [0.5, 0.3, 0.01, 0.0, 0.01, 0.01]
    >>> calibrate([0.2, 0.0], 0.1, family="normal").round(6).tolist()
    [0.1, 0.1]
    """
    f = estimates_of(estimates)
    errors = errors_of(standard_errors, f)
    if family not in ("power_law", "zipf", "normal"):
        raise ValueError("family must be 'power_law', 'zipf' or 'normal'")
    if family != "power_law" and smallest is not None:
        raise ValueError("smallest is for family='power_law'")
    if family == "normal":
        if exponent is not None:
            raise ValueError("exponent is for the families 'power_law' and 'zipf'")
        spread = max(f.var() - np.square(errors).mean(), 0.0)
        both = spread + np.square(errors)
        return f.mean() + np.divide(spread, both, out=np.ones_like(f), where=both > 0) * (f - f.mean())
    if not errors.any():
        return np.clip(f, 0.0, 1.0)
    errors = np.maximum(errors, max(1e-6 * errors.max(), _LEAST_ERROR))
    if family == "zipf":
        low, high = _RANKS

        def law(a):
            return 1 + 1 / a, f.size**-a / _sum_of_powers(f.size, a)
    else:
        low, high = _EXPONENTS
        default = min(errors.min() ** 2, 0.5 / f.size)
        least = default if smallest is None else float(number_for_each(smallest, f[:1], "smallest", most=1.0)[0])
        if not 0 < least < 1:
            raise ValueError("smallest must lie strictly between 0 and 1")

        def law(s):
            return s, least
    if exponent is not None:
        exponent = float(number_for_each(exponent, f[:1], "exponent", least=low, most=high)[0])
    else:
        some = np.argsort(f)[:: -(-f.size // _FITTED)]
        exponent = _fit(f[some], errors[some], law, (low, high))
    return _posterior_means(f, errors, *law(exponent))


def power(estimates, standard_errors, *, exponent=None, smallest=None):
    """Return the mean of each frequency given its estimate, where frequencies follow a power law.

    It is ``calibrate(family="power_law")``, whose parameters and result it has.

    Examples
    --------
    >>> power([0.5, 0.3, 0.01, -0.02, 0.0, 0.02], 0.02).round(2).tolist()
    [0.5, 0.3, 0.01, 0.0, 0.01, 0.01]
    """
    return calibrate(estimates, standard_errors, exponent=exponent, smallest=smallest)


def power_ns(estimates, standard_errors, *, exponent=None, smallest=None):
    """Return `norm_sub` of `power`: at least 0, of sum 1. Same parameters.

    Examples
    --------
    >>> power_ns([0.6, 0.3, 0.01, -0.02, 0.0, 0.02], 0.02).sum().round(6)
    np.float64(1.0)
    """
    return norm_sub(power(estimates, standard_errors, exponent=exponent, smallest=smallest))


# ---------------------------------------------------------------- inside


def _sum_of_powers(d, a):
    """Return the sum of r^-a over the ranks r = 1, ..., d: the first ones, and an integral for the others."""
    first = min(d, _RANKS_ADDED)
    log = np.log((d + 0.5) / (first + 0.5))
    rest = log if abs(a - 1) < 1e-9 else np.expm1((1 - a) * log) / (1 - a)
    return float(np.sum(np.arange(1.0, first + 1) ** -a) + rest * (first + 0.5) ** (1 - a))


def _places(start, stop):
    """Return (places u from start to stop, or to beyond what matters below `_FAR`, the width each stands for)."""
    turn = min(max(start, 1.0), stop)
    stop = min(turn + _FAR + 9, stop)
    below = np.geomspace(start, turn, _BELOW)[:-1] if start < turn else []
    u = np.concatenate([below, np.arange(turn, stop, 1 / _ABOVE), [stop]])
    gaps = np.diff(u)
    return u, (np.append(gaps, 0.0) + np.append(0.0, gaps)) / 2


def _kernel(t, start, low):
    """Return (places u, the width that each stands for, e^(-(t - u)^2 / 2) for each t, the logarithm of its unit)."""
    u, width = _places(start, start / low)
    unit = -np.square(t - np.clip(t, u[0], u[-1])) / 2
    return u, width, np.exp(-np.square(t[:, None] - u) / 2 - unit[:, None]), unit


def _fit(f, errors, law, bounds):
    """Return the exponent under which estimates are likeliest."""
    t = f / errors
    near, far = np.flatnonzero(t <= _FAR), t > _FAR

    @lru_cache(maxsize=1)  # (the power law always has one and the same)
    def kernels(low):
        return [_kernel(t[near[part]], level, low) for level, part in _levels(low / errors[near])]

    def cost(exponent):
        s, low = law(exponent)
        span = -np.log(low)  # the prior sums to (1 - low^(1 - s)) / (1 - s)
        power = (1 - s) * span
        log_total = np.log(span) + (-power / 2 if abs(power) < 1e-9 else np.log(-np.expm1(-power) / power))
        value = -s * (np.log(f[far]).sum() + np.log(errors[near]).sum()) - len(f) * log_total
        for u, width, kernel, unit in kernels(low):
            value += (np.log(kernel @ (width * u**-s)) + unit).sum()
        return -value

    return minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-3}).x


def _levels(start):
    """Yield (a level of low / sigma, which values are nearest to it)."""
    if not len(start):
        return
    logs = np.log(start)
    reach = np.ptp(logs)
    n = 1 if reach < 1e-3 else _LEVELS
    place = np.zeros(len(logs), np.int64) if n == 1 else np.rint((logs - logs.min()) / reach * (n - 1)).astype(np.int64)
    for k in range(n):
        part = np.flatnonzero(place == k)
        if len(part):
            yield float(np.exp(logs[part].mean())), part


def _posterior_means(f, errors, s, low):
    """Return the mean of each frequency given its estimate."""
    t, start = f / errors, np.log(low / errors)
    nodes = np.arange(-_FAR, _FAR + 0.5 / _PER_ERROR, 1 / _PER_ERROR)
    levels = np.linspace(start.min(), start.max(), 1 if np.ptp(start) < 1e-3 else _LEVELS)
    table = np.empty((len(levels), len(nodes)))
    for row, level in zip(table, levels):
        u, width, kernel, _ = _kernel(nodes, float(np.exp(level)), low)
        row[:] = kernel @ (width * u ** (1 - s)) / (kernel @ (width * u**-s))
    place = np.clip((t + _FAR) * _PER_ERROR, 0, len(nodes) - 1.000001)
    at = place.astype(np.intp)
    if len(levels) == 1:
        u = table[0][at] + (place - at) * (table[0][at + 1] - table[0][at])
    else:
        row = np.clip((start - levels[0]) / (levels[1] - levels[0]), 0, len(levels) - 1.000001)
        k = row.astype(np.intp)
        ends = [table[k + j, at] + (place - at) * (table[k + j, at + 1] - table[k + j, at]) for j in (0, 1)]
        u = ends[0] + (row - k) * (ends[1] - ends[0])
    u = np.where(t > _FAR, t - s / np.maximum(t, 1.0), u)
    return np.clip(u * errors, low, 1.0)
