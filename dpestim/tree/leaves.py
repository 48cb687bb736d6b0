"""Noisy numbers of leaves: their noise, the root beside them, and how far each is drawn to the root."""

import math

import numpy as np
from scipy.stats import norm

from dpestim.records import record
from dpestim.statistics.calibrated_noise import noise_for
from dpestim.statistics.plan import Noisy, Plan

#: By how much leaves usually differ from the root, a deviation in units of p (1 - p): of classes, and of numbers,
#: whose variance is far less than that of a coin between their bounds.
_USUAL, _USUAL_NUMBERS = 1.0, 0.1


@record
class Leaves:
    """Noisy numbers of leaves, of shape (trees, leaves, numbers), and of all rows of all trees, or None.

    `variance` and `root_variance` are those of the noise of one of them.
    """

    noisy: np.ndarray
    variance: float
    root: np.ndarray | None = None
    root_variance: float = 0.0


def rows_of(leaves):
    """Return how many rows noisy leaves have, of shape (trees, leaves): at least 0."""
    return np.maximum(leaves.noisy.sum(axis=2), 0.0)


def root_weights(n_leaves, times, normal, many):
    """Return by which integers numbers of leaves, and of all rows, are multiplied before they get one noise.

    Of many leaves the sum is so noisy that a tenth of what is spent (of the squares, where noise may be normal) is for
    numbers of all rows, to which all leaves shrink. Otherwise that is 0.

    Parameters
    ----------
    n_leaves : int
        Of all trees.
    times : int
        How many trees a row is in.
    normal : bool
    many : float
        From how many leaves on.
    """
    if n_leaves < many:
        return 1, 0
    return 9, round(3 * math.sqrt(times)) if normal else times


def leaf_noise(epsilon, delta, l1, l2_squared, times, many, shape):
    """Return the noise of all numbers of leaves, of this shape, of trees that a row is in so often.

    In one tree a row that is replaced, or comes, moves them by (l1, l2_squared), and those of all rows as well.
    """
    leaf, root = root_weights(shape[0] * shape[1], times, delta > 0, many)
    size = math.prod(shape) + (shape[2] if root else 0)
    return noise_for(epsilon, delta, (leaf * times + root) * l1, (leaf**2 * times + root**2) * l2_squared, size)


