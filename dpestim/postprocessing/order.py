"""What is publicly known of the values beforehand: an order of their frequencies, or a tree of sums."""

import numpy as np

from dpestim.postprocessing.inputs import estimates_of, number_for_each


def isotonic(estimates, standard_errors=None, *, ranking=None, increasing=False):
    """Return the nearest frequencies that fall from each value to the next of a public ranking.

    Nearest in squares, each divided by its variance: the pool-adjacent-violators algorithm. O(d).

    Parameters
    ----------
    estimates : array-like of shape (d,)
    standard_errors : float or array-like of shape (d,), default=None
        None is the same for all.
    ranking : array-like of int of shape (d,), default=None
        Positions of the values, the most frequent one first. It must be public: learned from other data, or from the
        nature of the values. None is their order: with ``postprocess="isotonic"`` that of `categories`.
    increasing : bool, default=False
        Whether frequencies rise along the ranking instead.

    Returns
    -------
    ndarray of shape (d,)
        The sum is that of the estimates where standard errors are equal; may be negative. Biased where neighbours are
        nearly as frequent as each other.

    Raises
    ------
    ValueError
        For a ranking that is not a permutation of 0, ..., d - 1.

    Examples
    --------
    >>> isotonic([0.5, 0.1, 0.3, 0.1]).round(6).tolist()
    [0.5, 0.2, 0.2, 0.1]
    >>> isotonic([0.2, 0.5, 0.4], ranking=[1, 0, 2]).round(6).tolist()
    [0.3, 0.5, 0.3]
    """
    from sklearn.isotonic import isotonic_regression

    f = estimates_of(estimates)
    order = np.arange(f.size) if ranking is None else np.asarray(ranking)
    if order.shape != f.shape or order.dtype.kind not in "iu" or not np.array_equal(np.sort(order), np.arange(f.size)):
        raise ValueError(f"ranking must name each position from 0 to {f.size - 1} once")
    weights = _precisions(standard_errors, f)
    if not weights.all():
        raise ValueError("standard_errors must be finite")
    out = np.empty_like(f)
    out[order] = isotonic_regression(f[order], sample_weight=weights[order], increasing=bool(increasing))
    return out


def tree_consistency(estimates, standard_errors=None, *, parents=None, fanout=None, total=1.0):
    """Return the nearest frequencies of the nodes of a tree in which every node is the sum of its children.

    Nearest in squares, each divided by its variance, which is the best linear unbiased estimate where errors are
    independent: one pass up, in which each node is averaged with the sum of its children, and one down, in which what
    is left is shared among the children by their variances. O(d log d).

    Parameters
    ----------
    estimates : array-like of shape (d,)
        One for each node of the tree.
    standard_errors : float or array-like of shape (d,), default=None
        None is the same for all. A node with children that was not asked has an infinite one, and any estimate.
    parents : array-like of int of shape (d,), default=None
        The position of the parent of each node, -1 for the nodes at the top.
    fanout : int, default=None
        Instead of `parents`: a complete tree in which every node has so many children, level by level from the root on,
        as d = 1 + fanout + fanout^2 + ... says; the last level may be cut short.
    total : float or None, default=1.0
        What the nodes at the top sum to; None where that is not known.

    Returns
    -------
    ndarray of shape (d,)
        Unbiased; may be negative. Without `parents` and `fanout` all values are at the top, and are made to sum to
        `total`: with equal standard errors that is `norm`.

    Raises
    ------
    ValueError
        For parents that make no tree.

    References
    ----------
    M. Hay, V. Rastogi, G. Miklau, D. Suciu, "Boosting the accuracy of differentially private histograms through
    consistency", VLDB 2010, section 4 (for equal variances and one fanout).

    Examples
    --------
    >>> tree_consistency([1.0, 0.5, 0.7], parents=[-1, 0, 0]).round(6).tolist()
    [1.0, 0.4, 0.6]
    >>> tree_consistency([0.9, 0.5, 0.7], fanout=2, total=None).round(6).tolist()
    [1.0, 0.4, 0.6]
    """
    f = estimates_of(estimates)
    precisions = _precisions(standard_errors, f)
    levels, parents = _levels_of(f.size, parents, fanout)
    has_children = np.zeros(f.size, bool)
    for level in levels[1:]:
        has_children[parents[level]] = True
    if ((precisions == 0) & ~has_children).any():
        raise ValueError("standard_errors must be finite for nodes without children")
    if total is not None:
        total = float(number_for_each(total, f[:1], "total", least=-np.inf)[0])
    # going up: (best, variance) of each node from its subtree alone; (below, spread) are the sums over its children
    best, variance = f.copy(), 1 / np.where(precisions > 0, precisions, 1.0)
    below, spread = np.zeros_like(f), np.zeros_like(f)
    for level in reversed(levels):
        inner = level[has_children[level]]
        own, theirs = precisions[inner], 1 / spread[inner]
        variance[inner] = 1 / (own + theirs)
        best[inner] = (own * f[inner] + theirs * below[inner]) * variance[inner]
        up = parents[level]
        if level is not levels[0]:
            np.add.at(below, up, best[level])
            np.add.at(spread, up, variance[level])
    top = levels[0]
    if total is not None:
        best[top] += variance[top] * ((total - best[top].sum()) / variance[top].sum())
    for level in levels[1:]:
        up = parents[level]
        best[level] += variance[level] / spread[up] * (best[up] - below[up])
    return best


def _precisions(standard_errors, f):
    """Return 1 / variance, scaled so that the largest is 1; errors of 0 are the smallest that can be told from it."""
    errors = number_for_each(1.0 if standard_errors is None else standard_errors, f, "standard_errors")
    finite = errors[np.isfinite(errors)]
    largest = finite.max(initial=0.0)
    errors = np.maximum(errors / largest, 1e-7) if largest > 0 else np.where(np.isfinite(errors), 1.0, np.inf)
    return np.square(1 / errors)


def _levels_of(d, parents, fanout):
    """Return (the nodes of each level, from the top down, the parent of each), or raise ValueError."""
    if fanout is not None:
        if parents is not None:
            raise ValueError("fanout and parents must not both be given: pass one of them")
        if not isinstance(fanout, int | np.integer) or fanout < 1:
            raise ValueError("fanout must be a positive integer")
        parents = (np.arange(d) - 1) // int(fanout)
    elif parents is None:
        return [np.arange(d)], np.full(d, -1)
    parents = np.asarray(parents)
    if parents.shape != (d,) or parents.dtype.kind not in "iu" or parents.min() < -1 or parents.max() >= d:
        raise ValueError(f"parents must be {d} integers from -1 to {d - 1}")
    by_parent = np.argsort(parents, kind="stable")
    starts = np.searchsorted(parents[by_parent], np.arange(-1, d + 1))
    n_children = np.diff(starts)[1:]
    levels, seen = [by_parent[: starts[1]]], int(starts[1])
    while seen < d:
        inner = levels[-1][n_children[levels[-1]] > 0]
        if not len(inner):
            raise ValueError("parents must make a tree: going up from any node must end at -1")
        counts, first = n_children[inner], starts[inner + 1]
        places = np.arange(counts.sum()) + np.repeat(first - np.append(0, np.cumsum(counts)[:-1]), counts)
        levels.append(by_parent[places])
        seen += len(places)
    return levels, parents
