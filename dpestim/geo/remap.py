"""Reports moved to where the user is likely to be, by a public prior: free, because a report is all that is used."""

import numpy as np

#: Reports for which posteriors are worked out at a time, times places of the prior; steps towards a median.
_AT_ONCE, _STEPS = 1 << 20, 100


def checked_prior(prior):
    """Return (places, weights that sum to 1) of a public prior, or raise ValueError."""
    wrong = ("prior must be a pair (places, weights): an array of shape (k, 2), and k numbers of at least 0, not all 0")
    if not isinstance(prior, tuple | list) or len(prior) != 2:
        raise ValueError(wrong)
    try:
        places, weights = (np.array(part, np.float64) for part in prior)
    except (TypeError, ValueError):
        places = weights = None
    if places is None or places.ndim != 2 or places.shape[1] != 2 or weights.shape != places.shape[:1] or not (
            np.isfinite(places).all() and np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise ValueError(wrong)
    return places, weights / weights.sum()


def remapped(reports, places, weights, epsilon, metres):
    """Return, for each reported place, that of the least expected distance from the user's, under the posterior.

    Parameters
    ----------
    reports : ndarray of shape (n, 2)
    places, weights : ndarrays of shapes (k, 2) and (k,)
        The prior: where users are, and with which probabilities.
    epsilon : float
        For a metre.
    metres : ndarray of shape (2,)
        Metres of a unit of each coordinate.
    """
    at, out = places * metres, np.empty_like(reports)
    known, where = np.unique(reports, axis=0, return_inverse=True)
    rows = max(1, _AT_ONCE // len(at))
    best = np.empty_like(known)
    for start in range(0, len(known), rows):
        seen = known[start : start + rows] * metres
        away = np.sqrt(np.square(seen[:, None] - at).sum(axis=2))
        with np.errstate(divide="ignore"):
            log = np.log(weights) - epsilon * away
        posterior = np.exp(log - log.max(axis=1, keepdims=True))
        best[start : start + rows] = medians(at, posterior / posterior.sum(axis=1, keepdims=True)) / metres
    out[:] = best[where.reshape(-1)]
    return out


def medians(points, weights):
    """Return, for each row of weights, the point of the least mean distance from the points (Weiszfeld's steps).

    Where one of the points does better than what the steps have found, that point.
    """
    found = weights @ points
    for _ in range(_STEPS):
        pull = weights / np.maximum(_away(found, points), 1e-9)
        found = pull @ points / pull.sum(axis=1, keepdims=True)
    cost = (weights * _away(found, points)).sum(axis=1)
    each = weights @ np.sqrt(np.square(points[:, None] - points).sum(axis=2))
    best = each.argmin(axis=1)
    better = each[np.arange(len(each)), best] <= cost
    found[better] = points[best[better]]
    return found


def _away(found, points):
    return np.sqrt(np.square(found[:, None] - points).sum(axis=2))
