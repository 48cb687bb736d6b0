"""Consistent trees: nodes that were observed level by level, of which each should be the sum of its children.

A tree is a tuple of fan-outs: the root has `fanouts[0]` children, each of these has `fanouts[1]`, and so on. Level 0
is the root, and nodes of a level are in order. Each level has one variance of its observations: 0 where they are exact
(the root alone), `math.inf` where there are none. The estimates are those of least squares, in two passes, and what
follows from them is exact: variances of ranges, their average over all ranges, weights of observations (``trees.md``).
"""

import math
from itertools import accumulate

import numpy as np


def level_sizes(fanouts):
    """Return how many nodes each level has, from the root on."""
    return list(accumulate(fanouts, int.__mul__, initial=1))


def node_widths(fanouts):
    """Return how many leaves a node has, at each level from the root on."""
    sizes = level_sizes(fanouts)
    return [sizes[-1] // size for size in sizes]


def even_fanouts(size, height):
    """Return the fan-outs of the tree of this height over at least so many leaves, as equal and as small as can be."""
    most = math.ceil(size ** (1 / height) - 1e-9)
    while most**height < size:
        most += 1
    out = [most] * height
    for level in range(height):
        if math.prod(out) // out[level] * (out[level] - 1) >= size and out[level] > 2:
            out[level] -= 1
    return tuple(out)


def fanouts_of(size, branching):
    """Return the fan-outs of the tree in which every node but the root has so many children."""
    out, left = [], size
    while left > branching:
        out.append(branching)
        left = -(-left // branching)
    return (left, *out) if left > 1 else tuple(out)


def passes(fanouts, variances):
    """Return (the variance of a node's estimate from its subtree, the weight of its own observation), for each level.

    Parameters
    ----------
    fanouts : sequence of int
    variances : sequence of float
        Of an observation, for each level from the root on; those of leaves are finite and above 0.
    """
    if len(variances) != len(fanouts) + 1 or not 0 < variances[-1] < math.inf or min(variances[1:]) <= 0 or not (
            variances[0] >= 0):
        raise ValueError("variances must have one number for each level, above 0 (that of the root may be 0), and "
                         "finite for the leaves")
    below, weights = [float(variances[-1])], [1.0]
    for fanout, own in zip(reversed(fanouts), reversed(variances[:-1])):
        children = fanout * below[-1]
        weight = children / (own + children)  # (0 where own is infinite)
        weights.append(weight)
        below.append(children * (1 - weight) if own > children else own * weight)
    return below[::-1], weights[::-1]


def consistent(fanouts, observed, variances):
    """Return the estimates of least squares of all nodes, a list of arrays from the root on.

    Parameters
    ----------
    fanouts : sequence of int
    observed : sequence of ndarray
        Those of each level; what a level of infinite variance has is not looked at.
    variances : sequence of float
    """
    _, weights = passes(fanouts, variances)
    up = [np.asarray(observed[-1], np.float64)]
    for fanout, own, weight in zip(reversed(fanouts), reversed(observed[:-1]), reversed(weights[:-1])):
        children = up[-1].reshape(-1, fanout).sum(axis=1)
        up.append(children if not weight else weight * np.asarray(own, np.float64) + (1 - weight) * children)
    up.reverse()
    out = [up[0]]
    for fanout, own in zip(fanouts, up[1:]):
        groups = own.reshape(-1, fanout)
        left = (out[-1] - groups.sum(axis=1)) / fanout
        out.append((groups + left[:, None]).reshape(-1))
    return out


def inside(fanouts, low, high):
    """Return how much of each node lies between two places (0 to the number of leaves), for each level, as arrays."""
    out = []
    for size, width in zip(level_sizes(fanouts), node_widths(fanouts)):
        starts = np.arange(size) * float(width)
        out.append((np.clip(high - starts, 0, width) - np.clip(low - starts, 0, width)) / width)
    return out


def range_weights(fanouts, variances, low, high):
    """Return the weight of each observation in the estimated sum of a range, arrays for each level.

    Low and high are places among the leaves; of a leaf that lies partly between them that part counts.
    """
    _, weights = passes(fanouts, variances)
    parts = inside(fanouts, low, high)
    mine, out = parts[0], [weights[0] * parts[0]]
    for fanout, above, part, up, weight in zip(fanouts, parts, parts[1:], weights, weights[1:]):
        mine = part + np.repeat((1 - up) * mine - above, fanout)
        out.append(weight * mine)
    return out


def cover_weights(fanouts, low, high):
    """Return the same where the sum of a range is that of the fewest nodes that make it, each as it was observed."""
    parts, covered = inside(fanouts, low, high), np.zeros(1, bool)
    out = []
    for part, fanout in zip(parts[:-1], fanouts):
        out.append(((part == 1) & ~covered).astype(np.float64))
        covered = np.repeat(covered | (part == 1), fanout)
    return [*out, np.where(covered, 0.0, parts[-1])]


def difference_weights(fanouts, low, high):
    """Return the same where what was observed of a node is how much more it has than an equal share of its parent.

    Of the root it is all that it has. These are the Haar coefficients, where fan-outs are 2.
    """
    parts = inside(fanouts, low, high)
    return [parts[0], *(own - np.repeat(above, fanout) for fanout, above, own in zip(fanouts, parts, parts[1:]))]


def of_differences(fanouts, observed):
    """Return the leaves, from such differences."""
    out = np.asarray(observed[0], np.float64)
    for fanout, own in zip(fanouts, observed[1:]):
        out = np.repeat(out / fanout, fanout) + own
    return out


def range_variance(fanouts, variances, low, high):
    """Return the variance of the estimated sum of each range, for independent noise; O(height times fan-out) each.

    Parameters
    ----------
    fanouts : sequence of int
    variances : sequence of float
    low, high : float or ndarray
        Places among the leaves, 0 to their number.
    """
    low, high = np.broadcast_arrays(np.asarray(low, np.float64), np.asarray(high, np.float64))
    below, _ = passes(fanouts, variances)
    widths, sizes = node_widths(fanouts), level_sizes(fanouts)
    out = np.square((high - low) / widths[0]) * below[0]
    for level, fanout in enumerate(fanouts):
        first, last = (np.minimum(place // widths[level], sizes[level] - 1) for place in (low, high))
        width = widths[level + 1]
        for node, counts in ((first, np.ones(low.shape)), (last, (first != last).astype(np.float64))):
            starts = node[..., None] * widths[level] + np.arange(fanout) * float(width)
            parts = (np.clip(high[..., None] - starts, 0, width) - np.clip(low[..., None] - starts, 0, width)) / width
            out = out + counts * below[level + 1] * np.square(parts - parts.mean(axis=-1, keepdims=True)).sum(axis=-1)
    return out


def leaf_covariances(fanouts, below):
    """Return (the covariance of two leaves whose last common node is at each level, ..., the variance of a leaf).

    `below` are the variances of nodes from their own subtrees, as `passes` returns them.
    """
    widths, variance, out = node_widths(fanouts), below[0], []
    for fanout, mine, width in zip(fanouts, below[1:], widths[1:]):
        both = variance / fanout**2
        out.append((both - mine / fanout) / width**2)
        variance = both + mine * (1 - 1 / fanout)
    return [*out, variance]


def mean_range_variance(fanouts, variances, n_leaves=None, below=None):
    """Return the variance of the estimated sum of a range, on average over all ranges of the first leaves.

    Parameters
    ----------
    fanouts : sequence of int
    variances : sequence of float
    n_leaves : int, default=None
        How many leaves are values; None: all. The others are held by nobody.
    below : sequence of float, default=None
        The variances of nodes from their own subtrees, where these are known; `variances` are not looked at then. Of
        observed differences (`of_differences`) they are half the variance of the difference of two siblings.
    """
    n, widths = int(n_leaves or level_sizes(fanouts)[-1]), node_widths(fanouts)
    total, before = 0.0, 0.0
    below = passes(fanouts, variances)[0] if below is None else below
    for covariance, width in zip(leaf_covariances(fanouts, below), widths):
        total, before = total + (covariance - before) * _pairs(n, width), covariance
    return total / (n * (n + 1) // 2)


def mean_cover(fanouts, n_leaves=None):
    """Return how many nodes of each level `cover_weights` takes, on average over all ranges of the first leaves."""
    sizes, widths = level_sizes(fanouts), node_widths(fanouts)
    n = int(n_leaves or sizes[-1])
    inner = [_ranges_around(n, width) for width in widths]
    own = [inner[0], *(here - fanout * above for fanout, above, here in zip(fanouts, inner, inner[1:]))]
    return [count / (n * (n + 1) // 2) for count in own]


def _ranges_around(n, width):
    """Return how many (range, node) there are where the node lies in the range, exactly."""
    whole = n // width
    ones, squares = whole * (whole - 1) // 2, (whole - 1) * whole * (2 * whole - 1) // 6
    # node k has (k width + 1) first leaves before its own, and n - (k + 1) width + 1 ends
    return whole * (n - width + 1) + ones * (width * (n - width + 1) - width) - squares * width**2


def _pairs(n, width):
    """Return how many (range, leaf, leaf) there are where both leaves are in the range and in one node, exactly."""
    whole, rest = divmod(n, width)
    ones, squares = whole * (whole - 1) // 2, (whole - 1) * whole * (2 * whole - 1) // 6
    # a node of leaves s, ..., s + m - 1 has (s + 1) (n - s) m^2 + (n - s) P - (s + 1) Q - R
    low, high, both = _moments(width)
    total = (whole * n + width * (n - 1) * ones - width**2 * squares) * width**2
    total += (whole * n - width * ones) * low - (width * ones + whole) * high - whole * both
    if rest:
        low, high, both = _moments(rest)
        start = whole * width
        total += (start + 1) * (n - start) * rest**2 + (n - start) * low - (start + 1) * high - both
    return total


def _moments(m):
    """Return the sums of min(u, v), max(u, v) and their product over u, v from 0 to m - 1."""
    low = (m - 1) * m * (2 * m - 1) // 6
    return low, m * m * (m - 1) - low, (m * (m - 1) // 2) ** 2