def leaf_plan(epsilon, delta, l1, l2_squared, times, many, totals, weights):
    """Return the plan of noisy `Leaves`: exact integers times weights, and their sums, get noise."""
    leaf, root = root_weights(totals.shape[0] * totals.shape[1], times, delta > 0, many)
    noise, scale = leaf_noise(epsilon, delta, l1, l2_squared, times, many, totals.shape), np.array(weights, object)
    exact = (totals.astype(object) * (scale * leaf)).ravel().tolist()  # (64 bits may not hold them)
    if root:  # (every tree that a row is in counts it once)
        exact += ((totals.sum(axis=(0, 1)) // times).astype(object) * (scale * root)).tolist()

    def finish(found):
        noisy = np.asarray(found[0], np.float64)
        leaves, variance = noisy[: totals.size].reshape(totals.shape) / leaf, noise.variance
        if not root:
            return Leaves(leaves, variance)
        return Leaves(leaves, variance / leaf**2, noisy[totals.size :] * (times / root), variance * (times / root) ** 2)

    return Plan((Noisy(noise, exact),), finish)


def shrunk(leaves, *, shares=True):
    """Return (shares of classes in leaves, which part of what is to be known noise leaves) from noisy counts.

    Shares have the shape (trees, leaves, classes). The part is 1 where there is no noise.

    From the root down, what a node says by its own noisy counts, and what its parent says, are weighed by their errors
    (as a Kalman filter does). By how much a node differs from its parent is estimated from all nodes of a level, of all
    trees: in proportion to p (1 - p), and to how much of the parent's rows are in the other child. Where nothing but
    noise is seen, all nodes say nearly what the root says.

    Parameters
    ----------
    leaves : Leaves
    shares : bool, default=True
        Whether what comes out is to be shares above 0, none of them below half of its error, or may be off on either
        side, as what is averaged should.
    """
    noisy, variance = leaves.noisy, leaves.variance
    levels = [noisy]
    while levels[0].shape[1] > 1:
        below = levels[0]
        levels.insert(0, below[:, 0::2] + below[:, 1::2])
    n_trees, n_leaves, n_classes = noisy.shape
    # (trees start from what all of them say: many that shrink to something else would be wrong together)
    parent = np.broadcast_to(prior_of(leaves), (n_trees, 1, n_classes))
    left, above = np.zeros_like(parent), None  # the parent's error, and its rows
    apart, usual = np.zeros_like(parent), (_USUAL if shares else _USUAL_NUMBERS) / max(len(levels) - 1, 1)
    for depth, level in enumerate(levels):
        noise = variance * (n_leaves >> depth)
        seen_rows = level.sum(axis=2, keepdims=True)
        rows = np.maximum(seen_rows, max(math.sqrt(noise * n_classes), 1.0))
        # (a node whose rows are drowned by noise says nothing, and not that all shares are small)
        told = (level - parent * seen_rows) / rows
        if shares or not depth:  # (numbers may be off on either side, and are not less sure for it)
            even = np.clip(parent * (1.0 - parent), 1e-6, 0.25)
        errors, spread = noise / rows**2 + even / rows, left
        if depth:
            parts = np.clip(1.0 - rows / above, 0.05, 1.0) ** 2 * even
            weights = parts / (errors + left) ** 2
            information = (weights * parts).sum()
            seen = (weights * (np.square(told) - errors - left)).sum() / information
            own = likely_spread(seen, information / 2, usual) * parts
            spread, apart = left + own, apart + own
        gain = spread / (spread + errors)
        found = parent + gain * told
        if shares:
            found = np.maximum(np.maximum(found, np.minimum(parent, 0.5 * np.sqrt(gain * errors))), 1e-9)
            found /= found.sum(axis=2, keepdims=True)
        left = (1.0 - gain) * spread
        if depth + 1 < len(levels):
            parent, left, above, apart = (np.repeat(a, 2, axis=1) for a in (found, left, rows, apart))
    drowned = left * (noise / rows**2) / errors
    return found, 1.0 - float((rows * drowned).sum() / max((rows * apart).sum(), 1e-12))


def likely_spread(seen, information, usual):
    """Return by how much nodes differ, from an unbiased estimate and the inverse of its variance, in (0, 1].

    It is the mean of what is likely then: normal around the estimate and, before anything was seen, around 0, and not
    below 0. So noise never makes all nodes alike: what they say is little, and orders rows all the same.
    """
    precision = information + usual**-2
    mean, deviation = seen * information / precision, precision**-0.5
    at = max(mean / deviation, -30.0)
    return min(deviation * (at + math.exp(norm.logpdf(at) - norm.logcdf(at))), 1.0)


def prior_of(leaves):
    """Return shares of classes among all rows of all trees: nearer to even ones where noise is large, none below it."""
    counts, n_classes = leaves.noisy.sum(axis=(0, 1)), leaves.noisy.shape[2]
    noise = leaves.variance * leaves.noisy[..., 0].size
    if leaves.root is not None:
        part = noise / (noise + leaves.root_variance)
        counts, noise = counts + part * (leaves.root - counts), part * leaves.root_variance
    rows = max(counts.sum(), math.sqrt(noise * n_classes), 1.0)
    # (shares of which nothing is known, all as likely, have this variance)
    spread = (n_classes - 1) / (n_classes**2 * (n_classes + 1))
    gain = spread / (spread + noise / rows**2)
    known = np.maximum(1 / n_classes + gain * (counts / rows - 1 / n_classes), (1.0 + math.sqrt(gain * noise)) / rows)
    return known / known.sum()
