"""Functions of noisy numbers, which cost no privacy: cells for normal rows, and k-means on weighted points."""

import numpy as np

from dpestim._core import kmeans

#: Starts of k-means on points, its steps, and normal rows a cell.
_STARTS, _STEPS, _ROWS = 6, 25, 12


def packed(rows):
    """Return rows as the kernels take them: blocks of `kmeans.LANES`, each turned over."""
    n, d = rows.shape
    out = np.empty((-(-n // kmeans.LANES), d, kmeans.LANES), np.float32)
    far = np.full(d, 1e30)
    kmeans.pack(np.ascontiguousarray(rows, np.float64), -far, far, np.zeros(d), 1.0, 0, len(out), out)
    return out


def nearest(blocks, n_rows, centers):
    """Return which of the centers is nearest to each row of packed blocks; the first of several."""
    labels = np.empty((len(blocks), kmeans.LANES), np.int32)
    kmeans.nearest(blocks, np.ascontiguousarray(centers, np.float32), labels)
    return labels.ravel()[:n_rows]


def normal_cells(deviations, n_cells):
    """Return (points, shares): centers of cells around normal rows with these deviations, and how many rows they have.

    The same for the same arguments: what is random here is public.
    """
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n_cells * _ROWS, len(deviations))) * deviations
    blocks, points = packed(rows), rows[:n_cells]
    for _ in range(6):
        labels = nearest(blocks, len(rows), points)
        points, counts = _means(rows, np.ones(len(rows)), labels, points)
    return points, counts / len(rows)


def cell_shares(deviations, points):
    """Return the shares of normal rows with these deviations in the cells of points; as public as these."""
    rows = np.random.default_rng(1).standard_normal((len(points) * _ROWS, len(deviations))) * deviations
    return np.bincount(nearest(packed(rows), len(rows), points), minlength=len(points)) / len(rows)


def weighted_kmeans(points, weights, k):
    """Return k centers of weighted points, (n_points, d) with n_points >= k; the same for the same arguments."""
    order = np.argsort(-weights, kind="stable")
    n = max(k, int((weights > 0).sum()))
    points, weights = points[order[:n]], np.maximum(weights[order[:n]], 0.0)
    if n == k:
        return points.copy()
    rng, best, least = np.random.default_rng(0), points[:k], np.inf
    blocks = packed(points)
    for _ in range(_STARTS):
        centers = _spread(points, weights, k, rng)
        for _ in range(_STEPS):
            before = centers
            centers, _ = _means(points, weights, nearest(blocks, n, centers), centers)
            if np.array_equal(before, centers):
                break
        off = np.square(points - centers[nearest(blocks, n, centers)]).sum(axis=1) @ weights
        if off < least:
            best, least = centers, off
    return best


def _spread(points, weights, k, rng):
    """Return k of the points, each likely by how far it is from those before (k-means++), the best of a few."""
    total = weights.sum()
    at = [int(rng.choice(len(points), p=weights / total))]
    off = np.square(points - points[at[0]]).sum(axis=1)
    while len(at) < k:
        score = off * weights
        if not score.sum() > 0:  # (points that are the same)
            at += [i for i in range(len(points)) if i not in at][: k - len(at)]
            break
        tried = rng.choice(len(points), size=2 + int(np.log(k)), p=score / score.sum())
        new = np.minimum(off, np.square(points[tried][:, None] - points).sum(axis=2))
        chosen = int(np.argmin(new @ weights))
        at.append(int(tried[chosen]))
        off = new[chosen]
    return points[at]


def _means(points, weights, labels, centers):
    """Return (means of the points of each label, or the center where there are none, their weights)."""
    k = len(centers)
    mass = np.bincount(labels, weights, k)
    sums = np.stack([np.bincount(labels, weights * column, k) for column in points.T], axis=1)
    return np.where(mass[:, None] > 0, sums / np.where(mass > 0, mass, 1.0)[:, None], centers), mass
