"""BTER: random graphs of given degrees and clustering, by blocks of nodes of like degree. No data, and no privacy.

Blocks of d + 1 nodes of degree d and more are random graphs in which any two nodes are joined with probability
c^(1/3), so that such a node has clustering c; what is missing of the degrees is joined at random.
"""

import numpy as np

from dpestim.graph.generators.base import generator_of, joined

#: What generators say of the parameter `clustering`.
CLUSTERING = """
    clustering : float or array-like of float, default=0.3
        The clustering of nodes that is assumed, in [0, 1]: the share of pairs of neighbours that are joined. One
        number, or entry d for nodes of degree d, the last one for all higher degrees, too. Nothing of it is learned:
        take what is public about such networks.
"""
#: So often ends that are left over, as their edge was a loop or there already, are joined again: first with each other,
#: then with those of other edges.
_ROUNDS, _PLAIN = 100, 5
#: Pairs that are joined with more than this probability are gone through one by one.
_DENSE = 0.9


def bter(degrees, clustering, random_state=None):
    """Return a random graph of given degrees and clustering (block two-level Erdos-Renyi, BTER).

    Nothing in it is private: what made `degrees` and `clustering` must be.

    Parameters
    ----------
    degrees : array-like of int of shape (n_nodes,)
        The degree that each node should have, from 0 to n_nodes - 1.
    clustering : float or array-like of float
        The clustering of nodes of a degree, in [0, 1]: the share of pairs of neighbours that are joined. One number
        for all degrees, or entry d for degree d, the last one for all higher degrees, too.
    random_state : None, int, numpy.random.Generator or RandomState, default=None

    Returns
    -------
    csr_array of shape (n_nodes, n_nodes)
        The adjacency matrix, of uint8. Degrees are never above those that were asked for; few are below. O(m + n).

    References
    ----------
    Seshadhri, Kolda, Pinar (2012), "Community structure and scale-free collections of Erdos-Renyi graphs", Physical
    Review E. Missing degrees are met by random pairs of ends, not by the Chung-Lu model, which spreads every degree.

    Examples
    --------
    >>> from dpestim.graph import bter
    >>> graph = bter([5] * 60, 0.7, random_state=0)
    >>> graph.shape, int(graph.sum(axis=0).max())
    ((60, 60), 5)
    """
    return joined(*edges_of(checked_degrees(degrees), checked_clustering(clustering), generator_of(random_state)),
                  len(degrees))


def checked_degrees(degrees):
    """Return degrees as an array of integers, or raise ValueError."""
    values = np.asarray(degrees)
    if values.ndim != 1 or values.dtype.kind not in "iu" or not len(values):
        raise ValueError("degrees must be a list of integers, one for each node")
    if values.min() < 0 or values.max() >= len(values):
        raise ValueError("degrees must be from 0 to n_nodes - 1: clip them")
    return values.astype(np.int64)


def checked_clustering(clustering):
    """Return a clustering curve as an array of floats, or raise ValueError."""
    message = "clustering must be a number from 0 to 1, or a list of these for the degrees 0, 1, 2, ..."
    values = np.atleast_1d(np.asarray(clustering if isinstance(clustering, np.ndarray | list | tuple) else [clustering],
                                      dtype=object))
    if values.ndim != 1 or not len(values) or any(isinstance(v, bool | str) or not hasattr(v, "__float__")
                                                  for v in values.tolist()):
        raise ValueError(message)
    values = values.astype(float)
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError(message)
    return values


def edges_of(degrees, curve, rng):
    """Return (ends, other ends) of the edges of a graph, each edge once, without loops."""
    blocks = block_starts(degrees)
    order = np.argsort(degrees, kind="stable")[np.count_nonzero(degrees < 2):]
    lowest = degrees[order[blocks[:-1]]]
    chances = np.cbrt(curve[np.minimum(lowest, len(curve) - 1)])
    ends, others = (order[places] for places in pairs_in_blocks(blocks, chances, rng))
    return matched(degrees, ends, others, rng)


def block_starts(degrees):
    """Return where blocks start, and where the last one ends, among the nodes of degree 2 and more by rising degree."""
    sizes, n = np.bincount(degrees), int(np.count_nonzero(degrees >= 2))
    starts, at = [0], 0
    own = np.repeat(np.arange(len(sizes)), sizes)[len(degrees) - n:]
    while at < n:
        at = min(at + int(own[at]) + 1, n)
        starts.append(at)
    return np.array(starts, np.int64)


