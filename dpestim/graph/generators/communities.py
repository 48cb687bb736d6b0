"""Communities of nodes: groups that are merged by a noisy count of edges, and nodes that move by private choices.

`merged` sees noisy counts alone. `chosen` is an exponential mechanism of every node at once, in integers: its table of
weights rises by at most e^rate a step, and a word below the sum of weights decides. Proof: ``privgraph.md``.
"""

import math

import numpy as np

from dpestim.central.exact_bernoulli import exp_bounds
from dpestim.rng import Stage

#: The weight of a community without a neighbour; sums of weights stay below this; and the most entries of a table.
_LEAST, _LARGEST, _ENTRIES = 1 << 20, 1 << 62, 1 << 14
#: So often merging looks at all groups, at most, before groups are put together.
_SWEEPS = 20


def weights_of(rate, n_communities):
    """Return the integer weights of 0, 1, ... neighbours: each at most e^rate times the one before, none smaller."""
    table, shrink = [_LEAST], exp_bounds(rate, 40)[1]
    while len(table) < _ENTRIES:
        more = math.floor(table[-1] / shrink)
        if more * n_communities >= _LARGEST:
            break
        table.append(more)
    return np.array(table, np.uint64)


def scores_of(graph, labels, n_communities):
    """Return (nodes, communities, neighbours of the node in the community), without zeros, in order. O(m log m)."""
    rows = np.repeat(np.arange(graph.n_nodes, dtype=np.int64), graph.degrees)
    keys, times = np.unique(rows * n_communities + labels[graph.neighbours], return_counts=True)
    return keys // n_communities, keys % n_communities, times


def chosen(scores, n_nodes, n_communities, table, source):
    """Return a community for each node, in proportion to the weight of its neighbours there, exactly. O(entries)."""
    nodes, communities, times = scores
    weights = table[np.minimum(times, len(table) - 1)]
    starts = np.searchsorted(nodes, np.arange(n_nodes + 1))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(weights)])  # modulo 2^64: differences of a node are exact
    listed, n_listed = sums[starts[1:]] - sums[starts[:-1]], np.diff(starts)
    drawn = _below(listed + table[0] * (n_communities - n_listed).astype(np.uint64), source)
    upto = sums[1:] - sums[starts[nodes]]
    places = starts[:-1] + np.bincount(nodes[upto <= drawn[nodes]], minlength=n_nodes)
    # those without a neighbour, of which the k-th one is k plus how many listed ones are below it
    outside = drawn >= listed
    k = ((drawn - np.minimum(listed, drawn)) // table[0]).astype(np.int64)
    before = communities - (np.arange(len(nodes)) - starts[nodes])
    k += np.bincount(nodes[before <= k[nodes]], minlength=n_nodes)
    return np.where(outside, k, np.append(communities, 0)[np.minimum(places, len(nodes))])


def _below(sums, source):
    """Return integers uniform below each of these, by rejection of words."""
    masks = sums - np.uint64(1)
    for shift in (1, 2, 4, 8, 16, 32):
        masks |= masks >> np.uint64(shift)
    reader, out, left, k = source.reader(), np.empty(len(sums), np.uint64), np.arange(len(sums)), 0
    while len(left):
        out[left] = reader.dense(Stage.RESPONSE, k, 0, 0, len(left)) & masks[left]
        left, k = left[out[left] >= sums[left]], k + 1
    return out


def merged(counts):
    """Return the community of each group, from a symmetric matrix of noisy numbers of edges: modularity, greedily.

    Groups move where the modularity rises most, until none does; then communities are groups (Blondel and others 2008).
    """
    counts = np.maximum(counts, 0.0)  # (noise)
    degrees = counts.sum(axis=1) + np.diag(counts)
    total = max(degrees.sum(), 1.0)
    now = counts - np.outer(degrees, degrees) / total
    labels = np.arange(len(counts))
    while True:
        n, own, changed = len(now), np.arange(len(now)), False
        for _ in range(_SWEEPS):
            moved = False
            for v in range(n):
                gains = np.bincount(own, weights=now[v], minlength=n)
                gains[own[v]] -= now[v, v]
                best = int(np.argmax(gains))
                if gains[best] > gains[own[v]] + 1e-9 * total / n:
                    own[v], moved = best, True
            changed |= moved
            if not moved:
                break
        if not changed:
            return labels
        known, own = np.unique(own, return_inverse=True)
        labels, sides = own[labels], np.eye(len(known))[own]
        now = sides.T @ now @ sides
