"""Estimates of coefficients from noisy moments without shrinkage, and how far off they are (`linear.md`)."""

import numpy as np

from dpestim.linear_model.shrinkage import centred, expected, strength

#: An eigenvalue below so many standard deviations of its noise tells nothing of the coefficient of its direction.
_SEEN = 4.0


def unshrunken(moments, penalty, fit_intercept, known):
    """Return (estimates, standard errors) of coefficients in scaled units; NaN where noise drowned them.

    Directions whose eigenvalue stands out of its noise are solved for, and the second order of the noise is corrected
    for. A coefficient is identified where the other directions, in which a coefficient may be of any size that the
    moments allow, have less of a share in it than the noise.

    Parameters
    ----------
    moments : Moments
    penalty : ndarray of shape (n_columns,)
        Public numbers that are added to the diagonal: the penalised coefficients are estimated.
    fit_intercept : bool
    known : ndarray of bool of shape (n_columns,)
        Columns that are constant by their bounds: nothing is estimated for these, and their coefficient is 0.
    """
    estimates, errors, free = np.zeros(len(known)), np.zeros(len(known)), ~known
    if free.any():
        estimates[free], errors[free] = _solved(centred(moments, penalty, fit_intercept, free), moments.noise)
    return estimates, errors


def _solved(at, noise):
    """Return estimates and standard errors for centred moments."""
    values, V = np.linalg.eigh(at.A)
    own, product = at.noise_of(V, noise)
    seen = values > _SEEN * np.sqrt(product)
    nothing = np.full(len(values), np.nan)
    if not seen.any():
        return nothing, nothing
    # (centring adds to the noise of products: as if all products had the most)
    more = product.max() / (noise["square"] + (len(values) - 1) * noise["product"])
    noise = {**noise, "product": more * noise["product"], "square": more * noise["square"]}
    kept = V[:, seen]
    # the inverse of noisy moments is too large on average; to second order, as if they lacked this
    lacks = _second((kept / values[seen]) @ kept.T, noise)
    M = kept @ np.linalg.solve(np.diag(values[seen]) + kept.T @ lacks @ kept, kept.T)
    w = M @ at.b
    unseen = 0.0  # the squared size of a coefficient in a direction that is not seen, at most
    if not seen.all():
        z = V.T @ at.b
        alike = expected(values, np.sqrt(product))
        _, highest = strength(alike, z, own, product, 1 - noise["with_target"] / own.mean())
        unseen = max(np.exp(highest), w @ w / seen.sum())
    first = _noise_covariance(M, w, at, noise)
    first += noise["product"] * unseen * (~seen).sum() * M @ M.T
    first += at.spread(w) * (M @ at.rows @ M.T)
    variances = np.diag(first) + np.diag(M @ _second(first, noise) @ M)
    hidden = unseen * np.square(V[:, ~seen]).sum(axis=1)
    told = hidden <= variances
    return np.where(told, w, np.nan), np.sqrt(np.where(told, variances + hidden, np.nan))


def _second(N, noise):
    """Return the mean of E N E for symmetric noise E of independent entries."""
    square = np.diag((noise["square"] - 2 * noise["product"]) * np.diag(N))
    return noise["product"] * (np.trace(N) * np.eye(len(N)) + N) + square


def _noise_covariance(M, w, at, noise):
    """Return the covariance of w that is due to the noise of the moments, to first order: of M (db - dA w)."""
    own = noise["product"] * (w @ w * np.eye(len(w)) + np.outer(w, w))
    own += (noise["square"] - 2 * noise["product"]) * np.diag(w * w) + noise["with_target"] * np.eye(len(w))
    out = M @ own @ M.T
    if at.intercept:
        b0, by_target = at.target - at.mean @ w, M @ at.mean
        S = M @ (np.outer(at.mean, w) - b0 * np.eye(len(w)))
        out += noise["column"] * S @ S.T + (noise["target"] + b0 * b0 * noise["rows"]) * np.outer(by_target, by_target)
    return out