def pairs_in_blocks(starts, chances, rng):
    """Return two arrays of places: the pairs within each block that are joined, each one independently. O(pairs found).

    A pair is joined where at least one point of a Poisson process lies in its part of a line, which is as long as
    minus the logarithm of the probability that it is not joined.
    """
    sizes = np.diff(starts)
    pairs, dense = sizes * (sizes - 1) // 2, chances > _DENSE
    few = np.where(dense, 0.0, -np.log1p(-np.minimum(chances, _DENSE)))
    line = np.concatenate([[0.0], np.cumsum(few * pairs)])
    points = rng.random(rng.poisson(line[-1])) * line[-1]
    blocks = np.searchsorted(line, points, side="right") - 1
    blocks = np.minimum(blocks, len(pairs) - 1)
    within = np.minimum(((points - line[blocks]) / few[blocks]).astype(np.int64), pairs[blocks] - 1)
    before = np.concatenate([[0], np.cumsum(pairs)])
    found = [np.unique(before[blocks] + within)]
    for block in np.flatnonzero(dense):
        found.append(before[block] + np.flatnonzero(rng.random(pairs[block]) < chances[block]))
    places = np.concatenate(found)
    blocks = np.searchsorted(before, places, side="right") - 1
    within = places - before[blocks]
    # (pair number j (j - 1) / 2 + i joins i < j; the root of a float is corrected by a step, if at all)
    j = ((1 + np.sqrt(8.0 * within + 1)) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > within
    j += j * (j + 1) // 2 <= within
    i = within - j * (j - 1) // 2
    return starts[blocks] + i, starts[blocks] + j


def matched(degrees, ends, others, rng, left=None):
    """Return the edges of a graph and further ones, for which the ends that nodes miss are joined at random.

    Where two ends cannot be joined, as of nodes that are joined already, some other edge gives way: its two ends are
    joined with them. Edges must be given once. With `left`, every edge joins one of so many first nodes with another.
    """
    n = len(degrees)
    known = np.sort(_codes(ends, others, n))
    missing = degrees - np.bincount(ends, minlength=n) - np.bincount(others, minlength=n)
    for turn in range(_ROUNDS):
        free = rng.permutation(np.repeat(np.arange(n), np.maximum(missing, 0)))
        first = np.arange(len(free)) < len(free) // 2 if left is None else free < left
        sides = free[first], free[~first]
        half = min(map(len, sides))
        if not half:
            break
        one, two = (side[:half] for side in sides)
        taken = np.empty(0, np.int64)
        if turn >= _PLAIN and turn % 2 and len(known):
            taken = rng.choice(len(known), min(half, len(known)), replace=False)
            low, high = np.divmod(known[taken], n)
            one, two = one[: len(taken)], two[: len(taken)]
            codes = np.stack([_codes(one, high, n), _codes(two, low, n)])
            good = (one != high) & (two != low) & ~_held(known, codes).any(axis=0)
            # (no edge twice: pairs of proposals are taken only if nobody else proposes either of them)
            seen, times = np.unique(codes, return_counts=True)
            good &= (times[np.searchsorted(seen, codes)] == 1).all(axis=0)
            taken, codes = taken[good], np.sort(codes[:, good].ravel())
        else:
            codes = np.unique(_codes(one, two, n)[one != two])
            codes = codes[~_held(known, codes)]
        for nodes in np.divmod(codes, n):
            missing -= np.bincount(nodes, minlength=n)
        for nodes in np.divmod(known[taken], n):
            missing += np.bincount(nodes, minlength=n)
        known = np.delete(known, taken)
        known = np.insert(known, np.searchsorted(known, codes), codes)
    return np.divmod(known, n)


def _codes(ends, others, n):
    return np.minimum(ends, others) * n + np.maximum(ends, others)


def _held(known, codes):
    """Tell which codes are among the known ones, which ascend."""
    if not len(known):
        return np.zeros(codes.shape, bool)
    return known[np.minimum(np.searchsorted(known, codes), len(known) - 1)] == codes
