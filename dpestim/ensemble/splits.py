"""Random trees: which rows go to which tree, and splits that look at no row."""


import numpy as np


def assigned(n_rows, n_trees, structure):
    """Return the tree of each row by its place, the same number for all trees but for one: public, and random."""
    places = np.arange(n_rows, dtype=np.int32) % np.int32(n_trees)
    return np.random.default_rng([1, structure]).permutation(places)


def random_splits(bins, n_trees, depth, structure):
    """Return (features, shifts, thresholds) of shape (n_trees, 2^depth - 1): public, no row has a say.

    Each node takes one of the columns that its ancestors have left more than one code, and one of the splits of these.
    """
    rng = np.random.default_rng([0, structure])
    inner = (1 << depth) - 1
    feature, shift, threshold = (np.zeros((n_trees, inner), kind) for kind in (np.int32, np.uint8, np.uint8))
    sizes, ordered = np.array([own.size for own in bins]), np.array([own.ordered for own in bins])
    low, high = np.zeros((n_trees, 1, len(bins)), np.int64), np.broadcast_to(sizes - 1, (n_trees, 1, len(bins)))
    low, high = low.copy(), high.copy()
    # (where values may be missing, numbers have the codes from 1 on; `gone`: whether missing ones come to a node)
    low += np.array([own.ordered and own.missing for own in bins])
    gone = low > 0
    tree = np.arange(n_trees)[:, None]
    for level in range(depth):
        width = 1 << level
        nodes, here = slice(width - 1, 2 * width - 1), np.arange(width)[None, :]
        draws = rng.random((2, n_trees, width))
        open_ = ((high > low) | gone).cumsum(axis=2)
        some = open_[:, :, -1] > 0
        j = (open_ <= np.floor(draws[0] * open_[:, :, -1])[:, :, None]).sum(axis=2) * some
        a, b = low[tree, here, j], high[tree, here, j]
        cut = np.minimum(a + np.floor(draws[1] * (b - a)).astype(np.int64), np.maximum(b - 1, a))
        apart = right = np.False_
        if gone.any():  # missing values apart from all numbers, or with either side of one of the cuts
            with_missing = gone[tree, here, j]
            option = np.floor(draws[1] * (2 * (b - a) + 1)).astype(np.int64) - 1
            apart, right = with_missing & (option < 0), with_missing & (option >= 0) & (option % 2 == 1)
            cut = np.where(with_missing & ~apart, a + option // 2, cut)
        one = np.floor(draws[1] * sizes[j]).astype(np.int64)  # (of categories, any one against all others)
        feature[:, nodes], shift[:, nodes] = j, np.where(ordered[j], right, one)
        threshold[:, nodes] = np.where(some, np.where(ordered[j] & ~apart, cut - right, 0), 255)
        low, high = np.repeat(low, 2, axis=1), np.repeat(high, 2, axis=1)
        moved = ordered[j] & some & ~apart
        high[tree, 2 * here, j] = np.where(moved, cut, high[tree, 2 * here, j])
        low[tree, 2 * here + 1, j] = np.where(moved, cut + 1, low[tree, 2 * here + 1, j])
        gone = np.repeat(gone, 2, axis=1)
        if gone.any():
            high[tree, 2 * here, j] = np.where(apart & some, low[tree, 2 * here, j], high[tree, 2 * here, j])
            gone[tree, 2 * here, j] &= ~(apart | right)
            gone[tree, 2 * here + 1, j] &= right
    return feature, shift, threshold
