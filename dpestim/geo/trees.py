"""Estimates of the nodes of an uneven quadtree that agree, are not negative, and add up."""

import numpy as np


def consistent(levels, total):
    """Return (leaves, counts, variances of the estimates) from the shares that were estimated at each level.

    Parameters
    ----------
    levels : list of (depth, nodes, shares, variance, users)
        From coarse to fine; the nodes of a level are all children of some nodes of the level before. Every level
        has one variance for all of its nodes.
    total : int
        What counts of all leaves add up to.

    Returns
    -------
    leaves : list of (depth, node)
    counts, variances : ndarrays
        Of numbers of users.

    Notes
    -----
    From the finest level up, a node is the mean of its estimate and of the sum of its children, weighted by precision.
    From the coarsest level down, children are set to at least 0 and scaled to the count of their parent.
    """
    best, spread = [], []
    for k in range(len(levels) - 1, -1, -1):
        _, nodes, shares, variance, _ = levels[k]
        value, error = np.array(shares, float), np.full(len(nodes), variance)
        if best:
            finer = np.array(levels[k + 1][1]) >> 2
            parents = np.searchsorted(nodes, finer[::4])
            sums, errors = best[-1].reshape(-1, 4).sum(axis=1), spread[-1].reshape(-1, 4).sum(axis=1)
            weight = error[parents] / (error[parents] + errors)
            value[parents] += weight * (sums - value[parents])
            error[parents] *= 1 - weight
        best.append(value)
        spread.append(error)
    best, spread = best[::-1], spread[::-1]
    counts = _scaled(best[0][None], np.array([float(total)]))[0]
    leaves, found, errors = [], [], []
    for k, (depth, nodes, _, variance, _) in enumerate(levels):
        cut = np.zeros(len(nodes), bool)
        if k + 1 < len(levels):
            parents = np.searchsorted(nodes, np.array(levels[k + 1][1])[::4] >> 2)
            cut[parents] = True
        leaves += [(depth, node) for node, inner in zip(nodes, cut.tolist()) if not inner]
        found.append(counts[~cut])
        errors.append(np.full((~cut).sum(), variance * total**2))
        if k + 1 < len(levels):
            counts = _scaled(best[k + 1].reshape(-1, 4), counts[parents]).ravel()
    return leaves, np.concatenate(found), np.concatenate(errors)


def _scaled(rows, totals):
    """Return rows of numbers of at least 0 that add up to totals: scaled, or even where all are 0."""
    rows = np.maximum(rows, 0.0)
    sums = rows.sum(axis=1, keepdims=True)
    share = np.where(sums > 0, rows / np.where(sums > 0, sums, 1), 1 / rows.shape[1])
    return share * totals[:, None]
